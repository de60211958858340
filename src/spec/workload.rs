//! Workloads: a model put to work, with its schedule of phases.

use std::sync::Arc;

use super::Origin;
use super::decode::{Bounds, Fields, nearest};
use super::diagnostic::{Diagnostic, Diagnostics, Severity};
use super::node::Node;

/// Training or inference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Weights are learned; throughput and step time matter.
    Training,
    /// Requests are served; latency matters too.
    Inference,
}

impl Mode {
    /// `training` or `inference`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Training => "training",
            Mode::Inference => "inference",
        }
    }
}

/// A model put to work.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Unique name.
    pub name: Arc<str>,
    /// Key into the model catalog.
    pub model: Option<String>,
    /// gpt, llama …
    pub model_family: Option<String>,
    /// pytorch, jax …
    pub framework: Option<String>,
    /// Vocabulary size.
    pub vocab_size: Option<f64>,
    /// Attention heads.
    pub n_heads: Option<f64>,
    /// Numeric format of the weights.
    pub precision_weights: Option<String>,
    /// Numeric format of the activations.
    pub precision_activations: Option<String>,
    /// The track runs are filed under.
    pub track: Option<String>,
    /// Minutes of a run without a schedule, and of phases that do not say.
    pub duration_minutes: Option<f64>,
    /// What the whole workload is, without any phase's overrides.
    pub shape: Shape,
    /// The knobs the file sets.
    pub tuning: Tuning,
    /// The schedule; empty without one.
    pub phases: Arc<[PhaseSpec]>,
    /// One line about the workload.
    pub description: Option<String>,
    /// Sources and caveats.
    pub notes: Option<String>,
    /// Where it was written.
    pub origin: Origin,
    /// The entry as written, unknown keys included.
    pub document: Arc<Node>,
}

/// What the semi-empirical model needs of a workload or one of its phases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Training or inference.
    pub mode: Mode,
    /// Tensor-parallel ranks.
    pub tp: f64,
    /// Pipeline stages.
    pub pp: f64,
    /// Data-parallel replicas.
    pub dp: f64,
    /// Prompt tokens per sequence (ISL); the whole sequence in training.
    pub prompt: f64,
    /// Generated tokens per sequence (OSL).
    pub generate: f64,
    /// Hidden size.
    pub hidden: f64,
    /// Layers.
    pub layers: f64,
}

/// `runtime_tuning`: the knobs a workload's file sets.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tuning {
    /// Sequences per device and step.
    pub microbatch: Option<f64>,
    /// Whether kernels are launched as captured graphs.
    pub cuda_graphs: Option<bool>,
    /// Whether NICs read accelerator memory directly.
    pub gpudirect_rdma: Option<bool>,
    /// `bare` or `sriov`.
    pub virt: Option<String>,
    /// The fabric between accelerators.
    pub fabric: Option<Arc<str>>,
}

/// One phase of a schedule, its overrides already merged in.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseSpec {
    /// Its name; `phase_1` … where the file gives none.
    pub name: Arc<str>,
    /// Index in the file's list: phase `i` draws its noise from `seed + i`.
    pub index: u32,
    /// Minutes it lasts: its weight in the aggregate.
    pub minutes: f64,
    /// The workload with the overrides merged in.
    pub shape: Shape,
    /// Which numbers of `shape` the overrides set, so that a knob leaves them alone.
    pub pinned: Pinned,
    /// Scale of throughput.
    pub tokens_scale: Option<f64>,
    /// Scale of throughput and power.
    pub autoscale_factor: Option<f64>,
    /// Name of the request profile as written.
    pub request_profile: Option<Arc<str>>,
    /// The profile in force: the phase's, else the schedule's default, else steady state.
    pub traffic: Traffic,
    /// Explicit arrivals.
    pub arrival: Arrival,
    /// `tokens_scale`, `autoscale_factor`, `request_profile` as written, for records.
    pub settings: Arc<[Node; 3]>,
    /// `overrides` as written, for records.
    pub overrides: Arc<Node>,
}

/// Which numbers a phase's overrides pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pinned {
    /// `parallelism.tp` is overridden.
    pub tp: bool,
    /// `parallelism.pp` is overridden.
    pub pp: bool,
    /// `parallelism.dp` is overridden.
    pub dp: bool,
    /// `sequence.prompt` is overridden.
    pub prompt: bool,
    /// `sequence.generate` is overridden.
    pub generate: bool,
}

/// A request profile: how loaded and how bursty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Arrival rate over capacity.
    pub load_factor: f64,
    /// Coefficient of variation of arrivals and service.
    pub cv: f64,
}

