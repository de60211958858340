//! `atlas run --batch`: the predecessor's answers through a pipe, and all kinds of malformed input.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use crate::common::goldens::{cases, compare, goldens, input};
use crate::common::program::{atlas, stderr, stdout};
use serde_json::{Value, json};

/// Answers to these lines.
fn answers(args: &[&str], input: impl Into<Vec<u8>>) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let run = atlas(dir.path(), &["run", "--batch", "-"]).args(args).write_stdin(input).assert().code(0);
    stdout(&run).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn line(goldens: &Value, case: &Value) -> Value {
    let inputs = &case["inputs"];
    let flags = inputs.get("knobs").unwrap_or(&inputs["flags"]).clone();
    let mut knobs = flags.as_object().unwrap().clone();
    let seed = knobs.remove("seed").unwrap_or_else(|| inputs["seed"].clone());
    knobs.remove("track");
    json!({
        "id": case["id"],
        "target": input(goldens, inputs, "target"),
        "workload": input(goldens, inputs, "workload"),
        "profile": input(goldens, inputs, "hardware_model"),
        "knobs": knobs,
        "seed": seed,
    })
}

#[test]
fn every_golden_run_agrees() {
    let goldens = goldens();
    let all: Vec<&Value> = cases(&goldens, "run").chain(cases(&goldens, "cli_run")).collect();
    let mut text = String::new();
    for case in &all {
        writeln!(text, "{}", line(&goldens, case)).unwrap();
    }
    let found = answers(&[], text);
    assert_eq!(found.len(), all.len());
    let mut worst = 0.0;
    for (case, found) in all.iter().zip(&found) {
        let (id, expected) = (case["id"].as_str().unwrap(), &case["expected"]);
        assert_eq!(found["id"], case["id"]);
        if expected.get("error").is_some() {
            assert!(found["error"].is_string(), "{id}: the original fails here");
            continue;
        }
        compare(id, &expected["record"], &found["record"], &mut worst);
        compare(id, &expected["dollar_per_1k_tokens"], &found["dollar_per_1k_tokens"], &mut worst);
    }
    assert!(all.len() >= 620);
}

#[test]
fn batch_results_include_measured_evidence_only_with_the_flag() {
    let line = |target: &str| json!({ "target": target, "workload": "llama3.1-70b-serve" }).to_string() + "\n";
    let text = line("h100-sxm-8") + &line("GROQ_LPU_NODE");
    let with = answers(&["--evidence"], text.clone());
    let one: Value = {
        let dir = tempfile::tempdir().unwrap();
        let args = ["run", "--target", "h100-sxm-8", "--workload", "llama3.1-70b-serve", "--format", "json"];
        serde_json::from_str(&stdout(&atlas(dir.path(), &args).assert().code(0))).unwrap()
    };
    // The evidence is the same as for a single run; there is none if the accelerator is not known.
    assert_eq!(with[0]["evidence"], one["evidence"][0]);
    assert_eq!(with[0]["notes"], one["notes"]);
    assert!(with[0]["evidence"]["nearest"]["id"].is_string());
    assert!(with[1]["evidence"].is_null());
    let note = with[0]["notes"][0].as_str().unwrap();
    assert!(note.starts_with("no release stated: using vllm@"), "{note}");
    assert!(answers(&[], text).iter().all(|answer| answer.get("evidence").is_none()));
}

#[test]
fn every_golden_optimization_agrees() {
    let goldens = goldens();
    let mut by_sla: Vec<(String, Vec<&Value>)> = Vec::new();
    for case in cases(&goldens, "optimize") {
        let sla = case["inputs"]["sla_p99_ms"].to_string();
        match by_sla.iter_mut().find(|(known, _)| *known == sla) {
            Some((_, cases)) => cases.push(case),
            None => by_sla.push((sla, vec![case])),
        }
    }
    let (mut worst, mut count) = (0.0, 0);
    for (sla, cases) in by_sla {
        let text: String = cases.iter().map(|case| format!("{}\n", line(&goldens, case))).collect();
        let found = answers(&["--method", "hill-climb", "--sla", &sla], text);
        for (case, found) in cases.iter().zip(&found) {
            let mut found = found.as_object().unwrap().clone();
            assert_eq!(found.remove("id").as_ref(), Some(&case["id"]));
            assert!(found.remove("metrics").is_some_and(|metrics| metrics["tokens_per_sec"].is_f64()));
            compare(case["id"].as_str().unwrap(), &case["expected"], &Value::Object(found), &mut worst);
            count += 1;
        }
    }
    assert!(count >= 120);
}

