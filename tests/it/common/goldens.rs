//! The predecessor's answers, and how ours are compared with them.

use std::io::Read as _;

use serde_json::Value;

/// All golden cases.
pub(crate) fn goldens() -> Value {
    let mut text = String::new();
    let file = std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/atlas_fabric.json.gz")).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Cases of a kind.
pub(crate) fn cases<'g>(goldens: &'g Value, kind: &'g str) -> impl Iterator<Item = &'g Value> {
    goldens["cases"].as_array().unwrap().iter().filter(move |case| case["kind"] == kind)
}

/// Resolves `"@name"`, which refers to an entry of the file's library.
pub(crate) fn input<'g>(goldens: &'g Value, inputs: &'g Value, kind: &str) -> &'g Value {
    match inputs[kind].as_str().and_then(|text| text.strip_prefix('@')) {
        Some(name) => &goldens["library"][kind][name],
        None => &inputs[kind],
    }
}

/// Compares recursively; updates the largest relative error, and reports the path of any other difference.
pub(crate) fn compare(path: &str, expected: &Value, found: &Value, worst: &mut f64) {
    match (expected, found) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()) {
                let (Some(x), Some(y)) = (a.get(key), b.get(key)) else { panic!("{path}.{key}: in one only") };
                compare(&format!("{path}.{key}"), x, y, worst);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{path}");
            for (i, (x, y)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{i}]"), x, y, worst);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            let error = if a == b { 0.0 } else { (a - b).abs() / a.abs().max(f64::MIN_POSITIVE) };
            assert!(error <= 1e-9, "{path}: expected {a}, found {b}");
            *worst = worst.max(error);
        }
        _ => assert_eq!(expected, found, "{path}"),
    }
}
