//! Conversion of serving throughput rows.

mod engine;
mod flags;
pub(super) mod formats;
mod layout;
mod lengths;
mod load;
pub(super) mod pools;

use atlas_catalog::Catalog;

use super::architecture::{self, ModelUse};
use super::record::Record;
use super::software::{self, SoftwareUse};
use super::table::Row;
use super::text::clause;
use super::{TableKind, devices, iso_date};

/// Bytes per GiB over bytes per GB: datasheets state memory sizes in GB but mean GiB.
const GB_PER_GIB: f64 = 1.0737;

/// Converts one row.
pub(super) fn convert(row: &Row, catalog: &Catalog) -> Record {
    let mut record = Record::new(TableKind::Inference);
    for column in ["id", "source", "source_path", "date", "notes"] {
        record.copy_text(column, row.text(column));
    }
    let notes = row.text("notes");
    let date = iso_date(row.text("date"));
    let device = devices::fill(&mut record, catalog, row.text("accelerator"));
    let engine = if row.text("engine").is_empty() { row.text("framework") } else { row.text("engine") };
    let family = software::fill(&mut record, SoftwareUse::Serving, engine, row.text("engine_version"), &date);
    let family = family.as_str();
    harness(&mut record, notes);
    let model = row.text("model");
    let shape = architecture::fill(&mut record, row, catalog, model, ModelUse::Serving);
    figures(&mut record, row, family);
    lengths::fill(&mut record, row, model);
    load::fill(&mut record, row, family);
    let ranks = layout::size(&mut record, row);
    layout::nodes(&mut record, notes);
    let stated = formats::Stated {
        model,
        weights: row.text("precision_weights"),
        activations: row.text("precision_activations"),
        kv: row.text("precision_kv"),
        notes,
        date: &date,
    };
    let memory = device.as_ref().map_or(0.0, |device| device.memory.gb * 1e9);
    let replicas = row.positive("dp").unwrap_or(1.0).max(1.0);
    let memory_bytes = GB_PER_GIB * memory * record.number("num_accelerators").unwrap_or(1.0) / replicas;
    formats::fill(&mut record, stated, shape.as_ref(), device.as_deref(), memory_bytes);
    let pools = pools::fill(&mut record, notes);
    let apart = notes.contains("disaggregated") || engine.contains("disaggregated");
    if apart && !pools && !notes.contains("not disaggregated") {
        record.exclude("prefill and decode run in separate pools, whose sizes are not stated");
    }
    let context = layout::Context {
        family,
        shape: shape.as_ref(),
        device: device.as_deref(),
        ranks,
        bytes_per_weight: formats::bytes_of(record.text("weights")),
    };
    layout::fill(&mut record, row, &context);
    layout::count_dies(&mut record, device.as_deref());
    engine::fill(&mut record, row, family);
    unusable(&mut record, row, family);
    record
}

/// Fills `harness`, the benchmark client, if the notes name it.
fn harness(record: &mut Record, notes: &str) {
    for (phrase, harness) in [
        ("MLPerf", "mlperf"),
        ("InferenceMAX", "inferencemax"),
        ("AccelMark", "accelmark"),
        ("task lm-arena-chat", "ml-energy"),
        ("task gpqa", "ml-energy"),
        ("task sourcegraph-fim", "ml-energy"),
        ("trtllm-bench", "trtllm-bench"),
        ("llama-bench", "llama-bench"),
        ("llama-batched-bench", "llama-bench"),
        ("guidellm", "guidellm"),
        ("sglang bench_serving", "sglang-bench"),
        ("vllm bench serve", "vllm-bench"),
        ("benchmark_latency.py", "vllm-bench"),
        ("benchmark_throughput.py", "vllm-bench"),
    ] {
        if notes.contains(phrase) {
            return record.convert("harness", harness, format!("notes \"{}\"", clause(notes, phrase)));
        }
    }
}

/// Fills the measured metrics.
fn figures(record: &mut Record, row: &Row, family: &str) {
    for (old, new) in [
        ("output_tokens_per_sec_total", "output_tokens_per_sec"),
        ("total_tokens_per_sec", "total_tokens_per_sec"),
        ("tokens_per_sec_per_accel", "tokens_per_sec_per_accel"),
        ("requests_per_sec", "requests_per_sec"),
        ("ttft_ms_mean", "ttft_ms"),
        ("tpot_ms_mean", "tpot_ms"),
    ] {
        record.take(row, old, new);
    }
    // llama.cpp measures prompts and generation separately. If a collection lists the rate of a single stream as
    // "total" next to those of other engines, it is the rate of the generation.
    let lengths = (row.positive("input_len"), row.positive("output_len"));
    let single = row.positive("concurrency").or_else(|| row.positive("max_batch_size")) == Some(1.0);
    if family == "llama.cpp"
        && single
        && matches!(lengths, (Some(a), Some(b)) if a == b)
        && !record.has("output_tokens_per_sec")
        && let Some(total) = record.number("total_tokens_per_sec")
        && !row.text("notes").contains("counts prompt+generated")
    {
        let why = "column total_tokens_per_sec read as the generation rate, which llama.cpp measures separately";
        record.infer("output_tokens_per_sec", total, why);
        record.clear_cell("total_tokens_per_sec");
    }
}

