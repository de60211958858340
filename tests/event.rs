//! The event engine through the product: scenarios of files and knobs, against the closed form where nothing queues, and
//! what must hold of every answer.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::path::Path;

use atlas_fabric::engine::answer::event;
use atlas_fabric::engine::event::kernel::Progress;
use atlas_fabric::engine::{at_once, estimate};
use atlas_fabric::estimate::{Cause, Estimate, METRICS, Metric, Verdict};
use atlas_fabric::knob::{Knob, Overrides};
use atlas_fabric::library::Library;
use atlas_fabric::plan::Engine;
use atlas_fabric::scenario::{Parts, Scenario};
use atlas_fabric::spec::{Mode, Sources};

/// What ships.
fn shipped() -> Library {
    Library::load(&Sources::built_in(), None)
}

fn library() -> Library {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/analytical");
    let (targets, workloads) = (Some(data.join("targets.yaml")), Some(data.join("workloads.yaml")));
    let library = Library::load(&Sources { targets, workloads, ..Sources::built_in() }, None);
    assert!(!library.problems().has_errors(), "{}", library.problems());
    library
}

fn scenario(parts: &Parts, knobs: &[(&str, &str)]) -> Scenario {
    let set = |(name, text): &(&str, &str)| {
        let knob = Knob::named(name).unwrap();
        (knob, knob.parse(text, parts.fabrics()).unwrap())
    };
    let overrides: Overrides = [("engine", "event")].iter().chain(knobs).map(set).collect();
    Scenario::resolve(parts, &overrides).unwrap()
}

fn of(target: &str, workload: &str, knobs: &[(&str, &str)]) -> Scenario {
    scenario(&Parts::find(&library(), target, workload).unwrap(), knobs)
}

fn metric(name: &str, scenario: &Scenario, estimate: &Estimate) -> f64 {
    (Metric::named(name).unwrap().get)(estimate, scenario)
}

/// What must hold of any answer.
fn sound(scenario: &Scenario, estimate: &Estimate) {
    let detail = estimate.detail.unwrap();
    let sums = |a: f64, b: f64| (a - b).abs() <= 1e-6 * a.abs().max(b.abs());
    if let Some(training) = detail.training.filter(|_| scenario.phases.is_empty()) {
        assert!(sums(detail.time.total() * 1e3, estimate.total.step_time_ms), "{:?}", detail.time);
        assert!(sums(training.tokens_per_step / detail.time.total(), estimate.total.tokens_per_sec));
    }
    assert!(sums(Cause::ALL.iter().map(|cause| detail.limits.share(*cause)).sum(), 1.0));
    assert!(detail.time.parts().iter().all(|(_, seconds)| *seconds >= -1e-12), "{:?}", detail.time);
    for metric in METRICS.iter().filter(|metric| metric.applies_to(scenario)) {
        let value = (metric.get)(estimate, scenario);
        assert!(!value.is_nan() && value >= 0.0, "{} is {value}", metric.name);
        if let Some((low, high)) = metric.interval(estimate, scenario).filter(|_| value.is_finite()) {
            assert!(low <= value && value <= high, "{}: {low} {value} {high}", metric.name);
        }
    }
    let simulated = detail.simulated.unwrap();
    assert!(simulated.events > 0 && simulated.replications >= 1);
}

/// Deviations of a series from the closed form.
#[derive(Default)]
struct Deviations(Vec<(f64, String)>);

impl Deviations {
    fn look(&mut self, what: &str, found: f64, expected: f64) {
        self.0.push((found / expected - 1.0, what.to_owned()));
    }

    /// Tells the largest, which must be within the tolerance.
    fn within(mut self, tolerance: f64) {
        self.0.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
        let told: Vec<String> =
            self.0.iter().take(12).map(|(off, what)| format!("{:+.2} % {what}", 100.0 * off)).collect();
        println!("{} figures, the largest deviations:\n{}", self.0.len(), told.join("\n"));
        assert!(self.0.iter().all(|(off, _)| off.abs() <= tolerance), "{}", told.join("\n"));
    }
}

/// Every workload that is served, on every target that holds it, one request at a time: nothing queues.
#[test]
fn in_the_quiet_limit_serving_is_the_closed_form() {
    let library = shipped();
    let mut worst = Deviations::default();
    let mut cases = 0;
    for target in library.targets() {
        for workload in library.workloads() {
            let Ok(parts) = Parts::of(&library, target, workload) else { continue };
            if parts.accelerator.is_none() || workload.shape.mode != Mode::Inference {
                continue;
            }
            let quiet =
                [("concurrency", "1"), ("dp", "1"), ("request_rate", "0"), ("requests", "3"), ("arrivals", "closed")];
            let mut scenario = scenario(&parts, &quiet);
            scenario.phases.clear();
            let closed = estimate(&at_once(&scenario));
            if !closed.detail.unwrap().verdict.fits() {
                continue;
            }
            let found = estimate(&scenario);
            sound(&scenario, &found);
            for name in ["tokens_per_sec", "ttft_ms", "tpot_ms", "p50_ms", "node_power_w"] {
                let (found, expected) = (metric(name, &scenario, &found), metric(name, &scenario, &closed));
                worst.look(&format!("{name} of {} on {}", workload.name, target.name), found, expected);
            }
            cases += 1;
        }
    }
    println!("{cases} cases");
    assert!(cases >= 100, "{cases}");
    worst.within(0.03);
}

/// Every workload that is trained, on every target: even hardware takes the closed form's time, but for what the closed
/// form says by rule and the events find out.
#[test]
fn on_even_hardware_training_is_near_the_closed_form() {
    let library = shipped();
    let mut worst = Deviations::default();
    let mut cases = 0;
    for target in library.targets() {
        for workload in library.workloads() {
            let Ok(parts) = Parts::of(&library, target, workload) else { continue };
            if parts.accelerator.is_none() || workload.shape.mode != Mode::Training {
                continue;
            }
            let mut scenario = scenario(&parts, &[]);
            scenario.phases.clear();
            let closed = estimate(&at_once(&scenario));
            if matches!(closed.detail.unwrap().verdict, Verdict::Indivisible { .. }) {
                continue;
            }
            let found = estimate(&scenario);
            sound(&scenario, &found);
            let name = format!("{} on {}", workload.name, target.name);
            worst.look(&name, metric("step_time_ms", &scenario, &found), metric("step_time_ms", &scenario, &closed));
            cases += 1;
        }
    }
    println!("{cases} cases");
    assert!(cases >= 200, "{cases}");
    worst.within(0.10);
}
