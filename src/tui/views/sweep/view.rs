//! Draws the sweep: a curve for each target over one knob, or a heat map over two, and the metrics of the point under
//! the cursor next to or below it.

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::app::{Answer, App, View};
use crate::tui::input::keymap::Action;
use crate::tui::views::layout;
use crate::tui::views::results::{change, split as split_number};
use crate::tui::views::sweep::heat::{Heat, format_setting};
use crate::tui::views::sweep::{self, Curves};
use crate::tui::widgets::draw::{Canvas, wrap};
use crate::tui::widgets::plot::{Plot, Series, Shape, color, letter};
use crate::tui::work::query::Query;

use atlas_plan::estimate::{Metric, digits};
use atlas_plan::knob::Setting;
use atlas_plan::search::optimize::Candidate;
use atlas_report::chart::Axis;
use atlas_report::chart::axis::Range;

/// Width of the details next to the chart, and minimum width of the body for placing them there.
const BESIDE: u16 = 47;
const BESIDE_FROM: u16 = 110;
/// Number of rows of the details below the chart.
const DETAIL_ROWS: u16 = 6;
/// Minimum height for showing a chart above the details; with fewer rows only the details are shown.
const PICTURE_FROM: u16 = 9;
/// Width of a metric in the details.
const FIGURE: u16 = 46;
/// Ratio of the largest to the smallest value above which the axis is logarithmic.
const DECADES: f64 = 50.0;

/// Draws the view.
pub fn sweep(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let query = &app.queries.sweep;
    let title = match query.answer() {
        Some(curves) => heading(curves),
        None => "Sweep".to_owned(),
    };
    let inner = canvas.view(area, View::Sweep, &title, &remark_or_method(&app.answer, query), app.tour.is_none());
    let Some(curves) = query.answer().filter(|_| sweep::across(app).is_some()) else {
        return draw_no_answer(&app.answer, query.problem(), canvas, inner);
    };
    let (picture, reading) = split(inner);
    match &curves.against {
        None => plot(curves, Some((sweep::cursor(&app.sweep, curves).0, app.sweep.curve))).draw(canvas, picture),
        Some(_) => heat(&app.sweep, curves).draw(canvas, picture),
    }
    read(app, curves, canvas, reading);
}

/// Returns the progress of the computation, or its error, for the upper edge of the frame.
pub(in crate::tui) fn remark<Q: Clone + PartialEq, A>(query: &Query<Q, A>) -> String {
    match (query.progress(), query.problem()) {
        (Some(progress), _) => format!("{}, Esc stops", progress.describe()),
        (None, Some(trouble)) if query.answer().is_some() => trouble.to_owned(),
        _ => String::new(),
    }
}

/// Draws the text shown if there is no answer.
pub(in crate::tui) fn draw_no_answer(answer: &Answer, trouble: Option<&str>, canvas: &mut Canvas<'_>, area: Rect) {
    let text = match (trouble, &answer.outcome) {
        (_, Err(complaint)) => complaint.as_str(),
        (Some(trouble), _) => trouble,
        (None, Ok(_)) => "",
    };
    canvas.message(area, text, canvas.role(Role::Dim));
}

fn heading(curves: &Curves) -> String {
    let over = match &curves.against {
        Some(against) => format!("{} × {}", curves.across.knob.name(), against.knob.name()),
        None => curves.across.knob.name().to_owned(),
    };
    format!("Sweep: {} over {over}", curves.metric.label)
}

/// Returns the areas of the chart and of the details of the point under the cursor.
pub(in crate::tui) fn split(inner: Rect) -> (Rect, Rect) {
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    if inner.width >= BESIDE_FROM {
        let width = inner.width - BESIDE;
        (Rect { width: width - 2, ..inner }, Rect { x: inner.x + width, width: BESIDE, ..inner })
    } else if inner.height < PICTURE_FROM {
        (Rect { height: 0, ..inner }, inner)
    } else {
        let below = DETAIL_ROWS.min(inner.height / 3);
        let height = inner.height - below;
        (Rect { height, ..inner }, Rect { y: inner.y + height, height: below, ..inner })
    }
}

