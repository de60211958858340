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

/// Probability that all servers are busy, Allen-Cunneen's closed approximation of Erlang's C:
/// (rho^m + rho) / 2 above 0.7, rho^((m + 1) / 2) below.
pub fn busy_probability(rho: f64, servers: f64) -> f64 {
    if rho > 0.7 { 0.5 * (math::powf(rho, servers) + rho) } else { math::powf(rho.max(0.0), 0.5 * (servers + 1.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_wait_matches_m_m_1_for_one_server() {
        let w = mean_wait(0.8, 1.0, 1.0, 1.0);
        assert!((w - 0.8 / 0.2).abs() < 1e-9, "{w}");
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
