//! A workload, or one phase of its schedule, as plain numbers.

use super::serving_defaults::ServingDefaults;
use crate::knob::{KNOBS, Knob};
use atlas_config::workload::{Arrival, PhaseSpec, PlanSpec, Shape, Traffic};
use atlas_config::{Mode, Workload};
use atlas_core::count::Count;
use atlas_document::Node;

/// A workload, or one phase of its schedule, as plain numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Mode, parallelism, sequence lengths, model size.
    pub shape: Shape,
    /// Batch, sharding, formats, serving.
    pub plan: PlanSpec,
    /// Defaults of the serving software.
    pub serving_defaults: ServingDefaults,
    /// Default number of data-parallel attention groups of a serving replica.
    pub default_groups: Count,
    /// Default number of expert-parallel ranks.
    pub default_ep: Count,
    /// Whether the files state no part of the layout. Unlike `plan`, knobs do not change this.
    pub layout_in_files_is_open: bool,
    /// Whether the model generates tokens; encoders have no decode, no KV cache and no prefix to reuse.
    pub generates: bool,
    /// Knobs that do not change this phase.
    pub pinned: KnobSet,
    /// Duration in minutes.
    pub minutes: f64,
    /// Scale of throughput; 1 if not stated.
    pub tokens_scale: f64,
    /// Scale of throughput and power; 1 if not stated.
    pub autoscale_factor: f64,
    /// Load and burstiness.
    pub traffic: Traffic,
    /// Explicit arrival parameters.
    pub arrival: Arrival,
    /// Index in the schedule; added to the seed.
    pub index: u32,
    /// First draw of the generator seeded with `seed + index`, in [0, 1). Cached here because seeding MT19937 takes
    /// twenty times as long as the estimate.
    pub draw: f64,
}

/// Set of knobs: one bit per knob, at its index in the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KnobSet([u128; 2]);

impl KnobSet {
    /// Knobs whose field in a workload file is set by the overrides of a phase.
    fn set_by(overrides: &Node) -> KnobSet {
        let is_set = |path: &[&str]| overrides.at_path(path).is_some();
        let mut knobs = KnobSet::default();
        for spec in KNOBS.iter().filter(|spec| spec.location.in_workload().is_some_and(is_set)) {
            knobs.insert(spec.knob);
        }
        knobs
    }

    /// Adds a knob.
    pub(super) fn insert(&mut self, knob: Knob) {
        if let Some(word) = self.0.get_mut(knob as usize / 128) {
            *word |= 1u128 << (knob as u32 % 128);
        }
    }

    /// Whether the set contains the knob.
    #[must_use]
    pub fn contains(self, knob: Knob) -> bool {
        self.0.get(knob as usize / 128).is_some_and(|word| word & (1u128 << (knob as u32 % 128)) != 0)
    }
}

impl Phase {
    /// Groups of tensor-parallel ranks per stage of a replica: context-parallel groups in training, data-parallel
    /// attention groups in serving.
    #[must_use]
    pub fn groups(&self) -> Count {
        match self.shape.mode {
            Mode::Training => self.plan.cp.unwrap_or(Count::ONE),
            Mode::Inference => self.plan.attention_dp.unwrap_or(self.default_groups),
        }
    }

    /// Number of expert-parallel ranks.
    #[must_use]
    pub fn ep(&self) -> Count {
        self.plan.ep.unwrap_or(self.default_ep)
    }

    /// The workload as a whole.
    pub(super) fn whole(workload: &Workload) -> Phase {
        Phase {
            shape: workload.shape,
            plan: workload.plan,
            serving_defaults: ServingDefaults::default(),
            default_groups: Count::ONE,
            default_ep: Count::ONE,
            layout_in_files_is_open: Phase::states_no_layout(&workload.plan, workload.shape.mode),
            generates: true,
            pinned: KnobSet::default(),
            minutes: workload.duration_minutes.unwrap_or_default(),
            tokens_scale: 1.0,
            autoscale_factor: 1.0,
            traffic: Traffic::STEADY,
            arrival: Arrival::default(),
            index: 0,
            draw: 0.0,
        }
    }

    /// One phase of the schedule.
    pub(super) fn of(spec: &PhaseSpec) -> Phase {
        // The predecessor's model treats a scale of 0 as not given.
        let scale = |written: Option<f64>| written.filter(|scale| *scale != 0.0).unwrap_or(1.0);
        Phase {
            shape: spec.shape,
            plan: spec.plan,
            serving_defaults: ServingDefaults::default(),
            default_groups: Count::ONE,
            default_ep: Count::ONE,
            layout_in_files_is_open: Phase::states_no_layout(&spec.plan, spec.shape.mode),
            generates: true,
            pinned: KnobSet::set_by(&spec.overrides),
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
