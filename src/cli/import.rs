//! `atlas import`.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

use atlas_cluster::documents::{Documents, UserInput, documents};
use atlas_cluster::import::{Import, SourceFile, import};
use atlas_config::library::Library;
use atlas_core::sort;
use atlas_document::sources::read_bytes;
use atlas_plan::advice::{Objective, advise};
use atlas_plan::engine;
use atlas_plan::knob::{Knob, Setting};
use atlas_report::estimate;
use serde_json::Value;

use super::args::{Globals, KnobArgs};
use super::failure::Failure;
use super::output::{self, write_stderr};
use super::pick;
use super::save;

/// Read a job from launch scripts and configuration files.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas import train.sbatch
  atlas import launch.sh config.yaml --env NNODES=16
  atlas import deployment.yaml --format json
  atlas import train.sbatch --estimate --target h100-sxm-64
  atlas import serve.sh --write workload --set prompt=2000 --set generate=300

Reads sbatch scripts, torchrun, accelerate and deepspeed commands, Megatron-LM arguments, NeMo, Megatron-Bridge, Primus, \
torchtitan, DeepSpeed, FSDP, llm-foundry, MaxText, axolotl, nanotron and Neuron configurations, vllm serve, \
sglang.launch_server, trtllm-serve, llama-server, docker-compose, Kubernetes and Dynamo manifests. Nothing is executed. \
All files are read as one job. --estimate and --write turn it into a target and a workload that note the line each value \
comes from; links, price and power are taken from a target with the same accelerator.")]
pub struct Args {
    /// Scripts and configuration files of one job
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Environment variable of the job; repeatable
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub environment: Vec<(String, String)>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Estimate the job
    #[arg(long, conflicts_with = "format")]
    pub estimate: bool,
    /// Write targets.yaml and workloads.yaml to this directory
    #[arg(long, value_name = "DIR", conflicts_with = "format")]
    pub write: Option<PathBuf>,
    /// Target to run on [default: one with the accelerator named in the files]
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Model from the catalog, or path of a config.json [default: the one named in the files]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Index of the configuration, from 0, if the files contain several
    #[arg(long, value_name = "N")]
    pub variant: Option<usize>,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
}

/// How the job is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Fields with their origins, then what is missing or was not recognized
    #[default]
    Text,
    /// One JSON object: fields, origin, missing, not_recognized, conflicts, variants, roles
    Json,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Maximum size of a file, bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Reads the files and prints the job, its estimate, or writes its documents.
pub fn run(args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    let read = read(&args.files, sort::collect_unsorted(args.environment.iter().cloned()))?;
    if args.estimate || args.write.is_some() {
        return scenario(&read, args, globals);
    }
    let job = read.to_json();
    let described = text(&job);
    if described.is_empty() {
        write_stderr("the files do not define a scenario:");
        write_stderr("  found no launch command or configuration of a supported tool");
        return Err(Failure::Reported.into());
    }
    let mut out = std::io::stdout().lock();
    match args.format {
        Format::Json if std::io::stdout().is_terminal() => writeln!(out, "{job:#}")?,
        Format::Json => writeln!(out, "{job}")?,
        Format::Text => out.write_all(described.as_bytes())?,
    }
    Ok(())
}

/// Reads the files of one job.
fn read(paths: &[PathBuf], environment: BTreeMap<String, String>) -> color_eyre::Result<Import> {
    let mut files = Vec::new();
    let mut problems = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        match read_bytes(path, MAX_BYTES) {
            Ok(bytes) => files.push(SourceFile { name, text: String::from_utf8_lossy(&bytes).into_owned() }),
            Err(error) => problems.push(format!("{name}: {error}")),
        }
    }
    if !problems.is_empty() {
        return Err(color_eyre::eyre::eyre!(problems.join("\n")));
    }
    Ok(import(&files, &environment))
}

/// Documents of a job; prints what is missing if they are incomplete.
fn documents_of_job(read: &Import, library: &Library, given: &UserInput) -> Result<Documents, Failure> {
    documents(read, library, given).map_err(|gaps| {
        write_stderr("the files do not define a scenario:");
        gaps.iter().for_each(|gap| write_stderr(&format!("  {gap}")));
        Failure::Reported
    })
}

/// Directory with the target and the workload of a job, for the TUI.
pub struct Imported {
    /// The directory, removed on drop.
    pub folder: tempfile::TempDir,
    /// The target's name.
    pub target: String,
    /// The workload's name.
    pub workload: String,
}

/// Initial prompt length in the TUI if the files of a server state none: that of the 1k/256 benchmarks.
const PROMPT: f64 = 1024.0;
const GENERATE: f64 = 256.0;

