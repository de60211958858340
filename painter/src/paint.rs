//! A ratatui buffer on the terminal, with as few bytes as is reasonable.
//!
//! ratatui's own backends write each changed cell as it comes: an absolute move where cells are not neighbours,
//! colours as `38;5;n`, two resets a frame, and cursor commands even when nothing changed. The painter compares the
//! whole picture with a copy of what the terminal shows. Knowing the cells between two changes it can rewrite them
//! where that is shorter than a jump, erase the tail of a line with three bytes, leave out changes that cannot be seen,
//! and send **nothing** when nothing changed. A frame is encoded in two orders, row by row and colour by colour, and the
//! shorter is sent: where much changes, jumping to the next text of the same colour costs less than changing it. It
//! never asks the terminal anything; it also has the last word on colour depth, so that no theme can send what the
//! terminal or `NO_COLOR` forbids, and on control characters, so that no text from a file can reach the terminal as a
//! command.

use std::cmp::Ordering;
use std::io::{self, Write};
use std::ops::Range;

use ratatui::buffer::{Buffer, Cell, CellWidth};
use ratatui::layout::{Position, Rect};

use crate::cells::{is_erased, looks_same};
use crate::color::ColorDepth;
use crate::frame_writer::FrameWriter;
use crate::pen::{Pen, Short};

/// Longest run of unchanged cells that is looked at for rewriting; a jump never costs more bytes than this.
const LONGEST_GAP: u16 = 5;
/// From this many changed cells on, erasing to the end of the line pays.
const SHORTEST_ERASE: usize = 4;
/// From this many blanks on, erasing them where they stand and jumping over them pays.
const SHORTEST_BLANK: usize = 10;
/// From this many changed cells on, the order by colours is tried.
const FEWEST_GROUPED: usize = 24;

/// Paints whole pictures on a terminal through a [`FrameWriter`].
#[derive(Debug)]
pub struct Painter<W> {
    writer: FrameWriter<W>,
    depth: ColorDepth,
    ascii: bool,
    /// What the terminal shows, before colours are reduced. Cells that a wide character covers have an empty symbol.
    shown: Buffer,
    /// The terminal's own state, as far as it is known.
    state: State,
    /// What is to be written, row by row; kept, as the buffers below, to spare the allocation.
    changed: Vec<u16>,
    /// Rows of which something is, with their part of `changed`.
    rows: Vec<(u16, Range<usize>)>,
    /// The same cells, or runs of blanks, colour by colour.
    grouped: Vec<Piece>,
    /// The frame encoded in the other order.
    other: Vec<u8>,
}

/// What is known of the terminal besides its cells; `None` when something else may have changed it.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    pen: Option<Pen>,
    at: Option<Position>,
    cursor_shown: Option<bool>,
}

impl<W: Write> Painter<W> {
    /// A painter that knows nothing about the terminal behind `out`, not even what it shows.
    pub fn new(out: W, depth: ColorDepth) -> Painter<W> {
        Painter {
            writer: FrameWriter::new(out),
            depth,
            ascii: false,
            shown: Buffer::empty(Rect::ZERO),
            state: State::default(),
            changed: Vec::new(),
            rows: Vec::new(),
            grouped: Vec::new(),
            other: Vec::new(),
        }
    }

    /// The writer behind, for bytes around a frame: mode switches that are pushed join the next one.
    pub fn writer_mut(&mut self) -> &mut FrameWriter<W> {
        &mut self.writer
    }

    /// The writer behind.
    #[must_use]
    pub fn writer(&self) -> &FrameWriter<W> {
        &self.writer
    }

    /// The most colours that may be sent from now on. Takes full effect with the next repaint.
    pub fn set_depth(&mut self, depth: ColorDepth) {
        self.depth = depth;
    }

    /// Whether everything outside ASCII is to be shown as `?`: for a locale that would print it as garbage.
    pub fn set_ascii(&mut self, ascii: bool) {
        self.ascii = ascii;
    }

    /// Forgets all about the terminal's state: something else has written to it. The next picture is painted in full.
    pub fn forget(&mut self) {
        self.shown = Buffer::empty(Rect::ZERO);
        self.state = State::default();
    }

