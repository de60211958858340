//! Checks whether hardware and schedules support a training run. Estimates of unsupported runs are not to be shown.

use atlas_core::count::Count;
use thiserror::Error;

use super::pipeline::micro_batches_fill_groups;
use super::{ContextExchange, Sharding, TrainingInput};
use crate::accelerator::{Accelerator, Precision};

/// Reason why a training run is not supported.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum Unsupported {
    /// The accelerator does not multiply in the requested format.
    #[error("the accelerator has no rate for {} matrix multiplication{}", name(*.precision), fallback_hint(*.has))]
    Precision {
        /// The requested format.
        precision: Precision,
        /// The nearest supported format, if any.
        has: Option<Precision>,
    },
    /// The accelerator's matrix units do not apply a scale per block, as the format requires.
    #[error("the accelerator does not scale blocks in {} matrix multiplication", name(*.0))]
    BlockScales(Precision),
    /// The format is for the storage of weights in inference, not for gradients and activations.
    #[error("{} is a storage format for inference; use a format with matrix multiplications", name(*.0))]
    StorageOnly(Precision),
    /// The number of micro-batches of an interleaved schedule must be a multiple of the number of stages.
    #[error(
        "the interleaved schedule requires a multiple of {stages} micro-batches (pp), found {micro_batches}; change the \
         batch, dp or pp, or use vpp 1"
    )]
    Interleaving {
        /// Micro-batches of a step.
        micro_batches: f64,
        /// Pipeline stages.
        stages: f64,
    },
    /// Bidirectional schedules require an even number of stages, and of micro-batches, which must fill the pipeline
    /// twice.
    #[error(
        "a bidirectional pipeline requires vpp 1, an even number of stages, and an even number of at least {} \
         micro-batches, found {micro_batches}",
        2.0 * stages
    )]
    Bidirectional {
        /// Micro-batches of a step.
        micro_batches: f64,
        /// Pipeline stages.
        stages: f64,
    },
    /// A sequence cannot be divided evenly over its ranks.
    #[error("sequences of {tokens} tokens cannot be divided into {parts} equal parts ({of})")]
    IndivisibleSequence {
        /// Tokens of a sequence.
        tokens: f64,
        /// Parts into which it is divided.
        parts: f64,
        /// The ranks that divide it.
        of: &'static str,
    },
    /// More layers are to be recomputed than the model has.
    #[error("{stated} layers are to be recomputed, but the model has {layers}")]
    RecomputedLayers {
        /// Layers to recompute.
        stated: f64,
        /// Layers of the model.
        layers: f64,
    },
    /// Replicas cannot be divided into groups that share the model states.
    #[error("{ranks} data-parallel ranks (dp x cp) cannot be divided into groups of {shard} (shard)")]
    ShardGroups {
        /// Ranks that replicate the weights.
        ranks: f64,
        /// Ranks of a group.
        shard: f64,
    },
    /// The query heads are not divisible by the number of ranks for an all-to-all of heads and sequences.
    #[error("{heads} query heads cannot be divided among {ranks} ranks (tp x cp)")]
    IndivisibleHeads {
        /// Query heads.
        heads: f64,
        /// Tensor-parallel times context-parallel ranks.
        ranks: f64,
    },
    /// The ranks of a stage cannot be divided into groups that hold all experts.
    #[error("{ranks} ranks of a stage (tp x cp x dp) cannot be divided into groups of {group} (ep x etp)")]
    ExpertRanks {
        /// Ranks of a stage.
        ranks: f64,
        /// Ranks that hold all experts of a layer.
        group: f64,
    },
    /// There are more chunks than layers, even if the first and the last chunk have none.
    #[error("{layers} layers are too few for {chunks} chunks; reduce pp or vpp")]
    Chunks {
        /// Layers of the model.
        layers: f64,
        /// Chunks of all stages.
        chunks: f64,
    },
    /// The stated layers of the first and the last stage result in chunks without a whole number of layers.
    #[error(
        "{layers} layers cannot be divided evenly over {chunks} chunks with {stated} of them on the first and last stages"
    )]
    StageLayers {
        /// Sum of the stated layers of the first and the last stage.
        stated: f64,
        /// Layers of the model.
        layers: f64,
        /// Chunks of all stages.
        chunks: f64,
    },
}

/// Checks formats, then the pipeline, then whether sequences and replicas can be divided. Memory and the number of devices are not checked.
///
/// # Errors
///
/// Returns the first reason why the run is not supported.
pub fn supported(i: &TrainingInput) -> Result<(), Unsupported> {
    formats(i)?;
    stages(i)?;
    divisions(i)
}

