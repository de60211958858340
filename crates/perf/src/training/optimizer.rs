//! Optimizer updates, and the cost of offloading to the host.

use super::{Offload, Sharding, TrainingInput};
use crate::accelerator::{Generation, Precision};
use crate::arch::Architecture;
use crate::constants::Constants;
use crate::roofline;
use crate::training::memory::LocalParams;

pub use atlas_core::plan::Optimizer;

/// Newton-Schulz iterations of Muon (arXiv 2502.16982, algorithm 1).
const MUON_ITERATIONS: f64 = 5.0;

/// FLOPs per weight and step beyond the memory-bound update. Each of Muon's iterations multiplies an n × m matrix
/// (n ≤ m) with its transpose, squares the result and multiplies it back: 4 n² m + 2 n³, at most 6 n per weight.
fn flops_per_weight(optimizer: Optimizer, a: &Architecture) -> f64 {
    if optimizer != Optimizer::Muon {
        return 0.0;
    }
    let short = if a.is_moe() { a.hidden.min(a.moe_ffn) } else { a.hidden };
    MUON_ITERATIONS * 6.0 * short
}

impl Offload {
    /// Bandwidth to the host, bytes/s one way.
    fn host_link_bw(&self, generation: Generation, c: &Constants) -> f64 {
        self.link_bw.unwrap_or(generation.properties().host_link_bw) * c.link_fraction
    }

    /// Host memory bandwidth per accelerator, bytes/s.
    fn host_memory_bw(&self, generation: Generation, c: &Constants) -> f64 {
        self.host_bw.unwrap_or(generation.properties().host_memory_bw) * c.memory_fraction
    }
}

/// Number of weights whose optimizer states one accelerator holds and updates.
fn owned_weights(i: &TrainingInput, local: &LocalParams) -> f64 {
    let shard = |ranks: f64| if i.sharding == Sharding::None { 1.0 } else { i.shard_ranks(ranks).max(1.0) };
    let trained = local.trained(i);
    (trained.dense + trained.embedding) / shard(i.dp * i.cp)
        + trained.experts / shard(i.dp * i.cp * i.tp / (i.ep * i.etp).max(1.0))
}

/// Time of the update on the device, s: states are read and written once, memory-bound. Excludes the offloaded share.
pub(super) fn seconds(i: &TrainingInput, c: &Constants, local: &LocalParams) -> f64 {
    let owned = owned_weights(i, local);
    // Read and write the states, read the gradient twice (norm and update), write the weight.
    let bytes = owned * (2.0 * i.optimizer_bytes + 2.0 * i.grad_bytes + i.weight_bytes);
    let flops = owned * flops_per_weight(i.optimizer, &i.arch);
    let products = if flops > 0.0 { flops / roofline::best_rate(&i.accelerator, c, Precision::Bf16) } else { 0.0 };
    let here = 1.0 - i.offload.optimizer.clamp(0.0, 1.0);
    here * (roofline::memory_seconds(&i.accelerator, c, bytes) + products) + c.step_overhead
}

/// Time that offloading adds to a step, s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OffloadTime {
    /// Once per step.
    pub per_step: f64,
    /// In the forward and backward pass of every micro-batch.
    pub per_micro: [f64; 2],
}

impl OffloadTime {
    /// Time of a step of `micro_batches`.
    #[must_use]
    pub fn total(&self, micro_batches: f64) -> f64 {
        self.per_step + micro_batches * self.per_micro.iter().sum::<f64>()
    }
}

