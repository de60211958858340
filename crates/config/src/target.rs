//! Targets: hardware to rent or own.

use std::sync::Arc;

use super::cost::Cost;
use super::efficiency::Efficiency;
use crate::read_field::ReadField as _;
use atlas_core::count::Count;
use atlas_core::field::Knob;
use atlas_core::network::Topology;
use atlas_document::Origin;
use atlas_document::decode::{Bounds, Fields};
use atlas_document::diagnostic::Diagnostics;
use atlas_document::node::Node;
use atlas_document::suggestion::did_you_mean;

/// A target: accelerators × nodes, with links, price and power.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Unique name.
    pub name: Arc<str>,
    /// Vendor of the accelerators; selects the profile unless one is named after the target.
    pub vendor: String,
    /// Key into the accelerator catalog, for engines that estimate from datasheets.
    pub accelerator: Option<String>,
    /// Instance type of the cloud provider, or the vendor's name for the machine.
    pub instance_type: Option<String>,
    /// Accelerators per node.
    pub accelerators_per_node: Count,
    /// Number of nodes.
    pub num_nodes: Count,
    /// Memory of one accelerator, GB.
    pub memory_gb_per_accel: f64,
    /// Host memory of one node, GB.
    pub host_memory_gb: Option<f64>,
    /// Link between the accelerators of a node.
    pub interconnect: Option<Interconnect>,
    /// Link between nodes.
    pub network: Option<Network>,
    /// Price and power.
    pub cost: Cost,
    /// Efficiency factors of the analytical engine on this target; they take precedence over the profile's.
    pub efficiency: Option<Efficiency>,
    /// The predecessor dashboard's data of one device.
    pub benchboard: Option<Benchboard>,
    /// Numeric formats that the hardware supports.
    pub numeric: Vec<String>,
    /// Collective operations that the software supports.
    pub collectives: Vec<String>,
    /// Maximum batch that the software accepts, tokens.
    pub max_batch_tokens: Option<Count>,
    /// Description, one line.
    pub description: Option<String>,
    /// Recommended uses.
    pub best_for: Vec<String>,
    /// Sources and caveats.
    pub notes: Option<String>,
    /// Location of the entry.
    pub origin: Origin,
    /// The entry as written, including unknown keys.
    pub document: Arc<Node>,
}

/// The link between the accelerators of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Interconnect {
    /// NVLink, xGMI, PCIe …
    pub kind: String,
    /// Bandwidth per accelerator, GB/s, as the sum of both directions, as in datasheets.
    pub bw_gbytes_per_sec: Option<f64>,
    /// Number of accelerators in the scale-up domain; by default those of the node.
    pub domain_size: Option<Count>,
}

/// The link between nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// IB, RoCE, EFA, ICI …
    pub kind: Option<String>,
    /// Bandwidth per accelerator, Gbit/s.
    pub gbits_per_accel: Option<f64>,
    /// Topology.
    pub topology: Option<Topology>,
    /// Ratio of downlinks to uplinks; 1 if non-blocking.
    pub oversubscription: Option<f64>,
}

/// A hardware profile of the predecessor dashboard, as far as its estimator uses it.
#[derive(Debug, Clone, PartialEq)]
pub struct Benchboard {
    /// `gpu`, `tpu` or other: TPUs have a higher base utilization.
    pub kind: Option<String>,
    /// 16-bit FLOP rate, TFLOP/s.
    pub fp16_tflops: Option<f64>,
    /// Memory, GB.
    pub vram_gb: Option<f64>,
    /// Link bandwidth as stated by the dashboard, GB/s.
    pub interconnect_gb_per_sec: Option<f64>,
}

impl Benchboard {
    fn read(fields: &mut Fields<'_>) -> Benchboard {
        for kept in ["id", "name", "vendor", "interconnect", "notes"] {
            fields.text(kept);
        }
        for kept in ["smCount", "fp32Tflops", "int8Tops", "hbmBandwidthGBps", "podSize", "costPerHour"] {
            fields.number(kept, Bounds::POSITIVE);
        }
        fields.texts("frameworks");
        Benchboard {
            kind: fields.text("type"),
            fp16_tflops: fields.number("fp16Tflops", Bounds::POSITIVE),
            vram_gb: fields.number("vramSizeGB", Bounds::POSITIVE),
            interconnect_gb_per_sec: fields.number("interconnectBandwidthGBps", Bounds::POSITIVE),
        }
    }
}

/// Kinds of networks that a misspelled `network.type` may mean. The type is a label, so other words are accepted.
const NETWORKS: [&str; 11] =
    ["IB", "InfiniBand", "RoCE", "Ethernet", "EFA", "ENA", "Slingshot", "Omni-Path", "NVLink", "GPUDirect-TCPX", "ICI"];

/// Reads the network topology. An unknown one has no effect and causes a warning.
fn topology(link: &mut Fields<'_>) -> Option<Topology> {
    let written = link.text("topology")?;
    let plain = written.trim().to_lowercase().replace(['_', ' '], "-");
    let found = Topology::WORDS.iter().find(|(name, _)| *name == plain).map(|(_, topology)| *topology);
    if found.is_none() {
        let message = format!("found {written}, which has no effect: expected rail, fat-tree, torus or dragonfly");
        let help = "use oversubscription to describe a network that cannot carry the full bandwidth of all NICs";
        link.warn("topology", message, Some(help.to_owned()));
    }
    found
}

