//! Stable sorting with one compiled sort for all types.
//!
//! The standard library's sort is compiled for each type and comparison, with about five kilobytes each; these were a
//! tenth of the binary. The functions of this module sort indices and then move the elements. Code that sorts in inner
//! loops uses the standard library.

use std::cmp::Ordering;
use std::mem;

/// Sorts with `compare`.
pub fn by<T>(list: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let order = positions(list.len(), &mut |a, b| match (list.get(a), list.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    });
    apply_permutation(order, &mut |a, b| list.swap(a, b));
}

/// Sorts by the key of each element.
pub fn by_key<T, K: Ord>(list: &mut [T], mut key: impl FnMut(&T) -> K) {
    by(list, |a, b| key(a).cmp(&key(b)));
}

/// Sorts in ascending order.
pub fn ascending<T: Ord>(list: &mut [T]) {
    by(list, T::cmp);
}

/// Sorts numbers in ascending order.
pub fn numbers(list: &mut [f64]) {
    list.sort_unstable_by(f64::total_cmp);
}

/// Creates a map or set from `items` by inserting them one by one; of equal keys, the last one is kept. `collect` would
/// sort them first, with a sort compiled for each type of iterator.
pub fn collect_unsorted<C: Default + Extend<T>, T>(items: impl IntoIterator<Item = T>) -> C {
    let mut filled = C::default();
    filled.extend(items);
    filled
}

/// Returns, for each position of the sorted list, the index of its element in the original list.
fn positions(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

/// Moves each element to its position, one cycle of the permutation after another.
fn apply_permutation(mut order: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for first in 0..order.len() {
        let mut at = first;
        while let Some(slot) = order.get_mut(at) {
            let from = mem::replace(slot, at);
            if from == first {
                break;
            }
            swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sort_matches_the_standard_library(list in prop::collection::vec((0_u8..8, any::<u16>()), 0..200)) {
            let mut expected = list.clone();
            expected.sort_by_key(|(key, _)| *key);
            let mut found = list.clone();
            super::by_key(&mut found, |(key, _)| *key);
            prop_assert_eq!(&found, &expected);
            found.reverse();
            super::ascending(&mut found);
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn last_value_of_a_duplicate_key_is_kept() {
        let map: BTreeMap<_, _> = super::collect_unsorted([("b", 1), ("a", 2), ("b", 3)]);
        assert_eq!(map.into_iter().collect::<Vec<_>>(), [("a", 2), ("b", 3)]);
    }
}
