//! Applies a script without an interface.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::expect::{Comparison, Expect, Factor, Figure, Operator, Quantity, Source, Term, Test};
use super::script::{Action, Demo, Pane, Reset};
use super::views::View;
use atlas_config::Workload;
use atlas_config::library::Library;
use atlas_core::units;
use atlas_plan::engine;
use atlas_plan::estimate::{Estimate, Metrics};
use atlas_plan::knob::{KnobError, KnobValues as _, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario, ScenarioError};

/// Input of a scenario: names of the target and the workload, and changed knobs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Setup {
    /// Name of the target.
    pub target: Arc<str>,
    /// Name of the workload.
    pub workload: Arc<str>,
    /// Knobs that differ from the values in the files.
    pub overrides: Overrides,
}

/// State of a tour after the actions applied so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stage {
    /// Current scenario.
    pub setup: Setup,
    /// Targets marked for the comparison.
    pub marks: BTreeSet<Arc<str>>,
    /// Baseline that differences refer to. If `None`, the values from the files for the same target and workload.
    pub baseline: Option<Setup>,
    /// The screen shown.
    pub view: View,
    /// Whether the list of keys is open over it.
    pub help: bool,
    /// The pane in focus.
    pub focus: Pane,
}

/// Error of an action or of evaluating a figure.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DemoError {
    /// A target, workload or profile does not exist.
    #[error("{0}")]
    Missing(String),
    /// A knob has an invalid name or value.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// The scenario cannot be resolved.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The workload has no phase of that name.
    #[error("workload `{workload}` has no phase `{phase}`; {known}")]
    Phase {
        /// The workload.
        workload: Arc<str>,
        /// The phase requested.
        phase: Arc<str>,
        /// The phases that exist.
        known: String,
    },
    /// The metric does not apply to the scenario.
    #[error("{metric} does not apply to `{workload}`")]
    Silent {
        /// The metric.
        metric: &'static str,
        /// The workload.
        workload: Arc<str>,
    },
}

/// Result of checking a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it holds.
    pub passed: bool,
    /// The comparison with its values, such as `tokens_per_sec 2642 tok/s > 2000`.
    pub text: String,
}

/// The scenario of a setup and its estimate.
struct Answer {
    workload: Arc<Workload>,
    scenario: Scenario,
    estimate: Estimate,
}

impl Setup {
    fn look_up(&self, library: &Library) -> Result<Parts, DemoError> {
        let missing = |problems: atlas_document::Diagnostics| DemoError::Missing(problems.messages());
        Parts::find(library, &self.target, &self.workload).map_err(missing)
    }

    fn answer(&self, library: &Library) -> Result<Answer, DemoError> {
        let parts = self.look_up(library)?;
        let scenario = Scenario::resolve(&parts, &self.overrides)?;
        let estimate = engine::estimate(&scenario);
        Ok(Answer { workload: parts.workload, scenario, estimate })
    }
}

impl Stage {
    /// Returns the state before the first step: the first target and the workload of the tour, without overrides.
    #[must_use]
    pub fn of(demo: &Demo) -> Stage {
        let target = demo.targets.first().cloned().unwrap_or_default();
        let setup = Setup { target, workload: Arc::clone(&demo.workload), overrides: Overrides::new() };
        Stage { setup, ..Stage::default() }
    }

    /// Returns the state after step `step` (zero-based), replayed from the start. The interface uses it to move in
    /// either direction. Failed actions are skipped and their errors returned.
    #[must_use]
    pub fn at_step(demo: &Demo, step: usize, library: &Library) -> (Stage, Vec<DemoError>) {
        let mut stage = Stage::of(demo);
        let mut errors = Vec::new();
        for action in demo.steps.iter().take(step.saturating_add(1)).flat_map(|step| &step.actions) {
            if let Err(error) = stage.apply(action, library) {
                errors.push(error);
            }
        }
        (stage, errors)
    }

    /// Applies one action. If it fails, the state is unchanged.
    pub fn apply(&mut self, action: &Action, library: &Library) -> Result<(), DemoError> {
        match action {
            Action::SelectTarget(name) => self.setup.target = existing_target(library, name)?,
            Action::SelectWorkload(name) => {
                let workload = library.workload(name).map_err(|problem| DemoError::Missing(problem.message))?;
                self.setup.workload = Arc::clone(&workload.name);
            }
            Action::Set(knob, text) => {
                let parts = self.setup.look_up(library)?;
                let setting = knob.parse(text, parts.fabrics())?;
                // A value equal to that of the files is not an override.
                if Scenario::from_files(&parts).get(*knob) == setting {
                    self.setup.overrides.remove(knob);
                } else {
                    self.setup.overrides.insert(*knob, setting);
                }
            }
            Action::Reset(Reset::All) => self.setup.overrides.clear(),
            Action::Reset(Reset::Knobs(knobs)) => self.setup.overrides.retain(|knob, _| !knobs.contains(knob)),
            Action::View(view) => (self.view, self.help) = (*view, false),
            Action::Help => (self.view, self.help) = (View::Main, true),
            Action::Mark(names) => {
                let names: Result<Vec<_>, _> = names.iter().map(|name| existing_target(library, name)).collect();
                self.marks.extend(names?);
            }
            Action::Unmark(names) => self.marks.retain(|mark| !names.contains(mark)),
            Action::SetBaseline => self.baseline = Some(self.setup.clone()),
            Action::ClearBaseline => self.baseline = None,
            Action::Focus(pane) => self.focus = *pane,
        }
        Ok(())
    }

