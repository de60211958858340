//! The columns of the ranking, and its rows.

use std::collections::BTreeSet;

use ratatui::layout::Rect;

use super::entry::margin;
use super::layout::brief;
use super::{ChosenLayout, Entry, Outcome, is_ranked_by_price_type, objective, question};
use crate::theme::Role;
use crate::tui::app::App;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::widgets::draw::{Canvas, middle, whole};
use atlas_config::Mode;
use atlas_plan::estimate::{Metric, MetricId, Scale};
use atlas_plan::search::Condition;
use atlas_plan::search::methodology::price_type;
use atlas_plan::search::optimize::HEADROOM;

/// Width of a rank and the bracket after it.
const RANK: u16 = 5;
/// Minimum width of a metric with the sign after it, and of the ranking metric.
const FIGURE: u16 = 9;
const OBJECTIVE: u16 = 12;
/// Minimum and maximum width of a name.
const NAME: (u16, u16) = (8, 26);
/// Width that a name may take on the narrowest screen.
const NAMED: u16 = 16;
/// Minimum and maximum width of a whisker.
const WHISKER: (u16, u16) = (12, 31);
/// Width reserved for a layout, and minimum width at which it is shown.
const LAYOUT: u16 = 28;
const MIN_LAYOUT_WIDTH: u16 = 8;
/// Width of the evidence: number of measured rows, and the prediction error on the nearest one.
const EVIDENCE: u16 = 12;

/// Margin below which a constraint is marked as barely met.
pub(super) const NARROW: f64 = 0.05;
/// Marks a metric that barely meets its constraint.
pub(super) const BARELY_MET_SIGN: &str = "!";

/// Returns the metrics shown in columns: the ranking metric, constrained metrics, and free memory.
#[must_use]
pub(super) fn metrics(app: &App) -> Vec<&'static Metric> {
    let mut all = vec![objective(app)];
    let constrained = question(app).constraints.into_iter().filter_map(|condition| match condition {
        Condition::Metric(metric, ..) => Some(metric),
        _ => None,
    });
    // TTFT is shown whether or not it is constrained.
    let waited = Some(MetricId::TtftMs.metric()).filter(|_| app.answer.mode() == Mode::Inference);
    for metric in constrained.chain(waited).chain([MetricId::Headroom.metric()]) {
        if !all.contains(&metric) {
            all.push(metric);
        }
    }
    all
}

/// Returns the heading of a column.
fn heading(metric: &Metric) -> &'static str {
    if metric.id == MetricId::Headroom { "free" } else { metric.label }
}

/// Returns the width of a metric: its heading and a gap before it.
fn width_of(metric: &Metric, least: u16) -> u16 {
    u16::try_from(heading(metric).width() + 2).unwrap_or(least).max(least)
}

/// Positions of the columns.
pub(super) struct Columns {
    pub(super) name: u16,
    /// First column and width of the objective, then the whisker, then the other metrics.
    pub(super) value: u16,
    pub(super) objective: u16,
    whisker: (u16, u16),
    figures: Vec<(u16, u16, &'static Metric)>,
    evidence: Option<u16>,
    layout: u16,
}

/// Returns the smallest width at which all truncated names are distinct.
fn name_width(app: &App, inner: Rect, rows: &[&Entry], most: u16) -> u16 {
    let names: BTreeSet<&str> =
        rows.iter().map(|entry| &*entry.name).chain(app.race.lanes.iter().map(|lane| &*lane.target)).collect();
    let longest = names.iter().map(|name| name.width()).max().unwrap_or_default();
    let longest = u16::try_from(longest + 1).unwrap_or(u16::MAX).min(most);
    let least = longest.clamp(NAME.0, NAME.1).min(NAMED.max(inner.width / 4));
    let all_differ = |width: &u16| {
        let shown = names.iter().map(|name| middle(name, usize::from(width - 1), app.glyphs.ellipsis));
        shown.collect::<BTreeSet<_>>().len() == names.len()
    };
    (least.max(NAME.0)..longest).find(all_differ).unwrap_or(longest.max(least))
}

fn columns(app: &App, inner: Rect, rows: &[&Entry]) -> Columns {
    let mut all = metrics(app);
    let first = if all.is_empty() { None } else { Some(all.remove(0)) };
    let objective = first.map_or(OBJECTIVE, |metric| width_of(metric, OBJECTIVE));
    let name = inner.x + RANK;
    let name_width = name_width(app, inner, rows, inner.width.saturating_sub(RANK + objective + 1));
    let value = name + name_width;
    let mut spare = inner.width.saturating_sub(RANK + name_width + objective + LAYOUT);
    let fit = all.iter().take_while(|metric| {
        let width = width_of(metric, FIGURE);
        let fits = width <= spare;
        spare = spare.saturating_sub(if fits { width } else { 0 });
        fits
    });
    let fit = fit.count();
    all.truncate(fit);
    let (spare, evident) = if spare >= EVIDENCE { (spare - EVIDENCE, true) } else { (spare, false) };
    let known = first
        .is_some_and(|metric| rows.iter().any(|row| row.pick().is_some_and(|pick| pick.interval(metric).is_some())));
    let whisker = if spare > WHISKER.0 && known { spare.min(WHISKER.1 + 1) - 1 } else { 0 };
    let whisker_at = value + objective + 1;
    let mut x = if whisker > 0 { whisker_at + whisker } else { value + objective };
    let figures = all.into_iter().map(|metric| {
        let (at, width) = (x, width_of(metric, FIGURE));
        x += width;
        (at, width, metric)
    });
    let figures = figures.collect();
    let evidence = evident.then_some(x);
    let layout = x + 2 + if evident { EVIDENCE } else { 0 };
    Columns { name, value, objective, whisker: (whisker_at, whisker), figures, evidence, layout }
}

/// The ranked targets: columns, and the scales of their values.
pub(super) struct Table<'a> {
    app: &'a App,
    pub(super) columns: Columns,
    /// The objective.
    metric: &'static Metric,
    scale: Scale,
    /// Scales of the other metrics, in the order of the columns.
    scales: Vec<Scale>,
    /// Ends of the axis of the whiskers.
    span: Option<(f64, f64)>,
    layout_width: u16,
    /// Whether the types of prices are shown before the layouts.
    by_price_type: bool,
    /// First column to the right of the view.
    right: u16,
}

