//! Scheduler limits, engine options and speculative decoding.

use super::super::record::Record;
use super::super::table::Row;
use super::super::text::{clause, normalize_word, number_after, number_before, quantity};
use super::flags::Flags;

/// Default acceptance probability of a draft token.
const DRAFT_ACCEPTANCE: f64 = 0.7;

/// Fills scheduler limits, engine options and speculative decoding from quoted command-line options, phrases and
/// columns.
pub(super) fn fill(record: &mut Record, row: &Row, family: &str) {
    let notes = row.text("notes");
    let flags = Flags::of(notes);
    numbers(record, flags, notes);
    switches(record, flags, notes);
    let limit = quantity(row.text("max_batch_size")).map(|(n, _)| n).filter(|n| *n >= 1.0 && n.fract() == 0.0);
    let runs_at_once = matches!(record.text("load"), "static" | "decode-only" | "prefill-only");
    if let Some(limit) = limit.filter(|_| !runs_at_once && !record.has("max_num_seqs")) {
        record.convert("max_num_seqs", limit, "column max_batch_size");
    }
    // Neuron compiles its graphs for a fixed batch size.
    if let Some(limit) = limit.filter(|_| matches!(family, "transformers-neuronx" | "vllm-neuron")) {
        let shared = if notes.contains("per replica") { 1.0 } else { record.number("dp").unwrap_or(1.0) };
        record.assume(
            "compiled_batch",
            (limit / shared).floor().max(1.0),
            "Neuron compiles graphs for the largest batch",
        );
    }
    if notes.contains("PyTorch backend") {
        record.convert("executor", "python", "notes \"PyTorch backend\"");
    } else if record.text("harness") == "mlperf" && family == "tensorrt-llm" {
        record.assume("executor", "native", "MLPerf's harness drives the C++ executor");
        record.assume("reserve_output", false, "MLPerf submissions reserve no memory for outputs");
    }
    let model = normalize_word(row.text("model"));
    if record.text("harness") == "mlperf" && (model.contains("gptj") || model.contains("gptj6b")) {
        record.assume("beams", 4.0, "MLPerf's GPT-J task decodes with four beams");
    }
    drafts(record, row.text("speculative"), notes);
}

