//! Invalid input, hostile input and interrupted work with the real binary: what is rejected, what is limited, what is
//! kept.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::program::{ROOT, atlas, stderr, stdout};

fn temp() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn write(dir: &Path, name: &str, text: impl AsRef<[u8]>) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

const TARGET: &str = "- name: h100-sxm-8\n  vendor: NVIDIA\n  accelerator: nvidia-h100-sxm-80gb\n  accelerators_per_node: 8\n  \
                      num_nodes: 1\n  memory_gb_per_accel: 80\n  cost: { hourly_usd: PRICE, energy_watts_node: 10200, pue: 1.15 }\n";
const RUN: [&str; 7] = ["run", "--target", "h100-sxm-8", "--workload", "llama3.1-8b-serve", "--format", "json"];

#[test]
fn built_in_entries_never_replace_invalid_user_entries() {
    let dir = temp();
    let sheet = std::fs::read_to_string(format!("{ROOT}/workload/accelerators/nvidia.yaml")).unwrap();
    write(dir.path(), "workload/targets.yaml", TARGET.replace("PRICE", "10"));
    atlas(dir.path(), &RUN).assert().code(0);
    for (name, text) in [
        ("targets.yaml", TARGET.replace("PRICE", "ten")),
        ("targets.yaml", TARGET.replace("PRICE", "10").replace("{", "{{")),
        ("targets.yaml", format!("{0}{0}", TARGET.replace("PRICE", "10"))),
        ("accelerators/nvidia.yaml", sheet.replacen("tdp_w: 700", "tdp_w: much", 1)),
        ("accelerators/nvidia.yaml", sheet.replacen("tdp_w: 700", "tdp_w: [", 1)),
    ] {
        let dir = temp();
        write(dir.path(), &format!("workload/{name}"), &text);
        let run = atlas(dir.path(), &RUN).assert();
        assert_eq!(run.get_output().status.code(), Some(1), "{name}: {text}");
        assert!(stderr(&run).contains(name), "{name}: {}", stderr(&run));
        assert!(stdout(&run).is_empty(), "{}", stdout(&run));
        assert!(!dir.path().join("out").exists(), "no record of figures that were not asked for");
        // Other targets still work.
        let mut other = RUN;
        other[2] = "mi300x-8";
        atlas(dir.path(), &other).assert().code(0);
    }
}

#[test]
fn missing_or_invalid_files_passed_by_flags_are_rejected() {
    let dir = temp();
    write(dir.path(), "t.yaml", TARGET.replace("PRICE", "ten"));
    for flag in ["--targets", "--workloads", "--hardware", "--config", "--workload-dir"] {
        for path in ["absent.yaml", "t.yaml"] {
            let mut command = atlas(dir.path(), &RUN);
            let run = command.args([flag, path]).assert().code(1);
            assert!(stderr(&run).contains(path), "{flag} {path}: {}", stderr(&run));
        }
    }
}

#[cfg(unix)]
#[test]
fn dangling_symlink_is_reported_as_a_problem() {
    for name in
        ["workload", "workload/targets.yaml", "workload/models.yaml", "workload/profiles", "workload/accelerators"]
    {
        let dir = temp();
        std::fs::create_dir_all(dir.path().join(name).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join(name)).unwrap();
        let run = atlas(dir.path(), &["check"]).assert().code(1);
        assert!(stderr(&run).contains(name), "{name}: {}", stderr(&run));
    }
}

