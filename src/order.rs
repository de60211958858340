//! Stable sorting, and filling of maps, that share their machine code.
//!
//! The standard library's sorts are compiled anew for every closure, four kilobytes each; a hundred of them were a
//! fifteenth of the binary. These sort positions, by one sort for all, and then bring the items there. For lists that
//! people look at; what is sorted by the million sorts itself.

use std::cmp::Ordering;
use std::mem;

/// Sorts in place; equal items keep their order.
pub trait Order<T> {
    /// By their own order.
    fn order(&mut self)
    where
        T: Ord;

    /// By a comparison.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// By a key of each.
    fn order_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

impl<T> Order<T> for [T] {
    fn order(&mut self)
    where
        T: Ord,
    {
        self.order_by(T::cmp);
    }

    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let mut sources = positions(self.len(), &mut |a, b| match (self.get(a), self.get(b)) {
            (Some(a), Some(b)) => compare(a, b),
            _ => Ordering::Equal,
        });
        // Cycle by cycle: each swap brings one item to its place.
        for start in 0..self.len() {
            let mut here = start;
            while let Some(source) = sources.get_mut(here) {
                let from = mem::replace(source, here);
                if from == start {
                    break;
                }
                self.swap(here, from);
                here = from;
            }
        }
    }

    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|a, b| key(a).cmp(&key(b)));
    }
}

/// Fills a map or a set entry by entry. Collecting one sorts first, by a sort of its own for every kind of iterator.
pub trait Gather: Iterator + Sized {
    /// All items; of equal keys the last.
    fn gather<M: Default + Extend<Self::Item>>(self) -> M {
        let mut all = M::default();
        all.extend(self);
        all
    }
}

impl<I: Iterator> Gather for I {}

/// For each place the position of the item that belongs there.
fn positions(items: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut sources: Vec<usize> = (0..items).collect();
    sources.sort_by(|a, b| compare(*a, *b));
    sources
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// As the standard library's stable sort, whatever is sorted.
        #[test]
        fn it_is_the_stable_sort(items in prop::collection::vec((0_u8..6, any::<u16>()), 0..60)) {
            let (mut ours, mut theirs) = (items.clone(), items);
            ours.order_by_key(|(key, _)| *key);
            theirs.sort_by_key(|(key, _)| *key);
            prop_assert_eq!(&ours, &theirs);
            ours.order_by(|a, b| b.cmp(a));
            theirs.sort_by(|a, b| b.cmp(a));
            prop_assert_eq!(&ours, &theirs);
            ours.order();
            prop_assert!(ours.is_sorted());
        }
    }
}
