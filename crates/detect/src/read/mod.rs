//! One parser per tool. Parsers take text, never fail, and return what they understood; invalid text gives an empty result.

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

/// Devices of one machine read at most.
pub const MOST_DEVICES: usize = 1024;

/// One accelerator as a tool reports it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Device {
    /// Its index.
    pub index: u32,
    /// Its name, cleaned for the screen.
    pub name: String,
    /// Its memory, GiB.
    pub memory_gib: Option<f64>,
    /// Its power limit, W.
    pub power_w: Option<f64>,
    /// Highest PCIe generation and lanes of the device in this system.
    pub pcie: Option<(u32, u32)>,
    /// Whether MIG is on.
    pub mig: bool,
    /// GPU cores, where the tool states them.
    pub cores: Option<u32>,
}

/// A JSON value that is text or a number, as text. Objects such as `{"value": 750, "unit": "W"}` are joined.
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

/// The JSON document in a tool's output: tools print warnings before it.
fn json(text: &str) -> Option<Value> {
    let begin = text.find(['{', '['])?;
    let (_, rest) = text.split_at(begin);
    serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok()
}

/// The member of an object whose key is the same but for case.
fn member<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.as_object()?.iter().find(|(own, _)| own.eq_ignore_ascii_case(key)).map(|(_, value)| value)
}
