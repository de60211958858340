//! Draws the headline above the metrics: verdict, bottleneck and key metrics. It does not scroll.

use crate::theme::{Glyphs, Role};
use crate::tui::app::{Answer, App, Headline, Pane, View};
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::widgets::draw::{Canvas, wrap};
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::change::change;
use super::metric_row::interval;
use atlas_config::Mode;
use atlas_plan::estimate::{Detail, Metric, MetricId, Verdict};

/// Minimum width of a tile.
const TILE: u16 = 13;
/// Maximum number of tiles.
const MAX_TILES: usize = 5;

/// Metrics that have a tile, most important first.
const TILE_METRICS: [(Mode, [&Metric; MAX_TILES]); 2] = [
    (
        Mode::Inference,
        [
            MetricId::TpotMs.metric(),
            MetricId::DollarPer1mTokens.metric(),
            MetricId::TtftMs.metric(),
            MetricId::TokensPerSecPerAccel.metric(),
            MetricId::TokensPerSecPerUser.metric(),
        ],
    ),
    (
        Mode::Training,
        [
            MetricId::TimeToTrainH.metric(),
            MetricId::MfuCausal.metric(),
            MetricId::DollarPer1mTokens.metric(),
            MetricId::TokensPerSecPerAccel.metric(),
            MetricId::StepTimeMs.metric(),
        ],
    ),
];

/// Size of the headline that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Size {
    /// Verdict, names and values.
    Small,
    /// Also the changes.
    Medium,
    /// Also bottleneck, intervals and evidence.
    Large,
}

impl Size {
    fn of(rows: u16) -> Size {
        match rows {
            0..=7 => Size::Small,
            8..=15 => Size::Medium,
            _ => Size::Large,
        }
    }
}

/// A line of the headline.
#[derive(Debug, Clone, PartialEq)]
enum Line {
    /// A line that can be explained.
    Above(Headline, Role, String),
    /// The measured rows that support the throughput.
    Evidence,
    /// Names, values, intervals or changes of the tiles.
    Names,
    Values,
    Intervals,
    Changes,
}

/// Returns the metrics with a tile in a pane of this width, in the order of the list.
#[must_use]
pub fn tiles(app: &App, width: u16) -> Vec<&'static Metric> {
    // Sorted metrics have no tiles.
    if !app.figures_are_grouped() {
        return Vec::new();
    }
    let mode = app.answer.mode();
    let tiles_of_mode = TILE_METRICS.iter().find(|(known, _)| *known == mode).map_or(&[][..], |(_, metrics)| metrics);
    let mut all: Vec<&'static Metric> = (tiles_of_mode.iter().copied())
        .filter(|metric| app.answer.value(metric).is_some() && app.metric_matches(metric))
        .collect();
    all.truncate(usize::from(width / TILE).min(MAX_TILES));
    let place = |metric: &&Metric| app.figures().position(|known| known == *metric);
    all.sort_by_cached_key(place);
    all
}

fn lines(app: &App, width: u16, rows: u16) -> Vec<Line> {
    let (size, text_width) = (Size::of(rows), usize::from(width.saturating_sub(2)));
    let mut lines = Vec::new();
    if let Some(detail) = app.answer.detail() {
        let (role, forms) = forms(&app.glyphs, detail);
        let most = if size == Size::Large { 2 } else { 1 };
        // Use the longest form that fits, so that none is truncated.
        let all = forms.iter().map(|form| wrap(form, text_width));
        let wrapped = all.clone().find(|lines| lines.len() <= most).or_else(|| all.clone().next_back());
        let wrapped = wrapped.unwrap_or_default().into_iter().take(most);
        lines.extend(wrapped.map(|line| Line::Above(Headline::Verdict, role, line)));
        if size == Size::Large {
            let [(first, share), (second, next), ..] = detail.limits.ranked();
            let (share, next) = (100.0 * share, 100.0 * next);
            let whole = format!("bound by {} {share:.0} %, then {} {next:.0} %", first.name(), second.name());
            let short = format!("{} {share:.0} %, {} {next:.0} %", first.name(), second.name());
            let text = if whole.width() <= text_width { whole } else { short };
            lines.push(Line::Above(Headline::Limits, Role::Text, text));
        }
    }
    if tiles(app, width).is_empty() {
        return lines;
    }
    lines.extend([Line::Names, Line::Values]);
    if size == Size::Large && app.answer.detail().is_some() {
        lines.push(Line::Intervals);
    }
    if size >= Size::Medium {
        lines.push(Line::Changes);
    }
    // While a key is held, the height is computed for every scenario passed; the evidence is only looked up for
    // drawing.
    if size == Size::Large && app.answer.detail().is_some() {
        lines.push(Line::Evidence);
    }
    lines
}

