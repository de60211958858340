//! A scenario in a form common to all tools: whole numbers, and explicit values for what the software would otherwise
//! choose.

use atlas_catalog::{Architecture, Model, Transformer};
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::plan::{Format, Optimizer, Recompute, Sharding};
use atlas_plan::engine::answer::training::closed;
use atlas_plan::estimate::{Estimate, Verdict};
use atlas_plan::knob::{Knob, Setting};
use atlas_plan::scenario::{Parts, Scenario};

use super::tool::Tool;
use super::words::{one_line, slug};
use super::{Options, STEPS, Unsupported};
use crate::flags;
use crate::import::accelerator_label;

/// The job to launch.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// Name of files and jobs.
    pub(crate) name: String,
    /// The scenario, for settings that only few tools have.
    pub(crate) scenario: &'a Scenario,
    /// Catalog entry of the model.
    pub(crate) model: &'a Model,
    /// Architecture of the model.
    pub(crate) transformer: &'a Transformer,
    /// Repository or path of the weights.
    pub(crate) weights: Option<String>,
    /// Release that the scenario states.
    pub(crate) release: Option<String>,
    /// Vendor of the accelerator, which determines images and resource names.
    pub(crate) vendor: String,
    /// Names of the target and the workload.
    pub(crate) from: (String, String),
    /// Short label of the accelerator, such as `H100 80GB`.
    pub(crate) accelerator: Option<String>,
    /// Nodes that run the job.
    pub(crate) nodes: u64,
    /// Devices per node that the job uses.
    pub(crate) per_node: u64,
    /// Training or serving.
    pub(crate) work: Work,
    /// The user's options.
    pub(crate) options: &'a Options,
    /// Why the planner expects that the job may not run well.
    pub(crate) doubt: Option<String>,
}

/// Kind of the job.
#[derive(Debug)]
pub(crate) enum Work {
    Training(Training),
    Serving(Serving),
}

/// A training run.
#[derive(Debug)]
pub(crate) struct Training {
    pub(crate) tp: u64,
    pub(crate) pp: u64,
    pub(crate) vpp: u64,
    pub(crate) cp: u64,
    pub(crate) ep: u64,
    pub(crate) etp: u64,
    pub(crate) dp: u64,
    pub(crate) sequence_parallel: bool,
    pub(crate) micro: u64,
    pub(crate) global: u64,
    pub(crate) sequence: u64,
    pub(crate) steps: u64,
    pub(crate) format: Format,
    pub(crate) sharding: Sharding,
    /// Number of replicas over which the state is sharded, if not all.
    pub(crate) shard: Option<u64>,
    pub(crate) recompute: Recompute,
    /// Number of layers that are fully recomputed, if not all.
    pub(crate) recompute_layers: Option<u64>,
    /// Whether selective recomputation includes MLPs or mixtures of experts.
    pub(crate) recompute_mlps: bool,
    /// Whether memory suffices without recomputation.
    pub(crate) fits_without_recomputation: bool,
    /// Number of layers whose full recomputation replaces a selective one that memory requires.
    pub(crate) layers_instead: Option<u64>,
    pub(crate) optimizer: Optimizer,
}

impl Training {
    /// Number of micro-batches per rank and step.
    pub(crate) fn accumulation(&self) -> u64 {
        self.global / (self.micro * self.dp).max(1)
    }
}

/// A serving deployment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Serving {
    pub(crate) tp: u64,
    pub(crate) pp: u64,
    pub(crate) ep: u64,
    pub(crate) attention_dp: u64,
    /// Number of replicas on all nodes.
    pub(crate) replicas: u64,
    /// Format of the weights.
    pub(crate) format: Format,
    /// Format of the weights, if it differs from the published weights.
    pub(crate) quantized: Option<Format>,
    pub(crate) kv: Option<Format>,
    /// Tokens of text in a prompt.
    pub(crate) prompt: u64,
    /// Tokens of the images of a request.
    pub(crate) image_tokens: u64,
    /// Mean number of output tokens.
    pub(crate) generate: u64,
    /// Maximum number of output tokens.
    pub(crate) generate_max: u64,
    pub(crate) concurrency: u64,
    pub(crate) rate: Option<f64>,
    pub(crate) max_num_seqs: Option<u64>,
    pub(crate) max_num_batched_tokens: Option<u64>,
    pub(crate) memory_share: Option<f64>,
    pub(crate) chunked_prefill: Option<bool>,
    pub(crate) graphs: Option<bool>,
    pub(crate) draft_tokens: Option<u64>,
    /// Whether this is a pool of prefill workers.
    pub(crate) only_prefills: bool,
}

