//! Long training runs with failures: lost work, restarts, spare nodes, checkpoints; and the checkpoint interval with
//! the highest goodput, compared with theory.

use crate::kernel::replication::replicate;
use crate::kernel::{Distribution, EventQueue, Handle, Interval, Model, Progress, Stream, Time, run_within};
use crate::range::{OutOfRange, Ranges};
use atlas_core::math;

/// Purposes of the random streams.
const FAILURES: u32 = 32;
const REPAIRS: u32 = 33;
/// Maximum number of events of a run: seconds of computation, and millions of checkpoints and failures.
const MAX_EVENTS: u64 = 20_000_000;

/// A long run with failures. All times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Input {
    /// Total work: number of steps times step time.
    pub work: f64,
    /// Number of nodes of the job; each may fail.
    pub nodes: u32,
    /// Mean time between failures of one node, exponentially distributed.
    pub node_mtbf: f64,
    /// Work between two checkpoints.
    pub interval: f64,
    /// Time for which a checkpoint blocks the work.
    pub checkpoint: f64,
    /// Time until an asynchronous checkpoint is on storage, while work continues.
    pub flush: f64,
    /// Time from a failure to its detection.
    pub detection: f64,
    /// Time from detection until work resumes: new processes, loading of the checkpoint.
    pub restart: f64,
    /// Number of spare nodes.
    pub spares: u32,
    /// Time until a failed node is available again.
    pub repair: Distribution,
}

/// Breakdown of the time, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Output {
    /// Total time.
    pub wall: f64,
    /// Work that was not lost.
    pub work: f64,
    /// Work lost to failures.
    pub lost: f64,
    /// Time blocked by checkpoints.
    pub checkpoints: f64,
    /// Time of detection and restarts.
    pub restarts: f64,
    /// Waiting for a repair because no spare node is left.
    pub waiting_for_repair: f64,
    /// Work that was not lost over total time.
    pub goodput: f64,
    /// Number of failures.
    pub failures: u64,
    /// Whether the run was canceled, or did not finish within 213 days (the range of the clock) or the maximum number
    /// of events, for example because nodes fail faster than the job restarts.
    pub unfinished: bool,
}

impl Input {
    /// Mean time between failures of the whole job, seconds.
    pub fn mtbf(&self) -> f64 {
        self.node_mtbf / f64::from(self.nodes.max(1))
    }

    /// Returns all numbers that are out of range.
    pub fn problems(&self) -> Vec<OutOfRange> {
        let longest = Time::MAX.seconds();
        let ranges = [
            ("work", self.work, 0.0, longest),
            ("nodes", f64::from(self.nodes), 1.0, 1e9),
            ("mean time between failures of a node in seconds", self.node_mtbf, 1e-3, f64::INFINITY),
            ("checkpoint interval in seconds", self.interval, 1e-3, f64::INFINITY),
            ("duration of a checkpoint in seconds", self.checkpoint, 0.0, longest),
            ("duration of a checkpoint flush in seconds", self.flush, 0.0, longest),
            ("failure detection time in seconds", self.detection, 0.0, longest),
            ("restart time in seconds", self.restart, 0.0, longest),
            ("mean repair time in seconds", self.repair.mean(), 0.0, longest),
        ];
        let mut found = Ranges::default();
        ranges.into_iter().for_each(|(what, value, least, most)| found.check(what, value, least, most));
        found.0
    }

    /// Young's interval (CACM 17 (1974)): the square root of twice a checkpoint's cost times the time between failures.
    pub fn young_interval(&self) -> f64 {
        (2.0 * self.checkpoint * self.mtbf()).sqrt()
    }

    /// Daly's interval (Future Generation Computer Systems 22 (2006), equation 37).
    pub fn daly_interval(&self) -> f64 {
        let (c, m) = (self.checkpoint, self.mtbf());
        if c >= 2.0 * m {
            return m;
        }
        let half = c / (2.0 * m);
        (2.0 * c * m).sqrt() * (1.0 + half.sqrt() / 3.0 + half / 9.0) - c
    }

