//! Prefill and decode pools, as notes spell them: `prefill 1 worker(s) TP4 EP4 DPA on 4 GPUs, decode 6 worker(s) TP8
//! EP8 on 48 GPUs`, `prefill on 4 GPUs (PP4) and decode on 4 GPUs (TP4)`, `1 prefill TP8 + 1 decode TP8 node`.

use super::super::record::Record;
use super::super::text::clause;

/// Workers of a pool, and the parallelism of each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct Pool {
    pub workers: f64,
    pub tp: f64,
    pub pp: f64,
    pub ep: f64,
    pub attention_dp: f64,
}

impl Pool {
    /// Returns the number of ranks of all workers.
    pub(in super::super) fn ranks(self) -> f64 {
        self.workers * self.tp * self.pp * self.attention_dp
    }
}

/// Fills the pool columns if the notes state both pools. Returns whether they do.
pub(super) fn fill(record: &mut Record, notes: &str) -> bool {
    let (Some(prefill), Some(decode)) = parse_pools(notes) else { return false };
    let why = format!("notes \"{}\"", clause(notes, "prefill"));
    put(record, prefill, decode, |record, column, value| record.convert(column, value, &why));
    true
}

/// Calls `cell` for each column of both pools, to set it.
pub(in super::super) fn put(
    record: &mut Record,
    prefill: Pool,
    decode: Pool,
    mut cell: impl FnMut(&mut Record, &'static str, f64),
) {
    for (column, value) in [
        ("prefill_workers", prefill.workers),
        ("prefill_tp", prefill.tp),
        ("prefill_pp", prefill.pp),
        ("prefill_ep", prefill.ep),
        ("prefill_attention_dp", prefill.attention_dp),
        ("decode_workers", decode.workers),
        ("decode_tp", decode.tp),
        ("decode_pp", decode.pp),
        ("decode_ep", decode.ep),
        ("decode_attention_dp", decode.attention_dp),
    ] {
        cell(record, column, value);
    }
}

/// Returns the prefill and decode pools in the notes.
fn parse_pools(notes: &str) -> (Option<Pool>, Option<Pool>) {
    let both = (pool(notes, "prefill "), pool(notes, "decode "));
    if both.0.is_some() && both.1.is_some() { both } else { parse_worker_counts(notes) }
}

/// Parses the forms `2 prefill + 1 decode workers, TP4 each` and `1 prefill TP8 + 1 decode TP8 node`.
fn parse_worker_counts(notes: &str) -> (Option<Pool>, Option<Pool>) {
    let Some(clause) = notes.split(';').find(|c| c.contains(" prefill") && c.contains(" decode")) else {
        return (None, None);
    };
    let one = |name: &str| {
        let at = clause.find(name)?;
        let workers: f64 = clause.get(..at)?.trim().rsplit([' ', '(']).next()?.parse().ok().filter(|n| *n >= 1.0)?;
        let after = clause.get(at + name.len()..)?.trim_start();
        let tp = |text: &str| text.strip_prefix("TP").and_then(parse_leading_number);
        let own = tp(after).or_else(|| clause.split("TP").nth(1).and_then(parse_leading_number))?;
        Some(Pool { workers, tp: own, pp: 1.0, ep: 1.0, attention_dp: 1.0 })
    };
    (one("prefill"), one("decode"))
}

fn parse_leading_number(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok().filter(|n: &f64| *n >= 1.0)
}

/// Finds the first occurrence of a pool's name that is followed by its parallelism.
fn pool(notes: &str, name: &str) -> Option<Pool> {
    notes.match_indices(name).find_map(|(at, _)| parse_parallelism(notes.get(at + name.len()..)?))
}

/// Parses the parallelism of a pool from the text after its name, up to the end of the clause with its number of GPUs.
fn parse_parallelism(text: &str) -> Option<Pool> {
    let gpus = text.find(" GPUs")?;
    let end = text.get(gpus..)?.find([',', ';', ')']).map_or(text.len(), |more| gpus + more);
    let words = || text.get(..end).unwrap_or("").split([' ', '(', ')']);
    let size = |key: &str| words().find_map(|word| word.strip_prefix(key)?.parse().ok()).filter(|n: &f64| *n >= 1.0);
    let devices: f64 = text.get(..gpus)?.rsplit(' ').next()?.parse().ok().filter(|n| *n >= 1.0)?;
    let (tp, pp) = (size("TP"), size("PP").unwrap_or(1.0));
    if tp.is_none() && pp <= 1.0 {
        return None;
    }
    let tp = tp.unwrap_or(1.0);
    // With data-parallel attention (DPA), TP is the number of attention groups, among which the sequences are split.
    let groups = if words().any(|word| word == "DPA") { tp } else { 1.0 };
    let workers = text.split(' ').next()?.parse().unwrap_or(devices / (tp * pp));
    let workers = f64::max(workers, 1.0).round();
    Some(Pool { workers, tp: tp / groups, pp, ep: size("EP").unwrap_or(1.0), attention_dp: groups })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_and_their_parallelism_are_read() {
        let notes =
            "listed; disaggregated: prefill 1 worker(s) TP4 EP4 DPA on 4 GPUs, decode 6 worker(s) TP8 EP8 on 48 GPUs";
        let (prefill, decode) = parse_pools(notes);
        assert_eq!(prefill, Some(Pool { workers: 1.0, tp: 1.0, pp: 1.0, ep: 4.0, attention_dp: 4.0 }));
        assert_eq!(decode, Some(Pool { workers: 6.0, tp: 8.0, pp: 1.0, ep: 8.0, attention_dp: 1.0 }));
        assert_eq!(decode.map(Pool::ranks), Some(48.0));
    }

    #[test]
    fn alternative_pool_phrasings_are_parsed() {
        let (prefill, decode) =
            parse_pools("single node, prefill on 4 GPUs (PP4) and decode on 4 GPUs (TP4), PD disaggregated");
        assert_eq!((prefill.map(|p| p.pp), decode.map(|p| p.tp)), (Some(4.0), Some(4.0)));
        let (prefill, decode) = parse_pools("1 prefill TP8 + 1 decode TP8 node over 8x RoCE; TTFT includes transfer");
        assert_eq!((prefill.map(|p| p.tp), decode.map(|p| p.workers)), (Some(8.0), Some(1.0)));
        let (prefill, decode) = parse_pools("3 prefill + 1 decode workers, TP2 each (8xH200 node)");
        assert_eq!((prefill.map(|p| p.workers), decode.map(|p| p.tp)), (Some(3.0), Some(2.0)));
    }

    #[test]
    fn rows_without_pools_have_none() {
        for text in ["", "prefill ", "decode only", "prefill 3 worker(s), decode 2", "prefill  GPUs, decode x GPUs"] {
            assert_eq!(parse_pools(text), (None, None), "{text}");
        }
    }
}
