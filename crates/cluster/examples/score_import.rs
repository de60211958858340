//! Compares imports with expected values: `score_import DIR [--verbose] [FILE…]`.
//!
//! DIR contains `expectations.json`, a list of `{file, tool, expected, not_literal}`. Nested fields are compared one by
//! one. `notes` are not compared, and of a `conflict` only the presence is. Values that are stated but not expected are
//! counted as `extra`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use atlas_cluster::import::{SourceFile, import};
use serde_json::{Map, Value};

/// Counts for one tool.
#[derive(Default)]
struct Score {
    expected: u32,
    correct: u32,
    wrong: u32,
    missing: u32,
    optional: u32,
    extra: u32,
}

fn flatten(prefix: &str, m: &Map<String, Value>, out: &mut BTreeMap<String, Value>) {
    for (k, v) in m {
        let key = if prefix.is_empty() { k.clone() } else { format!("{prefix}.{k}") };
        if matches!(key.as_str(), "notes" | "master_precision_note") {
            continue;
        }
        match v {
            Value::Object(o) => flatten(&key, o, out),
            Value::Array(a) if a.iter().any(Value::is_object) => {
                for (i, v) in a.iter().enumerate() {
                    if let Value::Object(o) = v {
                        flatten(&format!("{key}.{i}"), o, out);
                    }
                }
            }
            _ => {
                out.insert(key, v.clone());
            }
        }
    }
}

fn same(key: &str, a: &Value, b: &Value) -> bool {
    if key == "conflict" {
        return true;
    }
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same("", x, y)),
        _ => a == b,
    }
}

/// Prints the counts of every tool and their sum.
fn print_table(tools: &BTreeMap<String, Score>) {
    println!(
        "{:22} {:>8} {:>8} {:>6} {:>8} {:>9} {:>6}",
        "tool", "expected", "correct", "wrong", "missing", "optional", "extra"
    );
    let mut total = Score::default();
    for (t, s) in tools {
        println!(
            "{t:22} {:8} {:8} {:6} {:8} {:9} {:6}",
            s.expected, s.correct, s.wrong, s.missing, s.optional, s.extra
        );
        total.expected += s.expected;
        total.correct += s.correct;
        total.wrong += s.wrong;
        total.missing += s.missing;
        total.optional += s.optional;
        total.extra += s.extra;
    }
    let share = |n: u32| 100.0 * f64::from(n) / f64::from(total.expected.max(1));
    println!(
        "{:22} {:8} {:8} {:6} {:8} {:9} {:6}",
        "total", total.expected, total.correct, total.wrong, total.missing, total.optional, total.extra
    );
    println!(
        "correct {:.1} %, wrong {:.1} %, missing {:.1} % (optional {:.1} %)",
        share(total.correct),
        share(total.wrong),
        share(total.missing),
        share(total.optional)
    );
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(dir) = args.first() else {
        eprintln!("usage: score_import DIR [--verbose] [FILE…]");
        return ExitCode::FAILURE;
    };
    let verbose = args.iter().any(|a| a == "--verbose");
    let only: Vec<&String> = args.iter().skip(1).filter(|a| !a.starts_with("--")).collect();
    let path = Path::new(dir).join("expectations.json");
    let list = std::fs::read_to_string(&path).map_err(|e| e.to_string());
    let list = list.and_then(|text| serde_json::from_str::<Vec<Value>>(&text).map_err(|e| e.to_string()));
    let list = match list {
        Ok(list) => list,
        Err(e) => {
            eprintln!("{}: {e}", path.display());
            return ExitCode::FAILURE;
        }
    };
    let mut tools: BTreeMap<String, Score> = BTreeMap::new();
    let mut extra_keys: BTreeMap<String, u32> = BTreeMap::new();
    for e in &list {
        let file = e.get("file").and_then(Value::as_str).unwrap_or("");
        if !only.is_empty() && !only.iter().any(|o| file.contains(o.as_str())) {
            continue;
        }
        let tool = e.get("tool").and_then(Value::as_str).unwrap_or("").to_owned();
        let Ok(text) = std::fs::read_to_string(Path::new(dir).join(file)) else {
            eprintln!("{file}: cannot be read");
            continue;
        };
        let got = import(&[SourceFile { name: file.to_owned(), text }], &BTreeMap::new());
        let (mut want, mut have) = (BTreeMap::new(), BTreeMap::new());
        if let Some(Value::Object(m)) = e.get("expected") {
            flatten("", m, &mut want);
        }
        flatten("", &got.fields, &mut have);
        let optional: Vec<&str> = e
            .get("not_literal")
            .and_then(Value::as_array)
            .map_or(Vec::new(), |a| a.iter().filter_map(Value::as_str).collect());
        let score = tools.entry(tool).or_default();
        let mut lines = Vec::new();
        for (k, v) in &want {
            score.expected += 1;
            match have.get(k) {
                Some(h) if same(k, v, h) => score.correct += 1,
                Some(h) => {
                    score.wrong += 1;
                    lines.push(format!("  WRONG   {k}: want {v}, got {h}"));
                }
                None if optional.contains(&k.as_str()) => {
                    score.optional += 1;
                    lines.push(format!("  (miss)  {k}: want {v}"));
                }
                None => {
                    score.missing += 1;
                    lines.push(format!("  MISSING {k}: want {v}"));
                }
            }
        }
        for (k, v) in &have {
            if !want.contains_key(k) {
                score.extra += 1;
                *extra_keys.entry(k.split('.').next().unwrap_or(k).to_owned()).or_default() += 1;
                lines.push(format!("  extra   {k} = {v}"));
            }
        }
        if verbose && !lines.is_empty() {
            println!("{file}\n{}", lines.join("\n"));
            for n in &got.not_recognized {
                println!("  ?       {} (line {:?})", n.text, n.at.line);
            }
            for m in &got.missing {
                println!("  needs   {}", m.name);
            }
        }
    }
    print_table(&tools);
    if verbose {
        println!("extra: {extra_keys:?}");
    }
    ExitCode::SUCCESS
}
