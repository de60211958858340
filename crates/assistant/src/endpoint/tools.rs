//! Tools for the model. They read and compute, and change nothing. Each works like the command line: documents,
//! scenario, estimate. Every result includes the command that reproduces it.

use atlas_catalog::software;
use atlas_plan::advice::{self, Objective};
use atlas_plan::estimate::{METRICS, Metric, MetricId};
use atlas_plan::explain;
use atlas_plan::knob::{self, KnobValues as _, Overrides};
use atlas_plan::search::optimize::MAX_CANDIDATES;
use atlas_plan::search::{Condition, Gauge, metric};
use serde::Deserialize;
use serde_json::{Value, json};

use super::message::{Call, Tool};
use crate::offline::{Case, Context, best, where_flags};

/// Maximum size of a result, bytes.
const MAX_RESULT_BYTES: usize = 24_000;
/// Maximum names or rows of a list.
const MAX_ROWS: usize = 60;
/// Maximum targets compared in one call.
const TARGETS: usize = 12;
/// Levels of a derivation.
const DEPTH: usize = 4;

/// Descriptions of all tools.
#[must_use]
pub fn tools() -> Vec<Tool> {
    let text = |what: &str| json!({"type": "string", "description": what});
    let texts = |what: &str| json!({"type": "array", "items": {"type": "string"}, "description": what});
    let target = || text("target, by name");
    let workload = || text("workload, by name");
    let set = || texts("knobs that override the files, as knob=value: tp=8, precision=fp8, num_nodes=4, hourly_usd=20");
    let object = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required});
    vec![
        Tool {
            name: "estimate",
            description: "All figures of a workload on a target, with 90 % intervals, whether it fits and what limits it.",
            parameters: object(json!({"target": target(), "workload": workload(), "set": set()}), &[]),
        },
        Tool {
            name: "compare",
            description: "The main figures of a workload on several targets with the same settings.",
            parameters: object(
                json!({"targets": texts("targets, by name"), "workload": workload(), "set": set()}),
                &["targets"],
            ),
        },
        Tool {
            name: "optimize",
            description: "The best layout of a workload on a target for an objective under constraints.",
            parameters: object(
                json!({
                    "target": target(),
                    "workload": workload(),
                    "set": set(),
                    "objective": text("figure to improve: throughput, cost, latency, energy, time-to-train, accelerators"),
                    "where": texts("constraints: tpot<=50ms, ttft<=2s, headroom>=10%, tp<=8"),
                }),
                &["objective"],
            ),
        },
        Tool {
            name: "explain",
            description: "The equation of a figure, its terms with values, and where its inputs are written.",
            parameters: object(
                json!({"metric": text("figure, by name: ttft_ms, tokens_per_sec, mfu"), "target": target(),
                       "workload": workload(), "set": set()}),
                &["metric"],
            ),
        },
        Tool {
            name: "advise",
            description: "Changes that improve throughput, latency or cost, or make a scenario fit, each estimated.",
            parameters: object(
                json!({"objective": text("throughput, latency or cost"), "target": target(), "workload": workload(),
                       "set": set()}),
                &[],
            ),
        },
        Tool {
            name: "list",
            description: "Names of targets, workloads, accelerators, models, software, knobs or figures.",
            parameters: object(
                json!({"what": text("targets, workloads, accelerators, models, software, knobs or figures"),
                       "words": texts("words that the listed entries must all contain")}),
                &["what"],
            ),
        },
    ]
}

/// Union of the arguments of all tools.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Arguments {
    target: Option<String>,
    targets: Vec<String>,
    workload: Option<String>,
    set: Vec<String>,
    objective: Option<String>,
    #[serde(rename = "where")]
    conditions: Vec<String>,
    metric: Option<String>,
    what: Option<String>,
    words: Vec<String>,
}

/// Executes tool calls on the user's files.
#[derive(Debug)]
pub struct Toolbox<'a> {
    /// Defaults for arguments that a call omits.
    pub context: &'a Context<'a>,
    /// Cancels searches.
    pub gauge: &'a Gauge,
}

