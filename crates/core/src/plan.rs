//! Enums of the options of a run: engine, parallelism, formats, serving software. Files, knobs, engines and screens use
//! the same spelling.

mod cache;
mod preset;
mod spelling;

pub use cache::{cache_format_name, caches_in};
pub use preset::Preset;
pub use spelling::{canonical, stored_bits};

/// Declares enums whose variants have names that users write.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl $name {
            /// Names of all variants, as offered by knobs.
            pub const NAMES: &'static [&'static str] = &[$($word,)+];
            /// Names of all variants, as spelled in documents, with the variants.
            pub const WORDS: &'static [(&'static str, $name)] = &[$(($word, $name::$variant),)+];

            /// Name of the variant.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// Finds a variant by name or synonym, ignoring case.
            #[must_use]
            pub fn named(word: &str) -> Option<$name> {
                let word = canonical(word.trim());
                Self::WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, value)| *value)
            }
        }
    };
}

words! {
    /// The engine that estimates a scenario.
    Engine {
        /// First principles: operators, rooflines, collectives, schedulers.
        Analytical = "analytical",
        /// The predecessor system's calibrated model.
        SemiEmpirical = "semi-empirical",
        /// First principles, simulated: every request and every pass of a step.
        Event = "event",
        /// The predecessor dashboard's estimator.
        Benchboard = "benchboard",
    }
}

impl Engine {
    /// Whether it estimates from hardware and model, rather than from a profile's coefficients.
    #[must_use]
    pub const fn models_hardware(self) -> bool {
        matches!(self, Engine::Analytical | Engine::Event)
    }

    /// Whether an estimate takes milliseconds or more, because it is simulated rather than computed. Callers that need
    /// many estimates check this first, and use [`Engine::analytical`] or show progress.
    #[must_use]
    pub const fn simulates(self) -> bool {
        matches!(self, Engine::Event)
    }

    /// The engine with the same model that takes microseconds: itself, unless it simulates.
    #[must_use]
    pub const fn analytical(self) -> Engine {
        match self {
            Engine::Event => Engine::Analytical,
            other => other,
        }
    }
}

words! {
    /// How requests arrive.
    Arrivals {
        /// Constant concurrency: each finished request is replaced immediately.
        Closed = "closed",
        /// Poisson arrivals.
        Poisson = "poisson",
        /// Gamma-distributed arrival gaps; their coefficient of variation is a separate knob.
        Gamma = "gamma",
        /// All requests at the start.
        Burst = "burst",
    }
}

words! {
    /// Kind of hourly price.
    PriceBasis {
        /// The target's stated price, of whatever kind.
        Stated = "stated",
        /// On-demand list price.
        OnDemand = "on-demand",
        /// Committed for months or years, paid whether used or not.
        Reserved = "reserved",
        /// Preemptible at any time.
        Spot = "spot",
        /// Offers of many owners, sorted by price.
        Marketplace = "marketplace",
        /// Purchase: nodes, network, colocation, staff, spares, capital and energy.
        Owned = "owned",
    }
}

impl PriceBasis {
    /// Kinds of rental in price lists.
    pub const RENTS: [PriceBasis; 4] =
        [PriceBasis::OnDemand, PriceBasis::Reserved, PriceBasis::Spot, PriceBasis::Marketplace];
}

words! {
    /// Sharding of model states over the data-parallel ranks (ZeRO, arXiv 1910.02054).
    Sharding {
        /// Replicated: gradients are all-reduced.
        None = "none",
        /// Optimizer states (Megatron's distributed optimizer).
        Zero1 = "zero1",
        /// Optimizer states and gradients.
        Zero2 = "zero2",
        /// Optimizer states, gradients and weights (FSDP).
        Zero3 = "zero3",
    }
}

words! {
    /// Activations recomputed in the backward pass.
    Recompute {
        /// The minimum for which the run fits in memory.
        Auto = "auto",
        /// Nothing.
        None = "none",
        /// Attention scores, or a comparable part (arXiv 2205.05198, section 5).
        Selective = "selective",
        /// Every layer, from its input.
        Full = "full",
    }
}

words! {
    /// Pipeline schedule.
    PipelineSchedule {
        /// One forward, one backward; interleaved where vpp > 1 (arXiv 2104.04473, section 2.2).
        OneForwardOneBackward = "1f1b",
        /// Backward pass split into input and weight gradients. As many micro-batches are in flight as fit in memory,
        /// up to the number that leaves no bubble. Stages run their optimizers independently (arXiv 2401.10241, ZB-2p
        /// and section 4).
        ZeroBubble = "zero-bubble",
        /// As `ZeroBubble`, within the memory of 1F1B (ZB-1p).
        ZeroBubble1p = "zero-bubble-1p",
        /// All forwards before all backwards (GPipe, arXiv 1811.06965).
        AllForward = "gpipe",
        /// Bidirectional: micro-batches enter from both ends, and every device holds one stage per direction (DualPipe,
        /// arXiv 2412.19437, section 3.2.1).
        DualPipe = "dualpipe",
    }
}

