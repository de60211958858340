//! Failure rates given in a question.

use super::words::{Words, count};
use atlas_core::time_unit::TimeUnit;

/// A failure rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Failures {
    /// What the mean time between failures refers to.
    pub(super) of: FailureScope,
    /// Mean time between failures, seconds.
    pub(super) every: f64,
}

/// What a mean time between failures refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureScope {
    /// Any node: a failure of the job.
    Any,
    /// Each node.
    EachNode,
    /// Each accelerator.
    EachAccelerator,
}

/// Words of questions about failures and checkpoints that do not describe the scenario.
const FAILURE_WORDS: [&str; 27] = [
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

/// Words that this module recognizes.
pub(super) fn vocabulary() -> impl Iterator<Item = &'static str> {
    FAILURE_WORDS.into_iter().chain(CHECKPOINTS)
}

/// A unit of time in seconds.
fn seconds(unit: &str) -> Option<f64> {
    let unit = if unit == "daily" { "day" } else { unit.strip_suffix("ly").unwrap_or(unit) };
    TimeUnit::named(unit).filter(|unit| *unit >= TimeUnit::Minute).map(TimeUnit::seconds)
}

/// Parses a number joined with a unit of time: `50000h`, `3d`.
fn duration_with_unit(word: &str) -> Option<f64> {
    let at = word.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = word.split_at(at);
    Some(count(number)? * seconds(unit)?)
}

/// Takes the failure rate from a question.
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
        FailureScope::EachAccelerator
    } else if singly(&NODES) {
        FailureScope::EachNode
    } else if words.has("mtbf") {
        // `--mtbf` refers to an accelerator, too.
        FailureScope::EachAccelerator
    } else {
        FailureScope::Any
    };
    let number = |at: usize| at.checked_sub(1).and_then(|at| all.get(at)).and_then(|word| count(word));
    let every = all.iter().enumerate().find_map(|(at, word)| {
        let times = all.get(at + 1).filter(|next| next.as_str() == "times" || next.as_str() == "failures");
        match (duration_with_unit(word), seconds(word), times.and_then(|_| count(word))) {
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
        let drop = FAILURE_WORDS.contains(&word) || CHECKPOINTS.contains(&word) || ACCELERATORS.contains(&word);
        (drop || seconds(word).is_some() || duration_with_unit(word).is_some()).then(Vec::new)
    });
    if every.is_some() {
        words.rewrite(|word| count(word).is_some().then(Vec::new));
    }
    every.filter(|every| *every > 0.0).map(|every| Failures { of, every })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_intervals_are_parsed_from_phrases() {
        const DAY: f64 = 86_400.0;
        let expected = [
            ("what if a node fails every day", Some((FailureScope::Any, DAY))),
            ("what if each node fails every 30 days", Some((FailureScope::EachNode, 30.0 * DAY))),
            ("what if every gpu fails once a year", Some((FailureScope::EachAccelerator, 365.0 * DAY))),
            ("goodput with an mtbf of 50000h", Some((FailureScope::EachAccelerator, 50_000.0 * 3600.0))),
            ("what if there are 3 failures a week", Some((FailureScope::Any, 7.0 * DAY / 3.0))),
            ("what if nodes fail twice a week", Some((FailureScope::Any, 3.5 * DAY))),
            ("how often should i checkpoint", None),
        ];
        for (line, wanted) in expected {
            let found = take(&mut Words::of(line)).map(|found| (found.of, found.every));
            assert_eq!(found, wanted, "{line}");
        }
    }
}
