//! Metrics of a run from its benchmark JSON: stated values, and values derived from the catalog's peak, price and
//! power.

use serde_json::Value;

use super::learning::sanity;
use super::{Assumptions, Measured, RunMetric, Steps};
use atlas_catalog::{Accelerator, Catalog};
use atlas_core::units::significant;
use atlas_ingest::economics;

/// System properties that a run's benchmark JSON states.
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

/// Returns a note if the stated throughput contradicts batch size, sequence length and step time.
fn contradiction(rate: f64, batch: f64, length: f64, seconds: f64) -> Option<String> {
    let computed = batch * length / seconds;
    (rate / computed - 1.0).abs().gt(&0.03).then(|| {
        format!(
            "the file states {} tokens/s, but {batch} sequences of {length} tokens in {} s are {} tokens/s",
            significant(rate, 5),
            significant(seconds, 4),
            significant(computed, 5)
        )
    })
}

/// Peak of the accelerator at the precision that the user, the run's file or the experiment's plan states.
fn peak(
    stated: Option<&str>,
    given: &Assumptions,
    known: Option<&Accelerator>,
    notes: &mut Vec<String>,
) -> Option<f64> {
    let written = given.precision.clone().or_else(|| stated.map(str::to_owned)).or_else(|| {
        let plan = given.plan.as_ref()?;
        let planned = plan.precision.clone()?;
        notes.push(format!("precision {planned} from {}: MFU is relative to its peak rate", plan.file));
        Some(planned)
    });
    let precision = written.as_deref().unwrap_or("bf16").to_lowercase();
    let peaks = known?.peaks.all();
    let peak = peaks.into_iter().find(|(name, _)| precision.starts_with(name)).and_then(|(_, peak)| peak)?;
    if written.is_none() {
        notes.push("precision not stated: MFU is relative to the bf16 peak rate".to_owned());
    }
    Some(peak)
}

/// USD per accelerator-hour: given by the user, planned, or the catalog's cheapest price.
fn price(given: &Assumptions, known: Option<&Accelerator>, catalog: &Catalog, notes: &mut Vec<String>) -> Option<f64> {
    if given.usd_per_gpu_hour.is_some() {
        return given.usd_per_gpu_hour;
    }
    if let Some((plan, usd)) = given.plan.as_ref().and_then(|plan| Some((plan, plan.usd_per_gpu_hour?))) {
        notes.push(format!("{} $/h per accelerator: {}", significant(usd, 3), plan.file));
        return Some(usd);
    }
    let prices = catalog.prices_of(&known?.id);
    let cheapest =
        prices.iter().min_by(|a, b| a.usd_per_accelerator_hour().total_cmp(&b.usd_per_accelerator_hour()))?;
    let usd = cheapest.usd_per_accelerator_hour();
    notes.push(format!("{} $/h per accelerator: {}, {}", significant(usd, 3), cheapest.provider, cheapest.date));
    Some(usd)
}

/// Computes the metrics of a run from its benchmark JSON.
#[must_use]
pub fn judge(name: &str, run: &Value, given: &Assumptions, catalog: &Catalog) -> Measured {
    let at = |group: &str, field: &str| run.get(group).and_then(|group| group.get(field));
    let number = |group: &str, field: &str| at(group, field).and_then(Value::as_f64).filter(|value| *value > 0.0);
    let mut notes = Vec::new();
    let device = at("gpu_info", "device_name").and_then(Value::as_str).map(str::to_owned);
    let known = device
        .as_deref()
        .and_then(|device| catalog.find_accelerator_by_description(device, number("gpu_info", "total_memory_gb")));
    if let (Some(device), None) = (&device, &known) {
        notes.push(format!("{device} is not in the catalog: peak rate, power and price are unknown"));
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
    let stated = at("gpu_info", "precision").and_then(Value::as_str);
    let peak = peak(stated, given, known.as_deref(), &mut notes);
    let parameters = given.parameters.or_else(|| number("model_info", "total_params"));
    let parameters = parameters.or_else(|| number("model_info", "parameters_billion").map(|billions| billions * 1e9));
    let parameters = parameters.or_else(|| plan?.parameters);
    let tflops = rate.zip(parameters).map(|(rate, parameters)| economics::model_tflops(rate, parameters));
    let mfu = || Some(economics::utilization(rate?, gpus?, parameters?, peak?).mfu_percent);

    let price = price(given, known.as_deref(), catalog, &mut notes);
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

    let figure =
        |name, value: Option<f64>, more| RunMetric { name, value: value.filter(|value| value.is_finite()), more };
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
        figure("model TFLOP/s/accelerator", tflops.zip(gpus).map(|(all, gpus)| all / gpus), up),
        figure("peak TFLOP/s/accelerator", peak, None),
        figure("MFU %", mfu(), up),
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
