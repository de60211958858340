#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
use std::collections::BTreeSet;

use atlas_core::plan::Sharding;
use atlas_perf::serving::Stack;
use atlas_perf::traits::*;
use proptest::prelude::*;

use super::*;
use crate::Catalog;
use crate::accelerator::Peaks;
use crate::measurements;

const H100: AcceleratorClass<'static> = class("NVIDIA", "Hopper", 80.0);

const fn class(vendor: &'static str, generation: &'static str, memory_gb: f64) -> AcceleratorClass<'static> {
    let formats = Peaks {
        fp64: None,
        fp32: Some(1.0),
        tf32: None,
        bf16: Some(1.0),
        fp16: Some(1.0),
        fp8: Some(1.0),
        int8: None,
        fp4: None,
    };
    AcceleratorClass { vendor, generation, memory_gb, formats }
}

fn serving(spec: &str, class: &AcceleratorClass<'_>) -> ServingTraits {
    resolve(spec, SoftwareKind::Serving, class).unwrap().serving.unwrap().default
}

fn training(spec: &str, class: &AcceleratorClass<'_>) -> Profile<TrainingTraits> {
    resolve(spec, SoftwareKind::Training, class).unwrap().training.unwrap()
}

#[test]
fn every_document_decodes_without_problems() {
    let problems = registry::problems();
    assert!(problems.is_empty(), "{problems}");
    assert!(ids().count() > 50);
}

#[test]
fn family_references_resolve_and_releases_are_dated() {
    for family in families() {
        let referred = family.base.iter().chain(&family.predecessor).chain(family.plugins.iter().map(|(_, id)| id));
        for id in referred {
            assert!(super::family(id).is_some(), "{}: {id}", family.id);
        }
        for release in &family.releases {
            assert!(release.date.is_some(), "{}@{} has no date", family.id, release.id);
            assert!(!release.versions.is_empty(), "{}@{} cannot be compared", family.id, release.id);
            let base = family.base.as_deref().and_then(super::family);
            if let (Some(on), Some(base)) = (&release.base_release, base) {
                assert!(base.releases.iter().any(|known| known.id == *on), "{}@{}: {on}", family.id, release.id);
            }
        }
    }
}

#[test]
fn software_name_is_unique_within_training_and_within_serving() {
    let (mut seen, mut double): (Vec<&registry::Name>, Vec<String>) = Default::default();
    for name in registry::names() {
        let alike = |other: &registry::Name| {
            let both = (other.kind.trains() && name.kind.trains()) || (other.kind.serves() && name.kind.serves());
            other.words == name.words && other.id != name.id && both
        };
        double.extend(seen.iter().filter(|other| alike(other)).map(|other| format!("{} and {}", other.id, name.id)));
        seen.push(name);
    }
    assert!(double.is_empty(), "{}", double.join("; "));
}

#[test]
fn every_trait_has_a_source_and_every_source_is_cited() {
    let mut idle = Vec::new();
    for family in families() {
        let mut cited = BTreeSet::new();
        let devices = family.devices.iter().flat_map(|rule| &rule.stated);
        let releases = family.releases.iter().flat_map(|release| &release.stated);
        for stated in family.stated.iter().chain(releases).chain(devices) {
            let source = family.source(stated.source).expect("an index into the sources");
            assert!(source.text.len() > 5, "{}.{}", family.id, stated.default.key());
            cited.insert(stated.source);
        }
        // `vendors` is not a trait. Its source has the key `vendors`.
        let vendors = family.sources.iter().position(|source| source.key == "vendors");
        assert_eq!(vendors.is_some(), !family.vendors.is_empty(), "{}: `vendors` needs a source", family.id);
        cited.extend(vendors);
        for (index, source) in family.sources.iter().enumerate() {
            if !cited.contains(&index) {
                idle.push(format!("{}: {}", family.id, source.key));
            }
        }
    }
    assert!(idle.is_empty(), "nothing cites {}", idle.join(", "));
}

