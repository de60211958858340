//! Draws the schedule: phases as rows, metrics as columns.

mod export;

use ratatui::layout::Rect;

use super::{Spec, Tab, keys};
use crate::theme::Role;
use crate::tui::app::{Answer, App, View};
use crate::tui::input::keymap::{Action, Keys, SharedKeys, bind};
use crate::tui::tables;
use crate::tui::tables::state::{Sort, Table};
use crate::tui::update::showing::explain_metric;
use crate::tui::widgets::draw::Canvas;
use atlas_config::{Mode, Workload};
use atlas_core::sort;
use atlas_plan::estimate::{Latency, Metric, MetricId, Metrics, Queue, Scale};

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Schedule",
    tab: Tab { place: 14, name: "Schedule", short: "Sched" },
    synonyms: "schedule phases traffic queueing",
    opening: Some(bind(&["vs"], Action::Show(View::Schedule), "schedule by phase", Some("schedule"))),
    keys: &[
        Keys::Own(&[
            bind(&["→", "l"], Action::Focus(1), "next column", Some("column")),
            bind(&["←", "h"], Action::Focus(-1), "previous column", None),
        ]),
        Keys::Own(&keys::EXPLAIN),
        Keys::Own(&[bind(
            &["o"],
            Action::Sort,
            "sort by this column: descending, ascending, file order",
            Some("sort"),
        )]),
    ],
    shared_keys: &[SharedKeys::Filter],
    is_empty: |app| app.answer.workload.as_ref().is_none_or(|workload| workload.phases.is_empty()),
    table: |_| Some(Table::Schedule),
    rows,
    // The headings do not scroll.
    lines_of: |_, row| Some((row, row + usize::from(HEADING))),
    draw: schedule,
    info,
    document: export::document,
    opened: |app, _| app.column = 1,
    accept: |app, effects| explain_metric(app, metric_here(app), effects),
    update: |app, action, effects| {
        match action {
            Action::Focus(by) => across(app, by),
            Action::Sort => tables::sort_by(app, Table::Schedule, next_sort(app), effects),
            _ => return false,
        }
        true
    },
    ..Spec::DEFAULT
};

/// Lines above the phases: titles and units.
const HEADING: u16 = 2;

/// A column of the table.
struct Column {
    title: &'static str,
    width: u16,
    /// Mode in which the column applies; `None` for both.
    only: Option<Mode>,
    shows: Shows,
    get: fn(&Metrics) -> Option<f64>,
}

/// Content of a column.
#[derive(Clone, Copy)]
enum Shows {
    /// A metric with equations.
    Metric(&'static Metric),
    /// A count that follows from the file or the layout, in this unit.
    Count(&'static str),
}

const fn count(title: &'static str, width: u16, only: Option<Mode>, unit: &'static str, get: Get) -> Column {
    Column { title, width, only, shows: Shows::Count(unit), get }
}

const fn figure(title: &'static str, width: u16, only: Option<Mode>, metric: &'static Metric, get: Get) -> Column {
    Column { title, width, only, shows: Shows::Metric(metric), get }
}

type Get = fn(&Metrics) -> Option<f64>;

fn queued(figures: &Metrics, get: fn(&Queue) -> f64) -> Option<f64> {
    figures.queue.as_ref().map(get)
}

fn latency(figures: &Metrics, get: fn(&Latency) -> f64) -> Option<f64> {
    figures.queued_latency().as_ref().map(get)
}

const TRAINS: Option<Mode> = Some(Mode::Training);
const SERVES: Option<Mode> = Some(Mode::Inference);

/// Most important columns first: the last ones may need scrolling.
const COLUMNS: [Column; 13] = [
    count("time", 7, None, "min", |f| Some(f.minutes)),
    figure("tokens/s", 10, None, MetricId::TokensPerSec.metric(), |f| Some(f.tokens_per_sec)),
    figure("step", 9, TRAINS, MetricId::StepTimeMs.metric(), |f| f.step_time_ms),
    figure("E2E p99", 9, SERVES, MetricId::P99Ms.metric(), |f| latency(f, |l| l.p99)),
    figure("wait p99", 10, SERVES, MetricId::QueueWaitP99Ms.metric(), |f| queued(f, |q| q.wait.p99)),
    figure("load", 8, SERVES, MetricId::QueueUtilization.metric(), |f| queued(f, |q| q.utilization)),
    figure("power", 9, None, MetricId::NodePowerW.metric(), |f| Some(f.node_power_w)),
    figure("requests", 10, SERVES, MetricId::RequestsPerSec.metric(), |f| queued(f, |q| q.arrival_rate)),
    count("slots", 9, SERVES, "", |f| queued(f, |q| q.servers)),
    figure("E2E p50", 9, SERVES, MetricId::P50Ms.metric(), |f| latency(f, |l| l.p50)),
    figure("TTFT", 9, SERVES, MetricId::TtftMs.metric(), |f| latency(f, |l| l.ttft)),
    figure("FLOP use", 10, None, MetricId::FlopUtilization.metric(), |f| Some(f.flop_utilization)),
    figure("comm share", 12, None, MetricId::CommComputeRatio.metric(), |f| Some(f.comm_compute_ratio)),
];

/// Unit and values of a column, all with the same number of digits.
struct FormattedColumn {
    unit: String,
    values: Vec<String>,
}

fn format_column(column: &Column, rows: &[(&str, &Metrics)]) -> FormattedColumn {
    let values = || rows.iter().map(|(_, figures)| (column.get)(figures));
    let show = |text: &dyn Fn(f64) -> String| {
        let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), text);
        values().map(shown).collect()
    };
    match column.shows {
        Shows::Count(unit) => FormattedColumn { unit: unit.to_owned(), values: show(&|count| format!("{count:.0}")) },
        Shows::Metric(metric) => {
            let scale = Scale::of(metric, values().flatten());
            FormattedColumn { unit: scale.unit().to_owned(), values: show(&|value| scale.show(value)) }
        }
    }
}

