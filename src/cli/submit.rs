//! `atlas submit`.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use atlas_cluster::history::{Draft, Entry, EntryKind, Origin, Store};
use atlas_cluster::launch::{Wrap, write};
use atlas_cluster::submit::{self, Pending, Plan, Prediction, Submission};
use atlas_core::sort;
use atlas_detect::runner::{System, find_program};
use atlas_plan::estimate::Estimate;
use atlas_plan::record::Record;
use color_eyre::eyre::eyre;

use super::args::Globals;
use super::failure::Failure;
use super::launch::places;
use super::launch_plan::{PlanArgs, Planned};
use super::output::{self, write_stderr};
use super::save::write_error;
use super::{confirm, keep, pick, recover};
use atlas_document::sources::state_dir;

/// Write launch files, submit the job and record its prediction.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas submit --target h100-sxm-128 --workload llama3.1-70b-train --wrap slurm
  atlas submit --target h100-sxm-8 --workload llama3.1-8b-train --wrap slurm --runs 3 --yes
  atlas submit --target h100-sxm-8 --target mi300x-8 --workload llama3.1-8b-train --runs 3 \\
    --wrap slurm --methodology identical-config --methodology maximum-performance \\
    --partition h100-sxm-8=nv --partition mi300x-8=amd

Shows the files and commands and asks for confirmation before writing or running anything; without a terminal, use --yes. \
Runs of one scenario are executed one after the other; each target, workload or methodology gets its own directory, and \
`atlas compare --measured` compares their logs. Records go to submissions/ in the state directory and to the history, \
where `atlas watch JOBID` finds the prediction. Jobs are tagged (sbatch --comment), so if atlas is killed before recording \
a submission, the next `atlas submit`, `watch` or `history` finds and records it.")]
pub struct Args {
    /// What is submitted.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Number of runs, one after the other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Submit without confirmation
    #[arg(long)]
    pub yes: bool,
}

/// Shows the files, asks for confirmation, submits and records.
pub fn run(args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    if !args.yes && !std::io::stdin().is_terminal() {
        return Err(Failure::usage(["confirmation required: run in a terminal or use --yes"]).into());
    }
    recover::recover();
    let planned = args.plan.plan(globals)?;
    let wrap = args.plan.wrap();
    let program = submit::program(wrap);
    if find_program(program).is_none() {
        return Err(eyre!("{program} is not on PATH; use `atlas launch` to write the files without submitting them"));
    }
    if wrap == Wrap::Plain && planned.len() > 1 {
        let several = format!(
            "{} scenarios would run at the same time on this machine; submit them one by one, or use \
             --wrap slurm",
            planned.len()
        );
        return Err(Failure::usage([several]).into());
    }
    let state = state_dir().ok_or_else(|| eyre!("no state directory for the record; set ATLAS_STATE_DIR"))?;
    let out = std::path::absolute(&args.plan.out)?;
    let plans: Vec<Plan> = planned.iter().map(|planned| plan(planned, &out, args)).collect::<Result<_, _>>()?;
    planned.iter().zip(&plans).try_for_each(|(planned, plan)| show(plan, planned))?;
    if !args.yes && !confirm::confirmed("submit?")? {
        write_stderr("nothing submitted");
        return Ok(());
    }
    write(&places(&planned, &out), args.plan.force)?;
    let mut failed = false;
    for (planned, plan) in planned.iter().zip(&plans) {
        failed |= submit_one(planned, plan, &state)?;
    }
    if plans.len() > 1 && wrap == Wrap::Slurm {
        let logs: Vec<String> = plans.iter().map(|plan| plan.folder.join("*.log").display().to_string()).collect();
        write_stderr(&format!("when the jobs have finished, run: atlas compare --measured {}", logs.join(" ")));
    }
    if failed { Err(Failure::Reported.into()) } else { Ok(()) }
}

/// Submission plan of one scenario.
fn plan(planned: &Planned, out: &Path, args: &Args) -> color_eyre::Result<Plan> {
    let file = planned.launch.files.first().ok_or_else(|| eyre!("there is no file to submit"))?;
    let folder = planned.folder.as_ref().map_or_else(|| out.to_owned(), |folder| out.join(folder));
    Ok(Plan { wrap: args.plan.wrap(), folder, file: file.name.clone(), runs: args.runs, tag: submit::tag() })
}

