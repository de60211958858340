//! The pen: colors and attributes that the terminal writes with, and the shortest sequence from one pen to another.

use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};

use crate::theme::color::ColorDepth;
use crate::tui::painter::cells::ON_BLANK;

/// Colors and attributes in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pen {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

impl Pen {
    /// Returns the pen for `cell` with the least change from this pen. A plain blank keeps invisible attributes.
    pub(super) fn for_cell(self, cell: &Cell, depth: ColorDepth) -> Pen {
        let bg = depth.nearest(cell.bg);
        let plain_blank = cell.symbol() == " " && !cell.modifier.intersects(ON_BLANK);
        if plain_blank && !self.modifier.intersects(ON_BLANK) {
            return Pen { bg, ..self };
        }
        if plain_blank {
            return Pen { bg, fg: self.fg, modifier: self.modifier.difference(ON_BLANK) };
        }
        Pen { fg: depth.nearest(cell.fg), bg, modifier: cell.modifier }
    }

    /// Whether another pen has the same background.
    pub(super) fn has_background_of(self, other: Pen) -> bool {
        self.bg == other.bg
    }

    /// Whether a blank looks the same with this pen as with `other`.
    pub(super) fn writes_blank(self, other: Pen) -> bool {
        let seen = |pen: Pen| (pen.bg, pen.modifier.intersection(ON_BLANK));
        seen(self) == seen(other) && !self.modifier.intersects(ON_BLANK)
    }

    /// Returns this pen without anything that an erase would paint.
    pub(super) fn for_erasing(self) -> Pen {
        Pen { fg: self.fg, bg: Color::Reset, modifier: self.modifier.difference(ON_BLANK) }
    }

    /// Writes the sequence that changes this pen to `to`: either only the differences or a reset and everything,
    /// whichever is shorter.
    pub(super) fn change_to(self, to: Pen, out: &mut Vec<u8>) {
        if self == to {
            return;
        }
        if to == Pen::default() {
            out.extend_from_slice(b"\x1b[m");
            return;
        }
        let mut change: Short = Short::new();
        change.modifiers(self.modifier, to.modifier);
        change.color(self.fg, to.fg, 30);
        change.color(self.bg, to.bg, 40);
        let mut restart: Short = Short::new();
        restart.push(0);
        restart.modifiers(Modifier::empty(), to.modifier);
        restart.color(Color::Reset, to.fg, 30);
        restart.color(Color::Reset, to.bg, 40);
        let shorter = if restart.bytes().len() < change.bytes().len() { &restart } else { &change };
        out.extend_from_slice(b"\x1b[");
        out.extend_from_slice(shorter.bytes());
        out.push(b'm');
    }
}

