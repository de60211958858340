//! Derives values from the stated ones (counts, data parallelism, batches), and detects configurations that cannot run.

use atlas_catalog::accelerator::Peaks;
use atlas_catalog::software::{self, AcceleratorClass, SoftwareKind};
use atlas_core::count::Count;

use super::fields::{Fields, ReadFields};
use super::names;
use crate::import::Field;

/// Completes and validates a training job.
pub(crate) fn training(out: &mut ReadFields) {
    counts(&mut out.fields);
    sharded_world(&mut out.fields);
    replicated_shards(&mut out.fields);
    virtual_stages(&mut out.fields);
    data_parallel(out);
    batches(out);
    out.fields.remove(Field::LayersPerVirtualStage);
}

/// Derives the number of devices from nodes and devices per node, and vice versa.
pub(crate) fn counts(f: &mut Fields) {
    let (nodes, per, all) = (f.int(Field::Nodes), f.int(Field::AcceleratorsPerNode), f.int(Field::NumAccelerators));
    match (nodes, per, all) {
        (Some(n), Some(p), None) => {
            if let Some(all) = n.checked_mul(p) {
                let at = f.at(Field::Nodes);
                f.set_implied(Field::NumAccelerators, all, at);
            }
        }
        (Some(n), None, Some(all)) if n > 0 && all % n == 0 => {
            let at = f.at(Field::NumAccelerators);
            f.set_implied(Field::AcceleratorsPerNode, all / n, at);
        }
        (None, Some(p), Some(all)) if p > 0 && all % p == 0 => {
            let at = f.at(Field::NumAccelerators);
            f.set_implied(Field::Nodes, all / p, at);
        }
        _ => {}
    }
}

/// `torchtitan` states every degree except one. If the degree of sharding is stated, the world size is the product of
/// all.
fn sharded_world(f: &mut Fields) {
    if f.str(Field::Framework) != Some("torchtitan") {
        return;
    }
    let Some(shard) = f.int(Field::DpShard).filter(|n| *n > 0) else { return };
    let degree = |key: Field| f.int(key).filter(|n| *n > 0).unwrap_or(1);
    let dp = shard.saturating_mul(degree(Field::DpReplicate));
    let world = [Field::Tp, Field::Pp, Field::Cp].into_iter().fold(dp, |all, key| all.saturating_mul(degree(key)));
    let at = f.at(Field::DpShard);
    // A sharding degree of 1 indicates a test configuration, not a device count.
    if shard > 1 {
        f.set_implied(Field::NumAccelerators, world, at);
        f.set_implied(Field::Dp, dp, at);
    }
}

/// Sharding within groups of devices, with replicas across the groups, is HSDP.
fn replicated_shards(f: &mut Fields) {
    let copies = f.int(Field::DpReplicate).is_some_and(|n| n > 1) && f.int(Field::DpShard).is_some_and(|n| n != 1);
    if copies && f.str(Field::Sharding) == Some("zero3") {
        let at = f.at(Field::DpReplicate);
        f.set(Field::Sharding, "hsdp", at);
    }
}

fn virtual_stages(f: &mut Fields) {
    let (Some(per), Some(pp), Some(layers)) =
        (f.int(Field::LayersPerVirtualStage), f.int(Field::Pp), f.int(Field::ArchitectureNumLayers))
    else {
        return;
    };
    let Some(stage) = per.checked_mul(pp).filter(|n| *n > 0 && layers % *n == 0) else { return };
    let at = f.at(Field::LayersPerVirtualStage);
    f.set_implied(Field::Vpp, layers / stage, at);
}

/// Whether the framework uses only data parallelism unless other sizes are stated.
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
    f.str(Field::Framework).is_some_and(is_data_parallel)
}