#[test]
fn software_names_in_measurement_tables_resolve() {
    for (text, kind) in [
        (measurements::training(), SoftwareKind::Training),
        (measurements::inference(), SoftwareKind::Serving),
        (measurements::serving_latency(), SoftwareKind::Serving),
    ] {
        let text = text.unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let headers = reader.headers().unwrap().clone();
        let column = headers.iter().position(|header| header == "software").unwrap();
        let names: BTreeSet<String> = reader.records().map(|record| record.unwrap()[column].to_owned()).collect();
        assert!(names.len() > 3);
        for name in names.iter().filter(|name| !name.is_empty()) {
            let found = Software::parse_for(name, kind).unwrap_or_else(|error| panic!("{error}"));
            let family = name.split_once('@').map_or(name.as_str(), |(family, _)| family);
            assert_eq!(found.family.id, family, "{name}");
        }
    }
}

#[test]
fn free_text_resolves_to_a_software_family_and_release() {
    for (text, spec) in [
        ("vllm@0.11", "vllm@0.11.0"),
        ("vLLM 0.6.3.post1", "vllm@0.6.3"),
        ("vLLM v0.9.2 on H100", "vllm@0.9.2"),
        ("NeMo 24.03.01", "nemo@1.23.0"),
        ("NVIDIA NeMo Framework (NGC 25.02)", "nemo@25.02"),
        ("NVIDIA NeMo Framework Release 24.09", "nemo@24.09"),
        ("Megatron-Bridge 26.04.01", "megatron-bridge@0.4.0"),
        ("Megatron-Bridge (NeMo 26.06)", "megatron-bridge@0.5.0"),
        ("Megatron-LM (MCore 0.16)", "megatron-core@0.16.0"),
        ("Megatron-core 0.6.0", "megatron-core@0.6.0"),
        ("core_v0.12.0 of Megatron-LM", "megatron-core@0.12.0"),
        ("NGC PyTorch Release 24.01 Deepspeed N4", "deepspeed@0.12.0"),
        ("PyTorch NVIDIA Release 24.04", "pytorch@2.2.0"),
        ("TensorRT-LLM 0.12", "tensorrt-llm@0.12.0"),
        ("NeuronX Distributed (SDK 2.16.0)", "neuronx-distributed@2.16.0"),
        ("DeepSpeed 0.11.1", "deepspeed@0.9.2"),
        ("llama.cpp build 6918 (2f68ce7cf)", "llama.cpp@b6325"),
        ("PyTorch 2.2.0", "pytorch@2.2.0"),
        ("Dynamo + SGLang", "sglang@0.5.23"),
        ("Optimum Habana + DeepSpeed", "optimum-habana@1.21.2"),
        ("Ollama (llama.cpp)", "ollama"),
        ("Megatron-LM (TE 2.11)", "megatron-core@0.19.2"),
        ("Megatron-LM (PTD-P)", "megatron-lm-legacy@3.0"),
        ("transformers 4.46.0", "transformers@4.46.0"),
        ("EasyContext (HF Accelerate + DeepSpeed ZeRO-3)", "deepspeed@0.19.8"),
        ("vllm@0.20.1+transformers-5.8.1", "vllm@0.20.0"),
        ("sglang@main 43124cdd", "sglang@0.5.23"),
        ("sglang@nightly-dev-20260216-d3bae71e", "sglang@0.5.23"),
        ("transformers-neuronx@Neuron SDK 2.18.1", "transformers-neuronx@2.18.1"),
    ] {
        assert_eq!(Software::find(text).map(|found| found.spec()).as_deref(), Some(spec), "{text}");
    }
    for text in [
        "",
        "@",
        "not a framework at all",
        "llm",
        "vllm@",
        "vllm@fast",
        "vllm@99.0",
        "llama.cpp@b99999",
        "vllm@0.1.0",
        "@0.11",
    ] {
        assert_eq!(Software::find(text), None, "{text}");
    }
}

#[test]
fn name_may_resolve_to_different_families_for_training_and_serving() {
    let both = |name: &str| {
        [SoftwareKind::Training, SoftwareKind::Serving]
            .map(|kind| Software::parse_for(name, kind).unwrap().family.id.clone())
    };
    assert_eq!(both("DeepSpeed"), ["deepspeed", "deepspeed-inference"]);
    assert_eq!(both("Megatron-LM"), ["megatron-core", "megatron-inference"]);
    assert_eq!(both("HF Accelerate"), ["hf-trainer", "transformers"]);
    assert_eq!(both("not stated"), ["generic-training", "generic-serving"]);
    assert_eq!(both("Optimum Habana"), ["optimum-habana", "optimum-habana"]);
}

