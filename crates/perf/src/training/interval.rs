//! How far an estimate can be trusted: 90 % prediction intervals from cross-validated residuals (split conformal,
//! Vovk et al. 2005; Lei et al. 2018), one width per regime.

use super::TrainingInput;

/// Kinds of runs whose errors are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Regime {
    /// Dense models on NVIDIA devices inside one fast domain.
    DenseOneDomain,
    /// Dense, many domains, pure data parallelism (DDP, ZeRO, FSDP).
    DenseDataParallel,
    /// Dense, many domains, tensor or pipeline parallel.
    DenseModelParallel,
    /// Mixture of experts on NVIDIA devices.
    Experts,
    /// Frozen base model with adapters (LoRA).
    Adapters,
    /// TPU, Trainium, AMD, Intel, Huawei.
    OtherVendors,
}

impl Regime {
    /// All regimes.
    pub const ALL: [Regime; 6] = [
        Regime::DenseOneDomain,
        Regime::DenseDataParallel,
        Regime::DenseModelParallel,
        Regime::Experts,
        Regime::Adapters,
        Regime::OtherVendors,
    ];

    /// The regime of a scenario.
    pub fn of(i: &TrainingInput) -> Regime {
        let many = i.accelerators > i.domain;
        if i.trained < 1.0 {
            Regime::Adapters
        } else if !i.accelerator.generation.is_nvidia() {
            Regime::OtherVendors
        } else if i.arch.is_moe() {
            Regime::Experts
        } else if !many {
            Regime::DenseOneDomain
        } else if i.tp * i.pp > 1.0 {
            Regime::DenseModelParallel
        } else {
            Regime::DenseDataParallel
        }
    }

    /// As tables show it.
    pub const fn name(self) -> &'static str {
        match self {
            Regime::DenseOneDomain => "dense, one domain",
            Regime::DenseDataParallel => "dense, many domains, data-parallel",
            Regime::DenseModelParallel => "dense, many domains, model-parallel",
            Regime::Experts => "mixture of experts",
            Regime::Adapters => "adapters",
            Regime::OtherVendors => "other vendors",
        }
    }

    /// Half-width of the 90 % interval on the logarithm of the throughput. Origin: residuals of the fits that left each
    /// source out; `atlas validate --fit --kind training` prints them.
    pub const fn half_width(self) -> f64 {
        match self {
            Regime::DenseOneDomain => 0.374,
            Regime::DenseDataParallel => 0.261,
            Regime::DenseModelParallel => 0.289,
            Regime::Experts => 0.596,
            Regime::Adapters => 0.345,
            Regime::OtherVendors => 0.449,
        }
    }
}

/// Factors by which the point estimate of throughput is multiplied to get the interval's ends.
pub fn bounds(i: &TrainingInput) -> (f64, f64) {
    let mut width = Regime::of(i).half_width();
    // Nothing larger was measured than 16,384 accelerators or sequences of 2^20 tokens: a quarter more per doubling.
    let beyond = (i.accelerators / 16_384.0).max(i.seq / 1_048_576.0).max(1.0).log2();
    width *= 1.0 + 0.25 * beyond;
    ((-width).exp(), width.exp())
}
