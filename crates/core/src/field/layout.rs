//! Layout of a model over devices, and its sequences.

use super::slot::{count, flag, nonzero, number, word};
use super::{Field, Group, Knob, Step, ValueType, entry, ranks, real, whole};
use crate::bounds::Bounds;
use crate::plan::{ContextExchange, PipelineSchedule, Sharding, SharedExperts};

pub(super) const LAYOUT: &[Field] = &[
    entry(
        Knob::Tp,
        "tp",
        &["tensor_parallel", "tensor_parallel_size", "tensor_model_parallel_size", "tp_size"],
        Group::Parallelism,
        ranks(4096.0),
        &["parallelism", "tp"],
        "tensor-parallel ranks, which shard every layer; default: as few as fit",
    ).with_file_bounds(1.0, 1e6),
    entry(
        Knob::Pp,
        "pp",
        &["pipeline_parallel", "pipeline_parallel_size", "pipeline_model_parallel_size", "pp_size"],
        Group::Parallelism,
        ranks(4096.0),
        &["parallelism", "pp"],
        "pipeline stages of consecutive layers; default: as few as fit",
    ).with_file_bounds(1.0, 1e6),
    entry(
        Knob::Vpp,
        "vpp",
        &["virtual_pipeline", "virtual_pipeline_model_parallel_size"],
        Group::Parallelism,
        ranks(256.0),
        &["parallelism", "vpp"],
        "model chunks per pipeline stage (interleaved schedule): smaller bubble, more transfers",
    )
    .slot(count!(vpp))
    .with_default(1.0)
    .with_file_bounds(1.0, 1e6)
    .training()
    .hardware_modeling(),
    entry(
        Knob::FirstLayers,
        "first_layers",
        &["decoder_first_pipeline_num_layers", "num_layers_in_first_pipeline_stage"],
        Group::Parallelism,
        whole(0.0, 100_000.0, Step::Add(1.0)),
        &["parallelism", "first_layers"],
        "layers of the first pipeline stage; default: even, counting the embedding as a layer if layers do not divide evenly",
    )
    .slot(count!(first_layers))
    .training()
    .hardware_modeling(),
    entry(
        Knob::LastLayers,
        "last_layers",
        &["decoder_last_pipeline_num_layers", "num_layers_in_last_pipeline_stage"],
        Group::Parallelism,
        whole(0.0, 100_000.0, Step::Add(1.0)),
        &["parallelism", "last_layers"],
        "layers of the last pipeline stage; default: even, counting the output layer as one if layers do not divide evenly",
    )
    .slot(count!(last_layers))
    .training()
    .hardware_modeling(),
    entry(
        Knob::MtpLayers,
        "mtp_layers",
        &["mtp_num_layers"],
        Group::Parallelism,
        whole(0.0, 16.0, Step::Add(1.0)),
        &["mtp_layers"],
        "multi-token prediction (MTP) layers after the model, each with its own loss; they are on the last pipeline stage",
    )
    .slot(count!(mtp_layers))
    .with_default(0.0)
    .with_file_bounds(0.0, 1000.0)
    .training()
    .hardware_modeling(),
    entry(
        Knob::Dp,
        "dp",
        &["data_parallel", "data_parallel_size", "dp_size"],
        Group::Parallelism,
        ranks(1_048_576.0),
        &["parallelism", "dp"],
        "data-parallel replicas; default: as many as fit the target",
    ),
    entry(
        Knob::Cp,
        "cp",
        &["context_parallel", "context_parallel_size", "cp_size"],
        Group::Parallelism,
        ranks(1024.0),
        &["parallelism", "cp"],
        "context-parallel ranks: every sequence is sharded across them",
    )
    .slot(count!(cp))
    .with_default(1.0)
    .with_file_bounds(1.0, 1e6)
    .training()
    .hardware_modeling(),
    entry(
        Knob::CpCommType,
        "cp_comm_type",
        &["context_exchange"],
        Group::Parallelism,
        ValueType::Choice(ContextExchange::NAMES),
        &["parallelism", "cp_comm_type"],
        "context-parallel communication: KV passed around a ring (p2p), KV all-gather (all_gather), or all-to-all between \
         heads and sequence (a2a, Ulysses)",
    )
    .slot(word!(ContextExchange, cp_comm_type))
    .with_default_word(ContextExchange::Ring.name())
    .training()
    .hardware_modeling(),
    entry(
        Knob::Ep,
        "ep",
        &["expert_parallel", "expert_parallel_size", "expert_model_parallel_size", "ep_size"],
        Group::Parallelism,
        ranks(4096.0),
        &["parallelism", "ep"],
        "expert-parallel ranks: the experts are distributed over them",
    )
    .slot(count!(ep))
    .with_file_bounds(1.0, 1e6)
    .hardware_modeling(),
    entry(
        Knob::Etp,
        "etp",
        &["expert_tensor_parallel", "expert_tensor_parallel_size"],
        Group::Parallelism,
        ranks(4096.0),
        &["parallelism", "etp"],
        "tensor-parallel ranks within an expert; default: that of the software (tp or 1)",
    )
    .slot(count!(etp))
    .with_file_bounds(1.0, 1e6)
    .training()
    .hardware_modeling(),
    entry(
        Knob::AttentionDp,
        "attention_dp",
        &["dp_attention", "enable_dp_attention"],
        Group::Parallelism,
        ranks(4096.0),
        &["parallelism", "attention_dp"],
        "data-parallel attention groups in a replica; they share its experts. A replica has tp x pp x attention_dp accelerators",
    )
    .slot(count!(attention_dp))
    .with_file_bounds(1.0, 1e6)
    .inference()
    .hardware_modeling(),
    entry(
        Knob::ContextRanks,
        "context_ranks",
        &["decode_context_parallel_size", "dcp"],
        Group::Parallelism,
        ranks(4096.0),
        &["serving", "context_ranks"],
        "ranks that shard the KV cache of a sequence in decode (decode context parallelism)",
    )
    .slot(count!(serving.context_ranks))
    .with_default(1.0)
    .with_file_bounds(1.0, 1e6)
    .inference()
    .hardware_modeling(),
    entry(
        Knob::RedundantExperts,
        "redundant_experts",
        &["ep_num_redundant_experts", "num_redundant_experts"],
        Group::Parallelism,
        whole(0.0, 65_536.0, Step::Add(16.0)),
        &["serving", "redundant_experts"],
        "extra copies of busy experts per layer (EPLB): less imbalance, more memory",
    )
    .slot(count!(serving.redundant_experts))
    .with_default(0.0)
    .with_file_bounds(0.0, 1e6)
    .inference()
    .hardware_modeling(),
    entry(
        Knob::SharedExperts,
        "shared_experts",
        &[],
        Group::Parallelism,
        ValueType::Choice(SharedExperts::NAMES),
        &["serving", "shared_experts"],
        "how shared experts run: in separate kernels, or fused as an additional routed expert",
    )
    .slot(word!(SharedExperts, serving.shared_experts))
    .with_default_word(SharedExperts::Separate.name())
    .inference()
    .hardware_modeling(),
    entry(
        Knob::TwoBatchOverlap,
        "two_batch_overlap",
        &["enable_two_batch_overlap", "enable_dbo"],
        Group::Parallelism,
        ValueType::Toggle,
        &["serving", "two_batch_overlap"],
        "two-batch overlap: one half of the batch computes while tokens of the other half are exchanged between experts",
    )
    .slot(flag!(serving.two_batch_overlap))
    .with_default_flag(false)
    .inference()
    .hardware_modeling(),
    entry(
        Knob::Sp,
        "sp",
        &["sequence_parallel"],
        Group::Parallelism,
        ValueType::Toggle,
        &["parallelism", "sp"],
        "sequence parallelism: norms and residuals sharded over the tensor-parallel ranks; default: on if tp > 1",
    )
    .slot(flag!(sp))
    .training()
    .hardware_modeling(),
    entry(
        Knob::Sharding,
        "sharding",
        &["zero"],
        Group::Parallelism,
        ValueType::Choice(Sharding::NAMES),
        &["sharding"],
        "model states sharded over data-parallel replicas: optimizer, gradients, weights (zero3 is FSDP)",
    )
    .slot(word!(Sharding, sharding))
    .training()
    .hardware_modeling(),
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
    .zero_is_unset()
    .with_default(0.0)
    .with_file_bounds(1.0, 1e6)
    .training()
    .hardware_modeling(),
    entry(
        Knob::PipelineSchedule,
        "pp_schedule",
        &["pipeline_schedule"],
        Group::Parallelism,
        ValueType::Choice(PipelineSchedule::NAMES),
        &["pipeline_schedule"],
        "pipeline schedule: 1F1B, zero bubble, GPipe or DualPipe",
    )
    .slot(word!(PipelineSchedule, schedule))
    .with_default_word(PipelineSchedule::OneForwardOneBackward.name())
    .training()
    .hardware_modeling(),
    entry(
        Knob::Prompt,
        "prompt",
        &["isl", "seq", "seq_len", "seq_length", "sequence_length", "input_len"],
        Group::Sequence,
        whole(0.0, 16_777_216.0, Step::Double),
        &["sequence", "prompt"],
        "input tokens (ISL); the sequence length in training",
    ).with_fractional_file_bounds(0.0, 1e9)
    .unit("tok"),
    entry(
        Knob::Generate,
        "generate",
        &["osl", "output_len"],
        Group::Sequence,
        whole(0.0, 16_777_216.0, Step::Double),
        &["sequence", "generate"],
        "output tokens (OSL); 0 in training",
    ).with_fractional_file_bounds(0.0, 1e9)
    .unit("tok"),
    entry(
        Knob::Images,
        "images",
        &["images_per_request"],
        Group::Sequence,
        real(0.0, 4096.0, 1.0),
        &["sequence", "images"],
        "images per request, whose tokens are added to the prompt; in training per sequence, included in its length",
    )
    .slot(number!(images))
    .with_default(0.0)
    .hardware_modeling(),
    entry(
        Knob::ImageSize,
        "image_size",
        &["image_pixels"],
        Group::Sequence,
        whole(0.0, 16_384.0, Step::Double),
        &["sequence", "image_size"],
        "image width and height; 0: the native resolution of the vision encoder",
    )
    .slot(nonzero!(image_size))
    .zero_is_unset()
    .with_default(0.0)
    .with_file_bounds(1.0, 16_384.0)
    .unit("px")
    .hardware_modeling(),
    entry(
        Knob::FreezeVision,
        "freeze_vision",
        &["freeze_vision_tower"],
        Group::Sequence,
        ValueType::Toggle,
        &["freeze_vision"],
        "freeze the vision encoder during training",
    )
    .slot(flag!(freeze_vision))
    .with_default_flag(false)
    .training()
    .hardware_modeling(),
    entry(
        Knob::TrainTokens,
        "train_tokens",
        &["budget_tokens"],
        Group::Sequence,
        ValueType::Number { bounds: Bounds { min: 1.0, max: 1e18, whole: false }, step: Step::Double },
        &["train_tokens"],
        "tokens of the whole training run, for its time, cost and energy",
    )
    .slot(number!(train_tokens))
    .with_default(1e12)
    .unit("tok")
    .training()
    .hardware_modeling(),
    entry(
        Knob::PromptCv,
        "prompt_cv",
        &["isl_cv"],
        Group::Sequence,
        real(0.0, 10.0, 0.1),
        &["sequence", "prompt_cv"],
        "coefficient of variation of input lengths (log-normal); 0: all equal",
    )
    .slot(number!(simulation.prompt_cv))
    .with_default(0.0)
    .inference()
    .simulated(),
    entry(
        Knob::GenerateCv,
        "generate_cv",
        &["osl_cv"],
        Group::Sequence,
        real(0.0, 10.0, 0.1),
        &["sequence", "generate_cv"],
        "coefficient of variation of output lengths (log-normal); 0: all equal",
    )
    .slot(number!(simulation.generate_cv))
    .with_default(0.0)
    .inference()
    .simulated(),
    entry(
        Knob::GenerateMax,
        "generate_max",
        &["max_output"],
        Group::Sequence,
        whole(0.0, 16_777_216.0, Step::Double),
        &["sequence", "generate_max"],
        "maximum output length; 0: no limit",
    )
    .slot(nonzero!(serving.generate_max))
    .zero_is_unset()
    .with_default(0.0)
    .with_file_bounds(1.0, 1e9)
    .unit("tok")
    .inference()
    .hardware_modeling(),
    entry(
        Knob::GenerateSpread,
        "generate_spread",
        &[],
        Group::Sequence,
        real(1.0, 1e4, 0.1),
        &["sequence", "generate_spread"],
        "ratio of the longest typical output to the mean; 1: all equal",
    )
    .slot(number!(serving.generate_spread))
    .with_default(1.0)
    .inference()
    .hardware_modeling(),
];
