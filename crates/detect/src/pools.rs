//! The nodes of a Kubernetes cluster, grouped into pools.

use std::collections::BTreeMap;

use crate::catalog::CatalogEntry;
use crate::matching::{Index, NamedBy, Query, instance_accelerator, slice_of};
use crate::model::{Accelerator, Detected, Host, Machine, NetworkKind, NetworkLink, Nodes, Origin, Undetermined};
use crate::probe::{Probe, non_empty};
use crate::read::kubernetes::{self, Node};
use crate::read::pci;
use crate::text::{GIB, MIB, gib, leading_number};

/// Output limit in bytes. Lists of nodes are long, since each node lists its images.
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// Maximum number of pools that are reported.
const MAX_POOLS: usize = 1000;

/// Labels that contain the name of a node's pool.
const POOL_LABELS: [&str; 7] = [
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
];

/// Labels of cloud providers and autoscalers that name an NVIDIA GPU.
const NVIDIA_LABELS: [&str; 4] = [
    "gpu.nvidia.com/class",
    "gpu.nvidia.com/model",
    "karpenter.k8s.aws/instance-gpu-name",
    "k8s.amazonaws.com/accelerator",
];

/// Reads the nodes. Contacts a cluster only if kubectl has a current context.
pub(crate) fn detect(probe: &mut Probe<'_>, catalog: &[CatalogEntry]) -> Detected {
    let mut detected = Detected::default();
    let context = probe.output("kubectl", &["config", "current-context"], 1 << 16);
    if !context.is_some_and(|output| output.status == Some(0) && !output.stdout.trim().is_empty()) {
        return detected;
    }
    let arguments = ["get", "nodes", "-o", "json", "--request-timeout=5s"];
    let Some(nodes) =
        probe.read("kubectl", &arguments, MAX_OUTPUT_BYTES, |text| kubernetes::nodes(text).ok().and_then(non_empty))
    else {
        return detected;
    };
    let index = Index::new(catalog);
    let mut order: Vec<(String, NodeAccelerators)> = Vec::new();
    let mut groups: BTreeMap<usize, Vec<&Node>> = BTreeMap::new();
    let mut bare = 0_usize;
    for node in &nodes {
        let Some(found) = accelerator(node) else {
            bare = bare.saturating_add(1);
            continue;
        };
        let key = (pool(node, &found), found);
        let at = order.iter().position(|known| *known == key).unwrap_or_else(|| {
            order.push(key);
            order.len().saturating_sub(1)
        });
        groups.entry(at).or_default().push(node);
    }
    for (at, (pool, found)) in order.iter().enumerate().take(MAX_POOLS) {
        let nodes = groups.get(&at).map(Vec::as_slice).unwrap_or_default();
        detected.machines.push(machine(pool, found, nodes, &index));
    }
    if order.is_empty() && bare > 0 {
        detected.undetermined.push(Undetermined::new(
            "accelerators of the Kubernetes cluster",
            format!("none of {bare} nodes has an allocatable accelerator resource"),
            "install the device plugin of the vendor, or write the target by hand",
        ));
    }
    detected
}

/// The accelerators of a node.
#[derive(Debug, Clone, PartialEq)]
struct NodeAccelerators {
    text: String,
    source: String,
    named_by: NamedBy,
    count: u32,
    memory_gib: Option<f64>,
    /// The slice that a pod gets instead of a whole device, and its number.
    profile: Option<(String, u32)>,
    /// Number of pods that share one device.
    shared_by: Option<u32>,
}

fn accelerator(node: &Node) -> Option<NodeAccelerators> {
    nvidia(node).or_else(|| accelerator_of_resource(node))
}

