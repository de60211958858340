//! Architecture columns, from the catalog, from the columns of the row, or from a typical model of the stated size.

use atlas_catalog::model::Architecture as Network;
use atlas_catalog::{Catalog, Transformer};
use atlas_core::count::Count;
use atlas_core::math;

use super::names;
use super::record::Record;
use super::table::Row;
use super::text::{clause, number_after};

/// Properties of the model that later steps need.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    /// Total number of parameters.
    pub params: f64,
    /// Parameters of routed experts.
    pub expert_params: f64,
    /// Layers.
    pub layers: f64,
    /// Query heads.
    pub heads: f64,
    /// Number of routed experts; 0 for dense models.
    pub experts: f64,
    /// Intermediate size of one expert.
    pub expert_width: f64,
    /// Whether the model uses multi-head latent attention, with a compressed KV cache.
    pub latent: bool,
    /// Maximum context length, if the model is in the catalog.
    pub max_context: Option<f64>,
    /// The catalog's id; empty if the architecture columns define the model.
    pub id: String,
}

impl Shape {
    fn of(t: &Transformer, params: f64, id: &str) -> Shape {
        let routed = t.experts.as_ref().map_or(0.0, |e| {
            let layers = ((t.mlp_layers - e.first_dense_layers) / e.layer_step.max(Count::ONE)).max(0.0);
            layers * e.count * 3.0 * e.ffn_hidden_size * e.hidden_size.unwrap_or(t.hidden_size)
        });
        Shape {
            params,
            expert_params: routed,
            layers: f64::from(t.n_layers),
            heads: f64::from(t.n_heads),
            experts: t.experts.as_ref().map_or(0.0, |e| f64::from(e.count)),
            expert_width: t.experts.as_ref().map_or(0.0, |e| f64::from(e.ffn_hidden_size)),
            latent: t.latent.is_some(),
            max_context: Some(f64::from(t.max_context)),
            id: id.to_owned(),
        }
    }

    /// Whether the model is a mixture of experts.
    pub(super) fn is_moe(&self) -> bool {
        self.experts > 0.0
    }
}

/// Use of the model, which decides whether columns of the row override the catalog's entry. Training runs may truncate
/// models and pad vocabularies, whereas serving runs use published checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelUse {
    /// Columns of the row take precedence over the catalog.
    Training,
    /// The catalog takes precedence over columns of the row.
    Serving,
}

/// Fills `model` and the architecture columns from the name of a model and the columns of the row.
pub(super) fn fill(record: &mut Record, row: &Row, catalog: &Catalog, name: &str, usage: ModelUse) -> Option<Shape> {
    record.copy_text("model_name", name);
    let found = names::find(catalog, name);
    let hidden = row.positive("hidden_size");
    if let Some(found) = &found
        && let Network::Transformer(t) = &found.model.architecture
    {
        // A different hidden size indicates another model under the same name.
        if usage == ModelUse::Serving || hidden.is_none_or(|h| h == t.hidden_size) {
            match found.verbatim {
                true => record.copy_text("model", name),
                false => record.convert("model", found.model.id.as_str(), format!("model name \"{name}\"")),
            }
            let mut shape = Shape::of(t, found.model.language_parameters(), &found.model.id);
            fill_overrides(record, row, t, found.layers, usage, &mut shape);
            return Some(shape);
        }
    }
    if hidden.is_some() && row.positive("n_layers").is_some() {
        from_row(record, row, name, usage);
        return Some(shape_of_record(record));
    }
    fill_typical_architecture(record, row, name).or_else(|| {
        record.problem("model", name, "a model of the catalog, or columns hidden_size and n_layers");
        if row.positive("ep").is_some_and(|ranks| ranks > 1.0) {
            record.exclude("a mixture of experts whose architecture and active parameters are not stated");
        }
        None
    })
}

