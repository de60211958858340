//! The event engine on scenarios from files and knobs, compared with the closed form where nothing queues, and
//! invariants of every estimate.

use std::path::Path;

use atlas_config::Mode;
use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_plan::engine::answer::event;
use atlas_plan::engine::{analytical_scenario, estimate};
use atlas_plan::estimate::standing::available_value;
use atlas_plan::estimate::{Cause, Estimate, METRICS, Metric, MetricId, Verdict};
use atlas_plan::knob::{Knob, KnobValues as _, Overrides};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_sim::kernel::Progress;

/// The built-in library.
fn shipped() -> Library {
    Library::load(&Sources::built_in(), None)
}

/// Targets of every vendor and size, few enough for an unoptimized build.
const TARGETS: [&str; 10] = [
    "h100-sxm-8",
    "h100-sxm-64",
    "gb200-nvl72",
    "a100-sxm-80gb-64",
    "mi300x-8",
    "mi355x-8",
    "tpu-v5p-128",
    "tpu-v6e-8",
    "trn2-16",
    "gaudi3-8",
];

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
    Metric::named(name).unwrap().value(estimate, scenario).unwrap()
}

/// Invariants of every estimate.
fn sound(scenario: &Scenario, estimate: &Estimate) {
    let detail = estimate.detail.unwrap();
    let sums = |a: f64, b: f64| (a - b).abs() <= 1e-6 * a.abs().max(b.abs());
    if let Some(training) = detail.training.filter(|_| scenario.phases.is_empty()) {
        assert!(sums(detail.time.total() * 1e3, estimate.total.step_time_ms.unwrap()), "{:?}", detail.time);
        assert!(sums(training.tokens_per_step / detail.time.total(), estimate.total.tokens_per_sec));
    }
    assert!(sums(Cause::ALL.iter().map(|cause| detail.limits.share(*cause)).sum(), 1.0));
    assert!(detail.time.parts().all(|(_, seconds)| seconds >= -1e-12), "{:?}", detail.time);
    for metric in METRICS.iter().filter(|metric| metric.applies_to(scenario)) {
        let value = metric.value(estimate, scenario).unwrap();
        assert!(!value.is_nan() && value >= 0.0, "{} is {value}", metric.name);
        if let Some((low, high)) = metric.interval(estimate, scenario).filter(|_| value.is_finite()) {
            assert!(low <= value && value <= high, "{}: {low} {value} {high}", metric.name);
        }
    }
    let simulated = detail.simulated.unwrap();
    assert!(simulated.events > 0 && simulated.replications >= 1);
}

/// Deviations of a series of results from the closed form.
#[derive(Default)]
struct Deviations(Vec<(f64, String)>);

impl Deviations {
    fn look(&mut self, what: &str, found: f64, expected: f64) {
        // Without output tokens there is no time per token.
        let off = if found == expected { 0.0 } else { found / expected - 1.0 };
        self.0.push((off, what.to_owned()));
    }

    /// Prints the largest deviations, and checks that they are within the tolerance.
    fn within(mut self, tolerance: f64) {
        self.0.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
        let described: Vec<String> =
            self.0.iter().take(12).map(|(off, what)| format!("{:+.2} % {what}", 100.0 * off)).collect();
        println!("{} figures, the largest deviations:\n{}", self.0.len(), described.join("\n"));
        assert!(self.0.iter().all(|(off, _)| off.abs() <= tolerance), "{}", described.join("\n"));
    }
}

/// Calls `judge` for every workload of a mode on every target that can run it; returns how many were judged.
fn every_pair(library: &Library, mode: Mode, mut judge: impl FnMut(&str, &Parts) -> bool) -> usize {
    let mut cases = 0;
    for target in library.targets().iter().filter(|target| TARGETS.contains(&&*target.name)) {
        for workload in library.workloads().iter().filter(|workload| workload.shape.mode == mode) {
            let Ok(parts) = Parts::of(library, target, workload) else { continue };
            let name = format!("{} on {}", workload.name, target.name);
            cases += usize::from(parts.accelerator.is_some() && judge(&name, &parts));
        }
    }
    println!("{cases} cases");
    cases
}

