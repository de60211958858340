//! Batches of requests, and requests that are all queued at the start.

use super::front_end::FrontEnd;
use super::gaps::Gaps;
use super::input::ServingInput;
use super::latency::{FirstToken, Spread};
use super::machine::Machine;
use super::steady_state::Cycle;
use super::terms::{Rate, TokenTime};
use super::{ServingEstimate, cycle_tpot, metrics_at_rate};
use super::{emptying, itl, latency, preemption, steady_state, waves};
use crate::constants::Constants;
use atlas_core::math;

/// Estimates one batch of equal requests that are prefilled together and decoded to the longest output. A batch that
/// does not fit in memory runs in several turns. First tokens are emitted once all prompts are computed or, if
/// `as_computed`, as each prompt is.
pub(super) fn batch_run(
    input: &ServingInput,
    c: &Constants,
    m: &Machine,
    share: f64,
    limit: f64,
    as_computed: bool,
) -> ServingEstimate {
    // With fewer requests than replicas some replicas are idle: a share below 1 means one sequence on some of the
    // replicas.
    let batch = share.max(1.0);
    // Equal requests end together, so a batch that does not fit in memory runs in whole turns, of which the last one may
    // be smaller.
    let most = if batch <= limit { batch } else { limit.floor().max(1.0) };
    let turns = (batch / most + 1e-9).floor();
    let rest = (batch - turns * most).max(0.0);
    let rest = if rest > 1e-6 { rest } else { 0.0 };
    let first_of = |at_once: f64, prefill: f64| match as_computed {
        true => first_tokens_of_batch(input, m, at_once, prefill),
        false => FirstToken { prefill, ..FirstToken::default() },
    };
    let turn = |at_once: f64| {
        let prefill = steady_state::prefill(m, input, at_once);
        let (decode, life) = emptying::drain_unreplaced_batch(m, input, at_once);
        (prefill.add(&decode, 1.0), first_of(at_once, prefill.total()), prefill.total() + life)
    };
    let (full, mut first, mut end) = turn(most);
    let mut total = full.scaled(turns);
    if rest > 0.0 {
        let (time, last, last_end) = turn(rest);
        total = total.add(&time, 1.0);
        let mean = |full: f64, last: f64| (full * turns * most + last * rest) / batch;
        first.prefill = mean(first.prefill, last.prefill);
        first.burst = mean(first.burst, last.burst);
        end = mean(end, last_end);
    }
    // Each turn waits for those before.
    first.slot = full.total() * turns * (0.5 * (turns - 1.0) * most + rest) / batch;
    first.slot_even = first.slot;
    let seconds = total.total();
    let decoding = end - first.prefill - first.burst;
    let first = FirstToken { overhead: FrontEnd::of(input, c).admission_delay(), ..first };
    let token = TokenTime::SequenceDuration { seconds: decoding, before: 0.0, tokens: (input.osl - 1.0).max(1.0) };
    let tpot = (token, Spread::of(token.seconds(), 0.0, 0.0));
    let rate = Rate::turnover(share, seconds);
    metrics_at_rate(input, rate, most, total.scaled(1.0 / input.osl.max(1.0)), first, tpot)
}

/// First tokens of `batch` prompts that are computed one after another in `seconds`: each in its own step, after half of
/// the others on average.
pub(super) fn first_tokens_of_batch(input: &ServingInput, m: &Machine, batch: f64, seconds: f64) -> FirstToken {
    let tokens = steady_state::fresh_prompt(input) * batch;
    let steps = (tokens / steady_state::prompt_token_budget(m, input, batch)).max(1.0);
    // A prompt takes one step, or all steps of its own.
    let own = seconds / steps.min(batch.max(1.0));
    FirstToken { prefill: own, burst: 0.5 * (seconds - own), ..FirstToken::default() }
}

