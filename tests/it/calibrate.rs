//! Calibration: known coefficients are recovered from synthetic measurements within their stated intervals, the second
//! half of a real log is predicted better after calibration with the first half, and no input leads to absurd results.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use atlas_config::Profile;
use atlas_config::corrections::Quantity;
use atlas_config::library::Library;
use atlas_document::{Diagnostics, Sources, parse};
use atlas_evidence::calibrate::judge::median_errors;
use atlas_evidence::calibrate::parameter::SLOTS;
use atlas_evidence::calibrate::predict::{PredictedMetric, predicted};
use atlas_evidence::calibrate::rows::resolve;
use atlas_evidence::calibrate::{Observation, Outcome, RowPredictor, Start, calibrate, document, intake};
use atlas_evidence::runs::experiment::{Cluster, with_table};
use atlas_evidence::runs::shipped_runs;
use atlas_ingest::Context;
use atlas_plan::engine::answer::corrected::corrected_metrics;
use atlas_plan::scenario::{ActiveCorrections, Parts, Scenario};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The predecessor's target, which has coefficients but no accelerator of the catalog.
const PREDECESSOR: &str = "NVIDIA_H100_8x_NVLink";

fn library() -> Library {
    Library::load(&Sources::built_in(), None)
}

fn rows(name: &str, text: &str) -> Vec<Observation> {
    let context = Context { name: name.to_owned(), seed: 1, ..Context::default() };
    intake::gather(text.as_bytes(), &context, &[]).unwrap_or_else(|error| panic!("{error}")).rows
}

fn calibrated(library: &Library, target: &str, rows: &[Observation]) -> Outcome {
    let target = library.target(target).unwrap();
    let bench = RowPredictor::new(library, target, None);
    calibrate(&bench, rows, &Start::of(library, target))
}

/// Normal deviates by the Box-Muller method, over splitmix64.
struct Dice(u64);

impl Dice {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform().max(1e-12), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// `value` with a relative standard deviation of `spread`.
    fn about(&mut self, value: f64, spread: f64) -> f64 {
        value * (1.0 + spread * self.normal())
    }
}

/// True coefficients of the synthetic machine, by their paths in the profile.
fn truth() -> BTreeMap<&'static str, f64> {
    BTreeMap::from([
        ("compute.base_tokens_per_accel", 1000.0),
        ("utilization.base", 0.5),
        ("compute.factors.training", 2.0),
        ("utilization.knob_increments.cuda_graphs", 0.08),
        ("communication.intensity.base", 0.03),
        ("communication.intensity.per_tp", 0.015),
        ("communication.intensity.per_pp", 0.008),
        ("communication.fabric_factors.RoCE", 1.3),
        ("communication.jitter_per_sriov", (0.05 * 1.644_854_f64 - 0.05 * 0.05 / 2.0).exp() - 1.0),
        ("latency.min_p50_ms", 4.0),
        ("latency.base_p50_coeff", 800.0),
        ("latency.tail.p95_multiplier", 1.6),
        ("latency.tail.p99_multiplier", 2.3),
        ("power.node_nominal_w", 9_000.0),
        ("power.idle_fraction", 0.35),
        ("power.util_fraction", 0.65),
    ])
}

