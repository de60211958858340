//! Number of layers of each pipeline stage and chunk.

use super::TrainingInput;
use atlas_core::count::Count;

/// Number of layers of chunk `k`. Chunks are numbered in the order in which a micro-batch passes them: chunk `c` of
/// stage `s` has number `c * pp + s`.
///
/// Layers are distributed evenly if they are divisible by the number of chunks. Otherwise, the embedding and the output
/// layer count as one layer each: the first and the last chunk have one layer less (none, if chunks have one layer),
/// and longer chunks come last. With multi-token prediction, its layers count, too, but the embedding does not, and
/// longer chunks come first, which leaves the fewest layers beside the outputs (layouts of Megatron Bridge for
/// DeepSeek-V3, `recipes/deepseek/deepseek_v3.py`). [`TrainingInput::first_layers`] and
/// [`TrainingInput::last_layers`] take precedence.
#[must_use]
pub fn chunk_layers(i: &TrainingInput, k: f64) -> f64 {
    let (depth, n) = (i.arch.depth(), chunks(i));
    if i.pp > 1.0 && (i.first_layers.is_some() || i.last_layers.is_some()) {
        return stage_layers(i, k % i.pp) / i.vpp.max(Count::ONE);
    }
    let Some(split) = Split::of(i, n) else { return depth / n };
    split.chunk(k)
}

/// Layers of pipeline stage `stage`: the sum of its [`chunk_layers`].
#[must_use]
pub fn stage_layers(i: &TrainingInput, stage: f64) -> f64 {
    let (depth, p, v) = (i.arch.depth(), i.pp.max(Count::ONE), i.vpp.max(Count::ONE));
    if p <= 1.0 {
        return depth;
    }
    let (first, last) = (stage < 0.5, stage > p - 1.5);
    match (i.first_layers, i.last_layers) {
        (None, None) => {}
        (Some(layers), _) if first => return f64::from(layers),
        (_, Some(layers)) if last => return f64::from(layers),
        (stated, other) => {
            let rest = depth - stated.unwrap_or(Count::ZERO) - other.unwrap_or(Count::ZERO);
            let stages = p - indicator(stated.is_some()) - indicator(other.is_some());
            return (rest / stages.max(1.0)).max(0.0);
        }
    }
    let Some(split) = Split::of(i, p * v) else { return depth / p };
    let Split { all, n, .. } = split;
    let longer = all % n;
    let (turns, rest) = ((longer / p).floor(), longer % p);
    let one_more = if split.longer_first { stage < rest } else { stage >= p - rest };
    v * (all / n).floor() + turns + indicator(one_more)
        - split.embedding * indicator(first)
        - split.outputs * indicator(last)
}

/// Number of layers of chunk `k` that are computed in 16 bit; see [`TrainingInput::bf16_layers`].
#[must_use]
pub fn bf16_chunk_layers(i: &TrainingInput, k: f64) -> f64 {
    let [start, end] = i.bf16_ends();
    if start + end <= 0.0 {
        return 0.0;
    }
    let first: f64 = (0..k as u32).map(|before| chunk_layers(i, f64::from(before))).sum();
    bf16_part(i, first, chunk_layers(i, k))
}

/// Number of layers of pipeline stage `stage` that are computed in 16 bit: the sum of its [`bf16_chunk_layers`].
#[must_use]
pub fn bf16_stage_layers(i: &TrainingInput, stage: f64) -> f64 {
    let [start, end] = i.bf16_ends();
    if start + end <= 0.0 {
        return 0.0;
    }
    let (mut first, mut sum) = (0.0, 0.0);
    for k in (0..chunks(i) as u32).map(f64::from) {
        let layers = chunk_layers(i, k);
        if k % i.pp.max(Count::ONE) == stage {
            sum += bf16_part(i, first, layers);
        }
        first += layers;
    }
    sum
}

/// Number of 16-bit layers among the `layers` layers from number `first` on.
fn bf16_part(i: &TrainingInput, first: f64, layers: f64) -> f64 {
    let [start, end] = i.bf16_ends();
    let within = |from: f64, to: f64| ((first + layers).min(to) - first.max(from)).max(0.0);
    within(0.0, start) + within(i.arch.depth() - end, i.arch.depth())
}

