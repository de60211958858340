//! Comparison with the closed forms where no link is shared, with the analytical engine where it models the same
//! algorithm, and with the expected effects of sharing.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::closed_form::seconds;
use super::*;
use atlas_perf::collective;
use atlas_perf::collective::Group;

mod closed_forms;

const LINK: Wire = Wire { bandwidth: 100e9, latency: 1e-6 };
const SIZES: [f64; 5] = [1e3, 1e5, 1e6, 1e8, 4e9];
const RING: Algorithm = Algorithm::Ring { channels: 1, local: 0, chunks: 1 };

fn one_switch(domains: u32, per_domain: u32, link: Wire, nic: Wire) -> Shape {
    Shape::Domains { domains, per_domain, link, nic, fabric: Fabric::OneSwitch }
}

fn fat_tree(domains: u32, per_domain: u32, oversubscription: f64) -> Shape {
    let fabric = Fabric::FatTree { domains_per_leaf: 2, spines: 2, oversubscription, latency: 1e-6 };
    Shape::Domains { domains, per_domain, link: LINK, nic: LINK, fabric }
}

fn rails(domains: u32, per_domain: u32) -> Shape {
    let fabric = Fabric::Rails { spines: 2, oversubscription: 1.0, latency: 1e-6 };
    Shape::Domains { domains, per_domain, link: LINK, nic: LINK, fabric }
}

fn dragonfly(groups: u32, routers: u32, per_router: u32) -> Shape {
    Shape::Dragonfly { groups, routers, per_router, terminal: LINK, local: LINK, global: LINK }
}

fn torus(sides: [u32; 3], wrapped: bool) -> Shape {
    Shape::Torus { sides, wrapped, link: LINK }
}

/// All network shapes, in several sizes.
fn shapes() -> Vec<Shape> {
    let mut out = Vec::new();
    for accelerators in [2, 3, 8, 32] {
        out.push(Shape::FullMesh { accelerators, link: LINK });
        out.push(Shape::Ring { accelerators, link: LINK });
        out.push(Shape::Tree { accelerators, fan_out: 4, link: LINK });
        out.push(one_switch(1, accelerators, LINK, LINK));
    }
    for sides in [[4, 4, 1], [2, 3, 1], [4, 4, 4], [8, 4, 2]] {
        out.push(torus(sides, true));
    }
    // The smaller TPU slices are meshes.
    out.extend([[2, 2, 1], [2, 4, 1], [4, 4, 1]].map(|sides| torus(sides, false)));
    for (domains, per_domain) in [(2, 8), (4, 4), (8, 8)] {
        out.push(one_switch(domains, per_domain, LINK, LINK));
        out.push(one_switch(domains, per_domain, Wire { bandwidth: 450e9, ..LINK }, Wire { latency: 5e-6, ..LINK }));
        out.push(fat_tree(domains, per_domain, 1.0));
        out.push(rails(domains, per_domain));
    }
    out.extend([dragonfly(3, 2, 2), dragonfly(5, 4, 2), dragonfly(9, 4, 4)]);
    out
}

fn input(shape: Shape, jobs: Vec<Job>) -> Input {
    Input { shape, degraded: vec![], routing: Routing::First, jobs }
}

fn job(operation: Operation, algorithm: Algorithm, bytes: f64) -> Job {
    Job { operation, algorithm, ranks: vec![], bytes, begin: 0.0 }
}

fn timed(shape: Shape, operation: Operation, algorithm: Algorithm, bytes: f64) -> f64 {
    simulate(&input(shape, vec![job(operation, algorithm, bytes)]), 1, &Progress::new()).unwrap().jobs[0].seconds
}

fn near(what: &str, found: f64, expected: f64, tolerance: f64) {
    let off = found / expected - 1.0;
    assert!(off.abs() <= tolerance, "{what}: {found:e} against {expected:e}, {:.2} %", 100.0 * off);
}

fn routes(topology: &Topology, pairs: impl Iterator<Item = (u32, u32)>) -> Vec<Route> {
    let mut router = Router::new(topology, Routing::First, 0);
    let at = topology.accelerators();
    pairs.map(|(a, b)| router.route(at[a as usize], at[b as usize]).unwrap()).collect()
}

fn disjoint(routes: &[Route]) -> bool {
    let mut links: Vec<u32> = routes.iter().flat_map(|r| r.links.to_vec()).collect();
    links.sort_unstable();
    links.windows(2).all(|pair| pair[0] != pair[1])
}