/// Every serving workload on every target on which it fits, with one request at a time: nothing queues.
#[test]
fn serving_without_queueing_matches_the_closed_form() {
    let library = shipped();
    let (mut worst, mut pool_power) = (Deviations::default(), Deviations::default());
    let cases = every_pair(&library, Mode::Inference, |pair, parts| {
        let quiet =
            [("concurrency", "1"), ("dp", "1"), ("request_rate", "0"), ("requests", "3"), ("arrivals", "closed")];
        // The median of three random lengths differs from the distribution's.
        if pair.starts_with("llama3.1-8b-rl-rollout") {
            return false;
        }
        let mut scenario = scenario(parts, &quiet);
        scenario.phases.clear();
        let closed = estimate(&analytical_scenario(&scenario));
        if !closed.detail.unwrap().verdict.fits() {
            return false;
        }
        let found = estimate(&scenario);
        sound(&scenario, &found);
        for name in ["tokens_per_sec", "ttft_ms", "tpot_ms", "p50_ms", "node_power_w"] {
            let (found, expected) = (metric(name, &scenario, &found), metric(name, &scenario, &closed));
            // The simulation also counts the time in which both pools of a lone request are idle.
            let apart = name == "node_power_w" && scenario.base.pools().is_some();
            let deviations = if apart { &mut pool_power } else { &mut worst };
            deviations.look(&format!("{name} of {pair}"), found, expected);
        }
        true
    });
    assert!(cases >= 40, "{cases}");
    worst.within(0.03);
    pool_power.within(0.1);
}

/// Every training workload on every target: with uniform hardware the time is that of the closed form, except where the
/// closed form applies a rule that the simulation replaces.
#[test]
fn training_on_uniform_hardware_is_near_the_closed_form() {
    let library = shipped();
    let mut worst = Deviations::default();
    let cases = every_pair(&library, Mode::Training, |pair, parts| {
        let mut scenario = scenario(parts, &[("steps", "2")]);
        scenario.phases.clear();
        let closed = estimate(&analytical_scenario(&scenario));
        if matches!(closed.detail.unwrap().verdict, Verdict::Indivisible { .. }) {
            return false;
        }
        let found = estimate(&scenario);
        sound(&scenario, &found);
        worst.look(pair, metric("step_time_ms", &scenario, &found), metric("step_time_ms", &scenario, &closed));
        true
    });
    assert!(cases >= 100, "{cases}");
    worst.within(0.06);
}

fn answer(scenario: &Scenario) -> Estimate {
    let found = estimate(scenario);
    sound(scenario, &found);
    found
}

#[test]
fn one_slow_node_delays_the_whole_training_step() {
    let library = shipped();
    let parts = Parts::find(&library, "h100-sxm-64", "llama3.1-70b-train").unwrap();
    let run = |knobs: &[(&str, &str)]| {
        let scenario = scenario(&parts, knobs);
        let found = answer(&scenario);
        (metric("step_time_ms", &scenario, &found), metric("straggler_share", &scenario, &found), found)
    };
    let (even, none, _) = run(&[]);
    let (one, share, found) = run(&[("slow_nodes", "1"), ("slow_factor", "1.3")]);
    let (all, ..) = run(&[("slow_nodes", "8"), ("slow_factor", "1.3")]);
    assert_eq!(none, 0.0);
    assert!((1.0 - even / one - share).abs() < 1e-9, "what stragglers cost is what the step grew by");
    assert!(one > 1.1 * even && all >= one && all < 1.31 * even, "{even} {one} {all}");
    let limits = found.detail.unwrap().limits;
    assert!((limits.share(Cause::Stragglers) - share).abs() < 1e-9);
    // Identical replicas are simulated once; with one slow node there are two kinds.
    assert_eq!(found.detail.unwrap().simulated.unwrap().training.unwrap().replicas, 2);
}

