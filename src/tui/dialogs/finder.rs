//! The finder: targets, workloads and knobs in one list, filtered while typing.

use std::sync::Arc;

use fuzzy_matcher::FuzzyMatcher as _;
use fuzzy_matcher::skim::SkimMatcherV2;

use crate::tui::app::{App, Finder, Overlay, Pane, Place, SearchMatches, View};
use crate::tui::message::Effect;
use crate::tui::update::{applying, status};
use crate::tui::views::sweep;
use crate::tui::widgets::line::Line;
use atlas_core::sort;
use atlas_plan::knob::KNOBS;

impl Place {
    /// Name of the target, workload, knob or metric.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Place::Target(name) | Place::Workload(name) => name,
            Place::Knob(knob) => knob.name(),
            Place::Metric(metric) => metric.label,
        }
    }

    /// Kind of place, as text.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Place::Target(_) => "target",
            Place::Workload(_) => "workload",
            Place::Knob(_) => "knob",
            Place::Metric(_) => "figure",
        }
    }
}

/// Opens the finder with the complete list.
pub(in crate::tui) fn open(app: &mut App) {
    let finder = Finder { matches: matches(app, ""), ..Finder::default() };
    app.overlay = Some(Overlay::Finder(finder));
}

/// Updates the text and the matches.
pub(in crate::tui) fn typed(app: &mut App, change: impl FnOnce(&mut Line) -> bool) {
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
pub(in crate::tui) fn accept(app: &mut App) {
    let Some(Overlay::Finder(finder)) = app.overlay.take() else { return };
    let Some(place) = finder.matches.get(finder.cursor).cloned() else { return };
    go(app, &place);
    app.search = Some(SearchMatches { matches: finder.matches, at: finder.cursor });
}

/// Goes to the next or previous match of the last search and wraps around.
pub(in crate::tui) fn next(app: &mut App, by: i32, effects: &mut Vec<Effect>) {
    let Some(found) = &mut app.search else { return status::note(app, "no search yet; press / to search", effects) };
    let all = i64::try_from(found.matches.len()).unwrap_or(1).max(1);
    let at = (i64::try_from(found.at).unwrap_or_default() + i64::from(by)).rem_euclid(all);
    found.at = usize::try_from(at).unwrap_or_default();
    let text = format!("match {} of {all}", found.at + 1);
    let Some(place) = found.matches.get(found.at).cloned() else { return };
    go(app, &place);
    status::note(app, format!("{text}: {} {}", place.kind(), place.name()), effects);
}

/// Goes to a place.
pub(in crate::tui) fn go(app: &mut App, place: &Place) {
    match Some(place) {
        Some(Place::Target(name)) => {
            app.pane = Pane::Targets;
            applying::select_target(app, Arc::clone(name));
        }
        Some(Place::Workload(name)) => {
            app.pane = Pane::Workloads;
            applying::select_workload(app, Arc::clone(name));
        }
        // In the sweep, the selected knob becomes the horizontal axis.
        Some(Place::Knob(knob)) if app.view == View::Sweep => sweep::choose(app, Some(*knob), app.sweep.against),
        Some(Place::Knob(knob)) => {
            app.pane = Pane::Knobs;
            app.view = View::Main;
            app.back.clear();
            app.knob = *knob;
        }
        Some(Place::Metric(metric)) => {
            app.figure = metric;
            app.headline = None;
            if app.view != View::Compare {
                app.pane = Pane::Results;
                app.view = View::Main;
                app.back.clear();
                crate::tui::views::results::reveal(app);
            }
        }
        None => {}
    }
}

/// All matches, best first; in the order of the panes if nothing is typed.
fn matches(app: &App, typed: &str) -> Vec<Place> {
    let targets =
        app.library.targets().iter().map(|target| (Place::Target(Arc::clone(&target.name)), target.vendor.clone()));
    let workloads = app
        .library
        .workloads()
        .iter()
        .map(|workload| (Place::Workload(Arc::clone(&workload.name)), workload.model.clone().unwrap_or_default()));
    let knobs = KNOBS.iter().map(|spec| (Place::Knob(spec.knob), spec.aliases.join(" ")));
    let figures = app.answer.metrics().map(|metric| (Place::Metric(metric), metric.name.to_owned()));
    let all = targets.chain(workloads).chain(knobs).chain(figures);
    if typed.is_empty() {
        return all.map(|(place, _)| place).collect();
    }
    let matcher = SkimMatcherV2::default();
    let exact = |name: &str| name.eq_ignore_ascii_case(typed.trim());
    let mut scored: Vec<((bool, i64), Place)> = all
        .filter_map(|(place, also)| {
            // Every word must match; matches in vendors and aliases rank after matches in names.
            let score =
                |text: &str| typed.split_whitespace().map(|word| matcher.fuzzy_match(text, word)).sum::<Option<i64>>();
            let own = score(place.name());
            let other = score(&format!("{} {also}", place.name())).map(|score| score / 4);
            // Exact names come first: `tp` is the knob, not the start of a target's name.
            let named = exact(place.name()) || also.split(' ').any(exact);
            own.max(other).map(|score| ((named, score), place))
        })
        .collect();
    // Matches of scattered letters are dropped if something matches literally.
    let literal = |place: &Place| {
        let name = place.name().to_lowercase();
        typed.to_lowercase().split_whitespace().all(|word| name.contains(word))
    };
    if scored.iter().any(|(_, place)| literal(place)) {
        scored.retain(|((named, _), place)| *named || literal(place));
    }
    sort::by(&mut scored, |(a, _), (b, _)| b.cmp(a));
    scored.into_iter().map(|(_, place)| place).collect()
}

#[cfg(test)]
mod tests {
    use crate::tui::testing::TestApp;
    use atlas_document::Sources;

    /// The shipped catalog has targets whose names begin with names of knobs.
    #[test]
    fn finder_ranks_an_exact_knob_name_first() {
        let mut h = TestApp::of(&Sources::built_in());
        for knob in atlas_plan::knob::KNOBS {
            h.keys("/").keys(knob.name);
            let text = h.text();
            h.keys("<Enter>");
            assert_eq!(h.app.knob, knob.knob, "{}\n{text}", knob.name);
        }
    }
}
