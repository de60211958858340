//! A scenario in a form common to all tools: whole numbers, and explicit values for what the software would otherwise
//! choose.

mod serving;
mod training;

use atlas_catalog::{Architecture, Model, Transformer};
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_plan::estimate::{Estimate, Verdict};
use atlas_plan::knob::{Knob, Setting};
use atlas_plan::scenario::{Parts, Scenario};

pub(crate) use self::serving::Serving;
pub(crate) use self::training::Training;
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
            Mode::Training => Work::Training(Training::of(scenario, parts, options)),
            Mode::Inference => Work::Serving(Serving::of(scenario, model)),
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
