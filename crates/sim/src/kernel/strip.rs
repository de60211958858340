//! Levels over time in a bounded number of cells of equal length, for charts. When the cells run out, adjacent cells
//! are merged.

use super::time::Time;

/// Maximum number of cells of a strip.
const MAX_CELLS: usize = 512;

/// Mean levels of `N` quantities in successive cells of equal length.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelTimeline<const N: usize> {
    cell: Time,
    integrals: Vec<[f64; N]>,
    levels: [f64; N],
    since: Time,
}

impl<const N: usize> LevelTimeline<N> {
    /// Creates a strip with all levels zero and an initial cell length of `cell` (at least a picosecond).
    pub fn new(cell: Time) -> Self {
        LevelTimeline {
            cell: cell.max(Time::from_ps(1)),
            integrals: Vec::with_capacity(MAX_CELLS),
            levels: [0.0; N],
            since: Time::ZERO,
        }
    }

    /// Sets the levels from `now` on.
    #[inline]
    pub fn set(&mut self, now: Time, levels: [f64; N]) {
        self.fill(now);
        self.levels = levels;
    }

    fn fill(&mut self, now: Time) {
        while self.since < now {
            let cell = self.cell.ps();
            let index = (self.since.ps() / cell) as usize;
            if index >= MAX_CELLS {
                self.join();
                continue;
            }
            while self.integrals.len() <= index {
                self.integrals.push([0.0; N]);
            }
            let end = Time::from_ps((index as u64 + 1).saturating_mul(cell)).min(now);
            let span = end.since(self.since).ps() as f64;
            if let Some(integral) = self.integrals.get_mut(index) {
                for (sum, level) in integral.iter_mut().zip(self.levels) {
                    *sum += level * span;
                }
            }
            self.since = end;
        }
    }

    fn join(&mut self) {
        let joined = self.integrals.len().div_ceil(2);
        for index in 0..joined {
            let pair = [self.integrals.get(2 * index).copied(), self.integrals.get(2 * index + 1).copied()];
            let mut sum = [0.0; N];
            for half in pair.into_iter().flatten() {
                sum.iter_mut().zip(half).for_each(|(s, h)| *s += h);
            }
            if let Some(place) = self.integrals.get_mut(index) {
                *place = sum;
            }
        }
        self.integrals.truncate(joined);
        self.cell = Time::from_ps(self.cell.ps().saturating_mul(2));
    }

    /// Returns the length of a cell and the mean levels of each cell until `now`. The last cell may be incomplete; its
    /// mean covers only the elapsed part.
    pub fn cells(mut self, now: Time) -> (Time, Vec<[f64; N]>) {
        self.fill(now);
        let cell = self.cell.ps();
        let last = self.integrals.len().saturating_sub(1) as u64;
        let rest = now.ps().saturating_sub(last * cell).clamp(1, cell);
        for (index, integral) in self.integrals.iter_mut().enumerate() {
            let span = if index as u64 == last { rest } else { cell } as f64;
            integral.iter_mut().for_each(|x| *x /= span);
        }
        (self.cell, self.integrals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_cells_keep_the_integral() {
        let mut strip = LevelTimeline::new(Time::from_ps(10));
        let mut expected = 0.0;
        for step in 0..40_000u64 {
            let level = (step % 7) as f64;
            strip.set(Time::from_ps(3 * step), [level, 1.0]);
            expected += 3.0 * level;
        }
        let end = Time::from_ps(3 * 40_000);
        let (cell, cells) = strip.cells(end);
        assert!(cells.len() <= MAX_CELLS && cells.len() > MAX_CELLS / 4);
        let full = cells.len() as u64 - 1;
        let spans = |index: usize| if index as u64 == full { end.ps() - full * cell.ps() } else { cell.ps() } as f64;
        let sum: f64 = cells.iter().enumerate().map(|(i, [level, _])| level * spans(i)).sum();
        assert!((sum / expected - 1.0).abs() < 1e-9);
        assert!(cells.iter().all(|[_, one]| (one - 1.0).abs() < 1e-9));
    }
}
