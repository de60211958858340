//! Training and serving software: families, releases, and their traits.
//!
//! `workload/software/ID.yaml` describes a family: its names, its releases and what changed with each of them, with
//! sources. A trait applies from a release until a later one changes it. Device-dependent traits are under `devices`. A
//! family may be based on another one (`base`), whose traits apply unless it states its own. Documents are decoded on
//! demand.

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

/// A software family at a release.
#[derive(Debug, Clone, PartialEq)]
pub struct Software {
    /// The family.
    pub family: Arc<Family>,
    /// Index of the release in the family; `None` if the family has no releases.
    pub release: Option<usize>,
    /// Why the release may differ from the requested one.
    pub caveat: Option<Caveat>,
}

/// Reasons why another release than the requested one is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caveat {
    /// No release was stated, so the newest known one is used.
    Newest,
    /// The newest release available at a date.
    OfDate(Day),
    /// The stated release is not known, so the nearest earlier one is used.
    Earlier {
        /// Stated release.
        requested: String,
        /// Whether it is later than all known releases.
        beyond: bool,
    },
    /// On this device, a plug-in is used instead of the software.
    Plugin(String),
}

impl Software {
    /// The release, if the family has any.
    #[must_use]
    pub fn release(&self) -> Option<&Release> {
        self.release.and_then(|index| self.family.releases.get(index))
    }

    /// Returns the specification as in documents: `vllm@0.11.0`, or the id only.
    #[must_use]
    pub fn spec(&self) -> String {
        match self.release() {
            Some(release) => format!("{}@{}", self.family.id, release.id),
            None => self.family.id.clone(),
        }
    }

    /// States in one sentence which release is used instead of the requested one. `None` if it was stated and is known.
    #[must_use]
    pub fn caveat_text(&self) -> Option<String> {
        let (name, used) = (&self.family.name, self.spec());
        Some(match self.caveat.as_ref()? {
            Caveat::Newest => format!("no release stated: using {used}, the newest known"),
            Caveat::OfDate(date) => format!("no release stated: using {used}, the newest at {date}"),
            Caveat::Plugin(requested) => format!("using {used} for {requested}, which needs it on this accelerator"),
            Caveat::Earlier { requested, beyond: false } => {
                format!("release {requested} of {name} is not listed: using {used}, the nearest before it")
            }
            Caveat::Earlier { requested, beyond: true } => {
                format!("release {requested} of {name} is newer than all listed: using {used}")
            }
        })
    }
}

/// Parses a software specification and resolves it for a device. Shorthand for scenarios.
///
/// # Errors
/// See [`Software::parse_for`].
pub fn resolve(spec: &str, kind: SoftwareKind, class: &AcceleratorClass<'_>) -> Result<Resolved, SoftwareError> {
    Software::parse_for(spec, kind).map(|software| software.resolve(class))
}

/// Ids of all families in alphabetical order. Does not decode any document.
pub fn ids() -> impl Iterator<Item = &'static str> {
    registry::ids()
}

/// Returns all families, sorted by id.
#[must_use]
pub fn families() -> Vec<Arc<Family>> {
    registry::ids().filter_map(registry::by_id).collect()
}

/// Returns the family with this id.
#[must_use]
pub fn family(id: &str) -> Option<Arc<Family>> {
    registry::by_id(id)
}
