//! Rules on batching, chunking and placement of requests.

use super::super::case::{floor_power, number, toggle};
use super::super::{Case, Rule};
use super::{min_concurrency_gain, serving};
use crate::estimate::FirstTokenPart;
use crate::knob::{Knob, Setting};

pub(super) static RULES: &[Rule] = &[
    Rule {
        worth: min_concurrency_gain,
        ..serving(
            "increase concurrency up to the knee",
            "a step reads the weights once for all sequences, so more sequences are nearly free until compute or KV \
             cache reads dominate",
            "Pope et al., Efficiently Scaling Transformer Inference, arXiv 2211.05102, section 2",
            |case, out| {
                let serving = case.detail().and_then(|detail| detail.serving);
                let room = serving.map_or(0.0, |serving| serving.max_concurrency * case.dp);
                if !case.open_load() {
                    let more = [2.0, 4.0, 8.0].map(|times| times * case.concurrency());
                    out.extend(more.into_iter().filter(|c| *c <= room).map(|c| vec![number(Knob::Concurrency, c)]));
                }
            },
        )
    },
    serving(
        "reduce concurrency",
        "beyond the knee, more requests increase latency but not throughput",
        "Zhong et al., DistServe, arXiv 2401.09670, section 2 (goodput under latency objectives)",
        |case, out| {
            if !case.open_load() && case.concurrency() >= 2.0 {
                out.push(vec![number(Knob::Concurrency, (case.concurrency() / 2.0).floor())]);
            }
        },
    ),
    serving(
        "allow more sequences per step",
        "sequences beyond max_num_seqs are queued although they would fit in memory",
        "vLLM documentation, Optimization and Tuning",
        |case, out| {
            let seqs = case.number(Knob::MaxNumSeqs);
            if seqs < case.concurrency() / case.dp || case.open_load() {
                out.push(vec![number(Knob::MaxNumSeqs, 2.0 * seqs)]);
                let all = 2.0 * floor_power(case.concurrency() / case.dp);
                if all > 2.0 * seqs {
                    out.push(vec![number(Knob::MaxNumSeqs, all)]);
                }
            }
        },
    ),
    serving(
        "use larger prefill chunks",
        "more tokens per step make matrix multiplications more efficient, and prompts take fewer steps",
        "vLLM documentation, Optimization and Tuning (max_num_batched_tokens)",
        |case, out| {
            let tokens = case.number(Knob::MaxNumBatchedTokens);
            if tokens < 32_768.0 {
                out.push(vec![number(Knob::MaxNumBatchedTokens, 2.0 * tokens)]);
                out.push(vec![number(Knob::MaxNumBatchedTokens, 4.0 * tokens)]);
            }
        },
    ),
    serving(
        "use smaller prefill chunks",
        "decode waits for the prefill chunk in the same step, so smaller chunks reduce inter-token latency",
        "Agrawal et al., Sarathi-Serve, arXiv 2403.02310, section 4",
        |case, out| {
            let tokens = case.number(Knob::MaxNumBatchedTokens);
            if tokens >= 1024.0 {
                out.push(vec![number(Knob::MaxNumBatchedTokens, (tokens / 2.0).floor())]);
                out.push(vec![number(Knob::MaxNumBatchedTokens, (tokens / 4.0).floor())]);
            }
        },
    ),
    serving(
        "give the KV cache more memory",
        "memory that the engine may not use holds no sequences; only other processes need free memory",
        "vLLM documentation, Optimization and Tuning (gpu_memory_utilization)",
        |case, out| {
            let share = case.number(Knob::GpuMemoryUtilization);
            let capped = case.detail().is_some_and(|detail| detail.limits.memory_capacity || !detail.verdict.fits());
            if share < 0.95 && capped {
                out.push(vec![number(Knob::GpuMemoryUtilization, 0.95)]);
            }
        },
    ),
    serving(
        "chunked prefill",
        "prefill chunks that share steps with decode use its idle compute and do not stall it",
        "Agrawal et al., Sarathi-Serve, arXiv 2403.02310, section 4",
        |case, out| {
            let on = case.scenario.get(Knob::ChunkedPrefill) == Setting::Toggle(true);
            if case.scenario.base.shape.prompt > 0.0 {
                out.push(vec![toggle(Knob::ChunkedPrefill, !on)]);
            }
        },
    ),
    serving(
        "disaggregate prefill and decode",
        "prefill and decode then do not delay each other",
        "Zhong et al., DistServe, arXiv 2401.09670; Patel et al., Splitwise, arXiv 2311.18677",
        |case, out| {
            if case.dp >= 2.0 && case.scenario.base.pools().is_none() && prefill_delays_decode(case) {
                for share in [0.25, 0.5, 0.75] {
                    let replicas = (share * case.dp).floor().clamp(1.0, case.dp - 1.0);
                    out.push(vec![number(Knob::PrefillAccelerators, replicas * case.replica())]);
                }
            }
        },
    ),
    serving(
        "serve prefill and decode from one pool",
        "pools of the wrong proportion leave accelerators idle; a single pool balances itself",
        "Zhong et al., DistServe, arXiv 2401.09670, section 4 (placement must match the workload)",
        |case, out| {
            if case.number(Knob::PrefillAccelerators) > 0.0 {
                out.push(vec![number(Knob::PrefillAccelerators, 0.0)]);
            }
        },
    ),
    serving(
        "use CUDA graphs for decode",
        "a decode step has hundreds of short kernels, which a captured graph launches at once",
        "vLLM documentation, Optimization and Tuning (enforce_eager)",
        |case, out| {
            if !case.scenario.graphs(&case.scenario.base) {
                out.push(vec![toggle(Knob::CudaGraphs, true)]);
            }
        },
    ),
];

