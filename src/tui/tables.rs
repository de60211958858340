//! Tables and lists in the order and choice the user asks for: a filter of words and conditions for each, and a column
//! to sort by.

use crate::order::Order;
use std::collections::HashMap;
use std::sync::Arc;

use fuzzy_matcher::FuzzyMatcher as _;
use fuzzy_matcher::skim::SkimMatcherV2;

use super::app::{Answer, App, Pane, Setup, View};
use super::line::Line;
use super::message::Effect;
use super::prompt::{Prompt, Purpose};
use super::update::note;
use crate::advice::Advice;
use crate::estimate::{Better, Metric};
use crate::knob::{KNOBS, Knob, Setting, Spec};
use crate::search::Condition;
use crate::spec::{Diagnostic, Severity, Target, Workload};

/// A table whose rows can be chosen among.
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
    /// The playbook.
    Advice,
    /// The complaints.
    Problems,
    /// The phases of the schedule.
    Schedule,
}

impl Table {
    /// Whether its rows have figures of their own that a condition can be about.
    fn has_conditions(self) -> bool {
        matches!(self, Table::Targets | Table::Workloads | Table::Knobs | Table::Compare)
    }

    /// What its rows are sorted by in turn.
    fn sorts(self) -> &'static [Sort] {
        match self {
            Table::Targets | Table::Workloads | Table::Advice => &[Sort::Natural, Sort::Name, Sort::Kind],
            Table::Knobs | Table::Results => &[Sort::Natural, Sort::Name, Sort::Value, Sort::Change],
            Table::Problems => &[Sort::Natural, Sort::Kind, Sort::Name, Sort::Value],
            // Columns are chosen by a cursor there.
            Table::Compare | Table::Schedule => &[Sort::Natural, Sort::Name],
        }
    }
}

/// What a filter asks of a row: every word must be found, every condition hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    text: String,
    words: Vec<String>,
    conditions: Vec<Condition>,
}

impl Filter {
    /// Reads a filter: words, and conditions as `--where` takes them: `h100 tpot<50ms fits`.
    ///
    /// # Errors
    /// A condition that cannot be meant, in words.
    pub fn parse(text: &str) -> Result<Filter, String> {
        let mut filter = Filter { text: text.trim().to_owned(), ..Filter::default() };
        // A condition is one word, however it is spaced.
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

    /// As it was typed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether every word is found in `text`, its letters in order.
    fn finds(&self, text: &str) -> bool {
        let matcher = SkimMatcherV2::default();
        self.words.iter().all(|word| matcher.fuzzy_match(text, word).is_some())
    }

    /// Whether every condition holds of an answer.
    fn holds(&self, answer: &Answer) -> bool {
        let (Some(scenario), Ok(estimate)) = (&answer.scenario, &answer.outcome) else {
            return self.conditions.is_empty();
        };
        // A figure that says nothing about a scenario is no small one.
        let says = |condition: &Condition| match condition {
            Condition::Figure(metric, ..) => metric.applies_to(scenario),
            Condition::Fits | Condition::Knob(..) => true,
        };
        self.conditions.iter().all(|condition| says(condition) && condition.holds(estimate, scenario))
    }
}

/// What a list is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// The files' order; of advice, the greatest gain first.
    #[default]
    Natural,
    /// By name.
    Name,
    /// By the second column: accelerators, mode, the figure that is moved; of complaints, how bad they are.
    Kind,
    /// By value, the largest first; of complaints, by what they say.
    Value,
    /// Knobs that are turned first; figures that changed most first.
    Change,
    /// Targets, by a figure of the workload at hand, best first; phases, by a column, largest first.
    Figure(&'static str),
    /// Phases, by a column, smallest first.
    Least(&'static str),
}

/// Filters and orders, and what they make of the lists.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    filters: HashMap<Table, Filter>,
    sorts: HashMap<Table, Sort>,
    /// Places of the targets to show, where they are not all in the files' order.
    targets: Option<Vec<usize>>,
    /// The same of the workloads.
    workloads: Option<Vec<usize>>,
    /// The figure that targets are sorted by, of each, in the files' order.
    figures: Vec<Option<f64>>,
    /// The knobs in the order of their pane, where that is not the registry's.
    knobs: Option<Vec<Knob>>,
}

impl Tables {
    /// The filter of a table, where it has one.
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

