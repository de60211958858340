//! What the passes of a step take: the analytical engine's times, cut into forward, input gradients and weight gradients
//! of every chunk of layers.
//!
//! The analytical engine answers sums over a stage and a micro-batch; the cut follows its own equations: a product's
//! backward is two products, fused attention's 2.5 forwards, element-wise traffic's 1.5 (`training::layer`). What it
//! hides or exposes by rule – transfers between stages, reductions of gradients – is asked for in full, and hidden by
//! the events.

use crate::engine::analytical::constants::Constants;
use crate::engine::analytical::training::{Sharding, TrainingEstimate, TrainingInput, estimate};

/// Seconds of one chunk of layers for one micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Passes {
    /// Forward.
    pub forward: f64,
    /// Backward without the weights' gradients; recomputation counted.
    pub input_gradient: f64,
    /// The weights' gradients.
    pub weight_gradient: f64,
}

impl Passes {
    fn scaled(&self, by: f64) -> Passes {
        Passes {
            forward: self.forward * by,
            input_gradient: self.input_gradient * by,
            weight_gradient: self.weight_gradient * by,
        }
    }

    fn plus(&self, other: &Passes) -> Passes {
        Passes {
            forward: self.forward + other.forward,
            input_gradient: self.input_gradient + other.input_gradient,
            weight_gradient: self.weight_gradient + other.weight_gradient,
        }
    }

    /// All passes.
    pub fn total(&self) -> f64 {
        self.forward + self.input_gradient + self.weight_gradient
    }
}

/// What a step is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// Of every chunk, in the order in which a micro-batch passes them: chunk `c` of stage `s` at `c * stages + s`.
    pub chunks: Vec<Passes>,
    /// One transfer between stages.
    pub transfer: f64,
    /// Reduction of the gradients of one stage.
    pub reduce: f64,
    /// Gathering of the updated weights of one stage.
    pub gather: f64,
    /// Share of the passes in which the device waits for the host to launch. A stage that has waited for its input finds
    /// that much launched already.
    pub host_share: f64,
    /// Share of the passes that waits for gathers and reductions inside them (fully sharded weights).
    pub sharded_share: f64,
    /// Optimizer and what the host does once a step.
    pub optimizer: f64,
}

impl Costs {
    /// Of one step.
    pub fn of(i: &TrainingInput, c: &Constants) -> Costs {
        let whole = estimate(i, c);
        let fixed = TrainingInput { recompute: whole.recompute.mode, ..*i };
        // Without an output layer, to tell it from the layers.
        let mut bare = fixed;
        bare.arch.vocab = 1.0;
        let (full, bare) = (estimate(&fixed, c), estimate(&bare, c));
        let mut open = fixed;
        open.software.overlap_data = false;
        open.software.overlap_pipeline = false;
        let raw = estimate(&open, c);
        let m = i.micro_batches();
        let stages = i.pp.max(1.0);
        let chunks = (stages * i.vpp.max(1.0)).max(1.0) as usize;
        let sizes = layers_of(i.arch.depth(), chunks);
        // The analytical stage is the last one.
        let last: f64 = sizes.iter().skip(stages as usize - 1).step_by(stages as usize).sum();
        let one = cut(&bare, i, c, m).scaled(1.0 / last.max(1e-9));
        let (with, without) = (cut(&full, i, c, m), cut(&bare, i, c, m));
        let head = with.plus(&without.scaled(-1.0));
        let mut passes: Vec<Passes> = sizes.iter().map(|&layers| one.scaled(layers)).collect();
        if let Some(end) = passes.last_mut() {
            *end = end.plus(&head);
        }
        let (per_step, per_micro) = data_traffic(&open, c, &raw);
        let all = |passes: &[Passes]| passes.iter().map(Passes::total).sum::<f64>();
        let alone = all(&passes);
        add_gathers(&mut passes, per_micro / i.vpp.max(1.0), i, c);
        let sharded_share = 1.0 - alone / all(&passes).max(1e-12);
        let sharded = matches!(i.sharding, Sharding::Zero1 | Sharding::Zero2);
        // Gradients are reduced in their format, weights gathered in 16 bit.
        let reduced = if sharded { i.grad_bytes / (i.grad_bytes + 2.0 * i.trained).max(1e-9) } else { 1.0 };
        Costs {
            host_share: host_share(&full),
            sharded_share,
            chunks: passes,
            transfer: raw.time.pipeline_transfer / m / (2.0 * i.vpp.max(1.0)),
            reduce: per_step * reduced,
            gather: per_step * (1.0 - reduced),
            optimizer: full.time.optimizer + full.time.offload,
        }
    }
}

