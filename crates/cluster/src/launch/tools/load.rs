//! The client that generates the planned load: arrivals, lengths, cached prefixes, images, and requests without output.

use atlas_catalog::transformer::TransformerKind;
use atlas_core::count::Count;
use atlas_core::plan::{Arrivals, LoadKind};
use atlas_core::units::{si, with_unit};
use atlas_plan::engine::estimate;
use atlas_plan::knob::{Knob, Setting};
use atlas_plan::scenario::Vision;
use serde_json::json;

use super::{Client, Draft};
use crate::launch::job::{Job, Serving, count};
use crate::launch::words::Arguments;

/// The first release of vLLM with `vllm bench serve`.
const SINCE: &str = "0.8.0";
/// The first release of vLLM with `vllm bench throughput`.
const SINCE_THROUGHPUT: &str = "0.8.5";
/// The first release in which `--backend` selects the API.
const SINCE_BACKEND: &str = "0.11.0";
/// The first release with the dataset `random-rerank`.
const SINCE_RERANK: &str = "0.11.1";

/// The client. Notes state what it cannot send as planned.
pub(super) fn client(job: &Job<'_>, s: &Serving, draft: &mut Draft) -> Client {
    let mut a = Arguments::default();
    let differences = differences(job);
    a.comment(
        &std::iter::once("planned load").chain(differences.iter().map(String::as_str)).collect::<Vec<_>>().join("; "),
    );
    draft.notes.extend(differences);
    let since = dataset(job, s, &mut a, draft);
    arrivals(job, s, &mut a, draft);
    a.push_unchecked(["--ignore-eos".into()]);
    if let Some(model) = &job.weights {
        a.push_unchecked(["--model".into(), model.as_str().into()]);
    }
    Client { arguments: a, since }
}

