//! The predecessor simulator's configuration: its YAML loads unchanged, and its presets are here.
//!
//! What it describes is data-parallel training on one flat network. Here the same description is run by events: passes take
//! what the accelerator's roofline says, gradients travel in buckets over the named topology, message by message, alongside
//! the backward pass. Where its words were not meant as it computed them, they are taken as they are meant:
//!
//! | field | predecessor simulator | here |
//! | --- | --- | --- |
//! | `batch_size_per_gpu` | changed the throughput, never the time | sequences of a micro-batch |
//! | `gradient_accumulation_steps`, `gradient_checkpointing`, `mixed_precision`, `vocab_size`, `num_attention_heads` | unused | used |
//! | `topology_type`, latencies | unused | the network that gradients travel over |
//! | `reduce_scatter`, `allgather` | one formula for all patterns | reduce-scatter, then all-gather, round a ring |
//! | `alltoall` | the same formula | both as direct exchanges of all pairs of ranks |
//! | `tree` topology | accelerators at every node | accelerators under a tree of switches |
//! | `torus_2d` | nodes beyond a square unconnected | the squarest rectangle |
//! | iterations | all at once | one after the other |

pub mod custom;
mod examples;
pub mod layers;
mod work;

use std::sync::Arc;

use serde::Serialize;

use self::layers::Layer;
use crate::engine::datasheet;
use atlas_catalog::Catalog;
use atlas_document::decode::{Bounds, Fields};
use atlas_perf::accelerator::Precision;

/// The presets by name.
pub const PRESETS: [&str; 3] = ["small", "medium", "large"];

/// A configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Predecessor {
    /// Its name.
    pub name: String,
    /// A line about it.
    pub description: String,
    /// Accelerators.
    pub hardware: Hardware,
    /// The network that is trained.
    pub model: Model,
    /// Batch and communication.
    pub training: Training,
    /// What joins the accelerators.
    pub network: Network,
    /// Kept for the predecessor simulator's sake: events are always counted.
    pub collect_detailed_stats: bool,
    /// Whether plots are written.
    pub enable_visualization: bool,
    /// Where files go; nowhere where unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_directory: Option<String>,
}

/// Accelerators.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hardware {
    /// A100, H100, V100, A6000, or a name of the catalog.
    pub gpu_model: String,
    /// Dense 16-bit matrix rate, TFLOP/s.
    pub compute_tflops: f64,
    /// Memory, GB.
    pub memory_gb: f64,
    /// Bandwidth of a link. The name says gigabits; the predecessor document means gigabytes per second, and so it is read.
    pub network_bandwidth_gbps: f64,
    /// Accelerators of a node.
    pub num_gpus_per_node: f64,
}

/// The network that is trained.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// `transformer`, `resnet`, a model of the catalog, or `custom` with a list of layers.
    pub model_type: String,
    /// Layers.
    pub num_layers: f64,
    /// Width.
    pub hidden_size: f64,
    /// Heads.
    pub num_attention_heads: f64,
    /// Tokens of a sequence.
    pub sequence_length: f64,
    /// Rows of the embedding.
    pub vocab_size: f64,
    /// Parameters, where they are stated rather than counted.
    pub total_parameters: Option<f64>,
    /// Not used: operators are counted one by one.
    pub total_flops: Option<f64>,
    /// The layers of a `custom` model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
}

/// Batch and communication.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Training {
    /// Sequences of a micro-batch.
    pub batch_size_per_gpu: f64,
    /// Steps.
    pub num_iterations: f64,
    /// Nodes.
    pub num_nodes: f64,
    /// How gradients are reduced.
    pub communication_pattern: Pattern,
    /// Micro-batches of a step.
    pub gradient_accumulation_steps: f64,
    /// 16-bit products, 32-bit weights.
    pub mixed_precision: bool,
    /// Activations are recomputed.
    pub gradient_checkpointing: bool,
    /// The phases of the pattern `custom`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub custom_pattern: Vec<custom::Phase>,
}

