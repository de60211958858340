//! Tests of format variants and what must be read from each. They are based on the output of the tools; none is a
//! recorded run.

use crate::common;

use crate::common::{facts, read};
use serde_json::{Value, json};

#[test]
fn outputs_of_a_notebook_are_read_as_a_log() {
    let notebook = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
        {"cell_type": "code", "source": ["seq_length = 512"], "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["  seq_length ...................... 4096\n"]}]},
        {"cell_type": "code", "source": [], "outputs": [
            {"output_type": "stream", "name": "stdout", "text": [
                " iteration 1/ 20 | elapsed time per iteration (ms): 1500.0 | global batch size: 8 | lm loss: 2.5 |\n",
                " iteration 2/ 20 | elapsed time per iteration (ms): 1250.0 | global batch size: 8 | lm loss: 2.4 |"]}]},
    ]});
    let ingested = read("a.ipynb", serde_json::to_string_pretty(&notebook).unwrap().as_bytes());
    let reading = &ingested.readings[0];
    assert_eq!(reading.runs[0].seconds.kept(), [1.5, 1.25]);
    assert_eq!(reading.config.get("seq_len"), Some(4096.0));
}

/// A notebook with steps in one cell, and the result of a benchmark in the next.
fn two_cells() -> Value {
    let stream = |text: [&str; 2]| {
        json!({"cell_type": "code", "source": [], "outputs": [
        {"output_type": "stream", "name": "stdout", "text": text}]})
    };
    json!({"cells": [
        stream(["step: 10  loss: 10.25  memory: 47.71GiB(60.28%)  tps: 6,234  mfu: 36.51%\n",
            "step: 20  loss:  8.25  memory: 47.71GiB(60.28%)  tps: 6,250  mfu: 36.60%\n"]),
        stream(["============ Serving Benchmark Result ============\n", "Mean TTFT (ms):   31.45\n"]),
    ], "metadata": {}, "nbformat": 4})
}

#[test]
fn a_notebook_on_one_line_is_read_output_by_output() {
    let text = serde_json::to_string(&two_cells()).unwrap();
    for text in [text.clone(), format!("a line before\n{text}\n")] {
        let ingested = read("a.ipynb", text.as_bytes());
        let steps = ingested.readings.iter().find(|reading| reading.format == "torchtitan").unwrap();
        assert_eq!(steps.facts.get("tokens_per_s_per_gpu_by_step"), Some(&json!({"10": 6234.0, "20": 6250.0})));
        assert_eq!(steps.facts.get("mfu_percent_by_step"), Some(&json!({"10": 36.51, "20": 36.6})));
        let served = ingested.readings.iter().find(|reading| reading.format == "vllm-bench-text").unwrap();
        assert_eq!(served.facts.get("results").unwrap()[0]["ttft_ms.mean"], 31.45);
    }
}

#[test]
fn a_notebook_on_one_line_that_is_cut_off_is_refused_with_the_reason() {
    let text = serde_json::to_string(&two_cells()).unwrap();
    let cut = text.find("metadata").unwrap();
    let error = atlas_ingest::ingest(&text.as_bytes()[..cut], &common::context("a.ipynb")).unwrap_err().to_string();
    assert!(error.contains("a truncated notebook"), "{error}");
}

#[test]
fn single_line_document_is_not_parsed_as_settings() {
    let state = json!({"global_step": 20, "max_steps": 20, "train_batch_size": 4, "log_history": [
        {"epoch": 0.5, "loss": 2.5, "step": 10, "learning_rate": 1e-5},
        {"epoch": 1.0, "loss": 2.25, "step": 20, "learning_rate": 1e-5}]});
    for text in [serde_json::to_string(&state).unwrap(), serde_json::to_string_pretty(&state).unwrap()] {
        let ingested = read("trainer_state.json", text.as_bytes());
        let reading = &ingested.readings[0];
        assert_eq!(
            (reading.config.get("global_batch_size"), reading.facts.number("train_batch_size")),
            (None, Some(4.0))
        );
    }
}

#[test]
fn the_table_of_losses_in_a_notebook_is_a_run() {
    let html = "<div><progress value='30' max='30'></progress> [30/30 01:15, Epoch 1/1]</div><table><thead><tr><th>Step</th><th>Training Loss</th></tr></thead><tbody><tr><td>10</td><td>2.500000</td></tr><tr><td>20</td><td>2.250000</td></tr></tbody></table>";
    let notebook = json!({"nbformat": 4, "cells": [{"cell_type": "code", "outputs": [
        {"output_type": "display_data", "data": {"text/html": [html], "text/plain": ["<IPython.core.display.HTML object>"]}}]}]});
    let facts = facts(&serde_json::to_string(&notebook).unwrap());
    assert_eq!(facts["loss"], json!({"n": 2, "first": 2.5, "last": 2.25}));
    assert_eq!((facts["progress_steps"].as_u64(), facts["progress_elapsed_s"].as_f64()), (Some(30), Some(75.0)));
}

