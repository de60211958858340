//! A shell script as a whole: directives, commands, and what the variables say on their own.

use std::collections::{BTreeMap, BTreeSet};

use super::collect::Collector;
use super::fields::{Fields, Out, place};
use super::runs::merge_runs;
use super::shell::{self, Script, Setup, Text};
use super::tools::{self, bench, mlperf, serving};
use super::value::{Node, Value};
use super::{json, names, pbs, program, slurm, unknown, yaml};

/// Whether another of the scripts sources or starts this one.
pub(crate) fn is_called(name: &str, scripts: &[(String, Text)]) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    scripts.iter().any(|(n, t)| {
        n != name
            && t.as_str().lines().any(|l| {
                let l = l.trim();
                !l.starts_with('#') && l.split([' ', '"', '\'', '/', ';', '\t']).any(|w| w == base)
            })
    })
}

/// Names that a caller may set to the number of nodes.
const NODE_NAMES: &[&str] = &["NODES", "NNODES", "NUM_NODES", "N_NODES", "NUM_MACHINES"];

/// The number of the task, in a job array.
const TASK: &str = "SLURM_ARRAY_TASK_ID";

/// Reads one script. The tasks of a job array that differ are variants.
pub(crate) fn read(
    name: &str,
    plain: &str,
    text: &Text,
    index: usize,
    scripts: &[(String, Text)],
    env: &BTreeMap<String, String>,
    documents: &dyn Fn(&str) -> Option<Node>,
) -> Out {
    let directives = slurm::directives(plain, |l| place(index, l));
    let task = |task: Option<(u32, u32)>| {
        let mut batch = directives.variables();
        batch.extend(task.map(|(number, line)| (TASK.to_owned(), number.to_string(), line)));
        one(name, plain, text, index, scripts, env, documents, &directives, &batch)
    };
    let asks = env.get(TASK).is_none() && plain.contains(TASK);
    let Some((tasks, line)) = directives.array().filter(|_| asks) else { return task(None) };
    let mut runs = tasks.into_iter().map(|number| task(Some((number, line))));
    let Some(mut out) = runs.next() else { return task(None) };
    let all: Vec<Fields> = std::iter::once(out.fields.clone()).chain(runs.map(|run| run.fields)).collect();
    if out.variants.is_empty() {
        apart(&mut out, &all);
    }
    out
}

/// Keeps what all runs share, and makes variants of what they do not.
fn apart(out: &mut Out, runs: &[Fields]) {
    let value = |fields: &Fields, key: &str| fields.entry(key).map(|e| e.value.clone());
    let keys: BTreeSet<&str> = runs.iter().flat_map(|run| run.iter().map(|e| e.key.as_str())).collect();
    let differs = |key: &&str| runs.windows(2).any(|two| matches!(two, [a, b] if value(a, key) != value(b, key)));
    let keys: Vec<&str> = keys.into_iter().filter(differs).collect();
    if keys.is_empty() {
        return;
    }
    for run in runs {
        let mut variant = Fields::default();
        keys.iter().filter_map(|key| run.entry(key)).for_each(|entry| variant.put(entry.clone()));
        if !out.variants.contains(&variant) {
            out.variants.push(variant);
        }
    }
    keys.iter().for_each(|key| drop(out.fields.remove(key)));
}

