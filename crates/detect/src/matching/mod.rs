//! Looks up the name that a tool reports in the catalog.
//!
//! A name is split into model, form factor, memory and MIG profile. An entry matches if its model is the same and no
//! other part contradicts it. If several entries match, all of them are returned, so that the caller can ask the user.

mod hints;
mod instances;
mod name;
mod slice;

use crate::catalog::CatalogEntry;
use name::{Form, Name, Spelling};

pub use instances::instance_accelerator;
pub use slice::Slice;

/// Origin of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NamedBy {
    /// A driver, which always marks PCIe and NVL variants in the name.
    Driver,
    /// An administrator, who may leave out any detail.
    #[default]
    Administrator,
}

/// A name to look up, with further properties of the device.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// The name.
    pub text: String,
    /// Origin of the name.
    pub named_by: NamedBy,
    /// Measured memory of one device, GiB.
    pub memory_gib: Option<f64>,
    /// GPU cores, for Apple chips.
    pub cores: Option<u32>,
    /// Features, labels or instance types of the node. Used only to decide between several entries.
    pub hints: Vec<String>,
}

/// Result of a lookup.
#[derive(Debug, Clone, PartialEq)]
pub enum Matched {
    /// Exactly one entry.
    One {
        /// Its key.
        key: String,
        /// The hint that decided, if the name alone was ambiguous.
        by_hint: Option<String>,
    },
    /// More than one entry matches, or the name is incomplete.
    Several {
        /// Their keys, in the order of the catalog.
        keys: Vec<String>,
        /// What the name does not state.
        reason: String,
    },
    /// No entry matches.
    Unknown {
        /// Entries with a similar name.
        closest: Vec<String>,
        /// Why none matches.
        reason: String,
    },
}

impl Matched {
    /// The key, if exactly one entry matches.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        match self {
            Matched::One { key, .. } => Some(key),
            _ => None,
        }
    }
}

/// Result of a lookup, with what the name states besides the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Lookup {
    /// The entry of the catalog.
    pub matched: Matched,
    /// The MIG profile in the name.
    pub slice: Option<Slice>,
    /// Number of devices, as counted by drivers and schedulers, that make up one accelerator of the catalog.
    pub devices_per_accelerator: u32,
}

/// Modules that appear to software as two devices with half the memory each.
const TWO_DEVICES: [&str; 2] = ["mi250", "mi250x"];

/// The catalog, prepared for many lookups.
#[derive(Debug)]
pub struct Index<'a> {
    spelled: Vec<Spelled<'a>>,
}

type Spelled<'a> = (&'a CatalogEntry, Vec<Spelling>);

impl<'a> Index<'a> {
    /// Parses the names of all entries.
    #[must_use]
    pub fn new(catalog: &'a [CatalogEntry]) -> Index<'a> {
        Index { spelled: catalog.iter().map(|entry| (entry, Spelling::all(entry))).collect() }
    }

    /// Looks up a name.
    #[must_use]
    pub fn look_up(&self, query: &Query) -> Lookup {
        let name = Name::parse(&query.text);
        let devices = if TWO_DEVICES.contains(&name.model.as_str()) { 2 } else { 1 };
        Lookup {
            matched: self.matched(query, &name, f64::from(devices)),
            slice: name.slice.clone(),
            devices_per_accelerator: devices,
        }
    }

    /// Entries with a spelling for which `fits` returns `true`.
    fn entries(&self, fits: impl Fn(&Spelling) -> bool) -> Vec<&'a CatalogEntry> {
        self.spelled.iter().filter(|(_, own)| own.iter().any(&fits)).map(|(entry, _)| *entry).collect()
    }
}

/// Looks up one name in the catalog.
#[must_use]
pub fn look_up(query: &Query, catalog: &[CatalogEntry]) -> Lookup {
    Index::new(catalog).look_up(query)
}

/// A MIG profile such as `1g.10gb`; `None` for other text.
#[must_use]
pub fn slice_of(profile: &str) -> Option<Slice> {
    name::split_slice(&profile.to_ascii_lowercase()).1
}

struct Candidate<'a> {
    entry: &'a CatalogEntry,
    form: Option<Form>,
}

impl Index<'_> {
    fn matched(&self, query: &Query, name: &Name, devices: f64) -> Matched {
        if name.model.is_empty() {
            return Matched::Unknown { closest: Vec::new(), reason: "the name contains no model".to_owned() };
        }
        let mut exact = self.entries(|spelling| spelling.is(name));
        let shorter = name.with_last_number_as_memory();
        let name = match &shorter {
            Some(shorter) if exact.is_empty() => {
                exact = self.entries(|spelling| spelling.is(shorter));
                if exact.is_empty() { name } else { shorter }
            }
            _ => name,
        };
        // Administrators shorten names. A name that is only part of a key may also mean other variants of the model,
        // and so may a name that does not end with a digit.
        let by_hand = query.named_by == NamedBy::Administrator;
        let generic = by_hand && self.entries(|spelling| spelling.full && spelling.is(name)).is_empty();
        let open = by_hand && (exact.is_empty() || name.model.ends_with(|c: char| c.is_ascii_alphabetic()));
        let candidates: Vec<Candidate<'_>> = self
            .entries(|spelling| {
                (!exact.is_empty() && spelling.is(name))
                    || (generic && spelling.begins_with(name))
                    || (open && spelling.extends_by_one_character(name))
            })
            .into_iter()
            .map(|entry| Candidate { entry, form: Form::of(entry) })
            .collect();
        if candidates.is_empty() {
            return unknown(name, &self.spelled, "the catalog has no entry for this model");
        }
        narrow(query, name, devices, candidates, exact.is_empty(), &self.spelled)
    }
}