impl Serving {
    /// Number of devices per replica.
    pub(crate) fn devices(&self) -> u64 {
        self.tp * self.pp * self.attention_dp
    }

    /// Maximum length of a request: tokens of text, images and output.
    pub(crate) fn length(&self) -> u64 {
        self.prompt + self.image_tokens + self.generate_max
    }
}

/// Maximum number of accelerators per host.
const MAX_DEVICES_PER_HOST: u64 = 16;
/// Accelerators per host in racks with one fabric: compute trays of NVL72 and TPU hosts have four.
const DEVICES_PER_RACK_HOST: u64 = 4;

/// Number of accelerators per host, since launchers count hosts. A node of the target may be a whole rack.
pub(crate) fn devices_per_host(node: u64) -> u64 {
    if node > MAX_DEVICES_PER_HOST && node.is_multiple_of(DEVICES_PER_RACK_HOST) { DEVICES_PER_RACK_HOST } else { node }
}

/// Vendor of the accelerators.
pub(super) fn vendor(parts: &Parts) -> &str {
    parts.accelerator.as_ref().map_or(&parts.target.vendor, |sheet| &sheet.vendor)
}

/// Rounds to a whole number of at least one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "finite and at least 1; `as` saturates")]
pub(crate) fn count(value: impl Into<f64>) -> u64 {
    let value: f64 = value.into();
    if value.is_finite() && value >= 1.0 { value.round() as u64 } else { 1 }
}

/// Rounds a number of tokens, which may be zero.
fn tokens(mean: f64) -> u64 {
    if mean > 0.0 { count(mean) } else { 0 }
}

/// The count as an integer, unless it is absent or zero.
pub(crate) fn maybe(value: Option<Count>) -> Option<u64> {
    value.and_then(Count::nonzero).map(count)
}

