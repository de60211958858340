//! Configuration files of simulations: those of the predecessor simulator, unchanged, and ours. Both accept options
//! under `simulate:`.
//!
//! ```yaml
//! target: h100-sxm-64            # or the predecessor simulator's hardware, model, training and network
//! workload: llama3.1-70b-train
//! set: { pp: 2 }
//! simulate: { steps: 20, slow_nodes: 1, replications: 5 }
//! ```

use std::sync::Arc;

use serde::Serialize;

use super::fields::{as_mapping, named, plain, settings};
use super::jobs;
use super::options::Options;
use atlas_config::library::Library;
use atlas_document::decode::Fields;
use atlas_document::{Diagnostic, Diagnostics, Node, Severity, parse};
use atlas_legacy::simulator::Predecessor;

/// What to simulate.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// Configuration of the predecessor simulator.
    Predecessor(Box<Predecessor>),
    /// Target and workload of the files in effect.
    Scenario(Pair),
    /// Several jobs on one cluster.
    Jobs(Box<jobs::Config>),
}

/// Names of a target and a workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// Name of the target.
    pub target: String,
    /// Name of the workload.
    pub workload: String,
    /// Changed knobs, `knob=value`.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_mapping")]
    pub set: Vec<String>,
}

/// Configuration of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What to simulate.
    pub subject: Subject,
    /// Simulation options.
    pub options: Options,
}

impl Config {
    /// Reads a configuration. Problems are added to `diagnostics`; returns `None` if one of them is an error. Names
    /// refer to the files in effect.
    #[must_use]
    pub fn read(file: &Arc<str>, text: &str, library: &Library, diagnostics: &mut Diagnostics) -> Option<Config> {
        let before = diagnostics.errors();
        let node = parse::parse(file, text, diagnostics)?;
        let mut fields = Fields::open(file, "", &node, diagnostics)?;
        let mut options = Options::default();
        if let Some(block) = fields.node("simulate") {
            options = read_options(file, block, fields.diagnostics());
        }
        let has = |key: &str| node.get(key).is_some();
        let subject = if has("jobs") {
            jobs::Config::decode(&mut fields, library).map(|jobs| Subject::Jobs(Box::new(jobs)))
        } else if has("target") || has("workload") {
            pair(&mut fields, library).map(Subject::Scenario)
        } else {
            let sections = ["hardware", "model", "training", "network"];
            if !sections.iter().any(|key| has(key)) {
                let help =
                    "add target and workload, or hardware, model, training and network as in the predecessor simulator";
                fields.error("", "found nothing to simulate", Some(help.to_owned()));
            }
            Some(Subject::Predecessor(Box::new(Predecessor::decode(&mut fields, library.catalog()))))
        };
        fields.finish();
        let subject = subject?;
        (diagnostics.errors() == before).then_some(Config { subject, options })
    }

    /// Serializes the configuration as an equivalent file.
    ///
    /// # Errors
    ///
    /// Errors of the YAML serializer, which no configuration causes.
    pub fn yaml(&self) -> Result<String, serde_yaml::Error> {
        let mut text = match &self.subject {
            Subject::Predecessor(predecessor) => serde_yaml::to_string(predecessor)?,
            Subject::Scenario(pair) => serde_yaml::to_string(pair)?,
            Subject::Jobs(jobs) => serde_yaml::to_string(jobs)?,
        };
        if !self.options.is_empty() {
            #[derive(Serialize)]
            struct Block<'o> {
                simulate: &'o Options,
            }
            text += &serde_yaml::to_string(&Block { simulate: &self.options })?;
        }
        Ok(text)
    }
}

fn pair(fields: &mut Fields<'_>, library: &Library) -> Option<Pair> {
    let target = fields.required_text("target");
    let workload = fields.required_text("workload");
    named(fields, "target", target.as_deref(), |name| library.target(name).err());
    named(fields, "workload", workload.as_deref(), |name| library.workload(name).err());
    let set = settings(fields);
    Some(Pair { target: target?, workload: workload?, set })
}

