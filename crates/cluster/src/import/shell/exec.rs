//! Executes commands: evaluates conditions and records what would be run.

use std::rc::Rc;

use super::arith::{self, Num};
use super::ast::{Arg, Cmd, Part, Tok, Word};
use super::text::Text;
use super::{Flow, MAX_STEPS, Shell, glob, parse};
use crate::import::unknown;

/// Maximum number of iterations of one loop.
const MAX_ROUNDS: usize = 64;

impl Shell<'_> {
    pub(super) fn run(&mut self, cmds: &[Cmd]) -> Flow {
        for c in cmds {
            let flow = self.exec(c);
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    pub(super) fn exec(&mut self, cmd: &Cmd) -> Flow {
        self.steps += 1;
        if self.steps > MAX_STEPS || self.budget == 0 {
            return Flow::Exit;
        }
        match cmd {
            Cmd::Simple(s) => self.simple(s),
            Cmd::Pipe(stages) => self.pipe(stages),
            Cmd::Not(c) => {
                let flow = self.exec(c);
                self.status = self.status.map(|b| !b);
                flow
            }
            Cmd::And(a, b) => {
                let flow = self.exec(a);
                if flow != Flow::Next || self.status == Some(false) {
                    return flow;
                }
                // After a test with an unknown result, the command is skipped. After a program with an unknown result,
                // it is run.
                if self.status.is_none() && is_test(a) && !self.setup.every_branch {
                    return flow;
                }
                self.branch(|sh| sh.exec(b))
            }
            Cmd::Or(a, b) => {
                let flow = self.exec(a);
                if flow != Flow::Next || self.status != Some(false) {
                    return flow;
                }
                if let Cmd::Test(_) | Cmd::Simple(_) = **a
                    && exits(std::slice::from_ref(b))
                {
                    self.require_tested(std::slice::from_ref(a));
                    self.status = Some(true);
                    return Flow::Next;
                }
                self.branch(|sh| sh.exec(b))
            }
            Cmd::If { arms, otherwise } => self.if_(arms, otherwise),
            Cmd::For { var, words, body } => self.for_(var, words.as_deref(), body),
            Cmd::ForArith { init, cond, step, body } => {
                self.arith(init);
                self.rounds(
                    body,
                    |sh| matches!(sh.arith(cond), Num::Known(n) if n != 0) || cond.is_empty(),
                    |sh| {
                        sh.arith(step);
                    },
                )
            }
            Cmd::While { cond, body, until } => self.rounds(
                body,
                |sh| {
                    let flow = sh.run(cond);
                    flow == Flow::Next && sh.status == Some(!*until)
                },
                |_| {},
            ),
            Cmd::Case { word, arms } => self.case(word, arms),
            Cmd::Func { name, body } => {
                self.funcs.insert(name.clone(), Rc::clone(body));
                Flow::Next
            }
            Cmd::Arith(expr, line) => {
                self.line = *line;
                self.status = match self.arith(expr) {
                    Num::Known(n) => Some(n != 0),
                    _ => None,
                };
                Flow::Next
            }
            Cmd::Test(toks) => {
                self.status = self.test_double(toks);
                Flow::Next
            }
            Cmd::Group { body, redirs } => {
                let target = self.target(redirs);
                if target.is_some() {
                    self.captures.push(Text::default());
                }
                let flow = self.run(body);
                if let Some((file, append)) = target {
                    let text = self.captures.pop().unwrap_or_default();
                    self.write(&file, &text, append);
                }
                flow
            }
        }
    }

    pub(super) fn arith(&mut self, expr: &str) -> Num {
        // Parameters in braces are expanded before the evaluation, which reads plain variables itself.
        if expr.contains("${") {
            let words = parse::parse(&Text::new(&format!(": \"{expr}\""), self.line));
            if let Some(Cmd::Simple(s)) = words.first()
                && let Some(Arg::Word(w)) = s.words.get(1)
            {
                let t = self.text(w);
                return arith::eval(t.as_str(), self);
            }
        }
        arith::eval(expr, self)
    }

    pub(super) fn branch(&mut self, f: impl FnOnce(&mut Self) -> Flow) -> Flow {
        self.branches += 1;
        let flow = f(self);
        self.branches -= 1;
        flow
    }

    pub(super) fn if_(&mut self, arms: &[(Vec<Cmd>, Vec<Cmd>)], otherwise: &[Cmd]) -> Flow {
        for (cond, body) in arms {
            self.status = None;
            let flow = self.run(cond);
            if flow != Flow::Next {
                return flow;
            }
            let taken = self.status;
            if self.setup.every_branch && taken.is_none() {
                self.branch(|sh| sh.run(body));
                continue;
            }
            if taken == Some(true) {
                // A guard, in which the script refuses to run: the caller must set the variables that the condition
                // tests.
                if exits(body) {
                    self.require_tested(cond);
                    self.out.wants_args |= asks_for_args(cond);
                    continue;
                }
                return self.branch(|sh| sh.run(body));
            }
        }
        if exits(otherwise) && !self.setup.every_branch {
            return Flow::Next;
        }
        self.branch(|sh| sh.run(otherwise))
    }

    pub(super) fn for_(&mut self, var: &str, words: Option<&[Word]>, body: &[Cmd]) -> Flow {
        let items: Vec<Text> = match words {
            None => self.args.clone(),
            Some(ws) => ws.iter().flat_map(|w| self.fields(w)).collect(),
        };
        for t in items.into_iter().take(MAX_ROUNDS * 4) {
            self.set(var, t);
            match self.branch(|sh| sh.run(body)) {
                Flow::Next | Flow::Continue => {}
                Flow::Break => break,
                other => return other,
            }
        }
        Flow::Next
    }

    pub(super) fn rounds(
        &mut self,
        body: &[Cmd],
        mut again: impl FnMut(&mut Self) -> bool,
        mut step: impl FnMut(&mut Self),
    ) -> Flow {
        for _ in 0..MAX_ROUNDS {
            if !again(self) {
                break;
            }
            match self.branch(|sh| sh.run(body)) {
                Flow::Next | Flow::Continue => {}
                Flow::Break => break,
                other => return other,
            }
            step(self);
        }
        Flow::Next
    }

    pub(super) fn case(&mut self, word: &Word, arms: &[(Vec<Word>, Vec<Cmd>)]) -> Flow {
        let text = self.text(word);
        let value = self.without_unset_variables(text.as_str());
        if value.is_none() && self.setup.every_branch {
            for (_, body) in arms {
                self.branch(|sh| sh.run(body));
            }
            return Flow::Next;
        }
        let value = value.unwrap_or_else(|| "\u{2}".to_owned());
        for (patterns, body) in arms {
            for p in patterns {
                let pattern = self.text(p);
                if glob::matches(pattern.as_str(), &value) {
                    if exits(body) && pattern.as_str() == "*" {
                        return Flow::Next;
                    }
                    return self.branch(|sh| sh.run(body));
                }
            }
        }
        Flow::Next
    }

    pub(super) fn pipe(&mut self, stages: &[Cmd]) -> Flow {
        let before = self.stdin.take();
        let (last, first) = match stages.split_last() {
            Some(p) => p,
            None => return Flow::Next,
        };
        for s in first {
            self.captures.push(Text::default());
            self.branch(|sh| sh.exec(s));
            let mut out = self.captures.pop().unwrap_or_default();
            if out.is_empty() && self.status.is_none() {
                out = Text::new(&unknown::opaque("pipe"), self.line);
            }
            self.stdin = Some(out);
        }
        let flow = self.branch(|sh| sh.exec(last));
        self.stdin = before;
        flow
    }
}

fn is_test(c: &Cmd) -> bool {
    match c {
        Cmd::Test(_) | Cmd::Arith(..) => true,
        Cmd::Simple(s) => matches!(s.words.first(), Some(Arg::Word(w)) if matches!(w.plain(), Some("[" | "test"))),
        Cmd::Not(c) => is_test(c),
        Cmd::And(a, b) | Cmd::Or(a, b) => is_test(a) && is_test(b),
        _ => false,
    }
}

/// Whether a branch ends the script.
fn exits(body: &[Cmd]) -> bool {
    body.iter().any(|c| match c {
        Cmd::Simple(s) => {
            matches!(s.words.first(), Some(Arg::Word(w)) if matches!(w.plain(), Some("exit" | "usage" | "die")))
        }
        Cmd::Group { body, .. } => exits(body),
        Cmd::And(_, b) => exits(std::slice::from_ref(b)),
        _ => false,
    })
}

pub(super) fn collect_words<'c>(c: &'c Cmd, out: &mut Vec<&'c Word>) {
    match c {
        Cmd::Test(toks) => out.extend(toks.iter().filter_map(|t| match t {
            Tok::Word(w) => Some(w),
            Tok::Op(_) => None,
        })),
        Cmd::Simple(s) => out.extend(s.words.iter().filter_map(|a| match a {
            Arg::Word(w) => Some(w),
            Arg::Assign(_) => None,
        })),
        Cmd::And(a, b) | Cmd::Or(a, b) => {
            collect_words(a, out);
            collect_words(b, out);
        }
        Cmd::Not(c) => collect_words(c, out),
        _ => {}
    }
}

/// Whether a guard tests the number of arguments.
fn asks_for_args(cond: &[Cmd]) -> bool {
    let mut words = Vec::new();
    cond.iter().for_each(|c| collect_words(c, &mut words));
    words.iter().any(|w| w.parts.iter().any(|p| matches!(p, Part::Param { param, .. } if param.name == "#")))
}
