//! Collects JSON documents that span several lines of a log.

/// Maximum size in bytes of a document.
const MAX_DOCUMENT_BYTES: usize = 16 << 20;

/// A partially read document.
pub(crate) struct Block {
    pub(crate) text: String,
    pub(crate) first_line: u64,
    /// Number of lines of the document that no recognizer read.
    pub(crate) passed_over: u64,
    depth: usize,
    quoted: bool,
    escaped: bool,
}

/// State of a document after a line was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More lines are needed.
    Open,
    /// All brackets are closed.
    Complete,
    /// It is not a document, or too long.
    Broken,
}

impl Block {
    /// Whether `line` may start a document: it starts, unindented, with `{` or `[`, followed by nothing, `{"` or `[{`.
    /// The document may also end on this line.
    pub(crate) fn begins(line: &str) -> bool {
        let Some(first @ (b'{' | b'[')) = line.as_bytes().first() else { return false };
        let second = line.bytes().skip(1).find(|byte| !byte.is_ascii_whitespace());
        matches!((first, second), (_, None) | (b'{', Some(b'"')) | (b'[', Some(b'{')))
    }

    pub(crate) fn new(first_line: u64) -> Block {
        Block { text: String::new(), first_line, passed_over: 0, depth: 0, quoted: false, escaped: false }
    }

    /// Appends a line. `passed_over` is whether no recognizer read it.
    pub(crate) fn push(&mut self, line: &str, passed_over: bool) -> Progress {
        if self.text.len() + line.len() > MAX_DOCUMENT_BYTES {
            return Progress::Broken;
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.passed_over += u64::from(passed_over);
        for (at, byte) in line.bytes().enumerate() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.quoted => self.escaped = true,
                b'"' => self.quoted = !self.quoted,
                _ if self.quoted => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                b'}' | b']' => {
                    let rest = line.get(at + 1..).unwrap_or_default();
                    return if rest.trim().is_empty() { Progress::Complete } else { Progress::Broken };
                }
                _ => {}
            }
        }
        // JSON strings cannot contain a line break.
        if self.quoted { Progress::Broken } else { Progress::Open }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_ends_where_its_brackets_are_closed() {
        let mut block = Block::new(1);
        let lines = ["{", "  \"a\": \"}\\\"\",", "  \"b\": [1, 2]", "}"];
        assert!(Block::begins(lines[0]));
        let progress: Vec<Progress> = lines.iter().map(|line| block.push(line, true)).collect();
        assert_eq!(progress, [Progress::Open, Progress::Open, Progress::Open, Progress::Complete]);
        assert_eq!(block.passed_over, 4);
        assert!(!Block::begins("  {") && !Block::begins("[rank0]: step") && !Block::begins("{'loss': 1}"));
    }
}
