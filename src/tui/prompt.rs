//! A line typed at the foot of the screen: a tab's name, a table's filter, the metrics of the comparison.

pub mod state;

pub use state::{Prompt, Purpose};

use super::app::App;
use super::line::Line;
use super::{comparison, history, scenarios, tables};

/// Changes what is typed; a filter and the metrics follow every key.
pub(super) fn typed(app: &mut App, change: impl FnOnce(&mut Line) -> bool) {
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
pub(super) fn accept(app: &mut App) {
    let Some(prompt) = app.prompt.take() else { return };
    match prompt.purpose {
        Purpose::TabName => scenarios::set_name(app, prompt.line.text()),
        Purpose::PointName => history::set_name(app, prompt.line.text()),
        // It is applied already; an invalid text stays to be corrected.
        Purpose::Filter | Purpose::Metrics if prompt.error.is_some() => app.prompt = Some(prompt),
        Purpose::Filter => tables::settle(app),
        Purpose::Metrics => {}
    }
}

/// Restores the previous state.
pub(super) fn cancel(app: &mut App) {
    let Some(prompt) = app.prompt.take() else { return };
    match prompt.purpose {
        Purpose::TabName | Purpose::PointName => {}
        Purpose::Filter => drop(tables::set_filter(app, &prompt.before)),
        Purpose::Metrics => drop(comparison::choose(app, &prompt.before)),
    }
}
