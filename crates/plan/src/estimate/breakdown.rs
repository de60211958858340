//! Named parts of a total.

use serde::{Serialize, Serializer};

/// Maximum number of parts of a [`Breakdown`].
pub const MAX_PARTS: usize = 16;

/// Named parts of a total, in a fixed order. The array has a fixed size to avoid allocation, and the names are static,
/// because every estimate contains three breakdowns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Breakdown {
    names: &'static [&'static str],
    values: [f64; MAX_PARTS],
}

impl Serialize for Breakdown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.parts())
    }
}

impl Breakdown {
    /// Creates a breakdown from `N` names and values; `N` is at most [`MAX_PARTS`].
    #[must_use]
    pub fn of<const N: usize>(names: &'static [&'static str; N], values: [f64; N]) -> Breakdown {
        const { assert!(N <= MAX_PARTS, "a breakdown has no room for so many parts") };
        let mut all = [0.0; MAX_PARTS];
        if let Some(first) = all.first_chunk_mut() {
            *first = values;
        }
        Breakdown { names, values: all }
    }

    /// Names and values, in order.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, f64)> + Clone + use<> {
        self.names.iter().copied().zip(self.values)
    }

    /// Sum of the parts.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.parts().map(|(_, value)| value).sum()
    }

    /// Value of the part with this name; 0 if there is none.
    #[must_use]
    pub fn part(&self, name: &str) -> f64 {
        self.parts().filter(|(known, _)| *known == name).map(|(_, value)| value).sum()
    }

    /// Returns the breakdown with every part multiplied by `factor`.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Breakdown {
        for value in &mut self.values {
            *value *= factor;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_sum_to_the_whole() {
        let some = Breakdown::of(&["a", "b", "c"], [1.0, 2.0, 4.0]);
        assert_eq!((some.total(), some.part("b"), some.part("d")), (7.0, 2.0, 0.0));
        assert_eq!(some.scaled(2.0).parts().collect::<Vec<_>>(), [("a", 2.0), ("b", 4.0), ("c", 8.0)]);
        assert_eq!(Breakdown::default().parts().count(), 0);
    }
}
