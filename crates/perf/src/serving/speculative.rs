//! Speculative decoding: tokens per step and the cost of drafting (Leviathan et al., arXiv 2211.17192, eq. 1). The
//! acceptance probability may fall from position to position.

use super::input::Speculation;
use atlas_core::math;

/// Expected number of tokens per verification step: (1 - a^(k+1)) / (1 - a) with the same acceptance at all positions.
/// Otherwise, 1 plus the sum over all positions of the probability that the draft is accepted up to there.
pub fn tokens_per_step(s: &Speculation) -> f64 {
    if s.tokens <= 0.0 {
        return 1.0;
    }
    let a = s.acceptance.clamp(0.0, 0.999);
    if s.decline <= 0.0 {
        return (1.0 - math::powf(a, s.tokens + 1.0)) / (1.0 - a);
    }
    let (mut all, mut position, mut reached) = (1.0, a, 1.0);
    for _ in 0..s.tokens.get() {
        reached *= position;
        all += reached;
        if reached <= 1e-9 {
            break;
        }
        position *= 1.0 - s.decline.min(1.0);
    }
    all
}

/// Number of accepted positions for a random number `u` from (0, 1): those that are reached with a probability above
/// `u`.
pub fn accepted_drafts(s: &Speculation, u: f64) -> u32 {
    let a = s.acceptance.clamp(0.0, 1.0);
    if a >= 1.0 && s.decline <= 0.0 {
        return s.tokens.get();
    }
    if s.decline <= 0.0 {
        return (math::ln(u) / math::ln(a.max(1e-12))) as u32;
    }
    let (mut count, mut position, mut reached) = (0, a, a);
    while reached > u && f64::from(count) < s.tokens {
        count += 1;
        position *= 1.0 - s.decline.min(1.0);
        reached *= position;
    }
    count
}

impl Speculation {
    /// Whether a deployment whose batch is `batch` when it drafts does not draft, since the batch is too large.
    #[must_use]
    pub fn exceeds_batch_limit(&self, batch: f64) -> bool {
        self.tokens > 0.0 && self.max_batch.is_some_and(|most| batch > most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atlas_core::count::Count;

    #[test]
    fn tokens_per_step_rise_with_acceptance_up_to_drafts_plus_one() {
        let mut last = 0.0;
        for a in [0.0, 0.3, 0.6, 0.9, 1.0] {
            let y = tokens_per_step(&Speculation { tokens: Count::new(3), acceptance: a, ..Speculation::default() });
            assert!(y > last && y <= 4.0);
            last = y;
        }
        assert_eq!(tokens_per_step(&Speculation::default()), 1.0);
    }

    #[test]
    fn declining_acceptance_yields_the_sum_of_cumulative_products() {
        let falling = Speculation { tokens: Count::new(3), acceptance: 0.8, decline: 0.25, ..Speculation::default() };
        // 0.8, then 0.6, then 0.45.
        let expected = 1.0 + 0.8 + 0.8 * 0.6 + 0.8 * 0.6 * 0.45;
        assert!((tokens_per_step(&falling) - expected).abs() < 1e-12);
        let even = Speculation { decline: 0.0, ..falling };
        let hardly = Speculation { decline: 1e-12, ..falling };
        assert!((tokens_per_step(&even) - tokens_per_step(&hardly)).abs() < 1e-9);
        // The frequency of draws matches the expectation.
        let draws = 100_000;
        let mean = (0..draws)
            .map(|i| f64::from(accepted_drafts(&falling, (f64::from(i) + 0.5) / f64::from(draws))))
            .sum::<f64>();
        assert!((1.0 + mean / f64::from(draws) - expected).abs() < 1e-3);
    }
}
