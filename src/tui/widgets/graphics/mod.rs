//! Draws the curves of charts as images in terminals that support the kitty graphics protocol.
//!
//! Support is determined from environment variables only: a query to the terminal takes a round trip, and a late reply
//! would be read as key presses. Axes, labels, bounds and cursors stay text; the image lies below the text and shows
//! only the curves. Its pixels are sent again only when the curves change: an image that is covered, or whose view is
//! closed, is hidden and later shown again by a short command.

use std::fmt::Write as _;

use ratatui::layout::{Rect, Size};

use crate::theme::color::ColorDepth;
use crate::tui::runtime::clipboard::{Multiplexer, base64};
use atlas_report::chart::sheet::Sheet;

/// Image protocol of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Graphics {
    /// None: curves are braille.
    #[default]
    Off,
    /// The kitty graphics protocol.
    Kitty,
}

/// Environment variable that overrides the detection.
const VARIABLE: &str = "ATLAS_GRAPHICS";

impl Graphics {
    /// Detects the protocol from the environment: `ATLAS_GRAPHICS=off|kitty`, else the name of the terminal. Images are
    /// never used without colors, nor inside tmux or screen, which do not pass them on. The environment is read through
    /// `lookup`, so that it can be tested.
    ///
    /// # Errors
    ///
    /// If `ATLAS_GRAPHICS` has another value, or is `kitty` where images are not possible.
    pub fn detect(lookup: impl Fn(&str) -> Option<String>) -> Result<Graphics, String> {
        let value = |name: &str| lookup(name).unwrap_or_default();
        let (term, wanted) = (value("TERM"), value(VARIABLE));
        let between = Multiplexer::detect(&lookup) != Multiplexer::Nothing
            || term.starts_with("tmux")
            || term.starts_with("screen");
        let mono = ColorDepth::detect(&lookup) == ColorDepth::Mono;
        let named = !value("KITTY_WINDOW_ID").is_empty()
            || matches!(term.as_str(), "xterm-kitty" | "xterm-ghostty")
            || matches!(value("TERM_PROGRAM").as_str(), "WezTerm" | "ghostty");
        match wanted.as_str() {
            "off" => Ok(Graphics::Off),
            "kitty" if between => Err(format!("{VARIABLE}=kitty: not supported inside tmux and screen")),
            "kitty" if mono => Err(format!("{VARIABLE}=kitty: images need colors, which the environment disables")),
            "kitty" => Ok(Graphics::Kitty),
            "" if named && !between && !mono => Ok(Graphics::Kitty),
            "" => Ok(Graphics::Off),
            other => Err(format!("{VARIABLE} is `{other}`; expected `off` or `kitty`")),
        }
    }
}

/// A position in a chart, as fractions of its width and height from the lower left corner.
pub type Place = (f64, f64);

/// How the points of a curve are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// Joined by a line.
    Line,
    /// As bars of this width, a fraction of the chart's, for values that are words.
    Bars(f64),
}

/// A curve; a point of `None` is a gap.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Its points.
    pub points: Vec<Option<Place>>,
    /// How they are drawn.
    pub shape: Shape,
    /// Red, green, blue.
    pub color: [u8; 3],
}

/// The curves of a chart, and the cells below which they are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// The cells.
    pub area: Rect,
    /// The curves, the last on top.
    pub curves: Vec<Curve>,
}

/// Maximum number of pixels of an image. A larger chart is rendered at this size and scaled up by the terminal.
const MAX_PIXELS: f64 = 1.0e6;
/// Size of a cell in pixels if the terminal device does not report it.
const DEFAULT_CELL: Size = Size { width: 10, height: 20 };
/// Maximum number of points of a line for which each point is marked.
const MAX_MARKED_POINTS: usize = 40;

impl Chart {
    /// Renders the image as PNG. `cell` is the size of a cell in pixels.
    fn paint(&self, cell: Size) -> Option<Vec<u8>> {
        let full = [self.area.width * cell.width, self.area.height * cell.height].map(f64::from);
        let scale = (MAX_PIXELS / (full[0] * full[1])).sqrt().min(1.0);
        let [width, height] = full.map(|side| (side * scale).floor().max(1.0));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most `MAX_PIXELS`")]
        let mut sheet = Sheet::clear(width as usize, height as usize);
        // Lines are as thick as a braille dot is wide.
        let half = (width / f64::from(self.area.width) / 8.0).max(0.75);
        let at = |(x, y): Place| {
            (
                (x * width).clamp(half, (width - half).max(half)),
                ((1.0 - y) * height).clamp(half, (height - half).max(half)),
            )
        };
        let inside = |(x, y): &Place| (0.0..=1.0).contains(x) && (0.0..=1.0).contains(y);
        for curve in &self.curves {
            match curve.shape {
                Shape::Line => {
                    for pair in curve.points.windows(2) {
                        if let [Some(from), Some(to)] = pair
                            && inside(from)
                            && inside(to)
                        {
                            sheet.line(at(*from), at(*to), half, curve.color);
                        }
                    }
                    // With several curves, letters mark the points instead.
                    let marked = self.curves.len() == 1 && curve.points.len() <= MAX_MARKED_POINTS;
                    let radius = if marked { 2.5 * half } else { half };
                    for point in curve.points.iter().flatten().filter(|point| inside(point)) {
                        sheet.ring(at(*point), radius, 0.0, curve.color);
                    }
                }
                Shape::Bars(wide) => {
                    for (x, y) in curve.points.iter().flatten().filter(|point| inside(point)) {
                        let (left, right) = ((x - 0.5 * wide) * width, (x + 0.5 * wide) * width);
                        sheet.rectangle((left, (1.0 - y) * height), (right, height), curve.color);
                    }
                }
            }
        }
        sheet.to_png().ok()
    }
}

