//! Collects the commands of a script or a container, sorted into training, serving and benchmark clients.

use super::argv::{self, Args, Launcher};
use super::documents;
use super::fields::ReadFields;
use super::program::{self, Program, ProgramKind};
use super::shell::{Command, Text};
use super::tools::serving::Engine;
use super::tools::{
    accelerate, bench, bridge, hf, litgpt, llm_foundry, maxtext, megatron, nemo, neuron, nim, post_training, primus,
    torchtitan, torchtune,
};
use super::value::{Node, parse_int};
use super::variables::{count_visible, processes, visible_devices};
use super::{names, slurm};
use crate::import::place::Place;
use crate::import::{Field, Kind};

/// Results of the commands read so far.
#[derive(Default)]
pub(crate) struct Collector {
    /// Whether the script sets variables of the Neuron compiler and runtime.
    pub(crate) neuron: bool,
    /// The experiment file of Primus, if a variable states it.
    pub(crate) experiment: Option<Text>,
    /// `ollama serve`, which is configured by variables.
    pub(crate) ollama: Option<ReadFields>,
    pub(crate) trainings: Vec<ReadFields>,
    pub(crate) servers: Vec<(Engine, ReadFields)>,
    pub(crate) clients: Vec<(&'static str, ReadFields)>,
}

/// Looks up a file by the path in a command.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<Node>;

impl Collector {
    pub(crate) fn is_empty(&self) -> bool {
        self.trainings.is_empty() && self.servers.is_empty() && self.clients.is_empty() && self.ollama.is_none()
    }

    /// Reads one command.
    pub(crate) fn command(&mut self, cmd: &Command, files: Lookup<'_>) {
        let Some(p) = program::find(&cmd.words) else { return };
        let before = cmd.words.get(..p.at).unwrap_or(&[]);
        let args = argv::parse(cmd.words.get(p.args..).unwrap_or(&[]));
        let launcher = argv::launcher(before);
        let mut out = ReadFields::default();
        match p.kind {
            ProgramKind::Serve(engine) => {
                engine.command(&args, &mut out);
                if engine == Engine::Nim {
                    nim::model(&p.name, cmd.line, &mut out);
                    for (k, v) in before
                        .iter()
                        .filter_map(|w| w.as_str().split_once('=').map(|(k, v)| (k, Node::str(v, w.line()))))
                    {
                        engine.flag(k, &v, &mut out);
                    }
                }
                for k in [Field::Kind, Field::Framework] {
                    if let Some(mut e) = out.fields.remove(k) {
                        e.at = cmd.line;
                        out.fields.put(e);
                    }
                }
                read_referenced_files(&mut out, files, |n, o| engine.keys(n, o));
                config_file(engine, &args, files, &mut out);
                serving_launcher(&p, &launcher, engine, cmd.line, &mut out);
                visible_devices(cmd, &mut out);
                for (name, value) in &cmd.env {
                    engine.variable(name, &Node::str(value.as_str(), value.line()), &mut out);
                }
                // The image is the program itself, or precedes it.
                for word in cmd.words.iter().take(p.args) {
                    engine.image(word.as_str(), word.line(), &mut out);
                }
                engine.finish(&mut out);
                slurm::srun(before, &mut out);
                self.servers.push((engine, out));
            }
            ProgramKind::Client(name) => self.clients.push((name, bench::command(name, &args))),
            ProgramKind::Offline(engine, name) => self.offline(engine, name, &args, cmd),
            ProgramKind::Ollama => {
                out.fields.set(Field::Kind, Kind::Serving, cmd.line);
                out.fields.set(Field::Framework, "ollama", cmd.line);
                for (k, v) in &cmd.env {
                    super::tools::ollama::environment(k, &Node::str(v.as_str(), v.line()), &mut out);
                }
                self.ollama = Some(out);
            }
            ProgramKind::TrtllmBench => self.trtllm_bench(&args, cmd.line, files),
            ProgramKind::Dataset => {
                let mut c = ReadFields::default();
                for f in &args.flags {
                    match names::snake(&f.name).as_str() {
                        "input_mean" => c.int(Field::Isl, &f.node),
                        "output_mean" => c.int(Field::Osl, &f.node),
                        "num_requests" => c.int(Field::NumPrompts, &f.node),
                        _ => true,
                    };
                }
                if !c.fields.is_empty() {
                    self.clients.push(("prepare_dataset", c));
                }
            }
            _ => {
                if self.training(&p, &args, &launcher, cmd, files, &mut out) {
                    slurm::srun(before, &mut out);
                    if out.fields.str(Field::Framework) == Some("maxtext") {
                        maxtext::submitted(before, &mut out);
                    }
                    self.trainings.push(out);
                }
            }
        }
    }

