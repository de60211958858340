//! Schemas of documents of the predecessor tools.

use serde_json::{Value, json};

use super::shape::{anything, help, list, map_of, text, word};
use atlas_core::plan::{Format, Methodology};
use atlas_core::sort;

/// A mapping with these fields that allows other fields.
fn open(required: &[&str], fields: &[(&str, Value)]) -> Value {
    let properties: serde_json::Map<String, Value> =
        sort::filled(fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())));
    json!({"type": "object", "properties": properties, "required": required})
}

/// A number, or an environment variable that holds one.
fn number(described: &str) -> Value {
    help(json!({"anyOf": [{"type": "number"}, {"type": "string", "pattern": "\\$\\{"}]}), described)
}

/// A boolean, or an environment variable that holds one.
fn toggle(described: &str) -> Value {
    help(json!({"anyOf": [{"type": "boolean"}, {"type": "string", "pattern": "\\$\\{"}]}), described)
}

/// `config.yaml`.
pub(super) fn experiment() -> Value {
    let methods: Vec<String> = Methodology::ALL.iter().map(|method| method.name().replace('-', "_")).collect();
    let methods: Vec<&str> = methods.iter().map(String::as_str).collect();
    let format = |described| help(json!({"anyOf": [{"enum": Format::NAMES}, {"type": "string"}]}), described);
    let platform = open(
        &["gpu_model", "num_gpus"],
        &[
            ("gpu_model", text("name of an accelerator in the catalog: H100, MI300X")),
            ("memory_per_gpu_gb", number("memory of one GPU [GB]; the catalog's where it is silent")),
            ("num_gpus", number("GPUs of all nodes")),
            ("num_nodes", number("nodes; of eight GPUs where neither this nor gpus_per_node is stated")),
            ("gpus_per_node", number("GPUs of a node")),
            ("software_stack", text("cuda, rocm")),
            ("framework", text("nemo, primus")),
        ],
    );
    let model = open(
        &["name"],
        &[
            ("name", text("name of a model in the catalog: llama3.1_8b")),
            ("full_name", text("name on screens")),
            ("num_parameters", number("parameters")),
            ("num_layers", number("layers")),
            ("hidden_size", number("hidden size")),
            ("num_attention_heads", number("attention heads; a multiple of TP")),
            ("primus_config", text("path of the configuration in Primus")),
            ("nemo_recipe", text("recipe in NeMo")),
        ],
    );
    let training = open(
        &["data"],
        &[
            (
                "data",
                open(
                    &["micro_batch_size", "global_batch_size", "seq_length"],
                    &[
                        ("micro_batch_size", number("sequences of a micro-batch")),
                        ("global_batch_size", number("sequences of a step: MBS x DP x GA")),
                        ("seq_length", number("tokens of a sequence")),
                    ],
                ),
            ),
            (
                "duration",
                open(&[], &[("max_steps", number("steps")), ("train_iters", number("the same by another name"))]),
            ),
            (
                "optimizer",
                open(
                    &[],
                    &[
                        ("type", text("adam")),
                        ("learning_rate", number("peak learning rate")),
                        ("min_learning_rate", number("lowest; a tenth of the peak where it is silent")),
                        ("warmup_steps", number("steps of warm-up")),
                        ("weight_decay", number("weight decay")),
                        ("beta1", number("first moment's decay")),
                        ("beta2", number("second moment's decay")),
                    ],
                ),
            ),
            (
                "precision",
                open(
                    &[],
                    &[
                        ("default", format("format of both platforms under identical_config")),
                        ("fp8_hybrid", toggle("fp8 with hybrid formats")),
                        ("fp8_param", toggle("fp8 weights")),
                    ],
                ),
            ),
        ],
    );
    let ranks = [
        ("tensor_model_parallel_size", "TP", "tensor-parallel ranks"),
        ("pipeline_model_parallel_size", "PP", "pipeline stages"),
        ("data_parallel_size", "DP", "data-parallel replicas"),
        ("context_parallel_size", "CP", "context-parallel ranks"),
        ("expert_model_parallel_size", "EP", "expert-parallel ranks"),
        ("virtual_pipeline_model_parallel_size", "VPP", "model chunks of a stage"),
        ("gradient_accumulation_steps", "GA", "micro-batches of a replica in a step"),
    ];
    let ranks: Vec<(&str, Value)> = ranks
        .iter()
        .flat_map(|(long, short, described)| [(*long, number(described)), (*short, number(described))])
        .collect();
    let layouts = map_of(map_of(open(&[], &ranks)));
    let optimizations = open(
        &[],
        &[
            ("precision", format("format under maximum_performance")),
            ("fp8_hybrid", toggle("fp8 with hybrid formats")),
            ("fp8_param", toggle("fp8 weights")),
            ("activation_checkpointing", toggle("activations computed again")),
            ("gradient_checkpointing", toggle("the same by another name")),
        ],
    );
    let metrics = open(
        &[],
        &[
            ("cloud_costs", help(map_of(number("dollars an hour")), "nvidia_h100_8gpu_per_hour: dollars an hour")),
            ("hardware_specs", help(map_of(anything("peaks and design power")), "nvidia_h100: { tdp_watts: 700 }")),
        ],
    );
    open(
        &["hardware", "models", "training"],
        &[
            (
                "experiment",
                open(
                    &[],
                    &[
                        ("name", text("name")),
                        ("description", text("description")),
                        ("version", text("version of the document")),
                        ("methodology", word(&methods, "which parallelism holds")),
                    ],
                ),
            ),
            ("hardware", open(&["platforms"], &[("platforms", map_of(platform))])),
            ("models", map_of(model)),
            ("training", training),
            ("parallelism", open(&[], &methods.iter().map(|method| (*method, layouts.clone())).collect::<Vec<_>>())),
            ("platform_optimizations", map_of(optimizations)),
            ("benchmarking", open(&[], &[("enhanced_metrics", metrics)])),
            ("paths", anything("paths; ${VAR:-default} is expanded everywhere")),
        ],
    )
}

