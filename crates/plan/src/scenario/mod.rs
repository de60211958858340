//! Scenario: target, workload, profile and knobs, resolved to plain numbers. It is the only input of an engine.

mod adapted;
mod adapters;
mod corrections;
mod cost;
mod dashboard;
mod drafts;
mod idle;
mod images;
mod layout;
mod machine;
mod noise;
mod parts;
mod phase;
mod plausible;
mod pools;
mod reuse;
mod serving_defaults;
mod serving_input;
mod set_knob;
mod simulation;
mod software;
mod training_input;

use atlas_catalog::datasheet;
use atlas_core::count::Count;
use std::sync::Arc;

pub use corrections::ActiveCorrections;
pub use cost::{HOURS_PER_MONTH, HOURS_PER_YEAR, PriceTerms, capital_recovery};
pub use dashboard::Dashboard;
pub use idle::IneffectiveKnob;
pub use images::Vision;
pub use machine::{ContradictedMemory, HostShare, Machine, architecture};
use noise::default_draw;
pub use noise::first_draw;
pub use parts::Parts;
pub use phase::{KnobSet, Phase};
pub use plausible::{Implausible, implausible};
pub use serving_defaults::ServingDefaults;
pub use set_knob::CONCURRENCY;
pub use simulation::{SLOW_FACTOR, Simulation};
pub use software::ActiveSoftware;

use crate::knob::{KnobError, Overrides};
use atlas_catalog::Accelerator as Sheet;
use atlas_catalog::model::Draft;
use atlas_config::profile::Coefficients;
use atlas_config::{Efficiency, Mode};
use atlas_core::plan::Engine;
use atlas_perf::arch::Architecture;

/// Default energy price, USD/kWh: the fixed value of the predecessor system, close to the price that US industry pays.
/// Overridden by `cost.usd_per_kwh` of a target and the knob `usd_per_kwh`.
pub const USD_PER_KWH: f64 = 0.12;
/// Default seed: that of the predecessor system.
pub const SEED: i128 = 1337;
/// Default fabric of workloads: that of the predecessor system.
pub const FABRIC: &str = "IB";

/// Default depreciation period, years. The useful life that the large cloud providers report was six years for servers
/// in 2024, and five for accelerators (Amazon, 10-K for 2024).
pub const AMORTIZATION_YEARS: f64 = 5.0;
/// Default carbon intensity of electricity, kg CO2e per kWh: the world average in 2023, 0.481 (Ember, Global
/// Electricity Review 2024), rounded to two digits in view of the regional differences.
pub const KG_CO2E_PER_KWH: f64 = 0.48;

