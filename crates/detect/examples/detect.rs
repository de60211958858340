//! Prints the accelerators of this machine and its cluster as targets.
//!
//! `cargo run -p atlas-detect --example detect [FOLDER]`, where FOLDER holds the catalog's accelerators; by default
//! `workload/accelerators`.

use std::error::Error;
use std::path::{Path, PathBuf};

use atlas_detect::catalog::CatalogEntry;
use atlas_detect::render::render;
use atlas_detect::runner::System;
use atlas_detect::{Options, detect, idle};
use serde_yaml::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("workload/accelerators"), PathBuf::from);
    let catalog = catalog(&folder)?;
    let options = Options::default();
    let found = detect(&System, &options, &catalog);
    print!("{}", render(&found, &catalog, &|_| None));
    if let Ok(load) = idle::query(&System, options.timeout) {
        for machine in &found.machines {
            if let Some(nodes) = load.nodes(machine) {
                println!("# {}: {} idle, waiting: {:?}", machine.name, nodes.idle.unwrap_or(0), load.waiting(machine));
            }
        }
    }
    Ok(())
}

fn catalog(folder: &Path) -> Result<Vec<CatalogEntry>, Box<dyn Error>> {
    let mut entries = Vec::new();
    for file in std::fs::read_dir(folder)? {
        let list: Vec<Value> = serde_yaml::from_str(&std::fs::read_to_string(file?.path())?)?;
        for value in &list {
            let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
            let memory = value.get("memory");
            let aliases = value.get("aliases").and_then(Value::as_sequence).into_iter().flatten();
            entries.push(CatalogEntry {
                key: text(value, "id").ok_or("an entry without an id")?,
                names: text(value, "name")
                    .into_iter()
                    .chain(aliases.filter_map(|alias| alias.as_str().map(str::to_owned)))
                    .collect(),
                vendor: text(value, "vendor").ok_or("an entry without a vendor")?,
                memory_gb: memory.and_then(|memory| memory.get("gb")).and_then(Value::as_f64),
                memory_type: memory.and_then(|memory| text(memory, "type")),
                form_factor: text(value, "form_factor"),
            });
        }
    }
    Ok(entries)
}
