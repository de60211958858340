//! Converts observations to rows of measurement tables and to scenarios, by the same path as all measured rows. Missing
//! settings are taken from the target, and from the workload given by the user.

use crate::calibrate::columns::MetricColumn;
use atlas_core::math;
use atlas_core::units::si;
use atlas_plan::scenario::Scenario;
use std::collections::BTreeMap;

use super::bench::{RowPredictor, model_of};
use super::intake::json;
use super::misstated;
use super::observation::{Measured, Observation};
use crate::runs::Run;
use crate::validate::MeasurementKind;
use crate::validate::case::{self, Metric, RowScenario};
use crate::validate::documents::Documents;
use crate::validate::table::Row;
use atlas_config::{Mode, Workload};
use atlas_core::statistics::median;
use atlas_perf::efficiency::Factors;

/// Kind of measurement table for a mode.
const fn kind(mode: Mode) -> MeasurementKind {
    match mode {
        Mode::Training => MeasurementKind::Training,
        Mode::Inference => MeasurementKind::Inference,
    }
}

/// Cells of an observation by the column names of measurement tables. Also returns whether they specify the model.
fn cells(
    bench: &RowPredictor<'_>,
    observed: &Observation,
    workload: Option<&Workload>,
) -> (BTreeMap<&'static str, String>, bool) {
    let training = observed.mode() == Mode::Training;
    let mut cells: BTreeMap<&'static str, String> =
        observed.typed().filter(|(name, _)| *name != "precision").map(|(name, text)| (name, text.to_owned())).collect();
    let mut set = |name: &'static str, value: Option<String>| {
        if let Some(value) = value {
            cells.insert(name, value);
        }
    };
    let number = |name: &str| observed.number(name).map(|value| value.to_string());
    let shape = workload.map(|workload| workload.shape);
    let prompt = number("seq_len").or_else(|| Some(shape?.prompt.to_string()));
    let generate = number("generate").or_else(|| Some(shape?.generate.to_string()));
    for (column, name) in [("tp", "tp"), ("pp", "pp"), ("cp", "cp"), ("ep", "ep"), ("dp", "dp"), ("vpp", "vpp")] {
        set(column, number(name));
    }
    // An unknown format is ignored in favor of the workload's.
    let format =
        observed.word("precision").and_then(|word| misstated::format(&word)).map(|format| format.name().to_owned());
    if training {
        set("precision", format);
        set("seq_len", prompt);
        set("micro_batch", number("batch"));
        set("global_batch", number("global_batch"));
        set("sequence_parallel", observed.switch("sp").map(|on| on.to_string()));
        set(
            "sharding",
            observed
                .number("zero_stage")
                .map(|stage| if stage > 0.0 { format!("zero{stage}") } else { "none".to_owned() }),
        );
    } else {
        set("weights", format);
        set("input_len", prompt);
        set("output_len", generate);
        set("concurrency", number("concurrency").or_else(|| number("batch")));
        set("request_rate", number("request_rate"));
        set("cuda_graphs", observed.switch("cuda_graphs").map(|on| on.to_string()));
    }
    set("accelerator", bench.target.accelerator.clone());
    set("accelerators_per_node", Some(bench.target.accelerators_per_node.to_string()));
    set("num_accelerators", Some(accelerators(bench, observed, workload).to_string()));
    let model = cells.get("model").cloned().or_else(|| observed.word("model"));
    let known = model.as_deref().and_then(|name| model_of(bench.library.catalog(), name));
    let sized = ["hidden_size", "num_layers"].iter().all(|name| observed.number(name).is_some_and(|n| n >= 1.0));
    let own = known.is_some() || sized;
    match known {
        Some(id) => drop(cells.insert("model", id)),
        None if sized => {
            let sizes = [
                ("hidden_size", "hidden_size"),
                ("n_layers", "num_layers"),
                ("n_heads", "num_attention_heads"),
                ("vocab_size", "vocab_size"),
            ];
            for (column, name) in sizes {
                number(name).map(|value| cells.insert(column, value));
            }
        }
        // Placeholder that every catalog contains; the model of the workload replaces it.
        None => drop(cells.insert("model", "llama-3.1-8b".to_owned())),
    }
    (cells, own)
}

