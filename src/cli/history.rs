//! `atlas history`.

pub(crate) mod compared;

use std::path::PathBuf;

use self::compared::{changes, diff, trend};
use atlas_cluster::history::{Entry, EntryKind, Filter, Store, chain, moment, value_text};
use atlas_core::sort;
use atlas_core::units;
use atlas_report::table::{Table, left};
use atlas_report::{Format, csv, serialized, to_json};
use color_eyre::eyre::eyre;
use jiff::Timestamp;
use serde_json::Value;

use super::args::Globals;
use super::failure::Failure;
use super::output::{self, write_stderr};
use super::{history_import, save};

/// Browse past predictions, runs and measurements, and what changed between them.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas history                                       list the newest entries
  atlas history --target h100 --kind run --since 7d
  atlas history show last
  atlas history diff 3fa9c1d2 81b0c2aa                compare two entries
  atlas history trend tokens_per_sec --workload llama3.1-70b-serve
  atlas history changes step_time_ms                  show what changed since it was faster
  atlas history export --out history.csv
  atlas history import out                            import records of `atlas run`

Every run, sweep, simulation, calibration, measurement and watched job is saved with its inputs, one file each, under \
$ATLAS_STATE_DIR/history ($XDG_STATE_HOME/atlas-fabric/history). Refer to an entry by the last eight characters of its \
id, or as last, last~1, …. Secrets are masked. Set ATLAS_HISTORY=off to disable the history.")]
pub struct Args {
    /// What to show [default: list]
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Which entries.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t, global = true)]
    pub format: Format,
}

/// What to show.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List entries, newest first
    List,
    /// Show one entry
    Show {
        /// Entry
        #[arg(value_name = "ID", default_value = "last")]
        id: String,
    },
    /// Show what differs between two entries
    Diff {
        /// First entry
        #[arg(value_name = "A")]
        first: String,
        /// Second entry
        #[arg(value_name = "B")]
        second: String,
    },
    /// Show a metric over time and by software release
    Trend {
        /// Metric, as listed by `show`
        #[arg(value_name = "METRIC")]
        figure: String,
    },
    /// Show what changed since a metric was better
    Changes {
        /// Metric, as listed by `show`
        #[arg(value_name = "METRIC")]
        figure: String,
        /// Smallest regression to show, as a fraction
        #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
        tolerance: f64,
    },
    /// Export entries as .json, .jsonl or .csv
    Export {
        /// Output file [default: JSON Lines on stdout]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Import records written by `atlas run`, including those of version 0.1
    Import {
        /// Records, or directories of records
        #[arg(value_name = "PATH", required = true)]
        paths: Vec<PathBuf>,
    },
}

/// Which entries.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct FilterArgs {
    /// Targets whose name contains this text
    // The identifiers differ from those of the root command, which clap would also set from a global argument.
    #[arg(id = "entry_target", long = "target", value_name = "NAME", global = true, help_heading = "Entries")]
    pub target: Option<String>,
    /// Workloads whose name contains this text
    #[arg(id = "entry_workload", long = "workload", value_name = "NAME", global = true, help_heading = "Entries")]
    pub workload: Option<String>,
    /// Software whose name or release contains this text
    #[arg(long, value_name = "NAME", global = true, help_heading = "Entries")]
    pub software: Option<String>,
    /// Kind: prediction, optimum, sweep, simulation, measurement, run, submission or calibration; repeatable
    #[arg(long, value_name = "KIND", global = true, value_parser = kind, help_heading = "Entries")]
    pub kind: Vec<EntryKind>,
    /// Entries since this date, or this long ago: 2026-11-22, 7d, 12h, 30m
    #[arg(long, value_name = "WHEN", global = true, value_parser = moment, help_heading = "Entries")]
    pub since: Option<Timestamp>,
    /// Entries before this date, or older than this
    #[arg(long, value_name = "WHEN", global = true, value_parser = moment, help_heading = "Entries")]
    pub until: Option<Timestamp>,
    /// Maximum number of entries, newest first [default: 20 in lists, else all]
    #[arg(long, value_name = "N", global = true, help_heading = "Entries")]
    pub limit: Option<usize>,
}

