//! Text output of runs.

use crate::table::{Align, Table, left, right, wrap};
use atlas_core::units;
use atlas_plan::simulation::bottleneck::Bottleneck;
use atlas_plan::simulation::{Cost, Measured, MetricRuns, Outcome, Plan, Unit, difference, serving, training};
use atlas_sim::kernel::Interval;

/// Renders one run in full.
#[must_use]
pub fn render(plan: &Plan, outcome: &Outcome, width: usize) -> String {
    let mut out = format!("{}\n", plan.name);
    match &outcome.first {
        Measured::Training(m) => out += &of_training(m),
        Measured::Serving(m) => out += &of_serving(m),
    }
    out.push('\n');
    out += &figures(&[(plan, outcome)]);
    out.push('\n');
    match &outcome.first {
        Measured::Training(m) => out += &breakdown(m),
        Measured::Serving(m) => out += &levels(m),
    }
    out.push('\n');
    out += &bottlenecks(&outcome.bottlenecks, width);
    for note in &plan.notes {
        out += &wrap(&format!("note: {note}"), width, "      ");
        out.push('\n');
    }
    if outcome.canceled {
        out += "interrupted: these figures cover only what was simulated so far\n";
    }
    out
}

/// Compares several plans, with differences from the first over runs with the same seeds.
#[must_use]
pub fn comparison(answers: &[(Plan, Outcome)], width: usize) -> String {
    let pairs: Vec<(&Plan, &Outcome)> = answers.iter().map(|(plan, outcome)| (plan, outcome)).collect();
    let mut out = figures(&pairs);
    if let Some(((first, base), others)) = answers.split_first()
        && !others.is_empty()
    {
        out += &format!("\ndifference from {}, paired by seed\n", first.name);
        let columns = std::iter::once((String::new(), Align::Left))
            .chain(others.iter().map(|(plan, _)| right(plan.name.clone())));
        let mut table = Table::new(columns);
        for metric in base.metrics.iter().map(|found| found.metric) {
            let cells = others.iter().map(|(_, other)| {
                difference(base, other, metric).map_or_else(String::new, |interval| signed(&interval, metric.unit()))
            });
            table.row(std::iter::once(metric.label().to_owned()).chain(cells));
        }
        out += &table.render();
    }
    for (plan, outcome) in answers {
        out.push('\n');
        out += &format!("{}\n", plan.name);
        out += &bottlenecks(&outcome.bottlenecks, width);
        for note in &plan.notes {
            out += &wrap(&format!("note: {note}"), width, "      ");
            out.push('\n');
        }
    }
    out
}

fn figures(answers: &[(&Plan, &Outcome)]) -> String {
    let several = answers.iter().any(|(_, outcome)| outcome.metrics.iter().any(|metric| metric.runs.len() > 1));
    let head = |name: &str, runs: usize| {
        if several { format!("{name} ({runs} runs, 95 %)") } else { name.replace("mean", "simulated") }
    };
    let columns = std::iter::once((String::new(), Align::Left)).chain(answers.iter().map(|(plan, outcome)| {
        let runs = outcome.metrics.first().map_or(0, |metric| metric.runs.len());
        let name = if answers.len() > 1 { plan.name.as_str() } else { "mean" };
        (head(name, runs), Align::Right)
    }));
    let mut table = Table::new(columns);
    let Some((_, first)) = answers.first() else { return String::new() };
    for metric in first.metrics.iter().map(|found| found.metric) {
        let cells = answers.iter().map(|(_, outcome)| outcome.metric(metric).map_or_else(String::new, format_metric));
        table.row(std::iter::once(metric.label().to_owned()).chain(cells));
    }
    let costs: Vec<Option<Cost>> = answers.iter().map(|(plan, outcome)| Cost::of(plan, outcome)).collect();
    let mut row = |name: &str, get: fn(&Cost) -> Option<f64>| {
        let values: Vec<Option<f64>> = costs.iter().map(|cost| cost.as_ref().and_then(get)).collect();
        if values.iter().any(Option::is_some) {
            let cells = values.into_iter().map(|usd| usd.map_or_else(String::new, units::usd));
            table.row(std::iter::once(name.to_owned()).chain(cells));
        }
    };
    row("$/hour", |cost| Some(cost.usd_per_hour));
    row("$/1M tokens", |cost| Some(cost.usd_per_million_tokens));
    row("$/step", |cost| cost.usd_per_iteration);
    table.render()
}

/// Formats a metric with its confidence interval, if there are several runs.
fn format_metric(found: &MetricRuns) -> String {
    let (Interval { mean, half_width }, unit) = (found.interval(), found.metric.unit());
    with_half_width(described(mean, unit), half_width, unit)
}

fn signed(interval: &Interval, unit: Unit) -> String {
    let sign = if interval.mean >= 0.0 { "+" } else { "−" };
    with_half_width(format!("{sign}{}", described(interval.mean.abs(), unit)), interval.half_width, unit)
}

fn with_half_width(value: String, half_width: f64, unit: Unit) -> String {
    if half_width.is_finite() { format!("{value} ± {}", described(half_width, unit)) } else { value }
}

fn described(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Milliseconds => units::duration_ms(value),
        Unit::Share => units::percent(value),
        Unit::Number => units::significant(value, 4),
        Unit::PerSecond => format!("{}/s", units::significant(value, 4)),
        Unit::TokensPerSecond => units::with_unit(&units::si(value), unit.name()),
    }
}

