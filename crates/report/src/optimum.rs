//! Output of the result of an optimization.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::table::{Align, Table, left, right, wrap};
use super::{ReportError, csv, to_json, to_yaml};
use atlas_core::sort;
use atlas_core::units;
use atlas_plan::estimate::standing::is_available;
use atlas_plan::estimate::{Metric, MetricId, SEARCH_METRICS};
use atlas_plan::knob::{Knob, Setting};
use atlas_plan::search::optimize::{Bound, Candidate, Optimum, Problem, Proof, SearchExtent};
use atlas_plan::search::{Axis, Condition};

/// Renders the result as plain text.
#[must_use]
pub fn table(problem: &Problem<'_>, found: &Optimum) -> String {
    let (target, workload) = (&problem.parts.target.name, &problem.parts.workload.name);
    let start = problem.start;
    let mut out = format!("{target} × {workload}\n");
    let aim = format!("{} ({})", problem.objective.label, direction(problem.objective));
    let _ = writeln!(out, "{}, {} engine; objective: {aim}", start.mode().name(), start.engine.name());
    out.push_str(&wrap(&format!("searched: {}; other settings as in the start", space(problem)), 110, ""));
    out.push('\n');
    for condition in &problem.conditions {
        let _ = writeln!(out, "where {condition}{}", default_condition_note(problem, found, condition));
    }
    out.push('\n');
    match &found.best {
        Some(best) => {
            out.push_str(&side_by_side(problem, found, best));
            for warning in found.warnings(problem) {
                out.push_str(&wrap(&format!("warning: {warning}"), 110, "  "));
                out.push('\n');
            }
        }
        None => {
            out.push_str(&wrap(&found.why_none(), 110, "  "));
            out.push('\n');
        }
    }
    if found.common_verdict.is_some() {
        return out;
    }
    if !found.runners_up.is_empty() {
        out.push_str(&runners_up(problem, found));
    }
    out.push_str(&bounds(problem, found));
    if !found.front.is_empty() {
        out.push_str(&front(problem, &found.front));
    }
    out.push('\n');
    out.push_str(&wrap(&describe_extent(&found.extent), 110, ""));
    out.push('\n');
    out
}

/// Axes of the search space with their values: `tp 1, 2, 4; sp off, on`. Long axes are abbreviated.
#[must_use]
pub fn space(problem: &Problem<'_>) -> String {
    let axis = |axis: &Axis| {
        let values: Vec<String> = axis.values.iter().map(Setting::to_string).collect();
        let shown = match values.as_slice() {
            [first, second, .., last] if values.len() > 12 => {
                format!("{first}, {second} … {last} ({} values)", values.len())
            }
            _ => values.join(", "),
        };
        format!("{} {shown}", axis.knob.name())
    };
    problem.space.axes().iter().map(axis).collect::<Vec<_>>().join("; ")
}

/// One line with the default conditions that the search kept, and those that it dropped.
#[must_use]
pub fn defaults(problem: &Problem<'_>, found: &Optimum) -> String {
    let (dropped, kept): (Vec<&Condition>, Vec<&Condition>) =
        problem.default_conditions.iter().partition(|condition| found.dropped.contains(condition));
    let list = |conditions: Vec<&Condition>| conditions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let parts = [("within the defaults", kept), ("dropped because no candidate meets them", dropped)];
    let parts = parts.into_iter().filter(|(_, conditions)| !conditions.is_empty());
    parts.map(|(what, conditions)| format!("{what} {}", list(conditions))).collect::<Vec<_>>().join("; ")
}

/// Suffix for a default condition: that it is a default, and the flag that changes it or that it was dropped.
fn default_condition_note(problem: &Problem<'_>, found: &Optimum, condition: &Condition) -> String {
    if !problem.default_conditions.contains(condition) {
        return String::new();
    }
    if found.dropped.contains(condition) {
        return " (default; dropped because no candidate meets all defaults)".to_owned();
    }
    let flag = match condition {
        Condition::Metric(metric, ..) if metric.id == MetricId::TtftMs => "--ttft",
        Condition::Metric(metric, ..) if metric.id == MetricId::TpotMs => "--tpot",
        _ => "--headroom",
    };
    format!(" (default; change it with {flag}, remove it with {flag} none)")
}

