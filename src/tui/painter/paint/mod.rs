//! Writes a ratatui buffer to the terminal with few bytes.
//!
//! ratatui's own backends write each changed cell separately: an absolute move where cells are not adjacent, colors as
//! `38;5;n`, two resets per frame, and cursor commands even if nothing changed. The painter compares the whole picture
//! with a copy of what the terminal shows. It rewrites the cells between two changes where that is shorter than a jump,
//! erases the rest of a line with three bytes, leaves out invisible changes, and sends **nothing** if nothing changed.
//! A frame is encoded in two orders, row by row and color by color, and the shorter encoding is sent: with many
//! changes, jumping to the next text of the same color takes fewer bytes than changing the color.
//!
//! The painter never queries the terminal. It also enforces the color depth, so that no theme can send what the
//! terminal or `NO_COLOR` forbids, and removes control characters, so that no text from a file can reach the terminal
//! as a command.

mod encoder;

use std::io::{self, Write};
use std::ops::Range;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect};

use crate::theme::color::ColorDepth;
use crate::tui::painter::cells::{looks_same, width_of};
use crate::tui::painter::frame_writer::FrameWriter;
use crate::tui::painter::pen::Pen;
use encoder::{Encoder, Piece, State, Work};

/// Minimum number of changed cells for which the color-by-color order is tried.
const FEWEST_GROUPED: usize = 24;

/// Paints whole pictures on a terminal through a [`FrameWriter`].
#[derive(Debug)]
pub struct Painter<W> {
    writer: FrameWriter<W>,
    depth: ColorDepth,
    ascii: bool,
    /// Content of the terminal, before colors are reduced. Cells covered by a wide character have an empty symbol.
    shown: Buffer,
    /// Known state of the terminal.
    state: State,
    /// Changed columns, row by row. This buffer and those below are kept to avoid allocations.
    changed: Vec<u16>,
    /// Rows with changes, and their range in `changed`.
    rows: Vec<(u16, Range<usize>)>,
    /// The changed cells and runs of blanks, color by color.
    grouped: Vec<Piece>,
    /// The frame encoded in the other order.
    other: Vec<u8>,
}

impl<W: Write> Painter<W> {
    /// Creates a painter for `out` that assumes nothing about the state of the terminal.
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

    /// Returns the inner writer, for bytes outside of frames. Pushed mode switches are sent with the next frame.
    pub fn writer_mut(&mut self) -> &mut FrameWriter<W> {
        &mut self.writer
    }

    /// Returns the inner writer.
    #[must_use]
    pub fn writer(&self) -> &FrameWriter<W> {
        &self.writer
    }

    /// Sets the color depth. Takes full effect with the next full repaint.
    pub fn set_depth(&mut self, depth: ColorDepth) {
        self.depth = depth;
    }

    /// Sets whether symbols outside ASCII are shown as `?`, for locales that would show them as garbage.
    pub fn set_ascii(&mut self, ascii: bool) {
        self.ascii = ascii;
    }

    /// Discards the known state of the terminal after something else wrote to it. The next frame is painted in full.
    pub fn forget(&mut self) {
        self.shown = Buffer::empty(Rect::ZERO);
        self.state = State::default();
    }

    /// Whether the next frame clears a screen of this size and paints all of it.
    #[must_use]
    pub fn clears(&self, area: Rect) -> bool {
        self.shown.area != area
    }

    /// Shows `picture` and the cursor with one write, or without a write if nothing changed. Returns the number of
    /// bytes sent.
    ///
    /// # Errors
    ///
    /// Returns the error of the writer. The next picture is then painted in full.
    pub fn paint(&mut self, picture: &Buffer, cursor: Option<Position>) -> io::Result<usize> {
        self.paint_parts(picture, &[picture.area], cursor)
    }

    /// Like [`Painter::paint`], for a picture that differs from the previous one only within `parts`; other cells are
    /// not compared. If the terminal does not show the previous picture, everything is painted.
    ///
    /// # Errors
    ///
    /// As [`Painter::paint`].
    #[inline(never)]
    pub fn paint_parts(&mut self, picture: &Buffer, parts: &[Rect], cursor: Option<Position>) -> io::Result<usize> {
        let mut parts = parts;
        let mut screen = Encoder {
            out: self.writer.frame_mut(),
            depth: self.depth,
            ascii: self.ascii,
            width: picture.area.width,
            state: self.state,
        };
        let whole = self.shown.area != picture.area;
        // On an empty screen the copy is made after the write, to reduce the delay for the user. Without wide
        // characters the copy equals the picture.
        let late = whole && picture.content.iter().all(|cell| width_of(cell.symbol()) == 1);
        if whole {
            // A resized terminal has reflowed its contents in an unknown way.
            self.shown = Buffer::empty(if late { Rect::ZERO } else { picture.area });
            parts = std::slice::from_ref(&picture.area);
            screen.state.at = None;
            screen.set_pen(Pen::default());
            screen.out.extend_from_slice(b"\x1b[2J");
        }
        let width = usize::from(picture.area.width).max(1);
        self.changed.clear();
        self.rows.clear();
        if late {
            for (wanted, y) in picture.content.chunks(width).zip(0..) {
                let from = self.changed.len();
                let seen = |(cell, _): &(&Cell, u16)| !looks_same(cell, cell.symbol(), &Cell::EMPTY);
                self.changed.extend(wanted.iter().zip(0..).filter(seen).map(|(_, x)| x));
                if self.changed.len() > from {
                    self.rows.push((y, from..self.changed.len()));
                }
            }
            parts = &[];
        }
        for part in parts {
            let columns = usize::from(part.x)..usize::from(part.right());
            let rows = self.shown.content.chunks_mut(width).zip(picture.content.chunks(width)).zip(0..);
            for ((shown, wanted), y) in rows.skip(part.y.into()).take(part.height.into()) {
                let from = self.changed.len();
                if let (Some(shown), Some(wanted)) = (shown.get_mut(columns.clone()), wanted.get(columns.clone())) {
                    take(shown, wanted, part.x, &mut self.changed);
                }
                if self.changed.len() > from {
                    self.rows.push((y, from..self.changed.len()));
                }
            }
        }
        let cells = if late { &picture.content } else { &self.shown.content };
        let work = Work { cells, width, changed: &self.changed, rows: &self.rows };
        // Both orders start from the same state, after the bytes that are already in the frame.
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
        let sent = self.writer.commit().inspect_err(|_| self.forget())?;
        if late {
            self.shown.clone_from(picture);
        }
        Ok(sent)
    }
}

/// Copies a row of the picture, from column `from` on, into the copy of the terminal, and collects the columns that
/// change visibly.
#[inline(never)]
fn take(shown: &mut [Cell], wanted: &[Cell], from: u16, changed: &mut Vec<u16>) {
    let mut covered = 0;
    for ((shown, wanted), x) in shown.iter_mut().zip(wanted).zip(from..) {
        if covered > 0 {
            covered -= 1;
            *shown = Cell::new("");
            continue;
        }
        let symbol = wanted.symbol();
        // Most symbols are one byte, which takes one column.
        covered = if symbol.len() == 1 { 0 } else { width_of(symbol).saturating_sub(1) };
        if !looks_same(wanted, symbol, shown) {
            shown.clone_from(wanted);
            changed.push(x);
        }
    }
}

#[cfg(test)]
mod tests;
