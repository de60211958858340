//! Result directory.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cli::output::write_stderr;
use crate::cli::save;
use atlas_core::escape::file_name;
use atlas_report::chart::{png, svg};
use atlas_report::simulation::plots::Chart;
use atlas_report::to_json;

/// A directory for result files.
pub(in crate::cli) struct Folder {
    path: PathBuf,
    /// Prefix of the file names.
    stem: String,
    files: usize,
}

impl Folder {
    /// Creates the directory if it does not exist. File names begin with the experiment's name, so that several
    /// experiments can share a directory.
    pub(in crate::cli) fn open(path: &Path, experiment: &str) -> color_eyre::Result<Folder> {
        save::create_directory(path)?;
        let stem = file_name(&experiment.replace(" × ", "_").replace(' ', "_"));
        Ok(Folder { path: path.to_owned(), stem, files: 0 })
    }

    fn place(&self, name: &str) -> PathBuf {
        self.path.join(format!("{}_{name}", self.stem))
    }

    /// Writes a text file.
    pub(in crate::cli) fn text(&mut self, name: &str, text: &str) -> color_eyre::Result<()> {
        save::write(&self.place(name), text)?;
        self.files += 1;
        Ok(())
    }

    /// Writes a JSON document.
    pub(in crate::cli) fn json(&mut self, name: &str, document: &Value) -> color_eyre::Result<()> {
        self.text(name, &to_json(document)?)
    }

    /// Writes a chart as SVG and PNG, unless it is empty.
    pub(in crate::cli) fn chart(&mut self, name: &str, chart: &Chart) -> color_eyre::Result<()> {
        let Some(drawing) = chart.drawing() else { return Ok(()) };
        let painted = png::paint(drawing.clone())?;
        self.text(&format!("{name}.svg"), &svg::standalone(drawing))?;
        save::write(&self.place(&format!("{name}.png")), painted)?;
        self.files += 1;
        Ok(())
    }

    /// Prints the number of files and where they were written.
    pub(in crate::cli) fn print_paths(&self) {
        write_stderr(&format!("wrote {} files {}_… to {}", self.files, self.stem, self.path.display()));
    }
}
