//! An answer: text, tables, metrics with their scenarios, and the commands that reproduce it.

use std::fmt::Write as _;

use serde::Serialize;

use atlas_core::{escape, units};
use atlas_plan::estimate::MetricId;
use atlas_plan::knob::{Knob, Setting};
use atlas_report::table::{Align, Table, wrap};

/// Kind of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyKind {
    /// Derivation of a metric, and what improves it.
    Why,
    /// Cost of failures, and the best checkpoint interval.
    Failures,
    /// Metrics before and after a change.
    WhatIf,
    /// Whether a scenario can run, and the smallest changes that make it run.
    Fit,
    /// Number of accelerators needed.
    Count,
    /// Targets ranked by their best layout.
    Rank,
    /// Comparison of targets with the same settings.
    Compare,
    /// Definition of a word.
    Meaning,
    /// Values of metrics.
    Value,
    /// The bottleneck.
    Limits,
    /// Breakdown of time or memory.
    Breakdown,
    /// Recommended changes.
    Improve,
    /// Changes that bring a metric to a value.
    Reach,
    /// What a metric depends on most.
    Sensitivity,
    /// Accuracy of metrics.
    Trust,
    /// Origin of inputs.
    Origin,
    /// List of names.
    List,
    /// A section of the guide.
    Guide,
}

/// Scenario from which a metric is computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct About {
    /// The target.
    pub target: String,
    /// The workload.
    pub workload: String,
    /// Changed knobs, as arguments for `--set`.
    pub set: Vec<String>,
}

impl About {
    /// Target, workload and settings on one line.
    #[must_use]
    pub fn line(&self) -> String {
        let set = if self.set.is_empty() { String::new() } else { format!(", {}", self.set.join(" ")) };
        format!("{} on {}{set}", self.workload, self.target)
    }
}

/// A computed metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedMetric {
    /// The metric.
    pub metric: MetricId,
    /// The value; `None` if it is not finite.
    pub value: Option<f64>,
    /// The value with its unit.
    pub shown: String,
    /// The 90 % interval, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// Scenario from which it is computed.
    pub about: About,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// Text whose line breaks are kept.
    Lines(String),
    /// A table; the first column is text, the others are numbers.
    Table {
        /// Headings.
        head: Vec<String>,
        /// Rows.
        rows: Vec<Vec<String>>,
    },
}

impl Block {
    /// A table.
    #[must_use]
    pub fn table<const N: usize>(head: [&str; N], rows: Vec<Vec<String>>) -> Block {
        Block::Table { head: head.map(str::to_owned).to_vec(), rows }
    }

    /// Renders the block as text, wrapped to `width` columns where possible.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        match self {
            Block::Text(text) => format!("{}\n", wrap(text, width, "")),
            Block::Lines(text) => format!("{}\n", text.trim_end()),
            Block::Table { head, rows } => {
                let align = |at: usize| if at == 0 { Align::Left } else { Align::Right };
                let rows = wrap_first_column(head, rows, width);
                let mut table = Table::new(head.iter().enumerate().map(|(at, name)| (name.clone(), align(at))));
                for row in rows {
                    table.row(row);
                }
                table.render()
            }
        }
    }
}

/// Wraps the text of the first column so that a table is at most `width` columns wide, if the others leave some space.
/// The numbers are on the first line of a row.
fn wrap_first_column(head: &[String], rows: &[Vec<String>], width: usize) -> Vec<Vec<String>> {
    const NARROWEST: usize = 20;
    let widest = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).chain(head.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let others: usize = (1..head.len()).map(|at| 2 + widest(at)).sum();
    let first = width.saturating_sub(others).max(NARROWEST);
    let mut out = Vec::new();
    for row in rows {
        let mut cells = row.iter().cloned();
        let text = cells.next().unwrap_or_default();
        if text.chars().count() <= first {
            out.push(row.clone());
            continue;
        }
        let text = wrap(&text, first, "  ");
        let mut lines = text.lines().map(str::to_owned);
        out.push(lines.next().into_iter().chain(cells).collect());
        out.extend(lines.map(|line| vec![line]));
    }
    out
}

