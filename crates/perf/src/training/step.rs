//! The time of one optimizer step: micro-batches in the pipeline, data parallelism, optimizer, host.

use super::accumulation::{AccumulationTime, accumulation};
use super::layer::LayerTime;
use super::pipeline::{self, Pass, PipelineTimes};
use super::stages::{bf16_stage_layers, stage_layers};
use super::terms::whole_and_masked_flops;
use super::{
    MicroBatch, Plan, Recompute, Sharding, TimeBreakdown, TrainingEstimate, TrainingInput, comm, convolution, images,
    layer, optimizer,
};
use crate::accelerator::Precision;
use crate::constants::Constants;
use crate::training::memory;
use crate::training::memory::{LocalParams, MemoryBreakdown, PeakStages};
use atlas_core::count::Count;

/// Resolves the recomputation: as stated, or the minimum for which the upper bound on memory fits. [`Recompute::Auto`]
/// starts with no recomputation, [`Recompute::Selective`] with the cheap operators. MLPs are added next, then whole
/// layers. A stated number of layers is recomputed in full in any case.
fn resolve(i: &TrainingInput, ends: &PeakStages<'_>) -> Plan {
    let stated = i.recompute_layers.map(|layers| (layers / i.arch.depth().max(1.0)).clamp(0.0, 1.0));
    let full_share = stated.unwrap_or(0.0);
    // Tolerance, so that rounding errors do not push the bound above the capacity.
    let room = i.accelerator.capacity() * (1.0 - i.recompute_reserve) * (1.0 - 1e-9);
    let mut plan = match i.recompute {
        Recompute::Full if stated.is_none() => return Plan::FULL,
        Recompute::None | Recompute::Full => return Plan { full_share, ..Plan::NONE },
        Recompute::Auto => Plan { full_share, ..Plan::NONE },
        Recompute::Selective => Plan { full_share, ..Plan::SELECTIVE },
    };
    let more = Plan { mode: Recompute::Selective, full_share, ..Plan::MLPS };
    let steps = [Plan { full_share, ..Plan::SELECTIVE }, more, Plan { full_share: 1.0, ..more }];
    for next in steps.into_iter().skip(usize::from(plan.mode == Recompute::Selective)) {
        let share = ends.share(&plan, &next, room);
        if share < 1.0 {
            return plan.toward(next, share);
        }
        plan = next;
    }
    plan
}

/// Ratio of host to device time below which launches delay the device by less than 0.05 %.
const NEGLIGIBLE_HOST_SHARE: f64 = 0.2;

/// Time by which kernel launches delay the device, s. Launches run ahead of the device unless the host is the
/// bottleneck; a p-norm interpolates between the two regimes.
fn host_excess(device: f64, host: f64) -> f64 {
    let ratio = host / device.max(1e-12);
    if ratio < NEGLIGIBLE_HOST_SHARE {
        return 0.0;
    }
    let r4 = ratio * ratio * ratio * ratio;
    device * ((1.0 + r4).sqrt().sqrt() - 1.0)
}

/// Exposed time of data-parallel communication, s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct ExposedData {
    per_step: f64,
    /// Forward and backward pass of every micro-batch.
    per_micro: [f64; 2],
    /// Part of `per_step` in which gradients delay collectives of the last backward pass.
    delayed: f64,
}

/// Time beside which data-parallel communication runs, s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Beside {
    /// All of it.
    seconds: f64,
    /// Part in which other collectives use the same links.
    contended: f64,
}

impl Beside {
    /// Share of the traffic sent in this time that delays nothing. Links are shared fairly, so traffic progresses beside
    /// other collectives as fast as beside kernels, but delays them by as much.
    fn hidden_share(&self) -> f64 {
        1.0 - (self.contended / self.seconds.max(1e-12)).clamp(0.0, 1.0)
    }
}

