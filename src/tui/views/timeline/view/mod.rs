//! Draws the timeline: lanes of tasks, strips of busy resources, and the dependencies of the task under the cursor;
//! also curves of a serving run, and of a training job at increasing scale.

mod curves;
mod operators;

use crate::theme::Role;
use crate::tui::app::{App, View};
use crate::tui::painter::cells::TextWidth as _;
use crate::tui::views::sweep::view::{draw_no_answer, remark};
use crate::tui::views::timeline::{Lane, Picture, Timeline, picture};
use crate::tui::widgets::draw::{Canvas, wrap};
use curves::{latencies, levels, scale};
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use atlas_core::units::{duration, durations_ms};
use atlas_sim::training::program::Action;
use atlas_sim::training::schedule::PassKind;
use atlas_sim::training::{StreamKind, Task, TaskKind};

/// Width of the names of lanes.
const NAMES: u16 = 28;
/// Number of rows of the details below the lanes, and of the strips above the details.
const READING: u16 = 3;
const STRIPS: u16 = 2;
/// Maximum height of a strip.
const TALLEST_STRIP: u16 = 6;

/// Draws the view.
pub fn timeline(app: &App, canvas: &mut Canvas<'_>, area: Rect) {
    let shown = picture(app);
    let title = match shown {
        Picture::Tasks => "Timeline of a step",
        Picture::Scaling => "Weak scaling: constant work per node",
        Picture::Levels => "Timeline of a run: requests and KV cache",
        Picture::Latencies => "Latency CDFs of a run",
    };
    let scaling = shown == Picture::Scaling;
    let described = if scaling { remark(&app.queries.scaling) } else { remark(&app.queries.simulation) };
    let inner = canvas.view(area, View::Timeline, title, &described, app.tour.is_none());
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    let run = app.current_run();
    let drawn = match shown {
        Picture::Tasks => match run.and(app.timeline.output()) {
            Some(_) => {
                tasks(&app.timeline, canvas, inner);
                true
            }
            None => false,
        },
        Picture::Scaling => app.queries.scaling.answer().is_some_and(|scaling| scale(scaling, canvas, inner)),
        Picture::Levels => {
            run.and_then(|run| run.serving.as_ref()).is_some_and(|served| levels(&app.answer, served, canvas, inner))
        }
        Picture::Latencies => {
            run.and_then(|run| run.serving.as_ref()).is_some_and(|served| latencies(&app.answer, served, canvas, inner))
        }
    };
    if !drawn {
        let trouble = app.queries.simulation.problem().or_else(|| app.queries.scaling.problem());
        let without = "this scenario cannot be simulated: the target needs an accelerator and the workload a model";
        let none = app.simulated_scenario().is_none().then_some(without);
        let nowhere = app.queries.scaling.answer().is_some_and(|scaling| scaling.points.is_empty());
        let nowhere = (scaling && nowhere).then_some("this scenario cannot run on any number of nodes");
        draw_no_answer(&app.answer, none.or(trouble).or(nowhere).or(Some("simulating")), canvas, inner);
    }
}

/// Returns the color of a task.
fn role(kind: TaskKind) -> Role {
    match plain(kind) {
        TaskKind::Pass(PassKind::Forward) => Role::Bar1,
        TaskKind::Pass(PassKind::Backward) => Role::Bar2,
        TaskKind::Pass(PassKind::Weights) => Role::Bar3,
        TaskKind::Transfer => Role::Bar4,
        TaskKind::Reduce => Role::Bar5,
        TaskKind::Gather => Role::Bar6,
        TaskKind::Optimizer => Role::Title,
        TaskKind::PassTask(_) => Role::Bar3,
    }
}

/// Returns the kind of a task for legend and color. All-gathers and reduce-scatters of single layers count as
/// all-gather and gradient reduction.
pub(in crate::tui) fn plain(kind: TaskKind) -> TaskKind {
    match kind {
        TaskKind::PassTask(Action::Gather) => TaskKind::Gather,
        TaskKind::PassTask(Action::Scatter) => TaskKind::Reduce,
        TaskKind::PassTask(_) => TaskKind::PassTask(Action::Tensor),
        kind => kind,
    }
}

