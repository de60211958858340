//! The traits of a release on a device.

use std::sync::Arc;

use atlas_perf::traits::{ServingTraits, TrainingTraits};

use super::family::{Change, DeviceRule, Family, Release, SoftwareKind, Stated};
use super::fields::{SERVING_FIELDS, ServingChange, TRAINING_FIELDS, TrainingChange};
use super::release::Day;
use super::{Caveat, Software, registry};
use crate::Accelerator;
use crate::accelerator::Peaks;

/// Families stand on families no deeper than this.
const MAX_DEPTH: usize = 4;

/// What of a device decides about traits, in the words of the accelerator catalog.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AcceleratorClass<'a> {
    /// Its vendor.
    pub vendor: &'a str,
    /// Architecture or family: Hopper, CDNA3, TPU …
    pub generation: &'a str,
    /// Device memory as the data sheet counts it, GB; of one die where software sees dies as devices.
    pub memory_gb: f64,
    /// Formats that it multiplies.
    pub formats: Peaks,
}

impl<'a> AcceleratorClass<'a> {
    /// The class of a catalog entry that software sees as so many devices.
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
            && !among(&self.not_generations, class.generation)
            && self.memory_gb_at_least.is_none_or(|least| class.memory_gb >= least)
            && self.memory_gb_below.is_none_or(|most| class.memory_gb < most)
            && !self.lacks.iter().any(|format| class.has(format))
            && self.from.is_none_or(|from| release.is_some_and(|release| release >= from))
            && self.until.is_none_or(|until| release.is_none_or(|release| release < until))
    }
}

/// Where in a family something is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Always,
    Since(usize),
    Device,
}

/// Everything said of a release on a device, in the order in which later statements win.
pub(super) fn walk(
    family: &Family,
    release: Option<usize>,
    class: &AcceleratorClass<'_>,
    visit: &mut dyn FnMut(&Family, Place, &Stated),
) {
    walk_below(family, release, class, visit, 0);
}

fn walk_below(
    family: &Family,
    release: Option<usize>,
    class: &AcceleratorClass<'_>,
    visit: &mut dyn FnMut(&Family, Place, &Stated),
    depth: usize,
) {
    if depth < MAX_DEPTH
        && let Some((base, base_release)) = footing(family, release)
    {
        walk_below(&base, base_release, class, visit, depth + 1);
    }
    family.stated.iter().for_each(|stated| visit(family, Place::Always, stated));
    for (index, one) in family.releases.iter().enumerate().take(release.map_or(0, |index| index + 1)) {
        one.stated.iter().for_each(|stated| visit(family, Place::Since(index), stated));
    }
    for rule in family.devices.iter().filter(|rule| rule.applies(class, release)) {
        rule.stated.iter().for_each(|stated| visit(family, Place::Device, stated));
    }
}

/// The family and release that a release stands on: the stated one, else the newest of its date, else the newest.
fn footing(family: &Family, release: Option<usize>) -> Option<(Arc<Family>, Option<usize>)> {
    let base = registry::by_id(family.base.as_deref()?)?;
    let Some(own) = release.and_then(|index| family.releases.get(index)) else {
        let newest = base.releases.len().checked_sub(1);
        return Some((base, newest));
    };
    if let Some(requested) = own.base_version {
        let known = |one: &Release| one.version_like(requested).and_then(|version| version.against(requested));
        let found = base.releases.iter().rposition(|one| known(one).is_some_and(std::cmp::Ordering::is_le));
        return Some((base, found));
    }
    match own.date {
        Some(date) => Some(newest_at(base, date)),
        None => {
            let newest = base.releases.len().checked_sub(1);
            Some((base, newest))
        }
    }
}

/// The newest release that was out at a date, of the family or, before its first, of its predecessor; no release where
/// none was out.
pub(super) fn newest_at(family: Arc<Family>, date: Day) -> (Arc<Family>, Option<usize>) {
    let mut at = family;
    for _ in 0..MAX_DEPTH {
        let found = at.releases.iter().rposition(|one| one.date.is_some_and(|day| day.not_after(date)));
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

/// A trait struct twice: as the software is out of the box, and as its makers run it for speed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Profile<T> {
    /// What it does by default.
    pub default: T,
    /// What it does under its own recipes or performance guide.
    pub tuned: T,
}

impl Resolved {
    /// Whether it is known not to run on the devices of a vendor.
    #[must_use]
    pub fn lacks(&self, vendor: &str) -> bool {
        !self.family.vendors.is_empty() && !self.family.vendors.iter().any(|one| one.eq_ignore_ascii_case(vendor))
    }

    /// Whether the release was not stated, or is not known exactly.
    #[must_use]
    pub fn release_assumed(&self) -> bool {
        self.caveat.is_some()
    }

    /// The software, to be named and explained.
    #[must_use]
    pub fn software(&self) -> Software {
        Software { family: Arc::clone(&self.family), release: self.release, caveat: self.caveat.clone() }
    }
}

/// What a piece of software does on a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The family.
    pub family: Arc<Family>,
    /// The release, by index into the family's; `None` of families without releases.
    pub release: Option<usize>,
    /// Why the release is not exactly what was requested.
    pub caveat: Option<Caveat>,
    /// What it does in training, if it trains.
    pub training: Option<Profile<TrainingTraits>>,
    /// What it does in serving, if it serves.
    pub serving: Option<Profile<ServingTraits>>,
}

