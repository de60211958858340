//! Arguments of Megatron-LM, which are also keys of NeMo, Megatron-Bridge, Primus and Megatron-DeepSpeed.

use serde_json::json;

use crate::import::Field;
use crate::import::fields::ReadFields;
use crate::import::value::{Node, Value, parse_int};

/// Settings that are known and change nothing that is read.
const IGNORED: &str = "
overlap_param_gather use_mcore_models transformer_impl use_flash_attn moe_grouped_gemm moe_ffn_hidden_size
moe_permute_fusion moe_router_load_balancing_type deepspeed deepspeed_activation_checkpointing no_pipeline_parallel
manual_gc manual_gc_interval group_query_attention kv_channels distributed_backend make_vocab_size_divisible_by
data_impl no_masked_softmax_fusion attention_softmax_in_fp32 fp8_amax_history_len fp8_amax_compute_algo fp8_margin
batch_p2p_comm sync_batch_comm empty_unused_memory_level no_mmap_bin_files fp8_params fp8_param_gather fp8_interval
gradient_accumulation_fusion
";

/// Reads the arguments of one topic. Returns `None` if the key is not one of them, and `Some(false)` if its value is not
/// recognized.
type ReadTopic = fn(&str, &Node, &mut ReadFields) -> Option<bool>;

const TOPICS: [ReadTopic; 7] = [architecture, batch, layout, states, precision, recomputation, execution];

/// Reads one argument. Returns false if it is not recognized.
pub(crate) fn flag(key: &str, node: &Node, out: &mut ReadFields) -> bool {
    let read = TOPICS.iter().find_map(|read| read(key, node, out));
    read.unwrap_or_else(|| super::lists(IGNORED, key) || super::is_irrelevant(key))
}

/// Sizes of the model.
fn architecture(key: &str, node: &Node, out: &mut ReadFields) -> Option<bool> {
    Some(match key {
        "num_layers" => out.int(Field::ArchitectureNumLayers, node),
        "hidden_size" => out.int(Field::ArchitectureHiddenSize, node),
        "ffn_hidden_size" => out.int(Field::ArchitectureFfnHiddenSize, node),
        "num_attention_heads" => out.int(Field::ArchitectureNumAttentionHeads, node),
        "num_query_groups" | "num_key_value_heads" => out.int(Field::ArchitectureNumQueryGroups, node),
        "max_position_embeddings" => out.int(Field::ArchitectureMaxPositionEmbeddings, node),
        "vocab_size" | "pad_vocab_size_to" | "padded_vocab_size" => out.int(Field::ArchitectureVocabSize, node),
        "num_experts" | "num_moe_experts" => {
            let n = match &node.value {
                // With one number per layer, the largest is used.
                Value::List(l) => l.iter().filter_map(Node::int).max(),
                _ => node.int(),
            };
            n.is_none_or(|n| out.set(Field::ArchitectureNumExperts, n, node.line))
        }
        "moe_router_topk" => out.int(Field::ArchitectureMoeTopk, node),
        "mtp_num_layers" => out.int(Field::MtpLayers, node),
        _ => return None,
    })
}

/// Lengths and batches.
fn batch(key: &str, node: &Node, out: &mut ReadFields) -> Option<bool> {
    Some(match key {
        "seq_length" | "encoder_seq_length" | "max_seq_length" => out.int(Field::SeqLen, node),
        "micro_batch_size" | "batch_size" => out.int(Field::MicroBatch, node),
        "global_batch_size" => out.int(Field::GlobalBatch, node),
        "rampup_batch_size" => {
            let list: Vec<i64> = match &node.value {
                Value::List(l) => l.iter().filter_map(Node::int).collect(),
                Value::Str(s) => s.split([' ', ',']).filter_map(parse_int).collect(),
                _ => Vec::new(),
            };
            list.len() != 3 || out.set(Field::RampupBatch, json!(list), node.line)
        }
        "step_batch_size_schedule" => match &node.value {
            // An unquoted shell array splits the schedule into words.
            Value::List(l) => {
                let all: Vec<String> = l.iter().filter_map(Node::text).collect();
                out.set(Field::BatchSchedule, all.join(" "), node.line)
            }
            _ => out.text(Field::BatchSchedule, node),
        },
        _ => return None,
    })
}