#[test]
fn unlisted_release_is_reported_with_its_substitute() {
    let said = |text: &str| Software::parse(text).unwrap().caveat_text();
    assert_eq!(said("vllm@0.11.0"), None);
    assert_eq!(said("vllm").unwrap(), "no release stated: using vllm@0.33.0, the newest known");
    assert_eq!(
        said("vllm@0.10.3").unwrap(),
        "release 0.10.3 of vLLM is not listed: using vllm@0.10.2, the nearest before it"
    );
    assert_eq!(said("vllm@0.40").unwrap(), "release 0.40 of vLLM is newer than all listed: using vllm@0.33.0");
    let error = Software::parse("primus@0.1").unwrap_err().to_string();
    assert_eq!(error, "no release `0.1` of primus; known releases: 0.3.0, 0.7.0, 26.4.0");
    assert_eq!(Software::parse("vlm").unwrap_err().to_string(), "no software `vlm`; did you mean `vllm`?");
    assert_eq!(
        Software::parse("megatron-cor@0.12").unwrap_err().to_string(),
        "no software `megatron-cor`; did you mean `megatron-core`?"
    );
}

#[test]
fn trait_applies_until_a_later_release_changes_it() {
    let graphs = |release: &str| serving(&format!("vllm@{release}"), &H100).decode_graphs;
    assert_eq!(graphs("0.2.0"), GraphCapture::None);
    for release in ["0.2.6", "0.4.3", "0.7.3"] {
        assert_eq!(graphs(release), GraphCapture::Full, "{release}");
    }
    for release in ["0.8.0", "0.9.2", "0.10.2"] {
        assert_eq!(graphs(release), GraphCapture::Piecewise, "{release}");
    }
    assert_eq!(graphs("0.33.0"), GraphCapture::Full);
    let host = |release: &str| serving(&format!("vllm@{release}"), &H100).host;
    assert_eq!((host("0.13.0"), host("0.14.0")), (HostOverlap::FrontEnd, HostOverlap::Scheduling));
    let prompts = |release: &str| serving(&format!("sglang@{release}"), &H100).prompts;
    assert_eq!((prompts("0.5.8"), prompts("0.5.10")), (PromptLaunch::Eager, PromptLaunch::Compiled));
    let llm = serving("tensorrt-llm@0.21", &H100);
    assert_eq!((llm.executor, llm.prefill, llm.runtime), (Executor::Native, PrefillPolicy::Mixed, Stack::Compiled));
    let llm = serving("tensorrt-llm@1.2", &H100);
    assert_eq!((llm.executor, llm.prefill, llm.reserve_output), (Executor::Python, PrefillPolicy::Packed, true));
}

#[test]
fn device_rules_select_traits_by_accelerator_class() {
    let budget = |spec: &str, class| match serving(spec, &class).max_num_batched_tokens {
        TokenBudget::Tokens(tokens) => tokens,
        TokenBudget::ContextOr(_) => 0.0,
    };
    let a100 = class("NVIDIA", "Ampere", 80.0);
    let (h200, b200) = (class("NVIDIA", "Hopper", 141.0), class("NVIDIA", "Blackwell", 180.0));
    let (mi300, l40) = (class("AMD", "CDNA3", 192.0), class("NVIDIA", "Ada", 48.0));
    for (spec, class, tokens) in [
        ("vllm@0.8.0", H100, 8192.0),
        ("vllm@0.8.0", a100, 2048.0),
        ("vllm@0.8.0", mi300, 0.0),
        ("vllm@0.8.5", a100, 8192.0),
        ("vllm@0.9.0", a100, 2048.0),
        ("vllm@0.9.2", mi300, 8192.0),
        ("vllm@0.27.0", b200, 8192.0),
        ("vllm@0.28.0", b200, 16384.0),
        ("vllm@0.28.0", h200, 8192.0),
        ("vllm@0.28.0", l40, 2048.0),
        ("vllm@0.33.0", class("NVIDIA", "Blackwell", 96.0), 8192.0),
        ("vllm@0.33.0", class("NVIDIA", "Blackwell", 128.0), 2048.0),
        ("sglang@0.5.4", l40, 4096.0),
        ("sglang@0.5.4", mi300, 16384.0),
    ] {
        assert_eq!(budget(spec, class), tokens, "{spec} on {} {}", class.generation, class.memory_gb);
    }
    assert_eq!(budget("vllm@0.7.3", H100), 0.0);
    assert_eq!(training("megatron-core@0.12", &H100).default.attention, AttentionKernel::Native);
    assert_eq!(training("megatron-core@0.12", &a100).default.attention, AttentionKernel::Flash2);
    assert_eq!(training("megatron-core@0.6", &H100).default.attention, AttentionKernel::Flash2);
    let cuda = |release: &str| serving(&format!("llama.cpp@{release}"), &H100).decode_graphs;
    assert_eq!((cuda("b2413"), cuda("b2822")), (GraphCapture::None, GraphCapture::Full));
    assert_eq!(serving("llama.cpp@b6325", &mi300).decode_graphs, GraphCapture::None);
    assert_eq!(serving("llama.cpp", &class("Apple", "Apple silicon", 64.0)).decode_graphs, GraphCapture::Full);
}

