//! Costs of a step on one kind of accelerator: the programs of its passes, and the work alongside and between them.
//!
//! Times are those of the analytical engine. Communication that it counts as hidden is simulated in full here, and
//! overlaps as the events allow. If software splits a collective to overlap it with its kernel, the overlapping share
//! is the same; whether it really overlaps depends on the streams.

use super::operators::{self, Block, Operator};
use super::passes::{self, Chunk, Pass, SurroundingOperators, Traffic};
use super::program::{Lane, Port};
use atlas_core::count::Count;
use atlas_perf::accelerator::Precision;
use atlas_perf::constants::Constants;
use atlas_perf::convolution::Residual;
use atlas_perf::training::Offload;
use atlas_perf::training::accumulation::{AccumulationTime, accumulation};
use atlas_perf::training::memory;
use atlas_perf::training::memory::LocalParams;
use atlas_perf::training::optimizer;
use atlas_perf::training::stages::{bf16_chunk_layers, chunk_layers};
use atlas_perf::training::{
    ContextExchange, Sharding, TrainingEstimate, TrainingInput, comm, estimate, estimate_with_plan,
};

/// Costs of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// Passes of every chunk, in the order of a micro-batch: chunk `c` of stage `s` is at `c * stages + s`.
    pub chunks: Vec<Chunk>,
    /// Seconds of a transfer between stages in different domains.
    pub transfer: f64,
    /// Port of such transfers.
    pub transfer_port: Port,
    /// Seconds of a transfer within a domain, over the scale-up fabric.
    pub intra_domain_transfer: f64,
    /// Whether each stage shares its domains with the next one, and the last stage with the first.
    pub shares_domain: Vec<bool>,
    /// Port of transfers between stages of one domain.
    pub intra_domain_port: Port,
    /// Seconds to reduce the gradients of one stage.
    pub reduce: f64,
    /// Seconds to gather the updated weights of one stage.
    pub gather: f64,
    /// Share of the embedding in both, on the first stage. Its weights are needed first, and its gradient is complete
    /// last.
    pub embedding: f64,
    /// Port of both.
    pub data_port: Port,
    /// Port of weights gathered and gradients scattered layer by layer. This is the scale-up fabric if weights are
    /// sharded within a node and replicated over nodes.
    pub layer_port: Port,
    /// Share of the kernel time in which the device waits for kernel launches, on stages without and with the output
    /// layer. After a stage has waited for its input, this much is already launched.
    pub host_shares: [f64; 2],
    /// Seconds in which the first and the last stage sum the gradients of an embedding that both have, before the
    /// optimizer.
    pub shared_embedding: f64,
    /// Seconds of the optimizer, and of host work once per step.
    pub optimizer: f64,
    /// Number of micro-batches whose activations fit on the fullest stage.
    pub in_flight: f64,
    /// Relative rates of kernels and of layer-wise data-parallel collectives while both run.
    pub overlap: OverlapRates,
    /// Relative rates of kernels and of collectives over a whole stage's gradients and weights while both run.
    pub group_overlap: OverlapRates,
}

/// When a pass must be simulated task by task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DetailLevel {
    /// Never: a pass always takes as long as without contention.
    Never,
    /// While the stage's data-parallel group reduces or gathers.
    Collectives,
    /// While anything is sent between stages or reduced, which is nearly always.
    Transfers,
    /// Always: its communication continues after its last kernel, or slows its kernels.
    Always,
}

/// A transfer shorter than this share of the shortest pass does not justify running passes task by task.
const NEGLIGIBLE: f64 = 0.005;

/// Rates of kernels and of collectives of fully sharded weights while both run, relative to their rates alone.
///
/// The analytical engine has two limits: little traffic costs `overlap_slowdown` of its time, and kernels that overlap
/// with much traffic slow down by that share. Only one pair of constant rates satisfies both. The share of kernels that
/// the analytical engine does not overlap (`1 - overlap_share`) represents the first gather and the last scatter, for
/// which kernels wait in the simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverlapRates {
    /// Rate of kernels.
    pub compute: f64,
    /// Rate of collectives.
    pub data: f64,
}

impl OverlapRates {
    fn of(c: &Constants) -> OverlapRates {
        let slowdown = c.overlap_slowdown.clamp(0.0, 0.99);
        let rate = 1.0 / (1.0 + slowdown);
        OverlapRates { compute: rate, data: rate }
    }

