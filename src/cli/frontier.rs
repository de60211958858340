//! `atlas frontier`.

use std::path::PathBuf;

use color_eyre::eyre::eyre;
use serde_json::json;

use super::args::{Globals, KnobArgs};
use super::failure::Failure;
use super::output::{self, Charset};
use super::{pick, save};
use atlas_config::Mode;
use atlas_core::units;
use atlas_document::Diagnostics;
use atlas_plan::estimate::MetricId;
use atlas_plan::knob::{Knob, Overrides};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::frontier::{Point, frontier};
use atlas_report::chart::{Axis, Plot, Series, drawing, svg, text};
use atlas_report::table::{Align, Table};
use atlas_report::{Format, csv, to_json, to_yaml};

/// Plot throughput against interactivity as concurrency grows.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas frontier --target h100-sxm-8 --workload llama3.1-70b-serve
  atlas frontier --target h100-sxm-8 --target mi300x-8 --workload llama3.1-70b-serve \\
    --svg frontier.svg
  atlas frontier --target h200-sxm-8 --workload llama3.1-70b-serve --set precision=fp8 \\
    --format csv

Each row keeps a constant number of requests in flight (closed loop). TPOT is the time per output token after the first, \
averaged over a response; a user sees 1 / TPOT tokens per second.")]
pub struct Args {
    /// Target; repeatable, or separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    pub target: Vec<String>,
    /// Workload
    #[arg(long, value_name = "NAME")]
    pub workload: String,
    /// Maximum number of requests in flight
    #[arg(long, alias = "most", value_name = "N", default_value_t = 65_536)]
    pub max_concurrency: u32,
    /// Also write the chart to this file
    #[arg(long, value_name = "FILE.svg")]
    pub svg: Option<PathBuf>,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// One target's frontier.
struct Curve {
    target: String,
    accelerators: f64,
    start: Scenario,
    points: Vec<Point>,
}

/// Computes the frontiers and prints them.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    args.knobs.check()?;
    let library = pick::library(globals);
    let mut problems = Diagnostics::new();
    let mut all = Vec::new();
    for name in &args.target {
        match Parts::find(&library, name, &args.workload) {
            Ok(parts) => all.push(parts),
            Err(found) => problems.extend(found),
        }
    }
    if !problems.is_empty() {
        return Err(Failure::from(problems).into());
    }
    let curves = all.iter().map(|parts| curve(parts, &args)).collect::<color_eyre::Result<Vec<_>>>()?;
    let plot = plot(&curves, &args.workload);
    match args.format {
        Format::Table => output::print(&described(&curves, &plot, globals.charset()))?,
        Format::Csv => output::print(&csv_of(&curves))?,
        Format::Json => output::print(&to_json(&document(&curves, &args.workload))?)?,
        Format::Yaml => output::print(&to_yaml(&document(&curves, &args.workload))?)?,
    }
    if let Some(path) = &args.svg {
        let picture = drawing::plot(&plot, 720.0, 440.0).map_or_else(String::new, svg::standalone);
        save::save(path, picture)?;
    }
    Ok(())
}

fn curve(parts: &Parts, args: &Args) -> color_eyre::Result<Curve> {
    let overrides: Overrides = args.knobs.overrides(parts.fabrics())?;
    let start = Scenario::resolve(parts, &overrides).map_err(|error| eyre!("{}: {error}", parts.target.name))?;
    if start.mode() != Mode::Inference {
        return Err(Failure::usage([format!(
            "{} is a training workload; a frontier needs a serving workload",
            parts.workload.name
        )])
        .into());
    }
    let points = frontier(&start, parts, f64::from(args.max_concurrency))?;
    if points.is_empty() {
        let answer = atlas_plan::engine::estimate(&start);
        let why = answer.detail.map_or_else(
            || format!("the {} engine does not model load", start.engine.name()),
            |detail| detail.verdict.describe(),
        );
        return Err(eyre!("{} × {}: {why}", parts.target.name, parts.workload.name));
    }
    Ok(Curve { target: parts.target.name.to_string(), accelerators: start.accelerators(), start, points })
}

fn plot(curves: &[Curve], workload: &str) -> Plot {
    let series = curves.iter().map(|curve| Series {
        name: curve.target.clone(),
        points: curve
            .points
            .iter()
            .filter(|point| point.efficient)
            .map(|point| {
                (point.serving.tokens_per_sec_per_user, point.estimate.total.tokens_per_sec / curve.accelerators)
            })
            .collect(),
        joined: true,
    });
    Plot {
        title: format!("{workload}: throughput against interactivity"),
        across: Axis::linear("tok/s per user"),
        up: Axis::linear("tok/s per accelerator"),
        series: series.collect(),
        highlighted: None,
    }
}

