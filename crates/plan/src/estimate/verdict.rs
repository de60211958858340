//! Whether a scenario can run, and if not, why.

use serde::Serialize;

use atlas_core::units::{BYTES_PER_GB, duration_ms};

/// Whether a scenario can run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Verdict {
    /// The scenario can run.
    #[default]
    Fits,
    /// The upper bound of memory exceeds the capacity of a device.
    Memory {
        /// Bytes needed on one device.
        needs: f64,
        /// Capacity of a device, bytes.
        has: f64,
    },
    /// Offloaded states exceed the memory of the host.
    HostMemory {
        /// Bytes needed in one node.
        needs: f64,
        /// Host memory of a node, bytes.
        has: f64,
    },
    /// tp × pp × cp × dp exceeds the number of devices of the target.
    Accelerators {
        /// Devices requested.
        needs: f64,
        /// Devices of the target.
        has: f64,
    },
    /// A number is not divisible by another as required.
    Indivisible {
        /// What is divided: heads, layers, experts, the batch.
        what: &'static str,
        /// Dividend.
        of: f64,
        /// Divisor.
        by: f64,
    },
    /// A sequence cannot be divided evenly over the ranks that share it.
    Sequence {
        /// Tokens of a sequence.
        tokens: f64,
        /// Equal parts into which it must be divided.
        parts: f64,
        /// The knobs that divide it: `2 x cp`.
        #[serde(skip)]
        of: &'static str,
    },
    /// More layers are to be recomputed than the model has.
    RecomputedLayers {
        /// Layers to recompute.
        stated: f64,
        /// Layers of the model.
        layers: f64,
    },
    /// The layers cannot be distributed over the chunks of the pipeline stages.
    Stages {
        /// Layers of the model.
        layers: f64,
        /// Number of them stated for the first and last stage; `None` if neither is stated.
        stated: Option<f64>,
        /// Total number of chunks: pp × vpp.
        chunks: f64,
    },
    /// A bidirectional pipeline (DualPipe) requires an even number of stages, one chunk per stage, and an even number
    /// of micro-batches, at least two per stage.
    Bidirectional {
        /// Micro-batches per step.
        micro_batches: f64,
        /// Pipeline stages.
        stages: f64,
    },
    /// The accelerator does not support matrix multiplication in this format.
    Format {
        /// The format.
        format: &'static str,
        /// A supported format, or an empty string.
        instead: &'static str,
    },
    /// The software has no kernels for weights in this format on this accelerator.
    SoftwareFormat {
        /// The format.
        format: &'static str,
        /// A format that the accelerator supports, or an empty string.
        instead: &'static str,
    },
    /// The software or the accelerator does not support a KV cache in this format.
    CacheFormat {
        /// The format.
        format: &'static str,
        /// Whether the software would support it on other accelerators.
        accelerator: bool,
    },
    /// The nodes of a rack draw more than its power limit, even at the lowest power cap.
    RackPower {
        /// Nodes in a rack.
        nodes: f64,
        /// Power that they draw, W.
        needs: f64,
        /// Power limit of the rack, W.
        has: f64,
    },
    /// Sequences exceed the maximum length of the model.
    Context {
        /// Tokens of a sequence, prompt and output.
        #[serde(rename = "asked")]
        requested: f64,
        /// Maximum sequence length of the model.
        most: f64,
    },
    /// The prompt has no tokens; in training, the sequence has none.
    NoTokens,
    /// The maximum output length is below the mean.
    OutputLimit {
        /// Maximum output length, tokens.
        limit: f64,
        /// Mean output length, tokens.
        mean: f64,
    },
    /// Requests to a decoder generate no token, although the load is not one of prompts only.
    NoOutput,
    /// The load only decodes, but the model generates nothing.
    NoDecode,
    /// The prefill pool does not consist of whole replicas, has none, or leaves none for decoding.
    PrefillPool {
        /// Accelerators requested for the prefill pool.
        #[serde(rename = "asked")]
        requested: f64,
        /// Accelerators per replica.
        replica: f64,
        /// Total number of replicas.
        replicas: f64,
        /// Nearest possible size below and above, accelerators.
        nearest: [Option<f64>; 2],
    },
    /// More nodes are slow than the job has.
    SlowNodes {
        /// Slow nodes requested.
        #[serde(rename = "asked")]
        requested: f64,
        /// Nodes of the job.
        nodes: f64,
    },
    /// The job fails so often that hardly any step is completed.
    NoProgress {
        /// Mean time between failures of the job, s.
        mtbf: f64,
        /// Time of a checkpoint and a restart, s.
        recovery: f64,
        /// Working time between two checkpoints, s. `None`: no checkpoints are taken.
        interval: Option<f64>,
        /// Interval with the least loss, s.
        best: f64,
    },
    /// More requests arrive than the deployment can serve.
    Overload {
        /// Arrival rate, requests/s.
        offered: f64,
        /// Maximum rate that can be served, requests/s.
        capacity: f64,
    },
}

