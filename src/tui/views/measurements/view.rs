//! Draws measured rows next to predictions, with error bars; above them the proposed calibration.

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::views::layout;
use crate::tui::views::measurements::{Proposal, evaluated_rows, rows_without_prediction};
use crate::tui::widgets::draw::{Canvas, wrap};
use atlas_core::units;
use atlas_evidence::calibrate::Parameter;
use atlas_evidence::calibrate::judge::EvaluatedMetric;
use atlas_evidence::calibrate::predict::PredictedMetric;
use atlas_report::calibration::changes;

/// A line of the view.
enum Line<'a> {
    Text(Role, String),
    Blank,
    /// The proposed calibration; Enter accepts it.
    Proposal(String),
    ParameterHead,
    Parameter(Parameter),
    /// The second line of a parameter, if one is not enough.
    ParameterMore(Parameter),
    RowHead,
    Row(&'a EvaluatedMetric),
    /// The second line of a row, if one is not enough.
    RowMore(&'a EvaluatedMetric),
}

/// Returns the width of the lines.
fn width(app: &App) -> u16 {
    layout::areas(app).body.width.saturating_sub(4)
}

/// Whether there are errors after a calibration.
fn has_after(app: &App) -> bool {
    evaluated_rows(app).iter().any(|row| row.after.is_some())
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
            "all formats of `atlas ingest` are supported; files are reloaded when they change",
        ] {
            lines.push(Line::Text(Role::Dim, text.to_owned()));
        }
        return wrap_lines(app, lines);
    }
    if let Some(proposal) = &app.measured.proposal {
        proposed(proposal, width(app), &mut lines);
    }
    let rows = evaluated_rows(app);
    for (name, n, before, after) in changes(rows) {
        let role = if after <= before { Role::Good } else { Role::Warn };
        let text = format!("{name} (n = {n}): median error {before:.1} % → {after:.1} %");
        lines.push(Line::Text(role, text));
    }
    if app.measured.proposal.is_some() {
        lines.push(Line::Blank);
    }
    if !rows.is_empty() {
        // The legacy engine uses the coefficients of a profile and no hardware data: its errors are not comparable with
        // the others.
        let (own, legacy): (Vec<&EvaluatedMetric>, Vec<&EvaluatedMetric>) =
            rows.iter().partition(|row| row.engine.models_hardware());
        let two_lines = Cells::of(Rect::new(0, 0, width(app), 1), has_after(app)).two_lines;
        let more = |row| two_lines.then_some(Line::RowMore(row));
        let listed = |row| std::iter::once(Line::Row(row)).chain(more(row));
        lines.push(Line::RowHead);
        lines.extend(own.into_iter().flat_map(listed));
        if let Some(first) = legacy.first() {
            lines.push(Line::Text(Role::Heading, format!("legacy engine ({})", first.engine.name())));
            lines.extend(legacy.into_iter().flat_map(listed));
        }
    }
    if let Some((n, reason)) = rows_without_prediction(app) {
        let target = &app.now.setup.target;
        let text = format!("{n} of {} rows have no prediction on {target}; {reason}", app.measured.rows.len());
        lines.push(Line::Text(Role::Warn, text));
    }
    wrap_lines(app, lines)
}

/// Wraps lines that are longer than the screen is wide.
fn wrap_lines<'a>(app: &App, lines: Vec<Line<'a>>) -> Vec<Line<'a>> {
    let width = usize::from(width(app)).max(20);
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

fn proposed(proposal: &Proposal, width: u16, lines: &mut Vec<Line<'_>>) {
    let verb = if proposal.replaces { "replaces" } else { "writes" };
    let text = format!("proposed calibration: Enter {verb} {}, Backspace discards", proposal.path.display());
    lines.push(Line::Proposal(text));
    lines.push(Line::ParameterHead);
    for one in proposal.outcome.all() {
        let more = (width < PARAMETER).then(|| Line::ParameterMore(one.clone()));
        lines.push(Line::Parameter(one));
        lines.extend(more);
    }
    for warning in &proposal.outcome.warnings {
        lines.push(Line::Text(Role::Warn, warning.clone()));
    }
    lines.push(Line::Blank);
}

