//! Equal requests that all wait at once run in waves: as many as there are places begin one after another, as fast as
//! their prompts are computed, end in the same order, and make room for the next wave. The last wave may be hardly filled,
//! and takes nearly as long as a full one.

use super::input::ServingInput;
use super::machine::Machine;
use super::speculative;
use super::steady_state;
use super::step::StepTime;

/// Points of the mean over a batch that fills or empties.
const POINTS: usize = 4;

/// Mean of a step while what it carries changes evenly from one number to another.
fn between(from: f64, to: f64, step: &dyn Fn(f64) -> StepTime) -> StepTime {
    (0..POINTS).fold(StepTime::default(), |sum, point| {
        let share = (point as f64 + 0.5) / POINTS as f64;
        sum.add(&step(from + (to - from) * share), 1.0 / POINTS as f64)
    })
}

/// Time until the last of `requests` has ended, where `places` can run together.
pub fn time(m: &Machine, input: &ServingInput, requests: f64, places: f64) -> StepTime {
    let requests = requests.max(1.0);
    let steps = steady_state::decode_steps(input);
    let fresh = steady_state::fresh_prompt(input);
    let budget = steady_state::budget(m, input, places.min(requests));
    let sustained = steady_state::sustained(m, input, places.min(requests));
    let decoding = if input.chunked_prefill { steps / (steps + 1.0) } else { 0.0 };
    let batch = places.floor().min(sustained).max(1.0);
    let chunk = (budget - batch * decoding).max(1.0).min(batch * fresh);
    // Steps in which the prompts of a wave are computed: alongside those that decode as long as any do, or while these wait.
    let begin = batch * fresh / chunk;
    let beside = if input.chunked_prefill { begin.min(steps) } else { 0.0 };
    let apart = begin - beside;
    let prompts = steady_state::prompts(input, chunk, batch.min(requests));
    let factor = speculative::draft_factor(&input.speculation);
    let decode = |n: f64| {
        if n > 0.0 { m.step(&steady_state::decode_tokens(input, n)).scaled(factor) } else { StepTime::default() }
    };
    let mixed = |n: f64| m.step_taking_in(&steady_state::decode_tokens(input, n).with(&prompts));

    // A whole number of waves ends with a full one.
    let full = ((requests / batch).ceil() - 1.0).max(0.0);
    let rest = requests / batch - full;
    let last = batch * rest;
    let mut time = m.step_taking_in(&prompts).scaled((full + rest) * apart);
    // The first wave fills up.
    let (most, filled) = if full > 0.0 { (batch, 1.0) } else { (last, rest) };
    time = time.add(&between(0.0, most, &mixed), filled * beside);
    let mut unmixed = steps - filled * beside;
    if full > 0.0 {
        time = time.add(&decode(batch), full * unmixed);
        // Where one ends, the next begins; of the last full one, not all are replaced.
        time = time.add(&mixed(batch), (full - 1.0 + rest) * beside);
        time = time.add(&between(batch, last, &decode), (1.0 - rest) * beside);
        unmixed = steps - beside;
    }
    time.add(&decode(last), unmixed).add(&between(last, 0.0, &decode), rest * beside)
}