/// Reads one script as one job.
#[expect(clippy::too_many_arguments, reason = "all that a script is read with, and one caller")]
fn one(
    name: &str,
    plain: &str,
    text: &Text,
    index: usize,
    scripts: &[(String, Text)],
    env: &BTreeMap<String, String>,
    documents: &dyn Fn(&str) -> Option<Node>,
    directives: &slurm::Directives,
    batch: &[(String, String, u32)],
) -> Out {
    let weak: Vec<(String, String, u32)> = directives
        .nodes()
        .map(|(n, l)| NODE_NAMES.iter().map(|k| ((*k).to_owned(), n.to_string(), l)).collect())
        .unwrap_or_default();
    let mut setup = Setup { scripts, env, batch, weak: &weak, every_branch: false };
    let mut script = shell::read(name, text, &setup);
    let mut found = commands(&script, documents);
    if found.is_empty() && !mlperf::looks_like(&script.vars) {
        // Nothing is decided in favor of a launch: look into every branch.
        setup.every_branch = true;
        let again = shell::read(name, text, &setup);
        let more = commands(&again, documents);
        if !more.is_empty() {
            script = again;
            found = more;
        }
    }
    let mut out = Out::default();
    settle(found, &script, plain, index, &mut out);
    if out.fields.is_empty() && mlperf::looks_like(&script.vars) {
        mlperf::exports(&script.vars, &mut out);
        for (path, line) in &script.sourced {
            let low = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
            if let Some(p) = low
                .split(['_', '.', '-'])
                .find_map(|w| names::precision(w).filter(|_| w.len() > 2 || w.starts_with("fp")))
            {
                out.fields.imply("precision", p, *line);
            }
        }
    }
    if !directives.is_empty() {
        let mut d = Out::default();
        directives.report(&mut d);
        d.fields.set("launcher", "sbatch", directives.list.first().map_or(0, |(.., l)| *l));
        // The request to the scheduler is what the job gets.
        for e in d.fields.iter() {
            let ours = !(e.key == "accelerator" && out.fields.has("accelerator"));
            if ours {
                out.fields.put(e.clone());
            }
        }
    }
    if directives.is_empty() {
        let mut d = Out::default();
        if pbs::report(plain, |l| place(index, l), &mut d) && out.fields.has("kind") {
            d.fields.iter().for_each(|e| out.fields.put(e.clone()));
        }
    }
    // Libraries of functions are no settings.
    let settings =
        |p: &str| !["lib", "activate", "setvars", "profile", "bashrc", "conda"].iter().any(|w| p.contains(w));
    for (path, line) in script.sourced.iter().filter(|(p, _)| settings(p) && p.contains(".sh")) {
        out.references.push((path.clone(), *line));
    }
    if !out.fields.has("kind") {
        return out;
    }
    variables(&script, plain, index, &mut out);
    tasks(&mut out);
    if let Some(n) = job_model(directives, name, plain, &out) {
        out.fields.imply("model", n.0, n.1);
    }
    requirements(&script, plain, &mut out);
    for (expr, line) in &script.zero_divisions {
        out.conflict(format!("division by zero in {expr}: the job is too small for its parallel sizes"), *line);
    }
    if script.cut {
        out.strange.push(("the script is too large to be read to its end".to_owned(), text.line()));
    }
    out
}

fn commands(script: &Script, documents: &dyn Fn(&str) -> Option<Node>) -> Collector {
    let files = |path: &str| written(script, path).or_else(|| documents(path));
    let neuron = script.vars.keys().any(|k| k.starts_with("NEURON_"));
    let experiment = script.vars.get("EXP").cloned();
    let mut c = Collector { neuron, experiment, ..Collector::default() };
    for cmd in &script.commands {
        c.command(cmd, &files);
    }
    c
}

/// A configuration that the script wrote itself.
fn written(script: &Script, path: &str) -> Option<Node> {
    let base = path.rsplit('/').next().filter(|b| !b.is_empty())?;
    let (_, text) = script.files.iter().find(|(p, _)| p.rsplit('/').next() == Some(base))?;
    let starts: Vec<u32> = std::iter::once(0)
        .chain(text.as_str().char_indices().filter(|(_, c)| *c == '\n').map(|(i, _)| i + 1))
        .map(|o| text.line_at(o))
        .collect();
    let body = text.as_str();
    let node = json::parse(body).or_else(|| yaml::parse(body).docs.into_iter().next())?;
    Some(relined(node, &starts))
}

/// Gives a node the places of the lines it was written in.
fn relined(mut n: Node, starts: &[u32]) -> Node {
    n.line = starts.get((n.line as usize).saturating_sub(1)).copied().unwrap_or(n.line);
    n.value = match n.value {
        Value::List(l) => Value::List(l.into_iter().map(|v| relined(v, starts)).collect()),
        Value::Map(m) => Value::Map(m.into_iter().map(|(k, v)| (k, relined(v, starts))).collect()),
        v => v,
    };
    n
}

/// Puts together what the commands do.
fn settle(c: Collector, script: &Script, plain: &str, index: usize, out: &mut Out) {
    let Collector { trainings, servers, clients, ollama, .. } = c;
    if let Some(mut o) = ollama {
        for (k, t) in &script.vars {
            tools::ollama::environment(k, &Node::str(t.as_str(), t.line()), &mut o);
        }
        *out = o;
        return;
    }
    if !trainings.is_empty() {
        if let Some(o) = merge_runs(trainings) {
            *out = o;
        }
        return;
    }
    let client = clients.iter().find(|(n, _)| !matches!(*n, "prepare_dataset" | "trtllm-bench")).map(|(n, _)| *n);
    let served = !servers.is_empty();
    if served {
        server(servers, out);
        if client.is_some() && out.fields.str("kind") == Some("serving") {
            let at = out.fields.at("kind");
            out.fields.set("kind", "serving+benchmark", at);
        }
        if out.fields.str("kind") == Some("benchmark") {
            // The variables of the benchmark launcher say what its branch leaves out.
            for (key, names) in [("ep", &["ep_size", "EP_SIZE"][..]), ("backend", &["backend", "BACKEND"])] {
                if let Some(t) =
                    names.iter().find_map(|n| script.vars.get(*n)).filter(|t| !out.fields.has(key) && !t.is_empty())
                {
                    let n = Node::str(t.as_str(), t.line());
                    if key == "ep" {
                        out.int(key, &n)
                    } else {
                        out.text(key, &n)
                    };
                }
            }
        }
    } else if let Some(name) = client {
        out.fields.set("kind", "benchmark", 0);
        if name != "benchmark_serving" {
            out.fields.set("tool_name", name, 0);
        }
        commented_server(plain, index, out);
    }
    if !clients.is_empty() {
        bench::settle(clients.into_iter().map(|(_, o)| o).collect(), !served, out);
    }
}

