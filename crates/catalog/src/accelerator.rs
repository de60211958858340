//! Accelerators, with the data of their datasheets.

use std::sync::Arc;

use atlas_core::count::Count;
use atlas_document::decode::{Bounds, Fields};
use atlas_document::{Diagnostics, Node, Origin};

/// An accelerator. Rates are dense (no sparsity), bandwidths of links are per direction. Absent values were not
/// published or not found; there are no default values.
#[derive(Debug, Clone, PartialEq)]
pub struct Accelerator {
    /// Unique id, as used in measurements: `nvidia-h100-sxm-80gb`.
    pub id: String,
    /// Alternative spellings of the id.
    pub aliases: Vec<String>,
    /// Product name.
    pub name: String,
    /// Vendor.
    pub vendor: String,
    /// Architecture or family: Hopper, CDNA3, TPU …
    pub generation: String,
    /// Year of release.
    pub year: Option<f64>,
    /// SXM5, OAM, PCIe, superchip …
    pub form_factor: Option<String>,
    /// Dense peak rates.
    pub peaks: Peaks,
    /// Published measurements of large matrix multiplications.
    pub measured: Option<MeasuredMatmul>,
    /// Device memory.
    pub memory: Memory,
    /// Number of devices that software sees: dies, tiles or logical cores that are programmed individually. 1 by
    /// default.
    pub ranks: Count,
    /// Number of compute units over which a wave of tiles is distributed: SMs, CUs, matrix engines.
    pub cores: Option<f64>,
    /// Boost clock, MHz.
    pub boost_clock_mhz: Option<f64>,
    /// Capacity of the last-level cache, or of the distributed SRAM of dataflow accelerators, MB.
    pub cache_mb: Option<f64>,
    /// Thermal design power, W.
    pub tdp_w: Option<f64>,
    /// Scale-up fabric: NVLink, Infinity Fabric, ICI …
    pub scale_up: Option<ScaleUp>,
    /// Usual NIC bandwidth per accelerator in reference nodes and cloud instances, Gbit/s.
    pub scale_out_gbits_per_sec: Option<f64>,
    /// Link to the host.
    pub host_link: Option<String>,
    /// Share of the host.
    pub host: Host,
    /// Source of the data.
    pub source: Option<String>,
    /// Public tables that the data was checked against.
    pub checked: Option<String>,
    /// Remarks on the data.
    pub note: Option<String>,
    /// File that the entry is from.
    pub origin: Origin,
}

/// Dense peak rates in TFLOP/s (TOPS for `int8`). `None` if the accelerator does not support the format or the rate was
/// not published.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Peaks {
    /// FP64 on vector units.
    pub fp64: Option<f64>,
    /// FP32 on vector units.
    pub fp32: Option<f64>,
    /// TF32, or its equivalent, on matrix units.
    pub tf32: Option<f64>,
    /// BF16 on matrix units.
    pub bf16: Option<f64>,
    /// FP16 on matrix units, with FP32 accumulation.
    pub fp16: Option<f64>,
    /// FP8 on matrix units.
    pub fp8: Option<f64>,
    /// INT8 on matrix units, TOPS.
    pub int8: Option<f64>,
    /// FP4 on matrix units.
    pub fp4: Option<f64>,
}

impl Peaks {
    /// Name and rate of every format, widest first.
    #[must_use]
    pub fn all(&self) -> [(&'static str, Option<f64>); 8] {
        [
            ("fp64", self.fp64),
            ("fp32", self.fp32),
            ("tf32", self.tf32),
            ("bf16", self.bf16),
            ("fp16", self.fp16),
            ("fp8", self.fp8),
            ("int8", self.int8),
            ("fp4", self.fp4),
        ]
    }

    fn decode(fields: &mut Fields<'_>) -> Peaks {
        let mut peak = |key| fields.number(key, TFLOPS);
        Peaks {
            fp64: peak("fp64"),
            fp32: peak("fp32"),
            tf32: peak("tf32"),
            bf16: peak("bf16"),
            fp16: peak("fp16"),
            fp8: peak("fp8"),
            int8: peak("int8"),
            fp4: peak("fp4"),
        }
    }
}

/// Highest measured rate of large matrix multiplications.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredMatmul {
    /// Rate in BF16, TFLOP/s.
    pub tflops_bf16: f64,
    /// The source of the measurement.
    pub source: Option<String>,
}

