//! Objective, search space and constraints of a search: flags shared by several subcommands.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::failure::Failure;
use atlas_config::Mode;
use atlas_plan::estimate::{METRICS, Metric, MetricId};
use atlas_plan::knob::{Knob, KnobValues as _, Overrides};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::optimize::MAX_CANDIDATES;
use atlas_plan::search::{Axis, Condition, Methodology, Problem, Space, metric};

/// Objective, search space and constraints.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Search")]
pub struct Goal {
    /// Objective: throughput, cost, latency, energy, time-to-train, accelerators, or any metric [default: throughput]
    #[arg(long, value_name = "METRIC")]
    pub objective: Option<String>,
    /// Search these values of a knob instead of the default search space; repeatable
    #[arg(long, value_name = "KNOB=VALUES")]
    pub over: Vec<String>,
    /// Exclude a knob from the search; repeatable
    #[arg(long, value_name = "KNOB", value_delimiter = ',')]
    pub keep: Vec<String>,
    /// Constraint, such as 'headroom>=10%' or 'tp<=8'; repeatable
    #[arg(long = "where", value_name = "CONDITION")]
    pub conditions: Vec<String>,
    /// Maximum mean time to first token, ms, or none [default: the workload's, else 2000 for serving under load]
    #[arg(long, allow_negative_numbers = true, value_name = "MS")]
    pub ttft: Option<String>,
    /// Maximum mean time per output token, ms, or none [default: the workload's, else 50 for serving under load]
    #[arg(long, allow_negative_numbers = true, value_name = "MS")]
    pub tpot: Option<String>,
    /// Minimum share of memory to keep free, such as 10%, or none [default: 5%]
    #[arg(long, allow_negative_numbers = true, value_name = "SHARE")]
    pub headroom: Option<String>,
    /// Maximum cost of all nodes, USD per hour
    #[arg(long, allow_negative_numbers = true, value_name = "USD")]
    pub budget_per_hour: Option<String>,
    /// Maximum cost per million tokens, USD
    #[arg(long, allow_negative_numbers = true, value_name = "USD")]
    pub budget_per_1m: Option<String>,
    /// Maximum power of all nodes, W
    #[arg(long, allow_negative_numbers = true, value_name = "W")]
    pub power_cap: Option<String>,
    /// Allow layouts that leave accelerators idle
    #[arg(long)]
    pub allow_idle: bool,
    /// Two or three metrics whose Pareto frontier to show
    #[arg(long, value_name = "METRICS", value_delimiter = ',')]
    pub front: Vec<String>,
    /// Number of runners-up to show [default: 5]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Maximum number of candidates; larger spaces use local search [default: 20000000]
    #[arg(long, alias = "most", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_candidates: Option<u64>,
}

