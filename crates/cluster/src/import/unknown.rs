//! Unknown parts of a text, in place of the value of an unset variable or the output of a command.
//!
//! An unknown part is marked in the text by two private-use characters, so that splitting and joining need no special
//! handling.

/// Marks the beginning of an unknown part.
const OPEN: char = '\u{E000}';
/// Marks the end of an unknown part.
const CLOSE: char = '\u{E001}';

/// The unknown part for an unset variable, or for an expression of unset variables.
pub(crate) fn of(name: &str) -> String {
    let clean: String = name.chars().filter(|c| *c != OPEN && *c != CLOSE && !c.is_whitespace()).take(200).collect();
    format!("{OPEN}{clean}{CLOSE}")
}

/// The unknown part for something other than a variable. Names that are empty or begin with `?` are not reported as
/// missing.
pub(crate) fn opaque(what: &str) -> String {
    of(&format!("?{what}"))
}

/// Whether all unknown parts are plain variable names.
pub(crate) fn only_names(s: &str) -> bool {
    s.split(OPEN).skip(1).all(|p| {
        let inner = p.split(CLOSE).next().unwrap_or("");
        !inner.is_empty() && inner.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Whether any part of the text is unknown.
pub(crate) fn is_in(s: &str) -> bool {
    s.contains(OPEN)
}

/// Removes characters from input text that could be mistaken for marks.
pub(crate) fn sanitize(s: &str) -> String {
    s.chars().filter(|c| !('\u{E000}'..='\u{E00F}').contains(c) && *c != '\u{FEFF}').collect()
}

/// The name or expression, if the whole text is a single unknown part.
pub(crate) fn whole(s: &str) -> Option<&str> {
    let inner = s.trim().strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
    (!inner.contains([OPEN, CLOSE])).then_some(inner)
}

/// Names of the variables in unknown parts, in order.
pub(crate) fn names(s: &str) -> Vec<String> {
    let mut out = Vec::new();
    for part in s.split(OPEN).skip(1) {
        let inner = part.split(CLOSE).next().unwrap_or("");
        // An opaque part may state the variables on which it depends.
        let inner = match inner.strip_prefix('?') {
            Some(rest) => rest.split_once(':').map_or("", |p| p.1),
            None => inner,
        };
        for name in inner.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && !out.iter().any(|n| n == name) {
                out.push(name.to_owned());
            }
        }
    }
    out
}

/// The text without its unknown parts: its value if the variables are unset.
pub(crate) fn as_unset(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    let mut skip = false;
    for c in s.chars() {
        match c {
            OPEN => skip = true,
            CLOSE => skip = false,
            c if !skip => out.push(c),
            _ => {}
        }
    }
    out
}

/// The text with unknown parts formatted as `${NAME}`.
pub(crate) fn shown(s: &str) -> String {
    if !is_in(s) {
        return s.to_owned();
    }
    s.replace(OPEN, "${").replace(CLOSE, "}")
}
