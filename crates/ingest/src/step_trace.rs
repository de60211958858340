//! Traces of a recorded training step as tasks with dependencies: traces of the PyTorch profiler (Kineto), and Chakra
//! execution traces.

mod chakra;
mod kineto;

use std::borrow::Cow;
use std::io::Read as _;

use flate2::read::GzDecoder;

/// Collective and point-to-point operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Collective {
    /// Every rank receives the sum.
    AllReduce,
    /// Every rank receives the shards of all ranks.
    AllGather,
    /// Every rank receives one shard of the sum.
    ReduceScatter,
    /// Every rank sends a different part to every rank.
    AllToAll,
    /// Every rank receives the data of one rank.
    Broadcast,
    /// One rank sends data to another.
    PointToPoint,
}

impl Collective {
    /// Returns the name of the operation.
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

    /// Returns the operation denoted by a name in a library: `allreduce`, `_allgather_base`, `ncclDevKernel_SendRecv`.
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

/// Kind of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskKind {
    /// Matrix multiplication or attention, bound by the compute throughput of the matrix units.
    Matrix,
    /// Other kernel, bound by memory bandwidth.
    Elementwise,
    /// Computation described by its amount of work, in a trace without times.
    Work {
        /// Floating-point operations.
        flops: f64,
        /// Bytes of its tensors.
        bytes: f64,
    },
    /// Copy to, from or within device memory.
    Copy,
    /// Collective or point-to-point communication.
    Collective {
        /// The operation.
        what: Collective,
        /// Message size in bytes, as defined by nccl-tests; `None` if the trace does not state it.
        bytes: Option<f64>,
        /// Number of participating ranks; `None` if the trace does not state it.
        ranks: Option<f64>,
        /// Distance between the ranks of the group.
        stride: f64,
    },
}

/// A task of the step.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: TaskKind,
    /// Stream that the task ran on; a stream runs one task at a time. `None` if the task does not occupy a stream.
    pub lane: Option<u32>,
    /// Duration, s; 0 if it was not measured.
    pub seconds: f64,
    /// Delay caused by the host, between the end of the dependencies and the start of the task, s.
    pub delay: f64,
    /// Dependencies, as indices into [`StepTrace::tasks`].
    pub after: Vec<u32>,
}

/// A recorded step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepTrace {
    /// Name of the format.
    pub format: &'static str,
    /// Tasks.
    pub tasks: Vec<Task>,
    /// Name and memory in GB of the accelerator on which the step was recorded.
    pub device: Option<(String, Option<f64>)>,
    /// Rank that recorded the trace, and the number of ranks.
    pub rank: Option<(u32, u32)>,
    /// Number of steps in the trace, of which the one of median duration is used.
    pub steps: usize,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Maximum number of tasks in a step.
const MAX_TASKS: usize = 4_000_000;

/// Maximum size of a trace after decompression, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Parses a trace, which may be compressed with gzip.
///
/// # Errors
/// If the trace has neither format, or no task that ran on an accelerator.
pub fn read(bytes: &[u8]) -> Result<StepTrace, String> {
    let mut text = Cow::Borrowed(bytes);
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut decompressed = Vec::new();
        let read = GzDecoder::new(bytes).take(MAX_BYTES + 1).read_to_end(&mut decompressed);
        read.map_err(|error| format!("gzip: {error}"))?;
        text = Cow::Owned(decompressed);
    }
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("the trace is larger than {MAX_BYTES} bytes after decompression; profile fewer steps"));
    }
    let first = text.iter().copied().find(|byte| !byte.is_ascii_whitespace());
    let trace = match first {
        Some(b'{' | b'[') => kineto::read(&text)?,
        _ => chakra::read(&text)?,
    };
    match trace.tasks.len() {
        0 => Err(format!("{}: the trace contains no tasks of an accelerator", trace.format)),
        n if n > MAX_TASKS => {
            Err(format!("{}: {n} tasks exceed the limit of {MAX_TASKS}; profile fewer steps", trace.format))
        }
        _ => Ok(trace),
    }
}

/// Whether a kernel is a matrix multiplication or attention, judging by its name.
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
