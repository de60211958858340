//! Slurm partitions and their load.

use std::time::Duration;

use atlas_detect::matching::Matched;
use atlas_detect::model::{Detected, Limit, Machine, NetworkKind, Nodes, Origin};
use atlas_detect::runner::{Output, Recorded, RunError};
use atlas_detect::{detect, idle};

use crate::catalog::shipped;
use crate::recorded;
use crate::system::FakeSystem;

const SINFO: &str = "sinfo -h -e -o %R|%a|%D|%T|%c|%m|%G|%f|%l|%s|%N";

fn cluster() -> Recorded {
    Recorded::new()
        .with(SINFO, recorded!("sinfo.txt"))
        .with("scontrol show partition -o", recorded!("scontrol_partition.txt"))
        .with(
            "scontrol show config",
            "Configuration data as of now\nClusterName             = alpha\nSlurmctldPort = 1\n",
        )
}

fn look(runner: &Recorded) -> Detected {
    detect(runner, &FakeSystem::new("login1").options(), shipped())
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
fn a_partition_has_its_accelerators_nodes_and_limits() {
    let detected = look(&cluster());
    let machine = named(&detected, "alpha-h100");
    assert_eq!((key(machine), machine.accelerators_per_node), (Some("nvidia-h100-sxm-80gb"), Some(8)));
    let nodes = Nodes {
        total: Some(20),
        idle: Some(5),
        mixed: Some(3),
        allocated: Some(10),
        planned: Some(1),
        unavailable: Some(1),
    };
    assert_eq!(machine.nodes, nodes);
    assert_eq!(machine.limits.max_time, Some(Limit::Max(2 * 86400)));
    assert_eq!(machine.limits.default_seconds, Some(3600));
    assert_eq!(machine.limits.max_nodes, Some(Limit::Max(16)));
    assert_eq!(machine.limits.allowed, ["AllowAccounts=ml,physics"]);
    assert_eq!(machine.host.cpus, Some(224));
    let network = machine.network.as_ref().unwrap();
    assert_eq!(
        (network.kind, network.gbits_per_nic, network.nics_per_node),
        (NetworkKind::InfiniBand, Some(400.0), None)
    );
    match &machine.origin {
        Origin::Slurm { cluster, partition, gres } => assert_eq!(
            (cluster.as_deref(), partition.as_str(), gres.as_deref()),
            (Some("alpha"), "h100", Some("gpu:h100:8"))
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn node_variants_in_features_are_separate_machines() {
    let detected = look(&cluster());
    let a100: Vec<_> = detected
        .machines
        .iter()
        .filter(|machine| machine.name.starts_with("alpha-a100"))
        .map(|machine| (machine.nodes.total, machine.accelerator.as_ref().unwrap().matched.clone()))
        .collect();
    assert_eq!(a100.len(), 2);
    let keys = |matched: &Matched| match matched {
        Matched::Several { keys, .. } => keys.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (a100[0].0, keys(&a100[0].1)),
        (Some(8), vec!["nvidia-a100-sxm-40gb".into(), "nvidia-a100-pcie-40gb".into()])
    );
    assert_eq!(
        (a100[1].0, keys(&a100[1].1)),
        (Some(4), vec!["nvidia-a100-sxm-80gb".into(), "nvidia-a100-pcie-80gb".into()])
    );
}

#[test]
fn whole_devices_and_mig_slices_of_a_node_are_separate_machines() {
    let detected = look(&cluster());
    let whole = named(&detected, "alpha-mig-a100");
    assert_eq!((key(whole), whole.accelerators_per_node), (Some("nvidia-a100-sxm-80gb"), Some(2)));
    let slices = named(&detected, "alpha-mig-a100_1g.10gb");
    assert_eq!(slices.accelerators_per_node, Some(14));
    assert_eq!(slices.accelerator.as_ref().unwrap().slice.as_ref().unwrap().profile, "1g.10gb");
}

#[test]
fn two_die_devices_node_states_and_feature_types_are_parsed() {
    let detected = look(&cluster());
    let amd = named(&detected, "alpha-amd");
    assert_eq!((key(amd), amd.accelerators_per_node), (Some("amd-mi250x"), Some(4)));
    assert_eq!((amd.limits.state.as_deref(), amd.limits.min_nodes), (Some("DOWN"), Some(2)));
    assert_eq!(amd.nodes.unavailable, Some(4));
    assert_eq!(amd.network.as_ref().unwrap().kind, NetworkKind::Slingshot);
    let old = named(&detected, "alpha-old");
    assert_eq!((key(old), old.accelerators_per_node, old.nodes.idle), (Some("nvidia-v100-sxm-32gb"), Some(4), Some(6)));
}

#[test]
fn shared_nodes_and_partitions_without_accelerators_are_reported() {
    let runner = cluster().with(
        SINFO,
        "a|up|2|idle|64|1000|gpu:b200:8|(null)|1:00:00|1-2|n[1-2]\nb|up|2|idle|64|1000|gpu:b200:8|(null)|1:00:00|1-2|n[1-2]\n",
    );
    let detected = look(&runner);
    assert_eq!(named(&detected, "alpha-b").remarks, ["the same nodes as partition a"]);
    let detected = look(&cluster());
    assert!(detected.undetermined.iter().any(|open| open.why.contains("cpu, cpu_long")), "{:?}", detected.undetermined);
    assert!(!detected.machines.iter().any(|machine| machine.name.contains("cpu")));
}

#[test]
fn gpu_types_missing_from_sinfo_are_read_from_node_cfgtres() {
    let untyped = "gpu|up|3|idle|40|192000|gpu:4|v100,edr|1:00:00|1-2|v[1-3]\n";
    let runner = cluster().with(SINFO, untyped).with("scontrol show node -o", recorded!("scontrol_node.txt"));
    let machine = look(&runner);
    let machine = named(&machine, "alpha-gpu");
    assert_eq!((key(machine), machine.accelerators_per_node), (Some("nvidia-v100-sxm-16gb"), Some(4)));
    assert_eq!((machine.nodes.idle, machine.nodes.mixed, machine.nodes.unavailable), (Some(1), Some(1), Some(1)));
}

#[test]
fn sinfo_json_is_the_fallback_for_a_rejected_format() {
    for (json, name, idle, total, found) in [
        (recorded!("sinfo_24.json"), "normal", 4, 12, None),
        (recorded!("sinfo_22.json"), "main", 2, 3, Some("nvidia-b200")),
    ] {
        let runner =
            Recorded::new().with_failure(SINFO, 1, "sinfo: error: Invalid node format").with("sinfo --json", json);
        let detected = look(&runner);
        let machine = named(&detected, name);
        assert_eq!((machine.nodes.idle, machine.nodes.total), (Some(idle), Some(total)));
        assert_eq!(key(machine), found);
        assert!(
            !detected.undetermined.iter().any(|open| open.what.starts_with("sinfo")),
            "{:?}",
            detected.undetermined
        );
    }
    let runner = Recorded::new().with_failure(SINFO, 1, "").with("sinfo --json", recorded!("sinfo_24.json"));
    assert_eq!(named(&look(&runner), "normal").limits.max_time, Some(Limit::Max(86400)));
}

#[test]
fn a_controller_that_does_not_answer_is_reported() {
    let error = RunError::TimedOut { program: "sinfo".to_owned(), after: Duration::from_secs(5) };
    let runner = Recorded::new().with_error(SINFO, error);
    let detected = look(&runner);
    assert!(detected.machines.is_empty());
    assert!(detected.undetermined.iter().any(|open| open.why.contains("no answer within 5 s")));
    assert!(!runner.commands().iter().any(|line| line.starts_with("scontrol")), "the others would wait too");
    let failed = "slurm_load_partitions: Unable to contact slurm controller (connect failure)";
    let runner = Recorded::new()
        .with_failure(SINFO, 1, failed)
        .with_failure("scontrol show node -o", 1, failed)
        .with_failure("sinfo --json", 1, failed);
    assert!(look(&runner).undetermined.iter().any(|open| open.why.contains("Unable to contact slurm controller")));
}

#[test]
fn missing_slurm_is_not_reported() {
    let detected = look(&Recorded::new());
    assert!(detected.undetermined.iter().all(|open| !open.what.contains("sinfo") && !open.what.contains("partition")));
}

#[test]
fn links_measured_on_a_node_apply_to_its_partition() {
    let query = "nvidia-smi --query-gpu=index,name,memory.total,power.limit,pcie.link.gen.max,pcie.link.width.max,\
                 mig.mode.current --format=csv";
    let runner = cluster()
        .with(query, recorded!("nvidia_query_h100.csv"))
        .with("nvidia-smi topo -m", recorded!("nvidia_topo_h100.txt"))
        .with("nvidia-smi nvlink -s", recorded!("nvidia_nvlink_h100.txt"));
    let system = FakeSystem::new("hgx14.cluster.example");
    for nic in 0..10 {
        system.port(&format!("mlx5_{nic}"), 1, "400 Gb/sec (4X NDR)", "InfiniBand", "4: ACTIVE");
    }
    let detected = detect(&runner, &system.options(), shipped());
    // The same accelerators in a machine that is not a node of the partition say nothing about its links.
    let elsewhere = detect(&runner, &FakeSystem::new("workstation").options(), shipped());
    assert_eq!(named(&elsewhere, "alpha-h100").link, None);
    for name in ["alpha-h100", "alpha-debug"] {
        let machine = named(&detected, name);
        assert_eq!(machine.network.as_ref().unwrap().nics_per_node, Some(8));
        assert_eq!(machine.link.as_ref().unwrap().gbytes_per_sec, Some(900.0));
    }
    assert_eq!(named(&detected, "alpha-amd").link, None);
}

#[test]
fn idle_nodes_and_waiting_jobs_are_counted_by_partition() {
    let detected = look(&cluster());
    let runner = Recorded::new()
        .with(
            "sinfo -h -o %R|%G|%T|%D",
            "h100|gpu:h100:8(S:0-1)|idle|7\nh100|gpu:h100:8(S:0-1)|allocated|12\nh100|gpu:h100:8(S:0-1)|drained*|1\n\
             mig|gpu:a100:2(S:0),gpu:a100_1g.10gb:14(S:1)|mixed|2\nmig|gpu:h200:8|mixed|5\ncpu|(null)|idle|9\nbroken line\n",
        )
        .with("squeue -h -t PD -o %P|%D", "h100|4\nh100,debug|2\ncpu|1\n?|x\n");
    let load = idle::query(&runner, Duration::from_secs(1)).unwrap();
    let nodes = load.nodes(named(&detected, "alpha-h100")).unwrap();
    assert_eq!((nodes.idle, nodes.allocated, nodes.unavailable, nodes.total), (Some(7), Some(12), Some(1), Some(20)));
    let waiting = load.waiting(named(&detected, "alpha-h100")).unwrap();
    assert_eq!((waiting.jobs, waiting.nodes), (2, 6));
    assert_eq!(load.waiting(named(&detected, "alpha-amd")).unwrap().jobs, 0);
    assert_eq!(load.nodes(named(&detected, "alpha-mig-a100_1g.10gb")).unwrap().mixed, Some(2));
    assert_eq!(load.nodes(named(&detected, "alpha-amd")), None);
    assert_eq!(runner.commands().len(), 2);
}

#[test]
fn failing_sinfo_is_an_error_and_failing_squeue_omits_jobs() {
    let none = idle::query(&Recorded::new(), Duration::from_secs(1)).unwrap_err();
    assert_eq!(none.to_string(), "sinfo: not on PATH");
    let cut = Output { stdout: "x".to_owned(), stderr: String::new(), status: None, truncated: true };
    let runner = Recorded::new().with_output("sinfo -h -o %R|%G|%T|%D", cut);
    assert!(idle::query(&runner, Duration::from_secs(1)).is_err());
    // If `squeue` fails, only the pending jobs are missing.
    let runner = Recorded::new().with("sinfo -h -o %R|%G|%T|%D", "h100|gpu:h100:8|idle|1\n");
    let load = idle::query(&runner, Duration::from_secs(1)).unwrap();
    let detected = look(&cluster());
    assert_eq!(load.waiting(named(&detected, "alpha-h100")), None);
    assert_eq!(load.nodes(named(&detected, "alpha-h100")).unwrap().idle, Some(1));
}
