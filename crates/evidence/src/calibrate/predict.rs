//! Measured rows as scenarios of either engine, to predict them.

use atlas_core::count::Count;
use std::sync::Arc;

use serde_json::json;

use super::bench::RowPredictor;
use super::observation::Observation;
pub use super::predicted_metric::PredictedMetric;
use super::rows;
use crate::validate::case::RowScenario;
use atlas_config::profile::Coefficients;
use atlas_config::{Mode, Workload};
use atlas_core::plan::Engine;
use atlas_document::{Diagnostics, parse};
use atlas_plan::engine;
use atlas_plan::scenario::{FABRIC, Parts, Scenario};

impl RowPredictor<'_> {
    /// Workload of the scenarios of the calibrated model.
    fn substitute_workload(&self) -> Option<Arc<Workload>> {
        match self.workload {
            Some(workload) => Some(Arc::clone(workload)),
            None => workload_of(&json!({
                "name": "measured",
                "sequence": {"prompt": 1024, "generate": 0},
                "parallelism": {"tp": 1, "pp": 1, "dp": 1},
                "params": {"hidden_size": 1, "n_layers": 1},
            }))
            .ok(),
        }
    }

    /// Returns the documents on which an engine's prediction of a row is based.
    #[must_use]
    pub fn parts(&self, row: &Observation, engine: Engine) -> Option<Parts> {
        if engine != Engine::SemiEmpirical {
            return self.resolved(row).ok().map(|found| found.parts);
        }
        Parts::of(self.library, self.target, &self.substitute_workload()?).ok()
    }

    /// Scenario of the calibrated model before the settings of a row are applied.
    fn template(&self) -> Option<Scenario> {
        let (target, workload) = (Arc::clone(self.target), self.substitute_workload()?);
        let mut scenario = Scenario::from_files(&Parts {
            target,
            workload,
            profile: None,
            accelerator: None,
            model: None,
            corrections: None,
            prices: Default::default(),
        });
        scenario.engine = Engine::SemiEmpirical;
        scenario.noise = false;
        scenario.phases.clear();
        scenario.calibrated = true;
        Some(scenario)
    }

    /// Accelerator that a row names, if it is in the catalog and not that of the target.
    #[must_use]
    pub fn other_accelerator(&self, row: &Observation) -> Option<String> {
        let own = identifying_part(self.target.accelerator.as_deref()?)?;
        let named = row.word("hardware")?;
        let known = self.devices.get_or_init(|| {
            let all = self.library.catalog().accelerators();
            all.iter().filter_map(|sheet| identifying_part(&sheet.id)).collect()
        });
        let lower = named.to_lowercase();
        let mut words =
            lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| known.contains(*word)).peekable();
        words.peek()?;
        (!words.any(|word| word == own)).then_some(named)
    }

    /// Number of accelerators of a row. If not given: those of the whole target for a log, one for a row of a table.
    #[must_use]
    pub fn accelerators(&self, row: &Observation) -> f64 {
        let silent = if row.kind.is_empty() { 1.0 } else { self.target.accelerators() };
        row.accelerators().unwrap_or(silent)
    }

    /// Scenario of a row for the calibrated model, with the given coefficients. It needs no model and no datasheet.
    #[must_use]
    pub fn semi_empirical(&self, row: &Observation, c: &Coefficients, fabrics: &[(Arc<str>, f64)]) -> Option<Scenario> {
        let mut scenario = self.template.get_or_init(|| self.template()).clone()?;
        scenario.coefficients = *c;
        let fabric: Arc<str> = row.word("fabric").map_or_else(|| Arc::clone(&scenario.fabric), Into::into);
        let factor = factor_of(fabrics, &fabric).or_else(|| factor_of(fabrics, FABRIC));
        scenario.fabric_factor = Some(factor.unwrap_or(1.0));
        scenario.fabric = fabric;
        // Logs contain means, which need not be whole.
        let count = |value: f64| Count::floor(value.round()).max(Count::ONE);
        (scenario.accelerators_per_node, scenario.num_nodes) = (count(self.accelerators(row)), Count::ONE);
        scenario.cuda_graphs = row.switch("cuda_graphs").unwrap_or(scenario.cuda_graphs);
        scenario.gpudirect_rdma = row.switch("gpudirect_rdma").unwrap_or(scenario.gpudirect_rdma);
        scenario.sriov = row.word("virt").map_or(scenario.sriov, |virt| virt.eq_ignore_ascii_case("sriov"));
        scenario.microbatch = row.number("batch").map_or(scenario.microbatch, count);
        let shape = &mut scenario.base.shape;
        shape.mode = row.mode();
        // A row without degrees of parallelism has those of the user's workload if there is one, or otherwise 1.
        let rank = |name: &str, of_workload: Count| match (row.number(name), self.workload) {
            (Some(ranks), _) => count(ranks),
            (None, Some(_)) => of_workload,
            (None, None) => Count::ONE,
        };
        shape.tp = rank("tp", shape.tp);
        shape.pp = rank("pp", shape.pp);
        shape.dp = rank("dp", shape.dp);
        let plan = &mut scenario.base.plan;
        (plan.tp, plan.pp, plan.dp) = (Some(shape.tp), Some(shape.pp), Some(shape.dp));
        shape.prompt = row.number("seq_len").unwrap_or(shape.prompt);
        shape.generate = match (row.number("generate"), row.mode()) {
            (Some(generate), _) => generate,
            (None, Mode::Inference) if self.workload.is_some() => shape.generate,
            (None, _) => 0.0,
        };
        Some(scenario)
    }

    /// Scenario of a row for the analytical engine.
    ///
    /// # Errors
    /// Returns which information is missing in the row and the files.
    pub fn analytical(&self, row: &Observation) -> Result<Scenario, String> {
        self.resolved(row).map(|found| found.scenario)
    }

    pub(super) fn resolved(&self, row: &Observation) -> Result<RowScenario, String> {
        // Rows that are complete are predicted without the workload, if requested.
        if self.complete_rows_first && self.workload.is_some() {
            let alone = RowPredictor { workload: None, ..self.clone() };
            if let Ok((_, found)) = rows::resolve(&alone, row) {
                return Ok(found);
            }
        }
        rows::resolve(self, row).map(|(_, found)| found)
    }
}

