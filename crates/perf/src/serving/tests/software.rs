//! Effects of software: kernels, graphs, host.

use super::*;
use crate::serving::steady_state::padded_batch;
use crate::serving::step::Tokens;
use crate::traits::ExpertProducts;

#[test]
fn gemm_tile_padding_limits_one_stream_on_low_flops_devices() {
    use crate::accelerator::Generation;
    // An H20: the bandwidth of an H100, a seventh of its arithmetic.
    let hopper = Accelerator { generation: Generation::Hopper, ..h100() };
    let slow = Accelerator { flops: hopper.flops.map(|f| f / 6.7), ..hopper };
    let on = |accelerator| ServingInput { accelerator, ..base() };
    assert!(stream(&on(slow)) < 0.75 * stream(&on(hopper)));
    // Padding is free until the tile is full.
    let of = |batch| {
        let load = Load::DecodeOnly { batch };
        run(&ServingInput { load, isl: 16.0, osl: 16.0, ..on(slow) }).time.compute
    };
    assert!((of(1.0) - of(16.0)).abs() < 0.1 * of(1.0), "{} {}", of(1.0), of(16.0));
    assert!(of(256.0) > 2.0 * of(1.0));
}

/// The mixer of a state-space model.
const LINEAR: Linear = Linear {
    kind: LinearKind::Mamba2,
    share: 1.0,
    heads: Count::new(128),
    head_dim: Count::new(64),
    state: Count::new(128),
    groups: Count::new(8),
    taps: Count::new(4),
};

#[test]
fn recurrent_state_traffic_is_independent_of_context_length() {
    let of_state = |state: u32| {
        let linear = Some(Linear { state: Count::new(state), ..LINEAR });
        Architecture { attention_share: 0.0, linear, ..Architecture::default() }
    };
    let arch = of_state(128);
    let of = |isl: f64| ServingInput { arch, isl, load: Load::DecodeOnly { batch: 32.0 }, ..base() };
    let kv = |isl: f64| run(&of(isl)).time.kv;
    assert!(kv(1e2) > 0.0 && (kv(1e2) - kv(1e5)).abs() < 1e-9 * kv(1e2));
    let larger = of_state(256);
    assert!(run(&ServingInput { arch: larger, ..of(1e3) }).time.kv > 1.9 * kv(1e3));
    assert!(run(&ServingInput { arch: larger, ..of(1e3) }).max_concurrency < run(&of(1e3)).max_concurrency);
}

#[test]
fn missing_grouped_decode_kernel_slows_only_gqa() {
    let grouped = Architecture { kv_heads: Count::new(8), ..Architecture::default() };
    for (arch, slower) in [(grouped, true), (Architecture::default(), false)] {
        let of = |grouped_query_decode| {
            let load = Load::DecodeOnly { batch: 64.0 };
            run(&ServingInput { arch, grouped_query_decode, load, isl: 4096.0, ..base() }).output_tokens_per_sec
        };
        assert_eq!(of(false) < 0.9 * of(true), slower, "{} {}", of(false), of(true));
    }
}

#[test]
fn native_kernels_and_ungrouped_decode_run_at_the_clock_of_the_cores() {
    let arch = Architecture { kv_heads: Count::new(8), ..Architecture::default() };
    let of = |clock: f64| {
        let accelerator = Accelerator { clock, cores: 30.0, ..Accelerator::default() };
        let (stack, load) = (Stack::Local, Load::DecodeOnly { batch: 1.0 });
        run(&ServingInput { accelerator, arch, stack, grouped_query_decode: false, load, isl: 8192.0, ..base() })
    };
    let (slow, fast) = (of(1e9), of(2e9));
    assert!((slow.time.weights / fast.time.weights - 2.0).abs() < 1e-6, "{slow:?} {fast:?}");
    assert!((slow.time.kv / fast.time.kv - 2.0).abs() < 1e-6);
}

