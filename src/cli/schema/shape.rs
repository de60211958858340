//! Building blocks of schemas.

use serde_json::{Map, Value, json};

use atlas_document::decode::Bounds;
use atlas_plan::knob::{FileLocation, KNOBS, Knob, Spec, ValueType};

/// Name and schema of a field.
pub(super) type Field = (&'static str, Value);

/// A top-level document.
pub(super) fn document(mut schema: Value, title: &str) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        schema.insert("title".to_owned(), json!(title));
    }
    schema
}

/// A list of entries.
pub(super) fn list(entry: Value) -> Value {
    json!({"type": "array", "items": entry})
}

/// A mapping that allows only these fields; null means absent.
pub(super) fn map(required: &[&str], fields: impl IntoIterator<Item = Field>) -> Value {
    closed(required, &mut fields.into_iter())
}

/// [`map`] without generics, so that it is compiled only once.
fn closed(required: &[&str], fields: &mut dyn Iterator<Item = Field>) -> Value {
    let mut properties = Map::new();
    for (name, schema) in fields {
        properties.insert(name.to_owned(), if required.contains(&name) { schema } else { or_null(schema) });
    }
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// A mapping with arbitrary keys.
pub(super) fn map_of(values: Value) -> Value {
    json!({"type": "object", "additionalProperties": values})
}

fn or_null(mut schema: Value) -> Value {
    let Some(object) = schema.as_object_mut() else { return schema };
    match object.get_mut("type") {
        Some(Value::Array(types)) => types.push(json!("null")),
        Some(kind) => *kind = json!([kind, "null"]),
        None => {}
    }
    if let Some(Value::Array(words)) = object.get_mut("enum") {
        words.push(Value::Null);
    }
    schema
}

/// Adds a description.
pub(super) fn help(mut schema: Value, help: &str) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), json!(help));
    }
    schema
}

/// Text; numbers are accepted, since YAML reads some text as a number.
pub(super) fn text(help_: &str) -> Value {
    help(json!({"type": ["string", "number"]}), help_)
}

/// A list of texts.
pub(super) fn texts(help_: &str) -> Value {
    help(list(json!({"type": ["string", "number"]})), help_)
}

/// One of these words.
pub(super) fn word(words: &[&str], help_: &str) -> Value {
    help(json!({"type": "string", "enum": words}), help_)
}

/// A boolean.
pub(super) fn toggle(help_: &str) -> Value {
    help(json!({"type": "boolean"}), help_)
}

/// Any value.
pub(super) fn anything(help_: &str) -> Value {
    help(json!({}), help_)
}

/// A number within bounds.
pub(super) fn number(bounds: Bounds, help_: &str) -> Value {
    let mut schema = json!({"type": if bounds.whole { "integer" } else { "number" }});
    if let Some(schema) = schema.as_object_mut() {
        // Very wide bounds only guard against overflow and are omitted from the schema.
        if bounds.min > -1e29 {
            schema.insert("minimum".to_owned(), json!(bounds.min));
        }
        if bounds.max < 1e15 {
            schema.insert("maximum".to_owned(), json!(bounds.max));
        }
    }
    help(schema, help_)
}

/// An integer of at least one.
pub(super) fn count(help_: &str) -> Value {
    number(Bounds::COUNT, help_)
}

/// A non-negative number.
pub(super) fn positive(help_: &str) -> Value {
    number(Bounds::POSITIVE, help_)
}

/// Schema of a knob from the registry: type, range in files, unit and help text. The values of a choice are suggested,
/// but synonyms are accepted as well.
pub(super) fn knob(knob: Knob) -> Value {
    let spec = knob.spec();
    let unit = if spec.unit.is_empty() { String::new() } else { format!(" [{}]", spec.unit) };
    let described = format!("{}{unit}", spec.help);
    match spec.kind {
        ValueType::Toggle => toggle(&described),
        ValueType::Choice(words) => help(json!({"anyOf": [{"enum": words}, {"type": "string"}]}), &described),
        ValueType::Fabric | ValueType::Software | ValueType::Seed => text(&described),
        ValueType::Number { .. } => number(spec.bounds(), &described),
    }
}

/// Registry fields of the workload mapping at this path.
pub(super) fn of_workload(path: &[&str]) -> impl Iterator<Item = Field> {
    KNOBS.iter().filter(move |spec| matches!(spec.location, FileLocation::Workload(at) if is_in(at, path))).map(entry)
}

/// Registry fields of the target mapping at this path.
pub(super) fn of_target(path: &[&str]) -> impl Iterator<Item = Field> {
    KNOBS.iter().filter(move |spec| matches!(spec.location, FileLocation::Target(at) if is_in(at, path))).map(entry)
}

fn is_in(field: &[&str], mapping: &[&str]) -> bool {
    field.split_last().is_some_and(|(_, parents)| parents == mapping)
}

fn entry(spec: &Spec) -> Field {
    (spec.key(), knob(spec.knob))
}
