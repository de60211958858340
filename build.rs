//! Embeds everything under `workload/`, `themes/` and `demo/`, so that the binary runs from any directory.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut code = String::from("/// Path under the project root and content of every shipped file.\n");
    code.push_str("pub static FILES: &[(&str, &str)] = &[\n");
    for folder in ["workload", "themes", "demo"] {
        println!("cargo::rerun-if-changed={folder}");
        let mut files = Vec::new();
        collect(&root.join(folder), &mut files)?;
        files.sort();
        for path in files {
            let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            println!("cargo::rerun-if-changed={name}");
            let _ = writeln!(code, "    ({name:?}, include_str!({path:?})),");
        }
    }
    code.push_str("];\n");
    fs::write(out.join("shipped.rs"), code)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ext| ext == "yaml") {
            files.push(path);
        }
    }
    Ok(())
}
