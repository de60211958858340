//! Decoding and checking the experiment document.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Experiment, From};
use crate::plan::{Format, Methodology};
use crate::spec::decode::{Bounds, Fields, nearest};
use crate::spec::node::{Entry, Position};
use crate::spec::{Diagnostic, Diagnostics, Node, Severity};

/// One of `hardware.platforms`.
#[derive(Debug, Clone, PartialEq)]
pub struct Platform {
    /// Its key: nvidia, amd.
    pub key: String,
    /// Where its entry stands.
    pub at: Position,
    /// `gpu_model`.
    pub gpu_model: String,
    /// `memory_per_gpu_gb`; the catalog's where it is silent.
    pub memory_gb: Option<f64>,
    /// `num_gpus`: of all nodes.
    pub gpus: f64,
    /// `num_nodes`, or what `gpus_per_node` makes of them.
    pub nodes: f64,
    /// `software_stack`.
    pub stack: Option<String>,
    /// `framework`.
    pub framework: Option<String>,
    /// Its `platform_optimizations`.
    pub optimisations: Optimisations,
    /// USD per GPU and hour, by `benchmarking.enhanced_metrics.cloud_costs`, and where that stands.
    pub usd_per_gpu_hour: Option<(f64, Position)>,
    /// Its entry of `benchmarking.enhanced_metrics.hardware_specs`.
    pub specs: Option<Node>,
}

/// One of `platform_optimizations`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Optimisations {
    /// `precision`; fp8 where `fp8_hybrid` is on.
    pub precision: Option<(Format, Position)>,
    /// `activation_checkpointing` or `gradient_checkpointing`.
    pub checkpointing: Option<(bool, Position)>,
}

/// One of `models`.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Its key: llama, qwen.
    pub key: String,
    /// Where its entry stands.
    pub at: Position,
    /// `name`: llama3.1_8b.
    pub name: String,
    /// `full_name`: Llama 3.1 8B.
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

/// `training`, as far as an engine needs it.
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

/// Parallelism of one model on one platform under one methodology.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// The methodology.
    pub methodology: Methodology,
    /// Key of the model.
    pub model: String,
    /// Key of the platform.
    pub platform: String,
    /// The entry as written.
    pub node: Node,
    /// The name of the methodology as written, for paths.
    pub written: String,
    /// Tensor-parallel ranks.
    pub tp: f64,
    /// Pipeline stages.
    pub pp: f64,
    /// Data-parallel replicas.
    pub dp: f64,
    /// Context-parallel ranks.
    pub cp: Option<f64>,
    /// Expert-parallel ranks.
    pub ep: Option<f64>,
    /// Model chunks of a stage.
    pub vpp: Option<f64>,
    /// Sequence parallelism.
    pub sp: Option<bool>,
    /// Micro-batches of a replica in a step, where the document says it.
    pub accumulation: Option<f64>,
}

/// Long and short spellings of a rank.
const RANKS: [(&str, &[&str]); 7] = [
    ("tp", &["tensor_model_parallel_size", "tensor_parallel_size", "TP", "tp"]),
    ("pp", &["pipeline_model_parallel_size", "pipeline_parallel_size", "PP", "pp"]),
    ("dp", &["data_parallel_size", "DP", "dp"]),
    ("cp", &["context_parallel_size", "CP", "cp"]),
    ("ep", &["expert_model_parallel_size", "expert_parallel_size", "EP", "ep"]),
    ("vpp", &["virtual_pipeline_model_parallel_size", "VPP", "vpp"]),
    ("ga", &["gradient_accumulation_steps", "GA", "ga"]),
];

impl Layout {
    /// The node of a rank under whichever of its spellings stands there.
    #[must_use]
    pub fn of(&self, rank: &str) -> Option<&Node> {
        let (_, spellings) = RANKS.iter().find(|(name, _)| *name == rank)?;
        spellings.iter().find_map(|spelling| self.node.get(spelling)).filter(|node| !node.is_null())
    }
}

const RANK: Bounds = Bounds { max: 1e6, ..Bounds::COUNT };
const ABOVE: Bounds = Bounds { min: 1e-9, ..Bounds::POSITIVE };

struct Reader<'a> {
    file: &'a Arc<str>,
    problems: &'a mut Diagnostics,
}

