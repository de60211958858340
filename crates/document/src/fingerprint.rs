//! A fingerprint of byte strings that is the same on every machine and in every version of the program.

/// FNV-1a over 64 bits; the standard library's hashes may change between versions.
/// Source: Fowler, Noll, Vo, <http://www.isthe.com/chongo/tech/comp/fnv/>.
#[must_use]
pub fn fingerprint(bytes: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}
