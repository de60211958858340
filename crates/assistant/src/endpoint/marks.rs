//! Classification of the numbers in an answer: from tools, from the question, or from neither.

use serde::Serialize;
use serde_json::Value;

/// Numbers of an answer by origin, as written in the answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NumberOrigins {
    /// Numbers computed by a tool.
    pub tools: Vec<String>,
    /// Numbers that occur in the question or the scenario.
    pub given: Vec<String>,
    /// Numbers from neither, made up by the model.
    pub unverified: Vec<String>,
}

impl NumberOrigins {
    /// Describes the numbers, a line for each origin.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let kinds = [
            ("numbers from tools", &self.tools),
            ("numbers from the question", &self.given),
            ("numbers NOT from a tool, to be verified", &self.unverified),
        ];
        let line = |(what, all): &(&str, &Vec<String>)| format!("{what}: {}", all.join(", "));
        kinds.iter().filter(|(_, all)| !all.is_empty()).map(line).collect()
    }
}

/// A number in a text.
#[derive(Debug, Clone, PartialEq)]
struct Number {
    text: String,
    value: f64,
    /// Half a unit of the last digit.
    slack: f64,
    digits: usize,
}

/// Classifies the numbers of an answer. A number originates from a text that contains the same number, rounded to the
/// digits of the answer, and possibly scaled by a power of a thousand or as a percentage.
#[must_use]
pub fn classify_numbers(answer: &str, tools: &[&str], given: &[&str]) -> NumberOrigins {
    let all = |texts: &[&str]| -> Vec<f64> { texts.iter().flat_map(|text| values(text)).collect() };
    let (computed, stated) = (all(tools), all(given));
    let mut marks = NumberOrigins::default();
    for number in numbers(answer) {
        let from = |values: &[f64]| values.iter().any(|value| same(&number, *value));
        let kind = if from(&computed) {
            &mut marks.tools
        } else if from(&stated) {
            &mut marks.given
        } else {
            &mut marks.unverified
        };
        if !kind.contains(&number.text) {
            kind.push(number.text.clone());
        }
    }
    marks
}

fn same(number: &Number, value: f64) -> bool {
    const SCALES: [f64; 8] = [1.0, 100.0, 1e3, 1e-3, 1e-6, 1e-9, 1e-12, 1e6];
    // With one or two digits, a scaled match would be found for almost any number.
    let scales = if number.digits < 3 { &SCALES[..1] } else { &SCALES[..] };
    let fits = |scale: &f64| {
        let scaled = value * scale;
        (scaled - number.value).abs() <= number.slack * 1.000_001 + 1e-12 * scaled.abs()
    };
    // A short integer is a count and must match exactly.
    if number.digits < 3 && number.slack >= 0.5 {
        return (value - number.value).abs() < 1e-9;
    }
    scales.iter().any(fits)
}

/// All numbers in a JSON text, including those within strings, or in any other text.
fn values(text: &str) -> Vec<f64> {
    fn collect(value: &Value, into: &mut Vec<f64>) {
        match value {
            Value::Number(number) => into.extend(number.as_f64()),
            Value::String(text) => into.extend(numbers(text).into_iter().map(|number| number.value)),
            Value::Array(all) => all.iter().for_each(|value| collect(value, into)),
            Value::Object(all) => all.values().for_each(|value| collect(value, into)),
            Value::Null | Value::Bool(_) => {}
        }
    }
    let mut all = Vec::new();
    match serde_json::from_str::<Value>(text) {
        Ok(value) => collect(&value, &mut all),
        Err(_) => all.extend(numbers(text).into_iter().map(|number| number.value)),
    }
    all
}

/// Numbers in a text, without those within words and names (`h100`, `llama-3.1-70b`) and the numbering of lists.
fn numbers(text: &str) -> Vec<Number> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split(|c: char| {
            c.is_whitespace()
                || matches!(c, '(' | ')' | '[' | ']' | '"' | '*' | '|' | '=' | '~' | '≈' | '$' | '<' | '>' | ':' | ';')
        });
        let first = words.clone().find(|word| !word.is_empty());
        for word in &mut words {
            let entry = first == Some(word) && word.ends_with('.') && word.trim_end_matches('.').parse::<u32>().is_ok();
            if !entry {
                found.extend(number(word));
            }
        }
    }
    found
}

/// Parses a word as a number with an optional unit.
fn number(word: &str) -> Option<Number> {
    let word = word.trim_start_matches(['+', '-', '−', '–', '\'', '`', '_']);
    let end = word.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ','))).unwrap_or(word.len());
    let (digits, unit) = word.split_at_checked(end)?;
    let digits = digits.trim_end_matches(['.', ',']);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (exponent, unit) = match unit
        .strip_prefix(['e', 'E'])
        .map(|rest| (rest, rest.trim_matches(|c: char| !c.is_ascii_digit() && c != '-')))
    {
        Some((_, power)) if !power.is_empty() => (power.parse::<i32>().ok()?, ""),
        _ => (0, unit),
    };
    let scale = match unit.chars().next() {
        Some('k') if unit.len() == 1 => 1e3,
        Some('M') if unit.len() == 1 => 1e6,
        Some('B') if unit.len() == 1 => 1e9,
        Some('T') if unit.len() == 1 => 1e12,
        _ => 1.0,
    };
    // `8x7b` and `70b-train` are names.
    let name = unit.len() > 1 && unit.chars().skip(1).any(|c| c.is_ascii_digit() || c == '-');
    if name || (unit.starts_with('b') && unit.len() == 1) {
        return None;
    }
    let plain = digits.replace(',', "");
    let value: f64 = plain.parse().ok()?;
    let decimals = plain.split_once('.').map_or(0, |(_, rest)| rest.len());
    let power = 10_f64.powi(exponent) * scale;
    let slack = 0.5 * 10_f64.powi(-i32::try_from(decimals).ok()?) * power;
    let digits = plain.chars().filter(char::is_ascii_digit).count();
    Some(Number {
        text: word.trim_end_matches(['.', ',', '\'', '`', '_']).to_owned(),
        value: value * power,
        slack,
        digits,
    })
    .filter(|number| number.value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_an_answer_are_marked_by_origin() {
        let tools = [
            r#"{"figures": {"tpot_ms": {"value": 19.8734, "text": "19.87 ms"}, "tokens_per_sec": {"value": 6379.4}}}"#,
        ];
        let answer = "On llama3.1-70b-serve with 8 h100 TPOT is 19.9 ms and the throughput 6,379 tok/s (6.38 ktok/s).\n\
                      1. It would be 12.3 ms with magic, or 42.";
        let marks = classify_numbers(answer, &tools, &["serve on 8 h100"]);
        assert_eq!(marks.tools, ["19.9", "6,379", "6.38"]);
        assert_eq!(marks.given, ["8"]);
        assert_eq!(marks.unverified, ["12.3", "42"]);
        assert!(marks.lines().iter().any(|line| line.contains("NOT from a tool")));
    }

    #[test]
    fn approximate_value_is_not_attributed_to_a_tool() {
        let marks = classify_numbers("It is 19.7 ms, 54 % and 55 %.", &[r#"{"tpot": 19.87, "share": 0.547}"#], &[]);
        assert_eq!((marks.tools.len(), marks.unverified.len()), (0, 3), "{marks:?}");
        let marks = classify_numbers("54.7 %", &[r#"{"share": 0.547}"#], &[]);
        assert_eq!(marks.tools, ["54.7"]);
    }
}
