//! Up and down: the cursor of every list, table and chart.

use std::sync::Arc;

use super::app::{App, Finder, Headline, Overlay, Palette};
use super::keymap::Mode;
use super::layout::Areas;
use super::update::{select_target, select_workload};
use super::{assistant, export, form, frontier, layout, sweeping, timeline, view};

/// How far to go in a list.
pub(super) enum Walk {
    By(i32),
    Page(i32),
    To(usize),
}

impl Walk {
    fn from(&self, row: usize, rows: usize, page: usize) -> usize {
        let last = rows.saturating_sub(1);
        match self {
            Walk::By(by) => row.saturating_add_signed(*by as isize).min(last),
            Walk::Page(by) => row.saturating_add_signed(*by as isize * page.max(1) as isize).min(last),
            Walk::To(to) => (*to).min(last),
        }
    }
}

/// Moves what is under the cursor, or what is seen, of a mode.
pub(super) fn walk(app: &mut App, mode: Mode, walk: Walk) {
    // How high a pane is matters to pages only.
    let areas = if let Walk::Page(_) = walk { layout::areas(app) } else { Areas::default() };
    match mode {
        Mode::Targets => {
            let (rows, page) = (app.targets().count(), layout::inner_rows(areas.targets));
            let row = walk.from(app.target_row().unwrap_or_default(), rows, page);
            let name = app.targets().nth(row).map(|(_, target)| Arc::clone(&target.name));
            if let Some(name) = name {
                select_target(app, name);
            }
        }
        Mode::Workloads => {
            let (rows, page) = (app.workloads().count(), layout::inner_rows(areas.workloads));
            let row = walk.from(app.workload_row().unwrap_or_default(), rows, page);
            let name = app.workloads().nth(row).map(|workload| Arc::clone(&workload.name));
            if let Some(name) = name {
                select_workload(app, name);
            }
        }
        Mode::Knobs => {
            let row = walk.from(app.knob_index(), app.knobs().count(), layout::inner_rows(areas.knobs));
            let there = app.knobs().nth(row).map(|spec| spec.knob);
            app.knob = there.unwrap_or(app.knob);
        }
        Mode::Results => walk_pane(app, &walk, layout::inner_rows(areas.results)),
        Mode::Sweep => walk_sweep(app, &walk),
        Mode::Frontier => walk_frontier(app, &walk),
        Mode::Timeline => match walk {
            Walk::By(by) => timeline::across(app, by),
            Walk::Page(by) => timeline::pan(app, by),
            Walk::To(row) => timeline::to_end(app, row > 0),
        },
        Mode::Compare => walk_compare(app, &walk, layout::inner_rows(areas.body)),
        Mode::Race
        | Mode::Advice
        | Mode::Explain
        | Mode::Diff
        | Mode::Sensitivity
        | Mode::Optimum
        | Mode::Problems
        | Mode::Schedule
        | Mode::Measurements
        | Mode::Panel(_)
        | Mode::Breakdown => {
            app.view_row = walk.from(app.view_row, view::rows(app), layout::inner_rows(areas.body));
        }
        Mode::Helping => {
            let (rows, page) = view::help::extent(app);
            if let Some(Overlay::Help { scroll }) = &mut app.overlay {
                *scroll = walk.from(*scroll, (rows + 1).saturating_sub(page), page);
            }
        }
        Mode::Choosing => {
            let rows = app.demos.len();
            if let Some(Overlay::Demos { cursor }) = &mut app.overlay {
                *cursor = walk.from(*cursor, rows, rows);
            }
        }
        Mode::Finding => {
            if let Some(Overlay::Finder(Finder { matches, cursor, .. })) = &mut app.overlay {
                *cursor = walk.from(*cursor, matches.len(), 10);
            }
        }
        Mode::Seeking => {
            if let Some(Overlay::Goal(seek)) = &mut app.overlay {
                seek.cursor = walk.from(seek.cursor, seek.ways().len(), 10);
            }
        }
        Mode::Commanding => {
            if let Some(Overlay::Palette(Palette { matches, cursor, .. })) = &mut app.overlay {
                *cursor = walk.from(*cursor, matches.len(), 10);
            }
        }
        Mode::Conversing => match walk {
            Walk::By(by) => assistant::recall(app, by),
            Walk::Page(by) => assistant::scroll(app, by),
            Walk::To(_) => {}
        },
        Mode::Confirming => {
            if let Some(Overlay::WriteBack { plan, scroll }) = &mut app.overlay {
                *scroll = walk.from(*scroll, plan.lines().len(), 10);
            }
        }
        Mode::Filling => {
            if let Walk::By(by) = walk {
                form::go(app, by);
            }
        }
        Mode::Exporting => {
            if let Walk::By(by) = walk {
                export::choose(app, by);
            }
        }
        Mode::Editing | Mode::Asking | Mode::Bounding | Mode::Touring | Mode::Prompting => {}
    }
}

