//! Charts as SVG, to stand inline in an HTML document or in a file of their own.
//!
//! Colours are classes: a document's style sheet decides them; [`alone`] brings its own, light and dark.

use std::fmt::Write as _;

use super::{Bars, Plot};

/// Series and parts are told apart by eight colours (Okabe and Ito's, legible to the colour-blind), then again.
pub const COLOURS: usize = 8;

/// Style of the classes that charts use.
pub const STYLE: &str = "\
.chart{font:12px system-ui,sans-serif;color-scheme:light dark}
.chart text{fill:light-dark(#333,#ccc)}.chart .dim{fill:light-dark(#777,#888)}
.chart .grid{stroke:light-dark(#e4e4e4,#333);fill:none}.chart .axis{stroke:light-dark(#999,#666);fill:none}
.chart .mark{stroke:light-dark(#333,#ddd);fill:none}.chart .limit{stroke:#d55e00;stroke-dasharray:4 3;fill:none}
.c0{--c:#0072b2}.c1{--c:#e69f00}.c2{--c:#009e73}.c3{--c:#cc79a7}.c4{--c:#56b4e9}.c5{--c:#d55e00}.c6{--c:#b8a800}.c7{--c:#888}
.chart .line{stroke:var(--c);fill:none;stroke-width:2}.chart .dot,.chart .bar{fill:var(--c)}
";

/// Text that stands in XML.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn open(width: f64, height: f64, title: &str) -> String {
    let title = escape(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"{title}\"><title>{title}</title>\n"
    )
}

/// A chart as a file of its own.
#[must_use]
pub fn alone(chart: &str) -> String {
    chart.replacen("</title>", &format!("</title><style>{STYLE}</style>"), 1)
}

/// Points over two axes; empty where nothing can be drawn.
#[must_use]
pub fn plot(plot: &Plot, width: f64, height: f64) -> String {
    let Some((across, up)) = plot.ranges() else { return String::new() };
    let (left, right, top, bottom) = (64.0, 12.0, 28.0, 46.0);
    let x = |value: f64| left + across.share(value) * (width - left - right);
    let y = |value: f64| top + (1.0 - up.share(value)) * (height - top - bottom);
    let mut out = open(width, height, &plot.title);
    for (value, label) in across.ticks() {
        let at = x(value);
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{at:.1} {top}V{:.1}\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            height - bottom,
            height - bottom + 16.0
        );
    }
    for (value, label) in up.ticks() {
        let at = y(value);
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{left} {at:.1}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            width - right,
            left - 6.0,
            at + 4.0
        );
    }
    let _ = writeln!(
        out,
        "<text class=\"dim\" x=\"{left}\" y=\"14\">{}</text><text class=\"dim\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        escape(&plot.up.label),
        width - right,
        height - 8.0,
        escape(&plot.across.label)
    );
    for (index, series) in plot.series.iter().enumerate() {
        let shown = series.points.iter().filter(|(px, py)| plot.across.scale.shows(*px) && plot.up.scale.shows(*py));
        let places: Vec<String> = shown.map(|(px, py)| format!("{:.1} {:.1}", x(*px), y(*py))).collect();
        let colour = index % COLOURS;
        let _ = write!(out, "<g class=\"c{colour}\">");
        if series.joined && places.len() > 1 {
            let _ = write!(out, "<path class=\"line\" d=\"M{}\"/>", places.join("L"));
        }
        for place in &places {
            if let Some((cx, cy)) = place.split_once(' ') {
                let _ = write!(out, "<circle class=\"dot\" cx=\"{cx}\" cy=\"{cy}\" r=\"3\"/>");
            }
        }
        out.push_str("</g>\n");
    }
    if let Some((px, py)) = plot.here.filter(|(px, py)| plot.across.scale.shows(*px) && plot.up.scale.shows(*py)) {
        let _ = writeln!(out, "<circle class=\"mark\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"7\"/>", x(px), y(py));
    }
    out.push_str("</svg>\n");
    if plot.series.len() > 1 {
        out.push_str(&legend(plot.series.iter().map(|series| series.name.as_str())));
    }
    out
}

/// Bars below each other; empty where nothing has a length.
#[must_use]
pub fn bars(bars: &Bars, width: f64) -> String {
    const ROW: f64 = 26.0;
    let reach = bars.reach();
    if reach <= 0.0 {
        return String::new();
    }
    let longest = bars.bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or_default();
    let left = (7.2 * longest as f64 + 12.0).min(0.4 * width);
    let right = 120.0;
    let x = |value: f64| left + value.clamp(0.0, reach) / reach * (width - left - right);
    let names = bars.names();
    let mut out = open(width, ROW * bars.bars.len() as f64 + 6.0, &bars.title);
    for (row, bar) in bars.bars.iter().enumerate() {
        let top = ROW * row as f64 + 4.0;
        let middle = top + 0.5 * ROW - 2.0;
        let text = middle + 4.0;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{text:.1}\" text-anchor=\"end\">{}</text>",
            left - 8.0,
            escape(&bar.name)
        );
        let mut from = 0.0;
        for (name, value) in bar.parts.iter().filter(|(_, value)| *value > 0.0 && value.is_finite()) {
            let colour = names.iter().position(|known| known == name).unwrap_or_default() % COLOURS;
            let _ = writeln!(
                out,
                "<g class=\"c{colour}\"><rect class=\"bar\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\">\
                 <title>{} {}</title></rect></g>",
                x(from),
                (x(from + value) - x(from)).max(0.0),
                ROW - 8.0,
                escape(name),
                escape(&crate::units::si(*value))
            );
            from += value;
        }
        if let Some((low, high)) = bar.interval.filter(|(low, high)| low.is_finite() && high.is_finite()) {
            let (low, high) = (x(low), x(high));
            let _ = writeln!(
                out,
                "<path class=\"mark\" d=\"M{low:.1} {middle:.1}H{high:.1}M{low:.1} {:.1}v8M{high:.1} {:.1}v8\"/>",
                middle - 4.0,
                middle - 4.0
            );
        }
        if let Some(limit) = bar.limit.filter(|limit| limit.is_finite()) {
            let _ = writeln!(out, "<path class=\"limit\" d=\"M{:.1} {:.1}v{ROW}\"/>", x(limit), top - 4.0);
        }
        let end = x(bar.total().max(bar.interval.map_or(0.0, |(_, high)| high)).max(bar.limit.unwrap_or(0.0)));
        let _ = writeln!(out, "<text x=\"{:.1}\" y=\"{text:.1}\">{}</text>", end + 6.0, escape(&bar.shown));
    }
    out.push_str("</svg>\n");
    if names.len() > 1 {
        out.push_str(&legend(names.into_iter()));
    }
    out
}

fn legend<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let entry = |(i, name): (usize, &str)| format!("<span class=\"c{}\">{}</span>", i % COLOURS, escape(name));
    format!("<p class=\"legend\">{}</p>\n", names.enumerate().map(entry).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Bar, Series};
    use super::*;

    #[test]
    fn names_cannot_break_out_of_the_document() {
        let series = vec![Series { name: "<b>".to_owned(), points: vec![(1.0, 2.0), (3.0, 4.0)], joined: true }; 2];
        let chart =
            Plot { title: "a & b".to_owned(), across: Axis::log("x"), up: Axis::linear("\""), series, here: None };
        let text = plot(&chart, 400.0, 300.0);
        assert!(text.contains("a &amp; b") && text.contains("&lt;b&gt;") && !text.contains("<b>"));
        assert_eq!(text.matches("<circle").count(), 4);
        assert!(alone(&text).contains("<style>"));
    }

    #[test]
    fn parts_of_a_bar_add_up_to_its_length() {
        let bar = |parts: &[f64]| Bar {
            name: "x".to_owned(),
            parts: parts.iter().enumerate().map(|(i, v)| (format!("p{i}"), *v)).collect(),
            shown: "10".to_owned(),
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
