//! A workload, or one phase of its schedule, in numbers.

use super::software::Served;
use crate::knob::{KNOBS, Knob};
use atlas_config::workload::{Arrival, PhaseSpec, PlanSpec, Shape, Traffic};
use atlas_config::{Mode, Workload};
use atlas_core::count::Count;
use atlas_document::Node;

/// One phase in numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Mode, parallelism, sequence, size.
    pub shape: Shape,
    /// Batch, sharding, formats, serving.
    pub plan: PlanSpec,
    /// What the serving software does by default.
    pub served: Served,
    /// Data-parallel attention groups of a serving replica where the files state none.
    pub default_groups: Count,
    /// Expert-parallel ranks where the files state none.
    pub default_ep: Count,
    /// Which knobs must leave it alone.
    pub pinned: Pinned,
    /// Minutes it lasts.
    pub minutes: f64,
    /// Scale of throughput, 1 if none is written.
    pub tokens_scale: f64,
    /// Scale of throughput and power, 1 if none is written.
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

/// Which knobs a phase's overrides pin: a bit each, by the knob's place in the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pinned([u128; 2]);

impl Pinned {
    /// The knobs whose place in a workload's file the overrides set.
    fn by(overrides: &Node) -> Pinned {
        let set = |path: &[&str]| overrides.at_path(path).is_some();
        let pinned = KNOBS.iter().filter(|spec| spec.home.in_workload().is_some_and(set));
        let mut bits = [0; 2];
        for spec in pinned {
            if let Some(word) = bits.get_mut(spec.knob as usize / 128) {
                *word |= 1u128 << (spec.knob as u32 % 128);
            }
        }
        Pinned(bits)
    }

    /// Whether the phase has its own value of the knob.
    #[must_use]
    pub fn pins(self, knob: Knob) -> bool {
        self.0.get(knob as usize / 128).is_some_and(|word| word & (1u128 << (knob as u32 % 128)) != 0)
    }
}

impl Phase {
    /// Groups of tensor-parallel ranks on each stage of a replica: context-parallel in training, of data-parallel
    /// attention in serving.
    #[must_use]
    pub fn groups(&self) -> Count {
        match self.shape.mode {
            Mode::Training => self.plan.cp.unwrap_or(Count::ONE),
            Mode::Inference => self.plan.attention_dp.unwrap_or(self.default_groups),
        }
    }

    /// Ranks that experts are distributed over.
    #[must_use]
    pub fn ep(&self) -> Count {
        self.plan.ep.unwrap_or(self.default_ep)
    }

    /// The workload as a whole.
    pub(super) fn whole(workload: &Workload) -> Phase {
        Phase {
            shape: workload.shape,
            plan: workload.plan,
            served: Served::default(),
            default_groups: Count::ONE,
            default_ep: Count::ONE,
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

    /// One phase of the schedule.
    pub(super) fn of(spec: &PhaseSpec) -> Phase {
        // The predecessor model reads a scale of 0 as "none given".
        let scale = |written: Option<f64>| written.filter(|scale| *scale != 0.0).unwrap_or(1.0);
        Phase {
            shape: spec.shape,
            plan: spec.plan,
            served: Served::default(),
            default_groups: Count::ONE,
            default_ep: Count::ONE,
            pinned: Pinned::by(&spec.overrides),
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
