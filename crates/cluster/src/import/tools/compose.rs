//! docker-compose files.

use crate::import::argv;
use crate::import::fields::{Entry, ReadFields};
use crate::import::place::Place;
use crate::import::shell::Text;
use crate::import::value::{Node, Value};
use crate::import::{Field, Kind};

use super::roles;
use super::serving::Engine;

/// Reads the services, and counts those that serve a model.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    let mut servers: Vec<(String, ReadFields)> = Vec::new();
    for (name, s) in doc.get("services").map(Node::map).unwrap_or(&[]) {
        if let Some(o) = service(s) {
            servers.push((name.clone(), o));
        }
    }
    let copies: Vec<i64> =
        servers.iter_mut().map(|(_, o)| o.fields.remove(Field::Replicas).map_or(1, copies_of)).collect();
    let all = copies.iter().fold(0_i64, |all, n| all.saturating_add(*n));
    let Some((_, first)) = servers.first().cloned() else { return };
    let key = |o: &ReadFields| o.fields.iter().map(|e| (e.key, e.value.clone())).collect::<Vec<_>>();
    for (_, o) in &servers {
        for m in &o.missing {
            if !out.missing.iter().any(|(n, _)| *n == m.0) {
                out.missing.push(m.clone());
            }
        }
        out.unrecognized.extend(o.unrecognized.iter().cloned());
    }
    let identical = servers.iter().all(|(_, o)| key(o) == key(&first));
    if !out.missing.is_empty() {
        let names: Vec<String> = out.missing.iter().map(|(n, _)| n.clone()).collect();
        let at = out.missing.first().map_or(Place::NONE, |m| m.1);
        out.fields.set(Field::RequiredEnv, names, at);
    }
    if identical {
        out.fields.copy_missing(&first.fields);
        out.fields.set(Field::Replicas, all, doc.get("services").map_or(Place::NONE, |n| n.line));
        // A Neuron device has several cores, and tensor parallelism counts cores instead of devices.
        if let Some(n) = first.fields.int(Field::DevicesPerReplica) {
            let at = first.fields.at(Field::DevicesPerReplica);
            if first.fields.int(Field::Tp).is_none_or(|tp| tp <= n) {
                out.fields.set_implied(Field::NumAccelerators, n.saturating_mul(all), at);
            }
        }
        return;
    }
    for k in [Field::Kind, Field::Framework, Field::Accelerator] {
        if let Some(e) = first.fields.entry(k) {
            out.fields.put(e.clone());
        }
    }
    for (_, o) in &mut servers {
        if let Some(e) = o.fields.remove(Field::DevicesPerReplica) {
            o.fields.set(Field::NumAccelerators, e.value, e.at);
        }
    }
    let has_role = |(_, o): &(String, ReadFields), role: &str| o.fields.str(Field::Role) == Some(role);
    if ["prefill", "decode"].iter().all(|role| servers.iter().any(|s| has_role(s, role))) {
        let halves = servers.into_iter().filter_map(|(_, o)| Some((o.fields.str(Field::Role)?.to_owned(), o)));
        roles::disaggregated(halves.collect(), out);
        return;
    }
    let mut total = Some(0_i64);
    for ((name, mut o), copies) in servers.into_iter().zip(copies) {
        o.fields.remove(Field::Kind);
        o.fields.remove(Field::Framework);
        if copies > 1 {
            o.fields.set(Field::Replicas, copies, Place::NONE);
        }
        total =
            total.zip(o.fields.int(Field::NumAccelerators)).and_then(|(a, b)| a.checked_add(b.checked_mul(copies)?));
        let mut v = crate::import::fields::Fields::default();
        v.set(Field::Name, name, Place::NONE);
        v.copy_missing(&o.fields);
        out.variants.push(v);
    }
    if let Some(n) = total.filter(|n| *n > 0) {
        out.fields.set_implied(Field::NumAccelerators, n, doc.line);
    }
}

/// Number of replicas of a service, as stated by `deploy.replicas` or `scale`.
fn copies_of(stated: Entry) -> i64 {
    stated.value.as_i64().filter(|n| *n > 0).unwrap_or(1)
}

