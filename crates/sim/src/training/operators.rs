//! Operators of a layer, each with the times of its passes by the analytical engine.
//!
//! The layers of a stage are the mean layer of the analytical engine: blocks of every kind in the model, each scaled by
//! its share of the layers. Operators are timed individually, by the same function that times a whole layer.

use atlas_perf::accelerator::Precision;
use atlas_perf::constants::Constants;
use atlas_perf::ops;
use atlas_perf::ops::{Op, OpName, Work};
use atlas_perf::training::pipeline::Pass;
use atlas_perf::training::{self, Plan, Recompute, TimeBreakdown, TrainingInput, comm, layer};

use super::program::Action;

/// Times of an operator on one accelerator for one micro-batch, s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operator {
    /// Kind of operator.
    pub action: Action,
    /// Forward pass.
    pub forward: f64,
    /// Gradient of the input.
    pub input: f64,
    /// Gradient of the weights.
    pub weights: f64,
    /// Recomputation before the gradients.
    pub recompute: f64,
}

impl Operator {
    /// Total over all passes.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.forward + self.input + self.weights + self.recompute
    }

    /// Returns the operator interpolated from `self` (`share` = 0) to the same operator in another format (`share` = 1).
    #[must_use]
    pub fn toward(&self, to: &Operator, share: f64) -> Operator {
        let mix = |a: f64, b: f64| a + share * (b - a);
        Operator {
            forward: mix(self.forward, to.forward),
            input: mix(self.input, to.input),
            weights: mix(self.weights, to.weights),
            recompute: mix(self.recompute, to.recompute),
            ..*self
        }
    }

    /// Returns the operator with all times multiplied by `by`.
    #[must_use]
    pub fn scaled(&self, by: f64) -> Operator {
        Operator {
            forward: self.forward * by,
            input: self.input * by,
            weights: self.weights * by,
            recompute: self.recompute * by,
            ..*self
        }
    }
}

/// Part of a layer with its own residual connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Share of the layers that contain it.
    pub share: f64,
    /// Tensor-parallel collectives of a pass, scaled by the share, in seconds without contention.
    pub tensor: f64,
    /// Share of it that is recomputed from its input, with its collectives.
    pub recomputed: f64,
    /// Operators in order, scaled by the share.
    pub operators: Vec<Operator>,
}

impl Block {
    /// Returns the block interpolated from `self` (`share` = 0) to the same block in another format (`share` = 1).
    #[must_use]
    pub fn toward(&self, to: &Block, share: f64) -> Block {
        let operators = self.operators.iter().zip(&to.operators).map(|(own, to)| own.toward(to, share)).collect();
        Block { operators, ..*self }
    }

    /// Returns the block with the times of its operators multiplied by `by`.
    #[must_use]
    pub fn scaled(&self, by: f64) -> Block {
        Block { operators: self.operators.iter().map(|operator| operator.scaled(by)).collect(), ..*self }
    }
}

/// Returns the blocks of the mean layer in `precision`, in order of execution.
#[must_use]
pub fn blocks(i: &TrainingInput, c: &Constants, precision: Precision, plan: Plan) -> Vec<Block> {
    let fabric = comm::fabric(i, c);
    let mut all = Vec::new();
    training::for_each_block(i, |block| {
        let mut ops = Vec::new();
        block.operators(i, &mut ops);
        all.push(Block {
            share: block.share,
            tensor: block.share * comm::reduction(i, &fabric, block),
            recomputed: block.recomputed(plan),
            operators: ops.iter().map(|op| timed(i, c, op, precision, plan).scaled(block.share)).collect(),
        });
    });
    all
}

/// Returns the operators of the output layer and the loss.
#[must_use]
pub fn head(i: &TrainingInput, c: &Constants) -> Vec<Operator> {
    let tokens = i.micro * i.target() / i.cp * i.arch.head_share(i.seq);
    let mut list = Vec::new();
    ops::head(&mut list, &i.arch, tokens, f64::from(i.tp), i.element_bytes());
    list.iter().map(|op| timed(i, c, op, layer::attention_precision(i), Plan::of(Recompute::None))).collect()
}

