//! Settings for speculative decoding, experts and caches are written for the engines that support them, and rejected by
//! name for the others.

use atlas_cluster::launch::{self, Options, Tool, Wrap};
use atlas_config::library::Library;
use atlas_document::Sources;
use atlas_plan::advice::{Objective, advise};
use atlas_plan::knob::{Knob, KnobValues as _, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};

/// All files of a launch as one text, or the rejected settings.
fn launched(
    tool: Tool,
    target: &str,
    set: &[(&str, &str)],
    draft_model: Option<&str>,
) -> Result<String, Vec<(String, String)>> {
    let library = Library::load(&Sources::built_in(), None);
    let parts = Parts::find(&library, target, "deepseek-v3-serve").unwrap();
    let mut overrides = Overrides::new();
    let software = tool.family().unwrap_or("sglang");
    for (name, value) in [("software", software)].iter().chain(set) {
        let knob = Knob::named(name).unwrap();
        overrides.insert(knob, knob.parse(value, &[]).unwrap());
    }
    let scenario = Scenario::resolve(&parts, &overrides).unwrap();
    let wrap = if tool == Tool::Dynamo { Wrap::Kubernetes } else { Wrap::Plain };
    let draft_model = draft_model.map(str::to_owned);
    let options = Options { tool: Some(tool), wrap, draft_model, ..Options::default() };
    let files = launch::files(&parts, &scenario, &options)
        .map_err(|refused| refused.into_iter().map(|one| (one.setting, one.reason)).collect::<Vec<_>>())?;
    Ok(files.files.into_iter().map(|file| file.text).collect())
}

