//! A software family, as described by its document.

use std::sync::Arc;

use atlas_document::decode::Fields;
use atlas_document::node::Entry;
use atlas_document::suggestion::did_you_mean;
use atlas_document::{Diagnostic, Diagnostics, Node, Origin, Severity};

use super::fields::{SERVING_FIELDS, ServingChange, TRAINING_FIELDS, TrainingChange, TraitField};
use super::release::{Day, Version};

/// Purpose of software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SoftwareKind {
    /// Training.
    Training,
    /// Serving.
    Serving,
    /// Both.
    Both,
}

impl SoftwareKind {
    const WORDS: [(&'static str, SoftwareKind); 3] =
        [("training", SoftwareKind::Training), ("serving", SoftwareKind::Serving), ("both", SoftwareKind::Both)];

    /// Returns the kind with this name.
    #[must_use]
    pub fn named(word: &str) -> Option<SoftwareKind> {
        SoftwareKind::WORDS.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind)
    }

    /// Whether software of this kind supports all purposes in `wanted`.
    #[must_use]
    pub const fn supports(self, wanted: SoftwareKind) -> bool {
        (self.trains() || !wanted.trains()) && (self.serves() || !wanted.serves())
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SoftwareKind::Training => "training",
            SoftwareKind::Serving => "serving",
            SoftwareKind::Both => "both",
        }
    }

    /// Whether the software is for training.
    #[must_use]
    pub const fn trains(self) -> bool {
        matches!(self, SoftwareKind::Training | SoftwareKind::Both)
    }

    /// Whether the software is for serving.
    #[must_use]
    pub const fn serves(self) -> bool {
        matches!(self, SoftwareKind::Serving | SoftwareKind::Both)
    }
}

/// How well a source was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Confidence {
    /// Verified in the source code or package.
    Source,
    /// Release notes, documentation, or a paper by the authors.
    Docs,
    /// Not documented, but shown by at least three independent sources of measurements.
    Measured,
    /// From memory, not verified.
    Memory,
    /// An assumption, used if nothing is documented.
    Assumed,
}

impl Confidence {
    const WORDS: [(&'static str, Confidence); 5] = [
        ("source", Confidence::Source),
        ("docs", Confidence::Docs),
        ("measured", Confidence::Measured),
        ("memory", Confidence::Memory),
        ("assumed", Confidence::Assumed),
    ];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Confidence::Source => "source",
            Confidence::Docs => "docs",
            Confidence::Measured => "measured",
            Confidence::Memory => "memory",
            Confidence::Assumed => "assumed",
        }
    }
}

/// Source of a trait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Key by which the traits of the document cite the source.
    pub key: String,
    /// File, page or paper.
    pub text: String,
    /// How well the source was verified.
    pub confidence: Confidence,
}

/// A change to one trait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Change {
    Training(TrainingChange),
    Serving(ServingChange),
}

impl Change {
    pub(super) fn key(&self) -> &'static str {
        match self {
            Change::Training(change) => change.key(),
            Change::Serving(change) => change.key(),
        }
    }

    pub(super) fn format_value(&self) -> String {
        match self {
            Change::Training(change) => change.format_value(),
            Change::Serving(change) => change.format_value(),
        }
    }

    pub(super) fn trains(&self) -> bool {
        matches!(self, Change::Training(_))
    }
}

/// A trait stated by a document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StatedTrait {
    /// The default of the software.
    pub default: Change,
    /// Setting in its official recipes or performance guide, if different.
    pub tuned: Option<Change>,
    /// Index into the family's sources.
    pub source: usize,
}

/// A release.
#[derive(Debug, Clone, PartialEq)]
pub struct Release {
    /// Version number as written by the project, without a leading `v`.
    pub id: String,
    /// Alternative version numbers, such as those of container images.
    pub aliases: Vec<String>,
    /// Release date.
    pub date: Option<Day>,
    /// Release of the base family that it is based on.
    pub base_release: Option<String>,
    pub(super) versions: Vec<Version>,
    pub(super) base_version: Option<Version>,
    pub(super) stated: Vec<StatedTrait>,
}