impl Toolbox<'_> {
    /// Executes a call and returns JSON. A problem with the call is returned as the result, so that the model can
    /// correct it.
    #[must_use]
    pub fn call(&self, call: &Call) -> String {
        let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
        let answer = match serde_json::from_str::<Arguments>(text) {
            Ok(arguments) => self.run(&call.name, &arguments),
            Err(error) => Err(format!("the arguments cannot be read: {error}")),
        };
        let value = answer.unwrap_or_else(|trouble| json!({"error": trouble}));
        let text = value.to_string();
        if text.len() <= MAX_RESULT_BYTES {
            return text;
        }
        json!({"error": format!("the result has {} bytes, maximum {MAX_RESULT_BYTES}; request less", text.len())})
            .to_string()
    }

    fn run(&self, name: &str, arguments: &Arguments) -> Result<Value, String> {
        match name {
            "estimate" => self.estimate(arguments),
            "compare" => self.compare(arguments),
            "optimize" => self.optimize(arguments),
            "explain" => self.explain(arguments),
            "advise" => self.advise(arguments),
            "list" => self.list(arguments),
            other => {
                Err(format!("unknown tool `{other}`; known tools: estimate, compare, optimize, explain, advise, list"))
            }
        }
    }

    /// Scenario of a call; omitted arguments are taken from the context.
    fn case(&self, arguments: &Arguments, target: Option<&str>) -> Result<Case<'_>, String> {
        let context = self.context;
        let target = target.or(arguments.target.as_deref()).unwrap_or(&context.target);
        let workload = arguments.workload.as_deref().unwrap_or(&context.workload);
        // The context's overrides apply only to the context's own target and workload.
        let own = *target == *context.target && *workload == *context.workload;
        let mut overrides = if own { context.overrides.clone() } else { Overrides::new() };
        let found = Case::of(context, target, workload, Overrides::new()).map_err(|refusal| refusal.to_string())?;
        for text in &arguments.set {
            let (knob, value) = knob::assignment(text).map_err(|error| error.to_string())?;
            let setting = knob.parse(&value, found.parts.fabrics()).map_err(|error| error.to_string())?;
            overrides.insert(knob, setting);
        }
        Case::of(context, target, workload, overrides).map_err(|refusal| refusal.to_string())
    }

    fn estimate(&self, arguments: &Arguments) -> Result<Value, String> {
        let case = self.case(arguments, None)?;
        let limits = case.estimate.detail.as_ref().map(|detail| detail.limits.describe());
        Ok(json!({
            "about": case.about().line(),
            "fits": case.trouble().is_none(),
            "trouble": case.trouble(),
            "limits": limits,
            "figures": figures(&case, METRICS.iter()),
            "command": command("run", case.command_flags()),
        }))
    }

    fn compare(&self, arguments: &Arguments) -> Result<Value, String> {
        if arguments.targets.is_empty() || arguments.targets.len() > TARGETS {
            return Err(format!("expected 1 to {TARGETS} targets"));
        }
        let mut rows = serde_json::Map::new();
        for target in &arguments.targets {
            let row = match self.case(arguments, Some(target)) {
                Ok(case) => {
                    json!({"trouble": case.trouble(), "figures": figures(&case, Metric::headlines(case.mode()))})
                }
                Err(trouble) => json!({"error": trouble}),
            };
            rows.insert(target.clone(), row);
        }
        let workload = arguments.workload.as_deref().unwrap_or(&self.context.workload);
        let targets = arguments.targets.iter().flat_map(|target| ["--target".to_owned(), target.clone()]);
        let set = arguments.set.iter().flat_map(|setting| ["--set".to_owned(), setting.clone()]);
        let flags = ["--workload".to_owned(), workload.to_owned()].into_iter().chain(targets).chain(set);
        let flags = flags.chain(self.context.flags.iter().cloned()).collect();
        Ok(json!({"workload": workload, "targets": rows, "command": command("compare", flags)}))
    }

    fn optimize(&self, arguments: &Arguments) -> Result<Value, String> {
        let case = self.case(arguments, None)?;
        let name = arguments.objective.as_deref().unwrap_or("throughput");
        let objective = if name == "latency" && case.mode() == atlas_config::Mode::Training {
            MetricId::StepTimeMs.metric()
        } else {
            metric::named(name).ok_or_else(|| format!("no figure `{name}`"))?
        };
        let conditions =
            arguments.conditions.iter().map(|text| Condition::parse(text).map_err(|error| error.to_string()));
        let conditions: Vec<Condition> = conditions.collect::<Result<_, _>>()?;
        let found =
            best(&case, objective, &conditions, MAX_CANDIDATES, self.gauge).map_err(|refusal| refusal.to_string())?;
        let flags = where_flags(&case, objective, &conditions, &case.overrides);
        let Some(chosen) = &found.case else {
            return Ok(json!({"found": false, "command": command("optimize", flags)}));
        };
        Ok(json!({
            "about": chosen.about().line(),
            "keeps_all_constraints": found.meets_all(),
            "figures": figures(chosen, Metric::headlines(chosen.mode()).chain([objective])),
            "command": command("optimize", flags),
        }))
    }

    fn explain(&self, arguments: &Arguments) -> Result<Value, String> {
        let case = self.case(arguments, None)?;
        let name = arguments.metric.as_deref().ok_or("expected a metric")?;
        let metric = explain::metric(name, &case.scenario).map_err(|error| error.to_string())?;
        let tree = explain::explain(&case.scenario, &case.parts, &case.estimate, metric)
            .ok_or_else(|| metric.inapplicable(&case.scenario))?;
        let flags = case.command_flags();
        Ok(json!({
            "about": case.about().line(),
            "value": metric.show(tree.value),
            "derivation": term(&tree, DEPTH),
            "command": command(&format!("explain {}", metric.name), flags),
        }))
    }

    fn advise(&self, arguments: &Arguments) -> Result<Value, String> {
        let case = self.case(arguments, None)?;
        let name = arguments.objective.as_deref().unwrap_or("throughput");
        let objective = Objective::ALL.into_iter().find(|objective| objective.name() == name);
        let objective = objective.ok_or_else(|| format!("expected one of {}", Objective::NAMES.join(", ")))?;
        let fit = advice::fit::fit(&case.scenario, &case.parts, &case.estimate);
        let all = advice::advise(&case.scenario, &case.parts, &case.estimate, objective);
        let fixes = fit.as_ref().map(|fit| atlas_report::advice::rows(&fit.fixes));
        let flags = ["--objective".to_owned(), name.to_owned()].into_iter().chain(case.command_flags()).collect();
        Ok(json!({
            "about": case.about().line(),
            "trouble": case.trouble(),
            "fixes": fixes,
            "advice": atlas_report::advice::rows(&all),
            "command": command("advise", flags),
        }))
    }

    fn list(&self, arguments: &Arguments) -> Result<Value, String> {
        let library = self.context.library;
        let catalog = library.catalog();
        let names: Vec<String> = match arguments.what.as_deref().unwrap_or_default() {
            "targets" => library.targets().iter().map(|target| target.name.to_string()).collect(),
            "workloads" => library.workloads().iter().map(|workload| workload.name.to_string()).collect(),
            "accelerators" => catalog.accelerators().iter().map(|sheet| sheet.id.clone()).collect(),
            "models" => catalog.models().iter().map(|model| model.id.clone()).collect(),
            "software" => software::families().iter().map(|family| family.id.clone()).collect(),
            "knobs" => knob::KNOBS.iter().map(|spec| format!("{}: {}", spec.name, spec.help)).collect(),
            "figures" => METRICS.iter().map(|metric| format!("{}: {}", metric.name, metric.help)).collect(),
            other => {
                return Err(format!(
                    "found \"{other}\", expected targets, workloads, accelerators, models, software, knobs or figures"
                ));
            }
        };
        let words: Vec<String> = arguments.words.iter().map(|word| word.to_lowercase()).collect();
        let holds = |name: &&String| words.iter().all(|word| name.to_lowercase().contains(word));
        let all: Vec<&String> = names.iter().filter(holds).collect();
        let shown: Vec<&&String> = all.iter().take(MAX_ROWS).collect();
        Ok(json!({"count": all.len(), "names": shown}))
    }
}

