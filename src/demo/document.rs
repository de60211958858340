//! Formats the report of a tour as Markdown.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::report::{HeadlessReport, Run};
use super::script::Demo;
use atlas_config::Mode;
use atlas_core::escape;
use atlas_core::units;
use atlas_plan::engine::notes::notes;
use atlas_plan::estimate::MetricId;
use atlas_plan::estimate::standing::Rank;
use atlas_plan::record::at;
use atlas_report::comparison::{Column, Comparison};
use atlas_report::estimate::phases;

/// Caveats that apply to all metrics of the calibrated model, whatever the scenario.
const CAVEATS: [&str; 5] = [
    "Tokens/s do not depend on the model size, the precision or the micro-batch size; in training, they do not depend \
     on the sequence length either.",
    "Nodes scale perfectly: traffic between them is not modeled.",
    "Waiting times are capped at a fixed share of the service latency, and utilization is clipped before it is divided \
     among the servers, so overload cannot appear.",
    "Percentiles of a schedule are means of its phases' percentiles, weighted by duration.",
    "Use the figures to compare settings, not as absolute predictions.",
];

/// Formats the report.
pub(super) fn markdown(demo: &Demo, report: &HeadlessReport, now: Timestamp) -> String {
    let mut out = format!("# {}\n\n", inline(&demo.title));
    if let Some(description) = &demo.description {
        let _ = writeln!(out, "{}\n", inline(description));
    }
    let (held, all) = report.held();
    let ran = report.runs.iter().filter(|run| run.run.is_ok()).count();
    let _ =
        writeln!(out, "- Demo `{}` of {}, {}", demo.name, demo.origin, at(now).replace('T', " ").replace('Z', " UTC"));
    let _ = writeln!(out, "- Workload `{}`, {ran} of {} targets ran", demo.workload, report.runs.len());
    let _ = writeln!(out, "- Expectations: {held} of {all} hold; the tour {}", verdict(report.passed()));
    let comparison = compare(demo, report);
    side_by_side(&mut out, &comparison);
    best(&mut out, &comparison);
    schedules(&mut out, report);
    searches(&mut out, demo, report);
    expectations(&mut out, report);
    caveats(&mut out, report);
    out
}

fn verdict(passed: bool) -> &'static str {
    if passed { "passed" } else { "FAILED" }
}

