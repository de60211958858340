//! Failures and checkpoints in weeks of training: goodput, and the best interval between checkpoints.

use atlas_core::units;

use super::options::Options;
use super::training::Work;
use super::{Problems, RunsProgress};
use atlas_perf::training::adapters::trained_params;
use atlas_sim::kernel::replication::replicate;
use atlas_sim::kernel::{Distribution, Interval};
use atlas_sim::training::faults;
use atlas_sim::training::faults::{Choice, Input};

/// Default mean time between failures of one accelerator, hours: 419 unexpected interruptions of 16,384 H100 in 54 days
/// (Llama 3, arXiv 2407.21783, section 3.3.4), including hosts and network.
pub const MTBF_HOURS: f64 = 16_384.0 * 54.0 * 24.0 / 419.0;
/// Default seconds from a failure to its detection, and from there until work resumes: together the ten minutes in
/// which MegaScale finds and replaces a failed machine (arXiv 2402.15627, section 6.3).
const DETECTION: f64 = 120.0;
const RESTART: f64 = 480.0;
/// Default storage bandwidth per node, bytes/s: the 2 TB/s that Llama 3's 2,048 nodes sustain (arXiv 2407.21783,
/// section 3.3.1).
const STORAGE: f64 = 1e9;
/// Default hours until a failed node is available again; an assumption (a working day and a night).
const REPAIR_HOURS: f64 = 24.0;
/// Default length of the run, days.
const DAYS: f64 = 30.0;
/// Default number of replications.
const REPLICATIONS: u32 = 20;

/// Result of the study.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Input, with the checkpoint interval in effect.
    pub input: Input,
    /// Mean time between failures of one accelerator, seconds.
    pub mtbf: f64,
    /// Size of a checkpoint, bytes.
    pub checkpoint_bytes: f64,
    /// Tokens per second without failures.
    pub tokens_per_sec: f64,
    /// Goodput for intervals around Young's.
    pub choices: Vec<Choice>,
    /// Best of `choices`.
    pub best: Option<Choice>,
    /// Goodput and the shares of the time lost to rework, checkpoints, restarts and missing nodes, at the interval in
    /// effect.
    pub shares: [Interval; 5],
    /// Number of failures at the interval in effect.
    pub failures: Interval,
    /// Replications per interval.
    pub replications: u32,
    /// Notes on assumed values.
    pub notes: Vec<String>,
}

/// Names of [`Study::shares`].
pub const SHARES: [&str; 5] = ["goodput", "lost work", "checkpoints", "restarts", "waiting for nodes"];

/// Maximum number of events of a study: about a minute of computing.
const MAX_EVENTS: f64 = 1e9;
/// Simulated runs per seed: one at the interval in effect, and those of [`faults::best_interval`].
const RUNS_PER_SEED: f64 = 18.0;

/// Returns an error if a study would take too many events.
fn check_event_limit(input: &Input, replications: u32) -> Result<(), Problems> {
    let events = input.expected_events() * RUNS_PER_SEED * f64::from(replications);
    if events <= MAX_EVENTS {
        return Ok(());
    }
    Err(Problems(vec![format!(
        "--study goodput: found about {events:.1e} events, expected at most {MAX_EVENTS:.0e}: the job fails every {} s, \
         writes a checkpoint every {} s and trains for {} s; raise {}, or lower --work or --replications",
        units::si(input.mtbf()),
        units::si(input.interval),
        units::si(input.work),
        if input.interval < input.mtbf() { "--checkpoint-interval" } else { "--accelerator-mtbf" }
    )]))
}

