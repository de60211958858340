//! Parses the text of a condition into an [`Expect`]: a tokenizer, then one function per rule of the grammar.

use std::sync::Arc;

use super::expect::{Comparison, Expect, Factor, Figure, Operator, Problem, Quantity, Source, Term, Test};
use atlas_document::Position;
use atlas_document::suggestion::did_you_mean;
use atlas_plan::estimate::{METRICS, Metric};
use atlas_plan::knob::{KNOBS, Knob, ValueType};

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Quoted(String),
    Number(f64),
    Sign(&'static str),
}

const SIGNS: [&str; 12] = ["<=", ">=", "==", "<", ">", "=", "*", "/", "%", ".", "[", "]"];

/// Parses one condition; `at` is its position in the script.
pub(super) fn read(text: &str, at: Position) -> Result<Expect, Problem> {
    Parser { text, tokens: tokens(text)?, next: 0 }.condition(at)
}

struct Parser<'t> {
    text: &'t str,
    /// Tokens, each with its byte offset.
    tokens: Vec<(usize, Token)>,
    next: usize,
}

impl<'t> Parser<'t> {
    fn condition(mut self, at: Position) -> Result<Expect, Problem> {
        let text = self.text;
        let mut left = self.term()?;
        let mut test = self.test()?;
        if self.peek().is_some() {
            return Err(self.wrong("the end of the condition, `*` or `/`", None));
        }
        let right = match &mut test {
            Test::Compare(_, term) | Test::Within { of: term, .. } => term,
        };
        let first = left.factors().chain(right.factors()).find_map(|factor| match factor {
            Factor::Figure(figure) => Some(figure.clone()),
            _ => None,
        });
        let Some(first) = first else {
            let help = Some(format!(
                "metrics are {}",
                METRICS.iter().map(|metric| metric.name).collect::<Vec<_>>().join(", ")
            ));
            return Err(Problem { message: format!("found no metric and no knob in \"{text}\""), help });
        };
        for factor in left.factors_mut().chain(right.factors_mut()) {
            if *factor == Factor::SameAtBaseline {
                *factor = Factor::Figure(Figure { source: Source::Baseline, ..first.clone() });
            }
        }
        Ok(Expect { text: text.into(), at, left, test })
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn offset(&self) -> usize {
        self.tokens.get(self.next).map_or(self.text.len(), |(at, _)| *at)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(found)) if *found == sign)
            || matches!(self.peek(), Some(Token::Word(found)) if found == sign);
        self.next += usize::from(found);
        found
    }

    fn wrong(&self, expected: &str, help: Option<String>) -> Problem {
        let found = match self.peek() {
            None => "the end of the condition".to_owned(),
            Some(Token::Word(word)) => format!("`{word}`"),
            Some(Token::Quoted(word)) => format!("`\"{word}\"`"),
            Some(Token::Number(number)) => format!("{number}"),
            Some(Token::Sign(sign)) => format!("`{sign}`"),
        };
        problem_at(self.text, self.offset(), &format!("found {found}, expected {expected}"), help)
    }

    fn test(&mut self) -> Result<Test, Problem> {
        for (sign, comparison) in Comparison::ALL {
            if self.take(sign) {
                return Ok(Test::Compare(comparison, self.term()?));
            }
        }
        if !self.take("within") {
            let near = match self.peek() {
                Some(Token::Sign("=")) => Some("write `==`".to_owned()),
                Some(Token::Word(word)) => did_you_mean(word, ["within"]),
                _ => None,
            };
            return Err(self.wrong("one of <, <=, >, >=, ==, within", near));
        }
        let percent = self.percent()?;
        for word in ["%", "of"] {
            if !self.take(word) {
                return Err(self.wrong(&format!("`{word}`, as in `within 1 % of 2000`"), None));
            }
        }
        Ok(Test::Within { percent, of: self.term()? })
    }

    fn percent(&mut self) -> Result<f64, Problem> {
        match self.peek() {
            Some(Token::Number(value)) if *value >= 0.0 => {
                let value = *value;
                self.next += 1;
                Ok(value)
            }
            _ => Err(self.wrong("a percentage of at least 0", None)),
        }
    }

    fn term(&mut self) -> Result<Term, Problem> {
        let start = self.offset();
        let first = self.factor()?;
        let mut rest = Vec::new();
        loop {
            let operator = if self.take("*") {
                Operator::Times
            } else if self.take("/") {
                Operator::Over
            } else {
                break;
            };
            rest.push((operator, self.factor()?));
        }
        let text = self.text.get(start..self.offset()).unwrap_or_default().trim().to_owned();
        Ok(Term { text, first, rest })
    }

    fn factor(&mut self) -> Result<Factor, Problem> {
        const EXPECTED: &str = "a number, a metric, a knob or `baseline`";
        let (name, quoted) = match self.peek() {
            Some(Token::Number(value)) => {
                let value = *value;
                self.next += 1;
                return Ok(Factor::Number(value));
            }
            Some(Token::Word(word)) => (word.clone(), false),
            Some(Token::Quoted(word)) => (word.clone(), true),
            _ => return Err(self.wrong(EXPECTED, None)),
        };
        let dotted = matches!(self.tokens.get(self.next + 1), Some((_, Token::Sign("."))));
        if !dotted && name == "baseline" && !quoted {
            self.next += 1;
            return Ok(Factor::SameAtBaseline);
        }
        let source = match (dotted, name.as_str()) {
            (false, _) => Source::Stage,
            (true, "baseline") if !quoted => Source::Baseline,
            (true, name) => Source::Target(name.into()),
        };
        if dotted {
            self.next += 2;
        }
        let quantity = self.quantity()?;
        let phase = if self.take("[") { Some(self.phase()?) } else { None };
        Ok(Factor::Figure(Figure { source, quantity, phase }))
    }

    fn quantity(&mut self) -> Result<Quantity, Problem> {
        let Some(Token::Word(word)) = self.peek() else {
            return Err(self.wrong("the name of a metric or a knob", None));
        };
        let found = Metric::named(word).map(Quantity::Metric).or_else(|| Knob::find(word).map(Quantity::Knob));
        match found {
            Some(Quantity::Knob(knob)) if !matches!(knob.spec().kind, ValueType::Number { .. }) => {
                Err(self.wrong("a metric or a numeric knob", None))
            }
            Some(quantity) => {
                self.next += 1;
                Ok(quantity)
            }
            None => {
                let names = METRICS.iter().map(|metric| metric.name).chain(KNOBS.iter().map(|spec| spec.name));
                let near = did_you_mean(word, names);
                Err(self.wrong("a metric or a knob", near))
            }
        }
    }

    fn phase(&mut self) -> Result<Arc<str>, Problem> {
        let name: Arc<str> = match self.peek() {
            Some(Token::Word(name) | Token::Quoted(name)) => name.as_str().into(),
            _ => return Err(self.wrong("the name of a phase", None)),
        };
        self.next += 1;
        if self.take("]") { Ok(name) } else { Err(self.wrong("`]`", None)) }
    }
}

