//! Links between the accelerators of this machine, and its NICs.

use super::ports;
use super::tools::FoundDevice;
use crate::model::{IntraLink, Machine, Undetermined};
use crate::network;
use crate::options::Options;
use crate::probe::{Probe, non_empty};
use crate::read::nvidia_smi::NvLinks;
use crate::read::nvidia_topo::{self, Topology};
use crate::read::{nvidia_smi, pci, rocm_smi};

/// Output limit in bytes; the output of these tools is small.
const LIMIT: usize = 1 << 20;

/// Sets the link and the network of a machine.
pub(super) fn measure(probe: &mut Probe<'_>, options: &Options, devices: &[&FoundDevice], machine: &mut Machine) {
    let Some(first) = devices.first() else { return };
    let mut topology = None;
    if first.source == "nvidia-smi" {
        topology = probe.try_read("nvidia-smi", &["topo", "-m"], LIMIT, nvidia_topo::parse);
        let links = probe.try_read("nvidia-smi", &["nvlink", "-s"], LIMIT, |text| non_empty(nvidia_smi::nvlink(text)));
        nvidia(devices, topology.as_ref(), &links.unwrap_or_default(), machine);
    } else if first.vendor == pci::AMD && devices.len() > 1 {
        amd(probe, devices, machine);
    }
    let (ports, source) = ports(probe, &options.sysfs);
    let count = machine.accelerators_per_node.unwrap_or(0);
    let (link, open) = network::summarize(&ports, topology.as_ref(), count, &source);
    machine.network = link;
    machine.undetermined.extend(open);
}

fn nvidia(devices: &[&FoundDevice], topology: Option<&Topology>, links: &[NvLinks], machine: &mut Machine) {
    let own: Vec<&NvLinks> =
        links.iter().filter(|gpu| devices.iter().any(|device| device.device.index == gpu.index)).collect();
    let domain = topology.and_then(Topology::nvlink_domain);
    let mixed = topology.is_some() && domain.is_none();
    if mixed {
        machine.undetermined.push(Undetermined::new(
            "interconnect.domain_size",
            "NVLink connects the GPUs in groups of different sizes",
            "write interconnect: { type: NVLink, bw_GBps: …, domain_size: … } with the groups of `nvidia-smi topo -m`",
        ));
    }
    let linked = domain.is_some_and(|size| size > 1) || mixed || !own.is_empty();
    if linked {
        let least = own
            .iter()
            .min_by(|a, b| (f64::from(a.links) * a.gbytes_per_sec).total_cmp(&(f64::from(b.links) * b.gbytes_per_sec)));
        if own.iter().any(|gpu| least.is_some_and(|least| gpu.links != least.links)) {
            let remark = "GPUs have different numbers of active NVLinks; the bandwidth of the slowest GPU is stated";
            machine.remarks.push(remark.to_owned());
        }
        machine.link = Some(IntraLink {
            kind: "NVLink".to_owned(),
            gbytes_per_sec: least.map(|gpu| 2.0 * f64::from(gpu.links) * gpu.gbytes_per_sec),
            domain_size: domain.filter(|size| *size > 1),
            source: "nvidia-smi topo -m, nvidia-smi nvlink -s".to_owned(),
        });
    } else if let (Some(1), true) = (domain, devices.len() > 1) {
        // The GPUs have no NVLink and use PCIe, even if the catalog's model has NVLink.
        machine.link = Some(IntraLink {
            kind: "PCIe".to_owned(),
            gbytes_per_sec: devices.first().and_then(|found| found.device.pcie).and_then(pcie_rate),
            domain_size: machine.accelerators_per_node,
            source: "nvidia-smi topo -m: no NVLink".to_owned(),
        });
    }
}

/// Bandwidth of a PCIe link in GB/s, both directions together.
fn pcie_rate((generation, lanes): (u32, u32)) -> Option<f64> {
    let lane = match generation {
        1 => 0.25,
        2 => 0.5,
        3 => 0.985,
        4 => 1.969,
        5 => 3.938,
        6 => 7.563,
        _ => return None,
    };
    let both = 2.0 * lane * f64::from(lanes);
    (lanes > 0 && lanes <= 32).then(|| both.round())
}

fn amd(probe: &mut Probe<'_>, devices: &[&FoundDevice], machine: &mut Machine) {
    let domain = probe
        .try_read("amd-smi", &["topology", "--json"], LIMIT, rocm_smi::xgmi_domain_of_amd_smi)
        .or_else(|| probe.try_read("rocm-smi", &["--showtopotype"], LIMIT, rocm_smi::xgmi_domain));
    let Some(domain) = domain else { return };
    let count = u32::try_from(devices.len()).unwrap_or(u32::MAX);
    let per_accelerator = machine.accelerators_per_node.map_or(1, |own| (count / own.max(1)).max(1));
    if domain > 1 {
        machine.link = Some(IntraLink {
            kind: "xGMI".to_owned(),
            gbytes_per_sec: None,
            domain_size: Some((domain / per_accelerator).max(1)),
            source: "link types in the topology".to_owned(),
        });
    } else {
        machine.link = Some(IntraLink {
            kind: "PCIe".to_owned(),
            gbytes_per_sec: None,
            domain_size: machine.accelerators_per_node,
            source: "link types in the topology: no xGMI".to_owned(),
        });
    }
}