impl<'a> Job<'a> {
    /// Name under which Kubernetes counts the accelerators.
    pub(crate) fn kubernetes_resource(&self) -> &'static str {
        match self.vendor.as_str() {
            "AMD" => "amd.com/gpu",
            "Google" => "google.com/tpu",
            "Intel" => "habana.ai/gaudi",
            "AWS" => "aws.amazon.com/neuroncore",
            _ => "nvidia.com/gpu",
        }
    }

    /// Derives the job from a scenario.
    pub(crate) fn of(
        parts: &'a Parts,
        scenario: &'a Scenario,
        estimate: &Estimate,
        options: &'a Options,
        tool: Tool,
    ) -> Result<Job<'a>, Vec<Unsupported>> {
        let lacking = |what: &str, reason: String| vec![Unsupported::new(what, reason)];
        let Some(model) = parts.model.as_deref() else {
            let reason = "launch files require a model from the catalog or an `architecture` in the workload";
            return Err(lacking("model", reason.to_owned()));
        };
        let Architecture::Transformer(transformer) = &model.architecture else {
            return Err(lacking(
                "model",
                format!("{} is not a transformer; these tools support only transformers", model.name),
            ));
        };
        if tool.trains() != (scenario.mode() == Mode::Training) {
            let supported = if tool.trains() { "training" } else { "inference" };
            let mode = scenario.mode().name();
            let reason = format!("{} supports only {supported}, but the workload's mode is {mode}", tool.label());
            return Err(lacking("tool", reason));
        }
        let mut refused = Vec::new();
        // A scenario that may not fit in memory or is overloaded can still be tried.
        let doubt = estimate.detail.map(|detail| detail.verdict).filter(|verdict| !verdict.fits());
        if let Some(verdict) = doubt.filter(|v| !matches!(v, Verdict::Overload { .. } | Verdict::Memory { .. })) {
            refused.push(Unsupported::new("plan", format!("the scenario cannot run: {}", verdict.describe())));
        }
        let vendor = vendor(parts);
        if !tool.supports(vendor, scenario) {
            refused
                .push(Unsupported::new("target", format!("{} does not support {vendor} accelerators", tool.label())));
        }
        let dies = count(scenario.machine.map_or(1.0, |machine| machine.dies));
        let (racks, rack) = (count(scenario.num_nodes), count(scenario.accelerators_per_node));
        // Hosts have whole accelerators, each of which may be several devices.
        let host = devices_per_host(rack);
        let (have_per_node, have_nodes) = (host * dies, racks * rack / host);
        let work = match scenario.mode() {
            Mode::Training => Work::Training(training(scenario, parts, options)),
            Mode::Inference => Work::Serving(serving(scenario, model)),
        };
        let needs = match (&work, scenario.base.pools()) {
            (Work::Training(t), _) => t.tp * t.pp * t.cp * t.dp,
            (Work::Serving(_), Some(pools)) => {
                [pools.prefill, pools.decode].iter().map(|pool| count(pool.accelerators())).sum()
            }
            (Work::Serving(s), None) => s.devices() * s.replicas,
        };
        let (nodes, per_node) = match needs {
            n if n <= have_per_node => (1, n),
            n => (n.div_ceil(have_per_node), have_per_node),
        };
        if nodes > have_nodes {
            let have = have_nodes * have_per_node;
            refused.push(Unsupported::new("dp", format!("the layout needs {needs} devices; the target has {have}")));
        }
        if let Work::Training(t) = &work {
            if needs % per_node != 0 {
                let reason =
                    format!("the layout needs {needs} devices, which is not a multiple of {have_per_node} per node");
                refused.push(Unsupported::new("dp", reason));
            }
            let pass = t.micro * t.dp;
            if t.global % pass != 0 {
                let reason = format!("{} is not a multiple of micro batch {} times dp {}", t.global, t.micro, t.dp);
                refused.push(Unsupported::new("global", reason));
            }
        }
        if !refused.is_empty() {
            return Err(refused);
        }
        let release = parts_release(scenario);
        let sheet = parts.accelerator.as_deref();
        Ok(Job {
            name: slug(&match &options.suffix {
                Some(suffix) => format!("{} {} {suffix}", parts.workload.name, parts.target.name),
                None => format!("{} {}", parts.workload.name, parts.target.name),
            }),
            scenario,
            model,
            transformer,
            weights: options.model.clone().or_else(|| flags::model_name("hugging-face", &model.id).map(str::to_owned)),
            release,
            vendor: parts.target.vendor.clone(),
            from: (parts.target.name.to_string(), parts.workload.name.to_string()),
            accelerator: sheet.and_then(|sheet| {
                let label = accelerator_label(&sheet.id)?;
                Some(if label.contains(' ') { label } else { format!("{label} {}GB", count(sheet.memory.gb)) })
            }),
            nodes,
            per_node,
            work,
            options,
            doubt: doubt.map(|verdict| verdict.describe()),
        })
    }

    /// The training run, or `None` if the job serves.
    pub(crate) fn training(&self) -> Option<&Training> {
        match &self.work {
            Work::Training(training) => Some(training),
            Work::Serving(_) => None,
        }
    }

    /// The serving deployment, or `None` if the job trains.
    pub(crate) fn serving(&self) -> Option<&Serving> {
        match &self.work {
            Work::Serving(serving) => Some(serving),
            Work::Training(_) => None,
        }
    }

    /// Whether the scenario states a release before this one.
    pub(crate) fn is_older(&self, since: &str) -> bool {
        flags::is_older(self.release.as_deref(), since)
    }

    /// Repository of the weights, or an error if none is known.
    pub(crate) fn repository(&self) -> Result<&str, Unsupported> {
        self.weights.as_deref().ok_or_else(|| {
            let reason = format!("no weights repository is known for {}; name one with --model-path", self.model.id);
            Unsupported::new("model", reason)
        })
    }

    /// Name of the model in the tool's configurations, or an error if the tool has none for it.
    pub(crate) fn model_name_in(&self, tool: &str) -> Result<&'static str, Unsupported> {
        flags::model_name(tool, &self.model.id).ok_or_else(|| {
            let reason = format!("no known configuration of {tool} for {}", self.model.id);
            Unsupported::new("model", reason)
        })
    }

    /// The comment at the top of every file.
    pub(crate) fn header(&self, estimate: &Estimate, tool: Tool) -> String {
        let (target, workload) = &self.from;
        let dies = count(self.scenario.machine.map_or(1.0, |machine| machine.dies));
        // What schedulers call an accelerator may be a part of one.
        let accelerators = |name: &str| match self.per_node {
            devices if dies > 1 && devices.is_multiple_of(dies) => {
                format!("{} {name} ({devices} devices)", devices / dies)
            }
            devices => format!("{devices} {name}"),
        };
        let hardware = match &self.accelerator {
            Some(name) if self.nodes > 1 => format!("{0} nodes\n{0} nodes of {1}", self.nodes, accelerators(name)),
            Some(name) => accelerators(name),
            None => format!("{} nodes of {} devices", self.nodes, self.per_node),
        };
        let software = self.release.as_deref().map_or_else(String::new, |release| format!(" {release}"));
        let rate = estimate.total.tokens_per_sec;
        let interval = estimate.detail.map_or_else(String::new, |detail| {
            let (low, high) = detail.throughput_interval.around(rate);
            format!(", 90 % interval {low:.0} to {high:.0}")
        });
        let step = estimate.total.step_time_ms.map_or_else(String::new, |ms| format!(", {:.3} s per step", ms / 1e3));
        let number = |knob| match self.scenario.get(knob) {
            Setting::Number(value) => value,
            _ => 0.0,
        };
        let (clock, watts) = (number(Knob::ClockShare), number(Knob::PowerCap));
        let clock = (clock > 0.0 && clock < 1.0).then(|| {
            let percent = 100.0 * clock;
            format!("Assumes clocks limited to {percent:.0} % of their maximum; not set here (nvidia-smi --lock-gpu-clocks).")
        });
        let power = (watts > 0.0).then(|| {
            format!("Assumes a power limit of {watts:.0} W per accelerator; not set here (nvidia-smi --power-limit).")
        });
        [
            format!("Workload {workload} on target {target}, written by atlas launch for {}{software}.", tool.label()),
            hardware,
            format!("Predicted: {rate:.0} tokens/s{interval}{step}."),
        ]
        .iter()
        .chain(&clock)
        .chain(&power)
        .flat_map(|text| text.lines())
        .map(|line| format!("# {}\n", one_line(line)))
        .collect()
    }

    /// Notes for the user: those of the tool's draft, and those about the job itself.
    pub(crate) fn notes(&self, mut notes: Vec<String>) -> Vec<String> {
        notes.extend(self.doubt.iter().map(|doubt| format!("planner warning: {doubt}")));
        if let Some(training) = self.training()
            && self.options.steps.is_none()
            && training.steps == STEPS
        {
            notes.push(format!("{STEPS} steps; use --steps to change"));
        }
        notes
    }
}

