//! Rendering of detected machines as targets.

use atlas_detect::matching::Matched;
use atlas_detect::model::{
    Accelerator, Detected, IntraLink, Limit, Limits, Machine, NetworkKind, NetworkLink, Nodes, Origin, Undetermined,
};
use atlas_detect::render::{NodeCost, render};
use atlas_detect::runner::Recorded;
use atlas_detect::{detect, read};
use proptest::prelude::*;
use serde_yaml::Value;

use crate::catalog::shipped;
use crate::recorded;
use crate::system::FakeSystem;

fn cost(_: &Machine) -> Option<NodeCost> {
    Some(NodeCost {
        hourly_usd: Some(38.08),
        energy_watts_node: Some(10200.0),
        pue: Some(1.2),
        source: "a price list: 2026".to_owned(),
    })
}

fn parsed(text: &str) -> Vec<Value> {
    serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn h100() -> Detected {
    let query = "nvidia-smi --query-gpu=index,name,memory.total,power.limit,pcie.link.gen.max,pcie.link.width.max,\
                 mig.mode.current --format=csv";
    let runner = Recorded::new()
        .with(query, recorded!("nvidia_query_h100.csv"))
        .with("nvidia-smi topo -m", recorded!("nvidia_topo_h100.txt"))
        .with("nvidia-smi nvlink -s", recorded!("nvidia_nvlink_h100.txt"));
    let system = FakeSystem::new("node7");
    for nic in 0..8 {
        system.port(&format!("mlx5_{nic}"), 1, "400 Gb/sec (4X NDR)", "InfiniBand", "4: ACTIVE");
    }
    detect(&runner, &system.options(), shipped())
}

#[test]
fn fully_detected_machine_renders_as_a_complete_target() {
    let text = render(&h100(), shipped(), &cost);
    let targets = parsed(&text);
    let target = &targets[0];
    assert_eq!(target["name"].as_str(), Some("node7"));
    assert_eq!(target["vendor"].as_str(), Some("NVIDIA"));
    assert_eq!(target["accelerator"].as_str(), Some("nvidia-h100-sxm-80gb"));
    assert_eq!(target["accelerators_per_node"].as_u64(), Some(8));
    assert_eq!(target["num_nodes"].as_u64(), Some(1));
    assert_eq!(target["memory_gb_per_accel"].as_u64(), Some(80));
    assert_eq!(target["interconnect"]["bw_GBps"].as_u64(), Some(900));
    assert_eq!(target["interconnect"]["domain_size"].as_u64(), Some(8));
    assert_eq!(target["network"]["type"].as_str(), Some("IB"));
    assert_eq!(target["cost"]["hourly_usd"].as_f64(), Some(38.08));
    assert!(text.contains("# assumed: a price list: 2026"), "{text}");
}

#[test]
fn unknown_costs_stay_null_and_are_explained_in_comments() {
    let text = render(&h100(), shipped(), &|_| None);
    assert!(parsed(&text)[0]["cost"].is_null());
    for key in ["hourly_usd", "energy_watts_node", "pue"] {
        assert!(text.contains(&format!("    # {key}: not determined")), "{text}");
    }
    assert!(text.contains("5600 W"), "{text}");
}

#[test]
fn ambiguous_accelerator_is_rendered_only_as_comments() {
    let runner = Recorded::new().with(
        "sinfo -h -e -o %R|%a|%D|%T|%c|%m|%G|%f|%l|%s|%N",
        "gpu|up|64|idle|96|1000000|gpu:h100:4|(null)|1-00:00:00|1-16|n[01-64]\n",
    );
    let detected = detect(&runner, &FakeSystem::new("login").options(), shipped());
    let text = render(&detected, shipped(), &cost);
    let target = &parsed(&text)[0];
    assert!(target.get("accelerator").is_none() && target.get("memory_gb_per_accel").is_none(), "{text}");
    assert_eq!(target["num_nodes"].as_u64(), Some(16), "a job gets at most 16 nodes");
    // The entry is complete once one proposal is uncommented.
    let chosen = text.replacen("# accelerator: nvidia-h100-nvl-94gb", "accelerator: nvidia-h100-nvl-94gb", 1).replacen(
        "# memory_gb_per_accel: 94",
        "memory_gb_per_accel: 94",
        1,
    );
    let target = &parsed(&chosen)[0];
    assert_eq!(target["accelerator"].as_str(), Some("nvidia-h100-nvl-94gb"));
    assert_eq!(target["memory_gb_per_accel"].as_u64(), Some(94));
}

#[test]
fn slices_are_written_as_comments_only() {
    let query = "nvidia-smi --query-gpu=index,name,memory.total,power.limit,pcie.link.gen.max,pcie.link.width.max,\
                 mig.mode.current --format=csv";
    let runner = Recorded::new()
        .with(query, recorded!("nvidia_query_mig.csv"))
        .with("nvidia-smi -L", recorded!("nvidia_list_mig.txt"));
    let detected = detect(&runner, &FakeSystem::new("a").options(), shipped());
    let text = render(&detected, shipped(), &cost);
    assert_eq!(parsed(&text), Vec::<Value>::new(), "{text}");
    assert!(text.contains("# - name: a\n") && text.contains("3g.40gb"), "{text}");
}

#[test]
fn empty_detection_renders_an_empty_list_with_the_reasons() {
    let detected = Detected {
        undetermined: vec![Undetermined::new("sinfo", "no answer within 5 s", "run it by hand")],
        ..Detected::default()
    };
    let text = render(&detected, shipped(), &cost);
    assert_eq!(parsed(&text), Vec::<Value>::new());
    assert!(text.contains("# - sinfo: no answer within 5 s; run it by hand."), "{text}");
}

/// Text that a malicious or broken tool may print.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[\"'#:{}\\[\\],&*!|>%@`\\\\ \\t\\n\\ra-z0-9~-]{0,40}",
        Just("no".to_owned()),
        Just("a\nb: c\n- name: x".to_owned()),
        Just("\u{85}- name: y\u{2028}z".to_owned()),
        Just("\u{1b}[31mred\u{0}".to_owned()),
        "-?[0-9]{1,6}(e[0-9]+)?",
    ]
}

