//! Properties shared by the replicas of a pool: step time, KV cache capacity, scheduler limits.

use super::input::{Input, Prefixes};
use super::request::Request;
use super::workload::Demand;
use crate::kernel::{Stream, Time};
use atlas_core::count::Count;
use atlas_perf::serving::HostOverlap;
use atlas_perf::serving::machine::Machine;
use atlas_perf::serving::steady_state::padded_batch;
use atlas_perf::serving::step::{StepTime, Tokens};
use atlas_perf::serving::{Admission, Gathering, Layout, Speculation, admission, kv, speculative, steady_state};

/// Purpose of the random streams of accepted drafts.
const ACCEPTANCE: u32 = 8;

/// Properties shared by the replicas of a pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Engine {
    machine: Machine<'static>,
    draft_model: Option<Machine<'static>>,
    pub(super) total_blocks: u64,
    /// Blocks that must stay free when a request is admitted, so that running ones can grow.
    pub(super) watermark: u64,
    /// Whether a preempted sequence finds its earlier blocks again unless they were overwritten. Engines that schedule
    /// ahead cache prefixes by default.
    pub(super) caches_prefixes: bool,
    pub(super) block_size: u32,
    pub(super) piece_tokens: u32,
    pub(super) max_num_seqs: usize,
    /// Number of attention groups, and maximum tokens of a step in each.
    pub(super) groups: usize,
    pub(super) max_num_batched_tokens: u32,
    /// Maximum tokens of a chunk, which is part of one micro-batch in the pipeline.
    pub(super) chunk: u32,
    pub(super) threshold: u32,
    pub(super) chunked_prefill: bool,
    pub(super) reserve_output: bool,
    /// Whether layers with a sliding window keep the whole sequence.
    full_window_cache: bool,
    pub(super) overlapped: bool,
    /// Steps for which prompts are held back until every attention group has one.
    pub(super) balance_steps: u32,
    /// Condition on the number of waiting requests under which decoding is interrupted.
    pub(super) gathering: Option<Gathering>,
    /// Decode steps between two polls of the queue.
    pub(super) recv_interval: u32,
    /// Tokens that a decoding sequence verifies in a step.
    pub(super) verified_tokens: u32,
    speculation: Speculation,
    pub(super) share_found: f64,
    pub(super) cached: bool,
    seed: u64,
    /// Whether sequences leave after their prompt, or arrive with it computed.
    pub(super) prefill_only: bool,
    pub(super) prefilled: bool,
    /// Number of beams of every request.
    pub(super) beams: u32,
    /// Tokens at the start of every prompt whose blocks all sequences share.
    shared_prefix: u32,
    /// Keys that a prompt token attends to, relative to causal attention.
    seen: f64,
    /// Shapes for which graphs are compiled, if they are fixed.
    compiled: Option<Compiled>,
}

/// Work of a graph compiled for a fixed shape, which does not depend on its input.
#[derive(Debug, Clone, Copy)]
struct Compiled {
    /// Sequences of a decode step of the largest graph.
    batch: f64,
    /// Whether there are graphs for smaller batches.
    buckets: bool,
    /// Keys that each of them attends to.
    context: f64,
    /// Computed tokens per prompt token.
    padding: f64,
}

/// Keys that a prompt token attends to without a causal mask, relative to one with: the whole prompt, in a single step.
const UNMASKED_KEY_FACTOR: f64 = 2.0;

/// Share of the blocks that stays free when an engine without ahead-of-time scheduling admits a request (`watermark` of
/// `BlockSpaceManager`). Without it, every sequence that grows would preempt the youngest one, whose prompt would be
/// recomputed again and again. Engines that schedule ahead have no watermark.
const WATERMARK: f64 = 0.01;
/// Maximum number of blocks of a replica, so that sums over all replicas do not overflow.
const MAX_BLOCKS: f64 = 1e12;
/// Maximum number of attention groups of a replica.
const MAX_GROUPS: Count = Count::new(65_536);

