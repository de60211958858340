//! Runs of a plan that are computed separately, on other machines, and added to the result of the first run.

use std::ops::Range;

use super::{Outcome, Plan, Problems, RunsProgress, one};

/// Metrics of one run, without its full measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct RunMetrics {
    /// Number of the run; the first run is 0.
    pub number: u32,
    /// Number of events.
    pub events: u64,
    /// Values of the metrics, in the order of those of the first run.
    pub values: Vec<f64>,
}

impl RunMetrics {
    /// Formats the run as a line of text that [`RunMetrics::read`] parses without loss.
    #[must_use]
    pub fn line(&self) -> String {
        let values: String = self.values.iter().map(|value| format!(",{value}")).collect();
        format!("{},{}{values}", self.number, self.events)
    }

    /// Parses a line; `None` if it is malformed.
    #[must_use]
    pub fn read(line: &str) -> Option<RunMetrics> {
        let mut cells = line.trim_end().split(',');
        let (number, events) = (cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
        let values = cells.map(|cell| cell.parse().ok()).collect::<Option<Vec<f64>>>()?;
        Some(RunMetrics { number, events, values })
    }
}

/// Computes the runs with the given numbers, as many at a time as there are cores.
///
/// # Errors
///
/// All invalid values of the plan, or if the runs were canceled.
pub fn run_metrics(plan: &Plan, numbers: Range<u32>, gauge: &RunsProgress) -> Result<Vec<RunMetrics>, Problems> {
    let runs = gauge.each(numbers.len() as u32, |index, progress| {
        let number = numbers.start + index;
        let run = one(plan, number, progress)?;
        let whole = !run.canceled;
        let values = run.metrics.into_iter().map(|(_, value)| value).collect();
        Ok(whole.then_some(RunMetrics { number, events: run.events, values }))
    });
    let runs = runs.into_iter().collect::<Result<Option<Vec<RunMetrics>>, Problems>>()?;
    runs.filter(|runs| runs.len() == numbers.len()).ok_or_else(|| Problems(vec!["interrupted".to_owned()]))
}

impl Outcome {
    /// Adds a further run. Runs must be added in the order of their numbers.
    ///
    /// # Errors
    ///
    /// If the run has another number of metrics, or is not the next one.
    pub fn add(&mut self, run: &RunMetrics) -> Result<(), Problems> {
        let next = self.metrics.first().map_or(0, |metric| metric.runs.len());
        if run.number as usize != next || run.values.len() != self.metrics.len() {
            let (found, expected) = (run.values.len(), self.metrics.len());
            let what = format!("run {} with {found} figures, expected run {next} with {expected}", run.number);
            return Err(Problems(vec![what]));
        }
        self.events += run.events;
        for (metric, value) in self.metrics.iter_mut().zip(&run.values) {
            metric.runs.push(*value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::super::run;
    use super::*;
    use atlas_legacy::simulator::Predecessor;

    #[test]
    fn partial_runs_joined_equal_a_single_run() {
        let catalog = &atlas_catalog::Catalog::built_in();
        let gauge = RunsProgress::default();
        let options = super::super::Options { jitter: Some(0.1), ..super::super::Options::default() };
        let predecessor = Predecessor::preset("small").unwrap();
        let plan =
            Plan { replications: 5, ..Plan::of_predecessor(&predecessor, catalog, &options, None, &gauge).unwrap() };
        let whole = run(&plan, &gauge).unwrap();
        let mut joined = run(&Plan { replications: 1, ..plan.clone() }, &gauge).unwrap();
        for numbers in [1..3, 3..3, 3..5] {
            for run in run_metrics(&plan, numbers, &gauge).unwrap() {
                let read = RunMetrics::read(&run.line()).unwrap();
                assert_eq!(read, run);
                joined.add(&read).unwrap();
            }
        }
        assert_eq!(joined, whole);
        let spread = &whole.metrics[0].runs;
        assert!(spread.iter().any(|value| *value != spread[0]), "the runs draw different numbers");
        let again = run_metrics(&plan, 1..2, &gauge).unwrap();
        assert!(joined.add(&again[0]).is_err(), "a run counts once");
    }

    #[test]
    fn malformed_run_line_is_refused() {
        for line in ["", "1", "a,2,3.5", "1,2,x", "-1,2,3"] {
            assert_eq!(RunMetrics::read(line), None, "{line}");
        }
    }
}
