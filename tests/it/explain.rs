//! Derivations of every metric on scenarios of every kind: they add up, and every input says where it comes from.

use crate::common::plans;

use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_plan::engine;
use atlas_plan::estimate::{METRICS, Verdict};
use atlas_plan::explain::{ExplainError, Origin, Term, explain, metric};
use atlas_plan::knob::Overrides;
use atlas_plan::scenario::{Parts, Scenario};

/// Whether two figures are the same up to rounding.
fn same(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()) || (a.is_nan() && b.is_nan())
}

fn check(parts: &Parts, scenario: &Scenario, beyond: &mut Vec<String>) -> usize {
    let estimate = engine::estimate(scenario);
    let mut terms = 0;
    for metric in METRICS.iter().filter(|metric| metric.applies_to(scenario)) {
        let at = format!("{} x {}: {}", parts.target.name, parts.workload.name, metric.name);
        let tree = explain(scenario, parts, &estimate, metric);
        assert!(same(tree.value, (metric.get)(&estimate, scenario)), "{at}: {} is described", tree.value);
        assert!(!tree.name.is_empty(), "{at}");
        for term in tree.walk() {
            terms += 1;
            match &term.equation {
                Some(equation) => {
                    let computed = equation.value(&term.terms);
                    assert!(
                        same(computed, term.value),
                        "{at}: {} is {computed}, described as {}",
                        term.symbol,
                        term.value
                    );
                }
                None => assert!(term.origin.is_some(), "{at}: where does {} ({}) come from?", term.symbol, term.name),
            }
            // A layout on more devices than there are is reckoned with in part with what there is.
            let possible = !matches!(estimate.detail.map(|d| d.verdict), Some(Verdict::Accelerators { .. }));
            if term.symbol == "beyond" && possible {
                beyond.push(format!("{at}: {}", term.value));
            }
            for bearing in &term.bearing {
                assert!(bearing.origin.is_some() || bearing.equation.is_some(), "{at}: {}", bearing.symbol);
            }
        }
    }
    terms
}

#[test]
fn every_derivation_adds_up_to_its_metric() {
    let library = plans::library();
    let (mut beyond, mut terms) = (Vec::new(), 0);
    for (parts, scenario) in plans::all(&library) {
        terms += check(&parts, &scenario, &mut beyond);
    }
    assert!(terms > 10_000, "{terms}");
    assert!(beyond.is_empty(), "{} of {terms}: {:#?}", beyond.len(), &beyond[..beyond.len().min(20)]);
}

#[test]
fn what_ships_adds_up_too() {
    let library = Library::load(&Sources::built_in(), None);
    let mut beyond = Vec::new();
    for target in library.targets() {
        for workload in library.workloads() {
            let parts = Parts::of(&library, target, workload).unwrap();
            let Ok(scenario) = Scenario::resolve(&parts, &Overrides::new()) else { continue };
            assert!(check(&parts, &scenario, &mut beyond) > 50);
        }
    }
}

/// The first term of that symbol in the tree or bearing on it.
fn find<'t>(tree: &'t Term, symbol: &str) -> Option<&'t Term> {
    if tree.symbol == symbol {
        return Some(tree);
    }
    tree.terms.iter().chain(&tree.bearing).find_map(|term| find(term, symbol))
}

#[test]
fn inputs_say_where_they_were_written() {
    let library = plans::library();
    let (parts, scenario) =
        plans::one(&library, "h100x128", "train_70b", &[("dp", "2"), ("pue", "1.5"), ("energy_included", "off")]);
    let estimate = engine::estimate(&scenario);
    let of = |name: &str| explain(&scenario, &parts, &estimate, metric(name, &scenario).unwrap());
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
fn equations_are_told_in_symbols_and_in_numbers() {
    let library = plans::library();
    let (parts, scenario) = plans::one(&library, "h100x8", "train_8b", &[]);
    let estimate = engine::estimate(&scenario);
    let tree = explain(&scenario, &parts, &estimate, metric("tokens_per_sec", &scenario).unwrap());
    assert_eq!(tree.in_symbols().unwrap(), "X = D / T");
    assert!(tree.in_numbers().unwrap().starts_with("1.049e6 / "), "{}", tree.in_numbers().unwrap());
    let query = find(&tree, "F_query_key_value").unwrap();
    assert_eq!(query.in_symbols().unwrap(), "F_query_key_value = rows × columns × inner × 2");
    assert_eq!(query.value, 8192.0 * 6144.0 * 4096.0 * 2.0);
    let json = serde_json::to_value(&tree).unwrap();
    assert_eq!(json["equation"], "X = D / T");
    assert_eq!(json["terms"][0]["symbol"], "D");
}

#[test]
fn names_that_are_no_metric_are_told_the_nearest() {
    let library = plans::library();
    let (_, scenario) = plans::one(&library, "h100x8", "train_8b", &[]);
    assert_eq!(metric("MFU", &scenario).unwrap().name, "mfu");
    assert_eq!(metric("tokens/s", &scenario).unwrap().name, "tokens_per_sec");
    let Err(ExplainError::Unknown { near, .. }) = metric("tokens_per_second", &scenario) else { panic!() };
    assert_eq!(near, Some("tokens_per_sec"));
    assert!(matches!(metric("ttft_ms", &scenario), Err(ExplainError::Silent { .. })));
}
