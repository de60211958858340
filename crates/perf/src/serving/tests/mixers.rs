//! Models whose mixers and MLPs are layers of their own, and mixers with a recurrent state.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::serving::collectives::Counts;
use crate::serving::shape::Shape;

/// State-space layers of 128 heads of 64 with states of 128 in eight groups.
fn mamba_2(share: f64) -> Option<Linear> {
    Some(Linear {
        kind: LinearKind::Mamba2,
        share,
        heads: Count::new(128),
        head_dim: Count::new(64),
        state: Count::new(128),
        groups: Count::new(8),
        taps: Count::new(4),
    })
}

#[test]
fn layers_without_mlp_or_mixer_add_half_the_kernels_all_reduces_and_activations() {
    let layout = Layout { tp: Count::new(8), ..Layout::default() };
    let of = |arch: Architecture| {
        let shape = Shape::new(&arch, &Formats::default(), &layout);
        (shape.kernels, Counts::of(&shape, &layout).reduces, shape.slice_width)
    };
    let whole = Architecture { layers: Count::new(28), ..Architecture::default() };
    let apart = Architecture { layers: Count::new(56), attention_share: 0.5, mlp_share: 0.5, ..whole };
    assert_eq!(of(whole), of(apart));
    let input = |arch| ServingInput { arch, layout, ..closed(4.0) };
    let (one, other) = (run(&input(whole)), run(&input(apart)));
    assert!((one.tpot.mean / other.tpot.mean - 1.0).abs() < 1e-9, "{} {}", one.tpot.mean, other.tpot.mean);
    assert!((one.ttft.mean / other.ttft.mean - 1.0).abs() < 1e-9, "{} {}", one.ttft.mean, other.ttft.mean);
    // Nemotron-H 8B (arXiv 2504.03624): 24 mixers, 4 layers with attention, 24 MLPs.
    let hybrid = Architecture {
        layers: Count::new(52),
        attention_share: 4.0 / 52.0,
        mlp_share: 24.0 / 52.0,
        linear: mamba_2(24.0 / 52.0),
        ..Architecture::default()
    };
    let (kernels, reduces, _) = of(hybrid);
    assert_eq!((kernels, reduces), (4.0 * 5.0 + 24.0 * 6.0 + 24.0 * 3.0, 52.0));
}

#[test]
fn prefill_of_linear_mixers_takes_the_traffic_and_arithmetic_of_their_scans() {
    let arch = Architecture { attention_share: 0.0, mlp_share: 0.0, linear: mamba_2(1.0), ..Architecture::default() };
    let prefill = |arch| run(&ServingInput { arch, isl: 4096.0, load: Load::PrefillOnly { batch: 8.0 }, ..base() });
    let out = prefill(arch);
    let scan = mamba_2(1.0).unwrap();
    let tokens = 8.0 * 4096.0 * 32.0;
    // At least at the rates of the datasheet.
    let traffic = tokens * 2.0 * scan.scan_elements() / h100().mem_bw;
    let arithmetic = tokens * scan.matrix_flops() / h100().peak(Precision::Bf16);
    assert!(out.time.activations > traffic, "{} {traffic}", out.time.activations);
    // A mixer without chunks, states and groups only has its projections.
    let none = Linear { state: Count::ZERO, groups: Count::ZERO, ..scan };
    let projections = prefill(Architecture { linear: Some(none), ..arch }).time.compute;
    assert!(out.time.compute > projections + arithmetic, "{} {projections} {arithmetic}", out.time.compute);
}

#[test]
fn experts_of_a_narrower_width_exchange_narrower_tokens_and_have_projections() {
    let layout = Layout { attention_dp: Count::new(16), ep: Count::new(16), ..Layout::default() };
    let wide = Architecture { mlp_bias: false, ..Architecture::deepseek_v3() };
    let narrow = Architecture { moe_hidden: Some(Count::new(1792)), ..wide };
    let [(wide_time, wide), (narrow_time, narrow)] = [wide, narrow].map(|arch| {
        let input = ServingInput { arch, layout, ..base() };
        let machine = Machine::new(&input, &layout, &Constants::default());
        (machine.collectives.exchange_token, machine.shape)
    });
    assert!((narrow_time / wide_time - 0.25).abs() < 1e-9, "{narrow_time} {wide_time}");
    // Two projections in each of 58 layers.
    let projections = 58.0 * 2.0 * 7168.0 * 1792.0;
    assert!(((narrow.mlp_flops - wide.mlp_flops) / (2.0 * projections) - 1.0).abs() < 1e-9);
    let experts = (wide.expert_bytes - narrow.expert_bytes) * 256.0;
    let resident = narrow.resident_bytes - wide.resident_bytes + experts;
    assert!((resident / (2.0 * projections) - 1.0).abs() < 1e-9, "{resident} {projections}");
}
