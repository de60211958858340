//! Models described layer by layer in a configuration.
//!
//! ```yaml
//! model:
//!   layers:
//!     - { name: conv1, forward_flops: 236e6, num_parameters: 9408, activation_memory_mb: 3.2 }
//!     - { name: fc, forward_flops: 4.1e6, backward_flops: 8.2e6, num_parameters: 2.05e6, activation_memory_mb: 0.008 }
//! ```
//!
//! FLOPs and activations are per sample; `training.batch_size_per_gpu` counts samples. Time, memory, gradients and cost
//! are derived from the sums over the list.

use serde::Serialize;

use super::{MAX_LAYERS, Model};
use atlas_catalog::datasheet::Sums;
use atlas_document::decode::{Bounds, Fields};

/// `model_type` of a model with a list of layers.
pub(super) const CUSTOM: &str = "custom";

/// Layer of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Layer {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Forward FLOPs per sample.
    pub forward_flops: f64,
    /// Backward FLOPs per sample; `None`: twice the forward FLOPs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backward_flops: Option<f64>,
    /// Number of parameters.
    pub num_parameters: f64,
    /// Activations per sample that the forward pass saves for the backward pass, MB.
    pub activation_memory_mb: f64,
}

/// Sums over layers. Activations have `width` bytes per element.
pub(super) fn sums(layers: &[Layer], width: f64) -> Sums {
    let sum = |of: fn(&Layer) -> f64| layers.iter().map(of).sum::<f64>();
    Sums {
        layers: sum(|_| 1.0),
        forward_flops: sum(|layer| layer.forward_flops),
        backward_flops: sum(|layer| layer.backward_flops.unwrap_or(2.0 * layer.forward_flops)),
        parameters: sum(|layer| layer.num_parameters),
        kept: sum(|layer| layer.activation_memory_mb) * 1e6 / width,
    }
}

/// Reads `layers`; `None` if the configuration has no such list.
pub(super) fn decode(fields: &mut Fields<'_>, usual: &Model) -> Option<Vec<Layer>> {
    let node = fields.node("layers")?;
    let max_layers = MAX_LAYERS as usize;
    let help = "write layers: [{forward_flops: 236e6, num_parameters: 9408, activation_memory_mb: 3.2}, …]";
    let Some(items) = node.items().filter(|items| (1..=max_layers).contains(&items.len())) else {
        let found =
            if node.items().is_some_and(<[_]>::is_empty) { "an empty list".to_owned() } else { node.describe() };
        let message = format!("found {found}, expected a list of 1 to {max_layers} layers");
        fields.error("layers", message, Some(help.to_owned()));
        return Some(Vec::new());
    };
    let file = fields.file().clone();
    let (flops, bounds) = (Bounds { max: 1e18, ..Bounds::POSITIVE }, Bounds { max: 1e15, ..Bounds::POSITIVE });
    let megabytes = Bounds { max: 1e9, ..Bounds::POSITIVE };
    let mut layers = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("model.layers[{index}]");
        let Some(mut f) = Fields::open(&file, path, item, fields.diagnostics()) else { continue };
        let name = f.text("name");
        let forward_flops = f.required_number("forward_flops", flops);
        let backward_flops = f.number("backward_flops", flops);
        let num_parameters = f.required_number("num_parameters", bounds);
        let activation_memory_mb = f.required_number("activation_memory_mb", megabytes);
        f.finish();
        if let (Some(forward_flops), Some(num_parameters), Some(activation_memory_mb)) =
            (forward_flops, num_parameters, activation_memory_mb)
        {
            layers.push(Layer { name, forward_flops, backward_flops, num_parameters, activation_memory_mb });
        }
    }
    if layers.len() == items.len() {
        whole(fields, &layers);
    }
    agree(fields, items.len() as f64, usual);
    Some(layers)
}

/// Reports sums that are too small for training.
fn whole(fields: &mut Fields<'_>, layers: &[Layer]) {
    let sums = sums(layers, 1.0);
    let needed = [("forward_flops", sums.forward_flops), ("num_parameters", sums.parameters)];
    for (name, sum) in needed.into_iter().filter(|(_, sum)| *sum < 1.0) {
        let message = format!("found {name} that sum to {sum}, expected at least 1");
        fields.error("layers", message, Some(format!("state {name} of the layers that have them")));
    }
}

/// Reports fields next to the list that contradict it, and warns of those that it replaces.
fn agree(fields: &mut Fields<'_>, count: f64, usual: &Model) {
    if let Some(stated) = fields.peek("num_layers").and_then(|node| node.number()).filter(|stated| *stated != count) {
        let message = format!("found {stated}, but layers lists {count}");
        fields.error("num_layers", message, Some("leave num_layers out".to_owned()));
    }
    let replaced = [
        ("hidden_size", usual.hidden_size),
        ("num_attention_heads", usual.num_attention_heads),
        ("sequence_length", usual.sequence_length),
        ("vocab_size", usual.vocab_size),
    ];
    for (key, value) in replaced {
        // A default value, which a serialized configuration contains for every model, is not reported.
        if fields.peek(key).and_then(|node| node.number()).is_some_and(|stated| stated != value) {
            fields.warn(key, "not used: layers describe the model", Some(format!("leave {key} out")));
        }
    }
}
