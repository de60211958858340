//! The words in which a run is planned: the engine, the parallelism of the model, the formats, the
//! serving software. Files, knobs, engines and screens use the same spelling.

mod preset;
mod spelling;

pub use preset::Preset;
pub use spelling::{canonical, stored_bits};

/// Declares an enum whose values have names that users write.
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
            /// Every value's name, as knobs offer them.
            pub const NAMES: &'static [&'static str] = &[$($word,)+];
            /// Name and value, as documents are read.
            pub const WORDS: &'static [(&'static str, $name)] = &[$(($word, $name::$variant),)+];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// The value of that name or a synonym, ignoring case.
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
    /// Whether it computes from hardware and model, rather than from a profile's coefficients.
    #[must_use]
    pub const fn reasons(self) -> bool {
        matches!(self, Engine::Analytical | Engine::Event)
    }

    /// Whether its answer takes milliseconds or more, since it is run rather than computed. Callers that
    /// need many estimates check this first, and use [`Engine::at_once`] or show that it will take a while.
    #[must_use]
    pub const fn simulates(self) -> bool {
        matches!(self, Engine::Event)
    }

    /// The engine of the same physics that takes microseconds: itself, unless it simulates.
    #[must_use]
    pub const fn at_once(self) -> Engine {
        match self {
            Engine::Event => Engine::Analytical,
            other => other,
        }
    }
}

words! {
    /// How requests arrive.
    Arrivals {
        /// A constant number in flight: each that leaves is replaced at once.
        Closed = "closed",
        /// Independently of one another.
        Poisson = "poisson",
        /// With gamma-distributed gaps, whose spread is a separate knob.
        Gamma = "gamma",
        /// All at once.
        Burst = "burst",
    }
}

words! {
    /// Kind of hourly price.
    PriceBasis {
        /// The target's own price, whatever it is.
        Stated = "stated",
        /// List price without commitment.
        OnDemand = "on-demand",
        /// Committed for months or years, and paid whether it is used or not.
        Reserved = "reserved",
        /// Can be taken away at any time.
        Spot = "spot",
        /// Offers of many owners, sorted by price.
        Marketplace = "marketplace",
        /// Purchase: nodes, network, colocation, staff, spares, capital and energy.
        Owned = "owned",
    }
}

impl PriceBasis {
    /// The kinds of rent that price lists have.
    pub const RENTS: [PriceBasis; 4] =
        [PriceBasis::OnDemand, PriceBasis::Reserved, PriceBasis::Spot, PriceBasis::Marketplace];
}

words! {
    /// How model states are spread over the data-parallel ranks (ZeRO, arXiv 1910.02054).
    Sharding {
        /// Replicated: gradients are all-reduced.
        None = "none",
        /// Optimizer states (Megatron's distributed optimizer).
        Zero1 = "zero1",
        /// And gradients.
        Zero2 = "zero2",
        /// And weights: FSDP.
        Zero3 = "zero3",
    }
}

words! {
    /// Which activations are recomputed in the backward pass.
    Recompute {
        /// The least that fits in memory.
        Auto = "auto",
        /// Nothing.
        None = "none",
        /// Attention's scores only, or a comparable part (arXiv 2205.05198, section 5).
        Selective = "selective",
        /// Every layer runs forward again from its input.
        Full = "full",
    }
}

words! {
    /// Pipeline schedule.
    PipelineSchedule {
        /// One forward, one backward; interleaved where vpp > 1 (arXiv 2104.04473, section 2.2).
        OneForwardOneBackward = "1f1b",
        /// Backward split into input and weight gradients, as many micro-batches in flight as there is memory for, up to the
        /// number that leaves no bubble; each stage's optimizer runs independently (arXiv 2401.10241, ZB-2p and section 4).
        ZeroBubble = "zero-bubble",
        /// The same within the memory of one forward, one backward (ZB-1p).
        ZeroBubble1p = "zero-bubble-1p",
        /// All forwards before all backwards (GPipe, arXiv 1811.06965).
        AllForward = "gpipe",
        /// Micro-batches enter from both ends, and every device holds a stage of either way (DualPipe, arXiv 2412.19437,
        /// section 3.2.1).
        DualPipe = "dualpipe",
    }
}

words! {
    /// What ranks that share a sequence exchange (`cp_comm_type`).
    ContextExchange {
        /// Keys and values travel round a ring beside attention (arXiv 2310.01889, section 3).
        Ring = "p2p",
        /// Keys and values are gathered before attention (arXiv 2407.21783, section 3.3.2).
        AllGather = "all_gather",
        /// Sequences are exchanged for heads before attention, and back after it (Ulysses, arXiv 2309.14509, section 3).
        AllToAll = "a2a",
    }
}

impl PipelineSchedule {
    /// Whether gradients of weights are computed separately from those of inputs.
    #[must_use]
    pub const fn splits(self) -> bool {
        self.own_optimizers() || self.two_ways()
    }

    /// Whether stages continue without waiting for each other's optimizers.
    #[must_use]
    pub const fn own_optimizers(self) -> bool {
        matches!(self, PipelineSchedule::ZeroBubble | PipelineSchedule::ZeroBubble1p)
    }

    /// Whether micro-batches enter from both ends.
    #[must_use]
    pub const fn two_ways(self) -> bool {
        matches!(self, PipelineSchedule::DualPipe)
    }
}

