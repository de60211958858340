//! Regression tests with documents that were once misread, grouped by kind of mistake: units, separators, several
//! tables or tests in one document, values that mean something else.

use crate::common;

use crate::common::{facts, read};
use serde_json::Value;

/// The facts of the first reading of this tool.
fn of_tool(text: &str, tool: &str) -> Value {
    let ingested = read("some.log", text.as_bytes());
    let reading = ingested.readings.iter().find(|reading| reading.tool == tool).unwrap();
    Value::from(reading.facts.clone())
}

fn config(text: &str) -> Value {
    let ingested = read("some.log", text.as_bytes());
    let reading = &ingested.readings[0];
    let settings = reading.config.iter().map(|(name, value, _)| (name.to_owned(), value.clone()));
    Value::Object(settings.collect())
}

#[test]
fn perf_analyzer_states_microseconds() {
    let text = "Request concurrency: 4\n  Client: \n    Request count: 25348\n    Throughput: 1407.84 infer/sec\n    Avg latency: 708 usec (standard deviation 63 usec)\n    p99 latency: 1031 usec\n  Server: \n    Avg request latency: 382 usec (overhead 41 usec)\n\nInferences/Second vs. Client Average Batch Latency\nConcurrency: 4, throughput: 1407.84 infer/sec, latency 708 usec\n";
    let facts = facts(text);
    assert_eq!(facts["blocks"], 1);
    let result = &facts["results"][0];
    assert_eq!(result["request_latency_ms.mean"], 0.708);
    assert_eq!(result["request_latency_ms.std"], 0.063);
    assert_eq!(result["request_latency_ms.p99"], 1.031);
    assert_eq!(result["server_latency_ms"], 0.382);
    // Offline benchmarks state units, too.
    let facts = common::facts("Avg latency: 812.5 ms\n99% percentile latency: 0.9 seconds\n");
    assert_eq!((facts["latency_s"]["mean"].as_f64(), facts["latency_s"]["p99"].as_f64()), (Some(0.8125), Some(0.9)));
}

#[test]
fn every_genai_perf_table_is_a_result_of_its_own() {
    let table = |ttft: &str, rate: &str| {
        format!(
            "         NVIDIA GenAI-Perf | LLM Metrics\n┃      Statistic ┃   avg ┃   p99 ┃\n│ Time to first token (ms) │ {ttft} │ 30.00 │\n│ Request throughput (per sec) │ {rate} │ N/A │\n└───┴───┴───┘\n"
        )
    };
    let facts = facts(&(table("16.26", "0.52") + &table("1,016.5", "0.90")));
    assert_eq!(facts["results"][0]["ttft_ms.mean"], 16.26);
    assert_eq!(facts["results"][0]["request_throughput"], 0.52);
    assert_eq!(facts["results"][1]["ttft_ms.mean"], 1016.5);
    assert_eq!(facts["results"][1]["request_throughput"], 0.9);
}

#[test]
fn deepspeed_chat_states_the_batch_of_one_accelerator() {
    let text = "  train_batch_size ............. 512\n  train_micro_batch_size_per_gpu  8\nEpoch: 0, Step: 0, Rank: 0, loss = 0.69\nModel Parameters: 1.316 B, Latency: 650ms, TFLOPs: 45.20, Samples/sec: 12.30, Time/seq 0.08s, Batch Size: 8, Sequence Length: 512\nEpoch: 0, Step: 1, Rank: 0, loss = 0.68\nModel Parameters: 1.316 B, Latency: 0.55s, TFLOPs: 45.20, Samples/sec: 14.50, Time/seq 0.07s, Batch Size: 8, Sequence Length: 512\n";
    let facts = facts(text);
    assert_eq!(facts["steps"], serde_json::json!([0, 1]));
    assert_eq!(facts["step_time_s"]["first"], 0.65);
    assert_eq!((facts["global_batch_size"].as_u64(), facts["micro_batch_size"].as_u64()), (Some(512), Some(8)));
}

