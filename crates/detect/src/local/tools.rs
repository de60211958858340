//! Queries the vendors' tools for devices, and falls back to the PCI bus.

use std::path::Path;

use crate::probe::{Probe, non_empty};
use crate::read::{Device, amd_smi, apple, hl_smi, neuron_ls, nvidia_smi, pci, rocm_smi, xpu_smi};

/// Output limit in bytes; the output of these tools is small.
const LIMIT: usize = 1 << 20;

/// A device, the source from which it was read, and its MIG profiles.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundDevice {
    pub(super) device: Device,
    pub(super) vendor: u32,
    pub(super) source: String,
    pub(super) profiles: Vec<String>,
}

/// All accelerators of this machine.
pub(super) fn devices(probe: &mut Probe<'_>, sysfs: &Path, instance: Option<&str>) -> Vec<FoundDevice> {
    let mut found = Vec::new();
    let mut add = |vendor: u32, source: &str, devices: Option<Vec<Device>>| {
        let devices = devices.into_iter().flatten();
        found.extend(devices.map(|device| FoundDevice {
            device,
            vendor,
            source: source.to_owned(),
            profiles: Vec::new(),
        }));
    };
    add(pci::NVIDIA, "nvidia-smi", nvidia(probe));
    add(pci::AMD, "amd-smi", amd(probe));
    if !has(&found, pci::AMD) {
        let devices = rocm(probe);
        extend(&mut found, pci::AMD, "rocm-smi", devices);
    }
    extend(&mut found, pci::INTEL, "xpu-smi", intel(probe));
    extend(&mut found, pci::HABANA, "hl-smi", gaudi(probe));
    extend(&mut found, pci::AMAZON, "neuron-ls", neuron(probe, instance));
    extend(&mut found, 0, "system_profiler", mac(probe));
    let mut on_bus = pci::scan(sysfs);
    on_bus.retain(|device| device.is_accelerator() && !has(&found, device.vendor));
    for (index, device) in (0_u32..).zip(&on_bus) {
        let own = Device { index, name: device.name(), ..Device::default() };
        extend(&mut found, device.vendor, "/sys/bus/pci", Some(vec![own]));
    }
    split_mig(probe, &mut found);
    found
}

fn has(found: &[FoundDevice], vendor: u32) -> bool {
    found.iter().any(|device| device.vendor == vendor && device.source != "/sys/bus/pci")
}

fn extend(found: &mut Vec<FoundDevice>, vendor: u32, source: &str, devices: Option<Vec<Device>>) {
    let devices = devices.into_iter().flatten();
    found.extend(devices.map(|device| FoundDevice { device, vendor, source: source.to_owned(), profiles: Vec::new() }));
}

fn nvidia(probe: &mut Probe<'_>) -> Option<Vec<Device>> {
    let failures = probe.failures.len();
    let read = |text: &str| non_empty(nvidia_smi::query(text));
    for fields in [nvidia_smi::FIELDS, nvidia_smi::BASIC_FIELDS] {
        let query = format!("--query-gpu={fields}");
        if let Some(devices) = probe.read("nvidia-smi", &[&query, "--format=csv"], LIMIT, read) {
            return Some(devices);
        }
    }
    let listed = probe.try_read("nvidia-smi", &["-L"], LIMIT, |text| non_empty(nvidia_smi::list(text)))?;
    probe.discard_failures(failures);
    Some(listed.into_iter().map(|gpu| Device { index: gpu.index, name: gpu.name, ..Device::default() }).collect())
}

/// Reads the MIG profiles of devices on which MIG is enabled.
fn split_mig(probe: &mut Probe<'_>, found: &mut [FoundDevice]) {
    if !found.iter().any(|device| device.device.mig) {
        return;
    }
    let listed = probe.read("nvidia-smi", &["-L"], LIMIT, |text| non_empty(nvidia_smi::list(text))).unwrap_or_default();
    for device in found.iter_mut().filter(|device| device.device.mig) {
        if let Some(gpu) = listed.iter().find(|gpu| gpu.index == device.device.index) {
            device.profiles.clone_from(&gpu.profiles);
        }
    }
}

fn amd(probe: &mut Probe<'_>) -> Option<Vec<Device>> {
    let failures = probe.failures.len();
    let read = |text: &str| non_empty(amd_smi::devices(text));
    for arguments in
        [&["static", "--asic", "--vram", "--limit", "--json"][..], &["static", "--asic", "--vram", "--limit"]]
    {
        if let Some(devices) = probe.read("amd-smi", arguments, LIMIT, read) {
            probe.discard_failures(failures);
            return Some(devices);
        }
    }
    None
}

fn rocm(probe: &mut Probe<'_>) -> Option<Vec<Device>> {
    let failures = probe.failures.len();
    let base = ["--showproductname", "--showmeminfo", "vram", "--showmaxpower"];
    let read = |text: &str| non_empty(rocm_smi::devices(text));
    let [a, b, c, d] = base;
    let devices = probe
        .read("rocm-smi", &[a, b, c, d, "--json"], LIMIT, read)
        .or_else(|| probe.read("rocm-smi", &base, LIMIT, read))?;
    probe.discard_failures(failures);
    Some(devices)
}

fn intel(probe: &mut Probe<'_>) -> Option<Vec<Device>> {
    let read = |text: &str| non_empty(xpu_smi::devices(text));
    let mut devices = probe.read("xpu-smi", &["discovery", "-j"], LIMIT, read)?;
    // The list does not state the memory; the page of a single device does.
    let first = devices.first()?.clone();
    if first.memory_gib.is_none() {
        let index = first.index.to_string();
        let page = probe.try_read("xpu-smi", &["discovery", "-d", &index, "-j"], LIMIT, read).unwrap_or_default();
        let memory = page.first().and_then(|device| device.memory_gib);
        for device in devices.iter_mut().filter(|device| device.name == first.name) {
            device.memory_gib = memory;
        }
    }
    Some(devices)
}

fn gaudi(probe: &mut Probe<'_>) -> Option<Vec<Device>> {
    let failures = probe.failures.len();
    let read = |text: &str| non_empty(hl_smi::devices(text));
    let devices = probe
        .read("hl-smi", &["-Q", "index,name,memory.total", "-f", "csv"], LIMIT, read)
        .or_else(|| probe.read("hl-smi", &[], LIMIT, read))?;
    probe.discard_failures(failures);
    Some(devices)
}

fn neuron(probe: &mut Probe<'_>, instance: Option<&str>) -> Option<Vec<Device>> {
    let stated = match instance {
        Some(instance) => Some(instance.to_owned()),
        None => probe.try_read("neuron-ls", &[], LIMIT, neuron_ls::instance_type),
    };
    probe.read("neuron-ls", &["--json-output"], LIMIT, |text| non_empty(neuron_ls::devices(text, stated.as_deref())))
}

fn mac(probe: &mut Probe<'_>) -> Option<Vec<Device>> {
    let arguments = ["SPHardwareDataType", "SPDisplaysDataType", "-json"];
    let chip = probe
        .try_read("system_profiler", &arguments, LIMIT, apple::chip)
        .or_else(|| probe.try_read("sysctl", &["hw.memsize", "machdep.cpu.brand_string"], LIMIT, apple::sysctl))?;
    Some(vec![chip])
}
