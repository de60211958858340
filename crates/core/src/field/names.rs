//! The knobs and the groups that panes and tables show them in.

/// One setting. Panes and tables show them in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knob {
    /// Engine.
    Engine,
    /// Training framework or serving engine, with its release.
    Software,
    /// Sequences per device and step.
    Microbatch,
    /// Sequences of an optimizer step.
    Global,
    /// Format of matrix multiplications and weights.
    Precision,
    /// Format of matrix products.
    Compute,
    /// Bits per weight.
    WeightBits,
    /// Format of the weights of experts.
    ExpertPrecision,
    /// Format of the KV cache.
    KvPrecision,
    /// Format of gradients.
    GradientFormat,
    /// Optimizer.
    Optimizer,
    /// Which weights are trained.
    Trained,
    /// Which linear layers have adapters.
    LoraTargets,
    /// What is kept in host memory.
    CpuOffload,
    /// What the backward pass computes again.
    Recompute,
    /// Layers recomputed in full.
    RecomputeLayers,
    /// Memory that planned recomputation leaves free.
    RecomputeReserve,
    /// Communication alongside computation.
    Overlap,
    /// Tensor-parallel communication alongside its matrix products.
    OverlapTensor,
    /// Pipeline transfers alongside the next micro-batch.
    OverlapPipeline,
    /// Exchange of tokens between experts alongside another micro-batch.
    OverlapExperts,
    /// Gradient and parameter communication alongside computation.
    OverlapData,
    /// How attention is computed.
    AttentionKernel,
    /// What a step replays as captured graphs.
    GraphCapture,
    /// Whether the model is compiled.
    Compiled,
    /// How tokens travel to experts.
    MoeDispatcher,
    /// Handling of tokens beyond the capacity of an expert.
    MoeCapacity,
    /// Load of the busiest expert-parallel rank over the mean.
    ExpertImbalance,
    /// Kernels launched as captured graphs.
    CudaGraphs,
    /// NICs that read accelerator memory directly.
    GpudirectRdma,
    /// Bare metal or SR-IOV.
    Virt,
    /// The fabric between accelerators.
    Fabric,
    /// Tensor-parallel ranks.
    Tp,
    /// Pipeline stages.
    Pp,
    /// Model chunks of a stage.
    Vpp,
    /// Layers of the first pipeline stage.
    FirstLayers,
    /// Layers of the last pipeline stage.
    LastLayers,
    /// Layers that predict further tokens in training.
    MtpLayers,
    /// Data-parallel replicas.
    Dp,
    /// Context-parallel ranks.
    Cp,
    /// Data that ranks sharing a sequence exchange.
    CpCommType,
    /// Expert-parallel ranks.
    Ep,
    /// Tensor-parallel ranks inside an expert.
    Etp,
    /// Data-parallel attention groups inside a serving replica.
    AttentionDp,
    /// Ranks that share the KV cache of a sequence.
    ContextRanks,
    /// Copies of busy experts.
    RedundantExperts,
    /// How experts that every token passes run.
    SharedExperts,
    /// Two halves of a batch alternate.
    TwoBatchOverlap,
    /// Sequence parallelism.
    Sp,
    /// How model states are spread over replicas.
    Sharding,
    /// Ranks that states are spread over.
    Shard,
    /// The order of a pipeline's passes.
    PipelineSchedule,
    /// Prompt tokens, the ISL.
    Prompt,
    /// Generated tokens, the OSL.
    Generate,
    /// Images of a request or a sequence.
    Images,
    /// Side of an image.
    ImageSize,
    /// Whether the vision encoder is left as it is in training.
    FreezeVision,
    /// Tokens of the whole training run.
    TrainTokens,
    /// Spread of the prompts' lengths.
    PromptCv,
    /// Spread of the outputs' lengths.
    GenerateCv,
    /// Longest output.
    GenerateMax,
    /// Longest usual output over the mean.
    GenerateSpread,
    /// How requests are offered.
    Load,
    /// Requests in flight.
    Concurrency,
    /// Requests per second.
    RequestRate,
    /// Requests of the whole run.
    RunRequests,
    /// Most sequences in a step.
    MaxNumSeqs,
    /// Most tokens in a step.
    MaxNumBatchedTokens,
    /// Share of memory the engine may use.
    GpuMemoryUtilization,
    /// Prompt chunks in decoding steps.
    ChunkedPrefill,
    /// Most prompt tokens of one request in a step.
    LongPrefillTokenThreshold,
    /// The next step is scheduled while the accelerator computes.
    OverlapScheduling,
    /// Decode steps between two polls of the queue.
    RecvInterval,
    /// Whole outputs are reserved at admission.
    ReserveOutput,
    /// Scheduler and sampler of a compiled runtime run in Python.
    PythonExecutor,
    /// Batch that graphs of fixed shape were compiled for.
    CompiledBatch,
    /// Beams of beam search.
    Beams,
    /// Share of prompts found in the cache.
    PrefixHit,
    /// Tokens drafted per step.
    DraftTokens,
    /// Probability that a draft is accepted.
    DraftAcceptance,
    /// Drafting method.
    DraftMethod,
    /// Acceptance that each drafted position loses.
    DraftDecline,
    /// Parameters of a draft model.
    DraftParams,
    /// Number of sequences above which speculation is off.
    DraftMaxBatch,
    /// Accelerators that only prefill.
    PrefillAccelerators,
    /// Conversations under way at once.
    Conversations,
    /// Turns of a conversation.
    Turns,
    /// Tokens that all prompts begin with.
    SharedPrefix,
    /// Which replica a request goes to.
    Routing,
    /// Host memory for keys and values.
    KvHostGb,
    /// Its bandwidth.
    KvHostGbps,
    /// Local disks for keys and values.
    KvSsdGb,
    /// Their bandwidth.
    KvSsdGbps,
    /// Remote stores of keys and values.
    KvRemoteGb,
    /// Their bandwidth.
    KvRemoteGbps,
    /// Replicas that only prefill.
    PrefillWorkers,
    /// Tensor-parallel ranks of those.
    PrefillTp,
    /// Pipeline stages of those.
    PrefillPp,
    /// Expert-parallel ranks of those.
    PrefillEp,
    /// Attention groups of those.
    PrefillAttentionDp,
    /// Link over which keys and values leave those.
    KvTransfer,
    /// How requests arrive.
    Arrivals,
    /// Burstiness of open arrivals.
    ArrivalCv,
    /// Most time to a first token that is good.
    SloTtft,
    /// Most time per output token that is good.
    SloTpot,
    /// Most time to a last token that is good.
    SloE2e,
    /// Nodes.
    NumNodes,
    /// Network bandwidth of one accelerator.
    NetworkGbps,
    /// Downlinks over uplinks.
    Oversubscription,
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
    /// Power available to a rack.
    RackKw,
    /// Nodes of a rack.
    NodesPerRack,
    /// Purchase price of a node.
    CapexUsdNode,
    /// Network and storage over the price of the nodes.
    NetworkShare,
    /// Spares over the price of the nodes.
    SparesShare,
    /// Cost of staff per node.
    StaffUsdNodeYear,
    /// Colocation.
    UsdPerKwMonth,
    /// Interest.
    CapitalCost,
    /// Depreciation period.
    AmortizationYears,
    /// Share of the time for which owned hardware is in use.
    Utilization,
    /// Seed of the noise.
    Seed,
    /// Whether noise is drawn at all.
    Noise,
    /// Independent runs of a simulation.
    Replications,
    /// Requests that a simulation serves.
    Requests,
    /// Optimizer steps that a simulation runs.
    Steps,
    /// Spread of one rank's pass.
    Jitter,
    /// Nodes that are slow all the time.
    SlowNodes,
    /// Their time over that of others.
    SlowFactor,
    /// Mean time between failures of a node.
    NodeMtbf,
    /// Work between two checkpoints.
    CheckpointInterval,
    /// Time of a checkpoint.
    Checkpoint,
    /// Whether checkpoints are written alongside the work.
    CheckpointAsync,
    /// Time to recover from a failure besides lost work.
    Restart,
}

/// The section that shows a knob.
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
    /// Its heading.
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
