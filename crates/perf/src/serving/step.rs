//! The time of one engine step: linear layers, attention, collectives, launches, host. Each operator takes the longer
//! of arithmetic and traffic, plus a share of the shorter one (imperfect overlap).

use super::machine::{DraftLayers, Drafting, Machine};
use super::rates::ProductRate;
pub use super::time::StepTime;
use crate::constants::documented::{FLOP_SHARE_AT_TDP, GEMM_TRAFFIC};
use atlas_core::math;

/// Share of the memory bandwidth that large GEMMs would use at the peak rate.
const OPERAND_TRAFFIC: f64 = GEMM_TRAFFIC / FLOP_SHARE_AT_TDP;

/// Tokens in one step of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tokens {
    /// Number of decoding sequences.
    pub decode: f64,
    /// Keys that each decoding sequence attends to.
    pub context: f64,
    /// Number of prompt tokens.
    pub prefill: f64,
    /// Mean number of keys that a prompt token attends to.
    pub prefill_context: f64,
    /// Number of tokens over which the positions of a prompt's tokens extend.
    pub prefill_span: f64,
    /// Keys of earlier chunks and of cached prefixes, summed over the chunks of the step.
    pub earlier: f64,
    /// Mean number of such keys in a step that has any.
    pub prefix: f64,
    /// Number of prompts that finish in this step and sample a token.
    pub prompts: f64,
    /// Tokens that each decoding sequence verifies, including its own (1 without speculation).
    pub verified: f64,
    /// Number of attention groups with prompt tokens: the tokens over those of the busiest group. A prompt is computed
    /// by one group. 0 = evenly over all groups.
    pub prefill_groups: f64,
    /// Prompt tokens of the largest chunk, which passes all pipeline stages as part of one micro-batch. 0 = evenly over
    /// the micro-batches.
    pub chunk: f64,
}

impl Tokens {
    /// Combines the decoding sequences of `self` with the prompt tokens of `prompts`.
    pub fn with(&self, prompts: &Tokens) -> Tokens {
        Tokens { decode: self.decode, context: self.context, verified: self.verified, ..*prompts }
    }

    /// The decoding sequences alone.
    pub fn decoding(&self) -> Tokens {
        Tokens { decode: self.decode, context: self.context, verified: self.verified, ..Tokens::default() }
    }
}

