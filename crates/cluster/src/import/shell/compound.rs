//! Parses compound commands: `if`, loops, `case`, functions, `[[ … ]]`.

use std::rc::Rc;

use super::ast::{Cmd, Tok, Word};
use super::parse::{MAX_DEPTH, Parser, is_name};

impl Parser {
    pub(super) fn command(&mut self) -> Option<Cmd> {
        self.blanks();
        let line = self.line;
        let word = self.keyword();
        let compound = match word.as_str() {
            "if" => {
                self.skip(2);
                Some(self.if_())
            }
            "for" | "select" => {
                self.skip(word.len());
                Some(self.for_())
            }
            "while" | "until" => {
                self.skip(5);
                let cond = self.list(false);
                Some(Cmd::While { cond, body: self.do_body(), until: word == "until" })
            }
            "case" => {
                self.skip(4);
                Some(self.case())
            }
            "function" => {
                self.skip(8);
                self.blanks();
                let name = self.keyword();
                self.skip(name.chars().count());
                self.blanks();
                if self.looking_at("()") {
                    self.skip(2);
                }
                return Some(self.func(name));
            }
            "[[" => {
                self.skip(2);
                Some(Cmd::Test(self.test_tokens()))
            }
            "{" => {
                self.skip(1);
                let body = self.list(false);
                self.take_keyword("}");
                Some(Cmd::Group { body, redirs: Vec::new() })
            }
            _ if self.looking_at("((") => {
                self.skip(2);
                Some(Cmd::Arith(self.until_double_paren(), line))
            }
            _ if self.peek() == Some('(') => {
                self.bump();
                let body = self.list(false);
                if self.peek() == Some(')') {
                    self.bump();
                }
                Some(Cmd::Group { body, redirs: Vec::new() })
            }
            _ => None,
        };
        if let Some(c) = compound {
            let rest = self.simple(line);
            return Some(match c {
                Cmd::Group { body, .. } => Cmd::Group { body, redirs: rest.redirs },
                c => c,
            });
        }
        // A function definition: `name() { … }`.
        let name_len = word.chars().count();
        let mut at = name_len;
        while matches!(self.peek_at(at), Some(' ' | '\t')) {
            at += 1;
        }
        if name_len > 0
            && self.peek_at(at) == Some('(')
            && self.peek_at(at + 1) == Some(')')
            && !word.contains(['=', '$', '"', '\''])
        {
            self.skip(at + 2);
            return Some(self.func(word));
        }
        let long_name = self.func_name();
        if let Some(name) = long_name {
            return Some(self.func(name));
        }
        let s = self.simple(line);
        (!s.words.is_empty() || !s.assigns.is_empty() || !s.redirs.is_empty()).then_some(Cmd::Simple(s))
    }

    /// The name of a function, if `()` follows.
    pub(super) fn func_name(&mut self) -> Option<String> {
        let mut n = 0;
        while self.peek_at(n).is_some_and(|c| is_name(c) || matches!(c, '-' | '.' | ':')) {
            n += 1;
        }
        let name: String = self.src.get(self.pos..self.pos + n)?.iter().collect();
        let mut at = n;
        while matches!(self.peek_at(at), Some(' ' | '\t')) {
            at += 1;
        }
        if n == 0 || self.peek_at(at) != Some('(') || self.peek_at(at + 1) != Some(')') {
            return None;
        }
        self.skip(at + 2);
        Some(name)
    }

    pub(super) fn func(&mut self, name: String) -> Cmd {
        self.newlines();
        self.depth += 1;
        let body = if self.depth < MAX_DEPTH { self.command().map_or_else(Vec::new, |c| vec![c]) } else { Vec::new() };
        self.depth -= 1;
        Cmd::Func { name, body: Rc::new(body) }
    }

