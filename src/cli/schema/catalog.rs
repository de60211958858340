//! Schemas of accelerators, models and prices.

use serde_json::{Value, json};

use super::shape::{count, help, list, map, number, positive, text, texts, toggle, word};
use atlas_core::plan::{DraftMethod, PriceBasis};
use atlas_document::decode::Bounds;

/// An entry of accelerators/*.yaml.
pub(super) fn accelerator() -> Value {
    let formats = ["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4"];
    let peaks = map(&[], formats.map(|format| (format, positive("dense peak rate [TFLOP/s]"))));
    let memory = map(
        &["gb"],
        [
            ("type", text("HBM3, GDDR6 …")),
            ("gb", positive("size [GB]")),
            ("usable_GiB", positive("what software finds of it, where that is less [GiB]")),
            ("bw_GBps", positive("bandwidth [GB/s]")),
        ],
    );
    let scale_up = map(
        &[],
        [
            ("type", text("NVLink 4, xGMI …")),
            ("bw_GBps", positive("bandwidth per accelerator, one way [GB/s]")),
            ("domain_size", count("accelerators that it joins")),
            ("node_GBps", positive("one way, between accelerators of a node that no bridge joins [GB/s]")),
            ("switched", toggle("whether a switch joins them all")),
        ],
    );
    let measured = map(
        &["matmul_tflops_bf16"],
        [
            ("matmul_tflops_bf16", positive("rate that large matrix multiplications sustain [TFLOP/s]")),
            ("source", text("who measured it")),
        ],
    );
    map(
        &["id", "vendor", "memory"],
        [
            ("id", text("key that targets name")),
            ("aliases", texts("other keys")),
            ("name", text("as the vendor calls it")),
            ("vendor", text("who makes it")),
            ("generation", text("architecture")),
            ("year", number(Bounds { min: 1990.0, max: 2100.0, whole: true }, "year of release")),
            ("form_factor", text("SXM, PCIe, OAM …")),
            ("dense_tflops", help(peaks, "dense peak rates by format")),
            ("measured", help(measured, "what was measured")),
            ("memory", help(memory, "device memory")),
            ("ranks", count("devices that software sees of it: dies, tiles, logical cores; 1 unless stated")),
            ("cores", count("multiprocessors or their like")),
            ("boost_clock_mhz", positive("boost clock [MHz]")),
            ("cache_mb", positive("last-level cache [MB]")),
            ("tdp_w", positive("thermal design power [W]")),
            ("scale_up", help(scale_up, "the link inside a node or rack")),
            ("scale_out", map(&[], [("Gbps_per_accel", positive("network bandwidth of one accelerator [Gb/s]"))])),
            ("host_link", text("PCIe 5.0 x16 …")),
            ("source", text("where the figures are from")),
            ("checked", text("public tables they were compared with")),
            ("note", text("caveats")),
        ],
    )
}

/// An entry of models.yaml.
pub(super) fn model() -> Value {
    let kinds = ["decoder", "encoder", "encoder_decoder", "vision", "convolutional"];
    map(
        &["id"],
        [
            ("id", text("key that workloads name")),
            ("aliases", texts("other keys")),
            ("name", text("as its makers call it")),
            ("family", text("family")),
            ("kind", word(&kinds, "what kind of network")),
            (
                "published_params",
                map(
                    &[],
                    [
                        ("total_b", positive("parameters as published, in billions")),
                        ("active_b", positive("parameters that a token passes, in billions")),
                    ],
                ),
            ),
            ("drafts", help(drafts(), "methods of speculative decoding, and how well they draft for the model")),
            ("native_format", text("format of the published weights, where it is not bf16")),
            (
                "published_tokens",
                map(
                    &["tokens"],
                    [
                        ("tokens", positive("tokens that it was trained on, as published")),
                        ("source", text("where they are published")),
                    ],
                ),
            ),
            ("hidden_size", count("width of the residual stream")),
            ("n_layers", count("layers")),
            ("heads", help(heads(), "attention heads")),
            ("mla", help(latent(), "multi-head latent attention: compressed keys and values")),
            ("indexer", indexer()),
            ("attention_layers", whole("layers that have attention; unset, all without a linear mixer")),
            ("mlp_layers", whole("layers that have an MLP; unset, all")),
            ("residual_streams", count("residual streams of hyper-connections; unset, a plain residual")),
            ("attention_gate", toggle("whether attention's output passes a gate")),
            ("linear", linear()),
            ("window", window()),
            ("attention_bias", biases()),
            ("mlp", help(mlp(), "the dense MLP")),
            ("moe", help(experts(), "mixture of experts")),
            ("vocab_size", count("tokens of the vocabulary")),
            ("max_context", count("longest sequence")),
            ("tied_embeddings", toggle("whether the output layer is the embedding")),
            ("learned_positions", positions()),
            ("norm", help(norm(), "normalization")),
            ("vision", patches()),
            ("images", help(images(), "how it reads images")),
            ("convolutions", help(convolutions(), "a convolutional network")),
            ("source", text("where the figures are from")),
            ("note", text("caveats")),
        ],
    )
}

