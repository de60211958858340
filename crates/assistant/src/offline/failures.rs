//! What failures cost a training run: goodput, and how far apart checkpoints should be.

use atlas_config::Mode;
use atlas_core::units;
use atlas_plan::knob::{Knob, KnobValues as _};
use atlas_plan::simulation::Gauge;
use atlas_plan::simulation::goodput::{SHARES, study};
use atlas_plan::simulation::options::Options;
use atlas_plan::simulation::plan::{Plan, Work};
use atlas_plan::simulation::words::Span;

use super::case::Context;
use super::reply::ReplyKind;
use super::subject::ParsedQuestion;
use super::words::{Words, count};
use super::{Block, Refusal, Reply};

/// Runs of one answer: it is to come at once; the command that reproduces it takes more.
const REPLICATIONS: u32 = 8;

/// What fails how often.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Failures {
    /// Whose mean time between failures is stated.
    pub(super) of: Failing,
    /// The mean time, seconds.
    pub(super) every: f64,
}

/// Whose failures are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failing {
    /// Of any node: a failure of the job.
    Any,
    /// Of each single node.
    EachNode,
    /// Of each single accelerator.
    EachAccelerator,
}

/// Words of questions about failures and checkpoints, which name no scenario.
const SAID: [&str; 27] = [
    "what",
    "if",
    "happens",
    "when",
    "node",
    "nodes",
    "machine",
    "machines",
    "server",
    "servers",
    "fails",
    "fail",
    "failing",
    "failed",
    "failure",
    "failures",
    "crashes",
    "crash",
    "dies",
    "each",
    "every",
    "once",
    "twice",
    "mtbf",
    "times",
    "something",
    "breaks",
];
const CHECKPOINTS: [&str; 14] = [
    "often",
    "how",
    "should",
    "checkpoint",
    "checkpoints",
    "checkpointing",
    "interval",
    "best",
    "optimal",
    "save",
    "write",
    "goodput",
    "lost",
    "lose",
];

/// Words that are known here.
pub(super) fn vocabulary() -> impl Iterator<Item = &'static str> {
    SAID.into_iter().chain(CHECKPOINTS)
}

/// Seconds of a unit of time.
fn seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "minute" | "minutes" | "min" => 60.0,
        "hour" | "hours" | "h" | "hourly" => 3600.0,
        "day" | "days" | "d" | "daily" => 86_400.0,
        "week" | "weeks" | "weekly" => 7.0 * 86_400.0,
        "month" | "months" | "monthly" => 30.0 * 86_400.0,
        "year" | "years" | "yearly" => 365.0 * 86_400.0,
        _ => return None,
    })
}

/// `50000h`, `3d`.
fn joined(word: &str) -> Option<f64> {
    let at = word.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = word.split_at(at);
    Some(count(number)? * seconds(unit)?)
}

/// How often what fails, as far as the question says; the words that say so are taken out.
pub(super) fn take(words: &mut Words) -> Option<Failures> {
    const ACCELERATORS: [&str; 6] = ["gpu", "gpus", "accelerator", "accelerators", "card", "cards"];
    const NODES: [&str; 6] = ["node", "nodes", "machine", "machines", "server", "servers"];
    let all = words.all().to_vec();
    let is = |word: &String, list: &[&str]| list.contains(&word.as_str());
    let each = all.iter().position(|word| is(word, &["each", "every", "per"])).and_then(|at| all.get(at + 1));
    let singly = |list: &[&str]| {
        let named = each.is_some_and(|word| is(word, list));
        named || words.has("mtbf") && all.iter().any(|word| is(word, list))
    };
    let of = if singly(&ACCELERATORS) {
        Failing::EachAccelerator
    } else if singly(&NODES) {
        Failing::EachNode
    } else if words.has("mtbf") {
        // As `--mtbf` states it.
        Failing::EachAccelerator
    } else {
        Failing::Any
    };
    let number = |at: usize| at.checked_sub(1).and_then(|at| all.get(at)).and_then(|word| count(word));
    let every = all.iter().enumerate().find_map(|(at, word)| {
        let times = all.get(at + 1).filter(|next| next.as_str() == "times" || next.as_str() == "failures");
        match (joined(word), seconds(word), times.and_then(|_| count(word))) {
            (Some(time), ..) => Some(time),
            // `3 failures a week`.
            (_, _, Some(times)) => all.get(at + 3).and_then(|unit| seconds(unit)).map(|unit| unit / times.max(1e-9)),
            // `every 3 days`, `twice a week`, `daily`.
            (_, Some(unit), _) => {
                let twice = all.iter().take(at).any(|word| word == "twice");
                Some(number(at).unwrap_or(1.0) * unit / if twice { 2.0 } else { 1.0 })
            }
            _ => None,
        }
    });
    words.rewrite(|word| {
        let drop = SAID.contains(&word) || CHECKPOINTS.contains(&word) || ACCELERATORS.contains(&word);
        (drop || seconds(word).is_some() || joined(word).is_some()).then(Vec::new)
    });
    if every.is_some() {
        words.rewrite(|word| count(word).is_some().then(Vec::new));
    }
    every.filter(|every| *every > 0.0).map(|every| Failures { of, every })
}

