//! Scenarios and hardware profiles of the predecessor dashboard, as JSON: one scenario, one profile, lists of either,
//! or `{"scenarios": […], "hardware": […]}`. A scenario may contain its hardware profiles.

use std::sync::Arc;

use super::ConvertedEntries;
use super::tree::{self, Tree};
use atlas_catalog::Catalog;
use atlas_core::sort;
use atlas_document::decode::{Bounds, Fields};
use atlas_document::{Diagnostic, Diagnostics, Node, Position, Severity, Value};

/// Number of devices per node assumed for a hardware profile, which describes one device. Usual for GPU servers and TPU
/// slices.
pub const DEVICES_PER_NODE: f64 = 8.0;
/// Share of a node's power that its accelerators draw (a DGX H100's: 5.6 of 10.2 kW).
const ACCELERATOR_POWER_SHARE: f64 = 0.55;
const ABOVE_ZERO: Bounds = Bounds { min: 1e-9, ..Bounds::POSITIVE };

/// Whether a document was written by the dashboard.
#[must_use]
pub fn is_document(root: &Node) -> bool {
    let entries = root.items().unwrap_or(std::slice::from_ref(root));
    let meant = |node: &Node| ["model", "parallelism", "workload"].iter().any(|key| node.get(key).is_some());
    let scenarios = root.get("scenarios").and_then(Node::items).unwrap_or_default();
    let lists = scenarios.iter().any(meant) || root.get("hardwareProfiles").is_some();
    lists || entries.iter().any(|entry| is_scenario(entry) || is_profile(entry))
}

fn is_scenario(node: &Node) -> bool {
    let described = |key| node.get(key).is_some_and(|part: &Node| part.entries().is_some());
    described("model") && described("parallelism") && described("workload")
}

fn is_profile(node: &Node) -> bool {
    node.get("fp16Tflops").is_some() || node.get("vramSizeGB").is_some()
}

/// Converts a document of the dashboard. Converted targets have enough nodes for the largest
/// scenario.
pub(super) fn read(file: &Arc<str>, root: &Node, catalog: &Catalog, problems: &mut Diagnostics) -> ConvertedEntries {
    let mut scenarios: Vec<&Node> = Vec::new();
    let mut profiles: Vec<&Node> = Vec::new();
    for part in parts(root) {
        if is_profile(part) {
            profiles.push(part);
            continue;
        }
        scenarios.push(part);
        for hardware in entries_under(part, &["hardware", "hardwareProfile", "hardwareProfiles"]) {
            let id = hardware.get("id").and_then(Node::text);
            if !profiles.iter().any(|known| known.get("id").and_then(Node::text) == id) {
                profiles.push(hardware);
            }
        }
    }
    let mut foreign = ConvertedEntries::default();
    let mut devices: f64 = 1.0;
    for node in scenarios {
        if let Some((workload, needs)) = scenario(file, node, catalog, problems) {
            foreign.workloads.push(workload);
            devices = devices.max(needs);
        }
    }
    let nodes = (devices / DEVICES_PER_NODE).ceil();
    foreign.targets = profiles.iter().filter_map(|node| profile(file, node, nodes, catalog, problems)).collect();
    foreign
}

/// Returns the scenarios and profiles at the top level of a document, in order.
fn parts(root: &Node) -> Vec<&Node> {
    if let Some(items) = root.items() {
        return items.iter().collect();
    }
    if is_scenario(root) || is_profile(root) {
        return vec![root];
    }
    let of = |keys: &[&str]| entries_under(root, keys);
    let mut all = of(&["hardware", "hardwareProfiles"]);
    all.extend(of(&["scenarios", "scenario"]));
    all
}

/// Returns the entries under the first key that is present, whose value is one entry or a list of entries.
fn entries_under<'n>(node: &'n Node, keys: &[&str]) -> Vec<&'n Node> {
    let found = keys.iter().find_map(|key| node.get(key));
    let whole = |node: &&Node| node.entries().is_some();
    found.map_or_else(Vec::new, |found| match found.items() {
        Some(items) => items.iter().filter(whole).collect(),
        None => Some(found).into_iter().filter(whole).collect(),
    })
}

