//! A whole and its parts.

use serde::{Serialize, Serializer};

/// Most parts that a breakdown has.
pub const MOST_PARTS: usize = 16;

/// Named parts that sum to a whole, in a fixed order. Kept in place, so that an estimate allocates nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Breakdown {
    parts: [(&'static str, f64); MOST_PARTS],
    len: usize,
}

impl Serialize for Breakdown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.parts().iter().copied())
    }
}

impl Breakdown {
    /// From names and values; what is beyond [`MOST_PARTS`] joins the last part, so that the sum holds.
    #[must_use]
    pub fn of(parts: &[(&'static str, f64)]) -> Breakdown {
        let mut all = Breakdown::default();
        for (name, value) in parts {
            all.push(name, *value);
        }
        all
    }

    fn push(&mut self, name: &'static str, value: f64) {
        if let Some(slot) = self.parts.get_mut(self.len) {
            *slot = (name, value);
            self.len += 1;
        } else if let Some((_, last)) = self.parts.last_mut() {
            *last += value;
        }
    }

    /// Names and values in order.
    #[must_use]
    pub fn parts(&self) -> &[(&'static str, f64)] {
        self.parts.get(..self.len).unwrap_or_default()
    }

    /// The whole.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.parts().iter().map(|(_, value)| value).sum()
    }

    /// The part of that name; 0 where there is none.
    #[must_use]
    pub fn part(&self, name: &str) -> f64 {
        self.parts().iter().filter(|(known, _)| *known == name).map(|(_, value)| value).sum()
    }

    /// Every part times a factor.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Breakdown {
        for (_, value) in &mut self.parts {
            *value *= factor;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_sum_to_the_whole_however_many_there_are() {
        let many: Vec<(&'static str, f64)> = (0..40).map(|i| ("part", f64::from(i))).collect();
        assert_eq!(Breakdown::of(&many).total(), 780.0);
        assert_eq!(Breakdown::of(&many).scaled(2.0).total(), 1560.0);
        assert_eq!(Breakdown::of(&[("a", 1.0), ("b", 2.0)]).part("b"), 2.0);
    }
}