/// A non-negative integer.
fn whole(described: &str) -> Value {
    number(Bounds::NATURAL, described)
}

/// Attention heads.
fn heads() -> Value {
    map(
        &["query"],
        [("query", count("query heads")), ("kv", count("key-value heads")), ("dim", count("width of a head"))],
    )
}

/// Multi-head latent attention.
fn latent() -> Value {
    map(
        &["kv_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_head_dim"],
        [
            ("q_lora_rank", whole("rank of compressed queries; 0: not compressed")),
            ("kv_lora_rank", count("rank of compressed keys and values")),
            ("qk_nope_dim", count("width of a head without positions")),
            ("qk_rope_dim", count("width of a head with positions")),
            ("v_head_dim", count("width of a value head")),
            ("direct", toggle("whether all heads attend to the compressed vector itself, which nothing expands")),
            ("o_lora_rank", count("columns that each group of heads is projected to, before the hidden size")),
            ("o_groups", count("groups of heads with a projection of their own; unset, one")),
        ],
    )
}

/// A mixture of experts.
fn experts() -> Value {
    map(
        &["experts", "per_token", "ffn_hidden_size"],
        [
            ("experts", count("routed experts of a layer")),
            ("per_token", count("experts that a token is routed to")),
            ("ffn_hidden_size", count("width of an expert")),
            ("shared_experts", whole("experts that every token passes")),
            ("shared_ffn_hidden_size", whole("width of the shared experts together")),
            ("shared_gate", toggle("whether the shared experts are gated")),
            ("first_dense_layers", whole("leading layers without experts")),
            ("layer_step", count("every so many layers has experts")),
            ("hidden_size", whole("width that experts read and write, where it is not the model's")),
        ],
    )
}

/// The dense MLP.
fn mlp() -> Value {
    map(
        &["ffn_hidden_size", "gated"],
        [
            ("ffn_hidden_size", count("width")),
            ("gated", toggle("SwiGLU and its like: three matrices")),
            ("bias", toggle("whether the matrices have biases")),
        ],
    )
}

/// Normalization.
fn norm() -> Value {
    map(
        &[],
        [
            ("type", word(&["rmsnorm", "layernorm", "layernorm_no_bias"], "kind")),
            ("per_layer", number(Bounds { max: 16.0, ..Bounds::NATURAL }, "norms of a layer")),
            ("qk", word(&["none", "head", "full"], "norms of queries and keys")),
        ],
    )
}

/// A convolutional network.
fn convolutions() -> Value {
    let counts = || list(count("of a stage"));
    map(
        &["stem_width", "blocks", "widths", "expansion", "image_size", "classes"],
        [
            ("stem_width", count("channels behind the stem")),
            ("blocks", help(counts(), "blocks of each stage")),
            ("widths", help(counts(), "channels of each stage")),
            ("expansion", count("channels of a block's output over its inner ones")),
            ("image_size", count("pixels of an edge")),
            ("classes", count("classes")),
        ],
    )
}

