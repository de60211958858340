//! One estimate as text: all applicable metrics, the phases, and notes on the numbers.

use std::fmt::Write as _;

use super::breakdown::bars;
use super::table::{Align, Table, left, right, wrap};
use atlas_config::{Mode, Workload};
use atlas_core::units;
use atlas_plan::advice::Advice;
use atlas_plan::engine::notes::notes;
use atlas_plan::estimate::standing::is_available;
use atlas_plan::estimate::{Detail, Estimate, METRICS, Metrics, Section, digits};
use atlas_plan::knob::{Group, Knob};
use atlas_plan::scenario::{Parts, Scenario};

/// Maximum pieces of advice after an estimate; `atlas advise` prints all.
const MAX_ADVICE: usize = 3;

/// Renders the whole estimate as text, wrapped to `width` columns: metrics, phases, bottleneck, breakdowns of time and
/// memory, the first three pieces of advice, and notes on the numbers.
#[must_use]
pub fn render(
    parts: &Parts,
    track: &str,
    scenario: &Scenario,
    answer: &Estimate,
    advice: &[Advice],
    width: usize,
) -> String {
    let (target, workload) = (&parts.target, &parts.workload);
    let mut out = format!("{} × {}\n", target.name, workload.name);
    let _ = writeln!(out, "{}, track {track}, seed {}", scenario.mode().name(), scenario.seed);
    let _ = writeln!(out, "{}\n", wrap(&knobs(scenario), width, ""));
    out.push_str(&figures(scenario, answer));
    if !answer.phases.is_empty() && answer.runs() {
        out.push('\n');
        out.push_str(&phases(scenario, workload, answer));
    }
    if let Some(detail) = &answer.detail {
        out.push('\n');
        out.push_str(&bounds(scenario, detail, answer.runs(), width));
    }
    if !advice.is_empty() {
        out.push_str("\nadvice\n");
        for one in advice.iter().take(MAX_ADVICE) {
            let _ = writeln!(out, "  {}", wrap(&super::advice::line(one), width.saturating_sub(2), "    "));
        }
    }
    out.push('\n');
    for note in notes(scenario, answer) {
        let _ = writeln!(out, "{}", wrap(&format!("note: {note}"), width, "      "));
    }
    out
}

/// The knobs of the runtime and the parallelism in effect, in one line.
fn knobs(scenario: &Scenario) -> String {
    let shown = Knob::all().filter(|knob| matches!(knob.spec().group, Group::Runtime | Group::Parallelism));
    let shown = shown.filter(|knob| scenario.uses(*knob));
    let shown: Vec<String> = shown.map(|knob| format!("{} {}", knob.name(), scenario.get(knob))).collect();
    shown.join(", ")
}

/// Renders all applicable metrics under the headings of their sections.
#[must_use]
pub fn figures(scenario: &Scenario, answer: &Estimate) -> String {
    let mut table = Table::new([left(""), right(""), left("")]);
    let mut section: Option<Section> = None;
    for metric in METRICS.iter().filter(|metric| metric.applies_to(scenario) && is_available(metric, answer)) {
        if section != Some(metric.section) {
            section = Some(metric.section);
            table.section(metric.section.name());
        }
        let shown = digits::shown(metric, scenario, answer);
        // The unit is already shown with the value.
        let interval = digits::interval(metric, scenario, answer);
        let interval = interval.map_or_else(String::new, |[low, high]| format!("[{low} .. {high}]"));
        table.row([format!("  {}", metric.label), shown, interval]);
    }
    table.render()
}

/// Renders the bottleneck, the verdict, and breakdowns of time and memory. A scenario that does not run has no time
/// breakdown.
#[must_use]
pub fn bounds(scenario: &Scenario, detail: &Detail, runs: bool, width: usize) -> String {
    let mut out = String::new();
    if runs {
        let _ = writeln!(out, "{}", wrap(&format!("bottleneck: {}", detail.limits.describe()), width, "  "));
    }
    let _ = writeln!(out, "{}", wrap(&format!("verdict: {}", detail.verdict.describe()), width, "  "));
    let whole = match scenario.mode() {
        Mode::Training => "an optimizer step",
        Mode::Inference => "a token of every running sequence",
    };
    if runs {
        let _ = write!(out, "\ntime of {whole}\n{}", bars(&detail.time, units::duration));
    }
    let bytes = units::memory;
    let (upper, has) = (bytes(detail.memory.upper), bytes(detail.memory.capacity));
    let _ = write!(out, "\ndevice memory: upper bound {upper} of {has}\n{}", bars(&detail.memory.parts, bytes));
    out
}

/// Renders a table with a row per phase.
#[must_use]
pub fn phases(scenario: &Scenario, workload: &Workload, answer: &Estimate) -> String {
    let inference = scenario.mode() == Mode::Inference;
    let training = ["phase", "minutes", "tok/s", "step time", "power/node", "comm share"];
    let serving =
        ["phase", "minutes", "tok/s", "p50", "p95", "p99", "TTFT", "wait p99", "queue load", "requests/s", "servers"];
    let head: &[&str] = if inference { &serving } else { &training };
    let align = |i: usize| if i == 0 { Align::Left } else { Align::Right };
    let mut table = Table::new(head.iter().enumerate().map(|(i, name)| (*name, align(i))));
    for (spec, phase) in workload.phases.iter().zip(&answer.phases) {
        let mut cells = vec![spec.name.to_string(), units::si(phase.minutes), units::si(phase.tokens_per_sec)];
        if inference {
            cells.extend(serving_cells(phase));
        } else {
            cells.push(phase.step_time_ms.map_or_else(|| "–".to_owned(), units::duration_ms));
            cells.push(units::with_unit(&units::si(phase.node_power_w), "W"));
            cells.push(units::percent(phase.comm_compute_ratio));
        }
        table.row(cells);
    }
    table.render()
}

/// Latencies of a phase, including the queueing delay if it has a queue, and the state of the queue.
fn serving_cells(phase: &Metrics) -> Vec<String> {
    let latency = phase.queued_latency().map(|latency| [latency.p50, latency.p95, latency.p99, latency.ttft]);
    let mut cells = latency.map_or_else(|| vec!["–".to_owned(); 4], |all| all.map(units::duration_ms).to_vec());
    if let Some(queue) = phase.queue {
        cells.push(units::duration_ms(queue.wait.p99));
        cells.push(units::percent(queue.utilization));
        cells.push(units::si(queue.arrival_rate));
        cells.push(units::si(queue.servers));
    }
    cells
}