/// The part of an accelerator's key that identifies it: the first that contains a digit, `h200` of
/// `nvidia-h200-sxm-141gb`.
#[must_use]
pub fn identifying_part(key: &str) -> Option<String> {
    key.split('-').find(|part| part.chars().any(|c| c.is_ascii_digit())).map(str::to_lowercase)
}

fn workload_of(document: &serde_json::Value) -> Result<Arc<Workload>, Diagnostics> {
    let mut problems = Diagnostics::new();
    let file: Arc<str> = "measurement".into();
    let node = parse::parse(&file, &document.to_string(), &mut problems);
    let workload = node.and_then(|node| Workload::decode(&file, &node, &mut problems));
    workload.map(Arc::new).ok_or(problems)
}

/// Factor of a fabric, ignoring case.
#[must_use]
pub fn factor_of(fabrics: &[(Arc<str>, f64)], name: &str) -> Option<f64> {
    fabrics.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, factor)| *factor)
}

/// Returns the scenario's prediction of a metric, if its engine predicts it.
#[must_use]
pub fn predicted(scenario: &Scenario, figure: PredictedMetric) -> Option<f64> {
    let estimate = engine::estimate(scenario);
    let total = &estimate.total;
    let value = match figure {
        PredictedMetric::TokensPerSec => total.tokens_per_sec,
        PredictedMetric::P50Ms => total.latency?.p50,
        PredictedMetric::P95Ms => total.latency?.p95,
        PredictedMetric::P99Ms => total.latency?.p99,
        PredictedMetric::TpotMs => estimate.detail.and_then(|detail| detail.serving)?.tpot_ms.p50,
        PredictedMetric::NodePowerW => total.node_power_w,
        PredictedMetric::FlopUtilization => total.flop_utilization,
    };
    (value.is_finite() && value > 0.0).then_some(value)
}

/// Interval of the prediction as factors on it, if the engine provides one.
#[must_use]
pub fn interval(scenario: &Scenario, figure: PredictedMetric) -> Option<[f64; 2]> {
    let detail = engine::estimate(scenario).detail?;
    let interval = match figure {
        PredictedMetric::TokensPerSec => detail.throughput_interval,
        PredictedMetric::TpotMs => detail.serving?.tpot_interval,
        _ => return None,
    };
    Some([interval.low, interval.high])
}