fn command(name: &str, flags: Vec<String>) -> String {
    let flags: Vec<String> = flags.iter().map(|flag| atlas_core::escape::shell(flag)).collect();
    format!("atlas {name} {}", flags.join(" "))
}

/// Metrics with their values, texts and intervals.
fn figures<'m>(case: &Case<'_>, metrics: impl Iterator<Item = &'m Metric>) -> Value {
    let mut all = serde_json::Map::new();
    for metric in metrics {
        let Some(value) = case.value(metric).filter(|value| value.is_finite()) else { continue };
        let mut figure = json!({"value": value, "text": metric.show(value), "label": metric.label});
        if let (Some(interval), Some(object)) = (case.interval(metric), figure.as_object_mut()) {
            object.insert("interval_90".to_owned(), json!(interval));
        }
        all.insert(metric.name.to_owned(), figure);
    }
    Value::Object(all)
}

/// A term of a derivation, down to `depth` levels.
fn term(tree: &explain::Term, depth: usize) -> Value {
    let mut value = json!({"name": tree.name, "value": tree.shown()});
    if let Some(object) = value.as_object_mut() {
        if let (Some(symbols), Some(numbers)) = (tree.in_symbols(), tree.in_numbers()) {
            object.insert("equation".to_owned(), json!(format!("{symbols} = {numbers}")));
        }
        if let Some(origin) = &tree.origin {
            object.insert("origin".to_owned(), json!(origin.to_string()));
        }
        if depth > 0 && !tree.terms.is_empty() {
            object.insert("terms".to_owned(), tree.terms.iter().map(|below| term(below, depth - 1)).collect());
        }
    }
    value
}
