//! Detection on this machine, with the tools of each vendor.

use std::time::Duration;

use atlas_detect::detect;
use atlas_detect::matching::Matched;
use atlas_detect::model::{Detected, Machine, NetworkKind};
use atlas_detect::read::{ibstat, infiniband};
use atlas_detect::runner::{Output, Recorded, RunError};

use crate::catalog::shipped;
use crate::recorded;
use crate::system::FakeSystem;

const QUERY: &str = "nvidia-smi --query-gpu=index,name,memory.total,power.limit,pcie.link.gen.max,\
                     pcie.link.width.max,mig.mode.current --format=csv";
const FEW: &str = "nvidia-smi --query-gpu=index,name,memory.total --format=csv";

fn look(runner: &Recorded, system: &FakeSystem) -> Detected {
    detect(runner, &system.options(), shipped())
}

fn only(detected: &Detected) -> &Machine {
    assert_eq!(detected.machines.len(), 1, "{detected:#?}");
    &detected.machines[0]
}

fn key(machine: &Machine) -> Option<&str> {
    machine.accelerator.as_ref().unwrap().matched.key()
}

fn h100() -> Recorded {
    Recorded::new()
        .with(QUERY, recorded!("nvidia_query_h100.csv"))
        .with("nvidia-smi topo -m", recorded!("nvidia_topo_h100.txt"))
        .with("nvidia-smi nvlink -s", recorded!("nvidia_nvlink_h100.txt"))
}

fn dgx(host: &str) -> FakeSystem {
    let system = FakeSystem::new(host);
    for nic in 0..10 {
        system.port(&format!("mlx5_{nic}"), 1, "400 Gb/sec (4X NDR)", "InfiniBand", "4: ACTIVE");
    }
    system.port("mlx5_10", 1, "100 Gb/sec (4X EDR)", "Ethernet", "4: ACTIVE");
    system
}

#[test]
fn a_node_of_eight_h100_is_found_with_its_links() {
    let detected = look(&h100(), &dgx("node7"));
    let machine = only(&detected);
    assert_eq!(machine.name, "node7");
    assert_eq!(key(machine), Some("nvidia-h100-sxm-80gb"));
    assert_eq!(machine.accelerators_per_node, Some(8));
    let accelerator = machine.accelerator.as_ref().unwrap();
    assert_eq!(accelerator.power_w, Some(700.0));
    let link = machine.link.as_ref().unwrap();
    assert_eq!((link.kind.as_str(), link.gbytes_per_sec, link.domain_size), ("NVLink", Some(900.0), Some(8)));
    // Ten ports run at 400 Gbit/s; two of them are not close to a GPU.
    let network = machine.network.as_ref().unwrap();
    assert_eq!(
        (network.kind, network.gbits_per_nic, network.nics_per_node),
        (NetworkKind::InfiniBand, Some(400.0), Some(8))
    );
    assert_eq!((machine.host.cpus, machine.host.memory_gib), (Some(4), Some(2000.0)));
    assert!(machine.undetermined.is_empty(), "{:?}", machine.undetermined);
}

#[test]
fn rail_count_is_undetermined_without_a_topology_matrix() {
    let runner = Recorded::new().with(QUERY, recorded!("nvidia_query_h100.csv"));
    let detected = look(&runner, &dgx("node7"));
    let machine = only(&detected);
    let network = machine.network.as_ref().unwrap();
    assert_eq!((network.gbits_per_nic, network.nics_per_node), (Some(400.0), None));
    assert_eq!(machine.link, None);
    assert!(machine.undetermined.iter().any(|open| open.what == "network" && open.why.contains("10 active ports")));
}

#[test]
fn old_drivers_are_queried_for_fewer_fields() {
    let runner = Recorded::new()
        .with_failure(QUERY, 2, "Field \"mig.mode.current\" is not a valid field to query.")
        .with(FEW, "index, name, memory.total [MiB]\n0, Tesla V100-SXM2-16GB, 16160 MiB\n");
    assert_eq!(key(only(&look(&runner, &FakeSystem::new("a")))), Some("nvidia-v100-sxm-16gb"));
}

