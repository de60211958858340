//! MaxText: YAML configurations, and `key=value` arguments of the trainer.

use crate::import::argv::{self, Args};
use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::place::Place;
use crate::import::shell::Text;
use crate::import::unknown;
use crate::import::value::Node;
use crate::import::{Field, Kind};

/// Whether the keys are those of MaxText.
pub(crate) fn looks_like(doc: &Node) -> bool {
    doc.has("per_device_batch_size")
        || doc.has("max_target_length")
        || doc
            .map()
            .iter()
            .any(|(k, _)| (k.starts_with("ici_") || k.starts_with("dcn_")) && k.ends_with("_parallelism"))
}

/// Reads a configuration file.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "maxtext", Place::NONE);
    keys(doc.map(), out);
}

/// Reads keys, and derives the sizes that follow from the mesh.
pub(crate) fn keys(entries: &[(String, Node)], out: &mut ReadFields) {
    let mut gpu = None;
    for (k, v) in entries {
        let known = match k.as_str() {
            "model_name" => {
                if let Some(t) = v.text().filter(|t| t != "default") {
                    out.set(Field::Model, t, v.line);
                }
                true
            }
            "per_device_batch_size" => out.float(Field::MicroBatch, v),
            "max_target_length" => out.int(Field::SeqLen, v),
            "global_batch_size_to_train_on" => out.int(Field::GlobalBatch, v),
            "gradient_accumulation_steps" => out.int(Field::GradAccum, v),
            "remat_policy" => match v.text().as_deref() {
                Some("full") => out.set(Field::Recompute, "full", v.line),
                Some(policy) => {
                    out.set(Field::RematPolicy, policy, v.line);
                    out.set(Field::Recompute, "selective", v.line)
                }
                None if v.shown().as_deref() == Some("none") => out.set(Field::Recompute, "none", v.line),
                None => {
                    out.record_unset_variables(v);
                    true
                }
            },
            "shard_optimizer_over_data" => {
                if v.switch() == Some(true) {
                    out.fields.set_implied(Field::Sharding, "zero1", v.line);
                }
                true
            }
            "quantization" => match v.text() {
                Some(t) if t.contains("fp8") => out.set(Field::Precision, "fp8", v.line),
                // With `int8`, matrix multiplications also run in int8. Other values are formats of the weights only.
                Some(t) if t == "int8" => {
                    out.set(Field::Precision, "int8", v.line);
                    out.set(Field::Quantization, t, v.line)
                }
                Some(t) => out.set(Field::Quantization, t, v.line),
                None => true,
            },
            "dtype" => match out.fields.str(Field::Precision) {
                Some("fp8" | "int8") => true,
                _ => super::precision(out, v),
            },
            "hardware" => {
                gpu = Some(v.text().is_some_and(|t| t.starts_with("gpu")));
                true
            }
            "compile_topology" => {
                if let Some(a) = v.text().as_deref().and_then(names::accelerator_in) {
                    out.set(Field::Accelerator, a, v.line);
                }
                true
            }
            "optimizer_memory_host_offload" | "parameter_memory_host_offload" => {
                let field = if k.starts_with("optimizer") { Field::OffloadOptimizer } else { Field::OffloadParams };
                out.set_if_on(field, "cpu", v)
            }
            "num_experts" => v.int().is_some_and(|n| n < 2) || out.int(Field::ArchitectureNumExperts, v),
            "num_experts_per_tok" => out.int(Field::ArchitectureMoeTopk, v),
            "kv_quant_dtype" => super::kv(out, v),
            "opt_type" => {
                if let Some(t) = v.text() {
                    out.set(Field::Optimizer, t.to_ascii_lowercase(), v.line);
                }
                true
            }
            "adam_b1" | "adam_b2" => {
                out.fields.set_implied(Field::Optimizer, "adam", v.line);
                true
            }
            "base_config" => {
                base_config(&v.text().unwrap_or_default(), v.line, out);
                true
            }
            _ => axis(k, v, out) || !k.contains("parallelism"),
        };
        if !known {
            out.unrecognized.push((k.clone(), v.line));
        }
    }
    mesh(gpu, out);
    let of = |key: &str| entries.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v);
    let chips = of("compile_topology").and_then(|n| Some((chips(&n.text()?)?, n.line)));
    let slices = of("compile_topology_num_slices").and_then(Node::int).unwrap_or(1).max(1);
    if let Some((chips, line)) = chips {
        out.fields.set_implied(Field::NumAccelerators, chips.saturating_mul(slices), line);
    }
}

