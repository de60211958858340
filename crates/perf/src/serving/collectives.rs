//! Time of the collectives of a step: all-reduces over tensor-parallel ranks, exchanges of tokens between experts,
//! transfers between stages.

use super::exchange::{self, Exchange};
use super::fabric::Fabric;
use super::input::{AllReduce, Layout, ServingInput};
use super::shape::Shape;
use crate::collective;
use crate::constants::Constants;
use atlas_core::count::Count;
use atlas_core::math;

/// Number of collectives in a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    /// All-reduces: one per mixer and MLP.
    pub(super) reduces: f64,
    /// Exchanges of tokens: dispatch and combine in every layer with experts.
    pub(super) exchanges: f64,
}

impl Counts {
    pub(super) fn of(shape: &Shape, layout: &Layout) -> Counts {
        Counts {
            reduces: if layout.tp > 1.0 { shape.blocks } else { 0.0 },
            exchanges: if layout.attention_dp > 1.0 { 2.0 * shape.moe_layers } else { 0.0 },
        }
    }
}

/// Links between the ranks of a replica.
pub(super) struct Links {
    /// Between all ranks.
    pub(super) all: Fabric,
    /// Between the ranks of a tensor-parallel group.
    pub(super) reduce: Fabric,
}

impl Links {
    pub(super) fn of(input: &ServingInput, layout: &Layout, streamed: bool, c: &Constants) -> Links {
        let acc = &input.accelerator;
        let mut reduce = Fabric::of(acc, f64::from(layout.tp), streamed, c);
        let (ranks, inside) = (f64::from(layout.tp), acc.domain.max(1.0));
        if ranks > inside {
            // The vector leaves the domain through the NICs of all of its ranks, each of which carries a part.
            let through = inside * reduce.bw * acc.network.ring_share(1.0);
            reduce.bw = through.min(acc.effective_link_bw(c));
        } else if input.in_switch_reduction && collective::reduces_in_switch(acc) {
            reduce.bw *= collective::in_switch_gain(c.in_switch_gain, ranks);
        }
        if input.all_reduce == AllReduce::Library {
            // The steps of a ring inside a domain: reduce-scatter, then all-gather.
            let steps = 2.0 * (ranks.min(inside) - 1.0).max(0.0) * c.link_latency;
            reduce.latency = reduce.latency.max(c.library_latency + steps);
        }
        Links { all: Fabric::of(acc, layout.tp * layout.attention_dp, streamed, c), reduce }
    }
}

/// Time of a step's collectives, s: latencies per step, and time per token of a rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct Collectives {
    pub(super) reduce_latency: f64,
    pub(super) reduce_token: f64,
    pub(super) exchange_latency: f64,
    pub(super) exchange_token: f64,
    /// Difference in exchange time between a prompt token and a decode token.
    pub(super) exchange_prompt: f64,
    /// Latency of the transfer from stage to stage.
    pub(super) hop: f64,
    /// Load of the experts of the busiest rank relative to the mean.
    pub(super) imbalance: f64,
}

impl Collectives {
    pub(super) fn of(
        input: &ServingInput,
        layout: &Layout,
        shape: &Shape,
        counts: &Counts,
        links: &Links,
        key_ranks: f64,
        c: &Constants,
    ) -> Collectives {
        let (acc, f, fabric) = (&input.accelerator, &input.formats, &links.all);
        let ranks = layout.tp * layout.attention_dp;
        let hidden = shape.hidden * 2.0;
        let (reduces, exchanges) = (counts.reduces, counts.exchanges);
        // Attention groups gather and scatter tokens around the experts: one hidden vector per token to the rank of
        // each of its experts, at most one per rank, and back.
        let copies = shape.top_k.min(ranks).max(1.0) / layout.tp.max(Count::ONE);
        // Tokens are sent in the format of the experts' GEMMs (DeepEP's 8-bit dispatch) and returned in 16 bit.
        let token_bytes = exchanges * 0.5 * shape.expert_width * (f.expert.bytes().min(2.0) + 2.0);
        let excess = exchange::remaining_imbalance(layout, shape.experts) * c.expert_excess;
        let imbalance = 1.0 + excess * math::log2(f64::from(layout.ep.max(Count::ONE)));
        // Only copies for other domains pass the network, if there are any.
        let inside = if ranks > acc.domain { acc.domain.max(1.0) } else { 1.0 };
        let by_collective = token_bytes * copies * (ranks - inside)
            / ranks
            / fabric.bw
            / acc.network.exchange_share(ranks / acc.domain.max(1.0), 1.0);
        let (exchange_latency, exchange_token, exchange_prompt) = match Exchange::of(input, layout, shape, c) {
            None => (fabric.latency, by_collective, 0.0),
            // The busiest rank receives more tokens than the mean.
            Some(e) => {
                let bytes = token_bytes * imbalance;
                (e.latency, bytes * e.decode_byte, bytes * (e.prompt_byte - e.decode_byte))
            }
        };
        Collectives {
            // With a sharded KV cache, queries are gathered and outputs scattered once more per layer.
            reduce_latency: if key_ranks > 1.0 { 2.0 * reduces } else { reduces } * links.reduce.latency,
            // A ring moves 2 (n-1)/n of the vector.
            reduce_token: reduces * hidden * 2.0 * (layout.tp - 1.0) / layout.tp.max(Count::ONE) / links.reduce.bw,
            exchange_latency: exchanges * exchange_latency,
            exchange_token,
            exchange_prompt,
            hop: if layout.pp > 1.0 { fabric.latency } else { 0.0 },
            imbalance,
        }
    }

    /// Time of one step on a rank with `tokens` tokens, `prompt_tokens` of which are prompt tokens, s.
    pub(super) fn seconds(&self, tokens: f64, prompt_tokens: f64) -> f64 {
        self.reduce_latency
            + self.reduce_token * tokens
            + self.exchange_latency
            + self.exchange_token * tokens
            + self.exchange_prompt * prompt_tokens
            + self.hop
    }
}
