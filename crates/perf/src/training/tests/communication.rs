//! Volume and place of collectives inside layers.

use super::*;

/// Mixtral on 64 accelerators in nodes of eight.
fn spread_mixtral(tp: u32, ep: u32) -> TrainingInput {
    TrainingInput {
        arch: mixtral(),
        accelerators: 64.0,
        tp: Count::new(tp),
        dp: Count::new(64 / tp),
        ep: Count::new(ep),
        global: 256.0,
        sequence_parallel: tp > 1,
        recompute: Recompute::None,
        ..TrainingInput::default()
    }
}

#[test]
fn expert_exchange_stays_in_the_node_whatever_tensor_parallelism_is() {
    let c = Constants::default();
    let exchange = |tp, ep| {
        let i = spread_mixtral(tp, ep);
        comm::expert(&i, &c, &comm::fabric(&i, &c), Plan::NONE)
    };
    // A rank sends a tp-th of the tokens, over the same links.
    assert!(exchange(2, 8) < 0.6 * exchange(1, 8), "{} {}", exchange(2, 8), exchange(1, 8));
    assert!(exchange(4, 8) < 0.4 * exchange(1, 8), "{} {}", exchange(4, 8), exchange(1, 8));
    assert!(exchange(4, 16) > 2.0 * exchange(4, 8));
}

#[test]
fn recomputed_mlps_and_mixtures_repeat_their_collectives() {
    let c = Constants::default();
    let i = spread_mixtral(2, 8);
    let f = comm::fabric(&i, &c);
    let expert = |plan| comm::expert(&i, &c, &f, plan);
    let half = Plan { mlp_share: 0.5, ..Plan::SELECTIVE };
    assert!((expert(Plan::MLPS) / expert(Plan::NONE) - 1.5).abs() < 1e-9);
    assert!((expert(half) / expert(Plan::NONE) - 1.25).abs() < 1e-9);
    assert_eq!(expert(Plan::MLPS), expert(Plan::FULL));
    assert_eq!(expert(Plan::SELECTIVE), expert(Plan::NONE));
    // One of the two blocks of a dense layer is recomputed.
    let dense = TrainingInput { arch: llama_70b(), ..i };
    let tensor = |plan| comm::tensor(&dense, &c, &f, plan);
    assert!((tensor(Plan::MLPS) / tensor(Plan::NONE) - 1.25).abs() < 1e-9);
    assert!((tensor(Plan::FULL) / tensor(Plan::NONE) - 1.5).abs() < 1e-9);
    assert!((comm::calls(&dense, Plan::MLPS) / comm::calls(&dense, Plan::NONE) - 1.25).abs() < 1e-9);
}

#[test]
fn ranks_that_share_an_expert_exchange_and_keep_all_of_its_tokens() {
    let c = Constants::default();
    let base = TrainingInput { pp: Count::new(4), dp: Count::new(4), ..spread_mixtral(4, 1) };
    let shared = TrainingInput { etp: Count::new(4), ..base };
    let exchanged = |deduplicated_dispatch, ep, etp| {
        let software = Software { deduplicated_dispatch, overlap_experts: false, ..base.software };
        let i = TrainingInput { ep: Count::new(ep), etp: Count::new(etp), software, ..base };
        // Latency is a small part.
        comm::expert(&i, &c, &comm::fabric(&i, &c), Plan::NONE)
    };
    // All-to-all: three quarters of 16.8 MB per pass; all-gather: three quarters of four times as much.
    for kernel in [false, true] {
        let ratio = exchanged(kernel, 1, 4) / exchanged(kernel, 4, 1);
        assert!((3.4..4.1).contains(&ratio), "{ratio}");
    }
    // Over both, one after the other, except that one kernel does both.
    assert!((exchanged(false, 2, 4) / (exchanged(false, 1, 4) + exchanged(false, 2, 1)) - 1.0).abs() < 0.01);
    let activations = |i: &TrainingInput| crate::training::memory::training_memory(i, &c, Recompute::None).activations;
    // Per token, layer and rank: three more copies of two routed inputs in 16 bit, split over four ranks.
    let kept = 3.0 * 2.0 * base.arch.hidden * 2.0 / 4.0;
    let held = base.seq * (base.arch.layers / 4.0) * 4.0;
    let more = activations(&shared) - activations(&base);
    assert!((more / (kept * held) - 1.0).abs() < 1e-6, "{more} {}", kept * held);
}

#[test]
fn mixtures_without_shared_experts_have_no_tensor_parallel_collectives() {
    let c = Constants::default();
    let base = spread_mixtral(8, 8);
    let tensor = |arch, token_split| {
        let i = TrainingInput { arch, software: Software { token_split, ..base.software }, ..base };
        comm::tensor(&i, &c, &comm::fabric(&i, &c), Plan::NONE)
    };
    let shared = Architecture { shared_ffn: Count::new(14336), ..base.arch };
    let dense = Architecture { experts: Count::ZERO, ..base.arch };
    let all = tensor(dense, TokenSplit::Routing);
    // Attention only: the input of the mixture stays split.
    assert!((tensor(base.arch, TokenSplit::Routing) / all - 0.5).abs() < 1e-9);
    assert_eq!(tensor(shared, TokenSplit::Routing), all);
    // The router reads all tokens.
    assert_eq!(tensor(base.arch, TokenSplit::Norms), all);
    let launched = |arch| comm::calls(&TrainingInput { arch, ep: Count::ONE, ..base }, Plan::NONE);
    assert_eq!(launched(base.arch), 0.5 * launched(dense));
}