/// Estimates requests that are all queued at the start. Equal requests run in waves of the largest batch; others run as
/// a continuously refilled batch and a drain.
pub(super) fn burst(input: &ServingInput, c: &Constants, m: &Machine, requests: f64, limit: f64) -> ServingEstimate {
    let equal = input.longest_output() <= 1.0;
    let waves =
        |again: f64| Rate::Run { requests, seconds: waves::run_time(m, input, requests, limit).total() + again };
    if requests.is_finite() && requests <= limit {
        let mut out = batch_run(input, c, m, requests, limit, true);
        if equal {
            out.at_rate(waves(0.0));
        }
        return out;
    }
    let cycle = preemption::full_cycle(m, input, limit);
    let life = cycle.time.total();
    let mut rate = Rate::turnover(limit, life);
    let mut slot = 0.0;
    if requests.is_finite() {
        let runs = (requests / limit).max(1.0);
        let drained = || runs / (runs + drain(input, m, &cycle));
        rate = if equal {
            waves(requests * preemption::seconds_per_request(m, input, &cycle))
        } else {
            let drained = drained() / busiest_replica(input, requests);
            Rate::ClosedLoop { busy: 1.0, sequences: limit, seconds: life, between: 0.0, drained }
        };
        slot = 0.5 * (requests - limit).max(0.0) / rate.per_second();
    }
    let mut first = latency::closed_loop(input, c, m, &cycle, 0.0);
    let mut before = first.prefill + first.queue + first.burst;
    if requests.is_finite() {
        // The prompts of the first batch wait for each other. Equal requests end in the order in which they started, so
        // every later batch is as spread out as the first; others are replaced at random times.
        let begin = first_tokens_of_batch(input, m, limit, steady_state::prefill(m, input, limit).total());
        let full = (limit / requests).min(1.0);
        let together = if equal { 1.0 } else { full };
        let mean = |begin: f64, later: f64| together * begin + (1.0 - together) * later;
        (first.slot, first.slot_even) = (slot, slot);
        first.burst = mean(begin.burst, 0.0);
        first.queue = mean(0.0, first.queue);
        first.queue_even = mean(0.0, first.queue_even);
        first.prefill = mean(begin.prefill, first.prefill);
        // The prompts of the next batch delay the tokens of this one, except for the last batch.
        before = first.prefill + first.queue + full * begin.burst;
    }
    let tpot = cycle_tpot(input, &cycle, before);
    let mut out = metrics_at_rate(input, rate, limit, cycle.time.scaled(1.0 / input.osl.max(1.0)), first, tpot);
    out.itl = itl(input, &Gaps::closed(input, c, m, &cycle, true), &out.tpot);
    out
}

/// Work of the busiest replica relative to the mean, if each has `requests` requests with outputs of different lengths
/// from the start. The run ends with it.
fn busiest_replica(input: &ServingInput, requests: f64) -> f64 {
    // Of a length, (standard deviation / mean)^2.
    let variance = (2.0 * input.mean_age() - 1.0).max(0.0);
    1.0 + (variance / requests.max(1.0)).sqrt() * expected_maximum(f64::from(input.layout.dp))
}

/// Expected maximum of `n` normal variables, in standard deviations: the quantile (n - 0.375) / (n + 0.25) (Blom,
/// *Statistical Estimates and Transformed Beta-Variables*, 1958) in the approximation of Abramowitz and Stegun, 26.2.22.
fn expected_maximum(n: f64) -> f64 {
    if n <= 1.0 {
        return 0.0;
    }
    let t = (-2.0 * math::ln(0.625 / (n + 0.25))).sqrt();
    t - (2.30753 + 0.27061 * t) / (1.0 + t * (0.99229 + 0.04481 * t))
}

/// Number of cycles by which the drain at the end of a finite run exceeds the time of its work in a full batch.
pub(super) fn drain(input: &ServingInput, m: &Machine, cycle: &Cycle) -> f64 {
    let (tail, left) = emptying::drain(m, input, cycle.batch);
    (tail.total() / cycle.time.total().max(1e-12) - left).clamp(0.0, 3.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_maxima_match_tables_of_order_statistics() {
        for (n, expected) in [(1.0, 0.0), (2.0, 0.564), (4.0, 1.029), (8.0, 1.424), (16.0, 1.766), (64.0, 2.344)] {
            assert!((expected_maximum(n) - expected).abs() < 0.03, "{n}: {}", expected_maximum(n));
        }
    }
}
