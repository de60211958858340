//! Gang scheduling: jobs take turns, all accelerators of a job at once (Ousterhout, *Scheduling techniques for
//! concurrent systems*, ICDCS 1982; Slurm's `gang/timeslice`). A row is a set of jobs that fit concurrently; rows run
//! in turn, each for a time slice. A job joins the first row in which it fits, or starts a new one. Switching takes no
//! time. Time limits apply to the run time of a job without contention.

use super::contention::PlacedJob;
use super::hosts::Hosts;
use super::{Input, Output, turns};
use crate::kernel::{EventQueue, Handle, Model, Progress, Time, TimeWeighted, run};

/// Remaining work that is attributed to rounding, in picoseconds.
const ROUNDING: u64 = 1000;

#[derive(Debug, Clone, Copy)]
enum Event {
    Submitted(u32),
    /// The time slice of the running row ends.
    SliceEnd,
    /// The first job of the running row completes.
    JobCompleted,
}

/// Jobs that run at the same time.
#[derive(Debug, Clone, Default)]
struct Row {
    jobs: Vec<u32>,
    used: u32,
    hosts: Option<Hosts>,
}

struct Gang<'a> {
    input: &'a Input,
    slice: Time,
    rows: Vec<Row>,
    /// Index of the running row, and the time until which it is accounted for.
    turn: usize,
    since: Time,
    /// Remaining work of every job, and when it first ran.
    rest: Vec<Time>,
    begun: Vec<Option<Time>>,
    /// Accelerators of every job in its row, its slowdown by the other jobs of the row, and its run time so far.
    places: Vec<Vec<(u32, u32)>>,
    slowdown: Vec<f64>,
    ran: Vec<Time>,
    turn_ends: Handle,
    through: Handle,
    out: Output,
    left: usize,
    working: TimeWeighted,
    waiting: TimeWeighted,
}

impl Gang<'_> {
    /// Accounts for the work of the running row's jobs until now.
    fn account(&mut self, now: Time) {
        let span = now.since(self.since);
        self.since = now;
        if let Some(row) = self.rows.get(self.turn) {
            for &job in &row.jobs {
                let slowdown = self.slowdown.get(job as usize).copied().unwrap_or(1.0);
                let worked = if slowdown > 1.0 { Time::from_seconds(span.seconds() / slowdown) } else { span };
                if let (Some(rest), Some(ran)) = (self.rest.get_mut(job as usize), self.ran.get_mut(job as usize)) {
                    *rest = rest.since(worked);
                    // The remainder is a rounding error of the clock.
                    if rest.ps() <= ROUNDING {
                        *rest = Time::ZERO;
                    }
                    *ran = ran.plus(span);
                }
            }
        }
    }

    fn submit(&mut self, number: u32) {
        let wanted = self.input.jobs.get(number as usize).map_or(1, |job| job.accelerators);
        let room = self.rows.iter().position(|row| row.used + wanted <= self.input.accelerators);
        let at = room.unwrap_or_else(|| {
            let hosts = self.input.fabric.as_ref().map(|fabric| Hosts::new(self.input.accelerators, fabric));
            self.rows.push(Row { hosts, ..Row::default() });
            self.rows.len() - 1
        });
        if let Some(row) = self.rows.get_mut(at) {
            row.jobs.push(number);
            row.used += wanted;
            if let (Some(hosts), Some(places)) = (&mut row.hosts, self.places.get_mut(number as usize)) {
                *places = hosts.allocate(wanted);
            }
        }
        self.contend(at);
    }

    /// Computes the slowdowns of the jobs of a row when they run concurrently.
    fn contend(&mut self, row: usize) {
        let (Some(fabric), Some(row)) = (&self.input.fabric, self.rows.get(row)) else { return };
        let placed = |&job: &u32| {
            let traffic = self.input.jobs.get(job as usize).map(|job| job.traffic).unwrap_or_default();
            PlacedJob { places: self.places.get(job as usize).map_or(&[], Vec::as_slice), traffic }
        };
        let placed: Vec<PlacedJob<'_>> = row.jobs.iter().map(placed).collect();
        for (&job, found) in row.jobs.iter().zip(fabric.slowdowns(&placed, 0)) {
            if let Some(slowdown) = self.slowdown.get_mut(job as usize) {
                *slowdown = found;
            }
        }
    }

    /// Removes finished jobs and empty rows.
    fn finish(&mut self, now: Time) {
        let Some(row) = self.rows.get_mut(self.turn) else { return };
        let rest = &self.rest;
        let through = |job: &u32| rest.get(*job as usize).is_none_or(|rest| *rest == Time::ZERO);
        let done: Vec<u32> = row.jobs.iter().copied().filter(|job| through(job)).collect();
        row.jobs.retain(|job| !through(job));
        for number in done {
            let Some(job) = self.input.jobs.get(number as usize) else { continue };
            row.used -= job.accelerators;
            if let (Some(hosts), Some(places)) = (&mut row.hosts, self.places.get(number as usize)) {
                hosts.release(places);
            }
            let begin = self.begun.get(number as usize).copied().flatten().unwrap_or(now).seconds();
            let ran = self.ran.get(number as usize).copied().unwrap_or(Time::ZERO).seconds();
            let cut = (job.seconds - job.limit).max(0.0);
            if let Some(place) = self.out.jobs.get_mut(number as usize) {
                *place = Some(turns::record(job, begin, now.seconds(), ran, cut));
            }
            self.left -= 1;
        }
        if row.jobs.is_empty() {
            self.rows.remove(self.turn);
            // The next row has moved to this index.
            self.begin_turn();
        } else {
            self.contend(self.turn);
        }
    }

    fn begin_turn(&mut self) {
        if self.turn >= self.rows.len() {
            self.turn = 0;
        }
        self.turn_ends = Handle::NONE;
    }

    /// Updates the levels and schedules the next event.
    fn schedule_next_event(&mut self, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        queue.cancel(self.through);
        self.through = Handle::NONE;
        let row = self.rows.get(self.turn).cloned().unwrap_or_default();
        let running = row.jobs.len() as f64;
        self.working.set(now, f64::from(row.used));
        self.waiting.set(now, self.rows.iter().map(|row| row.jobs.len() as f64).sum::<f64>() - running);
        for &job in &row.jobs {
            if let Some(begun) = self.begun.get_mut(job as usize) {
                begun.get_or_insert(now);
            }
        }
        let takes = |&job: &u32| {
            let (rest, slowdown) = (self.rest.get(job as usize)?, self.slowdown.get(job as usize)?);
            Some(if *slowdown > 1.0 { Time::from_seconds(rest.seconds() * slowdown) } else { *rest })
        };
        if let Some(rest) = row.jobs.iter().filter_map(takes).min() {
            self.through = queue.after(rest, Event::JobCompleted);
        }
        if self.rows.len() > 1 && self.turn_ends == Handle::NONE {
            self.turn_ends = queue.after(self.slice, Event::SliceEnd);
        }
    }
}

