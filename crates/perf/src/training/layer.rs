//! Compute of one layer for one micro-batch: forward, backward and recomputation, operator by operator.

use super::adapters::Adapters;
use super::terms::{Class, OperatorSink, OperatorTime, Operators};
use super::{Plan, Software, TrainingInput, for_each_block};
use crate::accelerator::Precision;
use crate::arch::Attention;
use crate::constants::Constants;
use crate::constants::documented::{ATTENTION_BACKWARD_FLOPS, ELEMENTWISE_BACKWARD_TRAFFIC, EXPERT_WIDTH};
use crate::ops;
use crate::ops::{Op, OpName, OpSink, Work};
use crate::roofline;
use crate::roofline::{FusedAttention, Gemm, GemmModel};
use atlas_core::count::Count;

/// Time of a layer, and its kernel launches and recomputed FLOPs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LayerTime {
    /// Matrix multiplications, s.
    pub gemm: f64,
    /// Attention kernels, s.
    pub attention: f64,
    /// Memory-bound kernels, s.
    pub elementwise: f64,
    /// Recomputation, s.
    pub recompute: f64,
    /// Part of the first three in the forward pass, s.
    pub forward: f64,
    /// Part of the first three for weight gradients, s.
    pub weights: f64,
    /// Number of kernel launches by the host.
    pub kernels: f64,
    /// Hardware FLOPs added by recomputation.
    pub recompute_flops: f64,
}

impl LayerTime {
    pub(super) fn scaled(&self, by: f64) -> LayerTime {
        LayerTime {
            gemm: self.gemm * by,
            attention: self.attention * by,
            elementwise: self.elementwise * by,
            recompute: self.recompute * by,
            forward: self.forward * by,
            weights: self.weights * by,
            kernels: self.kernels * by,
            recompute_flops: self.recompute_flops * by,
        }
    }

    pub(super) fn plus(&self, o: &LayerTime) -> LayerTime {
        LayerTime {
            gemm: self.gemm + o.gemm,
            attention: self.attention + o.attention,
            elementwise: self.elementwise + o.elementwise,
            recompute: self.recompute + o.recompute,
            forward: self.forward + o.forward,
            weights: self.weights + o.weights,
            kernels: self.kernels + o.kernels,
            recompute_flops: self.recompute_flops + o.recompute_flops,
        }
    }

    /// What `self` takes beyond `o`.
    pub(super) fn minus(&self, o: &LayerTime) -> LayerTime {
        self.plus(&o.scaled(-1.0))
    }

    /// Time of arithmetic and memory traffic, including recomputation, s.
    pub fn total(&self) -> f64 {
        self.gemm + self.attention + self.elementwise + self.recompute
    }
}

/// Times of one operator, s.
struct PassTimes {
    forward: f64,
    backward: f64,
    /// Part of `backward` for weight gradients.
    weights: f64,
}

/// Models of the GEMMs of operators in one format.
#[derive(Clone, Copy)]
struct GemmModels {
    precision: Precision,
    /// Forward and input gradient.
    products: GemmModel,
    /// Weight gradient. Integer training computes it in 16 bit (AQT: integers in forward and input gradient only).
    weights: GemmModel,
}

impl GemmModels {
    fn new(i: &TrainingInput, c: &Constants, precision: Precision) -> GemmModels {
        let products = GemmModel::new(&i.accelerator, c, precision);
        let weights = match precision {
            Precision::Int8 => GemmModel::new(&i.accelerator, c, Precision::Bf16),
            _ => products,
        };
        GemmModels { precision, products, weights }
    }

    fn with_wave_loss(mut self, wave_loss: f64) -> GemmModels {
        self.products.wave_loss = wave_loss;
        self.weights.wave_loss = wave_loss;
        self
    }

    /// Times of a GEMM of whose weights the share `trained` is trained.
    fn passes(&self, g: &Gemm, trained: f64) -> PassTimes {
        // Input gradient: the transposed weight. Weight gradient: tokens become the inner dimension.
        let input = Gemm { m: g.m, n: g.k, k: g.n, batch: g.batch };
        let weight = Gemm { m: g.n, n: g.k, k: g.m, batch: g.batch };
        let weights = trained * self.weights.seconds_with_cast(&weight);
        let forward = self.products.seconds_with_cast(g);
        PassTimes { forward, backward: self.products.seconds_with_cast(&input) + weights, weights }
    }
}

