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

/// Flags that every subcommand takes.
#[derive(Debug, Clone, Default, Args)]
pub struct Globals {
    /// Directory with targets.yaml, workloads.yaml and profiles/, in place of the usual ones
    #[arg(long, global = true, value_name = "DIR", alias = "workload_dir", help_heading = "Files")]
    pub workload_dir: Option<PathBuf>,
    /// File of targets, in place of the usual ones
    #[arg(long, global = true, value_name = "FILE", help_heading = "Files")]
    pub targets: Option<PathBuf>,
    /// File of workloads, in place of the usual ones
    #[arg(long, global = true, value_name = "FILE", help_heading = "Files")]
    pub workloads: Option<PathBuf>,
    /// Directory of profiles, or one profile for every target, in place of the usual ones
    #[arg(long, global = true, value_name = "PATH", help_heading = "Files")]
    pub hardware: Option<PathBuf>,
    /// An experiment of the comparison tool (YAML) or scenarios of the dashboard (JSON), in place of all targets and
    /// workloads
    #[arg(long, global = true, value_name = "FILE", help_heading = "Files")]
    pub config: Option<PathBuf>,
    /// Only ASCII on the screen and in tables; the default where the locale is not UTF-8
    #[arg(long, global = true)]
    pub ascii: bool,
    /// Flags of the screen given before the subcommand.
    #[arg(skip)]
    pub screen: Screen,
}

impl Globals {
    /// Where the documents come from.
    #[must_use]
    pub fn sources(&self) -> Sources {
        Sources {
            workload_dir: self.workload_dir.clone(),
            targets: self.targets.clone(),
            workloads: self.workloads.clone(),
            hardware: self.hardware.clone(),
            config: self.config.clone(),
            ..Sources::usual()
        }
    }

    /// What characters tables may use.
    #[must_use]
    pub fn charset(&self) -> Charset {
        if self.ascii { Charset::Ascii } else { Charset::of_locale() }
    }
}

/// Flags of everything that takes over the screen.
#[derive(Debug, Clone, Default, Args)]
pub struct Screen {
    /// Color theme, by name
    #[arg(long, value_name = "NAME", help_heading = "Screen")]
    pub theme: Option<String>,
    /// Leave the mouse to the terminal
    #[arg(long, alias = "no_mouse", help_heading = "Screen")]
    pub no_mouse: bool,
    /// Look for changed files every so many seconds instead of waiting for notifications: for network file systems
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Screen")]
    pub poll: Option<Duration>,
}

impl Screen {
    /// These, and where they are silent those of `other`.
    #[must_use]
    pub fn or(self, other: Screen) -> Screen {
        Screen {
            theme: self.theme.or(other.theme),
            no_mouse: self.no_mouse || other.no_mouse,
            poll: self.poll.or(other.poll),
        }
    }
}

/// Reads a duration in seconds, as `--poll` and `--auto` take it.
pub fn seconds(text: &str) -> Result<Duration, String> {
    match text.trim().trim_end_matches('s').parse::<f64>() {
        Ok(value) if (0.01..=86_400.0).contains(&value) => Ok(Duration::from_secs_f64(value)),
        _ => Err("expected seconds from 0.01 to 86400".to_owned()),
    }
}

/// Reads a positive number of milliseconds, as `--sla` takes it.
pub fn milliseconds(text: &str) -> Result<f64, String> {
    match text.trim().trim_end_matches("ms").parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("expected milliseconds, a number from 0".to_owned()),
    }
}

/// Methods of search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// The predecessor method: the best single change from the starting knobs
    HillClimb,
    /// Every combination of the knobs, with proof; many local searches where there are too many
    Exhaustive,
}

/// What measured runs are judged by.
#[derive(Debug, Clone, Default, Args)]
pub struct MeasuredArgs {
    /// Measured runs, in place of targets: logs, or the benchmark JSON of `atlas ingest`; FILE:NAME=VALUE,… says what a
    /// file does not [default with --config: the files that it names]
    #[arg(long, value_name = "FILE", num_args = 0.., help_heading = "Measured runs")]
    pub measured: Option<Vec<PathBuf>>,
    /// Model of the catalog, or parameters a token passes through: llama-3.1-8b, 8e9
    #[arg(long, value_name = "NAME|N", requires = "measured", help_heading = "Measured runs")]
    pub model: Option<String>,
    /// Number format whose peak the MFU refers to [default: that of the file, else bf16]
    #[arg(long, value_name = "FORMAT", requires = "measured", help_heading = "Measured runs")]
    pub precision: Option<String>,
    /// Dollars for one accelerator and hour [default: the catalog's cheapest]
    #[arg(long, value_name = "USD", requires = "measured", help_heading = "Measured runs")]
    pub usd_per_gpu_hour: Option<f64>,
    /// Dollars for a kilowatt-hour [default: 0.1]
    #[arg(long, value_name = "USD", requires = "measured", help_heading = "Measured runs")]
    pub usd_per_kwh: Option<f64>,
    /// Tokens of the whole training: 15e12
    #[arg(long, value_name = "TOKENS", requires = "measured", help_heading = "Measured runs")]
    pub budget: Option<f64>,
    /// File to write a report with charts to: .html, .pdf, .png, .md (charts alongside it as .svg), .csv, .json or .yaml
    #[arg(long, value_name = "FILE", requires = "measured", help_heading = "Measured runs")]
    pub out: Option<PathBuf>,
}

