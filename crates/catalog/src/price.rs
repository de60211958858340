//! Prices: hourly prices of instances, with region and date.

use std::sync::Arc;

use atlas_core::count::Count;
use atlas_core::plan::PriceBasis;
use atlas_core::sort;
use atlas_document::decode::{Bounds, Fields};
use atlas_document::{Diagnostics, Node, Origin};

/// A price offer.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// The provider.
    pub provider: String,
    /// Name of the instance type at the provider.
    pub instance_type: Option<String>,
    /// Id of the accelerator in the catalog.
    pub accelerator: String,
    /// Number of accelerators of the instance.
    pub accelerators: Count,
    /// Price of the instance, USD per hour.
    pub hourly_usd: f64,
    /// Kind of price, on-demand by default.
    pub basis: PriceBasis,
    /// Region of the price.
    pub region: Option<String>,
    /// Date of the price: `YYYY-MM-DD`, or less precise if the day is unknown.
    pub date: String,
    /// Source of the price.
    pub source: Option<String>,
    /// Remarks on the price.
    pub note: Option<String>,
    /// File that the entry is from.
    pub origin: Origin,
}

impl Price {
    /// Price per accelerator, USD per hour.
    #[must_use]
    pub fn usd_per_accelerator_hour(&self) -> f64 {
        self.hourly_usd / self.accelerators
    }

    /// Decodes one entry of `prices.yaml`. Problems are added to `diagnostics`. Returns `None` if there are errors.
    pub fn decode(file: &Arc<str>, node: &Node, diagnostics: &mut Diagnostics) -> Option<Price> {
        let before = diagnostics.errors();
        let mut fields = Fields::open(file, "price", node, diagnostics)?;
        let at = fields.at();
        let provider = fields.required_text("provider");
        let instance_type = fields.text("instance_type");
        let accelerator = fields.required_text("accelerator");
        let accelerators = fields.required_count("accelerators", Bounds { max: 1e6, ..Bounds::COUNT });
        let hourly_usd = fields.required_number("hourly_usd", Bounds { max: 1e9, ..Bounds::POSITIVE });
        let basis = fields.choice("basis", BASES).unwrap_or(PriceBasis::OnDemand);
        let region = fields.text("region");
        let date = fields.required_text("date");
        if let Some(found) = date.as_deref().filter(|date| !is_date(date)) {
            fields.error("date", format!("found \"{found}\", expected a date"), Some("write YYYY-MM-DD".to_owned()));
        }
        let source = fields.text("source");
        let note = fields.text("note");
        fields.finish();
        if diagnostics.errors() > before {
            return None;
        }
        Some(Price {
            provider: provider?,
            instance_type,
            accelerator: accelerator?,
            accelerators: accelerators?,
            hourly_usd: hourly_usd?,
            basis,
            region,
            date: date?,
            source,
            note,
            origin: Origin { file: Arc::clone(file), at },
        })
    }
}

/// Kinds of price.
const BASES: &[(&str, PriceBasis)] = &[
    (PriceBasis::OnDemand.name(), PriceBasis::OnDemand),
    (PriceBasis::Reserved.name(), PriceBasis::Reserved),
    (PriceBasis::Spot.name(), PriceBasis::Spot),
    (PriceBasis::Marketplace.name(), PriceBasis::Marketplace),
];

/// Median of the offers of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Median {
    /// Price per accelerator, USD per hour.
    pub usd_per_accelerator_hour: f64,
    /// Number of offers.
    pub offers: usize,
    /// Oldest and newest date of the offers.
    pub dates: (String, String),
}

impl Median {
    /// Computes the median of the offers with this kind of price. Returns `None` if there are none.
    #[must_use]
    pub fn of(prices: &[Arc<Price>], basis: PriceBasis) -> Option<Median> {
        let mut offers: Vec<&Price> =
            prices.iter().map(|price| &**price).filter(|price| price.basis == basis).collect();
        sort::by(&mut offers, |a, b| a.usd_per_accelerator_hour().total_cmp(&b.usd_per_accelerator_hour()));
        let (low, high) = (offers.get((offers.len().max(1) - 1) / 2)?, offers.get(offers.len() / 2)?);
        let dates = || offers.iter().map(|price| price.date.as_str());
        Some(Median {
            usd_per_accelerator_hour: 0.5 * (low.usd_per_accelerator_hour() + high.usd_per_accelerator_hour()),
            offers: offers.len(),
            dates: (dates().min()?.to_owned(), dates().max()?.to_owned()),
        })
    }
}

/// Whether the text is a date of the form `YYYY`, `YYYY-MM` or `YYYY-MM-DD`.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let digits = |part: &str, n: usize| part.len() == n && part.bytes().all(|b| b.is_ascii_digit());
    let within = |part: &str, max: u32| digits(part, 2) && part.parse().is_ok_and(|n: u32| (1..=max).contains(&n));
    match parts.as_slice() {
        [year] => digits(year, 4),
        [year, month] => digits(year, 4) && within(month, 12),
        [year, month, day] => digits(year, 4) && within(month, 12) && within(day, 31),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use atlas_document::node::Position;

    #[test]
    fn median_price_covers_only_one_price_basis() {
        let offer = |usd: f64, basis: PriceBasis, date: &str| {
            Arc::new(Price {
                provider: "p".to_owned(),
                instance_type: None,
                accelerator: "a".to_owned(),
                accelerators: Count::new(8),
                hourly_usd: 8.0 * usd,
                basis,
                region: None,
                date: date.to_owned(),
                source: None,
                note: None,
                origin: Origin { file: "prices.yaml".into(), at: Position::default() },
            })
        };
        let (listed, spot) = (PriceBasis::OnDemand, PriceBasis::Spot);
        let all = [
            offer(3.0, listed, "2026-05"),
            offer(1.0, spot, "2026"),
            offer(6.0, listed, "2026-07"),
            offer(4.0, listed, "2025"),
        ];
        let median = Median::of(&all, listed).unwrap();
        assert_eq!((median.usd_per_accelerator_hour, median.offers), (4.0, 3));
        assert_eq!(median.dates, ("2025".to_owned(), "2026-07".to_owned()));
        let two = Median::of(&all[..3], listed).unwrap();
        assert_eq!(two.usd_per_accelerator_hour, 4.5);
        assert_eq!(Median::of(&all, PriceBasis::Reserved), None);
    }

    #[test]
    fn partial_dates_are_accepted_and_invalid_dates_refused() {
        assert!(is_date("2026") && is_date("2026-07") && is_date("2026-07-20"));
        assert!(!is_date("2026-13-01") && !is_date("26-07-20") && !is_date("July") && !is_date("2026-07-20-1"));
    }
}