/// One server, several roles, or several servers.
fn server(servers: Vec<(serving::Engine, Out)>, out: &mut Out) {
    let roles: Vec<Option<String>> = servers.iter().map(|(_, o)| o.fields.str("role").map(str::to_owned)).collect();
    let both = |r: &str| roles.iter().flatten().any(|x| x == r);
    let engine = servers.first().map(|(e, _)| *e);
    if both("prefill") && both("decode") {
        let mut devices = Some(0_i64);
        for ((engine, mut o), role) in servers.into_iter().zip(roles) {
            let Some(role) = role else { continue };
            engine.count(&mut o);
            devices = devices.zip(o.fields.int("num_accelerators")).and_then(|(a, b)| a.checked_add(b));
            out.strange.append(&mut o.strange);
            out.missing.append(&mut o.missing);
            if !out.roles.iter().any(|(r, _)| *r == role) {
                out.roles.push((role, o.fields));
            }
        }
        serving::settle_roles(out);
        if let Some(n) = devices.filter(|n| *n > 0) {
            out.fields.imply("num_accelerators", n, 0);
        }
        return;
    }
    if let Some(mut o) = merge_runs(servers.into_iter().map(|(_, o)| o).collect()) {
        if let Some(e) = engine.filter(|_| o.variants.is_empty()) {
            e.count(&mut o);
        }
        *out = o;
    }
}

/// A server's command that stands in a comment of a benchmark script.
fn commented_server(plain: &str, index: usize, out: &mut Out) {
    for (line, c) in super::hints::comments(plain) {
        let words = super::split_command(&Text::new(c, place(index, line)));
        let Some(engine) = program::find(&words).and_then(|p| p.engine()) else { continue };
        let at = program::find(&words).map_or(0, |p| p.args);
        let mut o = Out::default();
        engine.command(&super::argv::parse(words.get(at..).unwrap_or(&[])), &mut o);
        engine.finish(&mut o);
        engine.count(&mut o);
        o.fields.remove("kind");
        o.fields.remove("framework");
        out.fields.fill(&o.fields);
        return;
    }
}

/// Without a launcher of its own, a training program runs one task for each device.
fn tasks(out: &mut Out) {
    let megatron = out.fields.str("framework").is_some_and(|f| f.starts_with("megatron"));
    if !megatron || out.fields.has("accelerators_per_node") || out.fields.has("num_accelerators") {
        return;
    }
    if let Some(n) = out.fields.int("slurm.ntasks_per_node").filter(|n| *n > 1) {
        let at = out.fields.at("slurm.ntasks_per_node");
        out.fields.imply("accelerators_per_node", n, at);
    }
}

