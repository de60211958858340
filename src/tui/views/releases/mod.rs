//! The releases: every known release of the scenario's software with the metrics it would have, to show the
//! effect of an upgrade.
//!
//! * this file – computes the releases and handles keys
//! * `view` – drawing
//! * `export` – the releases as a document

pub mod state;

pub mod export;
#[cfg(test)]
mod tests;
pub mod view;

pub use state::{Difference, Line, Listed, Row, State};

use std::ops::Range;
use std::sync::Arc;

use atlas_catalog::software::{AcceleratorClass, Software, SoftwareKind, TraitRow};
use atlas_config::Mode;
use atlas_plan::knob::Knob;

use super::{Spec, Tab, alternatives};
use crate::tui::app::{App, View};
use crate::tui::input::keymap::{Action, Keys, bind};
use crate::tui::message::Effect;
use crate::tui::update::status::{fail, note};

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Releases",
    tab: Tab { place: 12, name: "Releases", short: "Rel" },
    synonyms: "releases versions upgrade software",
    opening: Some(bind(
        &["@", "vr"],
        Action::Show(View::Releases),
        "software releases: effects of an upgrade",
        Some("releases"),
    )),
    keys: &[Keys::Own(&[
        bind(&["Enter"], Action::Accept, "switch to this software release", Some("set")),
        bind(&["Space"], Action::Fold, "list the releases with equal traits and figures, or fold them", Some("fold")),
    ])],
    shared_keys: &[],
    rows: view::rows,
    lines_of: super::one_line,
    heading: |_| alternatives::HEADING,
    page: |_, lines| view::page(lines),
    draw: view::draw,
    info: view::info,
    document: |app, _| export::document(app),
    opened: |app, _| app.releases = State::default(),
    follow: |app, _| follow(app),
    works: |app, action| match action {
        Action::Accept => view::rows(app) > 0,
        Action::Fold => listed(app).is_some_and(|all| all.groups().any(|group| group.len() > 1)),
        _ => true,
    },
    accept: apply,
    update: |app, action, _| {
        match action {
            Action::Fold => fold(app),
            _ => return false,
        }
        true
    },
    ..Spec::DEFAULT
};

/// Returns the releases of the current scenario's software.
#[must_use]
pub fn listed(app: &App) -> Option<&Listed> {
    app.releases.listed.as_ref().map(|(_, listed)| listed)
}

/// Returns the lines of the table.
#[must_use]
pub fn lines(state: &State) -> Vec<Line> {
    let Some((_, all)) = &state.listed else { return Vec::new() };
    let is_unfolded =
        |group: &Range<usize>| all.rows.get(group.end - 1).is_some_and(|oldest| state.unfolded.contains(&oldest.spec));
    let lines = all.groups().flat_map(|group| match group.len() {
        1 => vec![Line { releases: group, unfolded: None }],
        _ if !is_unfolded(&group) => vec![Line { releases: group, unfolded: Some(false) }],
        _ => {
            let first = group.start;
            group.map(|at| Line { releases: at..at + 1, unfolded: (at == first).then_some(true) }).collect()
        }
    });
    lines.collect()
}

/// Returns the index of the release under the cursor: of a group, the current one or else the newest.
fn selected(state: &State, line: usize) -> Option<usize> {
    let (_, all) = state.listed.as_ref()?;
    let releases = lines(state).into_iter().nth(line)?.releases;
    Some(all.current.filter(|current| releases.contains(current)).unwrap_or(releases.start))
}

/// Returns the release under the cursor: of a group, the current one or else the newest.
#[must_use]
pub fn selected_release(app: &App) -> Option<&Row> {
    listed(app)?.rows.get(selected(&app.releases, app.view_row)?)
}

/// Folds or unfolds the group under the cursor.
fn fold(app: &mut App) {
    let (Some(all), Some(at)) = (listed(app), selected(&app.releases, app.view_row)) else { return };
    let Some(group) = all.groups().find(|group| group.contains(&at)).filter(|group| group.len() > 1) else { return };
    let Some(oldest) = all.rows.get(group.end - 1).map(|oldest| Arc::clone(&oldest.spec)) else { return };
    if !app.releases.unfolded.remove(&oldest) {
        app.releases.unfolded.insert(oldest);
    }
    go_to(app, at);
}

