//! Invalid and truncated outputs: no parser panics, hangs, or invents devices.

use atlas_detect::matching::{Index, NamedBy, Query, look_up};
use atlas_detect::read::{
    amd_smi, apple, hl_smi, hostlist, ibstat, kubernetes, neuron_ls, nvidia_smi, nvidia_topo, rocm_smi, slurm_gres,
    slurm_json, slurm_scontrol, slurm_sinfo, slurm_squeue, slurm_time, xpu_smi,
};
use atlas_detect::text;
use proptest::prelude::*;

use crate::catalog::shipped;
use crate::recorded;

const RECORDINGS: [&str; 28] = [
    recorded!("amd_smi_static.json"),
    recorded!("amd_smi_static.txt"),
    recorded!("amd_smi_static_7.json"),
    recorded!("amd_smi_topology.json"),
    recorded!("hl_smi.csv"),
    recorded!("hl_smi.txt"),
    recorded!("ibstat.txt"),
    recorded!("kubectl_nodes.json"),
    recorded!("neuron_ls.json"),
    recorded!("neuron_ls.txt"),
    recorded!("neuron_ls_small.json"),
    recorded!("nvidia_list_mig.txt"),
    recorded!("nvidia_nvlink_h100.txt"),
    recorded!("nvidia_query_h100.csv"),
    recorded!("nvidia_query_mig.csv"),
    recorded!("nvidia_topo_h100.txt"),
    recorded!("rocm_smi.json"),
    recorded!("rocm_smi.txt"),
    recorded!("rocm_smi_topotype.txt"),
    recorded!("scontrol_node.txt"),
    recorded!("scontrol_partition.txt"),
    recorded!("sinfo.txt"),
    recorded!("sinfo_22.json"),
    recorded!("sinfo_24.json"),
    recorded!("system_profiler.json"),
    recorded!("xpu_smi_device.json"),
    recorded!("xpu_smi_discovery.json"),
    recorded!("xpu_smi_discovery.txt"),
];

/// Runs every parser on `text` and returns the number of items found.
fn read_all(text: &str) -> usize {
    let devices = [
        nvidia_smi::query(text),
        rocm_smi::devices(text),
        amd_smi::devices(text),
        xpu_smi::devices(text),
        hl_smi::devices(text),
        neuron_ls::devices(text, None),
        apple::chip(text).into_iter().collect(),
        apple::sysctl(text).into_iter().collect(),
    ];
    for device in devices.iter().flatten() {
        assert!(!device.name.chars().any(char::is_control), "{device:?}");
        assert!(device.memory_gib.is_none_or(|gib| gib.is_finite() && gib > 0.0), "{device:?}");
        assert!(device.power_w.is_none_or(|watts| watts.is_finite() && watts > 0.0), "{device:?}");
    }
    devices.iter().map(Vec::len).sum::<usize>()
        + nvidia_smi::list(text).len()
        + nvidia_smi::nvlink(text).len()
        + usize::from(nvidia_topo::parse(text).is_some())
        + usize::from(rocm_smi::xgmi_domain(text).is_some())
        + usize::from(rocm_smi::xgmi_domain_of_amd_smi(text).is_some())
        + usize::from(neuron_ls::instance_type(text).is_some())
        + ibstat::ports(text).len()
        + slurm_sinfo::parse(text).0.len()
        + slurm_scontrol::nodes(text).len()
        + slurm_scontrol::partitions(text).len()
        + slurm_json::rows(text).len()
        + slurm_squeue::waiting(text).len()
        + kubernetes::nodes(text).map_or(0, |nodes| nodes.len())
}

#[test]
fn every_recording_is_parsed_by_at_least_one_parser() {
    for (at, text) in RECORDINGS.iter().enumerate() {
        assert!(read_all(text) > 0, "recording {at}");
    }
}

#[test]
fn json_that_is_nested_too_deep_is_refused() {
    let deep = "[".repeat(100_000);
    assert_eq!(read_all(&deep), 0);
    let deep = format!("{}1{}", "{\"a\":".repeat(50_000), "}".repeat(50_000));
    assert_eq!(read_all(&deep), 0);
}

#[test]
fn truncated_topology_matrix_is_refused() {
    let text = recorded!("nvidia_topo_h100.txt");
    let row = text.find("GPU5\t").unwrap() + 20;
    assert_eq!(nvidia_topo::parse(&text[..row]), None);
    assert!(nvidia_topo::parse(text).is_some());
}

#[test]
fn number_of_parsed_devices_is_bounded() {
    let rows: String = (0..5000).map(|i| format!("{i}, NVIDIA L4, 23034 MiB\n")).collect();
    let found = nvidia_smi::query(&format!("index, name, memory.total [MiB]\n{rows}"));
    assert_eq!(found.len(), atlas_detect::read::MAX_DEVICES);
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic(text in any::<String>()) {
        read_all(&text);
        prop_assert!(hostlist::expand(&text, 1000).len() <= 1000);
        let _ = hostlist::contains(&text, "node1");
        let _ = (slurm_gres::parse(&text), slurm_gres::parse_tres(&text));
        let _ = (slurm_time::limit(&text), slurm_time::count(&text), slurm_sinfo::State::parse(&text));
        prop_assert!(!text::shell_word(&text).is_empty());
        prop_assert!(!text::clean(&text).chars().any(char::is_control));
    }

    #[test]
    fn recordings_cut_and_damaged_anywhere_are_read_without_panic(
        which in 0..RECORDINGS.len(), cut in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(),
        junk in "[\\x00-\\x7f]{0,12}",
    ) {
        let chars: Vec<char> = RECORDINGS[which].chars().collect();
        let end = cut.index(chars.len() + 1);
        let at = at.index(end + 1);
        let text: String = chars[..at].iter().copied().chain(junk.chars()).chain(chars[at..end].iter().copied()).collect();
        read_all(&text);
    }

    #[test]
    fn any_name_is_looked_up_without_panic_and_a_match_is_in_the_catalog(
        text in prop_oneof![any::<String>(), "(nvidia|amd|intel)?[ _-]?[a-z]{1,3}[0-9]{1,4}[a-z]{0,3}[ _-]?([0-9]{1,3}gb)?[ _-]?(sxm|pcie|nvl)?"],
        gib in proptest::option::of(any::<f64>()), hint in any::<String>(), driver in any::<bool>(),
    ) {
        let named_by = if driver { NamedBy::Driver } else { NamedBy::Administrator };
        let query = Query { text, named_by, memory_gib: gib, hints: vec![hint.clone()], ..Query::default() };
        if let Some(key) = look_up(&query, shipped()).matched.key() {
            prop_assert!(shipped().iter().any(|entry| entry.key == key));
        }
        let _ = Index::new(shipped()).model_in_features(&[hint]);
    }

    #[test]
    fn gres_kind_and_count_are_parsed_from_generated_text(kind in "[a-z][a-z0-9_.-]{0,12}", count in 1_u64..1000) {
        let found = slurm_gres::parse(&format!("gpu:{kind}:{count}(S:0-1),nvme:1"));
        prop_assert_eq!(found.len(), 2);
        prop_assert_eq!((found[0].kind.as_deref(), found[0].count), (Some(kind.as_str()), count));
    }
}
