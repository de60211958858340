//! The predecessor dashboard's estimator: numbers in, numbers out, reproduced from its published behavior to 1e-9.
//!
//! Its errors are reproduced, too, since users compare with its figures: the work of a step counts the micro-batch and
//! its tokens the global batch, devices do not divide the work, GB and GiB are mixed. Two of its thresholds are known only within bounds, see [`BALANCED`].

use crate::number::Number;

/// Bytes of a gibibyte: it calls these GB.
pub const GIB: f64 = 1_073_741_824.0;
/// Utilization that it starts from on TPUs.
pub const TPU_MFU: f64 = 0.55;
/// Utilization that it starts from on everything else.
pub const BASE_MFU: f64 = 0.35;
/// Factor on it if more of the memory is used than [`CROWDED`].
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
/// Utilization below which it warns.
const LOW_MFU: f64 = 0.3;
/// Layers that it takes by default.
const LAYERS: f64 = 32.0;

/// The input of the estimator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Input<N = f64> {
    /// Parameters, experts and all.
    pub parameters: N,
    /// Hidden size; 0 by default.
    pub hidden: N,
    /// Layers; 0 by default.
    pub layers: N,
    /// Tokens of a sequence.
    pub context: N,
    /// Bytes of a number.
    pub width: N,
    /// Sequences of a step.
    pub batch: N,
    /// Sequences of a micro-batch; 0 means the whole batch.
    pub micro: N,
    /// Data-parallel replicas.
    pub dp: N,
    /// Tensor-parallel ranks.
    pub tp: N,
    /// Pipeline stages.
    pub pp: N,
    /// Whether activations are recomputed.
    pub checkpointing: bool,
    /// Dense rate in 16 bit of one device, TFLOP/s: it is used for every precision.
    pub tflops: N,
    /// Memory of one device, GB.
    pub memory_gb: N,
    /// Bandwidth of its links, GB/s.
    pub link_gb_per_sec: N,
    /// Price of one device, USD/h.
    pub usd_per_hour: N,
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
    /// The dashboard's name.
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

/// Its output. Its "GB" of memory are GiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer<N = f64> {
    /// FLOPs of a step, by its count.
    pub flops: N,
    /// Utilization.
    pub mfu: N,
    /// Time of the arithmetic, ms.
    pub compute_ms: N,
    /// Time of the all-reduce, ms.
    pub all_reduce_ms: N,
    /// Tokens per second.
    pub tokens_per_sec: N,
    /// Weights and gradients, GiB.
    pub model_gib: N,
    /// Optimizer states, GiB.
    pub optimizer_gib: N,
    /// Activations, GiB.
    pub activation_gib: N,
    /// GiB needed over GB there are, per cent.
    pub memory_percent: N,
    /// Price of all devices, USD/h.
    pub usd_per_hour: N,
    /// Price of a million tokens, USD.
    pub usd_per_million: N,
    /// Share of the all-reduce in a step, per cent.
    pub communication_percent: N,
    /// What bounds it.
    pub bottleneck: Bottleneck,
}

impl<N: Number> Input<N> {
    /// Devices in the price.
    #[must_use]
    pub fn devices(&self) -> N {
        (self.dp.clone() * self.tp.clone() * self.pp.clone()).named("N", "devices that are paid for", "")
    }

    /// Sequences whose work it counts.
    #[must_use]
    pub fn worked(&self) -> N {
        if self.micro.value() > 0.0 { self.micro.clone() } else { self.batch.clone() }
    }

    /// FLOPs of a token: six for each parameter, and a second time twelve for each layer and square of the width.
    #[must_use]
    pub fn flops_per_token(&self) -> N {
        let layers = N::from(12.0) * self.layers.clone() * self.hidden.clone() * self.hidden.clone();
        let all = N::from(6.0) * self.parameters.clone() + layers;
        all.named("F", "FLOPs of a token, as it counts them", "")
    }

    /// Utilization that it starts from.
    #[must_use]
    pub fn base_mfu(&self) -> f64 {
        if self.tpu { TPU_MFU } else { BASE_MFU }
    }

    /// Layers in force.
    #[must_use]
    pub fn depth(&self) -> N {
        if self.layers.value() > 0.0 {
            return self.layers.clone();
        }
        N::given("L", "layers, where nothing says how many", "", LAYERS, "a constant of the dashboard's")
    }

    /// Hidden size in force for memory: that of a layer of four square matrices, by default.
    #[must_use]
    pub fn breadth(&self) -> N {
        if self.hidden.value() > 0.0 {
            return self.hidden.clone();
        }
        let guess = (self.parameters.value() / self.depth().value() / 4.0).sqrt();
        N::given("h", "hidden size, guessed", "", guess, "layers of four square matrices")
    }
}