fn kind(text: &str) -> Result<EntryKind, String> {
    let names = EntryKind::ALL.map(EntryKind::name).join(", ");
    EntryKind::named(text).ok_or_else(|| format!("expected one of {names}"))
}

/// Default number of entries in a list.
const LISTED: usize = 20;

/// Runs the subcommand.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    super::recover::recover();
    let Some(store) = Store::of_user() else {
        return Err(eyre!(
            "no history: ATLAS_HISTORY is off, or there is no home directory; set ATLAS_STATE_DIR to choose a directory"
        ));
    };
    let filter = Filter {
        target: args.filter.target,
        workload: args.filter.workload,
        software: args.filter.software,
        kinds: args.filter.kind,
        since: args.filter.since,
        until: args.filter.until,
        limit: args.filter.limit,
    };
    let text = match args.command.unwrap_or(Command::List) {
        Command::List => {
            let limit = filter.limit.or((args.format == Format::Table).then_some(LISTED));
            list(&entries(&store, &Filter { limit, ..filter })?, args.format)?
        }
        Command::Show { id } => {
            let (entry, (all, _)) = (store.find(&id)?, store.list(&Filter::default())?);
            show(&entry, &chain(&all, &entry), args.format)?
        }
        Command::Diff { first, second } => {
            let (first, second, (all, _)) =
                (store.find(&first)?, store.find(&second)?, store.list(&Filter::default())?);
            diff(&first, &second, &chain(&all, &first), args.format)?
        }
        Command::Trend { figure } => trend(&entries(&store, &filter)?, &figure, args.format)?,
        Command::Changes { figure, tolerance } => changes(&entries(&store, &filter)?, &figure, tolerance, args.format)?,
        Command::Export { out } => return export(&entries(&store, &filter)?, out.as_deref()),
        Command::Import { paths } => return history_import::run(&store, &paths),
    };
    let text = if args.format == Format::Table { globals.charset().write(&text).into_owned() } else { text };
    Ok(output::print(&text)?)
}

/// Entries that match the filter; unreadable files are reported on stderr.
fn entries(store: &Store, filter: &Filter) -> color_eyre::Result<Vec<Entry>> {
    let (entries, problems) = store.list(filter)?;
    for problem in &problems {
        write_stderr(&format!("warning: skipped: {problem}"));
    }
    if entries.is_empty() {
        write_stderr(&format!("no matching entries in {}", store.directory().display()));
    }
    Ok(entries)
}

fn text(text: &Option<String>) -> String {
    text.clone().unwrap_or_else(|| "-".to_owned())
}

/// Formats the value of a metric. Names of times include their unit, so these values get no SI prefix.
fn number(name: &str, value: f64) -> String {
    if name.ends_with("_ms") || name.ends_with("_s") && !name.ends_with("_per_s") {
        units::significant(value, 4)
    } else {
        units::si(value)
    }
}

fn list(entries: &[Entry], format: Format) -> color_eyre::Result<String> {
    match format {
        Format::Table => {
            let names = ["entry", "when (UTC)", "kind", "target", "workload", "software", "figure"];
            let mut table = Table::new(names.map(left));
            for entry in entries {
                let figure = entry
                    .headline()
                    .map_or_else(String::new, |(name, value)| format!("{name} {}", number(name, value)));
                table.row([
                    entry.handle().to_owned(),
                    entry.minute(),
                    entry.kind.name().to_owned(),
                    text(&entry.target),
                    text(&entry.workload),
                    text(&entry.software),
                    figure,
                ]);
            }
            Ok(table.render())
        }
        Format::Csv => Ok(csv_of(entries)),
        format => Ok(serialized(&entries, format == Format::Yaml)?),
    }
}

