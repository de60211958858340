//! Several jobs on one cluster under a scheduler.
//!
//! ```yaml
//! scheduler: backfill            # fifo, backfill, gang
//! cluster: { target: h100-sxm-128 }
//! jobs:
//!   - { name: pretrain, workload: llama3.1-70b-train, nodes: 8, steps: 5000, limit: 2d }
//!   - { name: probe, submitted: 10m, accelerators: 16, seconds: 1h }
//! ```
//!
//! A job of a workload lasts as long as its steps, of which a few are simulated; another as long as it says. A job has
//! all its accelerators at once, and under `gang`, where jobs take turns of `slice`, not all the time. Which ones they are
//! plays no part, and so neither does traffic of jobs in each other's way.

use serde::Serialize;

use super::config::{as_mapping, named, settings};
use super::words::Span;
use crate::engine::event::cluster::Scheduler;
use crate::library::Library;
use crate::spec::decode::{Bounds, Fields};

/// Jobs, cluster and scheduler.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    /// Its name.
    pub name: String,
    /// Who goes next.
    #[serde(serialize_with = "word")]
    pub scheduler: Scheduler,
    /// A turn under `gang`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<Span>,
    /// What they run on.
    pub cluster: Cluster,
    /// The jobs.
    pub jobs: Vec<Job>,
}

/// A cluster: a target of the files, or so many accelerators.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cluster {
    /// The target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Accelerators; those of the target where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerators: Option<f64>,
}

/// One job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// When it is submitted.
    pub submitted: Span,
    /// The workload that it trains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Nodes that it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<f64>,
    /// Accelerators that it takes, in place of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerators: Option<f64>,
    /// Optimizer steps of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<f64>,
    /// How long it lasts, in place of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Span>,
    /// How long its owner says it lasts; it is ended then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Span>,
    /// Knobs turned.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_mapping")]
    pub set: Vec<String>,
}

/// Slurm's turn (`SchedulerTimeSlice`), seconds.
const SLICE: f64 = 30.0;

const SCHEDULERS: [(&str, Scheduler); 3] =
    [("fifo", Scheduler::Fifo), ("backfill", Scheduler::Backfill), ("gang", Scheduler::Gang { slice: SLICE })];

fn word<S: serde::Serializer>(scheduler: &Scheduler, serializer: S) -> Result<S::Ok, S::Error> {
    let alike = |one: &Scheduler| std::mem::discriminant(one) == std::mem::discriminant(scheduler);
    let found = SCHEDULERS.iter().find(|(_, one)| alike(one));
    serializer.serialize_str(found.map_or("fifo", |(name, _)| name))
}

impl Config {
    /// Reads jobs, cluster and scheduler. Complaints go to the fields' diagnostics.
    pub fn decode(fields: &mut Fields<'_>, library: &Library) -> Option<Config> {
        let name = fields.text("name").unwrap_or_else(|| "jobs".to_owned());
        let mut scheduler = fields.choice("scheduler", &SCHEDULERS).unwrap_or(Scheduler::Backfill);
        let asked = span(fields, "slice");
        match (&mut scheduler, asked) {
            (Scheduler::Gang { slice }, Some(asked)) => *slice = asked.0,
            (Scheduler::Fifo | Scheduler::Backfill, Some(_)) => {
                fields.warn("slice", "only the scheduler gang gives jobs turns", None);
            }
            (_, None) => {}
        }
        let cluster = fields.required_map("cluster", &["target"], |f| {
            let cluster = Cluster {
                target: f.text("target"),
                accelerators: f.number("accelerators", Bounds { max: 1e7, ..Bounds::COUNT }),
            };
            named(f, "target", cluster.target.as_deref(), |name| library.target(name).err());
            if cluster.target.is_none() && cluster.accelerators.is_none() {
                f.error("", "found neither target nor accelerators", Some("write one of them".to_owned()));
            }
            cluster
        });
        let file = fields.file().clone();
        let node = fields.node("jobs")?;
        let Some(items) = node.items() else {
            fields.error("jobs", format!("found {}, expected a list of jobs", node.describe()), None);
            return None;
        };
        let mut jobs = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if let Some(mut f) = Fields::open(&file, format!("jobs[{index}]"), item, fields.diagnostics()) {
                jobs.push(job(&mut f, index, library));
                f.finish();
            }
        }
        Some(Config { name, scheduler, slice: asked, cluster: cluster?, jobs })
    }
}

fn job(f: &mut Fields<'_>, index: usize, library: &Library) -> Job {
    let count = Bounds { max: 1e7, ..Bounds::COUNT };
    let job = Job {
        name: f.text("name").unwrap_or_else(|| format!("job {}", index + 1)),
        submitted: span(f, "submitted").unwrap_or(Span(0.0)),
        workload: f.text("workload"),
        nodes: f.number("nodes", count),
        accelerators: f.number("accelerators", count),
        steps: f.number("steps", Bounds { max: 1e9, ..Bounds::COUNT }),
        seconds: span(f, "seconds"),
        limit: span(f, "limit"),
        set: settings(f),
    };
    named(f, "workload", job.workload.as_deref(), |name| library.workload(name).err());
    if job.nodes.is_some() == job.accelerators.is_some() {
        f.error("", "expected either nodes or accelerators", None);
    }
    if job.seconds.is_some() == (job.workload.is_some() && job.steps.is_some()) {
        f.error("", "expected either seconds, or workload and steps", None);
    }
    job
}

fn span(f: &mut Fields<'_>, key: &'static str) -> Option<Span> {
    let text = f.text(key)?;
    text.parse::<Span>().map_err(|error| f.error(key, error, None)).ok()
}