pub(super) fn read(
    file: &Arc<str>,
    root: Node,
    from: BTreeMap<String, From>,
    problems: &mut Diagnostics,
) -> Experiment {
    let mut reader = Reader { file, problems };
    let (methodology, training) = reader.top(&root);
    let mut platforms = reader.platforms(&root);
    let models = reader.models(&root);
    reader.optimisations(&root, &mut platforms);
    reader.benchmarking(&root, &mut platforms);
    let layouts = reader.layouts(&root, &platforms, &models);
    let experiment =
        Experiment { file: Arc::clone(file), root, from, methodology, platforms, models, training, layouts };
    reader.check(&experiment);
    experiment
}

impl Reader<'_> {
    fn complain(&mut self, severity: Severity, at: Position, path: String, message: String, help: Option<String>) {
        let file = Arc::clone(self.file);
        self.problems.push(Diagnostic { severity, file, at, path, message, help });
    }

    /// The sections, what must be there, and what is read where it stands.
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
        // What the comparison tool does where nobody says.
        (methodology.flatten().unwrap_or(Methodology::MaximumPerformance), training.unwrap_or_default())
    }

    /// The entries of a mapping of free names; complains where it is something else.
    fn named<'n>(&mut self, root: &'n Node, path: &[&str]) -> &'n [Entry] {
        let Some(node) = root.at_path(path).filter(|node| !node.is_null()) else { return &[] };
        node.entries().unwrap_or_else(|| {
            let message = format!("found {}, expected a mapping of names", node.describe());
            self.complain(Severity::Error, node.at, path.join("."), message, None);
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
        let memory_gb = fields.number("memory_per_gpu_gb", Bounds { max: 1e6, ..ABOVE });
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
                let message = format!("{nodes} nodes of {each} GPUs are {}, not the {gpus} of num_gpus", nodes * each);
                fields.error("num_nodes", message, None);
            }
            let nodes = num_nodes.or_else(|| per_node.map(|each| gpus / each));
            // Where nobody says, nodes are of eight.
            nodes.unwrap_or(if gpus > 8.0 && gpus % 8.0 == 0.0 { gpus / 8.0 } else { 1.0 })
        });
        if let (Some(gpus), Some(nodes)) = (gpus, nodes)
            && ((gpus / nodes).fract() != 0.0 || nodes.fract() != 0.0)
        {
            let key = if num_nodes.is_some() { "num_nodes" } else { "gpus_per_node" };
            fields.error(key, format!("{gpus} GPUs do not make whole nodes: {nodes} of {}", gpus / nodes), None);
        }
        let at = entry.key_at;
        fields.finish();
        if self.problems.errors() > before {
            return None;
        }
        Some(Platform {
            key: entry.key.clone(),
            at,
            gpu_model: gpu_model?,
            memory_gb,
            gpus: gpus?,
            nodes: nodes?,
            stack,
            framework,
            optimisations: Optimisations::default(),
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
        let parameters = fields.number("num_parameters", ABOVE);
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
            let message = format!("{heads} heads do not divide a hidden size of {hidden}");
            fields.error("num_attention_heads", message, None);
        }
        fields.finish();
        if self.problems.errors() > before {
            return None;
        }
        Some(Model {
            key: entry.key.clone(),
            at: entry.key_at,
            name: name?,
            full_name,
            parameters,
            layers,
            hidden,
            heads,
        })
    }

    fn optimisations(&mut self, root: &Node, platforms: &mut [Platform]) {
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
            let found = Optimisations {
                precision: hybrid.or(precision),
                checkpointing: on.or(checkpointing.into_iter().flatten().next()),
            };
            if let Some(platform) = platform {
                platform.optimisations = found;
            }
        }
    }

    /// Prices and datasheet figures of `benchmarking.enhanced_metrics`.
    fn benchmarking(&mut self, root: &Node, platforms: &mut [Platform]) {
        for entry in self.named(root, &["benchmarking", "enhanced_metrics", "cloud_costs"]) {
            let path = format!("benchmarking.enhanced_metrics.cloud_costs.{}", entry.key);
            let price = entry.value.number().filter(|price| Bounds::POSITIVE.allow(*price));
            let Some(price) = price else {
                if entry.value.entries().is_none() {
                    let message = format!("found {}, expected dollars an hour", entry.value.describe());
                    self.complain(Severity::Error, entry.value.at, path, message, None);
                }
                continue;
            };
            // nvidia_h100_8gpu_per_hour: of so many GPUs; without a number, of all that the platform has.
            for platform in platforms.iter_mut().filter(|platform| means(&entry.key, platform)) {
                let gpus = gpus_of(&entry.key).unwrap_or(platform.gpus);
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
            for platform in platforms.iter_mut().filter(|platform| means(&entry.key, platform)) {
                platform.specs = Some(entry.value.clone());
            }
        }
    }

    fn unknown(&mut self, entry: &Entry, path: &str, kind: &str, known: &[String]) {
        let near = nearest(&entry.key, known.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?"));
        let message = format!("no {kind} `{}` in this document; there are {}", entry.key, known.join(", "));
        self.complain(Severity::Error, entry.key_at, path.to_owned(), message, near);
    }

    fn layouts(&mut self, root: &Node, platforms: &[Platform], models: &[Model]) -> Vec<Layout> {
        let platform_keys: Vec<String> = platforms.iter().map(|platform| platform.key.clone()).collect();
        let model_keys: Vec<String> = models.iter().map(|model| model.key.clone()).collect();
        let mut layouts = Vec::new();
        for method in self.named(root, &["parallelism"]) {
            let path = format!("parallelism.{}", method.key);
            let Some(methodology) = Methodology::named(&method.key) else {
                let message = "found a methodology that is neither maximum_performance nor identical_config";
                self.complain(Severity::Error, method.key_at, path, message.to_owned(), None);
                continue;
            };
            for model in self.named(root, &["parallelism", &method.key]) {
                // Models and platforms that were left out for errors of their own are not unknown.
                let declared =
                    |path: &[&str], key: &str| root.at_path(path).is_some_and(|node| node.get(key).is_some());
                let path = format!("{path}.{}", model.key);
                if !declared(&["models"], &model.key) {
                    self.unknown(model, &path, "model", &model_keys);
                    continue;
                }
                for platform in self.named(root, &["parallelism", &method.key, &model.key]) {
                    let path = format!("{path}.{}", platform.key);
                    if !declared(&["hardware", "platforms"], &platform.key) {
                        self.unknown(platform, &path, "platform", &platform_keys);
                        continue;
                    }
                    let names = (method.key.as_str(), model.key.as_str(), platform.key.as_str());
                    layouts.extend(self.layout(methodology, names, path, &platform.value));
                }
            }
        }
        layouts
    }

    fn layout(
        &mut self,
        methodology: Methodology,
        (written, model, platform): (&str, &str, &str),
        path: String,
        node: &Node,
    ) -> Option<Layout> {
        let before = self.problems.errors();
        let mut fields = Fields::open(self.file, path, node, self.problems)?;
        let mut ranks = RANKS.iter().map(|(name, spellings)| {
            let value = spellings.iter().find_map(|spelling| fields.number(spelling, RANK));
            (*name, spellings.first().copied().unwrap_or_default(), value)
        });
        let ranks: Vec<(&str, &str, Option<f64>)> = ranks.by_ref().collect();
        let of = |rank: &str| ranks.iter().find(|(name, ..)| *name == rank).and_then(|(.., value)| *value);
        for (name, spelling, value) in ranks.iter().filter(|(name, ..)| matches!(*name, "tp" | "pp" | "dp")) {
            let spelt = RANKS.iter().find(|(known, _)| known == name).map_or(&[] as &[&str], |(_, all)| all);
            if value.is_none() && !spelt.iter().any(|spelling| fields.has(spelling)) {
                fields.missing(spelling);
            }
        }
        let sp = ["sequence_parallel", "SP", "sp"].into_iter().find_map(|spelling| fields.boolean(spelling));
        fields.text("notes");
        fields.finish();
        if self.problems.errors() > before {
            return None;
        }
        Some(Layout {
            methodology,
            model: model.to_owned(),
            platform: platform.to_owned(),
            node: node.clone(),
            written: written.to_owned(),
            tp: of("tp")?,
            pp: of("pp")?,
            dp: of("dp")?,
            cp: of("cp"),
            ep: of("ep"),
            vpp: of("vpp"),
            sp,
            accumulation: of("ga"),
        })
    }

    /// What only the whole shows: ranks against GPUs, batches against ranks, layers against stages.
    fn check(&mut self, experiment: &Experiment) {
        for layout in &experiment.layouts {
            let path = format!("parallelism.{}.{}.{}", layout.written, layout.model, layout.platform);
            let at = |rank: &str| layout.of(rank).map_or(layout.node.at, |node| node.at);
            let Layout { tp, pp, dp, .. } = *layout;
            let cp = layout.cp.unwrap_or(1.0);
            if let Some(platform) = experiment.platforms.iter().find(|platform| platform.key == layout.platform)
                && tp * pp * dp * cp != platform.gpus
            {
                let with_cp = if cp > 1.0 { format!(" x CP {cp}") } else { String::new() };
                let message = format!(
                    "TP {tp} x PP {pp} x DP {dp}{with_cp} = {}, but {} has {} GPUs",
                    tp * pp * dp * cp,
                    platform.key,
                    platform.gpus
                );
                let fits = platform.gpus / (tp * pp * cp);
                let help = (fits.fract() == 0.0).then(|| format!("with DP {fits} they would be as many"));
                self.complain(Severity::Error, layout.node.at, path.clone(), message, help);
            }
            if let (Some(global), Some(micro)) = (experiment.training.global, experiment.training.micro) {
                let steps = global / (micro * dp);
                match layout.accumulation {
                    Some(accumulation) if micro * dp * accumulation != global => {
                        let message = format!(
                            "MBS {micro} x DP {dp} x GA {accumulation} = {}, but the global batch is {global}",
                            micro * dp * accumulation
                        );
                        let help = (steps.fract() == 0.0).then(|| format!("with GA {steps} they would agree"));
                        self.complain(Severity::Error, at("ga"), path.clone(), message, help);
                    }
                    None if steps.fract() != 0.0 => {
                        let message = format!(
                            "a global batch of {global} is no multiple of MBS {micro} x DP {dp} = {}",
                            micro * dp
                        );
                        self.complain(Severity::Error, at("dp"), path.clone(), message, None);
                    }
                    _ => {}
                }
            }
        }
        self.check_completeness(experiment);
    }

    /// Every model on every platform, under the methodology in force.
    fn check_completeness(&mut self, experiment: &Experiment) {
        if experiment.root.get("parallelism").is_none() {
            return;
        }
        for model in &experiment.models {
            for platform in &experiment.platforms {
                let declared = experiment.root.get("parallelism").and_then(Node::entries).unwrap_or_default();
                let of = |method: &&Entry| Methodology::named(&method.key) == Some(experiment.methodology);
                let found =
                    declared.iter().find(of).and_then(|method| method.value.at_path(&[&model.key, &platform.key]));
                if found.is_none() {
                    let path = format!("parallelism.{}.{}", experiment.methodology.name().replace('-', "_"), model.key);
                    let message = format!("says nothing of {}: one replica on each of its GPUs is taken", platform.key);
                    self.complain(Severity::Warning, model.at, path, message, None);
                }
            }
        }
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
        out.learning_rate = optimizer.number("learning_rate", ABOVE);
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

/// A number format, and where it stands.
fn format_of(fields: &mut Fields<'_>, key: &'static str) -> Option<(Format, Position)> {
    let node = fields.node(key)?;
    let found = node.text().and_then(Format::named);
    if found.is_none() {
        let names = Format::NAMES.join(", ");
        fields.error(key, format!("found {}, expected one of {names}", node.describe()), None);
    }
    Some((found?, node.at))
}

/// Whether a key such as `nvidia_h100_8gpu_per_hour` means a platform.
fn means(key: &str, platform: &Platform) -> bool {
    let key = key.to_lowercase();
    let model = platform.gpu_model.to_lowercase();
    // H100, MI300X: the words of a GPU's name that tell it from others.
    let mut telling = model.split(|c: char| !c.is_alphanumeric()).filter(|word| {
        word.starts_with(char::is_alphabetic) && word.contains(|c: char| c.is_ascii_digit()) && !word.starts_with("hbm")
    });
    key == platform.key.to_lowercase() || telling.any(|word| key.split('_').any(|part| part == word))
}

/// The GPUs of which a key such as `nvidia_h100_8gpu_per_hour` tells the price.
fn gpus_of(key: &str) -> Option<f64> {
    key.split('_').find_map(|part| part.strip_suffix("gpus").or(part.strip_suffix("gpu"))?.parse().ok())
}
