//! The experiment's configuration of a measured run, and differences of the run from it.

use serde_json::Value;

use atlas_core::units::significant;

/// A setting of the benchmark JSON as a configuration has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its group in the benchmark JSON.
    pub group: &'static str,
    /// Its field there.
    pub field: &'static str,
    /// The configured value.
    pub value: f64,
}

/// A model on a platform as a configuration describes them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// The configuration's file.
    pub file: String,
    /// Dollars for one accelerator and hour.
    pub usd_per_gpu_hour: Option<f64>,
    /// Design power of an accelerator, W.
    pub tdp_w: Option<f64>,
    /// Parameters of the model.
    pub parameters: Option<f64>,
    /// The model in the catalog.
    pub model: Option<String>,
    /// Number format in effect on the platform.
    pub precision: Option<String>,
    /// Batch, lengths, parallelism.
    pub settings: Vec<Setting>,
}

/// A positive number of a run's benchmark JSON.
pub(super) fn number(run: &Value, group: &str, field: &str) -> Option<f64> {
    run.get(group).and_then(|group| group.get(field)).and_then(Value::as_f64).filter(|value| *value > 0.0)
}

impl Plan {
    /// A setting's configured value.
    #[must_use]
    pub fn setting(&self, group: &str, field: &str) -> Option<f64> {
        self.settings.iter().find(|setting| setting.group == group && setting.field == field).map(|one| one.value)
    }

    /// Where the run is not what was configured, each in words.
    #[must_use]
    pub fn differences(&self, run: &Value) -> Vec<String> {
        let mut out = Vec::new();
        for Setting { group, field, value } in &self.settings {
            if let Some(ran) = number(run, group, field).filter(|ran| ran != value) {
                out.push(format!("ran {field} {}, but {} says {}", shown(ran), self.file, shown(*value)));
            }
        }
        let ran = run.get("gpu_info").and_then(|info| info.get("precision")).and_then(Value::as_str);
        if let (Some(ran), Some(planned)) = (ran, &self.precision)
            && !ran.to_lowercase().starts_with(planned.as_str())
        {
            out.push(format!("ran precision {ran}, but {} says {planned}", self.file));
        }
        out
    }
}

fn shown(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { significant(value, 5) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_name_what_ran_and_what_was_configured() {
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
        let expected =
            ["ran global_batch_size 64, but config.yaml says 128", "ran precision BF16, but config.yaml says fp8"];
        assert_eq!(plan.differences(&run), expected);
        assert!(plan.differences(&json!({})).is_empty(), "what a file does not say cannot differ");
    }
}
