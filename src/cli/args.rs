//! Flags that several subcommands share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::failure::Failure;
use super::output::Charset;
use atlas_document::Sources;
use atlas_plan::knob;
use atlas_plan::knob::{Knob, KnobError, KnobValues as _, Overrides, ValueType};
use atlas_report::table::wrap;

/// Flags that every subcommand takes.
#[derive(Debug, Clone, Default, Args)]
pub struct Globals {
    /// Read targets.yaml, workloads.yaml and profiles/ from this directory instead of the default locations
    #[arg(long, global = true, value_name = "DIR", alias = "workload_dir", help_heading = "Files")]
    pub workload_dir: Option<PathBuf>,
    /// Read targets from this file instead of the default locations
    #[arg(long, global = true, value_name = "FILE", help_heading = "Files")]
    pub targets: Option<PathBuf>,
    /// Read workloads from this file instead of the default locations
    #[arg(long, global = true, value_name = "FILE", help_heading = "Files")]
    pub workloads: Option<PathBuf>,
    /// Read profiles from this directory, or use this profile file for every target
    #[arg(long, global = true, value_name = "PATH", help_heading = "Files")]
    pub hardware: Option<PathBuf>,
    /// Load an experiment of the predecessor comparison tool (YAML) or scenarios of its dashboard (JSON) instead of
    /// targets and workloads
    #[arg(long, global = true, value_name = "FILE", help_heading = "Files")]
    pub config: Option<PathBuf>,
    /// Use only ASCII characters; the default if the locale is not UTF-8
    #[arg(long, global = true)]
    pub ascii: bool,
    /// Screen flags given before the subcommand.
    #[arg(skip)]
    pub screen: Screen,
}

impl Globals {
    /// Locations of the input files.
    #[must_use]
    pub fn sources(&self) -> Sources {
        Sources {
            workload_dir: self.workload_dir.clone(),
            targets: self.targets.clone(),
            workloads: self.workloads.clone(),
            hardware: self.hardware.clone(),
            config: self.config.clone(),
            ..Sources::default_sources()
        }
    }

    /// The characters that tables may use.
    #[must_use]
    pub fn charset(&self) -> Charset {
        if self.ascii { Charset::Ascii } else { Charset::of_locale() }
    }
}

/// Flags of the full-screen interface.
#[derive(Debug, Clone, Default, Args)]
pub struct Screen {
    /// Color theme
    #[arg(long, value_name = "NAME", help_heading = "Screen")]
    pub theme: Option<String>,
    /// Do not capture the mouse
    #[arg(long, alias = "no_mouse", help_heading = "Screen")]
    pub no_mouse: bool,
    /// Poll for changed files at this interval instead of waiting for notifications; for network file systems
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Screen")]
    pub poll: Option<Duration>,
}

impl Screen {
    /// These flags, falling back to those of `other`.
    #[must_use]
    pub fn or(self, other: Screen) -> Screen {
        Screen {
            theme: self.theme.or(other.theme),
            no_mouse: self.no_mouse || other.no_mouse,
            poll: self.poll.or(other.poll),
        }
    }
}

/// Parses a duration in seconds for `--poll` and `--auto`.
pub fn seconds(text: &str) -> Result<Duration, String> {
    match text.trim().trim_end_matches('s').parse::<f64>() {
        Ok(value) if (0.01..=86_400.0).contains(&value) => Ok(Duration::from_secs_f64(value)),
        _ => Err("expected seconds from 0.01 to 86400".to_owned()),
    }
}

/// Parses a non-negative number of milliseconds for `--sla`.
pub fn milliseconds(text: &str) -> Result<f64, String> {
    match text.trim().trim_end_matches("ms").parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("expected milliseconds, a number from 0".to_owned()),
    }
}

/// Methods of search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Predecessor method: the best single change to the starting knobs
    HillClimb,
    /// Every combination of the knobs, so the result is optimal; local searches if there are too many
    Exhaustive,
}

