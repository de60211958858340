//! Guided tours. Their scripts also serve as tests.
//!
//! A script ([`script`]) is a YAML file of steps. Each step has narration, [`Action`]s that change the scenario or the
//! view, and conditions ([`expect`]) on the resulting metrics. [`state`] applies a script without an interface; the
//! tour in the terminal, `atlas demo --headless` and the tests share it, so they agree on the result of a step.
//! [`headless`] runs the scenario of a script on its targets and writes records and a report.
//!
//! Scripts are loaded from three places: the binary, `demo/` in the user configuration directory, and `demo/` in the
//! working directory. A later script replaces an earlier one of the same name.

mod decode;
mod document;
pub mod expect;
mod grammar;
pub mod headless;
pub mod narration;
mod report;
pub mod script;
pub mod state;
pub(crate) mod views;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub use expect::Expect;
pub use headless::run_headless;
pub use report::{HeadlessReport, StepReport};
pub use script::{Action, Demo, Pane, Reset, Step};
pub use state::{DemoError, Outcome, Setup, Stage, check};
pub use views::View;

use atlas_catalog::shipped;
use atlas_catalog::shipped::Text;
use atlas_core::sort;
use atlas_document::sources::read_text;
use atlas_document::{Diagnostic, Diagnostics, Origin, Position, Severity};

/// Loader of scripts.
#[derive(Debug, Clone, Copy)]
pub struct Demos;

impl Demos {
    /// Loads all scripts: the shipped ones, then `demo/` under `config_dir`, then `demo/` under `working_dir`. A script
    /// with an error is reported and does not replace an earlier script of the same name.
    #[must_use]
    pub fn load(config_dir: Option<&Path>, working_dir: Option<&Path>) -> (Vec<Arc<Demo>>, Diagnostics) {
        let mut demos = Vec::new();
        let mut problems = Diagnostics::new();
        for document in shipped::documents("demo") {
            let label = format!("{}{}", Origin::BUILT_IN, document.path).into();
            insert_or_replace(&mut demos, &label, &Text::Shipped(document), &mut problems);
        }
        // Sorted by `order`; scripts with a section come last.
        sort::by(&mut demos, |a, b| (a.section.is_some()).cmp(&b.section.is_some()).then(a.order.total_cmp(&b.order)));
        for dir in Demos::watched(config_dir, working_dir) {
            for path in scripts_in(&dir) {
                let label: Arc<str> = path.display().to_string().into();
                match read_text(&path).map(Text::from) {
                    // An unmodified copy of a shipped script is already loaded.
                    Ok(Text::Shipped(_)) => {}
                    Ok(text) => insert_or_replace(&mut demos, &label, &text, &mut problems),
                    Err(message) => problems.push(Diagnostic {
                        severity: Severity::Error,
                        file: label,
                        at: Position::default(),
                        path: String::new(),
                        message,
                        help: None,
                    }),
                }
            }
        }
        (demos, problems)
    }

    /// Returns the directories that scripts are read from, whether or not they exist. These are the ones to watch for
    /// changes.
    #[must_use]
    pub fn watched(config_dir: Option<&Path>, working_dir: Option<&Path>) -> Vec<PathBuf> {
        [config_dir, working_dir].into_iter().flatten().map(|dir| dir.join("demo")).collect()
    }
}

/// All scripts, loaded lazily: if the user has no scripts, the shipped ones are decoded on first use.
#[derive(Debug, Clone, Default)]
pub struct Tours(OnceLock<Vec<Arc<Demo>>>);

impl Tours {
    /// Like [`Demos::load`], but defers decoding if there are only shipped scripts.
    #[must_use]
    pub fn load(config_dir: Option<&Path>, working_dir: Option<&Path>) -> (Tours, Diagnostics) {
        if Demos::watched(config_dir, working_dir).iter().all(|dir| scripts_in(dir).is_empty()) {
            return (Tours::default(), Diagnostics::new());
        }
        let (demos, problems) = Demos::load(config_dir, working_dir);
        (demos.into(), problems)
    }
}

impl From<Vec<Arc<Demo>>> for Tours {
    fn from(demos: Vec<Arc<Demo>>) -> Tours {
        Tours(demos.into())
    }
}

impl Deref for Tours {
    type Target = [Arc<Demo>];

    fn deref(&self) -> &[Arc<Demo>] {
        self.0.get_or_init(|| Demos::load(None, None).0)
    }
}

/// Decodes one script. It replaces the script of the same name, or is appended.
fn insert_or_replace(demos: &mut Vec<Arc<Demo>>, label: &Arc<str>, text: &Text, problems: &mut Diagnostics) {
    let Some(demo) = Demo::read(label, text, problems) else { return };
    match demos.iter_mut().find(|known| known.name == demo.name) {
        Some(known) => *known = Arc::new(demo),
        None => demos.push(Arc::new(demo)),
    }
}

/// Returns the YAML files of a directory, sorted by path. Hidden files are skipped: editors create them.
fn scripts_in(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let yaml = |path: &PathBuf| {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        !hidden && path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml")
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).filter(yaml).collect();
    sort::ascending(&mut paths);
    paths
}
