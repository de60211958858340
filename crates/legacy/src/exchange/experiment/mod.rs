//! The predecessor comparison tool's single experiment YAML: hardware platforms, models, training, parallelism per
//! methodology, platform optimizations, benchmarking, paths. Read with all diagnostics at once, and loaded as targets
//! (a platform each), workloads (a model each) and knobs (its parallelism on each platform, under each methodology).

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

/// An experiment as it was read.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The file as the user named it.
    pub file: Arc<str>,
    /// The document, variables expanded.
    pub root: Node,
    /// Origins of the values with variables, by path.
    from: BTreeMap<String, From>,
    /// The selected methodology.
    pub methodology: Methodology,
    /// Hardware, in order.
    pub platforms: Vec<Platform>,
    /// Models, in order.
    pub models: Vec<Model>,
    /// How they are trained.
    pub training: Training,
    /// Parallelism of a model on a platform under a methodology.
    pub layouts: Vec<Layout>,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    /// The document.
    Written(Position),
    /// Variables of the environment, each with whether it was set, and the document that names them.
    Variables(Vec<(String, bool)>, Position),
    /// Derived from others.
    Derived(String),
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            From::Written(at) => at.fmt(f),
            From::Variables(used, at) => {
                for (name, set) in used {
                    write!(f, "{} {name}, ", if *set { "environment" } else { "default of" })?;
                }
                at.fmt(f)
            }
            From::Derived(how) => f.write_str(how),
        }
    }
}

/// Whether a document is an experiment of the comparison tool.
#[must_use]
pub fn is(root: &Node) -> bool {
    let map = |path: &[&str]| root.at_path(path).is_some_and(|node| node.entries().is_some());
    let described = [map(&["hardware", "platforms"]), map(&["models"]), map(&["experiment"]), map(&["parallelism"])];
    map(&["hardware", "platforms"]) || described.into_iter().filter(|described| *described).count() >= 2
}

/// Reads an experiment. Invalid parts are left out and reported.
#[must_use]
pub fn read(file: &Arc<str>, root: &Node, variable: Variable<'_>, problems: &mut Diagnostics) -> Experiment {
    let mut from = BTreeMap::new();
    let root = expand::expand(file, root, variable, &mut from, problems);
    let root = expand::overridden(file, root, variable, &mut from, problems);
    document::read(file, root, from, problems)
}

impl Experiment {
    /// Parallelism of a model on a platform under a methodology.
    #[must_use]
    pub fn layout(&self, methodology: Methodology, model: &str, platform: &str) -> Option<&Layout> {
        let wanted = |layout: &&Layout| {
            layout.methodology == methodology && layout.model == model && layout.platform == platform
        };
        self.layouts.iter().find(wanted)
    }

    /// The document's own value of a path.
    fn at(&self, path: &[&str]) -> Option<&Node> {
        self.root.at_path(path).filter(|node| !node.is_null())
    }
}
