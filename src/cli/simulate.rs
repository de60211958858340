//! `atlas simulate`.

mod jobs;
mod replay;
mod slurm;

use std::path::PathBuf;
use std::time::Duration;

use super::args::Globals;
use super::array::ArrayArgs;
use super::failure::Failure;
use super::output::{self, write_stderr};
use super::simulation_files::Folder;
use super::simulation_inputs::{Preset, parts, read, refused, scenario};
use super::{keep, pick, run_with_progress, save, scale};
use atlas_cluster::history::{Draft, EntryKind};
use atlas_config::library::Library;
use atlas_legacy::simulator::Predecessor;
use atlas_plan::simulation::config::{Config, Pair, Subject};
use atlas_plan::simulation::plan::Work;
use atlas_plan::simulation::words::Window;
use atlas_plan::simulation::{Measured, Options, Outcome, Plan, Problems, RunsProgress, goodput, run as simulated};
use atlas_report::simulation as described;
use atlas_report::{Format, serialized};

/// Options that conflict with `--jobs`. clap does not enforce that another option requires it beside one of them.
const NOT_JOBS: [&str; 7] = ["preset", "example", "config", "every_pattern", "step_trace", "workload", "set"];

/// Simulate training or serving event by event.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas simulate --preset medium --out results
  atlas simulate --config my_config.yaml --replications 5
  atlas simulate --preset medium --every-pattern          compare communication patterns
  atlas simulate --jobs sacct.txt --target h100-sxm-128   jobs from Slurm accounting or a trace
  atlas simulate --step-trace rank0.json.gz --target h200-sxm-64   replay a profiled step
  atlas simulate --target h100-sxm-64 --workload llama3.1-8b-train --slow-nodes 1 \\
    --slow-factor 1.3
  atlas simulate --target h100-sxm-64 --workload llama3.1-8b-train --hosts a100-sxm-80gb:2
  atlas simulate --target h100-sxm-128 --workload llama3.1-70b-train \\
    --accelerator-mtbf 50000h --study goodput
  atlas simulate --target h100-sxm-8 --workload llama3.1-70b-serve --arrivals gamma:2 \\
    --slo-ttft 500ms --slo-tpot 50ms
  atlas simulate --target h100-sxm-8,mi300x-8 --workload llama3.1-70b-serve --rate 2 \\
    --replications 10
  atlas simulate --target h100-sxm-128 --workload llama3.1-70b-train --trace step.json \\
    --window 0..2s
  atlas simulate --target h100-sxm-8 --workload llama3.1-70b-serve --replications 1000 --slurm \\
    --tasks 100 --out results

A simulation file (--config) contains a target and a workload, or jobs and a cluster, or hardware, model, training and \
network as in the predecessor simulator; options go under simulate: and are named like the flags. Job traces can be \
output of sacct -P, the Standard Workload Format, or CSV or JSON in the formats of Helios and Philly. Step traces come from \
the PyTorch profiler or are Chakra execution traces; on another target, kernels scale with the matrix rate or the memory \
bandwidth, collectives use the model of atlas, and host gaps stay the same. Jobs that share uplinks of \
an oversubscribed fabric slow each other down (cluster: oversubscription, nodes_per_leaf, placement: packed or spread). \
--out writes NAME_results.json, NAME_bottlenecks.json, NAME_config.yaml (which reproduces the run) and plots as SVG and PNG \
to a directory; NAME is the name of the experiment. Targets are compared on the same random numbers, which makes their \
differences more precise than the values themselves. Open --trace files in ui.perfetto.dev or \
chrome://tracing.

