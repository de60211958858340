//! Comparison with theory: formulas must lie within the confidence intervals of the simulation.

#![allow(clippy::indexing_slicing)]

use super::*;
use crate::kernel::Interval;
use crate::kernel::replication::{compare, replicate};

const CUSTOMERS: u64 = 60_000;
const REPLICATIONS: u32 = 12;
/// Each test makes several comparisons, so each uses a level of 99.9 %. Seeds are fixed, so that no test is flaky.
const LEVEL: f64 = 0.999;

fn station(between: Distribution, service: Distribution, servers: u32) -> Input {
    Input { between, service, servers, customers: CUSTOMERS, warm_up: 5_000 }
}

fn exponential(mean: f64) -> Distribution {
    Distribution::Exponential { mean }
}

/// Mean wait, sojourn time, number waiting and number of busy servers.
fn measured(input: &Input, seed: u64) -> [Interval; 4] {
    replicate(seed, REPLICATIONS, LEVEL, |seed| {
        let o = simulate(input, seed, &Progress::new());
        assert_eq!(o.wait.count(), CUSTOMERS);
        assert_eq!(o.sojourn.count(), CUSTOMERS);
        [o.wait.mean(), o.sojourn.mean(), o.waiting, o.busy]
    })
}

/// Erlang C by the recursion of Erlang B.
fn erlang_c(servers: u32, load: f64) -> f64 {
    let b = (1..=servers).fold(1.0, |b, k| load * b / (f64::from(k) + load * b));
    let rho = load / f64::from(servers);
    b / (1.0 - rho * (1.0 - b))
}

fn agree(what: &str, measured: Interval, theory: f64, tightness: f64) {
    assert!(measured.covers(theory), "{what}: {measured:?} does not cover {theory}");
    // A very wide interval would prove nothing.
    assert!(measured.half_width < tightness * theory, "{what}: {measured:?} is too wide");
}

#[test]
fn waits_of_one_markovian_server_match_theory() {
    for (rho, seed) in [(0.3, 100), (0.6, 200), (0.8, 300)] {
        let [wait, sojourn, waiting, busy] = measured(&station(exponential(1.0), exponential(rho), 1), seed);
        agree("wait", wait, rho * rho / (1.0 - rho), 0.1);
        agree("sojourn", sojourn, rho / (1.0 - rho), 0.1);
        agree("waiting", waiting, rho * rho / (1.0 - rho), 0.1);
        agree("busy", busy, rho, 0.02);
    }
}

#[test]
fn waits_of_many_markovian_servers_match_erlang_c() {
    for (servers, rho, seed) in [(2, 0.7, 400), (8, 0.8, 500), (32, 0.9, 600)] {
        let m = f64::from(servers);
        let [wait, sojourn, _, busy] = measured(&station(exponential(1.0), exponential(rho * m), servers), seed);
        let theory = erlang_c(servers, rho * m) * rho * m / (m * (1.0 - rho));
        agree("wait", wait, theory, 0.25);
        agree("sojourn", sojourn, theory + rho * m, 0.1);
        agree("busy", busy, rho * m, 0.02);
    }
}

#[test]
fn constant_service_halves_the_wait() {
    for (rho, seed) in [(0.5, 700), (0.85, 800)] {
        let [wait, _, _, _] = measured(&station(exponential(1.0), Distribution::Constant(rho), 1), seed);
        // Pollaczek-Khinchine with zero variance of service times.
        agree("wait", wait, rho * rho / (2.0 * (1.0 - rho)), 0.1);
    }
}

#[test]
fn waits_of_general_service_match_pollaczek_khinchine() {
    let (rho, cv) = (0.7f64, 1.5f64);
    let service = Distribution::LogNormal { mean: rho, cv };
    let [wait, _, _, _] = measured(&station(exponential(1.0), service, 1), 900);
    agree("wait", wait, rho * rho * (1.0 + cv * cv) / (2.0 * (1.0 - rho)), 0.15);
}