/// Fills the architecture columns in which the row differs from the catalog's entry.
fn fill_overrides(
    record: &mut Record,
    row: &Row,
    t: &Transformer,
    cut: Option<f64>,
    usage: ModelUse,
    shape: &mut Shape,
) {
    let differs = |column: &str, usual: f64| row.positive(column).filter(|x| *x != usual);
    if let Some(layers) =
        differs("n_layers", f64::from(t.n_layers)).filter(|_| usage == ModelUse::Training || cut.is_some())
    {
        record.copy_text("n_layers", row.text("n_layers"));
        scale_to_layers(record, t, layers, shape);
    } else if let Some(layers) = cut.filter(|n| *n != t.n_layers && row.positive("n_layers").is_none()) {
        record.convert("n_layers", layers, "model name");
        scale_to_layers(record, t, layers, shape);
    }
    if usage == ModelUse::Serving {
        return;
    }
    if differs("vocab_size", t.vocab_size.map_or(0.0, f64::from)).is_some() {
        record.copy_text("vocab_size", row.text("vocab_size"));
    } else if row.text("vocab_size").is_empty() {
        vocabulary(record, row.text("notes"));
    }
    if t.experts.is_none() {
        for (column, usual) in
            [("n_heads", t.n_heads), ("n_kv_heads", t.n_kv_heads), ("ffn_hidden_size", t.ffn_hidden_size)]
        {
            if differs(column, f64::from(usual)).is_some() {
                record.copy_text(column, row.text(column));
            }
        }
    }
}

/// Scales `shape` to a model with fewer layers. The dense layers before the mixture layers are reduced in proportion,
/// to at least one.
fn scale_to_layers(record: &mut Record, t: &Transformer, layers: f64, shape: &mut Shape) {
    let share = layers / t.n_layers;
    shape.params *= share.min(1.0);
    shape.expert_params *= share.min(1.0);
    shape.layers = layers;
    if let Some(dense) = t.experts.as_ref().map(|e| e.first_dense_layers).filter(|dense| *dense > 0.0) {
        let kept = (dense * share).round().max(1.0);
        if kept != dense {
            record.assume("first_dense_layers", kept, "dense layers reduced in proportion to all layers");
        }
    }
}

/// Fills the vocabulary size from the notes, which name a tokenizer of known size or a number, as in `vocabulary 32k`.
fn vocabulary(record: &mut Record, notes: &str) {
    if notes.contains("tokenizer google/gemma") {
        record.convert("vocab_size", 256_000.0, format!("notes \"{}\"", clause(notes, "tokenizer google/gemma")));
        record.assume("tied_embeddings", false, "the tokenizer is Gemma's, the model is not");
    } else if let Some(thousands) = number_after(notes, "vocabulary ").filter(|_| {
        let rest = notes.split("vocabulary ").nth(1).unwrap_or("");
        rest.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('k')
    }) {
        record.assume("vocab_size", thousands * 1024.0, format!("notes \"vocabulary {thousands}k\", k read as 1024"));
    } else if let Some(stated) = number_after(notes, "vocab ").filter(|n| *n > 1000.0) {
        record.convert("vocab_size", stated, format!("notes \"{}\"", clause(notes, "vocab ")));
    }
}

