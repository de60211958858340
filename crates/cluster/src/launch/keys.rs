//! Configuration files with nested keys, in YAML, TOML or JSON. Their keys are checked against the table of flags.

use serde_json::{Map, Value, json};

use super::words::yaml_text;

/// Values by dotted key, in output order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Keys {
    entries: Vec<(String, Value, bool)>,
}

impl Keys {
    /// Adds a setting that is checked against the table of flags.
    pub(crate) fn put(&mut self, key: &str, value: impl Into<Value>) -> &mut Self {
        self.entries.push((key.to_owned(), value.into(), true));
        self
    }

    /// Adds a value that is not a setting: names, data, paths.
    pub(crate) fn put_unchecked(&mut self, key: &str, value: impl Into<Value>) -> &mut Self {
        self.entries.push((key.to_owned(), value.into(), false));
        self
    }

    /// Whether there are no values.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keys without `prefix` and values of the settings, for the table of flags. Only strings and numbers have a value.
    pub(crate) fn settings(&self, prefix: &str) -> Vec<(String, Option<String>)> {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let own = self.entries.iter().filter(|(.., setting)| *setting);
        own.map(|(key, value, _)| (key.strip_prefix(prefix).unwrap_or(key).to_owned(), text(value))).collect()
    }

    /// The values as a tree, nested by the dots in their keys.
    pub(crate) fn tree(&self) -> Map<String, Value> {
        let mut root = Map::new();
        for (key, value, _) in &self.entries {
            let mut at = &mut root;
            let mut parts = key.split('.').peekable();
            while let Some(part) = parts.next() {
                if parts.peek().is_none() {
                    at.insert(part.to_owned(), value.clone());
                    break;
                }
                let slot = at.entry(part.to_owned()).or_insert_with(|| json!({}));
                let Value::Object(inner) = slot else { break };
                at = inner;
            }
        }
        root
    }

    /// Formats the values as YAML in their order, with the keys of each mapping grouped.
    pub(crate) fn yaml(&self, header: &str) -> String {
        let entries: Vec<(&str, &Value)> = self.entries.iter().map(|(key, value, _)| (key.as_str(), value)).collect();
        let mut out = header.to_owned();
        nested(&entries, 0, &mut out);
        out
    }

    /// Formats the values as JSON.
    pub(crate) fn json(&self) -> String {
        format!("{:#}\n", Value::Object(self.tree()))
    }

    /// Formats the values as TOML. Everything before the last dot of a key is the name of its table.
    pub(crate) fn toml(&self, header: &str) -> String {
        let mut tables: Vec<(String, Vec<String>)> = Vec::new();
        for (key, value, _) in &self.entries {
            let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
            let line = format!("{name} = {value}");
            match tables.iter_mut().find(|(known, _)| known == table) {
                Some((_, lines)) => lines.push(line),
                None => tables.push((table.to_owned(), vec![line])),
            }
        }
        let mut out = header.to_owned();
        for (table, lines) in tables {
            out.push_str(&format!("\n[{table}]\n{}\n", lines.join("\n")));
        }
        out
    }
}

/// Writes entries with a common prefix of their keys.
fn nested(entries: &[(&str, &Value)], indent: usize, out: &mut String) {
    let mut done: Vec<&str> = Vec::new();
    for (key, value) in entries {
        let Some((head, _)) = key.split_once('.') else {
            let mut one = Map::new();
            one.insert((*key).to_owned(), (*value).clone());
            yaml_map(&one, indent, out);
            continue;
        };
        if done.contains(&head) {
            continue;
        }
        done.push(head);
        let inner: Vec<(&str, &Value)> = entries
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix(head)?.strip_prefix('.')?, *value)))
            .collect();
        out.push_str(&format!("{}{}:\n", " ".repeat(indent), yaml_text(head)));
        nested(&inner, indent + 2, out);
    }
}

/// Formats a scalar or a list as YAML on one line.
fn yaml_scalar(value: &Value) -> String {
    match value {
        Value::String(text) => yaml_text(text),
        other => other.to_string(),
    }
}

pub(crate) fn yaml_map(map: &Map<String, Value>, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    for (key, value) in map {
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                out.push_str(&format!("{pad}{}:\n", yaml_text(key)));
                yaml_map(inner, indent + 2, out);
            }
            Value::String(text) if text.contains('\n') => {
                out.push_str(&format!("{pad}{}: |\n{}", yaml_text(key), super::words::block(text, indent + 2)));
            }
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_string()) => {
                out.push_str(&format!("{pad}{}:\n", yaml_text(key)));
                for item in items {
                    yaml_item(item, indent + 2, out);
                }
            }
            other => out.push_str(&format!("{pad}{}: {}\n", yaml_text(key), yaml_scalar(other))),
        }
    }
}

fn yaml_item(item: &Value, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    match item {
        Value::Object(map) => {
            let mut text = String::new();
            yaml_map(map, indent + 2, &mut text);
            // The first key follows the dash.
            out.push_str(&format!("{pad}- {}", text.trim_start_matches(' ')));
        }
        Value::String(text) if text.contains('\n') => {
            out.push_str(&format!("{pad}- |\n{}", super::words::block(text, indent + 2)));
        }
        other => out.push_str(&format!("{pad}- {}\n", yaml_scalar(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_keys_render_as_yaml_toml_and_settings() {
        let mut keys = Keys::default();
        keys.put("a.b", 1).put("a.c.d", "no").put_unchecked("e", vec!["x", "y: z"]);
        assert_eq!(keys.yaml("# h\n"), "# h\na:\n  b: 1\n  c:\n    d: \"no\"\ne:\n  - x\n  - \"y: z\"\n");
        assert_eq!(keys.tree()["a"]["c"]["d"], "no");
        let mut keys = Keys::default();
        keys.put("a.b", true).put("a.c", "x").put("d.e", 2);
        assert_eq!(keys.toml(""), "\n[a]\nb = true\nc = \"x\"\n\n[d]\ne = 2\n");
        assert_eq!(
            keys.settings("a."),
            [("b".into(), None), ("c".into(), Some("x".into())), ("d.e".into(), Some("2".into()))]
        );
    }
}