#[test]
fn failure_and_checkpoint_overhead_matches_daly_s_formula() {
    let library = shipped();
    let parts = Parts::find(&library, "h100-sxm-64", "llama3.1-70b-train").unwrap();
    let knobs = [("num_nodes", "256"), ("node_mtbf_h", "1000"), ("checkpoint_s", "60"), ("restart_s", "300")];
    let scenario = scenario(&parts, &knobs);
    let found = answer(&scenario);
    let seen = found.detail.unwrap().simulated.unwrap().training.unwrap();
    let (mtbf, c) = (1000.0 * 3600.0 / 256.0, 60.0f64);
    // Young's interval, up to Daly's correction.
    assert!((seen.checkpoint_interval_s.unwrap() / (2.0 * c * mtbf).sqrt() - 1.0).abs() < 0.1, "{seen:?}");
    // First order: checkpoints, half an interval of lost work, restarts.
    let tau = seen.checkpoint_interval_s.unwrap();
    let expected = 1.0 / ((1.0 + c / tau) * (1.0 + (0.5 * (tau + c) + 300.0) / mtbf));
    assert!((seen.goodput - expected).abs() < 0.02, "{} {expected}", seen.goodput);
    assert!((seen.failures_per_day - 86_400.0 / mtbf).abs() < 1e-9);
    // Step time, throughput and cost all include it.
    let wall = found.total.step_time_ms.unwrap() * 1e-3;
    assert!((wall * seen.goodput / seen.step_s - 1.0).abs() < 1e-9);
}

#[test]
fn only_nodes_of_the_job_fail_and_write_checkpoints() {
    let library = shipped();
    let parts = Parts::find(&library, "h100-sxm-1024", "llama3.1-405b-train").unwrap();
    // 512 of the 1,024 accelerators: 64 of 128 nodes.
    let half = [("global", "1536"), ("dp", "4"), ("node_mtbf_h", "6300"), ("steps", "1")];
    let seen = answer(&scenario(&parts, &half)).detail.unwrap().simulated.unwrap().training.unwrap();
    assert!((seen.failures_per_day - 64.0 * 24.0 / 6300.0).abs() < 1e-9, "{seen:?}");
    let whole = [("global", "1536"), ("dp", "8"), ("node_mtbf_h", "6300"), ("steps", "1")];
    let all = answer(&scenario(&parts, &whole)).detail.unwrap().simulated.unwrap().training.unwrap();
    assert!((all.failures_per_day / seen.failures_per_day - 2.0).abs() < 1e-9);
    assert!((seen.checkpoint_s / all.checkpoint_s - 2.0).abs() < 1e-9 && seen.goodput > all.goodput);
}

#[test]
fn checkpoint_holds_the_states_of_the_optimizer() {
    let library = shipped();
    let parts = Parts::find(&library, "h100-sxm-8", "llama3.1-8b-train").unwrap();
    let written = |optimizer: &str| {
        let knobs = [("optimizer", optimizer), ("node_mtbf_h", "6300"), ("steps", "1")];
        answer(&scenario(&parts, &knobs)).detail.unwrap().simulated.unwrap().training.unwrap().checkpoint_s
    };
    // fp32 weights; two moments in fp32, in 8 bits, or none.
    let sgd = written("sgd");
    assert!((sgd - 4.0 * 8.03).abs() < 0.1, "{sgd}");
    assert!((written("adam") / sgd - 3.0).abs() < 1e-9 && (written("adam-8bit") / sgd - 1.5).abs() < 0.05);
}