#[test]
fn compiled_batch_pays_for_empty_slots_and_padded_context() {
    let of = |batch, compiled_batch| {
        run(&ServingInput { load: Load::DecodeOnly { batch }, compiled_batch, ..base() }).output_tokens_per_sec
    };
    assert!(of(1.0, Some(Count::new(32))) < of(1.0, None));
    assert!(of(32.0, Some(Count::new(32))) < of(32.0, None));
    // Attention runs over the whole bucket, a power of two, however full it is.
    let long = |isl: f64| {
        let load = Load::DecodeOnly { batch: 8.0 };
        run(&ServingInput { load, compiled_batch: Some(Count::new(8)), isl, osl: 24.0, ..base() }).time.kv
    };
    assert_eq!(long(1025.0), long(2024.0));
    assert!(long(2025.0) > 1.9 * long(2024.0));
}

#[test]
fn bucketed_batches_are_padded_to_the_next_graph_not_the_largest() {
    let of = |batch, most| {
        let load = Load::DecodeOnly { batch };
        let (compiled_batch, batch_buckets) = (Some(Count::new(most)), true);
        run(&ServingInput { load, compiled_batch, batch_buckets, ..base() }).output_tokens_per_sec
    };
    assert_eq!(of(64.0, 64), of(64.0, 1024));
    let slots = |batch| padded_batch(batch, 256.0, true);
    assert_eq!([1.0, 3.0, 17.0, 33.0, 65.0, 250.0].map(slots), [1.0, 4.0, 32.0, 64.0, 96.0, 256.0]);
    assert_eq!(padded_batch(20.0, 24.0, true), 24.0);
    assert_eq!(padded_batch(20.0, 256.0, false), 256.0);
}

#[test]
fn untuned_gemms_slow_decode_with_batch_but_not_prefill() {
    let of = |tuned_products, load| run(&ServingInput { tuned_products, load, ..base() });
    let slowdown = |batch| {
        let load = Load::DecodeOnly { batch };
        of(true, load).output_tokens_per_sec / of(false, load).output_tokens_per_sec
    };
    assert!(slowdown(1.0) < 1.01 && slowdown(64.0) > 1.5 && slowdown(64.0) > slowdown(32.0), "{}", slowdown(64.0));
    let prompt = Load::PrefillOnly { batch: 4.0 };
    assert_eq!(of(true, prompt).ttft.mean, of(false, prompt).ttft.mean);
}

#[test]
fn sequential_experts_add_launch_time_with_batch() {
    let mixture = Architecture {
        experts: Count::new(64),
        top_k: Count::new(4),
        moe_ffn: Count::new(1024),
        ..Architecture::default()
    };
    let launch = |arch, expert_products, batch| {
        run(&ServingInput { arch, expert_products, load: Load::DecodeOnly { batch }, ..base() }).time.launch
    };
    let more = |how, batch| launch(mixture, how, batch) - launch(mixture, ExpertProducts::Grouped, batch);
    let sequential = |batch| more(ExpertProducts::Sequential, batch);
    assert!(sequential(1.0) > 0.0 && sequential(16.0) > 5.0 * sequential(1.0), "{}", sequential(16.0));
    // Kernels of experts without tokens are launched, too.
    let separate = |batch| more(ExpertProducts::Separate, batch);
    assert!(separate(1.0) > 0.0 && (separate(16.0) / separate(1.0) - 1.0).abs() < 1e-9, "{}", separate(16.0));
    let dense = Architecture::default();
    for how in [ExpertProducts::Sequential, ExpertProducts::Separate] {
        assert_eq!(launch(dense, how, 16.0), launch(dense, ExpertProducts::Grouped, 16.0));
    }
}

#[test]
fn expanded_drafts_multiply_kv_reads_by_verified_tokens() {
    let speculation =
        Speculation { tokens: Count::new(4), acceptance: 0.7, draft_layers: 0.0, ..Speculation::default() };
    let kv = |expanded_drafts| {
        run(&ServingInput { speculation, expanded_drafts, load: Load::DecodeOnly { batch: 32.0 }, ..base() }).time.kv
    };
    assert!((kv(true) / kv(false) - 5.0).abs() < 0.2, "{}", kv(true) / kv(false));
}

#[test]
fn dataflow_accelerator_overlaps_collectives_with_memory_reads() {
    use crate::accelerator::Generation;
    use atlas_core::network::LinkPath;
    let of = |generation| {
        let accelerator = Accelerator { generation, link_bw: 16e9, link_path: LinkPath::Host, ..h100() };
        let layout = Layout { tp: Count::new(8), ..Layout::default() };
        run(&ServingInput { accelerator, layout, stack: Stack::Compiled, load: Load::Static { batch: 1.0 }, ..base() })
    };
    let (dataflow, other) = (of(Generation::Other), of(Generation::Hopper));
    assert!(dataflow.time.communication > 0.0 && dataflow.time.communication < other.time.communication);
}