#[test]
fn a_json_report_between_lines_of_a_log_is_read() {
    let report = "{\n  \"num_prompts\": 10,\n  \"completed\": 10,\n  \"duration\": 5.5,\n  \"output_throughput\": 812.5,\n  \"mean_ttft_ms\": 21.5\n}\n";
    let text = format!("INFO starting the benchmark\n{report}INFO done\n{}", report.replace("812.5", "912.5"));
    let ingested = read("a.log", text.as_bytes());
    let rates: Vec<Option<f64>> =
        ingested.readings.iter().map(|reading| reading.facts.number("output_throughput")).collect();
    assert_eq!(rates, [Some(812.5), Some(912.5)]);
}

#[test]
fn all_reduce_bench_is_read_in_both_outputs() {
    let table = "hardware: _CudaDeviceProperties(name='NVIDIA H100 80GB HBM3', major=9)\nThe average bandwidth of all_reduce over 8 ranks (5 warmups / 20 trials):\n\n| payload |    busbw   |    algbw   |\n| ------: | ---------: | ---------: |\n|    32KB |   0.92GBps |   0.53GBps |\n|    16GB | 480.23GBps | 274.42GBps |\n";
    let old = "The average bandwidth of all_reduce with a 4.0GB payload (5 trials, 16 ranks):\n algbw: 192.5 GBps (1540.0 Gbps)\n busbw: 361.0 GBps (2888.0 Gbps)\n";
    let facts = facts(table);
    assert_eq!(facts["results"][0]["size_bytes"], json!([32_768, 17_179_869_184_u64]));
    assert_eq!(
        (facts["ranks"].as_u64(), facts["results"][0]["busbw_out_of_place_at_max_size"].as_f64()),
        (Some(8), Some(480.23))
    );
    let facts = common::facts(old);
    assert_eq!((facts["ranks"].as_u64(), facts["results"][0]["algbw_at_max_size"].as_f64()), (Some(16), Some(192.5)));
}

#[test]
fn scrapes_of_a_server_are_not_added_up() {
    let scrape = |tokens: u64| {
        format!(
            "vllm:generation_tokens_total{{engine=\"0\",model_name=\"m\"}} {tokens}.0 1700000000000\nvllm:generation_tokens_total{{engine=\"1\",model_name=\"m\"}} 5.0 1700000000000\nvllm:time_to_first_token_seconds_sum{{model_name=\"m\"}} 2.5\nvllm:time_to_first_token_seconds_count{{model_name=\"m\"}} 100\n"
        )
    };
    let facts = facts(&(scrape(1000) + &scrape(3000)));
    assert_eq!((facts["output_tokens"].as_u64(), facts["snapshots"].as_u64()), (Some(3005), Some(2)));
    assert_eq!(facts["ttft_ms"]["mean"], 25.0);
    // Two models in one response are two readings.
    let answer = json!({"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": {"__name__": "vllm:num_requests_running", "model_name": "a"}, "value": [1.5, "12"]},
        {"metric": {"__name__": "vllm:num_requests_running", "model_name": "b"}, "value": [1.5, "3"]}]}});
    let ingested = read("a.json", answer.to_string().as_bytes());
    let running: Vec<Option<f64>> = ingested.readings.iter().map(|reading| reading.facts.number("running")).collect();
    assert_eq!(running, [Some(12.0), Some(3.0)]);
}

#[test]
fn devices_of_two_hosts_are_counted_separately() {
    let sample = |host: &str, watts: f64| {
        format!("DCGM_FI_DEV_POWER_USAGE{{gpu=\"0\",modelName=\"NVIDIA H100\",Hostname=\"{host}\"}} {watts}\n")
    };
    let facts = facts(&(sample("a", 400.5) + &sample("b", 300.25)));
    assert_eq!((facts["num_gpus"].as_u64(), facts["total_power_w"].as_f64()), (Some(2), Some(700.75)));
    assert_eq!(facts["metrics"]["DCGM_FI_DEV_POWER_USAGE"], json!({"a/0": 400.5, "b/0": 300.25}));
}

