//! Tests of networks other than plain decoders: encoders, encoder-decoders, hybrids, sparse attention, convolutions.

use atlas_catalog::Catalog;
use atlas_catalog::datasheet;
use atlas_core::count::Count;
use atlas_perf::accelerator::Precision;
use atlas_perf::arch::{Architecture, Head};
use atlas_perf::constants::Constants;
use atlas_perf::training::*;

fn named(id: &str) -> Architecture {
    let catalog = Catalog::built_in();
    let found = catalog.models().into_iter().find(|model| model.id == id).map(|model| datasheet::model(&model));
    assert!(found.is_some(), "no {id}");
    found.unwrap_or_default()
}

fn on(id: &str, seq: f64, micro: f64) -> TrainingInput {
    let global = 8.0 * micro * 4.0;
    let recompute = Recompute::None;
    TrainingInput { arch: named(id), seq, micro, global, recompute, ..TrainingInput::default() }
}

#[test]
fn palm_flops_of_a_plain_decoder_match_published_formulas() {
    // Kaplan et al. (arXiv 2001.08361): 6 N; PaLM's appendix B adds 12 L H Q T.
    let a = Architecture::default();
    let n = a.params() - a.vocab * a.hidden;
    let expected = 6.0 * n + 12.0 * a.layers * a.heads * a.head_dim * 4096.0;
    assert!((a.palm_flops_per_token(4096.0, false) / expected - 1.0).abs() < 1e-9);
    let halved = 6.0 * n + 6.0 * a.layers * a.hidden * 4096.0;
    assert!((a.palm_flops_per_token(4096.0, true) / halved - 1.0).abs() < 1e-9);
}

#[test]
fn flops_match_the_megatron_closed_form() {
    // arXiv 2104.04473, equation 3 without recomputation: 72 B s l h² (1 + s/6h + V/12lh).
    let (l, h, s, v) = (96.0, 12288.0, 2048.0, 51200.0);
    let a = Architecture {
        layers: Count::floor(l),
        hidden: Count::floor(h),
        heads: Count::new(96),
        kv_heads: Count::new(96),
        ffn: Count::floor(4.0 * h),
        gated: false,
        tied: true,
        vocab: Count::floor(v),
        ..Architecture::default()
    };
    let expected = 72.0 * l * h * h * (1.0 + s / (6.0 * h) + v / (12.0 * l * h));
    assert!((a.palm_flops_per_token(s, false) / expected - 1.0).abs() < 1e-4);
    // Full recomputation adds a forward pass of the layers: 96 instead of 72 (the output layer is not run again).
    let c = Constants::default();
    let i = TrainingInput {
        arch: a,
        tp: Count::new(8),
        pp: Count::new(8),
        dp: Count::ONE,
        accelerators: 64.0,
        seq: s,
        ..TrainingInput::default()
    };
    let e = estimate(&TrainingInput { recompute: Recompute::Full, ..i }, &c);
    let layers = 24.0 * l * h * h * (1.0 + s / (6.0 * h));
    // Fused attention executes only the unmasked half.
    let skipped = 24.0 * l * h * h * s / (6.0 * h) / 2.0;
    let ratio = e.hfu / e.mfu_causal;
    assert!((ratio / (1.0 + (layers - skipped) / (expected - 3.0 * skipped)) - 1.0).abs() < 0.01, "{ratio}");
}

#[test]
fn bert_flops_use_full_attention_and_masked_positions() {
    let bert = named("bert-large");
    assert!(!bert.causal && bert.head == Head::Masked && bert.token_types == 2.0);
    assert!((bert.params() / 335.1e6 - 1.0).abs() < 0.003, "{}", bert.params());
    assert_eq!(bert.mean_context(512.0), 512.0);
    // 12 h² weights per layer, and the output layer for 15 % of the positions.
    let (l, h, s) = (24.0, 1024.0, 512.0);
    let expected = 72.0 * l * h * h * (1.0 + s / (6.0 * h)) + 0.15 * 6.0 * 30522.0 * h;
    assert!((bert.palm_flops_per_token(s, false) / expected - 1.0).abs() < 0.02);
    let e = estimate(&on("bert-large", 512.0, 32.0), &Constants::default());
    assert!(e.mfu > 0.3 && e.mfu < 0.65, "{}", e.mfu);
    assert_eq!(e.mfu, e.mfu_causal);
}

