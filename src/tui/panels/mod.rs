//! Views of jobs, files and catalogs: a running job against its prediction, the history, the files that launch a scenario,
//! the releases of its software, and what runs on what.
//!
//! Each has a folder of its own and a line in every function below; the rest of the interface knows one view,
//! [`View::Panel`], and one mode of keys.

pub mod fits;
pub mod history;
pub mod idle;
pub mod launch;
pub mod releases;
pub mod watch;

use std::sync::Arc;

use atlas_report::document::Document;
use ratatui::layout::Rect;

use super::app::{App, View};
use super::detecting;
use super::message::Effect;
use super::painter::cells::TextWidth as _;
use super::theme::Role;
use super::view::draw::{Canvas, wrap};

/// A view of jobs or files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Panel {
    /// A running job against its prediction.
    Watch,
    /// What was predicted, submitted, run and measured.
    History,
    /// The files that launch the scenario.
    Launch,
    /// The releases of the scenario's software.
    Releases,
    /// Which models run on which targets.
    Fits,
}

impl Panel {
    /// All panels.
    pub const ALL: [Panel; 5] = [Panel::Watch, Panel::History, Panel::Launch, Panel::Releases, Panel::Fits];

    /// Its name in sessions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Panel::Watch => "watch",
            Panel::History => "history",
            Panel::Launch => "launch",
            Panel::Releases => "releases",
            Panel::Fits => "fits",
        }
    }
}

/// The state of all panels.
#[derive(Debug, Clone, Default)]
pub struct Panels {
    /// The job that is watched.
    pub watch: watch::State,
    /// The history.
    pub history: history::State,
    /// The launch files.
    pub launch: launch::State,
    /// The releases.
    pub releases: releases::State,
    /// Models on targets.
    pub fits: fits::State,
    /// Idle nodes of detected targets.
    pub idle: idle::State,
    /// Detection of targets.
    pub detect: detecting::State,
}

/// What the work of a panel answers.
#[derive(Debug, Clone)]
pub enum Answer {
    /// What a watch has seen.
    Watch(Arc<watch::Seen>),
    /// The entries of the history.
    History(Arc<history::Listed>),
    /// The files of a scenario.
    Launch(Arc<launch::Files>),
    /// Files were written: what to say.
    Written(String),
    /// Idle nodes.
    Idle(Arc<idle::Idle>),
    /// Models on targets.
    Fits(Arc<fits::Grid>),
    /// Targets that were detected.
    Detected(Arc<detecting::Found>),
}

/// Does something with the panel that is shown.
pub(super) fn act(app: &mut App, act: impl FnOnce(&mut App, Panel)) {
    if let View::Panel(panel) = app.view {
        act(app, panel);
    }
}

/// Whether Esc went back within the panel that is shown.
pub(super) fn goes_back(app: &mut App) -> bool {
    match app.view {
        View::Panel(panel) => back(app, panel),
        _ => false,
    }
}

/// Lines of a panel: its rows are lines.
#[must_use]
pub fn rows(app: &App, panel: Panel) -> usize {
    match panel {
        Panel::Watch => watch::view::rows(app),
        Panel::History => history::view::rows(app),
        Panel::Launch => launch::view::rows(app),
        Panel::Releases => releases::view::rows(app),
        Panel::Fits => fits::view::rows(app),
    }
}

/// Draws a panel.
pub fn draw(app: &App, panel: Panel, canvas: &mut Canvas<'_>, area: Rect) {
    match panel {
        Panel::Watch => watch::view::draw(app, canvas, area),
        Panel::History => history::view::draw(app, canvas, area),
        Panel::Launch => launch::view::draw(app, canvas, area),
        Panel::Releases => releases::view::draw(app, canvas, area),
        Panel::Fits => fits::view::draw(app, canvas, area),
    }
}

/// A line about what is under the cursor.
#[must_use]
pub fn info(app: &App, panel: Panel) -> String {
    match panel {
        Panel::Watch => watch::view::info(app),
        Panel::History => history::view::info(app),
        Panel::Launch => launch::view::info(app),
        Panel::Releases => releases::view::info(app),
        Panel::Fits => fits::view::info(app),
    }
}

/// A panel is shown.
pub(super) fn opened(app: &mut App, panel: Panel) {
    match panel {
        Panel::Watch => watch::opened(app),
        Panel::History => history::opened(app),
        Panel::Releases => releases::opened(app),
        Panel::Fits => fits::opened(app),
        Panel::Launch => {}
    }
}

/// Does what Enter asks for.
pub(super) fn accept(app: &mut App, panel: Panel, effects: &mut Vec<Effect>) {
    match panel {
        Panel::Watch => watch::again(app, effects),
        Panel::History => history::open(app, effects),
        Panel::Launch => launch::write(app, effects),
        Panel::Releases => releases::apply(app, effects),
        Panel::Fits => fits::open(app, effects),
    }
}

