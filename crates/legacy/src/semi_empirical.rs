//! The calibrated model of the predecessor system, reproduced to a relative error of 1e-9.
//!
//! Its errors are reproduced as well: throughput does not depend on the size of the model, memory is clipped rather
//! than checked, and the median latency is a constant for any accelerator faster than `lat_base_coeff / lat_min`.

pub mod coefficients;
pub mod queue;

use crate::number::Number;
use coefficients as k;
use coefficients::Coefficient;

/// A numeric input from the target, the workload or the phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Number of accelerators of the target.
    Accelerators,
    /// Tensor-parallel ranks.
    Tp,
    /// Pipeline stages.
    Pp,
    /// Data-parallel replicas.
    Dp,
    /// Sequences per micro-batch.
    Microbatch,
    /// Prompt tokens.
    Prompt,
    /// Output tokens.
    Generate,
    /// Factor of the network fabric on the communication overhead.
    Fabric,
    /// Nominal power per node, W.
    NodeWatts,
    /// Memory per accelerator, GB.
    MemoryGb,
    /// Hidden size.
    Hidden,
    /// Layers.
    Layers,
    /// First number drawn from the random generator, in 0..1.
    Draw,
}

/// Inputs of the model.
pub trait Source {
    /// Type of the inputs and results.
    type Number: Number;
    /// Returns a coefficient of the calibration profile.
    fn coefficient(&self, of: &Coefficient) -> Self::Number;
    /// Returns a numeric input of the scenario.
    fn quantity(&self, of: Quantity) -> Self::Number;
}

/// Options of the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    /// Inference rather than training.
    pub inference: bool,
    /// Whether CUDA graphs are used.
    pub cuda_graphs: bool,
    /// Whether GPUDirect RDMA is used.
    pub gpudirect_rdma: bool,
    /// Whether NICs are shared through SR-IOV.
    pub sriov: bool,
    /// Whether the results include noise.
    pub noise: bool,
}

/// Results of the model. Latencies are service times of inference requests, without queueing.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<N> {
    /// Tokens per second of all accelerators.
    pub tokens_per_sec: N,
    /// Communication overhead, relative to the time without communication.
    pub overhead: N,
    /// FLOP utilization.
    pub flop_utilization: N,
    /// Utilization of memory bandwidth.
    pub memory_utilization: N,
    /// Share of communication in the total time, in 0.01..0.99.
    pub communication: N,
    /// Time of a training step, ms.
    pub step_ms: N,
    /// Median latency, ms.
    pub p50: N,
    /// 95th percentile, ms.
    pub p95: N,
    /// 99th percentile, ms.
    pub p99: N,
    /// Time to first token, ms.
    pub ttft: N,
    /// Memory use per accelerator, GB.
    pub memory_gb: N,
    /// Power per node, W.
    pub node_watts: N,
}