fn direction(metric: &Metric) -> &'static str {
    if metric.better == atlas_plan::estimate::Direction::Higher { "higher is better" } else { "lower is better" }
}

/// Table of metrics of the start, the best candidate and the hill-climb result.
fn side_by_side(problem: &Problem<'_>, found: &Optimum, best: &Candidate) -> String {
    let (start, climbed) = (&found.start, &found.hill_climb);
    let head = ["", "start", "best", "change", "hill-climb"];
    let mut table = Table::new(head.map(|name| (name, if name.is_empty() { Align::Left } else { Align::Right })));
    for metric in SEARCH_METRICS.iter().filter(|metric| metric.applies_to(problem.start)) {
        // A candidate that cannot run has no rate.
        let own = matches!(metric.id, MetricId::Accelerators | MetricId::Headroom);
        let known = |candidate: &Candidate| own || is_available(metric, &candidate.estimate);
        let show = |candidate: &Candidate| if known(candidate) { candidate.shown(metric) } else { "n/a".to_owned() };
        let values = start.value(metric).zip(best.value(metric)).filter(|_| known(start));
        let change = values.map_or_else(String::new, |(before, after)| metric.change(before, after));
        table.row([metric.label.to_owned(), show(start), show(best), change, show(climbed)]);
    }
    table.section("knobs");
    for knob in changed([best, climbed]) {
        let show = |candidate: &Candidate| candidate.scenario.get(knob).to_string();
        table.row([format!("  {}", knob.name()), show(start), show(best), String::new(), show(climbed)]);
    }
    let mut out = table.render();
    for (name, candidate) in [("start", start), ("hill-climb", climbed)] {
        let objections = found.objections(problem, candidate);
        if !objections.is_empty() {
            let _ = writeln!(out, "note: the {name} is not a candidate: {}", objections.join("; "));
        }
    }
    if !climbed.changes.is_empty() || !best.changes.is_empty() {
        out.push_str("hill-climb: the predecessor's method, the best of six single changes to the start\n");
    }
    if best.changes.is_empty() {
        out.push_str("the start is the best candidate in the search space\n");
    }
    out
}

/// Knobs that at least one of the candidates changes, in the order of the registry.
fn changed<'c>(candidates: impl IntoIterator<Item = &'c Candidate>) -> Vec<Knob> {
    let mut knobs: Vec<Knob> =
        candidates.into_iter().flat_map(|candidate| candidate.changes.iter().map(|(knob, _)| *knob)).collect();
    sort::ascending(&mut knobs);
    knobs.dedup();
    knobs
}

/// Knobs that a candidate changes relative to the start, in one line.
#[must_use]
pub fn changes(candidate: &Candidate) -> String {
    let all = candidate.changes.iter().map(|(knob, setting)| format!("{}={setting}", knob.name()));
    let text = all.collect::<Vec<_>>().join(" ");
    if text.is_empty() { "unchanged".to_owned() } else { text }
}

/// Settings in which a candidate differs from the best one.
#[must_use]
pub fn differences_from_best(best: &Candidate, other: &Candidate) -> String {
    let knobs = changed([best, other]).into_iter().filter(|knob| best.scenario.get(*knob) != other.scenario.get(*knob));
    knobs.map(|knob| format!("{}={}", knob.name(), other.scenario.get(knob))).collect::<Vec<_>>().join(" ")
}

fn runners_up(problem: &Problem<'_>, found: &Optimum) -> String {
    let Some(best) = &found.best else { return String::new() };
    let metric = problem.objective;
    let mut table = Table::new([
        left("runner-up".to_owned()),
        right(metric.label.to_owned()),
        right("vs. best".to_owned()),
        left("difference from the best".to_owned()),
    ]);
    for (i, candidate) in found.runners_up.iter().enumerate() {
        table.row([
            (i + 2).to_string(),
            candidate.shown(metric),
            best.value(metric)
                .zip(candidate.value(metric))
                .map_or_else(String::new, |(best, own)| metric.change(best, own)),
            differences_from_best(best, candidate),
        ]);
    }
    format!("\n{}", table.render())
}

