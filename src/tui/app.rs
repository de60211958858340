//! The state of the application, all of it, as plain data.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

pub use super::answer::Answer;
use super::assistant::Conversation;
use super::comparison::Chosen;
pub use super::finder::Found;
use super::frontier::Trading;
use super::history::{self, Named, Point};
use super::keymap::Mode;
use super::line::Line;
use super::measured::Measured;
use super::optimum::Seeking;
use super::outlook::Outlook;
pub use super::overlay::{Finder, Overlay, Palette, Place};
pub use super::palette::Command;
use super::prompt::Prompt;
use super::race::Race;
use super::scenarios::{self, TabId, Tabs};
use super::simulating::Known;
use super::stale::Stale;
use super::sweeping::Sweeping;
use super::tables::{self, Tables};
use super::theme::{Glyphs, Theme};
use super::timeline::Timeline;
use super::work::Queries;
pub use super::write_back::WritePlan;
use crate::demo::{Demo, Tours};
pub use crate::demo::{Pane, Setup, View};
use atlas_config::library::Library;
use atlas_document::Diagnostics;
use atlas_plan::advice::{Advice, Objective, advise};
use atlas_plan::estimate::{Estimate, Metric, Section};
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_report::document::Kind;

/// What undo brings back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// The scenario.
    pub setup: Setup,
    /// Targets marked for the comparison.
    pub marks: BTreeSet<Arc<str>>,
    /// What deltas are against; the files' values of the same target and workload where unset.
    pub baseline: Option<Setup>,
    /// Which tab was pinned, where the change that followed was of that.
    pub pinned: Option<Option<TabId>>,
    /// How the tab was called, where the change that followed was of that.
    pub name: Option<Option<Arc<str>>>,
}

/// The panes in the order Tab goes.
pub const PANES: [Pane; 4] = [Pane::Targets, Pane::Workloads, Pane::Knobs, Pane::Results];

/// A pane's title.
#[must_use]
pub fn title(pane: Pane) -> &'static str {
    match pane {
        Pane::Targets => "Targets",
        Pane::Workloads => "Workloads",
        Pane::Knobs => "Knobs",
        Pane::Results => "Results",
    }
}

/// A value being typed.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    /// Of which knob.
    pub knob: Knob,
    /// What is typed.
    pub line: Line,
    /// What the scenario was before.
    pub before: Setup,
    /// Why what is typed is no value.
    pub error: Option<String>,
}

/// A tour being played.
#[derive(Debug, Clone)]
pub struct Tour {
    /// The script.
    pub demo: Arc<Demo>,
    /// The step shown.
    pub step: usize,
    /// What was before, to be put back.
    pub before: Snapshot,
    /// Where one was before.
    pub place: scenarios::Place,
    /// How the step's expectations came out: held or not, and what was compared.
    pub outcomes: Vec<(bool, String)>,
    /// What went wrong with the step's actions.
    pub error: Option<String>,
    /// Goes on by itself after so many ms.
    pub auto_ms: Option<u64>,
}

/// The line of status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What it says.
    pub text: String,
    /// Errors stay until Esc; notes go by themselves.
    pub error: bool,
    /// Serial number.
    pub serial: u64,
}

/// What stands out for a moment after the files were read anew.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flash {
    /// Targets and workloads.
    pub entries: BTreeSet<Arc<str>>,
    /// Knobs whose value is another.
    pub knobs: BTreeSet<Knob>,
    /// Metrics, by name, whose figure is another.
    pub metrics: BTreeSet<&'static str>,
}

/// What stands above the figures of the results, and can be explained as they can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headline {
    /// Whether it can run.
    Verdict,
    /// What bounds it.
    Limits,
}

/// What an explanation is of, where that is not the scenario on the screen: what was predicted for a measured row.
#[derive(Debug, Clone)]
pub struct Subject {
    /// What it is, in words.
    pub name: String,
    /// The scenario.
    pub scenario: Scenario,
    /// Where its numbers come from.
    pub parts: Parts,
    /// What the engine says of it.
    pub estimate: Estimate,
}

/// What kind of change went before: equal ones in a row are one step of undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Steps of one knob.
    Step(Knob),
    /// Walking along a list.
    Walk(Pane),
    /// A tab was closed; undo brings it back.
    Closed,
    /// Anything else: a step of its own.
    Single,
}

