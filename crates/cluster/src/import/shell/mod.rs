//! A bounded interpreter of shell scripts. It expands words and evaluates conditions, but never runs a program.
//!
//! Unset variables remain in the text as unknown parts. A condition that depends on one is false, unless it tests
//! whether the variable is set. Commands that are not part of the shell are recorded with their arguments.

mod arith;
mod ast;
mod builtin;
mod compound;
mod exec;
mod expand;
mod glob;
mod handed;
mod parse;
mod run;
mod simple;
mod test;
mod text;
mod word;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use atlas_core::sort;
pub(crate) use handed::Submission;
pub(crate) use text::Text;

use super::unknown;
use crate::import::place::Place;

/// Maximum number of commands that are evaluated per script.
const MAX_STEPS: u32 = 60_000;
/// Maximum number of commands that are recorded.
const MAX_COMMANDS: usize = 2_000;
/// Maximum number of bytes that expansions may produce in total.
const MAX_TEXT: usize = 32 << 20;
/// Maximum number of bytes in one variable or file.
const MAX_VALUE: usize = 1 << 20;
/// Maximum nesting depth of scripts, functions and substitutions.
const MAX_DEPTH: u32 = 24;

/// A command that the script would run.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    /// Words of the command. Words of enclosing commands (`srun … bash -c "…"`) come first.
    pub(crate) words: Vec<Text>,
    /// Assignments before the command.
    pub(crate) env: Vec<(String, Text)>,
    pub(crate) line: Place,
}

/// Result of reading a script.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) commands: Vec<Command>,
    /// Files written with here-documents and `echo`.
    pub(crate) files: BTreeMap<String, Text>,
    /// Final values of the variables, with arrays joined.
    pub(crate) vars: BTreeMap<String, Text>,
    /// Variables that the script requires, in the order in which it tests them.
    pub(crate) required: Vec<(String, Place)>,
    /// Whether the script requires arguments.
    pub(crate) wants_args: bool,
    /// Sourced scripts that were not provided.
    pub(crate) sourced: Vec<(String, Place)>,
    /// Expressions that divide by zero, with their lines.
    pub(crate) zero_divisions: Vec<(String, Place)>,
    /// Submitted jobs whose script is known.
    pub(crate) jobs: Vec<Submission>,
    /// Manifests that the script passes to a cluster on standard input.
    pub(crate) manifests: Vec<Text>,
    /// Whether a limit was exceeded, so that part of the script was not read.
    pub(crate) cut: bool,
}

/// A shell variable.
#[derive(Debug, Clone)]
enum Var {
    Scalar(Text),
    Array(Vec<Text>),
    Assoc(Vec<(String, Text)>),
}

/// How a list of commands ended.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Flow {
    Next,
    Break,
    Continue,
    Return,
    Exit,
}

/// Inputs of a script.
pub(crate) struct Setup<'a> {
    /// Scripts that may be sourced or called, by name.
    pub(crate) scripts: &'a [(String, Text)],
    /// Environment variables.
    pub(crate) env: &'a BTreeMap<String, String>,
    /// Variables that the batch system sets.
    pub(crate) batch: &'a [(String, String, Place)],
    /// Default values of variables that the caller sets, such as `NODES`. Used only if no other value is known.
    pub(crate) weak: &'a [(String, String, Place)],
    /// Arguments of the script.
    pub(crate) args: &'a [Text],
    /// Whether to run every branch and every function instead of evaluating conditions.
    pub(crate) every_branch: bool,
}

pub(super) struct Shell<'a> {
    setup: &'a Setup<'a>,
    vars: HashMap<String, Var>,
    funcs: HashMap<String, Rc<Vec<ast::Cmd>>>,
    exported: BTreeSet<String>,
    /// Variables that refer to other variables, after `declare -n`.
    references: HashMap<String, String>,
    called: Vec<String>,
    args: Vec<Text>,
    captures: Vec<Text>,
    stdin: Option<Text>,
    prefix: Vec<Text>,
    out: Script,
    steps: u32,
    budget: usize,
    depth: u32,
    branches: u32,
    status: Option<bool>,
    name: String,
    line: Place,
}

/// Reads a script.
pub(crate) fn read(name: &str, text: &Text, setup: &Setup<'_>) -> Script {
    let mut sh = Shell {
        setup,
        vars: HashMap::new(),
        funcs: HashMap::new(),
        exported: BTreeSet::new(),
        references: HashMap::new(),
        called: Vec::new(),
        args: setup.args.to_vec(),
        captures: Vec::new(),
        stdin: None,
        prefix: Vec::new(),
        out: Script::default(),
        steps: 0,
        budget: MAX_TEXT,
        depth: 0,
        branches: 0,
        status: Some(true),
        name: name.to_owned(),
        line: text.line(),
    };
    for (k, v, line) in setup.batch {
        sh.vars.insert(k.clone(), Var::Scalar(Text::new(v, *line)));
        sh.export(k);
    }
    for (k, v) in setup.env {
        sh.vars.insert(k.clone(), Var::Scalar(Text::new(v, Place::NONE)));
    }
    let cmds = parse::parse(text);
    sh.run(&cmds);
    if setup.every_branch {
        let mut names: Vec<String> = sh.funcs.keys().filter(|n| !sh.called.contains(n)).cloned().collect();
        sort::ascending(&mut names);
        for n in names {
            sh.call(&n, Vec::new());
        }
    }
    sh.out.cut |= sh.steps >= MAX_STEPS || sh.budget == 0;
    let vars = std::mem::take(&mut sh.vars);
    sh.out.vars = sort::collect_unsorted(vars.into_iter().map(|(k, v)| (k, join(&v))));
    sh.out
}

fn join(var: &Var) -> Text {
    let items: Vec<&Text> = match var {
        Var::Scalar(t) => return t.clone(),
        Var::Array(a) => a.iter().collect(),
        Var::Assoc(a) => a.iter().map(|(_, t)| t).collect(),
    };
    let mut out = Text::default();
    for (i, t) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(" ", t.line());
        }
        out.append(t);
    }
    out
}

impl Shell<'_> {
    /// Subtracts a length from the remaining budget. Returns whether any is left.
    fn consume_budget(&mut self, n: usize) -> bool {
        self.budget = self.budget.saturating_sub(n);
        self.budget > 0
    }

    fn set(&mut self, name: &str, mut value: Text) {
        if value.len() > MAX_VALUE || !self.consume_budget(value.len()) {
            value.truncate(MAX_VALUE.min(self.budget));
            self.out.cut = true;
        }
        if self.vars.len() < 20_000 {
            self.vars.insert(self.resolve_nameref(name), Var::Scalar(value));
        }
    }

    fn is_required(&self, name: &str) -> bool {
        self.out.required.iter().any(|(n, _)| n == name)
    }

    fn require(&mut self, name: &str, line: Place) {
        if !self.is_required(name) && self.out.required.len() < 200 {
            self.out.required.push((name.to_owned(), line));
        }
    }

    /// The text with unset variables replaced by empty strings, or `None` if it depends on an unknown part that is not
    /// an optional variable. If every branch is run, any unknown part yields `None`.
    fn without_unset_variables(&self, s: &str) -> Option<String> {
        if !unknown::is_in(s) {
            return Some(s.to_owned());
        }
        let open = !self.setup.every_branch
            && unknown::only_names(s)
            && unknown::names(s).iter().all(|n| !self.is_required(n));
        open.then(|| unknown::as_unset(s))
    }
}