/// The data that rank `r` can send is what has arrived before, given only the dependencies of the transfers.
#[test]
fn every_collective_delivers_its_result_to_every_rank() {
    use Operation::{AllGather, AllReduce, AllToAll, Broadcast, ReduceScatter};
    let sides = |n: u32| [2, n / 2, 1];
    for n in [2u32, 3, 4, 5, 6, 8, 13, 16, 24, 32] {
        let all = (1u64 << n) - 1;
        let algorithms = [
            Algorithm::Ring { channels: 2, local: 0, chunks: 3 },
            Algorithm::Ring { channels: 2, local: 2, chunks: 3 },
            Algorithm::Tree { chunks: 2 },
            Algorithm::DoubleTree { chunks: 2 },
            Algorithm::HalvingDoubling,
            Algorithm::Dimensions { sides: sides(n) },
            Algorithm::InSwitch { chunks: 2 },
            Algorithm::Direct,
            Algorithm::Pairwise,
        ];
        for algorithm in algorithms {
            for operation in [AllReduce, ReduceScatter, AllGather, AllToAll, Broadcast] {
                let Some(t) = collectives::transfers(operation, algorithm, n, 1e6) else { continue };
                let mut waits = t.waits.clone();
                let mut ready: Vec<u32> = (0..t.len() as u32).filter(|&m| waits[m as usize] == 0).collect();
                let mut carried = vec![0u64; t.len()];
                let mut known: Vec<u64> = (0..=n).map(|r| if r < n { 1 << r } else { 0 }).collect();
                let ends: Vec<(u32, u32, f64)> = t.messages().collect();
                let mut done = 0;
                while let Some(m) = ready.pop() {
                    done += 1;
                    let (from, to, _) = ends[m as usize];
                    carried[m as usize] |= if from < n { 1 << from } else { 0 };
                    known[to as usize] |= carried[m as usize];
                    for leaving in [true, false] {
                        for follower in t.followers(m, leaving).collect::<Vec<_>>() {
                            // A rank waits only for messages that it has received or sent itself.
                            assert_eq!(ends[follower as usize].0, if leaving { from } else { to });
                            carried[follower as usize] |= carried[m as usize];
                            waits[follower as usize] -= 1;
                            if waits[follower as usize] == 0 {
                                ready.push(follower);
                            }
                        }
                    }
                }
                assert_eq!(done, t.len(), "{algorithm:?} {operation:?} {n}: some messages wait for ever");
                let promised = if operation == Broadcast { 1 } else { all };
                assert!(
                    known[..n as usize].iter().all(|k| k & promised == promised),
                    "{algorithm:?} {operation:?} {n}"
                );
            }
        }
    }
}

#[test]
fn narrow_uplinks_slow_only_traffic_that_crosses_them() {
    let across = |oversubscription| {
        let spread = Algorithm::Direct;
        timed(fat_tree(8, 4, oversubscription), Operation::AllToAll, spread, 1e9)
    };
    let (open, narrow) = (across(1.0), across(4.0));
    assert!(narrow > 2.0 * open, "{open} {narrow}");
    let inside = |oversubscription| {
        let job = Job { ranks: (0..4).collect(), ..job(Operation::AllReduce, RING, 1e9) };
        simulate(&input(fat_tree(8, 4, oversubscription), vec![job]), 1, &Progress::new()).unwrap().seconds
    };
    assert_eq!(inside(1.0), inside(4.0));
}

#[test]
fn hashed_routes_collide_depending_on_the_hash() {
    let fabric = Fabric::FatTree { domains_per_leaf: 1, spines: 8, oversubscription: 1.0, latency: 1e-6 };
    let shape = Shape::Domains { domains: 8, per_domain: 8, link: LINK, nic: LINK, fabric };
    // Each rank sends to its counterpart in the next domain: eight flows from a leaf to eight spines.
    let jobs: Vec<Job> =
        (0..64).map(|r| Job { ranks: vec![r, (r + 8) % 64], ..job(Operation::PointToPoint, RING, 1e9) }).collect();
    let hashed = Input { routing: Routing::Hashed, ..input(shape, jobs) };
    let slowest = |seed| simulate(&hashed, seed, &Progress::new()).unwrap().seconds;
    let alone = 1e9 / 100e9;
    let times: Vec<f64> = (0..8).map(slowest).collect();
    assert!(times.iter().all(|&t| t > 1.9 * alone && t < 8.1 * alone), "{times:?}");
    assert!(times.iter().any(|&t| t != times[0]));
}

