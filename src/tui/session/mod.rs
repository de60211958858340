//! The session: tabs with their knobs, view, selection, order and theme, as a document that the next start reads. Names
//! that no longer exist in the files are reported and are not errors.

pub mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::app::{App, Pane, Setup, Snapshot, View};
use super::tables::state::{Sort, Table};
use crate::tui::views::edits::{MAX_NAMED_POINTS, NamedPoint};
use crate::tui::views::frontier::FrontierSettings;
use crate::tui::views::scenarios::{self, Place};
use crate::tui::views::sweep::SweepSettings;
use atlas_config::Mode;
use atlas_core::sort;
use atlas_document::Diagnostic;
use atlas_plan::estimate::{Metric, Section};
use atlas_plan::knob::{Knob, KnobValues as _, Overrides, Setting, ValueType};
use atlas_plan::search::metric;

pub use store::{SessionMode, Store};

/// The version of the document that this program writes, and the newest it reads.
const VERSION: u32 = 1;

/// The document of a session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Document {
    /// Version of the document.
    version: u32,
    /// The theme, unless it is the default for the terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    theme: Option<String>,
    /// The current tab.
    current: usize,
    /// The pinned tab.
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned: Option<usize>,
    /// The metric by which the comparison is sorted.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<String>,
    /// Sort orders of lists, by list name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    sorted: BTreeMap<String, String>,
    /// Groups of metrics that are folded or unfolded by hand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    folds: Vec<String>,
    /// Named points of the history.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    points: BTreeMap<String, SetupDocument>,
    /// The metrics of the comparison, by mode.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metrics: BTreeMap<String, Vec<String>>,
    /// The tabs.
    tabs: Vec<TabDocument>,
}

/// The document of a tab.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct TabDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(flatten)]
    setup: SetupDocument,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    marks: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<SetupDocument>,
    view: String,
    pane: String,
    knob: String,
    figure: String,
    row: usize,
    column: usize,
    /// Knobs chosen for the sweep: horizontal axis, vertical axis.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sweep: Vec<String>,
    /// Index of the pair of metrics of the frontier.
    #[serde(skip_serializing_if = "is_first")]
    frontier: usize,
}

fn is_first(place: &usize) -> bool {
    *place == 0
}

/// The document of a setup.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct SetupDocument {
    target: String,
    workload: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    knobs: BTreeMap<String, String>,
}

impl SetupDocument {
    fn of(setup: &Setup) -> SetupDocument {
        let knobs = setup.overrides.iter().map(|(knob, setting)| (knob.name().to_owned(), setting.to_string()));
        SetupDocument {
            target: setup.target.to_string(),
            workload: setup.workload.to_string(),
            knobs: sort::collect_unsorted(knobs),
        }
    }

    fn read(&self, problems: &mut Vec<String>) -> Setup {
        let mut overrides = Overrides::new();
        for (name, text) in &self.knobs {
            let read = Knob::named(name).and_then(|knob| {
                let fabric = matches!(knob.spec().kind, ValueType::Fabric);
                // The target defines the fabrics; they are known once the scenario is computed.
                let setting = if fabric { Setting::Choice(text.as_str().into()) } else { knob.parse(text, &[])? };
                Ok((knob, setting))
            });
            match read {
                Ok((knob, setting)) => drop(overrides.insert(knob, setting)),
                Err(error) => problems.push(error.to_string()),
            }
        }
        Setup { target: self.target.as_str().into(), workload: self.workload.as_str().into(), overrides }
    }
}

fn named<T: Copy>(names: &[(&str, T)], name: &str) -> Option<T> {
    names.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> String {
    names.iter().find(|(_, known)| known == value).map_or_else(String::new, |(name, _)| (*name).to_owned())
}

const LISTS: [(&str, Table); 8] = [
    ("targets", Table::Targets),
    ("workloads", Table::Workloads),
    ("compare", Table::Compare),
    ("advice", Table::Advice),
    ("knobs", Table::Knobs),
    ("results", Table::Results),
    ("problems", Table::Problems),
    ("schedule", Table::Schedule),
];

fn sort_name(sort: Sort) -> Option<&'static str> {
    match sort {
        Sort::Natural => None,
        Sort::Name => Some("name"),
        Sort::Kind => Some("kind"),
        Sort::Value => Some("value"),
        Sort::Change => Some("change"),
        Sort::Metric(metric) => Some(metric.name),
        // Columns of the schedule are not saved.
        Sort::Column { .. } => None,
    }
}

