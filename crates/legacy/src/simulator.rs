//! Configuration of the predecessor simulator: reads its YAML unchanged, and provides its presets.
//!
//! It describes data-parallel training on one flat network. Here the description is simulated by events: the times of
//! passes follow from the accelerator's roofline, and gradients travel in buckets over the specified topology, message
//! by message, overlapping the backward pass. Fields that the predecessor simulator did not implement as intended have
//! their intended meaning:
//!
//! | field | predecessor simulator | here |
//! | --- | --- | --- |
//! | `batch_size_per_gpu` | changed the throughput, never the time | sequences of a micro-batch |
//! | `gradient_accumulation_steps`, `gradient_checkpointing`, `mixed_precision` | unused | used |
//! | `vocab_size`, `num_attention_heads` | unused | used |
//! | `topology_type`, latencies | unused | the network that gradients travel over |
//! | `reduce_scatter`, `allgather` | one formula for all patterns | ring reduce-scatter, then ring all-gather |
//! | `alltoall` | the same formula | reduce-scatter, then all-gather, as direct exchanges of all pairs of ranks |
//! | `tree` topology | accelerators at every node | accelerators under a tree of switches |
//! | `torus_2d` | nodes beyond a square unconnected | the rectangle closest to a square |
//! | iterations | all concurrent | sequential |

pub mod custom;
mod decode;
mod examples;
pub mod layers;
mod work;

use std::sync::Arc;

use serde::Serialize;

use self::layers::Layer;
use atlas_catalog::Catalog;
use atlas_catalog::datasheet;
use atlas_perf::accelerator::Precision;

/// Configuration of the predecessor simulator.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Predecessor {
    /// Name.
    pub name: String,
    /// One-line description.
    pub description: String,
    /// Accelerators.
    pub hardware: Hardware,
    /// Model to train.
    pub model: Model,
    /// Batch and communication.
    pub training: Training,
    /// Network between the accelerators.
    pub network: Network,
    /// Ignored; kept for compatibility. Events are always counted.
    pub collect_detailed_stats: bool,
    /// Whether plots are written.
    pub enable_visualization: bool,
    /// Output directory; `None`: no files are written.
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
    /// Bandwidth of a link in gigabytes per second. The field name says gigabits, but the predecessor document means
    /// gigabytes.
    pub network_bandwidth_gbps: f64,
    /// Accelerators per node.
    pub num_gpus_per_node: f64,
}

/// Model to train.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// `transformer`, `resnet`, a catalog model, or `custom` with a list of layers.
    pub model_type: String,
    /// Number of layers.
    pub num_layers: f64,
    /// Hidden size.
    pub hidden_size: f64,
    /// Number of attention heads.
    pub num_attention_heads: f64,
    /// Tokens per sequence.
    pub sequence_length: f64,
    /// Vocabulary size.
    pub vocab_size: f64,
    /// Number of parameters, if stated rather than computed.
    pub total_parameters: Option<f64>,
    /// Ignored: FLOPs are computed from the operators.
    pub total_flops: Option<f64>,
    /// Layers of a `custom` model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
}

/// Batch and communication.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Training {
    /// Sequences per micro-batch.
    pub batch_size_per_gpu: f64,
    /// Number of steps.
    pub num_iterations: f64,
    /// Number of nodes.
    pub num_nodes: f64,
    /// Algorithm of gradient reduction.
    pub communication_pattern: Pattern,
    /// Micro-batches per step.
    pub gradient_accumulation_steps: f64,
    /// Whether matrix multiplications use 16 bits, with 32-bit master weights.
    pub mixed_precision: bool,
    /// Whether activations are recomputed.
    pub gradient_checkpointing: bool,
    /// Phases of the `custom` pattern.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub custom_pattern: Vec<custom::Phase>,
}

