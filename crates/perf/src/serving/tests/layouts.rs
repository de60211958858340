//! Layouts over accelerators: replicas, pools, stages, attention groups, expert parallelism, KV-cache sharding.

use super::*;

#[test]
fn prefill_decode_disaggregation_lowers_p99_itl() {
    let two = Layout { dp: Count::new(2), ..Layout::default() };
    let mut i = ServingInput { isl: 4096.0, ..closed(32.0) };
    i.layout = Layout { dp: Count::new(4), ..Layout::default() };
    let together = run(&i);
    i.pools = Some(Pools { prefill: two, decode: two });
    let apart = run(&i);
    // No prompt chunk delays the tokens of a decoding request.
    assert!(apart.itl.p99 < together.itl.p99);
    assert!(apart.output_tokens_per_sec > 0.0 && apart.ttft.mean.is_finite());
}

#[test]
fn replicas_multiply_throughput() {
    let one = run(&ServingInput { load: Load::Burst { requests: f64::INFINITY }, ..base() });
    let mut i = ServingInput { load: Load::Burst { requests: f64::INFINITY }, ..base() };
    i.layout.dp = Count::new(4);
    assert!((run(&i).output_tokens_per_sec / one.output_tokens_per_sec - 4.0).abs() < 1e-9);
}

#[test]
fn attention_dp_imbalance_grows_with_ranks_except_for_even_batches() {
    let mixture = Architecture {
        experts: Count::new(64),
        top_k: Count::new(4),
        moe_ffn: Count::new(1024),
        ..Architecture::default()
    };
    let time = |groups: u32, timed: bool| {
        let groups = Count::new(groups);
        let layout = Layout { ep: groups, attention_dp: groups, ..Layout::default() };
        let many = 32.0 * groups;
        let load = if timed { Load::DecodeOnly { batch: many } } else { closed(many).load };
        let i = ServingInput { arch: mixture, layout, load, ..base() };
        let machine = Machine::new(&i, &layout, &Constants::default());
        machine.decode_step(&steady_state::decode_tokens(&i, many)).kv
    };
    assert!(time(8, false) > 1.05 * time(2, false));
    let (two, eight) = (time(2, true), time(8, true));
    assert!((eight / two - 1.0).abs() < 1e-9, "{two} {eight}");
}

#[test]
fn single_prompt_prefills_faster_than_one_of_many_with_attention_dp() {
    let wide = Layout { attention_dp: Count::new(16), ep: Count::new(16), ..Layout::default() };
    let mixture = Architecture {
        experts: Count::new(64),
        top_k: Count::new(4),
        moe_ffn: Count::new(4096),
        ..Architecture::default()
    };
    let of = |concurrency: f64| {
        let i = ServingInput { arch: mixture, isl: 4096.0, osl: 16.0, ..closed(concurrency) };
        run(&ServingInput { layout: wide, pools: Some(Pools { prefill: wide, decode: wide }), ..i }).first_token.prefill
    };
    assert!(of(1.0) < 0.9 * of(512.0), "{} {}", of(1.0), of(512.0));
}

#[test]
fn a_prompt_alone_waits_for_no_busier_attention_group() {
    let groups = Layout { attention_dp: Count::new(8), ep: Count::new(8), ..Layout::default() };
    let i = ServingInput { arch: Architecture::deepseek_v3(), layout: groups, isl: 4000.0, ..closed(1.0) };
    let without = Constants { group_excess: 0.0, ..Constants::default() };
    let [usual, none] = [Constants::default(), without].map(|c| estimate(&i, &c).first_token.prefill);
    assert!((usual / none - 1.0).abs() < 1e-9, "{usual} {none}");
}

#[test]
fn full_attention_groups_of_a_prefill_pool_are_as_fast_as_a_batch_of_prompts() {
    for groups in [8, 32] {
        let wide = Layout { attention_dp: Count::new(groups), ep: Count::new(groups), ..Layout::default() };
        let decode = Layout { dp: Count::new(512), ..Layout::default() };
        let mut i = ServingInput { arch: Architecture::deepseek_v3(), isl: 4096.0, osl: 2.0, ..closed(8192.0) };
        (i.accelerator.mem_bytes, i.max_num_batched_tokens) = (2e12, 16_384.0);
        let pool = run(&ServingInput { pools: Some(Pools { prefill: wide, decode }), ..i });
        let batch = Load::PrefillOnly { batch: 8192.0 };
        let alone = run(&ServingInput { layout: wide, osl: 1.0, load: batch, ..i });
        let (pool, alone) = (pool.requests_per_sec, alone.requests_per_sec);
        assert!((pool / alone - 1.0).abs() < 0.03, "{groups}: {pool} {alone}");
    }
}

