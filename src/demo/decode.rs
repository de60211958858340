//! Decodes YAML into a [`Demo`]. All diagnostics are collected, each with its position.

use std::sync::Arc;

use super::expect::Expect;
use super::script::{Action, Demo, Pane, Reset, SLA_P99_MS, Step};
use atlas_catalog::shipped::Text;
use atlas_document::decode::{Bounds, Fields};
use atlas_document::suggestion::did_you_mean;
use atlas_document::{Diagnostic, Diagnostics, Node, Origin, Position, Severity, Value};
use atlas_plan::knob::{Knob, KnobValues as _, ValueType};

impl Demo {
    /// Decodes a script. Diagnostics are pushed to `diagnostics`; returns `None` if one of them is an error.
    #[must_use]
    pub fn read(file: &Arc<str>, text: &Text, diagnostics: &mut Diagnostics) -> Option<Demo> {
        let before = diagnostics.errors();
        let root = text.tree(file, diagnostics)?;
        let demo = Demo::decode(file, &root, diagnostics);
        demo.filter(|_| diagnostics.errors() == before)
    }

    fn decode(file: &Arc<str>, node: &Node, diagnostics: &mut Diagnostics) -> Option<Demo> {
        let label = node.get("name").and_then(Node::text).unwrap_or("demo").to_owned();
        let mut fields = Fields::open(file, label.clone(), node, diagnostics)?;
        let name = fields.required_text("name");
        let title = fields.required_text("title");
        let description = fields.text("description").map(|text| fold(&text));
        let order = fields.number("order", Bounds::POSITIVE);
        let section = fields.text("section");
        let own_files = fields.boolean("own_files").unwrap_or_default();
        let targets = names(&mut fields, "targets");
        let workload = fields.required_text("workload");
        let sla = fields.number("sla_p99_ms", Bounds::POSITIVE);
        if fields.node("steps").is_none() {
            fields.missing("steps");
        }
        let at = fields.at();
        fields.finish();
        let steps = written(node, "steps").map(|steps| Reader { file, diagnostics }.steps(&label, steps));
        Some(Demo {
            name: name?.into(),
            title: title?,
            description,
            order: order.unwrap_or(f64::MAX),
            section,
            own_files,
            targets: targets?,
            workload: workload?.into(),
            sla_p99_ms: sla.unwrap_or(SLA_P99_MS),
            steps: steps?,
            origin: Origin { file: Arc::clone(file), at },
        })
    }
}

/// Returns the list under `key`, which is required and must not be empty.
fn names(fields: &mut Fields<'_>, key: &'static str) -> Option<Vec<Arc<str>>> {
    let listed = fields.texts(key);
    if listed.is_empty() {
        fields.missing(key);
        return None;
    }
    Some(listed.into_iter().map(Into::into).collect())
}

/// Folds white space, because narration is wrapped to the width of the screen.
fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

struct Reader<'a> {
    file: &'a Arc<str>,
    diagnostics: &'a mut Diagnostics,
}

