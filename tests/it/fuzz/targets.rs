//! What is fuzzed, with what it begins and what must hold.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use atlas_catalog::{Catalog, Part};
use atlas_cluster::import::{SourceFile, import};
use atlas_config::library::Library;
use atlas_config::{Profile, Workload};
use atlas_detect::read as detected;
use atlas_document::{Diagnostics, Node, Sources, parse};
use atlas_fabric::demo::script::Demo;
use atlas_fabric::tui::color::ColorDepth;
use atlas_fabric::tui::input::Input;
use atlas_fabric::tui::session::Document;
use atlas_fabric::tui::theme::Theme;
use atlas_ingest::reading::Context;
use atlas_plan::engine;
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::simulation::config::Config;
use atlas_plan::simulation::trace;

pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&[u8]) -> Result<(), String>,
    pub(crate) seeds: fn() -> Vec<Vec<u8>>,
}

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "yaml", run: yaml, seeds: documents },
    Target { name: "targets", run: targets, seeds: || files(&["workload/targets.yaml", "examples"], 40_000) },
    Target { name: "workloads", run: workloads, seeds: || files(&["workload/workloads.yaml", "examples"], 40_000) },
    Target { name: "profile", run: profile, seeds: || files(&["workload/profiles"], 40_000) },
    Target {
        name: "catalog",
        run: catalog,
        seeds: || files(&["workload/accelerators", "workload/prices.yaml"], 20_000),
    },
    Target { name: "experiment", run: experiment, seeds: || files(&["examples"], 40_000) },
    Target { name: "simulator", run: simulator, seeds: || lines(SIMULATOR) },
    Target { name: "json", run: json, seeds: || lines(RECORDS) },
    Target { name: "session", run: session, seeds: || lines(SESSIONS) },
    Target { name: "tour", run: tour, seeds: || files(&["demo"], 40_000) },
    Target { name: "theme", run: theme, seeds: || files(&["themes"], 40_000) },
    Target { name: "sweep", run: sweep, seeds: || lines(SWEEPS) },
    Target { name: "log", run: log, seeds: logs },
    Target { name: "trace", run: traces, seeds: || lines(TRACES) },
    Target { name: "launch", run: launch, seeds: || lines(SCRIPTS) },
    Target { name: "detect", run: detect, seeds: || files(&["crates/detect/tests/data"], 40_000) },
    Target { name: "keys", run: keys, seeds: || lines(KEYS) },
];