/// `atlas ingest`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = "Examples:
  atlas ingest train.log
  atlas ingest slurm-1234.out --set seq_len=4096 --set num_gpus=64
  atlas ingest bench.json gpu_metrics.csv      joins power with the benchmark that ran meanwhile
  atlas ingest logs/ --format yaml --out measurements.yaml
  zcat run.log.gz | atlas ingest - --format benchmark")]
pub struct IngestArgs {
    /// Logs, results, traces of power; FILE:NAME=VALUE,… as --set for one of them; a directory means all files below it, -
    /// is stdin [default with --config: the logs that it names]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// What is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: IngestFormat,
    /// Write to this file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Say what the log does not: num_gpus=64, seq_len=4096, …; repeatable
    #[arg(long, value_name = "NAME=VALUE", long_help = ingest_settings_help())]
    pub set: Vec<String>,
    /// Workload that fills in what neither the log nor --set states
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Warm-up taken off: the first step of a run that begins at its start, all until the time settles, or N steps
    #[arg(long, value_name = "first|change-point|N", default_value = "first", value_parser = warmup)]
    pub warmup: atlas_ingest::Warmup,
    /// Seed of the bootstrap intervals
    #[arg(long, value_name = "N", default_value_t = 1337)]
    pub seed: u64,
    /// List the formats that are recognized
    #[arg(long)]
    pub formats: bool,
}

/// The settings `atlas ingest --set` takes.
fn ingest_settings_help() -> String {
    let list: Vec<String> = atlas_ingest::SETTINGS.iter().map(|(name, help)| format!("  {name:<28} {help}")).collect();
    format!("State what the log does not; repeatable. The settings are:\n\n{}", list.join("\n"))
}

/// Knobs on the command line: the predecessor flags, and `--set` for all of them.
#[derive(Debug, Clone, Default, Args)]
pub struct KnobArgs {
    /// What answers: analytical or semi-empirical [default: analytical where the target names an accelerator]
    #[arg(long, value_name = "NAME", help_heading = "Knobs")]
    pub engine: Option<String>,
    /// Sequences per device and step
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Knobs")]
    pub microbatch: Option<String>,
    /// Launch kernels as captured graphs
    #[arg(
        long,
        alias = "cuda_graphs",
        value_name = "BOOL",
        num_args = 0..=1,
        default_missing_value = "true",
        help_heading = "Knobs"
    )]
    pub cuda_graphs: Option<String>,
    /// NICs read accelerator memory directly
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
    /// Fabric between accelerators, one the profile is calibrated for
    #[arg(long, value_name = "NAME", help_heading = "Knobs")]
    pub fabric: Option<String>,
    /// Seed of the noise [default: 1337]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Knobs")]
    pub seed: Option<String>,
    /// Set any knob; repeatable
    #[arg(long, value_name = "KNOB=VALUE", help_heading = "Knobs", long_help = set_help())]
    pub set: Vec<String>,
}

/// The knobs `--set` takes, from the registry.
pub(super) fn set_help() -> String {
    let knobs = knob::KNOBS.iter().map(|spec| {
        let unit = if spec.unit.is_empty() { String::new() } else { format!(" [{}]", spec.unit) };
        format!("  {:<14} {}{unit}", spec.name, spec.help)
    });
    let list: Vec<String> = knobs.collect();
    format!("Set any knob; repeatable. The knobs are:\n\n{}", list.join("\n"))
}

/// A knob and its value as text, or why it is invalid.
type Assignment = Result<(Knob, String), KnobError>;

impl KnobArgs {
    /// What the user changed, applied over nothing. `fabrics` are those of the profile in force. Every bad assignment is
    /// named in one complaint.
    pub fn overrides(&self, fabrics: &[(Arc<str>, f64)]) -> Result<Overrides, Failure> {
        let mut overrides = Overrides::new();
        self.lay_over(&mut overrides, Some(fabrics))?;
        Ok(overrides)
    }

    /// Whether no knob is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.assignments().is_empty()
    }

    /// Checks all that can be checked before the profile, and with it the fabrics, are known.
    pub fn check(&self) -> Result<(), Failure> {
        self.lay_over(&mut Overrides::new(), None)
    }

    /// Lays what the user changed over `overrides`. Without `fabrics` no fabric is read.
    pub fn lay_over(&self, overrides: &mut Overrides, fabrics: Option<&[(Arc<str>, f64)]>) -> Result<(), Failure> {
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

    /// Every assignment, with what to say in front of complaints: those about the predecessor flags name the knob.
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
    /// Everything found, one object a file
    Json,
    /// The benchmark JSON of the predecessor comparison tool, one object a training run
    Benchmark,
    /// Measurements
    Yaml,
}

/// Reads `--warmup`.
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