/// Runs with a limited address space; returns the exit code and the output.
#[cfg(unix)]
fn limited(dir: &Path, kilobytes: u64, arguments: &str) -> (Option<i32>, String) {
    let line = format!("ulimit -v {kilobytes}; exec {} {arguments}", env!("CARGO_BIN_EXE_atlas"));
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(line).current_dir(dir).env("ATLAS_STATE_DIR", dir).env("ATLAS_CONFIG_DIR", dir.join("none"));
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[cfg(unix)]
#[test]
fn small_files_that_expand_in_memory_are_rejected() {
    let dir = temp();
    write(dir.path(), "s.yaml", format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 20_000].join(", ")));
    let anchors: String = (0..60).map(|i| format!("&a{i} [")).collect();
    write(dir.path(), "n.yaml", format!("{anchors}{}{}", "1,".repeat(900_000), "]".repeat(60)));
    write(dir.path(), "f.yaml", format!("{{{}}}", "a: [1,2],".repeat(1_500_000)));
    write(dir.path(), "k.yaml", (0..160_000).map(|i| format!("k{i}: 1\n")).collect::<String>());
    for arguments in [
        "check s.yaml",
        "check n.yaml",
        "check f.yaml",
        "check k.yaml",
        "report --sweep /dev/zero --out r.html",
        "simulate --config /dev/zero",
        "run --target h100-sxm-8 --workload llama3.1-8b-serve --hardware /dev/zero",
        "import /dev/zero",
    ] {
        let (code, described) = limited(dir.path(), 1_000_000, arguments);
        assert_eq!(code, Some(1), "{arguments}: {described}");
        assert!(!described.contains("memory"), "{arguments}: {described}");
    }
    // Content that does not describe a job is omitted.
    for arguments in ["import s.yaml", "import n.yaml"] {
        let (code, described) = limited(dir.path(), 500_000, arguments);
        assert!(matches!(code, Some(0 | 1)), "{arguments}: {code:?}, {described}");
    }
}

#[cfg(unix)]
#[test]
fn a_packed_document_of_many_values_is_refused_in_bounded_memory() {
    use std::io::Write as _;
    let dir = temp();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"{\"log_history\":[").unwrap();
    (0..40).for_each(|_| packed.write_all(&b"1,".repeat(1_000_000)).unwrap());
    packed.write_all(b"1]}").unwrap();
    write(dir.path(), "j.json.gz", packed.finish().unwrap());
    let (code, described) = limited(dir.path(), 1_000_000, "ingest j.json.gz");
    assert_eq!(code, Some(1), "{described}");
    assert!(described.contains("values"), "{described}");
}

#[test]
fn physically_impossible_values_are_rejected() {
    let good = TARGET.replace("PRICE", "10");
    let dir = temp();
    write(dir.path(), "good.yaml", &good);
    atlas(dir.path(), &["check", "good.yaml"]).assert().code(0);
    for (what, wrong) in [
        ("memory_gb_per_accel: 80", "memory_gb_per_accel: 0"),
        ("pue: 1.15", "pue: 0"),
        ("pue: 1.15", "pue: 0.5"),
        ("pue: 1.15", "pue: 1,15"),
        ("energy_watts_node: 10200", "energy_watts_node: 1e30"),
        ("energy_watts_node: 10200", "energy_watts_node: .inf"),
        ("hourly_usd: 10", "hourly_usd: -1"),
        ("hourly_usd: 10", "hourly_usd: .nan"),
    ] {
        write(dir.path(), "bad.yaml", good.replace(what, wrong));
        let run = atlas(dir.path(), &["check", "bad.yaml"]).assert().code(1);
        assert!(
            stderr(&run).contains("bad.yaml:7") || stderr(&run).contains("bad.yaml:6"),
            "{wrong}: {}",
            stderr(&run)
        );
    }
    let profile = std::fs::read_to_string(format!("{ROOT}/workload/profiles/nvidia.yaml")).unwrap();
    for (what, wrong) in [
        ("util_fraction: 0.6", "util_fraction: -1"),
        ("base_tokens_per_accel: 1100.0", "base_tokens_per_accel: -1e30"),
        ("max: 0.92", "max: 2.5"),
        ("seq_norm: 8192.0", "seq_norm: 0"),
        ("amplitude: 0.025", "amplitude: .nan"),
    ] {
        assert!(profile.contains(what), "{what}");
        write(dir.path(), "nvidia.yaml", profile.replace(what, wrong));
        atlas(dir.path(), &["check", "nvidia.yaml"]).assert().code(1);
    }
}

