//! A scenario in the JSON format of the predecessor dashboard, with the estimates of its engine and of the analytical
//! engine.

use atlas_core::math;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::table::{Table, left, right};
use atlas_config::Mode;
use atlas_core::units::significant;
use atlas_document::Node;
use atlas_plan::engine::benchboard::contrast::Contrast;
use atlas_plan::engine::benchboard::estimator;
use atlas_plan::engine::benchboard::estimator::{Answer, Input};
use atlas_plan::engine::benchboard::input;
use atlas_plan::scenario::{Dashboard, Parts, Scenario};

/// Formats a number as the dashboard does: integers have no decimal point.
fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "whole and small")]
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

/// Copies `keys` of a node, then applies the values of `over`. Null values of `over` are skipped.
fn object(kept: Option<&Node>, keys: &[&str], over: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let mut out = Map::new();
    for key in keys {
        if let Some(value) = kept.and_then(|node| node.get(key)).and_then(|node| serde_json::to_value(node).ok()) {
            out.insert((*key).to_owned(), value);
        }
    }
    for (key, value) in over.into_iter().filter(|(_, value)| !value.is_null()) {
        out.insert(key.to_owned(), value);
    }
    Value::Object(out)
}

/// A scenario in the dashboard's format, with its model, parallelism, workload and hardware.
#[must_use]
pub fn scenario(scenario: &Scenario, parts: &Parts) -> Value {
    let inputs = input(scenario, &scenario.base);
    let stated = parts.workload.document.get("benchboard");
    let unknown = |value: f64| if value > 0.0 { number(value) } else { Value::Null };
    let moe = scenario.model.is_some_and(|model| model.is_moe());
    let named = stated.and_then(|stated| stated.get("name")).and_then(Node::text).map(str::to_owned);
    let name = named.or_else(|| parts.model.as_ref().map(|model| model.id.clone()));
    let mut model = vec![
        ("name", json!(name.unwrap_or_else(|| parts.workload.name.to_string()))),
        ("parameters", number(inputs.parameters / 1e9)),
        ("contextLength", number(inputs.context)),
        ("precision", json!(Dashboard::format(&scenario.base).name())),
        ("hiddenSize", unknown(inputs.hidden)),
        ("numLayers", unknown(inputs.layers)),
    ];
    if stated.is_none() {
        model.push(("architectureType", json!(if moe { "moe" } else { "dense" })));
        model.push(("numHeads", scenario.model.map_or(Value::Null, |model| unknown(f64::from(model.heads)))));
        model.push(("vocabularySize", scenario.model.map_or(Value::Null, |model| unknown(f64::from(model.vocab)))));
    }
    let keys = ["name", "parameters", "architectureType", "numExperts", "contextLength", "precision"];
    let keys: Vec<&str> = keys.into_iter().chain(["hiddenSize", "numLayers", "numHeads", "vocabularySize"]).collect();
    let accumulation = (inputs.batch / (inputs.computed_sequences() * inputs.dp)).round().max(1.0);
    let sp = scenario.base.plan.sp.unwrap_or(inputs.tp > 1.0);
    let parallelism = [
        ("dataParallel", number(inputs.dp)),
        ("tensorParallel", number(inputs.tp)),
        ("pipelineParallel", number(inputs.pp)),
        (
            "gradientAccumulationSteps",
            stated
                .and_then(|stated| stated.get("gradientAccumulationSteps"))
                .and_then(Node::number)
                .map_or_else(|| number(accumulation), number),
        ),
        ("activationCheckpointing", json!(inputs.checkpointing)),
        ("sequenceParallel", json!(sp)),
    ];
    let workload = [
        ("type", json!(if scenario.mode() == Mode::Training { "training" } else { "inference" })),
        ("batchSize", number(inputs.batch)),
        ("microBatchSize", number(inputs.micro_batch)),
        ("targetMetric", json!("tokens_per_second")),
    ];
    let aim = stated.and_then(|stated| stated.get("targetMetric")).and_then(Node::text).map(str::to_owned);
    let mut workload = object(None, &[], workload);
    if let (Some(aim), Some(map)) = (aim, workload.as_object_mut()) {
        map.insert("targetMetric".to_owned(), json!(aim));
    }
    json!({
        "id": &*parts.workload.name,
        "name": parts.workload.description.clone().unwrap_or_else(|| parts.workload.name.to_string()),
        "model": object(stated, &keys, model),
        "parallelism": object(None, &[], parallelism),
        "workload": workload,
        "hardware": hardware(parts, &inputs),
    })
}

