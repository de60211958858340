//! The real binary on a pseudo-terminal: its output, and how it exits.

#![cfg(unix)]

use std::path::Path;
use std::time::Duration;

use portable_pty::CommandBuilder;

use crate::common::pty::Session;

/// Selects the predecessor's first target and workload, whose values are known exactly.
const PREDECESSOR: [&str; 4] = ["--target", "NVIDIA_H100_8x_NVLink", "--workload", "gpt5_1t_train"];

fn predecessor_files(dir: &Path) {
    std::fs::create_dir_all(dir.join("workload")).unwrap();
    for file in ["targets.yaml", "workloads.yaml"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/predecessor").join(file);
        std::fs::copy(from, dir.join("workload").join(file)).unwrap();
    }
}

#[test]
fn tui_starts_in_an_empty_directory_and_exits_with_0() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::start(dir.path(), &PREDECESSOR);
    session.wait_for("NVIDIA_H100_8x_NVLink");
    session.wait_for("2642 ");
    session.keys("Kjj ");
    session.wait_for("1 changed");
    session.keys("q");
    assert_eq!(session.wait_for_end(), 0);
    session.assert_restored();
}

/// CPU time of a process, seconds, and whether it has exited without being waited for.
#[cfg(target_os = "linux")]
fn worked(pid: u32) -> (f64, bool) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, after)| after).split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    ((ticks(11) + ticks(12)) / 100.0, fields.first().is_none_or(|state| *state == "Z"))
}

#[cfg(target_os = "linux")]
#[test]
fn sigterm_interrupts_a_burst_of_pending_keys() {
    let dir = tempfile::tempdir().unwrap();
    let mut session =
        Session::start(dir.path(), &["--fresh", "--target", "h100-sxm-8", "--workload", "llama3.1-8b-serve"]);
    session.wait_for("Results");
    let pid = session.child.process_id().unwrap();
    // Every two of them recompute the scenario; together they take seconds.
    session.keys("K");
    let (idle, _) = worked(pid);
    session.keys(&"+-".repeat(2000));
    let mut before = idle;
    while before < idle + 0.1 {
        std::thread::sleep(Duration::from_millis(5));
        before = worked(pid).0;
    }
    session.signal("TERM");
    let mut after = worked(pid);
    while !after.1 {
        std::thread::sleep(Duration::from_millis(10));
        after = worked(pid);
    }
    session.wait_for_end();
    assert!(after.0 - before < 1.0, "{} s of the processor after the signal", after.0 - before);
}

/// Session file in the directory's state, if it exists.
fn kept(dir: &Path) -> Option<String> {
    let sessions = std::fs::read_dir(dir.join("state/atlas-fabric/sessions/directories")).ok()?;
    let file =
        sessions.flatten().map(|entry| entry.path()).find(|path| path.extension().is_some_and(|e| e == "json"))?;
    std::fs::read_to_string(file).ok()
}

#[test]
fn changes_survive_sigkill() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::start(dir.path(), &[]);
    session.wait_for("Results");
    // The knobs pane: the third knob one step up, and a different view.
    session.keys("Kjj+");
    session.wait_for("1 changed");
    session.keys("3");
    session.wait_for("3 Breakdown");
    session.wait("the session to be written", |_| kept(dir.path()).is_some_and(|text| text.contains("breakdown")));
    session.signal("KILL");
    session.wait_for_end();
    let mut again = Session::start(dir.path(), &[]);
    again.wait_for("3 Breakdown");
    again.wait_for("1 changed");
    again.keys("q");
    again.keys("q");
    assert_eq!(again.wait_for_end(), 0);
}

#[test]
fn unchanged_session_writes_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::start(dir.path(), &[]);
    session.wait_for("Results");
    session.keys("?");
    session.wait_for("Help: keys");
    std::thread::sleep(Duration::from_millis(2_500));
    session.signal("KILL");
    session.wait_for_end();
    assert_eq!(kept(dir.path()), None);
}

#[test]
fn term_hup_and_int_restore_the_terminal() {
    for signal in ["TERM", "HUP", "INT"] {
        let dir = tempfile::tempdir().unwrap();
        let mut session = Session::start(dir.path(), &[]);
        session.wait_for("Results");
        // With a text field open, paste reports are on as well.
        session.keys("/");
        session.wait_for("Find");
        session.signal(signal);
        session.wait_for_end();
        session.assert_restored();
    }
}