#[test]
fn job_that_fails_faster_than_it_recovers_makes_no_progress() {
    let library = shipped();
    let parts = Parts::find(&library, "h100-sxm-1024", "llama3.1-405b-train").unwrap();
    for hours in ["1", "0.01"] {
        let scenario = scenario(&parts, &[("node_mtbf_h", hours), ("steps", "1")]);
        let found = answer(&scenario);
        let Verdict::NoProgress { mtbf, recovery, .. } = found.detail.unwrap().verdict else {
            panic!("{:?}", found.detail.unwrap().verdict)
        };
        assert!((mtbf / (3600.0 * hours.parse::<f64>().unwrap() / 128.0) - 1.0).abs() < 1e-9 && recovery > 600.0);
        let shown = |id: MetricId| available_value(id.metric(), &scenario, &found);
        assert_eq!([MetricId::StepTimeMs, MetricId::UsdPerRun, MetricId::TokensPerSec].map(shown), [None; 3]);
        assert!(shown(MetricId::UsdPerHour).is_some());
    }
    let rare = answer(&scenario(&parts, &[("node_mtbf_h", "6300"), ("steps", "1")]));
    assert!(rare.detail.unwrap().verdict.fits());
}

#[test]
fn simulated_interruptions_match_published_effective_time() {
    let library = shipped();
    let parts = Parts::find(&library, "h100-sxm-1024", "llama3.1-405b-train").unwrap();
    // Llama 3 (arXiv 2407.21783, section 3.3.4): 419 unexpected interruptions in 54 days on 16,384 H100, more than 90 %
    // effective training time.
    let node_mtbf = (2048.0 * 54.0 * 24.0 / 419.0).to_string();
    let knobs = [("num_nodes", "2048"), ("global", "2048"), ("node_mtbf_h", &*node_mtbf), ("steps", "2")];
    let found = answer(&scenario(&parts, &knobs));
    let seen = found.detail.unwrap().simulated.unwrap().training.unwrap();
    assert!((seen.failures_per_day - 419.0 / 54.0).abs() < 1e-6, "{}", seen.failures_per_day);
    assert!((0.9..0.97).contains(&seen.goodput), "{}", seen.goodput);
}

#[test]
fn bursty_arrivals_and_varied_prompts_increase_tail_ttft() {
    let tail = |knobs: &[(&str, &str)]| {
        let all: Vec<(&str, &str)> =
            [("request_rate", "12"), ("requests", "400"), ("replications", "2")].iter().chain(knobs).copied().collect();
        let scenario = of("h100x8", "llama3_70b_serve", &all);
        let found = answer(&scenario);
        metric("ttft_p99_ms", &scenario, &found)
    };
    let even = tail(&[("arrivals", "gamma"), ("arrival_cv", "0")]);
    let random = tail(&[("arrivals", "poisson")]);
    let bursty = tail(&[("arrivals", "gamma"), ("arrival_cv", "4")]);
    assert!(even < random && random < bursty, "{even} {random} {bursty}");
    let spread = tail(&[("arrivals", "poisson"), ("prompt_cv", "1.5")]);
    assert!(spread > random, "{spread} {random}");
}

#[test]
fn good_share_depends_on_the_ttft_limit() {
    let with = |ttft: &str| {
        let scenario = of("h100x8", "llama3_70b_serve", &[("request_rate", "10"), ("slo_ttft_ms", ttft)]);
        let found = answer(&scenario);
        (metric("good_share", &scenario, &found), metric("goodput_rps", &scenario, &found))
    };
    assert!(with("0").0 == 1.0 && with("1").0 == 0.0);
    let (share, rate) = with("80");
    assert!(share > 0.0 && share <= 1.0 && rate <= 10.5, "{share} {rate}");
}

#[test]
fn goodput_per_accelerator_counts_the_accelerators_in_use() {
    let knobs = [("request_rate", "1"), ("slo_ttft_ms", "2000"), ("tp", "4"), ("dp", "1")];
    let scenario = of("h100x8", "llama3_70b_serve", &knobs);
    let found = answer(&scenario);
    let [whole, each] = ["goodput_rps", "goodput_rps_per_accel"].map(|name| metric(name, &scenario, &found));
    assert!(whole > 0.0 && each == whole / 4.0, "{whole} {each}");
}