/// A target as a hardware profile of the dashboard, which describes one device.
fn hardware(parts: &Parts, inputs: &Input) -> Value {
    let stated = parts.target.document.get("benchboard");
    let sheet = parts.accelerator.as_ref();
    let fixed = [
        ("id", json!(&*parts.target.name)),
        ("vendor", json!(parts.target.vendor)),
        ("fp16Tflops", number(inputs.tflops)),
        ("vramSizeGB", number(inputs.memory_gb)),
        ("interconnectBandwidthGBps", number(inputs.link_gb_per_sec)),
        ("costPerHour", number(inputs.usd_per_hour)),
    ];
    let mut over: Vec<(&'static str, Value)> = fixed.into();
    if stated.is_none() {
        let of = |value: Option<f64>| value.map_or(Value::Null, number);
        let kind = match (inputs.gpu, inputs.tpu) {
            (true, _) => "gpu",
            (false, true) => "tpu",
            (false, false) => "other",
        };
        let link = parts.target.interconnect.as_ref().map(|link| link.kind.clone());
        let link = link.or_else(|| sheet?.scale_up.as_ref()?.kind.clone());
        let name = parts.target.description.clone().unwrap_or_else(|| parts.target.name.to_string());
        over.extend([
            ("name", json!(name)),
            ("type", json!(kind)),
            ("smCount", of(sheet.and_then(|sheet| sheet.cores))),
            ("fp32Tflops", of(sheet.and_then(|sheet| sheet.peaks.fp32))),
            ("int8Tops", of(sheet.and_then(|sheet| sheet.peaks.int8))),
            ("hbmBandwidthGBps", of(sheet.and_then(|sheet| sheet.memory.bw_gbytes_per_sec))),
            ("interconnect", link.map_or(Value::Null, |link| json!(link))),
            ("frameworks", json!([])),
        ]);
    }
    let keys = ["id", "name", "type", "vendor", "smCount", "fp16Tflops", "fp32Tflops", "int8Tops", "hbmBandwidthGBps"];
    let more = ["vramSizeGB", "interconnect", "interconnectBandwidthGBps", "podSize", "costPerHour", "frameworks"];
    object(stated, &keys.into_iter().chain(more).chain(["notes"]).collect::<Vec<_>>(), over)
}

/// An estimate under the dashboard's field names.
#[must_use]
pub fn result(parts: &Parts, inputs: &Input, answer: &Answer) -> Value {
    json!({
        "scenarioId": &*parts.workload.name,
        "hardwareId": &*parts.target.name,
        "theoreticalFlopsPerStep": answer.flops,
        "estimatedStepTimeMs": answer.step_ms(),
        "tokensPerSecond": answer.tokens_per_sec,
        "mfu": answer.mfu,
        "modelMemoryGB": answer.model_gib,
        "activationMemoryGB": answer.activation_gib,
        "optimizerMemoryGB": answer.optimizer_gib,
        "totalMemoryGB": answer.total_gib(),
        "memoryUtilization": answer.memory_percent,
        "costPerMillionTokens": answer.usd_per_million,
        "costPerHour": answer.usd_per_hour,
        "allReduceTimeMs": answer.all_reduce_ms,
        "communicationOverhead": answer.communication_percent,
        "bottleneck": answer.bottleneck.name(),
        "warnings": answer.warnings(inputs),
    })
}

/// Estimates the scenario and returns the result under the dashboard's field names.
#[must_use]
pub fn estimate(scenario: &Scenario, parts: &Parts) -> Value {
    let inputs = input(scenario, &scenario.base);
    result(parts, &inputs, &estimator::estimate(&inputs))
}

/// Formats a value with four significant digits, with an SI prefix if it is large.
fn format_value(value: f64) -> String {
    if value >= 1e5 { atlas_core::units::si(value) } else { significant(value, 4) }
}

/// A pair of target and workload, estimated by the dashboard's engine and by the analytical engine.
#[derive(Debug)]
pub struct Pair<'a> {
    /// Target and workload.
    pub parts: &'a Parts,
    /// Estimates of both engines.
    pub contrast: &'a Contrast,
}