/// Returns the name of a kind of task, and the letter on its bar.
pub(in crate::tui) fn named(kind: TaskKind) -> (&'static str, &'static str) {
    match kind {
        TaskKind::Pass(PassKind::Forward) => ("forward", "F"),
        TaskKind::Pass(PassKind::Backward) => ("backward", "B"),
        TaskKind::Pass(PassKind::Weights) => ("weight gradients", "W"),
        TaskKind::Transfer => ("transfer", "T"),
        TaskKind::Reduce => ("gradient reduction", "R"),
        TaskKind::Gather => ("weight all-gather", "G"),
        TaskKind::Optimizer => ("optimizer", "O"),
        TaskKind::PassTask(action) => (
            action.name(),
            match plain(kind) {
                TaskKind::Gather => "G",
                TaskKind::Reduce => "R",
                _ => "C",
            },
        ),
    }
}

/// All kinds, in the order of the legend.
pub(in crate::tui) const KINDS: [TaskKind; 8] = [
    TaskKind::Pass(PassKind::Forward),
    TaskKind::Pass(PassKind::Backward),
    TaskKind::Pass(PassKind::Weights),
    TaskKind::PassTask(Action::Tensor),
    TaskKind::Transfer,
    TaskKind::Reduce,
    TaskKind::Gather,
    TaskKind::Optimizer,
];

fn stream(kind: StreamKind) -> &'static str {
    match kind {
        StreamKind::Compute => "compute",
        StreamKind::Copy => "copy",
        StreamKind::Model => "layer comm",
        StreamKind::Pipeline => "PP comm",
        StreamKind::Data => "DP comm",
    }
}

/// Returns the name of a lane.
pub(in crate::tui) fn lane_name(lane: &Lane) -> String {
    match lane.stream {
        StreamKind::Data => format!("stage {} {}", lane.stage, stream(lane.stream)),
        _ if lane.replica == 0 => format!("stage {} {}", lane.stage, stream(lane.stream)),
        _ => format!("r{} stage {} {}", lane.replica, lane.stage, stream(lane.stream)),
    }
}

/// Returns the fraction of the step in which a lane is busy.
pub(in crate::tui) fn busy_of_step(timeline: &Timeline, lane: &Lane) -> f64 {
    busy(timeline, lane, timeline.span)
}

/// Returns the fraction of a time span in which a lane is busy.
fn busy(timeline: &Timeline, lane: &Lane, (from, to): (f64, f64)) -> f64 {
    let within = |task: &Task| (task.end.min(to) - task.begin.max(from)).max(0.0);
    let sum: f64 = lane.tasks.iter().filter_map(|number| timeline.task(*number)).map(within).sum();
    sum / (to - from).max(1e-12)
}

/// Describes a task: `forward of micro-batch 12, stage 3, replica 0`.
pub(in crate::tui) fn task_text(task: &Task) -> String {
    let (name, _) = named(task.kind);
    let micro = match task.kind {
        TaskKind::Pass(_) | TaskKind::Transfer | TaskKind::PassTask(_) => format!(" of micro-batch {}", task.micro),
        _ => String::new(),
    };
    let chunk = if task.chunk > 0 { format!(", chunk {}", task.chunk) } else { String::new() };
    let replica = if task.stream == StreamKind::Data { String::new() } else { format!(", replica {}", task.replica) };
    format!("{name}{micro}{chunk}, stage {}{replica}", task.stage)
}

