//! Several jobs on one cluster: who waits how long under which scheduler, and what stays idle.
//!
//! A job has all its accelerators at once, and but for [`Scheduler::Gang`] from its beginning to its end. Which ones they
//! are plays no part.

mod gang;

use super::kernel::{EventQueue, Model, Progress, Quantiles, Time, TimeWeighted, run};
use super::range::{OutOfRange, Ranges};
use std::collections::VecDeque;

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Accelerators of the cluster.
    pub accelerators: u32,
    /// The jobs.
    pub jobs: Vec<Job>,
    /// Who goes next.
    pub scheduler: Scheduler,
}

/// One job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Job {
    /// When it is submitted, seconds.
    pub submitted: f64,
    /// Accelerators that it needs, all at once.
    pub accelerators: u32,
    /// How long it runs, seconds.
    pub seconds: f64,
    /// How long its owner says it runs: it is ended then at the latest.
    pub limit: f64,
}

/// Who goes next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scheduler {
    /// First come, first served: nobody passes the one in front.
    Fifo,
    /// First come, first served, but whoever does not delay the one in front may pass it (EASY; Lifka, JSSPP 1995;
    /// Slurm's `sched/backfill` with one reservation).
    Backfill,
    /// Jobs take turns, all accelerators of a job at once.
    Gang {
        /// Seconds of a turn.
        slice: f64,
    },
}

/// One job's course, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct JobRecord {
    /// When it began.
    pub begin: f64,
    /// When it ended.
    pub end: f64,
    /// From submission to beginning.
    pub wait: f64,
    /// From submission to end over its own time.
    pub slowdown: f64,
    /// Whether its limit ended it.
    pub cut: bool,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Output {
    /// The jobs, in the input's order; `None` for one that did not end.
    pub jobs: Vec<Option<JobRecord>>,
    /// Seconds before beginning.
    pub wait: Quantiles,
    /// Time in the system over own time.
    pub slowdown: Quantiles,
    /// Until the last job ended.
    pub seconds: f64,
    /// Mean share of accelerators that work.
    pub utilisation: f64,
    /// Mean number of jobs that wait.
    pub waiting: f64,
}

impl Input {
    /// All that makes no sense.
    pub fn problems(&self) -> Vec<OutOfRange> {
        let mut r = Ranges::default();
        r.check("accelerators", f64::from(self.accelerators), 1.0, f64::from(u32::MAX));
        r.check("jobs", self.jobs.len() as f64, 0.0, 1e8);
        if let Scheduler::Gang { slice } = self.scheduler {
            r.check("seconds of a turn", slice, 1e-3, 1e7);
        }
        for job in &self.jobs {
            r.check("submission of a job", job.submitted, 0.0, 1e7);
            r.check("accelerators of a job", f64::from(job.accelerators), 1.0, f64::from(self.accelerators));
            r.check("seconds of a job", job.seconds, 0.0, 1e7);
            r.check("limit of a job", job.limit, 0.0, f64::INFINITY);
        }
        r.0
    }
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Submitted(u32),
    Ended(u32),
    /// All that came and went in this instant is known.
    Schedule,
}

/// A job that runs.
#[derive(Debug, Clone, Copy)]
struct Running {
    job: u32,
    accelerators: u32,
    /// When it ends by its limit.
    promised: Time,
}

struct Cluster<'a> {
    input: &'a Input,
    free: u32,
    queue: VecDeque<u32>,
    running: Vec<Running>,
    begun: Vec<Time>,
    out: Output,
    left: usize,
    expected: bool,
    working: TimeWeighted,
    waiting: TimeWeighted,
}

