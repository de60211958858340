//! Draws text and frames into the buffer, clipped to their areas.

use crate::theme::color;
use crate::theme::{Glyphs, Role, Theme};
use crate::tui::painter::cells::{self, TextWidth as _};
use crate::tui::widgets::graphics::Chart;
use ratatui::buffer::Buffer;
use ratatui::layout::{Margin, Rect};
use ratatui::style::{Modifier, Style};
use unicode_width::UnicodeWidthChar as _;

/// A buffer, with the theme and the characters for drawing.
pub struct Canvas<'a> {
    buffer: &'a mut Buffer,
    theme: Option<&'a Theme>,
    /// Characters that the terminal can display.
    pub glyphs: &'a Glyphs,
    /// Curves to be drawn as images; `None` if they are braille.
    charts: Option<Vec<Chart>>,
}

/// Color of curves if the theme defines none.
const GRAY: [u8; 3] = [0x80; 3];

impl<'a> Canvas<'a> {
    /// Creates a canvas. With `images`, curves are drawn as images instead of braille characters.
    pub fn new(buffer: &'a mut Buffer, theme: Option<&'a Theme>, glyphs: &'a Glyphs, images: bool) -> Canvas<'a> {
        Canvas { buffer, theme, glyphs, charts: images.then(Vec::new) }
    }

    /// Whether curves are drawn as images.
    #[must_use]
    pub fn has_images(&self) -> bool {
        self.charts.is_some()
    }

    /// Draws a chart as an image: erases the braille characters in its area and queues the chart.
    pub fn image(&mut self, chart: Chart) {
        let area = chart.area.intersection(self.buffer.area);
        for at in area.positions() {
            let braille = |cell: &ratatui::buffer::Cell| {
                cell.symbol().starts_with(|c: char| ('\u{2800}'..='\u{28ff}').contains(&c))
            };
            if self.buffer.cell(at).is_some_and(braille) {
                let style = self.role(Role::Text);
                cells::clear(self.buffer, Rect::new(at.x, at.y, 1, 1), style);
            }
        }
        self.charts.get_or_insert_default().push(chart);
    }

    /// The curves to be drawn as images.
    #[must_use]
    pub fn into_charts(self) -> Vec<Chart> {
        self.charts.unwrap_or_default()
    }

    /// Red, green and blue of a role.
    #[must_use]
    pub fn rgb(&self, role: Role) -> [u8; 3] {
        self.role(role).fg.and_then(color::rgb).unwrap_or(GRAY)
    }

    /// The style of a role.
    #[must_use]
    pub fn role(&self, role: Role) -> Style {
        self.theme.map_or_else(Style::default, |theme| theme.style(role))
    }

    /// Writes text from the top of an area, broken between words; what does not fit is left out.
    pub fn paragraph(&mut self, area: Rect, text: &str, style: Style) {
        for (y, line) in (area.top()..area.bottom()).zip(wrap(text, usize::from(area.width))) {
            self.text(area.x, y, area.width, &line, style);
        }
    }

    /// Like [`paragraph`](Canvas::paragraph), with a margin of one column on either side.
    pub fn message(&mut self, area: Rect, text: &str, style: Style) {
        self.paragraph(area.inner(Margin::new(1, 0)), text, style);
    }

    /// Writes text into `width` columns from `x`, truncated with an ellipsis. Returns the column after it.
    pub fn text(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        let area = self.buffer.area;
        if y < area.y || y >= area.bottom() || x >= area.right() || width == 0 {
            return x;
        }
        let width = width.min(area.right() - x);
        let plain = if self.glyphs.is_ascii() { ascii(text) } else { text.into() };
        if let Some(written) = cells::write(self.buffer, (x, y), width, &plain, style) {
            return x + written;
        }
        let cut = fit(&plain, usize::from(width), self.glyphs.ellipsis);
        let (end, _) = self.buffer.set_stringn(x, y, &cut, usize::from(width), style);
        end
    }

    /// Writes text right-aligned in `width` columns from `x`.
    pub fn right(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) {
        let plain = if self.glyphs.is_ascii() { ascii(text) } else { text.into() };
        let text = &*plain;
        if text.len() <= usize::from(width) && text.is_ascii() {
            let length = u16::try_from(text.len()).unwrap_or(width);
            self.text(x + width - length, y, length, text, style);
            return;
        }
        let cut = fit(text, usize::from(width), self.glyphs.ellipsis);
        let pad = usize::from(width).saturating_sub(cut.width());
        self.text(x + u16::try_from(pad).unwrap_or(0), y, width, &cut, style);
    }

    /// Whether a cell shows nothing, or only shading.
    #[must_use]
    pub fn is_blank(&self, x: u16, y: u16) -> bool {
        let shown = self.buffer.cell((x, y)).map(|cell| cell.symbol());
        shown.is_some_and(|symbol| symbol == " " || symbol == self.glyphs.shades[1])
    }

    /// Applies a style to the cells of an area without changing their symbols.
    pub fn tint(&mut self, area: Rect, style: Style) {
        if style != Style::default() {
            cells::tint(self.buffer, area, style);
        }
    }

    /// Copies the bars of `row`, without their labels, to line `below`.
    pub fn repeat(&mut self, row: Rect, below: u16) {
        for x in row.left()..row.right() {
            let Some(cell) = self.buffer.cell((x, row.y)) else { continue };
            let mut cell = cell.clone();
            let bar = |c: char| ('\u{2580}'..='\u{259f}').contains(&c) || c.is_ascii_punctuation();
            if !cell.symbol().chars().all(bar) {
                cell.set_symbol(" ");
            }
            if let Some(under) = self.buffer.cell_mut((x, below)) {
                *under = cell;
            }
        }
    }

    /// Empties an area.
    pub fn clear(&mut self, area: Rect) {
        let style = self.role(Role::Text);
        cells::clear(self.buffer, area, style);
    }

    /// Draws a frame with a title on the left and a remark on the right of its upper edge. Returns the area inside.
    pub fn frame(&mut self, area: Rect, title: &str, remark: &str, focused: bool) -> Rect {
        if area.width < 2 || area.height < 2 {
            return Rect::default();
        }
        // Only the upper edge shows the focus: repainting whole frames would cost a kilobyte for every Tab.
        let (plain, edge) =
            (self.role(Role::Border), self.role(if focused { Role::BorderFocused } else { Role::Border }));
        let [horizontal, vertical, _, _, bottom_left, bottom_right] = self.glyphs.border;
        let [upper, _, top_left, top_right, _, _] =
            if focused { self.glyphs.border_focused } else { self.glyphs.border };
        let (left, right, top, bottom) = (area.x, area.right() - 1, area.y, area.bottom() - 1);
        let inner = Rect::new(left + 1, top + 1, area.width - 2, area.height - 2);
        cells::fill(self.buffer, Rect { y: top, height: 1, ..inner }, upper, edge);
        cells::fill(self.buffer, Rect { y: bottom, height: 1, ..inner }, horizontal, plain);
        cells::fill(self.buffer, Rect { x: left, width: 1, ..inner }, vertical, plain);
        cells::fill(self.buffer, Rect { x: right, width: 1, ..inner }, vertical, plain);
        let corners = [
            (left, top, top_left, edge),
            (right, top, top_right, edge),
            (left, bottom, bottom_left, plain),
            (right, bottom, bottom_right, plain),
        ];
        for (x, y, corner, style) in corners {
            self.text(x, y, 1, corner, style);
        }
        let mut end = left + 2;
        if !title.is_empty() && area.width > 6 {
            let style = self.role(if focused { Role::TitleFocused } else { Role::Title });
            let width = (area.width - 4).min(u16::try_from(title.width() + 2).unwrap_or(u16::MAX));
            end = self.text(left + 2, top, width, &format!(" {title} "), style);
        }
        let room = right.saturating_sub(end + 1);
        if !remark.is_empty() && room >= 8 {
            let remark = whole(remark, usize::from(room - 2), self.glyphs.ellipsis);
            let width = u16::try_from(remark.width() + 2).unwrap_or(u16::MAX).min(room);
            let style = self.role(Role::Dim);
            self.text(right.saturating_sub(width), top, width, &format!(" {remark} "), style);
        }
        inner
    }

    /// Draws a bar over part of a track, from share `from` to share `to` of its width, rounded to eighths of a cell.
    pub fn segment(&mut self, track: Rect, (from, to): (f64, f64), style: Style) {
        let width = usize::from(track.width);
        let eighth = |share: f64| (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
        if !(from.is_finite() && to > from) || width == 0 {
            return;
        }
        let begin = eighth(from).min(width * 8 - 1);
        // A segment is at least an eighth of a cell wide, so that it is visible.
        let end = eighth(to).max(begin + 1);
        for cell in begin / 8..end.div_ceil(8) {
            let (first, last) = (begin.max(cell * 8) - cell * 8, end.min(cell * 8 + 8) - cell * 8);
            let x = track.x + u16::try_from(cell).unwrap_or_default();
            let (glyph, style) = match (first, last) {
                // The glyphs fill cells from the left. A cell filled from the right is drawn in reverse video.
                (1.., 8) if !self.glyphs.is_ascii() => (first, style.add_modifier(Modifier::REVERSED)),
                _ => (last - first, style),
            };
            let symbol = self.glyphs.eighths(glyph);
            self.text(x, track.y, 1, symbol, style);
        }
    }

    /// Draws a mark at share `at` of a track's width if that cell is empty.
    pub fn mark(&mut self, track: Rect, at: f64, style: Style) {
        let last = track.width.saturating_sub(1);
        let column = (at.clamp(0.0, 1.0) * f64::from(track.width)).round() as u16;
        let x = track.x + column.min(last);
        let [_, vertical, ..] = self.glyphs.border;
        if self.buffer.cell((x, track.y)).is_some_and(|cell| cell.symbol() == " ") {
            self.text(x, track.y, 1, vertical, style);
        }
    }

    /// Draws arrows on the right edge of a frame if there is more content above or below.
    pub fn more(&mut self, area: Rect, above: bool, below: bool) {
        if area.width < 2 || area.height < 3 {
            return;
        }
        let style = self.role(Role::Accent);
        let x = area.right() - 1;
        if above {
            let glyph = self.glyphs.up;
            self.text(x, area.y + 1, 1, glyph, style);
        }
        if below {
            let glyph = self.glyphs.down;
            self.text(x, area.bottom() - 2, 1, glyph, style);
        }
    }

    /// Draws an input line with the cell under the cursor reversed. The terminal's own cursor stays hidden, which saves
    /// bytes.
    pub fn typed(&mut self, x: u16, y: u16, width: u16, line: &crate::tui::widgets::line::Line, style: Style) {
        let skip = (line.cursor() + 1).saturating_sub(usize::from(width));
        let shown: String = line.text().chars().skip(skip).collect();
        self.text(x, y, width, &format!("{shown:<pad$}", pad = usize::from(width)), style);
        let reversed = Style::new().add_modifier(Modifier::REVERSED);
        if line.is_selected() {
            let length = u16::try_from(shown.width()).unwrap_or(width).min(width);
            self.tint(Rect::new(x, y, length, 1), reversed);
        }
        let cursor = u16::try_from(line.cursor() - skip).unwrap_or_default();
        self.tint(Rect::new(x + cursor.min(width.saturating_sub(1)), y, 1, 1), reversed);
    }
}

/// Converts text to ASCII. Characters that the program itself writes have equivalents; all others become `?`.
#[must_use]
pub fn ascii(text: &str) -> std::borrow::Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            // As in the output of the command line.
            '→' => plain.push_str("->"),
            '×' => plain.push('x'),
            '–' | '—' | '−' => plain.push('-'),
            '·' => plain.push('*'),
            '…' | '±' => plain.push('~'),
            'µ' => plain.push('u'),
            'Δ' => plain.push('d'),
            c if c.is_ascii() => plain.push(c),
            _ => plain.push('?'),
        }
    }
    plain.into()
}

