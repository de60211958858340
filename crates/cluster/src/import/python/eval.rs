//! Evaluates Python expressions as far as the file itself determines their values.

use std::cell::Cell;
use std::collections::HashMap;

use super::lex::{Token, TokenKind, words};
use crate::import::place::Place;
use crate::import::unknown;
use crate::import::value::{Node, Value};

/// Maximum nesting depth of expressions.
const MAX_DEPTH: u32 = 40;

/// Values of names.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) names: HashMap<String, Node>,
    /// Defaults of `add_argument`, independent of the name of the parsed arguments.
    pub(super) arguments: HashMap<String, Node>,
    /// Number of tokens that were processed.
    pub(super) steps: Cell<u32>,
    /// Number of bytes that were copied from one value into another.
    copied: Cell<usize>,
}

/// Maximum number of tokens that are processed per file.
const MAX_STEPS: u32 = 2_000_000;
/// Maximum number of bytes that are copied per file: `x = x + x` doubles a value on each line.
const MAX_COPIED: usize = 32 << 20;

impl Scope {
    /// Counts copied bytes. Returns whether the limit still holds.
    fn count_copied(&self, bytes: usize) -> bool {
        self.copied.set(self.copied.get().saturating_add(bytes));
        self.copied.get() <= MAX_COPIED
    }
}

/// An argument of a call, with its keyword if it has one.
pub(super) type Argument = (Option<String>, Node);

pub(super) struct Reader<'a> {
    pub(super) tokens: &'a [Token],
    pub(super) pos: usize,
    pub(super) scope: &'a Scope,
    pub(super) depth: u32,
}

/// Evaluates a whole expression.
pub(super) fn value(tokens: &[Token], scope: &Scope) -> Node {
    Reader { tokens, pos: 0, scope, depth: 0 }.expression()
}

fn open(what: &str, line: Place) -> Node {
    Node::str(unknown::opaque(what), line)
}

/// Text of a value that is interpolated into a string.
pub(super) fn shown(n: &Node) -> String {
    match &n.value {
        Value::Str(s) => s.clone(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) => f.to_string(),
        Value::Bool(b) => if *b { "True" } else { "False" }.to_owned(),
        _ => unknown::opaque("value"),
    }
}

