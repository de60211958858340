//! Batches of requests, and requests that are all queued at the start.

use super::front_end::FrontEnd;
use super::input::ServingInput;
use super::latency::{FirstToken, Spread};
use super::machine::Machine;
use super::steady_state::Cycle;
use super::terms::{Rate, TokenTime};
use super::{ServingEstimate, cycle_itl, cycle_tpot, metrics_at_rate};
use super::{emptying, latency, speculative, steady_state, waves};
use crate::constants::Constants;

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
    // Equal requests end together, so a batch that does not fit in memory runs in whole turns.
    let turns = (batch / limit).max(1.0).ceil();
    let at_once = batch / turns;
    let prefill = steady_state::prefill(m, input, at_once);
    let (decode, life) = emptying::drain_unreplaced_batch(m, input, at_once);
    let total = prefill.add(&decode, 1.0).scaled(turns);
    let seconds = total.total();
    let first = if as_computed {
        first_tokens_of_batch(input, m, at_once, prefill.total())
    } else {
        FirstToken { prefill: prefill.total(), ..FirstToken::default() }
    };
    let late = prefill.total() - first.total();
    let first = FirstToken { overhead: FrontEnd::of(input, c).admission_delay(), ..first };
    let token = TokenTime::SequenceDuration { seconds: life + late, before: 0.0, tokens: (input.osl - 1.0).max(1.0) };
    let tpot = (token, Spread::of(token.seconds(), 0.0, 0.0));
    let rate = Rate::turnover(share, seconds);
    metrics_at_rate(input, rate, at_once, total.scaled(1.0 / input.osl.max(1.0)), first, tpot)
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
    let waves = || Rate::Run { requests, seconds: waves::run_time(m, input, requests, limit).total() };
    if requests.is_finite() && requests <= limit {
        let mut out = batch_run(input, c, m, requests, limit, true);
        if equal {
            out.at_rate(waves());
        }
        return out;
    }
    let cycle = steady_state::cycle(m, input, limit);
    let life = cycle.time.total();
    let mut rate = Rate::turnover(limit, life);
    let mut slot = 0.0;
    if requests.is_finite() {
        let runs = (requests / limit).max(1.0);
        let drained = || runs / (runs + drain(input, m, &cycle));
        rate = if equal {
            waves()
        } else {
            Rate::ClosedLoop { busy: 1.0, sequences: limit, seconds: life, between: 0.0, drained: drained() }
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
        first.slot = slot;
        first.burst = mean(begin.burst, 0.0);
        first.queue = mean(0.0, first.queue);
        first.prefill = mean(begin.prefill, first.prefill);
        // The prompts of the next batch delay the tokens of this one, except for the last batch.
        before = first.prefill + first.queue + full * begin.burst;
    }
    let tpot = cycle_tpot(input, &cycle, before);
    let mut out = metrics_at_rate(input, rate, limit, cycle.time.scaled(1.0 / input.osl.max(1.0)), first, tpot);
    out.itl = cycle_itl(&cycle, speculative::tokens_per_step(&input.speculation));
    out
}

/// Number of cycles by which the drain at the end of a finite run exceeds the time of its work in a full batch.
pub(super) fn drain(input: &ServingInput, m: &Machine, cycle: &Cycle) -> f64 {
    let (tail, left) = emptying::drain(m, input, cycle.batch);
    (tail.total() / cycle.time.total().max(1e-12) - left).clamp(0.0, 3.0)
}