/// Device memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// HBM3, GDDR6, SRAM …
    pub kind: Option<String>,
    /// Capacity as stated in the datasheet, in "GB" that are usually powers of two.
    pub gb: f64,
    /// Capacity that software can use, GiB, if it is less: because of error correction stored in the memory, or because
    /// a part is reserved for the system.
    pub usable_gib: Option<f64>,
    /// Bandwidth, GB/s.
    pub bw_gbytes_per_sec: Option<f64>,
}

impl Memory {
    /// Whether the memory is in the package of the accelerator, which then has a fixed capacity.
    #[must_use]
    pub fn is_in_package(&self) -> bool {
        self.kind.as_deref().is_some_and(|kind| kind.starts_with("HBM"))
    }
}

/// The scale-up fabric, seen from one accelerator.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleUp {
    /// NVLink 4, Infinity Fabric 4, ICI …
    pub kind: Option<String>,
    /// Bandwidth per accelerator and direction, GB/s.
    pub bw_gbytes_per_sec: Option<f64>,
    /// Number of accelerators connected by the fabric in the usual node or rack.
    pub domain_size: Option<Count>,
    /// Bandwidth per direction between accelerators of a node that are not connected by a bridge, GB/s. For fabrics
    /// that bridge only some accelerators.
    pub node_gbytes_per_sec: Option<f64>,
    /// Whether any pair of accelerators can use the full bandwidth, through switches, rather than a fraction as in a
    /// mesh or torus.
    pub switched: Option<bool>,
    /// Number of accelerators to which each one has links of its own, which share the bandwidth: a full mesh. Absent for
    /// switches, rings, tori and PCIe.
    pub peers: Option<Count>,
}

/// One accelerator's share of its host.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Host {
    /// Bandwidth of the link per direction, GB/s; see [`Accelerator::host_link_gbytes_per_sec`].
    pub link_gbytes_per_sec: Option<f64>,
    /// Host memory, GB: of the package, or of the vendor's reference node.
    pub memory_gb: Option<f64>,
    /// Bandwidth of the host memory, GB/s.
    pub memory_gbytes_per_sec: Option<f64>,
    /// Whether host and accelerator share one memory.
    pub unified: bool,
}

/// Nominal rate of `PCIe 5.0 x16`, GB/s per direction: 8, 16, 32 or 64 GT/s and one bit per transfer and lane.
fn pcie_gbytes_per_sec(link: &str) -> Option<f64> {
    let (generation, lanes) = link.trim().strip_prefix("PCIe ")?.split_once(" x")?;
    let lane = match generation {
        "3.0" => 1.0,
        "4.0" => 2.0,
        "5.0" => 4.0,
        "6.0" => 8.0,
        _ => return None,
    };
    lanes.parse::<u8>().ok().map(|lanes| lane * f64::from(lanes))
}

/// Bounds of peak rates, TFLOP/s. The catalog has up to 40,000.
const TFLOPS: Bounds = Bounds { min: 0.001, max: 1e6, whole: false };
/// Bounds of memory bandwidths, GB/s.
const MEMORY_GBYTES_PER_SEC: Bounds = Bounds { min: 0.1, max: 1e9, whole: false };
/// Bounds of memory sizes, GB.
const MEMORY_GB: Bounds = Bounds { min: 0.001, max: 1e6, whole: false };
/// Bounds of thermal design powers, W.
const TDP_W: Bounds = Bounds { min: 0.1, max: 1e6, whole: false };
/// Smallest plausible memory bandwidth, GB/s.
const MIN_MEMORY_GBYTES_PER_SEC: f64 = 10.0;
/// Smallest plausible thermal design power, W.
const MIN_TDP_W: f64 = 5.0;

