//! The time of one operator on one accelerator (roofline; Williams et al., CACM 52(4), 2009): arithmetic at a
//! shape-dependent efficiency, and memory traffic at the sustained bandwidth.

use crate::accelerator::{Accelerator, Generation, Precision};
use crate::constants::Constants;
use crate::constants::generation::ReferenceDevice;
use atlas_core::math::ceil_positive;

/// A (batched) matrix multiplication: `m` rows of activations by an `n` x `k` weight, `batch` times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gemm {
    /// Rows of activations.
    pub m: f64,
    /// Columns of the result.
    pub n: f64,
    /// Inner dimension.
    pub k: f64,
    /// Number of independent multiplications.
    pub batch: f64,
}

impl Gemm {
    /// A single multiplication.
    pub fn new(m: f64, n: f64, k: f64) -> Self {
        Gemm { m, n, k, batch: 1.0 }
    }

    /// FLOPs; a multiply-add counts as two.
    pub fn flops(&self) -> f64 {
        2.0 * self.batch * self.m * self.n * self.k
    }

    /// Bytes of traffic if operands are read once and the result is written once. `operand` and `result` are bytes per
    /// element.
    pub fn bytes(&self, operand: f64, result: f64) -> f64 {
        self.batch * ((self.m * self.k + self.n * self.k) * operand + self.m * self.n * result)
    }
}

/// Share of the dense peak that a large GEMM sustains on the reference device of the generation.
fn generation_share(acc: &Accelerator, c: &Constants) -> f64 {
    (acc.generation.properties().gemm_share.get)(c).min(1.0)
}

/// Whether large GEMMs run at the device's power limit, so that their rate follows the power and not the peak.
pub fn power_limited(acc: &Accelerator) -> bool {
    acc.tdp_w.is_some() && acc.generation.properties().reference.is_some()
}

/// Peak of the reference device in `precision`, for a device whose peak there is `own`. `None` for vector units, which do
/// not reach the power limit. Units that the reference lacks count as those of the next wider format.
fn reference_peak(reference: &ReferenceDevice, precision: Precision, own: f64) -> Option<f64> {
    let [tf32, wide, narrow, four_bit] = reference.peaks;
    // Peaks of one kind of unit differ by clock and number of cores, by up to a fifth.
    let four_bit = reference.later_four_bit.filter(|_| own > 1.2 * four_bit).unwrap_or(four_bit);
    Some(match precision {
        Precision::Fp32 => return None,
        Precision::Tf32 => tf32,
        Precision::Bf16 | Precision::Fp16 => wide,
        Precision::Fp4 if four_bit > 0.0 => four_bit,
        _ => narrow,
    })
}

/// Power per FLOP/s of units with the given peak, relative to those of the reference device of the generation. Large GEMMs
/// run at the power limit, so that a higher peak at the same power does not raise their rate.
fn power(acc: &Accelerator, units: Precision, peak: f64) -> f64 {
    let Some((reference, own)) = acc.generation.properties().reference.as_ref().zip(acc.tdp_w) else { return 1.0 };
    reference_peak(reference, units, peak).map_or(1.0, |of| own * of / (peak * reference.tdp_w))
}

/// Rate of large GEMMs in one format.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GemmRate {
    /// FLOP/s of a GEMM whose shape causes no loss.
    pub best: f64,
    /// As `best`, before the losses of the generation's kernels: the peak, or what the power allows of it.
    pub supplied: f64,
}

impl GemmRate {
    /// Rate on `acc` in `precision`.
    pub fn of(acc: &Accelerator, c: &Constants, precision: Precision) -> GemmRate {
        let units = acc.units(precision);
        let (peak, share) = (acc.peak_of(units), generation_share(acc, c));
        let best = peak * (share * power(acc, units, peak)).min(1.0);
        GemmRate { best, supplied: best / share }
    }
}

/// FLOP/s of a GEMM whose shape causes no loss.
pub fn best_rate(acc: &Accelerator, c: &Constants, precision: Precision) -> f64 {
    GemmRate::of(acc, c, precision).best
}

