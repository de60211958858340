//! Derivations of every metric on scenarios of every kind: they are consistent, and every input has an origin.

use crate::common::plans;

use std::sync::OnceLock;

use atlas_config::Mode;
use atlas_config::library::Library;
use atlas_core::plan::Engine;
use atlas_document::Sources;
use atlas_plan::engine;
use atlas_plan::estimate::{METRICS, Verdict};
use atlas_plan::explain::{ExplainError, Origin, Term, explain, metric};
use atlas_plan::knob::{Knob, KnobValues as _, Overrides};
use atlas_plan::scenario::{Parts, Scenario};
use proptest::prelude::*;

/// Whether two values are equal up to rounding.
fn same(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()) || (a.is_nan() && b.is_nan())
}

/// Metrics that the analytical engine derives from terms whenever the scenario can run.
const DERIVED: [&str; 12] = [
    "tokens_per_sec",
    "step_time_ms",
    "mfu",
    "mfu_causal",
    "hfu",
    "requests_per_sec",
    "ttft_ms",
    "ttft_p99_ms",
    "tpot_ms",
    "p99_ms",
    "peak_mem_gb",
    "node_power_w",
];

/// Checks all derivations of a scenario; returns the number of terms, and the derived metrics without an equation.
fn check(parts: &Parts, scenario: &Scenario) -> (usize, Vec<String>) {
    let estimate = engine::estimate(scenario);
    let fits = matches!(estimate.detail.map(|d| d.verdict), Some(Verdict::Fits));
    let must = fits && scenario.engine == Engine::Analytical && scenario.phases.is_empty();
    let (mut terms, mut opaque) = (0, Vec::new());
    for metric in METRICS.iter().filter(|metric| metric.applies_to(scenario)) {
        let at = format!("{} x {}: {}", parts.target.name, parts.workload.name, metric.name);
        let tree = explain(scenario, parts, &estimate, metric).unwrap();
        assert!(same(tree.value, metric.value(&estimate, scenario).unwrap()), "{at}: {} is described", tree.value);
        assert!(!tree.name.is_empty(), "{at}");
        for term in tree.walk() {
            terms += 1;
            match &term.equation {
                Some(equation) => {
                    let computed = equation.value(&term.terms);
                    let symbol = &term.symbol;
                    assert!(same(computed, term.value), "{at}: {symbol} is {computed}, shown as {}", term.value);
                }
                None => assert!(term.origin.is_some(), "{at}: where does {} ({}) come from?", term.symbol, term.name),
            }
            for bearing in &term.dependencies {
                assert!(bearing.origin.is_some() || bearing.equation.is_some(), "{at}: {}", bearing.symbol);
            }
        }
        if must && DERIVED.contains(&metric.name) && tree.value > 0.0 && tree.value.is_finite() {
            let whole = ["T", "t", "M"].iter().find_map(|symbol| find(&tree, symbol).filter(|t| t.equation.is_none()));
            if let Some(term) = whole.or_else(|| tree.equation.is_none().then_some(&tree)) {
                opaque.push(format!("{at}: {}", term.symbol));
            }
        }
    }
    (terms, opaque)
}

#[test]
fn derivation_terms_evaluate_to_their_metric() {
    let library = plans::library();
    let (mut opaque, mut terms) = (Vec::new(), 0);
    for (parts, scenario) in plans::all(&library) {
        let (count, without) = check(&parts, &scenario);
        terms += count;
        opaque.extend(without);
    }
    assert!(terms > 10_000, "{terms}");
    assert!(opaque.is_empty(), "no equation for {}: {:#?}", opaque.len(), &opaque[..opaque.len().min(20)]);
}

