//! A study: one workload on several targets, from the recommendation down to the sources.
//!
//! * [`advice`] – improvements for each scenario
//! * [`content`] – the content as blocks, independent of the output format
//! * [`optimum`] – how the best configuration of each target was found
//! * [`markdown`], [`html`] – output formats

pub mod advice;
pub mod content;
pub mod html;
pub mod markdown;
pub mod optimum;

use std::sync::Arc;

use super::chart::drawing::Drawing;
use super::chart::{Bars, Plot};
use super::table::Align;
use atlas_plan::engine::estimate;
use atlas_plan::estimate::standing::available_value;
use atlas_plan::estimate::{Estimate, Metric};
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};

/// One workload on several targets.
#[derive(Debug, Clone)]
pub struct Study {
    /// Time of creation, RFC 3339.
    pub created_at: String,
    /// Command that reproduces the study.
    pub command: String,
    /// Entries with an estimate, in the order requested.
    pub entries: Vec<Entry>,
    /// Targets without an estimate, with the reason.
    pub failed: Vec<(String, String)>,
}

/// An estimate with everything that it is based on.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Name in tables: the target's, with the differences from other entries of the same target.
    pub name: String,
    /// Target and workload with their documents.
    pub parts: Parts,
    /// Changed knobs.
    pub overrides: Overrides,
    /// Resolved scenario.
    pub scenario: Scenario,
    /// Its estimate.
    pub estimate: Estimate,
    /// Knobs that a search of the best configuration changed, with their values.
    pub changes: Vec<(Knob, Setting)>,
}

impl Entry {
    /// Resolves and estimates a scenario.
    ///
    /// # Errors
    /// Returns why the scenario cannot be resolved, or which values of its estimate are not finite.
    pub fn of(name: String, parts: Parts, overrides: Overrides) -> Result<Entry, String> {
        let scenario = Scenario::resolve(&parts, &overrides).map_err(|error| error.to_string())?;
        let estimate = estimate(&scenario);
        estimate.finite()?;
        Ok(Entry { name, parts, overrides, scenario, estimate, changes: Vec::new() })
    }

    /// Value of a metric; `None` if it does not apply, or the scenario cannot run.
    #[must_use]
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        available_value(metric, &self.scenario, &self.estimate)
    }

    /// Whether the scenario fits. Engines that do not check this count as fitting.
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
    /// A list of items.
    List(Vec<String>),
    /// A table.
    Table(Grid),
    /// Points over two axes.
    Plot(Plot),
    /// Bars.
    Bars(Bars),
    /// Table of values shaded by magnitude.
    Heat(Grid),
    /// A chart whose values are given in an adjacent text or table.
    Picture(Drawing),
    /// A command or code block.
    Code(String),
}

/// Table content.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Grid {
    /// Names and alignment of the columns.
    pub head: Vec<(String, Align)>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// Displayed text.
    pub text: String,
    /// Number that the text represents, by which tables are sorted and heat maps shaded.
    pub value: Option<f64>,
    /// Whether it is the best of its row.
    pub best: bool,
}

impl Cell {
    /// A cell with text only.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// A cell with a number and its displayed text.
    #[must_use]
    pub fn number(text: String, value: f64) -> Cell {
        Cell { text, value: Some(value).filter(|value| value.is_finite()), best: false }
    }
}

/// Name of the workload, for titles.
fn workload(study: &Study) -> Arc<str> {
    study.entries.first().map(|entry| Arc::clone(&entry.parts.workload.name)).unwrap_or_default()
}
