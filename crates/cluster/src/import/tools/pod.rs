//! Containers in manifests: image, command, environment, devices.

use std::collections::BTreeMap;

use crate::import::argv;
use crate::import::collect::{Collector, Lookup, config_file};
use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::place::Place;
use crate::import::program;
use crate::import::runs::merge_runs;
use crate::import::shell::{self, Text};
use crate::import::unknown;
use crate::import::value::{Node, Value, parse_int};
use crate::import::variables::count_visible;
use crate::import::{Field, Kind};

use super::serving::Engine;

/// Settings of one container.
pub(crate) struct Pod {
    pub(crate) engine: Option<Engine>,
    pub(crate) out: ReadFields,
    /// Number of devices that it requests, with the line.
    pub(crate) gpus: Option<(i64, Place)>,
}

/// Names of accelerator resources.
const RESOURCES: &[&str] = &[
    "nvidia.com/gpu",
    "amd.com/gpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
    "google.com/tpu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "gpu",
];

/// Number of devices in `resources.limits` or `resources.requests`.
pub(crate) fn gpus(n: &Node) -> Option<(i64, Place)> {
    for part in ["limits", "requests"] {
        let Some(r) = n.first(&["resources", "resourcesPerNode"]).and_then(|r| r.get(part)) else { continue };
        for (k, v) in r.map() {
            if (RESOURCES.contains(&k.as_str()) || k.starts_with("nvidia.com/mig-"))
                && let Some(c) = v.int()
            {
                return Some((c, v.line));
            }
        }
    }
    None
}

/// All containers below a node, at any depth.
pub(crate) fn containers(n: &Node) -> Vec<&Node> {
    let mut out = Vec::new();
    n.for_each_map(&mut |m| {
        if let Some(c) = m.get("containers") {
            out.extend(c.list().iter().filter(|c| c.is_map()));
        }
        // Containers of Dynamo and of Kubeflow's jobs.
        out.extend(m.get("mainContainer"));
        out.extend(m.get("trainer").filter(|c| c.has("image") || c.has("command")));
    });
    out
}

/// Environment variables with literal values.
fn environment(c: &Node) -> Vec<(String, Node)> {
    let mut out = Vec::new();
    for e in c.get("env").map(Node::list).unwrap_or(&[]) {
        if let (Some(k), Some(v)) = (e.get("name").and_then(Node::text), e.get("value")) {
            out.push((k, v.clone()));
        }
    }
    for (k, v) in c.get("env").map(Node::map).unwrap_or(&[]) {
        out.push((k.clone(), v.clone()));
    }
    out
}

/// Words of `command` and `args`.
fn words(c: &Node, env: &BTreeMap<String, String>) -> Vec<Text> {
    let mut out = Vec::new();
    for key in ["command", "args"] {
        let Some(n) = c.get(key) else { continue };
        match &n.value {
            Value::List(l) => {
                for w in l {
                    out.push(lines(&replace(&w.word(), env), w.line));
                }
            }
            Value::Str(s) => out.extend(crate::import::split_command(&lines(&replace(s, env), n.line))),
            _ => {}
        }
    }
    out
}

/// A text of several lines, with their line numbers.
pub(crate) fn lines(s: &str, line: Place) -> Text {
    let mut t = Text::new("", line);
    for (l, n) in s.split_inclusive('\n').zip(line.and_below()) {
        t.push(l, n);
    }
    t
}

/// Expands Kubernetes references `$(NAME)`.
fn replace(s: &str, env: &BTreeMap<String, String>) -> String {
    let mut out = s.to_owned();
    for (k, v) in env {
        let mark = format!("$({k})");
        if out.contains(&mark) && out.len() < 1 << 20 {
            out = out.replace(&mark, v);
        }
    }
    // The other variables are known only in the cluster.
    let mut rest = out.as_str();
    let mut done = String::with_capacity(out.len());
    while let Some(i) = rest.find("$(") {
        done.push_str(rest.get(..i).unwrap_or(""));
        let tail = rest.get(i + 2..).unwrap_or("");
        match tail.split_once(')') {
            Some((name, after)) if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
                done.push_str(&unknown::of(name));
                rest = after;
            }
            _ => {
                done.push_str("$(");
                rest = tail;
            }
        }
    }
    done.push_str(rest);
    done
}