#[test]
fn equal_seeds_give_equal_estimates_and_other_seeds_close_ones() {
    let rate = |seed: &str| {
        let scenario = of("h100x8", "llama3_70b_serve", &[("request_rate", "6"), ("seed", seed)]);
        estimate(&scenario)
    };
    assert_eq!(rate("7"), rate("7"));
    let (a, b) = (rate("7"), rate("8"));
    assert!(a != b);
    let simulated = a.detail.unwrap().simulated.unwrap();
    assert!(simulated.half_width.is_some_and(|width| width > 0.0 && width < 0.5), "{simulated:?}");
    assert!((a.total.tokens_per_sec / b.total.tokens_per_sec - 1.0).abs() < 0.2);
    // Without random draws, no second run is needed.
    let closed = estimate(&of("h100x8", "llama3_70b_serve", &[("replications", "5")]));
    let simulated = closed.detail.unwrap().simulated.unwrap();
    assert_eq!((simulated.replications, simulated.half_width), (1, Some(0.0)));
}

#[test]
fn request_rate_beyond_capacity_is_reported_as_overload() {
    let scenario = of("h100x8", "llama3_70b_serve", &[("request_rate", "500"), ("requests", "2000")]);
    let found = estimate(&scenario);
    let Verdict::Overload { offered, capacity } = found.detail.unwrap().verdict else {
        panic!("{:?}", found.detail.unwrap().verdict)
    };
    assert!(offered == 500.0 && capacity > 0.0 && capacity < 500.0);
    assert!(metric("ttft_ms", &scenario, &found).is_infinite() && found.total.tokens_per_sec.is_finite());
}

#[test]
fn a_day_of_phases_is_simulated_phase_by_phase() {
    let scenario = of("h100x8", "llama3_70b_day", &[("requests", "200")]);
    let found = answer(&scenario);
    let closed = estimate(&analytical_scenario(&scenario));
    assert_eq!(found.phases.len(), closed.phases.len());
    for (found, closed) in found.phases.iter().zip(&closed.phases) {
        assert!((found.tokens_per_sec / closed.tokens_per_sec - 1.0).abs() < 0.01);
        let (found, closed) = (found.queue.unwrap().latency.p50, closed.queue.unwrap().latency.p50);
        assert!((found / closed - 1.0).abs() < 0.3, "{found} {closed}");
    }
}

#[test]
fn phases_of_a_schedule_are_simulated_at_their_arrival_rates() {
    let library = shipped();
    let parts = Parts::find(&library, "h100-sxm-8", "llama3.1-70b-day").unwrap();
    let day = scenario(&parts, &[("requests", "1000")]);
    let found = answer(&day);
    let queues: Vec<_> = found.phases.iter().map(|phase| phase.queue.unwrap()).collect();
    let [working, peak, night] = &queues[..] else { panic!("{queues:?}") };
    assert!(night.latency.ttft < working.latency.ttft && working.latency.ttft < peak.latency.ttft, "{queues:?}");
    assert!(queues.iter().all(|queue| queue.latency.p99 > 1.02 * queue.latency.p95), "{queues:?}");
    // The same load without a schedule.
    let rate = working.arrival_rate.to_string();
    let mut open = scenario(&parts, &[("requests", "1000"), ("request_rate", &rate)]);
    open.phases.clear();
    let open = answer(&open).total.latency.unwrap();
    assert!((open.p99 / working.latency.p99 - 1.0).abs() < 0.05, "{open:?} {working:?}");
    // Percentiles of the day are those of its requests: half of the peak's take longer than its median.
    let slow = peak.arrival_rate * 120.0
        / (working.arrival_rate * 600.0 + peak.arrival_rate * 120.0 + night.arrival_rate * 720.0);
    let whole = found.total.latency.unwrap();
    assert!(slow > 0.1 && whole.p95 > peak.latency.p50, "{slow} {whole:?}");
    assert!(whole.p99 < peak.latency.p99 && whole.p99 > working.latency.p99);
    let notes = atlas_plan::engine::notes::notes(&day, &found);
    assert!(!notes.iter().any(|note| note.contains("lockstep")), "{notes:?}");
}

