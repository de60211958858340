//! Plots of curves over two axes, in braille or as an image below the text: lines, labeled ticks, a cursor, and the
//! point of the scenario. Ranges that cannot run are shaded. Series differ by color and by letter.

use crate::theme::Role;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::widgets::draw::Canvas;
pub(in crate::tui) use crate::tui::widgets::graphics::Shape;
use crate::tui::widgets::graphics::{Chart, Curve, Place};
use ratatui::layout::Rect;

use atlas_report::chart::text::{Raster, place};

/// Colors of series, in turn.
const COLORS: [Role; 6] = [Role::Bar1, Role::Bar2, Role::Bar3, Role::Bar4, Role::Bar5, Role::Bar6];
/// Series with more points than this only have a letter at the last point.
const MAX_LETTERED_POINTS: usize = 16;

/// A series of points; `None` is a gap.
pub(in crate::tui) struct Series {
    pub(in crate::tui) points: Vec<Option<Place>>,
    /// Name of the series, drawn at its end if there are several series.
    pub(in crate::tui) name: String,
    /// How the points are drawn.
    pub(in crate::tui) shape: Shape,
}

/// A bound drawn as a line, with its name.
pub(in crate::tui) struct Limit {
    /// Whether it bounds the horizontal axis; otherwise the vertical one.
    pub(in crate::tui) across: bool,
    /// Its position.
    pub(in crate::tui) at: f64,
    /// Its text.
    pub(in crate::tui) name: String,
}

/// A plot.
pub(in crate::tui) struct Plot {
    /// The vertical axis.
    pub(in crate::tui) up: String,
    /// The horizontal axis.
    pub(in crate::tui) across: String,
    /// Positions and labels of the ticks, across and up.
    pub(in crate::tui) ticks: [Vec<(f64, String)>; 2],
    /// The curves.
    pub(in crate::tui) series: Vec<Series>,
    /// Ranges of the horizontal axis where nothing can run.
    pub(in crate::tui) shaded: Vec<(f64, f64)>,
    /// Earlier points of the scenario.
    pub(in crate::tui) trail: Vec<Place>,
    /// Bounds.
    pub(in crate::tui) limits: Vec<Limit>,
    /// The point of the scenario.
    pub(in crate::tui) highlighted: Option<Place>,
    /// The cursor: a line, with a point on it if the curve has one.
    pub(in crate::tui) cursor: Option<(f64, Option<f64>)>,
}

/// Returns the color of a series.
pub(in crate::tui) fn color(series: usize) -> Role {
    COLORS.get(series % COLORS.len()).copied().unwrap_or(Role::Bar1)
}

/// Returns the letter of a series.
pub(in crate::tui) fn letter(series: usize) -> char {
    char::from_u32(u32::from('a') + (series % 26) as u32).unwrap_or('a')
}

/// Formats the label of a tick without trailing zeros: `50 s` for `50.00 s`, `0` for `0 ms`.
pub(in crate::tui) fn short(label: &str) -> String {
    let (number, unit) = label.split_once(' ').unwrap_or((label, ""));
    if number.contains('.') && !number.contains('e') {
        let number = number.trim_end_matches('0').trim_end_matches('.');
        return format!("{number} {unit}").trim_end().to_owned();
    }
    if number == "0" { number.to_owned() } else { label.to_owned() }
}

impl Plot {
    /// Returns the number of columns to the left of the plot area.
    fn margin(&self) -> u16 {
        let [_, up] = &self.ticks;
        u16::try_from(up.iter().map(|(_, label)| short(label).width()).max().unwrap_or_default() + 1).unwrap_or(1)
    }

    /// Returns the area of the plot without its axes. Positions of clicks are relative to it.
    pub(in crate::tui) fn picture(&self, area: Rect) -> Rect {
        let margin = self.margin() + 1;
        Rect {
            x: area.x + margin.min(area.width),
            y: area.y + 1,
            width: area.width.saturating_sub(margin + 1),
            height: area.height.saturating_sub(4),
        }
    }

    /// Whether the plot fits in an area.
    pub(in crate::tui) fn fits(&self, area: Rect) -> bool {
        let picture = self.picture(area);
        picture.width >= 8 && picture.height >= 3
    }