#[test]
fn the_summary_of_inferencemax_is_read_with_its_units() {
    let text = "| Hardware | Framework | Precision | TP | EP | DP Attention | Conc | TTFT (ms) | TPOT (s) | Interactivity (tok/s/user) | TPUT per GPU |\n|---|---|---|---|---|---|---|---|---|---|---|\n| H200 | VLLM | FP8 | 8 | 1 | False | 64 | 250.5 | 0.0125 | 80.0 | 1200.5 |\n";
    let facts = facts(text);
    let result = &facts["results"][0];
    assert_eq!((result["ttft_ms"].as_f64(), result["tpot_ms"].as_f64()), (Some(250.5), Some(12.5)));
    assert_eq!(
        (result["max_concurrency"].as_u64(), result["total_throughput_per_gpu"].as_f64()),
        (Some(64), Some(1200.5))
    );
}

#[test]
fn perf_analyzer_csv_counts_microseconds() {
    let text = "Concurrency,Inferences/Second,Client Send,Server Queue,p50 latency,p99 latency\n1,1407.84,12,41,690,1031\n2,2500.5,13,52,750,1250\n";
    let facts = facts(text);
    assert_eq!(facts["results"][1]["request_latency_ms.p99"], 1.25);
    assert_eq!((facts["results"][0]["inferences_per_s"].as_f64(), facts["blocks"].as_u64()), (Some(1407.84), Some(2)));
}

#[test]
fn a_document_with_too_many_values_is_refused() {
    let text = format!("[{{\"a\": [{}0]}}]", "0,".repeat(9 << 20));
    let error = atlas_ingest::ingest(text.as_bytes(), &common::context("big.json")).unwrap_err().to_string();
    assert!(error.contains("values"), "{error}");
}

#[test]
fn contradicting_and_impossible_rates_are_noted() {
    let text = "step: 1  loss: 9.5  memory: 30.99GiB(32.62%)  tps: 9,000  tflops: 120000.5  mfu: 141.19%\nstep: 2  loss: 9.4  memory: 30.99GiB(32.62%)  tps: 9,100  tflops: 120000.5  mfu: 141.19%\n";
    let notes = read("a.log", text.as_bytes()).readings[0].notes.clone();
    assert_eq!(notes.iter().filter(|note| note.starts_with("impossible: ")).count(), 2, "{notes:?}");
    let text = "{'loss': 2.5, 'epoch': 0.1}\n{'train_runtime': 100.0, 'train_samples_per_second': 640.0, 'train_steps_per_second': 2.0, 'epoch': 1.0}\n";
    let noted = |batch: &str| {
        let text = format!("  Total train batch size (w. parallel, distributed & accumulation) = {batch}\n{text}");
        let notes: Vec<Value> =
            read("a.log", text.as_bytes()).readings[0].notes.iter().cloned().map(Value::from).collect();
        notes.iter().any(|note| note.as_str().unwrap().starts_with("contradiction: "))
    };
    assert!(noted("8") && !noted("320"));
}

#[test]
fn log_with_many_contradictions_is_parsed_in_bounded_time() {
    let mut text = String::new();
    for index in 0..20_000 {
        text += &format!(
            "  seq_length ...................... {}\n iteration 1/ 20 | elapsed time per iteration (ms): 1500.0 | lm loss: 2.5 |\n",
            128 + index
        );
    }
    let start = std::time::Instant::now();
    let ingested = read("a.log", text.as_bytes());
    assert!(ingested.readings.len() <= 1025, "{}", ingested.readings.len());
    assert!(start.elapsed().as_secs() < 60);
    let tally = &ingested.tally;
    let skipped: u64 = tally.skipped.values().map(|skipped| skipped.n).sum();
    assert_eq!(tally.recognized + tally.noted + tally.passed_over + skipped, tally.lines);
}

#[test]
fn latency_percentiles_are_not_treated_as_shares() {
    let text = "[BENCHMARK] model_name llama_70b world_size 8 batch_size 64 input_length 128 output_length 2048 tokens_per_sec 3271.12 percentile95(ms) 40100.0 percentile99(ms) 40120.0 latency(ms) 40070.1\n";
    let ingested = read("a.log", text.as_bytes());
    let reading = &ingested.readings[0];
    assert_eq!(reading.facts.get("results").unwrap()[0]["percentile99(ms)"], 40_120);
    assert!(reading.notes.is_empty(), "{:?}", reading.notes);
}