fn data_parallel(out: &mut ReadFields) {
    let f = &out.fields;
    let Some(all) = f.int(Field::NumAccelerators).filter(|n| *n > 0) else { return };
    let framework = f.str(Field::Framework).unwrap_or("");
    let stated = [Field::Tp, Field::Pp, Field::Cp].into_iter().any(|k| f.has(k));
    // The recipe or base file of these frameworks contains the sizes that are not stated.
    let hidden = framework.starts_with("primus") || framework == "maxtext";
    let whole = stated || plain_data_parallel(f);
    if !whole || hidden {
        return;
    }
    if !stated && framework == "accelerate" && !f.has(Field::Sharding) {
        return;
    }
    let mut model = 1_i64;
    for key in [Field::Tp, Field::Pp, Field::Cp, Field::UlyssesSp] {
        if f.is_unknown(key) {
            return;
        }
        match (f.has(key), f.int(key)) {
            (true, Some(n)) if n > 0 => model = model.saturating_mul(n),
            (false, _) => {}
            _ => return,
        }
    }
    // Recipes and base configurations of Bridge contain the sizes that the script does not state.
    if framework == "megatron-bridge" && !(f.has(Field::Tp) && f.has(Field::Pp)) {
        return;
    }
    let at = [Field::Pp, Field::Tp, Field::Cp]
        .into_iter()
        .find(|k| f.has(*k))
        .map_or(f.at(Field::NumAccelerators), |k| f.at(k));
    let shape = [Field::Tp, Field::Pp, Field::Cp]
        .into_iter()
        .filter(|k| f.has(*k))
        .map(Field::name)
        .collect::<Vec<_>>()
        .join("*");
    if f.has(Field::Dp) {
        return;
    }
    if all % model != 0 {
        let nodes = f.int(Field::AcceleratorsPerNode).filter(|p| *p > 0).map(|p| model.saturating_add(p - 1) / p);
        let need = nodes.map_or(String::new(), |n| format!("; at least {n} nodes are needed"));
        out.conflict(format!("{shape} = {model} does not fit the world size of {all} accelerators{need}"), at);
        return;
    }
    let dp = all / model;
    if let Some(ep) = f.int(Field::Ep).filter(|n| *n > 1) {
        let pp = f.int(Field::Pp).unwrap_or(1).max(1);
        let megatron = framework.contains("megatron") || framework == "nemo";
        let tp = f.int(Field::Tp).filter(|n| *n > 0).unwrap_or(1);
        let etp = f.int(Field::Etp).filter(|n| *n > 0).unwrap_or_else(|| expert_tensor_ranks(framework, tp, ep));
        let need = ep.saturating_mul(pp).saturating_mul(etp);
        if megatron && all % need != 0 {
            let at = f.at(Field::Ep);
            let product = if etp > 1 { "ep*etp*pp" } else { "ep*pp" };
            out.conflict(format!("{all} accelerators are not a multiple of {product} = {need}"), at);
            return;
        }
    }
    out.fields.set_implied(Field::Dp, dp, at);
}

/// Tensor-parallel ranks within an expert if the files state none: the default of the software.
fn expert_tensor_ranks(framework: &str, tp: i64, ep: i64) -> i64 {
    let class = AcceleratorClass { vendor: "", generation: "", memory_gb: 0.0, formats: Peaks::default() };
    let found = software::resolve(framework, SoftwareKind::Training, &class).ok().and_then(|found| found.training);
    let count = |number: i64| u32::try_from(number).map_or(Count::MAX, Count::new);
    let ranks = found.unwrap_or_default().tuned.expert_split.ranks(count(tp), count(ep));
    i64::from(ranks.get())
}