#[test]
fn named_and_inline_entries_give_the_same_batch_result() {
    let goldens = goldens();
    let case = cases(&goldens, "cli_run").find(|case| case["inputs"]["target"] == "@NVIDIA_H100_8x_NVLink").unwrap();
    let mut inline = line(&goldens, case);
    let workload = case["inputs"]["workload"].as_str().unwrap().trim_start_matches('@').to_owned();
    let mut named = inline.clone();
    named["target"] = json!("NVIDIA_H100_8x_NVLink");
    named["workload"] = json!(workload);
    named["profile"] = json!("nvidia");
    let mut matched = named.clone();
    matched.as_object_mut().unwrap().remove("profile");
    inline["profile"] = Value::Null;
    let found = answers(&[], format!("{inline}\n{named}\n{matched}\n"));
    assert!(found[0]["record"].is_object(), "{}", found[0]);
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
}

#[test]
fn batch_results_contain_cost_energy_and_utilization_metrics() {
    let line = |set: &str| {
        let target = r#""target":"h100-sxm-8","workload":"llama3.1-8b-train""#;
        format!("{{\"id\":1,{target},\"knobs\":{{\"train_tokens\":1e12{set}}}}}\n")
    };
    let found =
        answers(&[], line("") + &line(",\"kg_co2e_per_kwh\":0.9") + &line(",\"hourly_usd\":99,\"capex_usd_node\":3e5"));
    let metric = |line: usize, name: &str| {
        found[line]["metrics"][name].as_f64().unwrap_or_else(|| panic!("{name}: {}", found[line]))
    };
    for name in
        ["usd_per_hour", "usd_per_run", "kg_co2e_per_run", "kwh_per_run", "mfu", "step_time_ms", "tokens_per_wh"]
    {
        assert!(metric(0, name) > 0.0, "{name}");
    }
    assert!(metric(1, "kg_co2e_per_run") > metric(0, "kg_co2e_per_run"));
    assert!(metric(2, "usd_per_hour") > metric(0, "usd_per_hour"));
    assert!(metric(2, "usd_per_hour_owned") > 0.0 && metric(2, "break_even_months") > 0.0);
    assert!(found[0]["metrics"]["ttft_ms"].is_null(), "latencies of requests say nothing of training");
}

const GOOD: &str = r#"{"id":"good","target":"GROQ_LPU_NODE","workload":"gpt5_1t_inference"}"#;

