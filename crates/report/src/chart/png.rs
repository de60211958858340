//! Charts as PNG: painted pixel by pixel, twice as fine as their units, edges smoothed by how much of a pixel they cover.

use embedded_graphics::geometry::{OriginDimensions as _, Point};
use embedded_graphics::image::GetPixel as _;
use embedded_graphics::mono_font::MonoFont;
use embedded_graphics::mono_font::iso_8859_1::FONT_10X20;
use embedded_graphics::pixelcolor::BinaryColor;

use super::drawing::{Anchor, Drawing, Ink, Item};

/// Pixels of a unit.
const FINE: f64 = 2.0;
/// Largest side, pixels.
const MOST: f64 = 8192.0;
/// Okabe and Ito's colors, in the order of the style sheet's classes.
const COLOURS: [[u8; 3]; super::drawing::COLOURS] = [
    [0x00, 0x72, 0xb2],
    [0xe6, 0x9f, 0x00],
    [0x00, 0x9e, 0x73],
    [0xcc, 0x79, 0xa7],
    [0x56, 0xb4, 0xe9],
    [0xd5, 0x5e, 0x00],
    [0xb8, 0xa8, 0x00],
    [0x88, 0x88, 0x88],
];

/// The color of an ink on white paper.
pub(crate) fn colour(ink: Ink) -> [u8; 3] {
    match ink {
        Ink::Text | Ink::Mark => [0x33; 3],
        Ink::Dim => [0x77; 3],
        Ink::Grid => [0xe4; 3],
        // White at nothing, the first color at all.
        Ink::Shade(share) => COLOURS[0].map(|full| {
            let share = u16::from(share.min(100));
            u8::try_from((255 * (100 - share) + u16::from(full) * share) / 100).unwrap_or(u8::MAX)
        }),
        Ink::None => [0xfa; 3],
        Ink::Limit => [0xd5, 0x5e, 0x00],
        Ink::Colour(number) => COLOURS.get(number % COLOURS.len()).copied().unwrap_or([0; 3]),
    }
}

/// A white sheet.
struct Sheet {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Sheet {
    /// Lays a color over a pixel, as much of it as is covered.
    fn cover(&mut self, x: i64, y: i64, colour: [u8; 3], share: f64) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        if x >= self.width || y >= self.height || share <= 0.0 {
            return;
        }
        let at = 3 * (y * self.width + x);
        if let Some(pixel) = self.pixels.get_mut(at..at + 3) {
            for (have, ink) in pixel.iter_mut().zip(colour) {
                let mixed = f64::from(*have) + (f64::from(ink) - f64::from(*have)) * share.min(1.0);
                *have = mixed.round().clamp(0.0, 255.0) as u8;
            }
        }
    }

    /// Covers every pixel near a box by how near it is: `distance` is negative inside.
    fn shape(&mut self, low: (f64, f64), high: (f64, f64), colour: [u8; 3], distance: impl Fn(f64, f64) -> f64) {
        let most = |side: usize| side as f64;
        let (left, right) = (low.0.clamp(0.0, most(self.width)), high.0.clamp(0.0, most(self.width)));
        let (top, bottom) = (low.1.clamp(0.0, most(self.height)), high.1.clamp(0.0, most(self.height)));
        for y in top.floor() as i64..bottom.ceil() as i64 {
            for x in left.floor() as i64..right.ceil() as i64 {
                self.cover(x, y, colour, 0.5 - distance(x as f64 + 0.5, y as f64 + 0.5));
            }
        }
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), half: f64, colour: [u8; 3]) {
        let room = half + 1.0;
        let low = (from.0.min(to.0) - room, from.1.min(to.1) - room);
        let high = (from.0.max(to.0) + room, from.1.max(to.1) + room);
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = (dx * dx + dy * dy).max(1e-12);
        self.shape(low, high, colour, |x, y| {
            let along = (((x - from.0) * dx + (y - from.1) * dy) / length).clamp(0.0, 1.0);
            (x - from.0 - along * dx).hypot(y - from.1 - along * dy) - half
        });
    }

    fn ring(&mut self, at: (f64, f64), radius: f64, half: f64, colour: [u8; 3]) {
        let room = radius + half + 1.0;
        self.shape((at.0 - room, at.1 - room), (at.0 + room, at.1 + room), colour, |x, y| {
            let out = (x - at.0).hypot(y - at.1) - radius;
            if half > 0.0 { out.abs() - half } else { out }
        });
    }

    fn text(&mut self, font: &MonoFont<'_>, x: f64, y: f64, anchor: Anchor, text: &str, colour: [u8; 3]) {
        let (wide, high) = (font.character_size.width, font.character_size.height);
        let length = f64::from(wide) * text.chars().count() as f64;
        let left = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x - 0.5 * length,
            Anchor::End => x - length,
        };
        let (left, top) = (left.round() as i64, (y - f64::from(font.baseline)).round() as i64);
        let a_row = (font.image.size().width / wide).max(1);
        for (place, letter) in (0i64..).zip(text.chars()) {
            let glyph = font.glyph_mapping.index(plain(letter)) as u32;
            let corner = (glyph % a_row * wide, glyph / a_row * high);
            for row in 0..high {
                for column in 0..wide {
                    let at = Point::new((corner.0 + column) as i32, (corner.1 + row) as i32);
                    if font.image.pixel(at) == Some(BinaryColor::On) {
                        let x = left + place * i64::from(wide) + i64::from(column);
                        self.cover(x, top + i64::from(row), colour, 1.0);
                    }
                }
            }
        }
    }
}

