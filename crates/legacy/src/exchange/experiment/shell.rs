//! Export of an experiment as POSIX shell variables, for launch scripts to `eval`.
//!
//! The names start with `CONFIG_`. There are the short names that launch scripts use (`CONFIG_TRAIN_ITERS`,
//! `CONFIG_GLOBAL_BATCH_SIZE`), short names prefixed with a model, a platform or both (`CONFIG_LLAMA_AMD_TP`), and a
//! name for every value, made from its path (`CONFIG_TRAINING_DATA_SEQ_LENGTH`).

use super::document::{Model, Platform};
use super::layout::Layout;
use super::resolved::{MIN_LEARNING_RATE, tidy};
use super::{Experiment, Resolved};
use atlas_catalog::Catalog;
use atlas_core::plan::Format;
use atlas_document::suggestion::{clause, nearest};
use atlas_document::{Node, Value};

/// Model and platform whose values get the names without a prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Key of a model; the first by default.
    pub model: Option<String>,
    /// Key of a platform; the first by default.
    pub platform: Option<String>,
}

/// Error for a selected model or platform that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no {kind} `{found}`; expected one of {known}{}", clause(near.as_deref()))]
pub struct SelectionError {
    kind: &'static str,
    found: String,
    known: String,
    near: Option<String>,
}

fn pick<'a, T>(
    kind: &'static str,
    wanted: Option<&str>,
    all: &'a [T],
    key: fn(&T) -> &str,
) -> Result<Option<&'a T>, SelectionError> {
    let Some(wanted) = wanted else { return Ok(all.first()) };
    let found = all.iter().find(|one| key(one) == wanted);
    found.map(Some).ok_or_else(|| SelectionError {
        kind,
        found: wanted.to_owned(),
        known: all.iter().map(key).collect::<Vec<_>>().join(", "),
        near: nearest(wanted, all.iter().map(key)).map(str::to_owned),
    })
}

impl Experiment {
    /// Returns the names and values of all variables, short names first. If a name occurs more than once, the first
    /// value is kept.
    ///
    /// # Errors
    /// Returns an error if the selected model or platform is not in the document.
    pub fn variables(&self, selection: &Selection, catalog: &Catalog) -> Result<Vec<(String, String)>, SelectionError> {
        let model = pick("model", selection.model.as_deref(), &self.models, |model: &Model| &model.key)?;
        let platforms = &self.platforms;
        let platform = pick("platform", selection.platform.as_deref(), platforms, |platform: &Platform| &platform.key)?;
        let mut out = Variables::default();
        // The precision of the platform takes precedence over the general one.
        if let Some(platform) = platform {
            self.of_optimizations(&mut out, "", platform);
        }
        self.short(&mut out);
        if let Some(model) = model {
            self.of_model(&mut out, "", model);
        }
        if let Some(platform) = platform {
            self.of_platform(&mut out, "", platform);
        }
        if let (Some(model), Some(platform)) = (model, platform) {
            self.of_layout(&mut out, "", model, platform);
            out.text("BENCHMARK_FILE", &self.benchmark_name(platform, model));
        }
        for model in &self.models {
            self.of_model(&mut out, &format!("{}_", model.key), model);
        }
        for platform in platforms {
            self.of_platform(&mut out, &format!("{}_", platform.key), platform);
            self.of_optimizations(&mut out, &format!("{}_", platform.key), platform);
            for model in &self.models {
                let prefix = format!("{}_{}_", model.key, platform.key);
                self.of_layout(&mut out, &prefix, model, platform);
                out.text(&format!("{prefix}BENCHMARK_FILE"), &self.benchmark_name(platform, model));
            }
        }
        for Resolved { path, value, .. } in self.resolved(catalog) {
            out.put(&path.join("_"), &value);
        }
        Ok(out.all)
    }

    fn short(&self, out: &mut Variables) {
        let of = |path: &[&str]| self.at(path);
        for (name, path) in [
            ("EXPERIMENT_NAME", ["experiment", "name", ""]),
            ("GLOBAL_BATCH_SIZE", ["training", "data", "global_batch_size"]),
            ("MICRO_BATCH_SIZE", ["training", "data", "micro_batch_size"]),
            ("SEQ_LENGTH", ["training", "data", "seq_length"]),
            ("OPTIMIZER", ["training", "optimizer", "type"]),
            ("LEARNING_RATE", ["training", "optimizer", "learning_rate"]),
            ("MIN_LEARNING_RATE", ["training", "optimizer", "min_learning_rate"]),
            ("WARMUP_STEPS", ["training", "optimizer", "warmup_steps"]),
            ("WEIGHT_DECAY", ["training", "optimizer", "weight_decay"]),
            ("BETA1", ["training", "optimizer", "beta1"]),
            ("BETA2", ["training", "optimizer", "beta2"]),
            ("OUTPUT_DIR", ["benchmarking", "output", "directory"]),
            ("PRIMUS_PATH", ["paths", "primus", "installation"]),
        ] {
            let path: Vec<&str> = path.into_iter().filter(|part| !part.is_empty()).collect();
            if let Some(value) = of(&path) {
                out.put(name, value);
            }
        }
        out.text("METHODOLOGY", &self.methodology.name().replace('-', "_"));
        if let Some(steps) = self.training.steps {
            out.number("TRAIN_ITERS", steps);
            out.number("MAX_STEPS", steps);
        }
        if let Some(rate) = self.training.learning_rate {
            out.number("MIN_LEARNING_RATE", tidy(rate * MIN_LEARNING_RATE));
        }
    }

