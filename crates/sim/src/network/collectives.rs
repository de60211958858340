//! Collectives as messages. Sizes follow nccl-tests: `bytes` is the full vector (all-reduce: the vector of each rank;
//! all-gather and reduce-scatter: the gathered vector; all-to-all: everything that one rank sends, including its own
//! share). Reductions take no time of their own.

use super::transfers::{Builder, MAX_MESSAGES, Send, Transfers};
use super::trees;

/// A communication operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// All ranks receive the sum of all vectors.
    AllReduce,
    /// Each rank receives its share of the sum of all vectors.
    ReduceScatter,
    /// All ranks receive the shares of all ranks.
    AllGather,
    /// Each rank receives a share of every rank's vector.
    AllToAll,
    /// All ranks receive the vector of the first rank.
    Broadcast,
    /// The last rank receives the vector of the first rank.
    PointToPoint,
}

/// Algorithm of a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Ring algorithm: `channels` concurrent rings, each with a share of the vector. The k-th ring begins k ranks
    /// further in every domain of `local` ranks, so that rings leave domains through different cards. If `local` is 0
    /// or all ranks, every second ring runs backwards. A broadcast follows the chain of ranks in `chunks` chunks.
    Ring {
        /// Number of concurrent rings.
        channels: u32,
        /// Ranks of a domain; 0 for all.
        local: u32,
        /// Chunks of a broadcast.
        chunks: u32,
    },
    /// Up a binary tree and down again, in `chunks` pipelined chunks.
    Tree {
        /// Number of chunks.
        chunks: u32,
    },
    /// Two binary trees with half of the vector each; the leaves of one are inner ranks of the other (Sanders, Speck,
    /// Traeff, Parallel Computing 35 (2009); NCCL since 2.4).
    DoubleTree {
        /// Chunks of each half.
        chunks: u32,
    },
    /// Exchanges with partners at halving distance, then at doubling distance (Rabenseifner, ICCS 2004). Ranks beyond a
    /// power of two first send their vector to a partner, and receive the result last.
    HalvingDoubling,
    /// Rings along one dimension after the other: reduce-scatter from the first dimension to the last, all-gather in
    /// reverse. With two sides, domain and number of domains, this is the hierarchical algorithm. Sides of 1 are
    /// skipped.
    Dimensions {
        /// Ranks along each dimension, the fastest first; their product is the number of ranks.
        sides: [u32; 3],
    },
    /// The switch reduces and broadcasts, in `chunks` chunks.
    InSwitch {
        /// Number of chunks.
        chunks: u32,
    },
    /// Each rank sends to all others concurrently.
    Direct,
    /// Each rank sends to one other at a time, in n - 1 rounds.
    Pairwise,
}

impl Algorithm {
    /// Whether a reducing switch takes part.
    pub fn needs_switch(&self) -> bool {
        matches!(self, Algorithm::InSwitch { .. })
    }
}

/// Returns the messages of `operation` over `ranks` ranks, or `None` if the algorithm does not support the operation or
/// this number of ranks.
pub fn transfers(operation: Operation, algorithm: Algorithm, ranks: u32, bytes: f64) -> Option<Transfers> {
    use Operation::{AllGather, AllReduce, AllToAll, Broadcast, PointToPoint, ReduceScatter};
    let mut b = Builder::new(ranks);
    let n = f64::from(ranks.max(1));
    if operation == PointToPoint {
        b.message(0, ranks.saturating_sub(1), bytes);
        return Some(b.finish());
    }
    if ranks < 2 {
        return Some(b.finish());
    }
    let squares = ranks as usize * ranks as usize;
    match (algorithm, operation) {
        (Algorithm::Ring { channels, local, .. }, AllReduce | ReduceScatter | AllGather) => {
            let channels = channels.max(1);
            (squares <= MAX_MESSAGES / 2 / channels as usize).then_some(())?;
            let steps = if operation == AllReduce { 2 * (ranks - 1) } else { ranks - 1 };
            for channel in 0..channels {
                b.start_independent();
                let order = ring_order(ranks, local, channel);
                ring(&mut b, &order, steps, bytes / n / f64::from(channels));
            }
        }
        (Algorithm::Ring { chunks, .. }, Broadcast) => {
            let order: Vec<u32> = (0..ranks).collect();
            trees::chain(&mut b, &order, bytes, pieces(chunks, ranks)?);
        }
        (Algorithm::Tree { chunks }, AllReduce | Broadcast) => {
            let tree = trees::Tree::new(ranks);
            trees::run(&mut b, &tree, bytes, pieces(chunks, ranks)?, operation == AllReduce);
        }
        (Algorithm::DoubleTree { chunks }, AllReduce) => {
            for tree in trees::Tree::pair(ranks) {
                trees::run(&mut b, &tree, 0.5 * bytes, pieces(chunks, ranks)?, true);
            }
        }
        (Algorithm::HalvingDoubling, AllReduce | ReduceScatter | AllGather) => {
            // Reduce-scatter and all-gather need a power of two: ranks beyond it would have no place for their share.
            (operation == AllReduce || ranks.is_power_of_two()).then_some(())?;
            halving_doubling(&mut b, ranks, bytes, operation);
        }
        (Algorithm::Dimensions { sides }, AllReduce | ReduceScatter | AllGather) => {
            let all = sides.iter().try_fold(1u32, |product, &side| product.checked_mul(side));
            (all == Some(ranks)).then_some(())?;
            if operation != AllGather {
                dimensions(&mut b, sides, bytes, false);
            }
            if operation != ReduceScatter {
                dimensions(&mut b, sides, bytes, true);
            }
        }
        (Algorithm::InSwitch { chunks }, AllReduce | Broadcast) => {
            trees::in_switch(&mut b, ranks, bytes, pieces(chunks, ranks)?, operation == AllReduce);
        }
        (Algorithm::Direct, AllToAll | ReduceScatter | AllGather) => {
            (squares <= MAX_MESSAGES).then_some(())?;
            b.assume_unique_pairs();
            for distance in 1..ranks {
                for from in 0..ranks {
                    b.message(from, (from + distance) % ranks, bytes / n);
                }
            }
        }
        (Algorithm::Pairwise, AllToAll) => {
            (squares <= MAX_MESSAGES / 2).then_some(())?;
            b.assume_unique_pairs();
            for distance in 1..ranks {
                let send = |from| Send { from, to: (from + distance) % ranks, bytes: bytes / n };
                b.round(&(0..ranks).map(send).collect::<Vec<_>>());
            }
        }
        _ => return None,
    }
    Some(b.finish())
}

