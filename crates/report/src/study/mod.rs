//! A study: one workload on several targets, from the recommendation down to the sources.
//!
//! * [`advice`] – the part of it that says what would make each better
//! * [`content`] – what is said, as blocks that no format knows
//! * [`optimum`] – how each target's own best was found
//! * [`sweep`] – what a sweep's file says
//! * [`markdown`], [`html`] – the blocks written down

pub mod advice;
pub mod content;
pub mod html;
pub mod markdown;
pub mod optimum;
pub mod sweep;

use std::sync::Arc;

use super::chart::drawing::Drawing;
use super::chart::{Bars, Plot};
use super::table::Align;
use atlas_plan::engine::estimate;
use atlas_plan::estimate::{Estimate, Metric};
use atlas_plan::knob::Overrides;
use atlas_plan::scenario::{Parts, Scenario};

/// One workload on several targets.
#[derive(Debug, Clone)]
pub struct Study {
    /// When it was made, RFC 3339.
    pub made: String,
    /// The command that makes it again.
    pub command: String,
    /// The answers, in the order requested.
    pub entries: Vec<Entry>,
    /// Targets that have none, and why.
    pub failed: Vec<(String, String)>,
}

/// One answer and all that made it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name in tables: the target's, with the differences from other entries of the same target.
    pub name: String,
    /// The documents behind it.
    pub parts: Parts,
    /// The knobs changed.
    pub overrides: Overrides,
    /// The scenario.
    pub scenario: Scenario,
    /// The answer.
    pub estimate: Estimate,
}

impl Entry {
    /// Resolves and answers.
    ///
    /// # Errors
    /// Why the scenario cannot be resolved or its figures cannot be written down.
    pub fn of(name: String, parts: Parts, overrides: Overrides) -> Result<Entry, String> {
        let scenario = Scenario::resolve(&parts, &overrides).map_err(|error| error.to_string())?;
        let estimate = estimate(&scenario);
        estimate.finite()?;
        Ok(Entry { name, parts, overrides, scenario, estimate })
    }

    /// A metric's value; `None` if it does not apply.
    #[must_use]
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        metric.applies_to(&self.scenario).then(|| (metric.get)(&self.estimate, &self.scenario))
    }

    /// Whether the answer can be had: it fits, as far as the engine knows.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.estimate.detail.is_none_or(|detail| detail.verdict.fits())
    }
}

/// A piece of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A heading; level 1 is the title.
    Heading(u8, String),
    /// Prose.
    Text(String),
    /// Emphasized prose.
    Callout(String),
    /// Points.
    List(Vec<String>),
    /// A table.
    Table(Grid),
    /// Points over two axes.
    Plot(Plot),
    /// Bars, and how their values are written.
    Bars(Bars),
    /// Shares by row and column, shaded.
    Heat(Grid),
    /// A chart; text or a table next to it states what it shows.
    Picture(Drawing),
    /// Something to be typed.
    Code(String),
}

/// A table's cells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Grid {
    /// Names of the columns.
    pub head: Vec<(String, Align)>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// What it shows.
    pub text: String,
    /// The number behind it, by which a table is sorted and a heat map shaded.
    pub value: Option<f64>,
    /// The best of its row.
    pub best: bool,
}

impl Cell {
    /// Words.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// A figure.
    #[must_use]
    pub fn figure(text: String, value: f64) -> Cell {
        Cell { text, value: Some(value).filter(|value| value.is_finite()), best: false }
    }
}

/// The workload's name, for titles.
fn workload(study: &Study) -> Arc<str> {
    study.entries.first().map(|entry| Arc::clone(&entry.parts.workload.name)).unwrap_or_default()
}
