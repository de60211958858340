//! Shell builtins, and small programs whose output can be computed from their arguments.

use super::arith;
use super::ast::{Assign, AssignValue};
use super::expand::num_text;
use super::parse;
use super::text::Text;
use super::{Flow, MAX_DEPTH, MAX_VALUE, Shell, Var};
use crate::import::place::Place;
use crate::import::unknown;
use crate::import::value::parse_int;

type Target = Option<(String, bool)>;

impl Shell<'_> {
    /// Runs a builtin. Returns `None` if `name` is not one.
    pub(super) fn builtin(
        &mut self,
        name: &str,
        args: &[Text],
        assigns: &[&Assign],
        ifs: Option<Text>,
        target: Target,
    ) -> Option<Flow> {
        let arg = |i: usize| args.get(i).map_or("", Text::as_str);
        match name {
            ":" | "true" => {}
            "false" => self.status = Some(false),
            "export" | "readonly" | "declare" | "typeset" | "local" => self.declare(name, args, assigns),
            "unset" => args.iter().for_each(|a| {
                self.vars.remove(a.as_str());
            }),
            "set" => {
                if let Some(i) = args.iter().position(|a| a.as_str() == "--") {
                    self.args = args.get(i + 1..).unwrap_or(&[]).to_vec();
                }
            }
            "shift" => {
                let n = parse_int(arg(0)).and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
                self.args.drain(..n.min(self.args.len()));
            }
            "let" => {
                for a in args {
                    self.arith(a.as_str());
                }
            }
            "break" => return Some(Flow::Break),
            "continue" => return Some(Flow::Continue),
            "return" => return Some(Flow::Return),
            // `exit` inside a branch does not end the script: other branches may continue.
            "exit" => return Some(if self.branches == 0 { Flow::Exit } else { Flow::Next }),
            "exec" | "command" | "builtin" if args.is_empty() || arg(0).starts_with('-') => self.status = None,
            "eval" => return Some(self.eval(args)),
            "source" | "." => self.source(args),
            "[" | "test" => {
                let words = if name == "[" { args.split_last().map_or(args, |(_, w)| w) } else { args };
                self.status = self.test_single(words);
            }
            "read" => self.read_words(args, ifs),
            "mapfile" | "readarray" => {
                if let (Some(t), Some(n)) = (self.stdin.clone(), args.last()) {
                    self.set_lines(n.as_str(), &t);
                }
            }
            "printf" if arg(0) == "-v" => {
                let out = printf(args.get(2..).unwrap_or(&[]), self.line);
                self.set(arg(1), out);
            }
            "cat" | "tee" => return self.cat(name, args, target),
            "echo" | "printf" | "envsubst" | "seq" | "expr" | "basename" | "dirname" | "getopt" | "tr" | "cut"
            | "head" | "wc" => {
                let out = self.output(name, args)?;
                self.emit(&out, target);
            }
            "sleep" | "wait" | "trap" | "cd" | "pushd" | "popd" | "mkdir" | "rm" | "chmod" | "ulimit" | "shopt"
            | "umask" => {}
            _ => return None,
        }
        Some(Flow::Next)
    }

    /// What a program prints whose output follows from its arguments and its input. Returns `None` if it does not.
    fn output(&mut self, name: &str, args: &[Text]) -> Option<Text> {
        let arg = |i: usize| args.get(i).map_or("", Text::as_str);
        Some(match name {
            "echo" => {
                let shown = args.iter().skip_while(|a| matches!(a.as_str(), "-n" | "-e" | "-ne" | "-en" | "-E"));
                let mut out = self.joined(shown);
                out.push("\n", self.line);
                out
            }
            "printf" => printf(args, self.line),
            "envsubst" => self.envsubst(&self.stdin.clone()?),
            "seq" => {
                let nums: Vec<i64> = args.iter().filter_map(|a| parse_int(a.as_str())).collect();
                let (from, step, to) = match *nums.as_slice() {
                    [to] => (1, 1, to),
                    [from, to] => (from, 1, to),
                    [from, step, to] => (from, step.max(1), to),
                    _ => return None,
                };
                let sep = args.iter().position(|a| a.as_str().starts_with("-s")).map_or("\n", |_| ",");
                let items: Vec<String> = (0..4096_i64)
                    .map_while(|i| i.checked_mul(step)?.checked_add(from))
                    .take_while(|n| *n <= to)
                    .map(|n| n.to_string())
                    .collect();
                Text::new(&format!("{}\n", items.join(sep)), self.line)
            }
            "expr" => {
                let words: Vec<&str> = args.iter().map(Text::as_str).collect();
                let sum = words.join(" ");
                // String comparisons and patterns are not evaluated.
                if sum.is_empty() || !sum.chars().all(|c| c.is_ascii_digit() || " +-*/%()".contains(c)) {
                    return None;
                }
                Text::new(&format!("{}\n", num_text(&arith::eval(&sum, self))), self.line)
            }
            "basename" | "dirname" => {
                let path = arg(0).trim_end_matches('/');
                let cut = path.rsplit_once('/');
                let part = if name == "basename" { cut.map_or(path, |c| c.1) } else { cut.map_or(".", |c| c.0) };
                let part = part.strip_suffix(arg(1)).filter(|_| !arg(1).is_empty()).unwrap_or(part);
                Text::new(&format!("{part}\n"), self.line)
            }
            "getopt" => {
                let rest =
                    args.iter().position(|a| a.as_str() == "--").map_or(&[][..], |i| args.get(i + 1..).unwrap_or(&[]));
                let mut out = Text::new("", self.line);
                for a in rest {
                    out.push(" ", a.line());
                    out.append(a);
                }
                out.push(" --\n", self.line);
                out
            }
            "tr" | "cut" | "head" | "wc" => {
                let stdin = self.stdin.clone()?;
                match self.without_unset_variables(stdin.as_str()).and_then(|s| filter(name, args, &s)) {
                    Some(s) => Text::new(&s, stdin.line()),
                    None => Text::new(&unknown::opaque("filter"), self.line),
                }
            }
            _ => return None,
        })
    }

    /// Joins texts with spaces.
    fn joined<'t>(&self, texts: impl Iterator<Item = &'t Text>) -> Text {
        let mut all = Text::new("", self.line);
        for (i, text) in texts.enumerate() {
            if i > 0 {
                all.push(" ", text.line());
            }
            all.append(text);
        }
        all
    }

    /// Declares, sets or exports variables.
    fn declare(&mut self, name: &str, args: &[Text], assigns: &[&Assign]) {
        let assoc = args.iter().any(|a| a.as_str().starts_with('-') && a.as_str().contains('A'));
        let array = args.iter().any(|a| a.as_str().starts_with('-') && a.as_str().contains('a'));
        let refers = args.iter().any(|a| a.as_str().starts_with('-') && a.as_str().contains('n'));
        let exports = name == "export" || args.iter().any(|a| a.as_str() == "-x");
        if name == "export" && refers {
            return;
        }
        if refers {
            for a in assigns {
                if let AssignValue::Word(w) = &a.value {
                    let other = self.text(w).as_str().to_owned();
                    // A name that refers to itself would be followed forever.
                    if other != a.name && !self.references.contains_key(&other) {
                        self.references.insert(a.name.clone(), other);
                    }
                }
            }
            return;
        }
        for a in args.iter().filter(|a| !a.as_str().starts_with('-')) {
            // `export "$KEY=$VALUE"` is a word, not an assignment.
            match a.as_str().split_once('=') {
                Some((k, _)) if !k.is_empty() => {
                    let value = a.slice(k.len() + 1, a.len());
                    if exports {
                        self.export(k);
                    }
                    self.set(k, value);
                }
                _ if assoc => {
                    self.vars.insert(a.as_str().to_owned(), Var::Assoc(Vec::new()));
                }
                _ if array => {
                    self.vars.entry(a.as_str().to_owned()).or_insert_with(|| Var::Array(Vec::new()));
                }
                _ if exports => self.export(a.as_str()),
                _ => {}
            }
        }
        for a in assigns {
            if assoc && !matches!(self.vars.get(&a.name), Some(Var::Assoc(_))) {
                self.vars.insert(a.name.clone(), Var::Assoc(Vec::new()));
            }
            self.assign(a);
            if exports {
                self.export(&a.name);
            }
        }
    }

    fn eval(&mut self, args: &[Text]) -> Flow {
        let script = self.joined(args.iter());
        if self.depth >= MAX_DEPTH {
            return Flow::Next;
        }
        self.depth += 1;
        let flow = self.run(&parse::parse(&script));
        self.depth -= 1;
        flow
    }

    fn source(&mut self, args: &[Text]) {
        let Some(path) = args.first() else { return };
        match self.script_file(path.as_str()) {
            Some(text) if self.depth < MAX_DEPTH => {
                self.depth += 1;
                let old = std::mem::replace(&mut self.args, args.get(1..).unwrap_or(&[]).to_vec());
                self.branches += 1;
                self.run(&parse::parse(&text));
                self.branches -= 1;
                self.args = old;
                self.depth -= 1;
            }
            _ if self.out.sourced.len() < 100 => {
                self.out.sourced.push((unknown::shown(path.as_str()), path.line()));
                self.status = None;
            }
            _ => {}
        }
    }

    fn read_words(&mut self, args: &[Text], ifs: Option<Text>) {
        let array = args.iter().any(|a| a.as_str().starts_with('-') && a.as_str().contains('a'));
        // `-d ''` reads up to the end of the input instead of the line.
        let delimiter = args.iter().position(|a| a.as_str().starts_with('-') && a.as_str().ends_with('d'));
        let whole = delimiter.is_some_and(|i| args.get(i + 1).is_some_and(Text::is_empty));
        let names: Vec<String> = args
            .iter()
            .enumerate()
            .filter(|(i, a)| !a.as_str().starts_with('-') && !a.is_empty() && delimiter.is_none_or(|d| *i != d + 1))
            .map(|(_, a)| a.as_str().to_owned())
            .collect();
        let Some(input) = self.stdin.clone() else {
            self.status = Some(false);
            return;
        };
        let end = input.as_str().find('\n').filter(|_| !whole);
        let first_line = end.map_or(input.clone(), |i| input.slice(0, i));
        let ifs = ifs.map_or_else(|| self.separators(), |t| t.as_str().to_owned());
        let sep = |c: char| ifs.contains(c) || (whole && c == '\n');
        let whole_unknown = unknown::whole(first_line.as_str()).is_some();
        if array {
            if let Some(n) = names.first() {
                self.vars.insert(n.clone(), Var::Array(first_line.split(sep)));
            }
        } else {
            let pieces = first_line.split(sep);
            for (i, n) in names.iter().enumerate() {
                let value = if whole_unknown {
                    Text::new(&unknown::opaque(n), first_line.line())
                } else if i + 1 == names.len() && pieces.len() > names.len() {
                    pieces.get(i..).unwrap_or(&[]).iter().fold(Text::default(), |mut acc, p| {
                        if !acc.is_empty() {
                            acc.push(" ", p.line());
                        }
                        acc.append(p);
                        acc
                    })
                } else {
                    pieces.get(i).cloned().unwrap_or_else(|| Text::new("", first_line.line()))
                };
                self.set(n, value);
            }
        }
        // At the end of the input, `read` fails, which ends a loop.
        let rest = end.map(|i| input.slice(i + 1, input.len()));
        self.status = Some(!first_line.is_empty() || rest.is_some());
        self.stdin = rest.filter(|r| !r.is_empty());
    }

    fn cat(&mut self, name: &str, args: &[Text], target: Target) -> Option<Flow> {
        let files: Vec<&Text> = args.iter().filter(|a| !a.as_str().starts_with('-')).collect();
        if name == "tee" {
            let text = self.stdin.clone().unwrap_or_default();
            let append = args.iter().any(|a| a.as_str() == "-a");
            for f in files {
                self.write(f.as_str(), &text, append);
            }
            self.emit(&text, target);
            return Some(Flow::Next);
        }
        let mut out = Text::default();
        if files.is_empty() {
            match self.stdin.clone() {
                Some(t) => out = t,
                None => {
                    self.status = None;
                    return Some(Flow::Next);
                }
            }
        }
        for f in files {
            match self.script_file(f.as_str()) {
                Some(t) => out.append(&t),
                None => self.status = None,
            }
        }
        self.emit(&out, target);
        Some(Flow::Next)
    }
}