impl<'a> Table<'a> {
    pub(super) fn of(app: &'a App, inner: Rect, rows: &[&Entry]) -> Table<'a> {
        let columns = columns(app, inner, rows);
        let metric = objective(app);
        let picks = || rows.iter().filter_map(|row| row.pick());
        let scale_of = |metric: &'static Metric| Scale::of(metric, picks().filter_map(|pick| pick.value(metric)));
        let scales = columns.figures.iter().map(|(.., metric)| scale_of(metric)).collect();
        // A layout truncated to a few characters is useless.
        let layout_width = inner.right().saturating_sub(columns.layout);
        let layout_width = if layout_width < MIN_LAYOUT_WIDTH { 0 } else { layout_width };
        let (scale, span) = (scale_of(metric), span(rows, metric));
        let by_price_type = is_ranked_by_price_type(app);
        Table { app, columns, metric, scale, scales, span, layout_width, by_price_type, right: inner.right() }
    }

    /// Draws the headings at `top`, and the units below them.
    pub(super) fn headings(&self, canvas: &mut Canvas<'_>, top: u16) {
        let Table { app, columns, metric, .. } = self;
        let (heading_style, dim) = (canvas.role(Role::Heading), canvas.role(Role::Dim));
        canvas.text(columns.name, top, columns.value - columns.name, "target", heading_style);
        canvas.right(columns.value, top, columns.objective, heading(metric), heading_style);
        // The unit depends on the values, so that an empty column has none.
        let unit = |metric: &Metric, scale: &Scale| {
            let entries = app.race.entries.iter().filter_map(Entry::pick);
            let known = entries.filter_map(|pick| pick.value(metric)).any(f64::is_finite);
            if known { scale.unit().to_owned() } else { String::new() }
        };
        canvas.right(columns.value, top + 1, columns.objective, &unit(metric, &self.scale), dim);
        for ((x, width, metric), scale) in columns.figures.iter().zip(&self.scales) {
            canvas.right(*x, top, width - 1, heading(metric), heading_style);
            canvas.right(*x, top + 1, width - 1, &unit(metric, scale), dim);
        }
        let (whisker_x, whisker_width) = columns.whisker;
        if whisker_width > 0 {
            canvas.text(whisker_x, top, whisker_width, "90 % range", dim);
            if let Some((low, high)) = self.span {
                let text = self.scale.interval(low, high);
                canvas.text(whisker_x, top + 1, whisker_width, &text, dim);
            }
        }
        if let Some(x) = columns.evidence {
            canvas.right(x, top, EVIDENCE, "evidence", heading_style);
            canvas.right(x, top + 1, EVIDENCE, "n, error", dim);
        }
        canvas.text(
            columns.layout,
            top,
            self.layout_width,
            if self.by_price_type { "price, layout" } else { "layout" },
            heading_style,
        );
    }

    /// Draws a target at `y`. `first`: it ranks first, among those with a price of the same type.
    pub(super) fn row(&self, canvas: &mut Canvas<'_>, y: u16, entry: &Entry, first: bool) {
        let Table { app, columns, .. } = self;
        let name_style = canvas.role(if entry.class() == 2 { Role::Dim } else { Role::Text });
        let name = middle(&entry.name, usize::from(columns.value - columns.name - 1), app.glyphs.ellipsis);
        canvas.text(columns.name, y, columns.value - columns.name, &name, name_style);
        match &entry.outcome {
            Outcome::Refused(why) => {
                let x = columns.value + 1;
                let room = self.right.saturating_sub(x);
                let dim = canvas.role(Role::Dim);
                canvas.text(x, y, room, &whole(why, usize::from(room), app.glyphs.ellipsis), dim);
            }
            Outcome::Best(pick) => self.pick(canvas, y, pick, if first { Role::Best } else { Role::Value }, false),
            Outcome::Violates(pick, _) => self.pick(canvas, y, pick, Role::Dim, true),
        }
    }

    /// Draws the values of a layout. `role` is that of the objective; `missed`: the layout violates a constraint.
    fn pick(&self, canvas: &mut Canvas<'_>, y: u16, pick: &ChosenLayout, role: Role, missed: bool) {
        let Table { app, columns, metric, .. } = self;
        let style = canvas.role(role);
        let show = |scale: &Scale, metric: &Metric| {
            pick.value(metric).map_or_else(|| "–".to_owned(), |value| scale.show(value))
        };
        canvas.right(columns.value, y, columns.objective, &show(&self.scale, metric), style);
        let (whisker_x, whisker_width) = columns.whisker;
        if let Some(value) = pick.value(metric).filter(|_| whisker_width > 0 && !missed) {
            let track = Rect::new(whisker_x, y, whisker_width, 1);
            whisker(canvas, track, self.span, value, pick.interval(metric));
        }
        for ((x, width, metric), scale) in columns.figures.iter().zip(&self.scales) {
            let role = constraint_role(app, pick, metric, missed);
            let style = canvas.role(role);
            canvas.right(*x, y, width - 1, &show(scale, metric), style);
            if role == Role::Warn {
                canvas.text(x + width - 1, y, 1, BARELY_MET_SIGN, style);
            }
        }
        if let Some(x) = columns.evidence {
            let (text, role) = evidence(pick);
            let style = canvas.role(if missed { Role::Dim } else { role });
            canvas.right(x, y, EVIDENCE, &text, style);
        }
        let text_style = canvas.role(if missed { Role::Dim } else { Role::Text });
        let layout =
            if self.by_price_type { format!("{}, {}", price_type(&pick.scenario), brief(pick)) } else { brief(pick) };
        canvas.text(columns.layout, y, self.layout_width, &layout, text_style);
    }
}

/// Formats the number of similar measured rows, and the prediction error on the nearest one if it is comparable.
fn evidence(pick: &ChosenLayout) -> (String, Role) {
    let Some(support) = &pick.evidence else { return ("–".to_owned(), Role::Dim) };
    let error = support.nearest.as_ref().filter(|near| near.comparable).map(|near| 100.0 * near.error);
    let role = if support.all.rows == 0 { Role::Dim } else { Role::Text };
    match error {
        Some(error) => (format!("{} {error:>+4.0} %", support.all.rows), role),
        None => (format!("{}      –", support.all.rows), role),
    }
}

/// Returns the role of a metric: met, barely met, or violated.
fn constraint_role(app: &App, pick: &ChosenLayout, metric: &Metric, missed: bool) -> Role {
    let conditions = question(app).constraints;
    let mut of_metric = conditions.iter().filter(|known| matches!(known, Condition::Metric(of, ..) if *of == metric));
    let least = of_metric.find_map(|condition| margin(pick, condition));
    match least {
        Some(margin) if margin < 0.0 => Role::Error,
        Some(margin) if margin < NARROW => Role::Warn,
        None if metric.id == MetricId::Headroom
            && !missed
            && pick.value(metric).is_some_and(|free| free < HEADROOM) =>
        {
            Role::Warn
        }
        _ if missed => Role::Dim,
        _ => Role::Value,
    }
}

/// Returns the smallest and the largest end of all whiskers.
fn span(rows: &[&Entry], metric: &Metric) -> Option<(f64, f64)> {
    let ends = rows.iter().filter(|entry| entry.class() == 0).filter_map(|entry| entry.pick()?.interval(metric));
    ends.reduce(|(low, high), (l, h)| (low.min(l), high.max(h))).filter(|(low, high)| *low > 0.0 && high > low)
}

/// Draws an interval as a line with its value on it.
fn whisker(canvas: &mut Canvas<'_>, track: Rect, span: Option<(f64, f64)>, value: f64, interval: Option<(f64, f64)>) {
    let (Some((least, most)), Some((low, high))) = (span, interval) else { return };
    let last = f64::from(track.width.saturating_sub(1));
    // Intervals are multiplicative, so on a logarithmic scale equal uncertainty has equal width.
    let log = |value: f64| value.max(least).ln();
    let place = |value: f64| {
        track.x + ((log(value) - log(least)) / (log(most) - log(least)) * last).round().clamp(0.0, last) as u16
    };
    let ascii = canvas.glyphs.is_ascii();
    let (left, line, point, right) = if ascii { ("|", "-", "o", "|") } else { ("├", "─", "●", "┤") };
    let (dim, style) = (canvas.role(Role::Dim), canvas.role(Role::Accent));
    let (from, to, at) = (place(low), place(high), place(value));
    for x in from..=to {
        let (glyph, style) = match x {
            _ if x == at => (point, style),
            _ if x == from => (left, dim),
            _ if x == to => (right, dim),
            _ => (line, dim),
        };
        canvas.text(x, track.y, 1, glyph, style);
    }
}
