//! CPU time and memory of many instances at once, many logs, and a day of requests. Run by `cargo xtask load`.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;

use crate::common::program::driven;
use crate::common::pty::Session;

const INSTANCES: usize = 50;
const LOGS: usize = 100;
const REQUESTS: usize = 100_000;

/// CPU time so far, seconds, and resident memory, private and total, MB.
fn usage(pid: u32) -> (f64, f64, f64) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // Clock ticks are hundredths of a second on Linux.
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let sum = |names: &[&str]| -> f64 {
        let lines = rollup.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
        lines.map(|line| line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap()).sum()
    };
    (ticks / 100.0, sum(&["Private_Clean:", "Private_Dirty:"]) / 1024.0, sum(&["Rss:"]) / 1024.0)
}

fn start(dir: &Path) -> Session {
    let mut command = CommandBuilder::new(driven());
    command.args(["--target", "h100-sxm-8", "--workload", "llama3.1-8b-serve"]);
    command.env("HOME", dir);
    Session::run(dir, command)
}

/// Means over all instances.
fn mean(of: &[(f64, f64, f64)]) -> (f64, f64, f64) {
    let n = of.len() as f64;
    let sum = of.iter().fold((0.0, 0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2));
    (sum.0 / n, sum.1 / n, sum.2 / n)
}

#[test]
#[ignore = "long: `cargo xtask load`"]
fn fifty_instances_share_a_home() {
    let dir = tempfile::tempdir().unwrap();
    let mut sessions: Vec<Session> = (0..INSTANCES).map(|_| start(dir.path())).collect();
    for session in &sessions {
        session.wait_for("Results");
    }
    // By now the session is saved, and everything that is loaded lazily is loaded.
    std::thread::sleep(Duration::from_secs(5));
    let all = |sessions: &[Session]| -> Vec<(f64, f64, f64)> {
        sessions.iter().map(|session| usage(session.child.process_id().unwrap())).collect()
    };
    let began = all(&sessions);
    std::thread::sleep(Duration::from_secs(20));
    let idle = all(&sessions);
    let (start, private, resident) = mean(&began);
    println!(
        "{INSTANCES} instances: {start:.2} s to start, {private:.1} MB of its own, {resident:.1} MB resident each"
    );
    println!("idle for 20 s: {:.3} s of processor each", mean(&idle).0 - start);
    let keys = Instant::now();
    for session in &mut sessions {
        // One knob each, so that all write the same session file.
        session.keys("Kjj+3");
    }
    for session in &sessions {
        session.wait_for("3 Breakdown");
    }
    println!("a key in each: all answered after {:?}", keys.elapsed());
    std::thread::sleep(Duration::from_secs(4));
    for session in &mut sessions {
        session.signal("TERM");
    }
    for session in &mut sessions {
        session.wait_for_end();
        session.assert_restored();
    }
    let mut kept = 0;
    for folder in ["state/atlas-fabric/sessions", "state/atlas-fabric/sessions/directories"] {
        for entry in std::fs::read_dir(dir.path().join(folder)).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_file() {
                let text = std::fs::read_to_string(&entry).unwrap();
                serde_json::from_str::<serde_json::Value>(&text).unwrap();
                assert!(entry.extension().is_some_and(|kind| kind == "json"), "{}", entry.display());
                kept += 1;
            }
        }
    }
    println!("{kept} sessions kept, all whole");
    assert!(kept > 0);
}

fn program(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(driven());
    command.args(arguments).current_dir(dir).env("ATLAS_CONFIG_DIR", dir.join("none")).env("ATLAS_STATE_DIR", dir);
    command
}

#[test]
#[ignore = "long: `cargo xtask load`"]
fn a_hundred_logs_are_watched_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..LOGS).map(|n| format!("job-{n}.log")).collect();
    let line = |step: u64| {
        format!(
            " [2024-05-01 00:00:00] iteration {step:8}/ 100000 | consumed samples: {:12} | elapsed time per iteration \
             (ms): 2034.5 | throughput per GPU (TFLOP/s/GPU): 412.3 | learning rate: 1.0E-4 | global batch size:   512 | \
             lm loss: 2.1E+00 | loss scale: 1.0 | grad norm: 0.9 |\n",
            step * 512
        )
    };
    for name in &names {
        std::fs::write(dir.path().join(name), (1..50).map(line).collect::<String>()).unwrap();
    }
    let mut arguments = vec!["watch", "--target", "h100-sxm-64", "--workload", "llama3.1-8b-train"];
    arguments.extend(names.iter().map(String::as_str));
    let mut child: Child =
        program(dir.path(), &arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(5));
    assert!(child.try_wait().unwrap().is_none(), "it ended: {:?}", child.wait_with_output());
    let (before, began) = (usage(child.id()), Instant::now());
    let mut step = 50;
    while began.elapsed() < Duration::from_secs(20) {
        for name in &names {
            let mut file = std::fs::File::options().append(true).open(dir.path().join(name)).unwrap();
            file.write_all(line(step).as_bytes()).unwrap();
        }
        step += 1;
        std::thread::sleep(Duration::from_secs(1));
    }
    let after = usage(child.id());
    let wall = began.elapsed().as_secs_f64();
    println!(
        "{LOGS} logs, a line a second each: {:.1} % of a core, {:.1} MB before, {:.1} MB after {wall:.0} s",
        100.0 * (after.0 - before.0) / wall,
        before.2,
        after.2
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
#[ignore = "long: `cargo xtask load`"]
fn batch_answers_piped_requests_in_constant_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut child =
        program(dir.path(), &["run", "--batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let began = Instant::now();
    let writer = std::thread::spawn(move || {
        let mut lines = String::new();
        for n in 0..REQUESTS {
            let (concurrency, tp) = (1 + n % 512, 1 << (n % 4));
            writeln!(
                lines,
                "{{\"id\": {n}, \"target\": \"h100-sxm-8\", \"workload\": \"llama3.1-8b-serve\", \"knobs\": \
                 {{\"concurrency\": {concurrency}, \"tp\": {tp}}}}}"
            )
            .unwrap();
            if lines.len() > 4096 {
                input.write_all(lines.as_bytes()).unwrap();
                lines.clear();
            }
        }
        input.write_all(lines.as_bytes()).unwrap();
    });
    let (mut answers, mut memory) = (0_usize, Vec::new());
    for answer in output.lines() {
        let answer = answer.unwrap();
        if answers % 10_000 == 5_000 {
            assert!(answer.contains(&format!("\"id\":{answers}")) || answer.contains(&format!("\"id\": {answers}")));
            memory.push(usage(child.id()));
        }
        answers += 1;
    }
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(answers, REQUESTS);
    let seconds = began.elapsed().as_secs_f64();
    let (first, last) = (memory[1], memory[memory.len() - 1]);
    println!(
        "{REQUESTS} requests in {seconds:.1} s, {:.1} µs of processor each; {:.1} MB after 15,000, {:.1} MB at the end",
        1e6 * last.0 / REQUESTS as f64,
        first.2,
        last.2
    );
    assert!(last.2 < first.2 + 8.0, "memory grows: {memory:?}");
}
