//! Requirements of the Trace Event Format, and of viewers that draw a trace, checked event by event, so that no viewer
//! is needed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Times are written with a resolution of nanoseconds. Two of them, in microseconds.
const DUST: f64 = 2e-3;

type Track = (u64, u64);

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn track(event: &Value) -> Track {
    (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap())
}

/// Checks that every event has the fields of its kind, every process and track has a name, slices of a track do not
/// overlap partially, arrows lead from slice to slice and forward in time, nested slices end in order, and counters are
/// ordered in time.
pub(crate) fn is_sound(trace: &Value) {
    assert!(trace["displayTimeUnit"] == "ms" || trace["displayTimeUnit"] == "ns");
    let events = trace["traceEvents"].as_array().unwrap();
    assert!(events.len() > 10);
    events.iter().for_each(has_its_fields);
    let of = |phase: &str| events.iter().filter(move |event| event["ph"] == phase).collect::<Vec<_>>();
    let named = |kind: &str| -> Vec<&Value> { of("M").into_iter().filter(|event| event["name"] == kind).collect() };
    let processes: BTreeSet<u64> = named("process_name").iter().map(|event| event["pid"].as_u64().unwrap()).collect();
    let tracks: BTreeSet<Track> = named("thread_name").into_iter().map(track).collect();
    assert_eq!(processes.len(), named("process_name").len(), "a process has one name");
    assert_eq!(tracks.len(), named("thread_name").len(), "a track has one name");
    assert!(events.iter().all(|event| processes.contains(&event["pid"].as_u64().unwrap())), "every process is named");
    let slices = slices(&of("X"));
    assert!(slices.keys().all(|track| tracks.contains(track)), "every track with slices is named");
    arrows(&of("s"), &of("f"), &slices);
    nested(events);
    counters(&of("C"));
}

fn has_its_fields(event: &Value) {
    let phase = event["ph"].as_str().unwrap();
    assert!(event["pid"].is_u64() && event["name"].is_string(), "{event}");
    assert!(phase == "M" || number(&event["ts"]) >= 0.0, "{event}");
    match phase {
        "M" => assert!(event["args"]["name"].is_string(), "{event}"),
        "X" => assert!(event["tid"].is_u64() && number(&event["dur"]) >= 0.0, "{event}"),
        "C" => assert!(event["args"].as_object().unwrap().values().all(Value::is_number), "{event}"),
        "s" | "f" | "b" | "e" => assert!(event["cat"].is_string() && !event["id"].is_null(), "{event}"),
        other => panic!("unexpected phase {other}"),
    }
}

/// Begin and end of the slices of every track, ordered by time. Two slices of a track are either disjoint or nested.
fn slices(events: &[&Value]) -> BTreeMap<Track, Vec<(f64, f64)>> {
    let mut all: BTreeMap<Track, Vec<(f64, f64)>> = BTreeMap::new();
    for event in events {
        let begin = number(&event["ts"]);
        all.entry(track(event)).or_default().push((begin, begin + number(&event["dur"])));
    }
    for (track, slices) in &mut all {
        slices.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
        let mut open: Vec<f64> = Vec::new();
        for (begin, end) in slices.iter() {
            while open.last().is_some_and(|outer| *outer <= begin + DUST) {
                open.pop();
            }
            assert!(open.last().is_none_or(|outer| *end <= outer + DUST), "{track:?} overlaps at {begin}");
            open.push(*end);
        }
    }
    all
}

/// Every arrow has one beginning and one end, each on a slice.
fn arrows(begins: &[&Value], ends: &[&Value], slices: &BTreeMap<Track, Vec<(f64, f64)>>) {
    let by_id = |events: &[&Value]| -> BTreeMap<String, f64> {
        let found: BTreeMap<String, f64> =
            events.iter().map(|event| (format!("{} {}", event["cat"], event["id"]), number(&event["ts"]))).collect();
        assert_eq!(found.len(), events.len(), "an arrow's number is its own");
        found
    };
    let (from, to) = (by_id(begins), by_id(ends));
    assert!(from.keys().eq(to.keys()), "every arrow that begins ends");
    assert!(from.values().zip(to.values()).all(|(from, to)| from <= &(to + DUST)), "arrows lead forward");
    for event in begins.iter().chain(ends) {
        let at = number(&event["ts"]);
        let on = |slices: &Vec<(f64, f64)>| slices.iter().any(|(a, b)| (a - DUST..=b + DUST).contains(&at));
        assert!(slices.get(&track(event)).is_some_and(on), "an arrow hangs on no slice: {event}");
    }
}

/// Slices with an id: each that begins also ends, inner ones before outer ones.
fn nested(events: &[Value]) {
    let mut open: BTreeMap<String, Vec<(String, f64)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "b" || event["ph"] == "e") {
        let stack = open.entry(format!("{} {}", event["cat"], event["id"])).or_default();
        let (name, at) = (event["name"].to_string(), number(&event["ts"]));
        if event["ph"] == "b" {
            assert!(stack.last().is_none_or(|(_, outer)| at >= outer - DUST), "{event}");
            stack.push((name, at));
        } else {
            let (begun, from) = stack.pop().unwrap_or_else(|| panic!("ends before it begins: {event}"));
            assert!(begun == name && at >= from - DUST, "{event}");
        }
    }
    assert!(open.values().all(Vec::is_empty), "every slice that begins ends");
}

fn counters(events: &[&Value]) {
    let mut last: BTreeMap<String, f64> = BTreeMap::new();
    for event in events {
        let at = number(&event["ts"]);
        let before = last.insert(format!("{} {}", event["pid"], event["name"]), at);
        assert!(before.is_none_or(|before| at > before), "a counter goes back: {event}");
    }
}