#[test]
fn a_degraded_link_slows_the_whole_ring() {
    let mut degraded = input(one_switch(1, 8, LINK, LINK), vec![job(Operation::AllReduce, RING, 1e9)]);
    let whole = simulate(&degraded, 1, &Progress::new()).unwrap().seconds;
    degraded.degraded = vec![(3, 0.5)];
    near("half", simulate(&degraded, 1, &Progress::new()).unwrap().seconds, 2.0 * whole, 0.01);
    degraded.degraded = vec![(3, 0.0)];
    assert_eq!(simulate(&degraded, 1, &Progress::new()).unwrap_err(), [Problem::NoRoute { job: 0, from: 2, to: 3 }]);
}

#[test]
fn two_jobs_on_the_same_links_take_twice_as_long_and_on_others_do_not() {
    let shape = one_switch(1, 8, LINK, LINK);
    let half = |ranks: std::ops::Range<u32>| Job { ranks: ranks.collect(), ..job(Operation::AllReduce, RING, 1e9) };
    let time = |jobs| simulate(&input(shape, jobs), 1, &Progress::new()).unwrap().jobs[0].seconds;
    let alone = time(vec![half(0..4)]);
    assert_eq!(alone, time(vec![half(0..4), half(4..8)]));
    near("shared", time(vec![half(0..4), half(0..4)]), 2.0 * alone, 0.01);
    let later = Job { begin: 10.0 * alone, ..half(0..4) };
    near("later", time(vec![half(0..4), later]), alone, 1e-9);
}

#[test]
fn bus_bandwidth_matches_nccl_tests_and_link_bytes_are_conserved() {
    let out =
        simulate(&input(one_switch(1, 8, LINK, LINK), vec![job(Operation::AllReduce, RING, 8e9)]), 1, &Progress::new())
            .unwrap();
    near("bus bandwidth", out.jobs[0].bus_bandwidth, 100e9, 0.01);
    // Seven eighths of the bytes, twice, over every port in both directions.
    assert!(out.links.iter().all(|l| (l.bytes / 14e9 - 1.0).abs() < 1e-9 && l.utilization > 0.99));
    assert_eq!(out.messages, 2 * 7 * 8);
    assert_eq!(out.jobs[0].messages, 2 * 7 * 8);
}

#[test]
fn trivial_collectives_take_no_time_and_all_problems_are_reported() {
    assert_eq!(timed(one_switch(1, 1, LINK, LINK), Operation::AllReduce, RING, 1e9), 0.0);
    assert_eq!(timed(one_switch(1, 4, Wire { latency: 0.0, ..LINK }, LINK), Operation::AllReduce, RING, 0.0), 0.0);
    let broken = Wire { bandwidth: f64::NAN, latency: -1.0 };
    let twice = Job { ranks: vec![1, 1], ..job(Operation::AllReduce, RING, f64::INFINITY) };
    let problems = input(one_switch(2, 2, broken, LINK), vec![twice]).problems();
    assert_eq!(problems.len(), 4, "{problems:?}");
    let huge = torus([u32::MAX, u32::MAX, 2], true);
    assert!(simulate(&input(huge, vec![]), 1, &Progress::new()).is_err());
    let wrong = job(Operation::AllToAll, Algorithm::Tree { chunks: 1 }, 1e3);
    let described = simulate(&input(one_switch(1, 4, LINK, LINK), vec![wrong]), 1, &Progress::new());
    assert!(matches!(described.unwrap_err()[..], [Problem::NotDone { .. }]));
    let switchless = job(Operation::AllReduce, Algorithm::InSwitch { chunks: 1 }, 1e3);
    let described = simulate(&input(torus([4, 1, 1], true), vec![switchless]), 1, &Progress::new());
    assert!(matches!(described.unwrap_err()[..], [Problem::NoSwitch { .. }]));
}

#[test]
fn the_same_seed_gives_the_same_answer() {
    let hashed = Input {
        routing: Routing::Hashed,
        ..input(fat_tree(8, 4, 2.0), vec![job(Operation::AllToAll, Algorithm::Direct, 1e8)])
    };
    let run = |seed| simulate(&hashed, seed, &Progress::new()).unwrap();
    assert_eq!(run(1), run(1));
}
