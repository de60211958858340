//! A pass as tasks on four streams of an accelerator. Each stream runs its tasks in order, and tasks wait for tasks of
//! other streams, as frameworks enqueue a step. Overlap and exposed time follow from this.

use atlas_perf::ops::OpName;

/// A stream of an accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Kernels.
    Compute,
    /// Collectives inside layers: tensor, context and expert parallelism.
    Model,
    /// All-gathers of weights and reduce-scatters of gradients, layer by layer.
    Data,
    /// Transfers to and from the host.
    Copy,
}

/// Number of streams of an accelerator.
pub const LANES: usize = 4;

impl Lane {
    /// All streams, in order.
    pub const ALL: [Lane; LANES] = [Lane::Compute, Lane::Model, Lane::Data, Lane::Copy];
}

/// The port that a transfer uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// No shared port.
    None,
    /// Port of the accelerator into the scale-up fabric.
    Link,
    /// Its network card.
    Nic,
}

/// Kind of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Forward or gradients of an operator.
    Operator(OpName),
    /// Recomputation of an operator for the backward pass.
    Recompute(OpName),
    /// The encoder of images before a language model.
    Images,
    /// Convolutions of a vision network.
    Convolutions,
    /// Norms, activations and additions of a vision network.
    Elementwise,
    /// Several consecutive operators.
    CombinedOperators,
    /// Tensor parallelism: all-gather before, reduce-scatter or all-reduce after the GEMMs of a block.
    Tensor,
    /// Exchange of KV between the ranks of a sequence (context parallelism).
    Context,
    /// All-to-all of tokens to their experts.
    Dispatch,
    /// All-to-all of tokens back from their experts.
    Combine,
    /// All-gather of the weights of a layer.
    Gather,
    /// Reduce-scatter of the gradients of a layer.
    Scatter,
    /// Copy to or from the host.
    Offload,
}

impl Action {
    /// Display name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Action::Operator(name) | Action::Recompute(name) => operator(name),
            Action::Images => "images",
            Action::Convolutions => "convolutions",
            Action::Elementwise => "norms and activations",
            Action::CombinedOperators => "operators",
            Action::Tensor => "tensor-parallel collective",
            Action::Context => "context exchange",
            Action::Dispatch => "expert dispatch",
            Action::Combine => "expert combine",
            Action::Gather => "weight gather",
            Action::Scatter => "gradient scatter",
            Action::Offload => "host copy",
        }
    }
}

fn operator(name: OpName) -> &'static str {
    match name {
        OpName::Norm => "norm",
        OpName::QueryKeyValue => "QKV",
        OpName::KeyValueUp => "KV up",
        OpName::Rotary => "rotary",
        OpName::Attention => "attention",
        OpName::Indexer => "indexer",
        OpName::MixerIn => "mixer in",
        OpName::Recurrence => "recurrence",
        OpName::MixerOut => "mixer out",
        OpName::OutputProjection => "projection",
        OpName::Residual => "residual",
        OpName::Router => "router",
        OpName::Dispatch => "permutation",
        OpName::MlpUp => "MLP up",
        OpName::Activation => "activation",
        OpName::MlpDown => "MLP down",
        OpName::Latent => "latent",
        OpName::SharedUp => "shared up",
        OpName::SharedDown => "shared down",
        OpName::Embedding => "embedding",
        OpName::Logits => "logits",
        OpName::Loss => "loss",
    }
}

/// A task of a pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Item {
    /// Kind of the task.
    pub action: Action,
    /// Duration without contention, s.
    pub seconds: f64,
    /// Port that it uses.
    pub port: Port,
    /// Number of tasks of the pass on each stream that must be complete before it may start.
    pub after: [u32; LANES],
}

/// Tasks of a pass, in order, for each stream.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// Tasks of each stream, in the order of [`Lane::ALL`].
    pub lanes: [Vec<Item>; LANES],
}

/// Timing of a program that runs without contention.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UncontendedTiming {
    /// Time until the end of the last kernel, s.
    pub seconds: f64,
    /// Start and end of every task, in seconds since the start of the pass.
    pub spans: [Vec<(f64, f64)>; LANES],
}

impl Program {
    /// Appends a task to a stream.
    pub fn push(&mut self, lane: Lane, action: Action, seconds: f64, port: Port, after: [u32; LANES]) {
        if let Some(list) = self.lanes.get_mut(lane as usize) {
            list.push(Item { action, seconds, port, after });
        }
    }

    /// Tasks of a stream, in order.
    #[must_use]
    pub fn lane(&self, lane: Lane) -> &[Item] {
        self.lanes.get(lane as usize).map_or(&[], Vec::as_slice)
    }

    /// Number of tasks of a stream.
    #[must_use]
    pub fn count(&self, lane: Lane) -> u32 {
        self.lane(lane).len() as u32
    }

