//! Scenarios for which `launch` and `submit` write files: workloads on targets, with the same knobs or with the best
//! knobs of each target.

use std::path::PathBuf;
use std::time::Duration;

use atlas_cluster::launch::{self, Container, Launch, Options, Tool, Unsupported, Wrap};
use atlas_config::library::Library;
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::methodology::differences;
use atlas_plan::search::optimize::Candidate;
use atlas_plan::search::{Gauge, Methodology};
use color_eyre::eyre::eyre;

use super::args::{Globals, KnobArgs};
use super::failure::Failure;
use super::goal::{self, Goal};
use super::methodology::best;
use super::output::write_stderr;
use super::pick;
use super::watching::run_with_progress;

/// Number of best candidates that are tried with a tool.
const CANDIDATES: usize = 1000;

/// Scenarios and how they are launched.
#[derive(Debug, clap::Args)]
pub struct PlanArgs {
    /// Target; repeatable, or separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    pub target: Vec<String>,
    /// Workload; repeatable, or separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    pub workload: Vec<String>,
    /// Use the same knobs for all targets, or the best of each; repeatable [default: identical-config]
    #[arg(long, value_parser = goal::methodology(), value_name = "METHOD")]
    pub methodology: Vec<Methodology>,
    /// What each target's best is under maximum-performance.
    #[command(flatten)]
    pub goal: Goal,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Tool to launch with [default: the workload's software]
    #[arg(long, value_name = "NAME", value_parser = tool, help_heading = "Launch")]
    pub tool: Option<Tool>,
    /// Format of the launch files
    #[arg(long, value_enum, default_value_t, help_heading = "Launch")]
    pub wrap: Wrapping,
    /// Container runtime of batch scripts
    #[arg(long, value_enum, help_heading = "Launch")]
    pub container: Option<Containers>,
    /// Container image [default: the tool's]; TARGET=IMAGE for one of several targets
    #[arg(long, value_name = "IMAGE", help_heading = "Launch")]
    pub image: Vec<String>,
    /// Repository or path of the model weights
    #[arg(long, value_name = "PATH", help_heading = "Launch")]
    pub model_path: Option<String>,
    /// Repository or path of the draft model weights (draft_method eagle3 or draft-model)
    #[arg(long, value_name = "PATH", help_heading = "Launch")]
    pub draft_model: Option<String>,
    /// Training script for tools without one; must accept the arguments of run_clm.py
    #[arg(long, value_name = "FILE", help_heading = "Launch")]
    pub program: Option<String>,
    /// Training steps [default: from train_tokens, else 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Launch")]
    pub steps: Option<u64>,
    /// Slurm partition; TARGET=NAME for one of several targets
    #[arg(long, value_name = "NAME", help_heading = "Launch")]
    pub partition: Vec<String>,
    /// Slurm account; TARGET=NAME for one of several targets
    #[arg(long, value_name = "NAME", help_heading = "Launch")]
    pub account: Vec<String>,
    /// Slurm quality of service; TARGET=NAME for one of several targets
    #[arg(long, value_name = "NAME", help_heading = "Launch")]
    pub qos: Vec<String>,
    /// Time limit of batch jobs, in Slurm format: 04:00:00
    #[arg(long, value_name = "TIME", value_parser = slurm_time, help_heading = "Launch")]
    pub time: Option<String>,
    /// Slurm GRES type of the accelerators: h100; TARGET=NAME for one of several targets
    #[arg(long, value_name = "NAME", help_heading = "Launch")]
    pub gpu_type: Vec<String>,
    /// Kubernetes namespace
    #[arg(long, value_name = "NAME", help_heading = "Launch")]
    pub namespace: Option<String>,
    /// Directory to write the files to
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
}

/// Checks a time limit: `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M` or `D-H:M:S`.
fn slurm_time(text: &str) -> Result<String, String> {
    let (days, rest) = text.split_once('-').map_or((None, text), |(days, rest)| (Some(days), rest));
    let parts: Vec<&str> = days.into_iter().chain(rest.split(':')).collect();
    let number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.len() <= 3 + usize::from(days.is_some()) && parts.iter().all(number) {
        Ok(text.to_owned())
    } else {
        Err("expected minutes, HH:MM:SS or D-HH:MM:SS".to_owned())
    }
}

/// What a command is wrapped in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Wrapping {
    /// A shell script, started on every node
    #[default]
    Plain,
    /// A Slurm batch script
    Slurm,
    /// Kubernetes manifests
    Kubernetes,
}

/// How a batch script starts a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Containers {
    /// Options of srun that the Pyxis plugin adds
    Pyxis,
    /// apptainer exec
    Apptainer,
}

