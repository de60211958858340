//! Expansion of `${VAR}`, `${VAR:-default}` and `${VAR-default}` in the text values of a document, with the semantics
//! of a shell. `$$` stands for a dollar sign.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::Variable;
use super::ValueOrigin;
use atlas_document::node::Entry;
use atlas_document::parse::scalar;
use atlas_document::{Diagnostic, Diagnostics, Node, Severity, Value};

/// Maximum depth of defaults nested in defaults.
const MAX_DEPTH: usize = 8;

/// Expands the variables in all text values of a document. Records the variables of each changed value in `from`, by
/// the path of the value.
pub(super) fn expand(
    file: &Arc<str>,
    node: &Node,
    variable: Variable<'_>,
    from: &mut BTreeMap<String, ValueOrigin>,
    problems: &mut Diagnostics,
) -> Node {
    Expander { file, variable, from, problems }.node("", node)
}

/// Environment variables that override values of the document in launch scripts, and the paths of those values.
const OVERRIDES: [(&str, &[&[&str]]); 2] = [
    ("TRAIN_ITERS", &[&["training", "duration", "max_steps"], &["training", "duration", "train_iters"]]),
    ("PRIMUS_PATH", &[&["paths", "primus", "installation"]]),
];

/// Overrides values of the document by the environment variables in [`OVERRIDES`]. A missing value is added if its
/// section exists.
pub(super) fn apply_overrides(
    file: &Arc<str>,
    mut root: Node,
    variable: Variable<'_>,
    from: &mut BTreeMap<String, ValueOrigin>,
    problems: &mut Diagnostics,
) -> Node {
    for (name, paths) in OVERRIDES {
        let Some(text) = variable(name).filter(|text| !text.trim().is_empty()) else { continue };
        let value = scalar(text.trim());
        let is_count = matches!(value, Value::Int(count) if count > 0);
        let present: Vec<&&[&str]> = paths.iter().filter(|path| root.at_path(path).is_some()).collect();
        let written: Vec<&[&str]> = if present.is_empty() {
            paths.iter().take(1).copied().collect()
        } else {
            present.into_iter().copied().collect()
        };
        for path in written {
            let Some((last, above)) = path.split_last() else { continue };
            let Some(section) = at_mut(&mut root, above) else { continue };
            let at = section.at;
            let Value::Map(entries) = &mut section.value else { continue };
            if name == "TRAIN_ITERS" && !is_count {
                problems.push(Diagnostic {
                    severity: Severity::Error,
                    file: Arc::clone(file),
                    at,
                    path: path.join("."),
                    message: format!("the environment variable {name} is \"{text}\", expected a whole number above 0"),
                    help: Some(format!("unset {name}, or set it to a number of steps")),
                });
                break;
            }
            let own = entries.iter_mut().find(|entry| entry.key == *last);
            let at = own.as_ref().map_or(at, |entry| entry.value.at);
            let node = Node { value: value.clone(), at };
            match own {
                Some(entry) => entry.value = node,
                None => entries.push(Entry { key: (*last).into(), key_at: at, value: node }),
            }
            from.insert(path.join("."), ValueOrigin::Variables(vec![(name.to_owned(), true)], at));
        }
    }
    root
}

fn at_mut<'n>(root: &'n mut Node, path: &[&str]) -> Option<&'n mut Node> {
    path.iter().try_fold(root, |node, key| match &mut node.value {
        Value::Map(entries) => entries.iter_mut().find(|entry| entry.key == **key).map(|entry| &mut entry.value),
        _ => None,
    })
}

struct Expander<'a> {
    file: &'a Arc<str>,
    variable: Variable<'a>,
    from: &'a mut BTreeMap<String, ValueOrigin>,
    problems: &'a mut Diagnostics,
}

