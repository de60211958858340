//! Charts for terminals, two by four braille dots per character.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

use super::Plot;

/// Bits of the braille dots, by column and row, to be added to the first (empty) character of the Unicode block.
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
const EMPTY: u32 = 0x2800;
/// Characters of the series in ASCII mode.
const LETTERS: [char; 8] = ['o', 'x', '+', '*', '#', '@', '%', '&'];

/// Buffer of dots, two by four per character, with the series of each character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raster {
    columns: usize,
    rows: usize,
    dots: Vec<u32>,
    /// Series drawn last in each cell.
    owners: Vec<usize>,
}

impl Raster {
    /// Creates an empty raster of `columns` by `rows` characters.
    #[must_use]
    pub fn new(columns: usize, rows: usize) -> Raster {
        Raster { columns, rows, dots: vec![0; columns * rows], owners: vec![0; columns * rows] }
    }

    /// Sets a dot of a series; the position is given as shares of width and height from the lower left.
    pub fn dot(&mut self, (across, up): (f64, f64), series: usize) {
        if !((0.0..=1.0).contains(&across) && (0.0..=1.0).contains(&up)) || self.columns * self.rows == 0 {
            return;
        }
        let (x, y) = (place(across, 2 * self.columns), place(1.0 - up, 4 * self.rows));
        let cell = y / 4 * self.columns + x / 2;
        let dot = DOTS.get(x % 2).and_then(|column| column.get(y % 4)).copied().unwrap_or_default();
        if let (Some(dots), Some(owner)) = (self.dots.get_mut(cell), self.owners.get_mut(cell)) {
            *dots |= dot;
            *owner = series;
        }
    }

    /// Draws a line of a series.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), series: usize) {
        // There are two dots per character horizontally and four vertically, so this leaves no gap even in a steep
        // line.
        let steps = 4 * self.columns.max(self.rows);
        for step in 0..=steps {
            let t = step as f64 / steps as f64;
            self.dot((from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1)), series);
        }
    }

    /// Braille character of a cell and its series; `None` if the cell is empty.
    #[must_use]
    pub fn cell(&self, column: usize, row: usize) -> Option<(char, usize)> {
        let at = row * self.columns + column;
        let dots = self.dots.get(at).copied().filter(|dots| *dots > 0 && column < self.columns)?;
        Some((char::from_u32(EMPTY + dots)?, self.owners.get(at).copied()?))
    }

    fn row(&self, row: usize, braille: bool) -> String {
        let cell = |column| match self.cell(column, row) {
            None => ' ',
            Some((dots, _)) if braille => dots,
            Some((_, series)) => LETTERS.get(series % LETTERS.len()).copied().unwrap_or('o'),
        };
        (0..self.columns).map(cell).collect()
    }
}

/// Index of the column or row, out of `cells`, that contains a share.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shares of a screen's size")]
pub fn place(share: f64, cells: usize) -> usize {
    ((share.clamp(0.0, 1.0) * cells as f64) as usize).min(cells.saturating_sub(1))
}

/// Renders the plot in `width` × `height` characters, including axes and legend; empty if nothing can be drawn. Uses
/// braille dots, or one ASCII character per series if `braille` is unset.
#[must_use]
pub fn draw(plot: &Plot, width: usize, height: usize, braille: bool) -> String {
    let Some((across, up)) = plot.ranges() else { return String::new() };
    let ticks_up = up.ticks();
    let margin = ticks_up.iter().map(|(_, label)| label.width()).max().unwrap_or_default() + 1;
    let legend = usize::from(plot.series.len() > 1 || !braille);
    let (Some(columns), Some(rows)) = (width.checked_sub(margin + 1), height.checked_sub(4 + legend)) else {
        return String::new();
    };
    if columns < 8 || rows < 3 {
        return String::new();
    }
    let mut raster = Raster::new(columns, rows);
    for (index, series) in plot.series.iter().enumerate() {
        let shown = series.points.iter().filter(|(x, y)| plot.across.scale.shows(*x) && plot.up.scale.shows(*y));
        let places: Vec<(f64, f64)> = shown.map(|(x, y)| (across.share(*x), up.share(*y))).collect();
        for pair in places.windows(2).filter(|_| series.joined) {
            if let [from, to] = pair {
                raster.line(*from, *to, index);
            }
        }
        for place in places {
            raster.dot(place, index);
        }
    }
    let mut lines: Vec<String> = (0..rows).map(|row| raster.row(row, braille)).collect();
    if let Some((x, y)) = plot.highlighted.filter(|(x, y)| plot.across.scale.shows(*x) && plot.up.scale.shows(*y)) {
        mark(&mut lines, across.share(x), up.share(y), if braille { '◆' } else { 'X' });
    }
    assemble(
        plot,
        &lines,
        margin,
        columns,
        &across,
        &ticks_up.iter().map(|(v, l)| (up.share(*v), l)).collect::<Vec<_>>(),
        braille,
    )
}