/// Measured runs and what is needed to evaluate them.
#[derive(Debug, Clone, Default, Args)]
pub struct MeasuredArgs {
    /// Compare measured runs instead of targets: logs, or benchmark JSON from `atlas ingest`; FILE:NAME=VALUE,… adds
    /// settings that a file does not state [default with --config: the files it names]
    #[arg(long, value_name = "FILE", num_args = 0.., help_heading = "Measured runs")]
    pub measured: Option<Vec<PathBuf>>,
    /// Model from the catalog, or number of active parameters: llama-3.1-8b, 8e9
    #[arg(long, value_name = "NAME|N", requires = "measured", help_heading = "Measured runs")]
    pub model: Option<String>,
    /// Number format whose peak rate MFU is relative to [default: the file's, else bf16]
    #[arg(long, value_name = "FORMAT", requires = "measured", help_heading = "Measured runs")]
    pub precision: Option<String>,
    /// Price per accelerator-hour, USD [default: the cheapest in the catalog]
    #[arg(long, value_name = "USD", requires = "measured", help_heading = "Measured runs")]
    pub usd_per_gpu_hour: Option<f64>,
    /// Price per kWh, USD [default: 0.1]
    #[arg(long, value_name = "USD", requires = "measured", help_heading = "Measured runs")]
    pub usd_per_kwh: Option<f64>,
    /// Tokens of the whole training run: 15e12
    #[arg(long, value_name = "TOKENS", requires = "measured", help_heading = "Measured runs")]
    pub budget: Option<f64>,
    /// Write a report with charts to this file: .html, .pdf, .png, .md (with charts as separate .svg files), .csv,
    /// .json or .yaml
    #[arg(long, value_name = "FILE", requires = "measured", help_heading = "Measured runs")]
    pub out: Option<PathBuf>,
}

/// `atlas ingest`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = "Examples:
  atlas ingest train.log
  atlas ingest slurm-1234.out --set seq_len=4096 --set num_gpus=64
  atlas ingest bench.json gpu_metrics.csv      combine a benchmark with its power samples
  atlas ingest logs/ --format yaml --out measurements.yaml
  zcat run.log.gz | atlas ingest - --format benchmark")]
pub struct IngestArgs {
    /// Logs, results or power samples; FILE:NAME=VALUE,… applies --set to one file; a directory is read recursively; -
    /// is stdin [default with --config: the logs it names]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: IngestFormat,
    /// Write to this file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Add a setting that the log does not state: num_gpus=64, seq_len=4096, …; repeatable
    #[arg(long, value_name = "NAME=VALUE", long_help = ingest_settings_help())]
    pub set: Vec<String>,
    /// Workload that fills in settings stated by neither the log nor --set
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Warm-up to discard: the first step of a run that starts from scratch, all steps until the time settles, or N
    /// steps
    #[arg(long, value_name = "first|change-point|N", default_value = "first", value_parser = warmup)]
    pub warmup: atlas_ingest::Warmup,
    /// Seed of the bootstrap intervals
    #[arg(long, value_name = "N", default_value_t = 1337)]
    pub seed: u64,
    /// List recognized formats
    #[arg(long)]
    pub formats: bool,
}

/// The settings `atlas ingest --set` takes.
fn ingest_settings_help() -> String {
    let list = atlas_ingest::SETTINGS.iter().map(|setting| (setting.name, setting.help.to_owned()));
    let list = help_list(list.collect());
    format!(
        "Add a setting that the log does not state; repeatable. The settings are:

{list}"
    )
}

/// Knobs on the command line: the predecessor flags, and `--set` for all of them.
#[derive(Debug, Clone, Default, Args)]
pub struct KnobArgs {
    /// Estimation engine [default: analytical if the target names an accelerator, else semi-empirical]
    #[arg(long, value_name = "NAME", help_heading = "Knobs")]
    pub engine: Option<String>,
    /// Sequences per device and step; in serving, concurrent requests
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Knobs")]
    pub microbatch: Option<String>,
    /// Launch kernels as CUDA graphs
    #[arg(
        long,
        alias = "cuda_graphs",
        value_name = "BOOL",
        num_args = 0..=1,
        default_missing_value = "true",
        help_heading = "Knobs"
    )]
    pub cuda_graphs: Option<String>,
    /// Let NICs access accelerator memory directly (GPUDirect RDMA)
    #[arg(
        long,
        aliases = ["gpudirect_rdma", "gpudirect-rdma"],
        value_name = "BOOL",
        num_args = 0..=1,
        default_missing_value = "true",
        help_heading = "Knobs"
    )]
    pub gpudirect: Option<String>,
    /// Bare metal or SR-IOV
    #[arg(long, value_name = "bare|sriov", help_heading = "Knobs")]
    pub virt: Option<String>,
    /// Interconnect, one of those that the profile is calibrated for
    #[arg(long, value_name = "NAME", help_heading = "Knobs")]
    pub fabric: Option<String>,
    /// Random seed [default: 1337]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Knobs")]
    pub seed: Option<String>,
    /// Set a knob; repeatable
    #[arg(long, value_name = "KNOB=VALUE", help_heading = "Knobs", long_help = set_help())]
    pub set: Vec<String>,
}

