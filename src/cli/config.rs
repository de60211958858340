//! `atlas config`: resolves, shows and exports an experiment of the predecessor comparison tool.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use color_eyre::eyre::eyre;
use serde_json::{Map, Value, json};

use super::args::Globals;
use super::failure::Failure;
use super::output::{self, write_stderr};
use atlas_catalog::Catalog;
use atlas_config::library::Library;
use atlas_core::escape;
use atlas_core::plan::Methodology;
use atlas_document::sources::read_text;
use atlas_document::{Diagnostic, Diagnostics, Severity, Sources, parse};
use atlas_legacy::exchange::experiment;
use atlas_legacy::exchange::experiment::{Experiment, Resolved, Selection};
use atlas_plan::engine;
use atlas_plan::estimate::Verdict;
use atlas_plan::scenario::{Parts, Scenario};
use atlas_report::table::{Table, left};
use atlas_report::to_json;

/// Show or export an experiment's configuration.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas config show config.yaml                  show every value and its origin
  atlas config show config.yaml --format yaml
  eval \"$(atlas config export --shell config.yaml --model llama --platform amd)\"
  atlas compare --config config.yaml --workload llama
  atlas compare --config config.yaml --methodology identical-config
  atlas tui --config config.yaml
  atlas config profile --target CUSTOM_ACCELERATOR --base nvidia \\
    --set compute.base_tokens_per_accel=1200

FILE defaults to --config, then ./config.yaml, then workload/config.yaml. Each platform becomes a target and each model a \
workload; its parallelism on each platform sets the knobs. ${VAR} and ${VAR:-default} are expanded from the environment; \
TRAIN_ITERS and PRIMUS_PATH override the number of steps and the path of Primus.")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do with a configuration.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show every resolved value and its origin
    Show(ShowArgs),
    /// Print the values as shell variables
    Export(ExportArgs),
    /// Create a hardware profile for a target from the coefficients of another profile
    Profile(super::config_profile::Args),
}

/// How a configuration is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// One value per line
    #[default]
    Table,
    /// The resolved document with origins as comments
    Yaml,
    /// The resolved document, and origins by path
    Json,
}

/// `atlas config show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// The experiment [default: --config, ./config.yaml, workload/config.yaml]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `atlas config export`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// The experiment [default: --config, ./config.yaml, workload/config.yaml]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Print POSIX shell syntax for eval
    #[arg(long, required = true)]
    pub shell: bool,
    /// Model for the short variable names [default: the first]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Platform for the short variable names [default: the first]
    #[arg(long, value_name = "NAME")]
    pub platform: Option<String>,
}

/// Runs the subcommand.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    match args.command {
        Command::Show(args) => show(&args, globals),
        Command::Export(args) => export(&args, globals),
        Command::Profile(args) => super::config_profile::run(&args, globals),
    }
}

/// Path of the experiment: given, else `--config`, else a default location.
pub(super) fn file(given: Option<&Path>, globals: &Globals) -> Result<PathBuf, color_eyre::Report> {
    if let Some(path) = given.or(globals.config.as_deref()) {
        return Ok(path.to_owned());
    }
    let folder = globals.workload_dir.clone().unwrap_or_else(|| PathBuf::from("workload"));
    let usual = [PathBuf::from("config.yaml"), folder.join("config.yaml")];
    usual.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let usual: Vec<String> = usual.iter().map(|path| path.display().to_string()).collect();
        eyre!("no experiment found: neither {} exists; name a file", usual.join(" nor "))
    })
}

/// Reads an experiment and collects all diagnostics.
pub(super) fn read(path: &Path, globals: &Globals) -> Result<(Experiment, Catalog, Diagnostics), color_eyre::Report> {
    let label: Arc<str> = path.display().to_string().into();
    let text = read_text(path).map_err(|problem| eyre!("{label}: {problem}"))?;
    let mut problems = Diagnostics::new();
    let catalog = Catalog::load(&globals.sources(), None);
    let Some(root) = parse::parse(&label, &text, &mut problems) else { return Err(Failure::from(problems).into()) };
    if !experiment::is_document(&root) {
        return Err(eyre!("{label}: not an experiment: expected hardware.platforms, models and training"));
    }
    let variable = |name: &str| std::env::var(name).ok();
    let experiment = experiment::read(&label, &root, &variable, &mut problems);
    // Only the diagnostics are used; the library converts the experiment again.
    drop(experiment.converted_entries(&catalog, &mut problems));
    if !problems.has_errors() {
        problems.extend(memory(&experiment, path, globals));
    }
    problems.sort();
    Ok((experiment, catalog, problems))
}

/// Checks whether each model fits in the memory of each platform with its parallelism, according to the engine.
fn memory(experiment: &Experiment, path: &Path, globals: &Globals) -> Diagnostics {
    let sources = Sources { config: Some(path.to_owned()), ..globals.sources() };
    let mut library = Library::load(&sources, None);
    let mut problems = Diagnostics::new();
    for methodology in Methodology::ALL {
        library.compare_by(methodology);
        for layout in experiment.layouts.iter().filter(|layout| layout.methodology == methodology) {
            let Ok(parts) = Parts::find(&library, &layout.platform, &layout.model) else { continue };
            let Ok(scenario) = Scenario::resolve(&parts, &atlas_plan::knob::Overrides::new()) else { continue };
            let verdict = engine::estimate(&scenario).detail.map(|detail| detail.verdict);
            let Some(verdict @ Verdict::Memory { .. }) = verdict else { continue };
            problems.push(Diagnostic {
                severity: Severity::Warning,
                file: Arc::clone(&experiment.file),
                at: layout.node.at,
                path: format!("parallelism.{}.{}.{}", layout.written, layout.model, layout.platform),
                message: verdict.describe(),
                help: Some("use more tensor or pipeline parallelism, or recompute activations".to_owned()),
            });
        }
    }
    problems
}