/// A resolved scenario: the input of an engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Engine that makes the estimate.
    pub engine: Engine,
    /// Accelerator and fabrics, if the target names an accelerator.
    pub machine: Option<Machine>,
    /// Architecture of the model, if the workload describes it sufficiently.
    pub model: Option<Architecture>,
    /// Vision encoder of the model, if its catalog entry has one.
    pub vision: Option<Arc<Vision>>,
    /// Maximum sequence length of the model, if its catalog entry limits it.
    pub max_context: Option<Count>,
    /// Software stated by files or knobs: `vllm@0.11`.
    pub software: Option<Arc<str>>,
    /// Software in effect and its traits.
    pub active_software: ActiveSoftware,
    /// Inputs of the predecessor dashboard's estimator.
    pub dashboard: Dashboard,
    /// Whether a profile provides the coefficients below.
    pub calibrated: bool,
    /// Accelerators in one node.
    pub accelerators_per_node: Count,
    /// Nodes.
    pub num_nodes: Count,
    /// Memory of one accelerator, GB.
    pub memory_gb_per_accel: f64,
    /// Memory stated by the target, if the accelerator does not exist with that size.
    pub contradicted_memory: Option<ContradictedMemory>,
    /// Values of the target that are probably in another unit; `None` without any.
    pub implausible: Option<Arc<[Implausible]>>,
    /// Whether the target states the bandwidth of its network.
    pub network_stated: bool,
    /// Host memory of one node, GB, if known.
    pub host_memory_gb: Option<f64>,
    /// Nominal power of one node, W.
    pub node_watts: f64,
    /// Rent of one node, USD/h, if known.
    pub hourly_usd: Option<f64>,
    /// Power usage effectiveness.
    pub pue: f64,
    /// Price of energy, USD/kWh.
    pub usd_per_kwh: f64,
    /// Carbon intensity of the grid, kg CO2e per kWh.
    pub kg_co2e_per_kwh: f64,
    /// Price terms, cost of ownership, and power limits.
    pub terms: PriceTerms,
    /// Purchase price of one node, USD.
    pub capex_usd_node: Option<f64>,
    /// Depreciation period of a purchase, years.
    pub amortization_years: f64,
    /// Share of the time that owned or reserved hardware is in use.
    pub utilization: f64,
    /// Number of tokens that the model was trained on, if published.
    pub published_tokens: Option<f64>,
    /// Name of a checkpoint in the files, and the catalog model that it was resolved to.
    pub checkpoint: Option<(Arc<str>, Arc<str>)>,
    /// `model_type` of the model's `config.json`, if its architecture is unknown and a Llama-like decoder is assumed.
    pub unknown_model_type: Option<Arc<str>>,
    /// Published acceptance rates of speculative decoding methods for the model.
    pub published_drafts: Arc<[Draft]>,
    /// Efficiency factors of the analytical engine.
    pub efficiency: Efficiency,
    /// Corrections by measurements of the cluster, if a profile has some for the accelerator.
    pub corrections: Option<Arc<ActiveCorrections>>,
    /// Coefficients of the semi-empirical model.
    pub coefficients: Coefficients,
    /// gamma_fabric of the fabric in effect, if the profile has it.
    pub fabric_factor: Option<f64>,
    /// Name of the fabric in effect.
    pub fabric: Arc<str>,
    /// Sequences per device and step.
    pub microbatch: Count,
    /// Whether a file or a knob states the micro-batch size.
    pub micro_stated: bool,
    /// Whether kernels are launched as captured CUDA graphs.
    pub cuda_graphs: bool,
    /// Whether NICs read accelerator memory directly.
    pub gpudirect_rdma: bool,
    /// Whether NICs are shared by SR-IOV.
    pub sriov: bool,
    /// The workload as a whole.
    pub base: Phase,
    /// Phases of the workload's schedule; empty without one.
    pub phases: Vec<Phase>,
    /// Knobs that the user set.
    pub stated: KnobSet,
    /// Random seed of the noise.
    pub seed: i128,
    /// Whether noise is added.
    pub noise: bool,
}

/// Error of resolving a scenario.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScenarioError {
    /// A knob cannot be set.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// The profile is not calibrated for the fabric in effect.
    #[error("fabric `{fabric}` is not calibrated in profile `{profile}`; known fabrics: {known}")]
    Fabric {
        /// Name of the fabric.
        fabric: Arc<str>,
        /// Name of the profile.
        profile: Arc<str>,
        /// Fabrics that the profile is calibrated for.
        known: String,
    },
    /// The files lack inputs that the engine requires.
    #[error("the {engine} engine needs {lacks}")]
    Lacks {
        /// Name of the engine.
        engine: &'static str,
        /// Description of the missing inputs.
        lacks: String,
    },
}

impl Scenario {
    /// Resolves a scenario from the files and applies the user's knobs.
    ///
    /// # Errors
    ///
    /// If a knob cannot be set, or the engine lacks inputs.
    pub fn resolve(parts: &Parts, overrides: &Overrides) -> Result<Scenario, ScenarioError> {
        let mut scenario = Scenario::from_files(parts);
        for (knob, setting) in overrides {
            scenario.set(*knob, setting, parts)?;
            scenario.stated.insert(*knob);
        }
        scenario.check(parts)?;
        Ok(scenario)
    }