    fn training(
        &self,
        p: &Program,
        args: &Args,
        l: &Launcher,
        cmd: &Command,
        files: Lookup<'_>,
        out: &mut ReadFields,
    ) -> bool {
        match p.kind {
            ProgramKind::Megatron => {
                out.fields.set(Field::Kind, Kind::Training, cmd.line);
                let ds = args.has(&["deepspeed", "deepspeed_config"]);
                out.fields.set(Field::Framework, if ds { "megatron-deepspeed" } else { "megatron-lm" }, cmd.line);
                megatron_flags(args, out);
            }
            ProgramKind::Bridge => bridge::command(&p.name, args, out),
            ProgramKind::NemoLauncher => nemo::command(args, out),
            ProgramKind::Torchtitan => torchtitan::command(args, out),
            ProgramKind::Maxtext => maxtext::command(args, out),
            ProgramKind::MaxtextBase => {
                if !maxtext::base_script(&cmd.words, out) {
                    return false;
                }
            }
            ProgramKind::Litgpt => litgpt::command(args, out),
            ProgramKind::Neuron => neuron::command(args, out),
            ProgramKind::Configured(framework) => read_configured_tool(framework, args, out),
            ProgramKind::Trainer if self.neuron && l.name.is_some() && !args.flags.is_empty() => {
                neuron::command(args, out)
            }
            ProgramKind::Trainer => {
                let script = cmd.words.get(p.at).map_or("", Text::as_str);
                if !trainer(p, script, args, l, out) {
                    return false;
                }
            }
            ProgramKind::Primus => {
                if !primus::command(
                    args,
                    cmd.env.iter().find(|(k, _)| k == "EXP").map(|(_, t)| t).or(self.experiment.as_ref()),
                    out,
                ) {
                    return false;
                }
            }
            ProgramKind::Verl => post_training::verl(args, out),
            ProgramKind::Torchtune => torchtune::command(args, out),
            ProgramKind::Serve(_)
            | ProgramKind::Client(_)
            | ProgramKind::Offline(..)
            | ProgramKind::TrtllmBench
            | ProgramKind::Dataset
            | ProgramKind::Ollama => {
                return false;
            }
        }
        launch(l, cmd, out);
        host_file(l, files, out);
        for (name, value) in &cmd.env {
            processes(name, value, out);
        }
        let counted =
            [Field::Nodes, Field::NumAccelerators].into_iter().any(|k| out.fields.has(k) || out.fields.is_unknown(k));
        if !counted {
            // The visible devices of a single command are those of one node.
            let mut chosen = ReadFields::default();
            cmd.env.iter().for_each(|(name, value)| count_visible(name, value, &mut chosen));
            if let Some(e) = chosen.fields.remove(Field::NumAccelerators) {
                out.fields.set_implied(Field::NumAccelerators, e.value, e.at);
            }
        }
        read_referenced_files(out, files, |n, o| {
            let read = documents::document(n, "");
            let framework = o.fields.entry(Field::Framework).cloned();
            if let Some(r) = read {
                o.fields.copy_missing(&r.fields);
            }
            if let Some(f) = framework {
                o.fields.put(f);
            }
        });
        true
    }
}

fn megatron_flags(args: &Args, out: &mut ReadFields) {
    for f in &args.flags {
        // Single-dash flags such as `-p` are not Megatron's.
        if f.name.starts_with("--") && !megatron::flag(&names::snake(&f.name), &f.node, out) {
            out.unrecognized.push((f.name.clone(), f.node.line));
        }
    }
    if args.has(&["deepspeed_activation_checkpointing"]) {
        let at = args.flag(&["deepspeed_activation_checkpointing"]).map_or(Place::NONE, |n| n.line);
        out.fields.set_implied(Field::Recompute, "full", at);
    }
}

/// Reads a tool that is configured by a file, and possibly by overrides.
fn read_configured_tool(framework: &str, args: &Args, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, framework, Place::NONE);
    for w in &args.positional {
        let s = super::unknown::shown(w.as_str());
        if s.ends_with(".yaml") || s.ends_with(".yml") || s.ends_with(".json") {
            out.fields.set_implied(Field::ConfigFile, s.as_str(), w.line());
            out.references.push((s, w.line()));
        }
    }
    for f in &args.flags {
        let key = names::snake(&f.name);
        if matches!(key.as_str(), "config_file" | "config" | "conf_file" | "factory") {
            if let Some(t) = f.node.shown() {
                if key == "factory" {
                    read_recipe_call(&t, f.node.line, out);
                } else {
                    out.fields.set_implied(Field::ConfigFile, t.as_str(), f.node.line);
                    out.references.push((t, f.node.line));
                }
            }
        } else if framework == "ms-swift" {
            let known = match key.as_str() {
                "load" | "model" => super::tools::model(out, &f.node),
                "max_length" => out.int(Field::SeqLen, &f.node),
                _ => megatron::flag(&key, &f.node, out) || hf::flag(&key, &f.node, out),
            };
            if !known {
                out.unrecognized.push((f.name.clone(), f.node.line));
            }
        } else if key == "nproc_per_node" {
            // Launcher arguments after `--`.
            out.int(Field::AcceleratorsPerNode, &f.node);
        } else if key == "nnodes" {
            out.int(Field::Nodes, &f.node);
        } else if framework != "nanotron" {
            hf::flag(&key, &f.node, out);
        }
    }
    for (path, node) in &args.overrides {
        let leaf = path.trim_start_matches(['+', '~']).rsplit('.').next().unwrap_or(path);
        match (framework, leaf) {
            ("nemo", "num_nodes") => out.int(Field::Nodes, node),
            ("nemo", "devices") => out.int(Field::AcceleratorsPerNode, node),
            ("nemo", "peft") => out.text(Field::Adapter, node),
            _ => megatron::flag(&names::snake(leaf), node, out) || hf::flag(&names::snake(leaf), node, out),
        };
    }
}

