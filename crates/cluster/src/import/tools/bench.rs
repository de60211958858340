//! Benchmark clients: what they send, and to which server.

use serde_json::{Value as Json, json};

use crate::import::argv::Args;
use crate::import::fields::{Fields, Out};
use crate::import::names::snake;
use crate::import::unknown;
use crate::import::value::Node;

/// Reads one flag or key of a client into its own record.
pub(crate) fn flag(key: &str, node: &Node, f: &mut Out) -> bool {
    match key {
        "model" | "m" => super::model(f, node),
        "num_prompts" | "num_prompt" | "num_requests" | "request_count" | "n_requests" => f.int("num_prompts", node),
        "request_rate" | "qps" | "req_rate" => rate(f, node),
        "max_concurrency" | "concurrency" | "num_concurrent" => f.int("concurrency", node),
        "random_input_len"
        | "random_input"
        | "input_len"
        | "isl"
        | "synthetic_input_tokens_mean"
        | "prompt_tokens"
        | "random_input_length"
        | "input_length" => f.int("isl", node),
        "random_output_len"
        | "random_output"
        | "output_len"
        | "osl"
        | "output_tokens_mean"
        | "output_tokens"
        | "random_output_length"
        | "output_length"
        | "sharegpt_output_len" => f.int("osl", node),
        "dataset_name" => {
            if let Some(t) = node.text().filter(|t| t != "random") {
                f.set("dataset", t, node.line);
            }
            true
        }
        _ => true,
    }
}

fn rate(f: &mut Out, node: &Node) -> bool {
    match node.text().as_deref() {
        Some("inf" | "Infinity" | ".inf") => f.set("request_rate", "inf", node.line),
        _ => f.float("request_rate", node),
    }
}

/// Reads a client's command.
pub(crate) fn command(args: &Args) -> Out {
    let mut f = Out::default();
    for a in &args.flags {
        flag(&snake(&a.name), &a.node, &mut f);
    }
    f
}

/// Puts the clients of a file together: one gives `benchmark`, several that differ give variants.
pub(crate) fn settle(clients: Vec<Out>, own_model: bool, out: &mut Out) {
    let mut runs: Vec<Fields> = Vec::new();
    for mut c in clients {
        out.missing.extend(std::mem::take(&mut c.missing));
        if let Some(e) = c.fields.remove("model") {
            c.fields.remove("model_path");
            if own_model && !out.fields.has("model") {
                out.fields.put(e);
            }
        }
        if !c.fields.is_empty() && !runs.contains(&c.fields) {
            runs.push(c.fields);
        }
    }
    // A loop over the concurrency only is one benchmark with a list.
    let without = |f: &Fields| {
        let mut f = f.clone();
        f.remove("concurrency");
        f.iter().map(|e| (e.key.clone(), e.value.clone())).collect::<Vec<_>>()
    };
    if let Some(first) = runs.first().cloned() {
        let base = without(&first);
        if runs.iter().all(|r| without(r) == base) {
            let list: Vec<Json> = runs.iter().filter_map(|r| r.entry("concurrency").map(|e| e.value.clone())).collect();
            for e in first.iter() {
                let key = format!("benchmark.{}", e.key);
                if e.key != "concurrency" {
                    out.fields.set(&key, e.value.clone(), e.at);
                }
            }
            if list.iter().all(Json::is_i64) && !list.is_empty() {
                out.fields.set("benchmark.concurrency", json!(list), first.at("concurrency"));
            }
            return;
        }
    }
    out.variants.extend(runs);
}

/// The arguments that a script asks for, from its usage text: the names in angle brackets.
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