fn described(curves: &[Curve], plot: &Plot, charset: Charset) -> String {
    let mut out = String::new();
    for curve in curves {
        let [layout, format] = [
            format!("tp {}, dp {}", curve.start.get(Knob::Tp), curve.start.get(Knob::Dp)),
            format!("{} on {}", curve.start.get(Knob::Precision), curve.start.get(Knob::Software)),
        ];
        out += &format!("{} ({layout}, {format})\n", curve.target);
        let head =
            ["in flight", "tok/s/user", "tok/s/accel", "tok/s", "TTFT", "TTFT p99", "TPOT", "$/1M tokens", "bound by"];
        let align = |i: usize| if i == 8 { Align::Left } else { Align::Right };
        let mut table = Table::new(head.into_iter().enumerate().map(|(i, name)| (name, align(i))));
        for point in &curve.points {
            let (total, serving) = (&point.estimate.total, &point.serving);
            let limits = point.estimate.detail.map(|detail| detail.limits);
            let bound = limits
                .map_or("", |limits| if limits.memory_capacity { "memory capacity" } else { limits.first().name() });
            table.row([
                format!("{}{}", point.concurrency, if point.efficient { " " } else { "-" }),
                units::significant(serving.tokens_per_sec_per_user, 4),
                units::si(total.tokens_per_sec / curve.accelerators),
                units::si(total.tokens_per_sec),
                units::duration_ms(serving.ttft_ms.mean),
                units::duration_ms(serving.ttft_ms.p99),
                units::duration_ms(serving.tpot_ms.mean),
                usd_per_1m_tokens(curve, point).map_or_else(|| "n/a".to_owned(), units::usd),
                bound.to_owned(),
            ]);
        }
        out += &table.render();
        out.push('\n');
    }
    let picture = text::draw(plot, output::width().min(100), 22, charset == Charset::Unicode);
    let beaten = curves.iter().any(|curve| curve.points.iter().any(|point| !point.efficient));
    let note = if beaten { "- dominated: another load is at least as good for users and accelerators\n" } else { "" };
    charset.write(&(out + note + &picture)).into_owned()
}

fn csv_of(curves: &[Curve]) -> String {
    let mut out = csv::line([
        "target",
        "concurrency",
        "tokens_per_sec_per_user",
        "tokens_per_sec_per_accel",
        "tokens_per_sec",
        "ttft_ms",
        "ttft_p99_ms",
        "tpot_ms",
        "dollar_per_1m_tokens",
        "efficient",
    ]);
    for curve in curves {
        for point in &curve.points {
            let figures =
                figures(curve, point).map(|(_, value)| value.map_or_else(String::new, |value| value.to_string()));
            let mut cells = vec![curve.target.clone()];
            cells.extend(figures);
            cells.push(point.efficient.to_string());
            out += &csv::line(&cells);
        }
    }
    out
}

/// Cost of a million tokens; `None` without a price.
fn usd_per_1m_tokens(curve: &Curve, point: &Point) -> Option<f64> {
    MetricId::DollarPer1mTokens.metric().applicable_value(&point.estimate, &curve.start)
}

fn figures(curve: &Curve, point: &Point) -> [(&'static str, Option<f64>); 8] {
    let (total, serving) = (&point.estimate.total, &point.serving);
    [
        ("concurrency", Some(point.concurrency)),
        ("tokens_per_sec_per_user", Some(serving.tokens_per_sec_per_user)),
        ("tokens_per_sec_per_accel", Some(total.tokens_per_sec / curve.accelerators)),
        ("tokens_per_sec", Some(total.tokens_per_sec)),
        ("ttft_ms", Some(serving.ttft_ms.mean)),
        ("ttft_p99_ms", Some(serving.ttft_ms.p99)),
        ("tpot_ms", Some(serving.tpot_ms.mean)),
        ("dollar_per_1m_tokens", usd_per_1m_tokens(curve, point)),
    ]
}

fn document(curves: &[Curve], workload: &str) -> serde_json::Value {
    let curve = |curve: &Curve| {
        let points = curve.points.iter().map(|point| {
            let mut entry: serde_json::Map<String, serde_json::Value> =
                figures(curve, point).into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
            entry.insert("efficient".to_owned(), json!(point.efficient));
            entry
        });
        json!({"target": curve.target, "points": points.collect::<Vec<_>>()})
    };
    json!({"workload": workload, "targets": curves.iter().map(curve).collect::<Vec<_>>()})
}
