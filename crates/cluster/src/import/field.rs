//! The fields of an import: every setting that is read, with its name in the output, its type, and whether plans have it.

/// What the value of a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    /// A whole number.
    Int,
    /// A number, or a sum of variables that the caller sets.
    Sum,
    /// Like [`Type::Sum`], or a list of numbers for several runs, or a word such as `inf`.
    Load,
    /// A number.
    Float,
    /// A word or name.
    Text,
    /// A switch.
    Flag,
    /// A list.
    List,
}

/// What a plan does with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// The documents contain its value.
    Planned,
    /// It names something or is what other fields are derived from. Nothing is missing in a plan without it.
    Context,
    /// Plans have no such setting.
    Unplanned,
}

/// Kind of a job, the value of [`Field::Kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Training,
    Serving,
    Benchmark,
    /// A server, and a benchmark that sends it requests.
    ServingBenchmark,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Training, Kind::Serving, Kind::Benchmark, Kind::ServingBenchmark];

    /// Its name in the output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Training => "training",
            Kind::Serving => "serving",
            Kind::Benchmark => "benchmark",
            Kind::ServingBenchmark => "serving+benchmark",
        }
    }

    /// The kind with this name.
    pub(crate) fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether the job starts a server.
    pub(crate) fn serves(self) -> bool {
        matches!(self, Kind::Serving | Kind::ServingBenchmark)
    }
}

impl From<Kind> for serde_json::Value {
    fn from(kind: Kind) -> serde_json::Value {
        kind.name().into()
    }
}

macro_rules! fields {
    ($($field:ident $name:literal $kind:ident $usage:ident),* $(,)?) => {
        /// A field. The names of those in a section have the form `section.name`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Field {
            $($field,)*
        }

        impl Field {
            /// All fields.
            const ALL: &[Field] = &[$(Field::$field),*];

            /// Its name in the output.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Field::$field => $name,)*
                }
            }

            /// What its value is.
            pub(crate) fn kind(self) -> Type {
                match self {
                    $(Field::$field => Type::$kind,)*
                }
            }

            /// What a plan does with it.
            pub(crate) fn usage(self) -> Use {
                match self {
                    $(Field::$field => Use::$usage,)*
                }
            }
        }
    };
}

