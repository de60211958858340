//! Filters and sort orders of tables and lists: words and conditions, and a column
//! to sort by.

pub mod state;

mod filter;
mod shown;

pub use state::{Sort, Table, Tables};

use std::sync::Arc;

pub use filter::Filter;

use super::app::{Answer, App, Setup};
use super::message::Effect;
use crate::tui::dialogs::prompt::state::{Prompt, Purpose};
use crate::tui::update::status::note;
use crate::tui::widgets::line::Line;
use atlas_config::{Target, Workload};
use atlas_core::sort;
use atlas_plan::estimate::Metric;
use atlas_plan::knob::{KNOBS, Knob, Setting, Spec};

/// The table that has the focus.
#[must_use]
pub fn focused_table(app: &App) -> Option<Table> {
    (app.view.spec().table)(app)
}

/// Opens the prompt for a filter.
pub(super) fn open_filter(app: &mut App) {
    let Some(table) = focused_table(app) else { return };
    let before = app.tables.filter(table).map(|filter| filter.text.clone()).unwrap_or_default();
    let line = Line::selected(before.clone());
    app.prompt = Some(Prompt { purpose: Purpose::Filter, line, before, error: None });
}

/// Filters the focused table; an empty text shows all. Returns an error for an invalid text and leaves the table as
/// it was.
pub(super) fn set_filter(app: &mut App, text: &str) -> Option<String> {
    let table = focused_table(app)?;
    match Filter::parse(text) {
        Ok(filter) if !filter.conditions.is_empty() && !table.has_conditions() => {
            return Some(
                "filter these rows by words; conditions work only for targets, workloads and the comparison".to_owned(),
            );
        }
        Ok(filter) if filter.text.is_empty() => drop(app.tables.filters.remove(&table)),
        Ok(filter) => drop(app.tables.filters.insert(table, filter)),
        Err(error) => return Some(error),
    }
    (app.view_scroll, app.view_row) = (0, 0);
    app.arrange_tables();
    app.recompute_columns();
    None
}

/// Moves the cursor to a visible row if the filter hides its row.
pub(super) fn clamp_cursor(app: &mut App) {
    match focused_table(app) {
        Some(Table::Targets) if app.target_row().is_none() => {
            let first = app.targets().next().map(|(_, target)| Arc::clone(&target.name));
            first.into_iter().for_each(|name| crate::tui::update::applying::select_target(app, name));
        }
        Some(Table::Workloads) if app.workload_row().is_none() => {
            let first = app.workloads().next().map(|workload| Arc::clone(&workload.name));
            first.into_iter().for_each(|name| crate::tui::update::applying::select_workload(app, name));
        }
        _ => {}
    }
}

/// Clears the filter of the focused table. Returns whether there was one.
pub(super) fn clear_filter(app: &mut App) -> bool {
    let filtered = focused_table(app).is_some_and(|table| app.tables.filters.contains_key(&table));
    if filtered {
        set_filter(app, "");
    }
    filtered
}

/// Sorts the focused list by its next column.
pub(super) fn sort(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(table) = focused_table(app) else { return };
    let now = app.tables.sort(table);
    let next = match (table, now) {
        (Table::Targets, Sort::Kind) => app.selected_metric().map_or(Sort::Natural, Sort::Metric),
        _ => {
            let all = table.sorts();
            let at = all.iter().position(|sort| *sort == now);
            at.and_then(|at| all.get(at + 1)).copied().unwrap_or_default()
        }
    };
    sort_by(app, table, next, effects);
}

/// Sorts a table.
pub(super) fn sort_by(app: &mut App, table: Table, sort: Sort, effects: &mut Vec<Effect>) {
    app.tables.sorts.insert(table, sort);
    app.arrange_tables();
    note(app, format!("sorted {}", describe_sort(table, sort)), effects);
}

fn describe_sort(table: Table, sort: Sort) -> String {
    match (table, sort) {
        (Table::Advice, Sort::Natural) => "by gain".to_owned(),
        (Table::Knobs | Table::Results, Sort::Natural) => "by group".to_owned(),
        (_, Sort::Natural) => "file order".to_owned(),
        (Table::Problems, Sort::Name) => "by file and line".to_owned(),
        (_, Sort::Name) => "by name".to_owned(),
        (Table::Targets, Sort::Kind) => "by number of accelerators, largest first".to_owned(),
        (Table::Workloads, Sort::Kind) => "by mode".to_owned(),
        (Table::Problems, Sort::Kind) => "by severity".to_owned(),
        (_, Sort::Kind) => "by affected metric".to_owned(),
        (Table::Problems, Sort::Value) => "by message".to_owned(),
        (_, Sort::Value) => "by value, largest first".to_owned(),
        (Table::Knobs, Sort::Change) => "changed first".to_owned(),
        (_, Sort::Change) => "by change, largest first".to_owned(),
        (_, Sort::Metric(metric)) => format!("by {}, best first", metric.label),
        (_, Sort::Column { title, ascending: false }) => format!("by {title}, largest first"),
        (_, Sort::Column { title, ascending: true }) => format!("by {title}, smallest first"),
    }
}

/// The value of a metric as a sort key: smaller is better, and scenarios that cannot run come last.
fn rank(metric: &Metric, answer: &Answer) -> (bool, f64) {
    (!answer.fits(), answer.value(metric).map_or(f64::INFINITY, |value| metric.better.sort_key(value)))
}