impl Traffic {
    /// The named profiles of the founding model.
    pub const PROFILES: [(&'static str, Traffic); 4] = [
        ("steady_state", Traffic { load_factor: 0.70, cv: 1.0 }),
        ("peak", Traffic { load_factor: 0.85, cv: 1.1 }),
        ("spike", Traffic { load_factor: 1.15, cv: 1.3 }),
        ("low", Traffic { load_factor: 0.40, cv: 0.8 }),
    ];
    /// What an unnamed or unknown profile means.
    pub const STEADY: Traffic = Traffic { load_factor: 0.70, cv: 1.0 };

    fn names() -> String {
        Traffic::PROFILES.map(|(name, _)| name).join(", ")
    }

    fn named(name: &str) -> Option<Traffic> {
        Traffic::PROFILES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, traffic)| *traffic)
    }
}

/// Arrivals a phase states itself.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Arrival {
    /// Requests per second.
    pub requests_per_sec: Option<f64>,
    /// Parallel servers.
    pub servers: Option<f64>,
    /// Data-parallel replicas that serve, in place of the phase's.
    pub dp_override: Option<f64>,
    /// Coefficient of variation of the service time.
    pub service_cv: Option<f64>,
    /// Coefficient of variation of the arrivals.
    pub arrival_cv: Option<f64>,
}

impl Workload {
    /// Decodes one entry of `workloads.yaml`. Complaints go to `diagnostics`; `None` means that one is an error.
    pub fn decode(file: &Arc<str>, node: &Node, diagnostics: &mut Diagnostics) -> Option<Workload> {
        let before = diagnostics.errors();
        let label = super::library::entry_label(node, "workload");
        let mut fields = Fields::open(file, label.clone(), node, diagnostics)?;
        let name = fields.required_text("name");
        let (shape, (vocab_size, n_heads)) = read_shape(&mut fields);
        let precision = fields.map("precision", |p| {
            p.text("kv");
            p.text("optimizer");
            (p.text("weights"), p.text("activations"))
        });
        let tuning = fields.map("runtime_tuning", read_tuning).unwrap_or_default();
        let model = fields.text("model");
        let model_family = fields.text("model_family");
        let framework = fields.text("framework");
        let track = fields.text("track");
        let duration_minutes = fields.number("duration_minutes", Bounds::POSITIVE);
        let description = fields.text("description");
        let notes = fields.text("notes");
        for read_elsewhere in
            ["dataloader", "optimizer", "best_for", "source", "sharding", "recompute", "batch", "schedule"]
        {
            fields.node(read_elsewhere);
        }
        let at = fields.at();
        fields.finish();
        let phases = match (node.get("schedule"), shape) {
            (Some(schedule), Some(_)) if !schedule.is_null() => {
                Schedule { file, label: &label, workload: node, duration_minutes, diagnostics }.decode(schedule)
            }
            _ => Vec::new(),
        };
        if diagnostics.errors() > before {
            return None;
        }
        let (precision_weights, precision_activations) = precision.unwrap_or_default();
        Some(Workload {
            name: name?.into(),
            model,
            model_family,
            framework,
            vocab_size,
            n_heads,
            precision_weights,
            precision_activations,
            track,
            duration_minutes,
            shape: shape?,
            tuning,
            phases: phases.into(),
            description,
            notes,
            origin: Origin { file: Arc::clone(file), at },
            document: Arc::new(node.clone()),
        })
    }
}

const MODES: [(&str, Mode); 2] = [("training", Mode::Training), ("inference", Mode::Inference)];

/// Vocabulary size and heads: of no use to the semi-empirical model, but part of what a workload says of itself.
type Extra = (Option<f64>, Option<f64>);

