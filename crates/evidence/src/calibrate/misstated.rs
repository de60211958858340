//! Detection of invalid cells: text instead of numbers, negative counts, unknown modes and formats.

use serde_json::Value;

use super::columns::column;
use super::observation::number;
use crate::validate::columns::CellType;
use atlas_core::plan::Format;

/// Parses a number format, also as PyTorch and JAX name it: `torch.bfloat16`.
#[must_use]
pub fn format(word: &str) -> Option<Format> {
    let word = word.trim().to_lowercase();
    let word = word.rsplit('.').next().unwrap_or(&word);
    Format::named(match word {
        "bfloat16" | "bf16-mixed" | "amp_bf16" => "bf16",
        "float16" | "half" | "fp16-mixed" => "fp16",
        "float32" | "float" => "fp32",
        "float8" | "float8_e4m3fn" | "fp8_e4m3" | "amp_fp8" => "fp8",
        other => other,
    })
}

/// Returns why the value of a column is invalid, or `None` if it is valid or the column is unknown.
#[must_use]
pub fn invalid_value(name: &str, value: &Value) -> Option<String> {
    let column = column(name)?;
    let text = value.as_str().map(str::trim);
    if value.is_null() || text == Some("") {
        return None;
    }
    let found = text.map_or_else(|| value.to_string(), |text| format!("\"{text}\""));
    let expected = |what: &str| Some(format!("found {found}, expected {what}"));
    let plain = !value.is_object() && !value.is_array();
    if column.figure.is_some() {
        let sound = !plain || number(value).is_some_and(|number| number >= 0.0);
        return if sound { None } else { expected("a number of at least 0") };
    }
    if column.takes == CellType::Count {
        let sound = number(value).is_some_and(|number| number >= 1.0 && number.fract() == 0.0);
        return if sound { None } else { expected("a whole number from 1") };
    }
    if column.takes == CellType::Positive {
        let endless = text.is_some_and(|text| text.eq_ignore_ascii_case("inf"));
        let sound = endless || number(value).is_some_and(|number| number >= 0.0);
        return if sound { None } else { expected("a number of at least 0") };
    }
    match (column.name, text) {
        ("mode", Some(word)) if super::observation::mode(word).is_none() => expected("training or inference"),
        ("precision", Some(word)) if format(word).is_none() => {
            expected(&format!("one of {}", Format::NAMES.join(", ")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn implausible_cells_are_found_and_plausible_ones_are_not() {
        for (name, value) in [
            ("mode", json!("trainin")),
            ("precision", json!("fp99")),
            ("num_gpus", json!("-8")),
            ("tp", json!(-1)),
            ("tp", json!("0.5")),
            ("tokens_per_sec", json!("-80000")),
            ("tokens_per_sec", json!("1,007")),
            ("ttft_ms", json!("NaN")),
            ("seq_len", json!("inf")),
        ] {
            assert!(invalid_value(name, &value).is_some(), "{name}: {value}");
        }
        for (name, value) in [
            ("mode", json!("Training")),
            ("dtype", json!("torch.bfloat16")),
            ("num_gpus", json!("8")),
            ("tokens_per_sec", json!({"mean": 5.0})),
            ("request_rate", json!("inf")),
            ("mfu", json!("45%")),
            ("remark", json!("whatever")),
            ("tp", json!("")),
        ] {
            assert_eq!(invalid_value(name, &value), None, "{name}: {value}");
        }
    }
}