/// Checks that there are as many layers as are to be recomputed, and that sequences and replicas can be divided evenly.
fn divisions(i: &TrainingInput) -> Result<(), Unsupported> {
    let layers = i.arch.depth() + i.mtp_layers;
    if let Some(stated) = i.recompute_layers.map(f64::from).filter(|stated| *stated > layers) {
        return Err(Unsupported::RecomputedLayers { stated, layers });
    }
    // Context-parallel ranks of a causal model take one chunk from each end of the sequence, so that all have the same
    // work (Megatron-Core requires a multiple of 2 × cp; arXiv 2407.21783, section 3.3.2).
    let halves = i.arch.causal && i.context_exchange != ContextExchange::AllToAll;
    let (chunks, of) = match (i.cp > 1.0, i.sequence_parallel && i.tp > 1.0) {
        (false, false) => (1.0, ""),
        (true, false) if halves => (2.0 * i.cp, "2 x cp"),
        (true, false) => (f64::from(i.cp), "cp"),
        (false, true) => (f64::from(i.tp), "tp with sp"),
        (true, true) if halves => (i.cp * i.tp.max(Count::new(2)), "cp x tp with sp"),
        (true, true) => (i.cp * i.tp, "cp x tp with sp"),
    };
    if i.arch.patch.is_none() && chunks > 1.0 && i.seq % chunks != 0.0 {
        return Err(Unsupported::IndivisibleSequence { tokens: i.seq, parts: chunks, of });
    }
    // Megatron-Core (parallel_state.py) asserts that the world size is divisible by etp × ep × pp.
    let (ranks, group) = (i.tp * i.cp * i.dp, i.ep * i.etp);
    if i.arch.is_moe() && ranks % group != 0.0 {
        return Err(Unsupported::ExpertRanks { ranks, group });
    }
    let ranks = i.copies() * i.dp * i.cp;
    match i.shard.filter(|_| i.sharding != Sharding::None) {
        Some(shard) if ranks % f64::from(shard) != 0.0 => {
            Err(Unsupported::ShardGroups { ranks, shard: f64::from(shard) })
        }
        _ => Ok(()),
    }
}

fn formats(i: &TrainingInput) -> Result<(), Unsupported> {
    if i.precision == Precision::Int4 {
        return Err(Unsupported::StorageOnly(i.precision));
    }
    let a = &i.accelerator;
    let lacks = |precision| Unsupported::Precision { precision, has: nearest_wide_format(a) };
    if !a.supports(i.precision) {
        return Err(lacks(i.precision));
    }
    if i.block_scaled && !a.scales_blocks() {
        return Err(Unsupported::BlockScales(i.precision));
    }
    // The output layer runs in 16 bit, or in a wider format.
    if nearest_wide_format(a).is_none() {
        return Err(lacks(Precision::Bf16));
    }
    // Recurrences run on vector units in 32 bit.
    if i.arch.linear.is_some_and(|linear| linear.vector_flops() > 0.0) && !a.supports(Precision::Fp32) {
        return Err(lacks(Precision::Fp32));
    }
    Ok(())
}

fn stages(i: &TrainingInput) -> Result<(), Unsupported> {
    let (layers, chunks) = (i.arch.depth(), i.pp * i.vpp);
    if i.pp > 1.0 && (i.first_layers.is_some() || i.last_layers.is_some()) {
        let ends = [i.first_layers, i.last_layers].into_iter().flatten().map(f64::from);
        let stated: f64 = ends.clone().sum();
        #[expect(clippy::cast_precision_loss, reason = "two at most")]
        let others = (i.pp - ends.clone().count() as f64) * i.vpp.max(Count::ONE);
        let rest = layers - stated;
        // Megatron-Core asserts that both divisions are exact (TransformerConfig, num_layers_in_first_pipeline_stage).
        let whole = |layers: f64, chunks: f64| if chunks > 0.0 { layers % chunks == 0.0 } else { layers == 0.0 };
        let even = rest >= 0.0
            && whole(rest, others)
            && ends.clone().all(|layers| whole(layers, f64::from(i.vpp.max(Count::ONE))));
        if !even || ends.clone().any(|layers| layers < 0.0) {
            return Err(Unsupported::StageLayers { stated, layers, chunks });
        }
    } else if i.pp > 1.0 && chunks > layers + 2.0 {
        return Err(Unsupported::Chunks { layers, chunks });
    }
    let (m, p) = (i.micro_batches(), i.pp);
    if p > 1.0 && i.schedule.is_bidirectional() && (p % 2.0 > 0.0 || m % 2.0 > 0.0 || m < 2.0 * p || i.vpp > 1.0) {
        return Err(Unsupported::Bidirectional { micro_batches: m, stages: f64::from(p) });
    }
    let ranks = i.tp * i.cp;
    if i.cp > 1.0 && i.context_exchange == ContextExchange::AllToAll && i.arch.heads % ranks > 0.0 {
        return Err(Unsupported::IndivisibleHeads { heads: f64::from(i.arch.heads), ranks });
    }
    if !micro_batches_fill_groups(i) {
        return Err(Unsupported::Interleaving { micro_batches: i.micro_batches(), stages: f64::from(i.pp) });
    }
    Ok(())
}

