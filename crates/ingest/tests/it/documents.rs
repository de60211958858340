//! Tests with truncated, doubled and concatenated documents, from which only values of one of their parts may be read.

use std::collections::BTreeSet;

use crate::common::documents::{DOCUMENTS, Draw};
use crate::common::{context, sample, sample_names};
use atlas_ingest::{Ingested, Origin, Reading};
use proptest::prelude::*;
use serde_json::Value;

/// Tool of a reading, name of a fact, and its value.
type Figure = (&'static str, String, String);

/// Names of facts that are counts or are computed over all records, so that they depend on the number of records.
const WORKED_OUT: [&str; 33] = [
    "n_records",
    "blocks",
    "tests",
    "rows",
    "snapshots",
    "tables",
    "header_lines",
    "readings",
    "distinct_timestamps",
    "duration_s",
    "total_power_w",
    "mean_power_w",
    "mean_total_power_w",
    "mean_power_w_per_gpu",
    "max_power_w",
    "min_power_w",
    "energy_wh_trapezoid_per_gpu_sum",
    "energy_j_sum",
    "mean_utilization_percent",
    "ranks",
    "op",
    "utilization_percent_max",
    "memory_used_mib_max",
    "temperature_max_c",
    "sm_percent_mean",
    "mem_percent_mean",
    "num_gpus",
    "runs",
    "missing_energy",
    "decode_records",
    "prefill_records",
    "summary_records",
    // A table of devices before a run describes its node.
    "gpus_per_node",
];

/// Formats whose facts are statistics over lines rather than values of a report.
const STATISTICS: [&str; 9] = [
    "nvidia-smi-csv",
    "nvidia-smi-dmon",
    "dcgmi-dmon",
    "vllm-server",
    "sglang-server",
    "mlperf-power",
    "llmperf-individual",
    "amd-smi-csv",
    "codecarbon-csv",
];

/// Whether a fact is of the largest row or an extreme of a table, and thus depends on which rows are present.
fn of_the_rows_at_hand(name: &str) -> bool {
    name.ends_with("at_max_size")
        || name.ends_with("size_bytes")
        || name.starts_with("max_busbw")
        || name == "results.ranks"
}

/// Maps derivatives to the tool they are derived from: without the lines that distinguish them, logs are read as those
/// of the latter.
fn family(tool: &'static str) -> &'static str {
    match tool {
        "megatron_deepspeed" | "gpt_neox" | "primus" => "megatron",
        other => other,
    }
}

fn leaves(path: &str, value: &Value, out: &mut Vec<(String, f64)>) {
    match value {
        Value::Number(number) => out.push((path.to_owned(), number.as_f64().unwrap())),
        Value::Array(list) => list.iter().for_each(|value| leaves(path, value, out)),
        Value::Object(map) => {
            for (name, value) in map {
                // Ignore keys that are device indices.
                if name.bytes().all(|byte| byte.is_ascii_digit()) {
                    leaves(path, value, out);
                    continue;
                }
                let inner = if path.is_empty() || path == "results" { name.clone() } else { format!("{path}.{name}") };
                leaves(&inner, value, out);
            }
        }
        _ => {}
    }
}

/// Returns the values of a reading. Facts of a training run are statistics of its steps: they are included if `known`
/// is true, but are not checked.
fn figures(reading: &Reading, known: bool) -> Vec<Figure> {
    let mut found: Vec<(String, f64)> = Vec::new();
    for run in &reading.runs {
        for (name, series) in [
            ("seconds", &run.seconds),
            ("loss", &run.loss),
            ("learning_rate", &run.learning_rate),
            ("grad_norm", &run.grad_norm),
            ("tokens", &run.tokens),
            ("tflops", &run.tflops),
            ("mfu", &run.mfu),
            ("memory", &run.memory),
        ] {
            found.extend(series.kept().iter().map(|value| (format!("run.{name}"), *value)));
        }
        let settings = reading.settings_of(run);
        for (name, value, origin) in settings.iter().filter(|(.., origin)| *origin == Origin::File) {
            let _ = origin;
            found.extend(value.as_f64().map(|value| (format!("config.{name}"), value)));
        }
    }
    for (name, value, _) in
        reading.config.iter().filter(|(name, _, origin)| *origin == Origin::File && *name != "num_gpus")
    {
        found.extend(value.as_f64().map(|value| (format!("config.{name}"), value)));
    }
    found.extend(reading.power.iter().map(|sample| ("power".to_owned(), sample.watts)));
    // If there are several snapshots of the device state, the facts are means.
    let statistics = STATISTICS.contains(&reading.format) || reading.facts.get("snapshots").is_some();
    if known || reading.runs.is_empty() && !statistics {
        for (name, value) in reading.facts.iter().filter(|(name, _)| !WORKED_OUT.contains(name)) {
            let path = if name == "results" { "results" } else { name };
            leaves(path, value, &mut found);
        }
    }
    let names =
        found.into_iter().filter(|(name, _)| !WORKED_OUT.contains(&name.as_str()) && !of_the_rows_at_hand(name));
    // Ignore rounding errors from the tenth digit on.
    names.map(|(name, value)| (family(reading.tool), name, format!("{value:.9e}"))).collect()
}

fn all(ingested: Option<&Ingested>, known: bool) -> BTreeSet<Figure> {
    let readings = ingested.into_iter().flat_map(|ingested| &ingested.readings);
    readings.flat_map(|reading| figures(reading, known)).collect()
}

fn read(text: &[u8]) -> Option<Ingested> {
    atlas_ingest::ingest(text, &context("a.log")).ok()
}

/// Values read from `text` that are not read from any of `parts`.
fn invented(text: &[u8], parts: &[&[u8]]) -> Vec<Figure> {
    let known: BTreeSet<Figure> = parts.iter().flat_map(|part| all(read(part).as_ref(), true)).collect();
    all(read(text).as_ref(), false).into_iter().filter(|figure| !known.contains(figure)).collect()
}

#[test]
fn every_document_is_read_as_its_format() {
    for (index, (format, write)) in DOCUMENTS.iter().enumerate() {
        let text = write(&mut Draw(index as u64));
        let ingested = read(text.as_bytes()).unwrap_or_else(|| panic!("{format}: not recognized\n{text}"));
        assert_eq!(ingested.readings[0].format, *format, "{text}");
        assert!(!all(Some(&ingested), false).is_empty() || STATISTICS.contains(format), "{format}");
        assert_eq!(ingested.readings.len(), 1, "{format}");
    }
}

#[test]
fn concatenated_documents_yield_only_metrics_of_each_document() {
    for (first, (a, write_a)) in DOCUMENTS.iter().enumerate() {
        for (second, (b, write_b)) in DOCUMENTS.iter().enumerate() {
            let (one, two) = (write_a(&mut Draw(first as u64)), write_b(&mut Draw(1000 + second as u64)));
            let found = invented(format!("{one}{two}").as_bytes(), &[one.as_bytes(), two.as_bytes()]);
            assert!(found.is_empty(), "{a} + {b}: {found:?}");
        }
    }
}

/// The second half of a document, as printed by `tail`: from the middle of a line, and from the next line on.
fn tails(text: &str) -> Vec<&str> {
    let tail = text.get(text.len() / 2..);
    [tail, tail.and_then(|tail| Some(tail.split_once('\n')?.1))].into_iter().flatten().collect()
}

#[test]
fn document_tail_inherits_nothing_from_the_preceding_document() {
    let known = |text: &str| all(read(text.as_bytes()).as_ref(), true);
    let written = |from: u64| {
        let texts = DOCUMENTS.iter().zip(from..).map(|((_, write), seed)| write(&mut Draw(seed)));
        texts.map(|text| (known(&text), text)).collect::<Vec<_>>()
    };
    let (firsts, seconds) = (written(0), written(1000));
    let mut wrong = BTreeSet::new();
    for ((known_whole, two), (b, _)) in seconds.iter().zip(DOCUMENTS) {
        for tail in tails(two) {
            let known_tail = known(tail);
            for ((known_first, one), (a, _)) in firsts.iter().zip(DOCUMENTS) {
                let found = all(read(format!("{one}{tail}").as_bytes()).as_ref(), false);
                let held =
                    |figure: &Figure| [known_first, known_whole, &known_tail].iter().any(|set| set.contains(figure));
                wrong.extend(
                    found.into_iter().filter(|figure| !held(figure)).map(|figure| format!("{a} + {b}: {figure:?}")),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{} figures:\n{}", wrong.len(), Vec::from_iter(wrong).join("\n"));
}

#[test]
fn truncating_a_document_invents_no_metric() {
    for (index, (format, write)) in DOCUMENTS.iter().enumerate() {
        let text = write(&mut Draw(index as u64));
        for end in (0..text.len()).rev().take(500) {
            let found = invented(&text.as_bytes()[..end], &[text.as_bytes()]);
            assert!(
                found.is_empty(),
                "{format} cut at {end}: {found:?}\n…{}",
                text.get(end.saturating_sub(200)..end).unwrap_or("")
            );
        }
    }
}

#[test]
fn joining_recorded_logs_invents_no_metric() {
    let names = sample_names();
    for (index, name) in names.iter().enumerate() {
        for step in [1, 7, 23] {
            let other = &names[(index + step) % names.len()];
            let (mut one, two) = (sample(name), sample(other));
            if !one.ends_with(b"\n") {
                one.push(b'\n');
            }
            let found = invented(&[one.clone(), two.clone()].concat(), &[&one, &two]);
            assert!(found.is_empty(), "{name} + {other}: {found:?}");
        }
    }
}

#[test]
fn recorded_log_tail_inherits_nothing_from_the_preceding_log() {
    let names = sample_names();
    let mut wrong = BTreeSet::new();
    for (index, name) in names.iter().enumerate() {
        let mut one = sample(name);
        if !one.ends_with(b"\n") {
            one.push(b'\n');
        }
        for step in [1, 7, 23] {
            let other = &names[(index + step) % names.len()];
            let two = sample(other);
            let Some(line) = two.iter().skip(two.len() / 3).position(|byte| *byte == b'\n') else { continue };
            let tail = &two[two.len() / 3 + line + 1..];
            let found = invented(&[&one, tail].concat(), &[&one, &two, tail]);
            wrong.extend(
                found.into_iter().map(|(tool, figure, value)| format!("{name} + {other}: {tool} {figure} {value}")),
            );
        }
    }
    assert!(wrong.is_empty(), "{} figures:\n{}", wrong.len(), Vec::from_iter(wrong).join("\n"));
}

#[test]
fn doubling_a_recorded_log_invents_no_metric() {
    for name in sample_names() {
        let mut once = sample(&name);
        if !once.ends_with(b"\n") {
            once.push(b'\n');
        }
        let found = invented(&once.repeat(2), &[&once]);
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

/// Rows with as many commas as a table above them has columns, as printed by `tail` for another file.
#[test]
fn rows_of_another_document_are_not_added_to_the_table_above() {
    for (one, two) in [
        ("vllm_bench/neuron_qwen3_30b_trn2.csv", "nvidia_smi/gptoss120b_h200_tp8_c64_gpu_metrics.csv"),
        ("zeus/a40_resnet50_power_limits.csv", "nemo/nemo2_resiliency_demo.log"),
    ] {
        let (mut joined, two) = (sample(one), sample(two));
        joined.push(b'\n');
        let one = joined.clone();
        let begin = two.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        joined.extend(&two[begin..]);
        let found = invented(&joined, &[&one, &two, &two[begin..]]);
        assert!(found.is_empty(), "{found:?}");
    }
}

/// One of the documents, with random values.
fn document() -> impl Strategy<Value = String> {
    (prop::sample::select(DOCUMENTS.to_vec()), any::<u64>()).prop_map(|((_, write), seed)| write(&mut Draw(seed)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn truncated_random_document_yields_only_metrics_of_the_whole(text in document(), end in any::<prop::sample::Index>()) {
        let end = end.index(text.len() + 1);
        let found = invented(&text.as_bytes()[..end], &[text.as_bytes()]);
        prop_assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn doubled_document_yields_only_metrics_of_the_single_one(text in document()) {
        let found = invented(text.repeat(2).as_bytes(), &[text.as_bytes()]);
        prop_assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn joined_and_truncated_documents_yield_only_metrics_of_their_parts(
        texts in prop::collection::vec(document(), 2..4),
        end in any::<prop::sample::Index>(),
    ) {
        let joined = texts.concat();
        let end = joined.len() / 2 + end.index(joined.len() / 2);
        let parts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let found = invented(&joined.as_bytes()[..end], &parts);
        prop_assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn truncated_recorded_log_yields_only_its_own_metrics(
        name in prop::sample::select(sample_names()),
        end in any::<prop::sample::Index>(),
    ) {
        let text = sample(&name);
        let found = invented(&text[..end.index(text.len())], &[&text]);
        prop_assert!(found.is_empty(), "{name}: {found:?}");
    }
}