/// Fills the architecture from the columns of the row. Values that are not stated are derived from the model family or
/// the parameter count, or are common defaults.
fn from_row(record: &mut Record, row: &Row, name: &str, usage: ModelUse) {
    for column in ["n_layers", "hidden_size", "n_heads", "n_kv_heads", "head_dim", "vocab_size", "n_experts"] {
        record.take(row, column, column);
    }
    record.take(row, "experts_per_token", "experts_per_token");
    let number = |record: &Record, column: &str| record.number(column);
    let hidden = number(record, "hidden_size").unwrap_or(1.0);
    let notes = row.text("notes");
    if !record.has("n_heads") {
        record.assume("n_heads", (hidden / 128.0).round().max(1.0), "not stated, heads of 128");
    }
    let heads = number(record, "n_heads").unwrap_or(1.0);
    if !record.has("n_kv_heads") {
        record.assume("n_kv_heads", heads, "not stated, one for each query head");
    }
    if let (false, Some(dim)) = (record.has("head_dim"), number_after(notes, "head_dim ")) {
        record.convert("head_dim", dim, format!("notes \"{}\"", clause(notes, "head_dim ")));
    }
    let experts = number(record, "n_experts").unwrap_or(0.0);
    let ffn = if experts > 0.0 { "moe_ffn_hidden_size" } else { "ffn_hidden_size" };
    if experts > 0.0 {
        if let Some(width) = row.positive("ffn_hidden_size") {
            record.convert(ffn, width, "column ffn_hidden_size, of one expert");
        }
        if !record.has("experts_per_token") {
            record.assume("experts_per_token", 8.0_f64.min(experts), "not stated, 8 as in most MoE models");
        }
    } else {
        record.take(row, "ffn_hidden_size", "ffn_hidden_size");
    }
    if !record.has(ffn) {
        record.assume(ffn, 4.0 * hidden, "not stated, four times the hidden size");
    }
    if !record.has("vocab_size") {
        vocabulary(record, notes);
    }
    match usage {
        ModelUse::Training => match_parameters(record, row),
        ModelUse::Serving => {
            let plain = names::is_gpt(name);
            record.assume(
                "gated_mlp",
                !plain,
                if plain { "GPT family" } else { "not stated, gated as in most models" },
            );
            record.assume("tied_embeddings", false, "not stated, separate as in most models");
            if !record.has("vocab_size") {
                record.assume("vocab_size", 128_000.0, "not stated");
            }
        }
    }
}

/// Chooses a gated or plain MLP, tied or separate embeddings, and the vocabulary size if it is not stated: the
/// combination that best matches the stated parameter count. Among near matches, the first is chosen.
fn match_parameters(record: &mut Record, row: &Row) {
    let hidden = record.number("hidden_size").unwrap_or(1.0);
    let experts = record.has("n_experts");
    let ffn = record.number(if experts { "moe_ffn_hidden_size" } else { "ffn_hidden_size" }).unwrap_or(4.0 * hidden);
    // The intermediate size of a plain MLP is four times the hidden size. Any other usually indicates a gated MLP.
    let wide = (ffn / hidden - 4.0).abs() > 0.01;
    let known = record.number("vocab_size");
    let mut best = (wide, true, known.unwrap_or(51_200.0));
    let count = row.positive("params_b");
    let mut miss = f64::INFINITY;
    if let Some(count) = count {
        const COMMON_VOCABULARY_SIZES: [f64; 6] = [51_200.0, 32_000.0, 125_696.0, 151_936.0, 250_880.0, 256_000.0];
        let vocabularies = known.map_or(COMMON_VOCABULARY_SIZES.to_vec(), |vocabulary| vec![vocabulary]);
        for &vocabulary in &vocabularies {
            for (gated, tied) in [(wide, true), (wide, false), (!wide, false), (!wide, true)] {
                let params = parameters(record, gated, tied, vocabulary);
                let off = math::ln(params / 1e9 / count).abs();
                if off < miss - 0.03 {
                    (miss, best) = (off, (gated, tied, vocabulary));
                }
            }
        }
    }
    let why = match count {
        Some(count) if miss < 0.1 => format!("matches the stated {count} B parameters"),
        _ => "not stated, usual for this width".to_owned(),
    };
    record.assume("gated_mlp", best.0, &why);
    if record.text("tied_embeddings").is_empty() {
        record.assume("tied_embeddings", best.1, &why);
    }
    if known.is_none() {
        record.assume("vocab_size", best.2, &why);
    }
    if !best.0 && !experts {
        record.assume("learned_positions", true, "plain MLP, learned positions as in GPT");
    }
}

/// Computes the number of parameters from the architecture columns of the record.
fn parameters(record: &Record, gated: bool, tied: bool, vocabulary: f64) -> f64 {
    let n = |column: &str| record.number(column);
    let (hidden, layers) = (n("hidden_size").unwrap_or(0.0), n("n_layers").unwrap_or(0.0));
    let heads = n("n_heads").unwrap_or(1.0);
    let dim = n("head_dim").unwrap_or(hidden / heads);
    let attention = 2.0 * hidden * dim * (heads + n("n_kv_heads").unwrap_or(heads));
    let matrices = if gated { 3.0 } else { 2.0 };
    let mlp = match n("n_experts") {
        Some(experts) => {
            matrices
                * hidden
                * (experts * n("moe_ffn_hidden_size").unwrap_or(0.0) + n("shared_ffn_hidden_size").unwrap_or(0.0))
        }
        None => matrices * hidden * n("ffn_hidden_size").unwrap_or(0.0),
    };
    layers * (attention + mlp) + vocabulary * hidden * if tied { 1.0 } else { 2.0 }
}

