//! Limits of a step: token budget, ranks that share an expert, width of keys.

#![allow(clippy::indexing_slicing)]

use super::*;
use crate::serving::shape::Shape;
use crate::serving::step::Tokens;
use atlas_core::count::Count;

#[test]
fn token_budget_limits_running_sequences_with_chunked_prefill() {
    let of = |max_num_batched_tokens, chunked_prefill| {
        let mut input = ServingInput {
            isl: 512.0,
            osl: 512.0,
            max_num_seqs: Some(Count::new(4096)),
            max_num_batched_tokens,
            chunked_prefill,
            ..closed(600.0)
        };
        input.accelerator.mem_bytes *= 8.0;
        run(&input)
    };
    let [tight, wide] = [512.0, 8192.0].map(|budget| of(budget, true));
    // A sequence has as many prompt tokens as output tokens, so each phase gets half of the budget.
    assert!((tight.batch / 256.0 - 1.0).abs() < 0.02, "{}", tight.batch);
    assert_eq!(wide.batch, 600.0);
    assert!(tight.first_token.slot > 0.0 && wide.first_token.slot == 0.0);
    assert!(tight.output_tokens_per_sec < wide.output_tokens_per_sec);
    // If prefill runs in separate steps, the budget does not limit decode.
    assert_eq!(of(512.0, false).batch, 600.0);
}

#[test]
fn token_budget_limits_running_sequences_of_a_burst() {
    for (requests, osl_spread) in
        [(f64::INFINITY, 1.0), (f64::INFINITY, 2.0), (5000.0, 1.0), (5000.0, 2.0), (400.0, 1.0)]
    {
        let mut last = 0.0;
        for more in [1.0, 2.0, 4.0, 8.0, 16.0] {
            let mut input = ServingInput {
                isl: 512.0,
                osl: 512.0,
                osl_spread,
                max_num_seqs: Some(Count::new(4096)),
                max_num_batched_tokens: 512.0,
                chunked_prefill: true,
                load: Load::Burst { requests },
                ..base()
            };
            input.accelerator.mem_bytes *= more;
            let out = run(&input);
            // More memory than the budget needs: no slower, and no more sequences.
            assert!(out.output_tokens_per_sec >= 0.98 * last, "{requests} {osl_spread} {more}: {last}");
            assert!(out.batch <= 512.0, "{requests} {osl_spread} {more}: {}", out.batch);
            last = out.output_tokens_per_sec;
        }
    }
}

#[test]
fn expert_slice_is_proportional_to_expert_parallelism() {
    let arch = Architecture { experts: Count::new(64), top_k: Count::new(4), moe_ffn: Count::new(1024), ..base().arch };
    let slice = |ep| {
        let layout = Layout { tp: Count::new(8), ep: Count::new(ep), ..Layout::default() };
        Shape::new(&arch, &base().formats, &layout).expert_slice_width
    };
    let slices = [1, 2, 4, 8].map(slice);
    assert!(slices.windows(2).all(|pair| (pair[1] / pair[0] - 2.0).abs() < 1e-9), "{slices:?}");
}

