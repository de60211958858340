//! The predecessor dashboard's estimator: plain inputs to plain answers, reproduced from its published behaviour to 1e-9.
//!
//! Faithful also where it is weak, since people carry its figures over: the work of a step counts the micro-batch and
//! its tokens the global batch, devices do not divide the work, GB and GiB are mixed. [`crate::engine::notes`] and
//! [`super::contrast`] say so beside the numbers. Two of its thresholds are known only within bounds, see [`BALANCED`].

/// Bytes of a gibibyte: it calls these GB.
pub const GIB: f64 = 1_073_741_824.0;
/// Utilisation that it starts from on TPUs.
pub const TPU_MFU: f64 = 0.55;
/// Utilisation that it starts from on everything else.
pub const BASE_MFU: f64 = 0.35;
/// Factor on it where memory is fuller than [`CROWDED`].
pub const CROWDED_FACTOR: f64 = 0.7;
/// Factor on it with tensor parallelism, whatever its degree.
pub const TENSOR_FACTOR: f64 = 0.93;
/// Factor on it with activation checkpointing.
pub const CHECKPOINT_FACTOR: f64 = 0.95;
/// Per cent of memory in use above which it is crowded, and named the bottleneck.
pub const CROWDED: f64 = 95.0;
/// Per cent of a step in communication: up to the first it is compute-bound, above the second network-bound. The
/// predecessor cases place the first between 15.1 and 28.6 and the second between 30.5 and 55.4; round numbers in between.
pub const BALANCED: (f64, f64) = (20.0, 40.0);
/// Tensor parallelism above which it warns.
const WIDE_TENSOR: f64 = 8.0;
/// Data parallelism above which it warns.
const WIDE_DATA: f64 = 512.0;
/// Utilisation below which it warns.
const LOW_MFU: f64 = 0.3;
/// Layers that it takes by default.
const LAYERS: f64 = 32.0;

/// What it is asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Input {
    /// Parameters, experts and all.
    pub parameters: f64,
    /// Hidden size; 0 by default.
    pub hidden: f64,
    /// Layers; 0 by default.
    pub layers: f64,
    /// Tokens of a sequence.
    pub context: f64,
    /// Bytes of a number.
    pub width: f64,
    /// Sequences of a step.
    pub batch: f64,
    /// Sequences of a micro-batch; 0 means the whole batch.
    pub micro: f64,
    /// Data-parallel replicas.
    pub dp: f64,
    /// Tensor-parallel ranks.
    pub tp: f64,
    /// Pipeline stages.
    pub pp: f64,
    /// Whether activations are computed again.
    pub checkpointing: bool,
    /// Dense rate in 16 bit of one device, TFLOP/s: it is used for every precision.
    pub tflops: f64,
    /// Memory of one device, GB.
    pub memory_gb: f64,
    /// Bandwidth of its links, GB/s.
    pub link_gb_per_sec: f64,
    /// Price of one device, USD/h.
    pub usd_per_hour: f64,
    /// Whether it is a TPU.
    pub tpu: bool,
    /// Whether it is a GPU: only there it warns of wide tensor parallelism.
    pub gpu: bool,
}

/// What bounds a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bottleneck {
    /// Arithmetic.
    Compute,
    /// Memory; its capacity, in truth.
    Memory,
    /// The all-reduce.
    Network,
    /// Nothing in particular.
    Balanced,
}

impl Bottleneck {
    /// The dashboard's word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Bottleneck::Compute => "compute",
            Bottleneck::Memory => "memory_bandwidth",
            Bottleneck::Network => "network",
            Bottleneck::Balanced => "balanced",
        }
    }
}

/// What it answers. Its "GB" of memory are GiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// FLOPs of a step, by its count.
    pub flops: f64,
    /// Utilisation.
    pub mfu: f64,
    /// Time of the arithmetic, ms.
    pub compute_ms: f64,
    /// Time of the all-reduce, ms.
    pub all_reduce_ms: f64,
    /// Tokens per second.
    pub tokens_per_sec: f64,
    /// Weights and gradients, GiB.
    pub model_gib: f64,
    /// Optimizer states, GiB.
    pub optimizer_gib: f64,
    /// Activations, GiB.
    pub activation_gib: f64,
    /// GiB needed over GB there are, per cent.
    pub memory_percent: f64,
    /// Price of all devices, USD/h.
    pub usd_per_hour: f64,
    /// Price of a million tokens, USD.
    pub usd_per_million: f64,
    /// Share of the all-reduce in a step, per cent.
    pub communication_percent: f64,
    /// What bounds it.
    pub bottleneck: Bottleneck,
}

