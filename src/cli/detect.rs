//! `atlas detect`.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use atlas_catalog::Catalog;
use atlas_cluster::detection::entries;
use atlas_detect::render::render;
use atlas_detect::runner::System;
use atlas_detect::{Options, detect, idle};

use super::args::Globals;
use super::output::write_stderr;
use super::save;

/// Detect the accelerators of this machine and its cluster and print them as targets.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas detect                          this machine, Slurm partitions and Kubernetes nodes
  atlas detect --out targets.yaml       write a targets file to edit
  atlas detect --only slurm --idle      Slurm partitions with their idle nodes

Runs the query commands that are installed (nvidia-smi, rocm-smi, amd-smi, xpu-smi, hl-smi, neuron-ls, ibstat, sinfo, \
scontrol, squeue, kubectl), each with a timeout, and changes nothing. Comments in the output list what could not be \
determined.")]
pub struct Args {
    /// Where to look [default: everywhere]
    #[arg(long, value_enum, value_name = "WHERE")]
    pub only: Vec<Place>,
    /// Also print idle and pending nodes of every partition
    #[arg(long)]
    pub idle: bool,
    /// Write to a new file instead of stdout
    #[arg(long, value_name = "FILE.yaml")]
    pub out: Option<PathBuf>,
    /// Timeout of each command, seconds
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: f64,
}

/// Where accelerators are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Place {
    /// This machine
    Local,
    /// Slurm partitions
    Slurm,
    /// Kubernetes nodes
    Kubernetes,
}

fn seconds(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|value| (0.1..=600.0).contains(value)).ok_or_else(|| "expected 0.1 to 600".to_owned())
}

/// Detects accelerators, and prints or writes the targets.
pub fn run(args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    let catalog = entries(&Catalog::load(&globals.sources(), None));
    let wanted = |place: Place| args.only.is_empty() || args.only.contains(&place);
    let options = Options {
        local: wanted(Place::Local),
        slurm: wanted(Place::Slurm),
        kubernetes: wanted(Place::Kubernetes),
        timeout: Duration::from_secs_f64(args.timeout),
        ..Options::default()
    };
    let found = detect(&System, &options, &catalog);
    let mut text = render(&found, &catalog, &|_| None);
    if args.idle {
        match idle::query(&System, options.timeout) {
            Ok(load) => {
                for machine in &found.machines {
                    if let Some(nodes) = load.nodes(machine) {
                        let count = |nodes: Option<u64>| nodes.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
                        text.push_str(&format!(
                            "# {}: {} nodes idle\n",
                            machine.name,
                            count(nodes.idle.map(Into::into))
                        ));
                    }
                }
            }
            Err(problem) => write_stderr(&format!("idle nodes: {problem}")),
        }
    }
    match &args.out {
        None => std::io::stdout().lock().write_all(text.as_bytes())?,
        Some(path) => {
            save::write_new(path, &text, save::OTHER_NAME)?;
            write_stderr(&format!("wrote {} targets to {}", found.machines.len(), path.display()));
        }
    }
    Ok(())
}