    /// Resolves a scenario from the files, without checking whether an engine can estimate it; see [`Scenario::check`].
    #[must_use]
    pub fn from_files(parts: &Parts) -> Scenario {
        let Parts { target, workload, profile, .. } = parts;
        let tuning = &workload.tuning;
        let fabric = tuning.fabric.clone().unwrap_or_else(|| FABRIC.into());
        let sheet = parts.accelerator.as_deref();
        let mut scenario = Scenario {
            engine: parts.engine(),
            machine: Machine::of(parts),
            model: architecture(parts),
            vision: Vision::of(parts).map(Arc::new),
            max_context: parts.model.as_ref().and_then(|model| model.max_context()),
            software: workload.software.clone(),
            active_software: ActiveSoftware::default(),
            dashboard: Dashboard::of(parts),
            calibrated: profile.as_ref().is_some_and(|profile| profile.calibrated),
            accelerators_per_node: target.accelerators_per_node,
            num_nodes: target.num_nodes,
            memory_gb_per_accel: sheet.map_or(target.memory_gb_per_accel, |sheet| machine::memory_gb(target, sheet)),
            contradicted_memory: sheet.and_then(|sheet| ContradictedMemory::of(target, sheet)),
            implausible: Some(implausible(target, sheet)).filter(|found| !found.is_empty()).map(Arc::from),
            network_stated: target.network.as_ref().is_some_and(|network| network.gbits_per_accel.is_some()),
            host_memory_gb: target
                .host_memory_gb
                .or_else(|| Some(sheet?.host.memory_gb? * target.accelerators_per_node))
                .filter(|gb| *gb > 0.0),
            node_watts: profile
                .as_ref()
                .and_then(|profile| profile.node_watts)
                .unwrap_or(target.cost.energy_watts_node),
            hourly_usd: Some(target.cost.hourly_usd).filter(|price| *price > 0.0),
            pue: target.cost.pue,
            usd_per_kwh: target.cost.usd_per_kwh.unwrap_or(USD_PER_KWH),
            kg_co2e_per_kwh: target.cost.kg_co2e_per_kwh.unwrap_or(KG_CO2E_PER_KWH),
            terms: PriceTerms::of(&target.cost),
            capex_usd_node: target.cost.capex_usd_node.filter(|price| *price > 0.0),
            amortization_years: target.cost.amortization_years.unwrap_or(AMORTIZATION_YEARS),
            utilization: target.cost.utilization.unwrap_or(1.0),
            published_drafts: parts.model.as_ref().map_or_else(|| [].into(), |model| model.drafts.as_slice().into()),
            checkpoint: checkpoint(parts),
            unknown_model_type: parts.model.as_ref().and_then(|model| model.unknown_type.clone()),
            published_tokens: parts.model.as_ref().and_then(|model| model.published_tokens),
            efficiency: target
                .efficiency
                .or_else(|| profile.as_ref().and_then(|profile| profile.efficiency))
                .unwrap_or_default(),
            corrections: ActiveCorrections::of(parts),
            coefficients: profile.as_ref().map_or(Coefficients::default(), |profile| profile.coefficients),
            fabric_factor: profile.as_ref().and_then(|profile| profile.fabric_factor(&fabric)),
            fabric,
            microbatch: workload.plan.micro.or(tuning.microbatch).unwrap_or(Count::ONE),
            micro_stated: workload.plan.micro.or(tuning.microbatch).is_some(),
            cuda_graphs: tuning.cuda_graphs.unwrap_or(false),
            gpudirect_rdma: tuning.gpudirect_rdma.unwrap_or(false),
            sriov: tuning.virt.as_deref() == Some("sriov"),
            base: Phase::whole(workload),
            phases: workload.phases.iter().map(Phase::of).collect(),
            stated: KnobSet::default(),
            seed: SEED,
            noise: true,
        };
        let size = scenario.model.map(|model| (model.hidden, model.layers));
        for phase in scenario.all_phases() {
            // A catalog model provides sizes that `params` does not state, for the calibrated model too.
            if let Some((hidden, layers)) = size.filter(|_| phase.shape.hidden <= 0.0 && phase.shape.layers <= 0.0) {
                (phase.shape.hidden, phase.shape.layers) = (hidden, layers);
            }
        }
        scenario.resolve_software(parts);
        scenario.set_serving_defaults(parts);
        scenario.complete_layout();
        scenario.reseed(SEED, default_draw);
        scenario
    }

