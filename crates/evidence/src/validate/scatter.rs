//! Scatter plots of predicted over measured values, as text and as SVG, with logarithmic axes.

use atlas_core::math;
use std::fmt::Write as _;

use super::verdict::Verdict;

/// Points that can be drawn: those with two positive values.
fn points(verdicts: &[Verdict]) -> Vec<(f64, f64)> {
    let pairs = verdicts.iter().filter_map(|verdict| Some((verdict.measured?, verdict.predicted?)));
    pairs
        .filter(|(m, p)| *m > 0.0 && *p > 0.0 && m.is_finite() && p.is_finite())
        .map(|(m, p)| (math::log10(m), math::log10(p)))
        .collect()
}

/// Range of whole decades that contains all points.
fn decades(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let all = || points.iter().flat_map(|(m, p)| [*m, *p]);
    let low = all().fold(f64::INFINITY, f64::min).floor();
    let high = all().fold(f64::NEG_INFINITY, f64::max).ceil();
    (low < high).then_some((low, high))
}

/// Returns a plot of `columns` × `rows` characters. Cells with more points are darker; on the diagonal, predicted
/// equals measured. Empty if there is nothing to draw.
#[must_use]
pub fn text(verdicts: &[Verdict], columns: usize, rows: usize) -> String {
    let points = points(verdicts);
    let Some((low, high)) = decades(&points) else { return String::new() };
    let mut cells = vec![vec![0usize; columns]; rows];
    let place =
        |value: f64, room: usize| (((value - low) / (high - low) * room as f64) as usize).min(room.saturating_sub(1));
    for (measured, predicted) in &points {
        if let Some(cell) =
            cells.get_mut(place(*predicted, rows)).and_then(|row| row.get_mut(place(*measured, columns)))
        {
            *cell += 1;
        }
    }
    let mut out = String::new();
    for (row, line) in cells.iter().enumerate().rev() {
        let decade = low + (high - low) * row as f64 / rows as f64;
        let label = if row % 4 == 0 { format!("{:>9.3e}", math::powf(10f64, decade)) } else { String::new() };
        let picture: String = line
            .iter()
            .enumerate()
            .map(|(column, n)| match n {
                0 if column * rows / columns == row => '·',
                0 => ' ',
                1 => '.',
                2..=4 => ':',
                5..=14 => 'o',
                15..=49 => 'O',
                _ => '@',
            })
            .collect();
        let _ = writeln!(out, "{label:>9} |{}", picture.trim_end());
    }
    let _ = writeln!(out, "{:>9} +{}", "", "-".repeat(columns));
    let _ = writeln!(
        out,
        "{:>11}{:<.3e}{:>width$.3e}",
        "",
        math::powf(10f64, low),
        math::powf(10f64, high),
        width = columns - 9
    );
    let _ = writeln!(out, "{:>11}horizontal: measured, vertical: predicted; dotted line: equality", "");
    out
}

/// Returns the plot as a self-contained SVG.
#[must_use]
pub fn svg(verdicts: &[Verdict], title: &str) -> String {
    const SIDE: f64 = 560.0;
    const MARGIN: f64 = 60.0;
    let points = points(verdicts);
    let (low, high) = decades(&points).unwrap_or((0.0, 1.0));
    let x = |value: f64| MARGIN + (value - low) / (high - low) * SIDE;
    let y = |value: f64| MARGIN + SIDE - (value - low) / (high - low) * SIDE;
    let size = SIDE + 2.0 * MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {size} {size}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"{MARGIN}\" y=\"30\" font-size=\"16\">{}</text>\n",
        title.replace('&', "&amp;").replace('<', "&lt;")
    );
    let mut decade = low;
    while decade <= high {
        let (across, up) = (x(decade), y(decade));
        let _ = writeln!(
            out,
            "<path d=\"M{across} {MARGIN}V{} M{MARGIN} {up}H{}\" stroke=\"#ddd\" fill=\"none\"/>",
            MARGIN + SIDE,
            MARGIN + SIDE
        );
        let _ = writeln!(
            out,
            "<text x=\"{across}\" y=\"{}\" text-anchor=\"middle\">1e{decade}</text>",
            MARGIN + SIDE + 18.0
        );
        let _ = writeln!(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">1e{decade}</text>", MARGIN - 6.0, up + 4.0);
        decade += 1.0;
    }
    let _ = writeln!(
        out,
        "<path d=\"M{} {}L{} {}\" stroke=\"#888\" stroke-dasharray=\"4 4\"/>",
        x(low),
        y(low),
        x(high),
        y(high)
    );
    for (measured, predicted) in points {
        let _ = writeln!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\" fill=\"#0072b2\" fill-opacity=\"0.35\"/>",
            x(measured),
            y(predicted)
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">measured</text>",
        MARGIN + SIDE / 2.0,
        size - 12.0
    );
    let _ = writeln!(
        out,
        "<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">predicted</text>\n</svg>",
        MARGIN + SIDE / 2.0
    );
    out
}