/// How gradients are reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// All-reduce round a ring.
    #[serde(rename = "ring_allreduce")]
    Ring,
    /// All-reduce up and down a tree.
    #[serde(rename = "tree_allreduce")]
    Tree,
    /// Reduce-scatter, then all-gather, round a ring.
    ReduceScatter,
    /// The same.
    #[serde(rename = "allgather")]
    AllGather,
    /// The same as direct exchanges.
    #[serde(rename = "alltoall")]
    AllToAll,
    /// The phases that the configuration lists.
    Custom,
}

/// The patterns by name.
pub const PATTERNS: [(&str, Pattern); 6] = [
    ("ring_allreduce", Pattern::Ring),
    ("tree_allreduce", Pattern::Tree),
    ("reduce_scatter", Pattern::ReduceScatter),
    ("allgather", Pattern::AllGather),
    ("alltoall", Pattern::AllToAll),
    ("custom", Pattern::Custom),
];

/// What joins the accelerators.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Network {
    /// The topology.
    pub topology_type: Topology,
    /// Latency of a cable, µs.
    pub base_latency_us: f64,
    /// Latency of a switch, µs.
    pub switch_latency_us: f64,
}

/// The topologies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topology {
    /// A cable between every two.
    FullMesh,
    /// A ring.
    Ring,
    /// A binary tree of switches.
    Tree,
    /// A torus.
    #[serde(rename = "torus_2d")]
    Torus,
}

const TOPOLOGIES: [(&str, Topology); 4] = [
    ("full_mesh", Topology::FullMesh),
    ("ring", Topology::Ring),
    ("tree", Topology::Tree),
    ("torus_2d", Topology::Torus),
];

/// Maximum layers of a model: every one of them is simulated, and no model has a tenth of these.
const MOST_LAYERS: f64 = 10_000.0;

impl Predecessor {
    /// The same under each communication pattern, named after it; the custom one where it is described.
    #[must_use]
    pub fn under_every_pattern(&self) -> Vec<Predecessor> {
        let described =
            |(_, pattern): &&(&str, Pattern)| *pattern != Pattern::Custom || !self.training.custom_pattern.is_empty();
        let under = |(name, pattern): &(&str, Pattern)| Predecessor {
            name: format!("{} {name}", self.name),
            training: Training { communication_pattern: *pattern, ..self.training.clone() },
            ..self.clone()
        };
        PATTERNS.iter().filter(described).map(under).collect()
    }

