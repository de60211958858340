//! The state of the application, all of it, as plain data.
//!
//! * this file – the state, and what follows from the scenario
//! * `types` – what the state is made of
//! * `mode` – where keys go

mod mode;
mod types;

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
use super::measured::Measured;
use super::optimum::Seeking;
use super::outlook::Outlook;
pub use super::overlay::{Finder, Overlay, Palette, Place};
pub use super::palette::Command;
use super::panels::Panels;
use super::prompt::Prompt;
use super::race::Race;
use super::scenarios::Tabs;
use super::simulating::Known;
use super::stale::Stale;
use super::sweeping::Sweeping;
use super::tables::{self, Tables};
use super::theme::{Glyphs, Theme};
use super::timeline::Timeline;
use super::work::Queries;
pub use super::write_back::WritePlan;
use crate::demo::Tours;
pub use crate::demo::{Pane, Setup, View};
use atlas_config::library::Library;
use atlas_document::Diagnostics;
use atlas_plan::advice::{Advice, Objective, advise};
use atlas_plan::estimate::{Metric, Section};
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_report::document::Kind;
pub use types::{Change, Edit, Flash, Headline, PANES, Snapshot, Status, Subject, Tour, title};

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
    /// Jobs, the history, and files.
    pub panels: Panels,
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
        let problems = super::loading::problems(&library);
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
            panels: Panels::default(),
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
            history::forget_oldest(&mut self.past);
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