prop_compose! {
    fn machine()(
        name in hostile(), raw in hostile(), source in hostile(), key in hostile(), features in proptest::collection::vec(hostile(), 0..4),
        remarks in proptest::collection::vec(hostile(), 0..3), partition in hostile(), cluster in proptest::option::of(hostile()),
        instance in proptest::option::of(hostile()), several in any::<bool>(), count in proptest::option::of(any::<u32>()),
        total in proptest::option::of(any::<u32>()), most in any::<u64>(), memory in proptest::option::of(any::<f64>()),
    ) -> Machine {
        let keys = vec![key.clone(), name.clone()];
        let matched = if several {
            Matched::Several { keys, reason: raw.clone() }
        } else {
            Matched::Unknown { closest: keys, reason: key }
        };
        let mut machine = Machine {
            name,
            origin: Origin::Slurm { cluster, partition, gres: None },
            accelerator: Some(Accelerator {
                raw: raw.clone(), source: source.clone(), matched, memory_gib: memory, power_w: memory, slice: None,
            }),
            accelerators_per_node: count,
            nodes: Nodes { total, ..Nodes::default() },
            limits: Limits {
                max_nodes: Some(Limit::Max(most)),
                state: Some(raw.clone()),
                allowed: vec![source],
                ..Limits::default()
            },
            features,
            remarks,
            undetermined: vec![Undetermined::new("network", raw.clone(), raw)],
            ..Machine::default()
        };
        machine.link = memory.map(|rate| IntraLink {
            kind: machine.name.clone(), gbytes_per_sec: Some(rate), domain_size: count, source: machine.name.clone(),
        });
        machine.network = memory.map(|rate| NetworkLink {
            kind: NetworkKind::Efa, gbits_per_nic: Some(rate), nics_per_node: count, source: machine.name.clone(),
        });
        machine.host.instance_type.clone_from(&instance);
        machine.host.architecture = instance;
        machine
    }
}

proptest! {
    #[test]
    fn arbitrary_text_renders_as_valid_yaml_with_the_same_entries(machines in proptest::collection::vec(machine(), 1..4)) {
        let detected = Detected { undetermined: vec![Undetermined::new("x", machines[0].name.clone(), "y")], machines };
        let text = render(&detected, shipped(), &cost);
        let targets: Vec<Value> = serde_yaml::from_str(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(targets.len(), detected.machines.len(), "{}", text);
        for (target, machine) in targets.iter().zip(&detected.machines) {
            let name = atlas_detect::text::clean(&machine.name);
            prop_assert_eq!(target["name"].as_str(), Some(name.as_str()));
            prop_assert!(target.get("accelerator").is_none());
        }
        prop_assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
    }
}

#[test]
fn whole_days_are_formatted_in_days() {
    assert_eq!(read::slurm_time::format_duration(2 * 86400), "2 d");
}