#[test]
fn invalid_batch_line_yields_an_error_line_and_the_batch_continues() {
    let long = format!(r#"{{"id":9,"target":"{}"}}"#, "x".repeat(17 << 20));
    let deep = format!(r#"{{"id":10,"target":{}1{}}}"#, "[".repeat(5000), "]".repeat(5000));
    let bad: [(&[u8], Value, &[&str]); 19] = [
        (b"not json", Value::Null, &["line 1, column 1: found `not json`, expected a JSON object in braces"]),
        (b"[1]", Value::Null, &["line 2, column 1: found `[1]`, expected a JSON object in braces"]),
        (b"{\"id\":1,\"target\":", Value::Null, &["line 3, column 17: the line ends before its JSON object does"]),
        (b"{\"id\":1,\"target\":nope}", Value::Null, &["line 4, column 19: expected a JSON value: text in double quotes"]),
        (b"{\"id\":1,target:2}", Value::Null, &["line 5, column 9: expected a key in double quotes"]),
        (b"{\"id\":1 \"target\":2}", Value::Null, &["line 6, column 9: expected a comma before the next key"]),
        (b"{\"id\":1}{\"id\":2}", Value::Null, &["line 7, column 9: text after the JSON object"]),
        (br#"{"id":2}"#, json!(2), &["`target` is missing", "`workload` is missing"]),
        (br#"{"id":[3],"target":"GROQ","workload":"gpt5_1t_train"}"#, json!([3]), &["no target `GROQ`", "known: "]),
        (
            br#"{"id":{"a":4.50},"target":"GROQ_LPU_NODE","workload":"gpt5_1t_train","knobs":{"tpp":1,"tp":0,"virt":3}}"#,
            json!({"a": 4.5}),
            &["no knob `tpp`; did you mean `tp`?", "tp: found \"0\"", "virt: found \"3\""],
        ),
        (br#"{"id":5,"target":"GROQ_LPU_NODE","workload":"gpt5_1t_train","knobs":[1]}"#, json!(5), &["expected an object"]),
        (br#"{"id":6,"target":"GROQ_LPU_NODE","workload":"gpt5_1t_train","seed":1.5}"#, json!(6), &["a whole number"]),
        (
            br#"{"id":7,"target":{"name":"a","cost":{}},"workload":{"name":"b"},"profile":{"compute":1},"knobs":{"zz":1}}"#,
            json!(7),
            &["vendor", "cost.pue", "params.hidden_size", "compute: found 1", "noise.tail_scale", "no knob `zz`"],
        ),
        (b"{\"id\":8,\"target\":\"\xFF\"}", json!(8), &["line 14: not UTF-8: the byte at offset 18"]),
        (long.as_bytes(), Value::Null, &["line 15: longer than"]),
        (deep.as_bytes(), json!(10), &["recursion limit"]),
        (br#"{"id":11,"id":12}"#, Value::Null, &["`id` is given twice"]),
        (br#"{"id":13,"target":1e999,"workload":true}"#, json!(13), &["target: number out of range", "workload: found true"]),
        (br#"{"target":"GROQ_LPU_NODE","workload":"gpt5_1t_train","knobs":{"fabric":"NVLink"}}"#, Value::Null, &["IB, RoCE"]),
    ];
    let mut text = Vec::new();
    for (line, ..) in &bad {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    // Blank lines are answered as well, so that answers match lines; the last line needs no newline.
    text.extend_from_slice(b"\n  \r\n");
    text.extend_from_slice(GOOD.as_bytes());
    let found = answers(&[], text);
    assert_eq!(found.len(), bad.len() + 3);
    for ((line, id, parts), found) in bad.iter().zip(&found) {
        let line = String::from_utf8_lossy(&line[..line.len().min(80)]);
        assert_eq!(found["id"], *id, "{line}");
        let error = found["error"].as_str().unwrap_or_else(|| panic!("{line}: {found}"));
        for part in *parts {
            assert!(error.contains(part), "{line}: {part} in {error}");
        }
    }
    for blank in &found[bad.len()..bad.len() + 2] {
        assert!(blank["error"].as_str().unwrap().contains("empty, expected a JSON object"), "{blank}");
    }
    assert!(found[bad.len() + 2]["record"].is_object());
}

#[test]
fn batch_ids_are_echoed_verbatim_and_equivalent_seeds_agree() {
    let dir = tempfile::tempdir().unwrap();
    let line = |id: &str, seed: &str| {
        format!(r#"{{"seed":{seed},"id":{id},"target":"GROQ_LPU_NODE","workload":"gpt5_1t_train"}}"#) + "\n"
    };
    let text = line("1.50", "7.0") + &line("123456789012345678901234567890", "7") + &line("\"\\u00e9\"", "\"7\"");
    let run = atlas(dir.path(), &["run", "--batch", "-"]).write_stdin(text).assert().code(0);
    let out = stdout(&run);
    let rests: Vec<&str> = out.lines().map(|line| line.split_once(",\"record\"").unwrap().1).collect();
    assert_eq!((rests[0], rests[1]), (rests[1], rests[2]));
    for id in ["{\"id\":1.50,", "{\"id\":123456789012345678901234567890,", "{\"id\":\"\\u00e9\","] {
        assert!(out.contains(id), "{id}");
    }
    // Seeds beyond 64 bits, as supported by Python.
    let found = answers(&[], line("1", "-18446744073709551617"));
    assert!(found[0]["record"].is_object(), "{}", found[0]);
}

#[test]
fn invalid_profile_coefficient_is_an_error_of_its_batch_line() {
    let goldens = goldens();
    let mut absurd = line(&goldens, cases(&goldens, "run").next().unwrap());
    absurd["profile"]["throughput"]["overhead_weight"] = json!(-1);
    let found = answers(&[], absurd.to_string());
    assert!(found[0]["error"].as_str().unwrap().contains("overhead_weight: found -1"), "{}", found[0]);
}

#[test]
fn knobs_of_a_batch_line_override_those_of_the_command_line() {
    let text = r#"{"id":1,"target":"GROQ_LPU_NODE","workload":"gpt5_1t_train"}
{"id":2,"target":"GROQ_LPU_NODE","workload":"gpt5_1t_train","knobs":{"num_nodes":1},"seed":1337}"#;
    let plain = answers(&[], text);
    let under = answers(&["--set", "num_nodes=2", "--seed", "5"], text);
    assert_ne!(plain[0]["record"], under[0]["record"]);
    assert_eq!(plain[1], under[1]);
    assert_eq!(plain[0]["record"], plain[1]["record"]);
}

#[test]
fn many_lines_keep_their_order() {
    let mut text = String::new();
    let tp = |i: u32| 1 << (i % 5);
    for i in 0..5000 {
        let target = ["GROQ_LPU_NODE", "SAMBANOVA_SNX_NODE", "NONE"][i as usize % 3];
        let knobs = json!({"tp": tp(i), "pp": 1 + i / 15 % 4});
        writeln!(text, "{}", json!({"id": i, "target": target, "workload": "gpt5_1t_train", "knobs": knobs})).unwrap();
    }
    let found = answers(&["--set", "noise=off"], text);
    assert_eq!(found.len(), 5000);
    for (i, answer) in found.iter().enumerate() {
        assert_eq!(answer["id"], i);
        assert_eq!(answer.get("error").is_some(), i % 3 == 2);
    }
    // Equal scenarios have equal answers, whichever worker answers them and whatever lines are around them.
    for i in 0..4940 {
        assert_eq!(found[i].get("record"), found[i + 60].get("record"), "{i}");
    }
    assert_ne!(found[0]["record"], found[15]["record"]);
}

#[test]
fn warnings_are_reported_once_on_stderr() {
    let dir = tempfile::tempdir().unwrap();
    let line = r#"{"id":1,"target":"GROQ_LPU_NODE","workload":"gpt5_1t_train","knbos":{}}"#;
    let run = atlas(dir.path(), &["run", "--batch", "-"]).write_stdin(format!("{line}\n").repeat(50)).assert().code(0);
    assert_eq!(stderr(&run), "line 1: unknown key `knbos` ignored; did you mean `knobs`?\n");
    assert_eq!(stdout(&run).lines().count(), 50);
}

fn spawn(args: &[&str]) -> std::process::Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atlas"));
    command.args(args).env("ATLAS_CONFIG_DIR", "/nonexistent");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn batch_result_is_flushed_before_the_next_line_is_read() {
    let mut child = spawn(&["run", "--batch", "-"]);
    let mut ask = child.stdin.take().unwrap();
    let mut hear = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        writeln!(ask, "{GOOD}").unwrap();
        ask.flush().unwrap();
        assert!(hear.next().unwrap().unwrap().starts_with("{\"id\":\"good\",\"record\""));
    }
    drop(ask);
    assert!(hear.next().is_none());
    assert!(child.wait().unwrap().success());
}

#[test]
fn closed_stdout_ends_the_command_successfully() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("many.jsonl");
    std::fs::write(&file, format!("{GOOD}\n").repeat(3000)).unwrap();
    let file = file.to_str().unwrap();
    for args in
        [&["run", "--batch", file][..], &["run", "--batch", "-"], &["compare"], &["completions", "bash"], &["--help"]]
    {
        let mut child = spawn(args);
        // Stdin stays open: the exit must not wait for the end of the input.
        let mut ask = child.stdin.take().unwrap();
        let mut hear = child.stdout.take().unwrap();
        if args.contains(&"-") {
            writeln!(ask, "{GOOD}").unwrap();
            let mut first = [0; 1];
            hear.read_exact(&mut first).unwrap();
        }
        drop(hear);
        // A later write fails, since nobody reads the output. It may be the one after next, if a process started by
        // another test has inherited our end of the pipe for a moment.
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if args.contains(&"-") {
                let _ = writeln!(ask, "{GOOD}");
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        let mut described = String::new();
        child.stderr.take().unwrap().read_to_string(&mut described).unwrap();
        assert!(status.success() && !described.contains("panic"), "{args:?}: {status} {described}");
        drop(ask);
    }
}

#[test]
fn unreadable_batch_input_exits_1() {
    let dir = tempfile::tempdir().unwrap();
    let run = atlas(dir.path(), &["run", "--batch", "gone.jsonl"]).assert().code(1);
    assert!(stderr(&run).contains("error: cannot read gone.jsonl"), "{}", stderr(&run));
    let run = atlas(dir.path(), &["run", "--batch", "."]).assert().code(1);
    assert!(stderr(&run).contains("error: cannot read the input"), "{}", stderr(&run));
    assert!(stdout(&atlas(dir.path(), &["run", "--batch", "-"]).write_stdin("").assert().code(0)).is_empty());
}