/// CSV with a line per entry: subject, then all metrics and inputs that occur in any of them.
fn csv_of(entries: &[Entry]) -> String {
    let names = |get: fn(&Entry) -> Vec<&String>| -> Vec<&String> {
        sort::collect_unsorted::<std::collections::BTreeSet<_>, _>(entries.iter().flat_map(get)).into_iter().collect()
    };
    let figures = names(|entry| entry.figures.keys().collect());
    let inputs = names(|entry| entry.inputs.keys().collect());
    let fixed = ["id", "at", "kind", "target", "workload", "software", "engine", "version"];
    let input_names: Vec<String> = inputs.iter().map(|name| format!("input.{name}")).collect();
    let head = fixed.into_iter().chain(figures.iter().map(|name| name.as_str()));
    let mut out = csv::line(head.chain(input_names.iter().map(String::as_str)));
    for entry in entries {
        let word = |text: &Option<String>| text.clone().unwrap_or_default();
        let mut cells = vec![
            entry.id.clone(),
            entry.at.to_string(),
            entry.kind.name().to_owned(),
            word(&entry.target),
            word(&entry.workload),
            word(&entry.software),
            word(&entry.engine),
            entry.origin.version.clone(),
        ];
        cells.extend(figures.iter().map(|name| csv::optional(entry.figures.get(*name))));
        cells.extend(inputs.iter().map(|name| entry.inputs.get(*name).map_or_else(String::new, value_text)));
        out += &csv::line(&cells);
    }
    out
}

/// Adds the entries of a chain, one per row.
fn chain_rows(table: &mut Table, links: &[&Entry]) {
    for link in links {
        let figure =
            link.headline().map_or_else(String::new, |(name, value)| format!("  {name} {}", number(name, value)));
        table.row([link.handle().to_owned(), format!("{}  {}{figure}", link.minute(), link.kind.name())]);
    }
}

fn show(entry: &Entry, links: &[&Entry], format: Format) -> color_eyre::Result<String> {
    match format {
        Format::Table => {
            let mut table = Table::new([left(""), left("")]);
            let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
            row("id", entry.id.clone());
            row("at", entry.at.to_string());
            for (name, value) in [
                ("target", &entry.target),
                ("workload", &entry.workload),
                ("software", &entry.software),
                ("engine", &entry.engine),
                ("host", &entry.origin.host),
                ("directory", &entry.origin.directory),
            ] {
                value.iter().for_each(|value| row(name, value.clone()));
            }
            row("version of atlas", entry.origin.version.clone());
            row("command", entry.origin.command.join(" "));
            entry.sources.iter().for_each(|source| row("from", source.clone()));
            if links.len() > 1 {
                table.section("\nchain");
                chain_rows(&mut table, links);
            }
            table.section("\nfigures");
            for (name, value) in &entry.figures {
                table.row([name.clone(), value.to_string()]);
            }
            table.section("\ninputs");
            for (name, value) in &entry.inputs {
                table.row([name.clone(), value_text(value)]);
            }
            Ok(table.render())
        }
        Format::Csv => Ok(csv_of(std::slice::from_ref(entry))),
        format => {
            let mut document = serde_json::to_value(entry)?;
            if let Some(map) = document.as_object_mut().filter(|_| links.len() > 1) {
                map.insert("chain".to_owned(), links.iter().map(|link| Value::from(link.id.as_str())).collect());
            }
            Ok(serialized(&document, format == Format::Yaml)?)
        }
    }
}

fn export(entries: &[Entry], out: Option<&std::path::Path>) -> color_eyre::Result<()> {
    let lines = || -> serde_json::Result<String> {
        entries.iter().map(|entry| serde_json::to_string(entry).map(|line| line + "\n")).collect()
    };
    let Some(path) = out else { return Ok(output::print(&lines()?)?) };
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let text = match ending.as_str() {
        "csv" => csv_of(entries),
        "jsonl" | "ndjson" => lines()?,
        "json" => to_json(&entries)?,
        _ => {
            let problem = format!("--out: found \".{ending}\", expected .json, .jsonl or .csv");
            return Err(Failure::usage([problem]).into());
        }
    };
    save::write_new(path, &text, save::OTHER_NAME)?;
    write_stderr(&format!("wrote {} entries to {}", entries.len(), path.display()));
    Ok(())
}