/// What determines the time of a GEMM in one format on one device, apart from its shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GemmModel {
    /// Seconds per FLOP if the shape causes no loss.
    flop: f64,
    /// Seconds per FLOP to read operands, which are read once per block. Narrower operands make the same block move fewer
    /// bytes.
    block: f64,
    /// Seconds per byte of device-memory traffic.
    byte: f64,
    /// Bytes of an element of the operands.
    operand: f64,
    /// Bytes of an element of the result: 16 bit, or a wider format.
    result: f64,
    /// Bytes moved per activation to quantize it; 0 where the device lacks the format.
    cast: f64,
    /// Inner dimension at which half of the time is spent outside the main loop.
    k_half: f64,
    /// Number of matrix cores.
    cores: f64,
    /// Share of the idle time of the last wave that is lost. Libraries choose the tile, and split `k` when tiles do not
    /// fill the device.
    pub wave_loss: f64,
}

impl GemmModel {
    /// Model of GEMMs in `precision` on `acc`.
    pub fn new(acc: &Accelerator, c: &Constants, precision: Precision) -> GemmModel {
        let operand = precision.bytes();
        let casts = precision.is_narrow() && acc.supports(precision);
        GemmModel {
            flop: 1.0 / best_rate(acc, c, precision),
            block: operand / (2.0 * c.block_intensity * acc.mem_bw),
            byte: 1.0 / (acc.mem_bw * c.memory_fraction),
            operand,
            result: operand.max(2.0),
            cast: if casts { 2.0 * c.cast_traffic } else { 0.0 },
            k_half: c.gemm_k_half,
            cores: acc.cores.max(1.0),
            wave_loss: c.wave_loss,
        }
    }

    /// FLOPs that take as long at the best rate as those of the GEMM at its own: with the padding of its tiles, the idle
    /// cores of its last wave, and the FLOPs of the time outside its main loop, of which a small `k` has more.
    fn equivalent_flops(&self, g: &Gemm) -> f64 {
        let tile_m = if g.m > 64.0 { 128.0 } else { 64.0 };
        let tiles = ceil_positive(g.m / tile_m).max(1.0) * ceil_positive(g.n / TILE_N).max(1.0);
        let padded = (tiles * (tile_m * TILE_N)).min(1e3 * g.m * g.n);
        let waves = tiles * g.batch.max(1.0) / self.cores;
        let all = ceil_positive(waves).max(1.0);
        let counted = all - self.wave_loss * (all - waves);
        2.0 * g.batch * padded * (g.k + self.k_half) * all / counted
    }

    /// Time of arithmetic, without memory traffic, cast and launch, s.
    pub fn arithmetic(&self, g: &Gemm) -> f64 {
        self.flop * self.equivalent_flops(g) + self.block * g.flops()
    }

    /// Time of arithmetic, and of memory traffic that the first and last tiles expose, s. Excludes casts and launch.
    pub fn seconds(&self, g: &Gemm) -> f64 {
        self.arithmetic(g) + self.byte * g.bytes(self.operand, self.result)
    }

    /// As [`GemmModel::seconds`], with the time to quantize activations to a narrow format.
    pub fn seconds_with_cast(&self, g: &Gemm) -> f64 {
        self.arithmetic(g) + self.byte * (g.bytes(self.operand, self.result) + self.cast * g.batch * g.m * g.k)
    }
}

/// Columns of a tile.
const TILE_N: f64 = 128.0;

/// Efficiency of a GEMM relative to the device's best: share of the main loop (small `k`), tile and wave quantization.
pub fn shape_efficiency(acc: &Accelerator, c: &Constants, g: &Gemm) -> f64 {
    g.flops() / GemmModel::new(acc, c, Precision::Bf16).equivalent_flops(g)
}

/// Time of `bytes` of device-memory traffic, s.
pub fn memory_seconds(acc: &Accelerator, c: &Constants, bytes: f64) -> f64 {
    bytes / (acc.mem_bw * c.memory_fraction)
}

/// Generation of a fused attention kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FusedAttention {
    /// First generation (FlashAttention-1, Triton, xformers).
    First,
    /// Second generation (FlashAttention-2), written for synchronous matrix units.
    Second,
    /// Written for this device (FlashAttention-3 and similar).
    #[default]
    Native,
}