/// Evaluates `printf` with simple conversions. The format is reused until all arguments are consumed.
fn printf(args: &[Text], line: Place) -> Text {
    let mut out = Text::new("", line);
    let Some((format, mut rest)) = args.split_first() else { return out };
    loop {
        let before = rest.len();
        rest = printed(format, rest, line, &mut out);
        if rest.is_empty() || rest.len() == before || out.len() > MAX_VALUE {
            return out;
        }
    }
}

/// Prints the format once and returns the remaining arguments.
fn printed<'t>(format: &Text, mut rest: &'t [Text], line: Place, out: &mut Text) -> &'t [Text] {
    let mut chars = format.as_str().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push("\n", line),
                Some('t') => out.push("\t", line),
                Some(c) => out.push(&c.to_string(), line),
                None => {}
            },
            '%' => {
                if chars.peek() == Some(&'%') {
                    chars.next();
                    out.push("%", line);
                    continue;
                }
                let mut spec = String::new();
                while let Some(&c) = chars.peek() {
                    chars.next();
                    if c.is_ascii_alphabetic() {
                        break;
                    }
                    spec.push(c);
                }
                if let Some((a, r)) = rest.split_first() {
                    rest = r;
                    let width: usize = spec.trim_start_matches('0').parse().unwrap_or(0).min(64);
                    if spec.starts_with('0') {
                        out.push(&"0".repeat(width.saturating_sub(a.len())), line);
                    }
                    out.append(a);
                }
            }
            c => out.push(&c.to_string(), line),
        }
    }
    rest
}

