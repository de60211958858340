//! Creates launch files for every shipped scenario, imports them, and compares the scenarios.

use std::collections::{BTreeMap, BTreeSet};

use atlas_cluster::documents::{UserInput, documents};
use atlas_cluster::import::{SourceFile, import};
use atlas_cluster::launch::{self, Launch, Options, Tool, Wrap};
use atlas_config::library::Library;
use atlas_config::{Mode, Workload};
use atlas_core::plan::{Format, LoadKind, Recompute};
use atlas_document::{Node, Sources};
use atlas_plan::engine::answer::training::closed;
use atlas_plan::knob::{Knob, KnobValues as _, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};

/// Targets for which a workload is intended. Workloads without targets run on a single node.
fn targets(workload: &Workload) -> Vec<String> {
    let named = workload.document.get("best_for").and_then(Node::items);
    let own: Vec<String> = named.into_iter().flatten().filter_map(|node| node.text().map(str::to_owned)).collect();
    if own.is_empty() { vec!["h100-sxm-8".to_owned()] } else { own }
}

/// Properties that launch files can express, as text by name.
fn expressed(parts: &Parts, scenario: &Scenario) -> BTreeMap<&'static str, String> {
    let mut out = BTreeMap::new();
    let phase = &scenario.base;
    let mut put = |name, value: String| drop(out.insert(name, value));
    // Models with the same architecture are equal in launch files that state only the widths.
    put("model", format!("{:?}", scenario.model.unwrap()));
    put("accelerator", parts.accelerator.as_ref().unwrap().id.clone());
    for knob in [Knob::Tp, Knob::Pp, Knob::Dp, Knob::Ep, Knob::Prompt, Knob::Precision] {
        put(knob.name(), scenario.get(knob).to_string());
    }
    put("num_nodes", scenario.num_nodes.to_string());
    put("devices", (phase.shape.tp * phase.shape.pp * phase.shape.dp).to_string());
    match scenario.mode() {
        Mode::Training => {
            let (.., estimate) = closed(scenario, phase).unwrap();
            let shares = estimate.recompute;
            let recompute = match scenario.recompute(phase) {
                // Tools recompute parts of every layer, or a number of whole layers.
                Recompute::Auto | Recompute::Selective if shares.full_share >= 1.0 => Recompute::Full,
                Recompute::Auto | Recompute::Selective if shares.full_share > 0.0 => Recompute::None,
                Recompute::Auto if shares.selective_share > 0.0 || shares.mlp_share > 0.0 => Recompute::Selective,
                Recompute::Auto => Recompute::None,
                stated => stated,
            };
            put("recompute", recompute.name().to_owned());
            for knob in [
                Knob::Vpp,
                Knob::Cp,
                Knob::Etp,
                Knob::Sp,
                Knob::Sharding,
                Knob::Shard,
                Knob::Microbatch,
                Knob::Global,
                Knob::Optimizer,
                Knob::CpuOffload,
            ] {
                put(knob.name(), scenario.get(knob).to_string());
            }
        }
        Mode::Inference => {
            for knob in [Knob::Generate, Knob::Concurrency, Knob::AttentionDp, Knob::KvPrecision] {
                put(knob.name(), scenario.get(knob).to_string());
            }
        }
    }
    out
}

/// Imports the launch files as a scenario.
fn read_back(library: &Library, launch: &Launch) -> Result<(Parts, Scenario), String> {
    let files: Vec<SourceFile> =
        launch.files.iter().map(|file| SourceFile { name: file.name.clone(), text: file.text.clone() }).collect();
    let environment = BTreeMap::from([("HEAD_NODE".to_owned(), "node1".to_owned())]);
    let job = import(&files, &environment);
    let found = documents(&job, library, &UserInput::default())
        .map_err(|gaps| format!("{gaps:?} of {:#}", job.to_json()["fields"]))?;
    found.scenario(library, &Overrides::new()).map_err(|error| format!("{error}\n{}{}", found.target, found.workload))
}

