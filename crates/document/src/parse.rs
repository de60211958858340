//! Parses YAML text into a [`Node`] tree, with limits on size, depth and expansion.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::diagnostic::{Diagnostic, Diagnostics, Severity};
use super::node::{Entry, Node, Position, Value};

/// Size of the largest file that is read. Real catalogs are a few hundred kilobytes.
pub const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum nesting depth. Real documents stay under ten.
const MAX_DEPTH: usize = 64;
/// Maximum number of nodes of a document with aliases expanded and anchors counted twice. This limit stops alias bombs.
const MAX_NODES: usize = 500_000;
/// Maximum number of commas in a document. The scanner buffers the content of a pair of brackets until they close, at a
/// third of a kilobyte per value.
const MAX_COMMAS: usize = 250_000;
/// Maximum number of text bytes of a document, counted like [`MAX_NODES`].
const MAX_TEXT_BYTES: usize = 2 * MAX_FILE_BYTES as usize;
/// Number of problems after which the rest of a document is ignored.
const MAX_PROBLEMS: usize = 100;
/// Number of keys of a mapping up to which keys are compared one by one. A larger mapping has an index.
const MAX_UNINDEXED_KEYS: usize = 32;

/// Parses one YAML document. An empty file is `Null`. Problems are added to `diagnostics`. Returns `None` if the text
/// is not YAML or exceeds a limit.
#[must_use]
pub fn parse(file: &Arc<str>, text: &str, diagnostics: &mut Diagnostics) -> Option<Node> {
    let mut builder = Builder {
        file,
        diagnostics,
        open: Vec::new(),
        anchors: HashMap::new(),
        size: Size::default(),
        root: None,
        problems: 0,
    };
    if text.len() as u64 > MAX_FILE_BYTES {
        builder.error(Position::default(), format!("{} bytes exceed the maximum of {MAX_FILE_BYTES}", text.len()));
        return None;
    }
    let commas = text.bytes().filter(|byte| *byte == b',').count();
    if commas > MAX_COMMAS {
        let advice = "write long lists with one entry per line";
        builder.error(Position::default(), format!("{commas} commas exceed the maximum of {MAX_COMMAS}; {advice}"));
        return None;
    }
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => builder.handle_event(event, span)?,
            Err(error) => {
                let at = Position { line: clamp(error.marker().line()), column: clamp(error.marker().col() + 1) };
                let help = "check this line and the one above it: keys of one mapping need the same indentation, followed \
                            by a colon and a space, and text that contains `: ` or `#` needs quotes";
                let message = format!("not YAML: {}", error.info());
                builder.report(Severity::Error, at, message, Some(help.to_owned()));
                return None;
            }
        }
    }
    Some(builder.root.unwrap_or_else(|| Node::synthetic(Value::Null)))
}

fn clamp(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// A list or mapping whose end has not been reached.
struct OpenCollection {
    node: Node,
    anchor: usize,
    /// The key that was read last and has no value yet.
    key: Option<(String, Position)>,
    /// Values of `<<` keys, merged when the mapping ends; explicit keys take precedence.
    merges: Vec<Node>,
    /// Index in `entries` of each key, for large mappings.
    index: HashMap<Cow<'static, str>, usize>,
}

impl OpenCollection {
    /// Index of the entry with this key in the mapping.
    fn position(&mut self, key: &str) -> Option<usize> {
        let Value::Map(entries) = &self.node.value else { return None };
        if entries.len() < MAX_UNINDEXED_KEYS {
            return entries.iter().position(|entry| entry.key == key);
        }
        for (at, entry) in entries.iter().enumerate().skip(self.index.len()) {
            self.index.insert(entry.key.clone(), at);
        }
        self.index.get(key).copied()
    }

    fn push(&mut self, entry: Entry) {
        if let Value::Map(entries) = &mut self.node.value {
            entries.push(entry);
        }
    }
}

/// Size of a part of a document, for comparison with the limits.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

impl Size {
    fn of(node: &Node) -> Size {
        let around =
            |inner: Size, own: usize| Size { nodes: inner.nodes + 1, bytes: inner.bytes + own, depth: inner.depth + 1 };
        let join =
            |a: Size, b: Size| Size { nodes: a.nodes + b.nodes, bytes: a.bytes + b.bytes, depth: a.depth.max(b.depth) };
        match &node.value {
            Value::Text(text) => Size { nodes: 1, bytes: text.len(), depth: 0 },
            Value::List(items) => around(items.iter().map(Size::of).fold(Size::default(), join), 0),
            Value::Map(entries) => {
                let keys = entries.iter().map(|entry| entry.key.len()).sum();
                around(entries.iter().map(|entry| Size::of(&entry.value)).fold(Size::default(), join), keys)
            }
            _ => Size { nodes: 1, ..Size::default() },
        }
    }
}

struct Builder<'a> {
    file: &'a Arc<str>,
    diagnostics: &'a mut Diagnostics,
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, (Node, Size)>,
    size: Size,
    root: Option<Node>,
    problems: usize,
}

