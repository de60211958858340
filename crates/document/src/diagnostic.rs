//! Problems in documents that users wrote. All decoders collect them as the same type instead of stopping at the first.

use std::fmt;
use std::sync::Arc;

use super::node::Position;
use atlas_core::sort;

/// Severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A warning: the file is used as it is.
    Warning,
    /// An error: the entry cannot be used.
    Error,
}

impl Severity {
    /// Returns `error` or `warning`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A problem: its location, what was found, what was expected, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its severity.
    pub severity: Severity,
    /// The file as the user named it.
    pub file: Arc<str>,
    /// Position in the file; `0:0` if the problem concerns the whole file.
    pub at: Position,
    /// Path within the document, such as `NVIDIA_H100.cost.hourly_usd`.
    pub path: String,
    /// What is wrong, with what was found and what was expected.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
}

/// File of a problem of an argument, which messages do not repeat.
pub const COMMAND_LINE: &str = "command line";

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if &*self.file != COMMAND_LINE {
            write!(f, "{}: ", self.location())?;
        }
        write!(f, "{}: ", self.severity.name())?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl Diagnostic {
    /// Returns `file:line:column`, or only the file if the problem has no position.
    #[must_use]
    pub fn location(&self) -> String {
        if self.at.line == 0 { self.file.to_string() } else { format!("{}:{}", self.file, self.at) }
    }
}

/// Problems in the order in which they were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    /// Number of errors. It is cached because it is queried after every entry of a file.
    errors: usize,
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Diagnostics {
        let mut all = Diagnostics::new();
        all.push(diagnostic);
        all
    }
}

impl Diagnostics {
    /// All messages without locations, joined in one line.
    #[must_use]
    pub fn messages(&self) -> String {
        self.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Appends a diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        self.list.push(diagnostic);
    }

    /// Appends all diagnostics of `other`.
    pub fn extend(&mut self, other: Diagnostics) {
        self.errors += other.errors;
        self.list.extend(other.list);
    }

    /// Iterates over the diagnostics.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Number of diagnostics.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no diagnostics.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Number of errors.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Whether any diagnostic is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.errors() > 0
    }

    /// Returns the counts as text, such as `2 errors, 1 warning`.
    #[must_use]
    pub fn summary(&self) -> String {
        let plural = |n: usize, word: &str| if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") };
        let errors = self.errors();
        let warnings = self.len() - errors;
        match (errors, warnings) {
            (0, 0) => "no problems".to_owned(),
            (errors, 0) => plural(errors, "error"),
            (0, warnings) => plural(warnings, "warning"),
            (errors, warnings) => format!("{}, {}", plural(errors, "error"), plural(warnings, "warning")),
        }
    }

    /// Sorts by file, then by position, with errors before warnings at the same position.
    pub fn sort(&mut self) {
        sort::by(&mut self.list, |a, b| (&a.file, a.at, b.severity).cmp(&(&b.file, b.at, a.severity)));
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.list.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(severity: Severity, line: u32) -> Diagnostic {
        Diagnostic {
            severity,
            file: "a.yaml".into(),
            at: Position { line, column: 3 },
            path: "x.y".into(),
            message: "found 1, expected 2".into(),
            help: Some("write 2".into()),
        }
    }

    #[test]
    fn a_diagnostic_names_place_path_and_remedy() {
        let text = diagnostic(Severity::Error, 4).to_string();
        assert_eq!(text, "a.yaml:4:3: error: x.y: found 1, expected 2; write 2");
        assert_eq!(diagnostic(Severity::Error, 0).location(), "a.yaml");
    }

    #[test]
    fn summary_counts_errors_and_warnings() {
        let mut all = Diagnostics::new();
        assert_eq!(all.summary(), "no problems");
        all.push(diagnostic(Severity::Warning, 9));
        assert_eq!(all.summary(), "1 warning");
        assert!(!all.has_errors());
        all.push(diagnostic(Severity::Error, 2));
        all.push(diagnostic(Severity::Error, 3));
        assert_eq!(all.summary(), "2 errors, 1 warning");
        all.sort();
        assert_eq!(all.iter().map(|d| d.at.line).collect::<Vec<_>>(), [2, 3, 9]);
    }
}
