//! `atlas scenario`: imports and exports scenarios of the predecessor dashboard, and compares them with the analytical
//! engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use color_eyre::eyre::eyre;
use serde_json::{Value, json};

use super::args::{Globals, KnobArgs};
use super::failure::Failure;
use super::output::{self, write_stderr};
use super::pick;
use super::save;
use atlas_catalog::Catalog;
use atlas_config::library::Library;
use atlas_config::{Target, Workload};
use atlas_core::plan::Engine;
use atlas_document::sources::read_text;
use atlas_document::suggestion::did_you_mean;
use atlas_document::{Diagnostics, Node, Severity, parse};
use atlas_legacy::exchange::dashboard;
use atlas_plan::engine::benchboard;
use atlas_plan::engine::benchboard::contrast::contrast;
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_report::dashboard::{Pair, estimate, scenario as exported};
use atlas_report::table::{Align, Table, left};
use atlas_report::{Format, csv, serialized, to_json, to_yaml};

/// Import or export scenarios of the predecessor dashboard.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas scenario list
  atlas scenario import scenarios.json --out workload     write targets.yaml and workloads.yaml
  atlas scenario export --workload llama-7b-training --target nvidia-h100-80gb > scenario.json
  atlas scenario compare                                  compare both engines
  atlas scenario compare llama-7b-training --target nvidia-h100-80gb
  atlas run --target nvidia-h100-80gb --workload llama-7b-training --engine benchboard
  atlas compare --config scenarios.json --engine benchboard

The dashboard's eight hardware profiles and three scenarios are built in. They can be used by name, but are not listed \
among the targets, since their values are the dashboard's.")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do with scenarios.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List built-in scenarios and hardware profiles
    List(ListArgs),
    /// Convert dashboard JSON to targets and workloads
    Import(ImportArgs),
    /// Export a target and a workload as dashboard JSON
    Export(ExportArgs),
    /// Compare the estimates of the dashboard and the analytical engine, and explain the differences
    Compare(CompareArgs),
}

/// `atlas scenario list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `atlas scenario import`.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// Scenarios or hardware profiles (JSON); - is stdin
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Directory for targets.yaml and workloads.yaml [default: print both]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long, requires = "out")]
    pub force: bool,
}

/// `atlas scenario export`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Target; repeatable, or separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    pub target: Vec<String>,
    /// Workload; repeatable, or separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    pub workload: Vec<String>,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Include the dashboard's estimate
    #[arg(long)]
    pub results: bool,
    /// Output file [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `atlas scenario compare`.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// Workloads [default: those of --config, else the dashboard's three]
    #[arg(value_name = "SCENARIO")]
    pub workload: Vec<String>,
    /// Target; repeatable, or separated by commas [default: those of --config, else the dashboard's eight]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub target: Vec<String>,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the subcommand.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    match args.command {
        Command::List(args) => list(&args, globals),
        Command::Import(args) => import(&args, globals),
        Command::Export(args) => export(&args, globals),
        Command::Compare(args) => compare(&args, globals),
    }
}

fn list(args: &ListArgs, globals: &Globals) -> color_eyre::Result<()> {
    let library = Library::default();
    let (targets, workloads) = library.dashboard_entries();
    let rows = workloads
        .iter()
        .map(|workload| ["scenario", &workload.name, workload.description.as_deref().unwrap_or_default()])
        .chain(
            targets.iter().map(|target| ["hardware", &target.name, target.description.as_deref().unwrap_or_default()]),
        );
    let rows: Vec<[&str; 3]> = rows.collect();
    let text = match args.format {
        Format::Table => {
            let mut table = Table::new(["", "name", "description"].map(left));
            rows.iter().for_each(|row| table.row(row.map(str::to_owned)));
            globals.charset().write(&table.render()).into_owned()
        }
        Format::Csv => {
            csv::line(["kind", "name", "description"]) + &rows.iter().map(|row| csv::line(*row)).collect::<String>()
        }
        format => {
            let of = |kind: &str| -> Vec<Value> {
                let own = rows.iter().filter(|[known, ..]| *known == kind);
                own.map(|[_, name, description]| json!({"name": name, "description": description})).collect()
            };
            serialized(&json!({"scenarios": of("scenario"), "hardware": of("hardware")}), format == Format::Yaml)?
        }
    };
    Ok(output::print(&text)?)
}

/// Reads a file or stdin.
fn read(path: &Path) -> Result<String, String> {
    if path != Path::new("-") {
        return read_text(path);
    }
    use std::io::Read as _;
    let mut text = String::new();
    let limit = parse::MAX_FILE_BYTES + 1;
    std::io::stdin().take(limit).read_to_string(&mut text).map_err(|error| format!("cannot be read: {error}"))?;
    Ok(text)
}

