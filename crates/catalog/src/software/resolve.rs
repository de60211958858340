//! Resolves the traits of a release on a device.

use std::sync::Arc;

use atlas_perf::traits::{ServingTraits, TrainingTraits};

use super::family::{Change, DeviceRule, Family, Release, SoftwareKind, StatedTrait};
use super::fields::{SERVING_FIELDS, ServingChange, TRAINING_FIELDS, TrainingChange};
use super::release::Day;
use super::{Caveat, Software, registry};
use crate::Accelerator;
use crate::accelerator::Peaks;

/// Maximum depth of families based on other families.
const MAX_DEPTH: usize = 4;

/// Properties of a device on which traits may depend, in the terms of the accelerator catalog.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AcceleratorClass<'a> {
    /// Vendor.
    pub vendor: &'a str,
    /// Architecture or family: Hopper, CDNA3, TPU …
    pub generation: &'a str,
    /// Device memory as stated in the datasheet, GB. That of one die if software sees dies as devices.
    pub memory_gb: f64,
    /// Peak rates of the supported formats.
    pub formats: Peaks,
}

impl<'a> AcceleratorClass<'a> {
    /// Returns the class of a catalog entry that software sees as `dies` devices.
    #[must_use]
    pub fn of(accelerator: &'a Accelerator, dies: f64) -> AcceleratorClass<'a> {
        AcceleratorClass {
            vendor: &accelerator.vendor,
            generation: &accelerator.generation,
            memory_gb: accelerator.memory.gb / dies.max(1.0),
            formats: accelerator.peaks,
        }
    }

    fn has(&self, format: &str) -> bool {
        self.formats.all().iter().any(|(name, rate)| *name == format && rate.is_some())
    }
}

impl DeviceRule {
    fn applies(&self, class: &AcceleratorClass<'_>, release: Option<usize>) -> bool {
        let among = |words: &[String], word: &str| words.iter().any(|one| one.eq_ignore_ascii_case(word));
        (self.vendors.is_empty() || among(&self.vendors, class.vendor))
            && (self.generations.is_empty() || among(&self.generations, class.generation))
            && !among(&self.excluded_generations, class.generation)
            && self.memory_gb_at_least.is_none_or(|least| class.memory_gb >= least)
            && self.memory_gb_below.is_none_or(|most| class.memory_gb < most)
            && !self.lacks.iter().any(|format| class.has(format))
            && self.from.is_none_or(|from| release.is_some_and(|release| release >= from))
            && self.until.is_none_or(|until| release.is_none_or(|release| release < until))
    }
}

/// Place in a family document at which a trait is stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatementScope {
    Always,
    Since(usize),
    Device,
}

/// Visits all statements that apply to a release on a device. Later ones override earlier ones.
pub(super) fn visit_statements(
    family: &Family,
    release: Option<usize>,
    class: &AcceleratorClass<'_>,
    visit: &mut dyn FnMut(&Family, StatementScope, &StatedTrait),
) {
    visit_statements_below(family, release, class, visit, 0);
}

fn visit_statements_below(
    family: &Family,
    release: Option<usize>,
    class: &AcceleratorClass<'_>,
    visit: &mut dyn FnMut(&Family, StatementScope, &StatedTrait),
    depth: usize,
) {
    if depth < MAX_DEPTH
        && let Some((base, base_release)) = base_of(family, release)
    {
        visit_statements_below(&base, base_release, class, visit, depth + 1);
    }
    family.stated.iter().for_each(|stated| visit(family, StatementScope::Always, stated));
    for (index, one) in family.releases.iter().enumerate().take(release.map_or(0, |index| index + 1)) {
        one.stated.iter().for_each(|stated| visit(family, StatementScope::Since(index), stated));
    }
    for rule in family.devices.iter().filter(|rule| rule.applies(class, release)) {
        rule.stated.iter().for_each(|stated| visit(family, StatementScope::Device, stated));
    }
}