/// Sliding-window attention.
fn window() -> Value {
    map(
        &["size"],
        [
            ("size", count("tokens that a layer looks back over")),
            ("share", number(Bounds::SHARE, "share of the layers that do")),
        ],
    )
}

/// Patches of images.
fn patches() -> Value {
    map(
        &["image_size", "patch_size"],
        [
            ("image_size", count("pixels of an edge")),
            ("patch_size", count("pixels of a patch's edge")),
            ("classes", whole("classes; 0 for the encoder of another model")),
        ],
    )
}

/// Biases of projections.
fn biases() -> Value {
    word(&["none", "qkv", "all"], "biases of the projections")
}

/// Learned positions.
fn positions() -> Value {
    toggle("whether positions are learned")
}

/// The encoder of patches.
fn encoder() -> Value {
    map(
        &["hidden_size", "n_layers", "heads", "mlp", "max_context", "vision"],
        [
            ("kind", word(&["vision"], "what kind of network")),
            ("hidden_size", count("width of the residual stream")),
            ("n_layers", count("layers")),
            ("heads", heads()),
            ("mlp", mlp()),
            ("window", window()),
            ("max_context", count("most patches")),
            ("vision", patches()),
            ("learned_positions", positions()),
            ("attention_bias", biases()),
            ("norm", norm()),
        ],
    )
}

/// The projector of patches to tokens.
fn projector() -> Value {
    map(
        &[],
        [
            ("input_size", count("values that go in for a token; unset, those of the patches that make one")),
            ("hidden_size", count("values between two matrices; unset, there is one matrix")),
            ("count", count("projectors")),
        ],
    )
}

/// How a model reads images.
fn images() -> Value {
    map(
        &["encoder"],
        [
            ("encoder", help(encoder(), "the encoder of patches")),
            ("merge", count("side of the square of patches that become a token")),
            ("sizes", word(&["any", "fixed", "tiles"], "which sizes of images it takes")),
            ("most_tiles", count("most tiles of an image")),
            ("projector", help(projector(), "from patches to tokens")),
        ],
    )
}

/// The indexer of sparse attention.
fn indexer() -> Value {
    map(
        &["heads", "dim"],
        [
            ("heads", count("heads")),
            ("dim", count("width of a head")),
            ("top_k", count("keys that it selects for a query")),
        ],
    )
}

/// A linear sequence mixer.
fn linear() -> Value {
    map(
        &["layers", "heads", "head_dim", "state"],
        [
            ("type", word(&["mamba1", "mamba2", "delta"], "the recurrence")),
            ("layers", count("layers that have it")),
            ("heads", count("heads")),
            ("head_dim", count("width of a head")),
            ("state", count("width of a head's state")),
            ("groups", count("groups of heads that share the state's projections")),
            ("taps", count("taps of the short convolution")),
        ],
    )
}

/// An entry of prices.yaml.
pub(super) fn price() -> Value {
    map(
        &["provider", "accelerator", "accelerators", "hourly_usd", "date"],
        [
            ("provider", text("who rents it out")),
            ("instance_type", text("what the provider calls it")),
            ("accelerator", text("key into the accelerator catalog")),
            ("accelerators", count("accelerators of the instance")),
            ("hourly_usd", positive("price of the whole instance [$/h]")),
            ("basis", word(&PriceBasis::RENTS.map(PriceBasis::name), "kind of price; on-demand by default")),
            ("region", text("where")),
            ("date", help(json!({"type": ["string", "integer"]}), "YYYY-MM-DD, or a year")),
            ("source", text("where the price is from")),
            ("note", text("caveats")),
        ],
    )
}

/// Speculative decoding methods by name.
fn drafts() -> Value {
    let draft = || {
        map(
            &["acceptance"],
            [
                ("acceptance", number(Bounds::SHARE, "probability that the first drafted token is accepted")),
                ("decline", number(Bounds::SHARE, "share of it that each position loses against the one before")),
                ("source", text("where it is published")),
            ],
        )
    };
    map(&[], DraftMethod::NAMES.iter().map(|name| (*name, draft())))
}
