//! Rendering of a diagnostic with its source line.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use unicode_width::UnicodeWidthStr as _;

use atlas_catalog::shipped;
use atlas_document::sources::read_text;
use atlas_document::{Diagnostic, Origin};

/// Texts of the files with diagnostics, each read once.
#[derive(Debug, Default)]
pub(super) struct Snippets {
    texts: HashMap<Arc<str>, Option<String>>,
}

/// Maximum columns of a source line that are shown.
const COLUMNS: usize = 100;

impl Snippets {
    /// Renders the message, its location, the line with carets below the position, and the help text.
    pub(super) fn render(&mut self, problem: &Diagnostic) -> String {
        let path = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
        let mut out = format!("{}: {path}{}\n  --> {}\n", problem.severity.name(), problem.message, problem.location());
        let text = self.texts.entry(Arc::clone(&problem.file)).or_insert_with(|| source(&problem.file));
        let line = usize::try_from(problem.at.line).unwrap_or_default();
        let source = text.as_ref().and_then(|text| text.lines().nth(line.checked_sub(1)?));
        if let Some(source) = source {
            let column = usize::try_from(problem.at.column).unwrap_or_default().saturating_sub(1);
            let (shown, caret) = excerpt(source, column);
            let gutter = " ".repeat(line.to_string().len());
            out.push_str(&format!("{gutter} |\n{line} | {shown}\n{gutter} | {caret}\n"));
        }
        if let Some(help) = &problem.help {
            out.push_str(&format!("   = help: {help}\n"));
        }
        out
    }
}

/// Text of a file by its name in diagnostics.
fn source(file: &str) -> Option<String> {
    match file.strip_prefix(Origin::BUILT_IN) {
        Some(inside) => shipped::document(inside).map(|document| document.text().to_owned()),
        None => read_text(Path::new(file)).ok(),
    }
}

/// Part of a line around a column, and carets below the word that begins there.
fn excerpt(line: &str, column: usize) -> (String, String) {
    let clean: Vec<char> = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    // An excerpt of a long line begins a little before the column.
    let start = if clean.len() > COLUMNS { column.saturating_sub(COLUMNS / 2).min(clean.len() - COLUMNS) } else { 0 };
    let shown: String = clean.iter().skip(start).take(COLUMNS).collect();
    let before: String = clean.iter().take(column).skip(start).collect();
    let word =
        clean.iter().skip(column).take_while(|c| !c.is_whitespace() && !matches!(c, ',' | '}' | ']' | ':' | '#'));
    let word: String = word.take(COLUMNS / 2).collect();
    (shown.trim_end().to_owned(), " ".repeat(before.width()) + &"^".repeat(word.width().max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carets_underline_the_word_at_the_column() {
        assert_eq!(excerpt("  pue: four # x", 7), ("  pue: four # x".to_owned(), "       ^^^^".to_owned()));
        assert_eq!(excerpt("日本: x", 4).1, "      ^");
        assert_eq!(excerpt("", 9).1, "^");
        let long = "a".repeat(300);
        let (shown, caret) = excerpt(&long, 290);
        assert_eq!(shown.len(), COLUMNS);
        assert!(caret.starts_with(&" ".repeat(90)) && caret.ends_with('^'));
    }
}
