//! The KV cache: separate prefill pools, conversations that reuse it, and storage tiers.

use super::serving::serving_field;
use super::slot::{count, nonzero, number, word};
use super::{Field, Group, Knob, Step, ValueType, entry, ranks, real, whole};
use crate::plan::{KvTransfer, Routing};

pub(super) const CACHE: &[Field] = &[
    entry(
        Knob::PrefillAccelerators,
        "prefill_accelerators",
        &["prefill_pool"],
        Group::Serving,
        whole(0.0, 1_048_576.0, Step::Double),
        &["serving", "prefill_accelerators"],
        "accelerators dedicated to prefill (disaggregated serving); 0: prefill and decode share all accelerators",
    )
    .slot(nonzero!(serving.prefill_accelerators))
    .zero_is_unset()
    .with_default(0.0)
    .with_file_bounds(0.0, 1e9)
    .inference()
    .hardware_modeling(),
    serving_field(
        Knob::Conversations,
        "conversations",
        whole(0.0, 1e9, Step::Double),
        &["serving", "conversations", "count"],
        "concurrent conversations over all replicas, which determine the cache hit rate; 0: use prefix_hit",
    )
    .slot(nonzero!(serving.conversations))
    .zero_is_unset()
    .with_default(0.0)
    .with_file_bounds(0.0, 1e9),
    serving_field(
        Knob::Turns,
        "turns",
        real(1.0, 1e4, 1.0),
        &["serving", "conversations", "turns"],
        "turns per conversation: each prompt repeats the previous turns; prompt is the mean length",
    )
    .slot(number!(serving.turns))
    .with_default(1.0),
    serving_field(
        Knob::SharedPrefix,
        "shared_prefix",
        whole(0.0, 16_777_216.0, Step::Double),
        &["serving", "conversations", "shared_prefix"],
        "tokens at the start of every prompt (system prompt) shared by all conversations",
    )
    .slot(count!(serving.shared_prefix))
    .with_default(0.0),
    serving_field(
        Knob::Routing,
        "routing",
        ValueType::Choice(Routing::NAMES),
        &["serving", "routing"],
        "request routing between replicas; prefix: to the replica that has cached the start of the prompt",
    )
    .slot(word!(Routing, serving.routing))
    .with_default_word(Routing::Least.name()),
    serving_field(
        Knob::KvHostGb,
        "kv_host_gb",
        real(0.0, 1e9, 100.0),
        &["serving", "kv_tiers", "host_gb"],
        "host memory for offloaded KV cache, GB per accelerator",
    )
    .slot(number!(serving.kv_tiers[0].0)),
    serving_field(
        Knob::KvHostGbps,
        "kv_host_gbps",
        real(0.001, 1e6, 5.0),
        &["serving", "kv_tiers", "host_gbps"],
        "bandwidth from host memory, GB/s per accelerator",
    )
    .slot(number!(serving.kv_tiers[0].1))
    .with_file_bounds(0.0, 1e30),
    serving_field(
        Knob::KvSsdGb,
        "kv_ssd_gb",
        real(0.0, 1e9, 100.0),
        &["serving", "kv_tiers", "ssd_gb"],
        "local SSD capacity for offloaded KV cache, GB per accelerator",
    )
    .slot(number!(serving.kv_tiers[1].0)),
    serving_field(
        Knob::KvSsdGbps,
        "kv_ssd_gbps",
        real(0.001, 1e6, 5.0),
        &["serving", "kv_tiers", "ssd_gbps"],
        "bandwidth from local SSDs, GB/s per accelerator",
    )
    .slot(number!(serving.kv_tiers[1].1))
    .with_file_bounds(0.0, 1e30),
    serving_field(
        Knob::KvRemoteGb,
        "kv_remote_gb",
        real(0.0, 1e9, 100.0),
        &["serving", "kv_tiers", "remote_gb"],
        "remote storage for offloaded KV cache, GB per accelerator",
    )
    .slot(number!(serving.kv_tiers[2].0)),
    serving_field(
        Knob::KvRemoteGbps,
        "kv_remote_gbps",
        real(0.001, 1e6, 5.0),
        &["serving", "kv_tiers", "remote_gbps"],
        "bandwidth from remote storage, GB/s per accelerator",
    )
    .slot(number!(serving.kv_tiers[2].1))
    .with_file_bounds(0.0, 1e30),
    serving_field(
        Knob::PrefillWorkers,
        "prefill_workers",
        whole(0.0, 1_048_576.0, Step::Add(1.0)),
        &["serving", "pools", "prefill", "workers"],
        "prefill replicas (x of xPyD); tp, pp, ep, attention_dp and dp then describe the decode replicas; 0: use prefill_accelerators",
    )
    .slot(count!(serving.pools.prefill.workers))
    .zero_is_unset()
    .with_default(0.0)
    .with_file_bounds(1.0, 1e6),
    serving_field(
        Knob::PrefillTp,
        "prefill_tp",
        ranks(4096.0),
        &["serving", "pools", "prefill", "tp"],
        "tensor-parallel ranks of a prefill replica; default: tp",
    )
    .slot(count!(serving.pools.prefill.tp))
    .with_file_bounds(1.0, 1e6),
    serving_field(
        Knob::PrefillPp,
        "prefill_pp",
        ranks(4096.0),
        &["serving", "pools", "prefill", "pp"],
        "pipeline stages of a prefill replica; default: pp",
    )
    .slot(count!(serving.pools.prefill.pp))
    .with_file_bounds(1.0, 1e6),
    serving_field(
        Knob::PrefillEp,
        "prefill_ep",
        ranks(4096.0),
        &["serving", "pools", "prefill", "ep"],
        "expert-parallel ranks of a prefill replica; default: ep",
    )
    .slot(count!(serving.pools.prefill.ep))
    .with_file_bounds(1.0, 1e6),
    serving_field(
        Knob::PrefillAttentionDp,
        "prefill_attention_dp",
        ranks(4096.0),
        &["serving", "pools", "prefill", "attention_dp"],
        "data-parallel attention groups of a prefill replica; default: attention_dp",
    )
    .slot(count!(serving.pools.prefill.attention_dp))
    .with_file_bounds(1.0, 1e6),
    serving_field(
        Knob::KvTransfer,
        "kv_transfer",
        ValueType::Choice(KvTransfer::NAMES),
        &["serving", "kv_transfer"],
        "link for KV cache transfers from prefill to decode; scale-up requires both pools in one domain",
    )
    .slot(word!(KvTransfer, serving.kv_transfer))
    .with_default_word(KvTransfer::Network.name()),
];
