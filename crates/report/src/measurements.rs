//! Text output of data read from logs: what it is, its metrics, its configuration with origins, and which lines were
//! used.

use serde_json::Value;

use super::table::{Table, left, right, wrap};
use atlas_core::units::significant;
use atlas_ingest::{Context, Ingested, Reading, measurement};

/// Maximum values of a list that are shown.
const MAX_LIST_VALUES: usize = 8;
/// Width to which text is wrapped, in columns.
const WIDTH: usize = 100;

/// Renders one file as a page of text.
#[must_use]
pub fn file(ingested: &Ingested, context: &Context) -> String {
    let mut out = String::new();
    for (index, reading) in ingested.readings.iter().enumerate() {
        let lead = if index == 0 { format!("{}: ", ingested.file) } else { "  also: ".to_owned() };
        out += &format!("{lead}{} ({}, {})\n\n", reading.tool, reading.format, reading.kind);
        out += &reading_text(reading, context);
    }
    out += &tally(ingested);
    out.push('\n');
    out
}

fn reading_text(reading: &Reading, context: &Context) -> String {
    let mut out = String::new();
    let mut series = Table::new([
        left(""),
        right("n"),
        right("warm-up"),
        right("mean"),
        right("95 % of the mean"),
        right("median"),
        right("min"),
        right("max"),
        right("std"),
        right("p95"),
        right("outliers"),
    ]);
    let mut facts = Table::new([left(""), left("")]);
    let (mut has_series, mut blocks) = (false, Vec::new());
    for (name, value) in reading.facts.iter() {
        if value.get("mean_no_warmup").is_some() {
            has_series = true;
            series.row(statistics(name, value));
        } else if let Some(rows) = value.as_array().filter(|rows| rows.iter().any(Value::is_object)) {
            blocks.push((name, rows));
        } else {
            facts.row([format!("  {name}"), format_value(value)]);
        }
    }
    if has_series {
        out += &series.render();
        out.push('\n');
    }
    out += &facts.render();
    for (name, rows) in blocks {
        out += &format!("\n  {name}\n{}", list(rows));
    }
    if reading.runs.len() > 1 {
        out += &runs(reading, context);
    }
    let mut configuration = Table::new([left("  configuration"), left(""), left("from")]);
    let mut known = false;
    for (name, value, origin) in reading.config.iter() {
        known = true;
        configuration.row([format!("  {name}"), format_value(value), origin.description().to_owned()]);
    }
    if known {
        out += &format!("\n{}", configuration.render());
    }
    if let Some(run) = reading.runs.first() {
        let missing = measurement::missing(reading, run);
        if !missing.is_empty() {
            let names = missing.join(", ");
            out += &format!("\n  not in the log: {names}; add them with --set NAME=VALUE\n");
        }
    }
    for note in &reading.notes {
        out += &format!("  note: {}\n", wrap(note, WIDTH, "    ").trim());
    }
    out.push('\n');
    out
}

fn runs(reading: &Reading, context: &Context) -> String {
    let mut table = Table::new([
        left("  runs"),
        left("lines"),
        left("steps"),
        right("n"),
        right("warm-up"),
        right("mean s"),
        right("median s"),
        right("tokens/s/GPU"),
    ]);
    for (index, run) in reading.runs.iter().enumerate() {
        let seconds = run.stats(&run.seconds, reading.tool_warmup_steps, context);
        let tokens = run.stats(&run.tokens, reading.tool_warmup_steps, context);
        let figure = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| significant(value, 5));
        let step = |step: Option<u64>| step.map_or_else(|| "?".to_owned(), |step| step.to_string());
        let dropped = seconds.or(tokens).map_or_else(|| "-".to_owned(), |stats| stats.warmup_dropped.to_string());
        table.row([
            format!("  {}", index + 1),
            format!("{}-{}", run.lines[0], run.lines[1]),
            format!("{}-{}", step(run.first_step), step(run.last_step)),
            run.n.to_string(),
            dropped,
            figure(seconds.map(|stats| stats.mean)),
            figure(seconds.map(|stats| stats.median)),
            figure(tokens.map(|stats| stats.mean)),
        ]);
    }
    format!("\n{}", table.render())
}

fn statistics(name: &str, value: &Value) -> Vec<String> {
    let figure = |name: &str| value.get(name).map_or_else(String::new, format_value);
    let interval = value.get("mean_interval").and_then(Value::as_array);
    let interval =
        interval.map_or_else(String::new, |ends| ends.iter().map(format_value).collect::<Vec<_>>().join(" to "));
    let mut out = vec![format!("  {name}"), figure("n"), figure("warmup_dropped"), figure("mean_no_warmup"), interval];
    let rest = ["median_no_warmup", "min_no_warmup", "max_no_warmup", "std_no_warmup", "p95_no_warmup", "outliers"];
    out.extend(rest.map(figure));
    out
}