fields! {
    // The job and its files.
    Kind "kind" Text Context,
    Framework "framework" Text Context,
    Release "release" Text Planned,
    Launcher "launcher" Text Context,
    Orchestrator "orchestrator" Text Context,
    Manifest "manifest" Text Context,
    Name "name" Text Context,
    Role "role" Text Context,
    Scenario "scenario" Text Context,
    ToolName "tool_name" Text Context,
    Backend "backend" Text Context,
    ConfigFile "config_file" Text Context,
    BaseConfig "base_config" Text Context,
    Calls "calls" Text Context,
    Dataset "dataset" Text Context,
    RequiredArgs "required_args" List Context,
    RequiredEnv "required_env" List Context,
    // The model.
    Model "model" Text Context,
    ModelPath "model_path" Text Context,
    HfModel "hf_model" Text Context,
    ArchitectureNumLayers "architecture.num_layers" Int Context,
    ArchitectureHiddenSize "architecture.hidden_size" Int Context,
    ArchitectureFfnHiddenSize "architecture.ffn_hidden_size" Int Context,
    ArchitectureExpansionRatio "architecture.expansion_ratio" Int Context,
    ArchitectureNumAttentionHeads "architecture.num_attention_heads" Int Context,
    ArchitectureNumQueryGroups "architecture.num_query_groups" Int Context,
    ArchitectureVocabSize "architecture.vocab_size" Int Context,
    ArchitectureNumExperts "architecture.num_experts" Int Context,
    ArchitectureMoeTopk "architecture.moe_topk" Int Context,
    ArchitectureMaxPositionEmbeddings "architecture.max_position_embeddings" Int Context,
    // Accelerators, nodes and replicas.
    Accelerator "accelerator" Text Context,
    Accelerators "accelerators" Int Context,
    NumAccelerators "num_accelerators" Int Context,
    AcceleratorsPerNode "accelerators_per_node" Int Context,
    AcceleratorsPerReplica "accelerators_per_replica" Int Context,
    DevicesPerReplica "devices_per_replica" Sum Context,
    Nodes "nodes" Int Context,
    NodesPerReplica "nodes_per_replica" Sum Context,
    Replicas "replicas" Sum Planned,
    Workers "workers" Sum Planned,
    InstanceType "instance_type" Text Unplanned,
    Threads "threads" Sum Unplanned,
    VisibleDevices "visible_devices" Text Unplanned,
    // Parallelism.
    Tp "tp" Int Planned,
    Pp "pp" Int Planned,
    Vpp "vpp" Int Planned,
    LayersPerVirtualStage "layers_per_virtual_stage" Sum Unplanned,
    FirstLayers "first_layers" Sum Planned,
    LastLayers "last_layers" Sum Planned,
    Dp "dp" Int Context,
    DpLocal "dp_local" Sum Context,
    DpReplicate "dp_replicate" Sum Context,
    DpShard "dp_shard" Sum Context,
    Cp "cp" Int Planned,
    CpCommType "cp_comm_type" Text Planned,
    Dcp "dcp" Sum Planned,
    UlyssesSp "ulysses_sp" Sum Context,
    SequenceParallel "sequence_parallel" Flag Planned,
    Ep "ep" Int Planned,
    Etp "etp" Sum Planned,
    MoeTp "moe_tp" Sum Unplanned,
    ExpertParallel "expert_parallel" Flag Context,
    AttentionDp "attention_dp" Flag Planned,
    // Axes of MaxText's mesh, within a slice or node (`ici`) and between them (`dcn`).
    IciDiloco "ici.diloco" Int Context,
    DcnDiloco "dcn.diloco" Int Context,
    IciData "ici.data" Int Context,
    DcnData "dcn.data" Int Context,
    IciFsdp "ici.fsdp" Int Context,
    DcnFsdp "dcn.fsdp" Int Context,
    IciFsdpTranspose "ici.fsdp_transpose" Int Context,
    DcnFsdpTranspose "dcn.fsdp_transpose" Int Context,
    IciSequence "ici.sequence" Int Context,
    DcnSequence "dcn.sequence" Int Context,
    IciContext "ici.context" Int Context,
    DcnContext "dcn.context" Int Context,
    IciContextAutoregressive "ici.context_autoregressive" Int Context,
    DcnContextAutoregressive "dcn.context_autoregressive" Int Context,
    IciTensor "ici.tensor" Int Context,
    DcnTensor "dcn.tensor" Int Context,
    IciTensorTranspose "ici.tensor_transpose" Int Context,
    DcnTensorTranspose "dcn.tensor_transpose" Int Context,
    IciTensorSequence "ici.tensor_sequence" Int Context,
    DcnTensorSequence "dcn.tensor_sequence" Int Context,
    IciPipeline "ici.pipeline" Int Context,
    DcnPipeline "dcn.pipeline" Int Context,
    IciExpert "ici.expert" Int Context,
    DcnExpert "dcn.expert" Int Context,
    IciAutoregressive "ici.autoregressive" Int Context,
    DcnAutoregressive "dcn.autoregressive" Int Context,
    // Batches of training.
    SeqLen "seq_len" Sum Planned,
    MicroBatch "micro_batch" Sum Planned,
    GlobalBatch "global_batch" Sum Planned,
    GradAccum "grad_accum" Sum Context,
    MinibatchPerDp "minibatch_per_dp" Sum Context,
    BatchSchedule "batch_schedule" Text Unplanned,
    RampupBatch "rampup_batch" List Unplanned,
    // Memory and kernels of training.
    Sharding "sharding" Text Planned,
    Recompute "recompute" Text Planned,
    RecomputeMethod "recompute_method" Text Planned,
    RecomputeModules "recompute_modules" List Planned,
    RecomputeNumLayers "recompute_num_layers" Sum Planned,
    RecomputeOption "selective_ac_option" Text Planned,
    RecomputeDefault "recompute_default" Text Context,
    RematPolicy "remat_policy" Text Unplanned,
    OffloadActivations "offload_activations" Flag Unplanned,
    OffloadOptimizer "offload_optimizer" Text Planned,
    OffloadParams "offload_params" Text Planned,
    Optimizer "optimizer" Text Planned,
    OptimizerInstances "optimizer_instances" Sum Planned,
    OptimizerStates "optimizer_states" Text Planned,
    GradientFormat "gradient_format" Text Planned,
    Adapter "adapter" Text Planned,
    LoraRank "lora_rank" Sum Planned,
    LoraTargets "lora_targets" List Planned,
    MtpLayers "mtp_layers" Sum Planned,
    MoeCapacity "moe_capacity" Text Planned,
    MoeDispatcher "moe_dispatcher" Text Planned,
    AttentionKernel "attention_kernel" Text Planned,
    FlashAttention "flash_attention" Flag Unplanned,
    GraphCapture "graph_capture" Text Planned,
    OverlapData "overlap_data" Flag Planned,
    OverlapTensor "overlap_tensor" Flag Planned,
    OverlapPipeline "overlap_pipeline" Flag Planned,
    OverlapExperts "overlap_experts" Flag Planned,
    // Formats.
    Precision "precision" Text Planned,
    Bf16Ends "first_last_layers_bf16" Flag Context,
    Bf16LayersAtStart "num_layers_at_start_in_bf16" Sum Planned,
    Bf16LayersAtEnd "num_layers_at_end_in_bf16" Sum Planned,
    Fp8Format "fp8_format" Text Context,
    Fp8Recipe "fp8_recipe" Text Planned,
    WeightsPrecision "weights_precision" Text Planned,
    KvPrecision "kv_precision" Text Planned,
    Quantization "quantization" Text Context,
    // Scheduler and cache of a server.
    MaxModelLen "max_model_len" Sum Context,
    MaxNumSeqs "max_num_seqs" Sum Planned,
    MaxNumBatchedTokens "max_num_batched_tokens" Sum Planned,
    MaxPrefillTokens "max_prefill_tokens" Sum Unplanned,
    MaxOutputTokens "max_output_tokens" Sum Unplanned,
    MaxTotalTokens "max_total_tokens" Sum Unplanned,
    BatchSize "batch_size" Sum Unplanned,
    UbatchSize "ubatch_size" Sum Unplanned,
    ChunkedPrefill "chunked_prefill" Flag Planned,
    ChunkedPrefillSize "chunked_prefill_size" Sum Planned,
    LongPrefillTokenThreshold "long_prefill_token_threshold" Sum Planned,
    ReserveOutput "reserve_output" Flag Planned,
    RecvInterval "recv_interval" Sum Planned,
    Beams "beams" Sum Planned,
    PrefixCaching "prefix_caching" Flag Unplanned,
    BlockSize "block_size" Sum Unplanned,
    GpuMemoryShare "gpu_memory_share" Float Planned,
    KvOffloadingGib "kv_offloading_gib" Float Planned,
    KvHostGb "kv_host_gb" Float Planned,
    SwapSpaceGb "swap_space_gb" Float Unplanned,
    CpuOffloadGb "cpu_offload_gb" Float Unplanned,
    GpuLayers "gpu_layers" Sum Unplanned,
    AsyncScheduling "async_scheduling" Flag Planned,
    TwoBatchOverlap "two_batch_overlap" Flag Planned,
    EnforceEager "enforce_eager" Flag Planned,
    CudaGraphMaxBatch "cuda_graph_max_batch" Sum Unplanned,
    ExpertSlots "expert_slots" Sum Planned,
    RedundantExperts "redundant_experts" Sum Planned,
    // Speculative decoding.
    SpeculativeMethod "speculative.method" Text Planned,
    SpeculativeModel "speculative.model" Text Planned,
    SpeculativeSteps "speculative.steps" Int Planned,
    SpeculativeTokens "speculative.tokens" Int Planned,
    SpeculativeTopk "speculative.topk" Int Planned,
    SpeculativeTp "speculative.tp" Int Unplanned,
    // Load of a client.
    BenchmarkDataset "benchmark.dataset" Text Context,
    BenchmarkIsl "benchmark.isl" Load Planned,
    BenchmarkOsl "benchmark.osl" Load Planned,
    BenchmarkShortest "benchmark.shortest" Float Planned,
    BenchmarkOslMax "benchmark.osl_max" Load Unplanned,
    BenchmarkPrefixLen "benchmark.prefix_len" Load Planned,
    BenchmarkImages "benchmark.images" Load Planned,
    BenchmarkImageSize "benchmark.image_size" Load Planned,
    BenchmarkNumPrompts "benchmark.num_prompts" Load Context,
    BenchmarkConcurrency "benchmark.concurrency" Load Planned,
    BenchmarkRequestRate "benchmark.request_rate" Load Planned,
    BenchmarkBurstiness "benchmark.burstiness" Float Planned,
    BenchmarkPooled "benchmark.pooled" Flag Planned,
    // The same settings, where a configuration of the client alone states them.
    Isl "isl" Load Unplanned,
    Osl "osl" Load Unplanned,
    Shortest "shortest" Float Unplanned,
    PrefixLen "prefix_len" Load Unplanned,
    Images "images" Load Unplanned,
    ImageSize "image_size" Load Unplanned,
    NumPrompts "num_prompts" Load Context,
    Concurrency "concurrency" Load Unplanned,
    RequestRate "request_rate" Load Unplanned,
    Burstiness "burstiness" Float Unplanned,
    Pooled "pooled" Flag Unplanned,
    // Rollouts of post-training.
    RolloutFramework "rollout.framework" Text Unplanned,
    RolloutTp "rollout.tp" Int Unplanned,
    RolloutGpuMemoryShare "rollout.gpu_memory_share" Float Unplanned,
    RolloutIsl "rollout.isl" Int Context,
    RolloutOsl "rollout.osl" Int Context,
    RolloutSamples "rollout.samples" Int Planned,
    RolloutPrompts "rollout.prompts" Int Planned,
    // Options of the Slurm job.
    SlurmAccount "slurm.account" Text Context,
    SlurmArray "slurm.array" Text Context,
    SlurmConstraint "slurm.constraint" Text Context,
    SlurmCpusPerTask "slurm.cpus_per_task" Int Context,
    SlurmExclusive "slurm.exclusive" Flag Context,
    SlurmGpus "slurm.gpus" Int Context,
    SlurmGpusPerNode "slurm.gpus_per_node" Int Context,
    SlurmGpusPerTask "slurm.gpus_per_task" Int Context,
    SlurmGres "slurm.gres" Text Context,
    SlurmMem "slurm.mem" Text Context,
    SlurmNodes "slurm.nodes" Int Context,
    SlurmNtasks "slurm.ntasks" Int Context,
    SlurmNtasksPerNode "slurm.ntasks_per_node" Int Context,
    SlurmPartition "slurm.partition" Text Context,
    SlurmQos "slurm.qos" Text Context,
    SlurmReservation "slurm.reservation" Text Context,
    SlurmTime "slurm.time" Text Context,
    SlurmTimeMinutes "slurm.time_minutes" Int Context,
}