/// A change proposed by the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    /// Description.
    pub text: String,
    /// The target.
    pub target: String,
    /// The workload.
    pub workload: String,
    /// All changed knobs, including the proposed ones.
    pub overrides: Vec<(Knob, Setting)>,
}

impl Serialize for Suggestion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("text", &self.text)?;
        map.serialize_entry("target", &self.target)?;
        map.serialize_entry("workload", &self.workload)?;
        map.serialize_entry("set", &settings(&self.overrides))?;
        map.end()
    }
}

/// A setting with its unit, rounded for display.
pub(super) fn format_setting(knob: Knob, setting: &Setting) -> String {
    match setting {
        Setting::Number(value) => {
            let digits = if value.fract() == 0.0 { value.to_string() } else { units::significant(*value, 4) };
            units::with_unit(&digits, knob.spec().unit).trim_end().to_owned()
        }
        other => other.to_string(),
    }
}

/// Settings as arguments for `--set`.
pub(super) fn settings<'s>(all: impl IntoIterator<Item = &'s (Knob, Setting)>) -> Vec<String> {
    all.into_iter().map(|(knob, setting)| format!("{}={setting}", knob.name())).collect()
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reply {
    /// The question.
    pub question: String,
    /// The kind of answer.
    pub kind: ReplyKind,
    /// Scenario of the answer, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
    /// Content.
    pub answer: Vec<Block>,
    /// All computed metrics.
    pub figures: Vec<ReportedMetric>,
    /// Proposed change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<Suggestion>,
    /// Arguments of `atlas`, one list per command.
    pub commands: Vec<Vec<String>>,
}

impl Reply {
    pub(super) fn new(kind: ReplyKind) -> Reply {
        Reply {
            question: String::new(),
            kind,
            about: None,
            answer: Vec::new(),
            figures: Vec::new(),
            suggestion: None,
            commands: Vec::new(),
        }
    }

    pub(super) fn push_text(&mut self, text: impl Into<String>) {
        self.answer.push(Block::Text(text.into()));
    }

    pub(super) fn table<const N: usize>(&mut self, head: [&str; N], rows: Vec<Vec<String>>) {
        if !rows.is_empty() {
            self.answer.push(Block::table(head, rows));
        }
    }

    /// Adds a command, unless it is already listed.
    pub(super) fn command<W: AsRef<str>>(&mut self, words: &[W], flags: Vec<String>) {
        let words = words.iter().map(|word| word.as_ref().to_owned());
        let command: Vec<String> = words.chain(flags).collect();
        if !self.commands.contains(&command) {
            self.commands.push(command);
        }
    }

    /// The commands as shell command lines.
    #[must_use]
    pub fn command_lines(&self) -> Vec<String> {
        let line = |words: &Vec<String>| {
            let words: Vec<String> = words.iter().map(|word| escape::shell(word)).collect();
            format!("atlas {}", words.join(" "))
        };
        self.commands.iter().map(line).collect()
    }

    /// Renders the whole answer as text.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        let mut out = String::new();
        if let Some(about) = &self.about {
            let _ = writeln!(out, "{}\n", about.line());
        }
        for (at, block) in self.answer.iter().enumerate() {
            if at > 0 {
                out.push('\n');
            }
            out.push_str(&block.text(width));
        }
        if !self.commands.is_empty() {
            out.push_str("\nReproduce:\n");
            for line in self.command_lines() {
                let _ = writeln!(out, "  {line}");
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_wrap_their_text_and_keep_numbers_on_the_first_line() {
        let row = |text: &str| vec![text.to_owned(), "10.47 ktok/s".to_owned(), "+61 %".to_owned()];
        let long = "quantize the weights and the cache, and raise the concurrency ".repeat(5);
        let text = Block::table(["change", "tokens/s", ""], vec![row(&long), row("tp=8")]).text(60);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        let first = text.lines().nth(2).unwrap_or_default();
        assert!(first.starts_with("quantize") && first.ends_with("10.47 ktok/s  +61 %"), "{text}");
        assert_eq!(text.split_whitespace().filter(|word| *word == "quantize").count(), 5, "{text}");
    }
}