#[test]
fn rlhf_steps_continue_over_epochs_with_the_global_batch() {
    let mut text = String::new();
    for (epoch, step) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)] {
        text += &format!(
            "epoch: {epoch}|step: {step}|ppo_ep: 1|act_loss: 0.2{step}|cri_loss: 0.1|unsuper_loss: 0.0\n|E2E latency=4.00s |Gather latency=0.00s (0.00%) |Generate time=2.65s (66.0%) |Training time=1.07s (27.0%) |Others=0.28 (7.0%)|CurSamplesPerSec=16.00 |AvgSamplesPerSec=16.29\n"
        );
    }
    let facts = facts(&text);
    assert_eq!(facts["steps"], serde_json::json!([0, 4]));
    assert_eq!((facts["restarts"].as_u64(), facts["global_batch_size"].as_u64()), (None, Some(64)));
}

#[test]
fn thousands_separators_belong_to_the_number() {
    let text = "  Instantaneous batch size per device = 8\n  Total train batch size (w. parallel, distributed & accumulation) = 1,024\n  Total optimization steps = 12,500\n{'loss': 2.5, 'learning_rate': 5e-05, 'epoch': 0.1}\n";
    let config = config(text);
    assert_eq!((config["global_batch_size"].as_u64(), config["total_steps"].as_u64()), (Some(1024), Some(12_500)));
}

#[test]
fn mlperf_blocks_are_not_steps() {
    let record = |key: &str, value: &str, about: &str| {
        format!(
            ":::MLLOG {{\"namespace\": \"\", \"time_ms\": 1000, \"event_type\": \"POINT_IN_TIME\", \"key\": \"{key}\", \"value\": {value}, \"metadata\": {{{about}}}}}\n"
        )
    };
    let mut text = record("global_batch_size", "8", "") + &record("run_start", "null", "");
    for (samples, loss) in [(80, 1.5), (160, 1.25), (240, 1.0)] {
        text += &record("train_loss", &loss.to_string(), &format!("\"samples_count\": {samples}"));
    }
    for (step, rate) in [(24, 9.5), (12, 10.5)] {
        text += &record(
            "tracked_stats",
            &format!("{{\"throughput\": {rate}, \"train_step_time\": 0.8}}"),
            &format!("\"step\": {step}"),
        );
    }
    let facts = facts(&text);
    assert_eq!(facts["restarts"], Value::Null);
    assert_eq!(facts["step_time_s"], Value::Null);
    assert_eq!(facts["block_step_time_s"]["mean"], 0.8);
    assert_eq!(
        (facts["throughput_samples_per_s"]["n"].as_u64(), facts["throughput_samples_per_s"]["mean"].as_f64()),
        (Some(2), Some(10.0))
    );
    assert_eq!((facts["train_loss"]["first"].as_f64(), facts["train_loss"]["last"].as_f64()), (Some(1.5), Some(1.0)));
}

#[test]
fn every_nccl_test_keeps_its_collective_and_ranks() {
    let test = |op: &str, ranks: u32, busbw: f64| {
        let mut text = format!(
            "# Collective test starting: {op}_perf\n# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor)\n"
        );
        for rank in 0..ranks {
            text += &format!(
                "#  Rank {rank:2} Group  0 Pid 48160{rank} on node-0 device  {rank} [0000:8d:00] NVIDIA H200\n"
            );
        }
        text + &format!(
            "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n   134217728      33554432     float     sum      -1   1036.7  129.46  {busbw}      0   1036.0  129.55  226.71      0\n# Avg bus bandwidth    : {busbw}\n"
        )
    };
    let facts = facts(&(test("all_gather", 4, 97.1) + &test("all_reduce", 8, 226.5)));
    assert_eq!(
        (facts["op"].as_str(), facts["tests"].as_u64(), &facts["ranks"]),
        (Some("several"), Some(2), &Value::Null)
    );
    let of = |index: usize, name: &str| facts["results"][index][name].clone();
    assert_eq!(
        (of(0, "op"), of(0, "ranks"), of(0, "max_busbw_out_of_place")),
        ("all_gather".into(), 4.into(), 97.1.into())
    );
    assert_eq!(
        (of(1, "op"), of(1, "ranks"), of(1, "max_busbw_out_of_place")),
        ("all_reduce".into(), 8.into(), 226.5.into())
    );
}