    /// A preset by name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Predecessor> {
        let base = Predecessor::default();
        Some(match name {
            "small" => Predecessor { description: "model of BERT-base size on 8 A100 (1 node)".to_owned(), ..base },
            "medium" => Predecessor {
                name: "medium_scale_experiment".to_owned(),
                description: "model of GPT-2-large size on 32 A100 (4 nodes)".to_owned(),
                model: Model {
                    num_layers: 36.0,
                    hidden_size: 1280.0,
                    num_attention_heads: 20.0,
                    sequence_length: 1024.0,
                    vocab_size: 50_257.0,
                    ..base.model
                },
                training: Training { batch_size_per_gpu: 16.0, num_nodes: 4.0, ..base.training },
                ..base
            },
            "large" => Predecessor {
                name: "large_scale_experiment".to_owned(),
                description: "48-layer decoder on 128 H100 (16 nodes)".to_owned(),
                hardware: Hardware {
                    gpu_model: "H100".to_owned(),
                    compute_tflops: 989.0,
                    network_bandwidth_gbps: 200.0,
                    ..base.hardware
                },
                model: Model {
                    num_layers: 48.0,
                    hidden_size: 2048.0,
                    num_attention_heads: 32.0,
                    sequence_length: 2048.0,
                    vocab_size: 50_257.0,
                    ..base.model
                },
                training: Training { batch_size_per_gpu: 8.0, num_nodes: 16.0, mixed_precision: true, ..base.training },
                network: Network { topology_type: Topology::Torus, ..base.network },
                ..base
            },
            _ => return None,
        })
    }

    /// Reads a configuration; what it leaves out is the small preset's, as it was in the predecessor simulator.
    pub fn decode(fields: &mut Fields<'_>, catalog: &Catalog) -> Predecessor {
        let base = Predecessor::default();
        let positive = Bounds { min: 1e-9, max: 1e9, whole: false };
        let count = Bounds { max: 1e6, ..Bounds::COUNT };
        let hardware = fields.map("hardware", |f| {
            let model = f.text("gpu_model").unwrap_or_else(|| base.hardware.gpu_model.clone());
            // A known accelerator brings its own figures.
            let memory_gb = f.number("memory_gb", positive);
            let usual = usual(&model).or_else(|| sheet(&model, memory_gb, catalog)).unwrap_or(base.hardware.clone());
            Hardware {
                compute_tflops: f.number("compute_tflops", positive).unwrap_or(usual.compute_tflops),
                memory_gb: memory_gb.unwrap_or(usual.memory_gb),
                network_bandwidth_gbps: f
                    .number("network_bandwidth_gbps", positive)
                    .unwrap_or(usual.network_bandwidth_gbps),
                num_gpus_per_node: f.number("num_gpus_per_node", count).unwrap_or(usual.num_gpus_per_node),
                gpu_model: model,
            }
        });
        let model = fields.map("model", |f| {
            let usual = &base.model;
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
                num_layers: f
                    .number("num_layers", Bounds { max: MOST_LAYERS, ..Bounds::COUNT })
                    .unwrap_or(count_unsaid),
                hidden_size: f.number("hidden_size", count).unwrap_or(usual.hidden_size),
                num_attention_heads: f.number("num_attention_heads", count).unwrap_or(usual.num_attention_heads),
                sequence_length: f.number("sequence_length", Bounds::COUNT).unwrap_or(usual.sequence_length),
                vocab_size: f.number("vocab_size", Bounds::COUNT).unwrap_or(usual.vocab_size),
                total_parameters: f.number("total_parameters", Bounds::POSITIVE).filter(|n| *n > 0.0),
                total_flops: flops,
                layers,
            }
        });
        let training = fields.map("training", |f| {
            let usual = &base.training;
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
                batch_size_per_gpu: f.number("batch_size_per_gpu", count).unwrap_or(usual.batch_size_per_gpu),
                num_iterations: f.number("num_iterations", count).unwrap_or(usual.num_iterations),
                num_nodes: f.number("num_nodes", count).unwrap_or(usual.num_nodes),
                communication_pattern: pattern,
                gradient_accumulation_steps: f
                    .number("gradient_accumulation_steps", count)
                    .unwrap_or(usual.gradient_accumulation_steps),
                mixed_precision: f.boolean("mixed_precision").unwrap_or(usual.mixed_precision),
                gradient_checkpointing: f.boolean("gradient_checkpointing").unwrap_or(usual.gradient_checkpointing),
            }
        });
        let network = fields.map("network", |f| {
            let usual = &base.network;
            Network {
                topology_type: f.choice("topology_type", &TOPOLOGIES).unwrap_or(usual.topology_type),
                base_latency_us: f.number("base_latency_us", Bounds::POSITIVE).unwrap_or(usual.base_latency_us),
                switch_latency_us: f.number("switch_latency_us", Bounds::POSITIVE).unwrap_or(usual.switch_latency_us),
            }
        });
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

