//! Renders a screen as PNG. Text uses a bitmap font; lines, blocks and braille are drawn geometrically, so that the
//! image is the same on every machine.

use std::path::Path;

use embedded_graphics::geometry::{OriginDimensions as _, Point};
use embedded_graphics::image::GetPixel as _;
use embedded_graphics::mono_font::MonoFont;
use embedded_graphics::mono_font::iso_8859_1::FONT_10X20;
use embedded_graphics::pixelcolor::BinaryColor;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// Width of a cell, pixels.
const WIDE: usize = 10;
const HIGH: usize = 20;

type Rgb = [u8; 3];

/// Default colors of a terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paper {
    pub(crate) ink: Rgb,
    pub(crate) ground: Rgb,
}

impl Paper {
    pub(crate) const DARK: Paper = Paper { ink: [0xd8, 0xd8, 0xd8], ground: [0x14, 0x16, 0x1a] };
    pub(crate) const LIGHT: Paper = Paper { ink: [0x1c, 0x24, 0x30], ground: [0xff, 0xff, 0xff] };
}

/// Writes the image of a screen.
pub(crate) fn write(buffer: &Buffer, paper: Paper, path: &Path) {
    let (columns, rows) = (usize::from(buffer.area.width), usize::from(buffer.area.height));
    let (width, height) = (columns * WIDE, rows * HIGH);
    let mut pixels = vec![0; 3 * width * height];
    for (at, cell) in buffer.content.iter().enumerate() {
        let (left, top) = (at % columns * WIDE, at / columns * HIGH);
        let (ink, ground) = colors(cell, paper);
        let letter = cell.symbol().chars().next().unwrap_or(' ');
        let bold = cell.modifier.contains(Modifier::BOLD);
        let underlined = cell.modifier.contains(Modifier::UNDERLINED);
        for y in 0..HIGH {
            for x in 0..WIDE {
                let inked = covers(letter, x, y, bold) || (underlined && y == HIGH - 2);
                let from = 3 * ((top + y) * width + left + x);
                pixels[from..from + 3].copy_from_slice(if inked { &ink } else { &ground });
            }
        }
    }
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    std::fs::write(path, out).unwrap();
}

fn colors(cell: &Cell, paper: Paper) -> (Rgb, Rgb) {
    let (mut ink, mut ground) = (rgb(cell.fg).unwrap_or(paper.ink), rgb(cell.bg).unwrap_or(paper.ground));
    if cell.modifier.contains(Modifier::REVERSED) {
        std::mem::swap(&mut ink, &mut ground);
    }
    if cell.modifier.contains(Modifier::DIM) {
        ink = [0, 1, 2].map(|at| ((u16::from(ink[at]) + u16::from(ground[at])) / 2) as u8);
    }
    (ink, ground)
}

/// RGB values of a color; `None` for the terminal's default.
fn rgb(color: Color) -> Option<Rgb> {
    match color {
        Color::Rgb(r, g, b) => Some([r, g, b]),
        Color::Indexed(gray @ 232..) => Some([8 + 10 * (gray - 232); 3]),
        Color::Indexed(cube @ 16..) => {
            let part = |level: u8| if level == 0 { 0 } else { 55 + 40 * level };
            let cube = cube - 16;
            Some([part(cube / 36), part(cube / 6 % 6), part(cube % 6)])
        }
        _ => None,
    }
}

/// Whether a pixel of a cell belongs to its character.
fn covers(letter: char, x: usize, y: usize, bold: bool) -> bool {
    let code = letter as u32;
    match code {
        // Braille: four rows of two dots. Dots are numbered down the left and then the right column, the last row last.
        0x2800..=0x28ff => {
            let bit = [[0, 3], [1, 4], [2, 5], [6, 7]][y / 5][x / 5];
            (code - 0x2800) >> bit & 1 == 1 && (1..4).contains(&(x % 5)) && (1..4).contains(&(y % 5))
        }
        // Blocks in eighths, from the bottom and from the left.
        0x2581..=0x2588 => HIGH - y <= (code - 0x2580) as usize * HIGH / 8,
        0x2589..=0x258f => x < (0x2590 - code) as usize * WIDE / 8,
        0x2591 => x.is_multiple_of(4) && y.is_multiple_of(4),
        0x2592 => (x + y).is_multiple_of(2) && y.is_multiple_of(2),
        0x2593 => (x + y).is_multiple_of(2) || y.is_multiple_of(2),
        0x2500..=0x254b => line(letter, x, y),
        _ => match sign(letter) {
            Some(rows) => (4..18).contains(&y) && rows[(y - 4) / 2].as_bytes()[x / 2] != b' ',
            None => glyph(letter, x, y) || (bold && x > 0 && glyph(letter, x - 1, y)),
        },
    }
}

