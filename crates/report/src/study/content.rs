//! Content of a study.

use super::{Block, Cell, Entry, Grid, Study, advice, workload};
use crate::chart::{Axis, Bar, Bars, Plot, Series};
use crate::table::{Align, left, right};
use atlas_config::Mode;
use atlas_core::plan::Engine;
use atlas_core::units;
use atlas_plan::engine::notes::notes;
use atlas_plan::estimate::standing::{Rank, ranks, value_with_interval};
use atlas_plan::estimate::{Breakdown, COMPARED, METRICS, Metric, MetricId, Part, Scale};
use atlas_plan::knob::Knob;
use atlas_plan::search::frontier::frontier;
use atlas_plan::search::methodology::{mixed_calibrations, mixed_prices, prices_prevent_ranking};

/// Builds all blocks of the study.
#[must_use]
pub fn blocks(study: &Study) -> Vec<Block> {
    let mut out = vec![Block::Heading(1, format!("{} on {}", workload(study), targets(study)))];
    out.push(Block::Text(format!("Atlas Fabric {}, {}.", env!("CARGO_PKG_VERSION"), study.created_at)));
    summary(study, &mut out);
    comparison(study, &mut out);
    charts(study, &mut out);
    breakdowns(study, &mut out);
    advice::improvements(study, &mut out);
    schedule(study, &mut out);
    assumptions(study, &mut out);
    method(study, &mut out);
    out
}

fn targets(study: &Study) -> String {
    match study.entries.as_slice() {
        [one] => one.name.clone(),
        [one, other] => format!("{} and {}", one.name, other.name),
        all => format!("{} targets", all.len()),
    }
}

/// Best entry by a metric, among those that fit.
fn best<'s>(study: &'s Study, metric: &Metric) -> Option<(&'s Entry, f64)> {
    let fitting = study.entries.iter().filter(|entry| entry.fits());
    let values = fitting.filter_map(|entry| Some((entry, entry.value(metric).filter(|value| value.is_finite())?)));
    metric.better.best(values)
}

fn summary(study: &Study, out: &mut Vec<Block>) {
    out.push(Block::Heading(2, "Summary".to_owned()));
    let mut points = Vec::new();
    let serving = study.entries.first().is_some_and(|entry| entry.scenario.mode() == Mode::Inference);
    let titles: &[(MetricId, &str)] = if serving {
        &[
            (MetricId::TokensPerSec, "Fastest"),
            (MetricId::DollarPer1mTokens, "Cheapest per token"),
            (MetricId::TpotMs, "Lowest time per output token"),
            (MetricId::TokensPerJoule, "Highest energy efficiency"),
        ]
    } else {
        &[
            (MetricId::TokensPerSec, "Fastest"),
            (MetricId::DollarPer1mTokens, "Cheapest per token"),
            (MetricId::Mfu, "Highest MFU"),
            (MetricId::TokensPerJoule, "Highest energy efficiency"),
        ]
    };
    for (id, title) in titles {
        let metric = id.metric();
        if let Some((entry, value)) = best(study, metric) {
            points.push(format!("{title}: {}, {}{}", entry.name, metric.show(value), interval(entry, metric)));
        }
    }
    out.extend(compared(study).map(Block::Text));
    out.extend(recommendation(study).map(Block::Callout));
    points.extend(mixed_prices(study.entries.iter().map(|entry| &entry.scenario)));
    points.extend(mixed_calibrations(study.entries.iter().map(|entry| (entry.name.as_str(), &entry.estimate))));
    out.push(Block::List(points));
    let unfit = study.entries.iter().filter(|entry| !entry.fits());
    let mut problems: Vec<String> = unfit
        .filter_map(|entry| Some(format!("{}: {}", entry.name, entry.estimate.detail?.verdict.describe())))
        .collect();
    problems.extend(study.failed.iter().map(|(name, why)| format!("{name}: {why}")));
    if !problems.is_empty() {
        out.push(Block::Heading(3, "Cannot run".to_owned()));
        out.push(Block::List(problems));
    }
    let bounds = study
        .entries
        .iter()
        .filter_map(|entry| Some(format!("{} is {}", entry.name, entry.estimate.detail?.limits.describe())));
    let bounds: Vec<String> = bounds.collect();
    if !bounds.is_empty() {
        out.push(Block::Heading(3, "What limits it".to_owned()));
        out.push(Block::List(bounds));
    }
}

