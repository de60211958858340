//! Computes the layout arithmetically. ratatui's layout solver is slow and, with many flexible parts, does not always
//! return.
//!
//! ```text
//!   80–109 columns         110–173                    174 and more
//! ┌header──────────┐  ┌header────────────────┐  ┌header────────────────────────────┐
//! │targets │       │  │targets  │knobs│results│  │targets  │knobs│results│breakdown │
//! │workload│results│  │         │     │       │  │         │     │       │advice    │
//! │knobs   │       │  │workloads│     │advice │  │workloads│     │       │phases    │
//! │        │advice │  │         │     │phases │  │         │     │       │chart     │
//! └footer──────────┘  └footer────────────────┘  └footer────────────────────────────┘
//! ```

use ratatui::layout::Rect;

use crate::tui::app::{Answer, App, PANES, Pane, View};

/// Minimum number of columns of a usable screen.
pub const MIN_COLUMNS: u16 = 40;
/// Minimum number of rows of a usable screen.
pub const MIN_ROWS: u16 = 8;
/// Minimum columns and rows of a screen with all panes. Smaller screens show only the focused pane.
const PANES_FROM: (u16, u16) = (80, 16);
/// Minimum number of rows of the body for a summary line above a single pane.
const SUMMARY_FROM: u16 = 6;
/// Minimum number of rows of a screen that shows the strip of views.
const TABS_FROM: u16 = 20;
/// Number of rows of the caption during a tour, including its frame.
const CAPTION_ROWS: u16 = 9;

/// The rectangles of the screen. The rectangle of a part that is not shown is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Areas {
    /// The first line.
    pub header: Rect,
    /// The strip of scenarios, if there are several.
    pub scenarios: Rect,
    /// The strip of views, if there is room.
    pub tabs: Rect,
    /// Everything between header and footer, except a tour's caption.
    pub body: Rect,
    /// The list of targets.
    pub targets: Rect,
    /// The list of workloads.
    pub workloads: Rect,
    /// The knobs.
    pub knobs: Rect,
    /// The results.
    pub results: Rect,
    /// Verdict and key metrics in one line, if a single pane is shown and it is not the results.
    pub summary: Rect,
    /// The breakdown next to the results, if there is room.
    pub breakdown: Rect,
    /// The best advice: a pane, or a line without a frame.
    pub advice: Rect,
    /// The history below the results, if there is any and there is room.
    pub history: Rect,
    /// The outlook next to the results, if there is room.
    pub outlook: Rect,
    /// The phases next to or below the results, if there is room.
    pub phases: Rect,
    /// A tour's caption.
    pub caption: Rect,
    /// The line of status and information.
    pub info: Rect,
    /// The last line.
    pub footer: Rect,
}

impl Areas {
    /// The rectangle of a pane.
    #[must_use]
    pub fn pane(&self, pane: Pane) -> Rect {
        match pane {
            Pane::Targets => self.targets,
            Pane::Workloads => self.workloads,
            Pane::Knobs => self.knobs,
            Pane::Results => self.results,
        }
    }
}

/// Whether the terminal is large enough.
#[must_use]
pub fn fits(size: (u16, u16)) -> bool {
    size.0 >= MIN_COLUMNS && size.1 >= MIN_ROWS
}

/// Number of rows of the knobs and their headings.
#[must_use]
pub fn knob_rows(app: &App) -> usize {
    let mut groups: Vec<_> = app.knobs().map(|spec| spec.group).collect();
    let knobs = groups.len();
    if !app.knobs_are_grouped() {
        return knobs;
    }
    groups.dedup();
    knobs + groups.len()
}

/// The rectangles for the current state.
#[must_use]
pub fn areas(app: &App) -> Areas {
    let (columns, rows) = app.size;
    if !fits(app.size) {
        return Areas::default();
    }
    let caption = if app.tour.is_some() { CAPTION_ROWS.min(rows / 2) } else { 0 };
    let tabs = u16::from(rows >= TABS_FROM);
    let scenarios = u16::from(app.tabs.count() > 1);
    let above = 1 + scenarios + tabs;
    // A second line of the description takes a row from a full-screen view. In the overview, the panes do not move.
    let described = u16::from(app.tall && (app.view != View::Main || app.tour.is_some()));
    let body = Rect::new(0, above, columns, (rows - 2 - caption - above).saturating_sub(described));
    let mut areas = Areas {
        header: Rect::new(0, 0, columns, 1),
        scenarios: Rect::new(0, 1, columns, scenarios),
        tabs: Rect::new(0, 1 + scenarios, columns, tabs),
        body,
        caption: Rect::new(0, body.bottom(), columns, caption),
        info: Rect::new(0, rows - 2, columns, 1),
        footer: Rect::new(0, rows - 1, columns, 1),
        ..Areas::default()
    };
    let lists = |n: usize| u16::try_from(n + 2).unwrap_or(u16::MAX);
    let (targets, workloads) = (lists(app.library.target_list().len()), lists(app.library.workload_list().len()));
    let at = |x: u16, y: u16, width: u16, height: u16| Rect::new(x, body.y + y, width, height);
    let height = body.height;
    if columns < PANES_FROM.0 || rows < PANES_FROM.1 {
        let summed_up = app.pane != Pane::Results && app.answer.detail().is_some() && height >= SUMMARY_FROM;
        let summary = u16::from(summed_up);
        areas.summary = at(0, 0, columns, summary);
        let pane = at(0, summary, columns, height - summary);
        match app.pane {
            Pane::Targets => areas.targets = pane,
            Pane::Workloads => areas.workloads = pane,
            Pane::Knobs => areas.knobs = pane,
            Pane::Results => areas.results = pane,
        }
    } else if columns < 110 {
        let left = 29 + (columns - 80) / 3;
        // The knobs need the most rows; the lists scroll.
        let targets = targets.clamp(3, (height / 4).max(3)).min(height);
        let workloads = workloads.clamp(3, (height / 5).max(3)).min(height - targets);
        areas.targets = at(0, 0, left, targets);
        areas.workloads = at(0, targets, left, workloads);
        areas.knobs = at(0, targets + workloads, left, height - targets - workloads);
        areas.results = at(left, 0, columns - left, height);
        divide_lower(app, &mut areas);
    } else {
        let (left, middle) = if columns < BESIDE_FROM { (30 + (columns - 110) / 10, 34) } else { (36, 40) };
        let workloads = workloads.clamp(4, (height / 2).max(4)).min(height);
        areas.targets = at(0, 0, left, height - workloads);
        areas.workloads = at(0, height - workloads, left, workloads);
        areas.knobs = at(left, 0, middle, height);
        let rest = columns - left - middle;
        if columns < BESIDE_FROM {
            areas.results = at(left + middle, 0, rest, height);
            divide_lower(app, &mut areas);
        } else {
            let results = (rest * 8 / 15).clamp(58, 70).min(rest);
            areas.results = at(left + middle, 0, results, height);
            divide_side_column(app, &mut areas, at(left + middle + results, 0, rest - results, height));
        }
    }
    areas
}

