//! Tests that benchmark JSON is read and written without loss.

use std::path::Path;

use atlas_ingest::benchmark_json::benchmarks;
use atlas_ingest::named::assign;
use atlas_ingest::{Context, ingest};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn written(document: &Value, context: &Context) -> Vec<Value> {
    let text = serde_json::to_vec_pretty(document).unwrap();
    let ingested = ingest(text.as_slice(), context).unwrap_or_else(|error| panic!("{error}: {document}"));
    ingested.readings.iter().flat_map(|reading| benchmarks("a.json", reading, context)).collect()
}

/// Asserts that `has` contains all fields of `had` with equal values.
fn keeps(path: &str, had: &Value, has: &Value) {
    match (had, has) {
        (Value::Object(had), Value::Object(has)) => {
            for (name, value) in had {
                let path = format!("{path}.{name}");
                keeps(&path, value, has.get(name).unwrap_or_else(|| panic!("{path} is lost")));
            }
        }
        (Value::Null, _) => {}
        (had, has) => assert_eq!(had, has, "{path}"),
    }
}

fn samples() -> Vec<Value> {
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/logs/tprimat/train_amd_prim_llama.json.gz");
    let packed = std::fs::File::open(log).unwrap();
    let sample: Value = serde_json::from_reader(flate2::read::GzDecoder::new(packed)).unwrap();
    // The format as documented by TensorPrimat.
    let documented = json!({
        "platform": "nvd",
        "gpu_info": {
            "device_name": "NVIDIA H100 80GB HBM3", "device_count": 8, "gpu_cores": 16896,
            "software_stack": "cuda", "software_version": "12.8", "pytorch_version": "2.7.0",
        },
        "performance_metrics": {
            "avg_step_time_seconds": 1.602, "tokens_per_second": 40918.340,
            "tokens_per_second_per_gpu": 5114.792, "steps_per_second": 0.624,
        },
        "memory_metrics": {"avg_memory_allocated_gb": 22.295, "peak_memory_allocated_gb": 22.295},
    });
    vec![sample, documented]
}

#[test]
fn benchmark_document_round_trips_with_every_field() {
    let context = Context::default();
    for sample in samples() {
        let [once] = written(&sample, &context).try_into().unwrap();
        keeps("", &sample, &once);
        let [twice] = written(&once, &context).try_into().unwrap();
        assert_eq!(once, twice, "written and read once more it stays as it is");
    }
}

#[test]
fn stated_rates_are_kept_and_averages_yield_no_statistics() {
    let [_, documented] = samples().try_into().unwrap();
    let [out] = written(&documented, &Context::default()).try_into().unwrap();
    assert_eq!(out["performance_metrics"]["tokens_per_second"], 40918.340);
    assert_eq!(out["gpu_info"]["software_version"], "12.8");
    for derived in ["statistics", "step_times"] {
        assert!(out.get(derived).is_none(), "{derived} of a single average");
    }
}

#[test]
fn user_values_override_the_document() {
    let [_, documented] = samples().try_into().unwrap();
    let mut context = Context::default();
    for setting in ["device=AMD Instinct MI300X", "global_batch_size=32", "seq_len=2048", "software_version=7.1"] {
        assign(&mut context.settings, setting).unwrap();
    }
    let [out] = written(&documented, &context).try_into().unwrap();
    assert_eq!(out["platform"], "amd");
    assert_eq!(out["gpu_info"]["device_name"], "AMD Instinct MI300X");
    assert_eq!(out["gpu_info"]["software_version"], "7.1");
    assert_eq!(out["training_config"]["global_batch_size"], 32);
    assert_eq!(out["performance_metrics"]["tokens_per_second"], 40918.340, "what was measured stays");
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1_000_000_i64..1_000_000).prop_map(Value::from),
        (0.001_f64..1e6).prop_map(Value::from),
        "[a-z0-9 ._-]{0,12}".prop_map(Value::from),
        prop::collection::vec(0.1_f64..9.0, 0..6).prop_map(Value::from),
    ]
}

fn object() -> impl Strategy<Value = Value> {
    let entry = ("[a-z_]{1,10}", value());
    prop::collection::vec(entry, 0..6).prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn unknown_fields_survive_a_round_trip(gpu in object(), more in object(), extra in object(), times in prop::collection::vec(0.1_f64..9.0, 1..20)) {
        let mut document = json!({"gpu_info": gpu, "performance_metrics": more, "extra_by_others": extra, "step_times": times});
        document["performance_metrics"]["avg_step_time_seconds"] = json!(1.5);
        let out = written(&document, &Context::default());
        prop_assert_eq!(out.len(), 1);
        keeps("", &document, &out[0]);
    }
}