/// All of it.
#[derive(Debug, Clone)]
pub struct App {
    /// The files' content.
    pub library: Arc<Library>,
    /// The tours.
    pub demos: Tours,
    /// Complaints about files, themes and tours.
    pub problems: Diagnostics,
    /// The themes, and which is in force.
    pub themes: Vec<Arc<Theme>>,
    /// Index into `themes`.
    pub theme: usize,
    /// The characters the terminal can show.
    pub glyphs: Glyphs,
    /// Columns and rows.
    pub size: (u16, u16),
    /// What of the picture drawn last does not show this state.
    pub stale: Stale,
    /// The scenarios; the one on the screen is below.
    pub tabs: Tabs,
    /// What undo brings back.
    pub now: Snapshot,
    /// Points of the history that have a name.
    pub points: Vec<Named>,
    /// The points of the history, worked out when they are looked at.
    trail: OnceCell<Vec<Point>>,
    /// Before, oldest first.
    pub past: Vec<Snapshot>,
    /// Undone, next redo last.
    pub future: Vec<Snapshot>,
    /// The last change, for grouping.
    pub last_change: Option<Change>,
    /// The focused pane.
    pub pane: Pane,
    /// What fills the screen.
    pub view: View,
    /// Where Esc leads from what was opened in another view, with the row that was under the cursor there; the last first.
    pub back: Vec<(View, usize)>,
    /// What lies over it.
    pub overlay: Option<Overlay>,
    /// A value being typed.
    pub edit: Option<Edit>,
    /// A line being typed at the foot of the screen.
    pub prompt: Option<Prompt>,
    /// How the tables are filtered and sorted.
    pub tables: Tables,
    /// The knob under the cursor of the knobs pane.
    pub knob: Knob,
    /// The figure under the cursor of the results, and of the comparison.
    pub figure: &'static str,
    /// The line above the figures that is under the cursor in their place.
    pub above: Option<Headline>,
    /// Groups of figures that are not folded or unfolded as the size of the screen has it.
    pub folds: Vec<Section>,
    /// What is explained in place of the scenario on the screen.
    pub subject: Option<Arc<Subject>>,
    /// First rows shown of targets, workloads, knobs, results.
    pub scroll: [usize; 4],
    /// First row shown in a full-screen view.
    pub view_scroll: usize,
    /// The row under the cursor of a full-screen view that has one.
    pub view_row: usize,
    /// Nodes of the explanation that are not folded or unfolded as usual, by their path.
    pub toggled: BTreeSet<String>,
    /// The comparison's column under the cursor.
    pub column: usize,
    /// The metric that orders the comparison's columns, best first; the files' order where unset.
    pub order: Option<&'static str>,
    /// The metrics that the comparison shows.
    pub chosen: Chosen,
    /// Whether what is described at the foot took more than its line.
    pub tall: bool,
    /// The line of status.
    pub status: Option<Status>,
    /// The shipped file that the next `e` writes here and opens: offered, not done unasked.
    pub offer: Option<PathBuf>,
    /// Counts statuses and flashes, so that an old timer cannot end a new one.
    pub serial: u64,
    /// What just changed on disk.
    pub flash: Flash,
    /// A tour being played.
    pub tour: Option<Tour>,
    /// Where records go.
    pub out: PathBuf,
    /// Counts what [`App::recompute`] worked out: what was asked before is of another scenario.
    pub generation: u64,
    /// What views have asked the workers, and the answers.
    pub queries: Queries,
    /// What the sweep turns.
    pub sweeping: Sweeping,
    /// What the frontier trades.
    pub trading: Trading,
    /// What the optimizer seeks.
    pub seeking: Seeking,
    /// The race.
    pub race: Race,
    /// Questions in words.
    pub assistant: Conversation,
    /// What the last search found.
    pub found: Option<Found>,
    /// What the outlook asks.
    pub outlook: Outlook,
    /// What has been simulated.
    pub known: Known,
    /// What the timeline shows.
    pub timeline: Timeline,
    /// Where a target's own profile goes.
    pub profiles: PathBuf,
    /// Measured rows, and a calibration that is proposed.
    pub measured: Measured,
    /// The format that was exported last.
    pub export_kind: Kind,
    /// The scenario on the screen.
    pub answer: Answer,
    /// The playbook's advice, worked out when it is looked at.
    advice: OnceCell<Vec<Advice>>,
    /// What deltas are against.
    pub baseline: Answer,
    /// The comparison's columns: every marked target, or all where fewer than two are marked.
    pub columns: Vec<(Arc<str>, Answer)>,
}