    /// Shows `picture` with the cursor where it is wanted, if anywhere, with one write, or with none where nothing
    /// changed. Returns how many bytes were sent.
    ///
    /// # Errors
    ///
    /// Whatever the writer answers; the next picture is painted in full then.
    #[inline(never)]
    pub fn paint(&mut self, picture: &Buffer, cursor: Option<Position>) -> io::Result<usize> {
        let mut screen = Encoder {
            out: self.writer.frame_mut(),
            depth: self.depth,
            ascii: self.ascii,
            width: picture.area.width,
            state: self.state,
        };
        if self.shown.area != picture.area {
            // A terminal of a new size has reflowed its contents in its own way.
            self.shown = Buffer::empty(picture.area);
            screen.state.at = None;
            screen.set_pen(Pen::default());
            screen.out.extend_from_slice(b"\x1b[2J");
        }
        let width = usize::from(picture.area.width).max(1);
        self.changed.clear();
        self.rows.clear();
        let rows = self.shown.content.chunks_mut(width).zip(picture.content.chunks(width));
        for ((shown, wanted), y) in rows.zip(0..) {
            let from = self.changed.len();
            take(shown, wanted, &mut self.changed);
            if self.changed.len() > from {
                self.rows.push((y, from..self.changed.len()));
            }
        }
        let work = Work { cells: &self.shown.content, width, changed: &self.changed, rows: &self.rows };
        // Both orders begin behind what is written already, and from the same state.
        let (begin, before) = (screen.out.len(), screen.state);
        screen.by_rows(&work);
        screen.finish(cursor, picture.area);
        self.state = screen.state;
        if self.changed.len() >= FEWEST_GROUPED {
            self.other.clear();
            let mut other = Encoder { out: &mut self.other, state: before, ..screen };
            other.by_pens(&work, &mut self.grouped);
            other.finish(cursor, picture.area);
            let state = other.state;
            let frame = self.writer.frame_mut();
            if self.other.len() < frame.len() - begin {
                frame.truncate(begin);
                frame.extend_from_slice(&self.other);
                self.state = state;
            }
        }
        self.writer.commit().inspect_err(|_| self.forget())
    }
}

/// Takes a row of the picture into the copy of what is shown, and adds the columns where that can be seen.
#[inline(never)]
fn take(shown: &mut [Cell], wanted: &[Cell], changed: &mut Vec<u16>) {
    let mut covered = 0;
    for ((shown, wanted), x) in shown.iter_mut().zip(wanted).zip(0..) {
        if covered > 0 {
            covered -= 1;
            *shown = Cell::new("");
            continue;
        }
        let symbol = wanted.symbol();
        // One byte is one column, and most are.
        covered = if symbol.len() == 1 { 0 } else { symbol.cell_width().saturating_sub(1) };
        if !looks_same(wanted, symbol, shown) {
            shown.clone_from(wanted);
            changed.push(x);
        }
    }
}

/// What may go to the terminal of a symbol: no control characters, and none that reorder the text around them.
fn printable(symbol: &str, ascii: bool) -> &str {
    let harmful = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    match symbol.as_bytes() {
        [b' '..=b'~'] => symbol,
        [] => " ",
        _ if (ascii && !symbol.is_ascii()) || symbol.chars().any(harmful) => "?",
        _ => symbol,
    }
}

/// A cell, or a run of blanks, on its way to the terminal.
#[derive(Debug, Clone, Copy)]
struct Piece {
    pen: usize,
    at: Position,
    /// So many blanks from there on; 0 for a cell.
    blank: usize,
}

/// What a frame has to write.
struct Work<'a> {
    cells: &'a [Cell],
    width: usize,
    changed: &'a [u16],
    rows: &'a [(u16, Range<usize>)],
}

impl<'a> Work<'a> {
    /// Each row of which something is to be written: its number, its cells, the columns.
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

/// The column from which on a row is as if it were erased.
fn blank_from(cells: &[Cell]) -> usize {
    cells.len() - cells.iter().rev().take_while(|cell| is_erased(cell)).count()
}

/// How many of the columns, from the first on, are blanks beside one another, where erasing them in one go is shorter
/// than writing them and going on; 0 where it is not.
fn blanks(cells: &[Cell], columns: &[u16]) -> usize {
    let Some(first) = columns.first() else { return 0 };
    let blank = |(place, x): &(u16, &u16)| {
        **x == first.saturating_add(*place) && cells.get(usize::from(**x)).is_some_and(is_erased)
    };
    let count = (0..).zip(columns).take_while(blank).count();
    if count >= SHORTEST_BLANK { count } else { 0 }
}

/// How many of the changed columns are written; the rest is erased with the tail of the line.
fn written(cells: &[Cell], changed: &[u16]) -> usize {
    let blank = blank_from(cells);
    let first = changed.partition_point(|x| usize::from(*x) < blank);
    if changed.len() - first >= SHORTEST_ERASE { first } else { changed.len() }
}

/// The terminal while a frame is encoded.
struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    depth: ColorDepth,
    ascii: bool,
    width: u16,
    state: State,
}

