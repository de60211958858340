//! `atlas validate`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::args::Globals;
use super::output::{self, complain};
use super::watching;
use atlas_core::plan::Engine;
use atlas_core::units;
use atlas_document::files;
use atlas_evidence::validate;
use atlas_evidence::validate::report::Stats;
use atlas_evidence::validate::verdict;
use atlas_evidence::validate::verdict::Verdict;
use atlas_evidence::validate::{Kind, report, scatter};
use atlas_plan::search::Gauge;
use atlas_report::Format;
use atlas_report::table::{Align, Table};

/// Hold the analytical engine against published measurements, or a target's numbers against its own.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas validate                                  all shipped measurements
  atlas validate --kind training --source vTrain
  atlas validate --measurements mine.csv --format json
  atlas validate --kind latency --svg scatter.svg
  atlas validate --row ID                         one row, step by step; with --engine event as it is simulated
  atlas validate --measured run.log prod.csv --target T --workload W
  atlas validate --engine event --kind training   the simulation in place of the closed form

Errors are predicted over measured, less one. Training rows are judged on tokens per second and accelerator,
inference rows on the throughput they state, latency rows on TTFT and on TPOT.

With --measured a target's numbers are held against measurements of its own by the calibration guide's checks: rates \
within 15 %, latency percentiles within 10 %, scaling within 20 %; exit 1 when one fails. The age of each calibrated \
parameter is told beside the guide's calendar.")]
pub struct Args {
    /// A file of measurements with the columns of workload/measurements/*.csv [default: those that ship]
    #[arg(long, value_name = "FILE.csv")]
    pub measurements: Option<PathBuf>,
    /// Only measurements of this kind
    #[arg(long, value_enum)]
    pub kind: Option<Kind>,
    /// Only sources whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub source: Option<String>,
    /// Fit the constants anew and judge every source with constants that never saw it; takes minutes
    #[arg(long, conflicts_with_all = ["format", "svg", "source", "measurements"])]
    pub fit: bool,
    /// Tell one row step by step, by its id
    #[arg(long, value_name = "ID", conflicts_with_all = ["fit", "format", "svg", "source"])]
    pub row: Option<String>,
    /// Print the scenario of every row as a line for `atlas run --batch` instead of judging it
    #[arg(long, conflicts_with_all = ["fit", "row", "svg", "source"])]
    pub scenarios: bool,
    /// Also write the scatter of predicted against measured
    #[arg(long, value_name = "FILE.svg")]
    pub svg: Option<PathBuf>,
    /// Which engine predicts: analytical, or event, which takes minutes; with --measured also semi-empirical [default:
    /// analytical; with --measured semi-empirical where the target names no accelerator]
    #[arg(long, value_name = "NAME", value_parser = engine, conflicts_with = "fit")]
    pub engine: Option<Engine>,
    /// What is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Measurements of a target's own.
    #[command(flatten)]
    pub own: super::validate_measured::OwnArgs,
}

fn engine(text: &str) -> Result<Engine, String> {
    let reasoning = [Engine::Analytical, Engine::Event, Engine::SemiEmpirical];
    let found = Engine::named(text).filter(|engine| reasoning.contains(engine));
    found.ok_or_else(|| format!("expected one of {}", reasoning.map(Engine::name).join(", ")))
}

