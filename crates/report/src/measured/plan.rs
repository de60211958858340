//! Configuration of the experiment that a measured run belongs to, and where the run deviates from it.

use serde_json::Value;

use atlas_core::units::significant;

/// A configured value of a field of the benchmark JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Group of the field in the benchmark JSON.
    pub group: &'static str,
    /// Name of the field.
    pub field: &'static str,
    /// The configured value.
    pub value: f64,
}

/// Settings of a model on a platform from an experiment's configuration.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// Path of the configuration file.
    pub file: String,
    /// USD per accelerator-hour.
    pub usd_per_gpu_hour: Option<f64>,
    /// Thermal design power of an accelerator, W.
    pub tdp_w: Option<f64>,
    /// Parameters of the model.
    pub parameters: Option<f64>,
    /// Name of the model in the catalog.
    pub model: Option<String>,
    /// Number format used on the platform.
    pub precision: Option<String>,
    /// Batch sizes, sequence length and parallelism.
    pub settings: Vec<Setting>,
}

/// A positive number from a run's benchmark JSON.
pub(super) fn number(run: &Value, group: &str, field: &str) -> Option<f64> {
    run.get(group).and_then(|group| group.get(field)).and_then(Value::as_f64).filter(|value| *value > 0.0)
}

impl Plan {
    /// Configured value of a field.
    #[must_use]
    pub fn setting(&self, group: &str, field: &str) -> Option<f64> {
        self.settings.iter().find(|setting| setting.group == group && setting.field == field).map(|one| one.value)
    }

    /// Describes where the run deviates from the configuration.
    #[must_use]
    pub fn differences(&self, run: &Value) -> Vec<String> {
        let mut out = Vec::new();
        for Setting { group, field, value } in &self.settings {
            if let Some(ran) = number(run, group, field).filter(|ran| ran != value) {
                out.push(format!(
                    "the run used {field} {}, but {} states {}",
                    format_value(ran),
                    self.file,
                    format_value(*value)
                ));
            }
        }
        let ran = run.get("gpu_info").and_then(|info| info.get("precision")).and_then(Value::as_str);
        if let (Some(ran), Some(planned)) = (ran, &self.precision)
            && !ran.to_lowercase().starts_with(planned.as_str())
        {
            out.push(format!("the run used precision {ran}, but {} states {planned}", self.file));
        }
        out
    }
}

fn format_value(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { significant(value, 5) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_list_measured_and_configured_values() {
        let setting = |group, field, value| Setting { group, field, value };
        let plan = Plan {
            file: "config.yaml".to_owned(),
            precision: Some("fp8".to_owned()),
            settings: vec![
                setting("training_config", "global_batch_size", 128.0),
                setting("training_config", "sequence_length", 2048.0),
                setting("parallelism_config", "tensor_model_parallel_size", 4.0),
            ],
            ..Plan::default()
        };
        let run = json!({
            "training_config": {"global_batch_size": 64, "sequence_length": 2048},
            "gpu_info": {"precision": "BF16"},
        });
        let expected = [
            "the run used global_batch_size 64, but config.yaml states 128",
            "the run used precision BF16, but config.yaml states fp8",
        ];
        assert_eq!(plan.differences(&run), expected);
        assert!(plan.differences(&json!({})).is_empty(), "what a file does not say cannot differ");
    }
}
