//! Chakra execution traces (MLCommons): a sequence of length-prefixed Protocol Buffers messages. The first describes
//! the trace, the others are nodes: `Node` and `AttributeProto` of et_def.proto.

use std::collections::HashMap;

use super::{Collective, StepTrace, Task, TaskKind, is_matrix};
use crate::protobuf::{Field, field, split, varint};

/// Streams assigned to the nodes, because the format has none.
const COMPUTE: u32 = 0;
const NETWORK: u32 = 1;
const MEMORY: u32 = 2;

/// The fields of a node.
#[derive(Default)]
struct Node {
    id: u64,
    name: String,
    kind: u64,
    after: Vec<u64>,
    micros: f64,
    flops: f64,
    tensor: f64,
    collective: Option<u64>,
    size: Option<f64>,
    on_host: bool,
}

/// Parses a trace.
pub(super) fn read(bytes: &[u8]) -> Result<StepTrace, String> {
    let unknown = || {
        "unknown format: the file has neither the JSON of the PyTorch profiler nor the messages of a Chakra execution \
         trace (.et)"
            .to_owned()
    };
    let mut rest = bytes;
    let mut nodes: Vec<Node> = Vec::new();
    let mut first = true;
    let mut cut = false;
    while !rest.is_empty() {
        let message = varint(&mut rest).and_then(|n| split(&mut rest, usize::try_from(n).ok()?));
        let Some(message) = message else {
            cut = true;
            break;
        };
        // Skip the first message, which is metadata of the trace.
        if !std::mem::take(&mut first) {
            nodes.push(node(message).ok_or_else(unknown)?);
        }
    }
    if nodes.is_empty() {
        return Err(unknown());
    }
    let mut notes = Vec::new();
    if cut {
        notes.push("the trace is truncated: its last node is ignored".to_owned());
    }
    // Host nodes take no time on the accelerator, but are kept because accelerator nodes may depend on them.
    let place: HashMap<u64, u32> = nodes.iter().zip(0..).map(|(node, index)| (node.id, index)).collect();
    if place.len() < nodes.len() {
        return Err("Chakra: several nodes have the same id".to_owned());
    }
    let missing = nodes.iter().flat_map(|node| &node.after).filter(|id| !place.contains_key(id)).count();
    if missing > 0 {
        notes.push(format!("ignored dependencies on nodes that are not in the trace: {missing}"));
    }
    let unknown = nodes.iter().filter(|node| node.kind == 7 && known_collective(node).is_none()).count();
    if unknown > 0 {
        notes.push(format!("collectives of unknown type, taken as all-reduce: {unknown}"));
    }
    let tasks = nodes.iter().map(|node| Task { after: after(node, &place), ..task(node) }).collect();
    Ok(StepTrace { format: "Chakra", tasks, device: None, rank: None, steps: 1, notes })
}

fn after(node: &Node, place: &HashMap<u64, u32>) -> Vec<u32> {
    node.after.iter().filter_map(|id| place.get(id).copied()).collect()
}

/// Converts a node to a task, by the number of its type in `NodeType`.
fn task(node: &Node) -> Task {
    let collective = |what| TaskKind::Collective { what, bytes: node.size, ranks: None, stride: 1.0 };
    let (kind, lane) = match node.kind {
        7 => (collective(known_collective(node).unwrap_or(Collective::AllReduce)), NETWORK),
        5 | 6 => (collective(Collective::PointToPoint), NETWORK),
        2 | 3 => (TaskKind::Copy, MEMORY),
        _ if node.micros == 0.0 && node.flops + node.tensor > 0.0 => {
            (TaskKind::Work { flops: node.flops, bytes: node.tensor }, COMPUTE)
        }
        _ if is_matrix(&node.name) => (TaskKind::Matrix, COMPUTE),
        _ => (TaskKind::Elementwise, COMPUTE),
    };
    let seconds = if node.on_host { 0.0 } else { node.micros * 1e-6 };
    // Tasks without duration occupy no stream.
    let takes_none = seconds == 0.0 && matches!(kind, TaskKind::Elementwise | TaskKind::Matrix);
    let lane = (!takes_none).then_some(lane);
    Task { name: node.name.clone(), kind, lane, seconds, delay: 0.0, after: Vec::new() }
}

/// The collective of a node, by its type, else by its name.
fn known_collective(node: &Node) -> Option<Collective> {
    node.collective.and_then(collective_of).or_else(|| Collective::named(&node.name))
}

/// Converts a number of `CollectiveCommType`; `None` for unknown types. A reduction to one rank, a gather, a scatter and
/// a barrier are taken as the collective that moves at least as many bytes.
fn collective_of(number: u64) -> Option<Collective> {
    match number {
        0 | 1 | 9 => Some(Collective::AllReduce),
        2 | 3 => Some(Collective::AllGather),
        4 | 5 => Some(Collective::Broadcast),
        6 => Some(Collective::AllToAll),
        7 | 8 => Some(Collective::ReduceScatter),
        _ => None,
    }
}

fn node(mut rest: &[u8]) -> Option<Node> {
    let mut node = Node::default();
    while !rest.is_empty() {
        match field(&mut rest)? {
            (1, Field::Varint(id)) => node.id = id,
            (2, Field::Bytes(name)) => node.name = String::from_utf8_lossy(name).into_owned(),
            (3, Field::Varint(kind)) => node.kind = kind,
            (4 | 5, Field::Varint(id)) => node.after.push(id),
            (4 | 5, Field::Bytes(mut packed)) => {
                while !packed.is_empty() {
                    node.after.push(varint(&mut packed)?);
                }
            }
            (7, Field::Varint(micros)) => node.micros = micros as f64,
            (10, Field::Bytes(attribute)) => take(attribute, &mut node)?,
            _ => {}
        }
    }
    Some(node)
}

/// Decodes an attribute, which has a name and a value of one of many types.
fn take(mut rest: &[u8], node: &mut Node) -> Option<()> {
    let (mut name, mut value, mut text) = (Vec::new(), None, None);
    while !rest.is_empty() {
        match field(&mut rest)? {
            (1, Field::Bytes(bytes)) => name = bytes.to_vec(),
            (3, Field::Fixed64(bytes)) => value = Some(f64::from_le_bytes(bytes)),
            (5, Field::Fixed32(bytes)) => value = Some(f64::from(f32::from_le_bytes(bytes))),
            // Integers. `sint32` and `sint64` are zigzag encoded.
            (7 | 9 | 11 | 13 | 27, Field::Varint(n)) => value = Some(n as f64),
            (15 | 17, Field::Varint(n)) => value = Some((n >> 1) as f64),
            (29, Field::Bytes(bytes)) => text = std::str::from_utf8(bytes).ok(),
            _ => {}
        }
    }
    let value = value.or_else(|| text?.trim().parse().ok()).filter(|value| (0.0..1e30).contains(value));
    match (name.as_slice(), value) {
        (b"num_ops", Some(n)) => node.flops = n,
        (b"tensor_size", Some(n)) => node.tensor = n,
        (b"comm_size", Some(n)) => node.size = Some(n),
        (b"comm_type", Some(n)) => node.collective = Some(n as u64),
        (b"is_cpu_op", Some(n)) => node.on_host = n != 0.0,
        _ => {}
    }
    Some(())
}
