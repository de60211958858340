//! The state of a watch that a view displays. It performs no I/O.

use std::collections::BTreeMap;

use atlas_ingest::observation::{Observation, Server};
use atlas_ingest::training::Step;
use serde_json::{Value, json};

use super::cause::Diagnosis;
use super::devices::Devices;
use super::diagnose::{self, Case};
use super::event::Event;
use super::prediction::{Prediction, Quantity};
use super::serving::{self, Reports};
use super::shift::{self, LevelShift};
use super::standing::Position;
use super::timers::Timers;
use super::track::{Point, Track, median};

/// Number of points whose median is the current level.
const CURRENT_LEVEL_POINTS: usize = 5;
/// Number of points that are required for a comparison.
const MIN_COMPARED_POINTS: usize = 3;
/// Number of recent points in which single long steps are detected.
const WINDOW: usize = 20;
/// Number of incomplete steps after which missing ranks are no longer awaited.
const MAX_INCOMPLETE_STEPS: usize = 8;
/// Relative slowdown within the interval that is reported.
const MIN_REPORTED_SLOWDOWN: f64 = 0.05;

/// A file that is followed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Source {
    /// Name.
    pub name: String,
    /// Its last step.
    pub last_step: Option<u64>,
    /// Its step times relative to the mean of all sources.
    ratio: Track,
}

/// Progress of a training run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The last step.
    pub step: u64,
    /// Total number of steps.
    pub of: u64,
    /// Time to completion at the current pace, s.
    pub seconds: f64,
    /// Time to completion at the predicted pace, s.
    pub planned_seconds: Option<f64>,
    /// Cost to completion, USD.
    pub usd: Option<f64>,
}

/// The state of a watched run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WatchState {
    /// The prediction.
    pub prediction: Option<Prediction>,
    /// Time per step or token, s.
    pub times: Track,
    /// Result of the comparison.
    pub position: Position,
    /// The last change in level.
    pub shift: Option<LevelShift>,
    /// The likely causes, if the run is slower.
    pub diagnosis: Option<Diagnosis>,
    /// The current level, s.
    pub now: Option<f64>,
    /// The files that are followed.
    pub sources: Vec<Source>,
    /// Timers of the tool.
    pub timers: Timers,
    /// Samples of the devices.
    pub devices: Devices,
    /// Reports of a serving engine.
    pub reports: Reports,
    /// Number of times that the step counter decreased.
    pub restarts: u32,
    /// Time since the last step, s.
    pub silent_s: f64,
    planned_steps: Option<u64>,
    last_line_at: Option<f64>,
    pending: BTreeMap<u64, Vec<(usize, f64)>>,
    warmup: usize,
    /// Number of records at the last evaluation.
    evaluated: u64,
    described: Reported,
}

/// What was reported last.
#[derive(Debug, Clone, Default, PartialEq)]
struct Reported {
    compared: bool,
    position: Position,
    cause: Option<super::cause::Cause>,
    shift: Option<u64>,
    stalled: bool,
    restarts: u32,
}

impl WatchState {
    /// Creates the state for a watch of these files.
    #[must_use]
    pub fn new(prediction: Option<Prediction>, sources: impl IntoIterator<Item = String>) -> WatchState {
        let sources = sources.into_iter().map(|name| Source { name, ..Source::default() }).collect();
        WatchState { prediction, sources, ..WatchState::default() }
    }

    /// The quantity that is compared.
    #[must_use]
    pub fn quantity(&self) -> Quantity {
        match &self.prediction {
            Some(prediction) => prediction.quantity,
            None if self.reports.generated.last().is_some() => Quantity::Token,
            None => Quantity::Step,
        }
    }

