//! Conversion of an experiment to entries of `targets.yaml` and `workloads.yaml`. Fields that the document lacks are
//! taken from the catalog.

use std::sync::Arc;

use super::super::tree::{Tree, number};
use super::super::{ConvertedEntries, WorkloadVariant};
use super::Experiment;
use super::document::{Model, Platform};
use super::layout::Layout;
use atlas_catalog::{Accelerator, Catalog, Model as Known};
use atlas_core::plan::{Format, Methodology};
use atlas_document::node::Position;
use atlas_document::suggestion::did_you_mean;
use atlas_document::{Diagnostic, Diagnostics, Node, Severity, Value};

/// Share of a node's power that its accelerators draw (a DGX H100's: 5.6 of 10.2 kW).
const ACCELERATOR_POWER_SHARE: f64 = 0.55;
/// Relative difference between the values of the document and the catalog above which a warning is reported.
const WARN_TOLERANCE: f64 = 0.05;

impl Experiment {
    /// Converts the platforms to targets and the models to workloads, with a variant of each workload for each target
    /// and methodology.
    #[must_use]
    pub fn converted_entries(&self, catalog: &Catalog, problems: &mut Diagnostics) -> ConvertedEntries {
        let mut builder = Builder { experiment: self, catalog, problems };
        let mut foreign = ConvertedEntries { methodology: Some(self.methodology), ..ConvertedEntries::default() };
        foreign.targets = self.platforms.iter().filter_map(|platform| builder.target(platform)).collect();
        for model in &self.models {
            let Some(known) = builder.model(model) else { continue };
            for methodology in Methodology::ALL {
                for platform in &self.platforms {
                    let layout = self.layout(methodology, &model.key, &platform.key);
                    if let (Some(layout), Some(known)) = (layout, &known) {
                        builder.check_divisibility(layout, model, known);
                    }
                    if layout.is_none() && methodology != self.methodology {
                        continue;
                    }
                    let workload = builder.workload(model, known.as_deref(), methodology, platform, layout);
                    foreign.workload_variants.push(WorkloadVariant {
                        methodology,
                        target: platform.key.clone(),
                        workload,
                    });
                }
            }
            // The workload's entry is that of the first platform. Knobs that differ override it for other platforms.
            let first = foreign.workload_variants.iter().find(|tailored| {
                tailored.methodology == self.methodology
                    && tailored.workload.get("name").and_then(Node::text) == Some(&model.key)
            });
            foreign.workloads.extend(first.map(|tailored| tailored.workload.clone()));
        }
        foreign
    }

    /// Returns the catalog's accelerator that matches a platform's `gpu_model`.
    #[must_use]
    pub fn accelerator(platform: &Platform, catalog: &Catalog) -> Option<Arc<Accelerator>> {
        catalog.find_accelerator_by_description(&platform.gpu_model, platform.memory_gb)
    }

    /// Returns the catalog's model that matches the name, the full name or the key of an entry.
    #[must_use]
    pub fn known(model: &Model, catalog: &Catalog) -> Option<Arc<Known>> {
        let names = [Some(&model.name), model.full_name.as_ref(), Some(&model.key)];
        names.into_iter().flatten().find_map(|name| {
            let spelt = name.trim().to_lowercase().replace([' ', '_'], "-");
            [name.clone(), spelt.clone(), spelt.replace("meta-", "")].iter().find_map(|name| catalog.model(name).ok())
        })
    }
}

struct Builder<'a> {
    experiment: &'a Experiment,
    catalog: &'a Catalog,
    problems: &'a mut Diagnostics,
}