#[test]
fn event_run_reports_progress_records_tasks_and_can_be_canceled() {
    let scenario = of("h100x8", "llama3_8b_train", &[]);
    let progress = Progress::new();
    let run = event::run(&scenario, &progress).unwrap();
    assert_eq!(progress.share(), 1.0);
    let output = run.training.unwrap();
    assert!(!output.tasks.is_empty() && !output.critical_path.is_empty() && run.serving.is_none());
    // Recorded operators are simulated one by one, each rounded to picoseconds.
    let (kept, quick) = (run.estimate.total, estimate(&scenario).total);
    assert!((kept.step_time_ms.unwrap() / quick.step_time_ms.unwrap() - 1.0).abs() < 1e-8, "{kept:?} {quick:?}");
    let canceled = Progress::new();
    canceled.cancel();
    assert!(event::run(&scenario, &canceled).is_none());
}

#[test]
fn simulation_knobs_are_unused_by_the_other_engines() {
    let scenario = of("h100x8", "llama3_70b_serve", &[]);
    let twin = analytical_scenario(&scenario);
    for name in ["replications", "requests", "arrivals", "prompt_cv", "slo_ttft_ms"] {
        let knob = Knob::named(name).unwrap();
        assert!(scenario.uses(knob) && !twin.uses(knob), "{name}");
    }
    assert!(!scenario.uses(Knob::named("slow_nodes").unwrap()), "of training");
    assert_eq!(estimate(&twin), {
        let parts = Parts::find(&library(), "h100x8", "llama3_70b_serve").unwrap();
        estimate(&Scenario::resolve(&parts, &Overrides::new()).unwrap())
    });
}

#[test]
fn scenarios_that_differ_only_in_prices_share_one_simulation() {
    const PRICES: [(&str, &str); 6] = [
        ("hourly_usd", "123.5"),
        ("pue", "1.7"),
        ("usd_per_kwh", "0.31"),
        ("kg_co2e_per_kwh", "0.05"),
        ("amortization_years", "3"),
        ("capex_usd_node", "300000"),
    ];
    for workload in ["llama3.1-8b-serve", "llama3.1-8b-train"] {
        let parts = Parts::find(&shipped(), "h100-sxm-8", workload).unwrap();
        let plain = scenario(&parts, &[]);
        let simulated = event::run(&event::unpriced(plain.clone()), &Progress::new()).unwrap();
        let whole = |scenario: &Scenario| event::run(scenario, &Progress::new()).unwrap().estimate;
        assert_eq!(simulated.estimate_of(&plain), whole(&plain), "{workload}");
        for price in PRICES {
            for basis in ["stated", "owned"] {
                let priced = scenario(&parts, &[price, ("price_basis", basis)]);
                let unpriced = event::unpriced(priced.clone());
                if unpriced == event::unpriced(plain.clone()) {
                    let (ours, theirs) = (simulated.estimate_of(&priced), whole(&priced));
                    assert_eq!(ours, theirs, "{workload}: {price:?}");
                    for metric in METRICS.iter() {
                        let (a, b) = (metric.value(&ours, &priced), metric.value(&theirs, &priced));
                        let nan = a.zip(b).is_some_and(|(a, b)| a.is_nan() && b.is_nan());
                        assert!(a == b || nan, "{workload}: {} is {a:?} and {b:?}", metric.name);
                    }
                } else {
                    assert_eq!(basis, "owned", "{workload}: {price:?} is simulated anew");
                }
            }
        }
        let other = scenario(&parts, &[("tp", "2")]);
        assert_ne!(event::unpriced(other), event::unpriced(plain), "what changes the events is another simulation");
    }
}