/// Estimates one phase. Symbols are those of the calibration guide.
pub fn answer<S: Source>(source: &S, on: Switches) -> Answer<S::Number> {
    let c = |of: &Coefficient| source.coefficient(of);
    let q = |of: Quantity| source.quantity(of);
    let number = |value: f64| S::Number::from(value);

    let mut rho = c(&k::RHO_BASE);
    for (on, gain) in [
        (on.cuda_graphs, &k::DELTA_RHO_CUDA),
        (on.gpudirect_rdma, &k::DELTA_RHO_GPUDIRECT),
        (on.inference, &k::DELTA_RHO_INFER),
    ] {
        if on {
            rho = rho + c(gain);
        }
    }
    let rho = rho.at_most(c(&k::RHO_MAX)).named("rho", "utilization", "");

    let per_rank = |of: &Coefficient, ranks: Quantity| c(of) * (q(ranks) - number(1.0));
    let mut chi = c(&k::CHI_BASE) + per_rank(&k::CHI_TP, Quantity::Tp) + per_rank(&k::CHI_PP, Quantity::Pp);
    if on.inference {
        chi = chi * c(&k::CHI_INFER_SCALE);
    }
    let mut overhead = chi.named("chi", "communication intensity", "") * q(Quantity::Fabric);
    if on.sriov {
        let jitter = c(&k::JITTER_SRIOV) + number(1.0);
        overhead = overhead * jitter.named("gamma_jitter", "overhead factor for jitter of shared NICs", "");
    }
    if on.gpudirect_rdma {
        overhead = overhead * c(&k::GAMMA_GPUDIRECT);
    }
    let overhead = overhead.at_least(c(&k::OMEGA_MIN)).named("omega_comm", "communication overhead", "");

    let vendor = c(if on.inference { &k::F_INFERENCE } else { &k::F_TRAINING });
    let rate = vendor * rho.clone() * q(Quantity::Accelerators) * c(&k::B_BASE);
    let rate = rate.named("rate", "throughput of all accelerators without communication overhead", "tok/s");
    let generate = q(Quantity::Generate);
    let sequence = (q(Quantity::Prompt) + generate.clone()).named("s", "tokens per sequence", "tok");
    let mut tokens_per_sec = rate.clone() / (c(&k::OMEGA) * overhead.clone() + number(1.0));
    if on.inference && generate.value() > 0.0 {
        tokens_per_sec = tokens_per_sec * generate / sequence.clone().at_least(number(1.0));
    }
    let noise =
        on.noise.then(|| ((q(Quantity::Draw) - number(0.5)) * c(&k::SIGMA_NOISE)).named("eps", "random noise", ""));
    if let Some(noise) = &noise {
        tokens_per_sec = tokens_per_sec * (noise.clone() + number(1.0));
    }
    let tokens_per_sec = tokens_per_sec.at_least(number(1.0));

    let each = rate / q(Quantity::Accelerators);
    let p50 = (c(&k::LAT_BASE_COEFF) / each.at_least(number(1.0))).at_least(c(&k::LAT_MIN));
    let p50 = p50.named("p50_service", "median service time", "ms");
    let mut tail = c(&k::TAIL_COMM) * overhead.clone() + number(1.0);
    if on.sriov {
        tail = tail + c(&k::TAIL_SRIOV);
    }
    let tail = tail.named("tail", "increase of tail latency by communication", "");
    let tailed = |multiplier: &Coefficient| {
        let written = p50.clone() * c(multiplier) * tail.clone();
        match &noise {
            Some(noise) => written * (noise.clone() * c(&k::SIGMA_TAIL) + number(1.0)),
            None => written,
        }
    };

    let share = |of: S::Number| of.at_least(number(0.0)).at_most(number(1.0));
    let batch = (q(Quantity::Dp) * q(Quantity::Microbatch) * sequence.clone()).at_least(number(1.0));
    Answer {
        step_ms: number(1000.0) * batch / tokens_per_sec.clone().named("X", "tokens per second", "tok/s"),
        flop_utilization: share(rho.clone() * (number(1.0) - c(&k::KAPPA_COMM) * overhead.clone())),
        memory_utilization: share(
            (c(&k::HBM_BASE) + c(&k::HBM_SEQ_SCALE) * sequence / c(&k::HBM_SEQ_NORM)).at_most(c(&k::HBM_MAX)),
        ),
        communication: (overhead.clone() / (overhead.clone() + number(1.0)))
            .at_least(number(0.01))
            .at_most(number(0.99)),
        p95: tailed(&k::M95).named("p95_service", "95th percentile of the service time", "ms"),
        p99: tailed(&k::M99).named("p99_service", "99th percentile of the service time", "ms"),
        ttft: (p50.clone() * c(&k::R_TTFT)).named("ttft_service", "time to first token without queueing", "ms"),
        p50,
        memory_gb: (c(&k::PEAK_TOKENS_FACTOR) * q(Quantity::Hidden) * q(Quantity::Layers))
            .at_most(q(Quantity::MemoryGb)),
        node_watts: q(Quantity::NodeWatts) * (c(&k::PHI_IDLE) + c(&k::PHI_UTIL) * rho),
        overhead,
        tokens_per_sec,
    }
}
