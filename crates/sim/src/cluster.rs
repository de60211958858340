//! Several jobs on one cluster: wait of each job under each scheduler, idle accelerators, and contention between jobs.
//!
//! A job gets all its accelerators at once and, except under [`Scheduler::Gang`], keeps them until it ends. With a
//! [`Fabric`], their location matters: jobs whose collectives use the same uplinks slow each other down (`contention`)
//! while they run concurrently.

mod contention;
mod fabric;
mod gang;
mod hosts;
mod turns;

use super::kernel::{Progress, Quantiles};
use super::range::{OutOfRange, Ranges};
pub use contention::Traffic;
pub use fabric::{Fabric, Placement};

/// Input of [`simulate`].
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Number of accelerators of the cluster.
    pub accelerators: u32,
    /// The jobs.
    pub jobs: Vec<Job>,
    /// How jobs are scheduled.
    pub scheduler: Scheduler,
    /// Shared network; `None` if jobs do not contend.
    pub fabric: Option<Fabric>,
}

/// One job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Job {
    /// Time of submission, s.
    pub submitted: f64,
    /// Number of accelerators that it needs, all at once.
    pub accelerators: u32,
    /// Run time without contention, s.
    pub seconds: f64,
    /// Time limit after which it is stopped, s. Infinite by default: the scheduler then assumes its run time without
    /// contention.
    pub limit: f64,
    /// Traffic of the job.
    pub traffic: Traffic,
}

impl Job {
    /// Run time that the scheduler assumes, s.
    fn expected_run_time(&self) -> f64 {
        if self.limit.is_finite() { self.limit } else { self.seconds }
    }
}

/// How jobs are scheduled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scheduler {
    /// First come, first served: no job overtakes another.
    Fifo,
    /// First come, first served, but a job may overtake the first in the queue if it does not delay it (EASY; Lifka,
    /// JSSPP 1995; Slurm's `sched/backfill` with one reservation).
    Backfill,
    /// Jobs take turns, all accelerators of a job at once.
    Gang {
        /// Length of a time slice, s.
        slice: f64,
    },
}

/// Times of one job, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct JobRecord {
    /// Start time.
    pub begin: f64,
    /// End time.
    pub end: f64,
    /// Time from submission to start.
    pub wait: f64,
    /// Time from submission to end, over its run time without contention.
    pub slowdown: f64,
    /// Run time over run time without contention: the slowdown by the traffic of other jobs.
    pub contention: f64,
    /// Whether it was stopped at its limit.
    pub stopped_at_limit: bool,
}

/// Results of a simulation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Output {
    /// Records of the jobs, in the order of the input; `None` for a job that did not end.
    pub jobs: Vec<Option<JobRecord>>,
    /// Time from submission to start, s.
    pub wait: Quantiles,
    /// Time from submission to end over run time without contention.
    pub slowdown: Quantiles,
    /// Time until the last job ended, s.
    pub seconds: f64,
    /// Mean share of accelerators in use.
    pub utilization: f64,
    /// Mean number of waiting jobs.
    pub waiting: f64,
}

impl Input {
    /// Returns all problems of the input.
    pub fn problems(&self) -> Vec<OutOfRange> {
        let mut r = Ranges::default();
        r.check("accelerators", f64::from(self.accelerators), 1.0, f64::from(u32::MAX));
        r.check("jobs", self.jobs.len() as f64, 0.0, 1e8);
        if let Scheduler::Gang { slice } = self.scheduler {
            r.check("time slice in seconds", slice, 1e-3, 1e7);
        }
        for job in &self.jobs {
            r.check("submission time of a job", job.submitted, 0.0, 1e7);
            r.check("accelerators of a job", f64::from(job.accelerators), 1.0, f64::from(self.accelerators));
            r.check("duration of a job in seconds", job.seconds, 0.0, 1e7);
            r.check("time limit of a job", job.limit, 0.0, f64::INFINITY);
            r.check("step time of a job", job.traffic.step, 0.0, 1e7);
            r.check("collective time per step of a job", job.traffic.collectives, 0.0, 1e7);
        }
        if let Some(fabric) = &self.fabric {
            r.check("accelerators per host", f64::from(fabric.accelerators_per_host), 1.0, 65_536.0);
            r.check("hosts per leaf switch", f64::from(fabric.hosts_per_leaf), 1.0, 1e6);
            r.check("oversubscription", fabric.oversubscription, 1.0, 1e6);
        }
        r.0
    }
}

