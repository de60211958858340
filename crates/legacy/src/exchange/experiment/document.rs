//! Decoding and checking the experiment document.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Experiment, ValueOrigin};
use atlas_core::plan::{Format, Methodology};
use atlas_document::decode::{Bounds, Fields};
use atlas_document::node::{Entry, Position};
use atlas_document::suggestion::did_you_mean;
use atlas_document::{Diagnostic, Diagnostics, Node, Severity};

/// An entry of `hardware.platforms`.
#[derive(Debug, Clone, PartialEq)]
pub struct Platform {
    /// Key of the entry, such as `nvidia` or `amd`.
    pub key: String,
    /// Position of its entry.
    pub at: Position,
    /// `gpu_model`.
    pub gpu_model: String,
    /// `memory_per_gpu_gb`; if absent, the catalog's value is used.
    pub memory_gb: Option<f64>,
    /// `num_gpus`, the total over all nodes.
    pub gpus: f64,
    /// `num_nodes`; by default derived from `gpus_per_node`, or from eight GPUs per node.
    pub nodes: f64,
    /// `software_stack`.
    pub stack: Option<String>,
    /// `framework`.
    pub framework: Option<String>,
    /// Entry of the platform in `platform_optimizations`.
    pub optimizations: Optimizations,
    /// Price in USD per GPU and hour, from `benchmarking.enhanced_metrics.cloud_costs`, and its position.
    pub usd_per_gpu_hour: Option<(f64, Position)>,
    /// Entry of the platform in `benchmarking.enhanced_metrics.hardware_specs`.
    pub specs: Option<Node>,
}

/// An entry of `platform_optimizations`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Optimizations {
    /// `precision`; FP8 if `fp8_hybrid` is true.
    pub precision: Option<(Format, Position)>,
    /// `activation_checkpointing` or `gradient_checkpointing`; true if either is.
    pub checkpointing: Option<(bool, Position)>,
}

/// An entry of `models`.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Key of the entry, such as `llama` or `qwen`.
    pub key: String,
    /// Position of its entry.
    pub at: Position,
    /// `name`, such as `llama3.1_8b`.
    pub name: String,
    /// `full_name`, such as `Llama 3.1 8B`.
    pub full_name: Option<String>,
    /// `num_parameters`.
    pub parameters: Option<f64>,
    /// `num_layers`.
    pub layers: Option<f64>,
    /// `hidden_size`.
    pub hidden: Option<f64>,
    /// `num_attention_heads`.
    pub heads: Option<f64>,
}

/// The parts of `training` that engines use.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Training {
    /// `data.micro_batch_size`.
    pub micro: Option<f64>,
    /// `data.global_batch_size`.
    pub global: Option<f64>,
    /// `data.seq_length`.
    pub sequence: Option<f64>,
    /// `duration.max_steps` or `duration.train_iters`.
    pub steps: Option<f64>,
    /// `optimizer.learning_rate`.
    pub learning_rate: Option<f64>,
    /// `precision.default`.
    pub precision: Option<(Format, Position)>,
}

pub(super) const RANK: Bounds = Bounds { max: 1e6, ..Bounds::COUNT };
const NONZERO: Bounds = Bounds { min: 1e-9, ..Bounds::POSITIVE };

pub(super) struct Reader<'a> {
    pub(super) file: &'a Arc<str>,
    pub(super) problems: &'a mut Diagnostics,
}

pub(super) fn read(
    file: &Arc<str>,
    root: Node,
    from: BTreeMap<String, ValueOrigin>,
    problems: &mut Diagnostics,
) -> Experiment {
    let mut reader = Reader { file, problems };
    let (methodology, training) = reader.top(&root);
    let mut platforms = reader.platforms(&root);
    let models = reader.models(&root);
    reader.optimizations(&root, &mut platforms);
    reader.benchmarking(&root, &mut platforms);
    let layouts = reader.layouts(&root, &platforms, &models);
    let experiment =
        Experiment { file: Arc::clone(file), root, from, methodology, platforms, models, training, layouts };
    reader.check(&experiment);
    experiment
}

