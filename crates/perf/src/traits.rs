//! Traits of software: typed properties that affect time or memory, independent of names, versions and dates.
//!
//! The `Default` traits are those assumed of software whose behavior is undocumented.

mod serving;
mod training;

pub use atlas_core::plan::AttentionKernel;

pub use serving::*;
pub use training::*;

/// Declares enums whose variants have names, as documents spell them.
macro_rules! words {
    ($($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ })+) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Names of all variants, as spelled in documents, with the variants.
            pub const WORDS: &'static [(&'static str, $name)] = &[$(($word, $name::$variant),)+];

            /// Name of the variant, as spelled in documents.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }
        }
    )+ };
}
pub(crate) use words;

words! {
    /// How the kernels of a training step are launched.
    StepLaunch {
        /// The host launches each kernel.
        Eager = "eager",
        /// A compiler fuses a layer or the whole step into one program.
        Compiled = "compiled",
        /// The step replays captured graphs of its parts. Kernels that depend on the routing of tokens to experts are
        /// not captured.
        Captured = "captured",
        /// The step replays one graph of the whole iteration, including the experts.
        Iteration = "iteration",
    }

    /// How the GEMMs of the experts in a mixture of experts run.
    ExpertProducts {
        /// One GEMM per expert, one after another, for the experts that have tokens. The host launches each.
        Sequential = "sequential",
        /// One kernel per expert, also for experts without tokens, which need not wait for the host.
        Separate = "separate",
        /// One grouped GEMM for all experts of a rank, written in Triton.
        Triton = "triton",
        /// One grouped GEMM for all experts of a rank, from a compiled library (CUTLASS, DeepGEMM, Marlin).
        Grouped = "grouped",
    }

    /// Where the number of tokens routed to each expert is needed.
    Routing {
        /// On the host, which waits for the counts in every mixture-of-experts layer because tensor shapes depend on
        /// them.
        HostSync = "host-sync",
        /// On the device only.
        OnDevice = "on-device",
    }

    /// How tokens are exchanged between the ranks that hold experts.
    ExpertExchange {
        /// Every rank keeps all tokens; outputs are all-reduced.
        AllReduce = "all-reduce",
        /// Tokens are all-gathered and outputs reduce-scattered.
        GatherScatter = "gather-scatter",
        /// A token is sent once for each of its experts.
        AllToAll = "all-to-all",
        /// A token is sent once to each node or domain with one of its experts (arXiv 2412.19437, section 3.2.2).
        Deduplicated = "deduplicated",
    }
}
