//! Tables that fit the width of a page: first cells are wrapped, then the font size is reduced, then the table is split
//! by columns.

use super::font::Font;
use super::sheet::{BLACK, Color, RULE, Sheets, WIDTH};
use super::text::{Pieces, Run, lines, put as put_line};
use crate::study::{Cell, Grid};
use crate::table::Align;

/// Horizontal padding of a cell, both sides together.
const PAD: f32 = 8.0;
/// Font sizes to try, largest first.
const SIZES: [f32; 4] = [8.5, 7.5, 6.5, SMALLEST];
const SMALLEST: f32 = 5.8;
/// Minimum width of a column with wrapped text.
const MIN_WRAPPED_COLUMN: f32 = 46.0;

/// Writes a table; if `shaded`, as a heat map.
pub(super) fn put(sheets: &mut Sheets, grid: &Grid, shaded: bool) {
    if grid.head.is_empty() {
        return;
    }
    let fitting = SIZES.iter().find_map(|size| Some((*size, widths(grid, &all(grid), *size)?)));
    if let Some((size, widths)) = fitting {
        return part(sheets, grid, &all(grid), &widths, size, shaded);
    }
    // Too many columns: split the table, repeating the first column in each part.
    let size = SMALLEST;
    let mut from = 1;
    while from < grid.head.len() {
        let with = |to: usize| std::iter::once(0).chain(from..to).collect::<Vec<usize>>();
        let to = (from + 1..=grid.head.len()).rev().find(|to| widths(grid, &with(*to), size).is_some());
        let to = to.unwrap_or(from + 1);
        let columns = with(to);
        let even = vec![WIDTH / columns.len() as f32; columns.len()];
        let widths = widths(grid, &columns, size).unwrap_or(even);
        part(sheets, grid, &columns, &widths, size, shaded);
        from = to;
    }
}

fn all(grid: &Grid) -> Vec<usize> {
    (0..grid.head.len()).collect()
}

fn font(cell: &Cell) -> Font {
    if cell.best { Font::Bold } else { Font::Regular }
}

/// Widths of the columns at a font size; `None` if they do not fit on the page.
fn widths(grid: &Grid, columns: &[usize], size: f32) -> Option<Vec<f32>> {
    let mut natural = Vec::new();
    let mut minimal = Vec::new();
    for column in columns {
        let (name, align) = grid.head.get(*column)?;
        let cells = grid.rows.iter().filter_map(|row| row.get(*column));
        let texts = cells.map(|cell| (font(cell), cell.text.as_str())).chain([(Font::Bold, name.as_str())]);
        let (mut longest, mut word) = (0.0_f32, 0.0_f32);
        for (font, text) in texts {
            let text = super::font::encode(text);
            longest = longest.max(font.width(&text, size));
            let words = text.split(|byte| *byte == b' ').map(|word| font.width(word, size));
            word = words.fold(word, f32::max);
        }
        // Numbers and their units are kept on one line; long words of text may be broken.
        let figures = grid.rows.iter().filter_map(|row| row.get(*column));
        let figures = figures.map(|cell| font(cell).width(&super::font::encode(&cell.text), size));
        let word = match align {
            Align::Right => figures.fold(word, f32::max),
            // Row names are easier to recognize if they are not broken.
            _ if *column == 0 => word.min(120.0),
            _ => word.min(MIN_WRAPPED_COLUMN.max(0.3 * longest).min(120.0)),
        };
        natural.push(longest + PAD);
        minimal.push(word.min(longest) + PAD);
    }
    let (wanted, needed): (f32, f32) = (natural.iter().sum(), minimal.iter().sum());
    if wanted <= WIDTH {
        return Some(natural);
    }
    if needed > WIDTH {
        return None;
    }
    let share = (WIDTH - needed) / (wanted - needed).max(1e-3);
    Some(natural.iter().zip(&minimal).map(|(natural, minimal)| minimal + share * (natural - minimal)).collect())
}

/// Writes some of the columns; the head is repeated on every page.
fn part(sheets: &mut Sheets, grid: &Grid, columns: &[usize], widths: &[f32], size: f32, shaded: bool) {
    let high = 1.3 * size;
    let heads: Vec<Cell> = columns
        .iter()
        .filter_map(|column| grid.head.get(*column))
        .map(|(name, _)| Cell { best: true, ..Cell::text(name.clone()) })
        .collect();
    let broken = |cells: &[&Cell]| -> Vec<Vec<Pieces>> {
        let cell = |(cell, width): (&&Cell, &f32)| {
            let runs =
                if cell.best { vec![Run::plain(Font::Bold, &cell.text)] } else { Run::of(Font::Regular, &cell.text) };
            lines(&runs, size, (width - PAD + 0.5).max(size))
        };
        cells.iter().zip(widths).map(cell).collect()
    };
    let head = broken(&heads.iter().collect::<Vec<_>>());
    let tall = |cells: &[Vec<Pieces>]| cells.iter().map(Vec::len).max().unwrap_or(1).max(1) as f32 * high + 3.0;
    let total: f32 = widths.iter().sum();
    let write = |sheets: &mut Sheets, texts: &[Vec<Pieces>], cells: &[&Cell], top: f32, tall: f32| {
        let mut x = 0.0;
        for (number, ((text, width), column)) in texts.iter().zip(widths).zip(columns).enumerate() {
            let value = cells.get(number).and_then(|cell| cell.value).filter(|_| shaded && number > 0);
            if let Some(share) = value {
                sheets.fill(heat(share), (x, top), (*width, tall));
            }
            let right = grid.head.get(*column).is_some_and(|(_, align)| *align == Align::Right);
            for (row, pieces) in text.iter().enumerate() {
                let wide = pieces.last().map_or(0.0, |(from, font, word)| from + font.width(word, size));
                let left = if right { x + width - PAD / 2.0 - wide } else { x + PAD / 2.0 };
                put_line(sheets, pieces, size, (left, top + size + 1.0 + row as f32 * high));
            }
            x += width;
        }
    };
    let begin = |sheets: &mut Sheets| {
        let tall = tall(&head);
        write(sheets, &head, &[], sheets.used_height, tall);
        sheets.used_height += tall;
        sheets.line(BLACK, 0.7, &[(0.0, sheets.used_height), (total, sheets.used_height)]);
    };
    sheets.ensure_space(tall(&head) + 2.0 * high);
    begin(sheets);
    for row in &grid.rows {
        let cells: Vec<&Cell> = columns.iter().filter_map(|column| row.get(*column)).collect();
        let texts = broken(&cells);
        let height = tall(&texts).min(super::sheet::HEIGHT);
        let before = sheets.used_height;
        sheets.ensure_space(height);
        if sheets.used_height < before {
            begin(sheets);
        }
        write(sheets, &texts, &cells, sheets.used_height, height);
        sheets.used_height += height;
        sheets.line(RULE, 0.3, &[(0.0, sheets.used_height), (total, sheets.used_height)]);
    }
    sheets.used_height += 9.0;
}

/// Shade from white to 60 % of the first color, so that black text remains readable.
fn heat(share: f64) -> Color {
    let share = share.clamp(0.0, 1.0) as f32 * 0.6;
    [0.0_f32, 0.447, 0.698].map(|full| 1.0 + (full - 1.0) * share)
}
