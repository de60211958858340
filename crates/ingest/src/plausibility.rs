//! Plausibility checks. Values that no accelerator reaches, and values of one report that contradict each other, are
//! listed in the notes of the reading. Nothing is corrected or left out.

use serde_json::{Map, Value};

use super::json::json_number;
use super::reading::Reading;
use super::training::Run;

/// Upper bound on the TFLOP/s of an accelerator, in any number format.
const MAX_TFLOPS: f64 = 4e4;
/// Upper bound on the memory of an accelerator, GB.
const MAX_MEMORY: f64 = 4e3;
/// Upper bound on the power of one accelerator, W.
const MAX_WATTS: f64 = 1e4;
/// Upper bound on the bus bandwidth of an accelerator, GB/s.
const MAX_BANDWIDTH: f64 = 2e4;
/// Tolerated relative difference between two values that should be equal.
const TOLERANCE: f64 = 0.05;
/// Tolerated relative difference between a rate averaged over single steps and the overall mean.
const RATE_TOLERANCE: f64 = 0.25;
/// Maximum number of notes per reading.
const MAX_NOTES: usize = 8;

/// Adds a note for every implausible value.
pub(crate) fn check(reading: &mut Reading) {
    let mut notes = Vec::new();
    for run in &reading.runs {
        check_run(reading, run, &mut notes);
    }
    let facts: Map<String, Value> =
        reading.facts.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
    // Facts of a reading with runs are statistics of the series checked above.
    if reading.runs.is_empty() {
        check_values(&facts, "", &mut notes);
    }
    check_report(&facts, "", &mut notes);
    let results = facts.get("results").and_then(Value::as_array).into_iter().flatten();
    for (index, result) in results.filter_map(Value::as_object).enumerate() {
        let place = format!("result {}: ", index + 1);
        check_values(result, &place, &mut notes);
        check_report(result, &place, &mut notes);
    }
    notes.dedup();
    if notes.len() > MAX_NOTES {
        let more = notes.len() - MAX_NOTES;
        notes.truncate(MAX_NOTES);
        notes.push(format!("{more} more values are impossible or contradict each other"));
    }
    reading.notes.extend(notes);
}

/// Checks a training run.
fn check_run(reading: &Reading, run: &Run, notes: &mut Vec<String>) {
    let place = format!("lines {}-{}", run.lines[0], run.lines[1]);
    for (name, series, most) in [
        ("TFLOP/s per accelerator", &run.tflops, MAX_TFLOPS),
        ("% MFU", &run.mfu, 100.0),
        ("GB of memory per accelerator", &run.memory, MAX_MEMORY),
    ] {
        if let Some(value) = series.max().filter(|value| *value > most) {
            notes.push(format!("impossible: {value} {name}, more than {most} ({place})"));
        }
    }
    for (name, series) in [("step time", &run.seconds), ("tokens/s", &run.tokens), ("TFLOP/s", &run.tflops)] {
        if let Some(value) = series.min().filter(|value| *value < 0.0) {
            notes.push(format!("impossible: negative {name} {value} ({place})"));
        }
    }
    let config = reading.settings_of(run);
    let batch = run.batch.or_else(|| config.get("global_batch_size"));
    let sizes = (batch, config.get("seq_len"), config.get("num_gpus"));
    let rates = (run.seconds.median().filter(|seconds| *seconds > 0.0), run.tokens.median());
    if let ((Some(batch), Some(length), Some(gpus)), (Some(seconds), Some(stated))) = (sizes, rates)
        && gpus > 0.0
    {
        let computed = batch * length / seconds / gpus;
        if relative_difference(computed, stated) > RATE_TOLERANCE {
            notes.push(format!(
                "contradiction: {stated} tokens/s per accelerator, but batch size x sequence length / step time / \
                 accelerators is {computed:.1} ({place})"
            ));
        }
    }
}

/// Relative difference of two values.
fn relative_difference(a: f64, b: f64) -> f64 {
    let size = a.abs().max(b.abs());
    if size > 0.0 { (a - b).abs() / size } else { 0.0 }
}

