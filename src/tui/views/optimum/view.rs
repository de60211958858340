//! Draws the optimizer: the form on the left or above, the results on the right or below.

use ratatui::layout::Rect;

use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::views::layout;
use crate::tui::views::optimum::{
    Row, SearchResult, bound, candidates, current_result, is_stale, objective, row_under_cursor, rows, size, unbounded,
};
use crate::tui::views::sweep::view::figures;
use crate::tui::widgets::draw::{Canvas, wrap};
use atlas_core::units;
use atlas_report::optimum::{changes, describe_extent};

/// Width of the form next to the results, and minimum width of the view for placing it there.
const BESIDE: u16 = 44;
const BESIDE_FROM: u16 = 110;
/// Width of a label in the form.
const LABEL: u16 = 18;

/// Draws the view.
pub fn optimum(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let query = &app.queries.optimum;
    let remark = match query.progress() {
        Some(_) => "Esc stops the search".to_owned(),
        None if current_result(app).is_some() && is_stale(app) => {
            "outdated: the scenario has changed; R searches again".to_owned()
        }
        None => query.problem().unwrap_or_default().to_owned(),
    };
    let inner = canvas.view(area, View::Optimum, "Optimize", &remark, app.tour.is_none());
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    if app.answer.scenario.is_none() {
        return crate::tui::views::sweep::view::draw_no_answer(&app.answer, None, canvas, inner);
    }
    let (form_area, answer, above) = split(app, inner);
    form(app, canvas, form_area, above);
    if inner.width < BESIDE_FROM {
        canvas.more(area, above > 0, above == 0 && current_result(app).is_some() && answer.height < ANSWER);
    }
    match current_result(app) {
        Some(found) => draw_result(app, found, canvas, answer),
        None => advice(app, canvas, answer),
    }
}

/// Number of rows that the results need: the candidates, the active bounds, some metrics.
const ANSWER: u16 = 16;

/// Returns the areas of the form and of the results next to or below it, and how many rows of the form are scrolled
/// away. If both do not fit below each other, the form scrolls away while a candidate is selected.
fn split(app: &App, inner: Rect) -> (Rect, Rect, u16) {
    let form = u16::try_from(rows(app).iter().filter(|row| !matches!(row, Row::Candidate(_))).count()).unwrap_or(12);
    if inner.width >= BESIDE_FROM {
        let x = inner.x + BESIDE + 2;
        (Rect { width: BESIDE, ..inner }, Rect { x, width: inner.right() - x, ..inner }, 0)
    } else {
        let lacks = (form + ANSWER).saturating_sub(inner.height);
        let above = if matches!(row_under_cursor(app), Row::Candidate(_)) { lacks.min(form) } else { 0 };
        let height = (form - above).min(inner.height);
        let form_area = Rect { height, ..inner };
        (form_area, Rect { y: inner.y + height, height: inner.height - height, ..inner }, above)
    }
}

fn form(app: &App, canvas: &mut Canvas<'_>, area: Rect, above: u16) {
    let (text, value, dim) = (canvas.role(Role::Text), canvas.role(Role::Value), canvas.role(Role::Dim));
    for (at, row) in rows(app).into_iter().enumerate().filter(|(_, row)| !matches!(row, Row::Candidate(_))) {
        let Some(line) = u16::try_from(at).ok().and_then(|at| at.checked_sub(above)) else { continue };
        let y = area.y + line;
        if y >= area.bottom() {
            break;
        }
        let (label, shown) = match row {
            Row::Objective => ("goal", objective(app).map_or_else(String::new, |(words, _)| words.to_owned())),
            Row::Bound(metric, below) => {
                let sign = if below { "at least" } else { "at most" };
                let by = if app.optimizer.bounds.contains_key(&metric.id) { "" } else { " (default)" };
                let shown = bound(app, metric);
                let shown = shown.map_or_else(|| "–".to_owned(), |at| format!("{sign} {}{by}", at.bound_text()));
                (metric.label, shown)
            }
            Row::Idle => ("idle accelerators", if app.optimizer.idle { "allowed" } else { "none" }.to_owned()),
            Row::Search => ("search", searching(app)),
            Row::Candidate(_) => continue,
        };
        let chosen = app.view_row == at;
        canvas.text(area.x, y, LABEL, label, if row == Row::Search { canvas.role(Role::Key) } else { text });
        let style = if shown == "–" { dim } else { value };
        canvas.text(area.x + LABEL, y, area.width.saturating_sub(LABEL), &shown, style);
        if let (Some(progress), Row::Search) = (app.queries.optimum.progress(), row) {
            let track = Rect { x: area.x + LABEL, y: y + 1, width: area.width.saturating_sub(LABEL), height: 1 };
            if track.y < area.bottom() {
                canvas.segment(track, (0.0, progress.share()), canvas.role(Role::Accent));
            }
        }
        if chosen {
            let selection = canvas.role(Role::Selection);
            canvas.tint(Rect { y, height: 1, ..area }, selection);
        }
        if let Some((line, _)) = app.optimizer.typing.as_ref().filter(|_| chosen) {
            let input = canvas.role(Role::Input);
            canvas.typed(area.x + LABEL, y, area.width.saturating_sub(LABEL), line, input);
        }
    }
}

