//! `atlas compare --measured`: compares measured runs.

use std::fs::File;
use std::path::Path;

use serde_json::{Value, json};

use super::args::{Globals, MeasuredArgs};
use super::experiment_files::ActiveConfiguration;
use super::failure::Failure;
use super::output::{self, write_stderr};
use super::report::{self, command};
use super::save;
use atlas_catalog::Catalog;
use atlas_config::library::Library;
use atlas_ingest as ingest;
use atlas_ingest::{Context, NamedFile, predecessor};
use atlas_report::Format;
use atlas_report::comparison::Comparison;
use atlas_report::file_format::FileFormat;
use atlas_report::measured;
use atlas_report::measured::prediction;
use atlas_report::measured::prediction::Prediction;
use atlas_report::measured::{Assumptions, Measured, story};

/// Prints the comparison. `predicted` holds a prediction for each run, or one for all. With an experiment, `workload`
/// names the model that ran.
pub fn run(
    args: &MeasuredArgs,
    format: Format,
    workload: Option<&str>,
    predicted: Option<&Comparison>,
    library: &Library,
    globals: &Globals,
) -> color_eyre::Result<()> {
    let to = args.out.as_deref().map(|out| report::file(out, &FileFormat::ALL)).transpose()?;
    let catalog = library.catalog();
    let given = assumptions(args, catalog)?;
    let configured =
        library.methodology().map(|methodology| ActiveConfiguration::read(globals, methodology)).transpose()?;
    let requested = args.measured.as_deref().unwrap_or_default();
    let paths = match &configured {
        Some(configured) if requested.is_empty() => configured.measured(workload)?,
        None if requested.is_empty() => {
            return Err(
                Failure::usage(["--measured: expected files, or --config with an experiment that names them"]).into()
            );
        }
        _ => requested.to_vec(),
    };
    let (mut found, mut failed): (Vec<(String, Value)>, bool) = (Vec::new(), false);
    for path in &paths {
        if let Err(problem) = gather(path, &mut found) {
            write_stderr(&format!("error: {problem}"));
            failed = true;
        }
    }
    let assumed = |name: &str, run: &Value| Assumptions {
        plan: configured.as_ref().map(|configured| configured.plan(name, run, workload)),
        ..given.clone()
    };
    let assumed: Vec<Assumptions> = found.iter().map(|(name, run)| assumed(name, run)).collect();
    let judged = found.iter().zip(&assumed).map(|((name, run), given)| measured::judge(name, run, given, catalog));
    let mut runs: Vec<Measured> = judged.collect();
    if runs.is_empty() {
        return Err(Failure::Reported.into());
    }
    measured::compare_training_curves(&mut runs);
    match predicted {
        Some(predicted) => predict(&mut runs, predicted)?,
        None => {
            for ((run, (name, value)), given) in runs.iter_mut().zip(&found).zip(&assumed) {
                match prediction::predict(name, value, given, library, run.measured()) {
                    Ok(prediction) => run.add_prediction(prediction),
                    Err(reason) => run.notes.push(format!("no prediction: {reason}")),
                }
            }
        }
    }
    let text = match format {
        Format::Table => globals.charset().write(&measured::table(&runs)).into_owned(),
        Format::Json => measured::document(&runs, false)?,
        Format::Yaml => measured::document(&runs, true)?,
        Format::Csv => measured::rows(&runs),
    };
    output::print(&text)?;
    if let (Some(out), Some(to)) = (&args.out, to) {
        save(out, to, &runs)?;
    }
    if failed { Err(Failure::Reported.into()) } else { Ok(()) }
}

/// Writes the runs in the format of the file's extension. For Markdown, charts are written as separate SVG files.
fn save(out: &Path, to: report::OutputFile<'_>, runs: &[Measured]) -> color_eyre::Result<()> {
    let document = match to.format {
        FileFormat::Json => measured::document(runs, false)?.into_bytes(),
        FileFormat::Yaml => measured::document(runs, true)?.into_bytes(),
        FileFormat::Csv => measured::rows(runs).into_bytes(),
        FileFormat::Markdown => {
            let stem = out.file_stem().unwrap_or_default().to_string_lossy();
            let (text, charts) = story::as_markdown(&story::blocks(runs, &command()), &stem);
            for (name, chart) in charts {
                save::write(&out.with_file_name(name), &chart)?;
            }
            text.into_bytes()
        }
        format => report::render_blocks(format, "Measured runs", &story::blocks(runs, &command()))?,
    };
    to.save(document)
}

