//! The complete state of the application as plain data.
//!
//! * this file – the state and what is derived from the scenario
//! * `types` – the parts of the state
//! * `mode` – which mode handles keys

pub mod answer;
mod mode;
pub(in crate::tui) mod overlay;
pub(in crate::tui) mod snapshot;
pub mod stale;
pub(in crate::tui) mod types;

use atlas_plan::scenario::Parts;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::demo::Tours;
pub use crate::demo::{Pane, Setup, View};
use crate::theme::{Glyphs, Theme};
pub use crate::tui::app::answer::Answer;
pub use crate::tui::app::overlay::{Finder, Overlay, Palette, Place, SearchMatches};
use crate::tui::app::types::DirtyRegion;
use crate::tui::dialogs::detecting::state as detecting;
pub use crate::tui::dialogs::palette::state::Command;
use crate::tui::dialogs::prompt::state::Prompt;
pub use crate::tui::dialogs::write_back::state::WritePlan;
use crate::tui::tables::state::Tables;
use crate::tui::views::assistant::state::Conversation;
use crate::tui::views::comparison::state::Chosen;
use crate::tui::views::edits::state::{NamedPoint, Point};
use crate::tui::views::frontier::state::FrontierSettings;
use crate::tui::views::measurements::state::Measured;
use crate::tui::views::optimum::state::OptimizerForm;
use crate::tui::views::outlook::state::Outlook;
use crate::tui::views::race::state::Race;
use crate::tui::views::scenarios::state::Tabs;
use crate::tui::views::sweep::state::SweepSettings;
use crate::tui::views::timeline::state::Timeline;
use crate::tui::views::{
    fits::state as fits, formats::state as formats, history::state as history, idle::state as idle,
    launch::state as launch, releases::state as releases, watch::state as watch,
};
use crate::tui::widgets::graphics::Graphics;
use crate::tui::work::queries::Queries;
use crate::tui::work::simulating::state::SimulationCache;
use atlas_config::library::Library;
use atlas_document::Diagnostics;
use atlas_plan::advice::Advice;
use atlas_plan::estimate::{Metric, MetricId, Section};
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_report::document::DocumentFormat;
pub use snapshot::Snapshot;
pub use types::{Change, Edit, Flash, Headline, MeasuredSubject, PANES, Status, Tour, title};

/// Maximum number of results of earlier setups that are kept.
const RECENT: usize = 32;

