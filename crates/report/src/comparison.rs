//! Comparison of targets for one workload: a row per metric, the best of each row marked, ratios to a baseline.
//! Estimates of engines that are not comparable are in a separate table.

use serde_json::{Map, Value, json};

use super::table::{Align, Table, left, right};
use super::{ReportError, csv, optimum, to_json, to_yaml};
use atlas_config::Mode;
use atlas_core::plan::Engine;
use atlas_core::sort;
use atlas_plan::estimate::digits;
use atlas_plan::estimate::standing::{Rank, available_value, comparable, ranks, value_with_interval};
use atlas_plan::estimate::{Estimate, METRICS, Metric, Verdict};
use atlas_plan::knob::{Knob, Setting};
use atlas_plan::scenario::Scenario;
use atlas_plan::search::methodology::{price_type, prices_prevent_ranking};

/// Maximum targets that are shown as columns; more are shown as rows.
const MAX_COLUMNS: usize = 6;
/// Maximum metrics that are shown where targets are the rows.
const MAX_METRICS: usize = 7;

/// Estimate of one target, or why it failed.
#[derive(Debug, Clone)]
pub struct Column {
    /// The target.
    pub target: String,
    /// The scenario and its estimate, or why it cannot be estimated.
    pub answer: Result<(Scenario, Estimate), String>,
    /// Settings that replace those of the workload, which do not run on the target, as `knob=value`.
    pub adapted: Vec<String>,
    /// Knobs that a search of the best configuration changed, with their values.
    pub changes: Vec<(Knob, Setting)>,
}

impl Column {
    /// Whether the workload can run on the target, if the engine determines it.
    fn verdict(&self) -> Option<Verdict> {
        Some(self.answer.as_ref().ok()?.1.detail?.verdict)
    }

    /// [`Column::verdict`] in a few words.
    fn described(&self) -> String {
        match self.verdict() {
            _ if self.answer.is_err() => "error".to_owned(),
            None => String::new(),
            Some(verdict) => verdict.brief(),
        }
    }
}

/// The side-by-side comparison.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The workload.
    pub workload: String,
    /// One column per target.
    pub columns: Vec<Column>,
    /// Index of the column that ratios are relative to.
    pub baseline: usize,
    /// Metrics to show, in this order; all applicable ones if empty.
    pub chosen: Vec<&'static Metric>,
}

/// One metric across the targets.
#[derive(Debug, Clone)]
pub struct Line {
    /// The metric.
    pub metric: &'static Metric,
    /// Value per target; `None` if the target has no estimate or cannot run the workload.
    pub values: Vec<Option<f64>>,
    /// Which of the comparable values are best or tied for best.
    pub ranks: Vec<Rank>,
    /// Ratios of the comparable values to the baseline's.
    pub ratios: Vec<Option<f64>>,
}

impl Line {
    fn has_rank(&self, i: usize, standing: Rank) -> bool {
        self.ranks.get(i) == Some(&standing)
    }

    fn mark(&self, i: usize) -> &'static str {
        match self.ranks.get(i) {
            Some(Rank::Best) => "*",
            Some(Rank::Tied) => "=",
            _ => " ",
        }
    }
}

/// Legend of the marks.
const MARKS: &str = "* best: its interval overlaps no other; = tied with the best: the intervals overlap";

impl Comparison {
    /// Engine of the main table: the first one that models hardware, else the baseline's.
    fn engine(&self) -> Option<Engine> {
        let engines = || self.columns.iter().filter_map(|column| Some(column.answer.as_ref().ok()?.0.engine));
        let baseline = self.columns.get(self.baseline).and_then(|column| Some(column.answer.as_ref().ok()?.0.engine));
        engines().find(|engine| engine.models_hardware()).or(baseline).or_else(|| engines().next())
    }

    /// Whether a column's estimate is comparable with those of the main table.
    fn compares(&self, column: &Column) -> bool {
        let engine = self.engine();
        column.answer.as_ref().map_or(true, |(scenario, _)| engine.is_none_or(|main| comparable(main, scenario.engine)))
    }

    /// Indices of the columns in the main table, or in the separate one if `main` is unset.
    fn places(&self, main: bool) -> Vec<usize> {
        let among = self.columns.iter().enumerate().filter(|(_, column)| self.compares(column) == main);
        among.map(|(i, _)| i).collect()
    }