impl Release {
    /// Whether one of its version numbers is a year and a month.
    pub(super) fn is_calendar(&self) -> bool {
        self.versions.iter().any(|version| version.is_calendar())
    }

    /// Returns the version number that follows the same scheme as `requested`.
    pub(super) fn version_with_scheme_of(&self, requested: Version) -> Option<Version> {
        self.versions.iter().copied().find(|version| version.partial_compare(requested).is_some())
    }
}

/// Traits that apply to some devices only.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DeviceRule {
    pub vendors: Vec<String>,
    pub generations: Vec<String>,
    pub excluded_generations: Vec<String>,
    pub memory_gb_at_least: Option<f64>,
    pub memory_gb_below: Option<f64>,
    pub lacks: Vec<String>,
    /// Index of the first release to which they apply.
    pub from: Option<usize>,
    /// Index of the first release to which they no longer apply.
    pub until: Option<usize>,
    pub stated: Vec<StatedTrait>,
}

/// A software family: its names, releases and traits.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// Unique id: `vllm`.
    pub id: String,
    /// Full name.
    pub name: String,
    /// Purpose.
    pub kind: SoftwareKind,
    /// Alternative names, as used in tables and by users.
    pub aliases: Vec<String>,
    /// Words that may occur between name and release: `mcore`, `sdk`.
    pub release_words: Vec<String>,
    /// The family whose traits apply unless this one states its own.
    pub base: Option<String>,
    /// Family that this one succeeded with its first release.
    pub predecessor: Option<String>,
    /// Vendors whose devices are supported without plug-in. Empty if not stated.
    pub vendors: Vec<String>,
    /// Vendor or generation, and the family that is used instead on its devices.
    pub plugins: Vec<(String, String)>,
    /// Releases, oldest first.
    pub releases: Vec<Release>,
    /// Sources cited by the traits.
    pub sources: Vec<Source>,
    /// Remarks.
    pub note: Option<String>,
    /// File that the document is from.
    pub origin: Origin,
    pub(super) stated: Vec<StatedTrait>,
    pub(super) devices: Vec<DeviceRule>,
}

impl Family {
    /// Whether the software is known not to run on the devices of a vendor.
    #[must_use]
    pub fn is_unsupported_by_vendor(&self, vendor: &str) -> bool {
        !self.vendors.is_empty() && !self.vendors.iter().any(|one| one.eq_ignore_ascii_case(vendor))
    }

    /// Decodes a document. Problems are added to `diagnostics`. Returns `None` if there are errors.
    pub fn decode(file: &Arc<str>, node: &Node, diagnostics: &mut Diagnostics) -> Option<Family> {
        let before = diagnostics.errors();
        let label = node.get("id").and_then(Node::text).unwrap_or("software");
        let mut fields = Fields::open(file, label, node, diagnostics)?;
        let at = fields.at();
        let id = fields.required_text("id");
        let name = fields.text("name");
        let kind = fields.choice("kind", &SoftwareKind::WORDS);
        if kind.is_none() && !fields.has("kind") {
            fields.missing("kind");
        }
        let aliases = fields.texts("aliases");
        let release_words = fields.texts("release_words");
        let base = fields.text("base");
        let predecessor = fields.text("predecessor");
        let vendors = fields.texts("vendors");
        let plugins = fields.map("plugins", plugins).unwrap_or_default();
        let note = fields.text("note");
        let sources = sources(&mut fields);
        let stated = traits(&mut fields, &sources);
        let releases = releases(&mut fields, &sources);
        let devices = devices(&mut fields, &sources, &releases);
        fields.finish();
        if diagnostics.errors() > before {
            return None;
        }
        let id = id?;
        Some(Family {
            name: name.unwrap_or_else(|| id.clone()),
            id,
            kind: kind?,
            aliases,
            release_words,
            base,
            predecessor,
            vendors,
            plugins,
            releases,
            sources,
            note,
            origin: Origin { file: Arc::clone(file), at },
            stated,
            devices,
        })
    }

    /// Returns a source by the index that traits cite.
    pub(super) fn source(&self, index: usize) -> Option<&Source> {
        self.sources.get(index)
    }
}