    /// Expected number of events of a run: those of failures during its expected length (at most the range of the
    /// clock), and those of checkpoints.
    pub fn expected_events(&self) -> f64 {
        let longest = Time::MAX.seconds();
        // Without failures or without work, the formula divides zero by zero.
        let wall = if self.work > 0.0 && self.mtbf() < 1e6 * longest { self.daly_wall() } else { self.work };
        let wall = if wall.is_nan() { longest } else { wall.min(longest) };
        EVENTS_OF_A_FAILURE * wall / self.mtbf() + EVENTS_OF_A_CHECKPOINT * wall.min(self.work) / self.interval
    }

    /// Daly's expected wall time (equation 20), exact for exponential failures, blocking checkpoints and unlimited
    /// spares: every interval is repeated until no failure occurs in it.
    pub fn daly_wall(&self) -> f64 {
        let m = self.mtbf();
        let recovery = self.detection + self.restart;
        m * math::exp(recovery / m) * math::exp_m1((self.interval + self.checkpoint) / m) * self.work / self.interval
    }
}

/// Events of a failure: failure, restart, repair.
const EVENTS_OF_A_FAILURE: f64 = 3.0;
/// Events of a checkpoint: beginning, end, flush.
const EVENTS_OF_A_CHECKPOINT: f64 = 3.0;

#[derive(Debug, Clone, Copy)]
enum Event {
    Failure,
    /// The current period of work, checkpoint or restart ends.
    Done,
    /// The checkpoint of this amount of work is on storage.
    CheckpointWritten {
        work: Time,
    },
    Repaired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Working,
    Checkpointing,
    Restarting,
    WaitingForRepair,
}

struct FaultSimulation<'a> {
    input: &'a Input,
    failures: Stream,
    repairs: Stream,
    phase: Phase,
    since: Time,
    done: Handle,
    flushing: Handle,
    /// Work that has not been lost so far, and the part of it that is covered by a checkpoint.
    worked: Time,
    safe: Time,
    target: Time,
    spares: u32,
    out: Output,
    finished: bool,
}

impl FaultSimulation<'_> {
    fn enter(&mut self, phase: Phase, queue: &mut EventQueue<Event>) {
        self.phase = phase;
        self.since = queue.now();
        let i = self.input;
        let seconds = match phase {
            Phase::Working => {
                let rest = self.target.since(self.worked);
                let stretch = rest.min(Time::from_seconds(i.interval));
                self.done = queue.after(stretch, Event::Done);
                return;
            }
            Phase::Checkpointing => i.checkpoint,
            Phase::Restarting => i.detection + i.restart,
            Phase::WaitingForRepair => {
                self.done = Handle::NONE;
                return;
            }
        };
        self.done = queue.after(Time::from_seconds(seconds), Event::Done);
    }

    /// Accounts for the current phase, which ends at `now`.
    fn leave(&mut self, now: Time) {
        let span = now.since(self.since);
        match self.phase {
            Phase::Working => self.worked = self.worked.plus(span),
            Phase::Checkpointing => self.out.checkpoints += span.seconds(),
            Phase::Restarting => self.out.restarts += span.seconds(),
            Phase::WaitingForRepair => self.out.waiting_for_repair += span.seconds(),
        }
    }

    fn fail(&mut self, queue: &mut EventQueue<Event>) {
        self.expect_failure(queue);
        self.out.failures += 1;
        self.leave(queue.now());
        queue.cancel(self.done);
        queue.cancel(self.flushing);
        self.out.lost += self.worked.since(self.safe).seconds();
        self.worked = self.safe;
        let repair = Time::from_seconds(self.input.repair.draw(&mut self.repairs));
        queue.after(repair, Event::Repaired);
        if self.phase == Phase::WaitingForRepair || self.spares == 0 {
            // A node may fail while others are being repaired. Work resumes after one repair.
            self.enter(Phase::WaitingForRepair, queue);
        } else {
            self.spares -= 1;
            self.enter(Phase::Restarting, queue);
        }
    }

    fn expect_failure(&mut self, queue: &mut EventQueue<Event>) {
        let gap = self.failures.exponential() * self.input.mtbf();
        queue.after(Time::from_seconds(gap), Event::Failure);
    }
}

