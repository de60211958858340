//! Share of a prompt that is found in a KV cache in multi-turn conversations, and the tier where it is found.
//!
//! A prompt consists of a prefix shared by all prompts, the earlier turns of its conversation, and new tokens. Device
//! memory that is not used by running sequences holds the most recent conversations; slower tiers hold those that do
//! not fit. Turns of all conversations arrive in random order, so the hit rate equals the share of conversations that
//! fits (the independent reference model; Che, Tung, Wang, IEEE JSAC 20 (2002)).

use super::input::{Conversations, Layout, ServingInput};
use super::shape::Shape;
use super::{ServingEstimate, kv};
use crate::constants::Constants;
use atlas_core::count::Count;
use atlas_core::math;

/// Parts of the mean prompt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prompt {
    /// Prefix shared by all prompts, tokens.
    pub shared: f64,
    /// Tokens of earlier turns.
    pub history: f64,
    /// New tokens per turn.
    pub new: f64,
}

impl Prompt {
    /// Splits a mean prompt of `isl` tokens, if every turn adds the same number of new tokens and a response of `osl`
    /// tokens.
    #[must_use]
    pub fn of(conversations: &Conversations, isl: f64, osl: f64) -> Prompt {
        let shared = f64::from(conversations.shared).min(isl.max(1.0) - 1.0);
        // Number of turns before the mean one.
        let before = 0.5 * (conversations.turns.max(1.0) - 1.0);
        let new = ((isl - shared - before * osl) / (1.0 + before)).max(1.0).min(isl - shared);
        Prompt { shared, history: (isl - shared - new).max(0.0), new }
    }
}

/// Cached part of a mean prompt.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PrefixCacheHits {
    /// Share of prompt tokens found in any tier.
    pub share: f64,
    /// Time to load the part in slower tiers, s.
    pub loading: f64,
}

/// Computes the cached part if `running` sequences of a replica occupy memory.
#[must_use]
pub fn prefix_cache_hits(
    input: &ServingInput,
    conversations: &Conversations,
    layout: &Layout,
    running: f64,
    c: &Constants,
) -> PrefixCacheHits {
    let shape = Shape::of(input, layout);
    let room = kv::capacity(input, layout, &shape, c);
    let prompt = Prompt::of(conversations, input.isl, input.osl);
    let replicas = layout.dp.max(Count::ONE);
    let groups = layout.attention_dp.max(Count::ONE);
    // Bytes on a rank of a conversation without the shared prefix.
    let kept = |tokens: f64| shape.sequence_bytes(tokens.max(1.0), input.full_window_cache);
    let own = kept(input.isl - prompt.shared + 0.5 * input.osl);
    let free = ((room.free_bytes - room.shared_bytes) * groups - running * own).max(0.0);
    let slower = input.kv_tiers.map(|tier| tier.bytes.max(0.0) * groups);
    // Without routing by prefix, every replica sees all conversations, and holds the last of their turns that it served.
    let (seen, here) = match input.prefix_aware_routing {
        true => (conversations.count / replicas, 1.0),
        false => (f64::from(conversations.count), history_share(conversations.turns, 1.0 / replicas)),
    };
    let wanted = (seen * kept(prompt.history + prompt.new + input.osl)).max(1e-9);
    let mut tier_shares = [0.0; 4];
    let mut left = 1.0_f64;
    for (place, room) in tier_shares.iter_mut().zip([free, slower[0], slower[1], slower[2]]) {
        *place = (room / wanted).min(left);
        left -= *place;
    }
    let tier_shares = tier_shares.map(|share| share * here);
    // The shared prefix is used constantly, so it stays in device memory if it fits.
    let common = if room.free_bytes > room.shared_bytes { prompt.shared } else { 0.0 };
    let earlier: f64 = tier_shares.iter().sum();
    let loading = tier_shares
        .iter()
        .skip(1)
        .zip(&input.kv_tiers)
        .filter(|(share, _)| **share > 0.0)
        .map(|(share, tier)| share * kept(prompt.history) / tier.bandwidth.max(1e6))
        .sum();
    PrefixCacheHits { share: (common + earlier * prompt.history) / input.isl.max(1.0), loading }
}