/// Shortens text to `width` columns. The most important parts come first: parts after the last separator that fits are
/// dropped. If not even the first part fits, it is cut between words.
#[must_use]
pub fn whole(text: &str, width: usize, ellipsis: &str) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let fits = |end: &usize| text.get(..*end).is_some_and(|part| part.width() <= width);
    let ends = ["; ", ", ", " ("].into_iter().flat_map(|separator| text.match_indices(separator)).map(|(at, _)| at);
    if let Some(end) = ends.filter(fits).max() {
        return text.get(..end).unwrap_or(text).to_owned();
    }
    let words = text
        .match_indices(' ')
        .map(|(at, _)| at)
        .filter(|at| text.get(..*at).is_some_and(|part| part.width() + ellipsis.width() <= width));
    match words.max().and_then(|end| text.get(..end)) {
        Some(part) => format!("{}{ellipsis}", part.trim_end_matches([':', ','])),
        None => fit(text, width, ellipsis),
    }
}

/// Shortens a name in the middle to `width` columns, because names differ at their ends.
#[must_use]
pub fn middle(name: &str, width: usize, ellipsis: &str) -> String {
    if name.width() <= width {
        return name.to_owned();
    }
    let room = width.saturating_sub(ellipsis.width());
    let head = fit(name, room.div_ceil(2), "");
    let mut tail = name;
    while tail.width() > room / 2 {
        let next = tail.char_indices().nth(1).map_or(tail.len(), |(at, _)| at);
        tail = tail.get(next..).unwrap_or_default();
    }
    format!("{head}{ellipsis}{tail}")
}

