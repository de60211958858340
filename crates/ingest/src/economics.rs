//! Metrics derived from a measured run: utilization, cost, energy, memory, and the time to process a number of tokens.
//! The formulas are those of TensorPrimat, whose records are read and written, except where those are wrong.

/// Number of tokens to which costs and times refer.
pub const TRILLION: f64 = 1e12;
/// Share of the memory that a larger batch may fill, as assumed by TensorPrimat.
const MAX_MEMORY_SHARE: f64 = 0.9;

/// Utilization of the peak FLOP rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Utilization {
    /// Model TFLOP/s of the whole run, over all accelerators.
    pub achieved_tflops: f64,
    /// `achieved_tflops` as a percentage of the peak of all accelerators.
    pub mfu_percent: f64,
}

/// MFU with 6 FLOPs per parameter and token (Kaplan et al. 2020, section 2.1), which excludes attention and
/// recomputation. `peak_tflops` is the peak of one accelerator.
#[must_use]
pub fn utilization(tokens_per_second: f64, gpus: f64, parameters: f64, peak_tflops: f64) -> Utilization {
    utilization_from_flops(tokens_per_second, gpus, 6.0 * parameters, peak_tflops)
}

/// Model TFLOP/s of the whole run, with 6 FLOPs per parameter and token.
#[must_use]
pub fn model_tflops(tokens_per_second: f64, parameters: f64) -> f64 {
    tokens_per_second * (6.0 * parameters) / 1e12
}

/// Like [`utilization`], but with a given number of FLOPs per token.
#[must_use]
pub fn utilization_from_flops(
    tokens_per_second: f64,
    gpus: f64,
    flops_per_token: f64,
    peak_tflops: f64,
) -> Utilization {
    let achieved_tflops = tokens_per_second * flops_per_token / 1e12;
    Utilization { achieved_tflops, mfu_percent: achieved_tflops / (peak_tflops * gpus) * 100.0 }
}

/// Cost of processing tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Tokens per dollar.
    pub tokens_per_dollar: f64,
    /// Dollars per 1e12 tokens.
    pub cost_per_trillion_tokens: f64,
}

/// Cost of a run whose accelerators together cost `usd_per_hour`.
#[must_use]
pub fn cost(tokens_per_second: f64, usd_per_hour: f64) -> Cost {
    Cost {
        tokens_per_dollar: tokens_per_second * 3600.0 / usd_per_hour,
        cost_per_trillion_tokens: hours(tokens_per_second, TRILLION) * usd_per_hour,
    }
}

/// Energy spent on tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Energy {
    /// Tokens per watt-hour.
    pub tokens_per_watt_hour: f64,
    /// Kilowatt-hours per 1e12 tokens.
    pub kwh_per_trillion_tokens: f64,
    /// Cost of electricity in dollars per 1e12 tokens.
    pub energy_cost_per_trillion: f64,
}

/// Energy of a run whose accelerators together draw `watts`.
#[must_use]
pub fn energy(tokens_per_second: f64, watts: f64, usd_per_kwh: f64) -> Energy {
    let kwh = hours(tokens_per_second, TRILLION) * watts / 1000.0;
    Energy {
        tokens_per_watt_hour: tokens_per_second * 3600.0 / watts,
        kwh_per_trillion_tokens: kwh,
        energy_cost_per_trillion: kwh * usd_per_kwh,
    }
}

/// Memory use of one accelerator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryUse {
    /// Memory used, in percent of the total.
    pub utilization_percent: f64,
    /// GB per million tokens in the batch of one accelerator.
    pub gb_per_million_tokens: f64,
    /// Unused memory, GB.
    pub headroom_gb: f64,
    /// Largest batch in sequences per accelerator that fills 90 % of the memory, assuming that all memory scales with
    /// the batch.
    pub potential_batch: f64,
}

/// Memory use of an accelerator whose batch has `batch` sequences of `sequence` tokens.
#[must_use]
pub fn memory(used_gb: f64, total_gb: f64, batch: f64, sequence: f64) -> MemoryUse {
    MemoryUse {
        utilization_percent: used_gb / total_gb * 100.0,
        gb_per_million_tokens: used_gb / (batch * sequence) * 1e6,
        headroom_gb: total_gb - used_gb,
        potential_batch: (total_gb * MAX_MEMORY_SHARE / (used_gb / batch)).floor(),
    }
}

/// Hours to process `tokens`.
#[must_use]
pub fn hours(tokens_per_second: f64, tokens: f64) -> f64 {
    tokens / tokens_per_second / 3600.0
}