#[test]
fn idle_and_ineffective_keys_produce_no_output() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::start(dir.path(), &[]);
    session.wait_for("Results");
    session.keys("g");
    std::thread::sleep(Duration::from_millis(300));
    let before = session.bytes.lock().unwrap().len();
    session.keys("kkk\u{1b}[A");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(session.bytes.lock().unwrap().len(), before);
    session.keys("q");
    session.wait_for_end();
}

#[test]
fn ctrl_z_restores_the_terminal_and_fg_redraws_the_screen() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = CommandBuilder::new("bash");
    command.args(["--norc", "--noprofile", "--noediting", "-i"]);
    command.env("PS1", "ready> ");
    let mut session = Session::run(dir.path(), command);
    session.wait_for("ready>");
    session.keys(&format!("{}\n", env!("CARGO_BIN_EXE_atlas")));
    session.wait_for("Results");
    session.keys("\u{1a}");
    session.wait_for("Stopped");
    session.assert_restored();
    session.keys("fg\n");
    session.wait("the screen again", |session| {
        session.parser().screen().alternate_screen() && session.screen().contains("Results")
    });
    session.keys("q");
    session.wait("the prompt", |session| !session.parser().screen().alternate_screen());
    session.keys("exit\n");
    session.wait_for_end();
}

#[test]
fn files_are_reloaded_after_write_rename_delete_and_swap() {
    let dir = tempfile::tempdir().unwrap();
    predecessor_files(dir.path());
    let targets = dir.path().join("workload/targets.yaml");
    let text = std::fs::read_to_string(&targets).unwrap();
    let mut session = Session::start(dir.path(), &PREDECESSOR);
    session.wait_for("$10.47");
    let price = |usd: &str| text.replace("hourly_usd: 98.32", &format!("hourly_usd: {usd}"));
    // In place.
    std::fs::write(&targets, price("48.75")).unwrap();
    session.wait_for("$5.26");
    // By an atomic rename.
    let other = dir.path().join("new.yaml");
    std::fs::write(&other, price("28.75")).unwrap();
    std::fs::rename(&other, &targets).unwrap();
    session.wait_for("$3.15");
    // Broken: the last valid state is kept, and the diagnostic can be read.
    std::fs::write(&targets, "- name: [").unwrap();
    session.wait_for("1 error");
    session.wait_for("$3.15");
    session.keys("!");
    session.wait_for("not YAML");
    session.keys("!");
    // Deleted and written again.
    std::fs::remove_file(&targets).unwrap();
    session.wait_for("$10.47");
    std::fs::write(&targets, price("18.75")).unwrap();
    session.wait_for("$2.10");
    // The whole directory swapped.
    std::fs::rename(dir.path().join("workload"), dir.path().join("old")).unwrap();
    predecessor_files(dir.path());
    std::fs::write(&targets, price("8.75")).unwrap();
    session.wait_for("$1.05");
    session.keys("q");
    assert_eq!(session.wait_for_end(), 0);
}

#[test]
fn editor_opens_at_the_line_of_the_entry_and_edits_are_reloaded() {
    let dir = tempfile::tempdir().unwrap();
    predecessor_files(dir.path());
    let editor = dir.path().join("vi");
    std::fs::write(&editor, "#!/bin/sh\necho \"$1\" > line\nsed -i 's/hourly_usd: 98.32/hourly_usd: 48.75/' \"$2\"\n")
        .unwrap();
    std::fs::set_permissions(&editor, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_atlas"));
    command.args(PREDECESSOR);
    command.env("EDITOR", &editor);
    command.env("VISUAL", "");
    let mut session = Session::run(dir.path(), command);
    session.wait_for("$10.47");
    session.keys("e");
    session.wait_for("$5.26");
    assert_eq!(std::fs::read_to_string(dir.path().join("line")).unwrap().trim(), "+2");
    session.keys("q");
    session.wait_for_end();
    session.assert_restored();
}

#[test]
fn built_in_entry_is_copied_to_the_workload_directory_before_editing() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_atlas"));
    command.args(PREDECESSOR);
    command.env("EDITOR", "sed -i 's/hourly_usd: 98.32/hourly_usd: 48.75/' \"$2\" #");
    command.env("VISUAL", "");
    let mut session = Session::run(dir.path(), command);
    session.wait_for("$10.47");
    session.keys("e");
    session.wait_for("press e again to copy it to workload/targets.yaml");
    assert!(!dir.path().join("workload").exists(), "nothing is written unasked");
    session.keys("e");
    session.wait_for("$5.26");
    session.keys("q");
    session.wait_for_end();
    session.assert_restored();
}