/// Returns the columns of the current mode.
fn columns(answer: &Answer) -> Vec<&'static Column> {
    let mode = answer.workload.as_ref().map(|workload| workload.shape.mode);
    COLUMNS.iter().filter(|column| column.only.is_none() || column.only == mode).collect()
}

/// Returns the filtered and sorted phases, by their index in the file.
fn filtered_phases(app: &App) -> Vec<usize> {
    let (Some(workload), Ok(estimate)) = (&app.answer.workload, &app.answer.outcome) else { return Vec::new() };
    let name = |phase: &usize| workload.phases.get(*phase).map_or("", |phase| &*phase.name);
    let mut all: Vec<usize> = (0..estimate.phases.len()).filter(|phase| app.phase_matches(name(phase))).collect();
    let sort = app.tables.sort(Table::Schedule);
    let by = match sort {
        Sort::Column { title, .. } => COLUMNS.iter().find(|column| column.title == title),
        _ => None,
    };
    if let Some(column) = by {
        let sign = if matches!(sort, Sort::Column { ascending: true, .. }) { 1.0 } else { -1.0 };
        let key = |phase: &usize| {
            let figure = estimate.phases.get(*phase).and_then(column.get);
            figure.map_or(f64::INFINITY, |figure| sign * figure)
        };
        sort::by(&mut all, |a, b| key(a).total_cmp(&key(b)));
    } else if sort == Sort::Name {
        sort::by_key(&mut all, |phase| name(phase).to_lowercase());
    }
    all
}

/// Number of rows that can be selected: the phases and their total.
#[must_use]
fn rows(app: &App) -> usize {
    if is_empty(&app.answer) { 0 } else { filtered_phases(app).len() + 1 }
}

fn is_empty(answer: &Answer) -> bool {
    answer.outcome.as_ref().map_or(true, |estimate| estimate.phases.is_empty())
}

/// Returns the title of the column under the cursor; `None` for the phases' names.
#[must_use]
fn column_here(app: &App) -> Option<&'static str> {
    columns(&app.answer).get(app.column.checked_sub(1)?).map(|column| column.title)
}

/// Cycles through the sort orders of the column under the cursor: largest first, smallest first, file order. Without a
/// column, toggles between name and file order.
fn next_sort(app: &App) -> Sort {
    let now = app.tables.sort(Table::Schedule);
    let Some(title) = column_here(app) else {
        return if now == Sort::Name { Sort::Natural } else { Sort::Name };
    };
    match now {
        Sort::Column { title: sorted, ascending: true } if sorted == title => Sort::Natural,
        Sort::Column { title: sorted, .. } if sorted == title => Sort::Column { title, ascending: true },
        _ => Sort::Column { title, ascending: false },
    }
}

/// Returns the metric of the cell under the cursor.
#[must_use]
fn metric_here(app: &App) -> Option<&'static Metric> {
    match columns(&app.answer).get(app.column.checked_sub(1)?)?.shows {
        Shows::Metric(metric) => Some(metric),
        Shows::Count(_) => None,
    }
}

