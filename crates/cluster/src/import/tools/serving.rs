//! Common parts of the serving engines: selection of the engine's flags, and counting of devices.

use crate::import::argv::Args;
use crate::import::fields::{Fields, ReadFields};
use crate::import::names;
use crate::import::place::Place;
use crate::import::value::Node;
use crate::import::{Field, Kind};

use super::{llamacpp, lmdeploy, nim, sglang, trtllm, vllm};

/// A serving engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Engine {
    Vllm,
    Sglang,
    Trtllm,
    LlamaCpp,
    Tgi,
    Lmdeploy,
    /// NVIDIA's containers, each with its own model and engine.
    Nim,
}

impl Engine {
    /// Normalized name of the framework.
    pub(crate) fn framework(self) -> &'static str {
        match self {
            Engine::Vllm => "vllm",
            Engine::Sglang => "sglang",
            Engine::Trtllm => "tensorrt-llm",
            Engine::LlamaCpp => "llama.cpp",
            Engine::Tgi => "tgi",
            Engine::Lmdeploy => "lmdeploy",
            Engine::Nim => "nim",
        }
    }

    /// The engine that a word denotes: the name of a backend, an image or a module.
    pub(crate) fn named(word: &str) -> Option<Engine> {
        let w = word.to_ascii_lowercase();
        if w.contains("nvcr.io/nim/") {
            Some(Engine::Nim)
        } else if w.contains("lmdeploy") {
            Some(Engine::Lmdeploy)
        } else if w.contains("vllm") || w.contains("llm-d") {
            Some(Engine::Vllm)
        } else if w.contains("sglang") {
            Some(Engine::Sglang)
        } else if w.contains("trtllm") || w.contains("tensorrt") || w.contains("trt-llm") || w == "trt" {
            Some(Engine::Trtllm)
        } else if w.contains("llamacpp")
            || w.contains("llama.cpp")
            || w.contains("llama-server")
            || w.contains("llama-cpp")
        {
            Some(Engine::LlamaCpp)
        } else if w.contains("text-generation-inference") || w == "tgi" {
            Some(Engine::Tgi)
        } else {
            None
        }
    }

    /// Reads one setting.
    pub(crate) fn flag(self, raw: &str, node: &Node, out: &mut ReadFields) {
        let key = names::snake(raw);
        let known = match self {
            Engine::Vllm => vllm::flag(&key, node, out),
            Engine::Sglang => sglang::flag(&key, node, out),
            Engine::Trtllm => trtllm::flag(&key, node, out),
            Engine::LlamaCpp => llamacpp::flag(raw, &key, node, out),
            Engine::Tgi => tgi(&key, node, out),
            Engine::Lmdeploy => lmdeploy::flag(&key, node, out),
            Engine::Nim => nim::flag(&key, node, out),
        };
        if !known {
            out.unrecognized.push((raw.to_owned(), node.line));
        }
    }

    /// Reads an environment variable of `llama-server`. Options take precedence over variables.
    pub(crate) fn variable(self, name: &str, node: &Node, out: &mut ReadFields) {
        if let (Engine::LlamaCpp, Some(key)) = (self, name.strip_prefix("LLAMA_ARG_")) {
            let mut own = ReadFields::default();
            self.flag(&key.to_ascii_lowercase(), node, &mut own);
            out.fields.copy_missing(&own.fields);
        }
    }

    /// Reads the arguments of a command. The first positional argument may be the model.
    pub(crate) fn command(self, args: &Args, out: &mut ReadFields) {
        out.fields.set(Field::Kind, Kind::Serving, args.flags.first().map_or(Place::NONE, |f| f.node.line));
        out.fields.set(Field::Framework, self.framework(), args.flags.first().map_or(Place::NONE, |f| f.node.line));
        if let Some(w) = args.positional.first()
            && !matches!(self, Engine::LlamaCpp | Engine::Tgi | Engine::Nim)
        {
            super::model(out, &Node::str(w.as_str(), w.line()));
        }
        for f in &args.flags {
            self.flag(&f.name, &f.node, out);
        }
    }

    /// Reads the keys of a mapping. Nested keys become dotted names for engines that have them.
    pub(crate) fn keys(self, map: &Node, out: &mut ReadFields) {
        for (k, v) in map.map() {
            if self == Engine::Trtllm && v.is_map() {
                v.for_each_leaf(&mut |path, leaf| self.flag(&format!("{k}.{path}"), leaf, out));
            } else {
                self.flag(k, v, out);
            }
        }
    }

    /// Number of devices of one server.
    fn devices(self, f: &Fields) -> Option<i64> {
        let of = |k: Field| f.int(k).filter(|n| *n > 0);
        let (tp, pp, dp) = (of(Field::Tp), of(Field::Pp), of(Field::Dp));
        if tp.is_none() && pp.is_none() && dp.is_none() {
            return None;
        }
        // If a size is stated but unknown, the number of devices is unknown.
        if [Field::Tp, Field::Pp, Field::Dp].into_iter().any(|k| f.is_unknown(k) || (f.has(k) && of(k).is_none())) {
            return None;
        }
        let base = tp.unwrap_or(1).checked_mul(pp.unwrap_or(1))?;
        match self {
            Engine::Vllm => base.checked_mul(dp.unwrap_or(1)),
            Engine::Sglang if f.bool(Field::AttentionDp) != Some(true) => base.checked_mul(dp.unwrap_or(1)),
            _ => Some(base),
        }
    }

    /// Derives further fields of one server: its model from the served name, and its expert parallelism.
    pub(crate) fn finish(self, out: &mut ReadFields) {
        if let Some((served, at)) = &out.served {
            let hub = served.matches('/').count() == 1 && !served.starts_with('/');
            let by_path = out.fields.has(Field::ModelPath) || !out.fields.has(Field::Model);
            if hub && by_path {
                out.fields.remove(Field::ModelPath);
                out.fields.set(Field::Model, served.as_str(), *at);
            }
        }
        // In SGLang, attention groups are subsets of the tensor ranks.
        if out.fields.bool(Field::ExpertParallel) == Some(true) && matches!(self, Engine::Vllm | Engine::Sglang) {
            let at = out.fields.at(Field::ExpertParallel);
            let (tp, dp) = (out.fields.int(Field::Tp), out.fields.int(Field::Dp).filter(|_| self == Engine::Vllm));
            if (tp.is_some() || dp.is_some())
                && let Some(ep) = tp.unwrap_or(1).checked_mul(dp.unwrap_or(1))
            {
                out.fields.set_implied(Field::Ep, ep, at);
            }
        }
        if let Some(m) = out.fields.str(Field::Model).map(str::to_owned)
            && let Some(w) = names::weights(&m)
        {
            let at = out.fields.at(Field::Model);
            out.fields.set_implied(Field::WeightsPrecision, w, at);
        }
        if out.fields.has(Field::SpeculativeModel) && !out.fields.has(Field::SpeculativeMethod) {
            let at = out.fields.at(Field::SpeculativeModel);
            out.fields.set_implied(Field::SpeculativeMethod, "draft", at);
        }
    }

    /// Reads the engine's release from the tag of its own image. Tags of other images count other software.
    pub(crate) fn image(self, image: &str, line: Place, out: &mut ReadFields) {
        let (repository, tag) = image.rsplit_once(':').unwrap_or((image, ""));
        let own = match self {
            Engine::Vllm => "vllm/vllm-openai",
            Engine::Sglang => "lmsysorg/sglang",
            Engine::Trtllm => "nvidia/tensorrt-llm/release",
            Engine::Tgi => "huggingface/text-generation-inference",
            Engine::LlamaCpp | Engine::Lmdeploy | Engine::Nim => return,
        };
        let release = tag.strip_prefix('v').unwrap_or(tag).split('-').next().unwrap_or_default();
        let numbers = release.split('.').take_while(|part| part.starts_with(|c: char| c.is_ascii_digit())).count();
        if numbers >= 2 && (repository == own || repository.ends_with(&format!("/{own}"))) {
            out.fields.set_implied(Field::Release, release, line);
        }
    }

    /// Sets the number of devices of the server, unless it is known already.
    pub(crate) fn count(self, out: &mut ReadFields) {
        if out.fields.has(Field::NumAccelerators) || self == Engine::LlamaCpp {
            return;
        }
        if let Some(n) = self.devices(&out.fields) {
            let at = [Field::Tp, Field::Dp, Field::Pp]
                .into_iter()
                .find(|k| out.fields.has(*k))
                .map_or(Place::NONE, |k| out.fields.at(k));
            out.fields.set_implied(Field::NumAccelerators, n, at);
        }
    }
}

/// Reads a flag of Hugging Face's `text-generation-launcher`.
fn tgi(key: &str, node: &Node, out: &mut ReadFields) -> bool {
    match key {
        "model_id" => super::model(out, node),
        "num_shard" => out.int(Field::Tp, node),
        "max_total_tokens" => out.int(Field::MaxModelLen, node),
        "max_batch_prefill_tokens" => out.int(Field::MaxNumBatchedTokens, node),
        "max_batch_size" | "max_concurrent_requests" => out.int(Field::MaxNumSeqs, node),
        "max_batch_total_tokens" => out.int(Field::MaxTotalTokens, node),
        "cuda_memory_fraction" => out.float(Field::GpuMemoryShare, node),
        "dtype" => super::precision(out, node),
        "kv_cache_dtype" => super::kv(out, node),
        "quantize" => super::quantization(out, node),
        "sharded" | "max_input_tokens" | "max_input_length" | "max_best_of" | "waiting_served_ratio" => true,
        "speculate" => out.int(Field::SpeculativeTokens, node),
        _ => super::is_irrelevant(key),
    }
}