const SIMULATOR: &[&str] = &[
    "experiment_name: a\nhardware: { gpu_model: A100, num_gpus_per_node: 8 }\nmodel: { model_type: transformer, num_layers: 12, \
     hidden_size: 768 }\ntraining: { batch_size_per_gpu: 8, num_nodes: 1 }\nnetwork: { topology_type: ring }\n",
    "target: h100-sxm-8\nworkload: llama3.1-8b-serve\nset: [tp=2]\nsimulate: { steps: 3, jitter: 0.1 }\n",
];
const RECORDS: &[&str] = &[
    r#"{"target": "a", "workload": "b", "seed": 1337, "dollar_per_1k_tokens": 0.1, "record": {"tokens_per_sec": 1.5e3}}"#,
    r#"{"id": 1, "target": "h100-sxm-8", "workload": "llama3.1-8b-serve", "knobs": {"tp": 8}}"#,
];
const SESSIONS: &[&str] = &[r#"{"version": 1, "theme": "dark", "tab": 0, "tabs": [{"target": "a", "workload": "b"}]}"#];
const SWEEPS: &[&str] =
    &["target,workload,tp,tokens_per_sec,verdict\na,b,1,100.5,fits\na,b,2,200,fits\nc,\"b,d\",4,1e3,too large\n"];
const TRACES: &[&str] = &[
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n",
    "{\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 500, \"hash_ids\": [0, 1, 2]}\n{\"timestamp\": 3000, \
     \"input_length\": 7322, \"output_length\": 490, \"hash_ids\": [0, 3]}\n",
    "{\"input_lens\": [10, 20], \"output_lens\": [5, 6], \"ttfts\": [0.1, 0.2], \"duration\": 2.5}\n",
];
const SCRIPTS: &[&str] = &[
    "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\nTP=8; for i in 1 2; do X=$((TP * i)); done\n\
     torchrun --nnodes $SLURM_NNODES --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size ${TP:-4} --bf16 \\\n  \
     --num-layers 32 --hidden-size 4096 \"$@\"\n",
    "vllm serve meta-llama/Llama-3.1-70B --tensor-parallel-size 8 --max-num-seqs 256 --kv-cache-dtype fp8\n",
    "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: vllm/vllm-openai:v0.6\n    args: [\"--model\", \"x\"]\n    \
     resources: { limits: { nvidia.com/gpu: 8 } }\n",
];
const KEYS: &[&str] =
    &["jj\u{1b}[A\u{1b}[1;5C\u{1b}[<0;12;7M\u{1b}[<65;1;1Mé界\u{1b}[200~pasted\u{1b}[201~q\u{1b}OP\u{1b}[24~\u{3}\r\t"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn lines(seeds: &[&str]) -> Vec<Vec<u8>> {
    seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}

/// The files of these paths, each cut to so many bytes.
fn files(paths: &[&str], most: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for path in paths {
        let path = root().join(path);
        let list = if path.is_dir() {
            let mut list: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
            list.sort();
            list
        } else {
            vec![path]
        };
        found.extend(list.iter().filter(|path| path.is_file()).map(|path| {
            let mut bytes = std::fs::read(path).unwrap();
            bytes.truncate(most);
            bytes
        }));
    }
    found
}

fn documents() -> Vec<Vec<u8>> {
    let mut seeds = files(&["demo", "themes", "examples"], 8000);
    seeds.extend(lines(&[
        "base: &b {x: 1, y: [2]}\nother:\n  <<: *b\n  y: 3\nlist: [*b, 'q', \"r\"]\ntext: |\n  a\n  b\n",
    ]));
    seeds
}

/// The logs among the test data, unpacked, their beginnings.
fn logs() -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut tools: Vec<_> =
        std::fs::read_dir(root().join("tests/data/logs")).unwrap().map(|e| e.unwrap().path()).collect();
    tools.sort();
    for tool in tools.iter().filter(|tool| tool.is_dir()) {
        let mut samples: Vec<_> = std::fs::read_dir(tool).unwrap().map(|entry| entry.unwrap().path()).collect();
        samples.sort();
        for sample in samples.iter().take(2) {
            let mut text = Vec::new();
            let packed = flate2::read::GzDecoder::new(std::fs::File::open(sample).unwrap());
            packed.take(12_000).read_to_end(&mut text).unwrap();
            found.push(text);
        }
    }
    found
}

fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| Library::load(&Sources::built_in(), None))
}

/// Complaints are about places that the text has.
fn within(text: &str, problems: &Diagnostics) -> Result<(), String> {
    // A carriage return alone ends a line of YAML, too.
    let lines = text.replace("\r\n", "\n").replace('\r', "\n").lines().count() as u32 + 1;
    match problems.iter().find(|problem| problem.at.line > lines) {
        Some(problem) => Err(format!("of {lines} lines: {problem}")),
        None => Ok(()),
    }
}

fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

/// Parses, and hands the tree on.
fn tree(
    input: &[u8],
    then: impl FnOnce(&Arc<str>, &Node, &mut Diagnostics) -> Result<(), String>,
) -> Result<(), String> {
    let (text, file, mut problems) = (text(input), Arc::from("f.yaml"), Diagnostics::new());
    if let Some(node) = parse::parse(&file, &text, &mut problems) {
        then(&file, &node, &mut problems)?;
    } else if !problems.has_errors() {
        return Err("it is refused without a word".to_owned());
    }
    within(&text, &problems)
}

fn entries(node: &Node) -> &[Node] {
    node.items().unwrap_or(std::slice::from_ref(node))
}

