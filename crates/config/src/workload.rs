//! Workloads: training or serving of a model, with its schedule of phases.

use std::sync::Arc;

mod plan;
mod post_training;
mod schedule;

pub use atlas_core::mode::Mode;
pub use atlas_core::plan_spec::{PlanSpec, PoolSpec};
pub use post_training::{PostTrainingMethod, PostTrainingSpec};

use self::schedule::Schedule;
use crate::read_field::{ReadField as _, read_section};
use atlas_catalog::Model;
use atlas_catalog::software::{Software, SoftwareError};
use atlas_core::count::Count;
use atlas_core::field::{FileLocation, Knob};
use atlas_document::Origin;
use atlas_document::decode::{Bounds, Fields};
use atlas_document::diagnostic::{Diagnostic, Diagnostics, Severity};
use atlas_document::node::Node;

/// A workload: training or serving of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Unique name.
    pub name: Arc<str>,
    /// Key into the model catalog.
    pub model: Option<String>,
    /// Model family: gpt, llama …
    pub model_family: Option<String>,
    /// Inline definition of the model, in the form of a catalog entry; takes precedence over `model`.
    pub architecture: Option<Arc<Model>>,
    /// Training framework or serving engine, with its release if stated: `vllm@0.11`. Also read from `framework` and
    /// `serving.engine`.
    pub software: Option<Arc<str>>,
    /// Vocabulary size.
    pub vocab_size: Option<Count>,
    /// Attention heads.
    pub n_heads: Option<Count>,
    /// Key and value heads.
    pub n_kv_heads: Option<Count>,
    /// Width of the MLP.
    pub ffn_hidden_size: Option<Count>,
    /// Numeric format of the weights.
    pub precision_weights: Option<String>,
    /// Numeric format of the activations.
    pub precision_activations: Option<String>,
    /// Track to which the runs belong.
    pub track: Option<String>,
    /// Duration of a run without a schedule, and of phases without a duration, minutes.
    pub duration_minutes: Option<f64>,
    /// Inputs without the overrides of phases.
    pub shape: Shape,
    /// Options of the run as stated: batch, sharding, formats, serving software.
    pub plan: PlanSpec,
    /// Knobs set in the file.
    pub tuning: Tuning,
    /// The predecessor dashboard's description of the model.
    pub benchboard: Option<Benchboard>,
    /// The post-training step that contains the optimizer step, if there is one.
    pub post_training: Option<PostTrainingSpec>,
    /// Phases of the schedule; empty without one.
    pub phases: Arc<[PhaseSpec]>,
    /// Description, one line.
    pub description: Option<String>,
    /// Sources and caveats.
    pub notes: Option<String>,
    /// Location of the entry.
    pub origin: Origin,
    /// The entry as written, including unknown keys.
    pub document: Arc<Node>,
}

/// Inputs of the semi-empirical model from a workload or one of its phases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Training or inference.
    pub mode: Mode,
    /// Tensor-parallel ranks.
    pub tp: Count,
    /// Pipeline stages.
    pub pp: Count,
    /// Data-parallel replicas.
    pub dp: Count,
    /// Prompt tokens per sequence (ISL); the sequence length in training.
    pub prompt: f64,
    /// Output tokens per sequence (OSL).
    pub generate: f64,
    /// Hidden size; [`Count::ZERO`] if it is determined by the model.
    pub hidden: Count,
    /// Layers; [`Count::ZERO`] if it is determined by the model.
    pub layers: Count,
}

/// `runtime_tuning`: knobs set in a workload's file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tuning {
    /// Sequences per device and step.
    pub microbatch: Option<Count>,
    /// Whether kernels are launched as captured graphs.
    pub cuda_graphs: Option<bool>,
    /// Whether NICs access accelerator memory directly.
    pub gpudirect_rdma: Option<bool>,
    /// `bare` for bare metal or `sriov`.
    pub virt: Option<String>,
    /// The fabric between accelerators.
    pub fabric: Option<Arc<str>>,
}

