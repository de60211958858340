//! Identifies the program that a command starts.

use super::argv::base;
use super::shell::Text;
use super::tools::serving::Engine;

/// Kind of program that a command runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ProgramKind {
    Serve(Engine),
    /// A benchmark client, with its common name.
    Client(&'static str),
    TrtllmBench,
    /// A benchmark that runs the engine in-process, with its common name.
    Offline(Engine, &'static str),
    /// A script that generates a synthetic data set.
    Dataset,
    Megatron,
    Bridge,
    NemoLauncher,
    Torchtitan,
    Maxtext,
    MaxtextBase,
    Litgpt,
    Ollama,
    Neuron,
    Primus,
    Verl,
    Torchtune,
    /// A tool that is configured entirely by a file, with its framework.
    Configured(&'static str),
    /// A training script that is identified only by its flags.
    Trainer,
}

/// The program of a command.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) kind: ProgramKind,
    /// Index of the program's word; the words before it belong to launchers.
    pub(crate) at: usize,
    /// Index of its first argument.
    pub(crate) args: usize,
    /// Name of the script, module or command.
    pub(crate) name: String,
}

impl Program {
    /// The engine, if the program is a server.
    pub(crate) fn engine(&self) -> Option<Engine> {
        match self.kind {
            ProgramKind::Serve(e) => Some(e),
            _ => None,
        }
    }
}

/// Commands that never launch a job.
const OTHER_COMMANDS: &[&str] = &[
    "pip",
    "pip3",
    "apt",
    "apt-get",
    "conda",
    "git",
    "pkill",
    "killall",
    "grep",
    "which",
    "curl",
    "wget",
    "cp",
    "mv",
    "ls",
    "hf",
    "huggingface-cli",
    "echo",
    "find",
    "rsync",
    "aws",
    "gsutil",
    "gcloud",
    "kubectl",
    "helm",
    "docker-compose",
    "module",
    "ray",
    "scontrol",
    "sacct",
    "squeue",
    "nvidia-smi",
    "rocm-smi",
    "kill",
    "pgrep",
    "ps",
    "tail",
    "tar",
    "sed",
    "awk",
];

/// Finds the program in the words of a command.
pub(crate) fn find(words: &[Text]) -> Option<Program> {
    let first = words.first().map_or("", |w| base(w.as_str()));
    if OTHER_COMMANDS.contains(&first) {
        return None;
    }
    let mut fallback = None;
    for (i, w) in words.iter().enumerate() {
        let s = w.as_str();
        let next = words.get(i + 1).map_or("", Text::as_str);
        if s == "-m" || s == "--module" {
            if let Some(kind) = module(next) {
                return Some(Program { kind, at: i, args: i + 2, name: next.to_owned() });
            }
            continue;
        }
        if i > 0 && first == "docker" && s == "--entrypoint" {
            continue;
        }
        if let Some((kind, n)) = binary(base(s), s, next, words.get(i + 2).map_or("", Text::as_str)) {
            return Some(Program { kind, at: i, args: i + n, name: base(s).to_owned() });
        }
        if s.ends_with(".py") && !s.starts_with('-') {
            // NeMo's launcher script may be started from its own directory as `main.py`.
            let stages =
                |w: &Text| ["training=", "peft=", "stages=", "training."].iter().any(|p| w.as_str().starts_with(p));
            let own =
                if base(s) == "main.py" && words.iter().any(stages) { Some(ProgramKind::NemoLauncher) } else { None };
            // Scripts of Megatron-LM take flags; those of Megatron-Bridge take overrides of recipe settings.
            let recipe = base(s).starts_with("pretrain_") || base(s).starts_with("finetune_");
            let set = |w: &Text| ["model.", "train.", "dataset."].iter().any(|p| w.as_str().starts_with(p));
            let recipe = recipe && words.iter().skip(i).any(|w| set(w) && w.as_str().contains('='));
            let own = if recipe { Some(ProgramKind::Bridge) } else { own };
            match own.or_else(|| script(base(s), s)) {
                Some(kind) => return Some(Program { kind, at: i, args: i + 1, name: base(s).to_owned() }),
                None if fallback.is_none() && base(s) != "gaudi_spawn.py" => {
                    fallback =
                        Some(Program { kind: ProgramKind::Trainer, at: i, args: i + 1, name: base(s).to_owned() });
                }
                None => {}
            }
        }
        if base(s).ends_with("_base.sh") && fallback.is_none() {
            fallback = Some(Program { kind: ProgramKind::MaxtextBase, at: i, args: i + 1, name: base(s).to_owned() });
        }
    }
    // Arguments after an image are passed to its entry point.
    if matches!(first, "docker" | "podman" | "nerdctl" | "sudo" | "srun" | "singularity" | "apptainer") {
        let run = words.iter().position(|w| matches!(w.as_str(), "run" | "exec")).unwrap_or(words.len());
        for (i, w) in words.iter().enumerate().skip(run + 1) {
            let s = w.as_str();
            let image = s.contains('/') && !s.starts_with(['-', '/', '.', '~', '$']) && !s.contains('=');
            if let Some(engine) = Some(s).filter(|_| image).and_then(Engine::named) {
                return Some(Program { kind: ProgramKind::Serve(engine), at: i, args: i + 1, name: s.to_owned() });
            }
        }
    }
    fallback
}

fn module(m: &str) -> Option<ProgramKind> {
    let clean = m.replace(['"', '\''], "");
    let m = clean.as_str();
    let starts = |p: &str| m.starts_with(p);
    Some(if m.contains("vllm") && (m.contains("entrypoints") || m.contains("api_server")) || starts("dynamo.vllm") {
        ProgramKind::Serve(Engine::Vllm)
    } else if starts("sglang.launch_server") || starts("dynamo.sglang") {
        ProgramKind::Serve(Engine::Sglang)
    } else if starts("dynamo.trtllm") || starts("tensorrt_llm.commands.serve") {
        ProgramKind::Serve(Engine::Trtllm)
    } else if starts("sglang.bench_serving") {
        ProgramKind::Client("sglang.bench_serving")
    } else if starts("sglang.bench_one_batch_server") {
        ProgramKind::Client("sglang.bench_one_batch_server")
    } else if starts("sglang.bench_one_batch") {
        ProgramKind::Offline(Engine::Sglang, "sglang.bench_one_batch")
    } else if starts("sglang.bench_offline_throughput") {
        ProgramKind::Offline(Engine::Sglang, "sglang.bench_offline_throughput")
    } else if starts("sglang.bench") {
        ProgramKind::Client("sglang.bench")
    } else if m.contains("benchmark_serving") || m.contains("bench_serving") {
        ProgramKind::Client("benchmark_serving")
    } else if starts("torchtitan") {
        ProgramKind::Torchtitan
    } else if starts("maxtext") || starts("MaxText") {
        ProgramKind::Maxtext
    } else if starts("axolotl") {
        ProgramKind::Configured("axolotl")
    } else if starts("llamafactory") {
        ProgramKind::Configured("llama-factory")
    } else if starts("litgpt") {
        ProgramKind::Litgpt
    } else if starts("verl.") {
        ProgramKind::Verl
    } else if starts("trl.") || starts("openrlhf.cli.train") {
        ProgramKind::Trainer
    } else if starts("megatron") || m.contains("pretrain_gpt") {
        ProgramKind::Megatron
    } else {
        return None;
    })
}

fn binary(base: &str, whole: &str, next: &str, after: &str) -> Option<(ProgramKind, usize)> {
    Some(match (base, next) {
        ("vllm", "serve") => (ProgramKind::Serve(Engine::Vllm), 2),
        ("vllm", "bench") if matches!(after, "serve") => (ProgramKind::Client("vllm bench serve"), 3),
        ("vllm", "bench") if after == "throughput" => (ProgramKind::Offline(Engine::Vllm, "vllm bench throughput"), 3),
        ("vllm", "bench") if after == "latency" => (ProgramKind::Offline(Engine::Vllm, "vllm bench latency"), 3),
        ("sglang", "serve") => (ProgramKind::Serve(Engine::Sglang), 2),
        ("trtllm-serve", "serve") => (ProgramKind::Serve(Engine::Trtllm), 2),
        ("trtllm-serve", "disaggregated" | "disaggregated_mpi_worker") => return None,
        ("trtllm-serve", _) => (ProgramKind::Serve(Engine::Trtllm), 1),
        ("trtllm-bench", _) => (ProgramKind::TrtllmBench, 1),
        ("llama-server" | "llama-cli" | "llamacpp-leader" | "llama_cpp.server", _) => {
            (ProgramKind::Serve(Engine::LlamaCpp), 1)
        }
        ("server", _) if whole == "./server" || whole.contains("llama.cpp") => {
            (ProgramKind::Serve(Engine::LlamaCpp), 1)
        }
        ("text-generation-launcher", _) => (ProgramKind::Serve(Engine::Tgi), 1),
        ("run_benchmark_serving" | "benchmark_serving", _) => (ProgramKind::Client("benchmark_serving"), 1),
        ("genai-perf", "profile") => (ProgramKind::Client("genai-perf"), 2),
        ("aiperf", "profile") => (ProgramKind::Client("aiperf"), 2),
        ("guidellm", _) if next == "benchmark" || next.starts_with('-') => (ProgramKind::Client("guidellm"), 1),
        ("evalscope", "perf") => (ProgramKind::Client("evalscope perf"), 2),
        ("llama-bench", _) => (ProgramKind::Offline(Engine::LlamaCpp, "llama-bench"), 1),
        ("tune", "run") => (ProgramKind::Torchtune, 2),
        ("ollama", "serve") => (ProgramKind::Ollama, 2),
        ("litgpt", _) => (ProgramKind::Litgpt, 1),
        ("axolotl", "train") => (ProgramKind::Configured("axolotl"), 2),
        ("llamafactory-cli", "train") => (ProgramKind::Configured("llama-factory"), 2),
        ("trl", "sft" | "dpo" | "grpo") => (ProgramKind::Trainer, 2),
        ("swift" | "megatron", "sft" | "pt" | "rlhf") => (ProgramKind::Configured("ms-swift"), 2),
        ("run_pretrain.sh" | "run_slurm_pretrain.sh" | "run_local_pretrain.sh" | "primus-cli", _) => {
            (ProgramKind::Primus, 1)
        }
        ("lmdeploy", "serve") => (ProgramKind::Serve(Engine::Lmdeploy), 3),
        ("nemo", "llm") => (ProgramKind::Configured("nemo"), 2),
        _ => return None,
    })
}

fn script(base: &str, whole: &str) -> Option<ProgramKind> {
    let whole = whole.to_ascii_lowercase();
    Some(match base {
        "run_recipe.py" | "setup_experiment.py" => ProgramKind::Bridge,
        "run_script.py" => ProgramKind::Bridge,
        "main.py" if whole.contains("launcher_scripts") => ProgramKind::NemoLauncher,
        _ if base.starts_with("megatron_")
            && (whole.contains("nemo") || base.contains("gpt") || base.contains("llama")) =>
        {
            ProgramKind::NemoLauncher
        }
        "benchmark_serving.py" | "bench_serving.py" => ProgramKind::Client("benchmark_serving"),
        "benchmark_throughput.py" => ProgramKind::Offline(Engine::Vllm, "benchmark_throughput"),
        "benchmark_latency.py" => ProgramKind::Offline(Engine::Vllm, "benchmark_latency"),
        "token_benchmark_ray.py" => ProgramKind::Client("llmperf"),
        "prepare_dataset.py" => ProgramKind::Dataset,
        "run_train.py" if whole.contains("nanotron") || base == "run_train.py" => ProgramKind::Configured("nanotron"),
        "deepy.py" => ProgramKind::Configured("gpt-neox"),
        "train.py" if whole.contains("maxtext") => ProgramKind::Maxtext,
        "train.py" if whole.contains("torchtitan") => ProgramKind::Torchtitan,
        _ if base.starts_with("pretrain_") => ProgramKind::Megatron,
        _ if base.ends_with("_nxd.py") || base.contains("_nxd_") => ProgramKind::Neuron,
        _ => return None,
    })
}
