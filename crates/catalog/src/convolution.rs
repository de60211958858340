//! Residual convolutional networks: ResNet-50 and similar ones with bottleneck blocks.

use atlas_core::count::Count;
use atlas_document::Node;
use atlas_document::decode::{Bounds, Fields};
pub use atlas_perf::convolution::Convolution;

/// A ResNet with bottleneck blocks (He et al., arXiv 1512.03385), and strides in the 3×3 convolutions as in torchvision
/// and MLPerf.
#[derive(Debug, Clone, PartialEq)]
pub struct Convolutional {
    /// Channels after the 7×7 stem.
    pub stem_width: Count,
    /// Number of blocks per stage.
    pub blocks: Vec<Count>,
    /// Inner channels of the blocks of each stage.
    pub widths: Vec<Count>,
    /// Ratio of outer to inner channels of a block.
    pub expansion: Count,
    /// Width and height of the input, pixels.
    pub image_size: Count,
    /// Number of classes.
    pub classes: Count,
}

impl Convolutional {
    /// Returns all convolutions in order of execution.
    #[must_use]
    pub fn convolutions(&self) -> Vec<Convolution> {
        let mut side = (self.image_size / 2.0).ceil();
        let mut channels = f64::from(self.stem_width);
        let mut all = vec![Convolution { channels_in: 3.0, channels_out: channels, kernel: 7.0, side }];
        // Max pooling after the stem.
        side = (side / 2.0).ceil();
        for (stage, (&blocks, &width)) in self.blocks.iter().zip(&self.widths).enumerate() {
            let (width, outer) = (f64::from(width), width * self.expansion);
            for block in 0..blocks.get() {
                let before = side;
                if block == 0 && stage > 0 {
                    side = (side / 2.0).ceil();
                }
                let mut add = |channels_in, channels_out, kernel, side| {
                    all.push(Convolution { channels_in, channels_out, kernel, side });
                };
                add(channels, width, 1.0, before);
                add(width, width, 3.0, side);
                add(width, outer, 1.0, side);
                if block == 0 {
                    add(channels, outer, 1.0, side);
                }
                channels = outer;
            }
        }
        all
    }

    /// Number of input channels of the classifier.
    #[must_use]
    pub fn features(&self) -> f64 {
        self.widths.last().map_or(f64::from(self.stem_width), |width| *width * self.expansion)
    }

    /// Number of parameters.
    #[must_use]
    pub fn parameters(&self) -> f64 {
        let convolutions: f64 = self.convolutions().iter().map(Convolution::parameters).sum();
        convolutions + (self.features() + 1.0) * self.classes
    }

    /// Multiply-adds in the forward pass of one image; each is two FLOPs.
    #[must_use]
    pub fn multiply_adds(&self) -> f64 {
        let convolutions: f64 = self.convolutions().iter().map(Convolution::multiply_adds).sum();
        convolutions + self.features() * self.classes
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Option<Convolutional> {
        let needed = ["stem_width", "blocks", "widths", "expansion", "image_size", "classes"];
        let read = |network: &mut Fields<'_>| {
            let width = Bounds { max: 1e6, ..Bounds::COUNT };
            let stem_width = network.required_count("stem_width", width);
            let blocks = counts(network, "blocks", 1000.0);
            let widths = counts(network, "widths", 1e6);
            let expansion = network.required_count("expansion", width);
            let image_size = network.required_count("image_size", width);
            let classes = network.required_count("classes", Bounds::COUNT);
            if let (Some(blocks), Some(widths)) = (&blocks, &widths)
                && blocks.len() != widths.len()
            {
                let message = format!("found {} widths for {} stages of blocks", widths.len(), blocks.len());
                network.error("widths", message, Some("write one width per stage".to_owned()));
            }
            Some(Convolutional {
                stem_width: stem_width?,
                blocks: blocks?,
                widths: widths?,
                expansion: expansion?,
                image_size: image_size?,
                classes: classes?,
            })
        };
        fields.required_map("convolutions", &needed, read).flatten()
    }
}

/// Decodes a list of up to 16 counts from 1 to `max`.
fn counts(fields: &mut Fields<'_>, key: &'static str, max: f64) -> Option<Vec<Count>> {
    let bounds = Bounds { max, ..Bounds::COUNT };
    let Some(node) = fields.node(key) else {
        fields.missing(key);
        return None;
    };
    let count = |item: &Node| item.number().filter(|&number| bounds.contains(number)).map(Count::floor);
    let found: Option<Vec<Count>> =
        node.items().filter(|items| items.len() <= 16).and_then(|items| items.iter().map(count).collect());
    if found.is_none() {
        let message =
            format!("found {}, expected a list of up to 16 numbers, each {}", node.describe(), bounds.describe());
        fields.error(key, message, None);
    }
    found
}

impl Convolutional {
    /// ResNet-50 on ImageNet (arXiv 1512.03385, table 1).
    #[must_use]
    pub fn resnet_50() -> Convolutional {
        Convolutional {
            stem_width: Count::new(64),
            blocks: [3, 4, 6, 3].map(Count::new).to_vec(),
            widths: [64, 128, 256, 512].map(Count::new).to_vec(),
            expansion: Count::new(4),
            image_size: Count::new(224),
            classes: Count::new(1000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resnet_50_has_its_published_size() {
        let network = Convolutional::resnet_50();
        assert_eq!(network.convolutions().len(), 53);
        assert_eq!(network.parameters(), 25_557_032.0);
        assert!((network.multiply_adds() / 4.09e9 - 1.0).abs() < 0.005, "{}", network.multiply_adds());
    }
}