/// Whether `name` denotes a percentage; a percentile does not.
fn is_percentage(name: &str) -> bool {
    name.contains("percent") && !name.contains("percentile")
}

/// Checks individual values of a report against physical limits.
fn check_values(report: &Map<String, Value>, place: &str, notes: &mut Vec<String>) {
    for (name, value) in report {
        for value in numbers(value) {
            let problem = match name.as_str() {
                name if is_percentage(name) && !(-0.5..=100.5).contains(&value) => "is not a percentage from 0 to 100",
                name if name.contains("busbw") && value > MAX_BANDWIDTH => "GB/s exceeds the bandwidth of any network",
                "power_w" | "mean_power_w_per_gpu" | "max_power_w" if !(0.0..=MAX_WATTS).contains(&value) => {
                    "W is outside the range of any accelerator"
                }
                name if (name.contains("throughput") || name.contains("_per_s") || name.contains("_ms"))
                    && value < 0.0 =>
                {
                    "is negative"
                }
                _ => continue,
            };
            notes.push(format!("impossible: {place}{name} {value} {problem}"));
        }
    }
}

/// Checks the values of a report against each other. A report is the facts of a reading, or one of several results.
fn check_report(report: &Map<String, Value>, place: &str, notes: &mut Vec<String>) {
    check_latencies(report, place, notes);
    check_rates(report, place, notes);
    if let (Some(most), Some(means)) = (number(report, "max_power_w"), report.get("mean_power_w_per_gpu")) {
        let mean = numbers(means).into_iter().fold(0.0, f64::max);
        if mean > most * (1.0 + 1e-9) {
            notes.push(format!("contradiction: {place}mean power {mean} W is above the maximum {most} W"));
        }
    }
}

/// Returns all numbers of a fact: the value itself, the elements of a list, or the values of a block.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Number(number) => number.as_f64().into_iter().collect(),
        Value::Array(list) => list.iter().filter_map(Value::as_f64).collect(),
        Value::Object(map) => map.values().filter_map(Value::as_f64).collect(),
        _ => Vec::new(),
    }
}

fn number(report: &Map<String, Value>, name: &str) -> Option<f64> {
    report.get(name).and_then(json_number)
}

/// Names of blocks of latency statistics.
const LATENCIES: [&str; 8] =
    ["ttft_ms", "tpot_ms", "itl_ms", "e2el_ms", "request_latency_ms", "latency_s", "latency_ns", "ttft_ns"];

/// Returns a statistic of a block, from a nested or a flat report.
fn statistic(report: &Map<String, Value>, block: &str, name: &str) -> Option<f64> {
    let nested = report.get(block).and_then(|block| block.get(name));
    nested.or_else(|| report.get(&format!("{block}.{name}"))).and_then(json_number)
}

/// Checks that percentiles do not decrease, that means do not exceed the maximum, and that the mean TTFT does not
/// exceed the mean request latency.
fn check_latencies(report: &Map<String, Value>, place: &str, notes: &mut Vec<String>) {
    for block in LATENCIES {
        let get = |name: &str| statistic(report, block, name);
        let percentiles = ["min", "p50", "p75", "p90", "p95", "p99", "p99.9", "max"];
        let known: Vec<(&str, f64)> = percentiles.iter().filter_map(|name| Some((*name, get(name)?))).collect();
        for pair in known.windows(2) {
            if let [(below, low), (above, high)] = pair
                && low > &(high * (1.0 + 1e-9))
            {
                notes.push(format!("contradiction: {place}{block} {below} {low} is above {above} {high}"));
            }
        }
        if let (Some(mean), Some(most)) = (get("mean"), get("max"))
            && mean > most * (1.0 + 1e-9)
        {
            notes.push(format!("contradiction: {place}{block} mean {mean} is above max {most}"));
        }
    }
    let first = statistic(report, "ttft_ms", "mean");
    for block in ["e2el_ms", "request_latency_ms"] {
        if let (Some(first), Some(whole)) = (first, statistic(report, block, "mean"))
            && first > whole * (1.0 + TOLERANCE)
        {
            notes.push(format!(
                "contradiction: {place}the mean TTFT of {first} ms exceeds the mean request latency of {whole} ms"
            ));
        }
    }
}