    /// Returns the rates for collectives over a stage's gradients and weights. Only fully sharded weights cause enough
    /// traffic to slow kernels. If they are sharded over nodes, the traffic passes every device of a node and all of
    /// its cards. If they are sharded within a node, each rank reduces over nodes through its own card, which is a
    /// small part of the bandwidth of the device: kernels lose that part, but do not slow the card.
    fn of_group(i: &TrainingInput, c: &Constants, layer: Port, data: Port) -> OverlapRates {
        if i.persistent_sharding() != Sharding::Zero3 || !i.software.overlap_data {
            OverlapRates { compute: 1.0, data: 1.0 }
        } else if layer == data {
            OverlapRates::of(c)
        } else {
            OverlapRates { compute: (1.0 - c.overlap_slowdown.clamp(0.0, 0.99)).max(0.01), data: 1.0 }
        }
    }
}

impl Costs {
    /// Computes the costs of a step.
    #[must_use]
    pub fn of(i: &TrainingInput, c: &Constants) -> Costs {
        let full = estimate(i, c);
        // Variants of the job use the same recomputation plan.
        let plan = full.recompute;
        let mut open = *i;
        open.software.overlap_data = false;
        open.software.overlap_pipeline = false;
        let raw = estimate_with_plan(&open, c, plan);
        let m = i.micro_batches();
        let stages = i.pp.max(Count::ONE);
        let count = (stages * i.vpp.max(Count::ONE)).max(1.0) as usize;
        let mut sizes = layers_of(i);
        if let Some(last) = sizes.last_mut() {
            *last += f64::from(i.mtp_layers);
        }
        let (blocks, bf16, head) = kernels(i, c, &full);
        // Launches run ahead of the long kernels of the output layer, so that its stage waits less.
        let scaled = |blocks: &[Block]| {
            full.micro_batch
                .host_ratios
                .map(|ratio| -> Vec<Block> { blocks.iter().map(|block| block.scaled(1.0 + ratio)).collect() })
        };
        let [[other_blocks, last_blocks], [other_bf16, last_bf16]] = [scaled(&blocks), scaled(&bf16)];
        let [_, ratio] = full.micro_batch.host_ratios;
        let head: Vec<Operator> = head.iter().map(|operator| operator.scaled(1.0 + ratio)).collect();
        let front = operators::images(i, c, plan);
        let shared_embedding = comm::shared_embedding(i, &comm::fabric(i, c));
        let (per_step, per_micro) = data_traffic(&open, c, &raw);
        let per_step = (per_step - shared_embedding).max(0.0);
        let traffic = traffic(i, c, &full, per_micro);
        let chunks = sizes
            .iter()
            .enumerate()
            .map(|(at, &layers)| {
                let around = SurroundingOperators {
                    front: if at == 0 { front.as_slice() } else { &[] },
                    head: if at + 1 == count { head.as_slice() } else { &[] },
                };
                let ends = (at as u32 + 1).is_multiple_of(stages.get());
                let (blocks, bf16) = if ends { (&last_blocks, &last_bf16) } else { (&other_blocks, &other_bf16) };
                // The layers of a chunk are alike: of those in 16 bit, each has its share.
                let share = bf16_chunk_layers(i, at as f64) / layers.max(1e-9);
                if share <= 0.0 || bf16.is_empty() {
                    return passes::chunk(blocks, around, layers, &traffic);
                }
                let mixed: Vec<Block> = blocks.iter().zip(bf16).map(|(own, bf16)| own.toward(bf16, share)).collect();
                passes::chunk(&mixed, around, layers, &traffic)
            })
            .collect();
        // Gradients are reduced in their own format. Only trained weights change, but shards are gathered whole.
        let gradients = i.reduced_bytes() * i.trained;
        let weights = i.gathered_bytes() * if i.sharding == Sharding::Zero3 { 1.0 } else { i.trained };
        let reduced = match i.persistent_sharding() {
            Sharding::Zero1 => gradients / (gradients + weights).max(1e-9),
            // The gradients of each micro-batch are reduced in its backward pass.
            Sharding::Zero2 => 0.0,
            Sharding::None | Sharding::Zero3 => 1.0,
        };
        // Layer-wise copies to the host are tasks of the passes.
        let once = TrainingInput { offload: Offload { activations: 0.0, weights: 0.0, ..i.offload }, ..*i };
        let near = estimate_with_plan(&TrainingInput { domain: i.accelerators.max(i.domain), ..open }, c, plan);
        let data_port = data_port(i, i.dp * i.cp * i.tp);
        Costs {
            host_shares: full.micro_batch.host_ratios.map(|ratio| ratio / (1.0 + ratio)),
            chunks,
            transfer: raw.time.pipeline_transfer / m / (2.0 * i.vpp.max(Count::ONE)),
            transfer_port: transfer_port(i, i.tp * i.cp * i.dp * i.pp),
            intra_domain_port: transfer_port(i, 1.0),
            reduce: per_step * reduced,
            gather: per_step * (1.0 - reduced),
            intra_domain_transfer: near.time.pipeline_transfer / m / (2.0 * i.vpp.max(Count::ONE)),
            shares_domain: (0..stages.get()).map(|stage| shares_domain(i, stage)).collect(),
            embedding: embedding(i),
            shared_embedding,
            data_port,
            layer_port: traffic.data_port,
            optimizer: full.time.optimizer + estimate_with_plan(&once, c, plan).time.offload,
            in_flight: full.in_flight,
            overlap: OverlapRates::of(c),
            group_overlap: OverlapRates::of_group(i, c, traffic.data_port, data_port),
        }
    }

