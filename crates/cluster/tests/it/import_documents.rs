//! The documents of an import contain everything that was read and everything that the user gives, or say what they
//! lack.

use atlas_cluster::documents::{Documents, UserInput, documents};
use atlas_config::library::Library;
use atlas_core::field::{FileLocation, ValueType};
use atlas_document::Sources;
use atlas_plan::knob::{Knob, KnobValues as _, Overrides, Setting};
use atlas_plan::scenario::Scenario;

use crate::common::read;

fn given(set: &[(&str, &str)]) -> UserInput {
    let mut overrides = Overrides::new();
    for (name, value) in set {
        let knob = Knob::named(name).unwrap();
        overrides.insert(knob, knob.parse(value, &[]).unwrap());
    }
    UserInput { target: Some("h200-sxm-8".to_owned()), overrides, ..UserInput::default() }
}

fn planned(text: &str, set: &[(&str, &str)]) -> (Documents, Scenario) {
    let library = Library::load(&Sources::built_in(), None);
    let name = if text.starts_with("base_model:") { "axolotl.yml" } else { "run.sh" };
    let found = documents(&read(name, text), &library, &given(set)).unwrap();
    let (_, scenario) = found.scenario(&library, &Overrides::new()).unwrap();
    (found, scenario)
}

#[track_caller]
fn expect(text: &str, wanted: &[(&str, &str)]) -> Documents {
    let (found, scenario) = planned(text, &[("prompt", "2000"), ("generate", "500"), ("concurrency", "64")]);
    for (name, value) in wanted {
        let knob = Knob::named(name).unwrap();
        assert_eq!(scenario.get(knob).to_string(), *value, "{name} of\n{}{:?}", found.workload, found.notes);
    }
    found
}

const SERVER: &str = "vllm serve meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size 4";
const TRAINER: &str = "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 32 --hidden-size 4096 \
                       --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8 \
                       --vocab-size 128256 --seq-length 8192 --tensor-model-parallel-size 2 \
                       --recompute-granularity full --micro-batch-size 1 --global-batch-size 128 --bf16";

/// Another value of a knob than that of the scenario.
fn other(scenario: &Scenario, knob: Knob) -> Option<Setting> {
    Some(match (knob.spec().kind, scenario.get(knob)) {
        (ValueType::Toggle, Setting::Toggle(on)) => Setting::Toggle(!on),
        (ValueType::Choice(words), Setting::Choice(now)) => {
            Setting::Choice((*words.iter().find(|word| **word != &*now)?).into())
        }
        (ValueType::Number { bounds, .. }, Setting::Number(now)) => {
            let candidates = if bounds.whole { [2.0, 4.0, 3.0] } else { [0.5, 0.25, 2.0] };
            Setting::Number(candidates.into_iter().find(|value| *value != now && bounds.contains(*value))?)
        }
        _ => return None,
    })
}

