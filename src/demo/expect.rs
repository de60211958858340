//! Conditions on figures, as the steps of a tour write them.
//!
//! ```text
//! condition := term compare term | term "within" number "%" "of" term
//! compare   := "<" | "<=" | ">" | ">=" | "=="
//! term      := factor { ("*" | "/") factor }
//! factor    := number | "baseline" | [ source "." ] name [ "[" phase "]" ]
//! source    := "baseline" | the name of a target
//! name      := a metric, or a knob that is a number
//! ```
//!
//! A bare name is the figure on the stage; a target in front asks the same workload and knobs of that target;
//! `baseline.` asks the baseline, and `baseline` alone asks it for the first figure of the condition. A phase in
//! brackets asks one phase of the schedule. `==` means equal to one part in 10⁹. Names with other characters than
//! letters, digits, `_` and `-` stand in double quotes.

use std::fmt;
use std::sync::Arc;

use atlas_document::Position;
use atlas_plan::estimate::Metric;
use atlas_plan::knob::Knob;

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Expect {
    /// As it was written.
    pub text: Arc<str>,
    /// Where it was written.
    pub at: Position,
    /// What is looked at.
    pub left: Term,
    /// What it must be.
    pub test: Test,
}

/// What a term must be.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// So, compared with another term.
    Compare(Comparison, Term),
    /// Near another term.
    Within {
        /// How near, percent of `of`.
        percent: f64,
        /// Near what.
        of: Term,
    },
}

/// How two terms compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Below.
    Less,
    /// Below or equal.
    AtMost,
    /// Above.
    Greater,
    /// Above or equal.
    AtLeast,
    /// Equal to one part in 10⁹.
    Equal,
}

impl Comparison {
    pub(super) const ALL: [(&'static str, Comparison); 5] = [
        ("<", Comparison::Less),
        ("<=", Comparison::AtMost),
        (">", Comparison::Greater),
        (">=", Comparison::AtLeast),
        ("==", Comparison::Equal),
    ];

    /// Whether `left` and `right` compare so.
    #[must_use]
    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Comparison::Less => left < right,
            Comparison::AtMost => left <= right,
            Comparison::Greater => left > right,
            Comparison::AtLeast => left >= right,
            Comparison::Equal => (left - right).abs() <= 1e-9 * left.abs().max(right.abs()),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = Comparison::ALL.iter().find(|(_, comparison)| comparison == self);
        f.write_str(sign.map_or("", |(sign, _)| sign))
    }
}

/// Factors multiplied and divided, left to right.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// As it was written.
    pub text: String,
    /// The first factor.
    pub first: Factor,
    /// The others.
    pub rest: Vec<(Operator, Factor)>,
}

impl Term {
    /// The number, where the term is nothing else.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match (&self.first, self.rest.is_empty()) {
            (Factor::Number(value), true) => Some(*value),
            _ => None,
        }
    }

    /// The figure, where the term is nothing else.
    #[must_use]
    pub fn figure(&self) -> Option<&Figure> {
        match (&self.first, self.rest.is_empty()) {
            (Factor::Figure(figure), true) => Some(figure),
            _ => None,
        }
    }

    pub(super) fn factors(&self) -> impl Iterator<Item = &Factor> {
        std::iter::once(&self.first).chain(self.rest.iter().map(|(_, factor)| factor))
    }

    pub(super) fn factors_mut(&mut self) -> impl Iterator<Item = &mut Factor> {
        std::iter::once(&mut self.first).chain(self.rest.iter_mut().map(|(_, factor)| factor))
    }
}

/// How a factor joins those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `*`
    Times,
    /// `/`
    Over,
}

/// A number or a figure.
#[derive(Debug, Clone, PartialEq)]
pub enum Factor {
    /// As written.
    Number(f64),
    /// Looked up when the condition is checked.
    Figure(Figure),
    /// `baseline` alone, until the whole condition is read.
    SameAtBaseline,
}

/// A figure of the stage, of another target, or of the baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Whose.
    pub source: Source,
    /// Which.
    pub quantity: Quantity,
    /// Of which phase; of the whole where unset.
    pub phase: Option<Arc<str>>,
}

/// Whose figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The scenario on the stage.
    Stage,
    /// The same workload and knobs on another target.
    Target(Arc<str>),
    /// The baseline.
    Baseline,
}

/// Which figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// A metric of the estimate.
    Metric(&'static Metric),
    /// A knob that is a number.
    Knob(Knob),
}

/// Why a text is no condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What was found and what was expected, and where.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}
