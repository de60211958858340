//! Encodes a frame as bytes: the order of the cells, the pen of each, and the cursor movements.

use std::cmp::Ordering;
use std::ops::Range;

use ratatui::buffer::Cell;
use ratatui::layout::{Position, Rect};

use crate::theme::color::ColorDepth;
use crate::tui::painter::cells::{is_erased, width_of};
use crate::tui::painter::pen::{Pen, Short};

/// Longest run of unchanged cells considered for rewriting; a jump never takes more bytes than this.
const LONGEST_GAP: u16 = 5;
/// Minimum number of changed cells for which erasing to the end of the line is shorter.
const SHORTEST_ERASE: usize = 4;
/// Minimum number of blanks for which erasing them in place and jumping over them is shorter.
const SHORTEST_BLANK: usize = 10;
/// Like [`SHORTEST_BLANK`], if nothing is written after them.
const SHORTEST_LAST: usize = 5;

/// Known state of the terminal besides its cells. A field is `None` if something else may have changed it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct State {
    pub(super) pen: Option<Pen>,
    pub(super) at: Option<Position>,
    cursor_shown: Option<bool>,
}

/// Returns the symbol, or `?` if it contains control characters or characters that reorder text, which must not be
/// sent.
pub(super) fn printable(symbol: &str, ascii: bool) -> &str {
    let harmful = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    match symbol.as_bytes() {
        [b' '..=b'~'] => symbol,
        [] => " ",
        _ if (ascii && !symbol.is_ascii()) || symbol.chars().any(harmful) => "?",
        _ => symbol,
    }
}

/// Adjacent cells that are written or erased together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pen: usize,
    at: Position,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    /// This many cells with text.
    Cells(usize),
    /// This many blanks.
    Blanks(usize),
    /// Everything up to the end of the line.
    Tail,
}

/// The changes of a frame.
pub(super) struct Work<'a> {
    pub(super) cells: &'a [Cell],
    pub(super) width: usize,
    pub(super) changed: &'a [u16],
    pub(super) rows: &'a [(u16, Range<usize>)],
}

impl<'a> Work<'a> {
    /// Returns each changed row: its number, its cells, and the changed columns.
    fn rows(&self) -> impl Iterator<Item = (u16, &'a [Cell], &'a [u16])> {
        self.rows.iter().map(|(y, part)| {
            let changed = self.changed.get(part.clone()).unwrap_or_default();
            (*y, self.row(*y), changed)
        })
    }

    fn row(&self, y: u16) -> &'a [Cell] {
        let begin = usize::from(y) * self.width;
        self.cells.get(begin..begin + self.width).unwrap_or_default()
    }
}

/// First column of the blank tail of a row.
fn blank_from(cells: &[Cell]) -> usize {
    cells.len() - cells.iter().rev().take_while(|cell| is_erased(cell)).count()
}

/// Number of adjacent blanks at the beginning of the columns, if erasing them is shorter than writing them; otherwise
/// 0.
fn blanks(cells: &[Cell], columns: &[u16]) -> usize {
    let Some(first) = columns.first() else { return 0 };
    let blank = |(place, x): &(u16, &u16)| {
        **x == first.saturating_add(*place) && cells.get(usize::from(**x)).is_some_and(is_erased)
    };
    let count = (0..).zip(columns).take_while(blank).count();
    let pays = if count < columns.len() { SHORTEST_BLANK } else { SHORTEST_LAST };
    if count >= pays { count } else { 0 }
}

/// Number of adjacent text cells with the same style at the beginning of the columns; 1 if the first is blank.
fn alike(cells: &[Cell], columns: &[u16]) -> usize {
    let Some(first) = columns.first() else { return 0 };
    let from = usize::from(*first);
    let text = cells.get(from).filter(|cell| !is_space(cell));
    let of_its_style = |((cell, next), x): &((&Cell, u16), &u16)| {
        text.is_some_and(|text| {
            **x == *next && !is_space(cell) && (cell.fg, cell.bg, cell.modifier) == (text.fg, text.bg, text.modifier)
        })
    };
    let beside = cells.get(from..).unwrap_or_default().iter().zip(*first..).zip(columns);
    beside.take_while(of_its_style).count().max(1)
}

