//! Entries of the history: records of runs, predictions and measurements.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _};

use atlas_core::sort;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::secrets::{mask, mask_document, mask_words};

/// Format version of entries. Readers accept this version and older ones.
pub(super) const FORMAT: u32 = 1;

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// An estimate.
    Prediction,
    /// A search for better knobs.
    Optimum,
    /// A sweep over knobs.
    Sweep,
    /// A simulation.
    Simulation,
    /// Metrics read from a log.
    Measurement,
    /// A job that was watched against its prediction.
    Run,
    /// A job that was submitted.
    Submission,
    /// Constants fitted to measurements.
    Calibration,
}

impl EntryKind {
    /// All kinds.
    pub const ALL: [EntryKind; 8] = [
        EntryKind::Prediction,
        EntryKind::Optimum,
        EntryKind::Sweep,
        EntryKind::Simulation,
        EntryKind::Measurement,
        EntryKind::Run,
        EntryKind::Submission,
        EntryKind::Calibration,
    ];

    /// Name of the kind in files, file names and flags.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EntryKind::Prediction => "prediction",
            EntryKind::Optimum => "optimum",
            EntryKind::Sweep => "sweep",
            EntryKind::Simulation => "simulation",
            EntryKind::Measurement => "measurement",
            EntryKind::Run => "run",
            EntryKind::Submission => "submission",
            EntryKind::Calibration => "calibration",
        }
    }

    /// Returns the kind with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<EntryKind> {
        EntryKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Provenance of an entry: program version, machine and command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Version of this program.
    pub version: String,
    /// Host name of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The command line, with secrets masked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}

impl Origin {
    /// Provenance of an entry that the current process writes.
    #[must_use]
    pub fn of_process(version: &str) -> Origin {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
        let directory = std::env::current_dir().ok().map(|directory| directory.display().to_string());
        Origin {
            version: version.to_owned(),
            host: host.map(|host| host.trim().to_owned()).filter(|host| !host.is_empty()),
            directory,
            command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        }
    }
}

/// An entry without an id.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    /// The target, by name.
    pub target: Option<String>,
    /// The workload, by name.
    pub workload: Option<String>,
    /// The software and its release.
    pub software: Option<String>,
    /// The engine that made the estimate, or the tool that made the measurement.
    pub engine: Option<String>,
    /// Time of the event; `None` means now.
    pub at: Option<Timestamp>,
    /// Metrics by name. The name includes the unit.
    pub figures: BTreeMap<String, f64>,
    /// All inputs that determine the metrics: knobs, files and their contents.
    pub inputs: BTreeMap<String, Value>,
    /// Ids of the entries from which this one was derived.
    pub sources: Vec<String>,
    /// The complete record.
    pub body: Value,
    /// Provenance.
    pub origin: Origin,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Format version.
    pub history: u32,
    /// Id, which is also the name of its file.
    pub id: String,
    /// Time of the event, RFC 3339 in UTC.
    #[serde(with = "rfc3339")]
    pub at: Timestamp,
    /// Kind.
    pub kind: EntryKind,
    /// The target, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The workload, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// The software and its release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub software: Option<String>,
    /// The engine that made the estimate, or the tool that made the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Metrics by name.
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
    /// All inputs that determine the metrics.
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    /// Ids of the entries from which this one was derived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Provenance.
    #[serde(default)]
    pub origin: Origin,
    /// The complete record.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
}

impl Entry {
    /// Name and value of the metric that stands for the entry in lists.
    #[must_use]
    pub fn headline(&self) -> Option<(&str, f64)> {
        let names = [
            "step_time_s",
            "step_time_ms",
            "tokens_per_sec",
            "summary.steady_tokens_per_sec",
            "summary.tokens_per_sec",
            "tokens_per_s",
            "time_per_token_s",
            "points",
        ];
        let named = names.into_iter().find_map(|name| Some((name, *self.figures.get(name)?)));
        named.or_else(|| self.figures.iter().next().map(|(name, value)| (name.as_str(), *value)))
    }

    /// Time of the event to the minute: `2026-11-22 14:05`.
    #[must_use]
    pub fn minute(&self) -> String {
        self.at.strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// Creates an entry with a new id. Masks secrets and leaves out metrics that are not finite.
    #[must_use]
    pub fn new(kind: EntryKind, draft: Draft) -> Entry {
        let at = draft.at.unwrap_or_else(Timestamp::now);
        let masked = |text: Option<String>| text.map(|text| mask(&text));
        let inputs = sort::collect_unsorted(draft.inputs);
        let inputs = match mask_document(&Value::Object(inputs)) {
            Value::Object(map) => sort::collect_unsorted(map),
            _ => BTreeMap::new(),
        };
        Entry {
            history: FORMAT,
            id: id(kind, at),
            at: Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at),
            kind,
            target: masked(draft.target),
            workload: masked(draft.workload),
            software: masked(draft.software),
            engine: masked(draft.engine),
            figures: sort::collect_unsorted(draft.figures.into_iter().filter(|(_, value)| value.is_finite())),
            inputs,
            sources: draft.sources,
            origin: Origin { command: mask_words(draft.origin.command), ..draft.origin },
            body: mask_document(&draft.body),
        }
    }

    /// Replaces the random part of the id with a hash of `contents`, so that equal contents get the same id.
    #[must_use]
    pub fn named_after(mut self, contents: &[u8]) -> Entry {
        // FNV-1a.
        let hash =
            contents.iter().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
        let at = self.id.rfind('-').map_or(self.id.len(), |at| at + 1);
        self.id.truncate(at);
        self.id += &format!("{hash:08x}");
        self
    }

    /// Short name for lists: the last part of the id, which is random or a hash.
    #[must_use]
    pub fn handle(&self) -> &str {
        self.id.rsplit('-').next().unwrap_or(&self.id)
    }
}

/// Returns an id such as `20261122T215434123-prediction-3fa9c1d2`. Sorting ids sorts the entries by time.
fn id(kind: EntryKind, at: Timestamp) -> String {
    let chance = std::hash::RandomState::new().build_hasher().finish() >> 32;
    let moment = at.strftime("%Y%m%dT%H%M%S");
    let milliseconds = at.as_millisecond().rem_euclid(1000);
    format!("{moment}{milliseconds:03}-{}-{chance:08x}", kind.name())
}

/// Serializes timestamps as RFC 3339 text.
mod rfc3339 {
    use jiff::Timestamp;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(at)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_masks_secrets_and_drops_non_finite_metrics() {
        let draft = Draft {
            figures: BTreeMap::from([("a".to_owned(), 1.5), ("b".to_owned(), f64::NAN)]),
            inputs: BTreeMap::from([("HF_TOKEN".to_owned(), "abcdefgh".into()), ("tp".to_owned(), "8".into())]),
            body: serde_json::json!({"script": "export API_KEY=abcdefgh"}),
            origin: Origin {
                command: ["atlas", "submit", "--token", "abcdefgh"].map(str::to_owned).to_vec(),
                ..Origin::default()
            },
            ..Draft::default()
        };
        let entry = Entry::new(EntryKind::Submission, draft);
        let text = serde_json::to_string(&entry).unwrap();
        assert!(!text.contains("abcdefgh"), "{text}");
        assert_eq!(entry.figures.len(), 1);
        assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
        assert_eq!(entry.handle().len(), 8);
    }

    #[test]
    fn entry_kind_names_round_trip() {
        for kind in EntryKind::ALL {
            assert_eq!(EntryKind::named(kind.name()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
