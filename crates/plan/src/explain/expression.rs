//! Equations over the terms of a derivation: evaluation, and formatting with symbols or numbers.

use std::ops::{Add, Div, Mul, Sub};

use super::{Origin, Term};
use atlas_core::units::significant_short;
use atlas_legacy::number::Number;

/// Right-hand side of an equation. Terms are referred to by index.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// Term, by index.
    Term(usize),
    /// Literal number.
    Number(f64),
    /// a + b + …
    Sum(Vec<Expression>),
    /// a − b
    Difference(Box<Expression>, Box<Expression>),
    /// a × b × …
    Product(Vec<Expression>),
    /// a / b
    Quotient(Box<Expression>, Box<Expression>),
    /// Ceiling.
    Ceiling(Box<Expression>),
    /// Maximum.
    Max(Vec<Expression>),
    /// Minimum.
    Min(Vec<Expression>),
}

/// Operator precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Sum,
    Product,
    Atom,
}

impl Expression {
    /// Evaluates the expression with the values of `terms`.
    #[must_use]
    pub fn value(&self, terms: &[Term]) -> f64 {
        let each = |all: &[Expression]| all.iter().map(|one| one.value(terms)).collect::<Vec<f64>>();
        match self {
            Expression::Term(index) => terms.get(*index).map_or(f64::NAN, |term| term.value),
            Expression::Number(value) => *value,
            Expression::Sum(all) => each(all).into_iter().sum(),
            Expression::Difference(a, b) => a.value(terms) - b.value(terms),
            Expression::Product(all) => each(all).into_iter().product(),
            Expression::Quotient(a, b) => a.value(terms) / b.value(terms),
            Expression::Ceiling(a) => a.value(terms).ceil(),
            Expression::Max(all) => each(all).into_iter().fold(f64::NEG_INFINITY, f64::max),
            Expression::Min(all) => each(all).into_iter().fold(f64::INFINITY, f64::min),
        }
    }

    /// Formats the expression with symbols: `D / T`.
    #[must_use]
    pub fn symbols(&self, terms: &[Term]) -> String {
        self.write(&|index| terms.get(index).map_or_else(|| "?".to_owned(), |term| term.symbol.to_string()))
    }

    /// Formats the expression with numbers: `1048576 / 14.06`.
    #[must_use]
    pub fn numbers(&self, terms: &[Term]) -> String {
        self.write(&|index| terms.get(index).map_or_else(|| "?".to_owned(), |term| plain(term.value)))
    }

    fn binding(&self) -> Binding {
        match self {
            Expression::Sum(_) | Expression::Difference(..) => Binding::Sum,
            Expression::Product(_) | Expression::Quotient(..) => Binding::Product,
            _ => Binding::Atom,
        }
    }

    fn write(&self, term: &dyn Fn(usize) -> String) -> String {
        // Parentheses if the inner operator has a lower precedence.
        let inside = |one: &Expression, required: Binding| {
            let text = one.write(term);
            if one.binding() < required { format!("({text})") } else { text }
        };
        let join = |all: &[Expression], sign: &str, required: Binding| {
            all.iter().map(|one| inside(one, required)).collect::<Vec<_>>().join(sign)
        };
        match self {
            Expression::Term(index) => term(*index),
            Expression::Number(value) => plain(*value),
            Expression::Sum(all) => join(all, " + ", Binding::Sum),
            Expression::Difference(a, b) => format!("{} − {}", inside(a, Binding::Sum), inside(b, Binding::Product)),
            Expression::Product(all) => join(all, " × ", Binding::Product),
            Expression::Quotient(a, b) => format!("{} / {}", inside(a, Binding::Product), inside(b, Binding::Atom)),
            Expression::Ceiling(a) => format!("⌈{}⌉", inside(a, Binding::Sum)),
            Expression::Max(all) => format!("max({})", join(all, ", ", Binding::Sum)),
            Expression::Min(all) => format!("min({})", join(all, ", ", Binding::Sum)),
        }
    }

