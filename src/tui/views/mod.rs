//! Views: one folder each, with its state, its actions and its drawing.
//!
//! The folder of a view has a `Spec` of its functions; `demo::views` lists the views. Some folders have no view of their
//! own but a part of the overview or a dialog: `assistant`, `edits`, `idle`, `outlook`, `results` and `scenarios`.
//! `layout` computes the rectangles of the screen.

pub mod advice;
pub mod alternatives;
pub mod assistant;
pub mod breakdown;
pub mod comparison;
pub mod diff;
pub mod edits;
pub mod explain;
pub mod fits;
pub mod formats;
pub mod frontier;
pub mod history;
pub mod idle;
mod keys;
pub mod launch;
pub mod layout;
pub mod measurements;
pub mod optimum;
pub mod outlook;
pub mod overview;
mod points;
pub mod problems;
pub mod race;
pub mod releases;
pub mod results;
pub mod scenarios;
pub mod schedule;
pub mod sweep;
pub mod timeline;
pub mod tornado;
pub mod watch;

use atlas_report::document::Document;
use ratatui::layout::Rect;

use crate::demo::View;
use crate::demo::views::for_all_views;
use crate::theme::Role;
use crate::tui::app::App;
use crate::tui::input::keymap::{Action, Binding, Keys, Place, SharedKeys};
use crate::tui::input::movement::Movement;
use crate::tui::message::Effect;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::tables::state::Table;
use crate::tui::widgets::draw::{Canvas, wrap};

