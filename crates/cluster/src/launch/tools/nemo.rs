//! NeMo: a configuration for `megatron_gpt_pretraining.py`.

use atlas_catalog::transformer::{NormKind, TransformerKind};
use atlas_core::plan::{Format, Optimizer, Recompute, Sharding};
use atlas_plan::knob::Knob;

use super::megatron::EXPRESSED;
use super::{Config, Draft, Launcher, other_mode};
use crate::launch::Unsupported;
use crate::launch::job::{Job, Training, count};
use crate::launch::keys::Keys;
use crate::launch::words::{Arguments, Word};

pub(super) fn draft(job: &Job<'_>) -> Result<Draft, Unsupported> {
    let t = job.training().ok_or_else(other_mode)?;
    let mut draft = Draft::new("nemo", job, "nvcr.io/nvidia/nemo:24.09");
    draft.expressed = EXPRESSED
        .into_iter()
        .filter(|knob| !matches!(knob, Knob::MoeDispatcher | Knob::Etp | Knob::OverlapExperts))
        .collect();
    if job.transformer.kind != TransformerKind::Decoder || job.transformer.latent.is_some() {
        draft.reject("model", "launch files for NeMo support only decoders without multi-head latent attention");
    }
    draft.variables.push(("NEMO", "/opt/NeMo".to_owned()));
    draft.start = Launcher::Torchrun;
    draft.program = vec![Word::Shell("\"$NEMO/examples/nlp/language_modeling/megatron_gpt_pretraining.py\"")];
    let mut a = Arguments::default();
    a.push_unchecked(["--config-path".into(), Word::Shell("\"$PWD\"")])
        .push_unchecked(["--config-name".into(), "nemo.yaml".into()]);
    draft.arguments = a;
    let keys = configuration(job, t, &mut draft);
    draft.configs.push(Config {
        name: "nemo.yaml",
        text: keys.yaml(&format!("# model: {}\n", job.model.id)),
        table: "nemo",
        keys: keys.settings(""),
    });
    draft.exports.push(("CUDA_DEVICE_MAX_CONNECTIONS", "1".into()));
    Ok(draft)
}

fn configuration(job: &Job<'_>, t: &Training, draft: &mut Draft) -> Keys {
    let software = job.scenario.training_software(&job.scenario.base);
    let mut k = Keys::default();
    k.put_unchecked("name", job.name.as_str());
    k.put("trainer.num_nodes", job.nodes).put("trainer.devices", job.per_node).put("trainer.max_steps", t.steps);
    match t.format {
        Format::Bf16 | Format::Fp8 => drop(k.put("trainer.precision", "bf16")),
        Format::Fp16 => drop(k.put("trainer.precision", "16")),
        other => {
            draft.reject("precision", format!("launch files for NeMo do not support training in {}", other.name()))
        }
    }
    k.put_unchecked("trainer.accelerator", "gpu")
        .put_unchecked("trainer.logger", false)
        .put_unchecked("trainer.log_every_n_steps", 1);
    k.put_unchecked("trainer.use_distributed_sampler", false).put_unchecked("trainer.enable_checkpointing", false);
    k.put("model.micro_batch_size", t.micro).put("model.global_batch_size", t.global);
    k.put("model.tensor_model_parallel_size", t.tp).put("model.pipeline_model_parallel_size", t.pp);
    if t.vpp > 1 {
        k.put("model.virtual_pipeline_model_parallel_size", t.vpp);
    }
    k.put("model.context_parallel_size", t.cp);
    if t.ep > 1 {
        k.put("model.expert_model_parallel_size", t.ep);
    }
    k.put("model.sequence_parallel", t.sequence_parallel).put("model.encoder_seq_length", t.sequence);
    architecture(job, t, &mut k);
    recomputation(t, &mut k, draft);
    if t.format == Format::Fp8 {
        k.put("model.fp8", true).put("model.fp8_hybrid", true);
    }
    k.put("model.megatron_amp_O2", true);
    k.put("model.ub_tp_comm_overlap", t.tp > 1 && t.sequence_parallel && software.overlap_tensor);
    if t.vpp > 1 {
        k.put("model.overlap_p2p_comm", software.overlap_pipeline);
    }
    if t.ep > 1 && job.scenario.base.plan.overlap == Some(false) {
        draft.reject("overlap", "NeMo has no setting for the overlap of expert parallelism");
    }
    optimizer_and_gradients(job, t, &mut k, draft);
    k.put_unchecked("model.optim.lr", 1e-5)
        .put_unchecked("model.override_vocab_size", job.transformer.vocab_size.map_or(1, count))
        .put_unchecked("model.tokenizer.library", "megatron")
        .put_unchecked("model.tokenizer.type", "GPT2BPETokenizer")
        .put_unchecked("model.data.data_impl", "mock")
        .put_unchecked("model.data.data_prefix", Vec::<String>::new())
        .put_unchecked("model.data.splits_string", "98,1,1")
        .put("model.data.seq_length", t.sequence);
    k
}

