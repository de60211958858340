//! A process that gives the terminal back where this one cannot: an allocation that fails aborts, and SIGKILL ends a
//! program before it can write anything.
//!
//! It is a shell that reads a pipe: whether the terminal is taken, one line each time that changes. When the pipe ends
//! while it is, the shell undoes the modes. Where there is no `sh` or no `stty`, nothing watches.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdin, Command, Stdio};

use rustix::termios::{InputModes, LocalModes, OutputModes, Termios};

/// `$1` leaves the screen, `$2` are the modes to set. Its standard error is the terminal, whose modes `stty` changes on
/// its standard input. Output is processed in every mode but ours: where the shell that started us has the terminal
/// already, it has set its own modes, and they stay.
const SCRIPT: &str = r#"
trap '' HUP TTIN TTOU TSTP
PATH=$PATH:/usr/bin:/bin
while read -r line; do taken=$line; done
[ "$taken" = yes ] || exit 0
printf %s "$1"
case $(stty -a <&2 2>/dev/null) in *-opost*) stty $2 <&2 2>/dev/null ;; esac
"#;

/// The other end of the pipe.
#[derive(Debug)]
pub(super) struct Guard(ChildStdin);

impl Guard {
    /// Starts the process. `leave` is what leaves the screen, and `modes` those of the terminal when it was not taken.
    pub(super) fn start(tty: BorrowedFd<'_>, out: BorrowedFd<'_>, leave: &str, modes: &Termios) -> io::Result<Guard> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "atlas-terminal-guard", leave, &words(modes)]);
        shell.stdin(Stdio::piped()).stdout(out.try_clone_to_owned()?).stderr(tty.try_clone_to_owned()?);
        // In a group of its own, out of reach of what is sent to ours.
        shell.process_group(0).current_dir("/");
        shell.spawn()?.stdin.map(Guard).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// Says whether the terminal is taken. A guard that has gone hears nothing.
    pub(super) fn taken(&mut self, taken: bool) {
        let _ = self.0.write_all(if taken { b"yes\n" } else { b"no\n" });
    }
}

/// The modes that raw mode takes away and that were on, in the words of `stty`.
fn words(modes: &Termios) -> String {
    let input = [
        (InputModes::IGNBRK, "ignbrk"),
        (InputModes::BRKINT, "brkint"),
        (InputModes::PARMRK, "parmrk"),
        (InputModes::ISTRIP, "istrip"),
        (InputModes::INLCR, "inlcr"),
        (InputModes::IGNCR, "igncr"),
        (InputModes::ICRNL, "icrnl"),
        (InputModes::IXON, "ixon"),
    ];
    let local = [
        (LocalModes::ECHO, "echo"),
        (LocalModes::ECHONL, "echonl"),
        (LocalModes::ICANON, "icanon"),
        (LocalModes::ISIG, "isig"),
        (LocalModes::IEXTEN, "iexten"),
    ];
    let mut words = String::new();
    let input = input.into_iter().filter(|(mode, _)| modes.input_modes.contains(*mode)).map(|(_, word)| word);
    let local = local.into_iter().filter(|(mode, _)| modes.local_modes.contains(*mode)).map(|(_, word)| word);
    let output = modes.output_modes.contains(OutputModes::OPOST).then_some("opost");
    for word in input.chain(local).chain(output) {
        let _ = write!(words, "{word} ");
    }
    words
}
