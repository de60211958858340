//! Summary of records: a row per (target, workload, track), aggregated as the predecessor does.

use atlas_core::escape::markdown;
use atlas_core::sort;
use serde::Serialize;

use super::read::Entry;
use super::table::{Align, Table, left, right};
use super::{Format, ReportError, csv, to_json, to_yaml};

/// Means over the runs of one (target, workload, track), rounded as the predecessor does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The target.
    pub target: String,
    /// The workload.
    pub workload: String,
    /// The track.
    pub track: String,
    /// Number of records.
    pub runs: usize,
    /// Mean tokens/s, two decimals.
    pub tokens_per_sec_mean: f64,
    /// Mean tokens/s per watt of one node, six decimals.
    pub perf_per_watt_mean: f64,
    /// Mean USD per 1000 tokens of the records that state them, four decimals; `None` if none does.
    pub dollar_per_1k_tokens_mean: Option<f64>,
}

/// All rows, in order of the first record of each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The rows.
    pub rows: Vec<Row>,
    /// Number of records in all rows together.
    pub count: usize,
}

const HEAD: [(&str, Align); 7] = [
    left("target"),
    left("workload"),
    left("track"),
    right("runs"),
    right("tok/s (mean)"),
    right("tok/s per W (mean)"),
    right("$/1k tokens (mean)"),
];

impl Summary {
    /// Groups the records and computes the means.
    #[must_use]
    pub fn of(entries: &[Entry]) -> Summary {
        let mut groups: Vec<Vec<&Entry>> = Vec::new();
        for entry in entries {
            let same = |group: &&mut Vec<&Entry>| group.first().is_some_and(|first| first.key() == entry.key());
            match groups.iter_mut().find(same) {
                Some(group) => group.push(entry),
                None => groups.push(vec![entry]),
            }
        }
        Summary { rows: groups.iter().filter_map(|group| row(group)).collect(), count: entries.len() }
    }

    /// Writes the summary in the given format.
    pub fn write(&self, format: Format) -> Result<String, ReportError> {
        match format {
            Format::Table => Ok(self.table()),
            Format::Json => to_json(self),
            Format::Yaml => to_yaml(self),
            Format::Csv => Ok(self.csv()),
        }
    }

    /// Rows sorted by target, workload and track.
    fn sorted(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        sort::by(&mut rows, |a, b| (&a.target, &a.workload, &a.track).cmp(&(&b.target, &b.workload, &b.track)));
        rows
    }

    fn table(&self) -> String {
        let mut table = Table::new(HEAD);
        for row in self.sorted() {
            table.row(row.cells());
        }
        table.render()
    }

    fn csv(&self) -> String {
        let names = [
            "target",
            "workload",
            "track",
            "runs",
            "tokens_per_sec_mean",
            "perf_per_watt_mean",
            "dollar_per_1k_tokens_mean",
        ];
        let mut out = csv::line(names);
        for row in &self.rows {
            out.push_str(&csv::line(row.cells().iter().map(String::as_str)));
        }
        out
    }

    /// Returns the summary as a Markdown document.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = format!("# Atlas Fabric Report\n\nTotal runs: {}\n\n", self.count);
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        out.push_str(&line(&HEAD.map(|(name, _)| name.to_owned())));
        out.push_str("|---|---|---|---:|---:|---:|---:|\n");
        for row in self.sorted() {
            out.push_str(&line(&row.cells().map(|cell| markdown(&cell))));
        }
        out.push_str(
            "\nMeans over all records of a target, workload and track, optimized ones included. Power is that of one \
             node, and $/1k tokens is one node's cost over the tokens of all nodes, as the predecessor system counts.\n",
        );
        out
    }
}

impl Row {
    fn cells(&self) -> [String; 7] {
        [
            self.target.clone(),
            self.workload.clone(),
            self.track.clone(),
            self.runs.to_string(),
            self.tokens_per_sec_mean.to_string(),
            self.perf_per_watt_mean.to_string(),
            csv::optional(self.dollar_per_1k_tokens_mean),
        ]
    }
}

fn row(group: &[&Entry]) -> Option<Row> {
    let first = group.first()?;
    Some(Row {
        target: first.target.clone(),
        workload: first.workload.clone(),
        track: first.track.clone(),
        runs: group.len(),
        tokens_per_sec_mean: mean(group, 2, |entry| Some(entry.tokens_per_sec))?,
        perf_per_watt_mean: mean(group, 6, |entry| Some(entry.tokens_per_sec_per_watt()))?,
        dollar_per_1k_tokens_mean: mean(group, 4, |entry| entry.dollar_per_1k_tokens),
    })
}

/// Mean of the known values; `None` if no value is known.
fn mean(group: &[&Entry], places: usize, figure: impl Fn(&Entry) -> Option<f64>) -> Option<f64> {
    let known = || group.iter().filter_map(|entry| figure(entry));
    let mean = Some(known().sum::<f64>() / known().count() as f64).filter(|mean| !mean.is_nan())?;
    // Formatting rounds the exact value, ties to even, as Python's `round` does.
    Some(format!("{mean:.places$}").parse().unwrap_or(mean))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn entry(track: &str, tokens_per_sec: f64) -> Entry {
        Entry {
            target: "T|x".into(),
            workload: "w".into(),
            track: track.into(),
            tokens_per_sec,
            node_power_w: 1000.0,
            dollar_per_1k_tokens: Some(0.012_345),
        }
    }

    #[test]
    fn summary_rows_keep_record_order_and_markdown_is_sorted() {
        let summary = Summary::of(&[entry("parity", 1.005), entry("best", 3.0), entry("parity", 2.0)]);
        assert_eq!(summary.count, 3);
        let tracks: Vec<&str> = summary.rows.iter().map(|row| row.track.as_str()).collect();
        assert_eq!(tracks, ["parity", "best"]);
        assert_eq!(summary.rows.iter().map(|row| row.tokens_per_sec_mean).collect::<Vec<_>>(), [1.5, 3.0]);
        let markdown = summary.markdown();
        assert!(markdown.contains("| T\\|x | w | best | 1 | 3 | 0.003 | 0.0123 |\n| T\\|x | w | parity | 2 |"));
        assert!(Summary::of(&[]).rows.is_empty());
    }

    #[test]
    fn unknown_costs_are_no_part_of_the_mean() {
        let unknown = Entry { dollar_per_1k_tokens: None, ..entry("parity", 2.0) };
        let mean = |entries: &[Entry]| Summary::of(entries).rows.first().unwrap().dollar_per_1k_tokens_mean;
        assert_eq!(mean(&[entry("parity", 1.0), unknown.clone()]), Some(0.0123));
        assert_eq!(mean(std::slice::from_ref(&unknown)), None);
        let csv = Summary::of(std::slice::from_ref(&unknown)).csv();
        assert!(csv.ends_with(",0.002,\n"), "{csv}");
        let json = Summary::of(&[unknown]).write(Format::Json).unwrap();
        assert!(json.contains("\"dollar_per_1k_tokens_mean\": null"), "{json}");
    }
}
