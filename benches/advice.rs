//! Advice and derivations, which views compute on every edit: `cargo bench --bench advice`.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/it/common/plans.rs"]
mod plans;

use atlas_plan::advice::{Objective, advise, fit};
use atlas_plan::engine;
use atlas_plan::estimate::MetricId;
use atlas_plan::explain::explain;
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

/// A job over several nodes, a mixture of experts, a model that does not fit, serving, serving that does not fit, a
/// schedule.
const CASES: [(&str, &str); 7] = [
    ("h100x128", "train_70b"),
    ("gb200x72", "train_moe"),
    ("h100x8", "train_long"),
    ("h100x8", "serve_70b"),
    ("h100x8", "serve_v3"),
    ("h100x8", "serve_70b_one"),
    ("h100x8", "serve_day"),
];

#[divan::bench(args = CASES)]
fn one_estimate(bencher: Bencher, (target, workload): (&str, &str)) {
    let (_, scenario) = plans::one(&plans::library(), target, workload, &[]);
    bencher.bench_local(|| engine::estimate(black_box(&scenario)));
}

#[divan::bench(args = CASES)]
fn playbook(bencher: Bencher, (target, workload): (&str, &str)) {
    let (parts, scenario) = plans::one(&plans::library(), target, workload, &[]);
    let estimate = engine::estimate(&scenario);
    bencher.bench_local(|| advise(black_box(&scenario), &parts, &estimate, Objective::Throughput));
}

#[divan::bench(args = CASES)]
fn smallest_fixes(bencher: Bencher, (target, workload): (&str, &str)) {
    let (parts, scenario) = plans::one(&plans::library(), target, workload, &[]);
    let estimate = engine::estimate(&scenario);
    bencher.bench_local(|| fit::fit(black_box(&scenario), &parts, &estimate));
}

#[divan::bench(args = CASES)]
fn derivation(bencher: Bencher, (target, workload): (&str, &str)) {
    let (parts, scenario) = plans::one(&plans::library(), target, workload, &[]);
    let estimate = engine::estimate(&scenario);
    let metric = MetricId::DollarPer1mTokens.metric();
    bencher.bench_local(|| explain(black_box(&scenario), &parts, &estimate, metric));
}