    /// Returns seconds and port of a transfer from a stage to the next one, or from the last to the first.
    #[must_use]
    pub fn hop(&self, stage: u32) -> (f64, Port) {
        if self.shares_domain.get(stage as usize).is_some_and(|near| *near) {
            (self.intra_domain_transfer, self.intra_domain_port)
        } else {
            (self.transfer, self.transfer_port)
        }
    }

    /// When communication inside passes contends with communication alongside them.
    #[must_use]
    pub fn detail_level(&self) -> DetailLevel {
        let passes = || self.chunks.iter().flat_map(|chunk| [&chunk.forward, &chunk.backward, &chunk.input]);
        let through =
            |port: Port| passes().any(|pass| pass.program.lane(Lane::Model).iter().any(|item| item.port == port));
        let beyond = |pass: &Pass| pass.program.lanes.iter().skip(2).any(|lane| !lane.is_empty());
        let shortest = passes().map(|pass| pass.seconds).filter(|seconds| *seconds > 0.0).fold(f64::INFINITY, f64::min);
        // A transfer delays other traffic on the same port by at most its own duration.
        let transfers = self.transfer > NEGLIGIBLE * shortest && through(self.transfer_port);
        if passes().any(beyond) {
            DetailLevel::Always
        } else if transfers {
            DetailLevel::Transfers
        } else if self.reduce + self.gather > 0.0 && through(self.data_port) {
            DetailLevel::Collectives
        } else {
            DetailLevel::Never
        }
    }

    /// Number of tasks of all passes of a micro-batch.
    #[must_use]
    pub fn tasks(&self) -> f64 {
        let passes = self.chunks.iter().flat_map(|chunk| [&chunk.forward, &chunk.backward]);
        passes.flat_map(|pass| &pass.program.lanes).map(|lane| lane.len() as f64).sum()
    }

    /// Removes the ports of layer-wise collectives if no other traffic uses them.
    pub fn remove_unshared_ports(&mut self) {
        let data = self.layer_port;
        let hops = || (0..self.shares_domain.len() as u32).map(|stage| self.hop(stage));
        let beside = hops().any(|(seconds, port)| seconds > 0.0 && port == data)
            || (self.reduce + self.gather > 0.0 && self.data_port == data);
        let passes = || self.chunks.iter().flat_map(|chunk| [&chunk.forward, &chunk.backward, &chunk.input]);
        let inside = passes().any(|pass| pass.program.lane(Lane::Model).iter().any(|item| item.port == data));
        if beside || inside {
            return;
        }
        for chunk in &mut self.chunks {
            for pass in [&mut chunk.forward, &mut chunk.backward, &mut chunk.input, &mut chunk.weights] {
                if let Some(lane) = pass.program.lanes.get_mut(Lane::Data as usize) {
                    lane.iter_mut().for_each(|item| item.port = Port::None);
                }
            }
        }
    }