fn yaml(input: &[u8]) -> Result<(), String> {
    tree(input, |_, node, _| {
        let json = serde_json::to_string(node).map_err(|error| error.to_string())?;
        if json.len() > 64 << 20 { Err(format!("{} bytes become {}", input.len(), json.len())) } else { Ok(()) }
    })
}

/// Figures of an estimate are numbers, and none is negative.
fn sound(parts: &Parts) -> Result<(), String> {
    let scenario = Scenario::from_files(parts);
    if scenario.check(parts).is_err() {
        return Ok(());
    }
    let estimate = engine::estimate(&scenario);
    estimate.finite().map_err(|problem| problem.to_string())?;
    let total = &estimate.total;
    for (name, figure) in [
        ("tokens_per_sec", total.tokens_per_sec),
        ("step_time_ms", total.step_time_ms),
        ("peak_mem_gb", total.peak_mem_gb),
        ("flop_utilization", total.flop_utilization),
        ("usd_per_1k_tokens", estimate.cost.usd_per_1k_tokens),
    ] {
        if figure < 0.0 {
            return Err(format!("{name} is {figure}"));
        }
    }
    Ok(())
}

fn targets(input: &[u8]) -> Result<(), String> {
    tree(input, |file, node, problems| {
        for entry in entries(node).iter().take(4) {
            let Some(target) = atlas_config::Target::decode(file, entry, problems) else { continue };
            let target = Arc::new(target);
            for workload in ["llama3.1-8b-serve", "llama3.1-8b-train", "gpt5_1t_inference"] {
                if let Ok(workload) = library().workload(workload)
                    && let Ok(parts) = Parts::of(library(), &target, workload)
                {
                    sound(&parts)?;
                }
            }
        }
        Ok(())
    })
}

fn workloads(input: &[u8]) -> Result<(), String> {
    tree(input, |file, node, problems| {
        for entry in entries(node).iter().take(4) {
            let Some(workload) = Workload::decode(file, entry, problems) else { continue };
            let workload = Arc::new(workload);
            for target in ["h100-sxm-8", "mi300x-8"] {
                if let Ok(target) = library().target(target)
                    && let Ok(parts) = Parts::of(library(), target, &workload)
                {
                    sound(&parts)?;
                }
            }
        }
        Ok(())
    })
}

fn profile(input: &[u8]) -> Result<(), String> {
    tree(input, |file, node, problems| {
        let Some(profile) = Profile::decode(file, "f", node, problems).map(Arc::new) else { return Ok(()) };
        let (target, workload) = (library().target("h100-sxm-8"), library().workload("gpt5_1t_inference"));
        match (target, workload) {
            (Ok(target), Ok(workload)) => sound(&Parts::calibrated(target, workload, &profile)),
            _ => Err("the shipped entries are gone".to_owned()),
        }
    })
}

fn catalog(input: &[u8]) -> Result<(), String> {
    tree(input, |file, node, problems| {
        for part in [Part::Accelerators, Part::Models, Part::Prices] {
            part.check(file, node, problems);
        }
        Ok(())
    })
}

fn experiment(input: &[u8]) -> Result<(), String> {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    let catalog = CATALOG.get_or_init(Catalog::built_in);
    tree(input, |file, node, problems| {
        let _ = atlas_legacy::exchange::read(file, node, catalog, &|_| None, problems);
        Ok(())
    })
}

fn simulator(input: &[u8]) -> Result<(), String> {
    let (text, mut problems) = (text(input), Diagnostics::new());
    if Config::read(&"f.yaml".into(), &text, library(), &mut problems).is_none() && !problems.has_errors() {
        return Err("it is refused without a word".to_owned());
    }
    within(&text, &problems)
}

fn json(input: &[u8]) -> Result<(), String> {
    let Ok(node) = serde_json::from_slice::<Node>(input) else { return Ok(()) };
    let text = serde_json::to_vec(&node).map_err(|error| error.to_string())?;
    let again: Node = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    if serde_json::to_vec(&again).ok() == Some(text) { Ok(()) } else { Err("it is not read back".to_owned()) }
}

