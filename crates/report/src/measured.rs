//! Measured runs side by side: throughput, step times, utilization, cost, energy, memory, time to a budget of tokens,
//! and whether loss and learning rate are those of a run that learns; a prediction alongside them where there is one.

pub mod plan;
pub mod prediction;
pub mod story;

use serde::Serialize;
use serde_json::{Value, json};

use self::plan::Plan;
use self::prediction::Prediction;
use super::table::{Align, Table};
use super::{ReportError, csv, serialized};
use atlas_catalog::Catalog;
use atlas_core::units::significant;
use atlas_ingest::economics;

/// What runs are judged by that stands in no file.
#[derive(Debug, Clone, Default)]
pub struct Assumptions {
    /// Parameters that a token passes through.
    pub parameters: Option<f64>,
    /// Model of the catalog, where one was named.
    pub model: Option<String>,
    /// Dollars for one accelerator and hour; the cheapest price of the catalog where it is not said.
    pub usd_per_gpu_hour: Option<f64>,
    /// Dollars for a kilowatt-hour.
    pub usd_per_kwh: f64,
    /// Number format whose peak the MFU refers to; that of the file, else bf16.
    pub precision: Option<String>,
    /// Tokens of the whole training.
    pub budget: Option<f64>,
    /// What an experiment's configuration says of the run; flags and the run's own file precede it.
    pub plan: Option<Plan>,
}

/// One figure of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Its name, with the unit.
    pub name: &'static str,
    /// Its value.
    pub value: Option<f64>,
    /// Whether more is better, where that can be said.
    #[serde(skip)]
    pub more: Option<bool>,
}

/// One measured run.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// What it is called in the table.
    pub name: String,
    /// The accelerator as the file names it.
    pub device: Option<String>,
    /// The system it ran on: what, and what the file says.
    pub system: Vec<(&'static str, String)>,
    /// Figures, the same in every run.
    pub figures: Vec<Figure>,
    /// What a reader should know: what was assumed, what looks wrong.
    pub notes: Vec<String>,
    /// Tokens per second that an engine predicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_tokens_per_second: Option<f64>,
    /// All that an engine predicts, alongside what was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Prediction>,
    /// Memory of one accelerator, GB.
    #[serde(skip)]
    pub capacity_gb: Option<f64>,
    /// Step by step, as far as the file says.
    #[serde(skip)]
    pub steps: Steps,
}

/// What a run did step by step.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    /// Time of each, s.
    pub seconds: Vec<f64>,
    /// Loss.
    pub loss: Vec<f64>,
    /// Learning rate.
    pub learning_rate: Vec<f64>,
}

impl Steps {
    fn of(run: &Value) -> Steps {
        let values = |name: &str| -> Vec<f64> {
            run.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_f64).collect()
        };
        Steps { seconds: values("step_times"), loss: values("loss_values"), learning_rate: values("learning_rates") }
    }
}

impl Measured {
    /// A figure of it by name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).and_then(|figure| figure.value)
    }

    /// What its file says of its system.
    fn system_value(&self, name: &str) -> Option<&str> {
        self.system.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// What a prediction is compared with.
    #[must_use]
    pub fn measured(&self) -> prediction::Measured {
        prediction::Measured {
            tokens_per_second: self.figure("tokens/s"),
            step_seconds: self.figure("step time, mean s"),
            memory_gb: self.figure("memory used GB"),
        }
    }

    /// Adds a prediction.
    pub fn lay_beside(&mut self, predicted: Prediction) {
        if let Some(verdict) = &predicted.verdict {
            self.notes.push(format!("engine verdict: {verdict}"));
        }
        if !predicted.assumed.is_empty() {
            let assumed = predicted.assumed.join(", ");
            self.notes.push(format!("assumed for the prediction, since the file does not state it: {assumed}"));
        }
        self.predicted_tokens_per_second = Some(predicted.tokens_per_second.value);
        self.predicted = Some(predicted);
    }
}