/// Submits and records one scenario; returns whether a run was rejected.
fn submit_one(planned: &Planned, plan: &Plan, state: &Path) -> color_eyre::Result<bool> {
    let files = planned.launch.files.iter().map(|file| plan.folder.join(&file.name)).collect();
    // Written before the scheduler is called, so that an interrupted submission can be recovered.
    let pending = pending(planned, plan, files)?;
    let folder = submit::folder(state);
    let begun = pending.write(&folder).map_err(|error| write_error(&folder, &error))?;
    let runs = match plan.wrap {
        Wrap::Plain => submit::start(plan)?,
        Wrap::Slurm | Wrap::Kubernetes => plan.submit(&System)?,
    };
    let failed = runs.iter().any(|run| run.problem.is_some());
    let of = planned.folder.as_ref().map_or_else(String::new, |name| format!("{name}, "));
    for run in &runs {
        match (&run.job, &run.problem) {
            (Some(job), _) => output::print(&format!("{of}run {}: {job}\n", run.index))?,
            (None, problem) => {
                write_stderr(&format!("{of}run {}: {}", run.index, problem.as_deref().unwrap_or("no answer")));
            }
        }
    }
    let path = recover::record(pending, runs, &begun)?;
    write_stderr(&format!("recorded in {}", path.display()));
    Ok(failed)
}

/// The submission to be made, with everything that its record and history entry need.
fn pending(planned: &Planned, plan: &Plan, files: Vec<PathBuf>) -> color_eyre::Result<Pending> {
    let estimate = atlas_plan::engine::estimate(&planned.scenario);
    let record = Submission {
        ts: submit::now(),
        name: planned.launch.name.clone(),
        tag: plan.tag.clone(),
        tool: planned.launch.tool.name().to_owned(),
        place: match plan.wrap {
            Wrap::Plain => "plain",
            Wrap::Slurm => "slurm",
            Wrap::Kubernetes => "kubernetes",
        }
        .to_owned(),
        target: planned.parts.target.name.to_string(),
        workload: planned.parts.workload.name.to_string(),
        software: planned.scenario.active_software.name.to_string(),
        set: planned.overrides.iter().map(|(knob, setting)| format!("{}={setting}", knob.name())).collect(),
        predicted: Prediction::of(&estimate),
        files,
        runs: Vec::new(),
    };
    let origin = Origin::of_process(env!("CARGO_PKG_VERSION"));
    let host = origin.host.clone();
    let entry = match Store::of_user() {
        Some(_) => Some(entry(planned, plan, &record, &estimate, origin)?),
        None => None,
    };
    Ok(Pending { tag: plan.tag.clone(), process: std::process::id(), host, record, entry, plan: plan.clone() })
}

/// Saves the prediction, and links the submission's entry to it.
fn entry(
    planned: &Planned,
    plan: &Plan,
    record: &Submission,
    estimate: &Estimate,
    origin: Origin,
) -> color_eyre::Result<Entry> {
    let Planned { parts, scenario, overrides, launch, .. } = planned;
    let track = pick::track(&parts.workload, None);
    let prediction = Record::new(&parts.target.name, &parts.workload, track, "pre-opt", scenario, overrides, estimate);
    let prediction = keep::of_estimate(parts, scenario, estimate, serde_json::to_value(&prediction)?);
    let figures = prediction.figures.clone();
    let source = keep::keep(EntryKind::Prediction, prediction);
    let mut draft = keep::of_scenario(parts, scenario);
    draft.inputs.extend(
        [
            ("place", record.place.clone()),
            ("directory", plan.folder.display().to_string()),
            ("file", plan.file.clone()),
        ]
        .map(|(name, value)| (name.to_owned(), value.into())),
    );
    let contents = launch.files.iter().map(|file| (file.name.clone(), file.text.clone().into()));
    let contents: serde_json::Map<String, serde_json::Value> = sort::collect_unsorted(contents);
    let body = serde_json::json!({"submission": record, "files": contents});
    let sources = source.into_iter().collect();
    Ok(Entry::new(EntryKind::Submission, Draft { figures, sources, body, origin, ..draft }))
}

/// Prints the files, the commands and the prediction.
fn show(plan: &Plan, planned: &Planned) -> color_eyre::Result<()> {
    write_stderr("files:");
    for file in &planned.launch.files {
        write_stderr(&format!("  {}", plan.folder.join(&file.name).display()));
    }
    write_stderr("commands:");
    for line in plan.shown()? {
        write_stderr(&format!("  {line}"));
    }
    planned.launch.notes.iter().for_each(|note| write_stderr(&format!("note: {note}")));
    Ok(())
}
