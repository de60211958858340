//! One module per family of tools, which maps its flags and keys to fields.

pub(crate) mod accelerate;
pub(crate) mod bench;
pub(crate) mod bridge;
pub(crate) mod charts;
pub(crate) mod compose;
pub(crate) mod deepspeed;
pub(crate) mod dynamo_graph;
pub(crate) mod finetune;
pub(crate) mod hf;
pub(crate) mod jobfile;
pub(crate) mod k8s;
pub(crate) mod kuberay;
pub(crate) mod litgpt;
pub(crate) mod llamacpp;
pub(crate) mod llm_foundry;
pub(crate) mod lmdeploy;
pub(crate) mod maxtext;
pub(crate) mod megatron;
pub(crate) mod mlperf;
pub(crate) mod nanotron;
pub(crate) mod nemo;
pub(crate) mod neuron;
pub(crate) mod nim;
pub(crate) mod ollama;
pub(crate) mod pod;
pub(crate) mod post_training;
pub(crate) mod primus;
pub(crate) mod ray;
pub(crate) mod resources;
pub(crate) mod roles;
pub(crate) mod serving;
pub(crate) mod sglang;
pub(crate) mod srtslurm;
pub(crate) mod torchtitan;
pub(crate) mod torchtune;
pub(crate) mod trtllm;
pub(crate) mod trtllm_disaggregated;
pub(crate) mod vllm;

use super::fields::ReadFields;
use super::names;
use super::value::Node;
use crate::import::Field;

/// Sets the compute precision, if the value is a known precision.
pub(crate) fn precision(out: &mut ReadFields, node: &Node) -> bool {
    match node.text().as_deref().and_then(names::precision) {
        Some(p) => out.set(Field::Precision, p, node.line),
        None => {
            out.record_unset_variables(node);
            true
        }
    }
}

/// Sets the precision of the KV cache, if the value is a known precision.
pub(crate) fn kv(out: &mut ReadFields, node: &Node) -> bool {
    match node.text() {
        Some(t) => {
            if let Some(p) = names::kv_precision(&t) {
                out.set(Field::KvPrecision, p, node.line);
            }
        }
        None => {
            out.record_unset_variables(node);
        }
    }
    true
}

/// Sets the method of quantization, and the format of the weights if it is known.
pub(crate) fn quantization(out: &mut ReadFields, node: &Node) -> bool {
    if let Some(method) = node.text() {
        if let Some(format) = names::weights(&method) {
            out.set(Field::WeightsPrecision, format, node.line);
        }
        out.set(Field::Quantization, method, node.line);
    }
    true
}

/// Sets the format of the weights, if the method of quantization implies one.
pub(crate) fn weights(out: &mut ReadFields, node: &Node) -> bool {
    if let Some(format) = node.text().as_deref().and_then(names::weights) {
        out.set(Field::WeightsPrecision, format, node.line);
    }
    true
}

/// Sets a half precision whose switch is on, or FP8. FP8 and finer formats take precedence over half precision.
pub(crate) fn precision_switch(out: &mut ReadFields, word: &str, node: &Node) -> bool {
    let finer = matches!(out.fields.str(Field::Precision), Some("fp8" | "mxfp8" | "fp4"));
    if node.switch() == Some(true) && !(finer && word != "fp8") {
        out.set(Field::Precision, word, node.line);
    }
    true
}

/// Sets the optimizer by the name that the tool has for it.
pub(crate) fn optimizer(out: &mut ReadFields, node: &Node) -> bool {
    if let Some(name) = node.text() {
        out.set(Field::Optimizer, names::optimizer(&name), node.line);
    }
    true
}

/// Records a file that the setting refers to.
pub(crate) fn reference(out: &mut ReadFields, node: &Node) -> bool {
    if let Some(path) = node.shown() {
        out.references.push((path, node.line));
    }
    true
}

/// Records the name under which a server offers its model.
pub(crate) fn served_name(out: &mut ReadFields, node: &Node) -> bool {
    if let Some(name) = node.text() {
        out.served = Some((name, node.line));
    }
    true
}

/// Sets the number of nodes of a server that runs on several.
pub(crate) fn server_nodes(out: &mut ReadFields, node: &Node) -> bool {
    if let Some(nodes) = node.int().filter(|nodes| *nodes > 1) {
        out.fields.set_implied(Field::Nodes, nodes, node.line);
    }
    true
}

/// Sets the accelerator, if the type of device is not the usual one.
pub(crate) fn device(out: &mut ReadFields, node: &Node) -> bool {
    if let Some(device) = node.text().filter(|device| !matches!(device.as_str(), "auto" | "cuda")) {
        out.set(Field::Accelerator, device, node.line);
    }
    true
}

/// Sets the role of a worker in a disaggregated deployment.
pub(crate) fn worker_role(out: &mut ReadFields, node: &Node) -> bool {
    if let Some(role) = node.text().filter(|role| role == "prefill" || role == "decode") {
        out.set(Field::Role, role, node.line);
    }
    true
}

/// Sets the method of speculative decoding.
pub(crate) fn speculative_method(out: &mut ReadFields, node: &Node) -> bool {
    if let Some(method) = node.text() {
        out.set(Field::SpeculativeMethod, method.to_ascii_lowercase(), node.line);
    }
    true
}

/// Sets the sharding from a ZeRO stage.
pub(crate) fn zero_stage(out: &mut ReadFields, node: &Node) -> bool {
    let word = match node.int() {
        Some(0) => "none",
        Some(1) => "zero1",
        Some(2) => "zero2",
        Some(3) => "zero3",
        _ => {
            out.record_unset_variables(node);
            return true;
        }
    };
    out.set(Field::Sharding, word, node.line)
}