    fn of_model(&self, out: &mut Variables, prefix: &str, model: &Model) {
        let named = [("MODEL", "name"), ("PRIMUS_CONFIG", "primus_config"), ("NEMO_RECIPE", "nemo_recipe")];
        for (name, key) in named.into_iter().chain([("NUM_PARAMETERS", "num_parameters")]) {
            if let Some(value) = self.at(&["models", &model.key, key]) {
                out.put(&format!("{prefix}{name}"), value);
            }
        }
        out.text(&format!("{prefix}LOG_FILE"), &self.log_name(model));
    }

    /// Adds the platform's optimizations under the selected methodology.
    fn of_optimizations(&self, out: &mut Variables, prefix: &str, platform: &Platform) {
        let Some((precision, _)) = self.precision(self.methodology, platform) else { return };
        out.text(&format!("{prefix}PRECISION"), precision.name());
        out.text(&format!("{prefix}FP8"), if precision == Format::Fp8 { "true" } else { "false" });
        if let Some((on, _)) = self.checkpointing(self.methodology, platform) {
            out.text(&format!("{prefix}ACTIVATION_CHECKPOINTING"), if on { "true" } else { "false" });
        }
    }

    fn of_platform(&self, out: &mut Variables, prefix: &str, platform: &Platform) {
        out.number(&format!("{prefix}NUM_GPUS"), platform.gpus);
        out.number(&format!("{prefix}NUM_NODES"), platform.nodes);
        out.number(&format!("{prefix}GPUS_PER_NODE"), platform.gpus / platform.nodes);
        out.text(&format!("{prefix}GPU_MODEL"), &platform.gpu_model);
        for (name, value) in [("SOFTWARE_STACK", &platform.stack), ("FRAMEWORK", &platform.framework)] {
            if let Some(value) = value {
                out.text(&format!("{prefix}{name}"), value);
            }
        }
    }

    fn of_layout(&self, out: &mut Variables, prefix: &str, model: &Model, platform: &Platform) {
        let Some(layout) = self.layout(self.methodology, &model.key, &platform.key) else { return };
        let Layout { tp, pp, dp, .. } = *layout;
        let (global, micro) = (self.training.global, self.training.micro);
        let accumulation = layout.accumulation.or_else(|| Some(global? / (micro? * dp)));
        for (long, short, value) in [
            ("TENSOR_MODEL_PARALLEL_SIZE", "TP", Some(tp)),
            ("PIPELINE_MODEL_PARALLEL_SIZE", "PP", Some(pp)),
            ("DATA_PARALLEL_SIZE", "DP", Some(dp)),
            ("CONTEXT_PARALLEL_SIZE", "CP", layout.cp),
            ("EXPERT_MODEL_PARALLEL_SIZE", "EP", layout.ep),
            ("GRADIENT_ACCUMULATION_STEPS", "GA", accumulation),
        ] {
            if let Some(value) = value {
                out.number(&format!("{prefix}{short}"), value);
                out.number(&format!("{prefix}{long}"), value);
            }
        }
    }
}

#[derive(Default)]
struct Variables {
    all: Vec<(String, String)>,
}

impl Variables {
    fn text(&mut self, name: &str, value: &str) {
        let mut spelt = String::from("CONFIG_");
        spelt.extend(name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }));
        if self.all.iter().all(|(known, _)| *known != spelt) {
            self.all.push((spelt, value.to_owned()));
        }
    }

    fn number(&mut self, name: &str, value: f64) {
        self.text(name, &value.to_string());
    }

    fn put(&mut self, name: &str, node: &Node) {
        let word = |node: &Node| match &node.value {
            Value::Null => String::new(),
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Float(value) => value.to_string(),
            Value::Text(value) => value.to_string(),
            Value::List(_) | Value::Map(_) => String::new(),
        };
        match node.items() {
            Some(items) => self.text(name, &items.iter().map(word).collect::<Vec<_>>().join(" ")),
            None => self.text(name, &word(node)),
        }
    }
}