/// Converts a name to the spelling of ids: lower case, with dashes.
fn id_from_name(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() || c == '.' {
            out.push(c);
        } else if !out.ends_with('-') {
            out.push('-');
        }
    }
    out.trim_matches('-').to_owned()
}

/// Returns the id of an entry, by default its name converted by [`id_from_name`], and the name as written.
fn name_of(fields: &mut Fields<'_>) -> Option<(String, Option<String>)> {
    let id = fields.text("id").or_else(|| fields.text("scenarioId"));
    let name = fields.text("name");
    let named = id.or_else(|| name.as_deref().map(id_from_name)).filter(|named| !named.is_empty());
    if named.is_none() {
        fields.missing("id");
    }
    Some((named?, name))
}

/// Keys of a scenario or profile that its fingerprint excludes.
const UNHASHED_KEYS: [&str; 4] = [EXPORT_KEY, "hardware", "result", "results"];
/// Key under which an export stores the original entry and the fingerprint of the exported document.
pub const EXPORT_KEY: &str = "atlas";

/// Computes a fingerprint of a scenario or profile, which is used to detect changes after an export.
#[must_use]
pub fn fingerprint(document: &serde_json::Value) -> String {
    let own = document.as_object().map(|fields| {
        let own = fields.iter().filter(|(name, _)| !UNHASHED_KEYS.contains(&name.as_str()));
        sort::collect_unsorted::<serde_json::Map<_, _>, _>(own.map(|(name, value)| (name.clone(), value.clone())))
    });
    let text = serde_json::to_string(&own.unwrap_or_default()).unwrap_or_default();
    format!("{:016x}", atlas_document::fingerprint::fingerprint(text.as_bytes()))
}

/// Returns the original entry of an exported document, if the document was not changed since. If it was changed, adds a
/// warning and returns `None`, so that the entry is built from the document.
fn unchanged_original(file: &Arc<str>, node: &Node, problems: &mut Diagnostics) -> Option<Node> {
    let kept = node.get(EXPORT_KEY)?;
    let entry = kept.get("entry").filter(|entry| entry.get("name").is_some())?;
    let found = serde_json::to_value(node).ok().map(|document| fingerprint(&document));
    if kept.get("of").and_then(Node::text) == found.as_deref() {
        return Some(entry.clone());
    }
    problems.push(Diagnostic {
        severity: Severity::Warning,
        file: Arc::clone(file),
        at: kept.at,
        path: EXPORT_KEY.to_owned(),
        message: "the document was changed after it was exported: only the dashboard's fields are read".to_owned(),
        help: Some(format!(
            "settings that exist only in Atlas are lost; `{EXPORT_KEY}` contains their values at export"
        )),
    });
    None
}

