//! The schedule: phases as rows, figures as columns, as many as fit beside the one under the cursor.

use ratatui::layout::Rect;

use super::draw::{Canvas, wrap};
use crate::tui::app::{App, View};
use crate::tui::tables::{Sort, Table};
use crate::tui::theme::Role;
use atlas_config::{Mode, Workload};
use atlas_core::units;
use atlas_plan::estimate::{Figures, Metric, Queue};

/// A column of the table.
struct Column {
    title: &'static str,
    width: u16,
    /// The mode that it says something about; both where unset.
    only: Option<Mode>,
    /// The metric whose equations explain it; none of an input.
    metric: &'static str,
    get: fn(&Figures) -> Option<f64>,
    show: fn(f64) -> String,
}

const fn column(
    title: &'static str,
    width: u16,
    only: Option<Mode>,
    metric: &'static str,
    get: fn(&Figures) -> Option<f64>,
    show: fn(f64) -> String,
) -> Column {
    Column { title, width, only, metric, get, show }
}

fn queued(figures: &Figures, get: fn(&Queue) -> f64) -> Option<f64> {
    figures.queue.as_ref().map(get)
}

const TRAINS: Option<Mode> = Some(Mode::Training);
const SERVES: Option<Mode> = Some(Mode::Inference);

/// Most important first: where not all fit, those at the end are seen when the cursor goes there.
const COLUMNS: [Column; 13] = [
    column("min", 6, None, "", |f| Some(f.minutes), units::significant_short),
    column("tok/s", 9, None, "tokens_per_sec", |f| Some(f.tokens_per_sec), units::si),
    column("step", 10, TRAINS, "step_time_ms", |f| Some(f.step_time_ms), units::duration_ms),
    column("p99", 10, SERVES, "p99_ms", |f| Some(f.queue.map_or(f.latency.p99, |q| q.latency.p99)), units::duration_ms),
    column("wait p99", 10, SERVES, "queue_wait_p99_ms", |f| queued(f, |q| q.wait.p99), units::duration_ms),
    column("load", 8, SERVES, "queue_utilization", |f| queued(f, |q| q.utilization), units::percent),
    column("power", 9, None, "node_power_w", |f| Some(f.node_power_w), watts),
    column("req/s", 9, SERVES, "requests_per_sec", |f| queued(f, |q| q.arrival_rate), units::si),
    column("servers", 8, SERVES, "", |f| queued(f, |q| q.servers), |count| format!("{count:.0}")),
    column("p50", 10, SERVES, "p50_ms", |f| Some(f.queue.map_or(f.latency.p50, |q| q.latency.p50)), units::duration_ms),
    column(
        "TTFT",
        10,
        SERVES,
        "ttft_ms",
        |f| Some(f.queue.map_or(f.latency.ttft, |q| q.latency.ttft)),
        units::duration_ms,
    ),
    column("FLOP", 8, None, "flop_utilization", |f| Some(f.flop_utilization), units::percent),
    column("comm", 8, None, "comm_compute_ratio", |f| Some(f.comm_compute_ratio), units::percent),
];

fn watts(watts: f64) -> String {
    units::with_unit(&units::si(watts), "W")
}

/// Columns of the mode at hand.
fn columns(app: &App) -> Vec<&'static Column> {
    let mode = app.answer.workload.as_ref().map(|workload| workload.shape.mode);
    COLUMNS.iter().filter(|column| column.only.is_none() || column.only == mode).collect()
}

/// Phases in the order asked for, by their place in the file.
fn shown(app: &App) -> Vec<usize> {
    let (Some(workload), Ok(estimate)) = (&app.answer.workload, &app.answer.outcome) else { return Vec::new() };
    let name = |phase: &usize| workload.phases.get(*phase).map_or("", |phase| &*phase.name);
    let mut all: Vec<usize> = (0..estimate.phases.len()).filter(|phase| app.asks_for_phase(name(phase))).collect();
    let sort = app.tables.sort(Table::Schedule);
    let by = match sort {
        Sort::Figure(title) | Sort::Least(title) => COLUMNS.iter().find(|column| column.title == title),
        _ => None,
    };
    if let Some(column) = by {
        let sign = if matches!(sort, Sort::Least(_)) { 1.0 } else { -1.0 };
        let key = |phase: &usize| {
            let figure = estimate.phases.get(*phase).and_then(column.get);
            figure.map_or(f64::INFINITY, |figure| sign * figure)
        };
        all.sort_by(|a, b| key(a).total_cmp(&key(b)));
    } else if sort == Sort::Name {
        all.sort_by_key(|phase| name(phase).to_lowercase());
    }
    all
}

/// Rows that the cursor can stand on: the phases and their whole.
#[must_use]
pub fn rows(app: &App) -> usize {
    if is_empty(app) { 0 } else { shown(app).len() + 1 }
}

fn is_empty(app: &App) -> bool {
    app.answer.outcome.as_ref().map_or(true, |estimate| estimate.phases.is_empty())
}

/// The column under the cursor by its title; `None` for the phases' names.
#[must_use]
pub fn column_here(app: &App) -> Option<&'static str> {
    columns(app).get(app.column.checked_sub(1)?).map(|column| column.title)
}

/// The metric of the cell under the cursor.
#[must_use]
pub fn metric_here(app: &App) -> Option<&'static Metric> {
    columns(app).get(app.column.checked_sub(1)?).and_then(|column| Metric::named(column.metric))
}

