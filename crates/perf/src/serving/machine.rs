//! A replica prepared for timing: shapes, rates and collectives with all constants applied.

use super::bursts;
use super::collectives::{Collectives, Counts, Links};
use super::exchange;
use super::front_end::FrontEnd;
use super::images;
use super::input::{AllReduce, Layout, Load, ServingInput, Speculation, Stack};
use super::launch::Launch;
use super::rates::{Maturity, Rates, tile};
use super::shape::{Shape, kv_ranks};
use super::speculative;
use crate::accelerator::{Accelerator, Precision};
use crate::constants::Constants;
use crate::constants::generation::Compilation;
use crate::traits::ExpertProducts;
use atlas_core::count::Count;
use atlas_core::math;

/// How tokens are drafted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Drafting<'a> {
    /// By layers besides the model, or not at all.
    Layers(DraftLayers),
    /// By a draft model that takes a step for each of `tokens` tokens.
    Model { tokens: f64, machine: &'a Machine<'a> },
}

/// Layers that draft tokens one after another. All quantities are of a whole step.
#[derive(Debug, Clone, Copy)]
pub(super) struct DraftLayers {
    /// Passes through layers relative to the layers of the model.
    pub(super) layers: f64,
    /// Passes through the output layer.
    pub(super) heads: f64,
    /// Passes of dense layers, whose weights differ from those of the model's layers.
    pub(super) dense_passes: f64,
    /// Bytes of the weights of dense layers on a rank.
    pub(super) dense_bytes: f64,
}

impl DraftLayers {
    fn of(input: &ServingInput, layout: &Layout) -> DraftLayers {
        let Speculation { tokens, draft_layers, draft_head, draft_dense_bytes, .. } = input.speculation;
        DraftLayers {
            layers: tokens * draft_layers.max(0.0),
            heads: tokens * draft_head.max(0.0),
            dense_passes: if draft_dense_bytes > 0.0 { f64::from(tokens) } else { 0.0 },
            dense_bytes: draft_dense_bytes / layout.tp.max(Count::ONE),
        }
    }
}

/// A replica prepared for timing.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a> {
    /// Work of one rank.
    pub shape: Shape,
    pub(super) rates: Rates,
    pub(super) collectives: Collectives,
    pub(super) launch: Launch,
    pub(super) unpack_passes: f64,
    pub(super) fixed_shapes: bool,
    /// Whether the compiler maps the whole step to one graph, in which collectives overlap with GEMMs.
    pub(super) pipelined: bool,
    pub(super) expansion: bool,
    pub(super) dense_tile: f64,
    pub(super) expert_tile: f64,
    pub(super) overlap_loss: f64,
    /// Whether two halves of a batch alternate between computation and communication.
    pub(super) overlapped_half_batches: bool,
    /// Share of the cores that compute during the exchange of prompt tokens.
    pub(super) prompt_cores: f64,
    pub(super) group_excess: f64,
    pub(super) routing_exponent: f64,
    /// Number of experts that a rank holds, if each has its own kernels.
    pub(super) separate_experts: Option<f64>,
    pub(super) pp: f64,
    pub(super) attention_dp: f64,
    /// Share of the requests of a closed loop that arrive in a burst after the first turn.
    pub(super) later_bursts: f64,
    pub(super) intake: f64,
    /// Number of sequences that fit in memory, if more are admitted and preempted; infinite if outputs are reserved.
    pub(super) sequences_in_memory: f64,
    /// Time to load a prompt's cached KV from slower tiers, s.
    pub(super) loading: f64,
    /// Time to encode images per prompt token, s.
    pub(super) image_seconds: f64,
    pub(super) drafting: Drafting<'a>,
}