fn nvidia(node: &Node) -> Option<NodeAccelerators> {
    let mig = node.allocatable.keys().find_map(|resource| {
        let profile = resource.strip_prefix("nvidia.com/mig-")?;
        node.count(resource).map(|count| (profile.to_owned(), count))
    });
    let whole = node.count("nvidia.com/gpu").or_else(|| node.count("nvidia.com/gpu.shared"));
    let number = |label: &str| node.label(label).and_then(|text| text.parse::<u32>().ok()).filter(|count| *count > 0);
    let labeled = number("nvidia.com/gpu.count");
    let shared_by = number("nvidia.com/gpu.replicas").filter(|count| *count > 1);
    let count = labeled.or(whole).or_else(|| mig.as_ref().map(|_| 1))?;
    if whole.is_none() && mig.is_none() {
        return None;
    }
    let (text, source, named_by) = if let Some(product) = node.label("nvidia.com/gpu.product") {
        (product.to_owned(), "label nvidia.com/gpu.product", NamedBy::Driver)
    } else if let Some(name) = node.label("cloud.google.com/gke-accelerator") {
        (google_accelerator(name), "label cloud.google.com/gke-accelerator", NamedBy::Administrator)
    } else if let Some((device, _)) = accelerator_of_instance(node) {
        (device.to_owned(), "instance type", NamedBy::Administrator)
    } else if let Some((label, name)) = NVIDIA_LABELS.iter().find_map(|label| Some((*label, node.label(label)?))) {
        (name.to_owned(), label, NamedBy::Administrator)
    } else {
        ("GPU".to_owned(), "resource nvidia.com/gpu", NamedBy::Administrator)
    };
    Some(NodeAccelerators {
        text,
        source: source.to_owned(),
        named_by,
        count,
        memory_gib: node.label("nvidia.com/gpu.memory").and_then(|mib| gib(mib, MIB)),
        profile: mig,
        shared_by,
    })
}

/// Google offers A100, H100 and H200 as SXM modules only, and `nvidia-tesla-a100` is the variant with 40 GB.
fn google_accelerator(label: &str) -> String {
    let form = ["a100", "h100", "h200"].iter().any(|model| label.contains(model));
    match (label, form) {
        ("nvidia-tesla-a100", _) => "nvidia-tesla-a100-sxm4-40gb".to_owned(),
        (_, true) => format!("{label}-sxm"),
        _ => label.to_owned(),
    }
}

fn accelerator_of_instance(node: &Node) -> Option<(&'static str, &str)> {
    let instance = instance(node)?;
    instance_accelerator(instance).map(|device| (device, instance))
}

fn instance(node: &Node) -> Option<&str> {
    node.label("node.kubernetes.io/instance-type").or_else(|| node.label("beta.kubernetes.io/instance-type"))
}

fn accelerator_of_resource(node: &Node) -> Option<NodeAccelerators> {
    const RESOURCES: [(&str, &str, &[&str]); 9] = [
        ("amd.com/gpu", "AMD GPU", &["amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"]),
        ("gpu.intel.com/i915", "Intel GPU", &["gpu.intel.com/product"]),
        ("gpu.intel.com/xe", "Intel GPU", &["gpu.intel.com/product"]),
        ("habana.ai/gaudi", "gaudi", &[]),
        ("aws.amazon.com/neuron", "Neuron device", &[]),
        ("aws.amazon.com/neurondevice", "Neuron device", &[]),
        ("google.com/tpu", "TPU", &["cloud.google.com/gke-tpu-accelerator"]),
        ("huawei.com/Ascend910", "Ascend 910", &["accelerator-type"]),
        ("tenstorrent.com/device", "Tenstorrent", &[]),
    ];
    let (resource, fallback, labels, count) = RESOURCES.iter().find_map(|(resource, fallback, labels)| {
        node.count(resource).map(|count| (*resource, *fallback, *labels, count))
    })?;
    let label = labels.iter().find_map(|label| node.label(label).map(|value| (*label, value)));
    let id = || {
        let id = ["amd.com/gpu.device-id", "beta.amd.com/gpu.device-id"].iter().find_map(|label| node.label(label))?;
        pci::device_name(pci::AMD, pci::hexadecimal(id)?)
    };
    let (text, source) = if let Some((label, value)) = label {
        (value.to_owned(), format!("label {label}"))
    } else if let (true, Some(name)) = (resource == "amd.com/gpu", id()) {
        (name.to_owned(), "label amd.com/gpu.device-id".to_owned())
    } else if let Some((device, instance)) = accelerator_of_instance(node) {
        (device.to_owned(), format!("instance type {instance}"))
    } else {
        (fallback.to_owned(), format!("resource {resource}"))
    };
    let memory = node.label("amd.com/gpu.vram").or_else(|| node.label("beta.amd.com/gpu.vram"));
    Some(NodeAccelerators {
        text,
        source,
        named_by: NamedBy::Administrator,
        count,
        memory_gib: memory.and_then(|size| gib(size, GIB)),
        profile: None,
        shared_by: None,
    })
}

fn pool(node: &Node, found: &NodeAccelerators) -> String {
    POOL_LABELS.iter().find_map(|label| node.label(label)).map_or_else(|| found.text.clone(), str::to_owned)
}

