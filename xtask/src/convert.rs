//! `cargo xtask convert-measurements`.

use std::path::{Path, PathBuf};

use atlas_evidence::validate::MeasurementKind;
use atlas_legacy::measurements::{self, ConvertError, FreeText, Report};

/// Error while converting a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot read {}: {reason}", path.display())]
    Read { path: PathBuf, reason: std::io::Error },
    #[error("cannot write {}: {reason}", path.display())]
    Write { path: PathBuf, reason: std::io::Error },
    #[error("{}: {reason}", path.display())]
    Convert { path: PathBuf, reason: ConvertError },
}

/// Converts a file, including prose columns.
pub(crate) fn file(old: &Path, new: &Path, kind: Option<MeasurementKind>) -> Result<Report, Error> {
    let bytes = std::fs::read(old).map_err(|reason| Error::Read { path: old.into(), reason })?;
    // Text in another encoding loses its special characters, but no rows.
    let text = String::from_utf8_lossy(&bytes);
    let kind = kind.map(|kind| match kind {
        MeasurementKind::Training => measurements::TableKind::Training,
        MeasurementKind::Inference => measurements::TableKind::Inference,
        MeasurementKind::Latency => measurements::TableKind::Latency,
    });
    let (converted, report) = measurements::convert(&text, kind, FreeText::Read)
        .map_err(|reason| Error::Convert { path: old.into(), reason })?;
    std::fs::write(new, converted).map_err(|reason| Error::Write { path: new.into(), reason })?;
    Ok(report)
}