/// Computes the exposed time of data-parallel communication. In the forward and the backward pass, it runs beside `once`
/// per step and beside `micro` in every micro-batch: weights are gathered in both passes, but gradients exist only in
/// the backward pass.
fn exposed_data(
    i: &TrainingInput,
    c: &Constants,
    [once, micro]: [[Beside; 2]; 2],
    t: comm::DataTraffic,
) -> ExposedData {
    let m = i.micro_batches();
    let per_micro = t.by_pass();
    if !i.software.overlap_data {
        return ExposedData { per_step: t.per_step, per_micro, delayed: 0.0 };
    }
    let sent = |traffic: f64, seconds: f64| traffic.min(c.overlap_share * seconds);
    let exposed = |traffic: f64, hidden: f64, slowdown: f64| traffic - hidden + slowdown * hidden;
    // Per-step traffic: gradients of interleaved chunks become ready one by one while the pipeline drains.
    let draining = if i.vpp > 1.0 { f64::from(i.pp).min(m) } else { 1.0 };
    // Fully sharded models share SMs and links with their own gathers. In other cases the traffic is low.
    let slowdown = if i.persistent_sharding() == Sharding::Zero3 { c.overlap_slowdown } else { 0.0 };
    // Updated weights are exposed unless the software overlaps their gathers with the next forward pass.
    let waited = if i.software.overlap_parameters { 0.0 } else { t.update };
    let per_step = [t.gather - waited, t.per_step - t.gather];
    let mut out = ExposedData { per_step: waited, ..ExposedData::default() };
    let passes = per_step.into_iter().zip(per_micro).zip(once.into_iter().zip(micro)).zip(&mut out.per_micro);
    for (((per_step, per_micro), (once, micro)), exposed_micro) in passes {
        let each = sent(per_micro, micro.seconds);
        *exposed_micro = exposed(per_micro, micro.hidden_share() * each, c.overlap_slowdown);
        // Traffic of a micro-batch uses the same time.
        let left = (once.seconds * draining - each / c.overlap_share.max(1e-9)).max(0.0);
        let sent = sent(per_step, left);
        out.per_step += exposed(per_step, once.hidden_share() * sent, slowdown);
        // The last pass of the loop is the backward pass.
        out.delayed = (1.0 - once.hidden_share()) * sent;
    }
    out
}

/// The resolved recomputation, and the resulting memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ResolvedPlan {
    pub(super) plan: Plan,
    memory: MemoryBreakdown,
    in_flight: f64,
}

impl ResolvedPlan {
    /// Resolves the plan with [`resolve`].
    pub(super) fn of(i: &TrainingInput, c: &Constants) -> ResolvedPlan {
        let stages = PeakStages::of(i, c);
        ResolvedPlan::with_plan(&stages, resolve(i, &stages))
    }

    fn with_plan(stages: &PeakStages<'_>, plan: Plan) -> ResolvedPlan {
        let (memory, in_flight) = stages.with_extra_micro_batches(&plan);
        ResolvedPlan { plan, memory, in_flight }
    }
}

/// Times of one micro-batch in the mean layer and the output layer, and model FLOPs per token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Passes {
    /// The mean layer.
    pub(super) layer: LayerTime,
    /// What a mean layer takes in 16 bit beyond `layer`, if there are such layers.
    pub(super) bf16_excess: LayerTime,
    /// Output layer and loss.
    pub(super) head: LayerTime,
    /// Model FLOPs per token.
    pub(super) flops: f64,
    /// As `flops`, but attention counts only what causal masks and windows leave.
    pub(super) causal_flops: f64,
}

impl Passes {
    pub(super) fn of(i: &TrainingInput, c: &Constants, plan: Plan) -> Passes {
        let (layer, head) = match &i.arch.convolutions {
            Some(network) => (convolution::mean(i, c, network), convolution::head(i, c, network)),
            None => (layer::mean_layer(i, c, (i.precision, plan), &mut ()), layer::head(i, c, &mut ())),
        };
        let bf16_excess = if i.bf16_ends() == [0.0; 2] {
            LayerTime::default()
        } else {
            layer::mean_layer(i, c, (Precision::Bf16, plan), &mut ()).minus(&layer)
        };
        let [flops, causal_flops] = whole_and_masked_flops(i);
        Passes { layer, bf16_excess, head, flops, causal_flops }
    }
}