impl Engine {
    pub(super) fn new(input: &Input, layout: &Layout, prefill_only: bool, piece: u32, seed: u64) -> Self {
        let s = &input.system;
        let machine = Machine::new(s, layout, &input.constants);
        // Nothing but prompts, each of which is known to be on one attention group.
        let machine = if prefill_only { machine.without_group_excess() } else { machine };
        let capacity = kv::capacity(s, layout, &machine.shape, &input.constants);
        // Prefixes of groups and traces are shared piece by piece; a constant share is that of the conversations.
        let shared_prefix = match input.prefixes {
            Prefixes::Share(_) => s.shared_prefix(),
            Prefixes::None | Prefixes::Groups { .. } | Prefixes::Trace { .. } => 0.0,
        };
        let kept = machine.shape.keys_cached(shared_prefix, s.full_window_cache) * f64::from(layout.attention_dp);
        // Without keys, a block is the recurrent state of a sequence.
        let blocks = match machine.shape.kv_bytes_token > 0.0 {
            true => (capacity.tokens - kept) / f64::from(input.block_size),
            false => capacity.sequences,
        };
        let total_blocks = blocks.clamp(0.0, MAX_BLOCKS) as u64;
        Engine {
            machine,
            draft_model: Machine::of_draft_model(s, layout, &input.constants).filter(|_| !prefill_only),
            total_blocks,
            // With reserved outputs, a sequence never outgrows its reservation.
            watermark: match s.host != HostOverlap::None || s.reserve_output {
                true => 0,
                false => (WATERMARK * total_blocks as f64) as u64,
            },
            caches_prefixes: s.host != HostOverlap::None,
            block_size: input.block_size,
            piece_tokens: piece,
            // The limit is per attention group: each is an engine rank with its own scheduler.
            max_num_seqs: (s.max_sequences() * layout.attention_dp.max(Count::ONE)) as usize,
            groups: layout.attention_dp.clamp(Count::ONE, MAX_GROUPS).get() as usize,
            // The token budget is also per attention group. It applies to each batch in the pipeline stages.
            max_num_batched_tokens: (s.max_num_batched_tokens * machine.stages()) as u32,
            chunk: s.max_num_batched_tokens as u32,
            threshold: input.long_prefill_token_threshold.unwrap_or(u32::MAX),
            chunked_prefill: s.chunked_prefill,
            reserve_output: s.reserve_output,
            full_window_cache: s.full_window_cache,
            overlapped: s.host != HostOverlap::None,
            balance_steps: if s.admission == Admission::Batched && layout.attention_dp > 1.0 {
                admission::BALANCE_STEPS
            } else {
                0
            },
            gathering: s.gathering,
            recv_interval: if s.admission == Admission::Polled { s.recv_interval.get() } else { 0 },
            verified_tokens: s.speculation.tokens.get().saturating_add(1),
            speculation: s.speculation,
            share_found: if let Prefixes::Share(share) = input.prefixes { share } else { 0.0 },
            cached: matches!(input.prefixes, Prefixes::Groups { .. } | Prefixes::Trace { .. }),
            seed,
            prefill_only,
            prefilled: input.prefilled,
            beams: s.beams.max(Count::ONE).get(),
            shared_prefix: shared_prefix as u32,
            seen: if s.arch.causal { 1.0 } else { UNMASKED_KEY_FACTOR },
            compiled: s.compiled_batch.map(|batch| Compiled {
                batch: f64::from(batch),
                buckets: s.batch_buckets,
                context: steady_state::mean_context(s),
                padding: s.computed(s.isl) / s.isl.max(1.0),
            }),
        }
    }

    /// Returns the engine for a batch of `running` sequences: without speculation above its batch limit.
    pub(super) fn for_batch(&self, running: usize) -> Engine {
        if self.verified_tokens > 1 && self.speculation.max_batch.is_some_and(|most| running as f64 > most) {
            return Engine { verified_tokens: 1, ..*self };
        }
        *self
    }

    /// Number of tokens in the KV cache, besides the shared prefix, for a request with a prompt of `isl` tokens, when each beam has `length` tokens
    /// including the prompt. Beams share the prompt.
    pub(super) fn kv_tokens(&self, isl: u32, length: u32) -> u32 {
        length
            .saturating_sub(self.shared_prefix)
            .saturating_add(length.saturating_sub(isl).saturating_mul(self.beams - 1))
    }

