//! Prints the import of files as JSON: `import FILE…`. The files are read as one job.

use std::collections::BTreeMap;
use std::process::ExitCode;

use atlas_cluster::import::{SourceFile, import};

fn main() -> ExitCode {
    let mut files = Vec::new();
    for name in std::env::args().skip(1) {
        match std::fs::read(&name) {
            Ok(bytes) => files.push(SourceFile { name, text: String::from_utf8_lossy(&bytes).into_owned() }),
            Err(e) => {
                eprintln!("{name}: {e}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{:#}", import(&files, &BTreeMap::new()).to_json());
    ExitCode::SUCCESS
}
