//! MLPerf: shell files that only export the settings of a run, and configurations of the serving harness.

use std::collections::BTreeMap;

use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::place::Place;
use crate::import::shell::Text;
use crate::import::value::Node;
use crate::import::{Field, Kind};

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
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    if vars.contains_key("TENSOR_MODEL_PARALLEL") {
        out.fields.set(Field::Framework, "nemo", vars.get("TENSOR_MODEL_PARALLEL").map_or(Place::NONE, Text::line));
    }
    let node = |names: &[&str]| names.iter().find_map(|n| vars.get(*n)).map(|t| Node::str(t.as_str(), t.line()));
    for (key, names) in [
        (Field::Nodes, &["DGXNNODES", "NNODES"][..]),
        (Field::AcceleratorsPerNode, &["DGXNGPU", "GPUS_PER_NODE"]),
        (Field::Tp, &["TENSOR_MODEL_PARALLEL", "TP"]),
        (Field::Pp, &["PIPELINE_MODEL_PARALLEL", "PP"]),
        (Field::Vpp, &["INTERLEAVED_PIPELINE", "VPP", "VP"]),
        (Field::Cp, &["CONTEXT_PARALLEL", "CP"]),
        (Field::Ep, &["EXPERT_PARALLEL", "EP"]),
        (Field::MicroBatch, &["MICRO_BATCH_SIZE", "MBS"]),
        (Field::MinibatchPerDp, &["MINIBS"]),
        (Field::GlobalBatch, &["GBS", "GLOBAL_BATCH_SIZE"]),
        (Field::SeqLen, &["SEQ_LENGTH", "SEQ_LEN", "MAX_SEQLEN", "ENCODER_SEQ_LENGTH"]),
    ] {
        if let Some(n) = node(names).filter(|n| n.int().is_some()) {
            out.int(key, &n);
        }
    }
    for names in [&["WALLTIME"][..], &["WALLTIME_MINUTES"], &["WALLTIME_RUNANDTIME"]] {
        if let Some(n) = node(names).filter(|n| n.int().is_some() && !out.fields.has(Field::SlurmTimeMinutes)) {
            out.int(Field::SlurmTimeMinutes, &n);
        }
    }
    if let Some(n) = node(&["SP", "SEQ_PARALLEL", "SEQUENCE_PARALLEL"]) {
        out.flag(Field::SequenceParallel, &n);
    }
    if let Some(n) = node(&["FP8"]).filter(|n| n.switch() == Some(true)) {
        out.set(Field::Precision, "fp8", n.line);
    }
    if let Some(n) = node(&["FP4"]).filter(|n| n.switch() == Some(true)) {
        out.set(Field::Precision, "fp4", n.line);
    }
    if let Some(n) = node(&["MLPERF_SUBMISSION_PLATFORM"])
        && let Some(a) = n.text().as_deref().and_then(names::accelerator_in)
    {
        out.set(Field::Accelerator, a, n.line);
    }
    if let Some((_, t)) = vars.iter().find(|(k, _)| k.starts_with("LORA_")) {
        out.set(Field::Adapter, "lora", t.line());
    }
}

/// Derives the global batch size from the batch per replica. Must be called after the number of replicas is known.
pub(crate) fn global_batch(out: &mut ReadFields) {
    let f = &out.fields;
    if let (Some(m), Some(dp)) = (f.int(Field::MinibatchPerDp), f.int(Field::Dp)) {
        let at = f.at(Field::MinibatchPerDp);
        if let Some(g) = m.checked_mul(dp) {
            out.fields.set_implied(Field::GlobalBatch, g, at);
        }
    }
}

/// Reads a configuration of the serving harness, with `vllm_engine_config`.
pub(crate) fn harness(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Serving, Place::NONE);
    out.fields.set(Field::Framework, "vllm", Place::NONE);
    if let Some(e) = doc.get("vllm_engine_config") {
        super::serving::Engine::Vllm.keys(e, out);
    }
    if let Some(n) = doc.get("scenario") {
        out.text(Field::Scenario, n);
    }
    out.int_at(Field::BenchmarkOslMax, doc, &["vllm_sampling_config.max_tokens"]);
    out.int_at(Field::BenchmarkNumPrompts, doc, &["harness_config.total_sample_count"]);
    out.int_at(Field::AcceleratorsPerNode, doc, &["harness_config.device_count"]);
    super::serving::Engine::Vllm.finish(out);
}
