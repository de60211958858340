//! Where time and memory go: parts as bars, each beginning where the one above ends, so that they visibly sum.

use ratatui::layout::Rect;

use super::draw::Canvas;
use crate::estimate::{Better, Breakdown, Detail, MemoryUse};
use crate::tui::app::{App, View};
use crate::tui::layout;
use crate::tui::theme::Role;
use crate::units;

/// A row of a block.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// What the block is about, and its whole.
    Heading(&'static str, String),
    /// A part.
    Bar(Bar),
    /// What the block is about, and what is wrong with it.
    Complaint(&'static str, String),
    /// Air.
    Blank,
}

/// A part of a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    label: &'static str,
    amount: String,
    /// Of the whole, or of what there is.
    share: f64,
    /// Where the bar begins and ends, as shares of its width.
    span: (f64, f64),
    role: Role,
    /// How it differs from the baseline's: before and now.
    change: Option<(f64, f64)>,
    /// The capacity, as a share of the width; what is beyond does not fit.
    mark: Option<f64>,
}

/// Colours of parts, in turn.
const COLOURS: [Role; 6] = [Role::Bar1, Role::Bar2, Role::Bar3, Role::Bar4, Role::Bar5, Role::Bar6];

fn colour(nth: usize) -> Role {
    COLOURS.get(nth % COLOURS.len()).copied().unwrap_or(Role::Bar1)
}

/// How a part differs from the baseline's, where it does.
fn change(before: Option<&Breakdown>, label: &str, now: f64) -> Option<(f64, f64)> {
    let before = before?.part(label);
    ((now - before).abs() > 1e-9 * before.abs()).then_some((before, now))
}

/// The parts of a time that are not nothing, and the whole. `show` writes a time given in the parts' unit.
fn time(
    rows: &mut Vec<Row>,
    title: &'static str,
    parts: &Breakdown,
    before: Option<&Breakdown>,
    show: impl Fn(f64) -> String,
) {
    let total = parts.total();
    rows.push(Row::Heading(title, show(total)));
    let mut from = 0.0;
    for (nth, (label, value)) in parts.parts().enumerate().filter(|(_, (_, value))| *value > 0.0) {
        let share = value / total;
        rows.push(Row::Bar(Bar {
            label,
            amount: show(value),
            share,
            span: (from, from + share),
            role: colour(nth),
            change: change(before, label, value),
            mark: None,
        }));
        from += share;
    }
}

/// What a device holds against what it has: parts, whole, upper bound, with the capacity as a mark through all rows.
fn memory(rows: &mut Vec<Row>, memory: &MemoryUse, before: Option<&Breakdown>) {
    let gb = |bytes: f64| format!("{:.2} GB", bytes * 1e-9);
    let total = memory.total();
    let full = memory.capacity.max(memory.upper).max(total).max(1.0);
    let mark = Some(memory.capacity / full);
    let of = |bytes: f64| bytes / memory.capacity.max(1.0);
    let excess = memory.excess();
    rows.push(if excess > 0.0 {
        Row::Complaint("memory of a device", format!("{} too little", gb(excess)))
    } else {
        Row::Heading("memory of a device", gb(memory.capacity))
    });
    let mut from = 0.0;
    for (nth, (label, value)) in memory.parts.parts().enumerate().filter(|(_, (_, value))| *value > 0.0) {
        rows.push(Row::Bar(Bar {
            label,
            amount: gb(value),
            share: of(value),
            span: (from / full, (from + value) / full),
            role: colour(nth),
            change: change(before, label, value),
            mark,
        }));
        from += value;
    }
    let whole = |label, bytes: f64, role| {
        let change = None;
        Row::Bar(Bar { label, amount: gb(bytes), share: of(bytes), span: (0.0, bytes / full), role, change, mark })
    };
    rows.push(whole("all", total, Role::Text));
    if memory.upper > total {
        rows.push(whole("at most", memory.upper, Role::Dim));
    }
}

fn limits(rows: &mut Vec<Row>, detail: &Detail) {
    rows.push(Row::Heading("what bounds it", String::new()));
    for (cause, share) in detail.limits.ranked().into_iter().filter(|(_, share)| *share > 0.0) {
        let (span, role) = ((0.0, share), if share == detail.limits.ranked()[0].1 { Role::Accent } else { Role::Dim });
        rows.push(Row::Bar(Bar {
            label: cause.name(),
            amount: String::new(),
            share,
            span,
            role,
            change: None,
            mark: None,
        }));
    }
}

