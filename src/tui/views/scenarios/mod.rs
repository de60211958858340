//! Scenarios on tabs, each with its own history and view. The current one
//! is in [`App`], the others are stored here. If one is pinned, it is the baseline of every tab.

pub mod state;
pub mod view;

pub use crate::tui::app::snapshot::TabId;
use crate::tui::app::{Answer, App, Change, Setup, Snapshot, View};
use crate::tui::dialogs::prompt::state::{Prompt, Purpose};
use crate::tui::message::Effect;
use crate::tui::update::status::note;
use crate::tui::widgets::line::Line;
use state::MAX_CLOSED_TABS;
pub use state::{MAX_TABS, Place, Tab, Tabs};

use std::sync::Arc;

use atlas_plan::knob::Overrides;

/// Longest name shown, in characters.
const MAX_LABEL_CHARACTERS: usize = 28;

impl App {
    /// The snapshot of the tab at an index.
    #[must_use]
    pub fn tab_snapshot(&self, place: usize) -> Option<&Snapshot> {
        if place == self.tabs.current { Some(&self.now) } else { self.tabs.list.get(place).map(|tab| &tab.now) }
    }

    /// Label of a tab: its name, else its target and changed knobs.
    #[must_use]
    pub fn tab_label(&self, place: usize) -> String {
        let Some(tab) = self.tabs.list.get(place) else { return String::new() };
        if let Some(name) = &tab.name {
            return name.to_string();
        }
        let Some(Snapshot { setup, .. }) = self.tab_snapshot(place) else { return String::new() };
        // What distinguishes it from other tabs: target and workload if they differ, and changed knobs.
        let others = || (0..self.tabs.list.len()).filter_map(|other| self.tab_snapshot(other));
        let mut words = Vec::new();
        if setup.overrides.is_empty() || others().any(|other| other.setup.target != setup.target) {
            words.push(setup.target.to_string());
        }
        if others().any(|other| other.setup.workload != setup.workload) {
            words.push(setup.workload.to_string());
        }
        words.extend(setup.overrides.iter().map(|(knob, setting)| format!("{}={setting}", knob.name())));
        let mut label = words.join(" ");
        if label.chars().count() > MAX_LABEL_CHARACTERS {
            label = label.chars().take(MAX_LABEL_CHARACTERS - 1).chain(['…']).collect();
        }
        label
    }

    /// The setup of the pinned tab; `None` during a tour, which has its own baseline.
    #[must_use]
    pub fn pinned_setup(&self) -> Option<&Setup> {
        let place = self.tabs.pinned().filter(|_| self.tour.is_none())?;
        self.tab_snapshot(place).map(|snapshot| &snapshot.setup)
    }

    /// The baseline setup; `None` for the values in the files of the same target and workload.
    #[must_use]
    pub fn reference(&self) -> Option<&Setup> {
        self.pinned_setup().or(self.now.baseline.as_ref())
    }

    /// Index of the tab that the difference is shown against: the chosen one, else the pinned one, else the
    /// previous one, else any other. `None` if there is no other tab.
    #[must_use]
    pub fn diff_place(&self) -> Option<usize> {
        let tabs = &self.tabs;
        let other = |id: Option<TabId>| tabs.place_of(id?).filter(|place| *place != tabs.current);
        let neighbor = || (0..tabs.list.len()).rev().find(|place| *place != tabs.current);
        other(tabs.against).or_else(|| other(tabs.pinned)).or_else(|| other(tabs.before)).or_else(neighbor)
    }

    pub(in crate::tui) fn place(&self) -> Place {
        Place {
            view: self.view,
            back: self.back.clone(),
            pane: self.pane,
            knob: self.knob,
            figure: self.figure,
            scroll: self.scroll,
            view_scroll: self.view_scroll,
            view_row: self.view_row,
            toggled: self.toggled.clone(),
            column: self.column,
            sweep: self.sweep.clone(),
            frontier: self.frontier.clone(),
        }
    }

    /// Restores view and cursors, and recomputes the scenario.
    pub(in crate::tui) fn arrive(&mut self, place: Place) {
        self.go_to(place);
        self.recompute();
    }

    fn go_to(&mut self, place: Place) {
        self.view = place.view;
        self.back = place.back;
        self.pane = place.pane;
        self.knob = place.knob;
        self.figure = place.figure;
        self.headline = None;
        self.scroll = place.scroll;
        self.view_scroll = place.view_scroll;
        self.view_row = place.view_row;
        self.toggled = place.toggled;
        self.column = place.column;
        self.sweep = place.sweep;
        self.frontier = place.frontier;
    }

    /// Every tab in its current state, for the session.
    pub fn all_tabs(&self) -> impl Iterator<Item = Tab> {
        self.tabs.list.iter().enumerate().map(|(place, tab)| {
            let here = place == self.tabs.current;
            if here { self.parked(tab) } else { tab.clone() }
        })
    }

