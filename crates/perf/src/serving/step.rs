//! The time of one engine step: linear layers, attention, collectives, launches, host. Each operator is the longer of
//! arithmetic and traffic plus a share of the shorter one (imperfect overlap).

use super::exchange::{self, Exchange};
use super::fabric::Fabric;
use super::front_end::FrontEnd;
use super::images;
use super::input::{AllReduce, Layout, Load, ServingInput, Stack};
use super::launch::Launch;
use super::rates::{Slice, linear_rate, maturity, tile};
use super::shape::Shape;
pub use super::time::StepTime;
use crate::accelerator::{Generation, Precision};
use crate::arch::{Architecture, Attention};
use crate::constants::Constants;
use crate::roofline;
use atlas_core::count::Count;
use atlas_core::math;

/// Tokens in one step of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tokens {
    /// Sequences that decode, and keys each of them sees.
    pub decode: f64,
    /// Keys that a decoding sequence attends to.
    pub context: f64,
    /// Prompt tokens, and keys each of them sees on average.
    pub prefill: f64,
    /// Keys that a prefilled token attends to.
    pub prefill_context: f64,
    /// Prompts that finish in this step (they sample a token).
    pub prompts: f64,
    /// Tokens that each decoding sequence verifies (1 without speculation).
    pub verified: f64,
    /// Attention groups over which the prompt tokens lie, the tokens over those of the busiest: a prompt is computed by the
    /// one group that has it. 0 = evenly over all.
    pub prefill_groups: f64,
}

impl Tokens {
    /// These decoding sequences alongside those prompts.
    pub fn with(&self, prompts: &Tokens) -> Tokens {
        Tokens { decode: self.decode, context: self.context, verified: self.verified, ..*prompts }
    }
}

/// A replica prepared for timing: rates and shapes with all constants applied.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// What one rank holds and computes.
    pub shape: Shape,
    dense_rate: f64,
    mlp_rate: f64,
    expert_rate: f64,
    attention_rate: f64,
    /// How much faster than prompts decode multiplies keys, where these have 8 bit.
    narrow_keys: f64,
    weight_bw: f64,
    kv_seconds: f64,
    state_seconds: f64,
    activation_seconds: f64,
    row_seconds: f64,
    expert_seconds: f64,
    unpack_passes: f64,
    fixed_shapes: bool,
    pipelined: bool,
    expansion: bool,
    dense_tile: f64,
    expert_tile: f64,
    overlap_loss: f64,
    launch: Launch,
    reduce_latency: f64,
    reduce_bytes_seconds: f64,
    exchange_latency: f64,
    exchange_bytes_seconds: f64,
    /// What a prompt's token takes of it more or less.
    exchange_prompt_seconds: f64,
    /// Two halves of a batch take turns, and the share of the cores that compute alongside a prompt's exchange.
    two_batches: bool,
    prompt_cores: f64,
    hop_seconds: f64,
    imbalance: f64,
    group_excess: f64,
    routing_exponent: f64,
    pp: f64,
    attention_dp: f64,
    intake: f64,
    /// Seconds in which a prompt's keys and values are loaded from slower places.
    loading: f64,
    /// Seconds of encoding images for a token of a prompt.
    image_seconds: f64,
}

