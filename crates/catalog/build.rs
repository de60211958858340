//! Embeds the files under `workload/`, `themes/` and `demo/`, so that the binary runs from any directory. Documents and
//! the catalog are embedded as trees that need no parsing, the texts of documents and the measurements are compressed.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[path = "build/digest.rs"]
mod digest;
#[path = "build/evidence.rs"]
mod evidence;
#[path = "src/tag.rs"]
mod tag;

fn main() -> io::Result<()> {
    // Symbolic links to directories of the repository, which `cargo package` replaces by their targets.
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    for path in ["build.rs", "build", "src/tag.rs"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let mut shipped = Vec::new();
    for folder in ["workload", "themes", "demo"] {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        let mut files = Vec::new();
        collect(&root.join(folder), &mut files)?;
        files.sort();
        for path in files {
            let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            println!("cargo::rerun-if-changed={}", path.display());
            shipped.push((name, path));
        }
    }
    let (catalog, documents): (Vec<_>, Vec<_>) = shipped.into_iter().partition(|(name, _)| kind(name).is_some());
    let mut arena = digest::Arena::default();
    digest_catalog(&catalog, &mut arena, &out)?;
    embed_documents(&documents, &mut arena, &out)?;
    fs::write(out.join("arena.txt"), arena.text)?;
    compress_measurements(&root, &out)?;
    index_evidence(&root, &out)
}

/// Encodes the index of measurements with the estimates of the built-in constants.
fn index_evidence(root: &Path, out: &Path) -> io::Result<()> {
    let path = root.join("workload/measurements/evidence.csv");
    println!("cargo::rerun-if-changed={}", path.display());
    let (index, ids) = evidence::encode(&fs::read_to_string(&path)?)
        .map_err(|problem| io::Error::other(format!("{}: {problem}", path.display())))?;
    fs::write(out.join("evidence.bin"), index)?;
    fs::write(out.join("evidence_ids.bin"), ids)
}

/// Embeds the documents, sorted by path: a table, all trees, and all texts concatenated and compressed.
fn embed_documents(files: &[(String, PathBuf)], arena: &mut digest::Arena, out: &Path) -> io::Result<()> {
    let mut trees = digest::Digest::default();
    let mut texts = String::new();
    let mut code = String::from("/// Every document that ships.\nstatic DOCUMENTS: &[Document] = &[\n");
    for (name, path) in files {
        let text = fs::read_to_string(path)?;
        let items = trees.add_document(arena, name, &text).map_err(io::Error::other)?;
        let tree = trees.entries.last().copied().unwrap_or_default();
        let (begin, fingerprint) = (texts.len(), atlas_document::fingerprint::fingerprint(text.as_bytes()));
        texts.push_str(&text);
        let end = texts.len();
        let _ = writeln!(
            code,
            "    Document {{ path: {name:?}, tree: {tree}, items: &{items:?}, text: ({begin}, {end}), fingerprint: {fingerprint:#x} }},"
        );
    }
    code.push_str("];\n");
    fs::write(out.join("documents.rs"), code)?;
    fs::write(out.join("documents.bin"), trees.bytes)?;
    deflate(&out.join("documents.txt.deflate"), texts.as_bytes())
}

/// Returns the part of the catalog that a file belongs to, if any.
fn kind(name: &str) -> Option<&'static str> {
    match name {
        "workload/models.yaml" => Some("models"),
        "workload/prices.yaml" => Some("prices"),
        _ => name.starts_with("workload/accelerators/").then_some("accelerators"),
    }
}

fn digest_catalog(files: &[(String, PathBuf)], arena: &mut digest::Arena, out: &Path) -> io::Result<()> {
    let mut code = String::new();
    for wanted in ["accelerators", "models", "prices"] {
        let mut digest = digest::Digest::default();
        for (name, path) in files.iter().filter(|(name, _)| kind(name) == Some(wanted)) {
            digest.add_entries(arena, name, &fs::read_to_string(path)?).map_err(io::Error::other)?;
        }
        fs::write(out.join(format!("{wanted}.bin")), &digest.bytes)?;
        let _ = writeln!(
            code,
            "/// Shipped {wanted}.\npub static {}: Digest =\n    Digest {{ bytes: include_bytes!(\"{wanted}.bin\"), entries: &{:?} }};",
            wanted.to_uppercase(),
            digest.entries
        );
    }
    // Fingerprints identify unmodified copies of built-in files, which need not be read again.
    code.push_str("/// Fingerprints of the shipped texts.\nstatic FINGERPRINTS: &[(&str, u64)] = &[\n");
    for (name, path) in files {
        let _ = writeln!(code, "    ({name:?}, {:#x}),", atlas_document::fingerprint::fingerprint(&fs::read(path)?));
    }
    code.push_str("];\n");
    fs::write(out.join("catalog.rs"), code)
}

fn compress_measurements(root: &Path, out: &Path) -> io::Result<()> {
    for name in ["training", "inference", "serving_latency"] {
        let path = format!("workload/measurements/{name}.csv");
        println!("cargo::rerun-if-changed={}", root.join(&path).display());
        deflate(&out.join(format!("{name}.csv.deflate")), columns(&root.join(path))?.as_bytes())?;
    }
    Ok(())
}

fn deflate(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut encoder = flate2::write::DeflateEncoder::new(fs::File::create(path)?, flate2::Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish().map(drop)
}

/// Serializes a table by column, which reduces the compressed size by a sixth compared with rows. Cells end with the
/// unit separator, columns with the record separator; neither may occur in a cell.
fn columns(path: &Path) -> io::Result<String> {
    let mut columns: Vec<String> = Vec::new();
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(path).map_err(io::Error::other)?;
    for record in reader.records() {
        let record = record.map_err(io::Error::other)?;
        columns.resize(record.len(), String::new());
        for (column, cell) in columns.iter_mut().zip(&record) {
            if cell.contains(['\u{1e}', '\u{1f}']) {
                return Err(io::Error::other(format!("a separator inside a cell of {}", path.display())));
            }
            column.push_str(cell);
            column.push('\u{1f}');
        }
    }
    Ok(columns.into_iter().flat_map(|column| [column, "\u{1e}".to_owned()]).collect())
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