fn bounds(problem: &Problem<'_>, found: &Optimum) -> String {
    let metric = problem.objective;
    let mut table = Table::new([
        left("constraint".to_owned()),
        right("removed".to_owned()),
        right("only by it".to_owned()),
        right(format!("best {} without it", metric.label)),
        left("with".to_owned()),
    ]);
    for bound in found.bounds.iter().filter(|bound| bound.removed > 0 || bound.alone.is_some()) {
        let without = bound.without.as_ref();
        let value = without.map(|candidate| candidate.shown(metric));
        let by = without.map(|candidate| match &found.best {
            Some(best) => differences_from_best(best, candidate),
            None => changes(candidate),
        });
        table.row([
            bound.what.clone(),
            bound.removed.to_string(),
            bound.alone.map_or_else(String::new, |alone| alone.to_string()),
            value.unwrap_or_else(|| if bound.alone.is_some() { "no better".to_owned() } else { String::new() }),
            by.unwrap_or_default(),
        ]);
    }
    format!("\n{}", table.render())
}

/// Maximum compromises shown in a table; JSON and CSV contain all.
const MAX_COMPROMISES: usize = 20;

fn front(problem: &Problem<'_>, front: &[Candidate]) -> String {
    let mut head: Vec<(String, Align)> = problem.front.iter().map(|metric| right(metric.label.to_owned())).collect();
    let names: Vec<&str> = problem.front.iter().map(|metric| metric.label).collect();
    head.push(left("knobs".to_owned()));
    let mut table = Table::new(head);
    // Longer fronts are sampled evenly, including both ends.
    let shown = front.len().min(MAX_COMPROMISES);
    for i in 0..shown {
        let Some(candidate) = front.get(i * (front.len() - 1) / (shown - 1).max(1)) else { continue };
        let value = |metric: &&'static Metric| candidate.shown(metric);
        table.row(problem.front.iter().map(value).chain([changes(candidate)]));
    }
    let some = if shown < front.len() { format!(", {shown} of {}", front.len()) } else { String::new() };
    format!("\nPareto front of {}{some}\n{}", names.join(" and "), table.render())
}

/// Describes how much of the space was searched, and what this says about the optimality of the result.
#[must_use]
pub fn describe_extent(looked: &SearchExtent) -> String {
    let seconds = units::significant(looked.seconds, 2);
    let (space, valid) = (grouped(looked.space), grouped(looked.admissible));
    let estimated = grouped(u128::from(looked.estimated));
    let left_out = if looked.min_gain > 0.0 {
        format!(" Changes that gain less than {} are omitted.", units::percent(looked.min_gain))
    } else {
        String::new()
    };
    let searched = match looked.proof {
        Proof::Exhaustive => {
            format!(
                "Searched all {space} combinations ({valid} valid) in {seconds} s; this is the best of that space. Knobs, \
                 values and software outside it were not tried."
            )
        }
        Proof::Local { starts } => format!(
            "Searched {estimated} of {space} combinations ({valid} valid) in {seconds} s from {starts} random starts; \
             no change of one or two knobs improves on this, but a better one elsewhere is possible (raise \
             --max-candidates)."
        ),
        Proof::Canceled => {
            format!(
                "Stopped after {estimated} of {space} combinations ({valid} valid) in {seconds} s; the best so far."
            )
        }
    };
    searched + &left_out
}

/// Formats a count with separated groups of thousands.
fn grouped(count: u128) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns the result as JSON.
///
/// # Errors
/// Serialization of a search result is not expected to fail.
pub fn json(problem: &Problem<'_>, found: &Optimum) -> Result<String, ReportError> {
    to_json(&document(problem, found))
}

/// Returns the result as YAML.
///
/// # Errors
/// Serialization of a search result is not expected to fail.
pub fn yaml(problem: &Problem<'_>, found: &Optimum) -> Result<String, ReportError> {
    to_yaml(&document(problem, found))
}