fn tasks(timeline: &Timeline, canvas: &mut Canvas<'_>, area: Rect) {
    let below = READING + STRIPS + 1;
    if area.height < below + 4 || area.width < NAMES + 20 {
        return shares(timeline, canvas, area);
    }
    legend(timeline, canvas, Rect { height: 1, ..area });
    let area = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let lanes = u16::try_from(timeline.lanes.len()).unwrap_or(u16::MAX).max(1);
    let rows = area.height - below - 1;
    // With spare space, lanes are thicker and have gaps, and the strips are taller.
    let pitch = (rows / lanes).clamp(1, 4);
    let tall = 1 + (rows.saturating_sub(lanes.saturating_mul(pitch)) / STRIPS).min(TALLEST_STRIP - 1);
    let below = READING + 1 + STRIPS * tall;
    let track = |y: u16| Rect::new(area.x + NAMES, y, area.width - NAMES, 1);
    let (from, to) = timeline.window;
    let dim = canvas.role(Role::Dim);
    // The axis with the visible time range.
    let (first, _) = timeline.span;
    let axis = track(area.y);
    let [begin, middle, end] = durations_ms([from, 0.5 * (from + to), to].map(|at| 1e3 * (at - first)));
    canvas.text(axis.x, axis.y, axis.width, &begin, dim);
    canvas.right(axis.x, axis.y, axis.width, &end, dim);
    canvas.text(axis.x + axis.width / 2 - 4, axis.y, 12, &middle, dim);
    let rows = usize::from((area.height - below - 1) / pitch);
    let top = timeline
        .lane
        .saturating_sub(rows.saturating_sub(1).min(rows / 2))
        .min(timeline.lanes.len().saturating_sub(rows));
    for (row, (number, lane)) in (0u16..).zip(timeline.lanes.iter().enumerate().skip(top).take(rows)) {
        let y = area.y + 1 + row * pitch;
        let here = number == timeline.lane;
        let style = canvas.role(if here { Role::Accent } else { Role::Text });
        canvas.text(area.x, y, NAMES - 6, &lane_name(lane), style);
        canvas.right(area.x + NAMES - 6, y, 5, &format!("{:.0} %", 100.0 * busy(timeline, lane, timeline.window)), dim);
        bars(timeline, lane, canvas, track(y), here.then_some(timeline.place));
        for below in y + 1..y + pitch - u16::from(pitch > 1) {
            canvas.repeat(track(y), below);
        }
    }
    canvas.more(
        Rect {
            x: area.x.saturating_sub(2),
            width: area.width + 4,
            y: area.y.saturating_sub(1),
            height: area.height + 2 - below,
        },
        top > 0,
        top + rows < timeline.lanes.len(),
    );
    let y = area.bottom() - below;
    let high = |y: u16| Rect { height: tall, ..track(y) };
    strip(timeline, "compute", |lane| lane.stream == StreamKind::Compute, canvas, (area.x, high(y)));
    strip(timeline, "transfers", |lane| lane.stream != StreamKind::Compute, canvas, (area.x, high(y + tall)));
    reading(timeline, canvas, Rect { y: y + STRIPS * tall, height: READING + 1, ..area });
}

/// Draws the content of the lanes as text: the task under the cursor, and how busy each lane is, from the one under the
/// cursor on.
fn shares(timeline: &Timeline, canvas: &mut Canvas<'_>, area: Rect) {
    let (text, value, dim) = (canvas.role(Role::Text), canvas.role(Role::Value), canvas.role(Role::Dim));
    let (first, last) = timeline.span;
    let mut lines = vec![(format!("stream utilization in a step of {}", duration(last - first)), dim)];
    if let Some(task) = timeline.task_under_cursor().and_then(|here| timeline.task(here)) {
        let took = format!("{}: {}", task_text(task), duration(task.end - task.begin));
        lines.splice(0..0, wrap(&took, usize::from(area.width)).into_iter().map(|line| (line, value)));
    }
    let mut y = area.y;
    for (line, style) in &lines {
        if y < area.bottom() {
            canvas.text(area.x, y, area.width, line, *style);
        }
        y += 1;
    }
    let rows = usize::from(area.bottom().saturating_sub(y));
    let top = timeline.lane.min(timeline.lanes.len().saturating_sub(rows));
    for (y, (number, lane)) in (y..area.bottom()).zip(timeline.lanes.iter().enumerate().skip(top)) {
        let style = if number == timeline.lane { canvas.role(Role::Accent) } else { text };
        canvas.text(area.x, y, area.width.saturating_sub(7), &lane_name(lane), style);
        canvas.right(area.x, y, area.width, &format!("{:.0} %", 100.0 * busy_of_step(timeline, lane)), style);
    }
}

