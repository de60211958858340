//! Finds the family and release that a text refers to: `vllm@0.11`, `NVIDIA NeMo Framework (NGC 25.02)`.

use atlas_document::suggestion::{clause, nearest};
use std::sync::Arc;

use thiserror::Error;

use super::family::{Family, Release, SoftwareKind};
use super::release::{Day, Version};
use super::resolve::newest_release_at;
use super::words::{is_version, normalized_words};
use super::{Caveat, Software, registry};

/// Words that may occur between a name and its release.
const RELEASE_PREFIX_WORDS: [&str; 8] = ["release", "version", "build", "v", "framework", "ngc", "container", "image"];
/// Words that denote the newest release.
const NEWEST_WORDS: [&str; 7] = ["latest", "newest", "main", "nightly", "master", "dev", "branch"];

/// Reasons why a text does not refer to known software.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SoftwareError {
    /// There is no family with this name.
    #[error("no software `{name}`{}", suggestion(name))]
    Family {
        /// Requested name.
        name: String,
    },
    /// The family is for another purpose.
    #[error("{family} does not support {wanted}")]
    Kind {
        /// Id of the family.
        family: String,
        /// Requested purpose.
        wanted: &'static str,
    },
    /// The family has no such release.
    #[error("no release `{release}` of {family}; known releases: {known}")]
    Release {
        /// Id of the family.
        family: String,
        /// Requested release.
        release: String,
        /// Known releases.
        known: String,
    },
}

impl Software {
    /// Like [`Software::parse`], but returns `None` instead of an error.
    #[must_use]
    pub fn find(name: &str) -> Option<Software> {
        Software::parse(name).ok()
    }

    /// Parses the name of software: `id`, `id@release`, an alias, or free text that contains an alias and possibly a
    /// release. Without a release, the newest one is used. A release between two known ones is resolved to the earlier
    /// one. A release after the newest one is resolved to the newest one if both have the same major version.
    /// [`Software::caveat`] states such substitutions. If a name denotes different families for training and serving,
    /// use [`Software::parse_for`].
    ///
    /// # Errors
    /// Suggests a similar family, or lists the releases.
    pub fn parse(text: &str) -> Result<Software, SoftwareError> {
        read(text, None)
    }

    /// Like [`Software::parse`], restricted to families for training or serving.
    ///
    /// # Errors
    /// See [`Software::parse`]. Also if the family is not for the requested purpose.
    pub fn parse_for(text: &str, kind: SoftwareKind) -> Result<Software, SoftwareError> {
        match read(text, Some(kind)) {
            Err(SoftwareError::Family { .. }) => {}
            found => return found,
        }
        match read(text, None) {
            Ok(other) => Err(SoftwareError::Kind { family: other.family.id.clone(), wanted: kind.name() }),
            Err(error) => Err(error),
        }
    }

    /// Returns the newest release of a family, or of its predecessor, that was available at `date`, or the oldest if
    /// none was. Returns `None` if there is no such family.
    #[must_use]
    pub fn released_by(family: &str, date: Day) -> Option<Software> {
        match_in_text(family, None).map(|found| with_release_at(found.family, date))
    }
}

fn read(text: &str, kind: Option<SoftwareKind>) -> Result<Software, SoftwareError> {
    let text = text.trim();
    let fits = |family: &Arc<Family>| kind.is_none_or(|kind| family.kind.supports(kind));
    if let Some((name, release)) = text.split_once('@') {
        let family = match registry::by_id(name).filter(fits) {
            Some(family) => Some(family),
            None if name.trim().contains(char::is_whitespace) => match_in_text(name, kind).map(|found| found.family),
            None => match_whole_text(name, kind).map(|found| found.family),
        };
        return with_release(family.ok_or_else(|| unknown(name))?, release.trim());
    }
    if let Some(family) = registry::by_id(text).filter(fits) {
        return Ok(with_newest_release(family));
    }
    let found = match_in_text(text, kind).ok_or_else(|| unknown(text))?;
    let Some(release) = stated_release(&found) else { return Ok(with_newest_release(found.family)) };
    // Container images numbered by month contain the release of that month.
    match Version::parse(&release).and_then(Version::month) {
        Some(month) if !found.family.releases.iter().any(Release::is_calendar) => {
            Ok(with_release_at(found.family, month))
        }
        _ => with_release(found.family, &release),
    }
}

fn with_release_at(family: Arc<Family>, date: Day) -> Software {
    let (family, release) = newest_release_at(family, date);
    let release = release.or((!family.releases.is_empty()).then_some(0));
    let caveat = release.is_some().then_some(Caveat::OfDate(date));
    Software { family, release, caveat }
}

struct FamilyMatch {
    family: Arc<Family>,
    /// The words of the text.
    words: Vec<String>,
    /// Index after the last word of the family's name.
    end: usize,
}

/// Iterates over the names of families of a kind, or of all families.
fn names(kind: Option<SoftwareKind>) -> impl Iterator<Item = &'static registry::Name> {
    registry::names().iter().filter(move |name| kind.is_none_or(|kind| name.kind.supports(kind)))
}

