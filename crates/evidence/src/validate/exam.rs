//! Sources that are excluded from all fits, to evaluate estimates on unseen data.

/// Whether a source belongs to the exam: one in five, by a hash of its name.
#[must_use]
pub fn is_in_exam(source: &str) -> bool {
    // FNV-1a: the same on every machine and in every release.
    let hash = source
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    hash % 5 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_one_source_in_five_is_examined() {
        let n = (0..1000).filter(|n| is_in_exam(&format!("organization-{n}/benchmarks"))).count();
        assert!((150..250).contains(&n), "{n}");
    }
}