/// Returns the image encoder as one operator, or nothing without images.
#[must_use]
pub fn images(i: &TrainingInput, c: &Constants, plan: Plan) -> Vec<Operator> {
    if i.images.is_none() {
        return Vec::new();
    }
    let pass = training::images::seconds(i, c, &comm::fabric(i, c), plan);
    let Pass { forward, input, weights } = pass;
    vec![Operator { action: Action::Images, forward, input, weights, recompute: 0.0 }]
}

/// Returns a convolutional network as two operators, in the proportions of its breakdown. Matrix multiplications: each
/// half of the backward pass takes `backward` times as long as the forward pass. Memory-bound operators: three of eight
/// memory passes are forward.
#[must_use]
pub fn convolutions(t: &TimeBreakdown, trained: f64, backward: f64) -> Vec<Operator> {
    let forward = t.gemm / (1.0 + backward * (1.0 + trained));
    let product = backward * forward;
    let whole = |action| Operator { action, forward: 0.0, input: 0.0, weights: 0.0, recompute: 0.0 };
    let matrices = Operator { forward, input: product, weights: trained * product, ..whole(Action::Convolutions) };
    let rest = t.elementwise + t.attention;
    let again = t.recompute;
    vec![
        matrices,
        Operator { forward: 0.375 * rest, input: 0.625 * rest, recompute: again, ..whole(Action::Elementwise) },
    ]
}

/// Returns the pass times of an operator. The analytical engine returns only their sum, so each is computed from a
/// variant: the forward pass from full recomputation, the weight gradients from the difference to a variant that trains
/// nothing.
fn timed(i: &TrainingInput, c: &Constants, op: &Op, precision: Precision, plan: Plan) -> Operator {
    let whole = layer::operator_time(i, c, *op, precision, plan);
    let forward = layer::operator_time(i, c, *op, precision, Plan::of(Recompute::Full)).recompute;
    let weights = match op.work {
        Work::Gemm(_) => {
            // Use the name of an operator without an adapter.
            let bare = Op { name: if op.name == OpName::Router { OpName::Router } else { OpName::Logits }, ..*op };
            let none = TrainingInput { trained: 0.0, ..*i };
            let seconds =
                |i: &TrainingInput| layer::operator_time(i, c, bare, precision, Plan::of(Recompute::None)).gemm;
            (seconds(i) - seconds(&none)).max(0.0)
        }
        _ => 0.0,
    };
    let both = whole.total() - whole.recompute;
    let action = Action::Operator(op.name);
    Operator { action, forward, input: (both - forward - weights).max(0.0), weights, recompute: whole.recompute }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use atlas_core::count::Count;
    use atlas_perf::arch::Architecture;
    use atlas_perf::training::estimate;

    #[test]
    fn operators_add_up_to_the_analytical_breakdown() {
        let dense = TrainingInput { recompute: Recompute::Selective, ..TrainingInput::default() };
        let experts = Architecture {
            experts: Count::new(8),
            top_k: Count::new(2),
            moe_ffn: Count::new(11008),
            ..Architecture::default()
        };
        let c = Constants::default();
        for input in [dense, TrainingInput { arch: experts, ep: Count::new(8), ..dense }] {
            let mut e = estimate(&input, &c);
            e.time.host = 0.0;
            let blocks = blocks(&input, &c, input.precision, e.recompute);
            let layers: f64 = blocks.iter().flat_map(|b| &b.operators).map(Operator::total).sum();
            let found = input.arch.layers * layers + head(&input, &c).iter().map(Operator::total).sum::<f64>();
            let t = &e.time;
            // Gradients are also accumulated, micro-batch by micro-batch.
            let expected = (t.gemm + t.attention + t.elementwise + t.recompute) / input.micro_batches();
            assert!(found < expected && found > 0.97 * expected, "{found} {expected}");
            let product =
                blocks.iter().flat_map(|b| &b.operators).find(|o| o.action == Action::Operator(OpName::MlpUp)).unwrap();
            assert!((product.input / product.forward - 1.0).abs() < 0.2, "{product:?}");
            assert!((product.weights / product.forward - 1.0).abs() < 0.3, "{product:?}");
        }
    }
}
