//! The words in which a run is planned: which engine answers, how the model is cut, in which format it computes, what
//! software serves it. Files, knobs, engines and screens spell them alike.

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

            /// The value of that name or a synonym of it, upper and lower case alike.
            #[must_use]
            pub fn named(word: &str) -> Option<$name> {
                let word = canonical(word.trim());
                Self::WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, value)| *value)
            }
        }
    };
}

words! {
    /// What answers a scenario.
    Engine {
        /// First principles: operators, rooflines, collectives, schedulers.
        Analytical = "analytical",
        /// The founding system's calibrated model.
        SemiEmpirical = "semi-empirical",
        /// First principles as they happen: every request and every pass of a step, simulated.
        Event = "event",
        /// The founding dashboard's estimator.
        Benchboard = "benchboard",
    }
}

impl Engine {
    /// Whether it reasons from hardware and model, rather than from a profile's coefficients.
    #[must_use]
    pub const fn reasons(self) -> bool {
        matches!(self, Engine::Analytical | Engine::Event)
    }

    /// Whether its answer takes milliseconds or more, since it is run rather than computed. Who asks many times looks
    /// here first, and asks [`Engine::at_once`] or says that it will take a while.
    #[must_use]
    pub const fn simulates(self) -> bool {
        matches!(self, Engine::Event)
    }

    /// The engine of the same physics that answers within microseconds: itself, but for one that simulates.
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
        /// With gamma-distributed gaps, whose spread is a knob of its own.
        Gamma = "gamma",
        /// All at once.
        Burst = "burst",
    }
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
        /// number that leaves no bubble; each stage's optimizer runs for itself (arXiv 2401.10241, ZB-2p and section 4).
        ZeroBubble = "zero-bubble",
        /// The same within the memory of one forward, one backward (ZB-1p).
        ZeroBubble1p = "zero-bubble-1p",
        /// All forwards before all backwards (GPipe, arXiv 1811.06965).
        AllForward = "gpipe",
    }
}

impl PipelineSchedule {
    /// Whether gradients of weights come apart from those of inputs, and stages go on without waiting for each other's
    /// optimizers.
    #[must_use]
    pub const fn splits(self) -> bool {
        matches!(self, PipelineSchedule::ZeroBubble | PipelineSchedule::ZeroBubble1p)
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
        /// 4-bit floating point, block-scaled (NVFP4, MXFP4).
        Fp4 = "fp4",
        /// 4-bit integer weights, multiplied in 16 bit (GPTQ, AWQ).
        Int4 = "int4",
    }
}

words! {
    /// Software that serves requests. Its defaults decide more than its kernels do.
    Server {
        /// vLLM, V1 engine.
        Vllm = "vllm",
        /// SGLang.
        Sglang = "sglang",
        /// TensorRT-LLM.
        TensorRtLlm = "tensorrt-llm",
        /// Hugging Face Transformers, one static batch.
        Transformers = "transformers",
        /// llama.cpp.
        LlamaCpp = "llama.cpp",
    }
}

/// Other spellings of words above.
const SYNONYMS: [(&str, &str); 33] = [
    ("semi_empirical", "semi-empirical"),
    ("calibrated", "semi-empirical"),
    ("first-principles", "analytical"),
    ("events", "event"),
    ("simulation", "event"),
    ("discrete-event", "event"),
    ("open", "poisson"),
    ("dashboard", "benchboard"),
    ("ultrascale-benchboard", "benchboard"),
    ("ddp", "none"),
    ("zero-1", "zero1"),
    ("zero-2", "zero2"),
    ("zero-3", "zero3"),
    ("fsdp", "zero3"),
    ("hsdp", "zero3"),
    ("interleaved", "1f1b"),
    ("zb", "zero-bubble"),
    ("zero_bubble", "zero-bubble"),
    ("zb-2p", "zero-bubble"),
    ("zb-h2", "zero-bubble"),
    ("zb-1p", "zero-bubble-1p"),
    ("zb1p", "zero-bubble-1p"),
    ("zb-h1", "zero-bubble-1p"),
    ("bfloat16", "bf16"),
    ("float16", "fp16"),
    ("float32", "fp32"),
    ("nvfp4", "fp4"),
    ("mxfp4", "fp4"),
    ("awq", "int4"),
    ("gptq", "int4"),
    ("trt-llm", "tensorrt-llm"),
    ("trtllm", "tensorrt-llm"),
    ("llama-cpp", "llama.cpp"),
];

/// The spelling that knobs offer for a word that users may also write another way.
#[must_use]
pub fn canonical(word: &str) -> &str {
    SYNONYMS.iter().find(|(other, _)| other.eq_ignore_ascii_case(word)).map_or(word, |(_, usual)| usual)
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
        assert_eq!(Server::named("TRT-LLM"), Some(Server::TensorRtLlm));
        assert_eq!(Recompute::named("some"), None);
    }

    #[test]
    fn every_synonym_stands_for_a_word() {
        let all =
            [Engine::NAMES, Arrivals::NAMES, Sharding::NAMES, PipelineSchedule::NAMES, Format::NAMES, Server::NAMES]
                .concat();
        assert!(SYNONYMS.iter().all(|(other, usual)| all.contains(usual) && !all.contains(other)));
    }
}
