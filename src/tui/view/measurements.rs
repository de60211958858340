//! Measured rows beside predictions, with error bars; above them the calibration that is proposed.

use ratatui::layout::Rect;

use crate::tui::app::{App, View};
use crate::tui::draw::{Canvas, wrap};
use crate::tui::layout;
use crate::tui::measured::{Proposal, judged, unanswered};
use crate::tui::theme::Role;
use atlas_core::plan::Engine;
use atlas_core::units;
use atlas_evidence::calibrate::Parameter;
use atlas_evidence::calibrate::judge::Judged;
use atlas_evidence::calibrate::predict::Figure;
use atlas_plan::estimate::Metric;
use atlas_report::calibration::changes;

/// A line of the view.
enum Line<'a> {
    Text(Role, String),
    Blank,
    /// The proposed calibration; Enter accepts it.
    Proposal(String),
    ParameterHead,
    Parameter(Parameter),
    /// Whether there are errors after a calibration.
    RowHead(bool),
    Row(&'a Judged),
}

fn lines(app: &App) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for problem in &app.measured.problems {
        lines.push(Line::Text(Role::Error, problem.clone()));
    }
    if app.measured.rows.is_empty() {
        for text in [
            "no measurements yet",
            "start with --measured FILE…, or put logs, benchmark JSON, CSV or measurement YAML in measurements/",
            "everything that `atlas ingest` can read is loaded, and reloaded when it changes",
        ] {
            lines.push(Line::Text(Role::Dim, text.to_owned()));
        }
        return broken(app, lines);
    }
    if let Some(proposal) = &app.measured.proposal {
        proposed(proposal, &mut lines);
    }
    let rows = judged(app);
    for (name, n, before, after) in changes(rows) {
        let role = if after <= before { Role::Good } else { Role::Warn };
        let text = format!("{name} (n = {n}): median error {before:.1} % → {after:.1} %");
        lines.push(Line::Text(role, text));
    }
    if app.measured.proposal.is_some() {
        lines.push(Line::Blank);
    }
    if !rows.is_empty() {
        lines.push(Line::RowHead(rows.iter().any(|row| row.after.is_some())));
        lines.extend(rows.iter().map(Line::Row));
    }
    if let Some((n, reason)) = unanswered(app) {
        let target = &app.now.setup.target;
        let text = format!("{n} of {} rows have no prediction on {target}; {reason}", app.measured.rows.len());
        lines.push(Line::Text(Role::Warn, text));
    }
    broken(app, lines)
}

/// Lines whose words are longer than the screen is wide, broken.
fn broken<'a>(app: &App, lines: Vec<Line<'a>>) -> Vec<Line<'a>> {
    let width = usize::from(layout::areas(app).body.width.saturating_sub(4)).max(20);
    lines
        .into_iter()
        .flat_map(|line| match line {
            Line::Text(role, text) => wrap(&text, width).into_iter().map(|part| Line::Text(role, part)).collect(),
            Line::Proposal(text) => {
                let more = |(nth, part)| if nth == 0 { Line::Proposal(part) } else { Line::Text(Role::Heading, part) };
                wrap(&text, width).into_iter().enumerate().map(more).collect()
            }
            other => vec![other],
        })
        .collect()
}

fn proposed(proposal: &Proposal, lines: &mut Vec<Line<'_>>) {
    let verb = if proposal.replaces { "replaces" } else { "writes" };
    let text = format!("proposed: Enter {verb} {}, Backspace discards", proposal.path.display());
    lines.push(Line::Proposal(text));
    lines.push(Line::ParameterHead);
    lines.extend(proposal.outcome.all().into_iter().map(Line::Parameter));
    for warning in &proposal.outcome.warnings {
        lines.push(Line::Text(Role::Warn, warning.clone()));
    }
    lines.push(Line::Blank);
}

