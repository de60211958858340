//! Comparison of collectives with their closed forms.

use super::*;

/// Arrival time of the last of `steps` steps of a ring: each rank sends after it has sent and received the step before.
fn ring_recursion(routes: &[Route], steps: u32, share: f64) -> f64 {
    let n = routes.len();
    let (mut left, mut arrived) = (vec![0.0f64; n], vec![0.0f64; n]);
    for _ in 0..steps {
        let begin: Vec<f64> = (0..n).map(|r| left[r].max(arrived[r])).collect();
        for r in 0..n {
            left[r] = begin[r] + share / routes[r].bandwidth;
            arrived[(r + 1) % n] = left[r] + routes[r].latency.seconds();
        }
    }
    arrived.iter().copied().fold(0.0, f64::max)
}

/// In every topology and size, a ring whose hops share no link takes the time given by the recursion, and if all hops
/// are equal, that of the closed form.
#[test]
fn rings_match_their_closed_form_on_every_topology_and_size() {
    let (mut checked, mut alike, mut shared, mut worst) = (0, 0, 0, 0.0f64);
    for shape in shapes() {
        let topology = shape.build();
        let n = topology.accelerators().len() as u32;
        let local = if let Shape::Domains { per_domain, .. } = shape { per_domain } else { 0 };
        let ring = Algorithm::Ring { channels: 1, local, chunks: 1 };
        let order = collectives::ring_order(n, local, 0);
        let routes = routes(&topology, (0..n as usize).map(|r| (order[r], order[(r + 1) % n as usize])));
        if !disjoint(&routes) {
            // In open meshes and with shared routers, this order of ranks has no ring without shared links.
            assert!(matches!(shape, Shape::Torus { .. } | Shape::Dragonfly { .. }), "{shape:?}");
            shared += 1;
            continue;
        }
        let same = routes.iter().all(|r| r.latency == routes[0].latency && r.bandwidth == routes[0].bandwidth);
        for bytes in SIZES {
            for (operation, passes) in
                [(Operation::AllReduce, 2), (Operation::AllGather, 1), (Operation::ReduceScatter, 1)]
            {
                let found = timed(shape, operation, ring, bytes);
                let what = format!("{shape:?} {operation:?} {bytes}");
                near(&what, found, ring_recursion(&routes, passes * (n - 1), bytes / f64::from(n)), 1e-6);
                checked += 1;
                if same {
                    let form =
                        seconds(operation, ring, n, bytes, routes[0].latency.seconds(), routes[0].bandwidth).unwrap();
                    near(&what, found, form, 0.02);
                    worst = worst.max((found / form - 1.0).abs());
                    alike += 1;
                }
            }
        }
    }
    println!(
        "rings: {checked} checked, {alike} against the closed form, largest deviation {worst:.1e}; {shared} shared"
    );
    assert!(checked > 300 && alike > 150, "{checked} {alike}");
}

#[test]
fn one_message_takes_latency_and_bytes_on_every_topology_and_size() {
    for shape in shapes() {
        let topology = shape.build();
        let n = topology.accelerators().len() as u32;
        let route = &routes(&topology, std::iter::once((0, n - 1)))[0];
        for bytes in SIZES {
            let found = timed(shape, Operation::PointToPoint, RING, bytes);
            near(&format!("{shape:?}"), found, route.latency.seconds() + bytes / route.bandwidth, 1e-6);
        }
    }
}

