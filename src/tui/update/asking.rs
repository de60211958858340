//! Applies a typed question to the scenario and the race: model, settings and hardware in one undo step.

use std::sync::Arc;

use crate::tui::app::{App, Change, View};
use crate::tui::message::Effect;
use crate::tui::update::showing;
use crate::tui::update::status::{fail, note};
use crate::tui::views::race;
use atlas_assistant::{Intent, Known, Question};
use atlas_plan::knob::{Knob, Setting};

/// Carries out a typed question.
pub(in crate::tui) fn ask(app: &mut App, question: &Question, effects: &mut Vec<Effect>) {
    let known = Known::of(&app.library);
    let workload = match question.workload(&known) {
        Ok(found) => found.map(|workload| Arc::from(workload.name.as_str())),
        Err(trouble) => return fail(app, trouble.to_string()),
    };
    let targets = match question.targets(&known) {
        Ok(targets) => targets,
        Err(trouble) => return fail(app, trouble.to_string()),
    };
    let intent = question.intent();
    let mut after = app.now.clone();
    let mut words = Vec::new();
    if let Some(workload) = workload.or_else(|| of_mode(app, question)) {
        words.push(format!("{workload}"));
        after.setup.workload = workload;
    }
    // Several targets start a race; a single one is selected.
    if let [(target, nodes)] = targets.as_slice()
        && intent != Intent::Set
    {
        words.push(target.name.clone());
        after.setup.target = target.name.as_str().into();
        if let Some(nodes) = nodes {
            after.setup.overrides.insert(Knob::NumNodes, Setting::Number(f64::from(*nodes)));
        }
    }
    let tokens = question.tokens.map(|tokens| (Knob::TrainTokens, Setting::Number(tokens)));
    for (knob, setting) in question.settings.iter().cloned().chain(tokens) {
        words.push(format!("{}={setting}", knob.name()));
        after.setup.overrides.insert(knob, setting);
    }
    if after.setup != app.now.setup {
        app.push_undo(Change::Single);
        app.now = after;
        app.recompute();
    }
    if intent == Intent::Race {
        app.race.question = Some(question.goal());
        if app.view != View::Race {
            showing::show(app, View::Race, effects);
        }
        return race::begin(app);
    }
    if words.is_empty() {
        return;
    }
    note(app, format!("{}; u undoes it", words.join(", ")), effects);
}

/// The workload of the current model in the mode that the question names, if it differs from the current mode. Falls
/// back to the first workload of that mode.
fn of_mode(app: &App, question: &Question) -> Option<Arc<str>> {
    let mode = question.mode?;
    let here = app.answer.workload.as_ref()?;
    if here.shape.mode == mode {
        return None;
    }
    let all = || app.library.workloads().iter().filter(|workload| workload.shape.mode == mode);
    let same = all().find(|workload| workload.model.is_some() && workload.model == here.model);
    same.or_else(|| all().next()).map(|workload| Arc::clone(&workload.name))
}
