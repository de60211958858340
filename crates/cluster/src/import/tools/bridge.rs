//! Megatron-Bridge: recipes with overrides, and its performance scripts.

use crate::import::argv::Args;
use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::names::snake;
use crate::import::place::Place;
use crate::import::value::Node;
use crate::import::{Field, Kind};

/// Reads the commands `run_recipe.py`, `run_script.py`, `setup_experiment.py` and similar ones.
pub(crate) fn command(script: &str, args: &Args, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "megatron-bridge", Place::NONE);
    if script == "setup_experiment.py" {
        out.fields.set(Field::Launcher, "nemo-run", Place::NONE);
    }
    // A script with a single recipe has its name: `pretrain_qwen3_30b_a3b.py`.
    let stem = script.trim_end_matches(".py");
    if let Some(name) = stem.strip_prefix("pretrain_").or_else(|| stem.strip_prefix("finetune_"))
        && name.split('_').any(names::is_size)
    {
        recipe(name, Place::NONE, out);
    }
    for f in &args.flags {
        if !flag(&snake(&f.name), &f.node, out) {
            out.unrecognized.push((f.name.clone(), f.node.line));
        }
    }
    for (path, node) in &args.overrides {
        let path = path.trim_start_matches(['+', '~']);
        let key = path.rsplit('.').next().unwrap_or(path);
        if !setting(&snake(key), node, out) {
            out.unrecognized.push((path.to_owned(), node.line));
        }
    }
}

/// Reads one setting of a recipe by the last component of its path. Returns false if it is not recognized.
pub(crate) fn setting(key: &str, node: &Node, out: &mut ReadFields) -> bool {
    match key {
        "mixed_precision" => mixed(node, out),
        "sequence_length" => out.int(Field::SeqLen, node),
        key => super::megatron::flag(key, node, out),
    }
}

fn flag(key: &str, node: &Node, out: &mut ReadFields) -> bool {
    match key {
        "recipe" => {
            if let Some(t) = node.text() {
                recipe(&t, node.line, out);
            }
            true
        }
        "model_recipe_name" => super::model(out, node),
        "model" | "hf_path" | "hf_model_path" => super::model(out, node),
        "sl" => out.int(Field::SeqLen, node),
        "rl" | "recompute_num_layers" => {
            if node.int().is_some_and(|n| n > 0) {
                out.fields.set_implied(Field::Recompute, "full", node.line);
            }
            super::megatron::flag("recompute_num_layers", node, out)
        }
        "ol" | "activation_offload_layers" => {
            if node.int().is_some_and(|n| n > 0) {
                out.set(Field::OffloadActivations, true, node.line);
            }
            true
        }
        "recompute_modules" => {
            out.fields.set_implied(Field::Recompute, "selective", node.line);
            super::megatron::flag("recompute_modules", node, out)
        }
        "moe_a2a_overlap" => super::megatron::flag("overlap_moe_expert_parallel_comm", node, out),
        "m" | "s" | "r" | "model_name" | "model_size" | "model_family_name" | "config_variant" | "domain" | "task" => {
            true
        }
        "gpu" | "g" => {
            if let Some(t) = node.text() {
                let label = names::accelerator_in(&t).map_or_else(|| t.to_uppercase(), str::to_owned);
                out.set(Field::Accelerator, label, node.line);
            } else {
                out.record_unset_variables(node);
            }
            true
        }
        "num_gpus" | "ng" => out.int(Field::NumAccelerators, node),
        "gpus_per_node" | "gn" => out.int(Field::AcceleratorsPerNode, node),
        "num_nodes" => out.int(Field::Nodes, node),
        "compute_dtype" | "c" => {
            if let Some(t) = node.text() {
                compute(&t, node.line, out);
            }
            true
        }
        "fp8_recipe" | "fr" => super::megatron::flag("fp8_recipe", node, out),
        "tp" => out.int(Field::Tp, node),
        "pp" => out.int(Field::Pp, node),
        "cp" => out.int(Field::Cp, node),
        "vp" | "vpp" => out.int(Field::Vpp, node),
        "ep" => out.int(Field::Ep, node),
        "et" | "etp" => out.int(Field::Etp, node),
        "mb" | "mbs" => out.int(Field::MicroBatch, node),
        "gb" | "gbs" => out.int(Field::GlobalBatch, node),
        "time_limit" | "t" => out.text(Field::SlurmTime, node),
        "partition" | "p" => out.text(Field::SlurmPartition, node),
        "account" | "a" => out.text(Field::SlurmAccount, node),
        "peft_scheme" | "peft" => out.text(Field::Adapter, node),
        "dataset"
        | "step_func"
        | "offline"
        | "packager"
        | "max_steps"
        | "additional_slurm_params"
        | "enable_pct_binding"
        | "enable_vboost"
        | "custom_mounts" => true,
        _ => super::megatron::flag(key, node, out),
    }
}

