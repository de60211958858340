//! The time of encoding images on the ranks of one attention group.
//!
//! Serving software runs the encoder ahead of the prompt's first chunk, kernel by kernel, in 16 bit, cut over the
//! tensor-parallel ranks as the language model is (vLLM, `model_executor/models/qwen2_5_vl.py`). What a prompt finds in the
//! prefix cache needs no images.

use super::fabric::Fabric;
use super::input::{Layout, ServingInput};
use super::rates::{Slice, linear_rate};
use crate::accelerator::Precision;
use crate::constants::Constants;
use crate::roofline;
use atlas_core::count::Count;

/// What the machine does for all its kernels.
pub(super) struct Pace<'a> {
    /// Share of the arithmetic's roofline that the stack reaches.
    pub(super) mature: f64,
    /// Share of the memory's roofline that it reaches.
    pub(super) streaming: f64,
    /// The fabric between tensor-parallel ranks.
    pub(super) reduce: &'a Fabric,
    /// Seconds of a launch by the host.
    pub(super) launch: f64,
}

/// Seconds for each token of a prompt of mean length; 0 without images.
pub(super) fn of_token(input: &ServingInput, layout: &Layout, c: &Constants, pace: &Pace<'_>) -> f64 {
    let Some(images) = &input.images else { return 0.0 };
    let acc = &input.accelerator;
    let tp = f64::from(layout.tp.max(Count::ONE));
    // Weights of a layer over the width, which is a rank's slice of the language model's layers too.
    let slice = images.params / images.layers.max(1.0) / images.hidden.max(1.0) / tp;
    let products = images.product_flops
        / tp
        / (pace.mature * linear_rate(acc, c, Precision::Bf16, false, Slice::layer(slice))).max(1.0);
    let rate = pace.mature
        * c.attention_fraction
        * roofline::best_rate(acc, c, Precision::Bf16)
        * roofline::fused_attention_share(acc, c, images.head_dim, input.attention);
    let attention = images.attention_flops / tp / rate.max(1.0);
    let bandwidth = pace.streaming * acc.mem_bw * c.memory_fraction;
    // Weights are read once for all images of a request; norms and residuals lie whole on every rank.
    let traffic = (input.image_bytes(layout) + images.traffic) / bandwidth.max(1.0);
    let reduced = if tp > 1.0 {
        let bytes = images.patches * images.hidden * 2.0;
        2.0 * images.layers * (pace.reduce.latency + bytes * 2.0 * (tp - 1.0) / tp / pace.reduce.bw)
    } else {
        0.0
    };
    let device = products + attention + traffic + reduced;
    // One graph of kernels for all images of a request, launched by the host alongside.
    device.max(images.kernels * pace.launch) / input.computed(input.isl).max(1.0)
}