/// Checks that rates agree with counts divided by the duration.
fn check_rates(report: &Map<String, Value>, place: &str, notes: &mut Vec<String>) {
    let get = |name: &str| number(report, name);
    let seconds = get("duration_s").or_else(|| get("elapsed_s")).or_else(|| get("total_latency_ms").map(|ms| ms / 1e3));
    if let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) {
        let total = || Some(get("input_tokens")? + get("output_tokens")?);
        for (rate, count) in [
            ("request_throughput", get("successful_requests").or_else(|| get("requests"))),
            ("output_throughput", get("output_tokens")),
            ("total_token_throughput", total()),
            ("requests_per_s", get("requests")),
            ("total_tokens_per_s", get("total_tokens")),
        ] {
            let (Some(stated), Some(count)) = (get(rate), count) else { continue };
            let computed = count / seconds;
            if relative_difference(stated, computed) > TOLERANCE && (stated - computed).abs() > 0.01 {
                notes.push(format!(
                    "contradiction: {place}{rate} is {stated}, but {count} in {seconds} s give {computed:.3}/s"
                ));
            }
        }
    }
    // The Hugging Face Trainer prints both rates with three decimals.
    let rates = (get("train_samples_per_second"), get("train_steps_per_second"), get("global_batch_size"));
    if let (Some(samples), Some(steps), Some(batch)) = rates {
        let (least, most) = (batch * (steps - 6e-4), batch * (steps + 6e-4));
        if samples < least * (1.0 - RATE_TOLERANCE) || samples > most * (1.0 + RATE_TOLERANCE) {
            notes.push(format!(
                "contradiction: {place}{samples} samples/s and {steps} steps/s do not match a batch size of {batch}"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::{Facts, Origin};
    use serde_json::json;

    fn notes(facts: &[(&str, Value)]) -> Vec<String> {
        let mut reading = Reading { facts: Facts::default(), ..Reading::default() };
        for (name, value) in facts {
            reading.facts.set(*name, value.clone());
        }
        check(&mut reading);
        reading.notes
    }

    #[test]
    fn contradictions_of_a_serving_report_are_noted() {
        let sound = [
            ("successful_requests", json!(100)),
            ("duration_s", json!(50.0)),
            ("request_throughput", json!(2.0)),
            ("ttft_ms", json!({"mean": 20.0, "p50": 18.0, "p99": 40.0})),
            ("e2el_ms", json!({"mean": 200.0})),
        ];
        assert_eq!(notes(&sound), Vec::<String>::new());
        let wrong = [
            ("successful_requests", json!(100)),
            ("duration_s", json!(50.0)),
            ("request_throughput", json!(20.0)),
            ("ttft_ms", json!({"mean": 2000.0, "p50": 58.0, "p99": 40.0})),
            ("e2el_ms", json!({"mean": 200.0})),
        ];
        let found = notes(&wrong);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found.iter().all(|note| note.starts_with("contradiction: ")), "{found:?}");
    }

    #[test]
    fn physically_impossible_metrics_are_noted() {
        let mut run = Run::default();
        run.batch = Some(8.0);
        for _ in 0..3 {
            run.tflops.push(1e5);
            run.seconds.push(1.0);
            run.tokens.push(1000.0);
        }
        let mut reading = Reading { runs: vec![run], ..Reading::default() };
        reading.config.number("seq_len", Some(4096.0), Origin::File);
        reading.config.number("num_gpus", Some(8.0), Origin::File);
        check(&mut reading);
        assert_eq!(reading.notes.len(), 2, "{:?}", reading.notes);
        assert!(reading.notes.iter().any(|note| note.contains("100000 TFLOP/s")));
        assert!(reading.notes.iter().any(|note| note.contains("4096.0")));
        assert_eq!(notes(&[("sm_percent_mean", json!(180.0))]).len(), 1);
    }
}