    /// Draws the plot with its axes: one line above the plot area, three below.
    pub(in crate::tui) fn draw(&self, canvas: &mut Canvas<'_>, area: Rect) {
        let picture = self.picture(area);
        let dim = canvas.role(Role::Dim);
        if !self.fits(area) {
            if area.height > 0 {
                canvas.text(area.x, area.y, area.width, "enlarge the terminal to see the chart", dim);
            }
            return;
        }
        let end = canvas.text(area.x, area.y, area.width, &self.up, dim);
        if !self.shaded.is_empty() {
            let legend = format!("{} cannot run", canvas.glyphs.shades[1]);
            canvas.right(end, area.y, area.right().saturating_sub(end), &legend, dim);
        }
        self.shade(canvas, picture);
        self.axes(canvas, area, picture);
        self.curves(canvas, picture);
        self.limits(canvas, picture);
        self.names(canvas, picture);
        self.marks(canvas, picture);
        self.limit_names(canvas, picture);
        if canvas.has_images() {
            self.add_image(canvas, picture);
        }
    }

    /// Passes the curves on to be drawn as an image. They have been drawn in braille before, so that labels avoid them.
    fn add_image(&self, canvas: &mut Canvas<'_>, picture: Rect) {
        // The first series is on top, as in braille.
        let series = self.series.iter().enumerate().rev();
        let curves = series.map(|(index, series)| Curve {
            points: series.points.clone(),
            shape: series.shape,
            color: canvas.rgb(color(index)),
        });
        let chart = Chart { area: picture, curves: curves.collect() };
        canvas.image(chart);
    }

    fn shade(&self, canvas: &mut Canvas<'_>, picture: Rect) {
        let (glyph, style) = (canvas.glyphs.shades[1], canvas.role(Role::Border));
        for (from, to) in &self.shaded {
            let columns = usize::from(picture.width);
            for column in place(*from, columns)..=place(*to, columns) {
                for y in picture.top()..picture.bottom() {
                    canvas.text(picture.x + column as u16, y, 1, glyph, style);
                }
            }
        }
    }

    fn axes(&self, canvas: &mut Canvas<'_>, area: Rect, picture: Rect) {
        let (border, dim) = (canvas.role(Role::Border), canvas.role(Role::Dim));
        let [horizontal, vertical, _, _, corner, _] = canvas.glyphs.border;
        let (notch_left, notch_below) = if canvas.glyphs.is_ascii() { ("+", "+") } else { ("┤", "┬") };
        let [across, up] = &self.ticks;
        let floor = picture.bottom();
        for y in picture.top()..floor {
            canvas.text(picture.x - 1, y, 1, vertical, border);
        }
        for (share, label) in up {
            let y = picture.y + place(1.0 - share, usize::from(picture.height)) as u16;
            canvas.text(picture.x - 1, y, 1, notch_left, border);
            canvas.right(area.x, y, picture.x - 1 - area.x, &short(label), dim);
        }
        canvas.text(picture.x - 1, floor, 1, corner, border);
        for x in picture.left()..picture.right() {
            canvas.text(x, floor, 1, horizontal, border);
        }
        let mut free = area.x;
        for (share, label) in across {
            let label = short(label);
            let x = picture.x + place(*share, usize::from(picture.width)) as u16;
            let width = u16::try_from(label.width()).unwrap_or(u16::MAX);
            let start = (x + 1).saturating_sub(width.div_ceil(2)).max(area.x).min(area.right().saturating_sub(width));
            if start >= free && start + width <= area.right() {
                canvas.text(x, floor, 1, notch_below, border);
                canvas.text(start, floor + 1, width, &label, dim);
                free = start + width + 1;
            }
        }
        canvas.right(area.x, floor + 2, area.width, &self.across, dim);
    }

