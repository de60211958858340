//! Runs on this machine that outlive the submitting command.

use std::fs::OpenOptions;
use std::io;
use std::process::{Command, Stdio};

use super::{Plan, Run};

/// Starts a detached process that performs all runs one after the other. Their output is written to log files in the
/// directory of the script.
///
/// # Errors
/// The system's error.
pub fn start(plan: &Plan) -> io::Result<Vec<Run>> {
    const RUN_LOOP: &str = "for run in $(seq \"$2\"); do bash \"$1\" > \"$1.$run.log\" 2>&1; done";
    let bash = atlas_detect::runner::find_program("bash")
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "bash: not on PATH"))?;
    let path = plan.folder.join(&plan.file);
    let errors = OpenOptions::new().create(true).append(true).open(plan.folder.join(format!("{}.err", plan.file)))?;
    let mut process = Command::new(bash);
    process.args(["-c", RUN_LOOP, "runs"]).arg(&path).arg(plan.runs.to_string());
    process.current_dir(&plan.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
    // A separate process group, so that Ctrl-C in the terminal does not end the runs.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut process, 0);
    let child = process.spawn()?;
    let job = format!("pid:{}", child.id());
    let line = atlas_detect::text::shell_word(&path.display().to_string());
    Ok((1..=plan.runs)
        .map(|index| Run { index, command: format!("bash {line}"), job: Some(job.clone()), problem: None })
        .collect())
}
