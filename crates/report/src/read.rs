//! Reading of records from disk; diagnostics have file positions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use atlas_config::library::Library;
use atlas_core::plan::Engine;
use atlas_core::sort;
use atlas_document::decode::{Bounds, Fields};
use atlas_document::sources::read_text;
use atlas_document::{Diagnostic, Diagnostics, Node, Position, Severity, parse};
use atlas_plan::knob::{Knob, KnobError, KnobValues as _, Overrides, Setting};
use atlas_plan::scenario::{Parts, SEED};

/// Fields of a record that a summary needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The target.
    pub target: String,
    /// The workload.
    pub workload: String,
    /// The track.
    pub track: String,
    /// Tokens per second.
    pub tokens_per_sec: f64,
    /// Power of one node, W.
    pub node_power_w: f64,
    /// USD per 1000 tokens, as the record states it; `None` if no price was known.
    pub dollar_per_1k_tokens: Option<f64>,
}

impl Entry {
    /// Key by which records are grouped.
    #[must_use]
    pub fn key(&self) -> (&str, &str, &str) {
        (&self.target, &self.workload, &self.track)
    }

    /// Tokens/s per watt of one node; zero if the power is unknown.
    #[must_use]
    pub fn tokens_per_sec_per_watt(&self) -> f64 {
        if self.node_power_w > 0.0 { self.tokens_per_sec / self.node_power_w } else { 0.0 }
    }
}

fn whole_file(file: &Arc<str>, severity: Severity, message: String) -> Diagnostic {
    Diagnostic { severity, file: Arc::clone(file), at: Position::default(), path: String::new(), message, help: None }
}

/// Reads a JSON document, keeping positions for diagnostics.
pub fn document(path: &Path, problems: &mut Diagnostics) -> Option<(Arc<str>, Node)> {
    let file: Arc<str> = path.display().to_string().into();
    let text = match read_text(path) {
        Ok(text) => text,
        Err(message) => {
            problems.push(whole_file(&file, Severity::Error, message));
            return None;
        }
    };
    let plain: Node = match serde_json::from_str(&text) {
        Ok(node) => node,
        Err(error) => {
            let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            let mut problem = whole_file(&file, Severity::Error, format!("not JSON: {message}"));
            problem.at = Position { line: clamp(error.line()), column: clamp(error.column()) };
            problems.push(problem);
            return None;
        }
    };
    // Nearly all JSON is YAML, and the YAML parser records positions.
    let placed = parse::parse(&file, &text, &mut Diagnostics::new());
    Some((file, placed.unwrap_or(plain)))
}

/// Reads all records of a directory (its `*.json`, sorted by name) or of a single file. Documents that are not records
/// cause a warning. `last_run.json` is skipped if it repeats another file.
pub fn entries(path: &Path, problems: &mut Diagnostics) -> Vec<Entry> {
    let mut all = Vec::new();
    for path in files(path, problems) {
        let Some((file, node)) = document(&path, problems) else { continue };
        // A file holds one record or a list of records.
        for item in node.items().unwrap_or(std::slice::from_ref(&node)) {
            if item.get("target").is_none() && item.get("record").is_none() {
                let message = "not a record: neither `target` nor `record` found; skipped".to_owned();
                problems.push(whole_file(&file, Severity::Warning, message));
            } else {
                all.extend(entry(&file, item, problems));
            }
        }
    }
    all
}

/// The records below a path: the `*.json` of a directory, or the file itself.
pub fn files(path: &Path, problems: &mut Diagnostics) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => {
            let file = path.display().to_string().into();
            problems.push(whole_file(&file, Severity::Error, format!("cannot be read: {error}")));
            return Vec::new();
        }
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.retain(|path| {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        path.extension().is_some_and(|ext| ext == "json") && path.is_file() && !hidden
    });
    sort::ascending(&mut paths);
    let is_last = |path: &PathBuf| path.file_name().is_some_and(|name| name == "last_run.json");
    if let Some(last) = paths.iter().find(|path| is_last(path)).and_then(|path| read_text(path).ok()) {
        let repeated = paths.iter().any(|path| !is_last(path) && read_text(path).is_ok_and(|text| text == last));
        if repeated {
            paths.retain(|path| !is_last(path));
        }
    }
    paths
}