    fn parked(&self, tab: &Tab) -> Tab {
        // During a tour, store the state that the tour will restore.
        let (now, place) = match &self.tour {
            Some(tour) => (tour.before.clone(), tour.place.clone()),
            None => (self.now.clone(), self.place()),
        };
        Tab { now, past: self.past.clone(), future: self.future.clone(), place, ..tab.clone() }
    }

    fn park(&mut self) {
        let (now, place) = (self.now.clone(), self.place());
        let (past, future) = (std::mem::take(&mut self.past), std::mem::take(&mut self.future));
        if let Some(tab) = self.tabs.list.get_mut(self.tabs.current) {
            (tab.now, tab.place, tab.past, tab.future) = (now, place, past, future);
        }
    }

    /// Loads the tab at an index. The current tab must have been stored.
    fn unpark(&mut self, place: usize) {
        self.tabs.current = place.min(self.tabs.list.len().saturating_sub(1));
        if let Some(tab) = self.tabs.list.get_mut(self.tabs.current) {
            let (past, future) = (std::mem::take(&mut tab.past), std::mem::take(&mut tab.future));
            let (now, place) = (tab.now.clone(), tab.place.clone());
            (self.now, self.past, self.future) = (now, past, future);
            self.go_to(place);
        }
        self.last_change = None;
        self.edit = None;
        self.offer = None;
        self.recompute();
    }

    /// Replaces all tabs by those of a session. Selects the first if `current` is out of range.
    pub fn set_tabs(&mut self, tabs: Vec<(Option<Arc<str>>, Snapshot, Place)>, current: usize, pinned: Option<usize>) {
        if tabs.is_empty() {
            return;
        }
        let mut list = Vec::new();
        for (name, now, place) in tabs.into_iter().take(MAX_TABS) {
            let id = self.tabs.fresh_id();
            list.push(Tab { id, name, now, past: Vec::new(), future: Vec::new(), place });
        }
        self.tabs.pinned = pinned.and_then(|place| list.get(place)).map(|tab| tab.id);
        self.tabs.list = list;
        let current = if current < self.tabs.list.len() { current } else { 0 };
        self.unpark(current);
    }
}

/// Shows the tab at an index.
pub(in crate::tui) fn show(app: &mut App, place: usize, effects: &mut Vec<Effect>) {
    if place >= app.tabs.list.len() {
        let tabs = app.tabs.list.len();
        return note(app, format!("no tab {}: {tabs} open; T duplicates this one", place + 1), effects);
    }
    if place != app.tabs.current {
        app.tabs.before = app.tabs.id_here();
        // The tab of the difference may be the current one now.
        app.tabs.against = app.tabs.against.filter(|id| app.tabs.place_of(*id) != Some(place));
        app.park();
        app.unpark(place);
    }
}

/// Shows the next or previous tab.
pub(in crate::tui) fn step(app: &mut App, by: i32, effects: &mut Vec<Effect>) {
    let tabs = app.tabs.list.len();
    if tabs == 1 {
        return note(app, "this is the only tab; T duplicates it", effects);
    }
    let next = (app.tabs.current as i64 + i64::from(by)).rem_euclid(tabs as i64);
    show(app, usize::try_from(next).unwrap_or_default(), effects);
}

/// Opens another tab with the same scenario, or with the values in the files of its target and workload.
pub(in crate::tui) fn open(app: &mut App, duplicate: bool, effects: &mut Vec<Effect>) {
    let mut now = app.now.clone();
    let mut place = app.place();
    if !duplicate {
        now = Snapshot { setup: Setup { overrides: Overrides::new(), ..now.setup }, ..Snapshot::default() };
        place = Place { view: View::Main, pane: place.pane, ..Place::default() };
    }
    add(app, None, now, place, effects);
}

/// Opens a tab next to the current one and switches to it.
pub fn add(app: &mut App, name: Option<Arc<str>>, now: Snapshot, place: Place, effects: &mut Vec<Effect>) {
    if app.tabs.list.len() >= MAX_TABS {
        return note(app, format!("at most {MAX_TABS} tabs can be open; tc closes this one"), effects);
    }
    let id = app.tabs.fresh_id();
    let at = app.tabs.current + 1;
    app.park();
    app.tabs.before = app.tabs.id_here();
    app.tabs.list.insert(at, Tab { id, name, now, past: Vec::new(), future: Vec::new(), place });
    app.unpark(at);
    note(app, format!("tab {} of {}; [ and ] switch, tr names it, tc closes it", at + 1, app.tabs.list.len()), effects);
}

/// Closes this tab. Undo brings it back.
pub(in crate::tui) fn close(app: &mut App, effects: &mut Vec<Effect>) {
    if app.tabs.list.len() == 1 {
        return note(app, "this is the only tab; q quits", effects);
    }
    let label = app.tab_label(app.tabs.current);
    let at = app.tabs.current;
    app.park();
    if at < app.tabs.list.len() {
        let tab = app.tabs.list.remove(at);
        app.tabs.closed.push((at, tab));
    }
    if app.tabs.closed.len() > MAX_CLOSED_TABS {
        app.tabs.closed.remove(0);
    }
    app.unpark(at.saturating_sub(usize::from(at >= app.tabs.list.len())));
    app.last_change = Some(Change::Closed);
    note(app, format!("closed {label}; u or Ctrl-T reopens it"), effects);
}