impl Reader<'_> {
    pub(super) fn diagnose(
        &mut self,
        severity: Severity,
        at: Position,
        path: String,
        message: String,
        help: Option<String>,
    ) {
        let file = Arc::clone(self.file);
        self.problems.push(Diagnostic { severity, file, at, path, message, help });
    }

    /// Reads the top-level sections and reports missing or unknown fields.
    fn top(&mut self, root: &Node) -> (Methodology, Training) {
        let Some(mut top) = Fields::open(self.file, "", root, self.problems) else {
            return (Methodology::MaximumPerformance, Training::default());
        };
        let methodology = top.map("experiment", |fields| {
            for kept in ["name", "description", "version", "author", "date"] {
                fields.text(kept);
            }
            let found = fields.text("methodology");
            let named = found.as_deref().and_then(Methodology::named);
            if let (Some(found), None) = (&found, named) {
                let message = format!("found \"{found}\", expected maximum_performance or identical_config");
                fields.error("methodology", message, None);
            }
            named
        });
        top.required_map("hardware", &["platforms"], |hardware| {
            if hardware.node("platforms").is_none() {
                hardware.missing("platforms");
            }
        });
        if top.node("models").is_none() {
            top.missing("models");
        }
        let needed = ["data.micro_batch_size", "data.global_batch_size", "data.seq_length"];
        let training = top.required_map("training", &needed, training);
        for read_elsewhere in ["parallelism", "platform_optimizations", "benchmarking", "paths"] {
            top.node(read_elsewhere);
        }
        for kept in ["logging", "checkpointing", "environment", "profiling", "docker", "slurm", "datasets", "data"] {
            top.node(kept);
        }
        top.finish();
        // Same default as in the comparison tool.
        (methodology.flatten().unwrap_or(Methodology::MaximumPerformance), training.unwrap_or_default())
    }

    /// Returns the entries of the mapping at `path`, whose keys are arbitrary. Reports an error if the value is not a
    /// mapping. An absent value counts as empty.
    pub(super) fn named<'n>(&mut self, root: &'n Node, path: &[&str]) -> &'n [Entry] {
        let Some(node) = root.at_path(path).filter(|node| !node.is_null()) else { return &[] };
        node.entries().unwrap_or_else(|| {
            let message = format!("found {}, expected a mapping with names as keys", node.describe());
            self.diagnose(Severity::Error, node.at, path.join("."), message, None);
            &[]
        })
    }

    fn platforms(&mut self, root: &Node) -> Vec<Platform> {
        let entries = self.named(root, &["hardware", "platforms"]);
        entries.iter().filter_map(|entry| self.platform(entry)).collect()
    }

    fn platform(&mut self, entry: &Entry) -> Option<Platform> {
        let before = self.problems.errors();
        let path = format!("hardware.platforms.{}", entry.key);
        let mut fields = Fields::open(self.file, path, &entry.value, self.problems)?;
        let gpu_model = fields.required_text("gpu_model");
        let memory_gb = fields.number("memory_per_gpu_gb", Bounds { max: 1e6, ..NONZERO });
        let gpus = fields.required_number("num_gpus", RANK);
        let num_nodes = fields.number("num_nodes", RANK);
        let per_node = fields.number("gpus_per_node", RANK);
        let (stack, framework) = (fields.text("software_stack"), fields.text("framework"));
        for kept in ["vendor", "architecture", "interconnect", "description", "gpu_arch", "docker_image"] {
            fields.text(kept);
        }
        for kept in ["gpu_cores", "tdp_watts", "memory_bandwidth_gbps"] {
            fields.number(kept, Bounds::POSITIVE);
        }
        let nodes = gpus.map(|gpus| {
            if let (Some(nodes), Some(each)) = (num_nodes, per_node)
                && nodes * each != gpus
            {
                let message = format!(
                    "found {nodes} nodes with {each} GPUs per node = {} GPUs, but num_gpus is {gpus}",
                    nodes * each
                );
                fields.error("num_nodes", message, None);
            }
            let nodes = num_nodes.or_else(|| per_node.map(|each| gpus / each));
            // By default, nodes of eight GPUs, or one node if that does not divide the GPUs.
            nodes.unwrap_or(if gpus > 8.0 && gpus % 8.0 == 0.0 { gpus / 8.0 } else { 1.0 })
        });
        if let (Some(gpus), Some(nodes)) = (gpus, nodes)
            && ((gpus / nodes).fract() != 0.0 || nodes.fract() != 0.0)
        {
            let key = if num_nodes.is_some() { "num_nodes" } else { "gpus_per_node" };
            let message =
                format!("{gpus} GPUs cannot be divided evenly: {nodes} nodes with {} GPUs per node", gpus / nodes);
            fields.error(key, message, None);
        }
        let at = entry.key_at;
        fields.finish();
        if self.problems.errors() > before {
            return None;
        }
        Some(Platform {
            key: entry.key.to_string(),
            at,
            gpu_model: gpu_model?,
            memory_gb,
            gpus: gpus?,
            nodes: nodes?,
            stack,
            framework,
            optimizations: Optimizations::default(),
            usd_per_gpu_hour: None,
            specs: None,
        })
    }

    fn models(&mut self, root: &Node) -> Vec<Model> {
        let entries = self.named(root, &["models"]);
        entries.iter().filter_map(|entry| self.model(entry)).collect()
    }

    fn model(&mut self, entry: &Entry) -> Option<Model> {
        let before = self.problems.errors();
        let mut fields = Fields::open(self.file, format!("models.{}", entry.key), &entry.value, self.problems)?;
        let name = fields.required_text("name");
        let full_name = fields.text("full_name");
        let parameters = fields.number("num_parameters", NONZERO);
        let layers = fields.number("num_layers", Bounds { max: 1e6, ..Bounds::COUNT });
        let hidden = fields.number("hidden_size", Bounds::COUNT);
        let heads = fields.number("num_attention_heads", Bounds { max: 1e6, ..Bounds::COUNT });
        for kept in [
            "num_key_value_heads",
            "num_query_groups",
            "vocab_size",
            "ffn_hidden_size",
            "intermediate_size",
            "max_position_embeddings",
            "flops_per_token",
        ] {
            fields.number(kept, Bounds::POSITIVE);
        }
        for kept in ["primus_config", "nemo_recipe", "tokenizer", "family", "description", "hf_model", "checkpoint"] {
            fields.text(kept);
        }
        if let (Some(hidden), Some(heads)) = (hidden, heads)
            && hidden % heads != 0.0
        {
            let message = format!("{heads} attention heads do not divide the hidden size of {hidden}");
            fields.error("num_attention_heads", message, None);
        }
        fields.finish();
        if self.problems.errors() > before {
            return None;
        }
        Some(Model {
            key: entry.key.to_string(),
            at: entry.key_at,
            name: name?,
            full_name,
            parameters,
            layers,
            hidden,
            heads,
        })
    }

    fn optimizations(&mut self, root: &Node, platforms: &mut [Platform]) {
        let entries = self.named(root, &["platform_optimizations"]);
        for entry in entries {
            let path = format!("platform_optimizations.{}", entry.key);
            let keys: Vec<String> = platforms.iter().map(|platform| platform.key.clone()).collect();
            let platform = platforms.iter_mut().find(|platform| platform.key == entry.key);
            if platform.is_none() {
                self.unknown(entry, &path, "platform", &keys);
            }
            let Some(mut fields) = Fields::open(self.file, path, &entry.value, self.problems) else { continue };
            let precision = format_of(&mut fields, "precision");
            let hybrid = fields.boolean("fp8_hybrid");
            let hybrid = hybrid.filter(|on| *on).and_then(|_| Some((Format::Fp8, entry.value.get("fp8_hybrid")?.at)));
            let checkpointing = ["activation_checkpointing", "gradient_checkpointing"].map(|key| {
                let on = fields.boolean(key)?;
                Some((on, entry.value.get(key)?.at))
            });
            for kept in ["fp8_param", "flash_attention", "cuda_graphs", "sequence_parallel", "overlap_grad_reduce"] {
                fields.boolean(kept);
            }
            fields.all();
            fields.finish();
            let on = checkpointing.iter().flatten().find(|(on, _)| *on).copied();
            let found = Optimizations {
                precision: hybrid.or(precision),
                checkpointing: on.or(checkpointing.into_iter().flatten().next()),
            };
            if let Some(platform) = platform {
                platform.optimizations = found;
            }
        }
    }

    /// Reads prices and datasheet values from `benchmarking.enhanced_metrics`.
    fn benchmarking(&mut self, root: &Node, platforms: &mut [Platform]) {
        for entry in self.named(root, &["benchmarking", "enhanced_metrics", "cloud_costs"]) {
            let path = format!("benchmarking.enhanced_metrics.cloud_costs.{}", entry.key);
            let price = entry.value.number().filter(|price| Bounds::POSITIVE.contains(*price));
            let Some(price) = price else {
                if entry.value.entries().is_none() {
                    let message = format!("found {}, expected a price in USD per hour", entry.value.describe());
                    self.diagnose(Severity::Error, entry.value.at, path, message, None);
                }
                continue;
            };
            // `nvidia_h100_8gpu_per_hour` is the price of eight GPUs. Without a number in the key, it is the price of
            // all GPUs of the platform.
            for platform in platforms.iter_mut().filter(|platform| refers_to(&entry.key, platform)) {
                let gpus = gpus_in_key(&entry.key).unwrap_or(platform.gpus);
                platform.usd_per_gpu_hour = Some((price / gpus, entry.value.at));
            }
        }
        for entry in self.named(root, &["benchmarking", "enhanced_metrics", "hardware_specs"]) {
            let path = format!("benchmarking.enhanced_metrics.hardware_specs.{}", entry.key);
            let Some(mut fields) = Fields::open(self.file, path, &entry.value, self.problems) else { continue };
            let peaks = ["peak_tflops_fp8", "peak_tflops_fp16", "peak_tflops_bf16", "peak_tflops_fp32"];
            for known in peaks.into_iter().chain(["tdp_watts", "memory_gb", "memory_bandwidth_gbps"]) {
                fields.number(known, Bounds::POSITIVE);
            }
            fields.text("interconnect");
            fields.finish();
            for platform in platforms.iter_mut().filter(|platform| refers_to(&entry.key, platform)) {
                platform.specs = Some(entry.value.clone());
            }
        }
    }

    pub(super) fn unknown(&mut self, entry: &Entry, path: &str, kind: &str, known: &[String]) {
        let near = did_you_mean(&entry.key, known.iter().map(String::as_str));
        let message = format!("no {kind} `{}` in this document; expected one of {}", entry.key, known.join(", "));
        self.diagnose(Severity::Error, entry.key_at, path.to_owned(), message, near);
    }
}