/// Like [`remark`]; without one, states that the points are not simulated if the scenario's engine simulates.
pub(in crate::tui) fn remark_or_method<Q: Clone + PartialEq, A>(answer: &Answer, query: &Query<Q, A>) -> String {
    let simulates = answer.scenario.as_ref().is_some_and(|scenario| scenario.engine.simulates());
    match remark(query) {
        text if text.is_empty() && simulates => "computed analytically, not simulated".to_owned(),
        text => text,
    }
}

/// Returns the position of the value with this index, as a fraction of the axis. Values are evenly spaced.
fn share(at: usize, count: usize) -> f64 {
    (at as f64 + 0.5) / count.max(1) as f64
}

/// Returns the axis and range for these values: from zero, or logarithmic if they span orders of magnitude.
pub(in crate::tui) fn range(label: &str, values: impl Iterator<Item = f64> + Clone) -> Option<(Axis, Range)> {
    let finite = values.filter(|value| value.is_finite());
    let low = finite.clone().fold(f64::INFINITY, f64::min);
    let high = finite.clone().fold(0.0, f64::max);
    let axis = if low > 0.0 && high / low > DECADES { Axis::log(label) } else { Axis::linear(label) };
    let range = axis.range(finite)?;
    Some((axis, range))
}

/// Returns the factor of an axis for these values of a metric, and its title with the unit.
pub(in crate::tui) fn scaled(metric: &Metric, values: impl Iterator<Item = f64>) -> (f64, String) {
    let high = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
    let (factor, unit) = metric.axis_unit(high);
    // The label of a rate contains its unit.
    let said = unit.is_empty() || (unit == metric.unit && metric.label.contains('/'));
    (factor, if said { metric.label.to_owned() } else { format!("{}, {unit}", metric.label) })
}

/// Returns the plot of the curves, with the cursor at a value of the axis and on a curve.
pub(in crate::tui) fn plot(curves: &Curves, cursor: Option<(usize, usize)>) -> Plot {
    let values = &curves.across.values;
    let cells = |curve: usize| curves.curves.get(curve).map_or(&[][..], |(_, grid)| grid.cells.as_slice());
    let runs = curves.curves.iter().flat_map(|(_, grid)| &grid.cells).filter_map(|cell| cell.feasible_value());
    let (factor, label) = scaled(curves.metric, runs.clone());
    let Some((_, up)) = range(&label, runs.map(|value| factor * value)) else {
        return Plot {
            up: "no value of this knob can run".to_owned(),
            across: curves.across.knob.name().to_owned(),
            ticks: [ticks(values), Vec::new()],
            series: Vec::new(),
            shaded: vec![(0.0, 1.0)],
            trail: Vec::new(),
            limits: Vec::new(),
            highlighted: None,
            cursor: cursor.map(|(column, _)| (share(column, values.len()), None)),
        };
    };
    // Values that are words are drawn as bars, side by side for several targets; numbers are drawn as lines.
    let words = !matches!(values.first(), Some(Setting::Number(_)));
    let count = curves.curves.len();
    let slot = 0.7 / values.len().max(1) as f64;
    let width = slot / count.max(1) as f64;
    let point = |curve: usize, at: usize| {
        let value = cells(curve).get(at)?.feasible_value()?;
        let aside = if words { (curve as f64 + 0.5) * width - 0.5 * slot } else { 0.0 };
        Some((share(at, values.len()) + aside, up.share(factor * value)))
    };
    let shape = if words { Shape::Bars(0.9 * width) } else { Shape::Line };
    let series = (0..count)
        .map(|curve| Series {
            points: (0..values.len()).map(|at| point(curve, at)).collect(),
            name: curves.curves.get(curve).map_or_else(String::new, |(name, _)| name.to_string()),
            shape,
        })
        .collect();
    let half = 0.5 / values.len().max(1) as f64;
    let own = cells(0).iter().enumerate().filter(|(_, cell)| !cell.feasible);
    let shaded = own.map(|(at, _)| share(at, values.len())).map(|at| (at - half, at + half - 1e-6)).collect();
    let here = curves
        .curves
        .first()
        .and_then(|(_, grid)| grid.here)
        .map(|at| point(0, at).unwrap_or((share(at, values.len()), 0.0)));
    let cursor = cursor.map(|(column, curve)| match point(curve, column) {
        Some((across, up)) => (across, Some(up)),
        None => (share(column, values.len()), None),
    });
    let unit = curves.across.knob.spec().unit;
    let across = curves.across.knob.name();
    Plot {
        up: label,
        across: if unit.is_empty() { across.to_owned() } else { format!("{across}, {unit}") },
        ticks: [ticks(values), up.ticks().into_iter().map(|(value, label)| (up.share(value), label)).collect()],
        series,
        shaded,
        trail: Vec::new(),
        limits: Vec::new(),
        highlighted: here,
        cursor,
    }
}

