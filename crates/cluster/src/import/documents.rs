//! Determines the tool to which a YAML, JSON or TOML document belongs.

use super::fields::ReadFields;
use super::names::snake;
use super::tools::serving::Engine;
use super::tools::{
    accelerate, bench, compose, deepspeed, dynamo_graph, finetune, litgpt, llm_foundry, maxtext, mlperf, nanotron,
    nemo, neuron, primus, ray, roles, sglang, srtslurm, torchtitan, torchtune, trtllm, trtllm_disaggregated, vllm,
};
use super::value::{Node, Value};
use crate::import::place::Place;
use crate::import::{Field, Kind};

/// Reads a document that is not a Kubernetes manifest. Returns `None` if no tool is recognized.
pub(crate) fn document(doc: &Node, name: &str) -> Option<ReadFields> {
    let mut out = ReadFields::default();
    if !doc.list().is_empty() {
        return list(doc, out);
    }
    let has = |k: &str| doc.has(k);
    let keys: Vec<String> = doc.map().iter().map(|(k, _)| snake(k)).collect();
    if primus::module(doc).is_some() {
        primus::document(doc, &mut out);
    } else if has("services") && doc.get("services").is_some_and(Node::is_map) {
        compose::document(doc, &mut out);
    } else if dynamo_graph::looks_like(doc) {
        dynamo_graph::document(doc, &mut out);
    } else if srtslurm::looks_like(doc) {
        srtslurm::document(doc, &mut out);
    } else if has("context_servers") || has("generation_servers") {
        trtllm_disaggregated::document(doc, &mut out);
    } else if let Some(args) = doc.get("MODEL_ARGS").filter(|n| n.is_map()) {
        out.fields.set(Field::Kind, Kind::Training, args.line);
        out.fields.set(Field::Framework, "megatron-lm", args.line);
        for (k, v) in args.map() {
            super::tools::megatron::flag(&snake(k), v, &mut out);
        }
    } else if bench::is_inference_perf(doc) {
        bench::inference_perf(doc, &mut out);
    } else if has("vllm_engine_config") {
        mlperf::harness(doc, &mut out);
    } else if has("tests") && has("defaults") {
        perf_tests(doc, &mut out);
    } else if (has("applications") || has("llm_configs")) && ray::looks_like(doc) {
        ray::document(doc, &mut out);
    } else if has("models") && doc.at("models").is_some_and(|m| m.map().iter().any(|(_, v)| v.has("cmd"))) {
        llama_swap(doc, &mut out);
    } else if has("distributed_strategy") {
        neuron::document(doc, &mut out);
    } else if has("parallelism") && (has("tokens") || has("data_stages")) {
        nanotron::document(doc, &mut out);
    } else if accelerate::looks_like(doc) {
        accelerate::document(doc, &mut out);
    } else if deepspeed::is_neox(doc) {
        deepspeed::neox(doc, &mut out);
    } else if deepspeed::looks_like(doc) {
        deepspeed::document(doc, &mut out);
    } else if has("deepspeed") && doc.at("model.name_or_path").is_some() {
        finetune::arctic(doc, &mut out);
    } else if llm_foundry::section(doc).is_some() {
        llm_foundry::document(doc, &mut out);
    } else if torchtune::looks_like(doc) {
        torchtune::document(doc, &mut out);
    } else if has("base_model") {
        finetune::axolotl(doc, &mut out);
    } else if has("model_name_or_path") {
        finetune::trainer(doc, &mut out);
    } else if litgpt::looks_like(doc) {
        litgpt::document(doc, &mut out);
    } else if (has("trainer") && has("model")) || doc.at("model.tensor_model_parallel_size").is_some() {
        nemo::document(doc, &mut out);
        if !has("trainer") && (has("train") || has("dataset") || has("ddp")) {
            bridge_sections(doc, &mut out);
        }
    } else if doc.at("train.global_batch_size").is_some() || doc.at("train.micro_batch_size").is_some() {
        bridge_sections(doc, &mut out);
    } else if torchtitan::looks_like(doc) {
        torchtitan::document(doc, &mut out);
    } else if maxtext::looks_like(doc) {
        maxtext::document(doc, &mut out);
    } else if has("serve") && doc.get("serve").is_some_and(|n| !n.list().is_empty()) {
        return doc.get("serve").and_then(|n| list(n, out));
    } else if has("engine_args") {
        return list(&Node::new(Value::List(vec![doc.clone()]), doc.line), out);
    } else if doc.at("system.tensor_model_parallel_size").is_some() || (has("system") && has("model") && has("data")) {
        flagscale_train(doc, &mut out);
    } else if trtllm::looks_like(&keys) {
        engine_file(Engine::Trtllm, doc, &mut out);
    } else if sglang::looks_like(&keys) {
        engine_file(Engine::Sglang, doc, &mut out);
    } else if vllm::looks_like(&keys) {
        engine_file(Engine::Vllm, doc, &mut out);
    } else if keys.iter().any(|k| k == "tp_size" || k == "tensor_parallel_size" || k == "tp") {
        let by_key = keys.iter().find_map(|k| Engine::named(k));
        let by_name = by_key.or_else(|| Engine::named(name)).unwrap_or(Engine::Vllm);
        engine_file(by_name, doc, &mut out);
    } else if keys.iter().any(|k| k == "tensor_model_parallel_size" || k == "micro_batch_size") {
        out.fields.set(Field::Kind, Kind::Training, Place::NONE);
        out.fields.set(Field::Framework, "megatron-lm", Place::NONE);
        for (k, v) in doc.map() {
            super::tools::megatron::flag(&snake(k), v, &mut out);
        }
    } else {
        return None;
    }
    (!out.fields.is_empty()).then_some(out)
}

