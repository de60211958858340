//! Schemas of targets, workloads and profiles.

use serde_json::Value;

use super::shape::{
    Field, anything, count, help, knob, list, map, map_of, number, of_target, of_workload, positive, text, texts, word,
};
use atlas_config::Factors;
use atlas_config::workload::PostTrainingSpec;
use atlas_core::plan::PriceBasis;
use atlas_document::decode::Bounds;
use atlas_plan::knob::Knob;
use serde_json::json;

/// An entry of targets.yaml.
pub(super) fn target() -> Value {
    let rents = map(&[], PriceBasis::RENTS.map(|basis| (basis.name(), positive("price of one node [$/h]"))));
    let own = [
        ("energy_watts_node", positive("nominal power of one node [W]")),
        ("basis", word(PriceBasis::NAMES.get(1..).unwrap_or_default(), "price basis of hourly_usd")),
        ("date", help(json!({"type": ["string", "integer"]}), "date of the price: YYYY-MM-DD or less precise")),
        ("prices", help(rents, "prices of one node with another basis")),
    ];
    let cost = map(&["hourly_usd", "energy_watts_node", "pue"], of_target(&["cost"]).chain(own));
    let interconnect = map(
        &["type"],
        [
            ("type", text("NVLink, xGMI, PCIe …")),
            ("bw_GBps", positive("bandwidth per accelerator, both directions together [GB/s]")),
            ("domain_size", count("number of accelerators that the link connects [default: those of the node]")),
        ],
    );
    let own = [("type", text("IB, RoCE, EFA, ICI …")), ("topology", text("rail, fat-tree or torus"))];
    let network = map(&[], of_target(&["network"]).chain(own));
    map(
        &["name", "vendor", "accelerators_per_node", "num_nodes", "memory_gb_per_accel", "cost"],
        [
            ("name", text("unique name")),
            ("vendor", text("vendor of the accelerators; selects the profile if none matches the name of the target")),
            ("accelerator", text("key in the accelerator catalog; required by the analytical engine")),
            ("instance_type", text("instance type or product name of the machine")),
            ("accelerators_per_node", count("accelerators in one node")),
            ("num_nodes", knob(Knob::NumNodes)),
            ("memory_gb_per_accel", positive("memory of one accelerator [GB]")),
            ("host_memory_gb", knob(Knob::HostMemoryGb)),
            ("interconnect", help(interconnect, "link between the accelerators of a node")),
            ("network", help(network, "link between nodes")),
            ("cost", help(cost, "price and power of one node")),
            ("efficiency", efficiency()),
            ("numeric", texts("number formats supported by the hardware")),
            ("collectives", texts("collective operations supported by the software stack")),
            ("max_batch_tokens", number(Bounds::NATURAL, "maximum number of tokens per batch of the software stack")),
            ("host_cpu_arch", text("CPU architecture of the hosts")),
            ("benchboard", anything("device profile of the predecessor dashboard: fp16Tflops, type, …")),
            ("container_base", text("container image")),
            ("source", text("source of the figures")),
            ("region", text("region where it can be rented")),
            ("read_from", read_from()),
            ("description", text("one line about the target")),
            ("best_for", texts("workloads it is suited for")),
            ("notes", text("sources and caveats")),
        ],
    )
}

/// Origins of imported values.
fn read_from() -> Value {
    help(map_of(json!({"type": "string"})), "where values were read from, by path: `parallelism.tp: train.sbatch:31`")
}

/// Efficiency factors of targets and profiles.
fn efficiency() -> Value {
    let factors = |described: &str| {
        let names = Factors::NAMES
            .map(|name| (name, number(atlas_config::efficiency::BOUNDS, "factor applied to the built-in constant")));
        help(map(&[], names), described)
    };
    let both = [("training", factors("in training")), ("serving", factors("in serving"))];
    help(map(&[], both), "efficiency factors of the analytical engine, as fitted by `atlas calibrate`")
}