/// Studies the goodput of a job that processes `tokens_per_sec` without failures.
///
/// # Errors
///
/// All invalid or contradictory options.
pub fn study(work: &Work, tokens_per_sec: f64, options: &Options, gauge: &RunsProgress) -> Result<Study, Problems> {
    let mut notes = Vec::new();
    let mut assumed = |name: &str, value: String| notes.push(format!("assumed: {name} {value}"));
    let mtbf = options.accelerator_mtbf.map_or_else(
        || {
            assumed("--accelerator-mtbf", format!("{MTBF_HOURS:.0}h of one accelerator, Llama 3's"));
            MTBF_HOURS * 3600.0
        },
        |span| span.0,
    );
    let system = &work.input.system;
    let nodes = work.hosts.count();
    // Frozen weights are not saved: they do not change.
    let trained = trained_params(&system.arch, system.adapters, [system.trained, system.trained_experts]);
    let checkpoint_bytes = trained * (system.weight_bytes + system.optimizer_bytes);
    let storage = options.storage_gbytes_per_sec.map_or(STORAGE, |gbytes| gbytes * 1e9);
    let checkpoint = options.checkpoint_seconds.map_or_else(
        || {
            assumed(
                "--checkpoint-seconds",
                format!("{:.0} GB over {:.3} GB/s from each of {nodes} nodes", checkpoint_bytes * 1e-9, storage * 1e-9),
            );
            checkpoint_bytes / (storage * f64::from(nodes))
        },
        |span| span.0,
    );
    let spares = options.spares.unwrap_or_else(|| {
        let spares = (0.01 * f64::from(nodes)).ceil().max(1.0) as u32;
        assumed("--spares", format!("{spares}, 1 % of the nodes"));
        spares
    });
    let mut input = Input {
        work: options.work.map_or(DAYS * 86_400.0, |span| span.0),
        nodes,
        // A failure of any accelerator stops its whole node.
        node_mtbf: mtbf / f64::from(work.hosts.per_host.min(work.hosts.devices).max(1)),
        interval: 1.0,
        checkpoint,
        flush: options.checkpoint_flush.map_or(0.0, |span| span.0),
        detection: options.detection.map_or(DETECTION, |span| span.0),
        restart: options.restart_time.map_or(RESTART, |span| span.0),
        spares,
        repair: Distribution::Exponential { mean: options.repair.map_or(REPAIR_HOURS * 3600.0, |span| span.0) },
    };
    if options.detection.is_none() && options.restart_time.is_none() {
        assumed("--detection and --restart-time", "two and eight minutes, MegaScale's ten together".to_owned());
    }
    if options.repair.is_none() {
        assumed("--repair", format!("{REPAIR_HOURS}h"));
    }
    // Lower bound for checkpoints that take no time.
    input.interval = options.checkpoint_interval.map_or_else(|| input.young_interval().max(1.0), |span| span.0);
    let problems = input.problems();
    if !problems.is_empty() {
        return Err(problems.into());
    }
    let replications = options.replications.unwrap_or(REPLICATIONS).max(2);
    check_event_limit(&input, replications)?;
    let seed = options.seed();
    let (choices, best) =
        gauge.run(|progress| faults::best_interval(&input, seed, replications, progress)).map_err(Problems::from)?;
    let mut unfinished = false;
    let [g, l, c, r, s, failures] = gauge.run(|progress| {
        let mut done = 0.0;
        replicate(seed, replications, super::CONFIDENCE_LEVEL, |seed| {
            progress.stage(done / f64::from(replications), (done + 1.0) / f64::from(replications));
            done += 1.0;
            let out = faults::simulate(&input, seed, progress).unwrap_or_default();
            unfinished |= out.unfinished;
            let of = |seconds: f64| seconds / out.wall.max(1e-12);
            [
                out.goodput,
                of(out.lost),
                of(out.checkpoints),
                of(out.restarts),
                of(out.waiting_for_repair),
                out.failures as f64,
            ]
        })
    });
    if unfinished {
        notes.push(
            "some runs were not finished after 213 days, the longest simulated time; their goodput covers only the time \
             that was"
                .to_owned(),
        );
    }
    let shares = [g, l, c, r, s];
    Ok(Study { input, mtbf, checkpoint_bytes, tokens_per_sec, choices, best, shares, failures, replications, notes })
}