#[test]
fn t5_parameters_and_flops_match_and_target_length_adds_time() {
    let t5 = named("t5-11b");
    assert!((t5.params() / 11.307e9 - 1.0).abs() < 0.003, "{}", t5.params());
    let i = on("t5-11b", 512.0, 8.0);
    assert_eq!(i.target(), 114.0);
    let c = Constants::default();
    let (short, long) = (estimate(&i, &c), estimate(&TrainingInput { target_seq: Some(512.0), ..i }, &c));
    assert!(long.step_seconds > 1.3 * short.step_seconds && long.memory.activations > short.memory.activations);
    // With equal source and target lengths, each token passes through one half, so 6 FLOPs per weight apply once.
    let equal = t5.flops_per_token(512.0, 512.0, false);
    let attention = 12.0 * t5.layers * t5.q_width() * 512.0 * 3.0;
    assert!((equal / (6.0 * t5.params() + attention) - 1.0).abs() < 0.02, "{equal}");
    assert!(short.mfu > 0.2 && short.mfu < 0.7, "{}", short.mfu);
}

#[test]
fn resnet_50_estimate_is_per_image_and_memory_bound() {
    let c = Constants::default();
    let i = TrainingInput { sharding: Sharding::None, weight_bytes: 2.0, ..on("resnet-50", 1.0, 256.0) };
    let e = estimate(&i, &c);
    assert!((e.flops_per_token / (6.0 * 4.09e9) - 1.0).abs() < 0.005, "{}", e.flops_per_token);
    assert!((e.time.total() / e.step_seconds - 1.0).abs() < 1e-12);
    // Batch norms and additions access 11 M two-byte activations about nine times per image. This takes longer than the
    // convolutions at the peak rate, so an A100 is memory-bound.
    let images = e.tokens_per_second_per_accelerator;
    let traffic_bound = i.accelerator.mem_bw / (11.1e6 * 2.0 * 9.0);
    assert!(images < traffic_bound && images > 0.2 * traffic_bound, "{images} of {traffic_bound}");
    assert!(e.mfu > 0.05 && e.mfu < 0.4, "{}", e.mfu);
    // Activation memory is proportional to the number of images, weight memory is constant.
    let half = estimate(&TrainingInput { micro: 128.0, ..i }, &c);
    assert!((e.memory.activations / half.memory.activations - 2.0).abs() < 1e-9);
    assert_eq!(e.memory.weights, half.memory.weights);
    assert!(e.fits);
    let unfused = Software { fused_elementwise: false, ..Software::default() };
    assert!(estimate(&TrainingInput { software: unfused, ..i }, &c).step_seconds > e.step_seconds);
    let quick = estimate(&TrainingInput { precision: Precision::Tf32, ..i }, &c);
    assert!(quick.step_seconds > e.step_seconds);
}

#[test]
fn vit_l_16_parameters_and_forward_flops_match_published_values() {
    let vit = named("vit-l-16");
    assert!(vit.patch == Some(Count::new(768)) && vit.head == Head::Classes(Count::new(1000)) && !vit.causal);
    assert!((vit.params() / 304.33e6 - 1.0).abs() < 0.003, "{}", vit.params());
    // A forward pass of ViT-L/16 at 224 pixels takes 61.6 GFLOPs, with a multiply-add counted as one (arXiv
    // 2010.11929).
    let forward = vit.palm_flops_per_token(197.0, false) * 197.0 / 3.0 / 2.0;
    assert!((forward / 61.6e9 - 1.0).abs() < 0.02, "{forward}");
}

