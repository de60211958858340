//! One part of a sweep, as a task of a job array computes it.

use std::io::Write as _;
use std::path::Path;
use std::str::FromStr;

use color_eyre::eyre::eyre;

use super::Args;
use super::rows::Columns;
use crate::cli::failure::Failure;
use crate::cli::output::complain;
use crate::cli::run::writing;
use atlas_plan::search::Gauge;
use atlas_plan::search::sweep::{Block, Row, Sweep};

/// Which part: `3/32@9f86d081884c7d65`, the last being the fingerprint of the sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    index: u64,
    of: u64,
    sweep: u64,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let read = || {
            let (part, sweep) = text.split_once('@')?;
            let (index, of) = part.split_once('/')?;
            let (index, of): (u64, u64) = (index.parse().ok()?, of.parse().ok()?);
            let sweep = u64::from_str_radix(sweep, 16).ok()?;
            (index < of && of <= 1000).then_some(Part { index, of, sweep })
        };
        read().ok_or_else(|| "expected PART/PARTS@SWEEP".to_owned())
    }
}

/// The points of a part; all parts together hold every point once.
pub(super) fn range(index: u64, of: u64, size: u64) -> std::ops::Range<u64> {
    let bound = |index: u64| (u128::from(size) * u128::from(index) / u128::from(of.max(1))) as u64;
    bound(index)..bound(index + 1)
}

/// Computes a part into its file, which appears whole or not at all. A part that is there is not computed again.
pub(super) fn run(
    part: &Part,
    args: &Args,
    sweep: &Sweep,
    columns: &Columns<'_>,
    fingerprint: u64,
    size: u64,
) -> color_eyre::Result<()> {
    if part.sweep != fingerprint {
        return Err(eyre!(
            "this is sweep {fingerprint:016x}, submitted was {:016x}: files or the program have changed since",
            part.sweep
        ));
    }
    let Some(path) = &args.out else { return Err(Failure::usage(["--part needs --out"]).into()) };
    if path.exists() {
        complain(&format!("{} is there already", path.display()));
        return Ok(());
    }
    let cannot = |error: std::io::Error| writing(path, &error);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut draft = tempfile::Builder::new().prefix(".atlas-").tempfile_in(folder).map_err(cannot)?;
    let points = range(part.index, part.of, size);
    let end = points.end;
    let tell = |out: &mut Vec<u8>, row: &Row<'_>| columns.tell(out, row);
    let next = sweep.run(points, &Gauge::default(), tell, |block: Block<Vec<u8>>| draft.write_all(&block.described))?;
    if next != end {
        return Err(eyre!("stopped at point {next} of {end}"));
    }
    draft.as_file().sync_all().map_err(cannot)?;
    // Another attempt at the same part has the same contents.
    draft.persist(path).map_err(|error| cannot(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_every_point_once() {
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
    fn parts_are_read_as_they_are_written() {
        assert_eq!("3/32@00ff".parse(), Ok(Part { index: 3, of: 32, sweep: 255 }));
        for text in ["", "3/3@0", "a/3@0", "1/2", "1/5000@0", "-1/2@0"] {
            assert!(text.parse::<Part>().is_err(), "{text}");
        }
    }
}
