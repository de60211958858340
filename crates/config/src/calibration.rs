//! Provenance of a profile: for each coefficient, what was measured, when, the quality of the fit, and the source
//! files.

use std::sync::Arc;

use atlas_document::node::Node;

/// Contents of a profile's `calibration` section.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Calibration {
    /// Date of the calibration, `2026-07-20`.
    pub date: Option<String>,
    /// Target that was calibrated.
    pub target: Option<String>,
    /// Parameters in file order.
    pub parameters: Vec<Provenance>,
}

/// Provenance of one parameter's value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Provenance {
    /// Path in the profile, `communication.intensity.per_tp`.
    pub path: Arc<str>,
    /// Symbol in the calibration guide.
    pub symbol: Option<String>,
    /// The calibrated value.
    pub value: Option<f64>,
    /// Lower and upper end of the 95 % interval.
    pub interval: Option<[f64; 2]>,
    /// Number of measurements.
    pub n: Option<f64>,
    /// Coefficient of determination of the fit, if there is one.
    pub r2: Option<f64>,
    /// Method of determination.
    pub method: Option<String>,
    /// Date of the measurement, if it differs from the date of the calibration.
    pub date: Option<String>,
    /// Files from which the value was fitted.
    pub sources: Vec<String>,
}

impl Calibration {
    /// Reads a profile's `calibration` node; `None` if it is not a mapping. Reports no diagnostics, since users keep
    /// their own notes there, and nothing is computed from it.
    #[must_use]
    pub fn of_node(node: &Node) -> Option<Calibration> {
        node.entries()?;
        let entries = node.get("parameters").and_then(Node::entries).unwrap_or_default();
        let parameters = entries.iter().map(|entry| Provenance::of_node(&entry.key, &entry.value)).collect();
        Some(Calibration { date: text(node, "date"), target: text(node, "target"), parameters })
    }

    /// Finds the provenance of the parameter at `path`.
    #[must_use]
    pub fn of(&self, path: &str) -> Option<&Provenance> {
        self.parameters.iter().find(|provenance| &*provenance.path == path)
    }
}

impl Provenance {
    fn of_node(path: &str, node: &Node) -> Provenance {
        let number = |key: &str| node.get(key).and_then(Node::number).filter(|value| value.is_finite());
        let ends: Vec<f64> =
            node.get("interval").and_then(Node::items).unwrap_or_default().iter().filter_map(Node::number).collect();
        let sources = node.get("sources").and_then(Node::items).unwrap_or_default();
        Provenance {
            path: path.into(),
            symbol: text(node, "symbol"),
            value: number("value"),
            interval: match ends.as_slice() {
                [low, high] if low <= high => Some([*low, *high]),
                _ => None,
            },
            n: number("n"),
            r2: number("r2"),
            method: text(node, "method"),
            date: text(node, "date"),
            sources: sources.iter().filter_map(|source| source.text().map(str::to_owned)).collect(),
        }
    }
}

fn text(node: &Node, key: &str) -> Option<String> {
    node.get(key).and_then(Node::text).map(str::to_owned)
}
