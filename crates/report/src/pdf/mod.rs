//! Reports as PDF: A4 pages of text and tables, charts as vector graphics.

mod font;
mod sheet;
mod table;
mod text;

use self::font::Font;
use self::sheet::{BLACK, HEIGHT, PALE, Sheets, WIDTH};
use self::text::{Run, paragraph};
use crate::chart::drawing;
use crate::study::Block;

/// Renders blocks as a PDF file.
#[must_use]
pub fn write(title: &str, blocks: &[Block]) -> Vec<u8> {
    let mut sheets = Sheets::new();
    fill(&mut sheets, blocks);
    sheets.file(title)
}

/// Places blocks below each other, keeping headings and captions on the page of what follows them.
fn fill(sheets: &mut Sheets, blocks: &[Block]) {
    let mut rest = blocks;
    while let Some((block, after)) = rest.split_first() {
        if let Block::Heading(..) = block {
            // A heading must not be at the end of a page without the content it belongs to.
            let light = |block: &&Block| matches!(block, Block::Heading(..) | Block::Text(_));
            let lead: f32 = after.iter().take_while(light).map(min_height).sum();
            let first = after.iter().find(|block| !light(block)).map_or(0.0, min_height);
            sheets.ensure_space((min_height(block) + lead + first).min(HEIGHT));
        }
        if let (Block::Text(_), Some(chart @ (Block::Plot(_) | Block::Bars(_) | Block::Picture(_)))) =
            (block, after.first())
        {
            // A caption must be on the same page as its chart.
            sheets.ensure_space((min_height(block) + min_height(chart)).min(HEIGHT));
        }
        put(sheets, block);
        rest = after;
    }
}

/// Minimum height of a block: charts in full, the first lines of other content.
fn min_height(block: &Block) -> f32 {
    match block {
        Block::Heading(level, _) => 2.0 * size(*level),
        Block::Plot(plot) => drawing::plot(plot, 760.0, 420.0).map_or(0.0, |drawing| Sheets::height(&drawing)),
        Block::Bars(bars) => drawing::bars(bars, 760.0).map_or(0.0, |drawing| Sheets::height(&drawing)),
        Block::Picture(drawing) => Sheets::height(drawing),
        _ => 60.0,
    }
}

fn size(level: u8) -> f32 {
    match level {
        1 => 18.0,
        2 => 13.5,
        _ => 11.0,
    }
}

