//! Compute of a convolutional network for one micro-batch of images in channels-last layout. Convolutions are GEMMs
//! whose operands are read in place (implicit GEMM); batch norms are memory-bound.

use super::TrainingInput;
use super::layer::LayerTime;
use crate::constants::Constants;
use crate::convolution::{Multiples, PlacedConvolution, Residual};
use crate::roofline;
use crate::roofline::{Gemm, GemmModel};

/// Elements moved per output element by a batch norm with its activation function, forward and backward. Forward:
/// statistics read once, normalization reads and writes. Backward: input and gradient are read for the sums, and again
/// for the gradient that is written (Ioffe and Szegedy, arXiv 1502.03167, section 3). The activation function is fused
/// if element-wise chains are; otherwise [`ACTIVATION`] is added.
const NORM: (f64, f64) = (3.0, 5.0);
/// Additional traffic of a separate activation function.
const ACTIVATION: (f64, f64) = (2.0, 3.0);
/// Additional traffic of adding a block's input: one read forward, one write backward.
const JOIN: (f64, f64) = (1.0, 1.0);

fn convolution(
    i: &TrainingInput,
    c: &Constants,
    model: &GemmModel,
    at: &PlacedConvolution,
    by: &Multiples,
) -> LayerTime {
    let (shape, images, wide) = (&at.shape, i.micro, i.element_bytes());
    let taps = shape.kernel * shape.kernel;
    let pixels = images * shape.side * shape.side;
    let read = images * at.side_in * at.side_in * shape.channels_in * wide;
    let written = by.activations * pixels * shape.channels_out * wide;
    let weights = by.parameters * shape.channels_in * shape.channels_out * taps * wide;
    let time = |g: &Gemm, products: f64| {
        let memory = roofline::memory_seconds(&i.accelerator, c, by.activations * read + written + weights);
        products * model.arithmetic(g) + memory
    };
    let forward = time(&Gemm::new(pixels, shape.channels_out, shape.channels_in * taps), by.forward);
    // The first convolution does not need the gradient of the images.
    let input = Gemm::new(images * at.side_in * at.side_in, shape.channels_in, shape.channels_out * taps);
    let input = if shape.channels_in > 3.0 {
        time(&Gemm { k: input.k * shape.side * shape.side / (at.side_in * at.side_in), ..input }, by.backward)
    } else {
        0.0
    };
    let weight = time(&Gemm::new(shape.channels_out, shape.channels_in * taps, pixels), by.backward);
    let passes = |pick: fn((f64, f64)) -> f64| {
        let own = if i.software.fused_elementwise { 0.0 } else { pick(ACTIVATION) };
        pick(NORM) + own + if at.adds_residual { pick(JOIN) } else { 0.0 }
    };
    let [before, behind] =
        [passes(|p| p.0), passes(|p| p.1)].map(|bytes| roofline::memory_seconds(&i.accelerator, c, written * bytes));
    // Convolution, batch norm, activation, addition: forward, and about twice as many kernels backward.
    let kernels = by.layers * if i.software.fused_elementwise { 6.0 } else { 12.0 };
    LayerTime {
        gemm: forward + input + i.trained * weight,
        elementwise: before + behind + kernels * c.kernel_gap,
        forward: forward + before + kernels * c.kernel_gap / 3.0,
        weights: i.trained * weight,
        kernels,
        ..LayerTime::default()
    }
}

/// Mean over the convolutions, each with its batch norm.
pub(super) fn mean(i: &TrainingInput, c: &Constants, network: &Residual) -> LayerTime {
    let mut sum = LayerTime::default();
    let by = &network.multiples;
    let model = GemmModel::new(&i.accelerator, c, i.precision);
    network.visit(|at| sum = sum.plus(&convolution(i, c, &model, &at, by).scaled(at.occurrences)));
    // The pooling after the stem reads the stem's output and writes a quarter of it, forward and backward.
    let stem = by.activations * (network.image_size / 2.0).powi(2) * network.stem_width * i.micro * i.element_bytes();
    sum.elementwise += roofline::memory_seconds(&i.accelerator, c, 2.0 * 1.25 * stem);
    sum.scaled(1.0 / network.depth().max(1.0))
}

/// Time of pooling and classifier.
pub(super) fn head(i: &TrainingInput, c: &Constants, network: &Residual) -> LayerTime {
    let (images, classes, features) = (i.micro, network.classes, network.features());
    let model = GemmModel::new(&i.accelerator, c, i.precision);
    let gemm = |m, n, k| model.seconds(&Gemm::new(m, n, k));
    let by = &network.multiples;
    let forward = by.forward * gemm(images, f64::from(classes), features);
    let weights = by.backward * gemm(f64::from(classes), features, images);
    LayerTime {
        gemm: forward + by.backward * gemm(images, features, f64::from(classes)) + weights,
        forward,
        weights,
        kernels: 10.0,
        ..LayerTime::default()
    }
}
