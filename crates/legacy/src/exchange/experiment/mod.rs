//! The predecessor comparison tool's single experiment YAML: hardware platforms, models, training, parallelism per
//! methodology, platform optimizations, benchmarking, paths. All errors are reported at once. Each platform becomes a
//! target, each model a workload, and its parallelism on each platform under each methodology becomes knobs.

mod document;
mod entries;
mod expand;
mod files;
mod layout;
mod resolved;
mod shell;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use document::{Model, Optimizations, Platform, Training};
pub use files::Expected;
pub use layout::Layout;
pub use resolved::Resolved;
pub use shell::{Selection, SelectionError};

use super::Variable;
use atlas_core::plan::Methodology;
use atlas_document::node::Position;
use atlas_document::{Diagnostics, Node};

/// A decoded experiment.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Path of the file, as given by the user.
    pub file: Arc<str>,
    /// The document, with variables expanded.
    pub root: Node,
    /// Origins of the values that contain variables or are overridden by one, by path.
    from: BTreeMap<String, ValueOrigin>,
    /// The selected methodology.
    pub methodology: Methodology,
    /// Platforms, in the order of the document.
    pub platforms: Vec<Platform>,
    /// Models, in the order of the document.
    pub models: Vec<Model>,
    /// Training settings, shared by all models.
    pub training: Training,
    /// Parallelism of each model on each platform under each methodology, where stated.
    pub layouts: Vec<Layout>,
}

/// Origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueOrigin {
    /// Written in the document.
    Written(Position),
    /// Environment variables, each with whether its value rather than its default was used, and the position of the
    /// value in the document.
    Variables(Vec<(String, bool)>, Position),
    /// Derived as described, from other values or the catalog.
    Derived(String),
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueOrigin::Written(at) => at.fmt(f),
            ValueOrigin::Variables(used, at) => {
                for (name, set) in used {
                    write!(f, "{} {name}, ", if *set { "environment" } else { "default of" })?;
                }
                at.fmt(f)
            }
            ValueOrigin::Derived(how) => f.write_str(how),
        }
    }
}

/// Whether a document is an experiment of the comparison tool.
#[must_use]
pub fn is_document(root: &Node) -> bool {
    let map = |path: &[&str]| root.at_path(path).is_some_and(|node| node.entries().is_some());
    let described = [map(&["hardware", "platforms"]), map(&["models"]), map(&["experiment"]), map(&["parallelism"])];
    map(&["hardware", "platforms"]) || described.into_iter().filter(|described| *described).count() >= 2
}

/// Decodes an experiment. Reports invalid parts and leaves them out.
#[must_use]
pub fn read(file: &Arc<str>, root: &Node, variable: Variable<'_>, problems: &mut Diagnostics) -> Experiment {
    let mut from = BTreeMap::new();
    let root = expand::expand(file, root, variable, &mut from, problems);
    let root = expand::apply_overrides(file, root, variable, &mut from, problems);
    document::read(file, root, from, problems)
}

impl Experiment {
    /// Returns the parallelism of a model on a platform under a methodology.
    #[must_use]
    pub fn layout(&self, methodology: Methodology, model: &str, platform: &str) -> Option<&Layout> {
        let wanted = |layout: &&Layout| {
            layout.methodology == methodology && layout.model == model && layout.platform == platform
        };
        self.layouts.iter().find(wanted)
    }

    /// Returns the value at a path of the document, unless it is null.
    fn at(&self, path: &[&str]) -> Option<&Node> {
        self.root.at_path(path).filter(|node| !node.is_null())
    }
}