#[test]
fn indexer_and_streams_add_launches_and_selection_cuts_kv_reads() {
    let plain = Architecture::default();
    let launch = |arch| run(&ServingInput { arch, ..base() }).time.launch;
    let indexed = Architecture { indexer: Some(INDEXER), ..plain };
    assert!(launch(indexed) > launch(plain));
    assert!(launch(Architecture { streams: Count::new(4), ..plain }) > launch(plain));
    let kv = |arch| run(&ServingInput { arch, isl: 60_000.0, load: Load::DecodeOnly { batch: 1.0 }, ..base() }).time.kv;
    assert!(kv(indexed) < 0.3 * kv(plain));
}

#[test]
fn python_executor_and_unoverlapped_drafting_add_host_time() {
    let compiled = ServingInput { stack: Stack::Compiled, load: Load::DecodeOnly { batch: 512.0 }, ..base() };
    assert!(run(&ServingInput { python_executor: true, ..compiled }).time.host > 1.3 * run(&compiled).time.host);
    let speculation =
        Speculation { tokens: Count::new(4), acceptance: 0.7, draft_layers: 0.03, ..Speculation::default() };
    let draft = |host| run(&ServingInput { speculation, host, ..closed(32.0) }).output_tokens_per_sec;
    assert!(draft(HostOverlap::None) < draft(HostOverlap::Scheduling));
}

#[test]
fn eager_prefill_raises_ttft_and_tpot_for_short_prompts() {
    let of = |eager_prompts| {
        run(&ServingInput { eager_prompts, chunked_prefill: false, isl: 64.0, osl: 64.0, ..closed(32.0) })
    };
    let (compiled, eager) = (of(false), of(true));
    assert!(eager.ttft.mean > compiled.ttft.mean && eager.tpot.mean > compiled.tpot.mean);
    // For long prompts, the accelerator takes longer than the host needs for its launches.
    let long = |eager_prompts| run(&ServingInput { eager_prompts, isl: 60_000.0, ..closed(1.0) }).ttft.mean;
    assert!((long(true) / long(false) - 1.0).abs() < 0.01);
}

#[test]
fn tensor_parallel_gemm_loss_is_smaller_on_low_flops_devices() {
    // An H20 has a seventh of an H100's arithmetic and more bandwidth.
    let mut h20 = Accelerator { mem_bw: 4.0e12, ..h100() };
    h20.flops = h20.flops.map(|f| f * 148.0 / 989.0);
    let slowdown = |accelerator: Accelerator| {
        let compute = |tp: u32| {
            let layout = Layout { tp: Count::new(tp), ..Layout::default() };
            let load = Load::PrefillOnly { batch: 1.0 };
            run(&ServingInput { accelerator, layout, load, isl: 8192.0, ..ServingInput::default() }).time.compute
        };
        8.0 * compute(8) / compute(1)
    };
    assert!(slowdown(h20) > 1.0 && slowdown(h100()) - 1.0 > 3.0 * (slowdown(h20) - 1.0), "{}", slowdown(h20));
}

#[test]
fn polled_admission_delays_ttft_by_half_of_the_skipped_steps() {
    let of = |concurrency, interval| {
        run(&ServingInput {
            admission: Admission::Polled,
            recv_interval: Count::new(interval),
            osl: 1000.0,
            ..closed(concurrency)
        })
    };
    let (often, seldom) = (of(16.0, 1), of(16.0, 31));
    assert!(((seldom.ttft.mean - often.ttft.mean) / (15.0 * often.itl.p50) - 1.0).abs() < 0.02);
    // An idle scheduler polls immediately.
    assert!((of(1.0, 31).ttft.mean - of(1.0, 1).ttft.mean).abs() < 1e-9);
}

#[test]
fn gated_delta_prefill_is_slower_than_mamba_2_prefill() {
    let of = |kind| {
        let linear = Linear { kind, ..LINEAR };
        let arch = Architecture { linear: Some(linear), attention_share: 0.0, ..Architecture::default() };
        run(&ServingInput { arch, eager_prompts: true, isl: 16.0, ..closed(1.0) })
    };
    let (mamba, delta) = (of(LinearKind::Mamba2), of(LinearKind::GatedDelta));
    assert!(delta.first_token.prefill > 1.05 * mamba.first_token.prefill);
}

