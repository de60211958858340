//! Movements of a cursor or a scrolled text.

/// A movement in a list.
pub(in crate::tui) enum Movement {
    By(i32),
    Page(i32),
    To(usize),
}

impl Movement {
    /// The row to which the movement leads from `row`, with `rows` rows in total and `page` rows per page.
    pub(in crate::tui) fn from(&self, row: usize, rows: usize, page: usize) -> usize {
        let last = rows.saturating_sub(1);
        match self {
            Movement::By(by) => row.saturating_add_signed(*by as isize).min(last),
            Movement::Page(by) => row.saturating_add_signed(*by as isize * page.max(1) as isize).min(last),
            Movement::To(to) => (*to).min(last),
        }
    }
}
