//! Scaling efficiency of a series of runs, and the size at which it breaks down.

/// A run at one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Number of accelerators.
    pub accelerators: f64,
    /// Step time, s.
    pub seconds: f64,
}

/// How the work grows with the number of accelerators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Constant work: ideally time is inversely proportional to accelerators (strong scaling).
    Fixed,
    /// Constant work per accelerator: ideally time is constant (weak scaling).
    PerAccelerator,
}

/// Efficiency below which scaling counts as broken down by default, as in the predecessor's simulator.
pub const DEFAULT_EFFICIENCY_LIMIT: f64 = 0.7;

/// Efficiencies of a series, relative to its smallest run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scaling {
    /// Number of accelerators and efficiency (speed-up over ideal speed-up) of each run, in ascending order of
    /// accelerators.
    pub efficiencies: Vec<(f64, f64)>,
    /// Smallest number of accelerators with an efficiency below the limit.
    pub inefficient_at: Option<f64>,
    /// Largest number of accelerators with an efficiency at or above the limit.
    pub largest_efficient: Option<f64>,
}

/// Computes the efficiencies of `runs`, and where they fall below `limit`. Runs with numbers that are not positive and
/// finite are ignored.
pub fn scaling(runs: &[Run], work: Work, limit: f64) -> Scaling {
    let sound =
        |r: &&Run| r.accelerators > 0.0 && r.seconds > 0.0 && r.accelerators.is_finite() && r.seconds.is_finite();
    let mut runs: Vec<Run> = runs.iter().filter(sound).copied().collect();
    runs.sort_by(|a, b| a.accelerators.total_cmp(&b.accelerators));
    let Some(&base) = runs.first() else { return Scaling::default() };
    let efficiency = |r: &Run| {
        let speed_up = base.seconds / r.seconds;
        match work {
            Work::Fixed => speed_up * base.accelerators / r.accelerators,
            Work::PerAccelerator => speed_up,
        }
    };
    let efficiencies: Vec<(f64, f64)> = runs.iter().map(|r| (r.accelerators, efficiency(r))).collect();
    Scaling {
        inefficient_at: efficiencies.iter().find(|e| e.1 < limit).map(|e| e.0),
        largest_efficient: efficiencies.iter().rev().find(|e| e.1 >= limit).map(|e| e.0),
        efficiencies,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_scaling_efficiency_is_computed_from_the_time() {
        let runs = [Run { accelerators: 16.0, seconds: 1.25 }, Run { accelerators: 8.0, seconds: 1.0 }];
        let weak = scaling(&runs, Work::PerAccelerator, DEFAULT_EFFICIENCY_LIMIT);
        assert_eq!(weak.efficiencies, [(8.0, 1.0), (16.0, 0.8)]);
        assert_eq!((weak.inefficient_at, weak.largest_efficient), (None, Some(16.0)));
        let strong = scaling(&runs, Work::Fixed, DEFAULT_EFFICIENCY_LIMIT);
        assert_eq!(strong.efficiencies, [(8.0, 1.0), (16.0, 0.4)]);
        assert_eq!((strong.inefficient_at, strong.largest_efficient), (Some(16.0), Some(8.0)));
        assert_eq!(scaling(&[Run { accelerators: f64::NAN, seconds: 0.0 }], Work::Fixed, 0.5), Scaling::default());
    }
}
