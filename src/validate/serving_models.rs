//! Architectures for serving measurements: the catalog's, the row's own columns, or a family's template scaled to the
//! parameter count where nothing else is stated.

use super::models::Models;
use super::table::Row;
use crate::engine::analytical::arch::{Architecture, Attention};

/// Catalog id for a name as measurements spell it.
fn alias(name: &str) -> &str {
    match name {
        "llama-7b" | "vicuna-7b" => "llama-2-7b",
        "llama-13b" => "llama-2-13b",
        "llama-4-scout-17b-16e" => "llama-4-scout",
        "llama-4-maverick-17b-128e" => "llama-4-maverick",
        "llama-3.1-8b-instruct" | "llama-3.1-8b-instruct-fp8" => "llama-3.1-8b",
        "qwen3-coder-30b-a3b" => "qwen3-30b-a3b",
        "qwen3-235b-a22b-fp8" => "qwen3-235b-a22b",
        "qwen3-32b-nvfp4" => "qwen3-32b",
        "qwen3-coder-480b-a35b" => "qwen3-coder-480b",
        "qwen2-1.5b" => "qwen2.5-1.5b",
        "qwen2-0.5b" => "qwen2.5-0.5b",
        "qwen1.5-72b" => "qwen2.5-72b",
        "deepseek-v3.1" | "deepseek-v3.1-nvfp4" | "deepseek-r1-nvfp4" => "deepseek-v3",
        "deepseek-math-v2" => "deepseek-v3.2",
        "deepseek-r1-distill-qwen-14b" => "qwen2.5-14b",
        "kimi-k2-thinking" => "kimi-k2",
        "minimax-m2" | "minimax-m2.7" => "minimax-m2.5",
        "glm-4.6" => "glm-4.5",
        "glm-5.1" | "glm-5.2" => "glm-5",
        other => other,
    }
}

/// Sliding-window and linear-attention layers, which the catalog's columns do not carry (model cards, config.json).
fn windowed(name: &str, a: Architecture) -> Architecture {
    let with = |window: f64, share: f64| Architecture { window, window_share: share, ..a };
    // Gated delta rules and Mamba-2 alike keep an inner width of twice the model's times 128 in 32 bit
    // (Qwen3-Next: 32 heads of 128 x 128 at a width of 2048; Nemotron Nano 2: 10,240 x 128 at 4480).
    let recurrent = |share: f64| Architecture { window_share: share, state_bytes: 2.0 * a.hidden * 128.0 * 4.0, ..a };
    // The catalog describes the mixers of those that it knows as hybrids.
    if a.is_hybrid() {
        a
    } else if name.starts_with("deepseek-v4") {
        Architecture { selected: 1024.0, streams: 4.0, shared_ffn: a.moe_ffn, ..a }
    } else if name.starts_with("deepseek-v3.2") || name.starts_with("deepseek-math-v2") || name.starts_with("glm-5") {
        Architecture { selected: 2048.0, ..a }
    } else if name.starts_with("gpt-oss") {
        with(128.0, 0.5)
    } else if name.starts_with("gemma-3") || name.starts_with("gemma-4") {
        with(1024.0, 5.0 / 6.0)
    } else if name.starts_with("gemma-2") {
        with(4096.0, 0.5)
    } else if name.starts_with("llama-4") {
        with(8192.0, 0.75)
    } else if name.starts_with("qwen3.5") || name.contains("next") || name.starts_with("kimi-linear") {
        // Three of four layers keep a fixed-size state instead of keys and values.
        recurrent(0.75)
    } else if name.contains("nemotron-nano") || name.contains("nemotron-3") {
        recurrent(0.9)
    } else {
        a
    }
}

/// Models that the catalog lacks and rows describe by their size alone, after their config.json.
fn published(name: &str) -> Option<Architecture> {
    name.starts_with("glm-4.7-flash").then(|| Architecture {
        layers: 47.0,
        hidden: 2048.0,
        heads: 20.0,
        kv_heads: 20.0,
        head_dim: 256.0,
        ffn: 10240.0,
        vocab: 154_880.0,
        attention: Attention::Latent { q_rank: 768.0, kv_rank: 512.0, nope: 192.0, rope: 64.0, value: 256.0 },
        experts: 64.0,
        top_k: 4.0,
        moe_ffn: 1536.0,
        shared_ffn: 1536.0,
        dense_layers: 1.0,
        ..Architecture::default()
    })
}

