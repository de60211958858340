//! The knobs, and the groups in which panes and tables show them.

/// A setting. Panes and tables list settings in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knob {
    /// Engine.
    Engine,
    /// Training framework or serving engine, with its release.
    Software,
    /// Sequences per device and step.
    Microbatch,
    /// Sequences per optimizer step.
    Global,
    /// Format of weights, and of GEMMs if supported.
    Precision,
    /// Format of GEMMs.
    Compute,
    /// Bits per weight.
    WeightBits,
    /// Format of expert weights.
    ExpertPrecision,
    /// Format of the KV cache.
    KvPrecision,
    /// Format of gradients.
    GradientFormat,
    /// Layers computed in 16 bit although the format is narrower, in training.
    Bf16Layers,
    /// Optimizer.
    Optimizer,
    /// Which weights are trained.
    Trained,
    /// Which linear layers have adapters.
    LoraTargets,
    /// Rank of LoRA adapters.
    LoraRank,
    /// State offloaded to host memory.
    CpuOffload,
    /// Activations recomputed in the backward pass.
    Recompute,
    /// Number of layers recomputed in full.
    RecomputeLayers,
    /// Share of memory that planned recomputation keeps free.
    RecomputeReserve,
    /// Overlap of communication with computation.
    Overlap,
    /// Overlap of tensor-parallel communication with GEMMs.
    OverlapTensor,
    /// Overlap of pipeline transfers with the next micro-batch.
    OverlapPipeline,
    /// Overlap of the exchange of tokens between experts with another micro-batch.
    OverlapExperts,
    /// Overlap of gradient and parameter communication with computation.
    OverlapData,
    /// Attention kernel.
    AttentionKernel,
    /// Parts of a step captured as graphs.
    GraphCapture,
    /// Whether the model is compiled.
    Compiled,
    /// How tokens are dispatched to experts.
    MoeDispatcher,
    /// Handling of tokens beyond the capacity of an expert.
    MoeCapacity,
    /// Load of the busiest expert-parallel rank relative to the mean.
    ExpertImbalance,
    /// Whether kernels are launched as captured graphs.
    CudaGraphs,
    /// Whether NICs access accelerator memory directly.
    GpudirectRdma,
    /// Bare metal or SR-IOV.
    Virt,
    /// The fabric between accelerators.
    Fabric,
    /// Tensor-parallel ranks.
    Tp,
    /// Pipeline stages.
    Pp,
    /// Model chunks per stage.
    Vpp,
    /// Layers of the first pipeline stage.
    FirstLayers,
    /// Layers of the last pipeline stage.
    LastLayers,
    /// Multi-token-prediction layers in training.
    MtpLayers,
    /// Data-parallel replicas.
    Dp,
    /// Context-parallel ranks.
    Cp,
    /// What context-parallel ranks exchange.
    CpCommType,
    /// Expert-parallel ranks.
    Ep,
    /// Tensor-parallel ranks inside an expert.
    Etp,
    /// Data-parallel attention groups inside a serving replica.
    AttentionDp,
    /// Ranks that share the KV cache of a sequence.
    ContextRanks,
    /// Redundant copies of busy experts.
    RedundantExperts,
    /// How shared experts run.
    SharedExperts,
    /// Whether two halves of a batch alternate between computation and communication.
    TwoBatchOverlap,
    /// Whether sequence parallelism is on.
    Sp,
    /// Sharding of model states over replicas.
    Sharding,
    /// Number of ranks over which states are sharded.
    Shard,
    /// Pipeline schedule.
    PipelineSchedule,
    /// Prompt tokens (ISL).
    Prompt,
    /// Output tokens (OSL).
    Generate,
    /// Images per request or training sequence.
    Images,
    /// Side of an image, pixels.
    ImageSize,
    /// Whether the vision encoder is frozen in training.
    FreezeVision,
    /// Tokens of the whole training run.
    TrainTokens,
    /// Coefficient of variation of prompt lengths.
    PromptCv,
    /// Coefficient of variation of output lengths.
    GenerateCv,
    /// Maximum output length.
    GenerateMax,
    /// Ratio of the longest typical to the mean output length.
    GenerateSpread,
    /// Kind of load.
    Load,
    /// Concurrent requests.
    Concurrency,
    /// Requests per second.
    RequestRate,
    /// Number of requests in the whole run.
    RunRequests,
    /// Maximum number of sequences in a step.
    MaxNumSeqs,
    /// Maximum number of tokens in a step.
    MaxNumBatchedTokens,
    /// Share of memory that the engine may use.
    GpuMemoryUtilization,
    /// Whether prompt chunks share steps with decode.
    ChunkedPrefill,
    /// Maximum number of prompt tokens of one request in a step.
    LongPrefillTokenThreshold,
    /// Whether the next step is scheduled while the accelerator computes.
    OverlapScheduling,
    /// Decode steps between two polls of the queue.
    RecvInterval,
    /// Whether whole outputs are reserved at admission.
    ReserveOutput,
    /// Whether scheduler and sampler of a compiled runtime run in Python.
    PythonExecutor,
    /// Batch size of graphs compiled for a fixed shape.
    CompiledBatch,
    /// Beams per request (beam search).
    Beams,
    /// Share of prompt tokens in the prefix cache.
    PrefixHit,
    /// Tokens drafted per step.
    DraftTokens,
    /// Probability that the first drafted token is accepted.
    DraftAcceptance,
    /// Drafting method.
    DraftMethod,
    /// Relative loss of acceptance per drafted position.
    DraftDecline,
    /// Number of parameters of the draft model.
    DraftParams,
    /// Batch size above which nothing is drafted.
    DraftMaxBatch,
    /// Accelerators dedicated to prefill.
    PrefillAccelerators,
    /// Concurrent conversations.
    Conversations,
    /// Turns per conversation.
    Turns,
    /// Tokens at the start of every prompt.
    SharedPrefix,
    /// How requests are routed to replicas.
    Routing,
    /// Host memory for the KV cache.
    KvHostGb,
    /// Bandwidth from host memory.
    KvHostGbps,
    /// Local SSD capacity for the KV cache.
    KvSsdGb,
    /// Bandwidth from local SSDs.
    KvSsdGbps,
    /// Remote storage for the KV cache.
    KvRemoteGb,
    /// Bandwidth from remote storage.
    KvRemoteGbps,
    /// Replicas dedicated to prefill.
    PrefillWorkers,
    /// Tensor-parallel ranks of a prefill replica.
    PrefillTp,
    /// Pipeline stages of a prefill replica.
    PrefillPp,
    /// Expert-parallel ranks of a prefill replica.
    PrefillEp,
    /// Attention groups of a prefill replica.
    PrefillAttentionDp,
    /// Link for KV cache transfers from prefill to decode.
    KvTransfer,
    /// Arrival process.
    Arrivals,
    /// Coefficient of variation of arrival gaps.
    ArrivalCv,
    /// TTFT objective.
    SloTtft,
    /// TPOT objective.
    SloTpot,
    /// End-to-end latency objective.
    SloE2e,
    /// Number of nodes.
    NumNodes,
    /// Network bandwidth of one accelerator.
    NetworkGbps,
    /// Ratio of downlinks to uplinks.
    Oversubscription,
    /// Host memory of one node, GB.
    HostMemoryGb,
    /// Kind of hourly price.
    PriceBasis,
    /// Rental of a node.
    HourlyUsd,
    /// Whether the price includes energy.
    EnergyIncluded,
    /// Price of energy.
    UsdPerKwh,
    /// Price of energy in peak hours.
    PeakUsdPerKwh,
    /// Peak hours of a day.
    PeakHours,
    /// Power usage effectiveness.
    Pue,
    /// Emissions of the grid.
    KgCo2ePerKwh,
    /// Power limit of an accelerator.
    PowerCap,
    /// Limit of an accelerator's core clock.
    ClockShare,
    /// Power available to a rack.
    RackKw,
    /// Nodes of a rack.
    NodesPerRack,
    /// Purchase price of a node.
    CapexUsdNode,
    /// Cost of network and storage relative to the nodes.
    NetworkShare,
    /// Cost of spares relative to the nodes.
    SparesShare,
    /// Cost of staff per node.
    StaffUsdNodeYear,
    /// Price of colocation.
    UsdPerKwMonth,
    /// Interest rate.
    CapitalCost,
    /// Depreciation period.
    AmortizationYears,
    /// Share of the time in which owned hardware is in use.
    Utilization,
    /// Seed of the random number generator.
    Seed,
    /// Whether noise is applied.
    Noise,
    /// Independent runs of a simulation.
    Replications,
    /// Number of requests in a simulation.
    Requests,
    /// Number of optimizer steps in a simulation.
    Steps,
    /// Coefficient of variation of a rank's compute time.
    Jitter,
    /// Number of permanently slow nodes.
    SlowNodes,
    /// Slowdown of a slow node's compute time.
    SlowFactor,
    /// Mean time between failures of a node.
    NodeMtbf,
    /// Time between two checkpoints.
    CheckpointInterval,
    /// Time to write a checkpoint.
    Checkpoint,
    /// Whether checkpoints are written asynchronously.
    CheckpointAsync,
    /// Time to recover from a failure, without lost work.
    Restart,
}

/// Section in which a knob is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Engine.
    Engine,
    /// Software.
    Runtime,
    /// Parallelism.
    Parallelism,
    /// Sequences.
    Sequence,
    /// Serving.
    Serving,
    /// Hardware and price.
    Target,
    /// Reproducibility.
    Run,
    /// Simulation.
    Simulation,
}

impl Group {
    /// Heading of the section.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Group::Engine => "engine",
            Group::Runtime => "runtime",
            Group::Parallelism => "parallelism",
            Group::Sequence => "sequence",
            Group::Serving => "serving",
            Group::Target => "target",
            Group::Run => "run",
            Group::Simulation => "simulation",
        }
    }
}