fn filter(name: &str, args: &[Text], input: &str) -> Option<String> {
    let opts: Vec<&str> = args.iter().map(Text::as_str).collect();
    match (name, opts.as_slice()) {
        ("tr", ["[:upper:]" | "A-Z", "[:lower:]" | "a-z"]) => Some(input.to_lowercase()),
        ("tr", ["[:lower:]" | "a-z", "[:upper:]" | "A-Z"]) => Some(input.to_uppercase()),
        ("tr", ["-d", set]) => {
            let set = set.replace("\\n", "\n");
            Some(input.chars().filter(|c| !set.contains(*c)).collect())
        }
        ("tr", [from, to]) if !from.contains('[') => {
            let (from, to) = (from.replace("\\n", "\n"), to.replace("\\n", "\n"));
            let to: Vec<char> = to.chars().collect();
            let map = |c: char| match from.chars().position(|f| f == c) {
                Some(i) => to.get(i).or(to.last()).copied().unwrap_or(c),
                None => c,
            };
            Some(input.chars().map(map).collect())
        }
        ("cut", opts) => {
            let value = |flag: &str| {
                opts.iter().enumerate().find_map(|(i, o)| {
                    let v = o.strip_prefix(flag)?;
                    if v.is_empty() { opts.get(i + 1).copied() } else { Some(v) }
                })
            };
            let delim = value("-d").and_then(|d| d.trim_matches(['"', '\'']).chars().next()).unwrap_or('\t');
            let field = value("-f")?;
            let line = input.lines().next().unwrap_or("");
            let parts: Vec<&str> = line.split(delim).collect();
            let n: usize = field.trim_end_matches('-').parse().ok().filter(|n| *n > 0)?;
            let sep = delim.to_string();
            let out = if field.ends_with('-') {
                parts.get(n - 1..).unwrap_or(&[]).join(&sep)
            } else {
                parts.get(n - 1).copied().unwrap_or("").to_owned()
            };
            Some(format!("{out}\n"))
        }
        ("head", _) => Some(format!("{}\n", input.lines().next().unwrap_or(""))),
        ("wc", ["-w"]) => Some(format!("{}\n", input.split_whitespace().count())),
        ("wc", ["-l"]) => Some(format!("{}\n", input.lines().count())),
        _ => None,
    }
}