/// Under a single switch only the ports of the ranks themselves can be shared.
#[test]
fn every_algorithm_matches_its_closed_form_under_one_switch() {
    use Operation::{AllGather, AllReduce, AllToAll, Broadcast, ReduceScatter};
    let mut worst = 0.0f64;
    for n in [2u32, 3, 4, 6, 8, 16, 32, 64] {
        let side = if n.is_multiple_of(2) { 2 } else { 1 };
        let sides = [side, n / side, 1];
        let cases = [
            (AllReduce, Algorithm::HalvingDoubling),
            (ReduceScatter, Algorithm::HalvingDoubling),
            (AllGather, Algorithm::HalvingDoubling),
            (AllReduce, Algorithm::Dimensions { sides }),
            (AllGather, Algorithm::Dimensions { sides }),
            (ReduceScatter, Algorithm::Dimensions { sides }),
            (AllReduce, Algorithm::InSwitch { chunks: 16 }),
            (Broadcast, Algorithm::InSwitch { chunks: 16 }),
            (AllToAll, Algorithm::Direct),
            (AllGather, Algorithm::Direct),
            (ReduceScatter, Algorithm::Direct),
            (AllToAll, Algorithm::Pairwise),
            (Broadcast, Algorithm::Ring { channels: 1, local: 0, chunks: 32 }),
        ];
        for (operation, algorithm) in cases {
            for bytes in SIZES {
                let job = job(operation, algorithm, bytes);
                let shape = one_switch(1, n, LINK, LINK);
                let Ok(out) = simulate(&input(shape, vec![job]), 1, &Progress::new()) else {
                    assert!(!n.is_power_of_two() && operation != AllReduce, "{algorithm:?} {n}");
                    continue;
                };
                let form = seconds(operation, algorithm, n, bytes, 2e-6, 100e9).unwrap();
                if algorithm == Algorithm::HalvingDoubling && !n.is_power_of_two() {
                    // Ranks without a partner beyond the power of two begin their exchanges while the ports of others
                    // are still busy.
                    assert!(out.jobs[0].seconds >= 0.999 * form && out.jobs[0].seconds < 1.35 * form, "{n} {bytes}");
                    continue;
                }
                near(&format!("{operation:?} {algorithm:?} {n} {bytes}"), out.jobs[0].seconds, form, 0.02);
                worst = worst.max((out.jobs[0].seconds / form - 1.0).abs());
            }
        }
    }
    println!("one switch: largest deviation {worst:.1e}");
}

#[test]
fn multidimensional_collectives_match_their_closed_form() {
    for (shape, sides) in [
        (torus([4, 4, 1], true), [4, 4, 1]),
        (torus([3, 5, 1], true), [3, 5, 1]),
        (torus([4, 4, 4], true), [4, 4, 4]),
        (torus([8, 4, 2], true), [8, 4, 2]),
    ] {
        let n = sides.iter().product();
        for bytes in SIZES {
            let found = timed(shape, Operation::AllReduce, Algorithm::Dimensions { sides }, bytes);
            let form = seconds(Operation::AllReduce, Algorithm::Dimensions { sides }, n, bytes, 1e-6, 100e9).unwrap();
            near(&format!("{shape:?} {bytes}"), found, form, 0.02);
        }
    }
    // Hierarchical: inside domains at the bandwidth of the link, between domains at that of the card; each rank of a
    // domain sends its own share.
    let (link, nic) = (Wire { bandwidth: 450e9, latency: 0.5e-6 }, Wire { bandwidth: 50e9, latency: 2e-6 });
    for (domains, local) in [(2u32, 8u32), (4, 8), (16, 8)] {
        let algorithm = Algorithm::Dimensions { sides: [local, domains, 1] };
        for bytes in SIZES {
            let (d, l) = (f64::from(domains), f64::from(local));
            let inside = (l - 1.0) * (1e-6 + bytes / l / 450e9);
            let between = (d - 1.0) * (4e-6 + bytes / l / d / 50e9);
            let found = timed(one_switch(domains, local, link, nic), Operation::AllReduce, algorithm, bytes);
            near("hierarchical", found, 2.0 * (inside + between), 0.02);
        }
    }
}

/// Lower and upper bound on the seconds of an all-reduce over a double binary tree with `chunks` chunks per half. Lower
/// bound: every rank sends and receives 2 (n - 1) / n of the vector. Upper bound: no chunk takes longer than if every
/// link were occupied by the four other chunks that it can meet.
fn double_tree_bounds(ranks: u32, bytes: f64, chunks: u32, latency: f64, bandwidth: f64) -> (f64, f64) {
    let levels = f64::from(ranks.max(2).ilog2() + 1);
    let piece = 0.5 * bytes / f64::from(chunks.max(1)) / bandwidth;
    let least = 2.0 * bytes / bandwidth * (f64::from(ranks) - 1.0) / f64::from(ranks);
    (least, 2.0 * bytes / bandwidth + 2.0 * levels * (latency + 4.0 * piece))
}

#[test]
fn double_tree_all_reduce_time_is_within_its_bounds() {
    for n in [2u32, 3, 4, 7, 8, 16, 31, 32, 64] {
        for (bytes, chunks) in [(1e4, 1), (1e6, 8), (1e8, 64), (1e9, 256)] {
            let algorithm = Algorithm::DoubleTree { chunks };
            let found = timed(one_switch(1, n, LINK, LINK), Operation::AllReduce, algorithm, bytes);
            let (least, most) = double_tree_bounds(n, bytes, chunks, 2e-6, 100e9);
            assert!(found >= least * (1.0 - 1e-9) && found <= most, "{n} {bytes}: {least:e} {found:e} {most:e}");
            if bytes >= 1e9 {
                println!(
                    "double tree over {n}: {:+.2} % of twice the vector",
                    100.0 * (found / (2.0 * bytes / 100e9) - 1.0)
                );
            }
        }
    }
}

