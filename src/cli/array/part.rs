//! One part of the work of a job array, and the file that a task writes.

use std::fs::File;
use std::io::{BufWriter, Read as _};
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use atlas_document::files::AtomicFile;
use color_eyre::eyre::eyre;

use crate::cli::output::write_stderr;
use crate::cli::save::write_error;

/// Maximum number of parts.
pub const MAX_PARTS: u64 = 10_000;

/// Maximum size of a part that is merged, bytes: it is held in memory, possibly on a shared login node.
pub(super) const MAX_BYTES: u64 = 512 << 20;

/// Reads a part of at most `max_bytes` bytes.
///
/// # Errors
/// The file cannot be read, is not a regular file, or is larger.
pub(super) fn read(path: &Path, max_bytes: u64) -> color_eyre::Result<Vec<u8>> {
    let cannot = |error: std::io::Error| eyre!("{}: cannot be read: {error}", path.display());
    // Checked before opening, since opening a pipe would block.
    let found = std::fs::metadata(path).map_err(cannot)?;
    if !found.is_file() {
        return Err(eyre!("{}: expected a file that a task of the array wrote", path.display()));
    }
    // The limit also holds if the file grows while it is read.
    let mut lines = Vec::new();
    let file = File::open(path).map_err(cannot)?;
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut lines).map_err(cannot)?;
    if lines.len() as u64 > max_bytes {
        return Err(eyre!(
            "{}: a part of {} MB, expected at most {} MB: use more --tasks, fewer metrics or a condition",
            path.display(),
            found.len().max(lines.len() as u64) >> 20,
            max_bytes >> 20
        ));
    }
    Ok(lines)
}

/// A part, written as `3/32@9f86d081884c7d65`: index, number of parts, and fingerprint of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    index: u64,
    of: u64,
    work: u64,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let read = || {
            let (part, work) = text.split_once('@')?;
            let (index, of) = part.split_once('/')?;
            let (index, of): (u64, u64) = (index.parse().ok()?, of.parse().ok()?);
            let work = u64::from_str_radix(work, 16).ok()?;
            (index < of && of <= MAX_PARTS).then_some(Part { index, of, work })
        };
        read().ok_or_else(|| "expected PART/PARTS@FINGERPRINT".to_owned())
    }
}

/// Items of a part. The parts together contain every item exactly once.
#[must_use]
pub fn range(index: u64, of: u64, size: u64) -> Range<u64> {
    let bound = |index: u64| (u128::from(size) * u128::from(index) / u128::from(of.max(1))) as u64;
    bound(index)..bound(index + 1)
}

impl Part {
    /// Computes this part of `size` items and writes its file atomically. An existing part is not computed again.
    ///
    /// # Errors
    /// The work differs from the submitted work, `compute` fails, or the file cannot be written.
    pub fn write(
        &self,
        path: &Path,
        work: u64,
        size: u64,
        compute: impl FnOnce(Range<u64>, &mut BufWriter<&File>) -> color_eyre::Result<()>,
    ) -> color_eyre::Result<()> {
        if self.work != work {
            return Err(eyre!(
                "the inputs ({work:016x}) differ from those submitted ({:016x}): files or the program have changed since",
                self.work
            ));
        }
        if path.exists() {
            write_stderr(&format!("{} already exists", path.display()));
            return Ok(());
        }
        let cannot = |error: std::io::Error| write_error(path, &error);
        let draft = AtomicFile::begin(path).map_err(cannot)?;
        let mut lines = BufWriter::new(draft.file());
        compute(range(self.index, self.of, size), &mut lines)?;
        lines.into_inner().map_err(|error| cannot(error.into_error()))?;
        // A concurrent attempt at the same part writes the same content.
        draft.commit().map_err(cannot)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use std::io::Write as _;

    use super::*;

    #[test]
    fn part_ranges_are_contiguous_and_cover_every_item() {
        for (of, size) in [(1, 10), (3, 10), (7, 3), (32, 1_000_000), (1000, u64::MAX)] {
            let mut next = 0;
            for index in 0..of {
                let part = range(index, of, size);
                assert_eq!(part.start, next);
                next = part.end;
            }
            assert_eq!(next, size);
        }
    }

    #[test]
    fn oversized_or_irregular_part_files_are_refused_without_a_full_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part-0.csv");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read(&path, 4).unwrap(), b"four");
        // A sparse file: it uses no disk space, but reading all of it would use its size of memory.
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let error = read(&path, 1 << 20).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "a part of 1048576 MB, expected at most 1 MB: use more --tasks, fewer metrics or a condition"
            )
        );
        for other in ["/dev/zero", "/dev"] {
            let error = read(Path::new(other), 1 << 20).unwrap_err().to_string();
            assert!(error.contains("expected a file that a task of the array wrote"), "{error}");
        }
        assert!(read(&folder.path().join("part-1.csv"), 1).unwrap_err().to_string().contains("cannot be read"));
    }

    #[test]
    fn part_argument_parses_and_malformed_parts_are_refused() {
        assert_eq!("3/32@00ff".parse(), Ok(Part { index: 3, of: 32, work: 255 }));
        for text in ["", "3/3@0", "a/3@0", "1/2", "1/50000@0", "-1/2@0"] {
            assert!(text.parse::<Part>().is_err(), "{text}");
        }
    }

    #[test]
    fn failed_part_leaves_no_file_and_existing_part_is_not_recomputed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part-0.csv");
        let part = Part { index: 0, of: 2, work: 7 };
        assert!(part.write(&path, 8, 10, |_, _| Ok(())).is_err(), "another work");
        let failed = part.write(&path, 7, 10, |_, out| {
            writeln!(out, "half")?;
            Err(eyre!("node failed"))
        });
        assert!(failed.is_err() && !path.exists());
        part.write(&path, 7, 10, |items, out| Ok(writeln!(out, "{items:?}")?)).unwrap();
        part.write(&path, 7, 10, |_, _| Err(eyre!("computed twice"))).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "0..5\n");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