/// Computes the estimate.
#[must_use]
pub fn estimate<N: Number>(i: &Input<N>) -> Answer<N> {
    let number = |value: f64| N::from(value);
    let tokens = i.worked() * i.context.clone();
    let flops = (i.flops_per_token() * tokens).named("W", "FLOPs of a step: those of one micro-batch", "");
    let weights = || i.parameters.clone() * i.width.clone() / number(GIB) / i.tp.clone();
    let model_gib = (number(2.0) * weights()).named("M_model", "weights and gradients, GiB", "GiB");
    let optimizer_gib = (number(2.0) * weights()).named("M_opt", "two optimizer states, GiB", "GiB");
    let kept = if i.checkpointing { 12.0 / i.depth().value().sqrt() } else { 12.0 };
    let name = "numbers kept of each: 12, over √L with checkpointing";
    let kept = N::given("k", name, "", kept, "the dashboard's rule");
    let activations = i.worked() * i.context.clone() * i.breadth() * i.depth() * kept * i.width.clone();
    let activation_gib = (activations / number(GIB) / i.pp.clone()).named("M_act", "activations, GiB", "GiB");
    let total = model_gib.clone() + optimizer_gib.clone() + activation_gib.clone();
    let memory_percent = total / i.memory_gb.clone() * number(100.0);

    let factor = |symbol: &'static str, name: &'static str, holds: bool, factor: f64| {
        N::given(symbol, name, "", if holds { factor } else { 1.0 }, "a factor of the dashboard's")
    };
    let name = "where it starts: 55 % on TPUs, 35 % elsewhere";
    let mfu = N::given("mfu_0", name, "", i.base_mfu(), "a constant of the dashboard's")
        * factor("k_mem", "memory fuller than 95 %", memory_percent.value() > CROWDED, CROWDED_FACTOR)
        * factor("k_tp", "tensor parallelism", i.tp.value() > 1.0, TENSOR_FACTOR)
        * factor("k_ckpt", "activation checkpointing", i.checkpointing, CHECKPOINT_FACTOR);
    let mfu = mfu.named("MFU", "utilization", "");
    let rate = i.tflops.clone() * number(1e12) * mfu.clone();
    let compute_ms = (flops.clone() / rate * number(1000.0)).named("T_comp", "arithmetic", "ms");
    let all_reduce_ms = if i.dp.value() > 1.0 {
        let moved = number(2.0) * model_gib.clone() * (i.dp.clone() - number(1.0)) / i.dp.clone();
        let seconds = moved / i.link_gb_per_sec.clone();
        (seconds * number(1000.0)).named("T_comm", "all-reduce of weights and gradients, in GiB over GB/s", "ms")
    } else {
        N::given("T_comm", "all-reduce: nothing to reduce on one replica", "ms", 0.0, "one replica")
    };
    let step_ms = (compute_ms.clone() + all_reduce_ms.clone()).named("T_step", "time of a step", "ms");
    let tokens_per_sec = i.batch.clone() * i.context.clone() / (step_ms.clone() / number(1000.0));
    let usd_per_hour = i.usd_per_hour.clone() * i.devices();
    let communication_percent = all_reduce_ms.clone() / step_ms * number(100.0);
    let bottleneck = if memory_percent.value() > CROWDED {
        Bottleneck::Memory
    } else if communication_percent.value() > BALANCED.1 {
        Bottleneck::Network
    } else if communication_percent.value() < BALANCED.0 {
        Bottleneck::Compute
    } else {
        Bottleneck::Balanced
    };
    Answer {
        flops,
        mfu,
        compute_ms,
        all_reduce_ms,
        usd_per_million: usd_per_hour.clone() / (tokens_per_sec.clone() * number(3600.0)) * number(1e6),
        tokens_per_sec,
        model_gib,
        optimizer_gib,
        activation_gib,
        memory_percent,
        usd_per_hour,
        communication_percent,
        bottleneck,
    }
}

impl<N: Number> Answer<N> {
    /// Time of a step, ms.
    #[must_use]
    pub fn step_ms(&self) -> N {
        self.compute_ms.clone() + self.all_reduce_ms.clone()
    }

    /// Memory that it needs, GiB.
    #[must_use]
    pub fn total_gib(&self) -> N {
        self.model_gib.clone() + self.optimizer_gib.clone() + self.activation_gib.clone()
    }
}

impl Answer {
    /// Its warnings, in its order.
    #[must_use]
    pub fn warnings(&self, i: &Input) -> Vec<&'static str> {
        let full = self.memory_percent > 100.0;
        [
            (full, "out of memory: a smaller micro-batch or activation checkpointing would help"),
            (!full && self.memory_percent > CROWDED, "memory is nearly full: a smaller micro-batch would help"),
            (i.gpu && i.tp > WIDE_TENSOR, "tensor parallelism this wide may spend much on communication"),
            (i.dp > WIDE_DATA, "data parallelism this wide needs much bandwidth between devices"),
            (self.mfu < LOW_MFU, "low utilization: look at memory and parallelism"),
        ]
        .into_iter()
        .filter_map(|(holds, described)| holds.then_some(described))
        .collect()
    }
}
