//! Derives values from the stated ones (counts, data parallelism, batches), and detects configurations that cannot run.

use super::fields::{Fields, ReadFields};
use super::names;

/// Completes and validates a training job.
pub(crate) fn training(out: &mut ReadFields) {
    counts(&mut out.fields);
    sharded_world(&mut out.fields);
    replicated_shards(&mut out.fields);
    virtual_stages(&mut out.fields);
    data_parallel(out);
    batches(out);
    out.fields.remove("layers_per_virtual_stage");
}

/// Derives the number of devices from nodes and devices per node, and vice versa.
pub(crate) fn counts(f: &mut Fields) {
    let (nodes, per, all) = (f.int("nodes"), f.int("accelerators_per_node"), f.int("num_accelerators"));
    match (nodes, per, all) {
        (Some(n), Some(p), None) => {
            if let Some(all) = n.checked_mul(p) {
                let at = f.at("nodes");
                f.set_implied("num_accelerators", all, at);
            }
        }
        (Some(n), None, Some(all)) if n > 0 && all % n == 0 => {
            let at = f.at("num_accelerators");
            f.set_implied("accelerators_per_node", all / n, at);
        }
        (None, Some(p), Some(all)) if p > 0 && all % p == 0 => {
            let at = f.at("num_accelerators");
            f.set_implied("nodes", all / p, at);
        }
        _ => {}
    }
}

/// `torchtitan` states every degree except one. If the degree of sharding is stated, the world size is the product of
/// all.
fn sharded_world(f: &mut Fields) {
    if f.str("framework") != Some("torchtitan") {
        return;
    }
    let Some(shard) = f.int("dp_shard").filter(|n| *n > 0) else { return };
    let degree = |key: &str| f.int(key).filter(|n| *n > 0).unwrap_or(1);
    let dp = shard.saturating_mul(degree("dp_replicate"));
    let world = ["tp", "pp", "cp"].iter().fold(dp, |all, key| all.saturating_mul(degree(key)));
    let at = f.at("dp_shard");
    // A sharding degree of 1 indicates a test configuration, not a device count.
    if shard > 1 {
        f.set_implied("num_accelerators", world, at);
        f.set_implied("dp", dp, at);
    }
}

/// Sharding within groups of devices, with replicas across the groups, is HSDP.
fn replicated_shards(f: &mut Fields) {
    let copies = f.int("dp_replicate").is_some_and(|n| n > 1) && f.int("dp_shard").is_some_and(|n| n != 1);
    if copies && f.str("sharding") == Some("zero3") {
        let at = f.at("dp_replicate");
        f.set("sharding", "hsdp", at);
    }
}

fn virtual_stages(f: &mut Fields) {
    let (Some(per), Some(pp), Some(layers)) =
        (f.int("layers_per_virtual_stage"), f.int("pp"), f.int("architecture.num_layers"))
    else {
        return;
    };
    let Some(stage) = per.checked_mul(pp).filter(|n| *n > 0 && layers % *n == 0) else { return };
    let at = f.at("layers_per_virtual_stage");
    f.set_implied("vpp", layers / stage, at);
}

/// Whether the framework uses only data parallelism unless told otherwise.
pub(crate) fn is_data_parallel(framework: &str) -> bool {
    matches!(
        framework,
        "accelerate"
            | "pytorch-fsdp"
            | "litgpt"
            | "llm-foundry"
            | "optimum-habana"
            | "trl"
            | "transformers"
            | "deepspeed"
            | "llama-factory"
            | "openrlhf"
            | "torchtune"
            | "ms-swift"
    )
}

fn plain_data_parallel(f: &Fields) -> bool {
    f.str("framework").is_some_and(is_data_parallel)
}

fn data_parallel(out: &mut ReadFields) {
    let f = &out.fields;
    let Some(all) = f.int("num_accelerators").filter(|n| *n > 0) else { return };
    let framework = f.str("framework").unwrap_or("");
    let stated = ["tp", "pp", "cp"].iter().any(|k| f.has(k));
    // The recipe or base file of these frameworks contains the sizes that are not stated.
    let hidden = framework.starts_with("primus") || framework == "maxtext";
    let whole = stated || plain_data_parallel(f);
    if !whole || hidden {
        return;
    }
    if !stated && framework == "accelerate" && !f.has("sharding") {
        return;
    }
    let mut model = 1_i64;
    for key in ["tp", "pp", "cp", "ulysses_sp"] {
        if f.is_open(key) {
            return;
        }
        match (f.has(key), f.int(key)) {
            (true, Some(n)) if n > 0 => model = model.saturating_mul(n),
            (false, _) => {}
            _ => return,
        }
    }
    // Recipes and base configurations of Bridge contain the sizes that the script does not state.
    if framework == "megatron-bridge" && !(f.has("tp") && f.has("pp")) {
        return;
    }
    let at = ["pp", "tp", "cp"].iter().find(|k| f.has(k)).map_or(f.at("num_accelerators"), |k| f.at(k));
    let shape = ["tp", "pp", "cp"].iter().filter(|k| f.has(k)).copied().collect::<Vec<_>>().join("*");
    if f.has("dp") {
        return;
    }
    if all % model != 0 {
        let nodes = f.int("accelerators_per_node").filter(|p| *p > 0).map(|p| model.saturating_add(p - 1) / p);
        let need = nodes.map_or(String::new(), |n| format!("; at least {n} nodes are needed"));
        out.conflict(format!("{shape} = {model} does not fit the world size of {all} accelerators{need}"), at);
        return;
    }
    let dp = all / model;
    if let Some(ep) = f.int("ep").filter(|n| *n > 1) {
        let pp = f.int("pp").unwrap_or(1).max(1);
        let megatron = framework.contains("megatron") || framework == "nemo";
        let etp = f.int("etp").filter(|n| *n > 0).unwrap_or(1);
        let need = ep.saturating_mul(pp).saturating_mul(etp);
        if megatron && all % need != 0 {
            let at = f.at("ep");
            out.conflict(format!("{all} accelerators are not a multiple of ep*pp = {need}"), at);
            return;
        }
    }
    out.fields.set_implied("dp", dp, at);
}

