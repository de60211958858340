//! Scrolls lists and views so that the selected item is visible.

use ratatui::layout::Rect;

use crate::tui::app::stale::DirtyRegion;
use crate::tui::app::{App, PANES, Pane};
use crate::tui::views::layout::{areas, fits, inner, inner_rows, knob_rows};

/// Scrolls the stale parts so that the selected items are visible.
pub(in crate::tui) fn follow(app: &mut App) {
    if !fits(app.size) || matches!(app.stale, DirtyRegion::Nothing | DirtyRegion::Outlook) {
        return;
    }
    let areas = areas(app);
    match app.stale {
        DirtyRegion::Nothing | DirtyRegion::Outlook => {}
        DirtyRegion::Pane(pane) => follow_pane(app, pane, areas.pane(pane)),
        DirtyRegion::View => follow_view(app, inner_rows(areas.body)),
        DirtyRegion::All => {
            PANES.into_iter().for_each(|pane| follow_pane(app, pane, areas.pane(pane)));
            follow_view(app, inner_rows(areas.body));
        }
    }
}

/// Scrolls the list of a pane.
fn follow_pane(app: &mut App, pane: Pane, area: Rect) {
    // Number of rows that do not scroll.
    let mut above = 0;
    // Index into `scroll`, the first and last rows that must be visible, and the total number of rows.
    let (place, first, last, total) = match pane {
        Pane::Targets => {
            let row = app.target_row().unwrap_or_default();
            (0, row, row, app.targets().count())
        }
        Pane::Workloads => {
            let row = app.workload_row().unwrap_or_default();
            (1, row, row, app.workloads().count())
        }
        Pane::Knobs => {
            // If knobs are grouped, the first visible row shows a group name, so the row above the knob must be visible
            // too.
            let row = crate::tui::screen::knobs::row_of(app, app.selected_knob());
            (2, row.saturating_sub(usize::from(app.knobs_are_grouped())), row, knob_rows(app))
        }
        Pane::Results => {
            let inner = inner(area);
            let (total, row) = crate::tui::views::results::rows_and_cursor(app, inner.width);
            above = usize::from(crate::tui::views::results::headline_rows(app, inner));
            (3, row, row, total)
        }
    };
    let rows = inner_rows(area).saturating_sub(above);
    if let Some(scroll) = app.scroll.get_mut(place) {
        *scroll = (*scroll).min(first).max((last + 1).saturating_sub(rows)).min(total.saturating_sub(rows));
    }
}

/// Scrolls a full-screen view so that the row under its cursor is visible.
fn follow_view(app: &mut App, page: usize) {
    let spec = app.view.spec();
    let rows = (spec.rows)(app);
    if (spec.is_text)(app) {
        // The row is the first visible line.
        app.view_row = app.view_row.min(rows.saturating_sub(page));
        app.view_scroll = app.view_row;
        return;
    }
    app.view_row = app.view_row.min(rows.saturating_sub(1));
    if let Some((first, last)) = (spec.cursor_lines)(app) {
        let page = (spec.page)(app, page);
        // If the item is longer than the page, its first line is visible.
        app.view_scroll = app.view_scroll.max((last + 1).saturating_sub(page)).min(first);
    }
}
