//! Caches of decoded documents, since sweeps repeat targets, workloads and profiles on every line.

use std::sync::Arc;

/// Result of decoding: the document, or a description of all problems with it.
pub(super) type Decoded<T> = Result<Arc<T>, Arc<str>>;

/// Decoded documents by their JSON text, most recent first.
///
/// A linear search in a short list is faster than a hash table here: hashing reads the whole text of several kilobytes,
/// while comparing different texts mostly ends at their lengths or first bytes.
pub(super) struct Memo<T> {
    entries: Vec<(Box<str>, Decoded<T>)>,
}

impl<T> Memo<T> {
    /// Maximum number of entries.
    const ENTRIES: usize = 256;
    /// Maximum length of a cached text, bytes; together with `ENTRIES`, it bounds the memory.
    const TEXT_BYTES: usize = 32 * 1024;

    pub(super) fn new() -> Memo<T> {
        Memo { entries: Vec::with_capacity(Memo::<T>::ENTRIES) }
    }

    /// Returns the document for `text` from the cache, or decodes it with `make`.
    pub(super) fn get(&mut self, text: &str, make: impl FnOnce() -> Result<Arc<T>, String>) -> Decoded<T> {
        if let Some(at) = self.entries.iter().position(|(known, _)| &**known == text) {
            if let Some(recent) = self.entries.get_mut(..=at) {
                recent.rotate_right(1);
            }
            if let Some((_, found)) = self.entries.first() {
                return found.clone();
            }
        }
        let found: Decoded<T> = make().map_err(Into::into);
        if text.len() <= Memo::<T>::TEXT_BYTES {
            self.entries.truncate(Memo::<T>::ENTRIES - 1);
            self.entries.insert(0, (text.into(), found.clone()));
        }
        found
    }
}

/// First random draw per seed, cached because seeding the generator takes longer than an estimate.
pub(super) struct Draws {
    slots: Vec<Option<(i128, f64)>>,
}

impl Draws {
    const SLOTS: usize = 4096;

    pub(super) fn new() -> Draws {
        Draws { slots: vec![None; Draws::SLOTS] }
    }

    /// First draw for `seed`.
    pub(super) fn first(&mut self, seed: i128) -> f64 {
        let at = seed.rem_euclid(Draws::SLOTS as i128) as usize;
        let Some(slot) = self.slots.get_mut(at) else { return atlas_plan::scenario::first_draw(seed) };
        match slot {
            Some((known, draw)) if *known == seed => *draw,
            _ => {
                let draw = atlas_plan::scenario::first_draw(seed);
                *slot = Some((seed, draw));
                draw
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memo_decodes_each_text_once_and_evicts_old_entries() {
        let mut memo: Memo<usize> = Memo::new();
        let mut made = 0;
        let mut answer = |memo: &mut Memo<usize>, text: &str| {
            memo.get(text, || {
                made += 1;
                if text == "bad" { Err("no".to_owned()) } else { Ok(Arc::new(text.len())) }
            })
        };
        assert_eq!(answer(&mut memo, "a"), Ok(Arc::new(1)));
        assert_eq!(answer(&mut memo, "bad"), Err("no".into()));
        assert_eq!(answer(&mut memo, "a"), Ok(Arc::new(1)));
        assert_eq!(answer(&mut memo, "bad"), Err("no".into()));
        for i in 0..1000 {
            assert!(answer(&mut memo, &format!("n{i}")).is_ok());
        }
        assert_eq!(memo.entries.len(), Memo::<usize>::ENTRIES);
        assert_eq!(made, 1002);
    }

    #[test]
    fn draws_do_not_mix_seeds_that_share_a_slot() {
        let mut draws = Draws::new();
        for seed in [1, 1 + Draws::SLOTS as i128, 1, -1, i128::MIN, i128::MAX] {
            assert_eq!(draws.first(seed).to_bits(), atlas_plan::scenario::first_draw(seed).to_bits());
        }
    }
}