/// Runs all jobs.
///
/// # Errors
///
/// Returns all invalid parts of the input at once.
pub fn simulate(input: &Input, progress: &Progress) -> Result<Output, Vec<OutOfRange>> {
    let problems = input.problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    let (mut out, working, waiting, now) = match input.scheduler {
        Scheduler::Gang { slice } => gang::simulate(input, slice, progress),
        Scheduler::Fifo | Scheduler::Backfill => turns::simulate(input, progress),
    };
    progress.set(1.0);
    let figures = |figure: fn(&JobRecord) -> f64| out.jobs.iter().flatten().map(figure).collect::<Vec<f64>>();
    let (mut waits, mut slowdowns) = (figures(|r| r.wait), figures(|r| r.slowdown));
    out.wait = Quantiles::of(&mut waits);
    out.slowdown = Quantiles::of(&mut slowdowns);
    out.seconds = now.seconds();
    out.utilization = working / f64::from(input.accelerators);
    out.waiting = waiting;
    Ok(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;
    use crate::kernel::{Distribution, Stream};
    use crate::queueing;

    fn job(submitted: f64, accelerators: u32, seconds: f64) -> Job {
        Job { submitted, accelerators, seconds, limit: 2.0 * seconds, traffic: Traffic::default() }
    }

    fn run_of(scheduler: Scheduler, accelerators: u32, jobs: Vec<Job>) -> Output {
        simulate(&Input { accelerators, jobs, scheduler, fabric: None }, &Progress::new()).unwrap()
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
    fn single_accelerator_jobs_wait_as_in_a_multi_server_queue() {
        let customers = 20_000;
        let between = Distribution::Exponential { mean: 1.0 };
        let service = Distribution::Exponential { mean: 3.4 };
        let station = queueing::Input { between, service, servers: 4, customers, warm_up: 0 };
        let expected = queueing::simulate(&station, 5, &Progress::new());
        // The same draws: arrivals and services have separate streams.
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
    fn backfilled_jobs_do_not_delay_the_first() {
        // Four of eight run for 100 s; the first in the queue needs all eight; a short and a long small job are behind
        // it.
        let jobs = vec![job(0.0, 4, 100.0), job(1.0, 8, 50.0), job(2.0, 2, 40.0), job(3.0, 2, 150.0)];
        let fifo = run_of(Scheduler::Fifo, 8, jobs.clone());
        let filled = run_of(Scheduler::Backfill, 8, jobs);
        let begins = |o: &Output| o.jobs.iter().map(|r| r.unwrap().begin).collect::<Vec<f64>>();
        assert_eq!(begins(&fifo), [0.0, 100.0, 150.0, 150.0]);
        assert_eq!(begins(&filled), [0.0, 100.0, 2.0, 150.0]);
    }

    #[test]
    fn backfilling_fills_and_never_exceeds_the_capacity() {
        let (fifo, filled) = (run_of(Scheduler::Fifo, 64, mixed()), run_of(Scheduler::Backfill, 64, mixed()));
        assert!(filled.wait.mean < 0.8 * fifo.wait.mean && filled.utilization >= fifo.utilization);
        for o in [fifo, filled] {
            assert!(o.jobs.iter().all(Option::is_some) && o.utilization <= 1.0);
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
    fn limits_end_jobs_and_invalid_numbers_are_reported() {
        let o = run_of(Scheduler::Fifo, 1, vec![Job { limit: 5.0, ..job(0.0, 1, 10.0) }]);
        assert_eq!(o.jobs[0].map(|r| (r.end, r.stopped_at_limit)), Some((5.0, true)));
        let wide =
            Input { accelerators: 4, jobs: vec![job(f64::NAN, 5, -1.0)], scheduler: Scheduler::Fifo, fabric: None };
        assert_eq!(wide.problems().len(), 4);
    }

    /// Two accelerators per host, two hosts per leaf, uplinks with the bandwidth of one host.
    fn shared(scheduler: Scheduler, placement: Placement, jobs: Vec<Job>) -> Output {
        let fabric = Fabric { accelerators_per_host: 2, hosts_per_leaf: 2, oversubscription: 2.0, placement };
        let input = Input { accelerators: 8, jobs, scheduler, fabric: Some(fabric) };
        simulate(&input, &Progress::new()).unwrap()
    }

    fn sending(submitted: f64, seconds: f64) -> Job {
        let traffic = Traffic { step: 1.0, collectives: 1.0, hidden: 0.0 };
        Job { submitted, accelerators: 4, seconds, limit: f64::INFINITY, traffic }
    }

    #[test]
    fn jobs_on_one_uplink_slow_each_other_while_both_run() {
        let gang = Scheduler::Gang { slice: 10.0 };
        for scheduler in [Scheduler::Fifo, Scheduler::Backfill, gang] {
            // Spread over both leaves, both jobs use both uplinks. The second starts after fifty of the first one's
            // hundred seconds, and takes twice its sixty. The first completes its other fifty in a hundred.
            let out = shared(scheduler, Placement::Spread, vec![sending(0.0, 100.0), sending(50.0, 60.0)]);
            let (first, second) = (out.jobs[0].unwrap(), out.jobs[1].unwrap());
            assert!((first.end - 150.0).abs() < 1e-3, "{scheduler:?} {first:?}");
            assert!((first.contention - 1.5).abs() < 1e-4, "{first:?}");
            // Fifty of its seconds concurrently with the other job, ten alone.
            assert!((second.end - 160.0).abs() < 1e-3, "{scheduler:?} {second:?}");
            // Packed under separate leaves, they run without contention.
            let out = shared(scheduler, Placement::Packed, vec![sending(0.0, 100.0), sending(50.0, 60.0)]);
            for (record, end) in out.jobs.iter().flatten().zip([100.0, 110.0]) {
                assert!((record.end - end).abs() < 1e-6 && (record.contention - 1.0).abs() < 1e-9, "{record:?}");
            }
        }
    }

    #[test]
    fn a_limit_ends_a_job_that_contention_slows() {
        let limited = Job { limit: 80.0, ..sending(0.0, 60.0) };
        let out = shared(Scheduler::Fifo, Placement::Spread, vec![limited, sending(0.0, 100.0)]);
        let (first, second) = (out.jobs[0].unwrap(), out.jobs[1].unwrap());
        assert!(
            first.stopped_at_limit && (first.end - 80.0).abs() < 1e-6 && (first.contention - 2.0).abs() < 1e-4,
            "{first:?}"
        );
        // The other job completes forty of its seconds in eighty, and then has the uplinks to itself.
        assert!(!second.stopped_at_limit && (second.end - 140.0).abs() < 1e-3, "{second:?}");
    }
}
