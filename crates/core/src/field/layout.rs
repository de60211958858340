//! How a model is distributed over devices, and its sequences.

use super::slot::{count, flag, nonzero, number, word};
use super::{Field, Group, Knob, Step, ValueType, entry, ranks, real, whole};
use crate::bounds::Bounds;
use crate::plan::{ContextExchange, PipelineSchedule, Sharding, SharedExperts};

pub(super) const LAYOUT: &[Field] = &[
    entry(
        Knob::Tp,
        "tp",
        &["tensor_parallel"],
        Group::Parallelism,
        ranks(4096.0),
        &["parallelism", "tp"],
        "tensor-parallel ranks: each layer cut across accelerators",
    ).files(1.0, 1e6),
    entry(
        Knob::Pp,
        "pp",
        &["pipeline_parallel"],
        Group::Parallelism,
        ranks(4096.0),
        &["parallelism", "pp"],
        "pipeline stages: layers split over accelerators in sequence",
    ).files(1.0, 1e6),
    entry(
        Knob::Vpp,
        "vpp",
        &["virtual_pipeline"],
        Group::Parallelism,
        ranks(256.0),
        &["parallelism", "vpp"],
        "model chunks of each pipeline stage (interleaving): a smaller bubble, more transfers",
    )
    .slot(count!(vpp))
    .usual(1.0)
    .files(1.0, 1e6)
    .training()
    .reasoned(),
    entry(
        Knob::FirstLayers,
        "first_layers",
        &["decoder_first_pipeline_num_layers", "num_layers_in_first_pipeline_stage"],
        Group::Parallelism,
        whole(0.0, 100_000.0, Step::Add(1.0)),
        &["parallelism", "first_layers"],
        "layers of the first pipeline stage; unset, the embedding counts as a layer where layers do not divide evenly",
    )
    .slot(count!(first_layers))
    .training()
    .reasoned(),
    entry(
        Knob::LastLayers,
        "last_layers",
        &["decoder_last_pipeline_num_layers", "num_layers_in_last_pipeline_stage"],
        Group::Parallelism,
        whole(0.0, 100_000.0, Step::Add(1.0)),
        &["parallelism", "last_layers"],
        "layers of the last pipeline stage; unset, the output layer counts as one where layers do not divide evenly",
    )
    .slot(count!(last_layers))
    .training()
    .reasoned(),
    entry(
        Knob::MtpLayers,
        "mtp_layers",
        &["mtp_num_layers"],
        Group::Parallelism,
        whole(0.0, 16.0, Step::Add(1.0)),
        &["mtp_layers"],
        "layers behind the model that learn to predict further tokens, each with a loss of its own (MTP); they stand on the \
         last stage",
    )
    .slot(count!(mtp_layers))
    .usual(0.0)
    .files(0.0, 1000.0)
    .training()
    .reasoned(),
    entry(
        Knob::Dp,
        "dp",
        &["data_parallel"],
        Group::Parallelism,
        ranks(1_048_576.0),
        &["parallelism", "dp"],
        "data-parallel replicas; unset, they fill the target",
    ),
    entry(
        Knob::Cp,
        "cp",
        &["context_parallel"],
        Group::Parallelism,
        ranks(1024.0),
        &["parallelism", "cp"],
        "context-parallel ranks: each sequence cut across accelerators",
    )
    .slot(count!(cp))
    .usual(1.0)
    .files(1.0, 1e6)
    .training()
    .reasoned(),
    entry(
        Knob::CpCommType,
        "cp_comm_type",
        &["context_exchange"],
        Group::Parallelism,
        ValueType::Choice(ContextExchange::NAMES),
        &["parallelism", "cp_comm_type"],
        "what ranks that share a sequence exchange: keys and values round a ring (p2p), gathered before attention \
         (all_gather), or heads for sequences (a2a, Ulysses)",
    )
    .slot(word!(ContextExchange, cp_comm_type))
    .usual_word(ContextExchange::Ring.name())
    .training()
    .reasoned(),
    entry(
        Knob::Ep,
        "ep",
        &["expert_parallel"],
        Group::Parallelism,
        ranks(4096.0),
        &["parallelism", "ep"],
        "expert-parallel ranks: experts spread over accelerators",
    )
    .slot(count!(ep))
    .files(1.0, 1e6)
    .reasoned(),
    entry(
        Knob::Etp,
        "etp",
        &["expert_tensor_parallel"],
        Group::Parallelism,
        ranks(4096.0),
        &["parallelism", "etp"],
        "tensor-parallel ranks inside an expert",
    )
    .slot(count!(etp))
    .usual(1.0)
    .files(1.0, 1e6)
    .training()
    .reasoned(),
    entry(
        Knob::AttentionDp,
        "attention_dp",
        &["dp_attention", "enable_dp_attention"],
        Group::Parallelism,
        ranks(4096.0),
        &["parallelism", "attention_dp"],
        "data-parallel attention groups inside a replica, which share its experts; a replica has tp x pp x attention_dp",
    )
    .slot(count!(attention_dp))
    .files(1.0, 1e6)
    .inference()
    .reasoned(),
    entry(
        Knob::ContextRanks,
        "context_ranks",
        &["decode_context_parallel_size", "dcp"],
        Group::Parallelism,
        ranks(4096.0),
        &["serving", "context_ranks"],
        "ranks that share the KV cache of a sequence in decode",
    )
    .slot(count!(serving.context_ranks))
    .usual(1.0)
    .files(1.0, 1e6)
    .inference()
    .reasoned(),
    entry(
        Knob::RedundantExperts,
        "redundant_experts",
        &["ep_num_redundant_experts", "num_redundant_experts"],
        Group::Parallelism,
        whole(0.0, 65_536.0, Step::Add(16.0)),
        &["serving", "redundant_experts"],
        "copies of busy experts in a layer (EPLB): less imbalance, more memory",
    )
    .slot(count!(serving.redundant_experts))
    .usual(0.0)
    .files(0.0, 1e6)
    .inference()
    .reasoned(),
    entry(
        Knob::SharedExperts,
        "shared_experts",
        &[],
        Group::Parallelism,
        ValueType::Choice(SharedExperts::NAMES),
        &["serving", "shared_experts"],
        "experts that every token passes: in kernels of their own, or as one more routed expert",
    )
    .slot(word!(SharedExperts, serving.shared_experts))
    .usual_word(SharedExperts::Separate.name())
    .inference()
    .reasoned(),
    entry(
        Knob::TwoBatchOverlap,
        "two_batch_overlap",
        &["enable_two_batch_overlap", "enable_dbo"],
        Group::Parallelism,
        ValueType::Toggle,
        &["serving", "two_batch_overlap"],
        "two halves of a batch alternate: one computes while the other's tokens travel to experts",
    )
    .slot(flag!(serving.two_batch_overlap))
    .usual_flag(false)
    .inference()
    .reasoned(),
    entry(
        Knob::Sp,
        "sp",
        &["sequence_parallel"],
        Group::Parallelism,
        ValueType::Toggle,
        &["parallelism", "sp"],
        "norms and residuals split over the tensor-parallel ranks; unset, on where tp > 1",
    )
    .slot(flag!(sp))
    .training()
    .reasoned(),
    entry(
        Knob::Sharding,
        "sharding",
        &["zero"],
        Group::Parallelism,
        ValueType::Choice(Sharding::NAMES),
        &["sharding"],
        "how model states are spread over replicas: optimizer, gradients, weights (zero3 is FSDP)",
    )
    .slot(word!(Sharding, sharding))
    .training()
    .reasoned(),
    entry(
        Knob::Shard,
        "shard",
        &["hsdp"],
        Group::Parallelism,
        whole(0.0, 1_048_576.0, Step::Double),
        &["shard"],
        "HSDP shard group size; 0: all replicas",
    )
    .slot(nonzero!(shard))
    .usual(0.0)
    .files(1.0, 1e6)
    .training()
    .reasoned(),
    entry(
        Knob::PipelineSchedule,
        "pp_schedule",
        &["pipeline_schedule"],
        Group::Parallelism,
        ValueType::Choice(PipelineSchedule::NAMES),
        &["pipeline_schedule"],
        "order of a pipeline's forward and backward passes",
    )
    .slot(word!(PipelineSchedule, schedule))
    .usual_word(PipelineSchedule::OneForwardOneBackward.name())
    .training()
    .reasoned(),
    entry(
        Knob::Prompt,
        "prompt",
        &["isl", "seq"],
        Group::Sequence,
        whole(0.0, 16_777_216.0, Step::Double),
        &["sequence", "prompt"],
        "prompt tokens (ISL); the whole sequence in training",
    ).files_any(0.0, 1e9)
    .unit("tok"),
    entry(
        Knob::Generate,
        "generate",
        &["osl"],
        Group::Sequence,
        whole(0.0, 16_777_216.0, Step::Double),
        &["sequence", "generate"],
        "generated tokens (OSL); 0 in training",
    ).files_any(0.0, 1e9)
    .unit("tok"),
    entry(
        Knob::Images,
        "images",
        &["images_per_request"],
        Group::Sequence,
        real(0.0, 4096.0, 1.0),
        &["sequence", "images"],
        "images of a request, whose tokens join the prompt; in training of a sequence, whose length has room for them",
    )
    .slot(number!(images))
    .usual(0.0)
    .reasoned(),
    entry(
        Knob::ImageSize,
        "image_size",
        &["image_pixels"],
        Group::Sequence,
        whole(0.0, 16_384.0, Step::Double),
        &["sequence", "image_size"],
        "side of the images, taken as squares; 0: the size that the vision encoder was trained for",
    )
    .slot(nonzero!(image_size))
    .usual(0.0)
    .files(1.0, 16_384.0)
    .unit("px")
    .reasoned(),
    entry(
        Knob::FreezeVision,
        "freeze_vision",
        &["freeze_vision_tower"],
        Group::Sequence,
        ValueType::Toggle,
        &["freeze_vision"],
        "the vision encoder is run and not trained",
    )
    .slot(flag!(freeze_vision))
    .usual_flag(false)
    .training()
    .reasoned(),
    entry(
        Knob::TrainTokens,
        "train_tokens",
        &["budget_tokens"],
        Group::Sequence,
        ValueType::Number { bounds: Bounds { min: 1.0, max: 1e18, whole: false }, step: Step::Double },
        &["train_tokens"],
        "tokens of the whole training run: its time, cost, energy",
    )
    .slot(number!(train_tokens))
    .usual(1e12)
    .unit("tok")
    .training()
    .reasoned(),
    entry(
        Knob::PromptCv,
        "prompt_cv",
        &["isl_cv"],
        Group::Sequence,
        real(0.0, 10.0, 0.1),
        &["sequence", "prompt_cv"],
        "standard deviation over mean of the prompts' lengths (log-normal); 0: all equal",
    )
    .slot(number!(simulation.prompt_cv))
    .usual(0.0)
    .inference()
    .simulated(),
    entry(
        Knob::GenerateCv,
        "generate_cv",
        &["osl_cv"],
        Group::Sequence,
        real(0.0, 10.0, 0.1),
        &["sequence", "generate_cv"],
        "standard deviation over mean of the outputs' lengths (log-normal); 0: all equal",
    )
    .slot(number!(simulation.generate_cv))
    .usual(0.0)
    .inference()
    .simulated(),
    entry(
        Knob::GenerateMax,
        "generate_max",
        &["max_output"],
        Group::Sequence,
        whole(0.0, 16_777_216.0, Step::Double),
        &["sequence", "generate_max"],
        "longest output; 0: no limit",
    )
    .slot(nonzero!(serving.generate_max))
    .usual(0.0)
    .files(1.0, 1e9)
    .unit("tok")
    .inference()
    .reasoned(),
    entry(
        Knob::GenerateSpread,
        "generate_spread",
        &[],
        Group::Sequence,
        real(1.0, 1e4, 0.1),
        &["sequence", "generate_spread"],
        "longest usual output over the mean; 1: all equal",
    )
    .slot(number!(serving.generate_spread))
    .usual(1.0)
    .inference()
    .reasoned(),
];