/// The system that a run's benchmark JSON names.
fn system(run: &Value) -> Vec<(&'static str, String)> {
    let at = |group: &str, field: &str| {
        let value = if group.is_empty() { run.get(field) } else { run.get(group).and_then(|group| group.get(field)) };
        match value? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    };
    let stack = at("gpu_info", "software_stack").map(|stack| match at("gpu_info", "software_version") {
        Some(version) => format!("{stack} {version}"),
        None => stack,
    });
    let rows = [
        ("platform", at("", "platform")),
        ("software stack", stack),
        ("PyTorch", at("gpu_info", "pytorch_version")),
        ("cores per accelerator", at("gpu_info", "gpu_cores")),
        ("layout", at("parallelism_config", "strategy_name")),
        ("precision", at("gpu_info", "precision")),
    ];
    rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Says where the rate that a file states is not what batch, length and step time make.
fn contradiction(rate: f64, batch: f64, length: f64, seconds: f64) -> Option<String> {
    let computed = batch * length / seconds;
    (rate / computed - 1.0).abs().gt(&0.03).then(|| {
        format!(
            "the file states {} tokens/s, but {batch} sequences of {length} tokens in {} s are {}",
            significant(rate, 5),
            significant(seconds, 4),
            significant(computed, 5)
        )
    })
}

/// Judges a run from its benchmark JSON.
#[must_use]
pub fn judge(name: &str, run: &Value, given: &Assumptions, catalog: &Catalog) -> Measured {
    let at = |group: &str, field: &str| run.get(group).and_then(|group| group.get(field));
    let number = |group: &str, field: &str| at(group, field).and_then(Value::as_f64).filter(|value| *value > 0.0);
    let mut notes = Vec::new();
    let device = at("gpu_info", "device_name").and_then(Value::as_str).map(str::to_owned);
    let known =
        device.as_deref().and_then(|device| catalog.accelerator_meant(device, number("gpu_info", "total_memory_gb")));
    if let (Some(device), None) = (&device, &known) {
        notes.push(format!("{device}: not in the catalog, so no peak, power or price"));
    }
    let gpus = number("training_config", "num_gpus").or_else(|| number("gpu_info", "device_count"));
    let rate = number("performance_metrics", "tokens_per_second");
    let per_gpu = number("performance_metrics", "tokens_per_second_per_gpu");
    let rate = rate.or_else(|| Some(per_gpu? * gpus?));
    let per_gpu = per_gpu.or_else(|| Some(rate? / gpus?));
    let statistics = run.get("statistics").and_then(|statistics| statistics.get("step_time_s"));
    let statistic = |field: &str| statistics.and_then(|statistics| statistics.get(field)).and_then(Value::as_f64);
    let seconds = number("performance_metrics", "avg_step_time_seconds");

    let plan = given.plan.as_ref();
    let written =
        given.precision.clone().or_else(|| at("gpu_info", "precision").and_then(Value::as_str).map(str::to_owned));
    let written = written.or_else(|| {
        let planned = plan?.precision.clone()?;
        notes.push(format!("precision {planned} by {}: MFU refers to its peak", plan?.file));
        Some(planned)
    });
    let precision = written.clone().unwrap_or_else(|| "bf16".to_owned()).to_lowercase();
    let peak = known.as_ref().and_then(|known| {
        known.peaks.all().into_iter().find(|(name, _)| precision.starts_with(name)).and_then(|(_, peak)| peak)
    });
    if written.is_none() && peak.is_some() {
        notes.push("precision not stated: MFU refers to the bf16 peak".to_owned());
    }
    let parameters = given.parameters.or_else(|| number("model_info", "total_params"));
    let parameters = parameters.or_else(|| number("model_info", "parameters_billion").map(|billions| billions * 1e9));
    let parameters = parameters.or_else(|| plan?.parameters);
    let use_of = |rate: f64, gpus: f64| {
        economics::utilization(rate, gpus, parameters.unwrap_or(f64::NAN), peak.unwrap_or(f64::NAN))
    };
    let utilization = rate.zip(gpus).map(|(rate, gpus)| use_of(rate, gpus));

    let price = given.usd_per_gpu_hour.or_else(|| {
        if let Some((plan, usd)) = plan.and_then(|plan| Some((plan, plan.usd_per_gpu_hour?))) {
            notes.push(format!("{} $/h per accelerator: {}", significant(usd, 3), plan.file));
            return Some(usd);
        }
        let prices = catalog.prices_of(&known.as_ref()?.id);
        let cheapest =
            prices.iter().min_by(|a, b| a.usd_per_accelerator_hour().total_cmp(&b.usd_per_accelerator_hour()))?;
        let usd = cheapest.usd_per_accelerator_hour();
        notes.push(format!("{} $/h per accelerator: {}, {}", significant(usd, 3), cheapest.provider, cheapest.date));
        Some(usd)
    });
    let cost = rate.zip(gpus).zip(price).map(|((rate, gpus), price)| economics::cost(rate, gpus * price));
    let tdp = plan.and_then(|plan| plan.tdp_w).or_else(|| known.as_ref().and_then(|known| known.tdp_w));
    let energy =
        rate.zip(gpus).zip(tdp).map(|((rate, gpus), tdp)| economics::energy(rate, gpus * tdp, given.usd_per_kwh));
    let watts = number("power_metrics", "mean_total_power_w");
    let drawn = rate.zip(watts).map(|(rate, watts)| economics::energy(rate, watts, given.usd_per_kwh));
    let steps = Steps::of(run);
    let used = number("memory_metrics", "peak_memory_allocated_gb")
        .or_else(|| number("memory_metrics", "avg_memory_allocated_gb"));
    let total = number("gpu_info", "total_memory_gb").or_else(|| known.as_ref().map(|known| known.memory.gb));
    let sizes = (number("training_config", "global_batch_size"), number("training_config", "sequence_length"));
    let memory = match (used, total, sizes, gpus) {
        (Some(used), Some(total), (Some(batch), Some(length)), Some(gpus)) if batch >= gpus => {
            Some(economics::memory(used, total, (batch / gpus).floor(), length))
        }
        _ => None,
    };
    if let (Some(rate), (Some(batch), Some(length)), Some(seconds)) = (rate, sizes, seconds) {
        notes.extend(contradiction(rate, batch, length, seconds));
    }
    notes.extend(plan.into_iter().flat_map(|plan| plan.differences(run)));
    let days = |tokens: f64| rate.map(|rate| economics::hours(rate, tokens) / 24.0);
    sanity(&steps, &mut notes);

    let figure = |name, value: Option<f64>, more| Figure { name, value: value.filter(|value| value.is_finite()), more };
    let (up, down) = (Some(true), Some(false));
    let figures = vec![
        figure("accelerators", gpus, None),
        figure("sequences per step", sizes.0, None),
        figure("tokens per sequence", sizes.1, None),
        figure("tokens/s", rate, up),
        figure("tokens/s/accelerator", per_gpu, up),
        figure("step time, mean s", seconds, down),
        figure("step time, median s", statistic("median_no_warmup"), down),
        figure("step time, p95 s", statistic("p95_no_warmup"), down),
        figure(
            "step time, deviation %",
            statistic("std_no_warmup").zip(seconds).map(|(std, mean)| std / mean * 100.0),
            down,
        ),
        figure("model TFLOP/s/accelerator", utilization.zip(gpus).map(|(of, gpus)| of.achieved_tflops / gpus), up),
        figure("peak TFLOP/s/accelerator", peak, None),
        figure("MFU %", utilization.map(|of| of.mfu_percent), up),
        figure("tokens/$", cost.map(|of| of.tokens_per_dollar), up),
        figure("$ for 1e12 tokens", cost.map(|of| of.cost_per_trillion_tokens), down),
        figure("tokens/Wh by TDP", energy.map(|of| of.tokens_per_watt_hour), up),
        figure("tokens/Wh as drawn", drawn.map(|of| of.tokens_per_watt_hour), up),
        figure("MWh for 1e12 tokens by TDP", energy.map(|of| of.kwh_per_trillion_tokens / 1000.0), down),
        figure("$ of electricity for 1e12 tokens", energy.map(|of| of.energy_cost_per_trillion), down),
        figure("days for 1e12 tokens", days(economics::TRILLION), down),
        figure("days for the budget", given.budget.and_then(days), down),
        figure("memory used GB", used, down),
        figure("memory used %", memory.map(|of| of.utilization_percent), None),
        figure("memory left GB", memory.map(|of| of.headroom_gb), up),
        figure("GB for 1e6 tokens in flight", memory.map(|of| of.gb_per_million_tokens), down),
        figure("sequences that would fill 90 %", memory.map(|of| of.potential_batch), None),
    ];
    Measured {
        name: name.to_owned(),
        device,
        system: system(run),
        figures,
        notes,
        predicted_tokens_per_second: None,
        predicted: None,
        capacity_gb: total,
        steps,
    }
}

/// Whether runs that stand alongside each other learn alike: notes on every one after the first.
pub fn alike(runs: &mut [Measured]) {
    let Some((first, others)) = runs.split_first_mut() else { return };
    let peak = |steps: &Steps| steps.learning_rate.iter().copied().fold(0.0, f64::max);
    for run in others {
        let (own, base) = (peak(&run.steps), peak(&first.steps));
        if own > 0.0 && base > 0.0 && !(0.99..=1.01).contains(&(own / base)) {
            let (own, base, ratio) = (significant(own, 3), significant(base, 3), significant(own / base, 3));
            run.notes.push(format!(
                "the peak learning rate is {own}, that of {} {base} (x{ratio}): they do not learn alike, and their \
                 losses say nothing of each other",
                first.name
            ));
        }
        // Runs that see the same number of sequences per step should have like losses after as many steps.
        let batch = |run: &Measured| run.figure("sequences per step").zip(run.figure("tokens per sequence"));
        let last = run.steps.loss.len().min(first.steps.loss.len());
        if last >= 10 && batch(run).is_some() && batch(run) == batch(first) {
            let tail = |steps: &Steps| {
                let part: Vec<f64> = steps.loss.iter().take(last).skip(last - last / 10).copied().collect();
                part.iter().sum::<f64>() / part.len() as f64
            };
            let (own, base) = (tail(&run.steps), tail(&first.steps));
            if (own / base - 1.0).abs() > 0.05 {
                run.notes.push(format!(
                    "after {last} steps of the same size its loss is {}, that of {} {}",
                    significant(own, 4),
                    first.name,
                    significant(base, 4)
                ));
            }
        }
    }
}

/// Whether loss and learning rate are those of a run that learns.
fn sanity(steps: &Steps, notes: &mut Vec<String>) {
    let losses = &steps.loss;
    if losses.len() >= 10 {
        let tenth = losses.len() / 10;
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let (first, last) = losses.split_at(tenth.max(1));
        let last = last.get(last.len().saturating_sub(tenth.max(1))..).unwrap_or_default();
        let (first, last) = (mean(first), mean(last));
        if last >= first {
            notes.push(format!(
                "the loss does not fall: {} at first, {} at last",
                significant(first, 4),
                significant(last, 4)
            ));
        }
        if losses.iter().any(|loss| *loss < 0.05) {
            notes.push("the loss falls below 0.05: the run memorizes its data, or the data repeats".to_owned());
        }
    }
    let rates = &steps.learning_rate;
    if rates.len() >= 2 && rates.iter().all(|rate| *rate == 0.0) {
        notes.push("the learning rate is 0 throughout".to_owned());
    }
    let peak = rates.iter().copied().fold(0.0, f64::max);
    if peak > 0.01 {
        notes.push(format!("a learning rate of {} is unusual", significant(peak, 3)));
    }
}

/// What any of the runs says of its system, in order.
fn system_rows(runs: &[Measured]) -> Vec<&'static str> {
    let mut out: Vec<&'static str> = Vec::new();
    for (name, _) in runs.iter().flat_map(|run| &run.system) {
        if !out.contains(name) {
            out.push(name);
        }
    }
    out
}

