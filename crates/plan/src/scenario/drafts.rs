//! Speculative decoding of a scenario: draft method, cost and acceptance rate.

use super::{Phase, Scenario};
use atlas_core::count::Count;
use atlas_core::plan::DraftMethod;
use atlas_perf::arch::Architecture;
use atlas_perf::serving::Speculation;

/// Default size of a draft model, billions of parameters: the smallest model of the families that have one.
pub(super) const DRAFT_PARAMS_B: f64 = 1.0;
/// Default probability that a drafted token is accepted: about that of EAGLE and MTP heads on chat (EAGLE-2, arXiv
/// 2406.16858, table 1; DeepSeek-V3, arXiv 2412.19437, section 5.4.3: 0.85 to 0.90 for one token).
const ACCEPTANCE: f64 = 0.7;
/// Default acceptance probability of n-gram lookup, for free text. Edits and quotations are far more repetitive.
const NGRAM_ACCEPTANCE: f64 = 0.3;
/// Default share by which the acceptance of EAGLE-3 falls from one position to the next: hardly, since it is trained on
/// its own outputs (arXiv 2503.01840, figure 7, from memory).
const EAGLE_DECLINE: f64 = 0.02;
/// The same for layers that predict one further token, which then draft all positions: as published for DeepSeek-V3 in
/// the catalog.
const MTP_DECLINE: f64 = 0.2;
/// Vocabulary of the output layer of a trained draft layer (arXiv 2503.01840: the 32,000 most frequent tokens).
const DRAFT_VOCABULARY: f64 = 32_000.0;

impl Scenario {
    /// Speculative decoding of a phase. Values that are not stated are those published for the model and method,
    /// otherwise defaults.
    #[must_use]
    pub fn drafts(&self, phase: &Phase) -> Speculation {
        let stated = &phase.plan.serving;
        let published =
            stated.draft_method.and_then(|method| self.published_drafts.iter().find(|d| d.method == method));
        let (acceptance, decline) = match stated.draft_method {
            Some(DraftMethod::Ngram) => (NGRAM_ACCEPTANCE, 0.0),
            Some(DraftMethod::Eagle3) => (ACCEPTANCE, EAGLE_DECLINE),
            Some(DraftMethod::Mtp) => (ACCEPTANCE, MTP_DECLINE),
            Some(DraftMethod::DraftModel) | None => (ACCEPTANCE, 0.0),
        };
        Speculation {
            tokens: stated.draft_tokens.unwrap_or(Count::ZERO),
            acceptance: stated.draft_acceptance.or(published.map(|d| d.acceptance)).unwrap_or(acceptance),
            decline: stated.draft_decline.or(published.map(|d| d.decline)).unwrap_or(decline),
            max_batch: stated.draft_max_batch,
            draft_layers: self.model.as_ref().map_or(0.0, |model| layers(model, stated.draft_method)),
            draft_head: self.model.as_ref().map_or(0.0, |model| head(model, stated.draft_method)),
            draft_dense_bytes: match (self.model.as_ref(), stated.draft_method) {
                (Some(model), Some(DraftMethod::Eagle3)) if model.is_moe() => dense_layer(model),
                _ => 0.0,
            },
            draft_params: match stated.draft_method {
                Some(DraftMethod::DraftModel) => 1e9 * stated.draft_params_b.unwrap_or(DRAFT_PARAMS_B),
                _ => 0.0,
            },
            draft_weight_bytes: self.model.as_ref().map_or(0.0, |model| {
                let formats = &phase.serving_defaults.formats;
                let layer = if model.is_moe() { formats.expert_bytes } else { formats.dense_bytes };
                let params_b = stated.draft_params_b.unwrap_or(DRAFT_PARAMS_B);
                weights(model, stated.draft_method, params_b, layer)
            }),
        }
    }

    /// Whether the acceptance rate of the draft method is assumed, because it is neither stated nor published for the
    /// model.
    #[must_use]
    pub fn assumes_acceptance(&self, phase: &Phase) -> bool {
        let stated = &phase.plan.serving;
        let published = self.published_drafts.iter().any(|d| Some(d.method) == stated.draft_method);
        stated.draft_method.is_some() && stated.draft_acceptance.is_none() && !published
    }
}

