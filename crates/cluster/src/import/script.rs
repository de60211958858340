//! Reads whole shell scripts: directives, commands and variables.

use std::collections::{BTreeMap, BTreeSet};

use super::collect::Collector;
use super::fields::{Fields, ReadFields};
use super::runs::merge_runs;
use super::shell::{self, Script, Setup, Submission, Text};
use super::tools::{self, bench, mlperf, roles, serving};
use super::value::{Node, Value};
use super::{conventions, json, names, pbs, program, slurm, yaml};
use crate::import::place::Place;
use crate::import::{Field, Kind};

/// Whether another script sources or starts this one.
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

/// Variables that a caller is likely to set to the number of nodes.
const NODE_NAMES: &[&str] = &["NODES", "NNODES", "NUM_NODES", "N_NODES", "NUM_MACHINES"];

/// Variable with the task number of a job array.
const TASK: &str = "SLURM_ARRAY_TASK_ID";

/// Maximum nesting depth of scripts that submit other scripts.
const MAX_SUBMISSIONS: u32 = 3;

/// A script with the context in which it is read.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) name: &'a str,
    /// Text of the file.
    pub(crate) plain: &'a str,
    /// The same text with the place of each line.
    pub(crate) text: &'a Text,
    /// Index of the file.
    pub(crate) index: usize,
    /// All scripts of this import.
    pub(crate) scripts: &'a [(String, Text)],
    pub(crate) env: &'a BTreeMap<String, String>,
    /// Looks up a configuration file by its path.
    pub(crate) documents: &'a dyn Fn(&str) -> Option<Node>,
    /// The submission of this script by another script.
    pub(crate) submission: Option<&'a Submission>,
    /// Number of scripts through which this one is submitted.
    pub(crate) depth: u32,
}

/// Reads one script. The tasks of a job array become variants if they differ.
pub(crate) fn read(r: &Reader<'_>) -> ReadFields {
    let mut directives = slurm::directives(r.plain, |l| Place::of(r.index, l));
    if let Some(s) = r.submission {
        directives.add(&s.options);
    }
    let task = |task: Option<(u32, Place)>| {
        let mut batch = r.submission.map(|s| s.inherited.clone()).unwrap_or_default();
        batch.extend(directives.variables());
        batch.extend(task.map(|(number, line)| (TASK.to_owned(), number.to_string(), line)));
        one(r, &directives, &batch)
    };
    let asks = r.env.get(TASK).is_none() && r.plain.contains(TASK);
    let Some((tasks, line)) = directives.array().filter(|_| asks) else { return task(None) };
    let runs = tasks.into_iter().map(|number| task(Some((number, line)))).collect();
    combined(runs).unwrap_or_else(|| task(None))
}

/// Merges several runs into one job with their common values, and variants for the differences.
fn combined(runs: Vec<ReadFields>) -> Option<ReadFields> {
    let all: Vec<Fields> = runs.iter().map(|run| run.fields.clone()).collect();
    let mut out = runs.into_iter().next()?;
    if out.variants.is_empty() {
        split_into_variants(&mut out, &all);
    }
    Some(out)
}

/// Keeps the common values of all runs in `out`, and moves the others to variants.
fn split_into_variants(out: &mut ReadFields, runs: &[Fields]) {
    let value = |fields: &Fields, key: Field| fields.entry(key).map(|e| e.value.clone());
    let keys: BTreeSet<Field> = runs.iter().flat_map(|run| run.iter().map(|e| e.key)).collect();
    let differs = |key: &Field| runs.windows(2).any(|two| matches!(two, [a, b] if value(a, *key) != value(b, *key)));
    let keys: Vec<Field> = keys.into_iter().filter(differs).collect();
    if keys.is_empty() {
        return;
    }
    for run in runs {
        let mut variant = Fields::default();
        keys.iter().filter_map(|key| run.entry(*key)).for_each(|entry| variant.put(entry.clone()));
        if !out.variants.contains(&variant) {
            out.variants.push(variant);
        }
    }
    keys.iter().for_each(|key| drop(out.fields.remove(*key)));
}

