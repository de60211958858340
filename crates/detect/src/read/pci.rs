//! `/sys/bus/pci/devices`: identifies accelerators by vendor and device id, for machines without a vendor's tool.

use std::fs;
use std::path::Path;

/// NVIDIA's vendor id.
pub const NVIDIA: u32 = 0x10de;
/// AMD's vendor id.
pub const AMD: u32 = 0x1002;
/// Intel's vendor id.
pub const INTEL: u32 = 0x8086;
/// Habana's vendor id.
pub const HABANA: u32 = 0x1da3;
/// Amazon's vendor id.
pub const AMAZON: u32 = 0x1d0f;
/// Google's vendor id.
pub const GOOGLE: u32 = 0x1ae0;
/// Tenstorrent's vendor id.
pub const TENSTORRENT: u32 = 0x1e52;

/// Maximum number of directory entries that are read.
const MAX_ENTRIES: usize = 8192;

/// Names by device id. Sources: pci-ids.ucw.cz, and the drivers of Habana, AWS Neuron and Cloud TPU.
const NAMES: [(u32, u32, &str); 60] = [
    (NVIDIA, 0x1db1, "Tesla V100-SXM2-16GB"),
    (NVIDIA, 0x1db4, "Tesla V100-PCIE-16GB"),
    (NVIDIA, 0x1db5, "Tesla V100-SXM2-32GB"),
    (NVIDIA, 0x1db6, "Tesla V100-PCIE-32GB"),
    (NVIDIA, 0x1db8, "Tesla V100-SXM3-32GB"),
    (NVIDIA, 0x1df6, "Tesla V100S-PCIE-32GB"),
    (NVIDIA, 0x1eb8, "Tesla T4"),
    (NVIDIA, 0x20b0, "NVIDIA A100-SXM4-40GB"),
    (NVIDIA, 0x20b2, "NVIDIA A100-SXM4-80GB"),
    (NVIDIA, 0x20b3, "NVIDIA A100-SXM-64GB"),
    (NVIDIA, 0x20b5, "NVIDIA A100 80GB PCIe"),
    (NVIDIA, 0x20f1, "NVIDIA A100-PCIE-40GB"),
    (NVIDIA, 0x20f3, "NVIDIA A800-SXM4-80GB"),
    (NVIDIA, 0x20b7, "NVIDIA A30"),
    (NVIDIA, 0x2204, "NVIDIA GeForce RTX 3090"),
    (NVIDIA, 0x2203, "NVIDIA GeForce RTX 3090 Ti"),
    (NVIDIA, 0x2230, "NVIDIA RTX A6000"),
    (NVIDIA, 0x2235, "NVIDIA A40"),
    (NVIDIA, 0x2236, "NVIDIA A10"),
    (NVIDIA, 0x2237, "NVIDIA A10G"),
    (NVIDIA, 0x2321, "NVIDIA H100 NVL"),
    (NVIDIA, 0x2324, "NVIDIA H800 SXM"),
    (NVIDIA, 0x2329, "NVIDIA H20"),
    (NVIDIA, 0x2330, "NVIDIA H100 80GB HBM3"),
    (NVIDIA, 0x2331, "NVIDIA H100 PCIe"),
    (NVIDIA, 0x2335, "NVIDIA H200"),
    (NVIDIA, 0x233b, "NVIDIA H200 NVL"),
    (NVIDIA, 0x2342, "NVIDIA GH200"),
    (NVIDIA, 0x2348, "NVIDIA GH200 144G HBM3e"),
    (NVIDIA, 0x2684, "NVIDIA GeForce RTX 4090"),
    (NVIDIA, 0x26b1, "NVIDIA RTX 6000 Ada Generation"),
    (NVIDIA, 0x26b5, "NVIDIA L40"),
    (NVIDIA, 0x26b9, "NVIDIA L40S"),
    (NVIDIA, 0x27b8, "NVIDIA L4"),
    (NVIDIA, 0x2901, "NVIDIA B200"),
    (NVIDIA, 0x2941, "NVIDIA GB200"),
    (NVIDIA, 0x2b85, "NVIDIA GeForce RTX 5090"),
    (NVIDIA, 0x2bb1, "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"),
    (NVIDIA, 0x2bb5, "NVIDIA RTX PRO 6000 Blackwell Server Edition"),
    (NVIDIA, 0x2e12, "NVIDIA GB10"),
    (NVIDIA, 0x3182, "NVIDIA B300 SXM6 AC"),
    (NVIDIA, 0x31c2, "NVIDIA GB300"),
    (AMD, 0x7408, "AMD Instinct MI250X"),
    (AMD, 0x740f, "AMD Instinct MI210"),
    (AMD, 0x74a0, "AMD Instinct MI300A"),
    (AMD, 0x74a1, "AMD Instinct MI300X"),
    (AMD, 0x74a5, "AMD Instinct MI325X"),
    (AMD, 0x75a0, "AMD Instinct MI350X"),
    (AMD, 0x75a3, "AMD Instinct MI355X"),
    (INTEL, 0x0bd5, "Intel Data Center GPU Max 1550"),
    (HABANA, 0x1000, "HL-205"),
    (HABANA, 0x1020, "HL-225"),
    (HABANA, 0x1060, "HL-325"),
    (AMAZON, 0x7164, "trn1"),
    (AMAZON, 0x7264, "inf2"),
    (AMAZON, 0x7364, "trn2"),
    (GOOGLE, 0x005e, "TPU v4"),
    (GOOGLE, 0x0062, "TPU v5p"),
    (GOOGLE, 0x0063, "TPU v5e"),
    (GOOGLE, 0x006f, "TPU v6e"),
];