fn is_space(cell: &Cell) -> bool {
    cell.symbol().as_bytes() == [b' ']
}

/// Number of changed columns that are written; the others are erased up to the end of the line.
fn written(cells: &[Cell], changed: &[u16]) -> usize {
    let blank = blank_from(cells);
    let first = changed.partition_point(|x| usize::from(*x) < blank);
    if changed.len() - first >= SHORTEST_ERASE { first } else { changed.len() }
}

/// Returns the pen for the first of these changed columns, following `pen`. If the background changes under blanks, it
/// also includes the attributes of the text after them, which saves a sequence.
fn pen_of(pen: Pen, cell: &Cell, cells: &[Cell], columns: &[u16], depth: ColorDepth) -> Pen {
    let own = pen.for_cell(cell, depth);
    if pen.has_background_of(own) || cell.symbol() != " " {
        return own;
    }
    let beside =
        columns.iter().zip(columns.first().copied().unwrap_or_default()..).take_while(|(x, next)| **x == *next);
    let text = beside.filter_map(|(x, _)| cells.get(usize::from(*x))).find(|cell| cell.symbol() != " ");
    text.map(|text| own.for_cell(text, depth)).filter(|text| text.writes_blank(own)).unwrap_or(own)
}

/// Returns the pen of the first text of a row, if its background is the default.
fn first_pen(cells: &[Cell], columns: &[u16], depth: ColorDepth) -> Pen {
    let text = columns.iter().filter_map(|x| cells.get(usize::from(*x))).find(|cell| cell.symbol() != " ");
    let pen = text.map(|text| Pen::default().for_cell(text, depth)).unwrap_or_default();
    if pen.for_erasing() == pen { pen } else { Pen::default() }
}

/// Encoder of a frame, with the state of the terminal.
pub(super) struct Encoder<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) depth: ColorDepth,
    pub(super) ascii: bool,
    pub(super) width: u16,
    pub(super) state: State,
}