/// Reads one script as one job.
fn one(r: &Reader<'_>, directives: &slurm::Directives, batch: &[(String, String, Place)]) -> ReadFields {
    let Reader { name, plain, text, index, scripts, env, documents, .. } = *r;
    let weak: Vec<(String, String, Place)> = directives
        .nodes()
        .map(|(n, l)| NODE_NAMES.iter().map(|k| ((*k).to_owned(), n.to_string(), l)).collect())
        .unwrap_or_default();
    let args = r.submission.map_or(&[][..], |s| &s.args);
    let mut setup = Setup { scripts, env, batch, weak: &weak, args, every_branch: false };
    let mut script = shell::read(name, text, &setup);
    let mut found = commands(&script, documents);
    if found.is_empty() && !mlperf::looks_like(&script.vars) {
        if let Some(out) = read_submitted_jobs(r, &script) {
            return out;
        }
        // No branch that was taken launches anything, so all branches are read.
        setup.every_branch = true;
        let again = shell::read(name, text, &setup);
        let more = commands(&again, documents);
        if !more.is_empty() {
            script = again;
            found = more;
        } else if let Some(out) = read_submitted_jobs(r, &again) {
            return out;
        }
    }
    let mut out = ReadFields::default();
    combine_commands(found, &script, plain, index, &mut out);
    if out.fields.is_empty() && mlperf::looks_like(&script.vars) {
        mlperf::exports(&script.vars, &mut out);
        for (path, line) in &script.sourced {
            let low = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
            if let Some(p) = low
                .split(['_', '.', '-'])
                .find_map(|w| names::precision(w).filter(|_| w.len() > 2 || w.starts_with("fp")))
            {
                out.fields.set_implied(Field::Precision, p, *line);
            }
        }
    }
    if !directives.is_empty() {
        let mut d = ReadFields::default();
        directives.report(&mut d);
        d.fields.set(Field::Launcher, "sbatch", directives.list.first().map_or(Place::NONE, |(.., l)| *l));
        // The scheduler's allocation takes precedence over the command.
        for e in d.fields.iter() {
            let known = e.key == Field::Accelerator && out.fields.has(Field::Accelerator);
            if !known {
                out.fields.put(e.clone());
            }
        }
    }
    if directives.is_empty() {
        let mut d = ReadFields::default();
        if pbs::report(plain, |l| Place::of(index, l), &mut d) && out.fields.has(Field::Kind) {
            d.fields.iter().for_each(|e| out.fields.put(e.clone()));
        }
    }
    // Libraries of functions do not contain settings.
    let settings =
        |p: &str| !["lib", "activate", "setvars", "profile", "bashrc", "conda"].iter().any(|w| p.contains(w));
    for (path, line) in script.sourced.iter().filter(|(p, _)| settings(p) && p.contains(".sh")) {
        out.references.push((path.clone(), *line));
    }
    if !out.fields.has(Field::Kind) {
        return out;
    }
    conventions::variables(&script, plain, index, &mut out);
    tasks_per_device(&mut out);
    if let Some(n) = conventions::job_model(directives, name, plain, &out) {
        out.fields.set_implied(Field::Model, n.0, n.1);
    }
    requirements(&script, plain, &mut out);
    for (expr, line) in &script.zero_divisions {
        out.conflict(format!("division by zero in {expr}: the job is too small for its parallel sizes"), *line);
    }
    if script.cut {
        out.unrecognized.push(("the script is too large; the rest is ignored".to_owned(), text.line()));
    }
    out
}

fn commands(script: &Script, documents: &dyn Fn(&str) -> Option<Node>) -> Collector {
    let files = |path: &str| written_configuration(script, path).or_else(|| documents(path));
    let neuron = script.vars.keys().any(|k| k.starts_with("NEURON_"));
    let experiment = script.vars.get("EXP").cloned();
    let mut c = Collector { neuron, experiment, ..Collector::default() };
    for cmd in &script.commands {
        c.command(cmd, &files);
    }
    c
}

