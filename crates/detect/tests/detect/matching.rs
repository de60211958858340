//! Lookups of device names in the shipped catalog.

use atlas_detect::matching::{Index, Matched, NamedBy, Query, instance_accelerator, look_up};

use crate::catalog::shipped;

fn driver(text: &str, mib: f64) -> Matched {
    let memory_gib = (mib > 0.0).then_some(mib / 1024.0);
    look_up(&Query { text: text.to_owned(), named_by: NamedBy::Driver, memory_gib, ..Query::default() }, shipped())
        .matched
}

fn admin(text: &str, hints: &[&str]) -> Matched {
    let hints = hints.iter().map(|&hint| hint.to_owned()).collect();
    look_up(&Query { text: text.to_owned(), hints, ..Query::default() }, shipped()).matched
}

#[track_caller]
fn several(matched: &Matched, expected: &[&str]) {
    match matched {
        Matched::Several { keys, .. } => assert_eq!(keys, expected),
        other => panic!("{other:?}"),
    }
}

#[test]
fn driver_names_match_their_catalog_entry() {
    for (name, mib, key) in [
        ("NVIDIA H100 80GB HBM3", 81559.0, "nvidia-h100-sxm-80gb"),
        ("NVIDIA H100 PCIe", 81559.0, "nvidia-h100-pcie-80gb"),
        ("NVIDIA H100 NVL", 95830.0, "nvidia-h100-nvl-94gb"),
        ("NVIDIA H200", 143_771.0, "nvidia-h200-sxm"),
        ("NVIDIA H200 NVL", 143_771.0, "nvidia-h200-nvl"),
        ("NVIDIA H20", 97871.0, "nvidia-h20-96gb"),
        ("NVIDIA H20-3e", 0.0, ""),
        ("NVIDIA GH200 480GB", 97871.0, "nvidia-gh200"),
        ("NVIDIA GH200 144G HBM3e", 146_831.0, "nvidia-gh200-144gb"),
        ("NVIDIA B200", 183_359.0, "nvidia-b200"),
        ("NVIDIA GB200", 189_471.0, "nvidia-gb200"),
        ("NVIDIA B300 SXM6 AC", 275_040.0, "nvidia-b300"),
        ("NVIDIA GB300", 284_208.0, "nvidia-gb300"),
        ("NVIDIA A100-SXM4-40GB", 40960.0, "nvidia-a100-sxm-40gb"),
        ("A100-SXM4-40GB", 40536.0, "nvidia-a100-sxm-40gb"),
        ("NVIDIA A100-SXM4-80GB", 81920.0, "nvidia-a100-sxm-80gb"),
        ("NVIDIA A100-SXM-64GB", 65536.0, "nvidia-a100-sxm-64gb"),
        ("NVIDIA A100-PCIE-40GB", 40960.0, "nvidia-a100-pcie-40gb"),
        ("NVIDIA A100 80GB PCIe", 81920.0, "nvidia-a100-pcie-80gb"),
        ("NVIDIA A800-SXM4-80GB", 81920.0, "nvidia-a800-sxm-80gb"),
        ("Tesla V100-SXM2-16GB", 16160.0, "nvidia-v100-sxm-16gb"),
        ("Tesla V100-SXM3-32GB", 32510.0, "nvidia-v100-sxm-32gb"),
        ("Tesla V100-PCIE-32GB", 32510.0, "nvidia-v100-pcie-32gb"),
        ("Tesla V100S-PCIE-32GB", 32510.0, "nvidia-v100s-pcie-32gb"),
        ("Tesla T4", 15360.0, "nvidia-t4"),
        ("NVIDIA A10", 23028.0, "nvidia-a10"),
        ("NVIDIA A10G", 23028.0, "nvidia-a10g"),
        ("NVIDIA L4", 23034.0, "nvidia-l4"),
        ("NVIDIA L40S", 46068.0, "nvidia-l40s"),
        ("NVIDIA RTX A6000", 49140.0, "nvidia-rtx-a6000"),
        ("NVIDIA RTX 6000 Ada Generation", 49140.0, "nvidia-rtx-6000-ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887.0, "nvidia-rtx-pro-6000-blackwell-server"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 97887.0, "nvidia-rtx-pro-6000-blackwell"),
        ("NVIDIA GeForce RTX 3090", 24576.0, "nvidia-rtx-3090"),
        ("NVIDIA GeForce RTX 3090 Ti", 24564.0, "nvidia-rtx-3090-ti"),
        ("NVIDIA GeForce RTX 4090", 24564.0, "nvidia-rtx-4090"),
        ("NVIDIA GeForce RTX 4090 D", 24564.0, "nvidia-rtx-4090-d"),
        ("NVIDIA GB10", 0.0, "nvidia-gb10"),
        ("AMD Instinct MI300X", 196_592.0, "amd-mi300x"),
        ("AMD Instinct MI300X OAM", 196_592.0, "amd-mi300x"),
        ("AMD Instinct MI325X", 262_128.0, "amd-mi325x"),
        ("AMD Instinct MI300X VF", 196_592.0, "amd-mi300x"),
        ("NVIDIA GH200 120GB", 97871.0, "nvidia-gh200"),
        ("A100-SXM-80GB", 81251.0, "nvidia-a100-sxm-80gb"),
        ("AMD INSTINCT MI250X (MCM) OAM AC MBA", 65520.0, "amd-mi250x"),
        ("AMD Instinct MI300A", 131_072.0, "amd-mi300a"),
        ("AMD Radeon RX 9070 XT", 16304.0, "amd-rx-9070-xt"),
        ("Intel(R) Data Center GPU Max 1550", 131_072.0, "intel-max-1550"),
        ("Intel(R) Arc(TM) Pro B60 Graphics", 24480.0, "intel-arc-pro-b60"),
        ("HL-205", 32768.0, "intel-gaudi1"),
        ("HL-225", 98304.0, "intel-gaudi2"),
        ("HL-325L", 131_072.0, "intel-gaudi3"),
        ("Trainium2", 98304.0, "aws-trn2"),
        ("Apple M1 Max", 65536.0, "apple-m1-max"),
    ] {
        let matched = driver(name, mib);
        if key.is_empty() {
            assert!(matched.key().is_none(), "{name}: {matched:?}");
        } else {
            assert_eq!(matched.key(), Some(key), "{name}: {matched:?}");
        }
    }
}

#[test]
fn ambiguous_names_return_several_entries() {
    several(
        &admin("h100", &[]),
        &["nvidia-h100-sxm-80gb", "nvidia-h100-sxm-64gb", "nvidia-h100-pcie-80gb", "nvidia-h100-nvl-94gb"],
    );
    several(&admin("h100_80gb", &[]), &["nvidia-h100-sxm-80gb", "nvidia-h100-pcie-80gb"]);
    several(
        &admin("nvidia_a100", &["ib", "mem512gb"]),
        &[
            "nvidia-a100-sxm-40gb",
            "nvidia-a100-sxm-80gb",
            "nvidia-a100-sxm-64gb",
            "nvidia-a100-pcie-40gb",
            "nvidia-a100-pcie-80gb",
        ],
    );
    several(&admin("a100_80", &[]), &["nvidia-a100-sxm-80gb", "nvidia-a100-pcie-80gb"]);
    several(&admin("H100_NVLINK_80GB", &[]), &["nvidia-h100-sxm-80gb", "nvidia-h100-pcie-80gb"]);
    several(&admin("a100-40", &[]), &["nvidia-a100-sxm-40gb", "nvidia-a100-pcie-40gb"]);
    several(&admin("nvidia_gh200_480gb", &[]), &["nvidia-gh200", "nvidia-gh200-144gb"]);
    several(&admin("h200", &[]), &["nvidia-h200-sxm", "nvidia-h200-nvl"]);
    several(&admin("mi300", &[]), &["amd-mi300a", "amd-mi300x"]);
    several(&admin("gaudi", &[]), &["intel-gaudi2", "intel-gaudi3", "intel-gaudi1"]);
    several(&admin("rtx_pro_6000", &[]), &["nvidia-rtx-pro-6000-blackwell", "nvidia-rtx-pro-6000-blackwell-server"]);
}

#[test]
fn administrator_names_match_one_entry_when_unambiguous() {
    for (name, key) in [
        ("h100_sxm_80gb", "nvidia-h100-sxm-80gb"),
        ("nvidia_h100_80gb_hbm3", "nvidia-h100-sxm-80gb"),
        ("h100nvl", "nvidia-h100-nvl-94gb"),
        ("a100-sxm4-80gb", "nvidia-a100-sxm-80gb"),
        ("a100_pcie_40", "nvidia-a100-pcie-40gb"),
        ("tesla_v100-sxm2-16gb", "nvidia-v100-sxm-16gb"),
        ("b200", "nvidia-b200"),
        ("t4", "nvidia-t4"),
        ("l40s", "nvidia-l40s"),
        ("4090", "nvidia-rtx-4090"),
        ("rtx4090", "nvidia-rtx-4090"),
        ("a6000", "nvidia-rtx-a6000"),
        ("rtx_6000_ada", "nvidia-rtx-6000-ada"),
        ("mi300x", "amd-mi300x"),
        ("amd_instinct_mi250x", "amd-mi250x"),
        ("gaudi2", "intel-gaudi2"),
        ("tpu-v5-lite-podslice", "google-tpu-v5e"),
        ("tpu-v6e-slice", "google-tpu-v6e"),
        ("tpu7x", "google-tpu-v7x"),
        ("AMD_Instinct_MI300X_OAM", "amd-mi300x"),
        ("GB200-NVL72", "nvidia-gb200"),
        ("nvidia_gb200", "nvidia-gb200"),
        ("nvidia_h100_nvl", "nvidia-h100-nvl-94gb"),
        ("nvidia_geforce_rtx_3090", "nvidia-rtx-3090"),
        ("geforce_rtx_2080_ti", "nvidia-rtx-2080-ti"),
        ("rtx_a6000", "nvidia-rtx-a6000"),
        ("v100s", "nvidia-v100s-pcie-32gb"),
        ("tesla_t4", "nvidia-t4"),
        ("Intel Gaudi 3", "intel-gaudi3"),
        ("trn1", "aws-trn1"),
        ("tpu-v5p-slice", "google-tpu-v5p"),
        ("tpu-v4-podslice", "google-tpu-v4"),
    ] {
        let matched = admin(name, &[]);
        assert_eq!(matched.key(), Some(key), "{name}: {matched:?}");
    }
}

#[test]
fn hints_resolve_ambiguous_names_and_are_reported() {
    for (name, hints, key, by) in [
        ("a100", &["ib", "a100_80gb", "sxm4"][..], "nvidia-a100-sxm-80gb", "a100_80gb, sxm4"),
        ("a100", &["gpu", "hbm40g", "SXM"][..], "nvidia-a100-sxm-40gb", "hbm40g, SXM"),
        ("h100", &["GPU_MEM:94GB"][..], "nvidia-h100-nvl-94gb", "GPU_MEM:94GB"),
        ("h100", &["p5.48xlarge"][..], "nvidia-h100-sxm-80gb", "p5.48xlarge"),
        ("gaudi", &["dl1.24xlarge"][..], "intel-gaudi1", "dl1.24xlarge"),
    ] {
        match admin(name, hints) {
            Matched::One { key: found, by_hint } => assert_eq!((found.as_str(), by_hint.as_deref()), (key, Some(by))),
            other => panic!("{name} {hints:?}: {other:?}"),
        }
    }
    // The host's memory, and a hint that matches no candidate, do not decide.
    assert!(matches!(admin("gh200", &["96gb"]), Matched::Several { .. }));
    assert!(matches!(admin("a100", &["a100_16gb"]), Matched::Several { .. }));
}

#[test]
fn similar_name_is_not_matched_to_another_model() {
    for name in [
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA A100X",
        "NVIDIA H100L 94GB",
        "Tesla P100-PCIE-16GB",
        "AMD Instinct MI100",
        "Quadro RTX 6000",
        "GRID A100D-40C",
        "Radeon RX 7900 GRE",
        "NVIDIA GeForce GTX 1080 Ti",
        "NVIDIA TITAN RTX",
        "AMD Instinct MI308X",
        "Microsoft Basic Display",
        "",
        "NVIDIA",
    ] {
        let matched = driver(name, 0.0);
        assert!(matches!(matched, Matched::Unknown { .. }), "{name}: {matched:?}");
    }
    match driver("NVIDIA GeForce RTX 4090 Laptop GPU", 16376.0) {
        Matched::Unknown { closest, .. } => assert!(closest.contains(&"nvidia-rtx-4090".to_owned())),
        other => panic!("{other:?}"),
    }
}

#[test]
fn memory_that_contradicts_the_catalog_rules_an_entry_out() {
    match driver("NVIDIA GeForce RTX 3080", 12288.0) {
        Matched::Unknown { closest, reason } => {
            assert_eq!(closest, ["nvidia-rtx-3080"]);
            assert!(reason.contains("12 GiB"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn apple_chips_match_by_gpu_cores_and_with_any_memory() {
    let chip = |text: &str, cores, gib| {
        let query = Query {
            text: text.to_owned(),
            named_by: NamedBy::Driver,
            memory_gib: Some(gib),
            cores: Some(cores),
            ..Query::default()
        };
        look_up(&query, shipped()).matched
    };
    assert_eq!(chip("Apple M1", 7, 8.0).key(), Some("apple-m1-7core-gpu"));
    assert_eq!(chip("Apple M1", 8, 16.0).key(), Some("apple-m1"));
    assert_eq!(chip("Apple M1 Ultra", 64, 128.0).key(), Some("apple-m1-ultra"));
    assert!(matches!(chip("Apple M1 Ultra", 48, 64.0), Matched::Unknown { .. }));
    assert!(matches!(chip("Apple M2", 10, 16.0), Matched::Unknown { .. }));
}

#[test]
fn mig_slice_is_parsed_with_profile_and_parent_device() {
    for (text, profile, compute, gb, key) in [
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "1g.10gb", 1, 10.0, Some("nvidia-a100-sxm-80gb")),
        ("NVIDIA-H100-80GB-HBM3-MIG-3g.40gb", "3g.40gb", 3, 40.0, Some("nvidia-h100-sxm-80gb")),
        ("nvidia_h100_80gb_hbm3_1g.20gb", "1g.20gb", 1, 20.0, Some("nvidia-h100-sxm-80gb")),
        ("a100_1g.5gb", "1g.5gb", 1, 5.0, None),
        ("2g.10gb", "2g.10gb", 2, 10.0, None),
        ("1g.5gb+me", "1g.5gb+me", 1, 5.0, None),
        ("1c.3g.40gb", "1c.3g.40gb", 3, 40.0, None),
    ] {
        let found = look_up(&Query { text: text.to_owned(), ..Query::default() }, shipped());
        let slice = found.slice.unwrap_or_else(|| panic!("{text}"));
        assert_eq!((slice.profile.as_str(), slice.compute, slice.memory_gb), (profile, compute, gb), "{text}");
        assert_eq!(found.matched.key(), key, "{text}: {:?}", found.matched);
    }
    for text in ["v1.2gb", "9g.80gb", "g.5gb", "A100-SXM4-80GB"] {
        assert_eq!(look_up(&Query { text: text.to_owned(), ..Query::default() }, shipped()).slice, None, "{text}");
    }
}

#[test]
fn a_module_of_two_dies_counts_as_two_devices() {
    let found = |text: &str| look_up(&Query { text: text.to_owned(), ..Query::default() }, shipped());
    assert_eq!(found("mi250x").devices_per_accelerator, 2);
    assert_eq!(found("mi300x").devices_per_accelerator, 1);
}

#[test]
fn accelerator_model_is_extracted_from_node_features() {
    let model = |features: &[&str]| {
        Index::new(shipped()).model_in_features(&features.iter().map(|&f| f.to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(model(&["CPU_GEN:SKX", "GPU_BRD:TESLA", "GPU_SKU:V100_SXM2"]).as_deref(), Some("V100_SXM2"));
    assert_eq!(model(&["a100", "a100_80gb", "ib"]).as_deref(), Some("a100_80gb"));
    assert_eq!(model(&["static", "p4de.24xlarge"]).as_deref(), Some("A100 SXM4 80GB"));
    assert_eq!(model(&["a100", "v100"]), None);
    assert_eq!(model(&["gold6248", "m1", "hdr"]), None);
}

#[test]
fn every_accelerator_of_an_instance_type_is_in_the_catalog() {
    for instance in ["p5.48xlarge", "Standard_ND96isr_H100_v5", "a4-highgpu-8g", "BM.GPU.MI300X.8", "ml.g5.2xlarge"] {
        let device = instance_accelerator(instance).unwrap_or_else(|| panic!("{instance}"));
        assert!(admin(device, &[]).key().is_some(), "{instance}: {device}");
    }
    assert_eq!(instance_accelerator("m7i.large"), None);
}

#[test]
fn every_catalog_name_finds_its_own_entry() {
    let mut missed = Vec::new();
    for entry in shipped() {
        let hit = |text: &str| {
            let query = Query { text: text.to_owned(), ..Query::default() };
            match look_up(&query, shipped()).matched {
                Matched::One { key, .. } => key == entry.key,
                Matched::Several { keys, .. } => keys.contains(&entry.key),
                Matched::Unknown { .. } => false,
            }
        };
        for text in std::iter::once(&entry.key).chain(&entry.names) {
            if !hit(text) {
                missed.push(format!("{}: {text}", entry.key));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
