//! The terminal is given back where the program itself cannot do it: killed at once, or out of memory.

use std::path::Path;
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;

use crate::common::pty::Session;

/// Runs the program below a shell that keeps the terminal, as login shells do, and that says at the end whether its modes
/// are the ones from before. The program's process id is in `pid`.
fn below_a_shell(dir: &Path, limit_kb: Option<u64>, arguments: &str) -> Session {
    let limit = limit_kb.map_or_else(String::new, |limit| format!("ulimit -v {limit}; "));
    let program = env!("CARGO_BIN_EXE_atlas");
    let script = format!(
        "before=$(stty -g); sh -c '{limit}echo $$ > pid; exec {program} {arguments}'; echo \"ended with $?\"; n=0; \
         while [ \"$(stty -g)\" != \"$before\" ] && [ $n -lt 600 ]; do n=$((n + 1)); sleep 0.05; done; \
         [ \"$(stty -g)\" = \"$before\" ] && echo the modes are back; read line"
    );
    let mut command = CommandBuilder::new("sh");
    command.args(["-c", &script]);
    command.env("ATLAS_HISTORY", "off");
    Session::run(dir, command)
}

fn pid(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("pid")).unwrap().trim().to_owned()
}

/// Sends a signal, unless the program has ended by itself.
fn kill(signal: &str, pid: &str) {
    let mut command = std::process::Command::new("kill");
    command.args(["-s", signal, pid]).stderr(std::process::Stdio::null()).status().unwrap();
}

fn assert_given_back(session: &Session) {
    session.wait_for("the modes are back");
    session.assert_restored();
}

#[test]
fn a_program_that_is_killed_leaves_a_terminal_that_works() {
    // The second SIGSEGV is not caught: the first one takes away what watches for overflowing stacks.
    for signals in [["KILL", "KILL"], ["SEGV", "SEGV"]] {
        let dir = tempfile::tempdir().unwrap();
        let session = below_a_shell(dir.path(), None, "--fresh");
        session.wait_for("Results");
        assert!(session.parser().screen().alternate_screen());
        for signal in signals {
            kill(signal, &pid(dir.path()));
            std::thread::sleep(Duration::from_millis(200));
        }
        session.wait_for("ended with");
        assert_given_back(&session);
    }
}

#[test]
fn a_program_that_gives_the_terminal_back_leaves_nothing_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = below_a_shell(dir.path(), None, "--fresh");
    session.wait_for("Results");
    session.keys("q");
    session.wait_for("ended with 0");
    assert_given_back(&session);
    let screen = session.screen();
    assert!(screen.lines().next().unwrap().contains("ended with 0"), "the cursor was moved:\n{screen}");
}

/// Address space of a process, kB: the most that it has had.
#[cfg(target_os = "linux")]
fn address_space(pid: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn an_allocation_that_fails_leaves_a_terminal_that_works() {
    const PAIR: &str = "--fresh --target h100-sxm-1024 --workload llama3.1-405b-train";
    let dir = tempfile::tempdir().unwrap();
    let mut session = below_a_shell(dir.path(), None, PAIR);
    session.wait_for("Results");
    let needs = address_space(&pid(dir.path()));
    session.keys("q");
    assert_given_back(&session);
    let mut aborted = 0;
    // From too little to start with to enough for all but the simulation.
    for limit in [needs / 2, needs - 4096, needs + 4096, needs + 32_768] {
        let dir = tempfile::tempdir().unwrap();
        let mut session = below_a_shell(dir.path(), Some(limit), PAIR);
        // The simulation of the largest cluster, with every task kept.
        let began = Instant::now();
        let ended = |session: &Session| session.screen().contains("ended with");
        while !ended(&session) && !session.screen().contains("Results") && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        if !ended(&session) {
            session.keys("E");
            let began = Instant::now();
            while !ended(&session) && began.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        if !ended(&session) {
            kill("TERM", &pid(dir.path()));
            session.wait_for("ended with");
        }
        aborted += u32::from(session.screen().contains("ended with 134"));
        assert_given_back(&session);
    }
    assert!(aborted > 0, "the memory was never short");
}
