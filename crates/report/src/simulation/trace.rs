//! Runs in the Trace Event Format, for Perfetto and Chrome's `about:tracing`: a process per replica, a track per stream
//! of a stage, a slice per task, arrows along the critical path; requests as slices on tracks of their own, and levels
//! as counters. Times are microseconds of simulated time.

use std::fmt::Write as _;

use serde_json::{Value, json};

use atlas_core::sort;
use atlas_plan::simulation::words::Window;
use atlas_plan::simulation::{Measured, serving, training};
use atlas_sim::training::input::{StreamKind, Task, TaskKind};
use atlas_sim::training::program::Action;
use atlas_sim::training::schedule::PassKind;

/// Returns the trace of a run within a window: one JSON object with the events in `traceEvents`.
#[must_use]
pub fn write(measured: &Measured, window: &Window) -> String {
    let events = match measured {
        Measured::Training(m) => of_training(m, window),
        Measured::Serving(m) => of_serving(m, window),
    };
    let mut out = String::from("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    let last = events.len().saturating_sub(1);
    for (number, event) in events.iter().enumerate() {
        let _ = writeln!(out, "{event}{}", if number < last { "," } else { "" });
    }
    out.push_str("]}\n");
    out
}

fn us(seconds: f64) -> f64 {
    // Rounded to nanoseconds; further digits are rounding errors.
    (seconds * 1e9).round() / 1e3
}

fn named(pid: u32, tid: Option<u32>, name: &str) -> Value {
    match tid {
        Some(tid) => json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}),
        None => json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}),
    }
}

/// Names of a stage's tracks, in the order of [`StreamKind`].
const STREAMS: [&str; 5] = ["compute", "copy", "layer network", "pipeline network", "data-parallel network"];

/// Track number of the stream that a task runs on.
fn track(task: &Task) -> u32 {
    STREAMS.len() as u32 * task.stage + task.stream as u32 + 1
}

fn name(task: &Task) -> String {
    match task.kind {
        TaskKind::Pass(PassKind::Forward) => format!("forward {}", task.micro),
        TaskKind::Pass(PassKind::Backward) => format!("backward {}", task.micro),
        TaskKind::Pass(PassKind::Weights) => format!("weights {}", task.micro),
        TaskKind::Transfer => format!("send {}", task.micro),
        TaskKind::Reduce => "reduce".to_owned(),
        TaskKind::Gather => "gather".to_owned(),
        TaskKind::Optimizer => "optimizer".to_owned(),
        TaskKind::PassTask(action) => action.name().to_owned(),
    }
}

fn category(task: &Task) -> &'static str {
    match task.stream {
        StreamKind::Compute => "compute",
        StreamKind::Copy => "copy",
        StreamKind::Model | StreamKind::Pipeline | StreamKind::Data => "network",
    }
}

