//! Layout of charts other than plots and bars: heat maps, tornado charts, and lanes of tasks over time.

use super::drawing::{Anchor, COLORS, Drawing, Ink, Item};

/// Width of a character of the charts' font, in drawing units.
const CHARACTER_WIDTH: f64 = 7.4;
/// Height of a bar or lane, in drawing units.
const ROW: f64 = 22.0;
/// Maximum characters of column and lane names that are written out.
const MAX_NAME_CHARACTERS: usize = 30;

/// A heat map.
#[derive(Debug, Clone, PartialEq)]
pub struct Heat {
    /// The heading.
    pub title: String,
    /// Name of the horizontal axis, and its values from the left.
    pub across: (String, Vec<String>),
    /// Name of the vertical axis, and its values from the bottom.
    pub up: (String, Vec<String>),
    /// Cells, a row for each vertical value. Each cell holds its share of the way from the least to the greatest value,
    /// and its text. The share is `None` where there is no value.
    pub cells: Vec<Vec<(Option<f64>, String)>>,
    /// Cell of the user's scenario, as horizontal and vertical index.
    pub highlighted: Option<(usize, usize)>,
}

/// Effect of one lever on a metric: a row of a tornado chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Swing {
    /// Name of the lever.
    pub name: String,
    /// Relative change of the metric when the lever moves down and up, with a description of the move. `None` if it
    /// cannot be moved or the result cannot run.
    pub moves: [(Option<f64>, String); 2],
}

/// A task in a lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Index into the names of the task kinds.
    pub kind: usize,
    /// Begin and end.
    pub span: (f64, f64),
    /// Tooltip.
    pub tooltip: String,
}

fn empty(title: &str, width: f64, height: f64) -> Drawing {
    Drawing { width, height, title: title.to_owned(), items: Vec::new(), legend: Vec::new() }
}

fn margin<'n>(names: impl Iterator<Item = &'n str>) -> f64 {
    let longest = names.map(|name| name.chars().count().min(MAX_NAME_CHARACTERS)).max().unwrap_or_default();
    CHARACTER_WIDTH * longest as f64 + 14.0
}

fn truncate_name(name: &str) -> String {
    let cut = name.chars().count() > MAX_NAME_CHARACTERS;
    if cut { name.chars().take(MAX_NAME_CHARACTERS - 1).chain(['…']).collect() } else { name.to_owned() }
}