/// Sizes of the model.
fn architecture(job: &Job<'_>, t: &Training, k: &mut Keys) {
    let m = job.transformer;
    k.put_unchecked("model.max_position_embeddings", t.sequence)
        .put_unchecked("model.num_layers", count(m.n_layers))
        .put_unchecked("model.hidden_size", count(m.hidden_size))
        .put_unchecked("model.ffn_hidden_size", count(m.ffn_hidden_size))
        .put_unchecked("model.num_attention_heads", count(m.n_heads))
        .put_unchecked("model.num_query_groups", count(m.n_kv_heads))
        .put_unchecked("model.kv_channels", count(m.head_dim))
        .put_unchecked("model.mcore_gpt", true)
        .put_unchecked("model.transformer_engine", true)
        .put_unchecked("model.bias", m.mlp_bias)
        .put_unchecked("model.activation", if m.gated_mlp { "fast-swiglu" } else { "gelu" })
        .put_unchecked("model.normalization", if m.norm == NormKind::RmsNorm { "rmsnorm" } else { "layernorm1p" })
        .put_unchecked("model.position_embedding_type", if m.learned_positions { "learned_absolute" } else { "rope" })
        .put_unchecked("model.share_embeddings_and_output_weights", m.tied_embeddings);
    if let Some(experts) = m.experts {
        k.put_unchecked("model.num_moe_experts", count(experts.count))
            .put_unchecked("model.moe_router_topk", count(experts.per_token));
    }
}

fn recomputation(t: &Training, k: &mut Keys, draft: &mut Draft) {
    // Selective recomputation of NeMo frees only the scores of unfused attention.
    let (recompute, layers) = match (t.recompute, t.layers_instead) {
        (Recompute::Selective, Some(layers)) => {
            draft.note(format!(
                "NeMo recomputes {layers} whole layers instead of norms, activation functions and MLPs, so steps may take \
                 longer than predicted"
            ));
            (Recompute::Full, Some(layers))
        }
        _ => (t.recompute, t.recompute_layers),
    };
    match (recompute, layers) {
        (Recompute::Full, None) => {
            k.put("model.activations_checkpoint_granularity", "full");
            k.put("model.activations_checkpoint_method", "uniform").put("model.activations_checkpoint_num_layers", 1);
        }
        (Recompute::Full, Some(layers)) => {
            k.put("model.activations_checkpoint_granularity", "full");
            k.put("model.activations_checkpoint_method", "block");
            k.put("model.activations_checkpoint_num_layers", layers.div_ceil(t.pp * t.vpp));
        }
        (Recompute::Selective, _) => drop(k.put("model.activations_checkpoint_granularity", "selective")),
        (Recompute::None | Recompute::Auto, _) => {
            k.put("model.activations_checkpoint_granularity", serde_json::Value::Null);
        }
    }
}

fn optimizer_and_gradients(job: &Job<'_>, t: &Training, k: &mut Keys, draft: &mut Draft) {
    let plan = &job.scenario.base.plan;
    let software = job.scenario.training_software(&job.scenario.base);
    match (t.sharding, t.optimizer) {
        (Sharding::Zero1, Optimizer::Adam) => {
            k.put("model.optim.name", "distributed_fused_adam")
                .put("model.optim.overlap_grad_sync", software.overlap_data)
                .put("model.optim.overlap_param_sync", software.overlap_data);
        }
        (Sharding::None, Optimizer::Adam) => {
            k.put("model.optim.name", "fused_adam");
            if plan.switches.overlap_data.or(plan.overlap) == Some(false) {
                draft.reject("overlap_data", "NeMo can turn the overlap off only with zero1");
            }
        }
        (Sharding::Zero1 | Sharding::None, other) => {
            draft.reject("optimizer", format!("launch files for NeMo do not support the {} optimizer", other.name()));
        }
        (Sharding::Zero2 | Sharding::Zero3, _) => {
            draft.reject("sharding", "launch files for NeMo support only none and zero1");
        }
    }
    match plan.gradient_format {
        Some(Format::Fp32) => drop(k.put("model.optim.grad_sync_dtype", "fp32")),
        Some(Format::Bf16) => drop(k.put("model.optim.grad_sync_dtype", "bf16")),
        Some(other) => draft.reject("gradient_format", format!("gradients can be fp32 or bf16, not {}", other.name())),
        None => {}
    }
}
