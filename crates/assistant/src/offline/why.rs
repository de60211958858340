//! Explanation of a metric: its parts, the bottleneck, and changes that improve it.

use atlas_config::Mode;
use atlas_core::sort;
use atlas_core::units;
use atlas_core::units::BYTES_PER_GB;
use atlas_plan::advice::{self, Objective};
use atlas_plan::estimate::{Breakdown, Direction, MemoryPart, Metric, MetricId, Part, Section, TimePart};
use atlas_plan::explain;
use atlas_plan::knob::{Knob, Setting};

use super::case::{Case, Context};
use super::reply::{ReplyKind, Suggestion};
use super::subject::ParsedQuestion;
use super::topic::Topic;
use super::{Refusal, Reply};

/// Maximum parts listed.
const PARTS: usize = 8;
/// Maximum changes listed.
const CHANGES: usize = 5;
/// Minimum relative improvement listed.
const MIN_IMPROVEMENT: f64 = 0.005;

/// Answers why a metric has its value.
pub(super) fn why(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Why);
    let case = question.case(context, &mut reply)?;
    let metric = question.metric(&case, MetricId::TokensPerSec)?;
    let interval = case.interval(metric).map(|ends| format!(" (90 % interval {ends})")).unwrap_or_default();
    reply.push_text(format!("{} is {}{interval}: {}.", metric.label, case.format_metric(metric), metric.help));
    case.add_metric(&mut reply, metric);
    let tree = explain::explain(&case.scenario, &case.parts, &case.estimate, metric);
    let equation = tree.as_ref().and_then(|tree| tree.in_symbols().zip(tree.in_numbers()));
    if let Some((symbols, numbers)) = equation {
        reply.push_text(format!("{symbols} = {numbers}"));
    }
    let detail = case.estimate.detail;
    match (detail, metric.id) {
        (Some(detail), MetricId::TtftMs | MetricId::TtftP99Ms) if detail.serving.is_some() => {
            let parts = detail.serving.map(|serving| serving.first_token).unwrap_or_default();
            parts_table(&mut reply, "time to first token", &parts, units::duration_ms);
        }
        (Some(detail), MetricId::PeakMemGb | MetricId::MemoryFill) => memory_table(&mut reply, &detail.memory.parts),
        (Some(detail), _) if matches!(metric.section, Section::Throughput | Section::Latency | Section::Cost) => {
            time_table(&mut reply, case.mode(), &detail.time);
        }
        _ => {}
    }
    if metric.section == Section::Cost {
        for metric in [MetricId::UsdPerHour, MetricId::TokensPerSec].map(MetricId::metric) {
            case.add_metric(&mut reply, metric);
            reply.push_text(format!("{}: {}.", metric.label, case.format_metric(metric)));
        }
    }
    if let Some(detail) = &detail {
        reply.push_text(format!("The speed is {}.", detail.limits.describe()));
    }
    improvements(&mut reply, &case, metric);
    reply.command(&["explain", metric.name], case.command_flags());
    Ok(reply)
}

/// Answers with the bottleneck.
pub(super) fn limits(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Limits);
    let case = question.case(context, &mut reply)?;
    let metric = question.metric(&case, MetricId::TokensPerSec)?;
    case.add_metric(&mut reply, metric);
    let Some(detail) = case.estimate.detail else {
        return Err(Refusal::Nothing(format!(
            "the {} engine does not report what limits a scenario",
            case.scenario.engine.name()
        )));
    };
    let first = detail.limits.first().name();
    reply.push_text(format!("{} is {}; it is {}.", metric.label, case.format_metric(metric), detail.limits.describe()));
    reply.push_text(format!(
        "The share of {first} would have to shrink by {} before another limit takes over.",
        units::percent(detail.limits.margin())
    ));
    let shares = detail.limits.ranked().into_iter().filter(|(_, share)| *share > 0.0005);
    let rows = shares.map(|(cause, share)| vec![cause.name().to_owned(), units::percent(share)]);
    reply.table(["limit", "share of the time"], rows.collect());
    improvements(&mut reply, &case, metric);
    reply.command(&["run"], case.command_flags());
    reply.command(&["sensitivity", "--metric", metric.name], case.command_flags());
    Ok(reply)
}

/// Answers with a breakdown of time or memory.
pub(super) fn breakdown(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Breakdown);
    let case = question.case(context, &mut reply)?;
    let Some(detail) = case.estimate.detail else {
        return Err(Refusal::Nothing(format!("the {} engine has no breakdown", case.scenario.engine.name())));
    };
    let id = if question.topic == Topic::Memory {
        let memory = detail.memory;
        reply.push_text(format!(
            "The fullest device holds {:.1} GB of {:.1} GB (upper bound {:.1} GB, which determines whether it fits).",
            memory.total() / BYTES_PER_GB,
            memory.capacity / BYTES_PER_GB,
            memory.upper / BYTES_PER_GB
        ));
        memory_table(&mut reply, &memory.parts);
        MetricId::PeakMemGb
    } else {
        time_table(&mut reply, case.mode(), &detail.time);
        reply.push_text(format!("The speed is {}.", detail.limits.describe()));
        if case.mode() == Mode::Training { MetricId::StepTimeMs } else { MetricId::TpotMs }
    };
    let metric = id.metric();
    if metric.applies_to(&case.scenario) {
        case.add_metric(&mut reply, metric);
        reply.command(&["explain", metric.name], case.command_flags());
    }
    reply.command(&["run"], case.command_flags());
    Ok(reply)
}

