//! Curves of charts as images, in terminals that show images by the kitty graphics protocol.
//!
//! Only the environment says whether a terminal does: asking it costs a round trip, and a late answer is read as keys.
//! Axes, labels, bounds and cursors stay text; the image lies below it and has the curves alone. It is sent again only
//! when they change: an image that is covered or left is hidden, and shown again without its pixels.

use std::fmt::Write as _;

use ratatui::layout::{Rect, Size};

use super::clipboard::{Between, base64};
use super::color::ColorDepth;
use atlas_report::chart::sheet::Sheet;

/// Images that terminals display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Graphics {
    /// None: curves are braille.
    #[default]
    Off,
    /// Those of the kitty graphics protocol.
    Kitty,
}

/// The variable that overrides what the rest of the environment says.
const VARIABLE: &str = "ATLAS_GRAPHICS";

impl Graphics {
    /// What the environment says, through `lookup` so that it can be tested: `ATLAS_GRAPHICS=off|kitty`, else the name of
    /// the terminal. Never without colors, and never inside tmux or screen, which do not pass images on.
    ///
    /// # Errors
    ///
    /// If `ATLAS_GRAPHICS` has another value, or asks for what cannot be had.
    pub fn detect(lookup: impl Fn(&str) -> Option<String>) -> Result<Graphics, String> {
        let value = |name: &str| lookup(name).unwrap_or_default();
        let (term, wanted) = (value("TERM"), value(VARIABLE));
        let between =
            Between::detect(&lookup) != Between::Nothing || term.starts_with("tmux") || term.starts_with("screen");
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

/// A place in a chart, as shares of its width and height, from the lower left.
pub type Place = (f64, f64);

/// How the points of a curve are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// Joined by a line.
    Line,
    /// As bars of this width, for values that are words.
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

/// The curves of a chart, and the cells that they lie below.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// The cells.
    pub area: Rect,
    /// The curves, the last on top.
    pub curves: Vec<Curve>,
}

/// Maximum pixels of an image. A finer one is scaled by the terminal.
const MOST_PIXELS: f64 = 1.0e6;
/// Pixels of a cell where the line discipline does not say.
const USUAL_CELL: Size = Size { width: 10, height: 20 };
/// Points of a line up to which each is marked.
const MARKED: usize = 40;

impl Chart {
    /// The image as PNG, of cells that have this many pixels.
    fn paint(&self, cell: Size) -> Option<Vec<u8>> {
        let full = [self.area.width * cell.width, self.area.height * cell.height].map(f64::from);
        let scale = (MOST_PIXELS / (full[0] * full[1])).sqrt().min(1.0);
        let [width, height] = full.map(|side| (side * scale).floor().max(1.0));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most `MOST_PIXELS`")]
        let mut sheet = Sheet::clear(width as usize, height as usize);
        // As thick as a dot of braille is wide.
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
                    // Where there are several, letters mark their points.
                    let marked = self.curves.len() == 1 && curve.points.len() <= MARKED;
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

/// The most images on the screen at a time; charts beyond are not sent.
const MOST: usize = 4;
/// The id of the first image; the others follow. Other programs number from 1 on.
const FIRST_ID: usize = 0x0061_746c;
/// Bytes of base64 in one command of the protocol.
const PIECE: usize = 4096;

/// The command that deletes an image and its data.
fn delete(out: &mut String, index: usize) {
    // `q=2`: no answer, which would be read as keys.
    let _ = write!(out, "\x1b_Ga=d,d=I,i={},q=2\x1b\\", FIRST_ID + index);
}

/// Deletes all images. The string terminator comes first: a frame may have been cut off within an image.
#[must_use]
pub fn deletion() -> String {
    let mut out = "\x1b\\".to_owned();
    (0..MOST).for_each(|index| delete(&mut out, index));
    out
}

/// An image that the terminal has.
#[derive(Debug)]
struct Sent {
    chart: Chart,
    shown: bool,
}

/// The images that a terminal has, by their place among the ids. One that is covered by a dialog or left for another view
/// is hidden: the terminal keeps its pixels, and a short command shows it again.
#[derive(Debug, Default)]
pub struct Images {
    sent: [Option<Sent>; MOST],
    /// The place that the next image takes if all are taken.
    next: usize,
}

impl Images {
    /// The bytes that make a terminal show the images of these charts, or those that it shows already if absent.
    /// `cleared` says that a full repaint has removed all of them.
    pub fn show(&mut self, charts: Option<Vec<Chart>>, cleared: bool, cell: Option<Size>) -> Vec<u8> {
        let shown = || self.sent.iter().flatten().filter(|sent| sent.shown).map(|sent| sent.chart.clone());
        let mut wanted = charts.unwrap_or_else(|| shown().collect());
        wanted.truncate(MOST);
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
                    again(&mut out, &chart, index);
                }
                continue;
            }
            let index = self.place();
            let Some(slot) = self.sent.get_mut(index) else { continue };
            if slot.take().is_some() {
                delete(&mut out, index);
            }
            if let Some(image) = place(&chart, index, cell.unwrap_or(USUAL_CELL)) {
                out.push_str(&image);
                *slot = Some(Sent { chart, shown: true });
            }
        }
        out.into_bytes()
    }

    /// A place that is free, else one whose image is hidden, the oldest first. There is one: no more are shown than places.
    fn place(&mut self) -> usize {
        let turn = (self.next..self.next + MOST).map(|place| place % MOST);
        let of = |place: usize| self.sent.get(place).and_then(Option::as_ref);
        let free = (0..MOST).find(|place| of(*place).is_none());
        let hidden = || { turn }.find(|place| of(*place).is_some_and(|sent| !sent.shown));
        let found = free.or_else(hidden).unwrap_or_default();
        self.next = (found + 1) % MOST;
        found
    }
}

/// The keys that place an image of these cells below the text, without an answer and without moving the cursor.
fn keys(chart: &Chart, index: usize) -> String {
    let Rect { width, height, .. } = chart.area;
    format!("i={},p=1,c={width},r={height},z=-1,C=1,q=2", FIRST_ID + index)
}

/// Shows an image that the terminal has. The cursor is put back where it was.
fn again(out: &mut String, chart: &Chart, index: usize) {
    let Rect { x, y, .. } = chart.area;
    let _ = write!(out, "\x1b7\x1b[{};{}H\x1b_Ga=p,{}\x1b\\\x1b8", y + 1, x + 1, keys(chart, index));
}

/// The commands that send an image and place it below the cells of its chart. The cursor is put back where it was.
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
            0 => format!("a=T,f=100,{},m={more}", keys(chart, index)),
            _ => format!("m={more},q=2"),
        };
        let _ = write!(out, "\x1b_G{keys};{}\x1b\\", String::from_utf8_lossy(piece));
    }
    out.push_str("\x1b8");
    Some(out)
}

#[cfg(test)]
mod tests;