/// Goes to what stands to the left or right.
pub(super) fn across(app: &mut App, panel: Panel, by: i32) {
    match panel {
        Panel::Launch => launch::wrap(app, by),
        Panel::Fits => fits::across(app, by),
        Panel::Watch | Panel::History | Panel::Releases => {}
    }
}

/// Marks what is under the cursor.
pub(super) fn mark(app: &mut App, panel: Panel) {
    if panel == Panel::History {
        history::mark(app);
    }
}

/// Shows the figures over time.
pub(super) fn trend(app: &mut App, panel: Panel) {
    if panel == Panel::History {
        history::trend(app);
    }
}

/// Goes back within the panel; false where there is nothing to go back from.
pub(super) fn back(app: &mut App, panel: Panel) -> bool {
    panel == Panel::History && history::back(app)
}

/// Whether one of the lines has a cursor; else the lines only scroll.
#[must_use]
pub fn has_cursor(app: &App, panel: Panel) -> bool {
    match panel {
        Panel::History => app.panels.history.page == history::Page::List,
        Panel::Releases | Panel::Fits => true,
        Panel::Watch | Panel::Launch => false,
    }
}

/// Lines above a panel's rows that do not scroll.
#[must_use]
pub fn heading(app: &App, panel: Panel) -> u16 {
    match panel {
        Panel::Releases => releases::view::HEADING,
        Panel::Fits => fits::view::HEADING,
        Panel::History if app.panels.history.page == history::Page::List => history::view::HEADING,
        Panel::Watch | Panel::History | Panel::Launch => 0,
    }
}

/// Rows of a panel that are seen at a time in so many lines.
#[must_use]
pub fn page(app: &App, panel: Panel, lines: usize) -> usize {
    match panel {
        Panel::Releases => releases::view::page(lines),
        _ => lines.saturating_sub(usize::from(heading(app, panel))),
    }
}

/// A panel as a document; `None` where commands write it: `atlas history`, `atlas watch`, `atlas launch`.
#[must_use]
pub fn document(app: &App, panel: Panel) -> Option<Document> {
    match panel {
        Panel::Releases => releases::export::document(app),
        Panel::Fits => fits::export::document(app),
        Panel::Watch | Panel::History | Panel::Launch => None,
    }
}

/// Asks what the panel that is shown wants to know.
pub(super) fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    idle::follow(app, effects);
    match app.view {
        View::Panel(Panel::Watch) => watch::follow(app, effects),
        View::Panel(Panel::History) => history::follow(app, effects),
        View::Panel(Panel::Launch) => launch::follow(app, effects),
        View::Panel(Panel::Releases) => releases::follow(app),
        View::Panel(Panel::Fits) => fits::follow(app, effects),
        _ => {}
    }
}

/// Takes what came of an order.
pub(super) fn arrived(app: &mut App, serial: u64, answer: Answer, effects: &mut Vec<Effect>) {
    match answer {
        Answer::Watch(seen) => watch::arrived(app, serial, seen, effects),
        Answer::History(listed) => {
            app.panels.history.listed.arrived(serial, listed);
        }
        Answer::Launch(files) => {
            app.panels.launch.files.arrived(serial, files);
        }
        Answer::Written(text) => {
            if app.panels.launch.written.arrived(serial, ()) {
                super::update::note(app, text, effects);
            }
        }
        Answer::Idle(idle) => idle::arrived(app, serial, idle, effects),
        Answer::Fits(grid) => fits::arrived(app, serial, grid),
        Answer::Detected(found) => detecting::arrived(app, serial, found, effects),
    }
}

/// Takes why nothing came of an order.
pub(super) fn failed(app: &mut App, serial: u64, trouble: &str) {
    detecting::failed(app, serial, trouble);
    let panels = &mut app.panels;
    panels.watch.seen.failed(serial, trouble);
    panels.history.listed.failed(serial, trouble);
    panels.launch.files.failed(serial, trouble);
    panels.idle.known.failed(serial, trouble);
    panels.fits.table.failed(serial, trouble);
    if panels.launch.written.failed(serial, trouble) {
        super::update::fail(app, trouble.to_owned());
    }
}

/// Breaks lines that are too long for the screen; what goes on is indented.
pub(super) fn wrapped(app: &App, lines: Vec<(Role, String)>) -> Vec<(Role, String)> {
    // The frame and a column of room on either side.
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

/// Lines of text from the first that is seen, with the cursor where there is one.
pub(super) fn lines(app: &App, canvas: &mut Canvas<'_>, inner: Rect, lines: &[(Role, String)]) {
    for (y, (role, text)) in (inner.y..inner.bottom()).zip(lines.iter().skip(app.view_scroll)) {
        let style = canvas.role(*role);
        canvas.text(inner.x + 1, y, inner.width.saturating_sub(2), text, style);
    }
}