With --slurm the replications are computed by a job array: shown and confirmed, then submitted, and merged as they arrive. \
The first run, which is described in full, and a study of goodput are computed here. Failed tasks are resubmitted. \
Run the same command again to resume after Ctrl-C or a kill; --cancel cancels the array.")]
pub struct Args {
    /// Preset of the predecessor simulator
    #[arg(long, value_enum, conflicts_with_all = ["config", "target", "workload", "set"])]
    pub preset: Option<Preset>,
    /// Example of the predecessor simulator: 1 basic, 2 custom configuration, 3 scaling, 4 patterns, 5 from a file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=5),
        conflicts_with_all = ["preset", "config", "target", "workload", "set", "every_pattern", "jobs", "step_trace"])]
    pub example: Option<u8>,
    /// Simulation file of atlas, or YAML of the predecessor simulator
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "workload"])]
    pub config: Option<PathBuf>,
    /// Compare all communication patterns, for presets and YAML of the predecessor simulator
    #[arg(long, conflicts_with_all = ["target", "workload", "jobs"])]
    pub every_pattern: bool,
    /// Run the jobs of a trace on one target: sacct -P, SWF, CSV (Helios), JSON (Philly)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["preset", "config", "workload", "set"], requires = "target")]
    pub jobs: Option<PathBuf>,
    /// Replay a recorded training step: JSON of the PyTorch profiler (Kineto) or a Chakra execution trace; with
    /// --target, also on that target
    #[arg(long, value_name = "FILE", conflicts_with_all = ["preset", "config", "workload", "set", "jobs", "every_pattern", "trace", "slurm"])]
    pub step_trace: Option<PathBuf>,
    /// Number of jobs to simulate, earliest first
    #[arg(long, alias = "most-jobs", value_name = "N", requires = "jobs", conflicts_with_all = NOT_JOBS, default_value_t = 1000)]
    pub max_jobs: usize,
    /// Scheduler for --jobs
    #[arg(long, value_enum, value_name = "NAME", requires = "jobs", conflicts_with_all = NOT_JOBS, default_value_t)]
    pub scheduler: jobs::SchedulerName,
    /// Target; several, repeated or separated by commas, are compared
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub target: Vec<String>,
    /// Workload
    #[arg(long, value_name = "NAME", requires = "target")]
    pub workload: Option<String>,
    /// Set a knob; repeatable
    #[arg(long, value_name = "KNOB=VALUE", long_help = super::args::set_help())]
    pub set: Vec<String>,
    /// Simulation options.
    #[command(flatten)]
    pub options: Options,
    /// Directory for results, plots and the simulation file
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Write tasks in the Trace Event Format, for Perfetto and Chrome
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub trace: Option<PathBuf>,
    /// Simulated time covered by the trace [default: the first step, or all requests]
    #[arg(long, value_name = "FROM..TO", requires = "trace", conflicts_with = "step_trace", help_heading = "Output")]
    pub window: Option<Window>,
    /// Output format
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
    /// Job array.
    #[command(flatten)]
    pub array: ArrayArgs,
}

/// Runs the command.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    let library = pick::library(globals);
    if args.example == Some(SCALING_STUDY) {
        return scale::run(&scaling(&args)?, globals);
    }
    if let Some(path) = &args.step_trace {
        return replay::run(path, &args, &library, globals);
    }
    let configs = subjects(&args, &library)?;
    if let [Config { subject: Subject::Jobs(_), .. }] = configs.as_slice() {
        return jobs::run(&args, &configs, &library, globals);
    }
    if let Some(part) = &args.array.part {
        return slurm::part(part, &args, &configs, &library);
    }
    let answers = if args.array.slurm {
        let Some(answers) = slurm::run(&args, &configs, &library)? else { return Ok(()) };
        answers
    } else {
        simulate_locally(&args, &configs, &library)?
    };
    let canceled = answers.len() < configs.len() || answers.iter().any(|answer| answer.outcome.canceled);
    print(&args, &answers, globals)?;
    write(&args, &answers)?;
    for answer in answers.iter().filter(|answer| !answer.outcome.canceled) {
        keep::keep(EntryKind::Simulation, draft(answer, &library)?);
    }
    if canceled {
        write_stderr("interrupted: the results cover only the runs completed so far");
        return Err(Failure::Reported.into());
    }
    Ok(())
}

/// Number of the example that is a scaling study.
const SCALING_STUDY: u8 = 3;
const PATTERN_STUDY: u8 = 4;

/// Scaling study of the predecessor: its medium preset on 1 to 16 nodes.
fn scaling(args: &Args) -> color_eyre::Result<scale::Args> {
    if args.trace.is_some() || args.array.slurm {
        return Err(Failure::usage(["--example 3 is a scaling study and does not support --trace or --slurm"]).into());
    }
    Ok(scale::Args {
        nodes: vec![1.0, 2.0, 4.0, 8.0, 16.0],
        mode: scale::Mode::default(),
        threshold: atlas_plan::simulation::scale::LIMIT,
        preset: Some(Preset::Medium),
        config: None,
        target: None,
        workload: None,
        set: Vec::new(),
        options: args.options.clone(),
        out: args.out.clone(),
        svg: None,
        png: None,
        format: args.format,
    })
}

