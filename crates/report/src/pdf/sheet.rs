//! Pages that are filled from top to bottom, and the resulting file.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::{Content, Filter, Finish as _, Name, Pdf, Rect, Ref, Str, TextStr};

use super::font::{Font, encode};
use crate::chart::drawing::{Anchor, Drawing, Ink, Item};
use crate::chart::png::color;

/// Width and height of A4, points.
const PAGE: (f32, f32) = (595.0, 842.0);
/// Margin on each side, points.
const MARGIN: f32 = 42.0;
/// Height reserved for the footer with the page number, points.
const FOOT: f32 = 30.0;
/// Width of the text area.
pub(super) const WIDTH: f32 = PAGE.0 - 2.0 * MARGIN;
/// Height of the text area of a page.
pub(super) const HEIGHT: f32 = PAGE.1 - 2.0 * MARGIN - FOOT;

/// Red, green and blue from 0 to 1.
pub(super) type Color = [f32; 3];
pub(super) const BLACK: Color = [0.13; 3];
pub(super) const GRAY: Color = [0.45; 3];
pub(super) const PALE: Color = [0.95; 3];
pub(super) const RULE: Color = [0.8; 3];

/// Pages under construction. Coordinates are relative to the left margin and the top of the text area.
pub(super) struct Sheets {
    pages: Vec<Content>,
    now: Content,
    /// Height of the current page that is already filled.
    pub(super) used_height: f32,
}

impl Sheets {
    /// Starts with one empty page.
    pub(super) fn new() -> Sheets {
        Sheets { pages: Vec::new(), now: Content::new(), used_height: 0.0 }
    }

    /// Begins a new page if less than `height` is left on the current one.
    pub(super) fn ensure_space(&mut self, height: f32) {
        if self.used_height + height > HEIGHT && self.used_height > 0.0 {
            self.pages.push(std::mem::replace(&mut self.now, Content::new()));
            self.used_height = 0.0;
        }
    }

    /// Writes text with its baseline at `at`.
    pub(super) fn text(&mut self, font: Font, size: f32, color: Color, at: (f32, f32), text: &[u8]) {
        let [red, green, blue] = color;
        let (x, y) = place(at);
        self.now.set_fill_rgb(red, green, blue).begin_text().set_font(font.name(), size);
        self.now.next_line(x, y).show(Str(text)).end_text();
    }

    /// Fills a rectangle with its upper left corner at `at`.
    pub(super) fn fill(&mut self, color: Color, at: (f32, f32), (width, height): (f32, f32)) {
        let [red, green, blue] = color;
        let (x, y) = place(at);
        self.now.set_fill_rgb(red, green, blue).rect(x, y - height, width, height).fill_nonzero();
    }

    /// Draws a polyline.
    pub(super) fn line(&mut self, color: Color, thick: f32, points: &[(f32, f32)]) {
        let [red, green, blue] = color;
        let Some((first, others)) = points.split_first() else { return };
        let (x, y) = place(*first);
        self.now.set_stroke_rgb(red, green, blue).set_line_width(thick).move_to(x, y);
        for point in others {
            let (x, y) = place(*point);
            self.now.line_to(x, y);
        }
        self.now.stroke();
    }