impl App {
    /// The start: the first target and workload, the files' values.
    #[must_use]
    pub fn new(
        library: Arc<Library>,
        demos: impl Into<Tours>,
        themes: Vec<Arc<Theme>>,
        glyphs: Glyphs,
        size: (u16, u16),
    ) -> App {
        let first = |name: Option<&Arc<str>>| name.cloned().unwrap_or_default();
        let setup = Setup {
            target: first(library.target_list().first().map(|target| &target.name)),
            workload: first(library.workload_list().first().map(|workload| &workload.name)),
            overrides: Overrides::new(),
        };
        let answer = Answer::of(&library, &setup);
        let problems = library.problems().clone();
        App {
            library,
            demos: demos.into(),
            problems,
            themes,
            theme: 0,
            glyphs,
            size,
            stale: Stale::All,
            tabs: Tabs::default(),
            now: Snapshot { setup, ..Snapshot::default() },
            points: Vec::new(),
            trail: OnceCell::new(),
            past: Vec::new(),
            future: Vec::new(),
            last_change: None,
            pane: Pane::Targets,
            view: View::Main,
            back: Vec::new(),
            overlay: None,
            edit: None,
            prompt: None,
            tables: Tables::default(),
            knob: Knob::Engine,
            figure: "tokens_per_sec",
            above: None,
            folds: Vec::new(),
            subject: None,
            scroll: [0; 4],
            view_scroll: 0,
            view_row: 0,
            toggled: BTreeSet::new(),
            column: 0,
            order: None,
            chosen: Chosen::default(),
            tall: false,
            status: None,
            offer: None,
            serial: 0,
            flash: Flash::default(),
            tour: None,
            out: PathBuf::from("out"),
            generation: 0,
            queries: Queries::default(),
            sweeping: Sweeping::default(),
            trading: Trading::default(),
            seeking: Seeking::default(),
            race: Race::default(),
            assistant: Conversation::default(),
            found: None,
            outlook: Outlook::default(),
            known: Known::default(),
            timeline: Timeline::default(),
            profiles: PathBuf::from("workload/profiles"),
            measured: Measured::default(),
            export_kind: Kind::default(),
            advice: OnceCell::new(),
            baseline: answer.clone(),
            answer,
            columns: Vec::new(),
        }
    }

    /// Where keys go.
    #[must_use]
    pub fn mode(&self) -> Mode {
        if self.prompt.is_some() {
            return Mode::Prompting;
        }
        match (&self.edit, &self.overlay) {
            (Some(_), _) => return Mode::Editing,
            (_, Some(Overlay::Help { .. })) => return Mode::Helping,
            (_, Some(Overlay::Finder(_))) => return Mode::Finding,
            (_, Some(Overlay::Palette(_))) => return Mode::Commanding,
            (_, Some(Overlay::WriteBack { .. })) => return Mode::Confirming,
            (_, Some(Overlay::Demos { .. })) => return Mode::Choosing,
            (_, Some(Overlay::Goal(_))) => return Mode::Seeking,
            (_, Some(Overlay::Assistant)) => return Mode::Conversing,
            _ if self.view == View::Race && self.race.typing.is_some() => return Mode::Asking,
            _ if self.view == View::Optimum && self.seeking.typing.is_some() => return Mode::Bounding,
            (_, Some(Overlay::Form(_))) => return Mode::Filling,
            (_, Some(Overlay::Export(_))) => return Mode::Exporting,
            _ => {}
        }
        self.mode_below()
    }

