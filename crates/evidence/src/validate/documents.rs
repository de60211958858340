//! Converts a measured row to the documents that a user would write for it.

use atlas_catalog::{Accelerator, Catalog};
use serde_json::{Map, Value, json};

use super::MeasurementKind;
use super::columns::{COLUMNS, ColumnTarget};
use super::table::Row;

/// Target and workload of a row, as JSON documents like those in files and for `atlas run --batch`.
#[derive(Debug, Clone, PartialEq)]
pub struct Documents {
    /// Target document.
    pub target: Value,
    /// Workload document.
    pub workload: Value,
    /// Number of accelerators of the run.
    pub accelerators: f64,
}

impl Documents {
    /// Returns the line for `atlas run --batch`.
    #[must_use]
    pub fn line(&self, id: &str) -> Value {
        json!({ "id": id, "target": self.target, "workload": self.workload, "knobs": { "engine": "analytical" } })
    }

    /// Removes the release from the software.
    #[must_use]
    pub fn without_release(mut self) -> Documents {
        if let Some(Value::String(software)) = self.workload.get_mut("software") {
            *software = super::family(software).to_owned();
        }
        self
    }

    /// Applies these documents over others: their values take precedence, and missing values come from `target` and
    /// `workload`. `model`: whether these documents define the model themselves, rather than by a placeholder.
    #[must_use]
    pub fn merged_over(mut self, target: Value, workload: Value, model: bool) -> Documents {
        let mut base = workload;
        if let Value::Object(base) = &mut base {
            // A run is a single workload without the phases of a day.
            for key in ["phases", "schedule"] {
                base.remove(key);
            }
            let defines = ["model", "architecture", "params"];
            let loser = if model { Some(&mut *base) } else { self.workload.as_object_mut() };
            if let Some(loser) = loser {
                defines.iter().for_each(|key| drop(loser.remove(*key)));
            }
            // The number of replicas follows from the accelerators of the run.
            if let Some(Value::Object(parallelism)) = base.get_mut("parallelism") {
                parallelism.remove("dp");
            }
        }
        let mut own = target;
        merge_over(&mut base, self.workload);
        if let Value::Object(stated) = self.target {
            let size = ["num_nodes", "accelerators_per_node"];
            let size = stated.into_iter().filter(|(key, _)| size.contains(&key.as_str())).collect();
            merge_over(&mut own, Value::Object(size));
        }
        Documents { target: own, workload: base, accelerators: self.accelerators }
    }

    /// Converts a row to documents.
    ///
    /// # Errors
    /// Returns which required values are missing in the row.
    pub fn of(row: &Row, kind: MeasurementKind, catalog: &Catalog) -> Result<Documents, String> {
        let mut workload = Map::new();
        let mut target = Map::new();
        let mut architecture = Map::new();
        for column in COLUMNS {
            let text = row.text(column.name);
            // A size of zero, or an infinite rate, counts as not given.
            let nothing = text.is_empty() || row.number(column.name) == Some(0.0) || text.eq_ignore_ascii_case("inf");
            if nothing {
                continue;
            }
            let number = || number(row, column.name);
            match column.place {
                ColumnTarget::Record | ColumnTarget::Measured | ColumnTarget::Special => {}
                ColumnTarget::Target(path) => set(&mut target, path, number()?),
                ColumnTarget::Number(path) => set(&mut workload, path, number()?),
                ColumnTarget::Architecture(path) => set(&mut architecture, path, number()?),
                ColumnTarget::Word(path) => set(&mut workload, path, json!(text.to_ascii_lowercase())),
                ColumnTarget::Flag(path) => set(&mut workload, path, json!(flag(row, column.name)?)),
                ColumnTarget::ArchitectureFlag(path) => set(&mut architecture, path, json!(flag(row, column.name)?)),
            }
        }
        let accelerators = accelerators(row, kind)?;
        describe_target(row, catalog, accelerators, &mut target)?;
        describe_model(row, catalog, architecture, &mut workload)?;
        describe_software(row, &mut workload);
        describe_run(row, kind, &mut workload)?;
        Ok(Documents { target: Value::Object(target), workload: Value::Object(workload), accelerators })
    }
}

/// Merges a document over another, recursively for mappings.
fn merge_over(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge_over(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

/// Sets the value at a path, creating mappings as needed.
fn set(map: &mut Map<String, Value>, path: &[&str], value: Value) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut at = map;
    for parent in parents {
        let next = at.entry((*parent).to_owned()).or_insert_with(|| Value::Object(Map::new()));
        match next {
            Value::Object(inner) => at = inner,
            _ => return,
        }
    }
    at.insert((*last).to_owned(), value);
}

/// Returns a number as JSON, as an integer if it is whole.
fn number(row: &Row, column: &str) -> Result<Value, String> {
    let value = row
        .number(column)
        .ok_or_else(|| format!("{column}: found \"{}\", expected a finite number", row.text(column)))?;
    Ok(if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) })
}