impl Verdict {
    /// Whether the scenario can run.
    #[must_use]
    pub fn fits(&self) -> bool {
        matches!(self, Verdict::Fits)
    }

    /// This verdict, or that of a further check if the scenario can run.
    #[must_use]
    pub(crate) fn or(self, further: impl FnOnce() -> Option<Verdict>) -> Verdict {
        if self.fits() { further().unwrap_or(self) } else { self }
    }

    /// Describes the verdict in a few words; see [`Verdict::describe`] for a full sentence.
    #[must_use]
    pub fn brief(&self) -> String {
        match *self {
            Verdict::Fits => "fits".to_owned(),
            Verdict::Memory { needs, has } => format!("{:.1} GB too much", (needs - has) / BYTES_PER_GB),
            Verdict::HostMemory { needs, has } => format!("{:.0} GB too much in the host", 1e-9 * (needs - has)),
            Verdict::Accelerators { needs, .. } => format!("needs {needs} accelerators"),
            Verdict::Indivisible { what, of, by } => format!("{of} {what} / {by}"),
            Verdict::Sequence { tokens, parts, .. } => format!("{tokens} tokens / {parts}"),
            Verdict::RecomputedLayers { layers, .. } => format!("{layers} layers"),
            Verdict::Stages { layers, chunks, .. } => format!("{layers} layers / {chunks} chunks"),
            Verdict::Bidirectional { micro_batches, .. } => format!("{micro_batches} micro-batches"),
            Verdict::Format { format, .. } | Verdict::SoftwareFormat { format, .. } => format!("no {format}"),
            Verdict::CacheFormat { format, .. } => format!("no {format} cache"),
            Verdict::RackPower { needs, has, .. } => format!("{:.1} kW too much", (needs - has) * 1e-3),
            Verdict::Context { most, .. } => format!("over {most} tokens"),
            Verdict::NoTokens => "no tokens".to_owned(),
            Verdict::NoOutput => "no output".to_owned(),
            Verdict::NoDecode => "no decode".to_owned(),
            Verdict::OutputLimit { limit, .. } => format!("over {limit} tokens"),
            Verdict::PrefillPool { .. } => "prefill pool".to_owned(),
            Verdict::SlowNodes { nodes, .. } => format!("{nodes} nodes"),
            Verdict::NoProgress { .. } => "no progress".to_owned(),
            Verdict::Overload { .. } => "overloaded".to_owned(),
        }
    }