/// Draws the legend of the kinds that occur, with short names if the long ones do not fit.
fn legend(timeline: &Timeline, canvas: &mut Canvas<'_>, area: Rect) {
    let there =
        |kind: &TaskKind| timeline.output().is_some_and(|o| o.tasks.iter().any(|task| plain(task.kind) == *kind));
    let kinds: Vec<TaskKind> = KINDS.into_iter().filter(there).collect();
    let path = "critical path";
    let width = |name: fn(TaskKind) -> &'static str| {
        kinds.iter().map(|kind| name(*kind).width() + 4).sum::<usize>() + path.width() + 2
    };
    let name = if width(|kind| named(kind).0) <= usize::from(area.width) { |kind| named(kind).0 } else { short };
    let mut x = area.x;
    for kind in kinds {
        // The letter as on the bars.
        let style = canvas.role(role(kind));
        let sign = style.add_modifier(Modifier::REVERSED);
        x = canvas.text(x, area.y, area.right().saturating_sub(x), named(kind).1, sign) + 1;
        x = canvas.text(x, area.y, area.right().saturating_sub(x), name(kind), style) + 2;
    }
    let style = canvas.role(Role::Mark).add_modifier(Modifier::UNDERLINED);
    let text = format!("{} {path}", canvas.glyphs.mark);
    canvas.text(x, area.y, area.right().saturating_sub(x), &text, style);
}

/// Returns the name of a kind in one or two short words.
fn short(kind: TaskKind) -> &'static str {
    match plain(kind) {
        TaskKind::Pass(PassKind::Weights) => "weights",
        TaskKind::PassTask(_) => "TP/CP/EP",
        TaskKind::Reduce => "reduce",
        TaskKind::Gather => "gather",
        kind => named(kind).0,
    }
}

