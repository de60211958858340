//! `atlas report`.

use std::path::PathBuf;

use super::args::Globals;
use super::failure::Failure;
use super::output::{self, complain};
use super::run::writing;
use crate::record::write_atomically;
use crate::report::summary::Summary;
use crate::report::{Format, read};
use crate::spec::Diagnostics;

/// Summarise records.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas report --records out --out out/report.md
  atlas report --format csv > means.csv")]
pub struct Args {
    /// Directory of records, or a file of them; repeatable
    #[arg(long, value_name = "PATH", default_value = "out")]
    pub records: Vec<PathBuf>,
    /// File to write the report to: .md, .csv, .json or .yaml, anything else is Markdown
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// What is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Prints the summary, and writes it where asked.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    let mut problems = Diagnostics::new();
    let mut entries = Vec::new();
    for path in &args.records {
        entries.extend(read::entries(path, &mut problems));
    }
    for problem in &problems {
        complain(&problem.to_string());
    }
    let summary = Summary::of(&entries);
    if summary.rows.is_empty() {
        let places: Vec<String> = args.records.iter().map(|path| path.display().to_string()).collect();
        return Err(color_eyre::eyre::eyre!("no records in {}; `atlas run` writes some", places.join(", ")));
    }
    let text = summary.write(args.format)?;
    match args.format {
        Format::Table => output::print(&globals.charset().write(&text))?,
        _ => output::print(&text)?,
    }
    if let Some(out) = &args.out {
        let document = match out.extension().and_then(|ext| ext.to_str()) {
            Some("csv") => summary.write(Format::Csv)?,
            Some("json") => summary.write(Format::Json)?,
            Some("yaml" | "yml") => summary.write(Format::Yaml)?,
            _ => summary.markdown(),
        };
        write_atomically(out, &document).map_err(|error| writing(out, &error))?;
        complain(&format!("wrote {}", out.display()));
    }
    // A summary of some of the records must not pass for one of all.
    if problems.has_errors() { Err(Failure::Told.into()) } else { Ok(()) }
}