/// Reads overrides of Megatron-Bridge in YAML form.
fn bridge_sections(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "megatron-bridge", Place::NONE);
    doc.for_each_leaf(&mut |path, leaf| {
        let key = path.rsplit('.').next().unwrap_or(path);
        if leaf.value != Value::Null && !path.starts_with("checkpoint") && !path.starts_with("logger") {
            super::tools::bridge::setting(&snake(key), leaf, out);
        }
    });
}

/// Reads FlagScale's training files, which have Megatron's keys in sections.
fn flagscale_train(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "flagscale", Place::NONE);
    doc.for_each_leaf(&mut |path, leaf| {
        let key = path.rsplit('.').next().unwrap_or(path);
        if leaf.value != Value::Null && !path.starts_with("experiment") {
            super::tools::megatron::flag(&snake(key), leaf, out);
        }
    });
}

/// Reads a file with the flags of one engine.
fn engine_file(engine: Engine, doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Serving, Place::NONE);
    out.fields.set(Field::Framework, engine.framework(), Place::NONE);
    engine.keys(doc, out);
    let manifest = match engine {
        Engine::Vllm => Some("vllm --config"),
        Engine::Sglang if !out.fields.has(Field::Role) => Some("serving-args"),
        Engine::Trtllm if doc.has("llm_api_args") => Some("llm_api_args"),
        _ => None,
    };
    if let Some(m) = manifest {
        out.fields.set(Field::Manifest, m, Place::NONE);
    }
    if out.fields.has(Field::Role) {
        out.fields.set(Field::Orchestrator, "dynamo", Place::NONE);
    }
    engine.finish(out);
    engine.count(out);
}

/// Reads FlagScale's list of servers, or a list of benchmark tests.
fn list(doc: &Node, mut out: ReadFields) -> Option<ReadFields> {
    let first = doc.list().first()?;
    if first.has("server_parameters") || first.has("test_name") || first.has("parameters") {
        let wrapped = Node::new(Value::Map(vec![("tests".to_owned(), doc.clone())]), doc.line);
        perf_tests(&wrapped, &mut out);
        return Some(out);
    }
    let entries: Vec<&Node> = doc.list().iter().filter(|n| n.has("engine_args") || n.has("engine")).collect();
    let s = entries.first()?;
    let word = s.get("engine").and_then(Node::text).unwrap_or_else(|| "vllm".to_owned());
    let engine = Engine::named(&word)?;
    out.fields.set(Field::Kind, Kind::Serving, s.line);
    out.fields.set(Field::Framework, engine.framework(), s.get("engine").map_or(s.line, |n| n.line));
    for path in ["engine_args".to_owned(), format!("engine_args_specific.{word}")] {
        if let Some(m) = s.at(&path) {
            engine.keys(m, &mut out);
        }
    }
    for (path, key) in [
        ("profile.input_len", Field::BenchmarkIsl),
        ("profile.output_len", Field::BenchmarkOsl),
        ("profile.num_prompts", Field::BenchmarkNumPrompts),
    ] {
        out.int_at(key, s, &[path]);
    }
    engine.finish(&mut out);
    engine.count(&mut out);
    Some(out)
}

/// Reads llama-swap's configuration, which has one command per model.
fn llama_swap(doc: &Node, out: &mut ReadFields) {
    let mut engines = Vec::new();
    for (name, m) in doc.get("models").map(Node::map).unwrap_or(&[]) {
        let Some(cmd) = m.get("cmd") else { continue };
        // llama-swap joins the lines into one command.
        let words = super::split_command(&super::shell::Text::new(
            &cmd.word().replace("\\\n", " ").replace('\n', " "),
            cmd.line,
        ));
        let Some(p) = super::program::find(&words) else { continue };
        let Some(engine) = p.engine() else { continue };
        let mut o = ReadFields::default();
        engine.command(&super::argv::parse(words.get(p.args..).unwrap_or(&[])), &mut o);
        for e in m.get("env").map(Node::list).unwrap_or(&[]) {
            if let Some((k, v)) = e.raw().and_then(|t| t.split_once('=')) {
                super::variables::count_visible(k, &super::shell::Text::new(v, e.line), &mut o);
            }
        }
        engine.finish(&mut o);
        o.fields.remove(Field::Kind);
        o.fields.remove(Field::Framework);
        let mut v = super::fields::Fields::default();
        v.set(Field::Name, name.as_str(), m.line);
        v.copy_missing(&o.fields);
        out.variants.push(v);
        out.unrecognized.append(&mut o.unrecognized);
        engines.push(engine);
    }
    if let Some(e) = engines.first() {
        out.fields.set(Field::Kind, Kind::Serving, doc.line);
        out.fields.set(Field::Framework, e.framework(), doc.line);
        if *e == Engine::LlamaCpp {
            out.fields.set(Field::Launcher, "llama-server", doc.line);
        }
    }
}