impl Builder<'_> {
    fn report(&mut self, severity: Severity, at: Position, message: String, help: Option<String>) {
        self.problems += 1;
        let file = Arc::clone(self.file);
        self.diagnostics.push(Diagnostic { severity, file, at, path: String::new(), message, help });
    }

    fn error(&mut self, at: Position, message: String) {
        self.report(Severity::Error, at, message, None);
    }

    /// Handles one event. Returns `None` to stop parsing because a limit is exceeded.
    fn handle_event(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        let at = Position { line: clamp(span.start.line()), column: clamp(span.start.col() + 1) };
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && tag.is_none();
                let value = if plain { scalar(&text) } else { Value::Text(text.into_owned().into()) };
                let node = Node { value, at };
                let size = Size::of(&node);
                self.finish_node(node, anchor, size)
            }
            Event::SequenceStart(anchor, _) => self.begin(Value::List(Vec::new()), at, anchor),
            Event::MappingStart(anchor, _) => self.begin(Value::Map(Vec::new()), at, anchor),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => match self.anchors.get(&anchor).map(|(_, size)| *size) {
                Some(size) if self.open.len() + size.depth > MAX_DEPTH => self.too_deep(at),
                Some(size) => {
                    // The size is counted before the node is copied, so that an alias bomb is not expanded.
                    self.count_size(size, at)?;
                    let node = self.anchors.get(&anchor).map(|(node, _)| node.clone())?;
                    self.attach(node)
                }
                None => {
                    self.error(at, "the alias refers to a mapping or list that contains it".to_owned());
                    None
                }
            },
            Event::DocumentStart(_) if self.root.is_some() => {
                self.error(at, "found a second document; only one document per file is supported".to_owned());
                None
            }
            _ => Some(()),
        }
    }

    fn begin(&mut self, value: Value, at: Position, anchor: usize) -> Option<()> {
        if self.open.len() >= MAX_DEPTH {
            return self.too_deep(at);
        }
        let node = Node { value, at };
        self.open.push(OpenCollection { node, anchor, key: None, merges: Vec::new(), index: HashMap::new() });
        Some(())
    }

    fn too_deep(&mut self, at: Position) -> Option<()> {
        self.error(at, format!("nested more than {MAX_DEPTH} levels deep (with aliases expanded)"));
        None
    }

    fn end(&mut self) -> Option<()> {
        let mut open = self.open.pop()?;
        for merge in std::mem::take(&mut open.merges) {
            let Value::Map(entries) = merge.value else { continue };
            for entry in entries {
                if open.position(&entry.key).is_none() {
                    open.push(entry);
                }
            }
        }
        let OpenCollection { node, anchor, .. } = open;
        // The children were counted when they were placed.
        self.count_size(Size { nodes: 1, ..Size::default() }, node.at)?;
        self.anchor(&node, anchor)?;
        self.attach(node)
    }

    fn finish_node(&mut self, node: Node, anchor: usize, size: Size) -> Option<()> {
        self.count_size(size, node.at)?;
        self.anchor(&node, anchor)?;
        self.attach(node)
    }

    /// Stores a copy of the node for aliases, if it has an anchor, and counts that copy.
    fn anchor(&mut self, node: &Node, anchor: usize) -> Option<()> {
        if anchor > 0 {
            let size = Size::of(node);
            self.count_size(size, node.at)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        Some(())
    }

    fn count_size(&mut self, size: Size, at: Position) -> Option<()> {
        self.size.nodes = self.size.nodes.saturating_add(size.nodes);
        self.size.bytes = self.size.bytes.saturating_add(size.bytes);
        if self.size.nodes > MAX_NODES {
            self.error(at, format!("expands to more than {MAX_NODES} values (including aliases)"));
            return None;
        }
        if self.size.bytes > MAX_TEXT_BYTES {
            self.error(at, format!("expands to more than {MAX_TEXT_BYTES} bytes of text (including aliases)"));
            return None;
        }
        if self.problems > MAX_PROBLEMS {
            self.error(at, "too many errors; the rest of the file is not read".to_owned());
            return None;
        }
        Some(())
    }

    fn attach(&mut self, node: Node) -> Option<()> {
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(node);
            return Some(());
        };
        match &mut parent.node.value {
            Value::List(items) => items.push(node),
            Value::Map(_) => match parent.key.take() {
                None => match key_text(&node) {
                    Some(key) => parent.key = Some((key, node.at)),
                    None => {
                        let found = node.describe();
                        self.error(node.at, format!("found {found}, expected text as a key"));
                        return None;
                    }
                },
                Some((key, _)) if key == "<<" => match node.value {
                    Value::List(items) => parent.merges.extend(items),
                    _ => parent.merges.push(node),
                },
                Some((key, key_at)) => {
                    let first = parent.position(&key);
                    let first = first.and_then(|at| Some(parent.node.entries()?.get(at)?.key_at));
                    if let Some(first) = first {
                        let message = format!("duplicate key `{key}`, first defined at {first}");
                        let help = Some("remove one of the two".to_owned());
                        self.report(Severity::Error, key_at, message, help);
                    } else {
                        parent.push(Entry { key: key.into(), key_at, value: node });
                    }
                }
            },
            _ => {}
        }
        Some(())
    }
}

