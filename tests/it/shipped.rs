//! The built-in files: every target with every workload gives a plausible estimate, and natural pairs fit and are close
//! to published results.

use std::collections::{BTreeMap, BTreeSet};

use atlas_config::Target;
use atlas_config::library::Library;
use atlas_core::plan::Engine;
use atlas_document::Sources;
use atlas_plan::engine::estimate;
use atlas_plan::estimate::{Cause, Estimate, METRICS, Metric, Verdict};
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};

/// The predecessor's entries: estimated by its calibrated model, exactly.
const PREDECESSOR: [&str; 5] =
    ["NVIDIA_H100_8x_NVLink", "GROQ_LPU_NODE", "SAMBANOVA_SNX_NODE", "gpt5_1t_train", "gpt5_1t_inference"];

/// Each workload with a target that suits it.
const NATURAL: [(&str, &str); 24] = [
    ("llama3.1-8b-train", "h100-sxm-8"),
    ("llama3.1-8b-train", "mi300x-8"),
    ("llama3.1-8b-train", "tpu-v5p-128"),
    ("llama3.1-8b-train", "trn2-16"),
    ("llama3.1-70b-train", "h100-sxm-128"),
    ("llama3.1-70b-train", "h200-sxm-64"),
    ("deepseek-v3-train", "gb300-nvl72-4"),
    ("mixtral-8x7b-train", "h100-sxm-64"),
    ("gpt-oss-120b-train", "gb200-nvl72"),
    ("llama2-7b-dp8", "h100-sxm-8"),
    ("llama2-7b-dp8", "a100-sxm-80gb-8"),
    ("llama2-70b-dp16-tp4-pp2", "h100-sxm-128"),
    ("llama3.1-8b-compare", "h100-sxm-8"),
    ("qwen2.5-7b-compare", "mi300x-8"),
    ("gpt2-small-train", "rtx-4090-8"),
    ("gpt2-medium-train", "a100-sxm-80gb-8"),
    ("gpt2-large-train", "h100-sxm-8"),
    ("bert-large-train", "a100-sxm-80gb-8"),
    ("llama3.1-8b-serve", "l40s-8"),
    ("llama3.1-70b-serve", "h100-sxm-8"),
    ("llama3.1-405b-serve", "h200-sxm-8"),
    ("deepseek-v3-serve", "h200-sxm-8"),
    ("gpt-oss-120b-serve", "b200-8"),
    ("llama3.1-70b-day", "mi300x-8"),
];

fn library() -> Library {
    Library::load(&Sources::built_in(), None)
}

fn answer(library: &Library, target: &str, workload: &str) -> (Scenario, Estimate) {
    let parts = Parts::find(library, target, workload).unwrap();
    let scenario = Scenario::resolve(&parts, &Overrides::new()).unwrap();
    let estimate = estimate(&scenario);
    (scenario, estimate)
}

fn metric(name: &str, (scenario, estimate): &(Scenario, Estimate)) -> f64 {
    Metric::named(name).unwrap().value(estimate, scenario).unwrap()
}

#[test]
fn shipped_targets_cover_six_vendors_and_workloads_have_models() {
    let library = library();
    assert!(library.problems().is_empty(), "{}", library.problems());
    let catalogued: Vec<&Target> =
        library.targets().iter().map(|target| &**target).filter(|target| target.accelerator.is_some()).collect();
    assert!(catalogued.len() >= 24, "{}", catalogued.len());
    let modeled = library.workloads().iter().filter(|workload| workload.model.is_some()).count();
    assert!(modeled >= 16, "{modeled}");
    let vendors: BTreeSet<&str> = catalogued.iter().map(|target| target.vendor.as_str()).collect();
    assert_eq!(vendors.into_iter().collect::<Vec<_>>(), ["AMD", "AWS", "Apple", "Google", "Intel", "NVIDIA"]);
    // The predecessor's entries come last and name neither accelerator nor model, so that they use the predecessor's
    // engine.
    let predecessor = |name: &&std::sync::Arc<str>| PREDECESSOR.contains(&&***name);
    let targets: Vec<_> = library.targets().iter().map(|target| &target.name).collect();
    assert!(targets.iter().rev().take(3).all(predecessor), "{targets:?}");
    for name in &PREDECESSOR[..3] {
        assert_eq!(library.target(name).unwrap().accelerator, None);
    }
    for name in &PREDECESSOR[3..] {
        assert_eq!(library.workload(name).unwrap().model, None);
    }
}

