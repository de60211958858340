//! Search throughput: points of a sweep and candidates of an optimization per second and core.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_plan::engine::estimate_into;
use atlas_plan::estimate::{Estimate, MetricId};
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::optimize::freed;
use atlas_plan::search::sweep::{Block, Row, Sweep};
use atlas_plan::search::{Axis, Gauge, Problem, Space, optimize};
use divan::counter::ItemsCount;
use divan::{AllocProfiler, Bencher, black_box};

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

const TARGETS: &str = "
- { name: h100x128, vendor: NVIDIA, accelerator: nvidia-h100-sxm-80gb, accelerators_per_node: 8, num_nodes: 16,
    memory_gb_per_accel: 80, interconnect: { type: NVLink, bw_GBps: 900 }, network: { Gbps_per_accel: 400 },
    cost: { hourly_usd: 24, energy_watts_node: 10200, pue: 1.2 } }
";
const WORKLOADS: &str = "
- { name: train, mode: training, model: llama-3.1-70b, sequence: { prompt: 8192, generate: 0 },
    batch: { micro: 1, global: 1024 }, parallelism: { tp: 8, pp: 4, dp: 4, vpp: 5 }, sharding: zero1 }
- { name: serve, mode: inference, model: llama-3.1-70b, sequence: { prompt: 1024, generate: 256 },
    parallelism: { tp: 8 }, precision: { weights: fp8 }, serving: { engine: vllm, concurrency: 64 } }
";

fn main() {
    divan::main();
}

fn start(workload: &str) -> (Parts, Scenario) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("targets.yaml"), TARGETS).unwrap();
    std::fs::write(dir.path().join("workloads.yaml"), WORKLOADS).unwrap();
    let sources = Sources { workload_dir: Some(dir.path().to_owned()), ..Sources::built_in() };
    let library = Library::load(&sources, None);
    let parts = Parts::find(&library, "h100x128", workload).unwrap();
    let scenario = Scenario::resolve(&parts, &Overrides::new()).unwrap();
    (parts, scenario)
}

/// Setting a numeric knob, the step between two points of a sweep: no allocation.
#[divan::bench(args = ["train", "serve"])]
fn turning_a_number(bencher: Bencher<'_, '_>, workload: &str) {
    let (parts, mut scenario) = start(workload);
    let settings = [Setting::Number(4.0), Setting::Number(8.0)];
    let mut turn = 0;
    bencher.bench_local(move || {
        turn = 1 - turn;
        scenario.set(Knob::Tp, black_box(&settings[turn]), &parts).unwrap();
        black_box(scenario.base.shape.dp)
    });
}

/// One analytical estimate: the budget is 2 µs without allocation.
#[divan::bench(args = ["train", "serve"])]
fn one_estimate(bencher: Bencher<'_, '_>, workload: &str) {
    let (_, scenario) = start(workload);
    let mut estimate = Estimate::default();
    bencher.bench_local(move || estimate_into(black_box(&scenario), black_box(&mut estimate)));
}

/// A hundred thousand points on all cores: the budget is a million points per second on two cores.
#[divan::bench(args = ["train", "serve"], sample_count = 10)]
fn a_sweep(bencher: Bencher<'_, '_>, workload: &str) {
    let contenders = vec![start(workload)];
    let (knob, most) = if workload == "train" { (Knob::Global, 25_000) } else { (Knob::Concurrency, 25_000) };
    let axes = vec![Axis::of(Knob::Tp, [1.0, 2.0, 4.0, 8.0]), Axis::of(knob, (1..=most).map(f64::from))];
    let sweep = Sweep { contenders, space: Space::of(axes).unwrap(), conditions: Vec::new() };
    bencher.counter(ItemsCount::new(100_000_usize)).bench_local(move || {
        let tell = |sum: &mut f64, row: &Row<'_>| *sum += row.estimate.total.tokens_per_sec;
        let mut all = 0.0;
        sweep
            .run(0..u64::MAX, &Gauge::default(), tell, |block: Block<f64>| {
                all += block.described;
                Ok(())
            })
            .unwrap();
        black_box(all)
    });
}

/// The default search space of Llama 3 70B training on 128 H100, searched exhaustively.
#[divan::bench(sample_count = 5)]
fn the_best_layout_on_128_accelerators(bencher: Bencher<'_, '_>) {
    let (parts, scenario) = start("train");
    let start = freed(&scenario, &|_| false, &parts);
    let problem = Problem::of(&start, &parts, MetricId::TokensPerSec.metric());
    bencher.bench_local(|| optimize(black_box(&problem), &Gauge::default()));
}
