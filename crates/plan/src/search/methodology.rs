//! Comparison of targets, either with the same knobs, or each with its own optimal knobs under the same constraints.
//! The latter are found by [`super::optimize()`], starting from [`super::optimize::freed`].

use std::collections::BTreeSet;

use crate::estimate::standing::depends_on_price_basis;
use crate::estimate::{Estimate, Metric};
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
    let kinds: BTreeSet<&str> = sort::collect_unsorted(priced.map(price_type));
    (kinds.len() > 1).then(|| {
        let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
        format!("prices of different types: {kinds}; set price_basis to compare the same type")
    })
}

/// Whether the scenarios cannot be ranked by a metric, because it is a cost and their prices are of different types.
#[must_use]
pub fn prices_prevent_ranking<'a>(metric: &Metric, scenarios: impl IntoIterator<Item = &'a Scenario>) -> bool {
    depends_on_price_basis(metric) && mixed_prices(scenarios).is_some()
}

/// Type of the price in effect, in words.
#[must_use]
pub fn price_type(scenario: &Scenario) -> &'static str {
    scenario.price_basis().map_or("not stated", PriceBasis::name)
}

/// Note that measurements correct only some of the estimates, which are given with the name of their target; `None` if
/// they correct all or none.
#[must_use]
pub fn mixed_calibrations<'a>(estimates: impl IntoIterator<Item = (&'a str, &'a Estimate)>) -> Option<String> {
    const SHOWN: usize = 3;
    // Estimates without details are of other engines, which have their own note.
    let detailed = estimates.into_iter().filter_map(|(name, estimate)| Some((name, estimate.detail.as_ref()?)));
    let (mut calibrated, mut shipped) = (Vec::new(), 0_usize);
    for (name, detail) in detailed {
        match detail.adjustments {
            Some(found) => calibrated.push((name, found.throughput.map(|throughput| throughput.factor))),
            None => shipped += 1,
        }
    }
    if calibrated.is_empty() || shipped == 0 {
        return None;
    }
    let described = calibrated.iter().take(SHOWN).map(|(name, factor)| match factor {
        Some(factor) => format!("{name} (throughput × {factor:.2})"),
        None => (*name).to_owned(),
    });
    let more = match calibrated.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let verb = if calibrated.len() == 1 { "is" } else { "are" };
    Some(format!(
        "only {}{more} {verb} calibrated with measurements; the others may change as much once they are",
        described.collect::<Vec<_>>().join(", ")
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::engine::estimate;
    use crate::estimate::Adjustments;
    use crate::knob::Overrides;
    use atlas_config::corrections::Adjustment;

    use crate::testing;

    #[test]
    fn calibrated_targets_beside_others_are_noted() {
        let parts = testing::parts("h100-sxm-8", "llama3.1-8b-serve");
        let shipped = estimate(&Scenario::resolve(&parts, &Overrides::new()).unwrap());
        let mut calibrated = shipped.clone();
        let throughput = Some(Adjustment { factor: 0.85, half_width: 0.1 });
        calibrated.detail.as_mut().unwrap().adjustments = Some(Adjustments { throughput, tpot: None, ttft: None });
        let noted = mixed_calibrations([("a", &calibrated), ("b", &shipped)]).unwrap();
        assert!(noted.contains("only a (throughput × 0.85) is calibrated"), "{noted}");
        assert_eq!(mixed_calibrations([("a", &calibrated), ("b", &calibrated)]), None);
        assert_eq!(mixed_calibrations([("a", &shipped), ("b", &shipped)]), None);
    }

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
