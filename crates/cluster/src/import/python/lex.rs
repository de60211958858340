//! Splits a Python program into statements of tokens.

use crate::import::place::Place;

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    /// A name, including its dotted parts.
    Name(String),
    Number(String),
    /// A string. The flag is true for format strings.
    Text(String, bool),
    Op(&'static str),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) tok: TokenKind,
    pub(super) line: Place,
}

impl Token {
    pub(super) fn is(&self, op: &str) -> bool {
        matches!(&self.tok, TokenKind::Op(o) if *o == op)
    }
}

/// Operators, longest first.
const OPS: &[&str] = &[
    "**=", "//=", ">>=", "<<=", "...", "==", "!=", "<=", ">=", "->", "+=", "-=", "*=", "/=", "|=", ":=", "//", "**",
    "+", "-", "*", "/", "%", "=", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "@", "|", "&", "^", "~",
    "!",
];

/// Maximum number of statements that are kept.
const MAX_STATEMENTS: usize = 20_000;

struct Lexer<'a> {
    src: &'a str,
    pos: usize,
    line: u32,
}

/// Splits a program into statements. A statement ends at the end of its line, unless a bracket is open.
pub(super) fn statements(src: &str, place: impl Fn(u32) -> Place) -> Vec<Vec<Token>> {
    let mut lexer = Lexer { src, pos: 0, line: 1 };
    let (mut out, mut current, mut depth) = (Vec::new(), Vec::new(), 0_u32);
    while let Some(c) = lexer.peek() {
        let line = place(lexer.line);
        match c {
            '\n' | ';' if depth == 0 || c == ';' => {
                lexer.bump();
                if !current.is_empty() {
                    out.push(std::mem::take(&mut current));
                }
            }
            '\\' => {
                lexer.bump();
                lexer.bump();
            }
            '#' => {
                while lexer.peek().is_some_and(|c| c != '\n') {
                    lexer.bump();
                }
            }
            c if c.is_whitespace() => {
                lexer.bump();
            }
            _ => {
                let Some(tok) = lexer.token() else {
                    lexer.bump();
                    continue;
                };
                match tok {
                    TokenKind::Op("(" | "[" | "{") => depth += 1,
                    TokenKind::Op(")" | "]" | "}") => depth = depth.saturating_sub(1),
                    _ => {}
                }
                current.push(Token { tok, line });
            }
        }
        if out.len() >= MAX_STATEMENTS {
            return out;
        }
    }
    out.push(current);
    out
}

/// Tokens of one expression.
pub(super) fn words(src: &str, line: Place) -> Vec<Token> {
    statements(src, |_| line).into_iter().flatten().collect()
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.src.get(self.pos..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        self.line += u32::from(c == '\n');
        Some(c)
    }

    fn while_(&mut self, keep: impl Fn(char) -> bool) -> String {
        let mut s = String::new();
        while let Some(c) = self.peek().filter(|c| keep(*c)) {
            s.push(c);
            self.bump();
        }
        s
    }

    fn token(&mut self) -> Option<TokenKind> {
        let c = self.peek()?;
        if c == '"' || c == '\'' {
            return Some(self.string(""));
        }
        if c.is_alphabetic() || c == '_' {
            let mut name = self.while_(|c| c.is_alphanumeric() || c == '_');
            if name.len() <= 2 && matches!(self.peek(), Some('"' | '\'')) {
                return Some(self.string(&name.to_ascii_lowercase()));
            }
            while self.rest().strip_prefix('.').is_some_and(|r| r.starts_with(|c: char| c.is_alphabetic() || c == '_'))
            {
                self.bump();
                name.push('.');
                name.push_str(&self.while_(|c| c.is_alphanumeric() || c == '_'));
            }
            return Some(TokenKind::Name(name));
        }
        if c.is_ascii_digit() {
            let mut number = self.while_(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
            if number.ends_with(['e', 'E']) && self.peek().is_some_and(|c| c == '-' || c == '+') {
                number.extend(self.bump());
                number.push_str(&self.while_(|c| c.is_ascii_digit()));
            }
            return Some(TokenKind::Number(number.replace('_', "")));
        }
        let op = OPS.iter().find(|o| self.rest().starts_with(**o))?;
        self.pos += op.len();
        Some(TokenKind::Op(op))
    }

    fn string(&mut self, prefix: &str) -> TokenKind {
        let quote = self.bump().unwrap_or('"');
        let triple: String = std::iter::repeat_n(quote, 2).collect();
        let long = self.rest().starts_with(&triple);
        let end = if long {
            self.bump();
            self.bump();
            format!("{triple}{quote}")
        } else {
            quote.to_string()
        };
        let mut s = String::new();
        loop {
            if self.rest().starts_with(&end) {
                self.pos += end.len();
                break;
            }
            match self.bump() {
                None => break,
                Some('\n') if !long => break,
                Some('\\') if !prefix.contains('r') => match self.bump() {
                    Some('n') => s.push('\n'),
                    Some('t') => s.push('\t'),
                    Some('\n') | None => {}
                    Some(c @ ('\\' | '\'' | '"')) => s.push(c),
                    Some(c) => {
                        s.push('\\');
                        s.push(c);
                    }
                },
                Some(c) => s.push(c),
            }
        }
        TokenKind::Text(s, prefix.contains('f'))
    }
}
