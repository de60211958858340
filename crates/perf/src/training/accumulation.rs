//! The time of accumulating gradients, and of the copies that software makes of fully sharded weights and gradients.

use super::{Sharding, TrainingInput};
use crate::constants::Constants;
use crate::roofline;
use crate::training::memory::LocalParams;
use crate::traits::ShardCopies;

/// Time of accumulating weight gradients, or of copying sharded weights and gradients, per micro-batch, s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AccumulationTime {
    /// Mean layer.
    pub layer: f64,
    /// Embedding or output layer, on the first or last stage.
    pub head: f64,
}

/// Time of accumulating gradients. A fused sum is read and written once, less the bytes of the result that the GEMM's
/// traffic already includes. Fully sharded gradients are reduced instead, for which software copies them.
pub fn accumulation(i: &TrainingInput, c: &Constants, local: &LocalParams) -> AccumulationTime {
    if i.persistent_sharding() == Sharding::Zero3 {
        return shard_copies(i, c, local);
    }
    if i.micro_batches() <= 1.0 {
        return AccumulationTime::default();
    }
    let each = if i.software.fused_sums {
        (2.0 * i.grad_bytes - i.element_bytes()).max(0.0)
    } else {
        // Autograd adds to a 16-bit gradient (6 bytes), which is converted (2 + fp32), added (3 fp32) and cleared (2).
        10.0 + 4.0 * i.grad_bytes
    };
    let seconds = |weights: f64| roofline::memory_seconds(&i.accelerator, c, weights * each);
    let local = local.trained(i);
    let layers = (i.arch.depth() / i.pp).max(1e-9);
    AccumulationTime { layer: seconds(local.dense + local.experts) / layers, head: seconds(local.embedding) }
}

/// Time of the copies that the software makes of fully sharded weights and gradients. Each copy reads and writes memory.
fn shard_copies(i: &TrainingInput, c: &Constants, local: &LocalParams) -> AccumulationTime {
    let (element, gathered, reduced) = (i.element_bytes(), i.gathered_bytes(), i.reduced_bytes());
    // Gradients that are reduced in the last micro-batch are added to the sums in all but the first, and the sums are
    // copied once.
    let (added, copied) = if i.software.deferred_reduction {
        let micros = i.micro_batches();
        ((1.0 - 1.0 / micros) * (element + 2.0 * reduced), 2.0 * reduced / micros)
    } else {
        (0.0, element + reduced)
    };
    // Per weight, and per trained weight. Weights are gathered for the forward and for the backward pass.
    let [each, trained_each] = match i.software.shard_copies {
        // Copies on the streams of the collectives are part of these.
        ShardCopies::None | ShardCopies::Buckets => [0.0, added],
        ShardCopies::Gradients => [0.0, 2.0 * element + added],
        ShardCopies::WeightsAndGradients => [4.0 * gathered, copied + added],
    };
    if each + trained_each <= 0.0 {
        return AccumulationTime::default();
    }
    let trained = local.trained(i);
    let copied = |params: f64, trained: f64, replicas: f64| {
        if replicas > 1.0 { params * each + trained * trained_each } else { 0.0 }
    };
    let replicas = i.copies() * i.dp * i.cp;
    let expert_replicas = replicas * i.tp / (i.ep * i.etp).max(1.0);
    let seconds = |bytes: f64| roofline::memory_seconds(&i.accelerator, c, bytes);
    let layers = (i.arch.depth() / i.pp).max(1e-9);
    let of_layers =
        copied(local.dense, trained.dense, replicas) + copied(local.experts, trained.experts, expert_replicas);
    let of_head = copied(local.embedding, trained.embedding, replicas);
    AccumulationTime { layer: seconds(of_layers) / layers, head: seconds(of_head) }
}
