//! A change to files, before it is written.

use crate::theme::Role;
use std::path::PathBuf;

/// The planned changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WritePlan {
    /// Files and their texts.
    pub files: Vec<Rewrite>,
    /// Knobs that no file contains.
    pub left: Vec<&'static str>,
}

/// A file's text before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// The file.
    pub path: PathBuf,
    /// Its current text. The file is written only if it still has this text.
    pub before: String,
    /// Its new text.
    pub after: String,
}

impl WritePlan {
    /// The diff as lines with context.
    #[must_use]
    pub fn lines(&self) -> Vec<(Role, String)> {
        let mut lines = Vec::new();
        for file in &self.files {
            lines.push((Role::Heading, file.path.display().to_string()));
            lines.extend(diff(&file.before, &file.after));
        }
        if !self.left.is_empty() {
            let text = format!("not written because no file contains it: {}", self.left.join(", "));
            lines.push((Role::Dim, text));
        }
        lines
    }
}

/// Removed and added lines, each with the line above. The texts must differ only by inserted or replaced lines.
pub(in crate::tui) fn diff(before: &str, after: &str) -> Vec<(Role, String)> {
    /// Maximum number of lines that one knob inserts.
    const AHEAD: usize = 4;
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let mut lines = Vec::new();
    let (mut i, mut j) = (0, 0);
    let mut above: Option<usize> = None;
    while j < new.len() {
        if old.get(i) == new.get(j) {
            above = Some(j);
            (i, j) = (i + 1, j + 1);
            continue;
        }
        if let Some(line) = above.take().and_then(|at| Some((at, new.get(at)?))) {
            lines.push((Role::Dim, format!("{:>4}   {}", line.0 + 1, line.1)));
        }
        let put_in = (1..=AHEAD).find(|ahead| old.get(i).is_some() && old.get(i) == new.get(j + ahead));
        if put_in.is_none()
            && let Some(line) = old.get(i)
        {
            lines.push((Role::Bad, format!("{:>4} - {line}", i + 1)));
            i += 1;
        }
        for line in new.iter().skip(j).take(put_in.unwrap_or(1)) {
            j += 1;
            lines.push((Role::Good, format!("{j:>4} + {line}")));
        }
    }
    lines
}
