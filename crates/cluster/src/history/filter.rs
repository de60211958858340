//! Selection of entries.

use atlas_core::time_unit::TimeUnit;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::entry::{Entry, EntryKind};

/// A filter. Criteria that are `None` or empty match all entries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Substring of the target's name, compared case-insensitively.
    pub target: Option<String>,
    /// Substring of the workload's name, compared case-insensitively.
    pub workload: Option<String>,
    /// Substring of the software's name and release, compared case-insensitively.
    pub software: Option<String>,
    /// Kinds to keep.
    pub kinds: Vec<EntryKind>,
    /// Earliest time, inclusive.
    pub since: Option<Timestamp>,
    /// Latest time, exclusive.
    pub until: Option<Timestamp>,
    /// Maximum number of entries; the newest are kept.
    pub limit: Option<usize>,
}

impl Filter {
    /// Whether the filter matches an entry.
    #[must_use]
    pub fn matches(&self, entry: &Entry) -> bool {
        let part = |wanted: &Option<String>, has: &Option<String>| {
            let low = |text: &str| text.to_lowercase();
            wanted.as_ref().is_none_or(|part| has.as_ref().is_some_and(|has| low(has).contains(&low(part))))
        };
        part(&self.target, &entry.target)
            && part(&self.workload, &entry.workload)
            && part(&self.software, &entry.software)
            && (self.kinds.is_empty() || self.kinds.contains(&entry.kind))
            && self.since.is_none_or(|since| entry.at >= since)
            && self.until.is_none_or(|until| entry.at < until)
    }

    /// Whether the filter may match the entry in a file of this name. Names begin with time and kind, so that most
    /// files need not be opened.
    pub(super) fn may_match_name(&self, name: &str) -> bool {
        let mut parts = name.split('-');
        let (moment, kind) = (parts.next().unwrap_or_default(), parts.next().and_then(EntryKind::named));
        let before = |limit: Timestamp| *moment < *limit.strftime("%Y%m%dT%H%M%S").to_string();
        let wanted = kind.is_none_or(|kind| self.kinds.is_empty() || self.kinds.contains(&kind));
        wanted && !self.since.is_some_and(before)
    }
}

/// Parses a time as written by users: `2026-11-22`, `2026-11-22T21:54`, RFC 3339, or `7d`, `12h`, `30m` before now.
///
/// # Errors
/// If the text is not a time. The error states the expected forms.
pub fn moment(text: &str) -> Result<Timestamp, String> {
    let text = text.trim();
    let expected =
        || format!("\"{text}\": expected a date such as 2026-11-22, a time, or an age such as 7d, 12h or 30m");
    let units = [('d', TimeUnit::Day), ('h', TimeUnit::Hour), ('m', TimeUnit::Minute), ('w', TimeUnit::Week)];
    if let Some((symbol, unit)) = units.into_iter().find(|(symbol, _)| text.ends_with(*symbol))
        && let Ok(count) = text.trim_end_matches(symbol).parse::<f64>()
    {
        let back = count * unit.seconds();
        if !(0.0..=3e9).contains(&back) {
            return Err(expected());
        }
        return Timestamp::from_second(Timestamp::now().as_second() - back as i64).map_err(|_| expected());
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let civil = text.parse::<DateTime>().map_err(|_| expected())?;
    let zoned = civil.to_zoned(TimeZone::UTC).map_err(|_| expected())?;
    Ok(zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Draft;

    #[test]
    fn moment_parses_dates_times_and_relative_spans() {
        let at = |text: &str| moment(text).unwrap().as_second();
        assert_eq!(at("2026-11-22"), at("2026-11-22T00:00:00Z"));
        assert_eq!(at("2026-11-22T21:54"), at("2026-11-22T21:54:00Z"));
        assert!((at("1d") - at("24h")).abs() <= 1);
        for text in ["", "yesterday", "-1d", "1e300d", "2026-13-01", "NaNd"] {
            assert!(moment(text).is_err(), "{text}");
        }
    }

    #[test]
    fn filter_that_keeps_an_entry_accepts_its_file_name() {
        let draft = Draft { target: Some("H100-SXM-8".to_owned()), ..Draft::default() };
        let entry = Entry::new(EntryKind::Run, draft);
        let filter = Filter {
            target: Some("h100".to_owned()),
            kinds: vec![EntryKind::Run],
            since: Some(entry.at),
            ..Filter::default()
        };
        assert!(filter.matches(&entry) && filter.may_match_name(&entry.id));
        assert!(!Filter { kinds: vec![EntryKind::Sweep], ..filter.clone() }.may_match_name(&entry.id));
        assert!(!Filter { until: Some(entry.at), ..filter }.matches(&entry));
    }
}