impl Expander<'_> {
    fn node(&mut self, path: &str, node: &Node) -> Node {
        let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        let value = match &node.value {
            Value::Text(text) if text.contains('$') => {
                let mut used = Vec::new();
                match self.text(text, &mut used, 0) {
                    Ok(expanded) if expanded == *text => return node.clone(),
                    Ok(expanded) => {
                        if !used.is_empty() {
                            self.from.insert(path.to_owned(), ValueOrigin::Variables(used, node.at));
                        }
                        scalar(&expanded)
                    }
                    Err(message) => {
                        self.problems.push(Diagnostic {
                            severity: Severity::Error,
                            file: Arc::clone(self.file),
                            at: node.at,
                            path: path.to_owned(),
                            message,
                            help: Some("write ${NAME}, or ${NAME:-default} to set a default".to_owned()),
                        });
                        // Null counts as absent, so that the value is not reported again as having the wrong type.
                        Value::Null
                    }
                }
            }
            Value::List(items) => {
                let items = items.iter().enumerate();
                Value::List(items.map(|(index, item)| self.node(&below(&index.to_string()), item)).collect())
            }
            Value::Map(entries) => {
                let entry =
                    |entry: &Entry| Entry { value: self.node(&below(&entry.key), &entry.value), ..entry.clone() };
                Value::Map(entries.iter().map(entry).collect())
            }
            other => other.clone(),
        };
        Node { value, at: node.at }
    }

    /// Returns the text with its variables expanded. Adds the name of each variable to `used`, and whether the
    /// environment's value was used rather than the default.
    fn text(&self, text: &str, used: &mut Vec<(String, bool)>, depth: usize) -> Result<String, String> {
        if depth > MAX_DEPTH {
            return Err(format!("found \"{text}\": defaults are nested more than {MAX_DEPTH} levels deep"));
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            if let Some(after) = after.strip_prefix('$') {
                out.push('$');
                rest = after;
            } else if let Some(inside) = after.strip_prefix('{') {
                let end =
                    closing_brace(inside).ok_or_else(|| format!("found \"{text}\", in which a {{ is not closed"))?;
                let (inner, behind) = inside.split_at(end);
                out.push_str(&self.variable(inner, used, depth)?);
                rest = behind.get(1..).unwrap_or_default();
            } else {
                out.push('$');
                rest = after;
            }
        }
        Ok(out + rest)
    }

    /// Returns the value of `inner`, the text between the braces.
    fn variable(&self, inner: &str, used: &mut Vec<(String, bool)>, depth: usize) -> Result<String, String> {
        let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inner.len());
        let (name, behind) = inner.split_at(end);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(format!("found \"${{{inner}}}\", expected the name of a variable after ${{"));
        }
        let set = (self.variable)(name);
        let (set, default) = if let Some(default) = behind.strip_prefix(":-") {
            (set.filter(|value| !value.is_empty()), Some(default))
        } else if let Some(default) = behind.strip_prefix('-') {
            (set, Some(default))
        } else if behind.is_empty() {
            (set, None)
        } else {
            return Err(format!("found \"${{{inner}}}\": only :- and - are supported as operators"));
        };
        match (set, default) {
            (Some(value), _) => {
                used.push((name.to_owned(), true));
                Ok(value)
            }
            (None, Some(default)) => {
                used.push((name.to_owned(), false));
                self.text(default, used, depth + 1)
            }
            (None, None) => Err(format!("the environment variable {name} is not set, and there is no default")),
        }
    }
}