fn sort_named(name: &str) -> Option<Sort> {
    match name {
        "name" => Some(Sort::Name),
        "kind" => Some(Sort::Kind),
        "value" => Some(Sort::Value),
        "change" => Some(Sort::Change),
        other => Metric::named(other).map(Sort::Metric),
    }
}

/// Names of the knobs chosen for a sweep.
fn chosen(sweep: &SweepSettings) -> Vec<String> {
    let across = sweep.across.into_iter();
    // A vertical axis alone is not saved, because the horizontal one follows the cursor.
    across.flat_map(|across| std::iter::once(across).chain(sweep.against)).map(|knob| knob.name().to_owned()).collect()
}

/// Returns the session of the current state. `suited` is the default theme for the terminal.
#[must_use]
pub fn capture(app: &App, suited: &str) -> Document {
    let tabs = app.all_tabs().map(|tab| TabDocument {
        name: tab.name.as_deref().map(str::to_owned),
        setup: SetupDocument::of(&tab.now.setup),
        marks: tab.now.marks.iter().map(ToString::to_string).collect(),
        baseline: tab.now.baseline.as_ref().map(SetupDocument::of),
        view: tab.place.view.name().to_owned(),
        pane: name_of(&Pane::NAMES, &tab.place.pane),
        knob: tab.place.knob.name().to_owned(),
        figure: tab.place.figure.name.to_owned(),
        row: tab.place.view_row,
        column: tab.place.column,
        sweep: chosen(&tab.place.sweep),
        frontier: tab.place.frontier.pair,
    });
    let sorted = LISTS
        .into_iter()
        .filter_map(|(name, table)| Some((name.to_owned(), sort_name(app.tables.sort(table))?.to_owned())));
    let chosen = [Mode::Training, Mode::Inference].into_iter();
    let metrics = chosen.filter_map(|mode| {
        let names = app.chosen.of(mode)?.iter().map(|metric| metric.name.to_owned());
        Some((mode.name().to_owned(), names.collect()))
    });
    Document {
        version: VERSION,
        theme: app.theme().map(|theme| theme.name().to_owned()).filter(|name| name != suited),
        current: app.tabs.current(),
        pinned: app.tabs.pinned(),
        order: app.order.map(|metric| metric.name.to_owned()),
        sorted: sort::collect_unsorted(sorted),
        folds: app.folds.iter().map(|section| section.name().to_owned()).collect(),
        points: sort::collect_unsorted(
            app.points.iter().map(|point| (point.name.to_string(), SetupDocument::of(&point.setup))),
        ),
        metrics: sort::collect_unsorted(metrics),
        tabs: tabs.collect(),
    }
}

/// Restores a session. Returns what could not be restored.
pub fn restore(document: &Document, app: &mut App) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(name) = &document.theme {
        // Spelling of version 0.1.
        let name = if name == "colour-blind" { "color-blind" } else { name };
        match app.themes.iter().position(|theme| theme.name() == name) {
            Some(index) => app.theme = index,
            None => problems.push(format!("the theme `{name}` no longer exists")),
        }
    }
    app.order = document.order.as_deref().and_then(Metric::named);
    for (name, table) in LISTS {
        if let Some(sort) = document.sorted.get(name).and_then(|sort| sort_named(sort)) {
            app.tables.set_sort(table, sort);
        }
    }
    for mode in [Mode::Training, Mode::Inference] {
        let Some(names) = document.metrics.get(mode.name()) else { continue };
        let known: Vec<_> = names.iter().filter_map(|name| metric::named(name)).collect();
        app.chosen.set(mode, (!known.is_empty()).then_some(known));
    }
    app.folds = document.folds.iter().filter_map(|name| Section::named(name)).collect();
    let points = document.points.iter().take(MAX_NAMED_POINTS);
    let points =
        points.map(|(name, setup)| NamedPoint { name: name.as_str().into(), setup: setup.read(&mut problems) });
    app.points = points.collect();
    let fallback = app.now.setup.clone();
    let mut tabs = Vec::new();
    for (index, tab) in document.tabs.iter().enumerate() {
        let mut setup = tab.setup.read(&mut problems);
        // Missing names are kept, because they may return with the next change of the files. Only the current tab falls
        // back, so that the screen is not empty.
        if index == document.current {
            let library = &app.library;
            let gone = [
                (&mut setup.target, &fallback.target, library.target(&tab.setup.target).is_err()),
                (&mut setup.workload, &fallback.workload, library.workload(&tab.setup.workload).is_err()),
            ];
            for (name, other, _) in gone.into_iter().filter(|(.., gone)| *gone) {
                problems.push(format!("`{name}` no longer exists"));
                name.clone_from(other);
            }
        }
        let marks: BTreeSet<Arc<str>> = sort::collect_unsorted(tab.marks.iter().map(|name| name.as_str().into()));
        let baseline = tab.baseline.as_ref().map(|baseline| baseline.read(&mut problems));
        let usual = Place::default();
        let place = Place {
            view: View::named(&tab.view).unwrap_or_default(),
            pane: named(&Pane::NAMES, &tab.pane).unwrap_or_default(),
            knob: Knob::named(&tab.knob).unwrap_or(usual.knob),
            figure: Metric::named(&tab.figure).unwrap_or(usual.figure),
            view_row: tab.row,
            column: tab.column,
            sweep: SweepSettings {
                across: tab.sweep.first().and_then(|name| Knob::find(name)),
                against: tab.sweep.get(1).and_then(|name| Knob::find(name)),
                ..SweepSettings::default()
            },
            frontier: FrontierSettings { pair: tab.frontier, ..FrontierSettings::default() },
            ..usual
        };
        let name = tab.name.as_deref().map(Arc::from);
        tabs.push((name, Snapshot { setup, marks, baseline, ..Snapshot::default() }, place));
    }
    app.set_tabs(tabs, document.current, document.pinned);
    problems
}

