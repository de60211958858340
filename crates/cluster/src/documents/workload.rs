//! The workload of a job: model, layout, batch, formats, software, and the load if a client states it.

mod training;

use atlas_catalog::software::Software;
use atlas_catalog::{Catalog, Model};
use atlas_config::Mode;
use atlas_core::plan::{DraftMethod, Format, MoeDispatcher};
use atlas_core::units::BYTES_PER_GB;
use atlas_plan::knob::Knob;
use serde_json::Value;

use super::facts::{Facts, Key, Line, YamlLines, line_from_field, line_with_comment};
use super::{MissingInput, UserInput, model};
use crate::import::Field;

/// What a workload is written from.
pub(super) struct Context<'a> {
    pub(super) facts: &'a Facts,
    pub(super) catalog: &'a Catalog,
    pub(super) model: Option<&'a Model>,
    /// Number of accelerators of the target, if it is known.
    pub(super) devices: Option<u64>,
    pub(super) given: &'a UserInput,
    /// Share of device memory that the weights occupy, if it is known.
    pub(super) weights: Option<f64>,
}

/// Whether the files limit the KV cache to a share of the memory that the weights leave free.
pub(super) fn states_share_of_free(context: &Context<'_>) -> bool {
    let facts = context.facts;
    facts.text(Field::Framework) == Some("tensorrt-llm")
        && facts.number(facts.of_scheduler(Field::GpuMemoryShare)).is_some()
}

/// Writes the entry without its name, and the origins of its values.
pub(super) fn write(context: &Context<'_>, notes: &mut Vec<String>) -> Result<(String, String), Vec<MissingInput>> {
    let Context { facts, model, given, .. } = *context;
    let mut lines = YamlLines::default();
    let serves = facts.serves();
    lines.push_string("mode", if serves { "inference" } else { "training" }, facts.place(Field::Kind).as_deref());
    if let Some(model) = model {
        lines.push_string("model", &model.id, facts.place(Field::Model).as_deref());
    }
    if let Some(software) = software(facts) {
        lines.push_string("software", &software, facts.place(Field::Framework).as_deref());
    } else if let Some(framework) = facts.text(Field::Framework) {
        notes.push(format!(
            "{framework} is not in the software catalog; the default software of the workload's mode is assumed"
        ));
    }
    let gaps = match serves {
        true => serving(context, notes, &mut lines),
        false => training::training(context, notes, &mut lines),
    };
    let mode = if serves { Mode::Inference } else { Mode::Training };
    given.overwrite(&mut lines, |knob| {
        if knob.spec().mode.is_some_and(|own| own != mode) {
            return None;
        }
        // The section `batch` takes precedence over the usual path.
        if knob == Knob::Microbatch && mode == Mode::Training {
            return Some(&["batch", "micro"]);
        }
        let pool = knob.of_decode_pool().filter(|_| facts.has_role("decode"));
        pool.or_else(|| knob.spec().location.in_workload())
    });
    notes.extend(given.unwritten(mode));
    if gaps.is_empty() { Ok(lines.finish()) } else { Err(gaps) }
}

/// Id of the catalog's software family for a framework.
fn software(facts: &Facts) -> Option<String> {
    let framework = facts.text(Field::Framework)?;
    let id = match framework {
        "primus-megatron" | "primus-maxtext" | "primus-torchtitan" => "primus",
        "accelerate" if facts.text(Field::Sharding) == Some("none") => "pytorch-ddp",
        "accelerate" => "pytorch-fsdp",
        "pytorch" => "pytorch",
        other => {
            let family = Software::find(other)?.family.id.clone();
            let release = facts.text(Field::Release).map(|release| format!("{family}@{release}"));
            return Some(release.filter(|name| Software::find(name).is_some()).unwrap_or(family));
        }
    };
    Some(id.to_owned())
}