/// Layers that draft a token, relative to those of the model. The steps of a draft model are timed instead.
fn layers(model: &Architecture, method: Option<DraftMethod>) -> f64 {
    match method {
        None | Some(DraftMethod::Mtp | DraftMethod::Eagle3) => 1.0 / model.layers.max(Count::ONE),
        Some(DraftMethod::DraftModel | DraftMethod::Ngram) => 0.0,
    }
}

/// Columns of the output layer that a drafted token needs, relative to those of the model.
fn head(model: &Architecture, method: Option<DraftMethod>) -> f64 {
    match method {
        Some(DraftMethod::Mtp) => 1.0,
        Some(DraftMethod::Eagle3) => (DRAFT_VOCABULARY / model.vocab.max(Count::ONE)).min(1.0),
        None | Some(DraftMethod::DraftModel | DraftMethod::Ngram) => 0.0,
    }
}

/// Bytes of a trained draft layer: one dense layer in 16 bit that reads the hidden states of three layers of the model
/// (arXiv 2503.01840, section 3.1).
fn dense_layer(model: &Architecture) -> f64 {
    2.0 * (7.0 * model.hidden * model.hidden + model.mlp_params(f64::from(model.ffn)))
}

/// Bytes of the weights that draft tokens, in addition to those of the model. A layer for multi-token prediction is stored like
/// the other layers, with `layer_bytes` bytes per weight, and shares embedding and output layer with the model; trained draft
/// layers and draft models have 16 bit.
fn weights(model: &Architecture, method: Option<DraftMethod>, params_b: f64, layer_bytes: f64) -> f64 {
    let embedding = model.vocab * model.hidden;
    let mean_layer = (model.params() - 2.0 * embedding).max(0.0) / model.layers.max(Count::ONE);
    match method {
        Some(DraftMethod::Mtp) => (mean_layer + 2.0 * model.hidden * model.hidden) * layer_bytes,
        Some(DraftMethod::Eagle3) => {
            dense_layer(model) + 2.0 * f64::from(model.vocab).min(DRAFT_VOCABULARY) * model.hidden
        }
        Some(DraftMethod::DraftModel) => 2e9 * params_b,
        None | Some(DraftMethod::Ngram) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{EAGLE_DECLINE, MTP_DECLINE};
    use crate::engine::estimate;
    use crate::estimate::{MemoryPart, TimePart};
    use crate::knob::{Knob, KnobValues as _, Overrides, assignment};
    use crate::scenario::Scenario;
    use crate::testing;
    use atlas_perf::serving::speculative::tokens_per_step;

    /// The scenario of a workload on eight H200 with the stated knobs.
    fn scenario(workload: &str, set: &[&str]) -> Scenario {
        testing::scenario("h200-sxm-8", workload, set).1
    }

    #[test]
    fn sglang_runs_at_most_48_sequences_with_drafts_unless_stated() {
        let limit = |set: &[&str]| scenario("llama3.1-70b-serve", set).get(Knob::MaxNumSeqs).to_string();
        let drafts = ["draft_method=eagle3", "draft_tokens=3"];
        let with = |more: &[&'static str]| [&drafts[..], more].concat();
        assert_eq!(limit(&with(&["software=sglang@0.5.10"])), "48");
        assert_eq!(limit(&with(&["software=sglang@0.4.4"])), "32");
        assert_eq!(limit(&with(&["software=sglang@0.5.10", "max_num_seqs=256"])), "256");
        assert_eq!(limit(&["software=sglang@0.5.10"]), "2048");
        assert_eq!(limit(&with(&["software=vllm@0.11"])), limit(&["software=vllm@0.11"]));
    }

    #[test]
    fn acceptance_declines_with_the_position_by_default() {
        let drafts = |workload: &str, method: &str| {
            let scenario = scenario(workload, &["draft_tokens=3", method]);
            scenario.drafts(&scenario.base)
        };
        // vLLM expects 2.811 tokens a step on MT-Bench (examples/offline_inference/spec_decode.py of 0.11.0).
        let eagle = drafts("llama3.1-8b-serve", "draft_method=eagle3");
        let tokens = tokens_per_step(&eagle);
        assert!((tokens / 2.811 - 1.0).abs() < 0.05, "{tokens}");
        // No model-specific values.
        let (eagle, mtp) = (
            drafts("llama3.1-8b-serve:model=qwen2.5-7b", "draft_method=eagle3"),
            drafts("llama3.1-8b-serve:model=qwen2.5-7b", "draft_method=mtp"),
        );
        assert_eq!((eagle.decline, mtp.decline), (EAGLE_DECLINE, MTP_DECLINE));
        assert!(tokens_per_step(&mtp) < tokens_per_step(&eagle));
        assert_eq!(drafts("llama3.1-8b-serve", "draft_method=draft-model").decline, 0.0);
    }

    #[test]
    fn weights_of_draft_layers_and_models_need_memory() {
        let weights = |workload: &str, set: &[&str]| {
            estimate(&scenario(workload, set)).detail.unwrap().memory.parts.part(MemoryPart::Weights)
        };
        // A layer of DeepSeek-V3 has 11.5 billion weights in fp8, over 8 accelerators.
        let mtp = ["concurrency=4", "draft_method=mtp", "draft_tokens=1"];
        let added = weights("deepseek-v3-serve", &mtp) - weights("deepseek-v3-serve", &["concurrency=4"]);
        assert!((1.2e9..1.7e9).contains(&added), "{added}");
        // A draft model of 8 billion weights in 16 bit, over 4 accelerators.
        let model = ["tp=4", "draft_method=draft-model", "draft_tokens=3", "draft_params_b=8"];
        let added = weights("llama3.1-70b-serve", &model) - weights("llama3.1-70b-serve", &["tp=4"]);
        assert!((added / 4e9 - 1.0).abs() < 0.01, "{added}");
        let lookup = ["tp=4", "draft_method=ngram", "draft_tokens=3"];
        assert_eq!(weights("llama3.1-70b-serve", &lookup), weights("llama3.1-70b-serve", &["tp=4"]));
    }

    #[test]
    fn a_draft_model_takes_the_steps_of_a_model_of_its_size() {
        let tpot = |workload: &str, set: &[&str]| {
            let parts = testing::parts("h200-sxm-8", workload);
            let mut overrides = Overrides::new();
            for text in set.iter().chain(&["concurrency=1", "tp=4", "dp=2"]) {
                let (knob, value) = assignment(text).unwrap();
                overrides.insert(knob, Knob::parse(knob, &value, &[]).unwrap());
            }
            let scenario = Scenario::resolve(&parts, &overrides).unwrap();
            let detail = estimate(&scenario).detail.unwrap();
            let host = detail.time.part(TimePart::Host) / detail.time.total();
            (detail.serving.unwrap().tpot_ms.mean, host)
        };
        // Without accepted drafts, the time of a token is that of a step.
        let step = |method: &str, params: &str, engine: &str| {
            let set = [method, params, engine, "draft_tokens=3", "draft_acceptance=0"];
            tpot("llama3.1-70b-serve", &set).0
        };
        for (params, model) in [("1.236", "llama-3.2-1b"), ("8.03", "llama-3.1-8b")] {
            let params = format!("draft_params_b={params}");
            // The host prepares drafts as part of the step of the model.
            let (own, host) = tpot(&format!("llama3.1-8b-serve:model={model}"), &[]);
            let own = own * (1.0 - host);
            let lookup = step("draft_method=ngram", &params, "engine=analytical");
            let drafted = step("draft_method=draft-model", &params, "engine=analytical");
            let each = (drafted - lookup) / 3.0;
            assert!((each / own - 1.0).abs() < 0.1, "{model}: {each} {own}");
            let event = step("draft_method=draft-model", &params, "engine=event");
            assert!((event / drafted - 1.0).abs() < 0.02, "{model}: {event} {drafted}");
        }
    }

    #[test]
    fn the_kv_cache_of_a_draft_model_needs_memory() {
        let room = |set: &[&str]| {
            let scenario = scenario("llama3.1-70b-serve", set);
            estimate(&scenario).detail.unwrap().serving.unwrap().max_concurrency
        };
        let without = room(&["tp=4"]);
        let with = room(&["tp=4", "draft_method=draft-model", "draft_tokens=3", "draft_params_b=8.03"]);
        // 80 and 32 layers with the same key-value heads; the weights of the draft take 4 of about 100 GB.
        let keys = 80.0 / (80.0 + 32.0) * (1.0 - 4.0 / 100.0);
        assert!((with / without / keys - 1.0).abs() < 0.02, "{with} {without} {keys}");
    }
}