#[test]
fn record_is_saved_in_the_out_directory() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::start(dir.path(), &["--out", "records"]);
    session.wait_for("Results");
    session.keys("s");
    session.wait_for("saved");
    session.keys("q");
    session.wait_for_end();
    assert!(dir.path().join("records/last_run.json").exists());
}

/// Also with tmux's wrapping, since nested terminals are common.
#[test]
fn copied_text_is_sent_by_osc_52_also_through_tmux() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_atlas"));
    command.args(PREDECESSOR);
    command.env("TMUX", "/tmp/tmux,1,0");
    let mut session = Session::run(dir.path(), command);
    session.wait_for("Results");
    session.keys("Hy");
    session.wait_for("copied ");
    let bytes = session.bytes.lock().unwrap().clone();
    let text = String::from_utf8_lossy(&bytes);
    // NVIDIA_H100_8x_NVLink in base64.
    let name = "TlZJRElBX0gxMDBfOHhfTlZMaW5r";
    assert!(text.contains(&format!("\u{1b}]52;c;{name}\u{7}")));
    assert!(text.contains(&format!("\u{1b}Ptmux;\u{1b}\u{1b}]52;c;{name}\u{7}\u{1b}\\")));
    session.keys("q");
    session.wait_for_end();
    session.assert_restored();
}

#[test]
fn changed_knob_is_written_to_its_file_after_confirmation() {
    let dir = tempfile::tempdir().unwrap();
    predecessor_files(dir.path());
    let targets = dir.path().join("workload/targets.yaml");
    let before = std::fs::read_to_string(&targets).unwrap();
    let mut session = Session::start(dir.path(), &PREDECESSOR);
    session.wait_for("$10.47");
    session.keys("/hourly_usd\r+S");
    session.wait_for("Write to the files");
    assert_eq!(std::fs::read_to_string(&targets).unwrap(), before, "nothing is written before Enter");
    session.keys("\r");
    session.wait_for("wrote ");
    assert_eq!(std::fs::read_to_string(&targets).unwrap(), before.replacen("hourly_usd: 98.32", "hourly_usd: 99", 1));
    session.wait("the knob to be turned no longer", |session| !session.screen().contains("1 changed"));
    session.keys("q");
    session.wait_for_end();
}

#[test]
fn no_color_suppresses_color_sequences() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_atlas"));
    command.env("NO_COLOR", "1");
    let mut session = Session::run(dir.path(), command);
    session.wait_for("Results");
    session.keys("q");
    session.wait_for_end();
    let bytes = session.bytes.lock().unwrap();
    let text = String::from_utf8_lossy(&bytes);
    // An SGR sequence that sets a color: 30–37, 38;…, 40–47, 48;…, 90–97, 100–107.
    let color = |code: &str| {
        matches!(code.len(), 2 | 3)
            && ["3", "4", "9", "10"].iter().any(|c| code.starts_with(c))
            && !["39", "49", "10"].contains(&code)
    };
    let sequences = text.split("\u{1b}[").filter_map(|rest| rest.split_once('m')).map(|(codes, _)| codes);
    let found = sequences
        .filter(|codes| codes.chars().all(|c| c.is_ascii_digit() || c == ';'))
        .find(|codes| codes.split(';').any(color));
    assert_eq!(found, None);
}

/// Session file of the only directory that has one.
fn session_file(dir: &Path) -> std::path::PathBuf {
    let sessions = dir.join("state/atlas-fabric/sessions/directories");
    let mut files: Vec<_> = std::fs::read_dir(&sessions).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn session_restores_tabs_knobs_theme_and_view() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::start(dir.path(), &PREDECESSOR);
    session.wait_for("2642 ");
    session.keys("Kjj ");
    session.wait_for("1 changed");
    session.keys("TC");
    session.wait_for("C Compare gpt5_1t_train");
    session.keys("]:theme light\r");
    session.wait_for("theme:");
    session.keys("q");
    assert_eq!(session.wait_for_end(), 0);
    // Two tabs: the first one visible, with its knob and theme; the second one in its view.
    let mut session = Session::start(dir.path(), &[]);
    session.wait_for("1 changed");
    assert!(session.screen().contains("NVIDIA_H100_8x_NVLink"), "{}", session.screen());
    session.keys("]");
    session.wait_for("C Compare");
    session.keys("\u{3}");
    session.wait_for_end();
    // A target given on the command line takes precedence, and the saved state is kept beside it.
    let mut session = Session::start(dir.path(), &PREDECESSOR);
    session.wait_for("2642 ");
    assert!(!session.screen().contains("1 changed"), "{}", session.screen());
    session.wait_for(" 3 ");
    session.keys("\u{3}");
    session.wait_for_end();
    // A fresh start ignores the saved state, and replaces it after the first change.
    let mut session = Session::start(dir.path(), &["--fresh"]);
    session.wait_for("Results");
    assert!(!session.screen().contains("1 changed"), "{}", session.screen());
    session.keys("q");
    session.wait_for_end();
    assert!(!std::fs::read_to_string(session_file(dir.path())).unwrap().contains("cuda_graphs"));
}

