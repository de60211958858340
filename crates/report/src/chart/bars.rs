//! Stacked bars: totals and their parts.

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Label of the bar.
    pub name: String,
    /// Names and values of the parts, from the left. A plain bar has one part.
    pub parts: Vec<(String, f64)>,
    /// Text written at the end of the bar.
    pub label: String,
    /// Low and high end of an interval around the total.
    pub interval: Option<(f64, f64)>,
    /// Limit that the total should not exceed, drawn as a mark.
    pub limit: Option<f64>,
}

/// Bars below each other on a common scale.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// The heading.
    pub title: String,
    /// The bars.
    pub bars: Vec<Bar>,
}

impl Bar {
    /// Sum of the parts.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.parts.iter().map(|(_, value)| value).sum()
    }
}

impl Bars {
    /// Largest total, interval end or limit of all bars; 0 if there is nothing to draw.
    #[must_use]
    pub fn max_extent(&self) -> f64 {
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
