//! The predecessor dashboard's estimator, reproduced from its published behavior to 1e-9.
//!
//! Its errors are reproduced as well, since users compare with its results: the FLOPs of a step are those of a
//! micro-batch but its tokens are those of the global batch, the work is not divided among the devices, and GB and GiB
//! are mixed. Two of its thresholds are known only within bounds, see [`COMMUNICATION_THRESHOLDS`].

use crate::number::Number;

/// Bytes of a gibibyte, which the dashboard calls GB.
pub const GIB: f64 = 1_073_741_824.0;
/// Base utilization of TPUs.
pub const TPU_MFU: f64 = 0.55;
/// Base utilization of all other devices.
pub const BASE_MFU: f64 = 0.35;
/// Factor on the utilization if memory use is above [`HIGH_MEMORY_PERCENT`].
pub const HIGH_MEMORY_FACTOR: f64 = 0.7;
/// Factor on the utilization with tensor parallelism of any degree.
pub const TENSOR_PARALLEL_FACTOR: f64 = 0.93;
/// Factor on the utilization with activation checkpointing.
pub const CHECKPOINT_FACTOR: f64 = 0.95;
/// Memory use, in percent, above which utilization drops and memory is reported as the bottleneck.
pub const HIGH_MEMORY_PERCENT: f64 = 95.0;
/// Share of communication in a step, in percent: below the first value the step is compute-bound, above the second it
/// is network-bound. The predecessor's cases show that the first is between 15.1 and 28.6 and the second between 30.5
/// and 55.4; these are round numbers in between.
pub const COMMUNICATION_THRESHOLDS: (f64, f64) = (20.0, 40.0);
/// Tensor parallelism above which the dashboard warns.
const TENSOR_PARALLEL_WARNING: f64 = 8.0;
/// Data parallelism above which the dashboard warns.
const DATA_PARALLEL_WARNING: f64 = 512.0;
/// Utilization below which the dashboard warns.
const MFU_WARNING: f64 = 0.3;
/// Default number of layers.
const DEFAULT_LAYERS: f64 = 32.0;

/// Inputs of the estimator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Input<N = f64> {
    /// Total parameters, including all experts.
    pub parameters: N,
    /// Hidden size; 0 if unknown.
    pub hidden: N,
    /// Layers; 0 if unknown.
    pub layers: N,
    /// Tokens per sequence.
    pub context: N,
    /// Bytes per parameter or activation.
    pub bytes_per_value: N,
    /// Sequences per step.
    pub batch: N,
    /// Sequences per micro-batch; 0 stands for the whole batch.
    pub micro_batch: N,
    /// Data-parallel replicas.
    pub dp: N,
    /// Tensor-parallel ranks.
    pub tp: N,
    /// Pipeline stages.
    pub pp: N,
    /// Whether activations are recomputed.
    pub checkpointing: bool,
    /// Dense 16-bit peak of one device, TFLOP/s. It is used for every precision.
    pub tflops: N,
    /// Memory of one device, GB.
    pub memory_gb: N,
    /// Interconnect bandwidth of one device, GB/s.
    pub link_gb_per_sec: N,
    /// Price of one device, USD/h.
    pub usd_per_hour: N,
    /// Whether the device is a TPU.
    pub tpu: bool,
    /// Whether the device is a GPU. The warning about high tensor parallelism applies to GPUs only.
    pub gpu: bool,
}

/// Bottleneck of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bottleneck {
    /// Arithmetic.
    Compute,
    /// Memory capacity, which the dashboard calls `memory_bandwidth`.
    Memory,
    /// The all-reduce.
    Network,
    /// Neither computation nor communication dominates.
    Balanced,
}

