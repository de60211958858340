//! Target × workload × profile × knobs, resolved to plain numbers: the only thing an engine sees.

use std::sync::Arc;

use crate::knob::{Knob, KnobError, Overrides, Setting};
use crate::spec::profile::Coefficients;
use crate::spec::workload::{Arrival, PhaseSpec, Pinned, Shape, Traffic};
use crate::spec::{Mode, Profile, Target, Workload};

/// Price of energy where a target states none, USD/kWh. The founding system's fixed figure, near the price US industry
/// pays; `cost.usd_per_kwh` of a target and the knob `usd_per_kwh` replace it.
pub const USD_PER_KWH: f64 = 0.12;
/// The seed where none is given: the founding system's default.
pub const SEED: i128 = 1337;
/// The fabric where a workload names none: the founding system's default.
pub const FABRIC: &str = "IB";

/// Plain numbers for an engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Accelerators in one node.
    pub accelerators_per_node: f64,
    /// Nodes.
    pub num_nodes: f64,
    /// Memory of one accelerator, GB.
    pub memory_gb_per_accel: f64,
    /// Nominal power of one node, W.
    pub node_watts: f64,
    /// Rental of one node, USD/h.
    pub hourly_usd: f64,
    /// Power usage effectiveness.
    pub pue: f64,
    /// Price of energy, USD/kWh.
    pub usd_per_kwh: f64,
    /// Coefficients of the semi-empirical model.
    pub coefficients: Coefficients,
    /// gamma_fabric of the fabric in force.
    pub fabric_factor: f64,
    /// Name of the fabric in force.
    pub fabric: Arc<str>,
    /// Sequences per device and step.
    pub microbatch: f64,
    /// Kernels launched as captured graphs.
    pub cuda_graphs: bool,
    /// NICs that read accelerator memory directly.
    pub gpudirect_rdma: bool,
    /// NICs shared by SR-IOV rather than bare metal.
    pub sriov: bool,
    /// The workload as a whole.
    pub base: Phase,
    /// The phases of its schedule; empty without one.
    pub phases: Vec<Phase>,
    /// Seed of the noise.
    pub seed: i128,
    /// Whether noise is drawn.
    pub noise: bool,
}

/// One phase in numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Mode, parallelism, sequence, size.
    pub shape: Shape,
    /// Which of them a knob must leave alone.
    pub pinned: Pinned,
    /// Minutes it lasts.
    pub minutes: f64,
    /// Scale of throughput, 1 where none is written.
    pub tokens_scale: f64,
    /// Scale of throughput and power, 1 where none is written.
    pub autoscale_factor: f64,
    /// Load and burstiness.
    pub traffic: Traffic,
    /// Explicit arrivals.
    pub arrival: Arrival,
    /// Its index in the schedule: added to the seed.
    pub index: u32,
    /// First draw of the generator seeded with `seed + index`, in [0, 1). Drawn here because seeding MT19937 costs
    /// twenty times the estimate.
    pub draw: f64,
}

/// Why a scenario cannot be resolved.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScenarioError {
    /// A knob was refused.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// The fabric in force is none the profile is calibrated for.
    #[error("fabric `{fabric}` is not calibrated in profile `{profile}`; known are {known}")]
    Fabric {
        /// The fabric.
        fabric: Arc<str>,
        /// The profile.
        profile: Arc<str>,
        /// The fabrics it knows.
        known: String,
    },
}

impl Scenario {
    /// Resolves what the files say, then lays the user's knobs over it.
    pub fn resolve(
        target: &Target,
        workload: &Workload,
        profile: &Profile,
        overrides: &Overrides,
    ) -> Result<Scenario, ScenarioError> {
        let mut scenario = Scenario::from_files(target, workload, profile);
        for (knob, setting) in overrides {
            scenario.set(*knob, setting, profile)?;
        }
        scenario.check_fabric(profile)?;
        Ok(scenario)
    }