fn flag(row: &Row, column: &str) -> Result<bool, String> {
    row.flag(column).ok_or_else(|| format!("{column}: found \"{}\", expected true or false", row.text(column)))
}

/// Number of accelerators of the run: as given, or the product of the layout.
fn accelerators(row: &Row, kind: MeasurementKind) -> Result<f64, String> {
    if let Some(stated) = row.positive("num_accelerators") {
        return Ok(stated);
    }
    let of = |column: &str| row.positive(column).unwrap_or(1.0);
    let pool = |prefix: &str| {
        let of = |name: &str| row.positive(&format!("{prefix}_{name}"));
        Some(of("workers")? * of("tp").unwrap_or(1.0) * of("pp").unwrap_or(1.0) * of("attention_dp").unwrap_or(1.0))
    };
    if let (Some(prefill), Some(decode)) = (pool("prefill"), pool("decode")) {
        return Ok(prefill + decode);
    }
    let stated = row.positive("tp").is_some() || row.positive("attention_dp").is_some();
    if kind == MeasurementKind::Training || !stated {
        return Err("num_accelerators is not stated".to_owned());
    }
    Ok(of("tp") * of("pp") * of("attention_dp") * of("dp"))
}

/// Number of nodes of the run, and accelerators per node: as given, or otherwise eight, or up to sixteen if they share
/// a scale-up link.
fn nodes(row: &Row, sheet: &Accelerator, accelerators: f64) -> (f64, f64) {
    let joined = sheet.scale_up.as_ref().and_then(|link| link.domain_size).map_or(0.0, f64::from);
    let usual = if joined <= 16.0 { joined.max(8.0) } else { 8.0 };
    let most = row.positive("accelerators_per_node").unwrap_or(usual).min(accelerators).max(1.0);
    let mut per_node = most.floor();
    // Pools have explicit sizes and leave the rest of a node idle; otherwise, replicas would fill it.
    if row.positive("decode_workers").is_some() {
        return ((accelerators / per_node).ceil(), per_node);
    }
    while per_node > 1.0 && (accelerators / per_node).fract() != 0.0 {
        per_node -= 1.0;
    }
    (accelerators / per_node, per_node)
}

fn describe_target(
    row: &Row,
    catalog: &Catalog,
    accelerators: f64,
    target: &mut Map<String, Value>,
) -> Result<(), String> {
    let stated = row.text("accelerator");
    let sheet = catalog
        .accelerator(stated)
        .ok()
        .or_else(|| catalog.find_accelerator_by_description(stated, None))
        .ok_or_else(|| format!("accelerator \"{stated}\" is not in the catalog"))?;
    if accelerators.fract() != 0.0 {
        return Err(format!("num_accelerators: found {accelerators}, expected a whole number"));
    }
    let (nodes, per_node) = nodes(row, &sheet, accelerators);
    for (key, value) in [
        ("name", json!("measured")),
        ("vendor", json!(sheet.vendor)),
        ("accelerator", json!(sheet.id)),
        ("accelerators_per_node", json!(per_node as i64)),
        ("num_nodes", json!(nodes as i64)),
        ("memory_gb_per_accel", json!(sheet.memory.gb)),
        ("cost", json!({ "hourly_usd": 0, "energy_watts_node": 0, "pue": 1 })),
    ] {
        target.insert(key.to_owned(), value);
    }
    if target.contains_key("interconnect") {
        let kind = sheet.scale_up.as_ref().and_then(|link| link.kind.clone()).unwrap_or_else(|| "link".to_owned());
        set(target, &["interconnect", "type"], json!(kind));
    }
    Ok(())
}