/// Number of lines of the headline in a pane with these inner columns and rows.
#[must_use]
pub(super) fn height(app: &App, width: u16, rows: u16) -> u16 {
    u16::try_from(lines(app, width, rows).len()).unwrap_or(u16::MAX)
}

/// Returns the item at a position inside the pane: a line that can be explained, or the metric of a tile.
#[must_use]
pub(super) fn at(app: &App, inner: Rect, column: u16, row: u16) -> Option<(Option<Headline>, Option<&'static Metric>)> {
    let line = row.checked_sub(inner.y)?;
    match lines(app, inner.width, inner.height).into_iter().nth(usize::from(line))? {
        Line::Above(headline, ..) => Some((Some(headline), None)),
        Line::Evidence => Some((None, None)),
        Line::Names | Line::Values | Line::Intervals | Line::Changes => {
            let tiles = tiles(app, inner.width);
            let cells = tile_cells(inner, &tiles);
            let under = cells.iter().position(|cell| (cell.x..cell.right()).contains(&column));
            Some((None, under.and_then(|place| tiles.get(place)).copied()))
        }
    }
}

/// Returns the area of each tile with the gap after it: as wide as its name, plus an equal share of the remaining
/// space.
fn tile_cells(inner: Rect, tiles: &[&Metric]) -> Vec<Rect> {
    let least = |metric: &Metric| u16::try_from(metric.label.width() + 1).unwrap_or(TILE).max(TILE - 1);
    let wanted: u16 = tiles.iter().map(|metric| least(metric)).sum();
    let spare = (inner.width.saturating_sub(1)).saturating_sub(wanted);
    let each = spare / u16::try_from(tiles.len().max(1)).unwrap_or(1);
    let mut x = inner.x + 1;
    let cells = tiles.iter().map(|metric| {
        let width = (least(metric) + each).min(inner.right().saturating_sub(x));
        let cell = Rect::new(x, inner.y, width, 1);
        x += width;
        cell
    });
    cells.collect()
}

/// Draws the headline; returns its height.
pub(super) fn draw(app: &App, canvas: &mut Canvas<'_>, inner: Rect) -> u16 {
    let focused = app.pane == Pane::Results && app.view == View::Main && app.tour.is_none();
    let all = lines(app, inner.width, inner.height);
    let tiles = tiles(app, inner.width);
    let cells = tile_cells(inner, &tiles);
    let above = app.headline().filter(|_| focused);
    let here = app.selected_metric().filter(|_| focused && above.is_none());
    let selection = canvas.role(Role::Selection);
    for (y, line) in (inner.y..inner.bottom()).zip(&all) {
        match line {
            Line::Above(headline, role, text) => {
                let style = canvas.role(*role);
                canvas.text(inner.x + 1, y, inner.width.saturating_sub(2), text, style);
                if above == Some(*headline) {
                    canvas.tint(Rect::new(inner.x, y, inner.width, 1), selection);
                }
            }
            Line::Evidence => {
                let (room, dim) = (inner.width.saturating_sub(2), canvas.role(Role::Dim));
                let whole = app.answer.evidence().filter(|text| text.width() <= usize::from(room));
                let text = whole.or_else(|| app.answer.short_evidence()).unwrap_or_default();
                canvas.text(inner.x + 1, y, room, &text, dim);
            }
            Line::Names | Line::Values | Line::Intervals | Line::Changes => {
                for (cell, metric) in cells.iter().zip(&tiles) {
                    let cell = Rect { y, width: cell.width.saturating_sub(1), ..*cell };
                    tile(app, canvas, cell, line, metric);
                    // Only the name is highlighted, so that moving along the metrics sends few bytes.
                    if here == Some(*metric) && *line == Line::Names {
                        canvas.tint(Rect { x: cell.x - 1, width: cell.width + 1, ..cell }, selection);
                    }
                }
            }
        }
    }
    u16::try_from(all.len()).unwrap_or(u16::MAX).min(inner.height)
}

