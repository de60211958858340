//! First come, first served, with or without backfilling: jobs keep their accelerators until they end.

use super::contention::PlacedJob;
use super::hosts::Hosts;
use super::{Input, Job, JobRecord, Output, Scheduler, Traffic};
use crate::kernel::{EventQueue, Handle, Model, Progress, Time, TimeWeighted, run};
use std::collections::VecDeque;

/// Remaining work up to which a job counts as complete, s: rounding of the clock.
const COMPLETION_TOLERANCE: f64 = 1e-6;

#[derive(Debug, Clone, Copy)]
enum Event {
    Submitted(u32),
    Ended(u32),
    /// All submissions and ends of this instant are known.
    Schedule,
}

/// A job that runs.
#[derive(Debug, Clone)]
struct Running {
    job: u32,
    accelerators: u32,
    /// When the scheduler expects it to end, and when its limit stops it.
    expected_end: Time,
    limit: Time,
    /// Accelerators that it runs on.
    places: Vec<(u32, u32)>,
    /// Remaining work at `since` in seconds without contention, and the factor by which contention slows it.
    left: f64,
    since: Time,
    slowdown: f64,
    ends: Handle,
}

impl Running {
    /// Updates the remaining work.
    fn account(&mut self, now: Time) {
        self.left = (self.left - now.since(self.since).seconds() / self.slowdown).max(0.0);
        self.since = now;
    }
}

struct Cluster<'a> {
    input: &'a Input,
    free: u32,
    hosts: Option<Hosts>,
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
        let none = Job { submitted: 0.0, accelerators: 1, seconds: 0.0, limit: 0.0, traffic: Traffic::default() };
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
        let after = |seconds: f64| if seconds.is_finite() { now.plus(Time::from_seconds(seconds)) } else { Time::MAX };
        let limit = after(job.limit);
        self.running.push(Running {
            job: number,
            accelerators: job.accelerators,
            expected_end: after(job.expected_run_time()),
            limit,
            places: self.hosts.as_mut().map(|hosts| hosts.allocate(job.accelerators)).unwrap_or_default(),
            left: job.seconds,
            since: now,
            slowdown: 1.0,
            ends: queue.at(after(job.seconds).min(limit), Event::Ended(number)),
        });
    }

    /// Starts the jobs that the scheduler allows to start.
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
        self.contend(queue);
    }

    /// Starts jobs that end before the first in the queue can start, or that need no accelerator that it will need.
    fn backfill(&mut self, queue: &mut EventQueue<Event>) {
        let Some(&first) = self.queue.front() else { return };
        let needed = self.job(first).accelerators;
        self.running.sort_by_key(|r| r.expected_end);
        let (mut free, mut reserved) = (self.free, Time::MAX);
        for r in &self.running {
            free += r.accelerators;
            if free >= needed {
                reserved = r.expected_end;
                break;
            }
        }
        // Accelerators that remain when the first job starts.
        let mut spare = free.saturating_sub(needed);
        let mut place = 1;
        while let Some(&number) = self.queue.get(place) {
            let job = self.job(number);
            let ends = queue.now().plus(Time::from_seconds(job.expected_run_time()));
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

    /// Updates the slowdowns of the running jobs, and when they end.
    fn contend(&mut self, queue: &mut EventQueue<Event>) {
        let Some(fabric) = &self.input.fabric else { return };
        let now = queue.now();
        let traffic = |r: &Running| self.input.jobs.get(r.job as usize).map(|job| job.traffic).unwrap_or_default();
        let placed: Vec<PlacedJob<'_>> =
            self.running.iter().map(|r| PlacedJob { places: &r.places, traffic: traffic(r) }).collect();
        let slowdowns = fabric.slowdowns(&placed, 0);
        for (r, slowdown) in self.running.iter_mut().zip(slowdowns) {
            if slowdown == r.slowdown {
                continue;
            }
            r.account(now);
            r.slowdown = slowdown;
            queue.cancel(r.ends);
            let through = now.plus(Time::from_seconds(r.left * slowdown));
            r.ends = queue.at(through.min(r.limit), Event::Ended(r.job));
        }
    }

    fn finish(&mut self, number: u32, now: Time) {
        let Some(at) = self.running.iter().position(|r| r.job == number) else { return };
        let mut ended = self.running.swap_remove(at);
        ended.account(now);
        self.free += ended.accelerators;
        self.working.change(now, -f64::from(ended.accelerators));
        if let Some(hosts) = &mut self.hosts {
            hosts.release(&ended.places);
        }
        let job = self.job(number);
        let begin = self.begun.get(number as usize).map_or(0.0, |t| t.seconds());
        if let Some(place) = self.out.jobs.get_mut(number as usize) {
            *place = Some(record(&job, begin, now.seconds(), now.seconds() - begin, ended.left));
        }
        self.left -= 1;
    }
}

/// Returns the record of a job that has run for `ran` seconds and has `left` seconds of its work left.
pub(super) fn record(job: &Job, begin: f64, end: f64, ran: f64, left: f64) -> JobRecord {
    let own = job.seconds.min(job.limit);
    let done = job.seconds - left;
    JobRecord {
        begin,
        end,
        wait: begin - job.submitted,
        slowdown: if own > 0.0 { (end - job.submitted) / own } else { 1.0 },
        contention: if done > COMPLETION_TOLERANCE { (ran / done).max(1.0) } else { 1.0 },
        stopped_at_limit: left > COMPLETION_TOLERANCE,
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
            Event::Ended(number) => self.finish(number, now),
            Event::Schedule => {
                self.expected = false;
                self.schedule(queue);
                return;
            }
        }
        // Events of the same instant are handled together.
        if !self.expected {
            self.expected = true;
            queue.at_end_of_instant(Event::Schedule);
        }
    }

    fn share_done(&self) -> f64 {
        1.0 - self.left as f64 / self.input.jobs.len().max(1) as f64
    }
}

/// Runs all jobs. Returns their records, the mean numbers of accelerators in use and of waiting jobs, and the end time.
pub(super) fn simulate(input: &Input, progress: &Progress) -> (Output, f64, f64, Time) {
    let count = input.jobs.len();
    let mut queue = EventQueue::with_capacity(count + 1);
    for (number, job) in (0..).zip(&input.jobs) {
        queue.at(Time::from_seconds(job.submitted), Event::Submitted(number));
    }
    let mut cluster = Cluster {
        input,
        free: input.accelerators,
        hosts: input.fabric.as_ref().map(|fabric| Hosts::new(input.accelerators, fabric)),
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