/// Finds the family whose name is the whole text.
fn match_whole_text(text: &str, kind: Option<SoftwareKind>) -> Option<FamilyMatch> {
    let words = normalized_words(text);
    let name = names(kind).find(|name| name.words == words)?;
    Some(FamilyMatch { family: registry::by_id(name.id)?, end: words.len(), words })
}

/// Finds the family that a text refers to: by the whole text, else by the longest name in it, of several the first.
fn match_in_text(text: &str, kind: Option<SoftwareKind>) -> Option<FamilyMatch> {
    if let Some(found) = match_whole_text(text, kind) {
        return Some(found);
    }
    let words = normalized_words(text);
    let mut best: Option<(&registry::Name, usize)> = None;
    for name in names(kind) {
        let at = words.windows(name.words.len()).position(|window| window == name.words.as_slice());
        let Some(at) = at else { continue };
        let better = best.is_none_or(|(known, begin)| {
            (name.words.len(), std::cmp::Reverse(at)) > (known.words.len(), std::cmp::Reverse(begin))
        });
        if better {
            best = Some((name, at));
        }
    }
    let (name, begin) = best?;
    Some(FamilyMatch { family: registry::by_id(name.id)?, end: begin + name.words.len(), words })
}

/// Returns the release stated by a text: a version number after the family's name, or after a word that may precede a
/// release.
fn stated_release(found: &FamilyMatch) -> Option<String> {
    let own = |word: &str| {
        RELEASE_PREFIX_WORDS.contains(&word)
            || found.family.release_words.iter().any(|own| own.eq_ignore_ascii_case(word))
    };
    let numbers = found.words.iter().enumerate().filter(|(index, word)| {
        let before = index.checked_sub(1).and_then(|before| found.words.get(before));
        let follows = *index == found.end || before.is_some_and(|before| own(before));
        follows && is_version(word)
    });
    numbers.map(|(_, word)| word.clone()).next()
}

fn with_newest_release(family: Arc<Family>) -> Software {
    let release = family.releases.len().checked_sub(1);
    Software { caveat: release.map(|_| Caveat::Newest), family, release }
}

fn with_release(family: Arc<Family>, requested: &str) -> Result<Software, SoftwareError> {
    let exact = family.releases.iter().position(|release| {
        release.id.eq_ignore_ascii_case(requested)
            || release.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(requested))
    });
    if let Some(index) = exact {
        return Ok(Software { family, release: Some(index), caveat: None });
    }
    let words = normalized_words(requested);
    let stated = words.iter().any(|word| is_version(word));
    if words.iter().any(|word| NEWEST_WORDS.contains(&word.as_str()))
        && (!stated || Version::parse(requested).is_none())
    {
        return Ok(with_newest_release(family));
    }
    let missing = |family: &Family| {
        let known: Vec<&str> = family.releases.iter().map(|release| release.id.as_str()).collect();
        let known = if known.is_empty() { "none; omit the release".to_owned() } else { known.join(", ") };
        SoftwareError::Release { family: family.id.clone(), release: requested.to_owned(), known }
    };
    // The version number within a text such as "Neuron SDK 2.18.0".
    let inner = || words.iter().find(|word| is_version(word)).and_then(|word| Version::parse(word));
    let Some(version) = Version::parse(requested).or_else(inner) else { return Err(missing(&family)) };
    // Only compare releases with the same numbering scheme. Projects may have changed the scheme.
    let alike: Vec<(usize, Version)> = family
        .releases
        .iter()
        .enumerate()
        .filter_map(|(index, release)| Some((index, release.version_with_scheme_of(version)?)))
        .collect();
    let newest =
        alike.iter().map(|(_, known)| *known).max_by(|a, b| a.partial_compare(*b).unwrap_or(std::cmp::Ordering::Equal));
    let best = alike
        .iter()
        .filter(|(_, known)| known.partial_compare(version).is_some_and(std::cmp::Ordering::is_le))
        .max_by(|a, b| a.1.partial_compare(b.1).unwrap_or(std::cmp::Ordering::Equal));
    let Some((index, known)) = best.copied() else { return Err(missing(&family)) };
    if known == version {
        return Ok(Software { family, release: Some(index), caveat: None });
    }
    let beyond = newest == Some(known);
    // Rejects probable typing errors: another major version, more than one year ahead, or more than twice the build
    // number.
    let most = match known.major() {
        build if build >= 1000 => 2 * build,
        year if version.is_calendar() => year + 1,
        major => major,
    };
    if beyond && version.major() > most {
        return Err(missing(&family));
    }
    let caveat = Some(Caveat::Earlier { requested: requested.to_owned(), beyond });
    Ok(Software { family, release: Some(index), caveat })
}

fn unknown(name: &str) -> SoftwareError {
    SoftwareError::Family { name: name.trim().chars().take(80).collect() }
}

/// Suggests a similar id, as a question. Computed when the error is displayed, because most callers discard the error.
fn suggestion(name: &str) -> String {
    let words = normalized_words(name).join(" ");
    let joined: Vec<(String, &str)> = registry::names().iter().map(|name| (name.words.join(" "), name.id)).collect();
    let near = nearest(&words, joined.iter().map(|(words, _)| words.as_str()));
    let near = near.and_then(|near| joined.iter().find(|(words, _)| words == near));
    clause(near.map(|(_, id)| *id))
}