/// Draws the bars of a lane. Tasks that share a cell are drawn as one letter; others have edges and, if it fits, their
/// name and micro-batch. The critical path is marked.
fn bars(timeline: &Timeline, lane: &Lane, canvas: &mut Canvas<'_>, track: Rect, here: Option<usize>) {
    let (from, to) = timeline.window;
    let cells = f64::from(track.width) / (to - from).max(1e-12);
    // Small tasks: a cell has the color of the kind with the largest share.
    let mut covered = vec![([0.0; KINDS.len()], 0.0); usize::from(track.width)];
    let shown = |task: &&Task| task.end > from && task.begin < to;
    for number in &lane.tasks {
        let Some(task) = timeline.task(*number).filter(shown).filter(|task| (task.end - task.begin) * cells < 1.0)
        else {
            continue;
        };
        let kind = KINDS.iter().position(|kind| *kind == plain(task.kind)).unwrap_or_default();
        let marked = timeline.critical.get(*number as usize).copied().unwrap_or_default();
        let (begin, end) = (((task.begin - from) * cells).max(0.0), (task.end - from) * cells);
        for at in [begin as usize, begin as usize + 1] {
            let within = (end.min(at as f64 + 1.0) - begin.max(at as f64)).max(0.0);
            if let Some((kinds, critical)) = covered.get_mut(at) {
                if let Some(sum) = kinds.get_mut(kind) {
                    *sum += within;
                }
                *critical += if marked { within } else { 0.0 };
            }
        }
    }
    for (x, (kinds, critical)) in (track.x..).zip(&covered) {
        let all: f64 = kinds.iter().sum();
        if all <= 0.0 {
            continue;
        }
        let most =
            KINDS.iter().zip(kinds).max_by(|a, b| a.1.total_cmp(b.1)).map_or(TaskKind::Transfer, |(kind, _)| *kind);
        let mut style = canvas.role(role(most));
        if *critical > 0.5 * all {
            style = style.add_modifier(Modifier::UNDERLINED);
        }
        // The letter of the kind, reversed if the tasks fill the cell like bars.
        if all > 0.5 {
            style = style.add_modifier(Modifier::REVERSED);
        }
        canvas.text(x, track.y, 1, named(most).1, style);
    }
    for (place, number) in lane.tasks.iter().enumerate() {
        let Some(task) = timeline.task(*number).filter(shown) else { continue };
        let (width, cursor) = ((task.end - task.begin) * cells, here == Some(place));
        if width < 1.0 && !cursor {
            continue;
        }
        let share = |at: f64| ((at - from) / (to - from).max(1e-12)).clamp(0.0, 1.0);
        let critical = timeline.critical.get(*number as usize).copied().unwrap_or_default();
        let kind = canvas.role(if cursor { Role::Accent } else { role(task.kind) });
        canvas.segment(track, (share(task.begin), share(task.end)), kind);
        let begin = (share(task.begin) * f64::from(track.width)).ceil() as u16;
        let end = (share(task.end) * f64::from(track.width)).floor() as u16;
        let room = end.saturating_sub(begin);
        let counted = matches!(task.kind, TaskKind::Pass(_) | TaskKind::Transfer);
        let micro = if counted { format!(" {}", task.micro) } else { String::new() };
        // The longest label that fits: the name, a short name, the letter.
        let [name, brief] = [named(task.kind).0, short(task.kind)].map(|name| format!("{name}{micro}"));
        let letter = format!("{}{}", named(task.kind).1, micro.trim_start());
        let fits = |label: &String| usize::from(room) > label.len() + 1;
        let label = [name, brief].into_iter().find(fits).unwrap_or(letter);
        if operators::draw_operators(timeline, *number, canvas, track) {
            // Its operators are drawn instead.
        } else if room as usize > label.len() {
            canvas.text(track.x + begin, track.y, room, &label, kind.add_modifier(Modifier::REVERSED));
        } else {
            // At least its letter, in the cell in its middle.
            let middle = 0.5 * (share(task.begin) + share(task.end)) * f64::from(track.width);
            let x = (track.x + middle as u16).min(track.right().saturating_sub(1));
            canvas.text(x, track.y, 1, named(task.kind).1, kind.add_modifier(Modifier::REVERSED));
        }
        if critical && room > 0 {
            let style = canvas.role(Role::Mark).add_modifier(Modifier::UNDERLINED | Modifier::BOLD);
            let mark = canvas.glyphs.mark;
            canvas.text(track.x + end - 1, track.y, 1, mark, style.add_modifier(Modifier::REVERSED));
        }
        if cursor {
            let mark = canvas.glyphs.changed;
            let x = (track.x + begin.min(track.width - 1)).min(track.right() - 1);
            let accent = canvas.role(Role::Accent).add_modifier(Modifier::BOLD);
            if room == 0 {
                canvas.text(x, track.y, 1, mark, accent);
            }
        }
    }
}