words! {
    /// Format of matrix multiplications and of the weights behind them.
    Format {
        /// Single precision.
        Fp32 = "fp32",
        /// 19-bit TensorFloat.
        Tf32 = "tf32",
        /// 16 bit with an 8-bit exponent.
        Bf16 = "bf16",
        /// 16-bit half precision.
        Fp16 = "fp16",
        /// 8-bit floating point, a scale per tensor.
        Fp8 = "fp8",
        /// 8-bit floating point, a scale per block of 32.
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
    /// An optimizer, as far as it determines the state of every weight and the work of a step.
    Optimizer {
        /// Adam and AdamW, both moments in fp32 (arXiv 1412.6980, 1711.05101): 8 bytes. LAMB keeps the same.
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
        /// With momentum in fp32: 4 bytes.
        SgdMomentum = "sgd-momentum",
        /// Muon (arXiv 2502.16982): one momentum in fp32, 4 bytes, and five Newton–Schulz iterations per step. Embeddings
        /// and output layer, which it leaves to Adam, are counted as the rest.
        Muon = "muon",
    }
}

impl Optimizer {
    /// The optimizer that keeps its states in another format; `None` if there is no such variant.
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

    /// Bytes of its states for every weight, without a master copy.
    #[must_use]
    pub const fn state_bytes(self) -> f64 {
        match self {
            Optimizer::Adam => 8.0,
            Optimizer::Adam16bit | Optimizer::Lion | Optimizer::SgdMomentum | Optimizer::Muon => 4.0,
            // One fp32 scale for each block of 256 values of each moment.
            Optimizer::Adam8bit => 2.0 * (1.0 + 4.0 / 256.0),
            Optimizer::Adafactor | Optimizer::Sgd => 0.0,
        }
    }

    /// Bytes of states and, if `master`, of an fp32 copy of the weights.
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
        /// A constant number of requests in flight.
        Closed = "closed",
        /// Requests arrive at a rate.
        Open = "open",
        /// All requests are queued at once.
        Burst = "burst",
        /// A static batch of which only the decode steps are timed.
        DecodeOnly = "decode-only",
        /// A static batch of which only the prefill is timed.
        PrefillOnly = "prefill-only",
    }
}

words! {
    /// How attention is computed in training.
    AttentionKernel {
        /// Scores are written to memory.
        Unfused = "unfused",
        /// FlashAttention-1 or Triton.
        Flash1 = "flash1",
        /// FlashAttention-2.
        Flash2 = "flash2",
        /// Written for the matrix units of this device generation (FlashAttention-3, cuDNN 9 on Hopper).
        Native = "native",
    }
}

words! {
    /// What a training step replays as captured graphs.
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
    /// How tokens travel to experts.
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
    /// Which replica a request goes to.
    Routing {
        /// The one with the fewest requests.
        Least = "least-requests",
        /// Round robin.
        RoundRobin = "round-robin",
        /// Any.
        Random = "random",
        /// The less loaded of two drawn at random.
        TwoChoices = "two-choices",
        /// The one that has cached the beginning of its prompt.
        Prefix = "prefix",
    }
}

words! {
    /// Drafting methods of speculative decoding.
    DraftMethod {
        /// Layers of the model that were trained to predict further tokens (arXiv 2412.19437, section 2.2).
        Mtp = "mtp",
        /// One layer that was trained on features of the model (arXiv 2503.01840).
        Eagle3 = "eagle3",
        /// A smaller model with the same vocabulary.
        DraftModel = "draft-model",
        /// Continuations of n-grams in the preceding text.
        Ngram = "ngram",
    }
}

words! {
    /// How shared experts run while a mixture is served.
    SharedExperts {
        /// In kernels of their own, whole on every attention group.
        Separate = "separate",
        /// As one more expert of the grouped products.
        Fused = "fused",
    }
}

words! {
    /// Over what keys and values travel from accelerators that prefill to those that decode.
    KvTransfer {
        /// Every accelerator's own share of the network.
        Network = "network",
        /// The scale-up fabric, where both pools lie in one domain.
        ScaleUp = "scale-up",
    }
}

words! {
    /// Handling of tokens beyond the capacity of an expert.
    MoeCapacity {
        /// There is no limit: shapes depend on routing.
        Dropless = "dropless",
        /// They are dropped: shapes are fixed.
        Dropped = "dropped",
    }
}

words! {
    /// Which weights are trained.
    Trained {
        /// All of them.
        All = "all",
        /// Low-rank adapters of a frozen model.
        Lora = "lora",
    }
}

words! {
    /// Which linear layers have adapters.
    LoraTargets {
        /// All linear layers of a block.
        All = "all",
        /// The projections of attention.
        Attention = "attention",
    }
}

words! {
    /// What training keeps in host memory.
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
    /// Every target with the same knobs: what the hardware changes, all else equal.
    #[default]
    IdenticalConfig,
    /// Every target with its own best knobs under the same constraints: what a buyer would get.
    MaximumPerformance,
}

impl Methodology {
    /// Both.
    pub const ALL: [Methodology; 2] = [Methodology::IdenticalConfig, Methodology::MaximumPerformance];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Methodology::IdenticalConfig => "identical-config",
            Methodology::MaximumPerformance => "maximum-performance",
        }
    }

    /// The methodology of that name; underscores and hyphens are alike.
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
    fn words_are_found_by_their_name_and_by_their_synonyms() {
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