    /// Number of blocks for `tokens` tokens.
    pub(super) fn blocks(&self, tokens: u32) -> u32 {
        let shape = &self.machine.shape;
        if shape.window_share <= 0.0 && shape.selected_keys.is_none() && shape.state_bytes <= 0.0 {
            return tokens.div_ceil(self.block_size);
        }
        if shape.kv_bytes_token <= 0.0 {
            return 1;
        }
        // A sequence also keeps its recurrent states.
        let bytes = shape.sequence_bytes(f64::from(tokens), self.full_window_cache);
        (bytes / shape.kv_bytes_token / f64::from(self.block_size)).ceil() as u32
    }

    /// Number of blocks that a request needs to be admitted.
    pub(super) fn needed(&self, demand: &Demand) -> u32 {
        let output = if self.reserve_output { demand.osl } else { 0 };
        self.blocks(self.kv_tokens(demand.isl, demand.isl.saturating_add(output)))
    }

    /// Whether the KV cache of a request at full length fits in an empty replica.
    pub(super) fn fits_empty_replica(&self, demand: &Demand) -> bool {
        let longest = demand.isl.saturating_add(demand.osl).saturating_add(self.verified_tokens);
        u64::from(self.blocks(self.kv_tokens(demand.isl, longest))) <= self.total_blocks
    }

    /// Duration of a step by cause, s.
    pub(super) fn seconds(&self, tokens: &Tokens) -> StepTime {
        let tokens = &self.computed(tokens);
        let step = self.machine.with_loading(tokens, self.machine.step_in_groups(tokens));
        if self.verified_tokens <= 1 {
            return step;
        }
        let drafting = match &self.draft_model {
            Some(model) => model.draft_steps(tokens, f64::from(self.verified_tokens - 1)),
            None => self.machine.drafting(tokens),
        };
        step.add(&drafting, 1.0)
    }

    /// Tokens that are computed for a scheduled step: every beam of a sequence, and padding to compiled shapes.
    fn computed(&self, tokens: &Tokens) -> Tokens {
        let mut out = Tokens { decode: tokens.decode * f64::from(self.beams), ..*tokens };
        if let Some(compiled) = &self.compiled {
            if out.decode > 0.0 {
                let slots = padded_batch(out.decode, compiled.batch, compiled.buckets);
                (out.decode, out.context) = (slots, compiled.context);
            }
            out.prefill *= compiled.padding;
            out.prefill_context *= compiled.padding;
            out.prefill_span = 0.0;
        }
        if self.seen > 1.0 {
            // Every token attends to the whole prompt.
            (out.prefill_context, out.prefill_span) = (self.seen * out.prefill_context, 0.0);
        }
        out
    }

    /// How long after the end of a step of `seconds` the last of `tokens` prompt tokens of a request leave the pipeline.
    /// The step ends when its first micro-batch leaves; further chunks follow in the next ones.
    pub(super) fn chunk_delay(&self, tokens: u32, seconds: f64) -> Time {
        let behind = f64::from(tokens.saturating_sub(self.chunk)) / f64::from(self.chunk.max(1));
        Time::from_seconds(behind * seconds / self.stages())
    }

    /// Time for which the pipeline computes prompts after the end of a step of `seconds`.
    pub(super) fn pipeline_tail(&self, tokens: &Tokens, seconds: f64) -> f64 {
        self.machine.pipeline_tail(tokens, seconds)
    }

    /// Pipeline stages.
    pub(super) fn stages(&self) -> f64 {
        self.machine.stages()
    }

    /// Bytes of KV cache that one rank sends for a prompt of `isl` tokens.
    pub(super) fn transfer_bytes(&self, isl: u32) -> f64 {
        self.machine.shape.keys_cached(f64::from(isl), self.full_window_cache) * self.machine.shape.kv_bytes_token
    }
}

/// Number of accepted draft tokens, up to the first that is rejected.
pub(super) fn accepted(e: &Engine, r: &Request, id: u32) -> u32 {
    let u = Stream::new(e.seed, ACCEPTANCE, id).at(u64::from(r.emitted)).uniform();
    speculative::accepted_drafts(&e.speculation, u)
}