/// Launches all shipped scenarios that a tool supports. Returns their number and the differences after the import.
fn round(tool: Tool, wrap: Wrap) -> (usize, BTreeMap<String, BTreeSet<String>>) {
    let library = Library::load(&Sources::built_in(), None);
    let mut differences: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut launched = 0;
    for workload in library.workloads() {
        for target in targets(workload) {
            let parts = Parts::find(&library, &target, &workload.name).unwrap();
            let Ok(mut scenario) = Scenario::resolve(&parts, &Overrides::new()) else { continue };
            if parts.model.is_none() || (scenario.mode() == Mode::Training) != tool.trains() {
                continue;
            }
            // As on the command line, another tool implies other software.
            if let Some(family) = tool.family().filter(|_| Tool::default_for(&scenario) != Some(tool)) {
                let software = Overrides::from([(Knob::Software, Setting::Choice(family.into()))]);
                scenario = Scenario::resolve(&parts, &software).unwrap();
            }
            let options = Options {
                tool: Some(tool),
                wrap,
                model: (tool == Tool::LlamaCpp).then(|| format!("{}-F16.gguf", parts.model.as_ref().unwrap().id)),
                ..Options::default()
            };
            let launch = match launch::files(&parts, &scenario, &options) {
                Ok(launch) => launch,
                Err(refused) => {
                    println!("{} on {target}: {refused:?}", workload.name);
                    continue;
                }
            };
            launched += 1;
            let case = format!("{} on {target}", workload.name);
            match read_back(&library, &launch) {
                Err(problem) => drop(differences.entry(problem).or_default().insert(case)),
                Ok((parts_back, back)) => {
                    let (requested, got) = (expressed(&parts, &scenario), expressed(&parts_back, &back));
                    for (name, value) in &requested {
                        let other = &got[name];
                        // A layout may leave accelerators of the target idle; the files do not mention them.
                        let idle = *name == "num_nodes"
                            && scenario.accelerators() > back.accelerators()
                            && requested["devices"] == got["devices"];
                        // A client sends the requests of an offline batch at once.
                        let sent =
                            *name == "concurrency" && scenario.base.plan.serving.load == Some(LoadKind::PrefillOnly);
                        // Selective recomputation of NeMo frees nothing with fused attention, and delayed scaling of fp8
                        // supports only that of whole MLPs.
                        let lacks = tool == Tool::Nemo || scenario.format(&scenario.base) == Format::Fp8;
                        let nothing = lacks && *name == "recompute" && value == "selective";
                        // llama.cpp's server states devices, but not how they are divided.
                        let unnamed = tool == Tool::LlamaCpp && matches!(*name, "tp" | "dp" | "devices");
                        if value != other && !idle && !unnamed && !nothing && !sent {
                            let text = format!("{name}: {value} became {other}");
                            differences.entry(text).or_default().insert(case.clone());
                        }
                    }
                }
            }
        }
    }
    (launched, differences)
}

#[track_caller]
fn comes_back(tool: Tool, wrap: Wrap, least: usize) {
    let (launched, differences) = round(tool, wrap);
    let all: String = differences.iter().map(|(what, where_)| format!("{what}\n    {where_:?}\n")).collect();
    assert!(differences.is_empty(), "{} of {launched} scenarios:\n{all}", tool.name());
    assert!(launched >= least, "{}: only {launched} scenarios can be launched", tool.name());
    println!("{} {wrap:?}: {launched} scenarios", tool.name());
}

macro_rules! tools {
    ($($test:ident: $tool:ident, $wrap:ident, $least:literal;)*) => {
        $(
            #[test]
            fn $test() {
                comes_back(Tool::$tool, Wrap::$wrap, $least);
            }
        )*
    };
}

