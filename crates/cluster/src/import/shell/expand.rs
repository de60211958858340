//! Expansion of words.

use super::arith::{self, Num, Scope};
use super::ast::{Op, Param, Part, Word};
use super::text::Text;
use super::{Flow, MAX_DEPTH, Shell, Var, glob, join, parse};
use crate::import::place::Place;
use crate::import::unknown;
use crate::import::value::parse_int;

/// Maximum number of fields that result from one word.
const MAX_FIELDS: usize = 20_000;

impl Scope for Shell<'_> {
    fn get(&mut self, name: &str) -> Num {
        let text = match self.lookup(name).or_else(|| self.default_of_caller(name)) {
            Some(t) => t,
            None if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
                return Num::Symbol(name.to_owned());
            }
            None => return Num::Unknown,
        };
        let s = text.as_str().trim();
        if let Some(n) = parse_int(s) {
            return Num::Known(n);
        }
        match unknown::whole(s) {
            Some(e) if e.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '(') => {
                Num::Symbol(e.to_owned())
            }
            Some(e) => match e.split_once(':') {
                Some((_, names)) => Num::Open(names.to_owned()),
                None => Num::Unknown,
            },
            _ if s.is_empty() => Num::Known(0),
            _ => Num::Unknown,
        }
    }

    fn set(&mut self, name: &str, value: &Num) {
        let text = num_text(value);
        let line = self.line;
        Shell::set(self, name, Text::new(&text, line));
    }

    fn divided_by_zero(&mut self, expr: &str) {
        if self.out.zero_divisions.len() < 20 {
            self.out.zero_divisions.push((unknown::shown(expr).trim().to_owned(), self.line));
        }
    }
}

pub(super) fn num_text(n: &Num) -> String {
    match n {
        Num::Known(n) => n.to_string(),
        Num::Symbol(s) => unknown::of(s),
        Num::Unknown => unknown::opaque("number"),
        Num::Open(names) => unknown::opaque(&format!("number:{names}")),
    }
}

