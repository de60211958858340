//! A question as typed values, and its text form, which parses to the same question.

use atlas_core::time_unit::TimeUnit;
use std::fmt;

use super::ParseError;
use crate::{Known, KnownTarget, KnownWorkload, Objective};
use atlas_config::Mode;
use atlas_plan::estimate::metric::Format;
use atlas_plan::estimate::{Direction, Metric, MetricId};
use atlas_plan::knob::{Knob, Setting};
use atlas_plan::search::condition::Relation;
use atlas_plan::search::optimize::{HEADROOM, TPOT_MS, TTFT_MS};
use atlas_plan::search::{Condition, metric};

/// Hardware in a question: part of a target's name, with the number of accelerators if given.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hardware {
    /// Number of accelerators.
    pub count: Option<u32>,
    /// Part of the name in lower case. With a trailing `*`, all matching targets are meant.
    pub name: String,
}

/// A parsed line of the query grammar.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Question {
    /// Training or serving.
    pub mode: Option<Mode>,
    /// Parts of the name of a workload, or of a model of the catalog.
    pub model: Vec<String>,
    /// Objective.
    pub objective: Option<Objective>,
    /// Constraints.
    pub constraints: Vec<Condition>,
    /// Changed knobs.
    pub settings: Vec<(Knob, Setting)>,
    /// Training tokens.
    pub tokens: Option<f64>,
    /// Hardware; if empty, the marked targets.
    pub hardware: Vec<Hardware>,
}

/// Action that a line calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// Nothing.
    Nothing,
    /// Change knobs.
    Set,
    /// Select a target or a workload.
    Jump,
    /// Compare targets, each with its best settings.
    Race,
}

impl Question {
    /// The default question: the lowest cost within the default bounds of a search.
    #[must_use]
    pub fn default_for(mode: Mode) -> Question {
        let bound = |id: MetricId, relation, value| Condition::Metric(id.metric(), relation, value);
        let mut constraints = match mode {
            Mode::Inference => vec![
                bound(MetricId::TpotMs, Relation::Below, TPOT_MS),
                bound(MetricId::TtftMs, Relation::Below, TTFT_MS),
            ],
            Mode::Training => Vec::new(),
        };
        constraints.push(bound(MetricId::Headroom, Relation::AtLeast, HEADROOM));
        Question { objective: Some(Objective::Cheapest), constraints, ..Question::default() }
    }

    /// Action that the question calls for.
    #[must_use]
    pub fn intent(&self) -> Intent {
        if self.objective.is_some() || !self.constraints.is_empty() || self.hardware.len() > 1 {
            Intent::Race
        } else if self.mode.is_some() || !self.model.is_empty() || !self.hardware.is_empty() {
            Intent::Jump
        } else if !self.settings.is_empty() || self.tokens.is_some() {
            Intent::Set
        } else {
            Intent::Nothing
        }
    }

    /// Workload of the question; `None` if it names none.
    ///
    /// # Errors
    /// No workload's name contains all the words.
    pub fn workload<'k>(&self, known: &'k Known) -> Result<Option<&'k KnownWorkload>, ParseError> {
        if self.model.is_empty() {
            return Ok(None);
        }
        let found = known.workload_of(&self.model, self.mode);
        found.map(Some).ok_or_else(|| ParseError::no_workload(&self.model, self.mode, known))
    }

    /// Targets of the question, each with the number of nodes if it differs from the target's own; empty if it names
    /// none.
    ///
    /// # Errors
    /// No target has that name, or none can have this number of accelerators.
    pub fn targets<'k>(&self, known: &'k Known) -> Result<Vec<(&'k KnownTarget, Option<u32>)>, ParseError> {
        let mut chosen: Vec<(&KnownTarget, Option<u32>)> = Vec::new();
        for hardware in &self.hardware {
            let mut found: Vec<(&KnownTarget, Option<u32>)> = Vec::new();
            let all = || known.targets_of(&hardware.name);
            match hardware.count {
                None if hardware.name.ends_with('*') => found.extend(all().map(|target| (target, None))),
                None => found.extend(all().next().map(|target| (target, None))),
                // Accelerators of any kind: all targets with this number of them.
                Some(count) if hardware.name == "*" => {
                    let of_size = |target: &&KnownTarget| target.per_node.saturating_mul(target.nodes) == count;
                    found.extend(all().filter(of_size).map(|target| (target, None)));
                }
                Some(count) => {
                    let exactly = all().find(|target| target.per_node.saturating_mul(target.nodes) == count);
                    let nodes = |target: &KnownTarget| {
                        let whole = target.per_node > 0 && count > 0 && count % target.per_node == 0;
                        whole.then(|| count / target.per_node)
                    };
                    let other = || all().find_map(|target| Some((target, Some(nodes(target)?))));
                    found.extend(exactly.map(|target| (target, None)).or_else(other));
                }
            }
            if found.is_empty() {
                return Err(ParseError::no_target(hardware, known));
            }
            for one in found {
                if !chosen.contains(&one) {
                    chosen.push(one);
                }
            }
        }
        Ok(chosen)
    }

    /// Objective, constraints and hardware only, as shown in the constraint bar.
    #[must_use]
    pub fn goal(&self) -> Question {
        Question {
            objective: self.objective,
            constraints: self.constraints.clone(),
            hardware: self.hardware.clone(),
            ..Question::default()
        }
    }
}

