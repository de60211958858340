//! Writes text into the cells of a buffer.

use ratatui::buffer::{Buffer, Cell, CellWidth};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr};

/// Display width of text.
pub trait TextWidth {
    /// Number of columns.
    fn width(&self) -> usize;
}

impl TextWidth for str {
    #[inline(never)]
    fn width(&self) -> usize {
        // Nearly all text is printable ASCII, which needs no Unicode rules.
        if is_plain(self) { self.len() } else { UnicodeWidthStr::width(self) }
    }
}

/// Whether the text is printable ASCII, so that each byte takes one column.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Number of columns of a symbol.
pub(crate) fn width_of(symbol: &str) -> u16 {
    match symbol.as_bytes() {
        // Nearly all are printable ASCII, and of the rest most are lines and blocks: U+2500 to U+25BF.
        [b' '..=b'~'] | [0xe2, 0x94..=0x96, _] => 1,
        _ => symbol.cell_width(),
    }
}

/// Writes text that fits and needs no segmentation: printable ASCII, or a single narrow character. Nearly all text on a
/// screen is of this kind. Returns the number of cells written, or `None` if the text is of another kind and nothing
/// was written.
#[inline(never)]
pub fn write(buffer: &mut Buffer, (x, y): (u16, u16), width: u16, text: &str, style: Style) -> Option<u16> {
    let area = buffer.area;
    if x < area.x || x >= area.right() || y < area.y || y >= area.bottom() {
        return None;
    }
    let start = usize::from(y - area.y) * usize::from(area.width) + usize::from(x - area.x);
    let width = usize::from(width.min(area.right() - x));
    if text.len() <= width && is_plain(text) {
        let cells = buffer.content.get_mut(start..start + text.len())?;
        for (cell, c) in cells.iter_mut().zip(text.chars()) {
            cell.set_char(c).set_style(style);
        }
        return u16::try_from(text.len()).ok();
    }
    let mut chars = text.chars();
    match (chars.next(), chars.next(), buffer.content.get_mut(start)) {
        (Some(c), None, Some(cell)) if width > 0 && c.width() == Some(1) => {
            cell.set_char(c).set_style(style);
            return Some(1);
        }
        _ => {}
    }
    let count = text.chars().count();
    if count > width || !text.chars().all(is_simple) {
        return None;
    }
    let cells = buffer.content.get_mut(start..start + count)?;
    for (cell, c) in cells.iter_mut().zip(text.chars()) {
        cell.set_char(c).set_style(style);
    }
    u16::try_from(count).ok()
}

/// Whether a character takes one column and does not combine with its neighbors: printable ASCII, Latin letters and
/// signs, dashes and quotes, arrows, mathematical operators, lines, blocks, plain shapes and braille. A test compares
/// this with the Unicode rules.
fn is_simple(c: char) -> bool {
    matches!(c,
        ' '..='~'
        | '\u{a1}'..='\u{a8}' | '\u{aa}'..='\u{ac}' | '\u{af}'..='\u{17f}'
        | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{203b}'
        | '\u{219c}'..='\u{21a8}' | '\u{2190}'..='\u{2193}'
        | '\u{2200}'..='\u{22ff}' | '\u{2500}'..='\u{25a9}' | '\u{2800}'..='\u{28ff}')
}

/// Fills every cell of an area with a narrow symbol.
#[inline(never)]
pub fn fill(buffer: &mut Buffer, area: Rect, symbol: &str, style: Style) {
    for row in rows(buffer, area) {
        for cell in row {
            cell.set_symbol(symbol).set_style(style);
        }
    }
}

/// Clears an area and sets its style.
#[inline(never)]
pub fn clear(buffer: &mut Buffer, area: Rect, style: Style) {
    let mut blank = Cell::EMPTY;
    blank.set_style(style);
    for row in rows(buffer, area) {
        for cell in row {
            // Faster than a clone, which must handle long symbols.
            *cell = Cell::EMPTY;
            (cell.fg, cell.bg, cell.modifier) = (blank.fg, blank.bg, blank.modifier);
        }
    }
}

/// Patches the style of an area without changing its symbols.
#[inline(never)]
pub fn tint(buffer: &mut Buffer, area: Rect, style: Style) {
    for row in rows(buffer, area) {
        for cell in row {
            cell.set_style(style);
        }
    }
}

/// The cells of an area, row by row.
fn rows(buffer: &mut Buffer, area: Rect) -> impl Iterator<Item = &mut [Cell]> {
    let whole = buffer.area;
    let area = area.intersection(whole);
    let width = usize::from(whole.width).max(1);
    let top = usize::from(area.y.saturating_sub(whole.y));
    let left = usize::from(area.x.saturating_sub(whole.x));
    let columns = left..left + usize::from(area.width);
    let lines = buffer.content.chunks_mut(width).skip(top).take(usize::from(area.height));
    lines.filter_map(move |line| line.get_mut(columns.clone()))
}

