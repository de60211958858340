//! The exchange of tokens between experts by kernels that write directly into the memory of other ranks: over the
//! scale-up fabric inside a domain, over the network beyond it.
//!
//! In decode, every token is sent once per expert, directly to the expert's rank. In prefill, where bandwidth matters
//! more than latency, every domain receives one copy of a token over the network and forwards it inside (arXiv
//! 2412.19437, section 3.2.2).

use super::input::{Dispatch, Layout, ServingInput};
use super::shape::Shape;
use crate::constants::Constants;
use crate::constants::documented::EXCHANGE_CORES;
use atlas_core::count::Count;
use atlas_core::math;

/// The exchange of one layer in one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exchange {
    /// Latency before the first byte, s.
    pub latency: f64,
    /// Seconds per byte of a decode token on the busiest link, including copies.
    pub decode_byte: f64,
    /// Seconds per byte of a prompt token on the busiest link, including copies.
    pub prompt_byte: f64,
}

impl Exchange {
    /// The exchange between the ranks of a replica; `None` if a collective is used.
    pub fn of(input: &ServingInput, layout: &Layout, shape: &Shape, c: &Constants) -> Option<Exchange> {
        if input.experts.dispatch == Dispatch::Collective || layout.attention_dp <= 1.0 {
            return None;
        }
        let acc = &input.accelerator;
        let ranks = layout.tp * layout.attention_dp;
        let inside = acc.domain.clamp(1.0, ranks.max(1.0));
        let domains = ranks / inside;
        let (near, far) = (acc.effective_link_bw(c), (acc.nic_bw * c.nic_fraction).max(1e6));
        let far = far * acc.network.exchange_share(domains, 1.0);
        // Tensor-parallel ranks share the copies of a token.
        let experts = shape.top_k.min(ranks).max(1.0);
        let share = 1.0 / layout.tp.max(Count::ONE);
        // One copy per expert: over the fabric within the domain and over the network to the others, concurrently.
        let direct = f64::max(experts * (1.0 - 1.0 / domains) / far, experts * (inside - 1.0) / ranks / near);
        // One copy per remote domain that has one of the token's experts. All copies are forwarded inside the domain.
        let reached = domains * (1.0 - math::powf(1.0 - 1.0 / domains, experts));
        let passed = f64::max(reached * (1.0 - 1.0 / domains) / far, experts * (1.0 - 1.0 / inside) / near);
        Some(Exchange {
            latency: if domains > 1.0 { c.nic_latency } else { c.one_shot_latency },
            decode_byte: share * direct,
            prompt_byte: share * passed,
        })
    }
}

/// Share of the cores that compute during the exchange of prompt tokens.
pub fn compute_core_share(input: &ServingInput, layout: &Layout) -> f64 {
    let travels = input.experts.dispatch == Dispatch::Direct && layout.attention_dp > 1.0;
    if travels && input.experts.overlapped_half_batches {
        1.0 - (EXCHANGE_CORES / input.accelerator.cores.max(1.0)).min(0.5)
    } else {
        1.0
    }
}

/// Share of the busiest rank's excess load that remains with redundant copies of busy experts.
///
/// Loads are assumed to fall linearly from the busiest expert to the median. A copy halves the load of its expert, so
/// with copies of the `redundant` busiest experts, the maximum is the load of the busiest expert without one. With
/// copies of half of all experts, no excess remains.
pub fn remaining_imbalance(layout: &Layout, experts: f64) -> f64 {
    if experts <= 0.0 { 1.0 } else { (1.0 - 2.0 * layout.redundant / experts).clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::input::ExpertSpread;
    use super::*;
    use crate::accelerator::Accelerator;
    use crate::arch::Architecture;

    /// 256 experts, 8 per token, over `ranks` accelerators in domains of 8: 50 GB/s between domains and 200 GB/s
    /// inside.
    fn spread(ranks: u32) -> (ServingInput, Layout, Shape) {
        let accelerator = Accelerator { link_bw: 200e9, nic_bw: 50e9, domain: 8.0, ..Accelerator::default() };
        let arch = Architecture {
            hidden: Count::new(7168),
            experts: Count::new(256),
            top_k: Count::new(8),
            moe_ffn: Count::new(2048),
            ..Architecture::default()
        };
        let ranks = Count::new(ranks);
        let layout = Layout { ep: ranks, attention_dp: ranks, ..Layout::default() };
        let experts = ExpertSpread { dispatch: Dispatch::Direct, ..ExpertSpread::default() };
        let input = ServingInput { accelerator, arch, layout, experts, ..ServingInput::default() };
        let shape = Shape::new(&arch, &input.formats, &layout);
        (input, layout, shape)
    }

    #[test]
    fn expert_dispatch_and_combine_match_measured_latencies() {
        // 128 tokens per rank, 8-bit dispatch and 16-bit combine, microseconds (README of the library described in
        // arXiv 2412.19437, release 1.2.1, 400 Gb/s NICs).
        for (ranks, there, back) in [(16, 118.0, 195.0), (32, 155.0, 273.0), (64, 173.0, 314.0), (128, 192.0, 369.0)] {
            let (input, layout, shape) = spread(ranks);
            let exchange = Exchange::of(&input, &layout, &shape, &Constants::default()).unwrap();
            let time = |bytes: f64| 1e6 * (exchange.latency + 128.0 * 7168.0 * bytes * exchange.decode_byte);
            for (got, measured) in [(time(1.0), there), (time(2.0), back)] {
                assert!((0.75..1.2).contains(&(got / measured)), "{ranks} ranks: {got:.0} for {measured} µs");
            }
        }
    }

    #[test]
    fn expert_dispatch_costs_less_per_prefill_byte_and_inside_a_domain() {
        let c = Constants::default();
        let (input, layout, shape) = spread(32);
        let apart = Exchange::of(&input, &layout, &shape, &c).unwrap();
        assert!(apart.prompt_byte < 0.5 * apart.decode_byte);
        let mut together = input;
        together.accelerator.domain = 72.0;
        let inside = Exchange::of(&together, &layout, &shape, &c).unwrap();
        assert!(inside.decode_byte < 0.5 * apart.decode_byte);
        together.experts.dispatch = Dispatch::Collective;
        assert_eq!(Exchange::of(&together, &layout, &shape, &c), None);
    }

    #[test]
    fn redundant_experts_reduce_excess_load_linearly_to_zero() {
        let left = |redundant| remaining_imbalance(&Layout { redundant, ..Layout::default() }, 256.0);
        assert_eq!(
            (left(Count::ZERO), left(Count::new(64)), left(Count::new(128)), left(Count::new(512))),
            (1.0, 0.5, 0.0, 0.0)
        );
    }
}