fn read_options(file: &Arc<str>, block: &Node, diagnostics: &mut Diagnostics) -> Options {
    let mut options = Options::default();
    let mut complain = |at, path: String, message| {
        diagnostics.push(Diagnostic {
            severity: Severity::Error,
            file: Arc::clone(file),
            at,
            path,
            message,
            help: None,
        });
    };
    let Some(entries) = block.entries() else {
        complain(block.at, "simulate".to_owned(), format!("found {}, expected a mapping", block.describe()));
        return options;
    };
    for entry in entries.iter().filter(|entry| !entry.value.is_null()) {
        match Options::read(&entry.key, &plain(&entry.value)) {
            Ok(one) => options = one.or(options),
            Err(message) => {
                let at = if Options::is_name(&entry.key) { entry.value.at } else { entry.key_at };
                complain(at, format!("simulate.{}", entry.key), message);
            }
        }
    }
    options
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::testing;

    fn read(text: &str) -> (Option<Config>, Vec<String>) {
        let mut diagnostics = Diagnostics::new();
        let config = Config::read(&"c.yaml".into(), text, &testing::LIBRARY, &mut diagnostics);
        (config, diagnostics.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn simulation_config_yaml_round_trips() {
        for text in [
            "name: x\nhardware: {gpu_model: H100}\ntraining: {num_nodes: 2, communication_pattern: alltoall}\n",
            "target: h100-sxm-8\nworkload: llama3.1-8b-train\nset: {tp: 4, overlap: off}\nsimulate: {steps: 3, arrivals: 'gamma:2', mtbf: 50000h}\n",
            "scheduler: backfill\ncluster: {accelerators: 64}\njobs: [{name: a, accelerators: 8, seconds: 60}]\n",
        ] {
            let (config, complaints) = read(text);
            let config = config.unwrap_or_else(|| panic!("{complaints:?}"));
            let again = config.yaml().unwrap();
            let (same, complaints) = read(&again);
            assert!(complaints.is_empty(), "{complaints:?}\n{again}");
            assert_eq!(same.unwrap(), config, "{again}");
        }
    }

    #[test]
    fn config_reports_all_errors_at_once_with_positions() {
        let text = "hardware: {gpu_model: A100, memory_gb: lots}\ntraining:\n  num_nodes: 0\n  communication_pattern: rings\n\
                    network: {topology_type: star}\nsimulate:\n  stepps: 3\n  jitter: -1\n";
        let (config, complaints) = read(text);
        assert!(config.is_none());
        assert_eq!(complaints.len(), 6, "{complaints:#?}");
        assert!(complaints.iter().any(|c| c.starts_with("c.yaml:3:14: error: training.num_nodes: found 0")));
        assert!(complaints.iter().any(|c| c.starts_with("c.yaml:7:3: error: simulate.stepps") && c.contains("steps")));
        let (config, complaints) = read("target: nowhere\nworkload: nothing\n");
        assert!(config.is_none());
        assert!(
            complaints.iter().any(|c| c.starts_with("c.yaml:1:9: error: target: no target `nowhere`")),
            "{complaints:?}"
        );
        assert!(complaints.iter().any(|c| c.starts_with("c.yaml:2:11: error: workload")), "{complaints:?}");
        let (config, complaints) = read("model: {model_type: resnot}\n");
        assert!(config.is_none() && complaints.iter().any(|c| c.starts_with("c.yaml:1:21")), "{complaints:?}");
        let (config, complaints) = read("nothing: here\n");
        assert!(config.is_none() && complaints.iter().any(|c| c.contains("nothing to simulate")), "{complaints:?}");
    }

    #[test]
    fn example_config_of_the_predecessor_is_parsed() {
        let text = "name: \"my_experiment\"\ndescription: \"Large-scale LLM training\"\n\nhardware:\n  gpu_model: \"H100\"\n  \
                    compute_tflops: 989.0\n  memory_gb: 80.0\n  network_bandwidth_gbps: 200.0\n  num_gpus_per_node: 8\n\nmodel:\n  \
                    model_type: \"transformer\"\n  num_layers: 48\n  hidden_size: 2048\n  num_attention_heads: 32\n  sequence_length: \
                    2048\n\ntraining:\n  batch_size_per_gpu: 4\n  num_iterations: 100\n  num_nodes: 16\n  communication_pattern: \
                    \"ring_allreduce\"\n  mixed_precision: true\n\nnetwork:\n  topology_type: \"torus_2d\"\n  base_latency_us: 5.0\n";
        let (config, complaints) = read(text);
        let Some(Config { subject: Subject::Predecessor(predecessor), .. }) = config else { panic!("{complaints:?}") };
        assert!(complaints.is_empty(), "{complaints:?}");
        assert_eq!((predecessor.accelerators(), predecessor.name.as_str()), (128.0, "my_experiment"));
    }
}
