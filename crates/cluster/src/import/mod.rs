//! Imports launch scripts and configurations of training and serving tools as a job description.
//!
//! Nothing is executed. Shell scripts are read by a bounded interpreter that expands variables with the defaults in the
//! script; YAML, JSON and TOML are parsed with line numbers. Every value has its origin.

mod argv;
mod collect;
mod conventions;
mod derive;
pub(crate) use derive::is_data_parallel;
mod documents;
mod field;
pub(crate) use field::{Field, Kind, Use};
mod fields;
mod hints;
mod json;
mod names;
pub(crate) use names::{accelerator_label, weights as weights_in_name};
mod offline;
mod origin;
mod pbs;
mod place;
mod program;
mod python;
mod references;
mod report;
mod runs;
mod script;
mod shell;
mod slurm;
mod systemd;
mod toml_doc;
mod tools;
mod unknown;
mod value;
mod variables;
mod yaml;

use std::collections::BTreeMap;

pub use origin::Origin;
pub use report::{Import, Missing, Note};

use fields::ReadFields;
use place::Place;
use shell::Text;
use value::{Node, Value};

/// Maximum number of bytes that are read per file.
const MAX_FILE: usize = 4 << 20;
/// Maximum number of files that are read per call.
const MAX_FILES: usize = 200;

/// One file: its name or path, and its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Path as the user gave it. Names in it are used as hints.
    pub name: String,
    /// The contents.
    pub text: String,
}

/// Content of a file by its detected type.
enum Content {
    Script(String),
    Documents(Vec<Node>),
    Modelfile(String),
    Python,
    Empty,
}

struct Source {
    name: String,
    index: usize,
    text: String,
    content: Content,
    skipped: Vec<u32>,
    /// The file is longer than what is read of it.
    truncated: bool,
}

/// Imports files that belong to one job, such as a batch script and the configuration it refers to.
///
/// `environment` provides values for variables that the scripts expect from the caller.
#[must_use]
pub fn import(files: &[SourceFile], environment: &BTreeMap<String, String>) -> Import {
    let sources: Vec<Source> =
        files.iter().take(MAX_FILES).enumerate().map(|(index, f)| open(index, f, environment)).collect();
    let mut total = ReadFields::default();
    total.unrecognized.extend(sources.iter().filter(|s| s.truncated).map(|s| {
        (format!("the file is longer than {} MiB; the rest is ignored", MAX_FILE >> 20), Place::of(s.index, 1))
    }));
    if files.len() > MAX_FILES {
        total
            .unrecognized
            .push((format!("more than {MAX_FILES} files; the rest is ignored"), Place::of(MAX_FILES - 1, 1)));
    }
    let scripts: Vec<(String, Text)> = sources
        .iter()
        .filter_map(|s| match &s.content {
            Content::Script(t) => Some((s.name.clone(), with_places(t, s.index))),
            _ => None,
        })
        .collect();
    let lookup = |path: &str| {
        let base = path.rsplit('/').next().unwrap_or(path);
        sources.iter().find(|s| s.name.rsplit('/').next() == Some(base)).and_then(|s| match &s.content {
            Content::Documents(d) => d.first().cloned(),
            _ => None,
        })
    };
    let mut used = Vec::new();
    // Scripts come first, since their flags take precedence over the files they refer to. Scripts that are called by
    // other scripts are read as part of their callers, and on their own only if that yields nothing.
    for called in [false, true] {
        for s in &sources {
            let Content::Script(t) = &s.content else { continue };
            if script::is_called(&s.name, &scripts) != called || (called && total.fields.has(Field::Kind)) {
                continue;
            }
            let text = with_places(t, s.index);
            let mut out = script::read(&script::Reader {
                name: &s.name,
                plain: t,
                text: &text,
                index: s.index,
                scripts: &scripts,
                env: environment,
                documents: &lookup,
                submission: None,
                depth: 0,
            });
            out.set_missing_places(Place::of(s.index, 0));
            used.push(s.index);
            merge(&mut total, out);
        }
    }
    for s in &sources {
        let mut out = match &s.content {
            Content::Documents(docs) => tools::k8s::documents(docs, environment)
                .or_else(|| docs.iter().find_map(|d| documents::document(d, &s.name)))
                .or_else(|| docs.iter().find_map(|d| tools::jobfile::document(d, &s.name, environment)))
                .unwrap_or_default(),
            Content::Modelfile(t) => {
                let mut out = ReadFields::default();
                tools::ollama::read(t, |l| Place::of(s.index, l), &mut out);
                out
            }
            Content::Python => {
                let mut out = ReadFields::default();
                let found = python::read(&s.text, s.index, &lookup);
                script::combine_commands(found, &shell::Script::default(), &s.text, s.index, &mut out);
                out
            }
            Content::Script(_) | Content::Empty => continue,
        };
        if !out.fields.is_empty() || !out.variants.is_empty() {
            used.push(s.index);
            documents::role_in_name(&s.name, &mut out);
        }
        out.set_missing_places(Place::of(s.index, 0));
        for l in &s.skipped {
            out.unrecognized.push(("invalid syntax; line ignored".to_owned(), Place::of(s.index, *l)));
        }
        merge(&mut total, out);
    }
    let whole = used.len() == 1;
    for s in sources.iter().filter(|s| used.contains(&s.index)) {
        finish(s, whole, &mut total);
        total.set_missing_places(Place::of(s.index, 0));
    }
    derive_and_validate(&mut total);
    report::build(total, &sources.iter().map(|s| s.name.clone()).collect::<Vec<_>>())
}