/// Lays out a heat map; `None` if it has no cells.
#[must_use]
pub fn heat(heat: &Heat, width: f64) -> Option<Drawing> {
    const HIGH: f64 = 34.0;
    let (columns, rows) = (heat.across.1.len(), heat.up.1.len());
    if columns == 0 || rows == 0 {
        return None;
    }
    let (left, top, right) = (margin(heat.up.1.iter().map(String::as_str)), 26.0, 12.0);
    let wide = (width - left - right) / columns as f64;
    let height = top + HIGH * rows as f64 + 44.0;
    let mut out = empty(&heat.title, width, height);
    out.text(Ink::Dim, Anchor::Start, left, 14.0, format!("↑ {}", heat.up.0));
    out.text(Ink::Dim, Anchor::End, width - right, height - 8.0, format!("{} →", heat.across.0));
    // Cell text is written only if it fits.
    let shown = heat.cells.iter().flatten().map(|(_, shown)| shown.chars().count()).max().unwrap_or_default();
    let written = CHARACTER_WIDTH * shown as f64 <= wide;
    for (row, (name, cells)) in heat.up.1.iter().zip(&heat.cells).enumerate() {
        let y = top + HIGH * (rows - 1 - row) as f64;
        out.text(Ink::Text, Anchor::End, left - 8.0, y + 0.5 * HIGH + 4.0, truncate_name(name));
        for (column, (share, shown)) in cells.iter().take(columns).enumerate() {
            let x = left + wide * column as f64;
            let across = heat.across.1.get(column).map_or("", String::as_str);
            let described = format!("{} {across}, {} {name}: {shown}", heat.across.0, heat.up.0);
            let place = [x + 1.0, y + 1.0, wide - 2.0, HIGH - 2.0];
            let ink = share.map_or(Ink::None, |share| Ink::Shade(percent(share)));
            out.items.push(Item::Rectangle(ink, place, described));
            if written {
                let ink = if share.is_some() { Ink::Text } else { Ink::Dim };
                out.text(ink, Anchor::Middle, x + 0.5 * wide, y + 0.5 * HIGH + 4.0, shown.clone());
            }
            if heat.highlighted == Some((column, row)) {
                let (right, below) = (x + wide - 1.0, y + HIGH - 1.0);
                let around = vec![(x + 1.0, y + 1.0), (right, y + 1.0), (right, below), (x + 1.0, below)];
                let closed = around.first().copied();
                out.items.push(Item::Line(Ink::Mark, around.into_iter().chain(closed).collect()));
            }
        }
    }
    // Only as many column names as fit are written.
    let longest = heat.across.1.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let every = ((CHARACTER_WIDTH * (longest + 1) as f64 / wide).ceil() as usize).max(1);
    for (column, name) in heat.across.1.iter().enumerate().step_by(every) {
        let x = left + wide * (column as f64 + 0.5);
        out.text(Ink::Text, Anchor::Middle, x, top + HIGH * rows as f64 + 16.0, truncate_name(name));
    }
    Some(out)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 100")]
fn percent(share: f64) -> u8 {
    (100.0 * share.clamp(0.0, 1.0)).round() as u8
}

/// Lays out a tornado chart; `None` if no lever changes the metric.
#[must_use]
pub fn tornado(title: &str, swings: &[Swing], width: f64) -> Option<Drawing> {
    const ENDS: f64 = 132.0;
    let changes = swings.iter().flat_map(|swing| &swing.moves).filter_map(|(change, _)| *change);
    let reach = changes.filter(|change| change.is_finite()).map(f64::abs).fold(0.0, f64::max);
    if reach <= 0.0 {
        return None;
    }
    // A change of more than 100 % is clipped, so that it does not make all others invisible.
    let reach = reach.min(1.0);
    let left = margin(swings.iter().map(|swing| swing.name.as_str()));
    let half = 0.5 * (width - left) - ENDS;
    let middle = left + ENDS + half;
    let height = ROW * swings.len() as f64 + 8.0;
    let mut out = empty(title, width, height);
    for (row, swing) in swings.iter().enumerate() {
        let top = ROW * row as f64 + 4.0;
        out.text(Ink::Text, Anchor::End, left - 8.0, top + 13.0, truncate_name(&swing.name));
        for (color, (change, described)) in swing.moves.iter().enumerate() {
            let Some(change) = change.filter(|change| change.is_finite()) else { continue };
            let end = middle + half * (change / reach).clamp(-1.0, 1.0);
            // If both moves change the metric in the same direction, their bars are drawn above each other.
            let place = [middle.min(end), top + 7.0 * color as f64, (end - middle).abs().max(0.5), 7.0];
            out.items.push(Item::Rectangle(Ink::Color(color), place, format!("{}: {described}", swing.name)));
        }
        let at = |side: f64| {
            let to = |(change, described): &(Option<f64>, String)| {
                change
                    .filter(|change| change.is_finite() && side * change > 0.0)
                    .map(|change| (change, described.clone()))
            };
            let both = swing.moves.iter().filter_map(to);
            both.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))
        };
        if let Some((change, described)) = at(-1.0) {
            let x = middle - half * (-change / reach).min(1.0) - 6.0;
            out.text(Ink::Text, Anchor::End, x, top + 12.0, described);
        }
        if let Some((change, described)) = at(1.0) {
            let x = middle + half * (change / reach).min(1.0) + 6.0;
            out.text(Ink::Text, Anchor::Start, x, top + 12.0, described);
        }
    }
    out.items.push(Item::Line(Ink::Mark, vec![(middle, 0.0), (middle, height)]));
    out.legend = vec!["moved down".to_owned(), "moved up".to_owned()];
    Some(out)
}

