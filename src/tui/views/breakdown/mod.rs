//! Draws the breakdown of time and memory. Each bar begins where the one above ends, so that they visibly add up.

pub(in crate::tui) mod blocks;
mod export;

use ratatui::layout::{Margin, Rect};

use self::blocks::{Bar, Quantity, Row, blocks, column, share};
use super::{Spec, Tab, keys};
use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::input::keymap::{Action, Keys, bind};
use crate::tui::update::showing::explain_metric;
use crate::tui::views::layout;
use crate::tui::widgets::draw::Canvas;
use atlas_plan::estimate::{Metric, MetricId};

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Breakdown",
    tab: Tab { place: 2, name: "Breakdown", short: "Break" },
    synonyms: "breakdown roofline waterfall bottleneck",
    opening: Some(bind(&["3"], Action::Show(View::Breakdown), "breakdown: where time and memory go", None)),
    keys: &[Keys::Own(&keys::EXPLAIN)],
    rows,
    lines_of,
    draw: breakdown,
    info,
    document: export::document,
    statements: text,
    works: |app, action| action != Action::Accept || rows(app) > 0,
    accept: |app, effects| explain_metric(app, metric_here(app), effects),
    click,
    ..Spec::DEFAULT
};

/// Minimum width for two columns.
const TWO_COLUMNS: u16 = 110;

/// Returns the columns that are drawn side by side: two, or one.
fn drawn(app: &App, full: bool) -> Vec<Vec<Row>> {
    match blocks(app) {
        Some(both) if full && in_columns(app, layout::areas(app).body) => both.into(),
        Some(_) => vec![column(app)],
        None => Vec::new(),
    }
}

/// Returns the bars that can be selected, each with its line.
fn bars(app: &App) -> Vec<(usize, Bar)> {
    let of = |rows: Vec<Row>| {
        rows.into_iter().enumerate().filter_map(|(line, row)| match row {
            Row::Bar(bar) => Some((line, bar)),
            _ => None,
        })
    };
    drawn(app, true).into_iter().flat_map(of).collect()
}

/// Formats the blocks as lines: the title of each with its total, then its parts.
fn text(app: &App) -> Vec<String> {
    let line = |row: Row| match row {
        Row::Heading(title, whole) | Row::Problem(title, whole) => {
            Some(if whole.is_empty() { format!("{title}:") } else { format!("{title}: {whole}") })
        }
        Row::Bar(bar) if bar.amount.is_empty() => Some(format!("{}: {}", bar.label, share(bar.share))),
        Row::Bar(bar) => Some(format!("{}: {}, {}", bar.label, bar.amount, share(bar.share))),
        Row::Blank => None,
    };
    column(app).into_iter().filter_map(line).collect()
}

/// Number of rows that can be selected.
#[must_use]
fn rows(app: &App) -> usize {
    bars(app).len()
}

/// Returns the first and last line of a row. The first is the line above the row, which may be a heading, so that it
/// stays visible.
#[must_use]
fn lines_of(app: &App, row: usize) -> Option<(usize, usize)> {
    let all = bars(app);
    let line = all.get(row).map_or(0, |(line, _)| *line);
    Some((line.saturating_sub(1), line))
}

/// Returns the metric whose equations explain the bar under the cursor.
#[must_use]
fn metric_here(app: &App) -> Option<&'static Metric> {
    let all = bars(app);
    let serves = app.answer.detail().is_some_and(|detail| detail.serving.is_some());
    Some(match all.get(app.view_row)?.1.of {
        Quantity::Limits if serves => MetricId::TpotMs.metric(),
        Quantity::Step | Quantity::Limits => MetricId::StepTimeMs.metric(),
        Quantity::Token => MetricId::TpotMs.metric(),
        Quantity::FirstToken => MetricId::TtftMs.metric(),
        Quantity::Memory => MetricId::PeakMemGb.metric(),
    })
}

/// Returns the information line.
#[must_use]
fn info(app: &App) -> String {
    let all = bars(app);
    let Some((_, bar)) = all.get(app.view_row) else { return String::new() };
    let of = match bar.of {
        Quantity::Step => "of the step",
        Quantity::Token => "of the decode step",
        Quantity::FirstToken => "of the time to first token",
        Quantity::Memory => "of device memory; the line marks its capacity",
        Quantity::Limits => "of the time has this cause; the largest share is the bottleneck",
    };
    let amount = if bar.amount.is_empty() { String::new() } else { format!("{}, ", bar.amount) };
    format!("{}: {amount}{} {of}", bar.label, share(bar.share))
}

/// Whether to use two columns: all blocks do not fit in one, and there is space for two. Bars are longer in one column.
fn in_columns(app: &App, body: Rect) -> bool {
    body.width >= TWO_COLUMNS && column(app).len() > layout::inner_rows(body)
}

/// Columns between two blocks.
const GAP: u16 = 3;

/// Returns the area inside the frame and its margins.
fn content(area: Rect) -> Rect {
    area.inner(Margin::new(2, 1))
}

/// Returns the width of the columns that are drawn side by side.
fn column_width(inner: Rect, columns: &[Vec<Row>]) -> u16 {
    let count = u16::try_from(columns.len()).unwrap_or(1).max(1);
    (inner.width + GAP) / count - GAP * u16::from(count > 1)
}