#[test]
fn derivations_of_all_shipped_pairs_are_consistent() {
    let library = Library::load(&Sources::built_in(), None);
    for target in library.targets() {
        for workload in library.workloads() {
            let parts = Parts::of(&library, target, workload).unwrap();
            let Ok(scenario) = Scenario::resolve(&parts, &Overrides::new()) else { continue };
            assert!(check(&parts, &scenario).0 > 50);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn terms_sum_to_the_time_and_memory_of_random_scenarios(
        pair in (0..10usize, 0..14usize),
        powers in proptest::collection::vec(0..4u32, 4),
        micro in 1..4u32,
        lengths in (1..14u32, 0..11u32),
        load in 0..12u32,
        words in (0..4usize, 0..4usize),
    ) {
        let library = LIBRARY.get_or_init(plans::library);
        let (targets, workloads) = (library.targets(), library.workloads());
        let target = &targets[pair.0 % targets.len()];
        let parts = Parts::of(library, target, &workloads[pair.1 % workloads.len()]).unwrap();
        let mut set: Vec<(&str, String)> = Vec::new();
        for (knob, power) in ["tp", "pp", "cp", "ep"].into_iter().zip(&powers) {
            set.push((knob, (1_u32 << power).to_string()));
        }
        set.push(("micro", micro.to_string()));
        set.push(("prompt", (1_u32 << lengths.0).to_string()));
        set.push(("generate", (1_u32 << lengths.1).to_string()));
        set.push(("concurrency", (1_u32 << load).to_string()));
        set.push(("recompute", ["none", "selective", "full", "auto"][words.0].to_owned()));
        set.push(("sharding", ["none", "zero1", "zero2", "zero3"][words.1].to_owned()));
        let mut overrides = Overrides::new();
        for (name, value) in &set {
            let knob = Knob::named(name).unwrap();
            overrides.insert(knob, knob.parse(value, parts.fabrics()).unwrap());
        }
        let Ok(scenario) = Scenario::resolve(&parts, &overrides) else { return Ok(()) };
        let (_, opaque) = check(&parts, &scenario);
        prop_assert!(opaque.is_empty(), "{set:?}: {opaque:?}");
        let estimate = engine::estimate(&scenario);
        let Some(detail) = estimate.detail else { return Ok(()) };
        if scenario.mode() == Mode::Training && scenario.engine == Engine::Analytical {
            prop_assert!(same(detail.time.total() * 1e3, estimate.total.step_time_ms.unwrap()));
        }
        let tree = explain(&scenario, &parts, &estimate, metric("peak_mem_gb", &scenario).unwrap()).unwrap();
        if let Some(held) = find(&tree, "M").filter(|term| term.equation.is_some()) {
            let sum: f64 = held.terms.iter().map(|term| term.value).sum();
            prop_assert!(same(sum, detail.memory.total()), "{sum} of {}", detail.memory.total());
        }
    }
}

/// The library of [`plans`], loaded once.
static LIBRARY: OnceLock<Library> = OnceLock::new();

/// First term with this symbol in the tree, including terms that only bear on a value.
fn find<'t>(tree: &'t Term, symbol: &str) -> Option<&'t Term> {
    if tree.symbol == symbol {
        return Some(tree);
    }
    tree.terms.iter().chain(&tree.dependencies).find_map(|term| find(term, symbol))
}

#[test]
fn explained_inputs_state_file_line_knob_or_catalog_origin() {
    let library = plans::library();
    let (parts, scenario) =
        plans::one(&library, "h100x128", "train_70b", &[("dp", "2"), ("pue", "1.5"), ("energy_included", "off")]);
    let estimate = engine::estimate(&scenario);
    let of = |name: &str| explain(&scenario, &parts, &estimate, metric(name, &scenario).unwrap()).unwrap();
    let (mfu, cost) = (of("mfu"), of("dollar_per_1m_tokens"));
    let origin = |tree: &Term, symbol: &str| find(tree, symbol).unwrap().origin.clone().unwrap().to_string();
    assert!(origin(&mfu, "tp").ends_with("workloads.yaml:3 parallelism.tp"), "{}", origin(&mfu, "tp"));
    assert_eq!(origin(&mfu, "dp"), "knob dp");
    assert!(origin(&mfu, "peak").starts_with("catalog nvidia-h100-sxm-80gb (built-in:"), "{}", origin(&mfu, "peak"));
    assert!(origin(&mfu, "gemm_hopper").starts_with("constant gemm_hopper: fitted"));
    assert!(origin(&cost, "PUE").starts_with("knob pue, over "), "{}", origin(&cost, "PUE"));
    assert!(origin(&cost, "C_rent").contains("targets.yaml:4 cost.hourly_usd"), "{}", origin(&cost, "C_rent"));
    assert!(matches!(find(&cost, "USD_kWh").unwrap().origin, Some(Origin::Default(_))));
}

