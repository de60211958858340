//! Schemas of documents of the predecessor tools.

use serde_json::{Value, json};

use super::shape::{anything, help, list, map_of, text, word};
use atlas_core::plan::{Format, Methodology};
use atlas_core::sort;

/// A mapping with these fields that allows other fields.
fn open(required: &[&str], fields: &[(&str, Value)]) -> Value {
    let properties: serde_json::Map<String, Value> =
        sort::collect_unsorted(fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())));
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
            ("memory_per_gpu_gb", number("memory of one GPU [GB] [default: the catalog's]")),
            ("num_gpus", number("GPUs of all nodes")),
            ("num_nodes", number("nodes; eight GPUs each if neither this nor gpus_per_node is set")),
            ("gpus_per_node", number("GPUs of a node")),
            ("software_stack", text("cuda, rocm")),
            ("framework", text("nemo, primus")),
        ],
    );
    let model = open(
        &["name"],
        &[
            ("name", text("name of a model in the catalog: llama3.1_8b")),
            ("full_name", text("display name")),
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
            ("duration", open(&[], &[("max_steps", number("steps")), ("train_iters", number("alias of max_steps"))])),
            (
                "optimizer",
                open(
                    &[],
                    &[
                        ("type", text("adam")),
                        ("learning_rate", number("peak learning rate")),
                        ("min_learning_rate", number("minimum learning rate [default: a tenth of the peak]")),
                        ("warmup_steps", number("steps of warm-up")),
                        ("weight_decay", number("weight decay")),
                        ("beta1", number("decay rate of the first moment")),
                        ("beta2", number("decay rate of the second moment")),
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
        ("virtual_pipeline_model_parallel_size", "VPP", "model chunks per stage"),
        ("gradient_accumulation_steps", "GA", "micro-batches per replica and step"),
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
            ("activation_checkpointing", toggle("activation recomputation")),
            ("gradient_checkpointing", toggle("alias of activation_checkpointing")),
        ],
    );
    let metrics = open(
        &[],
        &[
            ("cloud_costs", help(map_of(number("USD per hour")), "nvidia_h100_8gpu_per_hour: USD per hour")),
            ("hardware_specs", help(map_of(anything("peak rates and power")), "nvidia_h100: { tdp_watts: 700 }")),
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
                        ("methodology", word(&methods, "methodology that selects the parallelism")),
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
            ("type", word(&["gpu", "tpu", "other", "cpu", "asic"], "device type; TPUs have a higher base utilization")),
            ("vendor", text("vendor")),
            ("fp16Tflops", plain("16-bit rate of one device [TFLOP/s]")),
            ("vramSizeGB", plain("memory of one device [GB]")),
            ("interconnectBandwidthGBps", plain("interconnect bandwidth [GB/s]")),
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
                        ("architectureType", word(&["dense", "moe"], "not used by the dashboard's estimate")),
                        ("contextLength", plain("tokens of a sequence")),
                        ("precision", word(&["fp32", "fp16", "bf16", "int8", "fp8"], "fp8: no estimate")),
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
                        ("gradientAccumulationSteps", plain("micro-batches per replica; not used")),
                        ("activationCheckpointing", on("activation recomputation")),
                        ("sequenceParallel", on("sequence parallelism; not used by the dashboard's estimate")),
                    ],
                ),
            ),
            (
                "workload",
                open(
                    &["type", "batchSize"],
                    &[
                        ("type", word(&["training", "inference"], "type of workload")),
                        ("batchSize", plain("sequences per step")),
                        ("microBatchSize", plain("sequences per micro-batch; 0: all")),
                        ("targetMetric", text("metric to optimize")),
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
