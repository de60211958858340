//! The schedule: phases as rows, figures as columns, as many as fit.

use ratatui::layout::Rect;

use super::draw::Canvas;
use crate::estimate::{Figures, Queue};
use crate::spec::Mode;
use crate::tui::app::{App, View};
use crate::tui::theme::Role;
use crate::units;

/// A column of the table.
struct Column {
    title: &'static str,
    width: u16,
    inference_only: bool,
    training_only: bool,
    show: fn(&Figures) -> String,
}

const fn column(title: &'static str, width: u16, only: Option<Mode>, show: fn(&Figures) -> String) -> Column {
    let inference_only = matches!(only, Some(Mode::Inference));
    let training_only = matches!(only, Some(Mode::Training));
    Column { title, width, inference_only, training_only, show }
}

fn queued(figures: &Figures, get: fn(&Queue) -> String) -> String {
    figures.queue.as_ref().map_or_else(|| "–".to_owned(), get)
}

/// Most important first: what does not fit is left out from the end.
const COLUMNS: [Column; 13] = [
    column("min", 6, None, |f| units::significant_short(f.minutes)),
    column("tok/s", 9, None, |f| units::si(f.tokens_per_sec)),
    column("step", 10, Some(Mode::Training), |f| units::duration_ms(f.step_time_ms)),
    column("p99", 10, Some(Mode::Inference), |f| units::duration_ms(f.queue.map_or(f.latency.p99, |q| q.latency.p99))),
    column("wait p99", 10, Some(Mode::Inference), |f| queued(f, |q| units::duration_ms(q.wait.p99))),
    column("load", 8, Some(Mode::Inference), |f| queued(f, |q| units::percent(q.utilization))),
    column("power", 9, None, |f| units::with_unit(&units::si(f.node_power_w), "W")),
    column("req/s", 9, Some(Mode::Inference), |f| queued(f, |q| units::si(q.arrival_rate))),
    column("servers", 8, Some(Mode::Inference), |f| queued(f, |q| format!("{:.0}", q.servers))),
    column("p50", 10, Some(Mode::Inference), |f| units::duration_ms(f.queue.map_or(f.latency.p50, |q| q.latency.p50))),
    column("TTFT", 10, Some(Mode::Inference), |f| {
        units::duration_ms(f.queue.map_or(f.latency.ttft, |q| q.latency.ttft))
    }),
    column("FLOP", 8, None, |f| units::percent(f.flop_utilization)),
    column("comm", 8, None, |f| units::percent(f.comm_compute_ratio)),
];

/// Rows of the table, heading and total included.
#[must_use]
pub fn rows(app: &App) -> usize {
    app.answer.outcome.as_ref().map_or(0, |estimate| estimate.phases.len()) + 2
}

/// Draws the panel, or the full view.
pub fn schedule(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let full = app.view == View::Schedule;
    let serves = app.answer.workload.as_ref().is_some_and(|workload| workload.shape.mode == Mode::Inference);
    let remark = if serves { "queueing included" } else { "" };
    let inner = canvas.frame(area, "9 Schedule", remark, full && app.tour.is_none());
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let dim = canvas.role(Role::Dim);
    let (Some(workload), Ok(estimate)) = (&app.answer.workload, &app.answer.outcome) else {
        canvas.text(inner.x, inner.y, inner.width, "no estimate", dim);
        return;
    };
    if estimate.phases.is_empty() {
        canvas.text(inner.x, inner.y, inner.width, "this workload has no schedule: one phase, no queueing", dim);
        return;
    }
    let inference = workload.shape.mode == Mode::Inference;
    let longest = workload.phases.iter().map(|phase| phase.name.chars().count()).max().unwrap_or_default();
    let name = u16::try_from(longest).unwrap_or(20).clamp(6, 20) + 1;
    let mut room = inner.width.saturating_sub(name);
    let columns: Vec<&Column> = COLUMNS
        .iter()
        .filter(|column| if inference { !column.training_only } else { !column.inference_only })
        .take_while(|column| {
            let fits = column.width <= room;
            room = room.saturating_sub(column.width);
            fits
        })
        .collect();
    let heading = canvas.role(Role::Heading);
    canvas.text(inner.x, inner.y, name, "phase", heading);
    let mut x = inner.x + name;
    for column in &columns {
        canvas.right(x, inner.y, column.width, column.title, heading);
        x += column.width;
    }
    let scroll = if full { app.view_scroll } else { 0 };
    let total =
        Figures { queue: inference.then_some(estimate.queue), latency: estimate.total.latency, ..estimate.total };
    let names = workload.phases.iter().map(|phase| &*phase.name).chain(std::iter::once("all"));
    let figures = estimate.phases.iter().chain(std::iter::once(&total));
    for (line, (phase, figures)) in (1..inner.height).zip(names.zip(figures).skip(scroll)) {
        let y = inner.y + line;
        let last = std::ptr::eq(figures, &raw const total);
        let style = canvas.role(if last { Role::Title } else { Role::Text });
        canvas.text(inner.x, y, name, phase, style);
        let mut x = inner.x + name;
        let value = canvas.role(Role::Value);
        for column in &columns {
            canvas.right(x, y, column.width, &(column.show)(figures), value);
            x += column.width;
        }
    }
    canvas.more(area, scroll > 0, scroll + usize::from(inner.height) < rows(app));
}
