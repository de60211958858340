//! A constant number of concurrent requests.

use super::backlog::drain;
use super::front_end::FrontEnd;
use super::gaps::Gaps;
use super::input::ServingInput;
use super::machine::Machine;
use super::terms::Rate;
use super::{ServingEstimate, cycle_tpot, metrics_at_rate};
use super::{bursts, itl, latency, preemption, steady_state, waves};
use crate::constants::Constants;
use atlas_core::count::Count;

/// Estimates a constant number of concurrent requests, in which finished requests are replaced immediately.
pub(super) fn closed(
    input: &ServingInput,
    c: &Constants,
    m: &Machine,
    concurrency: f64,
    requests: f64,
    limit: f64,
) -> ServingEstimate {
    let replicas = input.layout.dp.max(Count::ONE);
    let offered = (concurrency / replicas).max(concurrency.min(1.0)).max(1e-9);
    // With fewer requests than replicas some replicas are idle.
    let busy = (concurrency / replicas / offered).min(1.0);
    // Requests that wait to be admitted as a group do not run meanwhile.
    let decoding = steady_state::decode_steps(input).max(1.0);
    let gathered = decoding / (decoding + latency::gathering(input, offered.min(limit)));
    let wanted = (gathered * offered).max(offered.min(1.0));
    let batch = wanted.min(limit);
    // Only a full batch has a queue. Otherwise the difference is 0 but for rounding errors.
    let waiting = if wanted > limit { (offered - limit / gathered).max(0.0) } else { 0.0 };
    let front = FrontEnd::of(input, c);
    let mut cycle = match waiting > 0.0 {
        true => preemption::full_cycle(m, input, batch),
        false => steady_state::cycle(m, input, batch),
    };
    let mut life = cycle.time.total();
    let (mut running, mut in_front) = (batch, 0.0);
    let limited = batch > (life + front.admission_delay()) * front.max_request_rate();
    if limited {
        // The front end is the bottleneck of the closed network: as many sequences run as it admits, and the rest of the
        // requests wait in it (Little's law; Denning and Buzen, Computing Surveys 10 (1978)).
        let most = front.max_request_rate();
        running = steady_state::decoding_at_rate(m, input, most, batch, life);
        cycle = steady_state::cycle(m, input, running.max(1.0).min(batch));
        life = cycle.time.total();
        in_front = (offered / most - life - front.admission_delay()).max(0.0);
    }
    let waiting = if limited { 0.0 } else { waiting };
    let mut first = latency::closed_loop(input, c, m, &cycle, waiting);
    first.overhead += in_front;
    if requests.is_finite() {
        // The first requests find all places free. The others of the first turn wait for one wave, two and so on.
        let begin = concurrency / requests;
        let beyond = 0.5 * waiting / offered * (first.slot + first.slot.min(life));
        first.slot = begin * beyond + (1.0 - begin) * first.slot;
    }
    if input.osl <= 1.0 {
        // Requests whose prompts end in the same step are replaced together, and wait for all others.
        (first.queue, first.queue_even, first.burst) = (0.0, 0.0, (life - first.prefill).max(0.0));
    }
    let apart = if waiting > 0.0 { 0.0 } else { front.admission_delay() };
    let share = requests / (replicas * busy);
    let turns = (share / batch).max(1.0);
    let in_step = bursts::stays_in_step(input);
    // At the end of the run the batch shrinks, unless all requests end together.
    let drained = if requests.is_finite() && !in_step { turns / (turns + drain(input, m, &cycle)) } else { 1.0 };
    let rate = match (limited, in_step) {
        (true, _) => Rate::FrontEnd { busy, most: front.max_request_rate(), drained },
        (false, false) => Rate::ClosedLoop { busy, sequences: batch, seconds: life, between: apart, drained },
        (false, true) => {
            let again = if waiting > 0.0 { preemption::seconds_per_request(m, input, &cycle) } else { 0.0 };
            let seconds = waves::run_time(m, input, share, batch).total() + share * again + turns * apart;
            Rate::Run { requests: requests / replicas, seconds }
        }
    };
    let tpot = cycle_tpot(input, &cycle, first.prefill + first.queue + first.burst);
    let mut out = metrics_at_rate(input, rate, running, cycle.time.scaled(1.0 / input.osl.max(1.0)), first, tpot);
    out.itl = itl(input, &Gaps::closed(input, c, m, &cycle, waiting > 0.0), &out.tpot);
    out
}