#[test]
fn source_code_yields_no_settings_and_clocks_may_be_seconds() {
    let rule = "=".repeat(100);
    let steps: String = (0..5)
        .map(|step| {
            format!(
                "step:{step}/1000 train_loss:{}.5 train_time:{:.2}s step_avg:0.16s\n",
                9 - step,
                0.16 * f64::from(step)
            )
        })
        .collect();
    let text = format!(
        "import os\nimport torch\n@dataclass\nclass GPTConfig:\n    vocab_size : int = 50304\n    num_layers : int = 12\nmodel = GPT(GPTConfig(vocab_size=50304, num_layers=12))\n{rule}\nRunning Python 3.12\n{rule}\n{steps}"
    );
    let facts = facts(&text);
    assert_eq!((&facts["num_layers"], &facts["vocab_size"]), (&Value::Null, &Value::Null));
    assert!((facts["step_time_ms_from_differences"]["median"].as_f64().unwrap() - 160.0).abs() < 1e-6);
    assert_eq!(facts["step_avg_ms_last"], 160.0);
    // Some of these logs time validations only.
    let text = "step:0/1000 val_loss:10.8 train_time:0.0s step_avg:nans\nstep:125/1000 val_loss:4.5 train_time:20.0s step_avg:0.16s\nstep:250/1000 val_loss:4.1 train_time:40.0s step_avg:0.16s\n";
    let facts = common::facts(text);
    assert_eq!((facts["step_time_s"]["first"].as_f64(), facts["val_loss"]["last"].as_f64()), (Some(0.16), Some(4.1)));
}

#[test]
fn tables_of_llama_cpp_are_distinguished() {
    let text = "| model | size | params | backend | ngl | test | t/s |\n| --- | ---: | ---: | --- | --: | ---: | ---: |\n| llama 7B Q4_0 | 3.56 GiB | 6.74 B | CUDA | 99 | pp512 | 5120.50 ± 2.50 |\n\n|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |\n|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|\n|   128 |    128 |    4 |   1024 |    0.108 |  4741.22 |    3.079 |   166.29 |    3.187 |   321.31 |\n\n|    PP |     TG |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |\n|-------|--------|--------|----------|----------|----------|----------|\n|   512 |    128 |   1024 |    1.100 |   465.51 |   13.311 |     9.62 |\n";
    let ingested = read("some.log", text.as_bytes());
    let formats: Vec<&str> = ingested.readings.iter().map(|reading| reading.format).collect();
    assert_eq!(formats.len(), 3, "{formats:?}");
    let of = |format: &str| {
        let reading = ingested.readings.iter().find(|reading| reading.format == format).unwrap();
        reading.facts.get("results").unwrap()[0].clone()
    };
    assert_eq!(of("llama-bench-md")["tokens_per_s"], 5120.5);
    let batched = of("llama-batched-bench");
    assert_eq!((batched["batch_size"].as_u64(), batched["gen_tokens_per_s"].as_f64()), (Some(4), Some(166.29)));
    assert_eq!(of("llama-sweep-bench")["gen_tokens_per_s"], 9.62);
}

#[test]
fn devices_of_two_vendors_in_one_file_are_separate_readings() {
    let text = "| NVIDIA-SMI 550.90.12   Driver Version: 550.90.12   CUDA Version: 12.4 |\n|   0  NVIDIA H100 80GB HBM3  On  | 00000000:61:00.0 Off |  0 |\n| N/A   48C    P0   464W /  700W |   72770MiB /  81559MiB |     97%      Default |\n2025/06/10 20:05:40.274, 0, 350.10 W, 35 %\nDevice  Node  IDs  Temp  Power  Partitions  SCLK  MCLK  Fan  Perf  PwrCap  VRAM%  GPU%\n0       2     0x74a1,   60024  46.0°C      130.0W    NPS1, SPX, 0        132Mhz  900Mhz  0%   auto  750.0W  71%    5%\n1       3     0x74a1,   23018  42.0°C      124.0W    NPS1, SPX, 0        132Mhz  900Mhz  0%   auto  750.0W  69%    7%\n";
    let amd = of_tool(text, "rocm_smi");
    assert_eq!((amd["num_gpus"].as_u64(), amd["power_w"].clone()), (Some(2), serde_json::json!([130, 124])));
    let ingested = read("some.log", text.as_bytes());
    let reading = |format: &str| ingested.readings.iter().find(|reading| reading.format == format).unwrap();
    assert_eq!(reading("nvidia-smi-csv").facts.number("n_records"), Some(1.0));
    assert_eq!(reading("nvidia-smi-table").facts.get("power_w").unwrap(), &serde_json::json!([464]));
    assert_eq!(reading("rocm-smi-concise").config.text("device"), None);
}