    /// What the files say, without a look at whether the profile knows the fabric: [`Scenario::resolve`] checks that.
    #[must_use]
    pub fn from_files(target: &Target, workload: &Workload, profile: &Profile) -> Scenario {
        let tuning = &workload.tuning;
        let fabric = tuning.fabric.clone().unwrap_or_else(|| FABRIC.into());
        let mut scenario = Scenario {
            accelerators_per_node: target.accelerators_per_node,
            num_nodes: target.num_nodes,
            memory_gb_per_accel: target.memory_gb_per_accel,
            node_watts: target.cost.energy_watts_node,
            hourly_usd: target.cost.hourly_usd,
            pue: target.cost.pue,
            usd_per_kwh: target.cost.usd_per_kwh.unwrap_or(USD_PER_KWH),
            coefficients: profile.coefficients,
            fabric_factor: profile.fabric_factor(&fabric).unwrap_or(f64::NAN),
            fabric,
            microbatch: tuning.microbatch.unwrap_or(1.0),
            cuda_graphs: tuning.cuda_graphs.unwrap_or(false),
            gpudirect_rdma: tuning.gpudirect_rdma.unwrap_or(false),
            sriov: tuning.virt.as_deref() == Some("sriov"),
            base: Phase::whole(workload),
            phases: workload.phases.iter().map(Phase::of).collect(),
            seed: SEED,
            noise: true,
        };
        scenario.reseed(SEED, first_draw);
        scenario
    }

    fn check_fabric(&self, profile: &Profile) -> Result<(), ScenarioError> {
        if self.fabric_factor.is_finite() {
            return Ok(());
        }
        Err(ScenarioError::Fabric {
            fabric: Arc::clone(&self.fabric),
            profile: Arc::clone(&profile.name),
            known: profile.fabrics.iter().map(|(name, _)| &**name).collect::<Vec<_>>().join(", "),
        })
    }

    /// Accelerators in all nodes.
    #[must_use]
    pub fn accelerators(&self) -> f64 {
        self.accelerators_per_node * self.num_nodes
    }

