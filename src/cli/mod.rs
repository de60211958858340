//! The command line: one thin file per subcommand; the logic is in other modules and crates.
//!
//! Data is written to stdout, everything else to stderr. Exit codes: 0 for success, 2 for invalid usage, 1 for every
//! other failure. A closed pipe (`atlas … | head`) is not a failure.

pub mod advise;
pub mod args;
pub mod array;
pub mod ask;
pub mod batch;
pub mod break_even;
pub mod calibrate;
pub mod check;
pub mod compare;
pub mod completions;
pub mod config;
pub mod config_profile;
pub mod confirm;
pub mod demo;
pub mod detect;
mod experiment_files;
pub mod explain;
pub mod failure;
pub mod frontier;
pub mod goal;
pub mod history;
pub mod history_import;
pub mod import;
pub mod ingest;
pub mod keep;
pub mod launch;
mod launch_plan;
pub mod list;
pub mod man;
pub mod measured;
mod methodology;
pub mod optimize;
pub mod output;
pub mod pick;
pub mod post_train;
mod progress;
mod recover;
pub mod report;
pub mod run;
mod save;
pub mod scale;
pub mod scenario;
pub mod schema;
pub mod sensitivity;
pub mod simulate;
mod simulation_files;
pub mod simulation_inputs;
pub mod submit;
pub mod sweep;
pub mod tui;
pub mod validate;
pub mod validate_measured;
pub mod watch;
pub mod watching;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

pub use args::{Globals, Screen};
pub use watching::run_with_progress;

