//! Parses words: quotes, parameters, substitutions.

use super::ast::{Op, Param, Part, Word};
use super::parse::{Parser, is_name};
use crate::import::place::Place;

const MAX_WORD_DEPTH: u32 = 24;

impl Word {
    pub(crate) fn literal(text: &str, line: Place) -> Word {
        Word { parts: vec![Part::Lit { text: text.to_owned(), line, quoted: true }], line }
    }

    /// A quoted word with the line number of each of its lines.
    pub(super) fn quoted_lines(text: &str, line: Place) -> Word {
        let parts = text
            .split_inclusive('\n')
            .zip(line.and_below())
            .map(|(t, line)| Part::Lit { text: t.to_owned(), line, quoted: true })
            .collect();
        Word { parts, line }
    }

    /// The text, if the word is a single unquoted literal.
    pub(crate) fn plain(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Lit { text, quoted: false, .. }] => Some(text),
            _ => None,
        }
    }
}

impl Parser {
    /// Parses the next word. Returns `None` at an operator.
    pub(super) fn word(&mut self) -> Option<Word> {
        let line = self.line;
        let mut w = Word { parts: Vec::new(), line };
        let start = self.pos;
        while let Some(c) = self.peek() {
            if c.is_whitespace() || matches!(c, ';' | '&' | '|' | ')') {
                break;
            }
            if matches!(c, '<' | '>') {
                // Process substitution: treated like the output of the command.
                if self.peek_at(1) == Some('(') {
                    self.skip(2);
                    let script = self.until_paren();
                    w.parts.push(Part::Cmd { script, line, quoted: true });
                    continue;
                }
                break;
            }
            if c == '(' {
                // Extended patterns and stray parentheses.
                if self.pos == start {
                    return None;
                }
                self.bump();
                let inner = self.until_paren();
                w.lit(&format!("({inner})"), line, false);
                continue;
            }
            self.part(&mut w, false);
        }
        (self.pos > start).then_some(w)
    }

    /// Parses the whole text as one word, including blanks.
    pub(super) fn all_as_word(&mut self) -> Word {
        let mut w = Word { parts: Vec::new(), line: self.line };
        while self.peek().is_some() {
            self.part(&mut w, false);
        }
        w
    }

    /// Parses the whole text as the inside of double quotes. In a here-document, quotes are ordinary characters.
    pub(super) fn dquoted_all(&mut self, here: bool) -> Word {
        let mut w = Word { parts: Vec::new(), line: self.line };
        while self.peek().is_some() {
            self.dquote_part(&mut w, here);
        }
        w
    }

    fn part(&mut self, w: &mut Word, quoted: bool) {
        let line = self.line;
        match self.peek() {
            Some('\\') => {
                self.bump();
                match self.bump() {
                    Some('\n') | None => {}
                    Some('\r') if self.peek() == Some('\n') => {
                        self.bump();
                    }
                    Some(c) => w.lit(&c.to_string(), line, true),
                }
            }
            Some('\'') => {
                self.bump();
                w.lit("", line, true);
                self.single_quoted(w);
            }
            Some('"') => {
                self.bump();
                w.lit("", line, true);
                while let Some(c) = self.peek() {
                    if c == '"' {
                        self.bump();
                        return;
                    }
                    self.dquote_part(w, false);
                }
            }
            Some('$') if matches!(self.peek_at(1), Some('\'' | '"')) => {
                self.bump();
            }
            Some('$') => self.dollar(w, quoted),
            Some('`') => self.backquote(w, quoted),
            Some('\u{E000}') => {
                let mut s = String::new();
                while let Some(c) = self.bump() {
                    s.push(c);
                    if c == '\u{E001}' {
                        break;
                    }
                }
                w.lit(&s, line, quoted);
            }
            Some(c) => {
                self.bump();
                w.lit(&c.to_string(), line, quoted);
            }
            None => {}
        }
    }

    fn single_quoted(&mut self, w: &mut Word) {
        let mut line = self.line;
        let mut s = String::new();
        while let Some(c) = self.bump() {
            if c == '\'' {
                break;
            }
            s.push(c);
            if c == '\n' {
                w.lit(&s, line, true);
                s.clear();
                line = self.line;
            }
        }
        w.lit(&s, line, true);
    }

