//! Closed-form durations of the algorithms when no link is shared: latency and bandwidth only (Hockney; Thakur,
//! Rabenseifner, Gropp, *Optimization of collective communication operations in MPICH*, 2005). The simulation must
//! agree with them in that limit; otherwise they serve as a reference in charts.

use super::collectives::{Algorithm, Operation};
use atlas_core::math;

/// Returns the seconds that `operation` takes by `algorithm` over `ranks` ranks. `bytes` follows nccl-tests. Every
/// message takes `latency` seconds and is sent at `bandwidth` bytes/s; links are full duplex. Returns `None` if no
/// short closed form is known.
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
        // The first chunk passes all hops; the others follow it.
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
            // Up and down are each half of a route between two ranks, and the chunks are pipelined.
            latency + flow + piece
        }
        (Algorithm::Direct, AllToAll | ReduceScatter | AllGather) => latency + share * flow,
        (Algorithm::Pairwise, AllToAll) => (n - 1.0) * latency + share * flow,
        _ => return None,
    })
}