fn training(fields: &mut Fields<'_>) -> Training {
    let mut out = Training::default();
    let needed = ["micro_batch_size", "global_batch_size", "seq_length"];
    fields.required_map("data", &needed, |data| {
        out.micro = data.required_number("micro_batch_size", RANK);
        out.global = data.required_number("global_batch_size", Bounds::COUNT);
        out.sequence = data.required_number("seq_length", Bounds::COUNT);
        data.all();
    });
    fields.map("duration", |duration| {
        let steps = duration.number("max_steps", Bounds { max: 1e12, ..Bounds::COUNT });
        let iterations = duration.number("train_iters", Bounds { max: 1e12, ..Bounds::COUNT });
        if let (Some(steps), Some(iterations)) = (steps, iterations)
            && steps != iterations
        {
            duration.warn("train_iters", format!("found {iterations}, but max_steps is {steps}, which is used"), None);
        }
        out.steps = steps.or(iterations);
        duration.all();
    });
    fields.map("optimizer", |optimizer| {
        out.learning_rate = optimizer.number("learning_rate", NONZERO);
        for known in ["min_learning_rate", "weight_decay", "beta1", "beta2", "eps", "clip_grad"] {
            optimizer.number(known, Bounds::POSITIVE);
        }
        optimizer.number("warmup_steps", Bounds::NATURAL);
        optimizer.all();
    });
    fields.map("precision", |precision| {
        out.precision = format_of(precision, "default");
        for known in ["fp8_hybrid", "fp8_param"] {
            precision.boolean(known);
        }
        precision.all();
    });
    fields.all();
    out
}

