//! `atlas watch`.

mod plan;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use atlas_cluster::history::EntryKind;
use atlas_cluster::watch::{AlarmCommand, Event, Feed, Position, WatchState, job};
use atlas_detect::runner::{Runner as _, System};
use clap::ValueEnum;
use color_eyre::eyre::eyre;
use signal_hook::consts::{SIGINT, SIGTERM};

use self::plan::Plan;
use super::args::{Globals, KnobArgs, seconds};
use super::failure::Failure;
use super::output::{self, write_stderr};
use super::{confirm, keep};

/// Follow a running job and compare it with its prediction.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas watch 1234                                            a job submitted with `atlas submit`
  atlas watch slurm-1234.out --plan out/last_run.json
  atlas watch 1234 --target h100-sxm-64 --workload llama3.1-8b-train --set tp=2
  atlas watch rank*.log --plan 3fa9c1d2 --power gpu.csv       with samples of nvidia-smi
  atlas watch run.log --plan p.json --once --exit-code        exit 3 outside the interval
  atlas watch run.log --plan p.json --on-alarm 'notify-send atlas {message}'
  atlas watch 1234 --yes --on-alarm 'curl -fsS --data text={message} https://hooks.example.org'

Reads training logs in the formats listed by `atlas ingest --formats` and logs of vLLM, SGLang, TensorRT-LLM \
(print_iter_log) and llama-server. Prints a message when the run leaves the 90 % interval of the prediction (since \
when, by how much, and the most likely causes), when it returns, stalls or restarts, and nothing otherwise. Files may \
be rotated, truncated, gzipped or not exist yet; several files are the ranks of one job. A number that is not a file \
name is a Slurm job id. Ends after the last step, when the job ends, with --once or on Ctrl-C, and adds an entry to \
the history.")]
pub struct Args {
    /// Logs of one job, or its Slurm job id
    #[arg(value_name = "LOG|JOBID", required = true)]
    pub logs: Vec<String>,
    /// Prediction: a record of `atlas run`, or a history entry
    #[arg(long, value_name = "RECORD|ID", conflicts_with_all = ["target", "workload"])]
    pub plan: Option<String>,
    /// Target
    #[arg(long, value_name = "NAME", requires = "workload")]
    pub target: Option<String>,
    /// Workload
    #[arg(long, value_name = "NAME", requires = "target")]
    pub workload: Option<String>,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Power, clock and temperature samples from nvidia-smi, amd-smi, rocm-smi or dcgm; repeatable
    #[arg(long, value_name = "FILE")]
    pub power: Vec<String>,
    /// Total training steps, if the log does not state them
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Polling interval, seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "1")]
    pub poll: Duration,
    /// Read the existing logs and exit
    #[arg(long)]
    pub once: bool,
    /// Exit with code 3 if the run ends slower than its interval, or stalled
    #[arg(long)]
    pub exit_code: bool,
    /// Command to run on every alarm, without a shell; {message}, {cause}, {step} and {job} are substituted
    #[arg(long, value_name = "COMMAND")]
    pub on_alarm: Option<AlarmCommand>,
    /// Run the alarm command without confirmation
    #[arg(long)]
    pub yes: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// Text messages
    #[default]
    Text,
    /// JSON Lines
    Json,
}

/// Exit code for a run that is slower than its interval, or stalled.
const OUTSIDE_EXIT_CODE: u8 = 3;
/// Maximum bytes read from one file before the next file is read.
const MAX_BYTES_PER_TURN: u64 = 8 << 20;
/// Timeout for queries to Slurm.
const QUERY_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval between queries to Slurm.
const QUERY_INTERVAL: Duration = Duration::from_secs(15);
/// Timeout for the alarm command.
const ALARM_LIMIT: Duration = Duration::from_secs(60);

/// A Slurm job that is being followed.
struct FollowedJob {
    id: String,
    queried: Instant,
    over: bool,
}

