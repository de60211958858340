//! The terminal is restored even where the program cannot do it: after SIGKILL, or out of memory.

use std::path::Path;
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;

use crate::common::pty::Session;

/// Runs the program in a shell that keeps the terminal open, as login shells do, and that finally prints the exit status
/// and whether the terminal modes are unchanged. It prints after they are, since the guard then has left the alternate
/// screen, on which the text would be lost. The program's process id is in `pid`.
fn below_a_shell(dir: &Path, limit_kb: Option<u64>, arguments: &str) -> Session {
    let limit = limit_kb.map_or_else(String::new, |limit| format!("ulimit -v {limit}; "));
    let program = env!("CARGO_BIN_EXE_atlas");
    let script = format!(
        "before=$(stty -g); sh -c '{limit}echo $$ > pid; exec {program} {arguments}'; status=$?; n=0; \
         while [ \"$(stty -g)\" != \"$before\" ] && [ $n -lt 600 ]; do n=$((n + 1)); sleep 0.05; done; \
         echo \"ended with $status\"; [ \"$(stty -g)\" = \"$before\" ] && echo the modes are back; read line"
    );
    let mut command = CommandBuilder::new("sh");
    command.args(["-c", &script]);
    command.env("ATLAS_HISTORY", "off");
    Session::run(dir, command)
}

fn pid(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("pid")).unwrap().trim().to_owned()
}

/// Sends a signal, unless the program has exited already.
fn kill(signal: &str, pid: &str) {
    let mut command = std::process::Command::new("kill");
    command.args(["-s", signal, pid]).stderr(std::process::Stdio::null()).status().unwrap();
}

fn assert_given_back(session: &Session) {
    session.wait_for("the modes are back");
    session.assert_restored();
}

#[test]
fn terminal_is_restored_after_sigkill_and_sigsegv() {
    // The second SIGSEGV is not caught: the first one removes the handler for stack overflows.
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
fn normal_exit_restores_the_terminal_without_moving_the_cursor() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = below_a_shell(dir.path(), None, "--fresh");
    session.wait_for("Results");
    session.keys("q");
    session.wait_for("ended with 0");
    assert_given_back(&session);
    let screen = session.screen();
    assert!(screen.lines().next().unwrap().contains("ended with 0"), "the cursor was moved:\n{screen}");
}

/// Peak size of the address space of a process, kB.
#[cfg(target_os = "linux")]
fn address_space(pid: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn terminal_is_restored_after_an_allocation_failure() {
    const PAIR: &str = "--fresh --target h100-sxm-1024 --workload llama3.1-405b-train";
    let dir = tempfile::tempdir().unwrap();
    let mut session = below_a_shell(dir.path(), None, PAIR);
    session.wait_for("Results");
    let needs = address_space(&pid(dir.path()));
    session.keys("q");
    assert_given_back(&session);
    let mut aborted = 0;
    // From too little to start with, to enough for everything but the simulation.
    for limit in [needs / 2, needs - 4096, needs + 4096, needs + 32_768] {
        let dir = tempfile::tempdir().unwrap();
        let mut session = below_a_shell(dir.path(), Some(limit), PAIR);
        let began = Instant::now();
        // The message may be cleared from the screen before it is checked, so the raw output is searched.
        let ended = |session: &Session| !written(session, "ended with").is_empty();
        while !ended(&session) && !session.screen().contains("Results") && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        if !ended(&session) {
            // Simulates the largest cluster, keeping all tasks.
            session.keys("9");
            let began = Instant::now();
            while !ended(&session) && began.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        if !ended(&session) {
            kill("TERM", &pid(dir.path()));
            session.wait("the end", ended);
        }
        aborted += u32::from(!written(&session, "ended with 134").is_empty());
        assert_given_back(&session);
    }
    assert!(aborted > 0, "the memory was never short");
}

/// Positions of a text in the output of the program.
fn written(session: &Session, what: &str) -> Vec<usize> {
    let bytes = session.bytes.lock().unwrap();
    let found = bytes.windows(what.len()).enumerate().filter(|(_, window)| *window == what.as_bytes());
    found.map(|(at, _)| at).collect()
}

const IMAGE: &str = "\x1b_Ga=T,";
const SAME_IMAGE: &str = "\x1b_Ga=p,";
const NO_IMAGE: &str = "\x1b_Ga=d,";

#[test]
fn images_are_deleted_with_their_view_and_before_exit() {
    for (signal, ends) in [(None, "qq"), (Some("TERM"), ""), (Some("KILL"), "")] {
        let dir = tempfile::tempdir().unwrap();
        let mut session = Session::start_in(dir.path(), &["--fresh"], &[("KITTY_WINDOW_ID", "1")]);
        session.wait_for("Results");
        assert!(written(&session, "\x1b_G").is_empty(), "an image without a chart");
        session.keys("4");
        session.wait("an image", |session| written(session, IMAGE).len() == 1);
        session.keys("1");
        session.wait("the image to go", |session| written(session, NO_IMAGE).len() == 1);
        session.keys("4");
        // The pixels of the image are not sent a second time.
        session.wait("the image again", |session| written(session, SAME_IMAGE).len() == 1);
        assert_eq!(written(&session, IMAGE).len(), 1);
        if let Some(signal) = signal {
            session.signal(signal);
        }
        session.keys(ends);
        session.wait_for_end();
        session.wait("the screen to be left", |session| !written(session, "\x1b[?1049l").is_empty());
        let (gone, left) = (written(&session, NO_IMAGE), written(&session, "\x1b[?1049l"));
        assert!(gone.len() > 1 && gone[1] < left[0], "{signal:?}: {gone:?} {left:?}");
        session.assert_restored();
    }
}

#[test]
fn terminals_without_image_support_get_braille_charts() {
    for environment in
        [&[][..], &[("KITTY_WINDOW_ID", "1"), ("ATLAS_GRAPHICS", "off")], &[("KITTY_WINDOW_ID", "1"), ("TMUX", "x")]]
    {
        let dir = tempfile::tempdir().unwrap();
        let mut session = Session::start_in(dir.path(), &["--fresh"], environment);
        session.wait_for("Results");
        session.keys("4");
        session.wait_for("4 Sweep: ");
        session.wait("braille", |session| session.screen().contains(|c: char| ('\u{2801}'..='\u{28ff}').contains(&c)));
        session.keys("q");
        session.keys("q");
        session.wait_for_end();
        assert!(written(&session, "\x1b_G").is_empty(), "{environment:?}");
    }
}

#[test]
fn unknown_graphics_setting_is_reported_with_valid_values() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::start_in(dir.path(), &["--fresh"], &[("ATLAS_GRAPHICS", "sixel")]);
    session.wait_for("ATLAS_GRAPHICS is `sixel`; expected `off` or `kitty`");
    session.keys("q");
    session.wait_for_end();
}
