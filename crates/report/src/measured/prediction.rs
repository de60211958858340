//! Prediction of the analytical engine for a measured run, based on the run's file.

use atlas_core::count::Count;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::Assumptions;
use super::plan::number;
use atlas_catalog::{Catalog, Model};
use atlas_config::library::Library;
use atlas_config::{Mode, Target, Workload};
use atlas_core::plan::{Engine, Format};
use atlas_document::{Diagnostics, Node};
use atlas_plan::engine;
use atlas_plan::estimate::{Estimate, Interval};
use atlas_plan::knob::Overrides;
use atlas_plan::scenario::{Parts, Scenario};

/// A predicted metric with its 90 % interval, and the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PredictedValue {
    /// Predicted value.
    pub value: f64,
    /// Lower end of the interval, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the interval, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Measured value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// Prediction divided by measurement, minus one, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_percent: Option<f64>,
    /// Whether the measurement is within the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<bool>,
}

impl PredictedValue {
    /// Combines a prediction and its measurement.
    #[must_use]
    pub fn of(value: f64, interval: Option<Interval>, measured: Option<f64>) -> PredictedValue {
        let ends = interval.map(|interval| interval.around(value));
        let measured = measured.filter(|measured| *measured > 0.0);
        PredictedValue {
            value,
            low: ends.map(|(low, _)| low),
            high: ends.map(|(_, high)| high),
            measured,
            error_percent: measured.map(|measured| (value / measured - 1.0) * 100.0),
            within: ends.zip(measured).map(|((low, high), measured)| (low..=high).contains(&measured)),
        }
    }
}

/// Prediction for a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Name of the target.
    pub target: String,
    /// Name of the workload.
    pub workload: String,
    /// Name of the engine.
    pub engine: &'static str,
    /// Throughput of all accelerators, tokens/s.
    pub tokens_per_second: PredictedValue,
    /// Step time, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_time_s: Option<PredictedValue>,
    /// Memory in use on the fullest accelerator, GB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_gb: Option<PredictedValue>,
    /// Whether it fits in memory, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Values that were not stated and had to be assumed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
}

/// Measurements of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Measured {
    /// Throughput of all accelerators, tokens/s.
    pub tokens_per_second: Option<f64>,
    /// Mean step time, s.
    pub step_seconds: Option<f64>,
    /// Peak memory of an accelerator, GB.
    pub memory_gb: Option<f64>,
}

impl Prediction {
    /// An estimate and the measurements.
    #[must_use]
    pub fn of(target: &str, workload: &str, scenario: &Scenario, estimate: &Estimate, run: Measured) -> Prediction {
        let trusted = scenario.engine == Engine::Analytical;
        let interval = estimate.detail.filter(|_| trusted).map(|detail| detail.throughput_interval);
        let step = estimate.total.step_time_ms.filter(|_| scenario.mode() == Mode::Training);
        let step = step.map(|ms| PredictedValue::of(ms / 1e3, interval.map(Interval::inverse), run.step_seconds));
        let memory = estimate.detail.map(|detail| {
            let dies = scenario.machine.map_or(1.0, |machine| machine.dies);
            // Whether it fits in memory is decided by the upper bound; the prediction itself is the point estimate.
            let gb = dies / atlas_core::units::BYTES_PER_GB;
            let (used, upper) = (detail.memory.total() * gb, detail.memory.upper * gb);
            let figure = PredictedValue::of(used, None, run.memory_gb);
            PredictedValue { high: trusted.then_some(upper), ..figure }
        });
        Prediction {
            target: target.to_owned(),
            workload: workload.to_owned(),
            engine: scenario.engine.name(),
            tokens_per_second: PredictedValue::of(estimate.total.tokens_per_sec, interval, run.tokens_per_second),
            step_time_s: step,
            memory_gb: memory,
            verdict: estimate
                .detail
                .map(|detail| detail.verdict)
                .filter(|verdict| !verdict.fits())
                .map(|v| v.describe()),
            assumed: Vec::new(),
        }
    }
}

/// Model of a run: given by the user, else named in the file, else that of the experiment's configuration.
fn model(run: &Value, given: &Assumptions, catalog: &Catalog) -> Result<Arc<Model>, String> {
    let named = run.get("model_info").and_then(|info| info.get("name")).and_then(Value::as_str).map(str::to_owned);
    let planned = given.plan.as_ref().and_then(|plan| plan.model.clone());
    let wanted = given.model.clone().or(named);
    let found = wanted.iter().chain(&planned).find_map(|name| catalog.model(name).ok());
    found.ok_or_else(|| match wanted {
        Some(name) => format!("no model `{name}` in the catalog; use --model"),
        None => "the file does not name the model; use --model".to_owned(),
    })
}

/// Number format of a run: given by the user, else stated in the file, else that of the experiment's configuration, else
/// bf16. The last two are added to `assumed`.
fn format(run: &Value, given: &Assumptions, assumed: &mut Vec<String>) -> Format {
    let in_file = run.get("gpu_info").and_then(|info| info.get("precision")).and_then(Value::as_str);
    let written = given.precision.clone().or_else(|| in_file.map(str::to_owned)).or_else(|| {
        let plan = given.plan.as_ref()?;
        let planned = plan.precision.clone()?;
        assumed.push(format!("precision {planned} ({})", plan.file));
        Some(planned)
    });
    let format = written.as_deref().and_then(|word| {
        let word = word.to_lowercase();
        Format::WORDS.iter().find(|(name, _)| word.starts_with(name)).map(|(_, format)| *format)
    });
    format.unwrap_or_else(|| {
        assumed.push("precision bf16".to_owned());
        Format::Bf16
    })
}

