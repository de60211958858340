//! Confirmation prompts.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

/// Asks for confirmation on the terminal; returns false without a terminal.
///
/// # Errors
/// The terminal cannot be read or written.
pub fn confirmed(question: &str) -> std::io::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    let mut stderr = std::io::stderr().lock();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
