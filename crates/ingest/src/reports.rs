//! Collects several reports of one tool in one document, each with its own facts.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::reading::{Config, Context, Facts, Origin};

/// Maximum number of reports kept. Later ones are only counted.
const MAX_REPORTS: usize = 2000;

/// Block if any, name, and value of a fact.
type NamedFact = (Option<String>, String, Value);

/// The completed reports, and the current one.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    completed: Vec<Facts>,
    current: Facts,
    /// Facts repeated with the same value since the last new one. They belong to the next report if one starts directly
    /// after them.
    repeated: Vec<NamedFact>,
    dropped: usize,
}

impl Reports {
    /// Ends the current report.
    pub(crate) fn begin(&mut self) {
        self.repeated.clear();
        if self.current.is_empty() {
            return;
        }
        let report = std::mem::take(&mut self.current);
        // Every rank may print the same report.
        if self.completed.last() == Some(&report) {
            return;
        }
        if self.completed.len() < MAX_REPORTS {
            self.completed.push(report);
        } else {
            self.dropped += 1;
        }
    }

    /// The current report.
    pub(crate) fn current(&self) -> &Facts {
        &self.current
    }

    /// Sets a fact. If the current report already has the fact with another value, a new report is started.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.take((None, name.to_owned(), value.into()));
    }

    /// Sets a fact in a block, such as `mean` in `ttft_ms`.
    pub(crate) fn set_in(&mut self, block: &str, name: &str, value: impl Into<Value>) {
        self.take((Some(block.to_owned()), name.to_owned(), value.into()));
    }

    fn take(&mut self, named: NamedFact) {
        let (block, name, value) = &named;
        let known = match block {
            Some(block) => self.current.get(block).and_then(|block| block.get(name)),
            None => self.current.get(name),
        };
        match known {
            Some(known) if known == value => {
                if self.repeated.len() < 256 {
                    self.repeated.push(named);
                }
            }
            Some(_) => {
                let repeated = std::mem::take(&mut self.repeated);
                self.begin();
                for named in repeated.into_iter().chain([named]) {
                    self.insert_fact(named);
                }
            }
            None => {
                self.repeated.clear();
                self.insert_fact(named);
            }
        }
    }

    fn insert_fact(&mut self, (block, name, value): NamedFact) {
        let Some(block) = block else {
            self.current.set(name, value);
            return;
        };
        let mut map = self.current.get(&block).and_then(Value::as_object).cloned().unwrap_or_default();
        map.insert(name, value);
        self.current.set(block, Value::Object(map));
    }

    /// Ends the current report, and returns all reports that `keep` accepts.
    pub(crate) fn finish(mut self, keep: impl Fn(&Facts) -> bool) -> Finished {
        self.begin();
        self.completed.retain(|report| keep(report));
        Finished { reports: self.completed, dropped: self.dropped }
    }
}

/// Settings common to several results of a reading. A setting in which results differ is dropped.
#[derive(Debug, Default)]
pub(crate) struct CommonSettings(BTreeMap<&'static str, Option<Value>>);

impl CommonSettings {
    /// Adds a setting of one result.
    pub(crate) fn add(&mut self, name: &'static str, value: impl Into<Value>) {
        let value = value.into();
        let known = self.0.entry(name).or_insert_with(|| Some(value.clone()));
        if known.as_ref() != Some(&value) {
            *known = None;
        }
    }

    /// Returns the settings in which all results agree, and those of the user.
    pub(crate) fn config(&self, context: &Context) -> Config {
        let mut config = Config::default();
        for (name, value) in &self.0 {
            if let Some(value) = value {
                config.note(name, value.clone(), Origin::File);
            }
        }
        config.merge(&context.settings);
        config
    }
}

/// Completed reports.
#[derive(Debug)]
pub(crate) struct Finished {
    reports: Vec<Facts>,
    dropped: usize,
}

impl Finished {
    pub(crate) fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }

    /// Returns a fact if it has the same value in all reports.
    pub(crate) fn common(&self, name: &str) -> Option<&Value> {
        let value = self.reports.first()?.get(name)?;
        self.reports.iter().all(|report| report.get(name) == Some(value)).then_some(value)
    }

    /// Returns the facts of the only report, or several reports listed under `results`, and notes.
    pub(crate) fn facts(mut self) -> (Facts, Vec<String>) {
        let mut notes = Vec::new();
        if self.dropped > 0 {
            notes.push(format!("{} more reports are not listed", self.dropped));
        }
        if self.reports.len() == 1 {
            return (self.reports.pop().unwrap_or_default(), notes);
        }
        let mut facts = Facts::default();
        facts.set("blocks", self.reports.len());
        facts.set("results", self.reports.into_iter().map(flattened).collect::<Vec<Value>>());
        (facts, notes)
    }
}

/// Flattens the blocks of a report for a list: `ttft_ms.median`.
pub(crate) fn flattened(facts: Facts) -> Value {
    let mut out = Map::new();
    for (name, value) in facts.iter() {
        match value {
            Value::Object(block) => {
                out.extend(block.iter().map(|(inner, value)| (format!("{name}.{inner}"), value.clone())));
            }
            value => {
                out.insert(name.to_owned(), value.clone());
            }
        }
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_field_name_starts_another_report() {
        let mut reports = Reports::default();
        for (rate, p50) in [(1.0, 10.0), (2.0, 10.0)] {
            reports.set("requests", 5);
            reports.set("rate", rate);
            reports.set_in("ttft_ms", "p50", p50);
        }
        let finished = reports.finish(|_| true);
        assert_eq!(finished.common("requests"), Some(&5.into()));
        assert_eq!(finished.common("rate"), None);
        let (facts, _) = finished.facts();
        let expected = serde_json::json!([
            {"requests": 5, "rate": 1.0, "ttft_ms.p50": 10.0},
            {"requests": 5, "rate": 2.0, "ttft_ms.p50": 10.0},
        ]);
        assert_eq!(facts.get("results"), Some(&expected));
    }

    #[test]
    fn identical_report_of_another_rank_is_not_counted_again() {
        let mut reports = Reports::default();
        for _ in 0..3 {
            reports.set("requests", 5);
            reports.set("rate", 1.5);
        }
        let (facts, _) = reports.finish(|_| true).facts();
        assert_eq!((facts.number("rate"), facts.get("blocks")), (Some(1.5), None));
    }
}