/// The complete state.
#[derive(Debug, Clone)]
pub struct App {
    /// Contents of the files.
    pub library: Arc<Library>,
    /// The tours.
    pub demos: Tours,
    /// Problems in files, themes and tours.
    pub problems: Diagnostics,
    /// All themes.
    pub themes: Vec<Arc<Theme>>,
    /// Index into `themes`.
    pub theme: usize,
    /// Characters that the terminal can display.
    pub glyphs: Glyphs,
    /// Images that the terminal displays.
    pub graphics: Graphics,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Which parts of the screen are out of date.
    pub stale: DirtyRegion,
    /// The tabs; the current scenario is in `now`.
    pub tabs: Tabs,
    /// The state that undo restores.
    pub now: Snapshot,
    /// Named points of the history.
    pub points: Vec<NamedPoint>,
    /// Points of the history, computed when first shown.
    trail: OnceCell<Vec<Point>>,
    /// Points of the history before the last change; those that have not changed are reused.
    previous_points: Vec<Point>,
    /// States to undo to, oldest first.
    pub past: Vec<Snapshot>,
    /// States to redo, the next one last.
    pub future: Vec<Snapshot>,
    /// The last change, to group repeated edits into one undo step.
    pub last_change: Option<Change>,
    /// The focused pane.
    pub pane: Pane,
    /// The current view.
    pub view: View,
    /// Views to which Esc returns, with their cursor rows, the most recent last.
    pub back: Vec<(View, usize)>,
    /// The open dialog.
    pub overlay: Option<Overlay>,
    /// The value being edited.
    pub edit: Option<Edit>,
    /// The prompt at the bottom of the screen.
    pub prompt: Option<Prompt>,
    /// The mode that handles the next key, after the first key of a two-key sequence.
    pub after: Option<crate::tui::input::keymap::Mode>,
    /// How the tables are filtered and sorted.
    pub tables: Tables,
    /// The selected knob.
    pub knob: Knob,
    /// The selected metric of results and comparison.
    pub figure: &'static Metric,
    /// The selected headline, if the cursor is above the metrics.
    pub headline: Option<Headline>,
    /// Groups of metrics whose folding differs from the default for the screen size.
    pub folds: Vec<Section>,
    /// The subject of the explanation, if it is not the current scenario.
    pub subject: Option<Arc<MeasuredSubject>>,
    /// Scroll positions of targets, workloads, knobs and results.
    pub scroll: [usize; 4],
    /// Scroll position of a full-screen view.
    pub view_scroll: usize,
    /// Selected row of a full-screen view.
    pub view_row: usize,
    /// Nodes of the explanation, by path, whose folding differs from the default.
    pub toggled: BTreeSet<String>,
    /// Selected column of the comparison.
    pub column: usize,
    /// The metric by which the comparison is sorted, best first; file order if unset.
    pub order: Option<&'static Metric>,
    /// The metrics that the comparison shows.
    pub chosen: Chosen,
    /// Whether the description at the bottom needs more than one line.
    pub tall: bool,
    /// The status line.
    pub status: Option<Status>,
    /// A shipped file and a line in it: the next `e` copies the file into the working directory and opens it.
    pub offer: Option<(PathBuf, u32)>,
    /// Serial number of statuses and flashes, so that the timer of an old one cannot clear a new one.
    pub serial: u64,
    /// Entries that just changed on disk.
    pub flash: Flash,
    /// The running tour.
    pub tour: Option<Tour>,
    /// Directory for records.
    pub out: PathBuf,
    /// Incremented by [`App::recompute`]; answers to older generations are outdated.
    pub generation: u64,
    /// Queries of views to the workers, and their answers.
    pub queries: Queries,
    /// Settings of the sweep.
    pub sweep: SweepSettings,
    /// Settings of the frontier.
    pub frontier: FrontierSettings,
    /// Settings of the optimizer.
    pub optimizer: OptimizerForm,
    /// The race.
    pub race: Race,
    /// The assistant.
    pub assistant: Conversation,
    /// The watched job.
    pub watch: watch::State,
    /// The history.
    pub history: history::State,
    /// The launch files.
    pub launch: launch::State,
    /// The releases of the software.
    pub releases: releases::State,
    /// The table of models and targets.
    pub fits: fits::State,
    /// The number formats.
    pub formats: formats::State,
    /// Idle nodes of detected targets.
    pub idle: idle::State,
    /// Detection of targets.
    pub detect: detecting::State,
    /// Matches of the last search.
    pub search: Option<SearchMatches>,
    /// State of the outlook.
    pub outlook: Outlook,
    /// Results of simulations.
    pub simulations: SimulationCache,
    /// Settings of the timeline.
    pub timeline: Timeline,
    /// Directory for profiles of targets.
    pub profiles: PathBuf,
    /// Measured rows and the proposed calibration.
    pub measured: Measured,
    /// The format of the last export.
    pub export_kind: DocumentFormat,
    /// The scenario on the screen.
    pub answer: Answer,
    /// Results of recent setups, the latest last, so that returning to one needs no computation.
    recent: Vec<Answer>,
    /// The baseline of deltas.
    pub baseline: Answer,
    /// The comparison's columns: every marked target, or all where fewer than two are marked.
    pub columns: Vec<(Arc<str>, Answer)>,
}