/// Algorithm of gradient reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Ring all-reduce.
    #[serde(rename = "ring_allreduce")]
    Ring,
    /// Tree all-reduce.
    #[serde(rename = "tree_allreduce")]
    Tree,
    /// Ring reduce-scatter, then ring all-gather.
    ReduceScatter,
    /// Like [`Pattern::ReduceScatter`].
    #[serde(rename = "allgather")]
    AllGather,
    /// Reduce-scatter, then all-gather, as direct exchanges of all pairs of ranks.
    #[serde(rename = "alltoall")]
    AllToAll,
    /// Phases listed in the configuration.
    Custom,
}

/// Names of the patterns.
pub const PATTERNS: [(&str, Pattern); 6] = [
    ("ring_allreduce", Pattern::Ring),
    ("tree_allreduce", Pattern::Tree),
    ("reduce_scatter", Pattern::ReduceScatter),
    ("allgather", Pattern::AllGather),
    ("alltoall", Pattern::AllToAll),
    ("custom", Pattern::Custom),
];

/// Network between the accelerators.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Network {
    /// Topology.
    pub topology_type: Topology,
    /// Latency of a link, µs.
    pub base_latency_us: f64,
    /// Latency of a switch, µs.
    pub switch_latency_us: f64,
}

/// Network topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topology {
    /// A link between each pair.
    FullMesh,
    /// A ring.
    Ring,
    /// A binary tree of switches.
    Tree,
    /// A two-dimensional torus.
    #[serde(rename = "torus_2d")]
    Torus,
}

const TOPOLOGIES: [(&str, Topology); 4] = [
    ("full_mesh", Topology::FullMesh),
    ("ring", Topology::Ring),
    ("tree", Topology::Tree),
    ("torus_2d", Topology::Torus),
];

/// Maximum number of layers of a model: all are simulated, and no known model has a tenth as many.
const MAX_LAYERS: f64 = 10_000.0;

impl Predecessor {
    /// Returns one configuration per communication pattern, named after it; `custom` only if it is described.
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

    /// The preset with this name.
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
}

impl Default for Predecessor {
    /// Returns the small preset.
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
/// Accelerators of the predecessor simulator: name, catalog key, and TFLOP/s, GB, GB/s (predecessor document).
const PREDECESSOR_ACCELERATORS: [(&str, &str, [f64; 3]); 4] = [
    ("A100", "nvidia-a100-sxm-80gb", [312.0, 80.0, 100.0]),
    ("H100", "nvidia-h100-sxm-80gb", [989.0, 80.0, 200.0]),
    ("V100", "nvidia-v100-sxm-32gb", [125.0, 32.0, 50.0]),
    ("A6000", "nvidia-rtx-a6000", [154.0, 48.0, 25.0]),
];

/// Models of the predecessor simulator and their catalog keys.
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

/// Model type of a transformer described by layers and widths.
const TRANSFORMER: &str = "transformer";
const UNKNOWN: &str = "expected transformer, resnet or a model from the catalog";

/// Catalog model with this name or predecessor name; `None` for a transformer that the file describes.
fn known(model_type: &str, catalog: &Catalog) -> Result<Option<Arc<atlas_catalog::Model>>, String> {
    let word = model_type.trim().to_lowercase().replace('_', "-");
    if word == TRANSFORMER {
        return Ok(None);
    }
    let id = MODELS.iter().find(|(name, _)| *name == word).map_or(word.as_str(), |(_, id)| id);
    let found = catalog.model(id).map(Some);
    found.map_err(|problems| format!("found \"{model_type}\", {UNKNOWN}: {}", problems.messages()))
}

/// Specifications of the catalog accelerator with this name or a similar one.
fn hardware_from_catalog(name: &str, memory_gb: Option<f64>, catalog: &Catalog) -> Option<Hardware> {
    let sheet = catalog.find_accelerator_by_description(name.trim(), memory_gb)?;
    let device = datasheet::accelerator(&sheet);
    let usual = Predecessor::default().hardware;
    // The predecessor simulator has only one kind of link, that of the network.
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
        PREDECESSOR_ACCELERATORS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(model.trim()))?;
    Some(Hardware {
        gpu_model: (*name).to_owned(),
        compute_tflops: *compute_tflops,
        memory_gb: *memory_gb,
        network_bandwidth_gbps: *network_bandwidth_gbps,
        num_gpus_per_node: 8.0,
    })
}
