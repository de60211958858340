//! Collectives as messages. Sizes follow nccl-tests: `bytes` is the full vector (all-reduce: what each rank holds;
//! all-gather and reduce-scatter: the gathered vector; all-to-all: what one rank sends in all, its own share counted
//! in). Adding up takes no time of its own.

use super::transfers::{Builder, MOST, Send, Transfers};
use super::trees;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// All ranks receive the sum of all vectors.
    AllReduce,
    /// Each rank receives a share of the sum of all vectors.
    ReduceScatter,
    /// All ranks receive the shares of all.
    AllGather,
    /// Each rank receives a share of every rank's vector.
    AllToAll,
    /// All ranks receive the vector of the first.
    Broadcast,
    /// The last rank gets the first one's vector.
    PointToPoint,
}

/// How it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Round the ring of ranks, `channels` rings at a time, each with a share of the vector. The k-th ring begins k ranks
    /// further in every domain of `local` ranks, so that rings leave domains by different cards; with `local` 0 or all
    /// ranks every second ring runs backwards. Broadcast: along the chain in `chunks` pieces.
    Ring {
        /// Rings at a time.
        channels: u32,
        /// Ranks of a domain; 0 = all.
        local: u32,
        /// Pieces of a broadcast.
        chunks: u32,
    },
    /// Up a binary tree and down again, `chunks` pieces one after the other.
    Tree {
        /// Pieces.
        chunks: u32,
    },
    /// Two binary trees with half of the vector each, the leaves of one the inner ranks of the other (Sanders, Speck,
    /// Traeff, Parallel Computing 35 (2009); NCCL since 2.4).
    DoubleTree {
        /// Pieces of each half.
        chunks: u32,
    },
    /// Exchanges with partners at halving distance, then at doubling (Rabenseifner, ICCS 2004). Ranks beyond a power of
    /// two hand theirs to a partner first and get the result last.
    HalvingDoubling,
    /// Rings along one dimension after the other: reduce-scatter inside, then between, all-gather the other way. Two
    /// sides, domain and domains: the hierarchical algorithm. Sides of 1 are passed over.
    Dimensions {
        /// Ranks along each dimension, the quickest first; their product is all ranks.
        sides: [u32; 3],
    },
    /// The switch adds up and spreads, in `chunks` pieces.
    InSwitch {
        /// Pieces.
        chunks: u32,
    },
    /// Each rank sends to all others at once.
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

/// The messages of `operation` over `ranks` ranks; `None` if the algorithm does not do that, or not for this many ranks.
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
            (squares <= MOST / 2 / channels as usize).then_some(())?;
            let steps = if operation == AllReduce { 2 * (ranks - 1) } else { ranks - 1 };
            for channel in 0..channels {
                b.lane();
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
            // Shares that are not powers of two have no place to end up in.
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
            (squares <= MOST).then_some(())?;
            b.once_each();
            for distance in 1..ranks {
                for from in 0..ranks {
                    b.message(from, (from + distance) % ranks, bytes / n);
                }
            }
        }
        (Algorithm::Pairwise, AllToAll) => {
            (squares <= MOST / 2).then_some(())?;
            b.once_each();
            for distance in 1..ranks {
                let send = |from| Send { from, to: (from + distance) % ranks, bytes: bytes / n };
                b.round(&(0..ranks).map(send).collect::<Vec<_>>());
            }
        }
        _ => return None,
    }
    Some(b.finish())
}

/// Pieces, at least one; `None` if there would be too many messages.
fn pieces(chunks: u32, ranks: u32) -> Option<u32> {
    let chunks = chunks.max(1);
    (chunks as usize * ranks as usize <= MOST / 8).then_some(chunks)
}

/// The ranks as ring number `channel` meets them. Every second domain is passed backwards, so that a ring enters a
/// domain on the rail on which it left the one before.
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

/// `steps` steps round a ring, `share` bytes each.
fn ring(b: &mut Builder, order: &[u32], steps: u32, share: f64) {
    let next = order.iter().cycle().skip(1);
    let sends: Vec<Send> = order.iter().zip(next).map(|(&from, &to)| Send { from, to, bytes: share }).collect();
    for _ in 0..steps {
        b.round(&sends);
    }
}

fn halving_doubling(b: &mut Builder, ranks: u32, bytes: f64, operation: Operation) {
    // The largest power of two, and the ranks beyond it.
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

/// Reduce-scatter along one dimension after the other, or all-gather the other way round (`gather`).
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
