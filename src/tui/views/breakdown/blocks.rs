//! Content of the breakdown: blocks of bars.

use crate::theme::Role;
use crate::tui::app::App;
use atlas_core::units;
use atlas_plan::estimate::{Breakdown, Detail, MemoryPart, MemoryUse, MetricId, Part, Scale};

/// The quantity that a block divides. It selects the explanation of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    Step,
    Token,
    FirstToken,
    Memory,
    Limits,
}

/// A row of a block.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Row {
    /// Title and total of a block.
    Heading(&'static str, String),
    /// A part.
    Bar(Bar),
    /// Title of a block that has a problem, and the problem.
    Problem(&'static str, String),
    /// An empty line.
    Blank,
}

/// A part of a total.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    pub(super) of: Quantity,
    pub(super) label: &'static str,
    pub(super) amount: String,
    /// Fraction of the total, or of the capacity.
    pub(super) share: f64,
    /// Beginning and end of the bar, as fractions of its width.
    pub(super) span: (f64, f64),
    pub(super) role: Role,
    /// The value in the baseline and now, if they differ.
    pub(super) change: Option<(f64, f64)>,
    /// The capacity, as a fraction of the width.
    pub(super) mark: Option<f64>,
}

/// Colors of parts, in turn.
pub(super) const COLORS: [Role; 6] = [Role::Bar1, Role::Bar2, Role::Bar3, Role::Bar4, Role::Bar5, Role::Bar6];

pub(super) fn color(nth: usize) -> Role {
    COLORS.get(nth % COLORS.len()).copied().unwrap_or(Role::Bar1)
}

/// Returns the values of a part in the baseline and now, if they differ.
pub(super) fn change<P: Part>(before: Option<&Breakdown<P>>, part: P, now: f64) -> Option<(f64, f64)> {
    let before = before?.part(part);
    ((now - before).abs() > 1e-9 * before.abs()).then_some((before, now))
}

/// Adds the nonzero parts of a time and their total, in one unit with the same number of decimals. `ms` is the unit of
/// the parts in ms.
pub(super) fn time<P: Part>(
    rows: &mut Vec<Row>,
    (of, title): (Quantity, &'static str),
    parts: &Breakdown<P>,
    before: Option<&Breakdown<P>>,
    ms: f64,
) {
    let total = parts.total();
    let scale = Scale::of_whole(MetricId::StepTimeMs.metric(), ms * total);
    let show = |value: f64| format!("{} {}", scale.show(ms * value), scale.unit());
    rows.push(Row::Heading(title, show(total)));
    let mut from = 0.0;
    for (nth, (part, value)) in parts.parts().enumerate().filter(|(_, (_, value))| *value > 0.0) {
        let share = value / total;
        rows.push(Row::Bar(Bar {
            of,
            label: part.label(),
            amount: show(value),
            share,
            span: (from, from + share),
            role: color(nth),
            change: change(before, part, value),
            mark: None,
        }));
        from += share;
    }
}

/// Adds the memory of a device: parts, total and upper bound, with the capacity as a mark through all rows.
pub(super) fn memory(rows: &mut Vec<Row>, memory: &MemoryUse, before: Option<&Breakdown<MemoryPart>>) {
    let gb = |bytes: f64| format!("{:.2} GB", bytes / atlas_core::units::BYTES_PER_GB);
    let total = memory.total();
    let full = memory.capacity.max(memory.upper).max(total).max(1.0);
    let mark = Some(memory.capacity / full);
    let of = |bytes: f64| bytes / memory.capacity.max(1.0);
    let excess = memory.excess();
    rows.push(if excess > 0.0 {
        Row::Problem("device memory", format!("{} short", gb(excess)))
    } else {
        Row::Heading("device memory", format!("of {}", gb(memory.capacity)))
    });
    let mut from = 0.0;
    for (nth, (part, value)) in memory.parts.parts().enumerate().filter(|(_, (_, value))| *value > 0.0) {
        rows.push(Row::Bar(Bar {
            of: Quantity::Memory,
            label: part.label(),
            amount: gb(value),
            share: of(value),
            span: (from / full, (from + value) / full),
            role: color(nth),
            change: change(before, part, value),
            mark,
        }));
        from += value;
    }
    let whole = |label, bytes: f64, role| {
        let change = None;
        let of_block = Quantity::Memory;
        Row::Bar(Bar {
            of: of_block,
            label,
            amount: gb(bytes),
            share: of(bytes),
            span: (0.0, bytes / full),
            role,
            change,
            mark,
        })
    };
    rows.push(whole("total (expected)", total, Role::Text));
    if memory.upper > total {
        rows.push(whole("upper bound", memory.upper, Role::Dim));
    }
}

pub(super) fn limits(rows: &mut Vec<Row>, detail: &Detail) {
    rows.push(Row::Heading("bottleneck", String::new()));
    for (cause, share) in detail.limits.ranked().into_iter().filter(|(_, share)| *share > 0.0) {
        let (span, role) = ((0.0, share), if share == detail.limits.ranked()[0].1 { Role::Accent } else { Role::Dim });
        rows.push(Row::Bar(Bar {
            of: Quantity::Limits,
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

/// Returns all blocks in two columns: time and bottleneck, memory and time to first token.
pub(super) fn blocks(app: &App) -> Option<[Vec<Row>; 2]> {
    let detail = app.answer.detail()?;
    // Parts of training and of serving are not comparable.
    let alike = |before: &&Detail| before.training.is_some() == detail.training.is_some();
    let before = app.baseline.detail().filter(alike);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let title = if detail.training.is_some() {
        (Quantity::Step, "optimizer step time")
    } else {
        (Quantity::Token, "decode step time")
    };
    time(&mut left, title, &detail.time, before.map(|before| &before.time), 1e3);
    left.push(Row::Blank);
    limits(&mut left, detail);
    memory(&mut right, &detail.memory, before.map(|before| &before.memory.parts));
    if let Some(serving) = &detail.serving {
        right.push(Row::Blank);
        let before = before.and_then(|before| before.serving.as_ref()).map(|before| &before.first_token);
        time(&mut right, (Quantity::FirstToken, "time to first token"), &serving.first_token, before, 1.0);
    }
    Some([left, right])
}

/// Returns the blocks in one column: time, memory, the rest.
pub(super) fn column(app: &App) -> Vec<Row> {
    let Some([mut left, right]) = blocks(app) else { return Vec::new() };
    let rest = left.iter().position(|row| *row == Row::Blank).unwrap_or(left.len());
    let rest = left.split_off(rest);
    left.push(Row::Blank);
    left.extend(right);
    left.extend(rest);
    left
}

/// Formats a fraction. Small fractions are shown as `<0.1 %`.
pub(super) fn share(share: f64) -> String {
    const MIN_SHOWN_SHARE: f64 = 0.000_5;
    if share > 0.0 && share < MIN_SHOWN_SHARE { "<0.1 %".to_owned() } else { units::percent(share) }
}

/// Number of rows of the pane next to the results.
#[must_use]
pub(in crate::tui) fn pane_rows(app: &App) -> usize {
    column(app).len()
}
