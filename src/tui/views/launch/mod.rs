//! The launch files: shows and writes the files that launch the current scenario.

pub mod state;

pub mod view;

pub use state::{Files, State};

use state::WRAPS;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atlas_cluster::launch::{self, Options, Wrap};
use atlas_plan::engine::analytical_scenario;
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::Gauge;

use super::{Spec, Tab};
use crate::demo::Setup;
use crate::tui::app::{App, View};
use crate::tui::input::keymap::{Action, Keys, bind};
use crate::tui::message::Effect;
use crate::tui::update::status::fail;
use crate::tui::work::job::{Job, Product};

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Launch files",
    tab: Tab { place: 16, name: "Launch", short: "Launch" },
    synonyms: "launch script sbatch files",
    opening: Some(bind(&["vl"], Action::Show(View::Launch), "launch files for this scenario", Some("launch files"))),
    keys: &[Keys::Own(&[
        bind(&["Enter"], Action::Accept, "write the files", Some("write")),
        bind(&["→", "l"], Action::Focus(1), "next format: script, Slurm, Kubernetes", Some("format")),
        bind(&["←", "h"], Action::Focus(-1), "previous format", None),
    ])],
    shared_keys: &[],
    is_empty: |app| app.history.store.is_none(),
    rows: view::rows,
    lines_of: super::one_line,
    is_text: |_| true,
    draw: view::draw,
    info: view::info,
    follow,
    works: |app, action| action != Action::Accept || has_files(&app.launch),
    accept: write,
    update: |app, action, _| {
        match action {
            Action::Focus(by) => wrap(app, by),
            _ => return false,
        }
        true
    },
    ..Spec::DEFAULT
};

#[derive(Debug)]
struct Make(Parts, Box<Scenario>, Wrap);

impl Job for Make {
    fn run(&self, _: &Gauge) -> Result<Product, String> {
        let Make(parts, scenario, wrap) = self;
        // A simulation would take seconds, and would run again after every change.
        let scenario = analytical_scenario(scenario);
        let made = launch::files(parts, &scenario, &Options { wrap: *wrap, ..Options::default() });
        let files = match made {
            Ok(launch) => {
                let tool = launch.tool.name().to_owned();
                Files { tool, files: launch.files, notes: launch.notes, refused: Vec::new() }
            }
            Err(refused) => Files { refused: refused.iter().map(ToString::to_string).collect(), ..Files::default() },
        };
        Ok(Product::Launch(Arc::new(files)))
    }
}

#[derive(Debug)]
struct Write(Arc<Files>, PathBuf);

impl Job for Write {
    fn run(&self, _: &Gauge) -> Result<Product, String> {
        let files: Vec<_> = self.0.files.iter().map(|file| (self.1.join(&file.name), file)).collect();
        launch::write(&files, false).map_err(|error| error.to_string())?;
        let names: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
        Ok(Product::Written(format!("wrote {}", names.join(", "))))
    }
}

/// Returns the directory that the files are written to.
#[must_use]
pub fn directory(setup: &Setup) -> PathBuf {
    let name = format!("{}-{}", setup.workload, setup.target);
    Path::new("launch").join(atlas_core::escape::file_name(&name))
}

/// Whether there are files to write.
#[must_use]
fn has_files(state: &State) -> bool {
    state.files.answer().is_some_and(|files| !files.files.is_empty())
}

fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    let setup = &app.now.setup;
    let parts = Parts::find(&app.library, &setup.target, &setup.workload);
    let scenario = app.answer.scenario.clone();
    let wrap = WRAPS.get(app.launch.wrap).map_or(Wrap::Plain, |(wrap, _)| *wrap);
    let question = (app.generation, app.launch.wrap);
    app.launch.files.ask(question, &mut app.queries.serial, effects, |_| {
        let parts = parts.map_err(|problems| problems.to_string())?;
        let scenario = scenario.ok_or("no scenario to launch")?;
        Ok(Arc::new(Make(parts, Box::new(scenario), wrap)))
    });
}

/// Moves by `by` wrappings.
fn wrap(app: &mut App, by: i32) {
    let state = &mut app.launch;
    state.wrap = (state.wrap as i32 + by).rem_euclid(WRAPS.len() as i32) as usize;
    (app.view_row, app.view_scroll) = (0, 0);
}

/// Writes the files that are shown. Existing files are not overwritten.
fn write(app: &mut App, effects: &mut Vec<Effect>) {
    let directory = directory(&app.now.setup);
    let state = &mut app.launch;
    let shown = state.files.answer().filter(|files| state.files.is_fresh() && !files.files.is_empty()).cloned();
    let Some(files) = shown else { return fail(app, "no files to write") };
    state.writes += 1;
    state.written.ask(state.writes, &mut app.queries.serial, effects, |_| Ok(Arc::new(Write(files, directory))));
}