    /// Column that ratios are relative to: the baseline, or the first comparable column if the baseline is not
    /// comparable.
    fn reference(&self) -> usize {
        let main = self.places(true);
        if main.contains(&self.baseline) { self.baseline } else { main.first().copied().unwrap_or(self.baseline) }
    }

    /// Metrics to show, without those that apply to none of the estimates.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        let usual = METRICS.iter().filter(|_| self.chosen.is_empty());
        usual
            .chain(self.chosen.iter().copied())
            .filter(|metric| self.has(metric))
            .map(|metric| self.line(metric))
            .collect()
    }

    /// Whether a metric applies to one of the targets.
    #[must_use]
    pub fn has(&self, metric: &Metric) -> bool {
        self.columns.iter().flat_map(|column| &column.answer).any(|(scenario, _)| metric.applies_to(scenario))
    }

    /// Sorts the columns by a metric, best first, as the TUI does. Targets that cannot run or have no value come last.
    pub fn sort_by(&mut self, metric: &Metric) {
        let baseline = self.columns.get(self.baseline).map(|column| column.target.clone());
        let key = |column: &Column| {
            let value = column.answer.as_ref().ok().and_then(|(scenario, e)| available_value(metric, scenario, e));
            let fits = column.answer.is_ok() && column.verdict().is_none_or(|verdict| verdict.fits());
            (!fits, value.map_or(f64::INFINITY, |value| metric.better.sort_key(value)))
        };
        sort::by(&mut self.columns, |a, b| {
            let ((a_unfit, a), (b_unfit, b)) = (key(a), key(b));
            a_unfit.cmp(&b_unfit).then(a.total_cmp(&b))
        });
        let place = self.columns.iter().position(|column| Some(&column.target) == baseline.as_ref());
        self.baseline = place.unwrap_or(self.baseline);
    }

    fn line(&self, metric: &'static Metric) -> Line {
        let value = |column: &Column| {
            let (scenario, estimate) = column.answer.as_ref().ok()?;
            available_value(metric, scenario, estimate)
        };
        let values: Vec<Option<f64>> = self.columns.iter().map(value).collect();
        let compares: Vec<bool> = self.columns.iter().map(|column| self.compares(column)).collect();
        // Prices of different types are not ranked, and have ratios only to a price of the same type.
        let answered = || self.columns.iter().filter_map(|column| Some(&column.answer.as_ref().ok()?.0));
        let mixed = prices_prevent_ranking(metric, answered());
        let basis = |column: &Column| column.answer.as_ref().ok().map(|(scenario, _)| price_type(scenario));
        let reference = self.columns.get(self.reference()).map(basis);
        // A target that cannot run is not ranked, nor is one whose engine is not comparable.
        let rank = |(column, compares): (&Column, &bool)| {
            let (scenario, estimate) = column.answer.as_ref().ok()?;
            let runs = column.verdict().is_none_or(|verdict| verdict.fits());
            (*compares && runs && !mixed).then(|| value_with_interval(metric, scenario, estimate)).flatten()
        };
        let figures: Vec<_> = self.columns.iter().zip(&compares).map(rank).collect();
        let base = values.get(self.reference()).copied().flatten();
        let ratio = |((value, compares), column): ((&Option<f64>, &bool), &Column)| match (value, base) {
            (Some(value), Some(base)) if *compares && base != 0.0 && (!mixed || Some(basis(column)) == reference) => {
                Some(value / base).filter(|ratio| ratio.is_finite())
            }
            _ => None,
        };
        let ratios = values.iter().zip(&compares).zip(&self.columns).map(ratio).collect();
        Line { metric, values, ranks: ranks(&figures, metric.better), ratios }
    }

    /// Renders plain tables: a column per target with all metrics, or a row per target with the key metrics if there
    /// are too many targets for columns. Estimates that are not comparable are in a separate table without marks.
    #[must_use]
    pub fn table(&self) -> String {
        let lines = self.lines();
        let (main, others) = (self.places(true), self.places(false));
        let wide = main.len().max(others.len()) > MAX_COLUMNS;
        let table = |places: &[usize]| if wide { self.rows(&lines, places) } else { self.side_by_side(&lines, places) };
        let mut out = format!("workload {}\n\n{}", self.workload, table(&main));
        if !others.is_empty() {
            out.push_str("\nother engines: not comparable with the values above\n\n");
            out.push_str(&table(&others));
        }
        let failed = self.columns.iter().filter_map(|column| Some((column, column.answer.as_ref().err()?)));
        for (column, error) in failed {
            out.push_str(&format!("\n{}: {error}", column.target));
        }
        if self.columns.iter().any(|column| column.answer.is_err()) {
            out.push('\n');
        }
        let hint = if wide {
            "use --target (up to six) to see all metrics side by side"
        } else {
            "ratios are to the baseline"
        };
        out.push_str(&format!("\n{MARKS}; {hint}\n"));
        out
    }

    fn mode(&self) -> Mode {
        let first = self.columns.iter().find_map(|column| column.answer.as_ref().ok());
        first.map_or(Mode::Training, |(scenario, _)| scenario.mode())
    }

    fn rows(&self, lines: &[Line], places: &[usize]) -> String {
        let usual =
            || Metric::headlines(self.mode()).filter_map(|metric| lines.iter().find(|line| line.metric == metric));
        let telling: Vec<&Line> =
            if self.chosen.is_empty() { usual().take(MAX_METRICS).collect() } else { lines.iter().collect() };
        let mut head = vec![left("target".to_owned()), right("accelerators".to_owned())];
        head.extend(telling.iter().map(|line| right(line.metric.label.to_owned())));
        head.push(left("runs?".to_owned()));
        let mut table = Table::new(head);
        for &i in places {
            let Some(column) = self.columns.get(i) else { continue };
            let accelerators = column.answer.as_ref().map(|(scenario, _)| scenario.accelerators().to_string());
            let mut cells = vec![column.target.clone(), accelerators.unwrap_or_default()];
            cells.extend(telling.iter().map(|line| {
                self.format_value(line, i).map_or_else(String::new, |shown| format!("{shown}{}", line.mark(i)))
            }));
            cells.push(column.described());
            table.row(cells);
        }
        table.render()
    }

    fn side_by_side(&self, lines: &[Line], places: &[usize]) -> String {
        let reference = self.reference();
        let mut head = vec![(String::new(), Align::Left)];
        for &i in places {
            let Some(column) = self.columns.get(i) else { continue };
            let baseline = if i == reference && self.columns.len() > 1 { " (baseline)" } else { "" };
            head.push(right(format!("{}{baseline}", column.target)));
        }
        let mut table = Table::new(head);
        let mut section = None;
        let mut lines: Vec<&Line> = lines.iter().collect();
        let order: Vec<&Metric> = Metric::by_importance(self.mode()).collect();
        if self.chosen.is_empty() {
            sort::by_key(&mut lines, |line| order.iter().position(|metric| *metric == line.metric));
        }
        for line in lines {
            if places.iter().all(|i| line.values.get(*i).copied().flatten().is_none()) {
                continue;
            }
            let key = Metric::headlines(self.mode()).any(|metric| metric == line.metric);
            let name = match () {
                () if !self.chosen.is_empty() => "chosen figures",
                () if key => "key figures",
                () => line.metric.section.name(),
            };
            if section != Some(name) {
                section = Some(name);
                table.section(name);
            }
            let cells = places.iter().map(|i| self.cell(line, *i, reference));
            table.row(std::iter::once(format!("  {}", line.metric.label)).chain(cells));
        }
        let runs = places.iter().filter_map(|i| self.columns.get(*i)).map(Column::described).collect::<Vec<_>>();
        if runs.iter().any(|described| !described.is_empty()) {
            table.row(std::iter::once("  runs?".to_owned()).chain(runs));
        }
        table.render()
    }

    /// Formats a value with as many digits as its accuracy justifies.
    fn format_value(&self, line: &Line, i: usize) -> Option<String> {
        line.values.get(i).copied().flatten()?;
        let (scenario, estimate) = self.columns.get(i)?.answer.as_ref().ok()?;
        Some(digits::shown(line.metric, scenario, estimate))
    }

    /// Formats value, ratio to the baseline (in other columns than the baseline) and mark, padded to equal width so
    /// that numbers align.
    fn cell(&self, line: &Line, i: usize, reference: usize) -> String {
        if self.columns.get(i).is_none_or(|column| column.answer.is_err()) {
            return "error".to_owned();
        }
        let Some(shown) = self.format_value(line, i) else { return "n/a".to_owned() };
        let ratio = line.ratios.get(i).copied().flatten().filter(|_| i != reference);
        let ratio = ratio.map_or_else(String::new, |ratio| format!("×{}", atlas_core::units::significant(ratio, 3)));
        if self.columns.len() == 1 { shown } else { format!("{shown}{} {ratio:>6}", line.mark(i)) }
    }

    /// Returns the comparison as JSON.
    pub fn json(&self) -> Result<String, ReportError> {
        to_json(&self.document())
    }

    /// Returns the comparison as YAML.
    pub fn yaml(&self) -> Result<String, ReportError> {
        to_yaml(&self.document())
    }

    /// Returns the comparison as a JSON value.
    #[must_use]
    pub fn document(&self) -> Value {
        let lines = self.lines();
        let targets = self.columns.iter().enumerate().map(|(i, column)| match &column.answer {
            Err(error) => json!({"target": column.target, "error": error}),
            Ok((scenario, _)) => {
                let pick = |of: &dyn Fn(&Line) -> Option<f64>| -> Map<String, Value> {
                    sort::collect_unsorted(
                        lines.iter().filter_map(|line| Some((line.metric.name.to_owned(), json!(of(line)?)))),
                    )
                };
                let named = |standing: Rank| -> Vec<&str> {
                    lines.iter().filter(|line| line.has_rank(i, standing)).map(|line| line.metric.name).collect()
                };
                json!({
                    "target": column.target,
                    "engine": scenario.engine.name(),
                    "knobs": atlas_plan::record::Knobs::of(scenario),
                    "adapted": column.adapted,
                    "changes": optimum::settings(&column.changes),
                    "verdict": column.verdict(),
                    "metrics": pick(&|line| line.values.get(i).copied().flatten()),
                    "ratios": pick(&|line| line.ratios.get(i).copied().flatten()),
                    "best_of": named(Rank::Best),
                    "tied_for": named(Rank::Tied),
                })
            }
        });
        let targets: Vec<Value> = targets.collect();
        let baseline = self.columns.get(self.baseline).map(|column| column.target.clone());
        json!({"workload": self.workload, "baseline": baseline, "targets": targets})
    }

    /// Returns CSV: a line per metric with a column per target, then the names of the best target and of those tied for
    /// best.
    #[must_use]
    pub fn csv(&self) -> String {
        let targets = self.columns.iter().map(|column| column.target.as_str());
        let mut out = csv::line(std::iter::once("metric").chain(targets).chain(["best", "tied"]));
        for line in self.lines() {
            let mut cells = vec![line.metric.name.to_owned()];
            cells.extend(line.values.iter().map(|value| csv::optional(*value)));
            for standing in [Rank::Best, Rank::Tied] {
                let names = self.columns.iter().enumerate().filter(|(i, _)| line.has_rank(*i, standing));
                let names: Vec<&str> = names.map(|(_, column)| column.target.as_str()).collect();
                cells.push(names.join(" "));
            }
            out.push_str(&csv::line(&cells));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    use atlas_config::library::Library;
    use atlas_document::Sources;
    use atlas_plan::knob::Overrides;
    use atlas_plan::scenario::Parts;

    #[test]
    fn costs_at_prices_of_different_types_are_not_ranked() {
        let library = Library::load(&Sources::built_in(), None);
        let compare = |other: &str, basis: Option<&str>| {
            let column = |target: &str| {
                let parts = Parts::find(&library, target, "llama3.1-70b-serve").unwrap();
                let basis = basis.map(|basis| (Knob::PriceBasis, Setting::Choice(basis.into())));
                let scenario = Scenario::resolve(&parts, &basis.into_iter().collect::<Overrides>()).unwrap();
                let estimate = atlas_plan::engine::estimate(&scenario);
                let answer = Ok((scenario, estimate));
                Column { target: target.to_owned(), answer, adapted: Vec::new(), changes: Vec::new() }
            };
            let columns = ["h100-sxm-8", other].map(column).into();
            Comparison { workload: "w".to_owned(), columns, baseline: 0, chosen: Vec::new() }
        };
        let ranked = |comparison: &Comparison, name: &str| {
            let lines = comparison.lines();
            let line = lines.iter().find(|line| line.metric.name == name).unwrap();
            (line.ranks.iter().any(|rank| *rank != Rank::Unmarked), line.ratios.last().copied().flatten().is_some())
        };
        let mixed = compare("h800-sxm-8", None);
        assert_eq!(ranked(&mixed, "dollar_per_1k_tokens"), (false, false));
        assert_eq!(ranked(&mixed, "tokens_per_sec"), (true, true));
        assert_eq!(ranked(&compare("h200-sxm-8", Some("on-demand")), "dollar_per_1k_tokens"), (true, true));
    }
}
