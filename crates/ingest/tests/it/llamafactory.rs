//! Tests of LLaMA-Factory's `trainer_log.jsonl`. The records are written as by `LogCallback` of the packages
//! llamafactory 0.7.1, 0.8.3 and 0.9.5 of PyPI; none is a recorded run.

use atlas_ingest::observation::Observation;
use atlas_ingest::{Context, Follow, Ingested};
use serde_json::{Value, json};

use crate::common::{facts, read};

/// Step and time of a record in seconds.
type At = (u64, f64);

fn clock(seconds: f64) -> String {
    let whole = seconds as u64;
    format!("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
}

/// A record of release 0.9.5 with the options `include_num_input_tokens_seen` and `RECORD_VRAM`. There are 4096 tokens
/// in a step.
fn record((step, seconds): At, loss: Option<f64>) -> String {
    let tokens = step * 4096;
    let throughput = (tokens as f64 / seconds * 100.0).round() / 100.0;
    let mut record = json!({
        "current_steps": step, "total_steps": 40, "lr": 1e-5, "epoch": step as f64 / 40.0,
        "percentage": step as f64 / 0.4, "elapsed_time": clock(seconds), "remaining_time": clock(40.0 - step as f64),
        "throughput": throughput, "total_tokens": tokens, "vram_allocated": 61.5, "vram_reserved": 70.25,
    });
    record[if loss.is_some() { "loss" } else { "eval_loss" }] = loss.unwrap_or(1.0).into();
    // The tool writes `current_steps` first.
    let text = record.to_string();
    let first = format!("\"current_steps\":{step},");
    format!("{{{first}{}\n", text.trim_start_matches('{').replace(&first, ""))
}

/// Steps of 1.25 s after 30 s for the first ten, and an evaluation of 12 s at step 20.
fn log() -> String {
    let steps = [(10, 30.0), (20, 42.5), (30, 67.0), (40, 79.5)];
    let mut records: Vec<String> = steps.map(|at: At| record(at, Some(3.0 - at.0 as f64 / 40.0))).to_vec();
    records.insert(2, record((20, 54.5), None));
    records.concat()
}

fn times(ingested: &Ingested) -> Vec<Vec<f64>> {
    let rounded = |seconds: &f64| (seconds * 1e3).round() / 1e3;
    let runs = ingested.readings[0].runs.iter();
    runs.map(|run| run.seconds.kept().iter().map(rounded).collect()).collect()
}

#[test]
fn step_times_are_more_precise_than_a_second_and_exclude_evaluations() {
    let ingested = read("trainer_log.jsonl", log().as_bytes());
    assert_eq!(times(&ingested), [[1.25, 1.25, 1.25]]);
    let facts = facts(&log());
    assert_eq!((facts["n_records"].as_u64(), &facts["steps"]), (Some(4), &json!([10, 40])));
    assert_eq!(facts["loss"], json!({"n": 4, "first": 2.75, "last": 2.0}));
    assert_eq!((&facts["total_iterations_planned"], &facts["log_interval"]), (&json!(40), &json!(10)));
    let rate = facts["tokens_per_s"]["median_no_warmup"].as_f64().unwrap();
    assert!((rate - 4096.0 / 1.25).abs() < 0.5, "{rate}");
    assert_eq!(facts["consumed_tokens_last"], 163_840);
    assert_eq!(facts["max_memory_gb"], 61.5 * 1.073_741_824);
}

#[test]
fn records_of_earlier_releases_are_read() {
    // 0.7 has no tokens and states missing values. 0.8 states the rate as text, 0.00 if tokens are not counted.
    for tail in ["", ", \"throughput\": \"0.00\", \"total_tokens\": 0"] {
        let record = |step: u64, time: &str| {
            format!(
                "{{\"current_steps\": {step}, \"total_steps\": 40, \"loss\": 1.5, \"eval_loss\": null, \"predict_loss\": \
                 null, \"reward\": null, \"learning_rate\": 2e-05, \"epoch\": 0.5, \"percentage\": 1.0, \
                 \"elapsed_time\": \"{time}\", \"remaining_time\": \"1:00:00\"{tail}}}\n"
            )
        };
        let text = record(10, "23:59:50") + &record(20, "1 day, 0:00:10") + &record(30, "1 day, 0:00:30");
        let ingested = read("trainer_log.jsonl", text.as_bytes());
        assert_eq!(times(&ingested), [[2.0, 2.0]]);
        let reading = &ingested.readings[0];
        assert!(reading.notes.iter().any(|note| note.contains("whole seconds")), "{:?}", reading.notes);
        assert_eq!(reading.runs[0].learning_rate.kept(), [2e-5; 3]);
        assert!(reading.facts.get("tokens_per_s").is_none() && reading.facts.get("consumed_tokens_last").is_none());
    }
}

#[test]
fn resumed_repeated_and_joined_logs_have_no_times_across_their_ends() {
    // A run that continues from step 20 appends to the file; its times start again.
    let resumed = record((10, 30.0), Some(2.5)) + &record((20, 42.5), Some(2.0)) + &record((30, 15.0), Some(1.5));
    assert_eq!(times(&read("trainer_log.jsonl", resumed.as_bytes())), [[1.25]]);
    let twice: String = log().lines().flat_map(|line| [line, "\n", line, "\n"]).collect();
    let ingested = read("trainer_log.jsonl", twice.as_bytes());
    assert_eq!(times(&ingested), [[1.25; 3]]);
    assert_eq!(ingested.readings[0].facts.number("copies_of_other_ranks"), Some(4.0));
    // A longer log, because copies of a few records are dropped.
    let long: String =
        (1..=12).map(|step| record((step, 10.0 + 1.25 * step as f64), Some(1.0 / step as f64))).collect();
    let ingested = read("trainer_log.jsonl", long.repeat(2).as_bytes());
    assert_eq!(times(&ingested), [[1.25; 11], [1.25; 11]]);
    assert_eq!(ingested.readings[0].facts.number("restarts"), Some(1.0));
}

#[test]
fn a_log_cut_anywhere_gives_only_values_of_the_whole_log() {
    let text = log();
    let losses: Vec<f64> = vec![2.75, 2.5, 2.25, 2.0];
    for end in 0..text.len() {
        let Ok(ingested) = atlas_ingest::ingest(&text.as_bytes()[..end], &Context::default()) else { continue };
        let run = &ingested.readings[0].runs[0];
        assert!(losses.starts_with(run.loss.kept()), "{end}");
        assert!(times(&ingested)[0].iter().all(|seconds| *seconds == 1.25), "{end}");
    }
    let cut = text.rfind("\"total_tokens\"").unwrap();
    let ingested = read("trainer_log.jsonl", &text.as_bytes()[..cut]);
    assert_eq!(ingested.readings[0].runs[0].n, 3);
}

#[test]
fn records_are_observed_while_the_log_grows() {
    let (mut follow, mut seconds) = (Follow::new(&Context::default()), Vec::new());
    for bytes in log().as_bytes().chunks(100) {
        follow.feed(bytes, |observation| match observation {
            Observation::Step(step) => seconds.push(step.seconds.map(|seconds| (seconds * 1e3).round() / 1e3)),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(seconds, [None, Some(1.25), Some(1.25), Some(1.25)]);
}

#[test]
fn the_summary_at_the_end_and_predictions_are_no_steps() {
    let end = "{\"current_steps\": 40, \"total_steps\": 40, \"epoch\": 1.0, \"percentage\": 100.0, \"elapsed_time\": \
               \"0:01:20\", \"remaining_time\": \"0:00:00\"}\n";
    let facts = facts(&(log() + end));
    assert_eq!((&facts["n_records"], facts["step_time_s"]["n"].as_u64()), (&Value::from(4), Some(3)));
    assert!(atlas_ingest::ingest(end.as_bytes(), &Context::default()).is_err());
}