/// Rate of the chunked scans of linear mixers relative to fused attention. The kernels of Mamba-2 take as long as
/// FlashAttention-2 with 2048 keys (arXiv 2405.21060, figure 10, on A100): half of its rate, with memory traffic counted
/// separately. They use Ampere's instructions, so later generations run them at Hopper's rate for such kernels.
pub fn scan_share(acc: &Accelerator, c: &Constants) -> f64 {
    if !acc.generation.properties().asynchronous_units {
        return 0.5;
    }
    let hopper = Generation::Hopper.properties().reference.map_or(0.0, |device| device.peaks[1]);
    let carried = c.attention_carried * c.gemm_hopper * hopper / best_rate(acc, c, Precision::Bf16);
    0.5 * carried.clamp(0.05, 1.0)
}

/// Rate of a fused attention kernel relative to a native one with wide heads, 0..1.
pub fn fused_attention_share(acc: &Accelerator, c: &Constants, head: f64, kernel: FusedAttention) -> f64 {
    // With narrow heads, the matrix units wait for the softmax between the two matrix multiplications.
    let narrow = head / (head + c.attention_head_half) * (1.0 + c.attention_head_half / 128.0);
    let asynchronous = acc.generation.properties().asynchronous_units;
    let carried = if asynchronous && kernel != FusedAttention::Native { c.attention_carried } else { 1.0 };
    let first = if kernel == FusedAttention::First { c.attention_first } else { 1.0 };
    narrow.min(1.0) * carried * first
}

/// Time of fused attention, s: the longer of `flops` at the attention's share of the peak and `bytes` of traffic.
pub fn attention_seconds(acc: &Accelerator, c: &Constants, flops: f64, bytes: f64) -> f64 {
    // Attention runs in 16 bit even if the projections use a narrower format.
    let rate = best_rate(acc, c, Precision::Bf16) * c.attention_fraction;
    (flops / rate).max(memory_seconds(acc, c, bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn efficiency_stays_between_zero_and_one_and_grows_with_k() {
        let (a, c) = (Accelerator::default(), Constants::default());
        let mut last = 0.0;
        for k in [64.0, 256.0, 1024.0, 8192.0] {
            let e = shape_efficiency(&a, &c, &Gemm::new(4096.0, 4096.0, k));
            assert!(e > last && e <= 1.0);
            last = e;
        }
    }

    #[test]
    fn more_bandwidth_or_more_flops_is_never_slower() {
        let c = Constants::default();
        let a = Accelerator::default();
        let mut b = a;
        b.mem_bw *= 2.0;
        let mut f = a;
        f.flops = f.flops.map(|x| 2.0 * x);
        for m in [1.0, 16.0, 300.0, 8192.0] {
            let g = Gemm::new(m, 4096.0, 4096.0);
            let t = GemmModel::new(&a, &c, Precision::Bf16).seconds(&g);
            assert!(GemmModel::new(&b, &c, Precision::Bf16).seconds(&g) <= t);
            assert!(GemmModel::new(&f, &c, Precision::Bf16).seconds(&g) <= t);
        }
    }

    #[test]
    fn a_higher_peak_of_any_format_slows_none() {
        use Precision::{Bf16, Fp4, Fp8, Fp16, Fp32, Int4, Int8, Tf32};
        let c = Constants::default();
        let formats = [Fp32, Tf32, Bf16, Fp16, Fp8, Int8, Fp4, Int4];
        // H100 SXM and GB200.
        for (generation, tdp_w, tera) in [
            (Generation::Hopper, 700.0, [66.9, 494.7, 989.4, 989.4, 1978.9, 1978.9, 0.0]),
            (Generation::Blackwell, 1200.0, [80.0, 1250.0, 2500.0, 2500.0, 5000.0, 5000.0, 10_000.0]),
        ] {
            let mut device = Accelerator { generation, tdp_w: Some(tdp_w), ..Accelerator::default() };
            for (format, tera) in formats.into_iter().zip(tera) {
                device.flops.iter_mut().skip(format as usize).take(1).for_each(|slot| *slot = tera * 1e12);
            }
            for raised in formats {
                let mut last = [0.0; 8];
                for step in -20..20 {
                    let mut other = device;
                    let by = 1.05f64.powi(step);
                    other.flops.iter_mut().skip(raised as usize).take(1).for_each(|slot| *slot *= by);
                    for (format, last) in formats.into_iter().zip(&mut last) {
                        let rate = best_rate(&other, &c, format);
                        assert!(rate >= *last * (1.0 - 1e-12), "{generation:?} {raised:?} {step}: {format:?} {rate}");
                        *last = rate;
                    }
                }
            }
        }
    }
}