/// A complete measurement campaign on the synthetic machine as described in the guide, with noise.
fn campaign(seed: u64, profile: &Profile) -> Vec<Observation> {
    let mut dice = Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 99);
    let (true_, c) = (truth(), &profile.coefficients);
    let (chi, tp_, pp_) = (
        true_["communication.intensity.base"],
        true_["communication.intensity.per_tp"],
        true_["communication.intensity.per_pp"],
    );
    let mut all = Vec::new();
    // One accelerator with three batch sizes; the model's share of the peak follows from rho.
    let rho = true_["utilization.base"];
    let mut text = "mode,num_gpus,tp,pp,batch_size,seq_len,tokens_per_second,utilization,mfu\n".to_owned();
    for (batch, rate, busy) in [(1, 500.0, 0.6), (8, 900.0, 0.9), (32, 1000.0, 0.96)] {
        for _ in 0..6 {
            let left = 1.0 - c.kappa_comm * chi.max(c.omega_min);
            let (rate, mfu) = (dice.about(rate, 0.01), dice.about(rho * left, 0.02));
            let _ = writeln!(text, "training,1,1,1,{batch},2048,{rate},{busy},{mfu}");
        }
    }
    // The same batch with several parallel layouts on InfiniBand: the lost share of time is omega chi.
    for (tp, pp) in [(2, 1), (4, 1), (8, 1), (1, 2), (1, 4), (1, 8), (2, 2), (4, 4), (8, 2), (2, 8)] {
        for _ in 0..2 {
            let (n, lost) = (f64::from(tp * pp), c.omega * (chi + tp_ * f64::from(tp - 1) + pp_ * f64::from(pp - 1)));
            let rate = dice.about(n * 1000.0 / (1.0 + lost), 0.01);
            let _ = writeln!(text, "training,{n},{tp},{pp},32,2048,{rate},,");
        }
    }
    all.extend(rows("sweep.csv", &text));
    let mut text = "fabric,op,message_bytes,busbw\n".to_owned();
    for power in 20..31 {
        for (fabric, rate) in [("InfiniBand", 40.0), ("RoCE", 40.0 / true_["communication.fabric_factors.RoCE"])] {
            let _ = writeln!(text, "{fabric},all_reduce,{},{}", 1_u64 << power, dice.about(rate, 0.02));
        }
    }
    all.extend(rows("fabric.csv", &text));
    let mut text = "virt,runtime_s\n".to_owned();
    for _ in 0..150 {
        let _ = writeln!(text, "sriov,{}", 10.0 * (0.05 * dice.normal()).exp());
    }
    all.extend(rows("jitter.csv", &text));
    let mut text = "mode,compute_rate,p50_ms\n".to_owned();
    for rate in [20.0, 40.0, 60.0, 80.0, 100.0, 120.0, 400.0, 600.0, 900.0, 1200.0, 1600.0] {
        let latency: f64 = (800.0_f64 / rate).max(4.0);
        let _ = writeln!(text, "inference,{rate},{}", dice.about(latency, 0.02));
    }
    all.extend(rows("latency.csv", &text));
    // The tail grows with the communication.
    let mut text = "mode,p50_ms,p95_ms,p99_ms,samples\n".to_owned();
    let chi_of_serving = chi * c.chi_infer_scale;
    let wide = 1.0 + c.tail_comm * chi_of_serving.max(c.omega_min);
    for _ in 0..8 {
        let (p95, p99) = (dice.about(4.0 * 1.6 * wide, 0.03), dice.about(4.0 * 2.3 * wide, 0.03));
        let _ = writeln!(text, "inference,4.0,{p95},{p99},2000");
    }
    all.extend(rows("tails.csv", &text));
    let mut text = "power_w,utilization\n".to_owned();
    for _ in 0..3 {
        for busy in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let watts = 9_000.0 * (0.35 + 0.65 * busy) + 60.0 * dice.normal();
            let _ = writeln!(text, "{watts},{busy}");
        }
    }
    all.extend(rows("power.csv", &text));
    let mut text = "model,cuda_graphs,utilization\n".to_owned();
    for model in ["a", "b", "c", "d", "e", "f"] {
        let base = 0.5 + 0.05 * dice.normal();
        let _ = writeln!(text, "{model},off,{}", base + 0.005 * dice.normal());
        let _ = writeln!(text, "{model},on,{}", base + 0.08 + 0.005 * dice.normal());
    }
    all.extend(rows("graphs.csv", &text));
    all
}

