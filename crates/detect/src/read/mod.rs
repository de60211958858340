//! One parser per tool. Parsers take text, never fail, and return what they recognized; the result for invalid text is
//! empty.

pub mod amd_smi;
pub mod apple;
pub mod hl_smi;
pub mod hostlist;
pub mod ibstat;
pub mod infiniband;
pub mod kubernetes;
pub mod neuron_ls;
pub mod nvidia_smi;
pub mod nvidia_topo;
pub mod pci;
pub mod rocm_smi;
pub mod slurm_gres;
pub mod slurm_json;
pub mod slurm_scontrol;
pub mod slurm_sinfo;
pub mod slurm_squeue;
pub mod slurm_time;
mod table;
pub mod xpu_smi;

use serde_json::Value;

/// Maximum number of devices of one machine that are read.
pub const MAX_DEVICES: usize = 1024;

/// One accelerator as a tool reports it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Device {
    /// Its index.
    pub index: u32,
    /// Name, with control characters removed.
    pub name: String,
    /// Its memory, GiB.
    pub memory_gib: Option<f64>,
    /// Its power limit, W.
    pub power_w: Option<f64>,
    /// Highest PCIe generation and number of lanes that the device supports in this system.
    pub pcie: Option<(u32, u32)>,
    /// Whether MIG is enabled.
    pub mig: bool,
    /// Number of GPU cores, if the tool states it.
    pub cores: Option<u32>,
}

/// Returns a JSON string or number as text. The fields of objects such as `{"value": 750, "unit": "W"}` are joined.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => crate::text::present(text).map(str::to_owned),
        Value::Number(number) => Some(number.to_string()),
        Value::Object(map) => {
            let value = map.get("value").and_then(scalar)?;
            let unit = map.get("unit").and_then(Value::as_str).unwrap_or("");
            Some(format!("{value} {unit}").trim_end().to_owned())
        }
        _ => None,
    }
}

/// Parses the first JSON document in a tool's output. Tools may print warnings before it.
fn json(text: &str) -> Option<Value> {
    let begin = text.find(['{', '['])?;
    let (_, rest) = text.split_at(begin);
    serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok()
}

/// Member of a JSON object, with the key compared case-insensitively.
fn member<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.as_object()?.iter().find(|(own, _)| own.eq_ignore_ascii_case(key)).map(|(_, value)| value)
}