/// Fields shared by workloads and the overrides of a phase.
fn shared() -> Vec<Field> {
    let params = map(
        &[],
        [
            ("hidden_size", number(Bounds::NATURAL, "width of the residual stream")),
            ("n_layers", number(Bounds::NATURAL, "layers")),
            ("n_heads", number(Bounds::NATURAL, "attention heads")),
            ("n_kv_heads", number(Bounds::NATURAL, "key and value heads")),
            ("ffn_hidden_size", number(Bounds::NATURAL, "width of the MLP")),
            ("vocab_size", number(Bounds::NATURAL, "vocabulary size")),
        ],
    );
    let section = |path: &'static [&'static str]| map(&[], of_workload(path));
    let pool = || section(&["serving", "pools", "prefill"]);
    let serving = [
        ("engine", text("serving software; used if neither `software` nor `server` is set")),
        (
            "pools",
            help(
                map(&["prefill"], [("prefill", pool()), ("decode", pool())]),
                "prefill and decode on separate accelerators",
            ),
        ),
        ("slo", help(section(&["serving", "slo"]), "latency limits that count toward goodput")),
        ("speculative", help(section(&["serving", "speculative"]), "speculative decoding")),
        (
            "conversations",
            help(
                section(&["serving", "conversations"]),
                "multi-turn conversations, whose prompts contain the earlier turns",
            ),
        ),
        ("kv_tiers", help(section(&["serving", "kv_tiers"]), "KV cache tiers outside device memory")),
    ];
    let serving = map(&[], of_workload(&["serving"]).chain(serving));
    let precision = [
        ("activations", text("format of the activations")),
        ("optimizer", text("format of the optimizer states: bf16 and fp16 select adam-16bit, fp8 and int8 adam-8bit")),
    ];
    let precision = map(&[], of_workload(&["precision"]).chain(precision));
    let batch = map(&[], of_workload(&["batch"]).chain([("micro", knob(Knob::Microbatch))]));
    let layers = map(&[], of_workload(&["recompute"]).chain([("mode", knob(Knob::Recompute))]));
    let recompute = help(json!({"anyOf": [knob(Knob::Recompute), layers]}), Knob::Recompute.spec().help);
    let named = anything("mapping with the name of the optimizer, as in files of the original format");
    let optimizer = help(json!({"anyOf": [knob(Knob::Optimizer), named]}), Knob::Optimizer.spec().help);
    let own = [
        ("mode", word(&["training", "inference"], "[default: inference if the name contains `inference`]")),
        ("model", text("key in the model catalog")),
        ("params", help(params, "dimensions of the model; they override the catalog")),
        ("parallelism", help(section(&["parallelism"]), "parallelism")),
        ("sequence", help(section(&["sequence"]), "sequence lengths")),
        ("batch", help(batch, "batch sizes")),
        ("precision", help(precision, "numeric formats")),
        ("recompute", recompute),
        ("framework", text("software; used if no other field names it")),
        ("server", text("serving software; used if `software` is not set")),
        ("architecture", anything("inline definition of the model, in the form of an entry of models.yaml")),
        ("optimizer", optimizer),
        ("serving", help(serving, "request arrivals and scheduling")),
        ("simulation", help(section(&["simulation"]), "settings used only by the event engine")),
        ("runtime_tuning", help(section(&["runtime_tuning"]), "settings of the software stack")),
        ("dataloader", anything("data loader; not used by the engines")),
    ];
    // Fields given here replace those of the registry: `recompute` and `optimizer` may also be mappings.
    of_workload(&[]).chain(own).collect()
}

/// An entry of workloads.yaml.
pub(super) fn workload() -> Value {
    let arrival = map(
        &[],
        [
            ("requests_per_sec", positive("requests per second")),
            ("servers", positive("parallel servers")),
            ("dp_override", count("number of serving replicas, instead of the phase's")),
            ("service_cv", positive("coefficient of variation of the service time")),
            ("arrival_cv", positive("coefficient of variation of the arrivals")),
        ],
    );
    const PROFILES: [&str; 4] = ["steady_state", "peak", "spike", "low"];
    let phase = map(
        &[],
        [
            ("name", text("name of the phase")),
            ("duration_minutes", number(Bounds::FINITE, "duration in minutes")),
            ("tokens_scale", number(Bounds::FINITE, "scale of throughput")),
            ("autoscale_factor", number(Bounds::FINITE, "scale of throughput and power")),
            ("request_profile", word(&PROFILES, "load and burstiness")),
            ("arrival", help(arrival, "arrivals of the phase")),
            ("overrides", help(map(&[], shared()), "settings that override those of the workload")),
            ("description", text("one line about the phase")),
            ("notes", text("caveats")),
        ],
    );
    let schedule = map(
        &[],
        [
            ("default_request_profile", word(&PROFILES, "request profile of phases that state none")),
            ("phases", help(list(phase), "phases in order")),
        ],
    );
    let post_training = map(
        &[],
        [
            ("method", word(&["rl", "dpo"], "reinforcement learning, or direct preference optimization")),
            ("rollout", text("serving workload that generates the responses")),
            ("prompts", number(PostTrainingSpec::PROMPTS, "prompts per step; pairs per step with dpo")),
            ("responses", number(PostTrainingSpec::RESPONSES, "responses per prompt")),
            ("scorers", number(PostTrainingSpec::SCORERS, "frozen models of the same size that score every response")),
            (
                "rollout_nodes",
                number(PostTrainingSpec::ROLLOUT_NODES, "nodes dedicated to rollouts; unset: all nodes alternate"),
            ),
            ("asynchronous", help(json!({"type": "boolean"}), "generate the next rollouts during training")),
        ],
    );
    let own: [Field; 13] = [
        ("post_training", help(post_training, "settings of `atlas post-train`")),
        ("name", text("unique name")),
        ("benchboard", anything("model settings of the predecessor dashboard: parameters in billions, …")),
        ("model_family", text("gpt, llama …")),
        ("framework", text("pytorch, jax …")),
        ("track", text("track under which records are saved")),
        ("duration_minutes", positive("duration in minutes without a schedule, and of phases that state none")),
        ("description", text("one line about the workload")),
        ("notes", text("sources and caveats")),
        ("best_for", texts("targets it is suited for")),
        ("source", text("source of the figures")),
        ("schedule", help(schedule, "phases of load")),
        ("read_from", read_from()),
    ];
    map(&["name", "sequence"], own.into_iter().chain(shared()))
}

