//! Rates that serving engines reach.

use super::input::{KernelLibrary, Layout, ServingInput, Stack};
use super::shape::Shape;
use crate::accelerator::{Accelerator, Precision};
use crate::arch::{Architecture, Attention};
use crate::constants::Constants;
use crate::constants::documented::SYNCHRONOUS_TILE_ROWS;
use crate::constants::generation::ServingArithmetic;
use crate::roofline;
use crate::roofline::GemmRate;
use crate::traits::ExpertProducts;
use atlas_core::count::Count;

/// Shares of the rooflines that the software reaches on the accelerator, relative to CUDA's.
pub(super) struct Maturity {
    /// Of kernels in general.
    pub(super) kernels: f64,
    /// Of sequential memory reads.
    pub(super) streaming: f64,
    /// Of arithmetic.
    pub(super) arithmetic: f64,
}

impl Maturity {
    pub(super) fn of(input: &ServingInput, pipelined: bool, c: &Constants) -> Maturity {
        let known = input.accelerator.generation.properties();
        // Native runtimes use the same kernels on all accelerators.
        let same = pipelined || input.stack == Stack::Local;
        let kernels = match known.serving_shares {
            Some(shares) if !same => {
                let vendor = shares.vendor_kernels.filter(|_| input.kernels == KernelLibrary::Vendor);
                (vendor.unwrap_or(shares.kernels).get)(c)
            }
            _ => 1.0,
        };
        let planned = input.stack == Stack::Compiled || known.plans_transfers;
        let arithmetic = match known.serving_shares.map(|shares| shares.arithmetic) {
            Some(ServingArithmetic::Less(share)) => kernels * (share.get)(c),
            Some(ServingArithmetic::AsLargeGemms) => 1.0,
            Some(ServingArithmetic::AsKernels) | None => kernels,
        };
        Maturity { kernels, streaming: if planned { 1.0 } else { kernels }, arithmetic }
    }
}

/// FLOP/s of linear layers.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProductRate {
    /// The rate that they reach.
    pub(super) reached: f64,
    /// The peak of their format.
    pub(super) peak: f64,
}

/// Arithmetic and memory rates of a rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    /// Of projections and the output layer.
    pub(super) dense: ProductRate,
    pub(super) mlp: ProductRate,
    pub(super) expert: ProductRate,
    pub(super) attention: f64,
    /// Speed-up of attention in decode over prefill if keys are 8-bit.
    pub(super) narrow_keys: f64,
    /// Bytes of weights per second.
    pub(super) weight_bw: f64,
    /// Peak of the memory bandwidth, bytes/s.
    pub(super) peak_bw: f64,
    /// Share of it that sequential reads and writes reach.
    pub(super) streamed_share: f64,
    /// Peak of 16-bit arithmetic, FLOP/s.
    pub(super) peak_attention: f64,
    /// Seconds per byte of KV cache.
    pub(super) kv_seconds: f64,
    /// Seconds per byte of a recurrent state, which is read and written.
    pub(super) state_seconds: f64,
    /// Seconds per token for reading and writing activations.
    pub(super) activation_seconds: f64,
    /// Seconds per prompt token in which linear mixers read and write the inputs, outputs and states of their scans.
    pub(super) scan_traffic_seconds: f64,
    /// Seconds per prompt token of the arithmetic of those scans.
    pub(super) scan_compute_seconds: f64,
    /// Seconds per byte of weights and row of a decode step, if kernels are not tuned for few rows.
    pub(super) row_seconds: f64,
    /// Seconds per expert for kernel launches, if each expert has its own kernels.
    pub(super) expert_seconds: f64,
}

