//! Passes of a chunk of layers as programs: operators in order, with the collectives before and after them.
//!
//! Tensor parallelism gathers after the norm of a block and scatters before its residual; without sequence parallelism,
//! it all-reduces there. Context parallelism exchanges KV during all but the last step of attention. Experts run
//! between a dispatch and a combine. If software splits a collective, the given share overlaps with its kernel. Fully
//! sharded weights are gathered one layer ahead, and their gradients are scattered layer by layer (arXiv 2304.11277,
//! sections 3.3 and 3.4).

use super::operators::{Block, Operator};
use super::program::{Action, LANES, Lane, Port, Program};
use super::schedule::PassKind;
use atlas_core::count::Count;
use atlas_perf::ops::OpName;

/// Passes of one chunk of layers for one micro-batch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chunk {
    /// Forward pass.
    pub forward: Pass,
    /// Gradients of inputs and weights.
    pub backward: Pass,
    /// Gradients of inputs alone.
    pub input: Pass,
    /// Gradients of weights alone.
    pub weights: Pass,
}

impl Chunk {
    /// Returns the pass of a kind. `splits`: whether gradients of inputs and of weights are separate passes.
    #[must_use]
    pub fn pass(&self, kind: PassKind, splits: bool) -> &Pass {
        match kind {
            PassKind::Forward => &self.forward,
            PassKind::Backward if splits => &self.input,
            PassKind::Backward => &self.backward,
            PassKind::Weights => &self.weights,
        }
    }

    /// Mutable variant of [`Chunk::pass`].
    pub fn pass_mut(&mut self, kind: PassKind, splits: bool) -> &mut Pass {
        match kind {
            PassKind::Forward => &mut self.forward,
            PassKind::Backward if splits => &mut self.input,
            PassKind::Backward => &mut self.backward,
            PassKind::Weights => &mut self.weights,
        }
    }
}

/// A pass and its duration without contention.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pass {
    /// Tasks of the pass.
    pub program: Program,
    /// Duration without contention, s.
    pub seconds: f64,
    /// Total duration of its kernels, s.
    pub compute: f64,
    /// Share of the output layer in the kernels. It runs after the layers in forward passes, and before them in
    /// backward passes.
    pub head: f64,
}

impl Pass {
    /// Creates the pass of a program.
    #[must_use]
    pub fn of(program: Program) -> Pass {
        let seconds = program.uncontended_timing().seconds;
        Pass { seconds, compute: program.busy(Lane::Compute), head: 0.0, program }
    }

    /// Sets the time of the output layer to `seconds`.
    #[must_use]
    pub fn with_head(self, seconds: f64) -> Pass {
        Pass { head: (seconds / self.compute.max(1e-15)).clamp(0.0, 1.0), ..self }
    }
}

/// Communication of a mean layer, in seconds without contention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Share of tensor-parallel collectives that does not overlap with kernels.
    pub tensor_exposed: f64,
    /// Port of tensor parallelism.
    pub tensor_port: Port,
    /// Whether they are a gather before and a scatter after each block, instead of an all-reduce after.
    pub sequence: bool,
    /// Exchange of context parallelism, forward.
    pub context: f64,
    /// Ranks in the ring of context parallelism.
    pub context_ranks: Count,
    /// Traffic of the backward pass over that of the forward pass.
    pub context_back: f64,
    /// Port of context parallelism.
    pub context_port: Port,
    /// Dispatch and combine together, per pass.
    pub expert: f64,
    /// Share of them that is exposed, from measurements.
    pub expert_exposed: f64,
    /// Port of expert parallelism.
    pub expert_port: Port,
    /// All-gather of fully sharded weights, per pass.
    pub gather: f64,
    /// Reduce-scatter of their gradients.
    pub scatter: f64,
    /// Port of both.
    pub data_port: Port,
    /// Whether weights are gathered a layer ahead, and gradients are scattered while the next layer computes.
    pub prefetches_weights: bool,
    /// Whether the weights of the last layer are kept for the backward pass, which follows immediately.
    pub keeps_last_weights: bool,
    /// Copies of a layer's weights and activations to and from the host, per pass.
    pub copy: f64,
}

