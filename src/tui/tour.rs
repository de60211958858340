//! Plays guided tours: every step is computed from the beginning of the tour, so that going back is exact.

use std::sync::Arc;

use super::app::{App, Overlay, Snapshot, Tour, View};
use super::message::{Effect, Timer};
use crate::demo::{Action, Demo, Stage, check};

/// Begins a tour; `auto_ms` advances it automatically.
pub(super) fn begin(app: &mut App, demo: Arc<Demo>, auto_ms: Option<u64>, effects: &mut Vec<Effect>) {
    let before = app.now.clone();
    let place = app.place();
    app.status = None;
    app.tour = Some(Tour { demo, step: 0, before, place, outcomes: Vec::new(), error: None, auto_ms });
    show(app, effects);
}

/// One step forward or back; stops at the ends.
pub(super) fn go(app: &mut App, by: isize, effects: &mut Vec<Effect>) {
    let Some(tour) = &mut app.tour else { return };
    let next = tour.step.saturating_add_signed(by);
    if next >= tour.demo.steps.len() {
        super::update::note(app, "this was the last step; Esc leaves and restores everything", effects);
    } else if next != tour.step {
        tour.step = next;
        show(app, effects);
    }
}

/// Advances the tour automatically, unless the user did.
pub(super) fn auto(app: &mut App, step: usize, effects: &mut Vec<Effect>) {
    if app.tour.as_ref().is_some_and(|tour| tour.step == step && tour.auto_ms.is_some()) {
        go(app, 1, effects);
    }
}

/// Ends the tour and restores the state.
pub(super) fn leave(app: &mut App) {
    let Some(tour) = app.tour.take() else { return };
    app.now = tour.before;
    app.overlay = None;
    app.arrive(tour.place);
}

/// Recomputes the step after the files changed.
pub(super) fn refresh(app: &mut App) {
    if let Some(tour) = &mut app.tour {
        let auto_ms = tour.auto_ms.take();
        show(app, &mut Vec::new());
        if let Some(tour) = &mut app.tour {
            tour.auto_ms = auto_ms;
        }
    }
}

fn show(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(tour) = &mut app.tour else { return };
    let (demo, step) = (Arc::clone(&tour.demo), tour.step);
    let (stage, errors) = Stage::at_step(&demo, step, &app.library);
    let expects = demo.steps.get(step).map_or(&[][..], |step| &step.expects);
    let outcomes = expects.iter().map(|expect| check(expect, &stage, &app.library));
    tour.outcomes = outcomes.map(|outcome| (outcome.passed, outcome.text)).collect();
    tour.error = errors.first().map(ToString::to_string);
    if let Some(ms) = tour.auto_ms {
        effects.push(Effect::After { ms, timer: Timer::Auto(tour.step) });
    }
    app.now = Snapshot { setup: stage.setup, marks: stage.marks, baseline: stage.baseline, ..Snapshot::default() };
    app.overlay = (stage.view == View::Help).then_some(Overlay::Help { scroll: 0 });
    app.view = if stage.view == View::Help { View::Main } else { stage.view };
    app.pane = stage.focus;
    app.view_scroll = 0;
    // Select the knob that the step changes last.
    let changed = step_actions(&demo, step).iter().rev().find_map(|action| match action {
        Action::Set(knob, _) => Some(*knob),
        _ => None,
    });
    if let Some(knob) = changed {
        app.knob = knob;
    }
    app.recompute();
}

fn step_actions(demo: &Demo, step: usize) -> &[Action] {
    demo.steps.get(step).map_or(&[], |step| &step.actions)
}
