//! Requests that arrive at a given rate.

use super::backlog::burst;
use super::closed::closed;
use super::front_end::FrontEnd;
use super::gaps::Gaps;
use super::input::ServingInput;
use super::latency::Spread;
use super::machine::Machine;
use super::spread::{NORMAL_P95, NORMAL_P99};
use super::steady_state::{Cycle, decoding_at_rate, undisturbed_decoding};
use super::terms::{Rate, TokenTime};
use super::{Bottleneck, ServingEstimate, metrics_at_rate};
use super::{itl, latency, preemption, queue, steady_state};
use crate::constants::Constants;
use atlas_core::count::Count;
use atlas_core::math;

/// Estimates open arrivals with a limit on concurrent requests. The client delays the excess, so that a load beyond the
/// capacity is served as in a closed loop. Delayed requests have not been sent: their delay does not count toward TTFT.
pub(super) fn client_limited(
    input: &ServingInput,
    c: &Constants,
    m: &Machine,
    rate: f64,
    limit: f64,
) -> ServingEstimate {
    let (most, replicas) = (input.max_in_flight, input.layout.dp.max(Count::ONE));
    let mut full = closed(input, c, m, most, input.arrivals, limit);
    if rate >= full.requests_per_sec {
        full.capacity_requests_per_sec = full.requests_per_sec;
        return full;
    }
    let share = (most / replicas).max(1.0);
    let mut out = open(input, c, m, rate, limit.min(share));
    out.capacity_requests_per_sec = full.requests_per_sec;
    if share <= limit {
        // The limit on concurrent requests is not above the batch limit, so no request waits for a slot.
        out.first_token.slot = 0.0;
        out.ttft = out.first_token.spread();
        out.e2e = latency::end_to_end(input.output_lengths(), out.ttft, out.tpot);
    }
    out
}

/// Estimates open arrivals in a run that ends with its last response. The batch is at most the number of requests.
pub(super) fn open(input: &ServingInput, c: &Constants, m: &Machine, rate: f64, limit: f64) -> ServingEstimate {
    let arrivals = input.arrivals / input.layout.dp.max(Count::ONE);
    if !arrivals.is_finite() {
        return service(input, c, m, rate, limit);
    }
    let mut out = service(input, c, m, rate, limit.min(arrivals.max(1.0)));
    let mut rest = out.e2e.mean;
    if !rest.is_finite() {
        // Requests arrive faster than they can be served: equivalent to a burst.
        out = burst(input, c, m, arrivals.max(1.0), limit);
        rest = (arrivals / out.requests_per_sec.max(1e-12) - arrivals / rate).max(0.0);
    }
    out.at_rate(Rate::Run { requests: arrivals, seconds: arrivals / rate + rest });
    out
}

/// Estimates open arrivals without an end. The batch follows from Little's law. At or above the capacity, the estimate
/// is that of an endless backlog.
fn service(input: &ServingInput, c: &Constants, m: &Machine, rate: f64, limit: f64) -> ServingEstimate {
    let full = preemption::full_cycle(m, input, limit);
    let most = (limit / full.time.total().max(1e-12)).min(FrontEnd::of(input, c).max_request_rate());
    if rate >= most {
        let mut out = burst(input, c, m, f64::INFINITY, limit);
        out.ttft = Spread::of(f64::INFINITY, 0.0, 0.0);
        out.e2e = out.ttft;
        out.first_token.slot = f64::INFINITY;
        return out;
    }
    let decoding = decoding_at_rate(m, input, rate, limit, full.time.total());
    let cycle = steady_state::cycle_at_rate(m, input, decoding.max(1.0), rate);
    // Random arrivals of prompts share fewer steps than those of a full batch in front of which requests wait.
    let cycle = if rate * cycle.time.total() < limit { cycle } else { full };
    let mut first = latency::closed_loop(input, c, m, &cycle, 0.0);
    first.burst = 0.0;
    let variability = routed_variability(input, c);
    let parallel = steady_state::prompts_in_parallel(m, input);
    // A step takes in the prompts that arrived during the one before: step = decoding + rate x step x prefill.
    let idle = (1.0 - rate * cycle.prefill).max(1e-6);
    let step = cycle.decode_step / idle;
    let (wait, boundary) = if parallel > 1.0 {
        // The next step takes in all prompts that have arrived, unless there are more than are computed in parallel.
        let prompts = ((cycle.mixed_step - cycle.decode_step).max(0.0) / parallel).min(cycle.prefill);
        let wait = queue::mean_wait(rate, prompts, 1.0, variability);
        (wait, steps_ahead(input, &cycle, rate, 1.0 - idle, c.boundary_steps))
    } else {
        (queue::mean_wait(rate, cycle.prefill, 1.0, variability), c.boundary_steps * step.min(cycle.mixed_step))
    };
    (first.queue, first.queue_even) = (wait + boundary * decoding.min(1.0), 0.0);
    let life = cycle.time.total();
    first.slot = queue::mean_wait(rate, life, limit, variability);
    first.slot_waits = queue::busy_probability(rate * life / limit.max(1.0), limit);
    // Prompts that arrived while this one waited and was computed follow at once. Least-loaded routing spaces them out
    // as an Erlang process, in which a replica gets (1 - 1 / replicas) / 2 fewer of them (Cox, *Renewal Theory*, 4.2).
    let spacing = 0.5 * (1.0 - 1.0 / input.layout.dp.max(Count::ONE));
    let behind = (rate * (wait + first.prefill) - spacing).max(0.0);
    // Arrivals that find the batch full do not interrupt it.
    let decoding_alone = undisturbed_decoding(&cycle);
    let most_behind = (limit.max(1.0) / rate * idle - decoding_alone).max(0.0) / cycle.prefill.max(1e-12);
    let behind = behind.min(most_behind);
    let tokens = (input.osl - 1.0).max(1.0);
    let behind_seconds = behind * cycle.prefill;
    let interruptions = (decoding_alone + behind_seconds) / idle - decoding_alone;
    let longest = longest_interruptions(input, m, &cycle);
    // The mean of an exponential time that ends at the longest one.
    let before_end = longest / interruptions.max(1e-12);
    let before_end = before_end * (1.0 - math::exp(-1.0 / before_end.max(1e-12)));
    let token = TokenTime::Interrupted {
        decoding: decoding_alone,
        behind: behind_seconds,
        interrupted: 1.0 - idle,
        before_end: if longest.is_finite() && before_end < 1.0 - 1e-9 { before_end } else { 1.0 },
        tokens,
    };
    let mean = token.seconds();
    let deviation = decoding_deviation(&cycle, rate, behind, wait) / tokens;
    let slowest = ((decoding_alone + longest) / tokens).max(mean);
    let at = |scale: f64, deviations: f64| (scale * mean).max(mean + deviations * deviation).min(slowest);
    let tpot = (
        token,
        Spread { mean, p50: mean, p95: at(c.tpot_least_p95, NORMAL_P95), p99: at(c.tpot_least_p99, NORMAL_P99) },
    );
    let batch = (rate * (mean * (input.osl - 1.0).max(0.0) + first.prefill)).min(limit);
    let time = cycle.time.scaled(1.0 / input.osl.max(1.0));
    let mut out = metrics_at_rate(input, Rate::Arrivals(rate), batch, time, first, tpot);
    out.itl = itl(input, &Gaps::open(input, m, &cycle, rate, limit), &out.tpot);
    out.capacity_requests_per_sec = most;
    out.bottleneck = Bottleneck::Load;
    out
}