/// Writes the documents of a job to a temporary directory.
pub fn folder(paths: &[PathBuf], globals: &Globals) -> color_eyre::Result<Imported> {
    let read = read(paths, BTreeMap::new())?;
    let library = pick::library(globals);
    let found = match documents(&read, &library, &UserInput::default()) {
        Ok(found) => found,
        // Server configurations state no prompt and output lengths. The TUI starts with defaults that can be changed
        // there.
        Err(gaps) if gaps.iter().all(|gap| matches!(gap.what.as_str(), "prompt" | "generate")) => {
            let max_length = read.fields.get("max_model_len").and_then(Value::as_f64).unwrap_or(f64::INFINITY);
            let (prompt, generate) = (PROMPT.min((max_length / 2.0).floor()), GENERATE.min((max_length / 4.0).floor()));
            let lengths = [(Knob::Prompt, prompt), (Knob::Generate, generate)];
            let overrides =
                sort::collect_unsorted(lengths.into_iter().map(|(knob, tokens)| (knob, Setting::Number(tokens))));
            write_stderr(&format!(
                "note: the files do not state request lengths; assuming prompt {prompt} and generate {generate} \
                 tokens; set these knobs to change them"
            ));
            documents_of_job(&read, &library, &UserInput { overrides, ..UserInput::default() })?
        }
        Err(_) => documents_of_job(&read, &library, &UserInput::default())?,
    };
    let parts = found.parts(&library)?;
    let folder = tempfile::Builder::new().prefix("atlas-import-").tempdir()?;
    let [of_target, of_workload] = &found.read_from;
    let files = [("targets.yaml", &found.target, of_target), ("workloads.yaml", &found.workload, of_workload)];
    // The user does not see this directory, so the origins of the values are included for explanations.
    for (name, text, read_from) in files {
        save::write(&folder.path().join(name), format!("{text}{read_from}"))?;
    }
    found.notes.iter().for_each(|note| write_stderr(&format!("note: {note}")));
    Ok(Imported { folder, target: parts.target.name.to_string(), workload: parts.workload.name.to_string() })
}

/// Writes the documents of the job, or prints its estimate.
fn scenario(read: &Import, args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    args.knobs.check()?;
    let library = pick::library(globals);
    let overrides = args.knobs.overrides(&[])?;
    let given = UserInput {
        target: args.target.clone(),
        model: args.model.clone(),
        variant: args.variant,
        overrides: overrides.clone(),
    };
    let found = documents_of_job(read, &library, &given)?;
    if let Some(folder) = &args.write {
        // Documents that cannot be decoded are not written.
        found.parts(&library)?;
        for (name, text) in [("targets.yaml", &found.target), ("workloads.yaml", &found.workload)] {
            let path = folder.join(name);
            save::write_new(&path, text, "choose another directory")?;
            output::print(&format!("{}\n", path.display()))?;
        }
    }
    found.notes.iter().for_each(|note| write_stderr(&format!("note: {note}")));
    if args.estimate { print_estimate(&found, &library, &overrides, globals) } else { Ok(()) }
}

/// Prints the estimate in the same form as `atlas run`.
fn print_estimate(
    found: &Documents,
    library: &Library,
    overrides: &atlas_plan::knob::Overrides,
    globals: &Globals,
) -> color_eyre::Result<()> {
    let (parts, scenario) = found.scenario(library, overrides)?;
    let answer = engine::estimate(&scenario);
    answer.finite().map_err(|problem| color_eyre::eyre::eyre!(problem))?;
    let advice = advise(&scenario, &parts, &answer, Objective::default());
    let track = pick::track(&parts.workload, None);
    let text = estimate::render(&parts, track, &scenario, &answer, &advice, output::width());
    Ok(output::print(&globals.charset().write(&text))?)
}

/// `file:line` of an origin; only the file if the line is unknown.
fn place(origin: &Value) -> String {
    let file = origin.get("file").and_then(Value::as_str).unwrap_or_default();
    match origin.get("line").and_then(Value::as_u64) {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    }
}

/// An item of a list: text, with its location if known.
fn item(value: &Value) -> String {
    match (value.get("text").and_then(Value::as_str), value.get("file")) {
        (Some(text), Some(_)) => format!("{}  {text}", place(value)),
        _ => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    }
}

/// Renders the job as aligned text.
fn text(job: &Value) -> String {
    let mut out = String::new();
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let fields = job.get("fields").and_then(Value::as_object);
    let simple = |name: &str| !matches!(name, "roles" | "variants" | "conflict" | "required_env");
    let width = fields.into_iter().flatten().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in fields.into_iter().flatten().filter(|(name, _)| simple(name)) {
        let origin = job.get("origin").and_then(|origin| origin.get(name)).map(place).unwrap_or_default();
        out.push_str(&format!("{name:width$}  {:<40}  {origin}\n", plain(value)));
    }
    for (key, title) in [
        ("roles", "roles"),
        ("variants", "variants"),
        ("conflicts", "cannot run as written"),
        ("missing", "set these variables"),
        ("not_recognized", "not recognized"),
    ] {
        let items: Vec<String> = match job.get(key) {
            Some(Value::Array(items)) => items.iter().map(item).collect(),
            Some(Value::Object(items)) => {
                items.iter().map(|(name, value)| format!("{name}: {}", plain(value))).collect()
            }
            _ => Vec::new(),
        };
        if !items.is_empty() {
            out.push_str(&format!("\n{title}:\n"));
            items.iter().for_each(|item| out.push_str(&format!("  {item}\n")));
        }
    }
    out
}
