//! Prompt and output lengths.

use super::super::record::Record;
use super::super::table::Row;
use super::super::text::{clause, number_after, number_before, quantity};

/// Maximum total length, prompt plus output tokens, of the ShareGPT conversations that the benchmark clients of vLLM
/// and SGLang use (`max_total_len` in vLLM's `benchmark_dataset.py`).
const SHAREGPT_LONGEST: f64 = 2048.0;

/// Origin of a data set's lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
enum LengthOrigin {
    /// From the documentation of the data set.
    Documented,
    /// Inferred from the free memory of running servers.
    Inferred,
}

/// Mean lengths of a data set.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Lengths {
    input: f64,
    output: f64,
    /// Ratio of the longest output to the mean.
    spread: f64,
    known: LengthOrigin,
    name: &'static str,
}

const fn set(name: &'static str, input: f64, output: f64, spread: f64) -> Lengths {
    Lengths { input, output, spread, known: LengthOrigin::Documented, name }
}

/// Returns the lengths of the data set that the notes name.
fn data_set(model: &str, notes: &str) -> Option<Lengths> {
    let has = |s: &str| notes.contains(s);
    if has("sharegpt_standard") {
        return Some(set("AccelMark's sharegpt_standard", 260.0, 340.0, 1.5));
    }
    if has("sharegpt_edge") {
        return Some(set("AccelMark's sharegpt_edge", 104.0, 210.0, 1.2));
    }
    if has("sharegpt_longctx") {
        return Some(set("AccelMark's sharegpt_longctx", 28_600.0, 230.0, 1.1));
    }
    if has("ShareGPT") {
        return Some(set("ShareGPT", 215.0, 200.0, 3.0));
    }
    // ML.ENERGY does not publish prompt lengths. Two of them are inferred from the free memory of its saturated
    // servers.
    if has("task lm-arena-chat") {
        return Some(Lengths { known: LengthOrigin::Inferred, ..set("LM Arena chat", 525.0, 600.0, 1.5) });
    }
    if has("task sourcegraph-fim") {
        return Some(Lengths { known: LengthOrigin::Inferred, ..set("Sourcegraph FIM", 1410.0, 250.0, 1.5) });
    }
    if has("task gpqa") {
        return Some(set("GPQA", 250.0, 6000.0, 1.5));
    }
    if has("MLPerf") {
        return mlperf(model);
    }
    None
}

/// Returns the lengths of the MLPerf Inference data set for a model: OpenOrca, CNN/DailyMail, the LongBench mix,
/// OpenOrca+GSM8K+MBXP, or a reasoning set.
fn mlperf(model: &str) -> Option<Lengths> {
    let model = model.to_ascii_lowercase();
    let is = |part: &str| model.contains(part);
    Some(if is("llama-2-70b") || is("llama2-70b") {
        set("MLPerf's OpenOrca", 294.0, 294.0, 1.5)
    } else if is("gpt-j") || is("gptj") {
        set("MLPerf's CNN/DailyMail", 780.0, 69.0, 1.2)
    } else if is("3.1-8b") {
        set("MLPerf's CNN/DailyMail", 780.0, 128.0, 1.2)
    } else if is("405b") {
        set("MLPerf's LongBench mix", 9400.0, 680.0, 1.5)
    } else if is("mixtral-8x7b") {
        set("MLPerf's OpenOrca, GSM8K and MBXP", 250.0, 146.0, 2.0)
    } else if is("deepseek-r1") {
        set("MLPerf's reasoning set for DeepSeek-R1", 900.0, 3880.0, 2.0)
    } else if is("gpt-oss-120b") {
        set("MLPerf's reasoning set for gpt-oss", 1000.0, 1250.0, 2.0)
    } else {
        return None;
    })
}

/// Fills `input_len`, `output_len`, `output_len_max` and `output_spread`.
pub(super) fn fill(record: &mut Record, row: &Row, model: &str) {
    let notes = row.text("notes");
    let set = data_set(model, notes);
    let input = record.take(row, "input_len", "input_len");
    let output = record.take(row, "output_len", "output_len");
    // Decode-only rows state a context depth or a short prompt in the notes.
    if input.is_none() {
        if let Some(depth) = number_after(notes, "context depth ").or_else(|| number_after(notes, "(context ")) {
            let why = format!("notes \"{}\"", clause(notes, "context"));
            record.convert("input_len", depth.max(1.0), why);
        } else if let Some(tokens) = number_before(notes, "-token prompt") {
            record.convert("input_len", tokens, format!("notes \"{}\"", clause(notes, "-token prompt")));
        } else if let Some(tokens) = mean_kv_length(notes) {
            record.convert("input_len", tokens, format!("notes \"{}\"", clause(notes, "average KV length")));
        } else if notes.contains("empty context") {
            record.convert("input_len", 1.0, "notes \"empty context\"");
        } else if notes.contains("short prompt") || notes.contains("short context") {
            record.assume("input_len", 64.0, "notes mention a short prompt without its length");
        }
    }
    nominal(record, notes);
    let Some(set) = set else { return defaults(record, notes) };
    let why = format!("mean of {}", set.name);
    let mut fill = |column: &'static str, value: f64| match set.known {
        LengthOrigin::Documented => record.assume(column, value, &why),
        LengthOrigin::Inferred => {
            record.infer(column, value, format!("prompt length of {} from the memory in use", set.name))
        }
    };
    if input.is_none() {
        fill("input_len", set.input);
    }
    // With a data set, an output length of one token is a placeholder rather than a first-token measurement.
    if output.is_none_or(|tokens| tokens < 2.0) {
        record.assume("output_len", set.output, &why);
    }
    spread(record, notes, input.is_some(), Some(set));
    // For example `(nominal p50 280 in / 310 out, max 512 out)`.
    let longest = notes.split(['(', ',']).find_map(|part| {
        let (number, rest) = part.trim().strip_prefix("max ")?.split_once(' ')?;
        rest.starts_with("out").then(|| number.parse::<f64>().ok())?
    });
    if let Some(longest) = longest.filter(|longest| record.number("output_len").is_some_and(|mean| *longest >= mean)) {
        record.convert("output_len_max", longest, format!("notes \"max {longest} out\""));
    }
}

