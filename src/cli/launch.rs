//! `atlas launch`.

use std::path::{Path, PathBuf};

use atlas_cluster::launch::{File, write};

use super::args::Globals;
use super::launch_plan::{PlanArgs, Planned};
use super::output::{self, write_stderr};

/// Write launch scripts, Slurm jobs or Kubernetes manifests for a scenario.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas launch --target h100-sxm-128 --workload llama3.1-70b-train --wrap slurm
  atlas launch --target h100-sxm-8 --workload llama3.1-70b-serve --wrap kubernetes --out deploy
  atlas launch --target h100-sxm-8 --workload llama3.1-8b-train --tool torchtitan --dry-run
  atlas launch --target h100-sxm-8 --target mi300x-8 --workload llama3.1-8b-train \\
    --methodology maximum-performance

The scenario's software determines the tool. If the tool does not support a setting, atlas lists it and writes nothing. \
Data, learning rate and other settings that atlas does not plan are marked in the files for you to fill in. With several \
targets, workloads or methodologies, each combination gets its own directory.")]
pub struct Args {
    /// What is launched.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Print the files instead of writing them
    #[arg(long)]
    pub dry_run: bool,
}

/// Writes or prints the files.
pub fn run(args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    let planned = args.plan.plan(globals)?;
    if args.dry_run {
        return Ok(output::print(&globals.charset().write(&files_as_text(&planned)))?);
    }
    let files = places(&planned, &args.plan.out);
    write(&files, args.plan.force)?;
    for (path, _) in &files {
        output::print(&format!("{}\n", path.display()))?;
    }
    for note in planned.iter().flat_map(|planned| &planned.launch.notes) {
        write_stderr(&format!("note: {note}"));
    }
    Ok(())
}

/// All files as one text. A single file is printed verbatim, so that it can be piped.
fn files_as_text(planned: &[Planned]) -> String {
    let placed = places(planned, Path::new(""));
    match placed.as_slice() {
        [(_, file)] => file.text.clone(),
        files => files.iter().map(|(path, file)| format!("==> {} <==\n{}\n", path.display(), file.text)).collect(),
    }
}

/// Paths of the files of the scenarios.
pub fn places<'p>(planned: &'p [Planned], out: &Path) -> Vec<(PathBuf, &'p File)> {
    let of = |planned: &'p Planned| {
        let folder = planned.folder.as_ref().map_or_else(|| out.to_owned(), |folder| out.join(folder));
        planned.launch.files.iter().map(move |file| (folder.join(&file.name), file))
    };
    planned.iter().flat_map(of).collect()
}
