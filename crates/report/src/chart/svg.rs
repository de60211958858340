//! Charts as SVG, inline in an HTML document or as a file of their own.
//!
//! Colors are CSS classes that the document's style sheet defines. [`standalone`] embeds a style sheet with light and
//! dark mode.

use atlas_core::escape::html as escape;
use std::fmt::Write as _;

use super::drawing::{self, Anchor, COLORS, Drawing, Ink, Item};
use super::{Bars, Plot};

/// Style sheet of the classes that charts use.
pub const STYLE: &str = "\
.chart{font:12px system-ui,sans-serif;color-scheme:light dark}
.chart text{fill:light-dark(#333,#ccc)}.chart .dim{fill:light-dark(#777,#888)}
.chart .grid{stroke:light-dark(#e4e4e4,#333);fill:none}.chart .axis{stroke:light-dark(#999,#666);fill:none}
.chart .mark{stroke:light-dark(#333,#ddd);fill:none}.chart .limit{stroke:#d55e00;stroke-dasharray:4 3;fill:none}
.c0{--c:#0072b2}.c1{--c:#e69f00}.c2{--c:#009e73}.c3{--c:#cc79a7}.c4{--c:#56b4e9}.c5{--c:#d55e00}.c6{--c:#b8a800}.c7{--c:#888}
.chart .shade{fill:color-mix(in srgb,#0072b2 calc(1%*var(--share)),light-dark(#eef4f8,#16222b))}
.chart .none{fill:none;stroke:light-dark(#ccc,#444);stroke-dasharray:2 3}
.chart .line{stroke:var(--c);fill:none;stroke-width:2}.chart .dot,.chart .bar{fill:var(--c)}
";

/// A chart as a standalone SVG file, with heading, legend and style sheet.
#[must_use]
pub fn standalone(drawing: Drawing) -> String {
    let text = write(&drawing.complete());
    text.replacen("</title>", &format!("</title><style>{STYLE}</style>"), 1)
}

/// A plot as SVG for an HTML document; empty if nothing can be drawn.
#[must_use]
pub fn plot(plot: &Plot, width: f64, height: f64) -> String {
    drawing::plot(plot, width, height).map_or_else(String::new, |drawing| inline(&drawing))
}

/// Bars as SVG for an HTML document; empty if no bar has a length.
#[must_use]
pub fn bars(bars: &Bars, width: f64) -> String {
    drawing::bars(bars, width).map_or_else(String::new, |drawing| inline(&drawing))
}

/// A drawing with its legend as SVG for an HTML document.
#[must_use]
pub fn inline(drawing: &Drawing) -> String {
    let mut out = write(drawing);
    if !drawing.legend.is_empty() {
        let entry = |(i, name): (usize, &String)| format!("<span class=\"c{}\">{}</span>", i % COLORS, escape(name));
        let names: Vec<String> = drawing.legend.iter().enumerate().map(entry).collect();
        let _ = writeln!(out, "<p class=\"legend\">{}</p>", names.join(" "));
    }
    out
}

/// Class attribute of an ink. For colors of series, `what` is a class that names the kind of shape.
fn class(ink: Ink, what: &str) -> String {
    match ink {
        Ink::Text => String::new(),
        Ink::Dim => " class=\"dim\"".to_owned(),
        Ink::Grid => " class=\"grid\"".to_owned(),
        Ink::Mark => " class=\"mark\"".to_owned(),
        Ink::Limit => " class=\"limit\"".to_owned(),
        Ink::Shade(share) => format!(" class=\"shade\" style=\"--share:{share}\""),
        Ink::None => " class=\"none\"".to_owned(),
        Ink::Color(number) => format!(" class=\"{what} c{}\"", number % COLORS),
    }
}

fn write(drawing: &Drawing) -> String {
    let Drawing { width, height, title, items, .. } = drawing;
    let title = escape(title);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"{title}\"><title>{title}</title>\n"
    );
    for item in items {
        let _ = match item {
            Item::Line(ink, points) => {
                let places: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
                writeln!(out, "<path{} d=\"M{}\"/>", class(*ink, "line"), places.join("L"))
            }
            Item::Dot(ink, x, y) => {
                writeln!(out, "<circle{} cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>", class(*ink, "dot"))
            }
            Item::Circle(ink, x, y) => {
                writeln!(out, "<circle{} cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"7\"/>", class(*ink, "line"))
            }
            Item::Rectangle(ink, [x, y, width, height], described) => writeln!(
                out,
                "<rect{} x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{}</title></rect>",
                class(*ink, "bar"),
                escape(described)
            ),
            Item::Text(ink, anchor, x, y, text) => {
                let anchor = match anchor {
                    Anchor::Start => "",
                    Anchor::Middle => " text-anchor=\"middle\"",
                    Anchor::End => " text-anchor=\"end\"",
                };
                writeln!(out, "<text{} x=\"{x:.1}\" y=\"{y:.1}\"{anchor}>{}</text>", class(*ink, ""), escape(text))
            }
        };
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{Axis, Bar, Series};
    use super::*;

    #[test]
    fn svg_escapes_names_and_titles() {
        let series = vec![Series { name: "<b>".to_owned(), points: vec![(1.0, 2.0), (3.0, 4.0)], joined: true }; 2];
        let chart = Plot {
            title: "a & b".to_owned(),
            across: Axis::log("x"),
            up: Axis::linear("\""),
            series,
            highlighted: None,
        };
        let text = plot(&chart, 400.0, 300.0);
        assert!(text.contains("a &amp; b") && text.contains("&lt;b&gt;") && !text.contains("<b>"));
        assert_eq!(text.matches("<circle").count(), 4);
        let file = standalone(drawing::plot(&chart, 400.0, 300.0).unwrap());
        assert!(
            file.contains("<style>") && file.trim_end().ends_with("</svg>") && file.matches("&lt;b&gt;").count() == 2
        );
    }

    #[test]
    fn parts_of_a_bar_add_up_to_its_length() {
        let bar = |parts: &[f64]| Bar {
            name: "x".to_owned(),
            parts: parts.iter().enumerate().map(|(i, v)| (format!("p{i}"), *v)).collect(),
            label: "10".to_owned(),
            interval: None,
            limit: None,
        };
        let widths = |text: &str| -> f64 {
            text.split("width=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse::<f64>().ok()).sum()
        };
        let of = |parts: &[f64]| widths(&bars(&Bars { title: String::new(), bars: vec![bar(parts)] }, 600.0));
        assert!((of(&[10.0]) - of(&[1.0, 2.0, 7.0])).abs() < 0.3);
        assert_eq!(bars(&Bars { title: String::new(), bars: vec![bar(&[0.0])] }, 600.0), "");
    }
}
