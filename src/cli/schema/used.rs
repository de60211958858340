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
        ("basis", word(PriceBasis::NAMES.get(1..).unwrap_or_default(), "kind of price that hourly_usd is")),
        ("date", help(json!({"type": ["string", "integer"]}), "when the price was read: YYYY-MM-DD, or coarser")),
        ("prices", help(rents, "prices of other kinds, of one node")),
    ];
    let cost = map(&["hourly_usd", "energy_watts_node", "pue"], of_target(&["cost"]).chain(own));
    let interconnect = map(
        &["type"],
        [
            ("type", text("NVLink, xGMI, PCIe …")),
            ("bw_GBps", positive("bandwidth per accelerator, both directions together [GB/s]")),
            ("domain_size", count("accelerators that it joins; the node's by default")),
        ],
    );
    let own = [("type", text("IB, RoCE, EFA, ICI …")), ("topology", text("rail, fat-tree or torus"))];
    let network = map(&[], of_target(&["network"]).chain(own));
    map(
        &["name", "vendor", "accelerators_per_node", "num_nodes", "memory_gb_per_accel", "cost"],
        [
            ("name", text("unique name")),
            ("vendor", text("who makes the accelerators; chooses the profile where none is named after the target")),
            ("accelerator", text("key into the accelerator catalog: the analytical engine needs it")),
            ("instance_type", text("what a cloud or vendor calls the machine")),
            ("accelerators_per_node", count("accelerators in one node")),
            ("num_nodes", knob(Knob::NumNodes)),
            ("memory_gb_per_accel", positive("memory of one accelerator [GB]")),
            ("interconnect", help(interconnect, "link between the accelerators of a node")),
            ("network", help(network, "link between nodes")),
            ("cost", help(cost, "price and power of one node")),
            ("efficiency", efficiency()),
            ("numeric", texts("numeric formats that the hardware has")),
            ("collectives", texts("collective operations that the stack has")),
            ("max_batch_tokens", number(Bounds::NATURAL, "most tokens that the stack takes in one batch")),
            ("host_cpu_arch", text("architecture of the hosts")),
            ("benchboard", anything("the predecessor dashboard's profile of one device: fp16Tflops, type, …")),
            ("container_base", text("container image")),
            ("source", text("where the figures are from")),
            ("region", text("where it can be rented")),
            ("read_from", read_from()),
            ("description", text("one line about the target")),
            ("best_for", texts("what it is good at")),
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
            .map(|name| (name, number(atlas_config::efficiency::BOUNDS, "factor on the constants; 1: as shipped")));
        help(map(&[], names), described)
    };
    let both = [("training", factors("in training")), ("serving", factors("in serving"))];
    help(map(&[], both), "efficiency factors of the analytical engine, as `atlas calibrate` finds them")
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
            ("vocab_size", number(Bounds::NATURAL, "tokens of the vocabulary")),
        ],
    );
    let section = |path: &'static [&'static str]| map(&[], of_workload(path));
    let pool = || section(&["serving", "pools", "prefill"]);
    let serving = [
        ("engine", text("the software that serves, as `software` of the workload")),
        (
            "pools",
            help(
                map(&["prefill"], [("prefill", pool()), ("decode", pool())]),
                "prefill and decode on separate accelerators",
            ),
        ),
        ("slo", help(section(&["serving", "slo"]), "what makes a request a good one")),
        ("speculative", help(section(&["serving", "speculative"]), "speculative decoding")),
        (
            "conversations",
            help(
                section(&["serving", "conversations"]),
                "conversations of several turns, whose prompts repeat what was said",
            ),
        ),
        ("kv_tiers", help(section(&["serving", "kv_tiers"]), "places outside device memory that keep keys and values")),
    ];
    let serving = map(&[], of_workload(&["serving"]).chain(serving));
    let precision = [
        ("activations", text("format of the activations")),
        (
            "optimizer",
            text("format of the optimizer's states: bf16 and fp16 choose adam-16bit, fp8 and int8 adam-8bit"),
        ),
    ];
    let precision = map(&[], of_workload(&["precision"]).chain(precision));
    let batch = map(&[], of_workload(&["batch"]).chain([("micro", knob(Knob::Microbatch))]));
    let layers = map(&[], of_workload(&["recompute"]).chain([("mode", knob(Knob::Recompute))]));
    let recompute = help(json!({"anyOf": [knob(Knob::Recompute), layers]}), Knob::Recompute.spec().help);
    let named = anything("as in files of the original format: a mapping that names it");
    let optimizer = help(json!({"anyOf": [knob(Knob::Optimizer), named]}), Knob::Optimizer.spec().help);
    let own = [
        ("mode", word(&["training", "inference"], "else `inference` in the name decides")),
        ("model", text("key into the model catalog")),
        ("params", help(params, "size of the model, or what differs from the catalog's")),
        ("parallelism", help(section(&["parallelism"]), "how the model is cut")),
        ("sequence", help(section(&["sequence"]), "how long the sequences are")),
        ("batch", help(batch, "how many sequences")),
        ("precision", help(precision, "numeric formats")),
        ("recompute", recompute),
        ("framework", text("the software, as `software`")),
        ("server", text("the software, as `software`")),
        ("architecture", anything("the model written out, in the form of an entry of models.yaml")),
        ("optimizer", optimizer),
        ("serving", help(serving, "how requests come and are scheduled")),
        ("simulation", help(section(&["simulation"]), "what only the event engine uses")),
        ("runtime_tuning", help(section(&["runtime_tuning"]), "what the software stack does")),
        ("dataloader", anything("the data loader, for the record")),
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
            ("dp_override", count("replicas that serve, in place of the phase's")),
            ("service_cv", positive("coefficient of variation of the service time")),
            ("arrival_cv", positive("coefficient of variation of the arrivals")),
        ],
    );
    const PROFILES: [&str; 4] = ["steady_state", "peak", "spike", "low"];
    let phase = map(
        &[],
        [
            ("name", text("its name")),
            ("duration_minutes", number(Bounds::FINITE, "minutes it lasts")),
            ("tokens_scale", number(Bounds::FINITE, "scale of throughput")),
            ("autoscale_factor", number(Bounds::FINITE, "scale of throughput and power")),
            ("request_profile", word(&PROFILES, "how loaded and how bursty")),
            ("arrival", help(arrival, "arrivals that the phase states itself")),
            ("overrides", help(map(&[], shared()), "what the phase does differently from the workload")),
            ("description", text("one line about the phase")),
            ("notes", text("caveats")),
        ],
    );
    let schedule = map(
        &[],
        [
            ("default_request_profile", word(&PROFILES, "of phases that name none")),
            ("phases", help(list(phase), "one after another")),
        ],
    );
    let post_training = map(
        &[],
        [
            ("method", word(&["rl", "dpo"], "reinforcement learning, or preference optimization on pairs of answers")),
            ("rollout", text("the serving workload that generates the answers")),
            ("prompts", number(PostTrainingSpec::PROMPTS, "prompts of a step; of dpo: pairs")),
            ("responses", number(PostTrainingSpec::RESPONSES, "answers to each prompt")),
            ("scorers", number(PostTrainingSpec::SCORERS, "frozen models of the same size that read every answer")),
            (
                "rollout_nodes",
                number(PostTrainingSpec::ROLLOUT_NODES, "nodes that only roll out; unset, all alternate"),
            ),
            ("asynchronous", help(json!({"type": "boolean"}), "the next step is rolled out beside training")),
        ],
    );
    let own: [Field; 13] = [
        ("post_training", help(post_training, "the step of atlas post-train around the optimizer's")),
        ("name", text("unique name")),
        ("benchboard", anything("the predecessor dashboard's words of the model: parameters in billions, …")),
        ("model_family", text("gpt, llama …")),
        ("framework", text("pytorch, jax …")),
        ("track", text("the track that runs are filed under")),
        ("duration_minutes", positive("minutes of a run without a schedule, and of phases that do not say")),
        ("description", text("one line about the workload")),
        ("notes", text("sources and caveats")),
        ("best_for", texts("what it suits best")),
        ("source", text("where the figures are from")),
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
            (
                "match",
                map(&[], [("vendor", text("targets of this vendor")), ("name", text("the target of this name"))]),
            ),
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
                        (
                            "node_nominal_w",
                            positive("nominal power of a node as it was measured [W]; the target's where unset"),
                        ),
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
            ("fabric_factors", map_of(positive("slowdown by this fabric"))),
            ("jitter_per_sriov", coefficient()),
            ("gpudirect_multiplier", coefficient()),
            ("min_overhead", coefficient()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use atlas_plan::knob::{Home, KNOBS};

    /// Otherwise editors would flag a knob that files may set.
    #[test]
    fn every_knob_is_offered_where_its_home_is() {
        for spec in &KNOBS {
            let (schema, path) = match spec.home {
                Home::Workload(path) => (workload(), path),
                Home::Target(path) => (target(), path),
                Home::Nowhere => continue,
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