    /// Checks that the engine in effect has all its inputs.
    ///
    /// # Errors
    ///
    /// The description of all missing inputs.
    pub fn check(&self, parts: &Parts) -> Result<(), ScenarioError> {
        let lacks = match self.engine {
            Engine::SemiEmpirical => return self.check_profile(parts),
            Engine::Analytical | Engine::Event => self.missing_inputs(parts),
            Engine::Benchboard => self.missing_dashboard_inputs(),
        };
        if lacks.is_empty() { Ok(()) } else { Err(ScenarioError::Lacks { engine: self.engine.name(), lacks }) }
    }

    /// Describes the inputs of a hardware-modeling engine that are missing in the files.
    fn missing_inputs(&self, parts: &Parts) -> String {
        let mut lacks = Vec::new();
        if self.machine.is_none() {
            lacks.push(match &parts.accelerator {
                Some(sheet) => format!("the memory bandwidth and matrix rate of `{}`", sheet.id),
                None => format!("`accelerator:`, a key into the catalog, in target `{}`", parts.target.name),
            });
        }
        if self.model.is_none() {
            lacks.push(match &parts.model {
                Some(model) => format!("a supported architecture instead of `{}`", model.id),
                None => format!("`model:` or `params` with layers and widths in workload `{}`", parts.workload.name),
            });
        }
        if let Some(model) = self.model.as_ref().filter(|_| self.mode() == Mode::Inference)
            && (model.convolutions.is_some() || model.encoder_layers > 0.0)
        {
            lacks.push(
                "a decoder-only or encoder-only model: encoder-decoders and convolutional networks are supported in training only"
                    .to_owned(),
            );
        }
        if self.phases.iter().any(|phase| phase.minutes <= 0.0) {
            lacks.push("duration_minutes above 0 in every phase of the schedule".to_owned());
        }
        lacks.extend(self.missing_image_support());
        let fixed = |sheet: &Arc<Sheet>| self.terms.clock_share < 1.0 && !datasheet::clock_can_be_limited(sheet);
        if let Some(sheet) = parts.accelerator.as_ref().filter(|sheet| fixed(sheet)) {
            lacks.push(format!("clock_share 1: no tool of its vendor limits the clock of `{}`", sheet.id));
        }
        lacks.join(", and ")
    }

    fn check_profile(&self, parts: &Parts) -> Result<(), ScenarioError> {
        let Some(profile) = parts.profile.as_ref().filter(|profile| profile.calibrated) else {
            let lacks =
                format!("a profile with coefficients for `{}` or vendor `{}`", parts.target.name, parts.target.vendor);
            return Err(ScenarioError::Lacks { engine: self.engine.name(), lacks });
        };
        if self.fabric_factor.is_some() {
            return Ok(());
        }
        Err(ScenarioError::Fabric {
            fabric: Arc::clone(&self.fabric),
            profile: Arc::clone(&profile.name),
            known: profile.fabrics.iter().map(|(name, _)| &**name).collect::<Vec<_>>().join(", "),
        })
    }

    /// The base and every phase of the schedule.
    fn all_phases(&mut self) -> impl Iterator<Item = &mut Phase> {
        std::iter::once(&mut self.base).chain(&mut self.phases)
    }

    /// Looks up the traits of the software on this accelerator.
    fn resolve_software(&mut self, parts: &Parts) {
        let sheet = parts.accelerator.as_deref();
        let dies = self.machine.map_or(1.0, |machine| machine.dies);
        self.active_software = ActiveSoftware::of(self.software.as_deref(), self.mode(), sheet, dies);
    }