fn batches(out: &mut ReadFields) {
    super::tools::mlperf::global_batch(out);
    let f = &out.fields;
    let pos = |k: Field| f.int(k).filter(|n| *n > 0);
    let (micro, global, accum, dp) =
        (pos(Field::MicroBatch), pos(Field::GlobalBatch), pos(Field::GradAccum), pos(Field::Dp));
    let ramp = f.has(Field::RampupBatch) || f.has(Field::BatchSchedule);
    match (micro, global, accum, dp) {
        (Some(m), None, Some(a), Some(d)) => {
            if let Some(g) = m.checked_mul(a).and_then(|n| n.checked_mul(d)) {
                let at = f.at(Field::MicroBatch);
                out.fields.set_implied(Field::GlobalBatch, g, at);
            }
        }
        (Some(m), None, None, Some(d)) if f.str(Field::Framework) == Some("pytorch-fsdp") => {
            let at = f.at(Field::MicroBatch);
            out.fields.set_implied(Field::GlobalBatch, m.saturating_mul(d), at);
        }
        (Some(m), Some(g), None, Some(d)) => {
            let per_pass = m.saturating_mul(d);
            if g % per_pass != 0 {
                if !ramp {
                    let at = f.at(Field::GlobalBatch);
                    out.conflict(format!("global batch {g} is not a multiple of micro batch {m} times dp {d}"), at);
                }
            } else if !f.has(Field::MinibatchPerDp)
                && (!f.has(Field::Framework)
                    || (plain_data_parallel(f) && f.str(Field::Framework) != Some("llm-foundry")))
            {
                let at = f.at(Field::GlobalBatch);
                out.fields.set_implied(Field::GradAccum, g / per_pass, at);
            }
        }
        (Some(m), Some(g), Some(a), None)
            if (f.has(Field::NumAccelerators) && plain_data_parallel(f)
                || f.str(Field::Framework) == Some("deepspeed"))
                && g % m.saturating_mul(a) == 0 =>
        {
            let at = f.at(Field::GlobalBatch);
            out.fields.set_implied(Field::Dp, g / m.saturating_mul(a), at);
        }
        _ => {}
    }
}

/// Completes and validates a server.
pub(crate) fn serving(out: &mut ReadFields) {
    let f = &mut out.fields;
    if let Some(word) = f.str(Field::Model).and_then(names::weights) {
        let at = f.at(Field::Model);
        f.set_implied(Field::WeightsPrecision, word, at);
    }
    // A server on several nodes, each with part of the data-parallel ranks.
    if let (Some(all), Some(local)) = (f.int(Field::Dp), f.int(Field::DpLocal))
        && local > 0
        && all > local
        && all % local == 0
        && !f.has(Field::Manifest)
        && !f.is_unknown(Field::Nodes)
    {
        let at = f.at(Field::DpLocal);
        f.set_implied(Field::Nodes, all / local, at);
    }
    let replicas = f.int(Field::Replicas);
    if let (Some(n), Some(r)) = (f.int(Field::AcceleratorsPerReplica), replicas)
        && let Some(all) = n.checked_mul(r).filter(|n| *n > 0)
    {
        let at = f.at(Field::AcceleratorsPerReplica);
        f.set_implied(Field::NumAccelerators, all, at);
    }
    if f.has(Field::SlurmNodes) || f.has(Field::Nodes) {
        // The number of accelerators that the scheduler allocates takes precedence over a count that is only derived
        // from the parallel sizes.
        let granted = f.int(Field::Nodes).zip(f.int(Field::AcceleratorsPerNode)).map(|(n, p)| n.saturating_mul(p));
        let implied = f.entry(Field::NumAccelerators).is_some_and(|e| e.implied);
        if f.has(Field::SlurmNodes)
            && implied
            && granted.is_some_and(|g| f.int(Field::NumAccelerators).is_some_and(|n| n > g))
        {
            f.remove(Field::NumAccelerators);
        }
        counts(f);
    }
    let (tp, pp, all) = (f.int(Field::Tp), f.int(Field::Pp), f.int(Field::NumAccelerators));
    if let (Some("sglang"), Some(tp), Some(ep)) = (f.str(Field::Framework), tp, f.int(Field::Ep))
        && tp > 0
        && ep > 0
        && tp % ep != 0
    {
        let at = f.at(Field::Ep);
        out.conflict(format!("ep_size = {ep} does not divide tp_size = {tp}; SGLang stops"), at);
    }
    if let (Some(tp), Some(all)) = (tp, all) {
        let need = tp.saturating_mul(pp.unwrap_or(1));
        if all > 0
            && need > all
            && out.roles.is_empty()
            && !out.fields.str(Field::Accelerator).is_some_and(|a| a.starts_with("trn") || a.starts_with("inf"))
        {
            let at = out.fields.at(Field::Tp);
            out.conflict(format!("tp*pp = {need} exceeds the {all} accelerators of the job"), at);
        }
    }
}