/// Time that offloading adds to a step. Copies of a layer run beside the layer before it; `passes` are the times of the
/// layers in the forward and the backward pass. `activations` returns the bytes that one micro-batch keeps.
pub fn offloaded(i: &TrainingInput, c: &Constants, passes: [f64; 2], activations: impl FnOnce() -> f64) -> OffloadTime {
    let o = &i.offload;
    if !o.any() {
        return OffloadTime::default();
    }
    let local = LocalParams::of(i);
    let owned = owned_weights(i, &local);
    let (link, host) = (o.host_link_bw(i.accelerator.generation, c), o.host_memory_bw(i.accelerator.generation, c));
    let share = o.optimizer.clamp(0.0, 1.0);
    // Gradients are sent in 16 bit during the last backward pass, the host updates, and weights are sent back.
    let out = share * owned * 2.0 / link;
    let update = share * owned * (2.0 * i.optimizer_bytes + i.grad_bytes + i.weight_bytes) / host;
    let back = share * owned * i.weight_bytes / link;
    // In every micro-batch: weights in for forward and backward, gradients out; kept activations out and in.
    let ranks = if i.persistent_sharding() == Sharding::Zero3 { (i.dp * i.cp).max(1.0) } else { 1.0 };
    let streamed =
        o.weights.clamp(0.0, 1.0) / ranks * (2.0 * i.weight_bytes * local.total() + 2.0 * local.trained(i).total());
    let kept = o.activations.clamp(0.0, 1.0) * 2.0 * activations();
    let each = 0.5 * (streamed + kept) / link;
    let per_micro = passes.map(|beside| (each - beside).max(0.0));
    let [_, waited] = per_micro;
    let [_, beside] = passes;
    OffloadTime { per_step: update + back + (each + out - beside).max(0.0) - waited, per_micro }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::estimate;

    #[test]
    fn optimizer_state_bytes_match_documentation_and_names_round_trip() {
        assert_eq!(Optimizer::Adam.bytes(true), 12.0);
        assert_eq!(Optimizer::Adam.bytes(false), 8.0);
        assert!((Optimizer::Adam8bit.bytes(false) - 2.03).abs() < 0.01);
        assert_eq!(Optimizer::Lion.bytes(true), 8.0);
        assert_eq!(Optimizer::Sgd.bytes(false), 0.0);
        for (name, optimizer) in Optimizer::WORDS.iter().copied() {
            assert_eq!(Optimizer::named(name), Some(optimizer));
            assert_eq!(optimizer.name(), name);
        }
        assert_eq!(Optimizer::named("AdamW"), Some(Optimizer::Adam));
        assert_eq!(Optimizer::named("shampoo"), None);
    }

    /// Training with this optimizer and fp32 master weights.
    fn with(optimizer: Optimizer) -> TrainingInput {
        TrainingInput { optimizer, optimizer_bytes: optimizer.bytes(true), ..TrainingInput::default() }
    }

    #[test]
    fn fewer_optimizer_state_bytes_need_less_memory() {
        let c = Constants::default();
        let mut last = f64::INFINITY;
        for optimizer in [Optimizer::Adam, Optimizer::Adam16bit, Optimizer::Adam8bit, Optimizer::Sgd] {
            let i = with(optimizer);
            let e = estimate(&i, &c);
            assert!(e.memory.total() < last);
            last = e.memory.total();
        }
    }

    #[test]
    fn muon_optimizer_is_slower_and_smaller_in_memory_than_adam() {
        let c = Constants::default();
        let adam = estimate(&TrainingInput::default(), &c);
        let muon = estimate(&with(Optimizer::Muon), &c);
        assert!(muon.time.optimizer > adam.time.optimizer);
        assert!(muon.memory.optimizer < adam.memory.optimizer);
    }

    #[test]
    fn offloading_frees_memory_and_is_not_faster() {
        let c = Constants::default();
        let base = TrainingInput { recompute: crate::training::Recompute::None, ..TrainingInput::default() };
        let plain = estimate(&base, &c);
        let offloads = [
            Offload { optimizer: 1.0, ..Offload::default() },
            Offload { activations: 1.0, ..Offload::default() },
            Offload { weights: 1.0, ..Offload::default() },
        ];
        for offload in offloads {
            let e = estimate(&TrainingInput { offload, ..base }, &c);
            assert!(e.memory.total() < plain.memory.total(), "{offload:?}");
            assert!(e.step_seconds >= plain.step_seconds, "{offload:?}");
            assert!((e.time.total() / e.step_seconds - 1.0).abs() < 1e-12);
            let quick = Offload { link_bw: Some(900e9), host_bw: Some(500e9), ..offload };
            assert!(estimate(&TrainingInput { offload: quick, ..base }, &c).step_seconds <= e.step_seconds);
        }
    }
}