/// The name of a device; `None` for ids that are not listed.
#[must_use]
pub fn device_name(vendor: u32, device: u32) -> Option<&'static str> {
    NAMES.iter().find(|&&(v, d, _)| (v, d) == (vendor, device)).map(|&(_, _, name)| name)
}

/// Parses a hexadecimal number such as `0x74a1` or `74a1`.
#[must_use]
pub fn hexadecimal(text: &str) -> Option<u32> {
    let text = text.trim();
    u32::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// A PCI function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciDevice {
    /// Address, such as `0000:19:00.0`.
    pub address: String,
    /// Vendor id.
    pub vendor: u32,
    /// Device id.
    pub device: u32,
    /// Class code: class, subclass and programming interface.
    pub class: u32,
}

impl PciDevice {
    /// Whether the function is an accelerator: a display or 3D controller, or a processing accelerator.
    #[must_use]
    pub fn is_accelerator(&self) -> bool {
        let known = device_name(self.vendor, self.device).is_some();
        let vendor = [NVIDIA, AMD, HABANA, TENSTORRENT].contains(&self.vendor);
        // 0x0302 is a 3D controller, 0x12 a processing accelerator. Display controllers count only if the id is known,
        // since integrated graphics and BMCs are display controllers too.
        known || (vendor && (self.class >> 8 == 0x0302 || self.class >> 16 == 0x12))
    }

    /// Name of the device, or its vendor and device id if it is not listed.
    #[must_use]
    pub fn name(&self) -> String {
        device_name(self.vendor, self.device)
            .map_or_else(|| format!("PCI device {:04x}:{:04x}", self.vendor, self.device), str::to_owned)
    }
}

/// Reads the PCI functions under `root`, which is `/sys` except in tests. Empty if the directory cannot be read.
#[must_use]
pub fn scan(root: &Path) -> Vec<PciDevice> {
    let Ok(folder) = fs::read_dir(root.join("bus/pci/devices")) else { return Vec::new() };
    let mut found: Vec<PciDevice> = folder
        .take(MAX_ENTRIES)
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let path = entry.path();
            let id = |file: &str| read_line(&path.join(file)).as_deref().and_then(hexadecimal);
            Some(PciDevice {
                address: crate::text::clean(&entry.file_name().to_string_lossy()),
                vendor: id("vendor")?,
                device: id("device")?,
                class: id("class")?,
            })
        })
        .collect();
    found.sort_by(|a, b| a.address.cmp(&b.address));
    found
}

/// Reads the first line of a file, limited to the first 4 KiB.
pub(crate) fn read_line(file: &Path) -> Option<String> {
    use std::io::Read;
    let mut text = String::new();
    fs::File::open(file).ok()?.take(4096).read_to_string(&mut text).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}
