//! Prediction that a watched job is compared with, and the history entry of the watch.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use atlas_cluster::history::{Draft, Entry, EntryKind, LOGS, Store, submission_of_job, submission_of_log};
use atlas_cluster::watch::{Prediction, Quantity, WatchState};
use atlas_document::{Diagnostics, Severity};
use atlas_ingest::{Context, Ingested, measurement};
use atlas_plan::engine;
use atlas_plan::knob::Overrides;
use atlas_plan::scenario::Scenario;
use atlas_report::read;
use color_eyre::eyre::eyre;
use serde_json::json;

use super::Args;
use crate::cli::args::Globals;
use crate::cli::failure::Failure;
use crate::cli::output::write_stderr;
use crate::cli::{keep, pick};

/// A prediction and its origin.
pub(super) struct Plan {
    pub(super) prediction: Prediction,
    draft: Draft,
    /// History entries that it is derived from.
    sources: Vec<String>,
}

impl Plan {
    /// The plan given on the command line, else the one that the job was submitted with.
    pub(super) fn read(
        args: &Args,
        globals: &Globals,
        logs: &[PathBuf],
        job: Option<&str>,
    ) -> color_eyre::Result<Option<Plan>> {
        let library = pick::library(globals);
        let submitted = submission(logs, job);
        let planned = match (&args.plan, &args.target, &submitted) {
            (None, None, Some(entry)) => {
                write_stderr(&format!("using the prediction of submission {}", entry.handle()));
                Some(entry.id.clone())
            }
            (plan, ..) => plan.clone(),
        };
        let (parts, mut overrides, source) = match (&planned, &args.target, &args.workload) {
            (Some(plan), ..) => {
                let (path, source, _kept) = record(plan)?;
                let mut problems = Diagnostics::new();
                let start = read::start(&path, &library, &mut problems);
                let warnings = problems.iter().filter(|problem| problem.severity == Severity::Warning);
                warnings.for_each(|problem| write_stderr(&problem.to_string()));
                let start = start.ok_or_else(|| Failure::Input(problems.clone()))?;
                (start.parts, start.overrides, source)
            }
            (None, Some(target), Some(workload)) => (pick::pick(&library, target, workload)?, Overrides::new(), None),
            _ => {
                write_stderr(
                    "no prediction: use --plan RECORD, or --target and --workload; jobs submitted with `atlas submit` have one",
                );
                return Ok(None);
            }
        };
        args.knobs.apply_to(&mut overrides, Some(parts.fabrics()))?;
        let scenario = Scenario::resolve(&parts, &overrides)?;
        let estimate = engine::estimate(&scenario);
        estimate.finite().map_err(|problem| eyre!(problem))?;
        if let Some(detail) = estimate.detail.filter(|detail| !detail.verdict.fits()) {
            write_stderr(&format!(
                "warning: the prediction says that this job cannot run: {}",
                detail.verdict.describe()
            ));
        }
        let prediction =
            Prediction::of_estimate(&parts, &scenario, &estimate, args.steps).map_err(|problem| eyre!(problem))?;
        // The history entry is linked to the submission, whatever the job is compared with.
        let sources = submitted.map(|entry| entry.id).into_iter().chain(source).collect();
        Ok(Some(Plan { prediction, draft: keep::of_scenario(&parts, &scenario), sources }))
    }
}

/// Submission that a job or a log belongs to.
fn submission(logs: &[PathBuf], job: Option<&str>) -> Option<Entry> {
    let entries = keep::entries(&[EntryKind::Submission]);
    let of_log = |log: &PathBuf| submission_of_log(&entries, Path::new(&keep::absolute(log)));
    let found = job.and_then(|job| submission_of_job(&entries, job)).or_else(|| logs.iter().find_map(of_log));
    found.cloned()
}

/// File of a record: the given one, or a temporary file with the record of a history entry.
fn record(name: &str) -> color_eyre::Result<(PathBuf, Option<String>, Option<tempfile::NamedTempFile>)> {
    if Path::new(name).exists() {
        return Ok((PathBuf::from(name), None, None));
    }
    let store = Store::of_user().ok_or_else(|| eyre!("--plan: {name}: no such file, and no history"))?;
    let mut entry = store.find(name).map_err(|error| eyre!("--plan: {name}: no such file; {error}"))?;
    // A submission's entry refers to the prediction it was submitted with.
    if let (EntryKind::Submission, [source]) = (entry.kind, entry.sources.as_slice()) {
        entry = store.find(source).map_err(|error| eyre!("--plan: {name}: {error}"))?;
    }
    if entry.body.get("knobs").is_none() {
        let kind = entry.kind.name();
        return Err(eyre!(
            "--plan: {}: found a {kind}, expected a prediction of `atlas run` or `atlas optimize`",
            entry.id
        ));
    }
    let mut file = tempfile::Builder::new().prefix("atlas-plan-").suffix(".json").tempfile()?;
    file.write_all(entry.body.to_string().as_bytes())?;
    Ok((file.path().to_owned(), Some(entry.id), Some(file)))
}

/// History entry: the inputs of the plan, measured and predicted time, the outcome of the watch, and the measurements
/// that `atlas ingest` would extract from the logs.
pub(super) fn draft(plan: Option<&Plan>, state: &WatchState, logs: &[Ingested], job: Option<String>) -> Draft {
    let mut draft = plan.map(|plan| plan.draft.clone()).unwrap_or_default();
    let name = match state.quantity() {
        Quantity::Step => "step_time_s",
        Quantity::Token => "time_per_token_s",
    };
    // The mean time determines the cost of the run. Points that stand for several steps are weighted accordingly.
    let count: f64 = state.points_after_warm_up().iter().map(|point| f64::from(point.count)).sum();
    let sum: f64 = state.points_after_warm_up().iter().map(|point| f64::from(point.count) * point.value).sum();
    let settled = (count > 0.0).then(|| sum / count);
    let predicted = state.prediction.as_ref().map(|plan| plan.seconds);
    for (name, value) in [
        (name.to_owned(), settled),
        (format!("predicted_{name}"), predicted),
        (
            "measured_over_predicted".to_owned(),
            settled.zip(predicted).map(|(measured, predicted)| measured / predicted),
        ),
        // Under the names of the prediction, so that both can be compared.
        ("step_time_ms".to_owned(), settled.filter(|_| name == "step_time_s").map(|seconds| seconds * 1e3)),
        (
            "tokens_per_sec".to_owned(),
            settled
                .zip(state.prediction.as_ref().and_then(|plan| plan.tokens_per_step))
                .map(|(seconds, tokens)| tokens / seconds),
        ),
        ("power_per_device_w".to_owned(), state.devices.watts()),
        ("records".to_owned(), Some(state.times.records() as f64)),
    ] {
        draft.figures.extend(value.map(|value| (name, value)));
    }
    let context = Context::default();
    let measurements: Vec<serde_json::Value> =
        logs.iter().flat_map(|log| measurement::measurements(log, &context)).collect();
    let sources: Vec<String> = state.sources.iter().map(|source| keep::absolute(&source.name)).collect();
    draft.inputs.insert(LOGS.to_owned(), sources.into());
    draft.inputs.extend(job.map(|job| ("job".to_owned(), job.into())));
    draft.sources = plan.map(|plan| plan.sources.clone()).unwrap_or_default();
    draft.body = json!({"end": state.json(), "measurements": measurements});
    draft
}