/// Converts a hardware profile to a target's entry.
fn profile(file: &Arc<str>, node: &Node, nodes: f64, catalog: &Catalog, problems: &mut Diagnostics) -> Option<Node> {
    if let Some(entry) = unchanged_original(file, node, problems) {
        return Some(entry);
    }
    let before = problems.errors();
    let label = node.get("id").and_then(Node::text).unwrap_or("hardware").to_owned();
    let mut fields = Fields::open(file, label, node, problems)?;
    let name = name_of(&mut fields);
    let vendor = fields.required_text("vendor");
    fields.choice("type", &[("gpu", ()), ("tpu", ()), ("other", ()), ("cpu", ()), ("asic", ())]);
    fields.required_number("fp16Tflops", ABOVE_ZERO);
    let memory = fields.required_number("vramSizeGB", Bounds { max: 1e6, ..ABOVE_ZERO });
    fields.required_number("interconnectBandwidthGBps", Bounds::POSITIVE);
    let price = fields.required_number("costPerHour", Bounds::POSITIVE);
    for kept in ["smCount", "fp32Tflops", "int8Tops", "hbmBandwidthGBps", "podSize"] {
        fields.number(kept, Bounds::POSITIVE);
    }
    for kept in ["interconnect", "notes"] {
        fields.text(kept);
    }
    fields.node(EXPORT_KEY);
    fields.texts("frameworks");
    let (at, named) = (fields.at(), name.as_ref().and_then(|(_, named)| named.clone()));
    let names: Vec<String> = name.iter().map(|(id, _)| id.clone()).chain(named.as_deref().map(id_from_name)).collect();
    let known = names.iter().find_map(|name| catalog.accelerator(name).ok());
    let watts = known.as_ref().and_then(|sheet| sheet.tdp_w).unwrap_or_default();
    if known.is_none() {
        let help = "only the engine benchboard can use it; for other engines, add `accelerator:` with a catalog id";
        fields.warn("", "the catalog has no accelerator with this name", Some(help.to_owned()));
    }
    fields.finish();
    if problems.errors() > before {
        return None;
    }
    let (name, price) = (name?.0, price?);
    let place = |key: &str| node.get(key).map_or(at, |node| node.at);
    let cost = Tree::default()
        .number("hourly_usd", price * DEVICES_PER_NODE, place("costPerHour"))
        .number("energy_watts_node", (watts * DEVICES_PER_NODE / ACCELERATOR_POWER_SHARE).round(), at)
        .number("pue", 1.0, at);
    let tree = Tree::default().text("name", name, place("id")).put("description", node.get("name").cloned()).text(
        "vendor",
        vendor?,
        place("vendor"),
    );
    let tree = match known {
        Some(sheet) => tree.text("accelerator", sheet.id.clone(), place("id")),
        None => tree,
    };
    let tree = tree
        .number("accelerators_per_node", DEVICES_PER_NODE, at)
        .number("num_nodes", nodes, at)
        .number("memory_gb_per_accel", memory?, place("vramSizeGB"))
        .map("cost", cost, at)
        .put("benchboard", node.clone());
    Some(tree.done(at))
}

/// The model of a scenario.
struct Model {
    name: Option<String>,
    hidden_size: Option<f64>,
    layers: Option<f64>,
    context_tokens: f64,
    precision: &'static str,
}

impl Model {
    fn decode(fields: &mut Fields<'_>) -> Option<Model> {
        let name = fields.text("name");
        fields.required_number("parameters", ABOVE_ZERO);
        fields.choice("architectureType", &[("dense", ()), ("moe", ())]);
        fields.number("numExperts", Bounds::NATURAL);
        let hidden_size = fields.number("hiddenSize", Bounds::NATURAL);
        let layers = fields.number("numLayers", Bounds { max: 1e6, ..Bounds::NATURAL });
        fields.number("numHeads", Bounds::NATURAL);
        fields.number("vocabularySize", Bounds::NATURAL);
        let context_tokens = fields.required_number("contextLength", Bounds { max: 1e9, ..Bounds::COUNT });
        let precision = fields.choice("precision", &["fp32", "fp16", "bf16", "int8", "fp8"].map(|name| (name, name)));
        if precision == Some("fp8") {
            let message = "found \"fp8\", for which the dashboard returns NaN";
            fields.warn("precision", message, Some("use another engine".to_owned()));
        }
        if precision.is_none() && !fields.has("precision") {
            fields.missing("precision");
        }
        Some(Model { name, hidden_size, layers, context_tokens: context_tokens?, precision: precision? })
    }

    /// Adds the model: its id in the catalog, or the fields of the document.
    fn write(&self, tree: Tree, source: &Source<'_>, catalog: &Catalog) -> Tree {
        let name = self.name.as_deref();
        let known = name.and_then(|name| catalog_model(catalog, &id_from_name(name), self.hidden_size, self.layers));
        if let Some(id) = known {
            return tree.text("model", id, source.place(&["model", "name"]));
        }
        let of = |key: &str| source.node.at_path(&["model", key]).cloned();
        let or_zero = |value: Option<Node>| value.unwrap_or(tree::number(0.0, source.at));
        let params = Tree::default()
            .put("hidden_size", or_zero(of("hiddenSize")))
            .put("n_layers", or_zero(of("numLayers")))
            .put("n_heads", of("numHeads"))
            .put("vocab_size", of("vocabularySize"));
        tree.map("params", params, source.place(&["model"]))
    }
}

