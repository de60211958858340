//! `atlas validate --measured`: compares predictions for a target with the user's measurements.

use serde_json::{Value, json};

use super::args::Globals;
use super::calibrate::{Reading, gather, subject};
use super::failure::Failure;
use super::output::{self, write_stderr};
use super::pick;
use atlas_config::library::Library;
use atlas_core::plan::Engine;
use atlas_core::units;
use atlas_evidence::calibrate::check::{Age, CALENDAR, CheckResult, ages, checks};
use atlas_evidence::calibrate::judge::{criteria, evaluate_current};
use atlas_evidence::calibrate::predict::identifying_part;
use atlas_evidence::calibrate::{Observation, RowPredictor};
use atlas_ingest::Warmup;
use atlas_plan::record::now;
use atlas_report::table::{Table, left, right};
use atlas_report::{Format, calibration as described, csv, serialized};

/// Options for published measurements. clap does not enforce `requires = "measured"` beside an option that conflicts with
/// `--measured`, so what requires it conflicts with them, too.
const PUBLISHED: [&str; 6] = ["fit", "svg", "source", "measurements", "kind", "row"];

/// Measurements of a target's own.
#[derive(Debug, clap::Args)]
pub struct OwnArgs {
    /// Your measurements: logs, benchmark JSON, measurement YAML or CSV; FILE:NAME=VALUE,… as in calibrate
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        conflicts_with_all = PUBLISHED,
        help_heading = "Own measurements"
    )]
    pub measured: Vec<String>,
    /// Target that was measured [default: the smallest with the accelerator named in the files]
    #[arg(long, value_name = "NAME", requires = "measured", conflicts_with_all = PUBLISHED, help_heading = "Own measurements")]
    pub target: Option<String>,
    /// Workload that ran; it fills in settings that the files do not state
    #[arg(long, value_name = "NAME", requires = "measured", conflicts_with_all = PUBLISHED, help_heading = "Own measurements")]
    pub workload: Option<String>,
    /// Add a setting that the files do not state, as in calibrate; repeatable
    #[arg(long, value_name = "NAME=VALUE", requires = "measured", conflicts_with_all = PUBLISHED, help_heading = "Own measurements")]
    pub set: Vec<String>,
    /// Warm-up to discard from logs, as in calibrate
    #[arg(
        long,
        value_name = "first|change-point|N",
        default_value = "first",
        value_parser = super::args::warmup,
        requires = "measured",
        conflicts_with_all = PUBLISHED,
        help_heading = "Own measurements"
    )]
    pub warmup: Warmup,
}

impl OwnArgs {
    /// Whether measurements are given.
    #[must_use]
    pub fn is_given(&self) -> bool {
        !self.measured.is_empty()
    }
}

/// Evaluates and prints the predictions; fails if a check fails.
pub fn run(args: &OwnArgs, engine: Option<Engine>, format: Format, globals: &Globals) -> color_eyre::Result<()> {
    if engine == Some(Engine::Event) {
        return Err(Failure::usage(["--engine: event: expected analytical or semi-empirical with --measured"]).into());
    }
    let library = pick::library(globals);
    let rows = gather(&Reading { measurements: &args.measured, set: &args.set, warmup: args.warmup })?;
    let target = match &args.target {
        Some(name) => name.clone(),
        None => match target_of(&library, &rows) {
            Some(name) => {
                write_stderr(&format!(
                    "note: using {name}, whose accelerator the files name; use --target to choose another"
                ));
                name
            }
            None => {
                return Err(Failure::usage(["--target is required: the files do not name the target"]).into());
            }
        },
    };
    let target = target.as_str();
    let subject = subject(&library, target, args.workload.as_deref(), None)?;
    let bench = RowPredictor::new(&library, subject.target, subject.workload);
    let first_principles = subject.target.accelerator.is_some();
    let engine = engine.unwrap_or(if first_principles { Engine::Analytical } else { Engine::SemiEmpirical });
    let judged = evaluate_current(&bench, &rows, &subject.start);
    let checked = checks(&rows, &judged, engine);
    let today = now().get(..10).unwrap_or_default().to_owned();
    let ages = ages(subject.start.profile.as_deref(), &today);
    let warnings = criteria(&rows);
    let text = match format {
        Format::Table => {
            let text = table(target, engine, &checked, &ages, &warnings);
            globals.charset().write(&text).into_owned()
        }
        Format::Csv => csv_of(&checked),
        Format::Json | Format::Yaml => {
            serialized(&document(target, engine, &checked, &ages, &warnings), format == Format::Yaml)?
        }
    };
    output::print(&text)?;
    if checked.iter().all(|checked| checked.rows.is_empty()) {
        write_stderr(&format!("error: the {} engine predicts none of these metrics for {target}", engine.name()));
        refusals(&bench, &rows, engine);
        return Err(Failure::Reported.into());
    }
    let failed: Vec<&CheckResult> = checked.iter().filter(|checked| checked.passes() == Some(false)).collect();
    for checked in &failed {
        let (n, of) = (checked.failures().count(), checked.rows.len());
        let limit = units::percent(checked.check.threshold());
        write_stderr(&format!(
            "error: {} failed: {n} of {of} values are off by {limit} or more",
            checked.check.title()
        ));
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Reported.into()) }
}

