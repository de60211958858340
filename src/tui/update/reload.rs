//! Applies new content of the files. The user's state is kept for all names that still exist.

use std::sync::Arc;

use crate::demo::Tours;
use crate::theme::Theme;
use crate::tui::app::{Answer, App, Flash, Setup};
use crate::tui::message::{Effect, Timer};
use crate::tui::tour;
use crate::tui::update::status::{fail, note};
use atlas_config::library::Library;
use atlas_core::sort;
use atlas_document::{Diagnostics, Severity};
use atlas_plan::estimate::METRICS;
use atlas_plan::knob::Knob;

/// How long changed entries are highlighted.
const FLASH_MS: u64 = 1_500;

/// Applies new content of the files: keeps names that still exist, and highlights changed entries for a moment.
pub(in crate::tui) fn reloaded(
    app: &mut App,
    library: Arc<Library>,
    demos: Tours,
    problems: Diagnostics,
    effects: &mut Vec<Effect>,
) {
    let mut changed = Vec::new();
    for target in library.targets() {
        if app.library.target(&target.name).is_ok_and(|old| old.document != target.document)
            || app.library.target(&target.name).is_err()
        {
            changed.push(Arc::clone(&target.name));
        }
    }
    for workload in library.workloads() {
        if app.library.workload(&workload.name).map_or(true, |old| old.document != workload.document) {
            changed.push(Arc::clone(&workload.name));
        }
    }
    for profile in library.profiles() {
        let old = app.library.profiles().find(|old| old.name == profile.name);
        if old.is_none_or(|old| !old.is_equivalent_to(profile)) {
            let leans = library
                .targets()
                .iter()
                .filter(|target| library.profile_for(target).is_ok_and(|p| p.name == profile.name));
            changed.extend(leans.map(|target| Arc::clone(&target.name)));
        }
    }
    let gone = removed_entry_message(app, &library);
    let (before, after) = (app.problems.errors(), problems.errors());
    let shown = app.answer.clone();
    app.library = library;
    app.clear_results();
    app.demos = demos;
    app.problems = problems;
    adopt_first_where_empty(app);
    app.recompute();
    // Remove overrides that equal the new values in the files.
    if let Some(files) = &app.answer.files {
        let overrides = &mut app.now.setup.overrides;
        overrides.retain(|knob, setting| files.get(*knob) != *setting);
    }
    tour::refresh(app);
    app.serial += 1;
    if !changed.is_empty() {
        app.flash = flash(app, &shown, &changed);
        effects.push(Effect::After { ms: FLASH_MS, timer: Timer::Flash(app.serial) });
    }
    if let Some(gone) = gone {
        return fail(app, gone);
    }
    match (before, after) {
        (_, 1..) => {
            let first = app.problems.iter().find(|problem| problem.severity == Severity::Error);
            let first =
                first.map_or_else(String::new, |problem| format!("{}: {}", problem.location(), problem.message));
            let summary = app.problems.summary();
            let kept = if app.answer.outcome.is_ok() { "Keeping the last valid content; press" } else { "Press" };
            fail(app, format!("{first}. {kept} ! for details ({summary})."))
        }
        (1.., 0) => {
            app.status = None;
            // The files are valid, but do not have what the scenario needs.
            if let Err(missing) = &app.answer.outcome {
                let missing = missing.clone();
                return fail(app, missing);
            }
            note(app, "All errors fixed", effects);
        }
        _ if !changed.is_empty() => {
            let names = changed.iter().map(|name| &**name).collect::<Vec<_>>().join(", ");
            note(app, format!("reloaded: {names}"), effects);
        }
        _ => {}
    }
}

/// Error message if the target or the workload of the scenario has been removed from the files.
fn removed_entry_message(app: &App, library: &Library) -> Option<String> {
    let Setup { target, workload, .. } = &app.now.setup;
    let says = |kind: &str, name: &str, file: &str, pane: &str| {
        format!("{kind} `{name}` is no longer in {file}: select another one ({pane}) or restore it")
    };
    if let (Ok(old), Err(_)) = (app.library.target(target), library.target(target)) {
        return Some(says("target", target, &old.origin.file, "H"));
    }
    let (Ok(old), Err(_)) = (app.library.workload(workload), library.workload(workload)) else { return None };
    Some(says("workload", workload, &old.origin.file, "W"))
}

/// The entries that changed, and the knobs and metrics whose values differ from those shown before.
fn flash(app: &App, shown: &Answer, changed: &[Arc<str>]) -> Flash {
    let setting = |answer: &Answer, knob: Knob| answer.scenario.as_ref().map(|scenario| scenario.get(knob));
    Flash {
        entries: sort::collect_unsorted(changed.iter().cloned()),
        knobs: sort::collect_unsorted(Knob::all().filter(|knob| setting(shown, *knob) != setting(&app.answer, *knob))),
        metrics: sort::collect_unsorted(METRICS.iter().filter(|m| shown.value(m) != app.answer.value(m)).map(|m| m.id)),
    }
}

/// Replaces the themes. The current theme stays selected, by name.
pub(in crate::tui) fn adopt_themes(app: &mut App, themes: Vec<Arc<Theme>>) {
    if themes.is_empty() {
        return;
    }
    let name = app.theme().map(|theme| theme.name().to_owned());
    app.theme = themes.iter().position(|theme| Some(theme.name()) == name.as_deref()).unwrap_or_default();
    app.themes = themes;
}

/// Selects the first target and workload if none has been selected, because the files were empty before.
fn adopt_first_where_empty(app: &mut App) {
    let Setup { target, workload, .. } = &mut app.now.setup;
    if target.is_empty()
        && let Some(first) = app.library.target_list().first()
    {
        *target = Arc::clone(&first.name);
    }
    if workload.is_empty()
        && let Some(first) = app.library.workload_list().first()
    {
        *workload = Arc::clone(&first.name);
    }
}