/// The distribution of layers, heads, sequences and experts over devices.
fn layout(key: &str, node: &Node, out: &mut ReadFields) -> Option<bool> {
    Some(match key {
        "tensor_model_parallel_size" | "tensor_parallel_size" | "model_parallel_size" => out.int(Field::Tp, node),
        "pipeline_model_parallel_size" | "pipeline_parallel_size" => out.int(Field::Pp, node),
        "context_parallel_size" => out.int(Field::Cp, node),
        "expert_model_parallel_size" | "expert_parallel_size" => out.int(Field::Ep, node),
        "expert_tensor_parallel_size" => out.int(Field::Etp, node),
        "virtual_pipeline_model_parallel_size"
        | "num_virtual_stages_per_pipeline_rank"
        | "virtual_pipeline_parallel_size" => out.int(Field::Vpp, node),
        "pipeline_model_parallel_layout" => {
            // Bars separate the stages. Stages per rank are the virtual stages.
            let stages = node.text().filter(|t| !t.contains('*')).map(|t| t.matches('|').count() + 1);
            if let (Some(stages), Some(pp)) = (stages.and_then(|n| i64::try_from(n).ok()), out.fields.int(Field::Pp))
                && pp > 0
                && stages % pp == 0
                && stages > pp
            {
                out.fields.set_implied(Field::Vpp, stages / pp, node.line);
            }
            true
        }
        "num_layers_per_virtual_pipeline_stage" => out.int(Field::LayersPerVirtualStage, node),
        "sequence_parallel" => out.flag(Field::SequenceParallel, node),
        "decoder_first_pipeline_num_layers" | "num_layers_in_first_pipeline_stage" => out.int(Field::FirstLayers, node),
        "decoder_last_pipeline_num_layers" | "num_layers_in_last_pipeline_stage" => out.int(Field::LastLayers, node),
        "cp_comm_type" => match node.text().as_deref() {
            Some("allgather") => out.set(Field::CpCommType, "all_gather", node.line),
            Some(kind @ ("p2p" | "all_gather" | "a2a")) => out.set(Field::CpCommType, kind, node.line),
            Some(_) => false,
            None => out.record_unset_variables(node),
        },
        _ => return None,
    })
}

/// Weights, gradients and optimizer states: optimizer, sharding, offloading and formats.
fn states(key: &str, node: &Node, out: &mut ReadFields) -> Option<bool> {
    Some(match key {
        "use_distributed_optimizer" => {
            if node.switch() == Some(true) && !out.fields.has(Field::Sharding) {
                out.set(Field::Sharding, "zero1", node.line);
            }
            true
        }
        "use_megatron_fsdp" | "use_torch_fsdp2" | "use_custom_fsdp" => out.set_if_on(Field::Sharding, "zero3", node),
        "data_parallel_sharding_strategy" => match node.text().as_deref() {
            Some("no_shard") => out.set(Field::Sharding, "none", node.line),
            Some("optim") => out.set(Field::Sharding, "zero1", node.line),
            Some("optim_grads") => out.set(Field::Sharding, "zero2", node.line),
            Some("optim_grads_params") => out.set(Field::Sharding, "zero3", node.line),
            _ => true,
        },
        "zero_stage" => super::zero_stage(out, node),
        "optimizer" | "optimizer_type" => super::optimizer(out, node),
        "adam_beta1" | "adam_beta2" => {
            out.fields.set_implied(Field::Optimizer, "adam", node.line);
            true
        }
        "cpu_offloading" | "optimizer_cpu_offload" => out.set_if_on(Field::OffloadOptimizer, "cpu", node),
        "cpu_offloading_weights" => out.set_if_on(Field::OffloadParams, "cpu", node),
        "fine_grained_activation_offloading" => out.flag(Field::OffloadActivations, node),
        "fsdp" => out.set_if_on(Field::Sharding, "zero3", node),
        "deepspeed_config" => super::reference(out, node),
        "grad_reduce_in_bf16" => out.set_if_on(Field::GradientFormat, "bf16", node),
        "accumulate_allreduce_grads_in_fp32" | "grad_reduce_in_fp32" => match node.switch() {
            Some(true) => out.set(Field::GradientFormat, "fp32", node.line),
            Some(false) if key == "grad_reduce_in_fp32" => out.set(Field::GradientFormat, "bf16", node.line),
            _ => true,
        },
        "num_distributed_optimizer_instances" => out.int(Field::OptimizerInstances, node),
        "exp_avg_sq_dtype" => out.text(Field::OptimizerStates, node),
        _ => return None,
    })
}

/// Formats of the matrix multiplications.
fn precision(key: &str, node: &Node, out: &mut ReadFields) -> Option<bool> {
    Some(match key {
        "bf16" => super::precision_switch(out, "bf16", node),
        "fp16" => super::precision_switch(out, "fp16", node),
        "fp8_format" | "fp8" | "fp8_hybrid" | "fp8_e4m3" => fp8(out, key, node),
        "fp8_recipe" => {
            if let Some(t) = node.text() {
                let word = match t.as_str() {
                    "tensorwise" | "cs" | "current" => "current_scaling".to_owned(),
                    "mx" | "mxfp8" => "mxfp8".to_owned(),
                    "ds" | "delayed" => "delayed".to_owned(),
                    "sc" | "subchannel" => "blockwise".to_owned(),
                    _ => t,
                };
                out.set(Field::Fp8Recipe, word, node.line);
            }
            true
        }
        "fp4_format" | "fp4" => {
            if node.text().is_some_and(|t| t != "false") {
                out.set(Field::Precision, "fp4", node.line);
            }
            true
        }
        "first_last_layers_bf16" => out.flag(Field::Bf16Ends, node),
        "num_layers_at_start_in_bf16" => out.int(Field::Bf16LayersAtStart, node),
        "num_layers_at_end_in_bf16" => out.int(Field::Bf16LayersAtEnd, node),
        "precision" | "params_dtype" => super::precision(out, node),
        _ => return None,
    })
}