#[test]
fn fp8_kv_cache_speeds_up_mla_decode_on_blackwell_not_on_hopper() {
    let attention = Architecture::deepseek_v3().attention;
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

#[test]
fn gathering_lowers_throughput_mainly_for_short_outputs() {
    let loss = |osl| {
        let of = |gathering| run(&ServingInput { isl: 64.0, osl, chunked_prefill: false, gathering, ..closed(32.0) });
        let (free, gathered) = (of(None), of(Some(Gathering { steps: Count::new(20), ratio: 1.2 })));
        assert!(gathered.ttft.mean > free.ttft.mean && gathered.batch < free.batch);
        1.0 - gathered.output_tokens_per_sec / free.output_tokens_per_sec
    };
    assert!(loss(20.0) > 0.1 && loss(1000.0) < 0.02, "{} {}", loss(20.0), loss(1000.0));
}

#[test]
fn gathering_interval_is_capped_by_steps_and_waiting_ratio() {
    let gathering = Gathering { steps: Count::new(20), ratio: 1.2 };
    assert_eq!(gathering.interval(1000.0), 20.0);
    assert!((gathering.interval(10.0) - 10.0 * 2.2_f64.ln()).abs() < 1e-9);
    assert_eq!(gathering.interval(0.0), 1.0);
}

#[test]
fn batch_above_largest_captured_graph_adds_launch_time() {
    let launch = |batch, graph_batch| {
        let arch = Architecture { hidden: Count::new(1024), ffn: Count::new(2816), ..base().arch };
        run(&ServingInput { arch, isl: 64.0, graph_batch, load: Load::DecodeOnly { batch }, ..base() }).time.launch
    };
    let captured = Some(Count::new(32));
    assert_eq!(launch(32.0, captured), launch(32.0, None));
    let (beyond, within) = (launch(33.0, captured), launch(33.0, None));
    assert!(beyond > 1.2 * within, "{beyond} {within}");
}

#[test]
fn step_time_has_no_jump_where_attention_becomes_compute_bound() {
    let layout = Layout { attention_dp: Count::new(32), ..Layout::default() };
    let input = |mem_bw: f64| {
        let mut input = ServingInput { layout, ..closed(600.0) };
        input.accelerator.mem_bw *= mem_bw;
        input
    };
    let step = |mem_bw: f64, prefill: f64| {
        let input = input(mem_bw);
        let tokens = Tokens { prefill, prefill_context: 64.0, prompts: 32.0, ..Tokens::default() };
        Machine::new(&input, &layout, &Constants::default()).step(&tokens).total()
    };
    for tokens in (1..80).map(|n| 32.0 * 8.0 * f64::from(n)) {
        let (now, more) = (step(1.0, tokens), step(1.0, tokens + 32.0));
        assert!(more >= now && more < 1.02 * now + 1e-4, "{tokens}: {now} {more}");
        assert!(step(1.1, tokens) <= now, "{tokens}: more bandwidth is slower");
    }
}

#[test]
fn prompt_above_the_token_budget_adds_one_weight_pass() {
    let c = Constants::default();
    let time = |isl: f64| {
        let i = ServingInput { isl, max_num_batched_tokens: 2048.0, ..closed(1.0) };
        let m = Machine::new(&i, &i.layout, &c);
        (steady_state::prefill_alone(&m, &i).total(), run(&i).ttft.mean)
    };
    let (few, full, beyond, twice) = (time(16.0), time(2048.0), time(2064.0), time(4096.0));
    let added = (beyond.0 - full.0) / few.0;
    assert!((0.8..1.1).contains(&added), "{few:?} {full:?} {beyond:?}");
    assert!(beyond.1 - full.1 > 0.8 * few.0, "{few:?} {full:?} {beyond:?}");
    assert!((twice.0 / (2.0 * full.0) - 1.0).abs() < 0.1, "{full:?} {twice:?}");
    let ttft: Vec<f64> = (1..80u32).map(|n| time(f64::from(n) * 64.0).1).collect();
    assert!(ttft.is_sorted(), "{ttft:?}");
}

#[test]
fn mean_ttft_of_a_burst_is_0_5_to_0_7_of_a_static_batch() {
    let of = |load, requests: f64| {
        run(&ServingInput { isl: 1024.0, osl: 256.0, max_num_batched_tokens: 1024.0 * requests / 8.0, load, ..base() })
    };
    let requests = 64.0;
    let (backlog, batch) = (of(Load::Burst { requests }, requests), of(Load::Static { batch: requests }, requests));
    // With a few prefill steps, the mean prompt is finished after slightly more than half of them.
    let share = backlog.ttft.mean / batch.ttft.mean;
    assert!((0.5..0.7).contains(&share), "{:?} {:?}", backlog.ttft, batch.ttft);
    assert!((backlog.e2e.mean / batch.e2e.mean - 1.0).abs() < 0.05, "{:?} {:?}", backlog.e2e, batch.e2e);
}

#[test]
fn weights_are_read_whether_or_not_arithmetic_takes_longer() {
    let input = ServingInput { osl: 200.0, isl: 200.0, ..base() };
    let m = Machine::new(&input, &input.layout, &Constants::default());
    let shape = &m.shape;
    let weights = shape.projection_bytes + shape.mlp_bytes + shape.head_bytes;
    let mut last = step::StepTime::default();
    for drafts in 0..40 {
        let verified = 1.0 + f64::from(drafts);
        let now = m.step(&step::Tokens { decode: 32.0, context: 300.0, verified, ..step::Tokens::default() });
        let bytes = now.traffic * input.accelerator.mem_bw;
        let keys = 32.0 * 300.0 * shape.kv_bytes_token;
        let activations = 32.0 * verified * shape.layers * shape.hidden * 2.0 * Constants::default().activation_passes;
        let read = bytes / (weights + keys + activations);
        // Blocks of more than about 800 rows would read their operands more than once.
        assert!(if drafts < 20 { (read - 1.0).abs() < 1e-9 } else { read > 0.999 && read < 1.5 }, "{drafts}: {read}");
        assert!(now.traffic >= last.traffic && now.traffic < now.total(), "{drafts}");
        // The use of the bandwidth has no jump where arithmetic becomes the longer part.
        if drafts > 0 {
            let change = now.traffic / now.total() / (last.traffic / last.total());
            assert!((0.9..1.1).contains(&change), "{drafts}: {change}");
        }
        last = now;
    }
    assert!(last.compute > 2.0 * last.weights, "{last:?}");
}

#[test]
fn stages_read_their_weights_once_per_micro_batch() {
    let layout = |pp| Layout { pp: Count::new(pp), ..Layout::default() };
    let traffic = |pp, decode| {
        let input = ServingInput { layout: layout(pp), ..base() };
        let m = Machine::new(&input, &input.layout, &Constants::default());
        m.step(&step::Tokens { decode, context: 1.0, ..step::Tokens::default() }).traffic
    };
    let whole = traffic(1, 1.0);
    // A single sequence passes the stages one after another: each of them reads a quarter of the weights.
    assert!((traffic(4, 1.0) / whole - 0.25).abs() < 0.01, "{}", traffic(4, 1.0) / whole);
    assert!((traffic(4, 4.0) / whole - 1.0).abs() < 0.01, "{}", traffic(4, 4.0) / whole);
}

#[test]
fn latent_vectors_of_earlier_keys_are_expanded_again_for_each_chunk() {
    let layout = Layout { tp: Count::new(8), ..Layout::default() };
    let load = Load::PrefillOnly { batch: 1.0 };
    let input = ServingInput { arch: Architecture::deepseek_v3(), layout, load, ..base() };
    // 128 heads with keys and values of 128 from a vector of 512, in 61 layers.
    let each = 61.0 * 2.0 * 512.0 * 128.0 * 256.0 / 8.0;
    let m = |input: &ServingInput| Machine::new(input, &input.layout, &Constants::default());
    assert_eq!(m(&input).shape.expansion_flops, each);
    let expanded = |input: &ServingInput, earlier: f64| {
        let found = steady_state::prefill(&m(input), input, 1.0).compute;
        let mut machine = m(input);
        machine.shape.expansion_flops = 0.0;
        let without = steady_state::prefill(&machine, input, 1.0).compute;
        let ratio = (found - without) * machine.rates.dense.reached / (each * earlier);
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
        found / without
    };
    // Cached keys, in one chunk.
    let cached = ServingInput { isl: 8000.0, prefix_hit: 0.9, max_num_batched_tokens: 8192.0, ..input };
    assert!(expanded(&cached, 7200.0) > 1.15);
    // Three chunks after the first one, with one, two and three earlier ones.
    let chunked = ServingInput { isl: 32_768.0, max_num_batched_tokens: 8192.0, ..input };
    assert!(expanded(&chunked, 6.0 * 8192.0) < 1.05);
    // Both: every chunk expands the cached keys as well.
    let both = ServingInput { isl: 65_536.0, prefix_hit: 0.5, ..chunked };
    expanded(&both, 6.0 * 8192.0 + 4.0 * 32_768.0);
    // Some software multiplies short prefixes directly: 1,088 instead of 320 products per pair and head.
    let below = |limit| ServingInput { expanded_prefix: Count::new(limit), ..cached };
    let compute = |input: &ServingInput| steady_state::prefill(&m(input), input, 1.0).compute;
    assert_eq!(compute(&below(7000)), compute(&cached));
    let mut direct = m(&cached);
    (direct.shape.expansion_flops, direct.shape.prefill_pair_flops) = (0.0, 61.0 * 2.0 * 16.0 * 1088.0);
    let expected = steady_state::prefill(&direct, &cached, 1.0).compute;
    assert!((compute(&below(8192)) / expected - 1.0).abs() < 1e-9);
    // The selected keys of sparse attention stay compressed, as do those that heads attend to directly.
    let sparse = Architecture { indexer: Some(INDEXER), ..input.arch };
    assert_eq!(m(&ServingInput { arch: sparse, ..input }).shape.expansion_flops, 0.0);
}

#[test]
fn windows_of_a_prompt_are_averaged_over_its_positions() {
    let shape = |arch: Architecture| Shape::new(&arch, &Formats::default(), &Layout::default());
    // Mean of min(position, 4,096) over 8,192 positions.
    let window = Some(Window { size: Count::new(4096), share: 1.0, chunked: false });
    let windowed = shape(Architecture { window, ..Architecture::default() });
    assert_eq!(windowed.mean_keys_read(4096.0, 8192.0), 3072.0);
    let sums = |shape: &Shape, first: u32, last: u32| {
        (first..last).map(|at| shape.keys_read(f64::from(at) + 0.5)).sum::<f64>() / f64::from(last - first)
    };
    let mixed = Some(Window { size: Count::new(1000), share: 0.75, chunked: false });
    let mixed = shape(Architecture { window: mixed, ..Architecture::default() });
    let sparse = shape(Architecture { indexer: Some(INDEXER), ..Architecture::deepseek_v3() });
    for shape in [windowed, mixed, sparse, shape(Architecture::default())] {
        for (first, last) in [(0, 500), (0, 3000), (500, 20_000), (5000, 9000)] {
            let (found, sum) = (
                shape.mean_keys_read(0.5 * f64::from(first + last), f64::from(last - first)),
                sums(&shape, first, last),
            );
            assert!((found / sum - 1.0).abs() < 1e-6, "{first} to {last}: {found} {sum}");
        }
    }
    // As in training.
    let arch = Architecture { window, ..Architecture::default() };
    assert_eq!(windowed.mean_keys_read(10_000.0, 20_000.0), arch.mean_context(20_000.0));
    let time = |window| {
        let arch = Architecture { window, ..Architecture::default() };
        let input = ServingInput { arch, isl: 8192.0, load: Load::PrefillOnly { batch: 1.0 }, ..base() };
        run(&input).time.compute
    };
    assert!(time(window) < 0.99 * time(Some(Window { size: Count::new(8192), share: 1.0, chunked: false })));
}

#[test]
fn chunked_attention_sees_only_its_chunk() {
    let chunks = Some(Window { size: Count::new(8192), share: 0.75, chunked: true });
    let arch = Architecture { window: chunks, ..Architecture::default() };
    let shape = Shape::new(&arch, &Formats::default(), &Layout::default());
    // Decoding sequences are at a random place in their chunk, for which memory has room as a whole.
    assert_eq!(shape.keys_read(64_000.0), 0.75 * 4096.0 + 0.25 * 64_000.0);
    assert_eq!(shape.keys_cached(64_000.0, false), 0.75 * 8192.0 + 0.25 * 64_000.0);
    assert_eq!(shape.keys_read(5000.0), 5000.0);
    let of = |first: f64, last: f64| {
        (shape.mean_keys_read(0.5 * (first + last), last - first) - 0.125 * (first + last)) / 0.75
    };
    for (first, last, mean) in [
        (0.0, 8192.0, 4096.0),
        (0.0, 81_920.0, 4096.0),
        (8192.0, 12_288.0, 2048.0),
        (0.0, 12_288.0, (8192.0 * 4096.0 + 4096.0 * 2048.0) / 12_288.0),
    ] {
        assert!((of(first, last) - mean).abs() < 1e-6, "{first} to {last}: {}", of(first, last));
    }
    let trained = arch.mean_context(12_288.0);
    assert!((trained - shape.mean_keys_read(6144.0, 12_288.0)).abs() < 1e-6, "{trained}");
}

#[test]
fn more_memory_is_not_slower_where_sequences_fill_the_token_budget() {
    let mut last = 0.0;
    for step in 0..40 {
        let mut i = ServingInput { isl: 1024.0, osl: 4719.0, max_num_batched_tokens: 256.0, ..closed(4096.0) };
        i.accelerator.mem_bytes *= 1.05f64.powi(step);
        let e = run(&i);
        let rate = e.output_tokens_per_sec;
        assert!(rate >= 0.995 * last, "{step}: {rate} after {last}");
        last = rate.max(last);
    }
}
