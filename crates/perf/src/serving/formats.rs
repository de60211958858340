//! Numeric formats of a deployment: bytes of weights and KV cache, and formats of the GEMMs, from the stored formats,
//! the formats that the device supports, and the software's traits.

use super::input::{Formats, Stack};
use crate::accelerator::{Accelerator, Precision};
use crate::arch::Architecture;
use crate::constants::documented::{MX_4_BIT_BYTES, MX_6_BIT_BYTES, NVFP4_BYTES, SCALED_8_BIT_BYTES};
use crate::traits::{QuantizedEnds, QuantizedKv, QuantizedProduct, ServingTraits};
use atlas_core::plan::Format;

/// Formats as stated for a deployment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stated {
    /// Format of the weights.
    pub weights: Format,
    /// Format of the experts' weights; `None`: that of `weights`, or as in published checkpoints.
    pub experts: Option<Format>,
    /// Bits per weight including scales, if they differ from the format's default.
    pub bits: Option<f64>,
    /// Whether 4-bit floating-point weights are NVFP4.
    pub nvfp4: bool,
    /// Format of the GEMMs; `None`: the software's default for these weights.
    pub compute: Option<Format>,
    /// Format of the KV cache; `None`: the software's default for these weights.
    pub kv: Option<Format>,
}

/// Bytes of one stored weight, including block scales.
#[must_use]
pub const fn stored_bytes(format: Format) -> f64 {
    match format {
        Format::Fp32 | Format::Tf32 => 4.0,
        Format::Bf16 | Format::Fp16 => 2.0,
        Format::Fp8 | Format::Mxfp8 | Format::Int8 => 1.0,
        Format::Fp6 => MX_6_BIT_BYTES,
        Format::Fp4 | Format::Int4 => MX_4_BIT_BYTES,
    }
}

/// How a GEMM with quantized weights runs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Product {
    precision: Precision,
    unpacked: bool,
    /// Number of kernels per kernel of a 16-bit GEMM.
    kernels: f64,
    /// Number of times that the bytes of a weight cross the memory bus.
    passes: f64,
}

impl Product {
    const fn of(precision: Precision, unpacked: bool) -> Product {
        Product { precision, unpacked, kernels: 1.0, passes: 1.0 }
    }
}

/// GEMM with weights stored as `stored`, `bytes` each.
fn product(acc: &Accelerator, weights: Format, bytes: f64, compute: Option<Format>, t: &ServingTraits) -> Product {
    let stored = Precision::from(weights);
    let how = match stored {
        Precision::Fp8 => t.fp8,
        Precision::Fp6 | Precision::Fp4 => t.fp4,
        Precision::Int8 => t.int8,
        Precision::Int4 => t.int4,
        wide => return Product::of(compute.map_or(wide, Precision::from), false),
    };
    if let Some(format) = compute
        && Precision::from(format) != stored
    {
        // Narrow activations require native support; with wider ones, weights are unpacked.
        let requested = Precision::from(format);
        let narrow = requested.is_narrow() && acc.multiplies(format);
        return Product::of(if narrow { requested } else { Precision::Bf16 }, requested != Precision::Fp8 || !narrow);
    }
    match how {
        QuantizedProduct::Native if stored == Precision::Int4 && acc.supports(Precision::Int8) => {
            Product::of(Precision::Int8, true)
        }
        QuantizedProduct::Native if stored != Precision::Int4 && acc.multiplies(weights) => Product::of(stored, false),
        QuantizedProduct::Native | QuantizedProduct::Unpacked | QuantizedProduct::Refused => {
            Product::of(Precision::Bf16, true)
        }
        QuantizedProduct::Separate => Product { kernels: 3.0, ..Product::of(Precision::Bf16, true) },
        QuantizedProduct::Buffered => {
            // Weights are read, written in 16 bit, and read again.
            Product { kernels: 3.0, passes: 1.0 + 4.0 / bytes, ..Product::of(Precision::Bf16, true) }
        }
        // Eight launches: find outliers, quantize rows and columns, convert layouts, multiply, scale, multiply outliers
        // and add them (bitsandbytes, `MatMul8bitLt`; arXiv 2208.07339).
        QuantizedProduct::Outliers => Product { kernels: 8.0, ..Product::of(Precision::Bf16, true) },
    }
}

