//! Kubernetes nodes.

use atlas_detect::detect;
use atlas_detect::matching::Matched;
use atlas_detect::model::{Detected, Machine, NetworkKind};
use atlas_detect::runner::{Output, Recorded};

use crate::catalog::shipped;
use crate::recorded;
use crate::system::FakeSystem;

const NODES: &str = "kubectl get nodes -o json --request-timeout=5s";

fn look(runner: &Recorded) -> Detected {
    detect(runner, &FakeSystem::new("laptop").options(), shipped())
}

fn cluster() -> Detected {
    look(&Recorded::new().with("kubectl config current-context", "prod\n").with(NODES, recorded!("kubectl_nodes.json")))
}

fn named<'a>(detected: &'a Detected, name: &str) -> &'a Machine {
    detected.machines.iter().find(|machine| machine.name == name).unwrap_or_else(|| {
        panic!("{name} is not among {:?}", detected.machines.iter().map(|m| &m.name).collect::<Vec<_>>())
    })
}

fn key(machine: &Machine) -> Option<&str> {
    machine.accelerator.as_ref().unwrap().matched.key()
}

#[test]
fn a_pool_has_its_accelerators_taints_nics_and_unusable_nodes() {
    let detected = cluster();
    let machine = named(&detected, "k8s-train");
    assert_eq!((key(machine), machine.accelerators_per_node), (Some("nvidia-h100-sxm-80gb"), Some(8)));
    assert_eq!((machine.nodes.total, machine.nodes.unavailable, machine.nodes.idle), (Some(4), Some(1), None));
    assert_eq!(machine.features, ["taint nvidia.com/gpu=present:NoSchedule"]);
    let network = machine.network.as_ref().unwrap();
    assert_eq!((network.kind, network.nics_per_node, network.gbits_per_nic), (NetworkKind::Efa, Some(32), None));
    assert_eq!((machine.host.cpus, machine.host.architecture.as_deref()), (Some(191), Some("amd64")));
    assert_eq!(machine.host.instance_type.as_deref(), Some("p5.48xlarge"));
}

#[test]
fn every_vendor_is_matched_by_its_labels_or_instance_type() {
    let detected = cluster();
    for (pool, expected, per_node) in [
        ("k8s-tpu", Some("google-tpu-v5e"), 4),
        ("k8s-mega", Some("nvidia-h100-sxm-80gb"), 8),
        ("k8s-amd", Some("amd-mi300x"), 8),
        ("k8s-amd2", Some("amd-mi325x"), 8),
        ("k8s-trn2.48xlarge", Some("aws-trn2"), 16),
        ("k8s-t4", Some("nvidia-t4"), 1),
        ("k8s-gaudi", None, 8),
    ] {
        let machine = named(&detected, pool);
        assert_eq!((key(machine), machine.accelerators_per_node), (expected, Some(per_node)), "{pool}");
    }
    match &named(&detected, "k8s-gaudi").accelerator.as_ref().unwrap().matched {
        Matched::Several { keys, .. } => assert_eq!(keys.len(), 3),
        other => panic!("{other:?}"),
    }
    let tpu = named(&detected, "k8s-tpu");
    assert!(tpu.features.iter().any(|feature| feature.contains("16 chips")), "{:?}", tpu.features);
}

#[test]
fn mig_slices_and_shared_devices_are_reported() {
    let detected = cluster();
    let mig = named(&detected, "k8s-mig");
    assert_eq!(mig.accelerator.as_ref().unwrap().slice.as_ref().unwrap().profile, "1g.10gb");
    assert_eq!(key(mig), Some("nvidia-a100-sxm-80gb"));
    let shared = named(&detected, "k8s-t4");
    assert_eq!(shared.remarks, ["each device is shared by up to 4 pods"]);
    assert_eq!(shared.nodes.unavailable, Some(1));
}

#[test]
fn without_a_context_no_cluster_is_contacted() {
    let answer = |stdout: &str, status| Output {
        stdout: stdout.to_owned(),
        stderr: "error: current-context is not set".to_owned(),
        status: Some(status),
        truncated: false,
    };
    for context in [answer("", 1), answer("\n", 0), answer("broken\n", 1)] {
        let runner = Recorded::new()
            .with_output("kubectl config current-context", context)
            .with(NODES, recorded!("kubectl_nodes.json"));
        assert!(look(&runner).machines.is_empty());
        assert!(!runner.commands().iter().any(|line| line.contains("get nodes")));
    }
}

#[test]
fn forbidden_cluster_query_is_reported() {
    let runner = Recorded::new().with("kubectl config current-context", "prod\n").with_failure(
        NODES,
        1,
        "Error from server (Forbidden): nodes is forbidden: User \"ann\" cannot list resource \"nodes\"",
    );
    assert!(look(&runner).undetermined.iter().any(|open| open.why.contains("Forbidden")));
}
