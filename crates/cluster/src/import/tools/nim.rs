//! NVIDIA NIM: the image identifies the model, and variables change further settings.

use crate::import::Field;
use crate::import::fields::ReadFields;
use crate::import::place::Place;
use crate::import::value::Node;

/// Reads one variable. Returns false if it is not recognized.
pub(crate) fn flag(key: &str, node: &Node, out: &mut ReadFields) -> bool {
    let Some(key) = key.strip_prefix("nim_") else { return true };
    match key {
        "model_name" | "served_model_name" => super::model(out, node),
        "max_model_len" => out.int(Field::MaxModelLen, node),
        "tensor_parallel_size" => out.int(Field::Tp, node),
        "pipeline_parallel_size" => out.int(Field::Pp, node),
        "enable_kv_cache_reuse" => out.flag(Field::PrefixCaching, node),
        "kvcache_percent" | "kv_cache_percent" => out.float(Field::GpuMemoryShare, node),
        _ => true,
    }
}

/// Sets the model from an image such as `nvcr.io/nim/meta/llama-3.1-70b-instruct:1.3.3`.
pub(crate) fn model(image: &str, line: Place, out: &mut ReadFields) {
    let Some((_, name)) = image.split_once("nvcr.io/nim/") else { return };
    let name = name.split([':', '@']).next().unwrap_or(name);
    if name.contains('/') {
        out.fields.set_implied(Field::Model, name, line);
    }
}