fn time_table(reply: &mut Reply, mode: Mode, time: &Breakdown<TimePart>) {
    let of = if mode == Mode::Training { "optimizer step" } else { "output token" };
    parts_table(reply, &format!("time of one {of}"), time, units::duration);
}

fn memory_table(reply: &mut Reply, memory: &Breakdown<MemoryPart>) {
    parts_table(reply, "memory of the fullest device", memory, units::memory);
}

/// Table of the largest parts and the rest, which sum to the whole.
fn parts_table<P: Part>(reply: &mut Reply, of: &str, whole: &Breakdown<P>, show: impl Fn(f64) -> String) {
    let total = whole.total();
    if total <= 0.0 {
        return;
    }
    let parts = whole.parts().filter(|(_, value)| *value > 0.0);
    let mut parts: Vec<(&str, f64)> = parts.map(|(part, value)| (part.name(), value)).collect();
    sort::by(&mut parts, |a, b| b.1.total_cmp(&a.1));
    let rest: f64 = parts.iter().skip(PARTS).map(|(_, value)| value).sum();
    parts.truncate(PARTS);
    parts.extend((rest > 0.0).then_some(("all other parts", rest)));
    parts.push(("all", total));
    let row = |(name, value): &(&str, f64)| vec![(*name).to_owned(), show(*value), units::percent(value / total)];
    reply.table([of, "", "share"], parts.iter().map(row).collect());
}

/// Objective of the playbook that matches a metric.
pub(super) fn objective(metric: &Metric) -> Objective {
    match metric.section {
        _ if matches!(metric.id, MetricId::PeakMemGb | MetricId::MemoryFill) => Objective::Memory,
        Section::Latency => Objective::Latency,
        Section::Cost => Objective::Cost,
        Section::Power => Objective::Energy,
        Section::Throughput if metric.better == Direction::Lower => Objective::Latency,
        Section::Throughput | Section::Utilization => Objective::Throughput,
    }
}

/// Estimated change of a rule.
struct EstimatedChange<'a> {
    /// Relative improvement of the metric.
    gain: f64,
    text: String,
    changes: Vec<(Knob, Setting)>,
    case: Case<'a>,
}

/// Lists rules of the playbook that improve the metric, each estimated. The best one becomes the suggestion.
pub(super) fn improvements(reply: &mut Reply, case: &Case<'_>, metric: &'static Metric) -> bool {
    let Some(now) = case.value(metric).filter(|value| value.is_finite()) else { return false };
    let lower = match metric.better {
        Direction::Lower => true,
        Direction::Higher => false,
        // Questions about memory use aim at less of it.
        Direction::Neutral if metric.id == MetricId::PeakMemGb => true,
        Direction::Neutral => return false,
    };
    let mut tried: Vec<EstimatedChange<'_>> = Vec::new();
    for objective in [objective(metric), Objective::Throughput] {
        for advice in advice::advise(&case.scenario, &case.parts, &case.estimate, objective) {
            let Ok(changed) = case.with(&advice.changes) else { continue };
            let known = tried.iter().any(|known| known.changes == advice.changes);
            let Some(value) = changed.value(metric).filter(|_| changed.trouble().is_none() && !known) else { continue };
            let gain = if lower { 1.0 - value / now } else { value / now - 1.0 };
            if gain >= MIN_IMPROVEMENT {
                let text = format!("{}: {}", advice.rule.name, advice.text);
                tried.push(EstimatedChange { gain, text, changes: advice.changes, case: changed });
            }
        }
    }
    sort::by(&mut tried, |a, b| b.gain.total_cmp(&a.gain));
    // Of several changes of the same knobs, only the best is listed.
    let mut seen: Vec<Vec<Knob>> = Vec::new();
    tried.retain(|one| {
        let knobs: Vec<Knob> = one.changes.iter().map(|(knob, _)| *knob).collect();
        let new = !seen.contains(&knobs);
        seen.push(knobs);
        new
    });
    tried.truncate(CHANGES);
    if tried.is_empty() {
        reply.push_text(format!("No rule of the playbook improves {} here.", metric.label));
        return false;
    }
    let row = |tried: &EstimatedChange<'_>| {
        let value = tried.case.value(metric)?;
        Some(vec![tried.text.clone(), metric.show(value), units::relative(now, value)])
    };
    let rows = tried.iter().filter_map(row).collect();
    reply.table(["what improves it", metric.label, "change"], rows);
    for one in &tried {
        one.case.add_metric(reply, metric);
    }
    if let Some(first) = tried.first() {
        suggest(reply, &first.case, &first.text);
        reply.command(&["explain", metric.name], first.case.command_flags());
    }
    let flag = objective(metric).name();
    reply.command(&["advise", "--objective", flag], case.command_flags());
    true
}

/// Sets the suggestion of the reply.
pub(super) fn suggest(reply: &mut Reply, case: &Case<'_>, text: &str) {
    reply.suggestion = Some(Suggestion {
        text: text.to_owned(),
        target: case.parts.target.name.to_string(),
        workload: case.parts.workload.name.to_string(),
        overrides: case.overrides.clone().into_iter().collect(),
    });
}