/// Detects the type of a file and parses it.
fn open(index: usize, f: &SourceFile, environment: &BTreeMap<String, String>) -> Source {
    // A character may cross the limit: the largest boundary at or below it.
    let end = (0..=f.text.len().min(MAX_FILE)).rev().find(|at| f.text.is_char_boundary(*at)).unwrap_or(0);
    let text = unknown::sanitize(f.text.get(..end).unwrap_or(""));
    let name = f.name.clone();
    let base = name.rsplit('/').next().unwrap_or(&name).to_ascii_lowercase();
    let ends = |list: &[&str]| list.iter().any(|e| base.ends_with(e));
    let trimmed = text.trim_start();
    let mut skipped = Vec::new();
    let shell_like = trimmed.starts_with("#!") || text.lines().take(200).any(|l| l.starts_with("#SBATCH"));
    let content = if trimmed.is_empty() {
        Content::Empty
    } else if ollama_file(&name, &text) {
        Content::Modelfile(text.clone())
    } else if ends(&[".py"]) || trimmed.lines().next().is_some_and(|l| l.starts_with("#!") && l.contains("python")) {
        Content::Python
    } else if ends(&[".toml"]) {
        let (doc, bad) = toml_doc::parse(&text);
        skipped = bad;
        doc.map_or(Content::Empty, |d| Content::Documents(vec![d]))
    } else if ends(&[".sh", ".slurm", ".sbatch", ".bash", ".sub", ".job", ".pbs"]) || shell_like {
        Content::Script(text.clone())
    } else if let Some(script) = systemd::script(&text) {
        Content::Script(script)
    } else if let Some(doc) = yaml_or_json(&text, ends(&[".yaml", ".yml"]), &mut skipped) {
        Content::Documents(doc)
    } else if looks_like_toml(&text) {
        let (doc, bad) = toml_doc::parse(&text);
        skipped = bad;
        doc.map_or(Content::Empty, |d| Content::Documents(vec![d]))
    } else {
        skipped.clear();
        Content::Script(text.clone())
    };
    let content = match content {
        Content::Documents(docs) => {
            let manifest = docs.iter().any(|d| d.has("apiVersion") && d.has("kind"));
            let docs = docs
                .into_iter()
                .map(|d| in_file(if manifest { d } else { references::resolve(&d, environment) }, index))
                .collect();
            Content::Documents(docs)
        }
        c => c,
    };
    Source { name, index, text, content, skipped, truncated: end < f.text.len() }
}

fn ollama_file(name: &str, text: &str) -> bool {
    tools::ollama::looks_like(name, text)
}

fn looks_like_toml(text: &str) -> bool {
    text.lines().any(|l| {
        let t = l.trim();
        t.starts_with('[') && t.ends_with(']') && !t.contains(' ') && !t.contains('$')
    }) && text.lines().any(|l| l.contains(" = "))
}

/// Parses documents, if the text contains mappings or lists of mappings.
fn yaml_or_json(text: &str, sure: bool, skipped: &mut Vec<u32>) -> Option<Vec<Node>> {
    let body = text.lines().map(str::trim_start).find(|l| !l.is_empty() && !l.starts_with('#') && !l.starts_with("//"));
    if body.is_some_and(|l| l.starts_with('{') || (l.starts_with('[') && !sure))
        && let Some(d) = json::parse(text)
    {
        return Some(vec![d]);
    }
    let read = yaml::parse(text);
    let useful = |d: &Node| d.is_map() || d.list().iter().any(Node::is_map);
    let fine = read.docs.iter().any(useful) && (sure || read.skipped.len() < 3);
    if !fine {
        return None;
    }
    // A script that is parsed as YAML yields few keys for many lines.
    if !sure {
        let keys = read.docs.iter().map(|d| d.map().len() + d.list().len()).sum::<usize>();
        if keys == 0 || text.contains("\nexport ") {
            return None;
        }
    }
    *skipped = read.skipped;
    Some(read.docs.into_iter().filter(useful).collect())
}