words! {
    /// What context-parallel ranks exchange (`cp_comm_type`).
    ContextExchange {
        /// Keys and values are passed around a ring during attention (arXiv 2310.01889, section 3).
        Ring = "p2p",
        /// Keys and values are all-gathered before attention (arXiv 2407.21783, section 3.3.2).
        AllGather = "all_gather",
        /// All-to-all between sequence and heads before attention, and back after it (Ulysses, arXiv 2309.14509,
        /// section 3).
        AllToAll = "a2a",
    }
}

impl PipelineSchedule {
    /// Whether weight gradients are computed separately from input gradients.
    #[must_use]
    pub const fn splits_backward(self) -> bool {
        self.has_independent_optimizers() || self.is_bidirectional()
    }

    /// Whether stages run their optimizers independently of each other.
    #[must_use]
    pub const fn has_independent_optimizers(self) -> bool {
        matches!(self, PipelineSchedule::ZeroBubble | PipelineSchedule::ZeroBubble1p)
    }

    /// Whether micro-batches enter from both ends of the pipeline.
    #[must_use]
    pub const fn is_bidirectional(self) -> bool {
        matches!(self, PipelineSchedule::DualPipe)
    }
}

words! {
    /// Format of weights and of GEMMs.
    Format {
        /// Single precision.
        Fp32 = "fp32",
        /// 19-bit TensorFloat.
        Tf32 = "tf32",
        /// 16 bit with an 8-bit exponent.
        Bf16 = "bf16",
        /// 16-bit half precision.
        Fp16 = "fp16",
        /// 8-bit floating point, one scale per tensor.
        Fp8 = "fp8",
        /// 8-bit floating point, one scale per block of 32.
        Mxfp8 = "mxfp8",
        /// 8-bit integer.
        Int8 = "int8",
        /// 6-bit floating point, block-scaled (MXFP6).
        Fp6 = "fp6",
        /// 4-bit floating point, block-scaled (NVFP4, MXFP4).
        Fp4 = "fp4",
        /// 4-bit integer weights, multiplied in 16 bit (GPTQ, AWQ).
        Int4 = "int4",
    }
}

words! {
    /// An optimizer. Determines the state per weight and the computation per step.
    Optimizer {
        /// Adam and AdamW, both moments in fp32 (arXiv 1412.6980, 1711.05101): 8 bytes. LAMB has the same state.
        Adam = "adam",
        /// Adam with both moments in bf16 (DeepSeek-V3, arXiv 2412.19437, section 3.3.1): 4 bytes.
        Adam16bit = "adam-16bit",
        /// Adam with block-wise quantized moments (arXiv 2110.02861): 2 bytes, and 1/256 for the scales of the blocks.
        Adam8bit = "adam-8bit",
        /// Lion (arXiv 2302.06675): one momentum in fp32, 4 bytes.
        Lion = "lion",
        /// Adafactor without momentum (arXiv 1804.04235): row and column sums only, counted as zero bytes per weight.
        Adafactor = "adafactor",
        /// Plain stochastic gradient descent: no state.
        Sgd = "sgd",
        /// Stochastic gradient descent with momentum in fp32: 4 bytes.
        SgdMomentum = "sgd-momentum",
        /// Muon (arXiv 2502.16982): one momentum in fp32, 4 bytes, and five Newton–Schulz iterations per step.
        /// Embeddings and output layer, for which Adam is used instead, are counted like other weights.
        Muon = "muon",
    }
}

impl Optimizer {
    /// The variant of the optimizer that stores its states in `format`; `None` if there is none.
    #[must_use]
    pub const fn with_states(self, format: Format) -> Option<Optimizer> {
        let adam = matches!(self, Optimizer::Adam | Optimizer::Adam16bit | Optimizer::Adam8bit);
        match format {
            Format::Fp32 | Format::Tf32 if !matches!(self, Optimizer::Adam16bit | Optimizer::Adam8bit) => Some(self),
            Format::Bf16 | Format::Fp16 if adam => Some(Optimizer::Adam16bit),
            Format::Fp8 | Format::Mxfp8 | Format::Int8 if adam => Some(Optimizer::Adam8bit),
            _ => None,
        }
    }

    /// Bytes of optimizer states per weight, without a master copy.
    #[must_use]
    pub const fn state_bytes(self) -> f64 {
        match self {
            Optimizer::Adam => 8.0,
            Optimizer::Adam16bit | Optimizer::Lion | Optimizer::SgdMomentum | Optimizer::Muon => 4.0,
            // One fp32 scale per block of 256 values of each moment.
            Optimizer::Adam8bit => 2.0 * (1.0 + 4.0 / 256.0),
            Optimizer::Adafactor | Optimizer::Sgd => 0.0,
        }
    }

    /// Bytes of optimizer states per weight and, if `master`, of an fp32 copy of the weight.
    #[must_use]
    pub const fn bytes(self, master: bool) -> f64 {
        self.state_bytes() + if master { 4.0 } else { 0.0 }
    }
}