impl App {
    /// The initial state: the first target and workload with the values of the files.
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
        let problems = problems_of(&library);
        App {
            library,
            demos: demos.into(),
            problems,
            themes,
            theme: 0,
            glyphs,
            graphics: Graphics::Off,
            size,
            stale: DirtyRegion::All,
            tabs: Tabs::default(),
            now: Snapshot { setup, ..Snapshot::default() },
            points: Vec::new(),
            trail: OnceCell::new(),
            previous_points: Vec::new(),
            past: Vec::new(),
            future: Vec::new(),
            last_change: None,
            pane: Pane::Targets,
            view: View::Main,
            back: Vec::new(),
            overlay: None,
            edit: None,
            prompt: None,
            after: None,
            tables: Tables::default(),
            knob: Knob::Engine,
            figure: MetricId::TokensPerSec.metric(),
            headline: None,
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
            sweep: SweepSettings::default(),
            frontier: FrontierSettings::default(),
            optimizer: OptimizerForm::default(),
            race: Race::default(),
            assistant: Conversation::default(),
            watch: watch::State::default(),
            history: history::State::default(),
            launch: launch::State::default(),
            releases: releases::State::default(),
            fits: fits::State::default(),
            formats: formats::State::default(),
            idle: idle::State::default(),
            detect: detecting::State::default(),
            search: None,
            outlook: Outlook::default(),
            simulations: SimulationCache::default(),
            timeline: Timeline::default(),
            profiles: PathBuf::from("workload/profiles"),
            measured: Measured::default(),
            export_kind: DocumentFormat::default(),
            baseline: answer.clone(),
            answer,
            recent: Vec::new(),
            columns: Vec::new(),
        }
    }

    /// The current theme.
    #[must_use]
    pub fn theme(&self) -> Option<&Arc<Theme>> {
        self.themes.get(self.theme)
    }

    /// Recomputes everything that depends on the scenario. Call it once after each change.
    pub fn recompute(&mut self) {
        let known = self.recent.iter().position(|known| known.setup == self.now.setup);
        let answer = match known {
            Some(at) => {
                let mut answer = self.recent.remove(at);
                self.replace(&mut answer);
                answer
            }
            None => self.answered(&self.now.setup),
        };
        let before = std::mem::replace(&mut self.answer, answer);
        if before.parts.is_some() {
            self.recent.drain(..(self.recent.len() + 1).saturating_sub(RECENT));
            self.recent.push(before);
        }
        self.generation += 1;
        self.invalidate_history();
        self.subject = None;
        self.measured.drop_derived();
        self.baseline = match self.reference() {
            Some(setup) => self.answered(setup),
            // Without overrides the scenario is the same as in the files.
            None if self.now.setup.overrides.is_empty() => self.answer.clone(),
            None => {
                let files = Setup { overrides: Overrides::new(), ..self.now.setup.clone() };
                self.answered(&files)
            }
        };
        self.arrange_tables();
        self.recompute_columns();
    }

    /// Drops all results computed from the previous content of the files.
    pub(super) fn clear_results(&mut self) {
        self.recent.clear();
        self.trail = OnceCell::new();
        self.previous_points.clear();
        self.answer = Answer::empty();
    }

    /// The selected metric if it applies and is shown, else the first metric of the results.
    #[must_use]
    pub fn selected_metric(&self) -> Option<&'static Metric> {
        // A metric that the filter hides from the results can still be explained from other views.
        let elsewhere = |metric: &&Metric| self.view != View::Main || self.metric_matches(metric);
        let here = self.answer.metrics().filter(elsewhere).find(|metric| *metric == self.figure);
        here.or_else(|| self.figures().next())
    }

    /// The selected headline above the metrics, if any.
    #[must_use]
    pub fn headline(&self) -> Option<Headline> {
        self.headline.filter(|_| self.answer.detail().is_some())
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

    /// Index of the selected knob.
    #[must_use]
    pub fn knob_index(&self) -> usize {
        let here = self.selected_knob();
        self.knobs().position(|spec| spec.knob == here).unwrap_or_default()
    }

    /// Saves the state for undo, unless the previous change was of the same kind.
    pub fn push_undo(&mut self, change: Change) {
        if change == Change::Single || self.last_change != Some(change) {
            self.past.push(self.now.clone());
            snapshot::forget_oldest(&mut self.past);
        }
        self.future.clear();
        self.invalidate_history();
        self.last_change = Some(change);
    }

    /// Invalidates the points of the history. They are recomputed when next shown; unchanged ones are reused.
    fn invalidate_history(&mut self) {
        if let Some(points) = self.trail.take() {
            self.previous_points = points;
        }
    }

    /// The points of the history, oldest first.
    #[must_use]
    pub fn trail(&self) -> &[Point] {
        self.trail.get_or_init(|| self.points_of_history(&self.previous_points))
    }

    /// Advice on the scenario, best first.
    #[must_use]
    pub fn advice(&self) -> &[Advice] {
        self.answer.advice()
    }

    /// Sets a knob; a value equal to the one in the files removes the override.
    pub fn set_knob(&mut self, knob: Knob, setting: Setting) {
        self.set_override(knob, setting);
        self.outlook.changed = Some(knob);
        self.recompute();
    }

    /// Sets a knob without recomputing.
    pub fn set_override(&mut self, knob: Knob, setting: Setting) {
        let same = self.answer.files.as_ref().is_some_and(|files| files.get(knob) == setting);
        if same {
            self.now.setup.overrides.remove(&knob);
        } else {
            self.now.setup.overrides.insert(knob, setting);
        }
    }
}

/// Problems in the files, including names of accelerators and models that the catalog
/// does not have. Shipped files have no such names.
pub(super) fn problems_of(library: &Library) -> Diagnostics {
    let (mut problems, catalog) = (library.problems().clone(), library.catalog());
    for target in library.target_list().iter().filter_map(|entry| entry.user_entry()) {
        Parts::accelerator_of(catalog, target).err().into_iter().for_each(|problem| problems.push(problem));
    }
    for workload in library.workload_list().iter().filter_map(|entry| entry.user_entry()) {
        Parts::model_of(catalog, workload).err().into_iter().for_each(|found| problems.extend(found));
    }
    problems
}