/// Reads one service, if it serves a model.
fn service(s: &Node) -> Option<ReadFields> {
    let image = s.get("image").and_then(Node::shown).unwrap_or_default();
    let mut out = ReadFields::default();
    let words = command_words(s);
    let argv_text: Vec<Text> = words.iter().map(|n| Text::new(&n.word(), n.line)).collect();
    let env: Vec<(String, Node)> = environment(s.get("environment"));
    let program = crate::import::program::find(&argv_text);
    if image.contains("ollama/ollama") {
        out.fields.set(Field::Kind, Kind::Serving, s.line);
        out.fields.set(Field::Framework, "ollama", s.get("image").map_or(s.line, |n| n.line));
        for (k, v) in &env {
            super::ollama::environment(k, v, &mut out);
        }
        devices(s, &mut out);
        return Some(out);
    }
    let by_image = Engine::named(&image);
    let engine = match (&program, by_image) {
        (Some(p), _) => p.engine()?,
        (None, Some(_)) if image.contains("router") || image.contains("webui") => return None,
        (None, Some(e)) => e,
        (None, None) => return None,
    };
    let args = match &program {
        Some(p) => argv::parse(argv_text.get(p.args..).unwrap_or(&[])),
        None => argv::parse(&argv_text),
    };
    engine.command(&args, &mut out);
    out.fields.set(Field::Kind, Kind::Serving, s.line);
    out.fields.set(Field::Framework, engine.framework(), s.get("image").map_or(s.line, |n| n.line));
    for (k, v) in &env {
        if let Some(key) = k.strip_prefix("SM_ON_").or(k.strip_prefix("SM_VLLM_")).or(k.strip_prefix("VLLM_ARG_")) {
            engine.flag(&key.to_ascii_lowercase(), v, &mut out);
        }
        if engine == Engine::Tgi {
            engine.flag(&k.to_ascii_lowercase(), v, &mut out);
        }
        engine.variable(k, v, &mut out);
        if matches!(k.as_str(), "CUDA_VISIBLE_DEVICES" | "NVIDIA_VISIBLE_DEVICES" | "HIP_VISIBLE_DEVICES")
            && let Some(t) = v.text().filter(|t| t != "all")
        {
            out.fields.set(Field::DevicesPerReplica, t.split(',').count() as i64, v.line);
        }
    }
    engine.image(&image, s.get("image").map_or(s.line, |n| n.line), &mut out);
    engine.finish(&mut out);
    devices(s, &mut out);
    if !out.fields.has(Field::DevicesPerReplica) {
        engine.count(&mut out);
        if let Some(e) = out.fields.remove(Field::NumAccelerators) {
            out.fields.set_implied(Field::DevicesPerReplica, e.value, e.at);
        }
    }
    Some(out)
}

fn devices(s: &Node, out: &mut ReadFields) {
    if let Some(n) = s.at("deploy.replicas").or(s.get("scale")) {
        out.int(Field::Replicas, n);
    }
    let listed = s.get("devices").map(Node::list).unwrap_or(&[]);
    let neuron = listed.iter().filter(|n| n.text().is_some_and(|t| t.starts_with("/dev/neuron"))).count();
    if neuron > 0 {
        out.fields.set(Field::DevicesPerReplica, neuron as i64, listed.first().map_or(Place::NONE, |n| n.line));
    }
    for d in s.at("deploy.resources.reservations.devices").map(Node::list).unwrap_or(&[]) {
        if let Some(n) = d.get("count").and_then(Node::int) {
            out.fields.set(Field::DevicesPerReplica, n, d.line);
        } else if let Some(ids) = d.get("device_ids") {
            out.fields.set(Field::DevicesPerReplica, ids.list().len() as i64, ids.line);
        }
    }
}

/// Reads `environment`, which is a list of `A=b` or a mapping.
fn environment(n: Option<&Node>) -> Vec<(String, Node)> {
    let Some(n) = n else { return Vec::new() };
    match &n.value {
        Value::Map(m) => m.clone(),
        Value::List(l) => l
            .iter()
            .filter_map(|n| {
                let (k, v) = n.raw()?.split_once('=')?;
                Some((k.to_owned(), Node::str(v, n.line)))
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Words of the entry point and the command, split if they are strings.
fn command_words(s: &Node) -> Vec<Node> {
    let mut out = Vec::new();
    for key in ["entrypoint", "command"] {
        let Some(n) = s.get(key) else { continue };
        match &n.value {
            Value::List(l) => out.extend(l.iter().cloned()),
            Value::Str(t) => {
                out.extend(
                    crate::import::split_command(&Text::new(t, n.line))
                        .into_iter()
                        .map(|w| Node::str(w.as_str(), w.line())),
                );
            }
            _ => {}
        }
    }
    // If a shell is started, its script is the command.
    if out.len() >= 3
        && out.get(1).and_then(Node::raw).is_some_and(|f| f.starts_with('-') && f.contains('c'))
        && let Some(script) = out.get(2).cloned()
    {
        let text = script.word();
        return crate::import::split_command(&Text::new(&text, script.line))
            .into_iter()
            .map(|w| Node::str(w.as_str(), w.line()))
            .collect();
    }
    out
}