/// Number of chunks, at least one; `None` if there would be too many messages.
fn pieces(chunks: u32, ranks: u32) -> Option<u32> {
    let chunks = chunks.max(1);
    (chunks as usize * ranks as usize <= MAX_MESSAGES / 8).then_some(chunks)
}

/// Ranks in the order of ring number `channel`. Every second domain is traversed backwards, so that a ring enters a
/// domain on the rail on which it left the previous one.
pub(super) fn ring_order(ranks: u32, local: u32, channel: u32) -> Vec<u32> {
    if local == 0 || local >= ranks {
        return if channel.is_multiple_of(2) { (0..ranks).collect() } else { (0..ranks).rev().collect() };
    }
    let turned = |rank: u32| {
        let begin = rank / local * local;
        let size = local.min(ranks - begin);
        let place = rank - begin;
        let forward = if (rank / local).is_multiple_of(2) { place } else { size - 1 - place };
        begin + (forward + channel) % size
    };
    (0..ranks).map(turned).collect()
}

/// Adds `steps` steps of a ring, `share` bytes per message.
fn ring(b: &mut Builder, order: &[u32], steps: u32, share: f64) {
    let next = order.iter().cycle().skip(1);
    let sends: Vec<Send> = order.iter().zip(next).map(|(&from, &to)| Send { from, to, bytes: share }).collect();
    for _ in 0..steps {
        b.round(&sends);
    }
}

fn halving_doubling(b: &mut Builder, ranks: u32, bytes: f64, operation: Operation) {
    // The largest power of two, and the number of ranks beyond it.
    let core = 1 << ranks.ilog2();
    let extra = ranks - core;
    let fold = |b: &mut Builder, back: bool| {
        let send = |k: u32| {
            let (from, to) = if back { (k, core + k) } else { (core + k, k) };
            Send { from, to, bytes }
        };
        b.round(&(0..extra).map(send).collect::<Vec<_>>());
    };
    fold(b, false);
    let exchange = |b: &mut Builder, distance: u32| {
        let share = bytes * f64::from(distance) / f64::from(core);
        let send = |from: u32| Send { from, to: from ^ distance, bytes: share };
        b.round(&(0..core).map(send).collect::<Vec<_>>());
    };
    let doubling = std::iter::successors(Some(1), |d| Some(2 * d)).take_while(|&d| d < core);
    if operation != Operation::AllGather {
        doubling.clone().collect::<Vec<_>>().into_iter().rev().for_each(|d| exchange(b, d));
    }
    if operation != Operation::ReduceScatter {
        doubling.for_each(|d| exchange(b, d));
    }
    fold(b, true);
}

/// Adds reduce-scatters along one dimension after the other, or all-gathers in reverse order (if `gather`).
fn dimensions(b: &mut Builder, sides: [u32; 3], bytes: f64, gather: bool) {
    let ranks: u32 = sides.iter().product();
    let mut stages = Vec::new();
    let (mut stride, mut held) = (1, bytes);
    for side in sides {
        stages.push((side, stride, held / f64::from(side)));
        held /= f64::from(side);
        stride *= side;
    }
    if gather {
        stages.reverse();
    }
    for (side, stride, share) in stages {
        let send = |from: u32| {
            let place = from / stride % side;
            let to = from - place * stride + (place + 1) % side * stride;
            Send { from, to, bytes: share }
        };
        let sends: Vec<Send> = (0..ranks).map(send).collect();
        for _ in 1..side {
            b.round(&sends);
        }
    }
}