/// Adds an error about an entry that `fields` does not decode itself.
fn push_error(fields: &mut Fields<'_>, entry: &Entry, message: String, help: Option<String>) {
    let file = Arc::clone(fields.file());
    fields.diagnostics().push(Diagnostic {
        severity: Severity::Error,
        file,
        at: entry.value.at,
        path: entry.key.to_string(),
        message,
        help,
    });
}

/// Decodes the map from vendor or generation to family.
fn plugins(fields: &mut Fields<'_>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in fields.all() {
        match entry.value.text() {
            Some(id) => all.push((entry.key.to_string(), id.to_owned())),
            None => push_error(fields, entry, format!("found {}, expected a family", entry.value.describe()), None),
        }
    }
    all
}

fn sources(fields: &mut Fields<'_>) -> Vec<Source> {
    let read = |below: &mut Fields<'_>| {
        let mut all = Vec::new();
        for entry in below.all() {
            let split = entry.value.text().and_then(|text| text.split_once(": "));
            let found = split.and_then(|(word, text)| {
                let (_, confidence) = Confidence::WORDS.iter().find(|(name, _)| *name == word)?;
                Some(Source { key: entry.key.to_string(), text: text.trim().to_owned(), confidence: *confidence })
            });
            match found {
                Some(source) => all.push(source),
                None => push_error(
                    below,
                    entry,
                    format!("found {}, expected the kind of evidence, a colon and the source", entry.value.describe()),
                    Some(
                        "write `source: FILE@RELEASE`, `docs: PAGE`, `measured: SOURCES`, `memory: …` or `assumed: …`"
                            .to_owned(),
                    ),
                ),
            }
        }
        all
    };
    fields.map("sources", read).unwrap_or_default()
}

/// Decodes the traits under `training` and `serving`.
fn traits(fields: &mut Fields<'_>, sources: &[Source]) -> Vec<StatedTrait> {
    let training = |key: &str, node: &Node| TrainingChange::read(key, node).map(|read| read.map(Change::Training));
    let serving = |key: &str, node: &Node| ServingChange::read(key, node).map(|read| read.map(Change::Serving));
    let mut all =
        fields.map("training", |below| section(below, sources, TRAINING_FIELDS, training)).unwrap_or_default();
    all.extend(fields.map("serving", |below| section(below, sources, SERVING_FIELDS, serving)).unwrap_or_default());
    all
}

fn section(
    fields: &mut Fields<'_>,
    sources: &[Source],
    known: &[TraitField],
    read: impl Fn(&str, &Node) -> Option<Result<Change, String>>,
) -> Vec<StatedTrait> {
    let mut all = Vec::new();
    for entry in fields.all() {
        let value = |key: &str| entry.value.get(key).map(|node| (node, read(&entry.key, node)));
        let source = entry.value.get("source").and_then(Node::text);
        let cited = source.and_then(|key| sources.iter().position(|source| source.key == key));
        let odd = entry.value.entries().and_then(|entries| {
            entries.iter().find(|entry| !matches!(&*entry.key, "value" | "tuned" | "source")).map(|entry| &entry.key)
        });
        let complaint = match (value("value"), value("tuned")) {
            (None, _) => Some(("found no value".to_owned(), Some("write `{ value: …, source: KEY }`".to_owned()))),
            (Some((_, None)), _) => {
                let help = did_you_mean(&entry.key, known.iter().map(|field| field.key));
                Some(("no such trait".to_owned(), help))
            }
            (Some((node, Some(Err(expected)))), _) | (_, Some((node, Some(Err(expected))))) => {
                Some((format!("found {}, expected {expected}", node.describe()), None))
            }
            _ if odd.is_some() => Some((format!("unknown key `{}`", odd.map_or("", |key| key)), None)),
            (Some((_, Some(Ok(default)))), tuned) => match cited {
                Some(source) => {
                    let tuned = tuned.and_then(|(_, read)| read?.ok());
                    all.push(StatedTrait { default, tuned, source });
                    None
                }
                None => {
                    let found = source.map_or("no source".to_owned(), |key| format!("the source `{key}`"));
                    let help = "cite a key of `sources`; every trait needs one".to_owned();
                    Some((format!("found {found}, which is not listed"), Some(help)))
                }
            },
        };
        if let Some((message, help)) = complaint {
            push_error(fields, entry, message, help);
        }
    }
    all
}

