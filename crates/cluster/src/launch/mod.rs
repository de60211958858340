//! Launch files for a scenario: scripts, batch scripts and manifests that start the planned job.
//!
//! [`files`] converts the scenario to a form common to all tools. One tool then creates its command and configuration,
//! every flag is checked against the table of flags, and the command is wrapped for its environment. Settings that the
//! tool cannot express are reported as errors, all at once, before anything is written.

mod job;
mod keys;
mod stated;
mod tool;
mod tools;
mod words;
mod wrap;

use std::path::PathBuf;

use atlas_document::save::{self, SaveError};
use atlas_plan::estimate::Estimate;
use atlas_plan::scenario::{Parts, Scenario};

use job::{Job, Work};

pub(crate) use job::{count, devices_per_host};
pub(crate) use words::{one_line, slug, yaml_text};

pub use tool::Tool;

/// Environment in which the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wrap {
    /// A shell script that is started on every node.
    #[default]
    Plain,
    /// A Slurm batch script.
    Slurm,
    /// Kubernetes manifests.
    Kubernetes,
}

/// How a batch script starts containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// The Pyxis plugin's options of `srun`.
    Pyxis,
    /// `apptainer exec`.
    Apptainer,
}

/// Launch options that are not part of a scenario.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// The tool. By default, the scenario's software determines it.
    pub tool: Option<Tool>,
    /// Environment in which the job runs.
    pub wrap: Wrap,
    /// Container runtime of a batch script.
    pub container: Option<Container>,
    /// Container image, instead of the tool's default.
    pub image: Option<String>,
    /// Repository or path of the model, instead of the known repository.
    pub model: Option<String>,
    /// Repository or path of the draft model's weights, if speculative decoding uses separate weights.
    pub draft_model: Option<String>,
    /// Training program for tools that do not provide one. Its own arguments are read from the environment.
    pub program: Option<String>,
    /// Number of training steps. By default, the number that the scenario's training tokens require, or [`STEPS`].
    pub steps: Option<u64>,
    /// Slurm partition.
    pub partition: Option<String>,
    /// Slurm account.
    pub account: Option<String>,
    /// Slurm quality of service.
    pub qos: Option<String>,
    /// Time limit of a batch job, in Slurm's format.
    pub time: Option<String>,
    /// Type of the accelerators in the scheduler, such as `h100`.
    pub gpu_type: Option<String>,
    /// Kubernetes namespace.
    pub namespace: Option<String>,
    /// Suffix of the job's name, after the names of workload and target.
    pub suffix: Option<String>,
}

/// Number of training steps if neither the scenario nor the user specifies it.
pub const STEPS: u64 = 50;

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// File name without a directory.
    pub name: String,
    /// Contents.
    pub text: String,
    /// Whether the file is executable.
    pub executable: bool,
}

/// A setting of the scenario that cannot be launched as requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {reason}")]
pub struct Unsupported {
    /// Name of the knob or flag.
    pub setting: String,
    /// What is wrong, and how to fix it.
    pub reason: String,
}

impl Unsupported {
    fn new(setting: impl Into<String>, reason: impl Into<String>) -> Unsupported {
        Unsupported { setting: setting.into(), reason: reason.into() }
    }
}

/// The files of one launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// The tool that they use.
    pub tool: Tool,
    /// Name of the job, which is also the prefix of the file names.
    pub name: String,
    /// The files. The first one is the file to submit.
    pub files: Vec<File>,
    /// Notes for the user that are not stated in the files.
    pub notes: Vec<String>,
}

/// Creates the launch files of a scenario.
///
/// # Errors
/// All settings that cannot be expressed.
pub fn files(parts: &Parts, scenario: &Scenario, options: &Options) -> Result<Launch, Vec<Unsupported>> {
    let estimate = atlas_plan::engine::estimate(scenario);
    let tool = options.tool.or_else(|| Tool::of(scenario));
    let tool = tool.ok_or_else(|| vec![Tool::missing(job::vendor(parts), scenario)])?;
    let job = Job::of(parts, scenario, &estimate, options, tool)?;
    let mut draft = tools::draft(tool, &job)?;
    let mut refused = std::mem::take(&mut draft.refused);
    for (knob, value) in stated::settings(scenario) {
        if !draft.expressed.contains(&knob) {
            let reason = format!("{} has no setting for {value}; change it or use another tool", tool.label());
            refused.push(Unsupported::new(knob.name(), reason));
        }
    }
    refused.extend(draft.flag_errors(job.release.as_deref(), tool));
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

/// The metric with which a run is compared: tokens per second of all accelerators.
#[must_use]
pub fn predicted(estimate: &Estimate) -> f64 {
    estimate.total.tokens_per_sec
}

/// Whether the job is a training job.
fn trains(job: &Job<'_>) -> bool {
    matches!(job.work, Work::Training(_))
}

/// Writes all files, or none if one already exists and `force` is not set.
///
/// # Errors
/// A file exists, or cannot be written.
pub fn write(files: &[(PathBuf, &File)], force: bool) -> Result<(), SaveError> {
    if !force {
        save::refuse_existing(files.iter().map(|(path, _)| path.as_path()), save::FORCE_OR_OTHER_DIRECTORY)?;
    }
    for (path, file) in files {
        if force {
            save::write(path, &file.text)?;
        } else {
            save::write_new(path, &file.text, save::FORCE_OR_OTHER_DIRECTORY)?;
        }
        if file.executable {
            save::make_executable(path)?;
        }
    }
    Ok(())
}