/// Returns the position of the brace that closes the one before `text`.
fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use atlas_document::parse::parse;

    fn expanded(text: &str) -> (Node, BTreeMap<String, ValueOrigin>, Diagnostics) {
        let file: Arc<str> = "c.yaml".into();
        let (mut problems, mut from) = (Diagnostics::new(), BTreeMap::new());
        let node = parse(&file, text, &mut problems).unwrap();
        let variable = |name: &str| match name {
            "SET" => Some("/opt/primus".to_owned()),
            "GPUS" => Some("16".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let node = expand(&file, &node, &variable, &mut from, &mut problems);
        (node, from, problems)
    }

    #[test]
    fn variables_and_their_defaults_are_expanded_and_typed_again() {
        let (node, from, problems) = expanded(
            "a: \"${SET:-/workspace}\"\nb: ${NONE:-/workspace}/log\nc: '${GPUS}'\nd: ${EMPTY:-x}\ne: \"${EMPTY-x}\"\n\
             f: \"${NONE:-${SET}/deep}\"\ng: cost $5\nh: $${GPUS}\nl: [\"${GPUS}\"]\n",
        );
        assert!(problems.is_empty(), "{problems}");
        let text = |key: &str| node.get(key).unwrap().describe();
        assert_eq!(text("a"), "text \"/opt/primus\"");
        assert_eq!(text("b"), "text \"/workspace/log\"");
        assert_eq!(node.get("c").unwrap().value, Value::Int(16));
        assert_eq!(text("d"), "text \"x\"");
        assert_eq!(text("e"), "nothing");
        assert_eq!(text("f"), "text \"/opt/primus/deep\"");
        assert_eq!(text("g"), "text \"cost $5\"");
        assert_eq!(text("h"), "text \"${GPUS}\"");
        assert_eq!(node.get("l").unwrap().items().unwrap()[0].value, Value::Int(16));
        assert_eq!(from["a"].to_string(), "environment SET, c.yaml:1:4".replace("c.yaml:", ""));
        assert_eq!(from["b"].to_string(), "default of NONE, 2:4");
    }

    #[test]
    fn environment_overrides_steps_and_primus_path() {
        let of = |iterations: &'static str, text: &str| {
            let file: Arc<str> = "c.yaml".into();
            let (mut problems, mut from) = (Diagnostics::new(), BTreeMap::new());
            let node = parse(&file, text, &mut problems).unwrap();
            let variable = |name: &str| match name {
                "TRAIN_ITERS" => Some(iterations.to_owned()),
                "PRIMUS_PATH" => Some("/opt/primus".to_owned()),
                _ => None,
            };
            let node = apply_overrides(&file, node, &variable, &mut from, &mut problems);
            (node, from, problems)
        };
        let text = "training: {duration: {max_steps: 10, train_iters: 10}}\npaths: {primus: {installation: /a}}\n";
        let (node, from, problems) = of("5", text);
        assert!(problems.is_empty(), "{problems}");
        for path in [["training", "duration", "max_steps"], ["training", "duration", "train_iters"]] {
            assert_eq!(node.at_path(&path).unwrap().value, Value::Int(5));
            assert!(from[&path.join(".")].to_string().contains("environment TRAIN_ITERS"));
        }
        assert_eq!(node.at_path(&["paths", "primus", "installation"]).unwrap().describe(), "text \"/opt/primus\"");
        let (node, _, problems) = of("many", text);
        assert_eq!(node.at_path(&["training", "duration", "max_steps"]).unwrap().value, Value::Int(10));
        assert!(problems.to_string().contains("TRAIN_ITERS") && problems.has_errors(), "{problems}");
        let (node, _, _) = of("5", "models: {}\n");
        assert!(node.get("training").is_none(), "sections are not made up");
    }

    #[test]
    fn unset_unclosed_and_unknown_variables_are_reported_with_positions() {
        let (_, _, problems) = expanded("a: ${NONE}\nb: \"${SET\"\nc: ${SET:?must}\nd: \"${1}\"\n");
        let described: Vec<String> =
            problems.iter().map(|problem| problem.location() + " " + &problem.message).collect();
        assert_eq!(described.len(), 4, "{described:?}");
        assert!(described[0].contains("c.yaml:1:4 the environment variable NONE is not set"));
        assert!(
            described[1].contains("not closed")
                && described[2].contains("only :-")
                && described[3].contains("name of a variable")
        );
    }
}
