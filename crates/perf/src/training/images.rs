//! Encoding the images of a micro-batch: passes of the encoder's layers, in 16 bit.

use super::layer::{Passage, products};
use super::pipeline::Pass;
use super::{Plan, Software, TrainingInput};
use crate::accelerator::Precision;
use crate::collective::{self, Fabric, Group};
use crate::constants::Constants;
use crate::roofline;
use crate::roofline::{FusedAttention, Gemm};
use atlas_core::count::Count;

/// Seconds of a micro-batch's images on the ranks of the first stage; nothing without images.
pub fn seconds(i: &TrainingInput, c: &Constants, f: &Fabric, plan: Plan) -> Pass {
    let Some(images) = &i.images else { return Pass::default() };
    let (acc, tp) = (&i.accelerator, f64::from(i.tp.max(Count::ONE)));
    // Products as wide as those of the MLP stand for all.
    let shape = Gemm::new(i.micro * images.patches, images.ffn / tp, images.hidden);
    let times = i.micro * images.product_flops / tp / shape.flops().max(1.0);
    let Passage { forward: product, input, weights } = products(i, c, &shape, Precision::Bf16);
    let kernel = match i.software {
        Software { first_flash: true, .. } => FusedAttention::First,
        Software { native_attention: true, .. } => FusedAttention::Native,
        _ => FusedAttention::Second,
    };
    let share = roofline::fused_attention_share(acc, c, images.head_dim, kernel);
    let (flops, bytes) = (i.micro * images.attention_flops / tp, i.micro * images.attention_bytes / tp);
    let attention = roofline::attention_seconds(acc, c, flops / share, bytes);
    let fused = if i.software.fused_elementwise { c.fused_traffic } else { c.eager_traffic };
    let split = if i.sequence_parallel { tp } else { 1.0 };
    let moved = roofline::memory_seconds(acc, c, i.micro * images.traffic * fused / split);
    let gaps = images.kernels * c.kernel_gap;
    // Two all-reduces a layer and pass.
    let reduced = if tp > 1.0 {
        let bytes = i.micro * images.patches * images.hidden * 2.0;
        2.0 * images.layers * collective::all_reduce(&f.among(tp), Group::strided(tp, 1.0, i.domain), bytes)
    } else {
        0.0
    };
    let forward = times * product + attention + moved + gaps + reduced;
    if !images.trained {
        return Pass { forward, ..Pass::default() };
    }
    let again = plan.full_share * forward;
    let backward = times * input + 2.5 * c.attention_backward * attention + 1.5 * moved + gaps + reduced;
    Pass { forward, input: backward + again, weights: times * weights + gaps }
}