/// The text with the places of its lines.
fn with_places(text: &str, index: usize) -> Text {
    let mut out = Text::default();
    for (l, n) in text.split_inclusive('\n').zip(1..) {
        out.push(&l.replace('\r', ""), Place::of(index, n));
    }
    out
}

/// The node with its places in a file.
fn in_file(mut n: Node, index: usize) -> Node {
    n.line.file = index;
    n.value = match n.value {
        Value::List(l) => Value::List(l.into_iter().map(|v| in_file(v, index)).collect()),
        Value::Map(m) => Value::Map(m.into_iter().map(|(k, v)| (k, in_file(v, index))).collect()),
        v => v,
    };
    n
}

/// Words of the command in a text. If there are several commands, the first one that starts a known program.
fn split_command(text: &Text) -> Vec<Text> {
    let none = BTreeMap::new();
    let setup = shell::Setup { scripts: &[], env: &none, batch: &[], weak: &[], args: &[], every_branch: false };
    let read = shell::read("", text, &setup);
    let known = read.commands.iter().find(|c| program::find(&c.words).is_some());
    known.or(read.commands.first()).map(|c| c.words.clone()).unwrap_or_default()
}

/// Merges the values of another file; values that are already set take precedence.
fn merge(total: &mut ReadFields, other: ReadFields) {
    let framework = total.fields.str(Field::Framework).map(str::to_owned);
    // The name of a launcher is replaced by the tool to which its configuration belongs.
    if framework.as_deref().is_some_and(|f| matches!(f, "pytorch" | "transformers"))
        && let Some(e) = other.fields.entry(Field::Framework)
    {
        total.fields.put(e.clone());
    }
    total.fields.copy_missing(&other.fields);
    total.missing.extend(other.missing);
    total.unrecognized.extend(other.unrecognized);
    total.conflicts.extend(other.conflicts);
    if total.roles.is_empty() {
        total.roles = other.roles;
    }
    if total.variants.is_empty() {
        total.variants = other.variants;
    }
    total.references.extend(other.references);
}

/// Adds values from the comments and the name of one file.
fn finish(s: &Source, whole: bool, out: &mut ReadFields) {
    let Some(kind) = out.fields.kind() else { return };
    let serving = kind.serves();
    let hashed = !matches!(&s.content, Content::Modelfile(_));
    if hashed {
        hints::hardware(&s.name, &s.text, |l| Place::of(s.index, l), whole && out.roles.is_empty(), out);
    }
    if !out.fields.has(Field::Model) && kind == Kind::Training && out.variants.iter().all(|v| !v.has(Field::Model)) {
        let launcher = out
            .fields
            .str(Field::Framework)
            .is_some_and(|f| matches!(f, "accelerate" | "torchtitan" | "deepspeed" | "nanotron"));
        if let Some((m, l)) = hints::comment_model(&s.text) {
            out.fields.set_implied(Field::Model, m, Place::of(s.index, l));
        } else if let (Some(m), false) = (names::model_in(&s.name), launcher)
            && matches!(s.content, Content::Script(_))
        {
            out.fields.set_implied(Field::Model, m, Place::NONE);
        }
    }
    if serving || kind == Kind::Training {
        let named = !out.fields.has(Field::Precision) && !out.fields.has(Field::WeightsPrecision);
        if named || serving {
            hints::name_precision(&s.name, serving, out);
        }
    }
}

/// Computes derived values and validates the job.
fn derive_and_validate(out: &mut ReadFields) {
    out.fields.remove(Field::VisibleDevices);
    out.variants
        .iter_mut()
        .chain(out.roles.iter_mut().map(|(_, f)| f))
        .for_each(|f| drop(f.remove(Field::VisibleDevices)));
    let Some(kind) = out.fields.kind() else { return };
    if kind == Kind::Training {
        derive::training(out);
        let base = out.fields.clone();
        let conflicts = out.conflicts.clone();
        let mut variants = std::mem::take(&mut out.variants);
        for v in &mut variants {
            // Each variant is completed with the values that all variants share.
            let mut o = ReadFields { fields: v.clone(), ..ReadFields::default() };
            o.fields.copy_missing(&base);
            o.fields.remove(Field::Dp);
            derive::training(&mut o);
            if let Some(dp) = o.fields.entry(Field::Dp) {
                v.set_implied(Field::Dp, dp.value.clone(), dp.at);
            }
        }
        if !variants.is_empty() {
            out.conflicts = conflicts;
        }
        out.variants = variants;
        out.fields.remove(Field::LayersPerVirtualStage);
        out.fields.remove(Field::ModelPath);
    } else {
        derive::serving(out);
        if !out.fields.has(Field::Manifest) || out.fields.str(Field::ModelPath) == out.fields.str(Field::Model) {
            out.fields.remove(Field::ModelPath);
        }
    }
}
