//! The shipped catalog, in the form in which a caller passes it.

use std::path::Path;
use std::sync::OnceLock;

use atlas_detect::catalog::CatalogEntry;
use serde_yaml::Value;

pub(crate) fn shipped() -> &'static [CatalogEntry] {
    static CATALOG: OnceLock<Vec<CatalogEntry>> = OnceLock::new();
    CATALOG.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workload/accelerators");
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let mut entries = Vec::new();
        for file in files {
            let list: Vec<Value> = serde_yaml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
            entries.extend(list.iter().map(entry));
        }
        assert!(entries.len() > 100);
        entries
    })
}

fn entry(value: &Value) -> CatalogEntry {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let memory = value.get("memory");
    let aliases = value.get("aliases").and_then(Value::as_sequence).into_iter().flatten();
    CatalogEntry {
        key: text("id").unwrap(),
        names: text("name").into_iter().chain(aliases.filter_map(|a| a.as_str().map(str::to_owned))).collect(),
        vendor: text("vendor").unwrap(),
        memory_gb: memory.and_then(|memory| memory.get("gb")).and_then(Value::as_f64),
        memory_type: memory.and_then(|m| m.get("type")).and_then(|t| t.as_str().map(str::to_owned)),
        form_factor: text("form_factor"),
    }
}