#[test]
fn idle_replicas_do_not_add_throughput() {
    let layout = |dp| Layout { dp, ..Layout::default() };
    let requests = |n: f64| {
        [
            Load::Closed { concurrency: n, requests: f64::INFINITY },
            Load::Static { batch: n },
            Load::DecodeOnly { batch: n },
            Load::PrefillOnly { batch: n },
        ]
    };
    for load in requests(1.0) {
        let of = |dp| run(&ServingInput { load, layout: layout(dp), ..base() }).requests_per_sec;
        assert!((of(Count::new(4)) / of(Count::ONE) - 1.0).abs() < 1e-6, "{load:?}");
    }
    for (one, four) in requests(1.0).into_iter().zip(requests(4.0)) {
        let of = |load, dp| run(&ServingInput { load, layout: layout(dp), ..base() }).requests_per_sec;
        assert!((of(four, Count::new(4)) / of(one, Count::ONE) - 4.0).abs() < 1e-6, "{one:?}");
    }
}

#[test]
fn context_ranks_shard_only_the_replicated_kv_cache() {
    let of = |attention, context_ranks| {
        let arch = Architecture { attention, ..base().arch };
        let layout = Layout { tp: Count::new(8), ..Layout::default() };
        run(&ServingInput { arch, layout, context_ranks, ..closed(8.0) }).max_concurrency
    };
    let latent = Architecture::deepseek_v3().attention;
    assert!((of(latent, Count::new(8)) / of(latent, Count::ONE) - 8.0).abs() < 1e-6);
    assert_eq!(of(latent, Count::new(64)), of(latent, Count::new(8)));
    assert_eq!(of(Attention::Grouped, Count::new(8)), of(Attention::Grouped, Count::ONE));
}

#[test]
fn pipeline_stage_uses_the_full_token_budget() {
    let of = |max_num_batched_tokens| {
        let layout = Layout { pp: Count::new(4), ..Layout::default() };
        let load = Load::PrefillOnly { batch: 64.0 };
        run(&ServingInput { layout, load, isl: 1024.0, max_num_batched_tokens, ..base() }).total_tokens_per_sec
    };
    // A step with four times the token budget only saves weight reads.
    assert!(of(65_536.0) < 1.3 * of(8192.0));
}

#[test]
fn all_reduce_beyond_a_node_uses_the_nics_of_all_its_ranks() {
    let communication = |tp: u32, nic_bw: f64| {
        let mut input = ServingInput {
            layout: Layout { tp: Count::new(tp), ..Layout::default() },
            load: Load::PrefillOnly { batch: 1.0 },
            isl: 8000.0,
            ..base()
        };
        (input.accelerator.domain, input.accelerator.nic_bw) = (8.0, nic_bw);
        run(&input).time.communication
    };
    let (inside, across) = (communication(8, 50e9), communication(16, 50e9));
    // Eight NICs of 50 GB/s have 0.9 of the bandwidth of a link of 450 GB/s.
    assert!(across > inside && across < 2.0 * inside, "{inside} {across}");
    // With fast NICs the links inside the nodes are the bottleneck.
    assert!((communication(16, 500e9) / communication(16, 5000e9) - 1.0).abs() < 1e-9);
}

#[test]
fn exchange_by_a_collective_sends_only_copies_for_other_nodes_over_the_network() {
    let exchange = |ranks: u32| {
        let layout = Layout { attention_dp: Count::new(ranks), ep: Count::new(ranks), ..Layout::default() };
        let mut input = ServingInput { arch: Architecture::deepseek_v3(), layout, ..base() };
        (input.accelerator.domain, input.accelerator.nic_bw) = (8.0, 50e9);
        Machine::new(&input, &layout, &Constants::default()).collectives.exchange_token
    };
    // Half of the ranks of two nodes are in another node, three quarters of those of four.
    assert!((exchange(16) / exchange(32) - 0.5 / 0.75).abs() < 1e-9, "{} {}", exchange(16), exchange(32));
}