/// Reads a recipe with arguments, such as `llama3_8b(num_nodes=2)`.
fn read_recipe_call(text: &str, line: Place, out: &mut ReadFields) {
    let (name, args) = text.split_once('(').unwrap_or((text, ""));
    super::tools::model(out, &Node::str(name.trim(), line));
    for (key, value) in args.trim_end_matches(')').split(',').filter_map(|a| a.split_once('=')) {
        match key.trim() {
            "num_nodes" => out.int(Field::Nodes, &Node::str(value.trim(), line)),
            "num_gpus_per_node" => out.int(Field::AcceleratorsPerNode, &Node::str(value.trim(), line)),
            _ => true,
        };
    }
}

/// Reads a training script that is identified only by its flags and launcher. Returns false if it does not appear to
/// train.
fn trainer(p: &Program, script: &str, args: &Args, l: &Launcher, out: &mut ReadFields) -> bool {
    if args.has(&["job.config_file"]) {
        torchtitan::command(args, out);
        return true;
    }
    if args.has(&["tensor_model_parallel_size", "pipeline_model_parallel_size"]) && args.has(&["micro_batch_size"]) {
        out.fields.set(Field::Kind, Kind::Training, Place::NONE);
        let ds = args.has(&["deepspeed", "deepspeed_config"]);
        out.fields.set(Field::Framework, if ds { "megatron-deepspeed" } else { "megatron-lm" }, Place::NONE);
        megatron_flags(args, out);
        return true;
    }
    if args
        .overrides
        .iter()
        .any(|(k, _)| matches!(k.as_str(), "per_device_batch_size" | "ici_fsdp_parallelism" | "dcn_data_parallelism"))
    {
        maxtext::command(args, out);
        return true;
    }
    if l.name == Some("composer") {
        llm_foundry::command(args, out);
        return true;
    }
    if p.name.starts_with("openrlhf") {
        post_training::openrlhf(args, out);
        return true;
    }
    let launched = matches!(l.name, Some("torchrun" | "deepspeed" | "accelerate" | "gaudi_spawn"));
    let name = p.name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|w| name.contains(w));
    let trains = has(&["train", "sft", "finetun", "run_clm", "dpo"]);
    if has(&["eval", "infer", "generate", "serve", "convert", "download", "bench", "preprocess"]) && !trains {
        return false;
    }
    let trl = p.name == "trl" || p.name.starts_with("trl.") || script.contains("trl/");
    if !(launched || (trains || trl) && hf::looks_like(args)) {
        return false;
    }
    hf::command(args, out);
    let sharded = args.has(&["sharding_strategy", "enable_fsdp", "use_fsdp"]);
    let framework = match l.name {
        _ if trl => "trl",
        Some("gaudi_spawn") => "optimum-habana",
        Some("accelerate") => "accelerate",
        Some("deepspeed") => "deepspeed",
        _ if sharded => "pytorch-fsdp",
        _ if args.has(&["use_habana", "gaudi_config_name"]) => "optimum-habana",
        _ if args.has(&["deepspeed", "deepspeed_config", "zero_stage"]) => "deepspeed",
        _ if args.has(&["per_device_train_batch_size"]) => "transformers",
        _ => "pytorch",
    };
    out.fields.set(Field::Framework, framework, Place::NONE);
    if framework == "optimum-habana" {
        out.fields.set_implied(Field::Accelerator, "Gaudi", Place::NONE);
    }
    // What Transformers' and TRL's arguments default to. Scripts named after TRL's trainers may have either default.
    if args.has(&["per_device_train_batch_size"]) && (trl || !has(&["sft", "dpo", "grpo", "reward"])) {
        out.fields.set(Field::RecomputeDefault, if trl { "full" } else { "none" }, Place::NONE);
    }
    for f in &args.flags {
        let named = f.node.shown().filter(|t| [".yaml", ".yml", ".json", ".toml"].iter().any(|e| t.ends_with(e)));
        if let Some(t) = named.filter(|_| names::snake(&f.name).contains("config")) {
            out.fields.set_implied(Field::ConfigFile, t.as_str(), f.node.line);
            out.references.push((t, f.node.line));
        }
    }
    // A positional argument that is a file is the script's configuration.
    for w in args.positional.iter().filter(|w| w.as_str().ends_with(".yaml") || w.as_str().ends_with(".json")) {
        out.references.push((w.as_str().to_owned(), w.line()));
    }
    true
}

