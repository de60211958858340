//! `atlas completions`, and completion of names from files.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::{Arg, Command, ValueEnum};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, EnvCompleter, Shells};

use super::output;
use atlas_config::library::Library;
use atlas_core::sort;
use atlas_document::Sources;
use atlas_evidence::calibrate::columns::COLUMNS;
use atlas_plan::knob::{KNOBS, Knob, ValueType};
use atlas_plan::search::metric;

/// Environment variable with which a completion script requests candidates.
const VARIABLE: &str = "ATLAS_COMPLETE";

/// Print a completion script.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas completions bash > ~/.local/share/bash-completion/completions/atlas
  atlas completions zsh  > ~/.zfunc/_atlas
  atlas completions fish > ~/.config/fish/completions/atlas.fish

The script calls `atlas` for candidates, so names of targets, workloads, knobs, values and metrics are \
always those of the current files. Regenerate the script after an upgrade of atlas.")]
pub struct Args {
    /// Shell
    pub shell: Shell,
}

/// Shells that can be completed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Bash
    Bash,
    /// Elvish
    Elvish,
    /// Fish
    Fish,
    /// PowerShell
    Powershell,
    /// Zsh
    Zsh,
}

/// Prints the script.
pub fn run(args: Args) -> color_eyre::Result<()> {
    let shells = Shells::builtins();
    let name = args.shell.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let completer: &dyn EnvCompleter =
        shells.completer(&name).ok_or_else(|| color_eyre::eyre::eyre!("unsupported shell: {name}"))?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, "atlas", "atlas", "atlas", &mut script)?;
    Ok(output::print(&String::from_utf8_lossy(&script))?)
}

/// Answers a completion script if it called the program; returns whether it did.
///
/// # Errors
/// The request is for an unsupported shell.
pub fn answer() -> clap::error::Result<bool> {
    let directory = std::env::current_dir().ok();
    let completions = CompleteEnv::with_factory(|| completed(super::definition())).var(VARIABLE);
    completions.try_complete(std::env::args_os(), directory.as_deref())
}

/// Adds completers for flag values to the command-line definition.
fn completed(command: Command) -> Command {
    // For these commands, `--set` takes settings of measurements instead of knobs.
    let measured = matches!(command.get_name(), "calibrate" | "validate");
    let settings = |arg: Arg| match arg.get_id().as_str() {
        "set" if measured => arg.add(ArgValueCompleter::new(|now: &OsStr| settings(now))),
        "base" => arg.add(ArgValueCompleter::new(|now: &OsStr| last_of_list(now, &profiles()))),
        _ => completing(arg),
    };
    command.mut_args(settings).mut_subcommands(completed)
}

/// Completes names of measurement settings.
fn settings(now: &OsStr) -> Vec<CompletionCandidate> {
    let known = COLUMNS.iter().filter(|column| column.figure.is_none());
    let known: Vec<Named> = known.map(|column| (format!("{}=", column.name), column.help.to_owned())).collect();
    last_of_list(now, &known)
}

fn profiles() -> Vec<Named> {
    let about = |profile: &atlas_config::Profile| profile.description.clone().unwrap_or_default();
    library().profiles().map(|profile| (profile.name.to_string(), about(profile))).collect()
}

fn completing(arg: Arg) -> Arg {
    let completer = match arg.get_id().as_str() {
        "target" | "baseline" => ArgValueCompleter::new(|now: &OsStr| last_of_list(now, &targets())),
        "workload" => ArgValueCompleter::new(|now: &OsStr| last_of_list(now, &workloads())),
        "set" => ArgValueCompleter::new(|now: &OsStr| assignments(now, false)),
        "over" => ArgValueCompleter::new(|now: &OsStr| assignments(now, true)),
        "keep" => ArgValueCompleter::new(|now: &OsStr| last_of_list(now, &knobs())),
        "objective" | "metric" | "metrics" | "front" => {
            ArgValueCompleter::new(|now: &OsStr| last_of_list(now, &figures()))
        }
        "conditions" => ArgValueCompleter::new(|now: &OsStr| {
            let known = figures().into_iter().chain([("fits".to_owned(), "the scenario can run".to_owned())]);
            last_of_list(now, &known.collect::<Vec<_>>())
        }),
        _ => return arg,
    };
    arg.add(completer)
}

/// A name and its description.
type Named = (String, String);

