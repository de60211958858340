//! The library: all targets, workloads and profiles in effect, with the catalog, merged from several layers, and their
//! diagnostics.
//!
//! Layers, of which later ones replace entries of the same name: the built-in catalog, the user's configuration
//! directory, and `workload/` of the working directory. Explicit paths replace the layers that they name. If a file
//! becomes invalid, its last valid entries are kept when the library is reloaded. `config.yaml` of a layer, and the
//! file given with `--config` instead of all layers, is a document of a predecessor tool: [`atlas_legacy::exchange`].

mod decoding;
mod entry;
mod predecessor;
mod variant;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use self::decoding::decode;
use self::entry::Entries;
pub use self::entry::{Entry, Listed};
use self::predecessor::Predecessor;
use self::variant::Variants;
use crate::profile;
use crate::profile::{ProfileKey, choose};
use crate::{Corrections, Profile, Target, Workload};
use atlas_catalog::Catalog;
use atlas_catalog::shipped::{Document, Text, documents};
use atlas_core::plan::Methodology;
use atlas_core::sort;
use atlas_document::diagnostic::{COMMAND_LINE, Diagnostic, Diagnostics, Severity};
use atlas_document::node::Position;
use atlas_document::sources::{may_exist, read_text, yaml_files};
use atlas_document::suggestion::did_you_mean;
use atlas_document::{BrokenEntries, Origin, Sources};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Targets,
    Workloads,
    Profile,
    Foreign,
}

/// A decoded file.
#[derive(Debug, Clone)]
struct File {
    label: Arc<str>,
    kind: Kind,
    text: Text,
    targets: Vec<Arc<Entry<Target>>>,
    workloads: Vec<Arc<Entry<Workload>>>,
    profile: Option<Arc<Entry<Profile>>>,
    profile_key: ProfileKey,
    tailored: Vec<ExperimentWorkload>,
    methodology: Option<Methodology>,
    broken: BrokenEntries,
    problems: Diagnostics,
}

/// A workload as run on one target under a methodology.
#[derive(Debug, Clone)]
struct ExperimentWorkload {
    methodology: Methodology,
    target: Arc<str>,
    workload: Arc<Workload>,
}

/// All loaded documents.
#[derive(Debug, Clone, Default)]
pub struct Library {
    files: Vec<Arc<File>>,
    targets: Entries<Target>,
    workloads: Entries<Workload>,
    /// Keys of all profiles in order of their stems, each with the profile if it was decoded.
    profiles: Vec<(ProfileKey, Option<Arc<Entry<Profile>>>)>,
    /// Whether one profile is used for every target (`--hardware FILE`).
    single_profile: bool,
    /// Entries replaced by `--config`. They are not listed, but can be selected by name.
    spare_targets: Entries<Target>,
    spare_workloads: Entries<Workload>,
    /// Built-in entries of the predecessor dashboard. They are not listed, but can be selected by name.
    predecessor: OnceLock<Predecessor>,
    /// Workloads with another model. They are not listed, but can be selected by name.
    variants: Variants,
    tailored: Vec<ExperimentWorkload>,
    methodology: Option<Methodology>,
    problems: Diagnostics,
    catalog: Arc<Catalog>,
}