/// How a scenario distributes its model.
struct Parallelism {
    dp: f64,
    tp: f64,
    pp: f64,
    ep: Option<f64>,
    checkpointing: bool,
    sequence: Option<bool>,
}

impl Parallelism {
    fn decode(fields: &mut Fields<'_>) -> Option<Parallelism> {
        let ranks = Bounds { max: 1e6, ..Bounds::COUNT };
        let dp = fields.required_number("dataParallel", ranks);
        let tp = fields.required_number("tensorParallel", ranks);
        let pp = fields.required_number("pipelineParallel", ranks);
        let ep = fields.number("expertParallel", ranks);
        fields.number("gradientAccumulationSteps", Bounds::COUNT);
        let checkpointing = fields.boolean("activationCheckpointing").unwrap_or(false);
        let sequence = fields.boolean("sequenceParallel");
        Some(Parallelism { dp: dp?, tp: tp?, pp: pp?, ep, checkpointing, sequence })
    }

    fn devices(&self) -> f64 {
        self.dp * self.tp * self.pp
    }

    fn tree(&self, source: &Source<'_>) -> Tree {
        let place = |key: &str| source.place(&["parallelism", key]);
        let sequence = self.sequence.map(|on| Node { value: Value::Bool(on), at: place("sequenceParallel") });
        Tree::default()
            .number("tp", self.tp, place("tensorParallel"))
            .number("pp", self.pp, place("pipelineParallel"))
            .number("dp", self.dp, place("dataParallel"))
            .number("ep", self.ep, place("expertParallel"))
            .put("sp", sequence)
    }
}

/// Kind and batch of a scenario.
struct Work {
    inference: bool,
    batch: f64,
    micro_batch: Option<f64>,
}

impl Work {
    fn decode(fields: &mut Fields<'_>) -> Option<Work> {
        let kind = fields.choice("type", &[("training", false), ("inference", true)]);
        if !fields.has("type") {
            fields.missing("type");
        }
        let batch = fields.required_number("batchSize", Bounds { max: 1e9, ..Bounds::COUNT });
        let micro_batch = fields.number("microBatchSize", Bounds { max: 1e6, ..Bounds::NATURAL });
        fields.text("targetMetric");
        Some(Work { inference: kind?, batch: batch?, micro_batch: micro_batch.filter(|&micro| micro > 0.0) })
    }

    /// Adds the batch: concurrent requests of inference, sequences of a training step.
    fn write(&self, tree: Tree, source: &Source<'_>) -> Tree {
        let micro = self.micro_batch.unwrap_or(self.batch);
        let micro_at = source.place(&["workload", "microBatchSize"]);
        let batch_at = source.place(&["workload", "batchSize"]);
        if self.inference {
            let tuning = Tree::default().number("microbatch", micro, micro_at);
            let serving = Tree::default().number("concurrency", self.batch, batch_at);
            tree.map("serving", serving, source.at).map("runtime_tuning", tuning, source.at)
        } else {
            let batch = Tree::default().number("micro", micro, micro_at).number("global", self.batch, batch_at);
            tree.map("batch", batch, source.at)
        }
    }
}

/// A document and the position of values that it does not contain.
struct Source<'n> {
    node: &'n Node,
    at: Position,
}

impl Source<'_> {
    fn place(&self, path: &[&str]) -> Position {
        self.node.at_path(path).map_or(self.at, |node| node.at)
    }
}

/// Keys of a scenario that are known, but not converted.
const UNCONVERTED_KEYS: [&str; 13] = [
    "hardware",
    "hardwareProfile",
    "hardwareProfiles",
    "hardwareId",
    "hardwareIds",
    "result",
    "results",
    EXPORT_KEY,
    "createdAt",
    "updatedAt",
    "tags",
    "notes",
    "description",
];

