//! Breakdowns as text bars with percentages that sum to 100.

use super::table::{Table, left, right};
use atlas_core::sort;
use atlas_plan::estimate::{Breakdown, Part};

/// Length of the longest bar in terminal columns.
const MAX_BAR_COLUMNS: f64 = 30.0;

/// Percentages with one decimal that sum to exactly 100.0: the parts with the largest remainders are rounded up.
#[must_use]
pub fn percentages(parts: &[f64]) -> Vec<f64> {
    let total: f64 = parts.iter().sum();
    if total <= 0.0 || !total.is_finite() {
        return vec![0.0; parts.len()];
    }
    let exact: Vec<f64> = parts.iter().map(|part| 1000.0 * part / total).collect();
    let mut shown: Vec<f64> = exact.iter().map(|tenths| tenths.floor()).collect();
    let mut order: Vec<usize> = (0..parts.len()).collect();
    let remainder = |i: &usize| exact.get(*i).map_or(0.0, |tenths| tenths.fract());
    sort::by(&mut order, |a, b| remainder(b).total_cmp(&remainder(a)));
    let mut missing = 1000.0 - shown.iter().sum::<f64>();
    for i in order {
        if missing < 0.5 {
            break;
        }
        if let Some(tenths) = shown.get_mut(i) {
            *tenths += 1.0;
            missing -= 1.0;
        }
    }
    shown.into_iter().map(|tenths| tenths / 10.0).collect()
}

/// Renders name, bar, share and value of every part above zero, largest first.
#[must_use]
pub fn bars<P: Part>(breakdown: &Breakdown<P>, show: impl Fn(f64) -> String) -> String {
    let mut parts: Vec<(P, f64)> = breakdown.parts().filter(|(_, value)| *value > 0.0).collect();
    sort::by(&mut parts, |a, b| b.1.total_cmp(&a.1));
    let shares = percentages(&parts.iter().map(|(_, value)| *value).collect::<Vec<f64>>());
    let largest = shares.iter().fold(0.0f64, |largest, share| largest.max(*share));
    let mut table = Table::new([left(""), left(""), right(""), right("")]);
    for ((part, value), share) in parts.iter().zip(&shares) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the longest bar")]
        let length = (MAX_BAR_COLUMNS * share / largest.max(1e-9)).round() as usize;
        table.row([format!("  {}", part.name()), "█".repeat(length), format!("{share:.1} %"), show(*value)]);
    }
    let total: f64 = shares.iter().sum();
    table.row(["  all".to_owned(), String::new(), format!("{total:.1} %"), show(breakdown.total())]);
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_sum_to_a_hundred_whatever_the_parts() {
        for parts in [vec![1.0, 1.0, 1.0], vec![0.1; 7], vec![1e-9, 5.0, 3.0, 2.3], vec![42.0]] {
            let sum: f64 = percentages(&parts).iter().sum();
            assert!((sum - 100.0).abs() < 1e-9, "{parts:?}: {sum}");
        }
        assert_eq!(percentages(&[0.0, 0.0]), [0.0, 0.0]);
    }
}
