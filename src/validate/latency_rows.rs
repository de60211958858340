//! Measured TTFT and TPOT (`serving_latency.csv`) as scenarios: two cases a row.

use super::hardware::Hardware;
use super::models::Models;
use super::serving_rows::{Case, Metric};
use super::table::Row;
use super::{serving_devices, serving_models, serving_rows};
use crate::engine::analytical::accelerator::{Accelerator, Generation};
use crate::engine::analytical::arch::{Architecture, Attention};
use crate::engine::analytical::serving::software;
use crate::engine::analytical::serving::{Layout, Load, Pools, ServingInput, Speculation, Stack};

/// The number after a key, as in "silicon_concurrency=128" or "_tp4".
fn after(text: &str, key: &str) -> Option<f64> {
    let rest = text.get(text.find(key)? + key.len()..)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

/// Concurrency that was measured; the planner's batch size only where nothing else is stated.
fn concurrency(r: &Row) -> Option<f64> {
    after(r.text("silicon_data_source"), "silicon_concurrency=").filter(|c| *c > 0.0)
}

/// Accelerators of an aggregated deployment. The id tells what ran ("tp4_ep4"); the columns are the planner's reading of it
/// and multiply sizes in places: the same TTFT and TPOT to the last digit stand under tp 64 with experts 8 x 8, and under tp 8
/// with experts 1 x 8. Where the experts' two sizes are equal, or tensor-parallel ranks as many as attention groups, and
/// their product is all there is, it is the square of what ran.
fn ranks(r: &Row) -> f64 {
    let size = |column: &str| r.positive(column).unwrap_or(1.0);
    let (tp, groups, sliced, whole) =
        (size("tp_size"), size("attention_dp_size"), size("moe_tp_size"), size("moe_ep_size"));
    let product = tp * groups;
    let squared = product == sliced * whole && (sliced == whole || (tp == groups && whole == product));
    after(r.text("id"), "_tp").filter(|n| *n > 0.0).unwrap_or(if squared { product.sqrt() } else { product })
}

/// Layout of an aggregated deployment.
fn aggregated(r: &Row, arch: &Architecture) -> Layout {
    let ranks = ranks(r);
    // Ranks that do not divide the heads cannot have shared them.
    let groups = r.positive("attention_dp_size").is_some_and(|groups| groups > 1.0) || arch.heads % ranks != 0.0;
    if groups {
        Layout { tp: 1.0, pp: 1.0, ep: ranks, attention_dp: ranks, dp: 1.0 }
    } else {
        let ep = r.positive("moe_ep_size").unwrap_or(1.0).min(ranks);
        Layout { tp: ranks, pp: 1.0, ep, attention_dp: 1.0, dp: 1.0 }
    }
}

/// One pool of a disaggregated deployment.
fn pool(r: &Row, prefix: &str, workers: f64) -> Layout {
    let n = |column: &str| r.positive(&format!("{prefix}_{column}")).unwrap_or(1.0);
    Layout {
        tp: n("tp_size"),
        pp: n("pp_size"),
        ep: n("moe_ep_size"),
        attention_dp: n("attention_dp_size"),
        dp: workers,
    }
}

/// Whether the measured latency at the stated concurrency implies more arithmetic than the accelerators' peak, or a
/// step shorter than reading one token's weights.
fn too_fast(input: &ServingInput, concurrency: f64, ttft: f64, tpot: f64) -> bool {
    let acc = &input.accelerator;
    let ranks = input.layout.accelerators().max(1.0);
    let rate = concurrency / (ttft + tpot * (input.osl - 1.0)).max(1e-9);
    let flops = rate * (input.isl + input.osl) * 2.0 * input.arch.matmul_params();
    let read = input.arch.matmul_params() * input.formats.expert_bytes.min(input.formats.dense_bytes);
    flops > ranks * acc.peak(input.formats.expert) || tpot < 0.95 * read / (ranks * acc.mem_bw) / 2.0
}

/// Whether a row's origin is InferenceMAX: its runs carry a commit of the sweep or the date of its tables. What one more
/// file of the collection has ("…-gap-analysis.csv") are the same measurements to the last digit.
fn inferencemax(origin: &str) -> bool {
    ["workflow_run_id", "source_file=2026", "-gap-analysis.csv"].iter().any(|mark| origin.contains(mark))
}

/// Decode steps between two looks at the queue in InferenceMAX's runs: its scripts start SGLang on Blackwell with
/// `--scheduler-recv-interval 30` from 16 requests in flight; below, they say 10, which `polled_seconds` stands for, and
/// on Hopper nothing (`benchmarks/dsr1_fp8_b200.sh`, `dsr1_fp8_h200.sh`; from memory).
fn recv_interval(acc: &Accelerator, concurrency: f64) -> f64 {
    if acc.generation == Generation::Blackwell && concurrency >= 16.0 { 30.0 } else { 1.0 }
}

/// Format of keys and values in InferenceMAX's runs of DeepSeek under SGLang on Blackwell: the same scripts ask for
/// `--kv-cache-dtype fp8_e4m3` (from memory). Elsewhere the engine's own.
fn kv_format(acc: &Accelerator, arch: &Architecture, engine: &str) -> &'static str {
    let latent = matches!(arch.attention, Attention::Latent { .. });
    if latent && engine == "SGLang" && acc.generation == Generation::Blackwell { "fp8" } else { "" }
}