    /// Training or inference.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.base.shape.mode
    }

    /// The value of a knob.
    #[must_use]
    pub fn get(&self, knob: Knob) -> Setting {
        let shape = &self.base.shape;
        match knob {
            Knob::Microbatch => Setting::Number(self.microbatch),
            Knob::CudaGraphs => Setting::Toggle(self.cuda_graphs),
            Knob::GpudirectRdma => Setting::Toggle(self.gpudirect_rdma),
            Knob::Virt => Setting::Choice(if self.sriov { "sriov" } else { "bare" }.into()),
            Knob::Fabric => Setting::Choice(Arc::clone(&self.fabric)),
            Knob::Tp => Setting::Number(shape.tp),
            Knob::Pp => Setting::Number(shape.pp),
            Knob::Dp => Setting::Number(shape.dp),
            Knob::Prompt => Setting::Number(shape.prompt),
            Knob::Generate => Setting::Number(shape.generate),
            Knob::NumNodes => Setting::Number(self.num_nodes),
            Knob::HourlyUsd => Setting::Number(self.hourly_usd),
            Knob::UsdPerKwh => Setting::Number(self.usd_per_kwh),
            Knob::Pue => Setting::Number(self.pue),
            Knob::Seed => Setting::Seed(self.seed),
            Knob::Noise => Setting::Toggle(self.noise),
        }
    }

    /// Turns a knob. A phase that overrides the same number keeps its own.
    pub fn set(&mut self, knob: Knob, setting: &Setting, profile: &Profile) -> Result<(), KnobError> {
        match (knob, setting) {
            (Knob::CudaGraphs, Setting::Toggle(on)) => self.cuda_graphs = *on,
            (Knob::GpudirectRdma, Setting::Toggle(on)) => self.gpudirect_rdma = *on,
            (Knob::Noise, Setting::Toggle(on)) => self.noise = *on,
            (Knob::Virt, Setting::Choice(word)) => self.sriov = &**word == "sriov",
            (Knob::Fabric, Setting::Choice(word)) => {
                self.fabric = Arc::clone(word);
                self.fabric_factor = profile.fabric_factor(word).unwrap_or(f64::NAN);
            }
            (Knob::Seed, Setting::Seed(seed)) => self.reseed(*seed, first_draw),
            (Knob::Microbatch, Setting::Number(value)) => self.microbatch = *value,
            (Knob::NumNodes, Setting::Number(value)) => self.num_nodes = *value,
            (Knob::HourlyUsd, Setting::Number(value)) => self.hourly_usd = *value,
            (Knob::UsdPerKwh, Setting::Number(value)) => self.usd_per_kwh = *value,
            (Knob::Pue, Setting::Number(value)) => self.pue = *value,
            (Knob::Tp, Setting::Number(value)) => self.shape(|phase| (&mut phase.shape.tp, phase.pinned.tp), *value),
            (Knob::Pp, Setting::Number(value)) => self.shape(|phase| (&mut phase.shape.pp, phase.pinned.pp), *value),
            (Knob::Dp, Setting::Number(value)) => self.shape(|phase| (&mut phase.shape.dp, phase.pinned.dp), *value),
            (Knob::Prompt, Setting::Number(value)) => {
                self.shape(|phase| (&mut phase.shape.prompt, phase.pinned.prompt), *value)
            }
            (Knob::Generate, Setting::Number(value)) => {
                self.shape(|phase| (&mut phase.shape.generate, phase.pinned.generate), *value)
            }
            (knob, setting) => {
                // A setting of the wrong kind can only come from a program, which then reads what it should have passed.
                let text = setting.to_string();
                let parsed = knob.parse(&text, &profile.fabrics)?;
                if &parsed != setting {
                    return self.set(knob, &parsed, profile);
                }
            }
        }
        Ok(())
    }

    /// Sets a number of the base and of every phase that does not pin it.
    fn shape(&mut self, slot: impl Fn(&mut Phase) -> (&mut f64, bool), value: f64) {
        for phase in std::iter::once(&mut self.base).chain(&mut self.phases) {
            let (number, pinned) = slot(phase);
            if !pinned {
                *number = value;
            }
        }
    }

    /// Sets the seed. `draw` gives the first draw of a seed: [`first_draw`], or a memory of it.
    pub fn reseed(&mut self, seed: i128, mut draw: impl FnMut(i128) -> f64) {
        self.seed = seed;
        for phase in std::iter::once(&mut self.base).chain(&mut self.phases) {
            phase.draw = draw(seed.saturating_add(i128::from(phase.index)));
        }
    }
}

impl Phase {
    fn whole(workload: &Workload) -> Phase {
        Phase {
            shape: workload.shape,
            pinned: Pinned::default(),
            minutes: workload.duration_minutes.unwrap_or_default(),
            tokens_scale: 1.0,
            autoscale_factor: 1.0,
            traffic: Traffic::STEADY,
            arrival: Arrival::default(),
            index: 0,
            draw: 0.0,
        }
    }

    fn of(spec: &PhaseSpec) -> Phase {
        // The founding model reads a scale of 0 as "none given".
        let scale = |written: Option<f64>| written.filter(|scale| *scale != 0.0).unwrap_or(1.0);
        Phase {
            shape: spec.shape,
            pinned: spec.pinned,
            minutes: spec.minutes,
            tokens_scale: scale(spec.tokens_scale),
            autoscale_factor: scale(spec.autoscale_factor),
            traffic: spec.traffic,
            arrival: spec.arrival,
            index: spec.index,
            draw: 0.0,
        }
    }
}

/// The first `random()` of Python's `random.Random(seed)`: MT19937 seeded by `init_by_array` with the seed's 32-bit
/// words, little end first, sign dropped; two outputs make a 53-bit fraction.
#[must_use]
pub fn first_draw(seed: i128) -> f64 {
    let mut words = Vec::with_capacity(4);
    let mut rest = seed.unsigned_abs();
    while rest > 0 || words.is_empty() {
        #[expect(clippy::cast_possible_truncation, reason = "the low 32 bits are what is meant")]
        words.push(rest as u32);
        rest >>= 32;
    }
    let mut generator = rand_mt::Mt::new_with_key(words);
    let high = f64::from(generator.next_u32() >> 5);
    let low = f64::from(generator.next_u32() >> 6);
    (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
}
