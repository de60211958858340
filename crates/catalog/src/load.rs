//! The catalog: the built-in entries, overridden by the user's files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::collection::{Collection, Item};
use super::part::{self, Entries, Part, error_at};
use super::{Accelerator, Model, Price, checkpoint, digest, hugging_face};
use atlas_core::plan::Format;
use atlas_core::sort;
use atlas_document::diagnostic::COMMAND_LINE;
use atlas_document::node::Position;
use atlas_document::parse::parse;
use atlas_document::sources::{may_exist, read_text, yaml_files};
use atlas_document::suggestion::did_you_mean;
use atlas_document::{BrokenEntries, Diagnostic, Diagnostics, Node, Sources};

impl Default for Catalog {
    fn default() -> Catalog {
        Catalog::built_in()
    }
}

/// Accelerators, models and prices. Loading only reads the user's files; built-in entries are decoded on first use.
#[derive(Debug, Clone)]
pub struct Catalog {
    accelerators: Collection<Accelerator>,
    models: Collection<Model>,
    prices: Collection<Price>,
    files: Vec<Arc<File>>,
    problems: Diagnostics,
}

/// A decoded file of the user.
#[derive(Debug, Clone)]
struct File {
    path: PathBuf,
    text: Arc<str>,
    entries: Entries,
    broken: BrokenEntries,
}

impl Catalog {
    /// Creates a catalog of the built-in entries only.
    #[must_use]
    pub fn built_in() -> Catalog {
        Catalog {
            accelerators: Collection::new(&digest::ACCELERATORS),
            models: Collection::new(&digest::MODELS),
            prices: Collection::new(&digest::PRICES),
            files: Vec::new(),
            problems: Diagnostics::new(),
        }
    }

    /// Loads the built-in entries, and overrides them with `accelerators/*.yaml`, `models.yaml` and `prices.yaml` of
    /// each layer: an accelerator or model replaces the one with the same id, prices are added. If a file has errors,
    /// its entries in `before` are kept. Profiles, which the predecessor system kept in `accelerators/`, are ignored.
    #[must_use]
    pub fn load(sources: &Sources, before: Option<&Catalog>) -> Catalog {
        let mut catalog = Catalog::built_in();
        for layer in layer_directories(sources) {
            let folder = layer.join("accelerators");
            match yaml_files(&folder) {
                Ok(paths) => paths.into_iter().for_each(|path| catalog.add_file(path, Part::Accelerators, before)),
                Err(message) => {
                    let label: Arc<str> = folder.display().to_string().into();
                    catalog.problems.push(error_at(&label, Position::default(), message));
                    let mut broken = BrokenEntries::default();
                    broken.add_file(&label, None);
                    catalog.accelerators.record_broken(&broken);
                }
            }
            catalog.add_file(layer.join("models.yaml"), Part::Models, before);
            catalog.add_file(layer.join("prices.yaml"), Part::Prices, before);
        }
        catalog
    }

    /// Files and directories to watch for changes, including those that do not exist yet.
    #[must_use]
    pub fn watched_paths(sources: &Sources) -> Vec<PathBuf> {
        let below = |layer: &PathBuf| ["accelerators", "models.yaml", "prices.yaml"].map(|name| layer.join(name));
        layer_directories(sources).iter().flat_map(below).collect()
    }

