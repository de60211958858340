//! Runs simple commands: assignments, builtins, functions, and programs, which are recorded.

use super::arith::{self, Num};
use super::ast::{Arg, Assign, AssignValue, Cmd, Op, Part, Redir, Simple, Word};
use super::exec::collect_words;
use super::text::Text;
use super::{Command, Flow, MAX_COMMANDS, MAX_DEPTH, MAX_VALUE, Shell, Var, parse};
use crate::import::place::Place;
use crate::import::unknown;

const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash", "ash"];

impl Shell<'_> {
    /// Marks the variables in a guard's condition as required, unless they are set.
    pub(super) fn require_tested(&mut self, cond: &[Cmd]) {
        let mut names = Vec::new();
        let mut words: Vec<&Word> = Vec::new();
        for c in cond {
            collect_words(c, &mut words);
        }
        for w in words {
            for p in &w.parts {
                if let Part::Param { param, line, .. } = p {
                    let optional = matches!(&param.op, Op::Default(w, _) if !w.parts.is_empty());
                    if !optional && param.name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                        names.push((param.name.clone(), *line));
                    }
                }
            }
        }
        for (n, line) in names {
            let open = match self.lookup(&n) {
                None => vec![n],
                Some(t) if unknown::is_in(t.as_str()) => unknown::names(t.as_str()),
                Some(_) => Vec::new(),
            };
            for n in open {
                self.require(&n, line);
            }
        }
    }

    pub(super) fn assign(&mut self, a: &Assign) {
        if self.references.contains_key(&a.name) {
            let name = self.references.get(&a.name).cloned().unwrap_or_default();
            return self.assign(&Assign { name, ..a.clone() });
        }
        match &a.value {
            AssignValue::Word(w) => {
                let mut t = self.text(w);
                if a.append {
                    let old = match (&a.index, self.vars.get(&a.name)) {
                        (Some(index), _) => self.element(&a.name, index),
                        // Without an index, bash appends to the first element of an array.
                        (None, Some(Var::Array(items))) => items.first().cloned(),
                        (None, _) => self.lookup(&a.name),
                    };
                    if let Some(mut old) = old {
                        old.append(&t);
                        t = old;
                    }
                }
                self.assign_element(&a.name, a.index.as_ref(), t);
            }
            AssignValue::Array(items) => {
                let keyed = items.iter().any(|(k, _)| k.is_some());
                let assoc = matches!(self.vars.get(&a.name), Some(Var::Assoc(_)));
                if assoc || keyed {
                    let mut out = match self.vars.get(&a.name) {
                        Some(Var::Assoc(old)) if a.append => old.clone(),
                        _ => Vec::new(),
                    };
                    for (k, v) in items {
                        let key = k.as_ref().map(|k| self.text(k).as_str().to_owned()).unwrap_or_default();
                        out.push((key, self.text(v)));
                    }
                    self.vars.insert(a.name.clone(), Var::Assoc(out));
                    return;
                }
                let mut out = match self.vars.get(&a.name) {
                    Some(Var::Array(old)) if a.append => old.clone(),
                    Some(Var::Scalar(old)) if a.append => vec![old.clone()],
                    _ => Vec::new(),
                };
                for (_, w) in items {
                    out.extend(self.fields(w));
                }
                out.truncate(10_000);
                self.vars.insert(a.name.clone(), Var::Array(out));
            }
        }
    }

    pub(super) fn assign_element(&mut self, name: &str, index: Option<&Word>, value: Text) {
        let Some(index) = index else {
            // Without an index, bash assigns the first element of an array.
            match self.vars.get_mut(name) {
                Some(Var::Array(items)) => match items.first_mut() {
                    Some(first) => *first = value,
                    None => items.push(value),
                },
                _ => self.set(name, value),
            }
            return;
        };
        if let Some(Var::Assoc(_)) = self.vars.get(name) {
            let key = self.text(index).as_str().to_owned();
            if let Some(Var::Assoc(a)) = self.vars.get_mut(name) {
                a.retain(|(k, _)| *k != key);
                if a.len() < 10_000 {
                    a.push((key, value));
                }
            }
            return;
        }
        let t = self.text(index);
        let Num::Known(i) = arith::eval(t.as_str(), self) else { return };
        let Ok(i) = usize::try_from(i) else { return };
        if i >= 10_000 {
            return;
        }
        let entry = self.vars.entry(name.to_owned()).or_insert_with(|| Var::Array(Vec::new()));
        if let Var::Scalar(t) = entry {
            *entry = Var::Array(vec![t.clone()]);
        }
        if let Var::Array(a) = entry {
            while a.len() <= i {
                a.push(Text::default());
            }
            if let Some(slot) = a.get_mut(i) {
                *slot = value;
            }
        }
    }

    /// The file to which standard output is redirected.
    pub(super) fn target(&mut self, redirs: &[Redir]) -> Option<(String, bool)> {
        redirs
            .iter()
            .rev()
            .find_map(|r| match r {
                Redir::Out(w, append) => Some((w.clone(), *append)),
                Redir::Here(_) | Redir::In(_) => None,
            })
            .map(|(w, append)| (self.text(&w).as_str().to_owned(), append))
    }

    pub(super) fn write(&mut self, file: &str, text: &Text, append: bool) {
        if file.starts_with("/dev/")
            || text.is_empty()
            || self.out.files.len() > 200
            || !self.consume_budget(text.len())
        {
            return;
        }
        let slot = self.out.files.entry(unknown::shown(file)).or_default();
        if !append {
            *slot = Text::default();
        }
        slot.append(text);
        slot.truncate(MAX_VALUE);
    }

    /// Writes the output of a command to its target file, or to the enclosing substitution.
    pub(super) fn emit(&mut self, text: &Text, target: Option<(String, bool)>) {
        match target {
            Some((file, append)) => self.write(&file, text, append),
            None => {
                if let Some(top) = self.captures.last_mut()
                    && top.len() + text.len() <= MAX_VALUE
                {
                    top.append(text);
                }
            }
        }
    }

    pub(super) fn simple(&mut self, s: &Simple) -> Flow {
        self.line = s.line;
        let mut words: Vec<Text> = Vec::new();
        let mut assigns = Vec::new();
        for a in &s.words {
            match a {
                Arg::Word(w) => words.extend(self.fields(w)),
                Arg::Assign(a) => assigns.push(a),
            }
        }
        while words.first().is_some_and(|w| w.is_empty()) {
            words.remove(0);
        }
        if words.is_empty() {
            s.assigns.iter().for_each(|a| self.assign(a));
            self.status = Some(true);
            return Flow::Next;
        }
        let here = s.redirs.iter().rev().find_map(|r| match r {
            Redir::Here(w) => Some((w, false)),
            Redir::In(w) => Some((w, true)),
            Redir::Out(..) => None,
        });
        let here = here.and_then(|(w, file)| {
            let t = self.text(w);
            // For process substitution, the output of the command is the input.
            let printed = matches!(w.parts.as_slice(), [Part::Cmd { .. }]);
            if file && !printed { self.script_file(t.as_str()) } else { Some(t) }
        });
        // `IFS=, read …`: the assignment applies only to this command.
        let ifs = s.assigns.iter().find(|a| a.name == "IFS").map(|a| match &a.value {
            AssignValue::Word(w) => self.text(w),
            AssignValue::Array(_) => Text::default(),
        });
        let target = self.target(&s.redirs);
        let old_stdin = self.stdin.clone();
        if here.is_some() {
            self.stdin = here;
        }
        let flow = self.command(s, words, &assigns, ifs, target);
        self.stdin = old_stdin;
        flow
    }

    pub(super) fn command(
        &mut self,
        s: &Simple,
        words: Vec<Text>,
        assigns: &[&Assign],
        ifs: Option<Text>,
        target: Option<(String, bool)>,
    ) -> Flow {
        let name = words.first().map(|w| w.as_str().to_owned()).unwrap_or_default();
        self.status = Some(true);
        if let Some(flow) = self.builtin(&name, words.get(1..).unwrap_or(&[]), assigns, ifs, target.clone()) {
            return flow;
        }
        if self.funcs.contains_key(&name) {
            if target.is_some() {
                self.captures.push(Text::default());
            }
            let flow = self.call(&name, words.get(1..).unwrap_or(&[]).to_vec());
            if let Some((file, append)) = target {
                let text = self.captures.pop().unwrap_or_default();
                self.write(&file, &text, append);
            }
            return flow;
        }
        self.status = None;
        self.checks_variables(&name, words.get(1..).unwrap_or(&[]));
        let mut env = Vec::new();
        for a in &s.assigns {
            if let AssignValue::Word(w) = &a.value {
                env.push((a.name.clone(), self.text(w)));
            }
        }
        self.record(words, env, s.line)
    }

    /// Marks the arguments of functions such as `check_env_vars A B C` as required variables. The library that defines
    /// the function is not available.
    pub(super) fn checks_variables(&mut self, name: &str, args: &[Text]) {
        let low = name.to_ascii_lowercase();
        let checks = ["check", "require", "assert", "ensure", "validate"].iter().any(|w| low.contains(w));
        if !checks || !(low.contains("env") || low.contains("var")) {
            return;
        }
        for a in args {
            let n = a.as_str();
            if !n.is_empty()
                && n.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
                && self.lookup(n).is_none()
            {
                self.require(n, a.line());
            }
        }
    }

    pub(super) fn record(&mut self, words: Vec<Text>, env: Vec<(String, Text)>, line: Place) -> Flow {
        if self.record_submission(&words, &env) {
            self.status = None;
            return Flow::Next;
        }
        if self.depth < MAX_DEPTH
            && let Some((before, script, args)) = self.inner_script(&words)
        {
            let outer = self.prefix.len();
            self.prefix.extend(before);
            for (k, v) in &env {
                self.prefix.push(Text::new(&format!("{k}={}", v.as_str()), v.line()));
            }
            self.depth += 1;
            let old = std::mem::replace(&mut self.args, args);
            let stdin = self.stdin.take();
            self.branch(|sh| sh.run(&parse::parse(&script)));
            self.stdin = stdin;
            self.args = old;
            self.depth -= 1;
            self.prefix.truncate(outer);
            self.status = None;
            return Flow::Next;
        }
        let mut all = self.prefix.clone();
        all.extend(words);
        if self.out.commands.len() < MAX_COMMANDS && self.consume_budget(all.iter().map(Text::len).sum()) {
            self.out.commands.push(Command { words: all, env, line });
        }
        Flow::Next
    }

    /// The script in `bash -c "…"`, `sbatch --wrap "…"` or a known script file, with the words before it and its
    /// arguments.
    pub(super) fn inner_script(&self, words: &[Text]) -> Option<(Vec<Text>, Text, Vec<Text>)> {
        self.shell_script(words)
            .map(|(at, script, args)| (words.get(..at).unwrap_or(&[]).to_vec(), script, args))
            .or_else(|| wrapped(words).map(|(around, script)| (around, script, Vec::new())))
    }

    /// The script that a shell runs, with the index of the shell in the words.
    fn shell_script(&self, words: &[Text]) -> Option<(usize, Text, Vec<Text>)> {
        let base = |t: &Text| t.as_str().rsplit('/').next().unwrap_or("").to_owned();
        for (i, w) in words.iter().enumerate() {
            let is_shell = SHELLS.contains(&base(w).as_str());
            if !is_shell && i > 0 {
                continue;
            }
            let mut j = if is_shell { i + 1 } else { i };
            loop {
                if !is_shell {
                    break;
                }
                match words.get(j).map(Text::as_str) {
                    Some(o) if o.starts_with('-') && !o.starts_with("--") && o.contains('c') => {
                        let script = words.get(j + 1)?.clone();
                        return Some((i, script, words.get(j + 3..).unwrap_or(&[]).to_vec()));
                    }
                    Some(o) if o.starts_with('-') => j += 1,
                    _ => break,
                }
            }
            let Some(file) =
                words.get(j).filter(|_| j.checked_sub(1).and_then(|k| words.get(k)).is_none_or(|o| o.as_str() != "-s"))
            else {
                // Forms such as `bash -s < script` and `bash <<END`.
                return self.stdin.clone().filter(|_| is_shell).map(|t| (i, t, words.get(j..).unwrap_or(&[]).to_vec()));
            };
            if let Some(text) = self.script_file(file.as_str()) {
                return Some((i, text, words.get(j + 1..).unwrap_or(&[]).to_vec()));
            }
        }
        None
    }

    /// A script that was provided or written before, looked up by its path or name.
    pub(super) fn script_file(&self, path: &str) -> Option<Text> {
        let name = path.rsplit('/').next()?;
        if name.is_empty() || unknown::is_in(name) {
            return None;
        }
        let same = |p: &str| p.rsplit('/').next() == Some(name);
        if let Some((_, t)) = self.out.files.iter().find(|(p, _)| same(p)) {
            return Some(t.clone());
        }
        self.setup.scripts.iter().find(|(p, _)| same(p) && *p != self.name).map(|(_, t)| t.clone())
    }

    pub(super) fn call(&mut self, name: &str, args: Vec<Text>) -> Flow {
        let Some(body) = self.funcs.get(name).cloned() else { return Flow::Next };
        if self.depth >= MAX_DEPTH {
            return Flow::Next;
        }
        if !self.called.iter().any(|n| n == name) {
            self.called.push(name.to_owned());
        }
        self.depth += 1;
        let old = std::mem::replace(&mut self.args, args);
        let flow = self.run(&body);
        self.args = old;
        self.depth -= 1;
        match flow {
            Flow::Return | Flow::Break | Flow::Continue => Flow::Next,
            other => other,
        }
    }
}

