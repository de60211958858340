//! The overview: the panes of targets, workloads, knobs and results, and summaries of other views.

mod copy;
mod export;

use std::sync::Arc;

use super::{Spec, Tab, advice, breakdown, edits, outlook, results, schedule};
use crate::tui::app::{App, PANES, Pane};
use crate::tui::input::keymap::{Action, Keys, Mode, Place, SharedKeys, bind};
use crate::tui::screen::{knobs, lists};
use crate::tui::tables::state::Table;
use crate::tui::update::applying;
use crate::tui::views::layout::{self, Areas};
use crate::tui::widgets::draw::Canvas;
use atlas_document::Origin;
use atlas_plan::knob::ValueType;

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Overview",
    tab: Tab { place: 0, name: "Overview", short: "Over" },
    synonyms: "overview main",
    keys_place: Place::BeforeEsc,
    keys: &[
        Keys::In(
            &[Mode::Knobs],
            &[
                bind(&["→", "+", "="], Action::Step(1), "one step up", Some("change")),
                bind(&["←", "-", "_"], Action::Step(-1), "one step down", None),
                bind(&["Enter"], Action::Edit, "type a value; results update as you type", Some("type")),
                bind(&["Space"], Action::Toggle, "toggle, or choose the next value", Some("toggle")),
                bind(&["Backspace", "Delete"], Action::Reset, "reset to the saved value", Some("reset")),
                bind(&["R"], Action::ResetAll, "reset all knobs to the saved values", None),
            ],
        ),
        Keys::In(
            &[Mode::Targets],
            &[
                bind(&["Space"], Action::Mark, "mark for race and comparison", Some("mark")),
                bind(&["m"], Action::MarkNext, "mark and go to the next target", None),
            ],
        ),
        Keys::In(
            &[Mode::Targets, Mode::Workloads],
            &[bind(&["+"], Action::NewEntry, "add an entry, starting from a copy of this one", None)],
        ),
        Keys::In(&[Mode::Targets], &[bind(&["M", "Backspace"], Action::UnmarkAll, "unmark all targets", None)]),
        Keys::In(
            &[Mode::Targets, Mode::Workloads, Mode::Results],
            &[bind(&["R"], Action::ResetAll, "reset all knobs to the saved values", None)],
        ),
        Keys::In(
            &[Mode::Results],
            &[
                bind(&["="], Action::Goal, "goal seek: type the value you want and see how to reach it", Some("goal")),
                bind(&["Space"], Action::Fold, "fold or unfold the group of metrics", Some("fold")),
                bind(&["Enter"], Action::Accept, "explain the metric, down to its inputs", Some("explain")),
            ],
        ),
        Keys::In(&[Mode::Targets, Mode::Workloads], &[bind(&["Enter"], Action::FocusPane(3), "go to the knobs", None)]),
    ],
    shared_keys: &[SharedKeys::Find, SharedKeys::Sort],
    table: |app| {
        Some(match app.pane {
            Pane::Targets => Table::Targets,
            Pane::Workloads => Table::Workloads,
            Pane::Knobs => Table::Knobs,
            Pane::Results => Table::Results,
        })
    },
    draw: |app, canvas, _| draw(app, canvas, &layout::areas(app)),
    info,
    document: export::document,
    item: Some(copy::item),
    copied_table: Some(copy::table),
    click,
    ..Spec::DEFAULT
};

fn draw(app: &App, canvas: &mut Canvas<'_>, areas: &Areas) {
    if areas.summary.height > 0 {
        results::summary(app, canvas, areas.summary);
    }
    PANES.into_iter().for_each(|pane| draw_pane(app, canvas, pane, areas));
    if areas.breakdown.height > 2 {
        breakdown::breakdown(app, canvas, areas.breakdown);
    }
    if areas.advice.height > 0 {
        advice::advice(app, canvas, areas.advice);
    }
    if areas.history.height > 2 {
        edits::view::history(app, canvas, areas.history);
    }
    if areas.outlook.height > 2 {
        outlook::view::outlook(app, canvas, areas.outlook);
    }
    if areas.phases.height > 2 {
        schedule::schedule(app, canvas, areas.phases);
    }
}

/// Draws a pane.
pub(in crate::tui) fn draw_pane(app: &App, canvas: &mut Canvas<'_>, pane: Pane, areas: &Areas) {
    let area = areas.pane(pane);
    if area.is_empty() {
        return;
    }
    match pane {
        Pane::Targets => lists::targets(app, canvas, area),
        Pane::Workloads => lists::workloads(app, canvas, area),
        Pane::Knobs => knobs::knobs(app, canvas, area),
        Pane::Results => results::results(app, canvas, area),
    }
}

fn info(app: &App) -> String {
    let origin = |name: &str, file: &Origin| format!("{name}  [{file}]");
    match app.pane {
        Pane::Targets => app.answer.target.as_ref().map_or_else(String::new, |target| {
            let text = target.description.as_deref().or(target.notes.as_deref()).unwrap_or(&target.vendor);
            origin(text, &target.origin)
        }),
        Pane::Workloads => app.answer.workload.as_ref().map_or_else(String::new, |workload| {
            let text = workload.description.as_deref().or(workload.notes.as_deref()).unwrap_or("no description");
            origin(text, &workload.origin)
        }),
        Pane::Knobs => knobs::info(app),
        Pane::Results if app.headline().is_some() => results::about_headline(app),
        Pane::Results => {
            app.selected_metric().map_or_else(String::new, |metric| format!("{}: {}", metric.label, metric.help))
        }
    }
}

/// Focuses the pane at the position and selects its row there.
fn click(app: &mut App, (column, row): (u16, u16)) -> Option<Action> {
    let (pane, area) = layout::pane_at(&layout::areas(app), column, row)?;
    let focused = app.pane == pane;
    app.pane = pane;
    let inside = row.checked_sub(area.y + 1).filter(|row| usize::from(*row) < layout::inner_rows(area));
    let line = usize::from(inside?);
    match pane {
        Pane::Targets => {
            let name = app.targets().nth(line + app.scroll[0]).map(|(_, target)| Arc::clone(&target.name));
            applying::select_target(app, name?);
            None
        }
        Pane::Workloads => {
            let name = app.workloads().nth(line + app.scroll[1]).map(|workload| Arc::clone(&workload.name));
            applying::select_workload(app, name?);
            None
        }
        Pane::Knobs => {
            let knob = knobs::knob_at(app, line + app.scroll[2])?;
            let again = std::mem::replace(&mut app.knob, knob) == knob;
            let toggles = matches!(knob.spec().kind, ValueType::Toggle | ValueType::Choice(_) | ValueType::Fabric);
            again.then_some(if toggles { Action::Toggle } else { Action::Edit })
        }
        Pane::Results => {
            let again = results::click(app, layout::inner(area), (column, row))?;
            (focused && again).then_some(Action::Accept)
        }
    }
}
