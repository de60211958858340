//! The founding simulator's configuration: its YAML loads unchanged, and its presets are here.
//!
//! What it describes is data-parallel training on one flat network. Here the same description is run by events: passes take
//! what the accelerator's roofline says, gradients travel in buckets over the named topology, message by message, beside
//! the backward pass. Where its words were not meant as it computed them, they are taken as they are meant:
//!
//! | field | founding simulator | here |
//! | --- | --- | --- |
//! | `batch_size_per_gpu` | changed the throughput, never the time | sequences of a micro-batch |
//! | `gradient_accumulation_steps`, `gradient_checkpointing`, `mixed_precision`, `vocab_size`, `num_attention_heads` | unused | used |
//! | `topology_type`, latencies | unused | the network that gradients travel over |
//! | `reduce_scatter`, `allgather` | one formula for all patterns | reduce-scatter, then all-gather, round a ring |
//! | `alltoall` | the same formula | both as direct exchanges of everybody with everybody |
//! | `tree` topology | accelerators at every node | accelerators under a tree of switches |
//! | `torus_2d` | nodes beyond a square unconnected | the squarest rectangle |
//! | iterations | all at once | one after the other |

use std::sync::Arc;

use serde::Serialize;

use super::options::Options;
use super::plan::{Plan, Work, strangers, too_many, training_work};
use super::words::Window;
use super::{Gauge, Problems};
use crate::catalog::Catalog;
use crate::engine::analytical::accelerator::{Accelerator, Precision};
use crate::engine::analytical::arch::Architecture;
use crate::engine::analytical::constants::Constants;
use crate::engine::analytical::datasheet;
use crate::engine::analytical::training::{Recompute, Sharding, TrainingInput};
use crate::engine::event::kernel::Progress;
use crate::engine::event::network::{self, Algorithm, Operation, Routing, Shape, Wire};
use crate::engine::event::training::{Hosts, Input};
use crate::spec::Mode;
use crate::spec::decode::{Bounds, Fields};

/// The presets by name.
pub const PRESETS: [&str; 3] = ["small", "medium", "large"];

/// A configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Founding {
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
    /// Kept for the founding simulator's sake: events are always counted.
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
    /// Bandwidth of a link. The name says gigabits; the founding document means gigabytes per second, and so it is read.
    pub network_bandwidth_gbps: f64,
    /// Accelerators of a node.
    pub num_gpus_per_node: f64,
}

/// The network that is trained.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// `transformer`, `resnet`, or a model of the catalog.
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
}