/// Follows the job until it ends.
pub fn run(args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    crate::cli::recover::recover();
    args.knobs.check()?;
    let (logs, mut followed) = logs(args)?;
    let plan = Plan::read(args, globals, &logs, followed.as_ref().map(|job| job.id.as_str()))?;
    let mut names: Vec<String> = logs.iter().map(|path| path.display().to_string()).collect();
    let mut feeds: Vec<Feed> = logs.iter().map(|path| Feed::of(path)).collect();
    for path in &args.power {
        names.push(path.clone());
        feeds.push(Feed::of(Path::new(path)));
    }
    if args.once
        && let Some(missing) = feeds.iter().find(|feed| !feed.path().exists())
    {
        return Err(eyre!("{}: no such file", missing.path().display()));
    }
    if let Some(command) = &args.on_alarm {
        write_stderr(&format!("alarm command: {}", command.shown()));
        if !args.yes && !confirm::confirmed("run it on every alarm?")? {
            return Err(eyre!("not watching: confirm the alarm command in a terminal or use --yes"));
        }
    }
    let mut state = WatchState::new(plan.as_ref().map(|plan| plan.prediction.clone()), names);
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let began = Instant::now();
    loop {
        let at = began.elapsed().as_secs_f64();
        let mut more = false;
        for (source, feed) in feeds.iter_mut().enumerate() {
            let (read, events) = feed.poll(MAX_BYTES_PER_TURN, |seen| state.observe(source, at, seen));
            more |= read >= MAX_BYTES_PER_TURN;
            for event in events {
                print(&event, &state, args, globals)?;
            }
        }
        // While catching up with a long log, only its end is reported.
        if !more {
            for event in state.tick(at) {
                print(&event, &state, args, globals)?;
                alarm(&event, &state, args, followed.as_ref());
            }
            let finished = state.progress().is_some_and(|progress| progress.step >= progress.of);
            let over = followed.as_ref().is_some_and(|job| job.over);
            if args.once || over || finished || stop.load(Relaxed) {
                break;
            }
            if let Some(job) = &mut followed {
                query(job)?;
            }
            sleep_unless_stopped(args.poll, &stop);
        } else if stop.load(Relaxed) {
            break;
        }
    }
    let at = began.elapsed().as_secs_f64();
    let mut measured = Vec::new();
    for (source, feed) in feeds.into_iter().enumerate() {
        measured.push(feed.finish(|seen| state.observe(source, at, seen)));
    }
    for event in state.tick(at) {
        print(&event, &state, args, globals)?;
        alarm(&event, &state, args, followed.as_ref());
    }
    print(&Event::Ended, &state, args, globals)?;
    keep::keep(EntryKind::Run, plan::draft(plan.as_ref(), &state, &measured, followed.map(|job| job.id)));
    let outside = matches!(state.position, Position::Slower { .. }) || state.stalled();
    if state.times.records() == 0 {
        write_stderr(
            "error: no training step or server report found; run `atlas ingest --formats` to list recognized formats",
        );
        return Err(Failure::Reported.into());
    }
    if args.exit_code && outside { Err(Failure::Code(OUTSIDE_EXIT_CODE).into()) } else { Ok(()) }
}

/// Files to follow: the given ones, or those of the given job.
fn logs(args: &Args) -> color_eyre::Result<(Vec<PathBuf>, Option<FollowedJob>)> {
    let [one] = args.logs.as_slice() else { return Ok((args.logs.iter().map(PathBuf::from).collect(), None)) };
    if !job::is_id(one) || Path::new(one).exists() {
        return Ok((vec![PathBuf::from(one)], None));
    }
    let found = job::query(&System, one, QUERY_TIMEOUT)?;
    if found.logs.is_empty() {
        return Err(eyre!("job {one}: scontrol reports no output file; give its log instead"));
    }
    let over = matches!(found.state, job::JobState::Completed | job::JobState::Failed);
    Ok((found.logs, Some(FollowedJob { id: one.clone(), queried: Instant::now(), over })))
}

/// Queries Slurm at intervals whether the job has ended. The logs are read once more after the end.
fn query(followed: &mut FollowedJob) -> color_eyre::Result<()> {
    if followed.queried.elapsed() < QUERY_INTERVAL {
        return Ok(());
    }
    followed.queried = Instant::now();
    match job::query(&System, &followed.id, QUERY_TIMEOUT) {
        Ok(found) => followed.over = matches!(found.state, job::JobState::Completed | job::JobState::Failed),
        // Slurm forgets jobs some minutes after their end.
        Err(job::JobError::Unknown { .. }) => followed.over = true,
        // The controller may respond later.
        Err(error @ job::JobError::Run { .. }) => write_stderr(&format!("warning: {error}")),
    }
    Ok(())
}

fn sleep_unless_stopped(time: Duration, stop: &AtomicBool) {
    let until = Instant::now() + time;
    while !stop.load(Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
}

fn print(event: &Event, state: &WatchState, args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    let text = match args.format {
        Format::Text => globals.charset().write(&event.text(state)).into_owned(),
        Format::Json => event.json(state).to_string(),
    };
    Ok(output::print(&(text + "\n"))?)
}

/// Runs the alarm command. A failure is reported, and the watch continues.
fn alarm(event: &Event, state: &WatchState, args: &Args, followed: Option<&FollowedJob>) {
    let Some(command) = args.on_alarm.as_ref().filter(|_| event.is_alarm(state)) else { return };
    let cause =
        state.diagnosis.as_ref().and_then(|diagnosis| diagnosis.first()).map_or("unknown", |first| first.cause.name());
    let step = state.last_step().map_or_else(String::new, |step| step.to_string());
    let job = followed.map_or("", |job| &job.id);
    let message = event.text(state);
    let values = [("{message}", message.as_str()), ("{cause}", cause), ("{step}", &step), ("{job}", job)];
    let run = command.command(&values).with_timeout(ALARM_LIMIT);
    write_stderr(&format!("alarm: {}", run.shell_line()));
    match System.run(&run).map(|output| output.unreliability()) {
        Ok(None) => {}
        Ok(Some(complaint)) => write_stderr(&format!("warning: the alarm command failed: {complaint}")),
        Err(error) => write_stderr(&format!("warning: the alarm command failed: {error}")),
    }
}