/// Maximum runs whose names fit above their columns.
const NAMED: usize = 3;

/// The runs as a table, ratios to the first behind the second and later ones. Many runs are numbered, with a list of their
/// names in front.
#[must_use]
pub fn table(runs: &[Measured]) -> String {
    let numbered = runs.len() > NAMED;
    let mut list = String::new();
    let mut head = vec![(String::new(), Align::Left)];
    for (index, run) in runs.iter().enumerate() {
        let number = format!("#{}", index + 1);
        if numbered {
            list += &format!("{number:<4}{}\n", run.name);
        }
        head.push((if numbered { number } else { run.name.clone() }, Align::Right));
        if index > 0 {
            head.push((String::new(), Align::Right));
        }
    }
    let mut table = Table::new(head);
    let cells = |text: &dyn Fn(&Measured) -> String| {
        let mut out = Vec::new();
        for (index, run) in runs.iter().enumerate() {
            out.push(text(run));
            if index > 0 {
                out.push(String::new());
            }
        }
        out
    };
    let mut row = vec!["accelerator".to_owned()];
    row.extend(cells(&|run| run.device.clone().unwrap_or_else(|| "-".to_owned())));
    table.row(row);
    for name in system_rows(runs) {
        let mut row = vec![name.to_owned()];
        row.extend(cells(&|run| run.system_value(name).unwrap_or("-").to_owned()));
        table.row(row);
    }
    for (line, name) in
        runs.first().into_iter().flat_map(|run| run.figures.iter().map(|figure| figure.name)).enumerate()
    {
        let value = |run: &Measured| run.figures.get(line).and_then(|figure| figure.value);
        if runs.iter().all(|run| value(run).is_none()) {
            continue;
        }
        let base = runs.first().and_then(value);
        let mut row = vec![name.to_owned()];
        for (index, run) in runs.iter().enumerate() {
            row.push(value(run).map_or_else(|| "-".to_owned(), shown));
            if index > 0 {
                let more = run.figures.get(line).and_then(|figure| figure.more);
                let ratio = value(run).zip(base).filter(|(_, base)| *base != 0.0 && more.is_some());
                row.push(ratio.map_or_else(String::new, |(value, base)| format!("x{}", significant(value / base, 3))));
            }
        }
        table.row(row);
    }
    predicted_rows(runs, &mut table, &cells);
    let mut out = if numbered { format!("{list}\n{}", table.render()) } else { table.render() };
    // What is noted of several runs is stated once.
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let name = if numbered { format!("#{}", index + 1) } else { run.name.clone() };
        for note in &run.notes {
            match notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, names)) => names.push(name.clone()),
                None => notes.push((note, vec![name.clone()])),
            }
        }
    }
    for (note, names) in notes {
        out += &format!("\n{}: {note}", names.join(", "));
    }
    out + "\n"
}

