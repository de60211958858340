//! Common names of quantization schemes, some of which state more than the format of the weights.

use super::{Format, stored_bits};

/// A quantization scheme.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Preset {
    /// Format of the weights.
    pub weights: Format,
    /// Format of the GEMMs, if it differs from the default for the weights' format.
    pub compute: Option<Format>,
    /// Bits per weight including scales, for formats defined by their size.
    pub bits: Option<f64>,
    /// Whether 4-bit floating-point weights are NVFP4 rather than MXFP4, if the name states it.
    pub nvfp4: Option<bool>,
}

impl Preset {
    /// Names other than those of formats, as listed in errors.
    pub const NAMES: &'static [&'static str] =
        &["w8a8", "w8a16", "w4a16", "w4a8", "w4a4", "nvfp4", "mxfp4", "awq", "gptq", "q8_0", "q4_k_m"];

    /// Finds a preset or format by name.
    #[must_use]
    pub fn named(name: &str) -> Option<Preset> {
        if let Some(bits) = stored_bits(name) {
            return Some(Preset { weights: Format::Int4, compute: None, bits: Some(bits), nvfp4: None });
        }
        let name = name.trim().to_ascii_lowercase();
        let (weights, compute) = match name.as_str() {
            "w8a16" => (Format::Fp8, Some(Format::Bf16)),
            "w4a8" => (Format::Int4, Some(Format::Fp8)),
            _ => (Format::named(&name)?, None),
        };
        let nvfp4 = ["nvfp4", "mxfp4"].contains(&name.as_str()).then_some(name == "nvfp4");
        Some(Preset { weights, compute, bits: None, nvfp4 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_presets_set_weights_compute_and_bits() {
        let of = |name| Preset::named(name).map(|preset| (preset.weights, preset.compute, preset.bits));
        assert_eq!(of("W8A8"), Some((Format::Fp8, None, None)));
        assert_eq!(of("W8A16"), Some((Format::Fp8, Some(Format::Bf16), None)));
        assert_eq!(of("W4A16"), Some((Format::Int4, None, None)));
        assert_eq!(of("w4a8"), Some((Format::Int4, Some(Format::Fp8), None)));
        assert_eq!(of("NVFP4"), Some((Format::Fp4, None, None)));
        assert_eq!(
            ["nvfp4", "mxfp4", "fp4"].map(|name| Preset::named(name).and_then(|preset| preset.nvfp4)),
            [Some(true), Some(false), None]
        );
        assert_eq!(of("Q4_K_M"), Some((Format::Int4, None, Some(4.85))));
        assert_eq!(of("w3a3"), None);
        assert!(Preset::NAMES.iter().all(|name| Preset::named(name).is_some()));
    }
}