#[test]
fn plugin_replaces_its_base_family_on_its_devices() {
    let ascend = class("Huawei", "Ascend", 64.0);
    let found = resolve("vllm@0.11.0", SoftwareKind::Serving, &ascend).unwrap();
    assert_eq!((found.family.id.as_str(), found.software().spec().as_str()), ("vllm-ascend", "vllm-ascend@0.9.1"));
    let text = found.software().caveat_text().unwrap();
    assert_eq!(text, "using vllm-ascend@0.9.1 for vllm@0.11.0, which needs it on this accelerator");
    assert_eq!(serving("vllm", &class("Intel", "Gaudi", 128.0)).shapes, Shapes::Bucketed);
    assert_eq!(serving("vllm", &H100).shapes, Shapes::Dynamic);
}

#[test]
fn default_and_tuned_traits_match_the_software_documentation() {
    let traits = training("megatron-core@0.14", &H100);
    assert_eq!(
        (traits.default.overlap_gradients, traits.tuned.overlap_gradients),
        (DataOverlap::Never, DataOverlap::Always)
    );
    let bridge = training("megatron-bridge@0.4.0", &H100);
    assert_eq!(bridge.default.overlap_gradients, DataOverlap::Always);
    assert_eq!(bridge.default.gradient_sums, GradientSums::Fused, "from the base");
    let titan = training("torchtitan", &H100).default;
    assert_eq!(titan.regather, Regather::OnceUnderPipeline);
    let split = |software| training(software, &H100).tuned.expert_split;
    for like_tensors in ["megatron-core@0.6.0", "megatron-core", "nemo", "primus", "maxtext"] {
        assert_eq!(split(like_tensors), ExpertSplit::TensorParallel, "{like_tensors}");
    }
    assert_eq!(split("megatron-bridge"), ExpertSplit::Whole);
    assert_eq!(split("torchtitan"), ExpertSplit::WithoutExpertParallel);
    assert_eq!((titan.sharding, titan.most_sharding_with_pipeline), (Sharding::Zero3, Sharding::Zero3));
    assert_eq!(training("deepspeed", &H100).default.most_sharding_with_pipeline, Sharding::Zero1);
    assert!(resolve("vllm", SoftwareKind::Serving, &H100).unwrap().training.is_none());
    let error = resolve("vllm", SoftwareKind::Training, &H100).unwrap_err().to_string();
    assert_eq!(error, "vllm does not support training");
}

#[test]
fn date_resolves_to_the_newest_release_of_that_day() {
    let at = |family: &str, date: &str| Software::released_by(family, Day::parse(date).unwrap()).unwrap().spec();
    assert_eq!(at("vllm", "2025-10-03"), "vllm@0.10.2");
    assert_eq!(at("vllm", "2025-10"), "vllm@0.11.0");
    assert_eq!(at("vllm", "2020-01-01"), "vllm@0.2.0");
    assert_eq!(at("Megatron-LM", "2021-04-09"), "megatron-lm-legacy@2.0");
    assert_eq!(at("Megatron-LM", "2025-04-09"), "megatron-core@0.11.0");
    assert_eq!(at("nemo", "2022-10"), "nemo@22.05");
    let nemo = Software::released_by("nemo", Day::parse("2022-10").unwrap()).unwrap().resolve(&H100).training.unwrap();
    assert!(nemo.tuned.dropout && nemo.tuned.attention == AttentionKernel::Unfused);
    assert_eq!(Software::released_by("no such family", Day::parse("2022-10").unwrap()), None);
}

