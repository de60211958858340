//! Rates that serving stacks reach.

use super::input::{KernelLibrary, Stack};
use crate::accelerator::{Accelerator, Generation, Precision};
use crate::constants::Constants;
use crate::roofline;

/// A rank's shard of a layer's weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice {
    /// Weights of all products together over the hidden size.
    pub width: f64,
    /// How often a token's hidden vector is read or written, at 2 bytes an element.
    pub passes: f64,
}

impl Slice {
    /// Attention and MLP: each reads the hidden vector once and writes it once.
    pub(super) fn layer(width: f64) -> Slice {
        Slice { width, passes: 4.0 }
    }

    /// One MLP, such as an expert: it reads the hidden vector once and writes it once.
    pub(super) fn mlp(width: f64) -> Slice {
        Slice { width, passes: 2.0 }
    }
}

/// FLOP/s of linear layers in a format, on many tokens. A token costs 2 FLOPs per weight, but reads and writes its hidden
/// vector however narrow the shard is, so that `width / (width + passes × peak / bandwidth)` of the rate is left.
pub(super) fn linear_rate(acc: &Accelerator, c: &Constants, format: Precision, unpack: bool, slice: Slice) -> f64 {
    let share = c.serving_products * roofline::best_fraction(acc, c);
    let narrow = match format {
        Precision::Fp8 | Precision::Int8 if acc.peak(format) > 1.01 * acc.peak(Precision::Bf16) => c.narrow8_fraction,
        Precision::Fp4 | Precision::Fp6 if acc.has(Precision::Fp4) => c.narrow4_fraction,
        _ => 1.0,
    };
    let unpacked = if unpack { c.unpack_fraction } else { 1.0 };
    let half = slice.passes * acc.peak(format) / acc.mem_bw.max(1.0);
    acc.peak(format) * share * narrow * unpacked * slice.width / (slice.width + half)
}

/// Share of the rooflines that stacks for this family reach.
pub(super) fn maturity(acc: &Accelerator, kernels: KernelLibrary, c: &Constants) -> f64 {
    use Generation::{Cdna3, Cdna4};
    match acc.generation {
        g if g.runs_reference_kernels() => 1.0,
        Cdna3 | Cdna4 if kernels == KernelLibrary::Vendor => c.cdna_vendor_fraction,
        Cdna3 | Cdna4 => c.cdna_fraction,
        _ => c.other_stack_fraction,
    }
}

/// Rows that a multiplication pads its tokens to.
pub(super) fn tile(acc: &Accelerator, stack: Stack, unpack: bool, c: &Constants) -> f64 {
    let warpgroup = matches!(acc.generation, Generation::Hopper | Generation::Blackwell);
    match stack {
        // Native runtimes multiply a few rows as vectors.
        Stack::Local => 1.0,
        // Kernels that unpack weights are built on `mma.m16n8k16`, as everything is before Hopper.
        _ if unpack || !warpgroup => c.tile_rows.min(16.0),
        _ => c.tile_rows,
    }
}
