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
            ("usable_GiB", positive("size available to software, if smaller [GiB]")),
            ("bw_GBps", positive("bandwidth [GB/s]")),
        ],
    );
    let scale_up = map(
        &[],
        [
            ("type", text("NVLink 4, xGMI …")),
            ("bw_GBps", positive("bandwidth per accelerator, one way [GB/s]")),
            ("domain_size", count("number of accelerators that the link connects")),
            ("node_GBps", positive("one-way bandwidth between accelerators that no bridge connects [GB/s]")),
            ("switched", toggle("whether all accelerators are connected by a switch")),
            (
                "peers",
                count("accelerators to which each one has links of its own, which share the bandwidth: a full mesh"),
            ),
        ],
    );
    let measured = map(
        &["matmul_tflops_bf16"],
        [
            ("matmul_tflops_bf16", positive("sustained rate of large matrix multiplications [TFLOP/s]")),
            ("source", text("source of the measurement")),
        ],
    );
    map(
        &["id", "vendor", "memory"],
        [
            ("id", text("key used by targets")),
            ("aliases", texts("other keys")),
            ("name", text("product name")),
            ("vendor", text("vendor")),
            ("generation", text("architecture")),
            ("year", number(Bounds { min: 1990.0, max: 2100.0, whole: true }, "year of release")),
            ("form_factor", text("SXM, PCIe, OAM …")),
            ("dense_tflops", help(peaks, "dense peak rates by format")),
            ("measured", help(measured, "measured rates")),
            ("memory", help(memory, "device memory")),
            ("ranks", count("devices visible to software: dies, tiles, logical cores [default: 1]")),
            ("cores", count("multiprocessors or equivalent units")),
            ("boost_clock_mhz", positive("boost clock [MHz]")),
            ("cache_mb", positive("last-level cache [MB]")),
            ("tdp_w", positive("thermal design power [W]")),
            ("scale_up", help(scale_up, "the link inside a node or rack")),
            ("scale_out", map(&[], [("Gbps_per_accel", positive("network bandwidth of one accelerator [Gb/s]"))])),
            ("host_link", text("PCIe 5.0 x16 …")),
            (
                "host",
                help(
                    map(
                        &[],
                        [
                            ("link_GBps", positive("bandwidth of the link, one way [GB/s; default: of host_link]")),
                            ("memory_gb", positive("host memory [GB]")),
                            ("memory_GBps", positive("bandwidth of the host memory [GB/s]")),
                            ("unified", toggle("whether host and accelerator share one memory")),
                        ],
                    ),
                    "one accelerator's share of the host",
                ),
            ),
            ("source", text("source of the figures")),
            ("checked", text("public tables that the figures were compared with")),
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
            ("id", text("key used by workloads")),
            ("aliases", texts("other keys")),
            ("name", text("published name")),
            ("family", text("family")),
            ("kind", word(&kinds, "type of network")),
            (
                "published_params",
                map(
                    &[],
                    [
                        ("total_b", positive("published number of parameters, in billions")),
                        ("active_b", positive("active parameters per token, in billions")),
                    ],
                ),
            ),
            ("drafts", help(drafts(), "acceptance rates of speculative decoding methods")),
            ("native_format", text("number format of the published weights [default: bf16]")),
            (
                "published_tokens",
                map(
                    &["tokens"],
                    [("tokens", positive("published number of training tokens")), ("source", text("source"))],
                ),
            ),
            ("hidden_size", count("width of the residual stream")),
            ("n_layers", count("layers")),
            ("heads", help(heads(), "attention heads")),
            ("mla", help(latent(), "multi-head latent attention: compressed keys and values")),
            ("indexer", indexer()),
            ("attention_layers", whole("layers with attention [default: all without a linear mixer]")),
            ("mlp_layers", whole("layers with an MLP [default: all]")),
            ("residual_streams", count("residual streams of hyper-connections [default: a plain residual]")),
            ("attention_gate", toggle("whether the output of attention is gated")),
            ("linear", linear()),
            ("window", window()),
            ("attention_bias", biases()),
            ("mlp", help(mlp(), "the dense MLP")),
            ("moe", help(experts(), "mixture of experts")),
            ("vocab_size", count("vocabulary size")),
            ("max_context", count("maximum sequence length [tokens]")),
            ("tied_embeddings", toggle("whether the output layer shares the weights of the embedding")),
            ("learned_positions", positions()),
            ("norm", help(norm(), "normalization")),
            ("vision", patches()),
            ("images", help(images(), "image input")),
            ("convolutions", help(convolutions(), "a convolutional network")),
            ("source", text("source of the figures")),
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
            ("q_lora_rank", whole("rank of compressed queries; 0: no compression")),
            ("kv_lora_rank", count("rank of compressed keys and values")),
            ("qk_nope_dim", count("width of a head without rotary position embedding")),
            ("qk_rope_dim", count("width of a head with rotary position embedding")),
            ("v_head_dim", count("width of a value head")),
            ("direct", toggle("whether heads attend directly to the compressed vector, without expansion")),
            ("o_lora_rank", count("rank to which the output of a group of heads is projected first")),
            ("o_groups", count("groups of heads with separate output projections [default: 1]")),
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
            ("shared_experts", whole("shared experts, which process every token")),
            ("shared_ffn_hidden_size", whole("total width of the shared experts")),
            ("shared_gate", toggle("whether the shared experts are gated")),
            ("first_dense_layers", whole("leading layers without experts")),
            ("layer_step", count("every n-th of the other layers has experts")),
            ("hidden_size", whole("input and output width of experts [default: the model's hidden size]")),
        ],
    )
}

