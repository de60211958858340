//! Settings of a run, each with its origin.

use std::collections::BTreeMap;

use atlas_core::field::Knob;
use serde_json::Value;

use super::facts::number_to_json;

/// Origin of a setting. Later variants take precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// From the workload that the user named. Only used for settings that nothing else states.
    Workload,
    /// Taken from the file name.
    FileName,
    /// Derived from other values, as described by the text.
    Derived(&'static str),
    /// Stated in the file.
    File,
    /// Given by the user.
    User,
}

impl Origin {
    /// Describes the origin in words.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Origin::FileName => "file name",
            Origin::Derived(how) => how,
            Origin::File => "log",
            Origin::Workload => "workload",
            Origin::User => "--set",
        }
    }
}

/// A setting that logs and users state.
#[derive(Debug, Clone, Copy)]
pub struct SettingSpec {
    /// Name in logs, results and `--set`.
    pub name: &'static str,
    /// Its meaning.
    pub help: &'static str,
    /// Corresponding knob, of which all names are accepted.
    knob: Option<Knob>,
}

const fn other(name: &'static str, help: &'static str) -> SettingSpec {
    SettingSpec { name, help, knob: None }
}

const fn field(name: &'static str, knob: Knob) -> SettingSpec {
    SettingSpec { name, help: knob.spec().help, knob: Some(knob) }
}

/// All settings.
pub const SETTINGS: [SettingSpec; 28] = [
    other("num_gpus", "accelerators in the run"),
    other("gpus_per_node", "accelerators per node"),
    field("global_batch_size", Knob::Global),
    field("micro_batch_size", Knob::Microbatch),
    other("gradient_accumulation_steps", "micro-batches per step"),
    field("seq_len", Knob::Prompt),
    field("tensor_parallel", Knob::Tp),
    field("pipeline_parallel", Knob::Pp),
    field("virtual_pipeline_parallel", Knob::Vpp),
    field("context_parallel", Knob::Cp),
    field("expert_parallel", Knob::Ep),
    field("data_parallel", Knob::Dp),
    field("sequence_parallel", Knob::Sp),
    other("zero_stage", "ZeRO stage"),
    other("num_layers", "layers of the model"),
    other("hidden_size", "hidden size of the model"),
    other("num_attention_heads", "attention heads of the model"),
    other("vocab_size", "vocabulary size of the model"),
    other("parameters_billion", "parameters of the model, 1e9"),
    field("precision", Knob::Precision),
    other("model", "name of the model"),
    other("device", "name of the accelerator"),
    other("device_memory_gb", "memory of one accelerator, GB"),
    other("gpu_cores", "cores of one accelerator, as counted by the vendor"),
    other("software_stack", "cuda or rocm"),
    other("software_version", "release of CUDA or ROCm"),
    other("pytorch_version", "release of PyTorch"),
    other("total_steps", "steps planned"),
];

/// Finds a setting by its name, or by a name of its knob.
#[must_use]
pub fn find(name: &str) -> Option<&'static SettingSpec> {
    let of_knob = || Knob::find(name).and_then(|knob| SETTINGS.iter().find(|setting| setting.knob == Some(knob)));
    SETTINGS.iter().find(|setting| setting.name == name).or_else(of_knob)
}

/// A setting stated by a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Name in [`SETTINGS`].
    pub name: &'static str,
    /// Value.
    pub value: Value,
    /// Origin.
    pub origin: Origin,
    /// Number of the line.
    pub line: u64,
}

/// Settings, each with its origin. A setting is only replaced by one of higher precedence; of equal ones the first is
/// kept.
#[derive(Debug, Clone, Default)]
pub struct Config(BTreeMap<&'static str, (Value, Origin)>);

impl Config {
    /// Adds a setting, unless the value is null or a setting of equal or higher precedence exists.
    pub fn note(&mut self, name: &'static str, value: impl Into<Value>, origin: Origin) {
        let value = value.into();
        if value.is_null() || self.0.get(name).is_some_and(|(_, known)| *known >= origin) {
            return;
        }
        self.0.insert(name, (value, origin));
    }

    /// Adds a number if it is finite. Whole numbers are stored as integers.
    pub fn number(&mut self, name: &'static str, value: Option<f64>, origin: Origin) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.note(name, number_to_json(value), origin);
        }
    }

    /// Whether both the setting and `value` are known, and they differ.
    #[must_use]
    pub fn differs(&self, name: &str, value: Option<f64>) -> bool {
        matches!((self.get(name), value), (Some(known), Some(value)) if known != value)
    }

    /// A setting as a number.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.0.as_f64()
    }

    /// A setting as text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.0.as_str()
    }

    /// A setting as JSON.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name).map(|(value, _)| value)
    }

    /// Iterates over all settings.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value, Origin)> {
        self.0.iter().map(|(name, (value, origin))| (*name, value, *origin))
    }

    /// Adds the settings of `other`, by the same precedence as [`Config::note`].
    pub fn merge(&mut self, other: &Config) {
        for (name, value, origin) in other.iter() {
            self.note(name, value.clone(), origin);
        }
    }

    /// Derives missing settings from known ones: number of GPUs, degrees of parallelism, batch sizes.
    pub fn complete(&mut self) {
        let get = |config: &Config, name| config.get(name).filter(|value| *value > 0.0);
        let model = ["tensor_parallel", "pipeline_parallel", "context_parallel"].map(|name| get(self, name));
        let [tp, pp, cp] = model;
        if let (Some(tp), Some(pp)) = (tp, pp) {
            let shards = tp * pp * cp.unwrap_or(1.0);
            if let Some(dp) = get(self, "data_parallel") {
                self.number("num_gpus", Some(shards * dp), Origin::Derived("TP x PP x CP x DP"));
            } else if let Some(gpus) = get(self, "num_gpus").filter(|gpus| gpus % shards == 0.0) {
                self.number("data_parallel", Some(gpus / shards), Origin::Derived("GPUs / (TP x PP x CP)"));
            }
        }
        let (mbs, ga, dp) =
            (get(self, "micro_batch_size"), get(self, "gradient_accumulation_steps"), get(self, "data_parallel"));
        if let (Some(mbs), Some(dp)) = (mbs, dp) {
            if let Some(ga) = ga {
                self.number("global_batch_size", Some(mbs * ga * dp), Origin::Derived("MBS x GA x DP"));
            } else if let Some(gbs) = get(self, "global_batch_size").filter(|gbs| gbs % (mbs * dp) == 0.0) {
                let how = Origin::Derived("GBS / (MBS x DP)");
                self.number("gradient_accumulation_steps", Some(gbs / (mbs * dp)), how);
            }
        }
    }
}