/// Architecture of the model that a row names.
pub fn find(models: &Models, name: &str, row: Option<&Row>) -> Option<Architecture> {
    let name = name.trim().to_ascii_lowercase();
    let found = models
        .find(alias(&name))
        .or_else(|| published(&name))
        .or_else(|| row.and_then(|r| from_row(&name, r)))
        .or_else(|| scaled(models, &name, row))
        // What no machine could hold was mistyped.
        .filter(|a| [a.params(), a.active_params()].iter().all(|n| (1.0..1e15).contains(n)))
        .filter(|a| [a.q_width(), a.kv_width(), a.layers].iter().all(|n| (0.1..1e9).contains(n)))?;
    Some(windowed(&name, found))
}

fn from_row(name: &str, r: &Row) -> Option<Architecture> {
    let (hidden, layers) = (r.positive("hidden_size")?, r.positive("n_layers")?);
    let heads = r.positive("n_heads").unwrap_or(hidden / 128.0);
    let experts = r.positive("n_experts").unwrap_or(0.0);
    let ffn = r.positive("ffn_hidden_size").unwrap_or(4.0 * hidden);
    let latent = name.starts_with("deepseek-v4") || name.starts_with("kimi");
    // Plain two-matrix MLPs: the GPT lineage; all others of the file are gated.
    let gated = !(name.starts_with("gpt-") || name.starts_with("opt") || name.starts_with("bloom"));
    Some(Architecture {
        layers,
        hidden,
        heads,
        kv_heads: r.positive("n_kv_heads").unwrap_or(heads),
        head_dim: r.positive("head_dim").unwrap_or(hidden / heads),
        ffn,
        gated,
        vocab: r.positive("vocab_size").unwrap_or(128_000.0),
        attention: if latent {
            Attention::Latent { q_rank: 1536.0, kv_rank: 512.0, nope: 128.0, rope: 64.0, value: 128.0 }
        } else {
            Attention::Grouped
        },
        experts,
        top_k: r.positive("experts_per_token").unwrap_or(if experts > 0.0 { 8.0 } else { 0.0 }),
        moe_ffn: if experts > 0.0 { ffn } else { 0.0 },
        ..Architecture::default()
    })
}

/// Billions in a name's part such as `30b` or `a3b`.
fn billions(part: &str) -> Option<f64> {
    part.strip_suffix('b').and_then(|n| n.parse::<f64>().ok()).filter(|n| *n > 0.0)
}

/// A typical architecture of the stated size: Llama 3 8B or Qwen3 30B-A3B with its widths scaled.
fn scaled(models: &Models, name: &str, row: Option<&Row>) -> Option<Architecture> {
    let mut total = row.and_then(|r| r.positive("params_b"));
    let mut active = row.and_then(|r| r.positive("active_params_b"));
    for part in name.split(['-', '_']) {
        total = total.or_else(|| billions(part));
        active = active.or_else(|| part.strip_prefix('a').and_then(billions));
    }
    let total = total? * 1e9;
    let Some(active) = active.map(|a| a * 1e9).filter(|a| *a < 0.7 * total) else {
        let t = models.find("llama-3-8b")?;
        let s = (total / t.params()).sqrt();
        return Some(Architecture { hidden: t.hidden * s, ffn: t.ffn * s, heads: t.heads * s, ..t });
    };
    let t = models.find("qwen3-30b-a3b")?;
    let s = (active / t.active_params()).sqrt();
    let grown = Architecture { hidden: t.hidden * s, moe_ffn: t.moe_ffn * s, heads: t.heads * s, ..t };
    let experts = t.experts * (total / grown.params()).max(0.05);
    Some(Architecture { experts: experts.max(t.top_k), ..grown })
}