impl Goal {
    /// Flags that were given, so that commands that do not search can reject them.
    #[must_use]
    pub fn given_flags(&self) -> Vec<&'static str> {
        let given = [
            ("--objective", self.objective.is_some()),
            ("--over", !self.over.is_empty()),
            ("--keep", !self.keep.is_empty()),
            ("--where", !self.conditions.is_empty()),
            ("--ttft", self.ttft.is_some()),
            ("--tpot", self.tpot.is_some()),
            ("--headroom", self.headroom.is_some()),
            ("--budget-per-hour", self.budget_per_hour.is_some()),
            ("--budget-per-1m", self.budget_per_1m.is_some()),
            ("--power-cap", self.power_cap.is_some()),
            ("--allow-idle", self.allow_idle),
            ("--front", !self.front.is_empty()),
            ("--top", self.top.is_some()),
            ("--max-candidates", self.max_candidates.is_some()),
        ];
        given.iter().filter(|(_, given)| *given).map(|(flag, _)| *flag).collect()
    }

    /// Rejects search flags if none of the methodologies searches, and flags for candidate lists, since only the best
    /// is used.
    pub fn check_allowed(&self, methodologies: &[Methodology]) -> Result<(), Failure> {
        let (lists, search): (Vec<&str>, Vec<&str>) =
            self.given_flags().into_iter().partition(|flag| ["--front", "--top"].contains(flag));
        let mut problems = Vec::new();
        if !search.is_empty() && !methodologies.contains(&Methodology::MaximumPerformance) {
            problems.push(format!("{} requires --methodology maximum-performance", search.join(", ")));
        }
        if !lists.is_empty() {
            problems.push(format!("{} is supported only by `atlas optimize`", lists.join(", ")));
        }
        if problems.is_empty() { Ok(()) } else { Err(Failure::usage(problems)) }
    }

    /// Whether `--over` has an axis for the knob.
    #[must_use]
    pub fn has_axis(&self, knob: Knob) -> bool {
        let names = self.over.iter().filter_map(|text| text.split('=').next());
        names.into_iter().any(|name| Knob::named(name) == Ok(knob))
    }

    /// All conditions, those of the flags first.
    pub fn conditions(&self, sla: Option<f64>) -> Result<Vec<Condition>, Vec<String>> {
        let sla = sla.map(|sla| sla.to_string());
        let flags = [
            ("--sla", "p99<=", &sla),
            ("--ttft", "ttft<=", &self.ttft),
            ("--tpot", "tpot<=", &self.tpot),
            ("--headroom", "headroom>=", &self.headroom),
            ("--budget-per-hour", "usd_per_hour<=", &self.budget_per_hour),
            ("--budget-per-1m", "usd_per_1m_tokens<=", &self.budget_per_1m),
            ("--power-cap", "power<=", &self.power_cap),
        ];
        let stated = |bound: &&String| !is_none(bound);
        let flags = flags.iter().filter_map(|(flag, relation, bound)| {
            Some((*flag, format!("{relation}{}", bound.as_ref().filter(stated)?)))
        });
        let conditions_of_flags = self.conditions.iter().map(|text| ("--where", text.clone()));
        let mut conditions = Vec::new();
        let mut problems = Vec::new();
        for (flag, text) in flags.chain(conditions_of_flags) {
            match Condition::parse(&text) {
                Ok(Condition::Metric(_, _, bound)) if bound < 0.0 && flag != "--where" => {
                    problems.push(format!("{flag}: found {bound}, expected a number from 0"));
                }
                Ok(condition) => conditions.push(condition),
                Err(error) => problems.push(format!("{flag}: {error}")),
            }
        }
        if problems.is_empty() { Ok(conditions) } else { Err(problems) }
    }

    /// Metrics whose default bound `none` removes.
    fn unbounded(&self) -> Vec<MetricId> {
        let flags =
            [(MetricId::TtftMs, &self.ttft), (MetricId::TpotMs, &self.tpot), (MetricId::Headroom, &self.headroom)];
        let free = flags.iter().filter(|(_, bound)| bound.as_ref().is_some_and(|bound| is_none(bound)));
        free.map(|(id, _)| *id).collect()
    }

    /// Builds the search problem of these flags for the scenario `requested`, starting at `start`. The error lists all
    /// invalid flags.
    pub fn problem<'p>(
        &self,
        requested: &'p Scenario,
        start: &'p Scenario,
        parts: &'p Parts,
        held: &Overrides,
        sla: Option<f64>,
    ) -> Result<Problem<'p>, Failure> {
        let mut problems = Vec::new();
        let objective = objective(self.objective.as_deref().unwrap_or("throughput"), start);
        let objective = objective.map_err(|problem| problems.push(format!("--objective: {problem}"))).ok();
        let mut problem =
            Problem::of(start, parts, objective.unwrap_or(MetricId::Accelerators.metric())).from(requested);
        let mut keep: Vec<Knob> = held.keys().copied().collect();
        for name in &self.keep {
            match Knob::named(name) {
                Ok(knob) => keep.push(knob),
                Err(error) => problems.push(format!("--keep: {error}")),
            }
        }
        let mut axes: Vec<Axis> = Vec::new();
        for text in &self.over {
            match Axis::parse(text, start, parts.fabrics()) {
                Ok(axis) if !start.offers(axis.knob) => {
                    problems.push(format!("--over: {}", start.ineffective_message(axis.knob)))
                }
                Ok(axis) => axes.push(axis),
                Err(error) => problems.push(format!("--over: {error}")),
            }
        }
        if self.over.is_empty() {
            axes = problem.space.axes().iter().filter(|axis| !keep.contains(&axis.knob)).cloned().collect();
        }
        match Space::of(axes) {
            Ok(space) => problem.space = space,
            Err(error) => problems.push(format!("--over: {error}")),
        }
        match self.conditions(sla.filter(|_| start.mode() == Mode::Inference)) {
            Ok(conditions) => problem.conditions = conditions,
            Err(found) => problems.extend(found),
        }
        for condition in &problem.conditions {
            if let Condition::Metric(metric, ..) = condition
                && !metric.applies_to(start)
            {
                problems.push(format!("{condition}: {}", metric.inapplicable(start)));
            }
        }
        if !self.front.is_empty() {
            problem.front.clear();
            for name in &self.front {
                match figure_of(name, start) {
                    Ok(metric) if problem.front.contains(&metric) => {
                        problems.push(format!("--front: {} is named twice", metric.name));
                    }
                    Ok(metric) => problem.front.push(metric),
                    Err(error) => problems.push(format!("--front: {error}")),
                }
            }
            if problem.front.len() != self.front.len() || !(2..=3).contains(&self.front.len()) {
                problems.push("--front: expected two or three metrics".to_owned());
            }
        }
        problem.idle |= self.allow_idle;
        problem.runners_up = self.top.unwrap_or(problem.runners_up).min(1000);
        problem.max_candidates = self.max_candidates.unwrap_or(MAX_CANDIDATES);
        if problems.is_empty() {
            Ok(problem.with_default_conditions(&self.unbounded()))
        } else {
            Err(Failure::usage(problems))
        }
    }
}

