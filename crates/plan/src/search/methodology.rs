//! Comparison of targets, either with the same knobs, or each with its own optimal knobs under the same constraints.
//! The latter are found by [`super::optimize()`], starting from [`super::optimize::freed`].

use std::collections::BTreeSet;

use crate::knob::{Knob, Setting};
use crate::scenario::Scenario;
pub use atlas_core::plan::Methodology;
use atlas_core::plan::PriceBasis;
use atlas_core::sort;

/// Knobs that differ between scenarios, or are among `changed`, with their values; `None` where a knob has no effect.
#[must_use]
pub fn differences(scenarios: &[&Scenario], changed: &[Knob]) -> Vec<(Knob, Vec<Option<Setting>>)> {
    let values = |knob: Knob| -> Vec<Option<Setting>> {
        scenarios.iter().map(|scenario| scenario.uses(knob).then(|| scenario.get(knob))).collect()
    };
    Knob::all()
        .map(|knob| (knob, values(knob)))
        .filter(|(knob, values)| {
            changed.contains(knob) || values.windows(2).any(|pair| matches!(pair, [a, b] if a != b))
        })
        // The layers of the first and last stage follow from the layout, which is listed.
        .filter(|(knob, _)| {
            let stages = matches!(knob, Knob::FirstLayers | Knob::LastLayers);
            !stages || scenarios.iter().any(|scenario| !scenario.follows(*knob))
        })
        .collect()
}

/// Note that the scenarios have prices of different kinds; `None` if all known prices are of one kind.
#[must_use]
pub fn mixed_prices<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) -> Option<String> {
    let priced = scenarios.into_iter().filter(|scenario| scenario.usd_node_hour().is_some());
    let kinds: BTreeSet<&str> =
        sort::collect_unsorted(priced.map(|scenario| scenario.price_basis().map_or("not stated", PriceBasis::name)));
    (kinds.len() > 1).then(|| {
        let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
        format!("prices of different types: {kinds}; set price_basis to compare the same type")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::knob::Overrides;

    use crate::testing;

    #[test]
    fn mixed_price_kinds_are_noted_until_a_price_basis_is_set() {
        let of = |target: &str, basis: Option<&str>| {
            let parts = testing::parts(target, "llama3.1-8b-serve");
            let chosen = basis.map(|basis| (Knob::PriceBasis, Setting::Choice(basis.into())));
            Scenario::resolve(&parts, &chosen.into_iter().collect::<Overrides>()).unwrap()
        };
        let mixed = |basis| {
            let all = testing::LIBRARY.targets().iter().filter(|target| target.accelerator.is_some());
            let all: Vec<Scenario> = all.map(|target| of(&target.name, basis)).collect();
            mixed_prices(&all)
        };
        let described = mixed(None).unwrap();
        assert!(described.contains("on-demand") && described.contains(','), "{described}");
        assert_eq!(mixed(Some("on-demand")), None);
        let one = of("h100-sxm-8", None);
        assert_eq!(mixed_prices([&one, &one]), None);
    }
}