/// Describes the workload and the targets in a sentence, so that the summary can be understood on its own.
fn compared(study: &Study) -> Option<String> {
    let first = study.entries.first()?;
    // Settings that differ between targets are in the table of differences instead.
    let common = |knob: Knob| {
        let value = first.scenario.get(knob);
        study.entries.iter().all(|entry| entry.scenario.get(knob) == value).then(|| value.to_string())
    };
    let clause = |knob: Knob, before: &str, after: &str| common(knob).map(|value| format!("{before}{value}{after}"));
    let (verb, clauses) = match first.scenario.mode() {
        _ if first.scenario.model.is_none() => ("Running", Vec::new()),
        Mode::Inference => (
            "Serving",
            vec![
                clause(Knob::Precision, "in ", ""),
                clause(Knob::Prompt, "prompts of ", " tokens"),
                clause(Knob::Generate, "outputs of ", " tokens"),
                clause(Knob::Concurrency, "", " requests in flight"),
            ],
        ),
        Mode::Training => (
            "Training",
            vec![
                clause(Knob::Precision, "in ", ""),
                clause(Knob::Prompt, "sequences of ", " tokens"),
                clause(Knob::Global, "", " sequences per step"),
            ],
        ),
    };
    let model = first.parts.model_name();
    let what = if model.is_empty() { workload(study).to_string() } else { model.to_string() };
    let parts: Vec<String> = std::iter::once(format!("{verb} {what}")).chain(clauses.into_iter().flatten()).collect();
    let mut text = format!("{}.", parts.join(", "));
    for entry in &study.entries {
        let price = entry.scenario.hourly_usd.map_or_else(
            || "no price".to_owned(),
            |usd| format!("{} per hour", units::usd(usd * f64::from(entry.scenario.num_nodes))),
        );
        text += &format!(" {}: {} accelerators, {price}.", entry.name, entry.scenario.accelerators());
    }
    Some(text)
}

/// Recommends a target by price and by speed, and warns if the intervals overlap.
fn recommendation(study: &Study) -> Option<String> {
    if study.entries.len() < 2 {
        return None;
    }
    let (cost, speed) = (MetricId::DollarPer1mTokens.metric(), MetricId::TokensPerSec.metric());
    let (cheap, price) = best(study, cost)?;
    let (fast, rate) = best(study, speed)?;
    let (price, rate) = (units::usd(price), speed.show(rate));
    let advice = if std::ptr::eq(cheap, fast) {
        format!(
            "{} is both the fastest ({rate}) and the cheapest ({price} per million tokens) option that fits.",
            fast.name
        )
    } else {
        format!("{} is the cheapest, {price} per million tokens; {} is the fastest, {rate}.", cheap.name, fast.name)
    };
    let (_, high) = cost.interval(&cheap.estimate, &cheap.scenario)?;
    let rivals = study.entries.iter().filter(|entry| !std::ptr::eq(*entry, cheap) && entry.fits());
    let near =
        rivals.filter(|entry| cost.interval(&entry.estimate, &entry.scenario).is_some_and(|(low, _)| low < high));
    let near: Vec<&str> = near.map(|entry| entry.name.as_str()).collect();
    if near.is_empty() {
        return Some(advice);
    }
    Some(format!(
        "{advice} The 90 % interval of the price on {} overlaps with {} of {}: measure before you buy.",
        cheap.name,
        if near.len() == 1 { "that" } else { "those" },
        near.join(" and ")
    ))
}

/// The 90 % interval of a metric, in words.
fn interval(entry: &Entry, metric: &Metric) -> String {
    let Some((low, high)) = metric.interval(&entry.estimate, &entry.scenario) else { return String::new() };
    let scale = Scale::of(metric, metric.value(&entry.estimate, &entry.scenario).into_iter());
    format!(" (90 %: {})", scale.interval_in_words(low, high))
}