#[test]
fn known_coefficients_are_recovered_within_their_stated_intervals() {
    const SEEDS: u64 = 200;
    let library = library();
    let profile = library.profile_for(library.target(PREDECESSOR).unwrap()).unwrap().clone();
    let truth = truth();
    let workers: Vec<u64> = (0..4).collect();
    let run = |worker: u64| {
        let mut held: BTreeMap<&'static str, (usize, f64)> = BTreeMap::new();
        for seed in (0..SEEDS).filter(|seed| seed % 4 == worker) {
            let outcome = calibrated(&library, PREDECESSOR, &campaign(seed, &profile));
            for (path, value) in &truth {
                let one = outcome.parameters.iter().find(|one| one.path == *path);
                let one = one.unwrap_or_else(|| panic!("{path} of seed {seed}: {:?}", outcome.warnings));
                let [low, high] = one.interval.unwrap();
                assert!((one.value / value - 1.0).abs() < 0.5, "{path}: {} for {value}, seed {seed}", one.value);
                let entry = held.entry(path).or_default();
                entry.0 += usize::from(low <= *value && *value <= high);
                entry.1 += (high - low) / 2.0 / value / SEEDS as f64;
            }
        }
        held
    };
    let found: Vec<BTreeMap<&'static str, (usize, f64)>> = std::thread::scope(|scope| {
        let run = &run;
        let handles: Vec<_> = workers.iter().map(|worker| scope.spawn(move || run(*worker))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    let mut total = 0;
    for path in truth.keys() {
        let held: usize = found.iter().map(|one| one[path].0).sum();
        let width: f64 = found.iter().map(|one| one[path].1).sum();
        println!("{path:<42} {:5.1} %  ±{:.1} %", 100.0 * held as f64 / SEEDS as f64, 100.0 * width);
        // 95 % nominal: fewer than about 176 of 200 seeds would mean that the interval is wrong.
        assert!(held * 100 >= 88 * SEEDS as usize, "{path}: {held} of {SEEDS}");
        total += held;
    }
    let share = total as f64 / (SEEDS as usize * truth.len()) as f64;
    println!("all: {:.1} % of {} intervals", 100.0 * share, SEEDS as usize * truth.len());
    assert!((0.93..=0.985).contains(&share), "{share}");
}

/// Training runs of one model on a node of eight H100, as fields of rows.
fn training_rows() -> Vec<Value> {
    let mut rows = Vec::new();
    for (tp, pp, batch, seq) in
        [(1, 1, 2, 2048), (2, 1, 2, 4096), (4, 1, 1, 8192), (8, 1, 1, 2048), (2, 2, 1, 4096), (1, 4, 1, 2048)]
    {
        rows.push(json!({
            "mode": "training", "num_gpus": 8, "tp": tp, "pp": pp, "batch": batch, "global_batch": 64, "seq_len": seq,
            "model": "llama-3.1-8b", "precision": "bf16", "zero_stage": 1,
        }));
    }
    rows
}

fn row(fields: &Value, rate: f64) -> Observation {
    let mut fields = fields.as_object().unwrap().clone();
    fields.insert("tokens_per_sec".to_owned(), rate.into());
    Observation::of("row", fields.iter().map(|(name, value)| (name.as_str(), value))).0
}

/// Measurements of a machine whose throughput is the prediction times a factor.
fn paced(bench: &RowPredictor<'_>, rate: impl Fn(usize, f64) -> f64, n: usize) -> Vec<Observation> {
    let rows = training_rows();
    let rows = rows.iter().enumerate().take(n).map(|(index, fields)| {
        let scenario = bench.analytical(&row(fields, 1.0)).unwrap();
        row(fields, rate(index, predicted(&scenario, PredictedMetric::TokensPerSec).unwrap()))
    });
    rows.collect()
}

/// Ratio of the corrected prediction to the uncorrected one, for the last of the rows.
fn factor(bench: &RowPredictor<'_>, outcome: &Outcome) -> f64 {
    let unseen = row(training_rows().last().unwrap(), 1.0);
    let Some(corrections) = &outcome.corrections else { return 1.0 };
    let (_, found) = resolve(bench, &unseen).unwrap();
    let parts = Parts { corrections: Some(Arc::clone(corrections)), ..found.parts.clone() };
    let calibrated = Scenario { corrections: ActiveCorrections::of(&parts), ..found.scenario.clone() };
    let of = |scenario| predicted(scenario, PredictedMetric::TokensPerSec).unwrap();
    of(&calibrated) / of(&found.scenario)
}

#[test]
fn more_runs_improve_the_correction_and_outliers_have_bounded_influence() {
    let library = library();
    let target = library.target("h100-sxm-8").unwrap();
    let bench = RowPredictor::new(&library, target, None);
    let start = Start::of(&library, target);
    let at = |rate: &dyn Fn(usize, f64) -> f64, n: usize| calibrate(&bench, &paced(&bench, rate, n), &start);
    // A machine 20 % slower than predicted: the correction approaches this factor and never exceeds it.
    let slow = |_: usize, predicted: f64| 0.8 * predicted;
    let [one, three, five] = [1, 3, 5].map(|n| factor(&bench, &at(&slow, n)));
    assert!(one < 0.99 && three < one && five < three && five > 0.8, "{one} {three} {five}");
    let (n, before, after) = median_errors(&at(&slow, 3).judged).unwrap();
    assert!(n >= 3 && before > 20.0 && after < 0.6 * before, "{before} {after}");
    // One of three runs that is off by a factor of a thousand has little influence.
    let wild = at(&|index, predicted| if index == 1 { predicted / 1000.0 } else { predicted }, 3);
    let wild = factor(&bench, &wild);
    assert!((0.7..=1.1).contains(&wild), "{wild}");
}

#[test]
fn corrections_do_not_widen_intervals_or_apply_to_other_accelerators() {
    let library = library();
    let target = library.target("h100-sxm-8").unwrap();
    let bench = RowPredictor::new(&library, target, None);
    let rows = paced(&bench, |_, predicted| 0.9 * predicted, 3);
    let outcome = calibrate(&bench, &rows, &Start::of(&library, target));
    let corrections = outcome.corrections.unwrap();
    let (_, found) = resolve(&bench, &rows[0]).unwrap();
    let parts = Parts { corrections: Some(Arc::clone(&corrections)), ..found.parts.clone() };
    let calibrated = Scenario { corrections: ActiveCorrections::of(&parts), ..found.scenario.clone() };
    let estimate = atlas_plan::engine::estimate(&calibrated);
    let beside = corrected_metrics(&calibrated, &estimate);
    let [one] = beside.as_slice() else { panic!("{beside:?}") };
    let shipped = atlas_plan::engine::estimate(&found.scenario);
    assert_eq!(one.shipped, shipped.total.tokens_per_sec);
    assert_eq!(one.runs, corrections.of(Quantity::Training).unwrap().runs);
    assert_eq!(one.calibrated, estimate.total.tokens_per_sec);
    let width = |(low, high): (f64, f64)| high / low;
    assert!(width(one.calibrated_interval) <= width(one.shipped_interval) + 1e-9);
    let residual = corrections.of(Quantity::Training).unwrap().residual;
    assert!(width(one.calibrated_interval).ln() > 2.0 * residual);
    // The parts of the time breakdown still sum to the step time.
    let total = estimate.detail.unwrap().time.total() * 1e3;
    assert!((total / estimate.total.step_time_ms.unwrap() - 1.0).abs() < 1e-9);
    let other = library.target("h200-sxm-8").unwrap();
    let workload = library.workload("llama3.1-8b-train").unwrap();
    let parts = Parts { corrections: Some(corrections), ..Parts::of(&library, other, workload).unwrap() };
    assert!(Scenario::from_files(&parts).corrections.is_none());
}

fn log(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs").join(format!("{name}.gz"));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// After calibration with the first half of a real log, the second half is predicted better, by both engines where they
/// apply.
#[test]
fn the_second_half_of_a_real_log_is_predicted_better_with_its_first() {
    let library = library();
    // 500 steps of Llama 3.1 8B on eight MI300X.
    let document: Value = serde_json::from_slice(&log("tprimat/train_amd_prim_llama.json")).unwrap();
    let steps = document["step_times"].as_array().unwrap().clone();
    let half = |range: std::ops::Range<usize>| {
        let mut document = document.clone();
        let times: Vec<f64> = steps[range].iter().filter_map(Value::as_f64).collect();
        document["performance_metrics"] =
            json!({"avg_step_time_seconds": times.iter().sum::<f64>() / times.len() as f64});
        document["step_times"] = times.into();
        for name in ["loss_values", "learning_rates"] {
            document[name] = json!([]);
        }
        rows("half.json", &document.to_string())
    };
    let (first, second) = (half(0..steps.len() / 2), half(steps.len() / 2..steps.len()));
    halves(&library, "mi300x-8", Some("llama3.1-8b-compare"), &first, &second, (30.0, 35.0));
    // 50 steps of GPT-3 175B on 256 H100; the number of accelerators is in the log's own recipe.
    let text = String::from_utf8(log("nemo/nemo_dllogger_gpt3_175b.json")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let is_step = |line: &&&str| line.contains("train_step_timing");
    let steps: Vec<&str> = lines.iter().filter(is_step).copied().collect();
    let head: Vec<&str> = lines.iter().filter(|line| !line.contains("train_step_timing")).copied().collect();
    let half = |steps: &[&str]| {
        let text = head.iter().chain(steps).map(|line| format!("{line}\n")).collect::<String>();
        let mut rows = rows("half.json", &text);
        for row in &mut rows {
            row.set("num_gpus", 256.0.into());
            row.set("vocab_size", 51_200.0.into());
        }
        rows
    };
    let (first, second) = (half(&steps[..steps.len() / 2]), half(&steps[steps.len() / 2..]));
    halves(&library, "h100-sxm-1024", None, &first, &second, (4.0, 12.0));
}

/// Calibrates with one part and evaluates on the other: the error before is at least `at_least`, and after at most
/// `at_most`.
fn halves(
    library: &Library,
    target: &str,
    workload: Option<&str>,
    first: &[Observation],
    second: &[Observation],
    (at_least, at_most): (f64, f64),
) {
    let target = library.target(target).unwrap();
    let workload = workload.map(|name| library.workload(name).unwrap());
    let bench = RowPredictor::new(library, target, workload);
    let outcome = calibrate(&bench, first, &Start::of(library, target));
    let error = |scenario: &atlas_plan::scenario::Scenario| {
        let measured = PredictedMetric::TokensPerSec.measured(&second[0]).unwrap().value;
        100.0 * (predicted(scenario, PredictedMetric::TokensPerSec).unwrap() / measured - 1.0).abs()
    };
    let mut scenario = bench.analytical(&second[0]).unwrap();
    let before = error(&scenario);
    if let Some(corrections) = &outcome.corrections {
        let (_, found) = resolve(&bench, &second[0]).unwrap();
        let parts = Parts { corrections: Some(Arc::clone(corrections)), ..found.parts };
        scenario.corrections = ActiveCorrections::of(&parts);
    }
    let after = error(&scenario);
    println!("{}: analytical {before:.1} % before, {after:.1} % after", target.name);
    // If the halves differ by more than the prediction error, the first half cannot improve the prediction of the
    // second.
    let rate = |rows: &[Observation]| PredictedMetric::TokensPerSec.measured(&rows[0]).unwrap().value;
    let gap = 100.0 * (rate(first) / rate(second) - 1.0).abs();
    assert!(before > at_least && after < at_most && after < before.max(gap), "{before} {after} {gap}");
    if let (Some(before), Some(after)) = (Start::of(library, target).figures(), outcome.figures) {
        let of = |figures: &atlas_evidence::calibrate::ProfileValues| {
            error(&bench.semi_empirical(&second[0], &figures.coefficients, &figures.fabrics).unwrap())
        };
        println!("{}: semi-empirical {:.1} % before, {:.1} % after", target.name, of(&before), of(&after));
        assert!(of(&after) < 15.0 && of(&before) > 40.0);
    }
}

/// After calibration with three runs of a cluster, its other runs are predicted better, over all built-in measurements
/// of some metrics and with the built-in table. `cargo xtask calibration-experiment` does the same with tables that are
/// fitted without the cluster.
#[test]
fn after_three_runs_the_rest_of_a_source_is_predicted_no_worse() {
    let all = [
        (Quantity::Training, [Cluster::Source, Cluster::System]),
        (Quantity::Serving, [Cluster::Source, Cluster::System]),
        // Each source of latencies is already a single system.
        (Quantity::Tpot, [Cluster::Source, Cluster::Source]),
    ];
    let read = all.map(|(quantity, clusters)| (quantity, clusters, shipped_runs(quantity).unwrap()));
    for (quantity, cluster, runs) in read.iter().flat_map(|(quantity, two, runs)| two.map(|one| (*quantity, one, runs)))
    {
        let found = with_table(runs, quantity, cluster, 3).unwrap();
        let (before, after) = (found.total.before, found.total.after);
        println!(
            "{}: {:.2} / {:.1} -> {:.2} / {:.1}",
            found.quantity, before.median, before.p90, after.median, after.p90
        );
        assert!(found.clusters.len() >= 10);
        assert!(after.median <= before.median && after.p90 <= before.p90, "{before:?} {after:?}");
        assert!(found.total.covered_after >= 0.85, "{}", found.total.covered_after);
        assert!(found.total.width_after <= found.total.width_before);
    }
}

#[test]
fn calibrated_profile_round_trips_with_its_provenance() {
    let library = library();
    let profile = library.profile_for(library.target(PREDECESSOR).unwrap()).unwrap().clone();
    let outcome = calibrated(&library, PREDECESSOR, &campaign(5, &profile));
    let start = Start::of(&library, library.target(PREDECESSOR).unwrap());
    let text = document::profile(&outcome, &start, "NVIDIA", "2026-07-20");
    let file: Arc<str> = "x.yaml".into();
    let mut problems = Diagnostics::new();
    let node = parse::parse(&file, &text, &mut problems).unwrap();
    let read = Profile::decode(&file, "x", &node, &mut problems).unwrap();
    assert!(problems.is_empty(), "{problems}");
    // Every value is read back exactly, and what was not measured is unchanged.
    let figures = outcome.figures.as_ref().unwrap();
    assert_eq!(read.coefficients, figures.coefficients);
    assert_eq!(read.fabrics.to_vec(), figures.fabrics);
    assert_eq!(read.node_watts, figures.node_watts);
    assert_eq!(read.coefficients.hbm_base, profile.coefficients.hbm_base);
    let calibration = read.calibration.unwrap();
    assert_eq!((calibration.date.as_deref(), calibration.target.as_deref()), (Some("2026-07-20"), Some(PREDECESSOR)));
    for one in &outcome.parameters {
        let known = calibration.of(&one.path).unwrap_or_else(|| panic!("{}", one.path));
        assert_eq!((known.value, known.interval, known.n), (Some(one.value), one.interval, Some(one.n as f64)));
        assert!(known.method.is_some() && !known.sources.is_empty() && known.date.is_some());
        assert!(known.sources.iter().all(|source| source.ends_with(".csv")), "{:?}", known.sources);
    }
    // With the profile in effect, the calibration measurements themselves are predicted well.
    let (n, before, after) = median_errors(
        outcome.judged.iter().filter(|one| one.figure == PredictedMetric::TokensPerSec && one.accelerators > Some(1.0)),
    )
    .unwrap();
    assert!(n == 20 && before > 40.0 && after < 5.0, "{n} {before} {after}");
}

#[test]
fn a_target_without_coefficients_gets_a_profile_of_corrections_alone() {
    let library = library();
    let row = row(
        &json!({"num_gpus": 8, "tp": 1, "pp": 1, "batch": 1, "global_batch": 64, "seq_len": 2048, "model": "llama-3.1-8b"}),
        54_000.0,
    );
    let outcome = calibrated(&library, "mi300x-8", &[row]);
    assert!(outcome.parameters.is_empty() && outcome.figures.is_none() && outcome.corrections.is_some());
    let text = document::profile(&outcome, &Start::default(), "AMD", "2026-07-20");
    let file: Arc<str> = "mi300x_8.yaml".into();
    let mut problems = Diagnostics::new();
    let node = parse::parse(&file, &text, &mut problems).unwrap();
    let profile = Profile::decode(&file, "mi300x_8", &node, &mut problems).unwrap();
    assert!(problems.is_empty() && !profile.calibrated, "{problems}\n{text}");
    // The corrections are read back with full precision.
    assert_eq!(profile.corrections.as_deref(), outcome.corrections.as_deref());
}

#[test]
fn calibration_warns_about_rows_that_violate_measurement_criteria() {
    let library = library();
    let text = "mode,num_gpus,batch_size,tokens_per_second,utilization,std,samples\n\
                training,1,1,500,0.5,100,5\n\
                training,1,2,900,0.6,10,200\n";
    let warnings = calibrated(&library, PREDECESSOR, &rows("bad.csv", text)).warnings.join("\n");
    assert!(warnings.contains("no configuration is stable") && warnings.contains("5 %"), "{warnings}");
    let text = "num_gpus,tokens_per_second,warmup_steps\n1,500,3\n1,501,0\n";
    let warnings = calibrated(&library, PREDECESSOR, &rows("cold.csv", text)).warnings.join("\n");
    assert!(warnings.contains("cold.csv:2: fewer than 20 warm-up steps"), "{warnings}");
    assert!(warnings.contains("cold.csv:3: no warm-up steps were excluded"), "{warnings}");
    let text = "mode,p50_ms,p95_ms,p99_ms,samples\ninference,4,7,9,40\n";
    let warnings = calibrated(&library, PREDECESSOR, &rows("few.csv", text)).warnings.join("\n");
    assert!(warnings.contains("fewer than 100 requests"), "{warnings}");
    // Plausibility: a node with accelerators of the catalog that achieves half of what it should.
    let text = "model,num_gpus,tp,pp,batch_size,global_batch,seq_len,tokens_per_second\n\
                llama-3.1-8b,1,1,1,1,8,2048,3000\n";
    let warnings = calibrated(&library, "h100-sxm-8", &rows("slow.csv", text)).warnings.join("\n");
    assert!(warnings.contains("of the analytical engine, expected within 20 %"), "{warnings}");
}

#[test]
fn switch_pairs_and_baseline_labels_yield_calibration_parameters() {
    let library = library();
    let mut all = Vec::new();
    for (switch, share) in [(true, 0.62), (false, 0.55)] {
        let mut some = rows("ab.csv", &format!("model,utilization\nm,{share}\n"));
        some[0].set("cuda_graphs", switch.into());
        all.extend(some);
    }
    let outcome = calibrated(&library, PREDECESSOR, &all);
    let delta = outcome.parameters.iter().find(|one| one.symbol == "delta_rho_cuda").unwrap();
    assert!((delta.value - 0.07).abs() < 1e-9);
    let text = "hardware,baseline,mode,num_gpus,batch_size,tokens_per_second\n\
                A100,true,training,1,8,500\nH100,false,training,1,8,1100\n";
    let outcome = calibrated(&library, PREDECESSOR, &rows("base.csv", text));
    let of = |symbol: &str| outcome.parameters.iter().find(|one| one.symbol == symbol).unwrap().value;
    assert!((of("f_vendor(training)") - 2.2).abs() < 1e-9 && of("B_base") == 500.0);
}

/// A log of another accelerator is not used for calibration.
#[test]
fn rows_of_another_accelerator_are_refused_with_their_device() {
    let library = library();
    let text = String::from_utf8(log("tprimat/train_amd_prim_llama.json")).unwrap();
    let rows = rows("run.json", &text);
    for (name, used) in [("mi300x-8", true), ("h100-sxm-8", false)] {
        let target = library.target(name).unwrap();
        let workload = library.workload("llama3.1-8b-compare").unwrap();
        let bench = RowPredictor::new(&library, target, Some(workload));
        let outcome = calibrate(&bench, &rows, &Start::of(&library, target));
        assert_eq!(!outcome.is_empty(), used, "{name}: {:?}", outcome.refused);
        assert_eq!(outcome.refused.iter().any(|(_, reason)| reason.contains("AMD Instinct MI300X")), !used);
        assert_eq!(outcome.judged.is_empty(), !used);
    }
}

#[test]
fn invalid_measurement_files_are_refused_with_the_reason() {
    for (text, word) in [
        ("", "empty"),
        ("a,b\n1,2\n", "no known format"),
        ("measurements: 3\n", "expected a list"),
        ("measurements:\n- {tp: 2}\n", "no measurements found"),
        ("tokens_per_second\nnan\n", "x:2:1: tokens_per_second: found \"nan\""),
        ("{\"measurements\": [", "not JSON"),
        ("tp,step_time_ms,step_time_ms\n1,16000,3\n", "column `step_time_ms` occurs twice"),
        ("tp,step_time_ms\n1,16000,3\n", "x:2: 3 cells for 2 columns"),
    ] {
        let context = Context { name: "x".to_owned(), ..Context::default() };
        let error = intake::gather(text.as_bytes(), &context, &[]).unwrap_err().to_string();
        assert!(error.contains(word), "{text:?}: {error}");
    }
}

#[test]
fn tables_are_utf8_and_may_end_lines_with_empty_cells() {
    let context = Context { name: "x".to_owned(), ..Context::default() };
    let error = intake::gather(&b"tp,software,step_time_ms\n1,pytorch\xe9,3\n"[..], &context, &[]).unwrap_err();
    assert!(error.to_string().contains("x:2: expected UTF-8"), "{error}");
    assert_eq!(rows("x", "tp,step_time_ms\n1,16000,,\n").len(), 1);
}

#[test]
fn impossible_measurements_are_refused_and_implausible_ones_named() {
    let library = library();
    let training = |step_ms: &str| {
        let text = format!(
            "mode,model,precision,num_gpus,batch,global_batch,seq_len,step_time_ms\n\
             training,llama-3.1-8b,bf16,8,1,64,4096,{step_ms}\n"
        );
        calibrated(&library, "h100-sxm-8", &rows("runs.csv", &text))
    };
    let usual = training("4000");
    assert!(usual.refused.is_empty() && usual.corrections.is_some(), "{:?}", usual.refused);
    assert!(!usual.warnings.iter().any(|warning| warning.contains("times the estimate")), "{:?}", usual.warnings);
    let fast = training("4");
    assert!(fast.refused[0].1.contains("times the peak rate"), "{:?}", fast.refused);
    assert!(fast.corrections.is_none());
    for step in ["4000000", "1e300"] {
        let slow = training(step);
        assert!(slow.warnings.iter().any(|warning| warning.contains("times the estimate")), "{:?}", slow.warnings);
        let table = atlas_report::calibration::table(&slow);
        assert!(table.lines().all(|line| line.chars().count() < 250), "{table}");
    }
    let serving = |rate: f64| {
        let text = format!(
            "mode,model,precision,num_gpus,tp,concurrency,seq_len,generate,tokens_per_second,ttft_ms,tpot_ms\n\
             inference,llama-3.1-70b,fp8,8,8,128,1024,1024,{rate},500,17.4\n"
        );
        calibrated(&library, "h200-sxm-8", &rows("runs.csv", &text))
    };
    assert!(serving(7_000.0).refused.is_empty());
    let refused = serving(21_000.0).refused;
    assert!(refused[0].1.contains("it contradicts itself: 128 requests in flight"), "{refused:?}");
}

/// Typical cells of tables, written by people and programs.
fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<f64>().prop_map(|value| value.to_string()),
        (-3.0_f64..12.0).prop_map(|power| 10_f64.powf(power).to_string()),
        prop::sample::select(vec![
            "", "0", "-1", "nan", "inf", "1e308", "true", "on", "IB", "sriov", "training", "x", "50%"
        ])
        .prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever the table contains: no panic, all values found are plausible, and the profile can be read.
    #[test]
    fn random_tables_give_parameters_in_range_and_a_readable_profile(
        names in prop::sample::subsequence(
            vec![
                "mode", "num_gpus", "tp", "pp", "batch", "global_batch", "seq_len", "generate", "tokens_per_sec",
                "utilization", "mfu", "overhead", "fabric", "busbw_gbps", "message_bytes", "p50_ms", "p95_ms", "p99_ms",
                "samples", "power_w", "cuda_graphs", "virt", "runtime_s", "step_time_s", "model", "compute_rate",
            ],
            3..14,
        ),
        cells in prop::collection::vec(cell(), 14 * 6),
        accelerated in any::<bool>(),
    ) {
        let mut text = names.join(",") + "\n";
        for line in cells.chunks(14) {
            text += &(line[..names.len()].join(",") + "\n");
        }
        let context = Context { name: "t.csv".to_owned(), ..Context::default() };
        let Ok(gathered) = intake::gather(text.as_bytes(), &context, &[]) else { return Ok(()) };
        let library = shared();
        let target = if accelerated { "h100-sxm-8" } else { PREDECESSOR };
        let outcome = calibrated(library, target, &gathered.rows);
        for one in &outcome.parameters {
            let slot = SLOTS.iter().find(|slot| slot.path == one.path);
            let [low, high] = slot.map_or([0.0, 1e7], |slot| slot.range);
            prop_assert!((low..=high).contains(&one.value), "{} = {}", one.symbol, one.value);
            prop_assert!(one.interval.is_none_or(|[low, high]| low <= high), "{}: {:?}", one.symbol, one.interval);
        }
        for quantity in Quantity::ALL {
            let found = outcome.corrections.as_ref().and_then(|found| found.of(quantity));
            for (factor, value) in found.map(|one| one.effects.as_slice()).unwrap_or_default() {
                prop_assert!(value.abs() <= 3.0, "{factor:?} {value}");
            }
        }
        let start = Start::of(library, library.target(target).unwrap());
        let yaml = document::profile(&outcome, &start, "NVIDIA", "2026-07-20");
        let file: Arc<str> = "p.yaml".into();
        let mut problems = Diagnostics::new();
        let node = parse::parse(&file, &yaml, &mut problems);
        let read = node.and_then(|node| Profile::decode(&file, "p", &node, &mut problems));
        prop_assert!(read.is_some() && problems.is_empty(), "{problems}\n{yaml}");
    }
}

fn shared() -> &'static Library {
    static LIBRARY: std::sync::OnceLock<Library> = std::sync::OnceLock::new();
    LIBRARY.get_or_init(library)
}