fn numbers(record: &mut Record, flags: Flags<'_>, notes: &str) {
    let options: [(&'static str, &[&str]); 5] = [
        ("max_num_seqs", &["max-num-seqs", "max-running-requests", "max-batch-size", "parallel"]),
        (
            "max_num_batched_tokens",
            &["max-num-batched-tokens", "chunked-prefill-size", "max-num-tokens", "ubatch-size"],
        ),
        (
            "gpu_memory_utilization",
            &["gpu-memory-utilization", "mem-fraction-static", "kv-cache-free-gpu-memory-fraction"],
        ),
        ("recv_interval", &["scheduler-recv-interval"]),
        ("context_ranks", &["decode-context-parallel-size", "dcp"]),
    ];
    for (column, names) in options {
        let worded = || {
            let spaced = names.iter().flat_map(|name| [format!("{name} "), format!("{} ", name.replace('-', "_"))]);
            spaced.filter(|phrase| phrase.len() > 8).find_map(|phrase| number_after(notes, &phrase))
        };
        if let Some(found) = flags.number(names) {
            record.convert(column, found, format!("notes, option --{}", names.first().unwrap_or(&column)));
        } else if let Some(found) = worded().filter(|found| *found > 0.0) {
            record.convert(column, found, format!("notes \"{} {found}\"", names.first().unwrap_or(&column)));
        }
    }
    if let Some(ranks) = number_after(notes, "decode context parallel ") {
        record.convert("context_ranks", ranks, format!("notes \"{}\"", clause(notes, "decode context parallel")));
    }
}

fn switches(record: &mut Record, flags: Flags<'_>, notes: &str) {
    let lower = notes.to_ascii_lowercase();
    let quote = |phrase: &str| format!("notes \"{}\"", clause(&lower, phrase));
    if flags.has(&["no-enable-chunked-prefill"]) || flags.value(&["chunked-prefill-size"]) == Some("-1") {
        record.convert("chunked_prefill", false, "notes, option --no-enable-chunked-prefill");
    } else if lower.contains("chunked prefill off") {
        record.convert("chunked_prefill", false, quote("chunked prefill off"));
    } else if flags.has(&["enable-chunked-prefill", "enable-mixed-chunk"]) {
        let off = flags.value(&["enable-chunked-prefill"]).is_some_and(|value| value.eq_ignore_ascii_case("false"));
        record.convert("chunked_prefill", !off, "notes, option --enable-chunked-prefill");
    } else if let Some(size) = number_after(&lower, "chunked prefill ").filter(|n| *n >= 16.0) {
        record.convert("chunked_prefill", true, quote("chunked prefill "));
        record.convert("max_num_batched_tokens", size, quote("chunked prefill "));
    }
    if flags.has(&["enforce-eager", "disable-cuda-graph"]) {
        record.convert("cuda_graphs", false, "notes, option --enforce-eager or --disable-cuda-graph");
    } else if let Some(phrase) = ["eager mode"].into_iter().find(|phrase| lower.contains(phrase)) {
        record.convert("cuda_graphs", false, quote(phrase));
    } else if let Some(phrase) = ["cudagraph mode", "cuda graph"].into_iter().find(|phrase| lower.contains(phrase)) {
        record.convert("cuda_graphs", true, quote(phrase));
    }
    if flags.has(&["disable-overlap-schedule", "no-async-scheduling"]) {
        record.convert(
            "overlap_scheduling",
            false,
            "notes, option --disable-overlap-schedule or --no-async-scheduling",
        );
    } else if flags.has(&["async-scheduling"]) {
        record.convert("overlap_scheduling", true, "notes, option --async-scheduling");
    }
}

/// Fills speculative decoding from descriptions such as `mtp-3`, `EAGLE3, 3 draft tokens` or `eagle(steps=3,draft=4)`.
fn drafts(record: &mut Record, text: &str, notes: &str) {
    let lower = text.to_ascii_lowercase();
    if matches!(lower.as_str(), "" | "none" | "no" | "false" | "off") {
        return;
    }
    let stated = number_before(&lower, " draft").or(number_after(&lower, "mtp-")).or(number_after(&lower, "steps="));
    match stated.filter(|n| *n >= 1.0) {
        Some(tokens) => record.convert("draft_tokens", tokens, format!("\"{text}\"")),
        None => record.assume("draft_tokens", 1.0, format!("\"{text}\" without a number")),
    }
    let tokens = record.number("draft_tokens").unwrap_or(1.0);
    if let Some(length) = number_after(notes, "accept length ").filter(|length| *length > 1.0) {
        record.convert("draft_acceptance", acceptance(tokens, length), format!("notes \"accept length {length}\""));
    } else if let Some(percent) = number_before(notes, "% draft acceptance").filter(|p| *p > 0.0 && *p <= 100.0) {
        record.convert("draft_acceptance", percent / 100.0, format!("notes \"{percent}% draft acceptance\""));
    } else {
        record.assume("draft_acceptance", DRAFT_ACCEPTANCE, "not stated, usual for trained drafts");
    }
}

/// Computes the acceptance probability of one draft token from the mean number of tokens per step (`length`) with
/// `tokens` draft tokens. Solves Σ aᵏ = `length` for k from 0 to `tokens` by bisection.
fn acceptance(tokens: f64, length: f64) -> f64 {
    let yielded = |a: f64| (0..=(tokens.min(64.0) as usize)).map(|k| a.powi(k as i32)).sum::<f64>();
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if yielded(middle) < length { low = middle } else { high = middle }
    }
    (0.5_f64 * (low + high) * 1e4).round().max(1.0) / 1e4
}

#[cfg(test)]
mod tests {
    use super::super::super::{TableKind, table};
    use super::*;

    fn filled(notes: &str, speculative: &str) -> Record {
        let text = format!("notes,speculative,max_batch_size\n\"{notes}\",\"{speculative}\",\n");
        let (_, rows) = table::read(&text).unwrap_or_default();
        let mut record = Record::new(TableKind::Inference);
        for row in &rows {
            fill(&mut record, row, "vllm");
        }
        record
    }

    #[test]
    fn quoted_options_become_cells() {
        let r =
            filled("engine flags: vllm serve m --max-num-seqs 64 --enforce-eager --gpu-memory-utilization 0.85", "");
        assert_eq!((r.text("max_num_seqs"), r.text("cuda_graphs")), ("64", "false"));
        assert_eq!(r.text("gpu_memory_utilization"), "0.85");
        let r = filled("300 requests, max_num_seqs 256, max_num_batched_tokens 2048", "");
        assert_eq!((r.text("max_num_seqs"), r.text("max_num_batched_tokens")), ("256", "2048"));
        let r = filled("radix cache and chunked prefill off", "");
        assert_eq!(r.text("chunked_prefill"), "false");
    }

    #[test]
    fn draft_tokens_are_parsed_and_acceptance_is_solved_from_accept_length() {
        let r = filled("accept length 2.71", "EAGLE3, 3 draft tokens");
        assert_eq!(r.text("draft_tokens"), "3");
        let a = r.number("draft_acceptance").unwrap_or(0.0);
        assert!((1.0 + a + a * a + a * a * a - 2.71).abs() < 0.01, "{a}");
        assert_eq!(filled("", "eagle(steps=3,draft=4)").text("draft_tokens"), "3");
        assert_eq!(filled("", "none").text("draft_tokens"), "");
    }
}
