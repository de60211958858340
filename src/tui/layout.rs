//! Where everything stands, by arithmetic: the layout solver of the library is slow and, with many flexible parts, does
//! not always return.
//!
//! ```text
//!   80–109 columns         110–159                    160 and more
//! ┌header──────────┐  ┌header────────────────┐  ┌header──────────────────────────┐
//! │targets │       │  │targets  │knobs│results│  │targets  │knobs│results│phases   │
//! │workload│results│  │         │     │       │  │         │     │       │         │
//! │knobs   │       │  │workloads│     │phases │  │workloads│     │       │         │
//! └footer──────────┘  └footer────────────────┘  └footer──────────────────────────┘
//! ```

use ratatui::layout::Rect;

use super::app::{App, Pane};

/// Fewest columns that hold a useful screen.
pub const MIN_COLUMNS: u16 = 80;
/// Fewest rows that hold a useful screen.
pub const MIN_ROWS: u16 = 16;
/// Rows of the caption while a tour plays, its frame included.
const CAPTION_ROWS: u16 = 9;

/// The rectangles of a screen. A pane that has no room is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Areas {
    /// The first line.
    pub header: Rect,
    /// Everything between header and footer, less a tour's caption.
    pub body: Rect,
    /// The list of targets.
    pub targets: Rect,
    /// The list of workloads.
    pub workloads: Rect,
    /// The knobs.
    pub knobs: Rect,
    /// The results.
    pub results: Rect,
    /// The phases beside or below the results, where there is room.
    pub phases: Rect,
    /// A tour's caption.
    pub caption: Rect,
    /// The line of status and information.
    pub info: Rect,
    /// The last line.
    pub footer: Rect,
}

/// Whether the terminal is large enough.
#[must_use]
pub fn fits(size: (u16, u16)) -> bool {
    size.0 >= MIN_COLUMNS && size.1 >= MIN_ROWS
}

/// Rows of knobs and their headings.
#[must_use]
pub fn knob_rows(app: &App) -> usize {
    let mut groups: Vec<_> = app.knobs().map(|spec| spec.group).collect();
    let knobs = groups.len();
    groups.dedup();
    knobs + groups.len()
}

/// The rectangles for the present state.
#[must_use]
pub fn areas(app: &App) -> Areas {
    let (columns, rows) = app.size;
    if !fits(app.size) {
        return Areas::default();
    }
    let caption = if app.tour.is_some() { CAPTION_ROWS.min(rows / 2) } else { 0 };
    let body = Rect::new(0, 1, columns, rows - 3 - caption);
    let mut areas = Areas {
        header: Rect::new(0, 0, columns, 1),
        body,
        caption: Rect::new(0, 1 + body.height, columns, caption),
        info: Rect::new(0, rows - 2, columns, 1),
        footer: Rect::new(0, rows - 1, columns, 1),
        ..Areas::default()
    };
    let lists = |n: usize| u16::try_from(n + 2).unwrap_or(u16::MAX);
    let (targets, workloads) = (lists(app.library.targets().len()), lists(app.library.workloads().len()));
    let at = |x: u16, y: u16, width: u16, height: u16| Rect::new(x, body.y + y, width, height);
    let height = body.height;
    if columns < 110 {
        let left = 29 + (columns - 80) / 3;
        // The knobs need the most; the lists scroll.
        let targets = targets.clamp(3, (height / 4).max(3)).min(height);
        let workloads = workloads.clamp(3, (height / 5).max(3)).min(height - targets);
        areas.targets = at(0, 0, left, targets);
        areas.workloads = at(0, targets, left, workloads);
        areas.knobs = at(0, targets + workloads, left, height - targets - workloads);
        areas.results = at(left, 0, columns - left, height);
        below(app, &mut areas);
    } else {
        let (left, middle) = if columns < 160 { (30 + (columns - 110) / 10, 34) } else { (36, 40) };
        let workloads = workloads.clamp(4, (height / 2).max(4)).min(height);
        areas.targets = at(0, 0, left, height - workloads);
        areas.workloads = at(0, height - workloads, left, workloads);
        areas.knobs = at(left, 0, middle, height);
        let rest = columns - left - middle;
        if columns < 160 {
            areas.results = at(left + middle, 0, rest, height);
            below(app, &mut areas);
        } else {
            let results = (rest / 2).max(58).min(rest);
            areas.results = at(left + middle, 0, results, height);
            areas.phases = at(left + middle + results, 0, rest - results, height);
        }
    }
    areas
}

/// Gives the lower part of the results to the phases, where both fit.
fn below(app: &App, areas: &mut Areas) {
    let phases = app.answer.workload.as_ref().map_or(0, |workload| workload.phases.len());
    let wanted = u16::try_from(phases + 4).unwrap_or(u16::MAX);
    let results = u16::try_from(super::view::results::figure_rows(app) + 2).unwrap_or(u16::MAX);
    if phases == 0 || areas.results.height < results.saturating_add(wanted) {
        return;
    }
    let all = areas.results;
    areas.results.height = all.height - wanted;
    areas.phases = Rect { y: all.y + areas.results.height, height: wanted, ..all };
}

/// Rows inside a frame.
#[must_use]
pub fn inner_rows(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(2))
}

/// Moves the lists so that what is selected can be seen.
pub fn follow(app: &mut App) {
    if !fits(app.size) {
        return;
    }
    let areas = areas(app);
    let keep = |scroll: &mut usize, row: usize, rows: usize, total: usize| {
        *scroll = (*scroll).min(row).max((row + 1).saturating_sub(rows)).min(total.saturating_sub(rows));
    };
    let (targets, workloads) = (app.library.targets().len(), app.library.workloads().len());
    let (target, workload) = (app.target_row().unwrap_or_default(), app.workload_row().unwrap_or_default());
    let results = super::view::results::rows(app, areas.results.width.saturating_sub(2));
    // The knobs' help takes the pane's last line; a group's heading comes into view with its first knob.
    let row = super::view::knobs::row_of(app, app.knob_here());
    let top = if app.knob_index() == 0 { 0 } else { row };
    let all_knobs = knob_rows(app);
    let [scroll_targets, scroll_workloads, scroll_knobs, scroll_results] = &mut app.scroll;
    keep(scroll_targets, target, inner_rows(areas.targets), targets);
    keep(scroll_workloads, workload, inner_rows(areas.workloads), workloads);
    let rows = inner_rows(areas.knobs);
    *scroll_knobs = (*scroll_knobs).min(top).max((row + 1).saturating_sub(rows)).min(all_knobs.saturating_sub(rows));
    *scroll_results = (*scroll_results).min(results.saturating_sub(inner_rows(areas.results)));
}

/// The pane at a place, with its rectangle.
#[must_use]
pub fn pane_at(areas: &Areas, column: u16, row: u16) -> Option<(Pane, Rect)> {
    let panes = [
        (Pane::Targets, areas.targets),
        (Pane::Workloads, areas.workloads),
        (Pane::Knobs, areas.knobs),
        (Pane::Results, areas.results),
    ];
    panes.into_iter().find(|(_, area)| area.contains((column, row).into()))
}