/// Share of a pass that waits for the host.
fn host_share(e: &TrainingEstimate) -> f64 {
    let t = &e.time;
    let device = t.gemm + t.attention + t.elementwise + t.recompute;
    let traffic = t.tensor_parallel + t.expert_parallel + t.context_parallel;
    t.host / (device + traffic + t.host).max(1e-12)
}

/// Layers of every chunk: equal where they go in; else embedding and output layer count as a layer each.
pub(super) fn layers_of(layers: f64, chunks: usize) -> Vec<f64> {
    let n = chunks as f64;
    if (layers / n - (layers / n).round()).abs() < 1e-9 || chunks < 2 {
        return vec![layers / n; chunks];
    }
    let total = layers.round() + 2.0;
    let more = (total % n) as usize;
    let mut sizes: Vec<f64> = (0..chunks)
        // The longer chunks stand in the middle and at the end: the ends lose one each.
        .map(|k| (total / n).floor() + f64::from(u8::from(k >= chunks - more)))
        .collect();
    if let Some(first) = sizes.first_mut() {
        *first = (*first - 1.0).max(0.0);
    }
    if let Some(last) = sizes.last_mut() {
        *last = (*last - 1.0).max(0.0);
    }
    sizes
}

/// The passes of the stage that an estimate is about, per micro-batch.
fn cut(e: &TrainingEstimate, i: &TrainingInput, c: &Constants, m: f64) -> Passes {
    let t = &e.time;
    let product = t.gemm / (2.0 + i.trained);
    let forward = product + t.attention / (1.0 + 2.5 * c.attention_backward) + t.elementwise / 2.5;
    let weight_gradient = i.trained * product;
    let compute = t.gemm + t.attention + t.elementwise + t.recompute;
    // The host slows all passes alike.
    let host = 1.0 + t.host / compute.max(1e-12);
    let again = 2.0 * e.recompute.full_share;
    let layered = t.tensor_parallel + t.expert_parallel;
    let forward_traffic = layered * 2.0 / (4.0 + again) + t.context_parallel / 3.0;
    let backward_traffic = layered + t.context_parallel - forward_traffic;
    Passes {
        forward: (forward * host + forward_traffic) / m,
        input_gradient: ((compute - forward - weight_gradient) * host + backward_traffic) / m,
        weight_gradient: weight_gradient * host / m,
    }
}

/// Seconds of data-parallel traffic once a step and once a micro-batch, from what a step without overlap exposes.
fn data_traffic(open: &TrainingInput, c: &Constants, raw: &TrainingEstimate) -> (f64, f64) {
    if open.sharding != Sharding::Zero3 {
        return (raw.time.data_parallel, 0.0);
    }
    let m = open.micro_batches();
    let twice = estimate(&TrainingInput { global: 2.0 * m * open.dp * open.micro, ..*open }, c);
    let per_micro = (twice.time.data_parallel - raw.time.data_parallel) / m;
    ((raw.time.data_parallel - m * per_micro).max(0.0), per_micro)
}

/// Fully sharded weights are gathered for the forward pass, and again for the backward pass, whose gradients are
/// scattered: each by its bytes. Layer by layer it runs beside the pass, which it slows.
fn add_gathers(passes: &mut [Passes], traffic: f64, i: &TrainingInput, c: &Constants) {
    if traffic <= 0.0 {
        return;
    }
    let exposed = |pass: f64, traffic: f64| {
        let hidden = if i.software.overlap_data { traffic.min(c.overlap_share * pass) } else { 0.0 };
        pass + traffic - hidden + c.overlap_slowdown * hidden
    };
    let reduced = if i.reduce_bytes > 0.0 { i.reduce_bytes } else { i.grad_bytes };
    // Weights travel in 16 bit, twice; gradients once.
    let ahead = 2.0 / (4.0 + reduced * i.trained);
    for pass in passes {
        pass.forward = exposed(pass.forward, ahead * traffic);
        let backward = pass.input_gradient + pass.weight_gradient;
        pass.input_gradient = exposed(backward, (1.0 - ahead) * traffic) - pass.weight_gradient;
    }
}