#[test]
fn shipped_targets_match_the_catalog_and_cite_price_and_power_sources() {
    let library = library();
    for target in library.targets() {
        let Some(name) = &target.accelerator else { continue };
        let sheet = library.catalog().accelerator(name).unwrap();
        let near = |a: f64, b: f64| (a / b - 1.0).abs() <= 0.01;
        assert_eq!(target.vendor, sheet.vendor, "{}", target.name);
        assert!(near(target.memory_gb_per_accel, sheet.memory.gb), "{}", target.name);
        let link = target.interconnect.as_ref();
        // Targets state the sum of both directions, data sheets one direction.
        if let Some(both_ways) = link.filter(|link| link.kind != "PCIe").and_then(|link| link.bw_gbytes_per_sec) {
            let one_way = sheet.scale_up.as_ref().and_then(|link| link.bw_gbytes_per_sec).unwrap();
            assert!(near(both_ways, 2.0 * one_way), "{}: {both_ways} GB/s against 2 × {one_way}", target.name);
        }
        // A node draws at least the TDP of its accelerators.
        let tdp = sheet.tdp_w.unwrap_or(0.0) * target.accelerators_per_node;
        assert!(target.cost.energy_watts_node >= tdp, "{}", target.name);
        assert!((1.0..=1.2).contains(&target.cost.pue), "{}", target.name);
        let source = target.document.get("source").and_then(|node| node.text()).unwrap_or_default();
        assert!(source.contains("Price: ") && source.contains("Power: "), "{}", target.name);
    }
}

#[test]
fn shipped_target_prices_match_the_provider_they_cite() {
    let library = library();
    let mut seen = 0;
    for target in library.targets() {
        let Some(accelerator) = &target.accelerator else { continue };
        let each = target.cost.hourly_usd / target.accelerators_per_node;
        let source = target.document.get("source").and_then(|node| node.text()).unwrap_or_default();
        let described = source.split("Power: ").next().unwrap_or_default().to_lowercase();
        let offers = library.catalog().prices_of(accelerator);
        let named = |provider: &str| {
            described.contains(&format!("price: {provider}")) || described.contains(&format!("× {provider}"))
        };
        let mut theirs = offers.iter().filter(|price| named(&price.provider.to_lowercase()));
        if theirs.clone().next().is_some() {
            assert!(
                theirs.any(|price| (price.usd_per_accelerator_hour() / each - 1.0).abs() < 1e-3),
                "{}: {each} an accelerator is no price of the provider's: {described}",
                target.name
            );
            seen += 1;
        }
    }
    assert!(seen >= 28, "{seen}");
}

/// With attention counted in full, MFU of long sequences would exceed what the hardware can do (110 % at 131,072
/// tokens).
#[test]
fn headline_metrics_include_mfu_causal_but_not_mfu() {
    let leading: Vec<&str> = Metric::headlines(atlas_config::Mode::Training).map(|metric| metric.name).collect();
    assert!(leading.contains(&"mfu_causal") && !leading.contains(&"mfu"), "{leading:?}");
    let all: Vec<&str> = Metric::by_importance(atlas_config::Mode::Training).map(|metric| metric.name).collect();
    assert!(all.contains(&"mfu"), "the other definition stands below");
}

#[test]
fn an_instance_type_has_one_price_at_a_time() {
    let library = library();
    let mut prices: BTreeMap<(String, String), (f64, String)> = BTreeMap::new();
    for target in library.targets() {
        let text = |key: &str| target.document.get(key).and_then(|node| node.text()).map(str::to_owned);
        let Some(instance) = text("instance_type") else { continue };
        let source = text("source").or_else(|| text("notes")).unwrap_or_default();
        let place = source.split("Power: ").next().unwrap_or_default().replace(" on demand", "");
        let price = (target.cost.hourly_usd, target.name.to_string());
        let (usd, other) = prices.entry((instance, place)).or_insert_with(|| price.clone());
        assert!((*usd - price.0).abs() < 1e-9, "{} and {other} name one price: {usd} and {}", price.1, price.0);
    }
    assert!(prices.len() >= 10, "{prices:?}");
}

#[test]
fn every_target_workload_pair_gives_a_plausible_estimate() {
    let library = library();
    let mut fitting = 0;
    for target in library.targets() {
        for workload in library.workloads() {
            let pair = format!("{} × {}", target.name, workload.name);
            let answered = answer(&library, &target.name, &workload.name);
            let (scenario, estimate) = &answered;
            assert_eq!(scenario.engine == Engine::Analytical, target.accelerator.is_some(), "{pair}");
            for metric in METRICS.iter().filter(|metric| metric.applies_to(scenario)) {
                let value = metric.value(estimate, scenario).unwrap();
                // Hardware whose rent is below its running costs never breaks even.
                let never = metric.name == "break_even_months" && value == f64::INFINITY;
                assert!(never || (value.is_finite() && value >= 0.0), "{pair}: {} is {value}", metric.name);
                if let Some((low, high)) = metric.interval(estimate, scenario) {
                    assert!(low <= value && value <= high, "{pair}: {}: {low} {value} {high}", metric.name);
                }
            }
            let Some(detail) = estimate.detail else { continue };
            let sums = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
            assert!(sums(Cause::ALL.iter().map(|cause| detail.limits.share(*cause)).sum(), 1.0), "{pair}");
            let step = detail.training.is_some() && scenario.phases.is_empty();
            assert!(!step || sums(detail.time.total() * 1e3, estimate.total.step_time_ms.unwrap()), "{pair}");
            assert!(sums(detail.memory.parts.parts().map(|(_, bytes)| bytes).sum(), detail.memory.total()));
            assert!(detail.verdict != Verdict::Fits || detail.memory.excess() == 0.0, "{pair}");
            assert!(estimate.total.flop_utilization < 1.0, "{pair}: {}", estimate.total.flop_utilization);
            // More than idle power, and no more than the node can draw.
            let watts = estimate.total.node_power_w;
            assert!(watts > 0.1 * scenario.node_watts && watts <= scenario.node_watts, "{pair}: {watts} W");
            fitting += usize::from(detail.verdict.fits());
        }
    }
    assert!(fitting > 200, "{fitting}");
}

