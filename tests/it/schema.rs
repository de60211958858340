//! All built-in documents, and those of the predecessors, against the JSON Schemas of `atlas schema`.

use std::path::{Path, PathBuf};

use atlas_document::parse::parse;
use atlas_document::{Diagnostics, Node};
use atlas_fabric::cli::schema::Document;
use clap::ValueEnum as _;
use serde_json::{Value, json};

/// Keywords that the checker below supports; others would not be checked.
const KNOWN: [&str; 14] = [
    "$schema",
    "title",
    "description",
    "type",
    "enum",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "default",
];

/// Checks a value against the subset of JSON Schema that the schemas use.
fn check(value: &Value, schema: &Value, path: &str, problems: &mut Vec<String>) {
    let Some(rules) = schema.as_object() else { return };
    let mut complain = |what: String| problems.push(format!("{path}: {what}"));
    for (rule, wanted) in rules {
        assert!(KNOWN.contains(&rule.as_str()), "{rule}");
        match rule.as_str() {
            "type" => {
                let kinds: Vec<&str> = match wanted {
                    Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
                    one => one.as_str().into_iter().collect(),
                };
                if !kinds.iter().any(|kind| is(value, kind)) {
                    complain(format!("found {value}, expected {kinds:?}"));
                }
            }
            "enum" if !wanted.as_array().unwrap().contains(value) => {
                complain(format!("{value} is not one of {wanted}"))
            }
            "minimum" if value.as_f64().is_some_and(|number| number < wanted.as_f64().unwrap()) => {
                complain(format!("{value} is less than {wanted}"));
            }
            "exclusiveMinimum" if value.as_f64().is_some_and(|number| number <= wanted.as_f64().unwrap()) => {
                complain(format!("{value} is not more than {wanted}"));
            }
            "maximum" if value.as_f64().is_some_and(|number| number > wanted.as_f64().unwrap()) => {
                complain(format!("{value} is more than {wanted}"));
            }
            "required" => {
                for key in wanted.as_array().unwrap().iter().filter_map(Value::as_str) {
                    if value.as_object().is_some_and(|object| !object.contains_key(key)) {
                        complain(format!("{key} is missing"));
                    }
                }
            }
            _ => {}
        }
    }
    if let Some(choices) = rules.get("anyOf").and_then(Value::as_array) {
        let fits = |choice: &Value| {
            let mut inner = Vec::new();
            check(value, choice, path, &mut inner);
            inner.is_empty()
        };
        if !choices.iter().any(fits) {
            problems.push(format!("{path}: {value} fits no choice"));
        }
    }
    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
        if let Some(items) = rules.get("items") {
            check(item, items, &format!("{path}[{i}]"), problems);
        }
    }
    for (key, item) in value.as_object().into_iter().flatten() {
        match (rules.get("properties").and_then(|known| known.get(key)), rules.get("additionalProperties")) {
            (Some(known), _) => check(item, known, &format!("{path}.{key}"), problems),
            (None, Some(Value::Bool(false))) => problems.push(format!("{path}: unknown key {key}")),
            (None, Some(other)) => check(item, other, &format!("{path}.{key}"), problems),
            (None, None) => {}
        }
    }
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        other => unreachable!("{other}"),
    }
}

fn problems(document: Document, value: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    check(value, &document.schema(), document.name(), &mut problems);
    problems
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    files.sort();
    files
}

/// Rows of a table; blank cells are absent.
fn read_table(path: &Path) -> Value {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let names = reader.headers().unwrap().clone();
    let cell = |text: &str| match (text.parse::<f64>(), text.parse::<bool>()) {
        (Ok(number), _) => json!(number),
        (_, Ok(flag)) => json!(flag),
        _ => json!(text),
    };
    let row = |record: csv::StringRecord| -> serde_json::Value {
        let cells = names.iter().zip(&record).filter(|(_, text)| !text.is_empty());
        Value::Object(cells.map(|(name, text)| (name.to_owned(), cell(text))).collect())
    };
    reader.records().map(|record| row(record.unwrap())).collect()
}

fn read(path: &Path) -> Value {
    if path.extension().is_some_and(|end| end == "csv") {
        return read_table(path);
    }
    let mut diagnostics = Diagnostics::new();
    let text = std::fs::read_to_string(path).unwrap();
    let node: Option<Node> = parse(&path.display().to_string().into(), &text, &mut diagnostics);
    serde_json::to_value(node.unwrap()).unwrap()
}

