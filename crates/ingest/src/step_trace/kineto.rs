//! Traces of the PyTorch profiler: kernels with streams and times. Dependencies are not recorded, and are inferred from
//! the start times of tasks.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Collective, StepTrace, Task, TaskKind, is_matrix};

/// Approximate resolution of the profiler's clocks, s.
const RESOLUTION: f64 = 2e-6;

#[derive(Deserialize, Default)]
struct Document {
    #[serde(rename = "traceEvents", default)]
    events: Events,
    #[serde(rename = "distributedInfo", default)]
    distributed: Value,
    #[serde(rename = "deviceProperties", default)]
    devices: Value,
    /// Only present in PyTorch's host traces (execution traces).
    #[serde(default)]
    nodes: Option<IgnoredAny>,
}

#[derive(Default)]
struct Event {
    cat: String,
    name: String,
    /// Start, µs.
    ts: f64,
    /// Duration, µs.
    dur: f64,
    tid: Value,
    args: BTreeMap<String, Value>,
}

/// Accelerator events and step markers; other events are skipped during parsing.
#[derive(Default)]
struct Events {
    device: Vec<Event>,
    marks: Vec<Event>,
}

impl<'de> Deserialize<'de> for Events {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Events, D::Error> {
        struct Filter;
        impl<'de> Visitor<'de> for Filter {
            type Value = Events;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of events")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Events, A::Error> {
                let mut out = Events::default();
                while let Some(Lenient(event)) = list.next_element()? {
                    let Some(event) = event.filter(|event| event.dur >= 0.0) else { continue };
                    match event.cat.as_str() {
                        "kernel" | "Kernel" | "gpu_memcpy" | "gpu_memset" => out.device.push(event),
                        "user_annotation" | "gpu_user_annotation" if event.name.starts_with("ProfilerStep") => {
                            out.marks.push(event);
                        }
                        _ => {}
                    }
                }
                Ok(out)
            }
        }
        deserializer.deserialize_seq(Filter)
    }
}

/// An event, or `None` for an element to be skipped.
struct Lenient(Option<Event>);

impl<'de> Deserialize<'de> for Lenient {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lenient, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Lenient;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an event")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Lenient, A::Error> {
                let (mut event, mut begin) = (Event::default(), None);
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "cat" => event.cat = text(map.next_value()?),
                        "name" => event.name = text(map.next_value()?),
                        "ts" => begin = number(&map.next_value()?),
                        "dur" => event.dur = number(&map.next_value()?).unwrap_or(0.0),
                        "tid" => event.tid = map.next_value()?,
                        "args" => {
                            if let Value::Object(args) = map.next_value()? {
                                event.args = args.into_iter().collect();
                            }
                        }
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(Lenient(begin.map(|ts| Event { ts, ..event })))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        _ => String::new(),
    }
}

/// Converts a number, which some versions write as a string.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|value| value.is_finite())
}

/// Parses a trace.
pub(super) fn read(bytes: &[u8]) -> Result<StepTrace, String> {
    let document: Document = if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        let events =
            serde_json::from_slice(bytes).map_err(|error| format!("not a trace of the PyTorch profiler: {error}"))?;
        Document { events, ..Document::default() }
    } else {
        serde_json::from_slice(bytes).map_err(|error| format!("not a trace of the PyTorch profiler: {error}"))?
    };
    let Document { events: Events { mut device, marks }, distributed, devices, nodes } = document;
    if device.is_empty() && nodes.is_some() {
        let advice = "it has no accelerator kernels; convert it with chakra_converter, or use the profiler's trace";
        return Err(format!("PyTorch execution trace: {advice}"));
    }
    let mut notes = Vec::new();
    let (window, steps) = step(&marks);
    if let Some((from, to)) = window {
        device.retain(|event| event.ts >= from && event.ts < to);
    } else {
        notes.push("the trace has no ProfilerStep annotation: all of it is treated as one step".to_owned());
    }
    device.sort_by(|a, b| a.ts.total_cmp(&b.ts));
    let tasks = tasks(&device, window.map(|(from, _)| from));
    let whole = |value: Option<&Value>| value.and_then(number).filter(|n| (0.0..1e9).contains(n)).map(|n| n as u32);
    let rank = whole(distributed.get("rank")).zip(whole(distributed.get("world_size")));
    let device = devices.get(0).and_then(|device| {
        let memory = device.get("totalGlobalMem").and_then(number).map(|bytes| bytes * 1e-9);
        Some((device.get("name")?.as_str()?.to_owned(), memory))
    });
    Ok(StepTrace { format: "PyTorch profiler (Kineto)", tasks, device, rank, steps, notes })
}