fn mark(lines: &mut [String], across: f64, up: f64, sign: char) {
    let rows = lines.len();
    let row = place(1.0 - up, rows);
    if let Some(line) = lines.get_mut(row) {
        let column = place(across, line.chars().count());
        *line = line.chars().enumerate().map(|(i, c)| if i == column { sign } else { c }).collect();
    }
}

fn assemble(
    plot: &Plot,
    lines: &[String],
    margin: usize,
    columns: usize,
    across: &super::axis::Range,
    ticks_up: &[(f64, &String)],
    braille: bool,
) -> String {
    let rows = lines.len();
    let (wall, corner, floor, notch) = if braille { ('│', '└', '─', '┬') } else { ('|', '+', '-', '+') };
    let mut out = String::new();
    let _ = writeln!(out, "{}", plot.up.label);
    for (row, line) in lines.iter().enumerate() {
        let tick = ticks_up.iter().find(|(share, _)| place(1.0 - share, rows) == row);
        let label = tick.map_or("", |(_, label)| label.as_str());
        let _ = writeln!(out, "{label:>margin$}{wall}{}", line.trim_end());
    }
    let mut ground: Vec<char> = vec![floor; columns];
    let mut labels: Vec<char> = vec![' '; columns + margin + 2];
    let mut free = 0;
    for (value, label) in across.ticks() {
        let column = place(across.share(value), columns);
        let start = (margin + 1 + column).saturating_sub(label.chars().count() / 2);
        let fits = start >= free && start + label.chars().count() <= labels.len();
        if let Some(slot) = ground.get_mut(column).filter(|_| fits) {
            *slot = notch;
            for (slot, c) in labels.iter_mut().skip(start).zip(label.chars()) {
                *slot = c;
            }
            free = start + label.chars().count() + 1;
        }
    }
    let _ = writeln!(out, "{:margin$}{corner}{}", "", ground.iter().collect::<String>());
    let _ = writeln!(out, "{}", labels.iter().collect::<String>().trim_end());
    let _ = writeln!(out, "{:>width$}", plot.across.label, width = margin + 1 + columns);
    if plot.series.len() > 1 || !braille {
        let names = plot.series.iter().zip(LETTERS.into_iter().cycle());
        let names: Vec<String> = names
            .map(|(series, letter)| if braille { series.name.clone() } else { format!("{letter} {}", series.name) })
            .collect();
        let _ = writeln!(out, "{:margin$} {}", "", names.join("   "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Series};
    use super::*;

    fn plot(points: Vec<(f64, f64)>) -> Plot {
        let series = vec![Series { name: "line".to_owned(), points, joined: true }];
        Plot {
            title: String::new(),
            across: Axis::linear("x"),
            up: Axis::linear("y"),
            series,
            highlighted: Some((50.0, 50.0)),
        }
    }

    #[test]
    fn text_plot_of_a_rising_line_rises_within_the_width() {
        let text = draw(&plot(vec![(0.0, 0.0), (100.0, 100.0), (f64::NAN, 3.0)]), 40, 14, true);
        assert!(text.lines().all(|line| line.width() <= 41), "{text}");
        assert!(text.contains('◆') && text.contains("└"));
        let dots = |line: &str| line.find(|c: char| ('\u{2801}'..='\u{28ff}').contains(&c));
        let columns: Vec<usize> = text.lines().filter_map(dots).collect();
        assert!(columns.is_sorted_by(|above, below| above >= below), "{text}");
    }

    #[test]
    fn ascii_plot_is_ascii_and_small_or_empty_plots_are_blank() {
        let text = draw(&plot(vec![(1.0, 1.0), (9.0, 4.0)]), 40, 14, false);
        assert!(text.is_ascii() && text.contains("o line"), "{text}");
        assert_eq!(draw(&plot(vec![(1.0, 1.0)]), 8, 5, true), "");
        assert_eq!(draw(&plot(vec![]).without_here(), 40, 14, true), "");
    }

    impl Plot {
        fn without_here(self) -> Plot {
            Plot { highlighted: None, ..self }
        }
    }
}