fn problem_at(text: &str, offset: usize, message: &str, help: Option<String>) -> Problem {
    let character = text.get(..offset).unwrap_or(text).chars().count() + 1;
    Problem { message: format!("{message} at character {character} of \"{text}\""), help }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Problem> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let at = text.len() - rest.len();
        let Some(first) = rest.chars().next() else { return Ok(tokens) };
        let digit_next = rest.chars().nth(1).is_some_and(|c| c.is_ascii_digit());
        let (token, length) = if first == '"' {
            let inner = rest.get(1..).unwrap_or_default();
            let Some(end) = inner.find('"') else {
                return Err(problem_at(text, at, "found a quoted name without a closing quote", None));
            };
            (Token::Quoted(inner.get(..end).unwrap_or_default().to_owned()), end + 2)
        } else if first.is_ascii_digit() || (matches!(first, '-' | '+' | '.') && digit_next) {
            let length = number_length(rest);
            let digits = rest.get(..length).unwrap_or_default();
            match digits.replace('_', "").parse::<f64>() {
                Ok(value) if value.is_finite() => (Token::Number(value), length),
                _ => return Err(problem_at(text, at, &format!("found `{digits}`, expected a number"), None)),
            }
        } else if first.is_alphabetic() || first == '_' {
            let end = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-'));
            let length = rest.find(end).unwrap_or(rest.len());
            (Token::Word(rest.get(..length).unwrap_or_default().to_owned()), length)
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            let help = Some("put names with such characters in double quotes".to_owned());
            return Err(problem_at(text, at, &format!("found `{first}`, which is not allowed in a condition"), help));
        };
        tokens.push((at, token));
        rest = rest.get(length..).unwrap_or_default();
    }
}

/// Length in bytes of the number at the start of `text`: sign, digits, decimal point and exponent. Letters and `_` are
/// included so that a malformed number is one token.
fn number_length(text: &str) -> usize {
    let mut before = ' ';
    let end = text.find(|c: char| {
        let sign = matches!(c, '-' | '+') && matches!(before, ' ' | 'e' | 'E');
        let part = c.is_ascii_alphanumeric() || matches!(c, '.' | '_') || sign;
        before = c;
        !part
    });
    end.unwrap_or(text.len())
}

