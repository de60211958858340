//! Fixtures of several test modules.

use atlas_core::count::Count;
use atlas_perf::arch::Attention;

/// Attention of DeepSeek-V3.
pub(crate) const LATENT_ATTENTION: Attention = Attention::Latent {
    q_rank: Some(Count::new(1536)),
    kv_rank: Count::new(512),
    nope: Count::new(128),
    rope: Count::new(64),
    value: Count::new(128),
    direct: false,
    output: None,
};