fn of_training(m: &training::Measured) -> String {
    let s = &m.system;
    let o = &m.output;
    let mut out = format!(
        "{} accelerators: tp {}, pp {}, dp {}; {} {}s per step, micro-batches per replica: {}; steps: {}\n",
        s.accelerators,
        s.tp,
        s.pp,
        s.dp,
        s.global,
        m.sample,
        s.micro_batches(),
        o.steps.len()
    );
    out += &format!(
        "mean step {}, closed form {} ({}); {} {}s/s; MFU causal {}, PaLM {}\n",
        units::duration(o.step.mean),
        units::duration(m.analytical_step),
        units::relative(m.analytical_step, o.step.mean),
        units::si(m.samples_per_second()),
        m.sample,
        units::percent(m.mfu_causal()),
        units::percent(m.mfu())
    );
    out += &format!(
        "memory {} GB of {} on the fullest device{}\n",
        units::significant(m.memory.total() / units::BYTES_PER_GB, 3),
        units::significant(m.capacity / units::BYTES_PER_GB, 3),
        if m.memory.total() > m.capacity { ": does not fit, simulated anyway" } else { "" }
    );
    out += &allocator(m);
    out
}

/// Shares of a step below this are rounding errors.
const NEGLIGIBLE_SHARE: f64 = 1e-6;

/// Renders the statistics of the memory allocator.
fn allocator(m: &training::Measured) -> String {
    let a = &m.allocation;
    format!(
        "allocator on stage {}: peak {} GB in use, {} GB reserved, {} fragmented\n",
        a.stage,
        units::significant(a.allocated * 1e-9, 3),
        units::significant(a.reserved * 1e-9, 3),
        units::percent(a.fragmentation())
    )
}

fn breakdown(m: &training::Measured) -> String {
    let mut table = Table::new([left("step time by part"), right("simulated"), right(""), right("closed form")]);
    let step = m.output.step.mean.max(1e-12);
    for ((part, seconds), (_, closed)) in m.parts.list().into_iter().zip(m.closed_parts().list()) {
        if seconds > NEGLIGIBLE_SHARE * step || closed > NEGLIGIBLE_SHARE * step {
            table.row([
                part.name().to_owned(),
                units::duration(seconds),
                units::percent(seconds / step),
                units::duration(closed),
            ]);
        }
    }
    table.render()
}

fn of_serving(m: &serving::Measured) -> String {
    let (s, o) = (&m.system, &m.output);
    let load = m.offered.map_or_else(
        || format!("{} concurrent requests", units::significant_short(o.running + o.waiting)),
        |rate| format!("{} requests/s", units::significant_short(rate)),
    );
    let mut out = format!(
        "{} replicas with tp {}, pp {}; {load}; {} requests measured, mean input {} and output {} tokens\n",
        s.layout.dp,
        s.layout.tp,
        s.layout.pp,
        o.requests,
        units::significant_short(s.isl),
        units::significant_short(s.osl)
    );
    out += &format!(
        "{} while requests arrive, closed form {} ({})\n",
        units::with_unit(&units::si(m.steady_rate()), "tok/s"),
        units::with_unit(&units::si(m.analytical_tokens_per_sec), "tok/s"),
        units::relative(m.analytical_tokens_per_sec, m.steady_rate())
    );
    if o.rejected > 0 {
        out += &format!("{} requests did not fit any replica and were rejected\n", o.rejected);
    }
    out
}

fn levels(m: &serving::Measured) -> String {
    let o = &m.output;
    let (memory, peak) = m.memory_use();
    let mut table = Table::new([left("level"), right("mean"), right("most")]);
    table.row(["waiting".to_owned(), units::significant(o.waiting, 3), units::significant_short(o.max_waiting as f64)]);
    table.row(["running".to_owned(), units::significant(o.running, 3)]);
    table.row(["KV blocks".to_owned(), units::percent(o.kv_share), units::percent(o.max_kv_share)]);
    table.row(["device memory".to_owned(), units::percent(memory), units::percent(peak)]);
    table.row(["replicas busy".to_owned(), units::percent(o.busy)]);
    if o.replicas < o.max_replicas {
        table.row(["replicas".to_owned(), units::significant(o.replicas, 3), units::significant_short(o.max_replicas)]);
    }
    let mut out = table.render();
    if o.preemptions > 0 {
        out += &format!("{} preemptions for lack of KV blocks\n", o.preemptions);
    }
    out
}

fn bottlenecks(all: &[Bottleneck], width: usize) -> String {
    let mut out = String::new();
    let mut table = Table::new([left("bottleneck"), right("share"), right("threshold"), left("")]);
    for one in all {
        let sign = match one {
            one if one.limiting => "limits",
            one if one.severity > one.threshold => "high",
            _ => "",
        };
        table.row([one.kind.to_owned(), units::percent(one.severity), units::percent(one.threshold), sign.to_owned()]);
    }
    out += &table.render();
    for one in all.iter().filter(|one| one.limiting) {
        for advice in &one.recommendations {
            out += &wrap(&format!("{}: {advice}", one.kind), width, "  ");
            out.push('\n');
        }
    }
    if all.iter().all(|one| !one.limiting) {
        out += "nothing exceeds its threshold\n";
    }
    out
}