impl Encoder<'_> {
    /// Writes everything from top left to bottom right.
    pub(super) fn by_rows(&mut self, work: &Work<'_>) {
        for (y, cells, changed) in work.rows() {
            let (write, erase) = changed.split_at_checked(written(cells, changed)).unwrap_or((changed, &[]));
            let mut left = write;
            while let Some((&x, rest)) = left.split_first() {
                self.go(Position { x, y }, cells);
                let mut done = blanks(cells, left);
                if done > 0 {
                    self.blank(done);
                } else if let Some(cell) = cells.get(usize::from(x)) {
                    done = alike(cells, left);
                    self.set_pen(pen_of(self.state.pen.unwrap_or_default(), cell, cells, left, self.depth));
                    self.text(Position { x, y }, cells, done);
                }
                left = left.get(done.max(1)..).unwrap_or(rest);
            }
            if let Some(&x) = erase.first() {
                self.erase(Position { x, y }, cells);
            }
        }
    }

    /// Writes all changes pen by pen.
    pub(super) fn by_pens(&mut self, work: &Work<'_>, grouped: &mut Vec<Piece>) {
        grouped.clear();
        let mut pens: Vec<Pen> = vec![Pen::default()];
        for (y, cells, changed) in work.rows() {
            let (write, erase) = changed.split_at_checked(written(cells, changed)).unwrap_or((changed, &[]));
            let mut add = |pen: Pen, x: u16, what: What| {
                // Text and the blanks within it share a pen.
                if let (Some(Piece { pen: last, at, what: What::Cells(count) }), What::Cells(more)) =
                    (grouped.last_mut(), what)
                    && at.y == y
                    && usize::from(at.x) + *count == usize::from(x)
                    && pens.get(*last) == Some(&pen)
                {
                    *count += more;
                    return;
                }
                let known = pens.iter().position(|known| *known == pen).unwrap_or_else(|| {
                    pens.push(pen);
                    pens.len() - 1
                });
                grouped.push(Piece { pen: known, at: Position { x, y }, what });
            };
            // A plain blank is written with the text before it in the row, or else with the text after it.
            let mut pen = first_pen(cells, write, self.depth);
            let mut left = write;
            while let Some((&x, rest)) = left.split_first() {
                let blank = blanks(cells, left);
                let count = if blank > 0 { blank } else { alike(cells, left) };
                if let Some(cell) = cells.get(usize::from(x)) {
                    pen = pen_of(pen, cell, cells, left, self.depth);
                    add(pen, x, if blank > 0 { What::Blanks(count) } else { What::Cells(count) });
                }
                left = left.get(count.max(1)..).unwrap_or(rest);
            }
            if let Some(&x) = erase.first() {
                // The tail is erased with the same pen if that leaves no visible attributes.
                add(if pen.for_erasing() == pen { pen } else { Pen::default() }, x, What::Tail);
            }
        }
        // Pens with the default background come first, because switching between them takes few bytes. The sort is
        // stable, so rows and columns of a pen stay in order.
        let plain = |pen: usize| pens.get(pen).is_some_and(|pen| pen.has_background_of(Pen::default()));
        grouped.sort_by_key(|piece| (!plain(piece.pen), piece.pen));
        for piece in grouped.iter() {
            let cells = work.row(piece.at.y);
            let Some(pen) = pens.get(piece.pen) else { continue };
            if let What::Tail = piece.what {
                self.erase(piece.at, cells);
                continue;
            }
            self.set_pen(*pen);
            self.go(piece.at, cells);
            match piece.what {
                What::Blanks(blank) => self.blank(blank),
                What::Cells(count) => self.text(piece.at, cells, count),
                What::Tail => {}
            }
        }
    }

    /// Erases cells at the cursor without moving it.
    fn blank(&mut self, cells: usize) {
        self.set_pen(self.state.pen.unwrap_or_default().for_erasing());
        let mut erase = Short::<16>::new();
        erase.byte(0x1b);
        erase.byte(b'[');
        erase.number(u16::try_from(cells).unwrap_or(u16::MAX));
        erase.byte(b'X');
        self.out.extend_from_slice(erase.bytes());
    }

    /// Erases the tail of a line.
    fn erase(&mut self, from: Position, cells: &[Cell]) {
        let there = |at: Position| at.y == from.y && at.x <= from.x && usize::from(at.x) >= blank_from(cells);
        if !self.state.at.is_some_and(there) {
            self.jump(from);
        }
        self.set_pen(self.state.pen.unwrap_or_default().for_erasing());
        self.out.extend_from_slice(b"\x1b[K");
    }

    /// Writes `count` cells of a row at the cursor with the current pen.
    fn text(&mut self, from: Position, row: &[Cell], count: usize) {
        let begin = usize::from(from.x);
        for (cell, x) in row.get(begin..begin + count).unwrap_or_default().iter().zip(from.x..) {
            // After a symbol of uncertain width the cursor position is unknown.
            self.jump(Position { x, y: from.y });
            self.cell(cell);
        }
    }

    /// Writes a cell with the current pen.
    fn cell(&mut self, cell: &Cell) {
        let symbol = cell.symbol();
        match symbol.as_bytes() {
            [byte @ b' '..=b'~'] => self.out.push(*byte),
            _ => self.out.extend_from_slice(printable(symbol, self.ascii).as_bytes()),
        }
        // Terminals differ in the width of emoji and combined characters, and in the cursor position after the last
        // column. The next move is then absolute.
        let certain = symbol.len() == 1 || (symbol.chars().nth(1).is_none() && width_of(symbol) == 1);
        self.state.at =
            self.state.at.filter(|at| certain && at.x + 1 < self.width).map(|at| Position { x: at.x + 1, y: at.y });
    }

    pub(super) fn set_pen(&mut self, to: Pen) {
        if self.state.pen == Some(to) {
            return;
        }
        let from = self.state.pen.unwrap_or_else(|| {
            self.out.extend_from_slice(b"\x1b[m");
            Pen::default()
        });
        from.change_to(to, self.out);
        self.state.pen = Some(to);
    }

    /// Moves to `to`; rewrites the cells in between if that is no longer than a jump.
    fn go(&mut self, to: Position, cells: &[Cell]) {
        if let State { at: Some(at), pen: Some(pen), .. } = self.state
            && at.y == to.y
            && at.x < to.x
            && to.x - at.x <= LONGEST_GAP
        {
            let gap = cells.get(usize::from(at.x)..usize::from(to.x)).unwrap_or_default();
            let bytes = gap.iter().map(|cell| cell.symbol().len()).sum::<usize>();
            let simple = |cell: &Cell| {
                cell.symbol().chars().nth(1).is_none()
                    && width_of(cell.symbol()) == 1
                    && pen.for_cell(cell, self.depth) == pen
            };
            if bytes <= jump(Some(at), to).bytes().len() && gap.iter().all(simple) {
                gap.iter().for_each(|cell| self.cell(cell));
                return;
            }
        }
        self.jump(to);
    }

    fn jump(&mut self, to: Position) {
        if self.state.at != Some(to) {
            self.out.extend_from_slice(jump(self.state.at, to).bytes());
            self.state.at = Some(to);
        }
    }

    /// Ends a frame: resets the pen, so that it does not color the output of other programs or a resized terminal, and
    /// places the cursor.
    pub(super) fn finish(&mut self, cursor: Option<Position>, area: Rect) {
        if self.state.pen.is_some_and(|pen| pen != Pen::default()) {
            self.set_pen(Pen::default());
        }
        if let Some(Position { x, y }) = cursor {
            let inside = |n: u16, size: u16| n.min(size.saturating_sub(1));
            self.jump(Position { x: inside(x, area.width), y: inside(y, area.height) });
        }
        if self.state.cursor_shown != Some(cursor.is_some()) {
            self.state.cursor_shown = Some(cursor.is_some());
            self.out.extend_from_slice(if cursor.is_some() { b"\x1b[?25h" } else { b"\x1b[?25l" });
        }
    }
}

