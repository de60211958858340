//! What to change: rules of the playbook, changes that bring a metric to a value, and sensitivities.

use atlas_core::units;
use atlas_plan::engine::analytical_scenario;
use atlas_plan::estimate::{Metric, MetricId};
use atlas_plan::search::sensitivity::Lever;
use atlas_plan::search::{self, Condition, goal_seek};

use super::case::{Case, Context};
use super::reply::{ReplyKind, format_setting};
use super::subject::ParsedQuestion;
use super::why::{improvements, suggest};
use super::{Refusal, Reply};

/// Maximum rows listed.
const MAX_ROWS: usize = 8;

/// Lists what improves a metric, or with a bound, the single changes that reach it.
pub(super) fn improve(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    if let [bound @ Condition::Metric(metric, _, wanted)] = question.subject.constraints.as_slice() {
        let mut question = question.clone();
        question.figure = question.figure.or(Some(super::named_metric::NamedMetric::from_metric(metric)));
        return changes_that_reach(&question, metric, *wanted, Some(bound), context);
    }
    let mut reply = Reply::new(ReplyKind::Improve);
    let case = question.case(context, &mut reply)?;
    let metric = question.metric(&case, MetricId::TokensPerSec)?;
    if let Some((times, now)) = question.times.zip(case.value(metric)) {
        return changes_that_reach(question, metric, times * now, None, context);
    }
    reply.push_text(format!("{} is {} now.", metric.label, case.format_metric(metric)));
    case.add_metric(&mut reply, metric);
    improvements(&mut reply, &case, metric);
    reply.command(&["explain", metric.name], case.command_flags());
    Ok(reply)
}

/// Lists single changes that each bring a metric to `wanted`, unless it already meets `bound`.
fn changes_that_reach(
    question: &ParsedQuestion,
    metric: &'static Metric,
    wanted: f64,
    bound: Option<&Condition>,
    context: &Context<'_>,
) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Reach);
    let case = question.case(context, &mut reply)?;
    if !metric.applies_to(&case.scenario) {
        return Err(Refusal::Nothing(metric.inapplicable(&case.scenario)));
    }
    case.add_metric(&mut reply, metric);
    if let Some(bound) = bound
        && case.trouble().is_none()
        && bound.holds(&case.estimate, &case.scenario)
    {
        reply.push_text(format!("{} is {}, which meets {bound}.", metric.label, case.format_metric(metric)));
        reply.command(&["explain", metric.name], case.command_flags());
        return Ok(reply);
    }
    let goal = goal_seek(&analytical_scenario(&case.scenario), &case.parts, metric, wanted);
    let now = goal.now.map_or_else(|| "–".to_owned(), |now| metric.show(now));
    let lead = format!("{} is {now}; the goal is {}", metric.label, metric.show(wanted));
    let mut rows = Vec::new();
    let mut reached: Vec<(Case<'_>, String)> = Vec::new();
    for way in goal.solutions.iter().chain(&goal.closest) {
        match (way.lever, &way.setting) {
            (Lever::Knob(knob), Some(setting)) => {
                let changed = case.with(&[(knob, setting.clone())])?;
                let text = format!(
                    "{} {} → {}",
                    knob.name(),
                    format_setting(knob, &case.scenario.get(knob)),
                    format_setting(knob, setting)
                );
                rows.push(vec![text.clone(), metric.show(way.value)]);
                changed.add_metric(&mut reply, metric);
                reached.push((changed, text));
            }
            (lever, _) => {
                let factor = way.factor.map(|factor| units::significant(factor, 3)).unwrap_or_default();
                rows.push(vec![format!("hardware: {} × {factor}", lever.name()), metric.show(way.value)]);
            }
        }
    }
    reply.push_text(match (goal.solutions.is_empty(), goal.closest.is_some()) {
        (false, _) => format!("{lead}. Each of these changes alone reaches the goal:"),
        (true, true) => format!("{lead}. No single change reaches the goal; this one comes closest:"),
        (true, false) => format!("{lead}. No single change comes closer to the goal."),
    });
    rows.truncate(2 * MAX_ROWS);
    reply.table(["change", metric.label], rows);
    reply.command(&["explain", metric.name], case.command_flags());
    if let Some((changed, text)) = reached.first() {
        suggest(&mut reply, changed, text);
        reply.command(&["explain", metric.name], changed.command_flags());
    }
    Ok(reply)
}

/// Lists what a metric depends on most.
pub(super) fn sensitivity(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Sensitivity);
    let case = question.case(context, &mut reply)?;
    let metric = question.metric(&case, MetricId::TokensPerSec)?;
    case.add_metric(&mut reply, metric);
    let tornado = search::sensitivity(&analytical_scenario(&case.scenario), &case.parts, metric)
        .ok_or_else(|| Refusal::Nothing(metric.inapplicable(&case.scenario)))?;
    reply.push_text(format!(
        "{} is {}. Effect of changing each knob by one step and each hardware parameter by 10 %, largest first:",
        metric.label,
        metric.show(tornado.value)
    ));
    let outcome = |outcome: &Option<search::sensitivity::Outcome>| match outcome {
        Some(outcome) if outcome.failure.is_some() => format!("{}: cannot run", outcome.to),
        Some(outcome) => format!("{}: {}", outcome.to, metric.show(outcome.value)),
        None => String::new(),
    };
    let row = |swing: &search::sensitivity::Swing| {
        vec![swing.lever.name().to_owned(), outcome(&swing.down), outcome(&swing.up), units::percent(swing.max_change)]
    };
    // All hardware levers are listed, since questions about better hardware are as frequent as those about settings.
    let hardware = |swing: &search::sensitivity::Swing| !matches!(swing.lever, Lever::Knob(_));
    let listed = tornado.swings.iter().enumerate().filter(|(place, swing)| *place < MAX_ROWS || hardware(swing));
    reply.table(["", "down", "up", "reach"], listed.map(|(_, swing)| row(swing)).collect());
    for note in &tornado.notes {
        reply.push_text(*note);
    }
    reply.command(&["sensitivity", "--metric", metric.name], case.command_flags());
    Ok(reply)
}