    /// Where keys would go without what lies over the screen.
    #[must_use]
    pub fn mode_below(&self) -> Mode {
        if self.tour.is_some() {
            return Mode::Touring;
        }
        match (self.view, self.pane) {
            (View::Race, _) => Mode::Race,
            (View::Compare, _) => Mode::Compare,
            (View::Breakdown, _) => Mode::Breakdown,
            (View::Advice, _) => Mode::Advice,
            (View::Explain, _) => Mode::Explain,
            (View::Schedule, _) => Mode::Schedule,
            (View::Problems, _) => Mode::Problems,
            (View::Sweep, _) => Mode::Sweep,
            (View::Frontier, _) => Mode::Frontier,
            (View::Sensitivity, _) => Mode::Sensitivity,
            (View::Optimum, _) => Mode::Optimum,
            (View::Diff, _) => Mode::Diff,
            (View::Timeline, _) => Mode::Timeline,
            (View::Measurements, _) => Mode::Measurements,
            (View::Main | View::Help, Pane::Targets) => Mode::Targets,
            (View::Main | View::Help, Pane::Workloads) => Mode::Workloads,
            (View::Main | View::Help, Pane::Knobs) => Mode::Knobs,
            (View::Main | View::Help, Pane::Results) => Mode::Results,
        }
    }

    /// The theme in force.
    #[must_use]
    pub fn theme(&self) -> Option<&Arc<Theme>> {
        self.themes.get(self.theme)
    }

    /// Works out what depends on the scenario. Called once per change of it.
    pub fn recompute(&mut self) {
        self.answer = self.answered(&self.now.setup);
        self.generation += 1;
        self.advice = OnceCell::new();
        self.trail = OnceCell::new();
        self.subject = None;
        self.measured.stale();
        self.baseline = match self.reference() {
            Some(setup) => self.answered(setup),
            // Nothing is turned: this is what the files say.
            None if self.now.setup.overrides.is_empty() => self.answer.clone(),
            None => {
                let files = Setup { overrides: Overrides::new(), ..self.now.setup.clone() };
                self.answered(&files)
            }
        };
        tables::arrange(self);
        self.recompute_columns();
    }

    /// The metric under the cursor of the results.
    #[must_use]
    pub fn figure_here(&self) -> Option<&'static Metric> {
        // What a filter hides from the results can still be explained from elsewhere.
        let elsewhere = |metric: &&Metric| self.view != View::Main || self.asks_for_figure(metric);
        let here = self.answer.metrics().filter(elsewhere).find(|metric| metric.name == self.figure);
        here.or_else(|| self.figures().next())
    }

    /// The line above the figures that is under the cursor, where there is one.
    #[must_use]
    pub fn headline(&self) -> Option<Headline> {
        self.above.filter(|_| self.answer.detail().is_some())
    }

    /// The row of the selected target.
    #[must_use]
    pub fn target_row(&self) -> Option<usize> {
        self.targets().position(|(_, target)| target.name == self.now.setup.target)
    }

    /// The row of the selected workload.
    #[must_use]
    pub fn workload_row(&self) -> Option<usize> {
        self.workloads().position(|workload| workload.name == self.now.setup.workload)
    }

    /// The place of the knob under the cursor among them.
    #[must_use]
    pub fn knob_index(&self) -> usize {
        let here = self.knob_here();
        self.knobs().position(|spec| spec.knob == here).unwrap_or_default()
    }

    /// Remembers the present for undo, unless the same kind of change went just before.
    pub fn remember(&mut self, change: Change) {
        if change == Change::Single || self.last_change != Some(change) {
            self.past.push(self.now.clone());
        }
        self.future.clear();
        self.trail = OnceCell::new();
        self.last_change = Some(change);
    }

    /// The points of the history, oldest first.
    #[must_use]
    pub fn trail(&self) -> &[Point] {
        self.trail.get_or_init(|| history::points(self))
    }

    /// What the playbook advises on the scenario, best first.
    #[must_use]
    pub fn advice(&self) -> &[Advice] {
        self.advice.get_or_init(|| {
            let answer = &self.answer;
            match (&answer.scenario, &answer.parts, &answer.outcome) {
                (Some(scenario), Some(parts), Ok(estimate)) if estimate.detail.is_some() => {
                    advise(scenario, parts, estimate, Objective::default())
                }
                _ => Vec::new(),
            }
        })
    }

    /// Turns a knob; a value equal to the files' is no override.
    pub fn turn(&mut self, knob: Knob, setting: Setting) {
        self.lay_over(knob, setting);
        self.outlook.turned = Some(knob);
        self.recompute();
    }

    /// Turns a knob, without working out what follows.
    pub fn lay_over(&mut self, knob: Knob, setting: Setting) {
        let same = self.answer.files.as_ref().is_some_and(|files| files.get(knob) == setting);
        if same {
            self.now.setup.overrides.remove(&knob);
        } else {
            self.now.setup.overrides.insert(knob, setting);
        }
    }
}
