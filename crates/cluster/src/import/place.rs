//! Places in the files that are read.

/// A line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Place {
    /// Index of the file.
    pub(crate) file: usize,
    /// Line, counted from 1; 0 if it is unknown.
    pub(crate) line: u32,
}

impl Place {
    /// An unknown place.
    pub(crate) const NONE: Place = Place { file: 0, line: 0 };

    pub(crate) const fn of(file: usize, line: u32) -> Place {
        Place { file, line }
    }

    /// The place `lines` further down.
    pub(crate) const fn down(self, lines: u32) -> Place {
        Place { line: self.line.saturating_add(lines), ..self }
    }

    /// The place in the surrounding file of a line of a text that begins below `start`.
    pub(crate) const fn below(self, start: Place) -> Place {
        start.down(self.line)
    }

    /// The line above.
    pub(crate) const fn above(self) -> Place {
        Place { line: self.line.saturating_sub(1), ..self }
    }

    /// This line and those below it.
    pub(crate) fn and_below(self) -> impl Iterator<Item = Place> {
        (0..).map(move |lines| self.down(lines))
    }
}