impl Encoder<'_> {
    /// Writes everything from top left to bottom right.
    fn by_rows(&mut self, work: &Work<'_>) {
        for (y, cells, changed) in work.rows() {
            let (write, erase) = changed.split_at_checked(written(cells, changed)).unwrap_or((changed, &[]));
            let mut left = write;
            while let Some((&x, rest)) = left.split_first() {
                self.go(Position { x, y }, cells);
                let blank = blanks(cells, left);
                left = left.get(blank.max(1)..).unwrap_or(rest);
                match cells.get(usize::from(x)) {
                    Some(_) if blank > 0 => self.blank(blank),
                    Some(cell) => self.cell(cell),
                    None => {}
                }
            }
            self.erase(cells, erase, y);
        }
    }

    /// Writes everything of one pen, then of the next. Tails of lines are erased first.
    fn by_pens(&mut self, work: &Work<'_>, grouped: &mut Vec<Piece>) {
        grouped.clear();
        let mut pens: Vec<Pen> = vec![Pen::default()];
        for (y, cells, changed) in work.rows() {
            let (write, erase) = changed.split_at_checked(written(cells, changed)).unwrap_or((changed, &[]));
            self.erase(cells, erase, y);
            // A plain blank is written along with what stands before it.
            let (mut pen, mut next) = (Pen::default(), 0);
            let mut skip = 0;
            for (nth, &x) in write.iter().enumerate() {
                let Some(cell) = cells.get(usize::from(x)) else { continue };
                // What is erased in one go counts as its first cell.
                if nth < skip {
                    next = x + 1;
                    continue;
                }
                let blank = blanks(cells, write.get(nth..).unwrap_or_default());
                skip = nth + blank;
                if x != next {
                    pen = Pen::default();
                }
                next = x + 1;
                pen = pen.for_cell(cell, self.depth);
                let known = pens.iter().position(|known| *known == pen).unwrap_or_else(|| {
                    pens.push(pen);
                    pens.len() - 1
                });
                grouped.push(Piece { pen: known, at: Position { x, y }, blank });
            }
        }
        // Stable: within a pen, rows and columns stay in order.
        grouped.sort_by_key(|piece| piece.pen);
        for piece in grouped.iter() {
            let cells = work.row(piece.at.y);
            if let (Some(pen), Some(cell)) = (pens.get(piece.pen), cells.get(usize::from(piece.at.x))) {
                self.set_pen(*pen);
                self.go(piece.at, cells);
                if piece.blank > 0 { self.blank(piece.blank) } else { self.cell(cell) }
            }
        }
    }

    /// Erases cells from the cursor on, which stays where it is.
    fn blank(&mut self, cells: usize) {
        self.set_pen(self.state.pen.unwrap_or_default().for_erasing());
        let mut erase = Short::new();
        erase.byte(0x1b);
        erase.byte(b'[');
        erase.number(u16::try_from(cells).unwrap_or(u16::MAX));
        erase.byte(b'X');
        self.out.extend_from_slice(erase.bytes());
    }

    /// Erases the tail of a line, if any of it is to be.
    fn erase(&mut self, cells: &[Cell], tail: &[u16], y: u16) {
        let Some(&x) = tail.first() else { return };
        let there = |at: Position| at.y == y && at.x <= x && usize::from(at.x) >= blank_from(cells);
        if !self.state.at.is_some_and(there) {
            self.jump(Position { x, y });
        }
        self.set_pen(self.state.pen.unwrap_or_default().for_erasing());
        self.out.extend_from_slice(b"\x1b[K");
    }

    fn cell(&mut self, cell: &Cell) {
        self.set_pen(self.state.pen.unwrap_or_default().for_cell(cell, self.depth));
        let symbol = printable(cell.symbol(), self.ascii);
        self.out.extend_from_slice(symbol.as_bytes());
        // Terminals disagree about the width of emoji and of combined characters, and about where the cursor is after
        // the last column; then the next move is absolute.
        let certain = cell.symbol().chars().nth(1).is_none() && cell.symbol().cell_width() == 1;
        self.state.at =
            self.state.at.filter(|at| certain && at.x + 1 < self.width).map(|at| Position { x: at.x + 1, y: at.y });
    }

    fn set_pen(&mut self, to: Pen) {
        let from = self.state.pen.unwrap_or_else(|| {
            self.out.extend_from_slice(b"\x1b[m");
            Pen::default()
        });
        from.change_to(to, self.out);
        self.state.pen = Some(to);
    }

    /// Moves to `to`, writing the cells in between again where that is no longer than jumping.
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
                    && cell.symbol().cell_width() == 1
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

    /// The end of a frame: the pen goes back to plain, so that what others write, or a terminal shows while it is
    /// resized, is not painted; then the cursor.
    fn finish(&mut self, cursor: Option<Position>, area: Rect) {
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

/// The shortest sequence that brings the cursor from `at` to `to`. No line feeds: they would depend on the output
/// flags of the line discipline, which are not ours alone.
fn jump(at: Option<Position>, to: Position) -> Short {
    let mut absolute = Short::new();
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
    let mut relative = Short::new();
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

/// A relative move of `n` cells.
fn step(out: &mut Short, n: u16, direction: u8) {
    out.byte(0x1b);
    out.byte(b'[');
    if n > 1 {
        out.number(n);
    }
    out.byte(direction);
}

#[cfg(test)]
mod tests;