/// A model as described by the predecessor dashboard, as far as its estimator uses it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Benchboard {
    /// Parameters, billions.
    pub parameters: Option<f64>,
    /// Hidden size; if missing, it is ignored for compute and guessed for memory.
    pub hidden_size: Option<f64>,
    /// Number of layers; if missing, it is ignored for compute and guessed for memory.
    pub num_layers: Option<f64>,
}

impl Benchboard {
    fn read(fields: &mut Fields<'_>) -> Benchboard {
        for kept in ["id", "scenario", "description", "name", "architectureType", "precision", "targetMetric"] {
            fields.text(kept);
        }
        let kept = ["contextLength", "numHeads", "vocabularySize", "numExperts", "gradientAccumulationSteps"];
        for kept in kept.into_iter().chain(["microBatchSize"]) {
            fields.number(kept, Bounds::POSITIVE);
        }
        fields.boolean("sequenceParallel");
        Benchboard {
            parameters: fields.number("parameters", Bounds::POSITIVE),
            hidden_size: fields.number("hiddenSize", Bounds::POSITIVE),
            num_layers: fields.number("numLayers", Bounds::POSITIVE),
        }
    }
}

/// A phase of a schedule, with its overrides merged.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseSpec {
    /// Name; `phase_1` … by default.
    pub name: Arc<str>,
    /// Index in the file's list. The noise of phase `i` has the seed `seed + i`.
    pub index: u32,
    /// Duration, minutes: the weight of the phase in the aggregate.
    pub minutes: f64,
    /// Inputs with the overrides merged.
    pub shape: Shape,
    /// Options of the run with the overrides merged.
    pub plan: PlanSpec,
    /// Factor on throughput.
    pub tokens_scale: Option<f64>,
    /// Factor on throughput and power.
    pub autoscale_factor: Option<f64>,
    /// Name of the request profile, as written.
    pub request_profile: Option<Arc<str>>,
    /// Effective request profile: that of the phase, else the schedule's default, else steady state.
    pub traffic: Traffic,
    /// Explicitly stated arrivals.
    pub arrival: Arrival,
    /// `tokens_scale`, `autoscale_factor`, `request_profile` as written, for records.
    pub settings: Arc<[Node; 3]>,
    /// `overrides` as written, for records.
    pub overrides: Arc<Node>,
}

/// A request profile: load and burstiness.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Ratio of arrival rate to capacity.
    pub load_factor: f64,
    /// Coefficient of variation of arrivals and service times.
    pub cv: f64,
}

impl Traffic {
    /// Named profiles of the predecessor model.
    pub const PROFILES: [(&'static str, Traffic); 4] = [
        ("steady_state", Traffic { load_factor: 0.70, cv: 1.0 }),
        ("peak", Traffic { load_factor: 0.85, cv: 1.1 }),
        ("spike", Traffic { load_factor: 1.15, cv: 1.3 }),
        ("low", Traffic { load_factor: 0.40, cv: 0.8 }),
    ];
    /// Default profile, also used for unknown names.
    pub const STEADY: Traffic = Traffic { load_factor: 0.70, cv: 1.0 };

    fn names() -> String {
        Traffic::PROFILES.map(|(name, _)| name).join(", ")
    }

    fn named(name: &str) -> Option<Traffic> {
        Traffic::PROFILES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, traffic)| *traffic)
    }
}

/// Arrivals stated in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Arrival {
    /// Requests per second.
    pub requests_per_sec: Option<f64>,
    /// Number of parallel servers.
    pub servers: Option<Count>,
    /// Number of serving replicas; overrides that of the phase.
    pub dp_override: Option<Count>,
    /// Coefficient of variation of the service time.
    pub service_cv: Option<f64>,
    /// Coefficient of variation of the arrivals.
    pub arrival_cv: Option<f64>,
}

/// Help for a name that files of the predecessor tools state freely.
const GENERIC_SOFTWARE: &str = "generic software is assumed";