#[track_caller]
fn says(text: &str, all: &[&str]) {
    for part in all {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

#[track_caller]
fn refuses(refused: Result<String, Vec<(String, String)>>, setting: &str, word: &str) {
    let refused = refused.expect_err("it was written");
    assert!(refused.iter().any(|(name, reason)| name == setting && reason.contains(word)), "{refused:?}");
}

const EXPERTS: [(&str, &str); 7] = [
    ("tp", "1"),
    ("attention_dp", "8"),
    ("ep", "8"),
    ("redundant_experts", "32"),
    ("two_batch_overlap", "on"),
    ("moe_dispatcher", "deepep"),
    ("kv_host_gb", "100"),
];

#[test]
fn expert_and_cache_settings_use_the_flags_of_each_engine() {
    let vllm = launched(Tool::Vllm, "h200-sxm-8", &EXPERTS, None).unwrap();
    says(
        &vllm,
        &[
            "--data-parallel-size 8",
            "--enable-expert-parallel",
            "--enable-eplb",
            "\"num_redundant_experts\":32",
            "--enable-dbo",
            "--all2all-backend deepep_low_latency",
            "--kv-offloading-size 93",
        ],
    );
    let sglang = launched(Tool::Sglang, "h200-sxm-8", &EXPERTS, None).unwrap();
    says(
        &sglang,
        &[
            "--enable-dp-attention",
            "--ep-size 8",
            "--enable-eplb",
            "--ep-num-redundant-experts 32",
            "--enable-two-batch-overlap",
            "--moe-a2a-backend deepep",
            "--hicache-size 100",
        ],
    );
    let [tp, groups, ep, copies, _, _, host] = EXPERTS;
    let trtllm = launched(Tool::TensorRtLlm, "h200-sxm-8", &[tp, groups, ep, copies, host], None).unwrap();
    says(&trtllm, &["enable_attention_dp: true", "num_slots: 288", "host_cache_size: 100000000000"]);
}

#[test]
fn limits_of_clock_and_power_are_stated_in_launch_files() {
    let text = |set: &[(&str, &str)]| launched(Tool::Vllm, "h200-sxm-8", set, None).unwrap();
    says(
        &text(&[("clock_share", "0.8"), ("power_cap", "500")]),
        &[
            "# Assumes clocks limited to 80 % of their maximum; not set here (nvidia-smi --lock-gpu-clocks).\n",
            "# Assumes a power limit of 500 W per accelerator; not set here (nvidia-smi --power-limit).\n",
        ],
    );
    assert!(!text(&[]).contains("Assumes"));
}

#[test]
fn attention_dp_over_several_nodes_starts_ranks_node_by_node() {
    let groups = |groups, ep| [("tp", "1"), ("attention_dp", groups), ("ep", ep), ("dp", "1")];
    let vllm = launched(Tool::Vllm, "h200-sxm-64", &groups("16", "16"), None).unwrap();
    says(
        &vllm,
        &[
            "--data-parallel-size 16",
            "--enable-expert-parallel",
            "--data-parallel-size-local 8",
            "--data-parallel-start-rank \"$(($NODE_RANK * 8))\"",
            "--data-parallel-address",
            "[ \"$NODE_RANK\" = 0 ] || echo --headless",
        ],
    );
    assert!(!vllm.contains("--nnodes"), "{vllm}");
    let pairs = [("tp", "4"), ("attention_dp", "4"), ("ep", "16"), ("dp", "1")];
    says(&launched(Tool::Vllm, "h200-sxm-64", &pairs, None).unwrap(), &["--data-parallel-size-local 2"]);
    refuses(launched(Tool::Vllm, "h200-sxm-64", &groups("12", "1"), None), "attention_dp", "evenly");
}

#[test]
fn settings_that_an_engine_lacks_are_refused() {
    refuses(launched(Tool::TensorRtLlm, "h200-sxm-8", &EXPERTS, None), "two_batch_overlap", "no setting");
    for tool in [Tool::Vllm, Tool::Sglang, Tool::TensorRtLlm] {
        let set = |knob, value| launched(tool, "h200-sxm-8", &[(knob, value)], None);
        refuses(set("kv_remote_gb", "1000"), "kv_remote_gb", "no setting");
        refuses(set("kv_ssd_gb", "1000"), "kv_ssd_gb", "no setting");
    }
    refuses(launched(Tool::Vllm, "h200-sxm-8", &[("moe_dispatcher", "hybridep")], None), "moe_dispatcher", "training");
}

#[test]
fn every_draft_method_is_written_or_refused() {
    let drafts =
        |tool, method, model| launched(tool, "h200-sxm-8", &[("draft_tokens", "3"), ("draft_method", method)], model);
    for (tool, mtp, eagle, ngram) in [
        (Tool::Vllm, "\"method\":\"mtp\"", "\"method\":\"eagle3\"", "\"method\":\"ngram\""),
        (Tool::Sglang, "NEXTN", "EAGLE3", "NGRAM"),
        (Tool::TensorRtLlm, "MTP", "Eagle3", "NGram"),
    ] {
        says(&drafts(tool, "mtp", None).unwrap(), &[mtp]);
        says(&drafts(tool, "ngram", None).unwrap(), &[ngram]);
        says(&drafts(tool, "eagle3", Some("org/eagle")).unwrap(), &[eagle, "org/eagle"]);
        refuses(drafts(tool, "eagle3", None), "draft_method", "--draft-model");
        let silent = launched(tool, "h200-sxm-8", &[("draft_tokens", "3")], None);
        refuses(silent, "draft_method", "required by draft_tokens");
    }
    says(
        &drafts(Tool::Sglang, "mtp", None).unwrap(),
        &["--speculative-num-steps 3", "--speculative-num-draft-tokens 4"],
    );
}

#[test]
fn megatron_launch_has_context_parallelism_and_mtp_options() {
    let library = Library::load(&Sources::built_in(), None);
    let parts = Parts::find(&library, "h100-sxm-128", "llama3.1-70b-train").unwrap();
    let written = |tool: Tool, set: &[(&str, &str)]| {
        let mut overrides = Overrides::new();
        for (name, value) in
            [("software", tool.family().unwrap()), ("cp", "2"), ("pp", "4"), ("vpp", "1")].iter().chain(set)
        {
            let knob = Knob::named(name).unwrap();
            overrides.insert(knob, knob.parse(value, &[]).unwrap());
        }
        let scenario = Scenario::resolve(&parts, &overrides).unwrap();
        let options = Options { tool: Some(tool), ..Options::default() };
        let files = launch::files(&parts, &scenario, &options)
            .map_err(|refused| refused.into_iter().map(|one| (one.setting, one.reason)).collect::<Vec<_>>())?;
        Ok(files.files.into_iter().map(|file| file.text).collect::<String>())
    };
    let set = [("cp_comm_type", "a2a"), ("mtp_layers", "1"), ("tp", "4")];
    says(&written(Tool::MegatronLm, &set).unwrap(), &["--cp-comm-type a2a", "--mtp-num-layers 1"]);
    for (setting, value) in [("cp_comm_type", "all_gather"), ("mtp_layers", "1")] {
        refuses(written(Tool::DeepSpeed, &[(setting, value)]), setting, "no setting");
    }
    let narrow = [("precision", "fp8"), ("bf16_layers", "5"), ("tp", "4")];
    says(
        &written(Tool::MegatronLm, &narrow).unwrap(),
        &[
            "--fp8-recipe tensorwise",
            "--first-last-layers-bf16",
            "--num-layers-at-start-in-bf16 2",
            "--num-layers-at-end-in-bf16 3",
        ],
    );
    for tool in [Tool::MegatronBridge, Tool::Nemo, Tool::Torchtitan] {
        let reason = if tool == Tool::MegatronBridge { "0 layers in 16 bit" } else { "no setting" };
        refuses(written(tool, &narrow), "bf16_layers", reason);
    }
    refuses(written(Tool::MegatronLm, &[("pp_schedule", "dualpipe"), ("global", "512")]), "pp_schedule", "no setting");
}

#[test]
fn separate_prefill_layout_is_launched_as_dynamo_workers() {
    let set = [
        ("tp", "1"),
        ("attention_dp", "8"),
        ("ep", "8"),
        ("dp", "2"),
        ("prefill_workers", "2"),
        ("prefill_tp", "8"),
        ("prefill_attention_dp", "1"),
        ("redundant_experts", "32"),
    ];
    let text = launched(Tool::Dynamo, "h200-sxm-64", &set, None).unwrap();
    says(&text, &["disaggregation-mode", "prefill", "decode", "--enable-dp-attention", "--ep-num-redundant-experts"]);
    // Two decode replicas and two prefill workers of eight accelerators.
    says(&text, &["# 4 nodes of 8 H200"]);
    refuses(launched(Tool::Sglang, "h200-sxm-64", &set, None), "prefill_workers", "no setting");
}

/// Rejected settings with their reasons.
type Refused = Vec<(String, String)>;

/// The script and notes of a serving workload, or the rejected settings.
fn served(
    workload: &str,
    target: &str,
    set: &[(&str, &str)],
    options: Options,
) -> Result<(String, Vec<String>), Refused> {
    let library = Library::load(&Sources::built_in(), None);
    let parts = Parts::find(&library, target, workload).unwrap();
    let mut overrides = Overrides::new();
    for (name, value) in set {
        let knob = Knob::named(name).unwrap();
        overrides.insert(knob, knob.parse(value, &[]).unwrap());
    }
    let scenario = Scenario::resolve(&parts, &overrides).unwrap();
    let launch = launch::files(&parts, &scenario, &options)
        .map_err(|refused| refused.into_iter().map(|one| (one.setting, one.reason)).collect::<Vec<_>>())?;
    Ok((launch.files.into_iter().map(|file| file.text).collect(), launch.notes))
}

#[test]
fn quantized_checkpoints_are_loaded_as_they_are_and_must_have_the_planned_format() {
    for software in ["vllm", "sglang"] {
        let launch = |precision: &str, model: Option<&str>| {
            let options = Options { model: model.map(str::to_owned), ..Options::default() };
            let set = [("software", software), ("precision", precision)];
            served("llama3.1-70b-serve", "b200-8", &set, options)
        };
        for (precision, model) in [
            ("fp4", "nvidia/Llama-3.1-70B-Instruct-NVFP4"),
            ("int4", "hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4"),
            ("int8", "RedHatAI/Meta-Llama-3.1-70B-Instruct-quantized.w8a8"),
            ("fp8", "RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8"),
        ] {
            let (text, notes) = launch(precision, Some(model)).unwrap();
            assert!(text.contains(model) && !text.contains("--quantization"), "{software} {precision}\n{text}");
            assert!(!notes.iter().any(|note| note.contains("must be stored")), "{notes:?}");
        }
        // The workload plans fp8.
        let silent = || {
            served(
                "llama3.1-70b-serve",
                "b200-8",
                &[("software", software)],
                Options { model: Some("nvidia/Llama-3.1-70B-Instruct-NVFP4".to_owned()), ..Options::default() },
            )
        };
        refuses(silent().map(|(text, _)| text), "precision", "set precision=fp4");
        let (_, notes) = launch("int4", Some("/models/llama-70b")).unwrap();
        assert!(notes.iter().any(|note| note.contains("/models/llama-70b must be stored in int4")), "{notes:?}");
        refuses(launch("int4", None).map(|(text, _)| text), "precision", "name them with --model-path");
        let (text, _) = launch("fp8", Some("/models/llama-70b")).unwrap();
        says(&text, &["--quantization fp8"]);
    }
    let set = [("software", "vllm"), ("precision", "w4a8")];
    let options = Options { model: Some("org/Llama-70B-W4A8".to_owned()), ..Options::default() };
    served("llama3.1-70b-serve", "b200-8", &set, options).unwrap();
}

#[test]
fn encoders_and_images_are_served_by_vllm_and_sent_by_the_client() {
    let launch =
        |workload: &str, software| served(workload, "h100-sxm-8", &[("software", software)], Options::default());
    let (text, notes) = launch("bge-large-embed", "vllm").unwrap();
    assert!(notes.iter().any(|note| note.contains("that of an offline batch without an HTTP server")), "{notes:?}");
    says(
        &text,
        &["--max-model-len 512", "--backend openai-embeddings", "--endpoint /v1/embeddings", "--num-prompts 2048"],
    );
    let (text, _) = launch("bge-reranker-score", "vllm").unwrap();
    says(&text, &["--backend vllm-rerank", "--dataset-name random-rerank", "Requires vLLM 0.11.1 or later"]);
    for software in ["vllm", "sglang"] {
        let (text, _) = launch("qwen2.5-vl-7b-serve", software).unwrap();
        // 240 tokens of text, 784 of the image, 128 of the answer.
        let length = if software == "vllm" { "--max-model-len 1152" } else { "--context-length 1152" };
        let image = "--random-mm-bucket-config '{(784, 784, 1): 1.0}'";
        says(&text, &[length, "--dataset-name random-mm", "--random-mm-base-items-per-request 1", image]);
    }
    refuses(launch("bge-large-embed", "sglang").map(|(text, _)| text), "model", "launch files for SGLang support only");
}

#[test]
fn offline_batches_of_decoders_have_a_command_without_a_server() {
    let notes = |workload: &str, software: &str, set: &[(&str, &str)]| {
        let set = [&[("software", software)], set].concat();
        served(workload, "h100-sxm-8", &set, Options::default()).unwrap().1.join("\n")
    };
    let prefill = [("load", "prefill-only"), ("prompt", "2000"), ("generate", "0"), ("tp", "4"), ("concurrency", "64")];
    let vllm = notes("llama3.1-70b-serve", "vllm", &prefill);
    says(
        &vllm,
        &["--input-len 2000 --output-len 1 --num-prompts 32`", "the batch of one of 2 replicas without a server"],
    );
    assert!(!notes("llama3.1-70b-serve", "sglang", &prefill).contains("vllm bench throughput"));
    // vLLM runs encoders only as a server.
    assert!(!notes("bge-large-embed", "vllm", &[]).contains("vllm bench throughput"));
}

#[test]
fn the_client_sends_the_planned_load_or_states_the_difference() {
    let launch = |set: &[(&str, &str)]| {
        let (text, notes) = served("llama3.1-70b-serve", "h200-sxm-8", set, Options::default()).unwrap();
        let load = text.split("load=(").nth(1).unwrap().split(')').next().unwrap().to_owned();
        (load, text, notes.join("\n"))
    };
    let lines = |load: &str, wanted: &[&str], absent: &[&str]| {
        says(load, wanted);
        assert!(absent.iter().all(|flag| !load.contains(flag)), "{load}");
    };
    let lengths = [("prompt", "1000"), ("generate", "200")];
    let with = |more: &[(&'static str, &'static str)]| [&lengths[..], more].concat();
    let (load, text, notes) = launch(&with(&[("prefix_hit", "0.5")]));
    lines(&load, &["--random-input-len 500", "--random-prefix-len 500"], &[]);
    assert!(text.contains("--enable-prefix-caching") && notes.is_empty(), "{notes}");
    let chat = [("conversations", "500"), ("turns", "8"), ("shared_prefix", "300")];
    let (load, _, notes) = launch(&with(&chat));
    lines(
        &load,
        &["--random-input-len 700", "--random-prefix-len 300", "# planned load; the load script sends single requests"],
        &[],
    );
    assert!(notes.contains("fewer tokens are cached than planned"), "{notes}");
    let open = [("load", "open"), ("request_rate", "20"), ("concurrency", "128")];
    lines(&launch(&with(&open)).0, &["--request-rate 20", "--max-concurrency 128"], &[]);
    lines(&launch(&with(&[("request_rate", "20")])).0, &["--request-rate 20"], &["--max-concurrency"]);
    let gamma = [("request_rate", "20"), ("arrivals", "gamma"), ("arrival_cv", "2")];
    lines(&launch(&with(&gamma)).0, &["--request-rate 20", "--burstiness 0.25"], &[]);
    let burst = [("load", "burst"), ("run_requests", "3000")];
    lines(&launch(&with(&burst)).0, &["--num-prompts 3000", "--request-rate inf"], &["--max-concurrency"]);
    let prefill = [("load", "prefill-only"), ("concurrency", "32")];
    lines(&launch(&with(&prefill)).0, &["--num-prompts 32", "--random-output-len 1\n"], &["--max-concurrency"]);
    let (load, _, notes) = launch(&with(&[("prompt_cv", "0.5")]));
    lines(&load, &["--random-input-len 1000"], &[]);
    assert!(notes.contains("equal length"), "{notes}");
    // The limit of the output is not its mean.
    let (load, text, _) = launch(&with(&[("generate_max", "4000")]));
    lines(&load, &["--random-output-len 200"], &[]);
    says(&text, &["--max-model-len 5000"]);
}

#[test]
fn advice_on_speculative_decoding_can_be_launched() {
    let library = Library::load(&Sources::built_in(), None);
    for (target, workload, method) in [
        ("h200-sxm-8", "deepseek-v3-serve", "mtp"),
        ("h100-sxm-8", "llama3.1-70b-serve", "eagle3"),
        ("h100-sxm-8", "llama3.1-8b-serve", "eagle3"),
    ] {
        let parts = Parts::find(&library, target, workload).unwrap();
        let mut set = Overrides::from([(Knob::Concurrency, Setting::Number(8.0))]);
        let scenario = Scenario::resolve(&parts, &set).unwrap();
        let estimate = atlas_plan::engine::estimate(&scenario);
        let advice = advise(&scenario, &parts, &estimate, Objective::default());
        let drafts = advice.iter().find(|one| one.changes.iter().any(|(knob, _)| *knob == Knob::DraftTokens));
        set.extend(drafts.expect(workload).changes.iter().cloned());
        assert_eq!(set[&Knob::DraftMethod], Setting::Choice(method.into()), "{workload}");
        let scenario = Scenario::resolve(&parts, &set).unwrap();
        let options = Options { draft_model: Some("org/drafts".to_owned()), ..Options::default() };
        launch::files(&parts, &scenario, &options).unwrap();
    }
}

#[test]
fn megatron_recomputes_the_modules_that_the_estimate_assumes() {
    let launch = |software: &str, set: &[(&str, &str)]| {
        let all = [&[("software", software)], set].concat();
        served("llama3.1-70b-train", "h100-sxm-128", &all, Options::default())
            .map(|(text, notes)| (text, notes.join("\n")))
    };
    let tight = [("microbatch", "2")];
    let (text, notes) = launch("megatron-core", &tight).unwrap();
    says(&text, &["--recompute-granularity selective", "--recompute-modules layernorm\n  mlp\n"]);
    says(&notes, &["recomputes the listed modules in every layer"]);
    let (text, _) = launch("megatron-bridge", &tight).unwrap();
    says(&text, &["model.recompute_modules='[layernorm,mlp]'"]);
    let (text, _) = launch("primus", &tight).unwrap();
    says(&text, &["recompute_granularity: selective", "recompute_modules:\n        - layernorm\n        - mlp\n"]);
    let (text, notes) = launch("nemo", &tight).unwrap();
    says(&text, &["activations_checkpoint_granularity: full", "activations_checkpoint_method: block"]);
    says(&notes, &["whole layers instead of norms"]);
    refuses(launch("megatron-core@0.11", &tight).map(|(text, _)| text), "--recompute-modules", "since 0.12.0");
    // Stated, and not needed: the norms are enough.
    let (text, notes) = launch("megatron-core", &[("recompute", "selective"), ("tp", "8"), ("pp", "8")]).unwrap();
    assert!(text.contains("--recompute-modules layernorm\n") && !text.contains("  mlp\n"), "{text}");
    says(&notes, &["no module that recomputes only the activation functions"]);
    // Layers in which the MLP is not recomputed: more than the planned share.
    let (text, _) = launch("megatron-core", &[("microbatch", "4")]).unwrap();
    says(&text, &["--recompute-granularity full", "--recompute-method block"]);
}

#[test]
fn older_releases_get_their_own_command_or_are_refused() {
    let launch = |workload: &str, software: &str, set: &[(&str, &str)]| {
        let all = [&[("software", software)], set].concat();
        let options =
            Options { model: (!software.starts_with("vllm")).then(|| "a.gguf".to_owned()), ..Options::default() };
        served(workload, "h100-sxm-8", &all, options).map(|(text, _)| text)
    };
    let plain = [("precision", "bf16")];
    let old = launch("llama3.1-8b-serve", "vllm@0.4.2", &plain).unwrap();
    says(
        &old,
        &["python3 -m vllm.entrypoints.openai.api_server", "--model meta-llama/Llama-3.1-8B", "Requires vLLM 0.8.0"],
    );
    assert!(!old.contains("vllm serve") && !old.contains("--data-parallel-size"), "{old}");
    // Several servers on their own devices instead of several replicas in one server.
    assert_eq!(old.matches("CUDA_VISIBLE_DEVICES=").count(), 8, "{old}");
    let new = launch("llama3.1-8b-serve", "vllm@0.8.5", &plain).unwrap();
    says(&new, &["vllm serve", "--data-parallel-size 8"]);
    let fp8 = [("precision", "fp8")];
    refuses(launch("llama3.1-8b-serve", "vllm@0.2.0", &fp8), "plan", "no kernels for fp8");
    let drafts = [("draft_tokens", "3"), ("draft_method", "ngram"), ("precision", "bf16")];
    refuses(launch("llama3.1-8b-serve", "vllm@0.6.3", &drafts), "--speculative-config", "since 0.8.2");
    let many = [("tp", "1"), ("attention_dp", "8"), ("ep", "8")];
    refuses(launch("deepseek-v3-serve", "vllm@0.7.3", &many), "--data-parallel-size", "since 0.8.3");
    refuses(launch("llama3.1-8b-serve", "llama.cpp@b1283", &plain), "software", "require b4748");
    assert!(!launch("llama3.1-8b-serve", "llama.cpp@b4748", &plain).unwrap().contains("--flash-attn"));
}

#[test]
fn flags_of_several_nodes_are_checked_against_the_release() {
    let set = |software| [("software", software), ("tp", "16"), ("dp", "1")];
    let launch = |software| served("llama3.1-405b-serve", "h100-sxm-64", &set(software), Options::default());
    refuses(launch("vllm@0.10.2").map(|(text, _)| text), "--nnodes", "since 0.11.1");
    says(&launch("vllm@0.11.1").unwrap().0, &["--nnodes"]);
}

#[test]
fn only_the_first_node_of_a_vllm_server_over_several_nodes_serves() {
    let set = [("tp", "16"), ("attention_dp", "1"), ("ep", "16"), ("dp", "1")];
    let vllm = launched(Tool::Vllm, "h200-sxm-64", &set, None).unwrap();
    says(&vllm, &["--nnodes", "[ \"$NODE_RANK\" = 0 ] || echo --headless"]);
}

#[test]
fn accelerators_that_the_software_does_not_support_are_refused() {
    for (tool, target) in [(Tool::Vllm, "trn2-16"), (Tool::Sglang, "trn2-16"), (Tool::TensorRtLlm, "mi300x-8")] {
        refuses(launched(tool, target, &[], None), "target", "does not support");
    }
}

#[test]
fn hosts_have_whole_accelerators_and_all_their_logical_cores() {
    let set = [("software", "pytorch-fsdp"), ("recompute", "full")];
    for (target, hosts) in [
        ("trn2-16", "\n# 16 trn2 96GB (64 devices)\n"),
        ("mi250x-4", "\n# 4 MI250X 128GB (8 devices)\n"),
        ("gb200-nvl72", "\n# 18 nodes of 4 GB200"),
    ] {
        let options = Options { tool: Some(Tool::Accelerate), ..Options::default() };
        let (text, _) = served("llama3.1-8b-train", target, &set, options).unwrap();
        says(&text, &[hosts]);
    }
    let default = served("llama3.1-8b-serve", "inf2-12", &[], Options::default()).map(|(text, _)| text);
    refuses(default, "software", "no launch files for vllm-neuron; no other tool supports AWS accelerators");
}

#[test]
fn experts_of_sglang_are_distributed_over_tensor_ranks() {
    refuses(launched(Tool::Sglang, "h200-sxm-8", &[("tp", "2"), ("attention_dp", "1")], None), "ep", "2 ranks");
}

#[test]
fn shares_of_memory_become_shares_of_what_the_weights_leave_free_for_tensorrt_llm() {
    let [tp, groups, ep, ..] = EXPERTS;
    let fraction = |share| {
        let set = [tp, groups, ep, ("gpu_memory_utilization", share)];
        let text = launched(Tool::TensorRtLlm, "h200-sxm-8", &set, None).unwrap();
        let value = text.split_once("free_gpu_memory_fraction: ").unwrap().1.split_whitespace().next().unwrap();
        value.parse::<f64>().unwrap()
    };
    let (low, high) = (fraction("0.85"), fraction("0.95"));
    assert!(low < 0.85 && low < high && high < 0.95, "{low} {high}");
}

#[test]
fn meshes_of_maxtext_span_the_hosts_of_a_slice_of_tpus() {
    let mesh = |target: &str, software: &str| {
        let set = [("tp", "2"), ("pp", "1"), ("sharding", "zero3"), ("software", software)];
        let options = Options { tool: Some(Tool::MaxText), ..Options::default() };
        served("llama3.1-8b-train", target, &set, options).unwrap().0
    };
    let axes = ["ici_fsdp_parallelism=64", "ici_tensor_parallelism=2", "dcn_fsdp_parallelism=1\n", "within a slice"];
    says(&mesh("tpu-v5p-128", "maxtext"), &axes);
    let axes = ["ici_fsdp_parallelism=4", "ici_tensor_parallelism=2", "dcn_fsdp_parallelism=8\n", "within a node"];
    says(&mesh("h100-sxm-64", "maxtext"), &axes);
}

#[test]
fn older_releases_of_sglang_select_deepep_by_a_switch() {
    let script = |software: &str| {
        let set =
            [("tp", "1"), ("attention_dp", "8"), ("ep", "8"), ("moe_dispatcher", "deepep"), ("software", software)];
        launched(Tool::Sglang, "h200-sxm-8", &set, None).unwrap()
    };
    let (old, new) = (script("sglang@0.4.9"), script("sglang@0.5.3"));
    says(&old, &["--enable-deepep-moe"]);
    says(&new, &["--moe-a2a-backend deepep"]);
    assert!(!old.contains("--moe-a2a-backend") && !new.contains("--enable-deepep-moe"), "{old}{new}");
}

#[test]
fn clients_of_a_burst_send_enough_requests_to_keep_all_replicas_full() {
    let set = [("load", "burst"), ("software", "vllm"), ("tp", "1"), ("max_num_seqs", "256")];
    let (text, _) = served("llama3.1-8b-serve", "h100-sxm-8", &set, Options::default()).unwrap();
    says(&text, &["--num-prompts 20480", "--request-rate inf"]);
}
