//! Targets, workloads and profiles.

use serde_json::Value;

use super::shape::{
    Field, anything, choice, count, help, knob, list, map, map_of, number, positive, text, texts, word,
};
use atlas_config::Factors;
use atlas_core::plan::PriceBasis;
use atlas_document::decode::Bounds;
use atlas_plan::knob::Knob;
use serde_json::json;

/// An entry of targets.yaml.
pub(super) fn target() -> Value {
    let rents = map(&[], PriceBasis::RENTS.map(|basis| (basis.name(), positive("price of one node [$/h]"))));
    let cost = map(
        &["hourly_usd", "energy_watts_node", "pue"],
        [
            ("hourly_usd", knob(Knob::HourlyUsd)),
            ("energy_watts_node", positive("nominal power of one node [W]")),
            ("pue", knob(Knob::Pue)),
            ("basis", word(PriceBasis::NAMES.get(1..).unwrap_or_default(), "kind of price that hourly_usd is")),
            ("date", help(json!({"type": ["string", "integer"]}), "when the price was read: YYYY-MM-DD, or coarser")),
            ("prices", help(rents, "prices of other kinds, of one node")),
            ("energy_included", knob(Knob::EnergyIncluded)),
            ("usd_per_kwh", knob(Knob::UsdPerKwh)),
            ("peak_usd_per_kwh", knob(Knob::PeakUsdPerKwh)),
            ("peak_hours", knob(Knob::PeakHours)),
            ("power_cap", knob(Knob::PowerCap)),
            ("rack_kw", knob(Knob::RackKw)),
            ("nodes_per_rack", knob(Knob::NodesPerRack)),
            ("kg_co2e_per_kwh", knob(Knob::KgCo2ePerKwh)),
            ("capex_usd_node", knob(Knob::CapexUsdNode)),
            ("network_share", knob(Knob::NetworkShare)),
            ("spares_share", knob(Knob::SparesShare)),
            ("staff_usd_node_year", knob(Knob::StaffUsdNodeYear)),
            ("usd_per_kw_month", knob(Knob::UsdPerKwMonth)),
            ("capital_cost", knob(Knob::CapitalCost)),
            ("amortization_years", knob(Knob::AmortizationYears)),
            ("utilization", knob(Knob::Utilization)),
        ],
    );
    let interconnect = map(
        &["type"],
        [
            ("type", text("NVLink, xGMI, PCIe …")),
            ("bw_GBps", positive("bandwidth per accelerator, both directions together [GB/s]")),
            ("domain_size", count("accelerators that it joins; the node's, where nothing else is said")),
        ],
    );
    let network = map(
        &[],
        [
            ("type", text("IB, RoCE, EFA, ICI …")),
            ("Gbps_per_accel", knob(Knob::NetworkGbps)),
            ("topology", text("rail, fat-tree or torus")),
            ("oversubscription", knob(Knob::Oversubscription)),
        ],
    );
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
            ("description", text("one line about the target")),
            ("best_for", texts("what it is good at")),
            ("notes", text("sources and caveats")),
        ],
    )
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