/// Reason why weights or GEMMs of a format are not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The device does not support the format of the GEMMs, and no wider one was requested.
    Device(Format),
    /// The software has no kernels for such weights on this device.
    Software(Format),
}

/// Checks whether device and software support the stated formats.
///
/// # Errors
/// Returns the first unsupported format.
pub fn supported(acc: &Accelerator, stated: &Stated, t: &ServingTraits) -> Result<(), Refused> {
    let of = |format: Format| match Precision::from(format) {
        Precision::Fp8 => Some(t.fp8),
        Precision::Fp6 | Precision::Fp4 => Some(t.fp4),
        Precision::Int8 => Some(t.int8),
        Precision::Int4 => Some(t.int4),
        _ => None,
    };
    for format in [Some(stated.weights), stated.experts].into_iter().flatten() {
        if of(format) == Some(QuantizedProduct::Refused) {
            return Err(Refused::Software(format));
        }
    }
    let how = of(stated.weights);
    // Narrow weights can always be unpacked. An explicitly requested GEMM format, and wide weights, need native
    // support.
    let multiplied = match (stated.compute, how) {
        (Some(compute), _) => compute,
        (None, None) => stated.weights,
        (None, Some(_)) => return Ok(()),
    };
    let runs = match (Precision::from(multiplied), stated.compute) {
        // Four-bit integers are always multiplied in a wider format: as weights they run, as activations they do not.
        (Precision::Int4, None) => true,
        (Precision::Int4, Some(_)) if acc.multiplies(multiplied) => return Err(Refused::Software(multiplied)),
        _ => acc.multiplies(multiplied),
    };
    if runs { Ok(()) } else { Err(Refused::Device(multiplied)) }
}

/// Replaces a 16-bit format that the device does not support by the other one of 16 bit.
#[must_use]
pub fn supported_16_bit_format(acc: &Accelerator, weights: Format) -> Format {
    match weights {
        Format::Bf16 if !acc.supports(Precision::Bf16) && acc.supports(Precision::Fp16) => Format::Fp16,
        Format::Fp16 if !acc.supports(Precision::Fp16) && acc.supports(Precision::Bf16) => Format::Bf16,
        other => other,
    }
}