    /// Describes the verdict as text, without advice.
    #[must_use]
    pub fn describe(&self) -> String {
        match *self {
            Verdict::Fits => "fits".to_owned(),
            Verdict::Memory { needs, has } => {
                let (needs, has) = (needs / BYTES_PER_GB, has / BYTES_PER_GB);
                let over = needs - has;
                format!("does not fit: needs {needs:.1} GB of {has:.1} GB per device, {over:.1} GB too much")
            }
            Verdict::HostMemory { needs, has } => format!(
                "offloaded states need {:.0} GB of host memory per node, which has {:.0} GB",
                1e-9 * needs,
                1e-9 * has
            ),
            Verdict::Accelerators { needs, has } => {
                format!("tp × pp × cp × dp needs {needs} accelerators; the target has {has}")
            }
            Verdict::Indivisible { what, of, by } => format!("{of} {what} cannot be divided by {by}"),
            Verdict::Sequence { tokens, parts, of } => {
                format!("sequences of {tokens} tokens cannot be divided into {parts} equal parts ({of})")
            }
            Verdict::RecomputedLayers { stated, layers } => {
                format!("recompute_layers is {stated}, but the model has {layers} layers")
            }
            Verdict::Stages { layers, stated: None, chunks } => format!(
                "{layers} layers are too few for {chunks} chunks (pp × vpp): at most {} chunks, with no layers in the first and last",
                layers + 2.0
            ),
            Verdict::Stages { layers, stated: Some(stated), chunks } => format!(
                "{layers} layers, {stated} of them on the specified first and last stages, do not divide evenly over \
                 {chunks} chunks (pp × vpp)"
            ),
            Verdict::Bidirectional { micro_batches, stages } => format!(
                "dualpipe requires even pp, vpp 1, and an even number of at least {} micro-batches; found \
                 {micro_batches} over {stages} stages",
                2.0 * stages
            ),
            Verdict::Format { format, instead: "" } => format!("the accelerator does not support {format}"),
            Verdict::Format { format, instead } => {
                format!("the accelerator does not support {format}; it supports {instead}")
            }
            Verdict::SoftwareFormat { format, instead: "" } => {
                format!("the software has no kernels for {format} on this accelerator")
            }
            Verdict::SoftwareFormat { format, instead } => {
                format!("the software has no kernels for {format} on this accelerator; use {instead}")
            }
            Verdict::CacheFormat { format, accelerator } => {
                let what = if accelerator { "accelerator" } else { "software" };
                format!("the {what} does not support a KV cache in {format} (kv_precision); use bf16 or another format")
            }
            Verdict::RackPower { nodes, needs, has } => format!(
                "{nodes:.0} nodes draw {:.1} kW even at the lowest power cap, but a rack has {:.1} kW",
                needs * 1e-3,
                has * 1e-3
            ),
            Verdict::Context { requested, most } => {
                format!("sequences of {requested} tokens exceed the model's maximum of {most}")
            }
            Verdict::NoTokens => "prompt is 0: expected at least 1 token".to_owned(),
            Verdict::OutputLimit { limit, mean } => {
                format!("outputs have {mean} tokens on average (generate), but at most {limit} (generate_max)")
            }
            Verdict::NoOutput => {
                "generate is 0: expected at least 1 token, or load prefill-only to process only prompts".to_owned()
            }
            Verdict::NoDecode => "load is decode-only, but the model generates nothing".to_owned(),
            Verdict::PrefillPool { requested, replica, nearest: [None, None], replicas } => format!(
                "prefill_accelerators={requested} is not possible: a replica needs {replica} accelerators, and at least one of \
                 {replicas} replicas must prefill and one decode"
            ),
            Verdict::PrefillPool { requested, replica, nearest, .. } => {
                let possible: Vec<String> = nearest.iter().flatten().map(f64::to_string).collect();
                format!(
                    "prefill_accelerators={requested} is not possible: a replica needs {replica} accelerators, and at least \
                     one must decode; possible: {}",
                    possible.join(" or ")
                )
            }
            Verdict::SlowNodes { requested, nodes } => {
                format!("slow_nodes is {requested}, but the job has {nodes} nodes")
            }
            // With shorter intervals, work would be saved before the next failure.
            Verdict::NoProgress { mtbf, interval: Some(interval), best, .. } if interval > mtbf && best < mtbf => {
                format!(
                    "makes no progress: fails every {}, but checkpoints are {} apart; the best checkpoint_interval_s is about \
                 {best:.0}",
                    duration_ms(1e3 * mtbf),
                    duration_ms(1e3 * interval)
                )
            }
            Verdict::NoProgress { mtbf, recovery, .. } => format!(
                "makes no progress: fails every {}, a checkpoint and a restart take {}",
                duration_ms(1e3 * mtbf),
                duration_ms(1e3 * recovery)
            ),
            Verdict::Overload { offered, capacity } => {
                format!(
                    "overload: {offered:.3} requests/s arrive, but at most {capacity:.3} can be served, so the queue grows without bound"
                )
            }
        }
    }
}