/// A cell for each run, as a text of it.
type Cells<'a> = &'a dyn Fn(&dyn Fn(&Measured) -> String) -> Vec<String>;

/// Rows of predictions, each alongside what was measured.
fn predicted_rows(runs: &[Measured], table: &mut Table, cells: Cells<'_>) {
    type Get = fn(&Prediction) -> Option<prediction::Figure>;
    let figures: [(&str, Get); 3] = [
        ("tokens/s", |predicted| Some(predicted.tokens_per_second)),
        ("step time, s", |predicted| predicted.step_time_s),
        ("memory, GB", |predicted| predicted.memory_gb),
    ];
    for (name, get) in figures {
        let figure = |run: &Measured| run.predicted.as_ref().and_then(get);
        if runs.iter().all(|run| figure(run).is_none()) {
            continue;
        }
        let dash = || "-".to_owned();
        let mut line = |what: String, text: &dyn Fn(prediction::Figure) -> Option<String>| {
            let shown = |run: &Measured| figure(run).and_then(text);
            if runs.iter().any(|run| shown(run).is_some()) {
                let mut row = vec![what];
                row.extend(cells(&|run| shown(run).unwrap_or_else(dash)));
                table.row(row);
            }
        };
        line(format!("predicted {name}"), &|figure| Some(significant(figure.value, 5)));
        line("  90 % interval".to_owned(), &|figure| {
            Some(format!("{}–{}", significant(figure.low?, 4), significant(figure.high?, 4)))
        });
        let error = |figure: prediction::Figure| Some(format!("{:+.1}", figure.error_percent?));
        let what = if name == "tokens/s" { "prediction / measurement, %" } else { "  / measurement, %" };
        line(what.to_owned(), &error);
    }
}

