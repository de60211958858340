//! Waiting in a G/G/m queue (Allen, *Probability, Statistics and Queueing Theory*, 1990, section 5.4; the
//! Allen-Cunneen approximation): W = C(m, rho) / (m mu - lambda) * (ca^2 + cs^2) / 2.
//!
//! Valid for rho < 1 in steady state; within about 10 % for 0.5 < rho < 0.95 and squared variabilities up to 2, worse
//! for bursty arrivals at low load. At or above capacity there is no steady state: the wait is infinite.

use atlas_core::math;

/// Mean wait of a request before service, seconds. `rate` arrivals per second, `service` mean service time,
/// `servers` servers, `variability` = (ca^2 + cs^2) / 2.
pub fn mean_wait(rate: f64, service: f64, servers: f64, variability: f64) -> f64 {
    let m = servers.max(1.0);
    let rho = rate * service / m;
    if rate <= 0.0 || service <= 0.0 {
        return 0.0;
    }
    if rho >= 1.0 {
        return f64::INFINITY;
    }
    busy_probability(rho, m) * service / (m * (1.0 - rho)) * variability.max(0.0)
}

/// Mean wait at one server that `others` further customers visit, each `away` seconds after it was served: a closed
/// network, in which an arriving customer sees the others as if it did not exist (arrival theorem; Reiser and Lavenberg,
/// JACM 27 (1980)). Their utilization rho follows from rho (away + service + wait(rho)) = others x service, with the
/// wait of [`mean_wait`]. Unlike that of an open queue, the wait is bounded: if the server is saturated, it is
/// others x service - away - service.
pub fn closed_wait(others: f64, service: f64, away: f64, variability: f64) -> f64 {
    if others <= 0.0 || service <= 0.0 {
        return 0.0;
    }
    let cycle = away / service + 1.0;
    let (spare, sum) = (cycle - others, cycle + others);
    let rho = 2.0 * others / (sum + (spare * spare + 4.0 * variability * others).sqrt());
    service * variability * rho / (1.0 - rho).max(1e-9)
}

/// Mean time from the arrival of a job to its end, if each of `servers` servers takes all jobs that have arrived into its next
/// step, which takes `fixed` + n x `each` seconds for n jobs: batches with gated service. `rate` jobs per second arrive at
/// random; `rate` x `each` < `servers`.
///
/// Of steps of length L, a share `p = E[exp(-rate L)]` is followed by none, and by a step with one job after an idle time.
/// So `E[n] = rate E[L] + p` and `E[n (n - 1)] = rate^2 E[L^2]`. A job meets long steps more often, waits for the rest of one,
/// and shares the next one with all that arrived in it. With several servers, it waits only if all of them are busy.
pub fn time_in_shared_steps(rate: f64, fixed: f64, each: f64, servers: f64) -> f64 {
    let alone = fixed + each;
    let rate = rate / servers.max(1.0);
    let load = rate * each;
    if rate <= 0.0 || alone <= 0.0 {
        return alone;
    }
    if load >= 1.0 {
        return f64::INFINITY;
    }
    // Newton's method from below; the function is concave.
    let mut mean = alone;
    for _ in 0..6 {
        let none = math::exp(-rate * mean);
        mean += (fixed + each * (rate * mean + none) - mean) / (1.0 - load * (1.0 - none));
    }
    let none = math::exp(-rate * mean);
    let jobs = rate * mean + none;
    let squared = (fixed * fixed + (2.0 * fixed + each) * each * jobs) / (1.0 - load * load);
    let met = squared / mean;
    let busy = busy_probability(rate * mean / jobs, servers);
    alone + busy * (0.5 * met + load * met)
}

/// Probability that all servers are busy, Erlang's C in the expansion of Janssen, van Leeuwaarden and Zwart (*Operations
/// Research* 59 (2011), theorem 3), which is within 4 % for any number of servers, also a fractional one. Approximations
/// for a few servers are wrong for the hundreds of places of a batch, of which one is almost always free.
pub fn busy_probability(rho: f64, servers: f64) -> f64 {
    if rho <= 0.0 {
        return 0.0;
    }
    if rho >= 1.0 {
        return 1.0;
    }
    if servers <= 1.0 {
        return rho;
    }
    let m = servers;
    let apart = (-2.0 * m * (1.0 - rho + math::ln(rho))).max(0.0).sqrt();
    let density = math::exp(-0.5 * apart * apart) / (2.0 * std::f64::consts::PI).sqrt();
    let ratio = normal_share_below(apart, density) / density.max(f64::MIN_POSITIVE);
    1.0 / (rho + (1.0 - rho) * (m.sqrt() * ratio + 2.0 / 3.0))
}

