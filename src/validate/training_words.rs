//! Words and numbers of a training row, however a source spells them, and what stands in for those it leaves out.

use super::table::Row;
use crate::engine::analytical::constants::Constants;
use crate::engine::analytical::memory;
use crate::engine::analytical::training::{Recompute, Sharding, TrainingInput};

/// A number that the notes state under a short name: "TP8", "EP=32", "VPP 6", "mbs 1".
pub(super) fn noted(notes: &str, name: &str) -> Option<f64> {
    let mut words = notes.split(|ch: char| !(ch.is_ascii_alphanumeric() || ch == '=')).peekable();
    while let Some(word) = words.next() {
        let Some(head) = word.get(..name.len()).filter(|head| head.eq_ignore_ascii_case(name)) else { continue };
        let rest = word.get(head.len()..).unwrap_or_default().trim_start_matches('=');
        let number = if rest.is_empty() { words.peek().copied().unwrap_or_default() } else { rest };
        if let Some(found) = number.parse::<f64>().ok().filter(|found| *found >= 1.0) {
            return Some(found);
        }
    }
    None
}

/// A column's number, or what the notes say of it.
pub(super) fn stated(row: &Row, column: &str, short: &str) -> Option<f64> {
    row.positive(column).or_else(|| noted(row.text("notes"), short))
}

/// A word in lower case without what separates its parts: "ZeRO-3", "zero_3" and "zero3" are one.
pub(super) fn plain(word: &str) -> String {
    word.chars().filter(char::is_ascii_alphanumeric).map(|ch| ch.to_ascii_lowercase()).collect()
}

/// How model states are sharded, where the row says so.
pub(super) fn sharding(row: &Row) -> Option<Sharding> {
    match plain(row.text("sharding")).as_str() {
        "zero1" | "distributedoptimizer" | "distopt" => Some(Sharding::Zero1),
        "zero2" | "shardgradop" => Some(Sharding::Zero2),
        "zero3" | "fsdp" | "fsdp1" | "fsdp2" | "fullshard" | "hybridshard" | "hsdp" => Some(Sharding::Zero3),
        "none" | "ddp" | "noshard" | "zero0" => Some(Sharding::None),
        _ => None,
    }
}

/// What is recomputed, where the row says so.
pub(super) fn recompute(row: &Row) -> Option<Recompute> {
    match plain(row.text("recompute")).as_str() {
        "full" | "true" | "yes" | "uniform" | "block" => Some(Recompute::Full),
        "selective" | "partial" | "selectiveop" | "attention" => Some(Recompute::Selective),
        "none" | "no" | "false" | "off" => Some(Recompute::None),
        _ => None,
    }
}

/// Tensor- and pipeline-parallel degrees that nobody stated: the least that let the run fit and leave every replica a
/// sequence ([`TrainingInput::global`]), tensor parallelism inside a
/// domain first, as Megatron-LM advises (arXiv 2104.04473, section 3.2, takeaway 1).
pub(super) fn least_layout(i: &TrainingInput) -> Option<(f64, f64)> {
    let c = Constants::default();
    let widest = i.domain.min(8.0).min(i.accelerators);
    let fits = |tp: f64, pp: f64| {
        let dp = i.accelerators / (tp * pp * i.cp);
        let tried =
            TrainingInput { tp, pp, dp, sharding: Sharding::Zero1, sequence_parallel: tp > 1.0, micro: 1.0, ..*i };
        dp >= 1.0
            && dp <= i.global
            && (dp - dp.round()).abs() < 1e-6
            && pp <= i.arch.layers
            && memory::training_memory(&tried, &c, Recompute::Full).total() <= i.accelerator.capacity()
    };
    let mut tp = 1.0;
    while tp <= widest {
        if fits(tp, 1.0) {
            return Some((tp, 1.0));
        }
        tp *= 2.0;
    }
    let mut pp = 2.0;
    while pp <= 64.0 {
        if fits(widest, pp) {
            return Some((widest, pp));
        }
        pp *= 2.0;
    }
    None
}

/// Sequences of a step that nobody stated: about four million tokens, as pre-training runs have them, in whole
/// micro-batches of every rank; one micro-batch where nothing is accumulated.
pub(super) fn usual_batch(ranks: f64, micro: f64, seq: f64, accumulates: bool) -> f64 {
    let one = ranks * micro;
    let times = (4.0 * 1024.0 * 1024.0 / (one * seq)).round().max(1.0);
    one * if accumulates { times } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_state_numbers_in_several_ways() {
        let notes = "conf 175b.yaml at that commit: TP8 PP16 VPP6 mbs 1 gbs 2048 SP; EP=32, attempt 3";
        assert_eq!(noted(notes, "tp"), Some(8.0));
        assert_eq!(noted(notes, "pp"), Some(16.0));
        assert_eq!(noted(notes, "vpp"), Some(6.0));
        assert_eq!(noted(notes, "mbs"), Some(1.0));
        assert_eq!(noted(notes, "gbs"), Some(2048.0));
        assert_eq!(noted(notes, "ep"), Some(32.0));
        assert_eq!(noted(notes, "cp"), None);
        assert_eq!(noted("EPYC, MPI, CPU 96", "cp"), None);
    }

    #[test]
    fn words_are_read_however_they_are_spelled() {
        let rows = super::super::table::read("sharding,recompute\nZeRO-3,Full\nSHARD_GRAD_OP,true\nddp,off\n?,?\n");
        let found: Vec<_> = rows.unwrap_or_default().iter().map(|row| (sharding(row), recompute(row))).collect();
        assert_eq!(
            found,
            [
                (Some(Sharding::Zero3), Some(Recompute::Full)),
                (Some(Sharding::Zero2), Some(Recompute::Full)),
                (Some(Sharding::None), Some(Recompute::None)),
                (None, None),
            ]
        );
    }

    #[test]
    fn a_large_model_is_given_the_least_layout_that_fits() {
        let small = TrainingInput { accelerators: 8.0, ..TrainingInput::default() };
        assert_eq!(least_layout(&small), Some((1.0, 1.0)));
        let arch = crate::engine::analytical::arch::Architecture {
            layers: 96.0,
            hidden: 12288.0,
            ffn: 49152.0,
            heads: 96.0,
            kv_heads: 96.0,
            ..small.arch
        };
        let large = TrainingInput { arch, accelerators: 128.0, ..small };
        let (tp, pp) = least_layout(&large).unwrap_or_default();
        assert!(tp == 8.0 && pp > 1.0, "{tp} {pp}");
        assert_eq!(least_layout(&TrainingInput { accelerators: 1.0, ..large }), None);
    }
}
