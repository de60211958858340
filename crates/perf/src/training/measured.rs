//! Highest measured efficiency, so that estimates above it can be flagged.

use crate::accelerator::{Accelerator, Precision};

/// Highest MFU of the published runs that train all weights on this family of accelerators, with causal attention
/// counted once. `None` if there is none.
#[must_use]
pub fn best_mfu(accelerator: &Accelerator) -> Option<f64> {
    let best = accelerator.generation.properties().best_mfu?;
    (!best.requires_bf16 || accelerator.supports(Precision::Bf16)).then_some(best.share)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use crate::accelerator::Generation;

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