fn session(input: &[u8]) -> Result<(), String> {
    let Ok(document) = Document::parse(&text(input)) else { return Ok(()) };
    match Document::parse(&document.text()) {
        Ok(again) if again == document => Ok(()),
        _ => Err("it is not read back".to_owned()),
    }
}

fn tour(input: &[u8]) -> Result<(), String> {
    let (text, mut problems) = (text(input), Diagnostics::new());
    let _ = Demo::read(&"f.yaml".into(), &text.clone().into(), &mut problems);
    within(&text, &problems)
}

fn theme(input: &[u8]) -> Result<(), String> {
    let (text, mut problems) = (text(input), Diagnostics::new());
    let _ = Theme::read(&"f.yaml".into(), &text.clone().into(), ColorDepth::TrueColor, &[], &mut problems);
    within(&text, &problems)
}

fn sweep(input: &[u8]) -> Result<(), String> {
    let _ = atlas_report::study::sweep::read(input, "f.csv", None);
    Ok(())
}

fn log(input: &[u8]) -> Result<(), String> {
    let context = Context { name: "f.log".to_owned(), seed: 1, ..Context::default() };
    let Ok(found) = atlas_ingest::ingest(input, &context) else { return Ok(()) };
    for reading in &found.readings {
        for (name, value) in reading.facts.iter() {
            if name.contains("per_sec") && value.as_f64().is_some_and(|value| value < 0.0) {
                return Err(format!("{name} is {value}"));
            }
        }
    }
    Ok(())
}

fn traces(input: &[u8]) -> Result<(), String> {
    let text = text(input);
    for requests in [trace::azure(&text), trace::mooncake(&text), trace::benchmark(&text)].into_iter().flatten() {
        let bad = requests.iter().find(|request| !(request.seconds.is_finite() && request.seconds >= 0.0));
        if let Some(request) = bad {
            return Err(format!("{request:?}"));
        }
    }
    Ok(())
}

fn launch(input: &[u8]) -> Result<(), String> {
    let file = SourceFile { name: "run.sh".to_owned(), text: text(input) };
    let _ = import(&[file], &BTreeMap::new()).to_json();
    Ok(())
}

fn detect(input: &[u8]) -> Result<(), String> {
    let text = text(input);
    let _ =
        (detected::nvidia_smi::query(&text), detected::nvidia_smi::list(&text), detected::nvidia_smi::nvlink(&text));
    let _ = (detected::amd_smi::devices(&text), detected::rocm_smi::devices(&text), detected::hl_smi::devices(&text));
    let _ = (detected::apple::chip(&text), detected::apple::sysctl(&text), detected::ibstat::ports(&text));
    let _ = (detected::kubernetes::nodes(&text), detected::neuron_ls::devices(&text, None));
    let _ = (detected::nvidia_topo::parse(&text), detected::rocm_smi::xgmi_domain(&text));
    let _ = (
        detected::slurm_gres::parse(&text),
        detected::slurm_gres::parse_tres(&text),
        detected::slurm_json::rows(&text),
    );
    let _ = (detected::slurm_scontrol::nodes(&text), detected::slurm_scontrol::partitions(&text));
    let _ = detected::slurm_sinfo::parse(&text);
    let hosts = detected::hostlist::expand(&text, 1000);
    if hosts.len() > 1000 { Err(format!("{} hosts, at most 1000 were asked for", hosts.len())) } else { Ok(()) }
}

fn keys(input: &[u8]) -> Result<(), String> {
    let mut keys = Input::default();
    let mut events = 0;
    for piece in input.chunks(7) {
        keys.feed(piece);
        events += std::iter::from_fn(|| keys.pop()).count();
    }
    keys.give_up();
    events += std::iter::from_fn(|| keys.pop()).count();
    match (events > input.len() + 1, keys.patience()) {
        (true, _) => Err(format!("{} bytes are {events} events", input.len())),
        (false, Some(_)) => Err("it still waits for the rest of something".to_owned()),
        (false, None) => Ok(()),
    }
}
