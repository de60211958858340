//! Output file of a sweep, and the note next to it that records the progress.
//!
//! The note is written after the data it describes has reached the disk. Anything beyond the file size in the note is
//! truncated when the sweep resumes, so that no line is missing, duplicated or incomplete.

use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use color_eyre::eyre::eyre;
use serde::{Deserialize, Serialize};

use atlas_document::files;
use atlas_document::sources::read_text;
use atlas_plan::knob::Setting;
use atlas_plan::search::sweep::Sweep;
use atlas_report::parquet::Group;

/// Interval between notes; a killed sweep loses at most this much work.
const NOTE_INTERVAL: Duration = Duration::from_secs(1);

/// Progress of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProgressNote {
    /// Fingerprint of the sweep: a different sweep must not continue this file.
    sweep: u64,
    /// Number of points of the sweep.
    points: u64,
    /// First point that is not in the file.
    next: u64,
    /// Size of the file up to that point, bytes.
    bytes: u64,
    /// Row groups written so far, for columnar formats.
    #[serde(default)]
    groups: Vec<Group>,
}

/// Fingerprint of everything that affects the results of the sweep.
///
/// `conditions` are those of the sweep as text: their data contains function addresses, which differ between processes.
pub(super) fn fingerprint(header: &[u8], sweep: &Sweep, conditions: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    header.hash(&mut hasher);
    // Scenarios contain all inputs of the engines.
    for (parts, scenario) in &sweep.contenders {
        (&parts.target.name, &parts.workload.name, format!("{scenario:?}")).hash(&mut hasher);
    }
    for axis in sweep.space.axes() {
        (axis.knob, axis.values.len()).hash(&mut hasher);
        for value in &axis.values {
            match value {
                Setting::Number(number) => number.to_bits().hash(&mut hasher),
                other => other.to_string().hash(&mut hasher),
            }
        }
    }
    conditions.hash(&mut hasher);
    hasher.finish()
}

/// Destination of the points.
pub(super) enum Output {
    /// A file with its note.
    File { file: File, path: PathBuf, note: ProgressNote, noted: Instant },
    /// Standard output.
    Stdout,
}

impl Output {
    pub(super) fn stdout() -> Output {
        Output::Stdout
    }

    /// Opens the file, and resumes if its note belongs to this sweep.
    pub(super) fn open(path: &Path, sweep: u64, points: u64, restart: bool) -> color_eyre::Result<Output> {
        let fresh = ProgressNote { sweep, points, next: 0, bytes: 0, groups: Vec::new() };
        let found = read_text(&note_path(path)).ok().and_then(|text| serde_json::from_str::<ProgressNote>(&text).ok());
        let length = std::fs::metadata(path).ok().map(|meta| meta.len());
        let again = "use --restart to overwrite it";
        let note = match (length, found) {
            _ if restart => fresh,
            (None | Some(0), _) => fresh,
            (Some(_), None) => {
                return Err(eyre!("{} exists and is not an unfinished sweep; {again}", path.display()));
            }
            (Some(length), Some(note)) if note.sweep == sweep && note.points == points && note.bytes <= length => note,
            (Some(_), Some(_)) => {
                let what = "is an unfinished sweep with other settings, files or program version";
                return Err(eyre!("{} {what}; {again}", path.display()));
            }
        };
        let cannot = |error: io::Error| eyre!("cannot write to {}: {error}", path.display());
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(cannot)?;
        match file.try_lock() {
            // The lock is held until the file is closed. Some file systems do not support locks.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(eyre!(
                    "another sweep is writing to {}; wait for it or choose another file",
                    path.display()
                ));
            }
        }
        file.set_len(note.bytes).map_err(cannot)?;
        file.seek(SeekFrom::Start(note.bytes)).map_err(cannot)?;
        let output = Output::File { file, path: path.to_owned(), note, noted: Instant::now() };
        output.note()?;
        Ok(output)
    }

    /// First point that is not written yet.
    pub(super) fn next(&self) -> u64 {
        match self {
            Output::File { note, .. } => note.next,
            Output::Stdout => 0,
        }
    }

    /// Writes lines; `next` is the first point after them.
    pub(super) fn write(&mut self, lines: &[u8], next: u64) -> io::Result<()> {
        match self {
            Output::Stdout => io::stdout().lock().write_all(lines),
            Output::File { file, path, note, noted } => {
                file.write_all(lines).map_err(|error| named(path, &error))?;
                note.bytes += lines.len() as u64;
                note.next = next;
                if noted.elapsed() > NOTE_INTERVAL {
                    *noted = Instant::now();
                    self.note()?;
                }
                Ok(())
            }
        }
    }

    /// Size of the file up to the last point, bytes.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Output::File { note, .. } => note.bytes,
            Output::Stdout => 0,
        }
    }

    /// Row groups written so far.
    pub(super) fn groups(&self) -> &[Group] {
        match self {
            Output::File { note, .. } => &note.groups,
            Output::Stdout => &[],
        }
    }

    /// Like [`Output::write`], for row groups.
    pub(super) fn write_group(&mut self, bytes: &[u8], next: u64, groups: Vec<Group>) -> io::Result<()> {
        if let Output::File { note, .. } = self {
            note.groups.extend(groups);
        }
        self.write(bytes, next)
    }

    /// Writes the footer; a resumed sweep overwrites it.
    pub(super) fn write_end(&mut self, end: &[u8]) -> io::Result<()> {
        match self {
            Output::File { file, path, .. } => file.write_all(end).map_err(|error| named(path, &error)),
            Output::Stdout => io::stdout().lock().write_all(end),
        }
    }

    /// Writes the note, after syncing the data to disk.
    fn note(&self) -> io::Result<()> {
        let Output::File { file, path, note, .. } = self else { return Ok(()) };
        file.sync_data().map_err(|error| named(path, &error))?;
        let note_path = note_path(path);
        files::write(&note_path, serde_json::to_vec(note)?).map_err(|error| named(&note_path, &error))
    }

    /// Closes the file. Removes the note if the sweep is complete (`whole`); otherwise keeps it for resuming.
    pub(super) fn finish(self, whole: bool) -> io::Result<()> {
        match &self {
            Output::Stdout => io::stdout().lock().flush(),
            Output::File { file, path, .. } if whole => {
                file.sync_data().map_err(|error| named(path, &error))?;
                let note_path = note_path(path);
                std::fs::remove_file(&note_path).map_err(|error| named(&note_path, &error))
            }
            Output::File { .. } => self.note(),
        }
    }
}

/// Adds the file name to an error.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to {}: {error}", path.display()))
}

/// Path of the note of a file.
fn note_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    path.with_file_name(name)
}
