//! Evaluates `[ … ]` and `[[ … ]]`: true, false, or unknown.

use super::ast::Tok;
use super::text::Text;
use super::{Shell, glob};
use crate::import::unknown;
use crate::import::value::parse_int;

/// A token after expansion.
enum Item {
    Word(Text, bool),
    Op(&'static str),
}

struct Tests<'s, 'a> {
    sh: &'s Shell<'a>,
    items: Vec<Item>,
    pos: usize,
    depth: u32,
}

impl Shell<'_> {
    pub(super) fn test_double(&mut self, toks: &[Tok]) -> Option<bool> {
        let items: Vec<Item> = toks
            .iter()
            .map(|t| match t {
                Tok::Op(o) => Item::Op(o),
                Tok::Word(w) => {
                    let quoted = w.parts.iter().all(|p| {
                        matches!(
                            p,
                            super::ast::Part::Lit { quoted: true, .. } | super::ast::Part::Param { quoted: true, .. }
                        )
                    });
                    Item::Word(self.text(w), quoted)
                }
            })
            .collect();
        Tests { sh: self, items, pos: 0, depth: 0 }.or()
    }

    pub(super) fn test_single(&mut self, words: &[Text]) -> Option<bool> {
        let items = words
            .iter()
            .map(|w| match w.as_str() {
                "!" => Item::Op("!"),
                "-a" if words.len() > 2 => Item::Op("&&"),
                "-o" if words.len() > 2 => Item::Op("||"),
                "(" => Item::Op("("),
                ")" => Item::Op(")"),
                _ => Item::Word(w.clone(), true),
            })
            .collect();
        Tests { sh: self, items, pos: 0, depth: 0 }.or()
    }
}

impl Tests<'_, '_> {
    fn op(&mut self, op: &str) -> bool {
        let hit = matches!(self.items.get(self.pos), Some(Item::Op(o)) if *o == op);
        if hit {
            self.pos += 1;
        }
        hit
    }

    fn word(&mut self) -> Option<(Text, bool)> {
        let w = match self.items.get(self.pos)? {
            Item::Word(t, q) => (t.clone(), *q),
            Item::Op(_) => return None,
        };
        self.pos += 1;
        Some(w)
    }

    fn or(&mut self) -> Option<bool> {
        self.depth += 1;
        if self.depth > 24 {
            return None;
        }
        let mut left = self.and();
        while self.op("||") {
            let right = self.and();
            left = match (left, right) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
        }
        self.depth -= 1;
        left
    }

    fn and(&mut self) -> Option<bool> {
        let mut left = self.not();
        while self.op("&&") {
            let right = self.not();
            left = match (left, right) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
        }
        left
    }

    fn not(&mut self) -> Option<bool> {
        let mut negated = false;
        while self.op("!") {
            negated = !negated;
        }
        self.primary().map(|b| b != negated)
    }

    fn primary(&mut self) -> Option<bool> {
        if self.op("(") {
            let v = self.or();
            self.op(")");
            return v;
        }
        let (first, _) = self.word()?;
        // Checks for a binary operator.
        let op = match self.items.get(self.pos) {
            Some(Item::Word(t, _)) => Some(t.as_str().to_owned()),
            Some(Item::Op(o @ ("<" | ">"))) => Some((*o).to_owned()),
            _ => None,
        };
        let s = first.as_str();
        if let Some(op) = &op {
            if is_binary(op) && self.items.len() > self.pos + 1 {
                self.pos += 1;
                let (second, quoted) = self.word()?;
                return self.binary(s, op, second.as_str(), quoted);
            }
            if s.len() == 2 && s.starts_with('-') {
                let (arg, _) = self.word()?;
                return self.unary(s, arg.as_str());
            }
        }
        self.sh.without_unset_variables(s).map(|t| !t.is_empty())
    }

    fn unary(&self, op: &str, arg: &str) -> Option<bool> {
        match op {
            "-z" | "-n" => {
                let filled = match self.sh.without_unset_variables(arg) {
                    Some(t) => !t.is_empty(),
                    // A required variable counts as set. Text around an unknown part is not empty.
                    None if unknown::only_names(arg) => true,
                    None if unknown::as_unset(arg).trim().is_empty() => return None,
                    None => true,
                };
                Some(filled == (op == "-n"))
            }
            "-v" => Some(self.sh.lookup(arg).is_some() || self.sh.is_required(arg)),
            _ => None,
        }
    }

    fn binary(&self, a: &str, op: &str, b: &str, quoted: bool) -> Option<bool> {
        match op {
            "=" | "==" | "!=" => {
                let (a, b) = (self.sh.without_unset_variables(a)?, self.sh.without_unset_variables(b)?);
                let same = if quoted { a == b } else { glob::matches(&b, &a) };
                Some(same == (op != "!="))
            }
            "=~" => {
                let a = self.sh.without_unset_variables(a)?;
                regex_like(&a, b)
            }
            "<" | ">" => {
                let (a, b) = (self.sh.without_unset_variables(a)?, self.sh.without_unset_variables(b)?);
                Some(if op == "<" { a < b } else { a > b })
            }
            _ => {
                let (a, b) = (parse_int(a)?, parse_int(b)?);
                Some(match op {
                    "-eq" => a == b,
                    "-ne" => a != b,
                    "-lt" => a < b,
                    "-le" => a <= b,
                    "-gt" => a > b,
                    _ => a >= b,
                })
            }
        }
    }
}

fn is_binary(op: &str) -> bool {
    matches!(op, "=" | "==" | "!=" | "=~" | "<" | ">" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge")
}

/// Evaluates regular expressions that are plain text with anchors and alternatives. The result of others is unknown.
fn regex_like(text: &str, pattern: &str) -> Option<bool> {
    if matches!(pattern, "^[0-9]+$" | "^[[:digit:]]+$") {
        return Some(!text.is_empty() && text.chars().all(|c| c.is_ascii_digit()));
    }
    let (start, rest) = pattern.strip_prefix('^').map_or((false, pattern), |r| (true, r));
    let (end, core) = rest.strip_suffix('$').map_or((false, rest), |r| (true, r));
    let core = core.strip_prefix('(').and_then(|c| c.strip_suffix(')')).unwrap_or(core).replace("\\.", "\u{1}");
    if core.contains(['[', '(', ')', '*', '+', '?', '{', '\\', '$', '^']) {
        return None;
    }
    // A single dot matches any character, but plain names are compared literally.
    let alternatives: Vec<String> = core.split('|').map(|a| a.replace('\u{1}', ".")).collect();
    Some(alternatives.iter().any(|a| match (start, end) {
        (true, true) => text == a,
        (true, false) => text.starts_with(a.as_str()),
        (false, true) => text.ends_with(a.as_str()),
        (false, false) => text.contains(a.as_str()),
    }))
}