/// Functions of a view. Each view overrides those of [`Spec::DEFAULT`] that it needs.
pub(in crate::tui) struct Spec {
    /// Heading in the list of keys.
    pub title: &'static str,
    /// Its label on the strip of tabs.
    pub tab: Tab,
    /// Further words by which the command palette finds it.
    pub synonyms: &'static str,
    /// The binding that opens it.
    pub opening: Option<Binding>,
    /// Whether the footers of other screens show that key.
    pub is_in_footers: bool,
    /// Its keys.
    pub keys: &'static [Keys],
    /// Where the footer shows their hints.
    pub keys_place: Place,
    /// Keys of lists that it binds as well.
    pub shared_keys: &'static [SharedKeys],
    /// Whether it has nothing to show, so that the strip of tabs leaves it out.
    pub is_empty: fn(&App) -> bool,
    /// The table that the filter and the sort order apply to.
    pub table: fn(&App) -> Option<Table>,
    /// Number of rows.
    pub rows: fn(&App) -> usize,
    /// First and last line of a row; `None` if rows cannot be selected.
    pub lines_of: fn(&App, usize) -> Option<(usize, usize)>,
    /// First and last line of the item under the cursor.
    pub cursor_lines: fn(&App) -> Option<(usize, usize)>,
    /// Number of lines above the rows that do not scroll.
    pub heading: fn(&App) -> u16,
    /// Number of visible lines of rows, for this number of lines inside the frame.
    pub page: fn(&App, usize) -> usize,
    /// Whether the rows are lines of text that scroll without a cursor.
    pub is_text: fn(&App) -> bool,
    /// Draws the view.
    pub draw: fn(&App, &mut Canvas<'_>, Rect),
    /// Information line about the item under the cursor.
    pub info: fn(&App) -> String,
    /// The view as a document, with the time at which it is made. `None` if there is nothing to export yet, and for views
    /// that a command exports: `atlas history`, `atlas watch`, `atlas launch`.
    pub document: fn(&App, &str) -> Option<Document>,
    /// Lines before the document when the interface is text.
    pub statements: fn(&App) -> Vec<String>,
    /// Name and text of the item under the cursor, for the clipboard. Without this function, the table is copied.
    pub item: Option<fn(&App) -> Copied>,
    /// Name and text of the table, for the clipboard. Without this function, the view is copied as drawn.
    pub copied_table: Option<fn(&App) -> Copied>,
    /// Called when the view is shown.
    pub opened: fn(&mut App, &mut Vec<Effect>),
    /// Requests the data needed for drawing. Called after every message while the view is shown.
    pub follow: fn(&mut App, &mut Vec<Effect>),
    /// Cancels requests. Called after every message while another view is shown.
    pub hidden: fn(&mut App, &mut Vec<Effect>),
    /// Stops running work. Returns whether any was running.
    pub stop: fn(&mut App, &mut Vec<Effect>) -> bool,
    /// Whether an action would have an effect. An empty view offers no keys for rows. Unless a move of the cursor redraws
    /// the whole screen, the result must not depend on the row under the cursor.
    pub works: fn(&App, Action) -> bool,
    /// Describes what a key does, if that depends on the row.
    pub hint: fn(&App, &Binding) -> Option<&'static str>,
    /// Moves the cursor; the last argument is the number of lines of a page.
    pub move_cursor: fn(&mut App, &Movement, usize),
    /// Handles Enter.
    pub accept: fn(&mut App, &mut Vec<Effect>),
    /// Performs another action of the view. Returns `false` for actions that are not specific to it.
    pub update: fn(&mut App, Action, &mut Vec<Effect>) -> bool,
    /// Handles a click at a column and a row of the screen. Returns the action of a click on the item under the cursor.
    pub click: fn(&mut App, (u16, u16)) -> Option<Action>,
}

/// A name and a text for the clipboard; `None` if there is nothing to copy.
type Copied = Option<(String, String)>;

/// Label of a view on the strip of tabs.
pub(in crate::tui) struct Tab {
    /// Position; views at the end are left out first.
    pub place: u8,
    /// The label.
    pub name: &'static str,
    /// The label if there is less space.
    pub short: &'static str,
}

impl Spec {
    /// A view without rows, cursor and keys.
    const DEFAULT: Spec = Spec {
        title: "",
        tab: Tab { place: u8::MAX, name: "", short: "" },
        synonyms: "",
        opening: None,
        is_in_footers: false,
        keys: &[],
        keys_place: Place::AfterEsc,
        shared_keys: &[SharedKeys::Find],
        is_empty: |_| false,
        table: |_| None,
        rows: |_| 0,
        lines_of: |_, _| None,
        cursor_lines: |app| (app.view.spec().lines_of)(app, app.view_row),
        heading: |_| 0,
        page: |app, lines| lines.saturating_sub(usize::from((app.view.spec().heading)(app))),
        is_text: |_| false,
        draw: |_, _, _| {},
        info: |_| String::new(),
        document: |_, _| None,
        statements: |_| Vec::new(),
        item: None,
        copied_table: None,
        opened: |_, _| {},
        follow: |_, _| {},
        hidden: |_, _| {},
        // The simulation of the scenario runs in any view. Both are stopped: `||` would leave the second one running.
        stop: |app, effects| [app.queries.simulation.stop(effects), app.queries.scaling.stop(effects)].contains(&true),
        works: |_, _| true,
        hint: |_, row| row.hint,
        move_cursor: |app, movement, page| {
            app.view_row = movement.from(app.view_row, row_count(app), page);
        },
        accept: |_, _| {},
        update: |_, _, _| false,
        click: |app, (_, y)| {
            let row = row_at(app, y)?;
            (std::mem::replace(&mut app.view_row, row) == row).then_some(Action::Accept)
        },
    };
}

macro_rules! define_specs {
    ($($(#[$attribute:meta])* $view:ident $name:literal $module:ident,)*) => {
        impl View {
            /// Returns its functions.
            pub(in crate::tui) fn spec(self) -> &'static Spec {
                match self {
                    $(View::$view => &$module::SPEC,)*
                }
            }
        }
    };
}
for_all_views!(define_specs);

impl View {
    /// Returns the heading in the list of keys.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.spec().title
    }
}

/// Lines of a row, for views in which each row is one line.
fn one_line(_: &App, row: usize) -> Option<(usize, usize)> {
    Some((row, row))
}

/// Number of rows of the current view.
#[must_use]
pub fn row_count(app: &App) -> usize {
    (app.view.spec().rows)(app)
}

/// Number of lines of the current view without scrolling.
#[must_use]
pub fn line_count(app: &App) -> usize {
    let spec = app.view.spec();
    let rows = (spec.rows)(app);
    let last = rows.checked_sub(1).and_then(|last| (spec.lines_of)(app, last));
    last.map_or(rows, |(_, last)| rows.max(last + 1))
}

/// Returns the row of the current view at a line of the screen.
fn row_at(app: &App, y: u16) -> Option<usize> {
    let spec = app.view.spec();
    let heading = usize::from((spec.heading)(app));
    let top = layout::areas(app).body.y + 1;
    let line = usize::from(y.checked_sub(top)?).checked_sub(heading)? + app.view_scroll;
    let holds = |row: &usize| (spec.lines_of)(app, *row).is_some_and(|(first, last)| (first..=last).contains(&line));
    (0..(spec.rows)(app)).find(holds)
}

/// Wraps lines that are too long for the screen. Continuation lines are indented.
pub(super) fn wrapped(size: (u16, u16), lines: Vec<(Role, String)>) -> Vec<(Role, String)> {
    // The frame and a column of padding on either side.
    let width = usize::from(size.0.saturating_sub(4));
    let broken = |(role, line): (Role, String)| {
        if line.width() <= width {
            return vec![(role, line)];
        }
        let indent = " ".repeat(line.chars().take_while(|c| *c == ' ').count().min(width / 2));
        let room = width.saturating_sub(indent.len() + 2);
        let parts = wrap(&line, room).into_iter().enumerate();
        parts.map(|(at, part)| (role, format!("{indent}{}{part}", if at > 0 { "  " } else { "" }))).collect()
    };
    lines.into_iter().flat_map(broken).collect()
}

/// Draws lines of text, from the scroll position on.
pub(super) fn draw_lines(canvas: &mut Canvas<'_>, inner: Rect, lines: &[(Role, String)], scroll: usize) {
    for (y, (role, text)) in (inner.y..inner.bottom()).zip(lines.iter().skip(scroll)) {
        let style = canvas.role(*role);
        canvas.text(inner.x + 1, y, inner.width.saturating_sub(2), text, style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_view_except_the_overview_has_the_key_that_opens_it() {
        for view in View::ALL.iter().filter(|view| **view != View::Main) {
            let action = view.spec().opening.map(|opening| opening.action);
            assert_eq!(action, Some(Action::Show(*view)));
        }
    }

    #[test]
    fn every_view_has_a_title_synonyms_and_its_own_tab() {
        let places: BTreeSet<u8> = View::ALL.iter().map(|view| view.spec().tab.place).collect();
        assert_eq!(places.len(), View::ALL.len(), "two views have the same place");
        for view in View::ALL {
            let Spec { title, tab, synonyms, .. } = view.spec();
            assert!([title, tab.name, tab.short, synonyms].iter().all(|text| !text.is_empty()), "{view:?}");
            assert_eq!(View::named(view.name()), Some(*view));
        }
    }
}
