//! Failures: messages on stderr and exit codes.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use super::output::write_stderr;
use atlas_document::{Diagnostic, Diagnostics};

/// A failure with its own exit code, or one that is already reported.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Invalid command-line usage: exit 2.
    #[error("{0}")]
    Usage(String),
    /// Invalid input file: exit 1.
    #[error("{0}")]
    Input(Diagnostics),
    /// Already reported: exit 1.
    #[error("failed")]
    Reported,
    /// Already reported: this exit code.
    #[error("exit {0}")]
    Code(u8),
}

impl Failure {
    /// A usage failure that lists all problems.
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

/// Installs the panic and error hooks of color-eyre; without color if `NO_COLOR` is set or stderr is not a terminal.
///
/// Release builds keep the default hooks, which print the message and location of a panic and the causes of an error.
/// They have no symbols, so backtraces would be useless, and the code that reads debug information would make the binary
/// larger.
pub fn install_hooks() {
    if cfg!(not(debug_assertions)) {
        return;
    }
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) || !io::stderr().is_terminal();
    let mut builder = color_eyre::config::HookBuilder::default().display_env_section(false);
    if plain {
        builder = builder.theme(color_eyre::config::Theme::new());
    }
    // Fails on a second call, as in tests, when the hooks are already installed.
    let _ = builder.install();
}

/// Prints the error to stderr and returns the exit code.
#[must_use]
pub fn report(error: &color_eyre::Report) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    match error.downcast_ref::<Failure>() {
        Some(Failure::Usage(problems)) => {
            for problem in problems.lines() {
                write_stderr(&format!("error: {problem}"));
            }
            write_stderr("\nFor more information, try '--help'.");
            ExitCode::from(2)
        }
        Some(Failure::Input(diagnostics)) => {
            for diagnostic in diagnostics {
                write_stderr(&diagnostic.to_string());
            }
            ExitCode::FAILURE
        }
        Some(Failure::Reported) => ExitCode::FAILURE,
        Some(Failure::Code(code)) => ExitCode::from(*code),
        // `RUST_BACKTRACE` also requests the location.
        None if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") => {
            let _ = writeln!(io::stderr().lock(), "error: {error:?}");
            ExitCode::FAILURE
        }
        None => {
            write_stderr(&format!("error: {}", causes(error)));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes, without causes whose text is already included.
fn causes(error: &color_eyre::Report) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.contains(&cause) {
        true => text,
        false if text.is_empty() => cause,
        false => format!("{text}: {cause}"),
    })
}

/// Whether stdout is a closed pipe.
fn is_broken_pipe(error: &color_eyre::Report) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
            || cause
                .downcast_ref::<serde_json::Error>()
                .is_some_and(|error| error.io_error_kind() == Some(io::ErrorKind::BrokenPipe))
    })
}
