//! A sweep as a job array: each part is a range of its points.

use std::io::Write as _;

use color_eyre::eyre::eyre;

use super::Args;
use super::file::Output;
use super::rows::Columns;
use crate::cli::array::{MergeOutcome, Part, Work, range};
use crate::cli::failure::Failure;
use crate::cli::output::write_stderr;
use atlas_plan::search::Gauge;
use atlas_plan::search::sweep::{Block, Row, Sweep};

/// Computes one part, as a task of the array.
pub(super) fn part(
    part: &Part,
    args: &Args,
    sweep: &Sweep,
    columns: &Columns<'_>,
    fingerprint: u64,
    size: u64,
) -> color_eyre::Result<()> {
    let Some(path) = &args.out else { return Err(Failure::usage(["--part requires --out"]).into()) };
    part.write(path, fingerprint, size, |points, out| {
        let end = points.end;
        let write_row = |out: &mut Vec<u8>, row: &Row<'_>| columns.write_row(out, row);
        let next =
            sweep.run(points, &Gauge::default(), write_row, |block: Block<Vec<u8>>| out.write_all(&block.described))?;
        if next == end { Ok(()) } else { Err(eyre!("stopped at point {next} of {end}")) }
    })
}

/// Submits missing parts, and merges until all are complete.
pub(super) fn run(args: &Args, header: &[u8], fingerprint: u64, size: u64) -> color_eyre::Result<()> {
    let Some(out) = &args.out else { return Err(Failure::usage(["--slurm requires --out"]).into()) };
    let ending = out.extension().unwrap_or_default().to_string_lossy();
    let work = Work::of(&args.array, out, fingerprint, size, &ending, &[])?;
    if args.array.cancel {
        return work.cancel();
    }
    let mut output = Output::open(out, fingerprint, size, args.restart)?;
    let parts = work.parts();
    let next = (0..=parts).find(|index| range(*index, parts, size).start == output.next()).ok_or_else(|| {
        eyre!(
            "{} was started with a different number of parts; use the same --tasks, or --restart to start over",
            out.display()
        )
    })?;
    if args.restart {
        work.forget()?;
    }
    if next == 0 && output.next() == 0 {
        output.write(header, 0)?;
    }
    let ended = work.run(next, |index, lines| {
        output.write(lines, range(index, parts, size).end)?;
        Ok(String::new())
    });
    output.finish(matches!(ended, Ok(MergeOutcome::Whole)))?;
    match ended? {
        MergeOutcome::Stopped => Err(Failure::Reported.into()),
        MergeOutcome::Whole => {
            work.clean_up();
            write_stderr(&format!("wrote {}", out.display()));
            Ok(())
        }
    }
}
