//! Opening views, explaining the item under the cursor, and going back.

use crate::tui::app::{App, View};
use crate::tui::input::keymap::Mode;
use crate::tui::message::Effect;
use crate::tui::update::status::note;
use crate::tui::views::{self, frontier, optimum, race, sweep};
use atlas_plan::estimate::Metric;

/// The metric of the point under the cursor of a chart or search, if the point is the current scenario.
pub(in crate::tui) fn metric_under_cursor(app: &App, mode: Mode) -> Option<&'static Metric> {
    let (setup, metric) = match mode {
        Mode::View(View::Sweep) => {
            let curves = app.queries.sweep.answer()?;
            (sweep::reading(app, curves)?.0, curves.metric)
        }
        Mode::View(View::Frontier) => {
            let front = app.queries.frontier.answer()?;
            let (curve, point) = frontier::cursor(app, front);
            (front.curves.get(curve)?.points.get(point)?.0.clone(), front.up)
        }
        Mode::View(View::Optimum) => {
            let optimum::Row::Candidate(at) = optimum::row_under_cursor(app) else { return None };
            (optimum::current_result(app)?.candidates.get(at)?.0.clone(), app.queries.optimum.question()?.objective)
        }
        _ => return None,
    };
    (setup == app.now.setup).then_some(metric)
}

/// Explains the selected metric or headline of the results.
pub(in crate::tui) fn explain_results(app: &mut App, effects: &mut Vec<Effect>) {
    let above = app.headline().and_then(|line| views::results::headline(app, line));
    match above {
        None => show(app, View::Explain),
        Some((_, Some(metric))) => explain_metric(app, Some(metric), effects),
        Some((text, None)) => note(app, text, effects),
    }
}

/// Explains the metric of a cell, if it has an equation.
pub(in crate::tui) fn explain_metric(app: &mut App, metric: Option<&'static Metric>, effects: &mut Vec<Effect>) {
    match metric.filter(|metric| app.answer.metrics().any(|known| known == *metric)) {
        Some(metric) => {
            app.figure = metric;
            explain(app);
        }
        None => note(app, "this is an input without an equation", effects),
    }
}

/// Explains the metric under the cursor; Esc returns.
pub(in crate::tui) fn explain(app: &mut App) {
    open_from_here(app, View::Explain);
}

/// Maximum number of views to which Esc returns.
const MAX_VIEW_HISTORY: usize = 64;

/// Shows another view; Esc returns.
pub(in crate::tui) fn open_from_here(app: &mut App, view: View) {
    let mut back = std::mem::take(&mut app.back);
    if back.len() == MAX_VIEW_HISTORY {
        back.remove(0);
    }
    back.push((app.view, app.view_row));
    show(app, view);
    app.back = back;
}

/// Shows a view, or the overview if it is shown already.
pub(in crate::tui) fn show(app: &mut App, view: View) {
    app.view = if app.view == view { View::Main } else { view };
    app.subject = None;
    app.back.clear();
    (app.view_scroll, app.view_row) = (0, 0);
    app.toggled.clear();
    app.recompute_columns();
    if app.view == View::Problems {
        // The view shows the problems in full.
        app.status = None;
    }
    if app.view == View::Race {
        race::opened(app);
    }
    (app.view.spec().opened)(app);
    if app.view == View::Schedule {
        app.column = 1;
    }
    if app.view == View::Compare {
        app.column = app.columns.iter().position(|(name, _)| *name == app.now.setup.target).unwrap_or_default();
    }
}

/// Shows another view of the layout under the cursor of the race; Esc returns.
pub(in crate::tui) fn open_from_race(app: &mut App, view: View, effects: &mut Vec<Effect>) {
    if race::entry_under_cursor(app).and_then(race::Entry::setup).is_some_and(|setup| *setup != app.now.setup) {
        race::apply(app, effects);
    }
    if view == View::Explain {
        app.figure = race::objective(app);
    }
    open_from_here(app, view);
}
