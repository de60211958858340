//! Peak and reserved memory of a stage. Model states are allocated first, then the activations of every pass in the
//! order of the schedule, from a caching allocator.
//!
//! Sizes are those of the closed form ([`memory`]): activations that a layer keeps for its backward pass, divided into
//! tensors; recomputed activations; logits; gradients in transit. Not modeled: workspaces of kernels and communication
//! buffers.

use super::allocator::{Allocator, BlockHandle};
use super::costs::layers_of;
use super::schedule::{PassKind, orders};
use crate::kernel::{Distribution, Stream};
use atlas_core::count::Count;
use atlas_perf::constants::Constants;
use atlas_perf::training::memory;
use atlas_perf::training::stages::stage_layers;
use atlas_perf::training::{Recompute, TrainingInput, estimate};

/// Purpose of the random streams of the lengths of micro-batches, which also determine their times.
const LENGTHS: u32 = 41;

/// Results for the stage with the most reserved memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Output {
    /// The stage.
    pub stage: u32,
    /// Bytes allocated throughout: weights, gradients, optimizer states.
    pub states: f64,
    /// Peak bytes in use (`max_memory_allocated`).
    pub allocated: f64,
    /// Bytes that the allocator holds at the end (`max_memory_reserved`).
    pub reserved: f64,
    /// Blocks allocated.
    pub allocations: u64,
    /// For every pass of the last step: peak bytes in use, and bytes reserved after it.
    pub curve: Vec<(f64, f64)>,
}

impl Output {
    /// Share of the reserved memory that was never in use at the same time.
    #[must_use]
    pub fn fragmentation(&self) -> f64 {
        1.0 - self.allocated / self.reserved.max(1.0)
    }
}

/// Maximum number of simulated micro-batches of a step. Their activations are identical, so more would not change the
/// result.
const MAX_MICRO_BATCHES: f64 = 256.0;
/// Number of tensors of model states: no checkpointed run has them in one piece.
const STATES: u32 = 64;

/// Simulates `steps` steps of a job. `spread` is the coefficient of variation of the lengths of micro-batches. Both
/// ends of the pipeline are simulated: the first stage holds the most micro-batches, the last stage the logits.
#[must_use]
pub fn simulate(system: &TrainingInput, constants: &Constants, spread: f64, seed: u64, steps: u32) -> Output {
    let last = system.pp.max(Count::ONE).get().saturating_sub(1);
    let mut ends = vec![on_stage(system, constants, 0, spread, seed, steps)];
    if last > 0 {
        ends.push(on_stage(system, constants, last, spread, seed, steps));
    }
    ends.into_iter().max_by(|a, b| a.reserved.total_cmp(&b.reserved)).unwrap_or_default()
}

/// Memory of one stage while passes run.
struct Stage {
    allocator: Allocator,
    most: u64,
    in_pass: u64,
}

impl Stage {
    fn allocate(&mut self, bytes: f64) -> BlockHandle {
        let held = self.allocator.allocate(bytes);
        self.most = self.most.max(self.allocator.allocated());
        self.in_pass = self.in_pass.max(self.allocator.allocated());
        held
    }

    fn free(&mut self, held: impl IntoIterator<Item = BlockHandle>) {
        held.into_iter().for_each(|one| self.allocator.release(one));
    }
}