#[test]
fn a_driver_that_fails_is_reported_and_the_bus_is_read() {
    let message = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n";
    let failed = Output { stdout: message.to_owned(), stderr: String::new(), status: Some(9), truncated: false };
    let runner = Recorded::new()
        .with_output(QUERY, failed.clone())
        .with_output(FEW, failed.clone())
        .with_output("nvidia-smi -L", failed);
    let system = FakeSystem::new("a");
    system.pci("0000:19:00.0", "0x10de", "0x2330", "0x030200");
    system.pci("0000:3b:00.0", "0x10de", "0x2330", "0x030200");
    system.pci("0000:02:00.0", "0x1a03", "0x2000", "0x030000");
    let detected = look(&runner, &system);
    let machine = only(&detected);
    assert_eq!((key(machine), machine.accelerators_per_node), (Some("nvidia-h100-sxm-80gb"), Some(2)));
    assert!(detected.undetermined.iter().any(|open| open.why.contains("couldn't communicate")), "{detected:#?}");
}

#[test]
fn hanging_tool_is_not_run_again() {
    let error = RunError::TimedOut { program: "nvidia-smi".to_owned(), after: Duration::from_secs(5) };
    let runner = Recorded::new().with_error(QUERY, error);
    let detected = look(&runner, &FakeSystem::new("a"));
    assert!(detected.machines.is_empty());
    assert!(detected.undetermined.iter().any(|open| open.why.contains("no answer within 5 s")));
    assert_eq!(runner.commands().iter().filter(|line| line.starts_with("nvidia-smi")).count(), 1);
}

#[test]
fn mig_slices_are_kept_apart_from_whole_devices() {
    let runner = Recorded::new()
        .with(QUERY, recorded!("nvidia_query_mig.csv"))
        .with("nvidia-smi -L", recorded!("nvidia_list_mig.txt"));
    let detected = look(&runner, &FakeSystem::new("a"));
    let machine = only(&detected);
    let slice = machine.accelerator.as_ref().unwrap().slice.as_ref().unwrap();
    assert_eq!((slice.profile.as_str(), slice.compute, slice.memory_gb), ("3g.40gb", 3, 40.0));
    assert_eq!(key(machine), Some("nvidia-a100-sxm-80gb"));
    assert!(machine.remarks[0].contains("3g.40gb, 3g.40gb"), "{:?}", machine.remarks);
}

#[test]
fn gpus_of_two_kinds_make_two_machines() {
    let table = "index, name, memory.total [MiB], power.limit [W], pcie.link.gen.max, pcie.link.width.max, \
                 mig.mode.current\n0, NVIDIA L40S, 46068 MiB, 350.00 W, 4, 16, [N/A]\n1, Tesla T4, 15360 MiB, 70.00 W, \
                 3, 16, [N/A]\n2, NVIDIA L40S, 46068 MiB, 350.00 W, 4, 16, [N/A]\n";
    let matrix = "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tSYS\tPHB\t0-31\nGPU1\tSYS\t X \tSYS\t0-31\n\
                  GPU2\tPHB\tSYS\t X \t0-31\n";
    let runner = Recorded::new().with(QUERY, table).with("nvidia-smi topo -m", matrix);
    let detected = look(&runner, &FakeSystem::new("box"));
    let found: Vec<_> = detected.machines.iter().map(|m| (m.name.as_str(), key(m), m.accelerators_per_node)).collect();
    assert_eq!(
        found,
        [("box-nvidia-l40s", Some("nvidia-l40s"), Some(2)), ("box-tesla-t4", Some("nvidia-t4"), Some(1))]
    );
    // No NVLink: PCIe 4.0 x16, both directions.
    let link = detected.machines[0].link.as_ref().unwrap();
    assert_eq!((link.kind.as_str(), link.gbytes_per_sec), ("PCIe", Some(63.0)));
    assert_eq!(detected.machines[1].link, None);
}