impl Shell<'_> {
    /// Value of a variable or positional parameter; `None` if it is not set.
    pub(super) fn lookup(&self, name: &str) -> Option<Text> {
        let line = self.line;
        match name {
            "@" | "*" => Some(join(&Var::Array(self.args.clone()))),
            "#" => Some(Text::new(&self.args.len().to_string(), line)),
            "?" => Some(Text::new("0", line)),
            "0" | "BASH_SOURCE" => Some(Text::new(&self.name, line)),
            "$" | "!" | "-" | "RANDOM" | "SECONDS" => Some(Text::new(&unknown::opaque(name), line)),
            _ if name.starts_with(|c: char| c.is_ascii_digit()) => {
                let n: usize = name.parse().ok()?;
                self.args.get(n.checked_sub(1)?).cloned()
            }
            _ => match self.vars.get(&self.resolve_nameref(name))? {
                Var::Scalar(t) => Some(t.clone()),
                Var::Array(a) => Some(a.first().cloned().unwrap_or_default()),
                Var::Assoc(_) => Some(Text::default()),
            },
        }
    }

    /// Value of a variable that the caller usually sets, such as `NODES`.
    fn default_of_caller(&self, name: &str) -> Option<Text> {
        self.setup.weak.iter().find(|(n, ..)| n == name).map(|(_, v, l)| Text::new(v, *l))
    }

    fn unset(&mut self, name: &str, line: Place) -> Text {
        if let Some(t) = self.default_of_caller(name) {
            return t;
        }
        Text::new(&unknown::of(name), line)
    }

    fn items(&self, name: &str) -> Option<Vec<Text>> {
        match name {
            "@" | "*" => Some(self.args.clone()),
            _ => match self.vars.get(name)? {
                Var::Scalar(t) => Some(vec![t.clone()]),
                Var::Array(a) => Some(a.clone()),
                Var::Assoc(a) => Some(a.iter().map(|(_, t)| t.clone()).collect()),
            },
        }
    }

    /// Expands a word to one string, without field splitting.
    pub(super) fn text(&mut self, w: &Word) -> Text {
        let mut out = Text::new("", w.line);
        for p in &w.parts {
            match p {
                Part::Lit { text, line, .. } => out.push(text, *line),
                other => {
                    let t = self.part(other);
                    out.append(&t);
                }
            }
            if !self.consume_budget(out.len()) {
                break;
            }
        }
        out
    }

    /// Expands a word to fields.
    pub(super) fn fields(&mut self, w: &Word) -> Vec<Text> {
        if let Some(list) = w.plain().and_then(braces) {
            return list.into_iter().map(|s| Text::new(&s, w.line)).collect();
        }
        let mut out: Vec<Text> = Vec::new();
        let mut cur: Option<Text> = None;
        for p in &w.parts {
            if out.len() > MAX_FIELDS || self.budget == 0 {
                break;
            }
            match p {
                Part::Lit { text, line, .. } => cur.get_or_insert_with(Text::default).push(text, *line),
                Part::Param { param, quoted, .. } if is_list(param) && !(*quoted && is_joined(param)) => {
                    let items = self.list(param);
                    self.consume_budget(items.iter().map(Text::len).sum());
                    if *quoted {
                        for (i, t) in items.iter().enumerate() {
                            if i > 0 {
                                out.extend(cur.take());
                            }
                            cur.get_or_insert_with(Text::default).append(t);
                        }
                    } else {
                        for (i, t) in items.iter().enumerate() {
                            if i > 0 {
                                out.extend(cur.take());
                            }
                            self.split_into(t, &mut out, &mut cur);
                        }
                    }
                }
                Part::Param { quoted, .. } | Part::Cmd { quoted, .. } | Part::Arith { quoted, .. } => {
                    let t = self.part(p);
                    self.consume_budget(t.len());
                    if *quoted {
                        cur.get_or_insert_with(Text::default).append(&t);
                    } else {
                        self.split_into(&t, &mut out, &mut cur);
                    }
                }
            }
        }
        out.extend(cur);
        out
    }

    /// Characters that separate fields.
    pub(super) fn separators(&self) -> String {
        match self.vars.get("IFS") {
            Some(Var::Scalar(t)) if !unknown::is_in(t.as_str()) => t.as_str().to_owned(),
            _ => " \t\n".to_owned(),
        }
    }

    fn split_into(&self, t: &Text, out: &mut Vec<Text>, cur: &mut Option<Text>) {
        let ifs = self.separators();
        let sep = |c: char| ifs.contains(c);
        let pieces = t.split(sep);
        if t.as_str().starts_with(sep) {
            out.extend(cur.take());
        }
        let n = pieces.len();
        for (i, p) in pieces.into_iter().enumerate() {
            cur.get_or_insert_with(Text::default).append(&p);
            if i + 1 < n || t.as_str().ends_with(sep) {
                out.extend(cur.take());
            }
        }
    }

    fn part(&mut self, p: &Part) -> Text {
        match p {
            Part::Lit { text, line, .. } => Text::new(text, *line),
            Part::Param { param, line, .. } => {
                self.line = *line;
                self.param(param, *line)
            }
            Part::Cmd { script, line, .. } => self.substitute(script, *line),
            Part::Arith { expr, line, .. } => {
                let t = self.text(expr);
                self.line = *line;
                let n = arith::eval(t.as_str(), self);
                Text::new(&num_text(&n), *line)
            }
        }
    }

    /// Output of a command substitution, as far as it is known.
    fn substitute(&mut self, script: &str, line: Place) -> Text {
        if self.depth >= MAX_DEPTH || !self.consume_budget(script.len()) {
            return Text::new(&unknown::opaque("deep"), line);
        }
        self.depth += 1;
        let cmds = parse::parse(&Text::new(script, line));
        self.captures.push(Text::default());
        let stdin = self.stdin.take();
        let flow = self.run(&cmds);
        self.stdin = stdin;
        self.depth -= 1;
        let out = self.captures.pop().unwrap_or_default().trim_newlines();
        if out.is_empty() && (flow == Flow::Exit || self.status.is_none()) {
            return Text::new(&unknown::opaque("command"), line);
        }
        out
    }

    /// Elements of `${a[@]}` or `$@`, with an operation applied to each.
    fn list(&mut self, p: &Param) -> Vec<Text> {
        if matches!(p.op, Op::Keys) {
            return match self.vars.get(&p.name) {
                Some(Var::Assoc(a)) => a.iter().map(|(k, _)| Text::new(k, self.line)).collect(),
                Some(Var::Array(a)) => (0..a.len()).map(|i| Text::new(&i.to_string(), self.line)).collect(),
                _ => Vec::new(),
            };
        }
        let items = self.items(&p.name).unwrap_or_default();
        match &p.op {
            Op::Default(w, _) if items.is_empty() => {
                let t = self.text(w);
                if t.is_empty() { Vec::new() } else { vec![t] }
            }
            Op::Alt(w, _) => {
                let w = w.clone();
                if items.is_empty() { Vec::new() } else { self.fields(&w) }
            }
            Op::Substring(off, len) => {
                let off = self.number(off).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
                let off = if matches!(p.name.as_str(), "@" | "*") { off.saturating_sub(1) } else { off };
                let len = len.as_ref().and_then(|l| self.number(l)).and_then(|n| usize::try_from(n).ok());
                items.into_iter().skip(off).take(len.unwrap_or(usize::MAX)).collect()
            }
            Op::Prefix(..) | Op::Suffix(..) | Op::Replace { .. } | Op::Case { .. } => {
                items.into_iter().map(|t| self.edit(t, &p.op)).collect()
            }
            _ => items,
        }
    }

    fn number(&mut self, w: &Word) -> Option<i64> {
        let t = self.text(w);
        match arith::eval(t.as_str(), self) {
            Num::Known(n) => Some(n),
            _ => None,
        }
    }

    pub(super) fn element(&mut self, name: &str, index: &Word) -> Option<Text> {
        if matches!(self.vars.get(name), Some(Var::Assoc(_))) {
            let key = self.text(index);
            let Some(Var::Assoc(a)) = self.vars.get(name) else { return None };
            return a.iter().find(|(k, _)| k == key.as_str()).map(|(_, t)| t.clone());
        }
        let i = self.number(index)?;
        let items = self.items(name)?;
        let i = if i < 0 { i.saturating_add(items.len() as i64) } else { i };
        items.get(usize::try_from(i).ok()?).cloned()
    }

    fn param(&mut self, p: &Param, line: Place) -> Text {
        if is_list(p) || matches!(p.name.as_str(), "@" | "*") && !matches!(p.op, Op::Length) {
            let items = self.list(&Param { index: None, ..p.clone() });
            return join(&Var::Array(items));
        }
        let whole = p.index.as_ref().is_some_and(|w| matches!(w.plain(), Some("@" | "*")));
        if matches!(p.op, Op::Length) && (whole || matches!(p.name.as_str(), "@" | "*")) {
            return Text::new(&self.items(&p.name).map_or(0, |i| i.len()).to_string(), line);
        }
        let value = match &p.index {
            Some(w) => self.element(&p.name, w),
            None => self.lookup(&p.name),
        };
        let empty = match &value {
            None => true,
            Some(t) => self.without_unset_variables(t.as_str()).is_some_and(|s| s.is_empty()),
        };
        let unset = |colon: bool| value.is_none() || (colon && empty);
        match &p.op {
            Op::Default(w, colon) if unset(*colon) && !self.is_required(&p.name) => {
                return self.text(w);
            }
            Op::Assign(w, colon) if unset(*colon) => {
                let t = self.text(w);
                self.assign_element(&p.name, p.index.as_ref(), t.clone());
                return t;
            }
            Op::Error(colon) if unset(*colon) => {
                self.require(&p.name, line);
            }
            Op::Alt(w, colon) => {
                return if unset(*colon) { Text::new("", line) } else { self.text(w) };
            }
            _ => {}
        }
        let Some(t) = value else { return self.unset(&p.name, line) };
        match &p.op {
            Op::Length => match self.without_unset_variables(t.as_str()) {
                Some(s) => Text::new(&s.chars().count().to_string(), line),
                None => Text::new(&unknown::opaque("length"), line),
            },
            Op::Indirect => {
                let name = t.as_str().to_owned();
                self.lookup(&name).unwrap_or_else(|| Text::new(&unknown::of(&name), line))
            }
            Op::Substring(off, len) => self.substring(&t, off, len.as_ref()),
            op => self.edit(t, op),
        }
    }

    fn substring(&mut self, t: &Text, off: &Word, len: Option<&Word>) -> Text {
        let chars: Vec<(usize, char)> = t.as_str().char_indices().collect();
        let n = chars.len() as i64;
        let clamp = |i: i64| usize::try_from(i.clamp(0, n)).unwrap_or(0);
        let Some(off) = self.number(off) else { return Text::new(&unknown::opaque("part"), t.line()) };
        let from = clamp(if off < 0 { n.saturating_add(off) } else { off });
        let to = match len.map(|l| self.number(l)) {
            None => clamp(n),
            Some(Some(l)) if l >= 0 => clamp((from as i64).saturating_add(l)),
            Some(Some(l)) => clamp(n.saturating_add(l)),
            Some(None) => clamp(n),
        };
        let byte = |i: usize| chars.get(i).map_or(t.len(), |(b, _)| *b);
        t.slice(byte(from), byte(to.max(from)))
    }

    fn edit(&mut self, t: Text, op: &Op) -> Text {
        match op {
            Op::Prefix(w, longest) | Op::Suffix(w, longest) => {
                let pattern = self.text(w);
                let s = t.as_str();
                let suffix = matches!(op, Op::Suffix(..));
                if s.len() > 2048 || pattern.len() > 256 {
                    return t;
                }
                let mut cuts: Vec<usize> = s.char_indices().map(|(i, _)| i).chain([s.len()]).collect();
                // Cuts in the order in which they are tried: the shortest removal first, or the longest first.
                if suffix {
                    cuts.reverse();
                }
                if *longest {
                    cuts.reverse();
                }
                for cut in cuts {
                    let (removed, kept) =
                        if suffix { (s.get(cut..), (0, cut)) } else { (s.get(..cut), (cut, s.len())) };
                    if glob::matches(pattern.as_str(), removed.unwrap_or("")) {
                        return t.slice(kept.0, kept.1);
                    }
                }
                t
            }
            Op::Replace { pattern, with, all } => {
                let (p, r) = (self.text(pattern), self.text(with));
                let p = p.as_str().replace('\\', "");
                if p.is_empty() || p.contains(['*', '?', '[']) || !t.as_str().contains(&p) {
                    return t;
                }
                let s = if *all { t.as_str().replace(&p, r.as_str()) } else { t.as_str().replacen(&p, r.as_str(), 1) };
                Text::new(&s, t.line())
            }
            Op::Case { upper, all } => {
                if unknown::is_in(t.as_str()) {
                    return t;
                }
                let change = |s: &str| if *upper { s.to_uppercase() } else { s.to_lowercase() };
                let s = t.as_str();
                let cut = if *all { s.len() } else { s.chars().next().map_or(0, char::len_utf8) };
                let (head, tail) = s.split_at_checked(cut).unwrap_or((s, ""));
                Text::new(&format!("{}{tail}", change(head)), t.line())
            }
            _ => t,
        }
    }
}