/// Describes why a text denotes no known software.
fn unknown_software(text: &str) -> Option<String> {
    Software::parse(text).err().map(|error: SoftwareError| error.to_string())
}

/// Whether two names denote the same software, of any release. A name that the catalog does not have is reported where
/// it is used.
fn same_family(one: &str, other: &str) -> bool {
    let family = |name| Software::find(name).map(|found| found.family.id.clone());
    family(one).zip(family(other)).is_none_or(|(one, other)| one == other)
}

impl Workload {
    /// Decodes an entry of `workloads.yaml`. Adds problems to `diagnostics`; returns `None` if any is an error.
    pub fn decode(file: &Arc<str>, node: &Node, diagnostics: &mut Diagnostics) -> Option<Workload> {
        let before = diagnostics.errors();
        let label = atlas_document::sources::entry_label(node, "workload");
        let mut fields = Fields::open(file, label.clone(), node, diagnostics)?;
        fields.set_help(unknown_key_help);
        let name = fields.required_text("name");
        let (shape, mut plan, ArchitectureFields { vocab_size, n_heads, n_kv_heads, ffn_hidden_size, precision }) =
            read_shape(&mut fields);
        let tuning = fields.map("runtime_tuning", |tuning| {
            read_section(&mut plan, tuning, &["runtime_tuning"]);
            read_tuning(tuning)
        });
        let tuning = tuning.unwrap_or_default();
        plan.graphs = tuning.cuda_graphs;
        let benchboard = fields.map("benchboard", Benchboard::read);
        let post_training = fields.map("post_training", PostTrainingSpec::read);
        let model_family = fields.text("model_family");
        let framework = fields.text("framework");
        let server = fields.text("server");
        let software = fields.text("software");
        for (key, severity) in
            [("software", Severity::Error), ("server", Severity::Warning), ("framework", Severity::Warning)]
        {
            if let Some(problem) = fields.peek(key).and_then(Node::text).and_then(unknown_software) {
                match severity {
                    Severity::Error => fields.error(key, problem, None),
                    Severity::Warning => fields.warn(key, problem, Some(GENERIC_SOFTWARE.to_owned())),
                }
            }
        }
        let engine = fields.peek("serving").and_then(|serving| serving.get("engine"));
        let unknown_engine = engine.and_then(|engine| Some((engine.at, unknown_software(engine.text()?)?)));
        let server = server.or_else(|| engine.and_then(Node::text).map(str::to_owned));
        if let (Some(software), Some(server)) = (&software, &server)
            && !same_family(software, server)
        {
            let key = if fields.peek("server").is_some() { "server" } else { "serving" };
            fields.warn(key, format!("found {server}, which has no effect: the software is {software}"), None);
        }
        let software = software.or(server).or(framework);
        let architecture = fields.node("architecture").map(|written| {
            let mut found = Diagnostics::new();
            let model = Model::decode(file, written, &mut found);
            (model, found)
        });
        let track = fields.text("track");
        let duration_minutes = fields.number("duration_minutes", Bounds::POSITIVE);
        let description = fields.text("description");
        let notes = fields.text("notes");
        for read_elsewhere in ["dataloader", "best_for", "source", "schedule", "read_from"] {
            fields.node(read_elsewhere);
        }
        let at = fields.at();
        fields.finish();
        if let Some((at, message)) = unknown_engine {
            let (file, path) = (Arc::clone(file), format!("{label}.serving.engine"));
            diagnostics.push(Diagnostic { severity: Severity::Error, file, at, path, message, help: None });
        }
        let architecture = architecture.and_then(|(model, found)| {
            diagnostics.extend(found);
            model.map(Arc::new)
        });
        let phases = match (node.get("schedule"), shape) {
            (Some(schedule), Some(_)) if !schedule.is_null() => {
                Schedule { file, label: &label, workload: node, duration_minutes, diagnostics }.decode(schedule)
            }
            _ => Vec::new(),
        };
        if diagnostics.errors() > before {
            return None;
        }
        let (precision_weights, precision_activations) = precision;
        Some(Workload {
            name: name?.into(),
            model: node.get("model").and_then(Node::text).map(str::to_owned),
            model_family,
            architecture,
            software: software.map(Into::into),
            vocab_size,
            n_heads,
            n_kv_heads,
            ffn_hidden_size,
            precision_weights,
            precision_activations,
            track,
            duration_minutes,
            shape: shape?,
            plan,
            tuning,
            benchboard,
            post_training,
            phases: phases.into(),
            description,
            notes,
            origin: Origin { file: Arc::clone(file), at },
            document: Arc::new(node.clone()),
        })
    }
}