/// Returns start and end of the step of median duration in µs, and the number of steps. Markers of the accelerator are
/// preferred to those of the host.
fn step(marks: &[Event]) -> (Option<(f64, f64)>, usize) {
    let of = |cat: &str| -> Vec<&Event> { marks.iter().filter(|mark| mark.cat == cat && mark.dur > 0.0).collect() };
    let mut steps = of("gpu_user_annotation");
    if steps.is_empty() {
        steps = of("user_annotation");
    }
    steps.sort_by(|a, b| a.dur.total_cmp(&b.dur));
    let window = steps.get(steps.len() / 2).map(|step| (step.ts, step.ts + step.dur));
    (window, steps.len().max(1))
}

/// Converts events to tasks and infers their dependencies: the previous task of the same stream; the task of another
/// stream that ended while this stream was idle; and for collectives, the last task of another stream that ended before
/// them, which is assumed to have produced their data.
fn tasks(events: &[Event], begin: Option<f64>) -> Vec<Task> {
    let begin = begin.or(events.first().map(|event| event.ts)).unwrap_or(0.0);
    let mut lanes: BTreeMap<String, u32> = BTreeMap::new();
    let mut tasks: Vec<Task> = Vec::new();
    // Last task of every stream, and its end time.
    let mut last: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
    // Sorted end times of earlier tasks, to find the last one before a given time.
    let mut ends: Vec<(f64, usize, u32)> = Vec::new();
    for event in events {
        let start = (event.ts - begin) * 1e-6;
        let seconds = event.dur * 1e-6;
        let stream = event.args.get("stream").unwrap_or(&event.tid).to_string();
        let next = lanes.len() as u32;
        let lane = *lanes.entry(stream).or_insert(next);
        let kind = kind(event);
        let before = last.get(&lane).copied();
        let idle_from = before.map_or(f64::NEG_INFINITY, |(_, end)| end);
        let known = ends.partition_point(|(end, ..)| *end <= start + RESOLUTION);
        let other = ends.get(..known).unwrap_or_default().iter().rev().find(|(_, _, of)| *of != lane).copied();
        let sends = matches!(kind, TaskKind::Collective { .. });
        let waited = other.filter(|(end, ..)| sends || *end > idle_from + RESOLUTION);
        let after = before.map(|(index, _)| index).into_iter().chain(waited.map(|(_, index, _)| index));
        let after: Vec<u32> = after.map(|index| index as u32).collect();
        let ready = before.map(|(_, end)| end).into_iter().chain(waited.map(|(end, ..)| end)).fold(0.0, f64::max);
        let index = tasks.len();
        let end = start + seconds;
        tasks.push(Task {
            name: event.name.clone(),
            kind,
            lane: Some(lane),
            seconds,
            delay: (start - ready).max(0.0),
            after,
        });
        last.insert(lane, (index, end));
        let at = ends.partition_point(|(other, ..)| *other <= end);
        ends.insert(at, (end, index, lane));
        // Only the latest end times are relevant to later tasks.
        if ends.len() > 4096 {
            ends.drain(..2048);
        }
    }
    tasks
}

fn kind(event: &Event) -> TaskKind {
    if event.cat.starts_with("gpu_mem") {
        return TaskKind::Copy;
    }
    let stated = event.args.get("Collective name").and_then(Value::as_str);
    let library = ["nccl", "rccl", "oneccl"].iter().any(|name| event.name.to_ascii_lowercase().contains(name));
    let what = match (stated, library) {
        (Some(name), _) => Collective::named(name).or_else(|| Collective::named(&event.name)),
        (None, true) => Collective::named(&event.name),
        (None, false) => None,
    };
    let Some(what) = what else {
        return if is_matrix(&event.name) && !library { TaskKind::Matrix } else { TaskKind::Elementwise };
    };
    let figure = |name: &str| event.args.get(name).and_then(number).filter(|n| *n >= 0.0);
    let elements = match what {
        Collective::AllGather => figure("Out msg nelems"),
        _ => figure("In msg nelems"),
    };
    let size = event.args.get("dtype").and_then(Value::as_str).and_then(element_bytes);
    let members: Vec<f64> = event
        .args
        .get("Process Group Ranks")
        .and_then(Value::as_str)
        .map(|list| list.trim_matches(['[', ']']).split(',').filter_map(|rank| rank.trim().parse().ok()).collect())
        .unwrap_or_default();
    let stride = match members.as_slice() {
        [first, second, ..] if second > first => second - first,
        _ => 1.0,
    };
    let bytes = elements.zip(size).map(|(elements, size)| elements * size);
    TaskKind::Collective { what, bytes, ranks: figure("Group size").filter(|n| *n >= 1.0), stride }
}

/// Bytes per element of a PyTorch data type.
fn element_bytes(name: &str) -> Option<f64> {
    Some(match name.trim_start_matches("c10::") {
        "Double" | "Long" | "Float64" | "Int64" => 8.0,
        "Float" | "Int" | "Float32" | "Int32" => 4.0,
        "BFloat16" | "Half" | "Float16" | "Short" => 2.0,
        name if name.starts_with("Float8") || matches!(name, "Byte" | "Char" | "Bool") => 1.0,
        _ => return None,
    })
}
