//! A scenario with its estimate, computed as on the command line, and the flags that reproduce it.

use std::sync::Arc;

use atlas_config::library::Library;
use atlas_config::{Mode, Target};
use atlas_plan::engine;
use atlas_plan::estimate::{Estimate, Metric, Scale, standing};
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};

use super::reply::{About, ReportedMetric};
use super::{Refusal, Reply};
use crate::{Known, KnownTarget, KnownWorkload};

/// Defaults for questions that do not name target, workload or settings.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// Targets, workloads and catalog, built-in and the user's own.
    pub library: &'a Library,
    /// The target.
    pub target: Arc<str>,
    /// The workload.
    pub workload: Arc<str>,
    /// Changed knobs.
    pub overrides: Overrides,
    /// Flags that every command needs in order to find the same files.
    pub flags: Vec<String>,
}

impl<'a> Context<'a> {
    /// Returns the context of a target and a workload without changes or flags.
    #[must_use]
    pub fn new(library: &'a Library, target: impl Into<Arc<str>>, workload: impl Into<Arc<str>>) -> Context<'a> {
        let (target, workload) = (target.into(), workload.into());
        Context { library, target, workload, overrides: Overrides::new(), flags: Vec::new() }
    }

    /// Targets, workloads and models that a question can name.
    #[must_use]
    pub fn known(&self) -> Known {
        Known::of(self.library)
    }
}

impl Known {
    /// Collects the targets, workloads and models of a library.
    #[must_use]
    pub fn of(library: &Library) -> Known {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts within the knobs' bounds")]
        let whole = |value: f64| value as u32;
        let target = |target: &Arc<Target>| KnownTarget {
            name: target.name.to_string(),
            per_node: whole(f64::from(target.accelerators_per_node)),
            nodes: whole(f64::from(target.num_nodes)),
        };
        Known {
            targets: library.targets().iter().map(target).collect(),
            workloads: (library.workloads().iter())
                .map(|workload| KnownWorkload { name: workload.name.to_string(), mode: workload.shape.mode })
                .collect(),
            models: library.catalog().models().iter().map(|model| model.id.to_string()).collect(),
        }
    }
}

/// A scenario and its estimate.
#[derive(Debug, Clone)]
pub(crate) struct Case<'a> {
    pub(crate) library: &'a Library,
    pub(crate) flags: &'a [String],
    pub(crate) parts: Parts,
    pub(crate) overrides: Overrides,
    pub(crate) scenario: Scenario,
    pub(crate) estimate: Estimate,
}

