//! Errors of the grammar, with suggestions.

use super::super::{Hardware, Known, Objective};
use atlas_config::Mode;
use atlas_document::suggestion::did_you_mean;
use atlas_plan::knob::{KNOBS, KnobError};
use atlas_plan::search::{ConditionError, metric};

/// Reason why a line is not recognized.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A word is unknown.
    #[error(
        "unknown word `{word}`{}. Known: {}, a metric (tpot<50ms), a knob (tp=8), `10% free`, `1T tokens`, targets and workloads by name",
        suggestion(word),
        keywords()
    )]
    Unknown {
        /// The word.
        word: String,
    },
    /// A metric or a knob has no bound or value.
    #[error("`{word}` needs a bound or a value, as in `tpot<50ms` or `tp=8`")]
    Alone {
        /// The word.
        word: String,
    },
    /// `batch` is ambiguous.
    #[error(
        "`batch` is ambiguous: in training microbatch=4 or global=512, in serving concurrency=256 or max_num_seqs=256"
    )]
    Batch,
    /// A bound without a metric could apply to several metrics.
    #[error("{bound}: no metric given; use tpot{sign}{bound} or ttft{sign}{bound}")]
    Unclear {
        /// Text of the bound.
        bound: String,
        /// Its sign.
        sign: &'static str,
    },
    /// A sign is not followed by a bound.
    #[error("`{sign}`: expected a bound, as in tpot<50ms")]
    NoBound {
        /// The sign.
        sign: &'static str,
    },
    /// A constraint is invalid.
    #[error(transparent)]
    Condition(#[from] ConditionError),
    /// A setting is invalid.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// No workload's name contains all the words.
    #[error("no {} matches `{words}`; known: {known}", mode.map_or("workload", |mode| match mode {
        Mode::Training => "training workload",
        Mode::Inference => "serving workload",
    }))]
    NoWorkload {
        /// The words.
        words: String,
        /// Mode given in the line.
        mode: Option<Mode>,
        /// Available workloads.
        known: String,
    },
    /// No target has that name, or none can have this number of accelerators.
    #[error("no target matches `{hardware}`; known: {known}")]
    NoTarget {
        /// Hardware given in the line.
        hardware: String,
        /// Available targets.
        known: String,
    },
    /// The line is too long.
    #[error("the line is too long: the maximum is {longest} bytes")]
    TooLong {
        /// Maximum length, bytes.
        longest: usize,
    },
}

/// Maximum names that are listed; the remaining ones are counted.
const MAX_LISTED_NAMES: usize = 12;

fn join_names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let all: Vec<&str> = names.collect();
    let shown = all.iter().take(MAX_LISTED_NAMES).copied().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(MAX_LISTED_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn keywords() -> String {
    let objectives: Vec<&str> = Objective::ALL.into_iter().map(Objective::word).collect();
    format!("serve, train, {}", objectives.join(", "))
}

/// All words of the grammar that do not depend on the library.
fn words() -> impl Iterator<Item = &'static str> {
    let knobs = KNOBS.iter().flat_map(|spec| std::iter::once(&spec.name).chain(spec.aliases)).copied();
    let objectives = Objective::ALL.into_iter().map(Objective::word);
    objectives.chain(["serve", "train", "fits"]).chain(metric::names()).chain(knobs)
}

/// The most similar word, as a question. It is computed when the error is displayed, since many lines are only parsed
/// on trial.
fn suggestion(word: &str) -> String {
    did_you_mean(word, words()).map_or_else(String::new, |question| format!(" ({question})"))
}

impl ParseError {
    pub(super) fn unknown(word: &str) -> ParseError {
        let word = word.to_owned();
        match words().any(|known| known.eq_ignore_ascii_case(&word)) {
            true => ParseError::Alone { word },
            false => ParseError::Unknown { word },
        }
    }

    pub(in super::super) fn no_workload(words: &[String], mode: Option<Mode>, known: &Known) -> ParseError {
        let of_mode = known.workloads.iter().filter(|workload| mode.is_none_or(|mode| workload.mode == mode));
        let known = join_names(of_mode.map(|workload| workload.name.as_str()));
        ParseError::NoWorkload { words: words.join(" "), mode, known }
    }

    pub(in super::super) fn no_target(hardware: &Hardware, known: &Known) -> ParseError {
        let alike: Vec<&str> = known.targets_of(&hardware.name).map(|target| target.name.as_str()).collect();
        let all = || known.targets.iter().map(|target| target.name.as_str());
        let known = if alike.is_empty() { join_names(all()) } else { join_names(alike.into_iter()) };
        ParseError::NoTarget { hardware: hardware.to_string(), known }
    }
}