    /// Merges consecutive kernels without events between them, for passes that are not recorded.
    pub fn join(&mut self) {
        for chunk in &mut self.chunks {
            // Separate passes of weight gradients are not merged, because a bucket is complete with its last kernel.
            for pass in [&mut chunk.forward, &mut chunk.backward, &mut chunk.input] {
                pass.program = pass.program.joined();
            }
        }
    }
}

/// Number of ranks over which the weights of a layer are sharded.
fn sharded(i: &TrainingInput) -> f64 {
    let ranks = i.dp * i.cp;
    i.shard_ranks(ranks)
}

/// Share of the embedding in the weights of a stage that holds it; 0 if it is not trained.
fn embedding(i: &TrainingInput) -> f64 {
    let one = i.arch.vocab * i.arch.hidden / i.tp.max(Count::ONE);
    if i.trained < 1.0 || i.arch.convolutions.is_some() {
        0.0
    } else {
        (one / LocalParams::of(i).total()).clamp(0.0, 1.0)
    }
}

/// Port of a group: the scale-up fabric if the group is within a domain.
fn port(reach: f64, domain: f64) -> Port {
    if reach <= domain { Port::Link } else { Port::Nic }
}

/// Port of transfers between stages. In a mesh, a pair of stages has links of its own.
fn transfer_port(i: &TrainingInput, reach: f64) -> Port {
    match port(reach, i.domain) {
        Port::Link if i.accelerator.mesh_peers.is_some() => Port::None,
        port => port,
    }
}

/// Port of a data-parallel group. If parallel dimensions have their own links, its traffic does not contend.
fn data_port(i: &TrainingInput, reach: f64) -> Port {
    match port(reach, i.domain) {
        Port::Link if i.accelerator.generation.properties().links_per_dimension => Port::None,
        port => port,
    }
}

/// Whether every rank of a stage is in the same domain as its peer of the next stage (for the last stage: of the
/// first). Ranks are in order, with pipeline parallelism as the outermost dimension.
fn shares_domain(i: &TrainingInput, stage: u32) -> bool {
    let each = (i.tp * i.cp * i.dp).max(1.0);
    let (from, to) = if stage + 1 < i.pp.get() { (stage, stage + 1) } else { (0, stage) };
    let distance = f64::from(to - from) * each;
    let domain = |rank: f64| (rank / i.domain.max(1.0)).floor();
    let stays = |rank: f64| domain(rank) == domain(rank + distance);
    distance < i.domain && (0..each as u64).all(|rank| stays(f64::from(from) * each + rank as f64))
}

/// Communication of a layer, with its ports.
fn traffic(i: &TrainingInput, c: &Constants, full: &TrainingEstimate, per_micro: f64) -> Traffic {
    let (plan, layers, expert) = (full.recompute, i.arch.depth() / i.pp.max(Count::ONE), full.micro_batch.expert);
    let expert_exposed = comm::expert_exposed(i, c);
    let fabric = comm::fabric(i, c);
    // Passes of a mixture: forward, backward, and recomputation.
    let passes = 2.0 + plan.recomputed_mlps();
    // Fully sharded weights are gathered for both passes; gradients are reduced once.
    let weights = comm::gather_share(i, c, &fabric);
    let per_layer = per_micro / layers.max(1e-9);
    let settled = TrainingInput { offload: Offload { optimizer: 0.0, ..i.offload }, ..*i };
    let copies = optimizer::offloaded(&settled, c, [0.0; 2], || memory::kept(i, plan)).per_micro.iter().sum::<f64>();
    Traffic {
        tensor_exposed: if i.software.overlap_tensor { c.tensor_exposed.clamp(0.0, 1.0) } else { 1.0 },
        tensor_port: port(f64::from(i.tp), i.domain),
        sequence: i.sequence_parallel,
        context: comm::exchange(i, &fabric),
        // A ring overlaps with attention; gathers and exchanges of heads precede it.
        context_ranks: if i.context_exchange == ContextExchange::Ring { i.cp.max(Count::ONE) } else { Count::ONE },
        context_back: comm::backward_exchanges(i),
        context_port: port(i.cp * i.tp, i.domain),
        expert: if expert_exposed > 0.0 { expert / passes / expert_exposed } else { 0.0 },
        expert_exposed,
        expert_port: port(i.ep * i.etp, i.domain),
        gather: weights * per_layer,
        scatter: (1.0 - 2.0 * weights) * per_layer,
        data_port: data_port(i, sharded(i) * i.tp),
        prefetches_weights: i.software.overlap_data,
        keeps_last_weights: i.pp <= 1.0 && i.vpp <= 1.0,
        copy: 0.5 * copies / layers.max(1e-9),
    }
}