fn comparison(study: &Study, out: &mut Vec<Block>) {
    out.push(Block::Heading(2, "Comparison".to_owned()));
    if study.entries.len() > 1 {
        let marks = "Bold: best, with an interval that overlaps no other. =: tied with the best.";
        out.push(Block::Text(marks.to_owned()));
    }
    let mut head = vec![left("metric".to_owned())];
    head.extend(study.entries.iter().map(|entry| right(entry.name.clone())));
    let mut rows = Vec::new();
    for metric in METRICS.iter().filter(|metric| study.entries.iter().any(|entry| metric.applies_to(&entry.scenario))) {
        let ranked = !prices_prevent_ranking(metric, study.entries.iter().map(|entry| &entry.scenario));
        let rank = |entry: &Entry| {
            (ranked && entry.fits()).then(|| value_with_interval(metric, &entry.scenario, &entry.estimate)).flatten()
        };
        let figures: Vec<_> = study.entries.iter().map(rank).collect();
        let cell = |(entry, standing): (&Entry, Rank)| {
            let Some(value) = entry.value(metric) else { return Cell::text("–") };
            let tied = if standing == Rank::Tied { " =" } else { "" };
            let text = format!("{}{tied}", metric.show(value));
            Cell { best: standing == Rank::Best, ..Cell::number(text, value) }
        };
        let cells = study.entries.iter().zip(ranks(&figures, metric.better)).map(cell);
        rows.push(std::iter::once(Cell::text(metric.label)).chain(cells).collect());
    }
    out.push(Block::Table(Grid { head, rows }));
    differences(study, out);
}

/// Appends a table of the knobs in which the entries differ.
fn differences(study: &Study, out: &mut Vec<Block>) {
    let knobs = atlas_plan::knob::Knob::all().filter(|knob| {
        let mut values = study.entries.iter().filter(|entry| entry.scenario.uses(*knob)).map(|e| e.scenario.get(*knob));
        let first = values.next();
        values.any(|value| Some(value) != first)
    });
    let row = |knob: atlas_plan::knob::Knob| {
        let value = |entry: &Entry| {
            if entry.scenario.uses(knob) { Cell::text(entry.scenario.get(knob).to_string()) } else { Cell::text("–") }
        };
        std::iter::once(Cell::text(knob.name())).chain(study.entries.iter().map(value)).collect()
    };
    let rows: Vec<Vec<Cell>> = knobs.map(row).collect();
    if rows.is_empty() || study.entries.len() < 2 {
        return;
    }
    out.push(Block::Heading(3, "Configuration differences".to_owned()));
    let mut head = vec![left("knob".to_owned())];
    head.extend(study.entries.iter().map(|entry| right(entry.name.clone())));
    out.push(Block::Table(Grid { head, rows }));
}

fn charts(study: &Study, out: &mut Vec<Block>) {
    out.push(Block::Heading(2, "Charts".to_owned()));
    // Bars serve comparison; a single bar adds nothing to the table.
    if study.entries.len() > 1 {
        bars(study, out);
    }
    heat(study, out);
    curves(study, out);
}

/// Appends bars that compare the key metrics of the entries.
fn bars(study: &Study, out: &mut Vec<Block>) {
    out.push(Block::Text("Thin lines show 90 % intervals.".to_owned()));
    for metric in COMPARED.into_iter().chain([MetricId::PowerW]).map(MetricId::metric) {
        let bar = |entry: &Entry| {
            let value = entry.value(metric).filter(|value| value.is_finite() && *value > 0.0)?;
            Some(Bar {
                name: entry.name.clone(),
                parts: vec![(metric.label.to_owned(), value)],
                label: metric.show(value),
                interval: metric.interval(&entry.estimate, &entry.scenario),
                limit: None,
            })
        };
        let bars: Vec<Bar> = study.entries.iter().filter_map(bar).collect();
        if !bars.is_empty() {
            out.push(Block::Heading(3, format!("{}: {}", metric.label, metric.help)));
            out.push(Block::Bars(Bars { title: metric.label.to_owned(), bars }));
        }
    }
}