/// Adds the contents of the requests. Returns the release of vLLM that they require.
fn dataset(job: &Job<'_>, s: &Serving, a: &mut Arguments, draft: &mut Draft) -> &'static str {
    let prefix = cached_prefix(job, s);
    let (dataset, backend, since) = match job.scenario.base.plan.images.filter(|images| *images > 0.0) {
        Some(_) => ("random-mm", Some(("openai-chat", "/v1/chat/completions")), SINCE_BACKEND),
        None if job.transformer.kind != TransformerKind::Encoder => ("random", None, SINCE),
        None if job.model.id.contains("rerank") => ("random-rerank", Some(("vllm-rerank", "/v1/rerank")), SINCE_RERANK),
        None => ("random", Some(("openai-embeddings", "/v1/embeddings")), SINCE_BACKEND),
    };
    if let Some((backend, endpoint)) = backend {
        a.put("--backend", backend).put("--endpoint", endpoint);
    }
    // A request without output is one of which only the first token is generated.
    let load = job.scenario.base.plan.serving.load;
    let output = if load == Some(LoadKind::PrefillOnly) { 1 } else { s.generate.max(1) };
    a.put("--dataset-name", dataset).put("--random-input-len", s.prompt - prefix).put("--random-output-len", output);
    if prefix > 0 {
        a.put("--random-prefix-len", prefix);
    }
    if let Some(images) = job.scenario.base.plan.images.filter(|images| *images > 0.0) {
        if images.fract() != 0.0 {
            draft.reject("images", format!("the client sends a whole number of images per request, not {images}"));
        }
        let number = count(images);
        let native = || job.scenario.vision.as_deref().map_or(0.0, Vision::default_size);
        let side = job.scenario.base.plan.image_size.map_or_else(native, f64::from);
        a.put("--random-mm-base-items-per-request", number)
            .put("--random-mm-limit-mm-per-prompt", json!({ "image": number, "video": 0 }).to_string())
            .put("--random-mm-bucket-config", format!("{{({side}, {side}, 1): 1.0}}"));
    }
    since
}

/// Tokens at the start of every prompt that the server has cached: those of the planned hit rate, or the shared prefix of
/// conversations.
fn cached_prefix(job: &Job<'_>, s: &Serving) -> u64 {
    let plan = &job.scenario.base.plan.serving;
    let tokens = match plan.conversations.filter(|conversations| *conversations > 0.0) {
        Some(_) => plan.shared_prefix.map_or(0.0, f64::from),
        None => plan.prefix_hit.unwrap_or(0.0) * s.prompt as f64,
    };
    if tokens >= 1.0 { count(tokens).min(s.prompt.saturating_sub(1)) } else { 0 }
}

/// Number of requests that keep all replicas full for most of a run, as a burst without an end is planned.
fn backlog(job: &Job<'_>, s: &Serving) -> u64 {
    const TIMES: u64 = 10;
    match job.scenario.get(Knob::MaxNumSeqs) {
        Setting::Number(sequences) if sequences > 0.0 => {
            s.concurrency.max(count(sequences).saturating_mul(s.replicas).saturating_mul(TIMES))
        }
        _ => s.concurrency.saturating_mul(TIMES),
    }
}

/// Adds the number of requests and their arrival times.
fn arrivals(job: &Job<'_>, s: &Serving, a: &mut Arguments, draft: &mut Draft) {
    let plan = &job.scenario.base.plan;
    let (load, rate) = (plan.serving.load, s.rate);
    let run = plan.serving.run_requests.map(|requests| count(f64::from(requests)));
    let at_once = match load {
        Some(LoadKind::Static | LoadKind::PrefillOnly | LoadKind::DecodeOnly) => Some(s.concurrency),
        Some(LoadKind::Burst) => Some(run.unwrap_or_else(|| backlog(job, s))),
        Some(LoadKind::Open | LoadKind::Closed) | None => None,
    };
    if load == Some(LoadKind::PrefillOnly) {
        draft.notes.extend(through_server(job, s.concurrency));
        draft.notes.extend(without_server(job, s, draft));
    }
    if load == Some(LoadKind::DecodeOnly) {
        draft.note("the plan times only decode steps; compare the time per output token of the client");
    }
    if let Some(requests) = at_once {
        a.put("--num-prompts", requests).put("--request-rate", "inf");
        return;
    }
    a.put("--num-prompts", run.unwrap_or(s.concurrency.saturating_mul(4)));
    let Some(rate) = rate else {
        a.put("--max-concurrency", s.concurrency);
        return;
    };
    a.put("--request-rate", rate.to_string());
    let limited = match load {
        Some(LoadKind::Open) => plan.serving.concurrency.is_some(),
        load => load == Some(LoadKind::Closed),
    };
    if limited {
        a.put("--max-concurrency", s.concurrency);
    }
    let simulated = job.scenario.simulation(&job.scenario.base);
    if simulated.arrivals == Arrivals::Gamma && simulated.arrival_cv > 0.0 {
        // The shape of the gamma distribution of the gaps.
        a.put("--burstiness", format!("{:.4}", simulated.arrival_cv.powi(-2)));
    }
}

/// Note on the throughput of an offline batch whose requests pass through the server: all at once, as the client sends
/// them.
fn through_server(job: &Job<'_>, requests: u64) -> Option<String> {
    let mut scenario = job.scenario.clone();
    let serving = &mut scenario.base.plan.serving;
    (serving.load, serving.run_requests) = (Some(LoadKind::Burst), Count::from_exact(requests as f64));
    let found = estimate(&scenario);
    found.detail.filter(|detail| detail.verdict.fits())?;
    let rate = with_unit(&si(found.total.tokens_per_sec), "tok/s");
    Some(format!(
        "the predicted throughput is that of an offline batch without an HTTP server; {requests} requests at once through this \
         server and client are predicted to reach {rate}"
    ))
}

/// Note on the command by which vLLM runs the batch of a replica without a server. It does not run encoders, which are
/// always served.
fn without_server(job: &Job<'_>, s: &Serving, draft: &Draft) -> Option<String> {
    let decodes = job.transformer.kind != TransformerKind::Encoder;
    let vllm = draft.table == "vllm" && !job.is_older(SINCE_THROUGHPUT);
    let model = job.weights.as_deref().filter(|_| vllm && decodes)?;
    let requests = (s.concurrency / s.replicas.max(1)).max(1);
    Some(format!(
        "`vllm bench throughput --model {model} --input-len {} --output-len 1 --num-prompts {requests}`, with the flags \
         of the server for parallelism, precision and scheduler, runs the batch of one of {} replicas without a server",
        s.prompt, s.replicas
    ))
}

/// What the requests of the client lack compared with the plan.
fn differences(job: &Job<'_>) -> Vec<String> {
    let plan = &job.scenario.base.plan;
    let positive = |value: Option<f64>| value.is_some_and(|value| value > 0.0);
    let mut out = Vec::new();
    if plan.serving.conversations.is_some_and(|conversations| conversations > 0.0) {
        let turns = "the load script sends single requests: prompts do not repeat earlier turns of a conversation, so \
                     fewer tokens are cached than planned";
        out.push(turns.to_owned());
    }
    let spread = plan.serving.generate_spread.is_some_and(|spread| spread > 1.0);
    if positive(plan.simulation.prompt_cv) || positive(plan.simulation.generate_cv) || spread {
        out.push("the load script sends requests of equal length, while the planned lengths vary".to_owned());
    }
    out
}