/// The first of the longest stages between the first and the last; `None` without such stages.
pub(crate) fn longest_middle_stage(i: &TrainingInput) -> Option<f64> {
    let (p, n) = (i.pp, chunks(i));
    if p <= 2.0 {
        return None;
    }
    let stated = i.first_layers.is_some() || i.last_layers.is_some();
    let Some(split) = Split::of(i, n).filter(|split| !stated && !split.longer_first) else { return Some(1.0) };
    let longer = split.all % n % p;
    Some(if longer >= 2.0 { p - longer } else { 1.0 })
}

/// Number of chunks over all stages.
fn chunks(i: &TrainingInput) -> f64 {
    (i.pp * i.vpp).max(1.0)
}

/// Distribution of layers over chunks that do not divide them.
struct Split {
    /// Layers, and what counts as a layer.
    all: f64,
    /// Number of chunks.
    n: f64,
    /// What counts as a layer in the first chunk.
    embedding: f64,
    /// What counts as a layer in the last chunk.
    outputs: f64,
    /// Whether the longer chunks come first.
    longer_first: bool,
}

impl Split {
    /// `None` if the layers are divisible by `n`, or if there are more chunks than layers including the embedding and
    /// the output layer: then there is no distribution, and the mean is used.
    fn of(i: &TrainingInput, n: f64) -> Option<Split> {
        let (depth, outputs) = (i.arch.depth(), 1.0 + i.mtp_layers);
        let even = depth / n;
        if n < 2.0 || (even - even.round()).abs() < 1e-9 || depth.round() + 1.0 + outputs < n {
            return None;
        }
        let without = Split { all: depth.round() + outputs, n, embedding: 0.0, outputs, longer_first: true };
        if outputs > 1.0 && without.chunk(n - 1.0) >= 0.0 {
            return Some(without);
        }
        let with = Split { all: without.all + 1.0, embedding: 1.0, longer_first: false, ..without };
        (with.chunk(n - 1.0) >= 0.0).then_some(with)
    }

    /// Layers of chunk `k`.
    fn chunk(&self, k: f64) -> f64 {
        let longer = self.all % self.n;
        let one_more = if self.longer_first { k < longer } else { k >= self.n - longer };
        (self.all / self.n).floor() + indicator(one_more)
            - self.embedding * indicator(k < 0.5)
            - self.outputs * indicator(k > self.n - 1.5)
    }
}