#[test]
fn typical_pairs_fit_and_every_workload_fits_on_some_target() {
    let library = library();
    for (workload, target) in NATURAL {
        let verdict = answer(&library, target, workload).1.detail.unwrap().verdict;
        assert!(verdict.fits(), "{target} × {workload}: {}", verdict.describe());
    }
    for workload in library.workloads().iter().filter(|workload| !PREDECESSOR.contains(&&*workload.name)) {
        let fits = |target: &std::sync::Arc<Target>| {
            answer(&library, &target.name, &workload.name).1.detail.is_some_and(|detail| detail.verdict.fits())
        };
        assert!(library.targets().iter().any(fits), "{} fits nowhere", workload.name);
    }
}

#[test]
fn published_training_throughput_is_predicted_within_30_percent() {
    let library = library();
    // Table of Megatron-Bridge 26.06, tokens/s per GPU: the layouts of these entries.
    for (workload, target, accelerators, published) in [
        ("gpt-oss-120b-train", "gb200-nvl72", 64.0, 28_947.0),
        ("deepseek-v3-train", "gb200-nvl72-4", 256.0, 4_969.0),
        ("llama3.1-405b-train", "h100-sxm-1024", 1_024.0, 326.0),
    ] {
        let (scenario, estimate) = answer(&library, target, workload);
        let rate = Metric::named("tokens_per_sec").unwrap();
        let (low, high) = rate.interval(&estimate, &scenario).unwrap();
        let each = estimate.total.tokens_per_sec / accelerators;
        let near = (each / published - 1.0).abs() < 0.3;
        let inside = low <= published * accelerators && published * accelerators <= high;
        assert!(near && inside, "{workload} on {target}: {each:.0} against {published}");
    }
}

#[test]
fn layout_beyond_the_target_size_is_not_cheaper_per_token() {
    let library = library();
    let small = answer(&library, "h100-sxm-8", "gpt-oss-120b-train");
    assert!(matches!(small.1.detail.unwrap().verdict, Verdict::Accelerators { needs: 64.0, has: 8.0 }));
    let enough = answer(&library, "h100-sxm-64", "gpt-oss-120b-train");
    let (few, all) = (metric("tokens_per_sec_per_accel", &small), metric("tokens_per_sec_per_accel", &enough));
    assert!((few / all - 1.0).abs() < 0.05, "{few} against {all}");
    assert!(metric("dollar_per_1m_tokens", &small) > 0.9 * metric("dollar_per_1m_tokens", &enough));
}

/// Tokens per second of a pair with these knobs, and its verdict.
fn rate(library: &Library, target: &str, workload: &str, knobs: &[(Knob, Setting)]) -> (f64, Verdict) {
    let parts = Parts::find(library, target, workload).unwrap();
    let overrides: Overrides = knobs.iter().cloned().collect();
    let found = estimate(&Scenario::resolve(&parts, &overrides).unwrap());
    (found.total.tokens_per_sec, found.detail.unwrap().verdict)
}

#[test]
fn native_fp8_serves_at_least_as_fast_as_bf16_at_high_concurrency() {
    let library = library();
    let mut compared = 0;
    for target in library.targets() {
        let Some(sheet) = target.accelerator.as_deref().and_then(|id| library.catalog().accelerator(id).ok()) else {
            continue;
        };
        if sheet.peaks.fp8.zip(sheet.peaks.bf16).is_none_or(|(fp8, bf16)| fp8 <= bf16) {
            continue;
        }
        for workload in ["llama3.1-8b-serve", "llama3.1-70b-serve"] {
            let at = |format: &str| {
                let knobs =
                    [(Knob::Precision, Setting::Choice(format.into())), (Knob::Concurrency, Setting::Number(2048.0))];
                rate(&library, &target.name, workload, &knobs)
            };
            let ((wide, fits), (narrow, _)) = (at("bf16"), at("fp8"));
            if fits.fits() {
                assert!(narrow >= 0.999 * wide, "{} x {workload}: bf16 {wide}, fp8 {narrow}", target.name);
                compared += 1;
            }
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn training_in_an_unsupported_format_is_refused_by_name() {
    let library = library();
    for (target, format) in
        [("a100-sxm-80gb-8", "fp8"), ("tpu-v5p-128", "tf32"), ("h100-sxm-8", "int4"), ("mi300x-8", "fp4")]
    {
        let knobs = [(Knob::Precision, Setting::Choice(format.into()))];
        let (_, verdict) = rate(&library, target, "llama3.1-8b-train", &knobs);
        assert!(matches!(verdict, Verdict::Format { format: found, .. } if found == format), "{target}: {verdict:?}");
    }
}