impl Builder<'_> {
    fn diagnose(&mut self, severity: Severity, at: Position, path: String, message: String, help: Option<String>) {
        let file = Arc::clone(&self.experiment.file);
        self.problems.push(Diagnostic { severity, file, at, path, message, help });
    }

    fn place(&self, path: &[&str], otherwise: Position) -> Position {
        self.experiment.at(path).map_or(otherwise, |node| node.at)
    }

    fn target(&mut self, platform: &Platform) -> Option<Node> {
        let path = format!("hardware.platforms.{}", platform.key);
        let of = |key: &'static str| ["hardware", "platforms", &platform.key, key];
        let gpu_at = self.place(&of("gpu_model"), platform.at);
        let Some(sheet) = Experiment::accelerator(platform, self.catalog) else {
            let known = self.catalog.accelerators();
            let help = did_you_mean(&platform.gpu_model, known.iter().map(|sheet| sheet.id.as_str()));
            let message = format!("the catalog has no accelerator named \"{}\"", platform.gpu_model);
            self.diagnose(Severity::Error, gpu_at, format!("{path}.gpu_model"), message, help);
            return None;
        };
        let each = platform.gpus / platform.nodes;
        let memory = platform.memory_gb.unwrap_or(sheet.memory.gb);
        let memory_at = self.place(&of("memory_per_gpu_gb"), gpu_at);
        if (memory - sheet.memory.gb).abs() > WARN_TOLERANCE * sheet.memory.gb {
            let message = format!("found {memory} GB, but `{}` has {} GB in the catalog", sheet.id, sheet.memory.gb);
            self.diagnose(Severity::Warning, memory_at, format!("{path}.memory_per_gpu_gb"), message, None);
        }
        let tdp = self.specs(platform, &sheet).or(sheet.tdp_w).unwrap_or_default();
        let price = platform.usd_per_gpu_hour.or_else(|| {
            let prices = self.catalog.prices_of(&sheet.id);
            let each = prices.iter().map(|price| price.usd_per_accelerator_hour());
            each.min_by(f64::total_cmp).map(|price| (price, gpu_at))
        });
        if price.is_none() {
            let message = "no price in benchmarking.enhanced_metrics.cloud_costs or in the catalog";
            self.diagnose(Severity::Warning, platform.at, path, message.to_owned(), None);
        }
        let (price, price_at) = price.unwrap_or((0.0, platform.at));
        let gpus_at = self.place(&of("num_gpus"), platform.at);
        let cost = Tree::default()
            .number("hourly_usd", price * each, price_at)
            .number("energy_watts_node", (tdp * each / ACCELERATOR_POWER_SHARE).round(), gpu_at)
            .number("pue", 1.0, platform.at);
        let tree = Tree::default()
            .text("name", platform.key.clone(), platform.at)
            .text("vendor", sheet.vendor.clone(), gpu_at)
            .text("accelerator", sheet.id.clone(), gpu_at)
            .number("accelerators_per_node", each, gpus_at)
            .number("num_nodes", platform.nodes, gpus_at)
            .number("memory_gb_per_accel", memory, memory_at)
            .map("cost", cost, price_at);
        let stack = [platform.framework.as_deref(), platform.stack.as_deref()].into_iter().flatten();
        let stack: Vec<&str> = stack.collect();
        let about = format!("{} x {} ({})", platform.gpus, platform.gpu_model, stack.join(" on "));
        let about = about.trim_end_matches(" ()").to_owned();
        Some(tree.text("description", about, platform.at).done(platform.at))
    }

    /// Returns the TDP that the document states, in W. Warns about peak rates that differ from the catalog's.
    fn specs(&mut self, platform: &Platform, sheet: &Accelerator) -> Option<f64> {
        let specs = platform.specs.as_ref()?;
        for (name, peak) in sheet.peaks.all() {
            let key = format!("peak_tflops_{name}");
            let Some((node, peak)) = specs.get(&key).zip(peak) else { continue };
            let Some(stated) = node.number() else { continue };
            // Documents state peaks in FLOP/s or in TFLOP/s.
            let stated = if stated > 1e6 { stated * 1e-12 } else { stated };
            if (stated - peak).abs() > WARN_TOLERANCE * peak {
                let message = format!(
                    "found {stated} TFLOP/s, but the catalog's dense peak of `{}` is {peak} TFLOP/s, which is used",
                    sheet.id
                );
                let path = format!("hardware_specs.{key}");
                self.diagnose(Severity::Warning, node.at, path, message, None);
            }
        }
        specs.get("tdp_watts").and_then(Node::number)
    }

    /// Returns the catalog's model that matches an entry, or `Some(None)` if there is none but the entry is complete.
    /// Otherwise reports an error and returns `None`.
    fn model(&mut self, model: &Model) -> Option<Option<Arc<Known>>> {
        let path = format!("models.{}", model.key);
        let name_at = self.place(&["models", &model.key, "name"], model.at);
        let Some(known) = Experiment::known(model, self.catalog) else {
            let missing: Vec<&str> = [("num_layers", model.layers), ("hidden_size", model.hidden)]
                .into_iter()
                .filter_map(|(key, value)| value.is_none().then_some(key))
                .collect();
            if missing.is_empty() {
                return Some(None);
            }
            let message = format!("the catalog has no model named \"{}\"", model.name);
            let help = format!("add {}, or use the name of a model in the catalog", missing.join(" and "));
            self.diagnose(Severity::Error, name_at, format!("{path}.name"), message, Some(help));
            return None;
        };
        let network = known.transformer();
        let of = |value: fn(&atlas_catalog::transformer::Transformer) -> f64| network.map(value);
        for (key, said, catalogued) in [
            ("num_parameters", model.parameters, Some(known.parameters())),
            ("num_layers", model.layers, of(|network| f64::from(network.n_layers))),
            ("hidden_size", model.hidden, of(|network| f64::from(network.hidden_size))),
            ("num_attention_heads", model.heads, of(|network| f64::from(network.n_heads))),
        ] {
            let Some((said, catalogued)) = said.zip(catalogued) else { continue };
            if (said - catalogued).abs() > WARN_TOLERANCE * catalogued {
                let at = self.place(&["models", &model.key, key], model.at);
                let used = if key == "num_parameters" { "the catalog's value" } else { "the value in this file" };
                let message =
                    format!("found {said}, but `{}` has {catalogued} in the catalog; {used} is used", known.id);
                self.diagnose(Severity::Warning, at, format!("{path}.{key}"), message, None);
            }
        }
        Some(Some(known))
    }

    /// Checks that TP divides the attention heads and that the pipeline stages divide the layers.
    fn check_divisibility(&mut self, layout: &Layout, model: &Model, known: &Known) {
        let network = known.transformer();
        let heads = model.heads.or(network.map(|network| network.n_heads.into()));
        let layers = model.layers.or(network.map(|network| network.n_layers.into()));
        let path = format!("parallelism.{}.{}.{}", layout.written, layout.model, layout.platform);
        let at = |rank: &str| layout.of(rank).map_or(layout.node.at, |node| node.at);
        if let Some(heads) = heads.filter(|heads| heads % layout.tp != 0.0) {
            let message = format!("TP {} does not divide the {heads} attention heads of {}", layout.tp, model.name);
            self.diagnose(Severity::Error, at("tp"), path.clone(), message, None);
        }
        let stages = layout.pp * layout.vpp.unwrap_or(1.0);
        if let Some(layers) = layers.filter(|layers| layers % stages != 0.0) {
            let (severity, uneven) = if layers < stages {
                (Severity::Error, "there are fewer layers than stages")
            } else {
                (Severity::Warning, "the stages have different numbers of layers")
            };
            let message = format!(
                "{stages} pipeline stages (PP x VPP) do not divide the {layers} layers of {}: {uneven}",
                model.name
            );
            self.diagnose(severity, at("pp"), path, message, None);
        }
    }

    fn workload(
        &self,
        model: &Model,
        known: Option<&Known>,
        methodology: Methodology,
        platform: &Platform,
        layout: Option<&Layout>,
    ) -> Node {
        let training = &self.experiment.training;
        let place = |path: &[&str]| self.place(path, model.at);
        let of = |key: &str| self.experiment.at(&["models", &model.key, key]).cloned();
        let tree = Tree::default().text("name", model.key.clone(), model.at).text("mode", "training", model.at);
        let tree = tree.put("description", of("full_name"));
        let mut params = Tree::default()
            .put("hidden_size", of("hidden_size"))
            .put("n_layers", of("num_layers"))
            .put("n_heads", of("num_attention_heads"));
        let tree = match known {
            Some(known) => tree.text("model", known.id.clone(), place(&["models", &model.key, "name"])),
            None => {
                params = params.put("vocab_size", of("vocab_size"));
                tree
            }
        };
        let data = |key: &'static str| place(&["training", "data", key]);
        let sequence = Tree::default()
            .number("prompt", training.sequence.unwrap_or_default(), data("seq_length"))
            .number("generate", 0.0, data("seq_length"));
        let batch = Tree::default().number("micro", training.micro, data("micro_batch_size")).number(
            "global",
            training.global,
            data("global_batch_size"),
        );
        let ways = match layout {
            Some(layout) => {
                let at = |rank: &str| layout.of(rank).map_or(layout.node.at, |node| node.at);
                let sp = layout.sp.map(|on| Node { value: Value::Bool(on), at: layout.node.at });
                Tree::default()
                    .number("tp", layout.tp, at("tp"))
                    .number("pp", layout.pp, at("pp"))
                    .number("dp", layout.dp, at("dp"))
                    .number("cp", layout.cp, at("cp"))
                    .number("ep", layout.ep, at("ep"))
                    .number("vpp", layout.vpp, at("vpp"))
                    .put("sp", sp)
            }
            None => Tree::default().number("tp", 1.0, platform.at).number("pp", 1.0, platform.at).number(
                "dp",
                platform.gpus,
                platform.at,
            ),
        };
        let (format, format_at) = self.experiment.precision(methodology, platform).unwrap_or((Format::Bf16, model.at));
        let tree = tree
            .map("params", params, model.at)
            .map("sequence", sequence, data("seq_length"))
            .map("batch", batch, data("global_batch_size"))
            .map("parallelism", ways, layout.map_or(model.at, |layout| layout.node.at))
            .map("precision", Tree::default().text("weights", format.name(), format_at), format_at);
        let tree = match self.experiment.checkpointing(methodology, platform) {
            Some((on, at)) => tree.text("recompute", if on { "full" } else { "none" }, at),
            None => tree,
        };
        let tokens = training.steps.zip(training.global).zip(training.sequence);
        let tokens = tokens.map(|((steps, global), sequence)| steps * global * sequence);
        let steps_at = place(&["training", "duration", "max_steps"]);
        tree.put("train_tokens", tokens.map(|tokens| number(tokens, steps_at))).done(model.at)
    }
}

impl Experiment {
    /// Returns the precision in effect: the platform's own under maximum-performance, otherwise that of `training`.
    #[must_use]
    pub fn precision(&self, methodology: Methodology, platform: &Platform) -> Option<(Format, Position)> {
        let own = platform.optimizations.precision.filter(|_| methodology == Methodology::MaximumPerformance);
        own.or(self.training.precision)
    }

    /// Returns whether activations are recomputed, with the position of the setting. Under identical-config, the
    /// setting counts only if all platforms have the same one.
    #[must_use]
    pub fn checkpointing(&self, methodology: Methodology, platform: &Platform) -> Option<(bool, Position)> {
        let own = platform.optimizations.checkpointing;
        if methodology == Methodology::MaximumPerformance {
            return own;
        }
        let agreed = self
            .platforms
            .iter()
            .all(|other| other.optimizations.checkpointing.map(|(on, _)| on) == own.map(|(on, _)| on));
        own.filter(|_| agreed)
    }
}
