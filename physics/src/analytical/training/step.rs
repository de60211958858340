//! One optimizer step: micro-batches through the pipeline, data parallelism, optimizer, host.

use super::memo::{Memo, Passes};
use super::{
    Plan, Recompute, Schedule, Sharding, TimeBreakdown, TrainingEstimate, TrainingInput, comm, layer, optimizer,
};
use crate::analytical::constants::Constants;
use crate::analytical::memory::{self, Ends, LocalParams, MemoryBreakdown};
use crate::analytical::roofline;

/// The least recomputation whose memory fits, where what is asked for does not say: none, the cheap operators, and then as
/// many whole layers as it takes.
fn resolve(i: &TrainingInput, ends: &Ends<'_>, asked: Recompute) -> (Plan, MemoryBreakdown) {
    if matches!(asked, Recompute::None | Recompute::Full) {
        return (Plan::of(asked), ends.under(asked));
    }
    let room = i.accelerator.capacity();
    if asked == Recompute::Auto {
        let none = ends.under(Recompute::None);
        if none.total() <= room {
            return (Plan::of(Recompute::None), none);
        }
    }
    let some = ends.under(Recompute::Selective);
    if some.total() <= room {
        return (Plan::of(Recompute::Selective), some);
    }
    // "Selective" names any partial policy, so it may reach as far as it must: MLPs first, then whole layers.
    let between = |from: &MemoryBreakdown, to: &MemoryBreakdown| {
        let share = ((from.total() - room) / (from.total() - to.total()).max(1.0)).clamp(0.0, 1.0);
        let mix = |a: f64, b: f64| a + share * (b - a);
        let memory = MemoryBreakdown {
            activations: mix(from.activations, to.activations),
            recomputed: mix(from.recomputed, to.recomputed),
            fragmentation: mix(from.fragmentation, to.fragmentation),
            ..*from
        };
        (share, memory)
    };
    let mlps = ends.without_mlps();
    if mlps.total() <= room {
        let (mlp_share, memory) = between(&some, &mlps);
        return (Plan { mode: Recompute::Selective, mlp_share, full_share: 0.0 }, memory);
    }
    let full = ends.under(Recompute::Full);
    let (full_share, memory) = between(&mlps, &full);
    (Plan { mode: Recompute::Selective, mlp_share: 1.0, full_share }, memory)
}

/// Layers of chunk `k` of `n`: equal where they go in; else embedding and output layer count as a layer each, and the
/// longer chunks stand in the middle and at the end: the ends lose one each.
pub(crate) fn chunk_layers(depth: f64, n: f64, k: f64) -> f64 {
    let even = depth / n;
    if (even - even.round()).abs() < 1e-9 || n < 2.0 {
        return even;
    }
    let all = depth.round() + 2.0;
    let longer = k >= n - all % n;
    let end = k < 0.5 || k > n - 1.5;
    ((all / n).floor() + f64::from(u8::from(longer)) - f64::from(u8::from(end))).max(0.0)
}

/// Layers of pipeline stage `stage`, all its chunks.
fn stage_layers(i: &TrainingInput, stage: f64) -> f64 {
    let chunks = i.vpp.max(1.0);
    let of = |turn: u32| chunk_layers(i.arch.depth(), (i.pp * chunks).max(1.0), f64::from(turn) * i.pp + stage);
    (0..chunks as u32).map(of).sum()
}

/// Host-bound excess: launches run ahead of the device until they no longer can. A p-norm joins the two regimes.
fn host_excess(device: f64, host: f64) -> f64 {
    let ratio = host / device.max(1e-12);
    if ratio < 0.2 {
        return 0.0;
    }
    let r4 = ratio * ratio * ratio * ratio;
    device * ((1.0 + r4).sqrt().sqrt() - 1.0)
}

/// Seconds per micro-batch of adding weight gradients to their fp32 sum.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Sums {
    /// Of a mean layer.
    pub(crate) layer: f64,
    /// Of the embedding or the output layer, on the stages at the ends.
    pub(crate) head: f64,
}