/// A file of profiles/.
pub(super) fn profile() -> Value {
    let section = |names: &'static [&'static str], inner: Option<Field>| {
        let coefficient = |name: &&'static str| (*name, number(Bounds::FINITE, "coefficient"));
        let required: Vec<&str> = names.iter().copied().chain(inner.iter().map(|(name, _)| *name)).collect();
        map(&required, names.iter().map(coefficient).chain(inner.clone()))
    };
    let within = |names: &'static [&'static str]| section(names, None);
    map(
        &[],
        [
            ("description", text("one line about the profile")),
            ("match", map(&[], [("vendor", text("vendor of its targets")), ("name", text("name of its target"))])),
            ("best_for", texts("what it was calibrated for")),
            ("notes", text("sources and caveats")),
            (
                "calibration",
                anything(
                    "how the coefficients were fitted, as `atlas calibrate` writes it: date, and by parameter value, interval, n, r2, method, sources",
                ),
            ),
            ("efficiency", efficiency()),
            (
                "corrections",
                anything(
                    "effects that `atlas calibrate` learned from runs: accelerator, runs, and by figure effects, covariance, unseen, residual, reach, growth; docs/calibration.md",
                ),
            ),
            (
                "compute",
                section(
                    &["base_tokens_per_accel", "comm_penalty_coeff"],
                    Some(("factors", within(&["training", "inference"]))),
                ),
            ),
            (
                "utilization",
                section(
                    &["base", "max"],
                    Some(("knob_increments", within(&["cuda_graphs", "gpudirect_rdma", "inference_bonus"]))),
                ),
            ),
            ("communication", communication()),
            ("throughput", within(&["overhead_weight"])),
            (
                "latency",
                section(
                    &["min_p50_ms", "base_p50_coeff", "ttft_ratio"],
                    Some(("tail", within(&["p95_multiplier", "p99_multiplier", "comm_tail", "sriov_tail"]))),
                ),
            ),
            (
                "power",
                map(
                    &["idle_fraction", "util_fraction"],
                    [
                        ("idle_fraction", number(Bounds::FINITE, "coefficient")),
                        ("util_fraction", number(Bounds::FINITE, "coefficient")),
                        ("node_nominal_w", positive("measured nominal power of a node [W] [default: the target's]")),
                    ],
                ),
            ),
            ("memory", within(&["peak_tokens_factor"])),
            ("hbm", within(&["base", "seq_scale", "seq_norm", "max"])),
            ("noise", within(&["amplitude", "tail_scale"])),
            ("retries", within(&["overhead_threshold"])),
        ],
    )
}

fn communication() -> Value {
    let coefficient = || number(Bounds::FINITE, "coefficient");
    let intensity = ["base", "per_tp", "per_pp", "inference_scale"];
    map(
        &["intensity", "fabric_factors", "jitter_per_sriov", "gpudirect_multiplier", "min_overhead"],
        [
            ("intensity", map(&intensity, intensity.map(|name| (name, coefficient())))),
            ("fabric_factors", map_of(positive("slowdown factor of the fabric"))),
            ("jitter_per_sriov", coefficient()),
            ("gpudirect_multiplier", coefficient()),
            ("min_overhead", coefficient()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use atlas_plan::knob::{FileLocation, KNOBS};

    /// Otherwise editors would flag a knob that files may set.
    #[test]
    fn schema_has_every_knob_at_its_path_in_the_file() {
        for spec in &KNOBS {
            let (schema, path) = match spec.location {
                FileLocation::Workload(path) => (workload(), path),
                FileLocation::Target(path) => (target(), path),
                FileLocation::Nowhere => continue,
            };
            // A field that is either a word or a mapping has its properties below `anyOf`.
            let inside = |at: &Value, key: &str| -> Option<Value> {
                let direct = |at: &Value| at.get("properties")?.get(key).cloned();
                direct(at).or_else(|| at.get("anyOf")?.as_array()?.iter().find_map(direct))
            };
            let found = path.iter().try_fold(schema, |at, key| inside(&at, key));
            assert!(found.is_some(), "{} at {path:?}", spec.name);
        }
    }
}
