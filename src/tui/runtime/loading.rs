//! Reads files and lists those to watch.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::demo::{Demos, Tours};
use crate::theme::Themes;
use crate::theme::color::ColorDepth;
use crate::tui::Options;
use crate::tui::app::problems_of;
use crate::tui::message::Message;
use crate::tui::runtime::measuring::MeasurementReader;
use atlas_catalog::Catalog;
use atlas_config::library::Library;
use atlas_config::watch::FileWatch;
use atlas_document::{Diagnostics, Sources};

/// Reads all files again.
pub(in crate::tui) fn reload(options: &Options, depth: ColorDepth, before: &Library) -> (Arc<Library>, Message) {
    let library = Arc::new(Library::load(&options.sources, Some(before)));
    let mut problems = problems_of(&library);
    let (themes, of_themes) = Themes::load(options.sources.config_dir.as_deref(), depth);
    let (demos, of_demos) = tours(options);
    problems.extend(of_demos);
    problems.extend(of_themes);
    problems.sort();
    (Arc::clone(&library), Message::Reloaded(library, demos, themes, problems))
}

/// Reads the tours.
pub(in crate::tui) fn tours(options: &Options) -> (Tours, Diagnostics) {
    Tours::load(options.sources.config_dir.as_deref(), working_directory(&options.sources))
}

fn working_directory(sources: &Sources) -> Option<&'static Path> {
    sources.working_dir.then_some(Path::new("."))
}

/// Every file and directory to watch for changes.
pub(in crate::tui) fn watched(options: &Options, library: Option<&Library>) -> Vec<PathBuf> {
    let sources = &options.sources;
    let mut paths = sources.watched_paths();
    paths.extend(Catalog::watched_paths(sources));
    paths.extend(Demos::watched(sources.config_dir.as_deref(), working_directory(sources)));
    paths.extend(Themes::watched(sources.config_dir.as_deref()));
    paths.extend(library.map(Library::configs).unwrap_or_default());
    paths.extend(MeasurementReader::watched(options));
    paths
}

/// The directory of profiles of targets.
pub(in crate::tui) fn profiles(options: &Options) -> PathBuf {
    let sources = &options.sources;
    let folder = sources.hardware.clone().filter(|path| path.is_dir());
    folder.unwrap_or_else(|| sources.layers().last().map_or_else(PathBuf::new, |layer| layer.join("profiles")))
}

/// Updates the watched paths if the set of model config files has changed.
pub(in crate::tui) fn watch_configs(watch: &FileWatch, options: &Options, library: &Library, known: &[PathBuf]) {
    if library.configs() != known {
        watch.set_paths(&watched(options, Some(library)));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::tui::testing::TestApp;
    use atlas_document::Sources;

    /// An error reported by `atlas check` is also listed as a problem in the interface.
    #[test]
    fn a_target_with_an_unknown_accelerator_is_listed_under_problems() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("targets.yaml");
        let text = "- name: X\n  accelerator: h100x\n  vendor: NVIDIA\n  accelerators_per_node: 8\n  num_nodes: 1\n  \
                    memory_gb_per_accel: 80\n  cost: { hourly_usd: 22.0, energy_watts_node: 10200, pue: 1.2 }\n";
        std::fs::write(&file, text).unwrap();
        let mut hands = TestApp::of(&Sources { targets: Some(file), ..Sources::built_in() });
        hands.keys("!");
        let text = hands.text();
        assert!(text.contains("h100x") && !text.contains("No problems"), "{text}");
    }
}