/// The knobs `--set` takes, from the registry.
pub(super) fn set_help() -> String {
    let knobs = knob::KNOBS.iter().map(|spec| {
        let unit = if spec.unit.is_empty() { String::new() } else { format!(" [{}]", spec.unit) };
        (spec.name, format!("{}{unit}", spec.help))
    });
    format!("Set a knob; repeatable. The knobs are:\n\n{}", help_list(knobs.collect()))
}

/// Lists names with their descriptions, which wrap in their own column.
pub(super) fn help_list(entries: Vec<(&str, String)>) -> String {
    // clap wraps help to 100 columns, of which its indentation takes 10.
    const COLUMNS: usize = 90;
    let names = entries.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let indent = " ".repeat(names + 4);
    let lines = entries.iter().map(|(name, text)| {
        let text = wrap(text, COLUMNS - indent.len(), "").replace('\n', &format!("\n{indent}"));
        format!("  {name:names$}  {text}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A knob and its value as text, or why it is invalid.
type Assignment = Result<(Knob, String), KnobError>;

impl KnobArgs {
    /// The knobs that the user set. `fabrics` are those of the profile in use. All invalid assignments are reported in
    /// one error.
    pub fn overrides(&self, fabrics: &[(Arc<str>, f64)]) -> Result<Overrides, Failure> {
        let mut overrides = Overrides::new();
        self.apply_to(&mut overrides, Some(fabrics))?;
        Ok(overrides)
    }

    /// Whether no knob is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.assignments().is_empty()
    }

    /// Checks what can be checked before the profile, and so the list of fabrics, is known.
    pub fn check(&self) -> Result<(), Failure> {
        self.apply_to(&mut Overrides::new(), None)
    }

    /// Adds the knobs that the user set to `overrides`. Without `fabrics`, the fabric knob is skipped.
    pub fn apply_to(&self, overrides: &mut Overrides, fabrics: Option<&[(Arc<str>, f64)]>) -> Result<(), Failure> {
        let mut problems = Vec::new();
        for (flag, assignment) in self.assignments() {
            let parsed = assignment.and_then(|(knob, text)| match (knob.spec().kind, fabrics) {
                (ValueType::Fabric, None) => Ok(None),
                (_, fabrics) => knob.parse(&text, fabrics.unwrap_or_default()).map(|setting| Some((knob, setting))),
            });
            match parsed {
                Ok(parsed) => overrides.extend(parsed),
                Err(error) => problems.push(format!("{flag}{error}")),
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(Failure::usage(problems)) }
    }

    /// Every assignment with the prefix of its error messages; errors of the predecessor flags already name the knob.
    fn assignments(&self) -> Vec<(&'static str, Assignment)> {
        let predecessor = [
            (Knob::Engine, &self.engine),
            (Knob::Microbatch, &self.microbatch),
            (Knob::CudaGraphs, &self.cuda_graphs),
            (Knob::GpudirectRdma, &self.gpudirect),
            (Knob::Virt, &self.virt),
            (Knob::Fabric, &self.fabric),
            (Knob::Seed, &self.seed),
        ];
        let predecessor = predecessor
            .into_iter()
            .filter_map(|(knob, value)| value.as_ref().map(|value| ("", Ok((knob, value.clone())))));
        predecessor.chain(self.set.iter().map(|text| ("--set: ", knob::assignment(text)))).collect()
    }
}

/// What `atlas ingest` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum IngestFormat {
    /// Tables to read
    #[default]
    Table,
    /// Everything that was found, one object per file
    Json,
    /// Benchmark JSON of the predecessor comparison tool, one object per training run
    Benchmark,
    /// Measurements
    Yaml,
}

/// Parses `--warmup`.
pub fn warmup(text: &str) -> Result<atlas_ingest::Warmup, String> {
    match text.trim() {
        "first" => Ok(atlas_ingest::Warmup::First),
        "change-point" => Ok(atlas_ingest::Warmup::ChangePoint),
        number => match number.parse() {
            Ok(steps) if steps <= 64 => Ok(atlas_ingest::Warmup::Steps(steps)),
            _ => Err("expected first, change-point, or a number of steps from 0 to 64".to_owned()),
        },
    }
}
