#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
use std::num::NonZeroU16;

use ratatui::buffer::CellWidth;
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::{Block, Paragraph, Widget};

use super::encoder::printable;
use super::*;

/// A painter and the size of what it paints.
struct Screen {
    painter: Painter<Vec<u8>>,
    area: Rect,
}

fn screen(width: u16, height: u16, depth: ColorDepth) -> Screen {
    Screen { painter: Painter::new(Vec::new(), depth), area: Rect::new(0, 0, width, height) }
}

fn emulator(width: u16, height: u16) -> vt100::Parser {
    vt100::Parser::new(NonZeroU16::new(height).unwrap(), NonZeroU16::new(width).unwrap(), 0)
}

/// Paints, and returns the bytes of that frame.
fn paint(screen: &mut Screen, picture: &Buffer, cursor: Option<(u16, u16)>) -> Vec<u8> {
    let sent = screen.painter.paint(picture, cursor.map(Position::from)).unwrap();
    let bytes = std::mem::take(screen.painter.writer_mut().get_mut());
    assert_eq!(bytes.len(), sent);
    bytes
}

fn draw(screen: &mut Screen, widget: impl Widget, cursor: Option<(u16, u16)>) -> Vec<u8> {
    let mut picture = Buffer::empty(screen.area);
    widget.render(picture.area, &mut picture);
    paint(screen, &picture, cursor)
}

/// Small deterministic random number generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn color(&mut self) -> Color {
        match self.roll(6) {
            0 | 1 => Color::Reset,
            2 => Color::LightBlue,
            3 => Color::Red,
            4 => Color::Indexed(200),
            _ => Color::Rgb(10, 200, 30),
        }
    }

    fn style(&mut self) -> Style {
        let modifiers = [Modifier::BOLD, Modifier::DIM, Modifier::REVERSED, Modifier::UNDERLINED, Modifier::ITALIC];
        let mut style = Style::new().fg(self.color()).bg(self.color());
        for modifier in modifiers {
            if self.roll(6) == 0 {
                style = style.add_modifier(modifier);
            }
        }
        if self.roll(3) == 0 { Style::new() } else { style }
    }

    /// Makes a few random edits: text, blanks, wide characters, boxes.
    fn scribble(&mut self, buffer: &mut Buffer) {
        let area = buffer.area;
        for _ in 0..self.roll(12) {
            let (x, y) = (self.roll(area.width.into()) as u16, self.roll(area.height.into()) as u16);
            let text = ["a", "  ", "     ", "42.5 tok/s", "──┐", "界面", "e\u{301}x", "▁▂▃", "\u{1f600}"][self.roll(9)];
            let style = self.style();
            buffer.set_string(x, y, text, style);
            if self.roll(4) == 0 {
                buffer.set_style(Rect::new(0, y, area.width, 1), style);
            }
            if self.roll(9) == 0 {
                let from = self.roll(area.width.into()) as u16;
                buffer.set_string(from, y, " ".repeat(area.width.into()), Style::new());
            }
        }
    }
}

fn expected(color: Color) -> vt100::Color {
    match color {
        Color::Reset => vt100::Color::Default,
        Color::Red => vt100::Color::Idx(1),
        Color::LightBlue => vt100::Color::Idx(12),
        Color::Indexed(index) => vt100::Color::Idx(index),
        Color::Rgb(r, g, b) => vt100::Color::Rgb(r, g, b),
        other => unreachable!("{other}"),
    }
}

