//! What optimizers keep for every weight, and what offloading to the host costs.

use super::{Sharding, TrainingInput};
use crate::analytical::accelerator::{Generation, Precision};
use crate::analytical::arch::Architecture;
use crate::analytical::constants::Constants;
use crate::analytical::memory::LocalParams;
use crate::analytical::roofline;

/// An optimizer, as far as it decides what is kept for every weight and what a step computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Optimizer {
    /// Adam and AdamW, both moments in fp32 (arXiv 1412.6980, 1711.05101): 8 bytes. LAMB keeps the same.
    #[default]
    Adam,
    /// Adam with both moments in bf16 (torchtitan, DeepSeek-V3, arXiv 2412.19437, section 3.3.1): 4 bytes.
    Adam16bit,
    /// Adam with block-wise quantised moments (bitsandbytes, arXiv 2110.02861): 2 bytes, and 1/256 for the blocks' scales.
    Adam8bit,
    /// Lion (arXiv 2302.06675): one momentum in fp32, 4 bytes.
    Lion,
    /// Adafactor without momentum (arXiv 1804.04235): row and column sums only, which count as nothing a weight.
    Adafactor,
    /// Plain stochastic gradient descent: nothing.
    Sgd,
    /// With momentum in fp32: 4 bytes.
    SgdMomentum,
    /// Muon (arXiv 2502.16982): one momentum in fp32, 4 bytes, and five Newton–Schulz iterations a step. Embeddings and
    /// output layer, which it leaves to Adam, are counted as the rest.
    Muon,
}

impl Optimizer {
    /// Every optimizer and its name.
    pub const ALL: [(Optimizer, &'static str); 8] = [
        (Optimizer::Adam, "adam"),
        (Optimizer::Adam16bit, "adam-16bit"),
        (Optimizer::Adam8bit, "adam-8bit"),
        (Optimizer::Lion, "lion"),
        (Optimizer::Adafactor, "adafactor"),
        (Optimizer::Sgd, "sgd"),
        (Optimizer::SgdMomentum, "sgd-momentum"),
        (Optimizer::Muon, "muon"),
    ];

    /// As files and flags spell it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(optimizer, _)| *optimizer == self).map_or("adam", |(_, name)| name)
    }

    /// The optimizer of a name, in lower or upper case, common spellings included.
    pub fn find(name: &str) -> Option<Optimizer> {
        let name = name.trim().to_ascii_lowercase().replace('_', "-");
        let known = match name.as_str() {
            "adamw" | "lamb" | "fused-adam" | "distributed-fused-adam" => "adam",
            "adamw-8bit" | "adam8bit" | "adamw8bit" | "paged-adamw-8bit" => "adam-8bit",
            "adam-bf16" | "adamw-bf16" => "adam-16bit",
            "momentum" => "sgd-momentum",
            other => other,
        };
        Self::ALL.iter().find(|(_, spelt)| *spelt == known).map(|(optimizer, _)| *optimizer)
    }

    /// Bytes of its states for every weight, master copy left out.
    pub fn state_bytes(self) -> f64 {
        match self {
            Optimizer::Adam => 8.0,
            Optimizer::Adam16bit | Optimizer::Lion | Optimizer::SgdMomentum | Optimizer::Muon => 4.0,
            // One fp32 scale for each block of 256 values of each moment.
            Optimizer::Adam8bit => 2.0 * (1.0 + 4.0 / 256.0),
            Optimizer::Adafactor | Optimizer::Sgd => 0.0,
        }
    }

    /// States and, where `master` says so, an fp32 copy of the weights: [`TrainingInput::optimizer_bytes`].
    pub fn bytes(self, master: bool) -> f64 {
        self.state_bytes() + if master { 4.0 } else { 0.0 }
    }

    /// FLOPs of a step for every weight beyond the memory-bound update. Muon's five iterations multiply an n × m matrix
    /// (n ≤ m) with its transpose, square the product and multiply it back: 4 n² m + 2 n³ each (arXiv 2502.16982,
    /// algorithm 1), at most 6 n a weight.
    fn flops_per_weight(self, a: &Architecture) -> f64 {
        if self != Optimizer::Muon {
            return 0.0;
        }
        let short = if a.is_moe() { a.hidden.min(a.moe_ffn) } else { a.hidden };
        5.0 * 6.0 * short
    }
}

/// What is kept in the host's memory, and the links that it travels.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Offload {
    /// Share of the optimizer states that are kept and updated on the host (ZeRO-Offload, arXiv 2101.06840).
    pub optimizer: f64,
    /// Share of the layers' kept activations that travel to the host and back.
    pub activations: f64,
    /// Share of the weights that are kept on the host and streamed in (FSDP's `CPUOffload`): their gradients travel out.
    pub weights: f64,
    /// Bytes/s one way between host and accelerator; 0 = the PCIe generation that its family was sold with.
    pub link_bw: f64,
    /// Bytes/s of the host's memory for each accelerator; 0 = an eighth of a server's of the time.
    pub host_bw: f64,
}

impl Offload {
    /// Whether anything is offloaded.
    pub fn any(&self) -> bool {
        self.optimizer > 0.0 || self.activations > 0.0 || self.weights > 0.0
    }

    /// Bytes/s one way to the host: PCIe x16 of the third to fifth generation.
    fn link(&self, generation: Generation, c: &Constants) -> f64 {
        let raw = match generation {
            _ if self.link_bw > 0.0 => return self.link_bw,
            Generation::Volta => 16e9,
            Generation::Hopper | Generation::Blackwell | Generation::Cdna3 | Generation::Cdna4 => 64e9,
            _ => 32e9,
        };
        raw * c.link_fraction
    }

