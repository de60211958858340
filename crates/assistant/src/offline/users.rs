//! How many requests at once a deployment serves within bounds.

use atlas_plan::estimate::Metric;
use atlas_plan::knob::{Knob, Setting};

use super::case::{Case, Context};
use super::fitting::headline;
use super::reply::Kind;
use super::subject::Asked;
use super::why::suggest;
use super::{Refusal, Reply};
use atlas_config::Mode;

/// Most requests at once that are tried.
const MOST: f64 = 65_536.0;

/// The most requests in flight at which the layout in force keeps the bounds, or that have room in memory.
pub(super) fn users(asked: &Asked, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(Kind::Count);
    let case = asked.case(context, &mut reply)?;
    if case.mode() != Mode::Inference {
        return Err(Refusal::Nothing(format!(
            "{} does not serve users; name a serving workload",
            case.parts.workload.name
        )));
    }
    let conditions = &asked.subject.constraints;
    let room = const { Metric::known("max_concurrency") };
    if conditions.is_empty() {
        reply.say(format!(
            "The memory of each replica has room for {} at once, with {} replicas. A bound on latency allows fewer: ask \
             with one, as in `how many users at 30 ms tpot?`",
            case.shown(room),
            case.scenario.get(Knob::Dp)
        ));
        case.figure(&mut reply, room);
        headline(&mut reply, &case);
        reply.command(&["explain", room.name], case.command_flags());
        return Ok(reply);
    }
    let at = |users: f64| case.with(&[(Knob::Concurrency, Setting::Number(users))]);
    let keeps = |case: &Case<'_>| {
        case.trouble().is_none() && conditions.iter().all(|condition| condition.holds(&case.estimate, &case.scenario))
    };
    let bounds: Vec<String> = conditions.iter().map(ToString::to_string).collect();
    let bounds = bounds.join(", ");
    // More requests at once only lengthen latencies, so that the largest number is found by halving.
    let (mut good, mut bad) = (None, 1.0);
    while bad <= MOST {
        let tried = at(bad)?;
        if !keeps(&tried) {
            break;
        }
        good = Some((bad, tried));
        bad *= 2.0;
    }
    let Some((mut most, mut found)) = good else {
        let one = at(1.0)?;
        reply.say(format!("Not even one request at a time keeps {bounds} with this layout:"));
        headline(&mut reply, &one);
        reply.command(&["run"], one.command_flags());
        return Ok(reply);
    };
    while bad - most > 1.0 && bad <= MOST {
        let middle = f64::midpoint(most, bad).floor();
        let tried = at(middle)?;
        if keeps(&tried) {
            (most, found) = (middle, tried);
        } else {
            bad = middle;
        }
    }
    let more = if bad > MOST { " or more" } else { "" };
    reply.say(format!(
        "{most:.0}{more} requests in flight keep {bounds} on {} with the layout in force.",
        found.parts.target.name
    ));
    case.figure(&mut reply, room);
    headline(&mut reply, &found);
    suggest(&mut reply, &found, &format!("concurrency {most:.0}"));
    reply.command(&["run"], found.command_flags());
    Ok(reply)
}
