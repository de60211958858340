//! The rows of every table, filtered and sorted.

use std::sync::Arc;

use super::{Sort, Table, target_text};
use crate::tui::app::{Answer, App};
use atlas_config::library::Entry;
use atlas_config::{Target, Workload};
use atlas_core::sort;
use atlas_document::{Diagnostic, Severity};
use atlas_plan::advice::Advice;
use atlas_plan::estimate::Metric;
use atlas_plan::knob::{KNOBS, Knob, Spec};

impl App {
    /// Returns the targets in the order of the list, each with its index in the library.
    pub fn targets(&self) -> impl Iterator<Item = (usize, &Arc<Entry<Target>>)> {
        let all = self.library.target_list();
        let rows = self.tables.targets.as_ref();
        (0..rows.map_or(all.len(), Vec::len)).filter_map(move |row| {
            let index = rows.map_or(Some(row), |rows| rows.get(row).copied())?;
            Some((index, all.get(index)?))
        })
    }

    /// Returns the workloads in the order of the list.
    pub fn workloads(&self) -> impl Iterator<Item = &Arc<Entry<Workload>>> {
        let all = self.library.workload_list();
        let rows = self.tables.workloads.as_ref();
        (0..rows.map_or(all.len(), Vec::len)).filter_map(move |row| {
            let index = rows.map_or(Some(row), |rows| rows.get(row).copied())?;
            all.get(index)
        })
    }