    /// The text of a user's file as it was read.
    #[must_use]
    pub fn text(&self, path: &Path) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| &*file.text)
    }

    /// Problems in the user's files.
    #[must_use]
    pub fn problems(&self) -> &Diagnostics {
        &self.problems
    }

    /// All accelerators, built-in ones first.
    #[must_use]
    pub fn accelerators(&self) -> Vec<Arc<Accelerator>> {
        self.accelerators.all()
    }

    /// All models, built-in ones first.
    #[must_use]
    pub fn models(&self) -> Vec<Arc<Model>> {
        self.models.all()
    }

    /// All prices, built-in ones first.
    #[must_use]
    pub fn prices(&self) -> Vec<Arc<Price>> {
        self.prices.all_with_overridden()
    }

    /// Prices of an accelerator, under any of its names, built-in ones first.
    #[must_use]
    pub fn prices_of(&self, accelerator: &str) -> Vec<Arc<Price>> {
        let Some(found) = self.accelerators.find(accelerator) else { return self.prices.named(accelerator) };
        found.names().flat_map(|name| self.prices.named(name)).collect()
    }

    /// Returns the accelerator with this id or alias.
    ///
    /// # Errors
    /// If there is none, with the most similar id, or if the user's entry has errors. The caller must set file and
    /// position of the diagnostic.
    pub fn accelerator(&self, name: &str) -> Result<Arc<Accelerator>, Diagnostic> {
        if let Some(broken) = self.accelerators.broken_entry_diagnostic("accelerator", name) {
            return Err(broken);
        }
        self.accelerators.find(name).ok_or_else(|| unknown_name("accelerator", name, &self.accelerators))
    }

    /// Returns the accelerator that is meant by a name from a driver or vendor: `NVIDIA H100 80GB HBM3`, `Tesla
    /// V100-SXM2-32GB`, `MI300X`. All distinguishing words of the name must occur in the entry. Among the remaining
    /// variants, the one with the nearest memory size is chosen, then the form factor that is common in training nodes.
    #[must_use]
    pub fn find_accelerator_by_description(&self, name: &str, memory_gb: Option<f64>) -> Option<Arc<Accelerator>> {
        if let Ok(found) = self.accelerator(&name.trim().to_lowercase()) {
            return Some(found);
        }
        const IGNORED_WORDS: [&str; 14] = [
            "nvidia",
            "amd",
            "google",
            "aws",
            "intel",
            "tesla",
            "instinct",
            "tensor",
            "core",
            "gpu",
            "accelerator",
            "hbm",
            "graphics",
            "oam",
        ];
        let words = |text: &str| -> Vec<String> {
            let text = text.to_lowercase();
            let split = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            // SXM4, SXM5 etc. are the SXM of their generation.
            split.map(|word| if word.starts_with("sxm") { "sxm".to_owned() } else { word.to_owned() }).collect()
        };
        let wanted: Vec<String> = words(name)
            .into_iter()
            .filter(|word| !IGNORED_WORDS.contains(&word.as_str()) && !word.starts_with("hbm"))
            .collect();
        let distance = |sheet: &Accelerator| memory_gb.map_or(0.0, |gb| (gb - sheet.memory.gb).abs());
        let loose = |sheet: &Accelerator| {
            !sheet.form_factor.as_deref().is_some_and(|form| form.starts_with("SXM") || form.starts_with("OAM"))
        };
        let mut found: Vec<Arc<Accelerator>> = self
            .accelerators()
            .into_iter()
            .filter(|sheet| {
                let names = [&sheet.id, &sheet.name].into_iter().chain(&sheet.aliases).chain(&sheet.form_factor);
                let own: Vec<String> = names.flat_map(|name| words(name)).collect();
                !wanted.is_empty() && wanted.iter().all(|word| own.contains(word))
            })
            .collect();
        sort::by(&mut found, |a, b| distance(a).total_cmp(&distance(b)).then(loose(a).cmp(&loose(b))));
        found.into_iter().next()
    }

    /// Returns the model with this id or alias, the model of a checkpoint (see [`Catalog::checkpoint`]), or the one
    /// described by a `config.json`.
    ///
    /// # Errors
    /// If there is none, with the most similar id, or if the config has errors.
    pub fn model(&self, name: &str) -> Result<Arc<Model>, Diagnostics> {
        self.model_in(name, Path::new(""))
    }

    /// Like [`Catalog::model`], with paths of configs relative to `folder`, the directory of the file that names the
    /// model.
    ///
    /// # Errors
    /// See [`Catalog::model`].
    pub fn model_in(&self, name: &str, folder: &Path) -> Result<Arc<Model>, Diagnostics> {
        let sound = |name: &str| self.models.broken_entry_diagnostic("model", name).map_or(Ok(()), Err);
        if let Some(found) = self.models.find(name) {
            sound(name)?;
            return Ok(found);
        }
        let path = folder.join(name);
        if path.extension().is_some_and(|extension| extension == "json") {
            return hugging_face::read(&path).map(Arc::new);
        }
        if path.join("config.json").is_file() {
            return hugging_face::read(&path.join("config.json")).map(Arc::new);
        }
        let bare = name.rsplit('/').next().unwrap_or(name);
        sound(bare)?;
        let found = self.checkpoint(name).ok_or_else(|| unknown_name("model", bare, &self.models))?;
        sound(&found.id)?;
        Ok(found)
    }

    /// Returns the model of a published checkpoint, with the weight format that the name implies, if any:
    /// `Qwen/Qwen3-32B-FP8`. Does not access any file.
    #[must_use]
    pub fn checkpoint(&self, name: &str) -> Option<Arc<Model>> {
        let bare = name.rsplit('/').next().unwrap_or(name);
        if let Some(found) = self.models.find(bare) {
            return Some(found);
        }
        let (model, format) = checkpoint::find(bare, |name| self.models.find(name))?;
        // All 4-bit floating-point checkpoints of NVIDIA are NVFP4, also those with the suffix -FP4.
        let lower = name.to_ascii_lowercase();
        let nvfp4 = format == Some(Format::Fp4) && (lower.starts_with("nvidia/") || lower.contains("nvfp4"));
        Some(match format {
            Some(format) => Arc::new(Model { native_format: Some(format), nvfp4, ..Model::clone(&model) }),
            None => model,
        })
    }

    fn has_own(&self, part: Part) -> bool {
        match part {
            Part::Accelerators => self.accelerators.has_own(),
            Part::Models => self.models.has_own(),
            Part::Prices => self.prices.has_own(),
        }
    }

    /// Reads a user's file if it exists, and adds its entries.
    fn add_file(&mut self, path: PathBuf, part: Part, before: Option<&Catalog>) {
        if !may_exist(&path) {
            return;
        }
        let label: Arc<str> = path.display().to_string().into();
        let (mut problems, mut broken) = (Diagnostics::new(), BrokenEntries::default());
        let mut written: Arc<str> = "".into();
        let root = match read_text(&path) {
            // An unmodified copy of a built-in file has no effect, unless an earlier layer overrides entries.
            Ok(text) if !self.has_own(part) && digest::ships(&shipped_name(&path, part), &text) => return,
            Ok(text) => {
                let root = parse(&label, &text, &mut problems);
                if root.is_none() {
                    broken.add_file(&label, Some(&text));
                }
                written = text.into();
                root
            }
            Err(message) => {
                broken.add_file(&label, None);
                problems.push(error_at(&label, Position::default(), message));
                None
            }
        };
        // An empty file is an empty list.
        let nothing = Node::synthetic(atlas_document::Value::List(Vec::new()));
        let root = root.filter(|root| !root.is_null()).unwrap_or(nothing);
        if part == Part::Accelerators && part::is_profile(&root) {
            return;
        }
        let mut decoded = part.decode(&label, &root, &mut problems, &mut broken);
        let old = before.and_then(|before| before.files.iter().find(|file| file.path == path));
        if let Some(old) = old.filter(|_| problems.has_errors()) {
            (decoded, broken) = (old.entries.clone(), old.broken.clone());
        }
        match &decoded {
            Entries::Accelerators(all) => {
                all.iter().for_each(|entry| self.accelerators.add_override(Arc::clone(entry)))
            }
            Entries::Models(all) => all.iter().for_each(|entry| self.models.add_override(Arc::clone(entry))),
            Entries::Prices(all) => all.iter().for_each(|entry| self.prices.add(Arc::clone(entry))),
        }
        match part {
            Part::Accelerators => self.accelerators.record_broken(&broken),
            Part::Models => self.models.record_broken(&broken),
            // Prices do not override each other.
            Part::Prices => {}
        }
        self.problems.extend(problems);
        self.files.push(Arc::new(File { path, text: written, entries: decoded, broken }));
    }
}

