//! Run-to-run noise, drawn as the predecessor system draws it.

/// The first `random()` of Python's `random.Random(seed)`: MT19937 seeded by `init_by_array` with the seed's 32-bit
/// words, little end first, sign dropped; two outputs make a 53-bit fraction.
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