    pub(super) fn if_(&mut self) -> Cmd {
        let mut arms = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let cond = self.list(false);
            self.take_keyword("then");
            let body = self.list(false);
            arms.push((cond, body));
            self.newlines();
            match self.keyword().as_str() {
                "elif" => self.skip(4),
                "else" => {
                    self.skip(4);
                    otherwise = self.list(false);
                    self.take_keyword("fi");
                    break;
                }
                _ => {
                    self.take_keyword("fi");
                    break;
                }
            }
        }
        Cmd::If { arms, otherwise }
    }

    pub(super) fn do_body(&mut self) -> Vec<Cmd> {
        if !self.take_keyword("do") && self.peek() == Some('{') {
            self.bump();
        }
        let body = self.list(false);
        if !self.take_keyword("done") {
            self.take_keyword("}");
        }
        body
    }

    pub(super) fn for_(&mut self) -> Cmd {
        self.blanks();
        if self.looking_at("((") {
            self.skip(2);
            let all = self.until_double_paren();
            let mut parts = all.splitn(3, ';').map(|s| s.trim().to_owned());
            let mut next = || parts.next().unwrap_or_default();
            let (init, cond, step) = (next(), next(), next());
            return Cmd::ForArith { init, cond, step, body: self.do_body() };
        }
        let mut var = String::new();
        while let Some(c) = self.peek().filter(|c| is_name(*c)) {
            var.push(c);
            self.bump();
        }
        self.newlines();
        let words = if self.keyword() == "in" {
            self.skip(2);
            let mut words = Vec::new();
            loop {
                self.blanks();
                match self.peek() {
                    None | Some('\n' | ';') => break,
                    _ => match self.word() {
                        Some(w) => words.push(w),
                        None => {
                            self.bump();
                        }
                    },
                }
            }
            Some(words)
        } else {
            None
        };
        Cmd::For { var, words, body: self.do_body() }
    }

    pub(super) fn case(&mut self) -> Cmd {
        self.blanks();
        let word = self.word().unwrap_or_default();
        self.take_keyword("in");
        let mut arms = Vec::new();
        loop {
            self.newlines();
            if self.peek().is_none() || self.take_keyword("esac") {
                break;
            }
            if self.peek() == Some('(') {
                self.bump();
            }
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                match self.peek() {
                    None => break,
                    Some(')') => {
                        self.bump();
                        break;
                    }
                    Some('|' | '\n') => {
                        self.bump();
                    }
                    _ => match self.word() {
                        Some(w) => patterns.push(w),
                        None => {
                            self.bump();
                        }
                    },
                }
            }
            let before = self.pos;
            let body = self.list(true);
            arms.push((patterns, body));
            if self.looking_at(";;") {
                self.skip(2);
                if self.peek() == Some('&') {
                    self.bump();
                }
            } else if self.looking_at(";&") {
                self.skip(2);
            } else if self.pos == before && !matches!(self.keyword().as_str(), "esac") {
                self.bump();
            }
        }
        Cmd::Case { word, arms }
    }

    pub(super) fn test_tokens(&mut self) -> Vec<Tok> {
        let mut out = Vec::new();
        let mut regex = false;
        loop {
            self.blanks();
            match self.peek() {
                None => break,
                Some('\n') => {
                    self.bump();
                    continue;
                }
                _ => {}
            }
            if self.looking_at("]]") {
                self.skip(2);
                break;
            }
            if regex {
                // A regular expression extends to the next whitespace and may contain parentheses.
                regex = false;
                let line = self.line;
                let mut s = String::new();
                while let Some(c) = self.peek().filter(|c| !c.is_whitespace()) {
                    s.push(c);
                    self.bump();
                }
                out.push(Tok::Word(Word::literal(&s, line)));
                continue;
            }
            let op = ["&&", "||", "(", ")", "<", ">"].into_iter().find(|op| self.looking_at(op));
            if let Some(op) = op {
                self.skip(op.len());
                out.push(Tok::Op(op));
                continue;
            }
            if self.peek() == Some('!') && self.peek_at(1).is_some_and(|c| c.is_whitespace() || c == '(') {
                self.bump();
                out.push(Tok::Op("!"));
                continue;
            }
            match self.word() {
                Some(w) => {
                    regex = w.plain() == Some("=~");
                    out.push(Tok::Word(w));
                }
                None => {
                    self.bump();
                }
            }
        }
        out
    }
}
