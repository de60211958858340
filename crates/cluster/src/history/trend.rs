//! A metric over time and releases, and what changed since it was better.

use atlas_core::sort;
use atlas_core::statistics::median;
use atlas_plan::estimate::Direction;
use jiff::Timestamp;

use super::change::{Change, compare};
use super::entry::{Entry, EntryKind};

/// Determines by the name of a metric which values are better: lower for times, costs, power and memory.
#[must_use]
pub fn direction(figure: &str) -> Direction {
    let ends = ["_s", "_ms", "_w", "_wh", "_gb", "_kg", "_hours", "_minutes", "time", "latency", "retries", "failures"];
    let holds = ["usd", "dollar", "cost", "ttft", "tpot", "itl", "e2e", "latency", "step_time", "energy"];
    let rate = figure.contains("_per_s") || figure.contains("per_usd") || figure.contains("per_dollar");
    let lower = ends.iter().any(|end| figure.ends_with(end)) || holds.iter().any(|part| figure.contains(part));
    if lower && !rate { Direction::Lower } else { Direction::Higher }
}

/// Entries that can be compared, since they have the same target, workload, kind and engine. Oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Group<'a> {
    /// The target.
    pub target: &'a str,
    /// The workload.
    pub workload: &'a str,
    /// The kind.
    pub kind: EntryKind,
    /// The engine or tool.
    pub engine: &'a str,
    /// Entries with their value of the metric.
    pub points: Vec<(&'a Entry, f64)>,
}

/// Values of the metric with one software release.
#[derive(Debug, Clone, PartialEq)]
pub struct Release {
    /// The software and its release.
    pub software: String,
    /// Times of the first and the last entry.
    pub seen: [Timestamp; 2],
    /// Number of entries.
    pub count: usize,
    /// Median of the metric.
    pub median: f64,
    /// Change from the release before.
    pub change: Option<ReleaseChange>,
}

/// Change of the metric between two releases.
#[derive(Debug, Clone, PartialEq)]
pub struct ReleaseChange {
    /// Value with the new release over the one with the old release.
    pub ratio: f64,
    /// Inputs in which the entries of the two releases differ besides the software. Empty if the ratio is the median of
    /// entries with equal inputs.
    pub differences: Vec<String>,
}

impl ReleaseChange {
    /// Compares the entries of two releases, those with equal inputs if there are any.
    fn between(before: &[(&Entry, f64)], now: &[(&Entry, f64)]) -> Option<ReleaseChange> {
        let differences = |old: &Entry, new: &Entry| -> Vec<String> {
            let changed = compare(old, new).inputs.into_iter().map(|change| change.name);
            changed.filter(|name| !matches!(name.as_str(), "software" | "version of atlas")).collect()
        };
        let equal = now.iter().flat_map(|(new, value)| {
            let old = before.iter().filter(|(old, _)| differences(old, new).is_empty());
            old.map(move |(_, before)| value / before)
        });
        if let Some(ratio) = median(equal.filter(|ratio| ratio.is_finite())) {
            return Some(ReleaseChange { ratio, differences: Vec::new() });
        }
        let values = |all: &[(&Entry, f64)]| median(all.iter().map(|(_, value)| *value));
        let ((old, _), (new, _)) = (before.last()?, now.first()?);
        Some(ReleaseChange { ratio: values(now)? / values(before)?, differences: differences(old, new) })
    }

    /// In words: `-7.3 % against the one before`, with the other differences.
    #[must_use]
    pub fn describe(&self) -> String {
        const SHOWN: usize = 3;
        let change = format!("{:+.1} % against the one before", 100.0 * (self.ratio - 1.0));
        if self.differences.is_empty() {
            return format!("{change} with the same settings");
        }
        let shown = self.differences.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = if self.differences.len() > SHOWN { " and more" } else { "" };
        format!("{change}, which differs in {shown}{more} as well")
    }
}