/// Predicts a run from its benchmark JSON. Accelerator, model, batch sizes, lengths, parallelism and number format are
/// taken from the file, else from `given` or from an experiment's configuration.
///
/// # Errors
/// Returns which values are not stated, or why the engine has no estimate.
pub fn predict(
    name: &str,
    run: &Value,
    given: &Assumptions,
    library: &Library,
    measured: Measured,
) -> Result<Prediction, String> {
    let at = |group: &str, field: &str| run.get(group).and_then(|group| group.get(field));
    let catalog = library.catalog();
    let device = at("gpu_info", "device_name").and_then(Value::as_str).ok_or("the file does not name the device")?;
    let memory = number(run, "gpu_info", "total_memory_gb");
    let sheet = catalog
        .find_accelerator_by_description(device, memory)
        .ok_or_else(|| format!("{device} is not in the catalog"))?;
    let gpus = number(run, "training_config", "num_gpus").or_else(|| number(run, "gpu_info", "device_count"));
    let model = model(run, given, catalog)?;
    let mut assumed = Vec::new();
    let mut stated = |group: &str, field: &str| {
        number(run, group, field).or_else(|| {
            let plan = given.plan.as_ref()?;
            let value = plan.setting(group, field)?;
            assumed.push(format!("{field} {value} ({})", plan.file));
            Some(value)
        })
    };
    let sizes = [
        ("global_batch_size", stated("training_config", "global_batch_size")),
        ("sequence_length", stated("training_config", "sequence_length")),
        ("num_gpus", gpus.or_else(|| stated("training_config", "num_gpus"))),
    ];
    let lacks: Vec<&str> = sizes.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| *name).collect();
    let [(_, Some(global)), (_, Some(length)), (_, Some(gpus))] = sizes else {
        return Err(format!("the file does not state {}", lacks.join(", ")));
    };
    let micro = stated("training_config", "micro_batch_size");
    // The layout is not mixed from both sources: the configured one is used only if the file states no degree at all.
    let degrees = ["tensor_model_parallel_size", "pipeline_model_parallel_size", "data_parallel_size"];
    let stated_in_file = degrees.iter().any(|field| number(run, "parallelism_config", field).is_some());
    let [tp, pp, dp] = degrees.map(|field| match stated_in_file {
        true => number(run, "parallelism_config", field),
        false => stated("parallelism_config", field),
    });
    let mut or_one = |value: Option<f64>, what: &str| {
        value.unwrap_or_else(|| {
            assumed.push(format!("{what} 1"));
            1.0
        })
    };
    let (tp, pp) = (or_one(tp, "tp"), or_one(pp, "pp"));
    let micro = or_one(micro, "micro-batch");
    let cp = number(run, "parallelism_config", "context_parallel_size").unwrap_or(1.0);
    let dp = dp.unwrap_or((gpus / (tp * pp * cp)).floor().max(1.0));
    let format = format(run, given, &mut assumed);
    let node = gpus.min(f64::from(
        sheet
            .scale_up
            .as_ref()
            .and_then(|link| link.domain_size)
            .unwrap_or(Count::new(8))
            .clamp(Count::ONE, Count::new(8)),
    ));
    let nodes = (gpus / node).ceil();
    let target = json!([{
        "name": sheet.id, "vendor": sheet.vendor, "accelerator": sheet.id,
        "accelerators_per_node": node, "num_nodes": nodes, "memory_gb_per_accel": sheet.memory.gb,
        "cost": {"hourly_usd": 0.0, "energy_watts_node": node * sheet.tdp_w.unwrap_or_default(), "pue": 1.0},
    }]);
    let workload = json!([{
        "name": model.id, "mode": "training", "model": model.id,
        "sequence": {"prompt": length, "generate": 0},
        "batch": {"micro": micro, "global": global},
        "parallelism": {"tp": tp, "pp": pp, "dp": dp, "cp": cp},
        "precision": {"weights": format.name()},
    }]);
    let file: Arc<str> = name.into();
    let mut problems = Diagnostics::new();
    let of = |value: Value| serde_json::from_value::<Node>(value).ok()?.items()?.first().cloned();
    let target = of(target).and_then(|node| Target::decode(&file, &node, &mut problems));
    let workload = of(workload).and_then(|node| Workload::decode(&file, &node, &mut problems));
    let (Some(target), Some(workload)) = (target, workload) else {
        return Err(format!("its values do not define a workload: {}", problems.messages()));
    };
    let parts = Parts::of(library, &Arc::new(target), &Arc::new(workload)).map_err(|problems| problems.messages())?;
    let predicted = answer(&parts, measured)?;
    Ok(Prediction { target: format!("{gpus} x {}", sheet.id), assumed, ..predicted })
}

fn answer(parts: &Parts, measured: Measured) -> Result<Prediction, String> {
    let scenario = Scenario::resolve(parts, &Overrides::new()).map_err(|error| error.to_string())?;
    let estimate = engine::estimate(&scenario);
    estimate.finite()?;
    Ok(Prediction::of(&parts.target.name, &parts.workload.name, &scenario, &estimate, measured))
}
