//! Sort orders and filters of the tables.

use super::filter::Filter;
use atlas_plan::estimate::Metric;
use atlas_plan::knob::Knob;
use std::collections::HashMap;

/// A table that can be filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// The list of targets.
    Targets,
    /// The list of workloads.
    Workloads,
    /// The knobs.
    Knobs,
    /// The metrics of the results.
    Results,
    /// The comparison's targets.
    Compare,
    /// Advice.
    Advice,
    /// Problems in files.
    Problems,
    /// The phases of the schedule.
    Schedule,
    /// The entries of the history.
    History,
    /// The models of the catalog.
    Fits,
}

impl Table {
    /// Whether a condition can be evaluated for its rows.
    pub(in crate::tui) fn has_conditions(self) -> bool {
        matches!(self, Table::Targets | Table::Workloads | Table::Knobs | Table::Compare)
    }

    /// Its sort orders, in the order in which the key cycles through them.
    pub(in crate::tui) fn sorts(self) -> &'static [Sort] {
        match self {
            Table::Targets | Table::Workloads | Table::Advice => &[Sort::Natural, Sort::Name, Sort::Kind],
            Table::Knobs | Table::Results => &[Sort::Natural, Sort::Name, Sort::Value, Sort::Change],
            Table::Problems => &[Sort::Natural, Sort::Kind, Sort::Name, Sort::Value],
            // These tables are also sorted by the column under the cursor.
            Table::Compare | Table::Schedule => &[Sort::Natural, Sort::Name],
            // In the history the key shows a metric over time; models are sorted by size.
            Table::History | Table::Fits => &[Sort::Natural],
        }
    }
}

/// A sort order.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Sort {
    /// File order; for advice, largest gain first.
    #[default]
    Natural,
    /// By name.
    Name,
    /// By the second column: accelerators, mode, or the changed metric; for diagnostics, by severity.
    Kind,
    /// By value, largest first; for diagnostics, by message.
    Value,
    /// Changed knobs first; metrics by relative change, largest first.
    Change,
    /// Targets by a metric of the workload, best first.
    Metric(&'static Metric),
    /// Phases by a column.
    Column {
        /// Its title.
        title: &'static str,
        /// Whether the smallest value comes first.
        ascending: bool,
    },
}

/// Filters and sort orders, and the resulting lists.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    pub(in crate::tui) filters: HashMap<Table, Filter>,
    pub(in crate::tui) sorts: HashMap<Table, Sort>,
    /// Indices of the targets to show; `None` for all in file order.
    pub(in crate::tui) targets: Option<Vec<usize>>,
    /// Indices of the workloads to show; `None` for all in file order.
    pub(in crate::tui) workloads: Option<Vec<usize>>,
    /// Value of the metric that targets are sorted by, for each target in file order.
    pub(in crate::tui) figures: Vec<Option<f64>>,
    /// The knobs in the order of their pane; `None` for the order of the registry.
    pub(in crate::tui) knobs: Option<Vec<Knob>>,
}

impl Tables {
    /// Returns the filter of a table.
    #[must_use]
    pub fn filter(&self, table: Table) -> Option<&Filter> {
        self.filters.get(&table)
    }

    /// Returns the sort order of a table.
    #[must_use]
    pub fn sort(&self, table: Table) -> Sort {
        self.sorts.get(&table).copied().unwrap_or_default()
    }

    /// Sets the sort order of a table.
    pub fn set_sort(&mut self, table: Table, sort: Sort) {
        self.sorts.insert(table, sort);
    }

    /// Returns the value shown next to a target, if the targets are sorted by a metric.
    #[must_use]
    pub fn figure_of(&self, index: usize) -> Option<f64> {
        self.figures.get(index).copied().flatten()
    }
}