/// Converts a scenario to a workload's entry. Also returns the number of devices it needs.
fn scenario(file: &Arc<str>, node: &Node, catalog: &Catalog, problems: &mut Diagnostics) -> Option<(Node, f64)> {
    if let Some(entry) = unchanged_original(file, node, problems) {
        return Some((entry, 1.0));
    }
    let before = problems.errors();
    let label = ["id", "scenarioId", "name"].iter().find_map(|key| node.get(key).and_then(Node::text));
    let mut fields = Fields::open(file, label.unwrap_or("scenario").to_owned(), node, problems)?;
    let named = name_of(&mut fields);
    for key in UNCONVERTED_KEYS {
        fields.node(key);
    }
    let model = fields.required_map("model", &["parameters", "contextLength", "precision"], Model::decode);
    let needed = ["dataParallel", "tensorParallel", "pipelineParallel"];
    let parallelism = fields.required_map("parallelism", &needed, Parallelism::decode);
    let work = fields.required_map("workload", &["type", "batchSize"], Work::decode);
    let source = Source { node, at: fields.at() };
    fields.finish();
    if problems.errors() > before {
        return None;
    }
    let (model, parallelism, work, (name, title)) = (model.flatten()?, parallelism.flatten()?, work.flatten()?, named?);
    let place = |path: &[&str]| source.place(path);
    let title = title.map(|title| Node { value: Value::Text(title.into()), at: place(&["name"]) });
    let mode = if work.inference { "inference" } else { "training" };
    let tree = Tree::default().text("name", name, place(&["id"])).put("description", title).text(
        "mode",
        mode,
        place(&["workload", "type"]),
    );
    let tree = model.write(tree, &source, catalog);
    // The dashboard has one length, whereas other engines distinguish prompt and output. Half of it is assumed to be
    // the output.
    let output = if work.inference { (model.context_tokens / 2.0).floor() } else { 0.0 };
    let length = place(&["model", "contextLength"]);
    let prompt = model.context_tokens - output;
    let sequence = Tree::default().number("prompt", prompt, length).number("generate", output, length);
    let precision = Tree::default().text("weights", model.precision, place(&["model", "precision"]));
    let tree = tree
        .map("sequence", sequence, source.at)
        .map("parallelism", parallelism.tree(&source), place(&["parallelism"]))
        .map("precision", precision, source.at);
    let recompute = if parallelism.checkpointing { "full" } else { "none" };
    let tree = work
        .write(tree, &source)
        .text("recompute", recompute, place(&["parallelism", "activationCheckpointing"]))
        .put("benchboard", dashboard_fields(node));
    Some((tree.done(source.at), parallelism.devices()))
}

/// Returns the fields that have no equivalent outside of the dashboard: its model, the target metric and the gradient
/// accumulation steps.
fn dashboard_fields(node: &Node) -> Option<Node> {
    let model = node.get("model")?;
    let more = Tree::default()
        .put("targetMetric", node.at_path(&["workload", "targetMetric"]).cloned())
        .put("gradientAccumulationSteps", node.at_path(&["parallelism", "gradientAccumulationSteps"]).cloned());
    Some(model.merged(&more.done(model.at)))
}

/// Returns the id of the catalog's model with this name, unless its hidden size or number of layers differs.
fn catalog_model(catalog: &Catalog, name: &str, hidden: Option<f64>, layers: Option<f64>) -> Option<String> {
    // `LLaMA 7B` may be Llama 1 or Llama 2, which have the same architecture.
    let spelt = [name.to_owned(), name.replace("llama-", "llama-2-")];
    let model = spelt.iter().find_map(|name| catalog.model(name).ok())?;
    let same = |said: Option<f64>, known: f64| said.is_none_or(|said| said == 0.0 || said == known);
    let network = model.transformer()?;
    (same(hidden, f64::from(network.hidden_size)) && same(layers, f64::from(network.n_layers)))
        .then(|| model.id.clone())
}