fn put(sheets: &mut Sheets, block: &Block) {
    match block {
        Block::Heading(level, text) => {
            let size = size(*level);
            sheets.used_height += if sheets.used_height > 0.0 { 0.7 * size } else { 0.0 };
            paragraph(sheets, &[Run::plain(Font::Bold, text)], size, 0.0, WIDTH);
            sheets.used_height += 3.0;
        }
        Block::Text(text) => {
            paragraph(sheets, &Run::of(Font::Regular, text), 9.5, 0.0, WIDTH);
            sheets.used_height += 5.0;
        }
        Block::Callout(text) => {
            let runs = Run::of(Font::Bold, text);
            let lines = text::lines(&runs, 10.0, WIDTH - 20.0).len() as f32;
            let height = lines * 13.5 + 10.0;
            sheets.ensure_space(height);
            sheets.fill(PALE, (0.0, sheets.used_height), (WIDTH, height));
            sheets.fill([0.0, 0.45, 0.7], (0.0, sheets.used_height), (3.0, height));
            sheets.used_height += 5.0;
            paragraph(sheets, &runs, 10.0, 10.0, WIDTH - 20.0);
            sheets.used_height += 10.0;
        }
        Block::List(points) => {
            for point in points {
                sheets.ensure_space(13.0);
                let at = (3.0, sheets.used_height + 9.5);
                sheets.text(Font::Regular, 9.5, BLACK, at, &font::encode("•"));
                paragraph(sheets, &Run::of(Font::Regular, point), 9.5, 13.0, WIDTH - 13.0);
                sheets.used_height += 2.0;
            }
            sheets.used_height += 4.0;
        }
        Block::Table(grid) => table::put(sheets, grid, false),
        Block::Heat(grid) => table::put(sheets, grid, true),
        Block::Plot(plot) => drawing::plot(plot, 760.0, 420.0).into_iter().for_each(|drawing| sheets.chart(drawing)),
        Block::Bars(bars) => drawing::bars(bars, 760.0).into_iter().for_each(|drawing| sheets.chart(drawing)),
        Block::Picture(drawing) => sheets.chart(drawing.clone()),
        Block::Code(code) => {
            for line in code.lines() {
                let lines = text::lines(&[Run::plain(Font::Mono, line)], 8.0, WIDTH - 12.0);
                for pieces in lines {
                    sheets.ensure_space(11.0);
                    sheets.fill(PALE, (0.0, sheets.used_height), (WIDTH, 11.0));
                    text::put(sheets, &pieces, 8.0, (6.0, sheets.used_height + 8.0));
                    sheets.used_height += 11.0;
                }
            }
            sheets.used_height += 6.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Bar, Bars, Plot, Series};
    use crate::study::{Cell, Grid};
    use crate::table::Align;

    fn pages(bytes: &[u8]) -> usize {
        String::from_utf8_lossy(bytes).matches("/Type /Page\n").count()
    }

    fn grid(rows: usize, columns: usize, word: &str) -> Grid {
        let head = (0..columns).map(|c| (format!("column {c}"), if c == 0 { Align::Left } else { Align::Right }));
        let row = |r: usize| (0..columns).map(|c| Cell::number(format!("{word}{r}.{c}"), 0.3)).collect();
        Grid { head: head.collect(), rows: (0..rows).map(row).collect() }
    }

    #[test]
    fn a_long_table_takes_several_pages_and_a_short_one_takes_one() {
        let short = write("short", &[Block::Table(grid(5, 3, "x"))]);
        assert!(short.starts_with(b"%PDF-1."), "not a PDF");
        assert_eq!(pages(&short), 1);
        let long = write("long", &[Block::Table(grid(300, 3, "x"))]);
        assert!(pages(&long) > 4, "{} pages", pages(&long));
    }

    #[test]
    fn caption_is_on_the_page_of_its_chart() {
        let plot = Block::Plot(Plot {
            title: "plot".to_owned(),
            across: Axis::linear("x"),
            up: Axis::linear("y"),
            series: vec![Series { name: "a".to_owned(), points: vec![(1.0, 2.0), (3.0, 4.0)], joined: true }],
            highlighted: None,
        });
        for lines in 0..60 {
            let blocks = [Block::List(vec!["x".to_owned(); lines]), Block::Text("caption".to_owned()), plot.clone()];
            let mut sheets = Sheets::new();
            fill(&mut sheets, &blocks[..2]);
            let (before, chart) = (sheets.used_height, min_height(&plot));
            let mut sheets = Sheets::new();
            fill(&mut sheets, &blocks);
            // The chart is on the page of its caption.
            let together = before + chart <= HEIGHT + 1.0 || sheets.used_height > chart + 10.0;
            assert!(together, "{lines} lines: the caption ends at {before}, the chart at {}", sheets.used_height);
        }
    }

    #[test]
    fn tables_wider_than_a_page_and_empty_ones_are_written() {
        let wide = write("wide", &[Block::Heat(grid(4, 40, "a long word without a break"))]);
        assert!(pages(&wide) >= 1);
        let endless = "x".repeat(20_000);
        let series = vec![Series { name: "a".to_owned(), points: vec![(1.0, 2.0), (3.0, 4.0)], joined: true }; 2];
        let bar = Bar {
            name: "b".to_owned(),
            parts: vec![("part".to_owned(), 3.0)],
            label: "3".to_owned(),
            interval: Some((2.0, 4.0)),
            limit: Some(5.0),
        };
        let blocks = [
            Block::Heading(1, "Title".to_owned()),
            Block::Text(endless.clone()),
            Block::Callout("stands `out`".to_owned()),
            Block::List(vec![endless.clone(), String::new()]),
            Block::Code(endless),
            Block::Table(Grid::default()),
            Block::Plot(Plot {
                title: "plot".to_owned(),
                across: Axis::linear("x"),
                up: Axis::linear("y"),
                series,
                highlighted: Some((2.0, 3.0)),
            }),
            Block::Bars(Bars { title: "bars".to_owned(), bars: vec![bar; 100] }),
        ];
        assert!(pages(&write("everything – €", &blocks)) > 2);
        assert_eq!(pages(&write("", &[])), 1);
    }
}
