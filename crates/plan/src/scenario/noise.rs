//! Run-to-run noise, generated as in the predecessor system.

use std::sync::LazyLock;

use super::SEED;

/// Number of phases for which the first draw with the default seed is cached.
const PHASES: i128 = 4;

/// [`first_draw`], cached for the default seed: every scenario starts with it, and seeding the generator takes longer
/// than an estimate.
pub(super) fn default_draw(seed: i128) -> f64 {
    static DRAWS: LazyLock<Vec<f64>> = LazyLock::new(|| (0..PHASES).map(|phase| first_draw(SEED + phase)).collect());
    let phase = seed.checked_sub(SEED).and_then(|phase| usize::try_from(phase).ok());
    let known = phase.and_then(|phase| DRAWS.get(phase));
    known.copied().unwrap_or_else(|| first_draw(seed))
}

/// First `random()` of Python's `random.Random(seed)`: MT19937 seeded by `init_by_array` with the 32-bit words of the
/// seed's absolute value, least significant first; two outputs make a 53-bit fraction.
#[must_use]
pub fn first_draw(seed: i128) -> f64 {
    let mut words = Vec::with_capacity(4);
    let mut rest = seed.unsigned_abs();
    while rest > 0 || words.is_empty() {
        #[expect(clippy::cast_possible_truncation, reason = "the low 32 bits are what is meant")]
        words.push(rest as u32);
        rest >>= 32;
    }
    let mut generator = rand_mt::Mt::new_with_key(words.iter().copied());
    let high = f64::from(generator.next_u32() >> 5);
    let low = f64::from(generator.next_u32() >> 6);
    (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
}
