//! Plays guided tours: every step is computed from the beginning of the tour, so that going back is exact.

pub(in crate::tui) mod view;

use std::sync::Arc;

use super::app::{App, Overlay, Snapshot, Tour};
use super::message::{Effect, Timer};
use crate::demo::{Action, Demo, Stage, check};
use atlas_config::library::Entry;
use atlas_config::{Target, Workload};

/// Begins a tour; `auto_ms` advances it automatically.
pub(super) fn begin(app: &mut App, demo: Arc<Demo>, auto_ms: Option<u64>, effects: &mut Vec<Effect>) {
    let demo = if demo.own_files { on_own_files(app, &demo) } else { demo };
    let before = app.now.clone();
    let place = app.place();
    app.status = None;
    app.tour = Some(Tour { demo, step: 0, before, place, outcomes: Vec::new(), error: None, auto_ms });
    show(app, effects);
}

/// Returns the tour with the user's own target and workload: the selected ones if they are the user's own, else the
/// first own ones, else those of the script.
fn on_own_files(app: &App, demo: &Demo) -> Arc<Demo> {
    let setup = &app.now.setup;
    let targets = app.library.target_list();
    let own = |entry: &&Arc<Entry<Target>>| entry.user_entry().is_some();
    let here = targets.iter().find(|entry| entry.name == setup.target).filter(own);
    let target = here.or_else(|| targets.iter().find(own)).map(|entry| Arc::clone(&entry.name));
    let workloads = app.library.workload_list();
    let own = |entry: &&Arc<Entry<Workload>>| entry.user_entry().is_some();
    let here = workloads.iter().find(|entry| entry.name == setup.workload).filter(own);
    let workload = here.or_else(|| workloads.iter().find(own)).map(|entry| Arc::clone(&entry.name));
    Arc::new(Demo {
        targets: target.map_or_else(|| demo.targets.clone(), |target| vec![target]),
        workload: workload.unwrap_or_else(|| Arc::clone(&demo.workload)),
        ..demo.clone()
    })
}

/// Moves forward or back by this many steps; stops at the ends.
pub(super) fn go(app: &mut App, by: isize, effects: &mut Vec<Effect>) {
    let Some(tour) = &mut app.tour else { return };
    let next = tour.step.saturating_add_signed(by);
    if next >= tour.demo.steps.len() {
        crate::tui::update::status::note(
            app,
            "this was the last step; Esc leaves the tour and restores your scenario",
            effects,
        );
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
    app.overlay = stage.help.then_some(Overlay::Help { scroll: 0 });
    app.view = stage.view;
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::tui::testing::TestApp;
    use atlas_document::Sources;

    /// Starts the tour of the user's own files.
    fn played(sources: &Sources) -> TestApp {
        let mut hands = TestApp::of(sources);
        hands.app.demos = crate::demo::Demos::load(None, None).0.into();
        let place = hands.app.demos.iter().position(|demo| demo.own_files).unwrap();
        hands.keys("d").keys(&"j".repeat(place)).keys("<Enter>");
        hands
    }

    #[test]
    fn tour_uses_user_files_when_present_and_fills_in_their_metrics() {
        let dir = tempfile::tempdir().unwrap();
        let (targets, workloads) = (dir.path().join("targets.yaml"), dir.path().join("workloads.yaml"));
        std::fs::write(
            &targets,
            "- name: mine\n  vendor: NVIDIA\n  accelerator: nvidia-h100-sxm-80gb\n  accelerators_per_node: 8\n  \
             num_nodes: 2\n  memory_gb_per_accel: 80\n  network: { type: IB, Gbps_per_accel: 400 }\n  \
             cost: { hourly_usd: 20, energy_watts_node: 10200, pue: 1.2 }\n",
        )
        .unwrap();
        std::fs::write(
            &workloads,
            "- name: my-training\n  mode: training\n  model: llama-3.1-8b\n  sequence: { prompt: 4096, generate: 0 }\n  \
             parallelism: { tp: 2 }\n  precision: { weights: bf16, activations: bf16 }\n  batch: { micro: 1, global: 256 }\n",
        )
        .unwrap();
        let sources = Sources { targets: Some(targets), workloads: Some(workloads), ..Sources::built_in() };
        let mut hands = played(&sources);
        for _ in 0..5 {
            let setup = &hands.app.now.setup;
            assert_eq!((&*setup.target, &*setup.workload), ("mine", "my-training"));
            assert!(hands.app.tour.as_ref().unwrap().error.is_none());
            let text = hands.work().text();
            assert!(!text.contains("not available") && text.contains("of 5"), "{text}");
            hands.keys("<Space>");
        }
    }

    #[test]
    fn tour_uses_the_built_in_catalog_without_user_files() {
        let hands = played(&Sources::built_in());
        let setup = &hands.app.now.setup;
        assert_eq!((&*setup.target, &*setup.workload), ("h100-sxm-8", "llama3.1-70b-serve"));
    }
}
