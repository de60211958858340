//! The timeline: the tasks of every stream and stage in a simulated step, and which task waited for which.

pub(in crate::tui) mod export;
pub mod state;
pub mod view;

pub use state::{Lane, Picture, Timeline};

use std::sync::Arc;

use super::{Spec, Tab};
use crate::tui::app::{App, View};
use crate::tui::input::keymap::{Action, Keys, Place, bind};
use crate::tui::input::movement::Movement;
use atlas_config::Mode;
use atlas_sim::training::Task;

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Timeline",
    tab: Tab { place: 8, name: "Timeline", short: "Time" },
    synonyms: "timeline simulate trace gantt events",
    opening: Some(bind(&["9"], Action::Show(View::Timeline), "timeline (simulated)", Some("timeline"))),
    keys_place: Place::BeforeEsc,
    keys: &[Keys::Own(&[
        bind(&["+", "="], Action::Zoom(1), "zoom in", Some("zoom")),
        bind(&["-", "_"], Action::Zoom(-1), "zoom out", None),
        bind(&["→", "l"], Action::Focus(1), "next task in the stream", Some("task")),
        bind(&["←", "h"], Action::Focus(-1), "previous task", None),
        bind(&["Enter"], Action::Accept, "go to the task it waited for", Some("cause")),
        bind(&["Tab"], Action::Across(1), "switch charts: scaling or latencies", Some("chart")),
    ])],
    draw: view::timeline,
    info: view::info,
    document: |app, _| export::document(app),
    works: |app, action| {
        !matches!(action, Action::Accept | Action::Focus(_) | Action::Zoom(_))
            || (picture(app) == Picture::Tasks && app.timeline.task_under_cursor().is_some())
    },
    move_cursor: |app, movement, _| match *movement {
        Movement::By(by) => across(&mut app.timeline, by),
        Movement::Page(by) => pan(&mut app.timeline, by),
        Movement::To(row) => to_end(&mut app.timeline, row > 0),
    },
    accept: |app, _| cause(&mut app.timeline),
    update: |app, action, _| {
        match action {
            Action::Focus(by) => along(&mut app.timeline, by),
            Action::Across(_) => next_chart(app),
            Action::Zoom(by) => zoom(&mut app.timeline, by),
            _ => return false,
        }
        true
    },
    ..Spec::DEFAULT
};

/// The chart shown, among those that apply to the workload.
#[must_use]
pub fn picture(app: &App) -> Picture {
    let mode = app.answer.scenario.as_ref().map_or(Mode::Training, |scenario| scenario.mode());
    let all = Picture::all(mode);
    if all.contains(&app.timeline.picture) { app.timeline.picture } else { all[0] }
}

/// Selects another chart.
fn next_chart(app: &mut App) {
    let mode = app.answer.scenario.as_ref().map_or(Mode::Training, |scenario| scenario.mode());
    let here = picture(app);
    let other = Picture::all(mode).into_iter().find(|other| *other != here);
    app.timeline.picture = other.unwrap_or(here);
}

/// Shows the run of the current scenario. Until it arrives, the previous one stays.
pub(in crate::tui) fn show_current_run(app: &mut App) {
    if let Some(run) = app.current_run().map(Arc::clone) {
        app.timeline.look_at(Some(run));
    }
}

/// Moves by tasks within the lane.
fn along(timeline: &mut Timeline, by: i32) {
    let last = timeline.lanes.get(timeline.lane).map_or(0, |lane| lane.tasks.len().saturating_sub(1));
    timeline.place = timeline.place.saturating_add_signed(by as isize).min(last);
    timeline.follow();
}

/// Moves to another lane, to the task at about the same time.
fn across(timeline: &mut Timeline, by: i32) {
    let middle = |task: &Task| 0.5 * (task.begin + task.end);
    let (from, to) = timeline.window;
    let at = timeline.task_under_cursor().and_then(|here| timeline.task(here)).map_or(0.5 * (from + to), middle);
    let last = timeline.lanes.len().saturating_sub(1);
    timeline.lane = timeline.lane.saturating_add_signed(by as isize).min(last);
    let away = |number: &u32| timeline.task(*number).map_or(f64::INFINITY, |task| (middle(task) - at).abs());
    let nearest = timeline.lanes.get(timeline.lane).and_then(|lane| {
        let places = lane.tasks.iter().enumerate();
        places.min_by(|a, b| away(a.1).total_cmp(&away(b.1))).map(|(place, _)| place)
    });
    timeline.place = nearest.unwrap_or_default();
    timeline.follow();
}

/// Moves to the first or the last task of the lane.
fn to_end(timeline: &mut Timeline, last: bool) {
    along(timeline, if last { i32::MAX } else { -i32::MAX });
}

/// Zooms at the task under the cursor.
fn zoom(timeline: &mut Timeline, by: i32) {
    let (from, to) = timeline.window;
    let task = timeline.task_under_cursor().and_then(|here| timeline.task(here));
    let middle = task.map_or(0.5 * (from + to), |task| 0.5 * (task.begin + task.end));
    let width = (to - from) * 2f64.powi(-by);
    // The task under the cursor keeps its position on the screen.
    let share = ((middle - from) / (to - from).max(1e-12)).clamp(0.0, 1.0);
    timeline.show(middle - share * width, width);
    timeline.follow();
}

/// Scrolls in time by a share of the visible range.
fn pan(timeline: &mut Timeline, by: i32) {
    let (from, to) = timeline.window;
    timeline.show(from + 0.8 * f64::from(by) * (to - from), to - from);
}

/// Moves to the task that the one under the cursor waited for.
fn cause(timeline: &mut Timeline) {
    let after = timeline.task_under_cursor().and_then(|here| timeline.task(here)).and_then(|task| task.after);
    if let Some(after) = after.filter(|after| timeline.task(*after).is_some()) {
        timeline.go_to(after);
    }
}
