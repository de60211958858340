//! The time of encoding images on the ranks of one attention group.
//!
//! Serving engines run the encoder before the prompt's first chunk, kernel by kernel, in 16 bit, sharded over the
//! tensor-parallel ranks as the language model is (vLLM, `model_executor/models/qwen2_5_vl.py`). Images in the cached
//! prefix of a prompt are not encoded.

use super::fabric::Fabric;
use super::input::{Layout, ServingInput};
use super::rates::{LinearRates, Slice};
use crate::accelerator::Precision;
use crate::constants::Constants;
use crate::roofline;
use atlas_core::count::Count;

/// Rates that the encoder shares with the rest of the machine.
pub(super) struct EncoderRates<'a> {
    /// Share of the arithmetic roofline that the engine reaches.
    pub(super) kernel_maturity: f64,
    /// Share of the memory roofline that the engine reaches.
    pub(super) streaming: f64,
    /// The fabric between tensor-parallel ranks.
    pub(super) reduce: &'a Fabric,
    /// Host time per kernel launch, s.
    pub(super) launch: f64,
}

/// Time per token of a mean prompt, s; 0 without images.
pub(super) fn of_token(input: &ServingInput, layout: &Layout, c: &Constants, pace: &EncoderRates<'_>) -> f64 {
    let Some(images) = &input.images else { return 0.0 };
    let acc = &input.accelerator;
    let tp = f64::from(layout.tp.max(Count::ONE));
    // Weights of a layer divided by the width, as for a rank's slice of the language model's layers.
    let slice = images.params / images.layers.max(1.0) / images.hidden.max(1.0) / tp;
    let products = images.product_flops
        / tp
        / (pace.kernel_maturity * LinearRates::of(acc, c).reached_in_16_bit(Slice::layer(slice))).max(1.0);
    let rate = pace.kernel_maturity
        * c.attention_fraction
        * roofline::best_rate(acc, c, Precision::Bf16)
        * roofline::fused_attention_share(acc, c, images.head_dim, input.attention);
    let attention = images.attention_flops / tp / rate.max(1.0);
    let bandwidth = pace.streaming * acc.mem_bw * c.memory_fraction;
    // Weights are read once for all images of a request. Norms and residuals are replicated on every rank.
    let traffic = (input.image_bytes(layout) + images.traffic) / bandwidth.max(1.0);
    let reduced = if tp > 1.0 {
        let bytes = images.patches * images.hidden * 2.0;
        2.0 * images.layers * (pace.reduce.latency + bytes * 2.0 * (tp - 1.0) / tp / pace.reduce.bw)
    } else {
        0.0
    };
    let device = products + attention + traffic + reduced;
    // The host launches the kernels for all images of a request, overlapping with the device.
    device.max(images.kernels * pace.launch) / input.computed(input.isl).max(1.0)
}