#[test]
fn every_shipped_document_fits_its_schema() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = |name: &str| vec![root.join(name)];
    let documents = [
        (
            Document::Targets,
            [file("workload/targets.yaml"), file("workload/benchboard/targets.yaml"), file("examples/my_target.yaml")]
                .concat(),
        ),
        (
            Document::Workloads,
            [
                file("workload/workloads.yaml"),
                file("workload/benchboard/workloads.yaml"),
                file("examples/my_workload.yaml"),
            ]
            .concat(),
        ),
        (Document::Profiles, [files("workload/profiles"), files("examples/profiles")].concat()),
        (Document::Accelerators, files("workload/accelerators")),
        (Document::Models, file("workload/models.yaml")),
        (Document::Prices, file("workload/prices.yaml")),
        (Document::Config, file("examples/config.yaml")),
        (Document::Scenarios, file("examples/scenario.json")),
        (Document::Demos, files("demo")),
        (Document::Themes, files("themes")),
        (
            Document::Measurements,
            ["training", "inference", "serving_latency"]
                .map(|kind| root.join(format!("workload/measurements/{kind}.csv")))
                .to_vec(),
        ),
    ];
    assert_eq!(documents.len(), Document::value_variants().len());
    for (document, paths) in documents {
        assert!(!paths.is_empty());
        for path in paths {
            let found = problems(document, &read(&path));
            assert!(found.is_empty(), "{}:\n{}", path.display(), found.join("\n"));
        }
    }
}

#[test]
fn schema_violations_are_detected() {
    let target = json!([{"name": "a", "vendor": "b", "accelerators_per_node": 8, "num_nodes": 1, "memory_gb_per_accel": 80,
        "cost": {"hourly_usd": 1.0, "energy_watts_node": 1, "pue": 1.2}}]);
    assert_eq!(problems(Document::Targets, &target), Vec::<String>::new());
    for (path, value, part) in [
        ("/0/num_nodes", json!(0), "less than 1"),
        ("/0/num_nodes", json!(1.5), "expected [\"integer\""),
        ("/0/cost/pue", json!("x"), "expected [\"number\""),
        ("/0/cost", json!({}), "pue is missing"),
        ("/0/vendor", json!([]), "expected"),
    ] {
        let mut broken = target.clone();
        *broken.pointer_mut(path).unwrap() = value;
        let found = problems(Document::Targets, &broken).join("\n");
        assert!(found.contains(part), "{path}: {found}");
    }
    let row = |cell: &str, value: f64| json!([{"accelerator": "h100", "tp": 8, cell: value}]);
    assert_eq!(problems(Document::Measurements, &row("mfu", 0.4)), Vec::<String>::new());
    assert!(problems(Document::Measurements, &row("mfu", 0.0)).join("").contains("is not more than 0"));
    assert!(problems(Document::Measurements, &row("tp", 0.5)).join("").contains("integer"));
    let unknown = json!([{"name": "w", "sequence": {"prompt": 1, "generate": 1}, "parallelism": {"tpp": 8}}]);
    assert!(problems(Document::Workloads, &unknown).join("").contains("unknown key tpp"));
}

/// The reader accepts all keys of a schema: an entry with every key causes no "unknown key".
#[test]
fn every_schema_key_is_accepted_by_the_reader() {
    for (document, decode) in [(Document::Targets, "targets"), (Document::Workloads, "workloads")] {
        let entry = example(&document.schema()["items"]);
        let text = serde_json::to_string(&json!([entry])).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(format!("{decode}.yaml"));
        std::fs::write(&path, text).unwrap();
        let sources = atlas_document::Sources {
            targets: (decode == "targets").then(|| path.clone()),
            workloads: (decode == "workloads").then(|| path.clone()),
            ..atlas_document::Sources::built_in()
        };
        let library = atlas_config::library::Library::load(&sources, None);
        let described: Vec<String> = library.problems().iter().map(ToString::to_string).collect();
        assert!(!described.iter().any(|described| described.contains("unknown key")), "{described:#?}");
    }
}

/// A value with every key of a schema.
fn example(schema: &Value) -> Value {
    let kind = schema.get("type").map(|kind| kind.as_array().map_or(kind.clone(), |kinds| kinds[0].clone()));
    let smallest = schema.get("minimum").cloned().unwrap_or(json!(1));
    match kind.as_ref().and_then(Value::as_str) {
        Some("object") => {
            let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            Value::Object(fields.map(|(name, schema)| (name.clone(), example(schema))).collect())
        }
        Some("array") => json!([example(&schema["items"])]),
        Some("boolean") => json!(true),
        Some("number" | "integer") => smallest,
        _ => schema.get("enum").map_or(json!("x"), |words| words[0].clone()),
    }
}