/// Returns the blocks of the mean layer, those of layers that are computed in 16 bit although the format is narrower (if
/// there are any), and the operators of the output layer, without waits for the host. The time of accumulating gradients
/// is spread over operators with weights.
fn kernels(i: &TrainingInput, c: &Constants, full: &TrainingEstimate) -> (Vec<Block>, Vec<Block>, Vec<Operator>) {
    let plan = full.recompute;
    let (mut blocks, mut head) = match i.arch.convolutions {
        None => (operators::blocks(i, c, i.precision, plan), operators::head(i, c)),
        Some(network) => convolutional(i, c, full, &network),
    };
    let mut bf16 = if i.bf16_ends() == [0.0; 2] { Vec::new() } else { operators::blocks(i, c, Precision::Bf16, plan) };
    let sums = if i.arch.convolutions.is_none() {
        accumulation(i, c, &LocalParams::of(i))
    } else {
        AccumulationTime::default()
    };
    for blocks in [&mut blocks, &mut bf16] {
        summed(blocks.iter_mut().flat_map(|block| &mut block.operators), sums.layer);
    }
    summed(head.iter_mut(), sums.head);
    for operator in &mut head {
        *operator = operator.scaled(i.output_layers());
    }
    (blocks, bf16, head)
}

/// Distributes `seconds` of gradient accumulation over operators, in proportion to the time of their weight gradients.
fn summed<'a>(operators: impl Iterator<Item = &'a mut Operator>, seconds: f64) {
    let mut all: Vec<&mut Operator> = operators.collect();
    let weights: f64 = all.iter().map(|operator| operator.weights).sum();
    if weights > 0.0 {
        all.iter_mut().for_each(|operator| operator.weights *= 1.0 + seconds / weights);
    }
}

/// Returns the layers and the output layer of a convolutional network, in the proportions of its breakdown.
fn convolutional(
    i: &TrainingInput,
    c: &Constants,
    full: &TrainingEstimate,
    network: &Residual,
) -> (Vec<Block>, Vec<Operator>) {
    // Without an output layer, to separate it from the layers.
    let mut bare = *i;
    bare.arch.vocab = Count::ONE;
    let kernels = |e: &TrainingEstimate| {
        let t = &e.time;
        (t.gemm + t.attention + t.elementwise + t.recompute) / i.micro_batches()
    };
    let (all, bare) = (kernels(full), kernels(&estimate_with_plan(&bare, c, full.recompute)));
    let operators = |seconds: f64| {
        let list = operators::convolutions(&full.time, i.trained, network.backward_over_forward());
        let sum: f64 = list.iter().map(Operator::total).sum();
        list.iter().map(|operator| operator.scaled(seconds / sum.max(1e-15))).collect()
    };
    let layers = i.arch.depth() / i.pp.max(Count::ONE);
    (
        vec![Block { share: 1.0, tensor: 0.0, recomputed: 0.0, operators: operators(bare / layers) }],
        operators((all - bare).max(0.0)),
    )
}

/// Number of layers of every chunk.
pub(super) fn layers_of(i: &TrainingInput) -> Vec<f64> {
    (0..(i.pp * i.vpp).max(1.0) as u32).map(|chunk| chunk_layers(i, f64::from(chunk))).collect()
}

/// Returns the seconds of data-parallel traffic per step and per micro-batch, derived from the exposed time of a step
/// without overlap.
fn data_traffic(open: &TrainingInput, c: &Constants, raw: &TrainingEstimate) -> (f64, f64) {
    if !matches!(open.persistent_sharding(), Sharding::Zero2 | Sharding::Zero3) {
        return (raw.time.data_parallel, 0.0);
    }
    let m = open.micro_batches();
    let twice =
        estimate_with_plan(&TrainingInput { global: 2.0 * m * open.dp * open.micro, ..*open }, c, raw.recompute);
    let per_micro = (twice.time.data_parallel - raw.time.data_parallel) / m;
    ((raw.time.data_parallel - m * per_micro).max(0.0), per_micro)
}