fn heat(study: &Study, out: &mut Vec<Block>) {
    let columns = [MetricId::FlopUtilization, MetricId::HbmBwUtil, MetricId::CommComputeRatio].map(MetricId::metric);
    let mut head = vec![left("utilization".to_owned())];
    head.extend(columns.iter().map(|metric| right(metric.label.to_owned())));
    head.push(right("memory".to_owned()));
    let row = |entry: &Entry| {
        let mut cells = vec![Cell::text(entry.name.clone())];
        for metric in columns {
            let value = entry.value(metric);
            cells.push(value.map_or_else(|| Cell::text("–"), |value| Cell::number(units::percent(value), value)));
        }
        let full = entry.estimate.total.peak_mem_gb / entry.scenario.memory_gb_per_accel;
        let full = entry.estimate.detail.map_or(full, |detail| detail.memory.total() / detail.memory.capacity);
        cells.push(Cell::number(units::percent(full), full));
        cells
    };
    out.push(Block::Heading(3, "Utilization".to_owned()));
    out.push(Block::Heat(Grid { head, rows: study.entries.iter().map(row).collect() }));
}

/// Appends the throughput–interactivity frontier of every inference entry whose engine models hardware.
fn curves(study: &Study, out: &mut Vec<Block>) {
    let curve = |entry: &Entry| {
        if entry.scenario.mode() != Mode::Inference || !entry.scenario.engine.models_hardware() {
            return None;
        }
        let points = frontier(&entry.scenario, &entry.parts, 65_536.0).ok()?;
        let accelerators = entry.scenario.accelerators();
        let place = |point: &atlas_plan::search::frontier::Point| {
            (point.serving.tokens_per_sec_per_user, point.estimate.total.tokens_per_sec / accelerators)
        };
        let points: Vec<(f64, f64)> = points.iter().filter(|point| point.efficient).map(place).collect();
        (points.len() > 1).then(|| Series { name: entry.name.clone(), points, joined: true })
    };
    let series: Vec<Series> = study.entries.iter().filter_map(curve).collect();
    if !series.is_empty() {
        out.push(Block::Heading(3, "Throughput against interactivity as concurrency grows".to_owned()));
        out.push(Block::Plot(Plot {
            title: "throughput against interactivity".to_owned(),
            across: Axis::linear("tok/s per user"),
            up: Axis::linear("tok/s per accelerator"),
            series,
            highlighted: None,
        }));
    }
}

fn named<P: Part>(parts: &Breakdown<P>) -> Vec<(String, f64)> {
    parts.parts().map(|(part, value)| (part.name().to_owned(), value)).collect()
}

/// Appends time and memory breakdowns of every entry that has one.
pub fn breakdowns(study: &Study, out: &mut Vec<Block>) {
    let detailed = || study.entries.iter().filter_map(|entry| Some((entry, entry.estimate.detail?)));
    if detailed().next().is_none() {
        return;
    }
    out.push(Block::Heading(2, "Where time and memory go".to_owned()));
    let training = study.entries.iter().any(|entry| entry.scenario.mode() == Mode::Training);
    out.push(Block::Text(
        if training { "Time of one optimizer step." } else { "Time per output token of a replica." }.to_owned(),
    ));
    let time = detailed().map(|(entry, detail)| Bar {
        name: entry.name.clone(),
        parts: named(&detail.time),
        label: units::duration(detail.time.total()),
        interval: None,
        limit: None,
    });
    out.push(Block::Bars(Bars { title: "time".to_owned(), bars: time.collect() }));
    out.push(Block::Text("Memory of the fullest device; the vertical line is its capacity, and the whisker ends at the upper bound that determines whether it fits.".to_owned()));
    let memory = detailed().map(|(entry, detail)| Bar {
        name: entry.name.clone(),
        parts: named(&detail.memory.parts),
        label: format!(
            "{} of {} GB",
            units::significant(detail.memory.total() / units::BYTES_PER_GB, 4),
            units::significant(detail.memory.capacity / units::BYTES_PER_GB, 4)
        ),
        interval: Some((detail.memory.total(), detail.memory.upper)),
        limit: Some(detail.memory.capacity),
    });
    out.push(Block::Bars(Bars { title: "memory".to_owned(), bars: memory.collect() }));
}