/// Smallest target with the accelerator named in the rows and enough accelerators for their runs. An accelerator is
/// recognized by the part of its key that contains a number: `h200` in "NVIDIA H200".
fn target_of(library: &Library, rows: &[Observation]) -> Option<String> {
    let device = rows.iter().find_map(|row| row.word("hardware"))?.to_lowercase();
    let needs = rows.iter().filter_map(Observation::accelerators).fold(1.0, f64::max);
    let fits = library.targets().iter().filter(|target| {
        let named = target.accelerator.as_deref().and_then(identifying_part);
        let words = || device.split(|c: char| !c.is_ascii_alphanumeric());
        named.is_some_and(|part| words().any(|word| word == part)) && target.accelerators() >= needs
    });
    fits.min_by(|a, b| a.accelerators().total_cmp(&b.accelerators())).map(|target| target.name.to_string())
}

/// Explains why rows have no prediction.
fn refusals(bench: &RowPredictor<'_>, rows: &[Observation], engine: Engine) {
    if engine != Engine::Analytical {
        write_stderr("  it needs a profile with coefficients for the target or its vendor");
        return;
    }
    for row in rows.iter().take(8) {
        if let Some(device) = bench.other_accelerator(row) {
            write_stderr(&format!("  {}: measured on {device}", row.source));
        } else if let Err(reason) = bench.analytical(row) {
            write_stderr(&format!("  {}: {reason}", row.source));
        }
    }
}

fn table(target: &str, engine: Engine, checked: &[CheckResult], ages: &[Age], warnings: &[String]) -> String {
    let mut out = format!("{target}: predictions of the {} engine against your measurements\n\n", engine.name());
    let mut table = Table::new([
        left("check"),
        right("limit"),
        right("figures"),
        right("failing"),
        right("worst"),
        right("bias"),
        left(""),
    ]);
    let percent = |error: Option<f64>| error.map_or_else(String::new, |error| format!("{:+.1} %", 100.0 * error));
    for one in checked {
        table.row([
            one.check.title().to_owned(),
            units::percent(one.check.threshold()),
            one.rows.len().to_string(),
            one.failures().count().to_string(),
            percent(one.worst()),
            percent(one.bias()),
            match one.passes() {
                Some(true) => "passes".to_owned(),
                Some(false) => "FAILS".to_owned(),
                None => "not judged".to_owned(),
            },
        ]);
    }
    out += &table.render();
    for one in checked.iter().filter(|one| one.rows.is_empty()) {
        out += &format!("{} needs {}\n", one.check.title(), one.check.required_measurements());
    }
    for one in checked.iter().filter(|one| !one.rows.is_empty()) {
        out += &format!("\n{}\n\n", one.check.title());
        let mut table =
            Table::new([left("row"), left("figure"), right("measured"), right("predicted"), right("error"), left("")]);
        for row in &one.rows {
            let fails = row.error_before().abs() >= one.check.threshold();
            table.row([
                row.source.rsplit(['/', '\\']).next().unwrap_or_default().to_owned(),
                row.figure.name().to_owned(),
                units::significant(row.measured, 4),
                units::significant(row.before, 4),
                percent(Some(row.error_before())),
                if fails { "FAILS".to_owned() } else { String::new() },
            ]);
        }
        out += &table.render();
    }
    out += "\nAge of the parameters\n\n";
    let mut table = Table::new([left("parameter"), left("measured"), right("days"), left("")]);
    for age in ages {
        table.row([
            age.path.clone(),
            age.date.clone().unwrap_or_else(|| "-".to_owned()),
            age.days.map_or_else(|| "-".to_owned(), |days| days.to_string()),
            age.due.described().to_owned(),
        ]);
    }
    out += &table.render();
    out += "\nWhen to recalibrate\n";
    CALENDAR.iter().for_each(|line| out += &format!("  {line}\n"));
    if !warnings.is_empty() {
        out += "\nWarnings\n";
        warnings.iter().for_each(|line| out += &format!("  {line}\n"));
    }
    out
}

fn document(target: &str, engine: Engine, checked: &[CheckResult], ages: &[Age], warnings: &[String]) -> Value {
    let checks = checked.iter().map(|one| {
        json!({
            "check": one.check,
            "threshold": one.check.threshold(),
            "passes": one.passes(),
            "figures": one.rows.len(),
            "failing": one.failures().count(),
            "worst": one.worst(),
            "bias": one.bias(),
            "rows": one.rows.iter().map(described::row).collect::<Vec<Value>>(),
        })
    });
    json!({
        "target": target,
        "engine": engine.name(),
        "passes": checked.iter().all(|one| one.passes() != Some(false)) && checked.iter().any(|one| !one.rows.is_empty()),
        "checks": checks.collect::<Vec<Value>>(),
        "ages": ages,
        "calendar": CALENDAR,
        "warnings": warnings,
    })
}

fn csv_of(checked: &[CheckResult]) -> String {
    let mut out = csv::line(["check", "row", "figure", "measured", "predicted", "error", "threshold", "passes"]);
    for one in checked {
        let threshold = one.check.threshold();
        for row in &one.rows {
            let error = row.error_before();
            let figures = [row.measured, row.before, error, threshold].map(|value| value.to_string());
            let passes = (error.abs() < threshold).to_string();
            let names = [one.check.title(), &row.source, row.figure.name()];
            out += &csv::line(names.into_iter().chain(figures.iter().map(String::as_str)).chain([passes.as_str()]));
        }
    }
    out
}
