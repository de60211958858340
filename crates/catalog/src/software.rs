//! Training and serving software: families, releases, and the traits of each.
//!
//! `workload/software/ID.yaml` describes a family: its names, its releases and what changed with each, every statement
//! with its source. A trait applies from a release until a later one changes it; device-dependent traits are under
//! `devices`. A family may be based on another (`base`), whose traits apply unless it states its own. Nothing is decoded until it
//! is requested.

mod family;
mod fields;
mod name;
mod registry;
mod release;
mod resolve;
#[cfg(test)]
mod tests;
mod words;

use std::sync::Arc;

pub use family::{Confidence, Family, Release, SoftwareKind, Source};
pub use fields::{SERVING_FIELDS, TRAINING_FIELDS, TraitField};
pub use name::SoftwareError;
pub use release::{Day, Version};
pub use resolve::{AcceleratorClass, Profile, Resolved, TraitRow};

/// A family at a release.
#[derive(Debug, Clone, PartialEq)]
pub struct Software {
    /// The family.
    pub family: Arc<Family>,
    /// The release, by index into the family's; `None` of families without releases.
    pub release: Option<usize>,
    /// Why the release is not exactly what was requested.
    pub caveat: Option<Caveat>,
}

/// Why a release is used instead of the requested one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caveat {
    /// None was stated: the newest known one is used.
    Newest,
    /// The newest that was out at a date.
    OfDate(Day),
    /// The stated one is not known: the nearest earlier one.
    Earlier {
        /// What was stated.
        requested: String,
        /// It is later than all that are known.
        beyond: bool,
    },
    /// A plug-in runs in place of this software on the device.
    Plugin(String),
}

impl Software {
    /// The release, if the family has any.
    #[must_use]
    pub fn release(&self) -> Option<&Release> {
        self.release.and_then(|index| self.family.releases.get(index))
    }

    /// How documents spell it: `vllm@0.11.0`, or the id alone.
    #[must_use]
    pub fn spec(&self) -> String {
        match self.release() {
            Some(release) => format!("{}@{}", self.family.id, release.id),
            None => self.family.id.clone(),
        }
    }

    /// One sentence on why the release is assumed; `None` where it was stated and is known.
    #[must_use]
    pub fn caveat_text(&self) -> Option<String> {
        let (name, release) = (&self.family.name, self.release()?.id.as_str());
        Some(match self.caveat.as_ref()? {
            Caveat::Newest => format!("release of {name} not stated; {release}, the newest known, is assumed"),
            Caveat::OfDate(date) => {
                format!("release of {name} not stated; {release}, the newest at {date}, is assumed")
            }
            Caveat::Plugin(requested) => format!("{name} {release} stands for {requested} on this device"),
            Caveat::Earlier { requested, beyond: false } => {
                format!(
                    "release {requested} of {name} is not listed; traits are those of {release}, the nearest before it"
                )
            }
            Caveat::Earlier { requested, beyond: true } => {
                format!("release {requested} of {name} is newer than all listed; traits are those of {release}")
            }
        })
    }
}

/// Reads a text and resolves it on a device: the short way for scenarios.
///
/// # Errors
/// As [`Software::parse_for`].
pub fn resolve(spec: &str, kind: SoftwareKind, class: &AcceleratorClass<'_>) -> Result<Resolved, SoftwareError> {
    Software::parse_for(spec, kind).map(|software| software.resolve(class))
}

/// Ids of all families, in alphabetical order; nothing is decoded.
pub fn ids() -> impl Iterator<Item = &'static str> {
    registry::ids()
}

/// Every family, in the order of their ids.
#[must_use]
pub fn families() -> Vec<Arc<Family>> {
    registry::ids().filter_map(registry::by_id).collect()
}

/// The family of that id.
#[must_use]
pub fn family(id: &str) -> Option<Arc<Family>> {
    registry::by_id(id)
}