/// Five digits, and all of a whole number.
fn shown(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { significant(value, 5) }
}

/// The runs for programs.
///
/// # Errors
///
/// Where they cannot be written.
pub fn document(runs: &[Measured], yaml: bool) -> Result<String, ReportError> {
    serialized(&json!({"measured": runs}), yaml)
}

/// The runs as CSV, a row a figure.
#[must_use]
pub fn rows(runs: &[Measured]) -> String {
    let names = runs.iter().map(|run| run.name.as_str());
    let mut out = csv::line(std::iter::once("figure").chain(names));
    out += &csv::line(
        std::iter::once("accelerator").chain(runs.iter().map(|run| run.device.as_deref().unwrap_or_default())),
    );
    for name in system_rows(runs) {
        let cells = runs.iter().map(|run| run.system_value(name).unwrap_or_default());
        out += &csv::line(std::iter::once(name).chain(cells));
    }
    for (line, figure) in runs.first().into_iter().flat_map(|run| run.figures.iter()).enumerate() {
        let values = runs.iter().map(|run| run.figures.get(line).and_then(|figure| figure.value));
        let cells: Vec<String> =
            values.map(|value| value.map_or_else(String::new, |value| value.to_string())).collect();
        out += &csv::line(std::iter::once(figure.name).chain(cells.iter().map(String::as_str)));
    }
    out
}