/// Whether a parameter expands to several words.
fn is_list(p: &Param) -> bool {
    if matches!(p.op, Op::Length) {
        return false;
    }
    match &p.index {
        Some(w) => matches!(w.plain(), Some("@" | "*")),
        None => p.name == "@",
    }
}

/// Whether a quoted parameter expands to a single word: `"${a[*]}"` joins the elements, `"${a[@]}"` does not.
fn is_joined(p: &Param) -> bool {
    p.index.as_ref().is_some_and(|w| matches!(w.plain(), Some("*")))
}

/// Expands `{1..8}` and `{a,b}`, alone or inside a word.
fn braces(s: &str) -> Option<Vec<String>> {
    let open = s.find('{')?;
    let close = s.get(open..)?.find('}')? + open;
    let (head, inner, tail) = (s.get(..open)?, s.get(open + 1..close)?, s.get(close + 1..)?);
    if head.ends_with('$') || inner.contains(['{', '"', ' ']) {
        return None;
    }
    if let Some((a, b)) = inner.split_once("..") {
        let (b, step) = match b.split_once("..") {
            Some((b, s)) => (b, s.parse::<i64>().ok()?.abs().max(1)),
            None => (b, 1),
        };
        let (a, b): (i64, i64) = (a.parse().ok()?, b.parse().ok()?);
        let n = a.abs_diff(b) / step.unsigned_abs();
        if n > 1024 {
            return None;
        }
        let sign = if a <= b { step } else { -step };
        return Some((0..=n as i64).map(|i| format!("{head}{}{tail}", a + i * sign)).collect());
    }
    inner.contains(',').then(|| inner.split(',').map(|x| format!("{head}{x}{tail}")).collect())
}