    /// Draws a circle, filled or outlined.
    fn disc(&mut self, color: Color, at: (f32, f32), radius: f32, filled: bool) {
        // Four Bézier curves approximate the circle to three digits with this factor.
        let pull = 0.552_3 * radius;
        let ((x, y), [red, green, blue]) = (place(at), color);
        self.now.set_fill_rgb(red, green, blue).set_stroke_rgb(red, green, blue).set_line_width(1.0);
        self.now.move_to(x + radius, y);
        for (dx, dy) in [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)] {
            // The direction (dx, dy) turned by 90 degrees.
            let (ex, ey): (f32, f32) = (-dy, dx);
            let near = (x + dx * radius + ex * pull, y + dy * radius + ey * pull);
            let far = (x + ex * radius + dx * pull, y + ey * radius + dy * pull);
            self.now.cubic_to(near.0, near.1, far.0, far.1, x + ex * radius, y + ey * radius);
        }
        if filled {
            self.now.fill_nonzero();
        } else {
            self.now.stroke();
        }
    }

    /// Height of a chart on the page, including the space below it.
    pub(super) fn height(drawing: &Drawing) -> f32 {
        let drawing = drawing.clone().complete();
        drawing.height as f32 * Sheets::scale(&drawing) + 12.0
    }

    fn scale(drawing: &Drawing) -> f32 {
        (WIDTH / drawing.width as f32).min(HEIGHT / drawing.height.max(1.0) as f32).min(1.0)
    }

    /// Draws a chart with heading and legend over the width of the text area, scaled down if it is too high for a page.
    pub(super) fn chart(&mut self, drawing: Drawing) {
        let drawing = drawing.complete();
        let scale = Sheets::scale(&drawing);
        let height = scale * drawing.height as f32;
        self.ensure_space(height + 12.0);
        let top = self.used_height;
        let at = |x: f64, y: f64| (scale * x as f32, top + scale * y as f32);
        for item in &drawing.items {
            match item {
                Item::Line(ink, points) => {
                    let thick = if matches!(ink, Ink::Color(_)) { 2.0 } else { 0.8 } * scale;
                    let points: Vec<(f32, f32)> = points.iter().map(|(x, y)| at(*x, *y)).collect();
                    self.line(shade(*ink), thick, &points);
                }
                Item::Dot(ink, x, y) => self.disc(shade(*ink), at(*x, *y), 3.0 * scale, true),
                Item::Circle(ink, x, y) => self.disc(shade(*ink), at(*x, *y), 7.0 * scale, false),
                Item::Rectangle(ink, [x, y, wide, high], _) => {
                    self.fill(shade(*ink), at(*x, *y), (scale * *wide as f32, scale * *high as f32));
                }
                Item::Text(ink, anchor, x, y, text) => {
                    let (text, size) = (encode(text), 12.0 * scale);
                    let wide = Font::Regular.width(&text, size);
                    let (x, y) = at(*x, *y);
                    let left = match anchor {
                        Anchor::Start => x,
                        Anchor::Middle => x - 0.5 * wide,
                        Anchor::End => x - wide,
                    };
                    self.text(Font::Regular, size, shade(*ink), (left, y), &text);
                }
            }
        }
        self.used_height = top + height + 12.0;
    }

    /// Finishes the file, with title and page number in the footer of each page.
    pub(super) fn file(mut self, title: &str) -> Vec<u8> {
        self.pages.push(std::mem::replace(&mut self.now, Content::new()));
        let mut numbers = (1..).map(Ref::new);
        let mut next = || numbers.next().unwrap_or(Ref::new(i32::MAX));
        let (catalog, tree, info) = (next(), next(), next());
        let fonts = Font::ALL.map(|font| (font, next()));
        let pages: Vec<(Ref, Ref)> = self.pages.iter().map(|_| (next(), next())).collect();
        let mut pdf = Pdf::new();
        pdf.catalog(catalog).pages(tree);
        pdf.document_info(info).title(TextStr(title)).producer(TextStr("Atlas Fabric"));
        let count = i32::try_from(pages.len()).unwrap_or(i32::MAX);
        pdf.pages(tree).kids(pages.iter().map(|(page, _)| *page)).count(count);
        for (font, id) in fonts {
            pdf.type1_font(id).base_font(font.base()).encoding_predefined(Name(b"WinAnsiEncoding"));
        }
        for (number, ((page, content), written)) in pages.iter().zip(self.pages).enumerate() {
            let mut written = Sheets { pages: Vec::new(), now: written, used_height: HEIGHT };
            written.footer(title, &format!("{} / {count}", number + 1));
            let mut entry = pdf.page(*page);
            entry.media_box(Rect::new(0.0, 0.0, PAGE.0, PAGE.1)).parent(tree).contents(*content);
            let mut resources = entry.resources();
            let mut known = resources.fonts();
            for (font, id) in fonts {
                known.pair(font.name(), id);
            }
            known.finish();
            resources.finish();
            entry.finish();
            let text = written.now.finish();
            match compress(&text) {
                Some(packed) => drop(pdf.stream(*content, &packed).filter(Filter::FlateDecode)),
                None => drop(pdf.stream(*content, &text)),
            }
        }
        pdf.finish()
    }

    fn footer(&mut self, title: &str, number: &str) {
        let (mut title, number) = (encode(title), encode(number));
        while Font::Regular.width(&title, 8.0) > 0.8 * WIDTH {
            title.pop();
        }
        let y = HEIGHT + FOOT - 4.0;
        let right = WIDTH - Font::Regular.width(&number, 8.0);
        self.text(Font::Regular, 8.0, GRAY, (0.0, y), &title);
        self.text(Font::Regular, 8.0, GRAY, (right, y), &number);
    }
}

fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

/// Converts coordinates relative to the text area to those of PDF, whose origin is at the bottom.
fn place((x, down): (f32, f32)) -> (f32, f32) {
    (MARGIN + x, PAGE.1 - MARGIN - down)
}

fn shade(ink: Ink) -> Color {
    color(ink).map(|part| f32::from(part) / 255.0)
}