    /// Returns the setup that a figure is evaluated on.
    fn source(&self, source: &Source) -> Setup {
        match source {
            Source::Stage => self.setup.clone(),
            Source::Target(name) => Setup { target: Arc::clone(name), ..self.setup.clone() },
            Source::Baseline => {
                self.baseline.clone().unwrap_or_else(|| Setup { overrides: Overrides::new(), ..self.setup.clone() })
            }
        }
    }

    fn figure(&self, figure: &Figure, library: &Library) -> Result<f64, DemoError> {
        let mut answer = self.source(&figure.source).answer(library)?;
        if let Some(phase) = &figure.phase {
            answer = answer.phase(phase)?;
        }
        match figure.quantity {
            Quantity::Metric(metric) => metric
                .applicable_value(&answer.estimate, &answer.scenario)
                .ok_or_else(|| DemoError::Silent { metric: metric.name, workload: Arc::clone(&answer.workload.name) }),
            Quantity::Knob(knob) => Ok(match answer.scenario.get(knob) {
                Setting::Number(value) => value,
                _ => f64::NAN,
            }),
        }
    }

    fn factor(&self, factor: &Factor, library: &Library) -> Result<f64, DemoError> {
        match factor {
            Factor::Number(value) => Ok(*value),
            Factor::Figure(figure) => self.figure(figure, library),
            // The parser replaces this by a figure.
            Factor::SameAtBaseline => Ok(f64::NAN),
        }
    }

    fn term(&self, term: &Term, library: &Library) -> Result<f64, DemoError> {
        let first = self.factor(&term.first, library)?;
        term.rest.iter().try_fold(first, |value, (operator, factor)| {
            let factor = self.factor(factor, library)?;
            Ok(match operator {
                Operator::Times => value * factor,
                Operator::Over => value / factor,
            })
        })
    }
}

fn existing_target(library: &Library, name: &str) -> Result<Arc<str>, DemoError> {
    let target = library.target(name).map_err(|problem| DemoError::Missing(problem.message))?;
    Ok(Arc::clone(&target.name))
}

impl Answer {
    /// Returns the answer for one phase: its metrics, queue and cost.
    fn phase(mut self, name: &Arc<str>) -> Result<Answer, DemoError> {
        let index = self.workload.phases.iter().position(|phase| phase.name == *name);
        let shape = index.and_then(|index| self.workload.phases.get(index)).map(|phase| phase.shape);
        let figures = index.and_then(|index| self.estimate.phases.get(index)).copied();
        let (Some(shape), Some(figures)) = (shape, figures) else {
            let names: Vec<&str> = self.workload.phases.iter().map(|phase| &*phase.name).collect();
            let known = match names.as_slice() {
                [] => "it has no phases".to_owned(),
                names => format!("its phases are {}", names.join(", ")),
            };
            return Err(DemoError::Phase { workload: Arc::clone(&self.workload.name), phase: Arc::clone(name), known });
        };
        // The phase may override some of these knobs.
        self.scenario.base.shape =
            self.scenario.phases.get(index.unwrap_or_default()).map_or(shape, |phase| phase.shape);
        self.estimate = Estimate {
            total: Metrics { latency: figures.queued_latency(), ..figures },
            phases: Vec::new(),
            total_minutes: figures.minutes,
            service: figures.latency,
            queue: figures.queue,
            cost: engine::cost(&self.scenario, &figures),
            detail: self.estimate.detail,
        };
        Ok(self)
    }
}

/// Checks one condition. If a figure cannot be evaluated, the condition fails and the text states why.
#[must_use]
pub fn check(expect: &Expect, stage: &Stage, library: &Library) -> Outcome {
    let (right, sign) = match &expect.test {
        Test::Compare(comparison, right) => (right, comparison.to_string()),
        Test::Within { percent, of } => (of, format!("within {percent} % of")),
    };
    let values = stage.term(&expect.left, library).and_then(|l| Ok((l, stage.term(right, library)?)));
    let (left_value, right_value) = match values {
        Ok(values) => values,
        Err(error) => return Outcome { passed: false, text: format!("{}: {error}", expect.text) },
    };
    // Division by zero yields a value that is not finite, and the condition fails.
    let passed = match &expect.test {
        _ if !(left_value.is_finite() && right_value.is_finite()) => false,
        Test::Compare(comparison, _) => comparison.holds(left_value, right_value),
        Test::Within { percent, .. } => {
            let allowed = percent / 100.0 * right_value.abs();
            Comparison::AtMost.holds((left_value - right_value).abs(), allowed)
        }
    };
    Outcome {
        passed,
        text: format!("{} {sign} {}", described(&expect.left, left_value), described(right, right_value)),
    }
}

/// Formats a term with its value. A number is shown as written.
fn described(term: &Term, value: f64) -> String {
    if term.number().is_some() {
        return term.text.clone();
    }
    let shown = match term.figure().map(|figure| figure.quantity) {
        Some(Quantity::Metric(metric)) => metric.show(value),
        Some(Quantity::Knob(_)) => value.to_string(),
        None => units::si(value),
    };
    format!("{} {shown}", term.text)
}
