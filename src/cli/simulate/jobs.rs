//! `atlas simulate` for several jobs on one cluster.

use std::path::Path;
use std::time::Duration;

use color_eyre::eyre::eyre;

use super::{Args, refused, scenario};
use crate::cli::args::Globals;
use crate::cli::failure::Failure;
use crate::cli::output::{self, write_stderr};
use crate::cli::run_with_progress;
use crate::cli::simulation_files::Folder;
use atlas_config::library::Library;
use atlas_core::count::Count;
use atlas_document::sources::read_text;
use atlas_ingest::job_trace;
use atlas_plan::simulation::config::{Config, Pair, Subject};
use atlas_plan::simulation::jobs;
use atlas_plan::simulation::jobs::Job;
use atlas_plan::simulation::words::Span;
use atlas_plan::simulation::{Measured, Options, Plan, Problems, RunsProgress, run as simulated};
use atlas_report::simulation::jobs as report;
use atlas_report::{Format, to_json, to_yaml};
use atlas_sim::cluster;
use atlas_sim::cluster::{Fabric, Scheduler, Traffic};

/// Which job goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum SchedulerName {
    /// In order of submission
    Fifo,
    /// Backfill: short jobs start early if they delay no earlier job
    #[default]
    Backfill,
}

/// Jobs of a trace on the target given on the command line.
pub(super) fn traced(path: &Path, args: &Args, library: &Library) -> color_eyre::Result<jobs::Config> {
    let [target] = args.target.as_slice() else {
        return Err(Failure::usage(["--jobs requires exactly one --target"]).into());
    };
    let accelerators = library.target(target).map_err(Failure::from)?.accelerators();
    let label = path.display().to_string();
    let text = read_text(path).map_err(|problem| eyre!("{label}: {problem}"))?;
    let mut trace = job_trace::read(&text).map_err(|problem| eyre!("{label}: {problem}"))?;
    let too_large = trace.jobs.iter().filter(|job| job.accelerators > accelerators).count();
    trace.jobs.retain(|job| job.accelerators <= accelerators);
    let left_out = trace.jobs.len().saturating_sub(args.max_jobs);
    trace.jobs.truncate(args.max_jobs);
    let mut notes: Vec<String> = trace.skipped.iter().map(|(reason, n)| format!("{n} skipped: {reason}")).collect();
    if too_large > 0 {
        notes.push(format!("{too_large} skipped: they need more than the {accelerators} accelerators of {target}"));
    }
    if left_out > 0 {
        notes.push(format!("{left_out} skipped after the first {}; raise --max-jobs to include them", args.max_jobs));
    }
    let (format, n) = (trace.format, trace.jobs.len());
    write_stderr(&format!(
        "{label}: {format}, {n} jobs{}",
        notes.iter().map(|note| format!("; {note}")).collect::<String>()
    ));
    if trace.jobs.is_empty() {
        return Err(eyre!("{label}: no job that {target} can run"));
    }
    let begin = trace.jobs.iter().map(|job| job.submitted).fold(f64::INFINITY, f64::min);
    let list = trace.jobs.into_iter().map(|job| Job {
        name: job.name,
        submitted: Span(job.submitted - begin),
        workload: None,
        nodes: None,
        accelerators: Some(Count::floor(job.accelerators)),
        steps: None,
        seconds: Some(Span(job.seconds)),
        communication: None,
        limit: job.limit.map(Span),
        set: Vec::new(),
    });
    Ok(jobs::Config {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        scheduler: match args.scheduler {
            SchedulerName::Fifo => Scheduler::Fifo,
            SchedulerName::Backfill => Scheduler::Backfill,
        },
        slice: None,
        cluster: jobs::Cluster {
            target: Some(target.clone()),
            accelerators: None,
            accelerators_per_node: None,
            nodes_per_leaf: None,
            oversubscription: None,
            placement: None,
        },
        jobs: list.collect(),
    })
}

/// Runs the jobs of a configuration.
pub(super) fn run(args: &Args, configs: &[Config], library: &Library, globals: &Globals) -> color_eyre::Result<()> {
    let [config] = configs else { return Ok(()) };
    let Subject::Jobs(jobs) = &config.subject else { return Ok(()) };
    if args.trace.is_some() {
        return Err(Failure::usage(["--trace supports only one job; use its target and workload"]).into());
    }
    let gauge = RunsProgress::of(jobs.jobs.len() as u32 + 1);
    let (input, sizes, out) = run_with_progress(&gauge, Duration::from_millis(500), "simulated", || {
        let (input, sizes) = input(jobs, config, library, &gauge)?;
        let out = gauge
            .run(|progress| cluster::simulate(&input, progress))
            .map_err(|problems| refused(Problems::from(problems)))?;
        color_eyre::Result::<_>::Ok((input, sizes, out))
    })??;
    let mut document = report::document(jobs, input.accelerators, &sizes, &out);
    let canceled = gauge.canceled();
    if let Some(map) = document.as_object_mut().filter(|_| canceled) {
        let ended = out.jobs.iter().flatten().count();
        map.insert("partial".to_owned(), serde_json::json!({"jobs_described": ended, "jobs": jobs.jobs.len()}));
    }
    match args.format {
        Format::Table => {
            output::print(&globals.charset().write(&report::render(jobs, input.accelerators, &sizes, &out)))?;
        }
        Format::Json => output::print(&to_json(&document)?)?,
        Format::Yaml => output::print(&to_yaml(&document)?)?,
        Format::Csv => output::print(&report::csv_of(jobs, &sizes, &out))?,
    }
    if let Some(place) = &args.out {
        let mut folder = Folder::open(place, &jobs.name)?;
        folder.json("results.json", &document)?;
        folder.text("config.yaml", &config.yaml()?)?;
        if !canceled {
            folder.chart("jobs_over_time", &report::chart(jobs, input.accelerators, &sizes, &out))?;
        }
        folder.print_paths();
    }
    if canceled {
        output::write_stderr("interrupted: the results cover only the jobs completed so far");
        return Err(Failure::Reported.into());
    }
    Ok(())
}