/// Groups the entries that have the metric `figure` by what can be compared. The largest group comes first.
#[must_use]
pub fn groups<'a>(entries: &'a [Entry], figure: &str) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for entry in entries {
        let Some(value) = entry.figures.get(figure) else { continue };
        let text = |text: &'a Option<String>| text.as_deref().unwrap_or("-");
        let (target, workload, engine) = (text(&entry.target), text(&entry.workload), text(&entry.engine));
        let same = |group: &&mut Group<'_>| {
            (group.target, group.workload, group.kind, group.engine) == (target, workload, entry.kind, engine)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.points.push((entry, *value)),
            None => groups.push(Group { target, workload, kind: entry.kind, engine, points: vec![(entry, *value)] }),
        }
    }
    for group in &mut groups {
        sort::by(&mut group.points, |(a, _), (b, _)| (a.at, &a.id).cmp(&(b.at, &b.id)));
    }
    sort::by_key(&mut groups, |group| std::cmp::Reverse(group.points.len()));
    groups
}

impl Group<'_> {
    /// Target, workload, kind and engine.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} × {}, {} ({})", self.target, self.workload, self.kind.name(), self.engine)
    }

    /// Values by software release, in the order in which the releases first occur.
    #[must_use]
    pub fn releases(&self) -> Vec<Release> {
        let mut gathered: Vec<(String, Vec<(&Entry, f64)>)> = Vec::new();
        for (entry, value) in &self.points {
            let software = entry.software.clone().unwrap_or_else(|| "-".to_owned());
            match gathered.iter_mut().find(|(known, _)| *known == software) {
                Some((_, points)) => points.push((entry, *value)),
                None => gathered.push((software, vec![(entry, *value)])),
            }
        }
        let mut releases: Vec<Release> = Vec::new();
        let mut before: Option<&[(&Entry, f64)]> = None;
        for (software, points) in &gathered {
            let Some(median) = median(points.iter().map(|(_, value)| *value)) else { continue };
            let (Some((first, _)), Some((last, _))) = (points.first(), points.last()) else { continue };
            releases.push(Release {
                software: software.clone(),
                seen: [first.at, last.at],
                count: points.len(),
                median,
                change: before.and_then(|before| ReleaseChange::between(before, points)),
            });
            before = Some(points);
        }
        releases
    }
}

