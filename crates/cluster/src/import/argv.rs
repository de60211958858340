//! Splits command lines into launcher, program, flags and overrides.

use super::shell::Text;
use super::value::{Node, Value};

/// One flag with its values.
#[derive(Debug, Clone)]
pub(crate) struct Flag {
    /// Name as written, with its dashes.
    pub(crate) name: String,
    pub(crate) node: Node,
}

/// Arguments of a program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Args {
    pub(crate) flags: Vec<Flag>,
    pub(crate) positional: Vec<Text>,
    /// Overrides `a.b=c`. The key includes Hydra's prefixes `+` and `~`.
    pub(crate) overrides: Vec<(String, Node)>,
}

impl Args {
    pub(crate) fn flag(&self, names: &[&str]) -> Option<&Node> {
        self.flags.iter().rev().find(|f| names.contains(&super::names::snake(&f.name).as_str())).map(|f| &f.node)
    }

    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.flag(names).is_some()
    }
}

/// Splits words into flags, positional arguments and overrides.
pub(crate) fn parse(words: &[Text]) -> Args {
    let mut out = Args::default();
    // An array element may contain a flag and its value: `"--fp8-format hybrid"`.
    let mut flat: Vec<Text> = Vec::with_capacity(words.len());
    for w in words {
        let s = w.as_str();
        if s.starts_with("--") && s.contains(char::is_whitespace) && !s.contains(['{', '=', '\'', '"']) {
            flat.extend(w.split(char::is_whitespace));
        } else {
            flat.push(w.clone());
        }
    }
    let mut i = 0;
    while let Some(w) = flat.get(i) {
        i += 1;
        let s = w.as_str();
        if is_flag(s) {
            if let Some((name, _)) = s.split_once('=').filter(|(n, _)| !n.contains(['{', '"'])) {
                let value = w.slice(name.len() + 1, w.len());
                out.flags.push(Flag { name: name.to_owned(), node: Node::str(unquote(value.as_str()), w.line()) });
                continue;
            }
            let mut values: Vec<&Text> = Vec::new();
            while let Some(v) = flat.get(i) {
                let t = v.as_str();
                if is_flag(t) || is_override(t).is_some_and(|k| !values.is_empty() || k.contains('.')) {
                    break;
                }
                values.push(v);
                i += 1;
            }
            let value = match values.as_slice() {
                [] => Value::Flag,
                [one] => Value::Str(unquote(one.as_str())),
                many => Value::List(many.iter().map(|v| Node::str(unquote(v.as_str()), v.line())).collect()),
            };
            out.flags.push(Flag { name: s.to_owned(), node: Node::new(value, w.line()) });
        } else if let Some(key) = is_override(s) {
            let value = w.slice(key.len() + 1, w.len());
            out.overrides.push((key.to_owned(), Node::str(unquote(value.as_str()), w.line())));
        } else {
            out.positional.push(w.clone());
        }
    }
    out
}

fn is_flag(s: &str) -> bool {
    let Some(rest) = s.strip_prefix('-') else { return false };
    let name = rest.trim_start_matches('-');
    name.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Returns the key of `key=value`, if `s` has this form.
fn is_override(s: &str) -> Option<&str> {
    let (key, _) = s.split_once('=')?;
    let body = key.trim_start_matches(['+', '~']);
    let fine = !body.is_empty()
        && body.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && body.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '@' | '-'));
    fine.then_some(key)
}

/// Removes quotes that a second level of quoting left.
fn unquote(s: &str) -> String {
    for q in ['"', '\''] {
        if let Some(inner) = s.strip_prefix(q).and_then(|r| r.strip_suffix(q))
            && !inner.contains(q)
        {
            return inner.to_owned();
        }
    }
    s.to_owned()
}

/// Settings of the launcher, which precedes the program: processes and nodes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Launcher {
    /// Its common name: torchrun, accelerate, deepspeed, …
    pub(crate) name: Option<&'static str>,
    pub(crate) nodes: Option<Node>,
    /// Processes per node.
    pub(crate) per_node: Option<Node>,
    /// Processes on all nodes.
    pub(crate) processes: Option<Node>,
    /// Path of the launcher's configuration file.
    pub(crate) config: Option<Node>,
    pub(crate) precision: Option<Node>,
    /// Other flags of the launcher.
    pub(crate) flags: Vec<Flag>,
}

/// Names of launchers by the command that starts them.
const LAUNCHERS: &[(&str, &str)] = &[
    ("torchrun", "torchrun"),
    ("torch.distributed.run", "torchrun"),
    ("torch.distributed.launch", "torchrun"),
    ("deepspeed", "deepspeed"),
    ("composer", "composer"),
    ("gaudi_spawn.py", "gaudi_spawn"),
    ("mpirun", "mpirun"),
    ("mpiexec", "mpirun"),
    ("horovodrun", "horovodrun"),
    ("trtllm-llmapi-launch", "trtllm-llmapi-launch"),
];

/// Parses the words before the program.
pub(crate) fn launcher(words: &[Text]) -> Launcher {
    let mut l = Launcher::default();
    let mut from = 0;
    for (i, w) in words.iter().enumerate() {
        let base = base(w.as_str());
        if let Some((_, name)) = LAUNCHERS.iter().find(|(k, _)| *k == base) {
            l.name = Some(name);
            from = i + 1;
        } else if base == "accelerate" && words.get(i + 1).is_some_and(|w| w.as_str() == "launch") {
            l.name = Some("accelerate");
            from = i + 2;
        }
    }
    if l.name.is_none() {
        return l;
    }
    let args = parse(words.get(from..).unwrap_or(&[]));
    for f in &args.flags {
        let node = || Some(f.node.clone());
        match super::names::snake(&f.name).as_str() {
            "nnodes" | "num_nodes" | "num_machines" => l.nodes = node(),
            "nproc_per_node" | "num_gpus" | "nproc" | "npernode" | "ppn" => l.per_node = node(),
            "num_processes" | "world_size" | "np" | "n" => l.processes = node(),
            "config_file" => l.config = node(),
            "mixed_precision" => l.precision = node(),
            _ => l.flags.push(f.clone()),
        }
    }
    l
}

/// The last component of a path. A path may contain unknown parts.
pub(crate) fn base(s: &str) -> &str {
    s.trim_end_matches('/').rsplit(['/', '\u{E001}']).next().unwrap_or(s)
}
