//! Scenarios of built-in targets and workloads, for tests.
#![allow(clippy::unwrap_used)]

use std::sync::LazyLock;

use crate::knob::{Knob, KnobValues as _, Overrides, Setting, assignment};
use crate::scenario::{Parts, Scenario};
use atlas_config::library::Library;
use atlas_core::plan::Engine;
use atlas_document::Sources;

/// The built-in library.
pub(crate) static LIBRARY: LazyLock<Library> = LazyLock::new(|| Library::load(&Sources::built_in(), None));

/// A target and a workload of the library.
pub(crate) fn parts(target: &str, workload: &str) -> Parts {
    Parts::find(&LIBRARY, target, workload).unwrap()
}

/// Parses assignments such as `tp=8`.
pub(crate) fn overrides(assignments: &[&str]) -> Overrides {
    let all = assignments.iter().map(|text| assignment(text).unwrap());
    all.map(|(knob, value)| (knob, knob.parse(&value, &[]).unwrap())).collect()
}

/// Like [`overrides`], with an engine.
pub(crate) fn with_engine(engine: Engine, assignments: &[&str]) -> Overrides {
    let mut all = Overrides::from([(Knob::Engine, Setting::Choice(engine.name().into()))]);
    all.extend(overrides(assignments));
    all
}

/// A target and a workload of the library, and their scenario with some assignments.
pub(crate) fn scenario(target: &str, workload: &str, assignments: &[&str]) -> (Parts, Scenario) {
    let parts = parts(target, workload);
    let scenario = Scenario::resolve(&parts, &overrides(assignments)).unwrap();
    (parts, scenario)
}

/// Like [`scenario`], of a workload whose file states no layout.
pub(crate) fn scenario_without_layout(target: &str, workload: &str, assignments: &[&str]) -> (Parts, Scenario) {
    let mut parts = parts(target, workload);
    let plan = &mut std::sync::Arc::make_mut(&mut parts.workload).plan;
    (plan.tp, plan.pp, plan.ep, plan.vpp, plan.dp) = (None, None, None, None, None);
    (plan.cp, plan.sharding) = (None, None);
    let scenario = Scenario::resolve(&parts, &overrides(assignments)).unwrap();
    (parts, scenario)
}
