//! `atlas ingest`: extracts measurements from logs.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use color_eyre::eyre::WrapErr as _;
use serde_json::{Value, json};

use super::args::{Globals, IngestArgs, IngestFormat};
use super::experiment_files::ActiveConfiguration;
use super::failure::Failure;
use super::output::{self, write_stderr};
use super::{keep, pick, save};
use atlas_cluster::history::{Draft, EntryKind};
use atlas_config::Workload;
use atlas_core::plan::Methodology;
use atlas_core::sort;
use atlas_ingest as ingest;
use atlas_ingest::named::assign;
use atlas_ingest::{Config, Context, IngestError, Ingested, NamedFile, Origin, joint, measurement, predecessor};
use atlas_report::measurements as described;

/// Reads the files and prints or writes the result.
pub fn run(args: IngestArgs, globals: &Globals) -> color_eyre::Result<()> {
    if args.formats {
        output::print(&globals.charset().write(&described::formats()))?;
        return Ok(());
    }
    let mut settings = settings(&args)?;
    if let Some(name) = &args.workload {
        let library = pick::library(globals);
        fill(&mut settings, library.workload(name).map_err(Failure::from)?);
    }
    let context = Context { name: String::new(), warmup: args.warmup, seed: args.seed, settings };
    let (mut files, failed) = read_all(&sources(&args, globals)?, &context)?;
    joint::join(&mut files);
    if files.is_empty() {
        return Err(Failure::Reported.into());
    }
    for file in &files {
        keep_measurements(file, &context, args.workload.as_deref());
    }
    let text = match args.format {
        IngestFormat::Table => {
            let text: String = files.iter().map(|file| described::file(file, &context)).collect();
            globals.charset().write(&text).into_owned()
        }
        IngestFormat::Json => pretty(one_or_all(files.iter().map(|file| document(file, &context)).collect()))?,
        IngestFormat::Benchmark => {
            let runs = files.iter().flat_map(|file| {
                let of = |reading| predecessor::benchmarks(&file.file, reading, &context);
                file.readings.iter().flat_map(of).collect::<Vec<Value>>()
            });
            let runs: Vec<Value> = runs.collect();
            if runs.is_empty() {
                write_stderr(
                    "error: no training run with step times or rates; use --format json to see what was found",
                );
                return Err(Failure::Reported.into());
            }
            pretty(one_or_all(runs))?
        }
        IngestFormat::Yaml => {
            let all: Vec<Value> = files.iter().flat_map(|file| measurement::measurements(file, &context)).collect();
            serde_yaml::to_string(&json!({"measurements": all}))?
        }
    };
    match &args.out {
        Some(path) => save::save(path, &text)?,
        None => output::print(&text)?,
    }
    if failed { Err(Failure::Reported.into()) } else { Ok(()) }
}

/// Saves every measurement of a file in the history, with its configuration.
fn keep_measurements(file: &Ingested, context: &Context, workload: Option<&str>) {
    for body in measurement::measurements(file, context) {
        let mut figures = keep::numbers(body.get("figures").unwrap_or(&Value::Null));
        // The mean without warm-up represents the step time.
        if let Some(mean) = figures.get("step_time_s.mean_no_warmup").copied() {
            figures.insert("step_time_s".to_owned(), mean);
        }
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        let settings = body.get("configuration").and_then(Value::as_object).into_iter().flatten();
        let settings = settings.filter_map(|(name, setting)| Some((name.clone(), setting.get("value")?.clone())));
        let mut inputs: std::collections::BTreeMap<String, Value> = sort::collect_unsorted(settings);
        inputs.insert("log".to_owned(), keep::absolute(&file.file).into());
        let device = inputs.get("device").and_then(Value::as_str).map(str::to_owned);
        let workload =
            workload.map(str::to_owned).or_else(|| inputs.get("model").and_then(Value::as_str).map(str::to_owned));
        let draft = Draft { target: device, workload, engine: text("tool"), figures, inputs, body, ..Draft::default() };
        keep::keep(EntryKind::Measurement, draft);
    }
}

/// Reads all given files, and all files below given directories. Files in a directory that have no measurements are
/// reported and skipped. The flag tells whether a file that was given directly failed.
fn read_all(sources: &[NamedFile], context: &Context) -> color_eyre::Result<(Vec<Ingested>, bool)> {
    let (mut files, mut failed) = (Vec::new(), false);
    for source in sources {
        let context = &Context { settings: source.merged_with(&context.settings), ..context.clone() };
        let path = &source.path;
        if path.as_os_str() == "-" {
            failed |= keep(&mut files, read(io::stdin().lock(), "stdin", context), false);
            continue;
        }
        let below = ingest::files_below(path).wrap_err_with(|| format!("{}: cannot read", path.display()))?;
        let directory = path.is_dir();
        if directory && below.is_empty() {
            write_stderr(&format!("error: {}: directory has no files", path.display()));
            failed = true;
        }
        for file in below {
            failed |= keep(&mut files, open(&file, context), directory);
        }
    }
    Ok((files, failed))
}