    /// Bytes/s of host memory for each accelerator: eight share two sockets of DDR4-3200 or DDR5-4800 with eight channels.
    fn host(&self, generation: Generation, c: &Constants) -> f64 {
        let raw = match generation {
            _ if self.host_bw > 0.0 => return self.host_bw,
            Generation::Hopper | Generation::Blackwell | Generation::Cdna3 | Generation::Cdna4 => 614e9 / 8.0,
            _ => 410e9 / 8.0,
        };
        raw * c.memory_fraction
    }
}

/// Weights whose states one accelerator owns, and updates.
fn owned(i: &TrainingInput, local: &LocalParams) -> f64 {
    let within = if i.shard > 0.0 { i.shard } else { f64::INFINITY };
    let shard = |ranks: f64| if i.sharding == Sharding::None { 1.0 } else { ranks.min(within).max(1.0) };
    ((local.dense + local.embedding) / shard(i.dp * i.cp)
        + local.experts / shard(i.dp * i.cp * i.tp / (i.ep * i.etp).max(1.0)))
        * i.trained
}

/// Seconds of the update: states are read and written once, memory-bound, and what of it runs on the host.
pub(super) fn seconds(i: &TrainingInput, c: &Constants, local: &LocalParams) -> f64 {
    let owned = owned(i, local);
    // Read and write the states, read the gradient twice (norm and update), write the weight.
    let bytes = owned * (2.0 * i.optimizer_bytes + 2.0 * i.grad_bytes + i.weight_bytes);
    let flops = owned * i.optimizer.flops_per_weight(&i.arch);
    let rate = i.accelerator.peak(Precision::Bf16) * roofline::best_fraction(&i.accelerator, c);
    let here = 1.0 - i.offload.optimizer.clamp(0.0, 1.0);
    here * (roofline::memory_seconds(&i.accelerator, c, bytes) + flops / rate) + c.step_overhead
}

/// Seconds of a step that offloading adds. `micro` is the device's time for one micro-batch, beside which transfers hide;
/// `activations` the bytes that one micro-batch keeps.
pub(crate) fn offloaded(i: &TrainingInput, c: &Constants, micro: f64, activations: impl FnOnce() -> f64) -> f64 {
    let o = &i.offload;
    if !o.any() {
        return 0.0;
    }
    let local = LocalParams::of(i);
    let owned = owned(i, &local);
    let (link, host) = (o.link(i.accelerator.generation, c), o.host(i.accelerator.generation, c));
    let hide = |seconds: f64, beside: f64| (seconds - c.overlap_share * beside).max(0.0);
    let share = o.optimizer.clamp(0.0, 1.0);
    // Gradients go out in 16 bit beside the last backward pass, the host updates, weights come back.
    let out = hide(share * owned * 2.0 / link, micro);
    let update = share * owned * (2.0 * i.optimizer_bytes + i.grad_bytes + i.weight_bytes) / host;
    let back = share * owned * i.weight_bytes / link;
    // Every micro-batch: weights in for forward and backward, gradients out; kept activations out and in again.
    let ranks = if i.sharding == Sharding::Zero3 { (i.dp * i.cp).max(1.0) } else { 1.0 };
    let streamed = o.weights.clamp(0.0, 1.0) * local.total() / ranks * (2.0 * i.weight_bytes + 2.0 * i.trained);
    let kept = o.activations.clamp(0.0, 1.0) * 2.0 * activations();
    let each = hide((streamed + kept) / link, micro);
    out + update + back + i.micro_batches() * each
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytical::training::estimate;

    #[test]
    fn states_have_their_documented_bytes() {
        assert_eq!(Optimizer::Adam.bytes(true), 12.0);
        assert_eq!(Optimizer::Adam.bytes(false), 8.0);
        assert!((Optimizer::Adam8bit.bytes(false) - 2.03).abs() < 0.01);
        assert_eq!(Optimizer::Lion.bytes(true), 8.0);
        assert_eq!(Optimizer::Sgd.bytes(false), 0.0);
        for (optimizer, name) in Optimizer::ALL {
            assert_eq!(Optimizer::find(name), Some(optimizer));
            assert_eq!(optimizer.name(), name);
        }
        assert_eq!(Optimizer::find("AdamW"), Some(Optimizer::Adam));
        assert_eq!(Optimizer::find("shampoo"), None);
    }

    #[test]
    fn fewer_bytes_of_state_need_less_memory_and_no_more_time() {
        let c = Constants::default();
        let mut last = f64::INFINITY;
        for optimizer in [Optimizer::Adam, Optimizer::Adam16bit, Optimizer::Adam8bit, Optimizer::Sgd] {
            let i = TrainingInput::default().with_optimizer(optimizer, true);
            let e = estimate(&i, &c);
            assert!(e.memory.total() < last);
            last = e.memory.total();
        }
    }

    #[test]
    fn muon_costs_flops_that_adam_does_not() {
        let c = Constants::default();
        let adam = estimate(&TrainingInput::default(), &c);
        let muon = estimate(&TrainingInput::default().with_optimizer(Optimizer::Muon, true), &c);
        assert!(muon.time.optimizer > adam.time.optimizer);
        assert!(muon.memory.optimizer < adam.memory.optimizer);
    }

    #[test]
    fn offloading_frees_memory_and_costs_time() {
        let c = Constants::default();
        let base =
            TrainingInput { recompute: crate::analytical::training::Recompute::None, ..TrainingInput::default() };
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
            let quick = Offload { link_bw: 900e9, host_bw: 500e9, ..offload };
            assert!(estimate(&TrainingInput { offload: quick, ..base }, &c).step_seconds <= e.step_seconds);
        }
    }
}
