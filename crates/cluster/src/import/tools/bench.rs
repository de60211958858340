//! Benchmark clients: their requests, and the server that they send them to.

use serde_json::{Value as Json, json};

use crate::import::argv::Args;
use crate::import::fields::{Entry, Fields, ReadFields};
use crate::import::names::snake;
use crate::import::unknown;
use crate::import::value::{Node, Value};
use crate::import::{Field, Kind};

/// Settings of the clients, by the field that they set.
const FLAGS: &[(Field, &[&str])] = &[
    (
        Field::NumPrompts,
        &[
            "num_prompts",
            "num_prompt",
            "num_requests",
            "request_count",
            "n_requests",
            "max_requests",
            "max_num_completed_requests",
            "number",
        ],
    ),
    (Field::RequestRate, &["request_rate", "qps", "req_rate"]),
    (Field::Concurrency, &["max_concurrency", "concurrency", "num_concurrent", "num_concurrent_requests", "parallel"]),
    (
        Field::Isl,
        &[
            "random_input_len",
            "random_input",
            "input_len",
            "isl",
            "synthetic_input_tokens_mean",
            "prompt_input_tokens_mean",
            "mean_input_tokens",
            "prompt_tokens",
            "random_input_length",
            "input_length",
        ],
    ),
    (
        Field::Osl,
        &[
            "random_output_len",
            "random_output",
            "output_len",
            "osl",
            "output_tokens_mean",
            "prompt_output_tokens_mean",
            "mean_output_tokens",
            "output_tokens",
            "random_output_length",
            "output_length",
            "sharegpt_output_len",
        ],
    ),
    (Field::Dataset, &["dataset_name"]),
    (Field::PrefixLen, &["random_prefix_len"]),
    (Field::Images, &["random_mm_base_items_per_request"]),
];

fn field(key: &str) -> Option<Field> {
    FLAGS.iter().find(|(_, names)| names.contains(&key)).map(|(field, _)| *field)
}

/// Whether `key` is a setting of benchmark clients.
pub(crate) fn is_known(key: &str) -> bool {
    field(key).is_some()
}

/// Reads one flag or key of a client into the client's fields.
pub(crate) fn flag(key: &str, node: &Node, f: &mut ReadFields) -> bool {
    match (key, field(key)) {
        ("model" | "m", _) => super::model(f, node),
        (_, Some(Field::RequestRate)) => rate(f, node),
        (_, Some(Field::Dataset)) => {
            if let Some(t) = node.text().filter(|t| t != "random") {
                f.set(Field::Dataset, t, node.line);
            }
            true
        }
        (_, Some(field)) => counts(field, node, f),
        ("burstiness", _) => f.float(Field::Burstiness, node),
        // Requests to encoders have no output.
        ("backend", _) if node.text().is_some_and(|t| t.ends_with("-embeddings") || t == "vllm-rerank") => {
            f.set(Field::Pooled, true, node.line)
        }
        // Height, width and number of frames of the images, with their share.
        ("random_mm_bucket_config", _) => {
            let text = node.text().unwrap_or_default();
            let side = text.split(|c: char| !c.is_ascii_digit()).find_map(|digits| digits.parse::<i64>().ok());
            side.is_none_or(|side| f.set(Field::ImageSize, side, node.line))
        }
        _ => true,
    }
}

/// Sets a whole number, or a list of whole numbers.
pub(crate) fn counts(field: Field, node: &Node, f: &mut ReadFields) -> bool {
    let words: Vec<String> = match &node.value {
        Value::List(list) => list.iter().filter_map(Node::text).collect(),
        _ => node.text().map(|t| t.split([',', ' ']).map(str::to_owned).collect()).unwrap_or_default(),
    };
    let list: Option<Vec<i64>> = words.iter().map(|w| w.trim_matches(['[', ']']).parse().ok()).collect();
    match list {
        Some(list) if list.len() > 1 => f.set(field, list, node.line),
        _ => f.int(field, node),
    }
}

