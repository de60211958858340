//! Prices: what an instance costs by the hour, where, and when that was read.

use std::sync::Arc;

use atlas_document::decode::{Bounds, Fields};
use atlas_document::{Diagnostics, Node, Origin};

/// One offer on demand.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// Who rents it out.
    pub provider: String,
    /// What the provider calls the machine.
    pub instance_type: Option<String>,
    /// Id in the catalog of accelerators.
    pub accelerator: String,
    /// Accelerators of the instance.
    pub accelerators: f64,
    /// Price of the instance, USD per hour.
    pub hourly_usd: f64,
    /// Where the price holds.
    pub region: Option<String>,
    /// When it was read: `YYYY-MM-DD`, or coarser where nothing finer is known.
    pub date: String,
    /// Where it was read.
    pub source: Option<String>,
    /// Caveats.
    pub note: Option<String>,
    /// Where it was written.
    pub origin: Origin,
}

impl Price {
    /// Price of one accelerator, USD per hour.
    #[must_use]
    pub fn usd_per_accelerator_hour(&self) -> f64 {
        self.hourly_usd / self.accelerators
    }

    /// Decodes one entry of `prices.yaml`. Complaints go to `diagnostics`; `None` means that one of them is an error.
    pub fn decode(file: &Arc<str>, node: &Node, diagnostics: &mut Diagnostics) -> Option<Price> {
        let before = diagnostics.errors();
        let mut fields = Fields::open(file, "price", node, diagnostics)?;
        let at = fields.at();
        let provider = fields.required_text("provider");
        let instance_type = fields.text("instance_type");
        let accelerator = fields.required_text("accelerator");
        let accelerators = fields.required_number("accelerators", Bounds { max: 1e6, ..Bounds::COUNT });
        let hourly_usd = fields.required_number("hourly_usd", Bounds { max: 1e9, ..Bounds::POSITIVE });
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
            region,
            date: date?,
            source,
            note,
            origin: Origin { file: Arc::clone(file), at },
        })
    }
}

/// `YYYY`, `YYYY-MM` or `YYYY-MM-DD`.
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
    use super::is_date;

    #[test]
    fn dates_may_be_coarse_but_not_wrong() {
        assert!(is_date("2026") && is_date("2026-07") && is_date("2026-07-20"));
        assert!(!is_date("2026-13-01") && !is_date("26-07-20") && !is_date("July") && !is_date("2026-07-20-1"));
    }
}