/// Scenarios of the dashboard.
pub(super) fn scenarios() -> Value {
    let plain = |described: &str| help(json!({"type": "number", "minimum": 0}), described);
    let on = |described: &str| help(json!({"type": "boolean"}), described);
    let hardware = open(
        &["vendor", "fp16Tflops", "vramSizeGB", "interconnectBandwidthGBps", "costPerHour"],
        &[
            ("id", text("unique id")),
            ("name", text("name")),
            ("type", word(&["gpu", "tpu", "other", "cpu", "asic"], "TPUs start from a higher utilization")),
            ("vendor", text("who makes it")),
            ("fp16Tflops", plain("rate of one device in 16 bit [TFLOP/s]")),
            ("vramSizeGB", plain("memory of one device [GB]")),
            ("interconnectBandwidthGBps", plain("bandwidth of its links [GB/s]")),
            ("costPerHour", plain("price of one device [USD/h]")),
        ],
    );
    let scenario = open(
        &["model", "parallelism", "workload"],
        &[
            ("id", text("unique id")),
            ("name", text("name")),
            (
                "model",
                open(
                    &["parameters", "contextLength", "precision"],
                    &[
                        ("name", text("name")),
                        ("parameters", plain("parameters, billions")),
                        ("architectureType", word(&["dense", "moe"], "its estimate does not use it")),
                        ("contextLength", plain("tokens of a sequence")),
                        ("precision", word(&["fp32", "fp16", "bf16", "int8", "fp8"], "fp8 has no answer")),
                        ("hiddenSize", plain("hidden size")),
                        ("numLayers", plain("layers")),
                    ],
                ),
            ),
            (
                "parallelism",
                open(
                    &["dataParallel", "tensorParallel", "pipelineParallel"],
                    &[
                        ("dataParallel", plain("replicas")),
                        ("tensorParallel", plain("tensor-parallel ranks")),
                        ("pipelineParallel", plain("pipeline stages")),
                        ("gradientAccumulationSteps", plain("micro-batches of a replica; not used")),
                        ("activationCheckpointing", on("activations computed again")),
                        ("sequenceParallel", on("sequence parallelism; its estimate does not use it")),
                    ],
                ),
            ),
            (
                "workload",
                open(
                    &["type", "batchSize"],
                    &[
                        ("type", word(&["training", "inference"], "what it is for")),
                        ("batchSize", plain("sequences of a step")),
                        ("microBatchSize", plain("sequences of a micro-batch; 0 means all")),
                        ("targetMetric", text("what it aims at")),
                    ],
                ),
            ),
            ("hardware", hardware.clone()),
        ],
    );
    let both = open(&[], &[("scenarios", list(scenario.clone())), ("hardware", list(hardware.clone()))]);
    let entry = json!({"anyOf": [scenario, hardware]});
    json!({"anyOf": [entry, list(entry), both]})
}
