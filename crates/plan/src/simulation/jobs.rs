//! Several jobs on one cluster under a scheduler.
//!
//! ```yaml
//! scheduler: backfill            # fifo, backfill, gang
//! cluster: { target: h100-sxm-128, oversubscription: 4, nodes_per_leaf: 4, placement: spread }
//! jobs:
//!   - { name: pretrain, workload: llama3.1-70b-train, nodes: 8, steps: 5000, limit: 2d }
//!   - { name: probe, submitted: 10m, accelerators: 16, seconds: 1h, communication: 0.3 }
//! ```
//!
//! A job of a workload lasts as long as its steps, of which a few are simulated; another as long as it says. A job has
//! all its accelerators at once, and under `gang`, where jobs take turns of `slice`, not all the time. Where the fabric
//! between leaves is oversubscribed, jobs whose gradients cross the same uplinks hold each other up; `placement` says
//! whether jobs are packed under few leaves or spread over them.

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
    /// Its name.
    pub name: String,
    /// Which job runs next.
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

/// A cluster: a target of the files, or this many accelerators.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cluster {
    /// The target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Accelerators; those of the target where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerators: Option<Count>,
    /// Accelerators of a node; those of the target's where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerators_per_node: Option<Count>,
    /// Nodes under one leaf switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes_per_leaf: Option<Count>,
    /// Bandwidth of a leaf's nodes over that of its uplinks; the target's where unset, and 1 if that says none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oversubscription: Option<f64>,
    /// Where jobs are put.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "place")]
    pub placement: Option<Placement>,
}

/// Nodes under one leaf by default: those of a scalable unit of NVIDIA's DGX SuperPOD reference architecture for
/// H100 systems.
pub const NODES_PER_LEAF: Count = Count::new(32);

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
    pub nodes: Option<Count>,
    /// Accelerators that it takes, instead of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerators: Option<Count>,
    /// Optimizer steps of the workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Count>,
    /// How long it lasts, instead of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Span>,
    /// Share of its own time in which its collectives fill its nodes' network cards, nothing hiding them; that of its
    /// simulated steps where it has a workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub communication: Option<f64>,
    /// How long its owner says it lasts; it is ended then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Span>,
    /// Knobs changed.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_mapping")]
    pub set: Vec<String>,
}

/// Slurm's turn (`SchedulerTimeSlice`), seconds.
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
    /// Reads jobs, cluster and scheduler. Complaints go to the fields' diagnostics.
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