#[test]
fn records_with_negative_metrics_or_duplicate_keys_are_rejected() {
    let record = r#"{"target": "a", "workload": "b", "track": "parity", "dollar_per_1k_tokens": 1,
                     "record": {"tokens_per_sec": 1, "node_power_w": 1}}"#;
    let dir = temp();
    write(dir.path(), "out/r.json", record);
    atlas(dir.path(), &["report"]).assert().code(0);
    for (what, wrong) in [
        (r#""tokens_per_sec": 1"#, r#""tokens_per_sec": -1"#),
        (r#""node_power_w": 1"#, r#""node_power_w": -3570"#),
        (r#""dollar_per_1k_tokens": 1"#, r#""dollar_per_1k_tokens": -1"#),
        (r#""target": "a""#, r#""target": "a", "target": "c""#),
    ] {
        write(dir.path(), "out/r.json", record.replace(what, wrong));
        let run = atlas(dir.path(), &["report"]).assert().code(1);
        assert!(stderr(&run).contains("r.json"), "{wrong}: {}", stderr(&run));
    }
}

#[test]
fn report_escapes_tags_formulas_and_terminal_sequences() {
    let dir = temp();
    let record = r#"{"target": "<script>alert(1)</script>\u001b[31m|x", "workload": "=1+1", "track": "parity",
                     "dollar_per_1k_tokens": 1, "record": {"tokens_per_sec": 1, "node_power_w": 1}}"#;
    write(dir.path(), "out/r.json", record);
    for (name, kept, lost) in [("r.md", "&lt;script>", "\u{1b}"), ("r.csv", "'=1+1", ",=1+1")] {
        atlas(dir.path(), &["report", "--out", name]).assert().code(0);
        let text = std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(text.contains(kept) && !text.contains(lost), "{name}: {text}");
    }
}

#[test]
fn unbounded_simulations_are_rejected_before_they_start() {
    let dir = temp();
    let began = Instant::now();
    let pair = ["--target", "h100-sxm-64", "--workload", "llama3.1-8b-train"];
    let mut command = atlas(dir.path(), &["simulate", "--mtbf", "1s", "--study", "goodput"]);
    let run = command.args(pair).assert().code(2);
    assert!(stderr(&run).contains("events"), "{}", stderr(&run));
    let mut command = atlas(dir.path(), &["simulate", "--set", "node_mtbf_h=0.000001"]);
    let run = command.args(pair).assert().code(2);
    assert!(stderr(&run).contains("events"), "{}", stderr(&run));
    let mut command = atlas(dir.path(), &["run", "--engine", "event", "--set", "node_mtbf_h=0.000001"]);
    command.args(pair).assert().code(0);
    write(dir.path(), "big.yaml", "simulation: { preset: small }\nmodel: { num_layers: 1e6 }\n");
    atlas(dir.path(), &["simulate", "--config", "big.yaml"]).assert().code(1);
    // Generous: without a limit they would take minutes to hours.
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[test]
fn utilization_above_peak_is_explained() {
    let dir = temp();
    let run = |pair: [&str; 2], set: &str, format: &str| {
        let arguments = ["run", "--target", pair[0], "--workload", pair[1], "--set", set, "--format", format];
        stdout(&atlas(dir.path(), &arguments).assert().code(0))
    };
    let utilization = |pair: [&str; 2], set: &str| -> f64 {
        let record: serde_json::Value = serde_json::from_str(&run(pair, set, "json")).unwrap();
        record["record"]["flop_utilization"].as_f64().unwrap()
    };
    let images = ["gb10-1", "resnet50-train"];
    assert_eq!(utilization(images, "prompt=16777216"), utilization(images, "prompt=1"));
    assert!(utilization(images, "prompt=1") < 1.0);
    let long = ["h100-sxm-64", "llama3.1-8b-train"];
    for prompt in [8192, 1 << 20, 1 << 24] {
        let set = format!("prompt={prompt}");
        let described = run(long, &set, "table").contains("is not a share of the peak");
        assert_eq!(described, utilization(long, &set) > 1.0, "{set}");
    }
}

#[cfg(unix)]
#[test]
fn only_one_sweep_writes_to_a_file() {
    let dir = temp();
    let sweep =
        ["sweep", "--target", "h100-sxm-8", "--workload", "llama3.1-8b-serve", "--over", "tp=1,2", "--out", "s.csv"];
    let file = std::fs::File::create(dir.path().join("s.csv")).unwrap();
    file.lock().unwrap();
    let run = atlas(dir.path(), &sweep).assert().code(1);
    assert!(stderr(&run).contains("another sweep is writing to s.csv"), "{}", stderr(&run));
    drop(file);
    atlas(dir.path(), &sweep).assert().code(0);
}

/// Output of the command when its threads may use this number of processors.
#[cfg(target_os = "linux")]
fn on_processors(dir: &Path, processors: usize, arguments: &[&str]) -> String {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    std::thread::scope(|scope| {
        // A child process inherits the affinity of the thread that starts it.
        let run = scope.spawn(|| {
            let allowed = sched_getaffinity(None).unwrap();
            let mut few = CpuSet::new();
            (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).take(processors).for_each(|cpu| few.set(cpu));
            sched_setaffinity(None, &few).unwrap();
            stdout(&atlas(dir, arguments).assert().code(0))
        });
        run.join().unwrap()
    })
}

#[cfg(target_os = "linux")]
#[test]
fn answers_do_not_depend_on_the_number_of_threads() {
    let dir = temp();
    let line = |i: usize| {
        format!(
            "{{\"id\": {i}, \"target\": \"h100-sxm-8\", \"workload\": \"llama3.1-8b-serve\", \"knobs\": {{\"concurrency\": {i}}}}}\n"
        )
    };
    write(dir.path(), "b.jsonl", (1..60).map(line).collect::<String>());
    // A few rows of each kind, which are fast to simulate.
    let table = std::fs::read_to_string(format!("{ROOT}/workload/measurements/training.csv")).unwrap();
    let mut lines = table.lines();
    let head = lines.next().unwrap();
    let rows: Vec<&str> = lines.filter(|line| line.contains(",nvidia-h100-sxm-80gb,8,")).step_by(7).take(12).collect();
    write(dir.path(), "m.csv", format!("{head}\n{}\n", rows.join("\n")));
    let serving = "--target h100-sxm-8 --workload llama3.1-8b-serve";
    for command in [
        "validate --measurements m.csv --engine event --format json".to_owned(),
        "validate --measurements m.csv --format json".to_owned(),
        format!("run {serving} --engine event --format json"),
        format!("simulate {serving} --replications 6 --format json"),
        format!("optimize {serving} --format json"),
        format!("sweep {serving} --over tp=1,2,4,8 --over concurrency=1,8,64,256"),
        "simulate --target h100-sxm-64 --workload llama3.1-8b-train --replications 8 --steps 3 --jitter 0.1 --format json"
            .to_owned(),
        "run --batch b.jsonl".to_owned(),
    ] {
        let arguments: Vec<&str> = command.split(' ').collect();
        let described = |processors| {
            let text = on_processors(dir.path(), processors, &arguments);
            // Duration and time of a search are not part of the result.
            text.lines().filter(|line| !line.contains("\"seconds\"") && !line.contains("\"ts\"")).collect::<Vec<_>>().join("\n")
        };
        let one = described(1);
        assert!(one.len() > 1000, "{command}: {one}");
        assert_eq!(one, described(usize::MAX), "{command}");
    }
}
