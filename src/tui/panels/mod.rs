//! Panels: a running job against its prediction, the history, the files that launch a scenario, the releases of its
//! software, and which models fit on which targets.
//!
//! Each panel has its own directory with a `Spec` of its functions. The rest of the interface has a single view,
//! [`View::Panel`], and a single key mode for all panels.

pub mod state;

pub mod fits;
pub mod history;
pub mod idle;
pub mod launch;
pub mod releases;
pub mod watch;

pub use state::{Answer, Panel, Panels};

use atlas_report::document::Document;
use ratatui::layout::Rect;

use super::app::{App, View};
use super::message::Effect;
use super::painter::cells::TextWidth as _;
use super::theme::Role;
use crate::tui::dialogs::detecting;
use crate::tui::widgets::draw::{Canvas, wrap};

impl Panel {
    /// All panels.
    pub const ALL: [Panel; 5] = [Panel::Watch, Panel::History, Panel::Launch, Panel::Releases, Panel::Fits];

    /// Returns its functions.
    fn spec(self) -> &'static Spec {
        match self {
            Panel::Watch => &watch::SPEC,
            Panel::History => &history::SPEC,
            Panel::Launch => &launch::SPEC,
            Panel::Releases => &releases::SPEC,
            Panel::Fits => &fits::SPEC,
        }
    }

    /// Name in sessions.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// Heading in the list of keys.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.spec().title
    }
}

/// Functions of a panel. Each panel overrides those of [`Spec::DEFAULT`] that it needs.
struct Spec {
    /// Name in sessions.
    name: &'static str,
    /// Heading in the list of keys.
    title: &'static str,
    /// Number of rows.
    rows: fn(&App) -> usize,
    /// Number of lines above the rows that do not scroll.
    heading: fn(&App) -> u16,
    /// Number of visible rows for this number of lines, of which the heading takes some.
    page: fn(&App, usize) -> usize,
    /// Whether there is a cursor on one of the rows; otherwise the rows only scroll.
    has_cursor: fn(&App) -> bool,
    draw: fn(&App, &mut Canvas<'_>, Rect),
    /// Information line about the item under the cursor.
    info: fn(&App) -> String,
    /// The panel as a document; `None` for those that a command exports: `atlas history`, `atlas watch`, `atlas
    /// launch`.
    document: fn(&App) -> Option<Document>,
    /// Called when the panel is shown.
    opened: fn(&mut App),
    /// Requests the data needed for drawing.
    follow: fn(&mut App, &mut Vec<Effect>),
    /// Handles Enter.
    accept: fn(&mut App, &mut Vec<Effect>),
    /// Moves left or right.
    across: fn(&mut App, i32),
    /// Marks the item under the cursor.
    mark: fn(&mut App),
    /// Shows the metric over time.
    trend: fn(&mut App),
    /// Goes back within the panel. Returns `false` if there is nothing to go back to.
    back: fn(&mut App) -> bool,
}

impl Spec {
    /// A panel without rows, cursor and keys.
    const DEFAULT: Spec = Spec {
        name: "",
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

/// Calls `act` with the panel that is shown, if any.
pub(super) fn act(app: &mut App, act: impl FnOnce(&mut App, Panel)) {
    if let View::Panel(panel) = app.view {
        act(app, panel);
    }
}

/// Goes back within the panel that is shown. Returns whether it did.
pub(super) fn goes_back(app: &mut App) -> bool {
    match app.view {
        View::Panel(panel) => back(app, panel),
        _ => false,
    }
}

/// Returns the number of rows of a panel. Each row is one line.
#[must_use]
pub fn rows(app: &App, panel: Panel) -> usize {
    (panel.spec().rows)(app)
}

/// Draws a panel.
pub fn draw(app: &App, panel: Panel, canvas: &mut Canvas<'_>, area: Rect) {
    (panel.spec().draw)(app, canvas, area);
}

/// Returns the information line about the item under the cursor.
#[must_use]
pub fn info(app: &App, panel: Panel) -> String {
    (panel.spec().info)(app)
}

/// Notifies a panel that it is shown.
pub(super) fn opened(app: &mut App, panel: Panel) {
    (panel.spec().opened)(app);
}

/// Handles Enter.
pub(super) fn accept(app: &mut App, panel: Panel, effects: &mut Vec<Effect>) {
    (panel.spec().accept)(app, effects);
}

/// Moves left or right.
pub(super) fn across(app: &mut App, panel: Panel, by: i32) {
    (panel.spec().across)(app, by);
}

/// Marks the item under the cursor.
pub(super) fn mark(app: &mut App, panel: Panel) {
    (panel.spec().mark)(app);
}

/// Shows the metric over time.
pub(super) fn trend(app: &mut App, panel: Panel) {
    (panel.spec().trend)(app);
}

/// Goes back within the panel. Returns `false` if there is nothing to go back to.
pub(super) fn back(app: &mut App, panel: Panel) -> bool {
    (panel.spec().back)(app)
}

/// Whether there is a cursor on one of the rows; otherwise the rows only scroll.
#[must_use]
pub fn has_cursor(app: &App, panel: Panel) -> bool {
    (panel.spec().has_cursor)(app)
}

/// Returns the number of lines above a panel's rows that do not scroll.
#[must_use]
pub fn heading(app: &App, panel: Panel) -> u16 {
    (panel.spec().heading)(app)
}

/// Returns the number of visible rows of a panel for this number of lines.
#[must_use]
pub fn page(app: &App, panel: Panel, lines: usize) -> usize {
    (panel.spec().page)(app, lines)
}

/// Returns a panel as a document; `None` for those that a command exports: `atlas history`, `atlas watch`, `atlas
/// launch`.
#[must_use]
pub fn document(app: &App, panel: Panel) -> Option<Document> {
    (panel.spec().document)(app)
}

/// Requests the data needed for drawing the panel that is shown.
pub(super) fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    idle::follow(app, effects);
    if let View::Panel(panel) = app.view {
        (panel.spec().follow)(app, effects);
    }
}

/// Stores the result of an order.
pub(super) fn arrived(app: &mut App, serial: u64, answer: Answer, effects: &mut Vec<Effect>) {
    match answer {
        Answer::Watch(seen) => watch::arrived(app, serial, seen, effects),
        Answer::History(listed) => {
            app.panels.history.listed.store_answer(serial, listed);
        }
        Answer::Launch(files) => {
            app.panels.launch.files.store_answer(serial, files);
        }
        Answer::Written(text) => {
            if app.panels.launch.written.store_answer(serial, ()) {
                crate::tui::update::status::note(app, text, effects);
            }
        }
        Answer::Idle(idle) => idle::arrived(app, serial, idle, effects),
        Answer::Fits(grid) => fits::store_grid(app, serial, grid),
        Answer::Detected(found) => detecting::handle_result(app, serial, found, effects),
    }
}

/// Stores the error of a failed order.
pub(super) fn failed(app: &mut App, serial: u64, trouble: &str) {
    detecting::failed(app, serial, trouble);
    let panels = &mut app.panels;
    panels.watch.seen.failed(serial, trouble);
    panels.history.listed.failed(serial, trouble);
    panels.launch.files.failed(serial, trouble);
    panels.idle.known.failed(serial, trouble);
    panels.fits.table.failed(serial, trouble);
    if panels.launch.written.failed(serial, trouble) {
        crate::tui::update::status::fail(app, trouble.to_owned());
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