/// A letter that the font has.
fn plain(letter: char) -> char {
    match letter {
        '–' | '—' | '−' => '-',
        '…' => '.',
        '≤' => '<',
        '≥' => '>',
        other => other,
    }
}

/// Paints a chart with its heading and legend.
///
/// # Errors
/// None that a chart can cause; what the encoder says.
pub fn paint(drawing: Drawing) -> Result<Vec<u8>, png::EncodingError> {
    let drawing = drawing.complete();
    let side = |units: f64| (units * FINE).round().clamp(1.0, MOST);
    let (width, height) = (side(drawing.width) as usize, side(drawing.height) as usize);
    let mut sheet = Sheet { width, height, pixels: vec![0xff; 3 * width * height] };
    let fine = |(x, y): (f64, f64)| (FINE * x, FINE * y);
    for item in &drawing.items {
        match item {
            Item::Line(ink, points) => {
                let half = if matches!(ink, Ink::Colour(_)) { FINE } else { 0.5 * FINE };
                for pair in points.windows(2) {
                    if let [from, to] = pair {
                        sheet.line(fine(*from), fine(*to), half, colour(*ink));
                    }
                }
            }
            Item::Dot(ink, x, y) => sheet.ring(fine((*x, *y)), 3.0 * FINE, 0.0, colour(*ink)),
            Item::Circle(ink, x, y) => sheet.ring(fine((*x, *y)), 7.0 * FINE, 0.5 * FINE, colour(*ink)),
            Item::Rectangle(ink, [x, y, width, height], _) => {
                let (low, high) = (fine((*x, *y)), fine((x + width, y + height)));
                sheet.shape((low.0 - 1.0, low.1 - 1.0), (high.0 + 1.0, high.1 + 1.0), colour(*ink), |x, y| {
                    (low.0 - x).max(x - high.0).max(low.1 - y).max(y - high.1)
                });
            }
            Item::Text(ink, anchor, x, y, text) => {
                let (x, y) = fine((*x, *y));
                sheet.text(&FONT_10X20, x, y, *anchor, text, colour(*ink));
            }
        }
    }
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&sheet.pixels)?;
    writer.finish()?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::super::{Axis, Plot, Series, drawing};
    use super::*;

    #[test]
    fn a_chart_is_painted_with_its_words_and_colours() {
        let series = |name: &str, y| Series { name: name.to_owned(), points: vec![(0.0, y), (9.0, 9.0)], joined: true };
        let chart = Plot {
            title: "rise".to_owned(),
            across: Axis::linear("x"),
            up: Axis::linear("y"),
            series: vec![series("one", 0.0), series("two", 4.0)],
            here: Some((5.0, 5.0)),
        };
        let bytes = paint(drawing::plot(&chart, 400.0, 300.0).unwrap()).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height % 2), (800, 0));
        let has = |wanted: [u8; 3]| pixels.chunks_exact(3).filter(|pixel| *pixel == wanted).count();
        assert!(has(COLOURS[0]) > 500 && has(COLOURS[1]) > 500 && has([0x33; 3]) > 100);
        assert!(has([0xff; 3]) > pixels.len() / 6);
    }
}