/// What runs before and after the layers of a chunk: the image encoder and the output layer.
#[derive(Debug, Clone, Copy, Default)]
pub struct SurroundingOperators<'a> {
    /// Operators before the layers.
    pub front: &'a [Operator],
    /// Operators after the layers.
    pub head: &'a [Operator],
}

/// Returns the passes of `layers` mean layers and of the operators around them.
#[must_use]
pub fn chunk(blocks: &[Block], around: SurroundingOperators<'_>, layers: f64, traffic: &Traffic) -> Chunk {
    let head = around.head;
    let write = || Writer::new(blocks, around, layers, traffic);
    let all = |seconds: fn(&Operator) -> f64| head.iter().map(seconds).sum();
    Chunk {
        forward: Pass::of(write().forward()).with_head(all(|op| op.forward)),
        backward: Pass::of(write().backward(|op| op.input + op.weights, true))
            .with_head(all(|op| op.input + op.weights)),
        input: Pass::of(write().backward(|op| op.input, false)).with_head(all(|op| op.input)),
        weights: Pass::of(write().weights()).with_head(all(|op| op.weights)),
    }
}

/// Kind of pass through a layer.
#[derive(Clone, Copy, PartialEq)]
enum LayerPass {
    Forward,
    Recompute,
    Backward,
}

struct Writer<'a> {
    blocks: &'a [Block],
    around: SurroundingOperators<'a>,
    traffic: &'a Traffic,
    layers: u32,
    /// Mean layers per written layer: 1 if the number of layers is whole.
    scale: f64,
    /// Share of blocks with attention, over which context-parallel traffic is distributed.
    attentions: f64,
    out: Program,
    /// Number of tasks of each stream that the next kernel waits for.
    waits: [u32; LANES],
    /// Number of tasks of the data stream up to the last gather.
    gathered: u32,
}

fn is_attention(op: &Operator) -> bool {
    op.action == Action::Operator(OpName::Attention)
}

fn is_routed(block: &Block) -> bool {
    block.operators.iter().any(|op| op.action == Action::Operator(OpName::Router))
}

impl<'a> Writer<'a> {
    fn new(blocks: &'a [Block], around: SurroundingOperators<'a>, layers: f64, traffic: &'a Traffic) -> Self {
        let written = if layers > 0.0 { layers.round().max(1.0) } else { 0.0 };
        let attends = |block: &&Block| block.operators.iter().any(is_attention);
        Writer {
            blocks,
            around,
            traffic,
            layers: written as u32,
            scale: if written > 0.0 { layers / written } else { 0.0 },
            attentions: blocks.iter().filter(attends).map(|block| block.share).sum::<f64>().max(1e-12),
            out: Program::default(),
            waits: [0; LANES],
            gathered: 0,
        }
    }

    fn done(&self) -> u32 {
        self.out.count(Lane::Compute)
    }

    fn kernel(&mut self, action: Action, seconds: f64) {
        if seconds > 0.0 {
            self.out.push(Lane::Compute, action, seconds * self.scale, Port::None, self.waits);
        }
    }

    /// Adds communication that starts once `kernels` kernels are complete.
    fn send(&mut self, lane: Lane, action: Action, seconds: f64, port: Port, kernels: u32) {
        if seconds > 0.0 {
            let mut after = [0; LANES];
            if let Some(own) = after.first_mut() {
                *own = kernels;
            }
            self.out.push(lane, action, seconds * self.scale, port, after);
        }
    }

    /// Makes the next kernel wait for all tasks of a stream so far.
    fn wait_for(&mut self, lane: Lane) {
        let count = self.out.count(lane);
        if let Some(own) = self.waits.get_mut(lane as usize) {
            *own = count;
        }
    }