fn counts(facts: &Facts, pairs: &[(&'static str, Field)]) -> Vec<Line> {
    pairs.iter().filter_map(|(key, from)| Some(line_from_field(facts, key, *from, facts.count(*from)?))).collect()
}

/// Number of members of a Slurm job array such as `0-7`, `1-8%2` or `0,2,4`.
pub(super) fn array(facts: &Facts) -> Option<u64> {
    let text = facts.text(Field::SlurmArray).filter(|_| facts.serves())?;
    let list = text.split('%').next()?;
    let members = |part: &str| -> Option<u64> {
        match part.split_once('-') {
            Some((from, to)) => (to.parse::<u64>().ok()?.checked_sub(from.parse().ok()?)?).checked_add(1),
            None => part.parse::<u64>().ok().map(|_| 1),
        }
    };
    list.split(',').map(members).sum()
}

/// Mean of the lengths that a client draws for a stated length, and a note if it is not the stated one.
fn mean_length(facts: &Facts) -> (impl Fn(u64) -> u64, Option<String>) {
    let shortest = facts.number(Field::BenchmarkShortest).unwrap_or(1.0).clamp(0.0, 1.0);
    let note = (shortest < 1.0).then(|| {
        format!(
            "the client draws lengths between {shortest} times the stated length and the stated length: the means are \
             planned"
        )
    });
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
    let mean = move |tokens: u64| (tokens as f64 * (1.0 + shortest) / 2.0).round() as u64;
    (mean, note)
}

fn serving(context: &Context<'_>, notes: &mut Vec<String>, lines: &mut YamlLines) -> Vec<MissingInput> {
    let Context { facts, catalog, model, given, .. } = *context;
    let mut gaps = Vec::new();
    let whole = |field: Field| facts.value(field).and_then(Value::as_u64);
    let mut sequence = Vec::new();
    // Clients state the tokens of a common prefix separately.
    let prefix = whole(Field::BenchmarkPrefixLen).filter(|tokens| *tokens > 0);
    let (mean, length_note) = mean_length(facts);
    notes.extend(length_note);
    let prompt = whole(Field::BenchmarkIsl).map(|tokens| mean(tokens) + prefix.unwrap_or(0));
    let pooled = facts.flag(Field::BenchmarkPooled) == Some(true);
    let generate = if pooled { Some(0) } else { whole(Field::BenchmarkOsl).map(mean) };
    for (key, from, knob, tokens) in [
        ("prompt", Field::BenchmarkIsl, Knob::Prompt, prompt),
        ("generate", if pooled { Field::BenchmarkPooled } else { Field::BenchmarkOsl }, Knob::Generate, generate),
    ] {
        match tokens {
            Some(tokens) => sequence.push(line_from_field(facts, key, from, tokens)),
            None if given.has(knob) => {}
            None => {
                let limit = facts
                    .count(Field::MaxModelLen)
                    .map_or_else(String::new, |most| format!(" (at most {most} tokens together)"));
                let reason = format!(
                    "the files of a server do not state request lengths{limit}; set it with --set {key}=TOKENS"
                );
                gaps.push(MissingInput::new(key, reason));
            }
        }
    }
    for (key, from) in [("images", Field::BenchmarkImages), ("image_size", Field::BenchmarkImageSize)] {
        sequence.extend(facts.count(from).map(|count| line_from_field(facts, key, from, count)));
    }
    lines.section(&["sequence"], sequence);
    lines.section(&["parallelism"], layout(facts, model, notes));
    formats(facts, model, lines);
    let mut section = Vec::new();
    for (key, from) in [
        ("max_num_seqs", Field::MaxNumSeqs),
        ("max_num_batched_tokens", Field::MaxNumBatchedTokens),
        ("max_num_batched_tokens", Field::ChunkedPrefillSize),
        ("context_ranks", Field::Dcp),
        ("redundant_experts", Field::RedundantExperts),
        ("recv_interval", Field::RecvInterval),
        ("beams", Field::Beams),
        ("long_prefill_token_threshold", Field::LongPrefillTokenThreshold),
    ] {
        let from = facts.of_scheduler(from);
        if let Some(count) = facts.count(from).filter(|_| !section.iter().any(|line: &Line| line.key == key)) {
            section.push(line_from_field(facts, key, from, count));
        }
    }
    // TensorRT-LLM states the number of experts with their copies.
    let experts = model.and_then(Model::transformer).and_then(|t| t.experts).map(|experts| f64::from(experts.count));
    if let (Some(slots), Some(experts)) = (facts.number(Field::ExpertSlots), experts) {
        section.push(line_from_field(facts, "redundant_experts", Field::ExpertSlots, (slots - experts).max(0.0)));
    }
    let share = facts.of_scheduler(Field::GpuMemoryShare);
    let of_free = states_share_of_free(context);
    section.extend(facts.number(share).and_then(|own| {
        let total = if of_free { context.weights.map(|weights| weights + own * (1.0 - weights))? } else { own };
        Some(line_from_field(facts, "gpu_memory_utilization", share, (1e4 * total).round() / 1e4))
    }));
    for (key, from) in [
        ("chunked_prefill", Field::ChunkedPrefill),
        ("overlap_scheduling", Field::AsyncScheduling),
        ("two_batch_overlap", Field::TwoBatchOverlap),
        ("reserve_output", Field::ReserveOutput),
    ] {
        let from = facts.of_scheduler(from);
        section.extend(facts.flag(from).map(|on| line_from_field(facts, key, from, on)));
    }
    if let (Some(prefix), Some(prompt)) = (prefix, prompt) {
        let share = (1e4 * prefix as f64 / prompt as f64).round() / 1e4;
        section.push(line_from_field(facts, "prefix_cache_hit", Field::BenchmarkPrefixLen, share));
    }
    load(facts, given, notes, &mut section);
    lines.section(&["serving"], section);
    // The shape of the gamma distribution of the gaps; 1 is Poisson.
    if let Some(shape) = facts.number(Field::BenchmarkBurstiness).filter(|shape| *shape > 0.0 && *shape != 1.0) {
        let from = Field::BenchmarkBurstiness;
        let gaps = [
            line_from_field(facts, "arrivals", from, "gamma"),
            line_from_field(facts, "arrival_cv", from, (1e4 / shape.sqrt()).round() / 1e4),
        ];
        lines.section(&["serving"], gaps.into());
    }
    lines.section(&["serving", "speculative"], drafts(facts, catalog, notes));
    lines.section(&["serving", "kv_tiers"], host_cache(facts).into_iter().collect());
    pools(facts, model, lines);
    let mut tuning: Vec<Line> = dispatcher(facts).into_iter().collect();
    let eager = facts.of_scheduler(Field::EnforceEager);
    if facts.flag(eager) == Some(true) {
        tuning.push(line_from_field(facts, "cuda_graphs", eager, false));
    }
    lines.section(&["runtime_tuning"], tuning);
    gaps
}

/// Host memory for the KV cache, per accelerator. vLLM states it for all ranks of a server.
fn host_cache(facts: &Facts) -> Option<Line> {
    if let Some(all) = facts.number(Field::KvOffloadingGib) {
        let ranks = facts.count(Field::Tp).unwrap_or(1) * facts.count(Field::Pp).unwrap_or(1);
        let room = (all * BYTES_PER_GB / 1e9 / ranks as f64).round();
        return Some(line_from_field(facts, "host_gb", Field::KvOffloadingGib, room));
    }
    Some(line_from_field(facts, "host_gb", Field::KvHostGb, facts.number(Field::KvHostGb)?))
}

/// How tokens are sent to experts.
fn dispatcher(facts: &Facts) -> Option<Line> {
    let from = facts.of_scheduler(Field::MoeDispatcher);
    let dispatcher = facts.text(from).and_then(MoeDispatcher::named)?;
    Some(line_from_field(facts, "moe_dispatcher", from, dispatcher.name()))
}

/// Speculative decoding, under the names of the engines.
fn drafts(facts: &Facts, catalog: &Catalog, notes: &mut Vec<String>) -> Vec<Line> {
    let (steps, verified) = (facts.count(Field::SpeculativeSteps), facts.count(Field::SpeculativeTokens));
    let branches = facts.count(Field::SpeculativeTopk).unwrap_or(1);
    let Some(name) = facts.text(Field::SpeculativeMethod).map(str::to_owned).or_else(|| {
        // Hugging Face's server speculates with heads of the model or, without them, n-grams.
        verified.filter(|_| facts.text(Field::Framework) == Some("tgi")).map(|_| "ngram".to_owned())
    }) else {
        return Vec::new();
    };
    let weights = facts.text(Field::SpeculativeModel);
    let method = match name.replace('-', "_").as_str() {
        mtp if mtp.contains("mtp") || mtp.contains("nextn") => DraftMethod::Mtp,
        // Without weights of its own, SGLang's EAGLE uses the model's MTP layer.
        "eagle" if weights.is_none() => DraftMethod::Mtp,
        "eagle" => {
            notes.push("EAGLE drafts are planned as those of EAGLE-3, which have the same cost".to_owned());
            DraftMethod::Eagle3
        }
        "eagle3" => DraftMethod::Eagle3,
        "draft" | "draft_model" | "standalone" | "drafttarget" | "draft_target" => DraftMethod::DraftModel,
        "ngram" | "prompt_lookup" => DraftMethod::Ngram,
        _ => {
            notes.push(format!("drafts by {name} cannot be planned; the plan has no speculative decoding"));
            return Vec::new();
        }
    };
    // SGLang counts the tokens to verify, which include the last accepted one, except for n-grams.
    let (tokens, from) = match (steps, verified) {
        (Some(steps), _) if method != DraftMethod::Ngram => (steps, Field::SpeculativeSteps),
        (_, Some(tokens)) if facts.text(Field::Framework) == Some("sglang") && method != DraftMethod::Ngram => {
            (tokens.saturating_sub(1).max(1), Field::SpeculativeTokens)
        }
        (_, Some(tokens)) => (tokens, Field::SpeculativeTokens),
        (_, None) => {
            let note =
                format!("the files state no number of draft tokens for {name}; set it with --set draft_tokens=N");
            notes.push(note);
            return Vec::new();
        }
    };
    if branches > 1 {
        notes.push(format!("a tree of {branches} drafts per step is planned as a chain of {tokens} tokens"));
    }
    let mut out = vec![
        line_from_field(facts, "method", Field::SpeculativeMethod, method.name()),
        line_from_field(facts, "tokens", from, tokens),
    ];
    if let Some(name) = weights.filter(|_| method == DraftMethod::DraftModel) {
        match model::by_name(catalog, name) {
            Some(draft) => {
                let billions = (draft.parameters() / 1e8).round() / 10.0;
                out.push(line_from_field(facts, "params_b", Field::SpeculativeModel, billions));
            }
            None => notes
                .push(format!("draft model {name} is not in the catalog; state its size with --set draft_params_b=N")),
        }
    }
    out
}

/// Ranks of a replica, and number of replicas.
fn layout(facts: &Facts, model: Option<&Model>, notes: &mut Vec<String>) -> Vec<Line> {
    let engine = facts.text(Field::Framework).unwrap_or_default();
    let (tp, pp, dp) =
        (facts.count(Field::Tp).unwrap_or(1), facts.count(Field::Pp).unwrap_or(1), facts.count(Field::Dp).unwrap_or(1));
    let experts = model.and_then(Model::transformer).is_some_and(|t| t.experts.is_some());
    // The engines specify the number of attention groups in three different ways.
    let groups = match engine {
        "vllm" if experts => dp,
        "sglang" if facts.flag(Field::AttentionDp) == Some(true) => dp,
        "tensorrt-llm" if facts.flag(Field::AttentionDp) == Some(true) => tp,
        _ => 1,
    };
    let inside = if engine == "vllm" { tp } else { (tp / groups).max(1) };
    let mut out = vec![line_from_field(facts, "tp", Field::Tp, inside), line_from_field(facts, "pp", Field::Pp, pp)];
    if groups > 1 {
        out.push(line_from_field(
            facts,
            "attention_dp",
            if engine == "tensorrt-llm" { Field::Tp } else { Field::Dp },
            groups,
        ));
    }
    if let Some(ep) = facts.count(Field::Ep).filter(|ep| *ep > 1) {
        out.push(line_from_field(facts, "ep", Field::Ep, ep));
    }
    let devices = inside * pp * groups;
    let servers = array(facts).unwrap_or(1);
    let by_count = facts.count(Field::NumAccelerators).filter(|all| all % devices == 0).map(|all| all / devices);
    let by_flags = if groups == 1 { dp } else { 1 } * facts.count(Field::Replicas).unwrap_or(1);
    let replicas = match by_count {
        Some(count) => count * servers,
        None => by_flags * servers,
    };
    out.push(line_with_comment("dp", replicas, "replicas"));
    if facts.count(Field::Tp).is_none() && !facts.has_role("prefill") {
        notes.push("the files state no tensor parallelism: tp = 1 is assumed".to_owned());
    }
    out
}

/// Formats of the weights and of the KV cache.
fn formats(facts: &Facts, model: Option<&Model>, lines: &mut YamlLines) {
    let native = model.and_then(|model| model.native_format).unwrap_or(Format::Bf16);
    let mut section = Vec::new();
    for field in [Field::WeightsPrecision, Field::Precision] {
        let Some(format) = facts.text(field).and_then(Format::named) else { continue };
        // The engine's compute precision does not determine the format of weights that are stored in a narrower one.
        if field == Field::WeightsPrecision || (section.is_empty() && native == Format::Bf16) {
            section.push(line_from_field(facts, "weights", field, format.name()));
            break;
        }
    }
    if let Some(format) = facts.text(Field::KvPrecision).and_then(Format::named) {
        section.push(line_from_field(facts, "kv", Field::KvPrecision, format.name()));
    }
    lines.section(&["precision"], section);
}

/// The load that a client generates.
fn load(facts: &Facts, given: &UserInput, notes: &mut Vec<String>, section: &mut Vec<Line>) {
    let rate = facts.number(Field::BenchmarkRequestRate).filter(|rate| *rate > 0.0);
    let listed: Vec<u64> = match facts.value(Field::BenchmarkConcurrency) {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_u64).collect(),
        Some(value) => value.as_u64().into_iter().collect(),
        None => Vec::new(),
    };
    if let Some(rate) = rate {
        // Clients limit the requests in flight if both are stated.
        if !listed.is_empty() {
            section.push(line_from_field(facts, "load", Field::BenchmarkRequestRate, "open"));
        }
        section.push(line_from_field(facts, "request_rate", Field::BenchmarkRequestRate, rate));
    }
    // Models that generate nothing are planned as an offline batch by default, which has no HTTP server.
    if rate.is_none() && !listed.is_empty() && facts.flag(Field::BenchmarkPooled) == Some(true) {
        section.push(line_from_field(facts, "load", Field::BenchmarkPooled, "closed"));
    }
    if let Some(first) = listed.first() {
        section.push(line_from_field(facts, "concurrency", Field::BenchmarkConcurrency, first));
    }
    if listed.len() > 1 && !given.has(Knob::Concurrency) {
        notes.push(format!("the client runs {} load levels; only the first is planned", listed.len()));
    }
    let stated = [Knob::Concurrency, Knob::RequestRate, Knob::Load].into_iter().any(|knob| given.has(knob));
    // An infinite rate without a limit: all requests are sent at once.
    let at_once = facts
        .count(Field::BenchmarkNumPrompts)
        .filter(|_| facts.text(Field::BenchmarkRequestRate) == Some("inf") && listed.is_empty());
    if let Some(requests) = at_once {
        let from = Field::BenchmarkNumPrompts;
        section.push(line_from_field(facts, "load", Field::BenchmarkRequestRate, "burst"));
        section.push(line_from_field(facts, "run_requests", from, requests));
    }
    if rate.is_none() && listed.is_empty() && at_once.is_none() && !stated {
        notes.push("the files state no load; set one with --set concurrency=N or --set request_rate=R".to_owned());
    }
}

/// Pools of prefill and decode workers.
fn pools(facts: &Facts, model: Option<&Model>, lines: &mut YamlLines) {
    let engine = facts.text(Field::Framework).unwrap_or_default();
    let experts = model.and_then(Model::transformer).is_some_and(|t| t.experts.is_some());
    if !["prefill", "decode"].into_iter().all(|role| facts.has_role(role)) {
        return;
    }
    for role in ["prefill", "decode"] {
        let own = |field: Field| Key::of_role(role, field);
        let count = |field: Field| facts.count(own(field)).unwrap_or(1);
        let (tp, pp, dp) = (count(Field::Tp), count(Field::Pp), count(Field::Dp));
        let named = if facts.count(own(Field::Workers)).is_some() { Field::Workers } else { Field::Replicas };
        let attention = facts.flag(own(Field::AttentionDp)) == Some(true);
        let groups = match engine {
            "vllm" if experts => dp,
            "sglang" if attention => dp,
            "tensorrt-llm" if attention => tp,
            _ => 1,
        };
        let inside = if engine == "vllm" { tp } else { (tp / groups).max(1) };
        let workers = count(named) * if groups == 1 { dp } else { 1 };
        let pool = vec![
            line_from_field(facts, "workers", own(named), workers),
            line_from_field(facts, "tp", own(Field::Tp), inside),
            line_from_field(facts, "pp", own(Field::Pp), pp),
            line_from_field(facts, "ep", own(Field::Ep), count(Field::Ep)),
            line_from_field(facts, "attention_dp", own(Field::Dp), groups),
        ];
        lines.section(&["serving", "pools", role], pool);
    }
}