/// Time of a GEMM with trained weights: forward, and both gradients, s.
pub(super) struct GemmPassTimes {
    pub(super) forward: f64,
    pub(super) input: f64,
    pub(super) weights: f64,
}

/// Times of the passes of a GEMM, as if all weights were trained.
pub(super) fn gemm_pass_times(i: &TrainingInput, c: &Constants, g: &Gemm, precision: Precision) -> GemmPassTimes {
    let pair = GemmModels::new(i, c, precision).passes(g, 1.0);
    GemmPassTimes { forward: pair.forward, input: pair.backward - pair.weights, weights: pair.weights }
}

/// Time of the GEMMs of several experts. One kernel (or one stream per expert) runs groups of uneven size without the
/// library's choice of tiles, so each GEMM waits for its own last wave. Other losses grow as experts become narrower.
fn grouped_pair(i: &TrainingInput, c: &Constants, g: &Gemm, models: &GemmModels) -> PassTimes {
    let models = models.with_wave_loss(1.0);
    let narrow = 1.0 + (1.0 / c.grouped_gemm - 1.0) * EXPERT_WIDTH / g.n.min(g.k);
    let each = g.batch * narrow / GROUPS.len() as f64;
    let mut all = PassTimes { forward: 0.0, backward: 0.0, weights: 0.0 };
    for deviation in GROUPS {
        let m = g.m + deviation * g.m.sqrt();
        // An expert that runs at all has at least one token.
        let one = models.passes(&Gemm { m: m.max(1.0), batch: 1.0, ..*g }, i.trained);
        all.forward += each * one.forward;
        all.backward += each * one.backward;
        all.weights += each * one.weights;
    }
    all
}

/// Groups by number of routed tokens, in standard deviations from the mean. The variance of independent choices equals
/// their mean. Several groups smooth the steps of tile and wave quantization.
const GROUPS: [f64; 5] = [-1.4, -0.7, 0.0, 0.7, 1.4];

/// Attention with scores in memory: two batched GEMMs, with a softmax (and dropout) between them.
fn unfused_attention(i: &TrainingInput, c: &Constants, flops: f64) -> PassTimes {
    let a = &i.arch;
    let tokens = i.micro * i.seq / i.cp;
    // Computes the full square of scores and masks the upper half.
    let whole = if a.causal { 2.0 } else { 1.0 };
    let heads = a.heads / i.tp;
    let per_head = Gemm { m: i.seq / i.cp, n: i.seq, k: a.head_dim, batch: heads * i.micro };
    let scores = tokens * i.seq * heads;
    let efficiency = roofline::shape_efficiency(&i.accelerator, c, &per_head);
    let rate = roofline::best_rate(&i.accelerator, c, attention_precision(i)) * efficiency;
    let multiply = whole * flops / rate;
    // Bytes per score. Forward: written, softmax read and written on the lower half, dropout read and written with a
    // 1-byte mask, read again. Backward: gradient written, dropout, softmax (two reads, one write), three reads.
    let score = i.element_bytes();
    let dropout = if i.software.dropout { 2.0 * score + 1.0 } else { 0.0 };
    let (forward, backward) = (3.0 * score + dropout, 6.0 * score + dropout);
    let traffic = |bytes: f64| roofline::memory_seconds(&i.accelerator, c, bytes * scores);
    PassTimes { forward: multiply + traffic(forward), backward: 2.0 * multiply + traffic(backward), weights: 0.0 }
}

/// Format of operators that run in 16 bit even if layers use a narrower one: attention, the router, the output layer.
/// With a wider format of layers, the format of the layers.
pub fn attention_precision(i: &TrainingInput) -> Precision {
    match i.precision {
        wide @ (Precision::Fp32 | Precision::Tf32) => wide,
        _ => Precision::Bf16,
    }
}