tools! {
    megatron_lm_scripts_say_what_was_planned: MegatronLm, Plain, 8;
    megatron_lm_batch_scripts_say_what_was_planned: MegatronLm, Slurm, 8;
    megatron_lm_manifests_say_what_was_planned: MegatronLm, Kubernetes, 8;
    megatron_bridge_scripts_say_what_was_planned: MegatronBridge, Plain, 4;
    megatron_bridge_batch_scripts_say_what_was_planned: MegatronBridge, Slurm, 4;
    nemo_scripts_say_what_was_planned: Nemo, Plain, 3;
    nemo_batch_scripts_say_what_was_planned: Nemo, Slurm, 3;
    primus_scripts_say_what_was_planned: Primus, Plain, 3;
    primus_batch_scripts_say_what_was_planned: Primus, Slurm, 3;
    torchtitan_scripts_say_what_was_planned: Torchtitan, Plain, 1;
    torchtitan_batch_scripts_say_what_was_planned: Torchtitan, Slurm, 1;
    deepspeed_scripts_say_what_was_planned: DeepSpeed, Plain, 2;
    deepspeed_batch_scripts_say_what_was_planned: DeepSpeed, Slurm, 2;
    accelerate_scripts_say_what_was_planned: Accelerate, Plain, 2;
    accelerate_batch_scripts_say_what_was_planned: Accelerate, Slurm, 2;
    maxtext_scripts_say_what_was_planned: MaxText, Plain, 1;
    maxtext_batch_scripts_say_what_was_planned: MaxText, Slurm, 1;
    vllm_scripts_say_what_was_planned: Vllm, Plain, 5;
    vllm_batch_scripts_say_what_was_planned: Vllm, Slurm, 5;
    vllm_manifests_say_what_was_planned: Vllm, Kubernetes, 5;
    sglang_scripts_say_what_was_planned: Sglang, Plain, 5;
    sglang_batch_scripts_say_what_was_planned: Sglang, Slurm, 5;
    sglang_manifests_say_what_was_planned: Sglang, Kubernetes, 5;
    tensorrt_llm_scripts_say_what_was_planned: TensorRtLlm, Plain, 1;
    tensorrt_llm_batch_scripts_say_what_was_planned: TensorRtLlm, Slurm, 1;
    tensorrt_llm_manifests_say_what_was_planned: TensorRtLlm, Kubernetes, 1;
    llama_cpp_scripts_say_what_was_planned: LlamaCpp, Plain, 1;
}

/// Launches a scenario with these knobs and imports the files. Returns the knobs whose values differ.
fn lost(tool: Tool, target: &str, workload: &str, set: &[(&str, &str)]) -> Vec<String> {
    let library = Library::load(&Sources::built_in(), None);
    let parts = Parts::find(&library, target, workload).unwrap();
    let mut overrides = Overrides::from([(Knob::Software, Setting::Choice(tool.family().unwrap().into()))]);
    for (name, value) in set {
        let knob = Knob::named(name).unwrap();
        overrides.insert(knob, knob.parse(value, &[]).unwrap());
    }
    let scenario = Scenario::resolve(&parts, &overrides).unwrap();
    let options = Options {
        tool: Some(tool),
        draft_model: Some("meta-llama/Llama-3.2-1B".to_owned()),
        model: (tool == Tool::TensorRtLlm).then(|| format!("org/{}", parts.model.as_ref().unwrap().id)),
        ..Options::default()
    };
    let launch = launch::files(&parts, &scenario, &options).unwrap();
    let (_, back) = read_back(&library, &launch).unwrap();
    // A setting that the scripts omit must be the default that the import assumes.
    let omitted = (tool.trains() && scenario.base.plan.etp.is_none()).then_some("etp");
    let differ = set.iter().map(|(name, _)| *name).chain(omitted).filter_map(|name| {
        let knob = Knob::named(name).unwrap();
        let (requested, got) = (scenario.get(knob), back.get(knob));
        (requested != got).then(|| format!("{}: {name}: {requested} became {got}", tool.name()))
    });
    differ.collect()
}