fn import(args: &ImportArgs, globals: &Globals) -> color_eyre::Result<()> {
    let catalog = Catalog::load(&globals.sources(), None);
    let mut problems = Diagnostics::new();
    let (mut targets, mut workloads): (Vec<Node>, Vec<Node>) = (Vec::new(), Vec::new());
    for path in &args.files {
        let file: Arc<str> = path.display().to_string().into();
        let text = read(path).map_err(|problem| eyre!("{file}: {problem}"))?;
        let Some(root) = parse::parse(&file, &text, &mut problems) else { continue };
        if !dashboard::is_document(&root) {
            return Err(eyre!(
                "{file}: not a dashboard scenario: expected model, parallelism and workload, or hardware \
                 with fp16Tflops and vramSizeGB"
            ));
        }
        let nothing = |_: &str| None;
        if let Some(found) = atlas_legacy::exchange::read(&file, &root, &catalog, &nothing, &mut problems) {
            targets.extend(found.targets);
            workloads.extend(found.workloads);
        }
    }
    // The result is decoded like any other file, so that errors are reported.
    let file: Arc<str> = "imported".into();
    for target in &targets {
        Target::decode(&file, target, &mut problems);
    }
    for workload in &workloads {
        Workload::decode(&file, workload, &mut problems);
    }
    report_duplicates(&targets, &file, &mut problems);
    report_duplicates(&workloads, &file, &mut problems);
    problems.iter().filter(|problem| problem.severity == Severity::Warning).for_each(|problem| {
        write_stderr(&problem.to_string());
    });
    if problems.has_errors() {
        let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).cloned();
        let mut only = Diagnostics::new();
        errors.for_each(|problem| only.push(problem));
        return Err(Failure::from(only).into());
    }
    let Some(out) = &args.out else {
        return Ok(output::print(&to_yaml(&json!({"targets": targets, "workloads": workloads}))?)?);
    };
    let files = [("targets.yaml", targets), ("workloads.yaml", workloads)];
    let files = files.into_iter().filter(|(_, entries)| !entries.is_empty());
    let files: Vec<(PathBuf, Vec<Node>)> = files.map(|(name, entries)| (out.join(name), entries)).collect();
    if !args.force {
        save::refuse_existing(files.iter().map(|(path, _)| path.as_path()), save::FORCE_OR_OTHER_DIRECTORY)?;
    }
    for (path, entries) in files {
        save::write(&path, to_yaml(&entries)?)?;
        write_stderr(&format!("wrote {}: {} entries", path.display(), entries.len()));
    }
    Ok(())
}

/// Reports duplicate names.
fn report_duplicates(entries: &[Node], file: &Arc<str>, problems: &mut Diagnostics) {
    let name = |node: &Node| node.get("name").and_then(Node::text).unwrap_or_default().to_owned();
    for (index, entry) in entries.iter().enumerate() {
        if entries.iter().take(index).any(|earlier| name(earlier) == name(entry)) {
            problems.push(atlas_document::Diagnostic {
                severity: Severity::Error,
                file: Arc::clone(file),
                at: entry.at,
                path: name(entry),
                message: "duplicate name".to_owned(),
                help: Some("use a unique id for each".to_owned()),
            });
        }
    }
}

/// All pairs of a target and a workload, resolved for the dashboard's engine.
fn pairs(
    library: &Library,
    targets: &[String],
    workloads: &[String],
    knobs: &KnobArgs,
) -> Result<Vec<(Parts, Scenario)>, color_eyre::Report> {
    let mut out = Vec::new();
    for workload in workloads {
        for target in targets {
            let parts = pick::pick(library, target, workload)?;
            let mut overrides: Overrides = knobs.overrides(parts.fabrics())?;
            overrides.insert(Knob::Engine, Setting::Choice(Engine::Benchboard.name().into()));
            out.push((parts.clone(), Scenario::resolve(&parts, &overrides)?));
        }
    }
    Ok(out)
}

