//! Long work ends soon after Ctrl-C or SIGTERM, with an exit code that says so, and what is printed or written of it says
//! that it is a part.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long the program may take to end: far longer than it does, as the machine may be loaded, and far shorter than the
/// work.
const PATIENCE: Duration = Duration::from_secs(60);

const SERVING: &str = "--target h100-sxm-8 --workload llama3.1-70b-serve";
const TRAINING: &str = "--target h100-sxm-64 --workload llama3.1-8b-train";

struct Ended {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

/// Sends the signal after so long, and waits for the end.
fn interrupted(arguments: &str, signal: &str, after: Duration) -> Ended {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_atlas"));
    command.args(arguments.split(' ')).current_dir(dir.path());
    command.env("ATLAS_CONFIG_DIR", dir.path().join("none")).env("ATLAS_STATE_DIR", dir.path().join("state"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let input = child.stdin.take();
    let pid = child.id().to_string();
    let sent = std::thread::spawn({
        let signal = signal.to_owned();
        move || {
            std::thread::sleep(after);
            let sent = Command::new("kill").args(["-s", &signal, &pid]).status().unwrap();
            assert!(sent.success(), "it ended before the signal");
            Instant::now()
        }
    });
    // Reads all that it prints, so that it never waits for us.
    let output = child.wait_with_output().unwrap();
    drop(input);
    let took = sent.join().unwrap().elapsed();
    assert!(took < PATIENCE, "{arguments}: {took:?} after {signal}");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { stdout: text(&output.stdout), stderr: text(&output.stderr), code: output.status.code() }
}

#[test]
fn long_work_ends_soon_after_a_signal_and_says_that_it_is_a_part() {
    let simulated = format!("simulate {SERVING} --replications 10000 --format json");
    let large = "simulate --target h100-sxm-1024 --workload llama3.1-405b-train --set global=65536 --replications 100";
    let scaled = format!("scale {TRAINING} --nodes 1,2,4,8,16,32,64,128,256,512,1024 --replications 200");
    let swept = format!("sweep {SERVING} --over tp=1,2,4,8 --over concurrency=1..20000 --set engine=event");
    for (arguments, mark) in [
        (simulated.as_str(), "ended early"),
        (large, "ended early"),
        (&scaled, "ended early"),
        (&swept, "stopped at point"),
        ("validate --engine event --format json", "interrupted after"),
    ] {
        for (signal, after) in [("INT", 800), ("TERM", 1500)] {
            let ended = interrupted(arguments, signal, Duration::from_millis(after));
            let Ended { stdout, stderr, code } = &ended;
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
