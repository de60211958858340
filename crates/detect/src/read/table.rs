//! Comma-separated tables with a header, as printed by `nvidia-smi` and `hl-smi`.

/// A table whose columns are accessed by name.
pub(super) struct Table<'a> {
    header: Vec<(String, &'a str)>,
    rows: Vec<Vec<&'a str>>,
}

impl<'a> Table<'a> {
    /// Parses the table whose header is the first line with a column of this name.
    pub(super) fn read(text: &'a str, column: &str) -> Option<Table<'a>> {
        let mut lines = text.lines();
        let header = lines.by_ref().map(split_header).find(|header| header.iter().any(|(name, _)| name == column))?;
        let rows = lines
            .take(super::MAX_DEVICES)
            .map(|line| line.split(',').map(str::trim).collect::<Vec<&str>>())
            .filter(|row| row.len() == header.len())
            .collect();
        Some(Table { header, rows })
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = Row<'_, 'a>> {
        self.rows.iter().map(|cells| Row { header: &self.header, cells })
    }
}

/// Parses the header: `memory.total [MiB]` is the column `memory.total` with the unit MiB.
fn split_header(line: &str) -> Vec<(String, &str)> {
    line.split(',')
        .map(|cell| {
            let (name, unit) = cell.split_once('[').unwrap_or((cell, ""));
            (name.trim().to_ascii_lowercase(), unit.trim().trim_end_matches(']'))
        })
        .collect()
}

pub(super) struct Row<'t, 'a> {
    header: &'t [(String, &'a str)],
    cells: &'t [&'a str],
}

impl<'a> Row<'_, 'a> {
    /// The cell of a column, if it contains a value.
    pub(super) fn get(&self, column: &str) -> Option<&'a str> {
        let at = self.header.iter().position(|(name, _)| name == column)?;
        self.cells.get(at).copied().and_then(crate::text::present)
    }

    pub(super) fn number(&self, column: &str) -> Option<f64> {
        self.get(column).and_then(crate::text::leading_number)
    }

    pub(super) fn whole(&self, column: &str) -> Option<u32> {
        self.get(column)?.parse().ok()
    }

    /// The cell as a size in GiB. A number without a unit has the unit of the header.
    pub(super) fn gib(&self, column: &str) -> Option<f64> {
        let at = self.header.iter().position(|(name, _)| name == column)?;
        let (_, unit) = self.header.get(at)?;
        let cell = self.get(column)?;
        let bare = cell.chars().all(|c| c.is_ascii_digit() || c == '.');
        crate::text::gib(&if bare { format!("{cell} {unit}") } else { cell.to_owned() }, crate::text::MIB)
    }
}