/// Reads the name of a mixed-precision recipe: `bf16_mixed`, `bf16_with_fp8_current_scaling_mixed`,
/// `bf16_with_mxfp8_mixed`.
fn mixed(node: &Node, out: &mut ReadFields) -> bool {
    let Some(text) = node.text() else { return out.record_unset_variables(node) };
    let found = [("mxfp8", "mxfp8"), ("nvfp4", "fp4"), ("fp8", "fp8"), ("bf16", "bf16"), ("fp16", "fp16")]
        .into_iter()
        .find(|(word, _)| text.contains(word));
    if text.contains("current_scaling") {
        out.set(Field::Fp8Recipe, "current_scaling", node.line);
    }
    let [start, end] = bf16_ends(&text.replace('-', "_"));
    if start + end > 0 {
        out.fields.set_implied(Field::Bf16Ends, true, node.line);
        out.fields.set_implied(Field::Bf16LayersAtStart, start, node.line);
        out.fields.set_implied(Field::Bf16LayersAtEnd, end, node.line);
    }
    found.is_some_and(|(_, precision)| out.set(Field::Precision, precision, node.line))
}

/// Layers that a mixed-precision recipe keeps in 16 bit at the start and at the end of the model (Megatron-Bridge 0.6,
/// `training/mixed_precision.py`).
fn bf16_ends(recipe: &str) -> [u64; 2] {
    match recipe {
        "nemotron_3_super_bf16_with_nvfp4_mixed" => [0, 14],
        "nemotron_h_bf16_with_fp8_current_scaling_mixed" | "nanov2_bf16_with_fp8_current_scaling_mixed" => [2, 2],
        _ if recipe.contains("current_scaling") => [1, 1],
        _ => [0, 0],
    }
}

/// Reads a compute precision such as `bf16`, `fp8_cs`, `fp8_mx` or `nvfp4`.
fn compute(t: &str, at: Place, out: &mut ReadFields) {
    let low = t.to_ascii_lowercase();
    match low.split_once('_') {
        Some(("fp8", recipe)) => {
            out.set(Field::Precision, "fp8", at);
            super::megatron::flag("fp8_recipe", &Node::str(recipe, at), out);
        }
        _ => {
            if let Some(p) = names::precision(&low) {
                out.set(Field::Precision, p, at);
            }
        }
    }
}

/// Derives model and precision from the name of a recipe.
pub(crate) fn recipe(name: &str, at: Place, out: &mut ReadFields) {
    let stem = name.trim_end_matches("_config");
    let cut = ["_pretrain", "_finetune", "_sft", "_peft", "_lora"].iter().find_map(|c| stem.find(c).map(|i| (i, *c)));
    let (model, rest) = match cut {
        Some((i, _)) => (stem.get(..i).unwrap_or(stem), stem.get(i..).unwrap_or("")),
        None => (stem, ""),
    };
    out.fields.set_implied(Field::Model, model, at);
    let low = format!("{rest}_");
    let found = [("mxfp8", "mxfp8"), ("nvfp4", "fp4"), ("fp8", "fp8"), ("bf16", "bf16"), ("muon", "bf16")]
        .iter()
        .find(|(w, _)| low.contains(&format!("_{w}_")));
    if let Some((_, p)) = found {
        out.set(Field::Precision, *p, at);
    }
    if low.contains("current_scaling") {
        out.set(Field::Fp8Recipe, "current_scaling", at);
    }
    if low.contains("_lora") || low.contains("_peft") {
        out.set(Field::Adapter, "lora", at);
    }
}