impl Machine {
    /// The rates of a deployment.
    pub fn new(input: &ServingInput, layout: &Layout, c: &Constants) -> Machine {
        let (acc, f) = (&input.accelerator, &input.formats);
        let mut shape = Shape::new(&input.arch, f, layout);
        if input.stack == Stack::Graphed && f.expert == Precision::Fp8 && !f.expert_unpack {
            shape.kernels += c.scaling_kernels * shape.moe_layers;
        }
        // Keys are spread only over ranks that would keep the same ones.
        let alike = match input.arch.attention {
            Attention::Latent { .. } => f64::from(layout.tp),
            Attention::Grouped => layout.tp / input.arch.kv_heads.max(Count::ONE),
        };
        let spread = f64::from(input.context_ranks).min(alike).max(1.0);
        shape.kv_bytes_token /= spread;
        if input.experts.fused_shared && input.arch.shared_ffn > 0.0 {
            shape.kernels -= 4.0 * shape.moe_layers;
        }
        let ranks = layout.tp * layout.attention_dp;
        let pipelined = input.stack == Stack::Compiled && acc.generation == Generation::Other;
        // Dataflow graphs read weights at the rate of the memory (Prabhakar et al., section 6); native runtimes run the
        // same kernels everywhere.
        let mature = if pipelined || input.stack == Stack::Local { 1.0 } else { maturity(acc, input.kernels, c) };
        // Graphs compiled ahead plan their transfers, so they stream as much of the datasheet as GPUs do.
        let planned = input.stack == Stack::Compiled || acc.generation == Generation::Gaudi;
        let streaming = if planned { 1.0 } else { mature };
        // Neuron's compiler reaches less of the systolic arrays than kernels written by hand do elsewhere.
        let mature_arithmetic = match acc.generation {
            Generation::Trainium => mature * c.neuron_fraction,
            // The share of the peak that these families' products reach was fitted on their own software.
            Generation::Gaudi | Generation::PonteVecchio | Generation::Other => 1.0,
            _ => mature,
        };
        let fabric = Fabric::of(acc, ranks, pipelined, c);
        let mut reduce = Fabric::of(acc, f64::from(layout.tp), pipelined, c);
        if layout.tp > acc.domain.max(1.0) {
            reduce.bw *= acc.network.ring_share(1.0);
        }
        if input.all_reduce == AllReduce::Library {
            reduce.latency = reduce.latency.max(c.library_latency);
        }
        let hidden = shape.hidden * 2.0;
        // Two all-reduces a layer; a ring moves 2 (n-1)/n of the vector.
        let reduces = if layout.tp > 1.0 { 2.0 * shape.layers } else { 0.0 };
        // Attention-parallel groups gather and scatter tokens around the experts: one hidden vector per token to
        // each of its experts' ranks, at most one per rank, and back.
        let exchanges = if layout.attention_dp > 1.0 { 2.0 * shape.moe_layers } else { 0.0 };
        if input.all_reduce == AllReduce::Fused {
            // Each sum has the addition and the norm behind it, which have no kernel of their own.
            shape.kernels -= reduces;
        }
        if input.stack == Stack::Eager {
            // Collectives are launched as kernels are.
            shape.kernels += reduces + exchanges;
        }
        let copies = shape.top_k.min(ranks).max(1.0) / layout.tp.max(Count::ONE);
        // Tokens leave in the format that the experts multiply (DeepEP's 8-bit dispatch) and return in 16 bit.
        let token_bytes = exchanges * 0.5 * shape.hidden * (f.expert.bytes().min(2.0) + 2.0);
        let excess = exchange::excess_left(layout, shape.experts) * c.expert_excess;
        let imbalance = 1.0 + excess * math::log2(f64::from(layout.ep.max(Count::ONE)));
        let by_collective = token_bytes * copies * (ranks - 1.0)
            / ranks
            / fabric.bw
            / acc.network.exchange_share(ranks / acc.domain.max(1.0), 1.0);
        let (exchange_latency, exchange_bytes_seconds, exchange_prompt_seconds) =
            match Exchange::of(input, layout, &shape, c) {
                None => (fabric.latency, by_collective, 0.0),
                // The busiest rank receives the most.
                Some(e) => {
                    let bytes = token_bytes * imbalance;
                    (e.latency, bytes * e.decode_byte, bytes * (e.prompt_byte - e.decode_byte))
                }
            };
        let image_seconds = images::of_token(
            input,
            layout,
            c,
            &images::Pace {
                mature: mature_arithmetic,
                streaming,
                reduce: &reduce,
                launch: match input.stack {
                    Stack::Local => 0.0,
                    _ => c.kernel_prefill,
                },
            },
        );
        Machine {
            dense_rate: mature_arithmetic * linear_rate(acc, c, f.dense, f.dense_unpack, Slice::layer(shape.slice)),
            mlp_rate: mature_arithmetic * linear_rate(acc, c, f.expert, f.expert_unpack, Slice::layer(shape.slice)),
            expert_rate: mature_arithmetic
                * c.grouped_fraction
                * linear_rate(acc, c, f.expert, f.expert_unpack, Slice::mlp(shape.expert_slice.max(1.0))),
            attention_rate: mature_arithmetic
                * c.attention_fraction
                * roofline::best_rate(acc, c, Precision::Bf16)
                * roofline::fused_attention_share(acc, c, head_width(&input.arch), input.attention),
            // Kernels of Blackwell multiply 8-bit keys with 8-bit queries in decode (TensorRT-LLM's generated kernels; lmsys.org,
            // 2025-09-25); elsewhere keys are unpacked first.
            narrow_keys: if acc.generation == Generation::Blackwell && f.kv_bytes <= 1.0 && acc.has(Precision::Fp8) {
                acc.peak(Precision::Fp8) / acc.peak(Precision::Bf16)
            } else {
                1.0
            },
            // Matrix-vector kernels of native runtimes stream no faster than their cores can unpack.
            weight_bw: match input.stack {
                Stack::Local => (streaming * acc.mem_bw * c.memory_fraction).min(acc.cores.max(1.0) * c.core_bw),
                _ => streaming * acc.mem_bw * c.memory_fraction,
            },
            kv_seconds: (1.0 / (streaming * acc.mem_bw * c.kv_fraction)).max(match input.arch.attention {
                // Head by head, the same keys pass a core's caches once for every query head of the group.
                Attention::Grouped if !input.grouped_decode => {
                    let (ranks, own) = (layout.tp.max(Count::ONE), &input.arch);
                    let readers = (own.heads / ranks) / (own.kv_heads / ranks).max(1.0);
                    readers / (mature * acc.cores.max(1.0) * c.head_bw)
                }
                _ => 0.0,
            }),
            state_seconds: 2.0 / (streaming * acc.mem_bw * c.kv_fraction),
            activation_seconds: shape.layers * hidden * (c.activation_passes + shape.stream_passes)
                / (streaming * acc.mem_bw * c.memory_fraction),
            // Scaled 8-bit products have a library call of their own.
            row_seconds: if input.tuned_products || f.dense.bytes() < 2.0 {
                0.0
            } else {
                1.0 / (acc.cores.max(1.0) * c.row_bw)
            },
            // Two launches an expert: up with gate, down.
            expert_seconds: if input.experts_in_turn {
                2.0 * (c.kernel_graph + c.kernel_prefill) / mature
            } else {
                0.0
            },
            // Dataflow accelerators stream collectives through the graph that multiplies (Prabhakar et al., section 4).
            unpack_passes: f.unpack_passes.max(1.0),
            fixed_shapes: input.compiled_batch.is_some(),
            pipelined,
            expansion: input.expanded_drafts,
            dense_tile: tile(acc, input.stack, f.dense_unpack, c),
            expert_tile: tile(acc, input.stack, true, c),
            overlap_loss: c.overlap_loss,
            launch: Launch::of(input, c, mature),
            // Spread keys gather queries and scatter outputs once more a layer each.
            reduce_latency: if spread > 1.0 { 2.0 * reduces } else { reduces } * reduce.latency,
            reduce_bytes_seconds: reduces * hidden * 2.0 * (layout.tp - 1.0) / layout.tp.max(Count::ONE) / reduce.bw,
            exchange_latency: exchanges * exchange_latency,
            exchange_bytes_seconds,
            exchange_prompt_seconds,
            two_batches: input.experts.two_batches && exchanges > 0.0,
            prompt_cores: exchange::computing_cores(input, layout),
            hop_seconds: if layout.pp > 1.0 { fabric.latency } else { 0.0 },
            imbalance,
            group_excess: match input.load {
                // A batch that is timed alone lies evenly over the groups.
                Load::DecodeOnly { .. } | Load::PrefillOnly { .. } => 0.0,
                _ => c.group_excess * math::log2(f64::from(layout.attention_dp.max(Count::ONE))),
            },
            routing_exponent: c.routing_exponent,
            pp: f64::from(layout.pp.max(Count::ONE)),
            attention_dp: f64::from(layout.attention_dp.max(Count::ONE)),
            intake: FrontEnd::of(input, c).between,
            loading: input.loading / layout.attention_dp.max(Count::ONE),
            image_seconds,
            shape,
        }
    }

