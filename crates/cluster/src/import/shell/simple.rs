//! Parses simple commands: assignments, redirections, here-documents.

use super::ast::{Arg, Assign, AssignValue, Redir, Simple, Word};
use super::parse::{DECLARING, Parser, is_name};
use crate::import::place::Place;

impl Parser {
    pub(super) fn simple(&mut self, line: Place) -> Simple {
        let mut s = Simple { line, ..Simple::default() };
        let mut declaring = false;
        loop {
            self.blanks();
            let Some(c) = self.peek() else { break };
            if matches!(c, '\n' | ';' | '|' | ')') || (c == '&' && self.peek_at(1) != Some('>')) {
                break;
            }
            if self.redirection(&mut s.redirs) {
                continue;
            }
            if (s.words.is_empty() || declaring)
                && let Some(a) = self.assignment()
            {
                if declaring {
                    s.words.push(Arg::Assign(a))
                } else {
                    s.assigns.push(a)
                }
                continue;
            }
            match self.word() {
                Some(w) => {
                    if s.words.is_empty() {
                        declaring = w.plain().is_some_and(|p| DECLARING.contains(&p));
                    }
                    s.words.push(Arg::Word(w));
                }
                None => {
                    self.bump();
                }
            }
        }
        s
    }

    pub(super) fn redirection(&mut self, out: &mut Vec<Redir>) -> bool {
        let mut n = 0;
        while self.peek_at(n).is_some_and(|c| c.is_ascii_digit()) {
            n += 1;
        }
        let from_err = n > 0 && self.peek() != Some('1');
        let both = n == 0 && self.peek() == Some('&') && self.peek_at(1) == Some('>');
        if both {
            n = 1;
        }
        if !matches!(self.peek_at(n), Some('<' | '>')) {
            return false;
        }
        if n == 0 && self.peek_at(1) == Some('(') {
            return false;
        }
        self.skip(n);
        if self.looking_at("<<<") {
            self.skip(3);
            self.blanks();
            if let Some(w) = self.word() {
                out.push(Redir::Here(w));
            }
            return true;
        }
        if self.looking_at("<<") {
            self.skip(2);
            let strip = self.peek() == Some('-');
            if strip {
                self.bump();
            }
            self.blanks();
            out.push(Redir::Here(self.heredoc(strip)));
            return true;
        }
        let write = self.peek() == Some('>');
        self.bump();
        let append = self.peek() == Some('>');
        if append {
            self.bump();
        }
        if matches!(self.peek(), Some('&' | '|')) {
            let amp = self.peek() == Some('&');
            self.bump();
            if amp {
                while self.peek().is_some_and(|c| c.is_ascii_digit() || c == '-') {
                    self.bump();
                }
                return true;
            }
        }
        self.blanks();
        match self.word() {
            Some(w) if write && !from_err => out.push(Redir::Out(w, append)),
            Some(w) if !write && n == 0 => out.push(Redir::In(w)),
            _ => {}
        }
        true
    }

    /// Parses the body of a here-document. Parsing continues on the current line and skips the body after it.
    pub(super) fn heredoc(&mut self, strip: bool) -> Word {
        let mut delim = String::new();
        let mut quoted = false;
        while let Some(c) = self.peek() {
            match c {
                '\'' | '"' | '\\' => quoted = true,
                c if c.is_whitespace() || matches!(c, ';' | '&' | '|' | ')' | '<' | '>') => break,
                c => delim.push(c),
            }
            self.bump();
        }
        let (mut pos, mut line) = match self.after_line {
            Some(p) => p,
            None => {
                let end = self
                    .src
                    .iter()
                    .skip(self.pos)
                    .position(|c| *c == '\n')
                    .map_or(self.src.len(), |i| self.pos + i + 1);
                (end, self.line.down(1))
            }
        };
        let first = line;
        let mut body = String::new();
        while pos < self.src.len() {
            let text: String = self.src.iter().skip(pos).take_while(|c| **c != '\n').collect();
            pos += text.chars().count() + 1;
            line = line.down(1);
            let t = if strip { text.trim_start_matches('\t') } else { &text };
            if t.trim_end_matches('\r') == delim || (strip && t.trim() == delim) {
                break;
            }
            body.push_str(t);
            body.push('\n');
        }
        self.after_line = Some((pos.min(self.src.len()), line));
        if quoted { Word::quoted_lines(&body, first) } else { Parser::new(&body, first).dquoted_all(true) }
    }

    pub(super) fn assignment(&mut self) -> Option<Assign> {
        let mut n = 0;
        while self.peek_at(n).is_some_and(is_name) {
            n += 1;
        }
        if n == 0 || self.peek()?.is_ascii_digit() {
            return None;
        }
        let mut at = n;
        if self.peek_at(at) == Some('[') {
            let mut depth = 0;
            loop {
                match self.peek_at(at)? {
                    '[' => depth += 1,
                    ']' => depth -= 1,
                    '\n' => return None,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    break;
                }
            }
        }
        let append = self.peek_at(at) == Some('+');
        if self.peek_at(at + usize::from(append)) != Some('=')
            || self.peek_at(at + usize::from(append) + 1) == Some('=')
        {
            return None;
        }
        let name: String = self.src.get(self.pos..self.pos + n)?.iter().collect();
        let index = (at > n + 1).then(|| {
            let raw: String = self.src.get(self.pos + n + 1..self.pos + at - 1).unwrap_or(&[]).iter().collect();
            Parser::new(&raw, self.line).all_as_word()
        });
        self.skip(at + usize::from(append) + 1);
        let value = if self.peek() == Some('(') {
            self.bump();
            AssignValue::Array(self.array_items())
        } else {
            let line = self.line;
            AssignValue::Word(self.word().unwrap_or(Word { parts: Vec::new(), line }))
        };
        Some(Assign { name, index, append, value })
    }

    pub(super) fn array_items(&mut self) -> Vec<(Option<Word>, Word)> {
        let mut out = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                None => break,
                Some(')') => {
                    self.bump();
                    break;
                }
                Some('\n') => {
                    self.bump();
                }
                Some('[') => {
                    let start = (self.pos, self.line);
                    let mut key = String::new();
                    self.bump();
                    while let Some(c) = self.peek().filter(|c| !matches!(c, ']' | '\n')) {
                        key.push(c);
                        self.bump();
                    }
                    self.bump();
                    if self.peek() == Some('=') {
                        self.bump();
                        let k = Parser::new(&key, start.1).all_as_word();
                        out.push((Some(k), self.word().unwrap_or_default()));
                    } else {
                        out.push((None, Word::literal(&format!("[{key}]"), start.1)));
                    }
                }
                _ => match self.word() {
                    Some(w) => out.push((None, w)),
                    None => {
                        self.bump();
                    }
                },
            }
        }
        out
    }
}
