//! Load under which a serving row was measured.

use super::super::record::Record;
use super::super::software::batches_statically;
use super::super::table::Row;
use super::super::text::{clause, number_after, number_before, quantity};

/// Prompt tokens, output tokens, and the number of requests that TensorRT-LLM's published benchmarks queue for these
/// lengths (docs/source/performance/perf-overview.md, "Number of Sequences").
const QUEUED_REQUESTS: [(f64, f64, f64); 11] = [
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

/// Returns the number of requests that TensorRT-LLM's benchmarks queue: the one in [`QUEUED_REQUESTS`], or by default
/// as many as make 6.5 million tokens, at least 1,000.
fn queued_requests(input: f64, output: f64) -> f64 {
    let listed = QUEUED_REQUESTS.iter().find(|(prompt, answer, _)| (input, output) == (*prompt, *answer));
    listed.map_or((6.5e6 / (input + output)).max(1000.0).round(), |(_, _, requests)| *requests)
}

/// Fills `load`, `concurrency`, `request_rate` and `requests`.
pub(super) fn fill(record: &mut Record, row: &Row, family: &str) {
    let notes = row.text("notes");
    let has = |s: &str| notes.contains(s);
    let quote = |phrase: &str| format!("notes \"{}\"", clause(notes, phrase));
    let rate = row.text("request_rate");
    let endless = matches!(rate.to_ascii_lowercase().as_str(), "inf" | "infinite" | "infinity");
    if !endless {
        record.take(row, "request_rate", "request_rate");
    }
    let concurrency = record.take(row, "concurrency", "concurrency");
    let limit = quantity(row.text("max_batch_size")).map(|(n, _)| n).filter(|n| *n > 0.0);
    let continuous = endless || has("closed loop") || has("sustained") || has("max concurrency");
    for phrase in ["prefill-only", "during PREFILL"] {
        if has(phrase) {
            record.convert("load", "prefill-only", quote(phrase));
            return batch(record, concurrency, limit);
        }
    }
    for phrase in ["decode only", "decode-only", "(decode)", "single-stream generation"] {
        // A row that quotes a decode rate in addition to its own metrics is not decode-only.
        let quoted = has("decode tok/s") || has("decode-phase rate");
        if has(phrase) && !quoted && (concurrency.is_some() || limit.is_some()) {
            record.convert("load", "decode-only", quote(phrase));
            return batch(record, concurrency, limit);
        }
    }
    if has("during DECODE") {
        record.convert("load", "decode-only", quote("during DECODE"));
        return record.exclude("the source does not state the batch of the decode steps");
    }
    if let (Some(n), true) = (concurrency, has("num-prompts = ")) {
        record.convert("load", "burst", quote("num-prompts = "));
        return record.convert("requests", n.ceil(), quote("num-prompts = "));
    }
    if record.has("request_rate") {
        record.convert("load", "open", "column request_rate");
        return requests(record, notes);
    }
    const STATIC_BATCH_PHRASES: [&str; 6] =
        ["static batch", "static benchmark", "static,", "batch 1", "fixed batch", "one batch"];
    let phrase = STATIC_BATCH_PHRASES.into_iter().find(|phrase| has(phrase));
    let stays = batches_statically(family) || phrase.is_some();
    if (concurrency.is_some() || limit.is_some()) && !continuous && stays {
        match phrase {
            Some(phrase) => record.convert("load", "static", quote(phrase)),
            None => record.assume("load", "static", "batch size of software with static batches"),
        }
        return batch(record, concurrency, limit);
    }
    let offline =
        ["offline scenario", "sent at once", "queries at once", "all at once", "handed to the engine at once"];
    let offline = offline.into_iter().find(|phrase| has(phrase));
    if let (Some(concurrency), None) = (concurrency, offline) {
        match ["closed loop", "max concurrency", "sustained"].into_iter().find(|phrase| has(phrase)) {
            Some(phrase) => record.convert("load", "closed", quote(phrase)),
            None => record.convert("load", "closed", "column concurrency"),
        }
        requests(record, notes);
        if !record.has("requests") && has("num_prompts=10x concurrency") {
            record.convert("requests", (10.0 * concurrency).ceil(), quote("num_prompts=10x concurrency"));
        }
        return;
    }
    match offline {
        Some(phrase) => record.convert("load", "burst", quote(phrase)),
        None if endless => record.convert("load", "burst", "request_rate \"inf\""),
        None => record.assume("load", "burst", "no concurrency stated, all requests queued at the start"),
    }
    requests(record, notes);
    let harness = record.text("harness").to_owned();
    if !record.has("requests") && harness != "mlperf" && family == "tensorrt-llm" {
        let (input, output) =
            (record.number("input_len").unwrap_or(1000.0), record.number("output_len").unwrap_or(1000.0));
        record.assume(
            "requests",
            queued_requests(input, output),
            "as in TensorRT-LLM's published tables for these lengths",
        );
    } else if !record.has("requests") && has("offline scenario") {
        record.assume("requests", 150.0, "not stated, usual number of prompts of the harness");
    }
}

/// Fills the concurrency of a run without a queue from the maximum batch size, if it is not stated.
fn batch(record: &mut Record, concurrency: Option<f64>, limit: Option<f64>) {
    if concurrency.is_none()
        && let Some(limit) = limit
    {
        record.convert("concurrency", limit, "column max_batch_size");
    }
}

/// Fills the number of requests from the notes.
fn requests(record: &mut Record, notes: &str) {
    // For example `50 prompts at c=1 else 400`.
    if let (Some(other), Some(single)) =
        (number_after(notes, " at c=1 else "), number_before(notes, " prompts at c=1 else"))
    {
        let n = if record.number("concurrency") == Some(1.0) { single } else { other };
        return record.convert("requests", n, format!("notes \"{}\"", clause(notes, "prompts at c=1")));
    }
    for phrase in [
        " prompts sent at once",
        " prompts at max concurrency",
        " ShareGPT prompts",
        " ShareGPT requests",
        " prompts at ",
        " prompts, max concurrency",
        " requests, concurrency",
        " completed",
        " prompts",
        " requests",
    ] {
        if let Some(n) = number_before(notes, phrase).filter(|n| *n >= 1.0 && n.fract() == 0.0) {
            return record.convert("requests", n, format!("notes \"{}\"", clause(notes, phrase.trim())));
        }
    }
    if let Some(n) = number_after(notes, " s / ").filter(|n| *n >= 1.0 && n.fract() == 0.0) {
        record.convert("requests", n, format!("notes \"{}\"", clause(notes, " s / ")));
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{TableKind, table};
    use super::*;

    fn filled(concurrency: &str, limit: &str, rate: &str, family: &str, notes: &str) -> Record {
        let text = format!("concurrency,max_batch_size,request_rate,notes\n{concurrency},{limit},{rate},\"{notes}\"\n");
        let (_, rows) = table::read(&text).unwrap_or_default();
        let mut record = Record::new(TableKind::Inference);
        for row in &rows {
            fill(&mut record, row, family);
        }
        record
    }

    #[test]
    fn loads_follow_from_columns_and_protocol() {
        let load = |c, b, r, f, n| filled(c, b, r, f, n).text("load").to_owned();
        assert_eq!(load("1", "1", "", "llama.cpp", "llama-bench tg32 (decode only)"), "decode-only");
        assert_eq!(load("8", "8", "", "tensorrt-llm", "static batching benchmark"), "static");
        assert_eq!(load("8", "", "", "vllm", ""), "closed");
        assert_eq!(load("8", "", "", "transformers", ""), "static");
        assert_eq!(load("", "", "inf", "vllm", "1000 prompts sent at once"), "burst");
        assert_eq!(load("", "", "10", "vllm", ""), "open");
        assert_eq!(load("128", "", "", "atom", "prefill-only test (8k in / 1 out)"), "prefill-only");
    }

    #[test]
    fn open_load_with_concurrency_keeps_rate_and_concurrency() {
        let r = filled("64", "", "10", "vllm", "100 completed");
        assert_eq!((r.text("load"), r.text("concurrency"), r.text("request_rate")), ("open", "64", "10"));
        assert_eq!(r.text("requests"), "100");
    }

    #[test]
    fn request_count_is_parsed_or_derived_from_the_harness() {
        let two = "random prompts, 50 prompts at c=1 else 400 (so c=512 never is in flight)";
        assert_eq!(filled("1", "", "inf", "vllm", two).text("requests"), "50");
        assert_eq!(filled("16", "", "inf", "vllm", two).text("requests"), "400");
        let all = filled("4", "", "inf", "vllm", "offline, num-prompts = batch_size");
        assert_eq!((all.text("load"), all.text("requests")), ("burst", "4"));
        assert_eq!(filled("16", "", "inf", "vllm", "num_prompts=10x concurrency").text("requests"), "160");
        assert_eq!(filled("", "", "inf", "vllm", "1000 prompts sent at once").text("requests"), "1000");
        // The number of requests that finish in a fixed time is a result of the run, not a setting.
        assert_eq!(filled("8", "", "", "vllm", "closed loop users; n=304 requests").text("requests"), "");
        assert_eq!(filled("", "", "inf", "tensorrt-llm", "").text("requests"), "3000");
    }
}