/// The first format of 16 bit or wider that an accelerator supports.
fn nearest_wide_format(a: &Accelerator) -> Option<Precision> {
    [Precision::Bf16, Precision::Fp16, Precision::Tf32, Precision::Fp32]
        .into_iter()
        .find(|precision| a.supports(*precision))
}

fn name(precision: Precision) -> &'static str {
    match precision {
        Precision::Fp32 => "fp32",
        Precision::Tf32 => "tf32",
        Precision::Bf16 => "bf16",
        Precision::Fp16 => "fp16",
        Precision::Fp8 => "fp8",
        Precision::Int8 => "int8",
        Precision::Fp6 => "fp6",
        Precision::Fp4 => "fp4",
        Precision::Int4 => "int4",
    }
}

fn fallback_hint(has: Option<Precision>) -> String {
    has.map_or_else(String::new, |precision| format!("; it has {}", name(precision)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use crate::arch::Architecture;
    use crate::training::Schedule;

    #[test]
    fn formats_that_the_accelerator_lacks_are_refused() {
        // The default is an A100: no fp8, no fp4.
        let at = |precision| supported(&TrainingInput { precision, ..TrainingInput::default() });
        for precision in [Precision::Fp32, Precision::Tf32, Precision::Bf16, Precision::Fp16, Precision::Int8] {
            assert_eq!(at(precision), Ok(()));
        }
        for precision in [Precision::Fp8, Precision::Fp6, Precision::Fp4] {
            assert_eq!(at(precision), Err(Unsupported::Precision { precision, has: Some(Precision::Bf16) }));
        }
        assert_eq!(at(Precision::Int4), Err(Unsupported::StorageOnly(Precision::Int4)));
        let words = at(Precision::Fp8).map_err(|refused| refused.to_string());
        let expected = "the accelerator has no rate for fp8 matrix multiplication; it has bf16";
        assert_eq!(words, Err(expected.to_owned()));
    }

    #[test]
    fn block_scaled_formats_need_matrix_units_that_apply_the_scales() {
        let mut hopper = Accelerator::default();
        hopper.flops[Precision::Fp8 as usize] = 2.0 * hopper.peak(Precision::Bf16);
        let at = |accelerator, block_scaled| {
            supported(&TrainingInput {
                accelerator,
                block_scaled,
                precision: Precision::Fp8,
                ..TrainingInput::default()
            })
        };
        assert_eq!(at(hopper, false), Ok(()));
        assert_eq!(at(hopper, true), Err(Unsupported::BlockScales(Precision::Fp8)));
        let mut blackwell = hopper;
        blackwell.flops[Precision::Fp4 as usize] = 2.0 * hopper.peak(Precision::Fp8);
        assert_eq!(at(blackwell, true), Ok(()));
    }

    #[test]
    fn sequences_and_replicas_must_divide_evenly() {
        let (two, eight) = (Count::new(2), Count::new(8));
        let base = TrainingInput { tp: eight, cp: two, sequence_parallel: true, ..TrainingInput::default() };
        let at = |seq, i: TrainingInput| supported(&TrainingInput { seq, ..i });
        let refused = |tokens, parts, of| Err(Unsupported::IndivisibleSequence { tokens, parts, of });
        assert_eq!(at(8192.0, base), Ok(()));
        assert_eq!(at(8191.0, base), refused(8191.0, 16.0, "cp x tp with sp"));
        let tensor = TrainingInput { cp: Count::ONE, ..base };
        assert_eq!(at(8190.0, tensor), refused(8190.0, 8.0, "tp with sp"));
        let context = TrainingInput { tp: Count::ONE, sequence_parallel: false, ..base };
        assert_eq!(at(8190.0, context), refused(8190.0, 4.0, "2 x cp"));
        assert_eq!(at(8190.0, TrainingInput { context_exchange: ContextExchange::AllToAll, ..context }), Ok(()));
        assert_eq!(at(8191.0, TrainingInput { cp: Count::ONE, ..context }), Ok(()));
        for (shard, fits) in [(8, true), (64, true), (7, false), (128, false)] {
            let i = TrainingInput { dp: Count::new(64), shard: Some(Count::new(shard)), ..TrainingInput::default() };
            let groups = Err(Unsupported::ShardGroups { ranks: 64.0, shard: f64::from(shard) });
            assert_eq!(supported(&i), if fits { Ok(()) } else { groups });
            assert_eq!(supported(&TrainingInput { sharding: Sharding::None, ..i }), Ok(()));
        }
    }

    #[test]
    fn all_experts_need_ranks_of_a_stage() {
        let arch = Architecture { experts: Count::new(8), top_k: Count::new(2), ..Architecture::default() };
        let at = |tp, dp, ep, etp| {
            let [tp, dp, ep, etp] = [tp, dp, ep, etp].map(Count::new);
            supported(&TrainingInput { arch, tp, dp, ep, etp, ..TrainingInput::default() })
        };
        let refused = |ranks, group| Err(Unsupported::ExpertRanks { ranks, group });
        assert_eq!(at(1, 8, 8, 1), Ok(()));
        assert_eq!(at(1, 4, 8, 1), refused(4.0, 8.0));
        assert_eq!(at(1, 12, 8, 1), refused(12.0, 8.0));
        assert_eq!(at(4, 2, 8, 1), Ok(()));
        assert_eq!(at(4, 4, 8, 4), refused(16.0, 32.0));
        let dense = TrainingInput { dp: Count::new(4), ep: Count::new(8), ..TrainingInput::default() };
        assert_eq!(supported(&dense), Ok(()));
    }

    #[test]
    fn interleaved_stages_need_full_groups_of_micro_batches() {
        let at = |schedule, vpp, m| {
            let arch = Architecture { layers: Count::new(80), ..Architecture::default() };
            supported(&TrainingInput {
                arch,
                schedule,
                pp: Count::new(8),
                vpp,
                dp: Count::ONE,
                global: m,
                ..TrainingInput::default()
            })
        };
        let refused = |m| Err(Unsupported::Interleaving { micro_batches: m, stages: 8.0 });
        for m in [1.0, 4.0, 12.0] {
            assert_eq!(at(Schedule::OneForwardOneBackward, Count::new(5), m), refused(m));
            assert_eq!(at(Schedule::ZeroBubble, Count::new(5), m), refused(m));
            assert_eq!(at(Schedule::AllForward, Count::new(5), m), Ok(()));
            assert_eq!(at(Schedule::OneForwardOneBackward, Count::ONE, m), Ok(()));
        }
        assert_eq!(at(Schedule::OneForwardOneBackward, Count::new(5), 16.0), Ok(()));
    }

    #[test]
    fn end_chunks_may_be_empty_but_no_others() {
        let at = |layers, pp, vpp| {
            let arch = Architecture { layers, ..Architecture::default() };
            supported(&TrainingInput { arch, pp, vpp, dp: Count::ONE, ..TrainingInput::default() })
        };
        assert_eq!(at(Count::new(126), Count::new(16), Count::new(8)), Ok(()));
        assert_eq!(
            at(Count::new(125), Count::new(16), Count::new(8)),
            Err(Unsupported::Chunks { layers: 125.0, chunks: 128.0 })
        );
        let arch = Architecture { layers: Count::new(61), ..Architecture::default() };
        let base = TrainingInput { arch, pp: Count::new(16), dp: Count::ONE, ..TrainingInput::default() };
        let stated = |first, last| supported(&TrainingInput { first_layers: first, last_layers: last, ..base });
        assert_eq!(stated(Some(Count::new(3)), Some(Count::new(2))), Ok(()));
        let refused = |stated| Err(Unsupported::StageLayers { stated, layers: 61.0, chunks: 16.0 });
        assert_eq!(stated(Some(Count::new(60)), Some(Count::new(2))), refused(62.0));
        // 54 layers are not divisible by 14 stages.
        assert_eq!(stated(Some(Count::new(4)), Some(Count::new(3))), refused(7.0));
    }
}
