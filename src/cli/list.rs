//! `atlas list`.

use atlas_catalog::software;
use atlas_config::library::Library;
use atlas_report::table::{Align, Table, left, right};

use super::args::Globals;

/// List accelerators, models, targets, workloads or software.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas list accelerators nvidia
  atlas list models 70b
  atlas list software vllm              releases of vLLM, newest last")]
pub struct Args {
    /// What to list
    #[arg(value_enum)]
    pub what: What,
    /// Show only entries that contain all of these words
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
}

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum What {
    /// The accelerator catalog
    Accelerators,
    /// The model catalog
    Models,
    /// Targets
    Targets,
    /// Workloads
    Workloads,
    /// Training and serving software and its releases
    Software,
}

/// Prints the list.
pub fn run(args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    let library = Library::load(&globals.sources(), None);
    let catalog = library.catalog();
    let (headings, rows): (&[(&str, Align)], Vec<Vec<String>>) = match args.what {
        What::Accelerators => (
            &[left("accelerator"), left("vendor"), left("generation"), right("memory")],
            catalog
                .accelerators()
                .iter()
                .map(|sheet| {
                    let memory = format!("{} GB", sheet.memory.gb);
                    vec![sheet.id.clone(), sheet.vendor.clone(), sheet.generation.clone(), memory]
                })
                .collect(),
        ),
        What::Models => (
            &[left("model"), left("name"), right("parameters"), right("active")],
            catalog
                .models()
                .iter()
                .map(|model| {
                    let billions = |count: f64| format!("{:.1} B", count * 1e-9);
                    let (all, active) = (billions(model.parameters()), billions(model.active_parameters()));
                    vec![model.id.clone(), model.name.clone(), all, active]
                })
                .collect(),
        ),
        What::Targets => (
            &[left("target"), left("accelerator"), right("accelerators")],
            library
                .targets()
                .iter()
                .map(|target| {
                    let accelerator = target.accelerator.clone().unwrap_or_default();
                    vec![target.name.to_string(), accelerator, target.accelerators().to_string()]
                })
                .collect(),
        ),
        What::Workloads => (
            &[left("workload"), left("mode"), left("model")],
            library
                .workloads()
                .iter()
                .map(|workload| {
                    let model = workload.model.clone().unwrap_or_default();
                    vec![workload.name.to_string(), workload.shape.mode.name().to_owned(), model]
                })
                .collect(),
        ),
        What::Software => (
            &[left("software"), left("name"), left("released")],
            software::families()
                .iter()
                .flat_map(|family| {
                    let named = |id: String, date: String| vec![id, family.name.clone(), date];
                    let releases = family.releases.iter().map(move |release| {
                        let date = release.date.map_or_else(String::new, |date| date.to_string());
                        named(format!("{}@{}", family.id, release.id), date)
                    });
                    let alone = family.releases.is_empty().then(|| named(family.id.clone(), String::new()));
                    releases.chain(alone).collect::<Vec<_>>()
                })
                .collect(),
        ),
    };
    let words: Vec<String> = args.words.iter().map(|word| word.to_lowercase()).collect();
    let shown: Vec<Vec<String>> = rows
        .into_iter()
        .filter(|row| {
            let text = row.join(" ").to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        })
        .collect();
    if shown.is_empty() {
        return Err(color_eyre::eyre::eyre!("nothing matches \"{}\"", args.words.join(" ")));
    }
    let mut table = Table::new(headings.iter().copied());
    for row in shown {
        table.row(row);
    }
    super::output::print(&table.render())?;
    Ok(())
}