#[test]
fn blocks_of_composer_are_steps() {
    let block = |batch: u32, rates: &str| {
        format!("[batch={batch}/100]:\n\t Train time/batch: {}\n\t Train loss/train/total: 11.5012\n{rates}", batch - 1)
    };
    let rates = "\t Train throughput/batches_per_sec: 0.5\n\t Train throughput/samples_per_sec: 179.25\n\t Train throughput/tokens_per_sec: 367106.4\n\t Train throughput/device/batches_per_sec: 0.0625\n\t Train throughput/device/tokens_per_sec: 45888.3\n\t Train throughput/device/flops_per_sec: 190000000000000.0\n\t Train throughput/device/mfu: 0.4\n";
    let text = block(1, "") + &block(2, rates) + &block(3, rates);
    let ingested = read("a.log", text.as_bytes());
    let run = &ingested.readings[0].runs[0];
    assert_eq!((run.n, run.planned, run.seconds.kept()), (3, Some(100), &[2.0, 2.0][..]));
    assert_eq!(
        (run.tokens.kept(), run.tflops.kept(), run.mfu.kept()),
        (&[45888.3; 2][..], &[190.0; 2][..], &[40.0; 2][..])
    );
    assert_eq!(facts(&text)["num_gpus_implied"], 8);
}

#[test]
fn levanter_progress_yields_step_times() {
    let text = "Progress on:train 1.20kit/10.0kit rate:2.0it/s remaining:1:13:20 elapsed:08:40 postfix:loss=3.21\nProgress on:train 1.20kit/10.0kit rate:4.0s/it remaining:1:13:10 elapsed:08:44 postfix:loss=3.18\n";
    let ingested = read("a.log", text.as_bytes());
    let run = &ingested.readings[0].runs[0];
    assert_eq!((run.n, run.planned, run.seconds.kept()), (2, Some(10_000), &[0.5, 4.0][..]));
}

#[test]
fn the_console_of_guidellm_states_a_result_for_each_benchmark() {
    let text = "Benchmarks Info:\n=====\nMetadata |||| Requests Made ||\n  Benchmark| Start Time| End Time| Duration (s)| Comp| Inc| Err\n---|---|---|---|---|---|---\nsynchronous| 11:18:55| 11:19:25| 30.0| 12| 1| 0\n throughput| 11:19:25| 11:19:55| 30.0| 540| 200| 2\n=====\n\n\nBenchmarks Stats:\n=====\nMetadata | Request Stats || Out Tok/sec| Tot Tok/sec| Req Latency (sec) ||| TTFT (ms) |||\n  Benchmark| Per Second| Concurrency| mean| mean| mean| median| p99| mean| median| p99\n---|---|---|---|---|---|---|---|---|---|---\nsynchronous| 0.41| 1.00| 105.2| 316.1| 2.43| 2.42| 2.51| 31.5| 31.1| 40.2\n throughput| 18.31| 191.20| 4687.4| 14062.1| 10.44| 10.90| 12.31| 2831.5| 2700.1| 5210.2\n=====\n";
    let facts = facts(text);
    let expected = json!([
        {"mode": "synchronous", "duration_s": 30.0, "successful_requests": 12.0, "failed_requests": 0.0,
         "request_throughput": 0.41, "concurrency": 1.0, "output_throughput": 105.2, "total_token_throughput": 316.1,
         "request_latency_ms.mean": 2430.0, "request_latency_ms.median": 2420.0, "request_latency_ms.p99": 2510.0,
         "ttft_ms.mean": 31.5, "ttft_ms.median": 31.1, "ttft_ms.p99": 40.2},
        {"mode": "throughput", "duration_s": 30.0, "successful_requests": 540.0, "failed_requests": 2.0,
         "request_throughput": 18.31, "concurrency": 191.2, "output_throughput": 4687.4, "total_token_throughput": 14062.1,
         "request_latency_ms.mean": 10440.0, "request_latency_ms.median": 10900.0, "request_latency_ms.p99": 12310.0,
         "ttft_ms.mean": 2831.5, "ttft_ms.median": 2700.1, "ttft_ms.p99": 5210.2},
    ]);
    assert_eq!(facts["results"], expected);
}

#[test]
fn rank_count_is_inferred_from_bandwidths_of_a_truncated_list() {
    let text = "#  Rank  0 Group  0 Pid  12345 on    node-0 device  0 [0x1b] NVIDIA H100 80GB HBM3\n#  Rank  1 Group  0 Pid  12345 on    node-0 device  1 [0x43] NVIDIA H100 80GB HBM3\n#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n  8589934592    2147483648     float     sum      -1    31210  275.23  481.65      0    31190  275.41  481.96      0\n# Avg bus bandwidth    : 159.05\n";
    let facts = facts(text);
    assert_eq!((facts["op"].as_str(), facts["ranks"].as_u64()), (Some("all_reduce"), Some(8)));
}