#[test]
fn equations_are_written_in_symbols_and_in_numbers() {
    let library = plans::library();
    let (parts, scenario) = plans::one(&library, "h100x8", "train_8b", &[]);
    let estimate = engine::estimate(&scenario);
    let tree = explain(&scenario, &parts, &estimate, metric("tokens_per_sec", &scenario).unwrap()).unwrap();
    assert_eq!(tree.in_symbols().unwrap(), "X = D / T");
    assert!(tree.in_numbers().unwrap().starts_with("1.049e6 / "), "{}", tree.in_numbers().unwrap());
    let operator = find(&tree, "t_query_key_value").unwrap();
    assert_eq!(operator.in_symbols().unwrap(), "t_query_key_value = forward + backward + gaps");
    let query = find(&tree, "F_query_key_value").unwrap();
    assert_eq!(query.in_symbols().unwrap(), "F_query_key_value = rows × columns × inner × 2");
    assert_eq!(query.value, 8192.0 * 6144.0 * 4096.0 * 2.0);
    let json = serde_json::to_value(&tree).unwrap();
    assert_eq!(json["equation"], "X = D / T");
    assert_eq!(json["terms"][0]["symbol"], "D");
}

#[test]
fn an_unknown_metric_suggests_the_nearest() {
    let library = plans::library();
    let (_, scenario) = plans::one(&library, "h100x8", "train_8b", &[]);
    assert_eq!(metric("MFU", &scenario).unwrap().name, "mfu");
    assert_eq!(metric("tokens/s", &scenario).unwrap().name, "tokens_per_sec");
    let Err(ExplainError::Unknown { near, .. }) = metric("tokens_per_second", &scenario) else { panic!() };
    assert_eq!(near, Some("tokens_per_sec"));
    assert!(matches!(metric("ttft_ms", &scenario), Err(ExplainError::Silent { .. })));
}

#[test]
fn explain_lists_expert_draft_and_cache_settings_that_affect_latency() {
    let dir = tempfile::tempdir().unwrap();
    let explained = |metric: &str, set: &[&str]| {
        let mut command = crate::common::program::atlas(dir.path(), &["explain", metric, "--depth", "7"]);
        command.args(["--target", "h200-sxm-8", "--workload", "deepseek-v3-serve", "--set", "software=sglang"]);
        for assignment in set {
            command.args(["--set", assignment]);
        }
        crate::common::program::stdout(&command.assert().code(0))
    };
    let stated = [
        "tp=1",
        "attention_dp=8",
        "ep=8",
        "redundant_experts=32",
        "two_batch_overlap=on",
        "moe_dispatcher=deepep",
        "draft_tokens=2",
        "draft_method=mtp",
    ];
    let text = explained("tpot", &stated);
    for part in
        ["attention_dp = 8", "redundant_experts = 32", "two_batch_overlap = on", "moe_dispatcher = deepep", "n_step ="]
    {
        assert!(text.contains(part), "no {part}\n{text}");
    }
    assert!(!explained("tpot", &[]).contains("n_step"), "nothing is drafted");
    let cached = ["conversations=2000", "turns=4", "prompt=8192", "kv_host_gb=100", "routing=prefix"];
    let text = explained("ttft", &cached);
    for part in ["conversations = 2000", "turns = 4", "kv_host_gb = 100"] {
        assert!(text.contains(part), "no {part}\n{text}");
    }
}