/// Path of the built-in file with the same name.
fn shipped_name(path: &Path, part: Part) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match part {
        Part::Accelerators => format!("workload/accelerators/{name}"),
        Part::Models | Part::Prices => format!("workload/{name}"),
    }
}

/// Directories of the layers in ascending precedence, without the built-in layer.
fn layer_directories(sources: &Sources) -> Vec<PathBuf> {
    if let Some(dir) = &sources.workload_dir {
        return vec![dir.clone()];
    }
    let config = sources.config_dir.as_ref().map(|dir| dir.join("workload"));
    config.into_iter().chain(sources.working_dir.then(|| PathBuf::from("workload"))).collect()
}

fn unknown_name<T: Item>(kind: &str, name: &str, collection: &Collection<T>) -> Diagnostic {
    let names: Vec<String> = collection.names().collect();
    let near = did_you_mean(name, names.iter().map(String::as_str));
    let message = format!("no {kind} `{name}` in the catalog");
    Diagnostic { help: near, ..error_at(&COMMAND_LINE.into(), Position::default(), message) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn accelerator_is_found_by_its_driver_name() {
        let catalog = Catalog::built_in();
        for (name, gb, id) in [
            ("NVIDIA H100 80GB HBM3", None, "nvidia-h100-sxm-80gb"),
            ("H100", Some(80.0), "nvidia-h100-sxm-80gb"),
            ("NVIDIA H100 PCIe", Some(80.0), "nvidia-h100-pcie-80gb"),
            ("NVIDIA A100-SXM4-80GB", None, "nvidia-a100-sxm-80gb"),
            ("NVIDIA A100-SXM4-40GB", None, "nvidia-a100-sxm-40gb"),
            ("Tesla V100-SXM2-32GB", None, "nvidia-v100-sxm-32gb"),
            ("AMD Instinct MI300X OAM", Some(206.0), "amd-mi300x"),
            ("MI300X", Some(192.0), "amd-mi300x"),
            ("NVIDIA H200", None, "nvidia-h200-sxm"),
        ] {
            let found = catalog.find_accelerator_by_description(name, gb).map(|sheet| sheet.id.clone());
            assert_eq!(found.as_deref(), Some(id), "{name}");
        }
        assert!(catalog.find_accelerator_by_description("NVIDIA", None).is_none());
        assert!(catalog.find_accelerator_by_description("Radeon Nonsense 9", None).is_none());
    }
}