/// Number of rows that the phases need.
fn phase_rows(answer: &Answer) -> u16 {
    let phases = answer.workload.as_ref().map_or(0, |workload| workload.phases.len());
    if phases == 0 { 0 } else { u16::try_from(phases + 5).unwrap_or(u16::MAX) }
}

/// Splits `rows` rows off the bottom of an area. Returns an empty area if there are fewer.
fn split_bottom(from: &mut Rect, rows: u16) -> Rect {
    let rows = if rows <= from.height { rows } else { 0 };
    from.height -= rows;
    Rect { y: from.bottom(), height: rows, ..*from }
}

/// Rows of the advice pane below the results: three lines and a frame.
const ADVICE_ROWS: u16 = 5;
/// Rows of the history pane.
pub const HISTORY_ROWS: u16 = 6;
/// Rows that must remain for the results, if they need that many, before history and advice get panes.
const RESULTS_ROWS: u16 = 20;

/// Divides the lower part of the results among history, advice and phases, as far as they fit.
fn divide_lower(app: &App, areas: &mut Areas) {
    let results = &mut areas.results;
    let wanted = crate::tui::views::results::figure_rows(app, results.width.saturating_sub(2)) + 2;
    let wanted = u16::try_from(wanted).unwrap_or(u16::MAX);
    let advised = app.answer.detail().is_some();
    let phases = phase_rows(&app.answer);
    if app.past.len() + app.future.len() > 0 && results.height >= wanted.min(RESULTS_ROWS).saturating_add(HISTORY_ROWS)
    {
        areas.history = split_bottom(results, HISTORY_ROWS);
    }
    if advised {
        let pane = results.height >= wanted.min(RESULTS_ROWS).saturating_add(ADVICE_ROWS);
        areas.advice = split_bottom(results, if pane { ADVICE_ROWS } else { 1 });
    }
    if phases > 0 && results.height >= wanted.saturating_add(phases) {
        areas.phases = split_bottom(results, phases);
    }
}

/// Minimum number of columns of a screen with a column of panes next to the results: the other columns, and the 40 that
/// this one needs for its contents.
pub(in crate::tui) const BESIDE_FROM: u16 = 174;
/// Minimum number of rows of the advice pane next to the results: three entries of two lines each, and a frame.
const ADVICE_ROWS_BESIDE: u16 = 8;

/// Minimum number of rows of a readable chart, including axes and frame.
const OUTLOOK_ROWS: u16 = 12;

/// Divides the column next to the results among breakdown, advice, chart, history and phases.
fn divide_side_column(app: &App, areas: &mut Areas, mut column: Rect) {
    if app.answer.detail().is_none() {
        areas.phases = column;
        return;
    }
    areas.phases = split_bottom(&mut column, phase_rows(&app.answer));
    let edited = app.past.len() + app.future.len() > 0;
    areas.history = split_bottom(&mut column, if edited { HISTORY_ROWS } else { 0 });
    let parts = u16::try_from(crate::tui::views::breakdown::blocks::pane_rows(app) + 2).unwrap_or(u16::MAX);
    let spare = column.height.saturating_sub(parts).max(ADVICE_ROWS_BESIDE);
    // The advice gets all spare rows, unless there are enough for the chart as well.
    let chart = if spare >= ADVICE_ROWS_BESIDE + OUTLOOK_ROWS { spare - ADVICE_ROWS_BESIDE } else { 0 };
    areas.outlook = split_bottom(&mut column, chart);
    let advice = spare - chart;
    areas.advice = split_bottom(&mut column, advice);
    areas.breakdown = column;
}

/// The area inside a frame.
#[must_use]
pub fn inner(area: Rect) -> Rect {
    Rect::new(area.x + 1, area.y + 1, area.width.saturating_sub(2), area.height.saturating_sub(2))
}

/// Number of rows inside a frame.
#[must_use]
pub fn inner_rows(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(2))
}

/// The pane at a screen position, with its rectangle.
#[must_use]
pub fn pane_at(areas: &Areas, column: u16, row: u16) -> Option<(Pane, Rect)> {
    let panes = PANES.into_iter().map(|pane| (pane, areas.pane(pane)));
    { panes }.find(|(_, area)| area.contains((column, row).into()))
}