fn machine(pool: &str, found: &NodeAccelerators, nodes: &[&Node], index: &Index<'_>) -> Machine {
    let first = nodes.first().copied();
    let instance = first.and_then(instance).map(str::to_owned);
    let lookup = index.look_up(&Query {
        text: found.text.clone(),
        named_by: found.named_by,
        memory_gib: found.memory_gib,
        hints: instance.iter().cloned().collect(),
        ..Query::default()
    });
    let usable = nodes.iter().filter(|node| node.usable).count();
    let total = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    let usable = u32::try_from(usable).unwrap_or(u32::MAX);
    let mut machine = Machine {
        name: format!("k8s-{pool}"),
        origin: Origin::Kubernetes { pool: pool.to_owned() },
        accelerators_per_node: Some(found.count.div_ceil(lookup.devices_per_accelerator)),
        nodes: Nodes { total: Some(total), unavailable: Some(total.saturating_sub(usable)), ..Nodes::default() },
        host: host(first, instance),
        features: features(nodes),
        ..Machine::default()
    };
    let slice = found.profile.as_ref().and_then(|(profile, _)| slice_of(profile)).or(lookup.slice);
    if let Some((profile, count)) = &found.profile {
        machine.remarks.push(format!("MIG: {count} {profile} slices per node"));
    }
    if let Some(pods) = found.shared_by {
        machine.remarks.push(format!("each device is shared by up to {pods} pods"));
    }
    machine.accelerator = Some(Accelerator {
        raw: found.text.clone(),
        source: found.source.clone(),
        matched: lookup.matched,
        memory_gib: found.memory_gib,
        power_w: None,
        slice,
    });
    machine.network = first.and_then(network);
    machine.undetermined.push(Undetermined::new(
        "network",
        match &machine.network {
            Some(_) => "node resources list the NICs, but not their rate".to_owned(),
            None => "the nodes have no RDMA device resource".to_owned(),
        },
        "`cat /sys/class/infiniband/*/ports/*/rate` in a pod on such a node",
    ));
    machine.undetermined.push(Undetermined::new(
        "idle nodes",
        "Kubernetes does not report the number of idle nodes",
        "`kubectl describe nodes` shows the allocated resources",
    ));
    machine
}

fn host(node: Option<&Node>, instance_type: Option<String>) -> Host {
    let of = |resource: &str| node.and_then(|node| node.allocatable.get(resource)).map(String::as_str);
    // The value is `96` or `95690m`.
    let cpus = of("cpu").and_then(|text| match text.strip_suffix('m') {
        Some(milli) => milli.parse::<u32>().ok().map(|milli| milli / 1000),
        None => text.parse().ok(),
    });
    Host {
        cpus: cpus.filter(|count| *count > 0),
        memory_gib: of("memory").and_then(|size| gib(size, 1.0)),
        architecture: node.and_then(|node| node.label("kubernetes.io/arch")).map(str::to_owned),
        instance_type,
    }
}

/// The NICs that are allocatable to pods.
fn network(node: &Node) -> Option<NetworkLink> {
    node.allocatable.keys().find_map(|resource| {
        let kind = if resource == "vpc.amazonaws.com/efa" {
            NetworkKind::Efa
        } else if resource.starts_with("rdma/") && resource.contains("roce") {
            NetworkKind::RoCE
        } else if resource.starts_with("rdma/") || resource.starts_with("nvidia.com/hostdev") {
            NetworkKind::InfiniBand
        } else {
            return None;
        };
        let count = node.count(resource)?;
        // Shared devices are advertised hundreds of times, so a large count is not the number of NICs.
        let nics_per_node = (count <= 64).then_some(count);
        let source = format!("resource {resource}");
        Some(NetworkLink { kind, gbits_per_nic: None, nics_per_node, source })
    })
}

/// Taints that pods must tolerate, and the topology of TPU slices.
fn features(nodes: &[&Node]) -> Vec<String> {
    let Some(first) = nodes.first() else { return Vec::new() };
    let mut features: Vec<String> = first
        .taints
        .iter()
        .filter(|taint| nodes.iter().all(|node| node.taints.contains(taint)))
        .map(|taint| format!("taint {taint}"))
        .collect();
    if let Some(topology) = first.label("cloud.google.com/gke-tpu-topology") {
        let chips = topology.split('x').filter_map(leading_number).product::<f64>();
        features.push(format!("TPU topology {topology}: {chips} chips in one slice"));
    }
    features
}