/// Shows the target and workload given by flags, else the state of the session. `first` is the setup of a new session;
/// it provides the target or the workload if only one flag is given. Returns a message for each unknown name.
pub fn select(app: &mut App, first: Setup, target: &Option<String>, workload: &Option<String>) -> Vec<String> {
    if target.is_none() && workload.is_none() {
        app.recompute();
        return Vec::new();
    }
    let (mut setup, mut unknown) = (first, Vec::new());
    if let Some(name) = target {
        let found = app.library.target(name).map(|target| setup.target = Arc::clone(&target.name));
        unknown.extend(found.err().map(|problem| unknown_name("target", name, problem)));
    }
    if let Some(name) = workload {
        let found = app.library.workload(name).map(|workload| setup.workload = Arc::clone(&workload.name));
        unknown.extend(found.err().map(|problem| unknown_name("workload", name, problem)));
    }
    show(app, setup);
    unknown
}

/// A message that fits a line: the suggestion, if there is one, instead of the list of known names.
fn unknown_name(kind: &str, name: &str, problem: Diagnostic) -> String {
    problem.help.map_or(problem.message, |near| format!("no {kind} `{name}`; {near}"))
}

/// Shows a scenario: on a tab that has it unchanged, else on the current tab if that is the only one, unchanged and
/// unnamed, else on a new tab.
fn show(app: &mut App, setup: Setup) {
    let untouched = |snapshot: &Snapshot| snapshot.setup.overrides.is_empty() && snapshot.baseline.is_none();
    let same = (0..app.tabs.count())
        .find(|place| app.tab_snapshot(*place).is_some_and(|snapshot| untouched(snapshot) && snapshot.setup == setup));
    let now = Snapshot { setup, ..Snapshot::default() };
    if let Some(place) = same {
        scenarios::show(app, place, &mut Vec::new());
    } else if app.tabs.count() == 1 && untouched(&app.now) && app.tabs.list().iter().all(|tab| tab.name.is_none()) {
        app.now = now;
    } else {
        scenarios::add(app, None, now, Place::default(), &mut Vec::new());
    }
    app.status = None;
    app.arrive(Place::default());
}

impl Document {
    /// Reads a session.
    ///
    /// # Errors
    /// Returns the reason why the document is not a valid session of a supported version.
    pub fn parse(text: &str) -> Result<Document, Unreadable> {
        let broken = |error: serde_json::Error| Unreadable::Broken(error.to_string());
        // Read the version first: newer documents may have other fields.
        let Version { version } = serde_json::from_str(text).map_err(broken)?;
        if version > VERSION {
            return Err(Unreadable::Newer(version));
        }
        let document: Document = serde_json::from_str(text).map_err(broken)?;
        match document.version {
            VERSION if document.tabs.is_empty() => Err(Unreadable::Broken("it has no tabs".to_owned())),
            VERSION => Ok(document),
            other => Err(Unreadable::Broken(format!("it has version {other}, expected {VERSION}"))),
        }
    }

    /// The text of the session.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// Why a session cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It was written by a later release.
    #[error("it has version {0}, but this program supports only versions up to {VERSION}")]
    Newer(u32),
    /// It is damaged or not a session.
    #[error("{0}")]
    Broken(String),
}

/// The part that all versions share.
#[derive(serde::Deserialize)]
struct Version {
    #[serde(default)]
    version: u32,
}

#[cfg(test)]
mod tests;