#[test]
fn catchable_signals_restore_the_terminal_and_exit_nonzero() {
    for signal in ["USR1", "USR2", "ALRM", "VTALRM", "PROF", "XCPU", "XFSZ", "IO", "ABRT", "BUS", "SYS", "TRAP"] {
        let dir = tempfile::tempdir().unwrap();
        let mut session = Session::start(dir.path(), &[]);
        session.wait_for("Results");
        session.signal(signal);
        assert_ne!(session.wait_for_end(), 0, "{signal}");
        session.assert_restored();
    }
}

#[test]
fn ctrl_c_quits_during_an_unterminated_paste() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::start(dir.path(), &[]);
    session.wait_for("Results");
    session.keys("\u{1b}[200~lost");
    session.keys("\u{3}");
    session.wait_for_end();
    session.assert_restored();
}

#[test]
fn session_is_saved_on_hup_and_term() {
    for signal in ["HUP", "TERM"] {
        let dir = tempfile::tempdir().unwrap();
        let mut session = Session::start(dir.path(), &["tui", "--session", "night"]);
        session.wait_for("Results");
        session.keys("Ttrkept\r");
        session.wait_for("2 kept");
        session.signal(signal);
        session.wait_for_end();
        session.assert_restored();
        let file = dir.path().join("state/atlas-fabric/sessions/night.json");
        assert!(std::fs::read_to_string(file).unwrap().contains("kept"));
        let mut session = Session::start(dir.path(), &["tui", "--session", "night"]);
        session.wait_for("2 kept");
        session.keys("q");
        session.wait_for_end();
    }
}

#[test]
fn a_broken_session_is_reported_and_put_aside() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::start(dir.path(), &[]);
    session.wait_for("Results");
    session.keys("Wjq");
    assert_eq!(session.wait_for_end(), 0);
    let file = session_file(dir.path());
    std::fs::write(&file, "{ \"version\": 1, ").unwrap();
    let mut session = Session::start(dir.path(), &[]);
    session.wait_for("session: ");
    session.wait_for("Results");
    session.keys("q");
    assert_eq!(session.wait_for_end(), 0);
    assert_eq!(std::fs::read_to_string(file.with_extension("json.broken")).unwrap(), "{ \"version\": 1, ");
}

#[test]
fn tour_from_the_command_line_saves_no_session() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::start(dir.path(), &["demo", "llama70b_fits"]);
    session.wait_for("next");
    session.keys("  \u{3}");
    session.wait_for_end();
    assert!(!dir.path().join("state").exists());
}

#[test]
fn view_export_asks_before_overwriting_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::start(dir.path(), &PREDECESSOR);
    session.wait_for("Results");
    session.keys("Cx");
    session.wait_for("Export this view");
    session.keys("\r");
    session.wait_for("wrote ");
    let file = dir.path().join("out/NVIDIA_H100_8x_NVLink_gpt5_1t_train_compare.md");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("GROQ_LPU_NODE") && text.contains("atlas report --target"), "{text}");
    // The file exists now: the first Enter asks for confirmation, the second one overwrites it.
    std::fs::write(&file, "mine").unwrap();
    session.keys("x\r");
    session.wait_for("already exists");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    session.keys("\r");
    session.wait("the file", |_| {
        std::fs::read_to_string(&file).unwrap() == text || std::fs::read_to_string(&file).unwrap().contains("GROQ")
    });
    // As HTML, with a different file name.
    session.keys("x\t");
    session.wait_for("compare.html");
    session.keys("\u{15}mine.html\r");
    session.wait("the page", |_| dir.path().join("mine.html").exists());
    assert!(std::fs::read_to_string(dir.path().join("mine.html")).unwrap().starts_with("<!doctype html>"));
    session.keys("\u{3}");
    session.wait_for_end();
}
