//! Targets side by side for one workload: every metric a row, the best of each row marked, ratios to a baseline.

use serde_json::{Map, Value, json};

use super::table::{Align, Table};
use super::{ReportError, csv, serialised};
use atlas_config::Mode;
use atlas_plan::estimate::{Better, Estimate, METRICS, Metric, Verdict};
use atlas_plan::scenario::Scenario;

/// Most targets that are shown beside each other.
const MOST_COLUMNS: usize = 6;
/// Most key figures of a target where targets are the rows.
const MOST_FIGURES: usize = 7;

/// One target's answer, or why there is none.
#[derive(Debug, Clone)]
pub struct Column {
    /// The target.
    pub target: String,
    /// Scenario and estimate, or what stands in their way.
    pub answer: Result<(Scenario, Estimate), String>,
}

impl Column {
    /// Whether the target can run the workload, as far as the engine knows.
    fn verdict(&self) -> Option<Verdict> {
        Some(self.answer.as_ref().ok()?.1.detail?.verdict)
    }

    /// The same in a few words.
    fn told(&self) -> String {
        match self.verdict() {
            _ if self.answer.is_err() => "error".to_owned(),
            None => String::new(),
            Some(Verdict::Fits) => "fits".to_owned(),
            Some(Verdict::Memory { needs, has }) => format!("{:.1} GB too large", (needs - has) * 1e-9),
            Some(Verdict::Accelerators { needs, .. }) => format!("needs {needs} accelerators"),
            Some(Verdict::Indivisible { what, of, by }) => format!("{of} {what} / {by}"),
            Some(Verdict::Format { format, .. }) => format!("no {format}"),
            Some(Verdict::Overload { .. }) => "overloaded".to_owned(),
        }
    }
}

/// The side-by-side comparison.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The workload.
    pub workload: String,
    /// A column a target.
    pub columns: Vec<Column>,
    /// Index of the column that ratios refer to.
    pub baseline: usize,
}

/// One metric across the targets.
#[derive(Debug, Clone)]
pub struct Line {
    /// The metric.
    pub metric: &'static Metric,
    /// Its values, `None` where the target has no answer.
    pub values: Vec<Option<f64>>,
    /// Which values are the best; none where all are equal or the metric knows no better.
    pub best: Vec<bool>,
    /// Values over the baseline's.
    pub ratios: Vec<Option<f64>>,
}