/// Draws verdict and key metrics in one line, for screens that show one pane at a time.
pub(in crate::tui) fn summary(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(detail) = app.answer.detail() else { return };
    let fits = detail.verdict.fits();
    let (role, sign, _) = if fits { fit_status(&app.glyphs, detail) } else { (Role::Error, app.glyphs.cross, "") };
    let style = canvas.role(role);
    let mut x = canvas.text(area.x + 1, area.y, 2, sign, style) + 1;
    if !fits {
        x = canvas.text(x, area.y, area.right().saturating_sub(x), refusal(&detail.verdict), style) + 2;
    }
    let (dim, value) = (canvas.role(Role::Dim), canvas.role(if fits { Role::Value } else { Role::Dim }));
    let tiles_of_mode = TILE_METRICS.iter().find(|(known, _)| *known == app.answer.mode());
    for metric in tiles_of_mode.map_or(&[][..], |(_, metrics)| metrics) {
        if app.answer.value(metric).is_none() {
            continue;
        }
        let shown = short(&app.answer, metric);
        let width = u16::try_from(metric.label.width() + 1 + shown.width()).unwrap_or(u16::MAX);
        if x.saturating_add(width) > area.right() {
            break;
        }
        x = canvas.text(x, area.y, width, metric.label, dim) + 1;
        x = canvas.text(x, area.y, width, &shown, value.add_modifier(Modifier::BOLD)) + 2;
    }
}

/// Draws a line of a tile.
fn tile(app: &App, canvas: &mut Canvas<'_>, cell: Rect, line: &Line, metric: &'static Metric) {
    let Some(now) = app.answer.value(metric) else { return };
    let text = match line {
        Line::Names => Some((metric.label.to_owned(), canvas.role(Role::Heading))),
        Line::Values => {
            let role = match () {
                () if app.flash.metrics.contains(&metric.id) => Role::Flash,
                () if app.answer.fits() => Role::Value,
                () => Role::Dim,
            };
            Some((short(&app.answer, metric), canvas.role(role).add_modifier(Modifier::BOLD)))
        }
        Line::Intervals => {
            let room = usize::from(cell.width);
            interval(&app.answer, metric, now, room).map(|text| (text, canvas.role(Role::Dim)))
        }
        _ => {
            let before = app.baseline.value(metric);
            let before = before.filter(|before| !metric.is_same(*before, now));
            before.map(|before| change(canvas, metric, before, now))
        }
    };
    if let Some((text, style)) = text {
        canvas.text(cell.x, cell.y, cell.width, &text, style);
    }
}

/// Formats a value with its unit, unless the label contains the unit: `tok/s/user` is in tok/s.
fn short(answer: &Answer, metric: &Metric) -> String {
    let shown = answer.format_metric(metric).unwrap_or_default();
    match shown.split_once(' ') {
        Some((number, unit)) if unit.contains('/') && metric.label.contains(unit) => number.to_owned(),
        _ => shown,
    }
}

