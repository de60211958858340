//! Decodes configurations of the predecessor simulator.

use atlas_catalog::Catalog;
use atlas_document::decode::{Bounds, Fields};

use super::{
    Hardware, MAX_LAYERS, Model, Network, PATTERNS, Pattern, Predecessor, TOPOLOGIES, Training, custom,
    hardware_from_catalog, known, layers, usual,
};

const POSITIVE: Bounds = Bounds { min: 1e-9, max: 1e9, whole: false };
const COUNT: Bounds = Bounds { max: 1e6, ..Bounds::COUNT };

impl Predecessor {
    /// Reads a configuration. Missing fields have the values of the small preset, as in the predecessor simulator.
    pub fn decode(fields: &mut Fields<'_>, catalog: &Catalog) -> Predecessor {
        let base = Predecessor::default();
        let hardware = fields.map("hardware", |fields| Hardware::decode(fields, &base.hardware, catalog));
        let model = fields.map("model", |fields| Model::decode(fields, &base.model, catalog));
        let training = fields.map("training", |fields| Training::decode(fields, &base.training));
        let network = fields.map("network", |fields| Network::decode(fields, &base.network));
        Predecessor {
            name: fields.text("name").unwrap_or_else(|| "experiment".to_owned()),
            description: fields.text("description").unwrap_or_default(),
            hardware: hardware.unwrap_or(base.hardware),
            model: model.unwrap_or(base.model),
            training: training.unwrap_or(base.training),
            network: network.unwrap_or(base.network),
            collect_detailed_stats: fields.boolean("collect_detailed_stats").unwrap_or(true),
            enable_visualization: fields.boolean("enable_visualization").unwrap_or(true),
            output_directory: fields.text("output_directory"),
        }
    }
}

impl Hardware {
    fn decode(f: &mut Fields<'_>, small: &Hardware, catalog: &Catalog) -> Hardware {
        let model = f.text("gpu_model").unwrap_or_else(|| small.gpu_model.clone());
        // A known accelerator provides its own default values.
        let memory_gb = f.number("memory_gb", POSITIVE);
        let usual =
            usual(&model).or_else(|| hardware_from_catalog(&model, memory_gb, catalog)).unwrap_or(small.clone());
        Hardware {
            compute_tflops: f.number("compute_tflops", POSITIVE).unwrap_or(usual.compute_tflops),
            memory_gb: memory_gb.unwrap_or(usual.memory_gb),
            network_bandwidth_gbps: f
                .number("network_bandwidth_gbps", POSITIVE)
                .unwrap_or(usual.network_bandwidth_gbps),
            num_gpus_per_node: f.number("num_gpus_per_node", COUNT).unwrap_or(usual.num_gpus_per_node),
            gpu_model: model,
        }
    }
}

impl Model {
    fn decode(f: &mut Fields<'_>, usual: &Model, catalog: &Catalog) -> Model {
        let flops = f.number("total_flops", Bounds::POSITIVE);
        if flops.is_some() {
            f.warn("total_flops", "ignored: FLOPs are computed from the operators", None);
        }
        let layers = layers::decode(f, usual);
        let unsaid = if layers.is_some() { layers::CUSTOM } else { &usual.model_type };
        let model_type = f.text("model_type").unwrap_or_else(|| unsaid.to_owned());
        match (&layers, model_type == layers::CUSTOM) {
            (Some(_), true) => {}
            (Some(_), false) => {
                let message = format!("found \"{model_type}\", but layers describe the model, expected custom");
                f.error("model_type", message, Some("remove model_type or layers".to_owned()));
            }
            (None, true) => {
                let help = "list layers, each with forward_flops, num_parameters and activation_memory_mb";
                f.error("model_type", "custom, but no layers are listed", Some(help.to_owned()));
            }
            (None, false) => {
                if let Err(message) = known(&model_type, catalog) {
                    f.error("model_type", message, None);
                }
            }
        }
        let layers = layers.unwrap_or_default();
        let count_unsaid = if layers.is_empty() { usual.num_layers } else { layers.len() as f64 };
        Model {
            model_type,
            num_layers: f.number("num_layers", Bounds { max: MAX_LAYERS, ..Bounds::COUNT }).unwrap_or(count_unsaid),
            hidden_size: f.number("hidden_size", COUNT).unwrap_or(usual.hidden_size),
            num_attention_heads: f.number("num_attention_heads", COUNT).unwrap_or(usual.num_attention_heads),
            sequence_length: f.number("sequence_length", Bounds::COUNT).unwrap_or(usual.sequence_length),
            vocab_size: f.number("vocab_size", Bounds::COUNT).unwrap_or(usual.vocab_size),
            total_parameters: f.number("total_parameters", Bounds::POSITIVE).filter(|n| *n > 0.0),
            total_flops: flops,
            layers,
        }
    }
}

impl Training {
    fn decode(f: &mut Fields<'_>, usual: &Training) -> Training {
        let custom_pattern = custom::decode(f);
        let unsaid = if custom_pattern.is_empty() { usual.communication_pattern } else { Pattern::Custom };
        let pattern = f.choice("communication_pattern", &PATTERNS).unwrap_or(unsaid);
        match (pattern, custom_pattern.is_empty()) {
            (Pattern::Custom, true) => {
                let help = "write custom_pattern: [{operation: reduce_scatter, algorithm: ring}, …]".to_owned();
                f.error("communication_pattern", "custom, but custom_pattern lists no phases", Some(help));
            }
            (Pattern::Custom, false) | (_, true) => {}
            (_, false) => f.warn("custom_pattern", "only used with communication_pattern: custom", None),
        }
        Training {
            custom_pattern,
            batch_size_per_gpu: f.number("batch_size_per_gpu", COUNT).unwrap_or(usual.batch_size_per_gpu),
            num_iterations: f.number("num_iterations", COUNT).unwrap_or(usual.num_iterations),
            num_nodes: f.number("num_nodes", COUNT).unwrap_or(usual.num_nodes),
            communication_pattern: pattern,
            gradient_accumulation_steps: f
                .number("gradient_accumulation_steps", COUNT)
                .unwrap_or(usual.gradient_accumulation_steps),
            mixed_precision: f.boolean("mixed_precision").unwrap_or(usual.mixed_precision),
            gradient_checkpointing: f.boolean("gradient_checkpointing").unwrap_or(usual.gradient_checkpointing),
        }
    }
}

impl Network {
    fn decode(f: &mut Fields<'_>, usual: &Network) -> Network {
        Network {
            topology_type: f.choice("topology_type", &TOPOLOGIES).unwrap_or(usual.topology_type),
            base_latency_us: f.number("base_latency_us", Bounds::POSITIVE).unwrap_or(usual.base_latency_us),
            switch_latency_us: f.number("switch_latency_us", Bounds::POSITIVE).unwrap_or(usual.switch_latency_us),
        }
    }
}
