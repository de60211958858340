//! torchtune: `tune run RECIPE --config NAME key=value …`.

use crate::import::argv::Args;
use crate::import::fields::Out;
use crate::import::names;

/// Reads the words after `tune run`; options of torchrun stand in front of the recipe.
pub(crate) fn command(args: &Args, out: &mut Out) {
    out.fields.set("kind", "training", 0);
    out.fields.set("framework", "torchtune", 0);
    for f in &args.flags {
        match names::snake(&f.name).as_str() {
            "nnodes" | "nproc_per_node" => {
                let key = if f.name.contains("nnodes") { "nodes" } else { "accelerators_per_node" };
                out.int(key, &f.node);
            }
            "config" => {
                if let Some(t) = f.node.shown() {
                    out.fields.set("config_file", t.as_str(), f.node.line);
                    if t.ends_with(".yaml") {
                        out.references.push((t, f.node.line));
                    }
                }
            }
            _ => {}
        }
    }
    for (path, node) in &args.overrides {
        let known = match path.as_str() {
            "batch_size" => out.int("micro_batch", node),
            "gradient_accumulation_steps" => out.int("grad_accum", node),
            "tokenizer.max_seq_len" => out.int("seq_len", node),
            "tensor_parallel_dim" => out.int("tp", node),
            "context_parallel_dim" => out.int("cp", node),
            "data_parallel_replicate_dim" => out.int("dp_replicate", node),
            "data_parallel_shard_dim" => out.int("dp_shard", node),
            "dtype" => super::precision(out, node),
            "enable_activation_checkpointing" => super::hf::flag("gradient_checkpointing", node, out),
            "enable_activation_offloading" => out.flag("offload_activations", node),
            "fsdp_cpu_offload" => {
                if node.on() == Some(true) {
                    out.set("offload_params", "cpu", node.line);
                }
                true
            }
            _ => super::is_dull(&names::snake(path)),
        };
        if !known {
            out.strange.push((path.clone(), node.line));
        }
    }
}
