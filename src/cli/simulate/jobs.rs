//! `atlas simulate` of several jobs on one cluster.

use std::time::Duration;

use super::files::Folder;
use super::{Args, refused, scenario};
use crate::cli::args::Globals;
use crate::cli::failure::Failure;
use crate::cli::output;
use crate::cli::watching;
use crate::engine::event::cluster;
use crate::library::Library;
use crate::report::simulation::jobs as told;
use crate::report::{Format, serialised};
use crate::simulation::config::{Config, Pair, Subject};
use crate::simulation::jobs::{self, Job};
use crate::simulation::{Gauge, Measured, Options, Plan, Problems, run as simulated};

/// Runs the jobs of a configuration.
pub(super) fn run(args: &Args, configs: &[Config], library: &Library, globals: &Globals) -> color_eyre::Result<()> {
    let [config] = configs else { return Ok(()) };
    let Subject::Jobs(jobs) = &config.subject else { return Ok(()) };
    if args.trace.is_some() {
        return Err(Failure::usage(["--trace shows tasks of one job; give its target and workload"]).into());
    }
    let gauge = Gauge::of(jobs.jobs.len() as u32 + 1);
    let (input, sizes, out) = watching(&gauge, Duration::from_millis(500), "simulated", || {
        let (input, sizes) = input(jobs, config, library, &gauge)?;
        let out = gauge
            .run(|progress| cluster::simulate(&input, progress))
            .map_err(|problems| refused(Problems::from(problems)))?;
        color_eyre::Result::<_>::Ok((input, sizes, out))
    })??;
    let document = told::document(jobs, input.accelerators, &sizes, &out);
    match args.format {
        Format::Table => {
            output::print(&globals.charset().write(&told::tell(jobs, input.accelerators, &sizes, &out)))?;
        }
        Format::Json => output::print(&serialised(&document, false)?)?,
        Format::Yaml => output::print(&serialised(&document, true)?)?,
        Format::Csv => output::print(&told::csv_of(jobs, &sizes, &out))?,
    }
    if let Some(place) = &args.out {
        let mut folder = Folder::open(place)?;
        folder.json("results.json", &document)?;
        folder.text("config.yaml", &config.yaml()?)?;
        folder.chart("jobs_over_time", &told::chart(jobs, input.accelerators, &sizes, &out))?;
        folder.tell();
    }
    if gauge.cancelled() { Err(Failure::Told.into()) } else { Ok(()) }
}

/// The cluster's input, and the accelerators of every job; all that is wrong at once.
fn input(
    jobs: &jobs::Config,
    config: &Config,
    library: &Library,
    gauge: &Gauge,
) -> color_eyre::Result<(cluster::Input, Vec<u32>)> {
    let target = jobs.cluster.target.as_deref().map(|name| library.target(name)).transpose().map_err(Failure::from)?;
    let per_node = target.map_or(1.0, |target| target.accelerators_per_node);
    let accelerators = jobs.cluster.accelerators.or(target.map(|target| target.accelerators())).unwrap_or(1.0);
    let mut problems = Vec::new();
    let mut list = Vec::new();
    let mut sizes = Vec::new();
    for job in &jobs.jobs {
        let size = job.accelerators.or(job.nodes.map(|nodes| nodes * per_node)).unwrap_or(1.0);
        if size > accelerators {
            problems.push(format!("{}: wants {size} accelerators of {accelerators}", job.name));
        }
        let seconds = match (&job.seconds, &job.workload, &job.steps) {
            (Some(seconds), ..) => Ok(seconds.0),
            (None, Some(workload), Some(steps)) => match &jobs.cluster.target {
                Some(target) => {
                    let pair = Pair { target: target.clone(), workload: workload.clone(), set: job.set.clone() };
                    gauge.run(|_| step(job, pair, size / per_node, config, library))
                }
                None => Err("a workload needs a target under cluster:".to_owned()),
            }
            .map(|step| step * steps),
            _ => Err("lasts for nobody knows how long".to_owned()),
        };
        match seconds {
            Ok(seconds) => {
                let limit = job.limit.map_or(f64::INFINITY, |limit| limit.0);
                // Backfilling plans with what owners say; one who says nothing is believed to know.
                let limit = if limit.is_finite() { limit } else { seconds };
                list.push(cluster::Job { submitted: job.submitted.0, accelerators: size as u32, seconds, limit });
            }
            Err(problem) => problems.push(format!("{}: {problem}", job.name)),
        }
        sizes.push(size as u32);
    }
    if !problems.is_empty() {
        return Err(Failure::usage(problems).into());
    }
    Ok((cluster::Input { accelerators: accelerators as u32, jobs: list, scheduler: jobs.scheduler }, sizes))
}

/// Seconds of a job's step on so many nodes, by its events.
fn step(job: &Job, mut pair: Pair, nodes: f64, config: &Config, library: &Library) -> Result<f64, String> {
    pair.set.insert(0, format!("num_nodes={}", nodes.ceil()));
    let scenario = scenario(library, &pair).map_err(|error| error.to_string())?;
    let options = Options { steps: config.options.steps.or(Some(3)), replications: None, ..config.options.clone() };
    let plan = Plan::of(job.name.clone(), &scenario, &options, None).map_err(|problems| problems.0.join("; "))?;
    let outcome = simulated(&plan, &Gauge::of(1)).map_err(|problems| problems.0.join("; "))?;
    match outcome.first {
        Measured::Training(m) => Ok(m.output.step.mean),
        Measured::Serving(_) => Err(format!("{} is serving; jobs train", pair.workload)),
    }
}