#[test]
fn stated_knobs_come_back_from_launch_scripts() {
    let moe = [("attention_dp", "8"), ("tp", "1"), ("ep", "8"), ("redundant_experts", "32"), ("kv_host_gb", "100")];
    let drafts = |method, tokens| [("draft_method", method), ("draft_tokens", tokens)];
    let scheduler = [
        ("max_num_seqs", "128"),
        ("max_num_batched_tokens", "4096"),
        ("gpu_memory_utilization", "0.85"),
        ("overlap_scheduling", "off"),
        ("cuda_graphs", "off"),
    ];
    let mut all = Vec::new();
    for tool in [Tool::Vllm, Tool::Sglang, Tool::TensorRtLlm] {
        let overlap = [("two_batch_overlap", "on"), ("moe_dispatcher", "deepep")];
        let own: &[(&str, &str)] = if tool == Tool::TensorRtLlm { &[] } else { &overlap };
        all.extend(lost(tool, "h200-sxm-8", "deepseek-v3-serve", &[&moe[..], own].concat()));
        for method in ["mtp", "eagle3", "draft-model", "ngram"] {
            all.extend(lost(tool, "h200-sxm-8", "deepseek-v3-serve", &drafts(method, "3")));
        }
        all.extend(lost(tool, "h100-sxm-8", "llama3.1-70b-serve", &scheduler));
    }
    all.extend(lost(Tool::Sglang, "h100-sxm-8", "llama3.1-70b-serve", &[("recv_interval", "4")]));
    let more = [("reserve_output", "on"), ("beams", "4")];
    all.extend(lost(Tool::TensorRtLlm, "h100-sxm-8", "llama3.1-70b-serve", &more));
    for set in [
        &[("prefix_hit", "0.5")][..],
        &[("load", "open"), ("request_rate", "20"), ("concurrency", "128")],
        &[("request_rate", "20"), ("arrivals", "gamma"), ("arrival_cv", "2")],
        &[("load", "burst"), ("run_requests", "3000")],
        &[("images", "2"), ("image_size", "784")],
    ] {
        let workload =
            if set.iter().any(|(name, _)| *name == "images") { "qwen2.5-vl-7b-serve" } else { "llama3.1-8b-serve" };
        all.extend(lost(Tool::Vllm, "h100-sxm-8", workload, set));
    }
    let encoder = [("prompt", "512"), ("generate", "0"), ("tp", "1")];
    for load in [&[("load", "closed"), ("concurrency", "64")], &[("load", "burst"), ("run_requests", "2048")]] {
        all.extend(lost(Tool::Vllm, "h100-sxm-8", "bge-large-embed", &[&encoder[..], load].concat()));
    }
    let training = [
        ("cp", "2"),
        ("pp", "4"),
        ("vpp", "1"),
        ("tp", "4"),
        ("cp_comm_type", "a2a"),
        ("mtp_layers", "1"),
        ("optimizer", "adam-16bit"),
        ("gradient_format", "bf16"),
        ("attention_kernel", "flash2"),
        ("graph_capture", "layer"),
        ("sharding", "zero1"),
        ("shard", "2"),
        ("overlap_data", "on"),
        ("overlap_tensor", "on"),
    ];
    all.extend(lost(Tool::MegatronLm, "h100-sxm-128", "llama3.1-70b-train", &training));
    for layers in ["2", "5"] {
        let narrow = [("precision", "fp8"), ("bf16_layers", layers), ("pp", "4"), ("vpp", "1"), ("tp", "4")];
        all.extend(lost(Tool::MegatronLm, "h100-sxm-128", "llama3.1-70b-train", &narrow));
    }
    for layers in ["2", "4"] {
        let narrow = [("precision", "fp8"), ("bf16_layers", layers), ("pp", "4"), ("vpp", "1"), ("tp", "4")];
        all.extend(lost(Tool::MegatronBridge, "h100-sxm-128", "llama3.1-70b-train", &narrow));
    }
    let pod = [("tp", "2"), ("pp", "1"), ("sharding", "zero3")];
    for target in ["tpu-v5p-128", "tpu-v6e-256"] {
        all.extend(lost(Tool::MaxText, target, "llama3.1-8b-train", &pod));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn experts_split_over_tensor_parallel_ranks_come_back_from_launch_scripts() {
    let mixtral: (_, _, &[_]) =
        ("h100-sxm-64", "mixtral-8x7b-train", &[("pp", "4"), ("vpp", "1"), ("tp", "4"), ("ep", "2"), ("dp", "4")]);
    let deepseek: (_, _, &[_]) = ("gb200-nvl72-4", "deepseek-v3-train", &[("tp", "4"), ("ep", "16"), ("dp", "16")]);
    let mut all = Vec::new();
    for (tool, (target, workload, layout)) in [
        (Tool::MegatronLm, mixtral),
        (Tool::MegatronLm, deepseek),
        (Tool::MegatronBridge, deepseek),
        (Tool::Primus, mixtral),
    ] {
        for etp in ["1", "4"] {
            all.extend(lost(tool, target, workload, &[layout, &[("etp", etp)]].concat()));
        }
        // The default of the software.
        all.extend(lost(tool, target, workload, layout));
    }
    let titan = [
        ("pp", "1"),
        ("vpp", "1"),
        ("sharding", "zero3"),
        ("tp", "4"),
        ("ep", "32"),
        ("dp", "64"),
        ("precision", "bf16"),
    ];
    for etp in ["1", "4"] {
        all.extend(lost(
            Tool::Torchtitan,
            "gb200-nvl72-4",
            "deepseek-v3-train",
            &[&titan[..], &[("etp", etp)]].concat(),
        ));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}