/// Maximum number of images on the screen. Further charts are not sent.
const MAX_IMAGES: usize = 4;
/// Id of the first image; the others follow. Other programs number theirs from 1.
const FIRST_ID: usize = 0x0061_746c;
/// Bytes of base64 in one command of the protocol.
const PIECE: usize = 4096;

/// The command that deletes an image and its data.
fn delete(out: &mut String, index: usize) {
    // `q=2` suppresses the reply, which would be read as key presses.
    let _ = write!(out, "\x1b_Ga=d,d=I,i={},q=2\x1b\\", FIRST_ID + index);
}

/// Deletes all images. The string terminator comes first: a frame may have been cut off within an image.
#[must_use]
pub fn deletion() -> String {
    let mut out = "\x1b\\".to_owned();
    (0..MAX_IMAGES).for_each(|index| delete(&mut out, index));
    out
}

/// An image stored in the terminal.
#[derive(Debug)]
struct Sent {
    chart: Chart,
    shown: bool,
}

/// The images stored in a terminal, by id. One that is covered by a dialog, or whose view was left, is hidden: the
/// terminal keeps its pixels, and a short command shows it again.
#[derive(Debug, Default)]
pub struct Images {
    sent: [Option<Sent>; MAX_IMAGES],
    /// Slot from which a hidden image to replace is searched if no slot is free.
    next: usize,
}

impl Images {
    /// Returns the bytes that make the terminal show exactly the images of these charts; without `charts`, those that
    /// it shows now. `cleared` states that a full repaint has removed all images.
    pub fn show(&mut self, charts: Option<Vec<Chart>>, cleared: bool, cell: Option<Size>) -> Vec<u8> {
        let shown = || self.sent.iter().flatten().filter(|sent| sent.shown).map(|sent| sent.chart.clone());
        let mut wanted = charts.unwrap_or_else(|| shown().collect());
        wanted.truncate(MAX_IMAGES);
        let mut out = String::new();
        for (index, slot) in self.sent.iter_mut().enumerate() {
            match slot {
                Some(_) if cleared => {
                    delete(&mut out, index);
                    *slot = None;
                }
                Some(sent) if sent.shown && !wanted.contains(&sent.chart) => {
                    let _ = write!(out, "\x1b_Ga=d,d=i,i={},q=2\x1b\\", FIRST_ID + index);
                    sent.shown = false;
                }
                _ => {}
            }
        }
        for chart in wanted {
            let known =
                self.sent.iter_mut().enumerate().find_map(|(index, slot)| {
                    slot.as_mut().filter(|sent| sent.chart == chart).map(|sent| (index, sent))
                });
            if let Some((index, sent)) = known {
                if !std::mem::replace(&mut sent.shown, true) {
                    show_stored(&mut out, &chart, index);
                }
                continue;
            }
            let index = self.place();
            let Some(slot) = self.sent.get_mut(index) else { continue };
            if slot.take().is_some() {
                delete(&mut out, index);
            }
            if let Some(image) = place(&chart, index, cell.unwrap_or(DEFAULT_CELL)) {
                out.push_str(&image);
                *slot = Some(Sent { chart, shown: true });
            }
        }
        out.into_bytes()
    }

    /// A free slot, else one whose image is hidden, the oldest first. There is always one, because at most `MAX_IMAGES`
    /// images are shown.
    fn place(&mut self) -> usize {
        let turn = (self.next..self.next + MAX_IMAGES).map(|place| place % MAX_IMAGES);
        let of = |place: usize| self.sent.get(place).and_then(Option::as_ref);
        let free = (0..MAX_IMAGES).find(|place| of(*place).is_none());
        let hidden = || { turn }.find(|place| of(*place).is_some_and(|sent| !sent.shown));
        let found = free.or_else(hidden).unwrap_or_default();
        self.next = (found + 1) % MAX_IMAGES;
        found
    }
}

/// The control keys of a command that places an image below the text, without a reply and without moving the cursor.
fn placement_keys(chart: &Chart, index: usize) -> String {
    let Rect { width, height, .. } = chart.area;
    format!("i={},p=1,c={width},r={height},z=-1,C=1,q=2", FIRST_ID + index)
}

/// Shows an image stored in the terminal and restores the cursor position.
fn show_stored(out: &mut String, chart: &Chart, index: usize) {
    let Rect { x, y, .. } = chart.area;
    let _ = write!(out, "\x1b7\x1b[{};{}H\x1b_Ga=p,{}\x1b\\\x1b8", y + 1, x + 1, placement_keys(chart, index));
}

/// The commands that send an image and place it below the cells of its chart. They restore the cursor position.
fn place(chart: &Chart, index: usize, cell: Size) -> Option<String> {
    let Rect { x, y, .. } = chart.area;
    if chart.area.is_empty() {
        return None;
    }
    let data = base64(&chart.paint(cell)?);
    let mut out = format!("\x1b7\x1b[{};{}H", y + 1, x + 1);
    // Base64 is ASCII, so that any index is a boundary.
    let pieces = data.as_bytes().chunks(PIECE);
    let last = pieces.len().saturating_sub(1);
    for (number, piece) in pieces.enumerate() {
        let more = u8::from(number != last);
        let keys = match number {
            0 => format!("a=T,f=100,{},m={more}", placement_keys(chart, index)),
            _ => format!("m={more},q=2"),
        };
        let _ = write!(out, "\x1b_G{keys};{}\x1b\\", String::from_utf8_lossy(piece));
    }
    out.push_str("\x1b8");
    Some(out)
}

#[cfg(test)]
mod tests;
