//! A study as one HTML file: inline charts, no network access, light and dark mode, printable, tables sort on click.

use super::{Block, Cell, Grid, Study, content, workload};
use crate::chart::svg;
use crate::table::Align;
use atlas_core::escape::html as escape;

const STYLE: &str = include_str!("study.css");
const SCRIPT: &str = include_str!("study.js");

/// Width of charts, in SVG units.
const WIDTH: f64 = 760.0;

/// Number of characters beyond which the text of a cell is wrapped.
const WRAP_CHARACTERS: usize = 40;

/// Document title: the names of the workloads.
#[must_use]
pub fn title(studies: &[Study]) -> String {
    studies.iter().map(|study| workload(study).to_string()).collect::<Vec<_>>().join(", ")
}

/// Renders the studies as an HTML document.
#[must_use]
pub fn write(studies: &[Study]) -> String {
    page(&title(studies), &studies.iter().flat_map(content::blocks).collect::<Vec<_>>())
}

/// Renders blocks as an HTML document.
#[must_use]
pub fn page(title: &str, blocks: &[Block]) -> String {
    let title = escape(&format!("{title} – Atlas Fabric"));
    let body: String = blocks.iter().map(block).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{STYLE}{}</style>\n</head>\n<body>\n<main>\n{body}</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        svg::STYLE
    )
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading(level, text) => format!("<h{level}>{}</h{level}>\n", escape(text)),
        Block::Text(text) => format!("<p>{}</p>\n", prose(text)),
        Block::Callout(text) => format!("<p class=\"callout\">{}</p>\n", prose(text)),
        Block::List(points) => {
            let items: String = points.iter().map(|point| format!("<li>{}</li>\n", prose(point))).collect();
            format!("<ul>\n{items}</ul>\n")
        }
        Block::Table(grid) => table(grid, false),
        Block::Heat(grid) => table(grid, true),
        Block::Plot(plot) => figure(&svg::plot(plot, WIDTH, 420.0)),
        Block::Bars(bars) => figure(&svg::bars(bars, WIDTH)),
        Block::Picture(drawing) => figure(&svg::inline(drawing)),
        // A one-line command may be wrapped; text of several lines keeps its line breaks.
        Block::Code(text) => {
            let class = if text.trim_end().contains('\n') { "" } else { " class=\"line\"" };
            format!("<pre{class}>{}</pre>\n", escape(text))
        }
    }
}

/// Converts prose to HTML; backticks enclose code.
fn prose(text: &str) -> String {
    let mut out = String::new();
    let mut parts = text.split('`').peekable();
    let mut code = false;
    while let Some(part) = parts.next() {
        // A backtick without a closing one is kept as a character.
        match (code, parts.peek().is_some()) {
            (true, true) => out += &format!("<code>{}</code>", escape(part)),
            (true, false) => out += &format!("`{}", escape(part)),
            (false, _) => out += &escape(part),
        }
        code = !code;
    }
    out
}

fn figure(chart: &str) -> String {
    if chart.is_empty() { String::new() } else { format!("<figure>\n{chart}</figure>\n") }
}

fn table(grid: &Grid, shaded: bool) -> String {
    let class = |align: Align| if align == Align::Right { " class=\"n\"" } else { "" };
    let head: String = grid
        .head
        .iter()
        .map(|(name, align)| format!("<th scope=\"col\"{}>{}</th>", class(*align), escape(name)))
        .collect();
    let row = |cells: &Vec<Cell>| {
        let cells = cells.iter().zip(&grid.head).enumerate().map(|(i, (cell, (_, align)))| {
            let value = cell.value.map_or_else(String::new, |value| format!(" data-v=\"{value}\""));
            let shade = cell
                .value
                .filter(|_| shaded)
                .map_or_else(String::new, |value| format!(" style=\"--share:{:.0}%\"", 100.0 * value.clamp(0.0, 1.0)));
            let tag = if i == 0 { "th scope=\"row\"" } else { "td" };
            let end = if i == 0 { "th" } else { "td" };
            let long = align != &Align::Right && cell.text.chars().count() > WRAP_CHARACTERS;
            let class = if long { " class=\"w\"" } else { class(*align) };
            let text = prose(&cell.text);
            let text = if cell.best { format!("<b>{text}</b>") } else { text };
            format!("<{tag}{class}{value}{shade}>{text}</{end}>")
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let rows: String = grid.rows.iter().map(row).collect();
    let heat = if shaded { " class=\"heat\"" } else { "" };
    format!(
        "<div class=\"wide\"><table{heat}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}