/// Reads the settings of the launcher: numbers of nodes and processes.
fn launch(l: &Launcher, cmd: &Command, out: &mut ReadFields) {
    if let Some(name) = l.name.filter(|n| !matches!(*n, "mpirun" | "accelerate")) {
        out.fields.set_implied(Field::Launcher, name, cmd.line);
    }
    // `torchrun` accepts a range of nodes; its upper end is used.
    let single =
        |n: &Node| n.text().and_then(|t| t.split(':').next_back().map(str::to_owned)).map(|t| Node::str(t, n.line));
    if let Some(n) = l.nodes.as_ref() {
        match single(n) {
            Some(n) if n.int().is_some() => {
                out.int(Field::Nodes, &n);
            }
            _ => {
                out.record_unset_variables(n);
            }
        }
    }
    if let Some(n) = l.per_node.as_ref().filter(|n| n.int().is_some_and(|n| n > 0)) {
        out.int(Field::AcceleratorsPerNode, n);
    }
    if let Some(n) = l.processes.as_ref()
        && (n.int().is_some() || l.name == Some("accelerate"))
    {
        out.int(Field::NumAccelerators, n);
    }
    if l.name == Some("accelerate") {
        accelerate::launch(l, out);
    }
    let here = |f: &argv::Flag| {
        matches!(names::snake(&f.name).as_str(), "rdzv_endpoint" | "master_addr")
            && f.node.text().is_some_and(|t| t.starts_with("localhost") || t.starts_with("127.0.0.1"))
    };
    let hosts = l.flags.iter().any(|f| matches!(names::snake(&f.name).as_str(), "hostfile" | "H"));
    let standalone =
        (l.name == Some("deepspeed") && !hosts) || l.flags.iter().any(|f| f.name == "--standalone" || here(f));
    if standalone
        && l.nodes.is_none()
        && !out.fields.has(Field::NumAccelerators)
        && let Some(n) = out.fields.int(Field::AcceleratorsPerNode)
    {
        let at = out.fields.at(Field::AcceleratorsPerNode);
        out.fields.set_implied(Field::NumAccelerators, n, at);
    }
}

