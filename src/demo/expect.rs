//! Conditions on metrics in the steps of a tour.
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
//! A name without a source is evaluated on the current scenario of the tour. With a target as the source, it is
//! evaluated on that target with the same workload and knobs. `baseline.` evaluates it on the baseline, and `baseline`
//! alone is the first metric or knob of the condition, evaluated on the baseline. A phase in brackets selects one phase
//! of the schedule. `==` means equal to within one part in 10⁹. Names with characters other than letters, digits, `_`
//! and `-` must be in double quotes.

use std::fmt;
use std::sync::Arc;

use atlas_document::Position;
use atlas_plan::estimate::Metric;
use atlas_plan::knob::Knob;

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Expect {
    /// Source text.
    pub text: Arc<str>,
    /// Position of the source text.
    pub at: Position,
    /// Left-hand side.
    pub left: Term,
    /// Test that the left-hand side must pass.
    pub test: Test,
}

/// Test of the left-hand side of a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Comparison with another term.
    Compare(Comparison, Term),
    /// Whether the value is close to that of another term.
    Within {
        /// Largest difference, in percent of `of`.
        percent: f64,
        /// Reference term.
        of: Term,
    },
}

/// Comparison operator.
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
    /// Equal to within one part in 10⁹.
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

    /// Whether the comparison of `left` with `right` is true.
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

/// Factors multiplied and divided from left to right.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// Source text.
    pub text: String,
    /// The first factor.
    pub first: Factor,
    /// The remaining factors, each with the operator before it.
    pub rest: Vec<(Operator, Factor)>,
}

impl Term {
    /// Returns the number if the term is a single number.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match (&self.first, self.rest.is_empty()) {
            (Factor::Number(value), true) => Some(*value),
            _ => None,
        }
    }

    /// Returns the figure if the term is a single figure.
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

/// Operator between two factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `*`
    Times,
    /// `/`
    Over,
}

/// A factor of a term.
#[derive(Debug, Clone, PartialEq)]
pub enum Factor {
    /// A literal number.
    Number(f64),
    /// Evaluated when the condition is checked.
    Figure(Figure),
    /// `baseline` alone. The parser replaces it once the whole condition is parsed.
    SameAtBaseline,
}

/// A metric or knob of the current scenario, of another target, or of the baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Setup that it is evaluated on.
    pub source: Source,
    /// Metric or knob.
    pub quantity: Quantity,
    /// Phase of the schedule; `None` for the whole workload.
    pub phase: Option<Arc<str>>,
}

/// Setup that a figure is evaluated on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The current scenario of the tour.
    Stage,
    /// The same workload and knobs on another target.
    Target(Arc<str>),
    /// The baseline.
    Baseline,
}

/// Metric or knob that a figure refers to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// A metric of the estimate.
    Metric(&'static Metric),
    /// A numeric knob.
    Knob(Knob),
}

/// Error of parsing a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What was found, what was expected, and where.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
}