/// Truncates text to `width` columns. Truncated text ends in an ellipsis.
#[must_use]
pub fn fit(text: &str, width: usize, ellipsis: &str) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(ellipsis.width());
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let w = c.width().unwrap_or(0);
        if used + w > room {
            break;
        }
        used += w;
        out.push(c);
    }
    out.push_str(ellipsis);
    out
}

/// Breaks text into lines of at most `width` columns, at spaces where possible.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let (mut line, mut columns) = (String::new(), 0);
        for mut word in paragraph.split_whitespace() {
            let mut wide = word.width();
            if !line.is_empty() && columns + 1 + wide > width {
                lines.push(std::mem::take(&mut line));
                columns = 0;
            }
            while wide > width {
                let mut used = 0;
                let cut = word.char_indices().find(|(_, c)| {
                    used += c.width().unwrap_or(0);
                    used > width
                });
                let at = cut.map_or(word.len(), |(at, _)| at);
                let (head, tail) = word.split_at(at);
                if head.is_empty() {
                    break;
                }
                lines.push(head.to_owned());
                word = tail;
                wide = word.width();
            }
            if !line.is_empty() {
                line.push(' ');
                columns += 1;
            }
            line.push_str(word);
            columns += wide;
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_width_not_by_bytes() {
        assert_eq!(fit("abcdef", 4, "…"), "abc…");
        assert_eq!(fit("äöüß", 4, "…"), "äöüß");
        assert_eq!(fit("日本語", 4, "…"), "日…");
        assert_eq!(fit("abc", 0, "…"), "…");
    }

    #[test]
    fn whole_parts_are_left_out_before_a_word_is_cut() {
        let remark = "targets 1–3 of 53; 169 models, tokens/s";
        assert_eq!(whole(remark, 40, "…"), remark);
        assert_eq!(whole(remark, 30, "…"), "targets 1–3 of 53; 169 models");
        assert_eq!(whole(remark, 20, "…"), "targets 1–3 of 53");
        assert_eq!(whole(remark, 14, "…"), "targets 1–3…");
        assert_eq!(whole("indivisible", 5, "…"), "indi…");
        for width in 0..60 {
            assert!(whole(remark, width, "…").width() <= width.max(1), "{width}");
        }
    }

    #[test]
    fn names_are_shortened_in_the_middle() {
        assert_eq!(middle("h100-sxm-64", 11, "…"), "h100-sxm-64");
        assert_eq!(middle("h100-sxm-64", 8, "…"), "h100…-64");
        assert_eq!([0, 1, 2].map(|width| middle("h100-sxm-64", width, "…")), ["…", "…", "h…"]);
    }

    #[test]
    fn ascii_replaces_arrows_with_hyphen_and_angle_bracket() {
        assert_eq!(ascii("tp 4 → 2"), "tp 4 -> 2");
    }

    #[test]
    fn lines_break_at_spaces_and_long_words_anywhere() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("a\n\nb", 4), ["a", "", "b"]);
        assert!(wrap("any thing at all", 1).iter().all(|line| line.width() <= 1));
    }
}
