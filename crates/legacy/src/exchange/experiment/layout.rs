//! Decoding of the experiment's parallelism, and checks against GPUs and batches.

use super::Experiment;
use super::document::{Model, Platform, RANK, Reader};
use atlas_core::plan::Methodology;
use atlas_document::decode::Fields;
use atlas_document::node::Entry;
use atlas_document::{Node, Severity};

/// Parallelism of one model on one platform under one methodology.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// The methodology.
    pub methodology: Methodology,
    /// Key of the model.
    pub model: String,
    /// Key of the platform.
    pub platform: String,
    /// The entry in the document.
    pub node: Node,
    /// Key of the methodology in the document, for the paths in diagnostics.
    pub written: String,
    /// Tensor-parallel ranks.
    pub tp: f64,
    /// Pipeline stages.
    pub pp: f64,
    /// Data-parallel replicas.
    pub dp: f64,
    /// Context-parallel ranks.
    pub cp: Option<f64>,
    /// Expert-parallel ranks.
    pub ep: Option<f64>,
    /// Model chunks per pipeline stage.
    pub vpp: Option<f64>,
    /// Whether sequence parallelism is used.
    pub sp: Option<bool>,
    /// Micro-batches per replica and step, if the document states them.
    pub accumulation: Option<f64>,
}

/// Short names of the fields of a layout, and the keys that the document may use for each.
const RANKS: [(&str, &[&str]); 7] = [
    ("tp", &["tensor_model_parallel_size", "tensor_parallel_size", "TP", "tp"]),
    ("pp", &["pipeline_model_parallel_size", "pipeline_parallel_size", "PP", "pp"]),
    ("dp", &["data_parallel_size", "DP", "dp"]),
    ("cp", &["context_parallel_size", "CP", "cp"]),
    ("ep", &["expert_model_parallel_size", "expert_parallel_size", "EP", "ep"]),
    ("vpp", &["virtual_pipeline_model_parallel_size", "VPP", "vpp"]),
    ("ga", &["gradient_accumulation_steps", "GA", "ga"]),
];

impl Layout {
    /// Returns the node of a field, given by its short name such as `tp`, under any of its keys.
    #[must_use]
    pub fn of(&self, rank: &str) -> Option<&Node> {
        let (_, spellings) = RANKS.iter().find(|(name, _)| *name == rank)?;
        spellings.iter().find_map(|spelling| self.node.get(spelling)).filter(|node| !node.is_null())
    }
}

