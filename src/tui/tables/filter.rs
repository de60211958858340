//! Filters of rows: words and conditions.

use fuzzy_matcher::FuzzyMatcher as _;
use fuzzy_matcher::skim::SkimMatcherV2;

use crate::tui::app::answer::Answer;
use atlas_plan::estimate::METRICS;
use atlas_plan::search::Condition;

/// Replaces labels of several words, as shown on the screen, by the names of their metrics: `TTFT p99<2s` becomes
/// `ttft_p99_ms<2s`.
fn with_names(text: &str) -> String {
    let mut out = text.to_owned();
    for metric in METRICS.iter().filter(|metric| metric.label.contains(' ')) {
        // Labels are ASCII: offsets in the text and in its lower case are the same.
        while let Some(at) = out.to_ascii_lowercase().find(&metric.label.to_ascii_lowercase()) {
            let end = at + metric.label.len();
            let bounds = out.get(end..).is_some_and(|rest| rest.trim_start().starts_with(['<', '>', '=', '!']));
            if !bounds {
                break;
            }
            out.replace_range(at..end, metric.name);
        }
    }
    out
}

/// A filter of rows: every word must match and every condition must hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    pub(super) text: String,
    pub(super) words: Vec<String>,
    pub(super) conditions: Vec<Condition>,
}

impl Filter {
    /// Parses a filter: words, and conditions in the syntax of `--where`, such as `h100 tpot<50ms fits`.
    ///
    /// # Errors
    /// A message for the user on a condition that is invalid.
    pub fn parse(text: &str) -> Result<Filter, String> {
        let mut filter = Filter { text: text.trim().to_owned(), ..Filter::default() };
        let text = &with_names(text);
        // Remove spaces around operators, so that a condition is one word.
        let mut tight = String::new();
        for (c, next) in text.chars().zip(text.chars().skip(1).chain([' '])) {
            let sign = |c: char| "<>=!".contains(c);
            if c.is_whitespace() && (tight.ends_with(sign) || sign(next) || tight.ends_with(char::is_whitespace)) {
                continue;
            }
            tight.push(c);
        }
        let mut pieces: Vec<String> = Vec::new();
        for word in tight.split([' ', ',', '\t']).filter(|word| !word.is_empty()) {
            let joined =
                pieces.last().filter(|last| last.contains(['<', '>', '='])).map(|last| format!("{last}{word}"));
            let unit = word.chars().count() <= 3 && word.chars().all(|c| c.is_alphabetic() || "%$µ".contains(c));
            match joined.filter(|joined| unit && Condition::parse(joined).is_ok()) {
                // `tpot < 50 ms`: the unit belongs to the number.
                Some(joined) => drop(pieces.pop().map(|_| pieces.push(joined))),
                None => pieces.push(word.to_owned()),
            }
        }
        for piece in pieces {
            if piece.contains(['<', '>', '=']) || piece.eq_ignore_ascii_case("fits") {
                filter.conditions.push(Condition::parse(&piece).map_err(|error| error.to_string())?);
            } else {
                filter.words.push(piece);
            }
        }
        Ok(filter)
    }

    /// Returns the filter as it was typed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether `text` contains every word, ignoring case.
    #[must_use]
    pub fn contains_words(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.words.iter().all(|word| text.contains(&word.to_lowercase()))
    }

    /// Whether every word fuzzy-matches `text`: its letters occur in order.
    pub(super) fn fuzzy_matches(&self, text: &str) -> bool {
        let matcher = SkimMatcherV2::default();
        self.words.iter().all(|word| matcher.fuzzy_match(text, word).is_some())
    }

    /// Whether every condition holds for an answer.
    pub(super) fn conditions_hold(&self, answer: &Answer) -> bool {
        let (Some(scenario), Ok(estimate)) = (&answer.scenario, &answer.outcome) else {
            return self.conditions.is_empty();
        };
        // A metric that does not apply to the scenario fails every condition, even if its value is 0.
        let says = |condition: &Condition| match condition {
            Condition::Metric(metric, ..) => metric.applies_to(scenario),
            Condition::Fits | Condition::Knob(..) => true,
        };
        self.conditions.iter().all(|condition| says(condition) && condition.holds(estimate, scenario))
    }
}
