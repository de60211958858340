//! Views: one folder each, with its state, its actions and its drawing.
//!
//! The folder of a view has a [`Spec`] of its functions; `demo::views` lists the views. Some folders have no view of their
//! own but a part of the overview or a dialog: `assistant`, `edits`, `idle`, `outlook`, `results` and `scenarios`.

pub mod advice;
pub mod assistant;
pub mod breakdown;
pub mod comparison;
pub mod diff;
pub mod edits;
pub mod explain;
pub mod fits;
pub mod frontier;
pub mod history;
pub mod idle;
pub mod launch;
pub mod measurements;
pub mod optimum;
pub mod outlook;
pub mod overview;
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
use crate::tui::app::App;
use crate::tui::message::Effect;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::theme::Role;
use crate::tui::widgets::draw::{Canvas, wrap};

/// Functions of a view. Each view overrides those of [`Spec::DEFAULT`] that it needs.
pub struct Spec {
    /// Heading in the list of keys.
    pub(in crate::tui) title: &'static str,
    /// Number of rows.
    pub(in crate::tui) rows: fn(&App) -> usize,
    /// Number of lines above the rows that do not scroll.
    pub(in crate::tui) heading: fn(&App) -> u16,
    /// Number of visible rows for this number of lines, of which the heading takes some.
    pub(in crate::tui) page: fn(&App, usize) -> usize,
    /// Whether there is a cursor on one of the rows; otherwise the rows only scroll.
    pub(in crate::tui) has_cursor: fn(&App) -> bool,
    /// Draws the view.
    pub(in crate::tui) draw: fn(&App, &mut Canvas<'_>, Rect),
    /// Information line about the item under the cursor.
    pub(in crate::tui) info: fn(&App) -> String,
    /// The view as a document; `None` for those that a command exports: `atlas history`, `atlas watch`, `atlas
    /// launch`.
    pub(in crate::tui) document: fn(&App) -> Option<Document>,
    /// Called when the view is shown.
    pub(in crate::tui) opened: fn(&mut App),
    /// Requests the data needed for drawing.
    pub(in crate::tui) follow: fn(&mut App, &mut Vec<Effect>),
    /// Handles Enter.
    pub(in crate::tui) accept: fn(&mut App, &mut Vec<Effect>),
    /// Moves left or right.
    pub(in crate::tui) across: fn(&mut App, i32),
    /// Marks the item under the cursor.
    pub(in crate::tui) mark: fn(&mut App),
    /// Shows the metric over time.
    pub(in crate::tui) trend: fn(&mut App),
    /// Goes back within the view. Returns `false` if there is nothing to go back to.
    pub(in crate::tui) back: fn(&mut App) -> bool,
}

impl Spec {
    /// A view without rows, cursor and keys.
    pub(in crate::tui) const DEFAULT: Spec = Spec {
        title: "",
        rows: |_| 0,
        heading: |_| 0,
        page: |_, lines| lines,
        has_cursor: |_| false,
        draw: |_, _, _| {},
        info: |_| String::new(),
        document: |_| None,
        opened: |_| {},
        follow: |_, _| {},
        accept: |_, _| {},
        across: |_, _| {},
        mark: |_| {},
        trend: |_| {},
        back: |_| false,
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

/// Wraps lines that are too long for the screen. Continuation lines are indented.
pub(super) fn wrapped(app: &App, lines: Vec<(Role, String)>) -> Vec<(Role, String)> {
    // The frame and a column of padding on either side.
    let width = usize::from(app.size.0.saturating_sub(4));
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
pub(super) fn lines(app: &App, canvas: &mut Canvas<'_>, inner: Rect, lines: &[(Role, String)]) {
    for (y, (role, text)) in (inner.y..inner.bottom()).zip(lines.iter().skip(app.view_scroll)) {
        let style = canvas.role(*role);
        canvas.text(inner.x + 1, y, inner.width.saturating_sub(2), text, style);
    }
}
