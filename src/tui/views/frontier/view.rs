//! Draws the Pareto frontier of each target for two metrics, and the settings of the point under the cursor.

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::input::keymap::Action;
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::views::frontier::{FrontierCurves, cursor};
use crate::tui::views::layout;
use crate::tui::views::sweep::view::{draw_no_answer, figures, legend, range, remark_or_method, scaled, split};
use crate::tui::widgets::draw::{Canvas, wrap};
use crate::tui::widgets::plot::{self, Limit, Plot, Series, Shape};
use atlas_plan::estimate::{Direction, Metric, MetricId, Scale};
use atlas_plan::search::Condition;
use atlas_plan::search::condition::Relation;
use atlas_plan::search::optimize::Candidate;
use atlas_report::chart::Axis;
use atlas_report::chart::axis::Range;
use atlas_report::optimum::changes;

/// Draws the view.
pub fn frontier(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let query = &app.queries.frontier;
    let front = query.answer().filter(|front| crate::tui::views::frontier::pairs(&app.answer).contains(&front.pair));
    let title = front.map_or_else(|| "Frontier".to_owned(), |front| format!("Frontier: {}", front.pair.name));
    let inner = canvas.view(area, View::Frontier, &title, &remark_or_method(&app.answer, query), app.tour.is_none());
    let Some(front) = front else {
        let trouble = query.problem().unwrap_or("frontiers need the analytical engine");
        return draw_no_answer(&app.answer, Some(trouble).filter(|_| query.progress().is_none()), canvas, inner);
    };
    let (picture, reading) = split(inner);
    match plot(app, front) {
        Some(plot) => plot.draw(canvas, picture),
        None if picture.height == 0 => {}
        None => {
            let warn = canvas.role(Role::Warn);
            canvas.text(picture.x, picture.y, picture.width, "no layout on these targets can run this workload", warn);
        }
    }
    read(app, front, canvas, reading);
}

/// Returns the range of an axis. It does not start at zero if the values are close together.
fn spread(label: &str, values: Vec<f64>) -> Option<Range> {
    const NEAR: f64 = 0.5;
    let (axis, range) = range(label, values.iter().copied())?;
    let (low, high) = values.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(*v), high.max(*v)));
    if axis.from_zero && low > NEAR * high {
        return Axis { from_zero: false, ..axis }.range(values.into_iter());
    }
    Some(range)
}

fn plot(app: &App, front: &FrontierCurves) -> Option<Plot> {
    let all =
        || front.curves.iter().flat_map(|curve| &curve.points).filter_map(|(_, candidate)| front.place(candidate));
    let here = app.answer.value(front.across).zip(app.answer.value(front.up)).filter(|_| app.answer.fits());
    let (factor_x, label_x) = scaled(front.across, all().chain(here).map(|(x, _)| x));
    let (factor_y, label_y) = scaled(front.up, all().chain(here).map(|(_, y)| y));
    let across = spread(&label_x, all().chain(here).map(|(x, _)| factor_x * x).collect())?;
    let up = spread(&label_y, all().chain(here).map(|(_, y)| factor_y * y).collect())?;
    let place = |(x, y): (f64, f64)| (across.share(factor_x * x), up.share(factor_y * y));
    let edits = app
        .trail()
        .iter()
        .filter(|point| point.step != 0 && point.fits && point.setup.workload == app.now.setup.workload);
    let trail = edits.filter_map(|point| point.value(front.across).zip(point.value(front.up)));
    let trail = trail.filter(|(x, y)| {
        (0.0..=1.0).contains(&across.share(factor_x * x)) && (0.0..=1.0).contains(&up.share(factor_y * y))
    });
    let series = front.curves.iter().map(|curve| Series {
        points: curve.points.iter().map(|(_, candidate)| front.place(candidate).map(place)).collect(),
        name: curve.target.to_string(),
        shape: Shape::Line,
    });
    let (curve, point) = cursor(app, front);
    let under = front.curves.get(curve).and_then(|curve| curve.points.get(point));
    let under = under.and_then(|(_, candidate)| front.place(candidate)).map(place);
    let better = |better: Direction| match better {
        Direction::Higher => "higher is better",
        Direction::Lower => "lower is better",
        Direction::Neutral => "",
    };
    let limits = bounds(app, front).into_iter().filter_map(|bound| {
        let at = if bound.across { across.share(factor_x * bound.value) } else { up.share(factor_y * bound.value) };
        (0.0..=1.0).contains(&at).then(|| Limit { across: bound.across, at, name: bound.name.clone() })
    });
    let ticks = |range: &Range| range.ticks().into_iter().map(|(value, label)| (range.share(value), label)).collect();
    Some(Plot {
        up: format!("{label_y} ({})", better(front.up.better)),
        across: format!("{label_x} ({})", better(front.across.better)),
        ticks: [ticks(&across), ticks(&up)],
        series: series.collect(),
        shaded: Vec::new(),
        trail: trail.map(place).collect(),
        limits: limits.collect(),
        highlighted: here.map(place),
        cursor: under.map(|(x, y)| (x, Some(y))),
    })
}

