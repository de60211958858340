//! Largest number of concurrent requests, and longest prompt, that a deployment supports.

use atlas_plan::estimate::MetricId;
use atlas_plan::knob::{Knob, Setting};

use super::case::{Case, Context};
use super::fitting::headline;
use super::reply::ReplyKind;
use super::subject::ParsedQuestion;
use super::why::suggest;
use super::{Refusal, Reply};
use atlas_config::Mode;

/// Maximum concurrent requests tried.
const MAX_CONCURRENCY: f64 = 65_536.0;
/// Shortest prompt tried, which is also the resolution of the result, and longest prompt tried.
const MIN_PROMPT: f64 = 256.0;
const MAX_PROMPT: f64 = 16_777_216.0;

/// Largest number of concurrent requests that meets the bounds, or without bounds, that fits in memory, with the
/// current layout.
pub(super) fn users(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Count);
    let case = question.case(context, &mut reply)?;
    if case.mode() != Mode::Inference {
        return Err(Refusal::Nothing(format!(
            "{} does not serve users; name a serving workload",
            case.parts.workload.name
        )));
    }
    let conditions = &question.subject.constraints;
    let room = MetricId::MaxConcurrency.metric();
    if conditions.is_empty() {
        reply.push_text(format!(
            "The KV cache of each replica holds up to {}; replicas: {}. A latency bound may allow fewer: add one to \
             the question, as in `how many users at 30 ms tpot?`",
            case.format_metric(room),
            case.scenario.get(Knob::Dp)
        ));
        case.add_metric(&mut reply, room);
        headline(&mut reply, &case);
        reply.command(&["explain", room.name], case.command_flags());
        return Ok(reply);
    }
    let keeps = |case: &Case<'_>| {
        case.trouble().is_none() && conditions.iter().all(|condition| condition.holds(&case.estimate, &case.scenario))
    };
    let bounds: Vec<String> = conditions.iter().map(ToString::to_string).collect();
    let bounds = bounds.join(", ");
    // Latencies only increase with concurrency.
    let Some((concurrency, found, more)) = largest(&case, Knob::Concurrency, 1.0, MAX_CONCURRENCY, &keeps)? else {
        let one = case.with(&[(Knob::Concurrency, Setting::Number(1.0))])?;
        reply.push_text(format!("Even a single request at a time does not meet {bounds} with this layout:"));
        headline(&mut reply, &one);
        reply.command(&["run"], one.command_flags());
        return Ok(reply);
    };
    let more = if more { " or more" } else { "" };
    reply.push_text(format!(
        "{concurrency:.0}{more} concurrent requests meet {bounds} on {} with the current layout.",
        found.parts.target.name
    ));
    case.add_metric(&mut reply, room);
    headline(&mut reply, &found);
    suggest(&mut reply, &found, &format!("concurrency {concurrency:.0}"));
    reply.command(&["run"], found.command_flags());
    Ok(reply)
}

/// Longest prompt, or training sequence, that fits in memory and meets the bounds.
pub(super) fn longest(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Count);
    let case = question.case(context, &mut reply)?;
    let conditions = &question.subject.constraints;
    let keeps = |case: &Case<'_>| {
        case.trouble().is_none() && conditions.iter().all(|condition| condition.holds(&case.estimate, &case.scenario))
    };
    let bounds: Vec<String> = conditions.iter().map(ToString::to_string).collect();
    let bounds = if bounds.is_empty() { String::new() } else { format!(" and meet {}", bounds.join(", ")) };
    let what = if case.mode() == Mode::Inference { "prompts" } else { "sequences" };
    let Some((tokens, found, more)) = largest(&case, Knob::Prompt, MIN_PROMPT, MAX_PROMPT, &keeps)? else {
        reply.push_text(format!("No {what} of {MIN_PROMPT:.0} tokens fit{bounds} with this layout."));
        reply.command(&["advise"], case.command_flags());
        return Ok(reply);
    };
    let or_more = if more { " or more" } else { "" };
    reply.push_text(format!(
        "The longest {what} that fit{bounds} on {} with the current layout have {tokens:.0}{or_more} tokens.",
        found.parts.target.name
    ));
    let longer = found.with(&[(Knob::Prompt, Setting::Number(tokens + MIN_PROMPT))])?;
    if let Some(trouble) = longer.trouble().filter(|_| !more) {
        reply.push_text(format!("Longer ones cannot run: {trouble}."));
    }
    found.add_metric(&mut reply, MetricId::MemoryFill.metric());
    headline(&mut reply, &found);
    suggest(&mut reply, &found, &format!("prompt {tokens:.0}"));
    reply.command(&["run"], found.command_flags());
    Ok(reply)
}

/// Largest value of a knob that satisfies a condition which only gets harder with larger values, found by doubling and
/// bisection. The flag tells whether even larger values may satisfy it.
fn largest<'a>(
    case: &Case<'a>,
    knob: Knob,
    first: f64,
    limit: f64,
    keeps: &dyn Fn(&Case<'_>) -> bool,
) -> Result<Option<(f64, Case<'a>, bool)>, Refusal> {
    let at = |value: f64| case.with(&[(knob, Setting::Number(value))]);
    let (mut good, mut bad) = (None, first);
    while bad <= limit {
        let tried = at(bad)?;
        if !keeps(&tried) {
            break;
        }
        good = Some((bad, tried));
        bad *= 2.0;
    }
    let Some((mut best, mut found)) = good else { return Ok(None) };
    while bad - best > first && bad <= limit {
        let middle = f64::midpoint(best, bad).floor();
        let tried = at(middle)?;
        if keeps(&tried) {
            (best, found) = (middle, tried);
        } else {
            bad = middle;
        }
    }
    Ok(Some((best, found, bad > limit)))
}
