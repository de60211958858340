//! The comparison: its targets and metrics, the reference target, and the targets that charts
//! show.

pub(in crate::tui) mod act;
pub(in crate::tui) mod export;
pub mod state;
pub mod view;

pub use state::Chosen;

use std::sync::Arc;

use super::{Spec, Tab};
use crate::tui::app::{Answer, App, Setup, View};
use crate::tui::dialogs::prompt::state::{Prompt, Purpose};
use crate::tui::input::keymap::{Action, Keys, SharedKeys, bind};
use crate::tui::message::Effect;
use crate::tui::tables::state::{Sort, Table};
use crate::tui::update::status::note;
use crate::tui::widgets::line::Line;
use atlas_config::Target;
use atlas_core::sort;
use atlas_plan::estimate::Metric;
use atlas_plan::search::metric;

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Compare",
    tab: Tab { place: 10, name: "Compare", short: "Comp" },
    synonyms: "compare table side by side",
    opening: Some(bind(
        &["C", "vc"],
        Action::Show(View::Compare),
        "compare targets with the same knobs",
        Some("compare"),
    )),
    is_in_footers: true,
    keys: &[Keys::Own(&[
        bind(&["→", "l"], Action::Focus(1), "next column", Some("column")),
        bind(&["←", "h"], Action::Focus(-1), "previous column", None),
        bind(&["Enter"], Action::Accept, "select this target and explain the metric", Some("explain")),
        bind(&["o"], Action::Sort, "sort by this metric, or in file order", Some("order")),
        bind(&["="], Action::ChooseMetrics, "choose the metrics and their order: tpot ttft mfu", Some("metrics")),
        bind(&["Backspace", "Delete"], Action::HideMetric, "hide this metric", None),
        bind(&["<"], Action::ShiftMetric(-1), "move this metric toward the start", None),
        bind(&[">"], Action::ShiftMetric(1), "move this metric toward the end", None),
        bind(&["O"], Action::SortByName, "toggle sorting by name", None),
        bind(&["Space", "m"], Action::Mark, "mark or unmark this target", None),
        bind(&["M"], Action::UnmarkAll, "unmark all targets", None),
    ])],
    shared_keys: &[SharedKeys::Filter],
    table: |_| Some(Table::Compare),
    rows: view::rows,
    cursor_lines: |app| Some((view::cursor_line(app), view::cursor_line(app))),
    heading: |_| view::HEADING,
    draw: view::compare,
    info: view::info,
    document: export::document,
    item: Some(|app| {
        let metric = view::metrics(app).nth(view::metric_index(app))?;
        app.columns.get(app.column)?.1.label_and_value(metric)
    }),
    copied_table: Some(|app| Some(("the comparison".to_owned(), export::text(app)))),
    opened: |app, _| {
        app.column = app.columns.iter().position(|(name, _)| *name == app.now.setup.target).unwrap_or_default();
    },
    works: |app, action| !matches!(action, Action::Accept | Action::Sort | Action::Focus(_)) || !app.columns.is_empty(),
    move_cursor: act::move_cursor,
    accept: act::accept,
    update: act::update,
    click: act::click,
    ..Spec::DEFAULT
};

/// Hides the metric under the cursor.
pub(in crate::tui) fn hide(app: &mut App, effects: &mut Vec<Effect>) {
    let mut shown: Vec<&'static Metric> = view::metrics(app).collect();
    let at = view::metric_index(app);
    if shown.len() < 2 {
        return note(app, "the last metric cannot be hidden; = chooses metrics", effects);
    }
    let hidden = shown.remove(at);
    let next = shown.get(at).or(shown.last());
    app.figure = next.copied().unwrap_or(app.figure);
    app.chosen.set(app.answer.mode(), Some(shown));
    note(app, format!("hid {}; = chooses metrics (an empty list shows all)", hidden.label), effects);
}

/// Moves the metric under the cursor by `by` positions.
pub(in crate::tui) fn shift(app: &mut App, by: i32) {
    let mut shown: Vec<&'static Metric> = view::metrics(app).collect();
    let at = view::metric_index(app);
    let to = at.saturating_add_signed(by as isize).min(shown.len().saturating_sub(1));
    if at < shown.len() && at != to {
        let metric = shown.remove(at);
        shown.insert(to, metric);
        app.figure = metric;
        app.chosen.set(app.answer.mode(), Some(shown));
    }
}

/// Opens the prompt for the metrics and their order.
pub(in crate::tui) fn open(app: &mut App) {
    let names: Vec<&str> = view::metrics(app).map(|metric| metric.name).collect();
    let before = if app.chosen.of(app.answer.mode()).is_some() { names.join(" ") } else { String::new() };
    let line = Line::selected(names.join(" "));
    app.prompt = Some(Prompt { purpose: Purpose::Metrics, line, before, error: None });
}

/// Shows the metrics that the text lists, or the default if it is empty. Returns an error message if a name is unknown.
pub(in crate::tui) fn choose(app: &mut App, text: &str) -> Option<String> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    let mut chosen: Vec<&'static Metric> = Vec::new();
    for word in words {
        let Some(metric) = metric::named(word) else {
            return Some(metric::unknown(word));
        };
        if !chosen.contains(&metric) {
            chosen.push(metric);
        }
    }
    app.chosen.set(app.answer.mode(), (!chosen.is_empty()).then_some(chosen));
    let first = view::metrics(app).next();
    (app.view_scroll, app.figure) = (0, first.unwrap_or(app.figure));
    None
}

impl App {
    /// Computes the comparison if it is shown.
    pub fn recompute_columns(&mut self) {
        if self.view != View::Compare {
            self.columns.clear();
            return;
        }
        let marked = |target: &&Arc<Target>| self.now.marks.len() < 2 || self.now.marks.contains(&target.name);
        let columns = self.library.targets().iter().filter(marked).map(|target| {
            let setup = Setup { target: Arc::clone(&target.name), ..self.now.setup.clone() };
            (Arc::clone(&target.name), self.answered(&setup))
        });
        self.columns = columns.filter(|(name, answer)| self.comparison_matches(name, answer)).collect();
        self.sort_columns();
        self.column = self.column.min(self.columns.len().saturating_sub(1));
    }

    /// Sorts the columns of the comparison: the best of the chosen metric first, columns without a value last.
    fn sort_columns(&mut self) {
        if self.tables.sort(Table::Compare) == Sort::Name {
            sort::by_key(&mut self.columns, |(name, _)| name.to_lowercase());
            return;
        }
        let Some(metric) = self.order else { return };
        let key = |answer: &Answer| answer.value(metric).map_or(f64::INFINITY, |value| metric.better.sort_key(value));
        // A scenario that does not fit sorts last, because it cannot reach its estimated value.
        sort::by(&mut self.columns, |(_, a), (_, b)| b.fits().cmp(&a.fits()).then(key(a).total_cmp(&key(b))));
    }

    /// The reference of the comparison: the column of the baseline's target if there is one, else that of the selected
    /// target, else the first.
    #[must_use]
    pub fn reference_column(&self) -> usize {
        let of = |name: &Arc<str>| self.columns.iter().position(|(column, _)| column == name);
        let baseline = self.reference().and_then(|setup| of(&setup.target));
        baseline.or_else(|| of(&self.now.setup.target)).unwrap_or_default()
    }

    /// The targets that charts show: the selected one, then the marked ones.
    #[must_use]
    pub fn contenders(&self) -> Vec<Arc<str>> {
        let own = &self.now.setup.target;
        let marked = self.now.marks.iter().filter(|name| *name != own);
        std::iter::once(own).chain(marked).cloned().collect()
    }
}
