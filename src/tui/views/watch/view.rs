//! Draws the watch: a chart of measured steps over the predicted band, then the verdict and its likely cause.

use atlas_cluster::watch::{Point, Position, WatchState, diagnose::duration, diagnose::durations};
use atlas_config::Mode;
use ratatui::layout::Rect;

use super::{Change, WatchReading};
use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::views::draw_lines;
use crate::tui::widgets::draw::{Canvas, wrap};

const VIEW: View = View::Watch;
/// Width of the scale to the left of the chart.
const SCALE: u16 = 10;
/// Minimum height of the chart.
const MIN_CHART_ROWS: u16 = 5;

/// Text shown when no job is watched.
const START: &str = "No job is watched. Start with `atlas tui --watch LOG` or `--watch JOBID`, or press vh and then Enter on a \
                     submission in the history.";

/// Returns the information line.
#[must_use]
pub fn info(app: &App) -> String {
    match app.watch.seen.answer() {
        None if app.watch.logs.is_empty() => "a running job compared with its prediction".to_owned(),
        None => app.watch.seen.problem().unwrap_or("reading the log").to_owned(),
        Some(seen) => seen.files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" "),
    }
}

/// Draws the view.
pub fn draw(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(seen) = app.watch.seen.answer() else {
        let inner = canvas.view(area, VIEW, "Watch", "", app.tour.is_none());
        let text = if app.watch.logs.is_empty() { START.to_owned() } else { info(app) };
        canvas.message(inner, &text, canvas.role(Role::Dim));
        return;
    };
    let state = &seen.state;
    let remark = state.prediction.as_ref().map_or("no prediction", |plan| &plan.name);
    let inner = canvas.view(area, VIEW, "Watch", remark, app.tour.is_none());
    let text = status_lines(seen, app.answer.mode(), inner.width.saturating_sub(2));
    let wanted = u16::try_from(text.len()).unwrap_or(u16::MAX);
    // Without a chart the text starts at the top.
    let charted = !state.times.points().is_empty();
    let height = inner.height.saturating_sub(wanted).max(MIN_CHART_ROWS.min(inner.height / 2)) * u16::from(charted);
    chart(state, canvas, Rect { height, ..inner });
    draw_lines(canvas, Rect { y: inner.y + height, height: inner.height - height, ..inner }, &text, app.view_scroll);
}

/// Formats the verdict, its likely cause, when the run ends, and the latest changes.
fn status_lines(seen: &WatchReading, mode: Mode, width: u16) -> Vec<(Role, String)> {
    let state = &seen.state;
    let mut out = Vec::new();
    if state.position == Position::Waiting && state.times.points().is_empty() {
        let job = match mode {
            Mode::Training => "training",
            Mode::Inference => "serving",
        };
        let text = format!(
            "No data from {job} yet. The log is compared with the scenario on the screen: select the workload \
             that the job runs."
        );
        out.extend(wrap(&text, usize::from(width)).into_iter().map(|line| (Role::Dim, line)));
        return out;
    }
    let unit = state.quantity().unit();
    let role = match state.position {
        Position::Slower { .. } => Role::Error,
        Position::Faster { .. } => Role::Warn,
        Position::Within => Role::Good,
        Position::Waiting | Position::NoPrediction => Role::Dim,
    };
    let at = state.last_step().map_or_else(String::new, |step| format!("{} {step}: ", state.counter()));
    out.push((role, format!("{at}{}", state.position.text(state.counter()))));
    if let Some(now) = state.now {
        let text = match &state.prediction {
            Some(plan) => {
                let [now, planned, low, high] = durations([now, plan.seconds, plan.band[0], plan.band[1]]);
                format!("{now} per {unit}, predicted {planned} ({low} to {high})")
            }
            None => format!("{} per {unit}", duration(now)),
        };
        out.push((Role::Text, text));
    }
    if let Some(progress) = state.progress() {
        let planned = progress
            .planned_seconds
            .map_or_else(String::new, |planned| format!(", {} at the predicted pace", duration(planned)));
        let usd = progress.usd.map_or_else(String::new, |usd| format!(", {usd:.2} USD to completion"));
        let (step, of, left) = (progress.step, progress.of, duration(progress.seconds));
        out.push((Role::Text, format!("{step} of {of} steps, {left} to go{planned}{usd}")));
    }
    if let Some(diagnosis) = &state.diagnosis {
        for suspect in diagnosis.suspects.iter().take(2).filter(|suspect| suspect.weight >= 0.1) {
            let evidence = suspect.evidence.join("; ");
            let colon = if evidence.is_empty() { "" } else { ": " };
            let (cause, share) = (suspect.cause.name(), 100.0 * suspect.weight);
            out.push((Role::Warn, format!("{cause} {share:.0} %{colon}{evidence}")));
        }
        if let Some(first) = diagnosis.first() {
            out.push((Role::Dim, format!("next: {}", first.cause.check())));
        }
    }
    // The current verdict is already shown above.
    let repeats = |change: &&Change| change.verdict.is_some_and(|verdict| verdict.is_same(state.position));
    let news = seen.events.iter().filter(|change| !repeats(change)).filter_map(|change| change.text.lines().next());
    out.extend(news.map(|line| (Role::Dim, line.to_owned())));
    let wide = usize::from(width);
    out.into_iter().flat_map(|(role, text)| wrap(&text, wide).into_iter().map(move |line| (role, line))).collect()
}

