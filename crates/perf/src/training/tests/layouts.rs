//! Bidirectional pipelines, multi-token-prediction layers, and kinds of context parallelism.

use super::*;
use atlas_core::count::Count;

fn staged(schedule: Schedule, m: f64) -> TrainingInput {
    let base =
        TrainingInput { recompute: Recompute::None, dp: Count::new(4), accelerators: 32.0, ..TrainingInput::default() };
    TrainingInput { schedule, pp: Count::new(8), global: 4.0 * m, ..base }
}

#[test]
fn bidirectional_pipeline_doubles_weights_and_shrinks_the_bubble() {
    let c = Constants::default();
    let [one, both] = [Schedule::OneForwardOneBackward, Schedule::DualPipe].map(|s| estimate(&staged(s, 32.0), &c));
    // arXiv 2412.19437, table 2: twice the weights, and p + 1 micro-batches.
    assert!((both.memory.gradients / one.memory.gradients - 2.0).abs() < 1e-9);
    assert!(both.memory.weights > 1.9 * one.memory.weights);
    assert!((both.memory.activations / one.memory.activations - 9.0 / 8.0).abs() < 0.02);
    // Sharded states are spread over both copies.
    assert!((both.memory.optimizer / one.memory.optimizer - 1.0).abs() < 1e-9);
    assert!(both.time.pipeline_bubble < 0.6 * one.time.pipeline_bubble);
    assert!(both.step_seconds < one.step_seconds);
}

#[test]
fn bidirectional_pipelines_need_even_stages_and_micro_batches() {
    let refused = |i: TrainingInput| matches!(supported(&i), Err(Unsupported::Bidirectional { .. }));
    assert!(!refused(staged(Schedule::DualPipe, 16.0)));
    assert!(refused(staged(Schedule::DualPipe, 14.0)) && refused(staged(Schedule::DualPipe, 17.0)));
    assert!(refused(TrainingInput { vpp: Count::new(2), ..staged(Schedule::DualPipe, 16.0) }));
    let odd = TrainingInput { pp: Count::new(5), accelerators: 20.0, ..staged(Schedule::DualPipe, 16.0) };
    assert!(refused(odd));
    assert!(!refused(staged(Schedule::OneForwardOneBackward, 14.0)));
}

#[test]
fn ends_of_a_bidirectional_pipeline_hold_one_micro_batch_of_the_last_stage() {
    let c = Constants::default();
    let base = staged(Schedule::DualPipe, 32.0);
    let at = |mtp_layers| estimate(&TrainingInput { mtp_layers: Count::new(mtp_layers), ..base }, &c).memory;
    let (none, one) = (at(0), at(1));
    // 8 micro-batches of 4 layers of the first stage, and one of the 4 layers of the last, to which one layer is added.
    let added = one.activations / none.activations - 1.0;
    assert!((added * 36.0 - 1.0).abs() < 1e-6, "{added}");
    // Devices between the ends hold 9 micro-batches of 5 layers, those at the ends 8 of 2 and one of 2.
    let ends = Some(Count::new(2));
    let uneven = TrainingInput { first_layers: ends, last_layers: ends, ..base };
    let uneven = TrainingInput { arch: Architecture { layers: Count::new(34), ..base.arch }, ..uneven };
    let uneven = estimate(&uneven, &c).memory;
    assert!((uneven.activations / none.activations - 45.0 / 36.0).abs() < 1e-6 && uneven.logits == 0.0);
}

#[test]
fn dualpipe_overlaps_expert_parallel_communication() {
    let c = Constants::default();
    let base = TrainingInput {
        arch: mixtral(),
        ep: Count::new(8),
        dp: Count::new(8),
        accelerators: 64.0,
        global: 512.0,
        ..staged(Schedule::DualPipe, 32.0)
    };
    let plain = TrainingInput { schedule: Schedule::OneForwardOneBackward, ..base };
    let [plain, both] = [plain, base].map(|i| estimate(&i, &c));
    assert!(plain.time.expert_parallel > 0.0 && both.time.expert_parallel < 0.5 * plain.time.expert_parallel);
}

#[test]
fn mtp_layer_adds_one_layer_and_one_output_projection() {
    let c = Constants::default();
    let base = TrainingInput { recompute: Recompute::None, sharding: Sharding::None, ..TrainingInput::default() };
    let (none, one) = (estimate(&base, &c), estimate(&TrainingInput { mtp_layers: Count::ONE, ..base }, &c));
    let a = &base.arch;
    let layer = a.attention_params() + a.mlp_params(f64::from(a.ffn)) + a.hidden;
    let joins = 2.0 * a.hidden * a.hidden;
    let added = (one.memory.weights - none.memory.weights) / base.weight_bytes;
    assert!((added / (layer + a.hidden + joins) - 1.0).abs() < 1e-6, "{added}");
    let flops = one.causal_flops_per_token - none.causal_flops_per_token;
    let expected = 6.0 * (layer + joins + a.hidden * a.vocab) + 6.0 * a.hidden * base.seq;
    assert!((flops / expected - 1.0).abs() < 0.02, "{flops} {expected}");
    assert!(one.step_seconds > 1.03 * none.step_seconds && one.step_seconds < 1.1 * none.step_seconds);
    assert!((one.time.total() / one.step_seconds - 1.0).abs() < 1e-12);
    assert!(one.memory.logits > 1.9 * none.memory.logits);
}