/// A group whose latest entry is worse than an earlier one, with what changed in between.
#[derive(Debug, Clone, PartialEq)]
pub struct Slowdown<'a> {
    /// The best entry before the latest, and its value; the last one if several are equal.
    pub best: (&'a Entry, f64),
    /// The latest entry, and its value.
    pub latest: (&'a Entry, f64),
    /// Relative loss from the best to the latest entry.
    pub worse: f64,
    /// Inputs that differ between the best and the latest entry.
    pub changed: Vec<Change>,
    /// The two consecutive entries with the largest loss since the best one, and the relative loss.
    pub step: Option<(&'a Entry, &'a Entry, f64)>,
    /// Inputs that differ between these consecutive entries.
    pub step_changed: Vec<Change>,
}

/// The groups whose latest entry is worse than the best earlier one by more than `tolerance`, largest loss first.
#[must_use]
pub fn slowdowns<'a>(groups: &[Group<'a>], better: Direction, tolerance: f64) -> Vec<Slowdown<'a>> {
    // Relative loss from `before` to `now`.
    let loss =
        |before: f64, now: f64| (better.sort_key(now) - better.sort_key(before)) / before.abs().max(f64::MIN_POSITIVE);
    let mut out = Vec::new();
    for group in groups {
        let Some(((latest, value), earlier)) = group.points.split_last() else { continue };
        let best =
            earlier.iter().enumerate().reduce(|best, next| if loss(best.1.1, next.1.1) <= 0.0 { next } else { best });
        let Some((at, &(entry, figure))) = best else { continue };
        let worse = loss(figure, *value);
        if worse.is_nan() || worse <= tolerance {
            continue;
        }
        let since = group.points.get(at..).unwrap_or_default();
        let step = since
            .windows(2)
            .filter_map(|pair| match pair {
                [(a, before), (b, now)] => Some((*a, *b, loss(*before, *now))),
                _ => None,
            })
            .filter(|(.., loss)| loss.is_finite())
            .max_by(|a, b| a.2.total_cmp(&b.2));
        out.push(Slowdown {
            best: (entry, figure),
            latest: (latest, *value),
            worse,
            changed: compare(entry, latest).inputs,
            step,
            step_changed: step.map(|(a, b, _)| compare(a, b).inputs).unwrap_or_default(),
        });
    }
    sort::by(&mut out, |a, b| b.worse.total_cmp(&a.worse));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Draft;
    use std::collections::BTreeMap;

    fn entry(second: i64, software: &str, tp: &str, rate: f64) -> Entry {
        Entry::new(
            EntryKind::Measurement,
            Draft {
                target: Some("t".to_owned()),
                workload: Some("w".to_owned()),
                software: Some(software.to_owned()),
                at: Timestamp::from_second(second).ok(),
                figures: BTreeMap::from([("tokens_per_sec".to_owned(), rate)]),
                inputs: BTreeMap::from([("tp".to_owned(), tp.into())]),
                ..Draft::default()
            },
        )
    }

    #[test]
    fn metric_name_determines_the_better_direction() {
        for name in
            ["step_time_ms", "usd_per_hour", "ttft_p99_ms", "node_power_w", "peak_mem_gb", "dollar_per_1k_tokens"]
        {
            assert_eq!(direction(name), Direction::Lower, "{name}");
        }
        for name in ["tokens_per_sec", "mfu", "requests_per_sec", "tokens_per_usd", "flop_utilization"] {
            assert_eq!(direction(name), Direction::Higher, "{name}");
        }
    }

    #[test]
    fn slowdown_is_attributed_to_the_change_that_introduced_it() {
        let entries = [
            entry(4, "vllm@0.11", "8", 905.0),
            entry(1, "vllm@0.10", "8", 990.0),
            entry(2, "vllm@0.10", "8", 1000.0),
            entry(3, "vllm@0.11", "8", 900.0),
        ];
        let groups = groups(&entries, "tokens_per_sec");
        let found = slowdowns(&groups, Direction::Higher, 0.02);
        let [slow] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((slow.best.1, slow.latest.1), (1000.0, 905.0));
        assert!((slow.worse - 0.095).abs() < 1e-12);
        let (before, after, _) = slow.step.unwrap();
        assert_eq!((before.at.as_second(), after.at.as_second()), (2, 3));
        let names: Vec<&str> = slow.step_changed.iter().map(|change| &*change.name).collect();
        assert_eq!(names, ["software"]);
        assert_eq!(slowdowns(&groups, Direction::Higher, 0.2), []);
        let releases = groups[0].releases();
        assert_eq!(releases.iter().map(|r| (r.count, r.median)).collect::<Vec<_>>(), [(2, 995.0), (2, 902.5)]);
    }

    #[test]
    fn releases_are_compared_with_the_same_settings_where_possible() {
        let entries = [
            entry(1, "vllm@0.8", "4", 5965.0),
            entry(2, "vllm@0.33", "4", 6435.0),
            entry(3, "vllm@0.33", "8", 6121.0),
            entry(4, "vllm@0.34", "2", 3000.0),
        ];
        let groups = groups(&entries, "tokens_per_sec");
        let changes: Vec<String> =
            groups[0].releases().iter().filter_map(|release| Some(release.change.as_ref()?.describe())).collect();
        assert_eq!(
            changes,
            [
                "+7.9 % against the one before with the same settings",
                "-52.2 % against the one before, which differs in tp as well"
            ]
        );
    }

    #[test]
    fn entries_of_other_engines_are_never_compared() {
        let mut other = entry(1, "a", "1", 5.0);
        other.engine = Some("event".to_owned());
        let entries = [entry(2, "a", "1", 1.0), other];
        let groups = groups(&entries, "tokens_per_sec");
        assert_eq!(groups.len(), 2);
        assert_eq!(slowdowns(&groups, Direction::Higher, 0.0), []);
    }
}