#[test]
fn generic_software_resolves_to_the_default_traits() {
    assert_eq!(training("generic-training", &H100).default, TrainingTraits::default());
    assert_eq!(serving("generic-serving", &H100), ServingTraits::default());
    let rows = Software::find("generic-serving").unwrap().traits(&H100);
    assert_eq!(rows.len(), SERVING_FIELDS.len());
    assert!(rows.iter().all(|row| row.confidence == Confidence::Assumed));
}

#[test]
fn listed_traits_equal_the_resolved_traits() {
    for family in families() {
        let releases =
            if family.releases.is_empty() { vec![None] } else { (0..family.releases.len()).map(Some).collect() };
        for release in releases {
            let software = Software { family: Arc::clone(&family), release, caveat: None };
            let resolved = software.resolve(&H100);
            let rows = software.traits(&H100);
            let value = |kind: SoftwareKind, key: &str| {
                let row = rows.iter().find(|row| row.kind == kind && row.key == key);
                row.map(|row| (row.value.clone(), row.tuned.clone().unwrap_or_else(|| row.value.clone())))
            };
            let check = |kind, key, default, tuned| {
                assert_eq!(value(kind, key), Some((default, tuned)), "{} {key}", software.spec());
            };
            if let Some(profile) = resolved.training {
                let tuned = fields::TrainingChange::all(&profile.tuned);
                for (change, tuned) in fields::TrainingChange::all(&profile.default).iter().zip(&tuned) {
                    check(SoftwareKind::Training, change.key(), change.format_value(), tuned.format_value());
                }
            }
            if let Some(profile) = resolved.serving {
                let tuned = fields::ServingChange::all(&profile.tuned);
                for (change, tuned) in fields::ServingChange::all(&profile.default).iter().zip(&tuned) {
                    check(SoftwareKind::Serving, change.key(), change.format_value(), tuned.format_value());
                }
            }
        }
    }
}

#[test]
fn upgrade_lists_changed_traits_with_their_sources() {
    let (old, new) = (Software::find("vllm@0.10.2").unwrap(), Software::find("vllm@0.14.0").unwrap());
    let changes = old.difference(&new, &H100);
    let keys: Vec<&str> = changes.iter().map(|(own, _)| own.key).collect();
    assert_eq!(keys, ["decode_graphs", "host", "host_with_drafts", "narrow_experts", "exchange"]);
    let (before, after) = &changes[0];
    assert_eq!((before.value.as_str(), after.value.as_str()), ("piecewise", "full"));
    assert_eq!(after.since.as_deref(), Some("0.11.0"));
    assert!(after.source.contains("4778b42660") && after.confidence == Confidence::Source);
    assert!(old.difference(&old, &H100).is_empty());
}

#[test]
fn every_accelerator_resolves_with_every_family() {
    for accelerator in Catalog::built_in().accelerators() {
        let class = AcceleratorClass::of(&accelerator, 1.0);
        for id in ids() {
            let found = Software::parse(id).unwrap().resolve(&class);
            assert!(found.training.is_some() || found.serving.is_some(), "{id} on {}", accelerator.id);
        }
    }
}

#[test]
fn device_rules_use_vendors_and_generations_of_the_catalog() {
    let sheets = Catalog::built_in().accelerators();
    for family in families() {
        for rule in &family.devices {
            for vendor in &rule.vendors {
                assert!(sheets.iter().any(|sheet| sheet.vendor == *vendor), "{}: {vendor}", family.id);
            }
            for generation in rule.generations.iter().chain(&rule.excluded_generations) {
                assert!(sheets.iter().any(|sheet| sheet.generation == *generation), "{}: {generation}", family.id);
            }
        }
        for vendor in &family.vendors {
            assert!(sheets.iter().any(|sheet| sheet.vendor == *vendor), "{}: {vendor}", family.id);
        }
        for (key, _) in &family.plugins {
            assert!(sheets.iter().any(|sheet| sheet.vendor == *key || sheet.generation == *key), "{key}");
        }
    }
}