/// Reads vLLM's benchmark tests: defaults and a list.
fn perf_tests(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Benchmark, doc.line);
    out.fields.set(Field::Framework, "vllm", doc.line);
    let read = |n: &Node| {
        let mut server = ReadFields::default();
        for (k, v) in n.first(&["server_parameters", "parameters"]).map(Node::map).unwrap_or(&[]) {
            if matches!(
                snake(k).as_str(),
                "num_prompts" | "input_len" | "output_len" | "num_iters" | "num_iters_warmup" | "backend"
            ) {
                continue;
            }
            Engine::Vllm.flag(k, &empty_is_flag(v), &mut server);
        }
        Engine::Vllm.finish(&mut server);
        let mut client = ReadFields::default();
        for (k, v) in n.first(&["client_parameters", "parameters"]).map(Node::map).unwrap_or(&[]) {
            bench::flag(&snake(k), v, &mut client);
        }
        client.fields.remove(Field::Model);
        client.fields.remove(Field::ModelPath);
        (server, client)
    };
    let mut base_model = None;
    if let Some(d) = doc.get("defaults") {
        let (server, client) = read(d);
        base_model = server.fields.str(Field::Model).map(str::to_owned);
        out.fields.copy_missing(&server.fields);
        client.fields.iter().for_each(|e| bench::set_for_job(e, &mut out.fields));
        sweep(d, [Field::BenchmarkRequestRate, Field::BenchmarkConcurrency], &mut out.fields);
    }
    for t in doc.get("tests").map(Node::list).unwrap_or(&[]) {
        let (server, client) = read(t);
        let mut v = super::fields::Fields::default();
        if let Some(n) = t.get("test_name").or(t.get("name")) {
            v.set(Field::Name, n.text().unwrap_or_default(), n.line);
        }
        v.copy_missing(&server.fields);
        if v.str(Field::Model).map(str::to_owned) == base_model {
            v.remove(Field::Model);
        }
        if let Some(e) = out.fields.entry(Field::Tp) {
            v.set_implied(Field::Tp, e.value.clone(), e.at);
        }
        v.copy_missing(&client.fields);
        if doc.get("defaults").is_none() {
            sweep(t, [Field::RequestRate, Field::Concurrency], &mut v);
        }
        out.unrecognized.extend(server.unrecognized);
        out.variants.push(v);
    }
}

/// Reads the lists of rates and concurrencies.
fn sweep(n: &Node, [rate, concurrency]: [Field; 2], f: &mut super::fields::Fields) {
    if let Some(q) = n.get("qps_list") {
        let list: Vec<serde_json::Value> = q.list().iter().map(Node::json).collect();
        match list.as_slice() {
            [one] => f.set(rate, one.clone(), q.line),
            [] => {}
            _ => f.set(rate, list, q.line),
        }
    }
    if let Some(c) = n.get("max_concurrency_list") {
        let list: Vec<serde_json::Value> = c.list().iter().map(Node::json).collect();
        f.set(concurrency, list, c.line);
    }
}

fn empty_is_flag(n: &Node) -> Node {
    match &n.value {
        Value::Str(s) if s.is_empty() => Node::new(Value::Flag, n.line),
        _ => n.clone(),
    }
}

/// Derives the role of a server from the file name.
pub(crate) fn role_in_name(name: &str, out: &mut ReadFields) {
    if out.fields.has(Field::Role) || !out.roles.is_empty() || out.fields.kind() != Some(Kind::Serving) {
        return;
    }
    let base = name.rsplit('/').next().unwrap_or(name);
    let words: Vec<&str> = base.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let trt = out.fields.str(Field::Framework) == Some("tensorrt-llm");
    let word = words.iter().find_map(|w| match *w {
        "ctx" | "context" if trt => Some("prefill"),
        "gen" | "generation" if trt => Some("decode"),
        w => roles::role(w).filter(|_| matches!(w, "prefill" | "decode")),
    });
    if let Some(r) = word {
        out.fields.set_implied(Field::Role, r, Place::NONE);
    }
}
