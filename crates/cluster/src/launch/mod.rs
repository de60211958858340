//! Launch files for a scenario: scripts, batch scripts and manifests that start what was planned.
//!
//! [`files`] describes the scenario in the words that all tools share, lets one tool write its command and its
//! configuration, checks every flag against the table of flags, and wraps the command for the place where it runs.
//! Settings that the tool cannot express are errors, all of them together, before anything is written.

mod job;
mod keys;
mod stated;
mod table;
mod tool;
mod tools;
mod words;
mod wrap;

use atlas_plan::estimate::Estimate;
use atlas_plan::scenario::{Parts, Scenario};

use job::{Job, Work};

pub(crate) use job::{count, host};
pub(crate) use table::model_of_tool;
pub(crate) use words::{one_line, slug, yaml_text};

pub use tool::Tool;

/// What the command runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wrap {
    /// A shell script, started on every node.
    #[default]
    Plain,
    /// A Slurm batch script.
    Slurm,
    /// Kubernetes manifests.
    Kubernetes,
}

/// How a batch script starts a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// Options of `srun` that the Pyxis plugin adds.
    Pyxis,
    /// `apptainer exec`.
    Apptainer,
}

/// What a scenario does not say about its launch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// The tool; the scenario's software decides where this is absent.
    pub tool: Option<Tool>,
    /// Where it runs.
    pub wrap: Wrap,
    /// The container of a batch script.
    pub container: Option<Container>,
    /// The image, instead of the tool's usual one.
    pub image: Option<String>,
    /// The model's repository or path, instead of the known repository.
    pub model: Option<String>,
    /// The repository or path of the weights that draft, where speculative decoding has its own.
    pub draft_model: Option<String>,
    /// The training program of tools that bring none, with its own arguments read from the environment.
    pub program: Option<String>,
    /// Steps of a training run; absent: as many as the scenario's training tokens take, else [`STEPS`].
    pub steps: Option<u64>,
    /// Slurm partition.
    pub partition: Option<String>,
    /// Slurm account.
    pub account: Option<String>,
    /// Slurm quality of service.
    pub qos: Option<String>,
    /// Limit of a batch job's time, as Slurm writes it.
    pub time: Option<String>,
    /// Type of the accelerators in the scheduler's words, such as `h100`.
    pub gpu_type: Option<String>,
    /// Kubernetes namespace.
    pub namespace: Option<String>,
    /// What the name of the job ends with, after those of workload and target.
    pub suffix: Option<String>,
}

/// Steps of a training run where neither the scenario nor the user says how many.
pub const STEPS: u64 = 50;

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name, without a folder.
    pub name: String,
    /// What it holds.
    pub text: String,
    /// Whether it can be executed.
    pub executable: bool,
}

/// A setting of the scenario that cannot be launched as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {reason}")]
pub struct Unsupported {
    /// The setting, by the name of its knob or flag.
    pub setting: String,
    /// What is wrong, and what to do.
    pub reason: String,
}

impl Unsupported {
    fn new(setting: impl Into<String>, reason: impl Into<String>) -> Unsupported {
        Unsupported { setting: setting.into(), reason: reason.into() }
    }
}

/// Files of one launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// The tool that they are for.
    pub tool: Tool,
    /// A name for the job, which also starts the names of the files.
    pub name: String,
    /// The files; the first is the one to submit.
    pub files: Vec<File>,
    /// What the user should know and the files do not say.
    pub notes: Vec<String>,
}

/// Writes the launch files of a scenario.
///
/// # Errors
/// Every setting that cannot be expressed.
pub fn files(parts: &Parts, scenario: &Scenario, options: &Options) -> Result<Launch, Vec<Unsupported>> {
    let estimate = atlas_plan::engine::estimate(scenario);
    let tool = options.tool.map_or_else(|| Tool::of(scenario), Ok).map_err(|problem| vec![problem])?;
    let job = Job::of(parts, scenario, &estimate, options, tool)?;
    let mut draft = tools::draft(tool, &job)?;
    let mut refused = std::mem::take(&mut draft.refused);
    for (knob, value) in stated::settings(scenario) {
        if !draft.expressed.contains(&knob) {
            let reason = format!("{} has no setting for {value}; change it or use another tool", tool.label());
            refused.push(Unsupported::new(knob.name(), reason));
        }
    }
    refused.extend(draft.objections(job.release.as_deref(), tool));
    if let Wrap::Kubernetes = options.wrap {
        refused.extend(wrap::kubernetes::refusals(&job, &draft));
    } else if draft.manifest.is_some() {
        refused.push(Unsupported::new("wrap", format!("{} runs only on Kubernetes", tool.label())));
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    let header = job.header(&estimate, tool);
    let files = match options.wrap {
        Wrap::Plain => wrap::plain::files(&job, &draft, &header),
        Wrap::Slurm => wrap::slurm::files(&job, &draft, &header, options),
        Wrap::Kubernetes => wrap::kubernetes::files(&job, &draft, &header, options),
    };
    Ok(Launch { tool, name: job.name.clone(), files, notes: job.notes(draft.notes) })
}

/// The figure that a run is compared with: tokens per second of all accelerators.
#[must_use]
pub fn predicted(estimate: &Estimate) -> f64 {
    estimate.total.tokens_per_sec
}

/// Whether the job trains.
fn trains(job: &Job<'_>) -> bool {
    matches!(job.work, Work::Training(_))
}
