//! A line typed at the foot of the screen: a tab's name, a table's filter.

use super::app::App;
use super::line::Line;
use super::{scenarios, tables};

/// What is typed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The name of the tab on the screen.
    TabName,
    /// The filter of the table that has the focus.
    Filter,
}

/// A line being typed.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// What for.
    pub purpose: Purpose,
    /// What is typed.
    pub line: Line,
    /// What Esc puts back.
    pub before: String,
    /// Why what is typed says nothing.
    pub error: Option<String>,
}

impl Prompt {
    /// What stands before the line.
    #[must_use]
    pub fn lead(&self) -> &'static str {
        match self.purpose {
            Purpose::TabName => "name of this tab:",
            Purpose::Filter => "filter:",
        }
    }
}

/// Changes what is typed; a filter follows every key.
pub(super) fn typed(app: &mut App, change: impl FnOnce(&mut Line) -> bool) {
    let Some(prompt) = &mut app.prompt else { return };
    let before = prompt.line.text().to_owned();
    change(&mut prompt.line);
    let text = prompt.line.text().to_owned();
    if text != before && prompt.purpose == Purpose::Filter {
        let error = tables::set_filter(app, &text);
        if let Some(prompt) = &mut app.prompt {
            prompt.error = error;
        }
    }
}

/// Takes what is typed.
pub(super) fn accept(app: &mut App) {
    let Some(prompt) = app.prompt.take() else { return };
    match prompt.purpose {
        Purpose::TabName => scenarios::set_name(app, prompt.line.text()),
        // It holds already; what cannot be meant stays to be mended.
        Purpose::Filter if prompt.error.is_some() => app.prompt = Some(prompt),
        Purpose::Filter => tables::settle(app),
    }
}

/// Leaves things as they were.
pub(super) fn cancel(app: &mut App) {
    let Some(prompt) = app.prompt.take() else { return };
    if prompt.purpose == Purpose::Filter {
        tables::set_filter(app, &prompt.before);
    }
}