/// Simulates all configurations in this process.
fn simulate_locally(args: &Args, configs: &[Config], library: &Library) -> color_eyre::Result<Vec<Answer>> {
    let runs: u32 = configs.iter().map(|config| 1 + config.options.replications()).sum();
    let studies = configs.iter().filter(|config| config.options.wants_goodput()).count() as u32;
    let gauge = RunsProgress::of(runs + 2 * studies);
    run_with_progress(&gauge, Duration::from_millis(500), "simulated", || {
        let mut answers = Vec::new();
        for config in configs {
            if answers.is_empty() || !gauge.canceled() {
                answers.push(planned(config, args, library, &gauge)?.answer(&gauge)?);
            }
        }
        color_eyre::Result::Ok(answers)
    })?
}

/// Result of one configuration.
struct Answer {
    config: Config,
    plan: Plan,
    outcome: Outcome,
    study: Option<goodput::Study>,
}

/// Configurations from the command line: a single one, or one for each target.
fn subjects(args: &Args, library: &Library) -> color_eyre::Result<Vec<Config>> {
    let options = args.options.clone();
    if let Some(path) = &args.jobs {
        return Ok(vec![Config { subject: Subject::Jobs(Box::new(jobs::traced(path, args, library)?)), options }]);
    }
    if let Some(config) = args.example.and_then(Predecessor::example) {
        return Ok(predecessors(config, options, args.example == Some(PATTERN_STUDY)));
    }
    if let Some(preset) = args.preset {
        return Ok(predecessors(preset.config(), options, args.every_pattern));
    }
    if let Some(path) = &args.config {
        let mut config = read(path, library)?;
        match &mut config.subject {
            Subject::Scenario(pair) => pair.set.extend(args.set.iter().cloned()),
            _ if args.set.is_empty() => {}
            _ => {
                return Err(
                    Failure::usage(["--set needs a target and a workload, which the file does not have"]).into()
                );
            }
        }
        config.options = options.or(config.options);
        return match config.subject {
            Subject::Predecessor(predecessor) => Ok(predecessors(*predecessor, config.options, args.every_pattern)),
            _ if args.every_pattern => {
                Err(Failure::usage(["--every-pattern: the file has no training.communication_pattern"]).into())
            }
            _ => Ok(vec![config]),
        };
    }
    let Some(workload) = &args.workload else {
        return Err(Failure::usage([
            "nothing to simulate: use --preset, --example, --config, or --target and --workload",
        ])
        .into());
    };
    let pair = |target: &String| Pair { target: target.clone(), workload: workload.clone(), set: args.set.clone() };
    let config = |target| Config { subject: Subject::Scenario(pair(target)), options: options.clone() };
    Ok(args.target.iter().map(config).collect())
}

/// A predecessor configuration, or one for each communication pattern.
fn predecessors(config: Predecessor, options: Options, every_pattern: bool) -> Vec<Config> {
    let all = if every_pattern { config.under_every_pattern() } else { vec![config] };
    let subject = |config| Config { subject: Subject::Predecessor(Box::new(config)), options: options.clone() };
    all.into_iter().map(subject).collect()
}

/// A configuration with its plan.
struct Planned {
    config: Config,
    plan: Plan,
    /// Options, completed by those of the scenario.
    options: Options,
}

/// Builds the plan of a configuration.
fn planned(config: &Config, args: &Args, library: &Library, gauge: &RunsProgress) -> color_eyre::Result<Planned> {
    let window = args.window;
    let mut options = config.options.clone();
    let plan = match &config.subject {
        Subject::Predecessor(predecessor) => {
            Plan::of_predecessor(predecessor, library.catalog(), &options, window, gauge)
        }
        Subject::Scenario(pair) => {
            let name = if args.target.len() > 1 {
                pair.target.clone()
            } else {
                format!("{} × {}", pair.target, pair.workload)
            };
            gauge.run(|_| ());
            let scenario = scenario(library, pair)?;
            let plan = Plan::of(name, &scenario, &options, window);
            options = options.or(Options::stated(&scenario));
            plan
        }
        Subject::Jobs(_) => Err(Problems(vec!["jobs cannot be combined with other scenarios".to_owned()])),
    };
    let plan = plan.and_then(|plan| plan.mix(&options, library.catalog())).map_err(refused)?;
    Ok(Planned { config: config.clone(), plan, options })
}

impl Planned {
    /// Runs the plan in this process, including its goodput study.
    fn answer(self, gauge: &RunsProgress) -> color_eyre::Result<Answer> {
        let Planned { config, plan, options } = self;
        let outcome = simulated(&plan, gauge).map_err(|problems| {
            if !gauge.canceled() {
                return refused(problems);
            }
            write_stderr("interrupted before there was a result");
            Failure::Reported.into()
        })?;
        let study = match (&plan.work, &outcome.first) {
            (Work::Training(work), Measured::Training(m)) if options.wants_goodput() && !outcome.canceled => {
                Some(goodput::study(work, m.output.tokens_per_second, &options, gauge).map_err(refused)?)
            }
            _ => None,
        };
        Ok(Answer { config, plan, outcome, study })
    }
}