#[test]
fn burst_wait_grows_sublinearly_with_concurrency() {
    // A single short prompt is bound by kernel launches; several prompts share them.
    let of = |concurrency| {
        run(&ServingInput {
            eager_prompts: true,
            chunked_prefill: false,
            isl: 64.0,
            osl: 1000.0,
            load: Load::Closed { concurrency, requests: 10.0 * concurrency },
            ..base()
        })
    };
    let (few, many) = (of(2.0).first_token.burst, of(64.0).first_token.burst);
    assert!(many < 0.4 * 63.0 * few, "{many} {few}");
}

#[test]
fn unpack_passes_add_weight_memory_traffic() {
    let of =
        |unpack_passes| stream(&ServingInput { formats: Formats { unpack_passes, ..Formats::default() }, ..base() });
    assert!(of(5.0) < 0.45 * of(1.0));
    assert_eq!(of(1.0), of(0.0));
}

#[test]
fn compiled_graph_computes_every_expert_once_the_batch_uses_all() {
    let arch = Architecture { experts: Count::new(64), top_k: Count::new(4), moe_ffn: Count::new(1024), ..base().arch };
    let of = |compiled_batch, isl| {
        run(&ServingInput { arch, compiled_batch, isl, load: Load::PrefillOnly { batch: 1.0 }, ..base() }).time.compute
    };
    assert!(of(Some(Count::ONE), 2048.0) > 3.0 * of(None, 2048.0));
    // If the tokens choose fewer experts than there are, only those are loaded.
    assert!(of(Some(Count::ONE), 8.0) < 1.5 * of(None, 8.0));
}

#[test]
fn streaming_adds_host_time_without_host_overlap() {
    let of = |load, host| run(&ServingInput { load, host, ..base() }).time.host;
    let online = Load::Closed { concurrency: 64.0, requests: f64::INFINITY };
    let gain = of(online, HostOverlap::None) - of(Load::Burst { requests: 64.0 }, HostOverlap::None);
    assert!(gain > 50e-6, "{gain}");
    let [none, front_end, scheduling] =
        [HostOverlap::None, HostOverlap::FrontEnd, HostOverlap::Scheduling].map(|host| of(online, host));
    assert!(scheduling < front_end && front_end < none, "{scheduling} {front_end} {none}");
}

#[test]
fn piecewise_graph_capture_slows_mainly_small_batches() {
    // Launches take longer than a step with one sequence, but less time than a step with a full batch.
    let constants = Constants { kernel_prefill: 200e-6, ..Constants::default() };
    let of = |batch, graphs| {
        let load = Load::Static { batch };
        let input = ServingInput { stack: Stack::Graphed, load, graphs, isl: 4096.0, ..base() };
        estimate(&input, &constants).output_tokens_per_sec
    };
    let loss = |batch| of(batch, GraphCapture::Piecewise) / of(batch, GraphCapture::Full);
    assert!(loss(1.0) < 1.0 && loss(1.0) < loss(256.0), "{} {}", loss(1.0), loss(256.0));
    assert!(of(1.0, GraphCapture::None) < of(1.0, GraphCapture::Piecewise));
}

#[test]
fn prefill_throughput_rises_with_attention_kernel_generation() {
    let of = |attention| {
        let load = Load::PrefillOnly { batch: 4.0 };
        let mut input = ServingInput { load, attention, isl: 16_384.0, ..base() };
        input.accelerator.generation = Generation::Hopper;
        run(&input).total_tokens_per_sec
    };
    let [first, second, native] = [FusedAttention::First, FusedAttention::Second, FusedAttention::Native].map(of);
    assert!(first < second && second < native, "{first} {second} {native}");
}