/// Returns the text on one line, with Markdown escaped.
fn inline(text: &str) -> String {
    escape::markdown(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn row(out: &mut String, cells: impl IntoIterator<Item = impl AsRef<str>>) {
    let cells: Vec<String> = cells.into_iter().map(|cell| inline(cell.as_ref())).collect();
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

fn runs(report: &HeadlessReport) -> impl Iterator<Item = &Run> {
    report.runs.iter().filter_map(|run| run.run.as_ref().ok())
}

fn compare(demo: &Demo, report: &HeadlessReport) -> Comparison {
    let columns = report.runs.iter().map(|run| Column {
        target: run.target.to_string(),
        answer: run.run.as_ref().map(|run| (run.scenario.clone(), run.estimate.clone())).map_err(Clone::clone),
        adapted: Vec::new(),
        changes: Vec::new(),
    });
    Comparison { workload: demo.workload.to_string(), columns: columns.collect(), baseline: 0, chosen: Vec::new() }
}

fn side_by_side(out: &mut String, comparison: &Comparison) {
    out.push_str(
        "\n## Side by side\n\nThe best value of each row is bold if its interval does not overlap those of \
        the others; values that are tied for the best end in =.\n\n",
    );
    row(out, std::iter::once("").chain(comparison.columns.iter().map(|column| column.target.as_str())));
    row(out, std::iter::once("---").chain(comparison.columns.iter().map(|_| "---:")));
    for line in comparison.lines() {
        let cells = line.values.iter().zip(&line.ranks).map(|(value, standing)| match (value, standing) {
            (None, _) => "–".to_owned(),
            (Some(value), Rank::Unmarked) => line.metric.show(*value),
            (Some(value), Rank::Tied) => format!("{} =", line.metric.show(*value)),
            (Some(value), Rank::Best) => format!("**{}**", line.metric.show(*value)),
        });
        row(out, std::iter::once(line.metric.label.to_owned()).chain(cells));
    }
    for column in &comparison.columns {
        if let Err(error) = &column.answer {
            let _ = writeln!(out, "\n`{}` could not run: {}", column.target, inline(error));
        }
    }
}

/// Lists the best target by throughput, by cost and by p99 latency.
fn best(out: &mut String, comparison: &Comparison) {
    out.push_str("\n## Best by\n\n");
    let lines = comparison.lines();
    let kinds = [
        ("throughput", MetricId::TokensPerSec),
        ("cost", MetricId::DollarPer1mTokens),
        ("latency at p99", MetricId::P99Ms),
    ];
    for (by, id) in kinds {
        let Some(line) = lines.iter().find(|line| line.metric.id == id) else {
            let _ = writeln!(out, "- {by}: does not apply to training");
            continue;
        };
        let winners = comparison.columns.iter().zip(&line.values).zip(&line.ranks);
        let winners = winners.filter(|(_, standing)| **standing != Rank::Unmarked);
        let winners: Vec<String> = winners
            .filter_map(|((column, value), _)| Some(format!("`{}`, {}", column.target, line.metric.show((*value)?))))
            .collect();
        let described = match winners.as_slice() {
            [] => "no ranking: all values are equal, or there are fewer than two".to_owned(),
            winners => winners.join("; "),
        };
        let _ = writeln!(out, "- {by}: {described}");
    }
}

fn schedules(out: &mut String, report: &HeadlessReport) {
    if runs(report).all(|run| run.estimate.phases.is_empty()) {
        return;
    }
    out.push_str("\n## Phases of the schedule\n");
    for run in runs(report).filter(|run| !run.estimate.phases.is_empty()) {
        let table = phases(&run.scenario, &run.workload, &run.estimate);
        let _ = writeln!(out, "\n### {}\n\n```text\n{}\n```", inline(&run.target.name), table.trim_end());
    }
}

fn searches(out: &mut String, demo: &Demo, report: &HeadlessReport) {
    out.push_str("\n## Changes by the optimizer\n\n");
    out.push_str("The hill climb tries six single changes to the starting knobs, ignores the schedule, and keeps a ");
    let bound = match runs(report).next().map(|run| run.scenario.mode()) {
        Some(Mode::Inference) => format!(" with p99 within {}", units::duration_ms(demo.sla_p99_ms)),
        _ => String::new(),
    };
    let _ = writeln!(out, "change that is more than 3 % faster{bound}.\n");
    row(out, ["target", "change", "tokens/s before", "after", "gain", "p99 after"]);
    row(out, ["---", "---", "---:", "---:", "---:", "---:"]);
    for run in runs(report) {
        let changes: Vec<String> = run
            .changed()
            .iter()
            .map(|(knob, to)| format!("{}: {} → {to}", knob.name(), run.scenario.get(*knob)))
            .collect();
        let change = if changes.is_empty() { "none".to_owned() } else { changes.join(", ") };
        let (before, after) = (run.found.start.total, run.found.estimate.total);
        let p99 = after.latency.map_or_else(|| "–".to_owned(), |latency| units::duration_ms(latency.p99));
        let gain = units::relative(before.tokens_per_sec, after.tokens_per_sec);
        let [before, after] = [before, after].map(|figures| units::si(figures.tokens_per_sec));
        row(out, [run.target.name.to_string(), change, before, after, gain, p99]);
    }
    for run in runs(report).filter(|run| misses(run, demo.sla_p99_ms)) {
        let _ = writeln!(out, "\n`{}` does not meet the SLA, before or after.", run.target.name);
    }
}

fn misses(run: &Run, sla_p99_ms: f64) -> bool {
    run.found.estimate.total.latency.is_some_and(|latency| latency.p99 > sla_p99_ms)
}

fn expectations(out: &mut String, report: &HeadlessReport) {
    out.push_str("\n## Expectations\n");
    for (i, step) in report.steps.iter().enumerate() {
        let _ = writeln!(out, "\n### {}. {}\n", i + 1, inline(&step.title));
        for problem in &step.problems {
            let _ = writeln!(out, "- FAILED {}", inline(problem));
        }
        for outcome in &step.outcomes {
            let mark = if outcome.passed { "holds" } else { "FAILED" };
            let _ = writeln!(out, "- {mark}: `{}`", outcome.text);
        }
        if step.problems.is_empty() && step.outcomes.is_empty() {
            out.push_str("- none\n");
        }
    }
}

fn caveats(out: &mut String, report: &HeadlessReport) {
    out.push_str("\n## Caveats\n\n");
    for caveat in CAVEATS {
        let _ = writeln!(out, "- {caveat}");
    }
    let mut described: Vec<(String, Vec<&str>)> = Vec::new();
    for run in runs(report) {
        for note in notes(&run.scenario, &run.estimate) {
            match described.iter_mut().find(|(known, _)| *known == note) {
                Some((_, targets)) => targets.push(&run.target.name),
                None => described.push((note, vec![&run.target.name])),
            }
        }
    }
    for (note, targets) in described {
        let _ = writeln!(out, "- {}: {}", targets.join(", "), inline(&note));
    }
}