/// The stack's version: a nightly's by the image that the row names.
fn version(r: &Row) -> &str {
    let stated = r.text("backend_version");
    let image = || r.text("silicon_data_source").split_once("image=")?.1.split([';', ' ']).next()?.rsplit_once(':');
    if stated.starts_with("nightly") && !stated.bytes().any(|byte| byte.is_ascii_digit()) {
        return image().map_or(stated, |(_, tag)| tag);
    }
    stated
}

/// TTFT and TPOT cases of a row.
pub fn cases(r: &Row, hardware: &Hardware, models: &Models) -> Result<[Case; 2], &'static str> {
    let concurrency = concurrency(r).ok_or("concurrency not stated")?;
    let system = r.text("system");
    let acc = serving_devices::find(hardware, system).ok_or("system not in the catalog")?;
    let path = r.text("model_path");
    let model = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let arch = serving_models::find(models, &model, Some(r)).ok_or("architecture not in the catalog")?;
    let backend = r.text("backend");
    let (engine, stack) = match backend {
        "trtllm" => ("TensorRT-LLM", Stack::Compiled),
        "sglang" => ("SGLang", Stack::Graphed),
        _ => ("vLLM", Stack::Graphed),
    };
    let weights = match (r.text("precision"), model.starts_with("gpt-oss")) {
        (_, true) => "mxfp4",
        ("", _) if model.contains("fp8") => "fp8",
        (p, _) => p,
    };
    let (seqs, tokens, chunked, share) = software::scheduler(engine, "1.0", &acc);
    // InferenceMAX draws lengths from 0.8 to 1.0 of the nominal ones. Other collections send fixed lengths.
    let inferencemax = inferencemax(r.text("silicon_data_source"));
    let drawn = if inferencemax { 0.9 } else { 1.0 };
    let kv = if inferencemax { kv_format(&acc, &arch, engine) } else { "" };
    let formats = software::formats(&acc, &arch, &model, engine, stack, weights, "", kv);
    let isl = r.positive("isl").ok_or("input length not stated")? * drawn;
    // One token has a first, but no next.
    let osl = r.positive("osl").filter(|osl| *osl >= 2.0).ok_or("fewer than two output tokens")? * drawn;
    let pools = if r.text("mode") == "disagg" {
        let (p, d) = (r.positive("prefill_num_workers"), r.positive("decode_num_workers"));
        let (Some(p), Some(d)) = (p, d) else { return Err("sizes of the prefill and decode pools not stated") };
        Some(Pools { prefill: pool(r, "prefill", p), decode: pool(r, "decode", d) })
    } else {
        None
    };
    let input = ServingInput {
        accelerator: acc,
        arch,
        layout: aggregated(r, &arch),
        formats,
        isl,
        osl,
        osl_spread: 1.0 / drawn,
        osl_most: 0.0,
        load: Load::Closed { concurrency, requests: 10.0 * concurrency },
        arrivals: f64::INFINITY,
        stack,
        captured_graphs: !software::launches_experts(&arch, &formats, engine, r.text("backend_version"), ""),
        eager_prompts: software::eager_prompts(engine, version(r)),
        grouped_decode: true,
        experts_in_turn: software::experts_in_turn(&arch, &formats, engine),
        tuned_products: true,
        overlapped: true,
        python_executor: software::python_executor(engine, "1.0", "", ""),
        beams: 1.0,
        admission: software::admission(engine),
        recv_interval: if inferencemax { recv_interval(&acc, concurrency) } else { 1.0 },
        context_ranks: 1.0,
        reserve_output: backend == "trtllm",
        max_num_seqs: seqs,
        compiled_batch: 0.0,
        max_num_batched_tokens: tokens,
        memory_utilization: share,
        chunked_prefill: chunked,
        prefix_hit: 0.0,
        speculation: Speculation::default(),
        expanded_drafts: false,
        pools,
    };
    if !serving_rows::holds(&input) {
        return Err("the weights do not fit the stated accelerators in the stated format");
    }
    let input = serving_rows::with_room(input);
    let (ttft, tpot) =
        (r.positive("silicon_ttft_ms").unwrap_or(0.0) / 1e3, r.positive("silicon_tpot_ms").unwrap_or(0.0) / 1e3);
    if pools.is_none() && too_fast(&input, concurrency, ttft, tpot) {
        return Err("faster than the stated accelerators can multiply or read weights: replicas not stated");
    }
    let one = |metric: Metric, column: &str| -> Result<Case, &'static str> {
        Ok(Case {
            id: r.text("id").to_string(),
            source: model.clone(),
            accelerator: system.to_string(),
            engine: engine.to_string(),
            model: model.clone(),
            regime: match (pools.is_some(), metric) {
                (true, Metric::Ttft) => "disaggregated TTFT",
                (true, _) => "disaggregated TPOT",
                (false, Metric::Ttft) => "aggregated TTFT",
                (false, _) => "aggregated TPOT",
            },
            input,
            metric,
            // One file of many repeats of the same sweep.
            weight: if metric == Metric::Tpot { 1.5 } else { 0.5 },
            measured: r.positive(column).ok_or("no latency stated")? / 1e3,
        })
    };
    Ok([one(Metric::Ttft, "silicon_ttft_ms")?, one(Metric::Tpot, "silicon_tpot_ms")?])
}