impl Default for Predecessor {
    /// The small preset.
    fn default() -> Predecessor {
        Predecessor {
            name: "small_scale_experiment".to_owned(),
            description: String::new(),
            hardware: Hardware {
                gpu_model: "A100".to_owned(),
                compute_tflops: 312.0,
                memory_gb: 80.0,
                network_bandwidth_gbps: 100.0,
                num_gpus_per_node: 8.0,
            },
            model: Model {
                model_type: "transformer".to_owned(),
                num_layers: 12.0,
                hidden_size: 768.0,
                num_attention_heads: 12.0,
                sequence_length: 512.0,
                vocab_size: 30_522.0,
                total_parameters: None,
                total_flops: None,
                layers: Vec::new(),
            },
            training: Training {
                batch_size_per_gpu: 32.0,
                num_iterations: 100.0,
                num_nodes: 1.0,
                communication_pattern: Pattern::Ring,
                gradient_accumulation_steps: 1.0,
                mixed_precision: false,
                gradient_checkpointing: false,
                custom_pattern: Vec::new(),
            },
            network: Network { topology_type: Topology::FullMesh, base_latency_us: 5.0, switch_latency_us: 1.0 },
            collect_detailed_stats: true,
            enable_visualization: true,
            output_directory: None,
        }
    }
}
/// The predecessor simulator's accelerators: name, catalog's name, and TFLOP/s, GB, GB/s (predecessor document).
const KNOWN: [(&str, &str, [f64; 3]); 4] = [
    ("A100", "nvidia-a100-sxm-80gb", [312.0, 80.0, 100.0]),
    ("H100", "nvidia-h100-sxm-80gb", [989.0, 80.0, 200.0]),
    ("V100", "nvidia-v100-sxm-32gb", [125.0, 32.0, 50.0]),
    ("A6000", "nvidia-rtx-a6000", [154.0, 48.0, 25.0]),
];

/// The predecessor simulator's models under the catalog's names.
const MODELS: [(&str, &str); 9] = [
    ("resnet", "resnet-50"),
    ("resnet50", "resnet-50"),
    ("gpt2-small", "gpt2"),
    ("gpt-2", "gpt2"),
    ("gpt-2-small", "gpt2"),
    ("gpt-2-medium", "gpt2-medium"),
    ("gpt-2-large", "gpt2-large"),
    ("bert", "bert-base"),
    ("resnet-50", "resnet-50"),
];

/// The model that a file describes by layers and widths.
const TRANSFORMER: &str = "transformer";
const UNKNOWN: &str = "expected transformer, resnet or a model from the catalog";

/// The catalog's model of that name, under the predecessor simulator's name or its own; `None` for a transformer that the file
/// describes.
fn known(model_type: &str, catalog: &Catalog) -> Result<Option<Arc<atlas_catalog::Model>>, String> {
    let word = model_type.trim().to_lowercase().replace('_', "-");
    if word == TRANSFORMER {
        return Ok(None);
    }
    let id = MODELS.iter().find(|(name, _)| *name == word).map_or(word.as_str(), |(_, id)| id);
    let found = catalog.model(id).map(Some);
    found.map_err(|problems| format!("found \"{model_type}\", {UNKNOWN}: {}", problems.messages()))
}

/// Figures of an accelerator that the catalog has under that name or one like it.
fn sheet(name: &str, memory_gb: Option<f64>, catalog: &Catalog) -> Option<Hardware> {
    let sheet = catalog.accelerator_meant(name.trim(), memory_gb)?;
    let device = datasheet::accelerator(&sheet);
    let usual = Predecessor::default().hardware;
    // The simulator has one kind of link: the network's.
    let link = Some(device.nic_bw * 1e-9).filter(|gb| *gb > 0.0).unwrap_or(usual.network_bandwidth_gbps);
    Some(Hardware {
        gpu_model: name.to_owned(),
        compute_tflops: device.peak(Precision::Bf16) * 1e-12,
        memory_gb: sheet.memory.gb,
        network_bandwidth_gbps: link,
        num_gpus_per_node: usual.num_gpus_per_node,
    })
}

fn usual(model: &str) -> Option<Hardware> {
    let (name, _, [compute_tflops, memory_gb, network_bandwidth_gbps]) =
        KNOWN.iter().find(|(name, ..)| name.eq_ignore_ascii_case(model.trim()))?;
    Some(Hardware {
        gpu_model: (*name).to_owned(),
        compute_tflops: *compute_tflops,
        memory_gb: *memory_gb,
        network_bandwidth_gbps: *network_bandwidth_gbps,
        num_gpus_per_node: 8.0,
    })
}