/// Recomputation of activations.
fn recomputation(key: &str, node: &Node, out: &mut ReadFields) -> Option<bool> {
    Some(match key {
        "recompute_activations" => out.set_if_on(Field::Recompute, "selective", node),
        "checkpoint_activations" => out.set_if_on(Field::Recompute, "full", node),
        "recompute_granularity" | "activations_checkpoint_granularity" => match node.text().as_deref() {
            Some("full") => out.set(Field::Recompute, "full", node.line),
            Some("selective") => out.set(Field::Recompute, "selective", node.line),
            None if node.value == Value::Null => out.set(Field::Recompute, "none", node.line),
            _ => true,
        },
        // Before there was a granularity, the method alone enabled recomputation.
        "activations_checkpoint_method" => {
            if matches!(node.text().as_deref(), Some("uniform" | "block")) {
                out.fields.set_implied(Field::Recompute, "full", node.line);
            }
            out.text(Field::RecomputeMethod, node)
        }
        "moe_layer_recompute" => out.imply_if_on(Field::Recompute, "selective", node),
        "recompute_modules" | "activations_checkpoint_recompute" => {
            let list: Vec<String> = match &node.value {
                Value::List(list) => list.iter().filter_map(Node::text).collect(),
                _ => {
                    let text = node.text().unwrap_or_default();
                    let words =
                        text.trim_matches(['[', ']']).split([',', ' ']).map(|word| word.trim_matches(['"', '\'']));
                    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
                }
            };
            list.is_empty() || out.set(Field::RecomputeModules, list, node.line)
        }
        "recompute_method" => out.text(Field::RecomputeMethod, node),
        "recompute_num_layers" | "activations_checkpoint_num_layers" => out.int(Field::RecomputeNumLayers, node),
        _ => return None,
    })
}

/// Dispatch of tokens to experts, overlap of communication, attention kernels and CUDA graphs.
fn execution(key: &str, node: &Node, out: &mut ReadFields) -> Option<bool> {
    Some(match key {
        "moe_token_dispatcher_type" => match node.text().as_deref() {
            Some("alltoall") => out.set(Field::MoeDispatcher, "alltoall", node.line),
            // The default backend of the flexible dispatcher.
            Some("flex") => {
                out.fields.set_implied(Field::MoeDispatcher, "deepep", node.line);
                true
            }
            Some(_) => false,
            None => out.record_unset_variables(node),
        },
        "moe_flex_dispatcher_backend" => match node.text().as_deref() {
            Some(backend @ ("deepep" | "hybridep")) => out.set(Field::MoeDispatcher, backend, node.line),
            Some(_) => false,
            None => out.record_unset_variables(node),
        },
        "moe_enable_deepep" => out.set_if_on(Field::MoeDispatcher, "deepep", node),
        "moe_expert_capacity_factor" => {
            let dropped = node.float().is_some_and(|factor| factor > 0.0);
            !dropped || out.set(Field::MoeCapacity, "dropped", node.line)
        }
        "overlap_grad_reduce" => out.flag(Field::OverlapData, node),
        "tp_comm_overlap" | "ub_tp_comm_overlap" => out.flag(Field::OverlapTensor, node),
        "overlap_p2p_comm" => out.flag(Field::OverlapPipeline, node),
        "no_overlap_p2p_communication" => out.set_negated(Field::OverlapPipeline, node),
        "overlap_moe_expert_parallel_comm" => out.flag(Field::OverlapExperts, node),
        "attention_backend" => match node.text().as_deref() {
            Some("unfused") => out.set(Field::AttentionKernel, "unfused", node.line),
            Some("flash") => out.set(Field::AttentionKernel, "flash2", node.line),
            Some("fused") => out.set(Field::AttentionKernel, "native", node.line),
            _ => true,
        },
        "cuda_graph_impl" => match node.text().as_deref() {
            Some("local" | "transformer_engine") => {
                out.fields.set_implied(Field::GraphCapture, "layer", node.line);
                true
            }
            _ => true,
        },
        "cuda_graph_scope" => match node.text().as_deref() {
            Some("full_iteration") => out.set(Field::GraphCapture, "full-iteration", node.line),
            Some(_) => false,
            None => out.record_unset_variables(node),
        },
        _ => return None,
    })
}

fn fp8(out: &mut ReadFields, key: &str, node: &Node) -> bool {
    match node.text().as_deref() {
        None | Some("false" | "False" | "0") => true,
        Some("true" | "True" | "1") => {
            if out.fields.str(Field::Precision) != Some("fp4") {
                out.set(Field::Precision, "fp8", node.line);
            }
            true
        }
        Some(format) => {
            out.set(Field::Precision, "fp8", node.line);
            if key != "fp8_recipe" {
                out.set(Field::Fp8Format, format, node.line);
            }
            true
        }
    }
}
