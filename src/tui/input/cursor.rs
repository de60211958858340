//! Moves the cursor of every list, table and chart.

use std::sync::Arc;

use crate::tui::app::{App, Finder, Headline, Overlay, Palette};
use crate::tui::dialogs::{detecting, export, form, help};
use crate::tui::input::keymap::Mode;
use crate::tui::input::movement::Movement;
use crate::tui::update::applying::{select_target, select_workload};
use crate::tui::views::layout::{self, Areas};
use crate::tui::views::{assistant, results};

/// Moves the cursor or scrolls in a mode.
pub(in crate::tui) fn move_cursor(app: &mut App, mode: Mode, movement: Movement) {
    // Only page movements depend on the height of a pane.
    let areas = if let Movement::Page(_) = movement { layout::areas(app) } else { Areas::default() };
    match mode {
        Mode::Targets => {
            let (rows, page) = (app.targets().count(), layout::inner_rows(areas.targets));
            let row = movement.from(app.target_row().unwrap_or_default(), rows, page);
            let name = app.targets().nth(row).map(|(_, target)| Arc::clone(&target.name));
            if let Some(name) = name {
                select_target(app, name);
            }
        }
        Mode::Workloads => {
            let (rows, page) = (app.workloads().count(), layout::inner_rows(areas.workloads));
            let row = movement.from(app.workload_row().unwrap_or_default(), rows, page);
            let name = app.workloads().nth(row).map(|workload| Arc::clone(&workload.name));
            if let Some(name) = name {
                select_workload(app, name);
            }
        }
        Mode::Knobs => {
            let row = movement.from(app.knob_index(), app.knobs().count(), layout::inner_rows(areas.knobs));
            let there = app.knobs().nth(row).map(|spec| spec.knob);
            app.knob = there.unwrap_or(app.knob);
        }
        Mode::Results => move_in_pane(app, &movement, layout::inner_rows(areas.results)),
        Mode::View(view) => (view.spec().move_cursor)(app, &movement, layout::inner_rows(areas.body)),
        Mode::Helping => {
            let (rows, page) = help::extent(app);
            if let Some(Overlay::Help { scroll }) = &mut app.overlay {
                *scroll = movement.from(*scroll, (rows + 1).saturating_sub(page), page);
            }
        }
        Mode::Choosing => {
            let rows = app.demos.len();
            if let Some(Overlay::Demos { cursor }) = &mut app.overlay {
                *cursor = movement.from(*cursor, rows, rows);
            }
        }
        Mode::Finding => {
            if let Some(Overlay::Finder(Finder { matches, cursor, .. })) = &mut app.overlay {
                *cursor = movement.from(*cursor, matches.len(), 10);
            }
        }
        Mode::OptimizerForm => {
            if let Some(Overlay::Goal(seek)) = &mut app.overlay {
                seek.cursor = movement.from(seek.cursor, seek.rows().len(), 10);
            }
        }
        Mode::Commanding => {
            if let Some(Overlay::Palette(Palette { matches, cursor, trouble, .. })) = &mut app.overlay {
                // Without matches, the error message scrolls. Its number of words is an upper bound on its number of
                // lines.
                let rows = match trouble {
                    Some(trouble) if matches.is_empty() => trouble.split_whitespace().count(),
                    _ => matches.len(),
                };
                *cursor = movement.from(*cursor, rows, 10);
            }
        }
        Mode::Conversing => match movement {
            Movement::By(by) => assistant::recall(app, by),
            Movement::Page(by) => assistant::scroll(app, by),
            Movement::To(_) => {}
        },
        Mode::Confirming => {
            if let Some(Overlay::WriteBack { plan, scroll }) = &mut app.overlay {
                *scroll = movement.from(*scroll, plan.lines().len(), 10);
            }
        }
        Mode::Filling => {
            if let Movement::By(by) = movement {
                form::go(app, by);
            }
        }
        Mode::Exporting => {
            if let Movement::By(by) = movement {
                export::choose(app, by);
            }
        }
        Mode::Detecting => detecting::scroll(app, &movement),
        Mode::Editing
        | Mode::Asking
        | Mode::Bounding
        | Mode::Touring
        | Mode::Prompting
        | Mode::AfterV
        | Mode::AfterT => {}
    }
}

/// Moves through the results: the headlines first, then the metrics.
fn move_in_pane(app: &mut App, movement: &Movement, page: usize) {
    const ABOVE: [Headline; 2] = [Headline::Verdict, Headline::Limits];
    let above = if app.answer.detail().is_some() { ABOVE.len() } else { 0 };
    let figures = app.figures().count();
    let here = app.selected_metric();
    let figure = app.figures().position(|metric| Some(metric) == here).unwrap_or_default();
    let row = app.headline().and_then(|line| ABOVE.iter().position(|known| *known == line));
    let next = movement.from(row.unwrap_or(above + figure), above + figures, page);
    // `To(0)` goes to the first metric, and from there or from a headline to the first headline.
    let next = if matches!(movement, Movement::To(0)) && row.is_none() && figure > 0 { above } else { next };
    match next.checked_sub(above) {
        None => app.headline = ABOVE.get(next).copied(),
        Some(to) if row.is_some() => {
            let figure = app.figures().nth(to);
            app.figure = figure.unwrap_or(app.figure);
            app.headline = None;
        }
        Some(_) => results::move_to_metric(app, movement, page),
    }
    results::reveal(app);
}