/// Sums are read and written once, beyond the 16-bit result that the GEMM's traffic counts. Fully sharded gradients are
/// reduced instead.
pub(crate) fn accumulation(i: &TrainingInput, c: &Constants, local: &LocalParams) -> Sums {
    if i.sharding == Sharding::Zero3 || i.micro_batches() <= 1.0 {
        return Sums::default();
    }
    let each = if i.software.fused_sums {
        2.0 * i.grad_bytes - 2.0
    } else {
        // Autograd adds to a 16-bit gradient (6), which is converted (2 + fp32), added (3 fp32) and cleared (2).
        10.0 + 4.0 * i.grad_bytes
    };
    let seconds = |weights: f64| roofline::memory_seconds(&i.accelerator, c, weights * i.trained * each);
    let layers = (i.arch.depth() / i.pp).max(1e-9);
    Sums { layer: seconds(local.dense + local.experts) / layers, head: seconds(local.embedding) }
}

/// Collectives that the host starts per layer and micro-batch.
fn collective_calls(i: &TrainingInput, plan: Plan, moe_share: f64) -> f64 {
    let passes = 2.0 + plan.full_share;
    let tensor = if i.tp > 1.0 { 2.0 * passes } else { 0.0 };
    let expert = if i.ep * i.etp > 1.0 { 2.0 * passes * moe_share } else { 0.0 };
    let context = if i.cp > 1.0 { passes } else { 0.0 };
    tensor + expert + context
}

/// What data parallelism cannot hide behind the compute that is beside it.
fn exposed_data(i: &TrainingInput, c: &Constants, micro: f64, t: comm::DataTraffic) -> f64 {
    let m = i.micro_batches();
    if !i.software.overlap_data {
        return t.per_step + m * t.per_micro;
    }
    let hide = |traffic: f64, beside: f64, slowdown: f64| {
        let hidden = traffic.min(c.overlap_share * beside);
        traffic - hidden + slowdown * hidden
    };
    // Once a step: gradients of interleaved chunks are ready one by one, while the pipeline drains.
    let draining = if i.vpp > 1.0 { i.pp.min(m) } else { 1.0 };
    // Fully sharded models share their SMs and links with their own gathers; elsewhere the traffic is thin.
    let slowdown = if i.sharding == Sharding::Zero3 { c.overlap_slowdown } else { 0.0 };
    hide(t.per_step, micro * draining, slowdown) + m * hide(t.per_micro, micro, c.overlap_slowdown)
}

/// Share of the bubble that a schedule leaves; `spare` is the memory that is left, in activations of a pipeline's micro-batches.
fn bubble_share(i: &TrainingInput, spare: f64) -> f64 {
    match i.schedule {
        Schedule::OneForwardOneBackward => 1.0 / i.vpp.max(1.0),
        Schedule::AllForward => 1.0,
        // Weight gradients leave a third of it within the memory of one forward, one backward, and none with twice as much
        // (arXiv 2401.10241, table 2, ZB-H1 and ZB-H2 with passes of equal length).
        Schedule::ZeroBubble1p => 1.0 / 3.0,
        Schedule::ZeroBubble => (1.0 - spare.clamp(0.0, 1.0)) / 3.0,
    }
}

/// A step, before it is said how many sequences it is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    /// What is recomputed, as an input asks for it.
    asked: Recompute,
    plan: Plan,
    time: TimeBreakdown,
    memory: MemoryBreakdown,
    memory_upper: f64,
    /// FLOPs of a token: of the model, with causal attention counted once, and with what is recomputed.
    flops: [f64; 3],
}

/// The estimate of one step.
pub fn estimate(i: &TrainingInput, c: &Constants) -> TrainingEstimate {
    let chosen = resolve(i, &Ends::of(i, c), i.recompute);
    told(i, &timed(i, c, (i.recompute, chosen), None))
}

/// As [`estimate`], where what is recomputed is left to the engine with as much as makes the upper bound of the memory
/// fit, if any does; the input then says so. A memo carries from one estimate to the next what they have in common.
pub fn settle(i: &mut TrainingInput, c: &Constants, memo: Option<&mut Memo>) -> TrainingEstimate {
    let step = match memo {
        Some(memo) => memo.step(i, c),
        None => settled(i, c, None),
    };
    i.recompute = step.asked;
    told(i, &step)
}

/// The step of [`settle`].
pub(super) fn settled(i: &TrainingInput, c: &Constants, memo: Option<&mut Memo>) -> Step {
    let fits = |(_, memory): &(Plan, MemoryBreakdown)| memory.upper(c) <= i.accelerator.capacity();
    let ends = Ends::of(i, c);
    let mut chosen = (i.recompute, resolve(i, &ends, i.recompute));
    if i.recompute == Recompute::Auto && !fits(&chosen.1) {
        let more = [Recompute::Selective, Recompute::Full].into_iter().map(|asked| (asked, resolve(i, &ends, asked)));
        if let Some(found) = { more }.find(|(_, tried)| fits(tried)) {
            chosen = found;
        }
    }
    timed(i, c, chosen, memo)
}