/// For a script that does not launch anything itself: reads the jobs, manifests and configurations that it submits or
/// writes.
fn read_submitted_jobs(r: &Reader<'_>, script: &Script) -> Option<ReadFields> {
    if r.depth >= MAX_SUBMISSIONS {
        return None;
    }
    let jobs = script.jobs.iter().map(|job| {
        // Blank lines before the text of the job preserve the line numbers of its directives.
        let start = job.script.line();
        let plain = format!("{}{}", "\n".repeat((start.line as usize).saturating_sub(1)), job.script.as_str());
        read(&Reader {
            plain: &plain,
            text: &job.script,
            index: start.file,
            submission: Some(job),
            depth: r.depth + 1,
            ..*r
        })
    });
    let mut out = combined(jobs.filter(|o| o.fields.has(Field::Kind)).collect()).or_else(|| {
        let texts = script.manifests.iter().chain(script.files.values());
        texts.map(|t| configuration(t, r.env)).find(|o| o.fields.has(Field::Kind))
    })?;
    requirements(script, r.plain, &mut out);
    Some(out)
}

/// Reads the configuration in a file that the script writes.
fn configuration(text: &Text, env: &BTreeMap<String, String>) -> ReadFields {
    let docs = nodes(text);
    tools::k8s::documents(&docs, env)
        .or_else(|| docs.iter().find_map(|d| super::documents::document(d, "")))
        .unwrap_or_default()
}

/// Looks up a configuration that the script itself has written.
fn written_configuration(script: &Script, path: &str) -> Option<Node> {
    let base = path.rsplit('/').next().filter(|b| !b.is_empty())?;
    let (_, text) = script.files.iter().find(|(p, _)| p.rsplit('/').next() == Some(base))?;
    nodes(text).into_iter().next()
}

/// Parses the documents in a text, with the places of its lines.
fn nodes(text: &Text) -> Vec<Node> {
    let starts: Vec<Place> = std::iter::once(0)
        .chain(text.as_str().char_indices().filter(|(_, c)| *c == '\n').map(|(i, _)| i + 1))
        .map(|o| text.line_at(o))
        .collect();
    let body = text.as_str();
    let docs = json::parse(body).map_or_else(|| yaml::parse(body).docs, |d| vec![d]);
    docs.into_iter().map(|d| with_script_lines(d, &starts)).collect()
}

/// Replaces the line numbers of a node with the places of the script.
fn with_script_lines(mut n: Node, starts: &[Place]) -> Node {
    n.line = starts.get((n.line.line as usize).saturating_sub(1)).copied().unwrap_or(n.line);
    n.value = match n.value {
        Value::List(l) => Value::List(l.into_iter().map(|v| with_script_lines(v, starts)).collect()),
        Value::Map(m) => Value::Map(m.into_iter().map(|(k, v)| (k, with_script_lines(v, starts))).collect()),
        v => v,
    };
    n
}

/// Combines the commands of a script into one job.
pub(super) fn combine_commands(c: Collector, script: &Script, plain: &str, index: usize, out: &mut ReadFields) {
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
        if client.is_some() && out.fields.kind() == Some(Kind::Serving) {
            let at = out.fields.at(Field::Kind);
            out.fields.set(Field::Kind, Kind::ServingBenchmark, at);
        }
        if out.fields.kind() == Some(Kind::Benchmark) {
            // Values that the commands do not state are taken from variables of the benchmark launcher.
            for (key, names) in [(Field::Ep, &["ep_size", "EP_SIZE"][..]), (Field::Backend, &["backend", "BACKEND"])] {
                if let Some(t) =
                    names.iter().find_map(|n| script.vars.get(*n)).filter(|t| !out.fields.has(key) && !t.is_empty())
                {
                    let n = Node::str(t.as_str(), t.line());
                    if key == Field::Ep {
                        out.int(key, &n)
                    } else {
                        out.text(key, &n)
                    };
                }
            }
        }
    } else if let Some(name) = client {
        out.fields.set(Field::Kind, Kind::Benchmark, Place::NONE);
        if name != "benchmark_serving" {
            out.fields.set(Field::ToolName, name, Place::NONE);
        }
        commented_server(plain, index, out);
    }
    if !clients.is_empty() {
        bench::combine_clients(clients.into_iter().map(|(_, o)| o).collect(), !served, out);
    }
}