/// The fabric of the analytical engine, without effects that flows do not model: no ramp, no congestion, no in-switch
/// gain.
fn analytical_fabric() -> collective::Fabric {
    collective::Fabric {
        link_bw: 450e9,
        link_latency: 2e-6,
        nic_bw: 50e9,
        nic_latency: 6e-6,
        message_ramp: 0.0,
        in_switch: 1.0,
        congestion: 0.0,
        network: Default::default(),
        pair_share: 1.0,
        mesh_peers: None,
        ring_gathers: false,
        bridge: None,
    }
}

/// The same fabric as a [`Shape`].
fn analytical_shape(domains: u32, local: u32) -> Shape {
    let f = analytical_fabric();
    one_switch(
        domains,
        local,
        Wire { bandwidth: f.link_bw, latency: 0.5 * f.link_latency },
        Wire { bandwidth: f.nic_bw, latency: 0.5 * f.nic_latency },
    )
}

#[test]
fn analytical_collective_times_match_the_flow_simulation() {
    let f = analytical_fabric();
    let mut worst = 0.0f64;
    let mut check = |what: String, found: f64, expected: f64| {
        near(&what, found, expected, 0.02);
        worst = worst.max((found / expected - 1.0).abs());
    };
    for n in [2u32, 4, 8, 16, 64] {
        let g = Group { size: f64::from(n), local: f64::from(n), domain_stride: 1.0 };
        let shape = analytical_shape(1, n);
        for bytes in SIZES {
            let of = |operation, algorithm| timed(shape, operation, algorithm, bytes);
            check(format!("gather {n} {bytes}"), of(Operation::AllGather, RING), collective::all_gather(&f, g, bytes));
            check(
                format!("scatter {n} {bytes}"),
                of(Operation::ReduceScatter, RING),
                collective::reduce_scatter(&f, g, bytes),
            );
            check(
                format!("all to all {n} {bytes}"),
                of(Operation::AllToAll, Algorithm::Direct),
                collective::all_to_all(&f, g, bytes, 1.0),
            );
            check(
                format!("message {n} {bytes}"),
                of(Operation::PointToPoint, RING),
                collective::point_to_point(&f, bytes, true),
            );
            // The analytical engine takes the fastest algorithm; compare only where that is the ring.
            let reduced = collective::all_reduce(&f, g, bytes);
            if (reduced / (2.0 * collective::all_gather(&f, g, bytes)) - 1.0).abs() < 1e-9 {
                check(format!("reduce {n} {bytes}"), of(Operation::AllReduce, RING), reduced);
            }
        }
    }
    for (domains, local) in [(2u32, 8u32), (4, 8), (8, 4)] {
        let n = domains * local;
        let g = Group { size: f64::from(n), local: f64::from(local), domain_stride: 1.0 };
        let shape = analytical_shape(domains, local);
        let rings = Algorithm::Ring { channels: local, local, chunks: 1 };
        // The analytical engine adds up the latencies of all hops. In the simulation the card is busy meanwhile, so
        // latencies do not count for large messages. Here it is the analytical result that is too long: by 3 % at 1 GB.
        for bytes in [1e6, 1e8, 1e9] {
            let found = timed(shape, Operation::AllGather, rings, bytes);
            let expected = collective::all_gather(&f, g, bytes);
            println!("{domains} x {local}, {bytes:e}: {:+.1} %", 100.0 * (found / expected - 1.0));
        }
        for bytes in [4e9, 16e9] {
            check(
                format!("gather {n}"),
                timed(shape, Operation::AllGather, rings, bytes),
                collective::all_gather(&f, g, bytes),
            );
            check(
                format!("reduce {n}"),
                timed(shape, Operation::AllReduce, rings, bytes),
                collective::all_reduce(&f, g, bytes),
            );
            check(
                format!("message {n}"),
                timed(shape, Operation::PointToPoint, RING, bytes),
                collective::point_to_point(&f, bytes, false),
            );
            let spread = timed(shape, Operation::AllToAll, Algorithm::Direct, bytes);
            check(format!("all to all {n}"), spread, collective::all_to_all(&f, g, bytes, 1.0));
        }
    }
    println!("analytical collectives: largest deviation {worst:.1e}");
}
