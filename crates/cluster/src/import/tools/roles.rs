//! The roles of servers in a disaggregated deployment: prefill and decode.

use crate::import::fields::ReadFields;

/// Maps the names of roles in engines and charts to `prefill` or `decode`.
pub(crate) fn role(word: &str) -> Option<&'static str> {
    let low = word.to_ascii_lowercase();
    if low.contains("prefill") || low.contains("kv_producer") {
        Some("prefill")
    } else if low.contains("decode") || low.contains("kv_consumer") {
        Some("decode")
    } else {
        None
    }
}

/// Fields that belong to the whole job instead of a role.
const SHARED: &[&str] = &[
    "kind",
    "framework",
    "model",
    "model_path",
    "accelerator",
    "weights_precision",
    "kv_precision",
    "precision",
    "quantization",
    "redundant_experts",
    "orchestrator",
    "manifest",
    "launcher",
    "role",
];

/// Combines the servers of a disaggregated deployment by their role.
pub(crate) fn disaggregated(servers: Vec<(String, ReadFields)>, out: &mut ReadFields) {
    let mut devices = Some(0_i64);
    for (role, mut o) in servers {
        devices = devices.zip(o.fields.int("num_accelerators")).and_then(|(a, b)| a.checked_add(b));
        out.strange.append(&mut o.strange);
        out.missing.append(&mut o.missing);
        if !out.roles.iter().any(|(known, _)| *known == role) {
            out.roles.push((role, o.fields));
        }
    }
    settle_roles(out);
    if let Some(n) = devices.filter(|n| *n > 0) {
        out.fields.set_implied("num_accelerators", n, 0);
    }
}

/// Moves the fields that all roles have in common to the job, and keeps the others in the role.
pub(crate) fn settle_roles(out: &mut ReadFields) {
    let mut roles = std::mem::take(&mut out.roles);
    for (_, fields) in &mut roles {
        for key in SHARED {
            if let Some(e) = fields.remove(key)
                && *key != "role"
                && !out.fields.has(key)
            {
                out.fields.put(e);
            }
        }
        fields.remove("num_accelerators");
    }
    let same = |key: &str| {
        let mut it = roles.iter().map(|(_, f)| f.entry(key).map(|e| &e.value));
        let first = it.next().flatten();
        roles.len() > 1 && first.is_some() && it.all(|v| v == first)
    };
    // Speculation settings that both roles have in common, and a cache setting that only names the feature.
    let common: Vec<String> =
        ["speculative.method", "speculative.tokens", "speculative.steps", "speculative.topk", "speculative.model"]
            .iter()
            .filter(|k| same(k))
            .map(|k| (*k).to_owned())
            .collect();
    for key in common {
        for (i, (_, f)) in roles.iter_mut().enumerate() {
            if let Some(e) = f.remove(&key)
                && i == 0
            {
                out.fields.put(e);
            }
        }
    }
    out.roles = roles;
}