/// Returns the base family and its release: the stated release, else the newest at the date of the own release, else
/// the newest.
fn base_of(family: &Family, release: Option<usize>) -> Option<(Arc<Family>, Option<usize>)> {
    let base = registry::by_id(family.base.as_deref()?)?;
    let Some(own) = release.and_then(|index| family.releases.get(index)) else {
        let newest = base.releases.len().checked_sub(1);
        return Some((base, newest));
    };
    if let Some(requested) = own.base_version {
        let known = |one: &Release| {
            one.version_with_scheme_of(requested).and_then(|version| version.partial_compare(requested))
        };
        let found = base.releases.iter().rposition(|one| known(one).is_some_and(std::cmp::Ordering::is_le));
        return Some((base, found));
    }
    match own.date {
        Some(date) => Some(newest_release_at(base, date)),
        None => {
            let newest = base.releases.len().checked_sub(1);
            Some((base, newest))
        }
    }
}

/// Returns the newest release available at a date, of the family or, before its first release, of its predecessor. The
/// release is `None` if none was available.
pub(super) fn newest_release_at(family: Arc<Family>, date: Day) -> (Arc<Family>, Option<usize>) {
    let mut at = family;
    for _ in 0..MAX_DEPTH {
        let found = at.releases.iter().rposition(|one| one.date.is_some_and(|day| day.may_precede_or_equal(date)));
        if found.is_some() {
            return (at, found);
        }
        match at.predecessor.as_deref().and_then(registry::by_id) {
            Some(earlier) => at = earlier,
            None => break,
        }
    }
    (at, None)
}

/// Traits in two variants: with default settings, and tuned for performance.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Profile<T> {
    /// Traits with default settings.
    pub default: T,
    /// Traits with the settings of official recipes or the performance guide.
    pub tuned: T,
}

impl Resolved {
    /// Whether the software is known not to run on the devices of a vendor.
    #[must_use]
    pub fn is_unsupported_by_vendor(&self, vendor: &str) -> bool {
        self.family.is_unsupported_by_vendor(vendor)
    }

    /// Returns the software with its release and caveat.
    #[must_use]
    pub fn software(&self) -> Software {
        Software { family: Arc::clone(&self.family), release: self.release, caveat: self.caveat.clone() }
    }
}

/// Traits of software on a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The family.
    pub family: Arc<Family>,
    /// Index of the release in the family; `None` if the family has no releases.
    pub release: Option<usize>,
    /// Why the release may differ from the requested one.
    pub caveat: Option<Caveat>,
    /// Training traits, if the software is for training.
    pub training: Option<Profile<TrainingTraits>>,
    /// Serving traits, if the software is for serving.
    pub serving: Option<Profile<ServingTraits>>,
}

impl Software {
    /// Returns the plug-in that is used instead of this software on a device, at the release of the same date. `None`
    /// if there is no plug-in for the device.
    #[must_use]
    pub fn plugin_for(&self, class: &AcceleratorClass<'_>) -> Option<Software> {
        let matching = |key: &str| key.eq_ignore_ascii_case(class.vendor) || key.eq_ignore_ascii_case(class.generation);
        let (_, id) = self.family.plugins.iter().find(|(key, _)| matching(key))?;
        let family = registry::by_id(id)?;
        let newest = family.releases.len().checked_sub(1);
        let dated = match (self.caveat.as_ref(), self.release().and_then(|release| release.date)) {
            (Some(Caveat::Newest), _) | (_, None) => newest,
            (_, Some(date)) => {
                newest_release_at(Arc::clone(&family), date).1.or((!family.releases.is_empty()).then_some(0))
            }
        };
        Some(Software { caveat: dated.map(|_| Caveat::Plugin(self.spec())), family, release: dated })
    }

    /// Resolves the traits on a device. If there is a plug-in for the device, the traits are those of the plug-in.
    #[must_use]
    pub fn resolve(&self, class: &AcceleratorClass<'_>) -> Resolved {
        match self.plugin_for(class) {
            Some(plugin) => plugin.resolve_without_plugin(class),
            None => self.resolve_without_plugin(class),
        }
    }

