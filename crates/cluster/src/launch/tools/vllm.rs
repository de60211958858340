//! vLLM.

use atlas_core::plan::cache_format_name;
use atlas_plan::knob::Knob;

use super::serving::{paged, servers, set_servers};
use super::{Draft, MultiNode, features, other_mode, serving};
use crate::launch::Unsupported;
use crate::launch::job::{Job, Serving};
use crate::launch::words::Arguments;

/// Knobs that vLLM can express.
pub(super) fn expressed() -> Vec<Knob> {
    paged().collect()
}

/// The first release with the command `vllm serve`.
const SINCE_SERVE: &str = "0.5.2";
/// The first release with several replicas in one server.
const SINCE_REPLICAS: &str = "0.8.3";

pub(super) fn draft(job: &Job<'_>) -> Result<Draft, Unsupported> {
    let s = job.serving().ok_or_else(other_mode)?;
    let image = match (job.vendor.as_str(), job.release.as_deref()) {
        ("AMD", _) => "rocm/vllm:latest".to_owned(),
        (_, Some(release)) => format!("vllm/vllm-openai:v{release}"),
        _ => "vllm/vllm-openai:latest".to_owned(),
    };
    let mut draft = Draft::new("vllm", job, image);
    draft.expressed = expressed();
    serving::add_stored(job, s, &mut draft);
    let repository = job.repository()?;
    let mut a = Arguments::default();
    if job.is_older(SINCE_SERVE) {
        draft.program = ["python3", "-m", "vllm.entrypoints.openai.api_server"].map(Into::into).to_vec();
        a.comment(&format!("model: {}", job.model.id)).put("--model", repository);
    } else {
        draft.program = vec!["vllm".into(), "serve".into(), repository.into()];
    }
    let dense = job.transformer.experts.is_none() && s.attention_dp == 1;
    // For models with experts, vLLM would distribute the experts over the replicas of a server, which are then not
    // independent.
    serving::check_model(job, "vLLM", true, &mut draft);
    let servers = servers(job, s, dense && !job.is_older(SINCE_REPLICAS));
    a.comment("parallelism").put("--tensor-parallel-size", s.tp).put("--pipeline-parallel-size", s.pp);
    let groups = s.attention_dp * servers.replicas;
    if groups > 1 {
        a.put("--data-parallel-size", groups);
    }
    engine(job, s, &mut a, &mut draft);
    a.comment("address").push_unchecked(["--host".into(), "0.0.0.0".into()]);
    draft.arguments = a;
    set_servers(job, s, servers, &mut draft);
    if servers.nodes > 1 {
        let flags =
            if s.attention_dp > 1 { groups_over_nodes(job, s, servers.nodes, &mut draft) } else { RANKS.to_owned() };
        draft.spread = Some(MultiNode { nodes: servers.nodes, flags });
    }
    Ok(draft)
}

/// Flags by which the nodes of one engine connect. Only the first node serves requests.
const RANKS: &str = "--nnodes \"$NODES\" --node-rank \"$NODE_RANK\" --master-addr \"$HEAD_NODE\" \
                     $([ \"$NODE_RANK\" = 0 ] || echo --headless)";

/// Flags of a node that runs part of the attention groups. Only the first node serves requests. The head node listens
/// on the address, which must be numeric.
fn groups_over_nodes(job: &Job<'_>, s: &Serving, nodes: u64, draft: &mut Draft) -> String {
    let local = job.per_node / (s.tp * s.pp).max(1);
    if local == 0 || local * nodes != s.attention_dp {
        let each = s.tp * s.pp;
        let reason = format!(
            "{} attention groups of {each} accelerators cannot be distributed evenly over nodes of {} accelerators; a \
             group must not span nodes",
            s.attention_dp, job.per_node
        );
        draft.reject("attention_dp", reason);
    }
    format!(
        "--data-parallel-size-local {local} --data-parallel-start-rank \"$(($NODE_RANK * {local}))\" \
         --data-parallel-address \"$(getent ahostsv4 \"$HEAD_NODE\" | head -n 1 | cut -d \" \" -f 1)\" \
         --data-parallel-rpc-port 13345 $([ \"$NODE_RANK\" = 0 ] || echo --headless)"
    )
}

/// Adds the flags that a server and a Dynamo worker have in common.
pub(super) fn engine(job: &Job<'_>, s: &Serving, a: &mut Arguments, draft: &mut Draft) {
    let plan = &job.scenario.base.plan.serving;
    let ranks = s.tp * s.attention_dp;
    if s.attention_dp > 1 && job.transformer.experts.is_none() {
        draft.reject("attention_dp", "vLLM runs models without experts as independent replicas; set dp instead");
    }
    match s.ep {
        1 => {}
        ep if ep == ranks => drop(a.put_switch("--enable-expert-parallel", true)),
        ep => {
            let reason = format!("vLLM distributes experts over all {ranks} ranks of tp x attention_dp, not {ep}");
            draft.reject("ep", reason);
        }
    }
    if let Some(ranks) = plan.context_ranks.filter(|ranks| *ranks > 1.0) {
        a.put("--decode-context-parallel-size", crate::launch::job::count(ranks));
    }
    a.comment("precision");
    serving::put_format(job, s, draft, a);
    if let Some(format) = s.kv {
        match cache_format_name("vllm", format) {
            Some(name) => drop(a.put("--kv-cache-dtype", name)),
            None => draft.reject_cache_format(format),
        }
    }
    a.comment("scheduler and memory");
    a.put_optional("--max-model-len", (s.length() > 0).then(|| s.length()));
    a.put_optional("--max-num-seqs", s.max_num_seqs).put_optional("--max-num-batched-tokens", s.max_num_batched_tokens);
    a.put_optional("--gpu-memory-utilization", s.memory_share.map(|share| share.to_string()));
    match s.chunked_prefill {
        Some(true) => drop(a.put_switch("--enable-chunked-prefill", true)),
        Some(false) => drop(a.push_unchecked(["--no-enable-chunked-prefill".into()])),
        None => {}
    }
    // The default depends on the release.
    let reused = plan.prefix_hit.is_some_and(|share| share > 0.0) || plan.conversations.is_some_and(|all| all > 0.0);
    a.put_switch("--enable-prefix-caching", reused);
    a.put_switch("--enforce-eager", s.graphs == Some(false));
    match plan.overlap_scheduling {
        Some(true) => drop(a.put_switch("--async-scheduling", true)),
        Some(false) => drop(a.push_unchecked(["--no-async-scheduling".into()])),
        None => {}
    }
    features::vllm(job, s, a, draft);
}
