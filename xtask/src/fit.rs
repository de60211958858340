//! Refits the constants of the closed forms, and writes them and their intervals to the source code.

use std::path::{Path, PathBuf};

use atlas_evidence::validate::{self, Refit, ValidateError};
use atlas_perf::interval::Release;

/// File with the constants.
const CONSTANTS: &str = "crates/perf/src/constants/table.rs";
/// File with the intervals.
const INTERVALS: &str = "crates/perf/src/interval.rs";
/// Minimum number of sources for a kind of runs to get its own interval; others keep their stated prior.
const ENOUGH: usize = 3;

/// Error while writing constants.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FitError {
    /// Measurements that cannot be read.
    #[error(transparent)]
    Measurements(#[from] ValidateError),
    /// A file cannot be read or written.
    #[error("{path}: {problem}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        problem: std::io::Error,
    },
    /// A constant or interval has no line of its own.
    #[error("{path}: no line of {name} found, expected one; has the format of the table changed?")]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Name of the constant or interval.
        name: String,
    },
}

/// Fits the constants, and writes constants and intervals to the repository at `root`.
///
/// # Errors
/// Measurements or tables that cannot be read, or files that cannot be written.
pub(crate) fn write(root: &Path) -> Result<Refit, FitError> {
    let refit = validate::refit()?;
    edit(&root.join(CONSTANTS), |text, path| {
        let fitted = refit.constants.iter().filter_map(|constant| Some((constant.name, constant.fitted?)));
        fitted.clone().try_fold(text, |text, (name, value)| {
            let line = format!("        {name}: ");
            replaced(&text, &[&line], ", ", &number(value)).ok_or_else(|| missing(path, name))
        })
    })?;
    edit(&root.join(INTERVALS), |text, path| {
        let bands = refit.bands.iter().filter(|band| band.sources >= ENOUGH && !band.regime.contains("unmeasured"));
        bands.clone().try_fold(text, |text, band| {
            let factors = format!("{:.3}, {:.3}", band.found.low, band.found.high);
            let name = format!("\"{}\", ", band.regime);
            let replaced = match band.release {
                Release::Stated => replaced(&text, &[&name, "stated "], ", assumed", &factors),
                Release::Assumed => replaced(&text, &[&name, "assumed "], ";", &factors),
            };
            replaced.ok_or_else(|| missing(path, band.regime))
        })
    })?;
    Ok(refit)
}

fn missing(path: &Path, name: &str) -> FitError {
    FitError::Line { path: path.to_owned(), name: name.to_owned() }
}

/// Reads, changes and writes a file.
fn edit(path: &Path, change: impl Fn(String, &Path) -> Result<String, FitError>) -> Result<(), FitError> {
    let failed = |problem| FitError::File { path: path.to_owned(), problem };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    std::fs::write(path, change(text, path)?).map_err(failed)
}

/// Replaces the text between the last of the `anchors`, each found after the previous one, and the next `after`.
fn replaced(text: &str, anchors: &[&str], after: &str, by: &str) -> Option<String> {
    let start =
        anchors.iter().try_fold(0, |from, anchor| Some(from + text.get(from..)?.find(anchor)? + anchor.len()))?;
    let (head, rest) = text.split_at_checked(start)?;
    let (_, tail) = rest.split_at_checked(rest.find(after)?)?;
    Some(format!("{head}{by}{tail}"))
}

/// Formats four significant digits as a Rust floating-point literal.
fn number(value: f64) -> String {
    let short = format!("{value:.3e}");
    let exponent = short.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok()).unwrap_or(0);
    if (-2..4).contains(&exponent) {
        let digits = (3 - exponent).max(1);
        return format!("{value:.*}", usize::try_from(digits).unwrap_or(1));
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits() {
        assert_eq!(
            [0.80497, 1470.2, 8.4871e-6, 7.238e9, 6.0].map(number),
            ["0.8050", "1470.2", "8.487e-6", "7.238e9", "6.000"]
        );
    }

    #[test]
    fn only_the_value_of_the_named_line_changes() {
        let text = "        launch: 1e-6, \"s\", fixed;\n        relaunch: 2.0, \"1\", fixed;\n";
        let changed = replaced(text, &["        relaunch: "], ", ", "3.0");
        assert_eq!(changed.as_deref(), Some(text.replace("2.0", "3.0").as_str()));
        assert_eq!(replaced(text, &["        other: "], ", ", "3.0"), None);
    }
}