impl App {
    /// Computes which targets and workloads are shown, and in which order. Call it when a filter, a sort order, the
    /// files or the scenario change.
    pub(super) fn arrange_tables(&mut self) {
        self.tables.targets = targets(self);
        self.tables.workloads = workloads(self);
        self.tables.knobs = knobs(self);
    }
}

/// The knobs in their sort order, if it is not the registry's.
fn knobs(app: &App) -> Option<Vec<Knob>> {
    let sort = app.tables.sort(Table::Knobs);
    let mut all: Vec<&Spec> = KNOBS.iter().collect();
    let changed = |spec: &Spec| app.now.setup.overrides.contains_key(&spec.knob);
    match sort {
        Sort::Name => sort::by_key(&mut all, |spec| spec.name),
        Sort::Change => sort::by_key(&mut all, |spec| !changed(spec)),
        Sort::Value => {
            let scenario = app.answer.scenario.as_ref()?;
            let value = |spec: &Spec| match scenario.get(spec.knob) {
                Setting::Number(value) => (-value, String::new()),
                other => (f64::INFINITY, other.to_string()),
            };
            sort::by(&mut all, |a, b| {
                let (a, b) = (value(a), value(b));
                a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
            });
        }
        Sort::Natural | Sort::Kind | Sort::Metric(_) | Sort::Column { .. } => return None,
    }
    Some(all.into_iter().map(|spec| spec.knob).collect())
}

fn targets(app: &mut App) -> Option<Vec<usize>> {
    app.tables.figures.clear();
    let filter = app.tables.filter(Table::Targets);
    let sort = app.tables.sort(Table::Targets);
    if filter.is_none() && sort == Sort::Natural {
        return None;
    }
    let all = app.library.targets();
    let conditional = filter.is_some_and(|filter| !filter.conditions.is_empty());
    let answers: Vec<Answer> = match sort {
        Sort::Metric(_) => all.iter().map(|target| answer_on_target(app, target)).collect(),
        _ if conditional => all.iter().map(|target| answer_on_target(app, target)).collect(),
        _ => Vec::new(),
    };
    // Prefer literal matches in names and vendors; match scattered letters only if nothing matches literally.
    let short = |target: &Target| format!("{} {}", target.name, target.vendor);
    let literal = filter.is_some_and(|filter| all.iter().any(|target| filter.contains_words(&short(target))));
    let passes = |index: usize, target: &Target| {
        filter.is_none_or(|filter| {
            let found = if literal {
                filter.contains_words(&short(target))
            } else {
                filter.fuzzy_matches(&target_text(target))
            };
            found && answers.get(index).is_none_or(|answer| filter.conditions_hold(answer))
        })
    };
    let mut rows: Vec<usize> = (0..all.len()).filter(|i| all.get(*i).is_some_and(|t| passes(*i, t))).collect();
    let devices = |i: &usize| all.get(*i).map_or(0.0, |t| t.accelerators());
    let mut figures = Vec::new();
    match sort {
        Sort::Natural | Sort::Value | Sort::Change | Sort::Column { .. } => {}
        Sort::Name => sort::by_key(&mut rows, |i| all.get(*i).map(|target| target.name.to_lowercase())),
        Sort::Kind => sort::by(&mut rows, |a, b| devices(b).total_cmp(&devices(a))),
        Sort::Metric(metric) => {
            let key = |i: &usize| answers.get(*i).map_or((true, f64::INFINITY), |answer| rank(metric, answer));
            sort::by(&mut rows, |a, b| {
                let (a, b) = (key(a), key(b));
                a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
            });
            figures = answers.iter().map(|answer| answer.value(metric)).collect();
        }
    }
    app.tables.figures = figures;
    Some(rows)
}

/// The current scenario on another target.
fn answer_on_target(app: &App, target: &Target) -> Answer {
    app.answered(&Setup { target: Arc::clone(&target.name), ..app.now.setup.clone() })
}

fn target_text(target: &Target) -> String {
    let accelerator = target.accelerator.as_deref().unwrap_or_default();
    format!("{} {} {accelerator}", target.name, target.vendor)
}

fn workloads(app: &App) -> Option<Vec<usize>> {
    let filter = app.tables.filter(Table::Workloads);
    let sort = app.tables.sort(Table::Workloads);
    if filter.is_none() && sort == Sort::Natural {
        return None;
    }
    let all = app.library.workloads();
    let passes = |workload: &Workload| {
        let text = || {
            let model = workload.model.as_deref().unwrap_or_default();
            format!("{} {model} {}", workload.name, workload.shape.mode.name())
        };
        let on = || app.answered(&Setup { workload: Arc::clone(&workload.name), ..app.now.setup.clone() });
        filter.is_none_or(|filter| {
            filter.fuzzy_matches(&text()) && (filter.conditions.is_empty() || filter.conditions_hold(&on()))
        })
    };
    let mut rows: Vec<usize> = (0..all.len()).filter(|i| all.get(*i).is_some_and(|w| passes(w))).collect();
    match sort {
        Sort::Name => sort::by_key(&mut rows, |i| all.get(*i).map(|workload| workload.name.to_lowercase())),
        Sort::Kind => sort::by_key(&mut rows, |i| all.get(*i).map(|workload| workload.shape.mode.name())),
        _ => {}
    }
    Some(rows)
}

#[cfg(test)]
mod tests;