#[test]
fn amd_smi_reports_devices_memory_power_and_xgmi() {
    let line = "amd-smi static --asic --vram --limit --json";
    let runner = Recorded::new()
        .with(line, recorded!("amd_smi_static.json"))
        .with("amd-smi topology --json", recorded!("amd_smi_topology.json"));
    let detected = look(&runner, &FakeSystem::new("a"));
    let machine = only(&detected);
    assert_eq!((key(machine), machine.accelerators_per_node), (Some("amd-mi300x"), Some(8)));
    assert_eq!(machine.accelerator.as_ref().unwrap().power_w, Some(750.0));
    let link = machine.link.as_ref().unwrap();
    assert_eq!((link.kind.as_str(), link.gbytes_per_sec, link.domain_size), ("xGMI", None, Some(8)));
    // Newer releases wrap the list. Without a market name, the device is identified by its id.
    let newer = Recorded::new().with(line, recorded!("amd_smi_static_7.json"));
    let detected = look(&newer, &FakeSystem::new("a"));
    assert_eq!((key(only(&detected)), only(&detected).accelerators_per_node), (Some("amd-mi355x"), Some(8)));
    assert_eq!(only(&detected).accelerator.as_ref().unwrap().power_w, Some(1400.0));
    // If JSON is not supported, the text output is read.
    let text = Recorded::new()
        .with_failure(line, 1, "amd-smi: error: unrecognized arguments: --json")
        .with("amd-smi static --asic --vram --limit", recorded!("amd_smi_static.txt"));
    let detected = look(&text, &FakeSystem::new("a"));
    assert_eq!((key(only(&detected)), only(&detected).accelerators_per_node), (Some("amd-mi325x"), Some(2)));
    assert_eq!(detected.undetermined, []);
}

#[test]
fn rocm_smi_counts_two_devices_for_one_mi250x() {
    let line = "rocm-smi --showproductname --showmeminfo vram --showmaxpower --json";
    let runner = Recorded::new()
        .with(line, recorded!("rocm_smi.json"))
        .with("rocm-smi --showtopotype", recorded!("rocm_smi_topotype.txt"));
    let detected = look(&runner, &FakeSystem::new("a"));
    let machine = only(&detected);
    assert_eq!((key(machine), machine.accelerators_per_node), (Some("amd-mi250x"), Some(4)));
    assert_eq!(machine.link.as_ref().unwrap().domain_size, Some(2));
    let text = Recorded::new()
        .with(line, "ERROR: no JSON\n")
        .with("rocm-smi --showproductname --showmeminfo vram --showmaxpower", recorded!("rocm_smi.txt"));
    let detected = look(&text, &FakeSystem::new("a"));
    assert_eq!((key(only(&detected)), only(&detected).accelerators_per_node), (Some("amd-mi210"), Some(2)));
}

#[test]
fn xpu_smi_reports_devices_and_memory() {
    let runner = Recorded::new()
        .with("xpu-smi discovery -j", recorded!("xpu_smi_discovery.json"))
        .with("xpu-smi discovery -d 0 -j", recorded!("xpu_smi_device.json"));
    let detected = look(&runner, &FakeSystem::new("a"));
    let machine = only(&detected);
    assert_eq!((key(machine), machine.accelerators_per_node), (Some("intel-max-1550"), Some(2)));
    assert_eq!(machine.accelerator.as_ref().unwrap().memory_gib, Some(128.0));
    let table = Recorded::new().with("xpu-smi discovery -j", recorded!("xpu_smi_discovery.txt"));
    assert_eq!(key(only(&look(&table, &FakeSystem::new("a")))), Some("intel-arc-pro-b60"));
}

#[test]
fn hl_smi_reports_gaudi_devices() {
    let line = "hl-smi -Q index,name,memory.total -f csv";
    let detected = look(&Recorded::new().with(line, recorded!("hl_smi.csv")), &FakeSystem::new("a"));
    assert_eq!((key(only(&detected)), only(&detected).accelerators_per_node), (Some("intel-gaudi2"), Some(8)));
    let screen = Recorded::new().with_failure(line, 1, "unknown option").with("hl-smi", recorded!("hl_smi.txt"));
    let detected = look(&screen, &FakeSystem::new("a"));
    assert_eq!((key(only(&detected)), only(&detected).accelerators_per_node), (Some("intel-gaudi3"), Some(2)));
    assert_eq!(only(&detected).accelerator.as_ref().unwrap().memory_gib, Some(128.0));
}