/// Input of the cluster simulation, and the number of accelerators of each job; reports all problems together.
fn input(
    jobs: &jobs::Config,
    config: &Config,
    library: &Library,
    gauge: &RunsProgress,
) -> color_eyre::Result<(cluster::Input, Vec<u32>)> {
    let target = jobs.cluster.target.as_deref().map(|name| library.target(name)).transpose().map_err(Failure::from)?;
    let per_node = target.map_or(Count::ONE, |target| target.accelerators_per_node);
    let per_node = jobs.cluster.accelerators_per_node.unwrap_or(per_node);
    let accelerators = match (jobs.cluster.accelerators, target) {
        (Some(stated), _) => f64::from(stated),
        (None, target) => target.map_or(1.0, |target| target.accelerators()),
    };
    let stated = target.and_then(|target| target.network.as_ref()).and_then(|network| network.oversubscription);
    let oversubscription = jobs.cluster.oversubscription.or(stated).unwrap_or(1.0);
    let fabric = (oversubscription > 1.0).then(|| Fabric {
        accelerators_per_host: per_node.get(),
        hosts_per_leaf: jobs.cluster.nodes_per_leaf.unwrap_or(jobs::NODES_PER_LEAF).get(),
        oversubscription,
        placement: jobs.cluster.placement.unwrap_or_default(),
    });
    let mut problems = Vec::new();
    let mut list = Vec::new();
    let mut sizes = Vec::new();
    for job in &jobs.jobs {
        let size = job.accelerators.map(f64::from).or(job.nodes.map(|nodes| nodes * per_node)).unwrap_or(1.0);
        if size > accelerators {
            problems.push(format!("{}: needs {size} accelerators, but there are only {accelerators}", job.name));
        }
        let time = match (&job.seconds, &job.workload, &job.steps) {
            (Some(seconds), ..) => Ok((seconds.0, described(job))),
            (None, Some(workload), Some(steps)) => match &jobs.cluster.target {
                Some(target) => {
                    let pair = Pair { target: target.clone(), workload: workload.clone(), set: job.set.clone() };
                    gauge.run(|_| step(job, pair, size / per_node, fabric.is_some(), config, library))
                }
                None => Err("a workload requires a target under cluster:".to_owned()),
            }
            .map(|traffic| (traffic.step * *steps, traffic)),
            _ => Err("unknown duration".to_owned()),
        };
        match time {
            Ok((seconds, traffic)) => {
                let limit = job.limit.map_or(f64::INFINITY, |limit| limit.0);
                let (submitted, accelerators) = (job.submitted.0, size as u32);
                list.push(cluster::Job { submitted, accelerators, seconds, limit, traffic });
            }
            Err(problem) => problems.push(format!("{}: {problem}", job.name)),
        }
        sizes.push(size as u32);
    }
    if !problems.is_empty() {
        return Err(Failure::usage(problems).into());
    }
    Ok((cluster::Input { accelerators: accelerators as u32, jobs: list, scheduler: jobs.scheduler, fabric }, sizes))
}

/// Step time of a job that states only its communication share, s.
const STEP: f64 = 1.0;

/// Traffic of a job that states its communication share.
fn described(job: &Job) -> Traffic {
    Traffic { step: STEP, collectives: job.communication.unwrap_or(0.0) * STEP, hidden: 0.0 }
}

/// Simulates a step of a job on `nodes` nodes. On a `shared` fabric, the step is simulated without oversubscription of
/// the uplinks; the cluster simulation adds the cost of sharing them with other jobs.
fn step(
    job: &Job,
    mut pair: Pair,
    nodes: f64,
    shared: bool,
    config: &Config,
    library: &Library,
) -> Result<Traffic, String> {
    pair.set.insert(0, format!("num_nodes={}", nodes.ceil()));
    if shared {
        pair.set.push("oversubscription=1".to_owned());
    }
    let scenario = scenario(library, &pair).map_err(|error| error.to_string())?;
    let options = Options { steps: config.options.steps.or(Some(3)), replications: None, ..config.options.clone() };
    let plan = Plan::of(job.name.clone(), &scenario, &options, None).map_err(|problems| problems.0.join("; "))?;
    let outcome = simulated(&plan, &RunsProgress::of(1)).map_err(|problems| problems.0.join("; "))?;
    match outcome.first {
        Measured::Training(m) => {
            let load = &m.output.load;
            let hidden = (load.data - load.exposed_data).max(0.0);
            Ok(Traffic { step: m.output.step.mean, collectives: load.data, hidden })
        }
        Measured::Serving(_) => Err(format!("{} is a serving workload; jobs must be training", pair.workload)),
    }
}
