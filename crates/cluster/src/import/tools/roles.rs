//! The roles of servers in a disaggregated deployment: prefill and decode.

use crate::import::Field;
use crate::import::fields::ReadFields;
use crate::import::place::Place;

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
const SHARED: &[Field] = &[
    Field::Kind,
    Field::Framework,
    Field::Model,
    Field::ModelPath,
    Field::Accelerator,
    Field::WeightsPrecision,
    Field::KvPrecision,
    Field::Precision,
    Field::Quantization,
    Field::RedundantExperts,
    Field::Orchestrator,
    Field::Manifest,
    Field::Launcher,
    Field::Role,
];

/// Combines the servers of a disaggregated deployment by their role.
pub(crate) fn disaggregated(servers: Vec<(String, ReadFields)>, out: &mut ReadFields) {
    let mut devices = Some(0_i64);
    for (role, mut o) in servers {
        devices = devices.zip(o.fields.int(Field::NumAccelerators)).and_then(|(a, b)| a.checked_add(b));
        out.unrecognized.append(&mut o.unrecognized);
        out.missing.append(&mut o.missing);
        if !out.roles.iter().any(|(known, _)| *known == role) {
            out.roles.push((role, o.fields));
        }
    }
    settle_roles(out);
    if let Some(n) = devices.filter(|n| *n > 0) {
        out.fields.set_implied(Field::NumAccelerators, n, Place::NONE);
    }
}

/// Moves the fields that all roles have in common to the job, and keeps the others in the role.
pub(crate) fn settle_roles(out: &mut ReadFields) {
    let mut roles = std::mem::take(&mut out.roles);
    for (_, fields) in &mut roles {
        for key in SHARED.iter().copied() {
            if let Some(e) = fields.remove(key)
                && key != Field::Role
                && !out.fields.has(key)
            {
                out.fields.put(e);
            }
        }
        fields.remove(Field::NumAccelerators);
    }
    let same = |key: Field| {
        let mut it = roles.iter().map(|(_, f)| f.entry(key).map(|e| &e.value));
        let first = it.next().flatten();
        roles.len() > 1 && first.is_some() && it.all(|v| v == first)
    };
    // Speculation settings that both roles have in common, and a cache setting that only names the feature.
    let common: Vec<Field> = [
        Field::SpeculativeMethod,
        Field::SpeculativeTokens,
        Field::SpeculativeSteps,
        Field::SpeculativeTopk,
        Field::SpeculativeModel,
    ]
    .into_iter()
    .filter(|key| same(*key))
    .collect();
    for key in common {
        for (i, (_, f)) in roles.iter_mut().enumerate() {
            if let Some(e) = f.remove(key)
                && i == 0
            {
                out.fields.put(e);
            }
        }
    }
    out.roles = roles;
}