/// Number of accelerators of a run: as given, or otherwise the product of its layout, or that of the workload.
fn accelerators(bench: &RowPredictor<'_>, observed: &Observation, workload: Option<&Workload>) -> f64 {
    observed.accelerators().unwrap_or_else(|| match workload {
        Some(_) => bench.target.accelerators(),
        None => bench.accelerators(observed),
    })
}

/// Returns the row of an observation, and its scenario.
///
/// # Errors
/// Returns which information is missing in the observation and the files.
pub fn resolve(bench: &RowPredictor<'_>, observed: &Observation) -> Result<(Row, RowScenario), String> {
    if bench.target.accelerator.is_none() {
        return Err(format!("target `{}` has no `accelerator`", bench.target.name));
    }
    let workload = bench.workload.filter(|workload| workload.shape.mode == observed.mode());
    if let (Some(other), None) = (bench.workload, workload)
        && !bench.complete_rows_first
    {
        let (of_row, of_workload) = (observed.mode().name(), other.shape.mode.name());
        return Err(format!("the row is for {of_row}, but workload `{}` is for {of_workload}", other.name));
    }
    let workload = workload.map(|workload| &**workload);
    let (cells, own) = cells(bench, observed, workload);
    if !own && workload.is_none() {
        return Err(match observed.word("model") {
            Some(model) => format!("model `{model}` is not in the catalog; use --workload or --set model=NAME"),
            None => "the model is not specified; use --workload or --set model=NAME".to_owned(),
        });
    }
    if !cells.contains_key("seq_len") && !cells.contains_key("input_len") {
        return Err("the sequence length is not specified; use --set seq_len=N or --workload".to_owned());
    }
    let row = Row::of(cells.iter().map(|(name, text)| (*name, text.as_str())));
    let catalog = bench.library.catalog();
    let documents = Documents::of(&row, kind(observed.mode()), catalog)?;
    let base = workload.map_or_else(|| serde_json::Value::Object(serde_json::Map::new()), |one| json(&one.document));
    let documents = documents.merged_over(json(&bench.target.document), base, own);
    let found = RowScenario::resolve(documents, catalog)?;
    Ok((row, found))
}

/// Variance of the logarithm of a measured value, from its given spread.
#[must_use]
pub fn own_variance(measured: &Measured) -> f64 {
    let of_interval = measured.interval.map(|[low, high]| (high - low) / 2.0 / 1.96 / measured.value);
    let of_spread = || Some(measured.std? / measured.n?.max(1.0).sqrt() / measured.value);
    let sd = of_interval.or_else(of_spread).filter(|sd| sd.is_finite()).unwrap_or(0.0);
    sd * sd
}

