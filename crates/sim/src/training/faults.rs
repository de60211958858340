//! Months of training with failures: lost work, restarts, spare nodes, checkpoints; and the interval between checkpoints
//! that leaves most of the time to work, alongside what theory says.

use crate::kernel::replication::replicate;
use crate::kernel::{Distribution, EventQueue, Handle, Interval, Model, Progress, Stream, Time, run_within};
use crate::range::{OutOfRange, Ranges};

/// Purposes of the random streams.
const FAILURES: u32 = 32;
const REPAIRS: u32 = 33;
/// Events of a course at most: seconds of computing, and millions of checkpoints and failures.
const MOST_EVENTS: u64 = 20_000_000;

/// A long run and what befalls it. All times in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Input {
    /// Work to be done: steps times the seconds of one.
    pub work: f64,
    /// Nodes of the job; each may fail.
    pub nodes: u32,
    /// Mean time between failures of one node, exponentially distributed.
    pub node_mtbf: f64,
    /// Work between two checkpoints.
    pub interval: f64,
    /// For which a checkpoint stops the work.
    pub checkpoint: f64,
    /// From its end until it is safe on storage, while work continues (asynchronous checkpoints).
    pub flush: f64,
    /// From a failure until it is noticed.
    pub detection: f64,
    /// From then until work continues: new processes, checkpoint loaded.
    pub restart: f64,
    /// Nodes that stand by.
    pub spares: u32,
    /// Until a failed node can stand by again.
    pub repair: Distribution,
}

/// Where the time went, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Output {
    /// All of it.
    pub wall: f64,
    /// Work that counts.
    pub work: f64,
    /// Work that was lost to failures.
    pub lost: f64,
    /// Stopped for checkpoints.
    pub checkpoints: f64,
    /// Detecting and restarting.
    pub restarts: f64,
    /// Waiting for a node, no spare being left.
    pub starved: f64,
    /// Share of the time that is work that counts.
    pub goodput: f64,
    /// Failures.
    pub failures: u64,
    /// Whether the run was cancelled, or the work not done in the time that can be described, 213 days, or in the events that a
    /// course may take: where nodes fail faster than they are restarted, none of it ever is.
    pub unfinished: bool,
}

impl Input {
    /// Mean time between failures of the whole job, seconds.
    pub fn mtbf(&self) -> f64 {
        self.node_mtbf / f64::from(self.nodes.max(1))
    }

    /// All that makes no sense.
    pub fn problems(&self) -> Vec<OutOfRange> {
        let longest = Time::MAX.seconds();
        let ranges = [
            ("work", self.work, 0.0, longest),
            ("nodes", f64::from(self.nodes), 1.0, 1e9),
            ("mean time between failures of a node", self.node_mtbf, 1e-3, f64::INFINITY),
            ("interval between checkpoints", self.interval, 1e-3, f64::INFINITY),
            ("seconds of a checkpoint", self.checkpoint, 0.0, longest),
            ("seconds of a checkpoint's flush", self.flush, 0.0, longest),
            ("seconds of detection", self.detection, 0.0, longest),
            ("seconds of a restart", self.restart, 0.0, longest),
            ("mean seconds of a repair", self.repair.mean(), 0.0, longest),
        ];
        let mut found = Ranges::default();
        ranges.into_iter().for_each(|(what, value, least, most)| found.check(what, value, least, most));
        found.0
    }

    /// Young's interval (CACM 17 (1974)): the square root of twice a checkpoint's cost times the time between failures.
    pub fn young(&self) -> f64 {
        (2.0 * self.checkpoint * self.mtbf()).sqrt()
    }

    /// Daly's interval (Future Generation Computer Systems 22 (2006), equation 37).
    pub fn daly(&self) -> f64 {
        let (c, m) = (self.checkpoint, self.mtbf());
        if c >= 2.0 * m {
            return m;
        }
        let half = c / (2.0 * m);
        (2.0 * c * m).sqrt() * (1.0 + half.sqrt() / 3.0 + half / 9.0) - c
    }

    /// Events that one course is expected to take: those of its failures, in the time that it is expected to last or the
    /// longest that is simulated, and those of its checkpoints.
    pub fn expected_events(&self) -> f64 {
        let longest = Time::MAX.seconds();
        // Without failures or without work the formula divides zero by zero.
        let wall = if self.work > 0.0 && self.mtbf() < 1e6 * longest { self.daly_wall() } else { self.work };
        let wall = if wall.is_nan() { longest } else { wall.min(longest) };
        EVENTS_OF_A_FAILURE * wall / self.mtbf() + EVENTS_OF_A_CHECKPOINT * wall.min(self.work) / self.interval
    }

