//! Long-running commands exit soon after Ctrl-C or SIGTERM, with an exit code for the interruption, and their output is
//! marked as partial.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::program::driven;

/// Limit for the time to exit: far longer than needed, as the machine may be loaded, and far shorter than the work.
const PATIENCE: Duration = Duration::from_secs(60);

const SERVING: &str = "--target h100-sxm-8 --workload llama3.1-70b-serve";
const TRAINING: &str = "--target h100-sxm-64 --workload llama3.1-8b-train";

struct Ended {
    stdout: String,
    stderr: String,
    code: Option<i32>,
    /// Whether the program had exited before the signal.
    before: bool,
    /// Time from the signal to the exit.
    took: Duration,
    /// CPU time from the signal to the exit, which other load on the machine does not increase.
    worked: f64,
}

const STEP: &str =
    " iteration 1/ 20 | elapsed time per iteration (ms): 1500.0 | global batch size: 8 | lm loss: 2.5 |\n";

/// Sum of CPU time fields of a process, seconds: 11 and 12 are its own, 13 and 14 those of its children.
fn processor_time(process: &str, fields: [usize; 2]) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, after)| after).split_whitespace().collect();
    // Clock ticks are hundredths of a second on Linux.
    fields.iter().filter_map(|field| after_name.get(*field)?.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Runs the command, sends it `signal` after `after`, and waits for it to exit.
fn interrupted(arguments: &str, signal: &str, after: Duration) -> Ended {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("grows.log"), STEP).unwrap();
    interrupted_in(dir.path(), arguments, signal, after)
}

/// An answer without the line that states how long the search took, which differs between runs.
fn without_duration(answer: &str) -> String {
    answer.lines().filter(|line| !line.starts_with("Searched all ")).collect::<Vec<_>>().join("\n")
}

/// Output of the command when it is not interrupted.
fn uninterrupted(arguments: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(driven());
    command.args(arguments.split(' ')).current_dir(dir.path()).stdin(Stdio::null());
    command.env("ATLAS_CONFIG_DIR", dir.path().join("none")).env("ATLAS_STATE_DIR", dir.path().join("state"));
    String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
}

