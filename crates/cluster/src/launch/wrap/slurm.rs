//! A Slurm batch script. Several servers become a job array.

use super::{additional_files, arguments, command, setup};
use crate::launch::job::Job;
use crate::launch::tools::{Draft, Launcher};
use crate::launch::words::Word;
use crate::launch::{Container, File, Options, trains};

/// The script and the files in its directory.
pub(crate) fn files(job: &Job<'_>, draft: &Draft, header: &str, options: &Options) -> Vec<File> {
    let together = draft.spread.as_ref().map_or(1, |spread| spread.nodes);
    let (nodes, devices) = if trains(job) { (job.nodes, job.per_node) } else { (together, draft.devices) };
    // Slurm starts the ranks of this launcher.
    let ranks = if draft.spread.as_ref().is_some_and(|spread| spread.flags.is_empty()) { devices } else { 1 };
    let mut text = format!("#!/bin/bash\n#SBATCH --job-name={}\n#SBATCH --nodes={nodes}\n", job.name);
    text.push_str(&format!("#SBATCH --ntasks-per-node={ranks}\n"));
    let kind = options.gpu_type.as_ref().map_or_else(String::new, |kind| format!("{kind}:"));
    text.push_str(&format!("#SBATCH --gres={}\n", directive(&format!("gpu:{kind}{devices}"))));
    if trains(job) || together > 1 || draft.devices == job.per_node {
        text.push_str("#SBATCH --exclusive\n");
    }
    let given = [
        ("time", &options.time),
        ("partition", &options.partition),
        ("account", &options.account),
        ("qos", &options.qos),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            text.push_str(&format!("#SBATCH --{name}={}\n", directive(value)));
        }
    }
    let array = !trains(job) && draft.servers > 1;
    if array {
        text.push_str(&format!("#SBATCH --array=0-{}\n", draft.servers - 1));
    }
    let log = if array { "%x-%A_%a.log" } else { "%x-%j.log" };
    text.push_str(&format!(
        "#SBATCH --output={log}\n{header}# Submit this script from its own directory.\nset -euo pipefail\n\n"
    ));
    if nodes > 1 {
        text.push_str("HEAD_NODE=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n");
        text.push_str(&format!("export HEAD_NODE NODES={nodes}\n"));
    } else {
        text.push_str("HEAD_NODE=localhost\n");
    }
    if options.container.is_some() {
        text.push_str(&format!("IMAGE=${{IMAGE:-{}}}\n", Word::from(image(draft, options)).shell()));
    }
    text.push_str(&setup(draft));
    let srun = srun(options);
    let (command, args) = (command(job, draft), arguments(draft));
    let port = draft.port.map_or_else(String::new, |port| match array {
        true => format!(" --port \"$(({port} + SLURM_ARRAY_TASK_ID))\""),
        false => format!(" --port {port}"),
    });
    match &draft.spread {
        Some(spread) if spread.flags.is_empty() => {
            text.push_str(&format!("{srun} --mpi=pmix \\\n  {command}{args}{port}\n"));
        }
        Some(spread) => {
            // `$SLURM_NODEID` is only known on the node, so the flags are expanded by a shell there.
            let flags = spread.flags.replace("$NODE_RANK", "$SLURM_NODEID");
            text.push_str(&format!("{srun} bash -c 'exec \"$@\" {flags}' server \\\n  {command}{args}{port}\n"));
        }
        None if trains(job) && draft.start == Launcher::Direct && nodes > 1 => {
            text.push_str(&format!(
                "{srun} bash -c 'NODE_RANK=\"$SLURM_NODEID\" exec \"$@\"' node \\\n  {command}{args}\n"
            ));
        }
        None => text.push_str(&format!("{srun} \\\n  {command}{args}{port}\n")),
    }
    let script = File { name: format!("{}.sbatch", job.name), text, executable: false };
    std::iter::once(script).chain(additional_files(job, draft, header)).collect()
}

/// The image in the format of the container runtime.
fn image(draft: &Draft, options: &Options) -> String {
    match options.container {
        // A path is an image file that was converted before.
        Some(Container::Apptainer) if !draft.image.starts_with('/') && !draft.image.contains("://") => {
            format!("docker://{}", draft.image)
        }
        _ => draft.image.clone(),
    }
}

fn srun(options: &Options) -> String {
    match options.container {
        None => "srun".to_owned(),
        Some(Container::Pyxis) => {
            "srun --container-image=\"$IMAGE\" --container-mounts=\"$PWD:$PWD\" --container-workdir=\"$PWD\"".to_owned()
        }
        Some(Container::Apptainer) => "srun apptainer exec --nv --bind \"$PWD\" --pwd \"$PWD\" \"$IMAGE\"".to_owned(),
    }
}

/// Formats the value of a directive. Slurm splits directives at spaces and interprets quotes.
fn directive(value: &str) -> String {
    let safe = value.chars().filter(|c| !c.is_control() && !matches!(c, '"' | '\'' | '\\' | '#'));
    let safe: String = safe.collect();
    if safe.contains(char::is_whitespace) { format!("\"{safe}\"") } else { safe }
}