/// A short sequence on the stack. Several are built for every change of style and every move of every frame, and only
/// the shortest is sent.
pub(super) struct Short<const N: usize = 96> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Short<N> {
    pub(super) fn new() -> Short<N> {
        Short { bytes: [0; N], length: 0 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    pub(super) fn byte(&mut self, byte: u8) {
        // Nine attributes off and on again and two 24-bit colors take 81 bytes, two moves 16: the buffer is always
        // large enough.
        if let Some(slot) = self.bytes.get_mut(self.length) {
            *slot = byte;
            self.length += 1;
        }
    }

    pub(super) fn number(&mut self, number: u16) {
        let mut divisor = 10_000;
        while divisor > 1 && number < divisor {
            divisor /= 10;
        }
        while divisor > 0 {
            // A remainder below ten is a digit.
            self.byte(b'0' + u8::try_from(number / divisor % 10).unwrap_or(0));
            divisor /= 10;
        }
    }

    /// Appends a number to an SGR sequence.
    fn push(&mut self, number: u8) {
        if self.length > 0 {
            self.byte(b';');
        }
        self.number(number.into());
    }

    fn modifiers(&mut self, from: Modifier, to: Modifier) {
        // Each "off" code with the attributes that it resets. Bold and dim share one, so the other has to be set again.
        const OFF: [(Modifier, u8); 7] = [
            (Modifier::BOLD.union(Modifier::DIM), 22),
            (Modifier::ITALIC, 23),
            (Modifier::UNDERLINED, 24),
            (Modifier::SLOW_BLINK.union(Modifier::RAPID_BLINK), 25),
            (Modifier::REVERSED, 27),
            (Modifier::HIDDEN, 28),
            (Modifier::CROSSED_OUT, 29),
        ];
        const ON: [(Modifier, u8); 9] = [
            (Modifier::BOLD, 1),
            (Modifier::DIM, 2),
            (Modifier::ITALIC, 3),
            (Modifier::UNDERLINED, 4),
            (Modifier::SLOW_BLINK, 5),
            (Modifier::RAPID_BLINK, 6),
            (Modifier::REVERSED, 7),
            (Modifier::HIDDEN, 8),
            (Modifier::CROSSED_OUT, 9),
        ];
        let mut current = from;
        for (group, code) in OFF {
            if current.difference(to).intersects(group) {
                self.push(code);
                current = current.difference(group);
            }
        }
        for (modifier, code) in ON {
            if to.difference(current).contains(modifier) {
                self.push(code);
            }
        }
    }

    /// Appends a change of color. `base` is 30 for the foreground and 40 for the background.
    fn color(&mut self, from: Color, to: Color, base: u8) {
        if from == to {
            return;
        }
        match to {
            Color::Reset => self.push(base + 9),
            Color::Rgb(r, g, b) => [base + 8, 2, r, g, b].into_iter().for_each(|number| self.push(number)),
            Color::Indexed(index) => match ansi_code(index, base) {
                Some(code) => self.push(code),
                None => [base + 8, 5, index].into_iter().for_each(|number| self.push(number)),
            },
            named => {
                if let Some(code) = ansi_index(named).and_then(|index| ansi_code(index, base)) {
                    self.push(code);
                }
            }
        }
    }
}

/// Returns the code `30`–`37` or `90`–`97`, which is shorter than `38;5;n` for the same color.
fn ansi_code(index: u8, base: u8) -> Option<u8> {
    match index {
        0..=7 => Some(base + index),
        8..=15 => Some(base + 60 + index - 8),
        _ => None,
    }
}

fn ansi_index(color: Color) -> Option<u8> {
    Some(match color {
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
        Color::Reset | Color::Rgb(..) | Color::Indexed(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::painter::cells::{is_erased, looks_same};

    fn change(from: Pen, to: Pen) -> String {
        let mut out = Vec::new();
        from.change_to(to, &mut out);
        String::from_utf8_lossy(&out).replace('\x1b', "^")
    }

    #[test]
    fn style_changes_use_the_shortest_sgr_sequence() {
        let plain = Pen::default();
        let bold = Pen { modifier: Modifier::BOLD, ..plain };
        let red = Pen { fg: Color::Red, ..plain };
        let dim_red = Pen { fg: Color::Red, modifier: Modifier::DIM, ..plain };
        let rgb = Pen { fg: Color::Rgb(1, 20, 255), bg: Color::Indexed(200), modifier: Modifier::BOLD };
        assert_eq!(change(plain, plain), "");
        assert_eq!(change(plain, bold), "^[1m");
        assert_eq!(change(bold, plain), "^[m");
        assert_eq!(change(plain, red), "^[31m");
        assert_eq!(change(red, Pen { fg: Color::LightRed, ..plain }), "^[91m");
        assert_eq!(change(red, Pen { fg: Color::Indexed(9), ..plain }), "^[91m");
        assert_eq!(change(plain, rgb), "^[1;38;2;1;20;255;48;5;200m");
        assert_eq!(change(rgb, red), "^[0;31m");
        assert_eq!(change(dim_red, Pen { modifier: Modifier::BOLD, ..dim_red }), "^[22;1m");
        assert_eq!(change(dim_red, Pen { modifier: Modifier::BOLD | Modifier::DIM, ..dim_red }), "^[1m");
        assert_eq!(change(Pen { modifier: Modifier::BOLD | Modifier::DIM, ..dim_red }, dim_red), "^[22;2m");
        let every = Pen { fg: Color::Rgb(255, 255, 255), bg: Color::Rgb(255, 255, 255), modifier: Modifier::all() };
        assert!(change(plain, every).ends_with("48;2;255;255;255m"));
    }

    #[test]
    fn blank_cells_ignore_the_foreground_unless_reversed() {
        let red = Pen { fg: Color::Red, ..Pen::default() };
        let mut blank = Cell::EMPTY;
        blank.fg = Color::Blue;
        assert_eq!(red.for_cell(&blank, ColorDepth::TrueColor), red);
        assert!(looks_same(&blank, " ", &Cell::EMPTY));
        blank.modifier = Modifier::REVERSED;
        assert!(!looks_same(&blank, " ", &Cell::EMPTY));
        assert!(!is_erased(&blank));
        let reversed = Pen::default().for_cell(&blank, ColorDepth::TrueColor);
        assert_eq!(change(reversed, reversed.for_cell(&Cell::EMPTY, ColorDepth::TrueColor)), "^[27m");
    }
}