/// Reads a number format. Returns it with its position.
fn format_of(fields: &mut Fields<'_>, key: &'static str) -> Option<(Format, Position)> {
    let node = fields.node(key)?;
    let found = node.text().and_then(Format::named);
    if found.is_none() {
        let names = Format::NAMES.join(", ");
        fields.error(key, format!("found {}, expected one of {names}", node.describe()), None);
    }
    Some((found?, node.at))
}

/// Whether a key such as `nvidia_h100_8gpu_per_hour` refers to `platform`.
fn refers_to(key: &str, platform: &Platform) -> bool {
    let key = key.to_lowercase();
    let model = platform.gpu_model.to_lowercase();
    // Words that identify a GPU, such as `H100` or `MI300X`.
    let mut identifying = model.split(|c: char| !c.is_alphanumeric()).filter(|word| {
        word.starts_with(char::is_alphabetic) && word.contains(|c: char| c.is_ascii_digit()) && !word.starts_with("hbm")
    });
    key == platform.key.to_lowercase() || identifying.any(|word| key.split('_').any(|part| part == word))
}

/// Returns the number of GPUs in a key such as `nvidia_h100_8gpu_per_hour`.
fn gpus_in_key(key: &str) -> Option<f64> {
    key.split('_').find_map(|part| part.strip_suffix("gpus").or(part.strip_suffix("gpu"))?.parse().ok())
}
