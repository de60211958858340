//! An answer: text, tables, figures with the scenario that they are computed from, and the commands that reproduce it.

use std::fmt::Write as _;

use serde::Serialize;

use atlas_core::{escape, units};
use atlas_plan::estimate::MetricId;
use atlas_plan::knob::{Knob, Setting};
use atlas_report::table::{Align, Table, wrap};

/// What kind of answer a question gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyKind {
    /// What a figure is made of, and what improves it.
    Why,
    /// What failures cost, and how far apart checkpoints should be.
    Failures,
    /// Figures before and after a change.
    WhatIf,
    /// Whether a scenario can run, and the smallest changes that make it run.
    Fit,
    /// How many accelerators are needed.
    Count,
    /// Targets at their best, ranked.
    Rank,
    /// Targets side by side with the same settings.
    Compare,
    /// What a word means.
    Meaning,
    /// Values of figures.
    Value,
    /// What limits the speed.
    Limits,
    /// Where time or memory goes.
    Breakdown,
    /// What to change.
    Improve,
    /// What brings a figure to a value.
    Reach,
    /// What a figure depends on most.
    Sensitivity,
    /// How far figures can be trusted.
    Trust,
    /// Where inputs come from.
    Origin,
    /// What there is.
    List,
    /// A section of the guide.
    Guide,
}

/// The scenario that a figure is computed from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct About {
    /// The target.
    pub target: String,
    /// The workload.
    pub workload: String,
    /// Knobs, as `--set` takes them.
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

/// A computed figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// The metric.
    pub metric: MetricId,
    /// The value; `None` if it is not finite.
    pub value: Option<f64>,
    /// The value with its unit.
    pub shown: String,
    /// The ends between which nine measurements of ten lie, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// What it is computed from.
    pub about: About,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// Text whose lines stay as they are.
    Lines(String),
    /// A table; the first column is text, the others figures.
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

    /// As text of at most this many columns where it can be wrapped.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        match self {
            Block::Text(text) => format!("{}\n", wrap(text, width, "")),
            Block::Lines(text) => format!("{}\n", text.trim_end()),
            Block::Table { head, rows } => {
                let align = |at: usize| if at == 0 { Align::Left } else { Align::Right };
                let mut table = Table::new(head.iter().enumerate().map(|(at, name)| (name.clone(), align(at))));
                for row in rows {
                    table.row(row.iter().cloned());
                }
                table.render()
            }
        }
    }
}

/// A change that the answer proposes.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    /// In words.
    pub text: String,
    /// The target.
    pub target: String,
    /// The workload.
    pub workload: String,
    /// All knobs that are set with it.
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

/// A setting with its unit, rounded for reading.
pub(super) fn shown(knob: Knob, setting: &Setting) -> String {
    match setting {
        Setting::Number(value) => {
            let digits = if value.fract() == 0.0 { value.to_string() } else { units::significant(*value, 4) };
            units::with_unit(&digits, knob.spec().unit).trim_end().to_owned()
        }
        other => other.to_string(),
    }
}

/// Settings as `--set` takes them.
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
    /// The scenario that it is about, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
    /// The answer.
    pub answer: Vec<Block>,
    /// Every computed figure.
    pub figures: Vec<Figure>,
    /// A change that it proposes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<Suggestion>,
    /// Arguments of `atlas`, one list a command.
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

    pub(super) fn say(&mut self, text: impl Into<String>) {
        self.answer.push(Block::Text(text.into()));
    }

    pub(super) fn table<const N: usize>(&mut self, head: [&str; N], rows: Vec<Vec<String>>) {
        if !rows.is_empty() {
            self.answer.push(Block::table(head, rows));
        }
    }

    /// Adds a command: words, and flags behind them. One that already exists is not added again.
    pub(super) fn command<W: AsRef<str>>(&mut self, words: &[W], flags: Vec<String>) {
        let words = words.iter().map(|word| word.as_ref().to_owned());
        let command: Vec<String> = words.chain(flags).collect();
        if !self.commands.contains(&command) {
            self.commands.push(command);
        }
    }

    /// The commands as they are typed in a shell.
    #[must_use]
    pub fn command_lines(&self) -> Vec<String> {
        let line = |words: &Vec<String>| {
            let words: Vec<String> = words.iter().map(|word| escape::shell(word)).collect();
            format!("atlas {}", words.join(" "))
        };
        self.commands.iter().map(line).collect()
    }

    /// The whole answer as text.
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
