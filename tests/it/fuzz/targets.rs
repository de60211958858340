//! Fuzz targets, with their seeds and invariants.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use atlas_assistant::endpoint::{self, Protocol};
use atlas_assistant::{Known, grammar, offline};
use atlas_catalog::{Catalog, Part, hugging_face};
use atlas_cluster::history::Entry;
use atlas_cluster::import::{SourceFile, import};
use atlas_config::library::Library;
use atlas_config::{Profile, Workload};
use atlas_detect::read as detected;
use atlas_document::{Diagnostics, Node, Sources, parse};
use atlas_evidence::validate;
use atlas_fabric::demo::script::Demo;
use atlas_fabric::theme::Theme;
use atlas_fabric::theme::color::ColorDepth;
use atlas_fabric::tui::input::decoder::Input;
use atlas_fabric::tui::session::Document;
use atlas_ingest::reading::Context;
use atlas_ingest::{Follow, job_trace as jobs};
use atlas_plan::engine;
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::Gauge;
use atlas_plan::simulation::config::Config;
use atlas_plan::simulation::trace;

use super::seeds::{
    ANSWERS, ENTRIES, JOB_TRACES, KEYS, MEASUREMENTS, MODELS, QUESTIONS, RECORDS, SCRIPTS, SESSIONS, SETTINGS,
    SIMULATOR, STREAMS, SWEEPS, TEXTS, TRACES, documents, files, lines, logs,
};
use super::settings;

#[derive(Clone, Copy)]
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
    Target { name: "follow", run: follow, seeds: logs },
    Target { name: "job_trace", run: job_trace, seeds: || lines(JOB_TRACES) },
    Target { name: "stream", run: stream, seeds: || lines(STREAMS) },
    Target { name: "question", run: question, seeds: || lines(QUESTIONS) },
    Target { name: "history", run: history, seeds: || lines(ENTRIES) },
    Target { name: "model", run: model, seeds: || lines(MODELS) },
    Target { name: "measurements", run: measurements, seeds: || lines(MEASUREMENTS) },
    Target { name: "escape", run: settings::escapes, seeds: || lines(TEXTS) },
    Target { name: "setting", run: settings::setting, seeds: || lines(SETTINGS) },
    Target { name: "answer", run: settings::answer, seeds: || lines(ANSWERS) },
];

pub(super) fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| Library::load(&Sources::built_in(), None))
}

/// Checks that the positions of diagnostics are within the text.
fn within(text: &str, problems: &Diagnostics) -> Result<(), String> {
    // A carriage return alone also ends a line in YAML.
    let lines = text.replace("\r\n", "\n").replace('\r', "\n").lines().count() as u32 + 1;
    match problems.iter().find(|problem| problem.at.line > lines) {
        Some(problem) => Err(format!("of {lines} lines: {problem}")),
        None => Ok(()),
    }
}

pub(super) fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

/// Parses the input and passes on the tree.
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

fn sound(parts: &Parts) -> Result<(), String> {
    let scenario = Scenario::from_files(parts);
    if scenario.check(parts).is_err() { Ok(()) } else { figures(&scenario) }
}