/// Goodput under failures, and the interval between checkpoints that keeps most of it.
pub(super) fn failures(question: &ParsedQuestion, context: &Context<'_>) -> Result<Reply, Refusal> {
    let mut reply = Reply::new(ReplyKind::Failures);
    let case = question.case(context, &mut reply)?;
    if case.mode() != Mode::Training {
        return Err(Refusal::Nothing(
            "failures and checkpoints are studied of training runs; a replica of a server that fails takes its share of the \
             throughput with it, as in `what if num_nodes=…`"
                .to_owned(),
        ));
    }
    let engine = Knob::Engine.parse("event", &[]).map_err(|error| Refusal::Scenario(error.to_string()))?;
    let event = case.with(&[(Knob::Engine, engine)])?;
    let per_node = f64::from(case.scenario.accelerators_per_node).max(1.0);
    let nodes = f64::from(case.scenario.num_nodes).max(1.0);
    let mtbf = question.failures.map(|failures| match failures.of {
        Failing::Any => failures.every * nodes * per_node,
        Failing::EachNode => failures.every * per_node,
        Failing::EachAccelerator => failures.every,
    });
    let options = Options { mtbf: mtbf.map(Span), replications: Some(REPLICATIONS), ..Options::default() };
    let plan = Plan::of(case.about().line(), &event.scenario, &options, None).map_err(refused)?;
    let Work::Training(work) = &plan.work else {
        return Err(Refusal::Nothing("there is no training run to simulate".to_owned()));
    };
    let rate = case.estimate.total.tokens_per_sec;
    let found = study(work, rate, &options, &Gauge::default()).map_err(refused)?;
    let input = &found.input;
    let time = |seconds: f64| units::duration_ms(1e3 * seconds);
    reply.say(format!(
        "With a failure of one of the {} nodes every {}, {} of the time remain for work: {} become {}.",
        input.nodes,
        time(input.mtbf()),
        units::percent(found.shares[0].mean),
        units::with_unit(&units::si(rate), "tok/s"),
        units::with_unit(&units::si(rate * found.shares[0].mean), "tok/s"),
    ));
    let shares = SHARES.iter().zip(&found.shares);
    reply.table(
        ["share of the time", ""],
        shares.map(|(name, share)| vec![(*name).to_owned(), units::percent(share.mean)]).collect(),
    );
    reply.say(format!(
        "A checkpoint takes {}. Write one every {}: Young's interval; Daly's is {}.",
        time(input.checkpoint),
        time(input.young()),
        time(input.daly())
    ));
    case.figure(&mut reply, const { atlas_plan::estimate::Metric::known("tokens_per_sec") });
    let lines: Vec<String> = found.notes.iter().map(|note| format!("- {note}")).collect();
    if !lines.is_empty() {
        reply.answer.push(Block::Lines(lines.join("\n")));
    }
    let mtbf = format!("{:.0}h", found.mtbf / 3600.0);
    reply.command(&["simulate", "--mtbf", &mtbf, "--study", "goodput"], case.command_flags());
    Ok(reply)
}

fn refused(problems: atlas_plan::simulation::Problems) -> Refusal {
    Refusal::Nothing(problems.0.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_often_what_fails_is_read_from_the_words() {
        const DAY: f64 = 86_400.0;
        let expected = [
            ("what if a node fails every day", Some((Failing::Any, DAY))),
            ("what if each node fails every 30 days", Some((Failing::EachNode, 30.0 * DAY))),
            ("what if every gpu fails once a year", Some((Failing::EachAccelerator, 365.0 * DAY))),
            ("goodput with an mtbf of 50000h", Some((Failing::EachAccelerator, 50_000.0 * 3600.0))),
            ("what if there are 3 failures a week", Some((Failing::Any, 7.0 * DAY / 3.0))),
            ("what if nodes fail twice a week", Some((Failing::Any, 3.5 * DAY))),
            ("how often should i checkpoint", None),
        ];
        for (line, wanted) in expected {
            let found = take(&mut Words::of(line)).map(|found| (found.of, found.every));
            assert_eq!(found, wanted, "{line}");
        }
    }
}
