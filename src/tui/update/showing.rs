//! Opening views, explaining the item under the cursor, and going back.

use crate::tui::app::{App, View};
use crate::tui::message::Effect;
use crate::tui::update::status::note;
use crate::tui::views::results;
use atlas_plan::estimate::Metric;

/// Explains the selected metric or headline of the results.
pub(in crate::tui) fn explain_results(app: &mut App, effects: &mut Vec<Effect>) {
    let above = app.headline().and_then(|line| results::headline(app, line));
    match above {
        None => show(app, View::Explain, effects),
        Some((_, Some(metric))) => explain_metric(app, Some(metric), effects),
        Some((text, None)) => note(app, text, effects),
    }
}

/// Explains the metric of a cell, if it has an equation.
pub(in crate::tui) fn explain_metric(app: &mut App, metric: Option<&'static Metric>, effects: &mut Vec<Effect>) {
    match metric.filter(|metric| app.answer.metrics().any(|known| known == *metric)) {
        Some(metric) => {
            app.figure = metric;
            explain(app, effects);
        }
        None => note(app, "this is an input without an equation", effects),
    }
}

/// Explains the metric under the cursor; Esc returns.
pub(in crate::tui) fn explain(app: &mut App, effects: &mut Vec<Effect>) {
    open_from_here(app, View::Explain, effects);
}

/// Maximum number of views to which Esc returns.
const MAX_VIEW_HISTORY: usize = 64;

/// Shows another view; Esc returns.
pub(in crate::tui) fn open_from_here(app: &mut App, view: View, effects: &mut Vec<Effect>) {
    let mut back = std::mem::take(&mut app.back);
    if back.len() == MAX_VIEW_HISTORY {
        back.remove(0);
    }
    back.push((app.view, app.view_row));
    show(app, view, effects);
    app.back = back;
}

/// Shows a view, or the overview if it is shown already.
pub(in crate::tui) fn show(app: &mut App, view: View, effects: &mut Vec<Effect>) {
    app.view = if app.view == view { View::Main } else { view };
    app.subject = None;
    app.back.clear();
    (app.view_scroll, app.view_row) = (0, 0);
    app.toggled.clear();
    app.recompute_columns();
    (app.view.spec().opened)(app, effects);
}
