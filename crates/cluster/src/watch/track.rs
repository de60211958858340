//! A metric over the steps of a run, in bounded memory.

use atlas_core::statistics;

/// Maximum number of points; beyond it, neighboring points are merged.
const MAX_POINTS: usize = 2048;

/// One point: a step, or several merged steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The step, or the last of the merged steps.
    pub step: u64,
    /// Value of the metric; the mean for merged steps.
    pub value: f64,
    /// Number of merged records.
    pub count: u32,
}

/// Points in the order of their steps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Track {
    points: Vec<Point>,
    last: Option<Point>,
    records: u64,
}

impl Track {
    /// Adds a value. Values that are not finite are ignored.
    pub fn push(&mut self, step: u64, value: f64) {
        if !value.is_finite() {
            return;
        }
        if self.points.len() >= MAX_POINTS {
            let joined = self.points.chunks(2).map(|pair| match pair {
                [a, b] => {
                    let (n, m) = (f64::from(a.count), f64::from(b.count));
                    Point {
                        step: b.step,
                        value: (n * a.value + m * b.value) / (n + m),
                        count: a.count.saturating_add(b.count),
                    }
                }
                [one] => *one,
                _ => Point { step, value, count: 1 },
            });
            self.points = joined.collect();
        }
        let point = Point { step, value, count: 1 };
        self.points.push(point);
        self.last = Some(point);
        self.records += 1;
    }

    /// The points, oldest first.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Number of records that were added. Merged records are counted individually.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The last point.
    #[must_use]
    pub fn last(&self) -> Option<Point> {
        self.last
    }

    /// Medians of the points before a step and from it on, if both sides have points.
    #[must_use]
    pub fn medians_around(&self, step: u64) -> Option<[f64; 2]> {
        let at = self.points.partition_point(|point| point.step < step);
        let (before, after) = self.points.split_at_checked(at)?;
        Some([median(before)?, median(after)?])
    }
}

/// The median of points.
#[must_use]
pub fn median(points: &[Point]) -> Option<f64> {
    statistics::median(points.iter().map(|point| point.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_track_stays_bounded_and_keeps_its_mean_and_order() {
        let mut track = Track::default();
        for step in 0..100_000_u64 {
            track.push(step, step as f64);
        }
        assert!(track.points().len() <= MAX_POINTS);
        assert!(track.points().windows(2).all(|pair| pair[0].step < pair[1].step));
        let counted: f64 = track.points().iter().map(|point| f64::from(point.count)).sum();
        let sum: f64 = track.points().iter().map(|point| f64::from(point.count) * point.value).sum();
        assert_eq!((counted, track.records()), (1e5, 100_000));
        assert!((sum / counted - 49_999.5).abs() < 1e-6);
        assert_eq!(track.last().map(|point| point.step), Some(99_999));
    }
}
