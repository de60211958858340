//! Efficiency factors of a target, and the constants that each factor changes.

use super::constants::Constants;
use std::borrow::Cow;

/// Factors on four groups of the engine's constants; 1 keeps the shipped values, 1.1 is 10 % faster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factors {
    /// On the share of peak FLOP/s that GEMMs and attention sustain.
    pub compute: f64,
    /// On the share of the memory bandwidth.
    pub memory: f64,
    /// On the bandwidth and latency of collectives.
    pub network: f64,
    /// On the speed of kernel launches and all other host work.
    pub host: f64,
}

impl Default for Factors {
    fn default() -> Factors {
        Factors { compute: 1.0, memory: 1.0, network: 1.0, host: 1.0 }
    }
}

impl Factors {
    /// Names of the factors, in order of declaration.
    pub const NAMES: [&'static str; 4] = ["compute", "memory", "network", "host"];

    /// Values in the order of [`Factors::NAMES`].
    #[must_use]
    pub fn all(&self) -> [f64; 4] {
        [self.compute, self.memory, self.network, self.host]
    }

    /// Creates factors from values in the order of [`Factors::NAMES`].
    #[must_use]
    pub fn of([compute, memory, network, host]: [f64; 4]) -> Factors {
        Factors { compute, memory, network, host }
    }
}

/// A constant that a factor changes, and how.
struct AffectedConstant {
    name: &'static str,
    /// Index of the factor in [`Factors::NAMES`].
    factor: usize,
    effect: Effect,
    accessor: fn(&mut Constants) -> &mut f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Effect {
    /// A share of a datasheet value: multiplied, at most 1.
    Share,
    /// A rate: multiplied.
    Rate,
    /// A time: divided.
    Time,
}

macro_rules! affected {
    ($($factor:literal $effect:ident $($name:ident)+;)+) => {
        &[$($(AffectedConstant {
            name: stringify!($name),
            factor: $factor,
            effect: Effect::$effect,
            accessor: |c: &mut Constants| &mut c.$name,
        },)+)+]
    };
}

const AFFECTED: &[AffectedConstant] = affected! {
    0 Share gemm_ampere gemm_hopper gemm_blackwell gemm_young gemm_systolic gemm_other gemm_unmeasured;
    1 Share memory_fraction kv_fraction;
    1 Rate core_bw head_bw;
    2 Share link_fraction pcie_fraction nic_fraction;
    2 Time link_latency nic_latency one_shot_latency pcie_latency library_latency;
    3 Time issue step_overhead kernel_gap;
    3 Time kernel_graph kernel_prefill kernel_native kernel_eager step_compiled step_python step_incremental;
    3 Time host_per_sequence stream_per_sequence front_end request_overhead;
};

fn apply_factors(constants: &mut Constants, factors: &Factors) {
    let all = factors.all();
    for one in AFFECTED {
        let factor = all.get(one.factor).copied().unwrap_or(1.0);
        let accessor = (one.accessor)(constants);
        *accessor = match one.effect {
            Effect::Share => (*accessor * factor).min(1.0),
            Effect::Rate => *accessor * factor,
            Effect::Time => *accessor / factor,
        };
    }
}

impl Constants {
    /// The shipped constants with a target's efficiency factors applied.
    #[must_use]
    pub fn with_factors(factors: &Factors) -> Cow<'static, Constants> {
        if *factors == Factors::default() {
            return Cow::Borrowed(&Constants::SHIPPED);
        }
        let mut constants = Constants::SHIPPED;
        apply_factors(&mut constants, factors);
        Cow::Owned(constants)
    }
}

/// Index of the factor that changes the constant named `name`, if any.
#[must_use]
pub fn factor_of(name: &str) -> Option<usize> {
    AFFECTED.iter().find(|one| one.name == name).map(|one| one.factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_constant_has_an_efficiency_factor() {
        let times = Constants::FIELDS.iter().filter(|field| field.unit == "s");
        let unmoved: Vec<&str> = times.map(|field| field.name).filter(|name| factor_of(name).is_none()).collect();
        assert!(unmoved.is_empty(), "{unmoved:?} follow neither the network nor the host");
    }

    #[test]
    fn default_factors_keep_constants_and_shares_stay_at_most_one() {
        assert_eq!(*Constants::with_factors(&Factors::default()), Constants::default());
        let most = Factors { compute: 5.0, memory: 5.0, network: 5.0, host: 5.0 };
        let c = Constants::with_factors(&most);
        assert!(c.gemm_hopper <= 1.0 && c.memory_fraction <= 1.0 && c.nic_fraction <= 1.0);
        assert!(c.step_overhead < Constants::default().step_overhead);
        assert!(Constants::with_factors(&most).core_bw > Constants::default().core_bw);
    }
}
