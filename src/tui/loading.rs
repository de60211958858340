//! What is read from files, and which are watched. The first frame waits for no more than it shows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use super::Options;
use super::color::ColorDepth;
use super::measuring::Measuring;
use super::message::Message;
use super::theme::{Theme, Themes};
use crate::catalog::Catalog;
use crate::demo::{Demo, Demos};
use crate::library::Library;
use crate::spec::{Diagnostics, Sources};
use crate::watch::FileWatch;

/// What is read on a thread of its own: the themes, which the first frame needs, then the tours, which it does not.
pub(super) struct Beside {
    themes: Receiver<(Vec<Arc<Theme>>, Diagnostics)>,
    demos: JoinHandle<(Vec<Arc<Demo>>, Diagnostics)>,
}

impl Beside {
    pub(super) fn read(options: &Options, depth: ColorDepth) -> Beside {
        let (done, themes) = channel();
        let (config_dir, here) = (options.sources.config_dir.clone(), here(&options.sources));
        let demos = std::thread::spawn(move || {
            // Where nobody waits for the themes any more, the tours are not waited for either.
            let _ = done.send(Themes::load(config_dir.as_deref(), depth));
            Demos::load(config_dir.as_deref(), here)
        });
        Beside { themes, demos }
    }

    /// Waits for the themes.
    pub(super) fn themes(&self) -> (Vec<Arc<Theme>>, Diagnostics) {
        self.themes.recv().unwrap_or_default()
    }

    /// Waits for the tours.
    pub(super) fn demos(self) -> (Vec<Arc<Demo>>, Diagnostics) {
        self.demos.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Reads everything again.
pub(super) fn reload(options: &Options, depth: ColorDepth, before: &Library) -> (Arc<Library>, Message) {
    let beside = Beside::read(options, depth);
    let library = Arc::new(Library::load(&options.sources, Some(before)));
    let mut problems = library.problems().clone();
    let (themes, of_themes) = beside.themes();
    let (demos, of_demos) = beside.demos();
    problems.extend(of_demos);
    problems.extend(of_themes);
    problems.sort();
    (Arc::clone(&library), Message::Reloaded(library, demos, themes, problems))
}

fn here(sources: &Sources) -> Option<&'static Path> {
    sources.working_dir.then_some(Path::new("."))
}

/// Every file and directory whose change matters.
pub(super) fn watched(options: &Options, library: Option<&Library>) -> Vec<PathBuf> {
    let sources = &options.sources;
    let mut paths = sources.watched();
    paths.extend(Catalog::watched(sources));
    paths.extend(Demos::watched(sources.config_dir.as_deref(), here(sources)));
    paths.extend(Themes::watched(sources.config_dir.as_deref()));
    paths.extend(library.map(Library::configs).unwrap_or_default());
    paths.extend(Measuring::watched(options));
    paths
}

/// Where a target's own profile is found by itself.
pub(super) fn profiles(options: &Options) -> PathBuf {
    let sources = &options.sources;
    let folder = sources.hardware.clone().filter(|path| path.is_dir());
    folder.unwrap_or_else(|| sources.layers().last().map_or_else(PathBuf::new, |layer| layer.join("profiles")))
}

/// Watches the models' configs as well, where the library names others than before.
pub(super) fn watch_configs(watch: Option<&FileWatch>, options: &Options, library: &Library, known: &[PathBuf]) {
    if let Some(watch) = watch.filter(|_| library.configs() != known) {
        watch.set_paths(&watched(options, Some(library)));
    }
}
