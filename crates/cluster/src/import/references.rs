//! Resolves references in documents, in the syntax of OmegaConf, Primus and shells: `${a.b}`, `${.c}`,
//! `${NAME:default}`, `${oc.env:NAME,default}`, and arithmetic such as `${multiply:${a},${b}}`.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::unknown;
use super::value::{Node, Value, plain_scalar};
use crate::import::place::Place;

/// Maximum depth of references to references.
const MAX_DEPTH: u32 = 16;
/// Maximum length in bytes of a text in which references are resolved, and of the result.
const MAX_TEXT: usize = 4096;
/// Maximum number of values that references may copy in total.
const MAX_COPIES: u32 = 100_000;

/// Replaces the references in a document. Values that cannot be determined are marked as unknown.
pub(super) fn resolve(root: &Node, env: &BTreeMap<String, String>) -> Node {
    Resolver { root, env, copies: Cell::new(MAX_COPIES) }.node(root, &[], 0)
}

struct Resolver<'a> {
    root: &'a Node,
    env: &'a BTreeMap<String, String>,
    copies: Cell<u32>,
}

impl Resolver<'_> {
    /// Resolves a node. `path` is the path of the enclosing mapping, against which relative references are resolved.
    fn node(&self, n: &Node, path: &[String], depth: u32) -> Node {
        if depth > 0 {
            match self.copies.get().checked_sub(1) {
                Some(left) => self.copies.set(left),
                None => return Node::new(Value::Str(unknown::opaque("reference")), n.line),
            }
        }
        let value = match &n.value {
            Value::Str(s) => self.text(s, path, depth),
            Value::List(l) => Value::List(l.iter().map(|v| self.node(v, path, depth)).collect()),
            Value::Map(m) => {
                let inside = |k: &String, v: &Node| {
                    if v.is_map() { [path, std::slice::from_ref(k)].concat() } else { path.to_vec() }
                };
                Value::Map(m.iter().map(|(k, v)| (k.clone(), self.node(v, &inside(k, v), depth))).collect())
            }
            v => v.clone(),
        };
        Node::new(value, n.line)
    }

    fn text(&self, s: &str, path: &[String], depth: u32) -> Value {
        if !s.contains("${") || s.len() > MAX_TEXT || depth > MAX_DEPTH {
            return Value::Str(s.to_owned());
        }
        // If the text is a single reference, the type of the referenced value is kept.
        if let Some(inner) = whole(s) {
            return self.one(inner, path, depth);
        }
        let mut out = String::with_capacity(s.len());
        let mut rest = s;
        while let Some(i) = rest.find("${") {
            out.push_str(rest.get(..i).unwrap_or(""));
            let tail = rest.get(i + 2..).unwrap_or("");
            let Some(end) = closing(tail) else {
                out.push_str("${");
                rest = tail;
                continue;
            };
            let node = Node::new(self.one(tail.get(..end).unwrap_or(""), path, depth), Place::NONE);
            out.push_str(&node.word());
            rest = tail.get(end + 1..).unwrap_or("");
            if out.len() > MAX_TEXT {
                break;
            }
        }
        out.push_str(rest);
        if unknown::is_in(&out) || out == s { Value::Str(out) } else { plain_scalar(&out) }
    }

    /// Value of `${inner}`.
    fn one(&self, inner: &str, path: &[String], depth: u32) -> Value {
        if depth > MAX_DEPTH {
            return Value::Str(unknown::opaque("reference"));
        }
        let inner = inner.trim();
        if let Some((name, arguments)) = inner.split_once(':') {
            match name {
                "oc.env" => {
                    let (name, default) = arguments.split_once(',').map_or((arguments, None), |(n, d)| (n, Some(d)));
                    return self.variable(name, default, path, depth);
                }
                "oc.select" => {
                    let (target, default) = arguments.split_once(',').map_or((arguments, None), |(n, d)| (n, Some(d)));
                    return self
                        .target(target.trim(), path, depth)
                        .unwrap_or_else(|| self.default(default, path, depth));
                }
                "oc.decode" => return self.argument(arguments, path, depth),
                _ => {}
            }
            if let Some(operation) = operation(name) {
                let arguments = split(arguments).into_iter().map(|a| self.argument(a, path, depth)).collect::<Vec<_>>();
                return calculate(operation, &arguments);
            }
        }
        if let Some(value) = self.target(inner, path, depth) {
            return value;
        }
        let Some(j) = inner.find([':', '-', '?', '+']).filter(|j| inner.get(..*j).is_some_and(is_env_name)) else {
            return self.variable(inner, None, path, depth);
        };
        let (name, rest) = inner.split_at(j);
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        match rest.chars().next() {
            // The text after `?` is the error message that a shell prints if the variable is not set.
            Some('?') => self.variable(name, None, path, depth),
            Some('+') if !self.env.contains_key(name) => Value::Str(String::new()),
            Some('+') => self.argument(rest.trim_start_matches('+'), path, depth),
            _ => self.variable(name, Some(rest.trim_start_matches(['-', '='])), path, depth),
        }
    }

    fn variable(&self, name: &str, default: Option<&str>, path: &[String], depth: u32) -> Value {
        let name = name.trim();
        match self.env.get(name) {
            Some(value) => plain_scalar(value),
            None if default.is_some() => self.default(default, path, depth),
            None if is_env_name(name) => Value::Str(unknown::of(name)),
            None => Value::Str(unknown::opaque("reference")),
        }
    }

    fn default(&self, text: Option<&str>, path: &[String], depth: u32) -> Value {
        text.map_or_else(|| Value::Str(unknown::opaque("reference")), |text| self.argument(text, path, depth))
    }

    /// Resolves an argument of a resolver, which may contain references.
    fn argument(&self, text: &str, path: &[String], depth: u32) -> Value {
        let text = text.trim().trim_matches(['"', '\'']);
        if text.contains("${") { self.text(text, path, depth + 1) } else { plain_scalar(text) }
    }

    /// Value at the target of a reference. Relative references begin with dots: one for the enclosing mapping, and one
    /// more for each level above.
    fn target(&self, reference: &str, path: &[String], depth: u32) -> Option<Value> {
        let dots = reference.len() - reference.trim_start_matches('.').len();
        let name = reference.get(dots..)?;
        let base: Vec<String> = match dots {
            0 => Vec::new(),
            _ => path.get(..path.len().checked_sub(dots - 1)?)?.to_vec(),
        };
        let steps = |head: &[&str], name: &str| -> Vec<String> {
            let head = head.iter().map(|s| (*s).to_owned());
            base.iter().cloned().chain(head).chain(name.split('.').map(str::to_owned)).collect()
        };
        // The name is tried as an absolute path, inside `parameters` or `macros`, and without the launcher's prefix
        // `training.`.
        let mut places = vec![steps(&[], name)];
        if dots == 0 {
            places.extend([steps(&["parameters"], name), steps(&["macros"], name)]);
            places.extend(name.strip_prefix("training.").map(|rest| steps(&[], rest)));
        }
        places.into_iter().find_map(|mut place| {
            let found = place.iter().try_fold(self.root, |n, k| n.get(k)).filter(|n| !n.is_map())?;
            // `NAME: ${NAME}` passes on an environment variable.
            if found.raw().and_then(whole) == Some(reference) {
                return None;
            }
            place.pop();
            Some(self.node(found, &place, depth + 1).value)
        })
    }
}

