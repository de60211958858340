//! Decoding of a line's parts: looks up names, decodes objects, and applies knobs and seed on top of the command
//! line's.

use super::Options;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::super::args::KnobArgs;
use super::super::output::write_stderr;
use super::line::Line;
use atlas_config::library::Library;
use atlas_document::{Diagnostic, Diagnostics, Node, Severity};
use atlas_plan::knob::{Knob, KnobValues as _, Overrides};

/// State shared by all workers.
pub(super) struct Context {
    /// Library in which names are looked up.
    pub(super) library: Library,
    /// Knobs of the command line, which the knobs of a line override; `None` without any.
    knobs: Option<KnobArgs>,
    /// If set, lines are optimized under this p99 latency.
    pub(super) sla_p99_ms: Option<f64>,
    /// Whether answers include the measured rows that support them.
    pub(super) evidence: bool,
    /// Messages that have been printed.
    warned: Mutex<BTreeSet<String>>,
}

/// Maximum warnings printed; then one message announces that there are more.
const MAX_WARNINGS: usize = 20;

impl Context {
    pub(super) fn new(library: Library, options: Options) -> Context {
        let Options { knobs, sla_p99_ms, evidence } = options;
        let any = knobs.overrides(&[]).map_or(true, |overrides| !overrides.is_empty());
        Context { library, knobs: any.then_some(knobs), sla_p99_ms, evidence, warned: Mutex::default() }
    }

    /// Prints a warning to stderr, once per message text.
    pub(super) fn warn(&self, number: u64, message: String) {
        let Ok(mut warned) = self.warned.lock() else { return };
        if warned.len() > MAX_WARNINGS || warned.contains(&message) {
            return;
        }
        if warned.len() == MAX_WARNINGS {
            write_stderr("further warnings are suppressed");
        } else {
            write_stderr(&format!("line {number}: {message}"));
        }
        warned.insert(message);
    }
}

/// Looks up a name or decodes an object.
pub(super) fn decode<T>(
    context: &Context,
    number: u64,
    kind: &str,
    text: &str,
    named: impl FnOnce(&str) -> Result<Arc<T>, Diagnostic>,
    inline: impl FnOnce(&Arc<str>, &Node, &mut Diagnostics) -> Option<T>,
) -> Result<Arc<T>, String> {
    let node: Node = serde_json::from_str(text).map_err(|error| format!("{kind}: {error}"))?;
    if let Some(name) = node.text() {
        return named(name).map_err(|problem| explain(&problem));
    }
    let mut problems = Diagnostics::new();
    let decoded = inline(&kind.into(), &node, &mut problems);
    for problem in problems.iter().filter(|problem| problem.severity == Severity::Warning) {
        context.warn(number, problem.to_string());
    }
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    let errors: Vec<String> = errors.map(|problem| format!("{kind}: {}", explain(problem))).collect();
    match decoded {
        Some(decoded) if errors.is_empty() => Ok(Arc::new(decoded)),
        _ => Err(errors.join("; ")),
    }
}

/// Formats a diagnostic without its file name, since the text is not from a file.
pub(super) fn explain(problem: &Diagnostic) -> String {
    let path = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
    let help = problem.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
    format!("{path}{}{help}", problem.message)
}

/// Combines the knobs of the command line, the knobs of the line, and its seed. Without `fabrics`, the fabric knob is
/// skipped.
pub(super) fn read_knobs(
    context: &Context,
    line: &Line<'_>,
    fabrics: Option<&[(Arc<str>, f64)]>,
) -> Result<Overrides, String> {
    let mut overrides = Overrides::new();
    let mut problems = Vec::new();
    if let Some(knobs) = &context.knobs
        && let Err(failure) = knobs.apply_to(&mut overrides, fabrics)
    {
        problems.push(failure.to_string());
    }
    if let Some(text) = line.part("knobs") {
        match serde_json::from_str::<Node>(text) {
            Ok(node) => match node.entries() {
                Some(entries) => {
                    for entry in entries.iter().filter(|entry| !entry.value.is_null()) {
                        let knob = Knob::named(&entry.key);
                        if fabrics.is_none() && knob == Ok(Knob::Fabric) {
                            continue;
                        }
                        match knob.and_then(|knob| Ok((knob, knob.read(&entry.value, fabrics.unwrap_or_default())?))) {
                            Ok((knob, setting)) => drop(overrides.insert(knob, setting)),
                            Err(error) => problems.push(format!("knobs: {error}")),
                        }
                    }
                }
                None => problems.push(format!("knobs: found {}, expected an object", node.describe())),
            },
            Err(error) => problems.push(format!("knobs: {error}")),
        }
    }
    if let Some(text) = line.part("seed") {
        // The text is parsed rather than a number, since seeds may exceed JSON numbers. 1337.0 and "1337" are accepted,
        // too.
        let clean = text.trim_matches('"').trim();
        match Knob::Seed.parse(clean.strip_suffix(".0").unwrap_or(clean), &[]) {
            Ok(seed) => drop(overrides.insert(Knob::Seed, seed)),
            Err(error) => problems.push(error.to_string()),
        }
    }
    if problems.is_empty() { Ok(overrides) } else { Err(problems.join("; ")) }
}
