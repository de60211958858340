//! NeuronX Distributed: flags of its training scripts, and configurations of NxD Training.

use crate::import::argv::Args;
use crate::import::fields::ReadFields;
use crate::import::names::snake;
use crate::import::place::Place;
use crate::import::value::Node;
use crate::import::{Field, Kind};

/// Reads a configuration of NxD Training.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    super::nemo::document(doc, out);
    out.fields.set(Field::Framework, "neuronx-distributed-training", Place::NONE);
    out.fields.remove(Field::Launcher);
    for path in ["distributed_strategy", "data"] {
        for (k, v) in doc.at(path).map(Node::map).unwrap_or(&[]) {
            if k == "zero1" {
                if v.switch() == Some(true) {
                    out.set(Field::Sharding, "zero1", v.line);
                }
            } else {
                super::megatron::flag(&snake(k), v, out);
            }
        }
    }
    if let Some(n) = doc.first(&["precision.type", "precision"]) {
        super::precision(out, n);
    }
    // Names of checkpoints contain the model before the step.
    if let Some(n) = doc.at("exp_manager.checkpoint_callback_params.filename")
        && let Some(t) = n.text()
    {
        let head = t.split("--").next().unwrap_or(&t).to_owned();
        if head.split(['_', '-']).any(crate::import::names::is_size) {
            out.fields.set_implied(Field::Model, head, n.line);
        }
    }
    if let Some(n) = doc.get("name")
        && let Some(t) = n.text().filter(|t| t.split(['_', '-']).any(crate::import::names::is_size))
    {
        out.fields.set_implied(Field::Model, t, n.line);
    }
    if let Some(n) = doc.at("trainer.lnc").filter(|n| n.int() == Some(2)) {
        // Logical cores of two physical cores exist since the second generation.
        out.fields.set_implied(Field::Accelerator, "trn2", n.line);
    }
}

/// Reads `run_llama_nxd.py` and similar commands.
pub(crate) fn command(args: &Args, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    // Scripts with arguments of the Hugging Face Trainer are those of Optimum.
    let optimum = args.has(&["per_device_train_batch_size"]);
    out.fields.set(Field::Framework, if optimum { "optimum-neuron" } else { "neuronx-distributed" }, Place::NONE);
    let mut batch: Option<Node> = None;
    let mut passes: Option<Node> = None;
    for f in &args.flags {
        let (key, n) = (snake(&f.name), &f.node);
        let known = match key.as_str() {
            "train_batch_size" | "batch_size" => {
                batch = Some(n.clone());
                true
            }
            "num_microbatches" => {
                passes = Some(n.clone());
                true
            }
            "micro_batch_size" => out.int(Field::MicroBatch, n),
            "grad_accum_usteps" | "gradient_accumulation_steps" => out.int(Field::GradAccum, n),
            "use_zero1_optimizer" | "use_zero_1" | "use_zero1" | "zero_1" => out.set_if_on(Field::Sharding, "zero1", n),
            "use_selective_checkpoint" | "selective_checkpoint_enabled" => {
                out.set_if_on(Field::Recompute, "selective", n)
            }
            "beta1" | "beta2" => {
                out.fields.set_implied(Field::Optimizer, "adam", n.line);
                true
            }
            "use_mix_precision" => out.set_if_on(Field::Precision, "mixed", n),
            "sequence_parallel_enabled" => out.flag(Field::SequenceParallel, n),
            // Without a slash, this is the directory of the model's configuration instead of its name.
            "model_path" if !n.text().is_some_and(|t| t.contains('/')) => true,
            "kv_replicator"
            | "qkv_linear"
            | "use_flash_attention"
            | "use_meta_device_init"
            | "fuse_qkv"
            | "training_config" => true,
            _ => super::hf::flag(&key, n, out) || super::megatron::flag(&key, n, out),
        };
        if !known {
            out.unrecognized.push((f.name.clone(), f.node.line));
        }
    }
    match (batch, passes) {
        (Some(b), Some(p)) => {
            // The batch of a replica is split into passes. If both expressions are equal, a pass has one sequence.
            let same = b.raw().is_some() && b.raw() == p.raw();
            match (b.int(), p.int()) {
                (Some(x), Some(y)) if y > 0 && x % y == 0 => {
                    out.fields.set_implied(Field::MicroBatch, x / y, p.line);
                }
                _ if same => out.fields.set_implied(Field::MicroBatch, 1, p.line),
                _ => {}
            }
        }
        (Some(b), None) if !out.fields.has(Field::MicroBatch) => {
            out.int(Field::MicroBatch, &b);
        }
        _ => {}
    }
}
