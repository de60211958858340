//! The optimizer on built-in pairs, on published layouts, and on scenarios of every kind.

use crate::common::plans;
use atlas_core::count::Count;

use crate::common::program::{atlas, stdout};
use atlas_config::Mode;
use atlas_config::library::Library;
use atlas_core::plan::{Recompute, Sharding};
use atlas_document::Sources;
use atlas_plan::engine::estimate;
use atlas_plan::estimate::{MetricId, Verdict};
use atlas_plan::knob::{KNOBS, Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::optimize::{Candidate, Optimum, Proof, freed};
use atlas_plan::search::{Condition, Gauge, Problem, metric, optimize};
use proptest::prelude::*;

fn shipped() -> Library {
    Library::load(&Sources::built_in(), None)
}

fn asked(library: &Library, target: &str, workload: &str, set: &[(&str, &str)]) -> (Parts, Scenario) {
    plans::one(library, target, workload, set)
}

/// Searches like the command, and passes problem and result to `check`.
fn found(parts: &Parts, asked: &Scenario, most: u64, check: impl FnOnce(&Problem<'_>, &Optimum)) {
    let start = freed(asked, &|_| false, parts);
    let mut problem =
        Problem::of(&start, parts, metric::named("throughput").unwrap()).from(asked).with_default_conditions(&[]);
    problem.max_candidates = most;
    let found = optimize(&problem, &Gauge::default());
    check(&problem, &found);
}

fn rate(candidate: &Candidate) -> f64 {
    candidate.estimate.total.tokens_per_sec
}

/// Every built-in workload with the targets listed in its `best_for`.
fn pairs(library: &Library) -> Vec<(String, String)> {
    let of = |name: &str, node: &atlas_document::Node| (node.text().unwrap().to_owned(), name.to_owned());
    let workloads = library.workloads().iter();
    let all = workloads.flat_map(|workload| {
        let targets = workload.document.get("best_for").and_then(|node| node.items()).unwrap_or_default();
        targets.iter().map(move |target| of(&workload.name, target))
    });
    all.collect()
}

/// If recomputation is not stated, it is chosen such that the default headroom of a search remains free, so that
/// neither advice nor a search has to free memory first.
#[test]
fn automatic_recomputation_leaves_the_default_search_headroom() {
    let library = shipped();
    let mut planned = 0;
    for (target, workload) in pairs(&library) {
        for prompt in ["4096", "8192", "32768"] {
            let (_, scenario) = asked(&library, &target, &workload, &[("prompt", prompt)]);
            if scenario.mode() != Mode::Training {
                continue;
            }
            let detail = estimate(&scenario).detail.unwrap();
            let recomputes =
                detail.training.is_some_and(|t| t.recompute != Recompute::None && t.full_recompute_share < 1.0);
            if recomputes && detail.verdict == Verdict::Fits {
                planned += 1;
                assert!(!detail.memory.is_tight(), "{target} x {workload}, {prompt}: {:?}", detail.memory);
            }
        }
    }
    assert!(planned > 10, "{planned}");
}

#[test]
fn shipped_workloads_optimize_on_their_targets() {
    let library = shipped();
    let mut pairs = pairs(&library);
    assert!(pairs.len() >= 18, "{pairs:?}");
    let more = [
        ("h100-sxm-8", "llama3.1-8b-serve"),
        ("h200-sxm-8", "llama3.1-70b-serve"),
        ("h100-sxm-8", "llama3.1-8b-train"),
        ("m3-ultra-1", "gpt-oss-120b-serve"),
        ("gb10-1", "gpt-oss-120b-serve"),
        ("h100-sxm-1024", "deepseek-v3-train"),
        ("h100-sxm-64", "deepseek-v3-serve"),
    ];
    pairs.extend(more.map(|(target, workload)| (target.to_owned(), workload.to_owned())));
    for (target, workload) in pairs {
        // The workload's MXFP8 is a format of GB200.
        let fp8 = [("precision", "fp8")];
        let set =
            if (target.as_str(), workload.as_str()) == ("h100-sxm-1024", "deepseek-v3-train") { &fp8[..] } else { &[] };
        let (parts, scenario) = asked(&library, &target, &workload, set);
        found(&parts, &scenario, 60_000, |problem, found| {
            let at = format!("{target} x {workload}");
            let best = found.best.as_ref().unwrap();
            println!(
                "{at}: start {:.0}{}, best {:.0}, {:.2} s{}",
                rate(&found.start),
                if found.objections(problem, &found.start).is_empty() { "" } else { " (no candidate)" },
                rate(best),
                found.extent.seconds,
                if found.extent.proof == Proof::Exhaustive { "" } else { " (local)" }
            );
            assert!(found.objections(problem, best).is_empty(), "{at}");
            assert!(found.dropped.is_empty(), "{at}: {:?}", found.dropped);
            assert!(best.scenario.software_supports(&best.scenario.base), "{at}");
            if found.objections(problem, &found.start).is_empty() {
                assert!(rate(best) >= rate(&found.start), "{at}");
            }
            if scenario.mode() == Mode::Training {
                let free = best.value(MetricId::Headroom.metric()).unwrap();
                assert!(free >= 0.05, "{at}: {free}");
            } else {
                assert!(best.estimate.total.latency.unwrap().ttft <= 2000.0, "{at}");
            }
        });
    }
}

#[test]
fn published_layouts_with_indivisible_layer_counts_run() {
    let library = shipped();
    // Llama 3.1 405B, arXiv 2407.21783, section 3.3.2: 128 chunks for 126 layers, with no layers in the first and last
    // chunk.
    let meta = [("tp", "8"), ("pp", "16"), ("vpp", "8"), ("cp", "1"), ("global", "2048")];
    let (_, scenario) = asked(&library, "h100-sxm-1024", "llama3.1-405b-train", &meta);
    let verdict = |scenario: &Scenario| estimate(scenario).detail.unwrap().verdict;
    assert!(verdict(&scenario).fits(), "{}", verdict(&scenario).describe());
    let ends = [Knob::FirstLayers, Knob::LastLayers].map(|knob| scenario.get(knob));
    assert_eq!(ends, [Setting::Number(7.0), Setting::Number(7.0)]);
    let says = |set: &[(&str, &str)]| {
        let set: Vec<(&str, &str)> = meta.iter().chain(set).copied().collect();
        verdict(&asked(&library, "h100-sxm-1024", "llama3.1-405b-train", &set).1).describe()
    };
    assert_eq!(
        says(&[("vpp", "9")]),
        "126 layers are too few for 144 chunks (pp × vpp): at most 128 chunks, with no layers in the first and last"
    );
    let uneven = says(&[("first_layers", "8"), ("last_layers", "16")]);
    assert_eq!(
        uneven,
        "126 layers, 24 of them on the specified first and last stages, do not divide evenly over 128 chunks (pp × vpp)"
    );
    // 14 x 8 layers between two empty ends are not 126; 14 x 9 are.
    let empty = [("vpp", "1"), ("first_layers", "0"), ("last_layers", "0")];
    assert_eq!(says(&empty), "fits");
}

#[test]
fn search_includes_uneven_pipeline_stages() {
    let library = shipped();
    for (target, workload, most) in
        [("gb200-nvl72-4", "deepseek-v3-train", 900_000), ("h100-sxm-1024", "llama3.1-405b-train", 600_000)]
    {
        let (parts, scenario) = asked(&library, target, workload, &[]);
        found(&parts, &scenario, most, |problem, found| {
            assert_eq!(found.extent.proof, Proof::Exhaustive, "{:?}", found.extent);
            let layers = problem.start.model.unwrap().depth();
            let uneven = |candidate: &&Candidate| {
                let pp = candidate.scenario.base.shape.pp;
                layers % (pp * candidate.scenario.base.plan.vpp.unwrap_or(Count::ONE)) != 0.0
            };
            let all = found.best.iter().chain(&found.runners_up).chain(&found.front);
            assert!(all.clone().filter(uneven).count() > 0, "{target}");
            assert!(all.clone().all(|candidate| candidate.estimate.detail.unwrap().verdict.fits()));
        });
    }
}

#[test]
fn infeasible_workload_layout_does_not_constrain_the_search() {
    let library = shipped();
    for target in ["m3-ultra-1", "gb10-1"] {
        let (parts, scenario) = asked(&library, target, "gpt-oss-120b-serve", &[]);
        found(&parts, &scenario, 60_000, |problem, found| {
            let best = found.best.as_ref().unwrap();
            assert_eq!(best.scenario.base.shape.tp, 1.0);
            // The start uses two, which violates the condition.
            assert_eq!(found.objections(problem, &found.start).len(), 1);
        });
    }
}

#[test]
fn candidates_use_only_layouts_that_the_software_supports() {
    let library = shipped();
    for (target, workload) in [
        ("h100-sxm-128", "llama3.1-70b-train"),
        ("h100-sxm-64", "mixtral-8x7b-train"),
        ("h100-sxm-128", "llama2-70b-dp16-tp4-pp2"),
    ] {
        let (parts, scenario) = asked(&library, target, workload, &[]);
        assert!(scenario.software_name().starts_with("megatron"), "{}", scenario.software_name());
        found(&parts, &scenario, 300_000, |_, found| {
            for candidate in found.best.iter().chain(&found.runners_up).chain(&found.front) {
                let phase = &candidate.scenario.base;
                let sharding = candidate.scenario.sharding(phase);
                assert!(phase.shape.pp <= 1.0 || sharding <= Sharding::Zero1, "{workload}: {:?}", candidate.changes);
            }
            assert!(found.bounds.iter().any(|bound| bound.what.contains("software") && bound.removed > 0));
        });
    }
    // Attention groups are in the space only if the engine supports them.
    let groups = |software: &str| {
        let (_, scenario) = asked(&library, "h200-sxm-8", "deepseek-v3-serve", &[("software", software)]);
        let space = atlas_plan::search::optimize::default_space(&scenario, metric::named("throughput").unwrap());
        space.axes().iter().any(|axis| axis.knob == Knob::AttentionDp)
    };
    assert!(groups("sglang") && groups("vllm") && !groups("sglang@0.3.0") && !groups("tgi"));
}

#[test]
fn default_constraints_are_stated_and_dropped_if_infeasible() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let all: Vec<&str> = ["optimize", "--target", "h200-sxm-8", "--workload", "llama3.1-70b-serve"]
            .iter()
            .chain(args)
            .copied()
            .collect();
        stdout(&atlas(dir.path(), &all).assert().code(0))
    };
    let over = ["--over", "concurrency=128,1024,4096", "--over", "tp=1,2,4,8"];
    let text = run(&over);
    assert!(
        text.contains("where TTFT <= 2000 ms (default; change it with --ttft, remove it with --ttft none)"),
        "{text}"
    );
    assert!(
        text.contains("searched: concurrency 128, 1024, 4096; tp 1, 2, 4, 8; other settings as in the start"),
        "{text}"
    );
    // The position of the line break depends on the digits of the elapsed time.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("software outside it were not tried"), "{text}");
    let free = run(&[&over[..], &["--ttft", "none", "--tpot", "none"]].concat());
    assert!(!free.contains("where TTFT") && !free.contains("where TPOT"), "{free}");
    let own = run(&[&over[..], &["--ttft", "500"]].concat());
    assert!(own.contains("where TTFT <= 500.0 ms\n") && own.contains("where TPOT <= 50.00 ms (default"), "{own}");
    // With a prompt of 100k tokens, TTFT exceeds two seconds here.
    let long = run(&["--set", "prompt=100000", "--over", "tp=1,2,4,8"]);
    assert!(long.contains("(default; dropped because no candidate meets all defaults)"), "{long}");
}