impl Field {
    /// The field with this name.
    pub(crate) fn named(name: &str) -> Option<Field> {
        Field::ALL.iter().copied().find(|field| field.name() == name)
    }

    /// The field with this name in a section.
    pub(crate) fn in_section(section: &str, name: &str) -> Option<Field> {
        let own = |field: &Field| field.name().split_once('.') == Some((section, name));
        Field::ALL.iter().copied().find(own)
    }

    /// The setting of the whole job that a configuration of the client alone states without a section.
    pub(crate) fn in_benchmark(self) -> Option<Field> {
        Field::in_section("benchmark", self.name())
    }

    /// Section and name in it.
    pub(crate) fn section(self) -> (Option<&'static str>, &'static str) {
        match self.name().split_once('.') {
            Some((section, name)) => (Some(section), name),
            None => (None, self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::{Map, Value as Json};

    use super::{Field, Type};
    use crate::import::{SourceFile, import};

    fn is_of_type(value: &Json, kind: Type) -> bool {
        match kind {
            Type::Int => value.is_i64(),
            Type::Sum => value.is_number() || value.is_string(),
            Type::Load => value.is_number() || value.is_string() || value.is_array(),
            Type::Float => value.is_number(),
            Type::Text => value.is_string(),
            Type::Flag => value.is_boolean(),
            Type::List => value.is_array(),
        }
    }

    /// Values whose name or type is not in the table.
    fn unlisted(values: &Map<String, Json>, out: &mut BTreeSet<String>) {
        for (name, value) in values {
            let inner = value.as_object().into_iter().flatten().map(|(key, value)| (format!("{name}.{key}"), value));
            let fields: Vec<(String, &Json)> =
                if value.is_object() { inner.collect() } else { vec![(name.clone(), value)] };
            for (name, value) in fields {
                if !Field::named(&name).is_some_and(|field| is_of_type(value, field.kind())) {
                    out.insert(format!("{name} = {value}"));
                }
            }
        }
    }

    #[test]
    fn imported_values_have_the_types_in_the_table() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/launch");
        let mut found = BTreeSet::new();
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let read = import(&[SourceFile { name: path.display().to_string(), text }], &BTreeMap::new());
            let mut fields = read.fields.clone();
            ["roles", "variants", "conflict"].iter().for_each(|key| drop(fields.remove(*key)));
            unlisted(&fields, &mut found);
            read.variants.iter().for_each(|variant| unlisted(variant, &mut found));
            read.roles.values().filter_map(Json::as_object).for_each(|role| unlisted(role, &mut found));
        }
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn names_are_unique() {
        let names: BTreeSet<&str> = Field::ALL.iter().map(|field| field.name()).collect();
        assert_eq!(names.len(), Field::ALL.len());
    }
}
