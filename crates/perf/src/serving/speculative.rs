//! Speculative decoding: tokens gained per step and what drafting costs (Leviathan et al., arXiv 2211.17192, eq. 1), where
//! acceptance may fall from position to position.

use super::ServingEstimate;
use super::input::Speculation;
use atlas_core::math;

/// Expected tokens that one verification step yields: (1 - a^(k+1)) / (1 - a) where all positions are alike, else one and the
/// sum of the probabilities that so many positions are accepted one after the other.
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

/// Positions that are accepted where the draw `u` from (0, 1) decides: as many as are reached with a probability above it.
pub fn accepted(s: &Speculation, u: f64) -> u32 {
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

/// The estimate of a deployment that drafts nothing in large batches: as with drafts, where its replicas run no more
/// sequences than that; else without.
pub fn limited(s: &Speculation, estimate: impl Fn(Speculation) -> ServingEstimate) -> ServingEstimate {
    let drafting = estimate(*s);
    if s.tokens > 0.0 && s.most_batch.is_some_and(|most| drafting.batch > most) {
        return estimate(Speculation::default());
    }
    drafting
}

/// Step time with drafting over the step time without.
pub fn draft_factor(s: &Speculation) -> f64 {
    1.0 + s.tokens * s.draft_cost.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use atlas_core::count::Count;

    #[test]
    fn more_acceptance_yields_more_tokens_but_never_more_than_drafted() {
        let mut last = 0.0;
        for a in [0.0, 0.3, 0.6, 0.9, 1.0] {
            let y = tokens_per_step(&Speculation { tokens: Count::new(3), acceptance: a, ..Speculation::default() });
            assert!(y > last && y <= 4.0);
            last = y;
        }
        assert_eq!(tokens_per_step(&Speculation::default()), 1.0);
    }

    #[test]
    fn acceptance_that_falls_by_position_yields_the_sum_of_its_products() {
        let falling = Speculation { tokens: Count::new(3), acceptance: 0.8, decline: 0.25, ..Speculation::default() };
        // 0.8, then 0.6, then 0.45.
        let expected = 1.0 + 0.8 + 0.8 * 0.6 + 0.8 * 0.6 * 0.45;
        assert!((tokens_per_step(&falling) - expected).abs() < 1e-12);
        let even = Speculation { decline: 0.0, ..falling };
        let hardly = Speculation { decline: 1e-12, ..falling };
        assert!((tokens_per_step(&even) - tokens_per_step(&hardly)).abs() < 1e-9);
        // Drawn as often as expected.
        let draws = 100_000;
        let mean =
            (0..draws).map(|i| f64::from(accepted(&falling, (f64::from(i) + 0.5) / f64::from(draws)))).sum::<f64>();
        assert!((1.0 + mean / f64::from(draws) - expected).abs() < 1e-3);
    }
}
