//! A sweep as a job array: submitted, merged in order as parts arrive, submitted again where tasks failed.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use atlas_cluster::array::{Array, indices};
use atlas_detect::runner::System;
use color_eyre::eyre::eyre;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::Args;
use super::file::Output;
use super::part::range;
use crate::cli::failure::Failure;
use crate::cli::output::complain;
use crate::cli::run::writing;

/// Time between two looks for parts.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Time between two questions to Slurm.
const ASK_EVERY: Duration = Duration::from_secs(10);
/// Time between two lines about progress.
const TELL_EVERY: Duration = Duration::from_secs(30);

/// Submits what is missing, and merges until all is there.
pub(super) fn run(args: &Args, header: &[u8], sweep: u64, size: u64) -> color_eyre::Result<()> {
    let Some(out) = &args.out else { return Err(Failure::usage(["--slurm needs --out"]).into()) };
    let out = std::path::absolute(out)?;
    let tasks = args.tasks.min(size.max(1));
    // Parts of another sweep, or of another number of parts, are never taken for these.
    let name = out.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = out.with_file_name(format!("{name}.{sweep:016x}-{tasks}.parts"));
    let array = array(args, &folder, &out, sweep, tasks)?;
    if args.cancel {
        array.cancel(&System)?;
        complain(&format!("cancelled; {} keeps the parts that are done", folder.display()));
        return Ok(());
    }
    let mut output = Output::open(&out, sweep, size, args.restart)?;
    let part = |index: u64| folder.join(file_name(&out, index));
    let mut next = (0..=tasks).find(|index| range(*index, tasks, size).start == output.next()).ok_or_else(|| {
        eyre!("{} was begun with other parts; --restart begins anew, or go on with the same --tasks", out.display())
    })?;
    if args.restart {
        (0..tasks).try_for_each(|index| match std::fs::remove_file(part(index)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })?;
    }
    let missing = |next: u64| -> Vec<u64> { (next..tasks).filter(|index| !part(*index).exists()).collect() };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let (mut tries, mut asked, mut described) = (0, None::<Instant>, Instant::now());
    if next == 0 && output.next() == 0 {
        output.write(header, 0)?;
    }
    loop {
        while next < tasks && part(next).exists() {
            let lines = std::fs::read(part(next)).map_err(|error| writing(&part(next), &error))?;
            output.write(&lines, range(next, tasks, size).end)?;
            next += 1;
        }
        if next == tasks {
            break;
        }
        if stop.load(Relaxed) {
            output.finish(false)?;
            complain("the array goes on; the same command goes on merging, and with --cancel cancels it");
            return Err(Failure::Reported.into());
        }
        if asked.is_none_or(|at| at.elapsed() > ASK_EVERY) {
            // Asked before looking: what ended in between has left its part.
            let active = array.active(&System)?;
            let lacking = missing(next);
            asked = Some(Instant::now());
            if active == 0 && !lacking.is_empty() {
                if tries > args.retries {
                    output.finish(false)?;
                    return Err(eyre!(
                        "parts {} failed {tries} times; {} says why; the same command tries again",
                        indices(&lacking),
                        folder.join("part-I.log").display()
                    ));
                }
                confirm(args, &array, &lacking, tries)?;
                let job = array.submit(&System, &lacking)?;
                complain(&format!("submitted job {job}: {} of {tasks} parts", lacking.len()));
                tries += 1;
            } else if described.elapsed() > TELL_EVERY {
                described = Instant::now();
                let done = tasks - lacking.len() as u64;
                complain(&format!("{done} of {tasks} parts are done, {active} tasks wait or run"));
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
    output.finish(true)?;
    for index in 0..tasks {
        let _ = std::fs::remove_file(part(index));
        let _ = std::fs::remove_file(folder.join(format!("part-{index}.log")));
    }
    let _ = std::fs::remove_file(array.script_path());
    // What killed tasks had begun.
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(".atlas-") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    // Stays where it holds anything else.
    let _ = std::fs::remove_dir(&folder);
    complain(&format!("wrote {}", out.display()));
    Ok(())
}

fn file_name(out: &Path, index: u64) -> String {
    let ending = out.extension().unwrap_or_default().to_string_lossy();
    format!("part-{index}.{ending}")
}

/// The array whose tasks run this command with one part each.
fn array(args: &Args, folder: &Path, out: &Path, sweep: u64, tasks: u64) -> color_eyre::Result<Array> {
    let words = std::env::args_os().skip(1).map(|word| word.into_string());
    let words: Result<Vec<String>, _> = words.collect();
    let words = words.map_err(|word| eyre!("an argument is not UTF-8: {}", word.display()))?;
    let program = std::env::current_exe()?;
    let mut command = vec![program.display().to_string()];
    command.extend(without_slurm(&words));
    let ending = out.extension().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Array {
        name: format!("atlas-{sweep:016x}-{tasks}"),
        folder: folder.to_owned(),
        command,
        part: format!("/{tasks}@{sweep:016x}"),
        ending,
        options: args.sbatch.clone(),
    })
}

/// The arguments without those that concern the array and the file.
fn without_slurm(words: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let flag = word.split('=').next().unwrap_or_default();
        match flag {
            "--slurm" | "--yes" | "--restart" | "--cancel" => {}
            "--out" | "--tasks" | "--sbatch" | "--retries" => {
                if !word.contains('=') {
                    rest.next();
                }
            }
            _ => out.push(word.clone()),
        }
    }
    out
}

/// Shows what is submitted, and asks unless `--yes` says so. Failed tasks are submitted again as was agreed to.
fn confirm(args: &Args, array: &Array, parts: &[u64], tries: u32) -> color_eyre::Result<()> {
    if tries > 0 {
        complain(&format!("parts {} failed; submitted again", indices(parts)));
        return Ok(());
    }
    complain(&format!("{}\n# {}", array.script(), array.submission(parts).shell_line()));
    if args.yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(eyre!("nothing is submitted: add --yes to submit what is shown"));
    }
    complain("submit? [y/N]");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    if line.trim().eq_ignore_ascii_case("y") { Ok(()) } else { Err(eyre!("nothing was submitted")) }
}

#[cfg(test)]
mod tests {
    use super::without_slurm;

    #[test]
    fn a_task_gets_the_command_without_what_concerns_the_array() {
        let words = "sweep --slurm --over tp=1,2 --out a.csv --tasks=4 --sbatch -p --sbatch=cpu --yes --workload w";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        assert_eq!(without_slurm(&words).join(" "), "sweep --over tp=1,2 --workload w");
    }
}