    /// The figure that a target is shown with, where the targets are sorted by one.
    #[must_use]
    pub fn figure_of(&self, index: usize) -> Option<f64> {
        self.figures.get(index).copied().flatten()
    }
}

/// The table that has the focus.
#[must_use]
pub fn here(app: &App) -> Option<Table> {
    Some(match (app.view, app.pane) {
        (View::Main | View::Help, Pane::Targets) => Table::Targets,
        (View::Main | View::Help, Pane::Workloads) => Table::Workloads,
        (View::Main | View::Help, Pane::Knobs) => Table::Knobs,
        (View::Main | View::Help, Pane::Results) => Table::Results,
        (View::Compare, _) => Table::Compare,
        (View::Advice, _) => Table::Advice,
        (View::Problems, _) => Table::Problems,
        (View::Schedule, _) => Table::Schedule,
        _ => return None,
    })
}

/// Begins to type a filter.
pub(super) fn open_filter(app: &mut App) {
    let Some(table) = here(app) else { return };
    let before = app.tables.filter(table).map(|filter| filter.text.clone()).unwrap_or_default();
    let line = Line::selected(before.clone());
    app.prompt = Some(Prompt { purpose: Purpose::Filter, line, before, error: None });
}

/// Filters the table that has the focus; an empty text shows all. Returns what is wrong with the text; the table stays as
/// it was then.
pub(super) fn set_filter(app: &mut App, text: &str) -> Option<String> {
    let table = here(app)?;
    match Filter::parse(text) {
        Ok(filter) if !filter.conditions.is_empty() && !table.has_conditions() => {
            return Some(
                "these rows are found by words; conditions are for targets, workloads and the comparison".to_owned(),
            );
        }
        Ok(filter) if filter.text.is_empty() => drop(app.tables.filters.remove(&table)),
        Ok(filter) => drop(app.tables.filters.insert(table, filter)),
        Err(error) => return Some(error),
    }
    (app.view_scroll, app.view_row) = (0, 0);
    arrange(app);
    app.recompute_columns();
    None
}

/// Shows all rows of the table that has the focus again. Returns whether some were hidden.
pub(super) fn clear_filter(app: &mut App) -> bool {
    let filtered = here(app).is_some_and(|table| app.tables.filters.contains_key(&table));
    if filtered {
        set_filter(app, "");
    }
    filtered
}

/// Sorts the list that has the focus by its next column.
pub(super) fn sort(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(table) = here(app) else { return };
    let now = app.tables.sort(table);
    let next = match (table, now) {
        (Table::Schedule, _) => by_column(app, now),
        (Table::Targets, Sort::Kind) => app.figure_here().map_or(Sort::Natural, |metric| Sort::Figure(metric.name)),
        _ => {
            let all = table.sorts();
            let at = all.iter().position(|sort| *sort == now);
            at.and_then(|at| all.get(at + 1)).copied().unwrap_or_default()
        }
    };
    app.tables.sorts.insert(table, next);
    arrange(app);
    note(app, format!("sorted {}", words(table, next)), effects);
}

/// By the column under the cursor, the largest first; then the smallest first; then as in the file.
fn by_column(app: &App, now: Sort) -> Sort {
    let Some(title) = super::view::schedule::column_here(app) else {
        return if now == Sort::Name { Sort::Natural } else { Sort::Name };
    };
    match now {
        Sort::Figure(name) if name == title => Sort::Least(title),
        Sort::Least(name) if name == title => Sort::Natural,
        _ => Sort::Figure(title),
    }
}

fn words(table: Table, sort: Sort) -> String {
    match (table, sort) {
        (Table::Advice, Sort::Natural) => "by gain".to_owned(),
        (Table::Knobs | Table::Results, Sort::Natural) => "by group".to_owned(),
        (_, Sort::Natural) => "as in the files".to_owned(),
        (Table::Problems, Sort::Name) => "by place".to_owned(),
        (_, Sort::Name) => "by name".to_owned(),
        (Table::Targets, Sort::Kind) => "by accelerators, most first".to_owned(),
        (Table::Workloads, Sort::Kind) => "by mode".to_owned(),
        (Table::Problems, Sort::Kind) => "by severity".to_owned(),
        (_, Sort::Kind) => "by the figure that is moved".to_owned(),
        (Table::Problems, Sort::Value) => "by what they say".to_owned(),
        (_, Sort::Value) => "by value, largest first".to_owned(),
        (Table::Knobs, Sort::Change) => "by what is turned".to_owned(),
        (_, Sort::Change) => "by change, largest first".to_owned(),
        (Table::Schedule, Sort::Figure(name)) => format!("by {name}, largest first"),
        (_, Sort::Figure(name)) => {
            format!("by {}, best first", Metric::named(name).map_or(name, |metric| metric.label))
        }
        (_, Sort::Least(name)) => format!("by {name}, smallest first"),
    }
}

/// A figure such that less is better, whatever it is; what cannot run comes last.
fn rank(metric: &Metric, answer: &Answer) -> (bool, f64) {
    let sign = if metric.better == Better::Higher { -1.0 } else { 1.0 };
    (!answer.fits(), answer.value(metric).map_or(f64::INFINITY, |value| sign * value))
}

/// Works out which targets and workloads are shown, and in which order. Called when a filter, an order, the files or the
/// scenario are others.
pub fn arrange(app: &mut App) {
    app.tables.targets = targets(app);
    app.tables.workloads = workloads(app);
    app.tables.knobs = knobs(app);
}

/// The knobs in another order than the registry's.
fn knobs(app: &App) -> Option<Vec<Knob>> {
    let sort = app.tables.sort(Table::Knobs);
    let mut all: Vec<&Spec> = KNOBS.iter().collect();
    let turned = |spec: &Spec| app.now.setup.overrides.contains_key(&spec.knob);
    match sort {
        Sort::Name => all.order_by_key(|spec| spec.name),
        Sort::Change => all.order_by_key(|spec| !turned(spec)),
        Sort::Value => {
            let scenario = app.answer.scenario.as_ref()?;
            let value = |spec: &Spec| match scenario.get(spec.knob) {
                Setting::Number(value) => (-value, String::new()),
                other => (f64::INFINITY, other.to_string()),
            };
            all.order_by(|a, b| {
                let (a, b) = (value(a), value(b));
                a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
            });
        }
        Sort::Natural | Sort::Kind | Sort::Figure(_) | Sort::Least(_) => return None,
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
        Sort::Figure(_) => all.iter().map(|target| on(app, target)).collect(),
        _ if conditional => all.iter().map(|target| on(app, target)).collect(),
        _ => Vec::new(),
    };
    let passes = |index: usize, target: &Target| {
        filter.is_none_or(|filter| {
            filter.finds(&target_text(target)) && answers.get(index).is_none_or(|answer| filter.holds(answer))
        })
    };
    let mut rows: Vec<usize> = (0..all.len()).filter(|i| all.get(*i).is_some_and(|t| passes(*i, t))).collect();
    let devices = |i: &usize| all.get(*i).map_or(0.0, |t| t.accelerators());
    let mut figures = Vec::new();
    match sort {
        Sort::Natural | Sort::Value | Sort::Change | Sort::Least(_) => {}
        Sort::Name => rows.order_by_key(|i| all.get(*i).map(|target| target.name.to_lowercase())),
        Sort::Kind => rows.order_by(|a, b| devices(b).total_cmp(&devices(a))),
        Sort::Figure(name) => {
            if let Some(metric) = Metric::named(name) {
                let key = |i: &usize| answers.get(*i).map_or((true, f64::INFINITY), |answer| rank(metric, answer));
                rows.order_by(|a, b| {
                    let (a, b) = (key(a), key(b));
                    a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
                });
                figures = answers.iter().map(|answer| answer.value(metric)).collect();
            }
        }
    }
    app.tables.figures = figures;
    Some(rows)
}

/// The scenario on the screen, on another target.
fn on(app: &App, target: &Target) -> Answer {
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
        filter.is_none_or(|filter| filter.finds(&text()) && (filter.conditions.is_empty() || filter.holds(&on())))
    };
    let mut rows: Vec<usize> = (0..all.len()).filter(|i| all.get(*i).is_some_and(|w| passes(w))).collect();
    match sort {
        Sort::Name => rows.order_by_key(|i| all.get(*i).map(|workload| workload.name.to_lowercase())),
        Sort::Kind => rows.order_by_key(|i| all.get(*i).map(|workload| workload.shape.mode.name())),
        _ => {}
    }
    Some(rows)
}