/// Prints diagnostics; fails if there are errors, after the valid part has been printed.
fn print_problems(problems: &Diagnostics) -> color_eyre::Result<()> {
    for problem in problems {
        write_stderr(&problem.to_string());
    }
    if problems.has_errors() { Err(Failure::Reported.into()) } else { Ok(()) }
}

fn show(args: &ShowArgs, globals: &Globals) -> color_eyre::Result<()> {
    let path = file(args.file.as_deref(), globals)?;
    let (experiment, catalog, problems) = read(&path, globals)?;
    let resolved = experiment.resolved(&catalog);
    let text = match args.format {
        Format::Table => globals.charset().write(&table(&experiment, &resolved)).into_owned(),
        Format::Yaml => yaml(&experiment, &resolved),
        Format::Json => to_json(&document(&experiment, &resolved))?,
    };
    output::print(&text)?;
    print_problems(&problems)
}

/// A value on one line.
fn format_resolved(resolved: &Resolved) -> String {
    serde_json::to_string(&resolved.value).unwrap_or_default()
}

/// Origin of a value: the file and the position in it.
fn origin(experiment: &Experiment, resolved: &Resolved) -> String {
    match &resolved.from {
        experiment::ValueOrigin::Derived(how) => how.clone(),
        from => {
            let described = from.to_string();
            let (before, place) =
                described.rsplit_once(", ").map_or(("", described.as_str()), |(before, place)| (before, place));
            let join = if before.is_empty() { "" } else { ", " };
            format!("{before}{join}{}:{place}", experiment.file)
        }
    }
}

fn table(experiment: &Experiment, resolved: &[Resolved]) -> String {
    let mut table = Table::new(["value", "", "from"].map(left));
    for one in resolved {
        table.row([one.path.join("."), format_resolved(one), origin(experiment, one)]);
    }
    let names = |all: Vec<String>| all.join(", ");
    let targets = experiment
        .platforms
        .iter()
        .map(|platform| format!("{} ({} x {})", platform.key, platform.gpus, platform.gpu_model));
    let workloads = experiment.models.iter().map(|model| format!("{} ({})", model.key, model.name));
    let mut out = table.render();
    out += &format!("\ntargets    {}\n", names(targets.collect()));
    out += &format!("workloads  {}\n", names(workloads.collect()));
    out += &format!("compared   {}\n", experiment.methodology.name());
    let base = Path::new(&*experiment.file).parent().unwrap_or(Path::new(""));
    let file = |expected: experiment::Expected| {
        let from = expected.variable.map_or_else(String::new, |variable| format!(" (environment {variable})"));
        format!("{}{from}", expected.path.display())
    };
    let logs = experiment.logs(base, &|name| std::env::var(name).ok()).into_iter().map(file);
    out += &format!("logs       {}\n", names(logs.collect()));
    out += &format!("benchmarks {}\n", names(experiment.benchmarks(base).into_iter().map(file).collect()));
    out
}

/// The document as YAML, each value followed by a comment with its origin.
fn yaml(experiment: &Experiment, resolved: &[Resolved]) -> String {
    let mut out = String::new();
    let mut open: Vec<&str> = Vec::new();
    for one in resolved {
        let Some((last, parents)) = one.path.split_last() else { continue };
        let same = open.iter().zip(parents).take_while(|(a, b)| *a == b).count();
        open.truncate(same);
        for parent in parents.iter().skip(same) {
            out += &format!("{}{}:\n", "  ".repeat(open.len()), key(parent));
            open.push(parent);
        }
        let indent = "  ".repeat(open.len());
        out += &format!("{indent}{}: {}  # {}\n", key(last), format_resolved(one), origin(experiment, one));
    }
    out
}

/// A YAML key, quoted if necessary.
fn key(key: &str) -> String {
    let plain = key.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        && !matches!(key.to_lowercase().as_str(), "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n");
    if plain { key.to_owned() } else { serde_json::to_string(key).unwrap_or_default() }
}

fn document(experiment: &Experiment, resolved: &[Resolved]) -> Value {
    let mut config = Value::Object(Map::new());
    let mut origins = Map::new();
    for one in resolved {
        let mut at = &mut config;
        for part in &one.path {
            let Value::Object(map) = at else { break };
            at = map.entry(part.clone()).or_insert_with(|| Value::Object(Map::new()));
        }
        *at = serde_json::to_value(&one.value).unwrap_or_default();
        origins.insert(one.path.join("."), json!(origin(experiment, one)));
    }
    json!({"config": config, "from": origins})
}

fn export(args: &ExportArgs, globals: &Globals) -> color_eyre::Result<()> {
    let path = file(args.file.as_deref(), globals)?;
    let (experiment, catalog, problems) = read(&path, globals)?;
    // A launcher must not evaluate an incomplete configuration.
    if problems.has_errors() {
        return print_problems(&problems);
    }
    let selection = Selection { model: args.model.clone(), platform: args.platform.clone() };
    let variables = experiment.variables(&selection, &catalog).map_err(|error| Failure::usage([error.to_string()]))?;
    let lines: String =
        variables.iter().map(|(name, value)| format!("export {name}={}\n", escape::shell(value))).collect();
    output::print(&lines)?;
    print_problems(&problems)
}
