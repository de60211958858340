//! Equal requests that are all queued at the start run in waves: as many as fit start one after another, as fast as
//! their prompts are computed, end in the same order, and are replaced by the next wave. The last wave may be nearly
//! empty, but takes almost as long as a full one.

use super::input::ServingInput;
use super::machine::Machine;
use super::steady_state;
use super::step::StepTime;

/// Number of integration points over a batch that grows or shrinks.
const POINTS: usize = 4;

/// Mean of `step` while its argument changes linearly between two values.
fn mean_over_range(from: f64, to: f64, step: &dyn Fn(f64) -> StepTime) -> StepTime {
    (0..POINTS).fold(StepTime::default(), |sum, point| {
        let share = (point as f64 + 0.5) / POINTS as f64;
        sum.add(&step(from + (to - from) * share), 1.0 / POINTS as f64)
    })
}

/// Time until the last of `requests` requests has ended, if `places` can run concurrently.
pub fn run_time(m: &Machine, input: &ServingInput, requests: f64, places: f64) -> StepTime {
    let requests = requests.max(1.0);
    let steps = steady_state::decode_steps(input);
    let fresh = steady_state::fresh_prompt(input);
    let budget = steady_state::prompt_token_budget(m, input, places.min(requests));
    let max_sustained_batch = steady_state::max_sustained_batch(m, input, places.min(requests));
    let decoding = if input.chunked_prefill { steps / (steps + 1.0) } else { 0.0 };
    let batch = places.floor().min(max_sustained_batch).max(1.0);
    let chunk = (budget - batch * decoding).max(1.0).min(batch * fresh);
    // Steps in which the prompts of a wave are computed: mixed with decoding sequences while any decode, else separate.
    let begin = batch * fresh / chunk;
    let beside = if input.chunked_prefill { begin.min(steps) } else { 0.0 };
    let apart = begin - beside;
    let prompts = steady_state::prompts(input, chunk, batch.min(requests));
    let decode = |n: f64| {
        if n > 0.0 { m.decode_step(&steady_state::decode_tokens(input, n)) } else { StepTime::default() }
    };
    let mixed = |n: f64| m.step_with_intake(&steady_state::decode_tokens(input, n).with(&prompts));

    // If the number of waves is whole, the last one is full.
    let full = ((requests / batch).ceil() - 1.0).max(0.0);
    let rest = requests / batch - full;
    let last = batch * rest;
    let mut time = m.step_with_intake(&prompts).scaled((full + rest) * apart);
    // The first wave fills the batch.
    let (most, filled) = if full > 0.0 { (batch, 1.0) } else { (last, rest) };
    time = time.add(&mean_over_range(0.0, most, &mixed), filled * beside);
    let mut unmixed = steps - filled * beside;
    if full > 0.0 {
        time = time.add(&decode(batch), full * unmixed);
        // Each full wave is replaced by the next; the last full wave only in part.
        time = time.add(&mixed(batch), (full - 1.0 + rest) * beside);
        time = time.add(&mean_over_range(batch, last, &decode), (1.0 - rest) * beside);
        unmixed = steps - beside;
    }
    time.add(&decode(last), unmixed).add(&mean_over_range(last, 0.0, &decode), rest * beside)
}