fn attention_pair(i: &TrainingInput, c: &Constants, name: OpName, flops: f64, bytes: f64) -> PassTimes {
    let unfused = flops;
    // FLOPs that take the same time at the 16-bit rate.
    let flops = flops * (i.accelerator.peak(Precision::Bf16) / i.accelerator.peak(attention_precision(i))).max(1.0);
    if name == OpName::Recurrence {
        // The backward pass recomputes the states of the chunks.
        let share = roofline::scan_share(&i.accelerator, c);
        let forward = roofline::attention_seconds(&i.accelerator, c, flops / share, bytes);
        return PassTimes { forward, backward: ATTENTION_BACKWARD_FLOPS * forward, weights: 0.0 };
    }
    if !i.software.fused_attention {
        return unfused_attention(i, c, unfused);
    }
    let head = i.arch.q_width() / i.arch.heads.max(Count::ONE);
    let kernel = match i.software {
        Software { first_flash: true, .. } => FusedAttention::First,
        Software { native_attention: true, .. } => FusedAttention::Native,
        _ => FusedAttention::Second,
    };
    let share = roofline::fused_attention_share(&i.accelerator, c, head, kernel);
    let forward = roofline::attention_seconds(&i.accelerator, c, flops / share, bytes);
    PassTimes { forward, backward: forward * ATTENTION_BACKWARD_FLOPS * c.attention_backward, weights: 0.0 }
}

fn traffic_pair(i: &TrainingInput, c: &Constants, bytes: f64) -> PassTimes {
    let fused = if i.software.fused_elementwise { c.fused_traffic } else { c.eager_traffic };
    let forward = roofline::memory_seconds(&i.accelerator, c, bytes * fused);
    PassTimes { forward, backward: ELEMENTWISE_BACKWARD_TRAFFIC * forward, weights: 0.0 }
}

/// Whether a matrix has an adapter.
fn has_adapter(name: OpName, adapters: Adapters) -> bool {
    match name {
        OpName::QueryKeyValue | OpName::KeyValueUp | OpName::OutputProjection => adapters != Adapters::None,
        OpName::MixerIn
        | OpName::MixerOut
        | OpName::MlpUp
        | OpName::MlpDown
        | OpName::SharedUp
        | OpName::SharedDown => adapters == Adapters::All,
        _ => false,
    }
}

/// Adds a low-rank adapter to a frozen matrix (LoRA, arXiv 2106.09685, section 4.1). The adapter's GEMMs are small, but
/// it reads the input once more, and reads and writes the output to add its own. The backward pass reads the output's
/// gradient and the input for the two weight gradients, and adds to the input's gradient.
fn with_adapter(i: &TrainingInput, c: &Constants, g: &Gemm, plain: &PassTimes) -> PassTimes {
    let element = i.element_bytes();
    let (input, output) = (element * g.batch * g.m * g.k, element * g.batch * g.m * g.n);
    let seconds = |bytes| roofline::memory_seconds(&i.accelerator, c, bytes) + 2.0 * c.kernel_gap;
    PassTimes {
        forward: plain.forward + seconds(input + 3.0 * output),
        backward: plain.backward + seconds(4.0 * input + 2.0 * output),
        weights: plain.weights,
    }
}

/// Adds a separate kernel that unpacks the weights before every GEMM: it reads their `packed` bytes and writes them in
/// the format of the GEMM. The input's gradient needs them again.
fn with_unpacking(i: &TrainingInput, c: &Constants, g: &Gemm, packed: f64, plain: &PassTimes) -> PassTimes {
    let weights = g.batch * g.n * g.k;
    let seconds = roofline::memory_seconds(&i.accelerator, c, weights * (packed + i.weight_bytes)) + c.kernel_gap;
    PassTimes { forward: plain.forward + seconds, backward: plain.backward + seconds, weights: plain.weights }
}