/// Metrics of an observation from which corrections are determined.
fn figures(observed: &Observation) -> Vec<(Metric, Measured)> {
    let training = observed.mode() == Mode::Training;
    let offered = observed.number("request_rate").is_some();
    let rate = if training { Metric::TrainingRate } else { Metric::OutputRate };
    let throughput = (!offered).then(|| observed.throughput()).flatten().map(|measured| (rate, measured));
    let latency = |metric, column| {
        let found = observed.figure(column).filter(|found| found.value.is_finite() && found.value > 0.0);
        found.filter(|_| !training).map(|measured| (metric, measured))
    };
    [throughput, latency(Metric::Tpot, MetricColumn::TpotMs), latency(Metric::Ttft, MetricColumn::TtftMs)]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns the runs of all rows. Rows of the same configuration form one run, with their median, because they share its
/// specific effects. Also returns rows that the engine cannot predict, with the reason.
#[must_use]
pub fn runs(
    bench: &RowPredictor<'_>,
    rows: &[Observation],
    factors: &atlas_config::Efficiency,
) -> (Vec<Run>, Vec<(String, String)>) {
    let mut groups: BTreeMap<(bool, String), Vec<&Observation>> = BTreeMap::new();
    let own = rows.iter().filter(|row| row.switch("baseline") != Some(true) && !figures(row).is_empty());
    for row in own {
        groups.entry((row.mode() == Mode::Training, row.configuration_key(&["hardware"]))).or_default().push(row);
    }
    let (mut runs, mut refused) = (Vec::new(), Vec::new());
    for same in groups.into_values() {
        let Some(first) = same.first() else { continue };
        match of_configuration(bench, &same, factors) {
            Ok(found) if found.is_empty() => {
                refused.push((first.source.clone(), "the engine predicts none of its metrics".to_owned()));
            }
            Ok(found) => runs.extend(found),
            Err(reason) => refused.push((first.source.clone(), reason)),
        }
    }
    (runs, refused)
}

/// Ratio of a stated throughput to that of the stated latencies above which a row contradicts itself. Medians of
/// latencies are somewhat below the means that determine the throughput.
const MAX_EXCESS: f64 = 1.25;

/// Why the requests in flight of a row cannot generate its throughput with its latencies, by Little's law.
fn contradiction(observed: &Observation, scenario: &Scenario) -> Option<String> {
    let offered = observed.number("request_rate").is_some();
    let (rate, tpot) = (observed.throughput()?.value, observed.figure(MetricColumn::TpotMs)?.value);
    let ttft = observed.figure(MetricColumn::TtftMs).map_or(0.0, |ttft| ttft.value);
    let (in_flight, output) = (scenario.concurrency(&scenario.base), scenario.base.shape.generate);
    let most = in_flight * output / (1e-3 * (ttft + tpot * (output - 1.0).max(0.0)));
    (observed.mode() == Mode::Inference && !offered && most.is_finite() && rate > MAX_EXCESS * most).then(|| {
        format!(
            "it contradicts itself: {in_flight} requests in flight with these latencies generate at most {} tok/s, not {}",
            si(most),
            si(rate)
        )
    })
}

fn of_configuration(
    bench: &RowPredictor<'_>,
    rows: &[&Observation],
    factors: &atlas_config::Efficiency,
) -> Result<Vec<Run>, String> {
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let (row, mut found) = resolve(bench, first)?;
    if factors.training != Factors::default() || factors.serving != Factors::default() {
        found.scenario.efficiency = *factors;
    }
    if let Some(reason) = rows.iter().find_map(|row| contradiction(row, &found.scenario)) {
        return Err(reason);
    }
    let accelerators = found.documents.accelerators;
    let mut runs = Vec::new();
    for metric in [Metric::TrainingRate, Metric::OutputRate, Metric::Tpot, Metric::Ttft] {
        let same: Vec<Measured> = rows
            .iter()
            .flat_map(|row| figures(row))
            .filter_map(|(other, measured)| (other == metric).then_some(measured))
            .collect();
        let logs: Vec<f64> = same.iter().map(|measured| math::ln(measured.value)).collect();
        let Some(center) = median(logs.iter().copied()) else { continue };
        let n = same.len() as f64;
        let between = logs.iter().map(|log| (log - center).powi(2)).sum::<f64>() / (n - 1.0).max(1.0) / n;
        let noise = same.iter().map(own_variance).sum::<f64>() / (n * n) + between;
        let each = if metric == Metric::TrainingRate { accelerators } else { 1.0 };
        let figure = case::Measured { metric, value: math::exp(center) / each };
        for run in Run::of_resolved_row(&row, &found, &[figure])? {
            if let Some(share) = run.peak_share.filter(|share| *share > 1.0) {
                return Err(format!(
                    "it would take {} times the peak rate of the accelerators; check its units: step_time_ms is in \
                     milliseconds",
                    si(share)
                ));
            }
            runs.push(Run { id: first.short().to_owned(), noise, ..run });
        }
    }
    Ok(runs)
}
