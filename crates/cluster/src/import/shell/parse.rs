//! Parses scripts into commands. Parsing never fails: incomplete constructs end at the end of the text.

use super::ast::Cmd;
use super::text::Text;
use crate::import::place::Place;

pub(super) const MAX_DEPTH: u32 = 48;
/// Maximum number of commands in one chain of `&&` and `||`.
const MAX_CHAIN: usize = 400;
pub(super) const DECLARING: &[&str] = &["export", "declare", "local", "readonly", "typeset"];
const CLOSING: &[&str] = &["then", "else", "elif", "fi", "do", "done", "esac", "}"];

pub(crate) struct Parser {
    pub(super) src: Vec<char>,
    pub(super) pos: usize,
    pub(super) line: Place,
    /// Position after the here-documents of the current line, where parsing continues after that line.
    pub(super) after_line: Option<(usize, Place)>,
    pub(super) depth: u32,
    /// Line of each character, if the text was assembled from several places.
    lines: Option<Vec<Place>>,
}

/// Parses the commands of a script.
pub(crate) fn parse(text: &Text) -> Vec<Cmd> {
    let mut p = Parser::of(text);
    let mut out = Vec::new();
    while p.pos < p.src.len() {
        out.extend(p.list(false));
        // Skips a stray closing keyword or parenthesis.
        if p.pos < p.src.len() {
            p.bump();
        }
    }
    out
}

pub(super) fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl Parser {
    pub(super) fn new(text: &str, line: Place) -> Self {
        Parser { src: text.chars().collect(), pos: 0, line, after_line: None, depth: 0, lines: None }
    }

    pub(super) fn of(text: &Text) -> Self {
        let mut p = Parser::new(text.as_str(), text.line());
        p.lines = Some(text.as_str().char_indices().map(|(i, _)| text.line_at(i)).collect());
        p
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.src.get(self.pos).copied()
    }

    pub(super) fn peek_at(&self, n: usize) -> Option<char> {
        self.src.get(self.pos + n).copied()
    }

    pub(super) fn looking_at(&self, s: &str) -> bool {
        s.chars().enumerate().all(|(i, c)| self.peek_at(i) == Some(c))
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += 1;
        if c == '\n' {
            self.line = self.line.down(1);
            if let Some((pos, line)) = self.after_line.take()
                && pos > self.pos
            {
                self.pos = pos;
                self.line = line;
            }
        }
        if let Some(line) = self.lines.as_ref().and_then(|l| l.get(self.pos)) {
            self.line = *line;
        }
        Some(c)
    }

    pub(super) fn skip(&mut self, n: usize) {
        for _ in 0..n {
            self.bump();
        }
    }

    /// Skips blanks, line continuations and comments.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\r') => {
                    self.bump();
                }
                Some('\\') if self.peek_at(1) == Some('\n') => self.skip(2),
                Some('\\') if self.looking_at("\\\r\n") => self.skip(3),
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                }
                _ => return,
            }
        }
    }

    pub(super) fn newlines(&mut self) {
        loop {
            self.blanks();
            match self.peek() {
                Some('\n') => {
                    self.bump();
                }
                Some(';') if self.peek_at(1) != Some(';') => {
                    self.bump();
                }
                _ => return,
            }
        }
    }

    /// The bare word at the current position, without consuming it.
    pub(super) fn keyword(&self) -> String {
        let mut s = String::new();
        let mut i = 0;
        while let Some(c) = self.peek_at(i) {
            if c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '<' | '>') {
                break;
            }
            if s.len() > 12 {
                return String::new();
            }
            s.push(c);
            i += 1;
        }
        s
    }

    pub(super) fn take_keyword(&mut self, word: &str) -> bool {
        self.newlines();
        let found = self.keyword() == word;
        if found {
            self.skip(word.chars().count());
        }
        found
    }

    /// Parses commands up to a closing keyword, `)` or `;;`.
    pub(super) fn list(&mut self, in_case: bool) -> Vec<Cmd> {
        let mut out = Vec::new();
        self.depth += 1;
        while self.depth < MAX_DEPTH {
            self.newlines();
            if self.peek().is_none()
                || self.peek() == Some(')')
                || self.looking_at(";;")
                || (in_case && self.looking_at(";&"))
                || CLOSING.contains(&self.keyword().as_str())
            {
                break;
            }
            let before = self.pos;
            if let Some(c) = self.and_or() {
                out.push(c);
            }
            self.blanks();
            if self.peek() == Some('&') && self.peek_at(1) != Some('&') {
                self.bump();
            }
            if self.pos == before {
                self.bump();
            }
        }
        self.depth -= 1;
        out
    }

    pub(super) fn and_or(&mut self) -> Option<Cmd> {
        let mut left = self.pipeline()?;
        for _ in 0..MAX_CHAIN {
            self.blanks();
            let and = self.looking_at("&&");
            if !and && !self.looking_at("||") {
                return Some(left);
            }
            self.skip(2);
            self.blanks();
            while self.peek() == Some('\n') {
                self.bump();
                self.blanks();
            }
            let Some(right) = self.pipeline() else { return Some(left) };
            left =
                if and { Cmd::And(Box::new(left), Box::new(right)) } else { Cmd::Or(Box::new(left), Box::new(right)) };
        }
        Some(left)
    }

    pub(super) fn pipeline(&mut self) -> Option<Cmd> {
        self.blanks();
        let mut negated = false;
        while self.peek() == Some('!') && self.peek_at(1).is_some_and(char::is_whitespace) {
            self.bump();
            self.blanks();
            negated = !negated;
        }
        let stages = self.stages()?;
        Some(if negated { Cmd::Not(Box::new(stages)) } else { stages })
    }

    pub(super) fn stages(&mut self) -> Option<Cmd> {
        let mut stages = vec![self.command()?];
        loop {
            self.blanks();
            if self.peek() != Some('|') || self.peek_at(1) == Some('|') {
                break;
            }
            self.bump();
            if self.peek() == Some('&') {
                self.bump();
            }
            self.blanks();
            while self.peek() == Some('\n') {
                self.bump();
                self.blanks();
            }
            match self.command() {
                Some(c) => stages.push(c),
                None => break,
            }
        }
        if stages.len() == 1 { stages.pop() } else { Some(Cmd::Pipe(stages)) }
    }

    /// Consumes the text up to and including the matching `))`, and returns the text before it.
    pub(super) fn until_double_paren(&mut self) -> String {
        let mut s = String::new();
        let mut depth = 0;
        while let Some(c) = self.peek() {
            if c == ')' && depth == 0 {
                self.bump();
                if self.peek() == Some(')') {
                    self.bump();
                }
                break;
            }
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            s.push(c);
            self.bump();
        }
        s
    }
}