/// Share of a matrix multiplication's forward pass that is recomputed if every second one is. PyTorch counts the
/// products of a layer one by one: queries, keys, values, output, gate, up, down.
fn alternate_share(i: &TrainingInput, name: OpName, gemm: &Gemm, precision: Precision) -> f64 {
    let (a, how) = (&i.arch, i.software.selective_recompute);
    let gated = a.mlp_matrices() > 2.0;
    match name {
        _ if gemm.batch > 1.0 => how.share_of_grouped(),
        _ if precision.is_narrow() => how.share_of_8_bit(),
        OpName::QueryKeyValue if matches!(a.attention, Attention::Grouped) => {
            let keys = a.kv_heads * a.head_dim;
            keys / (a.q_width() + 2.0 * keys)
        }
        OpName::OutputProjection => 1.0,
        OpName::MlpUp | OpName::SharedUp => {
            if gated {
                0.5
            } else {
                0.0
            }
        }
        OpName::MlpDown | OpName::SharedDown => {
            if gated {
                0.0
            } else {
                1.0
            }
        }
        _ => 0.5,
    }
}

/// Share of an operator's forward pass that is recomputed.
fn recomputed(i: &TrainingInput, plan: Plan, op: &Op, precision: Precision) -> f64 {
    let software = &i.software;
    let cheap = match op.name {
        // Fused attention always recomputes its scores. Otherwise, selective recomputation recomputes the cheap
        // operators.
        OpName::Attention if !software.fused_attention => 1.0,
        OpName::Logits => 0.0,
        OpName::Norm | OpName::Activation => 1.0,
        _ => match op.work {
            Work::Gemm(gemm) if software.selective_recompute.alternates() => {
                alternate_share(i, op.name, &gemm, precision)
            }
            _ => 0.0,
        },
    };
    let partly = plan.selective_share * cheap;
    let mlp = match op.name {
        OpName::Router
        | OpName::Dispatch
        | OpName::MlpUp
        | OpName::Activation
        | OpName::MlpDown
        | OpName::Latent
        | OpName::SharedUp
        | OpName::SharedDown => plan.mlp_share,
        _ => 0.0,
    };
    let partly = mlp + (1.0 - mlp) * partly;
    plan.full_share + (1.0 - plan.full_share) * partly
}

/// Time of operators in `precision` under a recomputation plan. Passes each operator to `operators`.
struct Recorder<'a, S> {
    input: &'a TrainingInput,
    constants: &'a Constants,
    models: &'a GemmModels,
    plan: Plan,
    operators: &'a mut S,
    sum: LayerTime,
}

impl<S: OperatorSink> OpSink for Recorder<'_, S> {
    fn push(&mut self, op: Op) {
        let &mut Recorder { input: i, constants: c, models, plan, ref mut operators, ref mut sum } = self;
        let (pair, class) = match op.work {
            Work::Gemm(g) => {
                let wide = (op.name == OpName::Router).then(|| GemmModels::new(i, c, attention_precision(i)));
                let models = wide.as_ref().unwrap_or(models);
                let mut pair =
                    if g.batch > 1.0 { grouped_pair(i, c, &g, models) } else { models.passes(&g, i.trained) };
                if has_adapter(op.name, i.adapters) {
                    pair = with_adapter(i, c, &g, &pair);
                }
                if let Some(bytes) = i.packed_bytes.filter(|_| !matches!(op.name, OpName::Logits | OpName::Router)) {
                    pair = with_unpacking(i, c, &g, bytes, &pair);
                }
                (pair, Class::Gemm)
            }
            Work::Attention { flops, bytes } => (attention_pair(i, c, op.name, flops, bytes), Class::Attention),
            Work::Vector { flops } => {
                let forward = flops / (i.accelerator.peak(Precision::Fp32) * c.memory_fraction);
                (PassTimes { forward, backward: 2.0 * forward, weights: 0.0 }, Class::Elementwise)
            }
            Work::Traffic { bytes } => {
                let unfused = op.name == OpName::Dispatch && !i.software.fused_experts;
                let passes = if unfused { c.dispatch_unfused } else { 1.0 };
                (traffic_pair(i, c, bytes * passes), Class::Elementwise)
            }
        };
        let gap = op.kernels * c.kernel_gap;
        let again = recomputed(i, plan, &op, models.precision);
        let time = OperatorTime {
            op,
            class,
            forward: pair.forward,
            backward: pair.backward,
            gaps: 3.0 * gap,
            recomputed: again * (pair.forward + gap),
        };
        let slot = match class {
            Class::Gemm => &mut sum.gemm,
            Class::Attention => &mut sum.attention,
            Class::Elementwise => &mut sum.elementwise,
        };
        *slot += time.passes();
        sum.recompute += time.recomputed;
        operators.operator(time);
        sum.forward += pair.forward + gap;
        sum.weights += pair.weights;
        sum.recompute_flops += again * op.flops();
        // The host waits for the routing in the forward pass, and again where that is recomputed.
        let waits = op.name == OpName::Dispatch && i.software.synchronous_routing;
        let waiting = if waits { c.routing_issue * (1.0 + again) } else { 0.0 };
        sum.kernels += host_launch_share(i, c, &op) * (op.kernels * (3.0 + again) + waiting);
    }
}