fn ticks(values: &[Setting]) -> Vec<(f64, String)> {
    values.iter().enumerate().map(|(at, value)| (share(at, values.len()), format_setting(value))).collect()
}

fn heat<'c>(settings: &sweep::SweepSettings, curves: &'c Curves) -> Heat<'c> {
    let cells = curves.curves.first().map_or(&[][..], |(_, grid)| grid.cells.as_slice());
    let here = curves.curves.first().and_then(|(_, grid)| grid.here).map(|point| curves.place(point));
    let against = curves.against.as_ref().unwrap_or(&curves.across);
    Heat {
        metric: curves.metric,
        across: &curves.across,
        against,
        cells,
        here,
        cursor: sweep::cursor(settings, curves),
    }
}

/// Draws the point under the cursor: its target, its knobs, whether it can run, and its metrics compared with the
/// scenario's.
fn read(app: &App, curves: &Curves, canvas: &mut Canvas<'_>, area: Rect) {
    let mut y = area.y;
    let (dim, value) = (canvas.role(Role::Dim), canvas.role(Role::Value));
    if curves.curves.len() > 1 && curves.against.is_none() {
        let names = curves.curves.iter().map(|(name, _)| &**name);
        let Some(below) = legend(canvas, area, names, app.sweep.curve) else { return };
        y = below;
    }
    let (column, row) = sweep::cursor(&app.sweep, curves);
    let axes = [(Some(&curves.across), column), (curves.against.as_ref(), row)];
    let mut x = area.x;
    for (axis, at) in axes {
        if let Some((axis, setting)) = axis.and_then(|axis| Some((axis, axis.values.get(at)?))) {
            x = canvas.text(x, y, area.right().saturating_sub(x), axis.knob.name(), dim) + 1;
            x = canvas.text(x, y, area.right().saturating_sub(x), &setting.to_string(), value) + 3;
        }
    }
    let Some((setup, candidate)) = sweep::reading(app, curves) else {
        let bad = canvas.role(Role::Error);
        canvas.text(x, y, area.right().saturating_sub(x), "not available for this target", bad);
        return;
    };
    if setup == app.now.setup {
        let mark = canvas.role(Role::Mark);
        canvas.text(x, y, area.right().saturating_sub(x), &format!("{} here", canvas.glyphs.mark), mark);
    }
    y += 1;
    let verdict = candidate.estimate.detail.map(|detail| detail.verdict).filter(|verdict| !verdict.fits());
    if let Some(verdict) = verdict {
        let bad = canvas.role(Role::Error);
        for line in wrap(&verdict.describe(), usize::from(area.width)).iter().take(3) {
            if y < area.bottom() {
                canvas.text(area.x, y, area.width, line, bad);
            }
            y += 1;
        }
    }
    figures(
        &app.answer,
        &candidate,
        &[curves.metric],
        canvas,
        Rect { y, height: area.bottom().saturating_sub(y), ..area },
    );
}

