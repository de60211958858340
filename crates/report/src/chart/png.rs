//! Charts as PNG, painted at two pixels per drawing unit with anti-aliased edges.

use embedded_graphics::geometry::{OriginDimensions as _, Point};
use embedded_graphics::image::GetPixel as _;
use embedded_graphics::mono_font::MonoFont;
use embedded_graphics::mono_font::iso_8859_1::FONT_10X20;
use embedded_graphics::pixelcolor::BinaryColor;

use super::drawing::{Anchor, Drawing, Ink, Item};
use super::sheet::Sheet;

/// Pixels per drawing unit.
const PIXELS_PER_UNIT: f64 = 2.0;
/// Largest width or height, pixels.
const MAX_PIXELS: f64 = 8192.0;
/// Okabe and Ito's colors, in the order of the style sheet's classes.
const COLORS: [[u8; 3]; super::drawing::COLORS] = [
    [0x00, 0x72, 0xb2],
    [0xe6, 0x9f, 0x00],
    [0x00, 0x9e, 0x73],
    [0xcc, 0x79, 0xa7],
    [0x56, 0xb4, 0xe9],
    [0xd5, 0x5e, 0x00],
    [0xb8, 0xa8, 0x00],
    [0x88, 0x88, 0x88],
];

/// Color of an ink on a white background.
pub(crate) fn color(ink: Ink) -> [u8; 3] {
    match ink {
        Ink::Text | Ink::Mark => [0x33; 3],
        Ink::Dim => [0x77; 3],
        Ink::Grid => [0xe4; 3],
        // White at 0 %, the first color at 100 %.
        Ink::Shade(share) => COLORS[0].map(|full| {
            let share = u16::from(share.min(100));
            u8::try_from((255 * (100 - share) + u16::from(full) * share) / 100).unwrap_or(u8::MAX)
        }),
        Ink::None => [0xfa; 3],
        Ink::Limit => [0xd5, 0x5e, 0x00],
        Ink::Color(number) => COLORS.get(number % COLORS.len()).copied().unwrap_or([0; 3]),
    }
}

/// Writes a text in a bitmap font.
fn write(sheet: &mut Sheet, font: &MonoFont<'_>, (x, y): (f64, f64), anchor: Anchor, text: &str, color: [u8; 3]) {
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
        let glyph = font.glyph_mapping.index(bitmap_font_character(letter)) as u32;
        let corner = (glyph % a_row * wide, glyph / a_row * high);
        for row in 0..high {
            for column in 0..wide {
                let at = Point::new((corner.0 + column) as i32, (corner.1 + row) as i32);
                if font.image.pixel(at) == Some(BinaryColor::On) {
                    let x = left + place * i64::from(wide) + i64::from(column);
                    sheet.cover(x, top + i64::from(row), color, 1.0);
                }
            }
        }
    }
}

/// Replaces characters that the bitmap font lacks.
fn bitmap_font_character(letter: char) -> char {
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
/// Returns the error of the PNG encoder.
pub fn paint(drawing: Drawing) -> Result<Vec<u8>, png::EncodingError> {
    let drawing = drawing.complete();
    let side = |units: f64| (units * PIXELS_PER_UNIT).round().clamp(1.0, MAX_PIXELS);
    let (width, height) = (side(drawing.width) as usize, side(drawing.height) as usize);
    let mut sheet = Sheet::white(width, height);
    let fine = |(x, y): (f64, f64)| (PIXELS_PER_UNIT * x, PIXELS_PER_UNIT * y);
    for item in &drawing.items {
        match item {
            Item::Line(ink, points) => {
                let half = if matches!(ink, Ink::Color(_)) { PIXELS_PER_UNIT } else { 0.5 * PIXELS_PER_UNIT };
                for pair in points.windows(2) {
                    if let [from, to] = pair {
                        sheet.line(fine(*from), fine(*to), half, color(*ink));
                    }
                }
            }
            Item::Dot(ink, x, y) => sheet.ring(fine((*x, *y)), 3.0 * PIXELS_PER_UNIT, 0.0, color(*ink)),
            Item::Circle(ink, x, y) => {
                sheet.ring(fine((*x, *y)), 7.0 * PIXELS_PER_UNIT, 0.5 * PIXELS_PER_UNIT, color(*ink))
            }
            Item::Rectangle(ink, [x, y, width, height], _) => {
                let (low, high) = (fine((*x, *y)), fine((x + width, y + height)));
                sheet.rectangle(low, high, color(*ink));
            }
            Item::Text(ink, anchor, x, y, text) => {
                write(&mut sheet, &FONT_10X20, fine((*x, *y)), *anchor, text, color(*ink));
            }
        }
    }
    sheet.to_opaque_png()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::super::{Axis, Plot, Series, drawing};
    use super::*;

    #[test]
    fn png_chart_contains_text_and_series_colors() {
        let series = |name: &str, y| Series { name: name.to_owned(), points: vec![(0.0, y), (9.0, 9.0)], joined: true };
        let chart = Plot {
            title: "rise".to_owned(),
            across: Axis::linear("x"),
            up: Axis::linear("y"),
            series: vec![series("one", 0.0), series("two", 4.0)],
            highlighted: Some((5.0, 5.0)),
        };
        let bytes = paint(drawing::plot(&chart, 400.0, 300.0).unwrap()).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height % 2), (800, 0));
        let has = |wanted: [u8; 3]| pixels.chunks_exact(3).filter(|pixel| *pixel == wanted).count();
        assert!(has(COLORS[0]) > 500 && has(COLORS[1]) > 500 && has([0x33; 3]) > 100);
        assert!(has([0xff; 3]) > pixels.len() / 6);
    }
}
