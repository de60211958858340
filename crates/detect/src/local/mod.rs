//! Detection of the machine on which this program runs.

mod links;
mod tools;

use std::fs;
use std::io::Read;
use std::path::Path;

use crate::catalog::CatalogEntry;
use crate::matching::{Lookup, Matched, NamedBy, Query, look_up};
use crate::model::{Accelerator, Detected, Host, Machine, Nodes, Origin, Slice, Undetermined};
use crate::options::Options;
use crate::probe::Probe;
use crate::read::pci::read_line;
use crate::read::{Device, infiniband, neuron_ls};
use crate::text::{clean, gib};
use tools::FoundDevice;

/// Detects the accelerators, their links and the NICs.
pub(crate) fn detect(probe: &mut Probe<'_>, options: &Options, catalog: &[CatalogEntry]) -> Detected {
    let instance = instance_type(&options.sysfs);
    let found = tools::devices(probe, &options.sysfs, instance.as_deref());
    let mut detected = Detected::default();
    if found.is_empty() {
        detected.undetermined.push(Undetermined::new(
            "accelerators of this machine",
            "no vendor tool reports an accelerator, and no PCI device is a known accelerator",
            "this is expected on a login node",
        ));
        return detected;
    }
    let host = host(options, instance);
    let name = host_name(options).unwrap_or_else(|| "this-machine".to_owned());
    let groups = group(&found);
    let several = groups.len() > 1;
    for devices in groups {
        let mut machine = machine(&devices, &host, catalog);
        let model = machine.accelerator.as_ref().map_or("", |accelerator| accelerator.raw.as_str());
        machine.name = if several { format!("{name}-{}", model.to_ascii_lowercase()) } else { name.clone() };
        links::measure(probe, options, &devices, &mut machine);
        detected.machines.push(machine);
    }
    detected
}

/// Groups devices of equal name, memory and MIG profiles.
fn group(found: &[FoundDevice]) -> Vec<Vec<&FoundDevice>> {
    let mut groups: Vec<Vec<&FoundDevice>> = Vec::new();
    let size = |device: &Device| device.memory_gib.map(|gib| (gib / 2.0).round());
    for device in found {
        let same = |other: &&FoundDevice| {
            other.device.name == device.device.name
                && size(&other.device) == size(&device.device)
                && other.profiles == device.profiles
        };
        match groups.iter_mut().find(|group| group.first().is_some_and(same)) {
            Some(group) => group.push(device),
            None => groups.push(vec![device]),
        }
    }
    groups
}

fn machine(devices: &[&FoundDevice], host: &Host, catalog: &[CatalogEntry]) -> Machine {
    let mut machine = Machine {
        origin: Origin::Local,
        host: host.clone(),
        nodes: Nodes { total: Some(1), ..Nodes::default() },
        ..Machine::default()
    };
    let Some(first) = devices.first() else { return machine };
    let device = &first.device;
    let lookup = if device.name == neuron_ls::UNNAMED_DEVICE {
        either_neuron(catalog)
    } else {
        look_up(
            &Query {
                text: device.name.clone(),
                named_by: NamedBy::Driver,
                memory_gib: device.memory_gib,
                cores: device.cores,
                hints: host.instance_type.iter().cloned().collect(),
            },
            catalog,
        )
    };
    let count = u32::try_from(devices.len()).unwrap_or(u32::MAX);
    machine.accelerators_per_node = Some(count.div_ceil(lookup.devices_per_accelerator));
    if lookup.devices_per_accelerator > 1 {
        let per = lookup.devices_per_accelerator;
        machine.remarks.push(format!("{count} devices; the driver reports each accelerator as {per} devices"));
    }
    let profile = first.profiles.first();
    let slice = profile.and_then(|profile| crate::matching::slice_of(profile)).or(lookup.slice);
    if device.mig {
        machine.remarks.push(mig_remark(&first.profiles, slice.as_ref()));
    }
    machine.accelerator = Some(Accelerator {
        raw: device.name.clone(),
        source: first.source.clone(),
        matched: lookup.matched,
        memory_gib: device.memory_gib,
        power_w: device.power_w,
        slice,
    });
    machine
}

fn mig_remark(profiles: &[String], slice: Option<&Slice>) -> String {
    match slice {
        Some(_) => format!("MIG is enabled: each device is split into {}", profiles.join(", ")),
        None => "MIG is enabled, but no instance exists: no job can run until one is created".to_owned(),
    }
}

/// Lookup result when the instance type is unknown: Trainium and Inferentia2 cannot be told apart.
fn either_neuron(catalog: &[CatalogEntry]) -> Lookup {
    let keys: Vec<String> = ["trn1", "inf2"]
        .iter()
        .filter_map(|name| {
            let query = Query { text: (*name).to_owned(), named_by: NamedBy::Driver, ..Query::default() };
            look_up(&query, catalog).matched.key().map(str::to_owned)
        })
        .collect();
    let reason = "neuron-ls does not distinguish Trainium and Inferentia2, and the instance type is unknown".to_owned();
    let matched =
        if keys.is_empty() { Matched::Unknown { closest: keys, reason } } else { Matched::Several { keys, reason } };
    Lookup { matched, slice: None, devices_per_accelerator: 1 }
}

/// Host name.
pub(crate) fn host_name(options: &Options) -> Option<String> {
    read_line(&options.procfs.join("sys/kernel/hostname")).map(|name| clean(&name)).filter(|name| !name.is_empty())
}

/// Instance type, which AWS writes to the DMI tables.
fn instance_type(sysfs: &Path) -> Option<String> {
    let line = |file: &str| read_line(&sysfs.join("class/dmi/id").join(file));
    let vendor = line("sys_vendor")?;
    vendor.starts_with("Amazon").then(|| line("product_name")).flatten().map(|name| clean(&name))
}

fn host(options: &Options, instance_type: Option<String>) -> Host {
    let read = |file: &str, most: u64| {
        let mut text = String::new();
        fs::File::open(options.procfs.join(file)).ok()?.take(most).read_to_string(&mut text).ok()?;
        Some(text)
    };
    let memory = read("meminfo", 1 << 16).and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        gib(line.trim(), 1.0)
    });
    let cpus = read("cpuinfo", 8 << 20).map(|text| text.lines().filter(|line| line.starts_with("processor")).count());
    Host {
        cpus: cpus.and_then(|count| u32::try_from(count).ok()).filter(|count| *count > 0),
        memory_gib: memory,
        architecture: Some(std::env::consts::ARCH.to_owned()),
        instance_type,
    }
}

/// Ports of the NICs, and the source from which they were read.
pub(crate) fn ports(probe: &mut Probe<'_>, sysfs: &Path) -> (Vec<infiniband::Port>, String) {
    let ports = infiniband::scan(sysfs);
    if !ports.is_empty() {
        return (ports, "/sys/class/infiniband".to_owned());
    }
    let listed =
        probe.try_read("ibstat", &[], 1 << 20, |text| crate::probe::non_empty(crate::read::ibstat::ports(text)));
    (listed.unwrap_or_default(), "ibstat".to_owned())
}