impl Model for Gang<'_> {
    type Event = Event;

    fn handle(&mut self, event: Event, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        self.account(now);
        match event {
            Event::Submitted(number) => self.submit(number),
            Event::SliceEnd => {
                self.turn_ends = Handle::NONE;
                self.turn += 1;
                self.begin_turn();
            }
            Event::JobCompleted => {
                // The end of a time slice that has ended early.
                let ends = self.turn_ends;
                self.finish(now);
                if self.turn_ends != ends {
                    queue.cancel(ends);
                }
            }
        }
        self.schedule_next_event(queue);
    }

    fn share_done(&self) -> f64 {
        1.0 - self.left as f64 / self.input.jobs.len().max(1) as f64
    }
}

/// Runs all jobs in turns of `slice` seconds.
pub(super) fn simulate(input: &Input, slice: f64, progress: &Progress) -> (Output, f64, f64, Time) {
    let count = input.jobs.len();
    let mut queue = EventQueue::with_capacity(count + 2);
    for (number, job) in (0..).zip(&input.jobs) {
        queue.at(Time::from_seconds(job.submitted), Event::Submitted(number));
    }
    let mut gang = Gang {
        input,
        slice: Time::from_seconds(slice),
        rows: Vec::new(),
        turn: 0,
        since: Time::ZERO,
        rest: input.jobs.iter().map(|job| Time::from_seconds(job.seconds.min(job.limit))).collect(),
        begun: vec![None; count],
        places: vec![Vec::new(); count],
        slowdown: vec![1.0; count],
        ran: vec![Time::ZERO; count],
        turn_ends: Handle::NONE,
        through: Handle::NONE,
        out: Output { jobs: vec![None; count], ..Output::default() },
        left: count,
        working: TimeWeighted::default(),
        waiting: TimeWeighted::default(),
    };
    run(&mut gang, &mut queue, Time::MAX, progress);
    let now = queue.now();
    (gang.out, gang.working.mean(now), gang.waiting.mean(now), now)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::super::{Job, Scheduler, Traffic, simulate};
    use super::*;

    fn job(submitted: f64, accelerators: u32, seconds: f64) -> Job {
        Job { submitted, accelerators, seconds, limit: f64::INFINITY, traffic: Traffic::default() }
    }

    fn run_of(slice: f64, accelerators: u32, jobs: Vec<Job>) -> Output {
        simulate(&Input { accelerators, jobs, scheduler: Scheduler::Gang { slice }, fabric: None }, &Progress::new())
            .unwrap()
    }

    #[test]
    fn gang_jobs_exceeding_capacity_alternate_time_slices() {
        let out = run_of(10.0, 8, vec![job(0.0, 8, 100.0), job(0.0, 8, 40.0)]);
        // Time slices of ten seconds: the second job has completed its forty seconds after four slices of each.
        let (long, short) = (out.jobs[0].unwrap(), out.jobs[1].unwrap());
        assert_eq!((short.begin, short.end, long.end), (10.0, 80.0, 140.0));
        assert!((out.utilization - 1.0).abs() < 1e-9);
    }

    #[test]
    fn gang_jobs_within_capacity_run_without_delay() {
        let out = run_of(10.0, 8, vec![job(0.0, 4, 100.0), job(5.0, 4, 40.0)]);
        assert_eq!((out.jobs[0].unwrap().end, out.jobs[1].unwrap().end), (100.0, 45.0));
    }

    #[test]
    fn short_gang_slices_approach_processor_sharing() {
        let jobs: Vec<Job> = (1..=6).map(|k| job(0.0, 8, 100.0 * f64::from(k))).collect();
        let out = run_of(0.01, 8, jobs.clone());
        // Processor sharing: the k-th shortest of the jobs ends after its own work, that of the shorter jobs, and what
        // the longer ones have received meanwhile.
        for (k, record) in (1..=6).zip(&out.jobs) {
            let shared: f64 = (1..=k).map(|i| 100.0 * f64::from(i)).sum::<f64>() + 100.0 * f64::from(k * (6 - k));
            assert!((record.unwrap().end / shared - 1.0).abs() < 1e-3, "{k}");
        }
        assert!((out.seconds - 2100.0).abs() < 1e-6);
        // A limit stops a job before its work is complete.
        let limited = run_of(1.0, 8, vec![Job { limit: 5.0, ..job(0.0, 8, 10.0) }]);
        assert_eq!(limited.jobs[0].map(|r| (r.end, r.stopped_at_limit)), Some((5.0, true)));
    }
}
