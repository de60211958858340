//! Python programs that launch jobs: commands in lists and strings, recipes, engines and trainers with their settings.
//! Assignments are followed from top to bottom; nothing is executed.

mod eval;
mod lex;

use std::collections::{BTreeMap, HashMap};

use super::collect::{Collector, Lookup};
use super::fields::ReadFields;
use super::shell::{self, Command, Text};
use super::tools::serving::Engine;
use super::tools::{bridge, hf, megatron};
use super::value::{Node, Value};
use super::{documents, names, unknown};
use crate::import::place::Place;
use crate::import::{Field, Kind};
use eval::{Argument, Reader, Scope};
use lex::{Token, TokenKind};

/// The framework that the program uses, according to the packages that it imports.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Package {
    Nemo,
    Bridge,
    Trainer,
    Other,
}

struct Program<'a> {
    scope: Scope,
    package: Package,
    tensorrt: bool,
    files: Lookup<'a>,
    found: Collector,
    /// Functions of the program, with the arguments of the first call.
    calls: HashMap<String, Vec<Argument>>,
    /// Settings of a recipe or a trainer that is configured over several statements.
    training: ReadFields,
}

/// Reads a program.
pub(crate) fn read(plain: &str, index: usize, files: Lookup<'_>) -> Collector {
    let has = |word: &str| plain.contains(word);
    let package = if has("megatron.bridge") {
        Package::Bridge
    } else if has("nemo.collections") || has("nemo_run") {
        Package::Nemo
    } else if has("transformers") || has("trl") {
        Package::Trainer
    } else {
        Package::Other
    };
    let statements = lex::statements(plain, |l| Place::of(index, l));
    let program = |calls| Program {
        scope: Scope::default(),
        package,
        tensorrt: has("tensorrt_llm"),
        files,
        found: Collector::default(),
        calls,
        training: ReadFields::default(),
    };
    let own = statements.iter().filter_map(|s| defined(s)).map(|(name, _)| (name.to_owned(), Vec::new()));
    let mut p = program(own.collect());
    statements.iter().for_each(|s| p.statement(s));
    // Functions are defined before they are called, so their arguments are only known after a first pass.
    if p.calls.values().any(|arguments| !arguments.is_empty()) {
        p = program(p.calls);
        statements.iter().for_each(|s| p.statement(s));
    }
    if p.training.fields.has(Field::Framework) {
        p.found.trainings.push(p.training);
    }
    p.found
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

impl Program<'_> {
    fn statement(&mut self, s: &[Token]) {
        let name = |i: usize| match s.get(i).map(|t| &t.tok) {
            Some(TokenKind::Name(n)) => n.as_str(),
            _ => "",
        };
        if matches!(name(0), "import" | "from") {
            return;
        }
        if let Some((name, parameters)) = defined(s) {
            return self.parameters(name, parameters);
        }
        self.calls(s);
        // Forms of an assignment: `name = …`, `name: type = …`, `name += …`.
        let Some(eq) = assignment(s) else { return };
        let target = name(0).to_owned();
        let plain = eq == 1 || s.get(1).is_some_and(|t| t.is(":"));
        if target.is_empty() || !plain {
            return;
        }
        let mut value = eval::value(s.get(eq + 1..).unwrap_or(&[]), &self.scope);
        if s.get(eq).is_some_and(|t| t.is("+=")) {
            value = self.extended(&target, value);
        }
        if target.contains('.') {
            self.setting(last(&target), &value);
        }
        if let (Value::Map(_), Package::Other | Package::Trainer) = (&value.value, self.package)
            && value.has("zero_optimization")
            && let Some(o) = documents::document(&value, "")
        {
            self.training.fields.copy_missing(&o.fields);
        }
        self.scope.names.insert(target, value);
    }

    /// Value of a list or string after `more` is appended.
    fn extended(&mut self, name: &str, more: Node) -> Node {
        let Some(old) = self.scope.names.remove(name) else { return more };
        let line = old.line;
        match (old.value, more.value) {
            (Value::List(mut a), Value::List(b)) => {
                a.extend(b);
                Node::new(Value::List(a), line)
            }
            (Value::Str(a), Value::Str(b)) => Node::str(a + &b, line),
            _ => Node::str(unknown::opaque("sum"), line),
        }
    }

    /// Binds the parameters of a function to the arguments of its first call, or to their defaults.
    fn parameters(&mut self, function: &str, s: &[Token]) {
        let mut r = Reader { tokens: s, pos: 1, scope: &self.scope, depth: 0 };
        let mut found = Vec::new();
        let called = self.calls.get(function).map(Vec::as_slice).unwrap_or_default();
        let mut plain = called.iter().filter(|(name, _)| name.is_none());
        while let Some(t) = s.get(r.pos) {
            if t.is(")") || t.is("->") {
                break;
            }
            if let TokenKind::Name(n) = &t.tok {
                let mut at = r.pos + 1;
                if s.get(at).is_some_and(|t| t.is(":")) {
                    // Skips the type annotation, up to the default.
                    let (mut depth, mut end) = (0_i32, at + 1);
                    while let Some(t) = s.get(end) {
                        depth += i32::from(t.is("[")) - i32::from(t.is("]"));
                        if depth == 0 && ["=", ",", ")"].iter().any(|o| t.is(o)) {
                            break;
                        }
                        end += 1;
                    }
                    at = end;
                }
                r.pos = at;
                let named = called.iter().find(|(name, _)| name.as_ref() == Some(n)).or_else(|| plain.next());
                let given = named.map(|(_, value)| value).filter(|value| !eval::is_open(value)).cloned();
                if s.get(at).is_some_and(|t| t.is("=")) {
                    r.pos += 1;
                    let default = r.expression();
                    found.push((n.clone(), given.unwrap_or(default)));
                    continue;
                }
                found.extend(given.map(|value| (n.clone(), value)));
            }
            r.pos += 1;
        }
        self.scope.names.extend(found);
    }

    /// Evaluates the relevant calls in a statement.
    fn calls(&mut self, s: &[Token]) {
        for (i, pair) in s.windows(2).enumerate() {
            let [Token { tok: TokenKind::Name(name), line }, bracket] = pair else { continue };
            if !bracket.is("(") {
                continue;
            }
            let mut name = name.as_str();
            let mut from = i + 2;
            // `run.Config(Strategy, …)` is equivalent to `Strategy(…)`.
            if matches!(last(name), "Config" | "Partial" | "partial")
                && let Some(TokenKind::Name(inner)) = s.get(from).map(|t| &t.tok)
            {
                name = inner;
                from += 1;
            }
            let own = self.calls.get(name).is_some_and(Vec::is_empty);
            if !own && !self.is_relevant(name) {
                continue;
            }
            let args = Reader { tokens: s, pos: from, scope: &self.scope, depth: 0 }.arguments();
            if self.is_relevant(name) {
                self.call(name, &args, *line);
            }
            if own {
                self.calls.insert(name.to_owned(), args);
            }
        }
    }

    fn is_relevant(&self, name: &str) -> bool {
        let parts = name.split('.').count();
        match last(name) {
            "run" | "Popen" | "check_call" | "check_output" | "call" => parts == 1 || name.starts_with("subprocess"),
            "system" | "popen" | "execvp" | "execvpe" | "execv" => name.starts_with("os."),
            "append" | "extend" | "add_argument" | "LLM" | "AsyncEngineArgs" | "EngineArgs" | "from_pretrained"
            | "LoraConfig" => true,
            "Engine" => name.starts_with("sgl"),
            // `Trainer` receives objects; its settings are in `TrainingArguments`.
            "Trainer" if self.package == Package::Trainer => false,
            other => self.package != Package::Other && is_setup(other),
        }
    }

    fn call(&mut self, name: &str, args: &[Argument], line: Place) {
        let mut plain = args.iter().filter(|(k, _)| k.is_none()).map(|(_, n)| n);
        let named = |key: &str| args.iter().find(|(k, _)| k.as_deref() == Some(key)).map(|(_, n)| n);
        match last(name) {
            "add_argument" => {
                let long = plain.filter_map(Node::raw).find_map(|t| t.strip_prefix("--").map(names::snake));
                if let (Some(long), Some(default)) = (long, named("default")) {
                    self.scope.arguments.insert(long, default.clone());
                }
            }
            method @ ("append" | "extend") => {
                let target = name.rsplit_once('.').map_or("", |p| p.0).to_owned();
                if let (Some(item), true) = (plain.next(), self.scope.names.contains_key(&target)) {
                    let more = if method == "append" {
                        Node::new(Value::List(vec![item.clone()]), line)
                    } else {
                        item.clone()
                    };
                    let all = self.extended(&target, more);
                    self.scope.names.insert(target, all);
                }
            }
            "run" | "Popen" | "check_call" | "check_output" | "call" | "system" | "popen" => {
                if let Some(n) = plain.next().or_else(|| named("args")) {
                    self.launch(n);
                }
            }
            "execvp" | "execvpe" | "execv" => {
                if let Some(n) = plain.nth(1) {
                    self.launch(n);
                }
            }
            "LLM" | "AsyncEngineArgs" | "EngineArgs" if self.tensorrt => self.engine(Engine::Trtllm, args, line),
            "LLM" | "AsyncEngineArgs" | "EngineArgs" => self.engine(Engine::Vllm, args, line),
            "Engine" => self.engine(Engine::Sglang, args, line),
            "from_pretrained" => {
                if let Some(n) = plain.next().filter(|_| self.package == Package::Trainer && name.contains("Model")) {
                    super::tools::model(&mut self.training, n);
                    for n in args.iter().filter(|(k, _)| k.is_some()) {
                        self.setting(n.0.as_deref().unwrap_or(""), &n.1);
                    }
                }
            }
            "LoraConfig" => {
                self.training.fields.set_implied(Field::Adapter, "lora", line);
                for (key, value) in args {
                    match key.as_deref() {
                        Some("r") => drop(self.training.int(Field::LoraRank, value)),
                        Some("target_modules") => {
                            super::tools::hf::lora_targets("target_modules", value, &mut self.training);
                        }
                        _ => {}
                    }
                }
            }
            _ => self.read_setup_call(name, args, line),
        }
    }

    /// Reads the settings of trainers and recipes.
    fn read_setup_call(&mut self, name: &str, args: &[Argument], line: Place) {
        let kind = last(name);
        if kind.ends_with("Executor") {
            self.training.fields.set(Field::Launcher, "nemo-run", line);
        }
        let framework = match self.package {
            Package::Nemo => "nemo",
            Package::Bridge => "megatron-bridge",
            _ if kind.ends_with("TrainingArguments") => "transformers",
            _ => "trl",
        };
        let started = kind.ends_with("_recipe") || kind.ends_with("_config") || kind.ends_with("Arguments");
        if started || kind.ends_with("Config") || kind == "MegatronStrategy" {
            self.training.fields.set(Field::Kind, Kind::Training, line);
            self.training.fields.set(Field::Framework, framework, line);
        }
        if kind.ends_with("_recipe") {
            // The model is the module name in `llm.llama31_70b.pretrain_recipe(…)`.
            if let Some(model) = name.rsplit('.').nth(1) {
                self.training.fields.set(Field::Model, model, line);
            }
        } else if kind.ends_with("_config") {
            bridge::recipe(kind, line, &mut self.training);
        } else if framework == "nemo" && kind.contains("mixed") {
            let fine = if kind.contains("fp8") { "fp8" } else { kind.split('_').next().unwrap_or("") };
            self.setting("precision", &Node::str(fine, line));
        }
        for (key, value) in args {
            if let Some(key) = key {
                self.setting(key, value);
            }
        }
    }

    /// Reads one setting by the last component of its name.
    fn setting(&mut self, key: &str, value: &Node) {
        let out = &mut self.training;
        match (self.package, key) {
            (Package::Nemo | Package::Bridge, "num_nodes") => out.int(Field::Nodes, value),
            (Package::Nemo | Package::Bridge, "num_gpus_per_node" | "devices" | "gpus_per_node") => {
                out.int(Field::AcceleratorsPerNode, value)
            }
            (Package::Nemo, _) => megatron::flag(key, value, out),
            (Package::Bridge, _) => bridge::setting(key, value, out),
            (Package::Trainer, _) => hf::flag(key, value, out),
            (Package::Other, _) => true,
        };
    }

    fn engine(&mut self, engine: Engine, args: &[Argument], line: Place) {
        let mut out = ReadFields::default();
        out.fields.set(Field::Kind, Kind::Serving, line);
        out.fields.set(Field::Framework, engine.framework(), line);
        if let Some((None, first)) = args.first() {
            super::tools::model(&mut out, first);
        }
        let mut settings = Node::new(Value::Map(Vec::new()), line);
        for (key, value) in args {
            match key {
                Some(k) if k == "model" || k == "model_path" => {
                    super::tools::model(&mut out, value);
                }
                Some(k) => settings.put(k, value.clone()),
                None => {}
            }
        }
        engine.keys(&settings, &mut out);
        engine.finish(&mut out);
        self.found.servers.push((engine, out));
    }

    /// Reads a command, given as a list of words or as one string.
    fn launch(&mut self, n: &Node) {
        let script = match &n.value {
            Value::List(words) => {
                let words: Vec<Text> = words.iter().map(|w| Text::new(&eval::shown(w), w.line)).collect();
                let shell =
                    words.first().is_some_and(|w| matches!(w.as_str(), "bash" | "sh" | "/bin/bash" | "/bin/sh"));
                match words.get(2).filter(|_| shell) {
                    Some(script) => script.clone(),
                    None => {
                        self.found.command(&Command { words, env: Vec::new(), line: n.line }, self.files);
                        return;
                    }
                }
            }
            Value::Str(s) => Text::new(s, n.line),
            _ => return,
        };
        let none = BTreeMap::new();
        let setup = shell::Setup { scripts: &[], env: &none, batch: &[], weak: &[], args: &[], every_branch: false };
        for command in &shell::read("", &script, &setup).commands {
            self.found.command(command, self.files);
        }
    }
}