/// Returns the indices of lines that can be selected: those of a proposal, and the predictions.
fn selectable_lines(all: &[Line<'_>]) -> Vec<usize> {
    let stands = |line: &Line<'_>| matches!(line, Line::Proposal(_) | Line::Parameter(_) | Line::Row(_));
    all.iter().enumerate().filter(|(_, line)| stands(line)).map(|(at, _)| at).collect()
}

/// Number of rows that can be selected; number of lines if none can.
#[must_use]
pub fn rows(app: &App) -> usize {
    let all = lines(app);
    let stops = selectable_lines(&all).len();
    if stops > 0 { stops } else { all.len() }
}

/// Returns the first and last line of a row, including the lines above the first row and some below the last.
#[must_use]
pub fn lines_of(app: &App, row: usize) -> Option<(usize, usize)> {
    const LINES_BELOW: usize = 4;
    let all = lines(app);
    let stops = selectable_lines(&all);
    let Some(line) = stops.get(row).copied() else { return Some((row, row)) };
    let has_more = matches!(all.get(line + 1), Some(Line::RowMore(_) | Line::ParameterMore(_)));
    let own = line + usize::from(has_more);
    let last = if row + 1 == stops.len() { all.len().saturating_sub(1).min(line + LINES_BELOW) } else { own };
    Some((if row == 0 { 0 } else { line }, last))
}

/// Returns the prediction under the cursor.
#[must_use]
pub fn prediction_under_cursor(app: &App) -> Option<&EvaluatedMetric> {
    let all = lines(app);
    match selectable_lines(&all).get(app.view_row).and_then(|at| all.get(*at)) {
        Some(Line::Row(one)) => Some(one),
        _ => None,
    }
}

/// Returns the information line.
#[must_use]
pub fn info(app: &App) -> String {
    match (&app.measured.proposal, app.measured.rows.len()) {
        (Some(_), _) => "old and new values, and the change in error; nothing is written yet".to_owned(),
        (None, 0) => "measured runs compared with their predictions".to_owned(),
        (None, n) => {
            let rows = if n == 1 { "1 measured row".to_owned() } else { format!("{n} measured rows") };
            let has_bar = Cells::of(Rect::new(0, 0, width(app), 1), has_after(app)).bar.width > 0;
            let bar = "; bar: predicted interval; line: measured value";
            rows + if has_bar { bar } else { "" }
        }
    }
}

/// Returns the view as text.
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
            Line::ParameterMore(_) | Line::RowMore(_) => continue,
            Line::RowHead => "row\tengine\tfigure\tmeasured\tpredicted\terror\tcalibrated".to_owned(),
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
    let cells = Cells::of(inner, has_after(app));
    let here = selectable_lines(&all).get(app.view_row).copied().filter(|_| app.tour.is_none());
    for (y, (at, line)) in (inner.y..inner.bottom()).zip(all.iter().enumerate().skip(app.view_scroll)) {
        let row = Rect { y, height: 1, ..inner };
        draw(canvas, row, line, &cells);
        let is_more = matches!(line, Line::RowMore(_) | Line::ParameterMore(_));
        if here == Some(at) || is_more && here.is_some_and(|here| here + 1 == at) {
            // Highlight the row, but not its bar, which is wide and uses colors.
            let width = cells.bar.x.saturating_sub(inner.x).min(inner.width);
            canvas.tint(Rect { width, ..row }, canvas.role(Role::Selection));
        }
    }
    canvas.more(area, app.view_scroll > 0, app.view_scroll + usize::from(inner.height) < all.len());
}

