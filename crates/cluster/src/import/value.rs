//! A common value tree for YAML, JSON, TOML and command-line flags, with the line of each node.

use crate::import::place::Place;
use atlas_core::sort;
use serde_json::Value as Json;

/// Value of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// An empty value.
    Null,
    /// A command-line flag without a value.
    Flag,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A string. Unknown parts are marked as described in [`super::unknown`].
    Str(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the file. The last of several equal keys takes precedence.
    Map(Vec<(String, Node)>),
}

/// A value with the line at which it starts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) line: Place,
}

impl Node {
    pub(crate) fn new(value: Value, line: Place) -> Self {
        Node { value, line }
    }

    pub(crate) fn str(text: impl Into<String>, line: Place) -> Self {
        Node::new(Value::Str(text.into()), line)
    }

    /// The last entry with this key.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.map().iter().rev().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// The node at a dotted path.
    pub(crate) fn at(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |n, k| n.get(k))
    }

    /// The node at the first of several dotted paths that exists and is not empty.
    pub(crate) fn first(&self, paths: &[&str]) -> Option<&Node> {
        paths.iter().filter_map(|p| self.at(p)).find(|n| n.value != Value::Null)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn map(&self) -> &[(String, Node)] {
        match &self.value {
            Value::Map(m) => m,
            _ => &[],
        }
    }

    pub(crate) fn list(&self) -> &[Node] {
        match &self.value {
            Value::List(l) => l,
            _ => &[],
        }
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self.value, Value::Map(_))
    }

    /// The value if it is a scalar, or the first element of a list.
    fn scalar(&self) -> &Value {
        match &self.value {
            Value::List(l) => l.first().map_or(&Value::Null, |n| match &n.value {
                Value::List(_) | Value::Map(_) => &Value::Null,
                v => v,
            }),
            v => v,
        }
    }

    /// Text of a scalar, or `None` if it is empty or has unknown parts.
    pub(crate) fn text(&self) -> Option<String> {
        match self.scalar() {
            Value::Str(s) if super::unknown::is_in(s) => None,
            Value::Str(s) => {
                let t = s.trim();
                (!t.is_empty() && !matches!(t, "null" | "None" | "none" | "~" | "\"\"")).then(|| t.to_owned())
            }
            Value::Int(i) => Some(i.to_string()),
            Value::Float(f) => Some(f.to_string()),
            Value::Bool(b) => Some(b.to_string()),
            _ => None,
        }
    }

    /// Text as written, with unknown parts formatted as `${NAME}`.
    pub(crate) fn shown(&self) -> Option<String> {
        match self.scalar() {
            Value::Str(s) => Some(super::unknown::shown(s)),
            _ => self.text(),
        }
    }

    /// The string of a scalar, with its unknown parts marked.
    pub(crate) fn raw(&self) -> Option<&str> {
        match self.scalar() {
            Value::Str(s) => Some(s),
            _ => None,
        }
    }

    pub(crate) fn int(&self) -> Option<i64> {
        match self.scalar() {
            Value::Int(i) => Some(*i),
            Value::Float(f) if f.fract() == 0.0 && f.abs() < 9e15 => Some(*f as i64),
            Value::Str(s) => parse_int(s),
            _ => None,
        }
    }

    pub(crate) fn float(&self) -> Option<f64> {
        match self.scalar() {
            Value::Int(i) => Some(*i as f64),
            Value::Float(f) => Some(*f),
            Value::Str(s) => s.trim().parse().ok().filter(|f: &f64| f.is_finite()),
            _ => None,
        }
    }

    /// Value of a switch. A flag without a value, or with an empty string, is on.
    pub(crate) fn switch(&self) -> Option<bool> {
        match self.scalar() {
            Value::Flag => Some(true),
            Value::Bool(b) => Some(*b),
            Value::Int(i) => Some(*i != 0),
            Value::Str(s) => match s.trim().to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" | "y" | "" | "enable" | "enabled" => Some(true),
                "false" | "no" | "off" | "0" | "n" | "disable" | "disabled" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// The scalar as a command-line word: unknown parts are marked, and numbers are formatted.
    pub(crate) fn word(&self) -> String {
        self.raw().map(str::to_owned).or_else(|| self.text()).unwrap_or_default()
    }

    /// Converts the node to JSON, for values that are passed through.
    pub(crate) fn json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Flag => Json::Bool(true),
            Value::Bool(b) => Json::Bool(*b),
            Value::Int(i) => Json::from(*i),
            Value::Float(f) => Json::from(*f),
            Value::Str(s) => Json::String(super::unknown::shown(s)),
            Value::List(l) => Json::Array(l.iter().map(Node::json).collect()),
            Value::Map(m) => Json::Object(sort::collect_unsorted(m.iter().map(|(k, v)| (k.clone(), v.json())))),
        }
    }

    /// Inserts or replaces the node at a dotted path, and creates the mappings on the path.
    pub(crate) fn put(&mut self, path: &str, node: Node) {
        let (head, rest) = match path.split_once('.') {
            Some((h, r)) => (h, Some(r)),
            None => (path, None),
        };
        if !self.is_map() {
            self.value = Value::Map(Vec::new());
        }
        let Value::Map(entries) = &mut self.value else { return };
        let line = node.line;
        let slot = match entries.iter().rposition(|(k, _)| k == head) {
            Some(i) => entries.get_mut(i),
            None => {
                entries.push((head.to_owned(), Node::new(Value::Null, line)));
                entries.last_mut()
            }
        };
        if let Some((_, slot)) = slot {
            match rest {
                Some(rest) => slot.put(rest, node),
                None => *slot = node,
            }
        }
    }

    /// Calls `f` with the dotted path and the node of every leaf. Lists are leaves.
    pub(crate) fn for_each_leaf<'a>(&'a self, f: &mut dyn FnMut(&str, &'a Node)) {
        fn walk<'a>(n: &'a Node, path: &str, depth: usize, f: &mut dyn FnMut(&str, &'a Node)) {
            match &n.value {
                Value::Map(m) if depth < 64 => {
                    for (k, v) in m {
                        let p = if path.is_empty() { k.clone() } else { format!("{path}.{k}") };
                        walk(v, &p, depth + 1, f);
                    }
                }
                _ => f(path, n),
            }
        }
        walk(self, "", 0, f);
    }

    /// Approximate memory of a copy in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let below: usize = match &self.value {
            Value::Str(s) => s.len(),
            Value::List(l) => l.iter().map(Node::bytes).sum(),
            Value::Map(m) => m.iter().map(|(k, v)| size_of::<String>() + k.len() + v.bytes()).sum(),
            _ => 0,
        };
        size_of::<Node>() + below
    }

    /// Calls `f` with this node if it is a mapping, and with every mapping below it.
    pub(crate) fn for_each_map<'a>(&'a self, f: &mut dyn FnMut(&'a Node)) {
        match &self.value {
            Value::Map(m) => {
                f(self);
                m.iter().for_each(|(_, v)| v.for_each_map(f));
            }
            Value::List(l) => l.iter().for_each(|v| v.for_each_map(f)),
            _ => {}
        }
    }
}

/// Parses a whole number as spelled in configuration files: `1_000`, `2e3`, `8.0`.
pub(crate) fn parse_int(s: &str) -> Option<i64> {
    let t: String = s.trim().trim_matches(['"', '\'']).chars().filter(|c| *c != '_').collect();
    if t.is_empty() || !t.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    t.parse::<i64>().ok().or_else(|| {
        t.parse::<f64>().ok().filter(|f| f.is_finite() && f.fract() == 0.0 && f.abs() < 9e15).map(|f| f as i64)
    })
}

/// Parses a plain scalar of YAML or of a lenient JSON file.
pub(crate) fn plain_scalar(s: &str) -> Value {
    match s {
        "" | "~" | "null" | "Null" | "NULL" | "None" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => {
            let digits: String = s.chars().filter(|c| *c != '_').collect();
            let numeric = digits.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
            if !numeric || digits.starts_with('_') {
                return Value::Str(s.to_owned());
            }
            if let Ok(i) = digits.parse::<i64>() {
                return Value::Int(i);
            }
            match digits.parse::<f64>() {
                Ok(f) if f.is_finite() && digits.contains(|c: char| c.is_ascii_digit()) => Value::Float(f),
                _ => Value::Str(s.to_owned()),
            }
        }
    }
}