#[test]
fn maximum_power_is_not_below_its_mean() {
    let text = "GPU: 0\n    POWER:\n        SOCKET_POWER: 500 W\nGPU: 0\n    POWER:\n        SOCKET_POWER: 700 W\nGPU  POWER  GPU_TEMP  MEM_TEMP  GFX_UTIL  GFX_CLOCK  MEM_UTIL  MEM_CLOCK\n  0  100 W     40 °C     50 °C      10 %   1308 MHz       10 %    900 MHz\n";
    let facts = facts(text);
    let most = facts["max_power_w"].as_f64().unwrap();
    assert_eq!(most, 700.0);
    for mean in facts["mean_power_w_per_gpu"].as_object().unwrap().values().chain(facts["power_w"].as_array().unwrap())
    {
        assert!(mean.as_f64().unwrap() <= most);
    }
}

#[test]
fn resumed_maxtext_run_drops_two_warmup_steps() {
    let mut text = String::from(
        "completed step: 1000, seconds: 31.0, TFLOP/s/device: 8.5, Tokens/s/device: 160.0, loss: 2.5\ncompleted step: 1001, seconds: 0.002, TFLOP/s/device: 131000.0, Tokens/s/device: 2500000.0, loss: 2.5\n",
    );
    for step in 1002..1008 {
        text += &format!(
            "completed step: {step}, seconds: 4.0, TFLOP/s/device: 65.0, Tokens/s/device: 1250.0, loss: 2.4\n"
        );
    }
    let facts = facts(&text);
    assert_eq!(facts["step_time_s"]["warmup_dropped"], 2);
    assert_eq!(facts["step_time_s"]["mean_no_warmup"], 4.0);
    let notes = read("some.log", text.as_bytes()).readings[0].notes.clone();
    assert!(notes.iter().any(|note| note.contains("impossible: 131000 TFLOP/s")), "{notes:?}");
}

#[test]
fn progress_bars_with_the_same_rounded_step_are_separate_steps() {
    let mut text = String::new();
    for step in 2001..=2006 {
        text += &format!(
            "Epoch 0: :  20%|██ | {step}/10000 [06:19<07:13, reduced_train_loss=2.50, global_step=2e+3, consumed_samples=5.12e+5, train_step_timing in s=1.50]\n"
        );
    }
    let facts = facts(&text);
    assert_eq!((facts["n_records"].as_u64(), &facts["copies_of_other_ranks"]), (Some(6), &Value::Null));
    assert_eq!(facts["restarts"], Value::Null);
}

#[test]
fn a_bar_with_a_rounded_step_of_zero_is_read() {
    let text = "Epoch 0: :  20%|██ | 2000/10000 [06:19<07:13, reduced_train_loss=2.50, global_step=0.00e+0, consumed_samples=5.12e+5, train_step_timing in s=1.50]\n";
    assert_eq!(facts(text)["n_records"].as_u64(), Some(1));
}

#[test]
fn per_gpu_throughput_is_not_taken_for_the_system_throughput() {
    let text = "= PERFORMANCE OVERVIEW\nRequest Throughput (req/sec):   2.5\nTotal Output Throughput (tokens/sec):   8000.0\nToken Throughput (tokens/sec/gpu):   1000.0\nTotal Latency (seconds):   12.5\n";
    let facts = facts(text);
    assert_eq!(
        (facts["output_throughput"].as_f64(), facts["per_gpu_output_throughput"].as_f64()),
        (Some(8000.0), Some(1000.0))
    );
    assert_eq!(facts["total_latency_ms"], 12_500.0);
}

#[test]
fn old_names_of_parallel_degrees_are_read() {
    let step = " iteration 10/ 20 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.5 |\n iteration 20/ 20 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.4 |\n";
    for (tensor, pipeline) in
        [("model_parallel_size", "pipe_parallel_size"), ("model-parallel-size", "pipe-parallel-size")]
    {
        let config = config(&format!("  {tensor} ............. 4\n  {pipeline} ............. 2\n{step}"));
        assert_eq!((config["tensor_parallel"].as_u64(), config["pipeline_parallel"].as_u64()), (Some(4), Some(2)));
    }
}