impl fmt::Display for Hardware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            Some(count) if self.name == "*" => write!(f, "{count} gpus"),
            Some(count) => write!(f, "{count} {}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = self.mode.map(|mode| match mode {
            Mode::Training => "train".to_owned(),
            Mode::Inference => "serve".to_owned(),
        });
        let tokens = self.tokens.map(|tokens| format!("{} tokens", count(tokens)));
        let objective = self.objective.map(|objective| objective.word().to_owned());
        let constraints = self.constraints.iter().map(constraint);
        let settings = self.settings.iter().map(|(knob, setting)| format!("{}={setting}", knob.name()));
        let names: Vec<String> = self.hardware.iter().map(ToString::to_string).collect();
        let hardware = (!names.is_empty()).then(|| format!("on {}", names.join(", ")));
        let before = mode.into_iter().chain(self.model.iter().cloned()).chain(tokens).chain(objective);
        let all: Vec<String> = before.chain(constraints).chain(settings).chain(hardware).collect();
        f.write_str(&all.join(" "))
    }
}

/// A constraint in the query grammar: `tpot<50ms`, `10% free`.
fn constraint(condition: &Condition) -> String {
    match condition {
        Condition::Fits => "fits".to_owned(),
        Condition::Metric(metric, Relation::AtLeast, share)
            if metric.id == MetricId::Headroom && parses_to(condition, &percent(*share)) =>
        {
            format!("{} free", percent(*share))
        }
        Condition::Metric(metric, relation, bound) => {
            format!("{}{}{}", shortest_name(metric), sign(*relation), quantity(condition, metric, *bound))
        }
        Condition::Knob(knob, relation, bound) => format!("{}{}{bound}", knob.name(), sign(*relation)),
    }
}

/// A constraint as an argument for `--where`.
pub(crate) fn constraint_as_condition(condition: &Condition) -> String {
    match condition {
        Condition::Metric(metric, relation, bound) => {
            format!("{}{}{}", metric.name, sign(*relation), quantity(condition, metric, *bound))
        }
        Condition::Fits | Condition::Knob(..) => constraint(condition),
    }
}

/// Shortest name that is resolved to a metric.
fn shortest_name(metric: &'static Metric) -> &'static str {
    if metric.id == MetricId::DollarPer1mTokens {
        return "$/1M";
    }
    let without = |end: &str| metric.name.strip_suffix(end).filter(|name| metric::named(name) == Some(metric));
    ["_ms", "_h", "_w"].into_iter().find_map(without).unwrap_or(metric.name)
}

fn sign(relation: Relation) -> &'static str {
    match relation {
        Relation::AtMost => "<=",
        Relation::AtLeast => ">=",
        Relation::Below => "<",
        Relation::Above => ">",
        Relation::Equal => "==",
        Relation::Different => "!=",
    }
}

fn percent(share: f64) -> String {
    // Rounded to a reasonable number of digits, and used only if it parses to the same value.
    format!("{}%", (share * 1e6).round() / 1e4)
}

/// The bound in the largest unit that expresses it exactly and in few digits.
fn quantity(condition: &Condition, metric: &Metric, bound: f64) -> String {
    use TimeUnit::{Day, Hour, Millisecond, Minute, Second};
    let units: &[(&str, f64)] = match metric.format {
        Format::Duration => &[Day, Hour, Minute, Second, Millisecond].map(|unit| (unit.symbol(), unit.milliseconds())),
        Format::Hours => &[Day, Hour].map(|unit| (unit.symbol(), unit.hours())),
        Format::Energy => &[("GWh", 1e6), ("MWh", 1e3), ("kWh", 1.0)],
        Format::Mass => &[("t", 1e3), ("kg", 1.0)],
        Format::Percent => &[("%", 0.01)],
        Format::Usd => &[("M", 1e6), ("k", 1e3)],
        Format::Si | Format::Count => &[("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)],
    };
    let in_unit = |(unit, scale): &(&str, f64)| {
        let value = bound / scale;
        let text = format!("{value}{unit}");
        (value.abs() >= 1.0 && text.len() <= 8 && parses_to(condition, &text)).then_some(text)
    };
    let currency = if metric.format == Format::Usd { "$" } else { "" };
    let text = units.iter().find_map(in_unit).unwrap_or_else(|| format!("{bound}"));
    format!("{currency}{text}")
}

/// Whether a text parses to the bound of a condition.
fn parses_to(condition: &Condition, text: &str) -> bool {
    let Condition::Metric(metric, relation, _) = condition else { return false };
    Condition::on(metric, &format!("{}{text}", sign(*relation))).as_ref() == Ok(condition)
}

/// A number of tokens in the largest unit that expresses it exactly.
fn count(tokens: f64) -> String {
    let units = [("T", 1e12), ("B", 1e9), ("M", 1e6), ("k", 1e3)];
    let fits = |(unit, scale): &(&str, f64)| {
        let text = format!("{}{unit}", tokens / scale);
        (tokens >= *scale && text.len() <= 8 && super::tokens(&text) == Some(tokens)).then_some(text)
    };
    units.iter().find_map(fits).unwrap_or_else(|| tokens.to_string())
}

/// Relation of a bound without a sign: an upper bound if lower is better.
#[must_use]
pub(crate) fn default_relation(metric: &Metric) -> Relation {
    if metric.better == Direction::Higher { Relation::AtLeast } else { Relation::AtMost }
}