impl Accelerator {
    /// Nominal bandwidth of the link to the host per direction, GB/s, if known.
    #[must_use]
    pub fn host_link_gbytes_per_sec(&self) -> Option<f64> {
        self.host.link_gbytes_per_sec.or_else(|| pcie_gbytes_per_sec(self.host_link.as_deref()?))
    }

    /// Decodes one entry. Problems are added to `diagnostics`. Returns `None` if there are errors.
    pub fn decode(file: &Arc<str>, node: &Node, diagnostics: &mut Diagnostics) -> Option<Accelerator> {
        let before = diagnostics.errors();
        let label = node.get("id").and_then(Node::text).unwrap_or("accelerator");
        let mut fields = Fields::open(file, label, node, diagnostics)?;
        let at = fields.at();
        let id = fields.required_text("id");
        let aliases = fields.texts("aliases");
        let name = fields.text("name");
        let vendor = fields.required_text("vendor");
        let generation = fields.text("generation");
        let year = fields.number("year", Bounds { min: 1990.0, max: 2100.0, whole: true });
        let form_factor = fields.text("form_factor");
        let peaks = fields.map("dense_tflops", Peaks::decode);
        let measured = fields.map("measured", |measured| {
            let tflops_bf16 = measured.required_number("matmul_tflops_bf16", TFLOPS);
            let source = measured.text("source");
            if let Some((rate, peak)) =
                tflops_bf16.zip(peaks.and_then(|peaks| peaks.bf16)).filter(|(rate, peak)| rate > peak)
            {
                let help = "state the measured rate of this accelerator, or remove `measured`".to_owned();
                let message = format!("found {rate}, above the peak of {peak} in dense_tflops.bf16");
                measured.error("matmul_tflops_bf16", message, Some(help));
            }
            tflops_bf16.map(|tflops_bf16| MeasuredMatmul { tflops_bf16, source })
        });
        let memory = fields.required_map("memory", &["gb", "bw_GBps"], |memory| {
            let kind = memory.text("type");
            let gb = memory.required_number("gb", MEMORY_GB);
            let usable_gib = memory.number("usable_GiB", Bounds { max: gb.unwrap_or(1e6), ..Bounds::POSITIVE });
            let bw_gbytes_per_sec = memory.number("bw_GBps", MEMORY_GBYTES_PER_SEC);
            if let Some(rate) = bw_gbytes_per_sec.filter(|rate| *rate < MIN_MEMORY_GBYTES_PER_SEC) {
                memory.warn("bw_GBps", format!("found {rate}, which is implausible: state GB/s, not TB/s"), None);
            }
            gb.map(|gb| Memory { kind, gb, usable_gib, bw_gbytes_per_sec })
        });
        let ranks = fields.count("ranks", Bounds { min: 1.0, max: 64.0, whole: true });
        let cores = fields.number("cores", Bounds::COUNT);
        let boost_clock_mhz = fields.number("boost_clock_mhz", Bounds::POSITIVE);
        let cache_mb = fields.number("cache_mb", Bounds::POSITIVE);
        let tdp_w = fields.number("tdp_w", TDP_W);
        if let Some(watts) = tdp_w.filter(|watts| *watts < MIN_TDP_W) {
            fields.warn("tdp_w", format!("found {watts}, which is implausible: state W, not kW"), None);
        }
        let scale_up = fields.map("scale_up", |link| ScaleUp {
            kind: link.text("type"),
            bw_gbytes_per_sec: link.number("bw_GBps", Bounds::POSITIVE),
            domain_size: link.count("domain_size", Bounds::COUNT),
            node_gbytes_per_sec: link.number("node_GBps", Bounds::POSITIVE),
            switched: link.boolean("switched"),
            peers: link.count("peers", Bounds::COUNT),
        });
        let scale_out = fields.map("scale_out", |link| link.number("Gbps_per_accel", Bounds::POSITIVE));
        let host_link = fields.text("host_link");
        let host = fields.map("host", |host| Host {
            link_gbytes_per_sec: host.number("link_GBps", Bounds::POSITIVE),
            memory_gb: host.number("memory_gb", Bounds { max: 1e6, ..Bounds::POSITIVE }),
            memory_gbytes_per_sec: host.number("memory_GBps", Bounds::POSITIVE),
            unified: host.boolean("unified").unwrap_or(false),
        });
        let source = fields.text("source");
        let checked = fields.text("checked");
        let note = fields.text("note");
        fields.finish();
        if diagnostics.errors() > before {
            return None;
        }
        let id = id?;
        Some(Accelerator {
            name: name.unwrap_or_else(|| id.clone()),
            id,
            aliases,
            vendor: vendor?,
            generation: generation.unwrap_or_default(),
            year,
            form_factor,
            peaks: peaks.unwrap_or_default(),
            measured: measured.flatten(),
            memory: memory.flatten()?,
            ranks: ranks.unwrap_or(Count::ONE),
            cores,
            boost_clock_mhz,
            cache_mb,
            tdp_w,
            scale_up,
            scale_out_gbits_per_sec: scale_out.flatten(),
            host_link,
            host: host.unwrap_or_default(),
            source,
            checked,
            note,
            origin: Origin { file: Arc::clone(file), at },
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rates_in_other_units_are_warned_about() {
        let read = |bandwidth: &str, power: &str| {
            let text = format!("{{ id: x, vendor: y, memory: {{ gb: 80, bw_GBps: {bandwidth} }}, tdp_w: {power} }}");
            let (file, mut problems) = ("own.yaml".into(), Diagnostics::new());
            let node = atlas_document::parse::parse(&file, &text, &mut problems).unwrap();
            Accelerator::decode(&file, &node, &mut problems).unwrap();
            problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>()
        };
        assert_eq!(read("8000", "1000"), Vec::<String>::new());
        assert_eq!(
            read("8", "1"),
            ["found 8, which is implausible: state GB/s, not TB/s", "found 1, which is implausible: state W, not kW"]
        );
    }

    #[test]
    fn rates_that_no_accelerator_has_are_errors() {
        let read = |peak: &str, measured: &str, memory: &str, power: &str| {
            let text = format!(
                "{{ id: x, vendor: y, dense_tflops: {{ bf16: {peak} }}, measured: {{ matmul_tflops_bf16: {measured} }}, \
                 memory: {memory}, tdp_w: {power} }}"
            );
            let (file, mut problems) = ("own.yaml".into(), Diagnostics::new());
            let node = atlas_document::parse::parse(&file, &text, &mut problems).unwrap();
            let decoded = Accelerator::decode(&file, &node, &mut problems);
            assert_eq!(decoded.is_none(), problems.has_errors());
            problems.to_string()
        };
        let memory = "{ gb: 80, bw_GBps: 3350 }";
        assert_eq!(read("989", "794", memory, "700"), "");
        assert!(read("495", "794", memory, "700").contains("found 794, above the peak of 495"));
        for (peak, memory, power) in [
            ("1e-300", memory, "700"),
            ("1e9", memory, "700"),
            ("989", "{ gb: 80, bw_GBps: 1e-300 }", "700"),
            ("989", "{ gb: 80, bw_GBps: 0 }", "700"),
            ("989", "{ gb: 0, bw_GBps: 3350 }", "700"),
            ("989", memory, "1e-300"),
        ] {
            let found = read(peak, "0.001", memory, power);
            assert!(found.contains("expected a number from"), "{peak} {memory} {power}: {found}");
        }
    }

    #[test]
    fn pcie_rates_follow_from_generation_and_lanes() {
        assert_eq!(pcie_gbytes_per_sec("PCIe 3.0 x16"), Some(16.0));
        assert_eq!(pcie_gbytes_per_sec("PCIe 5.0 x16"), Some(64.0));
        assert_eq!(pcie_gbytes_per_sec("PCIe 5.0 x8"), Some(32.0));
        for unknown in ["PCIe", "PCIe 4.0/5.0 x16", "SoC", "NVLink-C2C"] {
            assert_eq!(pcie_gbytes_per_sec(unknown), None, "{unknown}");
        }
    }
}