#[test]
fn runs_of_different_sizes_keep_their_own_number_of_accelerators() {
    let line = |rank: u32, world: u32, step: u32, planned: u32| {
        format!(
            "[20251202 06:56:28][rank-{rank}/{world}][INFO ] [trainer.py:2560] : iteration {step}/ {planned} | elapsed time per iteration (ms): 13100.0/13240.9 | throughput per GPU (TFLOP/s/GPU): 579.4/573.6 | global batch size: 128 |\n"
        )
    };
    let text = line(63, 64, 10, 500) + &line(63, 64, 11, 500) + &line(7, 8, 10, 5000) + &line(7, 8, 11, 5000);
    let ingested = read("some.log", text.as_bytes());
    let reading = &ingested.readings[0];
    let gpus: Vec<Option<f64>> = reading.runs.iter().map(|run| reading.settings_of(run).get("num_gpus")).collect();
    assert_eq!((gpus, reading.config.get("num_gpus")), (vec![Some(64.0), Some(8.0)], None));
    let measurements = atlas_ingest::measurement::measurements(&ingested, &common::context("some.log"));
    assert_eq!(measurements[0]["configuration"]["num_gpus"]["value"], 64);
    assert_eq!(measurements[1]["configuration"]["num_gpus"]["value"], 8);
}

#[test]
fn progress_bars_provide_the_step_times_of_the_trainer() {
    let mut text = String::from("  2%|▏ | 10/500 [00:22<18:00,  2.20s/it]\n");
    text += "{'loss': 3.1, 'learning_rate': 5e-05, 'epoch': 0.02}\n  4%|▍ | 20/500 [00:32<16:00,  2.00it/s]{'loss': 2.9, 'learning_rate': 5e-05, 'epoch': 0.04}\n";
    // The progress bar of an evaluation has a different length.
    text += "100%|██████████| 63/63 [00:05<00:00, 12.40it/s]\n  6%|▌ | 30/500 [00:45<15:00,  1.50s/it]\n{'loss': 2.7, 'learning_rate': 5e-05, 'epoch': 0.06}\n";
    let ingested = read("some.log", text.as_bytes());
    let run = &ingested.readings[0].runs[0];
    assert_eq!(run.seconds.kept(), [2.2, 0.5, 1.5]);
    assert_eq!((run.first_step, run.last_step, run.planned), (Some(10), Some(30), Some(500)));
}

#[test]
fn settings_of_one_log_do_not_apply_to_the_next() {
    let log = |tp: u32, length: u32| {
        format!(
            "  tensor_model_parallel_size ...................... {tp}\n  seq_length ...................................... {length}\n iteration 1/ 20 | elapsed time per iteration (ms): 1000.0 | global batch size: 8 | lm loss: 2.5 |\n iteration 2/ 20 | elapsed time per iteration (ms): 1000.0 | global batch size: 8 | lm loss: 2.4 |\n"
        )
    };
    let text = log(2, 2048)
        + &log(8, 4096)
        + "============ Serving Benchmark Result ============\nSuccessful requests:                     80\nMean TTFT (ms):                          12.5\n==================================================\n";
    let ingested = read("some.log", text.as_bytes());
    let of =
        |name: &str| -> Vec<Option<f64>> { ingested.readings.iter().map(|reading| reading.config.get(name)).collect() };
    // The result of a benchmark is listed first.
    assert_eq!(of("tensor_parallel"), [None, Some(2.0), Some(8.0)]);
    assert_eq!(of("seq_len"), [None, Some(2048.0), Some(4096.0)]);
}

#[test]
fn samples_of_devices_beyond_the_limit_are_skipped_and_counted() {
    let mut text = "timestamp, index, power.draw [W]\n".to_owned();
    for index in 0..4100 {
        text += &format!("2024/01/31 12:34:56.000, {index}, {}.00 W\n", if index < 4096 { 300 } else { 700 });
    }
    let ingested = read("power.csv", text.as_bytes());
    let skipped = &ingested.tally.skipped["a sample of a device beyond the limit of 4096"];
    assert_eq!((skipped.n, skipped.first_line), (4, 4098));
    assert_eq!(ingested.readings[0].facts.get("max_power_w").unwrap(), 300.0);
}

#[test]
fn single_digit_global_step_updates_the_offset_of_a_resumed_run() {
    let bar = |position: u32, global: &str| {
        format!(
            "Epoch 0: :  20%|██ | {position}/10000 [06:19<07:13, reduced_train_loss=2.50, global_step={global}, consumed_samples=5.12e+5, train_step_timing in s=1.50]\n"
        )
    };
    let facts = facts(&(bar(500, "500.0") + &bar(1500, "2e+3")));
    assert_eq!(facts["log_interval"], 1500);
}
