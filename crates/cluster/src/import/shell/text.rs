//! Text with the line of each part, so that a flag that is stored in a variable refers to the place where it is
//! written.

use crate::import::place::Place;

/// A string with marks `(byte offset, line)` in ascending order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Text {
    s: String,
    marks: Vec<(usize, Place)>,
}

impl Text {
    pub(crate) fn new(s: &str, line: Place) -> Self {
        Text { s: s.to_owned(), marks: vec![(0, line)] }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.s
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.s.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.s.len()
    }

    /// The line of the first character.
    pub(crate) fn line(&self) -> Place {
        self.line_at(0)
    }

    pub(crate) fn line_at(&self, offset: usize) -> Place {
        let n = self.marks.partition_point(|(o, _)| *o <= offset);
        n.checked_sub(1).and_then(|i| self.marks.get(i)).or(self.marks.first()).map_or(Place::NONE, |m| m.1)
    }

    pub(crate) fn push(&mut self, s: &str, line: Place) {
        if s.is_empty() {
            if self.marks.is_empty() {
                self.marks.push((0, line));
            }
            return;
        }
        self.mark(line);
        self.s.push_str(s);
    }

    fn mark(&mut self, line: Place) {
        match self.marks.last_mut() {
            Some(last) if last.1 == line => {}
            Some(last) if last.0 == self.s.len() => last.1 = line,
            _ => self.marks.push((self.s.len(), line)),
        }
    }

    pub(crate) fn append(&mut self, other: &Text) {
        let base = self.s.len();
        if other.s.is_empty() {
            return;
        }
        for (i, (o, l)) in other.marks.iter().enumerate() {
            match self.marks.last_mut() {
                Some(last) if last.1 == *l => {}
                Some(last) if i == 0 && last.0 == base => last.1 = *l,
                _ => self.marks.push((base + o, *l)),
            }
        }
        self.s.push_str(&other.s);
    }

    /// The part between two byte offsets; empty if the offsets are invalid.
    pub(crate) fn slice(&self, from: usize, to: usize) -> Text {
        let Some(part) = self.s.get(from..to) else { return Text::new("", self.line()) };
        let mut marks = vec![(0, self.line_at(from))];
        marks.extend(self.marks.iter().filter(|(o, _)| *o > from && *o < to).map(|(o, l)| (o - from, *l)));
        Text { s: part.to_owned(), marks }
    }

    /// Splits the text at characters for which `sep` returns true, and leaves out empty pieces.
    pub(crate) fn split(&self, sep: impl Fn(char) -> bool) -> Vec<Text> {
        let mut out = Vec::new();
        let mut start = None;
        for (i, c) in self.s.char_indices() {
            match (sep(c), start) {
                (true, Some(from)) => {
                    out.push(self.slice(from, i));
                    start = None;
                }
                (false, None) => start = Some(i),
                _ => {}
            }
        }
        if let Some(from) = start {
            out.push(self.slice(from, self.s.len()));
        }
        out
    }

    /// Truncates the text to at most `max` bytes, at a character boundary.
    pub(crate) fn truncate(&mut self, max: usize) {
        let mut n = max.min(self.s.len());
        while n > 0 && !self.s.is_char_boundary(n) {
            n -= 1;
        }
        self.s.truncate(n);
        self.marks.retain(|(o, _)| *o <= n);
    }

    /// Removes trailing newlines, as a command substitution does.
    pub(crate) fn trim_newlines(mut self) -> Text {
        let n = self.s.trim_end_matches('\n').len();
        self.truncate(n);
        self
    }
}
