//! Parts of a total.

use atlas_perf::parts::{FirstTokenPart, MemoryPart, TimePart};
use serde::{Serialize, Serializer};

/// Maximum number of parts of a [`Breakdown`].
pub const MAX_PARTS: usize = 16;

/// Part of a time or of memory.
pub trait Part: Copy + PartialEq + 'static {
    /// Name in documents and tables, and key in JSON.
    fn name(self) -> &'static str;

    /// Name where there is room for a longer one.
    fn label(self) -> &'static str {
        self.name()
    }
}

impl Part for TimePart {
    fn name(self) -> &'static str {
        self.name()
    }
}

impl Part for MemoryPart {
    fn name(self) -> &'static str {
        self.name()
    }
}

impl Part for FirstTokenPart {
    fn name(self) -> &'static str {
        self.name()
    }

    fn label(self) -> &'static str {
        if self == FirstTokenPart::Burst { "prefill contention" } else { self.name() }
    }
}

/// Parts of a total, in a fixed order. The array has a fixed size to avoid allocation, and the list of parts is static,
/// because every estimate contains three breakdowns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Breakdown<P: Part> {
    parts: &'static [P],
    values: [f64; MAX_PARTS],
}

impl<P: Part> Default for Breakdown<P> {
    fn default() -> Self {
        Breakdown { parts: &[], values: [0.0; MAX_PARTS] }
    }
}

impl<P: Part> Serialize for Breakdown<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.parts().map(|(part, value)| (part.name(), value)))
    }
}

impl<P: Part> Breakdown<P> {
    /// Creates a breakdown from `N` parts and their values; `N` is at most [`MAX_PARTS`].
    #[must_use]
    pub fn of<const N: usize>(parts: &'static [P; N], values: [f64; N]) -> Self {
        const { assert!(N <= MAX_PARTS, "a breakdown has no room for so many parts") };
        let mut all = [0.0; MAX_PARTS];
        if let Some(first) = all.first_chunk_mut() {
            *first = values;
        }
        Breakdown { parts, values: all }
    }

    /// Parts and values, in order.
    pub fn parts(&self) -> impl Iterator<Item = (P, f64)> + Clone + use<P> {
        self.parts.iter().copied().zip(self.values)
    }

    /// Sum of the parts.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.parts().map(|(_, value)| value).sum()
    }

    /// Value of a part; 0 if this total does not have it.
    #[must_use]
    pub fn part(&self, part: P) -> f64 {
        self.parts().find(|(known, _)| *known == part).map_or(0.0, |(_, value)| value)
    }

    /// Returns the breakdown with every part multiplied by `factor`.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
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
        use MemoryPart::{Buffers, Logits, Reserve, Weights};
        let some = Breakdown::of(&[Weights, Logits, Buffers], [1.0, 2.0, 4.0]);
        assert_eq!((some.total(), some.part(Logits), some.part(Reserve)), (7.0, 2.0, 0.0));
        assert_eq!(some.scaled(2.0).parts().collect::<Vec<_>>(), [(Weights, 2.0), (Logits, 4.0), (Buffers, 8.0)]);
        assert_eq!(Breakdown::<TimePart>::default().parts().count(), 0);
    }
}
