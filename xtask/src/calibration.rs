//! Generates the table of variance components, and runs the experiment that shows the benefit of calibration from a few
//! runs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use atlas_config::corrections::Quantity;
use atlas_evidence::runs::components::Components;
use atlas_evidence::runs::experiment::{self, Cluster, Outcome};
use atlas_evidence::validate::ValidateError;

/// Error while generating a table.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Measurements(#[from] ValidateError),
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
    #[error("{0}: no line \"{1}\"")]
    Mark(PathBuf, &'static str),
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Replaces the text between two lines of a file.
fn replace(path: &Path, begin: &'static str, end: &'static str, text: &str) -> Result<(), Error> {
    let path = root().join(path);
    let old = std::fs::read_to_string(&path).map_err(|error| Error::File(path.clone(), error))?;
    let (head, rest) = old.split_once(begin).ok_or_else(|| Error::Mark(path.clone(), begin))?;
    let (_, tail) = rest.split_once(end).ok_or_else(|| Error::Mark(path.clone(), end))?;
    let new = format!("{head}{begin}\n{text}{end}{tail}");
    std::fs::write(&path, new).map_err(|error| Error::File(path, error))
}

/// Estimates the variance components and writes them.
///
/// # Errors
/// Measurements that cannot be read, or a table that cannot be written.
pub(crate) fn components() -> Result<(), Error> {
    let mut text = String::new();
    for (quantity, name) in Quantity::ALL.into_iter().zip(["TRAINING", "SERVING", "TPOT", "TTFT"]) {
        let found = experiment::components(quantity)?;
        let Components {
            cluster,
            accelerator,
            software,
            model,
            classes,
            configuration,
            falloff,
            residual,
            reach,
            growth,
        } = found;
        let [a, b, c, d] = classes;
        let _ = writeln!(
            text,
            "const {name}: Components = Components {{\n    cluster: {cluster:.5},\n    accelerator: {accelerator:.5},\n    \
             software: {software:.5},\n    model: {model:.5},\n    classes: [{a:.5}, {b:.5}, {c:.5}, {d:.5}],\n    \
             configuration: {configuration:.5},\n    falloff: {falloff:.5},\n    residual: {residual:.5},\n    reach: {reach:.4},\n    \
             growth: {growth:.3},\n}};"
        );
    }
    let path = Path::new("crates/evidence/src/runs/components.rs");
    replace(path, "// begin of the table", "// end of the table", &text)
}

/// Runs the experiment and writes its tables.
///
/// # Errors
/// Measurements that cannot be read, or a document that cannot be written.
pub(crate) fn experiment(after_runs: usize, print: bool) -> Result<(), Error> {
    let mut text = String::new();
    let mut all = Vec::new();
    for quantity in Quantity::ALL {
        // Each source of latencies is already a single system.
        let clusters: &[Cluster] = match quantity {
            Quantity::Training | Quantity::Serving => &[Cluster::Source, Cluster::System],
            Quantity::Tpot | Quantity::Ttft => &[Cluster::Source],
        };
        all.extend(experiment::run(quantity, clusters, after_runs)?.into_iter().map(|found| (quantity, found)));
    }
    let _ = writeln!(text, "\nAfter {after_runs} runs, median / 90th percentile of the error of the rest:\n");
    let _ = writeln!(
        text,
        "| figure | cluster | clusters | runs | before | after | one factor | inside the 90 % interval | its width |"
    );
    let _ = writeln!(text, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (quantity, found) in &all {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            quantity.name(),
            what(found.cluster),
            found.clusters.len(),
            cells(&found.total)
        );
    }
    for (quantity, found) in &all {
        let _ = writeln!(text, "\n{}, by {}:\n", capitalized(quantity.name()), what(found.cluster));
        let _ =
            writeln!(text, "| cluster | runs | before | after | one factor | inside the 90 % interval | its width |");
        let _ = writeln!(text, "| --- | --- | --- | --- | --- | --- | --- |");
        for outcome in &found.clusters {
            let _ = writeln!(text, "| {} | {} |", outcome.cluster.replace('|', "/"), cells(outcome));
        }
    }
    text.push('\n');
    if print {
        print!("{text}");
        return Ok(());
    }
    replace(
        Path::new("docs/calibration.md"),
        "<!-- begin: cargo xtask calibration-experiment -->",
        "<!-- end -->",
        &text,
    )
}

fn what(cluster: Cluster) -> &'static str {
    match cluster {
        Cluster::Source => "source",
        Cluster::System => "source, accelerator and software",
    }
}

fn capitalized(text: &str) -> String {
    let (head, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    head.to_uppercase() + rest
}

fn cells(outcome: &Outcome) -> String {
    format!(
        "{} | {:.1} % / {:.0} % | {:.1} % / {:.0} % | {:.1} % / {:.0} % | {:.0} % → {:.0} % | {:.2} → {:.2}",
        outcome.runs,
        outcome.before.median,
        outcome.before.p90,
        outcome.after.median,
        outcome.after.p90,
        outcome.factor.median,
        outcome.factor.p90,
        100.0 * outcome.covered_before,
        100.0 * outcome.covered_after,
        outcome.width_before,
        outcome.width_after
    )
}