impl Bottleneck {
    /// Returns the dashboard's name of the bottleneck.
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

/// Results of the estimator. Memory is in GiB, which the dashboard labels GB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer<N = f64> {
    /// FLOPs of a step, as the dashboard counts them.
    pub flops: N,
    /// Model FLOPs utilization.
    pub mfu: N,
    /// Compute time of a step, ms.
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
    /// Needed memory in GiB over the device's memory in GB, percent.
    pub memory_percent: N,
    /// Price of all devices, USD/h.
    pub usd_per_hour: N,
    /// Price per million tokens, USD.
    pub usd_per_million: N,
    /// Share of the all-reduce in the time of a step, percent.
    pub communication_percent: N,
    /// Bottleneck of the step.
    pub bottleneck: Bottleneck,
}

impl<N: Number> Input<N> {
    /// Returns the number of devices that are paid for: DP x TP x PP.
    #[must_use]
    pub fn devices(&self) -> N {
        (self.dp.clone() * self.tp.clone() * self.pp.clone()).named("N", "number of devices", "")
    }

    /// Returns the number of sequences that FLOPs and activations are counted for: the micro-batch, or the whole batch
    /// if `micro_batch` is 0.
    #[must_use]
    pub fn computed_sequences(&self) -> N {
        if self.micro_batch.value() > 0.0 { self.micro_batch.clone() } else { self.batch.clone() }
    }

    /// Returns the FLOPs per token: 6 per parameter, plus 12 `hidden`² per layer, although the parameters already
    /// include the layers.
    #[must_use]
    pub fn flops_per_token(&self) -> N {
        let layers = N::from(12.0) * self.layers.clone() * self.hidden.clone() * self.hidden.clone();
        let all = N::from(6.0) * self.parameters.clone() + layers;
        all.named("F", "FLOPs per token, as the dashboard counts them", "")
    }

    /// Returns the utilization before the factors for memory, tensor parallelism and checkpointing.
    #[must_use]
    pub fn base_mfu(&self) -> f64 {
        if self.tpu { TPU_MFU } else { BASE_MFU }
    }

    /// Returns the number of layers, by default `DEFAULT_LAYERS`.
    #[must_use]
    pub fn layers_or_default(&self) -> N {
        if self.layers.value() > 0.0 {
            return self.layers.clone();
        }
        N::given("L", "default number of layers", "", DEFAULT_LAYERS, "constant of the dashboard")
    }

    /// Returns the hidden size for activation memory. If unknown, it is derived from the parameters, as if a layer
    /// consisted of four square matrices.
    #[must_use]
    pub fn hidden_or_derived(&self) -> N {
        if self.hidden.value() > 0.0 {
            return self.hidden.clone();
        }
        let guess = (self.parameters.value() / self.layers_or_default().value() / 4.0).sqrt();
        N::given("h", "hidden size, derived from the parameters", "", guess, "a layer counts as four square matrices")
    }
}

