//! Order and filters of the tables.

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
    /// The figures of the results.
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
    /// Whether its rows have figures that a condition can test.
    pub(in crate::tui) fn has_conditions(self) -> bool {
        matches!(self, Table::Targets | Table::Workloads | Table::Knobs | Table::Compare)
    }

    /// Its sort orders, in the order of the key.
    pub(in crate::tui) fn sorts(self) -> &'static [Sort] {
        match self {
            Table::Targets | Table::Workloads | Table::Advice => &[Sort::Natural, Sort::Name, Sort::Kind],
            Table::Knobs | Table::Results => &[Sort::Natural, Sort::Name, Sort::Value, Sort::Change],
            Table::Problems => &[Sort::Natural, Sort::Kind, Sort::Name, Sort::Value],
            // That table is sorted by the column under the cursor.
            Table::Compare | Table::Schedule => &[Sort::Natural, Sort::Name],
            // There the key shows figures over time; models are sorted by size.
            Table::History | Table::Fits => &[Sort::Natural],
        }
    }
}

/// A sort order.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Sort {
    /// File order; of advice, the greatest gain first.
    #[default]
    Natural,
    /// By name.
    Name,
    /// By the second column: accelerators, mode, the changed figure; of problems, severity.
    Kind,
    /// By value, the largest first; of problems, by message.
    Value,
    /// Changed knobs first; figures that changed most first.
    Change,
    /// Targets by a figure of the workload, best first.
    Figure(&'static Metric),
    /// Phases by a column.
    Column {
        /// Its title.
        title: &'static str,
        /// Whether the smallest comes first.
        ascending: bool,
    },
}

/// Filters and sort orders, and the resulting lists.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    pub(in crate::tui) filters: HashMap<Table, Filter>,
    pub(in crate::tui) sorts: HashMap<Table, Sort>,
    /// Indices of the targets to show, unless all are in file order.
    pub(in crate::tui) targets: Option<Vec<usize>>,
    /// The same of the workloads.
    pub(in crate::tui) workloads: Option<Vec<usize>>,
    /// The figure that targets are sorted by, of each, in the files' order.
    pub(in crate::tui) figures: Vec<Option<f64>>,
    /// The knobs in the order of their pane, if it is not the registry's.
    pub(in crate::tui) knobs: Option<Vec<Knob>>,
}

impl Tables {
    /// The filter of a table.
    #[must_use]
    pub fn filter(&self, table: Table) -> Option<&Filter> {
        self.filters.get(&table)
    }

    /// What a table is sorted by.
    #[must_use]
    pub fn sort(&self, table: Table) -> Sort {
        self.sorts.get(&table).copied().unwrap_or_default()
    }

    /// Sorts a table.
    pub fn set_sort(&mut self, table: Table, sort: Sort) {
        self.sorts.insert(table, sort);
    }

    /// The figure shown with a target, if the targets are sorted by one.
    #[must_use]
    pub fn figure_of(&self, index: usize) -> Option<f64> {
        self.figures.get(index).copied().flatten()
    }
}
