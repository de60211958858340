//! `atlas break-even`.

use std::path::PathBuf;

use color_eyre::eyre::eyre;
use serde_json::{Value, json};

use super::args::{Globals, KnobArgs};
use super::output::{self, Charset};
use super::{pick, save};
use atlas_core::plan::PriceBasis;
use atlas_core::units;
use atlas_plan::engine::{analytical_scenario, estimate};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::break_even::{Point, break_even_utilization, curve};
use atlas_report::chart::{Axis, Plot, Series, drawing, svg, text};
use atlas_report::table::{Table, right};
use atlas_report::{Format, csv, to_json, to_yaml};

/// Compare renting with owning: the cost of a productive hour, by utilization.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas break-even --target h100-sxm-64 --workload llama3.1-70b-serve
  atlas break-even --target h100-sxm-64 --workload llama3.1-8b-train \\
    --set price_basis=marketplace --set capital_cost=0.12
  atlas break-even --target h100-sxm-8 --workload llama3.1-70b-serve --svg rent-or-own.svg

Owning includes purchase, interest, network, spares, colocation, staff and energy: knobs capex_usd_node, \
network_share, spares_share, usd_per_kw_month, staff_usd_node_year, capital_cost, amortization_years, usd_per_kwh. \
Reserved capacity is paid for all the time; other rental only while it is in use.")]
pub struct Args {
    /// Target
    #[arg(long, value_name = "NAME")]
    pub target: String,
    /// Workload, which determines power and tokens per hour
    #[arg(long, value_name = "NAME")]
    pub workload: String,
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

/// Prints the curve and the break-even point.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    args.knobs.check()?;
    let library = pick::library(globals);
    let parts = Parts::find(&library, &args.target, &args.workload).map_err(super::failure::Failure::from)?;
    let overrides = args.knobs.overrides(parts.fabrics())?;
    let start = Scenario::resolve(&parts, &overrides).map_err(|error| eyre!("{}: {error}", args.target))?;
    pick::check_runs(&parts, &estimate(&analytical_scenario(&start)))?;
    let points = curve(&start);
    if points.is_empty() {
        let lacks = match start.missing_price() {
            Some(price) => price,
            None if start.capex_usd_node.is_some() => "no rent: set hourly_usd".to_owned(),
            None => "no purchase price: set capex_usd_node".to_owned(),
        };
        return Err(eyre!("{}: {lacks}", args.target));
    }
    let plot = plot(&points, &start, &args);
    match args.format {
        Format::Table => output::print(&described(&points, &start, &plot, globals.charset()))?,
        Format::Csv => output::print(&csv_of(&points, &start))?,
        Format::Json => output::print(&to_json(&document(&points, &start, &args))?)?,
        Format::Yaml => output::print(&to_yaml(&document(&points, &start, &args))?)?,
    }
    if let Some(path) = &args.svg {
        let picture = drawing::plot(&plot, 720.0, 440.0).map_or_else(String::new, svg::standalone);
        save::save(path, picture)?;
    }
    Ok(())
}

/// Metrics of a point; hourly costs are per accelerator.
fn figures(point: &Point, start: &Scenario) -> [(&'static str, f64); 6] {
    let of_one = 1.0 / start.accelerators().max(1.0);
    [
        ("utilization", point.utilization),
        ("rent_usd_accel_hour", point.rent * of_one),
        ("owned_usd_accel_hour", point.owned * of_one),
        ("rent_usd_per_1m_tokens", point.rent / point.million_tokens),
        ("owned_usd_per_1m_tokens", point.owned / point.million_tokens),
        ("break_even_months", point.months),
    ]
}

fn plot(points: &[Point], start: &Scenario, args: &Args) -> Plot {
    let of_one = 1.0 / start.accelerators().max(1.0);
    let series = |name: &str, get: fn(&Point) -> f64| Series {
        name: name.to_owned(),
        points: points.iter().map(|point| (100.0 * point.utilization, of_one * get(point))).collect(),
        joined: true,
    };
    Plot {
        title: format!("{}: rent or own", args.target),
        across: Axis::linear("utilization, %"),
        up: Axis::linear("$ per productive accelerator-hour"),
        series: vec![series("rented", |point| point.rent), series("owned", |point| point.owned)],
        highlighted: None,
    }
}

/// What the costs of owned hardware assume outside its productive hours.
const IDLE_NODES: &str = "owned nodes draw idle power while they are not used";

/// The break-even point, in words.
fn verdict(start: &Scenario) -> String {
    match break_even_utilization(start) {
        Some(share) => format!("owning is cheaper above {} utilization", units::percent(share)),
        None => "renting is cheaper at any utilization".to_owned(),
    }
}

fn described(points: &[Point], start: &Scenario, plot: &Plot, charset: Charset) -> String {
    let head = ["utilization", "rent $/accel-h", "own $/accel-h", "rent $/1M", "own $/1M", "break-even after"];
    let mut table = Table::new(head.map(right));
    for point in points {
        let [_, rent, owned, rent_1m, owned_1m, months] = figures(point, start).map(|(_, value)| value);
        let even =
            if months.is_finite() { format!("{} months", units::significant(months, 3)) } else { "never".to_owned() };
        let usd = [rent, owned, rent_1m, owned_1m].map(units::usd);
        table.row(std::iter::once(units::percent(point.utilization)).chain(usd).chain(std::iter::once(even)));
    }
    // Owned hardware has no rent; the one shown is that of the target.
    let basis = start.price_basis().map_or("type of price not stated", |basis| match basis {
        PriceBasis::Owned => "of the target",
        rented => rented.name(),
    });
    let head = format!(
        "rent {} per node-hour ({basis}), purchase {} per node\n",
        units::usd(start.hourly_usd.unwrap_or(0.0)),
        units::usd(start.capex_usd_node.unwrap_or(0.0))
    );
    let picture = text::draw(plot, output::width().min(100), 18, charset == Charset::Unicode);
    let verdict = format!("{}; {IDLE_NODES}", verdict(start));
    charset.write(&(head + &table.render() + "\n" + &verdict + "\n\n" + &picture)).into_owned()
}

fn csv_of(points: &[Point], start: &Scenario) -> String {
    let mut out = String::new();
    for point in points {
        let figures = figures(point, start);
        if out.is_empty() {
            out += &csv::line(figures.map(|(name, _)| name));
        }
        // Empty where owning never breaks even, as in the JSON.
        let cells = figures.map(|(_, value)| csv::optional(Some(value).filter(|value| value.is_finite()).as_ref()));
        out += &csv::line(&cells);
    }
    out
}

fn document(points: &[Point], start: &Scenario, args: &Args) -> Value {
    let point = |point: &Point| {
        let figures = figures(point, start);
        // JSON has no infinity: without a break-even point, the value is null.
        let value = |value: f64| if value.is_finite() { json!(value) } else { Value::Null };
        figures.into_iter().map(|(name, figure)| (name.to_owned(), value(figure))).collect::<serde_json::Map<_, _>>()
    };
    json!({
        "target": args.target,
        "workload": args.workload,
        "price_basis": start.price_basis().map(atlas_core::plan::PriceBasis::name),
        "break_even_utilization": break_even_utilization(start),
        "assumed": IDLE_NODES,
        "points": points.iter().map(point).collect::<Vec<_>>(),
    })
}