/// All blocks, in two columns: time and what bounds it, memory and what the first token waits for.
fn blocks(app: &App) -> Option<[Vec<Row>; 2]> {
    let detail = app.answer.detail()?;
    // Parts of one kind of work say nothing about those of the other.
    let alike = |before: &&Detail| before.training.is_some() == detail.training.is_some();
    let before = app.baseline.detail().filter(alike);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let seconds = |s: f64| units::duration_ms(s * 1e3);
    let title = if detail.training.is_some() { "time of an optimizer step" } else { "time of an output token" };
    time(&mut left, title, &detail.time, before.map(|before| &before.time), seconds);
    left.push(Row::Blank);
    limits(&mut left, detail);
    memory(&mut right, &detail.memory, before.map(|before| &before.memory.parts));
    if let Some(serving) = &detail.serving {
        right.push(Row::Blank);
        let before = before.and_then(|before| before.serving.as_ref()).map(|before| &before.first_token);
        time(&mut right, "time to the first token", &serving.first_token, before, units::duration_ms);
    }
    Some([left, right])
}

/// The blocks one below the other: time, memory, the rest.
fn column(app: &App) -> Vec<Row> {
    let Some([mut left, right]) = blocks(app) else { return Vec::new() };
    let rest = left.iter().position(|row| *row == Row::Blank).unwrap_or(left.len());
    let rest = left.split_off(rest);
    left.push(Row::Blank);
    left.extend(right);
    left.extend(rest);
    left
}

/// Least width of two columns.
const TWO_COLUMNS: u16 = 110;

/// Rows of the view.
#[must_use]
pub fn rows(app: &App) -> usize {
    let body = layout::areas(app).body;
    if in_columns(app, body) {
        blocks(app).map_or(1, |[left, right]| left.len().max(right.len()))
    } else {
        column(app).len().max(1)
    }
}

/// Whether the view needs two columns, and has room for them: long bars are better.
fn in_columns(app: &App, body: Rect) -> bool {
    body.width >= TWO_COLUMNS && column(app).len() > layout::inner_rows(body)
}

/// Rows of the pane beside the results.
#[must_use]
pub fn pane_rows(app: &App) -> usize {
    column(app).len()
}

/// Draws the pane, or the full view.
pub fn breakdown(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let full = app.view == View::Breakdown;
    let inner = canvas.frame(area, "6 Breakdown", "", full && app.tour.is_none());
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let Some([left, right]) = blocks(app) else {
        let text = "the calibrated engine gives no breakdown: targets with an `accelerator:` have one";
        let dim = canvas.role(Role::Dim);
        canvas.text(inner.x, inner.y, inner.width, text, dim);
        return;
    };
    let scroll = if full { app.view_scroll } else { 0 };
    let total = if full && in_columns(app, area) {
        let half = (inner.width - 3) / 2;
        block(canvas, Rect { width: half, ..inner }, &left, scroll);
        block(canvas, Rect { x: inner.x + half + 3, width: half, ..inner }, &right, scroll);
        left.len().max(right.len())
    } else {
        let all = column(app);
        block(canvas, inner, &all, scroll);
        all.len()
    };
    canvas.more(area, scroll > 0, scroll + usize::from(inner.height) < total);
}

fn block(canvas: &mut Canvas<'_>, area: Rect, rows: &[Row], scroll: usize) {
    for (y, row) in (area.y..area.bottom()).zip(rows.iter().skip(scroll)) {
        match row {
            Row::Heading(title, whole) | Row::Complaint(title, whole) => {
                let complains = matches!(row, Row::Complaint(..));
                let heading = canvas.role(Role::Heading);
                let value = canvas.role(if complains { Role::Error } else { Role::Value });
                canvas.text(area.x, y, area.width, title, heading);
                canvas.right(area.x, y, area.width, whole, value);
            }
            Row::Bar(part) => bar(canvas, Rect { y, height: 1, ..area }, part),
            Row::Blank => {}
        }
    }
}

const LABEL: u16 = 18;
const AMOUNT: u16 = 9;
const SHARE: u16 = 8;
/// Columns of a change against the baseline, and fewest columns of a block that has them.
const CHANGE: u16 = 11;
const CHANGE_FROM: u16 = 70;

fn bar(canvas: &mut Canvas<'_>, area: Rect, part: &Bar) {
    let (text, value, dim) = (canvas.role(Role::Text), canvas.role(Role::Value), canvas.role(Role::Dim));
    canvas.text(area.x + 1, area.y, LABEL - 1, part.label, text);
    let x = area.x + LABEL;
    canvas.right(x, area.y, AMOUNT, &part.amount, value);
    canvas.right(x + AMOUNT, area.y, SHARE, &units::percent(part.share), dim);
    let mut x = x + AMOUNT + SHARE + 2;
    if area.width >= CHANGE_FROM {
        if let Some((before, now)) = part.change {
            let style = super::results::change_style(canvas, Better::Lower, now - before);
            let arrow = if now > before { canvas.glyphs.up } else { canvas.glyphs.down };
            canvas.right(x - 1, area.y, CHANGE - 1, &format!("{arrow}{}", units::relative(before, now)), style);
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