#[test]
fn prefill_pool_must_hold_the_weights_and_a_prompt() {
    let layout = |tp| Layout { tp: Count::new(tp), ..Layout::default() };
    let of = |prefill, memory| {
        let mut input =
            ServingInput { pools: Some(Pools { prefill: layout(prefill), decode: layout(8) }), ..closed(4.0) };
        input.accelerator.mem_bytes = memory;
        run(&input).fits
    };
    // 13 GB of weights.
    assert!(of(8, 12e9) && !of(1, 12e9) && of(1, 40e9));
}

#[test]
fn fullest_pipeline_stage_sets_pace_and_memory() {
    let layout = Layout { pp: Count::new(8), ..Layout::default() };
    let of = |layers: u32, sequences: f64| {
        // The output layer is small.
        let arch = Architecture { layers: Count::new(layers), vocab: Count::new(100), ..Architecture::default() };
        let input = ServingInput { arch, layout, ..base() };
        let machine = Machine::new(&input, &layout, &Constants::default());
        let step = machine.step(&steady_state::decode_tokens(&input, sequences));
        let capacity = kv::capacity(&input, &layout, &machine.shape, &Constants::default());
        (step.total() - step.host, capacity.sequences, machine.shape.resident_bytes)
    };
    // Stages of 36 layers have five or four, and those of 40 layers five.
    let (uneven, even) = (of(36, 64.0), of(40, 64.0));
    assert!((uneven.0 / even.0 - 1.0).abs() < 0.01, "{} {}", uneven.0, even.0);
    assert!((uneven.1 / even.1 - 1.0).abs() < 0.01, "{} {}", uneven.1, even.1);
    assert!((uneven.2 / even.2 - 1.0).abs() < 0.01, "{} {}", uneven.2, even.2);
    // One sequence passes the stages one after another.
    let ratio = of(36, 1.0).0 / of(40, 1.0).0;
    assert!((0.88..0.93).contains(&ratio), "{ratio}");
}

#[test]
fn output_layer_is_on_the_last_stage() {
    let layout = Layout { pp: Count::new(4), ..Layout::default() };
    let step = |vocab: u32| {
        let arch = Architecture { vocab: Count::new(vocab), ..Architecture::default() };
        let input = ServingInput { arch, layout, ..base() };
        let machine = Machine::new(&input, &layout, &Constants::default());
        machine.step(&steady_state::decode_tokens(&input, 64.0)).total()
    };
    // Four micro-batches each wait for an output layer of 2.1 GB.
    let added = step(256_000) - step(100);
    let read = 4.0 * 256_000.0 * 4096.0 * 2.0 / 3.35e12;
    assert!(added > read, "{added} {read}");
}

/// A chunk enters the first stage when the previous one leaves it, so that n chunks take n + stages - 1 stage times.
#[test]
fn chunks_of_a_prompt_follow_one_another_through_the_stages() {
    for stages in [1, 2, 4] {
        let prefill = |chunks: f64| {
            let layout = Layout { pp: Count::new(stages), ..Layout::default() };
            let load = Load::PrefillOnly { batch: 1.0 };
            let i = ServingInput { layout, load, isl: 16_384.0, max_num_batched_tokens: 16_384.0 / chunks, ..base() };
            run(&i).ttft.mean
        };
        let whole = prefill(1.0);
        for chunks in [2.0, 4.0, 8.0] {
            let expected = (chunks + f64::from(stages) - 1.0) / f64::from(stages) / chunks;
            let found = prefill(chunks) / whole;
            assert!((found / expected - 1.0).abs() < 0.1, "{stages} stages, {chunks} chunks: {found} {expected}");
        }
    }
}

/// A prompt of one chunk is in one micro-batch, which takes as long in every stage.
#[test]
fn a_whole_prompt_is_not_divided_between_pipeline_stages() {
    let machine = |pp| {
        let layout = Layout { pp: Count::new(pp), ..Layout::default() };
        let i = ServingInput { layout, isl: 4096.0, ..base() };
        let machine = Machine::new(&i, &layout, &Constants::default());
        let decode = steady_state::decode_tokens(&i, 8.0);
        let more = |n: f64| {
            let prompts = steady_state::prompts(&i, 4096.0 * n, n);
            machine.step(&decode.with(&prompts)).total() - machine.step(&decode).total()
        };
        (more(1.0), more(2.0))
    };
    let ((one, two), (staged, both)) = (machine(1), machine(2));
    assert!((staged / one - 1.0).abs() < 0.05, "{staged} {one}");
    assert!((both / two - 0.5).abs() < 0.05, "{both} {two}");
}
