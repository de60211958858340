//! What the algorithms take where no link is shared: latency and bandwidth alone (Hockney; Thakur, Rabenseifner, Gropp,
//! *Optimization of collective communication operations in MPICH*, 2005). The simulation must agree with them in that
//! limit, and they are drawn alongside it where it does not.

use super::collectives::{Algorithm, Operation};
use atlas_core::math;

/// Seconds of `operation` by `algorithm` over `ranks` ranks, `bytes` as nccl-tests count them, every message taking
/// `latency` seconds and flowing at `bandwidth` bytes/s, both ways at once. `None` if no short form is known.
pub fn seconds(
    operation: Operation,
    algorithm: Algorithm,
    ranks: u32,
    bytes: f64,
    latency: f64,
    bandwidth: f64,
) -> Option<f64> {
    use Operation::{AllGather, AllReduce, AllToAll, Broadcast, PointToPoint, ReduceScatter};
    let n = f64::from(ranks.max(1));
    let flow = bytes / bandwidth;
    if operation == PointToPoint {
        return Some(latency + flow);
    }
    if ranks < 2 {
        return Some(0.0);
    }
    let share = (n - 1.0) / n;
    let passes = if operation == AllReduce { 2.0 } else { 1.0 };
    let pieces = |chunks: u32| (f64::from(chunks.max(1)), flow / f64::from(chunks.max(1)));
    Some(match (algorithm, operation) {
        (Algorithm::Ring { .. }, AllReduce | ReduceScatter | AllGather) => {
            passes * ((n - 1.0) * latency + share * flow)
        }
        // The first piece passes all hops, the others follow it.
        (Algorithm::Ring { chunks, .. }, Broadcast) => {
            let (count, piece) = pieces(chunks);
            (n - 1.0) * (latency + piece) + (count - 1.0) * piece
        }
        (Algorithm::HalvingDoubling, AllReduce | ReduceScatter | AllGather) => {
            let core = f64::from(1u32 << ranks.ilog2());
            let folds = if ranks.is_power_of_two() { 0.0 } else { 2.0 };
            passes * (math::log2(core) * latency + (core - 1.0) / core * flow) + folds * (latency + flow)
        }
        (Algorithm::Dimensions { sides }, AllReduce | ReduceScatter | AllGather) => {
            let steps: f64 = sides.iter().map(|&side| f64::from(side) - 1.0).sum();
            passes * (steps * latency + share * flow)
        }
        (Algorithm::InSwitch { chunks }, AllReduce | Broadcast) => {
            let (_, piece) = pieces(chunks);
            // Up and down are half of a way between two ranks each; the pieces follow one another.
            latency + flow + piece
        }
        (Algorithm::Direct, AllToAll | ReduceScatter | AllGather) => latency + share * flow,
        (Algorithm::Pairwise, AllToAll) => (n - 1.0) * latency + share * flow,
        _ => return None,
    })
}

/// Bounds on an all-reduce over a double binary tree in `chunks` pieces a half: every rank sends and receives the vector
/// twice at least, and no piece needs longer than if it found every link taken by the four others it can meet.
pub fn double_tree_bounds(ranks: u32, bytes: f64, chunks: u32, latency: f64, bandwidth: f64) -> (f64, f64) {
    let levels = f64::from(ranks.max(2).ilog2() + 1);
    let piece = 0.5 * bytes / f64::from(chunks.max(1)) / bandwidth;
    let least = 2.0 * bytes / bandwidth * (f64::from(ranks) - 1.0) / f64::from(ranks);
    (least, 2.0 * bytes / bandwidth + 2.0 * levels * (latency + 4.0 * piece))
}