fn narrow(
    query: &Query,
    name: &Name,
    devices: f64,
    mut candidates: Vec<Candidate<'_>>,
    only_longer: bool,
    spelled: &[Spelled<'_>],
) -> Matched {
    let keys = |candidates: &[Candidate<'_>]| -> Vec<String> {
        candidates.iter().map(|candidate| candidate.entry.key.clone()).collect()
    };
    if let Some(form) = name.form {
        candidates.retain(|candidate| candidate.form.is_none_or(|own| own.agrees(form)));
    }
    if let Some(cores) = query.cores.or(name.cores) {
        candidates.retain(|candidate| name::cores_of(candidate.entry).is_none_or(|own| own == cores));
    }
    if candidates.is_empty() {
        return unknown(name, spelled, "the catalog has this model only with another form factor or core count");
    }
    // Memory that a driver measured excludes entries; memory in a name is only a preference (the name of a GH200 states
    // the memory of its CPU). A slice reports its own memory instead of the device's.
    let before = keys(&candidates);
    if let (Some(measured), None) = (query.memory_gib, &name.slice) {
        candidates.retain(|candidate| fits_memory(candidate.entry, measured * devices));
        if candidates.is_empty() {
            let size = (measured * 10.0).round() / 10.0;
            return Matched::Unknown {
                closest: before,
                reason: format!("{size} GiB of memory does not match any catalog entry of this model"),
            };
        }
    }
    prefer(&mut candidates, |candidate| {
        name.memory_gb.is_some_and(|stated| candidate.entry.memory_gb.is_some_and(|own| near(own, stated)))
    });
    prefer(&mut candidates, |candidate| {
        let own = candidate.entry.memory_type.as_deref().map(str::to_ascii_lowercase);
        name.memory_type.is_some() && own == name.memory_type
    });
    if query.named_by == NamedBy::Driver && name.form.is_none() {
        prefer(&mut candidates, |candidate| !matches!(candidate.form, Some(Form::Pcie | Form::Nvl)));
    }
    let stated_misses = name.memory_gb.is_some_and(|stated| {
        query.memory_gib.is_none()
            && !candidates.iter().any(|candidate| candidate.entry.memory_gb.is_none_or(|own| near(own, stated)))
    });
    let mut by_hint = None;
    if (candidates.len() > 1 || only_longer)
        && let Some((kept, hint)) =
            hints::narrow_by_hints(&query.hints, name, candidates.iter().map(|c| c.entry).collect())
    {
        candidates.retain(|candidate| kept.contains(&candidate.entry.key));
        by_hint = Some(hint);
    }
    match candidates.as_slice() {
        [only] if (!only_longer || by_hint.is_some()) && (!stated_misses || is_superchip(only.entry)) => {
            Matched::One { key: only.entry.key.clone(), by_hint }
        }
        _ => Matched::Several {
            keys: keys(&candidates),
            reason: undetermined_properties(&candidates, only_longer, stated_misses),
        },
    }
}

/// Whether the entry is a superchip, whose name states the memory of its CPU.
fn is_superchip(entry: &CatalogEntry) -> bool {
    entry.form_factor.as_deref().is_some_and(|form| form.eq_ignore_ascii_case("superchip"))
}

fn prefer(candidates: &mut Vec<Candidate<'_>>, wanted: impl Fn(&Candidate<'_>) -> bool) {
    if candidates.iter().any(&wanted) {
        candidates.retain(wanted);
    }
}

fn near(nominal: f64, stated: f64) -> bool {
    (nominal - stated).abs() <= 1.0
}

/// Whether the memory that a driver reports matches the nominal memory: ECC and firmware reserve up to a tenth. Any
/// memory matches a system on a chip, which is sold in many sizes.
fn fits_memory(entry: &CatalogEntry, measured_gib: f64) -> bool {
    let on_chip = entry.form_factor.as_deref().is_some_and(|form| form.eq_ignore_ascii_case("soc"));
    on_chip || entry.memory_gb.is_none_or(|nominal| (0.90..=1.02).contains(&(measured_gib / nominal)))
}

fn undetermined_properties(candidates: &[Candidate<'_>], only_longer: bool, stated_misses: bool) -> String {
    let mut open = Vec::new();
    if only_longer {
        open.push("exact model");
    }
    let differ = |value: fn(&Candidate<'_>) -> String| {
        let mut values = candidates.iter().map(value);
        let first = values.next();
        values.any(|value| Some(&value) != first.as_ref())
    };
    if differ(|candidate| format!("{:?}", candidate.form)) {
        open.push("form factor");
    }
    if differ(|candidate| format!("{:?}", candidate.entry.memory_gb)) {
        open.push("memory size");
    }
    if stated_misses {
        return "the memory size in the name matches no entry".to_owned();
    }
    if open.is_empty() {
        open.push("exact model");
    }
    format!("the name does not state: {}", open.join(", "))
}

fn unknown(name: &Name, spelled: &[Spelled<'_>], reason: &str) -> Matched {
    let closest: Vec<String> = spelled
        .iter()
        .filter(|(_, spellings)| spellings.iter().any(|spelling| spelling.is_similar(name)))
        .map(|(entry, _)| entry.key.clone())
        .take(6)
        .collect();
    Matched::Unknown { closest, reason: reason.to_owned() }
}