/// Lays out lanes of tasks over time; `None` if no time passes. `ticks` are times with their labels, `kinds` the names
/// of the task kinds.
#[must_use]
pub fn lanes(
    title: &str,
    lanes: &[(String, Vec<Task>)],
    ticks: &[(f64, String)],
    kinds: &[String],
    width: f64,
) -> Option<Drawing> {
    let spans = || lanes.iter().flat_map(|(_, tasks)| tasks).map(|task| task.span);
    let (from, to) = spans().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (c, d)| (a.min(c), b.max(d)));
    if to <= from || !(to - from).is_finite() {
        return None;
    }
    let (left, right, bottom) = (margin(lanes.iter().map(|(name, _)| name.as_str())), 16.0, 26.0);
    let x = |time: f64| left + (time - from) / (to - from) * (width - left - right);
    let height = ROW * lanes.len() as f64 + bottom;
    let mut out = empty(title, width, height);
    for (time, label) in ticks.iter().filter(|(time, _)| (from..=to).contains(time)) {
        out.items.push(Item::Line(Ink::Grid, vec![(x(*time), 0.0), (x(*time), height - bottom)]));
        out.text(Ink::Dim, Anchor::Middle, x(*time), height - 8.0, label.clone());
    }
    for (row, (name, tasks)) in lanes.iter().enumerate() {
        let top = ROW * row as f64 + 3.0;
        out.text(Ink::Text, Anchor::End, left - 8.0, top + 12.0, truncate_name(name));
        for task in tasks {
            let (begin, end) = (x(task.span.0), x(task.span.1));
            let place = [begin, top, (end - begin).max(0.02), ROW - 6.0];
            out.items.push(Item::Rectangle(Ink::Color(task.kind % COLORS), place, task.tooltip.clone()));
        }
    }
    out.legend = kinds.to_vec();
    Some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
    use super::super::svg;
    use super::*;

    #[test]
    fn heatmap_leaves_infeasible_cells_unshaded_and_frames_the_scenario() {
        let cell = |share, shown: &str| (share, shown.to_owned());
        let chart = Heat {
            title: "t".to_owned(),
            across: ("tp".to_owned(), vec!["1".to_owned(), "2".to_owned()]),
            up: ("pp".to_owned(), vec!["<1>".to_owned()]),
            cells: vec![vec![cell(Some(1.0), "9"), cell(None, "✗")]],
            highlighted: Some((0, 0)),
        };
        let text = svg::inline(&heat(&chart, 400.0).unwrap());
        assert_eq!(text.matches("<rect").count(), 2);
        assert!(text.contains("--share:100") && text.contains("class=\"none\"") && text.contains("class=\"mark\""));
        assert!(text.contains("&lt;1&gt;") && !text.contains("<1>"));
        assert_eq!(heat(&Heat { cells: Vec::new(), up: (String::new(), Vec::new()), ..chart }, 400.0), None);
    }

    #[test]
    fn tornado_bars_extend_from_one_line_in_proportion_to_change() {
        let swing = |down, up| Swing { name: "x".to_owned(), moves: [(down, "d".to_owned()), (up, "u".to_owned())] };
        let drawing = tornado("t", &[swing(Some(-0.5), Some(0.25)), swing(None, Some(0.1))], 600.0).unwrap();
        let bars: Vec<[f64; 4]> = drawing
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Rectangle(_, place, _) => Some(*place),
                _ => None,
            })
            .collect();
        let [down, up, small] = bars.as_slice() else { panic!("{bars:?}") };
        // The left bar ends where the right one begins, and lengths are proportional to the changes.
        assert!((down[0] + down[2] - up[0]).abs() < 1e-9 && (down[2] - 2.0 * up[2]).abs() < 1e-9);
        assert!((up[2] - 2.5 * small[2]).abs() < 1e-9);
        assert_eq!(tornado("t", &[swing(None, Some(0.0))], 600.0), None);
    }

    #[test]
    fn task_widths_are_proportional_to_duration() {
        let task = |kind, from, to| Task { kind, span: (from, to), tooltip: String::new() };
        let all = vec![("a".to_owned(), vec![task(0, 0.0, 1.0), task(1, 1.0, 4.0)])];
        let drawing = lanes("t", &all, &[(2.0, "2 s".to_owned())], &["f".to_owned()], 500.0).unwrap();
        let widths: Vec<f64> = drawing
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Rectangle(_, [_, _, width, _], _) => Some(*width),
                _ => None,
            })
            .collect();
        assert!(matches!(widths.as_slice(), [a, b] if (3.0 * a - b).abs() < 1e-9), "{widths:?}");
        assert_eq!(lanes("t", &[], &[], &[], 500.0), None);
    }
}
