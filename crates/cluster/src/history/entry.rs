//! What the history keeps of one run, prediction or measurement.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _};

use atlas_core::sort;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::secrets::{mask, mask_document, mask_words};

/// Version of the format of entries; readers take this one and older ones.
pub(super) const FORMAT: u32 = 1;

/// What an entry is of.
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
    /// Figures out of a log.
    Measurement,
    /// A job that was watched against its prediction.
    Run,
    /// A job that was submitted.
    Submission,
    /// Constants fitted to measurements.
    Calibration,
}

impl EntryKind {
    /// Every kind.
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

    /// Its name in files, file names and flags.
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

    /// The kind of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<EntryKind> {
        EntryKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Who made an entry, where, and with which command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Version of this program.
    pub version: String,
    /// Name of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The command line, secrets masked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}

impl Origin {
    /// This process.
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

/// An entry before it has a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    /// The target, by name.
    pub target: Option<String>,
    /// The workload, by name.
    pub workload: Option<String>,
    /// The software and its release.
    pub software: Option<String>,
    /// The engine that answered, or the tool that measured.
    pub engine: Option<String>,
    /// When it happened, where that is not now.
    pub at: Option<Timestamp>,
    /// Figures by name, with the unit in the name.
    pub figures: BTreeMap<String, f64>,
    /// Everything the figures follow from: knobs, files and their contents.
    pub inputs: BTreeMap<String, Value>,
    /// Entries that this one came from.
    pub sources: Vec<String>,
    /// The whole record.
    pub body: Value,
    /// Who made it.
    pub origin: Origin,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Version of the format.
    pub history: u32,
    /// Its name, which is also the name of its file.
    pub id: String,
    /// When it happened, RFC 3339 in UTC.
    #[serde(with = "rfc3339")]
    pub at: Timestamp,
    /// What it is of.
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
    /// The engine that answered, or the tool that measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Figures by name.
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
    /// Everything the figures follow from.
    #[serde(default)]
    pub inputs: BTreeMap<String, Value>,
    /// Entries that this one came from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Who made it.
    #[serde(default)]
    pub origin: Origin,
    /// The whole record.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
}

impl Entry {
    /// A draft with a name of its own; secrets are masked, figures that are not finite left out.
    #[must_use]
    pub fn new(kind: EntryKind, draft: Draft) -> Entry {
        let at = draft.at.unwrap_or_else(Timestamp::now);
        let masked = |text: Option<String>| text.map(|text| mask(&text));
        let inputs = sort::filled(draft.inputs);
        let inputs = match mask_document(&Value::Object(inputs)) {
            Value::Object(map) => sort::filled(map),
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
            figures: sort::filled(draft.figures.into_iter().filter(|(_, value)| value.is_finite())),
            inputs,
            sources: draft.sources,
            origin: Origin { command: mask_words(draft.origin.command), ..draft.origin },
            body: mask_document(&draft.body),
        }
    }

    /// Named by its contents instead of chance, so that the same contents again are the same entry.
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

    /// The short name in lists: the part of the id that chance made.
    #[must_use]
    pub fn handle(&self) -> &str {
        self.id.rsplit('-').next().unwrap_or(&self.id)
    }
}

/// `20261122T215434123-prediction-3fa9c1d2`: sorted by name they are sorted by time.
fn id(kind: EntryKind, at: Timestamp) -> String {
    let chance = std::hash::RandomState::new().build_hasher().finish() >> 32;
    let moment = at.strftime("%Y%m%dT%H%M%S");
    let milliseconds = at.as_millisecond().rem_euclid(1000);
    format!("{moment}{milliseconds:03}-{}-{chance:08x}", kind.name())
}

/// Moments as text.
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
    fn an_entry_holds_no_secret_and_no_figure_that_json_has_no_word_for() {
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
    fn every_kind_has_one_name() {
        for kind in EntryKind::ALL {
            assert_eq!(EntryKind::named(kind.name()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
