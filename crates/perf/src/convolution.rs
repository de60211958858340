//! A residual convolutional network (ResNet-50 and similar) as plain numbers.

use atlas_core::count::Count;

/// Maximum number of stages in a description; further ones are ignored. No ResNet has more than four.
pub const MAX_STAGES: usize = 8;

/// One convolution with its batch norm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Convolution {
    /// Input channels.
    pub channels_in: f64,
    /// Output channels.
    pub channels_out: f64,
    /// Side of the square kernel.
    pub kernel: f64,
    /// Side of the square output, pixels.
    pub side: f64,
}

impl Convolution {
    /// Number of weights, including scale and shift of the batch norm.
    #[must_use]
    pub fn parameters(&self) -> f64 {
        self.channels_in * self.channels_out * self.kernel * self.kernel + 2.0 * self.channels_out
    }

    /// Multiply-adds per image; twice as many FLOPs.
    #[must_use]
    pub fn multiply_adds(&self) -> f64 {
        self.channels_in * self.channels_out * self.kernel * self.kernel * self.side * self.side
    }
}

/// Blocks of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stage {
    /// Number of blocks.
    pub blocks: Count,
    /// Inner channels of a block.
    pub width: Count,
}

/// Factors on the sums over a network's convolutions. They describe a model of which only the sums are known: it runs
/// at the rates of the convolutions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Multiples {
    /// Number of layers.
    pub layers: f64,
    /// FLOPs of the forward pass.
    pub forward: f64,
    /// FLOPs of the backward pass.
    pub backward: f64,
    /// Number of parameters.
    pub parameters: f64,
    /// Elements of activations written, kept and read.
    pub activations: f64,
}

impl Multiples {
    /// No scaling.
    pub const ONE: Multiples =
        Multiples { layers: 1.0, forward: 1.0, backward: 1.0, parameters: 1.0, activations: 1.0 };
}

/// A residual network of bottleneck blocks (arXiv 1512.03385): the catalog entry in fixed-size form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residual {
    /// Channels after the 7 × 7 stem.
    pub stem_width: Count,
    /// Stages; unused entries have no blocks.
    pub stages: [Stage; MAX_STAGES],
    /// Ratio of a block's outer to its inner channels.
    pub expansion: Count,
    /// Side of the square input, pixels.
    pub image_size: Count,
    /// Number of classes.
    pub classes: Count,
    /// Factors on the sums over the convolutions.
    pub multiples: Multiples,
}

/// A convolution at its position in the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlacedConvolution {
    /// Its shape.
    pub shape: Convolution,
    /// Side of the square input, pixels.
    pub side_in: f64,
    /// Number of times that it occurs in the network.
    pub occurrences: f64,
    /// Whether the block's input is added to its output (with the batch norm that follows).
    pub adds_residual: bool,
}

impl Residual {
    /// Calls `each` for every distinct convolution, in order; all blocks of a stage but the first are alike.
    pub fn visit(&self, mut each: impl FnMut(PlacedConvolution)) {
        let mut place = |channels_in, channels_out, kernel, side_in, side, occurrences, adds_residual| {
            each(PlacedConvolution {
                shape: Convolution { channels_in, channels_out, kernel, side },
                side_in,
                occurrences,
                adds_residual,
            });
        };
        let (image, stem) = (f64::from(self.image_size), f64::from(self.stem_width));
        let mut side = (image / 2.0).ceil();
        place(3.0, stem, 7.0, image, side, 1.0, false);
        side = (side / 2.0).ceil();
        let mut channels = stem;
        for (at, stage) in self.stages.iter().enumerate().filter(|(_, stage)| stage.blocks > 0.0) {
            let (width, outer) = (f64::from(stage.width), stage.width * self.expansion);
            let before = side;
            if at > 0 {
                side = (side / 2.0).ceil();
            }
            place(channels, width, 1.0, before, before, 1.0, false);
            place(width, width, 3.0, before, side, 1.0, false);
            place(channels, outer, 1.0, before, side, 1.0, false);
            place(width, outer, 1.0, side, side, 1.0, true);
            let rest = stage.blocks - 1.0;
            if rest > 0.0 {
                place(outer, width, 1.0, side, side, rest, false);
                place(width, width, 3.0, side, side, rest, false);
                place(width, outer, 1.0, side, side, rest, true);
            }
            channels = outer;
        }
    }

    /// Input channels of the classifier.
    pub fn features(&self) -> f64 {
        let last = self.stages.iter().rev().find(|stage| stage.blocks > 0.0);
        last.map_or(f64::from(self.stem_width), |stage| stage.width * self.expansion)
    }

    /// Number of weights.
    pub fn params(&self) -> f64 {
        let mut sum = (self.features() + 1.0) * self.classes;
        self.visit(|at| sum += at.occurrences * at.shape.parameters());
        sum * self.multiples.parameters
    }

    /// Multiply-adds per image, forward.
    pub fn multiply_adds(&self) -> f64 {
        let mut sum = self.features() * self.classes;
        self.visit(|at| sum += at.occurrences * at.shape.multiply_adds());
        sum * self.multiples.forward
    }

    /// FLOPs per image, forward and backward.
    pub fn flops(&self) -> f64 {
        2.0 * self.multiply_adds() * (1.0 + 2.0 * self.backward_over_forward())
    }

    /// Ratio of the FLOPs of the input gradients, or of the weight gradients, to those of the forward pass; 1 by
    /// default.
    pub fn backward_over_forward(&self) -> f64 {
        self.multiples.backward / self.multiples.forward
    }

    /// Number of convolutions, scaled by [`Multiples::layers`].
    pub fn depth(&self) -> f64 {
        let mut sum = 0.0;
        self.visit(|at| sum += at.occurrences);
        (sum * self.multiples.layers).round()
    }

    /// Elements written by convolutions and read by batch norms, per image.
    pub fn outputs(&self) -> f64 {
        let mut sum = 0.0;
        self.visit(|at| sum += at.occurrences * at.shape.channels_out * at.shape.side * at.shape.side);
        sum * self.multiples.activations
    }
}