/// Returns the text of a headline line, and the metric whose equations explain it.
#[must_use]
pub fn headline(app: &App, headline: Headline) -> Option<(String, Option<&'static Metric>)> {
    let detail = app.answer.detail()?;
    let (text, metric) = match headline {
        Headline::Verdict => {
            let metric = match detail.verdict {
                Verdict::Fits | Verdict::Memory { .. } => Some(MetricId::MemoryFill.metric()),
                Verdict::Overload { .. } => Some(MetricId::QueueUtilization.metric()),
                _ => None,
            };
            (verdict(&app.glyphs, detail).1, metric)
        }
        Headline::Limits => {
            let time = match detail.serving {
                Some(_) => MetricId::TpotMs.metric(),
                None => MetricId::StepTimeMs.metric(),
            };
            (detail.limits.describe(), Some(time))
        }
    };
    Some((text, metric))
}

/// Returns the information line for the selected line of the headline.
#[must_use]
pub fn about_headline(app: &App) -> String {
    let described = app.headline().and_then(|line| headline(app, line));
    described.map_or_else(String::new, |(text, metric)| match metric {
        Some(metric) => format!("Enter explains {}", metric.label),
        None => text,
    })
}

/// Describes whether the scenario can run, and with what margin.
#[must_use]
pub fn verdict(glyphs: &Glyphs, detail: &Detail) -> (Role, String) {
    let (role, forms) = forms(glyphs, detail);
    (role, forms.into_iter().next().unwrap_or_default())
}

/// Returns forms of the verdict, from the longest to one of two or three words.
fn forms(glyphs: &Glyphs, detail: &Detail) -> (Role, Vec<String>) {
    let memory = &detail.memory;
    match detail.verdict {
        Verdict::Fits => {
            let gb = |bytes: f64| format!("{:.1}", bytes / atlas_core::units::BYTES_PER_GB);
            let free = format!("{:.0} % free", 100.0 * memory.free());
            let bound = if memory.upper > memory.total() { format!(" to {}", gb(memory.upper)) } else { String::new() };
            let (role, sign, fits) = fit_status(glyphs, detail);
            let has = gb(memory.capacity);
            let forms =
                [format!("{fits}: {}{bound} of {has} GB, {free}", gb(memory.total())), format!("{fits}, {free}")];
            (role, forms.map(|text| format!("{sign} {text}")).to_vec())
        }
        verdict => {
            let forms = [verdict.describe(), verdict.brief(), refusal(&verdict).to_owned()];
            (Role::Error, forms.map(|text| format!("{} {text}", glyphs.cross)).to_vec())
        }
    }
}

/// Returns the color, sign and word for a scenario that fits. A small amount of free memory is as uncertain as the
/// estimate.
fn fit_status(glyphs: &Glyphs, detail: &Detail) -> (Role, &'static str, &'static str) {
    match detail.memory.is_tight() {
        true => (Role::Warn, "!", "fits tightly"),
        false => (Role::Best, glyphs.check, "fits"),
    }
}

/// Describes a verdict in a few words.
#[must_use]
pub fn refusal(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => "fits",
        Verdict::Memory { .. } => "does not fit",
        Verdict::Overload { .. } => "overloaded",
        _ => "cannot run",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tui::testing::TestApp;
    use atlas_document::Sources;

    #[test]
    fn verdict_is_shown_in_a_complete_form_at_every_size() {
        let mut hands = TestApp::of(&Sources::built_in());
        hands.keys(":serve 70b on 8xh100<Enter>1");
        for changes in ["", ":tp=1<Enter>", ":precision bf16<Enter>", ":tp=16<Enter>", ":tp=3<Enter>"] {
            hands.keys(changes).work();
            let detail = hands.app.answer.detail().unwrap();
            let forms = forms(&hands.app.glyphs, detail).1;
            for (width, rows) in (38..150).flat_map(|width| [6, 12, 20].map(|rows| (width, rows))) {
                let shown = lines(&hands.app, width, rows).into_iter().filter_map(|line| match line {
                    Line::Above(Headline::Verdict, _, text) => Some(text),
                    _ => None,
                });
                let shown = shown.collect::<Vec<_>>().join(" ");
                assert!(forms.contains(&shown), "{width}x{rows}: {shown:?} is not one of {forms:?}");
            }
        }
    }
}