/// A bound on one of the two metrics in the question of the race.
struct Bound {
    across: bool,
    value: f64,
    /// Whether it is a lower bound.
    least: bool,
    name: String,
}

/// Returns the bounds on the two metrics in the question of the race. A bound on TPOT is also a bound on tokens/s per
/// user.
fn bounds(app: &App, front: &FrontierCurves) -> Vec<Bound> {
    let conditions = crate::tui::views::race::question(app).constraints.into_iter();
    let known = conditions.filter_map(|condition| {
        let Condition::Metric(metric, relation, value) = condition else { return None };
        let least = match relation {
            Relation::AtLeast | Relation::Above => true,
            Relation::AtMost | Relation::Below => false,
            Relation::Equal | Relation::Different => return None,
        };
        let sign = match (least, app.glyphs.is_ascii()) {
            (true, false) => "≥",
            (false, false) => "≤",
            (true, true) => ">=",
            (false, true) => "<=",
        };
        let name = format!("{} {sign} {}", metric.label, plot::short(&metric.show(value)));
        let inverse = metric.id == MetricId::TpotMs && value > 0.0;
        let own = |figure: &Metric| match () {
            () if figure == metric => Some((value, least)),
            () if inverse && figure.id == MetricId::TokensPerSecPerUser => Some((1000.0 / value, !least)),
            () => None,
        };
        let of_across = own(front.across).map(|found| (true, found));
        let (across, (value, least)) = of_across.or_else(|| own(front.up).map(|found| (false, found)))?;
        Some(Bound { across, value, least, name })
    });
    known.collect()
}

/// Returns the best value of each curve that meets the first bound, in one unit. This is the main use of the chart.
fn within_bound(app: &App, front: &FrontierCurves) -> Option<(String, Vec<String>)> {
    let all = bounds(app, front);
    let bound = all.first()?;
    let (bounded, free) = if bound.across { (front.across, front.up) } else { (front.up, front.across) };
    let key = |value: &f64| free.better.sort_key(*value);
    let best: Vec<Option<f64>> = { front.curves.iter() }
        .map(|curve| {
            let keeps = |candidate: &&Candidate| {
                let keeps = |at: f64| if bound.least { at >= bound.value } else { at <= bound.value };
                candidate.value(bounded).is_some_and(keeps)
            };
            let kept = curve
                .points
                .iter()
                .map(|(_, candidate)| candidate)
                .filter(keeps)
                .filter_map(|candidate| candidate.value(free));
            { kept }.min_by(|a, b| key(a).total_cmp(&key(b)))
        })
        .collect();
    let scale = Scale::of(free, best.iter().copied().flatten());
    let shown = best.into_iter().map(|best| best.map_or_else(|| "–".to_owned(), |best| scale.with_unit(best)));
    Some((format!("best {} with {}", free.label, bound.name), shown.collect()))
}