fn draw(canvas: &mut Canvas<'_>, area: Rect, line: &Line<'_>, cells: &Cells) {
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
            let [name, n] = ["parameter", "n"].map(|text| (text.to_owned(), style));
            let values = ["before", "", "value", "95 % interval"].map(|text| (text.to_owned(), style));
            if area.width < PARAMETER {
                canvas.text(area.x, area.y, area.width, "before → value, 95 % interval", style);
            } else {
                columns(canvas, area, &[NAME, 10, 1, 10, 22, 6], std::iter::once(name).chain(values).chain([n]));
            }
        }
        Line::Parameter(one) => {
            let (text, dim) = (canvas.role(Role::Text), canvas.role(Role::Dim));
            let [name, n] = [(one.symbol.clone(), text), (one.n.to_string(), dim)];
            if area.width < PARAMETER {
                let n = (format!("n = {}", n.0), dim);
                columns(canvas, area, &[area.width.saturating_sub(10), 9], [name, n]);
            } else {
                let all = std::iter::once(name).chain(values(canvas, one)).chain([n]);
                columns(canvas, area, &[NAME, 10, 1, 10, 22, 6], all);
            }
        }
        Line::ParameterMore(one) => {
            // Drawn one after another: they fit, whatever their widths.
            let mut x = area.x + 2;
            for (text, style) in values(canvas, one) {
                x = canvas.text(x, area.y, area.right().saturating_sub(x), &text, style) + 1;
            }
        }
        Line::RowHead => {
            let style = canvas.role(Role::Heading);
            if cells.two_lines {
                canvas.text(area.x, area.y, area.width, "measured → predicted", style);
            } else {
                canvas.text(cells.name.x, area.y, cells.name.width, "run", style);
                for (cell, text) in
                    [(cells.figure, "figure"), (cells.measured, "measured"), (cells.predicted, "predicted")]
                {
                    canvas.right(cell.x, area.y, cell.width, text, style);
                }
            }
            canvas.right(cells.error.x, area.y, cells.error.width, "error", style);
            canvas.right(cells.after.x, area.y, cells.after.width, "after", style);
            let scale = if cells.bar.width >= 24 { "0 … twice the prediction" } else { "0 … 2× predicted" };
            canvas.text(cells.bar.x, area.y, cells.bar.width, scale, style);
        }
        Line::Row(one) => row(canvas, area, one, cells),
        Line::RowMore(one) => {
            let (text, dim) = (canvas.role(Role::Value), canvas.role(Role::Dim));
            let x = canvas.text(area.x + 2, area.y, area.width.saturating_sub(2), &figure(one), dim) + 1;
            let [measured, predicted] = [one.measured, one.before].map(|value| format_value(one, value));
            let room = area.right().saturating_sub(x);
            canvas.text(x, area.y, room, &format!("{measured} → {predicted}"), text);
        }
    }
}

/// Widths of a parameter's name and of its whole line.
const NAME: u16 = 24;
const PARAMETER: u16 = 78;

/// Formats a parameter's old and new value, and the interval.
fn values(canvas: &Canvas<'_>, one: &Parameter) -> [(String, ratatui::style::Style); 4] {
    let shown = |value: f64| units::significant(value, 4);
    let moved = one.before.is_none_or(|before| before != one.value);
    let (text, value) = (canvas.role(Role::Text), canvas.role(if moved { Role::Changed } else { Role::Value }));
    let dim = canvas.role(Role::Dim);
    let interval =
        one.interval.map_or_else(|| "unknown".to_owned(), |[low, high]| format!("{} – {}", shown(low), shown(high)));
    [
        (one.before.map_or_else(|| "-".to_owned(), shown), dim),
        ("→".to_owned(), dim),
        (shown(one.value), value),
        (interval, text),
    ]
}

/// Draws texts in columns of these widths. All but the first are right-aligned; those without a width take the
/// remaining space.
fn columns(
    canvas: &mut Canvas<'_>,
    area: Rect,
    widths: &[u16],
    cells: impl IntoIterator<Item = (String, ratatui::style::Style)>,
) {
    let mut x = area.x;
    for (index, (text, style)) in cells.into_iter().enumerate() {
        let width = widths.get(index).copied().unwrap_or(area.width).min(area.right().saturating_sub(x));
        if index == 0 {
            canvas.text(x, area.y, width, &text, style);
        } else {
            canvas.right(x, area.y, width, &text, style);
        }
        x += width + 1;
    }
}

/// Areas of the cells of a row; the bar takes the remaining columns. If there is no space for the values next to the
/// name of the run, they are on a second line.
struct Cells {
    two_lines: bool,
    name: Rect,
    engine: Rect,
    figure: Rect,
    measured: Rect,
    predicted: Rect,
    error: Rect,
    after: Rect,
    bar: Rect,
}

/// Widths of a metric's name, of a value, and of an error.
const FIGURE: u16 = 15;
const VALUE: u16 = 9;
const ERROR: u16 = 8;
/// Width of an engine's name, and minimum width of the row for showing it.
const ENGINE: u16 = 14;
const MIN_SIDE_BY_SIDE_WIDTH: u16 = 100;
/// Minimum width of a run's name, and minimum and maximum width of a bar.
const MIN_NAME_WIDTH: u16 = 8;
const BARS: (u16, u16) = (16, 48);

