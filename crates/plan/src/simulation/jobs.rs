//! Several jobs on one cluster under a scheduler.
//!
//! ```yaml
//! scheduler: backfill            # fifo, backfill, gang
//! cluster: { target: h100-sxm-128, oversubscription: 4, nodes_per_leaf: 4, placement: spread }
//! jobs:
//!   - { name: pretrain, workload: llama3.1-70b-train, nodes: 8, steps: 5000, limit: 2d }
//!   - { name: probe, submitted: 10m, accelerators: 16, seconds: 1h, communication: 0.3 }
//! ```
//! A job with a workload takes as long as its steps, a few of which are simulated; other jobs state their duration. A
//! job occupies all its accelerators at once; under `gang`, where jobs take turns of `slice`, not all of the time. If
//! the fabric between leaves is oversubscribed, jobs whose gradients cross the same uplinks slow each other down.
//! `placement` selects whether jobs are packed under few leaves or spread over many.

use serde::Serialize;

use super::fields::{as_mapping, named, settings};
use super::words::Span;
use atlas_config::library::Library;
use atlas_core::count::Count;
use atlas_document::decode::{Bounds, Fields};
use atlas_sim::cluster::{Placement, Scheduler};

/// Jobs, cluster and scheduler.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    /// Name.
    pub name: String,
    /// Scheduling policy.
    #[serde(serialize_with = "word")]
    pub scheduler: Scheduler,
    /// Length of a turn under `gang`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<Span>,
    /// Cluster that the jobs run on.
    pub cluster: Cluster,
    /// The jobs.
    pub jobs: Vec<Job>,
}

/// Cluster: a target of the files, or a number of accelerators.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cluster {
    /// Name of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Number of accelerators; `None`: that of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerators: Option<Count>,
    /// Accelerators per node; `None`: that of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerators_per_node: Option<Count>,
    /// Nodes under one leaf switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes_per_leaf: Option<Count>,
    /// Bandwidth of the nodes of a leaf over that of its uplinks; `None`: that of the target, or 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oversubscription: Option<f64>,
    /// How jobs are placed.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "place")]
    pub placement: Option<Placement>,
}

/// Default number of nodes per leaf: a scalable unit of NVIDIA's DGX SuperPOD reference architecture for H100 systems.
pub const NODES_PER_LEAF: Count = Count::new(32);

/// One job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Job {
    /// Name.
    pub name: String,
    /// Time of submission.
    pub submitted: Span,
    /// Training workload of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Number of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Count>,
    /// Number of accelerators, as an alternative to nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerators: Option<Count>,
    /// Number of optimizer steps of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Count>,
    /// Duration, as an alternative to steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Span>,
    /// Share of the job's time in which its collectives saturate the NICs of its nodes and are not overlapped.
    /// Simulated for jobs with a workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub communication: Option<f64>,
    /// Time limit stated by the user; the job is ended when it is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Span>,
    /// Changed knobs.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_mapping")]
    pub set: Vec<String>,
}

/// Default turn, seconds: Slurm's `SchedulerTimeSlice`.
const SLICE: f64 = 30.0;

const SCHEDULERS: [(&str, Scheduler); 3] =
    [("fifo", Scheduler::Fifo), ("backfill", Scheduler::Backfill), ("gang", Scheduler::Gang { slice: SLICE })];

const PLACEMENTS: [(&str, Placement); 2] = [("packed", Placement::Packed), ("spread", Placement::Spread)];

fn place<S: serde::Serializer>(placement: &Option<Placement>, serializer: S) -> Result<S::Ok, S::Error> {
    let found = PLACEMENTS.iter().find(|(_, one)| Some(*one) == *placement);
    serializer.serialize_str(found.map_or("packed", |(name, _)| name))
}

fn word<S: serde::Serializer>(scheduler: &Scheduler, serializer: S) -> Result<S::Ok, S::Error> {
    let alike = |one: &Scheduler| std::mem::discriminant(one) == std::mem::discriminant(scheduler);
    let found = SCHEDULERS.iter().find(|(_, one)| alike(one));
    serializer.serialize_str(found.map_or("fifo", |(name, _)| name))
}

impl Config {
    /// Reads jobs, cluster and scheduler. Problems are added to the diagnostics of `fields`.
    pub fn decode(fields: &mut Fields<'_>, library: &Library) -> Option<Config> {
        let name = fields.text("name").unwrap_or_else(|| "jobs".to_owned());
        let mut scheduler = fields.choice("scheduler", &SCHEDULERS).unwrap_or(Scheduler::Backfill);
        let requested = span(fields, "slice");
        match (&mut scheduler, requested) {
            (Scheduler::Gang { slice }, Some(requested)) => *slice = requested.0,
            (Scheduler::Fifo | Scheduler::Backfill, Some(_)) => {
                fields.warn("slice", "only used by the gang scheduler", None);
            }
            (_, None) => {}
        }
        let cluster = fields.required_map("cluster", &["target"], |f| {
            let cluster = Cluster {
                target: f.text("target"),
                accelerators: f.count("accelerators", Bounds { max: 1e7, ..Bounds::COUNT }),
                accelerators_per_node: f.count("accelerators_per_node", Bounds { max: 65_536.0, ..Bounds::COUNT }),
                nodes_per_leaf: f.count("nodes_per_leaf", Bounds { max: 1e6, ..Bounds::COUNT }),
                oversubscription: f.number("oversubscription", Bounds { min: 1.0, max: 1e3, whole: false }),
                placement: f.choice("placement", &PLACEMENTS),
            };
            if cluster.target.is_none()
                && cluster.accelerators_per_node.is_none()
                && cluster.oversubscription.is_some_and(|ratio| ratio > 1.0)
            {
                let help = "add accelerators_per_node or target".to_owned();
                f.error("oversubscription", "the size of the nodes of a leaf is unknown", Some(help));
            }
            named(f, "target", cluster.target.as_deref(), |name| library.target(name).err());
            if cluster.target.is_none() && cluster.accelerators.is_none() {
                f.error("", "found neither target nor accelerators", Some("add one of them".to_owned()));
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
        Some(Config { name, scheduler, slice: requested, cluster: cluster?, jobs })
    }
}

fn job(f: &mut Fields<'_>, index: usize, library: &Library) -> Job {
    let count = Bounds { max: 1e7, ..Bounds::COUNT };
    let job = Job {
        name: f.text("name").unwrap_or_else(|| format!("job {}", index + 1)),
        submitted: span(f, "submitted").unwrap_or(Span(0.0)),
        workload: f.text("workload"),
        nodes: f.count("nodes", count),
        accelerators: f.count("accelerators", count),
        steps: f.count("steps", Bounds { max: 1e9, ..Bounds::COUNT }),
        seconds: span(f, "seconds"),
        communication: f.number("communication", Bounds { min: 0.0, max: 1.0, whole: false }),
        limit: span(f, "limit"),
        set: settings(f),
    };
    named(f, "workload", job.workload.as_deref(), |name| library.workload(name).err());
    if job.nodes.is_some() == job.accelerators.is_some() {
        f.error("", "expected either nodes or accelerators", None);
    }
    if job.communication.is_some() && job.seconds.is_none() {
        f.error("communication", "communication of a workload is simulated and must not be stated", None);
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
