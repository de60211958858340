//! Detects Python source code that some tools print before their log. It is excluded because it states default values,
//! not those of the run.

/// Whether `line` is source code. `before` is whether the previous line was.
pub(crate) fn is_source_code(line: &str, before: bool) -> bool {
    let Some(first) = line.bytes().next() else { return before };
    match first {
        b'i' if line.starts_with("import ") => true,
        b'f' if line.starts_with("from ") && line.contains(" import ") => true,
        b'd' if line.starts_with("def ") && line.contains('(') => true,
        b'c' if line.starts_with("class ") && line.trim_ascii_end().ends_with(':') => true,
        b'@' if line.starts_with("@torch") || line.starts_with("@dataclass") => true,
        _ if !before => false,
        // Rules, dates, bracketed prefixes and log levels start the log. Dots (`......`) align the values of a
        // configuration dump.
        b'=' | b'-' | b'*' => !(line.len() >= 20 && line.trim_ascii_end().bytes().all(|byte| byte == first)),
        b'0'..=b'9' | b'[' | b'>' => false,
        b'I' | b'W' | b'D' => !["INFO", "WARN", "DEBUG"].iter().any(|level| line.starts_with(level)),
        _ => !line.contains("......"),
    }
}

#[cfg(test)]
mod tests {
    use super::is_source_code;

    #[test]
    fn code_begins_with_an_import_and_ends_with_a_rule() {
        let rule = "=".repeat(100);
        let lines = ["import os", "class A:", "    num_layers: int = 12", "# a note", &rule, "num_layers: 12"];
        let mut code = false;
        let found: Vec<bool> = lines
            .iter()
            .map(|line| {
                code = is_source_code(line, code);
                code
            })
            .collect();
        assert_eq!(found, [true, true, true, true, false, false]);
        assert!(!is_source_code("important: 12", false));
        assert!(!is_source_code("  seq_length ...... 2048", true));
    }
}