fn decoded(text: &str) -> (Option<Family>, String) {
    let file: Arc<str> = "own.yaml".into();
    let mut problems = atlas_document::Diagnostics::new();
    let node = atlas_document::parse::parse(&file, text, &mut problems);
    let family = node.and_then(|node| Family::decode(&file, &node, &mut problems));
    (family, problems.to_string())
}

#[test]
fn device_rule_can_match_a_format_that_a_device_lacks() {
    let text = "id: mine\nkind: serving\nsources:\n  a: \"docs: page\"\ndevices:\n  \
                - { when: { lacks: [fp8] }, serving: { fp8: { value: separate, source: a } } }\n";
    let (family, said) = decoded(text);
    let mine = Software { family: Arc::new(family.expect(&said)), release: None, caveat: None };
    let on = |class: &AcceleratorClass<'_>| mine.resolve(class).serving.unwrap().default.fp8;
    let old = AcceleratorClass { formats: Peaks { fp8: None, ..H100.formats }, ..H100 };
    assert_eq!((on(&H100), on(&old)), (QuantizedProduct::Native, QuantizedProduct::Separate));
    let (family, said) = decoded(&text.replace("fp8]", "fp9]"));
    assert!(family.is_none() && said.contains("found `fp9`, expected some of fp64, fp32"), "{said}");
}

#[test]
fn invalid_document_is_reported_with_line_and_remedy() {
    let head = "id: mine\nkind: serving\nsources:\n  a: \"docs: page\"\n";
    for (text, complaint) in [
        (
            "serving:\n  hots: { value: none, source: a }\n",
            "own.yaml:6:9: error: hots: no such trait; did you mean `host`?",
        ),
        (
            "serving:\n  host: { value: nine, source: a }\n",
            "found text \"nine\", expected one of none, front-end, scheduling",
        ),
        ("serving:\n  host: { value: none }\n", "found no source, which is not listed"),
        ("serving:\n  host: none\n", "found no value; write `{ value: …, source: KEY }`"),
        ("serving:\n  max_num_seqs: { value: 0, source: a }\n", "expected a whole number from 1, or any"),
        ("releases:\n  - { release: 26.10, date: 2026-10 }\n", "quote it: YAML reads 26.10 as 26.1"),
        (
            "releases:\n  - { release: \"2\", date: 2026 }\n  - { release: \"1\", date: 2025 }\n",
            "older than the release before it",
        ),
        ("devices:\n  - { when: { vendor: X }, from: \"3\" }\n", "`3` is not a release of this family"),
        ("devices:\n  - { from: \"3\" }\n", "when"),
    ] {
        let (family, said) = decoded(&format!("{head}{text}"));
        assert!(family.is_none() && said.contains(complaint), "{text}\n{said}");
    }
    let (family, said) = decoded("id: mine\nkind: serving\nsources:\n  a: page\n");
    assert!(family.is_none() && said.contains("expected the kind of evidence"), "{said}");
}

proptest! {
    #[test]
    fn parsing_arbitrary_text_does_not_panic(text in ".{0,60}") {
        let _ = Software::parse(&text);
    }

    #[test]
    fn parsing_an_arbitrary_release_does_not_panic(family in 0..60usize, release in "[a-z0-9.+ _-]{0,20}") {
        let id = ids().nth(family % ids().count()).unwrap();
        if let Ok(found) = Software::parse(&format!("{id}@{release}")) {
            let _ = (found.resolve(&H100), found.caveat_text(), found.spec());
        }
    }

    #[test]
    fn resolved_release_is_not_newer_than_the_requested_one(minor in 2..33u32, patch in 0..9u32) {
        let found = Software::parse(&format!("vllm@0.{minor}.{patch}")).unwrap();
        let known = Version::parse(&found.release().unwrap().id).unwrap();
        let requested = Version::parse(&format!("0.{minor}.{patch}")).unwrap();
        prop_assert!(known.partial_compare(requested).unwrap().is_le());
    }
}