/// Combines the servers of a script: a single server, disaggregated roles, or variants.
fn server(mut servers: Vec<(serving::Engine, ReadFields)>, out: &mut ReadFields) {
    // Dynamo workers decode by default, so that a worker without a role, next to a prefill worker, is a decode worker.
    let prefills = servers.iter().any(|(_, o)| o.fields.str(Field::Role) == Some("prefill"));
    for (_, o) in &mut servers {
        if o.fields.str(Field::Launcher).is_some_and(|name| name.starts_with("dynamo.")) {
            let at = o.fields.at(Field::Launcher);
            o.fields.set_implied(Field::Orchestrator, "dynamo", at);
            if prefills && !o.fields.has(Field::Role) {
                o.fields.set_implied(Field::Role, "decode", at);
            }
        }
    }
    let roles: Vec<Option<String>> =
        servers.iter().map(|(_, o)| o.fields.str(Field::Role).map(str::to_owned)).collect();
    let both = |r: &str| roles.iter().flatten().any(|x| x == r);
    let engine = servers.first().map(|(e, _)| *e);
    if both("prefill") && both("decode") {
        let halves = servers.into_iter().zip(roles).filter_map(|((engine, mut o), role)| {
            engine.count(&mut o);
            Some((role?, o))
        });
        roles::disaggregated(halves.collect(), out);
        return;
    }
    if let Some(mut o) = merge_runs(servers.into_iter().map(|(_, o)| o).collect()) {
        if let Some(e) = engine.filter(|_| o.variants.is_empty()) {
            e.count(&mut o);
        }
        *out = o;
    }
}

/// Finds the command of the server in a comment of a benchmark script.
fn commented_server(plain: &str, index: usize, out: &mut ReadFields) {
    for (line, c) in super::hints::comments(plain) {
        let words = super::split_command(&Text::new(c, Place::of(index, line)));
        let Some(engine) = program::find(&words).and_then(|p| p.engine()) else { continue };
        let at = program::find(&words).map_or(0, |p| p.args);
        let mut o = ReadFields::default();
        engine.command(&super::argv::parse(words.get(at..).unwrap_or(&[])), &mut o);
        engine.finish(&mut o);
        engine.count(&mut o);
        o.fields.remove(Field::Kind);
        o.fields.remove(Field::Framework);
        out.fields.copy_missing(&o.fields);
        return;
    }
}

/// Without a launcher, Slurm starts one task per device.
fn tasks_per_device(out: &mut ReadFields) {
    let megatron = out.fields.str(Field::Framework).is_some_and(|f| f.starts_with("megatron"));
    if !megatron || out.fields.has(Field::AcceleratorsPerNode) || out.fields.has(Field::NumAccelerators) {
        return;
    }
    if let Some(n) = out.fields.int(Field::SlurmNtasksPerNode).filter(|n| *n > 1) {
        let at = out.fields.at(Field::SlurmNtasksPerNode);
        out.fields.set_implied(Field::AcceleratorsPerNode, n, at);
    }
}

/// Records the variables and arguments that the script requires.
fn requirements(script: &Script, plain: &str, out: &mut ReadFields) {
    let needed: Vec<String> = script
        .required
        .iter()
        .filter(|(n, _)| out.missing.iter().any(|(m, _)| m == n) || (script.required.len() == 1 && n.contains("MODEL")))
        .map(|(n, _)| n.clone())
        .collect();
    if !needed.is_empty() {
        let at = script.required.first().map_or(Place::NONE, |r| r.1);
        out.fields.set(Field::RequiredEnv, needed, at);
    }
    for (n, l) in &script.required {
        if !out.missing.iter().any(|(m, _)| m == n) {
            out.missing.push((n.clone(), *l));
        }
    }
    if script.wants_args {
        let args = bench::usage_args(plain);
        if !args.is_empty() {
            out.fields.set(Field::RequiredArgs, args, Place::NONE);
        }
    }
}
