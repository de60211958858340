//! Comparison with a straightforward computation, and invariants of any set of flows.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::super::routing::{Router, Routing};
use super::super::shapes::{Fabric, Shape};
use super::super::topology::{NodeKind, Wire};
use super::*;
use proptest::prelude::*;

/// Nodes in a line, connected by cables of the given bandwidths.
fn line(bandwidths: &[f64]) -> Topology {
    let mut t = Topology::default();
    t.nodes(NodeKind::Accelerator, bandwidths.len() as u32 + 1);
    for (k, &bandwidth) in (0..).zip(bandwidths) {
        t.cable(k, k + 1, Wire { bandwidth, latency: 0.0 });
    }
    t.forwarding()
}

/// Arrival times of messages sent at time zero.
fn arrivals(t: &Topology, sends: &[(u32, u32, f64)]) -> Vec<f64> {
    let mut router = Router::new(t, Routing::First, 0);
    let mut queue = EventQueue::<NetworkEvent>::default();
    let mut flows = Flows::new(t);
    for (message, &(from, to, bytes)) in (0..).zip(sends) {
        let route = router.route(from, to).unwrap();
        flows.send(&mut queue, &route, bytes, message);
    }
    let mut out = vec![f64::NAN; sends.len()];
    while let Some(event) = queue.pop() {
        if let FlowOutcome::Delivered(message) = flows.handle(event, &mut queue) {
            out[message as usize] = queue.now().seconds();
        }
    }
    out
}

#[test]
fn max_min_shares_match_the_textbook_example() {
    // A long flow over two links, and a short flow on each: the narrow link limits the long flow, and the short flow of
    // the wide link takes the rest.
    let t = line(&[1.0, 3.0]);
    let times = arrivals(&t, &[(0, 2, 1.0), (0, 1, 1.0), (1, 2, 5.0)]);
    // Rates 0.5, 0.5 and 2.5: all end after 2 seconds.
    for time in times {
        assert!((time - 2.0).abs() < 1e-9, "{time}");
    }
}

#[test]
fn a_finished_flow_frees_its_bandwidth() {
    let t = line(&[2.0]);
    let times = arrivals(&t, &[(0, 1, 1.0), (0, 1, 3.0)]);
    // Both at rate 1 until the first ends at 1 s; then 2 bytes at rate 2.
    assert!((times[0] - 1.0).abs() < 1e-9 && (times[1] - 2.0).abs() < 1e-9, "{times:?}");
}

#[test]
fn directions_do_not_share_bandwidth_and_zero_bytes_take_no_time() {
    let t = line(&[2.0]);
    let times = arrivals(&t, &[(0, 1, 4.0), (1, 0, 4.0), (0, 1, 0.0), (0, 0, 7.0)]);
    assert_eq!(times, [2.0, 2.0, 0.0, 0.0]);
}

/// Max-min fair rates by definition, computed for all flows at once.
fn plain_rates(capacity: &[f64], routes: &[Vec<u32>]) -> Vec<f64> {
    let mut spare = capacity.to_vec();
    let mut rates = vec![0.0; routes.len()];
    let mut fixed = vec![false; routes.len()];
    while fixed.iter().any(|f| !f) {
        let users =
            |link: usize| (0..routes.len()).filter(|&r| !fixed[r] && routes[r].contains(&(link as u32))).count();
        let (share, narrow) = (0..spare.len())
            .filter(|&link| users(link) > 0)
            .map(|link| (spare[link] / users(link) as f64, link))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap();
        for route in
            (0..routes.len()).filter(|&r| !fixed[r] && routes[r].contains(&(narrow as u32))).collect::<Vec<_>>()
        {
            fixed[route] = true;
            rates[route] = share;
            routes[route].iter().for_each(|&link| spare[link as usize] -= share);
        }
    }
    rates
}