/// Returns the mean KV cache length that a decode step reads: `average KV length 4,989 tokens`.
fn mean_kv_length(notes: &str) -> Option<f64> {
    let rest = notes.split("average KV length ").nth(1)?;
    quantity(rest.split(' ').next()?).map(|(tokens, _)| tokens)
}

/// Converts nominal lengths to means if the notes state that lengths are drawn from a range up to the nominal length.
fn nominal(record: &mut Record, notes: &str) {
    let stated = if notes.contains("0.8-1.0 of nominal") || notes.contains("80-100% of nominal") {
        Some((0.8, true))
    } else {
        let ratio = number_after(notes, "range-ratio ").or_else(|| number_after(notes, "range ratio "));
        ratio.map(|ratio| (ratio, false))
    };
    let Some((ratio, printed)) = stated.filter(|(ratio, _)| (0.0..1.0).contains(ratio)) else { return };
    let mean = 0.5 * (1.0 + ratio);
    if let Some(longest) = record.number("output_len") {
        let why = "the nominal length is the maximum";
        match printed {
            true => record.convert("output_len_max", longest, why),
            false => record.assume("output_len_max", longest, why),
        }
        record.assume("output_spread", 1.0 / mean, "lengths drawn uniformly up to the nominal one");
    }
    for column in ["input_len", "output_len"] {
        let Some(longest) = record.number(column) else { continue };
        let why = format!("mean of lengths from {ratio} to 1 times the nominal {longest}");
        match printed {
            true => record.convert(column, mean * longest, why),
            false => record.assume(column, mean * longest, format!("{why}, as drawn by the engines' clients")),
        }
    }
}

/// Fills `output_spread`, the ratio of the longest output to the mean. `stated` is whether the row states the input
/// length.
fn spread(record: &mut Record, notes: &str, stated: bool, set: Option<Lengths>) {
    if record.has("output_spread") {
        return;
    }
    if notes.contains("lengths uniform 1..N") {
        return record.convert("output_spread", 2.0, "notes \"lengths uniform 1..N\"");
    }
    if stated && !notes.contains("ShareGPT") {
        return;
    }
    let Some(set) = set.filter(|set| set.spread > 1.0) else { return };
    record.assume("output_spread", set.spread, format!("distribution of {}", set.name));
    if set.name == "ShareGPT" {
        record.assume("output_len_max", SHAREGPT_LONGEST, "longest conversation of ShareGPT that clients use");
    }
}

/// Fills default lengths for rows without a data set.
fn defaults(record: &mut Record, notes: &str) {
    if !record.has("input_len") {
        record.assume("input_len", 64.0, "not stated, a short prompt");
    }
    if !record.has("output_len") {
        record.assume("output_len", 256.0, "not stated");
    }
    spread(record, notes, true, None);
}

#[cfg(test)]
mod tests {
    use super::super::super::{TableKind, table};
    use super::*;

    fn filled(input: &str, output: &str, notes: &str) -> Record {
        let text = format!("input_len,output_len,notes\n{input},{output},\"{notes}\"\n");
        let (_, rows) = table::read(&text).unwrap_or_default();
        let mut record = Record::new(TableKind::Inference);
        for row in &rows {
            fill(&mut record, row, "llama-2-70b");
        }
        record
    }

    #[test]
    fn random_length_range_is_converted_to_its_mean() {
        let r = filled("1024", "1000", "client: random 0.8-1.0 of nominal ISL/OSL");
        assert_eq!((r.text("input_len"), r.text("output_len"), r.text("output_len_max")), ("921.6", "900", "1000"));
        let r = filled("1024", "1000", "range-ratio 1.0");
        assert_eq!((r.text("input_len"), r.text("output_spread")), ("1024", ""));
        let r = filled("1024", "1000", "range-ratio 0.5");
        assert_eq!(r.text("input_len"), "768");
    }

    #[test]
    fn known_datasets_supply_missing_lengths() {
        let r = filled("", "", "MLPerf Inference v4.0");
        assert_eq!((r.text("input_len"), r.text("output_len")), ("294", "294"));
        assert_eq!(r.counts()[2], 0);
        let r = filled("", "606", "task lm-arena-chat");
        assert_eq!((r.text("input_len"), r.text("output_len"), r.counts()[2]), ("525", "606", 1));
        let r = filled("", "", "sharegpt_standard (nominal p50 280 in / 310 out, max 512 out)");
        assert_eq!((r.text("output_len"), r.text("output_len_max")), ("340", "512"));
        let r = filled("219", "200", "vllm bench serve, dataset ShareGPT");
        assert_eq!((r.text("output_spread"), r.text("output_len_max")), ("3", "2048"));
    }

    #[test]
    fn depths_of_decode_only_rows_are_read() {
        assert_eq!(filled("", "32", "llama-bench tg32 at context depth 4096 (decode only)").text("input_len"), "4096");
        assert_eq!(filled("", "256", "batch 1 decode of 256 tokens, 7-token prompt").text("input_len"), "7");
        assert_eq!(filled("", "", "generating token 129 (context 128)").text("input_len"), "128");
    }
}
