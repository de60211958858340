//! A serving deployment.

use atlas_catalog::Model;
use atlas_core::count::Count;
use atlas_core::plan::Format;
use atlas_plan::scenario::Scenario;

use super::{count, maybe};

/// A serving deployment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Serving {
    pub(crate) tp: u64,
    pub(crate) pp: u64,
    pub(crate) ep: u64,
    pub(crate) attention_dp: u64,
    /// Number of replicas on all nodes.
    pub(crate) replicas: u64,
    /// Format of the weights.
    pub(crate) format: Format,
    /// Format of the weights, if it differs from the published weights.
    pub(crate) quantized: Option<Format>,
    pub(crate) kv: Option<Format>,
    /// Tokens of text in a prompt.
    pub(crate) prompt: u64,
    /// Tokens of the images of a request.
    pub(crate) image_tokens: u64,
    /// Mean number of output tokens.
    pub(crate) generate: u64,
    /// Maximum number of output tokens.
    pub(crate) generate_max: u64,
    pub(crate) concurrency: u64,
    pub(crate) rate: Option<f64>,
    pub(crate) max_num_seqs: Option<u64>,
    pub(crate) max_num_batched_tokens: Option<u64>,
    pub(crate) memory_share: Option<f64>,
    pub(crate) chunked_prefill: Option<bool>,
    pub(crate) graphs: Option<bool>,
    pub(crate) draft_tokens: Option<u64>,
    /// Whether this is a pool of prefill workers.
    pub(crate) only_prefills: bool,
}

impl Serving {
    /// Derives the deployment from a serving scenario.
    pub(super) fn of(scenario: &Scenario, model: &Model) -> Serving {
        let (phase, plan) = (&scenario.base, &scenario.base.plan);
        let serving = &plan.serving;
        let native = model.native_format.unwrap_or(Format::Bf16);
        Serving {
            tp: count(phase.shape.tp),
            pp: count(phase.shape.pp),
            ep: if scenario.model.is_some_and(|model| model.is_moe()) {
                count(plan.ep.unwrap_or(Count::ONE))
            } else {
                1
            },
            attention_dp: count(plan.attention_dp.unwrap_or(Count::ONE)),
            replicas: count(phase.shape.dp),
            format: plan.format.unwrap_or(native),
            quantized: plan.format.filter(|format| *format != native),
            kv: plan.kv,
            prompt: count(phase.shape.prompt),
            image_tokens: scenario.images(phase).map_or(0, |images| count(images.tokens)),
            generate: tokens(phase.shape.generate),
            generate_max: tokens(serving.generate_max.map_or(phase.shape.generate, f64::from)),
            concurrency: count(scenario.concurrency(phase)),
            rate: serving.request_rate,
            max_num_seqs: maybe(serving.max_num_seqs),
            max_num_batched_tokens: maybe(serving.max_num_batched_tokens),
            memory_share: serving.gpu_memory_utilization,
            chunked_prefill: serving.chunked_prefill,
            graphs: plan.graphs,
            draft_tokens: maybe(serving.draft_tokens),
            only_prefills: false,
        }
    }

    /// Number of devices per replica.
    pub(crate) fn devices(&self) -> u64 {
        self.tp * self.pp * self.attention_dp
    }

    /// Maximum length of a request: tokens of text, images and output.
    pub(crate) fn length(&self) -> u64 {
        self.prompt + self.image_tokens + self.generate_max
    }
}

/// Rounds a number of tokens, which may be zero.
fn tokens(mean: f64) -> u64 {
    if mean > 0.0 { count(mean) } else { 0 }
}