/// Adds the training runs of a file. A power trace is assigned to the run given before it.
fn gather(path: &Path, found: &mut Vec<(String, Value)>) -> Result<(), String> {
    let NamedFile { path, settings } = NamedFile::of(path)?;
    let name = path.display().to_string();
    let context = Context { name: name.clone(), seed: 1337, settings, ..Context::default() };
    let file = File::open(&path).map_err(|error| format!("{name}: cannot read: {error}"))?;
    let ingested = ingest::ingest(file, &context).map_err(|error| error.to_string())?;
    let runs: Vec<Value> =
        ingested.readings.iter().flat_map(|reading| predecessor::benchmarks(&name, reading, &context)).collect();
    let stem = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let several = runs.len() > 1;
    if runs.is_empty() {
        let watts = ingested.readings.iter().find_map(|reading| reading.facts.number("mean_total_power_w"));
        let last = found.last_mut().and_then(|(_, run)| run.as_object_mut());
        if let (Some(watts), Some(run)) = (watts, last) {
            run.insert("power_metrics".to_owned(), json!({"mean_total_power_w": watts, "file": name}));
            return Ok(());
        }
        let kind = ingested.readings.first().map_or("nothing", |reading| reading.kind);
        let expected = "expected a training run (log or benchmark JSON), or power samples listed after their run";
        return Err(format!("{name}: found {kind}, {expected}"));
    }
    for (index, run) in runs.into_iter().enumerate() {
        found.push((if several { format!("{stem}#{}", index + 1) } else { stem.to_string() }, run));
    }
    Ok(())
}

fn assumptions(args: &MeasuredArgs, catalog: &Catalog) -> Result<Assumptions, Failure> {
    let positive = |name: &str, value: Option<f64>| match value {
        Some(value) if !(value.is_finite() && value > 0.0) => {
            Err(format!("{name}: {value}: expected a number above 0"))
        }
        _ => Ok(()),
    };
    let parameters = match &args.model {
        None => Ok(None),
        Some(text) => match text.parse::<f64>() {
            Ok(number) => positive("--model", Some(number)).map(|()| Some(number)),
            Err(_) => catalog.model(text).map(|model| Some(model.active_parameters())).map_err(|problems| {
                let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
                format!("--model: {}", all.join("; "))
            }),
        },
    };
    let checks = [
        positive("--usd-per-gpu-hour", args.usd_per_gpu_hour),
        positive("--usd-per-kwh", args.usd_per_kwh),
        positive("--budget", args.budget),
    ];
    let mut problems: Vec<String> = checks.into_iter().filter_map(Result::err).collect();
    match parameters {
        Ok(parameters) if problems.is_empty() => Ok(Assumptions {
            parameters,
            model: args.model.clone().filter(|text| text.parse::<f64>().is_err()),
            usd_per_gpu_hour: args.usd_per_gpu_hour,
            usd_per_kwh: args.usd_per_kwh.unwrap_or(0.1),
            precision: args.precision.clone(),
            budget: args.budget,
            plan: None,
        }),
        other => {
            problems.extend(other.err());
            Err(Failure::usage(problems))
        }
    }
}

/// Adds predictions to the runs: one for each, or the same one for all.
fn predict(runs: &mut [Measured], predicted: &Comparison) -> Result<(), Failure> {
    let n = predicted.columns.len();
    if n != 1 && n != runs.len() {
        let runs = runs.len();
        return Err(Failure::usage([format!(
            "{n} targets for {runs} measured runs: expected one --target, or one per run"
        )]));
    }
    for (index, run) in runs.iter_mut().enumerate() {
        let Some(column) = predicted.columns.get(if n == 1 { 0 } else { index }) else { continue };
        match &column.answer {
            Ok((scenario, estimate)) => {
                let measured = run.measured();
                let laid = Prediction::of(&column.target, &predicted.workload, scenario, estimate, measured);
                run.add_prediction(laid);
                run.notes.push(format!("predicted for {} with {}", column.target, predicted.workload));
            }
            Err(problem) => run.notes.push(format!("no prediction for {}: {problem}", column.target)),
        }
    }
    Ok(())
}
