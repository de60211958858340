//! What software does, as far as it changes time or memory: typed traits, without names, versions or dates.
//!
//! A trait that is `Default` here is what an engine assumes of software about which nothing is documented.

mod serving;
mod training;

pub use atlas_core::plan::AttentionKernel;

pub use serving::*;
pub use training::*;

/// Declares an enum whose values have names that documents use.
macro_rules! words {
    ($($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ })+) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Name and value, as documents are read.
            pub const WORDS: &'static [(&'static str, $name)] = &[$(($word, $name::$variant),)+];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }
        }
    )+ };
}
use words;

words! {
    /// How the kernels of a training step reach the device.
    StepLaunch {
        /// The host launches each kernel.
        Eager = "eager",
        /// A compiler made one program of a layer or of the whole step.
        Compiled = "compiled",
        /// The step replays captured graphs of its parts, which leave out what depends on the routing of tokens to experts.
        Captured = "captured",
        /// The step replays one graph of the whole iteration, experts included.
        Iteration = "iteration",
    }

    /// How the experts of a mixture are multiplied.
    ExpertProducts {
        /// One product after another.
        Sequential = "sequential",
        /// All experts of a rank in one grouped product.
        Grouped = "grouped",
    }

    /// Which side learns how many tokens each expert got.
    Routing {
        /// The host waits for the counts in every mixture layer, since shapes depend on them.
        HostSync = "host-sync",
        /// Counts stay on the device.
        OnDevice = "on-device",
    }

    /// How tokens travel between the ranks that hold experts.
    ExpertExchange {
        /// Every rank keeps all tokens; outputs are all-reduced.
        AllReduce = "all-reduce",
        /// Tokens are all-gathered and outputs reduce-scattered.
        GatherScatter = "gather-scatter",
        /// One copy of a token for each of its experts.
        AllToAll = "all-to-all",
        /// One copy of a token for each node or domain that needs it (arXiv 2412.19437, section 3.2.2).
        Deduplicated = "deduplicated",
    }
}