/// Along the results: what stands above the figures first, then the figures.
fn walk_pane(app: &mut App, walk: &Walk, page: usize) {
    const ABOVE: [Headline; 2] = [Headline::Verdict, Headline::Limits];
    let above = if app.answer.detail().is_some() { ABOVE.len() } else { 0 };
    let figures = app.figures().count();
    let here = app.figure_here().map(|metric| metric.name);
    let figure = app.figures().position(|metric| Some(metric.name) == here).unwrap_or_default();
    let row = app.headline().and_then(|line| ABOVE.iter().position(|known| *known == line));
    let next = walk.from(row.unwrap_or(above + figure), above + figures, page);
    // The first figure stands for the first of all there is to go to, as long as it is not above it already.
    let next = if matches!(walk, Walk::To(0)) && row.is_none() && figure > 0 { above } else { next };
    match next.checked_sub(above) {
        None => app.above = ABOVE.get(next).copied(),
        Some(to) if row.is_some() => {
            let figure = app.figures().nth(to).map(|metric| metric.name);
            app.figure = figure.unwrap_or(app.figure);
            app.above = None;
        }
        Some(_) => walk_results(app, walk, page),
    }
    view::results::reveal(app);
}

/// From figure to figure; beyond the last, on to the notes below it.
pub(super) fn walk_results(app: &mut App, walk: &Walk, page: usize) {
    let metrics: Vec<&'static str> = app.figures().map(|metric| metric.name).collect();
    let here = app.figure_here().map(|metric| metric.name);
    let row = metrics.iter().position(|name| Some(*name) == here).unwrap_or_default();
    let next = walk.from(row, metrics.len(), page);
    match walk {
        Walk::By(by) if next == row => app.scroll[3] = app.scroll[3].saturating_add_signed(*by as isize),
        _ => app.figure = metrics.get(next).copied().unwrap_or(app.figure),
    }
}

/// Down the comparison: metrics, or targets where they are the rows.
fn walk_compare(app: &mut App, walk: &Walk, page: usize) {
    if view::compare::is_list(app) {
        app.column = walk.from(app.column, app.columns.len(), page);
        return;
    }
    let row = view::compare::metric_index(app);
    let metrics: Vec<&'static str> = view::compare::metrics(app).map(|metric| metric.name).collect();
    app.figure = metrics.get(walk.from(row, metrics.len(), page)).copied().unwrap_or(app.figure);
}

/// Up and down the sweep, or to the ends of its axis.
fn walk_sweep(app: &mut App, walk: &Walk) {
    const ALL: i32 = i32::MAX;
    sweeping::go(
        app,
        match walk {
            Walk::By(by) => (0, -*by),
            Walk::Page(by) => (0, -by.saturating_mul(8)),
            Walk::To(0) => (-ALL, 0),
            Walk::To(_) => (ALL, 0),
        },
    );
}

/// From curve to curve of the frontier, or to the ends of one.
fn walk_frontier(app: &mut App, walk: &Walk) {
    const ALL: i32 = i32::MAX;
    frontier::go(
        app,
        match walk {
            Walk::By(by) => (0, *by),
            Walk::Page(by) => (by.saturating_mul(8), 0),
            Walk::To(0) => (-ALL, 0),
            Walk::To(_) => (ALL, 0),
        },
    );
}