/// Sends messages (sender, receiver, bytes, second). Checks after every event that the incremental rates equal those of
/// a full recomputation, and at the end that every byte was carried over every link of its route.
fn agrees(t: &Topology, routing: Routing, ends: &[u32], mut sends: Vec<(u32, u32, f64, u64)>) {
    let mut router = Router::new(t, routing, 7);
    let mut queue = EventQueue::<NetworkEvent>::default();
    let mut flows = Flows::new(t);
    sends.sort_by_key(|s| s.3);
    let mut live: Vec<(u32, Vec<u32>)> = Vec::new();
    let capacity: Vec<f64> = t.links().iter().map(|l| l.bandwidth).collect();
    let mut carried = vec![0.0; capacity.len()];
    let mut next = 0;
    loop {
        let at = sends.get(next).map_or(Time::MAX, |s| Time::from_seconds(s.3 as f64));
        if let Some(event) = queue.next_until(at) {
            let left = matches!(event, NetworkEvent::Departed(_));
            if let FlowOutcome::Departed(message) = flows.handle(event, &mut queue) {
                assert!(left);
                // Every message leaves exactly once.
                let place = live.iter().position(|(m, _)| *m == message).unwrap();
                live.remove(place);
            }
        } else {
            let Some(&(from, to, bytes, second)) = sends.get(next) else { break };
            // The clock of the queue advances only with events.
            if queue.now() < Time::from_seconds(second as f64) {
                queue.at(Time::from_seconds(second as f64), NetworkEvent::RecomputeRates);
                let event = queue.pop().unwrap();
                flows.handle(event, &mut queue);
            }
            let (from, to) = (ends[from as usize % ends.len()], ends[to as usize % ends.len()]);
            if from != to {
                let route = router.route(from, to).unwrap();
                flows.send(&mut queue, &route, bytes, next as u32);
                route.links.iter().for_each(|&link| carried[link as usize] += bytes);
                live.push((next as u32, route.links.to_vec()));
            }
            next += 1;
        }
        if flows.settling {
            continue;
        }
        let routes: Vec<Vec<u32>> = live.iter().map(|(_, r)| r.clone()).collect();
        for ((message, _), rate) in live.iter().zip(plain_rates(&capacity, &routes)) {
            let here = |(id, c): &(usize, &FlowProgress)| {
                c.message == *message && !flows.free.iter().flatten().any(|free| *free == *id as u32)
            };
            let (id, _) = flows.courses.iter().enumerate().find(here).unwrap();
            let found = flows.flows[id].rate;
            assert!((found / rate - 1.0).abs() < 1e-6, "{found} {rate}");
        }
    }
    assert!(live.is_empty());
    for (found, sent) in flows.carried().zip(carried) {
        assert!((found - sent).abs() <= 1e-6 * sent.max(1.0), "{found} {sent}");
    }
}

proptest! {
    /// Flows start and end on shared links.
    #[test]
    fn incremental_rates_equal_a_full_recomputation(
        bandwidths in prop::collection::vec(1.0f64..9.0, 2..8),
        sends in prop::collection::vec((0u32..8, 0u32..8, 1.0f64..50.0, 0u64..20), 1..30),
    ) {
        let ends: Vec<u32> = (0..=bandwidths.len() as u32).collect();
        agrees(&line(&bandwidths), Routing::First, &ends, sends);
    }

    /// ECMP in a fat tree with network cards. Times are whole numbers, so that many flows start and end in the same
    /// instant.
    #[test]
    fn incremental_rates_equal_a_full_recomputation_through_nics(
        (inside, card, narrow) in (1u32..5, 1u32..4, 1u32..5),
        spines in 1u32..4,
        sends in prop::collection::vec((0u32..12, 0u32..12, 1u32..9, 0u64..12), 1..60),
    ) {
        let wire = |bandwidth: u32| Wire { bandwidth: f64::from(bandwidth), latency: 0.0 };
        let oversubscription = f64::from(narrow);
        let fabric = Fabric::FatTree { domains_per_leaf: 2, spines, oversubscription, latency: 0.0 };
        let shape = Shape::Domains { domains: 6, per_domain: 2, link: wire(inside), nic: wire(card), fabric };
        let t = shape.build();
        let sends = sends.into_iter().map(|(from, to, bytes, second)| (from, to, f64::from(bytes), second)).collect();
        agrees(&t, Routing::Hashed, t.accelerators(), sends);
    }
}