/// Sets the sharding from a strategy of PyTorch FSDP, by name or number.
pub(crate) fn fsdp_strategy(out: &mut ReadFields, node: &Node) -> bool {
    let Some(t) = node.text() else { return true };
    let word = match t.to_ascii_lowercase().replace("shardingstrategy.", "").as_str() {
        "full_shard" | "1" | "full" | "fully_shard" => "zero3",
        "shard_grad_op" | "2" | "grad_op" | "zero2" => "zero2",
        "no_shard" | "3" | "none" | "ddp" => "none",
        "hybrid_shard" | "4" | "hybrid" | "hsdp" | "hybrid_full" => "hsdp",
        "hybrid_shard_zero2" | "_hybrid_shard_zero2" | "5" => "hsdp",
        _ => return false,
    };
    out.set(Field::Sharding, word, node.line)
}

/// The ZeRO stage in the name of a DeepSpeed configuration.
pub(crate) fn zero_in_name(path: &str) -> Option<&'static str> {
    let low = path.rsplit('/').next()?.to_ascii_lowercase().replace(['-', '.'], "_");
    ["zero", "zero_stage", "zero_", "stage", "stage_", "z"].iter().find_map(|p| {
        let mut rest = low.as_str();
        while let Some(i) = rest.find(p) {
            let at_start = i == 0 || rest.get(..i).is_some_and(|h| h.ends_with('_')) || p.len() > 1;
            rest = rest.get(i + p.len()..)?;
            if !at_start {
                continue;
            }
            match rest.chars().next() {
                Some('0') => return Some("none"),
                Some('1') => return Some("zero1"),
                Some('2') => return Some("zero2"),
                Some('3') => return Some("zero3"),
                _ => {}
            }
        }
        None
    })
}

/// Sets the model as stated: a Hub id, or the last component of a path.
pub(crate) fn model(out: &mut ReadFields, node: &Node) -> bool {
    match node.text() {
        // A placeholder does not identify a model.
        Some(t) if names::is_placeholder(&t) => true,
        Some(t) => {
            let (id, path) = names::model_id(&t);
            // A mount point does not identify a model.
            let base = t.trim_end_matches('/').rsplit('/').next().unwrap_or("").to_ascii_lowercase();
            if t.starts_with('/')
                && matches!(
                    base.as_str(),
                    "model" | "models" | "weights" | "checkpoint" | "checkpoints" | "ckpt" | "hf" | "data"
                )
            {
                out.fields.remove(Field::Model);
                return out.set(Field::ModelPath, t, node.line);
            }
            if let Some(p) = path {
                out.fields.set(Field::ModelPath, p, node.line);
            }
            out.set(Field::Model, id, node.line)
        }
        None => match named_in_folder(node) {
            Some(base) => out.set(Field::Model, base, node.line),
            None => {
                out.record_unset_variables(node);
                out.fields.remove(Field::Model);
                true
            }
        },
    }
}

/// The last component of a path whose directory is a variable: `$MODELS/base-7B`.
pub(crate) fn named_in_folder(node: &Node) -> Option<String> {
    let (folder, base) = node.raw()?.trim().trim_end_matches('/').rsplit_once('/')?;
    let (id, path) = names::model_id(&format!("/{base}"));
    let named = super::unknown::is_in(folder) && !super::unknown::is_in(base) && path.is_some_and(|path| path != id);
    (named && !names::is_placeholder(base) && names::is_model(base)).then_some(id)
}

/// Whether a text with words contains a word.
pub(crate) fn lists(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|listed| listed == word)
}

/// Words in the names of settings that are irrelevant to speed, memory and hardware.
const IRRELEVANT_WORDS: &str = "
log logs logging logger save saving load dir directory seed host port wandb tensorboard tokenizer dataset datasets
data eval evaluation lr learning decay warmup beta1 beta2 eps clip clipping init dropout path name token trust
template parser timeout ckpt checkpoint checkpointing interval freq frequency master rdzv rank split iters steps
epochs samples workers metrics uvicorn ssl cors url verbose debug profile profiling profiler nsys report output file
mock loss exit trigger resume user project experiment exp container mount mounts image sampling temp temperature top
penalty rope rotary norm normalization bias swiglu untie served description hub hf id push alpha target embedding
addr address endpoint cache_dir attn attention kill wait entity val validation test grad max_grad_norm custom access
requests_log jinja reasoning aliases system prompt pretrained momentum abort remove columns strategy overwrite do
packing group by length ddp tool choice nvtx stats loading loader reset tiktoken layernorm dataloader truncate dry
min tracking find
";

/// Words that are relevant to memory or speed, and take precedence.
const RELEVANT_WORDS: &str = "
parallel offload offloading batch kv cache memory quantization recompute expert fp8 shard sharding micro tp pp dp ep
cp dtype precision overlap graph speculative draft zero nodes gpus
";

/// Whether a setting is irrelevant to speed, memory and hardware, according to the words of its name.
pub(crate) fn is_irrelevant(key: &str) -> bool {
    let outer =
        key.starts_with("log_") || ["_path", "_dir", "_name", "_to_tensorboard"].iter().any(|e| key.ends_with(e));
    let any = |words: &str| key.split(['_', '.']).any(|word| lists(words, word));
    outer || !any(RELEVANT_WORDS) && any(IRRELEVANT_WORDS)
}
