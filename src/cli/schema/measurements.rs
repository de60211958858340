//! Schema of measurement tables: a row as a mapping from columns to cells.

use serde_json::{Value, json};

use super::shape::{count, help, map, number, text, toggle};
use atlas_document::decode::Bounds;
use atlas_evidence::validate::columns::{COLUMNS, CellType, Column};

/// A row of a table; an absent or blank column means the default.
pub(super) fn row() -> Value {
    map(&[], COLUMNS.iter().map(|column| (column.name, cell(column))))
}

fn cell(column: &Column) -> Value {
    let mut described = column.help_text().to_owned();
    if !column.unit_text().is_empty() {
        described += &format!(" [{}]", column.unit_text());
    }
    if !column.aliases.is_empty() {
        described += &format!("; also {}", column.aliases.join(", "));
    }
    match column.takes {
        CellType::Text => match column.knob().map(|spec| spec.kind) {
            // The values of a knob are suggested, but synonyms are accepted as well.
            Some(atlas_plan::knob::ValueType::Choice(words)) => {
                help(json!({"anyOf": [{"enum": words}, {"type": "string"}]}), &described)
            }
            _ => text(&described),
        },
        CellType::Count => count(&described),
        CellType::Positive => above_zero(number(Bounds::POSITIVE, &described)),
        CellType::Share => above_zero(number(Bounds::SHARE, &described)),
        CellType::Flag => toggle(&described),
        CellType::Words(words) => {
            // Table readers may convert the word `true` to a boolean.
            let words: Vec<Value> =
                words.iter().map(|word| word.parse::<bool>().map_or(json!(word), Value::Bool)).collect();
            help(json!({"enum": words}), &described)
        }
    }
}

/// Excludes zero itself.
fn above_zero(mut schema: Value) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("minimum");
        schema.insert("exclusiveMinimum".to_owned(), json!(0));
    }
    schema
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use atlas_evidence::validate::{MeasurementKind, bad_cells, shipped};

    #[test]
    fn every_column_of_the_shipped_tables_is_described() {
        let schema = row();
        for kind in MeasurementKind::ALL {
            let text = shipped(kind).unwrap();
            for name in text.lines().next().unwrap().split(',') {
                let described = schema["properties"][name]["description"].as_str().unwrap_or_default();
                assert!(!described.is_empty(), "{}: {name}", kind.name());
            }
        }
    }

    #[test]
    fn every_cell_of_the_shipped_tables_is_valid_for_its_column() {
        for kind in MeasurementKind::ALL {
            assert_eq!(bad_cells(&shipped(kind).unwrap()).unwrap(), [], "{}", kind.name());
        }
    }
}