impl Rates {
    pub(super) fn of(
        input: &ServingInput,
        layout: &Layout,
        shape: &Shape,
        maturity: &Maturity,
        c: &Constants,
    ) -> Rates {
        let (acc, f) = (&input.accelerator, &input.formats);
        let Maturity { kernels, streaming, arithmetic } = *maturity;
        let hidden = shape.hidden * 2.0;
        let streamed = streaming * acc.mem_bw * c.memory_fraction;
        let linear = LinearRates::of(acc, c);
        let attention = arithmetic * c.attention_fraction * linear.wide.best;
        let vectors = arithmetic * c.memory_fraction * acc.peak(Precision::Fp32);
        let (layer, expert) = (Slice::layer(shape.slice_width), linear.rate(f.expert));
        Rates {
            dense: ProductRate {
                reached: arithmetic * linear.reached(f.dense, linear.rate(f.dense), f.dense_unpack, layer),
                peak: acc.peak(f.dense),
            },
            mlp: ProductRate {
                reached: arithmetic * linear.reached(f.expert, expert, f.expert_unpack, layer),
                peak: acc.peak(f.expert),
            },
            expert: ProductRate {
                reached: arithmetic
                    * c.grouped_fraction
                    * if input.expert_products == ExpertProducts::Triton { c.triton_fraction } else { 1.0 }
                    * linear.reached(f.expert, expert, f.expert_unpack, Slice::mlp(shape.expert_slice_width.max(1.0))),
                peak: acc.peak(f.expert),
            },
            attention: attention * roofline::fused_attention_share(acc, c, head_width(&input.arch), input.attention),
            narrow_keys: linear.rate(key_format(input)).best / linear.wide.best,
            // Matrix-vector kernels of native runtimes are limited by the rate at which the cores unpack weights.
            weight_bw: match input.stack {
                Stack::Local => streamed.min(acc.core_rate(c.core_bw)),
                _ => streamed,
            },
            peak_bw: acc.mem_bw.max(1.0),
            streamed_share: streaming * c.memory_fraction,
            peak_attention: acc.peak(Precision::Bf16),
            kv_seconds: (1.0 / (streaming * acc.mem_bw * c.kv_fraction)).max(match input.arch.attention {
                // Without grouping, the same keys pass a core's caches once per query head of the group.
                Attention::Grouped if !input.grouped_query_decode => {
                    let (ranks, own) = (layout.tp.max(Count::ONE), &input.arch);
                    let readers = (own.heads / ranks) / (own.kv_heads / ranks).max(1.0);
                    readers / (kernels * acc.core_rate(c.head_bw))
                }
                _ => 0.0,
            }),
            state_seconds: 2.0 / (streaming * acc.mem_bw * c.kv_fraction),
            activation_seconds: 0.5 * shape.blocks * hidden * (c.activation_passes + shape.stream_passes) / streamed,
            scan_traffic_seconds: shape.scan_bytes / streamed,
            scan_compute_seconds: shape.scan_flops / (attention * roofline::scan_share(acc, c)).max(1.0)
                + if vectors > 0.0 { shape.scan_vector_flops / vectors } else { 0.0 },
            // Scaled 8-bit GEMMs use a separate library call, which is tuned.
            row_seconds: if input.tuned_products || f.dense.bytes() < 2.0 {
                0.0
            } else {
                1.0 / (acc.cores.max(1.0) * c.row_bw)
            },
            // Two launches per expert: up with gate, and down.
            expert_seconds: match input.expert_products {
                ExpertProducts::Grouped | ExpertProducts::Triton => 0.0,
                ExpertProducts::Sequential => 2.0 * (c.kernel_graph + c.kernel_prefill) / kernels,
                ExpertProducts::Separate => 2.0 * c.kernel_graph / kernels,
            },
        }
    }

    /// The rates if only `share` of the cores computes.
    pub(super) fn with_cores(&self, share: f64) -> Rates {
        let of = |product: ProductRate| ProductRate { reached: product.reached * share, ..product };
        Rates {
            dense: of(self.dense),
            mlp: of(self.mlp),
            expert: of(self.expert),
            attention: self.attention * share,
            scan_compute_seconds: self.scan_compute_seconds / share,
            ..*self
        }
    }
}

