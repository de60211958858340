//! A resolved setup: the scenario, and its estimate or the reason why it has no estimate.

use std::sync::{Arc, OnceLock};

use crate::demo::Setup;
use atlas_config::library::Library;
use atlas_config::{Mode, Profile, Target, Workload};
use atlas_evidence::support::{self, Support};
use atlas_plan::advice::{Advice, Objective, advise};
use atlas_plan::engine;
use atlas_plan::engine::notes::notes;
use atlas_plan::estimate::standing::is_available;
use atlas_plan::estimate::{Detail, Estimate, METRICS, Metric, digits};
use atlas_plan::scenario::{Parts, Scenario};

/// The results of a setup.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The setup.
    pub setup: Setup,
    /// The target, where it exists.
    pub target: Option<Arc<Target>>,
    /// The workload, where it exists.
    pub workload: Option<Arc<Workload>>,
    /// The profile in effect.
    pub profile: Option<Arc<Profile>>,
    /// Target, workload, profile and catalog entries of the scenario.
    pub parts: Option<Parts>,
    /// The scenario as the files describe it.
    pub files: Option<Scenario>,
    /// The scenario with the overrides applied.
    pub scenario: Option<Scenario>,
    /// The estimate, or why it failed.
    pub outcome: Result<Estimate, String>,
    /// Whether the estimate is analytical and stands in until the requested simulation has finished.
    pub pending: bool,
    /// The measured rows behind the throughput; looked up when a view first shows them.
    evidence: OnceLock<Option<Support>>,
    /// Caveats of the estimate, computed when first shown.
    notes: OnceLock<Vec<String>>,
    /// Advice from the closed-form model, computed when first shown.
    advice: OnceLock<Arc<[Advice]>>,
}

impl Answer {
    /// An empty answer.
    pub(in crate::tui) fn empty() -> Answer {
        Answer {
            setup: Setup::default(),
            target: None,
            workload: None,
            profile: None,
            parts: None,
            files: None,
            scenario: None,
            outcome: Err(String::new()),
            pending: false,
            evidence: OnceLock::new(),
            notes: OnceLock::new(),
            advice: OnceLock::new(),
        }
    }

    fn support(&self) -> Option<&Support> {
        let look_up = || support::throughput(self.parts.as_ref()?, self.scenario.as_ref()?);
        self.evidence.get_or_init(look_up).as_ref()
    }

    /// The measured rows behind the throughput, in one line.
    #[must_use]
    pub fn evidence(&self) -> Option<String> {
        Some(format!("evidence: {}", self.support()?.line()))
    }

    /// Like [`Answer::evidence`], but short: the number of measured rows, and our error at the nearest row if it is
    /// similar.
    #[must_use]
    pub fn short_evidence(&self) -> Option<String> {
        let support = self.support()?;
        let rows = match support.all.rows {
            0 => return Some("evidence: no measured row".to_owned()),
            1 => "1 measured row".to_owned(),
            rows => format!("{rows} measured rows"),
        };
        Some(match support.nearest.as_ref().filter(|near| near.comparable) {
            Some(near) => format!("evidence: {rows}, nearest {:+.0} %", 100.0 * near.error),
            None => format!("evidence: {rows}, none similar"),
        })
    }

    /// Caveats of the estimate.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        let look_up = || Some(notes(self.scenario.as_ref()?, self.outcome.as_ref().ok()?));
        self.notes.get_or_init(|| look_up().unwrap_or_default())
    }

    /// Changes that would improve the scenario.
    #[must_use]
    pub fn advice(&self) -> &[Advice] {
        self.advice.get_or_init(|| match (&self.scenario, &self.parts, &self.outcome) {
            (Some(scenario), Some(parts), Ok(estimate)) if estimate.detail.is_some() => {
                advise(scenario, parts, estimate, Objective::default()).into()
            }
            _ => Arc::default(),
        })
    }

    /// Replaces the estimate with the result of the simulation.
    pub(in crate::tui) fn simulated(&mut self, estimate: Estimate) {
        self.outcome = Ok(estimate);
        self.pending = false;
        self.notes = OnceLock::new();
    }

    /// Evaluates a setup within microseconds. If its engine simulates, the outcome is the analytical estimate, marked
    /// as pending.
    #[must_use]
    pub fn of(library: &Library, setup: &Setup) -> Answer {
        let mut answer = Answer::empty();
        answer.setup.clone_from(setup);
        answer.target = library.target(&setup.target).ok().cloned();
        answer.workload = library.workload(&setup.workload).ok().cloned();
        let parts = match Parts::find(library, &setup.target, &setup.workload) {
            Ok(parts) => parts,
            Err(problems) => {
                answer.outcome = Err(problems.messages());
                return answer;
            }
        };
        let files = Scenario::from_files(&parts);
        let mut scenario = files.clone();
        let refused = setup.overrides.iter().filter_map(|(knob, setting)| scenario.set(*knob, setting, &parts).err());
        let complaints: Vec<String> = refused.map(|error| error.to_string()).collect();
        answer.outcome = match scenario.check(&parts) {
            Ok(()) if complaints.is_empty() && scenario.engine.simulates() => {
                answer.pending = true;
                Ok(engine::estimate(&engine::analytical_scenario(&scenario)))
            }
            Ok(()) if complaints.is_empty() => Ok(engine::estimate(&scenario)),
            Ok(()) => Err(complaints.join("; ")),
            Err(error) => Err(error.to_string()),
        };
        answer.profile.clone_from(&parts.profile);
        answer.parts = Some(parts);
        answer.files = Some(files);
        answer.scenario = Some(scenario);
        answer
    }

    /// Whether the workload trains or serves.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.workload.as_ref().map_or(Mode::Training, |workload| workload.shape.mode)
    }

    /// A metric's value, if it applies to the scenario. A scenario that cannot run has no throughput, latency or cost
    /// per token.
    #[must_use]
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        let (scenario, estimate) = (self.scenario.as_ref()?, self.outcome.as_ref().ok()?);
        let value = metric.applicable_value(estimate, scenario).filter(|value| value.is_finite());
        value.filter(|_| is_available(metric, estimate))
    }

    /// A metric's label and value, for the clipboard.
    #[must_use]
    pub fn label_and_value(&self, metric: &Metric) -> Option<(String, String)> {
        Some((metric.label.to_owned(), metric.show(self.value(metric)?)))
    }

    /// A metric's value as text, with three digits where its interval is wider than five percent to either side.
    #[must_use]
    pub fn format_metric(&self, metric: &Metric) -> Option<String> {
        self.value(metric)?;
        Some(digits::shown(metric, self.scenario.as_ref()?, self.outcome.as_ref().ok()?))
    }

    /// Details beyond the metrics, from engines that model hardware.
    #[must_use]
    pub fn detail(&self) -> Option<&Detail> {
        self.outcome.as_ref().ok()?.detail.as_ref()
    }

    /// Whether the scenario can run: it has an estimate, and the engine's verdict, if there is one, is that it fits.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.outcome.is_ok() && self.detail().is_none_or(|detail| detail.verdict.fits())
    }

    /// The fabrics the profile is calibrated for.
    #[must_use]
    pub fn fabrics(&self) -> &[(Arc<str>, f64)] {
        self.profile.as_ref().map_or(&[], |profile| &profile.fabrics)
    }

    /// The metrics that apply to this scenario.
    pub fn metrics(&self) -> impl Iterator<Item = &'static Metric> {
        METRICS.iter().filter(|metric| self.scenario.as_ref().is_none_or(|scenario| metric.applies_to(scenario)))
    }
}
