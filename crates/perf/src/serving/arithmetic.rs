//! Arithmetic of the requests that a deployment serves, relative to the peak rates of its accelerators.

use super::input::{Layout, Load, ServingInput};
use super::rates::key_format;
use super::shape::Shape;
use super::{ServingEstimate, speculative};
use crate::accelerator::Precision;
use atlas_core::count::Count;

/// Arithmetic relative to the peak rates of the formats in use, mean over all accelerators.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Arithmetic {
    /// All arithmetic, including drafting and the verification of drafts that are rejected.
    pub computed: f64,
    /// Arithmetic that any engine needs for these prompts and outputs.
    pub useful: f64,
}

impl Arithmetic {
    /// Arithmetic of `input` at the request rate of `out`.
    #[must_use]
    pub fn of(input: &ServingInput, out: &ServingEstimate) -> Arithmetic {
        Arithmetic::with_shape(input, out, &Shape::of(input, &input.decode_layout()))
    }

    /// As [`Arithmetic::of`], with the shape of a decode replica given, for callers that share it.
    #[must_use]
    pub fn with_shape(input: &ServingInput, out: &ServingEstimate, decode: &Shape) -> Arithmetic {
        let layouts = input.pools.map_or([input.layout; 2], |pools| [pools.prefill, pools.decode]);
        let outputs = OneRank::of(input, &layouts[1], decode);
        let prefill = input.pools.map(|pools| Shape::of(input, &pools.prefill));
        let prompts = prefill.as_ref().map_or(outputs, |shape| OneRank::of(input, &layouts[0], shape));
        let (prompt, tokens) = match input.load {
            Load::DecodeOnly { .. } => (0.0, input.osl.max(1.0)),
            // The first token is sampled from the prompt.
            _ => (prompts.prompt_seconds(input, out.prefix_hit), (input.osl - 1.0).max(0.0)),
        };
        let tokens = if input.counts_prompts() { 0.0 } else { tokens * input.beams.max(Count::ONE) };
        let token = outputs.output_seconds(input);
        let drafts = input.speculation;
        let drafting = drafts.tokens > 0.0 && drafts.max_batch.is_none_or(|most| out.batch <= f64::from(most));
        let verified = if drafting {
            let draft = outputs.draft_seconds(input, &layouts[1]);
            (token * (1.0 + drafts.tokens) + draft * drafts.tokens) / speculative::tokens_per_step(&drafts)
        } else {
            token
        };
        // Every rank of a replica that computes a request spends its share of it.
        let all = input.accelerators().max(1.0);
        let [prefill, decode] = layouts.map(|layout| out.requests_per_sec * layout.replica() / all);
        Arithmetic {
            computed: prefill * prompt + decode * tokens * verified,
            useful: prefill * prompt + decode * tokens * token,
        }
    }
}

/// Seconds of arithmetic at the peak rates, mean over the ranks of a replica.
#[derive(Debug, Clone, Copy)]
struct OneRank<'a> {
    shape: &'a Shape,
    /// Linear layers, per token.
    token: f64,
    /// Output layer, per sampled token.
    head: f64,
    /// Scans of linear mixers, per prompt token.
    scan: f64,
    /// Attention, per prompt token and key.
    prompt_pair: f64,
    /// Attention, per output token and key.
    output_pair: f64,
    /// Encoding the images of a prompt.
    images: f64,
}

impl<'a> OneRank<'a> {
    fn of(input: &ServingInput, layout: &Layout, shape: &'a Shape) -> Self {
        let (acc, f) = (&input.accelerator, &input.formats);
        let [dense, expert, wide, keys] =
            [f.dense, f.expert, Precision::Bf16, key_format(input)].map(|format| 1.0 / acc.peak(format));
        // Only one of the attention groups computes a request, except for its experts.
        let groups = f64::from(layout.attention_dp.max(Count::ONE));
        OneRank {
            token: (shape.projection_flops * dense + shape.mlp_flops * expert) / groups + shape.expert_flops * expert,
            head: shape.head_flops * dense / groups,
            scan: shape.scan_flops * wide / groups,
            prompt_pair: shape.prefill_pair_flops * wide / groups,
            output_pair: shape.decode_pair_flops * keys / groups,
            images: input.images.map_or(0.0, |images| images.flops()) * wide / layout.replica().max(1.0),
            shape,
        }
    }

