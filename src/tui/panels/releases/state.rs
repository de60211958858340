//! State of the releases: what each states.

use std::sync::Arc;

/// The state of the view.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The releases of a scenario, by its generation.
    pub(in crate::tui) listed: Option<(u64, Listed)>,
}

/// The releases of a family.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listed {
    /// What its makers call the family.
    pub family: String,
    /// The releases, newest first.
    pub rows: Vec<Row>,
    /// The place of the release in effect.
    pub current: Option<usize>,
}

/// A release.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// As the knob takes it: `vllm@0.11.0`.
    pub spec: Arc<str>,
    /// Its number.
    pub release: String,
    /// When it came out, as far as known.
    pub date: String,
    /// The figures of `metrics`, in their order.
    pub values: Vec<Option<f64>>,
    /// Why it cannot run the scenario, in a few words.
    pub refused: Option<String>,
    /// Traits that it changed against the release before.
    pub brought: Vec<Difference>,
    /// Traits in which it differs from the release in effect.
    pub differs: Vec<Difference>,
}

/// A trait that two releases have differently.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Its name in documents.
    pub name: &'static str,
    /// Its value in the release that is compared with.
    pub before: String,
    /// Its value in this release.
    pub after: String,
    /// Where that was read.
    pub source: String,
}