    /// Completes the program. If some tasks have no kernel that waits for them, a final empty kernel does.
    fn finished(mut self) -> Program {
        let held = self.out.lane(Lane::Compute).iter().fold([0; LANES], |mut held, item| {
            held.iter_mut().zip(&item.after).for_each(|(most, after)| *most = (*most).max(*after));
            held
        });
        if self.waits.iter().zip(&held).any(|(wait, held)| wait > held) {
            self.out.push(Lane::Compute, Action::Elementwise, 0.0, Port::None, self.waits);
        }
        self.out
    }

    fn forward(mut self) -> Program {
        for op in self.around.front {
            self.out.push(Lane::Compute, op.action, op.forward, Port::None, self.waits);
        }
        self.gather();
        for number in 0..self.layers {
            self.copy_ahead();
            self.wait_for_weights(number);
            self.layer(LayerPass::Forward, |op| op.forward);
        }
        for op in self.around.head {
            self.out.push(Lane::Compute, op.action, op.forward, Port::None, self.waits);
        }
        self.finished()
    }

    /// `whole`: whether weight gradients are complete in this pass, so that they are scattered.
    fn backward(mut self, seconds: impl Fn(&Operator) -> f64 + Copy, whole: bool) -> Program {
        for op in self.around.head.iter().rev() {
            self.out.push(Lane::Compute, op.action, seconds(op), Port::None, self.waits);
        }
        if !self.traffic.keeps_last_weights {
            self.gather();
        }
        for number in 0..self.layers {
            self.copy_ahead();
            self.wait_for_weights(number);
            self.layer(LayerPass::Recompute, |op| op.recompute);
            self.layer(LayerPass::Backward, seconds);
            if whole {
                self.scatter();
            }
        }
        for op in self.around.front.iter().filter(|op| op.total() > op.forward) {
            self.out.push(Lane::Compute, op.action, seconds(op), Port::None, self.waits);
        }
        self.finished()
    }

    fn weights(mut self) -> Program {
        for op in self.around.head.iter().rev() {
            self.out.push(Lane::Compute, op.action, op.weights, Port::None, self.waits);
        }
        for _ in 0..self.layers {
            for op in self.blocks.iter().rev().flat_map(|block| block.operators.iter().rev()) {
                self.kernel(op.action, op.weights);
            }
            self.scatter();
        }
        for op in self.around.front.iter().filter(|op| op.weights > 0.0) {
            self.out.push(Lane::Compute, op.action, op.weights, Port::None, self.waits);
        }
        self.finished()
    }

    /// Makes a layer wait for its copies, and starts those of the next layer. That of the last layer is the first one of
    /// the next pass, since the host enqueues passes ahead of the device. Kernels of a pass wait for all copies of
    /// earlier passes.
    fn copy_ahead(&mut self) {
        self.wait_for(Lane::Copy);
        self.send(Lane::Copy, Action::Offload, self.traffic.copy, Port::None, self.done());
    }

    /// Gathers the weights of a layer once the previous kernels are complete.
    fn gather(&mut self) {
        if self.traffic.gather <= 0.0 {
            return;
        }
        self.send(Lane::Data, Action::Gather, self.traffic.gather, self.traffic.data_port, self.done());
        self.gathered = self.out.count(Lane::Data);
    }

    /// Makes a layer wait for its weights. The weights of the next layer are gathered before gradients are scattered.
    fn wait_for_weights(&mut self, number: u32) {
        if self.traffic.gather <= 0.0 {
            return;
        }
        if !self.traffic.prefetches_weights && number > 0 {
            self.gather();
        }
        if let Some(own) = self.waits.get_mut(Lane::Data as usize) {
            *own = self.gathered.max(*own);
        }
        if self.traffic.prefetches_weights && number + 1 < self.layers {
            self.gather();
        }
    }