/// Number of layers of a stage.
#[derive(Debug, Clone, Copy)]
struct StageLayers {
    all: f64,
    /// Those that are computed in 16 bit, if the format is narrower.
    bf16: f64,
}

impl StageLayers {
    fn of(i: &TrainingInput, stage: f64) -> StageLayers {
        StageLayers { all: stage_layers(i, stage), bf16: bf16_stage_layers(i, stage) }
    }
}

/// Result of one step, independent of the number of sequences in the global batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    plan: Plan,
    in_flight: f64,
    time: TimeBreakdown,
    micro_batch: MicroBatch,
    memory: MemoryBreakdown,
    memory_upper: f64,
    /// FLOPs per token: model FLOPs, model FLOPs without masked attention, and executed FLOPs.
    flops: [f64; 3],
}

/// Estimates one step.
pub fn estimate(i: &TrainingInput, c: &Constants) -> TrainingEstimate {
    let resolved = ResolvedPlan::of(i, c);
    report(i, &step_with_passes(i, c, resolved, Passes::of(i, c, resolved.plan)))
}

/// Estimates one step under a resolved plan, regardless of the requested recomputation and of whether it fits in
/// memory.
pub fn estimate_with_plan(i: &TrainingInput, c: &Constants, plan: Plan) -> TrainingEstimate {
    report(i, &step_with_passes(i, c, ResolvedPlan::with_plan(&PeakStages::of(i, c), plan), Passes::of(i, c, plan)))
}

/// Creates the estimate of a step with the global batch of `i`.
pub(super) fn report(i: &TrainingInput, of: &Step) -> TrainingEstimate {
    let step = of.time.total();
    let tokens = i.global * i.seq;
    let per_second = tokens / step;
    let peak = i.accelerators * i.accelerator.peak(i.fastest_format());
    let [model, causal, hardware] = of.flops;
    TrainingEstimate {
        step_seconds: step,
        tokens_per_second: per_second,
        tokens_per_second_per_accelerator: per_second / i.accelerators,
        mfu: per_second * model / peak,
        mfu_causal: per_second * causal / peak,
        hfu: per_second * hardware / peak,
        flops_per_token: model,
        causal_flops_per_token: causal,
        executed_flops_per_token: hardware,
        micro_batch: of.micro_batch,
        recompute: of.plan,
        in_flight: of.in_flight,
        time: of.time,
        memory: of.memory,
        memory_upper: of.memory_upper,
        fits: of.memory_upper <= i.accelerator.capacity(),
    }
}