/// Lines from the center of a cell to its sides.
fn line(letter: char, x: usize, y: usize) -> bool {
    let heavy = "━┍┑┕┙".contains(letter);
    let (left, right, up, down) = match letter {
        '─' | '━' => (true, true, false, false),
        '│' => (false, false, true, true),
        '┌' | '┍' => (false, true, false, true),
        '┐' | '┑' => (true, false, false, true),
        '└' | '┕' => (false, true, true, false),
        '┘' | '┙' => (true, false, true, false),
        '├' => (false, true, true, true),
        '┤' => (true, false, true, true),
        '┬' => (true, true, false, true),
        '┴' => (true, true, true, false),
        '┼' => (true, true, true, true),
        _ => return x == 0 || y == 0 || x == WIDE - 1 || y == HIGH - 1,
    };
    let across = if heavy { (9..12).contains(&y) } else { y == 10 };
    (across && ((left && x <= 5) || (right && x >= 5))) || (x == 5 && ((up && y <= 10) || (down && y >= 10)))
}

/// Symbols that the font lacks: five columns, seven rows.
fn sign(letter: char) -> Option<[&'static str; 7]> {
    Some(match letter {
        '✓' => ["     ", "    #", "   ##", "#  # ", "# #  ", " ##  ", " #   "],
        '✗' => ["     ", "#   #", " # # ", "  #  ", " # # ", "#   #", "     "],
        '▲' => ["     ", "  #  ", "  #  ", " ### ", " ### ", "#####", "     "],
        '▼' | '▾' => ["     ", "#####", " ### ", " ### ", "  #  ", "  #  ", "     "],
        '▸' => ["     ", "##   ", "###  ", "#### ", "###  ", "##   ", "     "],
        '◆' => ["     ", "  #  ", " ### ", "#####", " ### ", "  #  ", "     "],
        '●' => ["     ", " ### ", "#####", "#####", "#####", " ### ", "     "],
        '→' => ["     ", "  #  ", "   # ", "#####", "   # ", "  #  ", "     "],
        '←' => ["     ", "  #  ", " #   ", "#####", " #   ", "  #  ", "     "],
        '↑' => ["  #  ", " ### ", "# # #", "  #  ", "  #  ", "  #  ", "     "],
        '↓' => ["     ", "  #  ", "  #  ", "  #  ", "# # #", " ### ", "  #  "],
        'Δ' => ["     ", "  #  ", "  #  ", " # # ", " # # ", "#####", "     "],
        '–' | '−' => ["     ", "     ", "     ", "#####", "     ", "     ", "     "],
        '…' => ["     ", "     ", "     ", "     ", "     ", "# # #", "     "],
        '≤' => ["   ##", " ##  ", "#    ", " ##  ", "   ##", "     ", "#####"],
        '≥' => ["##   ", "  ## ", "    #", "  ## ", "##   ", "     ", "#####"],
        '⏎' => ["    #", "    #", "  # #", " #  #", "#####", " #   ", "  #  "],
        _ => return None,
    })
}

fn glyph(letter: char, x: usize, y: usize) -> bool {
    let font: MonoFont<'_> = FONT_10X20;
    let size = font.character_size;
    let a_row = (font.image.size().width / size.width).max(1);
    let index = font.glyph_mapping.index(letter) as u32;
    let corner = (index % a_row * size.width, index / a_row * size.height);
    let at = Point::new((corner.0 + x as u32) as i32, (corner.1 + y as u32) as i32);
    font.image.pixel(at) == Some(BinaryColor::On)
}