impl Model for FaultSimulation<'_> {
    type Event = Event;

    fn handle(&mut self, event: Event, queue: &mut EventQueue<Event>) {
        if self.finished {
            return;
        }
        match event {
            Event::Failure => self.fail(queue),
            Event::Repaired => {
                if self.phase == Phase::WaitingForRepair {
                    self.leave(queue.now());
                    self.enter(Phase::Restarting, queue);
                } else {
                    self.spares += 1;
                }
            }
            Event::CheckpointWritten { work } => self.safe = work,
            Event::Done => {
                let was = self.phase;
                self.leave(queue.now());
                if self.worked >= self.target {
                    self.finished = true;
                    self.out.wall = queue.now().seconds();
                    queue.clear();
                    return;
                }
                match was {
                    Phase::Working => self.enter(Phase::Checkpointing, queue),
                    Phase::Checkpointing => {
                        let work = self.worked;
                        self.flushing =
                            queue.after(Time::from_seconds(self.input.flush), Event::CheckpointWritten { work });
                        self.enter(Phase::Working, queue);
                    }
                    Phase::Restarting | Phase::WaitingForRepair => self.enter(Phase::Working, queue),
                }
            }
        }
    }

    fn share_done(&self) -> f64 {
        self.safe.seconds() / self.target.seconds().max(1e-12)
    }
}

/// Runs the job until its work is complete.
///
/// # Errors
///
/// Returns all invalid parts of the input at once.
pub fn simulate(input: &Input, seed: u64, progress: &Progress) -> Result<Output, Vec<OutOfRange>> {
    let problems = input.problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut queue = EventQueue::with_capacity(16);
    let mut course = FaultSimulation {
        input,
        failures: Stream::new(seed, FAILURES, 0),
        repairs: Stream::new(seed, REPAIRS, 0),
        phase: Phase::Working,
        since: Time::ZERO,
        done: Handle::NONE,
        flushing: Handle::NONE,
        worked: Time::ZERO,
        safe: Time::ZERO,
        target: Time::from_seconds(input.work),
        spares: input.spares,
        out: Output::default(),
        finished: false,
    };
    course.expect_failure(&mut queue);
    course.enter(Phase::Working, &mut queue);
    // Times beyond the range saturate at the last picosecond, so events there are ignored.
    let last = Time::from_ps(Time::MAX.ps() - 1);
    run_within(&mut course, &mut queue, last, MAX_EVENTS, progress);
    progress.set(1.0);
    let mut out = course.out;
    if !course.finished {
        out.unfinished = true;
        out.wall = queue.now().seconds();
    }
    out.work = if course.finished { input.work } else { course.safe.seconds() };
    out.goodput = if out.wall > 0.0 { out.work / out.wall } else { 1.0 };
    Ok(out)
}

/// Goodput at a checkpoint interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// Seconds of work between checkpoints.
    pub interval: f64,
    /// Goodput, with its 95 % confidence interval over the replications.
    pub goodput: Interval,
}

/// Returns the goodput at intervals from a quarter of Young's interval to four times it, all with the same failures,
/// and the best of them. The list is empty if checkpoints cost nothing.
///
/// # Errors
///
/// Returns the same errors as [`simulate`].
pub fn best_interval(
    input: &Input,
    seed: u64,
    replications: u32,
    progress: &Progress,
) -> Result<(Vec<Choice>, Option<Choice>), Vec<OutOfRange>> {
    let problems = input.problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut choices = Vec::new();
    let young = input.young_interval();
    if young > 0.0 && young.is_finite() {
        let (mut done, all) = (0.0, 17.0 * f64::from(replications));
        for quarter in -8..=8 {
            let interval = (young * math::powf(2f64, 0.25 * f64::from(quarter))).max(1e-3);
            let one = Input { interval, ..*input };
            let goodput = |seed| {
                progress.stage(done / all, (done + 1.0) / all);
                done += 1.0;
                [simulate(&one, seed, progress).map_or(0.0, |o| o.goodput)]
            };
            let [goodput] = replicate(seed, replications, 0.95, goodput);
            // A canceled run says nothing about its interval.
            if progress.canceled() {
                break;
            }
            choices.push(Choice { interval, goodput });
        }
    }
    let best = choices.iter().copied().max_by(|a, b| a.goodput.mean.total_cmp(&b.goodput.mean));
    Ok((choices, best))
}

#[cfg(test)]
mod tests;