    /// The same without the allowance for the busiest attention group, for whoever knows what that one has.
    pub fn with_groups_known(&self) -> Machine {
        Machine { group_excess: 0.0, ..*self }
    }

    /// A step, and before it what its prompts cost the loop that took them in.
    pub fn step_taking_in(&self, t: &Tokens) -> StepTime {
        let step = self.with_loading(t, self.step(t));
        StepTime { host: step.host + self.intake * t.prompts, ..step }
    }

    /// A step that also waits for what its prompts find in slower places: layers are loaded while those before them compute.
    pub fn with_loading(&self, t: &Tokens, step: StepTime) -> StepTime {
        let late = (self.loading * t.prompts - step.total()).max(0.0);
        StepTime { communication: step.communication + late, ..step }
    }

    /// Pipeline stages.
    pub fn stages(&self) -> f64 {
        self.pp
    }

    /// One step of all sequences of the replica. With `pp` stages the work is cut into `pp` micro-batches that follow
    /// one another through the stages, so the step lasts `pp` stage times.
    pub fn step(&self, t: &Tokens) -> StepTime {
        let batch = self.whole(t);
        let tokens = t.decode * t.verified.max(1.0) + t.prefill;
        if !self.two_batches || tokens < 2.0 * self.attention_dp {
            return batch;
        }
        let half = Tokens { decode: 0.5 * t.decode, prefill: 0.5 * t.prefill, prompts: 0.5 * t.prompts, ..*t };
        let (one, issued) = if t.prefill > 0.0 { self.beside_prompts().part(&half) } else { self.part(&half) };
        let mut both = one.scaled(2.0);
        // One half's tokens travel while the other computes, both at a loss.
        let work = both.compute + both.weights + both.kv + both.activations + both.launch + both.images;
        let apart = both.communication;
        both.communication = (apart - (1.0 - self.overlap_loss) * work).max(self.overlap_loss * apart);
        both.launch += (2.0 * issued - both.total()).max(0.0);
        StepTime { host: batch.host, ..both.scaled(self.pp) }
    }