const PATTERNS: [(&str, Pattern); 5] = [
    ("ring_allreduce", Pattern::Ring),
    ("tree_allreduce", Pattern::Tree),
    ("reduce_scatter", Pattern::ReduceScatter),
    ("allgather", Pattern::AllGather),
    ("alltoall", Pattern::AllToAll),
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

impl Founding {
    /// A preset by name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Founding> {
        let base = Founding::default();
        Some(match name {
            "small" => Founding { description: "8 A100 of one node train BERT base's size".to_owned(), ..base },
            "medium" => Founding {
                name: "medium_scale_experiment".to_owned(),
                description: "32 A100 of 4 nodes train GPT-2 large's size".to_owned(),
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
            "large" => Founding {
                name: "large_scale_experiment".to_owned(),
                description: "128 H100 of 16 nodes train a decoder of 48 layers".to_owned(),
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

    /// Reads a configuration; what it leaves out is the small preset's, as it was in the founding simulator.
    pub fn decode(fields: &mut Fields<'_>, catalog: &Catalog) -> Founding {
        let base = Founding::default();
        let positive = Bounds { min: 1e-9, max: 1e9, whole: false };
        let count = Bounds { max: 1e6, ..Bounds::COUNT };
        let hardware = fields.map("hardware", |f| {
            let model = f.text("gpu_model").unwrap_or_else(|| base.hardware.gpu_model.clone());
            // A known accelerator brings its own figures.
            let usual = usual(&model).unwrap_or(base.hardware.clone());
            Hardware {
                compute_tflops: f.number("compute_tflops", positive).unwrap_or(usual.compute_tflops),
                memory_gb: f.number("memory_gb", positive).unwrap_or(usual.memory_gb),
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
                f.warn("total_flops", "not used: operators are counted one by one", None);
            }
            let model_type = f.text("model_type").unwrap_or_else(|| usual.model_type.clone());
            if let Err(message) = known(&model_type, catalog) {
                f.error("model_type", message, None);
            }
            Model {
                model_type,
                num_layers: f.number("num_layers", count).unwrap_or(usual.num_layers),
                hidden_size: f.number("hidden_size", count).unwrap_or(usual.hidden_size),
                num_attention_heads: f.number("num_attention_heads", count).unwrap_or(usual.num_attention_heads),
                sequence_length: f.number("sequence_length", Bounds::COUNT).unwrap_or(usual.sequence_length),
                vocab_size: f.number("vocab_size", Bounds::COUNT).unwrap_or(usual.vocab_size),
                total_parameters: f.number("total_parameters", Bounds::POSITIVE).filter(|n| *n > 0.0),
                total_flops: flops,
            }
        });
        let training = fields.map("training", |f| {
            let usual = &base.training;
            Training {
                batch_size_per_gpu: f.number("batch_size_per_gpu", count).unwrap_or(usual.batch_size_per_gpu),
                num_iterations: f.number("num_iterations", count).unwrap_or(usual.num_iterations),
                num_nodes: f.number("num_nodes", count).unwrap_or(usual.num_nodes),
                communication_pattern: f
                    .choice("communication_pattern", &PATTERNS)
                    .unwrap_or(usual.communication_pattern),
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
        Founding {
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

    /// All accelerators.
    #[must_use]
    pub fn accelerators(&self) -> f64 {
        self.training.num_nodes * self.hardware.num_gpus_per_node
    }

    /// The accelerator: the catalog's, with the figures that are stated; and whether the catalog knows it.
    fn device(&self, catalog: &Catalog) -> (Accelerator, bool) {
        let name = self.hardware.gpu_model.trim();
        let known = KNOWN.iter().find(|(word, ..)| word.eq_ignore_ascii_case(name)).map_or(name, |(_, id, _)| id);
        let found = catalog.accelerator(known).ok();
        let is_known = found.is_some();
        let sheet = found.or_else(|| catalog.accelerator(KNOWN[0].1).ok());
        let mut device = sheet.map(|sheet| datasheet::accelerator(&sheet)).unwrap_or_default();
        let own = device.peak(Precision::Bf16);
        let by = self.hardware.compute_tflops * 1e12 / own.max(1.0);
        device.flops = device.flops.map(|rate| rate * by);
        device.mem_bytes = self.hardware.memory_gb * 1e9;
        device.nic_bw = self.hardware.network_bandwidth_gbps * 1e9;
        device.link_bw = device.nic_bw;
        device.domain = 1.0;
        (device, is_known)
    }

    /// The architecture, where the model is one that is known.
    fn architecture(&self, catalog: &Catalog) -> Result<Architecture, String> {
        let m = &self.model;
        if m.model_type.trim().eq_ignore_ascii_case(TRANSFORMER) {
            return Ok(Architecture {
                layers: m.num_layers,
                hidden: m.hidden_size,
                heads: m.num_attention_heads,
                kv_heads: m.num_attention_heads,
                head_dim: m.hidden_size / m.num_attention_heads,
                ffn: 4.0 * m.hidden_size,
                gated: false,
                vocab: m.vocab_size,
                tied: true,
                positions: m.sequence_length,
                ..Architecture::default()
            });
        }
        known(&m.model_type, catalog)?.map(|model| datasheet::model(&model)).ok_or_else(|| UNKNOWN.to_owned())
    }

    /// The training job, without its network.
    ///
    /// # Errors
    /// A model that nobody knows.
    pub fn system(&self, catalog: &Catalog) -> Result<TrainingInput, Problems> {
        let arch = self.architecture(catalog).map_err(|problem| Problems(vec![problem]))?;
        let (device, _) = self.device(catalog);
        let t = &self.training;
        let accelerators = self.accelerators();
        let images = arch.convolutions.is_some();
        Ok(TrainingInput {
            accelerator: device,
            accelerators,
            domain: 1.0,
            nic_bw: device.nic_bw,
            seq: if images { 1.0 } else { self.model.sequence_length },
            micro: t.batch_size_per_gpu,
            global: t.batch_size_per_gpu * t.gradient_accumulation_steps * accelerators,
            dp: accelerators,
            sharding: Sharding::None,
            recompute: if t.gradient_checkpointing { Recompute::Full } else { Recompute::None },
            precision: match (t.mixed_precision, device.flops.get(Precision::Bf16 as usize)) {
                (false, _) => Precision::Tf32,
                (true, Some(rate)) if *rate > 0.0 => Precision::Bf16,
                (true, _) => Precision::Fp16,
            },
            weight_bytes: if t.mixed_precision { 2.0 } else { 4.0 },
            // Weights in 32 bit are their own master copy.
            optimizer_bytes: if t.mixed_precision { 12.0 } else { 8.0 },
            arch,
            ..TrainingInput::default()
        })
    }

    /// The network.
    #[must_use]
    pub fn shape(&self) -> Shape {
        let n = self.accelerators().clamp(1.0, 1e9) as u32;
        let us = 1e-6;
        let (cable, switch) = (self.network.base_latency_us * us, self.network.switch_latency_us * us);
        let bandwidth = self.hardware.network_bandwidth_gbps * 1e9;
        let link = Wire { bandwidth, latency: cable };
        match self.network.topology_type {
            Topology::FullMesh => Shape::FullMesh { accelerators: n, link },
            Topology::Ring => Shape::Ring { accelerators: n, link },
            // Two cables meet in a switch: each bears half of it.
            Topology::Tree => {
                Shape::Tree { accelerators: n, fan_out: 2, link: Wire { bandwidth, latency: cable + 0.5 * switch } }
            }
            Topology::Torus => Shape::Torus { sides: rectangle(n), wrapped: true, link },
        }
    }

    /// Seconds in which gradients of so many bytes are reduced over the network, by its events.
    ///
    /// # Errors
    /// What the network refuses.
    pub fn reduction(&self, bytes: f64, progress: &Progress) -> Result<f64, Problems> {
        if self.accelerators() < 2.0 {
            return Ok(0.0);
        }
        let ring = Algorithm::Ring { channels: 1, local: 0, chunks: 1 };
        let jobs: &[(Operation, Algorithm)] = match self.training.communication_pattern {
            Pattern::Ring => &[(Operation::AllReduce, ring)],
            Pattern::Tree => &[(Operation::AllReduce, Algorithm::Tree { chunks: 16 })],
            Pattern::ReduceScatter | Pattern::AllGather => {
                &[(Operation::ReduceScatter, ring), (Operation::AllGather, ring)]
            }
            Pattern::AllToAll => {
                &[(Operation::ReduceScatter, Algorithm::Direct), (Operation::AllGather, Algorithm::Direct)]
            }
        };
        let mut seconds = 0.0;
        for (operation, algorithm) in jobs.iter().copied() {
            let job = network::Job { operation, algorithm, ranks: Vec::new(), bytes, begin: 0.0 };
            let input =
                network::Input { shape: self.shape(), degraded: Vec::new(), routing: Routing::First, jobs: vec![job] };
            seconds += network::simulate(&input, 0, progress)?.seconds;
        }
        Ok(seconds)
    }

    /// The plan of a configuration.
    ///
    /// # Errors
    /// A model that nobody knows, a network that cannot be built, options of serving.
    pub fn plan(
        &self,
        catalog: &Catalog,
        options: &Options,
        window: Option<Window>,
        gauge: &Gauge,
    ) -> Result<Plan, Problems> {
        let mut problems = strangers(options, Mode::Training);
        let system = self.system(catalog)?;
        let bytes = self.model.total_parameters.unwrap_or_else(|| system.arch.params()) * system.grad_bytes;
        // The buckets of PyTorch's data parallelism hold 25 MB each (`bucket_cap_mb`).
        let buckets = options.buckets.unwrap_or(((bytes / 25e6).ceil().clamp(1.0, 256.0)) as u32);
        let mut options = options.clone();
        options.buckets = Some(buckets);
        options.steps = options.steps.or(Some(self.training.num_iterations.clamp(1.0, 1e6) as u32));
        let hosts = Hosts { devices: system.accelerators, per_host: self.hardware.num_gpus_per_node };
        let mut work = training_work(Input::of(&system, &Constants::default()), hosts, &options, window);
        problems.extend(too_many(&work));
        if !problems.is_empty() {
            return Err(Problems(problems));
        }
        let one = gauge.run(|progress| self.reduction(bytes / f64::from(buckets), progress))?;
        work.input.reduction = Some(one * f64::from(buckets));
        let mut notes = vec![format!(
            "network_bandwidth_gbps is read as gigabytes per second, as the founding document means it: {} GB/s a link",
            self.hardware.network_bandwidth_gbps
        )];
        if !self.training.mixed_precision {
            notes.push(
                "without mixed precision, products are in TF32 where the accelerator has it, else in fp32".to_owned(),
            );
        }
        if !self.device(catalog).1 {
            notes.push(format!(
                "`{}` is no accelerator of the catalog: what the file does not state, memory bandwidth above all, is an \
                 A100's",
                self.hardware.gpu_model
            ));
        }
        Ok(Plan {
            name: self.name.clone(),
            work: Work::Training(Box::new(work)),
            seed: options.seed(),
            replications: options.replications(),
            notes,
        })
    }
}

impl Default for Founding {
    /// The small preset.
    fn default() -> Founding {
        Founding {
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
            },
            training: Training {
                batch_size_per_gpu: 32.0,
                num_iterations: 100.0,
                num_nodes: 1.0,
                communication_pattern: Pattern::Ring,
                gradient_accumulation_steps: 1.0,
                mixed_precision: false,
                gradient_checkpointing: false,
            },
            network: Network { topology_type: Topology::FullMesh, base_latency_us: 5.0, switch_latency_us: 1.0 },
            collect_detailed_stats: true,
            enable_visualization: true,
            output_directory: None,
        }
    }
}

/// The founding simulator's accelerators: name, catalog's name, and TFLOP/s, GB, GB/s (founding document).
const KNOWN: [(&str, &str, [f64; 3]); 4] = [
    ("A100", "nvidia-a100-sxm-80gb", [312.0, 80.0, 100.0]),
    ("H100", "nvidia-h100-sxm-80gb", [989.0, 80.0, 200.0]),
    ("V100", "nvidia-v100-sxm-32gb", [125.0, 32.0, 50.0]),
    ("A6000", "nvidia-rtx-a6000", [154.0, 48.0, 25.0]),
];

/// The founding simulator's models under the catalog's names.
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
const UNKNOWN: &str = "expected transformer, resnet or a model of the catalog";

/// The catalog's model of that name, under the founding simulator's name or its own; `None` for a transformer that the file
/// describes.
fn known(model_type: &str, catalog: &Catalog) -> Result<Option<Arc<crate::catalog::Model>>, String> {
    let word = model_type.trim().to_lowercase().replace('_', "-");
    if word == TRANSFORMER {
        return Ok(None);
    }
    let id = MODELS.iter().find(|(name, _)| *name == word).map_or(word.as_str(), |(_, id)| id);
    let found = catalog.model(id).map(Some);
    found.map_err(|problems| format!("found \"{model_type}\", {UNKNOWN}: {}", problems.messages()))
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

/// The squarest rectangle of `n` places.
fn rectangle(n: u32) -> [u32; 3] {
    let side = (1..=n).take_while(|side| u64::from(*side) * u64::from(*side) <= u64::from(n));
    let short = side.filter(|side| n.is_multiple_of(*side)).last().unwrap_or(1);
    [n / short, short, 1]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn rectangles_are_as_square_as_they_can_be() {
        assert_eq!(rectangle(16), [4, 4, 1]);
        assert_eq!(rectangle(128), [16, 8, 1]);
        assert_eq!(rectangle(24), [6, 4, 1]);
        assert_eq!(rectangle(7), [7, 1, 1]);
    }

    #[test]
    fn presets_are_those_of_the_founding_simulator() {
        let sizes: Vec<f64> = PRESETS.iter().map(|name| Founding::preset(name).unwrap().accelerators()).collect();
        assert_eq!(sizes, [8.0, 32.0, 128.0]);
        assert!(Founding::preset("huge").is_none());
    }

    #[test]
    fn a_reduction_is_what_its_pattern_takes_on_its_topology() {
        let catalog = Catalog::built_in();
        let seconds = |pattern, topology| {
            let mut config = Founding::preset("small").unwrap();
            config.training.communication_pattern = pattern;
            config.network.topology_type = topology;
            config.reduction(1e8, &Progress::new()).unwrap()
        };
        // Two times 7/8 of the bytes and 14 latencies, wherever a ring can be laid.
        let ideal = 1.75 * 1e8 / 100e9 + 14.0 * 5e-6;
        for topology in [Topology::FullMesh, Topology::Ring] {
            assert!((seconds(Pattern::Ring, topology) / ideal - 1.0).abs() < 1e-6);
            assert!((seconds(Pattern::ReduceScatter, topology) / ideal - 1.0).abs() < 1e-6);
        }
        // Direct exchange pays two latencies on a mesh, and contends on a ring.
        let direct = seconds(Pattern::AllToAll, Topology::FullMesh);
        assert!(direct < ideal && seconds(Pattern::AllToAll, Topology::Ring) > direct);
        assert!(seconds(Pattern::Tree, Topology::Tree) > ideal);
        let system = Founding::preset("small").unwrap().system(&catalog).unwrap();
        assert!((system.arch.params() / 110e6 - 1.0).abs() < 0.1, "{}", system.arch.params());
    }
}