#[test]
fn every_given_knob_is_written_to_the_files() {
    let library = Library::load(&Sources::built_in(), None);
    let (mut lost, mut written) = (Vec::new(), 0);
    for (text, base) in [(SERVER, &[("prompt", "2000"), ("generate", "500")][..]), (TRAINER, &[])] {
        let (_, start) = planned(text, base);
        for knob in Knob::all() {
            let spec = knob.spec();
            if spec.location == FileLocation::Nowhere || spec.mode.is_some_and(|mode| mode != start.mode()) {
                continue;
            }
            let Some(setting) = other(&start, knob) else { continue };
            let mut input = given(base);
            input.overrides.insert(knob, setting.clone());
            let found = documents(&read("run.sh", text), &library, &input).unwrap();
            let overrides = Overrides::from([(knob, setting.clone())]);
            let wanted = documents(&read("run.sh", text), &library, &given(base)).unwrap();
            // Some combinations are refused, also when they are given on the command line.
            let Ok((_, wanted)) = wanted.scenario(&library, &overrides) else { continue };
            match found.scenario(&library, &Overrides::new()) {
                Ok((_, back)) if back.get(knob) == wanted.get(knob) => written += 1,
                Ok((_, back)) => lost.push(format!("{}: {setting} became {}", knob.name(), back.get(knob))),
                Err(error) => lost.push(format!("{}: {error}\n{}{}", knob.name(), found.workload, found.target)),
            }
        }
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
    assert!(written > 150, "{written}");
}

#[test]
fn settings_that_files_cannot_contain_are_named() {
    let (found, _) = planned(SERVER, &[("prompt", "9"), ("generate", "9"), ("engine", "event"), ("recompute", "full")]);
    let notes = found.notes.join("\n");
    assert!(notes.contains("engine is not a setting of files"), "{notes}");
    assert!(notes.contains("recompute has no effect in inference"), "{notes}");
}

#[test]
fn speculative_decoding_of_each_engine_is_planned() {
    let drafts = |method, tokens| [("draft_method", method), ("draft_tokens", tokens)];
    for (method, planned) in [("deepseek_mtp", "mtp"), ("eagle3", "eagle3"), ("ngram", "ngram")] {
        let config = format!("--speculative-config '{{\"method\":\"{method}\",\"num_speculative_tokens\":3}}'");
        expect(&format!("{SERVER} {config}"), &drafts(planned, "3"));
    }
    let small = "{\"model\":\"meta-llama/Llama-3.2-1B-Instruct\",\"num_speculative_tokens\":5}";
    expect(
        &format!("{SERVER} --speculative-config '{small}'"),
        &[("draft_method", "draft-model"), ("draft_tokens", "5"), ("draft_params_b", "1.2")],
    );
    let sglang = "python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 8";
    let chain = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4";
    expect(&format!("{sglang} --speculative-algorithm EAGLE {chain}"), &drafts("mtp", "3"));
    let only = expect(&format!("{sglang} --speculative-algorithm NEXTN"), &[("draft_tokens", "0")]);
    assert!(only.notes.iter().any(|note| note.contains("--set draft_tokens=N")), "{:?}", only.notes);
    let medusa = expect(
        &format!("{SERVER} --speculative-config '{{\"method\":\"medusa\",\"num_speculative_tokens\":3}}'"),
        &[("draft_tokens", "0")],
    );
    assert!(medusa.notes.iter().any(|note| note.contains("medusa cannot be planned")), "{:?}", medusa.notes);
}

#[test]
fn features_of_engines_and_the_release_of_the_image_are_planned() {
    let sglang = "python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 8 \
                  --ep-num-redundant-experts 32 --enable-two-batch-overlap --scheduler-recv-interval 4";
    for dispatcher in ["--enable-deepep-moe", "--moe-a2a-backend deepep"] {
        expect(
            &format!("{sglang} {dispatcher}"),
            &[
                ("moe_dispatcher", "deepep"),
                ("ep", "8"),
                ("redundant_experts", "32"),
                ("two_batch_overlap", "on"),
                ("recv_interval", "4"),
            ],
        );
    }
    let docker = |tag| format!("docker run --gpus all vllm/vllm-openai:{tag} --model meta-llama/Llama-3.1-8B");
    let software = |text: &str| {
        let found = expect(text, &[]).workload;
        found.lines().find(|line| line.starts_with("  software")).unwrap().to_owned()
    };
    assert_eq!(software(&docker("v0.11.0")), "  software: \"vllm@0.11.0\"  # run.sh:1");
    assert_eq!(software(&docker("latest")), "  software: vllm  # run.sh:1");
    let image = "docker run --gpus all lmsysorg/sglang:v0.5.5-cu129 python3 -m sglang.launch_server --model \
                 meta-llama/Llama-3.1-8B";
    assert_eq!(software(image), "  software: \"sglang@0.5.5\"  # run.sh:1");
}

#[test]
fn settings_that_are_read_but_not_planned_are_named_with_their_place() {
    let found = expect(&format!("{SERVER} --no-enable-prefix-caching --block-size 32"), &[]);
    let note = found.notes.iter().find(|note| note.starts_with("found in the files, but not part of the plan"));
    let note = note.expect("a note");
    assert!(note.contains("block_size = 32 (run.sh:1)") && note.contains("prefix_caching = false"), "{note}");
    assert!(!note.contains("max_model_len") && !note.contains("kind"), "{note}");
}

#[test]
fn settings_of_roles_that_are_not_planned_are_named_once() {
    let servers = "model: meta-llama/Llama-3.1-70B-Instruct\nbackend: pytorch\ncontext_servers:\n  num_instances: 1\n  \
                   tensor_parallel_size: 4\n  max_batch_size: 4\ngeneration_servers:\n  num_instances: 1\n  \
                   tensor_parallel_size: 4\n  max_batch_size: 64\n";
    let library = Library::load(&Sources::built_in(), None);
    let lengths = given(&[("prompt", "2000"), ("generate", "500"), ("concurrency", "64")]);
    let found = documents(&read("d.yaml", servers), &library, &lengths).unwrap();
    let note = found.notes.iter().find(|note| note.starts_with("found in the files, but not part of the plan"));
    let note = note.expect("a note");
    assert_eq!(note.matches("roles.prefill.max_num_seqs = 4").count(), 1, "{note}");
}

#[test]
fn a_client_with_rate_and_limit_is_planned_as_open_load() {
    let client = "vllm bench serve --dataset-name random --random-input-len 1000 --random-output-len 100 \
                  --request-rate 20 --max-concurrency 128";
    let library = Library::load(&Sources::built_in(), None);
    let job = read("run.sh", &format!("{SERVER} &\n{client}\n"));
    let found = documents(&job, &library, &given(&[])).unwrap();
    let (_, scenario) = found.scenario(&library, &Overrides::new()).unwrap();
    for (name, value) in [("load", "open"), ("request_rate", "20"), ("concurrency", "128")] {
        assert_eq!(scenario.get(Knob::named(name).unwrap()).to_string(), value, "{name} of {}", found.workload);
    }
}

#[test]
fn frozen_weights_accumulation_and_adapters_of_qlora_are_planned() {
    let script = |more: &str| {
        format!(
            "torchrun --nproc_per_node 8 train.py --model_name_or_path meta-llama/Llama-3.1-70B {more} --lora_r 16 \
             --gradient_accumulation_steps 16 --per_device_train_batch_size 1 --max_seq_length 4096 --bf16"
        )
    };
    let expect = |text: &str, wanted: &[(&str, &str)]| {
        let (found, scenario) = planned(text, &[]);
        for (name, value) in wanted {
            let knob = Knob::named(name).unwrap();
            assert_eq!(scenario.get(knob).to_string(), *value, "{name} of\n{}{:?}", found.workload, found.notes);
        }
        found
    };
    let layout = [("tp", "1"), ("dp", "8"), ("global", "128"), ("trained", "lora")];
    let four = [("precision", "int4"), ("compute", "bf16"), ("lora_targets", "attention")];
    let found = expect(&script("--load_in_4bit --lora_target_modules q_proj v_proj"), &[&layout[..], &four].concat());
    assert!(found.notes.iter().any(|note| note.contains("adapters of q_proj, v_proj")), "{:?}", found.notes);
    assert!(!found.notes.iter().any(|note| note.contains("no global batch")), "{:?}", found.notes);
    let all = "--load_in_8bit --lora_target_modules q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj";
    expect(
        &script(all),
        &[&layout[..], &[("precision", "int8"), ("compute", "bf16"), ("lora_targets", "all")]].concat(),
    );
    expect(&script(""), &[&layout[..], &[("precision", "bf16")]].concat());
    let axolotl = include_str!("../data/launch/axolotl_qlora.yml");
    expect(axolotl, &[("precision", "int4"), ("compute", "bf16"), ("trained", "lora"), ("global", "64"), ("tp", "1")]);
}

#[test]
fn experts_stages_and_overlap_of_megatron_are_planned() {
    let all = "torchrun --nproc_per_node 8 --nnodes 16 pretrain_gpt.py --num-layers 61 --hidden-size 7168 \
               --ffn-hidden-size 18432 --num-attention-heads 128 --num-experts 256 --moe-router-topk 8 --vocab-size 129280 \
               --seq-length 4096 --micro-batch-size 1 --global-batch-size 2048 --bf16 --expert-model-parallel-size 16 \
               --pipeline-model-parallel-size 8 --context-parallel-size 2 --use-distributed-optimizer";
    let expect = |more: &str, wanted: &[(&str, &str)]| {
        let (found, scenario) = planned(&format!("{all} {more}"), &[]);
        for (name, value) in wanted {
            let knob = Knob::named(name).unwrap();
            assert_eq!(scenario.get(knob).to_string(), *value, "{name} of\n{}{:?}", found.workload, found.notes);
        }
    };
    expect("--moe-token-dispatcher-type flex --moe-enable-deepep", &[("moe_dispatcher", "deepep")]);
    expect(
        "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep",
        &[("moe_dispatcher", "hybridep")],
    );
    expect("--moe-token-dispatcher-type alltoall", &[("moe_dispatcher", "alltoall")]);
    expect(
        "--decoder-first-pipeline-num-layers 5 --decoder-last-pipeline-num-layers 8 --mtp-num-layers 1",
        &[("first_layers", "5"), ("last_layers", "8"), ("mtp_layers", "1")],
    );
    let narrow = "--bf16 --fp8-format hybrid --fp8-recipe tensorwise --first-last-layers-bf16";
    expect(narrow, &[("bf16_layers", "2")]);
    expect(
        &format!("{narrow} --num-layers-at-start-in-bf16 2 --num-layers-at-end-in-bf16 3"),
        &[("precision", "fp8"), ("bf16_layers", "5")],
    );
    expect("--bf16 --fp8-format hybrid --num-layers-at-start-in-bf16 2", &[("bf16_layers", "0")]);
    expect(
        "--cp-comm-type a2a --overlap-grad-reduce --overlap-moe-expert-parallel-comm --grad-reduce-in-bf16 \
         --num-distributed-optimizer-instances 2 --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16 --optimizer adam",
        &[
            ("cp_comm_type", "a2a"),
            ("overlap_data", "on"),
            ("overlap_experts", "on"),
            ("gradient_format", "bf16"),
            ("shard", "4"),
            ("optimizer", "adam-16bit"),
        ],
    );
    expect(
        "--attention-backend unfused --cuda-graph-impl local --cuda-graph-scope full_iteration \
         --moe-expert-capacity-factor 1.0",
        &[("attention_kernel", "unfused"), ("graph_capture", "full-iteration"), ("moe_capacity", "dropped")],
    );
    expect(
        "--recompute-granularity full --recompute-method block --recompute-num-layers 2",
        &[("recompute", "none"), ("recompute_layers", "16")],
    );
    // What the command does not request, Megatron-LM does not do.
    expect("", &[("recompute", "none"), ("overlap_data", "off"), ("overlap_tensor", "off")]);
    expect("--recompute-activations --tp-comm-overlap", &[("overlap_tensor", "on"), ("overlap_data", "off")]);
    let listed =
        read("run.sh", &format!("{all} --moe-token-dispatcher-type allgather")).to_json()["not_recognized"].to_string();
    assert!(listed.contains("moe-token-dispatcher-type"), "{listed}");
}

#[test]
fn settings_that_are_not_recognized_are_listed_with_the_estimate_and_in_the_file() {
    let (found, _) = planned(
        "vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-sise 4",
        &[("prompt", "2000"), ("generate", "500"), ("concurrency", "64")],
    );
    let wanted = "not recognized: --tensor-parallel-sise; did you mean `--tensor-parallel-size`? (run.sh:1)";
    assert!(found.notes.iter().any(|note| note == wanted), "{:?}", found.notes);
    assert!(found.workload.starts_with(&format!("# {wanted}\n")), "{}", found.workload);
}

#[test]
fn tensorrt_llm_limits_the_cache_to_a_share_of_what_the_weights_leave_free() {
    let server = "trtllm-serve meta-llama/Llama-3.1-70B-Instruct --tp_size 4";
    let lengths = [("prompt", "2000"), ("generate", "500"), ("concurrency", "64")];
    let utilization = |flags: &str| {
        let (_, scenario) = planned(&format!("{server} {flags}"), &lengths);
        let weights = scenario.weights_share(&scenario.base).unwrap();
        let share = scenario.memory_share(&scenario.base);
        ((share - weights) / (1.0 - weights), weights)
    };
    let (usual, weights) = utilization("");
    assert!((usual - 0.9).abs() < 1e-3 && weights > 0.1, "{usual} {weights}");
    for share in [0.9, 0.75, 0.3] {
        let (planned, _) = utilization(&format!("--kv_cache_free_gpu_memory_fraction {share}"));
        assert!((planned - share).abs() < 1e-3, "{planned} instead of {share}");
    }
    let given = [&lengths[..], &[("gpu_memory_utilization", "0.8")]].concat();
    let (_, scenario) = planned(&format!("{server} --kv_cache_free_gpu_memory_fraction 0.75"), &given);
    assert_eq!(scenario.get(Knob::GpuMemoryUtilization).to_string(), "0.8");
}

#[test]
fn clients_of_sglang_draw_lengths_below_the_stated_ones() {
    let lengths = |client: &str| {
        let (found, scenario) = planned(&format!("{SERVER}\n{client} --max-concurrency 8"), &[]);
        let note = found.notes.iter().any(|note| note.starts_with("the client draws lengths"));
        (scenario.get(Knob::Prompt).to_string(), scenario.get(Knob::Generate).to_string(), note)
    };
    let words = |prompt: &str, generate: &str, note| (prompt.to_owned(), generate.to_owned(), note);
    let sglang = "python3 -m sglang.bench_serving --dataset-name random --random-input 4096 --random-output 1024";
    assert_eq!(lengths(&format!("{sglang} --random-range-ratio 0.25")), words("2560", "640", true));
    assert_eq!(lengths(sglang), words("2048", "512", true));
    assert_eq!(lengths(&format!("{sglang} --random-range-ratio 1.0")), words("4096", "1024", false));
    let vllm = "vllm bench serve --dataset-name random --random-input-len 4096 --random-output-len 1024";
    assert_eq!(lengths(&format!("{vllm} --random-range-ratio 0.25")), words("4096", "1024", false));
}

#[test]
fn alternate_layers_of_torchtitan_are_recomputed_as_a_whole() {
    let library = Library::load(&Sources::built_in(), None);
    let planned = |checkpoint: &str| {
        let text = format!(
            "[model]\nname = \"llama3\"\nflavor = \"70B\"\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n\
             [parallelism]\npipeline_parallel_degree = 2\n[activation_checkpoint]\n{checkpoint}\n"
        );
        let input = UserInput { target: Some("h200-sxm-64".to_owned()), ..UserInput::default() };
        let found = documents(&read("t.toml", &text), &library, &input).unwrap();
        let (_, scenario) = found.scenario(&library, &Overrides::new()).unwrap();
        [Knob::Recompute, Knob::RecomputeLayers].map(|knob| scenario.get(knob).to_string())
    };
    let words = |mode: &str, layers: &str| [mode.to_owned(), layers.to_owned()];
    let selective = "mode = \"selective\"";
    assert_eq!(planned(&format!("{selective}\nselective_ac_option = \"op\"")), words("selective", "0"));
    // Of 80 layers, 40 on each of two ranks.
    assert_eq!(planned(&format!("{selective}\nselective_ac_option = \"2\"")), words("none", "40"));
    assert_eq!(planned(&format!("{selective}\nselective_ac_option = \"3\"")), words("none", "26"));
    assert_eq!(planned(&format!("{selective}\nselective_ac_option = \"1\"")), words("none", "80"));
    // The option is 2 unless stated.
    assert_eq!(planned(selective), words("none", "40"));
    assert_eq!(planned("mode = \"memory_budget\""), words("selective", "0"));
    assert_eq!(planned("mode = \"full\""), words("full", "0"));
}

#[test]
fn trainers_recompute_only_if_requested_or_by_default() {
    let arguments =
        "--model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 1 --max_seq_length 4096";
    let recompute = |command: &str, more: &str| {
        let (_, scenario) = planned(&format!("{command} {arguments} {more}"), &[]);
        scenario.get(Knob::Recompute).to_string()
    };
    assert_eq!(recompute("deepspeed --num_gpus 8 train.py", ""), "none");
    assert_eq!(recompute("deepspeed --num_gpus 8 train.py", "--gradient_checkpointing True"), "full");
    assert_eq!(recompute("accelerate launch --num_processes 8 --use_fsdp run_clm.py", ""), "none");
    assert_eq!(recompute("accelerate launch --num_processes 8 trl/scripts/sft.py", ""), "full");
    assert_eq!(
        recompute("accelerate launch --num_processes 8 trl/scripts/sft.py", "--gradient_checkpointing False"),
        "none"
    );
}

#[test]
fn clients_of_encoders_send_their_requests_through_the_server() {
    let load = |client: &str| {
        let client = format!("vllm bench serve --backend openai-embeddings --random-input-len 512 {client}");
        let (_, scenario) = planned(&format!("vllm serve BAAI/bge-large-en-v1.5\n{client}"), &[]);
        [Knob::Load, Knob::Generate].map(|knob| scenario.get(knob).to_string())
    };
    for (client, wanted) in [
        ("--num-prompts 2048 --request-rate inf", "burst"),
        ("--max-concurrency 64", "closed"),
        ("--request-rate 500", "open"),
    ] {
        assert_eq!(load(client), [wanted, "0"], "{client}");
    }
}

#[test]
fn devices_that_are_dies_are_not_counted_as_accelerators() {
    let library = Library::load(&Sources::built_in(), None);
    let trainer = TRAINER.replace("--nnodes 4", "--nnodes 2");
    let input = UserInput { target: Some("mi250x-4".to_owned()), ..UserInput::default() };
    let found = documents(&read("run.sh", &trainer), &library, &input).unwrap();
    let (_, scenario) = found.scenario(&library, &Overrides::new()).unwrap();
    let of = |knob: Knob| scenario.get(knob).to_string();
    assert_eq!((scenario.accelerators_per_node.get(), of(Knob::NumNodes), of(Knob::Dp)), (4, "2".into(), "8".into()));
    assert!(found.target.contains("hourly_usd: 6.4"), "{}", found.target);
}

#[test]
fn optimizer_steps_of_reinforcement_learning_have_the_responses_of_a_mini_batch() {
    let verl = "python3 -m verl.trainer.main_ppo data.train_batch_size=1024 data.max_prompt_length=512 \
                data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \
                actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 actor_rollout_ref.rollout.n=5 \
                trainer.n_gpus_per_node=8 trainer.nnodes=2";
    let mini = |setting: &str| {
        let (found, scenario) = planned(&format!("{verl} {setting}"), &[]);
        assert!(found.notes.iter().any(|note| note.contains("has 5120 of")), "{:?}", found.notes);
        assert!(
            found.workload.contains("prompts: 1024") && found.workload.contains("responses: 5"),
            "{}",
            found.workload
        );
        [Knob::Prompt, Knob::Global, Knob::Recompute].map(|knob| scenario.get(knob).to_string())
    };
    assert_eq!(mini("actor_rollout_ref.actor.ppo_mini_batch_size=128"), ["1536", "640", "full"]);
    let off = "actor_rollout_ref.model.enable_gradient_checkpointing=False";
    assert_eq!(mini(off), ["1536", "1280", "none"]);
}