impl<'a> Case<'a> {
    pub(crate) fn of(
        context: &'a Context<'_>,
        target: &str,
        workload: &str,
        overrides: Overrides,
    ) -> Result<Case<'a>, Refusal> {
        let parts = Parts::find(context.library, target, workload).map_err(|found| Refusal::Files(found.messages()))?;
        Case::from(context.library, &context.flags, parts, overrides)
    }

    fn from(
        library: &'a Library,
        flags: &'a [String],
        parts: Parts,
        overrides: Overrides,
    ) -> Result<Case<'a>, Refusal> {
        let scenario = Scenario::resolve(&parts, &overrides).map_err(|error| Refusal::Scenario(error.to_string()))?;
        let estimate = engine::estimate(&scenario);
        estimate.finite().map_err(Refusal::Scenario)?;
        Ok(Case { library, flags, parts, overrides, scenario, estimate })
    }

    /// Estimates the scenario with further changed knobs.
    pub(crate) fn with(&self, changes: &[(Knob, Setting)]) -> Result<Case<'a>, Refusal> {
        let mut overrides = self.overrides.clone();
        overrides.extend(changes.iter().cloned());
        let mut case = Case::from(self.library, self.flags, self.parts.clone(), overrides)?;
        if changes.iter().any(|(knob, _)| *knob == Knob::NumNodes) {
            case.adapt_to_target();
        }
        Ok(case)
    }

    /// Adapts the workload to the accelerators of a question; see [`Scenario::adapt_to_target`].
    pub(crate) fn adapt_to_target(&mut self) -> Vec<String> {
        let notes = self.scenario.adapt_to_target(&mut self.overrides, &self.parts);
        if !notes.is_empty() {
            self.estimate = engine::estimate(&self.scenario);
        }
        notes
    }

    pub(crate) fn mode(&self) -> Mode {
        self.scenario.mode()
    }

    /// Value of a metric; `None` if it does not apply to the scenario, or the scenario cannot run.
    pub(crate) fn value(&self, metric: &Metric) -> Option<f64> {
        standing::available_value(metric, &self.scenario, &self.estimate)
    }

    /// Value with its unit.
    pub(crate) fn format_metric(&self, metric: &Metric) -> String {
        self.value(metric).map_or_else(|| "no figure".to_owned(), |value| metric.show(value))
    }

    /// The 90 % interval as text in the unit of the value, if known.
    pub(crate) fn interval(&self, metric: &Metric) -> Option<String> {
        let value = self.value(metric)?;
        let (low, high) = metric.interval(&self.estimate, &self.scenario)?;
        Some(Scale::of_shown(metric, value).interval_in_words(low, high))
    }

    /// Adds a metric to an answer.
    pub(crate) fn add_metric(&self, reply: &mut Reply, metric: &Metric) {
        let Some(value) = self.value(metric) else { return };
        let figure = ReportedMetric {
            metric: metric.id,
            value: value.is_finite().then_some(value),
            shown: metric.show(value),
            interval: metric.interval(&self.estimate, &self.scenario),
            about: self.about(),
        };
        if !reply.figures.contains(&figure) {
            reply.figures.push(figure);
        }
    }

    pub(crate) fn about(&self) -> About {
        About {
            target: self.parts.target.name.to_string(),
            workload: self.parts.workload.name.to_string(),
            set: self.overrides.iter().map(|(knob, setting)| format!("{}={setting}", knob.name())).collect(),
        }
    }

    /// `--target T --workload W --set KNOB=VALUE …`, and the flags for files.
    pub(crate) fn command_flags(&self) -> Vec<String> {
        let about = self.about();
        let mut flags = vec!["--target".to_owned(), about.target, "--workload".to_owned(), about.workload];
        flags.extend(self.set_flags());
        flags
    }

    /// `--set KNOB=VALUE …`, and the flags for files.
    pub(crate) fn set_flags(&self) -> Vec<String> {
        let set = self.about().set.into_iter().flat_map(|setting| ["--set".to_owned(), setting]);
        set.chain(self.flags.iter().cloned()).collect()
    }

    /// Reason why the scenario cannot run, if it cannot.
    pub(crate) fn trouble(&self) -> Option<String> {
        let detail = self.estimate.detail.as_ref()?;
        (!detail.verdict.fits()).then(|| detail.verdict.describe())
    }

    /// Key metrics that apply to the scenario.
    pub(crate) fn headlines(&self) -> impl Iterator<Item = &'static Metric> {
        Metric::headlines(self.mode()).filter(|metric| metric.applies_to(&self.scenario))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use atlas_document::Sources;

    use super::*;

    #[test]
    fn intervals_have_the_unit_of_the_value() {
        let library = Library::load(&Sources::built_in(), None);
        for (target, workload, overrides) in [
            ("h100-sxm-128", "llama3.1-70b-train", Overrides::new()),
            ("h100-sxm-64", "llama3.1-8b-train", Overrides::new()),
            ("h100-sxm-64", "llama3.1-8b-train", Overrides::from([(Knob::TrainTokens, Setting::Number(2e12))])),
            ("h100-sxm-8", "llama3.1-70b-serve", Overrides::new()),
        ] {
            let context = Context::new(&library, target, workload);
            let case = Case::of(&context, target, workload, overrides).unwrap();
            let mut compared = 0;
            for metric in case.headlines() {
                let Some(interval) = case.interval(metric) else { continue };
                let value = case.format_metric(metric);
                let unit = |text: &str| -> String {
                    let last = text.rsplit(' ').next().unwrap_or_default();
                    last.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect()
                };
                assert_eq!(unit(&value), unit(&interval), "{}: {value}, {interval}", metric.name);
                compared += 1;
            }
            assert!(compared >= 4, "{workload}");
        }
    }
}