fn describe_model(
    row: &Row,
    catalog: &Catalog,
    mut architecture: Map<String, Value>,
    workload: &mut Map<String, Value>,
) -> Result<(), String> {
    let stated = row.text("model");
    let known = (!stated.is_empty()).then(|| catalog.model(stated).ok()).flatten();
    if let Some(model) = known {
        workload.insert("model".to_owned(), json!(model.id));
        // Cells of a catalog model contain only what differs from it.
        for (path, name) in [
            (&["hidden_size"][..], "hidden_size"),
            (&["n_layers"], "n_layers"),
            (&["heads", "query"], "n_heads"),
            (&["heads", "kv"], "n_kv_heads"),
            (&["mlp", "ffn_hidden_size"], "ffn_hidden_size"),
            (&["vocab_size"], "vocab_size"),
        ] {
            let found = path.iter().try_fold(None, |at: Option<&Value>, key| {
                let next = match at {
                    None => architecture.get(*key),
                    Some(value) => value.get(key),
                };
                next.map(Some)
            });
            if let Some(Some(value)) = found {
                set(workload, &["params", name], value.clone());
            }
        }
        return Ok(());
    }
    if !architecture.contains_key("n_layers") || !architecture.contains_key("hidden_size") {
        return Err(format!("model \"{stated}\" is not in the catalog, and its architecture is not stated"));
    }
    // Defaults for missing cells as in GPT: heads of 128, a plain MLP four times as wide as the hidden size.
    let hidden = row.positive("hidden_size").unwrap_or(1.0);
    let heads = row.positive("n_heads").unwrap_or((hidden / 128.0).round().max(1.0));
    let ffn = row.positive("ffn_hidden_size").unwrap_or(4.0 * hidden);
    let mut or = |path: &[&str], stated: bool, value: Value| {
        if !stated {
            set(&mut architecture, path, value);
        }
    };
    or(&["heads", "query"], row.positive("n_heads").is_some(), json!(heads as i64));
    or(&["mlp", "ffn_hidden_size"], row.positive("ffn_hidden_size").is_some(), json!(ffn as i64));
    or(&["mlp", "gated"], row.flag("gated_mlp").is_some(), json!((ffn / hidden - 4.0).abs() > 0.01));
    or(&["vocab_size"], row.positive("vocab_size").is_some(), json!(51_200));
    or(
        &["moe", "ffn_hidden_size"],
        row.positive("n_experts").is_none() || row.positive("moe_ffn_hidden_size").is_some(),
        json!(ffn as i64),
    );
    let longest = row.positive("seq_len").unwrap_or(131_072.0).max(1.0);
    architecture.insert("id".to_owned(), json!(if stated.is_empty() { "measured" } else { stated }));
    architecture.insert("max_context".to_owned(), json!(longest as i64));
    if !row.text("linear_kind").is_empty() {
        let kind = row.text("linear_kind");
        set(&mut architecture, &["linear", "type"], json!(if kind == "gated_delta" { "delta" } else { kind }));
    }
    workload.insert("architecture".to_owned(), Value::Object(architecture));
    Ok(())
}

/// Returns the load of a row that does not give one. Without concurrency and request rate, the measurement is the rate
/// at which a backlog is served. A concurrency that equals the largest batch is a static batch.
fn unstated_load(row: &Row) -> Option<&'static str> {
    if !row.text("load").is_empty() {
        return None;
    }
    let endless = row.text("request_rate").eq_ignore_ascii_case("inf");
    match (row.positive("concurrency"), row.positive("request_rate")) {
        (None, None) => Some("burst"),
        (Some(concurrency), None) if !endless && row.positive("max_num_seqs") == Some(concurrency) => Some("static"),
        _ => None,
    }
}

fn describe_software(row: &Row, workload: &mut Map<String, Value>) {
    let (family, release) = (row.text("software"), row.text("software_version"));
    if family.is_empty() {
        return;
    }
    let joined = !release.is_empty() && !family.contains('@');
    let software = if joined { format!("{family}@{release}") } else { family.to_owned() };
    workload.insert("software".to_owned(), json!(software));
}

fn describe_run(row: &Row, kind: MeasurementKind, workload: &mut Map<String, Value>) -> Result<(), String> {
    workload.insert("name".to_owned(), json!("measured"));
    let mode = if kind == MeasurementKind::Training { "training" } else { "inference" };
    workload.insert("mode".to_owned(), json!(mode));
    let need = |column: &str| match row.positive(column) {
        Some(_) => Ok(()),
        None => Err(format!("{column} is not stated")),
    };
    if kind == MeasurementKind::Training {
        need("seq_len")?;
        set(workload, &["sequence", "generate"], json!(0));
        if !row.text("cuda_graphs").is_empty() {
            set(workload, &["runtime_tuning", "graph_capture"], json!(row.text("cuda_graphs")));
        }
        return Ok(());
    }
    need("input_len")?;
    need("output_len")?;
    if !row.text("cuda_graphs").is_empty() {
        set(workload, &["runtime_tuning", "cuda_graphs"], json!(flag(row, "cuda_graphs")?));
    }
    match row.text("executor") {
        "" => {}
        word => set(workload, &["serving", "python_executor"], json!(word == "python")),
    }
    if let Some(load) = unstated_load(row) {
        set(workload, &["serving", "load"], json!(load));
    }
    if let Some(dp) = row.positive("dp") {
        set(workload, &["parallelism", "dp"], json!(dp as i64));
    }
    // The average number of concurrent requests, as measured by sources, is not always whole.
    if let Some(average) = row.positive("concurrency").filter(|average| average.fract() != 0.0) {
        set(workload, &["serving", "concurrency"], json!(average.round().max(1.0) as i64));
    }
    // Both pools or none: a deployment without disaggregation has no workers of either.
    let split = row.positive("prefill_workers").is_some() && row.positive("decode_workers").is_some();
    if let Some(Value::Object(serving)) = workload.get_mut("serving").filter(|_| !split) {
        serving.remove("pools");
    }
    Ok(())
}
