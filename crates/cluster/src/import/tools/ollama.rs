//! Modelfiles of ollama.

use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::place::Place;
use crate::import::value::Node;
use crate::import::{Field, Kind};

/// Whether the text is a Modelfile: it has a FROM line, and a matching file name or instructions of the format.
pub(crate) fn looks_like(name: &str, text: &str) -> bool {
    let named = name.rsplit('/').next().is_some_and(|b| b.to_ascii_lowercase().contains("modelfile"));
    let from = text.lines().any(|l| l.trim_start().get(..5).is_some_and(|w| w.eq_ignore_ascii_case("from ")));
    let own = text.lines().any(|l| {
        let l = l.trim_start().to_ascii_uppercase();
        l.starts_with("PARAMETER ") || l.starts_with("TEMPLATE ") || l.starts_with("SYSTEM ")
    });
    from && (named || (own && !text.contains("RUN ")))
}

/// Reads the Modelfile.
pub(crate) fn read(text: &str, place: impl Fn(u32) -> Place, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Serving, Place::NONE);
    out.fields.set(Field::Framework, "ollama", Place::NONE);
    let mut in_block = false;
    for (line, n) in text.lines().zip(1..) {
        let quotes = line.matches("\"\"\"").count();
        if in_block {
            in_block = quotes % 2 == 0;
            continue;
        }
        in_block = quotes % 2 == 1;
        let t = line.trim();
        if t.starts_with('#') || t.is_empty() {
            continue;
        }
        let (word, rest) = t.split_once(char::is_whitespace).unwrap_or((t, ""));
        let at = place(n);
        match word.to_ascii_uppercase().as_str() {
            "FROM" => {
                let name = rest.trim();
                let local = name.starts_with(['/', '.', '~']);
                let id = if local { names::model_id(name).0 } else { name.to_owned() };
                if let Some(g) = names::gguf(name) {
                    out.set(Field::WeightsPrecision, g, at);
                }
                out.set(Field::Model, id, at);
            }
            "PARAMETER" => {
                let (key, value) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
                let node = Node::str(value.trim(), at);
                match key {
                    "num_ctx" => out.int(Field::MaxModelLen, &node),
                    "num_predict" => out.int(Field::MaxOutputTokens, &node),
                    "num_gpu" => out.int(Field::GpuLayers, &node),
                    "num_batch" => out.int(Field::BatchSize, &node),
                    "num_thread" => out.int(Field::Threads, &node),
                    "stop" | "temperature" | "top_k" | "top_p" | "min_p" | "seed" | "repeat_penalty"
                    | "repeat_last_n" | "mirostat" | "mirostat_eta" | "mirostat_tau" | "num_keep" | "tfs_z"
                    | "typical_p" | "presence_penalty" | "frequency_penalty" | "penalize_newline" => true,
                    _ => {
                        out.unrecognized.push((format!("PARAMETER {key}"), at));
                        true
                    }
                };
            }
            "ADAPTER" => {
                out.set(Field::Adapter, "lora", at);
            }
            _ => {}
        }
    }
}

/// Reads an environment variable of the server. Returns false if it is not a variable of ollama.
pub(crate) fn environment(name: &str, node: &Node, out: &mut ReadFields) -> bool {
    match name {
        "OLLAMA_NUM_PARALLEL" => out.int(Field::MaxNumSeqs, node),
        "OLLAMA_CONTEXT_LENGTH" => out.int(Field::MaxModelLen, node),
        "OLLAMA_KV_CACHE_TYPE" => super::kv(out, node),
        "OLLAMA_FLASH_ATTENTION" => out.flag(Field::FlashAttention, node),
        _ => name.starts_with("OLLAMA_"),
    }
}