fn bars_in<'r>(rows: impl IntoIterator<Item = &'r Row>) -> usize {
    rows.into_iter().filter(|row| matches!(row, Row::Bar(_))).count()
}

/// Selects the bar at a position. Bars of two columns can be on the same line.
fn click(app: &mut App, (x, y): (u16, u16)) -> Option<Action> {
    let inner = content(layout::areas(app).body);
    if !inner.contains((x, y).into()) {
        return None;
    }
    let columns = drawn(app, true);
    let column = usize::from((x - inner.x) / (column_width(inner, &columns) + GAP));
    let line = usize::from(y - inner.y) + app.view_scroll;
    let rows = columns.get(column)?;
    if !matches!(rows.get(line)?, Row::Bar(_)) {
        return None;
    }
    let row = bars_in(columns.iter().take(column).flatten()) + bars_in(rows.iter().take(line));
    (std::mem::replace(&mut app.view_row, row) == row).then_some(Action::Accept)
}

/// Draws the pane, or the full view.
pub fn breakdown(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let full = app.view == View::Breakdown;
    canvas.view(area, View::Breakdown, "Breakdown", "", full && app.tour.is_none());
    let inner = content(area);
    let columns = drawn(app, full);
    if columns.is_empty() {
        let text = "the semi-empirical engine has no breakdown; add `accelerator:` to the target to get one";
        let dim = canvas.role(Role::Dim);
        canvas.text(inner.x, inner.y, inner.width, text, dim);
        return;
    }
    let scroll = if full { app.view_scroll } else { 0 };
    // Index of the bar under the cursor, counted across the columns.
    let mut here = Some(app.view_row).filter(|_| full && app.tour.is_none());
    let width = column_width(inner, &columns);
    for (x, rows) in (inner.x..).step_by(usize::from(width + GAP)).zip(&columns) {
        block(canvas, Rect { x, width: width.min(inner.width), ..inner }, rows, scroll, here);
        let bars = bars_in(rows);
        here = here.and_then(|here| here.checked_sub(bars));
    }
    let total = columns.iter().map(Vec::len).max().unwrap_or_default();
    canvas.more(area, scroll > 0, scroll + usize::from(inner.height) < total);
}

fn block(canvas: &mut Canvas<'_>, area: Rect, rows: &[Row], scroll: usize, here: Option<usize>) {
    let mut passed = bars_in(rows.iter().take(scroll));
    for (y, row) in (area.y..area.bottom()).zip(rows.iter().skip(scroll)) {
        match row {
            Row::Heading(title, whole) | Row::Problem(title, whole) => {
                let complains = matches!(row, Row::Problem(..));
                let heading = canvas.role(Role::Heading);
                let value = canvas.role(if complains { Role::Error } else { Role::Value });
                canvas.text(area.x, y, area.width, title, heading);
                canvas.right(area.x, y, area.width, whole, value);
            }
            Row::Bar(part) => {
                bar(canvas, Rect { y, height: 1, ..area }, part);
                if here == Some(passed) {
                    let width = LABEL + AMOUNT + SHARE;
                    canvas.tint(Rect { y, width, height: 1, ..area }, canvas.role(Role::Selection));
                }
                passed += 1;
            }
            Row::Blank => {}
        }
    }
}

const LABEL: u16 = 19;
const AMOUNT: u16 = 9;
const SHARE: u16 = 8;
/// Width of a change from the baseline, and minimum width of a block that shows it.
const CHANGE: u16 = 11;
const CHANGE_FROM: u16 = 70;

fn bar(canvas: &mut Canvas<'_>, area: Rect, part: &Bar) {
    let (text, value, dim) = (canvas.role(Role::Text), canvas.role(Role::Value), canvas.role(Role::Dim));
    // A name may use the column of the amount if the row has no amount.
    let name = LABEL - 1 + if part.amount.is_empty() { AMOUNT } else { 0 };
    canvas.text(area.x + 1, area.y, name, part.label, text);
    let x = area.x + LABEL;
    canvas.right(x, area.y, AMOUNT, &part.amount, value);
    canvas.right(x + AMOUNT, area.y, SHARE, &share(part.share), dim);
    let mut x = x + AMOUNT + SHARE + 2;
    if area.width >= CHANGE_FROM {
        if let Some((before, now)) = part.change {
            // Less of any part is better, as for step time.
            let like = MetricId::StepTimeMs.metric();
            let (text, style) = crate::tui::views::results::change(canvas, like, before, now);
            canvas.right(x - 1, area.y, CHANGE - 1, &text, style);
        }
        x += CHANGE;
    }
    let room = area.right().saturating_sub(x);
    let track = Rect { x, width: room, ..area };
    let style = canvas.role(part.role);
    match part.mark {
        None => canvas.segment(track, part.span, style),
        Some(mark) => {
            let bad = canvas.role(Role::Error);
            let (from, to) = part.span;
            canvas.segment(track, (from.min(mark), to.min(mark)), style);
            canvas.segment(track, (from.max(mark), to.max(mark)), bad);
            canvas.mark(track, mark, dim);
        }
    }
}