/// Share of a standard normal distribution below `x` >= 0, at which it has the given density (Abramowitz and Stegun,
/// 26.2.16).
fn normal_share_below(x: f64, density: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.33267 * x);
    1.0 - density * t * (0.4361836 + t * (0.9372980 * t - 0.1201676))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn mean_wait_matches_m_m_1_for_one_server() {
        let w = mean_wait(0.8, 1.0, 1.0, 1.0);
        assert!((w - 0.8 / 0.2).abs() < 1e-9, "{w}");
    }

    #[test]
    fn all_servers_are_busy_with_the_probability_of_erlang_c() {
        for servers in [1u32, 2, 8, 64, 463] {
            for rho in [0.3, 0.5, 0.69, 0.71, 0.735, 0.8, 0.9, 0.99] {
                let load = f64::from(servers) * rho;
                let lost = (1..=servers).fold(1.0, |lost, n| load * lost / (f64::from(n) + load * lost));
                let exact = lost / (1.0 - rho * (1.0 - lost));
                let found = busy_probability(rho, servers.into());
                assert!((found - exact).abs() < 0.04 * exact + 1e-9, "{servers}, {rho}: {found} {exact}");
            }
        }
    }

    #[test]
    fn closed_wait_is_that_of_an_open_queue_for_many_rare_customers_and_bounded_if_saturated() {
        let open = mean_wait(0.6, 1.0, 1.0, 0.5);
        let closed = closed_wait(600_000.0, 1.0, 1e6, 0.5);
        assert!((closed / open - 1.0).abs() < 1e-3, "{closed} {open}");
        let closed = closed_wait(1000.0, 1.0, 100.0, 0.5);
        assert!((closed / (1000.0 - 100.0 - 1.0) - 1.0).abs() < 1e-2, "{closed}");
        assert_eq!(closed_wait(0.0, 1.0, 100.0, 0.5), 0.0);
    }

    #[test]
    fn jobs_in_shared_steps_take_as_long_as_if_each_is_followed() {
        for (fixed, each) in [(1.0, 0.02), (1.0, 0.3), (0.5, 0.5), (0.2, 0.8)] {
            for rate in [0.05, 0.3, 0.6, 0.9] {
                let (mut state, mut clock, mut free, mut sum, mut jobs) = (1u64, 0.0, 0.0, 0.0, 0.0);
                let mut waiting: Vec<f64> = Vec::new();
                let mut begin = |waiting: &mut Vec<f64>, at: f64| {
                    let end = at + fixed + each * waiting.len() as f64;
                    sum += waiting.drain(..).map(|arrival| end - arrival).sum::<f64>();
                    end
                };
                for _ in 0..40_000 {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    clock -= (1.0 - (state >> 11) as f64 / (1u64 << 53) as f64).ln() / rate;
                    while free < clock && !waiting.is_empty() {
                        let at = f64::max(free, waiting[0]);
                        free = begin(&mut waiting, at);
                    }
                    waiting.push(clock);
                    jobs += 1.0;
                }
                let (found, exact) = (time_in_shared_steps(rate, fixed, each, 1.0), sum / jobs);
                assert!((found / exact - 1.0).abs() < 0.06, "{fixed} {each} {rate}: {found} {exact}");
            }
        }
    }

    #[test]
    fn the_wait_grows_with_load_and_is_infinite_at_capacity() {
        let mut last = 0.0;
        for rate in [0.5, 1.0, 2.0, 3.0, 3.9] {
            let w = mean_wait(rate, 1.0, 4.0, 1.0);
            assert!(w > last);
            last = w;
        }
        assert!(mean_wait(4.0, 1.0, 4.0, 1.0).is_infinite());
    }
}