/// Kingman's bound holds for one server. For several servers, the formula of Allen and Cunneen is an approximation:
/// with the factor of Kraemer and Langenbach-Belz for smooth arrivals its error is below a sixth here, so the interval
/// widened by that must cover it.
#[test]
fn waits_of_general_queues_are_below_kingman_and_near_allen_cunneen() {
    let mut seed = 1000;
    for (ca, cs, rho) in [(0.5f64, 0.5f64, 0.85f64), (1.5, 0.5, 0.8), (0.5, 1.5, 0.8), (1.4, 1.2, 0.85)] {
        let between = Distribution::Gamma { mean: 1.0, cv: ca };
        let [one, ..] = measured(&station(between, Distribution::Gamma { mean: rho, cv: cs }, 1), seed);
        let bound = (ca * ca + rho * rho * cs * cs) / (2.0 * (1.0 - rho));
        assert!(one.mean + one.half_width <= bound, "Kingman: {one:?} > {bound}");
        let service = Distribution::Gamma { mean: 4.0 * rho, cv: cs };
        let [four, ..] = measured(&station(between, service, 4), seed + 100);
        let smooth = if ca < 1.0 {
            (-2.0 * (1.0 - rho) * (1.0 - ca * ca).powi(2) / (3.0 * rho * (ca * ca + cs * cs))).exp()
        } else {
            1.0
        };
        let theory = smooth * erlang_c(4, 4.0 * rho) * rho / (1.0 - rho) * 0.5 * (ca * ca + cs * cs);
        let slack = four.half_width + theory / 6.0;
        assert!((four.mean - theory).abs() <= slack, "Allen-Cunneen: {four:?} against {theory}");
        seed += 1000;
    }
}

/// The recursion of Kiefer and Wolfowitz gives the same waits from the same draws without events: exactly, except for
/// rounding to picoseconds.
#[test]
fn waits_match_the_kiefer_wolfowitz_recursion() {
    for servers in [1u32, 3, 7] {
        let between = Distribution::Gamma { mean: 1.0, cv: 1.7 };
        let service = Distribution::LogNormal { mean: 0.9 * f64::from(servers), cv: 1.2 };
        let input = Input { customers: 20_000, warm_up: 0, ..station(between, service, servers) };
        let (mut arrivals, mut services) = (Stream::new(9, ARRIVALS, 0), Stream::new(9, SERVICES, 0));
        let mut work = vec![0.0f64; servers as usize];
        let mut wait = Tally::default();
        for customer in 0..input.customers {
            if customer > 0 {
                let gap = between.draw(&mut arrivals);
                work.iter_mut().for_each(|w| *w = (*w - gap).max(0.0));
            }
            work.sort_by(f64::total_cmp);
            wait.add(work[0]);
            work[0] += service.draw(&mut services);
        }
        let o = simulate(&input, 9, &Progress::new());
        assert!((o.wait.mean() / wait.mean() - 1.0).abs() < 1e-9, "{servers}");
        assert!((o.wait.max() / wait.max() - 1.0).abs() < 1e-9, "{servers}");
    }
}

#[test]
fn mean_queue_length_satisfies_littles_law() {
    let input = station(Distribution::Gamma { mean: 1.0, cv: 1.3 }, exponential(2.5), 3);
    let o = simulate(&input, 5, &Progress::new());
    // The arrival rate is 1 per second.
    assert!((o.waiting / o.wait.mean() - 1.0).abs() < 0.02, "{o:?}");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let input = station(exponential(1.0), exponential(0.9), 1);
    let run = |seed| simulate(&input, seed, &Progress::new());
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn common_random_numbers_distinguish_two_similar_servers() {
    let run = |service| {
        move |seed| simulate(&station(exponential(1.0), exponential(service), 1), seed, &Progress::new()).wait.mean()
    };
    let difference = compare(7, 6, 0.99, run(0.70), run(0.71));
    assert!(difference.mean - difference.half_width > 0.0, "{difference:?}");
}

#[test]
fn a_canceled_run_ends_early() {
    let progress = Progress::new();
    progress.cancel();
    let o = simulate(&station(exponential(1.0), exponential(0.5), 1), 1, &progress);
    assert!(o.events <= 1024);
}

#[test]
fn zero_customers_give_an_empty_result() {
    let none = Input { customers: 0, warm_up: 0, ..station(exponential(1.0), exponential(0.5), 1) };
    assert_eq!(simulate(&none, 1, &Progress::new()).events, 0);
}