fn day(fields: &mut Fields<'_>, key: &'static str) -> Option<Day> {
    let text = fields.text(key)?;
    let found = Day::parse(&text);
    if found.is_none() {
        fields.error(key, format!("found `{text}`, expected a date: 2026-03-12, 2026-03 or 2026"), None);
    }
    found
}

/// Decodes a version number, which must be quoted: YAML reads an unquoted 26.10 as 26.1.
fn release_id(fields: &mut Fields<'_>, key: &'static str) -> Option<String> {
    let unquoted = fields.node(key).is_some_and(|node| node.number().is_some() && node.text().is_none());
    if unquoted {
        fields.error(key, "found a number, expected text", Some("quote it: YAML reads 26.10 as 26.1".to_owned()));
        return None;
    }
    fields.text(key)
}

fn releases(fields: &mut Fields<'_>, sources: &[Source]) -> Vec<Release> {
    let Some(node) = fields.node("releases") else { return Vec::new() };
    let file = Arc::clone(fields.file());
    let mut all: Vec<Release> = Vec::new();
    for item in node.items().unwrap_or_default() {
        let Some(mut below) = Fields::open(&file, "releases", item, fields.diagnostics()) else { continue };
        let id = release_id(&mut below, "release");
        if id.is_none() && !below.has("release") {
            below.missing("release");
        }
        let aliases = below.texts("aka");
        let date = day(&mut below, "date");
        let base_release = release_id(&mut below, "on");
        let stated = traits(&mut below, sources);
        let versions = id.iter().chain(&aliases).filter_map(|id| Version::parse(id)).collect();
        let base_version = base_release.as_deref().and_then(Version::parse);
        let late = all.last().is_some_and(|last| match (last.date, date) {
            (Some(last), Some(date)) => !last.may_precede_or_equal(date),
            _ => false,
        });
        if late {
            below.error("date", "older than the release before it", Some("list the oldest release first".to_owned()));
        }
        below.finish();
        if let Some(id) = id {
            all.push(Release { id, aliases, date, base_release, versions, base_version, stated });
        }
    }
    all
}

/// Decodes the formats that a device must lack.
fn formats(fields: &mut Fields<'_>) -> Vec<String> {
    let found = fields.texts("lacks");
    let known = crate::accelerator::Peaks::default().all().map(|(name, _)| name);
    if let Some(odd) = found.iter().find(|name| !known.contains(&name.as_str())) {
        fields.error("lacks", format!("found `{odd}`, expected some of {}", known.join(", ")), None);
    }
    found
}

fn devices(fields: &mut Fields<'_>, sources: &[Source], releases: &[Release]) -> Vec<DeviceRule> {
    let Some(node) = fields.node("devices") else { return Vec::new() };
    let file = Arc::clone(fields.file());
    let mut all = Vec::new();
    for item in node.items().unwrap_or_default() {
        let Some(mut below) = Fields::open(&file, "devices", item, fields.diagnostics()) else { continue };
        let mut index = |key: &'static str| {
            let id = release_id(&mut below, key)?;
            let found = releases.iter().position(|release| release.id == id);
            if found.is_none() {
                below.error(key, format!("`{id}` is not a release of this family"), None);
            }
            found
        };
        let (from, until) = (index("from"), index("until"));
        let rule = below.map("when", |when| DeviceRule {
            vendors: when.texts("vendor"),
            generations: when.texts("generation"),
            excluded_generations: when.texts("not_generation"),
            memory_gb_at_least: when.number("memory_gb_at_least", atlas_document::decode::Bounds::POSITIVE),
            memory_gb_below: when.number("memory_gb_below", atlas_document::decode::Bounds::POSITIVE),
            lacks: formats(when),
            from,
            until,
            stated: Vec::new(),
        });
        if rule.is_none() {
            below.missing("when");
        }
        let stated = traits(&mut below, sources);
        below.finish();
        all.extend(rule.map(|rule| DeviceRule { stated, ..rule }));
    }
    all
}