    fn scatter(&mut self) {
        self.send(Lane::Data, Action::Scatter, self.traffic.scatter, self.traffic.data_port, self.done());
        if !self.traffic.prefetches_weights {
            self.wait_for(Lane::Data);
        }
    }

    /// Writes the blocks of a layer.
    fn layer(&mut self, way: LayerPass, seconds: impl Fn(&Operator) -> f64) {
        let backward = way == LayerPass::Backward;
        let blocks = self.blocks;
        for at in 0..blocks.len() {
            let Some(block) = blocks.get(if backward { blocks.len() - 1 - at } else { at }) else { continue };
            self.block(way, block, &seconds);
        }
    }

    fn block(&mut self, way: LayerPass, block: &Block, seconds: &impl Fn(&Operator) -> f64) {
        let t = self.traffic;
        // Share of the collectives that runs.
        let traffic = if way == LayerPass::Recompute { block.recomputed } else { 1.0 };
        let each = traffic * if t.sequence { 0.5 * block.tensor } else { block.tensor };
        let (shown, beside) = (each * t.tensor_exposed, each * (1.0 - t.tensor_exposed));
        let backward = way == LayerPass::Backward;
        let context = match way {
            LayerPass::Forward => t.context,
            LayerPass::Recompute => traffic * t.context,
            LayerPass::Backward => t.context_back * t.context,
        } * block.share
            / self.attentions;
        let experts = if is_routed(block) { traffic * 0.5 * t.expert } else { 0.0 };
        let count = block.operators.len();
        for at in 0..count {
            let Some(op) = block.operators.get(if backward { count - 1 - at } else { at }) else { continue };
            let is = |name| op.action == Action::Operator(name);
            let (first, last) =
                if backward { (OpName::MlpDown, OpName::MlpUp) } else { (OpName::MlpUp, OpName::MlpDown) };
            if experts > 0.0 && is(first) {
                self.exchange(if backward { Action::Combine } else { Action::Dispatch }, experts);
            }
            let closing = at + 2 == count;
            if closing {
                self.send(Lane::Model, Action::Tensor, beside, t.tensor_port, self.done());
            }
            let action = match (way, op.action) {
                (LayerPass::Recompute, Action::Operator(name)) => Action::Recompute(name),
                (_, action) => action,
            };
            if context > 0.0 && is_attention(op) {
                // A rank attends to its own keys while those of its neighbor are in transit, and so on around the ring:
                // all but the last step of attention overlap with the exchange (arXiv 2310.01889, section 3).
                let last = seconds(op) / t.context_ranks;
                self.send(Lane::Model, Action::Context, context, t.context_port, self.done());
                self.kernel(action, seconds(op) - last);
                self.wait_for(Lane::Model);
                self.kernel(action, last);
            } else {
                self.kernel(action, seconds(op));
            }
            if experts > 0.0 && is(last) {
                self.exchange(if backward { Action::Dispatch } else { Action::Combine }, experts);
            }
            if closing {
                self.send(Lane::Model, Action::Tensor, shown, t.tensor_port, self.done());
                self.wait_for(Lane::Model);
            } else if at == 0 && t.sequence && count > 2 {
                self.send(Lane::Model, Action::Tensor, shown, t.tensor_port, self.done());
                self.wait_for(Lane::Model);
                self.send(Lane::Model, Action::Tensor, beside, t.tensor_port, self.done());
            } else if at == 1 && beside > 0.0 && experts <= 0.0 {
                // The kernel that overlaps with the gather has ended; the next one needs all of its input.
                self.wait_for(Lane::Model);
            }
        }
    }

    /// Adds the exposed part of an exchange. The hidden part is not sent: in full, it would outlast the kernels of
    /// measured runs that are faster. An exchange therefore takes the exposed share of the closed form.
    fn exchange(&mut self, action: Action, seconds: f64) {
        let t = self.traffic;
        self.send(Lane::Model, action, seconds * t.expert_exposed, t.expert_port, self.done());
        self.wait_for(Lane::Model);
    }
}
