//! SGLang.

use atlas_core::plan::{Routing, cache_format_name};
use atlas_plan::knob::Knob;

use super::serving::{paged, servers, set_servers};
use super::{Draft, MultiNode, features, other_mode, serving};
use crate::launch::Unsupported;
use crate::launch::job::{Job, Serving};
use crate::launch::words::Arguments;

/// Knobs that SGLang can express.
pub(super) fn expressed() -> Vec<Knob> {
    paged().chain([Knob::RecvInterval]).collect()
}

pub(super) fn draft(job: &Job<'_>) -> Result<Draft, Unsupported> {
    let s = job.serving().ok_or_else(other_mode)?;
    let image = match (job.vendor.as_str(), job.release.as_deref()) {
        ("AMD", _) => "lmsysorg/sglang:latest-rocm".to_owned(),
        (_, Some(release)) => format!("lmsysorg/sglang:v{release}"),
        _ => "lmsysorg/sglang:latest".to_owned(),
    };
    let mut draft = Draft::new("sglang", job, image);
    draft.expressed = expressed();
    serving::add_stored(job, s, &mut draft);
    draft.program = ["python3", "-m", "sglang.launch_server"].map(Into::into).to_vec();
    serving::check_model(job, "SGLang", false, &mut draft);
    let servers = servers(job, s, s.attention_dp == 1);
    let mut a = Arguments::default();
    a.comment(&format!("model: {}", job.model.id)).put("--model-path", job.repository()?);
    engine(job, s, &mut a, &mut draft);
    if s.attention_dp == 1 && servers.replicas > 1 {
        a.put("--dp-size", servers.replicas);
        if servers.count == 1 && job.scenario.base.plan.serving.routing == Some(Routing::RoundRobin) {
            draft.expressed.push(Knob::Routing);
            a.put("--load-balance-method", "round_robin");
        }
    }
    a.comment("address").push_unchecked(["--host".into(), "0.0.0.0".into()]);
    draft.arguments = a;
    set_servers(job, s, servers, &mut draft);
    if servers.nodes > 1 {
        draft.spread = Some(MultiNode {
            nodes: servers.nodes,
            flags: "--nnodes \"$NODES\" --node-rank \"$NODE_RANK\" --dist-init-addr \"$HEAD_NODE:5000\"".to_owned(),
        });
    }
    Ok(draft)
}

/// Adds the flags that a server and a Dynamo worker have in common.
pub(super) fn engine(job: &Job<'_>, s: &Serving, a: &mut Arguments, draft: &mut Draft) {
    let plan = &job.scenario.base.plan.serving;
    // In SGLang, attention groups are subsets of the tensor ranks.
    let ranks = s.tp * s.attention_dp;
    a.comment("parallelism").put("--tp-size", ranks).put("--pp-size", s.pp);
    if s.attention_dp > 1 {
        a.put("--dp-size", s.attention_dp).put_switch("--enable-dp-attention", true);
    }
    if s.ep > 1 && !ranks.is_multiple_of(s.ep) {
        let reason = format!(
            "SGLang distributes experts over the {ranks} ranks of tp x attention_dp, of which {} is not a divisor",
            s.ep
        );
        draft.reject("ep", reason);
    }
    if s.ep > 1 {
        a.put("--ep-size", s.ep);
    }
    if let Some(ranks) = plan.context_ranks.filter(|ranks| *ranks > 1.0) {
        a.put("--dcp-size", crate::launch::job::count(ranks));
    }
    a.comment("precision");
    serving::put_format(job, s, draft, a);
    if let Some(format) = s.kv {
        match cache_format_name("sglang", format) {
            Some(name) => drop(a.put("--kv-cache-dtype", name)),
            None => draft.reject_cache_format(format),
        }
    }
    a.comment("scheduler and memory").put("--context-length", s.length());
    a.put_optional("--max-running-requests", s.max_num_seqs)
        .put_optional("--chunked-prefill-size", s.max_num_batched_tokens);
    a.put_optional("--mem-fraction-static", s.memory_share.map(|share| share.to_string()));
    match s.chunked_prefill {
        Some(true) => drop(a.put_switch("--enable-mixed-chunk", true)),
        Some(false) if s.max_num_batched_tokens.is_none() => drop(a.put("--chunked-prefill-size", "-1")),
        Some(false) | None => {}
    }
    a.put_switch("--disable-cuda-graph", s.graphs == Some(false));
    a.put_switch("--disable-overlap-schedule", plan.overlap_scheduling == Some(false));
    if let Some(steps) = plan.recv_interval.filter(|steps| *steps > 1.0) {
        a.put("--scheduler-recv-interval", crate::launch::job::count(steps));
    }
    features::sglang(job, s, a, draft);
}