/// Moves the cursor by `by` columns.
fn across(app: &mut App, by: i32) {
    app.column = app.column.saturating_add_signed(by as isize).min(columns(&app.answer).len());
}

/// Returns the information line.
#[must_use]
fn info(app: &App) -> String {
    if is_empty(&app.answer) {
        return String::new();
    }
    let about = match (metric_here(app), column_here(app)) {
        (Some(metric), _) => format!("{}: {}; ", metric.label, metric.help),
        (None, Some("time")) => "duration of the phase, minutes; ".to_owned(),
        (None, Some("slots")) => "concurrent requests: replicas × batch; ".to_owned(),
        _ => String::new(),
    };
    let serves = app.answer.detail().is_some_and(|detail| detail.serving.is_some());
    let latencies = if serves { ", latencies by requests" } else { "" };
    format!("{about}`all` is weighted by duration{latencies}")
}

fn names(workload: &Workload) -> u16 {
    let longest = workload.phases.iter().map(|phase| phase.name.chars().count()).max().unwrap_or_default();
    u16::try_from(longest).unwrap_or(20).clamp(6, 20) + 1
}

/// Draws the pane, or the full view.
pub fn schedule(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let full = app.view == View::Schedule;
    let serves = app.answer.workload.as_ref().is_some_and(|workload| workload.shape.mode == Mode::Inference);
    let rows = if full { filtered_phases(app) } else { (0..usize::from(area.height)).collect() };
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
        let text = "This workload has no schedule: one phase, no queueing. To add one, set `schedule:` with `phases:` \
                    in the workload, each phase with `duration_minutes:`; e opens the file.";
        canvas.paragraph(inner, text, dim);
        return;
    }
    let total = Metrics { queue: estimate.queue.filter(|_| serves), ..estimate.total };
    let named = |phase: usize| Some((&*workload.phases.get(phase)?.name, estimate.phases.get(phase)?));
    let phases = rows.iter().filter_map(|phase| named(*phase)).chain(std::iter::once(("all", &total)));
    let phases: Vec<(&str, &Metrics)> = phases.collect();
    let name = names(workload);
    let (columns, first) = visible(app, full, inner.width.saturating_sub(name));
    let cells: Vec<FormattedColumn> = columns.iter().map(|column| format_column(column, &phases)).collect();
    let heading = canvas.role(Role::Heading);
    let sorted = app.tables.sort(Table::Schedule);
    canvas.text(inner.x, inner.y, name, "phase", heading);
    let mut x = inner.x + name;
    for (column, cells) in columns.iter().zip(&cells) {
        let arrow = match sorted {
            Sort::Column { title, ascending } if full && title == column.title => {
                if ascending {
                    canvas.glyphs.up
                } else {
                    canvas.glyphs.down
                }
            }
            _ => "",
        };
        canvas.right(x, inner.y, column.width, &format!("{arrow}{}", column.title), heading);
        canvas.right(x, inner.y + 1, column.width, &cells.unit, dim);
        x += column.width;
    }
    let right = x;
    let scroll = if full { app.view_scroll } else { 0 };
    let selection = canvas.role(Role::Selection);
    for (line, (row, (phase, _))) in (HEADING..inner.height).zip(phases.iter().enumerate().skip(scroll)) {
        let y = inner.y + line;
        let style = canvas.role(if row + 1 == phases.len() { Role::Title } else { Role::Text });
        canvas.text(inner.x, y, name, phase, style);
        let here = full && app.tour.is_none() && row == app.view_row;
        if here {
            canvas.tint(Rect::new(inner.x - 1, y, right + 2 - inner.x, 1), canvas.role(Role::SelectionDim));
        }
        let mut x = inner.x + name;
        let value = canvas.role(Role::Value);
        for (place, (column, cells)) in (first + 1..).zip(columns.iter().zip(&cells)) {
            let style = if here { value.patch(canvas.role(Role::SelectionDim)) } else { value };
            canvas.right(x, y, column.width, cells.values.get(row).map_or("", String::as_str), style);
            if here && place == app.column {
                canvas.tint(Rect::new(x + 1, y, column.width, 1), selection);
            }
            x += column.width;
        }
        if here && app.column == 0 {
            canvas.tint(Rect::new(inner.x - 1, y, name, 1), selection);
        }
    }
    canvas.more(area, scroll > 0, scroll + usize::from(inner.height) < phases.len() + usize::from(HEADING));
}

/// Returns the columns that fit, including the selected one, and the index of the first.
fn visible(app: &App, full: bool, room: u16) -> (Vec<&'static Column>, usize) {
    let all = columns(&app.answer);
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