/// Number of chips of a slice such as `v6e-256`. Up to v5p, the number in the name counts the two cores of each chip.
fn chips(topology: &str) -> Option<i64> {
    let (generation, count) = topology.rsplit_once('-')?;
    let count: i64 = count.parse().ok()?;
    match generation.to_ascii_lowercase().as_str() {
        "v2" | "v3" | "v4" | "v5p" => Some(count / 2),
        "v5e" | "v6e" | "tpu7x" => Some(count),
        _ => None,
    }
}

/// Reads a mesh axis: `ici_fsdp_parallelism` becomes `ici.fsdp`.
fn axis(key: &str, node: &Node, out: &mut ReadFields) -> bool {
    let Some(body) = key.strip_suffix("_parallelism") else { return false };
    for net in ["ici", "dcn"] {
        if let Some(name) = body.strip_prefix(net).and_then(|r| r.strip_prefix('_')) {
            return Field::in_section(net, name).is_some_and(|field| out.int(field, node));
        }
    }
    false
}

fn base_config(path: &str, at: Place, out: &mut ReadFields) {
    let base = path.rsplit('/').next().unwrap_or(path);
    if matches!(base, "base.yml" | "base.yaml" | "") {
        return;
    }
    let short = path.find("models/").and_then(|i| path.get(i..)).unwrap_or(base);
    out.fields.set(Field::BaseConfig, short, at);
    let stem = base.trim_end_matches(".yml").trim_end_matches(".yaml");
    out.fields.set_implied(Field::Model, stem, at);
}

/// Derives sizes from the mesh axes. A product is only known if all its axes are.
fn mesh(gpu: Option<bool>, out: &mut ReadFields) {
    let mesh = |field: Field| field.section().0.filter(|section| matches!(*section, "ici" | "dcn"));
    let Some(at) = out.fields.iter().find(|e| mesh(e.key).is_some()).map(|e| e.at) else { return };
    // Network, name and size of each axis.
    let axes: Vec<(&str, &str, Option<i64>)> =
        out.fields.iter().filter_map(|e| Some((mesh(e.key)?, e.key.section().1, e.value.as_i64()))).collect();
    let product = |belongs: &dyn Fn(&str, &str) -> bool| -> Option<i64> {
        let mut own = axes.iter().filter(|(network, axis, _)| belongs(network, axis));
        own.try_fold(1_i64, |all, (.., size)| all.checked_mul(size.filter(|n| *n > 0)?))
    };
    let has = |name: &str| axes.iter().any(|(network, ..)| *network == name);
    let (ici, dcn) = (product(&|network, _| network == "ici"), product(&|network, _| network == "dcn"));
    let along = |name: &str| product(&|_, axis| axis == name);
    let (data, fsdp) = (along("data"), along("fsdp"));
    // An axis of -1 takes the remaining devices.
    let wide = |name: &str| axes.iter().any(|(_, axis, size)| *axis == name && size.is_some_and(|n| n > 1 || n == -1));
    match (wide("data"), wide("fsdp")) {
        (true, true) => out.fields.set_implied(Field::Sharding, "hsdp", at),
        (false, true) => out.fields.set_implied(Field::Sharding, "zero3", at),
        _ => {}
    }
    for (name, field) in [("tensor", Field::Tp), ("expert", Field::Ep), ("context", Field::Cp), ("pipeline", Field::Pp)]
    {
        if axes.iter().any(|(_, axis, _)| *axis == name)
            && let Some(n) = along(name)
        {
            out.fields.set_implied(field, n, at);
        }
    }
    let (Some(ici), Some(dcn)) = (ici, dcn) else { return };
    let Some(all) = ici.checked_mul(dcn) else { return };
    out.fields.set_implied(Field::NumAccelerators, all, at);
    // On GPUs the ICI mesh is one node; a TPU slice spans many hosts.
    let known_gpu = gpu.unwrap_or(has("dcn") && ici <= 8);
    if known_gpu && has("dcn") && has("ici") {
        out.fields.set_implied(Field::Nodes, dcn, at);
        out.fields.set_implied(Field::AcceleratorsPerNode, ici, at);
    }
    if let (Some(d), Some(f)) = (data, fsdp)
        && let Some(dp) = d.checked_mul(f)
    {
        out.fields.set_implied(Field::Dp, dp, at);
    }
    global_batch(all, at, out);
}

