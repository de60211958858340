//! The structure of the workspace: crates depend on crates below them, on nothing they do not use, and tests lie where they
//! are built.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names in a section of a manifest.
fn section(manifest: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(manifest).unwrap();
    let header = format!("[{name}]");
    let lines = text.lines().skip_while(|line| *line != header).skip(1).take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| line.split(['.', ' ', '=']).next().filter(|name| !name.is_empty()))
        .map(str::to_owned)
        .collect()
}

/// The workspace's libraries, each with the folder of its manifest.
fn libraries() -> BTreeMap<String, PathBuf> {
    let folders = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    folders.map(|path| (format!("atlas-{}", path.file_name().unwrap().to_str().unwrap()), path)).collect()
}

/// All Rust source below a folder.
fn source(folder: &Path) -> String {
    let mut text = String::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return text };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            text += &source(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text += &std::fs::read_to_string(path).unwrap();
        }
    }
    text
}

/// The table in docs/architecture.md is the order.
#[test]
fn a_crate_depends_only_on_crates_below_it() {
    let text = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `atlas-")?.split_once('`'));
    let order: Vec<String> = rows.map(|(name, _)| format!("atlas-{name}")).collect();
    let libraries = libraries();
    let mut sorted = order.clone();
    sorted.sort();
    assert_eq!(sorted, libraries.keys().cloned().collect::<Vec<_>>(), "the table lists every crate once");
    let level = |name: &str| order.iter().position(|known| known == name);
    let mut edges = 0;
    for (name, folder) in &libraries {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for used in section(&folder.join("Cargo.toml"), kind) {
                // What is no library of the workspace has no level: the application and xtask are above all.
                if used.starts_with("atlas-") || used == "xtask" {
                    assert!(level(&used) > level(name), "{name} depends on {used}, which is not below it");
                    edges += 1;
                }
            }
        }
    }
    assert!(edges > 20, "manifests are not read: {edges} dependencies within the workspace");
}

#[test]
fn every_declared_dependency_is_used() {
    let mut packages: Vec<PathBuf> = libraries().into_values().collect();
    packages.extend([root().to_owned(), root().join("xtask")]);
    for folder in packages {
        let (code, tests) =
            (source(&folder.join("src")), source(&folder.join("tests")) + &source(&folder.join("benches")));
        for (kind, text) in [("dependencies", code.clone()), ("dev-dependencies", code + &tests)] {
            for used in section(&folder.join("Cargo.toml"), kind) {
                let name = used.replace('-', "_");
                let stated = text.match_indices(&name).any(|(at, _)| {
                    let before = text[..at].chars().next_back();
                    !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
                });
                assert!(stated, "{}: [{kind}] {used} is not used", folder.display());
            }
        }
    }
}

/// A file beside the folder would be a binary of its own, linked to the whole application once more.
#[test]
fn integration_tests_are_modules_of_one_binary() {
    let stray: Vec<PathBuf> = std::fs::read_dir(root().join("tests"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    assert!(stray.is_empty(), "move to tests/it/ and name in tests/it/main.rs: {stray:?}");
}