/// Mode, parallelism, sequence and size: of a workload, or of a workload with a phase's overrides merged in.
fn read_shape(fields: &mut Fields<'_>) -> (Option<Shape>, Extra) {
    let written = fields.choice("mode", &MODES);
    let named = fields.text("name").is_some_and(|name| name.to_lowercase().contains("inference"));
    let mode = written.unwrap_or(if named { Mode::Inference } else { Mode::Training });
    let params = fields.required_map("params", &["hidden_size", "n_layers"], |params| {
        let hidden = params.required_number("hidden_size", Bounds { max: 1e9, ..Bounds::NATURAL });
        let layers = params.required_number("n_layers", Bounds { max: 1e6, ..Bounds::NATURAL });
        let extra = (params.number("vocab_size", Bounds::NATURAL), params.number("n_heads", Bounds::NATURAL));
        (hidden, layers, extra)
    });
    let parallelism = fields.required_map("parallelism", &["tp", "pp", "dp"], |p| {
        for optional in ["cp", "ep", "vpp", "sp"] {
            p.node(optional);
        }
        let tp = p.required_number("tp", Bounds { max: 1e6, ..Bounds::COUNT });
        let pp = p.required_number("pp", Bounds { max: 1e6, ..Bounds::COUNT });
        let dp = p.required_number("dp", Bounds { max: 1e6, ..Bounds::COUNT });
        Some((tp?, pp?, dp?))
    });
    let sequence = fields.required_map("sequence", &["prompt", "generate"], |s| {
        let prompt = s.required_number("prompt", Bounds { max: 1e9, ..Bounds::NATURAL });
        let generate = s.required_number("generate", Bounds { max: 1e9, ..Bounds::NATURAL });
        Some((prompt?, generate?))
    });
    let (hidden, layers, extra) = params.unwrap_or_default();
    let shape = || {
        let ((tp, pp, dp), (prompt, generate)) = (parallelism.flatten()?, sequence.flatten()?);
        Some(Shape { mode, tp, pp, dp, prompt, generate, hidden: hidden?, layers: layers? })
    };
    (shape(), extra)
}

fn read_tuning(fields: &mut Fields<'_>) -> Tuning {
    Tuning {
        microbatch: fields.number("microbatch", Bounds { max: 1e6, ..Bounds::COUNT }),
        cuda_graphs: fields.boolean("cuda_graphs"),
        gpudirect_rdma: fields.boolean("gpudirect_rdma"),
        virt: fields.choice("virt", &[("bare", "bare"), ("sriov", "sriov")]).map(str::to_owned),
        fabric: fields.text("fabric").map(Into::into),
    }
}

/// Reads `schedule`, merging each phase's overrides into the workload.
struct Schedule<'a> {
    file: &'a Arc<str>,
    label: &'a str,
    workload: &'a Node,
    duration_minutes: Option<f64>,
    diagnostics: &'a mut Diagnostics,
}

