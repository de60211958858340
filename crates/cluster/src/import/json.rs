//! A lenient JSON parser that records line numbers. It accepts comments, trailing commas, `True`, bare words and
//! duplicate keys.

use super::value::{Node, Value, plain_scalar};
use crate::import::place::Place;

const MAX_DEPTH: usize = 64;

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: u32,
}

/// Parses one value. Returns `None` if the text does not begin with `{` or `[`, or is truncated so that it cannot be
/// recovered.
pub(crate) fn parse(text: &str) -> Option<Node> {
    let mut r = Reader { rest: text.chars().peekable(), line: 1 };
    r.space();
    match r.rest.peek() {
        Some('{' | '[') => r.value(0),
        _ => None,
    }
}

impl Reader<'_> {
    fn bump(&mut self) -> Option<char> {
        let c = self.rest.next();
        if c == Some('\n') {
            self.line += 1;
        }
        c
    }

    fn space(&mut self) {
        while let Some(&c) = self.rest.peek() {
            if c.is_whitespace() || c == ',' {
                self.bump();
            } else if c == '#' {
                self.skip_line();
            } else if c == '/' {
                let mut ahead = self.rest.clone();
                ahead.next();
                match ahead.next() {
                    Some('/') => self.skip_line(),
                    Some('*') => {
                        let mut last = ' ';
                        self.bump();
                        self.bump();
                        while let Some(c) = self.bump() {
                            if last == '*' && c == '/' {
                                break;
                            }
                            last = c;
                        }
                    }
                    _ => return,
                }
            } else {
                return;
            }
        }
    }

    fn skip_line(&mut self) {
        while self.rest.peek().is_some_and(|c| *c != '\n') {
            self.bump();
        }
    }

    fn value(&mut self, depth: usize) -> Option<Node> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.space();
        let line = self.line;
        match *self.rest.peek()? {
            '{' => {
                self.bump();
                let mut entries: Vec<(String, Node)> = Vec::new();
                loop {
                    self.space();
                    match self.rest.peek() {
                        None => break,
                        Some('}') => {
                            self.bump();
                            break;
                        }
                        _ => {}
                    }
                    let key = self.scalar()?.text().unwrap_or_default();
                    self.space();
                    if self.rest.peek() == Some(&':') {
                        self.bump();
                    } else {
                        return None;
                    }
                    let node = self.value(depth + 1)?;
                    entries.push((key, node));
                }
                Some(Node::new(Value::Map(entries), Place::of(0, line)))
            }
            '[' => {
                self.bump();
                let mut items = Vec::new();
                loop {
                    self.space();
                    match self.rest.peek() {
                        None => break,
                        Some(']') => {
                            self.bump();
                            break;
                        }
                        _ => items.push(self.value(depth + 1)?),
                    }
                }
                Some(Node::new(Value::List(items), Place::of(0, line)))
            }
            _ => self.scalar(),
        }
    }

    fn scalar(&mut self) -> Option<Node> {
        let line = self.line;
        let quote = *self.rest.peek()?;
        if quote == '"' || quote == '\'' {
            self.bump();
            let mut s = String::new();
            while let Some(c) = self.bump() {
                match c {
                    '\\' => match self.bump()? {
                        'n' => s.push('\n'),
                        't' => s.push('\t'),
                        'u' => {
                            let hex: String = (0..4).filter_map(|_| self.bump()).collect();
                            s.push(u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32).unwrap_or('?'));
                        }
                        c => s.push(c),
                    },
                    c if c == quote => return Some(Node::str(s, Place::of(0, line))),
                    c => s.push(c),
                }
            }
            return Some(Node::str(s, Place::of(0, line)));
        }
        let mut s = String::new();
        while let Some(&c) = self.rest.peek() {
            if matches!(c, ',' | ':' | '}' | ']' | '{' | '[' | '#' | '\n') {
                break;
            }
            s.push(c);
            self.bump();
        }
        let s = s.trim();
        (!s.is_empty()).then(|| Node::new(plain_scalar(s), Place::of(0, line)))
    }
}
