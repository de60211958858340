//! `atlas ask`.

mod online;

use std::path::PathBuf;
use std::time::Duration;

use super::args::{Globals, KnobArgs};
use super::explain::Format;
use super::failure::Failure;
use super::{output, pick, run_with_progress};
use atlas_assistant::offline::{self, Context, EXAMPLES, Refusal};
use atlas_config::library::Library;
use atlas_plan::scenario::Parts;
use atlas_plan::search::Gauge;
use atlas_report::to_json;

/// Answer a question in plain English.
#[derive(Debug, clap::Args)]
#[command(after_long_help = after_help())]
pub struct Args {
    /// The question
    #[arg(value_name = "QUESTION", required = true, allow_negative_numbers = true)]
    pub question: Vec<String>,
    /// Target, unless the question names one [default: the first]
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Workload, unless the question names one [default: the first]
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Let a model at the configured endpoint answer, with read-only tools
    #[arg(long, help_heading = "Endpoint")]
    pub online: bool,
    /// Print what would be sent to the endpoint, without sending it
    #[arg(long, help_heading = "Endpoint")]
    pub preview: bool,
    /// Save the conversation: .json, which --continue reads, or .md
    #[arg(long, value_name = "FILE", requires = "online", help_heading = "Endpoint")]
    pub save: Option<PathBuf>,
    /// Continue a saved conversation
    #[arg(long = "continue", value_name = "FILE", help_heading = "Endpoint")]
    pub resume: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Labels an answer whose search was interrupted.
const INTERRUPTED: &str = "interrupted: the answer covers only what was computed so far";

fn after_help() -> String {
    let examples: Vec<String> = EXAMPLES.iter().map(|example| format!("  atlas ask \"{example}\"")).collect();
    format!(
        "Examples:\n{}\n\nWorks offline: the engines compute every figure, and each answer ends with the commands that \
         reproduce it. Name workload, hardware, settings and constraints as on the command line of the interface: \
         `serve llama 70b`, `on h100, h200`, `128 h100`, `tp=8`, `tpot<50ms`.\n\nWith --online, a model answers. It gets the scenario and \
         read-only tools (estimate, compare, optimize, explain, advise, list); numbers in the answer that no tool \
         computed are listed. The endpoint is configured by ATLAS_ASSISTANT_URL, ATLAS_ASSISTANT_MODEL, \
         ATLAS_ASSISTANT_KEY and ATLAS_ASSISTANT_PROTOCOL (openai, gemini), or by url, model, key and protocol in \
         assistant.yaml in the configuration directory, which must be readable only by you.",
        examples.join("\n")
    )
}

/// Prints the answer.
pub fn run(args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    args.knobs.check()?;
    let library = pick::library(globals);
    let context = context(args, globals, &library)?;
    let question = args.question.join(" ");
    if args.online || args.preview {
        return online::run(args, &question, &context);
    }
    if args.resume.is_some() {
        return Err(Failure::usage(["--continue needs --online or --preview"]).into());
    }
    let gauge = Gauge::default();
    let reply = run_with_progress(&gauge, Duration::from_millis(500), "candidates", || {
        offline::answer(&question, &context, &gauge)
    })?;
    let reply = reply.map_err(|refusal| match refusal {
        Refusal::Unknown { .. } | Refusal::Subject { .. } => Failure::usage([refusal.to_string()]).into(),
        other => color_eyre::eyre::eyre!(other),
    });
    let mut reply: offline::Reply = reply?;
    if gauge.canceled() {
        reply.answer.insert(0, offline::Block::Text(INTERRUPTED.to_owned()));
    }
    match args.format {
        Format::Table => output::print(&globals.charset().write(&reply.text(output::width())))?,
        Format::Json => output::print(&to_json(&reply)?)?,
    }
    if gauge.canceled() {
        output::write_stderr(INTERRUPTED);
        return Err(Failure::Reported.into());
    }
    Ok(())
}

/// Context with defaults for what the question does not name.
fn context<'l>(args: &Args, globals: &Globals, library: &'l Library) -> color_eyre::Result<Context<'l>> {
    let first_target = || library.targets().first().map(|target| target.name.to_string());
    let first_workload = || library.workloads().first().map(|workload| workload.name.to_string());
    let target = args.target.clone().or_else(first_target);
    let workload = args.workload.clone().or_else(first_workload);
    let (Some(target), Some(workload)) = (target, workload) else {
        return Err(Failure::usage(["no targets or no workloads found"]).into());
    };
    let parts: Parts = pick::pick(library, &target, &workload)?;
    let overrides = args.knobs.overrides(parts.fabrics())?;
    let (target, workload) = (parts.target.name.clone(), parts.workload.name.clone());
    Ok(Context { library, target, workload, overrides, flags: globals.sources().flags() })
}