    fn dquote_part(&mut self, w: &mut Word, here: bool) {
        let line = self.line;
        match self.peek() {
            Some('\\') => {
                self.bump();
                match self.bump() {
                    Some('\n') => {}
                    Some('"') if here => w.lit("\\\"", line, true),
                    Some(c @ ('$' | '`' | '"' | '\\')) => w.lit(&c.to_string(), line, true),
                    Some(c) => {
                        w.lit("\\", line, true);
                        w.lit(&c.to_string(), line, true);
                    }
                    None => w.lit("\\", line, true),
                }
            }
            Some('$') => self.dollar(w, true),
            Some('`') => self.backquote(w, true),
            Some(c) => {
                self.bump();
                w.lit(&c.to_string(), line, true);
            }
            None => {}
        }
    }

    fn backquote(&mut self, w: &mut Word, quoted: bool) {
        let line = self.line;
        self.bump();
        let mut script = String::new();
        while let Some(c) = self.bump() {
            match c {
                '`' => break,
                '\\' => script.extend(self.bump()),
                c => script.push(c),
            }
        }
        w.parts.push(Part::Cmd { script, line, quoted });
    }

    fn dollar(&mut self, w: &mut Word, quoted: bool) {
        let line = self.line;
        self.bump();
        match self.peek() {
            Some('(') if self.peek_at(1) == Some('(') => {
                self.skip(2);
                let raw = self.until_double_paren();
                let expr = self.nested(&raw, line, |p| p.dquoted_all(false));
                w.parts.push(Part::Arith { expr, line, quoted });
            }
            Some('(') => {
                self.bump();
                let script = self.until_paren();
                w.parts.push(Part::Cmd { script, line, quoted });
            }
            Some('{') => {
                self.bump();
                let raw = self.until_brace();
                match self.param(&raw, line) {
                    Some(param) => w.parts.push(Part::Param { param: Box::new(param), line, quoted }),
                    None => w.lit(&format!("${{{raw}}}"), line, quoted),
                }
            }
            Some(c) if is_name(c) || matches!(c, '@' | '*' | '#' | '?' | '$' | '!' | '-') => {
                let mut name = String::new();
                if c.is_ascii_alphabetic() || c == '_' {
                    while let Some(c) = self.peek().filter(|c| is_name(*c)) {
                        name.push(c);
                        self.bump();
                    }
                } else {
                    name.push(c);
                    self.bump();
                }
                let param = Param { name, index: None, op: Op::Plain };
                w.parts.push(Part::Param { param: Box::new(param), line, quoted });
            }
            _ => w.lit("$", line, quoted),
        }
    }

    /// Parses nested text. Beyond the maximum depth it is kept literally.
    fn nested(&self, raw: &str, line: Place, f: impl Fn(&mut Parser) -> Word) -> Word {
        if self.depth > MAX_WORD_DEPTH {
            return Word::literal(raw, line);
        }
        let mut p = Parser::new(raw, line);
        p.depth = self.depth + 1;
        f(&mut p)
    }

