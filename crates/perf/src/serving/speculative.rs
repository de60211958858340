//! Speculative decoding: tokens gained per step and what drafting costs (Leviathan et al., arXiv 2211.17192, eq. 1).

use super::input::Speculation;

/// Expected tokens that one verification step yields: (1 - a^(k+1)) / (1 - a).
pub fn tokens_per_step(s: &Speculation) -> f64 {
    if s.tokens <= 0.0 {
        return 1.0;
    }
    let a = s.acceptance.clamp(0.0, 0.999);
    (1.0 - a.powf(s.tokens + 1.0)) / (1.0 - a)
}

/// Step time with drafting over the step time without.
pub fn draft_factor(s: &Speculation) -> f64 {
    1.0 + s.tokens.max(0.0) * s.draft_cost.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_acceptance_yields_more_tokens_but_never_more_than_drafted() {
        let mut last = 0.0;
        for a in [0.0, 0.3, 0.6, 0.9, 1.0] {
            let y = tokens_per_step(&Speculation { tokens: 3.0, acceptance: a, draft_cost: 0.0 });
            assert!(y > last && y <= 4.0);
            last = y;
        }
        assert_eq!(tokens_per_step(&Speculation::default()), 1.0);
    }
}
