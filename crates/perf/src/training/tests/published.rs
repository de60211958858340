//! Comparison with published training runs.

use super::*;

#[test]
fn llama_3_1_405b_mfu_is_near_the_published_value() {
    // arXiv 2407.21783, table 4: 8,192 H100, tp 8, pp 16, dp 64, sequences of 8,192, 16 M tokens a step: 43 % MFU.
    let mut accelerator = Accelerator {
        generation: Generation::Hopper,
        tdp_w: Some(700.0),
        mem_bw: 3.35e12,
        cores: 132.0,
        link_bw: 450e9,
        nic_bw: 50e9,
        ..Accelerator::default()
    };
    accelerator.flops = accelerator.flops.map(|rate| rate * 989.4 / 312.0);
    let i = TrainingInput {
        arch: Architecture {
            layers: Count::new(126),
            hidden: Count::new(16_384),
            heads: Count::new(128),
            kv_heads: Count::new(8),
            ffn: Count::new(53_248),
            vocab: Count::new(128_256),
            ..Architecture::default()
        },
        accelerator,
        accelerators: 8192.0,
        seq: 8192.0,
        global: 2048.0,
        tp: Count::new(8),
        pp: Count::new(16),
        dp: Count::new(64),
        sequence_parallel: true,
        sharding: Sharding::Zero3,
        ..TrainingInput::default()
    };
    for vpp in [4, 8].map(Count::new) {
        let e = estimate(&TrainingInput { vpp, ..i }, &Constants::default());
        assert!(e.fits && e.mfu_causal > 0.40 && e.mfu_causal < 0.50, "vpp {vpp}: {}", e.mfu_causal);
    }
}

#[test]
fn gpt3_175b_step_time_matches_the_published_run_within_its_interval() {
    // GPT-3 175B on 64 A100: 13.75 s with sequence parallelism and selective recomputation (arXiv 2205.05198, table 5).
    let i = TrainingInput {
        arch: Architecture {
            layers: Count::new(96),
            hidden: Count::new(12288),
            heads: Count::new(96),
            kv_heads: Count::new(96),
            ffn: Count::new(49152),
            gated: false,
            tied: true,
            vocab: Count::new(51200),
            ..Architecture::default()
        },
        accelerators: 64.0,
        seq: 2048.0,
        global: 64.0,
        tp: Count::new(8),
        pp: Count::new(8),
        vpp: Count::new(3),
        dp: Count::ONE,
        sequence_parallel: true,
        sharding: Sharding::None,
        recompute: Recompute::Selective,
        software: Software {
            fused_attention: false,
            overlap_tensor: false,
            overlap_data: false,
            dropout: true,
            ..Software::default()
        },
        ..TrainingInput::default()
    };
    let e = estimate(&i, &Constants::default());
    let interval = crate::interval::training(&i, crate::interval::Release::Stated);
    let ratio = 13.75 / e.step_seconds;
    assert!(interval.contains(1.0 / ratio), "{}", e.step_seconds);
    assert!(ratio > 0.9 && ratio < 1.1, "{}", e.step_seconds);
}