/// Computes the step for a resolved plan and the times of its passes.
pub(super) fn step_with_passes(i: &TrainingInput, c: &Constants, resolved: ResolvedPlan, passes: Passes) -> Step {
    let ResolvedPlan { plan, memory, in_flight } = resolved;
    let m = i.micro_batches();
    let f = comm::fabric(i, c);
    let (one, excess, head) = (passes.layer, passes.bf16_excess, passes.head);
    let bf16_layers: f64 = i.bf16_ends().iter().sum();
    let local = LocalParams::of(i);
    let moe_share = i.arch.moe_layers() / i.arch.depth().max(1.0);

    let tensor = comm::tensor(i, c, &f, plan);
    let context = comm::context(i, c, &f, plan, one.attention);
    let beside = one.total() + bf16_layers / i.arch.depth().max(1.0) * excess.total();
    let expert = comm::exposed_expert_seconds(i, c, moe_share * comm::expert(i, c, &f, plan), beside);
    let (far, hop) = comm::pipeline_hop_seconds(i, &f);
    let transfer = comm::pipeline(i, c, far);
    let each = accumulation(i, c, &local);
    let per_layer = one.total() + tensor + context + expert;
    // The slowest stage: the last one, which also has the output layer and multi-token prediction, or one with more
    // layers.
    let seconds = |layers: StageLayers| layers.all * (per_layer + each.layer) + layers.bf16 * excess.total();
    let (first, last) = (StageLayers::of(i, 0.0), StageLayers::of(i, i.pp - 1.0));
    let last = StageLayers { all: last.all + i.mtp_layers, ..last };
    let head = head.scaled(i.output_layers());
    let each = AccumulationTime { head: each.head * i.output_layers(), ..each };
    let before = if i.pp == 1.0 {
        last
    } else {
        // Layers in 16 bit may continue on the second stage, which may have more layers than the first.
        let others = [1.0, i.pp - 2.0].map(|stage| StageLayers::of(i, stage.min(i.pp - 2.0)));
        others.into_iter().fold(first, |longest, stage| if seconds(stage) > seconds(longest) { stage } else { longest })
    };
    let ends = seconds(last) + head.total() + each.head;
    // With a bidirectional pipeline, a device runs half of the micro-batches through a stage of each direction.
    let (last, head, each, ends) = if i.copies() > 1.0 {
        let stage = StageLayers { all: 0.5 * (last.all + first.all), bf16: 0.5 * (last.bf16 + first.bf16) };
        (stage, head.scaled(0.5), AccumulationTime { head: 0.5 * each.head, ..each }, 0.5 * (ends + seconds(first)))
    } else {
        (last, head, each, ends)
    };
    let eager = if i.software.compiled { c.compiled_kernels } else { 1.0 };
    let calls = comm::calls(i, plan) * eager;
    let launches = |layers: StageLayers, head: f64| {
        (layers.all * (one.kernels + calls) + layers.bf16 * excess.kernels + head) * c.issue
    };
    let paced = |device: f64, launches: f64| device + host_excess(device, launches);
    let (of_first, of_last) = (launches(first, 0.0), launches(last, head.kernels));
    let kernels = |layers: StageLayers, head: &LayerTime, sums: f64| {
        (layers.all * (one.total() + each.layer) + layers.bf16 * excess.total() + head.total() + sums).max(1e-12)
    };
    let end_kernels = [kernels(first, &LayerTime::default(), 0.0), kernels(last, &head, each.head)];
    let longer =
        seconds(before) > seconds(last) && paced(seconds(before), launches(before, 0.0)) > paced(ends, of_last);
    let (layers, head, ends_sums) = if longer { (before, LayerTime::default(), 0.0) } else { (last, head, each.head) };
    let output = if longer { 0.0 } else { i.output_layers() / i.copies() };
    // Images are encoded on the first stage. It is the slowest one if encoding takes longer than the other stage's
    // extra layers.
    let encoding = images::seconds(i, c, &f, plan);
    let in_front = i.images.is_some()
        && (i.pp <= 1.0 || seconds(first) + encoding.total() > seconds(layers) + head.total() + ends_sums);
    let (layers, head, ends_sums, output) = if in_front && i.pp > 1.0 {
        (first, LayerTime::default(), 0.0, 0.0)
    } else {
        (layers, head, ends_sums, output)
    };
    let encoded = if in_front { encoding.total() } else { 0.0 };
    let StageLayers { all: layer_count, bf16: bf16_count } = layers;
    let stage = one.scaled(layer_count).plus(&excess.scaled(bf16_count)).plus(&head);
    let sums = layer_count * each.layer + ends_sums;
    let device = stage.total() + sums + layer_count * (tensor + context + expert) + transfer + encoded;
    let host = host_excess(device, launches(layers, head.kernels));

    let upper = memory.upper(c);
    // Distribution of a layer's collectives over the passes: equal in each pass, but a third of a ring's exchange in
    // the forward pass.
    let collectives = [
        (0.5 * comm::tensor(i, c, &f, Plan::NONE), tensor, f64::from(i.tp)),
        (context / (3.0 + plan.full_share), context, i.tp * i.cp),
        (expert / (2.0 + plan.recomputed_mlps()), expert, i.ep * i.etp),
    ];
    let forward = one.forward + collectives.iter().map(|(forward, ..)| forward).sum::<f64>();
    let layer = Pass { forward, input: per_layer - forward - one.weights, weights: one.weights + each.layer };
    let bf16 = Pass {
        forward: excess.forward,
        input: excess.total() - excess.forward - excess.weights,
        weights: excess.weights,
    };
    let output_layer = passes.head.scaled(i.output_layers());
    let ending = Pass {
        forward: output_layer.forward,
        input: output_layer.total() - output_layer.forward - output_layer.weights,
        weights: output_layer.weights + each.head,
    };
    let first_pass = encoding.plus(&layer, first.all).plus(&bf16, first.bf16);
    let last_pass = ending.plus(&layer, last.all).plus(&bf16, last.bf16);
    let hosted = 1.0 + host / device.max(1e-12);
    let images_ahead = if in_front { encoding.forward } else { 0.0 };
    let ahead =
        hosted * (layer_count * forward + bf16_count * excess.forward + head.forward + images_ahead + 0.5 * transfer);
    let traffic = comm::data(i, c, &f, &local);
    // Copies to and from the host run beside layers, and beside collectives that nothing hides. Other collectives run
    // beside kernels and the waits for copies.
    let of_layers = (device + host - head.total() - ends_sums - encoded - transfer).max(0.0);
    let bf16_share = bf16_count / layer_count.max(1e-9);
    let of_layers = [
        forward + bf16_share * excess.forward,
        per_layer + each.layer - forward + bf16_share * (excess.total() - excess.forward),
    ]
    .map(|seconds| of_layers * seconds / layer.plus(&bf16, bf16_share).total().max(1e-12));
    let open = if i.software.overlap_data { [0.0; 2] } else { traffic.by_pass() };
    let [[layers_ahead, layers_back], [open_ahead, open_back]] = [of_layers, open];
    let offload =
        optimizer::offloaded(i, c, [layers_ahead + open_ahead, layers_back + open_back], || memory::kept(i, plan));
    let [copied_ahead, copied_back] = offload.per_micro;
    let both = [ahead + copied_ahead, device + host - ahead + copied_back];
    // Forward and backward time of `layers` layers in which traffic between `reach` neighbors meets other collectives.
    let contended = |reach: f64, layers: f64| {
        let met = collectives.iter().filter(|(.., other)| comm::share_links(i, reach, *other));
        met.fold([0.0; 2], |[ahead, back], (forward, all, _)| {
            [ahead + layers * forward, back + layers * (all - forward)]
        })
    };
    let beside = |[ahead, back]: [f64; 2], [contended_ahead, contended_back]: [f64; 2]| {
        [Beside { seconds: ahead, contended: contended_ahead }, Beside { seconds: back, contended: contended_back }]
    };
    let micro = beside(both, contended(i.shard_ranks(i.dp * i.cp) * i.tp, layer_count));
    let reach = i.dp * i.cp * i.tp;
    // With an optimizer per stage, the passes of input gradients, and with them the collectives, have ended.
    let once = if i.pp > 1.0 && i.schedule.has_independent_optimizers() {
        let [contended_ahead, _] = contended(reach, first.all);
        beside([first_pass.forward, first_pass.weights].map(|seconds| hosted * seconds), [contended_ahead, 0.0])
    } else {
        beside(both, contended(reach, layer_count))
    };
    let data = exposed_data(i, c, [once, micro], traffic);
    let [ahead, back] = data.per_micro;
    // The last micro-batch passes the stages one after the other, and on each of them the gradients of that stage delay it.
    let in_turn = i.vpp == 1.0 && i.copies() == 1.0 && !i.schedule.has_independent_optimizers();
    let chained = if in_turn { data.delayed } else { 0.0 };
    let data = data.per_step + m * (ahead + back);
    let waits_with =
        |copied: f64| Pass { forward: ahead + copied * copied_ahead, input: back + copied * copied_back, weights: 0.0 };
    // The first micro-batch meets these waits on every stage. Idle stages have copied the first layer of a chunk by then.
    let (waits, filling) =
        (waits_with(1.0), waits_with((1.0 - i.vpp.max(Count::ONE) / layer_count.max(1e-9)).max(0.0)));
    let pace = PipelineTimes {
        first: first_pass.plus(&waits, 1.0),
        last: last_pass.plus(&waits, 1.0),
        end_stage_host_delay: [
            host_excess(first_pass.total() + transfer, of_first),
            host_excess(last_pass.total() + transfer, of_last),
        ],
        path: ending
            .plus(&layer, i.arch.depth() + i.mtp_layers)
            .plus(&bf16, bf16_layers)
            .plus(&encoding, 1.0)
            .plus(&filling, i.pp - 1.0)
            .plus(&waits, 1.0),
        slowest: stage.total() + sums + layer_count * (tensor + context + expert) + encoded + waits.total(),
        host,
        hop,
        hidden: if i.software.overlap_pipeline { 1.0 - c.pipeline_exposed.min(1.0) } else { 0.0 },
        in_flight,
    };
    let host_ratios = if i.pp > 1.0 && i.copies() <= 1.0 {
        let [[host_first, host_last], [first, last]] = [pace.end_stage_host_delay, end_kernels];
        [host_first / first, host_last / last]
    } else {
        [host / (stage.total() + sums).max(1e-12); 2]
    };
    let bubble = pipeline::bubble(i, &pace) + (i.pp - 1.0) * chained;
    let time = TimeBreakdown {
        gemm: m * stage.gemm,
        attention: m * stage.attention,
        elementwise: m * (stage.elementwise + sums),
        recompute: m * stage.recompute,
        host: m * host,
        tensor_parallel: m * layer_count * tensor,
        context_parallel: m * layer_count * context,
        expert_parallel: m * layer_count * expert,
        pipeline_transfer: m * transfer,
        pipeline_bubble: bubble,
        data_parallel: data + comm::shared_embedding(i, &f),
        optimizer: optimizer::seconds(i, c, &local),
        offload: offload.total(m),
        images: m * encoded,
    };
    let again = one.recompute_flops * i.arch.depth() + excess.recompute_flops * bf16_layers;
    let again = again * i.tp * i.cp / (i.micro * i.seq);
    let executed = if i.software.fused_attention { passes.causal_flops } else { passes.flops };
    let flops = [passes.flops, passes.causal_flops, executed + again];
    let images = encoded;
    let micro_batch = MicroBatch {
        layers: layer_count,
        bf16_layers: bf16_count,
        output,
        sums,
        tensor,
        context,
        expert,
        transfer,
        host,
        host_ratios,
        images,
    };
    Step { plan, in_flight, time, micro_batch, memory, memory_upper: upper, flops }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_on_the_links_of_another_collective_delay_it() {
        let (i, c) = (TrainingInput { sharding: Sharding::None, ..TrainingInput::default() }, Constants::default());
        let traffic = comm::DataTraffic { per_step: 0.4, ..comm::DataTraffic::default() };
        let exposed = |contended| {
            let beside = [Beside { seconds: 1.0, contended }; 2];
            exposed_data(&i, &c, [beside; 2], traffic).per_step
        };
        // Half of the time is an exchange on the same links, so half of the gradients are sent beside it.
        assert!(exposed(0.0).abs() < 1e-12);
        assert!((exposed(0.5) - 0.2).abs() < 1e-12);
        assert!((exposed(1.0) - 0.4).abs() < 1e-12);
        // Groups within a node use its links, others use the network.
        for (data, other, shared) in [(64.0, 16.0, true), (64.0, 8.0, false), (8.0, 8.0, true), (8.0, 16.0, false)] {
            assert_eq!(comm::share_links(&TrainingInput { domain: 8.0, ..i }, data, other), shared);
        }
    }
}