/// Computes the estimate.
#[must_use]
pub fn estimate<N: Number>(i: &Input<N>) -> Answer<N> {
    let number = |value: f64| N::from(value);
    let tokens = i.computed_sequences() * i.context.clone();
    let flops = (i.flops_per_token() * tokens).named("W", "FLOPs per step, counted for one micro-batch", "");
    let weights = || i.parameters.clone() * i.bytes_per_value.clone() / number(GIB) / i.tp.clone();
    let model_gib = (number(2.0) * weights()).named("M_model", "weights and gradients, GiB", "GiB");
    let optimizer_gib = (number(2.0) * weights()).named("M_opt", "two optimizer states, GiB", "GiB");
    let kept = if i.checkpointing { 12.0 / i.layers_or_default().value().sqrt() } else { 12.0 };
    let name = "stored values per token, layer and hidden element: 12, or 12/√L with checkpointing";
    let kept = N::given("k", name, "", kept, "rule of the dashboard");
    let activations = i.computed_sequences()
        * i.context.clone()
        * i.hidden_or_derived()
        * i.layers_or_default()
        * kept
        * i.bytes_per_value.clone();
    let activation_gib = (activations / number(GIB) / i.pp.clone()).named("M_act", "activations, GiB", "GiB");
    let total = model_gib.clone() + optimizer_gib.clone() + activation_gib.clone();
    let memory_percent = total / i.memory_gb.clone() * number(100.0);

    let factor = |symbol: &'static str, name: &'static str, holds: bool, factor: f64| {
        N::given(symbol, name, "", if holds { factor } else { 1.0 }, "factor of the dashboard")
    };
    let name = "base utilization: 55 % on TPUs, 35 % on other devices";
    let mfu = N::given("mfu_0", name, "", i.base_mfu(), "constant of the dashboard")
        * factor(
            "k_mem",
            "factor for memory use above 95 %",
            memory_percent.value() > HIGH_MEMORY_PERCENT,
            HIGH_MEMORY_FACTOR,
        )
        * factor("k_tp", "factor for tensor parallelism", i.tp.value() > 1.0, TENSOR_PARALLEL_FACTOR)
        * factor("k_ckpt", "factor for activation checkpointing", i.checkpointing, CHECKPOINT_FACTOR);
    let mfu = mfu.named("MFU", "utilization", "");
    let rate = i.tflops.clone() * number(1e12) * mfu.clone();
    let compute_ms = (flops.clone() / rate * number(1000.0)).named("T_comp", "compute time", "ms");
    let all_reduce_ms = if i.dp.value() > 1.0 {
        let moved = number(2.0) * model_gib.clone() * (i.dp.clone() - number(1.0)) / i.dp.clone();
        let seconds = moved / i.link_gb_per_sec.clone();
        (seconds * number(1000.0)).named("T_comm", "all-reduce of weights and gradients, GiB divided by GB/s", "ms")
    } else {
        N::given("T_comm", "all-reduce, which one replica does not need", "ms", 0.0, "one replica")
    };
    let step_ms = (compute_ms.clone() + all_reduce_ms.clone()).named("T_step", "time of a step", "ms");
    let tokens_per_sec = i.batch.clone() * i.context.clone() / (step_ms.clone() / number(1000.0));
    let usd_per_hour = i.usd_per_hour.clone() * i.devices();
    let communication_percent = all_reduce_ms.clone() / step_ms * number(100.0);
    let bottleneck = if memory_percent.value() > HIGH_MEMORY_PERCENT {
        Bottleneck::Memory
    } else if communication_percent.value() > COMMUNICATION_THRESHOLDS.1 {
        Bottleneck::Network
    } else if communication_percent.value() < COMMUNICATION_THRESHOLDS.0 {
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
    /// Returns the time of a step, ms.
    #[must_use]
    pub fn step_ms(&self) -> N {
        self.compute_ms.clone() + self.all_reduce_ms.clone()
    }

    /// Returns the memory needed per device, GiB.
    #[must_use]
    pub fn total_gib(&self) -> N {
        self.model_gib.clone() + self.optimizer_gib.clone() + self.activation_gib.clone()
    }
}

impl Answer {
    /// Returns the dashboard's warnings, in its order.
    #[must_use]
    pub fn warnings(&self, i: &Input) -> Vec<&'static str> {
        let full = self.memory_percent > 100.0;
        [
            (full, "out of memory: use a smaller micro-batch or activation checkpointing"),
            (!full && self.memory_percent > HIGH_MEMORY_PERCENT, "memory is nearly full: use a smaller micro-batch"),
            (
                i.gpu && i.tp > TENSOR_PARALLEL_WARNING,
                "tensor parallelism above 8 may cause high communication overhead",
            ),
            (i.dp > DATA_PARALLEL_WARNING, "data parallelism above 512 requires high bandwidth between devices"),
            (self.mfu < MFU_WARNING, "low utilization: check memory use and parallelism"),
        ]
        .into_iter()
        .filter_map(|(holds, described)| holds.then_some(described))
        .collect()
    }
}