/// Draws measured times over the predicted band. Each column is the mean of its points.
fn chart(state: &WatchState, canvas: &mut Canvas<'_>, area: Rect) {
    let points = state.times.points();
    if area.height < 3 || area.width <= SCALE + 4 || points.is_empty() {
        return;
    }
    let plot = Rect { x: area.x + SCALE, width: area.width - SCALE - 1, height: area.height - 1, ..area };
    let columns = means(points, usize::from(plot.width));
    let band = state.prediction.as_ref().map(|plan| plan.band);
    let ends = columns.iter().copied().chain(band.into_iter().flatten());
    let (low, high) = ends.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    let room = (0.1 * (high - low)).max(0.01 * high);
    let (bottom, top) = ((low - room).max(0.0), high + room);
    let rows = plot.height;
    let row_of = |value: f64| {
        let share = ((value - bottom) / (top - bottom)).clamp(0.0, 1.0);
        plot.bottom() - 1 - ((f64::from(rows) - 1.0) * share).round() as u16
    };
    let ascii = canvas.glyphs.is_ascii();
    let (shade, dot, line) = if ascii { (".", "o", "-") } else { ("░", "●", "─") };
    if let (Some([low, high]), Some(plan)) = (band, &state.prediction) {
        let style = canvas.role(Role::Dim);
        for y in row_of(high)..=row_of(low) {
            canvas.text(plot.x, y, plot.width, &shade.repeat(usize::from(plot.width)), style);
        }
        canvas.text(plot.x, row_of(plan.seconds), plot.width, &line.repeat(usize::from(plot.width)), style);
    }
    let outside = |value: f64| band.is_some_and(|[low, high]| value < low || value > high);
    for (x, value) in (plot.x..plot.right()).zip(&columns) {
        let style = canvas.role(if outside(*value) { Role::Error } else { Role::Good });
        canvas.text(x, row_of(*value), 1, dot, style);
    }
    let dim = canvas.role(Role::Dim);
    let planned = state.prediction.as_ref().map_or(top, |plan| plan.seconds);
    let values = [top, bottom, planned];
    for (value, label) in values.into_iter().zip(durations(values)) {
        canvas.right(area.x, row_of(value), SCALE - 1, if value > 0.0 { &label } else { "0" }, dim);
    }
    let first = points.first().map_or(0, |point| point.step);
    let last = state.last_step().unwrap_or(first);
    canvas.text(plot.x, plot.bottom(), plot.width, &format!("{} {first}", state.counter()), dim);
    let used = u16::try_from(columns.len()).unwrap_or(plot.width).clamp(24, plot.width.max(24));
    canvas.right(plot.x, plot.bottom(), used.min(plot.width), &last.to_string(), dim);
}

/// Returns at most `columns` values, each the mean of neighboring points.
fn means(points: &[Point], columns: usize) -> Vec<f64> {
    let each = points.len().div_ceil(columns.max(1)).max(1);
    let mean = |points: &[Point]| points.iter().map(|point| point.value).sum::<f64>() / points.len().max(1) as f64;
    points.chunks(each).map(mean).collect()
}