/// Renders records as a table; field names are the columns.
fn list(rows: &[Value]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in rows.iter().filter_map(Value::as_object) {
        let new: Vec<&str> = row.keys().map(String::as_str).filter(|name| !names.contains(name)).collect();
        names.extend(new);
    }
    names.retain(|name| *name != "bytes_us_algbw_busbw");
    let mut out = String::new();
    // Wide records are split into several tables.
    for names in names.chunks(7) {
        let mut table = Table::new(names.iter().map(|name| right(format!("  {name}"))));
        for row in rows.iter().take(40) {
            table.row(names.iter().map(|name| row.get(*name).map_or_else(|| "-".to_owned(), format_value)));
        }
        out += &table.render();
    }
    if rows.len() > 40 {
        out += &format!("  … and {} more; use --format json to list them\n", rows.len() - 40);
    }
    out
}

/// Formats a value briefly.
fn format_value(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => match number.as_f64() {
            Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => format!("{value:.0}"),
            Some(value) => trimmed(&significant(value, 6)),
            None => number.to_string(),
        },
        Value::String(text) => text.chars().take(60).collect(),
        Value::Array(values) => {
            let mut words: Vec<String> = values.iter().take(MAX_LIST_VALUES).map(format_value).collect();
            if values.len() > MAX_LIST_VALUES {
                words.push(format!("… ({} in all)", values.len()));
            }
            words.join(" ")
        }
        Value::Object(map) => {
            let mut words: Vec<String> = map
                .iter()
                .take(MAX_LIST_VALUES)
                .map(|(name, value)| format!("{name} {}", format_value(value)))
                .collect();
            if map.len() > MAX_LIST_VALUES {
                words.push(format!("… ({} in all)", map.len()));
            }
            words.join(", ")
        }
    }
}

/// Removes trailing zeros after the decimal point.
fn trimmed(number: &str) -> String {
    match number.contains('.') && !number.contains('e') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number.to_owned(),
    }
}

fn tally(ingested: &Ingested) -> String {
    let tally = &ingested.tally;
    let mut out = format!(
        "  {} lines: {} read, {} with configuration, {} not recognized\n",
        tally.lines, tally.recognized, tally.noted, tally.passed_over
    );
    for (reason, skipped) in &tally.skipped {
        out += &format!("  skipped {} (first: line {}): {reason}\n", skipped.n, skipped.first_line);
    }
    if tally.dropped_readings > 0 {
        out += &format!("  runs not shown, beyond the limit of 4096: {}\n", tally.dropped_readings);
    }
    if tally.cut_lines > 0 {
        out += &format!("  {} lines were too long and were truncated\n", tally.cut_lines);
    }
    out
}

/// Renders a table of the supported formats.
#[must_use]
pub fn formats() -> String {
    let mut table = Table::new([left(""), left("")]);
    for (group, names) in [
        (
            "training",
            "Megatron-LM (old and new), Megatron-DeepSpeed, Megatron-Bridge, MindSpeed, GPT-NeoX, Primus, NeMo 1 and 2, \
             DLLogger, DeepSpeed (timer, pipeline, chat), torchtitan, torchtune, Hugging Face Trainer (output, \
             trainer_state.json; axolotl, ms-swift), LLaMA-Factory (trainer_log.jsonl), verl, nanotron, LitGPT, MaxText, Levanter, Composer (llm-foundry), nanoGPT and its speed runs, InternEvo, picotron, NxD, MLPerf training, outputs of notebooks, TensorBoard event files, \
             Weights & Biases (history as JSON Lines or CSV, CSV of a chart)",
        ),
        (
            "serving",
            "vLLM (bench serve, throughput, latency; text, JSON; server), SGLang (bench serving, offline, one batch; \
             text, JSON; server), TensorRT-LLM (trtllm-bench, C++ benchmarks, iterations), GenAI-Perf, AIPerf, LLMPerf, \
             GuideLLM (JSON, CSV, console), Perf Analyzer, InferenceMAX, llama-bench (md, json, jsonl, csv, sql), batched-bench, sweep-bench, \
             llama.cpp timings, llama-server, sweeps as CSV, MLPerf inference, Prometheus dumps (vLLM, SGLang)",
        ),
        ("network", "nccl-tests, rccl-tests, torch all_reduce_bench"),
        (
            "power and memory",
            "nvidia-smi (query CSV, table, dmon), rocm-smi (concise, lines, CSV, JSON), amd-smi (monitor, CSV, metric), \
             DCGM (exporter, dmon), MLPerf power, Zeus, CodeCarbon",
        ),
        ("benchmarks", "benchmark JSON of --format benchmark and of the predecessor comparison tool"),
    ] {
        for (index, line) in wrap(names, WIDTH - 20, "").lines().enumerate() {
            table.row([if index == 0 { group.to_owned() } else { String::new() }, line.to_owned()]);
        }
    }
    table.render()
}