fn key_text(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.to_string()),
        Value::Int(int) => Some(int.to_string()),
        Value::Float(float) => Some(float.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null => Some("null".to_owned()),
        _ => None,
    }
}

/// Resolves a plain scalar by the rules of the YAML 1.2 core schema.
#[must_use]
pub fn scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Value::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Value::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Value::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let digits = text.trim_start_matches(['-', '+']);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') || text.len() - digits.len() > 1 {
        return Value::Text(text.to_owned().into());
    }
    let based = |prefix, radix| digits.strip_prefix(prefix).and_then(|rest| i128::from_str_radix(rest, radix).ok());
    if let Some(int) = based("0x", 16).or_else(|| based("0o", 8)) {
        return Value::Int(if text.starts_with('-') { -int } else { int });
    }
    if digits.bytes().all(|b| b.is_ascii_digit())
        && let Ok(int) = text.parse::<i128>()
    {
        return Value::Int(int);
    }
    if digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'-' | b'+'))
        && let Ok(float) = text.parse::<f64>()
    {
        return Value::Float(float);
    }
    Value::Text(text.to_owned().into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn read(text: &str) -> (Option<Node>, Diagnostics) {
        let mut diagnostics = Diagnostics::new();
        let node = parse(&"t.yaml".into(), text, &mut diagnostics);
        (node, diagnostics)
    }

    #[test]
    fn scalars_follow_the_core_schema() {
        assert_eq!(scalar("12"), Value::Int(12));
        assert_eq!(scalar("-12"), Value::Int(-12));
        assert_eq!(scalar("0x10"), Value::Int(16));
        assert_eq!(scalar("1.5e3"), Value::Float(1500.0));
        assert_eq!(scalar("1e12"), Value::Float(1e12));
        assert_eq!(scalar("True"), Value::Bool(true));
        assert_eq!(scalar("~"), Value::Null);
        assert_eq!(scalar("1.2.3"), Value::Text("1.2.3".into()));
        assert_eq!(scalar("--1"), Value::Text("--1".into()));
        assert_eq!(scalar("IB"), Value::Text("IB".into()));
        assert_eq!(scalar("8x"), Value::Text("8x".into()));
    }

    #[test]
    fn node_positions_match_the_source_text() {
        let (node, problems) = read("- name: a\n  cost:\n    pue: 1.2\n");
        let node = node.unwrap();
        assert!(problems.is_empty());
        let pue = node.items().unwrap()[0].at_path(&["cost", "pue"]).unwrap();
        assert_eq!(pue.at, Position { line: 3, column: 10 });
        assert_eq!(pue.number(), Some(1.2));
    }

    #[test]
    fn duplicate_keys_are_reported_at_the_second() {
        let (_, problems) = read("a: 1\nb: 2\na: 3\n");
        assert_eq!(
            problems.to_string(),
            "t.yaml:3:1: error: duplicate key `a`, first defined at 1:1; remove one of the two"
        );
    }

    #[test]
    fn anchors_aliases_and_merge_keys_are_resolved() {
        let (node, problems) = read("base: &b {x: 1, y: 2}\nother:\n  <<: *b\n  y: 3\nagain: *b\n");
        assert!(problems.is_empty(), "{problems}");
        let node = node.unwrap();
        assert_eq!(node.at_path(&["other", "x"]).unwrap().number(), Some(1.0));
        assert_eq!(node.at_path(&["other", "y"]).unwrap().number(), Some(3.0));
        assert_eq!(node.at_path(&["again", "y"]).unwrap().number(), Some(2.0));
    }

    #[test]
    fn an_alias_bomb_is_an_error() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..9 {
            let before = format!("*a{}", i - 1);
            text += &format!("a{i}: &a{i} [{}]\n", vec![before; 10].join(", "));
        }
        let (node, problems) = read(&text);
        assert!(node.is_none());
        assert!(problems.to_string().contains("expands to more than"), "{problems}");
    }

    #[test]
    fn aliases_of_long_text_and_anchors_within_anchors_are_bounded() {
        let text = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 20_000].join(", "));
        let (node, problems) = read(&text);
        assert!(node.is_none());
        assert!(problems.to_string().contains("bytes of text"), "{problems}");
        let opened: String = (0..60).map(|i| format!("&a{i} [")).collect();
        let (node, problems) = read(&format!("{opened}{}{}", "1,".repeat(100_000), "]".repeat(60)));
        assert!(node.is_none());
        assert!(problems.to_string().contains("expands to more than"), "{problems}");
    }

    #[test]
    fn long_bracketed_lists_are_refused_and_long_block_lists_are_read() {
        let (node, problems) = read(&format!("[{}]", "1,".repeat(MAX_COMMAS + 1)));
        assert!(node.is_none());
        assert!(problems.to_string().contains("one entry per line"), "{problems}");
        let (node, problems) = read(&"- 1\n".repeat(MAX_COMMAS + 1));
        assert!(node.is_some() && problems.is_empty(), "{problems}");
    }

    #[test]
    fn nesting_limit_applies_to_expanded_aliases() {
        let mut text = format!("a0: &a0 {}1{}\n", "[".repeat(40), "]".repeat(40));
        for i in 1..50 {
            text += &format!("a{i}: &a{i} {}*a{}{}\n", "[".repeat(20), i - 1, "]".repeat(20));
        }
        let (node, problems) = read(&text);
        assert!(node.is_none());
        assert!(problems.to_string().contains("nested more than"), "{problems}");
    }

    #[test]
    fn mapping_with_many_keys_detects_duplicates_and_merges() {
        let keys = |n: usize| (0..n).map(|i| format!("k{i}: {i}\n")).collect::<String>();
        let (node, problems) = read(&keys(100_000));
        assert!(problems.is_empty());
        let node = node.unwrap();
        assert_eq!(node.entries().unwrap().len(), 100_000);
        assert_eq!(node.get("k99999").unwrap().number(), Some(99_999.0));
        let (node, problems) = read(&(keys(40) + "k39: 1\nk0: 2\n"));
        assert_eq!((node.unwrap().entries().unwrap().len(), problems.errors()), (40, 2));
        let merged = format!("base: &b {{{}}}\nover:\n  <<: *b\n  k7: 0\n", keys(40).trim().replace('\n', ", "));
        let node = read(&merged).0.unwrap();
        assert_eq!(node.get("over").unwrap().entries().unwrap().len(), 40);
        assert_eq!(node.at_path(&["over", "k7"]).unwrap().number(), Some(0.0));
    }

    #[test]
    fn parsing_stops_after_the_maximum_number_of_problems() {
        let (node, problems) = read(&"a: 1\n".repeat(10_000));
        assert!(node.is_none());
        assert_eq!(problems.len(), MAX_PROBLEMS + 2);
    }

    #[test]
    fn deep_nesting_and_broken_text_are_errors() {
        let (node, problems) = read(&"[".repeat(20_000));
        assert!(node.is_none());
        assert!(problems.has_errors());
        let (node, problems) = read("a: 'unclosed\nb: 2\n");
        assert!(node.is_none());
        assert!(problems.iter().next().unwrap().at.line >= 1);
        assert!(read("a: [1, 2\nb: 3\n").1.has_errors());
        assert!(read("a:\n\t- b\n").1.has_errors());
    }
}
