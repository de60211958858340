//! Provenance of a profile: what was measured for each coefficient, when, how well it fits, and from which files.

use std::sync::Arc;

use atlas_document::node::Node;

/// Contents of a profile's `calibration` section.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Calibration {
    /// Date of the calibration, `2026-07-20`.
    pub date: Option<String>,
    /// Target it was made for.
    pub target: Option<String>,
    /// Each parameter, in the order of the file.
    pub parameters: Vec<Provenance>,
}

/// Where the value of one parameter comes from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Provenance {
    /// Its path in the profile, `communication.intensity.per_tp`.
    pub path: Arc<str>,
    /// The calibration guide's symbol.
    pub symbol: Option<String>,
    /// The value found.
    pub value: Option<f64>,
    /// Ends of the 95 % interval.
    pub interval: Option<[f64; 2]>,
    /// Measurements behind it.
    pub n: Option<f64>,
    /// Share of the variance that the fit explains, where there is one.
    pub r2: Option<f64>,
    /// How it was found.
    pub method: Option<String>,
    /// Date of the measurement, if it differs from that of the calibration.
    pub date: Option<String>,
    /// Files that the value was fitted from.
    pub sources: Vec<String>,
}

impl Calibration {
    /// Reads a profile's `calibration` node; `None` if it has no known fields. Reports no diagnostics: users keep
    /// their own notes there, and nothing is computed from it.
    #[must_use]
    pub fn of_node(node: &Node) -> Option<Calibration> {
        node.entries()?;
        let entries = node.get("parameters").and_then(Node::entries).unwrap_or_default();
        let parameters = entries.iter().map(|entry| Provenance::of_node(&entry.key, &entry.value)).collect();
        Some(Calibration { date: text(node, "date"), target: text(node, "target"), parameters })
    }

    /// The provenance of the parameter at a path.
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