/// Whether two cells look the same; `symbol` is that of `a`. Most of the style of a blank is invisible.
#[inline(always)]
pub(crate) fn looks_same(a: &Cell, symbol: &str, b: &Cell) -> bool {
    if !same_color(a.bg, b.bg) || !same_symbol(symbol, b.symbol()) {
        return false;
    }
    if same_color(a.fg, b.fg) && a.modifier == b.modifier {
        return true;
    }
    symbol == " "
        && !a.modifier.contains(Modifier::REVERSED)
        && a.modifier.intersection(ON_BLANK) == b.modifier.intersection(ON_BLANK)
        && (!a.modifier.intersects(ON_BLANK) || a.fg == b.fg)
}

/// Compares colors. Most are unset or 24-bit; the derived comparison is slow for those.
#[inline(always)]
fn same_color(a: Color, b: Color) -> bool {
    match (a, b) {
        (Color::Reset, Color::Reset) => true,
        (Color::Rgb(r, g, b), Color::Rgb(red, green, blue)) => r == red && g == green && b == blue,
        (a, b) => a == b,
    }
}

/// Compares symbols. Nearly all are one byte, for which a call to `memcmp` is slow.
#[inline(always)]
fn same_symbol(a: &str, b: &str) -> bool {
    match (a.as_bytes(), b.as_bytes()) {
        ([a], [b]) => a == b,
        (a, b) => a == b,
    }
}

/// Attributes that show on a blank cell.
pub(crate) const ON_BLANK: Modifier = Modifier::REVERSED
    .union(Modifier::UNDERLINED)
    .union(Modifier::SLOW_BLINK)
    .union(Modifier::RAPID_BLINK)
    .union(Modifier::CROSSED_OUT);

/// Whether a cell looks as if it had just been erased.
pub(crate) fn is_erased(cell: &Cell) -> bool {
    cell.bg == Color::Reset && cell.symbol() == " " && !cell.modifier.intersects(ON_BLANK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_written_as_ratatui_would() {
        let style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
        let texts = [
            "plain",
            "─",
            "",
            "e\u{301}",
            "漢",
            "tab\t",
            "too long for it",
            "8×H100 →",
            "±5 % – é",
            "éééééééééé",
            "漢字 ×",
            "×\u{301}→",
            "👩‍🚀 →",
            "×\u{ad}",
            "⠿⡇ µs",
        ];
        for text in texts {
            let mut own = Buffer::empty(Rect::new(0, 0, 12, 2));
            let mut theirs = own.clone();
            let written = write(&mut own, (3, 1), 9, text, style);
            if let Some(cells) = written {
                theirs.set_stringn(3, 1, text, 9, style);
                assert_eq!(usize::from(cells), text.chars().count(), "{text:?}");
            }
            assert_eq!(own, theirs, "{text:?}");
        }
    }

    #[test]
    fn text_widths_equal_those_of_unicode_width() {
        for text in ["", "plain", "─", "e\u{301}", "漢字 ab", "$1.50 → 2"] {
            assert_eq!(TextWidth::width(text), UnicodeWidthStr::width(text), "{text:?}");
        }
    }

    #[test]
    fn simple_characters_each_occupy_one_cell() {
        let simple: Vec<char> = (' '..='\u{3000}').filter(|c| is_simple(*c)).collect();
        assert!(simple.len() > 1000 && "×→–±…µ─█⠿≤".chars().all(|c| simple.contains(&c)));
        let mut theirs = Buffer::empty(Rect::new(0, 0, 4, 1));
        for c in simple {
            let text: String = ['x', c, c, 'x'].into_iter().collect();
            theirs.set_stringn(0, 0, &text, 4, Style::new());
            let symbols: Vec<&str> = theirs.content.iter().map(Cell::symbol).collect();
            let c = c.to_string();
            assert_eq!(symbols, ["x", &c, &c, "x"], "{:?}", c.escape_unicode().to_string());
        }
    }

    #[test]
    fn width_of_ascii_and_box_drawing_symbols_is_one_column() {
        for c in (' '..='~').chain('\u{2500}'..='\u{25bf}') {
            let symbol = c.to_string();
            assert_eq!((width_of(&symbol), symbol.cell_width()), (1, 1), "{c}");
        }
        assert_eq!((width_of("漢"), width_of(""), width_of("\u{25fe}")), (2, 0, "\u{25fe}".cell_width()));
    }

    #[test]
    fn areas_are_clipped_to_the_picture() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 4, 3));
        fill(&mut buffer, Rect::new(2, 1, 9, 9), "x", Style::new());
        assert_eq!(buffer, Buffer::with_lines(["    ", "  xx", "  xx"]));
        clear(&mut buffer, Rect::new(3, 0, 1, 3), Style::new());
        tint(&mut buffer, Rect::new(0, 2, 2, 5), Style::new().bg(Color::Blue));
        assert_eq!(buffer.content.iter().filter(|cell| cell.symbol() == "x").count(), 2);
        assert_eq!(buffer.content.iter().filter(|cell| cell.bg == Color::Blue).count(), 2);
        assert_eq!(write(&mut buffer, (4, 0), 3, "a", Style::new()), None);
        assert_eq!(write(&mut buffer, (0, 3), 3, "a", Style::new()), None);
    }
}