/// Prints the scenario of every row that has one.
fn scenarios(args: &Args) -> color_eyre::Result<()> {
    let mut out = std::io::stdout().lock();
    let tables = match &args.measurements {
        Some(path) => {
            let text = atlas_document::sources::read_text(path)
                .map_err(|problem| color_eyre::eyre::eyre!("{}: {problem}", path.display()))?;
            let kind = args.kind.map_or_else(|| Kind::of(&text), Ok)?;
            vec![(kind, text)]
        }
        None => {
            let kinds = Kind::ALL.into_iter().filter(|kind| args.kind.is_none_or(|wanted| wanted == *kind));
            kinds.map(|kind| Ok((kind, validate::shipped(kind)?))).collect::<color_eyre::Result<Vec<_>>>()?
        }
    };
    for (kind, text) in tables {
        for line in validate::scenarios(kind, &text)? {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// Judges the measurements and prints the verdicts.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    if args.own.given() {
        return super::validate_measured::run(&args.own, args.engine, args.format, globals);
    }
    let engine = args.engine.unwrap_or(Engine::Analytical);
    if engine == Engine::SemiEmpirical {
        let problem = "--engine: semi-empirical predicts no published row, since it knows no models: --measured FILE…";
        return Err(super::failure::Failure::usage([problem]).into());
    }
    if args.fit {
        return fit(args.kind, globals);
    }
    if let Some(id) = &args.row {
        return row(id, &args, globals);
    }
    if args.scenarios {
        return scenarios(&args);
    }
    let gauge = Gauge::default();
    let judge = |kind: Kind, text: &str| {
        watching(&gauge, Duration::from_millis(500), "rows", || validate::judge_by(kind, text, engine, &gauge))
    };
    let mut verdicts = match &args.measurements {
        Some(path) => {
            let text = atlas_document::sources::read_text(path)
                .map_err(|problem| color_eyre::eyre::eyre!("{}: {problem}", path.display()))?;
            let kind = args
                .kind
                .map_or_else(|| Kind::of(&text), Ok)
                .map_err(|problem| color_eyre::eyre::eyre!("{}: {problem}", path.display()))?;
            vec![(kind, judge(kind, &text)??)]
        }
        None => Kind::ALL
            .into_iter()
            .filter(|kind| args.kind.is_none_or(|wanted| wanted == *kind))
            .map(|kind| Ok((kind, judge(kind, &validate::shipped(kind)?)??)))
            .collect::<color_eyre::Result<Vec<_>>>()?,
    };
    if let Some(source) = &args.source {
        let wanted = source.to_lowercase();
        for (_, rows) in &mut verdicts {
            rows.retain(|verdict| verdict.source.to_lowercase().contains(&wanted));
        }
        verdicts.retain(|(_, rows)| !rows.is_empty());
        if verdicts.is_empty() {
            return Err(color_eyre::eyre::eyre!("no source contains \"{source}\""));
        }
    }
    let all: Vec<Verdict> = verdicts.iter().flat_map(|(_, rows)| rows.iter().cloned()).collect();
    match args.format {
        Format::Table => {
            let text: String = verdicts.iter().map(|(kind, rows)| told(*kind, rows)).collect();
            output::print(&globals.charset().write(&text))?;
        }
        Format::Csv => output::print(&csv(&all)?)?,
        Format::Json => output::print(&(serde_json::to_string_pretty(&document(&verdicts))? + "\n"))?,
        Format::Yaml => output::print(&serde_yaml::to_string(&document(&verdicts))?)?,
    }
    if let Some(path) = &args.svg {
        let names: Vec<&str> = verdicts.iter().map(|(kind, _)| kind.name()).collect();
        files::write(path, &scatter::svg(&all, &format!("Predicted against measured: {}", names.join(", "))))?;
        complain(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// Tells one row: what it states, how it was read, where the time goes, predicted and measured.
fn row(id: &str, args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    let own = args.measurements.as_ref().map(|path| atlas_document::sources::read_text(path).map(|text| (path, text)));
    let own = own.transpose().map_err(|problem| color_eyre::eyre::eyre!("{problem}"))?;
    let kinds = Kind::ALL.into_iter().filter(|kind| args.kind.is_none_or(|wanted| wanted == *kind));
    let kinds: Vec<Kind> = match &own {
        Some((_, text)) => vec![args.kind.map_or_else(|| Kind::of(text), Ok)?],
        None => kinds.collect(),
    };
    for kind in kinds {
        let text = match &own {
            Some((_, text)) => text.clone(),
            None => validate::shipped(kind)?,
        };
        if let Some(story) = validate::story::story(kind, &text, id, args.engine.unwrap_or(Engine::Analytical))? {
            return Ok(output::print(&globals.charset().write(&tell(&story)))?);
        }
    }
    Err(color_eyre::eyre::eyre!("no row has the id \"{id}\"; `atlas validate --format csv` lists all ids"))
}

fn tell(story: &validate::story::Story) -> String {
    let two = |rows: Vec<(String, String)>| {
        let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
        rows.into_iter().for_each(|(name, value)| table.row([format!("  {name}"), value]));
        table.render()
    };
    let mut out = format!("the row states\n{}", two(story.states.clone()));
    let steps = story.steps.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    if !story.steps.is_empty() {
        out += &format!("\nread and predicted\n{}", two(steps.collect()));
    }
    if let Some(time) = &story.time {
        let mut table = Table::new([("", Align::Left), ("", Align::Right), ("", Align::Right)]);
        for (name, seconds) in time.parts().filter(|(_, seconds)| *seconds > 0.0) {
            table.row([format!("  {name}"), units::duration_ms(1e3 * seconds), units::percent(seconds / time.total())]);
        }
        table.row(["  all".to_owned(), units::duration_ms(1e3 * time.total()), units::percent(1.0)]);
        out += &format!("\nwhere the time goes\n{}", table.render());
    }
    out += "\npredicted against measured\n";
    for verdict in &story.verdicts {
        out += &match (verdict.predicted, verdict.measured, verdict.error()) {
            (Some(predicted), Some(measured), Some(error)) => format!(
                "  {}: {} predicted, {} measured, {:+.1} %; 90 % interval {} to {}\n",
                verdict.metric,
                units::significant(predicted, 4),
                units::significant(measured, 4),
                100.0 * error,
                verdict.lower.map_or_else(String::new, |end| units::significant(end, 4)),
                verdict.upper.map_or_else(String::new, |end| units::significant(end, 4)),
            ),
            _ => format!("  {}: {}\n", verdict.metric, verdict.reason.as_deref().unwrap_or("not predicted")),
        };
    }
    out
}

/// Fits the constants and prints them, with the errors on sources that the fit did not see.
fn fit(kind: Option<Kind>, globals: &Globals) -> color_eyre::Result<()> {
    let spinner = indicatif::ProgressBar::new_spinner().with_message("fitting, one source left out at a time");
    spinner.enable_steady_tick(std::time::Duration::from_millis(120));
    let mut out = String::new();
    for refit in validate::refit(kind)? {
        let mut table = Table::new([
            ("constant", Align::Left),
            ("shipped", Align::Right),
            ("fitted here", Align::Right),
            ("unit", Align::Left),
        ]);
        for constant in &refit.constants {
            let fitted = constant.fitted.map_or_else(|| "fixed".to_owned(), |value| units::significant(value, 4));
            table.row([
                constant.name.to_owned(),
                units::significant(constant.shipped, 4),
                fitted,
                constant.unit.to_owned(),
            ]);
        }
        out += &format!("{}\n\n{}\n", refit.title, table.render());
        for judged in &refit.judged {
            let mut table = Table::new([
                (judged.title, Align::Left),
                ("n", Align::Right),
                ("median", Align::Right),
                ("p90", Align::Right),
                ("mean", Align::Right),
                ("bias", Align::Right),
            ]);
            for (name, stats) in &judged.groups {
                table.row(cells(name, stats));
            }
            table.section("all");
            table.row(cells("all rows", &judged.all));
            out += &table.render();
            out += &format!("{}\n\n", of_medians("groups'", &judged.groups, &judged.all));
        }
        if !refit.widths.is_empty() {
            out += &format!("{}\n", widths(&refit.widths).render());
        }
        if !refit.bands.is_empty() {
            out += &format!("{}\n", bands(&refit.bands).render());
        }
    }
    spinner.finish_and_clear();
    output::print(&globals.charset().write(&out))?;
    Ok(())
}

/// A table of 90 % intervals, in use and found.
fn intervals(what: &'static str) -> Table {
    Table::new([
        (what, Align::Left),
        ("n", Align::Right),
        ("shipped", Align::Right),
        ("found here", Align::Right),
        ("covered", Align::Right),
    ])
}

/// Half-widths of 90 % intervals.
fn widths(all: &[validate::Width]) -> Table {
    let mut table = intervals("90 % interval, ln");
    for width in all {
        let (shipped, found) = width
            .half
            .map_or_else(Default::default, |(shipped, found)| (format!("±{shipped:.3}"), format!("±{found:.3}")));
        table.row([width.regime.to_owned(), width.n.to_string(), shipped, found, units::percent(width.covered)]);
    }
    table
}

/// Factors on a prediction that make its 90 % interval.
fn bands(all: &[validate::Band]) -> Table {
    let mut table = intervals("90 % interval, factors");
    let factors = |(low, high): (f64, f64)| format!("{low:.2} to {high:.2}");
    for band in all {
        let covered = units::percent(band.covered);
        table.row([band.regime.to_owned(), band.n.to_string(), factors(band.shipped), factors(band.found), covered]);
    }
    table
}

/// Rows, and what they amount to.
fn document(verdicts: &[(Kind, Vec<Verdict>)]) -> serde_json::Value {
    let numbers = |stats: &Stats| serde_json::json!({"n": stats.n, "median_pct": stats.median, "p90_pct": stats.p90, "mean_pct": stats.mean, "bias_pct": stats.bias});
    let kinds = verdicts.iter().map(|(kind, rows)| {
        let sources = verdict::by(rows, |verdict| &verdict.source);
        let (covered, with_interval) = verdict::coverage(rows);
        serde_json::json!({
            "kind": kind.name(),
            "rows": rows.len(),
            "errors": numbers(&verdict::overall(rows)),
            "sources": sources.iter().map(|(name, stats)| ((*name).to_owned(), numbers(stats))).collect::<serde_json::Map<_, _>>(),
            "interval_coverage": covered,
            "rows_with_interval": with_interval,
        })
    });
    let rows: Vec<&Verdict> = verdicts.iter().flat_map(|(_, rows)| rows).collect();
    serde_json::json!({"rows": rows, "kinds": kinds.collect::<Vec<_>>()})
}

fn csv(verdicts: &[Verdict]) -> color_eyre::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "id",
        "metric",
        "source",
        "accelerator",
        "regime",
        "measured",
        "predicted",
        "lower",
        "upper",
        "reason",
    ])?;
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for v in verdicts {
        let (measured, predicted, lower, upper) =
            (number(v.measured), number(v.predicted), number(v.lower), number(v.upper));
        let reason = v.reason.as_deref().unwrap_or_default();
        writer.write_record([
            &v.id,
            v.metric,
            &v.source,
            &v.accelerator,
            v.regime,
            &measured,
            &predicted,
            &lower,
            &upper,
            reason,
        ])?;
    }
    Ok(String::from_utf8(writer.into_inner().map_err(|error| error.into_error())?)?)
}

/// The verdicts as a page of text.
fn told(kind: Kind, rows: &[Verdict]) -> String {
    let mut out = format!("{}\n\n", kind.title());
    // Serving's throughput is stated in one of three columns, each row judged on its own; latencies are two figures.
    let metrics: Vec<&str> = match kind {
        Kind::Latency => vec!["ttft_ms", "tpot_ms"],
        Kind::Training => vec!["tokens_per_sec_per_accel"],
        Kind::Inference => vec!["throughput"],
    };
    for metric in metrics {
        let of: Vec<Verdict> =
            rows.iter().filter(|verdict| kind != Kind::Latency || verdict.metric == metric).cloned().collect();
        let stats = verdict::overall(&of);
        let sources = verdict::by(&of, |verdict| &verdict.source);
        let mut table = Table::new([
            (metric, Align::Left),
            ("n", Align::Right),
            ("median", Align::Right),
            ("p90", Align::Right),
            ("mean", Align::Right),
            ("bias", Align::Right),
        ]);
        table.section("by source");
        for (name, stats) in &sources {
            table.row(cells(name, stats));
        }
        table.section("by accelerator");
        for (name, stats) in verdict::by(&of, |verdict| &verdict.accelerator) {
            table.row(cells(name, &stats));
        }
        table.section("by regime");
        for (name, stats) in verdict::by(&of, |verdict| verdict.regime) {
            table.row(cells(name, &stats));
        }
        table.section("all");
        table.row(cells("all rows predicted", &stats));
        out += &table.render();
        let (covered, n) = verdict::coverage(&of);
        out += &format!(
            "{}\n{} of measurements lie inside their 90 % interval ({n} rows)\n\n",
            of_medians("sources'", &sources, &stats),
            units::percent(covered)
        );
        out += &scatter::text(&of, 64, 24);
        out.push('\n');
    }
    let reasons = verdict::reasons(rows);
    if !reasons.is_empty() {
        out += "not predicted\n";
        for (reason, n) in reasons {
            out += &format!("{n:>6}  {reason}\n");
        }
        out.push('\n');
    }
    out
}

/// What the groups' medians amount to.
fn of_medians<K>(whose: &str, groups: &BTreeMap<K, Stats>, all: &Stats) -> String {
    let mean = report::mean_of_medians(groups);
    format!("mean of the {whose} medians {mean:.1} %, {:.2} times the median of all rows", mean / all.median)
}

fn cells(name: &str, stats: &Stats) -> Vec<String> {
    let percent = |value: f64| format!("{value:.1} %");
    vec![
        format!("  {}", name.chars().take(64).collect::<String>()),
        stats.n.to_string(),
        percent(stats.median),
        percent(stats.p90),
        percent(stats.mean),
        format!("{:+.1} %", stats.bias),
    ]
}