const EXAMPLES: &str = "\
Examples:
  atlas                                        open the terminal interface
  atlas compare --workload llama3.1-70b-serve  compare all targets
  atlas run --target h100-sxm-8 --workload llama3.1-70b-serve --set tp=8
  atlas optimize --target h100-sxm-8 --workload llama3.1-70b-serve --ttft 500 --tpot 30
  atlas advise --target h100-sxm-64 --workload llama3.1-70b-train --objective cost
  atlas explain mfu --target h100-sxm-64 --workload llama3.1-70b-train
  atlas simulate --target h100-sxm-8 --workload llama3.1-70b-serve --arrivals gamma:2
  atlas scale --target h100-sxm-128 --workload llama3.1-70b-train --nodes 4,8,16
  atlas ask what if prices fall by a third     answer a question, with its commands
  atlas report --records out --out out/report.md
  atlas check workload/*.yaml                  validate files; exit 1 on problems
  atlas run --batch scenarios.jsonl            answer JSON Lines, one line per scenario
  atlas ingest train.log --set seq_len=4096    extract measurements from a log
  atlas watch train.log --plan out/last_run.json
  atlas history changes step_time_ms           show what changed since it was faster

Files are merged entry by entry, by name: built-in entries, then your configuration directory, then ./workload.
Use --workload-dir, --targets, --workloads, --hardware or --config to choose files explicitly.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "atlas",
    version,
    about = "Plan AI workloads on accelerators: fit, speed, cost and power",
    long_about = "Plan AI workloads on accelerators: estimate whether a model fits, how fast it runs, what it costs and \
                  how much power it draws.\n\nWithout a subcommand, atlas opens the terminal interface. If stdout is not \
                  a terminal, it prints a comparison of all targets.",
    after_long_help = EXAMPLES,
    max_term_width = 110
)]
pub struct Cli {
    /// Flags that every subcommand takes.
    #[command(flatten)]
    pub globals: Globals,
    /// Flags of the terminal interface.
    #[command(flatten)]
    pub tui: tui::Args,
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// A command line without a subcommand: only flags of the interface.
#[derive(Debug, Parser)]
#[command(name = "atlas", disable_help_flag = true)]
struct Interface {
    #[command(flatten)]
    globals: Globals,
    #[command(flatten)]
    tui: tui::Args,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Estimate a workload on a target and save the result; use --batch for many
    Run(Box<run::Args>),
    /// Search for the best settings under constraints
    Optimize(optimize::Args),
    /// Estimate every combination of knob values; interrupted sweeps resume
    Sweep(sweep::Args),
    /// Rank knobs and hardware parameters by their effect on a metric
    Sensitivity(sensitivity::Args),
    /// Recommend changes, each tested on the scenario
    Advise(Box<advise::Args>),
    /// Answer a question in plain English: why, what if, how many, which is cheapest
    Ask(Box<ask::Args>),
    /// Show how a metric is computed: equations, numbers and the source of every input
    Explain(Box<explain::Args>),
    /// Summarize saved records, or write a full study of a workload
    Report(report::Args),
    /// Compare targets for a workload
    Compare(compare::Args),
    /// Plot throughput against interactivity as concurrency grows
    Frontier(frontier::Args),
    /// Compare renting with owning, by utilization
    BreakEven(Box<break_even::Args>),
    /// Estimate a step of RL or preference optimization: time by phase, idle share, cost
    PostTrain(Box<post_train::Args>),
    /// Simulate training or serving event by event: queues, stragglers, bursts, failures
    Simulate(Box<simulate::Args>),
    /// Show strong and weak scaling over nodes, and where efficiency drops
    Scale(Box<scale::Args>),
    /// Play a guided tour, or check its expectations
    Demo(demo::Args),
    /// Validate files; exit 1 if there are errors
    Check(check::Args),
    /// Extract measurements from logs of training, serving, network and power tools
    Ingest(Box<args::IngestArgs>),
    /// Calibrate a target from measurements
    Calibrate(Box<calibrate::Args>),
    /// Check predictions against published measurements, or against your own
    Validate(validate::Args),
    /// List accelerators, models, targets, workloads or software
    List(list::Args),
    /// Detect the accelerators of this machine and its cluster
    Detect(detect::Args),
    /// Read a job from launch scripts and configuration files
    Import(Box<import::Args>),
    /// Write launch scripts, Slurm jobs or Kubernetes manifests for a scenario
    Launch(Box<launch::Args>),
    /// Write launch files, submit the job and record its prediction
    Submit(Box<submit::Args>),
    /// Follow a running job and compare it with its prediction
    Watch(Box<watch::Args>),
    /// Browse past predictions, runs and measurements, and what changed between them
    History(Box<history::Args>),
    /// Show or export the resolved configuration of an experiment
    Config(config::Args),
    /// Import or export scenarios of the predecessor dashboard
    Scenario(scenario::Args),
    /// Open the terminal interface
    Tui(tui::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Write man pages to a directory
    Man(man::Args),
    /// Print the JSON Schema of a document type
    Schema(schema::Args),
}

/// Parses the command line, runs the subcommand and returns the exit code.
#[must_use]
pub fn main() -> ExitCode {
    failure::install_hooks();
    match completions::answer() {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => {
            let _ = error.print();
            return ExitCode::FAILURE;
        }
    }
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => {
            // clap also reports help and version as errors.
            let printed = error.print().and_then(|()| std::io::stdout().flush());
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            return match printed {
                // A closed pipe is ignored: its reader has seen enough.
                Err(problem) if code == 0 && problem.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
                _ => ExitCode::from(code),
            };
        }
    };
    match dispatch(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

/// Parses the command line. Defining all subcommands takes a fifth of the time to the first frame, so clap builds them
/// only if the command line has more than flags of the TUI, or is invalid. Without any argument, clap is skipped.
fn parse() -> Result<Cli, clap::Error> {
    if std::env::args_os().nth(1).is_none() {
        return Ok(Cli { globals: Globals::default(), tui: tui::Args::default(), command: None });
    }
    match Interface::try_parse() {
        Ok(Interface { globals, tui }) => Ok(Cli { globals, tui, command: None }),
        Err(_) => Cli::try_parse(),
    }
}

/// Inside a Slurm job, limits the number of threads to the job's cores, since not all sites bind processes to them.
fn use_granted_cores() {
    let granted = std::env::var("SLURM_CPUS_ON_NODE").ok().and_then(|text| text.parse().ok());
    if let Some(cores) = granted.filter(|cores| *cores > 0) {
        atlas_core::cores::limit(cores);
    }
}

fn dispatch(cli: Cli) -> color_eyre::Result<()> {
    use_granted_cores();
    let Cli { globals, tui: root, command } = cli;
    let Some(command) = command else {
        // A dumb terminal cannot address its cursor, so it is treated like a pipe.
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let terminal = std::io::stdout().is_terminal();
        if root.plain || (terminal && !dumb) {
            return tui::run(root, &globals);
        }
        pick::check_given_files(&globals)?;
        tui::check_theme(&root, &globals)?;
        return compare::without_terminal(&globals, root.workload.as_deref(), terminal);
    };
    if !matches!(command, Command::Tui(_)) {
        root.refuse_before_subcommand(matches!(command, Command::Demo(_)))?;
    }
    let mut globals = globals;
    let mut command = command;
    match &mut command {
        // The `--config` of these commands is a simulation file, not an experiment.
        Command::Simulate(_) | Command::Scale(_) => globals.config = None,
        // A `--targets` value that cannot be a file is a list of targets to sweep over.
        Command::Sweep(args) => {
            if let Some(names) = globals
                .targets
                .take_if(|path| !path.exists() && path.extension().is_none_or(|ext| ext != "yaml" && ext != "yml"))
            {
                args.target.extend(names.to_string_lossy().split(',').map(|name| name.trim().to_owned()));
            }
        }
        _ => {}
    }
    let looks = matches!(
        command,
        Command::Tui(_)
            | Command::Check(_)
            | Command::Config(_)
            | Command::Schema(_)
            | Command::List(_)
            | Command::Detect(_)
            | Command::Import(_)
            | Command::History(_)
    );
    if !looks {
        pick::check_given_files(&globals)?;
    }
    match command {
        Command::Config(args) => config::run(args, &globals),
        Command::Scenario(args) => scenario::run(args, &globals),
        Command::Run(args) => run::run(*args, &globals),
        Command::Optimize(args) => optimize::run(args, &globals),
        Command::Sweep(args) => sweep::run(args, &globals),
        Command::Sensitivity(args) => sensitivity::run(args, &globals),
        Command::Advise(args) => advise::run(&args, &globals),
        Command::Ask(args) => ask::run(&args, &globals),
        Command::Explain(args) => explain::run(&args, &globals),
        Command::Report(args) => report::run(args, &globals),
        Command::Compare(args) => compare::run(args, &globals),
        Command::Frontier(args) => frontier::run(args, &globals),
        Command::BreakEven(args) => break_even::run(*args, &globals),
        Command::PostTrain(args) => post_train::run(&args, &globals),
        Command::Simulate(args) => simulate::run(*args, &globals),
        Command::Scale(args) => scale::run(&args, &globals),
        Command::Demo(args) => demo::run(args, &Globals { screen: root.screen, ..globals }),
        Command::Check(args) => check::run(args, &globals),
        Command::Validate(args) => validate::run(args, &globals),
        Command::Calibrate(args) => calibrate::run(*args, &globals),
        Command::Ingest(args) => ingest::run(*args, &globals),
        Command::Tui(args) => tui::run(args.or(root), &globals),
        Command::Completions(args) => completions::run(args),
        Command::List(args) => list::run(&args, &globals),
        Command::Detect(args) => detect::run(&args, &globals),
        Command::Import(args) => import::run(&args, &globals),
        Command::Launch(args) => launch::run(&args, &globals),
        Command::Submit(args) => submit::run(&args, &globals),
        Command::Watch(args) => watch::run(&args, &globals),
        Command::History(args) => history::run(*args, &globals),
        Command::Man(args) => man::run(args),
        Command::Schema(args) => schema::run(args),
    }
}

/// Definition of the command line, for completions and tests.
#[must_use]
pub fn definition() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn command_definition_passes_the_clap_debug_assertions() {
        definition().debug_assert();
    }

    #[test]
    fn predecessor_flags_take_underscores_and_hyphens_bare_and_with_a_value() {
        for line in [
            "atlas run --target T --workload W --cuda_graphs --gpudirect=off --virt sriov --seed -5",
            "atlas run --target T --workload W --cuda-graphs true --gpudirect false --virt=sriov --seed=-5",
        ] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            let Some(Command::Run(args)) = cli.command else { panic!("run") };
            let overrides = args.knobs.overrides(&[]).unwrap();
            let shown: Vec<String> = overrides.iter().map(|(knob, to)| format!("{}={to}", knob.name())).collect();
            assert_eq!(shown, ["cuda_graphs=on", "gpudirect_rdma=off", "virt=sriov", "seed=-5"]);
        }
    }

    #[test]
    fn flags_only_parser_agrees_with_the_full_command_line_parser() {
        for line in ["atlas", "atlas --target T --theme dark --fresh --ascii", "atlas --workload-dir d --measured a b"]
        {
            let alone = Interface::try_parse_from(line.split(' ')).unwrap();
            let whole = Cli::try_parse_from(line.split(' ')).unwrap();
            assert!(whole.command.is_none());
            let described = |globals: &Globals, tui: &tui::Args| format!("{globals:?} {tui:?}");
            assert_eq!(described(&alone.globals, &alone.tui), described(&whole.globals, &whole.tui));
        }
        let bare = Interface::try_parse_from(["atlas"]).unwrap();
        let default = (Globals::default(), tui::Args::default());
        assert_eq!(format!("{:?}", (bare.globals, bare.tui)), format!("{default:?}"));
        for line in
            ["atlas tui", "atlas --target T run", "atlas --help", "atlas -V", "atlas help run", "atlas --nonsense"]
        {
            assert!(Interface::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }

    #[test]
    fn workload_dir_flag_parses_before_and_after_the_subcommand() {
        for line in ["atlas --workload-dir d compare", "atlas compare --workload_dir d"] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            assert_eq!(cli.globals.workload_dir.as_deref(), Some(std::path::Path::new("d")));
        }
    }
}