#[test]
fn multi_token_prediction_needs_an_embedding_on_the_last_stage() {
    let c = Constants::default();
    let at = |schedule, tied, mtp_layers| {
        let base = staged(schedule, 32.0);
        // A large vocabulary, so that the last stage holds most.
        let arch = Architecture { vocab: Count::new(512_000), tied, ..base.arch };
        let base = TrainingInput { arch, recompute: Recompute::Full, sharding: Sharding::None, ..base };
        estimate(&TrainingInput { mtp_layers: Count::new(mtp_layers), ..base }, &c).memory.gradients / base.grad_bytes
    };
    let a = staged(Schedule::OneForwardOneBackward, 32.0).arch;
    let layer = a.attention_params() + a.mlp_params(f64::from(a.ffn)) + 2.0 * a.hidden + 2.0 * a.hidden * a.hidden;
    let copy = 512_000.0 * a.hidden;
    for (schedule, tied, copies) in [
        (Schedule::OneForwardOneBackward, false, 1.0),
        (Schedule::OneForwardOneBackward, true, 0.0),
        (Schedule::DualPipe, false, 0.0),
    ] {
        let added = at(schedule, tied, 1) - at(schedule, tied, 0);
        assert!((added / (layer + copies * copy) - 1.0).abs() < 1e-6, "{schedule:?} {tied}: {added}");
    }
}

#[test]
fn mtp_layers_run_on_the_last_stage() {
    let c = Constants::default();
    let base = staged(Schedule::OneForwardOneBackward, 32.0);
    let (none, two) = (estimate(&base, &c), estimate(&TrainingInput { mtp_layers: Count::new(2), ..base }, &c));
    assert!((two.micro_batch.layers - none.micro_batch.layers - 2.0).abs() < 1e-9);
    assert!(two.step_seconds > 1.3 * none.step_seconds);
}

#[test]
fn context_parallel_kinds_differ_in_communication_time() {
    let c = Constants::default();
    let at = |arch, context_exchange, seq| {
        let base = TrainingInput { arch, seq, recompute: Recompute::Full, ..TrainingInput::default() };
        estimate(&TrainingInput { cp: Count::new(8), dp: Count::ONE, global: 8.0, context_exchange, ..base }, &c)
            .time
            .context_parallel
    };
    let (all, few) = (Architecture::default(), Architecture { kv_heads: Count::new(8), ..Architecture::default() });
    let [ring, gather, heads] = [ContextExchange::Ring, ContextExchange::AllGather, ContextExchange::AllToAll]
        .map(|kind| at(all, kind, 65_536.0));
    // A ring is hidden by long attention. An all-to-all moves 4/p of the width, an all-gather twice the width.
    assert!(ring < 0.2 * gather && heads < gather, "{ring} {gather} {heads}");
    // With few key-value heads, the all-gather is cheap (arXiv 2407.21783, section 3.3.2).
    assert!(at(few, ContextExchange::AllGather, 65_536.0) < 0.3 * gather);
    let odd = TrainingInput {
        cp: Count::new(3),
        accelerators: 3.0,
        dp: Count::ONE,
        context_exchange: ContextExchange::AllToAll,
        ..TrainingInput::default()
    };
    assert!(matches!(supported(&odd), Err(Unsupported::IndivisibleHeads { .. })));
}

#[test]
fn expert_gemm_time_has_no_jump_at_the_tile_boundary() {
    let arch = Architecture { experts: Count::new(256), top_k: Count::new(8), moe_ffn: Count::new(2048), ..mixtral() };
    let seconds_a_token = |seq: f64| {
        let input = TrainingInput { arch, seq, recompute: Recompute::None, ..TrainingInput::default() };
        estimate(&input, &Constants::default()).time.gemm / seq
    };
    // 64 tokens per expert on average, then so many that they no longer fit in the small tile.
    let times: Vec<f64> = (0..12).map(|step| seconds_a_token(1920.0 + 32.0 * f64::from(step))).collect();
    for pair in times.windows(2) {
        assert!(pair[1] / pair[0] < 1.1, "{times:?}");
    }
}

#[test]
fn ends_of_a_pipeline_sum_the_gradients_of_a_shared_embedding() {
    let c = Constants::default();
    let base = staged(Schedule::OneForwardOneBackward, 32.0);
    let at = |tied, mtp, i: TrainingInput| {
        let i = TrainingInput { arch: Architecture { tied, ..i.arch }, mtp_layers: Count::new(mtp), ..i };
        (estimate(&i, &c).time.data_parallel, comm::shared_embedding(&i, &comm::fabric(&i, &c)))
    };
    let (plain, none) = at(false, 0, base);
    assert_eq!(none, 0.0);
    for (tied, mtp) in [(true, 0), (false, 1), (true, 1)] {
        let (data, shared) = at(tied, mtp, base);
        // The first and the last of 8 stages are on different nodes: a ring of two ranks moves all bytes once.
        let bytes = base.arch.vocab * base.arch.hidden * base.grad_bytes;
        let rate = bytes / shared / base.accelerator.nic_bw;
        assert!((0.7..1.0).contains(&rate), "{rate}");
        assert!(mtp > 0 || (data - plain - shared).abs() < 1e-12);
    }
    assert_eq!(at(true, 0, TrainingInput { schedule: Schedule::DualPipe, ..base }).1, 0.0);
    assert_eq!(at(true, 0, TrainingInput { pp: Count::ONE, ..base }).1, 0.0);
    assert_eq!(at(true, 0, TrainingInput { adapters: Adapters::All, trained: 0.01, ..base }).1, 0.0);
}