fn searching(app: &App) -> String {
    match app.queries.optimum.progress() {
        // The rate and the remaining time do not fit, and there is a bar.
        Some(progress) => format!("{:.0} %", 100.0 * progress.share()),
        None => size(app).map_or_else(String::new, |size| {
            #[expect(clippy::cast_precision_loss, reason = "described in four digits")]
            let size = units::si(size as f64);
            format!("{size} combinations")
        }),
    }
}

/// Draws the text shown before the first search.
fn advice(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let dim = canvas.role(Role::Dim);
    let mut text =
        "The search varies the layout and settings that trade memory for time; formats, the global batch and prices \
                    are not changed. Enter edits a bound (50ms, 2s, $1.5, 20kW, 10%), Backspace removes it."
            .to_owned();
    if unbounded(app) {
        text += " Long queues improve throughput and cost, so set a bound on TTFT to limit them.";
    }
    canvas.paragraph(area, &text, dim);
}

/// Draws the candidates, warnings, active bounds, the extent of the search, and the metrics of the selected candidate.
fn draw_result(app: &App, found: &SearchResult, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(question) = app.queries.optimum.question() else { return };
    let metric = question.objective;
    let first = rows(app).iter().position(|row| matches!(row, Row::Candidate(_))).unwrap_or(usize::MAX);
    let mut y = candidates::draw(found, metric, app.view_row.checked_sub(first), canvas, area);
    let mut lines: Vec<(String, Role)> = Vec::new();
    if found.candidates.is_empty() {
        lines.push((found.optimum.why_none(), Role::Warn));
    }
    lines.extend(found.warnings.iter().map(|warning| (format!("warning: {warning}"), Role::Warn)));
    for bound in &found.optimum.bounds {
        if let Some(without) = bound.without.as_ref().and_then(|without| without.value(metric)) {
            let [most, least] = if app.glyphs.is_ascii() { ["<=", ">="] } else { ["≤", "≥"] };
            let what = bound.what.replace("<=", most).replace(">=", least);
            lines.push((format!("without {what}: {}", metric.brief(without)), Role::Text));
        }
    }
    // The form shows the default bounds that were kept; a line is only needed if some were dropped.
    if !found.optimum.dropped.is_empty() {
        lines.push((found.defaults.clone(), Role::Warn));
    }
    lines.push((describe_extent(&found.optimum.extent), Role::Dim));
    for (line, role) in lines.iter().filter(|(line, _)| !line.is_empty()) {
        for piece in wrap(line, usize::from(area.width)) {
            if y < area.bottom() {
                let style = canvas.role(*role);
                canvas.text(area.x, y, area.width, &piece, style);
            }
            y += 1;
        }
    }
    let under = match row_under_cursor(app) {
        Row::Candidate(nth) => nth,
        _ => 0,
    };
    if let Some((_, candidate)) = found.candidates.get(under) {
        let name = if under == 0 { "best".to_owned() } else { format!("candidate {}", under + 1) };
        let heading = canvas.role(Role::Heading);
        if y + 1 < area.bottom() {
            canvas.text(area.x, y + 1, area.width, &format!("{name} compared with the current scenario"), heading);
        }
        let rest = Rect { y: y + 2, height: area.bottom().saturating_sub(y + 2), ..area };
        figures(&app.answer, candidate, &[metric], canvas, rest);
    }
}

/// Returns the information line.
#[must_use]
pub fn info(app: &App) -> String {
    if let Some((_, Some(error))) = &app.optimizer.typing {
        return error.clone();
    }
    match row_under_cursor(app) {
        Row::Objective => objective(app).map_or_else(String::new, |(_, metric)| metric.help.to_owned()),
        Row::Bound(metric, _) => format!("{}: {}", metric.label, metric.help),
        Row::Idle => "whether the layout may use fewer accelerators than the target has".to_owned(),
        Row::Search => "Enter starts the search in the background; editing the scenario stops it".to_owned(),
        Row::Candidate(nth) => current_result(app).and_then(|found| found.candidates.get(nth)).map_or_else(
            String::new,
            |(_, candidate)| match candidate.changes.as_slice() {
                [] => "no candidate is better than the current scenario".to_owned(),
                _ => format!("Enter applies {}", changes(candidate)),
            },
        ),
    }
}

/// Returns the row at a screen position.
#[must_use]
pub fn row_at(app: &App, column: u16, row: u16) -> Option<usize> {
    let body = layout::areas(app).body;
    let inner = Rect::new(body.x + 2, body.y + 1, body.width.saturating_sub(4), body.height.saturating_sub(2));
    let (form, answer, above) = split(app, inner);
    let all = rows(app);
    let first = all.iter().position(|row| matches!(row, Row::Candidate(_))).unwrap_or(all.len());
    if form.contains((column, row).into()) {
        return Some(usize::from(row - form.y + above)).filter(|at| *at < first);
    }
    let at = first + usize::from(row.checked_sub(answer.y + candidates::HEADING)?);
    (answer.contains((column, row).into()) && at < all.len()).then_some(at)
}
