//! Structure of the workspace: crates depend only on crates below them and on what they use, and tests are in one
//! binary.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Names in a section of a manifest.
fn section(manifest: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(manifest).unwrap();
    let header = format!("[{name}]");
    let lines = text.lines().skip_while(|line| *line != header).skip(1).take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| line.split(['.', ' ', '=']).next().filter(|name| !name.is_empty()))
        .map(str::to_owned)
        .collect()
}

/// Libraries of the workspace, each with the directory of its manifest.
fn libraries() -> BTreeMap<String, PathBuf> {
    let folders = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    folders.map(|path| (format!("atlas-{}", path.file_name().unwrap().to_str().unwrap()), path)).collect()
}

/// All Rust source below a directory.
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

/// The table in docs/architecture.md defines the order.
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
                // The application and xtask are not libraries of the workspace and are above all of them.
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

/// Engines receive the behavior of software through traits, and measurement tables are read by other crates.
#[test]
fn engine_crates_name_no_software_family_or_table_column() {
    let files = std::fs::read_dir(root().join("workload/software")).unwrap().map(|entry| entry.unwrap().path());
    let families: Vec<String> = files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_lowercase()).collect();
    assert!(families.len() > 60 && families.contains(&"vllm".to_owned()));
    let words = |text: &str| -> BTreeSet<String> {
        let separates = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.'));
        text.split(separates).map(|word| word.trim_matches(['-', '.']).to_lowercase()).collect()
    };
    for name in ["perf", "sim"] {
        let text = source(&root().join("crates").join(name).join("src"));
        let code: String =
            text.lines().filter_map(|line| line.split("//").next()).flat_map(|code| [code, "\n"]).collect();
        let found = words(&code);
        let named: Vec<&String> = families.iter().filter(|family| found.contains(*family)).collect();
        assert!(named.is_empty(), "crate {name} names {named:?}");
        for column in ["\"notes\"", "\"source\"", "\"date\"", "\"harness\""] {
            assert!(!code.contains(column), "crate {name} reads {column}");
        }
    }
}

/// The last bits of the C library's functions depend on the processor; `atlas_core::math` has its own implementations.
#[test]
fn library_code_calls_no_libm_float_methods() {
    const METHODS: [&str; 25] = [
        "exp", "exp2", "exp_m1", "ln", "ln_1p", "log", "log2", "log10", "powf", "cbrt", "hypot", "sin", "cos", "tan",
        "sin_cos", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    ];
    let mut files = Vec::new();
    for folder in libraries().into_values() {
        files.extend(modules(&folder.join("src")));
    }
    assert!(files.len() > 300, "{}", files.len());
    for (module, text) in files.into_iter().filter(|(module, _)| !module.contains(&"tests".to_owned())) {
        let code: String = text.lines().filter_map(|line| line.split("//").next()).collect();
        let called = METHODS.iter().find(|name| code.contains(&format!(".{name}(")));
        assert_eq!(called, None, "{module:?}: call it from `atlas_core::math`");
    }
}

#[test]
fn integration_tests_are_modules_of_one_binary() {
    let stray: Vec<PathBuf> = std::fs::read_dir(root().join("tests"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    assert!(stray.is_empty(), "move to tests/it/ and name in tests/it/main.rs: {stray:?}");
}

/// Paths that a file names with `use` or in code, from the root of its crate. Re-exports count as imports.
fn imports(text: &str, module: &[String]) -> Vec<Vec<String>> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join(" ");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let statement = code[at + 4..].split(';').next().unwrap_or_default();
        expand(statement, &[], &mut found);
    }
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let path =
                code[at..].split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').next().unwrap_or_default();
            // The rest of `super::super::…` has been found with its beginning, and the paths of `a::{b, c}` by `expand`.
            if !code[..at].ends_with("::") && !path.ends_with("::") {
                found.push(path.split("::").map(str::to_owned).collect());
            }
        }
    }
    found.iter().filter_map(|path| absolute(path, module)).collect()
}

/// Expands the paths of a `use` statement.
fn expand(tree: &str, before: &[String], found: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    let (path, group) = tree.split_once('{').map_or((tree, None), |(path, group)| (path, Some(group)));
    let names =
        path.split(" as ").next().unwrap_or_default().split("::").map(str::trim).filter(|name| !name.is_empty());
    let path: Vec<String> = before.iter().cloned().chain(names.map(str::to_owned)).collect();
    let Some(group) = group else { return found.push(path) };
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                if !group[begin..at].trim().is_empty() {
                    expand(&group[begin..at], &path, found);
                }
                begin = at + 1;
                if c == '}' {
                    return;
                }
            }
            _ => {}
        }
    }
}

/// A path from the root of the crate; `None` if it begins elsewhere.
fn absolute(path: &[String], module: &[String]) -> Option<Vec<String>> {
    let ups = path.iter().take_while(|name| *name == "super").count();
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => Some([&module[..module.len().checked_sub(ups)?], &path[ups..]].concat()),
        _ => None,
    }
}