#[test]
fn workload_slos_become_search_constraints() {
    let library = shipped();
    let set = [("slo_ttft_ms", "700"), ("slo_tpot_ms", "30")];
    let (parts, scenario) = asked(&library, "h200-sxm-8", "llama3.1-70b-serve", &set);
    found(&parts, &scenario, 100_000, |problem, found| {
        let bounds: Vec<String> = problem.conditions.iter().map(Condition::to_string).collect();
        assert_eq!(bounds, ["TTFT <= 700.0 ms", "TPOT <= 30.00 ms", "headroom >= 5.0 %"]);
        assert!(found.best.as_ref().unwrap().estimate.total.latency.unwrap().ttft <= 700.0);
    });
}

#[test]
fn optimal_start_is_returned_without_changes() {
    let library = shipped();
    let (parts, scenario) = asked(&library, "h200-sxm-8", "llama3.1-70b-serve", &[]);
    let mut best = None;
    found(&parts, &scenario, 100_000, |_, found| best = Some(found.best.clone().unwrap().scenario));
    let best = best.unwrap();
    found(&parts, &best, 100_000, |_, found| {
        assert!(found.best.as_ref().unwrap().changes.is_empty(), "{:?}", found.best.as_ref().unwrap().changes);
    });
}

#[test]
fn every_proposed_change_improves_the_objective() {
    let library = shipped();
    let mut left_out = 0;
    for (target, workload) in [
        ("h200-sxm-64", "llama3.1-70b-train"),
        ("h100-sxm-8", "llama3.1-8b-train"),
        ("gb200-nvl72", "gpt-oss-120b-train"),
        ("h200-sxm-8", "llama3.1-405b-serve"),
        ("h100-sxm-8", "llama3.1-8b-serve"),
        ("b200-8", "deepseek-v3-serve"),
    ] {
        let (parts, scenario) = asked(&library, target, workload, &[]);
        found(&parts, &scenario, 100_000, |problem, found| {
            let best = found.best.as_ref().unwrap();
            assert!(
                best.changes.iter().all(|(knob, _)| *knob != Knob::CudaGraphs || scenario.mode() == Mode::Training)
            );
            for (knob, _) in &best.changes {
                let mut without = best.scenario.clone();
                without.set(*knob, &scenario.get(*knob), &parts).unwrap();
                let back = without.check(&parts);
                let candidate = Candidate::of(without, &scenario);
                let same = best.scenario.base.shape.tp * best.scenario.base.shape.pp
                    == candidate.scenario.base.shape.tp * candidate.scenario.base.shape.pp;
                if back.is_ok() && same && candidate.meets(problem) {
                    assert!(rate(&candidate) < rate(best), "{target} x {workload}: {} is not needed", knob.name());
                }
            }
            // Among candidates that are equally good within the tolerance, the result is one with few changes.
            let mut whole = problem.clone();
            whole.min_gain = 0.0;
            let most = optimize(&whole, &Gauge::default());
            let most = most.best.as_ref().unwrap();
            assert!(rate(best) >= (1.0 - problem.min_gain) * rate(most), "{target} x {workload}");
            assert!(best.changes.len() <= most.changes.len(), "{target} x {workload}");
            left_out += most.changes.len() - best.changes.len();
        });
    }
    assert!(left_out > 0);
}

