//! Time between two tokens of a sequence: a step that decodes, which prompts of other sequences prolong or interrupt.

use super::front_end::FrontEnd;
use super::input::{Load, ServingInput};
use super::machine::Machine;
use super::spread::Spread;
use super::steady_state::{self, Cycle};
use crate::constants::Constants;
use atlas_core::math;
use atlas_core::statistics::normal_quantile;

/// Gaps between the decode steps of a sequence.
#[derive(Debug, Clone, Copy)]
pub struct Gaps {
    /// Time of a step without prompts, s.
    decode: f64,
    /// Mean additional time of a gap with prompts, s.
    extra: f64,
    /// Mean number of prompts in a gap with prompts; below 1 if a step computes part of a prompt.
    prompts: f64,
    /// Maximum number of prompts in a gap.
    most: f64,
}

impl Gaps {
    /// Gaps in a closed loop, or in front of a backlog if requests are `queued` when a sequence ends.
    pub fn closed(input: &ServingInput, c: &Constants, m: &Machine, cycle: &Cycle, queued: bool) -> Gaps {
        if input.chunked_prefill {
            return Gaps::of_mixed_steps(input, m, cycle);
        }
        let others = (cycle.batch - 1.0).max(0.0);
        let most = others.max(1.0);
        let prompts = Clump::of(input, c, cycle, others, queued).prompts().clamp(1.0, most);
        Gaps { decode: cycle.decode_step, extra: prompts * cycle.prefill, prompts, most }
    }

    /// Gaps at `rate` random arrivals per second, of which at most `most` sequences run.
    pub fn open(input: &ServingInput, m: &Machine, cycle: &Cycle, rate: f64, most: f64) -> Gaps {
        if input.chunked_prefill {
            return Gaps::of_mixed_steps(input, m, cycle);
        }
        // The prompts that arrived during a decode step, and those that arrive while they are computed: a busy period.
        let arrived = rate * cycle.decode_step;
        let some = (1.0 - math::exp(-arrived)).max(1e-12);
        let busy = (1.0 - rate * cycle.prefill).max(1e-6);
        let prompts = (arrived / some / busy).clamp(1.0, most.max(1.0));
        Gaps { decode: cycle.decode_step, extra: prompts * cycle.prefill, prompts, most }
    }

    /// Steps that compute prompts together with decoding sequences, within a token budget.
    fn of_mixed_steps(input: &ServingInput, m: &Machine, cycle: &Cycle) -> Gaps {
        let extra = (cycle.mixed_step - cycle.decode_step).max(0.0);
        let prompts = extra / cycle.prefill.max(1e-12);
        Gaps {
            decode: cycle.decode_step,
            extra,
            prompts,
            most: steady_state::prompts_beside(m, input, cycle.batch).max(prompts),
        }
    }

    /// Mean and percentiles of the gaps if their mean is `mean`, which determines the share of gaps with prompts.
    pub fn spread(&self, mean: f64) -> Spread {
        let interrupted = mean - self.decode;
        if interrupted <= 0.0 {
            return Spread::of(mean, 0.0, 0.0);
        }
        let extra = self.extra.max(interrupted);
        let share = interrupted / extra;
        let at = |beyond: f64| {
            if share <= beyond { self.decode } else { self.decode + extra * self.relative(1.0 - beyond / share) }
        };
        Spread { mean, p50: at(0.5), p95: at(0.05), p99: at(0.01) }
    }

    /// Quantile `q` of the number of prompts in a gap that has any, relative to the mean: one, and a Poisson number with
    /// the quantiles of a gamma distribution (Wilson and Hilferty, PNAS 17 (1931)).
    fn relative(&self, q: f64) -> f64 {
        let others = self.prompts - 1.0;
        if others <= 1e-9 || self.prompts >= self.most * (1.0 - 1e-9) {
            return 1.0;
        }
        let z = normal_quantile(q.clamp(1e-9, 1.0 - 1e-9));
        let root = (1.0 - 1.0 / (9.0 * others) + z / (3.0 * others.sqrt())).max(0.0);
        (1.0 + others * root * root * root).min(self.most) / self.prompts
    }
}

/// Whole prompts that are computed between two decode steps of a closed loop. No sequence ends meanwhile, and no decode
/// step begins until all prompts that wait are computed.
///
/// A request is admitted some decode steps after the sequence that it replaces has ended. If prompts are being computed by
/// then, it joins them. Prompts thus run after a decode step in which at least one is admitted, together with those of the
/// sequences that ended in the steps since.
#[derive(Debug, Clone, Copy)]
pub struct Clump {
    /// Sequences that end per decode step.
    ends: f64,
    /// Probability that any does.
    some: f64,
    /// Decode steps until a request is admitted.
    admission: f64,
}

impl Clump {
    /// The prompts of `sequences` sequences.
    pub fn of(input: &ServingInput, c: &Constants, cycle: &Cycle, sequences: f64, queued: bool) -> Clump {
        let steps = steady_state::decode_steps(input).max(1.0);
        let ends = sequences / steps;
        let admission = if queued || matches!(input.load, Load::Burst { .. }) {
            0.0
        } else {
            FrontEnd::of(input, c).admission_delay() / cycle.decode_step.max(1e-12) + c.boundary_steps
        };
        Clump { ends, some: (1.0 - math::exp(-ends)).max(1e-12), admission: admission.min(steps) }
    }

    /// Mean number of prompts.
    fn prompts(&self) -> f64 {
        self.ends / self.some + self.ends * self.admission
    }

    /// Mean number of prompts ahead of a prompt.
    pub fn prompts_ahead(&self) -> f64 {
        let (first, later) = (1.0 / self.some, self.admission);
        0.5 * self.ends * (first + later * later + 2.0 * first * later) / (first + later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantile of a Poisson number with mean `mean`.
    fn poisson_quantile(mean: f64, q: f64) -> f64 {
        let (mut n, mut each, mut sum) = (0.0, math::exp(-mean), math::exp(-mean));
        while sum < q {
            n += 1.0;
            each *= mean / n;
            sum += each;
        }
        n
    }

    #[test]
    fn percentiles_of_gaps_are_those_of_a_poisson_number_of_prompts() {
        for others in [0.3, 1.0, 3.0, 10.0, 30.0] {
            let prompts = 1.0 + others;
            let gaps = Gaps { decode: 0.0, extra: prompts, prompts, most: f64::INFINITY };
            let found = gaps.spread(prompts);
            for (found, q) in [(found.p50, 0.5), (found.p95, 0.95), (found.p99, 0.99)] {
                let exact = 1.0 + poisson_quantile(others, q);
                assert!((found - exact).abs() < 0.8 + 0.02 * exact, "{others}, {q}: {found} {exact}");
            }
        }
    }

    #[test]
    fn rare_prompts_appear_only_in_high_percentiles() {
        let gaps = Gaps { decode: 1.0, extra: 20.0, prompts: 1.0, most: 8.0 };
        let found = gaps.spread(1.6);
        assert_eq!((found.mean, found.p50, found.p95, found.p99), (1.6, 1.0, 1.0, 21.0));
    }
}