pub(super) fn is_open(n: &Node) -> bool {
    matches!(&n.value, Value::Str(s) if unknown::is_in(s))
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.pos)
    }

    fn line(&self) -> Place {
        self.peek().or(self.tokens.last()).map_or(Place::NONE, |t| t.line)
    }

    fn at(&self, op: &str) -> bool {
        self.peek().is_some_and(|t| t.is(op))
    }

    fn take(&mut self, op: &str) -> bool {
        let hit = self.at(op);
        self.pos += usize::from(hit);
        hit
    }

    fn name_is(&self, name: &str) -> bool {
        matches!(self.peek().map(|t| &t.tok), Some(TokenKind::Name(n)) if n == name)
    }

    pub(super) fn expression(&mut self) -> Node {
        let line = self.line();
        self.scope.steps.set(self.scope.steps.get().saturating_add(1));
        if self.depth >= MAX_DEPTH || self.scope.steps.get() > MAX_STEPS {
            self.pos = self.tokens.len();
            return open("deep", line);
        }
        self.depth += 1;
        let mut left = self.product();
        loop {
            if self.take("+") {
                let right = self.product();
                left = added(left, right);
            } else if self.take("-") {
                let right = self.product();
                left = whole(&left, &right, i64::checked_sub);
            } else {
                break;
            }
        }
        if self.name_is("or") {
            self.pos += 1;
            let right = self.expression();
            if is_open(&left) || left.value == Value::Null {
                left = right;
            }
        } else if self.name_is("if") {
            self.pos += 1;
            self.expression();
            while !self.name_is("else") && self.peek().is_some_and(|t| !closes(t)) {
                self.pos += 1;
                if self.at("(") || self.at("[") || self.at("{") {
                    self.skip_group();
                }
            }
            if self.name_is("else") {
                self.pos += 1;
                self.expression();
            }
            left = open("choice", line);
        } else if self.peek().is_some_and(|t| !closes(t)) {
            // Skips an operation that is not evaluated.
            while self.peek().is_some_and(|t| !closes(t)) {
                if self.at("(") || self.at("[") || self.at("{") {
                    self.skip_group();
                } else {
                    self.pos += 1;
                }
            }
            left = open("operation", line);
        }
        self.depth -= 1;
        left
    }

    fn product(&mut self) -> Node {
        let mut left = self.term();
        loop {
            if self.take("*") {
                let right = self.term();
                left = whole(&left, &right, i64::checked_mul);
            } else if self.take("//") {
                let right = self.term();
                left = whole(&left, &right, i64::checked_div);
            } else if self.take("**") {
                let right = self.term();
                left = whole(&left, &right, |a, b| a.checked_pow(u32::try_from(b).ok()?));
            } else {
                return left;
            }
        }
    }

    fn term(&mut self) -> Node {
        let line = self.line();
        let Some(token) = self.peek().cloned() else { return open("end", line) };
        self.pos += 1;
        match token.tok {
            TokenKind::Number(n) => number(&n, line),
            TokenKind::Text(text, format) => {
                let mut all = self.formatted(&text, format, line);
                while let Some(Token { tok: TokenKind::Text(text, format), line }) = self.peek().cloned() {
                    self.pos += 1;
                    all.push_str(&self.formatted(&text, format, line));
                }
                self.method(all, line)
            }
            TokenKind::Op("[") => Node::new(Value::List(self.items("]")), line),
            TokenKind::Op("(") => {
                let mut items = self.items(")");
                let tuple = self.tokens.get(self.pos.wrapping_sub(2)).is_some_and(|t| t.is(","));
                match items.len() {
                    1 if !tuple => items.pop().unwrap_or_else(|| open("group", line)),
                    _ => Node::new(Value::List(items), line),
                }
            }
            TokenKind::Op("{") => self.dictionary(line),
            TokenKind::Op("-") => {
                let mut minus = true;
                while self.take("-") {
                    minus = !minus;
                }
                match self.term().value {
                    Value::Int(i) => Node::new(Value::Int(if minus { i.saturating_neg() } else { i }), line),
                    Value::Float(f) => Node::new(Value::Float(if minus { -f } else { f }), line),
                    _ => open("sign", line),
                }
            }
            TokenKind::Name(name) => self.name(&name, line),
            TokenKind::Op(_) => open("operator", line),
        }
    }

    fn name(&mut self, name: &str, line: Place) -> Node {
        match name {
            "True" => return Node::new(Value::Bool(true), line),
            "False" => return Node::new(Value::Bool(false), line),
            "None" => return Node::new(Value::Null, line),
            _ => {}
        }
        if self.take("(") {
            let args = self.arguments();
            return call(name, args, line);
        }
        if self.at("[") {
            self.skip_group();
            return open("item", line);
        }
        let last = name.rsplit('.').next().unwrap_or(name);
        let argument = || self.scope.arguments.get(last).filter(|_| name.contains('.'));
        if let Some(n) = self.scope.names.get(name).or_else(argument) {
            return if self.scope.count_copied(n.bytes()) { n.clone() } else { open("large", line) };
        }
        if name.starts_with("torch.") {
            return Node::str(last, line);
        }
        Node::str(unknown::of(last), line)
    }

    /// Evaluates methods of strings, such as `" ".join(list)` and `"…".split()`.
    fn method(&mut self, text: String, line: Place) -> Node {
        if !self.take(".") {
            return Node::str(text, line);
        }
        let Some(Token { tok: TokenKind::Name(method), .. }) = self.peek().cloned() else {
            return open("method", line);
        };
        self.pos += 1;
        if !self.take("(") {
            return open("method", line);
        }
        let args = self.arguments();
        match (method.as_str(), args.first().map(|(_, n)| n)) {
            ("join", Some(Node { value: Value::List(l), .. }))
                if self.scope.count_copied(text.len().saturating_mul(l.len())) =>
            {
                Node::str(l.iter().map(shown).collect::<Vec<_>>().join(&text), line)
            }
            ("split", None) => {
                Node::new(Value::List(text.split_whitespace().map(|w| Node::str(w, line)).collect()), line)
            }
            ("strip", None) => Node::str(text.trim(), line),
            _ => open("method", line),
        }
    }

    /// Items up to a closing bracket; `*list` is expanded.
    fn items(&mut self, close: &str) -> Vec<Node> {
        let mut out = Vec::new();
        while self.peek().is_some() && !self.take(close) {
            let star = self.take("*");
            let n = self.expression();
            match n.value {
                Value::List(l) if star => out.extend(l),
                _ => out.push(n),
            }
            if !self.take(",") && !self.at(close) {
                self.pos += 1;
            }
        }
        out
    }

    fn dictionary(&mut self, line: Place) -> Node {
        let mut out = Node::new(Value::Map(Vec::new()), line);
        while self.peek().is_some() && !self.take("}") {
            let key = self.expression();
            if self.take(":") {
                let value = self.expression();
                if let Value::Str(k) = key.value {
                    out.put(&k, value);
                }
            }
            if !self.take(",") && !self.at("}") {
                self.pos += 1;
            }
        }
        out
    }

    /// Arguments after an opening parenthesis.
    pub(super) fn arguments(&mut self) -> Vec<Argument> {
        let mut out = Vec::new();
        while self.peek().is_some() && !self.take(")") {
            while self.take("*") || self.take("**") {}
            let named = match (self.peek().map(|t| &t.tok), self.tokens.get(self.pos + 1)) {
                (Some(TokenKind::Name(n)), Some(eq)) if eq.is("=") => Some(n.clone()),
                _ => None,
            };
            if named.is_some() {
                self.pos += 2;
            }
            out.push((named, self.expression()));
            if !self.take(",") && !self.at(")") {
                self.pos += 1;
            }
        }
        out
    }

    fn skip_group(&mut self) {
        let mut depth = 0_u32;
        while let Some(t) = self.peek() {
            if ["(", "[", "{"].iter().any(|o| t.is(o)) {
                depth += 1;
            } else if [")", "]", "}"].iter().any(|o| t.is(o)) {
                depth = depth.saturating_sub(1);
            }
            self.pos += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// Replaces the `{expressions}` in a format string.
    fn formatted(&self, text: &str, format: bool, line: Place) -> String {
        if !format {
            return text.to_owned();
        }
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            if let Some(literal) = after.strip_prefix('{') {
                out.push('{');
                rest = literal;
                continue;
            }
            let (inner, tail) = after.split_once('}').unwrap_or((after, ""));
            let plain = inner.split(['!', ':']).next().unwrap_or(inner);
            let tokens = words(plain, line);
            let depth = self.depth + 1;
            out.push_str(&shown(&Reader { tokens: &tokens, pos: 0, scope: self.scope, depth }.expression()));
            rest = tail;
        }
        out.push_str(&rest.replace("}}", "}"));
        out
    }
}