/// Help for an unknown key that is known elsewhere: the location of a knob of another section, or of the target.
fn unknown_key_help(key: &str) -> Option<String> {
    if matches!(key, "version" | "release" | "engine_version" | "software_version") {
        return Some("write the release with the software, such as `software: vllm@0.11`".to_owned());
    }
    let field = Knob::find(key)?.spec();
    let place = match field.location {
        // A workload's own micro-batch takes precedence over the target's, in which the knob is saved.
        _ if field.knob == Knob::Microbatch => "`batch.micro` of a workload".to_owned(),
        FileLocation::Workload(path) => format!("`{}` of a workload", path.join(".")),
        FileLocation::Target(path) => format!("`{}` of a target", path.join(".")),
        FileLocation::Nowhere => return None,
    };
    Some(format!("write it as {place}"))
}

/// Fields used only by engines that estimate from a model's architecture.
#[derive(Debug, Default)]
struct ArchitectureFields {
    vocab_size: Option<Count>,
    n_heads: Option<Count>,
    n_kv_heads: Option<Count>,
    ffn_hidden_size: Option<Count>,
    /// Formats of weights and activations, as written.
    precision: (Option<String>, Option<String>),
}

/// Reads mode, parallelism, sequence, size and plan, of a workload or of a workload with a phase's overrides merged.
fn read_shape(fields: &mut Fields<'_>) -> (Option<Shape>, PlanSpec, ArchitectureFields) {
    let written = fields.choice("mode", &Mode::WORDS);
    let named = Mode::of(None, &fields.text("name").unwrap_or_default());
    let mode = written.or(named).unwrap_or(Mode::Training);
    let mut plan = plan::read(fields);
    let mut extra = ArchitectureFields::default();
    // A catalog model replaces `params`. Missing ranks are 1, and replicas fill the target.
    let catalogued = fields.text("model").is_some() || fields.peek("architecture").is_some();
    let size = |params: &mut Fields<'_>, extra: &mut ArchitectureFields| {
        let mut count = |key| params.count(key, Bounds::NATURAL);
        (extra.vocab_size, extra.n_heads) = (count("vocab_size"), count("n_heads"));
        (extra.n_kv_heads, extra.ffn_hidden_size) = (count("n_kv_heads"), count("ffn_hidden_size"));
        let (hidden, layers) = (Bounds { max: 1e9, ..Bounds::NATURAL }, Bounds { max: 1e6, ..Bounds::NATURAL });
        if catalogued {
            let or_model = |value: Option<Count>| value.or(Some(Count::ZERO));
            return (or_model(params.count("hidden_size", hidden)), or_model(params.count("n_layers", layers)));
        }
        (params.required_count("hidden_size", hidden), params.required_count("n_layers", layers))
    };
    let params = if catalogued {
        Some(fields.map("params", |params| size(params, &mut extra)).unwrap_or((Some(Count::ZERO), Some(Count::ZERO))))
    } else {
        fields.required_map("params", &["hidden_size", "n_layers"], |params| size(params, &mut extra))
    };
    let ranks = |p: &mut Fields<'_>, plan: &mut PlanSpec| {
        read_section(plan, p, &["parallelism"]);
        if catalogued {
            (plan.tp, plan.pp, plan.dp) = (p.count_of(Knob::Tp), p.count_of(Knob::Pp), p.count_of(Knob::Dp));
            let [tp, pp, dp] = [plan.tp, plan.pp, plan.dp].map(|ranks| ranks.unwrap_or(Count::ONE));
            return Some((tp, pp, dp));
        }
        plan.tp = p.required_count_of(Knob::Tp);
        plan.pp = p.required_count_of(Knob::Pp);
        plan.dp = p.required_count_of(Knob::Dp);
        Some((plan.tp?, plan.pp?, plan.dp?))
    };
    let parallelism = if catalogued {
        Some(fields.map("parallelism", |p| ranks(p, &mut plan)).unwrap_or(Some((Count::ONE, Count::ONE, Count::ONE))))
    } else {
        fields.required_map("parallelism", &["tp", "pp", "dp"], |p| ranks(p, &mut plan))
    };
    // Training of a catalog model has no output tokens unless stated.
    let generates = !catalogued || mode == Mode::Inference;
    let lengths: &[&str] = if generates { &["prompt", "generate"] } else { &["prompt"] };
    let sequence = fields.required_map("sequence", lengths, |s| {
        let prompt = s.required_number_of(Knob::Prompt);
        let generate = match generates {
            true => s.required_number_of(Knob::Generate),
            false => s.number_of(Knob::Generate).or(Some(0.0)),
        };
        read_section(&mut plan, s, &["sequence"]);
        Some((prompt?, generate?))
    });
    if let Some(format) = fields.peek("precision").and_then(Node::text) {
        fields.node("precision");
        let help = format!("write `precision: {{ weights: {format} }}`");
        fields.error("precision", format!("found text \"{format}\", expected a mapping"), Some(help));
    } else if let Some(precision) = fields.map("precision", |p| {
        plan::precision(&mut plan, p);
        (p.text("weights"), p.text("activations"))
    }) {
        extra.precision = precision;
    }
    let (hidden, layers) = params.unwrap_or_default();
    let shape = || {
        let ((tp, pp, dp), (prompt, generate)) = (parallelism.flatten()?, sequence.flatten()?);
        Some(Shape { mode, tp, pp, dp, prompt, generate, hidden: hidden?, layers: layers? })
    };
    (shape(), plan, extra)
}