/// Name and parameter list of the function that a statement defines.
fn defined(s: &[Token]) -> Option<(&str, &[Token])> {
    let is = |token: &Token, word: &str| matches!(&token.tok, TokenKind::Name(name) if name == word);
    let s = if s.first().is_some_and(|token| is(token, "async")) { s.get(1..)? } else { s };
    let [def, Token { tok: TokenKind::Name(name), .. }, parameters @ ..] = s else { return None };
    is(def, "def").then_some((name, parameters))
}

/// Whether a call configures a training run.
fn is_setup(name: &str) -> bool {
    matches!(
        name,
        "pretrain_recipe"
            | "finetune_recipe"
            | "TrainingArguments"
            | "Seq2SeqTrainingArguments"
            | "SFTConfig"
            | "DPOConfig"
            | "GRPOConfig"
            | "ORPOConfig"
            | "RewardConfig"
            | "MegatronStrategy"
            | "Trainer"
            | "SlurmExecutor"
            | "LocalExecutor"
            | "OptimizerConfig"
    ) || name.ends_with("DataModule")
        || name.ends_with("_mixed")
        || (name.ends_with("_config") && ["pretrain", "finetune", "sft"].iter().any(|w| name.contains(w)))
}

/// Index of the assignment operator in a statement, outside of all brackets.
fn assignment(s: &[Token]) -> Option<usize> {
    let mut depth = 0_i32;
    s.iter().position(|t| {
        depth += i32::from(["(", "[", "{"].iter().any(|o| t.is(o)));
        depth -= i32::from([")", "]", "}"].iter().any(|o| t.is(o)));
        depth == 0 && (t.is("=") || t.is("+="))
    })
}