impl Target {
    /// Decodes an entry of `targets.yaml`. Adds problems to `diagnostics`; returns `None` if any is an error.
    pub fn decode(file: &Arc<str>, node: &Node, diagnostics: &mut Diagnostics) -> Option<Target> {
        let label = atlas_document::sources::entry_label(node, "target");
        let mut fields = Fields::open(file, label, node, diagnostics)?;
        let before = fields.diagnostics().errors();
        let name = fields.required_text("name");
        let vendor = fields.required_text("vendor");
        let accelerator = fields.text("accelerator");
        let instance_type = fields.text("instance_type");
        let accelerators_per_node =
            fields.required_count("accelerators_per_node", Bounds { max: 1e6, ..Bounds::COUNT });
        let num_nodes = fields.required_count_of(Knob::NumNodes);
        let memory = fields.required_number("memory_gb_per_accel", Bounds { min: 0.001, max: 1e6, whole: false });
        let host_memory_gb = fields.number_of(Knob::HostMemoryGb);
        let interconnect = fields.map("interconnect", |link| {
            let kind = link.required_text("type");
            let bw_gbytes_per_sec = link.number("bw_GBps", Bounds::POSITIVE);
            let domain_size = link.count("domain_size", Bounds::COUNT);
            kind.map(|kind| Interconnect { kind, bw_gbytes_per_sec, domain_size })
        });
        let network = fields.map("network", |link| {
            let kind = link.text("type");
            let gbits_per_accel = link.number_of(Knob::NetworkGbps);
            let digits = kind.as_deref().unwrap_or_default().trim_start_matches(|c: char| !c.is_ascii_digit());
            let unit = digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ' ');
            if gbits_per_accel.is_none() && unit.to_ascii_lowercase().starts_with('g') {
                let message = format!("found {}, a label that sets no bandwidth", kind.as_deref().unwrap_or_default());
                let help = "state Gbps_per_accel: the bandwidth of a node's NICs, divided by its accelerators";
                link.warn("type", message, Some(help.to_owned()));
            }
            let known = |kind: &&str| NETWORKS.iter().any(|known| known.eq_ignore_ascii_case(kind));
            let near = kind.as_deref().filter(|kind| !known(kind)).and_then(|kind| did_you_mean(kind, NETWORKS));
            if let (Some(kind), Some(near)) = (&kind, near) {
                link.warn("type", format!("found {kind}, which is no known kind of network"), Some(near));
            }
            Network {
                kind,
                gbits_per_accel,
                topology: topology(link),
                oversubscription: link.number_of(Knob::Oversubscription),
            }
        });
        let cost = fields.required_map("cost", &["hourly_usd", "energy_watts_node", "pue"], Cost::read);
        let benchboard = fields.map("benchboard", Benchboard::read);
        for passive in ["host_cpu_arch", "container_base", "source", "region"] {
            fields.text(passive);
        }
        // Used in explanations, which read it from the document.
        fields.node("read_from");
        let efficiency = Efficiency::read(&mut fields);
        let numeric = fields.texts("numeric");
        let collectives = fields.texts("collectives");
        let max_batch_tokens = fields.count("max_batch_tokens", Bounds::NATURAL);
        let description = fields.text("description");
        let best_for = fields.texts("best_for");
        let notes = fields.text("notes");
        let at = fields.at();
        fields.finish();
        if diagnostics.errors() > before {
            return None;
        }
        Some(Target {
            name: name?.into(),
            vendor: vendor?,
            accelerator,
            instance_type,
            accelerators_per_node: accelerators_per_node?,
            num_nodes: num_nodes?,
            memory_gb_per_accel: memory?,
            host_memory_gb,
            interconnect: interconnect.flatten(),
            network,
            cost: cost.flatten()?,
            efficiency,
            benchboard,
            numeric,
            collectives,
            max_batch_tokens,
            description,
            best_for,
            notes,
            origin: Origin { file: Arc::clone(file), at },
            document: Arc::new(node.clone()),
        })
    }

    /// Number of accelerators in all nodes.
    #[must_use]
    pub fn accelerators(&self) -> f64 {
        self.accelerators_per_node * self.num_nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::decoded;

    #[test]
    fn a_network_without_bandwidth_is_an_error() {
        let problems = |gbps: &str| {
            let text = format!(
                "{{ name: t, vendor: NVIDIA, accelerator: nvidia-h100-sxm-80gb, accelerators_per_node: 8, num_nodes: 2, \
                 memory_gb_per_accel: 80, network: {{ type: IB, Gbps_per_accel: {gbps} }}, \
                 cost: {{ hourly_usd: 40, energy_watts_node: 10200, pue: 1.2 }} }}"
            );
            decoded(&text, Target::decode).1.errors()
        };
        assert_eq!(problems("400"), 0);
        assert!(problems("0") > 0 && problems("1e-300") > 0);
    }

    #[test]
    fn misspelled_kinds_of_networks_are_warned_about() {
        let warning = |kind: &str| {
            let text = format!(
                "{{ name: t, vendor: NVIDIA, accelerator: nvidia-h100-sxm-80gb, accelerators_per_node: 8, num_nodes: 2, \
                 memory_gb_per_accel: 80, network: {{ type: {kind}, Gbps_per_accel: 400 }}, \
                 cost: {{ hourly_usd: 40, energy_watts_node: 10200, pue: 1.2 }} }}"
            );
            let (_, problems) = decoded(&text, Target::decode);
            problems.iter().find_map(|problem| problem.help.clone())
        };
        assert_eq!(warning("IBB").as_deref(), Some("did you mean `IB`?"));
        assert_eq!(warning("Etherent").as_deref(), Some("did you mean `Ethernet`?"));
        for kind in ["IB", "infiniband", "EFA", "RoCE", "NDR400", "'400GbE'", "Jupiter", "Quantum-2"] {
            assert_eq!(warning(kind), None, "{kind}");
        }
    }
}