/// Library as determined by the flags on the command line so far.
fn library() -> Library {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let flag = |name: &str| {
        let at = words.iter().position(|word| word.replace('_', "-").starts_with(name))?;
        let own = words.get(at)?.split_once('=').map(|(_, value)| value.to_owned());
        own.or_else(|| words.get(at + 1).cloned()).map(PathBuf::from)
    };
    let sources = Sources {
        workload_dir: flag("--workload-dir"),
        targets: flag("--targets"),
        workloads: flag("--workloads"),
        hardware: flag("--hardware"),
        config: flag("--config"),
        ..Sources::default_sources()
    };
    Library::load(&sources, None)
}

fn targets() -> Vec<Named> {
    let about = |target: &atlas_config::Target| target.description.clone().unwrap_or_else(|| target.vendor.clone());
    let library = library();
    let dashboard = if of_scenarios() { library.dashboard_entries().0 } else { &[] };
    library.targets().iter().chain(dashboard).map(|target| (target.name.to_string(), about(target))).collect()
}

fn workloads() -> Vec<Named> {
    let about = |workload: &atlas_config::Workload| workload.description.clone().unwrap_or_default();
    let library = library();
    let dashboard = if of_scenarios() { library.dashboard_entries().1 } else { &[] };
    library.workloads().iter().chain(dashboard).map(|workload| (workload.name.to_string(), about(workload))).collect()
}

/// Whether the command line is about dashboard scenarios: `atlas scenario …`, or its engine.
fn of_scenarios() -> bool {
    std::env::args_os().any(|word| word == "scenario" || word.to_string_lossy().ends_with("benchboard"))
}

fn knobs() -> Vec<Named> {
    KNOBS.iter().map(|spec| (spec.name.to_owned(), spec.help.to_owned())).collect()
}

fn figures() -> Vec<Named> {
    let about = |name: &str| metric::named(name).map_or("", |metric| metric.help).to_owned();
    metric::names().map(|name| (name.to_owned(), about(name))).collect()
}

/// Completes the item after the last comma.
fn last_of_list(now: &OsStr, names: &[Named]) -> Vec<CompletionCandidate> {
    let now = now.to_string_lossy();
    let (before, last) = now.rfind(',').map_or(("", &*now), |at| now.split_at(at + 1));
    let fitting = names.iter().filter(|(name, _)| name.starts_with(last));
    fitting.map(|(name, about)| candidate(format!("{before}{name}"), about)).collect()
}

/// Completes `knob=`, then the values of the knob; for sweeps (`over`) also lists and ranges.
fn assignments(now: &OsStr, over: bool) -> Vec<CompletionCandidate> {
    let now = now.to_string_lossy();
    let Some((name, _)) = now.split_once('=') else {
        let fitting = knobs().into_iter().filter(|(name, _)| name.starts_with(&*now));
        return fitting.map(|(name, about)| candidate(format!("{name}="), &about)).collect();
    };
    let Some(knob) = Knob::find(name) else { return Vec::new() };
    let mut values: Vec<String> = match knob.spec().kind {
        ValueType::Toggle => vec!["on".to_owned(), "off".to_owned()],
        ValueType::Choice(words) => words.iter().map(|word| (*word).to_owned()).collect(),
        ValueType::Fabric => {
            let library = library();
            let fabrics = library.profiles().flat_map(|profile| profile.fabrics.iter());
            let mut names: Vec<String> = fabrics.map(|(name, _)| name.to_string()).collect();
            sort::ascending(&mut names);
            names.dedup();
            names
        }
        ValueType::Software => atlas_catalog::software::ids().map(str::to_owned).collect(),
        ValueType::Number { .. } if over => ["1,2,4,8", "1..64", "divisors(accelerators)"].map(str::to_owned).into(),
        ValueType::Number { .. } | ValueType::Seed => Vec::new(),
    };
    if over && !matches!(knob.spec().kind, ValueType::Software | ValueType::Number { .. } | ValueType::Seed) {
        values.push("all".to_owned());
    }
    let all = values.into_iter().map(|value| format!("{name}={value}"));
    all.filter(|text| text.starts_with(&*now)).map(|text| candidate(text, knob.spec().help)).collect()
}

fn candidate(text: String, about: &str) -> CompletionCandidate {
    let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
    CompletionCandidate::new(text).help((!about.is_empty()).then(|| about.into()))
}
