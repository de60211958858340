#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use super::*;
use proptest::prelude::*;

/// Two steps of one rank: a GEMM, its all-reduce overlapped with the next GEMM, and an update that waits for both.
fn kineto() -> String {
    let kernel = |name: &str, stream: u32, ts: f64, dur: f64, more: &str| {
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":{stream},"ts":{ts},"dur":{dur},"args":{{"stream":{stream}{more}}}}}"#
        )
    };
    let collective = r#","Collective name":"allreduce","In msg nelems":500000,"Out msg nelems":500000,"Group size":8,"dtype":"BFloat16","Process Group Ranks":"[0, 2, 4]""#;
    let mut events = vec![r#"{"ph":"M","name":"process_name","args":{"name":"python"}}"#.to_owned()];
    for (step, at) in [(1, 0.0), (2, 2000.0)] {
        events.push(format!(
            r#"{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{step}","ts":{at},"dur":1900,"args":{{}}}}"#
        ));
        events.push(
            r#"{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":5,"args":{"Input Dims":[[1,2]]}}"#.to_owned(),
        );
        events.push(kernel("nvjet_tst_128x256", 7, at + 100.0, 500.0, ""));
        events.push(kernel("nvjet_tst_128x256", 7, at + 600.0, 400.0, ""));
        events.push(kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 20, at + 610.0, 800.0, collective));
        events.push(kernel("multi_tensor_apply_kernel", 7, at + 1411.0, 300.0, ""));
    }
    format!(
        r#"{{"schemaVersion":1,"deviceProperties":[{{"id":0,"name":"NVIDIA H100 80GB HBM3","totalGlobalMem":85045346304}}],"distributedInfo":{{"backend":"nccl","rank":3,"world_size":8}},"traceEvents":[{}]}}"#,
        events.join(",")
    )
}

#[test]
fn kineto_profile_yields_one_step_with_task_dependencies() {
    let trace = read(kineto().as_bytes()).unwrap();
    assert_eq!((trace.format, trace.steps, trace.rank), ("PyTorch profiler (Kineto)", 2, Some((3, 8))));
    assert_eq!(trace.device.as_ref().unwrap().0, "NVIDIA H100 80GB HBM3");
    let kinds: Vec<&TaskKind> = trace.tasks.iter().map(|task| &task.kind).collect();
    let reduce = TaskKind::Collective { what: Collective::AllReduce, bytes: Some(1e6), ranks: Some(8.0), stride: 2.0 };
    assert_eq!(kinds, [&TaskKind::Matrix, &TaskKind::Matrix, &reduce, &TaskKind::Elementwise]);
    let after: Vec<&[u32]> = trace.tasks.iter().map(|task| task.after.as_slice()).collect();
    // The all-reduce depends on the first GEMM. The update started when the all-reduce ended.
    assert_eq!(after, [&[][..], &[0], &[0], &[1, 2]]);
    assert!((trace.tasks[0].delay - 100e-6).abs() < 1e-12);
    assert!((trace.tasks[3].delay - 1e-6).abs() < 1e-12);
}

#[test]
fn gzipped_profile_equals_plain_and_truncated_one_is_refused() {
    use std::io::Write as _;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(kineto().as_bytes()).unwrap();
    assert_eq!(read(&packed.finish().unwrap()), read(kineto().as_bytes()));
    let text = kineto();
    assert!(read(&text.as_bytes()[..text.len() / 2]).is_err());
    assert!(read(br#"{"schema":"1.1.0-chakra.0.0.4","nodes":[{"id":1}]}"#).unwrap_err().contains("chakra_converter"));
    assert!(read(br#"{"traceEvents":[]}"#).unwrap_err().contains("no task"));
}

fn number(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn text(key: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(key << 3 | 2);
    number(bytes.len() as u64, out);
    out.extend(bytes);
}

/// Encodes a node like the Chakra tools, with a length prefix.
fn node(id: u64, name: &str, kind: u64, after: &[u64], micros: u64, attributes: &[(&str, u64)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (key, value) in [(1_u8, id), (3, kind), (7, micros)] {
        body.push(key << 3);
        number(value, &mut body);
    }
    text(2, name.as_bytes(), &mut body);
    let mut packed = Vec::new();
    after.iter().for_each(|id| number(*id, &mut packed));
    text(5, &packed, &mut body);
    for (name, value) in attributes {
        let mut attribute = Vec::new();
        text(1, name.as_bytes(), &mut attribute);
        attribute.push(9 << 3);
        number(*value, &mut attribute);
        text(10, &attribute, &mut body);
    }
    let mut out = Vec::new();
    number(body.len() as u64, &mut out);
    out.extend(body);
    out
}

fn chakra() -> Vec<u8> {
    let mut bytes = Vec::new();
    text(1, b"0.0.4", &mut bytes);
    bytes.insert(0, bytes.len() as u8);
    bytes.extend(node(10, "gemm", 4, &[], 0, &[("num_ops", 2_000_000_000), ("tensor_size", 4_000_000)]));
    bytes.extend(node(11, "all gather of weights", 7, &[10], 250, &[("comm_type", 2), ("comm_size", 1 << 20)]));
    bytes.extend(node(12, "norm", 4, &[10, 11], 40, &[]));
    bytes
}

#[test]
fn a_chakra_trace_gives_its_nodes_and_their_dependencies() {
    let trace = read(&chakra()).unwrap();
    assert_eq!((trace.format, trace.tasks.len()), ("Chakra", 3));
    assert_eq!(trace.tasks[0].kind, TaskKind::Work { flops: 2e9, bytes: 4e6 });
    let gather =
        TaskKind::Collective { what: Collective::AllGather, bytes: Some(1_048_576.0), ranks: None, stride: 1.0 };
    assert_eq!((&trace.tasks[1].kind, trace.tasks[1].seconds), (&gather, 250e-6));
    assert_eq!(trace.tasks[2].after, [0, 1]);
    assert!((trace.tasks[2].seconds - 40e-6).abs() < 1e-12);
    let bytes = chakra();
    let cut = read(&bytes[..bytes.len() - 3]).unwrap();
    assert_eq!(cut.tasks.len(), 2);
    assert!(cut.notes[0].contains("truncated"), "{:?}", cut.notes);
}

#[test]
fn a_collective_of_unknown_type_is_noted() {
    let mut bytes = chakra();
    bytes.extend(node(13, "sync", 7, &[12], 30, &[("comm_type", 42)]));
    bytes.extend(node(14, "end", 7, &[13], 5, &[("comm_type", 9)]));
    let trace = read(&bytes).unwrap();
    let reduced = |task: &Task| matches!(task.kind, TaskKind::Collective { what: Collective::AllReduce, .. });
    assert!(reduced(&trace.tasks[3]) && reduced(&trace.tasks[4]));
    assert_eq!(trace.notes, ["collectives of unknown type, taken as all-reduce: 1"]);
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic_the_trace_reader(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes);
    }

    #[test]
    fn damaged_trace_has_no_dependencies_outside_the_trace(at in any::<prop::sample::Index>(), with in any::<u8>()) {
        for mut bytes in [chakra(), kineto().into_bytes()] {
            let at = at.index(bytes.len());
            bytes[at] = with;
            if let Ok(trace) = read(&bytes) {
                let n = trace.tasks.len() as u32;
                prop_assert!(trace.tasks.iter().all(|task| task.after.iter().all(|other| *other < n)));
                prop_assert!(trace.tasks.iter().all(|task| task.seconds >= 0.0 && task.delay >= 0.0));
            }
        }
    }
}