fn print(args: &Args, answers: &[Answer], globals: &Globals) -> color_eyre::Result<()> {
    let width = output::width();
    match args.format {
        Format::Table => {
            let mut text = match answers {
                [Answer { plan, outcome, .. }] => described::table::render(plan, outcome, width),
                several => {
                    let pairs: Vec<(Plan, Outcome)> =
                        several.iter().map(|a| (a.plan.clone(), a.outcome.clone())).collect();
                    described::table::comparison(&pairs, width)
                }
            };
            for study in answers.iter().filter_map(|answer| answer.study.as_ref()) {
                text.push('\n');
                text += &described::goodput::render(study, width);
            }
            output::print(&globals.charset().write(&text))?;
        }
        Format::Json | Format::Yaml => {
            let documents: Vec<serde_json::Value> = answers.iter().map(document).collect();
            let yaml = args.format == Format::Yaml;
            let text = match documents.as_slice() {
                [one] => serialized(one, yaml)?,
                several => serialized(&several, yaml)?,
            };
            output::print(&text)?;
        }
        Format::Csv => output::print(&described::figures_csv(answers.iter().map(|a| (&a.plan, &a.outcome))))?,
    }
    Ok(())
}

/// History entry of a simulation.
fn draft(answer: &Answer, library: &Library) -> color_eyre::Result<Draft> {
    let body = document(answer);
    let mut draft = match &answer.config.subject {
        Subject::Scenario(pair) => {
            let (parts, _) = parts(library, pair)?;
            keep::of_scenario(&parts, &scenario(library, pair)?)
        }
        _ => Draft { target: Some(answer.plan.name.clone()), engine: Some("event".to_owned()), ..Draft::default() },
    };
    draft.inputs.insert("configuration".to_owned(), answer.config.yaml()?.into());
    draft.figures = keep::numbers(&body);
    // Under the name that predictions use, so that trends contain both. A serving run has the rate while requests
    // arrive: without the end, where batches shrink.
    let rates = ["summary.steady_tokens_per_sec", "summary.tokens_per_sec"];
    let rate = rates.iter().find_map(|name| draft.figures.get(*name).copied());
    draft.figures.extend(rate.map(|rate| ("tokens_per_sec".to_owned(), rate)));
    Ok(Draft { body, ..draft })
}

fn document(answer: &Answer) -> serde_json::Value {
    let mut document = described::document(&answer.plan, &answer.outcome);
    if let (Some(study), Some(map)) = (&answer.study, document.as_object_mut()) {
        map.insert("goodput_study".to_owned(), described::goodput::document(study));
    }
    document
}

fn write(args: &Args, answers: &[Answer]) -> color_eyre::Result<()> {
    for (number, answer) in answers.iter().enumerate() {
        let own = match &answer.config.subject {
            // At the path that the file states, as in the predecessor simulator.
            Subject::Predecessor(predecessor) => predecessor.output_directory.as_ref().map(PathBuf::from),
            _ => None,
        };
        let place = args.out.clone().or(own);
        if let Some(place) = place {
            // A chart cannot show that a run was interrupted, so none are written for an interrupted run.
            let plots = !answer.outcome.canceled
                && !matches!(&answer.config.subject, Subject::Predecessor(f) if !f.enable_visualization);
            let mut folder = Folder::open(&place, &answer.plan.name)?;
            folder.json("results.json", &document(answer))?;
            folder.json("bottlenecks.json", &serde_json::json!(answer.outcome.bottlenecks))?;
            let mut config = answer.config.yaml()?;
            if answer.outcome.canceled {
                config.insert_str(0, "# Interrupted: results.json covers only part of this configuration.\n");
            }
            folder.text("config.yaml", &config)?;
            if let Some(requests) = described::requests_csv(&answer.outcome.first) {
                folder.text("requests.csv", &requests)?;
            }
            if plots {
                for (name, chart) in described::plots::of(&answer.outcome.first) {
                    folder.chart(name, &chart)?;
                }
                if let Some(study) = &answer.study {
                    folder.chart("goodput", &described::plots::Chart::Plot(described::goodput::plot(study)))?;
                }
            }
            folder.print_paths();
        }
        if let Some(path) = args.trace.as_ref().filter(|_| number == 0) {
            let window = args.window.unwrap_or(Window::ALL);
            let text = described::trace::write(&answer.outcome.first, &window);
            save::save(path, &text)?;
        }
    }
    Ok(())
}