#[test]
fn hybrid_model_parameters_match_published_counts() {
    for (id, total, active) in [
        ("nemotron-h-8b", 8.1e9, 8.1e9),
        ("nemotron-h-56b", 56.3e9, 56.3e9),
        ("nemotron-3-nano-30b-a3b", 31.6e9, 3.6e9),
        ("nemotron-3-super-120b-a12b", 120.6e9, 12.7e9),
        ("qwen3-next-80b-a3b", 79.7e9, 3.9e9),
        ("jamba-v0.1", 51.6e9, 12.1e9),
        ("mamba2-2.7b", 2.70e9, 2.70e9),
    ] {
        let a = named(id);
        assert!(a.is_hybrid());
        assert!((a.params() / total - 1.0).abs() < 0.01, "{id}: {}", a.params());
        assert!((a.active_params() / active - 1.0).abs() < 0.03, "{id}: {}", a.active_params());
        let e = estimate(
            &TrainingInput { ep: if a.is_moe() { Count::new(8) } else { Count::ONE }, ..on(id, 8192.0, 1.0) },
            &Constants::default(),
        );
        assert!(e.step_seconds.is_finite() && e.mfu > 0.05 && e.mfu < 0.8, "{id}: {}", e.mfu);
    }
}

#[test]
fn linear_mixer_time_per_token_is_independent_of_length() {
    let c = Constants::default();
    let per_token = |id: &str, seq: f64| {
        let i = TrainingInput { global: 8.0, ..on(id, seq, 1.0) };
        let e = estimate(&i, &c);
        (e.time.gemm + e.time.attention + e.time.elementwise) / seq
    };
    let (short, long) = (per_token("mamba2-2.7b", 8192.0), per_token("mamba2-2.7b", 131_072.0));
    assert!(long < 1.05 * short, "{short} {long}");
    assert!(per_token("llama-3-8b", 131_072.0) > 1.5 * per_token("llama-3-8b", 8192.0));
    assert!(per_token("nemotron-h-8b", 131_072.0) < 1.5 * per_token("nemotron-h-8b", 8192.0));
}

#[test]
fn sparse_attention_costs_more_flops_when_short_and_fewer_when_long() {
    let (dense, sparse) = (named("deepseek-v3"), named("deepseek-v3.2"));
    assert_eq!(sparse.indexer.map(|x| x.top_k), Some(Count::new(2048)));
    assert!(sparse.mean_context(65_536.0) < 2048.0);
    let flops = |a: &Architecture, seq| a.palm_flops_per_token(seq, true);
    assert!(flops(&sparse, 2048.0) > flops(&dense, 2048.0));
    assert!(flops(&sparse, 131_072.0) < 0.7 * flops(&dense, 131_072.0));
}

#[test]
fn windows_of_the_catalog_are_used() {
    let gemma = named("gemma-3-27b");
    assert_eq!(gemma.window.map(|window| window.size), Some(Count::new(1024)));
    let full = Architecture { window: None, ..gemma };
    let c = Constants::default();
    let time = |arch| estimate(&TrainingInput { arch, ..on("gemma-3-27b", 32_768.0, 1.0) }, &c).time.attention;
    assert!(time(gemma) < 0.4 * time(full));
}

#[test]
fn step_time_does_not_rise_with_flops_in_host_bound_stages() {
    let c = Constants::default();
    let [five, six] = [5, 6].map(|layers| Some(Count::new(layers)));
    let job = TrainingInput {
        schedule: Schedule::ZeroBubble,
        pp: Count::new(8),
        dp: Count::ONE,
        global: 2048.0,
        first_layers: five,
        last_layers: six,
        ..on("resnet-50", 1.0, 256.0)
    };
    let mut last = f64::INFINITY;
    for step in 0..40 {
        let mut i = job;
        i.accelerator.flops = i.accelerator.flops.map(|rate| 2.0 * 1.1f64.powi(step) * rate);
        i.accelerator.mem_bw *= 4.0;
        let seconds = estimate(&i, &c).step_seconds;
        assert!(seconds <= 1.002 * last, "{step}: {last} {seconds}");
        last = seconds;
    }
}