impl Reader<'_> {
    pub(super) fn layouts(&mut self, root: &Node, platforms: &[Platform], models: &[Model]) -> Vec<Layout> {
        let platform_keys: Vec<String> = platforms.iter().map(|platform| platform.key.clone()).collect();
        let model_keys: Vec<String> = models.iter().map(|model| model.key.clone()).collect();
        let mut layouts = Vec::new();
        for method in self.named(root, &["parallelism"]) {
            let path = format!("parallelism.{}", method.key);
            let Some(methodology) = Methodology::named(&method.key) else {
                let message =
                    format!("found methodology `{}`, expected maximum_performance or identical_config", method.key);
                self.diagnose(Severity::Error, method.key_at, path, message, None);
                continue;
            };
            for model in self.named(root, &["parallelism", &method.key]) {
                // Entries that were left out because of errors are declared nonetheless, so look them up in the
                // document.
                let declared =
                    |path: &[&str], key: &str| root.at_path(path).is_some_and(|node| node.get(key).is_some());
                let path = format!("{path}.{}", model.key);
                if !declared(&["models"], &model.key) {
                    self.unknown(model, &path, "model", &model_keys);
                    continue;
                }
                for platform in self.named(root, &["parallelism", &method.key, &model.key]) {
                    let path = format!("{path}.{}", platform.key);
                    if !declared(&["hardware", "platforms"], &platform.key) {
                        self.unknown(platform, &path, "platform", &platform_keys);
                        continue;
                    }
                    let names = (&*method.key, &*model.key, &*platform.key);
                    layouts.extend(self.layout(methodology, names, path, &platform.value));
                }
            }
        }
        layouts
    }

    fn layout(
        &mut self,
        methodology: Methodology,
        (written, model, platform): (&str, &str, &str),
        path: String,
        node: &Node,
    ) -> Option<Layout> {
        let before = self.problems.errors();
        let mut fields = Fields::open(self.file, path, node, self.problems)?;
        let mut ranks = RANKS.iter().map(|(name, spellings)| {
            let value = spellings.iter().find_map(|spelling| fields.number(spelling, RANK));
            (*name, spellings.first().copied().unwrap_or_default(), value)
        });
        let ranks: Vec<(&str, &str, Option<f64>)> = ranks.by_ref().collect();
        let of = |rank: &str| ranks.iter().find(|(name, ..)| *name == rank).and_then(|(.., value)| *value);
        for (name, spelling, value) in ranks.iter().filter(|(name, ..)| matches!(*name, "tp" | "pp" | "dp")) {
            let spelt = RANKS.iter().find(|(known, _)| known == name).map_or(&[] as &[&str], |(_, all)| all);
            if value.is_none() && !spelt.iter().any(|spelling| fields.has(spelling)) {
                fields.missing(spelling);
            }
        }
        let sp = ["sequence_parallel", "SP", "sp"].into_iter().find_map(|spelling| fields.boolean(spelling));
        fields.text("notes");
        fields.finish();
        if self.problems.errors() > before {
            return None;
        }
        Some(Layout {
            methodology,
            model: model.to_owned(),
            platform: platform.to_owned(),
            node: node.clone(),
            written: written.to_owned(),
            tp: of("tp")?,
            pp: of("pp")?,
            dp: of("dp")?,
            cp: of("cp"),
            ep: of("ep"),
            vpp: of("vpp"),
            sp,
            accumulation: of("ga"),
        })
    }

    /// Checks each layout against the number of GPUs and against the batch sizes.
    pub(super) fn check(&mut self, experiment: &Experiment) {
        for layout in &experiment.layouts {
            let path = format!("parallelism.{}.{}.{}", layout.written, layout.model, layout.platform);
            let at = |rank: &str| layout.of(rank).map_or(layout.node.at, |node| node.at);
            let Layout { tp, pp, dp, .. } = *layout;
            let cp = layout.cp.unwrap_or(1.0);
            if let Some(platform) = experiment.platforms.iter().find(|platform| platform.key == layout.platform)
                && tp * pp * dp * cp != platform.gpus
            {
                let with_cp = if cp > 1.0 { format!(" x CP {cp}") } else { String::new() };
                let message = format!(
                    "TP {tp} x PP {pp} x DP {dp}{with_cp} = {}, but {} has {} GPUs",
                    tp * pp * dp * cp,
                    platform.key,
                    platform.gpus
                );
                let fits = platform.gpus / (tp * pp * cp);
                let help = (fits.fract() == 0.0).then(|| format!("set DP to {fits} to match the number of GPUs"));
                self.diagnose(Severity::Error, layout.node.at, path.clone(), message, help);
            }
            if let (Some(global), Some(micro)) = (experiment.training.global, experiment.training.micro) {
                let steps = global / (micro * dp);
                match layout.accumulation {
                    Some(accumulation) if micro * dp * accumulation != global => {
                        let message = format!(
                            "MBS {micro} x DP {dp} x GA {accumulation} = {}, but the global batch is {global}",
                            micro * dp * accumulation
                        );
                        let help =
                            (steps.fract() == 0.0).then(|| format!("set GA to {steps} to match the global batch"));
                        self.diagnose(Severity::Error, at("ga"), path.clone(), message, help);
                    }
                    None if steps.fract() != 0.0 => {
                        let message = format!(
                            "the global batch of {global} is not a multiple of MBS {micro} x DP {dp} = {}",
                            micro * dp
                        );
                        self.diagnose(Severity::Error, at("dp"), path.clone(), message, None);
                    }
                    _ => {}
                }
            }
        }
        self.check_completeness(experiment);
    }

    /// Warns about models without a layout on a platform under the selected methodology.
    fn check_completeness(&mut self, experiment: &Experiment) {
        if experiment.root.get("parallelism").is_none() {
            return;
        }
        for model in &experiment.models {
            for platform in &experiment.platforms {
                let declared = experiment.root.get("parallelism").and_then(Node::entries).unwrap_or_default();
                let of = |method: &&Entry| Methodology::named(&method.key) == Some(experiment.methodology);
                let found =
                    declared.iter().find(of).and_then(|method| method.value.at_path(&[&model.key, &platform.key]));
                if found.is_none() {
                    let path = format!("parallelism.{}.{}", experiment.methodology.name().replace('-', "_"), model.key);
                    let message = format!("no parallelism for {}; one replica per GPU is assumed", platform.key);
                    self.diagnose(Severity::Warning, model.at, path, message, None);
                }
            }
        }
    }
}
