//! Parses TOML with line numbers. Lines that cannot be parsed are skipped and reported.

use atlas_core::sort;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::value::{Node, Value};
use crate::import::place::Place;

const MAX_REPAIRS: usize = 24;

/// Returns the document and the lines that were skipped.
pub(crate) fn parse(text: &str) -> (Option<Node>, Vec<u32>) {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut skipped = Vec::new();
    loop {
        let joined = lines.join("\n");
        match DeTable::parse(&joined) {
            Ok(table) => return (Some(convert_table(&joined, table.get_ref(), 1)), skipped),
            Err(e) => {
                let line = e.span().map_or(1, |s| line_of(&joined, s.start));
                match lines.get_mut(line as usize - 1) {
                    Some(l) if skipped.len() < MAX_REPAIRS && !l.trim().is_empty() => {
                        l.clear();
                        skipped.push(line);
                    }
                    _ => return (None, skipped),
                }
            }
        }
    }
}

fn line_of(text: &str, offset: usize) -> u32 {
    let seen = text.as_bytes().get(..offset.min(text.len())).unwrap_or(&[]);
    1 + u32::try_from(seen.iter().filter(|b| **b == b'\n').count()).unwrap_or(0)
}

fn convert_table(text: &str, table: &DeTable<'_>, line: u32) -> Node {
    let mut entries: Vec<(String, Node)> =
        table.iter().map(|(k, v)| (k.get_ref().to_string(), convert(text, v))).collect();
    sort::by_key(&mut entries, |(_, n)| n.line);
    Node::new(Value::Map(entries), Place::of(0, line))
}

fn convert(text: &str, value: &Spanned<DeValue<'_>>) -> Node {
    let line = line_of(text, value.span().start);
    let v = match value.get_ref() {
        DeValue::String(s) => Value::Str(s.to_string()),
        DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix()).map_or(Value::Null, Value::Int),
        DeValue::Float(f) => f.as_str().parse().map_or(Value::Null, Value::Float),
        DeValue::Boolean(b) => Value::Bool(*b),
        DeValue::Datetime(d) => Value::Str(d.to_string()),
        DeValue::Array(a) => Value::List(a.iter().map(|v| convert(text, v)).collect()),
        DeValue::Table(t) => return convert_table(text, t, line),
    };
    Node::new(v, Place::of(0, line))
}