/// The lines that can be selected: those of a proposal, and the predictions.
fn stops(all: &[Line<'_>]) -> Vec<usize> {
    let stands = |line: &Line<'_>| matches!(line, Line::Proposal(_) | Line::Parameter(_) | Line::Row(_));
    all.iter().enumerate().filter(|(_, line)| stands(line)).map(|(at, _)| at).collect()
}

/// Number of rows that can be selected; number of lines if none can.
#[must_use]
pub fn rows(app: &App) -> usize {
    let all = lines(app);
    let stops = stops(&all).len();
    if stops > 0 { stops } else { all.len() }
}

/// First and last line of a row, with the lines above the first row and below the last.
#[must_use]
pub fn lines_of(app: &App, row: usize) -> (usize, usize) {
    const BELOW: usize = 4;
    let all = lines(app);
    let stops = stops(&all);
    let Some(line) = stops.get(row).copied() else { return (row, row) };
    let last = if row + 1 == stops.len() { all.len().saturating_sub(1).min(line + BELOW) } else { line };
    (if row == 0 { 0 } else { line }, last)
}

/// The prediction under the cursor.
#[must_use]
pub fn here(app: &App) -> Option<&Judged> {
    let all = lines(app);
    match stops(&all).get(app.view_row).and_then(|at| all.get(*at)) {
        Some(Line::Row(one)) => Some(one),
        _ => None,
    }
}

/// The information line.
#[must_use]
pub fn info(app: &App) -> String {
    match (&app.measured.proposal, app.measured.rows.len()) {
        (Some(_), _) => "old and new values, and the change in error; nothing is written yet".to_owned(),
        (None, 0) => "measured runs against their predictions".to_owned(),
        (None, n) => format!("{n} measured rows; bar: predicted interval; line: measured value"),
    }
}

/// The view as text.
#[must_use]
pub fn text(app: &App) -> String {
    let mut out = String::new();
    for line in lines(app) {
        out += &match line {
            Line::Text(_, text) | Line::Proposal(text) => text,
            Line::Blank => String::new(),
            Line::ParameterHead => "parameter\tbefore\tvalue\tlow\thigh\tn".to_owned(),
            Line::Parameter(one) => {
                let [low, high] =
                    one.interval.map_or([String::new(), String::new()], |ends| ends.map(|end| end.to_string()));
                let before = one.before.map_or_else(String::new, |before| before.to_string());
                format!("{}\t{before}\t{}\t{low}\t{high}\t{}", one.symbol, one.value, one.n)
            }
            Line::RowHead(_) => "row\tengine\tfigure\tmeasured\tpredicted\terror\tcalibrated".to_owned(),
            Line::Row(one) => format!(
                "{}\t{}\t{}\t{}\t{}\t{}\t{}",
                one.source,
                one.engine.name(),
                one.figure.name(),
                one.measured,
                one.before,
                one.error_before(),
                one.after.map_or_else(String::new, |after| after.to_string())
            ),
        };
        out.push('\n');
    }
    out
}

/// Draws the view.
pub fn measurements(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let remark = match &app.measured.proposal {
        Some(_) => "Enter writes, Backspace discards",
        None if app.measured.rows.is_empty() => "",
        None => "f calibrates",
    };
    let inner = canvas.view(area, View::Measurements, "Measurements", remark, app.tour.is_none());
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let all = lines(app);
    let here = stops(&all).get(app.view_row).copied().filter(|_| app.tour.is_none());
    for (y, (at, line)) in (inner.y..inner.bottom()).zip(all.iter().enumerate().skip(app.view_scroll)) {
        let row = Rect { y, height: 1, ..inner };
        draw(canvas, row, line);
        if here == Some(at) {
            // The row, but not its bar: that is wide, and colors tell something there.
            let width = Cells::of(inner).bar.x.saturating_sub(inner.x).min(inner.width);
            canvas.tint(Rect { width, ..row }, canvas.role(Role::Selection));
        }
    }
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(inner.height) < all.len());
}

fn draw(canvas: &mut Canvas<'_>, area: Rect, line: &Line<'_>) {
    match line {
        Line::Blank => {}
        Line::Text(role, text) => {
            let style = canvas.role(*role);
            canvas.text(area.x, area.y, area.width, text, style);
        }
        Line::Proposal(text) => {
            let style = canvas.role(Role::Heading);
            canvas.text(area.x, area.y, area.width, text, style);
        }
        Line::ParameterHead => {
            let style = canvas.role(Role::Heading);
            columns(
                canvas,
                area,
                ["parameter", "before", "", "value", "95 % interval", "n"].map(|text| (text.to_owned(), style)),
            );
        }
        Line::Parameter(one) => {
            let shown = |value: f64| units::significant(value, 4);
            let moved = one.before.is_none_or(|before| before != one.value);
            let (text, value) = (canvas.role(Role::Text), canvas.role(if moved { Role::Changed } else { Role::Value }));
            let dim = canvas.role(Role::Dim);
            let interval = one
                .interval
                .map_or_else(|| "unknown".to_owned(), |[low, high]| format!("{} – {}", shown(low), shown(high)));
            columns(
                canvas,
                area,
                [
                    (one.symbol.clone(), text),
                    (one.before.map_or_else(|| "-".to_owned(), shown), dim),
                    ("→".to_owned(), dim),
                    (shown(one.value), value),
                    (interval, text),
                    (one.n.to_string(), dim),
                ],
            );
        }
        Line::RowHead(after) => {
            let style = canvas.role(Role::Heading);
            let cells = Cells::of(area);
            canvas.text(cells.name.x, area.y, cells.name.width, "row", style);
            canvas.text(cells.engine.x, area.y, cells.engine.width, "engine", style);
            for (cell, text) in [
                (cells.figure, "figure"),
                (cells.measured, "measured"),
                (cells.predicted, "predicted"),
                (cells.error, "error"),
                (cells.after, if *after { "after" } else { "" }),
            ] {
                canvas.right(cell.x, area.y, cell.width, text, style);
            }
            let scale = if cells.bar.width >= 24 { "0 … twice the prediction" } else { "0 … 2× predicted" };
            canvas.text(cells.bar.x, area.y, cells.bar.width, scale, style);
        }
        Line::Row(one) => row(canvas, area, one),
    }
}