    /// A prompt, of which a share `hit` is cached, and its first token.
    fn prompt_seconds(&self, input: &ServingInput, hit: f64) -> f64 {
        let fresh = 1.0 - hit.clamp(0.0, 1.0);
        let span = if input.arch.causal { fresh * input.isl } else { 0.0 };
        let attention = self.prompt_pair * self.shape.mean_keys_read(input.isl - 0.5 * span, span);
        fresh * (input.isl * (self.token + self.scan + attention) + self.images) + self.head
    }

    /// An output token.
    fn output_seconds(&self, input: &ServingInput) -> f64 {
        let context = input.isl + input.mean_age() * input.osl;
        self.token + self.head + self.output_pair * self.shape.keys_read(context)
    }

    /// A drafted token.
    fn draft_seconds(&self, input: &ServingInput, layout: &Layout) -> f64 {
        if let Some(draft) = input.of_draft_model(layout) {
            let shape = Shape::of(&draft, &draft.layout);
            let rank = OneRank::of(&draft, &draft.layout, &shape);
            // Its pipeline has one stage.
            return rank.output_seconds(&draft) / layout.pp.max(Count::ONE);
        }
        let drafts = &input.speculation;
        // Two FLOPs per weight of 16 bit.
        let dense = drafts.draft_dense_bytes / layout.replica().max(1.0) / input.accelerator.peak(Precision::Bf16);
        let layers = if dense > 0.0 { dense } else { drafts.draft_layers * self.token };
        layers + drafts.draft_head * self.head
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use crate::accelerator::Accelerator;
    use crate::arch::Architecture;
    use crate::constants::Constants;
    use crate::serving::{Conversations, Pools, Speculation, estimate};

    fn of(input: &ServingInput) -> (Arithmetic, ServingEstimate) {
        let out = estimate(input, &Constants::default());
        (Arithmetic::of(input, &out), out)
    }

    fn closed(input: ServingInput) -> ServingInput {
        ServingInput { load: Load::Closed { concurrency: 32.0, requests: f64::INFINITY }, ..input }
    }

    /// Seconds at the peak of 16 bit of all ranks.
    fn seconds(input: &ServingInput, flops: f64) -> f64 {
        flops / input.accelerator.peak(Precision::Bf16) / input.accelerators()
    }

    #[test]
    fn prompts_multiply_neither_embedding_nor_output_layer() {
        // As many parameters in the tied embedding as in a fifth of the layers.
        let arch = Architecture { vocab: Count::new(256_000), tied: true, ..Architecture::default() };
        let input = closed(ServingInput { arch, isl: 1000.0, osl: 1.0, ..ServingInput::default() });
        let (used, out) = of(&input);
        let layers = arch.matmul_params() - arch.vocab * arch.hidden;
        let pairs = 4.0 * arch.layers * arch.hidden * 500.0;
        let expected = 1000.0 * (2.0 * layers + pairs) + 2.0 * arch.vocab * arch.hidden;
        let share = out.requests_per_sec * seconds(&input, expected);
        assert!((used.useful / share - 1.0).abs() < 2e-3, "{} {share}", used.useful);
        assert_eq!(used.useful, used.computed);
    }

    #[test]
    fn attention_to_long_contexts_counts() {
        let arch = Architecture::default();
        let input = ServingInput { isl: 16_000.0, osl: 1.0, load: Load::DecodeOnly { batch: 8.0 }, ..closed_base() };
        let (used, out) = of(&input);
        let expected = 2.0 * arch.matmul_params() + 4.0 * arch.layers * arch.hidden * 16_000.5;
        let share = out.output_tokens_per_sec * seconds(&input, expected);
        assert!((used.useful / share - 1.0).abs() < 2e-3, "{} {share}", used.useful);
    }

    fn closed_base() -> ServingInput {
        closed(ServingInput::default())
    }

    #[test]
    fn weights_are_relative_to_the_peak_of_their_format() {
        let mut accelerator = Accelerator::default();
        accelerator.flops[Precision::Fp4 as usize] = 4.0 * accelerator.peak(Precision::Bf16);
        let input = ServingInput { accelerator, arch: Architecture::deepseek_v3(), ..closed_base() };
        let narrow = crate::serving::Formats { expert: Precision::Fp4, expert_bytes: 0.53, ..input.formats };
        let each = |input: &ServingInput| {
            let (used, out) = of(input);
            used.useful / out.requests_per_sec
        };
        let (all, less) = (each(&input), each(&ServingInput { formats: narrow, ..input }));
        let arch = &input.arch;
        let experts = arch.moe_layers() * (arch.top_k * arch.expert_params() / arch.experts)
            + (arch.moe_layers() * arch.mlp_params(2048.0) + 3.0 * arch.mlp_params(18432.0));
        let tokens = input.isl + input.osl - 1.0;
        let saved = 0.75 * seconds(&input, 2.0 * experts * tokens);
        assert!(((all - less) / saved - 1.0).abs() < 1e-6, "{all} {less} {saved}");
    }

    #[test]
    fn rejected_drafts_are_computed_but_not_useful() {
        let speculation = Speculation { tokens: Count::new(3), acceptance: 0.7, ..Speculation::default() };
        let load = Load::DecodeOnly { batch: 8.0 };
        let (plain, one) = of(&ServingInput { load, ..closed_base() });
        let (drafted, two) = of(&ServingInput { load, speculation, ..closed_base() });
        let faster = two.requests_per_sec / one.requests_per_sec;
        assert!((drafted.useful / plain.useful / faster - 1.0).abs() < 1e-9);
        // Four tokens are computed for 2.533 that are kept.
        let ratio = drafted.computed / drafted.useful;
        assert!((ratio - 4.0 / 2.533).abs() < 1e-9, "{ratio}");
        let costly = Speculation { draft_layers: 1.0, draft_head: 1.0, ..speculation };
        let (drafted, _) = of(&ServingInput { load, speculation: costly, ..closed_base() });
        let ratio = drafted.computed / drafted.useful * 2.533;
        assert!((6.5..7.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn cached_prompt_tokens_are_not_counted_as_computed() {
        let whole = closed(ServingInput { isl: 8000.0, osl: 200.0, ..ServingInput::default() });
        let each = |input: &ServingInput| {
            let (used, out) = of(input);
            (used.computed / out.requests_per_sec, out.prefix_hit)
        };
        let conversations = Some(Conversations { count: Count::new(4), turns: 1.0, shared: Count::new(7200) });
        let pair = 4.0 * whole.arch.layers * whole.arch.hidden;
        let saved =
            7200.0 * (2.0 * (whole.arch.matmul_params() - whole.arch.vocab * whole.arch.hidden) + pair * 3600.0);
        let all = each(&whole).0;
        for input in [ServingInput { prefix_hit: 0.9, ..whole }, ServingInput { conversations, ..whole }] {
            let (fresh, hit) = each(&input);
            assert!((hit - 0.9).abs() < 1e-9, "{hit}");
            assert!(((all - fresh) / seconds(&whole, saved) - 1.0).abs() < 1e-3, "{all} {fresh}");
        }
    }

    #[test]
    fn layouts_and_pools_divide_the_same_arithmetic() {
        let layout = |tp, pp, attention_dp, dp| Layout {
            tp: Count::new(tp),
            pp: Count::new(pp),
            attention_dp: Count::new(attention_dp),
            dp: Count::new(dp),
            ep: Count::new(tp * attention_dp),
            ..Layout::default()
        };
        let base = ServingInput { arch: Architecture::deepseek_v3(), ..closed_base() };
        let all = |input: &ServingInput| {
            let (used, out) = of(input);
            used.useful / out.requests_per_sec * input.accelerators()
        };
        let expected = all(&ServingInput { layout: layout(1, 1, 1, 1), ..base });
        for layout in [layout(8, 1, 1, 1), layout(1, 1, 8, 1), layout(2, 4, 1, 2), layout(2, 1, 4, 1)] {
            let found = all(&ServingInput { layout, ..base });
            assert!((found / expected - 1.0).abs() < 1e-9, "{layout:?}: {found} {expected}");
        }
        let pools = Some(Pools { prefill: layout(2, 1, 1, 3), decode: layout(4, 1, 1, 1) });
        let found = all(&ServingInput { pools, ..base });
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }
}