fn assert_shows(emulator: &vt100::Parser, buffer: &Buffer, frame: usize) {
    for y in 0..buffer.area.height {
        let mut x = 0;
        while x < buffer.area.width {
            let cell = &buffer[(x, y)];
            let shown = emulator.screen().cell(y, x).unwrap();
            let symbol = if shown.contents().is_empty() { " " } else { shown.contents() };
            assert_eq!(symbol, cell.symbol(), "frame {frame} at {x},{y}");
            let blank = cell.symbol() == " ";
            let modifier = cell.modifier;
            assert_eq!(shown.bgcolor(), expected(cell.bg), "frame {frame} at {x},{y}: background");
            assert_eq!(shown.inverse(), modifier.contains(Modifier::REVERSED), "frame {frame} at {x},{y}");
            assert_eq!(shown.underline(), modifier.contains(Modifier::UNDERLINED), "frame {frame} at {x},{y}");
            if !blank || modifier.intersects(Modifier::REVERSED | Modifier::UNDERLINED) {
                assert_eq!(shown.fgcolor(), expected(cell.fg), "frame {frame} at {x},{y}: foreground");
            }
            // The emulator supports bold or dim, but not both at once.
            if !blank && !modifier.contains(Modifier::BOLD | Modifier::DIM) {
                assert_eq!(shown.bold(), modifier.contains(Modifier::BOLD), "frame {frame} at {x},{y}");
                assert_eq!(shown.dim(), modifier.contains(Modifier::DIM), "frame {frame} at {x},{y}");
                assert_eq!(shown.italic(), modifier.contains(Modifier::ITALIC), "frame {frame} at {x},{y}");
            }
            x += cell.cell_width().max(1);
        }
    }
}

#[test]
fn emulated_terminal_matches_the_buffer_after_random_frames() {
    for seed in 0..40 {
        let mut dice = Dice(seed);
        let (width, height) = (1 + dice.roll(30) as u16, 1 + dice.roll(8) as u16);
        let mut screen = screen(width, height, ColorDepth::TrueColor);
        let mut emulator = emulator(width, height);
        emulator.process(b"\x1b[7;35mleft behind");
        let mut picture = Buffer::empty(Rect::new(0, 0, width, height));
        for frame in 0..60 {
            dice.scribble(&mut picture);
            if dice.roll(20) == 0 {
                screen.painter.forget();
                emulator.process(b"\x1b[31;1;44m\x1b[2;2Hrubbish");
            }
            let place = (dice.roll(width.into()) as u16, dice.roll(height.into()) as u16);
            let cursor = (dice.roll(3) == 0).then_some(place);
            emulator.process(&paint(&mut screen, &picture, cursor));
            assert_shows(&emulator, &picture, frame);
            assert_eq!(emulator.screen().hide_cursor(), cursor.is_none());
            if let Some((x, y)) = cursor {
                assert_eq!(emulator.screen().cursor_position(), (y, x), "frame {frame}");
            }
            let again = paint(&mut screen, &picture, cursor);
            assert!(again.is_empty(), "an unchanged frame sends nothing: {:?}", String::from_utf8_lossy(&again));
        }
    }
}

fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\x1b[?2026h", "").replace("\x1b[?2026l", "");
    text.replace('\x1b', "^")
}

fn text(screen: &mut Screen, words: &str) -> String {
    readable(&draw(screen, Paragraph::new(words), None))
}

#[test]
fn painter_sends_minimal_sequences_for_small_changes() {
    let mut screen = screen(40, 3, ColorDepth::TrueColor);
    assert_eq!(text(&mut screen, "1,234.5 tok/s\nmore"), "^[m^[2J^[H1,234.5 tok/s^[2Hmore^[?25l");
    assert_eq!(text(&mut screen, "1,239.7 tok/s\nmore"), "^[A9.7", "the point is rewritten, not jumped over");
    assert_eq!(text(&mut screen, "1,239.7\nmore"), "^[K", "the tail of a line is erased");
    assert_eq!(text(&mut screen, "1,239.7\nless"), "^[2Hless");
    assert_eq!(text(&mut screen, "1,239.7\nless"), "");
}

#[test]
fn idle_text_cursor_sends_no_bytes() {
    let mut screen = screen(20, 2, ColorDepth::TrueColor);
    let mut at = |x, words| readable(&draw(&mut screen, Paragraph::new(words), Some((x, 0))));
    assert_eq!(at(3, "abc"), "^[m^[2J^[Habc^[?25h");
    assert_eq!(at(3, "abc"), "");
    assert_eq!(at(4, "abcd"), "d", "typing a letter sends that letter");
    assert_eq!(at(3, "abcd"), "\x08");
    assert_eq!(text(&mut screen, "abcd"), "^[?25l");
}

#[test]
fn without_colors_only_attributes_are_sent() {
    let style = Style::new().fg(Color::Rgb(1, 2, 3)).bg(Color::Blue).add_modifier(Modifier::REVERSED);
    let view = || Paragraph::new("chosen").style(style).block(Block::bordered());
    let mono = readable(&draw(&mut screen(20, 3, ColorDepth::Mono), view(), None));
    assert!(mono.contains("^[7m"), "{mono}");
    assert!(["[38", "[34", "[44", ";38", "48;"].iter().all(|color| !mono.contains(color)), "{mono}");
    let sixteen = readable(&draw(&mut screen(20, 3, ColorDepth::Ansi16), view(), None));
    assert!(sixteen.contains("44m") && !sixteen.contains("38;") && !sixteen.contains("48;"), "{sixteen}");
}

#[test]
fn control_characters_in_cells_are_replaced_before_output() {
    let mut screen = screen(12, 1, ColorDepth::Mono);
    let mut picture = Buffer::empty(screen.area);
    for (x, symbol) in ["\u{85}", "a\u{202e}", "\u{9b}", "", "é"].into_iter().enumerate() {
        picture.content[x].set_symbol(symbol);
    }
    assert_eq!(readable(&paint(&mut screen, &picture, None)), "^[m^[2J^[H??^[;3H? ^[;5Hé^[?25l");
    assert!(["\x1b]0;owned\x07", "\n", "\x1b"].iter().all(|symbol| printable(symbol, false) == "?"));
    screen.painter.set_ascii(true);
    assert_eq!(text(&mut screen, "│e\u{301}x"), "\r??^[;3Hx  ");
}

#[test]
fn full_paint_updates_the_shadow_buffer() {
    // The copy is made after the write for the first lines, and before it for the second, which have wide symbols.
    for lines in [["plain ── text", "             "], ["wide 漢 text ", "e\u{301} and more   "]] {
        let picture = Buffer::with_lines(lines);
        let mut painter = Painter::new(Vec::new(), ColorDepth::TrueColor);
        assert!(painter.paint(&picture, None).unwrap() > 0);
        assert_eq!(painter.paint(&picture, None).unwrap(), 0, "{lines:?}");
        assert!(painter.shown.content.iter().zip(&picture.content).all(|(a, b)| a == b || a.symbol().is_empty()));
    }
}

#[test]
fn resize_clears_the_screen_and_repaints() {
    let mut screen = screen(10, 2, ColorDepth::Mono);
    text(&mut screen, "abc");
    screen.area = Rect::new(0, 0, 6, 1);
    assert_eq!(text(&mut screen, "abc"), "^[2J^[Habc");
    screen.area = Rect::ZERO;
    assert_eq!(text(&mut screen, "abc"), "^[2J");
    screen.area = Rect::new(0, 0, 300, 90);
    assert_eq!(text(&mut screen, "abc"), "^[2J^[Habc");
}

#[test]
fn painting_parts_shows_the_same_cells_as_a_full_paint() {
    let mut dice = Dice(7);
    let area = Rect::new(0, 0, 24, 6);
    let (mut screen, mut emulator) = (screen(area.width, area.height, ColorDepth::TrueColor), emulator(24, 6));
    let mut picture = Buffer::empty(area);
    for frame in 0..200 {
        let part = Rect::new(dice.roll(20) as u16, dice.roll(5) as u16, 1 + dice.roll(4) as u16, 1);
        let style = dice.style();
        let text = ["    ", "ab d", "─│┐┘"][dice.roll(3)];
        picture.set_stringn(part.x, part.y, text, part.width.into(), style);
        if dice.roll(20) == 0 {
            screen.painter.forget();
            emulator.process(b"\x1b[2;2Hrubbish");
        }
        screen.painter.paint_parts(&picture, &[part], None).unwrap();
        emulator.process(&std::mem::take(screen.painter.writer_mut().get_mut()));
        assert_shows(&emulator, &picture, frame);
    }
}