#[test]
fn unbounded_latency_triggers_a_warning() {
    let library = shipped();
    let (parts, scenario) = asked(&library, "h100-sxm-8", "llama3.1-70b-serve", &[("prompt", "32768")]);
    let start = freed(&scenario, &|_| false, &parts);
    let problem = Problem::of(&start, &parts, metric::named("throughput").unwrap()).from(&scenario);
    let free = optimize(&problem, &Gauge::default());
    assert!(free.warnings(&problem)[0].contains("TTFT is now"), "{:?}", free.warnings(&problem));
    let (parts, scenario) = asked(&library, "h100-sxm-8", "llama3.1-8b-serve", &[]);
    found(&parts, &scenario, 100_000, |problem, found| assert!(found.warnings(problem).is_empty()));
}

#[test]
fn expert_parallelism_respects_the_limits_of_the_software() {
    let library = shipped();
    let ranks = |candidate: &Candidate| {
        let layout = candidate.scenario.base.decode_layout();
        (layout.ep, layout.tp * layout.attention_dp)
    };
    for (software, all_or_none) in [("vllm", true), ("sglang", false)] {
        let (parts, scenario) = asked(&library, "h200-sxm-8", "deepseek-v3-serve", &[("software", software)]);
        found(&parts, &scenario, 200_000, |_, found| {
            let all = found.best.iter().chain(&found.runners_up).chain(&found.front);
            for candidate in all.filter(|candidate| !candidate.changes.is_empty()) {
                let (ep, ranks) = ranks(candidate);
                assert!(!all_or_none || ep == 1.0 || ep == ranks, "{software}: ep {ep} of {ranks}");
                assert!(ep <= ranks, "{software}: ep {ep} of {ranks}");
            }
        });
    }
    let (_, part) = asked(&library, "h200-sxm-8", "deepseek-v3-serve", &[("software", "vllm"), ("ep", "2")]);
    assert!(!part.software_supports(&part.base));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn optimum_is_never_worse_than_a_feasible_start(
        target in 0usize..11,
        workload in 0usize..15,
        objective in 0usize..4,
        turned in proptest::collection::vec((0usize..KNOBS.len(), 0.0f64..1.0), 0..5),
    ) {
        let library = plans::library();
        let parts = Parts::of(&library, &library.targets()[target], &library.workloads()[workload]).unwrap();
        let mut asked = Scenario::resolve(&parts, &Overrides::new()).unwrap();
        for (knob, at) in turned {
            let knob = KNOBS[knob].knob;
            if let Some(setting) = plans::setting(knob, at).filter(|_| knob != Knob::Engine) {
                asked.set(knob, &setting, &parts).unwrap();
            }
        }
        prop_assume!(asked.check(&parts).is_ok());
        let objective = metric::named(["throughput", "latency", "cost", "energy"][objective]).unwrap();
        let start = freed(&asked, &|_| false, &parts);
        let mut problem = Problem::of(&start, &parts, objective).from(&asked).with_default_conditions(&[]);
        problem.max_candidates = 2000;
        let found = optimize(&problem, &Gauge::default());
        let score = |candidate: &Candidate| metric::score(objective, &candidate.estimate, &candidate.scenario);
        if found.objections(&problem, &found.start).is_empty() && score(&found.start).is_finite() {
            let best = found.best.as_ref().unwrap();
            prop_assert!(score(best) <= score(&found.start), "{:?}", best.changes);
        }
        if let Some(best) = &found.best {
            prop_assert!(found.objections(&problem, best).is_empty());
            prop_assert!(best.changes.is_empty() || best.scenario.software_supports(&best.scenario.base));
        }
    }
}
