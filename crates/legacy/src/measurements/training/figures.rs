//! Measured metrics of a training row.

use super::super::record::Record;
use super::super::table::Row;
use super::super::text::{clause, quantity};

/// Fills the measured metrics. Excludes rows without a throughput.
pub(super) fn fill(record: &mut Record, row: &Row, family: &str, date: &str) {
    let notes = row.text("notes");
    for column in ["tokens_per_sec_per_accel", "step_time_s", "model_tflops_per_accel", "peak_memory_gb"] {
        record.take(row, column, column);
    }
    let mfu = row.text("mfu");
    match quantity(mfu) {
        // Values above one are percentages.
        Some((percent, _)) if percent > 1.0 => record.convert("mfu", percent / 100.0, format!("\"{mfu}\" percent")),
        Some(_) => {
            record.take(row, "mfu", "mfu");
        }
        None if !mfu.is_empty() => record.problem("mfu", mfu, "a share of the peak FLOP/s"),
        None => {}
    }
    memory(record, row);
    let stated = |column: &str| record.has(column);
    let tokens = stated("tokens_per_sec_per_accel")
        || (stated("step_time_s") && stated("global_batch") && stated("seq_len") && stated("num_accelerators"));
    if tokens {
        return;
    }
    if !stated("model_tflops_per_accel")
        && let (Some(share), Some(peak)) = (record.number("mfu"), denominator(notes))
    {
        let why = format!("mfu relative to {peak} TFLOP/s, notes \"{}\"", clause(notes, "MFU"));
        record.convert("model_tflops_per_accel", share * peak, why);
    }
    if !(record.has("model_tflops_per_accel") || record.has("mfu")) {
        record.exclude("states no throughput");
        return;
    }
    counting(record, notes, family, date);
}

/// Finds the peak rate, in TFLOP/s, that the source's MFU refers to: `MFU vs 197 TF`, `MFU denominator 989`.
fn denominator(notes: &str) -> Option<f64> {
    let clause = notes.split(';').find(|part| part.contains("MFU"))?;
    ["MFU vs ", "MFU denominator ", "MFU uses ", "MFU peak "].iter().find_map(|phrase| {
        let rest = clause.split(phrase).nth(1)?;
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let after = rest.get(end..)?.trim_start();
        let value: f64 = rest.get(..end)?.parse().ok()?;
        let plain = after.is_empty() || after.starts_with("TF") || after.starts_with('(') || after.starts_with("bf16");
        (value > 10.0 && plain).then_some(value)
    })
}

/// Fills `flop_counting`: whether the source counts the FLOPs of causal attention in full or halves them.
fn counting(record: &mut Record, notes: &str, family: &str, date: &str) {
    let lower = notes.to_ascii_lowercase();
    let full = ["full (non-causal) attention", "full attention", "counts full"];
    if let Some(word) = full.into_iter().find(|word| lower.contains(word)) {
        return record.convert("flop_counting", "full", format!("notes \"{}\"", clause(&lower, word)));
    }
    for word in ["causal halved", "causal attention halved", "causal-halved"] {
        if lower.contains(word) {
            return record.convert("flop_counting", "causal", format!("notes \"{}\"", clause(&lower, word)));
        }
    }
    // MaxText and Megatron-Core halve the FLOPs of causal attention since mid 2025 (MaxText pull request 1988).
    let halves =
        matches!(family, "maxtext" | "megatron-core" | "megatron-bridge" | "nemo" | "nemo-automodel" | "primus");
    if halves && date >= "2025-07" {
        record.assume("flop_counting", "causal", "not stated, the software halves causal attention since mid 2025");
    } else {
        record.assume("flop_counting", "full", "not stated, the software counts full attention");
    }
}

/// Fills `peak_memory_gb` from a column or from a clause of the notes, as in `47.0 TFLOPs as logged; 16GB`.
fn memory(record: &mut Record, row: &Row) {
    if record.has("peak_memory_gb") || record.take(row, "memory_gb", "peak_memory_gb").is_some() {
        return;
    }
    let noted = row.text("notes").split(';').find_map(|part| {
        let (number, rest) = part.trim().split_once("GB")?;
        (rest.is_empty() || rest.starts_with(' ')).then(|| number.trim().parse::<f64>().ok())?
    });
    if let Some(gb) = noted.filter(|gb| *gb > 0.0) {
        record.convert("peak_memory_gb", gb, format!("notes \"{gb}GB\""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mfu_denominator_is_parsed_from_notes() {
        assert_eq!(denominator("remat; MFU vs 197 TF"), Some(197.0));
        assert_eq!(denominator("MFU denominator 989.4; x"), Some(989.4));
        assert_eq!(denominator("MFU uses 2250 TF BF16 reference also for MXFP8"), Some(2250.0));
        assert_eq!(denominator("MFU uses 6N + 12*L*s*h (full attention)"), None);
        assert_eq!(denominator("MFU denominator dense bf16 peak"), None);
    }
}
