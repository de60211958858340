//! Realistic launch files, each with the fields that a reader would extract from it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::common::{at, read};
use serde_json::Value;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/launch")
}

fn expected() -> serde_json::Map<String, Value> {
    let text = std::fs::read_to_string(folder().join("expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn imported_fields_equal_the_expected_values_of_every_file() {
    let mut wrong = Vec::new();
    for (name, fields) in expected() {
        let import = read(&name, &std::fs::read_to_string(folder().join(&name)).unwrap());
        for (path, value) in fields.as_object().unwrap() {
            let got = at(&import, path).cloned().unwrap_or(Value::Null);
            if got != *value {
                wrong.push(format!("{name}: {path}: expected {value}, found {got}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_has_expectations_and_origins_have_valid_lines() {
    let files: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "expected.json")
        .collect();
    assert_eq!(files, expected().keys().cloned().collect());
    for name in files {
        let text = std::fs::read_to_string(folder().join(&name)).unwrap();
        let import = read(&name, &text);
        let lines = text.lines().count() as u32;
        for (field, origin) in &import.origin {
            assert!(origin.line.is_none_or(|line| (1..=lines).contains(&line)), "{name}: {field}: {origin:?}");
        }
    }
}
