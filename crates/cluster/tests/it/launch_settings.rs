//! No setting of a scenario is silently dropped: if a setting changes the prediction, it also changes the launch files, or
//! it is rejected.

use std::collections::BTreeSet;

use atlas_cluster::launch::{self, Options, Tool, Wrap};
use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_plan::knob::{KNOBS, Knob, KnobValues as _, Overrides, Setting, Spec, ValueType};
use atlas_plan::scenario::{Parts, Scenario};

/// Knobs that describe hardware, data or the analysis, which launch files do not set.
const NO_SETTINGS: [Knob; 6] =
    [Knob::Engine, Knob::NetworkGbps, Knob::Oversubscription, Knob::RackKw, Knob::DraftAcceptance, Knob::DraftDecline];
/// Knobs for which tools have only coarser settings, so that neighboring values may give equal files.
const APPROXIMATED: [Knob; 3] = [Knob::Recompute, Knob::RecomputeLayers, Knob::RecomputeReserve];

/// Starting points: target, workload and settings.
const TRAINING: [(&str, &str, &[&str]); 5] = [
    ("h100-sxm-8", "llama3.1-8b-train", &[]),
    ("h100-sxm-8", "gpt2-large-train", &[]),
    ("h100-sxm-64", "llama3.1-8b-train", &["tp=2"]),
    ("h100-sxm-64", "llama3.1-8b-train", &["pp=2", "vpp=2", "cp=2"]),
    ("h100-sxm-64", "mixtral-8x7b-train", &[]),
];
const SERVING: [(&str, &str, &[&str]); 4] = [
    ("h100-sxm-8", "llama3.1-8b-serve", &[]),
    ("h100-sxm-8", "llama3.1-70b-serve", &["draft_tokens=3", "draft_method=eagle3"]),
    ("h100-sxm-8", "gpt-oss-120b-serve", &[]),
    ("h200-sxm-8", "deepseek-v3-serve", &["tp=1", "attention_dp=8", "ep=8"]),
];

fn overrides(set: &[&str]) -> Overrides {
    let parse = |text: &&str| {
        let (name, value) = text.split_once('=').unwrap();
        let knob = Knob::named(name).unwrap();
        (knob, knob.parse(value, &[]).unwrap())
    };
    set.iter().map(parse).collect()
}

/// Settings to try instead of the one in effect.
fn tried(spec: &Spec, now: &Setting) -> Vec<Setting> {
    match (spec.kind, now) {
        (ValueType::Toggle, _) => vec![Setting::Toggle(true), Setting::Toggle(false)],
        (ValueType::Choice(words), _) => words.iter().map(|word| Setting::Choice((*word).into())).collect(),
        (ValueType::Number { bounds, .. }, Setting::Number(value)) => {
            let near = [2.0 * value, 0.5 * value, 0.8 * value, 2.0];
            let rounded = near.map(|value| if bounds.whole { value.round() } else { value });
            rounded.into_iter().filter(|value| bounds.contains(*value)).map(Setting::Number).collect()
        }
        _ => Vec::new(),
    }
}

/// The files without the prediction, and the prediction. `None` if the launch is rejected.
fn launched(tool: Tool, parts: &Parts, set: &Overrides) -> Option<(String, f64)> {
    let scenario = Scenario::resolve(parts, set).ok()?;
    let wrap = if tool == Tool::Dynamo { Wrap::Kubernetes } else { Wrap::Plain };
    let model = parts.model.as_ref()?;
    let options = Options {
        tool: Some(tool),
        wrap,
        draft_model: Some("meta-llama/Llama-3.2-1B".to_owned()),
        model: matches!(tool, Tool::LlamaCpp | Tool::TensorRtLlm).then(|| format!("org/{}-F16.gguf", model.id)),
        ..Options::default()
    };
    let launch = launch::files(parts, &scenario, &options).ok()?;
    let predicted = launch::predicted(&atlas_plan::engine::estimate(&scenario));
    let lines = launch.files.iter().flat_map(|file| file.text.lines());
    let text: Vec<&str> = lines.filter(|line| !line.contains("Predicted: ")).collect();
    Some((format!("{}\n{}", text.join("\n"), launch.notes.join("\n")), predicted))
}

#[test]
fn files_with_and_without_a_setting_are_equal_only_if_the_predictions_are() {
    let library = Library::load(&Sources::built_in(), None);
    let mut dropped: BTreeSet<String> = BTreeSet::new();
    let mut compared = 0;
    for (tool, name, _) in Tool::ALL {
        let (places, shardings): (&[_], &[&str]) =
            if tool.trains() { (&TRAINING, &["none", "zero1", "zero2", "zero3"]) } else { (&SERVING, &[""]) };
        for ((target, workload, set), sharding) in
            places.iter().flat_map(|place| shardings.iter().map(move |s| (place, s)))
        {
            let parts = Parts::find(&library, target, workload).unwrap();
            let mut base = overrides(set);
            let software = tool.family().unwrap_or("sglang");
            base.insert(Knob::Software, Setting::Choice(software.into()));
            if tool.trains() {
                base.insert(Knob::Sharding, Setting::Choice((*sharding).into()));
            }
            let Some((text, predicted)) = launched(tool, &parts, &base) else { continue };
            let scenario = Scenario::resolve(&parts, &base).unwrap();
            let tested = |spec: &&Spec| {
                let exempt = NO_SETTINGS.contains(&spec.knob) || APPROXIMATED.contains(&spec.knob);
                !exempt && !base.contains_key(&spec.knob) && scenario.uses(spec.knob)
            };
            for spec in KNOBS.iter().filter(tested) {
                for setting in tried(spec, &scenario.get(spec.knob)) {
                    let mut changed = base.clone();
                    changed.insert(spec.knob, setting.clone());
                    let Some((other, changed)) = launched(tool, &parts, &changed) else { continue };
                    compared += 1;
                    if other == text && (changed / predicted - 1.0).abs() > 1e-9 {
                        let on = format!("{workload} {set:?} {sharding}");
                        dropped
                            .insert(format!("{name}, {on}: {} = {setting}: {predicted:.0} -> {changed:.0}", spec.name));
                    }
                }
            }
        }
    }
    assert!(compared > 1000, "{compared}");
    let dropped = dropped.into_iter().collect::<Vec<_>>().join("\n");
    assert!(dropped.is_empty(), "settings that change only the prediction:\n{dropped}");
}

#[test]
fn stated_layers_of_the_outer_stages_are_passed_to_megatron_lm() {
    let library = Library::load(&Sources::built_in(), None);
    let parts = Parts::find(&library, "h100-sxm-64", "llama3.1-8b-train").unwrap();
    let base = ["software=megatron-core", "pp=4", "vpp=1", "first_layers=7"];
    let files = |last| launched(Tool::MegatronLm, &parts, &overrides(&[&base[..], &[last]].concat()));
    let (text, _) = files("last_layers=5").unwrap();
    assert!(text.contains("--decoder-first-pipeline-num-layers 7") && text.contains("-last-pipeline-num-layers 5"));
    assert!(!text.contains("--pipeline-model-parallel-layout"), "{text}");
    // 32 layers less 7 and 6 cannot be divided among two stages.
    assert_eq!(files("last_layers=6"), None);
}