#[test]
fn a_step_of_torchtune_has_a_rate_and_no_time() {
    let text = "Step 1 | loss:1.6102 lr:2e-05 tokens_per_second_per_gpu:1211.2 peak_memory_active:32.1 peak_memory_alloc:30 \n\
                Step 2 | loss:1.5102 lr:2e-05 tokens_per_second_per_gpu:3011.5 peak_memory_active:38.1 peak_memory_alloc:36 \n\
                Step 3 | loss:1.4102 lr:2e-05 tokens_per_second_per_gpu:3012.5 peak_memory_active:38.1 peak_memory_alloc:36 \n";
    let ingested = read("torchtune.log", text.as_bytes());
    let reading = &ingested.readings[0];
    assert_eq!((reading.format, reading.runs[0].last_step), ("torchtune", Some(3)));
    assert_eq!(reading.facts.get("tokens_per_s_per_gpu").unwrap()["mean_no_warmup"], 3012.0);
    assert!((reading.facts.number("max_memory_gb").unwrap() - 36.0 * 1.073_741_824).abs() < 1e-9);
    assert!(reading.runs[0].seconds.is_empty());
}

#[test]
fn verl_step_yields_its_parts_and_the_accelerator_count() {
    let line = |step: u32, seconds: f64| {
        let tokens = 1928.0 * seconds * 8.0;
        format!(
            "(TaskRunner pid=12034) step:{step} - actor/entropy:np.float64(0.41) - actor/grad_norm:0.21 - actor/lr:1e-06 \
             - perf/max_memory_allocated_gb:60 - timing_s/gen:{} - timing_s/update_actor:18.0 - timing_s/step:{seconds} \
             - perf/total_num_tokens:{tokens:.0} - perf/throughput:1928.0\n",
            seconds / 2.0
        )
    };
    let ingested = read("verl.log", format!("{}{}{}", line(1, 80.0), line(2, 60.0), line(3, 62.0)).as_bytes());
    let reading = &ingested.readings[0];
    assert_eq!((reading.format, reading.runs[0].seconds.kept()), ("verl", &[80.0, 60.0, 62.0][..]));
    assert_eq!(reading.config.get("num_gpus"), Some(8.0));
    let parts = reading.facts.get("mean_seconds_of_parts").unwrap();
    assert_eq!((&parts["update_actor"], parts["gen"].as_f64()), (&json!(18.0), Some(101.0 / 3.0)));
}

#[test]
fn swift_mean_speeds_yield_the_times_between_steps() {
    let line = |step: u32, speed: &str| {
        format!(
            "{{'loss': 1.7{step}, 'token_acc': 0.61, 'grad_norm': 2.77, 'learning_rate': 1.1e-05, 'memory(GiB)': 32.0, \
             {speed}, 'epoch': 0.01, 'global_step/max_steps': '{step}/873', 'elapsed_time': '8s'}}\n"
        )
    };
    // 20, 40 and 60 s have elapsed after 1, 5 and 10 steps, which gives 20, 5 and 4 s per step.
    let text = [
        line(1, "'train_speed(iter/s)': 0.05"),
        line(5, "'train_speed(iter/s)': 0.125"),
        line(10, "'train_speed(s/it)': 6.0"),
    ];
    let ingested = read("swift.log", text.concat().as_bytes());
    let reading = &ingested.readings[0];
    assert_eq!(reading.runs[0].seconds.kept(), [20.0, 5.0, 4.0]);
    assert_eq!((reading.runs[0].last_step, reading.runs[0].planned), (Some(10), Some(873)));
    assert!(reading.notes.iter().all(|note| !note.contains("progress bar")), "{:?}", reading.notes);
}

#[test]
fn axolotl_states_the_rate_of_one_accelerator() {
    let text = "{'loss': 1.5, 'grad_norm': 0.5, 'learning_rate': 2e-05, 'memory/max_mem_active(gib)': 21.0, \
                'memory/max_mem_allocated(gib)': 20.0, 'tokens_per_second_per_gpu': 3000.0, 'epoch': 0.1}\n\
                {'loss': 1.4, 'grad_norm': 0.5, 'learning_rate': 2e-05, 'memory/max_mem_active(gib)': 21.0, \
                'memory/max_mem_allocated(gib)': 20.0, 'tokens_per_second_per_gpu': 3010.0, 'epoch': 0.2}\n";
    let facts = facts(text);
    assert_eq!(facts["tokens_per_s_per_gpu"]["last"], 3010.0);
    assert!((facts["max_memory_gb"].as_f64().unwrap() - 21.474_836_48).abs() < 1e-9);
}
