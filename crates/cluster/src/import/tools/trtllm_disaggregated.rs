//! Disaggregated servers of TensorRT-LLM: the YAML format of `trtllm-serve disaggregated`.

use crate::import::fields::ReadFields;
use crate::import::names;
use crate::import::value::{Node, Value};
use crate::import::{Field, Kind};

use super::roles::settle_roles;
use super::serving::Engine;
use super::trtllm;

/// Reads the context and generation servers in a configuration of `trtllm-serve disaggregated`.
pub(crate) fn document(doc: &Node, out: &mut ReadFields) {
    out.fields.set(Field::Kind, Kind::Serving, doc.line);
    out.fields.set(Field::Framework, "tensorrt-llm", doc.line);
    let mut devices = Some(0_i64);
    for (section, role) in [("context_servers", "prefill"), ("generation_servers", "decode")] {
        let Some(s) = doc.get(section) else { continue };
        let mut o = ReadFields::default();
        // Settings at the top level apply to both.
        for (k, v) in doc.map().iter().filter(|(_, v)| !v.is_map()) {
            if !matches!(k.as_str(), "hostname" | "port") {
                trtllm::flag(&names::snake(k), v, &mut o);
            }
        }
        o.int_at(Field::Replicas, s, &["num_instances"]);
        let body: Vec<_> = s
            .map()
            .iter()
            .filter(|(k, _)| !matches!(k.as_str(), "num_instances" | "urls" | "router"))
            .cloned()
            .collect();
        Engine::Trtllm.keys(&Node::new(Value::Map(body), s.line), &mut o);
        Engine::Trtllm.finish(&mut o);
        let f = |k: Field| o.fields.int(k).unwrap_or(1);
        let n = o.fields.int(Field::Tp).and_then(|tp| tp.checked_mul(f(Field::Pp))?.checked_mul(f(Field::Replicas)));
        devices = devices.zip(n).and_then(|(a, b)| a.checked_add(b));
        out.unrecognized.append(&mut o.unrecognized);
        out.roles.push((role.to_owned(), o.fields));
    }
    settle_roles(out);
    out.fields.remove(Field::ModelPath);
    if let Some(n) = devices.filter(|n| *n > 0) {
        out.fields.set_implied(Field::NumAccelerators, n, doc.line);
    }
}