/// Files of a crate by module, without test modules.
fn modules(folder: &Path) -> BTreeMap<Vec<String>, String> {
    let mut all = BTreeMap::new();
    let mut tests = Vec::new();
    let mut folders = vec![(folder.to_owned(), Vec::new())];
    while let Some((folder, module)) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let own = |name: &str| [module.clone(), vec![name.to_owned()]].concat();
            if path.is_dir() {
                folders.push((path, own(&name)));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
                let module = if ["lib", "main", "mod"].contains(&&*name) { module.clone() } else { own(&name) };
                for declared in text.split("#[cfg(test)]\nmod ").skip(1) {
                    let name = declared.split(';').next().unwrap_or_default().to_owned();
                    tests.push([module.clone(), vec![name]].concat());
                }
                all.entry(module).or_insert_with(String::new).push_str(&text);
            }
        }
    }
    all.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
    all
}

/// A module, and one that it imports.
type Import<'a> = (&'a [String], &'a [String]);

/// Pairs of modules of which the first imports the second. Imports of a child from its parents do not count.
fn edges(files: &BTreeMap<Vec<String>, String>) -> BTreeSet<Import<'_>> {
    let mut edges: BTreeSet<Import<'_>> = BTreeSet::new();
    for (module, text) in files {
        for path in imports(text, module) {
            let used = (1..=path.len()).rev().find_map(|length| files.get_key_value(&path[..length]));
            if let Some((used, _)) = used.filter(|(used, _)| !module.starts_with(used)) {
                edges.insert((module, used));
            }
        }
    }
    edges
}

/// Groups of nodes that reach each other.
fn cycles(edges: &BTreeSet<Import<'_>>) -> Vec<Vec<String>> {
    let mut next: BTreeMap<&[String], Vec<&[String]>> = BTreeMap::new();
    for (from, to) in edges {
        next.entry(from).or_default().push(to);
    }
    let reached = |from: &[String]| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(module) = open.pop() {
            open.extend(next.get(module).into_iter().flatten().filter(|next| seen.insert(next.to_vec())));
        }
        seen
    };
    let reached: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> =
        next.keys().map(|module| (module.to_vec(), reached(module))).collect();
    let mut cycles: Vec<Vec<String>> = Vec::new();
    for (module, after) in &reached {
        let returns = |other: &&Vec<String>| reached.get(*other).is_some_and(|back| back.contains(module));
        let circle: Vec<String> = after.iter().filter(returns).map(|m| m.join("::")).collect();
        if after.contains(module) && !cycles.contains(&circle) {
            cycles.push(circle);
        }
    }
    cycles
}

/// Packages with their source files: the libraries and the application.
fn packages() -> BTreeMap<String, BTreeMap<Vec<String>, String>> {
    let mut folders = libraries();
    folders.insert("atlas-fabric".to_owned(), root().to_owned());
    folders.into_iter().map(|(name, folder)| (name, modules(&folder.join("src")))).collect()
}

#[test]
fn source_files_have_no_import_cycles() {
    for (name, files) in packages() {
        let found = cycles(&edges(&files));
        assert!(found.is_empty(), "{name}: files import each other: {found:?}");
    }
}

/// Folders whose subfolders import each other, although their files do not: the state of views and dialogs is below
/// `tui::app`, their drawing is above it; formats of launch scripts contain each other.
const MUTUAL_SUBFOLDERS: [&str; 2] = ["atlas-fabric: tui", "atlas-cluster: import"];

/// A module is a folder and the file of the same name. Siblings anywhere in a crate are compared.
#[test]
fn modules_with_their_submodules_have_no_import_cycles() {
    let mut mutual = BTreeSet::new();
    for (name, files) in packages() {
        let mut siblings: BTreeMap<&[String], BTreeSet<Import<'_>>> = BTreeMap::new();
        for (from, to) in edges(&files) {
            let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
            if to.len() > shared && from.len() > shared {
                siblings.entry(&from[..shared]).or_default().insert((&from[..=shared], &to[..=shared]));
            }
        }
        for (folder, edges) in siblings {
            let found = cycles(&edges);
            let place = format!("{name}: {}", folder.join("::"));
            let excepted = MUTUAL_SUBFOLDERS.iter().find(|known| {
                place.strip_prefix(**known).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            });
            match excepted {
                Some(known) if !found.is_empty() => drop(mutual.insert(*known)),
                _ => assert!(found.is_empty(), "{place}: modules import each other: {found:?}"),
            }
        }
    }
    assert_eq!(mutual, BTreeSet::from(MUTUAL_SUBFOLDERS), "exceptions that are not needed");
}

#[test]
fn commands_import_the_interface_only_to_start_it() {
    let files = modules(&root().join("src"));
    let importers = |of: &str, by: &str| -> Vec<String> {
        let between = |(from, to): &Import<'_>| from[0] == by && to[0] == of;
        let found: BTreeSet<String> =
            edges(&files).into_iter().filter(between).map(|(from, _)| from.join("::")).collect();
        found.into_iter().collect()
    };
    assert_eq!(importers("tui", "cli"), ["cli::tui"]);
    for (of, by) in [("cli", "tui"), ("cli", "demo"), ("cli", "theme"), ("tui", "demo"), ("tui", "theme")] {
        assert!(importers(of, by).is_empty(), "{by} imports {of}: {:?}", importers(of, by));
    }
}