    /// Parses the inside of `${…}`.
    fn param(&self, raw: &str, line: Place) -> Option<Param> {
        let sub = |s: &str| self.nested(s, line, Parser::all_as_word);
        let mut rest = raw;
        let mut prefix = None;
        if raw.len() > 1 && (raw.starts_with('#') || raw.starts_with('!')) {
            let after = raw.get(1..)?;
            if after.starts_with(|c: char| is_name(c) || c == '@' || c == '*') {
                prefix = raw.chars().next();
                rest = after;
            }
        }
        let n = match rest.chars().next()? {
            c if c.is_ascii_alphabetic() || c == '_' => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
            c if c.is_ascii_digit() => rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()),
            '@' | '*' | '#' | '?' | '$' | '!' | '-' => 1,
            _ => return None,
        };
        let name = rest.get(..n)?.to_owned();
        rest = rest.get(n..)?;
        let mut index = None;
        if rest.starts_with('[') {
            let mut depth = 0;
            let end = rest.char_indices().find_map(|(i, c)| {
                match c {
                    '[' => depth += 1,
                    ']' => depth -= 1,
                    _ => {}
                }
                (depth == 0).then_some(i)
            })?;
            index = Some(sub(rest.get(1..end)?));
            rest = rest.get(end + 1..)?;
        }
        let op = match prefix {
            Some('#') => Op::Length,
            Some('!') if index.is_some() => Op::Keys,
            Some('!') => Op::Indirect,
            _ => Self::param_op(rest, &sub)?,
        };
        Some(Param { name, index, op })
    }

    fn param_op(rest: &str, sub: &dyn Fn(&str) -> Word) -> Option<Op> {
        let colon = rest.starts_with(':');
        let body = rest.strip_prefix(':').unwrap_or(rest);
        let Some(c) = body.chars().next() else { return Some(Op::Plain) };
        let arg = body.get(c.len_utf8()..)?;
        Some(match c {
            '-' => Op::Default(sub(arg), colon),
            '=' => Op::Assign(sub(arg), colon),
            '?' => Op::Error(colon),
            '+' => Op::Alt(sub(arg), colon),
            _ if colon => {
                let (off, len) = match body.split_once(':') {
                    Some((o, l)) => (o, Some(sub(l))),
                    None => (body, None),
                };
                Op::Substring(sub(off.trim()), len)
            }
            '#' => match arg.strip_prefix('#') {
                Some(p) => Op::Prefix(sub(p), true),
                None => Op::Prefix(sub(arg), false),
            },
            '%' => match arg.strip_prefix('%') {
                Some(p) => Op::Suffix(sub(p), true),
                None => Op::Suffix(sub(arg), false),
            },
            '/' => {
                let all = arg.starts_with('/');
                let arg = arg.strip_prefix('/').unwrap_or(arg);
                let mut escaped = false;
                let cut = arg.char_indices().find(|(_, c)| {
                    let hit = *c == '/' && !escaped;
                    escaped = *c == '\\' && !escaped;
                    hit
                });
                let (pattern, with) = match cut {
                    Some((i, _)) => (arg.get(..i)?, arg.get(i + 1..)?),
                    None => (arg, ""),
                };
                Op::Replace { pattern: sub(pattern), with: sub(with), all }
            }
            '^' => Op::Case { upper: true, all: arg.starts_with('^') },
            ',' => Op::Case { upper: false, all: arg.starts_with(',') },
            '@' => Op::Plain,
            _ => return None,
        })
    }

    /// Consumes the text up to and including the `}` that closes `${`, and returns the text before it.
    fn until_brace(&mut self) -> String {
        let mut s = String::new();
        let mut depth = 0;
        while let Some(c) = self.bump() {
            match c {
                '\\' => {
                    s.push(c);
                    s.extend(self.bump());
                    continue;
                }
                '\'' if s.ends_with(['-', '=', ' ', '/']) => {
                    s.push(c);
                    while let Some(c) = self.bump() {
                        s.push(c);
                        if c == '\'' {
                            break;
                        }
                    }
                    continue;
                }
                '{' if s.ends_with('$') => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                _ => {}
            }
            s.push(c);
        }
        s
    }

    /// Consumes the text up to and including the matching `)`, and returns the text before it. Skips quotes, comments
    /// and here-documents.
    pub(super) fn until_paren(&mut self) -> String {
        let mut s = String::new();
        let mut depth = 0;
        let mut quote: Option<char> = None;
        let mut here: Option<String> = None;
        while let Some(c) = self.bump() {
            if let Some(q) = quote {
                s.push(c);
                if c == '\\' && q == '"' {
                    s.extend(self.bump());
                } else if c == q {
                    quote = None;
                }
                continue;
            }
            match c {
                '\\' => {
                    s.push(c);
                    s.extend(self.bump());
                    continue;
                }
                '\'' | '"' => quote = Some(c),
                '(' => depth += 1,
                ')' if depth == 0 => break,
                ')' => depth -= 1,
                '#' if s.ends_with([' ', '\n', '\t']) => {
                    s.push(c);
                    while let Some(c) = self.peek().filter(|c| *c != '\n') {
                        s.push(c);
                        self.bump();
                    }
                    continue;
                }
                '<' if s.ends_with('<') && !s.ends_with("<<") && self.peek() != Some('<') => {
                    let mut i = 0;
                    let mut delim = String::new();
                    while let Some(c) = self.peek_at(i).filter(|c| *c != '\n') {
                        match c {
                            '-' | ' ' | '\'' | '"' | '\\' if delim.is_empty() => {}
                            c if is_name(c) => delim.push(c),
                            _ => break,
                        }
                        i += 1;
                    }
                    if !delim.is_empty() {
                        here = Some(delim);
                    }
                }
                '\n' => {
                    s.push(c);
                    if let Some(delim) = here.take() {
                        while self.peek().is_some() {
                            let mut l = String::new();
                            while let Some(c) = self.bump() {
                                l.push(c);
                                if c == '\n' {
                                    break;
                                }
                            }
                            s.push_str(&l);
                            if l.trim() == delim {
                                break;
                            }
                        }
                    }
                    continue;
                }
                _ => {}
            }
            s.push(c);
        }
        s
    }
}

impl Word {
    fn lit(&mut self, s: &str, line: Place, quoted: bool) {
        if let Some(Part::Lit { text, line: l, quoted: q }) = self.parts.last_mut()
            && *q == quoted
            && *l == line
        {
            text.push_str(s);
            return;
        }
        self.parts.push(Part::Lit { text: s.to_owned(), line, quoted });
    }
}
