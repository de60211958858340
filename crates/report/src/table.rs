//! Plain-text tables, aligned by display width, and wrapping of prose.

use unicode_width::UnicodeWidthStr as _;

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Left-aligned, for names.
    Left,
    /// Right-aligned, for numbers.
    Right,
}

/// A left-aligned column.
pub const fn left<T>(name: T) -> (T, Align) {
    (name, Align::Left)
}

/// A right-aligned column.
pub const fn right<T>(name: T) -> (T, Align) {
    (name, Align::Right)
}

#[derive(Debug, Clone)]
enum Row {
    Cells(Vec<String>),
    Section(String),
}

/// A table under construction.
#[derive(Debug, Clone)]
pub struct Table {
    head: Vec<(String, Align)>,
    rows: Vec<Row>,
}

impl Table {
    /// Creates an empty table with these columns.
    #[must_use]
    pub fn new<T: Into<String>>(columns: impl IntoIterator<Item = (T, Align)>) -> Table {
        Table { head: columns.into_iter().map(|(name, align)| (name.into(), align)).collect(), rows: Vec::new() }
    }

    /// Adds a row. Missing cells are empty; surplus cells are dropped.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut cells: Vec<String> = cells.into_iter().collect();
        cells.resize(self.head.len(), String::new());
        self.rows.push(Row::Cells(cells));
    }

    /// Adds a heading between rows.
    pub fn section(&mut self, name: impl Into<String>) {
        self.rows.push(Row::Section(name.into()));
    }

    /// Renders the table with a newline after each line. The head is omitted if all names are empty.
    #[must_use]
    pub fn render(&self) -> String {
        let mut widths: Vec<usize> = self.head.iter().map(|(name, _)| name.width()).collect();
        for row in &self.rows {
            if let Row::Cells(cells) = row {
                for (width, cell) in widths.iter_mut().zip(cells) {
                    *width = (*width).max(cell.width());
                }
            }
        }
        let mut out = String::new();
        if self.head.iter().any(|(name, _)| !name.is_empty()) {
            self.line(&mut out, &widths, self.head.iter().map(|(name, _)| name.as_str()));
            let total = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
            out.push_str(&"─".repeat(total));
            out.push('\n');
        }
        for row in &self.rows {
            match row {
                Row::Cells(cells) => self.line(&mut out, &widths, cells.iter().map(String::as_str)),
                Row::Section(name) => {
                    out.push_str(name);
                    out.push('\n');
                }
            }
        }
        out
    }

    fn line<'c>(&self, out: &mut String, widths: &[usize], cells: impl Iterator<Item = &'c str>) {
        let start = out.len();
        for (i, ((cell, width), (_, align))) in cells.zip(widths).zip(&self.head).enumerate() {
            if i > 0 {
                out.push_str("  ");
            }
            let fill = " ".repeat(width.saturating_sub(cell.width()));
            match align {
                Align::Left => out.extend([cell, &fill]),
                Align::Right => out.extend([fill.as_str(), cell]),
            }
        }
        out.truncate(start + out.get(start..).map_or(0, |line| line.trim_end().len()));
        out.push('\n');
    }
}

/// Wraps prose to `width` columns; lines after the first are indented by `indent`.
#[must_use]
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        if column > 0 && column + 1 + word.width() > width {
            out.push('\n');
            out.push_str(indent);
            column = indent.width();
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.width();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_by_display_width() {
        let mut table = Table::new([left("name"), right("n")]);
        table.section("part");
        table.row(["日本".to_owned(), "1".to_owned()]);
        table.row(["a".to_owned(), "1000".to_owned(), "dropped".to_owned()]);
        table.row(["b".to_owned()]);
        assert_eq!(table.render(), "name     n\n──────────\npart\n日本     1\na     1000\nb\n");
    }

    #[test]
    fn prose_wraps_at_words() {
        assert_eq!(wrap("one two three", 9, "  "), "one two\n  three");
        assert_eq!(wrap("incomprehensibilities", 4, ""), "incomprehensibilities");
    }
}