impl Cluster<'_> {
    fn job(&self, number: u32) -> Job {
        let none = Job { submitted: 0.0, accelerators: 1, seconds: 0.0, limit: 0.0 };
        self.input.jobs.get(number as usize).copied().unwrap_or(none)
    }

    fn begin(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let (job, now) = (self.job(number), queue.now());
        if let Some(begun) = self.begun.get_mut(number as usize) {
            *begun = now;
        }
        self.waiting.change(now, -1.0);
        self.free -= job.accelerators;
        self.working.change(now, f64::from(job.accelerators));
        let promised = now.plus(Time::from_seconds(job.limit));
        self.running.push(Running { job: number, accelerators: job.accelerators, promised });
        queue.after(Time::from_seconds(job.seconds.min(job.limit)), Event::Ended(number));
    }

    /// Begins whom the scheduler lets begin.
    fn schedule(&mut self, queue: &mut EventQueue<Event>) {
        while let Some(&first) = self.queue.front() {
            if self.job(first).accelerators > self.free {
                break;
            }
            self.queue.pop_front();
            self.begin(first, queue);
        }
        if self.input.scheduler == Scheduler::Backfill {
            self.backfill(queue);
        }
    }

    /// Lets pass whoever ends before the first can begin, or needs no accelerator that it will need.
    fn backfill(&mut self, queue: &mut EventQueue<Event>) {
        let Some(&first) = self.queue.front() else { return };
        let needed = self.job(first).accelerators;
        self.running.sort_by_key(|r| r.promised);
        let (mut free, mut reserved) = (self.free, Time::MAX);
        for r in &self.running {
            free += r.accelerators;
            if free >= needed {
                reserved = r.promised;
                break;
            }
        }
        // What the first leaves over at its beginning.
        let mut spare = free.saturating_sub(needed);
        let mut place = 1;
        while let Some(&number) = self.queue.get(place) {
            let job = self.job(number);
            let ends = queue.now().plus(Time::from_seconds(job.limit));
            let early = ends <= reserved;
            if job.accelerators <= self.free && (early || job.accelerators <= spare) {
                if !early {
                    spare -= job.accelerators;
                }
                self.queue.remove(place);
                self.begin(number, queue);
            } else {
                place += 1;
            }
        }
    }

    fn finish(&mut self, number: u32, now: Time) {
        let job = self.job(number);
        let begin = self.begun.get(number as usize).map_or(0.0, |t| t.seconds());
        let (end, own) = (now.seconds(), job.seconds.min(job.limit));
        let record = JobRecord {
            begin,
            end,
            wait: begin - job.submitted,
            slowdown: if own > 0.0 { (end - job.submitted) / own } else { 1.0 },
            cut: job.limit < job.seconds,
        };
        if let Some(place) = self.out.jobs.get_mut(number as usize) {
            *place = Some(record);
        }
        self.left -= 1;
    }
}

impl Model for Cluster<'_> {
    type Event = Event;

    fn handle(&mut self, event: Event, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        match event {
            Event::Submitted(number) => {
                self.waiting.change(now, 1.0);
                self.queue.push_back(number);
            }
            Event::Ended(number) => {
                let accelerators = self.job(number).accelerators;
                self.running.retain(|r| r.job != number);
                self.free += accelerators;
                self.working.change(now, -f64::from(accelerators));
                self.finish(number, now);
            }
            Event::Schedule => {
                self.expected = false;
                self.schedule(queue);
                return;
            }
        }
        // What comes and goes together is answered together.
        if !self.expected {
            self.expected = true;
            queue.at_end_of_instant(Event::Schedule);
        }
    }

    fn share_done(&self) -> f64 {
        1.0 - self.left as f64 / self.input.jobs.len().max(1) as f64
    }
}

/// Runs all jobs.
///
/// # Errors
///
/// Everything in the input that makes no sense, at once.
pub fn simulate(input: &Input, progress: &Progress) -> Result<Output, Vec<OutOfRange>> {
    let problems = input.problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    let (mut out, working, waiting, now) = match input.scheduler {
        Scheduler::Gang { slice } => gang::simulate(input, slice, progress),
        Scheduler::Fifo | Scheduler::Backfill => in_turn(input, progress),
    };
    progress.set(1.0);
    let figures = |figure: fn(&JobRecord) -> f64| out.jobs.iter().flatten().map(figure).collect::<Vec<f64>>();
    let (mut waits, mut slowdowns) = (figures(|r| r.wait), figures(|r| r.slowdown));
    out.wait = Quantiles::of(&mut waits);
    out.slowdown = Quantiles::of(&mut slowdowns);
    out.seconds = now.seconds();
    out.utilisation = working / f64::from(input.accelerators);
    out.waiting = waiting;
    Ok(out)
}