impl Expect {
    /// Parses a condition; `at` is its position in the script.
    pub fn read(text: &str, at: Position) -> Result<Expect, Problem> {
        read(text, at)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(text: &str) -> Expect {
        read(text, Position::default()).unwrap()
    }

    fn refusal(text: &str) -> String {
        let problem = read(text, Position::default()).unwrap_err();
        problem.help.map_or(problem.message.clone(), |help| format!("{}; {help}", problem.message))
    }

    fn figure(source: Source, name: &str, phase: Option<&str>) -> Figure {
        Figure { source, quantity: Quantity::Metric(Metric::named(name).unwrap()), phase: phase.map(Into::into) }
    }

    #[test]
    fn parser_accepts_every_rule_of_the_condition_grammar() {
        let expect = parse("tokens_per_sec > 2_000");
        assert_eq!(expect.left.figure(), Some(&figure(Source::Stage, "tokens_per_sec", None)));
        let Test::Compare(comparison, right) = &expect.test else { unreachable!() };
        assert_eq!((*comparison, right.number()), (Comparison::Greater, Some(2000.0)));

        let expect = parse(r#""My node.8x".p99_ms["off peak"]<=baseline"#);
        let left = figure(Source::Target("My node.8x".into()), "p99_ms", Some("off peak"));
        assert_eq!(expect.left.figure(), Some(&left));
        let Test::Compare(Comparison::AtMost, right) = &expect.test else { unreachable!() };
        assert_eq!(right.figure(), Some(&Figure { source: Source::Baseline, ..left }));

        let expect = parse("baseline.tp * pp/2 within 1.5% of -1e-3");
        assert_eq!(expect.left.text, "baseline.tp * pp/2");
        let operators: Vec<Operator> = expect.left.rest.iter().map(|(operator, _)| *operator).collect();
        assert_eq!(operators, [Operator::Times, Operator::Over]);
        let Test::Within { percent, of } = &expect.test else { unreachable!() };
        assert_eq!((*percent, of.number()), (1.5, Some(-0.001)));
    }

    #[test]
    fn condition_errors_name_the_found_token_the_expectation_and_the_position() {
        for (text, expected) in [
            (
                "",
                "found the end of the condition, expected a number, a metric, a knob or `baseline` at character 1 of \
                 \"\"",
            ),
            (
                "token_per_sec > 1",
                "found `token_per_sec`, expected a metric or a knob at character 1 of \"token_per_sec > 1\"; did you \
                 mean `tokens_per_sec`?",
            ),
            (
                "p99_ms = 1",
                "found `=`, expected one of <, <=, >, >=, ==, within at character 8 of \"p99_ms = 1\"; write `==`",
            ),
            (
                "p99_ms > 1 2",
                "found 2, expected the end of the condition, `*` or `/` at character 12 of \"p99_ms > 1 2\"",
            ),
            ("µs > 1", "found `µs`, expected a metric or a knob at character 1 of \"µs > 1\""),
            (
                "p99_ms within -1 % of 2",
                "found -1, expected a percentage of at least 0 at character 15 of \"p99_ms within -1 % of 2\"",
            ),
            ("virt > 1", "found `virt`, expected a metric or a numeric knob at character 1 of \"virt > 1\""),
            ("p99_ms > 1e999", "found `1e999`, expected a number at character 10 of \"p99_ms > 1e999\""),
            ("p99_ms > 8x", "found `8x`, expected a number at character 10 of \"p99_ms > 8x\""),
            ("p99_ms[surge > 1", "found `>`, expected `]` at character 14 of \"p99_ms[surge > 1\""),
            (
                "\"H100.p99_ms > 1",
                "found a quoted name without a closing quote at character 1 of \"\"H100.p99_ms > 1\"",
            ),
        ] {
            assert_eq!(refusal(text), expected);
        }
        assert!(refusal("1 < 2").starts_with("found no metric and no knob in \"1 < 2\"; metrics are tokens_per_sec"));
        assert!(refusal("p99_ms > 1 & 2").contains("found `&`, which is not allowed in a condition at character 12"));
    }

    #[test]
    fn no_text_makes_the_reader_panic() {
        let pieces =
            ["p99_ms", "baseline", ".", "[", "]", "<", "within", "%", "of", "\"", "1", "-", "é", " ", "*", "/"];
        for first in pieces {
            for second in pieces {
                for third in pieces {
                    let _ = read(&format!("{first}{second}{third}"), Position::default());
                    let _ = read(&format!("p99_ms {first} {second} {third}"), Position::default());
                }
            }
        }
    }
}