/// The estimate of a step of the input's sequences.
fn told(i: &TrainingInput, of: &Step) -> TrainingEstimate {
    let step = of.time.total();
    let tokens = i.global * i.seq;
    let per_second = tokens / step;
    let peak = i.accelerators * i.accelerator.peak(i.precision);
    let [model, causal, hardware] = of.flops;
    TrainingEstimate {
        step_seconds: step,
        tokens_per_second: per_second,
        tokens_per_second_per_accelerator: per_second / i.accelerators,
        mfu: per_second * model / peak,
        mfu_causal: per_second * causal / peak,
        hfu: per_second * hardware / peak,
        flops_per_token: model,
        recompute: of.plan,
        time: of.time,
        memory: of.memory,
        memory_upper: of.memory_upper,
        fits: of.memory_upper <= i.accelerator.capacity(),
    }
}

/// The step that recomputes and holds this.
fn timed(
    i: &TrainingInput,
    c: &Constants,
    (asked, (plan, memory)): (Recompute, (Plan, MemoryBreakdown)),
    memo: Option<&mut Memo>,
) -> Step {
    let m = i.micro_batches();
    let f = comm::fabric(i, c);
    let passes = match memo {
        Some(memo) => memo.passes(i, c, plan),
        None => Passes::of(i, c, plan),
    };
    let (one, head) = (passes.layer, passes.head);
    let local = LocalParams::of(i);
    let moe_share = i.arch.moe_layers() / i.arch.depth().max(1.0);

    let tensor = comm::tensor(i, c, &f, plan);
    let context = comm::context(i, c, &f, plan, one.attention);
    let expert = moe_share * comm::expert(i, c, &f, plan);
    let transfer = comm::pipeline(i, c, &f);
    let each = accumulation(i, c, &local);
    let per_layer = one.total() + tensor + context + expert;
    // The slowest stage: the last one, with the output layer on top of its layers, or the one before, which has more
    // layers where they do not go in evenly.
    let last = stage_layers(i, i.pp - 1.0);
    let before = if i.pp == 1.0 { last } else { stage_layers(i, (i.pp - 2.0).max(0.0)) };
    let ends = last * (per_layer + each.layer) + head.total() + each.head;
    let (layers, head, ends_sums) = if before * (per_layer + each.layer) > ends {
        (before, layer::LayerTime::default(), 0.0)
    } else {
        (last, head, each.head)
    };
    let stage = one.scaled(layers).plus(&head);
    let sums = layers * each.layer + ends_sums;
    let device = stage.total() + sums + layers * (tensor + context + expert) + transfer;
    let eager = if i.software.compiled { c.compiled_kernels } else { 1.0 };
    let calls = collective_calls(i, plan, moe_share) * layers;
    let host = host_excess(device, (stage.kernels + calls) * eager * c.issue);

    let bubble_unit = (per_layer + each.layer) * i.arch.depth() / i.pp + each.head + transfer;
    let upper = memory.upper(c);
    let spare = (i.accelerator.capacity() - upper) / memory.activations.max(1.0);
    let bubble = (i.pp - 1.0) * bubble_unit * bubble_share(i, spare);
    let data = comm::data(i, &f, &local);
    let time = TimeBreakdown {
        gemm: m * stage.gemm,
        attention: m * stage.attention,
        elementwise: m * (stage.elementwise + sums),
        recompute: m * stage.recompute,
        host: m * host,
        tensor_parallel: m * layers * tensor,
        context_parallel: m * layers * context,
        expert_parallel: m * layers * expert,
        pipeline_transfer: m * transfer,
        pipeline_bubble: bubble,
        data_parallel: exposed_data(i, c, device + host, data),
        optimizer: optimizer::seconds(i, c, &local),
        offload: optimizer::offloaded(i, c, device + host, || memory::kept(i, plan)),
    };
    let again = one.recompute_flops * i.arch.depth() * i.tp * i.cp / (i.micro * i.seq);
    let flops = [passes.flops, passes.causal_flops, passes.flops + again];
    Step { asked, plan, time, memory, memory_upper: upper, flops }
}
