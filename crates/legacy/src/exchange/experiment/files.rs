//! Paths of the files that the runs of an experiment write.

use std::path::{Path, PathBuf};

use super::document::{Model, Platform};
use super::{Experiment, Variable};
use atlas_document::Node;

/// A file that a run writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Key of the model.
    pub model: String,
    /// Key of the platform; `None` for logs, whose names do not contain it.
    pub platform: Option<String>,
    /// Expected path.
    pub path: PathBuf,
    /// The environment variable that the path is from, if any.
    pub variable: Option<String>,
}

impl Experiment {
    fn output(&self, key: &str) -> Option<&str> {
        self.at(&["benchmarking", "output", key]).and_then(Node::text)
    }

    /// Returns `benchmarking.output.directory`, by default `./output`.
    #[must_use]
    pub fn output_directory(&self) -> PathBuf {
        PathBuf::from(self.output("directory").unwrap_or("./output"))
    }

    /// Returns the file name of a model's training log, such as `training_llama.log`.
    #[must_use]
    pub fn log_name(&self, model: &Model) -> String {
        self.output("log_format").unwrap_or("training_{model}.log").replace("{model}", &model.key)
    }

    /// Returns the file name of the benchmark JSON of a model on a platform, such as `benchmark_cuda_llama.json`.
    #[must_use]
    pub fn benchmark_name(&self, platform: &Platform, model: &Model) -> String {
        let format = self.output("filename_format").unwrap_or("benchmark_{software_stack}_{model}.json");
        let stack = platform.stack.as_deref().unwrap_or(&platform.key);
        format.replace("{software_stack}", stack).replace("{platform}", &platform.key).replace("{model}", &model.key)
    }

    /// Returns the log of each model: the path in an environment variable such as `LLAMA_LOG`, otherwise a file of the
    /// configured name in the output directory, in `base` or in the current directory. `base` is the directory of the
    /// document.
    #[must_use]
    pub fn logs(&self, base: &Path, variable: Variable<'_>) -> Vec<Expected> {
        let log = |model: &Model| {
            let name: String = model
                .key
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
                .collect();
            let name = format!("{name}_LOG");
            let named = variable(&name).filter(|path| !path.trim().is_empty());
            let path = match &named {
                Some(path) => PathBuf::from(path.trim()),
                None => self.existing_path(base, &self.log_name(model)),
            };
            Expected { model: model.key.clone(), platform: None, path, variable: named.map(|_| name) }
        };
        self.models.iter().map(log).collect()
    }

    /// Returns the benchmark JSON of every model on every platform. `base` is the directory of the document.
    #[must_use]
    pub fn benchmarks(&self, base: &Path) -> Vec<Expected> {
        let pairs = self.models.iter().flat_map(|model| self.platforms.iter().map(move |platform| (model, platform)));
        let expected = |(model, platform): (&Model, &Platform)| Expected {
            model: model.key.clone(),
            platform: Some(platform.key.clone()),
            path: self.existing_path(base, &self.benchmark_name(platform, model)),
            variable: None,
        };
        pairs.map(expected).collect()
    }

    /// Returns the path of the file `name` in the first directory that contains it, by default in the output directory
    /// below `base`.
    fn existing_path(&self, base: &Path, name: &str) -> PathBuf {
        let written = self.output_directory();
        let written = written.strip_prefix("./").unwrap_or(&written);
        let directory = base.join(written);
        let places = [directory.join(name), written.join(name), base.join(name), PathBuf::from(name)];
        places.iter().find(|place| place.is_file()).cloned().unwrap_or_else(|| directory.join(name))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use atlas_document::{Diagnostics, parse};

    const TEXT: &str = "experiment: {name: e}
hardware: {platforms: {nvidia: {gpu_model: H100, num_gpus: 8, software_stack: cuda}, amd: {gpu_model: MI300X, num_gpus: 8}}}
models: {llama: {name: llama3.1_8b}, qwen-2: {name: qwen2.5_7b}}
training: {data: {global_batch_size: 128, micro_batch_size: 1, seq_length: 2048}}
benchmarking: {output: {directory: ./results, filename_format: \"b_{software_stack}_{model}.json\"}}
";

    #[test]
    fn output_paths_follow_config_and_env_overrides_log_path() {
        let (file, mut problems) = ("c.yaml".into(), Diagnostics::new());
        let root = parse::parse(&file, TEXT, &mut problems).unwrap();
        let experiment = super::super::read(&file, &root, &|_| None, &mut problems);
        let base = Path::new("/nowhere");
        let benchmarks: Vec<PathBuf> = experiment.benchmarks(base).into_iter().map(|expected| expected.path).collect();
        let expected = ["b_cuda_llama.json", "b_amd_llama.json", "b_cuda_qwen-2.json", "b_amd_qwen-2.json"];
        assert_eq!(benchmarks, expected.map(|name| Path::new("/nowhere/results").join(name)));
        let logs = experiment.logs(base, &|name| (name == "QWEN_2_LOG").then(|| "/logs/q.log".to_owned()));
        let paths: Vec<&Path> = logs.iter().map(|log| log.path.as_path()).collect();
        assert_eq!(paths, [Path::new("/nowhere/results/training_llama.log"), Path::new("/logs/q.log")]);
        assert_eq!(logs.last().unwrap().variable.as_deref(), Some("QWEN_2_LOG"));
    }
}