fn document(problem: &Problem<'_>, found: &Optimum) -> Value {
    let looked = &found.extent;
    let (proof, starts) = match looked.proof {
        Proof::Exhaustive => ("exhaustive", None),
        Proof::Local { starts } => ("local", Some(starts)),
        Proof::Canceled => ("cancelled", None),
    };
    let axes = problem.space.axes().iter().map(|axis| {
        let values: Vec<Value> = axis.values.iter().map(setting).collect();
        (axis.knob.name().to_owned(), json!(values))
    });
    let all = |candidates: &[Candidate]| candidates.iter().map(candidate).collect::<Vec<_>>();
    let bound = |bound: &Bound| {
        json!({
            "constraint": bound.what,
            "removed": count(bound.removed),
            "removed_alone": bound.alone,
            "best_without": bound.without.as_ref().map(candidate),
        })
    };
    json!({
        "target": &*problem.parts.target.name,
        "workload": &*problem.parts.workload.name,
        "engine": problem.start.engine.name(),
        "objective": problem.objective.name,
        "constraints": problem.conditions.iter().map(Condition::to_string).collect::<Vec<_>>(),
        "default_constraints": problem.default_conditions.iter().map(Condition::to_string).collect::<Vec<_>>(),
        "dropped_constraints": found.dropped.iter().map(Condition::to_string).collect::<Vec<_>>(),
        "space": sort::collect_unsorted::<Map<_, _>, _>(axes),
        "best": found.best.as_ref().map(candidate),
        "common_verdict": found.common_verdict,
        "warnings": found.warnings(problem),
        "runners_up": all(&found.runners_up),
        "front_metrics": problem.front.iter().map(|metric| metric.name).collect::<Vec<_>>(),
        "front": all(&found.front),
        "bounds": found.bounds.iter().map(bound).collect::<Vec<_>>(),
        "start": candidate(&found.start),
        "start_objections": found.objections(problem, &found.start),
        "hill_climb": candidate(&found.hill_climb),
        "looked": {
            "combinations": count(looked.space),
            "layouts": count(looked.admissible),
            "estimated": looked.estimated,
            "proof": proof,
            "starts": starts,
            "seconds": looked.seconds,
        },
    })
}

/// A count as a JSON number, rounded if it exceeds 64 bits.
#[expect(clippy::cast_precision_loss, reason = "a count beyond 64 bits is described roughly")]
fn count(count: u128) -> Value {
    u64::try_from(count).map_or_else(|_| json!(count as f64), |count| json!(count))
}

/// Value of a knob as JSON.
#[must_use]
pub fn setting(setting: &Setting) -> Value {
    match setting {
        Setting::Toggle(on) => json!(on),
        Setting::Number(value) => json!(value),
        Setting::Choice(word) => json!(&**word),
        Setting::Seed(seed) => json!(seed.to_string()),
    }
}

/// Values of knobs as JSON: `{"tp": 4}`.
pub(crate) fn settings(settings: &[(Knob, Setting)]) -> Map<String, Value> {
    sort::collect_unsorted(settings.iter().map(|(knob, value)| (knob.name().to_owned(), setting(value))))
}

fn candidate(candidate: &Candidate) -> Value {
    let metrics = SEARCH_METRICS.iter().filter(|metric| metric.applies_to(&candidate.scenario));
    let metrics = metrics.map(|metric| (metric.name.to_owned(), json!(candidate.value(metric))));
    json!({
        "changes": settings(&candidate.changes),
        "metrics": sort::collect_unsorted::<Map<_, _>, _>(metrics),
        "verdict": candidate.estimate.detail.map(|detail| detail.verdict),
    })
}

/// Returns CSV, a line per candidate: the best, its runners-up, then the front.
#[must_use]
pub fn csv(problem: &Problem<'_>, found: &Optimum) -> String {
    let best = found.best.iter().map(|candidate| ("best", candidate));
    let runners_up = found.runners_up.iter().map(|candidate| ("runner-up", candidate));
    let front = found.front.iter().map(|candidate| ("front", candidate));
    let others = [("start", &found.start), ("hill-climb", &found.hill_climb)];
    let rows: Vec<(&str, &Candidate)> = best.chain(runners_up).chain(front).chain(others).collect();
    let knobs = changed(rows.iter().map(|(_, candidate)| *candidate));
    let metrics: Vec<&Metric> = SEARCH_METRICS.iter().filter(|metric| metric.applies_to(problem.start)).collect();
    let names = knobs.iter().map(|knob| knob.name()).chain(metrics.iter().map(|metric| metric.name));
    let mut out = csv::line(std::iter::once("what").chain(names));
    for (what, candidate) in rows {
        let mut cells = vec![what.to_owned()];
        cells.extend(knobs.iter().map(|knob| candidate.scenario.get(*knob).to_string()));
        cells.extend(metrics.iter().map(|metric| csv::optional(candidate.value(metric))));
        out.push_str(&csv::line(&cells));
    }
    out
}