#[test]
fn context_parallel_ranks_exchange_keys_and_values_as_attention_reads_them() {
    let exchange = |arch, tp: u32, context_exchange| {
        let base = TrainingInput { arch, seq: 131_072.0, cp: Count::new(8), dp: Count::ONE, ..Default::default() };
        let i = TrainingInput { tp: Count::new(tp), accelerators: 8.0 * f64::from(tp), context_exchange, ..base };
        comm::exchange(&i, &comm::fabric(&i, &Constants::default()))
    };
    // 128 heads with keys of 192 and values of 128 elements, not the compressed vector of 576.
    let latent = Architecture::deepseek_v3();
    let equal = Architecture { heads: Count::new(128), kv_heads: Count::new(128), ..Architecture::default() };
    for (kind, widths) in [
        (ContextExchange::AllGather, (192.0 + 128.0) / 256.0),
        (ContextExchange::AllToAll, (2.0 * 192.0 + 2.0 * 128.0) / 512.0),
    ] {
        let ratio = exchange(latent, 1, kind) / exchange(equal, 1, kind);
        assert!((ratio / widths - 1.0).abs() < 0.01, "{ratio} {widths}");
    }
    // Each of eight ranks has one of eight heads, or a copy of one of four.
    let heads = |kv_heads| Architecture { kv_heads: Count::new(kv_heads), ..Architecture::default() };
    let [eight, four] = [8, 4].map(|kv| exchange(heads(kv), 8, ContextExchange::AllGather));
    assert_eq!(eight, four);
}

#[test]
fn transfers_in_32_bit_take_twice_the_bytes_of_those_in_16_bit() {
    let c = Constants::default();
    let software = Software {
        overlap_data: false,
        overlap_parameters: false,
        overlap_pipeline: false,
        overlap_experts: false,
        ..Software::default()
    };
    let spread = spread_mixtral(1, 8);
    let base = TrainingInput { global: 64.0, reduce_bytes: Some(4.0), software, ..spread };
    let sharded = TrainingInput { arch: Architecture::default(), ep: Count::ONE, sharding: Sharding::Zero3, ..base };
    let two = Count::new(2);
    let half = Count::new(32);
    let split = |i: TrainingInput| TrainingInput { dp: half, ..i };
    type Case = (TrainingInput, fn(&TimeBreakdown) -> f64, f64);
    let cases: [Case; 5] = [
        // Two gathers, and a reduction in 32 bit.
        (sharded, |t| t.data_parallel, 12.0 / 8.0),
        (base, |t| t.expert_parallel, 2.0),
        (split(TrainingInput { tp: two, ..base }), |t| t.tensor_parallel, 2.0),
        (
            split(TrainingInput { cp: two, context_exchange: ContextExchange::AllGather, ..base }),
            |t| t.context_parallel,
            2.0,
        ),
        (split(TrainingInput { pp: two, ..base }), |t| t.pipeline_transfer, 2.0),
    ];
    for (i, part, expected) in cases {
        let at = |precision| part(&estimate(&TrainingInput { precision, ..i }, &c).time);
        let ratio = at(Precision::Tf32) / at(Precision::Bf16);
        // A part of the time is latency.
        assert!((ratio / expected - 1.0).abs() < 0.1, "{ratio} {expected}");
    }
}

#[test]
fn ranks_that_compress_their_own_tokens_compute_and_gather_less() {
    let c = Constants::default();
    let arch = Architecture::deepseek_v3();
    let base = TrainingInput { arch, mtp_layers: Count::ZERO, ..spread_mixtral(8, 8) };
    let of = |token_split| TrainingInput { software: Software { token_split, ..base.software }, ..base };
    let [all, own] = [TokenSplit::Routing, TokenSplit::RoutingAndCompressions].map(of);
    // One product of 7168 x 2112 on an eighth of the tokens.
    let flops = |i: &TrainingInput| {
        let mut sum = 0.0;
        for_each_block(i, |block| {
            let mut ops = Vec::new();
            block.operators(i, &mut ops);
            sum += block.share * ops.iter().map(crate::ops::Op::flops).sum::<f64>();
        });
        sum
    };
    let saved = 7.0 / 8.0 * 2.0 * base.seq * 7168.0 * 2112.0;
    assert!(((flops(&all) - flops(&own)) / saved - 1.0).abs() < 1e-6, "{} {saved}", flops(&all) - flops(&own));
    // Attention gathers 2112 instead of 7168 elements; three more collectives are of the hidden state.
    let tensor = |i: &TrainingInput| comm::tensor(i, &c, &comm::fabric(i, &c), Plan::NONE);
    let expected = (3.0 + 2112.0 / 7168.0) / 4.0;
    assert!((tensor(&own) / tensor(&all) / expected - 1.0).abs() < 0.02, "{}", tensor(&own) / tensor(&all));
}