/// Runs jobs that keep what they hold: their records, the mean numbers that work and wait, and the end.
fn in_turn(input: &Input, progress: &Progress) -> (Output, f64, f64, Time) {
    let count = input.jobs.len();
    let mut queue = EventQueue::with_capacity(count + 1);
    for (number, job) in (0..).zip(&input.jobs) {
        queue.at(Time::from_seconds(job.submitted), Event::Submitted(number));
    }
    let mut cluster = Cluster {
        input,
        free: input.accelerators,
        queue: VecDeque::new(),
        running: Vec::new(),
        begun: vec![Time::ZERO; count],
        out: Output { jobs: vec![None; count], ..Output::default() },
        left: count,
        expected: false,
        working: TimeWeighted::default(),
        waiting: TimeWeighted::default(),
    };
    run(&mut cluster, &mut queue, Time::MAX, progress);
    let now = queue.now();
    (cluster.out, cluster.working.mean(now), cluster.waiting.mean(now), now)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;
    use crate::engine::event::kernel::{Distribution, Stream};
    use crate::engine::event::queueing;

    fn job(submitted: f64, accelerators: u32, seconds: f64) -> Job {
        Job { submitted, accelerators, seconds, limit: 2.0 * seconds }
    }

    fn run_of(scheduler: Scheduler, accelerators: u32, jobs: Vec<Job>) -> Output {
        simulate(&Input { accelerators, jobs, scheduler }, &Progress::new()).unwrap()
    }

    fn mixed() -> Vec<Job> {
        let mut stream = Stream::new(3, 40, 0);
        let mut at = 0.0;
        let one = |_| {
            at += 40.0 * stream.exponential();
            let size = 1 << stream.below(7);
            job(at, size, Distribution::LogNormal { mean: 600.0, cv: 1.5 }.draw(&mut stream))
        };
        (0..2000).map(one).collect()
    }

    #[test]
    fn jobs_of_one_accelerator_are_customers_of_as_many_servers() {
        let customers = 20_000;
        let between = Distribution::Exponential { mean: 1.0 };
        let service = Distribution::Exponential { mean: 3.4 };
        let station = queueing::Input { between, service, servers: 4, customers, warm_up: 0 };
        let expected = queueing::simulate(&station, 5, &Progress::new());
        // The same draws: arrivals and services come from streams of their own.
        let (mut gaps, mut services) = (Stream::new(5, 0, 0), Stream::new(5, 1, 0));
        let mut at = 0.0;
        let one = |k| {
            at += if k > 0 { between.draw(&mut gaps) } else { 0.0 };
            job(at, 1, service.draw(&mut services))
        };
        let jobs: Vec<Job> = (0..customers).map(one).collect();
        for scheduler in [Scheduler::Fifo, Scheduler::Backfill] {
            let found = run_of(scheduler, 4, jobs.clone());
            assert!((found.wait.mean / expected.wait.mean() - 1.0).abs() < 1e-6, "{scheduler:?}");
        }
    }

    #[test]
    fn small_jobs_pass_without_delaying_the_first() {
        // Four of eight run for 100 s; the first in line needs all eight; a short and a long small job stand behind it.
        let jobs = vec![job(0.0, 4, 100.0), job(1.0, 8, 50.0), job(2.0, 2, 40.0), job(3.0, 2, 150.0)];
        let fifo = run_of(Scheduler::Fifo, 8, jobs.clone());
        let filled = run_of(Scheduler::Backfill, 8, jobs);
        let begins = |o: &Output| o.jobs.iter().map(|r| r.unwrap().begin).collect::<Vec<f64>>();
        assert_eq!(begins(&fifo), [0.0, 100.0, 150.0, 150.0]);
        assert_eq!(begins(&filled), [0.0, 100.0, 2.0, 150.0]);
    }

    #[test]
    fn backfilling_fills_and_nobody_gets_more_than_there_is() {
        let (fifo, filled) = (run_of(Scheduler::Fifo, 64, mixed()), run_of(Scheduler::Backfill, 64, mixed()));
        assert!(filled.wait.mean < 0.8 * fifo.wait.mean && filled.utilisation >= fifo.utilisation);
        for o in [fifo, filled] {
            assert!(o.jobs.iter().all(Option::is_some) && o.utilisation <= 1.0);
            let mut edges: Vec<(f64, i64)> = Vec::new();
            for (record, job) in o.jobs.iter().flatten().zip(mixed()) {
                assert!((record.end - record.begin - job.seconds).abs() < 1e-6);
                edges.extend([(record.begin, i64::from(job.accelerators)), (record.end, -i64::from(job.accelerators))]);
            }
            edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let mut held = 0;
            assert!(edges.iter().all(|&(_, change)| {
                held += change;
                (0..=64).contains(&held)
            }));
        }
    }

    #[test]
    fn limits_end_jobs_and_nonsense_is_told() {
        let o = run_of(Scheduler::Fifo, 1, vec![Job { limit: 5.0, ..job(0.0, 1, 10.0) }]);
        assert_eq!(o.jobs[0].map(|r| (r.end, r.cut)), Some((5.0, true)));
        let wide = Input { accelerators: 4, jobs: vec![job(f64::NAN, 5, -1.0)], scheduler: Scheduler::Fifo };
        assert_eq!(wide.problems().len(), 4);
    }
}
