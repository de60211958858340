//! A resolved setup: the scenario, and its estimate or the reason why it has no estimate.

use std::sync::{Arc, OnceLock};

use crate::demo::Setup;
use atlas_config::library::Library;
use atlas_config::{Mode, Profile, Target, Workload};
use atlas_evidence::support;
use atlas_plan::engine;
use atlas_plan::estimate::{Detail, Estimate, METRICS, Metric};
use atlas_plan::scenario::{Parts, Scenario};

/// A setup worked out.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The target, where it exists.
    pub target: Option<Arc<Target>>,
    /// The workload, where it exists.
    pub workload: Option<Arc<Workload>>,
    /// The profile in force.
    pub profile: Option<Arc<Profile>>,
    /// All that the scenario is made of.
    pub parts: Option<Parts>,
    /// What the files say.
    pub files: Option<Scenario>,
    /// With the knobs laid over.
    pub scenario: Option<Scenario>,
    /// The estimate, or why it failed.
    pub outcome: Result<Estimate, String>,
    /// Whether the estimate is the closed form's, which stands there until the simulation that was asked for has run.
    pub pending: bool,
    /// The measured rows behind the throughput, in one line; looked up when a view first shows it.
    evidence: OnceLock<Option<String>>,
}

impl Answer {
    /// No answer to nothing.
    pub(super) fn nothing() -> Answer {
        Answer {
            target: None,
            workload: None,
            profile: None,
            parts: None,
            files: None,
            scenario: None,
            outcome: Err(String::new()),
            pending: false,
            evidence: OnceLock::new(),
        }
    }

    /// The measured rows behind the throughput, in one line.
    #[must_use]
    pub fn evidence(&self) -> Option<&str> {
        let look_up = || {
            let (parts, scenario) = (self.parts.as_ref()?, self.scenario.as_ref()?);
            Some(format!("evidence: {}", support::throughput(parts, scenario)?.line()))
        };
        self.evidence.get_or_init(look_up).as_deref()
    }

    /// Works a setup out, within microseconds: a simulation is stood for by its closed form.
    #[must_use]
    pub fn of(library: &Library, setup: &Setup) -> Answer {
        let mut answer = Answer::nothing();
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
                Ok(engine::estimate(&engine::at_once(&scenario)))
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

    /// A metric's value, where it says something.
    #[must_use]
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        let (scenario, estimate) = (self.scenario.as_ref()?, self.outcome.as_ref().ok()?);
        let value = metric.applies_to(scenario).then(|| (metric.get)(estimate, scenario));
        value.filter(|value| value.is_finite())
    }

    /// What the engine knows beyond the figures, where it reasons from hardware.
    #[must_use]
    pub fn detail(&self) -> Option<&Detail> {
        self.outcome.as_ref().ok()?.detail.as_ref()
    }

    /// Whether it can run, as far as the engine can tell.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.outcome.is_ok() && self.detail().is_none_or(|detail| detail.verdict.fits())
    }

    /// The fabrics the profile is calibrated for.
    #[must_use]
    pub fn fabrics(&self) -> &[(Arc<str>, f64)] {
        self.profile.as_ref().map_or(&[], |profile| &profile.fabrics)
    }

    /// The metrics that say something about this scenario.
    pub fn metrics(&self) -> impl Iterator<Item = &'static Metric> {
        METRICS.iter().filter(|metric| self.scenario.as_ref().is_none_or(|scenario| metric.applies_to(scenario)))
    }
}
