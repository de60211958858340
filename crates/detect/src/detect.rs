//! Detection of everything: this machine, Slurm and Kubernetes.

use std::thread;

use crate::catalog::CatalogEntry;
use crate::model::{Detected, Machine, Origin, Undetermined};
use crate::options::Options;
use crate::probe::Probe;
use crate::read::hostlist;
use crate::runner::Runner;
use crate::{local, pools, slurm};

/// Runs the tools that are installed, each with a timeout, and returns what they report. Does not change anything.
#[must_use]
pub fn detect(runner: &dyn Runner, options: &Options, catalog: &[CatalogEntry]) -> Detected {
    let part = |wanted: bool, look: &(dyn Fn(&mut Probe<'_>) -> Detected + Sync)| {
        if !wanted {
            return Detected::default();
        }
        let mut probe = Probe::new(runner, options.timeout);
        let mut found = look(&mut probe);
        found.undetermined.extend(probe.failures);
        found
    };
    let slurm = || part(options.slurm, &|probe| slurm::detect(probe, catalog));
    let pools = || part(options.kubernetes, &|probe| pools::detect(probe, catalog));
    let local = || part(options.local, &|probe| local::detect(probe, options, catalog));
    // In parallel, so that a slow scheduler does not delay the rest. If no thread can be started, the parts run in
    // turn.
    let parts = thread::scope(|scope| {
        let by_thread = [
            thread::Builder::new().spawn_scoped(scope, slurm).ok(),
            thread::Builder::new().spawn_scoped(scope, pools).ok(),
        ];
        let local = local();
        let [slurm_found, pools_found] = by_thread;
        [
            Ok(local),
            slurm_found.map_or_else(|| Ok(slurm()), |thread| thread.join()),
            pools_found.map_or_else(|| Ok(pools()), |thread| thread.join()),
        ]
    });
    let mut all = Detected::default();
    for (part, name) in parts.into_iter().zip(["this machine", "Slurm", "Kubernetes"]) {
        match part {
            Ok(part) => {
                all.machines.extend(part.machines);
                all.undetermined.extend(part.undetermined);
            }
            Err(_) => all.undetermined.push(Undetermined::new(
                name,
                "detection failed with an internal error",
                "report this bug with the output of the commands",
            )),
        }
    }
    copy_local_measurements(&mut all.machines, local::host_name(options).as_deref());
    unique_names(&mut all.machines);
    all
}

/// If this machine is a node of a partition, copies what was measured here to that partition.
fn copy_local_measurements(machines: &mut [Machine], host: Option<&str>) {
    let Some(host) = host else { return };
    let Some(own) = machines.iter().find(|machine| machine.origin == Origin::Local).cloned() else { return };
    for machine in machines.iter_mut().filter(|machine| matches!(machine.origin, Origin::Slurm { .. })) {
        let same = match (&own.accelerator, &machine.accelerator) {
            (Some(own), Some(other)) => own.matched.key().is_some() && own.matched.key() == other.matched.key(),
            _ => false,
        };
        if !same || !machine.node_lists.iter().any(|list| hostlist::contains(list, host)) {
            continue;
        }
        if machine.link.is_none() && own.link.is_some() {
            machine.link.clone_from(&own.link);
        }
        if own.network.is_some() {
            machine.network.clone_from(&own.network);
            machine.undetermined.retain(|open| open.what != "network");
        }
        machine.remarks.push(format!("links and network measured on {host}, a node of this partition"));
    }
}

fn unique_names(machines: &mut [Machine]) {
    let mut taken: Vec<String> = Vec::new();
    for machine in machines {
        let base = safe_name(&machine.name);
        let mut name = base.clone();
        let mut number = 2_u32;
        while taken.contains(&name) {
            name = format!("{base}-{number}");
            number = number.saturating_add(1);
        }
        taken.push(name.clone());
        machine.name = name;
    }
}

/// Replaces all characters except letters, digits, `-`, `_` and `.` with `-`, and keeps at most 80 characters.
#[must_use]
pub(crate) fn safe_name(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars().take(80) {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') {
            name.push(c);
        } else if !name.ends_with('-') {
            name.push('-');
        }
    }
    let trimmed = name.trim_matches(|c| matches!(c, '-' | '.'));
    if trimmed.is_empty() { "machine".to_owned() } else { trimmed.to_owned() }
}