impl Comparison {
    /// Every metric that applies to at least one of the answers.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        let answers = || self.columns.iter().filter_map(|column| column.answer.as_ref().ok());
        let applies = |metric: &&Metric| answers().any(|(scenario, _)| metric.applies_to(scenario));
        METRICS.iter().filter(applies).map(|metric| self.line(metric)).collect()
    }

    /// Whether the workload trains or serves.
    fn mode(&self) -> Mode {
        let first = self.columns.iter().find_map(|column| column.answer.as_ref().ok());
        first.map_or(Mode::Training, |(scenario, _)| scenario.mode())
    }

    /// Whether a column's figures come from the engine of the baseline: those of others are not related to them.
    fn compares(&self, column: &Column) -> bool {
        let engine = |column: &Column| column.answer.as_ref().ok().map(|(scenario, _)| scenario.engine);
        let base = self.columns.get(self.baseline).and_then(engine);
        base.is_none() || engine(column) == base
    }

    fn line(&self, metric: &'static Metric) -> Line {
        let value = |column: &Column| {
            let (scenario, estimate) = column.answer.as_ref().ok()?;
            metric.applies_to(scenario).then(|| (metric.get)(estimate, scenario))
        };
        let values: Vec<Option<f64>> = self.columns.iter().map(value).collect();
        // What cannot run is best at nothing.
        let runs: Vec<bool> = (self.columns.iter())
            .map(|column| column.verdict().is_none_or(|verdict| verdict.fits()) && self.compares(column))
            .collect();
        let running = || values.iter().zip(&runs).filter(|(_, runs)| **runs).map(|(value, _)| value);
        let finite = || running().flatten().copied().filter(|value| value.is_finite());
        let (low, high) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let wanted = match metric.better {
            Better::Higher if low < high => Some(high),
            Better::Lower if low < high => Some(low),
            _ => None,
        };
        let best = values.iter().zip(&runs).map(|(value, runs)| *runs && value.is_some() && *value == wanted).collect();
        let base = values.get(self.baseline).copied().flatten();
        let ratio = |value: &Option<f64>| match (value, base) {
            (Some(value), Some(base)) if base != 0.0 => Some(value / base).filter(|ratio| ratio.is_finite()),
            _ => None,
        };
        let related = values.iter().zip(&self.columns).map(|(value, column)| value.filter(|_| self.compares(column)));
        let ratios = related.map(|value| ratio(&value)).collect();
        Line { metric, values, best, ratios }
    }

    /// As a plain table: a column a target with every metric, or, where there are more targets than fit beside each
    /// other, a row a target with the key figures of training or serving.
    #[must_use]
    pub fn table(&self) -> String {
        if self.columns.len() > MOST_COLUMNS { self.rows() } else { self.side_by_side() }
    }

    fn rows(&self) -> String {
        let lines = self.lines();
        let telling: Vec<&Line> = Metric::headlines(self.mode())
            .filter_map(|metric| lines.iter().find(|line| line.metric == metric))
            .take(MOST_FIGURES)
            .collect();
        let mut head = vec![("target".to_owned(), Align::Left), ("accelerators".to_owned(), Align::Right)];
        head.extend(telling.iter().map(|line| (line.metric.label.to_owned(), Align::Right)));
        head.push(("runs?".to_owned(), Align::Left));
        let mut table = Table::new(head);
        for (i, column) in self.columns.iter().enumerate() {
            let accelerators = column.answer.as_ref().map_or(f64::NAN, |(scenario, _)| scenario.accelerators());
            let mut cells = vec![
                column.target.clone(),
                if accelerators.is_nan() { String::new() } else { accelerators.to_string() },
            ];
            cells.extend(telling.iter().map(|line| {
                let Some(value) = line.values.get(i).copied().flatten() else { return String::new() };
                let mark = if line.best.get(i).copied().unwrap_or(false) { "*" } else { " " };
                format!("{}{mark}", line.metric.show(value))
            }));
            cells.push(column.told());
            table.row(cells);
        }
        let hint = "name up to six targets (--target) for every metric side by side";
        let mut out = format!("workload {}\n\n{}", self.workload, table.render());
        for (column, error) in self.columns.iter().filter_map(|column| Some((column, column.answer.as_ref().err()?))) {
            out.push_str(&format!("\n{}: {error}", column.target));
        }
        out.push_str(&format!("\n* best of what runs; {hint}\n"));
        out
    }

    fn side_by_side(&self) -> String {
        let mut head = vec![(String::new(), Align::Left)];
        for (i, column) in self.columns.iter().enumerate() {
            let baseline = if i == self.baseline && self.columns.len() > 1 { " (baseline)" } else { "" };
            head.push((format!("{}{baseline}", column.target), Align::Right));
        }
        let mut table = Table::new(head);
        let mut section = None;
        let mut lines = self.lines();
        let order: Vec<&Metric> = Metric::by_importance(self.mode()).collect();
        lines.sort_by_key(|line| order.iter().position(|metric| *metric == line.metric));
        for line in lines {
            let first = Metric::headlines(self.mode()).any(|metric| metric == line.metric);
            let name = if first { "key figures" } else { line.metric.section.name() };
            if section != Some(name) {
                section = Some(name);
                table.section(name);
            }
            let cells = (0..self.columns.len()).map(|i| self.cell(&line, i));
            table.row(std::iter::once(format!("  {}", line.metric.label)).chain(cells));
        }
        let mut out = format!("workload {}\n\n{}", self.workload, table.render());
        let failed = self.columns.iter().filter_map(|column| Some((column, column.answer.as_ref().err()?)));
        for (column, error) in failed {
            out.push_str(&format!("\n{}: {error}", column.target));
        }
        if self.columns.iter().any(|column| column.answer.is_err()) {
            out.push('\n');
        }
        out.push_str("\n* best of the row; ratios are to the baseline\n");
        out
    }

    /// Value, ratio to the baseline where it is another column, mark where it is the best; all of equal width, so that
    /// figures stand below figures.
    fn cell(&self, line: &Line, i: usize) -> String {
        if self.columns.get(i).is_none_or(|column| column.answer.is_err()) {
            return "error".to_owned();
        }
        let Some(value) = line.values.get(i).copied().flatten() else { return "n/a".to_owned() };
        let mark = if line.best.get(i).copied().unwrap_or(false) { "*" } else { " " };
        let ratio = line.ratios.get(i).copied().flatten().filter(|_| i != self.baseline);
        let ratio = ratio.map_or_else(String::new, |ratio| format!("×{}", atlas_core::units::significant(ratio, 3)));
        let shown = line.metric.show(value);
        if self.columns.len() == 1 { shown } else { format!("{shown}{mark} {ratio:>6}") }
    }

    /// As JSON.
    pub fn json(&self) -> Result<String, ReportError> {
        serialised(&self.document(), false)
    }

    /// As YAML.
    pub fn yaml(&self) -> Result<String, ReportError> {
        serialised(&self.document(), true)
    }

    /// As data.
    #[must_use]
    pub fn document(&self) -> Value {
        let lines = self.lines();
        let targets = self.columns.iter().enumerate().map(|(i, column)| match &column.answer {
            Err(error) => json!({"target": column.target, "error": error}),
            Ok((scenario, _)) => {
                let pick = |of: &dyn Fn(&Line) -> Option<f64>| -> Map<String, Value> {
                    lines.iter().filter_map(|line| Some((line.metric.name.to_owned(), json!(of(line)?)))).collect()
                };
                let best = lines.iter().filter(|line| line.best.get(i).copied().unwrap_or(false));
                let best: Vec<&str> = best.map(|line| line.metric.name).collect();
                json!({
                    "target": column.target,
                    "knobs": atlas_plan::record::Knobs::of(scenario),
                    "metrics": pick(&|line| line.values.get(i).copied().flatten()),
                    "ratios": pick(&|line| line.ratios.get(i).copied().flatten()),
                    "best_of": best,
                })
            }
        });
        let targets: Vec<Value> = targets.collect();
        let baseline = self.columns.get(self.baseline).map(|column| column.target.clone());
        json!({"workload": self.workload, "baseline": baseline, "targets": targets})
    }

    /// As CSV: a line a metric, a column a target, then the best target's name.
    #[must_use]
    pub fn csv(&self) -> String {
        let targets = self.columns.iter().map(|column| column.target.as_str());
        let mut out = csv::line(std::iter::once("metric").chain(targets).chain(["best"]));
        for line in self.lines() {
            let mut cells = vec![line.metric.name.to_owned()];
            cells.extend(line.values.iter().map(|value| value.map_or_else(String::new, |value| value.to_string())));
            let best = self.columns.iter().zip(&line.best).filter(|(_, best)| **best);
            let best: Vec<&str> = best.map(|(column, _)| column.target.as_str()).collect();
            cells.push(best.join(" "));
            out.push_str(&csv::line(cells.iter().map(String::as_str)));
        }
        out
    }
}
