//! A lenient YAML parser that records line numbers. It accepts several documents, anchors and duplicate keys; lines
//! that cannot be parsed are skipped and reported.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::value::{Node, Value, plain_scalar};
use crate::import::place::Place;

/// Maximum number of nodes per file. Copies of anchors are counted, and long texts in them count as several nodes.
const MAX_NODES: usize = 200_000;
/// Number of bytes of text that require about as much memory as a node.
const TEXT_OF_A_NODE: usize = 64;
const MAX_DEPTH: usize = 64;
/// Number of lines that are skipped before parsing is given up.
const MAX_REPAIRS: usize = 24;

/// The documents of a file, and the lines that were skipped.
pub(crate) struct Documents {
    pub(crate) docs: Vec<Node>,
    pub(crate) skipped: Vec<u32>,
}

/// Parses all documents. A line at which the parser fails is blanked, and parsing is restarted, up to a limit.
pub(crate) fn parse(text: &str) -> Documents {
    let mut lines: Vec<String> = text.lines().map(tabs).collect();
    let mut skipped = Vec::new();
    let mut indented = false;
    loop {
        match try_parse(&lines.join("\n")) {
            Ok(docs) => return Documents { docs, skipped },
            Err((line, docs)) => {
                if skipped.len() >= MAX_REPAIRS {
                    return Documents { docs, skipped };
                }
                // This parser, unlike others, rejects a closing bracket in the column of its key.
                if !indented {
                    indented = true;
                    let mut changed = false;
                    for l in lines.iter_mut().filter(|l| l.trim_start().starts_with([']', '}'])) {
                        l.insert_str(0, "  ");
                        changed = true;
                    }
                    if changed {
                        continue;
                    }
                }
                if realign(&mut lines, line as usize) {
                    continue;
                }
                // An error may be detected after its line, so that the nearest non-empty line at or above it is
                // blanked.
                let from = (line as usize).clamp(1, lines.len().max(1));
                let bad = (0..from).rev().find(|i| lines.get(*i).is_some_and(|l| !l.trim().is_empty()));
                match bad.and_then(|i| lines.get_mut(i).map(|l| (i, l))) {
                    Some((i, l)) => {
                        l.clear();
                        skipped.push(i as u32 + 1);
                    }
                    None => return Documents { docs, skipped },
                }
            }
        }
    }
}

/// Realigns an item `-   name:` whose further keys are left of `name`: moves the first key to their column.
fn realign(lines: &mut [String], line: usize) -> bool {
    let indent = |l: &str| l.len() - l.trim_start().len();
    for near in [line, line.saturating_sub(1), line + 1] {
        let Some(text) = near.checked_sub(1).and_then(|i| lines.get(i)) else { continue };
        if text.trim().is_empty() {
            continue;
        }
        let want = indent(text);
        let above = lines.iter().take(near.saturating_sub(1)).rposition(|l| {
            let t = l.trim_start();
            let body = t.strip_prefix('-').map_or("", str::trim_start);
            let dash = indent(l);
            let key = l.len() - body.len();
            !body.is_empty() && t.starts_with("- ") && dash < want && want < key
        });
        let closer = above.filter(|a| {
            // All lines between must belong to the item.
            lines
                .get(a + 1..near.saturating_sub(1))
                .unwrap_or(&[])
                .iter()
                .all(|l| l.trim().is_empty() || indent(l) >= want)
        });
        if let Some(l) = closer.and_then(|a| lines.get_mut(a)) {
            let dash = indent(l);
            let body = l.trim_start().trim_start_matches('-').trim_start().to_owned();
            *l = format!("{}-{}{body}", " ".repeat(dash), " ".repeat(want.saturating_sub(dash + 1)));
            return true;
        }
    }
    false
}

/// Replaces tabs in the indentation, which YAML does not allow, with blanks.
fn tabs(line: &str) -> String {
    let body = line.trim_start_matches([' ', '\t']);
    let lead = line.get(..line.len() - body.len()).unwrap_or("");
    if lead.contains('\t') { format!("{}{body}", lead.replace('\t', "  ")) } else { line.to_owned() }
}

enum OpenCollection {
    List(Vec<Node>, Place, usize),
    Map(Vec<(String, Node)>, Option<String>, Place, usize),
}

#[derive(Default)]
struct Loader {
    stack: Vec<OpenCollection>,
    docs: Vec<Node>,
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
}