    fn resolve_without_plugin(&self, class: &AcceleratorClass<'_>) -> Resolved {
        let (mut training, mut serving) = (Profile::<TrainingTraits>::default(), Profile::<ServingTraits>::default());
        visit_statements(&self.family, self.release, class, &mut |_, _, stated| {
            let tuned = stated.tuned.unwrap_or(stated.default);
            match (&stated.default, &tuned) {
                (Change::Training(default), Change::Training(tuned)) => {
                    default.apply(&mut training.default);
                    tuned.apply(&mut training.tuned);
                }
                (Change::Serving(default), Change::Serving(tuned)) => {
                    default.apply(&mut serving.default);
                    tuned.apply(&mut serving.tuned);
                }
                _ => {}
            }
        });
        let kind = self.family.kind;
        Resolved {
            family: Arc::clone(&self.family),
            release: self.release,
            caveat: self.caveat.clone(),
            training: kind.trains().then_some(training),
            serving: kind.serves().then_some(serving),
        }
    }

    /// Returns all traits with value, source and first release. If there is a plug-in for the device, the traits are
    /// those of the plug-in.
    #[must_use]
    pub fn traits(&self, class: &AcceleratorClass<'_>) -> Vec<TraitRow> {
        match self.plugin_for(class) {
            Some(plugin) => plugin.traits_without_plugin(class),
            None => self.traits_without_plugin(class),
        }
    }

    fn traits_without_plugin(&self, class: &AcceleratorClass<'_>) -> Vec<TraitRow> {
        let mut rows: Vec<TraitRow> = Vec::new();
        let mut assumed = |kind: SoftwareKind, help: &'static str, change: Change| {
            rows.push(TraitRow {
                kind,
                key: change.key(),
                help,
                value: change.format_value(),
                tuned: None,
                since: None,
                family: None,
                source: "not documented; assumed to be as in most software of this kind".to_owned(),
                confidence: super::Confidence::Assumed,
            });
        };
        if self.family.kind.trains() {
            let all = TrainingChange::all(&TrainingTraits::default());
            for (change, field) in all.into_iter().zip(TRAINING_FIELDS) {
                assumed(SoftwareKind::Training, field.help, Change::Training(change));
            }
        }
        if self.family.kind.serves() {
            let all = ServingChange::all(&ServingTraits::default());
            for (change, field) in all.into_iter().zip(SERVING_FIELDS) {
                assumed(SoftwareKind::Serving, field.help, Change::Serving(change));
            }
        }
        visit_statements(&self.family, self.release, class, &mut |family, place, stated| {
            let kind = if stated.default.trains() { SoftwareKind::Training } else { SoftwareKind::Serving };
            let key = stated.default.key();
            let Some(row) = rows.iter_mut().find(|row| row.kind == kind && row.key == key) else { return };
            let Some(source) = family.source(stated.source) else { return };
            let release = match place {
                StatementScope::Since(index) => family.releases.get(index).map(|release| release.id.clone()),
                StatementScope::Always | StatementScope::Device => None,
            };
            *row = TraitRow {
                value: stated.default.format_value(),
                tuned: stated.tuned.map(|tuned| tuned.format_value()),
                since: release,
                family: (family.id != self.family.id).then(|| family.id.clone()),
                source: source.text.clone(),
                confidence: source.confidence,
                ..*row
            };
        });
        rows
    }

    /// Returns the traits in which this software differs from `other`, each with the row of this software first.
    #[must_use]
    pub fn difference(&self, other: &Software, class: &AcceleratorClass<'_>) -> Vec<(TraitRow, TraitRow)> {
        let theirs = other.traits(class);
        let pairs = self.traits(class).into_iter().filter_map(|own| {
            let matching = theirs.iter().find(|row| row.kind == own.kind && row.key == own.key)?.clone();
            (own.value != matching.value || own.tuned != matching.tuned).then_some((own, matching))
        });
        pairs.collect()
    }
}

/// A trait for display in tables.
#[derive(Debug, Clone, PartialEq)]
pub struct TraitRow {
    /// Whether the trait is of training or serving.
    pub kind: SoftwareKind,
    /// Key in documents.
    pub key: &'static str,
    /// Description.
    pub help: &'static str,
    /// Value.
    pub value: String,
    /// Value in the official recipes, if different.
    pub tuned: Option<String>,
    /// First release with this value. `None` if it has always applied, as far as known.
    pub since: Option<String>,
    /// Base family that states the value. `None` if it is stated by the family itself or assumed.
    pub family: Option<String>,
    /// Source.
    pub source: String,
    /// How well the source was verified.
    pub confidence: super::Confidence,
}
