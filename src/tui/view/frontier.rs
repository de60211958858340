//! The frontier: the best compromises of each target between two figures, with what the point under the cursor is made
//! of.

use ratatui::layout::Rect;

use super::draw::{Canvas, wrap};
use super::plot::{Plot, Series, Shape};
use super::sweep::{figures, legend, range, remark, scaled, silence, split};
use crate::tui::app::{App, View};
use crate::tui::frontier::{Front, cursor};
use crate::tui::layout;
use crate::tui::theme::Role;
use atlas_plan::estimate::Better;
use atlas_report::chart::Axis;
use atlas_report::chart::axis::Range;
use atlas_report::optimum::changes;

/// Draws the view.
pub fn frontier(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let query = &app.queries.frontier;
    let front = query.answer().filter(|front| crate::tui::frontier::pairs(app).contains(&front.pair));
    let title = front.map_or_else(|| "Frontier".to_owned(), |front| format!("Frontier: {}", front.pair.name));
    let inner = canvas.view(area, View::Frontier, &title, &remark(query), app.tour.is_none());
    let Some(front) = front else {
        let trouble = query.trouble().unwrap_or("frontiers need the analytical engine");
        return silence(app, Some(trouble).filter(|_| query.progress().is_none()), canvas, inner);
    };
    let (picture, reading) = split(inner);
    match plot(app, front) {
        Some(plot) => plot.draw(canvas, picture),
        None => {
            let warn = canvas.role(Role::Warn);
            canvas.text(picture.x, picture.y, picture.width, "no layout of these targets can run this", warn);
        }
    }
    read(app, front, canvas, reading);
}

/// The range that suits compromises: where all of a figure are near one another, what lies below them tells nothing.
fn spread(label: &str, values: Vec<f64>) -> Option<Range> {
    const NEAR: f64 = 0.5;
    let (axis, range) = range(label, values.iter().copied())?;
    let (low, high) = values.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(*v), high.max(*v)));
    if axis.from_zero && low > NEAR * high {
        return Axis { from_zero: false, ..axis }.range(values.into_iter());
    }
    Some(range)
}

fn plot(app: &App, front: &Front) -> Option<Plot> {
    let all = || front.curves.iter().flat_map(|curve| &curve.points).map(|(_, candidate)| front.place(candidate));
    let here = app.answer.value(front.across).zip(app.answer.value(front.up)).filter(|_| app.answer.fits());
    let (factor_x, label_x) = scaled(front.across, all().chain(here).map(|(x, _)| x));
    let (factor_y, label_y) = scaled(front.up, all().chain(here).map(|(_, y)| y));
    let across = spread(&label_x, all().chain(here).map(|(x, _)| factor_x * x).collect())?;
    let up = spread(&label_y, all().chain(here).map(|(_, y)| factor_y * y).collect())?;
    let place = |(x, y): (f64, f64)| (across.share(factor_x * x), up.share(factor_y * y));
    let series = front.curves.iter().map(|curve| Series {
        points: curve.points.iter().map(|(_, candidate)| Some(place(front.place(candidate)))).collect(),
        shape: Shape::Line,
    });
    let (curve, point) = cursor(app, front);
    let under = front.curves.get(curve).and_then(|curve| curve.points.get(point));
    let under = under.map(|(_, candidate)| place(front.place(candidate)));
    let better = |better: Better| match better {
        Better::Higher => "more is better",
        Better::Lower => "less is better",
        Better::Neutral => "",
    };
    let ticks = |range: &Range| range.ticks().into_iter().map(|(value, label)| (range.share(value), label)).collect();
    Some(Plot {
        up: format!("{label_y} ({})", better(front.up.better)),
        across: format!("{label_x} ({})", better(front.across.better)),
        ticks: [ticks(&across), ticks(&up)],
        series: series.collect(),
        shaded: Vec::new(),
        here: here.map(place),
        cursor: under.map(|(x, y)| (x, Some(y))),
    })
}

/// What is read out: the target, the knobs that lead to the point, its figures against the scenario's.
fn read(app: &App, front: &Front, canvas: &mut Canvas<'_>, area: Rect) {
    let (curve, point) = cursor(app, front);
    let names = front.curves.iter().map(|curve| &*curve.target);
    let Some(mut y) = legend(canvas, area, names, curve) else { return };
    let Some((setup, candidate)) = front.curves.get(curve).and_then(|curve| curve.points.get(point)) else {
        let warn = canvas.role(Role::Warn);
        canvas.text(area.x, y, area.width, "no layout of it can run this", warn);
        return;
    };
    let (value, mark) = (canvas.role(Role::Value), canvas.role(Role::Mark));
    if *setup == app.now.setup {
        canvas.text(area.x, y, area.width, &format!("{} here", canvas.glyphs.mark), mark);
        y += 1;
    } else {
        for line in wrap(&changes(candidate), usize::from(area.width)) {
            if y < area.bottom() {
                canvas.text(area.x, y, area.width, &line, value);
            }
            y += 1;
        }
    }
    // The pair first; then all others.
    let rest = Rect { y, height: area.bottom().saturating_sub(y), ..area };
    figures(app, candidate, &[front.across, front.up], canvas, rest);
}

/// What the line of information says.
#[must_use]
pub fn info(app: &App) -> String {
    let Some(front) = app.queries.frontier.answer() else { return String::new() };
    let pairs = crate::tui::frontier::pairs(app);
    let at = pairs.iter().position(|pair| *pair == front.pair).unwrap_or_default();
    format!("{} ({} of {}): Pareto-optimal points", front.pair.name, at + 1, pairs.len())
}

/// Moves the cursor to the point that is nearest to a click; whether it stood there.
pub(in crate::tui) fn click(app: &mut App, column: u16, row: u16) -> bool {
    let Some(front) = app.queries.frontier.answer().cloned() else { return false };
    let body = layout::areas(app).body;
    let inner = Rect::new(body.x + 1, body.y + 1, body.width.saturating_sub(2), body.height.saturating_sub(2));
    let (picture, _) = split(inner);
    let Some(plot) = plot(app, &front) else { return false };
    let inside = plot.picture(picture);
    if !inside.contains((column, row).into()) {
        return false;
    }
    let at = (
        f64::from(column - inside.x) / f64::from(inside.width.max(1)),
        1.0 - f64::from(row - inside.y) / f64::from(inside.height.max(1)),
    );
    let far = |(x, y): (f64, f64)| (x - at.0).powi(2) + (y - at.1).powi(2);
    let all = plot.series.iter().enumerate().flat_map(|(curve, series)| {
        series.points.iter().enumerate().filter_map(move |(point, place)| Some(((curve, point), (*place)?)))
    });
    let Some((place, _)) = all.min_by(|(_, a), (_, b)| far(*a).total_cmp(&far(*b))) else { return false };
    let again = cursor(app, &front) == place;
    (app.trading.curve, app.trading.point) = (place.0, Some(place.1));
    again
}