    /// Replaces term index `i` by `at[i]`.
    fn placed(self, at: &[usize]) -> Expression {
        let all = |terms: Vec<Expression>| terms.into_iter().map(|one| one.placed(at)).collect();
        let boxed = |one: Box<Expression>| Box::new(one.placed(at));
        match self {
            Expression::Term(index) => Expression::Term(at.get(index).copied().unwrap_or(index)),
            Expression::Number(value) => Expression::Number(value),
            Expression::Sum(terms) => Expression::Sum(all(terms)),
            Expression::Difference(a, b) => Expression::Difference(boxed(a), boxed(b)),
            Expression::Product(terms) => Expression::Product(all(terms)),
            Expression::Quotient(a, b) => Expression::Quotient(boxed(a), boxed(b)),
            Expression::Ceiling(a) => Expression::Ceiling(boxed(a)),
            Expression::Max(terms) => Expression::Max(all(terms)),
            Expression::Min(terms) => Expression::Min(all(terms)),
        }
    }
}

/// Formats a number of an equation: whole numbers in full, others with four digits.
fn plain(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value.is_infinite() { "∞".to_owned() } else { significant_short(value) };
    }
    let magnitude = value.abs();
    if !(1e-3..1e6).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    if value.fract() == 0.0 { value.to_string() } else { atlas_core::units::significant(value, 4) }
}

/// Equation under construction: an expression and its terms.
#[derive(Debug, Clone)]
pub struct Written {
    pub(super) terms: Vec<Term>,
    pub(super) expression: Expression,
}

impl From<Term> for Written {
    fn from(term: Term) -> Written {
        Written { terms: vec![term], expression: Expression::Term(0) }
    }
}

impl From<f64> for Written {
    fn from(value: f64) -> Written {
        Written { terms: Vec::new(), expression: Expression::Number(value) }
    }
}

impl Number for Written {
    fn given(
        symbol: &'static str,
        name: &'static str,
        unit: &'static str,
        value: f64,
        origin: &'static str,
    ) -> Written {
        Term::input(symbol, name, unit, value).from(Origin::Engine(origin)).into()
    }

    fn named(self, symbol: &'static str, name: &'static str, unit: &'static str) -> Written {
        Term::derived(symbol, name, unit, self).into()
    }

    fn value(&self) -> f64 {
        Written::value(self)
    }

    fn at_least(self, bound: Written) -> Written {
        max(self, bound)
    }

    fn at_most(self, bound: Written) -> Written {
        min(self, bound)
    }
}

impl Written {
    /// Merges the terms of several equations: a term that occurs repeatedly is listed once.
    fn gather(all: Vec<Written>) -> (Vec<Term>, Vec<Expression>) {
        let (mut terms, mut expressions): (Vec<Term>, Vec<Expression>) = (Vec::new(), Vec::new());
        for one in all {
            let mut places = Vec::new();
            for term in one.terms {
                let known = terms.iter().position(|known| known.symbol == term.symbol && known.value == term.value);
                places.push(known.unwrap_or(terms.len()));
                if known.is_none() {
                    terms.push(term);
                }
            }
            expressions.push(one.expression.placed(&places));
        }
        (terms, expressions)
    }

    fn joined(all: Vec<Written>, put: fn(Vec<Expression>) -> Expression) -> Written {
        let (terms, mut expressions) = Written::gather(all);
        let one = if expressions.len() == 1 { expressions.pop() } else { None };
        Written { terms, expression: one.unwrap_or_else(|| put(expressions)) }
    }

    fn two(a: Written, b: Written, put: fn(Box<Expression>, Box<Expression>) -> Expression) -> Written {
        let (terms, expressions) = Written::gather(vec![a, b]);
        let mut both = expressions.into_iter().map(Box::new);
        match (both.next(), both.next()) {
            (Some(a), Some(b)) => Written { terms, expression: put(a, b) },
            _ => Written { terms, expression: Expression::Number(f64::NAN) },
        }
    }

