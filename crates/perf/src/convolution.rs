//! A residual network of convolutions (ResNet-50 and its siblings) as plain numbers.

use atlas_core::count::Count;

/// Most stages that a network is described by; more are left out, and no ResNet has more than four.
pub const MAX_STAGES: usize = 8;

/// One convolution, and the batch norm that follows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Convolution {
    /// Channels read.
    pub channels_in: f64,
    /// Channels written.
    pub channels_out: f64,
    /// Side of the square kernel.
    pub kernel: f64,
    /// Side of the square output, pixels.
    pub side: f64,
}

impl Convolution {
    /// Weights, with scale and shift of the batch norm.
    #[must_use]
    pub fn parameters(&self) -> f64 {
        self.channels_in * self.channels_out * self.kernel * self.kernel + 2.0 * self.channels_out
    }

    /// Multiply-adds for one image; twice as many FLOPs.
    #[must_use]
    pub fn multiply_adds(&self) -> f64 {
        self.channels_in * self.channels_out * self.kernel * self.kernel * self.side * self.side
    }
}

/// Blocks of one stage and their inner channels.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stage {
    /// Blocks.
    pub blocks: Count,
    /// Inner channels of a block.
    pub width: Count,
}

/// Work as multiples of what a network's convolutions sum to. A model that is known by sums alone runs at the rates of
/// the convolutions that it is a multiple of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Multiples {
    /// Layers.
    pub layers: f64,
    /// FLOPs of the forward pass.
    pub forward: f64,
    /// FLOPs of the backward pass.
    pub backward: f64,
    /// Parameters.
    pub parameters: f64,
    /// Elements written, kept and read again.
    pub activations: f64,
}

impl Multiples {
    /// The network itself.
    pub const ONE: Multiples =
        Multiples { layers: 1.0, forward: 1.0, backward: 1.0, parameters: 1.0, activations: 1.0 };
}

/// A residual network of bottleneck blocks (arXiv 1512.03385): the catalog's entry without lists.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residual {
    /// Channels after the 7 × 7 stem.
    pub stem_width: Count,
    /// Stages; those without blocks do not exist.
    pub stages: [Stage; MAX_STAGES],
    /// Outer channels of a block over its inner ones.
    pub expansion: Count,
    /// Side of the square input, pixels.
    pub image_size: Count,
    /// Classes described apart.
    pub classes: Count,
    /// What of its sums is counted.
    pub multiples: Multiples,
}

/// A convolution within the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// Its shape.
    pub shape: Convolution,
    /// Side of its square input, pixels.
    pub side_in: f64,
    /// How often the network has it.
    pub times: f64,
    /// The block's input is added to its output (with the batch norm that follows).
    pub joins: bool,
}

impl Residual {
    /// Calls `each` on every distinct convolution, in order; blocks after a stage's first one are all alike.
    pub fn visit(&self, mut each: impl FnMut(Place)) {
        let mut place = |channels_in, channels_out, kernel, side_in, side, times, joins| {
            each(Place { shape: Convolution { channels_in, channels_out, kernel, side }, side_in, times, joins });
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

    /// Channels that reach the classifier.
    pub fn features(&self) -> f64 {
        let last = self.stages.iter().rev().find(|stage| stage.blocks > 0.0);
        last.map_or(f64::from(self.stem_width), |stage| stage.width * self.expansion)
    }

    /// All weights.
    pub fn params(&self) -> f64 {
        let mut sum = (self.features() + 1.0) * self.classes;
        self.visit(|at| sum += at.times * at.shape.parameters());
        sum * self.multiples.parameters
    }

    /// Multiply-adds for one image, forward.
    pub fn multiply_adds(&self) -> f64 {
        let mut sum = self.features() * self.classes;
        self.visit(|at| sum += at.times * at.shape.multiply_adds());
        sum * self.multiples.forward
    }

    /// FLOPs for one image, forward and backward.
    pub fn flops(&self) -> f64 {
        2.0 * self.multiply_adds() * (1.0 + 2.0 * self.backward_over_forward())
    }

    /// Products of the gradients of the inputs, or of the weights, over those of the forward pass; 1 where nothing else is
    /// stated.
    pub fn backward_over_forward(&self) -> f64 {
        self.multiples.backward / self.multiples.forward
    }

    /// Convolutions, or layers of a multiple.
    pub fn depth(&self) -> f64 {
        let mut sum = 0.0;
        self.visit(|at| sum += at.times);
        (sum * self.multiples.layers).round()
    }

    /// Elements that convolutions write for one image: what batch norms read.
    pub fn outputs(&self) -> f64 {
        let mut sum = 0.0;
        self.visit(|at| sum += at.times * at.shape.channels_out * at.shape.side * at.shape.side);
        sum * self.multiples.activations
    }
}
