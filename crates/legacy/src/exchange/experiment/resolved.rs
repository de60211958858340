//! All values of an experiment with their origins: those of the document, and those derived from them.

use super::{Experiment, ValueOrigin};
use crate::exchange::tree::number;
use atlas_catalog::Catalog;
use atlas_document::node::Position;
use atlas_document::{Node, Value};

/// A value with its path and origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Path in the document, such as `training.data.seq_length`, split into keys.
    pub path: Vec<String>,
    /// The value.
    pub value: Node,
    /// Origin of the value.
    pub from: ValueOrigin,
}

/// Default minimum learning rate as a fraction of the peak, as in the comparison tool.
pub(super) const MIN_LEARNING_RATE: f64 = 0.1;

impl Experiment {
    /// Returns all values. Derived values follow those of the same section.
    #[must_use]
    pub fn resolved(&self, catalog: &Catalog) -> Vec<Resolved> {
        let mut out = Vec::new();
        self.leaves(&mut Vec::new(), &self.root, &mut out);
        for (path, value, how) in self.derived(catalog) {
            let path: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
            // Inserted after the last value that shares the longest part of the path.
            let near = |resolved: &Resolved| resolved.path.iter().zip(&path).take_while(|(a, b)| a == b).count();
            let best = out.iter().map(near).max().unwrap_or_default();
            let at = out.iter().rposition(|resolved| near(resolved) == best).map_or(out.len(), |at| at + 1);
            out.insert(at, Resolved { path, value, from: ValueOrigin::Derived(how) });
        }
        out
    }

    fn leaves(&self, path: &mut Vec<String>, node: &Node, out: &mut Vec<Resolved>) {
        match &node.value {
            Value::Map(entries) if !entries.is_empty() => {
                for entry in entries {
                    path.push(entry.key.to_string());
                    self.leaves(path, &entry.value, out);
                    path.pop();
                }
            }
            _ => {
                let written = self.from.get(&path.join(".")).cloned();
                let from = written.unwrap_or(ValueOrigin::Written(node.at));
                out.push(Resolved { path: path.clone(), value: node.clone(), from });
            }
        }
    }

    /// Returns values that the document does not state but that follow from it: path, value and how it is derived.
    fn derived(&self, catalog: &Catalog) -> Vec<(Vec<&str>, Node, String)> {
        let mut out: Vec<(Vec<&str>, Node, String)> = Vec::new();
        let plain = |value: f64| number(value, Position::default());
        let text = |value: String| Node::synthetic(Value::Text(value.into()));
        if self.at(&["experiment", "methodology"]).is_none() {
            let method = self.methodology.name().replace('-', "_");
            out.push((vec!["experiment", "methodology"], text(method), "default of the comparison tool".to_owned()));
        }
        for platform in &self.platforms {
            let of = |key| vec!["hardware", "platforms", platform.key.as_str(), key];
            if self.at(&of("num_nodes")).is_none() {
                let how = if self.at(&of("gpus_per_node")).is_some() {
                    "num_gpus / gpus_per_node"
                } else if platform.nodes > 1.0 {
                    "nodes of eight GPUs"
                } else {
                    "one node"
                };
                out.push((of("num_nodes"), plain(platform.nodes), how.to_owned()));
            }
            if let Some(sheet) = Experiment::accelerator(platform, catalog) {
                out.push((of("accelerator"), text(sheet.id.clone()), "from the catalog, by gpu_model".to_owned()));
                if platform.memory_gb.is_none() {
                    out.push((of("memory_per_gpu_gb"), plain(sheet.memory.gb), format!("catalog {}", sheet.id)));
                }
            }
        }
        for model in &self.models {
            if let Some(known) = Experiment::known(model, catalog) {
                let of = |key| vec!["models", model.key.as_str(), key];
                out.push((of("model"), text(known.id.clone()), "from the catalog, by name".to_owned()));
                if model.parameters.is_none() {
                    out.push((of("num_parameters"), plain(known.parameters()), format!("catalog {}", known.id)));
                }
            }
        }
        let training = &self.training;
        let (steps, iterations) = (["training", "duration", "max_steps"], ["training", "duration", "train_iters"]);
        if let Some(known) = training.steps {
            for (own, other, named) in [(steps, iterations, "train_iters"), (iterations, steps, "max_steps")] {
                if self.at(&own).is_none() && self.at(&other).is_some() {
                    out.push((own.to_vec(), plain(known), format!("= {named}")));
                }
            }
        }
        if let Some(rate) = training.learning_rate
            && self.at(&["training", "optimizer", "min_learning_rate"]).is_none()
        {
            let path = vec!["training", "optimizer", "min_learning_rate"];
            out.push((path, plain(tidy(rate * MIN_LEARNING_RATE)), "learning_rate / 10".to_owned()));
        }
        for layout in self.layouts.iter().filter(|layout| layout.accumulation.is_none()) {
            let (Some(global), Some(micro)) = (training.global, training.micro) else { continue };
            let path = ["parallelism", &layout.written, &layout.model, &layout.platform, "gradient_accumulation_steps"];
            let how = "global_batch_size / (micro_batch_size x DP)".to_owned();
            out.push((path.to_vec(), plain(global / (micro * layout.dp)), how));
        }
        out
    }
}

/// Rounds to 15 significant digits, to remove the rounding errors of a multiplication.
pub(super) fn tidy(value: f64) -> f64 {
    format!("{value:.14e}").parse().unwrap_or(value)
}