impl App {
    /// The targets as the list shows them, each with its place in the files.
    pub fn targets(&self) -> impl Iterator<Item = (usize, &Arc<Target>)> {
        let all = self.library.targets();
        let rows = self.tables.targets.as_ref();
        (0..rows.map_or(all.len(), Vec::len)).filter_map(move |row| {
            let index = rows.map_or(Some(row), |rows| rows.get(row).copied())?;
            Some((index, all.get(index)?))
        })
    }

    /// The workloads as the list shows them.
    pub fn workloads(&self) -> impl Iterator<Item = &Arc<Workload>> {
        let all = self.library.workloads();
        let rows = self.tables.workloads.as_ref();
        (0..rows.map_or(all.len(), Vec::len)).filter_map(move |row| {
            let index = rows.map_or(Some(row), |rows| rows.get(row).copied())?;
            all.get(index)
        })
    }

    /// The knobs that change anything in the scenario on the screen, in the order of their pane.
    pub fn knobs(&self) -> impl Iterator<Item = &'static Spec> {
        let order = self.tables.knobs.as_ref();
        let heeds = |spec: &&Spec| self.answer.scenario.as_ref().is_none_or(|scenario| scenario.heeds(spec.knob));
        let all = (0..KNOBS.len()).filter_map(move |place| match order {
            None => KNOBS.get(place),
            Some(order) => order.get(place).map(|knob| knob.spec()),
        });
        all.filter(heeds).filter(|spec| self.asks_for_knob(spec))
    }

    /// Whether the knobs stand in their groups.
    #[must_use]
    pub fn knobs_are_grouped(&self) -> bool {
        self.tables.knobs.is_none()
    }

    /// The knob under the cursor.
    #[must_use]
    pub fn knob_here(&self) -> Knob {
        let grouped = self.knobs_are_grouped();
        // Where a knob is not there, the one that follows it.
        let there = |spec: &&Spec| if grouped { spec.knob >= self.knob } else { spec.knob == self.knob };
        let first = || self.knobs().next().filter(|_| !grouped);
        self.knobs().find(there).or_else(first).map_or(self.knob, |spec| spec.knob)
    }

    /// The figures of the results, in the order of their pane.
    pub fn figures(&self) -> impl Iterator<Item = &'static Metric> {
        let grouped = self.figures_are_grouped();
        let natural = grouped.then(|| self.answer.metrics().filter(|metric| self.asks_for_figure(metric)));
        let sorted = (!grouped).then(|| self.sorted_figures());
        natural.into_iter().flatten().chain(sorted.into_iter().flatten())
    }

    /// Whether the figures stand in their sections.
    #[must_use]
    pub fn figures_are_grouped(&self) -> bool {
        self.tables.sort(Table::Results) == Sort::Natural
    }

    fn sorted_figures(&self) -> Vec<&'static Metric> {
        let mut all: Vec<&'static Metric> =
            self.answer.metrics().filter(|metric| self.asks_for_figure(metric)).collect();
        let last = f64::NEG_INFINITY;
        let value = |metric: &Metric| self.answer.value(metric).unwrap_or(last);
        let change = |metric: &Metric| match (self.answer.value(metric), self.baseline.value(metric)) {
            (Some(now), Some(before)) if before != 0.0 => (now / before - 1.0).abs(),
            _ => last,
        };
        match self.tables.sort(Table::Results) {
            Sort::Name => all.order_by_key(|metric| metric.label.to_lowercase()),
            Sort::Value => all.order_by(|a, b| value(b).total_cmp(&value(a))),
            Sort::Change => all.order_by(|a, b| change(b).total_cmp(&change(a))),
            _ => {}
        }
        all
    }

    /// The complaints as their table shows them.
    #[must_use]
    pub fn problems_shown(&self) -> Vec<&Diagnostic> {
        let mut all: Vec<&Diagnostic> = self.problems.iter().filter(|problem| self.asks_for_problem(problem)).collect();
        match self.tables.sort(Table::Problems) {
            Sort::Kind => all.order_by_key(|problem| problem.severity != Severity::Error),
            Sort::Name => all.order_by_key(|problem| (problem.file.to_string(), problem.at.line)),
            Sort::Value => all.order_by_key(|problem| problem.message.to_lowercase()),
            _ => {}
        }
        all
    }

    /// Whether a phase of that name is among those asked for.
    #[must_use]
    pub fn asks_for_phase(&self, name: &str) -> bool {
        self.tables.filter(Table::Schedule).is_none_or(|filter| filter.finds(name))
    }

    /// Whether a knob is among those asked for.
    #[must_use]
    pub fn asks_for_knob(&self, spec: &Spec) -> bool {
        self.tables.filter(Table::Knobs).is_none_or(|filter| {
            let turned = if self.now.setup.overrides.contains_key(&spec.knob) { "changed" } else { "" };
            let text = format!("{} {} {} {turned}", spec.name, spec.aliases.join(" "), spec.group.name());
            filter.finds(&text) && filter.holds(&self.answer)
        })
    }

    /// Whether a figure is among those asked for.
    #[must_use]
    pub fn asks_for_figure(&self, metric: &Metric) -> bool {
        self.tables
            .filter(Table::Results)
            .is_none_or(|filter| filter.finds(&format!("{} {} {}", metric.label, metric.name, metric.section.name())))
    }

    /// Whether a target is among the comparison's.
    #[must_use]
    pub fn asks_to_compare(&self, name: &str, answer: &Answer) -> bool {
        self.tables.filter(Table::Compare).is_none_or(|filter| {
            let text = answer.target.as_ref().map_or_else(|| name.to_owned(), |target| target_text(target));
            filter.finds(&text) && filter.holds(answer)
        })
    }

    /// How many targets the comparison has without its filter.
    #[must_use]
    pub fn columns_of(&self) -> usize {
        match self.now.marks.len() {
            0 | 1 => self.library.targets().len(),
            _ => self.library.targets().iter().filter(|target| self.now.marks.contains(&target.name)).count(),
        }
    }

    /// Whether a complaint is among those asked for.
    #[must_use]
    pub fn asks_for_problem(&self, problem: &Diagnostic) -> bool {
        self.tables.filter(Table::Problems).is_none_or(|filter| {
            filter.finds(&format!("{} {} {}", problem.severity.name(), problem.location(), problem.message))
        })
    }

    /// The playbook's advice as its table shows it.
    #[must_use]
    pub fn advice_shown(&self) -> Vec<&Advice> {
        let mut all: Vec<&Advice> = self.advice().iter().collect();
        if let Some(filter) = self.tables.filter(Table::Advice) {
            all.retain(|advice| filter.finds(&format!("{} {} {}", advice.rule.name, advice.text, advice.metric.label)));
        }
        match self.tables.sort(Table::Advice) {
            Sort::Name => all.order_by_key(|advice| advice.rule.name),
            Sort::Kind => all.order_by_key(|advice| advice.metric.label),
            _ => {}
        }
        all
    }

    /// A table's filter and how many rows it leaves of how many, for its title; nothing where it has none.
    #[must_use]
    pub fn filter_remark(&self, table: Table, shown: usize, of: usize) -> Option<String> {
        let filter = self.tables.filter(table)?;
        Some(format!("/{} {shown} of {of}", filter.text))
    }
}

#[cfg(test)]
mod tests;
