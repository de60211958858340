//! Pixel buffer with opacity, on which lines, circles and boxes are painted with anti-aliased edges.

use atlas_core::math;
use std::collections::HashMap;

/// Pixels as red, green, blue and opacity, row by row from the top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 4]>,
}

impl Sheet {
    /// Creates an opaque white sheet.
    #[must_use]
    pub fn white(width: usize, height: usize) -> Sheet {
        Sheet { width, height, pixels: vec![[0xff; 4]; width * height] }
    }

    /// Creates a fully transparent sheet.
    #[must_use]
    pub fn clear(width: usize, height: usize) -> Sheet {
        Sheet { width, height, pixels: vec![[0; 4]; width * height] }
    }

    /// Blends a color over a pixel; `share` is the covered part of the pixel.
    pub(crate) fn cover(&mut self, x: i64, y: i64, color: [u8; 3], share: f64) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        if x >= self.width || share.is_nan() || share <= 0.0 {
            return;
        }
        let Some([pixel @ .., opacity]) = self.pixels.get_mut(y * self.width + x) else { return };
        let share = share.min(1.0);
        let below = f64::from(*opacity) / 255.0 * (1.0 - share);
        for (have, ink) in pixel.iter_mut().zip(color) {
            let mixed = (f64::from(*have) * below + f64::from(ink) * share) / (below + share);
            *have = mixed.round().clamp(0.0, 255.0) as u8;
        }
        *opacity = (255.0 * (below + share)).round().clamp(0.0, 255.0) as u8;
    }

    /// Paints a shape given by its signed distance function (negative inside) within the box from `low` to `high`.
    pub(crate) fn shape(
        &mut self,
        low: (f64, f64),
        high: (f64, f64),
        color: [u8; 3],
        distance: impl Fn(f64, f64) -> f64,
    ) {
        let limit = |side: usize| side as f64;
        let (left, right) = (low.0.clamp(0.0, limit(self.width)), high.0.clamp(0.0, limit(self.width)));
        let (top, bottom) = (low.1.clamp(0.0, limit(self.height)), high.1.clamp(0.0, limit(self.height)));
        for y in top.floor() as i64..bottom.ceil() as i64 {
            for x in left.floor() as i64..right.ceil() as i64 {
                self.cover(x, y, color, 0.5 - distance(x as f64 + 0.5, y as f64 + 0.5));
            }
        }
    }

    /// Draws a line with round ends; `half` is half its width.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), half: f64, color: [u8; 3]) {
        let room = half + 1.0;
        let low = (from.0.min(to.0) - room, from.1.min(to.1) - room);
        let high = (from.0.max(to.0) + room, from.1.max(to.1) + room);
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = (dx * dx + dy * dy).max(1e-12);
        self.shape(low, high, color, |x, y| {
            let along = (((x - from.0) * dx + (y - from.1) * dy) / length).clamp(0.0, 1.0);
            math::hypot(x - from.0 - along * dx, y - from.1 - along * dy) - half
        });
    }

    /// Draws a circle; `half` is half the line width. If `half` is zero, the disc is filled.
    pub fn ring(&mut self, at: (f64, f64), radius: f64, half: f64, color: [u8; 3]) {
        let room = radius + half + 1.0;
        self.shape((at.0 - room, at.1 - room), (at.0 + room, at.1 + room), color, |x, y| {
            let out = math::hypot(x - at.0, y - at.1) - radius;
            if half > 0.0 { out.abs() - half } else { out }
        });
    }

    /// Fills the rectangle between two corners.
    pub fn rectangle(&mut self, low: (f64, f64), high: (f64, f64), color: [u8; 3]) {
        self.shape((low.0 - 1.0, low.1 - 1.0), (high.0 + 1.0, high.1 + 1.0), color, |x, y| {
            (low.0 - x).max(x - high.0).max(low.1 - y).max(y - high.1)
        });
    }

    /// Encodes the sheet as PNG with its opacity, using fast compression.
    ///
    /// # Errors
    /// Returns the error of the PNG encoder.
    pub fn to_png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let Some((palette, indices)) = self.indexed() else {
            return self.encode(png::ColorType::Rgba, png::Compression::Fast, self.pixels.as_flattened());
        };
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Balanced);
        // Neighboring palette indices are unrelated numbers: filtering them by differences would compress worse.
        encoder.set_filter(png::Filter::NoFilter);
        encoder
            .set_palette(palette.iter().flat_map(|[red, green, blue, _]| [*red, *green, *blue]).collect::<Vec<u8>>());
        encoder.set_trns(palette.iter().map(|[.., opacity]| *opacity).collect::<Vec<u8>>());
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&indices)?;
        writer.finish()?;
        Ok(out)
    }

    /// Palette of distinct colors, with the opacity of edges quantized to sixteen steps, and the palette index of each
    /// pixel. `None` if there are more colors than a byte can index. Charts of lines have few colors, and their images
    /// are a tenth as long with a palette.
    fn indexed(&self) -> Option<(Vec<[u8; 4]>, Vec<u8>)> {
        const STEP: u8 = 17;
        let mut known: HashMap<[u8; 4], u8> = HashMap::new();
        let mut palette = Vec::new();
        let mut indices = Vec::with_capacity(self.pixels.len());
        let mut last = ([0; 4], None);
        for pixel in &self.pixels {
            let [red, green, blue, opacity] = *pixel;
            let opacity = opacity.saturating_add(STEP / 2) / STEP * STEP;
            let color = if opacity == 0 { [0; 4] } else { [red, green, blue, opacity] };
            // Most pixels have the color of the previous one.
            let index = match last {
                (before, Some(index)) if before == color => index,
                _ => match known.get(&color) {
                    Some(index) => *index,
                    None => {
                        let index = u8::try_from(palette.len()).ok()?;
                        palette.push(color);
                        known.insert(color, index);
                        index
                    }
                },
            };
            last = (color, Some(index));
            indices.push(index);
        }
        Some((palette, indices))
    }

    /// Encodes the sheet as PNG without opacity, using the default compression.
    ///
    /// # Errors
    /// Returns the error of the PNG encoder.
    pub(crate) fn to_opaque_png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let opaque: Vec<u8> = self.pixels.iter().flat_map(|[red, green, blue, _]| [*red, *green, *blue]).collect();
        self.encode(png::ColorType::Rgb, png::Compression::default(), &opaque)
    }

    fn encode(
        &self,
        color: png::ColorType,
        compression: png::Compression,
        pixels: &[u8],
    ) -> Result<Vec<u8>, png::EncodingError> {
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.width as u32, self.height as u32);
        encoder.set_color(color);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(compression);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(pixels)?;
        writer.finish()?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    const RED: [u8; 3] = [200, 0, 0];

    #[test]
    fn only_covered_pixels_are_opaque() {
        let mut sheet = Sheet::clear(20, 10);
        sheet.line((2.0, 5.0), (18.0, 5.0), 1.5, RED);
        assert_eq!(sheet.pixels[5 * 20 + 10], [200, 0, 0, 255]);
        assert_eq!(sheet.pixels[0], [0; 4]);
        // An edge keeps the color and loses opacity.
        let edge = sheet.pixels[3 * 20 + 10];
        assert!(edge[..3] == RED && (1..255).contains(&edge[3]), "{edge:?}");
    }

    #[test]
    fn png_uses_a_palette_only_for_few_colors() {
        let mut sheet = Sheet::clear(300, 200);
        sheet.line((2.0, 5.0), (298.0, 190.0), 1.5, RED);
        let png = sheet.to_png().unwrap();
        let mut decoder = png::Decoder::new(std::io::Cursor::new(&png));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        assert_eq!(reader.info().color_type, png::ColorType::Indexed);
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        for (shown, drawn) in pixels.chunks(4).zip(&sheet.pixels) {
            assert!(shown[3].abs_diff(drawn[3]) <= 8, "{shown:?} {drawn:?}");
            assert!(shown[3] == 0 || shown[..3] == drawn[..3], "{shown:?} {drawn:?}");
        }
        for (at, pixel) in sheet.pixels.iter_mut().enumerate() {
            *pixel = [(at % 256) as u8, (at / 256) as u8, 0, 255];
        }
        let png = sheet.to_png().unwrap();
        let reader = png::Decoder::new(std::io::Cursor::new(&png)).read_info().unwrap();
        assert_eq!(reader.info().color_type, png::ColorType::Rgba);
    }

    #[test]
    fn half_covered_pixel_on_white_is_blended() {
        let mut sheet = Sheet::white(1, 1);
        sheet.cover(0, 0, [0; 3], 0.5);
        assert_eq!(sheet.pixels, [[128, 128, 128, 255]]);
    }

    #[test]
    fn points_outside_or_not_finite_are_left_out() {
        let mut sheet = Sheet::clear(4, 4);
        sheet.line((-1e9, -1e9), (-5.0, -5.0), 1.0, RED);
        sheet.line((f64::NAN, 0.0), (2.0, f64::INFINITY), 1.0, RED);
        sheet.rectangle((9.0, 9.0), (f64::INFINITY, 12.0), RED);
        assert_eq!(sheet, Sheet::clear(4, 4));
        assert!(sheet.to_png().unwrap().starts_with(b"\x89PNG"));
    }
}