fn rate(f: &mut ReadFields, node: &Node) -> bool {
    match node.text().as_deref() {
        Some("inf" | "Infinity" | ".inf") => f.set(Field::RequestRate, "inf", node.line),
        _ => f.float(Field::RequestRate, node),
    }
}

/// Reads the command of a client.
pub(crate) fn command(name: &str, args: &Args) -> ReadFields {
    let mut f = ReadFields::default();
    let counted = args.has(&["request_count"]);
    for a in &args.flags {
        let key = snake(&a.name);
        // In these clients, the number of prompts is the size of the pool from which requests are drawn.
        let pool = matches!(name, "genai-perf" | "aiperf") && key == "num_prompts" && counted;
        if !pool {
            flag(&key, &a.node, &mut f);
        }
    }
    match name {
        "guidellm" => guidellm(args, &mut f),
        "sglang.bench_serving" => shortest(args, &mut f),
        _ => {}
    }
    f
}

/// SGLang's client draws random lengths between a share of the stated length, which is zero by default, and the stated
/// length. That of vLLM draws them around the stated length, which is then the mean.
fn shortest(args: &Args, f: &mut ReadFields) {
    let Some(dataset) = args.flag(&["dataset_name"]) else { return };
    if !matches!(dataset.text().as_deref(), Some("random" | "random-ids" | "image")) {
        return;
    }
    match args.flag(&["random_range_ratio"]) {
        Some(ratio) => drop(f.float(Field::Shortest, ratio)),
        None => f.fields.set_implied(Field::Shortest, 0.0, dataset.line),
    }
}

/// GuideLLM states the lengths in one setting, and the meaning of its rates in another.
fn guidellm(args: &Args, f: &mut ReadFields) {
    if let Some(n) = args.flag(&["data"])
        && let Some(text) = n.text()
    {
        let plain = text.trim().trim_matches(['{', '}']).replace(['"', '\'', ' '], "");
        for (key, value) in plain.split(',').filter_map(|pair| pair.split_once(['=', ':'])) {
            if matches!(key, "prompt_tokens" | "output_tokens") {
                flag(key, &Node::str(value, n.line), f);
            }
        }
    }
    let kind = args.flag(&["rate_type", "profile"]).and_then(Node::text);
    let Some(rates) = args.flag(&["rate"]) else { return };
    match kind.as_deref() {
        Some("concurrent") => drop(counts(Field::Concurrency, rates, f)),
        Some("constant" | "poisson" | "async") => drop(rate(f, rates)),
        _ => {}
    }
}

/// Whether the document is a configuration of inference-perf.
pub(crate) fn is_inference_perf(doc: &Node) -> bool {
    doc.at("load.stages").is_some() && (doc.has("server") || doc.has("api"))
}

/// Reads a configuration of inference-perf.
pub(crate) fn inference_perf(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Benchmark, doc.line);
    out.fields.set(Field::ToolName, "inference-perf", doc.line);
    if let Some(n) = doc.first(&["server.model_name", "tokenizer.pretrained_model_name_or_path"]) {
        super::model(out, n);
    }
    for (field, path) in
        [(Field::BenchmarkIsl, "data.input_distribution.mean"), (Field::BenchmarkOsl, "data.output_distribution.mean")]
    {
        out.int_at(field, doc, &[path]);
    }
    let stages = doc.at("load.stages").map(Node::list).unwrap_or(&[]);
    for (field, key) in [(Field::BenchmarkRequestRate, "rate"), (Field::BenchmarkConcurrency, "concurrency_level")] {
        let nodes: Vec<&Node> = stages.iter().filter_map(|s| s.get(key)).collect();
        let values: Vec<Json> = nodes.iter().map(|n| n.json()).collect();
        let Some(at) = nodes.first().map(|n| n.line) else { continue };
        match values.as_slice() {
            [one] if field == Field::BenchmarkRequestRate => out.fields.set(field, one.clone(), at),
            _ => out.fields.set(field, values, at),
        }
    }
}