    /// Total duration of the tasks of a stream, s.
    #[must_use]
    pub fn busy(&self, lane: Lane) -> f64 {
        self.lane(lane).iter().map(|item| item.seconds).sum()
    }

    /// Runs the program without contention: each task starts when its stream is free and its dependencies are complete.
    #[must_use]
    pub fn uncontended_timing(&self) -> UncontendedTiming {
        let mut out = UncontendedTiming::default();
        loop {
            let mut moved = false;
            for (lane, items) in self.lanes.iter().enumerate() {
                while let Some(begin) = out.begins(lane, items) {
                    let at = out.spans.get(lane).map_or(0, Vec::len);
                    let seconds = items.get(at).map_or(0.0, |item| item.seconds);
                    if let Some(spans) = out.spans.get_mut(lane) {
                        spans.push((begin, begin + seconds));
                    }
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        out.seconds = out.spans.first().and_then(|spans| spans.last()).map_or(0.0, |span| span.1);
        out
    }

    /// Merges consecutive kernels if no task waits for the first and the second waits for nothing. Timing is the same
    /// with fewer events.
    #[must_use]
    pub fn joined(&self) -> Program {
        let compute = Lane::Compute as usize;
        let waited = |count: u32| {
            self.lanes.iter().skip(1).flatten().any(|item| item.after.first().is_some_and(|after| *after == count))
        };
        // For each count of original kernels, the corresponding count of merged kernels.
        let mut become_of = vec![0u32];
        let mut kernels: Vec<Item> = Vec::new();
        let mut met = [0; LANES];
        for (before, item) in (0u32..).zip(self.lane(Lane::Compute)) {
            let waits = item.after.iter().zip(&met).skip(1).any(|(after, met)| after > met);
            for (most, after) in met.iter_mut().zip(&item.after) {
                *most = (*most).max(*after);
            }
            match kernels.last_mut() {
                Some(last) if !waits && !waited(before) => {
                    last.seconds += item.seconds;
                    last.action = Action::CombinedOperators;
                }
                _ => kernels.push(*item),
            }
            become_of.push(kernels.len() as u32);
        }
        let mut out = self.clone();
        for item in out.lanes.iter_mut().skip(1).flatten() {
            if let Some(after) = item.after.first_mut() {
                *after = become_of.get(*after as usize).copied().unwrap_or(kernels.len() as u32);
            }
        }
        if let Some(list) = out.lanes.get_mut(compute) {
            *list = kernels;
        }
        out
    }
}

impl UncontendedTiming {
    /// Start time of the next task of a stream; `None` if there is none, or if it waits for a task that has not ended.
    fn begins(&self, lane: usize, items: &[Item]) -> Option<f64> {
        let own = self.spans.get(lane)?;
        let item = items.get(own.len())?;
        let mut begin = own.last().map_or(0.0, |span| span.1);
        for (spans, &after) in self.spans.iter().zip(&item.after) {
            if let Some(last) = after.checked_sub(1) {
                begin = begin.max(spans.get(last as usize)?.1);
            }
        }
        Some(begin)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;

    /// Three kernels, and a collective between the first two, half of which overlaps with the second.
    fn program() -> Program {
        let mut p = Program::default();
        let kernel = Action::Elementwise;
        p.push(Lane::Compute, kernel, 1.0, Port::None, [0; 4]);
        p.push(Lane::Compute, kernel, 0.5, Port::None, [0; 4]);
        p.push(Lane::Model, Action::Tensor, 2.0, Port::Link, [2, 0, 0, 0]);
        p.push(Lane::Model, Action::Tensor, 2.0, Port::Link, [2, 0, 0, 0]);
        p.push(Lane::Compute, kernel, 3.0, Port::None, [0, 1, 0, 0]);
        p.push(Lane::Compute, kernel, 1.0, Port::None, [0, 2, 0, 0]);
        p
    }

    #[test]
    fn overlap_follows_from_dependencies() {
        let alone = program().uncontended_timing();
        assert_eq!(alone.seconds, 1.5 + 2.0 + 3.0 + 1.0);
        assert_eq!(alone.spans[1], vec![(1.5, 3.5), (3.5, 5.5)]);
        let mut late = program();
        late.lanes[1][1].seconds = 5.0;
        assert_eq!(late.uncontended_timing().seconds, 1.5 + 2.0 + 5.0 + 1.0);
    }

    #[test]
    fn joining_kernels_changes_no_time() {
        let joined = program().joined();
        assert_eq!(joined.count(Lane::Compute), 3);
        assert_eq!(joined.uncontended_timing().seconds, program().uncontended_timing().seconds);
        assert_eq!(joined.uncontended_timing().spans[1], program().uncontended_timing().spans[1]);
    }
}