fn interrupted_in(dir: &Path, arguments: &str, signal: &str, after: Duration) -> Ended {
    let mut command = Command::new(driven());
    command.args(arguments.split(' ')).current_dir(dir);
    command.env("ATLAS_CONFIG_DIR", dir.join("none")).env("ATLAS_STATE_DIR", dir.join("state"));
    // Resolving the symbols of a backtrace takes longer than the exit itself.
    command.env_remove("RUST_BACKTRACE");
    let others = processor_time("self", [13, 14]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let input = child.stdin.take();
    let pid = child.id().to_string();
    let sent = std::thread::spawn({
        let signal = signal.to_owned();
        move || {
            std::thread::sleep(after);
            let worked = processor_time(&pid, [11, 12]);
            let sent = Command::new("kill").args(["-s", &signal, &pid]).stderr(Stdio::null()).status().unwrap();
            (sent.success(), Instant::now(), worked)
        }
    });
    // Reads all output, so that the program is never blocked by a full pipe.
    let output = child.wait_with_output().unwrap();
    drop(input);
    let (alive, at, before) = sent.join().unwrap();
    let took = at.elapsed();
    assert!(took < PATIENCE, "{arguments}: {took:?} after {signal}");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let worked = (processor_time("self", [13, 14]) - others - before).max(0.0);
    Ended { stdout, stderr, code: output.status.code(), before: !alive, took, worked }
}

#[test]
fn interrupted_commands_fail_and_mark_partial_output() {
    let simulated = format!("simulate {SERVING} --replications 10000 --format json");
    let large = "simulate --target h100-sxm-1024 --workload llama3.1-405b-train --set global=65536 --replications 100";
    let scaled = format!("scale {TRAINING} --nodes 1,2,4,8,16,32,64,128,256,512,1024 --replications 200");
    let swept = format!("sweep {SERVING} --over tp=1,2,4,8 --over concurrency=1..20000 --set engine=event");
    for (arguments, mark) in [
        (simulated.as_str(), "interrupted"),
        (large, "interrupted"),
        (&scaled, "interrupted"),
        (&swept, "stopped at point"),
        ("validate --engine event --format json", "interrupted after"),
    ] {
        for (signal, after) in [("INT", 800), ("TERM", 1500)] {
            let ended = interrupted(arguments, signal, Duration::from_millis(after));
            let Ended { stdout, stderr, code, before, .. } = &ended;
            assert!(!before, "{arguments}: it ended before the signal");
            assert_ne!(*code, Some(0), "{arguments}: {stderr}");
            assert!(stderr.contains(mark) || stdout.is_empty(), "{arguments}: {stderr}\n{stdout}");
        }
    }
}

#[test]
fn a_batch_that_waits_for_input_ends_at_the_first_signal() {
    let ended = interrupted("run --batch -", "TERM", Duration::from_millis(500));
    assert_eq!((ended.code, ended.stdout.as_str()), (None, ""), "ended by the signal: {}", ended.stderr);
}

/// Long-running commands, each with the text on stderr that marks a partial result.
const LONG: [(&str, &str); 17] = [
    ("simulate SERVING --replications 10000 --format json", "interrupted"),
    ("simulate TRAINING --replications 10000 --out d", "interrupted"),
    ("scale TRAINING --nodes 1,2,4,8,16,32,64,128 --replications 200", "interrupted"),
    ("sweep SERVING --over tp=1,2,4,8 --over concurrency=1..20000 --set engine=event", "stopped at point"),
    ("sweep SERVING --over tp=1,2,4,8 --over concurrency=1..20000 --set engine=event --out s.csv", "stopped at point"),
    ("optimize --target h100-sxm-1024 --workload llama3.1-405b-train --set engine=event", "interrupted"),
    ("optimize SERVING --method exhaustive", "interrupted"),
    ("ask SERVING which target is cheapest", "interrupted"),
    ("compare --workload llama3.1-70b-serve --set engine=event", "interrupted"),
    ("frontier SERVING --set engine=event", "interrupted"),
    ("sensitivity SERVING --set engine=event", "interrupted"),
    ("advise SERVING --set engine=event", "interrupted"),
    ("validate --engine event --format json", "interrupted after"),
    ("validate --fit", "interrupted after"),
    ("ingest -", "interrupted"),
    ("run --batch -", "interrupted"),
    // It prints what it has read so far, so there is no partial result.
    ("watch grows.log", ""),
];

#[test]
fn every_long_command_ends_after_a_signal_and_marks_partial_output() {
    for (index, (arguments, mark)) in LONG.into_iter().enumerate() {
        let arguments = arguments.replace("SERVING", SERVING).replace("TRAINING", TRAINING);
        // Both before and after the work has started.
        for (turn, after) in [100, 700].into_iter().enumerate() {
            let signal = if (index + turn).is_multiple_of(2) { "INT" } else { "TERM" };
            let ended = interrupted(&arguments, signal, Duration::from_millis(after));
            let Ended { stdout, stderr, code, before, .. } = &ended;
            assert_ne!(*code, Some(2), "{arguments}: {stderr}");
            // A command that finished before the signal must be complete.
            if *before {
                assert_eq!(*code, Some(0), "{arguments}: {stderr}");
                continue;
            }
            assert_ne!(*code, Some(101), "{arguments}, {signal}: {stderr}");
            let marked = stderr.contains(mark) || stdout.contains("\"partial\"");
            // A signal between the last line of output and the exit leaves a complete answer.
            let complete = || without_duration(stdout) == without_duration(&uninterrupted(&arguments));
            let done = *code == Some(0) || marked || stdout.is_empty() || complete();
            assert!(done, "{arguments}, {signal}: {code:?}\n{stderr}\n{stdout}");
        }
    }
}

/// Commands that take even longer, or need large files.
const LONGER: [&str; 16] = [
    "simulate --target h100-sxm-1024 --workload llama3.1-405b-train --set global=65536 --replications 100",
    "simulate --target h100-sxm-1024 --workload llama3.1-405b-train --set global=65536 --out d",
    "sweep SERVING --over tp=1,2,4,8 --over concurrency=1..200000 --out s.parquet",
    "optimize --target h100-sxm-1024 --workload llama3.1-405b-train",
    "break-even SERVING --set engine=event",
    "post-train --target h100-sxm-64 --train llama3.1-8b-rl-train",
    "ask TRAINING what is the cheapest layout with step time below 1 s",
    "report TRAINING --out r.html",
    "report SERVING --set engine=event --out r.pdf",
    "validate",
    "validate --engine event",
    "calibrate --target h100-sxm-8 large.csv --out p.yaml --force",
    "ingest large.log",
    "ingest large.json",
    "watch large.log",
    "run --batch large.log",
];
/// Maximum time from the signal to the exit, s.
const SOON: f64 = 0.2;

fn large_files(dir: &Path) -> std::io::Result<()> {
    std::fs::write(dir.join("grows.log"), STEP)?;
    let mut log = std::io::BufWriter::new(std::fs::File::create(dir.join("large.log"))?);
    let mut json = std::io::BufWriter::new(std::fs::File::create(dir.join("large.json"))?);
    json.write_all(b"{\"log_history\": [{\"loss\": 2.5}")?;
    let mut csv = std::io::BufWriter::new(std::fs::File::create(dir.join("large.csv"))?);
    writeln!(
        csv,
        "id,source,model,accelerator,num_accelerators,tp,pp,dp,seq_len,global_batch,precision,tokens_per_sec_per_accel"
    )?;
    for index in 0..1_500_000 {
        log.write_all(STEP.as_bytes())?;
        write!(json, ", {{\"loss\": 2.4, \"train_runtime\": {index}.5, \"epoch\": 0.5, \"step\": {index}}}")?;
        if index % 100 == 0 {
            let speed = 9000 + index / 200;
            writeln!(csv, "r{index},s{index},llama3.1-8b,nvidia-h100-sxm-80gb,8,1,1,8,8192,128,bf16,{speed}")?;
        }
    }
    json.write_all(b"]}")
}

/// Run by `cargo xtask cancel`.
#[test]
#[ignore = "long: `cargo xtask cancel`"]
fn long_run() {
    let dir = tempfile::tempdir().unwrap();
    large_files(dir.path()).unwrap();
    println!("seconds,processor_seconds,signal,after,code,command");
    let mut late = Vec::new();
    for arguments in LONG.iter().map(|(arguments, _)| *arguments).chain(LONGER) {
        let arguments = arguments.replace("SERVING", SERVING).replace("TRAINING", TRAINING);
        for (signal, after) in [("TERM", 150), ("INT", 500), ("TERM", 1200), ("INT", 2500)] {
            let ended = interrupted_in(dir.path(), &arguments, signal, Duration::from_millis(after));
            if ended.before {
                println!("over before,,{signal},{after},{:?},{arguments}", ended.code);
                break;
            }
            let line = format!(
                "{:.3},{:.2},{signal},{after},{:?},{arguments}",
                ended.took.as_secs_f64(),
                ended.worked,
                ended.code
            );
            println!("{line}");
            // Wall time is increased by other load, and CPU time is limited by the resolution of clock ticks, so both
            // must exceed the limit.
            if ended.took.as_secs_f64() > SOON && ended.worked > SOON {
                late.push(line);
            }
        }
    }
    assert!(late.is_empty(), "later than {SOON} s:\n{}", late.join("\n"));
}
