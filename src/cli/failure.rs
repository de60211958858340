//! How failures end: what is said on stderr, and the exit code.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use super::output::complain;
use atlas_document::{Diagnostic, Diagnostics};

/// A failure with an exit code of its own, or one that needs no further words.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line cannot be meant: exit 2.
    #[error("{0}")]
    Usage(String),
    /// What the user wrote is wrong: exit 1.
    #[error("{0}")]
    Input(Diagnostics),
    /// All has been said: exit 1.
    #[error("failed")]
    Reported,
    /// All has been said: this exit code.
    #[error("exit {0}")]
    Code(u8),
}

impl Failure {
    /// A usage failure that names every problem.
    #[must_use]
    pub fn usage(problems: impl IntoIterator<Item = impl Into<String>>) -> Failure {
        let problems: Vec<String> = problems.into_iter().map(Into::into).collect();
        Failure::Usage(problems.join("\n"))
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Failure {
        let mut all = Diagnostics::new();
        all.push(diagnostic);
        Failure::Input(all)
    }
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Failure {
        Failure::Input(diagnostics)
    }
}

/// Installs the hooks for panics and reports; plain where `NO_COLOR` is set or stderr is no terminal.
///
/// A release keeps what stands without them – message and place of a panic, the causes of a report: it has no symbols and
/// no unwinding tables, so that their backtraces would be empty and their readers of debug information, a sixtieth of
/// the binary, would find nothing to read.
pub fn install_hooks() {
    if cfg!(not(debug_assertions)) {
        return;
    }
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) || !io::stderr().is_terminal();
    let mut builder = color_eyre::config::HookBuilder::default().display_env_section(false);
    if plain {
        builder = builder.theme(color_eyre::config::Theme::new());
    }
    // A second call, as from a test, finds the hooks in place.
    let _ = builder.install();
}

/// Says on stderr what went wrong, and with which code to exit.
#[must_use]
pub fn report(error: &color_eyre::Report) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    match error.downcast_ref::<Failure>() {
        Some(Failure::Usage(problems)) => {
            for problem in problems.lines() {
                complain(&format!("error: {problem}"));
            }
            complain("\nFor more information, try '--help'.");
            ExitCode::from(2)
        }
        Some(Failure::Input(diagnostics)) => {
            for diagnostic in diagnostics {
                complain(&diagnostic.to_string());
            }
            ExitCode::FAILURE
        }
        Some(Failure::Reported) => ExitCode::FAILURE,
        Some(Failure::Code(code)) => ExitCode::from(*code),
        // With RUST_BACKTRACE the place of the failure is wanted, too.
        None if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") => {
            let _ = writeln!(io::stderr().lock(), "error: {error:?}");
            ExitCode::FAILURE
        }
        None => {
            complain(&format!("error: {}", causes(error)));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes, without causes that it states itself.
fn causes(error: &color_eyre::Report) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.contains(&cause) {
        true => text,
        false if text.is_empty() => cause,
        false => format!("{text}: {cause}"),
    })
}

/// Whether the reader of our output has gone away.
fn is_broken_pipe(error: &color_eyre::Report) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
            || cause
                .downcast_ref::<serde_json::Error>()
                .is_some_and(|error| error.io_error_kind() == Some(io::ErrorKind::BrokenPipe))
    })
}