/// Checks that the metrics of an estimate are finite and not negative.
pub(super) fn figures(scenario: &Scenario) -> Result<(), String> {
    let estimate = engine::estimate(scenario);
    estimate.finite().map_err(|problem| problem.to_string())?;
    let total = &estimate.total;
    for (name, figure) in [
        ("tokens_per_sec", Some(total.tokens_per_sec)),
        ("step_time_ms", total.step_time_ms),
        ("peak_mem_gb", Some(total.peak_mem_gb)),
        ("flop_utilization", Some(total.flop_utilization)),
        ("usd_per_1k_tokens", Some(estimate.cost.usd_per_1k_tokens)),
    ] {
        if let Some(figure) = figure.filter(|figure| *figure < 0.0) {
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
    let _ = atlas_report::sweep::read(input, "f.csv", None);
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
    // The reader is selected by the file extension.
    for name in ["run.sh", "run.py", "run.yaml", "run.json", "run.toml"] {
        let file = SourceFile { name: name.to_owned(), text: text(input) };
        let _ = import(&[file], &BTreeMap::new()).to_json();
    }
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
    keys.end_incomplete();
    events += std::iter::from_fn(|| keys.pop()).count();
    match (events > input.len() + 1, keys.timeout()) {
        (true, _) => Err(format!("{} bytes are {events} events", input.len())),
        (false, Some(_)) => Err("it still waits for the rest of something".to_owned()),
        (false, None) => Ok(()),
    }
}

/// Following a log in arbitrary pieces gives the same result as reading it as a whole.
fn follow(input: &[u8]) -> Result<(), String> {
    let context = Context { name: "f.log".to_owned(), seed: 1, ..Context::default() };
    let (mut follow, mut seen) = (Follow::new(&context), 0_usize);
    let size = 1 + input.first().map_or(0, |byte| usize::from(*byte)) * 7;
    for piece in input.chunks(size) {
        follow.feed(piece, |_| seen += 1);
    }
    if follow.bytes() != input.len() as u64 {
        return Err(format!("of {} bytes it read {}", input.len(), follow.bytes()));
    }
    let mut whole = 0;
    let mut at_once = Follow::new(&context);
    at_once.feed(input, |_| whole += 1);
    let (pieces, one) = (follow.finish(|_| seen += 1), at_once.finish(|_| whole += 1));
    match (pieces.readings.len() == one.readings.len(), seen == whole) {
        (true, true) => Ok(()),
        _ => Err(format!(
            "in pieces of {size}: {} readings and {seen} observations, at once {} and {whole}",
            pieces.readings.len(),
            one.readings.len()
        )),
    }
}

fn job_trace(input: &[u8]) -> Result<(), String> {
    let Ok(trace) = jobs::read(&text(input)) else { return Ok(()) };
    let sound = |seconds: f64| seconds.is_finite();
    match trace.jobs.iter().find(|job| !sound(job.submitted) || !sound(job.seconds) || job.seconds < 0.0) {
        Some(job) => Err(format!("{job:?}")),
        None => Ok(()),
    }
}

fn stream(input: &[u8]) -> Result<(), String> {
    for protocol in [Protocol::OpenAi, Protocol::Gemini] {
        for stream in [true, false] {
            if let Ok((_, calls)) = endpoint::replay(protocol, stream, input)
                && calls.iter().any(|call| call.name.is_empty())
            {
                return Err("a call has no name".to_owned());
            }
        }
    }
    let Ok(conversation) = endpoint::Conversation::read(&text(input)) else { return Ok(()) };
    conversation.json().map(|_| ()).map_err(|error| error.to_string())
}

fn question(input: &[u8]) -> Result<(), String> {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    let known = KNOWN.get_or_init(|| Known::of(library()));
    let line = text(input);
    let _ = grammar::parse(&line, known);
    let context = offline::Context {
        library: library(),
        target: "h100-sxm-8".into(),
        workload: "llama3.1-8b-serve".into(),
        overrides: BTreeMap::new(),
        flags: Vec::new(),
    };
    // Searches are canceled immediately: only the parsing is tested here.
    let gauge = Gauge::new();
    gauge.cancel();
    if let Ok(reply) = offline::answer(&line, &context, &gauge) {
        let _ = reply.text(80);
    }
    Ok(())
}

fn history(input: &[u8]) -> Result<(), String> {
    let Ok(entry) = serde_json::from_slice::<Entry>(input) else { return Ok(()) };
    let text = serde_json::to_vec(&entry).map_err(|error| error.to_string())?;
    match serde_json::from_slice::<Entry>(&text) {
        Ok(again) if again == entry => Ok(()),
        Ok(_) => Err("it is read back as something else".to_owned()),
        Err(error) => Err(format!("it is not read back: {error}")),
    }
}

fn model(input: &[u8]) -> Result<(), String> {
    let (text, mut problems) = (text(input), Diagnostics::new());
    if hugging_face::decode(&"config.json".into(), "f", &text, &mut problems).is_none() && !problems.has_errors() {
        return Err("it is refused without a word".to_owned());
    }
    within(&text, &problems)
}

fn measurements(input: &[u8]) -> Result<(), String> {
    let text = text(input);
    let (_, _) = (validate::MeasurementKind::of(&text), validate::bad_cells(&text));
    let Ok(rows) = validate::table::read(&text) else { return Ok(()) };
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    let catalog = CATALOG.get_or_init(Catalog::built_in);
    for row in rows.iter().take(4) {
        for kind in validate::MeasurementKind::ALL {
            let Ok(case) = validate::case::RowScenario::of(row, kind, catalog) else { continue };
            for measured in validate::case::measured(row, kind, &case).into_iter().flatten() {
                if !(measured.value.is_finite() && measured.value > 0.0) {
                    return Err(format!("it takes {} as measured", measured.value));
                }
            }
        }
    }
    Ok(())
}