/// Reopens the tab that was closed last. Returns whether there was one.
pub(in crate::tui) fn reopen(app: &mut App, effects: &mut Vec<Effect>) -> bool {
    let Some((at, tab)) = app.tabs.closed.pop() else {
        note(app, "no closed tab to reopen", effects);
        return false;
    };
    let at = at.min(app.tabs.list.len());
    app.park();
    app.tabs.before = app.tabs.id_here();
    app.tabs.list.insert(at, tab);
    app.unpark(at);
    note(app, format!("{} is back", app.tab_label(at)), effects);
    true
}

/// Pins or unpins this tab as the baseline of every tab.
pub(in crate::tui) fn pin(app: &mut App, effects: &mut Vec<Effect>) {
    let here = app.tabs.id_here();
    app.push_undo(Change::Single);
    repin(app, if app.tabs.pinned == here { None } else { here });
    let text = if app.tabs.pinned.is_none() {
        "unpinned; deltas are relative to the saved values again".to_owned()
    } else {
        format!("pinned {}: deltas on all tabs are relative to it", app.tab_label(app.tabs.current))
    };
    app.recompute();
    note(app, text, effects);
}

/// Pins another tab, or none, as part of the last undo step.
fn repin(app: &mut App, pinned: Option<TabId>) {
    let before = std::mem::replace(&mut app.tabs.pinned, pinned);
    app.past.last_mut().into_iter().for_each(|step| step.pinned = Some(before));
}

/// Unpins, because another baseline was chosen, as part of the last undo step. Returns whether
/// a tab was pinned.
pub(in crate::tui) fn unpin(app: &mut App) -> bool {
    let pinned = app.tabs.pinned.is_some();
    if pinned {
        repin(app, None);
    }
    pinned
}

/// Replaces the current snapshot with `other` and returns the former one. The pin and the name of the tab are exchanged
/// too if the undo step changed them.
pub(in crate::tui) fn exchange(app: &mut App, mut other: Snapshot) -> Snapshot {
    let pinned = other.pinned.take().map(|pinned| std::mem::replace(&mut app.tabs.pinned, pinned));
    let tab = app.tabs.list.get_mut(app.tabs.current);
    let name = tab.zip(other.name.take()).map(|(tab, name)| std::mem::replace(&mut tab.name, name));
    Snapshot { pinned, name, ..std::mem::replace(&mut app.now, other) }
}

/// Opens the prompt for a name.
pub(in crate::tui) fn rename(app: &mut App) {
    let name = app.tabs.list.get(app.tabs.current).and_then(|tab| tab.name.clone());
    let line = Line::selected(name.as_deref().unwrap_or_default());
    app.prompt = Some(Prompt { purpose: Purpose::TabName, line, before: String::new(), error: None });
}

/// Names this tab; an empty name removes it.
pub(in crate::tui) fn set_name(app: &mut App, name: &str) {
    let name: Option<Arc<str>> = Some(name.trim())
        .filter(|name| !name.is_empty())
        .map(|name| name.chars().take(MAX_LABEL_CHARACTERS).collect::<String>().into());
    if app.tabs.list.get(app.tabs.current).is_none_or(|tab| tab.name == name) {
        return;
    }
    app.push_undo(Change::Single);
    let tab = app.tabs.list.get_mut(app.tabs.current);
    let before = tab.map(|tab| std::mem::replace(&mut tab.name, name));
    app.past.last_mut().into_iter().for_each(|step| step.name = before.clone());
}

/// Shows the difference to the next or previous tab.
pub(in crate::tui) fn diff_against(app: &mut App, by: i32) {
    let places: Vec<usize> = (0..app.tabs.list.len()).filter(|place| *place != app.tabs.current).collect();
    let Some(here) = app.diff_place().and_then(|place| places.iter().position(|other| *other == place)) else { return };
    let next = (here as i64 + i64::from(by)).rem_euclid(places.len() as i64);
    let place = usize::try_from(next).ok().and_then(|next| places.get(next));
    app.tabs.against = place.and_then(|place| app.tabs.list.get(*place)).map(|tab| tab.id);
}

/// The other side of the difference: another tab, else the baseline.
#[must_use]
pub fn other_side(app: &App) -> (String, Answer, Setup) {
    match app.diff_place().and_then(|place| Some((place, app.tab_snapshot(place)?))) {
        Some((place, snapshot)) => {
            let label = format!("{} {}", place + 1, app.tab_label(place));
            (label, app.answered(&snapshot.setup), snapshot.setup.clone())
        }
        None => {
            let files = Setup { overrides: Overrides::new(), ..app.now.setup.clone() };
            let setup = app.reference().cloned().unwrap_or(files);
            let label = if app.reference().is_some() { "the baseline" } else { "saved values" };
            (label.to_owned(), app.baseline.clone(), setup)
        }
    }
}

#[cfg(test)]
mod tests;