fn tool(name: &str) -> Result<Tool, String> {
    Tool::named(name).ok_or_else(|| {
        let names: Vec<&str> = Tool::ALL.iter().map(|(_, name, _)| *name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// A scenario with its launch files.
pub struct Planned {
    /// Target and workload with their documents.
    pub parts: Parts,
    /// The scenario.
    pub scenario: Scenario,
    /// Knobs that were set by the user or found by the search.
    pub overrides: Overrides,
    /// Launch files.
    pub launch: Launch,
    /// Directory for the files, if there are several scenarios.
    pub folder: Option<String>,
}

impl PlanArgs {
    /// Launch wrapper given on the command line.
    #[must_use]
    pub fn wrap(&self) -> Wrap {
        match self.wrap {
            Wrapping::Plain => Wrap::Plain,
            Wrapping::Slurm => Wrap::Slurm,
            Wrapping::Kubernetes => Wrap::Kubernetes,
        }
    }

    /// Resolves the scenarios (every workload on every target under every methodology) and generates their files.
    pub fn plan(&self, globals: &Globals) -> color_eyre::Result<Vec<Planned>> {
        self.knobs.check()?;
        let mut library = pick::library(globals);
        let methodologies = match library.methodology() {
            _ if !self.methodology.is_empty() => distinct(&self.methodology),
            Some(requested) => vec![requested],
            None => vec![Methodology::default()],
        };
        self.goal.check_allowed(&methodologies)?;
        let (targets, workloads) = (distinct(&self.target), distinct(&self.workload));
        self.check_placed(&targets)?;
        let several = targets.len() * workloads.len() * methodologies.len() > 1;
        let (mut planned, mut problems) = (Vec::new(), Vec::new());
        for methodology in &methodologies {
            if library.methodology().is_some() {
                library.compare_by(*methodology);
            }
            for (workload, target) in workloads.iter().flat_map(|w| targets.iter().map(move |t| (w, t))) {
                let suffix = (methodologies.len() > 1).then(|| methodology.name().to_owned());
                let options = Options { suffix, ..self.options(target) };
                match self.plan_one(&library, target, workload, *methodology, &options)? {
                    Ok(one) => {
                        let folder = several.then(|| one.launch.name.clone());
                        planned.push(Planned { folder, ..one });
                    }
                    Err(refused) => {
                        let of = if several { format!("{target}, {workload}: ") } else { String::new() };
                        problems.extend(refused.iter().map(|problem| format!("{of}{problem}")));
                    }
                }
            }
        }
        if problems.is_empty() {
            return Ok(planned);
        }
        write_stderr("nothing written: the tool does not support");
        problems.iter().for_each(|problem| write_stderr(&format!("  {problem}")));
        Err(Failure::Reported.into())
    }

    /// One scenario with its files, or the settings that its tool does not support.
    fn plan_one(
        &self,
        library: &Library,
        target: &str,
        workload: &str,
        methodology: Methodology,
        options: &Options,
    ) -> color_eyre::Result<Result<Planned, Vec<Unsupported>>> {
        let parts = pick::pick(library, target, workload)?;
        let mut overrides = self.knobs.overrides(parts.fabrics())?;
        let mut scenario = Scenario::resolve(&parts, &overrides)?;
        // If the tool is not the workload's software, the estimate is made for the tool.
        if let Some(tool) = self.tool
            && let Some(family) = tool.family()
            && Tool::default_for(&scenario) != Some(tool)
            && !overrides.contains_key(&Knob::Software)
        {
            overrides.insert(Knob::Software, Setting::Choice(family.into()));
            scenario = Scenario::resolve(&parts, &overrides)?;
        }
        // The experiment's settings count as the best of the platform, unless the command line states an objective.
        let stands = library.has_experiment_for(&parts.target, &parts.workload) && self.goal.given_flags().is_empty();
        let mut launch = launch::files(&parts, &scenario, options);
        if methodology == Methodology::MaximumPerformance && !stands {
            (scenario, launch) = self.search(&parts, &mut overrides, options)?;
        }
        Ok(launch.map(|launch| Planned { parts, scenario, overrides, launch, folder: None }))
    }

    /// Searches for the best knobs that the tool supports: the first of the best candidates that it accepts. If it
    /// rejects all of them, the knobs for which it rejects the best candidate are excluded from the next search.
    fn search(
        &self,
        parts: &Parts,
        overrides: &mut Overrides,
        options: &Options,
    ) -> color_eyre::Result<(Scenario, Result<Launch, Vec<Unsupported>>)> {
        let target = &parts.target.name;
        let mut goal = Goal { top: Some(CANDIDATES), ..self.goal.clone() };
        loop {
            let gauge = Gauge::default();
            let search = || best(parts, overrides, &goal, &gauge);
            let found = run_with_progress(&gauge, Duration::from_millis(500), "candidates", search)?;
            let found = found.map_err(|problem| eyre!("{target}: {problem}"))?;
            let made = |candidate: &Candidate| launch::files(parts, &candidate.scenario, options);
            let accepted =
                found.iter().enumerate().find_map(|(rank, candidate)| Some((rank, candidate, made(candidate).ok()?)));
            let Some((rank, candidate, launch)) = accepted else {
                let Some(first) = found.first() else { return Err(eyre!("{target}: no candidate")) };
                let refused = made(first);
                let free = |knob: &Knob| !goal.has_axis(*knob) && !goal.keep.iter().any(|kept| kept == knob.name());
                let knobs = refused.as_ref().err().into_iter().flatten().filter_map(unsupported_knob).filter(free);
                let kept: Vec<&str> = knobs.map(Knob::name).collect();
                if kept.is_empty() {
                    return Ok((first.scenario.clone(), refused));
                }
                write_stderr(&format!("{target}: the tool supports no other {}; searching again", kept.join(", ")));
                goal.keep.extend(kept.into_iter().map(str::to_owned));
                continue;
            };
            if rank > 0 {
                write_stderr(&format!(
                    "{target}: the tool does not support the best {rank} candidates; using number {}",
                    rank + 1
                ));
            }
            overrides.extend(candidate.changes.iter().cloned());
            // Includes knobs that the search set free, such as replicas, so that `run` with these overrides yields this
            // scenario.
            let stated = Scenario::resolve(parts, overrides)?;
            let freed = differences(&[&stated, &candidate.scenario], &[]).into_iter();
            overrides.extend(freed.filter_map(|(knob, values)| Some((knob, values.into_iter().nth(1)??))));
            return Ok((candidate.scenario.clone(), Ok(launch)));
        }
    }

    fn options(&self, target: &str) -> Options {
        Options {
            tool: self.tool,
            wrap: self.wrap(),
            container: self.container.map(|container| match container {
                Containers::Pyxis => Container::Pyxis,
                Containers::Apptainer => Container::Apptainer,
            }),
            image: value_for_target(&self.image, target),
            model: self.model_path.clone(),
            draft_model: self.draft_model.clone(),
            program: self.program.clone(),
            steps: self.steps,
            partition: value_for_target(&self.partition, target),
            account: value_for_target(&self.account, target),
            qos: value_for_target(&self.qos, target),
            time: self.time.clone(),
            gpu_type: value_for_target(&self.gpu_type, target),
            namespace: self.namespace.clone(),
            suffix: None,
        }
    }

    /// Rejects values for targets that are not launched, and duplicate values for the same target.
    fn check_placed(&self, targets: &[String]) -> Result<(), Failure> {
        let flags = [
            ("--image", &self.image),
            ("--partition", &self.partition),
            ("--account", &self.account),
            ("--qos", &self.qos),
            ("--gpu-type", &self.gpu_type),
        ];
        let mut problems = Vec::new();
        for (flag, values) in flags {
            let mut known: Vec<Option<&str>> = Vec::new();
            for value in values {
                let target = of_target(value, targets).map(|(target, _)| target);
                if target.is_none() && value.contains('=') {
                    let names = targets.join(", ");
                    problems.push(format!("{flag} {value}: expected TARGET=VALUE with a target of --target: {names}"));
                    continue;
                }
                if known.contains(&target) {
                    let whose = target.map_or_else(String::new, |target| format!(" for {target}"));
                    problems
                        .push(format!("{flag} {value}: there is another value{whose}; expected one, or TARGET=VALUE"));
                }
                known.push(target);
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(Failure::usage(problems)) }
    }
}

/// Knob of a setting that a tool does not support.
fn unsupported_knob(refused: &Unsupported) -> Option<Knob> {
    Knob::find(&refused.setting)
}

/// Splits `TARGET=VALUE`, if it begins with the name of one of the targets.
fn of_target<'v>(value: &'v str, targets: &[impl AsRef<str>]) -> Option<(&'v str, &'v str)> {
    let parts = value.split_once('=')?;
    targets.iter().any(|target| target.as_ref() == parts.0).then_some(parts)
}

/// Value of a flag for a target: the target's own, else the one for all targets.
fn value_for_target(values: &[String], target: &str) -> Option<String> {
    let own = values.iter().find_map(|value| of_target(value, &[target]));
    let all = || values.iter().find(|value| !value.contains('=')).map(String::as_str);
    own.map(|(_, value)| value).or_else(all).map(str::to_owned)
}

/// Removes duplicates and keeps the order.
fn distinct<T: PartialEq + Clone>(values: &[T]) -> Vec<T> {
    let mut out: Vec<T> = Vec::new();
    for value in values {
        if !out.contains(value) {
            out.push(value.clone());
        }
    }
    out
}
