//! `atlas launch`.

use std::path::{Path, PathBuf};

use atlas_cluster::launch::{self, Container, File, Launch, Options, Tool, Wrap};
use atlas_document::files;
use atlas_plan::knob::{Knob, Setting};
use atlas_plan::scenario::{Parts, Scenario};

use super::args::{Globals, KnobArgs};
use super::failure::Failure;
use super::output::{self, complain};
use super::pick;
use super::run::writing;

/// Write scripts, batch scripts or manifests that start a scenario.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas launch --target h100-sxm-128 --workload llama3.1-70b-train --wrap slurm
  atlas launch --target h100-sxm-8 --workload llama3.1-70b-serve --wrap kubernetes --out deploy
  atlas launch --target h100-sxm-8 --workload llama3.1-8b-train --tool torchtitan --dry-run

The software of the scenario chooses the tool. Settings that the tool cannot express are listed, and nothing is written. \
Data, learning rates and other settings that are not planned are marked in the files.")]
pub struct Args {
    /// What is launched.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Directory that the files are written to
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
    /// Print the files in place of writing them
    #[arg(long)]
    pub dry_run: bool,
}

/// A scenario and how it is launched.
#[derive(Debug, clap::Args)]
pub struct PlanArgs {
    /// Target, by name
    #[arg(long, value_name = "NAME")]
    pub target: String,
    /// Workload, by name
    #[arg(long, value_name = "NAME")]
    pub workload: String,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// The tool, in place of the workload's software
    #[arg(long, value_name = "NAME", value_parser = tool, help_heading = "Launch")]
    pub tool: Option<Tool>,
    /// What the command is wrapped in
    #[arg(long, value_enum, default_value_t, help_heading = "Launch")]
    pub wrap: Wrapping,
    /// How a batch script starts a container
    #[arg(long, value_enum, help_heading = "Launch")]
    pub container: Option<Containers>,
    /// Container image, in place of the usual one
    #[arg(long, value_name = "IMAGE", help_heading = "Launch")]
    pub image: Option<String>,
    /// Repository or path of the model's weights
    #[arg(long, value_name = "PATH", help_heading = "Launch")]
    pub model_path: Option<String>,
    /// Repository or path of the weights that draft (draft_method eagle3 or draft-model)
    #[arg(long, value_name = "PATH", help_heading = "Launch")]
    pub draft_model: Option<String>,
    /// Training program for tools that bring none, with the arguments of run_clm.py
    #[arg(long, value_name = "FILE", help_heading = "Launch")]
    pub program: Option<String>,
    /// Steps of a training run [default: those of train_tokens, else 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Launch")]
    pub steps: Option<u64>,
    /// Slurm partition
    #[arg(long, value_name = "NAME", help_heading = "Launch")]
    pub partition: Option<String>,
    /// Slurm account
    #[arg(long, value_name = "NAME", help_heading = "Launch")]
    pub account: Option<String>,
    /// Slurm quality of service
    #[arg(long, value_name = "NAME", help_heading = "Launch")]
    pub qos: Option<String>,
    /// Time limit of a batch job, as Slurm writes it: 04:00:00
    #[arg(long, value_name = "TIME", help_heading = "Launch")]
    pub time: Option<String>,
    /// Type of the accelerators in Slurm's words: h100
    #[arg(long, value_name = "NAME", help_heading = "Launch")]
    pub gpu_type: Option<String>,
    /// Kubernetes namespace
    #[arg(long, value_name = "NAME", help_heading = "Launch")]
    pub namespace: Option<String>,
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

/// A scenario with its files.
pub struct Planned {
    /// What the scenario is made of.
    pub parts: Parts,
    /// The scenario.
    pub scenario: Scenario,
    /// The knobs that were set.
    pub overrides: atlas_plan::knob::Overrides,
    /// Its files.
    pub launch: Launch,
}

impl PlanArgs {
    /// The wrapping.
    #[must_use]
    pub fn wrap(&self) -> Wrap {
        match self.wrap {
            Wrapping::Plain => Wrap::Plain,
            Wrapping::Slurm => Wrap::Slurm,
            Wrapping::Kubernetes => Wrap::Kubernetes,
        }
    }

    /// Resolves the scenario and makes its files.
    pub fn plan(&self, globals: &Globals) -> color_eyre::Result<Planned> {
        self.knobs.check()?;
        let library = pick::library(globals);
        let parts = pick::pick(&library, &self.target, &self.workload)?;
        let mut overrides = self.knobs.overrides(parts.fabrics())?;
        let mut scenario = Scenario::resolve(&parts, &overrides)?;
        // Another tool than the workload's software is predicted as what it is.
        if let Some(tool) = self.tool
            && let Some(family) = tool.family()
            && Tool::usual(&scenario) != Some(tool)
            && !overrides.contains_key(&Knob::Software)
        {
            overrides.insert(Knob::Software, Setting::Choice(family.into()));
            scenario = Scenario::resolve(&parts, &overrides)?;
        }
        let options = Options {
            tool: self.tool,
            wrap: self.wrap(),
            container: self.container.map(|container| match container {
                Containers::Pyxis => Container::Pyxis,
                Containers::Apptainer => Container::Apptainer,
            }),
            image: self.image.clone(),
            model: self.model_path.clone(),
            draft_model: self.draft_model.clone(),
            program: self.program.clone(),
            steps: self.steps,
            partition: self.partition.clone(),
            account: self.account.clone(),
            qos: self.qos.clone(),
            time: self.time.clone(),
            gpu_type: self.gpu_type.clone(),
            namespace: self.namespace.clone(),
        };
        let launch = launch::files(&parts, &scenario, &options).map_err(|refused| {
            complain("nothing is written, since the tool cannot run this as asked:");
            refused.iter().for_each(|problem| complain(&format!("  {problem}")));
            Failure::Reported
        })?;
        Ok(Planned { parts, scenario, overrides, launch })
    }
}

/// Writes or prints the files.
pub fn run(args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    let launch = args.plan.plan(globals)?.launch;
    if args.dry_run {
        return Ok(output::print(&globals.charset().write(&shown(&launch)))?);
    }
    for path in write(&launch.files, &args.out, args.force)? {
        output::print(&format!("{}\n", path.display()))?;
    }
    launch.notes.iter().for_each(|note| complain(&format!("note: {note}")));
    Ok(())
}

/// All files as one text; a single file as it is, so that it can be piped.
#[must_use]
pub fn shown(launch: &Launch) -> String {
    match launch.files.as_slice() {
        [file] => file.text.clone(),
        files => files.iter().map(|file| format!("==> {} <==\n{}\n", file.name, file.text)).collect(),
    }
}

/// Writes all files, or none where one is there already.
pub fn write(files: &[File], out: &Path, force: bool) -> color_eyre::Result<Vec<PathBuf>> {
    let paths: Vec<PathBuf> = files.iter().map(|file| out.join(&file.name)).collect();
    let there: Vec<String> =
        paths.iter().filter(|path| !force && path.exists()).map(|path| path.display().to_string()).collect();
    if !there.is_empty() {
        let list = there.join(", ");
        return Err(color_eyre::eyre::eyre!("{list} exists; --force replaces files, --out names another directory"));
    }
    for (file, path) in files.iter().zip(&paths) {
        let written = if force { files::write(path, &file.text) } else { files::write_new(path, &file.text) };
        written.map_err(|error| writing(path, &error))?;
        if file.executable {
            make_executable(path).map_err(|error| writing(path, &error))?;
        }
    }
    Ok(paths)
}

#[cfg(unix)]
fn make_executable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> std::io::Result<()> {
    Ok(())
}