impl Library {
    /// Loads all documents. Files that became invalid keep their entries of `before`.
    #[must_use]
    pub fn load(sources: &Sources, before: Option<&Library>) -> Library {
        let catalog = Arc::new(Catalog::load(sources, before.map(|before| &*before.catalog)));
        let mut loader = Loader { before, catalog: &catalog, files: Vec::new(), problems: Diagnostics::new() };
        loader.load(sources);
        let Loader { files, mut problems, .. } = loader;
        let mut library = Library {
            single_profile: sources.hardware.as_ref().is_some_and(|path| !path.is_dir()),
            ..Library::default()
        };
        for file in &files {
            problems.extend(file.problems.clone());
            // A file given by its own flag is listed alongside `--config` and replaces the layers.
            let named =
                |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| *path.display().to_string() == *file.label);
            let spare = sources.config.is_some()
                && ![&sources.config, &sources.targets, &sources.workloads].into_iter().any(named);
            let targets = if spare { &mut library.spare_targets } else { &mut library.targets };
            for target in &file.targets {
                targets.insert_or_replace(target);
            }
            let workloads = if spare { &mut library.spare_workloads } else { &mut library.workloads };
            for workload in &file.workloads {
                workloads.insert_or_replace(workload);
            }
            match file.kind {
                Kind::Targets => targets.record_broken(&file.broken),
                Kind::Workloads => workloads.record_broken(&file.broken),
                // A profile is identified by its file. A predecessor's document with errors is ignored as a whole.
                Kind::Profile | Kind::Foreign => {}
            }
            if !file.tailored.is_empty() {
                library.tailored.clone_from(&file.tailored);
                library.methodology = file.methodology;
            }
            if file.kind == Kind::Profile {
                library.profiles.retain(|(key, _)| key.stem != file.profile_key.stem);
                library.profiles.push((file.profile_key.clone(), file.profile.clone()));
            }
        }
        sort::by(&mut library.profiles, |(a, _), (b, _)| a.stem.cmp(&b.stem));
        library.catalog = catalog;
        problems.extend(library.catalog.problems().clone());
        library.problems = problems;
        library.files = files;
        library
    }

    /// The catalog of accelerators, models and prices.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Text of a loaded file, by its name in origins.
    #[must_use]
    pub fn text(&self, file: &str) -> Option<&str> {
        self.files.iter().find(|known| &*known.label == file).map(|known| known.text.as_str())
    }

    /// All targets, built-in ones first.
    #[must_use]
    pub fn targets(&self) -> &[Arc<Target>] {
        self.targets.all()
    }

    /// All workloads, built-in ones first.
    #[must_use]
    pub fn workloads(&self) -> &[Arc<Workload>] {
        self.workloads.all()
    }

    /// All targets, built-in ones first, each decoded on first use.
    #[must_use]
    pub fn target_list(&self) -> &[Arc<Entry<Target>>] {
        self.targets.listed()
    }

    /// All workloads, built-in ones first, each decoded on first use.
    #[must_use]
    pub fn workload_list(&self) -> &[Arc<Entry<Workload>>] {
        self.workloads.listed()
    }

    /// The `config.json` files that workloads reference as models; these are watched too.
    #[must_use]
    pub fn configs(&self) -> Vec<PathBuf> {
        let path = |workload: &Arc<Workload>| {
            let path = Path::new(workload.model.as_deref()?);
            let json = path.extension().is_some_and(|extension| extension == "json");
            json.then(|| workload.origin.folder().join(path))
        };
        // Entries that are not decoded are built in, and reference models of the catalog.
        self.workloads.known().filter_map(path).collect()
    }

    /// All profiles that could be decoded.
    pub fn profiles(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.profiles.iter().filter_map(|(_, profile)| profile.as_ref()?.get())
    }

    /// Diagnostics of all files.
    #[must_use]
    pub fn problems(&self) -> &Diagnostics {
        &self.problems
    }

    /// The methodology of the loaded experiment.
    #[must_use]
    pub fn methodology(&self) -> Option<Methodology> {
        self.methodology
    }

    /// Overrides the methodology.
    pub fn compare_by(&mut self, methodology: Methodology) {
        self.methodology = Some(methodology);
    }

    /// Whether an experiment defines how `workload` is run on `target` under the selected methodology.
    #[must_use]
    pub fn has_experiment_for(&self, target: &Target, workload: &Workload) -> bool {
        self.experiment_workload(target, workload).is_some()
    }

    /// The workload as run on `target`: that of an experiment under the selected methodology, if it defines one, else
    /// `workload`.
    #[must_use]
    pub fn workload_for(&self, target: &Target, workload: &Arc<Workload>) -> Arc<Workload> {
        self.experiment_workload(target, workload).map_or_else(|| Arc::clone(workload), Arc::clone)
    }

    fn experiment_workload(&self, target: &Target, workload: &Workload) -> Option<&Arc<Workload>> {
        let of = |fitted: &&ExperimentWorkload| {
            Some(fitted.methodology) == self.methodology
                && fitted.target == target.name
                && fitted.workload.name == workload.name
                && fitted.workload.origin.file == workload.origin.file
                && fitted.workload.origin.file == target.origin.file
        };
        self.tailored.iter().find(of).map(|fitted| &fitted.workload)
    }

    /// Built-in hardware profiles and scenarios of the predecessor dashboard.
    #[must_use]
    pub fn dashboard_entries(&self) -> (&[Arc<Target>], &[Arc<Workload>]) {
        let predecessor = self.predecessor.get_or_init(Predecessor::read);
        (&predecessor.targets, &predecessor.workloads)
    }

    /// Finds a target by name; returns an error if there is none.
    pub fn target(&self, name: &str) -> Result<&Arc<Target>, Diagnostic> {
        self.targets
            .find(name)
            .or_else(|| self.spare_targets.find(name))
            .or_else(|| self.dashboard_entries().0.iter().find(|target| &*target.name == name))
            .ok_or_else(|| unknown("target", name, self.targets.names()))
    }

    /// Finds a workload by name; returns an error if there is none. `NAME:model=MODEL` is the workload `NAME` with
    /// another model: a key of the catalog, or the path of a `config.json`.
    pub fn workload(&self, name: &str) -> Result<&Arc<Workload>, Diagnostic> {
        let found = self
            .workloads
            .find(name)
            .or_else(|| self.spare_workloads.find(name))
            .or_else(|| self.dashboard_entries().1.iter().find(|workload| &*workload.name == name));
        match found {
            Some(found) => Ok(found),
            None => self.variant(name).unwrap_or_else(|| Err(unknown("workload", name, self.workloads.names()))),
        }
    }

    /// Rejects a built-in target or workload if the user's own entry of the same name has errors, since the estimate
    /// would not be of the user's entry.
    ///
    /// # Errors
    /// Returns diagnostics with the location of the user's entry.
    pub fn reject_substitutes(&self, target: &Arc<Target>, workload: &Arc<Workload>) -> Result<(), Diagnostics> {
        let target = self.targets.diagnostic("target", target);
        let workload = self.workloads.diagnostic("workload", workload);
        let mut problems = Diagnostics::new();
        target.into_iter().chain(workload).for_each(|problem| problems.push(problem));
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Finds a profile by name (the stem of its file); returns an error if there is none.
    pub fn profile(&self, name: &str) -> Result<&Arc<Profile>, Diagnostic> {
        let known: Vec<&str> = self.profiles().map(|profile| &*profile.name).collect();
        let found = self.profiles().find(|profile| &*profile.name == name);
        found.ok_or_else(|| unknown("profile", name, known.into_iter()))
    }

    /// Corrections learned from runs on the target's accelerator: those of the target's own profile, else of the first
    /// profile that has any.
    #[must_use]
    pub fn corrections_for(&self, target: &Target) -> Option<&Arc<Corrections>> {
        let accelerator = target.accelerator.as_deref()?;
        // Built-in profiles have no corrections and need not be decoded.
        let known = self.profiles.iter().filter_map(|(key, entry)| Some((key, entry.as_ref()?.decoded_entry()?)));
        let found = known.filter_map(|(key, profile)| Some((key, profile.corrections.as_ref()?)));
        let found: Vec<_> = found.filter(|(_, corrections)| &*corrections.accelerator == accelerator).collect();
        let stem = profile::stem_for(&target.name);
        let own = |key: &ProfileKey| key.stem == stem || key.target.as_deref() == Some(&*target.name);
        let own = found.iter().find(|(key, _)| own(key));
        own.or_else(|| found.first()).map(|(_, corrections)| *corrections)
    }

    /// The profile that applies to a target, or an error that states why there is none.
    pub fn profile_for(&self, target: &Target) -> Result<&Arc<Profile>, Diagnostic> {
        let keys: Vec<ProfileKey> = self.profiles.iter().map(|(key, _)| key.clone()).collect();
        let chosen = if self.single_profile {
            (!keys.is_empty()).then_some(0)
        } else {
            choose(&keys, &target.name, &target.vendor)
        };
        let complain = |message: String, help: String| Diagnostic {
            severity: Severity::Error,
            file: Arc::clone(&target.origin.file),
            at: target.origin.at,
            path: target.name.to_string(),
            message,
            help: Some(help),
        };
        match chosen
            .and_then(|index| self.profiles.get(index))
            .map(|(key, entry)| (key, entry.as_ref().and_then(|entry| entry.get())))
        {
            Some((_, Some(profile))) => Ok(profile),
            Some((key, None)) => Err(complain(
                format!("the profile `{}` of this target has errors", key.stem),
                "see the errors in that file".to_owned(),
            )),
            None => Err(complain(
                format!(
                    "no profile: none is named `{}.yaml` or `{}.yaml`, and none matches the target or its vendor",
                    profile::stem_for(&target.name),
                    target.vendor.to_lowercase()
                ),
                format!("create workload/profiles/{}.yaml with every coefficient", profile::stem_for(&target.name)),
            )),
        }
    }
}

