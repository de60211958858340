//! Detection of rows in a table that contradict each other: equal measurements on two accelerators, and one
//! configuration whose throughputs differ by more than a factor of two. Only the cells of the table are compared.

use std::collections::HashMap;

use super::table::Row;

/// Columns with measured metrics.
const MEASURED: [&str; 10] = [
    "output_tokens_per_sec_total",
    "total_tokens_per_sec",
    "tokens_per_sec_per_accel",
    "requests_per_sec",
    "ttft_ms_mean",
    "ttft_ms_p99",
    "tpot_ms_mean",
    "tpot_ms_p99",
    "e2e_ms_mean",
    "e2e_ms_p99",
];

/// Number of significant digits from which the repetition of a value is not a coincidence.
const MIN_DIGITS: usize = 4;
/// Ratio between two throughputs of one configuration above which neither is trusted.
const MAX_RATIO: f64 = 2.0;

const COPIED: &str = "the same measured values are listed for two accelerators, one of them is a copy";
const CONFLICTING: &str = "throughputs of the same configuration differ by more than a factor of two";

/// Returns for each row the reason to exclude it, if another row contradicts it.
pub(super) fn contradicted(rows: &[Row]) -> Vec<Option<&'static str>> {
    let mut reasons = vec![None; rows.len()];
    let mut mark = |group: &[usize], reason| {
        for &at in group {
            if let Some(slot) = reasons.get_mut(at) {
                *slot = Some(reason);
            }
        }
    };
    let row = |at: &usize| rows.get(*at);
    for group in grouped(rows, configuration).values() {
        let rates: Vec<f64> = group.iter().filter_map(row).filter_map(throughput).collect();
        let most = rates.iter().copied().fold(0.0, f64::max);
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        if rates.len() > 1 && most > MAX_RATIO * least {
            mark(group, CONFLICTING);
        }
    }
    for group in grouped(rows, figures).values() {
        let first = group.first().and_then(row).map(|r| r.text("accelerator"));
        if group.iter().filter_map(row).any(|r| Some(r.text("accelerator")) != first) {
            mark(group, COPIED);
        }
    }
    reasons
}

/// Groups the indices of the rows by a key. Rows without a key are left out.
fn grouped(rows: &[Row], key: impl Fn(&Row) -> Option<String>) -> HashMap<String, Vec<usize>> {
    let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        if let Some(key) = key(row) {
            groups.entry(key).or_default().push(at);
        }
    }
    groups
}

fn throughput(row: &Row) -> Option<f64> {
    ["output_tokens_per_sec_total", "total_tokens_per_sec", "tokens_per_sec_per_accel", "requests_per_sec"]
        .iter()
        .find_map(|column| row.positive(column))
}

/// Returns all cells of a row except for measured metrics, its id and its position in the source. `None` if the row has
/// no throughput.
fn configuration(row: &Row) -> Option<String> {
    throughput(row)?;
    let own = |name: &str| MEASURED.contains(&name) || matches!(name, "id" | "source_path");
    Some(row.cells().filter(|(name, _)| !own(name)).map(|(_, cell)| format!("{cell}\n")).collect())
}

/// Returns the measured metrics of a row with its source, engine and model, if at least two of the values are unlikely
/// to repeat by chance.
fn figures(row: &Row) -> Option<String> {
    let cells: Vec<&str> = MEASURED.iter().map(|column| row.text(column)).filter(|cell| !cell.is_empty()).collect();
    let digits = |cell: &str| cell.trim_start_matches(['0', '.']).chars().filter(char::is_ascii_digit).count();
    let distinctive = cells.iter().filter(|cell| digits(cell) >= MIN_DIGITS).count();
    (distinctive >= 2).then(|| [row.text("source"), row.text("engine"), row.text("model"), &cells.join(" ")].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    fn reasons(lines: &str) -> Vec<Option<&'static str>> {
        let head = "id,source,engine,accelerator,model,concurrency,output_tokens_per_sec_total,ttft_ms_mean,notes";
        contradicted(&table::read(&format!("{head}\n{lines}")).unwrap_or_default().1)
    }

    #[test]
    fn same_measurement_on_two_accelerators_is_flagged_as_copied() {
        let rows = "a,s,e,a100,m,8,1234.5,16583.8,\nb,s,e,h100,m,8,1234.5,16583.8,\nc,s,e,h100,m,8,1300.5,16001.8,\n";
        assert_eq!(reasons(rows), [Some(COPIED), Some(COPIED), None]);
    }

    #[test]
    fn round_values_and_repeats_on_one_device_are_not_flagged_as_copied() {
        assert_eq!(reasons("a,s,e,a100,m,8,120,16,\nb,s,e,h100,m,8,120,16,\n"), [None, None]);
        assert_eq!(reasons("a,s,e,a100,m,8,1234.5,16583.8,\nb,s,e,a100,m,8,1234.5,16583.8,\n"), [None, None]);
    }

    #[test]
    fn rates_of_one_configuration_more_than_2x_apart_conflict() {
        let rows =
            "a,s,e,a100,m,1,126.1,,\nb,s,e,a100,m,1,13.3,,\nc,s,e,a100,m,1,126.1,,other\nd,s,e,a100,m,2,13.3,,\n";
        assert_eq!(reasons(rows), [Some(CONFLICTING), Some(CONFLICTING), None, None]);
        assert_eq!(reasons("a,s,e,a100,m,1,126.1,,\nb,s,e,a100,m,1,93.3,,\n"), [None, None]);
    }
}