/// The content of `${…}`, if the text is a single reference.
fn whole(s: &str) -> Option<&str> {
    let tail = s.trim().strip_prefix("${")?;
    let end = closing(tail)?;
    (end + 1 == tail.len()).then(|| tail.get(..end)).flatten()
}

/// Index of the bracket that closes a reference, whose opening bracket precedes the text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(j, c)| {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(j),
            '}' => depth -= 1,
            _ => {}
        }
        None
    })
}

/// Splits arguments at commas that are not inside brackets.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

#[derive(Clone, Copy)]
enum Operation {
    Multiply,
    Add,
    Subtract,
    Divide,
    DivideDown,
    DivideUp,
    Max,
    Min,
}

/// Parses the name of an arithmetic operation, as used by NeMo, its launcher and verl.
fn operation(name: &str) -> Option<Operation> {
    Some(match name.trim() {
        "multiply" | "mul" | "mult" | "prod" => Operation::Multiply,
        "add" | "sum" | "plus" => Operation::Add,
        "subtract" | "sub" | "minus" => Operation::Subtract,
        "divide" | "div" | "truediv" => Operation::Divide,
        "divide_floor" | "int_div" | "floordiv" | "floor_div" | "int_divide" => Operation::DivideDown,
        "divide_ceil" | "ceil_div" | "ceildiv" => Operation::DivideUp,
        "max" => Operation::Max,
        "min" => Operation::Min,
        _ => return None,
    })
}

fn calculate(operation: Operation, arguments: &[Value]) -> Value {
    let nodes = || arguments.iter().map(|v| Node::new(v.clone(), Place::NONE));
    let numbers: Option<Vec<f64>> = nodes().map(|n| n.float()).collect();
    let Some((first, rest)) = numbers.as_deref().and_then(<[f64]>::split_first) else {
        // Variables that must be set to compute the result.
        let names: Vec<String> = nodes().filter_map(|n| n.raw().map(unknown::names)).flatten().collect();
        return Value::Str(unknown::opaque(&format!("reference:{}", names.join(","))));
    };
    let result = rest.iter().fold(*first, |a, b| match operation {
        Operation::Multiply => a * b,
        Operation::Add => a + b,
        Operation::Subtract => a - b,
        Operation::Divide => a / b,
        Operation::DivideDown => (a / b).floor(),
        Operation::DivideUp => (a / b).ceil(),
        Operation::Max => a.max(*b),
        Operation::Min => a.min(*b),
    });
    match result {
        r if !r.is_finite() => Value::Str(unknown::opaque("reference")),
        r if r.fract() == 0.0 && r.abs() < 9e15 => Value::Int(r as i64),
        r => Value::Float(r),
    }
}

fn is_env_name(s: &str) -> bool {
    !s.is_empty()
        && s.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && s.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}