fn on_stage(s: &TrainingInput, c: &Constants, stage: u32, spread: f64, seed: u64, steps: u32) -> Output {
    let closed = estimate(s, c);
    let (stages, is_bidirectional) = (s.pp.max(Count::ONE).get(), s.copies() > 1.0);
    let chunks = if is_bidirectional { 2 } else { s.vpp.max(Count::ONE).get() };
    let micros = s.micro_batches().min(MAX_MICRO_BATCHES) as u32;
    let sizes = layers_of(s);
    let at = |chunk: u32| match (is_bidirectional, chunk) {
        (false, chunk) => chunk * stages + stage,
        (true, 0) => stage,
        (true, _) => stages - 1 - stage,
    };
    let layers = |chunk: u32| sizes.get(at(chunk) as usize).copied().unwrap_or(1.0).round();
    // Activations of one micro-batch on this stage by the closed form, per layer and tensor.
    let first = stage_layers(s, 0.0).max(1.0);
    let each = memory::kept(s, closed.recompute) / first;
    let kept = tensors(s, each);
    let plain = TrainingInput { recompute: Recompute::None, ..*s };
    let whole = memory::kept(&plain, atlas_perf::training::Plan::of(Recompute::None));
    let again = tensors(s, whole / first);
    let ends = stage + 1 == stages;
    // The output layer is gathered while the logits exist.
    let logits = if ends { memory::logits(s) + memory::gathered_head(s) } else { 0.0 };
    let states = closed.memory.weights + closed.memory.gradients + closed.memory.optimizer;
    let split = if s.sequence_parallel { s.tp } else { Count::ONE };
    let gradient = s.element_bytes() * s.micro * s.seq / s.cp.max(Count::ONE) * s.arch.hidden / split.max(Count::ONE);
    let gathered = 2.0 * memory::gathered_layer(s);
    let mut m = Stage { allocator: Allocator::default(), most: 0, in_pass: 0 };
    for _ in 0..STATES {
        let _ = m.allocate(states / f64::from(STATES));
    }
    let order = orders(s, micros, closed.in_flight).into_iter().nth(stage as usize).unwrap_or_default();
    let slots = (micros * chunks) as usize;
    let splits = s.schedule.splits_backward();
    let mut out = Output { stage, states, ..Output::default() };
    for step in 0..steps.max(1) {
        out.curve.clear();
        let mut held: Vec<Vec<BlockHandle>> = vec![Vec::new(); slots];
        let mut heads: Vec<Option<BlockHandle>> = vec![None; slots];
        for pass in &order {
            m.in_pass = m.allocator.allocated();
            let slot = (pass.micro * chunks + pass.chunk) as usize;
            let by = length(spread, seed, 0, u64::from(step) * u64::from(micros) + u64::from(pass.micro));
            let (Some(list), Some(head)) = (held.get_mut(slot), heads.get_mut(slot)) else { continue };
            match pass.kind {
                PassKind::Forward => {
                    for _ in 0..layers(pass.chunk) as u32 {
                        let gather = (gathered > 0.0).then(|| m.allocate(gathered));
                        // Temporary tensors of the layer are freed at its end.
                        let passing: Vec<BlockHandle> =
                            again.iter().take(2).map(|bytes| m.allocate(by * bytes)).collect();
                        list.extend(kept.iter().map(|bytes| m.allocate(by * bytes)));
                        m.free(passing.into_iter().chain(gather));
                    }
                    if logits > 0.0 && pass.chunk + 1 == chunks {
                        *head = Some(m.allocate(by * logits));
                    }
                }
                PassKind::Backward => {
                    let mut flowing = m.allocate(by * gradient);
                    m.free(head.take());
                    let all = layers(pass.chunk);
                    for layer in (0..all as u32).rev() {
                        let gather = (gathered > 0.0).then(|| m.allocate(gathered));
                        // The first layers of a stage are recomputed.
                        let full = f64::from(layer) + 0.5 < closed.recompute.full_share * all;
                        let recomputed: Vec<BlockHandle> =
                            if full { again.iter().map(|bytes| m.allocate(by * bytes)).collect() } else { Vec::new() };
                        let own: Vec<BlockHandle> = again.iter().take(2).map(|bytes| m.allocate(by * bytes)).collect();
                        let next = m.allocate(by * gradient);
                        // Separate passes of weight gradients need the kept activations until then.
                        let from = if splits { list.len() } else { list.len().saturating_sub(kept.len()) };
                        m.free(list.split_off(from).into_iter().chain(own).chain(recomputed).chain(gather));
                        m.free([flowing]);
                        flowing = next;
                    }
                    m.free([flowing]);
                }
                PassKind::Weights => m.free(list.drain(..)),
            }
            out.curve.push((m.in_pass as f64, m.allocator.reserved() as f64));
        }
    }
    out.allocated = m.most as f64;
    out.reserved = m.allocator.reserved() as f64;
    out.allocations = m.allocator.allocations();
    out
}

/// Length of the `number`-th micro-batch of a replica since the beginning of the run, relative to the mean.
pub(super) fn length(spread: f64, seed: u64, replica: u32, number: u64) -> f64 {
    if spread <= 0.0 {
        return 1.0;
    }
    Distribution::LogNormal { mean: 1.0, cv: spread }.draw(&mut Stream::new(seed, LENGTHS, replica).at(number))
}

