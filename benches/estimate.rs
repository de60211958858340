//! Duration of one estimate, and of resolving a scenario and drawing its noise.
#![allow(clippy::unwrap_used, missing_docs)]

use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_plan::engine;
use atlas_plan::engine::semi_empirical::{estimate_into, estimate_unscheduled_into};
use atlas_plan::estimate::Estimate;
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario, first_draw};
use divan::{AllocProfiler, Bencher, black_box};

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

fn parts(library: &Library, workload: &str) -> Parts {
    Parts::find(library, "NVIDIA_H100_8x_NVLink", workload).unwrap()
}

fn scenario(library: &Library, workload: &str) -> Scenario {
    Scenario::resolve(&parts(library, workload), &Overrides::new()).unwrap()
}

/// One phase: the budget is 0.2 µs without allocation.
#[divan::bench]
fn one_estimate(bencher: Bencher<'_, '_>) {
    let scenario = scenario(&Library::load(&Sources::built_in(), None), "gpt5_1t_inference");
    let mut estimate = Estimate::default();
    bencher.bench_local(move || estimate_unscheduled_into(black_box(&scenario), black_box(&mut estimate)));
}

/// Three phases with queueing, and their aggregate.
#[divan::bench]
fn a_schedule(bencher: Bencher<'_, '_>) {
    let scenario = scenario(&Library::load(&Sources::built_in(), None), "gpt5_1t_inference");
    let mut estimate = Estimate::default();
    estimate_into(&scenario, &mut estimate);
    bencher.bench_local(move || estimate_into(black_box(&scenario), black_box(&mut estimate)));
}

/// Setting a knob and estimating: one point of a sweep.
#[divan::bench]
fn a_knob_and_an_estimate(bencher: Bencher<'_, '_>) {
    let library = Library::load(&Sources::built_in(), None);
    let parts = parts(&library, "gpt5_1t_train");
    let mut scenario = scenario(&library, "gpt5_1t_train");
    let mut estimate = Estimate::default();
    let settings = (Setting::Number(4.0), Setting::Number(8.0));
    let mut turn = false;
    bencher.bench_local(move || {
        turn = !turn;
        scenario.set(Knob::Tp, black_box(if turn { &settings.0 } else { &settings.1 }), &parts).unwrap();
        estimate_unscheduled_into(&scenario, black_box(&mut estimate));
    });
}

fn analytical(workload: &str) -> (Parts, Scenario) {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/analytical");
    let (targets, workloads) = (Some(data.join("targets.yaml")), Some(data.join("workloads.yaml")));
    let library = Library::load(&Sources { targets, workloads, ..Sources::built_in() }, None);
    let parts = Parts::find(&library, "h100x8", workload).unwrap();
    let scenario = Scenario::resolve(&parts, &Overrides::new()).unwrap();
    (parts, scenario)
}

/// With the analytical engine: the budget is 2 µs without allocation.
#[divan::bench(args = ["llama3_8b_train", "llama3_70b_serve"])]
fn an_analytical_estimate(bencher: Bencher<'_, '_>, workload: &str) {
    let (_, scenario) = analytical(workload);
    let mut estimate = Estimate::default();
    bencher.bench_local(move || engine::estimate_into(black_box(&scenario), black_box(&mut estimate)));
}

/// Setting a knob and estimating with the analytical engine.
#[divan::bench(args = ["llama3_8b_train", "llama3_70b_serve"])]
fn a_knob_and_an_analytical_estimate(bencher: Bencher<'_, '_>, workload: &str) {
    let (parts, mut scenario) = analytical(workload);
    let mut estimate = Estimate::default();
    let settings = (Setting::Number(4.0), Setting::Number(8.0));
    let mut turn = false;
    bencher.bench_local(move || {
        turn = !turn;
        scenario.set(Knob::Tp, black_box(if turn { &settings.0 } else { &settings.1 }), &parts).unwrap();
        engine::estimate_into(&scenario, black_box(&mut estimate));
    });
}

/// Seeding Python's generator: once per scenario and seed, never per estimate.
#[divan::bench]
fn seeding_the_noise() -> f64 {
    first_draw(black_box(1337))
}

/// Reading and decoding all built-in files.
#[divan::bench]
fn loading_the_library() -> Library {
    Library::load(&Sources::built_in(), None)
}