fn of_training(m: &training::Measured, window: &Window) -> Vec<Value> {
    let tasks = &m.output.tasks;
    let seen = |task: &Task| window.sees(task.begin, task.end);
    let mut events = Vec::new();
    let mut tracks: Vec<(u32, u32)> = tasks.iter().filter(|task| seen(task)).map(|t| (t.replica, track(t))).collect();
    sort::ascending(&mut tracks);
    tracks.dedup();
    let mut process = None;
    for (replica, tid) in tracks {
        if process != Some(replica) {
            let alone = m.output.replicas < m.system.dp.get();
            let described =
                if alone { format!("replica {replica}, as all {}", m.system.dp) } else { format!("replica {replica}") };
            events.push(named(replica + 1, None, &described));
            process = Some(replica);
        }
        let each = STREAMS.len() as u32;
        let stream = STREAMS.get(((tid - 1) % each) as usize).copied().unwrap_or_default();
        events.push(named(replica + 1, Some(tid), &format!("stage {} {stream}", (tid - 1) / each)));
    }
    let mut critical = vec![false; tasks.len()];
    for &task in &m.output.critical_path {
        if let Some(mark) = critical.get_mut(task as usize) {
            *mark = true;
        }
    }
    for (number, task) in tasks.iter().enumerate().filter(|(_, task)| seen(task)) {
        let on_path = critical.get(number).copied().unwrap_or_default();
        let before = task.after.and_then(|after| tasks.get(after as usize));
        let mut args = json!({"stage": task.stage, "chunk": task.chunk, "critical": on_path});
        if let (Some(before), Some(map)) = (before, args.as_object_mut()) {
            map.insert("waited_for".to_owned(), json!(format!("{} of stage {}", name(before), before.stage)));
        }
        let (begin, end) = (us(task.begin), us(task.end));
        let (pid, tid) = (task.replica + 1, track(task));
        events.push(json!({
            "ph": "X", "name": name(task), "cat": category(task), "pid": pid, "tid": tid, "ts": begin,
            "dur": ((end - begin) * 1e3).round() / 1e3, "args": args,
        }));
        // Only the arrows of the critical path: all dependencies together would hide the tasks.
        if let Some(before) = before.filter(|before| on_path && seen(before)) {
            let (from, id) = (us(before.end.min(task.begin)), number);
            events.push(json!({
                "ph": "s", "name": "critical path", "cat": "path", "id": id, "pid": before.replica + 1,
                "tid": track(before), "ts": f64::max(from - 1e-3, us(before.begin)),
            }));
            events.push(json!({
                "ph": "f", "bp": "e", "name": "critical path", "cat": "path", "id": id, "pid": pid, "tid": tid, "ts": begin,
            }));
        }
    }
    events.extend(operators(m, window));
    events
}

/// Kernels as slices nested in their passes.
fn operators(m: &training::Measured, window: &Window) -> impl Iterator<Item = Value> {
    let inside = m.output.operators.iter().filter(|inner| window.sees(inner.begin, inner.end));
    inside.filter_map(|inner| {
        let pass = m.output.tasks.get(inner.pass as usize)?;
        let (begin, end) = (us(inner.begin), us(inner.end));
        Some(json!({
            "ph": "X", "name": inner.action.name(), "cat": "operator", "pid": pass.replica + 1, "tid": track(pass),
            "ts": begin, "dur": ((end - begin) * 1e3).round() / 1e3,
            "args": {"stage": pass.stage, "again": matches!(inner.action, Action::Recompute(_))},
        }))
    })
}

fn of_serving(m: &serving::Measured, window: &Window) -> Vec<Value> {
    let o = &m.output;
    let mut events = vec![named(1, None, "levels")];
    let mut replicas: Vec<u32> = o.records.iter().map(|r| r.replica).collect();
    sort::ascending(&mut replicas);
    replicas.dedup();
    events.extend(replicas.iter().map(|replica| named(replica + 2, None, &format!("replica {replica}"))));
    for (cell, level) in o.timeline.iter().enumerate() {
        let at = cell as f64 * o.cell;
        if window.sees(at, at + o.cell) {
            let counter =
                |name: &str, args: Value| json!({"ph": "C", "name": name, "pid": 1, "ts": us(at), "args": args});
            events.push(counter("requests", json!({"waiting": level.waiting, "running": level.running})));
            events.push(counter("KV blocks", json!({"share": level.kv_share})));
        }
    }
    for (id, r) in o.records.iter().enumerate() {
        if !window.sees(r.arrival, r.arrival + r.e2e) {
            continue;
        }
        // A request is an asynchronous slice that contains the slices of its stages.
        let mut slice = |ph: &str, name: &str, at: f64, args: Value| {
            events.push(json!({
                "ph": ph, "name": name, "cat": "request", "id": id, "pid": r.replica + 2, "tid": 1, "ts": us(at), "args": args,
            }));
        };
        let described = json!({"prompt_tokens": r.isl, "output_tokens": r.osl, "preemptions": r.preemptions});
        slice("b", "request", r.arrival, described);
        slice("b", "to first token", r.arrival, json!({}));
        slice("e", "to first token", r.arrival + r.ttft, json!({}));
        slice("b", "decode", r.arrival + r.ttft, json!({"tpot_ms": 1e3 * r.tpot}));
        slice("e", "decode", r.arrival + r.e2e, json!({}));
        slice("e", "request", r.arrival + r.e2e, json!({}));
    }
    events
}