/// Reads nodes and slots from the host file, if its contents are known. Its lines have the form `NAME slots=8`.
fn host_file(l: &Launcher, files: Lookup<'_>, out: &mut ReadFields) {
    let Some(flag) = l.flags.iter().find(|f| names::snake(&f.name) == "hostfile") else { return };
    let Some(node) = flag.node.shown().and_then(|path| files(&path)) else { return };
    let slots: Vec<i64> = node
        .raw()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("slots=").and_then(parse_int))
        .collect();
    let Some(first) = slots.first().copied().filter(|n| *n > 0) else { return };
    if l.nodes.is_none() {
        out.fields.set(Field::Nodes, slots.len() as i64, node.line);
    }
    if l.per_node.is_none() && slots.iter().all(|n| *n == first) {
        out.fields.set(Field::AcceleratorsPerNode, first, node.line);
    }
}

/// Reads the files that the settings refer to, if their contents are known.
pub(super) fn read_referenced_files(
    out: &mut ReadFields,
    files: Lookup<'_>,
    mut read: impl FnMut(&Node, &mut ReadFields),
) {
    for (path, line) in std::mem::take(&mut out.references) {
        if let Some(node) = files(&path) {
            read(&node, out);
        } else {
            out.references.push((path, line));
        }
    }
}

/// Reads the `--config` file of vLLM and SGLang. Flags on the command line take precedence.
pub(super) fn config_file(engine: Engine, args: &Args, files: Lookup<'_>, out: &mut ReadFields) {
    if engine == Engine::Trtllm {
        return;
    }
    let Some(node) = args.flag(&["config"]).and_then(Node::shown).and_then(|p| files(&p)) else { return };
    let mut inner = ReadFields::default();
    engine.keys(&node, &mut inner);
    out.fields.copy_missing(&inner.fields);
    out.unrecognized.append(&mut inner.unrecognized);
}

fn serving_launcher(p: &Program, l: &Launcher, engine: Engine, line: Place, out: &mut ReadFields) {
    let word = match (engine, p.name.as_str()) {
        (Engine::Sglang, _) => "sglang.launch_server".to_owned(),
        (Engine::Trtllm, name) => match l.name {
            Some("mpirun") => format!("mpirun {name}"),
            _ => name.to_owned(),
        },
        (Engine::Vllm, "vllm") => "vllm serve".to_owned(),
        (_, name) if name.contains(['/', ':']) => "docker".to_owned(),
        (Engine::Vllm, name) if name.starts_with("vllm.") => name.to_owned(),
        (Engine::Vllm, name) => name.split(".entrypoints").next().unwrap_or(name).to_owned(),
        (Engine::LlamaCpp, _) => "llama-server".to_owned(),
        (Engine::Tgi, _) => "text-generation-launcher".to_owned(),
        (Engine::Lmdeploy, _) => "lmdeploy".to_owned(),
        (Engine::Nim, _) => "docker".to_owned(),
    };
    out.fields.set_implied(Field::Launcher, word, line);
}
