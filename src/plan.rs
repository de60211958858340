//! The words in which a run is planned, the physics' own and how targets are compared.

pub use atlas_physics::plan::*;

/// How targets are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Methodology {
    /// Every target with the same knobs: what the hardware changes, all else equal
    #[default]
    IdenticalConfig,
    /// Every target with its own best knobs under the same constraints: what a buyer would get
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