/// Time of one operator under a recomputation plan.
pub fn operator_time(i: &TrainingInput, c: &Constants, op: Op, precision: Precision, plan: Plan) -> LayerTime {
    record(i, c, &GemmModels::new(i, c, precision), plan, &mut (), |recorder| recorder.push(op))
}

/// Time of the operators that `push` passes to the recorder. The recorder passes them on to `operators`.
fn record<S: OperatorSink>(
    input: &TrainingInput,
    constants: &Constants,
    models: &GemmModels,
    plan: Plan,
    operators: &mut S,
    push: impl FnOnce(&mut Recorder<'_, S>),
) -> LayerTime {
    let mut recorder = Recorder { input, constants, models, plan, operators, sum: LayerTime::default() };
    push(&mut recorder);
    recorder.sum
}

/// Share of an operator's kernels that the host launches.
fn host_launch_share(i: &TrainingInput, c: &Constants, op: &Op) -> f64 {
    let routed = op.name == OpName::Dispatch || matches!(op.work, Work::Gemm(g) if g.batch > 1.0);
    if !i.software.compiled || (i.software.eager_experts && routed) { 1.0 } else { c.compiled_kernels }
}

/// Time of the mean layer in `precision`: mixers and MLPs of all kinds in the model's proportion.
pub(super) fn mean_layer(
    i: &TrainingInput,
    c: &Constants,
    (precision, plan): (Precision, Plan),
    sink: &mut impl OperatorSink,
) -> LayerTime {
    let mut sum = LayerTime::default();
    let models = GemmModels::new(i, c, precision);
    for_each_block(i, |block| {
        sink.share(block.share);
        let time = record(i, c, &models, plan, sink, |recorder| block.operators(i, recorder));
        sum = sum.plus(&time.scaled(block.share));
    });
    sum
}

/// Time of output layer and loss: never recomputed, and in the format of [`attention_precision`].
pub(super) fn head(i: &TrainingInput, c: &Constants, sink: &mut impl OperatorSink) -> LayerTime {
    let tokens = i.micro * i.target() / i.cp * i.arch.head_share(i.seq);
    record(i, c, &GemmModels::new(i, c, attention_precision(i)), Plan::NONE, sink, |recorder| {
        ops::head(recorder, &i.arch, tokens, f64::from(i.tp), i.element_bytes());
    })
}

/// Operators of the mean layer in 16 bit, if there are layers that are computed in 16 bit although the format is narrower.
#[must_use]
pub fn bf16_operators(i: &TrainingInput, c: &Constants, plan: Plan) -> Option<Operators> {
    if i.bf16_ends() == [0.0; 2] {
        return None;
    }
    let mut all = Operators::default();
    mean_layer(i, c, (Precision::Bf16, plan), &mut all);
    Some(all)
}

/// Operators of the mean layer, and of the output layer. `None` for convolutional networks, which are not made of
/// operators.
#[must_use]
pub fn operators(i: &TrainingInput, c: &Constants, plan: Plan) -> Option<[Operators; 2]> {
    if i.arch.convolutions.is_some() {
        return None;
    }
    let mut all = [Operators::default(), Operators::default()];
    let [mean, head] = &mut all;
    mean_layer(i, c, (i.precision, plan), mean);
    self::head(i, c, head);
    Some(all)
}