/// Longest time by which prompts delay an output: each step of a sequence computes at most the prompts of its token budget.
fn longest_interruptions(input: &ServingInput, m: &Machine, cycle: &Cycle) -> f64 {
    if !input.chunked_prefill {
        return f64::INFINITY;
    }
    steady_state::decode_steps(input) * steady_state::prompts_beside(m, input, cycle.batch) * cycle.prefill
}

/// Time until a request is taken in if `boundary` steps are ahead of it, half of which is the step in flight. Prompts
/// take a share `busy` of the time. A random arrival meets long steps more often (Cox, *Renewal Theory*, section 5.2),
/// and long steps are followed by steps with prompts more often.
fn steps_ahead(input: &ServingInput, cycle: &Cycle, rate: f64, busy: f64, boundary: f64) -> f64 {
    let (decode, more) = (cycle.decode_step, (cycle.mixed_step - cycle.decode_step).max(1e-12));
    // Steps with prompts per step that generates tokens, and their length.
    let each = busy / (1.0 - busy) * decode / more;
    let (share, prompts) = match input.chunked_prefill {
        true => (each.min(1.0), cycle.mixed_step),
        false => (each / (1.0 + each), more),
    };
    let mean = share * prompts + (1.0 - share) * decode;
    let in_flight = (share * prompts * prompts + (1.0 - share) * decode * decode) / (2.0 * mean);
    let found_prompts = share * prompts / mean;
    let arrived = |seconds: f64| 1.0 - math::exp(-rate * seconds);
    let followed = found_prompts * arrived(prompts) + (1.0 - found_prompts) * arrived(decode);
    in_flight + (boundary - 0.5) * (decode + followed * (prompts - decode))
}

/// Variability of arrivals and service times at a replica. Least-loaded routing over n replicas gives each of them about
/// every n-th request, whose gaps are an Erlang distribution with ca^2 = 1 / n.
fn routed_variability(input: &ServingInput, c: &Constants) -> f64 {
    (c.variability - 0.5 * (1.0 - 1.0 / input.layout.dp.max(Count::ONE))).max(0.0)
}

/// Standard deviation of the seconds of [`TokenTime::Interrupted`]: each interruption is a busy period, with second moment
/// prefill^2 / (1 - rate x prefill)^3 if all prompts are equally long (Takács, *Introduction to the Theory of Queues*,
/// 1962, chapter 1). The number of prompts behind varies with the wait, which is about exponential.
fn decoding_deviation(cycle: &Cycle, rate: f64, behind: f64, wait: f64) -> f64 {
    let idle = (1.0 - rate * cycle.prefill).max(1e-6);
    let interruptions = rate * undisturbed_decoding(cycle) + behind;
    let waited = rate * wait * cycle.prefill / idle;
    (interruptions * cycle.prefill * cycle.prefill / (idle * idle * idle) + waited * waited).sqrt()
}