/// Buffer for a vertical and a horizontal move.
type Move = Short<16>;

/// Returns the shortest sequence that moves the cursor from `at` to `to`. Line feeds are not used: their effect depends
/// on the output flags of the line discipline, which other programs may change.
fn jump(at: Option<Position>, to: Position) -> Move {
    let mut absolute = Move::new();
    absolute.byte(0x1b);
    absolute.byte(b'[');
    if to.y > 0 {
        absolute.number(to.y + 1);
    }
    if to.x > 0 {
        absolute.byte(b';');
        absolute.number(to.x + 1);
    }
    absolute.byte(b'H');
    let Some(at) = at else { return absolute };
    let mut relative = Move::new();
    match to.y.cmp(&at.y) {
        Ordering::Less => step(&mut relative, at.y - to.y, b'A'),
        Ordering::Equal => {}
        Ordering::Greater => step(&mut relative, to.y - at.y, b'B'),
    }
    match to.x.cmp(&at.x) {
        Ordering::Less if to.x == 0 => relative.byte(b'\r'),
        Ordering::Less if at.x - to.x <= 3 => (to.x..at.x).for_each(|_| relative.byte(0x08)),
        Ordering::Less => step(&mut relative, at.x - to.x, b'D'),
        Ordering::Equal => {}
        Ordering::Greater => step(&mut relative, to.x - at.x, b'C'),
    }
    if relative.bytes().len() < absolute.bytes().len() { relative } else { absolute }
}

/// Appends a relative move of `n` cells.
fn step(out: &mut Move, n: u16, direction: u8) {
    out.byte(0x1b);
    out.byte(b'[');
    if n > 1 {
        out.number(n);
    }
    out.byte(direction);
}
