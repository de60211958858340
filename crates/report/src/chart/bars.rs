//! Bars: wholes and their parts.

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// Parts from the left; one part alone is a plain bar.
    pub parts: Vec<(String, f64)>,
    /// What is written at its end.
    pub shown: String,
    /// Ends of an interval around the whole.
    pub interval: Option<(f64, f64)>,
    /// A limit that the whole should not pass.
    pub limit: Option<f64>,
}

/// Bars below each other, over one scale.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// The heading.
    pub title: String,
    /// The bars.
    pub bars: Vec<Bar>,
}

impl Bar {
    /// The whole.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.parts.iter().map(|(_, value)| value).sum()
    }
}

impl Bars {
    /// The largest value of a bar, interval or limit; 0 if there is nothing to show.
    #[must_use]
    pub fn reach(&self) -> f64 {
        let ends = |bar: &Bar| [Some(bar.total()), bar.interval.map(|(_, high)| high), bar.limit];
        let all = self.bars.iter().flat_map(ends).flatten();
        all.filter(|end| end.is_finite()).fold(0.0, f64::max)
    }

    /// Names of parts above zero, in order of first occurrence.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.bars.iter().flat_map(|bar| &bar.parts).filter(|(_, value)| *value > 0.0) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }
}