/// Resolves the formats of a deployment.
#[must_use]
pub fn formats(acc: &Accelerator, arch: &Architecture, stated: &Stated, t: &ServingTraits) -> Formats {
    let stored = Precision::from(stated.weights);
    let stored_bytes = |format| if format == Format::Fp4 && stated.nvfp4 { NVFP4_BYTES } else { stored_bytes(format) };
    let bytes = stated.bits.map_or(stored_bytes(stated.weights), |bits| bits / 8.0);
    let found = product(acc, stated.weights, bytes, stated.compute, t);
    let kv_bytes = match stated.kv {
        // Software offers NVFP4 only.
        Some(Format::Fp4) => NVFP4_BYTES,
        Some(kv) => stored_bytes(kv),
        None if t.quantized_kv == QuantizedKv::Fp8 && matches!(stored, Precision::Fp8 | Precision::Fp4) => 1.0,
        None => 2.0,
    };
    let mut formats = Formats {
        dense_bytes: bytes,
        expert_bytes: bytes,
        end_bytes: 2.0,
        dense: found.precision,
        expert: found.precision,
        dense_unpack: found.unpacked,
        expert_unpack: found.unpacked,
        product_kernels: found.kernels,
        unpack_passes: found.passes,
        kv_bytes,
    };
    if let Some(experts) = stated.experts.filter(|_| arch.is_moe()) {
        formats.expert_bytes = stored_bytes(experts);
        let found = product(acc, experts, formats.expert_bytes, stated.compute, t);
        (formats.expert, formats.expert_unpack) = (found.precision, found.unpacked);
    } else if arch.is_moe() && stored == Precision::Fp4 {
        // Published 4-bit checkpoints of mixtures quantize the experts and keep attention in 16 bit; files of native
        // runtimes keep attention in 8 bit.
        (formats.dense_bytes, formats.dense, formats.dense_unpack) = (2.0, Precision::Bf16, false);
        if t.runtime == Stack::Local {
            (formats.dense_bytes, formats.dense_unpack) = (SCALED_8_BIT_BYTES, true);
        }
    }
    if t.ends == QuantizedEnds::Narrow {
        formats.end_bytes = formats.dense_bytes.min(2.0);
    }
    formats
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use crate::accelerator::Accelerator;
    use atlas_core::count::Count;

    fn stated(weights: Format) -> Stated {
        Stated { weights, experts: None, bits: None, nvfp4: false, compute: None, kv: None }
    }

    fn with_fp8() -> Accelerator {
        let mut acc = Accelerator::default();
        acc.flops[Precision::Fp8 as usize] = 2.0 * acc.flops[Precision::Bf16 as usize];
        acc
    }

    #[test]
    fn fp8_weights_use_fp8_gemms_if_supported_else_bf16() {
        let (arch, traits) = (Architecture::default(), ServingTraits::default());
        let found = formats(&with_fp8(), &arch, &stated(Format::Fp8), &traits);
        assert_eq!((found.dense, found.dense_unpack), (Precision::Fp8, false));
        let mut without = Accelerator::default();
        without.flops[Precision::Fp8 as usize] = 0.0;
        let found = formats(&without, &arch, &stated(Format::Fp8), &traits);
        assert_eq!((found.dense, found.dense_unpack), (Precision::Bf16, true));
    }

    #[test]
    fn stated_bf16_compute_with_fp8_weights_unpacks_weights() {
        let requested = Stated { compute: Some(Format::Bf16), ..stated(Format::Fp8) };
        let found = formats(&with_fp8(), &Architecture::default(), &requested, &ServingTraits::default());
        assert_eq!((found.dense, found.dense_unpack, found.dense_bytes), (Precision::Bf16, true, 1.0));
    }

    #[test]
    fn gemm_format_unsupported_by_device_or_software_is_refused() {
        let (a100, traits) = (Accelerator::default(), ServingTraits::default());
        let requested = |compute, weights| Stated { compute, ..stated(weights) };
        let refused = |acc: &Accelerator, s: &Stated, t: &ServingTraits| supported(acc, s, t).err();
        assert_eq!(
            refused(&a100, &requested(Some(Format::Fp8), Format::Fp8), &traits),
            Some(Refused::Device(Format::Fp8))
        );
        assert_eq!(refused(&with_fp8(), &requested(Some(Format::Fp8), Format::Fp8), &traits), None);
        // Weights alone: unpacked.
        assert_eq!(refused(&a100, &stated(Format::Fp8), &traits), None);
        let without = ServingTraits { fp8: QuantizedProduct::Refused, ..traits };
        assert_eq!(refused(&with_fp8(), &stated(Format::Fp8), &without), Some(Refused::Software(Format::Fp8)));
        let mut tpu = a100;
        for precision in [Precision::Fp16, Precision::Tf32] {
            tpu.flops[precision as usize] = 0.0;
        }
        assert_eq!(refused(&tpu, &stated(Format::Tf32), &traits), Some(Refused::Device(Format::Tf32)));
        assert_eq!(refused(&tpu, &stated(Format::Fp16), &traits), Some(Refused::Device(Format::Fp16)));
    }

    #[test]
    fn mxfp8_weights_are_unpacked_where_matrix_units_apply_no_block_scales() {
        let (arch, traits, hopper) = (Architecture::default(), ServingTraits::default(), with_fp8());
        let found = formats(&hopper, &arch, &stated(Format::Mxfp8), &traits);
        assert_eq!((found.dense, found.dense_unpack), (Precision::Bf16, true));
        let multiplied = Stated { compute: Some(Format::Mxfp8), ..stated(Format::Mxfp8) };
        assert_eq!(supported(&hopper, &stated(Format::Mxfp8), &traits), Ok(()));
        assert_eq!(supported(&hopper, &multiplied, &traits), Err(Refused::Device(Format::Mxfp8)));
        let mut blackwell = hopper;
        blackwell.flops[Precision::Fp4 as usize] = 2.0 * hopper.peak(Precision::Fp8);
        let found = formats(&blackwell, &arch, &stated(Format::Mxfp8), &traits);
        assert_eq!((found.dense, found.dense_unpack), (Precision::Fp8, false));
        assert_eq!(supported(&blackwell, &multiplied, &traits), Ok(()));
    }

    #[test]
    fn bf16_falls_back_to_fp16_without_bf16_support() {
        let mut v100 = Accelerator::default();
        v100.flops[Precision::Bf16 as usize] = 0.0;
        assert_eq!(supported_16_bit_format(&v100, Format::Bf16), Format::Fp16);
        assert_eq!(supported_16_bit_format(&v100, Format::Fp8), Format::Fp8);
        assert_eq!(supported_16_bit_format(&Accelerator::default(), Format::Bf16), Format::Bf16);
    }

    #[test]
    fn expert_format_applies_to_expert_weights_only() {
        let arch = Architecture { experts: Count::new(8), top_k: Count::new(2), ..Architecture::default() };
        let requested = Stated { experts: Some(Format::Fp4), ..stated(Format::Fp8) };
        let found = formats(&with_fp8(), &arch, &requested, &ServingTraits::default());
        assert_eq!((found.dense_bytes, found.dense), (1.0, Precision::Fp8));
        assert_eq!((found.expert_bytes, found.expert_unpack), (stored_bytes(Format::Fp4), true));
        let dense = formats(&with_fp8(), &Architecture::default(), &requested, &ServingTraits::default());
        assert_eq!(
            dense,
            formats(&with_fp8(), &Architecture::default(), &stated(Format::Fp8), &ServingTraits::default())
        );
    }

    #[test]
    fn files_quantized_as_a_whole_have_their_bits_times_all_weights() {
        // Llama 3.1 8B in Q4_K_M: 4.92 GB are published for 8.03 billion weights.
        let arch = Architecture::of_size(8.03e9, Count::new(128_256));
        let requested = Stated { bits: Some(4.85), ..stated(Format::Int4) };
        let traits = ServingTraits { ends: QuantizedEnds::Narrow, ..ServingTraits::default() };
        let resident = |traits| {
            let formats = formats(&with_fp8(), &arch, &requested, traits);
            super::super::shape::Shape::new(&arch, &formats, &super::super::Layout::default()).resident_bytes
        };
        let whole = resident(&traits);
        assert!((whole / (arch.params() * 4.85 / 8.0) - 1.0).abs() < 0.002, "{whole}");
        // Other checkpoints keep embedding and output layer in 16 bit.
        let ends = 2.0 * 128_256.0 * arch.hidden * (2.0 - 4.85 / 8.0);
        assert!(((resident(&ServingTraits::default()) - whole) / ends - 1.0).abs() < 1e-9);
    }

    #[test]
    fn nvfp4_has_twice_the_scales_of_mxfp4() {
        let bytes = |nvfp4, experts| {
            let arch = Architecture { experts: Count::new(8), top_k: Count::new(2), ..Architecture::default() };
            let arch = if experts { arch } else { Architecture::default() };
            let weights = if experts { Format::Fp8 } else { Format::Fp4 };
            let requested = Stated { nvfp4, experts: experts.then_some(Format::Fp4), ..stated(weights) };
            formats(&with_fp8(), &arch, &requested, &ServingTraits::default()).expert_bytes
        };
        assert_eq!([bytes(true, false), bytes(true, true)], [4.5 / 8.0; 2]);
        assert_eq!([bytes(false, false), bytes(false, true)], [stored_bytes(Format::Fp4); 2]);
    }

    #[test]
    fn stated_bits_replace_the_size_of_the_format() {
        let requested = Stated { bits: Some(4.85), ..stated(Format::Int4) };
        let found = formats(&with_fp8(), &Architecture::default(), &requested, &ServingTraits::default());
        assert!((found.dense_bytes - 4.85 / 8.0).abs() < 1e-12);
    }
}