/// Widths of the parameters' columns: name, before, arrow, value, interval, n.
fn columns(canvas: &mut Canvas<'_>, area: Rect, cells: [(String, ratatui::style::Style); 6]) {
    const WIDTHS: [u16; 6] = [24, 10, 1, 10, 22, 6];
    let mut x = area.x;
    for (index, ((text, style), width)) in cells.into_iter().zip(WIDTHS).enumerate() {
        let width = width.min(area.right().saturating_sub(x));
        if index == 0 {
            canvas.text(x, area.y, width, &text, style);
        } else {
            canvas.right(x, area.y, width, &text, style);
        }
        x += width + 1;
    }
}

/// Areas of the cells of a row; the bar takes the remaining columns.
struct Cells {
    name: Rect,
    engine: Rect,
    figure: Rect,
    measured: Rect,
    predicted: Rect,
    error: Rect,
    after: Rect,
    bar: Rect,
}

impl Cells {
    fn of(area: Rect) -> Cells {
        let narrow = area.width < 100;
        let name = if narrow { 14 } else { area.width / 5 }.min(40);
        let mut x = area.x;
        let mut take = |width: u16| {
            let cell = Rect { x, width: width.min(area.right().saturating_sub(x)), ..area };
            x += cell.width + 1;
            cell
        };
        let (name, engine, figure) = (take(name), take(if narrow { 7 } else { 14 }), take(16));
        let (measured, predicted) = (take(if narrow { 8 } else { 9 }), take(9));
        let (error, after) = (take(8), take(8));
        let bar = take(48);
        Cells { name, engine, figure, measured, predicted, error, after, bar }
    }
}

fn row(canvas: &mut Canvas<'_>, area: Rect, one: &Judged) {
    let cells = Cells::of(area);
    let (text, value, dim) = (canvas.role(Role::Text), canvas.role(Role::Value), canvas.role(Role::Dim));
    let name = one.source.rsplit(['/', '\\']).next().unwrap_or_default();
    canvas.text(cells.name.x, area.y, cells.name.width, name, text);
    let engine = match one.engine {
        Engine::SemiEmpirical if cells.engine.width < 14 => "semi",
        Engine::Analytical if cells.engine.width < 14 => "analyt.",
        engine => engine.name(),
    };
    canvas.text(cells.engine.x, area.y, cells.engine.width, engine, dim);
    let metric = Metric::named(one.figure.name());
    let figure = match metric {
        _ if one.figure == Figure::TpotMs => "TPOT median, ms".to_owned(),
        Some(metric) if metric.axis_unit(1.0).1 == "ms" => format!("{}, ms", metric.label),
        Some(metric) => metric.label.to_owned(),
        None => one.figure.name().to_owned(),
    };
    canvas.right(cells.figure.x, area.y, cells.figure.width, &figure, dim);
    // Shares as the other views show them.
    let is_share = metric.is_some_and(|metric| metric.axis_unit(1.0).1 == "%");
    let shown = |value: f64| if is_share { units::percent(value) } else { units::significant(value, 4) };
    canvas.right(cells.measured.x, area.y, cells.measured.width, &shown(one.measured), value);
    canvas.right(cells.predicted.x, area.y, cells.predicted.width, &shown(one.before), text);
    let error = |error: f64| units::relative(1.0, 1.0 + error);
    let judged =
        |canvas: &Canvas<'_>, error: f64| canvas.role(if error.abs() < 0.15 { Role::Good } else { Role::Warn });
    let style = judged(canvas, one.error_before());
    canvas.right(cells.error.x, area.y, cells.error.width, &error(one.error_before()), style);
    if let Some(after) = one.error_after() {
        let style = judged(canvas, after);
        canvas.right(cells.after.x, area.y, cells.after.width, &error(after), style);
    }
    if cells.bar.width < 8 {
        return;
    }
    // From zero to twice the prediction, so that the prediction is in the middle.
    let at = |figure: f64| figure / one.before / 2.0;
    if let Some([low, high]) = one.before_interval {
        let style = canvas.role(Role::Dim);
        canvas.segment(cells.bar, (at(low), at(high)), style);
    }
    let [low, high] = one.measured_interval.unwrap_or([one.measured; 2]);
    let style = canvas.role(Role::Value);
    let width = f64::from(cells.bar.width).max(1.0);
    // A measurement is at least half a cell wide.
    canvas.segment(cells.bar, (at(low), at(high).max(at(low) + 0.5 / width)), style);
}