impl Input {
    /// Devices that it pays for.
    #[must_use]
    pub fn devices(&self) -> f64 {
        self.dp * self.tp * self.pp
    }

    /// Sequences whose work it counts.
    #[must_use]
    pub fn worked(&self) -> f64 {
        if self.micro > 0.0 { self.micro } else { self.batch }
    }

    /// FLOPs of a token: six for each parameter, and a second time twelve for each layer and square of the width.
    #[must_use]
    pub fn flops_per_token(&self) -> f64 {
        6.0 * self.parameters + 12.0 * self.layers * self.hidden * self.hidden
    }

    /// Utilisation that it starts from.
    #[must_use]
    pub fn base_mfu(&self) -> f64 {
        if self.tpu { TPU_MFU } else { BASE_MFU }
    }

    /// Layers in force.
    #[must_use]
    pub fn depth(&self) -> f64 {
        if self.layers > 0.0 { self.layers } else { LAYERS }
    }

    /// Hidden size in force where memory is reckoned: that of a layer of four square matrices, by default.
    #[must_use]
    pub fn breadth(&self) -> f64 {
        if self.hidden > 0.0 { self.hidden } else { (self.parameters / self.depth() / 4.0).sqrt() }
    }
}

/// Answers.
#[must_use]
pub fn estimate(i: &Input) -> Answer {
    let flops = i.flops_per_token() * (i.worked() * i.context);
    let weights = i.parameters * i.width / GIB / i.tp;
    let (model_gib, optimizer_gib) = (2.0 * weights, 2.0 * weights);
    let kept = if i.checkpointing { 12.0 / i.depth().sqrt() } else { 12.0 };
    let activation_gib = i.worked() * i.context * i.breadth() * i.depth() * kept * i.width / GIB / i.pp;
    let memory_percent = (model_gib + optimizer_gib + activation_gib) / i.memory_gb * 100.0;

    let factor = |holds: bool, factor: f64| if holds { factor } else { 1.0 };
    let mfu = i.base_mfu()
        * factor(memory_percent > CROWDED, CROWDED_FACTOR)
        * factor(i.tp > 1.0, TENSOR_FACTOR)
        * factor(i.checkpointing, CHECKPOINT_FACTOR);
    let compute_ms = flops / (i.tflops * 1e12 * mfu) * 1000.0;
    let all_reduce_ms =
        if i.dp > 1.0 { 2.0 * model_gib * (i.dp - 1.0) / i.dp / i.link_gb_per_sec * 1000.0 } else { 0.0 };
    let step_ms = compute_ms + all_reduce_ms;
    let tokens_per_sec = i.batch * i.context / (step_ms / 1000.0);
    let usd_per_hour = i.usd_per_hour * i.devices();
    let communication_percent = all_reduce_ms / step_ms * 100.0;
    let bottleneck = if memory_percent > CROWDED {
        Bottleneck::Memory
    } else if communication_percent > BALANCED.1 {
        Bottleneck::Network
    } else if communication_percent < BALANCED.0 {
        Bottleneck::Compute
    } else {
        Bottleneck::Balanced
    };
    Answer {
        flops,
        mfu,
        compute_ms,
        all_reduce_ms,
        tokens_per_sec,
        model_gib,
        optimizer_gib,
        activation_gib,
        memory_percent,
        usd_per_hour,
        usd_per_million: usd_per_hour / (tokens_per_sec * 3600.0) * 1e6,
        communication_percent,
        bottleneck,
    }
}

impl Answer {
    /// Time of a step, ms.
    #[must_use]
    pub fn step_ms(&self) -> f64 {
        self.compute_ms + self.all_reduce_ms
    }

    /// Memory that it needs, GiB.
    #[must_use]
    pub fn total_gib(&self) -> f64 {
        self.model_gib + self.optimizer_gib + self.activation_gib
    }

    /// What it warns of, in its order.
    #[must_use]
    pub fn warnings(&self, i: &Input) -> Vec<&'static str> {
        let full = self.memory_percent > 100.0;
        [
            (full, "out of memory: a smaller micro-batch or activation checkpointing would help"),
            (!full && self.memory_percent > CROWDED, "memory is nearly full: a smaller micro-batch would help"),
            (i.gpu && i.tp > WIDE_TENSOR, "tensor parallelism this wide may spend much on communication"),
            (i.dp > WIDE_DATA, "data parallelism this wide needs much bandwidth between devices"),
            (self.mfu < LOW_MFU, "low utilisation: look at memory and parallelism"),
        ]
        .into_iter()
        .filter_map(|(holds, described)| holds.then_some(described))
        .collect()
    }
}