/// The command line in an option of a submitting command, such as `sbatch --wrap="…"` or `xpk workload create
/// --command="…"`, with the other options.
fn wrapped(words: &[Text]) -> Option<(Vec<Text>, Text)> {
    const OPTIONS: &[&str] = &["--wrap", "--command", "--cmd"];
    let first = words.first().map_or("", |w| w.as_str().rsplit('/').next().unwrap_or(""));
    if matches!(first, "ssh" | "pdsh") {
        let script = words.last().filter(|w| words.len() > 2 && w.as_str().contains([' ', '\n']))?;
        return Some((Vec::new(), script.clone()));
    }
    for (i, w) in words.iter().enumerate().skip(1) {
        let name = w.as_str().split('=').next().unwrap_or("");
        if !OPTIONS.contains(&name) {
            continue;
        }
        let (script, after) = match w.as_str().find('=') {
            Some(at) => (w.slice(at + 1, w.len()), i + 1),
            None => (words.get(i + 1)?.clone(), i + 2),
        };
        // A single word is a name, not a command line.
        if !script.as_str().contains([' ', '\n']) {
            return None;
        }
        let around = words.iter().take(i).chain(words.iter().skip(after));
        // Scripts and subcommands before the options do not start anything themselves.
        let options = around.skip_while(|w| !w.as_str().starts_with('-')).cloned();
        let head = (first == "sbatch").then(|| Text::new("srun", w.line()));
        return Some((head.into_iter().chain(options).collect(), script));
    }
    None
}
