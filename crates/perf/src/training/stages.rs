//! Number of layers of each pipeline stage and chunk.

use super::TrainingInput;
use atlas_core::count::Count;

/// Number of layers of chunk `k`. Chunks are numbered in the order in which a micro-batch passes them: chunk `c` of
/// stage `s` has number `c * pp + s`.
///
/// Layers are distributed evenly if they are divisible by the number of chunks. Otherwise, the embedding and the output
/// layer count as one layer each: the first and the last chunk have one layer less (none, if chunks have one layer),
/// and longer chunks come last. [`TrainingInput::first_layers`] and [`TrainingInput::last_layers`] take precedence.
#[must_use]
pub fn chunk_layers(i: &TrainingInput, k: f64) -> f64 {
    let (depth, n) = (i.arch.depth(), chunks(i));
    if i.pp > 1.0 && (i.first_layers.is_some() || i.last_layers.is_some()) {
        return stage_layers(i, k % i.pp) / i.vpp.max(Count::ONE);
    }
    if !distributes_remainder(depth, n) {
        return depth / n;
    }
    let all = depth.round() + 2.0;
    let longer = indicator(k >= n - all % n);
    let end = indicator(k < 0.5 || k > n - 1.5);
    (all / n).floor() + longer - end
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
    let n = p * v;
    if !distributes_remainder(depth, n) {
        return depth / p;
    }
    let all = depth.round() + 2.0;
    let longer = all % n;
    v * (all / n).floor() + (longer / p).floor() + indicator(stage >= p - longer % p)
        - indicator(first)
        - indicator(last)
}

/// The first of the longest stages between the first and the last; `None` without such stages.
pub(crate) fn longest_middle_stage(i: &TrainingInput) -> Option<f64> {
    let (p, n) = (i.pp, chunks(i));
    if p <= 2.0 {
        return None;
    }
    let stated = i.first_layers.is_some() || i.last_layers.is_some();
    if stated || !distributes_remainder(i.arch.depth(), n) {
        return Some(1.0);
    }
    let longer = (i.arch.depth().round() + 2.0) % n % p;
    Some(if longer >= 2.0 { p - longer } else { 1.0 })
}

/// Number of chunks over all stages.
fn chunks(i: &TrainingInput) -> f64 {
    (i.pp * i.vpp).max(1.0)
}

/// Whether the number of layers is not divisible by `n`, and the embedding and output layer count as layers. With more
/// chunks than layers including those two, there is no distribution, and the mean is used.
fn distributes_remainder(depth: f64, n: f64) -> bool {
    let even = depth / n;
    n >= 2.0 && (even - even.round()).abs() >= 1e-9 && depth.round() + 2.0 >= n
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
    fn chunks_sum_to_their_stage_and_stages_to_the_model() {
        for layers in [12, 30, 61, 62, 94, 126] {
            for (pp, vpp) in [(2, 1), (3, 2), (4, 3), (7, 1), (8, 4), (16, 8), (64, 1)] {
                let i = job(layers, pp, vpp);
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
