//! A recorded training step as tasks with dependencies: traces of the PyTorch profiler (Kineto), and Chakra execution
//! traces.

mod chakra;
mod kineto;

use std::borrow::Cow;
use std::io::Read as _;

use flate2::read::GzDecoder;

/// Collective and point-to-point operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collective {
    /// All ranks receive the sum.
    AllReduce,
    /// All ranks receive all parts.
    AllGather,
    /// Each rank receives a part of the sum.
    ReduceScatter,
    /// Each rank sends a part to each.
    AllToAll,
    /// All ranks receive the data of one.
    Broadcast,
    /// One rank sends to another.
    PointToPoint,
}

impl Collective {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Collective::AllReduce => "all-reduce",
            Collective::AllGather => "all-gather",
            Collective::ReduceScatter => "reduce-scatter",
            Collective::AllToAll => "all-to-all",
            Collective::Broadcast => "broadcast",
            Collective::PointToPoint => "point to point",
        }
    }

    /// The collective that a library's name denotes: `allreduce`, `_allgather_base`, `ncclDevKernel_SendRecv`.
    fn named(word: &str) -> Option<Collective> {
        let word: String = word.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let known = [
            ("allreduce", Collective::AllReduce),
            ("allgather", Collective::AllGather),
            ("reducescatter", Collective::ReduceScatter),
            ("alltoall", Collective::AllToAll),
            ("broadcast", Collective::Broadcast),
            ("send", Collective::PointToPoint),
            ("recv", Collective::PointToPoint),
        ];
        known.into_iter().find(|(name, _)| word.contains(name)).map(|(_, collective)| collective)
    }
}

/// Kinds of tasks.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskKind {
    /// Matrix multiplications and attention: bound by the matrix units.
    Matrix,
    /// Other kernels: bound by memory.
    Elementwise,
    /// Work described by its amount, in a trace without times.
    Work {
        /// Floating-point operations.
        flops: f64,
        /// Bytes of its tensors.
        bytes: f64,
    },
    /// Copies to, from or within memories.
    Copy,
    /// Communication.
    Collective {
        /// The operation.
        what: Collective,
        /// Bytes, counted as nccl-tests do; `None` if the trace does not state them.
        bytes: Option<f64>,
        /// Participating ranks; `None` if the trace does not state them.
        ranks: Option<f64>,
        /// Distance between these ranks.
        stride: f64,
    },
}

/// One task of the step.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: TaskKind,
    /// The stream that it ran on, which runs one task at a time; `None` if it needs no stream.
    pub lane: Option<u32>,
    /// Duration, s; 0 if it was not measured.
    pub seconds: f64,
    /// Delay by the host between the end of its dependencies and its start, s.
    pub delay: f64,
    /// Dependencies, as indices into the list.
    pub after: Vec<u32>,
}

/// A recorded step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepTrace {
    /// Its format.
    pub format: &'static str,
    /// Its tasks.
    pub tasks: Vec<Task>,
    /// The accelerator that it ran on, and its memory in GB.
    pub device: Option<(String, Option<f64>)>,
    /// The rank that recorded it, and the number of ranks.
    pub rank: Option<(u32, u32)>,
    /// Steps in the trace; the one of median length is taken.
    pub steps: usize,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Maximum tasks of a step.
const MOST_TASKS: usize = 4_000_000;

/// Maximum bytes of a trace, unpacked.
const MOST_BYTES: u64 = 1 << 30;

/// Reads a trace, packed with gzip or not.
///
/// # Errors
/// Neither format, or no task that ran on an accelerator.
pub fn read(bytes: &[u8]) -> Result<StepTrace, String> {
    let mut text = Cow::Borrowed(bytes);
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        let read = GzDecoder::new(bytes).take(MOST_BYTES + 1).read_to_end(&mut unpacked);
        read.map_err(|error| format!("gzip: {error}"))?;
        text = Cow::Owned(unpacked);
    }
    if text.len() as u64 > MOST_BYTES {
        return Err(format!("larger than {MOST_BYTES} bytes; profile fewer steps"));
    }
    let first = text.iter().copied().find(|byte| !byte.is_ascii_whitespace());
    let trace = match first {
        Some(b'{' | b'[') => kineto::read(&text)?,
        _ => chakra::read(&text)?,
    };
    match trace.tasks.len() {
        0 => Err(format!("{}: no task that ran on an accelerator", trace.format)),
        n if n > MOST_TASKS => Err(format!("{}: {n} tasks; at most {MOST_TASKS} are replayed", trace.format)),
        _ => Ok(trace),
    }
}

/// Whether a kernel multiplies matrices, by the names that libraries give such kernels.
fn is_matrix(name: &str) -> bool {
    const WORDS: [&str; 15] = [
        "gemm",
        "cutlass",
        "xmma",
        "nvjet",
        "cublas",
        "wgmma",
        "flash",
        "fmha",
        "attention",
        "attn",
        "cijk_",
        "conv",
        "matmul",
        "_mma",
        "mha_",
    ];
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests;