fn try_parse(text: &str) -> Result<Vec<Node>, (u32, Vec<Node>)> {
    let mut loader = Loader::default();
    let headers: Vec<bool> = text.lines().map(is_block_header).collect();
    for item in Parser::new_from_str(text) {
        match item {
            Ok((event, span)) => {
                let mut line = u32::try_from(span.start.line()).unwrap_or(u32::MAX);
                // The text of a block scalar begins on the line after its header.
                let block = matches!(event, Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..));
                if block && headers.get((line as usize).saturating_sub(1)) == Some(&true) {
                    line += 1;
                }
                if !loader.take(event, Place::of(0, line)) {
                    loader.close_all();
                    return Ok(loader.docs);
                }
            }
            Err(e) => {
                let line = u32::try_from(e.marker().line()).unwrap_or(1);
                loader.close_all();
                return Err((line, loader.docs));
            }
        }
    }
    loader.close_all();
    Ok(loader.docs)
}

/// Whether a line ends with the header of a block scalar: `|`, `>-`, `|2+`.
fn is_block_header(line: &str) -> bool {
    let t = line.split(" #").next().unwrap_or(line).trim_end();
    let body = t.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-'));
    body.ends_with(['|', '>'])
}

impl Loader {
    /// Handles one event. Returns false if a limit is exceeded.
    fn take(&mut self, event: Event<'_>, line: Place) -> bool {
        self.nodes += 1;
        if self.nodes > MAX_NODES || self.stack.len() > MAX_DEPTH {
            return false;
        }
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let size = 1 + text.len() / TEXT_OF_A_NODE;
                let value =
                    if style == ScalarStyle::Plain { plain_scalar(&text) } else { Value::Str(text.into_owned()) };
                self.done(Node::new(value, line), anchor, size);
            }
            Event::SequenceStart(anchor, _) => self.stack.push(OpenCollection::List(Vec::new(), line, anchor)),
            Event::MappingStart(anchor, _) => self.stack.push(OpenCollection::Map(Vec::new(), None, line, anchor)),
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(id) => {
                if let Some((node, size)) = self.anchors.get(&id) {
                    self.nodes += size;
                    if self.nodes > MAX_NODES {
                        return false;
                    }
                    let (node, size) = (node.clone(), *size);
                    self.done(node, 0, size);
                } else {
                    self.done(Node::new(Value::Null, line), 0, 1);
                }
            }
            _ => {}
        }
        true
    }

    fn close(&mut self) {
        match self.stack.pop() {
            Some(OpenCollection::List(items, line, anchor)) => {
                let node = Node::new(Value::List(items), line);
                let size = if anchor > 0 { count(&node) } else { 1 };
                self.done(node, anchor, size);
            }
            Some(OpenCollection::Map(entries, _, line, anchor)) => {
                let node = Node::new(Value::Map(entries), line);
                let size = if anchor > 0 { count(&node) } else { 1 };
                self.done(node, anchor, size);
            }
            None => {}
        }
    }

    fn close_all(&mut self) {
        while !self.stack.is_empty() {
            self.close();
        }
    }

    fn done(&mut self, node: Node, anchor: usize, size: usize) {
        // The stored node is a copy, which is also counted, since nested anchors would multiply. If it exceeds the
        // limit, parsing ends at the next node.
        if anchor > 0 {
            self.nodes += size;
            if self.nodes <= MAX_NODES {
                self.anchors.insert(anchor, (node.clone(), size));
            }
        }
        match self.stack.last_mut() {
            None => self.docs.push(node),
            Some(OpenCollection::List(items, ..)) => items.push(node),
            Some(OpenCollection::Map(entries, key, ..)) => match key.take() {
                None => *key = Some(node.shown().unwrap_or_default()),
                Some(k) if k == "<<" => {
                    let base: Vec<(String, Node)> = match &node.value {
                        Value::List(l) => l.iter().flat_map(|n| n.map().to_vec()).collect(),
                        _ => node.map().to_vec(),
                    };
                    entries.splice(0..0, base);
                }
                Some(k) => entries.push((k, node)),
            },
        }
    }
}

fn count(node: &Node) -> usize {
    match &node.value {
        Value::List(l) => 1 + l.iter().map(count).sum::<usize>(),
        Value::Map(m) => 1 + m.iter().map(|(_, v)| count(v)).sum::<usize>(),
        Value::Str(text) => 1 + text.len() / TEXT_OF_A_NODE,
        _ => 1,
    }
}