impl<'a> Machine<'a> {
    /// Prepares the replicas of `layout`. If the input has a draft model, add it with [`Machine::with_draft_model`].
    pub fn new(input: &ServingInput, layout: &Layout, c: &Constants) -> Machine<'a> {
        let (acc, f) = (&input.accelerator, &input.formats);
        let mut shape = Shape::of(input, layout);
        let spread = kv_ranks(input, layout);
        let counts = Counts::of(&shape, layout);
        shape.kernels = launched_kernels(input, &shape, &counts, c);
        let pipelined = pipelined(input.stack, acc);
        let maturity = Maturity::of(input, pipelined, c);
        let links = Links::of(input, layout, pipelined, c);
        let pace = images::EncoderRates {
            kernel_maturity: maturity.arithmetic,
            streaming: maturity.streaming,
            reduce: &links.reduce,
            launch: if input.stack == Stack::Local { 0.0 } else { c.kernel_prefill },
        };
        Machine {
            rates: Rates::of(input, layout, &shape, &maturity, c),
            collectives: Collectives::of(input, layout, &shape, &counts, &links, spread, c),
            launch: Launch::of(input, c, maturity.kernels),
            unpack_passes: f.unpack_passes.max(1.0),
            fixed_shapes: input.compiled_batch.is_some(),
            pipelined,
            expansion: input.expanded_drafts,
            dense_tile: tile(acc, input.stack, f.dense_unpack, c),
            expert_tile: tile(acc, input.stack, true, c),
            overlap_loss: c.overlap_loss,
            overlapped_half_batches: input.experts.overlapped_half_batches && counts.exchanges > 0.0,
            prompt_cores: exchange::compute_core_share(input, layout),
            group_excess: match input.load {
                // A batch that is timed in isolation is spread evenly over the groups.
                Load::DecodeOnly { .. } | Load::PrefillOnly { .. } => 0.0,
                _ if layout.attention_dp <= 1.0 => 0.0,
                _ => c.group_excess * math::log2(f64::from(layout.attention_dp)),
            },
            routing_exponent: c.routing_exponent,
            separate_experts: (input.expert_products == ExpertProducts::Separate)
                .then_some(shape.experts / layout.ep.max(Count::ONE)),
            pp: f64::from(layout.pp.max(Count::ONE)),
            attention_dp: f64::from(layout.attention_dp.max(Count::ONE)),
            later_bursts: match input.load {
                Load::Closed { .. } => bursts::later_burst_share(input, c),
                _ => 0.0,
            },
            intake: FrontEnd::of(input, c).blocking_seconds,
            sequences_in_memory: f64::INFINITY,
            loading: input.loading / layout.attention_dp.max(Count::ONE),
            image_seconds: images::of_token(input, layout, c, &pace),
            drafting: Drafting::Layers(DraftLayers::of(input, layout)),
            shape,
        }
    }

    /// Prepares the draft model of `input` on the replicas of `layout`; `None` without one.
    pub fn of_draft_model(input: &ServingInput, layout: &Layout, c: &Constants) -> Option<Machine<'a>> {
        input.of_draft_model(layout).map(|draft| Machine::new(&draft, &draft.layout, c))
    }

    /// Lets `draft` draft the tokens of `input`.
    pub fn with_draft_model(self, input: &ServingInput, draft: Option<&'a Machine<'a>>) -> Machine<'a> {
        match draft {
            Some(machine) => {
                Machine { drafting: Drafting::Model { tokens: input.speculation.tokens.into(), machine }, ..self }
            }
            None => self,
        }
    }

    /// Like [`Machine::new`], but without the allowance for the busiest attention group: for callers that know its
    /// load.
    pub fn without_group_excess(&self) -> Machine<'a> {
        Machine { group_excess: 0.0, ..*self }
    }

    /// Pipeline stages.
    pub fn stages(&self) -> f64 {
        self.pp
    }

    /// Time per output token of the transfers from stage to stage, s.
    pub fn stage_transfers(&self, input: &ServingInput) -> f64 {
        self.pp * self.collectives.hop / speculative::tokens_per_step(&input.speculation)
    }

    /// Uses only the cores that are free during the exchange of prompt tokens.
    pub(super) fn with_prompt_cores(&self) -> Machine<'a> {
        Machine { rates: self.rates.with_cores(self.prompt_cores), ..*self }
    }

    /// Work of the busiest attention group relative to the mean.
    pub(super) fn busiest_group_load(&self) -> f64 {
        1.0 + self.group_excess
    }
}

/// Whether the compiler maps the step to one graph.
fn pipelined(stack: Stack, acc: &Accelerator) -> bool {
    stack == Stack::Compiled && acc.generation.properties().compilation == Compilation::Dataflow
}

/// Kernels of a step, including those that the software adds or fuses.
fn launched_kernels(input: &ServingInput, shape: &Shape, counts: &Counts, c: &Constants) -> f64 {
    let f = &input.formats;
    let mut kernels = shape.kernels;
    if input.stack == Stack::Graphed && f.expert == Precision::Fp8 && !f.expert_unpack {
        kernels += c.scaling_kernels * shape.moe_layers;
    }
    if input.experts.fused_shared && input.arch.shared_ffn > 0.0 {
        kernels -= 4.0 * shape.moe_layers;
    }
    if input.all_reduce == AllReduce::Fused {
        // Each all-reduce includes the residual addition and the norm that follow it.
        kernels -= counts.reduces;
    }
    if input.stack == Stack::Eager {
        // Collectives are launched like other kernels.
        kernels += counts.reduces + counts.exchanges;
    }
    kernels
}
