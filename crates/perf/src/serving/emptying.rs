//! How a batch drains: sequences end one by one, the longest last, and the remaining ones decode in ever smaller steps.
//!
//! Output lengths are described by their mean and their maximum, as in the simulation (`Distribution::Upto`). With a
//! maximum of s means, they are uniform around the mean up to s = 2. Beyond that, their survivor function is
//! (1 - t / s)^(s - 1), whose mean is 1. Time t is in units of the mean output length.

use super::input::ServingInput;
use super::machine::Machine;
use super::steady_state;
use super::step::StepTime;
use atlas_core::math;

/// Number of integration points over the drain.
const POINTS: usize = 12;

/// Share of outputs longer than `t`.
fn survival_probability(longest: f64, t: f64) -> f64 {
    if longest > 2.0 {
        return math::powf((1.0 - t / longest).max(0.0), longest - 1.0);
    }
    let half = longest - 1.0;
    if half > 0.0 { ((1.0 + half - t) / (2.0 * half)).clamp(0.0, 1.0) } else { f64::from(u8::from(t < 1.0)) }
}

/// Share of running sequences, observed at a random time, that run for at least `t` more: the integral of
/// [`survival_probability`] beyond t.
fn residual_survival_probability(longest: f64, t: f64) -> f64 {
    if longest > 2.0 {
        return math::powf((1.0 - t / longest).max(0.0), longest);
    }
    let half = longest - 1.0;
    if t < 1.0 - half { 1.0 - t } else { (longest - t).max(0.0).powi(2) / (4.0 * half).max(1e-12) }
}

/// Integrates the step time until all sequences have ended. `running` returns the mean number of sequences at time t
/// and the probability that there are any. Also returns the time that a mean sequence of an initial `batch` runs.
fn integrate_drain(
    m: &Machine,
    input: &ServingInput,
    (longest, batch): (f64, f64),
    running: impl Fn(f64) -> (f64, f64),
) -> (StepTime, f64) {
    let (mut all, mut life) = (StepTime::default(), 0.0);
    for point in 0..POINTS {
        // Denser at the start, where most sequences end.
        let u = (point as f64 + 0.5) / POINTS as f64;
        let weight = longest * 2.0 * u / POINTS as f64;
        let (left, any) = running(longest * u * u);
        // As long as any sequence runs, the batch is at least one.
        let step = m.decode_step(&steady_state::decode_tokens(input, (left / any.max(1e-12)).max(1.0)));
        all = all.add(&step, weight * any);
        life += weight * step.total() * left / batch.max(1e-12);
    }
    let steps = steady_state::decode_steps(input);
    (all.scaled(steps), life * steps)
}

/// Decode time of `batch` sequences that start together and are not replaced, until the last one ends. Also returns the
/// decode time of a mean sequence, s.
pub fn drain_unreplaced_batch(m: &Machine, input: &ServingInput, batch: f64) -> (StepTime, f64) {
    let longest = input.longest_output();
    if longest <= 1.0 || batch <= 1.0 {
        let time = m.decode_step(&steady_state::decode_tokens(input, batch)).scaled(steady_state::decode_steps(input));
        return (time, time.total());
    }
    let running = |t| {
        let share = survival_probability(longest, t);
        (batch * share, 1.0 - math::powf(1.0 - share, batch))
    };
    integrate_drain(m, input, (longest, batch), running)
}

/// Decode time at the end of a run, when `batch` running sequences are no longer replaced and the last one has just
/// started. Also returns the output tokens that each of them still had to generate on average, in units of the mean
/// output length.
pub fn drain(m: &Machine, input: &ServingInput, batch: f64) -> (StepTime, f64) {
    let longest = input.longest_output();
    let others = (batch - 1.0).max(0.0);
    let running = |t| {
        let (fresh, share) = (survival_probability(longest, t), residual_survival_probability(longest, t));
        (fresh + others * share, 1.0 - (1.0 - fresh) * math::powf((1.0 - share).max(0.0), others))
    };
    let (time, _) = integrate_drain(m, input, (longest, batch), running);
    (time, (1.0 + others * input.mean_age()) / batch.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constants::Constants;

    const LONGEST: [f64; 6] = [1.0, 1.2, 1.5, 2.0, 3.0, 10.0];

    fn case(osl_spread: f64) -> (Machine<'static>, ServingInput) {
        let input = ServingInput { osl_spread, ..ServingInput::default() };
        (Machine::new(&input, &input.layout, &Constants::default()), input)
    }

    /// Integral over the time in which any sequence runs.
    fn integral(longest: f64, of: impl Fn(f64) -> f64) -> f64 {
        let points = 100_000;
        (0..points).map(|i| of(longest * (f64::from(i) + 0.5) / f64::from(points))).sum::<f64>() * longest
            / f64::from(points)
    }

    #[test]
    fn output_survival_integrates_to_one_and_remainder_to_mean_age() {
        for longest in LONGEST {
            let mean = integral(longest, |t| survival_probability(longest, t));
            let left = integral(longest, |t| residual_survival_probability(longest, t));
            let (_, input) = case(longest);
            assert!((mean - 1.0).abs() < 1e-4, "{longest}: {mean}");
            assert!((left - input.mean_age()).abs() < 1e-4, "{longest}: {left} {}", input.mean_age());
        }
    }

    #[test]
    fn equal_output_lengths_finish_together() {
        let (m, input) = case(1.0);
        let (time, life) = drain_unreplaced_batch(&m, &input, 64.0);
        let steps = m.step(&steady_state::decode_tokens(&input, 64.0)).total() * steady_state::decode_steps(&input);
        assert!((time.total() / steps - 1.0).abs() < 1e-12 && life == time.total(), "{} {steps}", time.total());
    }

    #[test]
    fn uneven_batch_takes_between_mean_and_longest_output_time() {
        let (m, input) = case(1.0);
        let equal = drain_unreplaced_batch(&m, &input, 256.0).0.total();
        let mut last = equal;
        for longest in [1.2, 1.5, 2.0, 3.0] {
            let (m, input) = case(longest);
            let (time, life) = drain_unreplaced_batch(&m, &input, 256.0);
            assert!(time.total() > last && time.total() < longest * equal, "{longest}: {} {equal}", time.total());
            assert!(life < time.total(), "{longest}");
            last = time.total();
        }
    }

    #[test]
    fn one_stream_has_no_drain() {
        for longest in LONGEST {
            let (m, input) = case(longest);
            let (time, left) = drain(&m, &input, 1.0);
            let whole = m.step(&steady_state::decode_tokens(&input, 1.0)).total() * steady_state::decode_steps(&input);
            assert_eq!(left, 1.0);
            assert!((time.total() / whole - 1.0).abs() < 0.01, "{longest}: {} {whole}", time.total() / whole);
        }
    }

    #[test]
    fn mean_remaining_share_in_drain_of_100_equal_outputs_is_0_505() {
        let (m, input) = case(1.0);
        let (_, left) = drain(&m, &input, 100.0);
        assert!((left - 0.505).abs() < 1e-12, "{left}");
    }
}