/// Values that only conventional variables give.
fn variables(script: &Script, plain: &str, index: usize, out: &mut Out) {
    let get = |names: &[&str]| {
        names.iter().find_map(|n| script.vars.get(*n).filter(|t| !t.is_empty() && !unknown::is_in(t.as_str())))
    };
    let training = out.fields.str("kind") == Some("training");
    if training
        && !out.fields.has("global_batch")
        && let Some(t) = get(&["GBS", "GLOBAL_BATCH_SIZE", "GLOBAL_BATCH"])
    {
        out.int("global_batch", &Node::str(t.as_str(), t.line()));
    }
    if training {
        let ids = [
            "HF_MODEL_ID",
            "HF_MODEL_NAME",
            "HF_MODEL",
            "HF_CONFIG",
            "HF_MODEL_PATH",
            "MODEL_NAME_OR_PATH",
            "MODEL_ID",
        ];
        let hub = ids.iter().find_map(|n| {
            get(&[n]).filter(|t| t.as_str().matches('/').count() == 1 && !t.as_str().starts_with(['/', '.']))
        });
        let guessed = out.fields.entry("model").is_none_or(|e| e.implied);
        if let (Some(t), true) = (hub, guessed) {
            out.fields.set("model", t.as_str(), t.line());
        } else if (!out.fields.has("model") || (guessed && out.fields.str("framework") == Some("megatron-bridge")))
            && let Some(t) = get(&["MODEL_NAME", "MODEL"]).filter(|t| names::model_in(t.as_str()).is_some())
        {
            out.fields.set("model", names::model_id(t.as_str()).0, t.line());
        }
    }
    if training && out.variants.is_empty() {
        script.vars.iter().for_each(|(name, value)| super::collect::processes(name, value, out));
    }
    let neuron = out.fields.str("framework").is_some_and(|f| f.starts_with("neuronx"));
    if neuron {
        if let (Some(v), Some(size)) = (get(&["LLAMA_VERSION"]), get(&["MODEL_SIZE"])) {
            out.fields.imply("model", format!("Llama {} {}", v.as_str(), size.as_str()), size.line());
        }
        for n in ["XLA_DOWNCAST_BF16", "XLA_USE_BF16"] {
            if let Some(t) = get(&[n]).filter(|t| t.as_str() == "1") {
                out.fields.imply("precision", "bf16", t.line());
            }
        }
    }
    if out.fields.str("framework") == Some("megatron-bridge") {
        recipe_comment(plain, index, out);
    }
    if out.fields.str("framework").is_some_and(|f| f.starts_with("megatron")) {
        // Sizes that the script sets without handing them on hold as well.
        for (key, names) in [
            ("tp", &["TP_SIZE", "TENSOR_PARALLEL_SIZE"][..]),
            ("pp", &["PP_SIZE", "PIPELINE_PARALLEL_SIZE"]),
            ("cp", &["CP_SIZE"]),
            ("architecture.vocab_size", &["VOCAB_SIZE"]),
        ] {
            let plain_layers = key != "architecture.vocab_size" || out.fields.has("architecture.num_layers");
            if let Some(t) = get(names).filter(|_| !out.fields.has(key) && plain_layers && out.variants.is_empty()) {
                out.int(key, &Node::str(t.as_str(), t.line()));
            }
        }
    }
    if out.fields.str("kind").is_some_and(|k| k.starts_with("serving")) && out.variants.is_empty() {
        for n in ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"] {
            if let Some(t) = get(&[n]).filter(|_| out.roles.is_empty()) {
                let mut o = Out::default();
                super::collect::count_visible(n, t, &mut o);
                if !out.fields.has("slurm.nodes") {
                    for e in o.fields.iter() {
                        out.fields.put(e.clone());
                    }
                }
            }
        }
    }
}

/// The precision and the optimizer in the comment behind the recipe's name.
fn recipe_comment(plain: &str, index: usize, out: &mut Out) {
    let line = plain.lines().zip(1..).find(|(l, _)| {
        let t = l.trim_start().trim_start_matches("export ");
        t.split_once('=')
            .is_some_and(|(k, _)| k.contains("RECIPE") && k.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    });
    let Some((line, n)) = line else { return };
    let Some((_, comment)) = line.split_once(" #") else { return };
    for w in comment.split(|c: char| !c.is_ascii_alphanumeric()) {
        if let Some(p) = names::precision(w).filter(|_| w.len() > 2) {
            out.fields.imply("precision", p, place(index, n));
        }
        let low = w.to_ascii_lowercase();
        if matches!(low.as_str(), "adam" | "adamw" | "muon" | "sgd" | "lion") {
            out.fields.imply("optimizer", low, place(index, n));
        }
    }
}

/// A model in the job's name.
fn job_model(d: &slurm::Directives, file: &str, plain: &str, out: &Out) -> Option<(String, u32)> {
    if out.fields.has("model") || out.fields.str("kind") != Some("training") {
        return None;
    }
    if matches!(out.fields.str("framework"), Some("accelerate" | "torchtitan")) {
        return None;
    }
    let (name, line) = d.get("job-name")?;
    let sized = name.split(['-', '_']).any(names::is_size);
    if !sized {
        return None;
    }
    // A family in the name ends the guess at its size; a run's own name is taken whole, but for words of what runs it.
    match names::model_in(name) {
        // A comment or the name of the file tells it better.
        Some(_) if names::model_in(file).is_some() || super::hints::comment_model(plain).is_some() => None,
        Some(model) => Some((model, line)),
        None => Some((names::without_framework(name).to_owned(), line)),
    }
}

/// Variables and arguments that the script asks for.
fn requirements(script: &Script, plain: &str, out: &mut Out) {
    let needed: Vec<String> = script
        .required
        .iter()
        .filter(|(n, _)| out.missing.iter().any(|(m, _)| m == n) || (script.required.len() == 1 && n.contains("MODEL")))
        .map(|(n, _)| n.clone())
        .collect();
    if !needed.is_empty() {
        let at = script.required.first().map_or(0, |r| r.1);
        out.fields.set("required_env", needed, at);
    }
    for (n, l) in &script.required {
        if !out.missing.iter().any(|(m, _)| m == n) {
            out.missing.push((n.clone(), *l));
        }
    }
    if script.wants_args {
        let args = bench::usage_args(plain);
        if !args.is_empty() {
            out.fields.set("required_args", args, 0);
        }
    }
}
