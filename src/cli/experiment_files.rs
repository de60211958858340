//! Configuration of an experiment: the files it names, and the settings of each run.

use std::path::{Path, PathBuf};

use color_eyre::eyre::eyre;
use serde_json::Value;

use super::args::Globals;
use super::config;
use atlas_catalog::Catalog;
use atlas_core::plan::Methodology;
use atlas_document::Node;
use atlas_legacy::exchange::experiment::{Expected, Experiment, Model, Platform};
use atlas_report::measured::plan::{Plan, Setting};

/// The configuration in effect.
pub(super) struct ActiveConfiguration {
    experiment: Experiment,
    catalog: Catalog,
    methodology: Methodology,
    path: PathBuf,
}

impl ActiveConfiguration {
    /// Reads the configuration given on the command line, or the default one.
    pub(super) fn read(globals: &Globals, methodology: Methodology) -> color_eyre::Result<ActiveConfiguration> {
        let path = config::file(None, globals)?;
        let (experiment, catalog, _) = config::read(&path, globals)?;
        Ok(ActiveConfiguration { experiment, catalog, methodology, path })
    }

    fn base(&self) -> &Path {
        self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// Existing logs of all models or of `model`, as named by the configuration and environment variables.
    pub(super) fn logs(&self, model: Option<&str>) -> color_eyre::Result<Vec<PathBuf>> {
        let logs = self.experiment.logs(self.base(), &|name| std::env::var(name).ok());
        self.existing_files(logs, model)
    }

    /// Existing benchmark JSON of all models or of `model`; if there is none, the logs.
    pub(super) fn measured(&self, model: Option<&str>) -> color_eyre::Result<Vec<PathBuf>> {
        self.existing_files(self.experiment.benchmarks(self.base()), model)
            .or_else(|problem| self.logs(model).map_err(|_| problem))
    }

    /// Filters files that exist. A file named by an environment variable is kept even if it is missing, so that it is
    /// reported.
    fn existing_files(&self, expected: Vec<Expected>, model: Option<&str>) -> color_eyre::Result<Vec<PathBuf>> {
        let wanted: Vec<Expected> =
            expected.into_iter().filter(|file| model.is_none_or(|model| model == file.model)).collect();
        let named = |file: &&Expected| file.variable.is_some() || file.path.is_file();
        let there: Vec<PathBuf> = wanted.iter().filter(named).map(|file| file.path.clone()).collect();
        if there.is_empty() {
            let names: Vec<String> = wanted.iter().map(|file| file.path.display().to_string()).collect();
            let path = self.path.display();
            return Err(eyre!("none of the files named in {path} exists: {}; name files", names.join(", ")));
        }
        Ok(there)
    }

    /// Settings of a run.
    pub(super) fn plan(&self, name: &str, run: &Value, workload: Option<&str>) -> Plan {
        let platform = self.platform(run);
        let model = self.model(name, run, workload);
        let known = model.and_then(|model| Experiment::known(model, &self.catalog));
        let training = &self.experiment.training;
        let mut settings = Vec::new();
        let mut add = |group, field, value: Option<f64>| {
            settings.extend(value.map(|value| Setting { group, field, value }));
        };
        add("training_config", "global_batch_size", training.global);
        add("training_config", "micro_batch_size", training.micro);
        add("training_config", "sequence_length", training.sequence);
        add("training_config", "max_steps", training.steps);
        add("training_config", "num_gpus", platform.map(|platform| platform.gpus));
        let layout = platform
            .zip(model)
            .and_then(|(platform, model)| self.experiment.layout(self.methodology, &model.key, &platform.key));
        if let Some(layout) = layout {
            add("parallelism_config", "tensor_model_parallel_size", Some(layout.tp));
            add("parallelism_config", "pipeline_model_parallel_size", Some(layout.pp));
            add("parallelism_config", "data_parallel_size", Some(layout.dp));
        }
        let precision = platform.and_then(|platform| self.experiment.precision(self.methodology, platform));
        let tdp = platform.and_then(|platform| platform.specs.as_ref()?.get("tdp_watts").and_then(Node::number));
        Plan {
            file: self.path.display().to_string(),
            usd_per_gpu_hour: platform.and_then(|platform| platform.usd_per_gpu_hour).map(|(usd, _)| usd),
            tdp_w: tdp,
            parameters: model.and_then(|model| model.parameters),
            model: known.map(|known| known.id.clone()),
            precision: precision.map(|(format, _)| format.name().to_owned()),
            settings,
        }
    }

    /// Platform of a run: by its accelerator, else by its software stack or vendor name.
    fn platform(&self, run: &Value) -> Option<&Platform> {
        let info = |field: &str| run.get("gpu_info").and_then(|info| info.get(field));
        let platforms = &self.experiment.platforms;
        let memory = info("total_memory_gb").and_then(Value::as_f64);
        let sheet = info("device_name").and_then(Value::as_str);
        if let Some(sheet) = sheet.and_then(|device| self.catalog.find_accelerator_by_description(device, memory)) {
            let same = |platform: &&Platform| {
                Experiment::accelerator(platform, &self.catalog).is_some_and(|own| own.id == sheet.id)
            };
            return platforms.iter().find(same);
        }
        let stack = info("software_stack").and_then(Value::as_str);
        let maker = match run.get("platform").and_then(Value::as_str) {
            Some("nvd") => Some("nvidia"),
            other => other,
        };
        platforms.iter().find(|platform| {
            platform.stack.as_deref().is_some_and(|own| Some(own) == stack) || Some(platform.key.as_str()) == maker
        })
    }

    /// Model of a run: the requested one, else by the name in the file, else by the file name.
    fn model(&self, name: &str, run: &Value, workload: Option<&str>) -> Option<&Model> {
        let models = &self.experiment.models;
        if let Some(key) = workload {
            return models.iter().find(|model| model.key == key);
        }
        let stated = run.get("model_info").and_then(|info| info.get("name")).and_then(Value::as_str);
        let stated = stated.and_then(|name| self.catalog.model(name).ok());
        if let Some(stated) = stated {
            return models
                .iter()
                .find(|model| Experiment::known(model, &self.catalog).is_some_and(|own| own.id == stated.id));
        }
        let stem = Path::new(name).file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let named = models.iter().filter(|model| stem.contains(&model.key.to_lowercase()));
        // The longest match, so that llama_70b is preferred over llama.
        let named = named.max_by_key(|model| model.key.len());
        named.or_else(|| models.first().filter(|_| models.len() == 1))
    }
}