/// The release that the scenario states; an assumed release is not used.
fn parts_release(scenario: &Scenario) -> Option<String> {
    let stated = scenario.software.as_deref()?;
    stated.split_once('@').map(|(_, release)| release.to_owned())
}

/// Recomputation in terms of the tools, which recompute parts of all layers, or a number of whole layers.
struct Recomputation {
    mode: Recompute,
    /// Number of layers that are fully recomputed while the others recompute nothing, if not all.
    layers: Option<u64>,
    /// Whether MLPs or mixtures of experts are recomputed.
    mlps: bool,
    /// Whether memory suffices without recomputation.
    fits_without: bool,
    /// Number of layers whose full recomputation frees the planned memory, for tools without recomputed modules.
    instead: Option<u64>,
}

impl Recomputation {
    fn of(scenario: &Scenario, parts: &Parts) -> Recomputation {
        let stated = scenario.recompute(&scenario.base);
        // The capacity, and the most memory that a scenario with these knobs uses.
        let memory = |knobs: &[(Knob, Setting)]| {
            let mut other = scenario.clone();
            knobs.iter().try_for_each(|(knob, setting)| other.set(*knob, setting, parts)).ok()?;
            let (input, _, out) = closed(&other, &other.base)?;
            Some((input.accelerator.capacity(), out.memory_upper))
        };
        let none = (Knob::Recompute, Setting::Choice(Recompute::None.name().into()));
        let fits_without = memory(std::slice::from_ref(&none)).is_some_and(|(capacity, upper)| upper <= capacity);
        let whole = Recomputation { mode: stated, layers: None, mlps: false, fits_without, instead: None };
        let stated_layers = scenario.base.plan.recompute_layers.map(count);
        let Some((input, _, planned)) = closed(scenario, &scenario.base) else { return whole };
        let shares = planned.recompute;
        if matches!(stated, Recompute::None | Recompute::Full) {
            let mode = if stated_layers.is_some() { Recompute::Full } else { stated };
            return Recomputation { mode, layers: stated_layers, ..whole };
        }
        if shares.full_share >= 1.0 {
            return Recomputation { mode: Recompute::Full, ..whole };
        }
        let layers = count(input.arch.depth());
        let enough = |layers: &u64| {
            let number = (Knob::RecomputeLayers, Setting::Number(*layers as f64));
            memory(&[none.clone(), number]).is_some_and(|(_, upper)| upper <= planned.memory_upper * 1.001)
        };
        if shares.full_share > 0.0 {
            // The planned layers, whose others recompute their MLPs, are fewer than those that free the same memory.
            let least = stated_layers.unwrap_or(1).max(1);
            return Recomputation { mode: Recompute::Full, layers: (least..layers).find(enough), ..whole };
        }
        let some = stated == Recompute::Selective || shares.selective_share > 0.0 || shares.mlp_share > 0.0;
        let mode = if some { Recompute::Selective } else { Recompute::None };
        let instead = (some && !fits_without).then(|| (1..=layers).find(enough)).flatten();
        Recomputation { mode, mlps: shares.mlp_share > 0.0, instead, ..whole }
    }
}

