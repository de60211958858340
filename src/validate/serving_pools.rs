//! Pools of a deployment with prefill and decode apart, as notes spell them: "prefill 1 worker(s) TP4 EP4 DPA on 4 GPUs,
//! decode 6 worker(s) TP8 EP8 on 48 GPUs", or "prefill on 4 GPUs (PP4) and decode on 4 GPUs (TP4)".

use crate::engine::analytical::serving::{Layout, Pools};

/// The pools that a row's notes state.
#[must_use]
pub fn stated(notes: &str) -> Option<Pools> {
    Some(Pools { prefill: pool(notes, "prefill ")?, decode: pool(notes, "decode ")? })
}

/// The first clause that begins with a pool's name and says how it is cut.
fn pool(notes: &str, name: &str) -> Option<Layout> {
    notes.match_indices(name).find_map(|(at, _)| layout(notes.get(at + name.len()..)?))
}

/// How a pool is cut, from what follows its name: up to the end of the clause, which names its GPUs.
fn layout(text: &str) -> Option<Layout> {
    let gpus = text.find(" GPUs")?;
    let end = text.get(gpus..)?.find([',', ';', ')']).map_or(text.len(), |more| gpus + more);
    let words = || text.get(..end).unwrap_or("").split([' ', '(', ')']);
    let size = |key: &str| words().find_map(|word| word.strip_prefix(key)?.parse().ok()).filter(|n| *n >= 1.0);
    let devices: f64 = text.get(..gpus)?.rsplit(' ').next()?.parse().ok().filter(|n| *n >= 1.0)?;
    let (tp, pp) = (size("TP"), size("PP").unwrap_or(1.0));
    if tp.is_none() && pp <= 1.0 {
        return None;
    }
    let tp = tp.unwrap_or(1.0);
    // Data-parallel attention spreads sequences over the ranks that share the experts.
    let groups = if words().any(|word| word == "DPA") { tp } else { 1.0 };
    let workers = text.split(' ').next()?.parse().unwrap_or(devices / (tp * pp));
    Some(Layout {
        tp: tp / groups,
        pp,
        ep: size("EP").unwrap_or(1.0),
        attention_dp: groups,
        dp: f64::max(workers, 1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_and_their_cut_are_read() {
        let notes = "listed; disaggregated: prefill 1 worker(s) TP4 EP4 DPA on 4 GPUs, decode 6 worker(s) TP8 EP8 on 48 GPUs; \
                     InferenceMAX client";
        let pools = stated(notes).unwrap_or(Pools { prefill: Layout::default(), decode: Layout::default() });
        assert_eq!(pools.prefill, Layout { tp: 1.0, pp: 1.0, ep: 4.0, attention_dp: 4.0, dp: 1.0 });
        assert_eq!(pools.decode, Layout { tp: 8.0, pp: 1.0, ep: 8.0, attention_dp: 1.0, dp: 6.0 });
    }

    #[test]
    fn stages_of_a_pool_are_read() {
        let pools = stated("single node, prefill on 4 GPUs (PP4) and decode on 4 GPUs (TP4), PD disaggregated");
        assert_eq!(pools.map(|p| (p.prefill.pp, p.prefill.tp, p.decode.tp)), Some((4.0, 1.0, 4.0)));
    }

    #[test]
    fn what_states_no_pools_has_none() {
        for text in ["", "prefill ", "decode only", "prefill 3 worker(s), decode 2", "prefill  GPUs, decode x GPUs"] {
            assert_eq!(stated(text), None, "{text}");
        }
    }
}