/// Ratio of p99 to median inter-token latency above which prompts noticeably delay decoding; jitter alone causes less.
const INTERFERENCE_RATIO: f64 = 1.1;

/// Whether tokens wait for prompts of other requests, or prompts wait in a queue, which separate pools avoid.
fn prefill_delays_decode(case: &Case<'_>) -> bool {
    let Some(serving) = case.detail().and_then(|detail| detail.serving) else { return false };
    let waited: f64 = [FirstTokenPart::Slot, FirstTokenPart::Queue, FirstTokenPart::Burst]
        .map(|part| serving.first_token.part(part))
        .iter()
        .sum();
    serving.itl_ms.p99 > INTERFERENCE_RATIO * serving.itl_ms.p50
        || waited > serving.first_token.part(FirstTokenPart::Prefill)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::advice::{Advice, Objective, advise};
    use crate::engine::estimate;
    use crate::estimate::Estimate;

    use crate::testing;

    fn tokens_and_firsts(estimate: &Estimate) -> (f64, f64) {
        let serving = estimate.detail.unwrap().serving.unwrap();
        (serving.tpot_ms.mean, serving.ttft_ms.mean)
    }

    /// TPOT and TTFT before and after separating the pools, if that is advised.
    fn apart(workload: &str, set: &[&str]) -> Option<((f64, f64), (f64, f64))> {
        let (parts, mut scenario) = testing::scenario("h100-sxm-64", workload, set);
        let before = estimate(&scenario);
        let all = advise(&scenario, &parts, &before, Objective::Latency);
        let of_pools = |advice: &&Advice| advice.rule.name == "disaggregate prefill and decode";
        let advice = all.iter().find(of_pools)?.clone();
        for (knob, setting) in &advice.changes {
            scenario.set(*knob, setting, &parts).unwrap();
        }
        assert!(advice.gain > 0.0);
        Some((tokens_and_firsts(&before), tokens_and_firsts(&estimate(&scenario))))
    }

    const LONG: [&str; 2] = ["prompt=8192", "generate=256"];

    fn long(more: &[&str]) -> Option<((f64, f64), (f64, f64))> {
        apart("llama3.1-70b-serve", &[&LONG[..], more].concat())
    }

    #[test]
    fn disaggregation_is_advised_if_prefill_delays_decode_and_is_supported() {
        let (before, after) = long(&["concurrency=128"]).unwrap();
        assert!(
            after.0 < 0.85 * before.0 && after.1 < 1.05 * before.1,
            "time per token and first token {before:?} → {after:?}"
        );
        // A single request does not wait for other prompts.
        assert_eq!(long(&["concurrency=1"]), None);
        // Software without pools, and a single replica.
        assert_eq!(long(&["concurrency=128", "software=tgi"]), None);
        assert_eq!(long(&["concurrency=128", "tp=8", "dp=1"]), None);
    }

    #[test]
    fn pools_that_break_a_bound_are_not_advised() {
        // With twice the requests, requests wait 5 s for the prefill pool, longer than the 2 s that searches allow by
        // default.
        assert_eq!(long(&["concurrency=256"]), None);
        let (before, after) = long(&["concurrency=256", "slo_ttft_ms=10000"]).unwrap();
        assert!(before.1 < 2000.0 && after.1 > 3000.0, "{before:?} → {after:?}");
        assert_eq!(long(&["concurrency=256", "slo_ttft_ms=3000"]), None);
        // A bound that is met only with separate pools.
        let (before, after) = long(&["concurrency=128", "slo_tpot_ms=22"]).unwrap();
        assert!(before.0 > 22.0 && after.0 < 22.0, "{before:?} → {after:?}");
    }
}
