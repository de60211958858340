//! Cloud instance types whose accelerator is documented.

/// Prefix of the instance type, and its accelerator.
///
/// Sources: docs.aws.amazon.com/ec2 (accelerated computing), learn.microsoft.com/azure (GPU sizes),
/// cloud.google.com/compute/docs/gpus, docs.oracle.com/iaas (compute shapes).
const INSTANCES: [(&str, &str); 52] = [
    ("p3dn.", "V100 SXM2 32GB"),
    ("p3.", "V100 SXM2 16GB"),
    ("p4de.", "A100 SXM4 80GB"),
    ("p4d.", "A100 SXM4 40GB"),
    ("p5.", "H100 SXM5 80GB"),
    ("p5e.", "H200 SXM 141GB"),
    ("p5en.", "H200 SXM 141GB"),
    ("p6-b200.", "B200"),
    ("p6-b300.", "B300"),
    ("p6e-gb200.", "GB200"),
    ("p6e-gb300.", "GB300"),
    ("g4dn.", "T4"),
    ("g5.", "A10G"),
    ("g6.", "L4"),
    ("g6e.", "L40S"),
    ("trn1.", "trn1"),
    ("trn1n.", "trn1"),
    ("trn2.", "trn2"),
    ("trn2u.", "trn2"),
    ("inf2.", "inf2"),
    ("dl1.", "gaudi1"),
    ("standard_nd96asr_v4", "A100 SXM4 40GB"),
    ("standard_nd96asr_a100_v4", "A100 SXM4 40GB"),
    ("standard_nd96amsr_a100_v4", "A100 SXM4 80GB"),
    ("standard_nc24ads_a100_v4", "A100 PCIe 80GB"),
    ("standard_nc48ads_a100_v4", "A100 PCIe 80GB"),
    ("standard_nc96ads_a100_v4", "A100 PCIe 80GB"),
    ("standard_nc40ads_h100_v5", "H100 NVL 94GB"),
    ("standard_nc80adis_h100_v5", "H100 NVL 94GB"),
    ("standard_nd96isr_h100_v5", "H100 SXM5 80GB"),
    ("standard_nd96isr_h200_v5", "H200 SXM 141GB"),
    ("standard_nd96isr_mi300x_v5", "MI300X"),
    ("standard_nd128isr_ndr_gb200_v6", "GB200"),
    ("standard_nd128isr_gb300_v6", "GB300"),
    ("a2-highgpu-", "A100 SXM4 40GB"),
    ("a2-megagpu-", "A100 SXM4 40GB"),
    ("a2-ultragpu-", "A100 SXM4 80GB"),
    ("a3-highgpu-", "H100 SXM5 80GB"),
    ("a3-megagpu-", "H100 SXM5 80GB"),
    ("a3-edgegpu-", "H100 SXM5 80GB"),
    ("a3-ultragpu-", "H200 SXM 141GB"),
    ("a4-highgpu-", "B200"),
    ("a4x-highgpu-", "GB200"),
    ("g2-standard-", "L4"),
    ("bm.gpu4.8", "A100 SXM4 40GB"),
    ("bm.gpu.a100-v2.", "A100 SXM4 80GB"),
    ("bm.gpu.h100.", "H100 SXM5 80GB"),
    ("bm.gpu.h200.", "H200 SXM 141GB"),
    ("bm.gpu.b200.", "B200"),
    ("bm.gpu.gb200.", "GB200"),
    ("bm.gpu.mi300x.", "MI300X"),
    ("bm.gpu.mi355x.", "MI355X"),
];

/// The accelerator of an instance type, as a device name; `None` if `instance` is not a known instance type.
#[must_use]
pub fn instance_accelerator(instance: &str) -> Option<&'static str> {
    let instance = instance.trim().to_ascii_lowercase();
    // Amazon sometimes adds the prefix `ml.`.
    let instance = instance.strip_prefix("ml.").unwrap_or(&instance);
    INSTANCES.iter().find(|(prefix, _)| instance.starts_with(prefix)).map(|&(_, device)| device)
}