impl Schedule<'_> {
    fn complain(&mut self, severity: Severity, node: &Node, path: String, message: String, help: Option<String>) {
        let file = Arc::clone(self.file);
        self.diagnostics.push(Diagnostic { severity, file, at: node.at, path, message, help });
    }

    fn decode(mut self, schedule: &Node) -> Vec<PhaseSpec> {
        let path = format!("{}.schedule", self.label);
        let Some(entries) = schedule.entries() else {
            let message =
                format!("found {}, expected a mapping with `phases`; the schedule is ignored", schedule.describe());
            self.complain(Severity::Warning, schedule, path, message, None);
            return Vec::new();
        };
        for entry in entries.iter().filter(|entry| !["phases", "default_request_profile"].contains(&entry.key.as_str()))
        {
            let help = nearest(&entry.key, ["phases", "default_request_profile"])
                .map(|near| format!("did you mean `{near}`?"));
            let file = Arc::clone(self.file);
            let message = "unknown key; it is kept, and nothing reads it".to_owned();
            let path = format!("{path}.{}", entry.key);
            self.diagnostics.push(Diagnostic {
                severity: Severity::Warning,
                file,
                at: entry.key_at,
                path,
                message,
                help,
            });
        }
        let default_profile = schedule.get("default_request_profile").filter(|node| !node.is_null());
        if let Some(node) = default_profile.filter(|node| node.text().and_then(Traffic::named).is_none()) {
            let message =
                format!("found {}, which means steady_state; known are {}", node.describe(), Traffic::names());
            self.complain(Severity::Warning, node, format!("{path}.default_request_profile"), message, None);
        }
        let default_profile = default_profile.and_then(Node::text).map(str::to_owned);
        let Some(list) = schedule.get("phases").filter(|phases| !phases.is_null()) else { return Vec::new() };
        let Some(items) = list.items() else {
            let message = format!("found {}, expected a list of phases; the schedule is ignored", list.describe());
            self.complain(Severity::Warning, list, format!("{path}.phases"), message, None);
            return Vec::new();
        };
        let mut phases = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            if item.entries().is_none() {
                let message = format!("found {}, expected a mapping; the phase is skipped", item.describe());
                self.complain(Severity::Warning, item, format!("{path}.phases[{index}]"), message, None);
                continue;
            }
            phases.extend(self.phase(index, item, default_profile.as_deref()));
        }
        phases
    }

    fn phase(&mut self, index: usize, node: &Node, default_profile: Option<&str>) -> Option<PhaseSpec> {
        let path = format!("{}.schedule.phases[{index}]", self.label);
        let mut fields = Fields::open(self.file, path.clone(), node, self.diagnostics)?;
        let name = fields.text("name").unwrap_or_else(|| format!("phase_{}", index + 1));
        let minutes = fields.number("duration_minutes", Bounds::FINITE);
        let tokens_scale = fields.number("tokens_scale", Bounds::FINITE);
        let autoscale_factor = fields.number("autoscale_factor", Bounds::FINITE);
        let request_profile = fields.text("request_profile");
        for optional in ["description", "notes"] {
            fields.text(optional);
        }
        let profile = request_profile.as_deref().filter(|name| !name.is_empty()).or(default_profile);
        let traffic = match profile.map(|name| (name, Traffic::named(name))) {
            None => Traffic::STEADY,
            Some((_, Some(traffic))) => traffic,
            // An unknown default was complained about where it stands, once.
            Some((_, None)) if request_profile.as_deref().is_none_or(str::is_empty) => Traffic::STEADY,
            Some((name, None)) => {
                let names = Traffic::PROFILES.map(|(name, _)| name);
                let near = nearest(name, names).map(|near| format!("did you mean `{near}`?"));
                let message = format!("unknown profile \"{name}\" means steady_state; known are {}", names.join(", "));
                fields.warn("request_profile", message, near);
                Traffic::STEADY
            }
        };
        let arrival = fields.map("arrival", read_arrival).unwrap_or_default();
        // An empty list is how some write "none".
        let written = fields.node("overrides").filter(|node| !node.items().is_some_and(<[Node]>::is_empty));
        let overrides = written.cloned().unwrap_or_else(|| Node::synthetic(super::Value::Map(Vec::new())));
        fields.finish();
        if minutes.is_none() && self.duration_minutes.is_none() {
            let message = "no duration: neither the phase nor the workload has duration_minutes".to_owned();
            self.complain(Severity::Error, node, path.clone(), message, Some("add duration_minutes".to_owned()));
        }
        let merged = self.workload.merged(&overrides);
        // Only the shape is read here, so keys it does not know are no news: the whole workload warned about them.
        let mut scratch = Diagnostics::new();
        let shape =
            Fields::open(self.file, format!("{path}.overrides"), &merged, &mut scratch).and_then(|mut fields| {
                let (shape, _) = read_shape(&mut fields);
                fields.finish();
                shape
            });
        for problem in scratch.iter().filter(|problem| problem.severity == Severity::Error) {
            self.diagnostics.push(problem.clone());
        }
        let raw = |key: &str| node.get(key).cloned().unwrap_or_else(|| Node::synthetic(super::Value::Null));
        let pins = |path: &[&str]| overrides.at_path(path).is_some();
        Some(PhaseSpec {
            name: name.into(),
            index: u32::try_from(index).unwrap_or(u32::MAX),
            minutes: minutes.filter(|minutes| *minutes > 0.0).or(self.duration_minutes).unwrap_or_default(),
            shape: shape?,
            pinned: Pinned {
                tp: pins(&["parallelism", "tp"]),
                pp: pins(&["parallelism", "pp"]),
                dp: pins(&["parallelism", "dp"]),
                prompt: pins(&["sequence", "prompt"]),
                generate: pins(&["sequence", "generate"]),
            },
            tokens_scale,
            autoscale_factor,
            request_profile: request_profile.map(Into::into),
            traffic,
            arrival,
            settings: Arc::new([raw("tokens_scale"), raw("autoscale_factor"), raw("request_profile")]),
            overrides: Arc::new(overrides),
        })
    }
}

fn read_arrival(fields: &mut Fields<'_>) -> Arrival {
    // The founding model takes a positive whole number here and ignores anything else; so do we, and say so.
    let dp_override = match fields.node("dp_override").map(|node| &node.value) {
        #[expect(clippy::cast_precision_loss, reason = "replicas are few")]
        Some(super::Value::Int(dp)) if *dp > 0 => Some(*dp as f64),
        _ => None,
    };
    if dp_override.is_none() && fields.node("dp_override").is_some() {
        fields.warn("dp_override", "expected a positive whole number; the phase's dp is used", None);
    }
    let servers = fields.number("servers", Bounds { max: 1e9, ..Bounds::POSITIVE });
    if servers.is_some_and(|servers| servers.fract() != 0.0) {
        fields.warn("servers", "expected a whole number; the fraction is dropped", None);
    }
    Arrival {
        requests_per_sec: fields.number("requests_per_sec", Bounds::POSITIVE),
        servers: servers.map(f64::floor),
        dp_override,
        service_cv: fields.number("service_cv", Bounds::POSITIVE),
        arrival_cv: fields.number("arrival_cv", Bounds::POSITIVE),
    }
}