/// Draws how many of the lanes selected by `which` are busy, as heights over the visible range.
fn strip(
    timeline: &Timeline,
    name: &str,
    which: impl Fn(&Lane) -> bool,
    canvas: &mut Canvas<'_>,
    (x, track): (u16, Rect),
) {
    let (from, to) = timeline.window;
    let lanes: Vec<&Lane> = timeline.lanes.iter().filter(|lane| which(lane)).collect();
    let cells = usize::from(track.width);
    let each = (to - from) / cells.max(1) as f64;
    let mut work = vec![0.0; cells];
    for task in lanes.iter().flat_map(|lane| &lane.tasks).filter_map(|number| timeline.task(*number)) {
        let (begin, end) = (task.begin.max(from), task.end.min(to));
        if end <= begin {
            continue;
        }
        let (first, last) = (((begin - from) / each) as usize, ((end - from) / each) as usize);
        for cell in first..=last.min(cells.saturating_sub(1)) {
            let (left, right) = (from + cell as f64 * each, from + (cell + 1) as f64 * each);
            if let Some(sum) = work.get_mut(cell) {
                *sum += (end.min(right) - begin.max(left)).max(0.0);
            }
        }
    }
    let all = each * lanes.len().max(1) as f64;
    let mean: f64 = work.iter().sum::<f64>() / (all * cells.max(1) as f64).max(1e-12);
    let (dim, style) = (canvas.role(Role::Dim), canvas.role(Role::Bar1));
    let foot = track.bottom() - 1;
    canvas.text(x, foot, NAMES - 6, name, dim);
    canvas.right(x + NAMES - 6, foot, 5, &format!("{:.0} %", 100.0 * mean), dim);
    for (cell, sum) in (track.x..).zip(&work) {
        let height = sum / all * f64::from(track.height);
        for row in (0..track.height).take_while(|row| height > f64::from(*row)) {
            let glyph = canvas.glyphs.level((height - f64::from(row)).min(1.0));
            canvas.text(cell, foot - row, 1, glyph, style);
        }
    }
}

/// Draws the task under the cursor, its duration, and its dependencies.
fn reading(timeline: &Timeline, canvas: &mut Canvas<'_>, area: Rect) {
    let Some((number, task)) = timeline.task_under_cursor().and_then(|here| Some((here, timeline.task(here)?))) else {
        return;
    };
    let (text, value, dim) = (canvas.role(Role::Text), canvas.role(Role::Value), canvas.role(Role::Dim));
    let (first, _) = timeline.span;
    let when = format!("{} to {}", duration(task.begin - first), duration(task.end - first));
    let x = canvas.text(area.x, area.y, area.width, &task_text(task), value) + 2;
    let room = area.right().saturating_sub(x);
    let lasts = duration(task.end - task.begin);
    let took = format!("takes {lasts}, {when}");
    // The end follows from start and duration.
    let brief = format!("takes {lasts} from {}", duration(task.begin - first));
    canvas.text(x, area.y, room, if took.width() <= usize::from(room) { &took } else { &brief }, text);
    let waited = match task.after.and_then(|after| timeline.task(after)) {
        None => "did not wait for another task of this step".to_owned(),
        Some(after) => {
            let idle = timeline.lanes.get(timeline.lane).and_then(|lane| {
                let before = lane.tasks.get(timeline.place.checked_sub(1)?)?;
                Some(task.begin - timeline.task(*before)?.end)
            });
            let idle = idle.filter(|idle| *idle > 1e-9);
            let stood = idle.map_or_else(String::new, |idle| format!("; its stream was idle for {}", duration(idle)));
            format!("waited for {}, until {}{stood}", task_text(after), duration(after.end - first))
        }
    };
    canvas.text(area.x, area.y + 1, area.width, &waited, text);
    let critical = timeline.critical.get(number as usize).copied().unwrap_or_default();
    let (style, verdict) = if critical {
        (canvas.role(Role::Mark), "on the critical path: shortening it shortens the step")
    } else {
        (dim, "not on the critical path: the step time does not depend on it")
    };
    let x = canvas.text(area.x, area.y + 2, area.width, verdict, style);
    if let Some(name) = operators::middle_operator(timeline, number) {
        canvas.text(
            x,
            area.y + 2,
            area.right().saturating_sub(x),
            &format!("; {name} in the middle of the view"),
            text,
        );
    }
}

/// Returns the information line.
#[must_use]
pub fn info(app: &App) -> String {
    match picture(app) {
        Picture::Tasks => "identical replicas are shown once; Enter selects the task it waited for".to_owned(),
        Picture::Scaling => {
            "replicas and global batch scale with the nodes; the diamond marks the current scenario".to_owned()
        }
        Picture::Levels => "time-binned averages, including ramp-up and drain".to_owned(),
        Picture::Latencies => {
            "simulated; the closed form includes waiting for prompts that arrive together (view 3: prefill contention)"
                .to_owned()
        }
    }
}
