//! Writes the detected machines as commented targets.
//!
//! A field that could not be determined becomes a comment that says what to write. The file is valid YAML; a target in
//! it is complete once those fields are filled in.

mod target;
mod yaml;

use crate::catalog::CatalogEntry;
use crate::model::{Detected, Machine};

/// Price and power of one node, supplied by the caller.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeCost {
    /// USD per hour.
    pub hourly_usd: Option<f64>,
    /// Maximum power draw of the node, W.
    pub energy_watts_node: Option<f64>,
    /// Facility power over IT power.
    pub pue: Option<f64>,
    /// Where the values come from.
    pub source: String,
}

/// Writes all machines as a `targets.yaml`. `cost` returns the price and power of a machine's nodes; fields that it
/// does not provide are left open.
#[must_use]
pub fn render(detected: &Detected, catalog: &[CatalogEntry], cost: &dyn Fn(&Machine) -> Option<NodeCost>) -> String {
    let mut out = String::new();
    yaml::comment(
        &mut out,
        0,
        "Targets as detected. Values that could not be determined are commented out: fill them in.",
    );
    if !detected.undetermined.is_empty() {
        out.push_str("#\n# Not determined:\n");
        for open in &detected.undetermined {
            yaml::comment(&mut out, 0, &format!("- {}: {}; {}.", open.what, open.why, open.state));
        }
    }
    for machine in &detected.machines {
        out.push('\n');
        let entry = target::render(machine, catalog, cost(machine).as_ref());
        if let Some(reason) = target::not_plannable(machine) {
            yaml::comment(&mut out, 0, &reason);
            for line in entry.lines() {
                out.push_str("# ");
                out.push_str(line);
                out.push('\n');
            }
        } else {
            out.push_str(&entry);
        }
    }
    if detected.machines.is_empty() {
        // A file that contains only comments is not a list.
        out.push_str("\n[]\n");
    } else if detected.machines.iter().all(|machine| target::not_plannable(machine).is_some()) {
        out.push_str("\n[]\n");
    }
    out
}