impl Software {
    /// The software that runs in its place on a device: the plug-in for it, at the release of its date. `None`: there
    /// is no plug-in, and it runs itself.
    #[must_use]
    pub fn on(&self, class: &AcceleratorClass<'_>) -> Option<Software> {
        let matching = |key: &str| key.eq_ignore_ascii_case(class.vendor) || key.eq_ignore_ascii_case(class.generation);
        let (_, id) = self.family.plugins.iter().find(|(key, _)| matching(key))?;
        let family = registry::by_id(id)?;
        let newest = family.releases.len().checked_sub(1);
        let dated = match (self.caveat.as_ref(), self.release().and_then(|release| release.date)) {
            (Some(Caveat::Newest), _) | (_, None) => newest,
            (_, Some(date)) => newest_at(Arc::clone(&family), date).1.or((!family.releases.is_empty()).then_some(0)),
        };
        Some(Software { caveat: dated.map(|_| Caveat::Plugin(self.spec())), family, release: dated })
    }

    /// What it does on a device; a plug-in for the device answers in its place.
    #[must_use]
    pub fn resolve(&self, class: &AcceleratorClass<'_>) -> Resolved {
        match self.on(class) {
            Some(plugin) => plugin.resolve_itself(class),
            None => self.resolve_itself(class),
        }
    }

    fn resolve_itself(&self, class: &AcceleratorClass<'_>) -> Resolved {
        let (mut training, mut serving) = (Profile::<TrainingTraits>::default(), Profile::<ServingTraits>::default());
        walk(&self.family, self.release, class, &mut |_, _, stated| {
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

    /// Every trait with its value, its source and since when it holds; those of the plug-in where the device has one.
    #[must_use]
    pub fn traits(&self, class: &AcceleratorClass<'_>) -> Vec<TraitRow> {
        match self.on(class) {
            Some(plugin) => plugin.own_traits(class),
            None => self.own_traits(class),
        }
    }

    fn own_traits(&self, class: &AcceleratorClass<'_>) -> Vec<TraitRow> {
        let mut rows: Vec<TraitRow> = Vec::new();
        let mut assumed = |kind: SoftwareKind, help: &'static str, change: Change| {
            rows.push(TraitRow {
                kind,
                key: change.key(),
                help,
                value: change.show(),
                tuned: None,
                since: None,
                on_device: false,
                family: None,
                source: "not documented; what most software of its kind does".to_owned(),
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
        walk(&self.family, self.release, class, &mut |family, place, stated| {
            let kind = if stated.default.trains() { SoftwareKind::Training } else { SoftwareKind::Serving };
            let key = stated.default.key();
            let Some(row) = rows.iter_mut().find(|row| row.kind == kind && row.key == key) else { return };
            let Some(source) = family.source(stated.source) else { return };
            let release = match place {
                Place::Since(index) => family.releases.get(index).map(|release| release.id.clone()),
                Place::Always | Place::Device => None,
            };
            *row = TraitRow {
                value: stated.default.show(),
                tuned: stated.tuned.map(|tuned| tuned.show()),
                since: release,
                on_device: place == Place::Device,
                family: (family.id != self.family.id).then(|| family.id.clone()),
                source: source.text.clone(),
                confidence: source.confidence,
                ..*row
            };
        });
        rows
    }

    /// The traits in which another release or another piece of software differs, this one's values first.
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

/// A trait as tables and screens show it.
#[derive(Debug, Clone, PartialEq)]
pub struct TraitRow {
    /// Training or serving.
    pub kind: SoftwareKind,
    /// Its key in documents.
    pub key: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Its value.
    pub value: String,
    /// Its value under the software's own recipes, where that differs.
    pub tuned: Option<String>,
    /// The release since which it holds; `None`: always, as far as known.
    pub since: Option<String>,
    /// It holds on this device, not on all.
    pub on_device: bool,
    /// The base family that says so; `None`: the family itself, or an assumption.
    pub family: Option<String>,
    /// Where it was read.
    pub source: String,
    /// How well that was checked.
    pub confidence: super::Confidence,
}
