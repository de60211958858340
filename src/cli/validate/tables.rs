//! Output of verdicts as text, CSV and JSON.

use std::collections::BTreeMap;

use atlas_core::units;
use atlas_evidence::validate::report::Stats;
use atlas_evidence::validate::verdict::{self, Verdict};
use atlas_evidence::validate::{MeasurementKind, report, scatter};
use atlas_report::csv;
use atlas_report::table::{Table, left, right};

/// Rows and their statistics as JSON.
///
/// If the work was interrupted, `partial` is the number of rows evaluated and the total number.
pub(super) fn document(verdicts: &[(MeasurementKind, Vec<Verdict>)], partial: Option<(u64, u64)>) -> serde_json::Value {
    let numbers = |stats: &Stats| {
        // Statistics are null without rows.
        let known = |value: f64| (stats.n > 0).then_some(value);
        serde_json::json!({
            "n": stats.n,
            "median_pct": known(stats.median),
            "p90_pct": known(stats.p90),
            "mean_pct": known(stats.mean),
            "bias_pct": known(stats.bias),
        })
    };
    let kinds = verdicts.iter().map(|(kind, rows)| {
        let sources = verdict::by(rows, |verdict| &verdict.source);
        let (covered, with_interval) = verdict::coverage(rows);
        serde_json::json!({
            "kind": kind.name(),
            "rows": rows.len(),
            "skipped": Skipped::of(rows).reasons,
            "errors": numbers(&verdict::overall(rows)),
            "sources": sources.iter().map(|(name, stats)| ((*name).to_owned(), numbers(stats))).collect::<serde_json::Map<_, _>>(),
            "interval_coverage": (with_interval > 0).then_some(covered),
            "rows_with_interval": with_interval,
        })
    });
    let rows: Vec<&Verdict> = verdicts.iter().flat_map(|(_, rows)| rows).collect();
    let mut document = serde_json::json!({"rows": rows, "kinds": kinds.collect::<Vec<_>>()});
    if let (Some((judged, of)), Some(fields)) = (partial, document.as_object_mut()) {
        fields.insert("partial".to_owned(), serde_json::json!({"rows_judged": judged, "rows": of}));
    }
    document
}

/// Verdicts excluded from the statistics, by reason.
struct Skipped<'v> {
    reasons: BTreeMap<&'static str, usize>,
    predicted: usize,
    copies: Vec<&'v Verdict>,
}

impl<'v> Skipped<'v> {
    fn of(verdicts: &'v [Verdict]) -> Skipped<'v> {
        let mut reasons: BTreeMap<&'static str, usize> = BTreeMap::new();
        for reason in verdicts.iter().filter_map(|verdict| verdict.reason.as_deref()) {
            let kind = if reason.starts_with("excluded") { "excluded by the table" } else { "not predicted" };
            *reasons.entry(kind).or_default() += 1;
        }
        let copies: Vec<&Verdict> =
            verdicts.iter().filter(|verdict| verdict.predicted.is_some() && verdict.copy_of.is_some()).collect();
        if !copies.is_empty() {
            reasons.insert("duplicates of an earlier row", copies.len());
        }
        let predicted = verdicts.iter().filter(|verdict| verdict.predicted.is_some()).count() - copies.len();
        Skipped { reasons, predicted, copies }
    }

    /// Summary in one line, with the total.
    fn line(&self, all: usize) -> String {
        let skipped: Vec<String> = self.reasons.iter().map(|(what, n)| format!("{n} {what}")).collect();
        let skipped = if skipped.is_empty() { "none skipped".to_owned() } else { skipped.join(", ") };
        format!("{all} rows: {} counted, {skipped}\n", self.predicted)
    }
}

pub(super) fn csv(verdicts: &[Verdict]) -> String {
    let head = ["id", "metric", "source", "accelerator", "regime", "measured", "predicted", "lower", "upper", "reason"];
    let mut out = csv::line(head);
    for v in verdicts {
        let names = [&v.id, v.metric_name(), &v.source, &v.accelerator, v.regime].map(str::to_owned);
        let figures = [v.measured, v.predicted, v.lower, v.upper].map(csv::optional);
        out += &csv::line(
            names.iter().chain(&figures).map(String::as_str).chain([v.reason.as_deref().unwrap_or_default()]),
        );
    }
    out
}

/// Maximum reasons listed on a page.
const REASONS: usize = 60;

/// Renders the verdicts as a page of text.
pub(super) fn page(kind: MeasurementKind, rows: &[Verdict]) -> String {
    let mut out = format!("{}\n\n", kind.title());
    for metric in kind.metrics() {
        // The throughput of serving is stated in one of three columns, so each row has its own metric.
        let of: Vec<Verdict> =
            rows.iter().filter(|verdict| metric.is_none() || verdict.metric == *metric).cloned().collect();
        let metric = verdict::metric_name(*metric);
        let (stats, skipped) = (verdict::overall(&of), Skipped::of(&of));
        if stats.n == 0 {
            out += &format!("{metric}: no row was predicted\n{}\n", skipped.line(of.len()));
            continue;
        }
        let sources = verdict::by(&of, |verdict| &verdict.source);
        let mut table = error_table(metric);
        table.section("by source");
        for (name, stats) in &sources {
            table.row(cells(name, stats));
        }
        table.section("by accelerator");
        for (name, stats) in verdict::by(&of, |verdict| &verdict.accelerator) {
            table.row(cells(name, &stats));
        }
        table.section("by regime");
        for (name, stats) in verdict::by(&of, |verdict| verdict.regime) {
            table.row(cells(name, &stats));
        }
        table.section("all");
        table.row(cells("all rows predicted", &stats));
        out += &table.render();
        out += &skipped.line(of.len());
        for copy in &skipped.copies {
            let first = copy.copy_of.as_deref().unwrap_or_default();
            out += &format!("  {} duplicates {first}\n", copy.id);
        }
        let (covered, n) = verdict::coverage(&of);
        out += &format!(
            "{}\n{} of measurements are inside the 90 % interval ({n} rows)\n\n",
            describe_median_mean("sources'", &sources, &stats),
            units::percent(covered)
        );
        out += &scatter::text(&of, 64, 24);
        out.push('\n');
    }
    let reasons = verdict::reasons(rows);
    if !reasons.is_empty() {
        out += "not predicted\n";
        let more = reasons.len().saturating_sub(REASONS);
        for (reason, n) in reasons.into_iter().take(REASONS) {
            out += &format!("{n:>6}  {reason}\n");
        }
        if more > 0 {
            out += &format!("        {more} more reasons; use --format csv for the reason of every row\n");
        }
        out.push('\n');
    }
    out
}

/// Describes the mean of the groups' medians.
pub(super) fn describe_median_mean<K>(whose: &str, groups: &BTreeMap<K, Stats>, all: &Stats) -> String {
    let mean = report::mean_of_medians(groups);
    format!("mean of the {whose} medians {mean:.1} %, {:.2} times the median of all rows", mean / all.median)
}

/// An empty table of errors, whose rows are [`cells`].
pub(super) fn error_table(what: &str) -> Table {
    Table::new([left(what), right("n"), right("median"), right("p90"), right("mean"), right("bias")])
}

/// A row of a table of errors.
pub(super) fn cells(name: &str, stats: &Stats) -> Vec<String> {
    let percent = |value: f64| format!("{value:.1} %");
    vec![
        format!("  {}", name.chars().take(64).collect::<String>()),
        stats.n.to_string(),
        percent(stats.median),
        percent(stats.p90),
        percent(stats.mean),
        format!("{:+.1} %", stats.bias),
    ]
}
