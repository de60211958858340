//! The prompt at the bottom of the screen, for the name of a tab or point, the filter of a table, or the metrics of the
//! comparison.

pub mod state;

pub use state::{Prompt, Purpose};

use crate::tui::app::App;
use crate::tui::tables;
use crate::tui::views::{comparison, edits, scenarios};
use crate::tui::widgets::line::Line;

/// Changes the text. Filters and metrics are applied after every key press.
pub(in crate::tui) fn typed(app: &mut App, change: impl FnOnce(&mut Line) -> bool) {
    let Some(prompt) = &mut app.prompt else { return };
    let before = prompt.line.text().to_owned();
    change(&mut prompt.line);
    let text = prompt.line.text().to_owned();
    if text == before {
        return;
    }
    let error = match prompt.purpose {
        Purpose::TabName | Purpose::PointName => None,
        Purpose::Filter => tables::set_filter(app, &text),
        Purpose::Metrics => comparison::choose(app, &text),
    };
    if let Some(prompt) = &mut app.prompt {
        prompt.error = error;
    }
}

/// Accepts the text.
pub(in crate::tui) fn accept(app: &mut App) {
    let Some(prompt) = app.prompt.take() else { return };
    match prompt.purpose {
        Purpose::TabName => scenarios::set_name(app, prompt.line.text()),
        Purpose::PointName => edits::set_name(app, prompt.line.text()),
        // Already applied while typing. An invalid text stays, so that it can be corrected.
        Purpose::Filter | Purpose::Metrics if prompt.error.is_some() => app.prompt = Some(prompt),
        Purpose::Filter => tables::clamp_cursor(app),
        Purpose::Metrics => {}
    }
}

/// Restores the previous state.
pub(in crate::tui) fn cancel(app: &mut App) {
    let Some(prompt) = app.prompt.take() else { return };
    match prompt.purpose {
        Purpose::TabName | Purpose::PointName => {}
        Purpose::Filter => drop(tables::set_filter(app, &prompt.before)),
        Purpose::Metrics => drop(comparison::choose(app, &prompt.before)),
    }
}