impl Reader<'_> {
    fn error(&mut self, at: Position, path: &str, message: String, help: Option<String>) {
        let file = Arc::clone(self.file);
        self.diagnostics.push(Diagnostic { severity: Severity::Error, file, at, path: path.to_owned(), message, help });
    }

    /// Returns the items of a list, or reports an error and returns no items if `node` is not a list.
    fn items<'n>(&mut self, path: &str, node: &'n Node, of: &str) -> &'n [Node] {
        match node.items() {
            Some(items) => items,
            None => {
                self.error(node.at, path, format!("found {}, expected a list of {of}", node.describe()), None);
                &[]
            }
        }
    }

    fn steps(&mut self, label: &str, node: &Node) -> Vec<Step> {
        let path = format!("{label}.steps");
        let items = self.items(&path, node, "steps");
        if node.items().is_some_and(<[Node]>::is_empty) {
            self.error(node.at, &path, "found no steps, expected at least one".to_owned(), None);
        }
        items.iter().enumerate().filter_map(|(i, item)| self.step(&format!("{path}[{}]", i + 1), item)).collect()
    }

    fn step(&mut self, path: &str, node: &Node) -> Option<Step> {
        let mut fields = Fields::open(self.file, path, node, self.diagnostics)?;
        let title = fields.required_text("title");
        let say = fields.required_text("say");
        for read_below in ["do", "expect"] {
            fields.node(read_below);
        }
        fields.finish();
        for name in say.as_deref().map(super::narration::unknown).unwrap_or_default() {
            let message = format!("say: found `{{{name}}}`, expected a metric in braces, such as {{tpot_ms}}");
            self.error(node.at, path, message, None);
        }
        let actions = written(node, "do").map(|list| self.actions(&format!("{path}.do"), list));
        let expects = written(node, "expect").map(|list| self.expects(&format!("{path}.expect"), list));
        Some(Step {
            title: title?,
            say: fold(&say?),
            actions: actions.unwrap_or_default(),
            expects: expects.unwrap_or_default(),
            at: node.at,
        })
    }

    fn expects(&mut self, path: &str, node: &Node) -> Vec<Expect> {
        let mut expects = Vec::new();
        for (i, item) in self.items(path, node, "conditions").iter().enumerate() {
            let path = format!("{path}[{}]", i + 1);
            let Some(text) = item.text() else {
                let message = format!("found {}, expected a condition such as tokens_per_sec > 2000", item.describe());
                self.error(item.at, &path, message, None);
                continue;
            };
            match Expect::read(text, item.at) {
                Ok(expect) => expects.push(expect),
                Err(problem) => self.error(item.at, &path, problem.message, problem.help),
            }
        }
        expects
    }

    fn actions(&mut self, path: &str, node: &Node) -> Vec<Action> {
        let mut actions = Vec::new();
        for (i, item) in self.items(path, node, "actions").iter().enumerate() {
            let path = format!("{path}[{}]", i + 1);
            let Some([entry]) = item.entries() else {
                let message = format!("found {}, expected one action, such as `view: compare`", item.describe());
                self.error(item.at, &path, message, None);
                continue;
            };
            let path = format!("{path}.{}", entry.key);
            self.action(&path, &entry.key, entry.key_at, &entry.value, &mut actions);
        }
        actions
    }

    fn action(&mut self, path: &str, verb: &str, verb_at: Position, value: &Node, actions: &mut Vec<Action>) {
        const VERBS: [&str; 9] =
            ["select_target", "select_workload", "set", "reset", "view", "mark", "unmark", "baseline", "focus"];
        let action = match verb {
            "select_target" => self.name(path, value).map(Action::SelectTarget),
            "select_workload" => self.name(path, value).map(Action::SelectWorkload),
            "set" => return self.set(path, value, actions),
            "reset" if value.text() == Some("all") => Some(Action::Reset(Reset::All)),
            "reset" => self.knobs(path, value).map(|knobs| Action::Reset(Reset::Knobs(knobs))),
            "view" => self.word(path, value, &Action::screens()),
            "mark" => self.list(path, value).map(Action::Mark),
            "unmark" => self.list(path, value).map(Action::Unmark),
            "baseline" => self.word(path, value, &[("here", Action::SetBaseline), ("clear", Action::ClearBaseline)]),
            "focus" => self.word(path, value, &Pane::NAMES).map(Action::Focus),
            unknown => {
                let help = did_you_mean(unknown, VERBS);
                let message = format!("found the action `{unknown}`, expected one of {}", VERBS.join(", "));
                return self.error(verb_at, path, message, help);
            }
        };
        actions.extend(action);
    }

    fn name(&mut self, path: &str, value: &Node) -> Option<Arc<str>> {
        let name = scalar(value);
        if name.is_none() {
            self.error(value.at, path, format!("found {}, expected a name", value.describe()), None);
        }
        name.map(Into::into)
    }

    /// A name, or a list of them.
    fn list(&mut self, path: &str, value: &Node) -> Option<Vec<Arc<str>>> {
        let items = value.items().unwrap_or(std::slice::from_ref(value));
        items.iter().map(|item| self.name(path, item)).collect()
    }

    fn word<T: Clone>(&mut self, path: &str, value: &Node, words: &[(&str, T)]) -> Option<T> {
        if let Some((_, meant)) = words.iter().find(|(word, _)| value.text() == Some(word)) {
            return Some(meant.clone());
        }
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let help = value.text().and_then(|text| did_you_mean(text, names.iter().copied()));
        let message = format!("found {}, expected one of {}", value.describe(), names.join(", "));
        self.error(value.at, path, message, help);
        None
    }

    fn knob(&mut self, path: &str, name: &str, at: Position) -> Option<Knob> {
        Knob::named(name).map_err(|error| self.error(at, path, error.to_string(), None)).ok()
    }

    fn knobs(&mut self, path: &str, value: &Node) -> Option<Vec<Knob>> {
        let names = self.list(path, value)?;
        names.iter().map(|name| self.knob(path, name, value.at)).collect()
    }

    /// Decodes `set: {knob: value, …}` into one action per knob. Values that do not depend on the profile are validated
    /// here.
    fn set(&mut self, path: &str, value: &Node, actions: &mut Vec<Action>) {
        let Some(entries) = value.entries().filter(|entries| !entries.is_empty()) else {
            let message = format!("found {}, expected knobs and their values, as in {{ tp: 4 }}", value.describe());
            return self.error(value.at, path, message, None);
        };
        for entry in entries {
            let Some(knob) = self.knob(path, &entry.key, entry.key_at) else { continue };
            let Some(text) = scalar(&entry.value) else {
                let message = format!("{}: found {}, expected a value", entry.key, entry.value.describe());
                self.error(entry.value.at, path, message, None);
                continue;
            };
            if knob.spec().kind != ValueType::Fabric
                && let Err(error) = knob.parse(&text, &[])
            {
                self.error(entry.value.at, path, error.to_string(), None);
                continue;
            }
            actions.push(Action::Set(knob, text));
        }
    }
}

/// The value under `key`; `null` counts as absent.
fn written<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    node.get(key).filter(|value| !value.is_null())
}

/// A scalar as it was written; `None` for `null`, lists and mappings.
fn scalar(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.to_string()),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => Some(node.describe()),
        Value::Null | Value::List(_) | Value::Map(_) => None,
    }
}