fn read_tuning(fields: &mut Fields<'_>) -> Tuning {
    Tuning {
        microbatch: fields.count_of(Knob::Microbatch),
        cuda_graphs: fields.flag_of(Knob::CudaGraphs),
        gpudirect_rdma: fields.flag_of(Knob::GpudirectRdma),
        virt: fields.word_of(Knob::Virt, |word| Knob::Virt.spec().words().contains(&word).then(|| word.to_owned())),
        fabric: fields.text("fabric").map(Into::into),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::decoded;

    #[test]
    fn serving_engine_beside_other_software_has_no_effect() {
        let read = |software: &str| {
            let text = format!(
                "{{ name: w, mode: inference, model: llama-3.1-8b, software: {software}, sequence: {{ prompt: 8, generate: 8 }}, \
                 serving: {{ engine: sglang }} }}"
            );
            let (found, problems) = decoded(&text, Workload::decode);
            assert!(found.is_some());
            problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>()
        };
        assert_eq!(read("megatron-lm"), ["found sglang, which has no effect: the software is megatron-lm"]);
        assert_eq!(read("sglang@0.5.0"), Vec::<String>::new());
    }

    #[test]
    fn pools_state_their_own_redundant_experts() {
        let text = "{ name: w, mode: inference, model: deepseek-v3, software: sglang, sequence: { prompt: 8, generate: 8 }, \
                    serving: { redundant_experts: 32, pools: { prefill: { workers: 1, redundant_experts: 64 } } } }";
        let (found, problems) = decoded(text, Workload::decode);
        let serving = found.unwrap().plan.serving;
        let copies = [serving.redundant_experts, serving.pools.prefill.redundant_experts];
        assert_eq!(copies.map(Option::unwrap).map(f64::from), [32.0, 64.0]);
        assert_eq!(problems.iter().count(), 0, "{problems}");
    }
}