/// Joins names, those that contain `text` first, truncated after twelve.
fn join_names<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> String {
    const MAX_LISTED_NAMES: usize = 12;
    let (mut listed, others): (Vec<&str>, Vec<&str>) = names.partition(|name| !text.is_empty() && name.contains(text));
    listed.extend(others);
    let rest = listed.len().saturating_sub(MAX_LISTED_NAMES);
    listed.truncate(MAX_LISTED_NAMES);
    let shown = listed.join(", ");
    if rest > 0 { format!("{shown} and {rest} more") } else { shown }
}

fn unknown<'n>(kind: &str, name: &str, known: impl Iterator<Item = &'n str> + Clone) -> Diagnostic {
    let near = did_you_mean(name, known.clone());
    Diagnostic {
        severity: Severity::Error,
        file: COMMAND_LINE.into(),
        at: Position::default(),
        path: String::new(),
        message: format!("no {kind} `{name}`; known: {}", join_names(name, known)),
        help: near,
    }
}

struct Loader<'a> {
    before: Option<&'a Library>,
    catalog: &'a Catalog,
    files: Vec<Arc<File>>,
    problems: Diagnostics,
}

impl Loader<'_> {
    fn load(&mut self, sources: &Sources) {
        let explicit = sources.workload_dir.is_some();
        if !explicit {
            for document in documents("workload") {
                let kind = match document.path {
                    "workload/targets.yaml" if sources.targets.is_none() => Kind::Targets,
                    "workload/workloads.yaml" if sources.workloads.is_none() => Kind::Workloads,
                    path if path.starts_with("workload/profiles/") && sources.hardware.is_none() => Kind::Profile,
                    _ => continue,
                };
                self.add_shipped(document, kind);
            }
        } else if sources.hardware.is_none() {
            // A directory with the user's own targets can use the built-in profiles.
            for document in documents("workload").filter(|known| known.path.starts_with("workload/profiles/")) {
                self.add_shipped(document, Kind::Profile);
            }
        }
        if let Some(dir) = sources.workload_dir.as_ref().filter(|dir| !dir.is_dir()) {
            self.report(dir, "no such directory".to_owned());
        }
        for layer in sources.layers() {
            if may_exist(&layer) && !layer.is_dir() && !explicit {
                self.report(&layer, "no such directory".to_owned());
            }
            for (name, kind, replaced) in [
                ("targets.yaml", Kind::Targets, sources.targets.is_some()),
                ("workloads.yaml", Kind::Workloads, sources.workloads.is_some()),
                ("config.yaml", Kind::Foreign, sources.config.is_some()),
            ] {
                let path = layer.join(name);
                if !replaced && may_exist(&path) {
                    self.read(&path, kind);
                }
            }
            if sources.hardware.is_none() {
                self.read_profiles(&layer.join("profiles"));
            }
        }
        for (path, kind) in
            [(&sources.targets, Kind::Targets), (&sources.workloads, Kind::Workloads), (&sources.config, Kind::Foreign)]
        {
            if let Some(path) = path {
                self.read(path, kind);
            }
        }
        if let Some(path) = &sources.hardware {
            if path.is_dir() { self.read_profiles(path) } else { self.read(path, Kind::Profile) }
        }
    }

    fn report(&mut self, path: &Path, message: String) {
        let file = path.display().to_string().into();
        let at = Position::default();
        self.problems.push(Diagnostic {
            severity: Severity::Error,
            file,
            at,
            path: String::new(),
            message,
            help: None,
        });
    }

    fn read_profiles(&mut self, dir: &Path) {
        match yaml_files(dir) {
            Ok(paths) => paths.iter().for_each(|path| self.read(path, Kind::Profile)),
            Err(message) => self.report(dir, message),
        }
    }

    fn read(&mut self, path: &Path, kind: Kind) {
        let label: Arc<str> = path.display().to_string().into();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match read_text(path) {
            Ok(text) => self.add(label, kind, &stem, text.into()),
            Err(message) => {
                self.report(path, message);
                // An unreadable file keeps its last valid entries, like an invalid one.
                let mut file = match self.previous_file(&label) {
                    Some(old) => File { problems: Diagnostics::new(), ..(*old).clone() },
                    None => File::unreadable(label, kind, &stem),
                };
                self.keep_previous_content(&mut file);
                self.files.push(Arc::new(file));
            }
        }
    }

    /// A new file that is invalid has no last valid entries. Entries of the same names from other layers stay in
    /// effect.
    fn keep_previous_content(&self, file: &mut File) {
        if self.before.is_some() && self.previous_file(&file.label).is_none() {
            file.broken = BrokenEntries::default();
        }
    }

    fn previous_file(&self, label: &str) -> Option<Arc<File>> {
        self.before?.files.iter().find(|file| &*file.label == label).cloned()
    }

    fn add_shipped(&mut self, document: &'static Document, kind: Kind) {
        let stem = Path::new(document.path).file_stem().unwrap_or_default().to_string_lossy();
        self.add(format!("{}{}", Origin::BUILT_IN, document.path).into(), kind, &stem, Text::Shipped(document));
    }

    fn add(&mut self, label: Arc<str>, kind: Kind, stem: &str, text: Text) {
        let old = self.previous_file(&label);
        // The import of a predecessor's document also depends on the catalog.
        let same = |old: &&Arc<File>| old.text == text && old.kind == kind && kind != Kind::Foreign;
        if let Some(old) = old.as_ref().filter(same) {
            self.files.push(Arc::clone(old));
            return;
        }
        let mut file = decode(label, kind, stem, text, self.catalog);
        self.keep_previous_content(&mut file);
        if let Some(old) = old.filter(|_| file.problems.has_errors()) {
            (file.tailored, file.methodology) = (old.tailored.clone(), old.methodology);
            file.targets.clone_from(&old.targets);
            file.workloads.clone_from(&old.workloads);
            file.profile.clone_from(&old.profile);
            file.profile_key = old.profile_key.clone();
            file.broken = old.broken.clone();
        }
        self.files.push(Arc::new(file));
    }
}
