//! The finder: targets, workloads and knobs in one list, matched as one types.

use std::sync::Arc;

use fuzzy_matcher::FuzzyMatcher as _;
use fuzzy_matcher::skim::SkimMatcherV2;

use super::app::{App, Finder, Overlay, Pane, Place, View};
use super::line::Line;
use super::{sweeping, update};
use atlas_plan::knob::KNOBS;

impl Place {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Place::Target(name) | Place::Workload(name) => name,
            Place::Knob(knob) => knob.name(),
        }
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Place::Target(_) => "target",
            Place::Workload(_) => "workload",
            Place::Knob(_) => "knob",
        }
    }
}

/// Opens the finder with everything in it.
pub(super) fn open(app: &mut App) {
    let finder = Finder { matches: matches(app, ""), ..Finder::default() };
    app.overlay = Some(Overlay::Finder(finder));
}

/// Changes what is typed, and what matches.
pub(super) fn typed(app: &mut App, change: impl FnOnce(&mut Line) -> bool) {
    let Some(Overlay::Finder(mut finder)) = app.overlay.take() else { return };
    let before = finder.line.text().to_owned();
    change(&mut finder.line);
    if finder.line.text() != before {
        finder.matches = matches(app, finder.line.text());
        finder.cursor = 0;
    }
    app.overlay = Some(Overlay::Finder(finder));
}

/// Goes to the place under the cursor.
pub(super) fn accept(app: &mut App) {
    let Some(Overlay::Finder(finder)) = app.overlay.take() else { return };
    match finder.matches.get(finder.cursor) {
        Some(Place::Target(name)) => {
            app.pane = Pane::Targets;
            update::select_target(app, Arc::clone(name));
        }
        Some(Place::Workload(name)) => {
            app.pane = Pane::Workloads;
            update::select_workload(app, Arc::clone(name));
        }
        // Where knobs are swept, the one found is what is swept.
        Some(Place::Knob(knob)) if app.view == View::Sweep => sweeping::choose(app, Some(*knob), app.sweeping.against),
        Some(Place::Knob(knob)) => {
            app.pane = Pane::Knobs;
            app.view = View::Main;
            app.back.clear();
            app.knob = *knob;
        }
        None => {}
    }
}

/// Everything that matches, best first; in the order of the panes where nothing is typed.
fn matches(app: &App, typed: &str) -> Vec<Place> {
    let targets =
        app.library.targets().iter().map(|target| (Place::Target(Arc::clone(&target.name)), target.vendor.clone()));
    let workloads = app
        .library
        .workloads()
        .iter()
        .map(|workload| (Place::Workload(Arc::clone(&workload.name)), workload.model.clone().unwrap_or_default()));
    let knobs = KNOBS.iter().map(|spec| (Place::Knob(spec.knob), spec.aliases.join(" ")));
    let all = targets.chain(workloads).chain(knobs);
    if typed.is_empty() {
        return all.map(|(place, _)| place).collect();
    }
    let matcher = SkimMatcherV2::default();
    let exact = |name: &str| name.eq_ignore_ascii_case(typed.trim());
    let mut scored: Vec<((bool, i64), Place)> = all
        .filter_map(|(place, also)| {
            let own = matcher.fuzzy_match(place.name(), typed);
            // A hit in a vendor or an alias counts, after any hit in a name.
            let other = matcher.fuzzy_match(&also, typed).map(|score| score / 4);
            // What is named just so comes first: `tp` is the knob, not the start of a target's name.
            let named = exact(place.name()) || also.split(' ').any(exact);
            own.max(other).map(|score| ((named, score), place))
        })
        .collect();
    scored.sort_by(|(a, _), (b, _)| b.cmp(a));
    scored.into_iter().map(|(_, place)| place).collect()
}

#[cfg(test)]
mod tests {
    use crate::tui::testing::Hands;
    use atlas_document::Sources;

    /// The catalog that ships has targets whose names begin as knobs are called.
    #[test]
    fn what_is_named_just_so_is_found_first() {
        let mut h = Hands::of(&Sources::built_in());
        for knob in atlas_plan::knob::KNOBS {
            h.keys("/").keys(knob.name);
            let text = h.text();
            h.keys("<Enter>");
            assert_eq!(h.app.knob, knob.knob, "{}\n{text}", knob.name);
        }
    }
}