/// Returns the shape of the model in the architecture columns of the record.
fn shape_of_record(record: &Record) -> Shape {
    let n = |column: &str| record.number(column).unwrap_or(0.0);
    let gated = record.text("gated_mlp") != "false";
    let tied = record.text("tied_embeddings") == "true";
    let matrices = if gated { 3.0 } else { 2.0 };
    Shape {
        params: parameters(record, gated, tied, n("vocab_size")),
        expert_params: n("n_layers") * n("n_experts") * matrices * n("hidden_size") * n("moe_ffn_hidden_size"),
        layers: n("n_layers"),
        heads: n("n_heads"),
        experts: n("n_experts"),
        expert_width: n("moe_ffn_hidden_size"),
        latent: n("kv_lora_rank") > 0.0,
        max_context: None,
        id: String::new(),
    }
}

/// Parses a number of billions in a part of a name, such as `30b`.
fn parse_billions(part: &str) -> Option<f64> {
    part.strip_suffix('b').and_then(|n| n.parse::<f64>().ok()).filter(|n| *n > 0.0 && *n < 1e5)
}

/// Fills a typical architecture of the stated size: that of Llama 3 8B, or Qwen3 30B-A3B for mixtures of experts, with
/// scaled widths.
fn fill_typical_architecture(record: &mut Record, row: &Row, name: &str) -> Option<Shape> {
    let lower = name.to_ascii_lowercase();
    let (mut total, mut active) = (row.positive("params_b"), row.positive("active_params_b"));
    for part in lower.split(['-', '_', '/']) {
        total = total.or_else(|| parse_billions(part));
        active = active.or_else(|| part.strip_prefix('a').and_then(parse_billions));
    }
    let total = total?;
    if active.is_none() && row.positive("ep").is_some_and(|ranks| ranks > 1.0) {
        return None;
    }
    let step = |x: f64, of: f64| (x / of).round().max(1.0) * of;
    let cells: Vec<(&'static str, f64)> = match active.filter(|active| *active < 0.7 * total) {
        None => {
            let s = (total / 8.03).sqrt();
            let hidden = step(4096.0 * s, 128.0);
            vec![
                ("n_layers", 32.0),
                ("hidden_size", hidden),
                ("n_heads", hidden / 128.0),
                ("n_kv_heads", 8.0_f64.min(hidden / 128.0)),
                ("head_dim", 128.0),
                ("ffn_hidden_size", step(14336.0 * s, 128.0)),
                ("vocab_size", 128_256.0),
            ]
        }
        Some(active) => {
            let s = (active / 3.35).sqrt();
            let (hidden, moe) = (step(2048.0 * s, 128.0), step(768.0 * s, 128.0));
            let heads = (32.0 * s).round().max(4.0);
            let rest = 48.0 * 2.0 * hidden * 128.0 * (heads + 4.0) + 2.0 * 151_936.0 * hidden;
            let experts = ((total * 1e9 - rest) / (48.0 * 3.0 * hidden * moe)).round().max(8.0);
            vec![
                ("n_layers", 48.0),
                ("hidden_size", hidden),
                ("n_heads", heads),
                ("n_kv_heads", 4.0),
                ("head_dim", 128.0),
                ("n_experts", experts),
                ("experts_per_token", 8.0),
                ("moe_ffn_hidden_size", moe),
                ("vocab_size", 151_936.0),
            ]
        }
    };
    let why = match active {
        Some(active) => format!("typical architecture of {total} B parameters, {active} B active"),
        None => format!("typical architecture of {total} B parameters"),
    };
    for (column, value) in cells {
        record.assume(column, value, &why);
    }
    record.assume("gated_mlp", true, &why);
    record.assume("tied_embeddings", false, &why);
    Some(shape_of_record(record))
}