/// Reads a container.
pub(crate) fn read(
    c: &Node,
    hint: Option<Engine>,
    extra_env: &BTreeMap<String, String>,
    files: Lookup<'_>,
) -> Option<Pod> {
    let image = c.get("image").and_then(Node::shown).unwrap_or_default();
    let env = environment(c);
    let mut known: BTreeMap<String, String> = extra_env.clone();
    for (k, v) in &env {
        if let Some(t) = v.text().filter(|t| !t.starts_with('$')) {
            known.insert(k.clone(), t);
        }
    }
    let words = words(c, &known);
    let mut collector = Collector::default();
    let setup = shell::Setup { scripts: &[], env: &known, batch: &[], weak: &[], args: &[], every_branch: false };
    let script = shell_script(&words).or_else(|| mounted_script(&words, files));
    if let Some(t) = &script {
        let read = shell::read("", t, &setup);
        for cmd in &read.commands {
            collector.command(cmd, files);
        }
    } else if !words.is_empty() {
        collector.command(
            &shell::Command {
                line: words.first().map_or(Place::NONE, Text::line),
                words: words.clone(),
                env: Vec::new(),
            },
            files,
        );
    }
    let by_image =
        hint.or_else(|| Engine::named(&image)).filter(|_| !image.contains("router") && !image.contains("gateway"));
    let mut pod = if let Some((engine, _)) = collector.servers.first() {
        let engine = *engine;
        let out = merge_runs(collector.servers.into_iter().map(|(_, o)| o).collect())?;
        Pod { engine: Some(engine), out, gpus: None }
    } else if let Some(out) = merge_runs(collector.trainings) {
        Pod { engine: None, out, gpus: None }
    } else if let Some((name, _)) = collector.clients.first() {
        let mut out = ReadFields::default();
        out.fields.set(Field::Kind, Kind::Benchmark, c.line);
        out.fields.set(Field::ToolName, *name, c.line);
        super::bench::combine_clients(collector.clients.into_iter().map(|(_, o)| o).collect(), true, &mut out);
        return Some(Pod { engine: None, out, gpus: None });
    } else {
        let engine = by_image?;
        let mut out = ReadFields::default();
        // Arguments without a command are passed to the image's entry point.
        let args = c.get("args").map(|_| words.clone()).unwrap_or_default();
        let flags = args.iter().any(|w| w.as_str().starts_with('-'));
        let own = script.is_none() && (flags || words.is_empty()) && program::find(&words).is_none();
        if own {
            let args = argv::parse(&args);
            engine.command(&args, &mut out);
            config_file(engine, &args, files, &mut out);
        } else if script.is_some() {
            return None;
        }
        Pod { engine: Some(engine), out, gpus: None }
    };
    if let Some(engine) = pod.engine {
        for (k, v) in &env {
            if k.ends_with("ADDITIONAL_ARGS") || k.ends_with("EXTRA_ARGS") || k == "VLLM_ARGS" {
                let text = lines(&v.word(), v.line);
                let args = argv::parse(&crate::import::split_command(&text));
                for f in &args.flags {
                    engine.flag(&f.name, &f.node, &mut pod.out);
                }
            } else if (engine == Engine::Nim && k.starts_with("NIM_"))
                || (engine == Engine::Tgi && !matches!(k.as_str(), "MODEL_ID" | "PORT"))
            {
                engine.flag(k, v, &mut pod.out);
            } else if k.starts_with("LLAMA_ARG_") {
                engine.variable(k, v, &mut pod.out);
            } else if k == "MODEL_ID" && !pod.out.fields.has(Field::Model) {
                super::model(&mut pod.out, v);
            } else {
                count_visible(k, &Text::new(&v.word(), v.line), &mut pod.out);
            }
        }
        if engine == Engine::Nim {
            super::nim::model(&image, c.get("image").map_or(c.line, |n| n.line), &mut pod.out);
        }
        engine.image(&image, c.get("image").map_or(c.line, |n| n.line), &mut pod.out);
        engine.finish(&mut pod.out);
        pod.out.fields.set(Field::Framework, engine.framework(), c.line);
        pod.out.fields.set(Field::Kind, Kind::Serving, c.line);
    }
    pod.gpus = gpus(c);
    pod.out.fields.remove(Field::Launcher);
    Some(pod)
}

