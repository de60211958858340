//! Studies as Markdown, with charts as tables of their values.

use super::{Block, Cell, Grid, Study, content};
use crate::chart::Bars;
use crate::table::Align;
use atlas_core::escape::{markdown, markdown_block};
use atlas_core::units;

/// Renders the studies as a Markdown document.
#[must_use]
pub fn write(studies: &[Study]) -> String {
    text(&studies.iter().flat_map(content::blocks).collect::<Vec<_>>())
}

/// Renders blocks as a Markdown document.
#[must_use]
pub fn text(blocks: &[Block]) -> String {
    blocks.iter().map(block).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading(level, text) => format!("{} {}\n", "#".repeat(usize::from(*level)), markdown(text)),
        Block::Text(text) => format!("{}\n", markdown(text)),
        Block::Callout(text) => format!("> **{}**\n", markdown(text)),
        Block::List(points) => points.iter().map(|point| format!("- {}\n", markdown(point))).collect(),
        Block::Table(grid) | Block::Heat(grid) => table(grid),
        Block::Bars(bars) => bars_table(bars),
        Block::Plot(plot) => {
            let rows = plot.series.iter().flat_map(|series| {
                let row = |(x, y): &(f64, f64)| {
                    vec![Cell::text(series.name.clone()), Cell::text(units::si(*x)), Cell::text(units::si(*y))]
                };
                series.points.iter().map(row)
            });
            let right = |text: &str| (text.to_owned(), Align::Right);
            let head = vec![(String::new(), Align::Left), right(&plot.across.label), right(&plot.up.label)];
            table(&Grid { head, rows: rows.collect() })
        }
        // The values of a picture are given in the text or table next to it.
        Block::Picture(_) => String::new(),
        Block::Code(text) => markdown_block("console", text),
    }
}

fn table(grid: &Grid) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = line(grid.head.iter().map(|(name, _)| markdown(name)).collect());
    out += &line(
        grid.head.iter().map(|(_, align)| if *align == Align::Left { "---" } else { "---:" }.to_owned()).collect(),
    );
    for row in &grid.rows {
        let shown = |c: &Cell| if c.best { format!("**{}**", markdown(&c.text)) } else { markdown(&c.text) };
        out += &line(row.iter().map(shown).collect());
    }
    out
}

/// Table with a row per bar; parts as shares of their bar.
fn bars_table(bars: &Bars) -> String {
    let names = bars.names();
    let plain = names.len() < 2;
    let mut head = vec![(String::new(), Align::Left), ("whole".to_owned(), Align::Right)];
    if !plain {
        head.extend(names.iter().map(|name| ((*name).to_owned(), Align::Right)));
    }
    let rows = bars.bars.iter().map(|bar| {
        let mut cells = vec![Cell::text(bar.name.clone()), Cell::text(bar.label.clone())];
        let part =
            |name: &&str| bar.parts.iter().filter(|(known, _)| known == name).map(|(_, value)| value).sum::<f64>();
        if !plain {
            cells.extend(names.iter().map(|name| Cell::text(units::percent(part(name) / bar.total()))));
        }
        cells
    });
    table(&Grid { head, rows: rows.collect() })
}