/// Whether the flag's value removes a bound.
fn is_none(bound: &str) -> bool {
    bound.trim().eq_ignore_ascii_case("none")
}

/// Metric by its full or short name, or by its label in the TUI.
///
/// # Errors
/// The metric is unknown; the message suggests the most similar one.
pub fn metric(text: &str) -> Result<&'static Metric, String> {
    let labeled = || METRICS.iter().find(|metric| metric.label.eq_ignore_ascii_case(text.trim()));
    metric::named(text).or_else(labeled).ok_or_else(|| metric::unknown(text))
}

/// Parser of `--methodology`.
pub fn methodology() -> impl TypedValueParser<Value = Methodology> {
    let help = |methodology| match methodology {
        Methodology::IdenticalConfig => "Same knobs for all targets; shows the effect of the hardware",
        Methodology::MaximumPerformance => "Best knobs of each target under the same constraints",
    };
    let values = Methodology::ALL.map(|methodology| PossibleValue::new(methodology.name()).help(help(methodology)));
    PossibleValuesParser::new(values).map(|name| Methodology::named(&name).unwrap_or_default())
}

/// The metric with that name, if it applies to the scenario.
pub fn figure_of(name: &str, scenario: &Scenario) -> Result<&'static Metric, String> {
    let metric = metric::named(name).ok_or_else(|| metric::unknown(name))?;
    if metric.applies_to(scenario) { Ok(metric) } else { Err(metric.inapplicable(scenario)) }
}

/// Like [`figure_of`], but `latency` in training means the step time.
fn objective(name: &str, scenario: &Scenario) -> Result<&'static Metric, String> {
    if name.eq_ignore_ascii_case("latency") && scenario.mode() == Mode::Training {
        return Ok(MetricId::StepTimeMs.metric());
    }
    figure_of(name, scenario)
}