/// Excludes rows that are not usable measurements according to their own notes and metrics.
fn unusable(record: &mut Record, row: &Row, family: &str) {
    let notes = row.text("notes");
    if family == "deepspeed-zero-inference" {
        record.exclude("weights are gathered layer by layer (ZeRO-3), which is not a serving layout");
    }
    if notes.contains("labels the unit Samples/s")
        && row.positive("output_tokens_per_sec_total").is_some_and(|x| x < 500.0)
    {
        record.exclude("unit ambiguous, the value appears to be samples/s in a column of tokens/s");
    }
    let single = row.positive("concurrency") == Some(1.0);
    if let (true, Some(first), Some(whole)) = (single, row.positive("ttft_ms_p99"), row.positive("e2e_ms_mean"))
        && first > whole
    {
        record.exclude("ttft_ms_p99 of a single stream exceeds e2e_ms_mean, so the run includes a start-up");
    }
    for phrase in ["effective concurrency unclear", "treat as suspect", "imply fewer requests in flight than the label"]
    {
        if notes.contains(phrase) {
            record.exclude(format!("the source says \"{}\"", clause(notes, phrase)));
        }
    }
    if ![
        "output_tokens_per_sec",
        "total_tokens_per_sec",
        "tokens_per_sec_per_accel",
        "requests_per_sec",
        "ttft_ms",
        "tpot_ms",
    ]
    .iter()
    .any(|column| record.has(column))
    {
        record.exclude("states no metric");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::super::table;
    use super::*;

    const HEAD: &str = "id,date,engine,engine_version,accelerator,num_accelerators,model,tp,pp,ep,dp,precision_weights,\
        input_len,output_len,concurrency,max_batch_size,request_rate,output_tokens_per_sec_total,notes";

    fn converted(line: &str) -> Record {
        let (_, rows) = table::read(&format!("{HEAD}\n{line}\n")).unwrap();
        convert(&rows[0], &Catalog::built_in())
    }

    #[test]
    fn a_closed_loop_of_data_parallel_attention_is_typed() {
        let r = converted(
            "a,2026-01,SGLang,0.5.6,nvidia-b200,8,deepseek-ai/DeepSeek-R1,8,,8,,fp8,1024,1000,64,,inf,5000,\
             closed loop --enable-dp-attention",
        );
        assert_eq!(r.text("model"), "deepseek-r1");
        assert_eq!(r.text("software"), "sglang@0.5.6");
        assert_eq!((r.text("tp"), r.text("attention_dp"), r.text("dp"), r.text("ep")), ("1", "8", "1", "8"));
        assert_eq!(r.text("load"), "closed");
        assert!(r.problems.is_empty(), "{:?}", r.problems);
    }

    #[test]
    fn data_parallel_attention_keeps_pipeline_stages_and_replicas() {
        let r = converted(
            "a,2025-09,TensorRT-LLM,1.0,nvidia-b200,8,qwen3-235b-a22b,2,4,,,fp4,128,1000,,,inf,900,attention DP",
        );
        assert_eq!((r.text("tp"), r.text("pp"), r.text("attention_dp"), r.text("dp")), ("1", "4", "2", "1"));
        let r = converted("a,2026-02,vLLM,0.15.0,nvidia-h200-sxm,8,minimax-m2.5,1,,8,8,fp8,1024,128,8,,inf,290,sweep");
        assert_eq!((r.text("tp"), r.text("ep"), r.text("attention_dp"), r.text("dp")), ("1", "8", "8", "1"));
        let r =
            converted("a,2026-02,vLLM,0.15.0,nvidia-h200-sxm,16,deepseek-r1,8,,8,,fp8,1024,128,8,,,290,dp attention");
        assert_eq!((r.text("tp"), r.text("attention_dp"), r.text("dp")), ("1", "8", "2"));
    }

    #[test]
    fn neuron_cores_are_counted_as_tensor_parallel_ranks() {
        let r = converted(
            "a,2024-05,Transformers NeuronX,Neuron SDK 2.18.1,aws-inf2,12,llama-3-8b,24,,,,bf16,128,1000,8,8,,300,static batch",
        );
        assert_eq!((r.text("num_accelerators"), r.text("tp"), r.text("compiled_batch")), ("12", "24", "8"));
        assert_eq!((r.text("load"), r.text("software")), ("static", "transformers-neuronx@2.18.1"));
    }

    #[test]
    fn unstated_tp_is_the_smallest_with_memory_headroom() {
        let r = converted("a,2025-01,vLLM,,nvidia-h100-sxm-80gb,8,llama-3-70b,,,,,bf16,128,1000,8,,,300,");
        assert_eq!((r.text("tp"), r.text("dp")), ("4", "2"));
        let r = converted("a,2025-01,llama.cpp,,nvidia-rtx-4090,2,llama-3-8b,,,,,q4_k_m,128,1000,1,1,,90,");
        assert_eq!((r.text("tp"), r.text("pp")), ("1", "2"));
    }

    #[test]
    fn weight_format_is_inferred_when_bf16_does_not_fit_memory() {
        let r = converted("a,2025-01,vLLM,0.6.3,nvidia-a100-sxm-80gb,1,llama-3-70b,1,,,,,128,1000,8,,,300,");
        assert_eq!((r.text("weights"), r.counts()[2]), ("fp8", 1));
        let r = converted("a,2025-01,vLLM,0.6.3,nvidia-a100-sxm-80gb,4,llama-3-70b,4,,,,,128,1000,8,,,300,");
        assert_eq!((r.text("weights"), r.counts()[2]), ("bf16", 0));
    }

    #[test]
    fn rows_with_unclear_concurrency_or_no_throughput_are_excluded() {
        assert!(
            converted("a,,vLLM,,nvidia-b200,1,llama-3-8b,1,,,,,128,128,8,,,300,effective concurrency unclear")
                .is_excluded()
        );
        assert!(converted("a,,vLLM,,nvidia-b200,1,llama-3-8b,1,,,,,128,128,8,,,,").is_excluded());
    }
}
