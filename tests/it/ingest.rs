//! Real logs with their expected facts, and properties of reading arbitrary input.

use std::io::Read as _;
use std::path::PathBuf;

use atlas_ingest as ingest;
use atlas_ingest::{Config, Context, Ingested, Warmup, predecessor};
use proptest::prelude::*;
use serde_json::Value;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs")
}

fn unpacked(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(folder().join(format!("{name}.gz"))).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

fn context(name: &str) -> Context {
    Context { name: name.to_owned(), warmup: Warmup::First, seed: 1, settings: Config::default() }
}

fn read(name: &str, bytes: &[u8]) -> Ingested {
    ingest::ingest(bytes, &context(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn expectations() -> Vec<Value> {
    serde_json::from_slice(&unpacked("expectations.json")).unwrap()
}

#[test]
fn tally_accounts_for_every_log_line() {
    for entry in expectations() {
        let name = entry["file"].as_str().unwrap();
        let tally = read(name, &unpacked(name)).tally;
        let skipped: u64 = tally.skipped.values().map(|skipped| skipped.n).sum();
        assert_eq!(tally.recognized + tally.noted + tally.passed_over + skipped, tally.lines, "{name}: {tally:?}");
        assert!(tally.recognized > 0, "{name}");
    }
}

#[test]
fn benchmark_json_round_trips_through_ingest() {
    for name in
        ["megatron/gpt_7b_1node_tflops.log", "nemo/nemo_dllogger_gpt3_175b.json", "nanotron/tiny_15_iterations.log"]
    {
        let first = read(name, &unpacked(name));
        let written = predecessor::benchmarks(name, &first.readings[0], &context(name));
        assert_eq!(written.len(), 1, "{name}");
        let second = read("written.json", serde_json::to_string_pretty(&written[0]).unwrap().as_bytes());
        assert_eq!(second.readings[0].format, "tprimat-result-json");
        for fact in ["step_time_s", "num_gpus", "global_batch_size", "seq_len", "loss"] {
            assert_eq!(first.readings[0].facts.get(fact), second.readings[0].facts.get(fact), "{name}: {fact}");
        }
    }
}

#[test]
fn steps_are_parsed_despite_interleaved_and_surrounding_output() {
    let name = "megatron/gpt_7b_1node_tflops.log";
    let plain = String::from_utf8(unpacked(name)).unwrap();
    let facts = |text: &[u8]| {
        let mut facts = Value::from(read(name, text).readings[0].facts.clone());
        facts.as_object_mut().unwrap().remove("lines");
        facts
    };
    let expected = facts(plain.as_bytes());
    let dressed: Vec<String> = vec![
        plain.replace('\n', "\r\n"),
        plain.lines().map(|line| format!("[default7]: \u{1b}[32m{line}\u{1b}[0m\n")).collect(),
        plain
            .lines()
            .map(|line| format!("\0{line}\0\nINFO: 10.0.0.1 - \"POST /v1\" 200 OK\n 50%|███  | 1/2\r"))
            .collect(),
        // Every line twice, as with `tee` or with two ranks that print the same.
        plain
            .lines()
            .filter(|line| {
                line.contains("elapsed")
                    || line.contains("billions")
                    || line.contains("Theoretical")
                    || line.contains("max allocated")
            })
            .fold(String::new(), |text, line| {
                let again = if line.contains("elapsed") { format!("{line}\n") } else { String::new() };
                format!("{text}{line}\n{again}")
            }),
    ];
    for text in dressed {
        let mut got = facts(text.as_bytes());
        // Copies are reported, and skipped iterations are counted twice.
        got.as_object_mut().unwrap().remove("copies_of_other_ranks");
        assert_eq!(got["step_time_s"], expected["step_time_s"]);
        assert_eq!(got["num_gpus"], expected["num_gpus"]);
        assert_eq!(got["loss"], expected["loss"]);
    }
    // A last line that is truncated within a number is not read as a shorter number.
    let cut = &plain[..plain.rfind("elapsed time per iteration (ms): 12104").unwrap() + 36];
    assert_eq!(facts(cut.as_bytes())["n_records"], 9);
}

#[test]
fn concatenated_runs_in_one_log_are_separated() {
    let name = "megatron/gpt_7b_1node_tflops.log";
    let once = unpacked(name);
    let mut faster = String::from_utf8(once.clone()).unwrap();
    faster = faster.replace("(ms): 12", "(ms): 11");
    let twice = [once, faster.into_bytes()].concat();
    let runs = &read(name, &twice).readings[0].runs;
    assert_eq!(runs.iter().map(|run| run.n).collect::<Vec<_>>(), [10, 10]);
    let mean = |index: usize| runs[index].stats(&runs[index].seconds, 1, &context(name)).unwrap().mean;
    assert!((mean(0) - mean(1) - 1.0).abs() < 1e-9);
}

/// Additions by launchers, log collectors and other systems do not change the facts.
#[test]
fn encodings_and_launcher_prefixes_do_not_change_the_facts() {
    const FRONTS: [&str; 8] = [
        "[rank0]: ",
        " 12: ",
        "2025-01-01T00:00:00.123456789Z ",
        "2025-01-01T00:00:00.123456789Z stdout F ",
        "trainer-1  | ",
        "[default0]:",
        "[1,0]<stdout>:",
        "\u{1b}[36m(RayTrainWorker pid=1234, ip=10.0.0.1)\u{1b}[0m ",
    ];
    let described = |name: &str, bytes: &[u8]| {
        let ingested = ingest::ingest(bytes, &context(name)).ok()?;
        let reading = ingested.readings.first()?;
        Some((reading.format, reading.facts.clone()))
    };
    for entry in expectations() {
        let name = entry["file"].as_str().unwrap();
        let bytes = unpacked(name);
        let expected = described(name, &bytes);
        let text = String::from_utf8_lossy(&bytes);
        let utf_16 = |encode: fn(u16) -> [u8; 2]| -> Vec<u8> {
            std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(encode).collect()
        };
        let mut gathered = vec![
            ("CRLF", text.replace("\r\n", "\n").replace('\n', "\r\n").into_bytes()),
            ("NUL", text.replace('\n', "\n\0\0").into_bytes()),
            ("UTF-8 with a mark", format!("\u{feff}{text}").into_bytes()),
            ("UTF-16 LE", utf_16(u16::to_le_bytes)),
            ("UTF-16 BE", utf_16(u16::to_be_bytes)),
        ];
        // A multi-line JSON document is not a log.
        if !name.ends_with(".json") {
            for front in FRONTS {
                gathered.push((
                    front,
                    text.split_inclusive('\n').flat_map(|line| [front, line]).collect::<String>().into_bytes(),
                ));
            }
        }
        for (how, bytes) in gathered {
            assert!(described(name, &bytes) == expected, "{name}: {how}");
        }
    }
}

#[test]
fn unreadable_input_errors_state_position_and_cause() {
    let error = ingest::ingest(&b"hello\nworld\n"[..], &context("notes.txt")).unwrap_err().to_string();
    assert!(error.starts_with("notes.txt:1:1: no known format in 2 lines"), "{error}");
    let error = ingest::ingest(&b"{\"a\": 1,\n  \"b\": }\n"[..], &context("bad.json")).unwrap_err().to_string();
    assert!(error.contains("bad.json:2:8: not JSON"), "{error}");
    let error = ingest::ingest(&b""[..], &context("empty.log")).unwrap_err().to_string();
    assert!(error.starts_with("empty.log: the file is empty"), "{error}");
    let error = ingest::ingest(&b"\x28\xb5\x2f\xfd\0"[..], &context("a.zst")).unwrap_err().to_string();
    assert!(
        error.contains("compressed with Zstandard; expected text or gzip; run: zstd -dc a.zst | atlas ingest -"),
        "{error}"
    );
    let error = ingest::ingest(&b"\x7fELF\x02\x01\x01\0\0\x03\xff\xfe"[..], &context("a.out")).unwrap_err().to_string();
    assert!(error.contains("the file is binary"), "{error}");
}

/// The samples, each with random cuts and changes.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let names: Vec<String> = expectations().iter().map(|entry| entry["file"].as_str().unwrap().to_owned()).collect();
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_usize..3), 1..40);
    (prop::sample::select(names), edits, any::<prop::sample::Index>()).prop_map(|(name, edits, end)| {
        let mut bytes = unpacked(&name);
        bytes.truncate(30_000);
        for (at, byte, how) in edits {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        let end = end.index(bytes.len()) + 1;
        bytes.truncate(end.max(bytes.len() / 2));
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn damaged_logs_never_panic(bytes in damaged()) {
        if let Ok(ingested) = ingest::ingest(bytes.as_slice(), &context("damaged.log")) {
            for reading in &ingested.readings {
                let _ = predecessor::benchmarks("damaged.log", reading, &context("damaged.log"));
            }
            let _ = ingest::measurement::measurements(&ingested, &context("damaged.log"));
            let _ = atlas_report::measurements::file(&ingested, &context("damaged.log"));
        }
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = ingest::ingest(bytes.as_slice(), &context("bytes"));
    }

    #[test]
    fn words_of_the_formats_in_any_order_never_panic(
        words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..60)
    ) {
        let _ = ingest::ingest(words.concat().as_bytes(), &context("words"));
    }
}

const WORDS: [&str; 44] = [
    "\n",
    " ",
    "|",
    ",",
    ":",
    "12.5",
    "-1",
    "1e999",
    "nan",
    "99999999999999999999",
    "é",
    "\r",
    "{",
    "}",
    "\"",
    " iteration 10/ 20 |",
    "elapsed time per iteration (ms): ",
    "Epoch 0: 5/10 [",
    "train_step_timing in s=",
    "reduced_train_loss=",
    "DLLL {",
    ":::MLLOG {\"key\": \"power_reading\", \"value\": ",
    "step: ",
    "tps: ",
    "============ Serving Benchmark Result ============\n",
    "Mean TTFT (ms): ",
    "# gpu pwr sm\n",
    "#Entity GPUTL\n",
    "GPU 0 ",
    "timestamp, index, power.draw [W]\n",
    "algbw busbw time size",
    "# size time algbw busbw\n",
    "Metric,avg,min\n",
    "| test | t/s |\n",
    "{'loss': ",
    "max allocated: ",
    "indexmap_sl_",
    "E2E latency=",
    "completed step: ",
    "seconds: ",
    "GPU[0] : ",
    "DCGM_FI_A{gpu=\"0\"} ",
    "window_name,energy\n",
    "train_time:",
];