/// Share of the earlier turns that a replica holds, if it serves every turn with probability `served`.
///
/// The last turn that it served is k turns back with probability p (1 - p)^(k - 1). After n turns, it holds
/// n - (q / p) (1 - q^n) of them on average (q = 1 - p). The mean over the turns of a conversation weights each with the
/// length of its history.
fn history_share(turns: f64, served: f64) -> f64 {
    let before = (turns - 1.0).max(1.0);
    let odds = (1.0 - served) / served;
    let held = |n: f64| 1.0 - math::powf(1.0 - served, n);
    let total = 0.5 * before * (before + 1.0);
    1.0 - odds * (before - odds * held(before)) / total
}

/// Estimates with cached prompts. Two iterations, since the running sequences determine the memory left for the cache.
pub fn estimate_with_prefix_cache(
    input: &ServingInput,
    c: &Constants,
    estimate: fn(&ServingInput, &Constants) -> ServingEstimate,
) -> ServingEstimate {
    let Some(conversations) = input.conversations else { return estimate(input, c) };
    let layout = input.pools.map_or(input.layout, |pools| pools.prefill);
    let mut running = 0.0;
    let mut out = ServingEstimate::default();
    for _ in 0..2 {
        let PrefixCacheHits { share, loading, .. } = prefix_cache_hits(input, &conversations, &layout, running, c);
        out = estimate(&ServingInput { prefix_hit: share, loading, ..*input }, c);
        running = if input.pools.is_some() { 0.0 } else { out.batch };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::estimate;
    use super::*;
    use crate::serving::{KvTier, Load};

    fn conversations(count: u32) -> Conversations {
        Conversations { count: Count::new(count), turns: 5.0, shared: Count::new(500) }
    }

    #[test]
    fn prompt_is_split_into_shared_history_and_new_tokens() {
        let prompt = Prompt::of(&conversations(1), 4000.0, 300.0);
        assert!((prompt.shared + prompt.history + prompt.new - 4000.0).abs() < 1e-9);
        // Two turns before the mean one, each with a response.
        assert!((prompt.history - 2.0 * (prompt.new + 300.0)).abs() < 1e-9);
        let single = Prompt::of(&Conversations { turns: 1.0, ..conversations(1) }, 4000.0, 300.0);
        assert_eq!((single.history, single.new), (0.0, 3500.0));
    }

    #[test]
    fn shared_prefix_is_stored_once() {
        let load = Load::Closed { concurrency: 200.0, requests: f64::INFINITY };
        let base = ServingInput { isl: 8000.0, osl: 200.0, load, ..ServingInput::default() };
        let sequences = |shared: u32| {
            let conversations = Some(Conversations { count: Count::new(8), turns: 1.0, shared: Count::new(shared) });
            estimate(&ServingInput { conversations, ..base }, &Constants::default()).max_concurrency
        };
        // A sequence of mean length has 8,100 tokens, of which 7,000 are shared.
        let expected = (sequences(0) * 8100.0 - 7000.0) / 1100.0;
        assert!((sequences(7000) / expected - 1.0).abs() < 1e-9, "{} {expected}", sequences(7000));
    }

    #[test]
    fn conversations_take_the_memory_of_the_keys_that_layers_keep() {
        use crate::arch::{Architecture, Linear, Window};
        let c = Constants::default();
        let many = Conversations { count: Count::new(100_000), turns: 5.0, shared: Count::ZERO };
        let hits = |arch: Architecture, context_ranks: u32| {
            let layout = Layout { tp: Count::new(2), ..Layout::default() };
            let tier = KvTier { bytes: 1e12, bandwidth: 20e9 };
            let input = ServingInput {
                arch,
                isl: 8000.0,
                osl: 300.0,
                layout,
                context_ranks: Count::new(context_ranks),
                prefix_aware_routing: true,
                kv_tiers: [tier, KvTier::default(), KvTier::default()],
                ..ServingInput::default()
            };
            let found = prefix_cache_hits(&input, &many, &layout, 0.0, &c);
            (found.share, found.loading / found.share)
        };
        let plain = Architecture { kv_heads: Count::ONE, ..Architecture::default() };
        let (share, loading) = hits(plain, 1);
        // Half of the layers keep 1,024 of 8,300 tokens, on average of memory and tier.
        let window = Some(Window { size: Count::new(1024), share: 0.5, chunked: false });
        let windowed = hits(Architecture { window, ..plain }, 1);
        assert!(
            (windowed.0 / share / (8300.0 / (0.5 * 1024.0 + 0.5 * 8300.0)) - 1.0).abs() < 0.01,
            "{}",
            windowed.0 / share
        );
        assert!(windowed.1 < 0.6 * loading);
        // A quarter of the layers has attention, and the others keep one state per conversation.
        let linear = Some(Linear {
            kind: crate::arch::LinearKind::GatedDelta,
            share: 0.75,
            heads: Count::new(16),
            head_dim: Count::new(128),
            state: Count::new(128),
            groups: Count::new(16),
            taps: Count::new(4),
        });
        let hybrid = hits(Architecture { attention_share: 0.25, linear, ..plain }, 1);
        assert!(hybrid.0 > 2.0 * share && hybrid.0 < 4.5 * share, "{} {share}", hybrid.0);
        // Two ranks that share a KV head each keep half of it.
        assert!((hits(plain, 2).0 / share - 2.0).abs() < 1e-6, "{} {share}", hits(plain, 2).0);
    }

    #[test]
    fn random_routing_finds_the_turns_that_the_replica_served() {
        for (turns, replicas) in [(2_u32, 2_u32), (10, 2), (10, 8), (5, 1)] {
            let p = 1.0 / f64::from(replicas);
            let (mut found, mut all) = (0.0, 0.0);
            for turn in 2..=turns {
                for back in 1..turn {
                    found += p * (1.0 - p).powi(back as i32 - 1) * f64::from(turn - back);
                }
                all += f64::from(turn - 1);
            }
            let share = history_share(f64::from(turns), p);
            assert!((share - found / all).abs() < 1e-9, "{turns} {replicas}: {share} {}", found / all);
        }
    }

    #[test]
    fn prefix_hit_share_depends_on_cache_size_and_routing() {
        let c = Constants::default();
        let layout = Layout { dp: Count::new(4), ..Layout::default() };
        let mut input =
            ServingInput { isl: 4000.0, osl: 300.0, layout, prefix_aware_routing: true, ..ServingInput::default() };
        let share =
            |input: &ServingInput, count: u32| prefix_cache_hits(input, &conversations(count), &layout, 0.0, &c).share;
        let (few, many) = (share(&input, 10), share(&input, 100000));
        assert!(few > 0.6 && many < 0.3, "{few} {many}");
        let host = KvTier { bytes: 2e12, bandwidth: 20e9 };
        let with_host = ServingInput { kv_tiers: [host, KvTier::default(), KvTier::default()], ..input };
        assert!(share(&with_host, 10000) > share(&input, 10000));
        assert!(prefix_cache_hits(&with_host, &conversations(10000), &layout, 0.0, &c).loading > 0.0);
        input.prefix_aware_routing = false;
        assert!(share(&input, 10) < few);
    }

    #[test]
    fn prefix_hits_lower_ttft_more_from_faster_kv_tiers() {
        let c = Constants::default();
        let load = Load::Closed { concurrency: 8.0, requests: f64::INFINITY };
        let none = ServingInput { isl: 8000.0, osl: 200.0, load, ..ServingInput::default() };
        let all = ServingInput { conversations: Some(conversations(8)), ..none };
        assert!(estimate(&all, &c).ttft.mean < 0.7 * estimate(&none, &c).ttft.mean);
        let kept = |bandwidth| {
            let tier = KvTier { bytes: 1e13, bandwidth };
            let kv_tiers = [tier, KvTier::default(), KvTier::default()];
            estimate(&ServingInput { conversations: Some(conversations(10000)), kv_tiers, ..none }, &c).ttft.mean
        };
        assert!(kept(50e9) < kept(0.5e9));
    }
}