    /// Returns the knobs that affect the current scenario, in the order of the pane.
    pub fn knobs(&self) -> impl Iterator<Item = &'static Spec> {
        let order = self.tables.knobs.as_ref();
        let uses = |spec: &&Spec| self.answer.scenario.as_ref().is_none_or(|scenario| scenario.uses(spec.knob));
        let all = (0..KNOBS.len()).filter_map(move |place| match order {
            None => KNOBS.get(place),
            Some(order) => order.get(place).map(|knob| knob.spec()),
        });
        all.filter(uses).filter(|spec| self.knob_matches(spec))
    }

    /// Whether the knobs are grouped, rather than sorted.
    #[must_use]
    pub fn knobs_are_grouped(&self) -> bool {
        self.tables.knobs.is_none()
    }

    /// The knob under the cursor.
    #[must_use]
    pub fn selected_knob(&self) -> Knob {
        let grouped = self.knobs_are_grouped();
        // If the knob is not in the list, the one after it.
        let there = |spec: &&Spec| if grouped { spec.knob >= self.knob } else { spec.knob == self.knob };
        let first = || self.knobs().next().filter(|_| !grouped);
        self.knobs().find(there).or_else(first).map_or(self.knob, |spec| spec.knob)
    }

    /// Returns the metrics of the results, in the order of the pane.
    pub fn figures(&self) -> impl Iterator<Item = &'static Metric> {
        let grouped = self.figures_are_grouped();
        let applies =
            |metric: &&'static Metric| self.answer.scenario.as_ref().is_none_or(|scenario| metric.applies_to(scenario));
        let ordered = Metric::by_importance(self.answer.mode()).filter(applies);
        let natural = grouped.then(|| ordered.filter(|metric| self.metric_matches(metric)));
        let sorted = (!grouped).then(|| self.sorted_figures());
        natural.into_iter().flatten().chain(sorted.into_iter().flatten())
    }

    /// Whether the metrics are grouped by section, rather than sorted.
    #[must_use]
    pub fn figures_are_grouped(&self) -> bool {
        self.tables.sort(Table::Results) == Sort::Natural
    }

    fn sorted_figures(&self) -> Vec<&'static Metric> {
        let mut all: Vec<&'static Metric> =
            self.answer.metrics().filter(|metric| self.metric_matches(metric)).collect();
        let last = f64::NEG_INFINITY;
        let value = |metric: &Metric| self.answer.value(metric).unwrap_or(last);
        let change = |metric: &Metric| match (self.answer.value(metric), self.baseline.value(metric)) {
            (Some(now), Some(before)) if before != 0.0 => (now / before - 1.0).abs(),
            _ => last,
        };
        match self.tables.sort(Table::Results) {
            Sort::Name => sort::by_key(&mut all, |metric| metric.label.to_lowercase()),
            Sort::Value => sort::by(&mut all, |a, b| value(b).total_cmp(&value(a))),
            Sort::Change => sort::by(&mut all, |a, b| change(b).total_cmp(&change(a))),
            _ => {}
        }
        all
    }

    /// Returns the diagnostics in the order of their table.
    #[must_use]
    pub fn problems_shown(&self) -> Vec<&Diagnostic> {
        let mut all: Vec<&Diagnostic> = self.problems.iter().filter(|problem| self.problem_matches(problem)).collect();
        match self.tables.sort(Table::Problems) {
            Sort::Kind => sort::by_key(&mut all, |problem| problem.severity != Severity::Error),
            Sort::Name => sort::by_key(&mut all, |problem| (problem.file.to_string(), problem.at.line)),
            Sort::Value => sort::by_key(&mut all, |problem| problem.message.to_lowercase()),
            _ => {}
        }
        all
    }

    /// Whether a phase with this name matches the filter.
    #[must_use]
    pub fn phase_matches(&self, name: &str) -> bool {
        self.tables.filter(Table::Schedule).is_none_or(|filter| filter.fuzzy_matches(name))
    }

    /// Whether a knob matches the filter.
    #[must_use]
    pub fn knob_matches(&self, spec: &Spec) -> bool {
        self.tables.filter(Table::Knobs).is_none_or(|filter| {
            let changed = if self.now.setup.overrides.contains_key(&spec.knob) { "changed" } else { "" };
            let text = format!("{} {} {} {changed}", spec.name, spec.aliases.join(" "), spec.group.name());
            filter.fuzzy_matches(&text) && filter.conditions_hold(&self.answer)
        })
    }

    /// Whether a metric matches the filter.
    #[must_use]
    pub fn metric_matches(&self, metric: &Metric) -> bool {
        self.tables.filter(Table::Results).is_none_or(|filter| {
            filter.fuzzy_matches(&format!("{} {} {}", metric.label, metric.name, metric.section.name()))
        })
    }

    /// Whether a target matches the filter of the comparison.
    #[must_use]
    pub fn comparison_matches(&self, name: &str, answer: &Answer) -> bool {
        self.tables.filter(Table::Compare).is_none_or(|filter| {
            let text = answer.target.as_ref().map_or_else(|| name.to_owned(), |target| target_text(target));
            filter.fuzzy_matches(&text) && filter.conditions_hold(answer)
        })
    }

    /// Number of targets of the comparison without its filter.
    #[must_use]
    pub fn columns_of(&self) -> usize {
        match self.now.marks.len() {
            0 | 1 => self.library.target_list().len(),
            _ => self.library.target_list().iter().filter(|target| self.now.marks.contains(&target.name)).count(),
        }
    }

    /// Whether a row with this text matches the filter of `table`.
    #[must_use]
    pub fn matches_filter(&self, table: Table, text: &str) -> bool {
        self.tables.filter(table).is_none_or(|filter| filter.fuzzy_matches(text))
    }

    /// Whether a diagnostic matches the filter.
    #[must_use]
    pub fn problem_matches(&self, problem: &Diagnostic) -> bool {
        self.tables.filter(Table::Problems).is_none_or(|filter| {
            filter.fuzzy_matches(&format!("{} {} {}", problem.severity.name(), problem.location(), problem.message))
        })
    }

    /// Returns the advice of the playbook in the order of its table.
    #[must_use]
    pub fn advice_shown(&self) -> Vec<&Advice> {
        let mut all: Vec<&Advice> = self.advice().iter().collect();
        if let Some(filter) = self.tables.filter(Table::Advice) {
            all.retain(|advice| {
                filter.fuzzy_matches(&format!("{} {} {}", advice.rule.name, advice.text, advice.metric.label))
            });
        }
        match self.tables.sort(Table::Advice) {
            Sort::Name => sort::by_key(&mut all, |advice| advice.rule.name),
            Sort::Kind => sort::by_key(&mut all, |advice| advice.metric.label),
            _ => {}
        }
        all
    }

    /// Formats the filter of a table and how many rows match it, for the title; `None` without a filter.
    #[must_use]
    pub fn filter_remark(&self, table: Table, shown: usize, of: usize) -> Option<String> {
        let filter = self.tables.filter(table)?;
        // The counts come first: if the text is cut off, the user still knows the filter.
        Some(format!("{shown} of {of} /{}", filter.text))
    }
}