fn indicator(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Architecture;

    fn job(layers: u32, pp: u32, vpp: u32) -> TrainingInput {
        let [layers, pp, vpp] = [layers, pp, vpp].map(Count::new);
        TrainingInput { arch: Architecture { layers, ..Architecture::default() }, pp, vpp, ..TrainingInput::default() }
    }

    fn stages(i: &TrainingInput) -> Vec<f64> {
        (0..i.pp.get()).map(|stage| stage_layers(i, f64::from(stage))).collect()
    }

    #[test]
    fn layers_that_divide_are_spread_evenly() {
        assert_eq!(stages(&job(80, 4, 5)), [20.0; 4]);
        assert_eq!(stages(&job(61, 1, 1)), [61.0]);
    }

    #[test]
    fn indivisible_layers_leave_one_fewer_in_the_end_chunks() {
        // arXiv 2407.21783, section 3.3.2: 126 layers, 16 stages of 8 chunks, both end chunks empty.
        let meta = job(126, 16, 8);
        let chunks: Vec<f64> = (0..128).map(|k| chunk_layers(&meta, f64::from(k))).collect();
        assert_eq!((chunks.first(), chunks.last()), (Some(&0.0), Some(&0.0)));
        assert!(chunks.iter().skip(1).take(126).all(|layers| *layers == 1.0));
        let stages = stages(&meta);
        assert_eq!((stages.first(), stages.get(1), stages.last()), (Some(&7.0), Some(&8.0), Some(&7.0)));
    }

    #[test]
    fn prediction_layers_and_outputs_count_as_layers_of_the_last_chunk() {
        // Layouts of Megatron Bridge for DeepSeek-V3, with one prediction layer: `recipes/deepseek/deepseek_v3.py`, and
        // "Et|(tt|)*30mL" for 8 stages of 4 chunks.
        for (pp, vpp, first, last) in [
            (4, 1, 16.0, 13.0),
            (8, 1, 8.0, 5.0),
            (4, 2, 16.0, 13.0),
            (16, 1, 4.0, 1.0),
            (8, 2, 8.0, 5.0),
            (8, 4, 7.0, 6.0),
        ] {
            let i = TrainingInput { mtp_layers: Count::ONE, ..job(61, pp, vpp) };
            let all = stages(&i);
            assert_eq!((all.first(), all.last()), (Some(&first), Some(&last)), "{pp} {vpp}");
            assert!(all.iter().skip(1).take(pp as usize - 2).all(|layers| *layers == 8.0 * 8.0 / f64::from(pp)));
        }
    }

    #[test]
    fn chunks_sum_to_their_stage_and_stages_to_the_model() {
        let sizes = [12, 30, 61, 62, 94, 126].into_iter().flat_map(|layers| [0, 1, 2].map(|mtp| (layers, mtp)));
        for (layers, mtp) in sizes {
            for (pp, vpp) in [(2, 1), (3, 2), (4, 3), (7, 1), (8, 4), (16, 8), (64, 1)] {
                let i = TrainingInput { mtp_layers: Count::new(mtp), ..job(layers, pp, vpp) };
                let all = stages(&i);
                assert!((all.iter().sum::<f64>() - f64::from(layers)).abs() < 1e-9, "{layers} {pp} {vpp}: {all:?}");
                for (stage, layers) in (0..).zip(&all) {
                    let own: f64 = (0..vpp).map(|c| chunk_layers(&i, f64::from(c * pp + stage))).sum();
                    assert!((own - layers).abs() < 1e-9, "{i:?} {stage}");
                }
                let most = all.iter().skip(1).take(pp as usize - 2).copied().fold(0.0, f64::max);
                let found = longest_middle_stage(&i).and_then(|stage| all.get(stage as usize).copied());
                assert_eq!(found.unwrap_or(0.0), if pp > 2 { most } else { 0.0 }, "{layers} {pp} {vpp}");
            }
        }
    }

    #[test]
    fn layers_in_16_bit_are_the_first_and_the_last_ones() {
        let job = |layers, pp, vpp, bf16| TrainingInput {
            precision: crate::accelerator::Precision::Fp8,
            bf16_layers: Count::new(bf16),
            ..job(layers, pp, vpp)
        };
        let of = |i: &TrainingInput| -> Vec<f64> {
            (0..i.pp.get()).map(|stage| bf16_stage_layers(i, f64::from(stage))).collect()
        };
        assert_eq!(of(&job(80, 4, 1, 15)), [7.0, 0.0, 0.0, 8.0]);
        assert_eq!(of(&job(80, 4, 1, 50)), [20.0, 5.0, 5.0, 20.0]);
        // Chunks of two layers: of the first two chunks, and of the last two.
        assert_eq!(of(&job(16, 4, 2, 7)), [2.0, 1.0, 2.0, 2.0]);
        assert_eq!(of(&job(80, 1, 1, 99)), [80.0]);
        assert_eq!(of(&TrainingInput { precision: crate::accelerator::Precision::Bf16, ..job(80, 2, 1, 8) }), [0.0; 2]);
        for (layers, pp, vpp) in [(61, 4, 3), (126, 16, 8), (62, 7, 1)] {
            let i = job(layers, pp, vpp, 13);
            assert!((of(&i).iter().sum::<f64>() - 13.0).abs() < 1e-9, "{layers} {pp} {vpp}");
            for stage in 0..pp {
                let own: f64 = (0..vpp).map(|c| bf16_chunk_layers(&i, f64::from(c * pp + stage))).sum();
                assert!((own - bf16_stage_layers(&i, f64::from(stage))).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn stated_end_stage_layers_leave_the_rest_split_evenly() {
        let both =
            TrainingInput { first_layers: Some(Count::new(3)), last_layers: Some(Count::new(2)), ..job(61, 16, 1) };
        let all = stages(&both);
        assert_eq!((all.first(), all.get(1), all.last()), (Some(&3.0), Some(&4.0), Some(&2.0)));
        let one = TrainingInput { last_layers: Some(Count::ONE), ..job(61, 4, 2) };
        assert_eq!(stages(&one), [20.0, 20.0, 20.0, 1.0]);
        assert_eq!(chunk_layers(&one, 7.0), 0.5);
    }
}