#[test]
fn front_end_overlap_makes_host_time_independent_of_draft_count() {
    use crate::serving::step::Tokens;
    let of = |host, tokens| {
        let speculation = Speculation { tokens: Count::new(tokens), acceptance: 0.7, ..Speculation::default() };
        let input = ServingInput { host, speculation, load: Load::DecodeOnly { batch: 1.0 }, ..base() };
        let machine = Machine::new(&input, &Layout::default(), &Constants::default());
        let step = |verified| machine.step(&Tokens { decode: 1.0, context: 512.0, verified, ..Tokens::default() }).host;
        step(f64::from(tokens) + 1.0) / step(1.0)
    };
    let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
    assert!(near(of(HostOverlap::FrontEnd, 1), 2.0) && near(of(HostOverlap::FrontEnd, 5), 2.0));
    assert!(near(of(HostOverlap::None, 1), 2.0) && near(of(HostOverlap::None, 5), 6.0));
    assert!(near(of(HostOverlap::Scheduling, 5), 1.0));
}

#[test]
fn rings_of_a_collective_library_take_longer_with_more_ranks() {
    let latency = |tp: u32, all_reduce| {
        let layout = Layout { tp: Count::new(tp), ..Layout::default() };
        run(&ServingInput { layout, all_reduce, load: Load::DecodeOnly { batch: 1.0 }, ..base() }).time.communication
    };
    let (two, eight) = (latency(2, AllReduce::Library), latency(8, AllReduce::Library));
    let steps = 2.0 * (7.0 - 1.0) * Constants::default().link_latency * 2.0 * f64::from(Architecture::default().layers);
    assert!(((eight - two) / steps - 1.0).abs() < 0.1, "{two} {eight} {steps}");
    // Kernels that load and store directly need one step for any number of ranks.
    assert!(latency(8, AllReduce::Direct) < 1.1 * latency(2, AllReduce::Direct));
}

#[test]
fn switches_that_add_up_all_reduces_shorten_prompts_of_more_than_two_ranks() {
    let of = |generation, tp: u32, in_switch_reduction| {
        let accelerator = Accelerator { generation, ..h100() };
        let layout = Layout { tp: Count::new(tp), ..Layout::default() };
        let load = Load::PrefillOnly { batch: 8.0 };
        run(&ServingInput { accelerator, layout, in_switch_reduction, load, ..base() }).time.communication
    };
    let gain = |generation, tp| of(generation, tp, false) / of(generation, tp, true);
    assert!(gain(Generation::Hopper, 8) > 1.15, "{}", gain(Generation::Hopper, 8));
    assert_eq!(gain(Generation::Hopper, 2), 1.0);
    assert_eq!(gain(Generation::Ampere, 8), 1.0);
}

#[test]
fn experts_in_triton_multiply_prompts_more_slowly() {
    let arch = Architecture {
        experts: Count::new(64),
        top_k: Count::new(4),
        moe_ffn: Count::new(1024),
        ..Architecture::default()
    };
    let seconds = |expert_products| {
        run(&ServingInput { arch, expert_products, load: Load::PrefillOnly { batch: 8.0 }, ..base() }).time.compute
    };
    assert!(seconds(ExpertProducts::Triton) > 1.02 * seconds(ExpertProducts::Grouped));
}

#[test]
fn drafting_layers_process_one_token_per_sequence_and_step() {
    let step = |arch: Architecture, drafts: u32, speculation: Speculation| {
        let input = ServingInput {
            arch,
            speculation: Speculation { tokens: Count::new(drafts), ..speculation },
            load: Load::DecodeOnly { batch: 256.0 },
            ..base()
        };
        let machine = Machine::new(&input, &input.layout, &Constants::default());
        let tokens = steady_state::decode_tokens(&input, 256.0);
        (machine.drafting(&tokens).total(), machine.step(&Tokens { verified: 1.0, ..tokens }).total())
    };
    let layer = Speculation { draft_layers: 1.0 / 32.0, draft_head: 0.0, ..Speculation::default() };
    let (drafting, plain) = step(Architecture::default(), 5, layer);
    // Five drafts, each with a layer of 32, and without the output layer.
    assert!((0.9..1.0).contains(&(drafting / (plain * 5.0 / 32.0))), "{drafting} {plain}");
    // A dense layer beside a mixture does not read the experts.
    let whole = Speculation { draft_layers: 1.0 / 61.0, ..layer };
    let dense = Speculation { draft_dense_bytes: 2e8, ..whole };
    let mixture = |speculation| step(Architecture::deepseek_v3(), 1, speculation).0;
    assert!(mixture(dense) < 0.5 * mixture(whole), "{} {}", mixture(dense), mixture(whole));
}
