//! Figures derived from a measured run: utilization, cost, energy, memory, time to a budget of tokens. The formulas are
//! those of TensorPrimat, whose records are read and written, except where they are wrong.

/// Tokens that costs and times refer to.
pub const TRILLION: f64 = 1e12;
/// Carbon dioxide of a kilowatt-hour, kg: TensorPrimat's figure, so that its records can be compared.
pub const CO2_KG_PER_KWH: f64 = 0.5;
/// Share of the memory that a larger batch may fill, as TensorPrimat assumes.
const FILLED: f64 = 0.9;

/// Utilization of the peak rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Utilization {
    /// Model TFLOP/s of the whole run.
    pub achieved_tflops: f64,
    /// Achieved over peak, percent.
    pub mfu_percent: f64,
}

/// Model FLOP utilization with 6 FLOPs a parameter and token (Kaplan et al. 2020, section 2.1): attention and
/// recomputation do not count. `peak_tflops` is that of one accelerator.
#[must_use]
pub fn utilization(tokens_per_second: f64, gpus: f64, parameters: f64, peak_tflops: f64) -> Utilization {
    of_flops(tokens_per_second, gpus, 6.0 * parameters, peak_tflops)
}

/// The same for a number of FLOPs a token.
#[must_use]
pub fn of_flops(tokens_per_second: f64, gpus: f64, flops_per_token: f64, peak_tflops: f64) -> Utilization {
    let achieved_tflops = tokens_per_second * flops_per_token / 1e12;
    Utilization { achieved_tflops, mfu_percent: achieved_tflops / (peak_tflops * gpus) * 100.0 }
}

/// What tokens cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Tokens for one dollar.
    pub tokens_per_dollar: f64,
    /// Hours for 1e12 tokens.
    pub hours_per_trillion_tokens: f64,
    /// Dollars for 1e12 tokens.
    pub cost_per_trillion_tokens: f64,
}

/// Cost of a run whose accelerators cost `usd_per_hour` together.
#[must_use]
pub fn cost(tokens_per_second: f64, usd_per_hour: f64) -> Cost {
    let hours = hours(tokens_per_second, TRILLION);
    Cost {
        tokens_per_dollar: tokens_per_second * 3600.0 / usd_per_hour,
        hours_per_trillion_tokens: hours,
        cost_per_trillion_tokens: hours * usd_per_hour,
    }
}

/// What tokens take in energy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Energy {
    /// Power of all accelerators, kW.
    pub total_power_kw: f64,
    /// Tokens for one watt-hour.
    pub tokens_per_watt_hour: f64,
    /// Kilowatt-hours for 1e12 tokens.
    pub kwh_per_trillion_tokens: f64,
    /// Dollars of electricity for 1e12 tokens.
    pub energy_cost_per_trillion: f64,
    /// Carbon dioxide for 1e12 tokens, kg.
    pub co2_kg_per_trillion_tokens: f64,
}

/// Energy of a run whose accelerators draw `watts` together.
#[must_use]
pub fn energy(tokens_per_second: f64, watts: f64, usd_per_kwh: f64) -> Energy {
    let kwh = hours(tokens_per_second, TRILLION) * watts / 1000.0;
    Energy {
        total_power_kw: watts / 1000.0,
        tokens_per_watt_hour: tokens_per_second * 3600.0 / watts,
        kwh_per_trillion_tokens: kwh,
        energy_cost_per_trillion: kwh * usd_per_kwh,
        co2_kg_per_trillion_tokens: kwh * CO2_KG_PER_KWH,
    }
}

/// How memory is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryUse {
    /// Used over total, percent.
    pub utilization_percent: f64,
    /// GB for a million tokens in flight on one accelerator.
    pub gb_per_million_tokens: f64,
    /// GB left.
    pub headroom_gb: f64,
    /// Left over total, percent.
    pub headroom_percent: f64,
    /// Sequences an accelerator that would fill 90 % of its memory, if all of it grew with them.
    pub potential_batch: f64,
}

/// Memory of one accelerator that holds `batch` sequences of `sequence` tokens.
#[must_use]
pub fn memory(used_gb: f64, total_gb: f64, batch: f64, sequence: f64) -> MemoryUse {
    MemoryUse {
        utilization_percent: used_gb / total_gb * 100.0,
        gb_per_million_tokens: used_gb / (batch * sequence) * 1e6,
        headroom_gb: total_gb - used_gb,
        headroom_percent: (total_gb - used_gb) / total_gb * 100.0,
        potential_batch: (total_gb * FILLED / (used_gb / batch)).floor(),
    }
}

/// How a run scales.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    /// Tokens per second of as many independent accelerators.
    pub ideal_throughput: f64,
    /// Measured over ideal, percent.
    pub efficiency_percent: f64,
}

/// Scaling of a run against the rate of one accelerator **alone**. Against its own rate per accelerator, as
/// TensorPrimat computes it, it is always 100 %.
#[must_use]
pub fn scaling(tokens_per_second: f64, gpus: f64, alone: f64) -> Scaling {
    Scaling { ideal_throughput: alone * gpus, efficiency_percent: tokens_per_second / (alone * gpus) * 100.0 }
}

/// Hours for this many tokens.
#[must_use]
pub fn hours(tokens_per_second: f64, tokens: f64) -> f64 {
    tokens / tokens_per_second / 3600.0
}