/// A metric with the values of both engines.
#[derive(Debug, Serialize)]
struct Line {
    figure: &'static str,
    dashboard: f64,
    analytical: Option<f64>,
}

impl Pair<'_> {
    fn lines(&self) -> Vec<Line> {
        let Contrast { dashboard, analytical, input, .. } = self.contrast;
        let other = analytical.as_ref().ok().map(|(scenario, estimate)| (scenario, estimate));
        let training = other.is_some_and(|(scenario, _)| scenario.mode() == Mode::Training);
        let of = |get: &dyn Fn(&Scenario, &atlas_plan::estimate::Estimate) -> f64| {
            other.map(|(scenario, estimate)| get(scenario, estimate))
        };
        let line = |figure, dashboard, analytical| Line { figure, dashboard, analytical };
        let used = |scenario: &Scenario| input.devices() / scenario.accelerators();
        let rent = |scenario: &Scenario| scenario.usd_node_hour().map(|usd| usd * scenario.num_nodes * used(scenario));
        vec![
            line("tokens/s", dashboard.tokens_per_sec, of(&|_, e| e.total.tokens_per_sec)),
            line(
                "step time, ms",
                dashboard.step_ms(),
                other.and_then(|(_, e)| e.total.step_time_ms).filter(|_| training),
            ),
            line("MFU, %", 100.0 * dashboard.mfu, of(&|_, e| 100.0 * e.total.flop_utilization)),
            line("communication, %", dashboard.communication_percent, of(&|_, e| 100.0 * e.total.comm_compute_ratio)),
            line("device memory, GB", dashboard.total_gib() * estimator::GIB * 1e-9, of(&|_, e| e.total.peak_mem_gb)),
            line(
                "device memory, %",
                dashboard.memory_percent,
                other.and_then(|(_, e)| e.detail).map(|detail| 100.0 * detail.memory.total() / detail.memory.capacity),
            ),
            // The dashboard counts only the devices in use, and no energy.
            line("$/h", dashboard.usd_per_hour, other.and_then(|(s, _)| rent(s))),
            line(
                "$/1M tokens",
                dashboard.usd_per_million,
                other.and_then(|(s, e)| Some(rent(s)? / (e.total.tokens_per_sec * 3600.0) * 1e6)),
            ),
        ]
    }

    /// Renders the pair as plain text.
    #[must_use]
    pub fn table(&self) -> String {
        let Contrast { dashboard, analytical, input, factors } = self.contrast;
        let head = [left(""), right("benchboard"), right("analytical"), right("")];
        let mut table = Table::new(head);
        for Line { figure, dashboard, analytical } in self.lines() {
            let ratio = analytical.map(|value| value / dashboard).filter(|ratio| ratio.is_finite());
            table.row([
                figure.to_owned(),
                significant(dashboard, 5),
                analytical.map_or_else(|| "-".to_owned(), |value| significant(value, 5)),
                ratio.map_or_else(String::new, |ratio| format!("x{}", significant(ratio, 3))),
            ]);
        }
        let verdict = if dashboard.memory_percent > 100.0 { "out of memory" } else { "fits" };
        let other = analytical.as_ref().ok().and_then(|(_, estimate)| estimate.detail);
        let fits = other.map_or("-", |detail| if detail.verdict.fits() { "fits" } else { "does not fit" });
        table.row(["verdict".to_owned(), verdict.to_owned(), fits.to_owned(), String::new()]);
        let bound = other.map_or("-", |detail| detail.limits.first().name());
        table.row(["bound by".to_owned(), dashboard.bottleneck.name().to_owned(), bound.to_owned(), String::new()]);
        let name = format!("{} on {}", self.parts.workload.name, self.parts.target.name);
        let mut out = format!("{name}, {} devices\n\n{}", input.devices(), table.render());
        match analytical {
            Err(problem) => out += &format!("\nno analytical estimate: {problem}\n"),
            Ok((_, estimate)) => {
                if let Some(detail) = estimate.detail.filter(|detail| !detail.verdict.fits()) {
                    out += &format!("\nanalytical: {}\n", detail.verdict.describe());
                }
            }
        }
        if factors.is_empty() {
            if analytical.is_ok() {
                out += "\nthe dashboard estimates inference with its training formula: it counts all tokens of the \
                        sequences and models neither prefill, decode nor a KV cache; the two throughputs are not \
                        comparable\n";
            }
            return out;
        }
        let product: f64 = factors.iter().map(|factor| factor.factor).product();
        out += &format!("\nwhy the analytical throughput is {} times the dashboard's\n\n", significant(product, 4));
        let mut table = Table::new(head);
        for factor in factors {
            table.row([
                factor.what.to_owned(),
                format_value(factor.dashboard),
                format_value(factor.analytical),
                format!("x{}", significant(factor.factor, 4)),
            ]);
        }
        out += &table.render();
        for factor in factors {
            out += &format!("\n{}\n", super::table::wrap(&format!("{}: {}", factor.what, factor.why), 100, "  "));
        }
        out
    }

    /// Returns the pair as a JSON value.
    #[must_use]
    pub fn document(&self) -> Value {
        let Contrast { analytical, factors, .. } = self.contrast;
        let verdict = analytical.as_ref().ok().and_then(|(_, estimate)| estimate.detail).map(|detail| detail.verdict);
        json!({
            "scenario": &*self.parts.workload.name,
            "hardware": &*self.parts.target.name,
            "devices": self.contrast.input.devices(),
            "figures": self.lines(),
            "analytical_verdict": verdict,
            "analytical_error": analytical.as_ref().err().map(ToString::to_string),
            "why": factors,
        })
    }

    /// Column names of [`Pair::row`].
    pub const HEAD: [&'static str; 9] = [
        "scenario",
        "hardware",
        "devices",
        "benchboard tokens/s",
        "analytical tokens/s",
        "ratio",
        "benchboard memory %",
        "analytical memory %",
        "largest cause",
    ];

    /// One table row of the pair; `exact` writes numbers with all digits.
    #[must_use]
    pub fn row(&self, exact: bool) -> Vec<String> {
        let show = |value: f64| if exact { value.to_string() } else { significant(value, 4) };
        let lines = self.lines();
        let pair = |figure: &str| {
            let line = lines.iter().find(|line| line.figure == figure);
            let other = line.and_then(|line| line.analytical).map_or_else(|| "-".to_owned(), show);
            (line.map_or_else(String::new, |line| show(line.dashboard)), other)
        };
        let ratio = lines.first().and_then(|line| Some(line.analytical? / line.dashboard));
        let cause =
            self.contrast.factors.iter().max_by(|a, b| math::ln(a.factor).abs().total_cmp(&math::ln(b.factor).abs()));
        let cause = cause.map_or_else(String::new, |cause| format!("{} x{}", cause.what, significant(cause.factor, 3)));
        let ((rate, other_rate), (memory, other_memory)) = (pair("tokens/s"), pair("device memory, %"));
        vec![
            self.parts.workload.name.to_string(),
            self.parts.target.name.to_string(),
            self.contrast.input.devices().to_string(),
            rate,
            other_rate,
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("x{}", significant(ratio, 3))),
            memory,
            other_memory,
            cause,
        ]
    }
}