/// Whether the token ends an expression.
fn closes(t: &Token) -> bool {
    [")", "]", "}", ",", ":", "="].iter().any(|o| t.is(o))
        || matches!(&t.tok, TokenKind::Name(n) if matches!(n.as_str(), "else" | "for"))
}

fn number(text: &str, line: Place) -> Node {
    let value = match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(i), _) => Value::Int(i),
        (_, Ok(f)) if f.is_finite() => Value::Float(f),
        _ => Value::Str(text.to_owned()),
    };
    Node::new(value, line)
}

fn added(left: Node, right: Node) -> Node {
    let line = left.line;
    match (left.value, right.value) {
        (Value::List(mut a), Value::List(b)) => {
            a.extend(b);
            Node::new(Value::List(a), line)
        }
        (Value::Str(a), Value::Str(b)) => Node::str(a + &b, line),
        (Value::Int(a), Value::Int(b)) => {
            a.checked_add(b).map_or_else(|| open("sum", line), |n| Node::new(Value::Int(n), line))
        }
        _ => open("sum", line),
    }
}

fn whole(left: &Node, right: &Node, f: impl Fn(i64, i64) -> Option<i64>) -> Node {
    match (&left.value, &right.value) {
        (Value::Int(a), Value::Int(b)) => {
            f(*a, *b).map_or_else(|| open("number", left.line), |n| Node::new(Value::Int(n), left.line))
        }
        _ => open("number", left.line),
    }
}

/// Evaluates a call: a conversion, access to the environment with a default, or a constructor with its settings.
fn call(name: &str, args: Vec<Argument>, line: Place) -> Node {
    let first = args.first().map(|(_, n)| n.clone());
    match (name, first) {
        ("str", Some(n)) => Node::str(shown(&n), n.line),
        ("int", Some(n)) => match &n.value {
            Value::Str(s) => s.trim().parse().map_or(n.clone(), |i| Node::new(Value::Int(i), n.line)),
            _ => n,
        },
        ("list" | "tuple" | "float" | "bool", Some(n)) => n,
        ("shlex.split", Some(Node { value: Value::Str(s), line })) => Node::str(s, line),
        ("shlex.join", Some(Node { value: Value::List(l), line })) => {
            Node::str(l.iter().map(shown).collect::<Vec<_>>().join(" "), line)
        }
        ("os.environ.get" | "os.getenv" | "environ.get" | "getenv", Some(variable)) => match args.get(1) {
            Some((_, default)) => default.clone(),
            None => Node::str(unknown::of(&shown(&variable)), line),
        },
        _ if args.iter().any(|(k, _)| k.is_some()) => {
            let mut out = Node::new(Value::Map(Vec::new()), line);
            for (k, v) in args {
                if let Some(k) = k {
                    out.put(&k, v);
                }
            }
            out
        }
        _ => open("call", line),
    }
}