/// Combines the clients of a file. A single client sets `benchmark`; clients that differ become variants.
pub(crate) fn combine_clients(clients: Vec<ReadFields>, own_model: bool, out: &mut ReadFields) {
    let mut runs: Vec<Fields> = Vec::new();
    for mut c in clients {
        out.missing.extend(std::mem::take(&mut c.missing));
        if let Some(e) = c.fields.remove(Field::Model) {
            c.fields.remove(Field::ModelPath);
            if own_model && !out.fields.has(Field::Model) {
                out.fields.put(e);
            }
        }
        if !c.fields.is_empty() && !runs.contains(&c.fields) {
            runs.push(c.fields);
        }
    }
    // Runs that differ only in concurrency, and in a matching number of prompts, are one benchmark with a list. The
    // same applies to runs that differ only in the rate.
    let looped = runs.len() > 1 && runs.iter().all(|r| r.int(Field::Concurrency).is_some());
    let rated = !looped && runs.len() > 1 && runs.iter().all(|r| r.has(Field::RequestRate));
    let without = |f: &Fields| {
        let mut f = f.clone();
        f.remove(Field::Concurrency);
        if looped {
            f.remove(Field::NumPrompts);
        }
        if rated {
            f.remove(Field::RequestRate);
        }
        f.iter().map(|e| (e.key, e.value.clone())).collect::<Vec<_>>()
    };
    if let Some(first) = runs.first().cloned() {
        let base = without(&first);
        if runs.iter().all(|r| without(r) == base) {
            let several = |value: &Json| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
            let all = |key: Field| -> Vec<Json> {
                runs.iter().filter_map(|r| r.entry(key)).flat_map(|e| several(&e.value)).collect()
            };
            let shared =
                |key: Field| runs.iter().all(|r| r.entry(key).map(|e| &e.value) == first.entry(key).map(|e| &e.value));
            for e in first.iter().filter(|e| e.key != Field::Concurrency && shared(e.key)) {
                set_for_job(e, &mut out.fields);
            }
            let list = all(Field::Concurrency);
            if list.iter().all(Json::is_i64) && !list.is_empty() {
                out.fields.set(Field::BenchmarkConcurrency, json!(list), first.at(Field::Concurrency));
            }
            if rated && !shared(Field::RequestRate) {
                out.fields.set(
                    Field::BenchmarkRequestRate,
                    json!(all(Field::RequestRate)),
                    first.at(Field::RequestRate),
                );
            }
            // The variants state which number of prompts belongs to which concurrency.
            if !shared(Field::NumPrompts) {
                out.variants.extend(runs);
            }
            return;
        }
    }
    out.variants.extend(runs);
}

/// Sets a setting of the client for the whole job.
pub(crate) fn set_for_job(entry: &Entry, job: &mut Fields) {
    if let Some(field) = entry.key.in_benchmark() {
        job.set(field, entry.value.clone(), entry.at);
    }
}

/// Names of the arguments that a script requires, from its usage text, where they are in angle brackets.
pub(crate) fn usage_args(text: &str) -> Vec<String> {
    let line = text
        .lines()
        .filter(|l| l.contains('<') && l.contains('>') && !l.contains("<<") && !l.contains("#SBATCH"))
        .max_by_key(|l| (l.matches('<').count(), std::cmp::Reverse(l.contains("echo"))));
    let Some(line) = line else { return Vec::new() };
    let mut out = Vec::new();
    for part in line.split('<').skip(1) {
        if let Some((name, _)) = part.split_once('>') {
            let fine = !name.is_empty() && name.len() < 60 && !unknown::is_in(name);
            if fine && !out.iter().any(|n| n == name) {
                out.push(name.to_owned());
            }
        }
    }
    out
}
