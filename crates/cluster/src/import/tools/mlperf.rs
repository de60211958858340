//! MLPerf: shell files that only export the settings of a run, and configurations of the serving harness.

use std::collections::BTreeMap;

use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::shell::Text;
use crate::import::value::Node;

/// Whether the variables are those of a training submission.
pub(crate) fn looks_like(vars: &BTreeMap<String, Text>) -> bool {
    let has = |k: &str| vars.contains_key(k);
    let machine = has("DGXNNODES") || has("DGXSYSTEM") || has("DGXNGPU") || has("MLPERF_SUBMISSION_PLATFORM");
    machine
        && (has("TP")
            || has("TENSOR_MODEL_PARALLEL")
            || has("MINIBS")
            || has("MBS")
            || has("MICRO_BATCH_SIZE")
            || has("GBS"))
}

/// Reads the exported variables.
pub(crate) fn exports(vars: &BTreeMap<String, Text>, out: &mut ReadFields) {
    out.fields.set("kind", "training", 0);
    if vars.contains_key("TENSOR_MODEL_PARALLEL") {
        out.fields.set("framework", "nemo", vars.get("TENSOR_MODEL_PARALLEL").map_or(0, Text::line));
    }
    let node = |names: &[&str]| names.iter().find_map(|n| vars.get(*n)).map(|t| Node::str(t.as_str(), t.line()));
    for (key, names) in [
        ("nodes", &["DGXNNODES", "NNODES"][..]),
        ("accelerators_per_node", &["DGXNGPU", "GPUS_PER_NODE"]),
        ("tp", &["TENSOR_MODEL_PARALLEL", "TP"]),
        ("pp", &["PIPELINE_MODEL_PARALLEL", "PP"]),
        ("vpp", &["INTERLEAVED_PIPELINE", "VPP", "VP"]),
        ("cp", &["CONTEXT_PARALLEL", "CP"]),
        ("ep", &["EXPERT_PARALLEL", "EP"]),
        ("micro_batch", &["MICRO_BATCH_SIZE", "MBS"]),
        ("minibatch_per_dp", &["MINIBS"]),
        ("global_batch", &["GBS", "GLOBAL_BATCH_SIZE"]),
        ("seq_len", &["SEQ_LENGTH", "SEQ_LEN", "MAX_SEQLEN", "ENCODER_SEQ_LENGTH"]),
    ] {
        if let Some(n) = node(names).filter(|n| n.int().is_some()) {
            out.int(key, &n);
        }
    }
    for names in [&["WALLTIME"][..], &["WALLTIME_MINUTES"], &["WALLTIME_RUNANDTIME"]] {
        if let Some(n) = node(names).filter(|n| n.int().is_some() && !out.fields.has("slurm.time_minutes")) {
            out.int("slurm.time_minutes", &n);
        }
    }
    if let Some(n) = node(&["SP", "SEQ_PARALLEL", "SEQUENCE_PARALLEL"]) {
        out.flag("sequence_parallel", &n);
    }
    if let Some(n) = node(&["FP8"]).filter(|n| n.switch() == Some(true)) {
        out.set("precision", "fp8", n.line);
    }
    if let Some(n) = node(&["FP4"]).filter(|n| n.switch() == Some(true)) {
        out.set("precision", "fp4", n.line);
    }
    if let Some(n) = node(&["MLPERF_SUBMISSION_PLATFORM"])
        && let Some(a) = n.text().as_deref().and_then(names::accelerator_in)
    {
        out.set("accelerator", a, n.line);
    }
    if let Some((_, t)) = vars.iter().find(|(k, _)| k.starts_with("LORA_")) {
        out.set("adapter", "lora", t.line());
    }
}

/// Derives the global batch size from the batch per replica. Must be called after the number of replicas is known.
pub(crate) fn global_batch(out: &mut ReadFields) {
    let f = &out.fields;
    if let (Some(m), Some(dp)) = (f.int("minibatch_per_dp"), f.int("dp")) {
        let at = f.at("minibatch_per_dp");
        if let Some(g) = m.checked_mul(dp) {
            out.fields.set_implied("global_batch", g, at);
        }
    }
}

/// Reads a configuration of the serving harness, with `vllm_engine_config`.
pub(crate) fn harness(doc: &Node, out: &mut ReadFields) {
    out.fields.set("kind", "serving", 0);
    out.fields.set("framework", "vllm", 0);
    if let Some(e) = doc.get("vllm_engine_config") {
        super::serving::Engine::Vllm.keys(e, out);
    }
    if let Some(n) = doc.get("scenario") {
        out.text("scenario", n);
    }
    if let Some(n) = doc.at("vllm_sampling_config.max_tokens") {
        out.int("benchmark.osl_max", n);
    }
    if let Some(n) = doc.at("harness_config.total_sample_count") {
        out.int("benchmark.num_prompts", n);
    }
    if let Some(n) = doc.at("harness_config.device_count") {
        out.int("accelerators_per_node", n);
    }
    super::serving::Engine::Vllm.finish(out);
}