/// Divides the activations of a layer into tensors: block inputs and norms, Q with K and V, attention output, up
/// projections, activation (arXiv 2205.05198, section 4.1).
fn tensors(s: &TrainingInput, bytes: f64) -> Vec<f64> {
    let a = &s.arch;
    let split = if s.sequence_parallel { s.tp } else { Count::ONE };
    let (h, tp) = (a.hidden / split.max(Count::ONE), s.tp.max(Count::ONE));
    let width = if a.is_moe() { a.top_k * a.moe_ffn + a.shared_ffn } else { f64::from(a.ffn) };
    let ups = (a.mlp_matrices() - 1.0).max(1.0);
    let parts = if a.convolutions.is_some() {
        vec![1.0; 6]
    } else {
        let kv = 2.0 * a.kv_heads * a.head_dim / tp;
        vec![ups * width / tp, width / tp, a.heads * a.head_dim / tp + kv, a.heads * a.head_dim / tp, h, h, h, h]
    };
    let all: f64 = parts.iter().sum();
    parts.into_iter().map(|part| bytes * part / all.max(1e-12)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use atlas_perf::training::Schedule as PipelineSchedule;

    fn job() -> TrainingInput {
        TrainingInput {
            tp: Count::new(2),
            pp: Count::new(4),
            dp: Count::new(4),
            accelerators: 32.0,
            global: 128.0,
            ..TrainingInput::default()
        }
    }

    #[test]
    fn peak_memory_matches_the_closed_form() {
        for recompute in [Recompute::None, Recompute::Selective, Recompute::Full] {
            let system = TrainingInput { recompute, ..job() };
            let found = simulate(&system, &Constants::default(), 0.0, 1, 2);
            let closed = estimate(&system, &Constants::default()).memory;
            let expected = closed.allocated() - closed.buffers;
            let ratio = found.allocated / expected;
            assert!((0.9..1.15).contains(&ratio), "{recompute:?}: {ratio}");
            assert!(found.reserved >= found.allocated && found.fragmentation() < 0.25, "{}", found.fragmentation());
        }
    }

    #[test]
    fn peak_memory_per_pipeline_schedule_matches_the_closed_form() {
        for (schedule, vpp) in [
            (PipelineSchedule::OneForwardOneBackward, Count::new(2)),
            (PipelineSchedule::AllForward, Count::ONE),
            (PipelineSchedule::ZeroBubble1p, Count::ONE),
            (PipelineSchedule::ZeroBubble, Count::ONE),
        ] {
            let mut system = TrainingInput { recompute: Recompute::None, schedule, vpp, global: 64.0, ..job() };
            for gb in [60e9, 80e9, 500e9] {
                system.accelerator.mem_bytes = gb;
                let found = simulate(&system, &Constants::default(), 0.0, 1, 2);
                let closed = estimate(&system, &Constants::default()).memory;
                let ratio = found.allocated / (closed.allocated() - closed.buffers);
                assert!((0.85..1.15).contains(&ratio), "{schedule:?} {gb}: {ratio}");
            }
        }
    }

    #[test]
    fn varying_lengths_raise_peak_memory_and_fragmentation() {
        let system = TrainingInput { recompute: Recompute::None, ..job() };
        let alike = simulate(&system, &Constants::default(), 0.0, 1, 3);
        let varied = simulate(&system, &Constants::default(), 0.3, 1, 3);
        assert!(varied.reserved > alike.reserved, "{} {}", varied.reserved, alike.reserved);
        assert!(varied.fragmentation() > alike.fragmentation());
        // The mean length is one.
        let mean = (0..5000).map(|k| length(0.3, 7, 0, k)).sum::<f64>() / 5000.0;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
    }

    #[test]
    fn every_step_frees_what_it_allocates() {
        let system = job();
        let (one, five) =
            (simulate(&system, &Constants::default(), 0.0, 1, 1), simulate(&system, &Constants::default(), 0.0, 1, 5));
        assert_eq!(one.allocated, five.allocated);
        assert_eq!(one.curve.len(), 2 * system.micro_batches() as usize);
        assert!(five.allocations > 4 * one.allocations);
    }
}