words! {
    /// How a serving measurement or deployment is loaded.
    LoadKind {
        /// One batch of equal requests that start and end together.
        Static = "static",
        /// Constant concurrency.
        Closed = "closed",
        /// Arrivals at a given rate.
        Open = "open",
        /// All requests are queued at the start.
        Burst = "burst",
        /// A static batch of which only the decode steps are timed.
        DecodeOnly = "decode-only",
        /// A static batch of which only the prefill is timed.
        PrefillOnly = "prefill-only",
    }
}

words! {
    /// Attention kernels in training.
    AttentionKernel {
        /// Scores are written to memory.
        Unfused = "unfused",
        /// FlashAttention-1 or Triton.
        Flash1 = "flash1",
        /// FlashAttention-2.
        Flash2 = "flash2",
        /// Optimized for the matrix units of this device generation (FlashAttention-3, cuDNN 9 on Hopper).
        Native = "native",
    }
}

words! {
    /// Parts of a training step captured as graphs.
    GraphCapture {
        /// Nothing: the host launches every kernel.
        None = "none",
        /// Each layer or module.
        Layer = "layer",
        /// The whole iteration.
        FullIteration = "full-iteration",
    }
}

words! {
    /// How tokens are dispatched to experts.
    MoeDispatcher {
        /// One copy per expert.
        AllToAll = "alltoall",
        /// One copy per scale-up domain (DeepEP).
        DeepEp = "deepep",
        /// One copy per scale-up domain (HybridEP).
        HybridEp = "hybridep",
    }
}

words! {
    /// Routing of requests to replicas.
    Routing {
        /// To the replica with the fewest requests.
        Least = "least-requests",
        /// Round robin.
        RoundRobin = "round-robin",
        /// Uniformly random.
        Random = "random",
        /// To the less loaded of two random replicas.
        TwoChoices = "two-choices",
        /// To the replica that has cached the start of the prompt.
        Prefix = "prefix",
    }
}

words! {
    /// Drafting methods of speculative decoding.
    DraftMethod {
        /// Multi-token-prediction layers of the model (arXiv 2412.19437, section 2.2).
        Mtp = "mtp",
        /// One layer trained on the model's hidden states (arXiv 2503.01840).
        Eagle3 = "eagle3",
        /// A smaller model with the same vocabulary.
        DraftModel = "draft-model",
        /// Continuations of matching n-grams in the preceding text.
        Ngram = "ngram",
    }
}

words! {
    /// How shared experts run in serving.
    SharedExperts {
        /// In separate kernels, replicated on every attention group.
        Separate = "separate",
        /// As an additional expert of the grouped GEMMs.
        Fused = "fused",
    }
}

words! {
    /// Link for KV cache transfers from prefill to decode accelerators.
    KvTransfer {
        /// The network, with the bandwidth of each accelerator.
        Network = "network",
        /// The scale-up fabric; both pools must be in one domain.
        ScaleUp = "scale-up",
    }
}

words! {
    /// Handling of tokens beyond the capacity of an expert.
    MoeCapacity {
        /// No capacity limit; shapes depend on the routing.
        Dropless = "dropless",
        /// Dropped; shapes are static.
        Dropped = "dropped",
    }
}

words! {
    /// Which weights are trained.
    Trained {
        /// All weights.
        All = "all",
        /// Low-rank adapters; the model is frozen.
        Lora = "lora",
        /// The projector from the vision encoder to the language model, both of which are frozen.
        Projector = "projector",
    }
}

words! {
    /// Which linear layers have adapters.
    LoraTargets {
        /// All linear layers of a block.
        All = "all",
        /// The projections of attention only.
        Attention = "attention",
    }
}

words! {
    /// State offloaded to host memory in training.
    CpuOffload {
        /// Nothing.
        None = "none",
        /// Optimizer states.
        Optimizer = "optimizer",
        /// Optimizer states and weights.
        Parameters = "parameters",
    }
}

/// How targets are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Methodology {
    /// All targets use the same knobs, to compare hardware.
    #[default]
    IdenticalConfig,
    /// Each target uses its own best knobs under the same constraints, to compare achievable performance.
    MaximumPerformance,
}

impl Methodology {
    /// Both methodologies.
    pub const ALL: [Methodology; 2] = [Methodology::IdenticalConfig, Methodology::MaximumPerformance];

    /// Name of the methodology.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Methodology::IdenticalConfig => "identical-config",
            Methodology::MaximumPerformance => "maximum-performance",
        }
    }

    /// Finds a methodology by name; underscores and hyphens are equivalent.
    #[must_use]
    pub fn named(word: &str) -> Option<Methodology> {
        let word = word.trim().to_lowercase().replace('_', "-");
        Methodology::ALL.into_iter().find(|methodology| methodology.name() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_words_parse_from_names_and_synonyms() {
        for (name, value) in Format::WORDS {
            assert_eq!(Format::named(name), Some(*value));
            assert_eq!(value.name(), *name);
        }
        assert_eq!(Sharding::named("FSDP"), Some(Sharding::Zero3));
        assert_eq!(Engine::named("semi_empirical"), Some(Engine::SemiEmpirical));
        assert_eq!(Optimizer::named("AdamW"), Some(Optimizer::Adam));
        assert_eq!(Recompute::named("some"), None);
    }
}
