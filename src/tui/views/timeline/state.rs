//! State of the timeline: the chart, the lane, and the visible range of time.

use atlas_config::Mode;
use atlas_core::sort;
use atlas_plan::engine::answer::event::Run;
use atlas_sim::training::Output;
use atlas_sim::training::StreamKind;
use atlas_sim::training::Task;
use std::sync::Arc;

/// The chart that the view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Picture {
    /// Tasks over time, one lane per stream.
    #[default]
    Tasks,
    /// Throughput per accelerator as nodes are added, from the simulation and from the closed form.
    Scaling,
    /// Waiting and running requests, and their memory, over time.
    Levels,
    /// The distribution of latencies.
    Latencies,
}

impl Picture {
    /// The charts of a mode.
    pub(in crate::tui) const fn all(mode: Mode) -> [Picture; 2] {
        match mode {
            Mode::Training => [Picture::Tasks, Picture::Scaling],
            Mode::Inference => [Picture::Levels, Picture::Latencies],
        }
    }
}

/// One stream of a stage of a replica, and its tasks by begin time.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// The replica that represents identical ones.
    pub replica: u32,
    /// The stage.
    pub stage: u32,
    /// The stream.
    pub stream: StreamKind,
    /// Indices of its tasks.
    pub tasks: Vec<u32>,
}

/// The view of a run.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// The chart.
    pub picture: Picture,
    /// The run.
    pub run: Option<Arc<Run>>,
    /// Its lanes.
    pub lanes: Vec<Lane>,
    /// Beginning and end of the recorded step, s.
    pub span: (f64, f64),
    /// Beginning and end of the visible range, s.
    pub window: (f64, f64),
    /// Index of the lane under the cursor.
    pub lane: usize,
    /// Index of the task under the cursor in its lane.
    pub place: usize,
    /// Whether a task is on the critical path, by its index.
    pub critical: Vec<bool>,
}

impl Timeline {
    /// The tasks.
    #[must_use]
    pub fn output(&self) -> Option<&Output> {
        self.run.as_ref()?.training.as_ref()
    }

    /// The index of the task under the cursor.
    #[must_use]
    pub fn task_under_cursor(&self) -> Option<u32> {
        self.lanes.get(self.lane)?.tasks.get(self.place).copied()
    }

    /// A task by its index.
    #[must_use]
    pub fn task(&self, number: u32) -> Option<&Task> {
        self.output()?.tasks.get(number as usize)
    }

    /// Loads a run: computes its lanes, shows the whole step, and puts the cursor on the first task.
    pub(in crate::tui) fn look_at(&mut self, run: Option<Arc<Run>>) {
        let same = match (&self.run, &run) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (None, None) => true,
            _ => false,
        };
        if same {
            return;
        }
        self.run = run;
        let tasks = self.output().map_or_else(Vec::new, |output| output.tasks.clone());
        let path = self.output().map_or_else(Vec::new, |output| output.critical_path.clone());
        let mut lanes: Vec<Lane> = Vec::new();
        for (number, task) in (0u32..).zip(&tasks) {
            let is =
                |lane: &&mut Lane| (lane.replica, lane.stage, lane.stream) == (task.replica, task.stage, task.stream);
            match lanes.iter_mut().find(is) {
                Some(lane) => lane.tasks.push(number),
                None => {
                    let Task { replica, stage, stream, .. } = *task;
                    lanes.push(Lane { replica, stage, stream, tasks: vec![number] });
                }
            }
        }
        let begin = |number: &u32| tasks.get(*number as usize).map_or(0.0, |task| task.begin);
        for lane in &mut lanes {
            sort::by(&mut lane.tasks, |a, b| begin(a).total_cmp(&begin(b)));
        }
        sort::by_key(&mut lanes, |lane| (lane.replica, lane.stage, lane.stream as u8));
        let first = tasks.iter().map(|task| task.begin).fold(f64::INFINITY, f64::min);
        let last = tasks.iter().map(|task| task.end).fold(0.0, f64::max);
        self.span = (if first.is_finite() { first } else { 0.0 }, last);
        self.window = self.span;
        self.critical = vec![false; tasks.len()];
        for number in path {
            if let Some(mark) = self.critical.get_mut(number as usize) {
                *mark = true;
            }
        }
        self.lanes = lanes;
        (self.lane, self.place) = (0, 0);
    }

    /// Scrolls to the task under the cursor.
    pub(in crate::tui) fn follow(&mut self) {
        let Some((begin, end)) =
            self.task_under_cursor().and_then(|here| self.task(here)).map(|task| (task.begin, task.end))
        else {
            return;
        };
        let (from, to) = self.window;
        let width = to - from;
        if begin < from || end > to {
            let middle = if end - begin < width { 0.5 * (begin + end) } else { begin + 0.45 * width };
            self.show(middle - 0.5 * width, width);
        }
    }

    /// Sets the visible range within the step.
    pub(in crate::tui) fn show(&mut self, from: f64, width: f64) {
        let (first, last) = self.span;
        let width = width.clamp(1e-6 * (last - first), last - first);
        let from = from.clamp(first, last - width);
        self.window = (from, from + width);
    }

    /// Goes to a task.
    pub(in crate::tui) fn go_to(&mut self, number: u32) {
        let find = |lane: &Lane| lane.tasks.iter().position(|task| *task == number);
        let found = self.lanes.iter().enumerate().find_map(|(at, lane)| Some((at, find(lane)?)));
        if let Some((lane, place)) = found {
            (self.lane, self.place) = (lane, place);
            self.follow();
        }
    }
}