/// Adds the result for a file. Returns whether it counts as a failure: files found in a directory (`found`) may be of
/// another kind.
fn keep(files: &mut Vec<Ingested>, got: Result<Ingested, IngestError>, found: bool) -> bool {
    match got {
        Ok(ingested) => {
            files.push(ingested);
            false
        }
        Err(error @ IngestError::Unknown(_)) if found => {
            write_stderr(&format!("skipped: {error}"));
            false
        }
        Err(error) => {
            write_stderr(&format!("error: {error}"));
            true
        }
    }
}

fn open(path: &Path, context: &Context) -> Result<Ingested, IngestError> {
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => read(file, &name, context),
        Err(source) => Err(IngestError::Read { file: name, source }),
    }
}

fn read(source: impl Read, name: &str, context: &Context) -> Result<Ingested, IngestError> {
    ingest::ingest(source, &Context { name: name.to_owned(), ..context.clone() })
}

/// Settings of `--set`; the error lists all invalid assignments.
fn settings(args: &IngestArgs) -> Result<Config, Failure> {
    let mut config = Config::default();
    let assigned = args.set.iter().map(|text| assign(&mut config, text).map_err(|problem| format!("--set: {problem}")));
    let problems: Vec<String> = assigned.filter_map(Result::err).collect();
    if problems.is_empty() { Ok(config) } else { Err(Failure::usage(problems)) }
}

/// Files to read: the given ones, else the logs named by an experiment's configuration.
fn sources(args: &IngestArgs, globals: &Globals) -> color_eyre::Result<Vec<NamedFile>> {
    if !args.paths.is_empty() {
        let (mut named, mut problems) = (Vec::new(), Vec::new());
        for path in &args.paths {
            match NamedFile::of(path) {
                Ok(one) => named.push(one),
                Err(problem) => problems.push(problem),
            }
        }
        return if problems.is_empty() { Ok(named) } else { Err(Failure::usage(problems).into()) };
    }
    if globals.config.is_none() {
        return Err(
            Failure::usage(["PATH is missing: expected logs, or --config with an experiment that names them"]).into()
        );
    }
    let configured = ActiveConfiguration::read(globals, Methodology::MaximumPerformance)?;
    let logs = configured.logs(args.workload.as_deref())?;
    Ok(logs.into_iter().map(|path| NamedFile { path, ..NamedFile::default() }).collect())
}

/// Fills in settings of a training run from a workload. Its GPU counts are not binding and come last.
fn fill(settings: &mut Config, workload: &Workload) {
    let shape = workload.shape;
    for (name, value) in [
        ("seq_len", shape.prompt),
        ("tensor_parallel", f64::from(shape.tp)),
        ("pipeline_parallel", f64::from(shape.pp)),
        ("data_parallel", f64::from(shape.dp)),
        ("hidden_size", f64::from(shape.hidden)),
        ("num_layers", f64::from(shape.layers)),
    ] {
        settings.number(name, Some(value), Origin::Workload);
    }
    if let Some(model) = &workload.model {
        settings.note("model", model.as_str(), Origin::Workload);
    }
}

/// Everything found in a file: the facts, tool and format of the first reading, followed by the other readings.
fn document(file: &Ingested, context: &Context) -> Value {
    let reading = |reading: &ingest::Reading| {
        let origins: serde_json::Map<String, Value> = sort::collect_unsorted(
            reading.config.iter().map(|(name, _, origin)| (name.to_owned(), origin.description().into())),
        );
        let benchmarks = predecessor::benchmarks(&file.file, reading, context);
        json!({
            "tool": reading.tool, "format": reading.format, "kind": reading.kind,
            "facts": Value::from(reading.facts.clone()), "origins": origins, "notes": reading.notes,
            "runs": benchmarks,
        })
    };
    let mut readings = file.readings.iter().map(reading);
    let mut out = readings.next().unwrap_or_default();
    if let Some(map) = out.as_object_mut() {
        map.insert("file".to_owned(), file.file.as_str().into());
        map.insert("also".to_owned(), readings.collect());
        map.insert("lines".to_owned(), serde_json::to_value(&file.tally).unwrap_or_default());
    }
    out
}

fn one_or_all(mut all: Vec<Value>) -> Value {
    if all.len() == 1 { all.pop().unwrap_or_default() } else { Value::Array(all) }
}

fn pretty(value: Value) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}