impl Cells {
    fn of(area: Rect, after: bool) -> Cells {
        let errors = ERROR + 1 + if after { ERROR + 1 } else { 0 };
        let figures = FIGURE + 1 + 2 * (VALUE + 1);
        let spare = area.width.saturating_sub(errors + figures);
        let two_lines = spare < MIN_NAME_WIDTH;
        let engine = if area.width >= MIN_SIDE_BY_SIDE_WIDTH { ENGINE } else { 0 };
        let most = if engine > 0 { (area.width / 5).min(40) } else { 30 };
        let name = if two_lines { area.width.saturating_sub(errors) } else { spare.min(most) };
        let mut x = area.x;
        let mut take = |width: u16| {
            let cell = Rect { x, width: width.min(area.right().saturating_sub(x)), ..area };
            x += cell.width + u16::from(width > 0);
            cell
        };
        let figures = [FIGURE, VALUE, VALUE].map(|width| if two_lines { 0 } else { width });
        let (name, engine) = (take(name), take(engine));
        let [figure, measured, predicted] = figures.map(&mut take);
        let (error, after) = (take(ERROR), take(if after { ERROR } else { 0 }));
        // The remaining space, unless that is too little for a bar.
        let bar = take(BARS.1);
        let bar = if bar.width < BARS.0 { Rect { width: 0, ..bar } } else { bar };
        Cells { two_lines, name, engine, figure, measured, predicted, error, after, bar }
    }
}

/// Returns the metric of a row with its unit.
fn figure(one: &EvaluatedMetric) -> String {
    let metric = one.figure.metric();
    match metric.axis_unit(1.0).1 {
        _ if one.figure == PredictedMetric::TpotMs => "TPOT median, ms".to_owned(),
        "ms" => format!("{}, ms", metric.label),
        _ => metric.label.to_owned(),
    }
}

/// Formats a value of a row's metric. Fractions are percentages, as in other views.
fn format_value(one: &EvaluatedMetric, value: f64) -> String {
    if one.figure.metric().axis_unit(1.0).1 == "%" { units::percent(value) } else { units::significant(value, 4) }
}

fn row(canvas: &mut Canvas<'_>, area: Rect, one: &EvaluatedMetric, cells: &Cells) {
    let (text, value, dim) = (canvas.role(Role::Text), canvas.role(Role::Value), canvas.role(Role::Dim));
    let name = one.source.rsplit(['/', '\\']).next().unwrap_or_default();
    canvas.text(cells.name.x, area.y, cells.name.width, name, text);
    canvas.text(cells.engine.x, area.y, cells.engine.width, one.engine.name(), dim);
    canvas.right(cells.figure.x, area.y, cells.figure.width, &figure(one), dim);
    canvas.right(cells.measured.x, area.y, cells.measured.width, &format_value(one, one.measured), value);
    canvas.right(cells.predicted.x, area.y, cells.predicted.width, &format_value(one, one.before), text);
    let error = |error: f64| units::relative(1.0, 1.0 + error);
    let judged =
        |canvas: &Canvas<'_>, error: f64| canvas.role(if error.abs() < 0.15 { Role::Good } else { Role::Warn });
    let style = judged(canvas, one.error_before());
    canvas.right(cells.error.x, area.y, cells.error.width, &error(one.error_before()), style);
    if let Some(after) = one.error_after() {
        let style = judged(canvas, after);
        canvas.right(cells.after.x, area.y, cells.after.width, &error(after), style);
    }
    if cells.bar.width == 0 {
        return;
    }
    let bar = Rect { y: area.y, ..cells.bar };
    // From zero to twice the prediction, so that the prediction is in the middle.
    let at = |figure: f64| figure / one.before / 2.0;
    if let Some([low, high]) = one.before_interval {
        let style = canvas.role(Role::Dim);
        canvas.segment(bar, (at(low), at(high)), style);
    }
    let [low, high] = one.measured_interval.unwrap_or([one.measured; 2]);
    let style = canvas.role(Role::Value);
    let width = f64::from(bar.width).max(1.0);
    // A measurement is at least half a cell wide.
    canvas.segment(bar, (at(low), at(high).max(at(low) + 0.5 / width)), style);
}