/// Appends the phases of every entry with a schedule.
pub fn schedule(study: &Study, out: &mut Vec<Block>) {
    let scheduled: Vec<&Entry> = study.entries.iter().filter(|entry| !entry.estimate.phases.is_empty()).collect();
    if scheduled.is_empty() {
        return;
    }
    out.push(Block::Heading(2, "Schedule".to_owned()));
    for entry in scheduled {
        out.push(Block::Heading(3, entry.name.clone()));
        let names = ["phase", "minutes", "tok/s", "p99", "wait p99", "load", "power/node"];
        let align = |i: usize| if i == 0 { Align::Left } else { Align::Right };
        let head = names.iter().enumerate().map(|(i, name)| ((*name).to_owned(), align(i))).collect();
        let phases = entry.parts.workload.phases.iter().zip(&entry.estimate.phases);
        let rows = phases.map(|(spec, figures)| {
            let queue = figures.queue;
            let or_dash = |shown: Option<String>| Cell::text(shown.unwrap_or_else(|| "–".to_owned()));
            vec![
                Cell::text(spec.name.to_string()),
                Cell::number(units::si(figures.minutes), figures.minutes),
                Cell::number(units::si(figures.tokens_per_sec), figures.tokens_per_sec),
                or_dash(figures.queued_latency().map(|latency| units::duration_ms(latency.p99))),
                or_dash(queue.map(|queue| units::duration_ms(queue.wait.p99))),
                or_dash(queue.map(|queue| units::percent(queue.utilization))),
                Cell::number(units::with_unit(&units::si(figures.node_power_w), "W"), figures.node_power_w),
            ]
        });
        out.push(Block::Table(Grid { head, rows: rows.collect() }));
    }
}

fn assumptions(study: &Study, out: &mut Vec<Block>) {
    out.push(Block::Heading(2, "Assumptions and sources".to_owned()));
    for entry in &study.entries {
        out.push(Block::Heading(3, entry.name.clone()));
        let parts = &entry.parts;
        let mut points = notes(&entry.scenario, &entry.estimate);
        let from = |origin: &atlas_document::Origin| origin.to_string();
        points.push(format!("target: {}{}", from(&parts.target.origin), remark(parts.target.notes.as_deref())));
        points.push(format!("workload: {}{}", from(&parts.workload.origin), remark(parts.workload.notes.as_deref())));
        if let Some(sheet) = &parts.accelerator {
            points.push(format!(
                "accelerator {}: {}{}",
                sheet.id,
                from(&sheet.origin),
                remark(sheet.source.as_deref())
            ));
        }
        if let Some(model) = &parts.model {
            points.push(format!("model {}: {}{}", model.id, from(&model.origin), remark(model.source.as_deref())));
        }
        if let Some(profile) = parts.profile.as_ref().filter(|_| entry.scenario.engine == Engine::SemiEmpirical) {
            points.push(format!("profile {}: {}", profile.name, from(&profile.origin)));
        }
        for (knob, setting) in &entry.overrides {
            points.push(format!("{} = {setting}, set by the user", knob.name()));
        }
        out.push(Block::List(points));
    }
}

fn remark(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!(" – {}", text.trim()))
}

fn method(study: &Study, out: &mut Vec<Block>) {
    out.push(Block::Heading(2, "Method".to_owned()));
    let uses = |engine| study.entries.iter().any(|entry| entry.scenario.engine == engine);
    if uses(Engine::Analytical) {
        out.push(Block::Text(
            "The analytical engine adds up operators on a roofline whose efficiency depends on shape and format, \
             collectives with an alpha–beta model over the actual link hierarchy, pipeline schedules, overlap, the \
             scheduler of the serving software, and memory by purpose. Its few constants are physical and fitted on \
             published measurements with one source left out at a time; `atlas validate` prints the errors. Intervals \
             are 90 % prediction intervals: split conformal, from residuals on sources that the fit did not see. They \
             apply to absolute values; ratios between similar machines are more certain than either value."
                .to_owned(),
        ));
    }
    if uses(Engine::SemiEmpirical) {
        out.push(Block::Text(
            "The semi-empirical engine scales calibrated coefficients of a profile; its throughput does not depend on \
             the size of the model, and no interval is known."
                .to_owned(),
        ));
    }
    if uses(Engine::Benchboard) {
        out.push(Block::Text(
            "The benchboard engine reproduces the estimator of the predecessor dashboard: it counts the \
             tokens of the global batch, but the work of one micro-batch; `atlas scenario compare` shows where the \
             analytical engine differs, and why. No interval is known."
                .to_owned(),
        ));
    }
    out.push(Block::Heading(3, "To reproduce this report".to_owned()));
    out.push(Block::Code(study.command.clone()));
}