/// To the next column, or the one before.
pub(in crate::tui) fn across(app: &mut App, by: i32) {
    app.column = app.column.saturating_add_signed(by as isize).min(columns(app).len());
}

/// The information line.
#[must_use]
pub fn info(app: &App) -> String {
    if is_empty(app) {
        return String::new();
    }
    let about = match (metric_here(app), column_here(app)) {
        (Some(metric), _) => format!("{}: {}; ", metric.label, metric.help),
        (None, Some("min")) => "how long the phase lasts, minutes; ".to_owned(),
        (None, Some("servers")) => "replicas and their batches, side by side; ".to_owned(),
        _ => String::new(),
    };
    format!("{about}`all` is weighted by minutes")
}

fn names(workload: &Workload) -> u16 {
    let longest = workload.phases.iter().map(|phase| phase.name.chars().count()).max().unwrap_or_default();
    u16::try_from(longest).unwrap_or(20).clamp(6, 20) + 1
}

/// Draws the panel, or the full view.
pub fn schedule(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let full = app.view == View::Schedule;
    let serves = app.answer.workload.as_ref().is_some_and(|workload| workload.shape.mode == Mode::Inference);
    let rows = if full { shown(app) } else { (0..usize::from(area.height)).collect() };
    let all = app.answer.workload.as_ref().map_or(0, |workload| workload.phases.len());
    let filtered = app.filter_remark(Table::Schedule, rows.len(), all).filter(|_| full);
    let remark = filtered.unwrap_or_else(|| if serves { "queueing included" } else { "" }.to_owned());
    let inner = canvas.view(area, View::Schedule, "Schedule", &remark, full && app.tour.is_none());
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let dim = canvas.role(Role::Dim);
    let (Some(workload), Ok(estimate)) = (&app.answer.workload, &app.answer.outcome) else {
        canvas.text(inner.x, inner.y, inner.width, "no estimate", dim);
        return;
    };
    if estimate.phases.is_empty() {
        let text = "This workload has no schedule: one phase, no queueing. `schedule:` with `phases:` under the workload \
                    gives it one, each phase with its minutes; e opens the file.";
        for (y, line) in (inner.y..inner.bottom()).zip(wrap(text, usize::from(inner.width))) {
            canvas.text(inner.x, y, inner.width, &line, dim);
        }
        return;
    }
    let name = names(workload);
    let (columns, first) = visible(app, full, inner.width.saturating_sub(name));
    let heading = canvas.role(Role::Heading);
    let sorted = app.tables.sort(Table::Schedule);
    canvas.text(inner.x, inner.y, name, "phase", heading);
    let mut x = inner.x + name;
    for column in &columns {
        let arrow = match sorted {
            Sort::Figure(title) if full && title == column.title => canvas.glyphs.down,
            Sort::Least(title) if full && title == column.title => canvas.glyphs.up,
            _ => "",
        };
        canvas.right(x, inner.y, column.width, &format!("{arrow}{}", column.title), heading);
        x += column.width;
    }
    let right = x;
    let scroll = if full { app.view_scroll } else { 0 };
    let total = Figures { queue: serves.then_some(estimate.queue), latency: estimate.total.latency, ..estimate.total };
    let named = |phase: usize| Some((&*workload.phases.get(phase)?.name, estimate.phases.get(phase)?));
    let phases = rows.iter().filter_map(|phase| named(*phase)).chain(std::iter::once(("all", &total)));
    let count = phases.clone().count();
    for (line, (row, (phase, figures))) in (1..inner.height).zip(phases.enumerate().skip(scroll)) {
        let y = inner.y + line;
        let style = canvas.role(if row + 1 == count { Role::Title } else { Role::Text });
        canvas.text(inner.x, y, name, phase, style);
        let here = full && app.tour.is_none() && row == app.view_row;
        if here {
            canvas.tint(Rect::new(inner.x - 1, y, right + 2 - inner.x, 1), canvas.role(Role::SelectionDim));
        }
        let mut x = inner.x + name;
        let value = canvas.role(Role::Value);
        for (place, column) in (first + 1..).zip(&columns) {
            let shown = (column.get)(figures).map_or_else(|| "–".to_owned(), column.show);
            let style = if here { value.patch(canvas.role(Role::SelectionDim)) } else { value };
            canvas.right(x, y, column.width, &shown, style);
            if here && place == app.column {
                canvas.tint(Rect::new(x + 1, y, column.width, 1), canvas.role(Role::Selection));
            }
            x += column.width;
        }
        if here && app.column == 0 {
            canvas.tint(Rect::new(inner.x - 1, y, name, 1), canvas.role(Role::Selection));
        }
    }
    canvas.more(area, scroll > 0, scroll + usize::from(inner.height) < count + 1);
}

/// The columns that fit, that under the cursor among them, and the place of the first.
fn visible(app: &App, full: bool, room: u16) -> (Vec<&'static Column>, usize) {
    let all = columns(app);
    let fits = |from: usize| -> Vec<&'static Column> {
        let mut room = room;
        let fitting = all.iter().skip(from).take_while(|column| {
            let fits = column.width <= room;
            room = room.saturating_sub(column.width);
            fits
        });
        fitting.copied().collect()
    };
    let here = if full { app.column.saturating_sub(1) } else { 0 };
    let first = (0..all.len()).find(|from| from + fits(*from).len() > here).unwrap_or_default();
    (fits(first), first)
}