/// Decodes the fields that a summary needs. Metrics are under `record`, or at the top level of abridged records. `None` with
/// a warning if the recorded scenario cannot run.
fn entry(file: &Arc<str>, node: &Node, problems: &mut Diagnostics) -> Option<Entry> {
    let verdict = node.at_path(&["record", "detail", "verdict", "is"]).and_then(Node::text);
    if let Some(verdict) = verdict.filter(|verdict| !matches!(*verdict, "fits" | "overload")) {
        problems.push(whole_file(file, Severity::Warning, format!("the scenario cannot run ({verdict}); skipped")));
        return None;
    }
    let mut fields = Fields::open(file, "", node, problems)?;
    // A record has many other fields, so unknown ones are not reported.
    fields.all();
    let target = fields.required_text("target");
    let workload = fields.required_text("workload");
    let track = fields.text("track");
    // An unknown cost is `null`, in older records 0.
    let unknown = node.get("dollar_per_1k_tokens").is_some_and(Node::is_null);
    let dollar_per_1k_tokens = match unknown {
        true => Some(0.0),
        false => fields.required_number("dollar_per_1k_tokens", Bounds::POSITIVE),
    };
    let figures = |fields: &mut Fields<'_>| {
        fields.all();
        let tokens = fields.required_number("tokens_per_sec", Bounds::POSITIVE);
        (tokens, fields.required_number("node_power_w", Bounds::POSITIVE))
    };
    let (tokens_per_sec, node_power_w) = if node.get("record").is_some() || node.get("tokens_per_sec").is_none() {
        fields.required_map("record", &["tokens_per_sec", "node_power_w"], figures).unwrap_or_default()
    } else {
        figures(&mut fields)
    };
    fields.finish();
    Some(Entry {
        target: target?,
        workload: workload?,
        track: track.unwrap_or_else(|| "parity".to_owned()),
        tokens_per_sec: tokens_per_sec?,
        node_power_w: node_power_w?,
        dollar_per_1k_tokens: Some(dollar_per_1k_tokens?).filter(|usd| *usd > 0.0),
    })
}

/// Starting point of an optimization, resolved from a record.
#[derive(Debug, Clone)]
pub struct Start {
    /// The target and the workload with their documents.
    pub parts: Parts,
    /// Overrides from the record's knobs, its seed and its `set`.
    pub overrides: Overrides,
    /// The record's track.
    pub track: Option<String>,
}

/// Reads a record as a starting point; reports all problems with it.
pub fn start(path: &Path, library: &Library, problems: &mut Diagnostics) -> Option<Start> {
    let (file, node) = document(path, problems)?;
    let before = problems.errors();
    let mut fields = Fields::open(&file, "", &node, problems)?;
    // The metrics in the record are not needed.
    fields.all();
    let target = fields.required_text("target");
    let workload = fields.required_text("workload");
    let track = fields.text("track");
    let set = fields.texts("set");
    let knobs = fields.required_map("knobs", &[], |knobs| knobs.all().to_vec());
    if knobs.is_none() && node.get("knobs").is_none_or(Node::is_null) {
        fields.missing("knobs");
    }
    let seed = fields.node("seed").cloned();
    let target = target.and_then(|name| found(&mut fields, "target", library.target(&name)));
    let workload = workload.and_then(|name| found(&mut fields, "workload", library.workload(&name)));
    let parts = target.zip(workload).and_then(|(target, workload)| {
        Parts::of(library, &target, &workload)
            .map_err(|problems| problems.iter().for_each(|p| fields.error("target", p.message.clone(), p.help.clone())))
            .ok()
    });
    let mut overrides = Overrides::new();
    match seed {
        // Records of the predecessor have the seed in the file name only.
        None => {
            let message = format!("no seed in the record; using {SEED}");
            fields.warn("seed", message, Some("use --seed to choose another".to_owned()));
        }
        Some(node) => overlay(&mut fields, &mut overrides, "seed", Ok(Knob::Seed), &node, &[]),
    }
    let profile = parts.as_ref().and_then(|parts| parts.profile.as_ref());
    let fabrics = profile.map(|profile| Arc::clone(&profile.fabrics));
    // Old records do not name their engine. For those that do, the same engine is used again.
    let engine = node.get("engine").and_then(Node::text).and_then(Engine::named);
    if let Some(engine) = engine.filter(|engine| parts.as_ref().is_some_and(|parts| parts.engine() != *engine)) {
        overrides.insert(Knob::Engine, Setting::Choice(engine.name().into()));
    }
    for entry in knobs.iter().flatten().filter(|entry| !entry.value.is_null()) {
        let knob = Knob::named(&entry.key);
        // Without a profile the fabrics are unknown, and its absence has been reported already.
        if fabrics.is_none() && knob == Ok(Knob::Fabric) {
            continue;
        }
        overlay(&mut fields, &mut overrides, "knobs", knob, &entry.value, fabrics.as_deref().unwrap_or_default());
    }
    for text in &set {
        match atlas_plan::knob::assignment(text).and_then(|(knob, value)| Ok((knob, knob.parse(&value, &[])?))) {
            Ok((knob, setting)) => drop(overrides.insert(knob, setting)),
            Err(error) => fields.error("set", error.to_string(), None),
        }
    }
    fields.finish();
    if problems.errors() > before {
        return None;
    }
    Some(Start { parts: parts?, overrides, track })
}

/// Turns a lookup failure into a diagnostic at the record's field.
fn found<T>(fields: &mut Fields<'_>, key: &str, result: Result<&Arc<T>, Diagnostic>) -> Option<Arc<T>> {
    result.map(Arc::clone).map_err(|problem| fields.error(key, problem.message, problem.help)).ok()
}

fn overlay(
    fields: &mut Fields<'_>,
    overrides: &mut Overrides,
    key: &str,
    knob: Result<Knob, KnobError>,
    value: &Node,
    fabrics: &[(Arc<str>, f64)],
) {
    match knob.and_then(|knob| Ok((knob, knob.read(value, fabrics)?))) {
        Ok((knob, setting)) => drop(overrides.insert(knob, setting)),
        Err(error) => fields.error(key, error.to_string(), None),
    }
}
