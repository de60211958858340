//! Whether a scenario can run, and why not.

use serde::Serialize;

use atlas_core::units::MEMORY_GB;

/// Whether a scenario can run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Verdict {
    /// It can.
    #[default]
    Fits,
    /// The upper bound of memory exceeds the device.
    Memory {
        /// Bytes needed on one device.
        needs: f64,
        /// Bytes it has.
        has: f64,
    },
    /// tp × pp × cp × dp requests more devices than the target has.
    Accelerators {
        /// Devices requested.
        needs: f64,
        /// Devices there are.
        has: f64,
    },
    /// A number does not divide another as it must.
    Indivisible {
        /// What must be divided: heads, layers, experts, the batch.
        what: &'static str,
        /// How many there are.
        of: f64,
        /// By how many.
        by: f64,
    },
    /// The layers do not fill the chunks of the pipeline's stages.
    Stages {
        /// Layers of the model.
        layers: f64,
        /// Of which those on the first and last stage are stated to be; `None` if neither is.
        stated: Option<f64>,
        /// Chunks of all stages: pp × vpp.
        chunks: f64,
    },
    /// A pipeline that is entered from both ends needs an even number of stages, one chunk a stage, and an even number of
    /// micro-batches, two for each stage at least.
    TwoWays {
        /// Micro-batches of a step.
        micro_batches: f64,
        /// Pipeline stages.
        stages: f64,
    },
    /// The accelerator does not multiply in this format.
    Format {
        /// The format.
        format: &'static str,
        /// A format that it multiplies in, or an empty string.
        instead: &'static str,
    },
    /// The software has no kernels for weights of this format on this accelerator.
    SoftwareFormat {
        /// The format.
        format: &'static str,
        /// A format that the accelerator multiplies in, or an empty string.
        instead: &'static str,
    },
    /// Sequences are longer than the model has positions.
    Context {
        /// Tokens of a sequence, prompt and output together.
        #[serde(rename = "asked")]
        requested: f64,
        /// Positions of the model.
        most: f64,
    },
    /// There is nothing to read: the prompt has no token, and in training the whole sequence has none.
    NoTokens,
    /// The pool that prefills holds no whole replica, or leaves none to decode.
    PrefillPool {
        /// Accelerators requested.
        #[serde(rename = "asked")]
        requested: f64,
        /// Accelerators of a replica.
        replica: f64,
        /// Replicas in all.
        replicas: f64,
    },
    /// More requests arrive than the deployment can serve.
    Overload {
        /// Requests per second that arrive.
        offered: f64,
        /// Requests per second that can be served.
        capacity: f64,
    },
}

impl Verdict {
    /// Whether it can run.
    #[must_use]
    pub fn fits(&self) -> bool {
        matches!(self, Verdict::Fits)
    }

    /// The same as [`Verdict::describe`] in a few words.
    #[must_use]
    pub fn brief(&self) -> String {
        match *self {
            Verdict::Fits => "fits".to_owned(),
            Verdict::Memory { needs, has } => format!("{:.1} GB too much", (needs - has) / MEMORY_GB),
            Verdict::Accelerators { needs, .. } => format!("needs {needs} accelerators"),
            Verdict::Indivisible { what, of, by } => format!("{of} {what} / {by}"),
            Verdict::Stages { layers, chunks, .. } => format!("{layers} layers / {chunks} chunks"),
            Verdict::TwoWays { micro_batches, .. } => format!("{micro_batches} micro-batches"),
            Verdict::Format { format, .. } | Verdict::SoftwareFormat { format, .. } => format!("no {format}"),
            Verdict::Context { most, .. } => format!("over {most} tokens"),
            Verdict::NoTokens => "no tokens".to_owned(),
            Verdict::PrefillPool { .. } => "prefill pool".to_owned(),
            Verdict::Overload { .. } => "overloaded".to_owned(),
        }
    }

    /// In words, without advice.
    #[must_use]
    pub fn describe(&self) -> String {
        match *self {
            Verdict::Fits => "fits".to_owned(),
            Verdict::Memory { needs, has } => {
                let (needs, has) = (needs / MEMORY_GB, has / MEMORY_GB);
                let over = needs - has;
                format!("does not fit: needs {needs:.1} GB of {has:.1} GB per device, {over:.1} GB too much")
            }
            Verdict::Accelerators { needs, has } => {
                format!("tp × pp × cp × dp needs {needs} accelerators; the target has {has}")
            }
            Verdict::Indivisible { what, of, by } => format!("{of} {what} cannot be divided by {by}"),
            Verdict::Stages { layers, stated: None, chunks } => format!(
                "{layers} layers are too few for {chunks} chunks (pp × vpp): at most {} chunks, with no layers in the first and last",
                layers + 2.0
            ),
            Verdict::Stages { layers, stated: Some(stated), chunks } => format!(
                "{layers} layers, {stated} of them on the specified first and last stages, do not divide evenly over \
                 {chunks} chunks (pp × vpp)"
            ),
            Verdict::TwoWays { micro_batches, stages } => format!(
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
            Verdict::Context { requested, most } => {
                format!("sequences of {requested} tokens exceed the model's maximum of {most}")
            }
            Verdict::NoTokens => "prompt is 0: expected at least 1 token".to_owned(),
            Verdict::PrefillPool { requested, replica, replicas } => format!(
                "prefill_accelerators={requested} is not possible: a replica needs {replica} accelerators, and at least one of \
                 {replicas} replicas must prefill and one decode"
            ),
            Verdict::Overload { offered, capacity } => {
                format!(
                    "overload: {offered:.3} requests/s arrive, but at most {capacity:.3} can be served, so the queue grows without bound"
                )
            }
        }
    }
}