fn training(scenario: &Scenario, parts: &Parts, options: &Options) -> Training {
    let (phase, plan) = (&scenario.base, &scenario.base.plan);
    let moe = scenario.model.is_some_and(|model| model.is_moe());
    let recomputation = Recomputation::of(scenario, parts);
    let (global, sequence) = (count(scenario.global(phase)), count(phase.shape.prompt + phase.shape.generate));
    let by_tokens = plan.train_tokens.map(|tokens| count((tokens / (global as f64 * sequence as f64)).ceil()));
    Training {
        tp: count(phase.shape.tp),
        pp: count(phase.shape.pp),
        vpp: count(plan.vpp.unwrap_or(Count::ONE)),
        cp: count(plan.cp.unwrap_or(Count::ONE)),
        ep: if moe { count(plan.ep.unwrap_or(Count::ONE)) } else { 1 },
        etp: count(scenario.expert_tensor_ranks(phase)),
        dp: count(phase.shape.dp),
        sequence_parallel: scenario.sequence_parallel(phase),
        micro: count(scenario.micro(phase)),
        global,
        sequence,
        steps: options.steps.or(by_tokens).unwrap_or(STEPS),
        format: scenario.format(phase),
        sharding: scenario.sharding(phase),
        shard: maybe(plan.shard),
        recompute: recomputation.mode,
        recompute_layers: recomputation.layers,
        recompute_mlps: recomputation.mlps,
        fits_without_recomputation: recomputation.fits_without,
        layers_instead: recomputation.instead,
        optimizer: plan.optimizer.unwrap_or(Optimizer::Adam),
    }
}

fn serving(scenario: &Scenario, model: &Model) -> Serving {
    let (phase, plan) = (&scenario.base, &scenario.base.plan);
    let serving = &plan.serving;
    let native = model.native_format.unwrap_or(Format::Bf16);
    Serving {
        tp: count(phase.shape.tp),
        pp: count(phase.shape.pp),
        ep: if scenario.model.is_some_and(|model| model.is_moe()) { count(plan.ep.unwrap_or(Count::ONE)) } else { 1 },
        attention_dp: count(plan.attention_dp.unwrap_or(Count::ONE)),
        replicas: count(phase.shape.dp),
        format: plan.format.unwrap_or(native),
        quantized: plan.format.filter(|format| *format != native),
        kv: plan.kv,
        prompt: count(phase.shape.prompt),
        image_tokens: scenario.images(phase).map_or(0, |images| count(images.tokens)),
        generate: tokens(phase.shape.generate),
        generate_max: tokens(serving.generate_max.map_or(phase.shape.generate, f64::from)),
        concurrency: count(scenario.concurrency(phase)),
        rate: serving.request_rate,
        max_num_seqs: maybe(serving.max_num_seqs),
        max_num_batched_tokens: maybe(serving.max_num_batched_tokens),
        memory_share: serving.gpu_memory_utilization,
        chunked_prefill: serving.chunked_prefill,
        graphs: plan.graphs,
        draft_tokens: maybe(serving.draft_tokens),
        only_prefills: false,
    }
}