/// The container that serves or trains and states the most.
pub(crate) fn main_container(
    n: &Node,
    hint: Option<Engine>,
    env: &BTreeMap<String, String>,
    files: Lookup<'_>,
) -> Option<Pod> {
    containers(n)
        .into_iter()
        .filter_map(|c| read(c, hint, env, files))
        .max_by_key(|p| (p.out.fields.has(Field::Model), p.gpus.is_some(), p.out.fields.iter().count()))
}

/// The script of `sh -c` in a command.
fn shell_script(words: &[Text]) -> Option<Text> {
    let shell = words.first().is_some_and(|w| matches!(argv::base(w.as_str()), "sh" | "bash" | "ash" | "zsh"));
    if !shell {
        return None;
    }
    let at = words
        .iter()
        .position(|w| w.as_str().starts_with('-') && !w.as_str().starts_with("--") && w.as_str().contains('c'))?;
    words.get(at + 1).cloned()
}

/// A script in a ConfigMap that the command runs: `bash /scripts/serve.sh`, or only the path.
fn mounted_script(words: &[Text], files: Lookup<'_>) -> Option<Text> {
    let shell = |w: &&Text| matches!(argv::base(w.as_str()), "sh" | "bash" | "ash" | "zsh");
    let path = words.iter().find(|w| !shell(w) && !w.as_str().starts_with('-'))?;
    let node = files(path.as_str())?;
    Some(lines(node.raw()?, node.line))
}

/// The accelerator that labels, selectors and annotations of a pod request.
pub(crate) fn requested_accelerator(n: &Node) -> Option<(String, Place)> {
    let mut found = None;
    n.for_each_map(&mut |m| {
        if found.is_some() {
            return;
        }
        for (k, v) in m.map() {
            let low = k.to_ascii_lowercase();
            let label = [
                "accelerator",
                "gpu.product",
                "gpu-type",
                "gputype",
                "gpu_nvidia_class",
                "instance-type",
                "tpu-accelerator",
            ];
            if label.iter().any(|l| low.contains(l))
                && let Some(a) = v.text().as_deref().and_then(label_of)
            {
                found = Some((a, v.line));
                return;
            }
        }
        // Node affinity: `key: …gke-accelerator, values: [nvidia-l4]`.
        if let (Some(k), Some(values)) = (m.get("key").and_then(Node::text), m.get("values"))
            && (k.contains("accelerator") || k.contains("gpu") || k.contains("instance-type"))
            && let Some(a) = values.list().iter().find_map(|v| label_of(&v.text()?))
        {
            found = Some((a, values.line));
        }
    });
    found
}

/// The accelerator in the value of a label: its name, or an instance type.
fn label_of(value: &str) -> Option<String> {
    names::accelerator_label(value)
        .or_else(|| atlas_detect::matching::instance_accelerator(value).and_then(names::accelerator_label))
}

/// Parses a profile such as `nvidia-gpu-gh200:1` into accelerator and number.
pub(crate) fn profile(s: &str) -> (Option<String>, Option<i64>) {
    let (name, count) = s.rsplit_once(':').map_or((s, None), |(n, c)| (n, parse_int(c)));
    (names::accelerator_label(name), count)
}