/// Reads the trainer's command line.
pub(crate) fn command(args: &Args, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Training, Place::NONE);
    out.fields.set(Field::Framework, "maxtext", Place::NONE);
    out.fields.set(Field::Launcher, "python", Place::NONE);
    for w in &args.positional {
        if w.as_str().ends_with(".yml") || w.as_str().ends_with(".yaml") {
            base_config(&unknown::shown(w.as_str()), w.line(), out);
            out.references.push((unknown::shown(w.as_str()), w.line()));
        }
    }
    keys(&args.overrides, out);
}

/// Reads the slices and nodes that `xpk workload create` requests, from the words before the trainer.
pub(crate) fn submitted(before: &[Text], out: &mut ReadFields) {
    let args = argv::parse(before);
    let slices = args.flag(&["num_slices"]).and_then(Node::int).unwrap_or(1).max(1);
    if let Some(n) = args.flag(&["tpu_type"])
        && let Some(t) = n.text()
    {
        if let Some(a) = names::accelerator_in(&t) {
            out.fields.set_implied(Field::Accelerator, a, n.line);
        }
        if let Some(all) = chips(&t).and_then(|c| c.checked_mul(slices)) {
            out.fields.set_implied(Field::NumAccelerators, all, n.line);
            global_batch(all, n.line, out);
        }
    }
    if let Some(n) = args.flag(&["device_type"])
        && let Some(t) = n.text()
    {
        if let Some(a) = names::accelerator_in(&t) {
            out.fields.set_implied(Field::Accelerator, a, n.line);
        }
        if let Some(count) = t.rsplit('-').next().and_then(crate::import::value::parse_int) {
            out.fields.set_implied(Field::AcceleratorsPerNode, count, n.line);
        }
    }
    if let Some(n) = args.flag(&["num_nodes"]) {
        out.int(Field::Nodes, n);
    }
}

/// Derives the global batch size for a number of devices.
fn global_batch(devices: i64, at: Place, out: &mut ReadFields) {
    let accum = out.fields.int(Field::GradAccum).unwrap_or(1);
    if let Some(g) = out.fields.int(Field::MicroBatch).and_then(|m| m.checked_mul(devices)?.checked_mul(accum)) {
        out.fields.set_implied(Field::GlobalBatch, g, at);
    }
}

/// MaxText's scripts per TPU generation call a base script with batch, remat policy and the three axes, in this order.
const BASE_SCRIPT_ARGS: &[&str] = &[
    "per_device_batch_size",
    "remat_policy",
    "ici_data_parallelism",
    "ici_fsdp_parallelism",
    "ici_tensor_parallelism",
];

/// Reads a call of `…_base.sh` with positional arguments.
pub(crate) fn base_script(words: &[Text], out: &mut ReadFields) -> bool {
    let Some(at) = words.iter().position(|w| argv::base(w.as_str()).ends_with("_base.sh")) else { return false };
    let (Some(script), Some(args)) = (words.get(at), words.get(at + 1..)) else { return false };
    let numeric = |i: usize| args.get(i).is_some_and(|w| w.as_str().parse::<f64>().is_ok());
    if !(numeric(0) && numeric(2) && numeric(3) && numeric(4)) {
        return false;
    }
    out.fields.set(Field::Kind, Kind::Training, script.line());
    out.fields.set(Field::Framework, "maxtext", script.line());
    out.fields.set(Field::Launcher, "shell", script.line());
    let shown: Vec<&str> = args.iter().take(BASE_SCRIPT_ARGS.len()).map(Text::as_str).collect();
    out.fields.set(Field::Calls, format!("{} {}", argv::base(script.as_str()), shown.join(" ")), script.line());
    let entries: Vec<(String, Node)> =
        BASE_SCRIPT_ARGS.iter().zip(args).map(|(k, w)| ((*k).to_owned(), Node::str(w.as_str(), w.line()))).collect();
    keys(&entries, out);
    true
}