    /// Determines the defaults of the serving software.
    fn set_serving_defaults(&mut self, parts: &Parts) {
        let (Some(machine), Some(model)) = (self.machine, self.model) else { return };
        let native = parts.model.as_ref().and_then(|model| model.native_format);
        let nvfp4 = parts.model.as_ref().is_some_and(|model| model.nvfp4);
        let traits = self.active_software.serving;
        let image_tokens: Vec<f64> =
            std::iter::once(&self.base).chain(&self.phases).map(|phase| self.image_tokens(phase)).collect();
        for (phase, image_tokens) in self.all_phases().zip(image_tokens) {
            let context = phase.shape.prompt + image_tokens + phase.shape.generate;
            let stated = if phase.plan.format.is_some() { phase.plan.nvfp4 } else { native.map(|_| nvfp4) };
            // Checkpoints are quantized for the device, unless the model is published in four bit.
            let scaled = match native {
                Some(atlas_core::plan::Format::Fp4) => nvfp4,
                _ => machine.device.multiplies_nvfp4(),
            };
            let nvfp4 = stated.unwrap_or(scaled);
            phase.serving_defaults =
                ServingDefaults::of(&traits, (&phase.plan, context), &machine, &model, native, nvfp4);
        }
    }

    /// Number of accelerators in all nodes.
    #[must_use]
    pub fn accelerators(&self) -> f64 {
        self.accelerators_per_node * self.num_nodes
    }

    /// Number of devices, the dies of all accelerators.
    #[must_use]
    pub fn devices(&self) -> f64 {
        self.accelerators() * self.machine.map_or(1.0, |machine| machine.dies)
    }

    /// Number of accelerators used by the layout; all of them if the engine does not model layouts.
    #[must_use]
    pub fn working_accelerators(&self) -> f64 {
        let Phase { shape, plan, .. } = &self.base;
        let Some(machine) = self.machine.as_ref().filter(|_| self.engine.models_hardware()) else {
            return self.accelerators();
        };
        let ranks = match shape.mode {
            Mode::Training => shape.tp * shape.pp * plan.cp.unwrap_or(Count::ONE) * shape.dp,
            Mode::Inference => self.serving_ranks(&self.base),
        };
        ranks / machine.dies
    }

    /// Number of devices used by the layout: tp × pp × cp × dp (× attention groups in serving).
    pub(crate) fn working_devices(&self) -> f64 {
        // The accelerators of a prefill pool are part of the replicas, or separate from the decode replicas.
        let Phase { shape, .. } = &self.base;
        shape.tp * shape.pp * self.base.groups() * shape.dp + self.base.dedicated_accelerators()
    }

    /// Whether a phase may have longer sequences than the model was trained on: training on them is how its context is
    /// extended, unless it has a table of learned positions.
    #[must_use]
    pub fn extends_context(&self, phase: &Phase) -> bool {
        phase.shape.mode == Mode::Training && self.model.is_some_and(|model| model.positions <= 0.0)
    }

    /// Training or inference.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.base.shape.mode
    }

    /// Sets the seed. `draw` returns the first draw of a seed: [`first_draw`], or a cached version of it.
    pub fn reseed(&mut self, seed: i128, mut draw: impl FnMut(i128) -> f64) {
        self.seed = seed;
        for phase in self.all_phases() {
            phase.draw = draw(seed.saturating_add(i128::from(phase.index)));
        }
    }
}

/// Name of a checkpoint stated by the workload, and the model that it was resolved to; `None` if the name is the
/// model's own.
fn checkpoint(parts: &Parts) -> Option<(Arc<str>, Arc<str>)> {
    let (stated, model) = (parts.workload.model.as_deref()?, parts.model.as_ref()?);
    let config = model.origin.file.ends_with(".json");
    (!config && !model.is_named(stated)).then(|| (stated.into(), model.id.as_str().into()))
}
