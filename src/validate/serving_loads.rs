//! Under which load a row of `inference.csv` was measured.

use super::serving_notes::{number_after, number_before};
use super::table::Row;
use crate::engine::analytical::serving::{Load, Stack};

/// Prompt tokens, output tokens and the number of requests that TensorRT-LLM's published tables queue for them
/// (docs/source/performance/perf-overview.md, "Number of Sequences"; from memory): about 6.5 million tokens, as is assumed of
/// lengths that are not listed, and at least 1,000 requests.
const QUEUED: [(f64, f64, f64); 11] = [
    (128.0, 128.0, 30_000.0),
    (128.0, 2048.0, 3000.0),
    (128.0, 4096.0, 1500.0),
    (500.0, 2000.0, 3000.0),
    (1000.0, 1000.0, 3000.0),
    (1000.0, 2000.0, 1500.0),
    (1024.0, 2048.0, 1500.0),
    (2048.0, 128.0, 3000.0),
    (2048.0, 2048.0, 1500.0),
    (5000.0, 500.0, 1500.0),
    (20_000.0, 2000.0, 1000.0),
];

/// Requests that TensorRT-LLM's tables queue for prompts and answers of these lengths.
pub(super) fn queued(isl: f64, osl: f64) -> f64 {
    let listed = QUEUED.iter().find(|(prompt, answer, _)| (isl, osl) == (*prompt, *answer));
    listed.map_or((6.5e6 / (isl + osl)).max(1000.0), |(_, _, requests)| *requests)
}

/// The load that a row's columns and protocol describe.
pub(super) fn load(r: &Row, notes: &str, stack: Stack) -> (Load, &'static str) {
    let has = |s: &str| notes.contains(s);
    let batch = r.positive("concurrency").or(r.positive("max_batch_size"));
    let decode = has("decode only") || has("decode-only") || has("(decode)") || has("single-stream generation");
    if decode && let Some(batch) = batch {
        return (Load::DecodeOnly { batch }, "decode only");
    }
    let rate = r.text("request_rate");
    if let Some(rate) = r.positive("request_rate") {
        return (Load::Open { rate }, "open loop");
    }
    let requests = number_before(notes, " prompts sent at once")
        .or(number_before(notes, " prompts at max concurrency"))
        .or(number_before(notes, " ShareGPT prompts"))
        .or(number_after(notes, " s / "))
        .or(number_before(notes, " requests"))
        .unwrap_or(f64::INFINITY)
        .max(1.0);
    let continuous = rate == "inf" || has("closed loop") || has("sustained");
    match batch {
        Some(batch) if !continuous && (has("static") || has("batch 1") || stack != Stack::Graphed) => {
            (Load::Static { batch }, if batch > 1.0 { "static batch" } else { "single stream" })
        }
        Some(concurrency) if r.positive("concurrency").is_some() && !has("offline scenario") => {
            // InferenceMAX's client sends ten requests per user.
            let requests = if has("num_prompts=10x concurrency") { 10.0 * concurrency } else { requests };
            (Load::Closed { concurrency, requests }, "closed loop")
        }
        _ => {
            let requests = if requests.is_infinite() && has("offline scenario") { 150.0 } else { requests };
            (Load::Burst { requests }, "offline")
        }
    }
}