/// Draws the point under the cursor: its target, its knobs, and its metrics compared with the scenario's.
fn read(app: &App, front: &FrontierCurves, canvas: &mut Canvas<'_>, area: Rect) {
    let (curve, point) = cursor(app, front);
    let best = within_bound(app, front);
    // The best values also name all curves. If there is no space for both, they replace the legend.
    let crowded = best.as_ref().is_some_and(|(_, values)| usize::from(area.height) < values.len() + 3);
    let names = front.curves.iter().map(|curve| &*curve.target);
    let below = if crowded { Some(area.y) } else { legend(canvas, area, names, curve) };
    let Some(mut y) = below else { return };
    if let Some((heading, values)) = best {
        let (heading_style, value) = (canvas.role(Role::Heading), canvas.role(Role::Value));
        if y < area.bottom() {
            canvas.text(area.x, y, area.width, &heading, heading_style);
        }
        let longest = values.iter().map(|value| value.width()).max().unwrap_or_default();
        let longest = u16::try_from(longest).unwrap_or(area.width);
        let names = front.curves.iter().map(|curve| curve.target.width()).max().unwrap_or_default();
        let names = u16::try_from(names + 4).unwrap_or(area.width).min(area.width.saturating_sub(longest));
        let wide = names + longest + 2;
        let in_a_row = if crowded { (area.width + 2).checked_div(wide).unwrap_or(1).max(1) } else { 1 };
        let all = front.curves.iter().zip(&values).enumerate().collect::<Vec<_>>();
        for row in all.chunks(usize::from(in_a_row)) {
            y += 1;
            for (x, (index, (curve, shown))) in (area.x..).step_by(usize::from(wide)).zip(row) {
                if y < area.bottom() {
                    let style = canvas.role(plot::color(*index));
                    canvas.text(x, y, names, &format!("{} {}", plot::letter(*index), curve.target), style);
                    canvas.right(x + names, y, longest, shown, value);
                }
            }
        }
        y += 2;
    }
    if y >= area.bottom() {
        return;
    }
    let Some((setup, candidate)) = front.curves.get(curve).and_then(|curve| curve.points.get(point)) else {
        let warn = canvas.role(Role::Warn);
        canvas.text(area.x, y, area.width, "no layout can run this workload", warn);
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
    // The two metrics of the chart first; then all others.
    let rest = Rect { y, height: area.bottom().saturating_sub(y), ..area };
    figures(&app.answer, candidate, &[front.across, front.up], canvas, rest);
}

/// Returns the information line.
#[must_use]
pub fn info(app: &App) -> String {
    let Some(front) = app.queries.frontier.answer() else { return String::new() };
    let pairs = crate::tui::views::frontier::pairs(&app.answer);
    let at = pairs.iter().position(|pair| *pair == front.pair).unwrap_or_default();
    let (curve, point) = cursor(app, front);
    let under = front.curves.get(curve).and_then(|curve| Some((&curve.target, &curve.points.get(point)?.1)));
    let under = under.and_then(|(target, candidate)| Some((target, front.place(candidate)?)));
    let under = under.map_or_else(String::new, |(target, (across, up))| {
        let [across, up] = [(front.across, across), (front.up, up)].map(|(metric, v)| (metric.label, metric.brief(v)));
        format!("; at the cursor: {target}, {} {}, {} {}", across.0, across.1, up.0, up.1)
    });
    format!("{} ({} of {}): Pareto-optimal points{under}", front.pair.name, at + 1, pairs.len())
}

/// Moves the cursor to the point nearest to a click. Returns Enter if it was there already.
pub(super) fn click(app: &mut App, (column, row): (u16, u16)) -> Option<Action> {
    let front = app.queries.frontier.answer().cloned()?;
    let body = layout::areas(app).body;
    let inner = Rect::new(body.x + 1, body.y + 1, body.width.saturating_sub(2), body.height.saturating_sub(2));
    let (picture, _) = split(inner);
    let plot = plot(app, &front)?;
    let inside = plot.picture(picture);
    if !inside.contains((column, row).into()) {
        return None;
    }
    let at = (
        f64::from(column - inside.x) / f64::from(inside.width.max(1)),
        1.0 - f64::from(row - inside.y) / f64::from(inside.height.max(1)),
    );
    let far = |(x, y): (f64, f64)| (x - at.0).powi(2) + (y - at.1).powi(2);
    let all = plot.series.iter().enumerate().flat_map(|(curve, series)| {
        series.points.iter().enumerate().filter_map(move |(point, place)| Some(((curve, point), (*place)?)))
    });
    let (place, _) = all.min_by(|(_, a), (_, b)| far(*a).total_cmp(&far(*b)))?;
    let again = cursor(app, &front) == place;
    (app.frontier.curve, app.frontier.point) = (place.0, Some(place.1));
    again.then_some(Action::Accept)
}
