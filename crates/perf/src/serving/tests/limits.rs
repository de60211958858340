//! What limits a step: its budget of tokens, the ranks that share an expert, the width of keys.

#![allow(clippy::indexing_slicing)]

use super::*;
use crate::arch::Attention;
use crate::serving::shape::Shape;
use atlas_core::count::Count;

#[test]
fn no_more_sequences_run_than_the_token_budget_of_a_step_holds() {
    let of = |max_num_batched_tokens, chunked_prefill| {
        let mut input = ServingInput {
            isl: 512.0,
            osl: 512.0,
            max_num_seqs: 4096.0,
            max_num_batched_tokens,
            chunked_prefill,
            ..closed(600.0)
        };
        input.accelerator.mem_bytes *= 8.0;
        run(&input)
    };
    let [tight, wide] = [512.0, 8192.0].map(|budget| of(budget, true));
    // A sequence needs as many tokens for its prompt as it decodes: half of the budget is left for each.
    assert!((tight.batch / 256.0 - 1.0).abs() < 0.02, "{}", tight.batch);
    assert_eq!(wide.batch, 600.0);
    assert!(tight.first_token.slot > 0.0 && wide.first_token.slot == 0.0);
    assert!(tight.output_tokens_per_sec < wide.output_tokens_per_sec);
    // Prompts in steps of their own leave the budget to themselves.
    assert_eq!(of(512.0, false).batch, 600.0);
}

#[test]
fn ranks_that_share_an_expert_have_slices_of_it() {
    let arch = Architecture { experts: Count::new(64), top_k: Count::new(4), moe_ffn: Count::new(1024), ..base().arch };
    let slice = |ep| {
        let layout = Layout { tp: Count::new(8), ep: Count::new(ep), ..Layout::default() };
        Shape::new(&arch, &base().formats, &layout).expert_slice
    };
    let slices = [1, 2, 4, 8].map(slice);
    assert!(slices.windows(2).all(|pair| (pair[1] / pair[0] - 2.0).abs() < 1e-9), "{slices:?}");
}

#[test]
fn decode_multiplies_eight_bit_keys_faster_where_the_device_has_kernels_for_them() {
    let attention = Attention::Latent {
        q_rank: None,
        kv_rank: Count::new(512),
        nope: Count::new(128),
        rope: Count::new(64),
        value: Count::new(128),
    };
    let arch = Architecture { attention, heads: Count::new(128), kv_heads: Count::new(128), ..base().arch };
    let compute = |generation, kv_bytes| {
        let mut input = ServingInput { arch, isl: 4096.0, load: Load::DecodeOnly { batch: 64.0 }, ..base() };
        input.accelerator.generation = generation;
        input.accelerator.flops[Precision::Fp8 as usize] = 2.0 * input.accelerator.peak(Precision::Bf16);
        input.formats.kv_bytes = kv_bytes;
        run(&input).time.compute
    };
    assert!(compute(Generation::Blackwell, 1.0) < 0.8 * compute(Generation::Blackwell, 2.0));
    assert!((compute(Generation::Hopper, 1.0) / compute(Generation::Hopper, 2.0) - 1.0).abs() < 0.1);
}
