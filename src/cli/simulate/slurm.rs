//! A simulation as a job array: each part is a range of the replications after the first.

use std::io::Write as _;
use std::time::Duration;

use color_eyre::eyre::eyre;

use super::{Answer, Args, Planned, planned, refused};
use crate::cli::array::{MergeOutcome, Part, Work};
use crate::cli::failure::Failure;
use crate::cli::output::write_stderr;
use crate::cli::run_with_progress;
use atlas_config::library::Library;
use atlas_core::units;
use atlas_document::fingerprint::fingerprint;
use atlas_plan::simulation::config::Config;
use atlas_plan::simulation::part::{RunMetrics, run_metrics};
use atlas_plan::simulation::{Plan, RunsProgress};

/// Options, each with a value, that are not passed to the tasks.
const LOCAL_OPTIONS: [&str; 3] = ["--format", "--trace", "--window"];

/// Plans of all configurations, and their fingerprint. Replications after the first are numbered across all plans.
struct Plans {
    plans: Vec<Planned>,
    fingerprint: u64,
}

impl Plans {
    fn of(args: &Args, configs: &[Config], library: &Library) -> color_eyre::Result<Plans> {
        let gauge = RunsProgress::default();
        let plans: Vec<Planned> =
            configs.iter().map(|config| planned(config, args, library, &gauge)).collect::<Result<_, _>>()?;
        let mut text = env!("CARGO_PKG_VERSION").to_owned();
        for Planned { plan, .. } in &plans {
            text += &format!("\n{} {} {} {:?}", plan.name, plan.seed, plan.replications, plan.work);
        }
        Ok(Plans { plans, fingerprint: fingerprint(text.as_bytes()) })
    }

    /// Total number of replications after the first.
    fn items(&self) -> u64 {
        self.plans.iter().map(|planned| further_replications(&planned.plan)).sum()
    }
}

fn further_replications(plan: &Plan) -> u64 {
    u64::from(plan.replications.saturating_sub(1))
}

/// Computes one part, as a task of the array.
pub(super) fn part(part: &Part, args: &Args, configs: &[Config], library: &Library) -> color_eyre::Result<()> {
    let Some(path) = &args.out else { return Err(Failure::usage(["--part requires --out"]).into()) };
    let all = Plans::of(args, configs, library)?;
    part.write(path, all.fingerprint, all.items(), |items, out| {
        let mut before = 0;
        for (index, Planned { plan, .. }) in all.plans.iter().enumerate() {
            let of_plan = before..before + further_replications(plan);
            let (from, to) = (items.start.max(of_plan.start), items.end.min(of_plan.end));
            before = of_plan.end;
            if from >= to {
                continue;
            }
            // Replication 0 is computed by the submitting process.
            let number = |item: u64| u32::try_from(item - of_plan.start + 1);
            let gauge = RunsProgress::of((to - from) as u32);
            for run in run_metrics(plan, number(from)?..number(to)?, &gauge).map_err(refused)? {
                writeln!(out, "{index} {}", run.line())?;
            }
        }
        Ok(())
    })
}

/// Answers all configurations using a job array; `None` if there is nothing to report.
pub(super) fn run(args: &Args, configs: &[Config], library: &Library) -> color_eyre::Result<Option<Vec<Answer>>> {
    let Some(out) = &args.out else { return Err(Failure::usage(["--slurm requires --out"]).into()) };
    let all = Plans::of(args, configs, library)?;
    let items = all.items();
    if items == 0 {
        return Err(
            Failure::usage(["--slurm distributes replications; use --replications to request more than one"]).into()
        );
    }
    let work = Work::of(&args.array, out, all.fingerprint, items, "runs", &LOCAL_OPTIONS)?;
    if args.array.cancel {
        work.cancel()?;
        return Ok(None);
    }
    // Computed before the submission, so that a plan that cannot run is rejected here.
    let gauge = RunsProgress::of(all.plans.len() as u32);
    let answers = run_with_progress(&gauge, Duration::from_millis(500), "simulated", || {
        all.plans
            .into_iter()
            .map(|planned| run_first_replication(planned, &gauge))
            .collect::<color_eyre::Result<Vec<Answer>>>()
    })?;
    let mut answers = answers?;
    if gauge.canceled() {
        return Err(eyre!("interrupted before anything was submitted"));
    }
    let total: u64 = items + answers.len() as u64;
    let mut done = answers.len() as u64;
    let ended = work.run(0, |index, lines| {
        done += merge(&mut answers, lines)
            .map_err(|problem| eyre!("part {index}: {problem}; remove it and run the command again"))?;
        Ok(progress_line(&answers, done, total))
    })?;
    if ended == MergeOutcome::Stopped {
        return Err(Failure::Reported.into());
    }
    work.clean_up();
    write_stderr(&format!("merged {done} runs"));
    Ok(Some(answers))
}

/// Runs the first replication of a plan; the others are merged into its answer.
fn run_first_replication(planned: Planned, gauge: &RunsProgress) -> color_eyre::Result<Answer> {
    let replications = planned.plan.replications;
    let alone = Planned { plan: Plan { replications: 1, ..planned.plan }, ..planned };
    let mut answer = alone.answer(gauge)?;
    answer.plan.replications = replications;
    Ok(answer)
}

/// Adds the replications of a part; returns their number.
fn merge(answers: &mut [Answer], lines: &[u8]) -> Result<u64, String> {
    let mut count = 0;
    for line in String::from_utf8_lossy(lines).lines() {
        let read = line.split_once(' ').and_then(|(plan, run)| Some((plan.parse().ok()?, RunMetrics::read(run)?)));
        let (plan, run): (usize, RunMetrics) = read.ok_or_else(|| format!("found \"{line}\", expected a run"))?;
        let answer = answers.get_mut(plan).ok_or_else(|| format!("found plan {plan}, which was not requested"))?;
        answer.outcome.add(&run).map_err(|problem| problem.to_string())?;
        count += 1;
    }
    Ok(count)
}

/// Progress: number of replications, and the first metric of the last plan that has several.
fn progress_line(answers: &[Answer], done: u64, total: u64) -> String {
    let first = answers.iter().rev().filter_map(|answer| answer.outcome.metrics.first());
    let shown = first.filter(|found| found.runs.len() > 1).map(|found| {
        let interval = found.interval();
        let (mean, half) = (units::si(interval.mean), units::si(interval.half_width));
        format!("; {} {mean} ± {half} {}", found.metric.label(), found.metric.unit().name())
    });
    format!("; {done} of {total} runs merged{}", shown.into_iter().next().unwrap_or_default())
}