/// Moves the cursor to the line of a release.
fn go_to(app: &mut App, release: usize) {
    let line = lines(&app.releases).iter().position(|line| line.releases.contains(&release));
    app.view_row = line.unwrap_or_default();
}

/// Returns the value of a trait that the engine uses: the tuned value if the software's own recipes change it.
fn current_value(row: &TraitRow) -> &str {
    row.tuned.as_deref().unwrap_or(&row.value)
}

fn differences(before: &[TraitRow], after: &[TraitRow], kind: SoftwareKind) -> Vec<Difference> {
    let own = after.iter().filter(|row| row.kind == kind);
    let pairs = own.filter_map(|row| {
        let other = before.iter().find(|other| other.kind == kind && other.key == row.key)?;
        let (before, after) = (current_value(other).to_owned(), current_value(row).to_owned());
        (before != after).then(|| Difference { name: row.key, before, after, source: row.source.clone() })
    });
    pairs.collect()
}

/// Evaluates every release of the current software.
fn list(app: &App) -> Listed {
    let answer = &app.answer;
    let (Some(scenario), Some(parts)) = (&answer.scenario, &answer.parts) else { return Listed::default() };
    let kind = match scenario.mode() {
        Mode::Training => SoftwareKind::Training,
        Mode::Inference => SoftwareKind::Serving,
    };
    let Ok(own) = Software::parse_for(&scenario.software_name(), kind) else { return Listed::default() };
    let (Some(sheet), Some(machine)) = (&parts.accelerator, &scenario.machine) else { return Listed::default() };
    let class = AcceleratorClass::of(sheet, machine.dies);
    let family = Arc::clone(&own.family);
    let traits =
        |release: Option<usize>| Software { family: Arc::clone(&family), release, caveat: None }.traits(&class);
    let now = traits(own.release);
    let mut before: Option<Vec<TraitRow>> = None;
    let mut rows: Vec<Row> = Vec::new();
    for (index, release) in family.releases.iter().enumerate() {
        let spec: Arc<str> = format!("{}@{}", family.id, release.id).into();
        let of_release = traits(Some(index));
        let answer = alternatives::answer(app, Knob::Software, &spec);
        rows.push(Row {
            spec,
            release: release.id.clone(),
            date: release.date.map_or_else(String::new, |date| date.to_string()),
            values: alternatives::metrics(scenario.mode()).map(|metric| answer.value(metric)).collect(),
            refused: alternatives::refused(&answer),
            brought: before.as_deref().map(|last| differences(last, &of_release, kind)).unwrap_or_default(),
            differs: differences(&now, &of_release, kind),
        });
        before = Some(of_release);
    }
    rows.reverse();
    let name = own.release().map(|release| release.id.as_str());
    let current = rows.iter().position(|row| Some(row.release.as_str()) == name);
    Listed { family: family.name.clone(), rows, current }
}

/// Evaluates the releases if the scenario has changed. The cursor starts on the current release, and stays on its release.
fn follow(app: &mut App) {
    let fresh = app.releases.listed.as_ref().is_some_and(|(generation, _)| *generation == app.generation);
    if fresh {
        return;
    }
    let before = selected_release(app).map(|row| Arc::clone(&row.spec));
    let all = list(app);
    let same = before.and_then(|spec| all.rows.iter().position(|row| row.spec == spec));
    let release = same.or(all.current).unwrap_or_default();
    app.releases.listed = Some((app.generation, all));
    go_to(app, release);
}

/// Applies the release under the cursor.
fn apply(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(row) = selected_release(app) else { return fail(app, "this software has no releases to choose from") };
    let spec = Arc::clone(&row.spec);
    if app.answer.scenario.as_ref().is_some_and(|scenario| scenario.software_name() == spec) {
        return note(app, format!("{spec} is the current release"), effects);
    }
    alternatives::set(app, Knob::Software, &spec, effects);
}