    /// The unit of the points: training steps, or reports of a serving engine.
    #[must_use]
    pub fn counter(&self) -> &'static str {
        match self.quantity() {
            Quantity::Step => "step",
            Quantity::Token => "report",
        }
    }

    /// The last step.
    #[must_use]
    pub fn last_step(&self) -> Option<u64> {
        self.times.last().map(|point| point.step)
    }

    /// The points after the warm-up.
    #[must_use]
    pub fn points_after_warm_up(&self) -> &[Point] {
        self.times.points().get(self.warmup..).unwrap_or_default()
    }

    /// Processes an observation from a source. `at` is the current time, s.
    pub fn observe(&mut self, source: usize, at: f64, seen: Observation) {
        match seen {
            Observation::Step(step) => self.step(source, at, &step),
            Observation::Timer(timer) => {
                let step = self.sources.get(source).and_then(|source| source.last_step).unwrap_or(0);
                self.timers.push(step, timer);
            }
            Observation::Server(server) => self.server(at, server),
            Observation::Device(device) => self.devices.push(device),
        }
    }

    fn step(&mut self, source: usize, at: f64, step: &Step) {
        if self.prediction.as_ref().is_some_and(|plan| plan.quantity == Quantity::Token) {
            return;
        }
        self.last_line_at = Some(at);
        self.planned_steps = step.planned.or(self.planned_steps);
        let rate = step.tokens_per_gpu.filter(|rate| *rate > 0.0).zip(self.prediction.as_ref());
        let of_rate = rate.and_then(|(rate, plan)| Some(plan.tokens_per_step? / (rate * plan.accelerators)));
        let Some(seconds) = step.seconds.or(of_rate).filter(|seconds| *seconds > 0.0) else { return };
        let several = self.sources.len() > 1;
        let Some(known) = self.sources.get_mut(source) else { return };
        let number = step.step.unwrap_or_else(|| known.last_step.map_or(0, |last| last + 1));
        let back = known.last_step.is_some_and(|last| number <= last);
        known.last_step = Some(number);
        if back && self.times.last().is_some_and(|point| number <= point.step) {
            self.restart();
        }
        if !several {
            self.times.push(number, seconds);
            return;
        }
        self.pending.entry(number).or_default().push((source, seconds));
        self.combine_ranks();
    }

    /// Combines the times of all ranks for a step, once all ranks have logged it or are late.
    fn combine_ranks(&mut self) {
        let writing = self.sources.iter().filter(|source| source.last_step.is_some()).count();
        while let Some(entry) = self.pending.first_entry() {
            let number = *entry.key();
            let complete = entry.get().len() >= writing.max(2);
            if !complete && self.pending.len() <= MAX_INCOMPLETE_STEPS {
                break;
            }
            let Some((_, times)) = self.pending.pop_first() else { break };
            let mean = times.iter().map(|(_, seconds)| seconds).sum::<f64>() / times.len().max(1) as f64;
            if self.times.last().is_none_or(|point| point.step < number) {
                self.times.push(number, mean);
            }
            for (source, seconds) in times {
                if let Some(source) = self.sources.get_mut(source) {
                    source.ratio.push(number, seconds / mean);
                }
            }
        }
    }

    /// Discards the steps before a restart, which belong to another run.
    fn restart(&mut self) {
        self.restarts = self.restarts.saturating_add(1);
        (self.times, self.evaluated) = (Track::default(), 0);
        self.timers = Timers::default();
        self.pending.clear();
        (self.shift, self.diagnosis, self.position) = (None, None, Position::Waiting);
    }

    fn server(&mut self, at: f64, server: Server) {
        if self.prediction.as_ref().is_some_and(|plan| plan.quantity == Quantity::Step) {
            return;
        }
        self.last_line_at = Some(at);
        let number = self.reports.generated.records() + 1;
        for (track, value) in [
            (&mut self.reports.running, server.running),
            (&mut self.reports.waiting, server.waiting),
            (&mut self.reports.cache, server.cache),
            (&mut self.reports.prompt, server.prompt_per_s),
            (&mut self.reports.generated, server.generated_per_s),
        ] {
            value.into_iter().for_each(|value| track.push(number, value));
        }
        // An engine that is idle, or only prefills, has no time between tokens.
        if let (Some(running), Some(rate)) = (server.running, server.generated_per_s)
            && running >= 1.0
            && rate >= running
        {
            self.times.push(number, running / rate);
        }
    }

    /// Evaluates all observations since the last call and returns what changed. `at` is the current time, s.
    pub fn tick(&mut self, at: f64) -> Vec<Event> {
        let mut events = Vec::new();
        if self.restarts != self.described.restarts {
            self.described = Reported { restarts: self.restarts, compared: true, ..Reported::default() };
            events.push(Event::Restarted);
        }
        self.evaluate();
        self.check_for_stall(at, &mut events);
        if self.now.is_none() {
            return events;
        }
        if !std::mem::replace(&mut self.described.compared, true) {
            events.push(Event::Comparable);
        }
        self.compare(&mut events);
        events
    }

    fn compare(&mut self, events: &mut Vec<Event>) {
        let outside = |standing| matches!(standing, Position::Slower { .. } | Position::Faster { .. });
        let moved = self.position.name() != self.described.position.name();
        let first = self.diagnosis.as_ref().and_then(Diagnosis::first);
        let cause = first.map(|suspect| suspect.cause);
        let clear = self.diagnosis.as_ref().is_some_and(Diagnosis::is_clear);
        if outside(self.position) && (moved || clear && cause != self.described.cause && cause.is_some()) {
            self.described.cause = cause;
            events.push(Event::LeftInterval);
        } else if moved && outside(self.described.position) && self.position == Position::Within {
            self.described.cause = None;
            events.push(Event::ReturnedToInterval);
        }
        let notable = self.shift.filter(|shift| shift.rise() >= MIN_REPORTED_SLOWDOWN).map(|shift| shift.since);
        if !outside(self.position) && notable.is_some() && notable != self.described.shift {
            events.push(Event::Slower);
        }
        self.described.shift = notable.or(self.described.shift);
        self.described.position = self.position;
    }

    fn check_for_stall(&mut self, at: f64, events: &mut Vec<Event>) {
        let Some(last) = self.last_line_at else { return };
        self.silent_s = (at - last).max(0.0);
        let interval = match self.times.points() {
            [.., a, b] if self.quantity() == Quantity::Step => b.step.saturating_sub(a.step).max(1) as f64,
            _ => 1.0,
        };
        let usual = if self.quantity() == Quantity::Step { self.now.unwrap_or(0.0) * interval } else { 10.0 };
        let finished = self.progress().is_some_and(|progress| progress.step >= progress.of);
        let stalled = self.silent_s > (10.0 * usual).max(60.0) && !finished;
        if stalled != std::mem::replace(&mut self.described.stalled, stalled) {
            events.push(if stalled { Event::Stalled } else { Event::Resumed });
        }
    }

    /// Whether there has been no step for a long time.
    #[must_use]
    pub fn stalled(&self) -> bool {
        self.described.stalled
    }

    fn evaluate(&mut self) {
        if std::mem::replace(&mut self.evaluated, self.times.records()) == self.times.records() {
            return;
        }
        let points = self.times.points();
        // The first steps compile kernels and fill caches.
        let usual = median(points.get(2..).unwrap_or_default());
        let cold = |point: &&Point| usual.is_some_and(|usual| point.value > 1.3 * usual);
        self.warmup = if points.len() > 4 { points.iter().take(2).take_while(cold).count() } else { 0 };
        let points = self.points_after_warm_up().to_vec();
        let points = points.as_slice();
        if points.len() < MIN_COMPARED_POINTS {
            self.now = None;
            return;
        }
        let recent = points.get(points.len().saturating_sub(CURRENT_LEVEL_POINTS)..).unwrap_or_default();
        let window = points.get(points.len().saturating_sub(WINDOW)..).unwrap_or_default();
        let level = median(recent);
        let mean = window.iter().map(|point| point.value).sum::<f64>() / window.len().max(1) as f64;
        let shifts = shift::all(points);
        self.now = level;
        self.shift = shifts.last().copied();
        let Some(plan) = &self.prediction else {
            self.position = Position::NoPrediction;
            self.diagnosis = None;
            return;
        };
        let [low, high] = plan.band;
        let long = window.iter().filter(|point| point.value > high).count();
        let bursts = window.len() >= WINDOW && mean > high && long >= 3;
        let Some(level) = level.map(|level| if bursts { level.max(mean) } else { level }) else { return };
        self.now = Some(level);
        let slow = level > high;
        let left = shifts.iter().rev().find(|shift| shift.before <= high && shift.after > high);
        self.position = if slow {
            // Bursts do not change the level. They began with the first long step.
            let began = bursts.then(|| points.iter().find(|point| point.value > high)).flatten();
            let since = left.map(|shift| shift.since).or(began.map(|point| point.step));
            Position::Slower { since, share: level / plan.seconds - 1.0 }
        } else if level < low {
            Position::Faster { share: 1.0 - level / plan.seconds }
        } else {
            Position::Within
        };
        let inside = self.shift.filter(|shift| shift.rise() >= MIN_REPORTED_SLOWDOWN).map(|shift| shift.since);
        self.diagnosis = match self.position {
            Position::Slower { since, .. } => Some(self.explain(since)),
            Position::Within => inside.map(|since| self.explain(Some(since))),
            _ => None,
        };
    }

    fn explain(&self, since: Option<u64>) -> Diagnosis {
        let Some(prediction) = &self.prediction else { return Diagnosis::default() };
        let points = self.points_after_warm_up();
        let at = since.map_or(0, |since| points.partition_point(|point| point.step < since));
        let (before, after) = points.split_at_checked(at).unwrap_or_default();
        if prediction.quantity == Quantity::Token {
            return serving::diagnose(prediction, &self.reports, since.unwrap_or(0), before, after);
        }
        let age: f64 = after
            .iter()
            .zip(points.get(at.saturating_sub(1)..).unwrap_or_default())
            .map(|(now, before)| now.value * now.step.saturating_sub(before.step).max(1) as f64)
            .sum();
        let ratio = |source: &Source| {
            let points = source.ratio.points();
            median(points.get(points.len().saturating_sub(16)..)?).map(|ratio| ratio - 1.0)
        };
        let slow = self.sources.iter().filter_map(|source| Some((source.name.as_str(), ratio(source)?)));
        let slow_rank = slow.filter(|(_, share)| *share > 0.03).max_by(|a, b| a.1.total_cmp(&b.1));
        let (timers, devices) = (&self.timers, &self.devices);
        diagnose::training(&Case { prediction, before, after, timers, devices, age, slow_rank })
    }

    /// Progress of the training run; `None` if its length is unknown.
    #[must_use]
    pub fn progress(&self) -> Option<Progress> {
        let plan = self.prediction.as_ref();
        let of = self.planned_steps.or(plan.and_then(|plan| plan.steps))?;
        let step = self.last_step().filter(|_| self.quantity() == Quantity::Step)?;
        let left = of.saturating_sub(step) as f64;
        let seconds = left * self.now?;
        let usd = plan.and_then(|plan| plan.usd_per_hour).map(|rate| rate * seconds / 3600.0);
        Some(Progress { step, of, seconds, planned_seconds: plan.map(|plan| left * plan.seconds), usd })
    }

    /// Measured and planned power of a device, W.
    #[must_use]
    pub fn power(&self) -> Option<(f64, f64)> {
        self.devices.watts().zip(self.prediction.as_ref()?.watts)
    }

    /// The state as a JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let plan = self.prediction.as_ref();
        let (since, share) = match self.position {
            Position::Slower { since, share } => (since, Some(share)),
            Position::Faster { share } => (None, Some(-share)),
            _ => (None, None),
        };
        let progress = self.progress().map(|progress| {
            json!({"step": progress.step, "of": progress.of, "eta_s": progress.seconds,
                "planned_eta_s": progress.planned_seconds, "usd_to_completion": progress.usd})
        });
        json!({
            "counter": self.counter(), "at": self.last_step(), "measured_s": self.now,
            "predicted_s": plan.map(|plan| plan.seconds), "band_s": plan.map(|plan| plan.band),
            "plan": plan.map(|plan| &plan.name), "standing": self.position.name(), "since": since, "slower_by": share,
            "suspects": self.diagnosis.as_ref().map(Diagnosis::json), "progress": progress,
            "watts": self.power().map(|(measured, planned)| json!({"measured": measured, "planned": planned})),
            "restarts": self.restarts, "silent_s": self.silent_s,
        })
    }
}