    fn curves(&self, canvas: &mut Canvas<'_>, picture: Rect) {
        let (columns, rows) = (usize::from(picture.width), usize::from(picture.height));
        let mut raster = Raster::new(columns, rows);
        // The first series is the scenario's own and is drawn on top.
        for (index, series) in self.series.iter().enumerate().rev() {
            match series.shape {
                Shape::Line => {
                    for pair in series.points.windows(2) {
                        if let [Some(from), Some(to)] = pair {
                            raster.line(*from, *to, index);
                        }
                    }
                    series.points.iter().flatten().for_each(|point| raster.dot(*point, index));
                }
                Shape::Bars(width) => {
                    let strokes = (width * 2.0 * f64::from(picture.width)).round().max(1.0);
                    for (across, up) in series.points.iter().flatten() {
                        for stroke in 0..strokes as u32 {
                            let x = across + width * ((f64::from(stroke) + 0.5) / strokes - 0.5);
                            raster.line((x, 0.0), (x, *up), index);
                        }
                    }
                }
            }
        }
        for row in 0..rows {
            for column in 0..columns {
                let Some((dots, series)) = raster.cell(column, row) else { continue };
                let glyph = if canvas.glyphs.has_braille() { dots } else { letter(series) };
                let style = canvas.role(color(series));
                canvas.text(
                    picture.x + column as u16,
                    picture.y + row as u16,
                    1,
                    glyph.encode_utf8(&mut [0; 4]),
                    style,
                );
            }
        }
        if self.series.len() < 2 {
            return;
        }
        // Draw a letter at the end of every series, then at its other points, unless another letter is next to it.
        let cells = |series: &Series| {
            let at = |(across, up): &Place| {
                let x = picture.x + place(*across, columns) as u16;
                (x, picture.y + place(1.0 - up, rows) as u16)
            };
            series.points.iter().flatten().rev().map(at).collect::<Vec<(u16, u16)>>()
        };
        let mut taken: Vec<(u16, u16)> = Vec::new();
        let mut letter_at = |canvas: &mut Canvas<'_>, index: usize, at: (u16, u16)| {
            let free = taken.iter().all(|other| at.1 != other.1 || at.0.abs_diff(other.0) > 2);
            if free {
                taken.push(at);
                let style = canvas.role(color(index));
                canvas.text(at.0, at.1, 1, letter(index).encode_utf8(&mut [0; 4]), style);
            }
            free
        };
        let all: Vec<Vec<(u16, u16)>> = self.series.iter().map(cells).collect();
        let mut rest = Vec::new();
        for (index, cells) in all.iter().enumerate() {
            let end = cells.iter().position(|at| letter_at(canvas, index, *at)).map_or(cells.len(), |end| end + 1);
            if cells.len() <= MAX_LETTERED_POINTS {
                rest.push((index, cells.get(end..).unwrap_or_default()));
            }
        }
        for (index, cells) in rest {
            for at in cells {
                letter_at(canvas, index, *at);
            }
        }
    }

    /// Draws lines at bounds, in blank cells.
    fn limits(&self, canvas: &mut Canvas<'_>, picture: Rect) {
        let style = canvas.role(Role::Warn);
        let [horizontal, vertical, ..] = canvas.glyphs.border;
        for limit in &self.limits {
            let (line, glyph) = if limit.across {
                let x = picture.x + place(limit.at, usize::from(picture.width)) as u16;
                (Rect { x, width: 1, ..picture }, vertical)
            } else {
                let y = picture.y + place(1.0 - limit.at, usize::from(picture.height)) as u16;
                (Rect { y, height: 1, ..picture }, horizontal)
            };
            for at in line.positions() {
                if canvas.is_blank(at.x, at.y) {
                    canvas.text(at.x, at.y, 1, glyph, style);
                }
            }
        }
    }

    /// Draws the names of bounds next to their lines, in blank cells.
    fn limit_names(&self, canvas: &mut Canvas<'_>, picture: Rect) {
        for limit in &self.limits {
            let name = u16::try_from(limit.name.width()).unwrap_or(u16::MAX);
            let (from, last) = (picture.x, picture.right().saturating_sub(name));
            if limit.across {
                let x = picture.x + place(limit.at, usize::from(picture.width)) as u16;
                let start = (x + 1).min(last);
                // At the top, or on the first line that is blank next to the bound.
                let free = |y: &u16| (start..start + name).all(|x| canvas.is_blank(x, *y));
                if let Some(y) = (picture.top()..picture.bottom()).find(free) {
                    self.label(canvas, (start, y), &limit.name, Role::Warn);
                }
            } else {
                let y = picture.y + place(1.0 - limit.at, usize::from(picture.height)) as u16;
                self.label(canvas, (last.max(from), y.saturating_sub(1).max(picture.y)), &limit.name, Role::Warn);
            }
        }
    }

    /// Draws the name of each series at its end, or at the last point with space next to it. Series that end close
    /// together are only named in the legend.
    fn names(&self, canvas: &mut Canvas<'_>, picture: Rect) {
        if self.series.len() < 2 {
            return;
        }
        let ends: Vec<Option<Place>> =
            self.series.iter().map(|series| series.points.iter().flatten().last().copied()).collect();
        let cell = |(across, up): Place| {
            let x = picture.x + place(across, usize::from(picture.width)) as u16;
            (x, picture.y + place(1.0 - up, usize::from(picture.height)) as u16)
        };
        let together = |one: &Place, other: &Place| {
            let (a, b) = (cell(*one), cell(*other));
            // The letters overlap if two ends are in the same cell or next to each other.
            let touch = a.1 == b.1 && a.0.abs_diff(b.0) <= 2;
            touch || ((one.0 - other.0).abs() < 0.05 && (one.1 - other.1).abs() < 0.03)
        };
        for (index, series) in self.series.iter().enumerate() {
            let Some((across, up)) = ends.get(index).copied().flatten().filter(|_| !series.name.is_empty()) else {
                continue;
            };
            let others = ends.iter().enumerate().filter(|(other, _)| *other != index);
            if others.filter_map(|(_, end)| end.as_ref()).any(|end| together(end, &(across, up))) {
                continue;
            }
            let width = u16::try_from(series.name.width()).unwrap_or(u16::MAX);
            // After a point if there is space, otherwise before it; near the end, also on blank lines above and below.
            let beside = |(x, y): (u16, u16)| [(x + 2, y), (x.saturating_sub(width + 2), y)];
            let (x, y) = cell((across, up));
            let lines = [y, y.saturating_sub(1), y + 1, y.saturating_sub(2), y + 2];
            let near = lines.into_iter().flat_map(|y| beside((x, y)));
            let on_the_way = series.points.iter().rev().flatten().flat_map(|point| beside(cell(*point)));
            let places = near.chain(on_the_way);
            let free = |(x, y): &(u16, u16)| {
                let inside =
                    *x >= picture.x && x + width <= picture.right() && (picture.top()..picture.bottom()).contains(y);
                // A blank on either side keeps names off the curves.
                let (from, to) = (x.saturating_sub(1).max(picture.x), (x + width + 1).min(picture.right()));
                inside && (from..to).all(|x| canvas.is_blank(x, *y))
            };
            let found = { places }.find(free);
            if let Some(at) = found {
                self.label(canvas, at, &series.name, color(index));
            }
        }
    }

    fn label(&self, canvas: &mut Canvas<'_>, (x, y): (u16, u16), text: &str, role: Role) {
        let style = canvas.role(role);
        let width = u16::try_from(text.width()).unwrap_or(u16::MAX);
        if (x..x.saturating_add(width)).all(|x| canvas.is_blank(x, y)) {
            canvas.text(x, y, width, text, style);
        }
    }

    fn sign(&self, canvas: &mut Canvas<'_>, picture: Rect, (across, up): Place, sign: &str, role: Role) {
        let x = picture.x + place(across, usize::from(picture.width)) as u16;
        let y = picture.y + place(1.0 - up, usize::from(picture.height)) as u16;
        let style = canvas.role(role);
        canvas.text(x, y, 1, sign, style);
    }

    fn marks(&self, canvas: &mut Canvas<'_>, picture: Rect) {
        for point in &self.trail {
            self.sign(canvas, picture, *point, canvas.glyphs.bullet, Role::Mark);
        }
        if let Some((across, point)) = self.cursor {
            let x = picture.x + place(across, usize::from(picture.width)) as u16;
            let (vertical, style) = (canvas.glyphs.border[1], canvas.role(Role::Accent));
            for y in picture.top()..picture.bottom() {
                if canvas.is_blank(x, y) {
                    canvas.text(x, y, 1, vertical, style);
                }
            }
            if let Some(here) = self.highlighted {
                self.sign(canvas, picture, here, canvas.glyphs.mark, Role::Mark);
            }
            if let Some(up) = point {
                self.sign(canvas, picture, (across, up), canvas.glyphs.changed, Role::Accent);
            }
        } else if let Some(here) = self.highlighted {
            self.sign(canvas, picture, here, canvas.glyphs.mark, Role::Mark);
        }
    }
}