#[test]
fn neuron_devices_are_named_by_cores_or_instance_type() {
    let line = "neuron-ls --json-output";
    let detected = look(&Recorded::new().with(line, recorded!("neuron_ls.json")), &FakeSystem::new("a"));
    assert_eq!((key(only(&detected)), only(&detected).accelerators_per_node), (Some("aws-trn2"), Some(16)));
    // If two physical cores form one logical core, four are listed.
    let logical = recorded!("neuron_ls.json").replace("\"nc_count\": 8", "\"nc_count\": 4");
    assert_eq!(key(only(&look(&Recorded::new().with(line, &logical), &FakeSystem::new("a")))), Some("aws-trn2"));
    let small = recorded!("neuron_ls_small.json");
    let unknown = look(&Recorded::new().with(line, small), &FakeSystem::new("a"));
    match &only(&unknown).accelerator.as_ref().unwrap().matched {
        Matched::Several { keys, .. } => assert_eq!(keys, &["aws-trn1", "aws-inf2"]),
        other => panic!("{other:?}"),
    }
    let stated = Recorded::new().with(line, small).with("neuron-ls", recorded!("neuron_ls.txt"));
    assert_eq!(key(only(&look(&stated, &FakeSystem::new("a")))), Some("aws-inf2"));
    let system = FakeSystem::new("a");
    system.write("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
    system.write("sys/class/dmi/id/product_name", "trn1.2xlarge\n");
    let detected = look(&Recorded::new().with(line, small), &system);
    assert_eq!(key(only(&detected)), Some("aws-trn1"));
    assert_eq!(only(&detected).host.instance_type.as_deref(), Some("trn1.2xlarge"));
}

#[test]
fn apple_chip_is_detected_with_its_memory() {
    let line = "system_profiler SPHardwareDataType SPDisplaysDataType -json";
    let detected = look(&Recorded::new().with(line, recorded!("system_profiler.json")), &FakeSystem::new("mac"));
    let machine = only(&detected);
    assert_eq!(key(machine), Some("apple-m3-max"));
    assert_eq!(machine.accelerator.as_ref().unwrap().memory_gib, Some(64.0));
    // Without the number of GPU cores, the two variants of the M1 cannot be told apart.
    let sysctl = "hw.memsize: 17179869184\nmachdep.cpu.brand_string: Apple M1\n";
    let runner = Recorded::new().with("sysctl hw.memsize machdep.cpu.brand_string", sysctl);
    let detected = look(&runner, &FakeSystem::new("mac"));
    assert!(
        matches!(&only(&detected).accelerator.as_ref().unwrap().matched, Matched::Several { keys, .. } if keys.len() == 2)
    );
}

#[test]
fn tpus_are_found_on_the_bus() {
    let system = FakeSystem::new("tpu-vm");
    for slot in 4..8 {
        system.pci(&format!("0000:00:0{slot}.0"), "0x1ae0", "0x0063", "0x120000");
    }
    let detected = look(&Recorded::new(), &system);
    assert_eq!((key(only(&detected)), only(&detected).accelerators_per_node), (Some("google-tpu-v5e"), Some(4)));
}

#[test]
fn a_machine_without_accelerators_is_reported() {
    let system = FakeSystem::new("login1");
    system.pci("0000:02:00.0", "0x1a03", "0x2000", "0x030000");
    let detected = look(&Recorded::new(), &system);
    assert!(detected.machines.is_empty());
    assert_eq!(detected.undetermined.len(), 1);
    assert_eq!(detected.undetermined[0].what, "accelerators of this machine");
}

#[test]
fn ports_are_read_from_sysfs_and_ibstat_alike() {
    let system = FakeSystem::new("a");
    system.port("mlx5_0", 1, "400 Gb/sec (4X NDR)", "InfiniBand", "4: ACTIVE");
    system.port("mlx5_1", 1, "25 Gb/sec (1X EDR)", "Ethernet", "4: ACTIVE");
    system.port("mlx5_1", 2, "40 Gb/sec (4X QDR)", "Ethernet", "1: DOWN");
    let from_sysfs = infiniband::scan(&system.root().join("sys"));
    assert_eq!(from_sysfs.len(), 3);
    assert_eq!(from_sysfs, ibstat::ports(recorded!("ibstat.txt")));
    assert_eq!(from_sysfs[1].kind, NetworkKind::RoCE);
    assert!(!from_sysfs[2].active);
}

#[test]
fn elastic_fabric_adapters_are_no_infiniband() {
    let system = FakeSystem::new("a");
    for nic in 0..32 {
        let device = format!("rdmap{nic}s0");
        system.port(&device, 1, "100 Gb/sec (4X EDR)", "Unspecified", "4: ACTIVE");
        system.write(&format!("sys/class/infiniband/{device}/device/vendor"), "0x1d0f\n");
    }
    let detected = look(&h100(), &system);
    let network = only(&detected).network.as_ref().unwrap();
    assert_eq!((network.kind, network.nics_per_node), (NetworkKind::Efa, Some(32)));
}