/// Format in which attention multiplies keys in decode.
pub(super) fn key_format(input: &ServingInput) -> Precision {
    let acc = &input.accelerator;
    let narrow = input.formats.kv_bytes <= 1.0 && acc.supports(Precision::Fp8);
    if narrow && acc.generation.properties().multiplies_narrow_keys { Precision::Fp8 } else { Precision::Bf16 }
}

/// Width of an attention head in prefill.
fn head_width(arch: &Architecture) -> f64 {
    match arch.attention {
        Attention::Grouped => arch.head_dim,
        Attention::Latent { nope, rope, .. } => nope + rope,
    }
}

/// A rank's shard of a layer's weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice {
    /// Weights of all GEMMs divided by the hidden size.
    pub width: f64,
    /// Number of times that a token's hidden vector is read or written, at 2 bytes per element.
    pub passes: f64,
}

impl Slice {
    /// Attention and MLP: each reads and writes the hidden vector once.
    pub(super) fn layer(width: f64) -> Slice {
        Slice { width, passes: 4.0 }
    }

    /// One MLP, such as an expert: reads and writes the hidden vector once.
    pub(super) fn mlp(width: f64) -> Slice {
        Slice { width, passes: 2.0 }
    }
}

/// Rates of linear layers with many tokens.
pub(super) struct LinearRates<'a> {
    acc: &'a Accelerator,
    c: &'a Constants,
    /// Rate of large GEMMs in 16 bit.
    wide: GemmRate,
}

impl<'a> LinearRates<'a> {
    pub(super) fn of(acc: &'a Accelerator, c: &'a Constants) -> LinearRates<'a> {
        LinearRates { acc, c, wide: GemmRate::of(acc, c, Precision::Bf16) }
    }

    /// Rate of large GEMMs in `format`.
    fn rate(&self, format: Precision) -> GemmRate {
        if format == Precision::Bf16 { self.wide } else { GemmRate::of(self.acc, self.c, format) }
    }

    /// FLOP/s of linear layers in 16 bit.
    pub(super) fn reached_in_16_bit(&self, slice: Slice) -> f64 {
        self.reached(Precision::Bf16, self.wide, false, slice)
    }

    /// FLOP/s of linear layers in `format`, given the `rate` of large GEMMs. A token costs 2 FLOPs per weight, but reads
    /// and writes its hidden vector however narrow the slice is. This leaves `width / (width + passes × peak / bandwidth)`
    /// of the rate.
    fn reached(&self, format: Precision, rate: GemmRate, unpack: bool, slice: Slice) -> f64 {
        let (acc, c, GemmRate { best, supplied }) = (self.acc, self.c, rate);
        let reached = match format {
            // Kernels of both formats reach the same share of units that are no faster in 8 bit.
            Precision::Fp8 | Precision::Int8 => f64::max(c.narrow8_fraction * best, best.min(self.wide.best)),
            Precision::Fp4 | Precision::Fp6 if acc.supports(Precision::Fp4) => c.narrow4_fraction * best,
            _ => best,
        };
        let unpacked = if unpack { c.unpack_fraction } else { 1.0 };
        let half = slice.passes * supplied / acc.mem_bw.max(1.0);
        c.serving_products * reached * unpacked * slice.width / (slice.width + half)
    }
}

/// Number of rows to which a GEMM pads its tokens.
pub(super) fn tile(acc: &Accelerator, stack: Stack, unpack: bool, c: &Constants) -> f64 {
    let asynchronous = acc.generation.properties().asynchronous_units;
    match stack {
        // Native runtimes use matrix-vector kernels for few rows.
        Stack::Local => 1.0,
        // Kernels that unpack weights use the instructions of synchronous units.
        _ if unpack || !asynchronous => c.tile_rows.min(SYNCHRONOUS_TILE_ROWS),
        _ => c.tile_rows,
    }
}
