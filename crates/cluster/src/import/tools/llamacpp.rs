//! llama.cpp: `llama-server` and related programs.

use crate::import::Field;
use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::value::Node;

/// Reads one flag. `raw` preserves the case of short flags.
pub(crate) fn flag(raw: &str, key: &str, node: &Node, out: &mut ReadFields) -> bool {
    match raw {
        "-c" => return out.int(Field::MaxModelLen, node),
        "-b" => return out.int(Field::BatchSize, node),
        "-ub" => return out.int(Field::UbatchSize, node),
        "-t" => return out.int(Field::Threads, node),
        "-np" => return out.int(Field::MaxNumSeqs, node),
        "-ngl" => return out.int(Field::GpuLayers, node),
        "-m" => return weights(out, node),
        "-hf" | "-hfr" => return weights(out, node),
        "-fa" => return flash(out, node),
        "-ctk" => return super::kv(out, node),
        "-md" => return draft(out, node),
        "-n" => return out.int(Field::MaxOutputTokens, node),
        "-ts" => return split(out, node),
        "-sm" => return split_mode(out, node),
        "-ngld" | "-ctv" | "-cd" | "-mg" | "-tb" | "-cb" | "-s" | "-a" => return true,
        _ => {}
    }
    match key {
        "model" | "hf_repo" | "hf" | "model_url" => weights(out, node),
        "hf_file" => {
            if let Some(t) = node.text() {
                out.fields.set_implied(Field::Model, t, node.line);
            }
            if let Some(g) = node.text().as_deref().and_then(names::gguf) {
                out.set(Field::WeightsPrecision, g, node.line);
            }
            true
        }
        "ctx_size" => out.int(Field::MaxModelLen, node),
        "batch_size" | "batch" => out.int(Field::BatchSize, node),
        "ubatch_size" | "ubatch" => out.int(Field::UbatchSize, node),
        "threads" => out.int(Field::Threads, node),
        "parallel" | "n_parallel" => out.int(Field::MaxNumSeqs, node),
        "n_gpu_layers" | "gpu_layers" => out.int(Field::GpuLayers, node),
        "n_predict" | "predict" => out.int(Field::MaxOutputTokens, node),
        "flash_attn" => flash(out, node),
        "cache_type_k" => super::kv(out, node),
        "model_draft" | "hf_repo_draft" => draft(out, node),
        "tensor_split" => split(out, node),
        "split_mode" => split_mode(out, node),
        "draft_max" | "draft" | "draft_n" => out.int(Field::SpeculativeTokens, node),
        "cache_type_v" | "cont_batching" | "mlock" | "no_mmap" | "main_gpu" | "slots" | "metrics" | "jinja"
        | "draft_min" | "draft_p_min" | "ctx_size_draft" | "gpu_layers_draft" | "n_gpu_layers_draft" | "samplers"
        | "alias" | "device" | "rpc" | "mem" => true,
        _ => super::is_irrelevant(key),
    }
}

/// Number of devices in a list with the share of each device.
fn split(out: &mut ReadFields, node: &Node) -> bool {
    let shares = node.text().unwrap_or_default();
    let given = shares.split([',', '/']).filter(|share| share.trim().parse::<f64>().is_ok_and(|share| share > 0.0));
    let devices = given.count() as i64;
    if devices > 0 {
        out.fields.set_implied(Field::NumAccelerators, devices, node.line);
        // Layers are split, unless another mode is stated.
        let ranks = if out.fields.has(Field::Tp) { Field::Tp } else { Field::Pp };
        out.fields.remove(ranks);
        out.fields.set_implied(ranks, devices, node.line);
    }
    true
}

/// What is split over the devices: layers, or (in rows) weights.
fn split_mode(out: &mut ReadFields, node: &Node) -> bool {
    if matches!(node.text().as_deref(), Some("row" | "tensor")) {
        let devices = out.fields.int(Field::Pp).unwrap_or(1);
        out.fields.remove(Field::Pp);
        out.fields.set_implied(Field::Tp, devices, node.line);
    }
    true
}

fn weights(out: &mut ReadFields, node: &Node) -> bool {
    if let Some(t) = node.text() {
        // The file name identifies the model, independent of its directory.
        let base = if t.ends_with(".gguf") || t.ends_with(".bin") { t.rsplit('/').next().unwrap_or(&t) } else { &t };
        out.set(Field::Model, base, node.line);
        if let Some(g) = names::gguf(base) {
            out.set(Field::WeightsPrecision, g, node.line);
        }
        true
    } else if let Some(base) = super::named_in_folder(node) {
        if let Some(g) = names::gguf(&base) {
            out.set(Field::WeightsPrecision, g, node.line);
        }
        out.set(Field::Model, base, node.line)
    } else {
        super::model(out, node)
    }
}

fn draft(out: &mut ReadFields, node: &Node) -> bool {
    let path = node.text().map(|t| t.rsplit('/').next().unwrap_or(&t).to_owned());
    if let Some(base) = path.or_else(|| super::named_in_folder(node)) {
        out.set(Field::SpeculativeMethod, "draft", node.line);
        out.set(Field::SpeculativeModel, base, node.line);
    }
    true
}

fn flash(out: &mut ReadFields, node: &Node) -> bool {
    match node.text().as_deref() {
        Some("auto") => true,
        _ => {
            let on = node.switch().unwrap_or(true);
            out.set(Field::FlashAttention, on, node.line)
        }
    }
}