fn batches(out: &mut ReadFields) {
    super::tools::mlperf::global_batch(out);
    let f = &out.fields;
    let pos = |k: &str| f.int(k).filter(|n| *n > 0);
    let (micro, global, accum, dp) = (pos("micro_batch"), pos("global_batch"), pos("grad_accum"), pos("dp"));
    let ramp = f.has("rampup_batch") || f.has("batch_schedule");
    match (micro, global, accum, dp) {
        (Some(m), None, Some(a), Some(d)) => {
            if let Some(g) = m.checked_mul(a).and_then(|n| n.checked_mul(d)) {
                let at = f.at("micro_batch");
                out.fields.set_implied("global_batch", g, at);
            }
        }
        (Some(m), None, None, Some(d)) if f.str("framework") == Some("pytorch-fsdp") => {
            let at = f.at("micro_batch");
            out.fields.set_implied("global_batch", m.saturating_mul(d), at);
        }
        (Some(m), Some(g), None, Some(d)) => {
            let per_pass = m.saturating_mul(d);
            if g % per_pass != 0 {
                if !ramp {
                    let at = f.at("global_batch");
                    out.conflict(format!("global batch {g} is not a multiple of micro batch {m} times dp {d}"), at);
                }
            } else if !f.has("minibatch_per_dp")
                && (!f.has("framework") || (plain_data_parallel(f) && f.str("framework") != Some("llm-foundry")))
            {
                let at = f.at("global_batch");
                out.fields.set_implied("grad_accum", g / per_pass, at);
            }
        }
        (Some(m), Some(g), Some(a), None)
            if (f.has("num_accelerators") && plain_data_parallel(f) || f.str("framework") == Some("deepspeed"))
                && g % m.saturating_mul(a) == 0 =>
        {
            let at = f.at("global_batch");
            out.fields.set_implied("dp", g / m.saturating_mul(a), at);
        }
        _ => {}
    }
}

/// Completes and validates a server.
pub(crate) fn serving(out: &mut ReadFields) {
    let f = &mut out.fields;
    if let Some(word) = f.str("model").and_then(names::weights) {
        let at = f.at("model");
        f.set_implied("weights_precision", word, at);
    }
    // A server on several nodes, each with part of the data-parallel ranks.
    if let (Some(all), Some(local)) = (f.int("dp"), f.int("dp_local"))
        && local > 0
        && all > local
        && all % local == 0
        && !f.has("manifest")
        && !f.is_open("nodes")
    {
        let at = f.at("dp_local");
        f.set_implied("nodes", all / local, at);
    }
    let replicas = f.int("replicas");
    if let (Some(n), Some(r)) = (f.int("accelerators_per_replica"), replicas)
        && let Some(all) = n.checked_mul(r).filter(|n| *n > 0)
    {
        let at = f.at("accelerators_per_replica");
        f.set_implied("num_accelerators", all, at);
    }
    if f.has("slurm.nodes") || f.has("nodes") {
        // The number of accelerators that the scheduler allocates takes precedence over a count that is only derived
        // from the parallel sizes.
        let granted = f.int("nodes").zip(f.int("accelerators_per_node")).map(|(n, p)| n.saturating_mul(p));
        let implied = f.entry("num_accelerators").is_some_and(|e| e.implied);
        if f.has("slurm.nodes") && implied && granted.is_some_and(|g| f.int("num_accelerators").is_some_and(|n| n > g))
        {
            f.remove("num_accelerators");
        }
        counts(f);
    }
    let (tp, pp, all) = (f.int("tp"), f.int("pp"), f.int("num_accelerators"));
    if let (Some(tp), Some(all)) = (tp, all) {
        let need = tp.saturating_mul(pp.unwrap_or(1));
        if all > 0
            && need > all
            && out.roles.is_empty()
            && !out.fields.str("accelerator").is_some_and(|a| a.starts_with("trn") || a.starts_with("inf"))
        {
            let at = out.fields.at("tp");
            out.conflict(format!("tp*pp = {need} exceeds the {all} accelerators of the job"), at);
        }
    }
}
