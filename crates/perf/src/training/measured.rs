//! Highest measured efficiency, so that estimates above it can be flagged.

use crate::accelerator::{Accelerator, Generation, Precision};

/// Highest MFU of the published runs that train all weights on this family of accelerators, with causal attention
/// counted once. `None` if there is none.
///
/// Source rows of the measurements: V100 bigscience-0110, RTX 4090 llmq-0024, A100 llmfoundry-0105, H100 llmq-0018,
/// GB200 dgxc-0134, MI250X papers-0236, MI325X primus-0017, MI355X primus-0019, TPU v5p maxtext-0025, Trainium
/// aws-0028, Gaudi 2 habana-0001, Ascend 910B ascend-0020, Max 1550 argonne-0028. Rows of models with an unknown
/// architecture are excluded.
#[must_use]
pub fn best_mfu(accelerator: &Accelerator) -> Option<f64> {
    Some(match accelerator.generation {
        Generation::Volta => 0.39,
        // There are no training runs on Turing cards and Apple processors, which have no bf16 rate.
        Generation::Workstation if !accelerator.supports(Precision::Bf16) => return None,
        Generation::Workstation => 0.81,
        Generation::Ampere => 0.63,
        Generation::Hopper => 0.61,
        Generation::Blackwell => 0.47,
        Generation::Cdna2 => 0.42,
        Generation::Cdna3 => 0.40,
        Generation::Cdna4 => 0.35,
        Generation::Tpu => 0.70,
        Generation::Trainium => 0.45,
        Generation::Gaudi => 0.44,
        Generation::Ascend => 0.53,
        Generation::PonteVecchio => 0.15,
        Generation::Other => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn best_mfu_is_none_for_families_without_a_published_run() {
        let of = |generation| best_mfu(&Accelerator { generation, ..Accelerator::default() });
        assert_eq!(of(Generation::Other), None);
        assert_eq!(of(Generation::Ampere), Some(0.63));
        let mut apple = Accelerator { generation: Generation::Workstation, ..Accelerator::default() };
        assert_eq!(best_mfu(&apple), Some(0.81));
        apple.flops[Precision::Bf16 as usize] = 0.0;
        assert_eq!(best_mfu(&apple), None);
    }
}
