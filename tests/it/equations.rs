//! docs/equations.md lists the equations of `atlas explain`, as stated by the engines.

use std::collections::BTreeSet;
use std::path::Path;

use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_plan::engine;
use atlas_plan::estimate::METRICS;
use atlas_plan::explain::explain;
use atlas_plan::knob::{Knob, KnobValues as _, Overrides};
use atlas_plan::scenario::{Parts, Scenario};

use crate::common::program::ROOT;

/// Introduction of the document.
const INTRODUCTION: &str = "# Equations

The equations behind every metric, as shown by `atlas explain`. `tests/it/equations.rs` checks that this page matches the
engines. `atlas explain METRIC --target … --workload …` shows the same equations with the numbers of a scenario, and the file
and line, catalog entry or constant of each input. Terms without an equation are inputs, or sums over operators, which
`--depth` expands. Constants are documented in `crates/perf/src/constants/`, coefficients of the semi-empirical model under
[profile coefficients](reference.md#profile-coefficients), and the effect of your own measurements under
[calibration](calibration.md).
";

/// Heading, target, workload, knobs.
type Section = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Sections of the document.
const SECTIONS: [Section; 3] = [
    ("Training", "h100-sxm-64", "llama3.1-70b-train", &[("tp", "4"), ("pp", "4")]),
    ("Serving", "h100-sxm-8", "llama3.1-70b-serve", &[]),
    ("Semi-empirical model (`semi_empirical`)", "h100-sxm-64", "llama3.1-70b-train", &[("engine", "semi_empirical")]),
];

/// Table of the equations of all metrics of a scenario, without duplicates.
fn table(library: &Library, section: &Section) -> String {
    let (heading, target, workload, set) = section;
    let target = library.targets().iter().find(|t| t.name.as_ref() == *target).unwrap();
    let workload = library.workloads().iter().find(|w| w.name.as_ref() == *workload).unwrap();
    let parts = Parts::of(library, target, workload).unwrap();
    let mut overrides = Overrides::new();
    for (name, value) in *set {
        let knob = Knob::named(name).unwrap();
        overrides.insert(knob, knob.parse(value, parts.fabrics()).unwrap());
    }
    let scenario = Scenario::resolve(&parts, &overrides).unwrap();
    let estimate = engine::estimate(&scenario);
    let mut text = format!("\n## {heading}\n\n| equation | unit | meaning |\n| --- | --- | --- |\n");
    let mut seen = BTreeSet::new();
    for metric in METRICS.iter().filter(|metric| metric.applies_to(&scenario)) {
        let tree = explain(&scenario, &parts, &estimate, metric).unwrap();
        for term in tree.walk() {
            let Some(equation) = term.in_symbols().filter(|equation| seen.insert(equation.clone())) else { continue };
            text += &format!("| `{equation}` | {} | {} |\n", term.unit, term.name);
        }
    }
    text
}

#[test]
fn equations_document_matches_the_equations_of_the_engines() {
    let library = Library::load(&Sources::built_in(), None);
    let sections: String = SECTIONS.iter().map(|section| table(&library, section)).collect();
    let expected = format!("{INTRODUCTION}{sections}");
    let found = std::fs::read_to_string(Path::new(ROOT).join("docs/equations.md")).unwrap_or_default();
    assert!(found == expected, "docs/equations.md differs from what the engines derive; it should be:\n{expected}");
}
