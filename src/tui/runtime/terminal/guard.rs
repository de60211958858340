//! A process that restores the terminal if this one cannot: a failed allocation aborts, and SIGKILL ends the process
//! before it can write anything.
//!
//! It is a shell that reads from a pipe, one line for each change, whether the terminal is in use. If the pipe closes
//! while it is, the shell restores the modes. Without `sh` or `stty` there is no guard.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdin, Command, Stdio};

use rustix::termios::{InputModes, LocalModes, OutputModes, Termios};

/// `$1` is the sequence that leaves the alternate screen, `$2` are the modes to restore. The standard error of the
/// script is the terminal, whose modes `stty` changes through its standard input. The modes are restored only if output
/// processing is off, which is so only in the raw mode of this program: if the parent shell already controls the
/// terminal, it has set its own modes, which are kept.
const SCRIPT: &str = r#"
trap '' HUP TTIN TTOU TSTP
PATH=$PATH:/usr/bin:/bin
while read -r line; do taken=$line; done
[ "$taken" = yes ] || exit 0
printf %s "$1"
case $(stty -a <&2 2>/dev/null) in *-opost*) stty $2 <&2 2>/dev/null ;; esac
"#;

/// Write end of the pipe.
#[derive(Debug)]
pub(super) struct Guard(ChildStdin);

impl Guard {
    /// Starts the process. `leave` is the sequence that leaves the alternate screen, and `modes` are the terminal modes
    /// before this program changed them.
    pub(super) fn start(tty: BorrowedFd<'_>, out: BorrowedFd<'_>, leave: &str, modes: &Termios) -> io::Result<Guard> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "atlas-terminal-guard", leave, &stty_arguments(modes)]);
        shell.stdin(Stdio::piped()).stdout(out.try_clone_to_owned()?).stderr(tty.try_clone_to_owned()?);
        // A separate process group does not receive the signals sent to that of this program.
        shell.process_group(0).current_dir("/");
        shell.spawn()?.stdin.map(Guard).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// Tells the guard whether the terminal is in use. Errors are ignored: the guard may have exited.
    pub(super) fn set_in_use(&mut self, taken: bool) {
        let _ = self.0.write_all(if taken { b"yes\n" } else { b"no\n" });
    }
}

/// Returns the `stty` arguments for the modes that raw mode turns off and that were on.
fn stty_arguments(modes: &Termios) -> String {
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