impl Machine<'_> {
    /// Time of a step, including drafting and the intake of its prompts by the engine's loop before it.
    pub fn step_with_intake(&self, t: &Tokens) -> StepTime {
        let step = self.with_loading(t, self.step_in_groups(t)).add(&self.drafting(t), 1.0);
        StepTime { host: step.host + self.intake * t.prompts, ..step }
    }

    /// Time of a step that only decodes, including drafting.
    pub fn decode_step(&self, t: &Tokens) -> StepTime {
        self.step(t).add(&self.drafting(t), 1.0)
    }

    /// Time of drafting the tokens that a step verifies.
    pub fn drafting(&self, t: &Tokens) -> StepTime {
        match self.drafting {
            Drafting::Layers(layers) => self.draft_layers(t, &layers),
            Drafting::Model { tokens, machine } => machine.draft_steps(t, tokens),
        }
    }

    /// Time of drafting layers, in which every sequence has one token: a part of a plain step without the output layer,
    /// and the output layer.
    fn draft_layers(&self, t: &Tokens, draft: &DraftLayers) -> StepTime {
        if draft.layers + draft.heads <= 0.0 || t.decode <= 0.0 {
            return StepTime::default();
        }
        let plain = self.step(&Tokens { verified: 1.0, ..t.decoding() });
        let sequences = busiest_group_share(t.decode / self.pp.min(t.decode.max(1.0)), self.attention_dp);
        let mut head = StepTime::default();
        self.linear(&mut head, self.shape.head_bytes, 1.0, self.shape.head_flops * sequences, &self.rates.dense);
        let head = self.on_all_stages(&head, t);
        let mut time = plain.add(&head, -1.0).scaled(draft.layers).add(&head, draft.heads);
        if draft.dense_passes > 0.0 {
            // A dense layer in 16 bit in place of the experts: two FLOPs per weight and token.
            let mut dense = StepTime::default();
            self.linear(&mut dense, draft.dense_bytes, 1.0, draft.dense_bytes * sequences, &self.rates.dense);
            (time.weights, time.compute) = (draft.heads * head.weights, draft.heads * head.compute);
            time.traffic = draft.heads * head.traffic;
            time = time.add(&dense, draft.dense_passes);
        }
        time
    }

    /// Time in which a draft model reads the prompts of a step of the model and drafts `tokens` tokens for its decoding
    /// sequences, one after another. The host prepares them as part of the model's step.
    pub fn draft_steps(&self, t: &Tokens, tokens: f64) -> StepTime {
        let one = |t: &Tokens| StepTime { host: 0.0, ..self.step(t) };
        let mut time = StepTime::default();
        if t.decode > 0.0 {
            time = one(&Tokens { verified: 1.0, ..t.decoding() }).scaled(tokens);
        }
        if t.prefill > 0.0 {
            time = time.add(&one(&Tokens { decode: 0.0, ..*t }), 1.0);
        }
        time
    }

    /// Adds the exposed time of loading cached KV from slower tiers to `step`. Layers are loaded while earlier layers
    /// compute.
    pub fn with_loading(&self, t: &Tokens, step: StepTime) -> StepTime {
        let late = (self.loading * t.prompts - step.total()).max(0.0);
        StepTime { communication: step.communication + late, ..step }
    }

    /// Time of one step of all sequences of the replica. With `pp` stages, the work is split into `pp` micro-batches
    /// that pass through the stages one after another, so the step takes `pp` times a stage time of the largest one.
    pub fn step(&self, t: &Tokens) -> StepTime {
        let batch = self.unsplit_step(t);
        let tokens = t.decode * t.verified.max(1.0) + t.prefill;
        if !self.overlapped_half_batches || tokens < 2.0 * self.attention_dp {
            return batch;
        }
        let half = Tokens {
            decode: 0.5 * t.decode,
            prefill: 0.5 * t.prefill,
            earlier: 0.5 * t.earlier,
            prefix: 0.5 * t.prefix,
            prompts: 0.5 * t.prompts,
            ..*t
        };
        let (one, issued) = if t.prefill > 0.0 {
            self.with_prompt_cores().micro_batch_step(&half)
        } else {
            self.micro_batch_step(&half)
        };
        let mut both = one.scaled(2.0);
        // One half communicates while the other computes, with imperfect overlap.
        let work = both.compute + both.weights + both.kv + both.activations + both.launch + both.images;
        let apart = both.communication;
        both.communication = (apart - (1.0 - self.overlap_loss) * work).max(self.overlap_loss * apart);
        both.launch += (2.0 * issued - both.total()).max(0.0);
        StepTime { host: batch.host, ..self.on_all_stages(&both, t) }
    }

    /// Time of a step whose prompts are in `prefill_groups` attention groups. The allowance for the busiest group assumes
    /// that they are spread over as many groups as there are sequences. The longer of both times applies, but not both
    /// corrections.
    pub fn step_in_groups(&self, t: &Tokens) -> StepTime {
        if self.attention_dp <= 1.0 || t.prefill <= 0.0 {
            return self.step(t);
        }
        let known = self.without_group_excess().step(t);
        let spread = (t.decode + t.prompts).max(t.prefill_groups);
        // One prompt alone is on one group, and none is busier.
        let doublings = math::log2(spread.clamp(1.0, self.attention_dp)) / math::log2(self.attention_dp);
        let allowing = Machine { group_excess: doublings * self.group_excess, ..*self };
        let allowed = allowing.step(&Tokens { prefill_groups: spread, ..*t });
        if known.total() > allowed.total() { known } else { allowed }
    }

    /// Number of micro-batches of a step with chunks of prompts. The others wait for them in every stage.
    pub fn prompt_batches(&self, t: &Tokens) -> f64 {
        let chunks = if t.chunk > 0.0 { t.prefill / (self.prompt_groups(t) * t.chunk) } else { self.pp };
        // Chunks are not divided: with fewer chunks than stages, some micro-batches have no prompt tokens.
        chunks.clamp(1.0, self.pp)
    }

    /// Number of attention groups with prompt tokens.
    fn prompt_groups(&self, t: &Tokens) -> f64 {
        if t.prefill_groups > 0.0 { t.prefill_groups.min(self.attention_dp) } else { self.attention_dp }
    }

    /// Time for which the pipeline computes chunks of prompts after a step of `seconds` has ended: a step ends when its
    /// first micro-batch leaves the last stage. The next step cannot overtake them.
    pub fn pipeline_tail(&self, t: &Tokens, seconds: f64) -> f64 {
        if t.prefill > 0.0 { (self.prompt_batches(t) - 1.0) / self.pp * seconds } else { 0.0 }
    }

    /// Time of one step without splitting the batch in halves.
    fn unsplit_step(&self, t: &Tokens) -> StepTime {
        let (mut out, issued) = self.micro_batch_step(t);
        out.launch += (issued - out.total()).max(0.0);
        let mut step = self.on_all_stages(&out, t);
        // Each attention group has its own scheduler.
        let verified = t.verified.max(1.0);
        let listed = if self.expansion { t.decode * verified } else { t.decode };
        step.host = self.launch.step + self.launch.sequence * (listed + t.prompts) / self.attention_dp;
        step.host += self.launch.drafts.of(verified - 1.0) * step.host;
        step
    }

    /// Time of a step of which a micro-batch takes `one` on every stage. A stage reads its weights once per micro-batch,
    /// of which there may be fewer than stages.
    fn on_all_stages(&self, one: &StepTime, t: &Tokens) -> StepTime {
        let prompts = if t.prefill > 0.0 { self.prompt_batches(t) } else { 1.0 };
        let batches = self.pp.min(t.decode.max(1.0)).max(prompts);
        StepTime { traffic: batches * one.traffic, ..one.scaled(self.pp) }
    }

    /// Time of a micro-batch on one stage, and the host time to launch its kernels.
    fn micro_batch_step(&self, t: &Tokens) -> (StepTime, f64) {
        let s = &self.shape;
        // Sequences per micro-batch and attention group; at least one if any decode.
        let cut = self.pp.min(t.decode.max(1.0));
        let verified = t.verified.max(1.0);
        let sequences = busiest_group_share(t.decode / cut, self.attention_dp);
        let prompt_cut = self.prompt_batches(t);
        let prefill = busiest_group_share(t.prefill / prompt_cut, self.prompt_groups(t));
        let tokens = sequences * verified + prefill;
        let all_tokens = t.decode * verified / cut + t.prefill / prompt_cut;
        let mut out = StepTime::default();
        // Linear layers of this rank.
        let rows = tokens.max(self.dense_tile);
        // With untuned kernels, every row of a decode step streams the weights through the caches.
        let again = if prefill > 0.0 { 0.0 } else { tokens * self.rates.row_seconds * self.rates.weight_bw };
        let passes = self.unpack_passes;
        let slow = (again / passes).max(1.0);
        self.linear(&mut out, passes * s.projection_bytes, slow, s.projection_flops * rows, &self.rates.dense);
        self.linear(&mut out, passes * s.mlp_bytes, slow, s.mlp_flops * rows, &self.rates.mlp);
        if s.experts > 0.0 {
            // Fixed shapes make routing useless: once tokens and choices outnumber the experts, every expert computes
            // every token.
            let all = self.fixed_shapes && all_tokens * s.top_k >= s.experts;
            let touched =
                if all { s.experts } else { s.active_experts(math::powf(all_tokens.max(0.0), self.routing_exponent)) };
            let computed = if all { all_tokens * s.experts / s.top_k.max(1.0) } else { all_tokens };
            // The busiest rank computes more tokens than the mean, but reads at most all experts that it holds.
            let uneven = if all_tokens > 1.0 { self.collectives.imbalance } else { 1.0 };
            let bytes = s.expert_bytes * (uneven * touched).min(s.experts) * s.expert_copies;
            let launched = self.separate_experts.unwrap_or(touched);
            out.launch += s.moe_layers * launched * self.rates.expert_seconds;
            let padded = touched * self.expert_tile / s.top_k.max(1.0);
            let flops = uneven * s.expert_flops * computed.max(padded);
            self.linear(&mut out, bytes, 1.0, flops, &self.rates.expert);
        }
        let sampled = sequences * verified + busiest_group_share(t.prompts / prompt_cut, self.attention_dp);
        let mut head = StepTime::default();
        self.linear(&mut head, s.head_bytes, 1.0, s.head_flops * sampled, &self.rates.dense);
        // Attention: decode reads each sequence's KV cache once; prefill is compute-bound.
        let mut own = StepTime::default();
        if sequences > 0.0 {
            let seen = s.keys_read(t.context);
            // A recurrent state is read and written back.
            let readers = if self.expansion { verified } else { 1.0 };
            let keys = readers * sequences * seen * s.kv_bytes_token;
            let states = readers * sequences * s.state_bytes;
            let traffic = keys * self.rates.kv_seconds + states * self.rates.state_seconds;
            own.traffic += (keys + 2.0 * states) / self.rates.peak_bw;
            let compute =
                sequences * verified * seen * s.decode_pair_flops / (self.rates.narrow_keys * self.rates.attention);
            if traffic >= compute {
                own.kv += traffic;
                own.compute += self.overlap_loss * compute;
            } else {
                own.compute += compute;
                own.kv += self.overlap_loss * traffic;
            }
        }
        if prefill > 0.0 {
            let [earlier, prefix] =
                [t.earlier, t.prefix].map(|keys| busiest_group_share(keys / prompt_cut, self.prompt_groups(t)));
            let direct = s.expansion_flops > 0.0 && prefix > 0.0 && prefix < s.expanded_prefix;
            let pair = if direct { s.decode_pair_flops } else { s.prefill_pair_flops };
            let pairs = prefill * s.mean_keys_read(t.prefill_context, t.prefill_span) * pair;
            own.compute += pairs / self.rates.attention;
            own.traffic += OPERAND_TRAFFIC * pairs / self.rates.peak_attention;
            let expanded = if direct { 0.0 } else { earlier * s.expansion_flops };
            own.compute += expanded / self.rates.dense.reached.max(1.0);
            own.traffic += OPERAND_TRAFFIC * expanded / self.rates.dense.peak;
            own.compute += prefill * self.rates.scan_compute_seconds;
            own.activations += prefill * self.rates.scan_traffic_seconds;
            // Images are encoded on the first stage: once per prompt, regardless of the number of stages.
            own.images += prefill * self.image_seconds * prompt_cut / self.pp;
        }
        own.activations += tokens * self.rates.activation_seconds;
        own.traffic += own.activations * self.rates.streamed_share;
        out = out.add(&own, self.busiest_group_load());
        out.communication += self.collectives.seconds(tokens, prefill);
        if self.pipelined {
            let work = out.compute + out.weights + out.kv + out.activations;
            out.communication = (out.communication - work).max(self.overlap_loss * out.communication);
        }
        out.launch += s.kernels * self.launch.kernel;
        // The host launches kernels outside captured graphs one by one, overlapping with the accelerator. This is
        // exposed only if the host is slower.
        let beyond = self.launch.graph_batch.is_some_and(|most| sequences > most);
        let mut issued = s.kernels * if beyond { self.launch.uncaptured } else { self.launch.issue };
        if prefill > 0.0 {
            // Prompts with fewer keys than an indexer selects attend to all keys.
            let skipped = if s.selected_keys.is_some_and(|selected| 2.0 * t.prefill_context <= selected) {
                s.index_kernels
            } else {
                0.0
            };
            out.launch += s.chunk_kernels * self.launch.kernel;
            issued = issued.max((s.kernels + s.chunk_kernels - skipped) * self.launch.prompt);
        }
        issued = issued.max(s.mixers * self.launch.piece);
        (self.paced_by_slowest_stage(&out, &head, cut), issued)
    }

    /// Time per stage of `cut` micro-batches, whose mean over the stages is that of `layers` and `head`. Each micro-batch
    /// passes all stages, and a stage computes them one after another: the step takes the sum over the stages or, if
    /// that is longer, the time of all micro-batches on the slowest stage. The output layer is on the last stage.
    fn paced_by_slowest_stage(&self, layers: &StepTime, head: &StepTime, cut: f64) -> StepTime {
        let mean = layers.add(head, 1.0);
        if self.pp <= 1.0 {
            return mean;
        }
        let (each, output) = (layers.total(), self.pp * head.total());
        let slowest = f64::max(self.shape.fullest_stage * each, self.shape.last_stage * each + output);
        let pace = (cut * slowest / (self.pp * mean.total()).max(1e-12)).max(1.0);
        StepTime { traffic: mean.traffic, ..mean.scaled(pace) }
    }

    /// Adds a linear layer: the longer of traffic and arithmetic, plus a share of the shorter one. Reading the weights
    /// takes `slow` times as long as at the rate of memory. The busiest attention group reads the same weights as the
    /// others.
    fn linear(&self, out: &mut StepTime, bytes: f64, slow: f64, flops: f64, rate: &ProductRate) {
        let traffic = slow * bytes / self.rates.weight_bw;
        let compute = self.busiest_group_load() * flops / rate.reached.max(1.0);
        // Blocks of many rows read their operands, weights included, several times.
        out.traffic += (bytes / self.rates.peak_bw).max(OPERAND_TRAFFIC * flops / rate.peak);
        if traffic >= compute {
            out.weights += traffic;
            out.compute += self.overlap_loss * compute;
        } else {
            out.compute += compute;
            out.weights += self.overlap_loss * traffic;
        }
    }
}

/// Share of `n` on the busiest of `groups` groups.
fn busiest_group_share(n: f64, groups: f64) -> f64 {
    if n <= 0.0 { 0.0 } else { (n / groups).max(n.min(1.0)) }
}