fn export(args: &ExportArgs, globals: &Globals) -> color_eyre::Result<()> {
    args.knobs.check()?;
    let library = pick::library(globals);
    let pairs = pairs(&library, &args.target, &args.workload, &args.knobs)?;
    let mut all: Vec<Value> = pairs
        .iter()
        .map(|(parts, scenario)| {
            let mut value = exported(scenario, parts);
            // With knobs set, the export differs from the original entries, so they are not stored.
            if args.knobs.is_empty() {
                keep_entry(&mut value, &parts.workload.document);
                if let Some(hardware) = value.get_mut("hardware") {
                    keep_entry(hardware, &parts.target.document);
                }
            }
            if let Some(map) = value.as_object_mut().filter(|_| args.results) {
                map.insert("result".to_owned(), estimate(scenario, parts));
            }
            value
        })
        .collect();
    let text = match all.len() {
        1 => to_json(&all.remove(0))?,
        _ => to_json(&document(all))?,
    };
    match &args.out {
        None => output::print(&text)?,
        Some(path) => save::save(path, &text)?,
    }
    Ok(())
}

/// Stores the original entry in the export, so that a later import restores it.
fn keep_entry(exported: &mut Value, entry: &Node) {
    let of = dashboard::fingerprint(exported);
    if let Some(fields) = exported.as_object_mut() {
        fields.insert(dashboard::EXPORT_KEY.to_owned(), json!({"entry": entry, "of": of}));
    }
}

/// Combines several scenarios into one document, without duplicate scenarios or hardware.
fn document(all: Vec<Value>) -> Value {
    let (mut scenarios, mut hardware, mut results): (Vec<Value>, Vec<Value>, Vec<Value>) = Default::default();
    for mut value in all {
        let mut take = |key: &str| value.as_object_mut().and_then(|map| map.remove(key));
        let (profile, result) = (take("hardware"), take("result"));
        results.extend(result);
        for (one, list) in [(profile, &mut hardware), (Some(value), &mut scenarios)] {
            // The same workload on another target needs no second entry.
            let there = |one: &Value| list.iter().any(|known| known.get("id") == one.get("id"));
            if let Some(one) = one.filter(|one| !there(one)) {
                list.push(one);
            }
        }
    }
    let mut out = json!({"scenarios": scenarios, "hardware": hardware});
    if let Some(map) = out.as_object_mut().filter(|_| !results.is_empty()) {
        map.insert("results".to_owned(), json!(results));
    }
    out
}

fn compare(args: &CompareArgs, globals: &Globals) -> color_eyre::Result<()> {
    args.knobs.check()?;
    let library = pick::library(globals);
    let names = |given: &[String], own: Vec<String>| if given.is_empty() { own } else { given.to_vec() };
    let (profiles, scenarios) = match globals.config {
        Some(_) => (library.targets(), library.workloads()),
        None => library.dashboard_entries(),
    };
    let targets = names(&args.target, profiles.iter().map(|target| target.name.to_string()).collect());
    let workloads = names(&args.workload, scenarios.iter().map(|workload| workload.name.to_string()).collect());
    if let Some(wrong) = workloads.iter().find(|name| library.workload(name).is_err()) {
        let known = scenarios.iter().map(|workload| &*workload.name);
        if let Some(suggestion) = did_you_mean(wrong, known) {
            write_stderr(&suggestion);
        }
    }
    let mut described = Vec::new();
    for (parts, mut scenario) in pairs(&library, &targets, &workloads, &args.knobs)? {
        // The dashboard assumes as many devices as requested; the analytical engine uses those of the target.
        let requested = benchboard::input(&scenario, &scenario.base);
        let nodes = (requested.devices() / scenario.accelerators_per_node).ceil();
        if nodes > scenario.num_nodes {
            scenario.set(Knob::NumNodes, &Setting::Number(nodes), &parts)?;
        }
        let both = contrast(&scenario, &parts)?;
        described.push((parts, both));
    }
    let pairs: Vec<Pair<'_>> = described.iter().map(|(parts, contrast)| Pair { parts, contrast }).collect();
    let text = match args.format {
        Format::Table => {
            let text = match pairs.as_slice() {
                [one] => one.table(),
                many => {
                    let mut table = Table::new(Pair::HEAD.iter().enumerate().map(|(index, name)| {
                        (*name, if matches!(index, 0 | 1 | 8) { Align::Left } else { Align::Right })
                    }));
                    many.iter().for_each(|pair| table.row(pair.row(false)));
                    table.render()
                        + "\nrun `atlas scenario compare S --target T` to list all causes for one scenario on one target\n"
                }
            };
            globals.charset().write(&text).into_owned()
        }
        Format::Csv => {
            let rows = pairs.iter().map(|pair| pair.row(true));
            csv::line(Pair::HEAD) + &rows.map(|row| csv::line(&row)).collect::<String>()
        }
        format => {
            let all: Vec<Value> = pairs.iter().map(Pair::document).collect();
            serialized(&json!({"pairs": all}), format == Format::Yaml)?
        }
    };
    Ok(output::print(&text)?)
}