    /// The same with the cores that are left beside the exchange of prompts.
    fn beside_prompts(&self) -> Machine {
        let left = |rate: f64| rate * self.prompt_cores;
        Machine {
            dense_rate: left(self.dense_rate),
            mlp_rate: left(self.mlp_rate),
            expert_rate: left(self.expert_rate),
            attention_rate: left(self.attention_rate),
            ..*self
        }
    }

    /// One step in which all tokens do the same at the same time.
    fn whole(&self, t: &Tokens) -> StepTime {
        let (mut out, issued) = self.part(t);
        out.launch += (issued - out.total()).max(0.0);
        let mut step = out.scaled(self.pp);
        // Every attention group has a scheduler of its own.
        let verified = t.verified.max(1.0);
        let listed = if self.expansion { t.decode * verified } else { t.decode };
        step.host = self.launch.step + self.launch.sequence * (listed + t.prompts) / self.attention_dp;
        step.host += self.launch.drafts.of(verified - 1.0) * step.host;
        step
    }

    /// A micro-batch on one stage, and the time in which the host issues its kernels one by one.
    fn part(&self, t: &Tokens) -> (StepTime, f64) {
        let s = &self.shape;
        // Sequences per micro-batch and attention group; at least one where any decode.
        // Prompts that are cut into chunks fill all stages where there are several: each has one chunk on the way.
        let prompts = if t.prefill > 0.0 { t.prompts.max(t.prefill_groups).max(1.0) } else { t.prompts };
        let cut = self.pp.min((t.decode + prompts).max(1.0));
        let verified = t.verified.max(1.0);
        let sequences = group(t.decode / cut, self.attention_dp);
        let occupied = if t.prefill_groups > 0.0 { t.prefill_groups.min(self.attention_dp) } else { self.attention_dp };
        let prefill = group(t.prefill / cut, occupied);
        let tokens = sequences * verified + prefill;
        let all_tokens = (t.decode * verified + t.prefill) / cut;
        let mut out = StepTime::default();
        // Linear layers of this rank.
        let rows = tokens.max(self.dense_tile);
        // Where kernels are not made for few rows, every row of a decode step passes the weights through the caches.
        let again = if prefill > 0.0 { 0.0 } else { tokens * self.row_seconds * self.weight_bw };
        let passes = again.max(self.unpack_passes);
        self.linear(&mut out, passes * s.projection_bytes, s.projection_flops * rows, self.dense_rate);
        self.linear(&mut out, passes * s.mlp_bytes, s.mlp_flops * rows, self.mlp_rate);
        if s.experts > 0.0 {
            // Fixed shapes leave nothing to route: once tokens and choices outnumber the experts, all compute everything.
            let all = self.fixed_shapes && all_tokens * s.top_k >= s.experts;
            let touched =
                if all { s.experts } else { s.touched(math::powf(all_tokens.max(0.0), self.routing_exponent)) };
            let computed = if all { all_tokens * s.experts / s.top_k.max(1.0) } else { all_tokens };
            // The busiest rank multiplies more tokens than the mean, and reads no more than all that it holds.
            let uneven = if all_tokens > 1.0 { self.imbalance } else { 1.0 };
            let bytes = s.expert_bytes * (uneven * touched).min(s.experts) * s.copies;
            out.launch += s.moe_layers * touched * self.expert_seconds;
            let padded = touched * self.expert_tile / s.top_k.max(1.0);
            let flops = uneven * s.expert_flops * computed.max(padded);
            self.linear(&mut out, bytes, flops, self.expert_rate);
        }
        let sampled = sequences * verified + group(t.prompts / cut, self.attention_dp);
        self.linear(&mut out, s.head_bytes, s.head_flops * sampled, self.dense_rate);
        // Attention: decode reads each sequence's keys and values once, prefill multiplies them.
        let mut own = StepTime::default();
        if sequences > 0.0 {
            let seen = s.seen(t.context);
            // A state is read and written back.
            let readers = if self.expansion { verified } else { 1.0 };
            let traffic =
                readers * sequences * (seen * s.kv_bytes_token * self.kv_seconds + s.state_bytes * self.state_seconds);
            let compute = sequences * verified * seen * s.decode_pair_flops / (self.narrow_keys * self.attention_rate);
            if traffic >= compute {
                own.kv += traffic;
                own.compute += self.overlap_loss * compute;
            } else {
                own.compute += compute;
                own.kv += self.overlap_loss * traffic;
            }
        }
        if prefill > 0.0 {
            own.compute += prefill * s.seen(t.prefill_context) * s.prefill_pair_flops / self.attention_rate;
            // Images enter the first stage: once a prompt, however many stages follow.
            own.images += prefill * self.image_seconds * cut / self.pp;
        }
        own.activations += tokens * self.activation_seconds;
        out = out.add(&own, self.busiest());
        out.communication += self.reduce_latency
            + self.reduce_bytes_seconds * tokens
            + self.exchange_latency
            + self.exchange_bytes_seconds * tokens
            + self.exchange_prompt_seconds * prefill
            + self.hop_seconds;
        if self.pipelined {
            let work = out.compute + out.weights + out.kv + out.activations;
            out.communication = (out.communication - work).max(self.overlap_loss * out.communication);
        }
        out.launch += s.kernels * self.launch.kernel;
        // What no captured graph covers is launched by the host, kernel by kernel, alongside the accelerator: it shows only
        // where the accelerator is the faster one.
        let beyond = self.launch.graph_batch.is_some_and(|most| sequences > most);
        let mut issued = s.kernels * if beyond { self.launch.uncaptured } else { self.launch.issue };
        if prefill > 0.0 {
            // Prompts of fewer keys than an indexer selects attend to all.
            let skipped = if s.selected.is_some_and(|selected| 2.0 * t.prefill_context <= selected) {
                s.index_kernels
            } else {
                0.0
            };
            out.launch += s.chunk_kernels * self.launch.kernel;
            issued = issued.max((s.kernels + s.chunk_kernels - skipped) * self.launch.prompt);
        }
        issued = issued.max(s.layers * self.launch.piece);
        (out, issued)
    }

    /// Work of the busiest attention group over that of a mean one.
    fn busiest(&self) -> f64 {
        1.0 + self.group_excess
    }

    /// A linear layer: the longer of traffic and arithmetic plus a share of the shorter. The busiest attention group reads
    /// the same weights as the others.
    fn linear(&self, out: &mut StepTime, bytes: f64, flops: f64, rate: f64) {
        let traffic = bytes / self.weight_bw;
        let compute = self.busiest() * flops / rate.max(1.0);
        if traffic >= compute {
            out.weights += traffic;
            out.compute += self.overlap_loss * compute;
        } else {
            out.compute += compute;
            out.weights += self.overlap_loss * traffic;
        }
    }
}

/// Width of a head in attention over prompts.
fn head_width(arch: &Architecture) -> f64 {
    match arch.attention {
        Attention::Grouped => arch.head_dim,
        Attention::Latent { nope, rope, .. } => nope + rope,
    }
}

/// Share of `n` on the busiest of `groups`.
fn group(n: f64, groups: f64) -> f64 {
    if n <= 0.0 { 0.0 } else { (n / groups).max(n.min(1.0)) }
}