/// The dense MLP.
fn mlp() -> Value {
    map(
        &["ffn_hidden_size", "gated"],
        [
            ("ffn_hidden_size", count("width")),
            ("gated", toggle("whether the MLP is gated (SwiGLU, GeGLU): three matrices")),
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
            ("per_layer", number(Bounds { max: 16.0, ..Bounds::NATURAL }, "normalizations per layer")),
            ("qk", word(&["none", "head", "full"], "normalization of queries and keys")),
        ],
    )
}

/// A convolutional network.
fn convolutions() -> Value {
    let counts = || list(count("value of a stage"));
    map(
        &["stem_width", "blocks", "widths", "expansion", "image_size", "classes"],
        [
            ("stem_width", count("output channels of the stem")),
            ("blocks", help(counts(), "blocks of each stage")),
            ("widths", help(counts(), "inner channels of the blocks of each stage")),
            ("expansion", count("output channels of a block / inner channels")),
            ("image_size", count("edge length of an image [pixels]")),
            ("classes", count("classes")),
        ],
    )
}

/// Sliding-window attention.
fn window() -> Value {
    map(
        &["size"],
        [
            ("size", count("window size [tokens]")),
            ("share", number(Bounds::SHARE, "share of the layers with a window")),
            ("chunked", toggle("whether windows are chunks that do not slide")),
        ],
    )
}

/// Patches of images.
fn patches() -> Value {
    map(
        &["image_size", "patch_size"],
        [
            ("image_size", count("edge length of an image [pixels]")),
            ("patch_size", count("edge length of a patch [pixels]")),
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
    toggle("whether position embeddings are learned")
}

/// The encoder of patches.
fn encoder() -> Value {
    map(
        &["hidden_size", "n_layers", "heads", "mlp", "max_context", "vision"],
        [
            ("kind", word(&["vision"], "type of network")),
            ("hidden_size", count("width of the residual stream")),
            ("n_layers", count("layers")),
            ("heads", heads()),
            ("mlp", mlp()),
            ("window", window()),
            ("max_context", count("maximum number of patches")),
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
            ("input_size", count("input values per token [default: those of the merged patches]")),
            ("hidden_size", count("width between two matrices; unset: a single matrix")),
            ("count", count("projectors")),
        ],
    )
}

/// How a model reads images.
fn images() -> Value {
    map(
        &["encoder"],
        [
            ("encoder", help(encoder(), "patch encoder")),
            ("merge", count("side of the square of patches merged into one token")),
            ("sizes", word(&["any", "fixed", "tiles"], "supported image sizes")),
            ("most_tiles", count("maximum number of tiles per image")),
            ("projector", help(projector(), "projector from patches to tokens")),
        ],
    )
}

/// The indexer of sparse attention.
fn indexer() -> Value {
    map(
        &["heads", "dim"],
        [("heads", count("heads")), ("dim", count("width of a head")), ("top_k", count("keys selected per query"))],
    )
}

/// A linear sequence mixer.
fn linear() -> Value {
    map(
        &["layers", "heads", "head_dim", "state"],
        [
            ("type", word(&["mamba1", "mamba2", "delta"], "type of recurrence")),
            ("layers", count("layers with a linear mixer")),
            ("heads", count("heads")),
            ("head_dim", count("width of a head")),
            ("state", count("state width of a head")),
            ("groups", count("groups of heads that share state projections")),
            ("taps", count("taps of the short convolution")),
        ],
    )
}

/// An entry of prices.yaml.
pub(super) fn price() -> Value {
    map(
        &["provider", "accelerator", "accelerators", "hourly_usd", "date"],
        [
            ("provider", text("cloud provider")),
            ("instance_type", text("the provider's instance type")),
            ("accelerator", text("key in the accelerator catalog")),
            ("accelerators", count("accelerators of the instance")),
            ("hourly_usd", positive("price of the whole instance [$/h]")),
            ("basis", word(&PriceBasis::RENTS.map(PriceBasis::name), "kind of price; on-demand by default")),
            ("region", text("region")),
            ("date", help(json!({"type": ["string", "integer"]}), "date of the price: YYYY-MM-DD, or a year")),
            ("source", text("source of the price")),
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
                ("decline", number(Bounds::SHARE, "relative decrease of that probability per further position")),
                ("source", text("source")),
            ],
        )
    };
    map(&[], DraftMethod::NAMES.iter().map(|name| (*name, draft())))
}