/// Draws the legend, with the curve under the cursor highlighted. Returns the line below it.
pub(in crate::tui) fn legend<'n>(
    canvas: &mut Canvas<'_>,
    area: Rect,
    names: impl Iterator<Item = &'n str>,
    chosen: usize,
) -> Option<u16> {
    let (mut x, mut y) = (area.x, area.y);
    for (index, name) in names.enumerate() {
        let text = format!("{} {name}", letter(index));
        let width = u16::try_from(text.chars().count()).unwrap_or(u16::MAX);
        if x > area.x && x.saturating_add(width) > area.right() {
            (x, y) = (area.x, y + 1);
        }
        if y >= area.bottom() {
            return None;
        }
        let style = canvas.role(color(index));
        let end = canvas.text(x, y, area.right() - x, &text, style);
        if index == chosen {
            let selection = canvas.role(Role::SelectionDim);
            canvas.tint(Rect::new(x, y, end - x, 1), selection);
        }
        x = end + 2;
    }
    (y + 1 < area.bottom()).then_some(y + 1)
}

/// Draws metrics in as many columns as fit, `first` first, with their changes from the scenario.
pub(in crate::tui) fn figures(
    answer: &Answer,
    candidate: &Candidate,
    first: &[&'static Metric],
    canvas: &mut Canvas<'_>,
    area: Rect,
) {
    let columns = (area.width / FIGURE).max(1);
    let wide = (area.width / columns - 1).min(FIGURE + 4);
    let others = Metric::by_importance(candidate.scenario.mode())
        .filter(|metric| !first.contains(metric) && metric.applies_to(&candidate.scenario));
    let all = first.iter().copied().chain(others).take(usize::from(columns * area.height));
    for (at, metric) in all.enumerate() {
        let at = u16::try_from(at).unwrap_or(u16::MAX);
        let (x, y) = (area.x + at / area.height * (wide + 1), area.y + at % area.height);
        let (text, value) = (canvas.role(Role::Text), canvas.role(Role::Value));
        canvas.text(x, y, 17, metric.label, text);
        // Numbers are aligned at the decimal point; units have their own column.
        let shown = digits::shown(metric, &candidate.scenario, &candidate.estimate);
        let (whole, fraction, unit) = split_number(&shown);
        canvas.right(x + 17, y, 6, whole, value);
        let end = canvas.text(x + 23, y, 8, fraction, value);
        let dim = canvas.role(Role::Dim);
        canvas.text((end + 1).max(x + 28), y, wide.saturating_sub(28), unit, dim);
        let values = answer.value(metric).zip(candidate.value(metric));
        let Some((before, now)) = values.filter(|(before, now)| before != now) else { continue };
        let (text, style) = change(canvas, metric, before, now);
        canvas.right(x + 35, y, wide.saturating_sub(36), &text, style);
    }
}

/// Returns the information line.
#[must_use]
pub fn info(app: &App) -> String {
    let Some(curves) = app.queries.sweep.answer() else { return String::new() };
    let knob = curves.across.knob.spec();
    format!("{}: {}", knob.name, knob.help)
}

/// Moves the cursor to the position of a click. Returns Enter if it was there already.
pub(super) fn click(app: &mut App, (column, row): (u16, u16)) -> Option<Action> {
    let curves = app.queries.sweep.answer().cloned()?;
    let body = layout::areas(app).body;
    let (picture, _) =
        split(Rect::new(body.x + 1, body.y + 1, body.width.saturating_sub(2), body.height.saturating_sub(2)));
    let place = match &curves.against {
        None => {
            let inside = plot(&curves, None).picture(picture);
            let count = curves.across.values.len();
            inside.contains((column, row).into()).then(|| {
                (
                    usize::from(column - inside.x) * count / usize::from(inside.width.max(1)),
                    sweep::cursor(&app.sweep, &curves).1,
                )
            })
        }
        Some(_) => heat(&app.sweep, &curves).cell_at(picture, column, row),
    };
    let place = place?;
    let again = sweep::cursor(&app.sweep, &curves) == place;
    app.sweep.cursor = Some(place);
    again.then_some(Action::Accept)
}