    /// Daly's expected wall time, exact for exponential failures, blocking checkpoints and spares without end (equation
    /// 20): every interval is repeated until no failure falls into it.
    pub fn daly_wall(&self) -> f64 {
        let m = self.mtbf();
        let recovery = self.detection + self.restart;
        m * (recovery / m).exp() * ((self.interval + self.checkpoint) / m).exp_m1() * self.work / self.interval
    }
}

/// Events that a failure brings about: itself, the restart, the repair.
const EVENTS_OF_A_FAILURE: f64 = 3.0;
/// Events that a checkpoint takes: its begin, its end, its flush.
const EVENTS_OF_A_CHECKPOINT: f64 = 3.0;

#[derive(Debug, Clone, Copy)]
enum Event {
    Failure,
    /// The stretch of work, checkpoint or restart under way ends.
    Done,
    /// The checkpoint that holds so much work is safe.
    Safe {
        work: Time,
    },
    Repaired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Working,
    Checkpointing,
    Restarting,
    Starved,
}

struct Course<'a> {
    input: &'a Input,
    failures: Stream,
    repairs: Stream,
    phase: Phase,
    since: Time,
    done: Handle,
    flushing: Handle,
    /// Work since the run began that counts so far, and how much of it a checkpoint holds.
    worked: Time,
    safe: Time,
    target: Time,
    spares: u32,
    out: Output,
    finished: bool,
}

impl Course<'_> {
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
            Phase::Starved => {
                self.done = Handle::NONE;
                return;
            }
        };
        self.done = queue.after(Time::from_seconds(seconds), Event::Done);
    }

    /// Accounts for the phase under way, which ends now.
    fn leave(&mut self, now: Time) {
        let span = now.since(self.since);
        match self.phase {
            Phase::Working => self.worked = self.worked.plus(span),
            Phase::Checkpointing => self.out.checkpoints += span.seconds(),
            Phase::Restarting => self.out.restarts += span.seconds(),
            Phase::Starved => self.out.starved += span.seconds(),
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
        if self.phase == Phase::Starved || self.spares == 0 {
            // A node that fails while others are awaited is awaited too; one repaired node lets work continue.
            self.enter(Phase::Starved, queue);
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

impl Model for Course<'_> {
    type Event = Event;

    fn handle(&mut self, event: Event, queue: &mut EventQueue<Event>) {
        if self.finished {
            return;
        }
        match event {
            Event::Failure => self.fail(queue),
            Event::Repaired => {
                if self.phase == Phase::Starved {
                    self.leave(queue.now());
                    self.enter(Phase::Restarting, queue);
                } else {
                    self.spares += 1;
                }
            }
            Event::Safe { work } => self.safe = work,
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
                        self.flushing = queue.after(Time::from_seconds(self.input.flush), Event::Safe { work });
                        self.enter(Phase::Working, queue);
                    }
                    Phase::Restarting | Phase::Starved => self.enter(Phase::Working, queue),
                }
            }
        }
    }

    fn share_done(&self) -> f64 {
        self.safe.seconds() / self.target.seconds().max(1e-12)
    }
}

/// Runs the work to its end.
///
/// # Errors
///
/// Everything in the input that makes no sense, at once.
pub fn simulate(input: &Input, seed: u64, progress: &Progress) -> Result<Output, Vec<OutOfRange>> {
    let problems = input.problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut queue = EventQueue::with_capacity(16);
    let mut course = Course {
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
    // The last picosecond is where times that cannot be described are put.
    let last = Time::from_ps(Time::MAX.ps() - 1);
    run_within(&mut course, &mut queue, last, MOST_EVENTS, progress);
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

/// What an interval between checkpoints leaves of the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// Seconds of work between checkpoints.
    pub interval: f64,
    /// Goodput, with its 95 % interval over the replications.
    pub goodput: Interval,
}

/// Goodput at intervals around Young's, a quarter of it to four times it, all under the same failures; and which is best.
/// Without a cost of checkpoints there is nothing to weigh, and the list is empty.
///
/// # Errors
///
/// As [`simulate`].
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
    let young = input.young();
    if young > 0.0 && young.is_finite() {
        let (mut done, all) = (0.0, 17.0 * f64::from(replications));
        for quarter in -8..=8 {
            let interval = (young * 2f64.powf(0.25 * f64::from(quarter))).max(1e-3);
            let one = Input { interval, ..*input };
            let goodput = |seed| {
                progress.stage(done / all, (done + 1.0) / all);
                done += 1.0;
                [simulate(&one, seed, progress).map_or(0.0, |o| o.goodput)]
            };
            let [goodput] = replicate(seed, replications, 0.95, goodput);
            // What was ended early does not apply to its interval.
            if progress.cancelled() {
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