    /// Evaluates the equation.
    pub(super) fn value(&self) -> f64 {
        self.expression.value(&self.terms)
    }
}

/// Sum of all terms.
pub(super) fn sum(all: impl IntoIterator<Item = Term>) -> Written {
    Written::joined(all.into_iter().map(Written::from).collect(), Expression::Sum)
}

/// Product of all terms.
pub(super) fn product(all: impl IntoIterator<Item = Term>) -> Written {
    Written::joined(all.into_iter().map(Written::from).collect(), Expression::Product)
}

/// Maximum of two equations.
pub(super) fn max(a: impl Into<Written>, b: impl Into<Written>) -> Written {
    Written::joined(vec![a.into(), b.into()], Expression::Max)
}

/// Ceiling of an equation.
pub(super) fn ceiling(of: impl Into<Written>) -> Written {
    let Written { terms, expression } = of.into();
    Written { terms, expression: Expression::Ceiling(Box::new(expression)) }
}

/// Minimum of two equations.
pub(super) fn min(a: impl Into<Written>, b: impl Into<Written>) -> Written {
    Written::joined(vec![a.into(), b.into()], Expression::Min)
}

fn flat(a: Written, b: Written, product: bool) -> Written {
    let (terms, expressions) = Written::gather(vec![a, b]);
    let mut all = Vec::new();
    for one in expressions {
        match (one, product) {
            (Expression::Product(inner), true) | (Expression::Sum(inner), false) => all.extend(inner),
            (one, _) => all.push(one),
        }
    }
    Written { terms, expression: if product { Expression::Product(all) } else { Expression::Sum(all) } }
}

macro_rules! operators {
    ($($left:ty),*) => { $(
        impl<R: Into<Written>> Add<R> for $left {
            type Output = Written;
            fn add(self, right: R) -> Written { flat(self.into(), right.into(), false) }
        }
        impl<R: Into<Written>> Mul<R> for $left {
            type Output = Written;
            fn mul(self, right: R) -> Written { flat(self.into(), right.into(), true) }
        }
        impl<R: Into<Written>> Sub<R> for $left {
            type Output = Written;
            fn sub(self, right: R) -> Written { Written::two(self.into(), right.into(), Expression::Difference) }
        }
        impl<R: Into<Written>> Div<R> for $left {
            type Output = Written;
            fn div(self, right: R) -> Written { Written::two(self.into(), right.into(), Expression::Quotient) }
        }
    )* };
}
operators!(Term, Written);

#[cfg(test)]
mod tests {
    use super::*;

    fn term(symbol: &'static str, value: f64) -> Term {
        Term::input(symbol, "", "", value)
    }

    #[test]
    fn expression_text_matches_its_computation() {
        let written = (term("a", 2.0) + term("b", 3.0)) * term("c", 4.0) / (term("d", 5.0) - term("a", 2.0));
        assert_eq!(written.expression.symbols(&written.terms), "(a + b) × c / (d − a)");
        assert_eq!(written.expression.numbers(&written.terms), "(2 + 3) × 4 / (5 − 2)");
        assert_eq!(written.terms.len(), 4);
        assert!((written.value() - 20.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn min_max_and_ceiling_expressions_nest() {
        let written = max(term("a", 2.0), min(term("b", 9.0), term("c", 7.0))) * 2.0;
        assert_eq!(written.expression.symbols(&written.terms), "max(a, min(b, c)) × 2");
        assert_eq!(written.value(), 14.0);
        let whole = ceiling(term("a", 7.0) / term("b", 2.0));
        assert_eq!((whole.expression.symbols(&whole.terms), whole.value()), ("⌈a / b⌉".to_owned(), 4.0));
    }
}