/// What a workload and a phase's overrides both may say.
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
    let parallelism = map(
        &[],
        [
            ("tp", knob(Knob::Tp)),
            ("pp", knob(Knob::Pp)),
            ("dp", knob(Knob::Dp)),
            ("cp", knob(Knob::Cp)),
            ("ep", knob(Knob::Ep)),
            ("vpp", knob(Knob::Vpp)),
            ("first_layers", knob(Knob::FirstLayers)),
            ("last_layers", knob(Knob::LastLayers)),
            ("sp", knob(Knob::Sp)),
            ("etp", knob(Knob::Etp)),
            ("attention_dp", knob(Knob::AttentionDp)),
        ],
    );
    let speculative = map(
        &[],
        [
            ("tokens", knob(Knob::DraftTokens)),
            ("acceptance", knob(Knob::DraftAcceptance)),
            ("method", choice(Knob::DraftMethod)),
            ("decline", knob(Knob::DraftDecline)),
            ("params_b", knob(Knob::DraftParams)),
            ("max_batch", knob(Knob::DraftMaxBatch)),
        ],
    );
    let slo =
        map(&[], [("ttft_ms", knob(Knob::SloTtft)), ("tpot_ms", knob(Knob::SloTpot)), ("e2e_ms", knob(Knob::SloE2e))]);
    let simulation = map(
        &[],
        [
            ("replications", knob(Knob::Replications)),
            ("requests", knob(Knob::Requests)),
            ("steps", knob(Knob::Steps)),
            ("jitter", knob(Knob::Jitter)),
            ("slow_nodes", knob(Knob::SlowNodes)),
            ("slow_factor", knob(Knob::SlowFactor)),
            ("node_mtbf_h", knob(Knob::NodeMtbf)),
            ("checkpoint_interval_s", knob(Knob::CheckpointInterval)),
            ("checkpoint_s", knob(Knob::Checkpoint)),
            ("checkpoint_async", knob(Knob::CheckpointAsync)),
            ("restart_s", knob(Knob::Restart)),
        ],
    );
    let pool = || {
        let ranks = |described: &str| number(Bounds::COUNT, described);
        map(
            &[],
            [
                ("workers", ranks("replicas")),
                ("tp", ranks("tensor-parallel ranks")),
                ("pp", ranks("pipeline stages")),
                ("ep", ranks("expert-parallel ranks")),
                ("attention_dp", ranks("data-parallel attention groups")),
            ],
        )
    };
    let pools = map(&["prefill"], [("prefill", pool()), ("decode", pool())]);
    let conversations = map(
        &[],
        [
            ("count", knob(Knob::Conversations)),
            ("turns", knob(Knob::Turns)),
            ("shared_prefix", knob(Knob::SharedPrefix)),
        ],
    );
    let kv_tiers = map(
        &[],
        [
            ("host_gb", knob(Knob::KvHostGb)),
            ("host_gbps", knob(Knob::KvHostGbps)),
            ("ssd_gb", knob(Knob::KvSsdGb)),
            ("ssd_gbps", knob(Knob::KvSsdGbps)),
            ("remote_gb", knob(Knob::KvRemoteGb)),
            ("remote_gbps", knob(Knob::KvRemoteGbps)),
        ],
    );
    let serving = map(
        &[],
        [
            ("engine", text("the software that serves, as `software` of the workload")),
            ("load", choice(Knob::Load)),
            ("run_requests", knob(Knob::RunRequests)),
            ("beams", knob(Knob::Beams)),
            ("context_ranks", knob(Knob::ContextRanks)),
            ("recv_interval", knob(Knob::RecvInterval)),
            ("overlap_scheduling", knob(Knob::OverlapScheduling)),
            ("reserve_output", knob(Knob::ReserveOutput)),
            ("python_executor", knob(Knob::PythonExecutor)),
            ("compiled_batch", knob(Knob::CompiledBatch)),
            ("pools", help(pools, "prefill and decode on separate accelerators")),
            ("arrivals", choice(Knob::Arrivals)),
            ("arrival_cv", knob(Knob::ArrivalCv)),
            ("slo", help(slo, "what makes a request a good one")),
            ("concurrency", knob(Knob::Concurrency)),
            ("request_rate", knob(Knob::RequestRate)),
            ("max_num_seqs", knob(Knob::MaxNumSeqs)),
            ("max_num_batched_tokens", knob(Knob::MaxNumBatchedTokens)),
            ("gpu_memory_utilization", knob(Knob::GpuMemoryUtilization)),
            ("chunked_prefill", knob(Knob::ChunkedPrefill)),
            ("prefix_cache_hit", knob(Knob::PrefixHit)),
            ("speculative", help(speculative, "speculative decoding")),
            ("prefill_accelerators", knob(Knob::PrefillAccelerators)),
            ("kv_transfer", choice(Knob::KvTransfer)),
            (
                "conversations",
                help(conversations, "conversations of several turns, whose prompts repeat what was said"),
            ),
            ("kv_tiers", help(kv_tiers, "places that keep keys and values beside device memory")),
            ("routing", choice(Knob::Routing)),
            ("redundant_experts", knob(Knob::RedundantExperts)),
            ("two_batch_overlap", knob(Knob::TwoBatchOverlap)),
            ("shared_experts", choice(Knob::SharedExperts)),
        ],
    );
    let precision = map(
        &[],
        [
            ("weights", choice(Knob::Precision)),
            ("activations", text("format of the activations")),
            ("compute", choice(Knob::Compute)),
            ("weight_bits", knob(Knob::WeightBits)),
            ("gradients", choice(Knob::GradientFormat)),
            ("experts", choice(Knob::ExpertPrecision)),
            ("kv", choice(Knob::KvPrecision)),
            (
                "optimizer",
                text("format of the optimizer's states: bf16 and fp16 choose adam-16bit, fp8 and int8 adam-8bit"),
            ),
        ],
    );
    let tuning = map(
        &[],
        [
            ("microbatch", knob(Knob::Microbatch)),
            ("cuda_graphs", knob(Knob::CudaGraphs)),
            ("gpudirect_rdma", knob(Knob::GpudirectRdma)),
            ("virt", word(&["bare", "sriov"], Knob::Virt.spec().help)),
            ("fabric", knob(Knob::Fabric)),
            ("attention_kernel", choice(Knob::AttentionKernel)),
            ("graph_capture", choice(Knob::GraphCapture)),
            ("compiled", knob(Knob::Compiled)),
            ("moe_dispatcher", choice(Knob::MoeDispatcher)),
            ("moe_capacity", choice(Knob::MoeCapacity)),
            ("overlap_tensor", knob(Knob::OverlapTensor)),
            ("overlap_pipeline", knob(Knob::OverlapPipeline)),
            ("overlap_data", knob(Knob::OverlapData)),
        ],
    );
    let batch = map(&[], [("micro", knob(Knob::Microbatch)), ("global", knob(Knob::Global))]);
    let sequence = map(
        &[],
        [
            ("prompt", knob(Knob::Prompt)),
            ("generate", knob(Knob::Generate)),
            ("prompt_cv", knob(Knob::PromptCv)),
            ("generate_cv", knob(Knob::GenerateCv)),
            ("generate_max", knob(Knob::GenerateMax)),
            ("generate_spread", knob(Knob::GenerateSpread)),
        ],
    );
    let layers = map(
        &[],
        [
            ("mode", choice(Knob::Recompute)),
            ("layers", knob(Knob::RecomputeLayers)),
            ("reserve", knob(Knob::RecomputeReserve)),
        ],
    );
    let recompute = help(json!({"anyOf": [choice(Knob::Recompute), layers]}), Knob::Recompute.spec().help);
    let named = anything("as in files of the original format: a mapping that names it");
    let optimizer = help(json!({"anyOf": [choice(Knob::Optimizer), named]}), Knob::Optimizer.spec().help);
    vec![
        ("mode", word(&["training", "inference"], "else `inference` in the name decides")),
        ("model", text("key into the model catalog")),
        ("params", help(params, "size of the model, or what differs from the catalog's")),
        ("parallelism", help(parallelism, "how the model is cut")),
        ("sequence", help(sequence, "how long the sequences are")),
        ("batch", help(batch, "how many sequences")),
        ("precision", help(precision, "numeric formats")),
        ("sharding", choice(Knob::Sharding)),
        ("shard", knob(Knob::Shard)),
        ("recompute", recompute),
        ("software", knob(Knob::Software)),
        ("framework", text("the software, as `software`")),
        ("architecture", anything("the model written out, in the form of an entry of models.yaml")),
        ("optimizer", optimizer),
        ("trained", choice(Knob::Trained)),
        ("lora_targets", choice(Knob::LoraTargets)),
        ("cpu_offload", choice(Knob::CpuOffload)),
        ("pipeline_schedule", choice(Knob::PipelineSchedule)),
        ("overlap", knob(Knob::Overlap)),
        ("expert_imbalance", knob(Knob::ExpertImbalance)),
        ("train_tokens", knob(Knob::TrainTokens)),
        ("serving", help(serving, "how requests come and are scheduled")),
        ("simulation", help(simulation, "what only the event engine heeds")),
        ("runtime_tuning", help(tuning, "what the software stack does")),
        ("optimizer", anything("the optimizer, for the record")),
        ("dataloader", anything("the data loader, for the record")),
    ]
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
    let own: [Field; 11] = [
        ("name", text("unique name")),
        ("benchboard", anything("the predecessor dashboard's words of the model: parameters in billions, …")),
        ("model_family", text("gpt, llama …")),
        ("framework", text("pytorch, jax …")),
        ("track", text("the track that runs are filed under")),
        ("duration_minutes", positive("minutes of a run without a schedule, and of phases that do not say")),
        ("description", text("one line about the workload")),
        ("notes", text("sources and caveats")),
        ("best_for", texts("what it stands for")),
        ("source", text("where the figures are from")),
        ("schedule", help(schedule, "phases of load")),
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
                    "effects that `atlas calibrate` learned from runs: accelerator, runs, and by figure effects, covariance, unseen, residual, reach; docs/calibration.md",
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

    /// A knob that files may set must be offered where it stands, or editors would mark it.
    #[test]
    fn every_knob_is_offered_where_its_home_is() {
        for spec in &KNOBS {
            let (schema, path) = match spec.home {
                Home::Workload(path) => (workload(), path),
                Home::Target(path) => (target(), path),
                Home::Nowhere => continue,
            };
            // A field that is a word or a mapping offers both.
            let inside = |at: &Value, key: &str| -> Option<Value> {
                let direct = |at: &Value| at.get("properties")?.get(key).cloned();
                direct(at).or_else(|| at.get("anyOf")?.as_array()?.iter().find_map(direct))
            };
            let found = path.iter().try_fold(schema, |at, key| inside(&at, key));
            assert!(found.is_some(), "{} at {path:?}", spec.name);
        }
    }
}
