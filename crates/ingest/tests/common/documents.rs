//! Documents as the tools write them, with figures that are drawn anew for every case. None is a recorded run.

use std::fmt::Write as _;

/// Draws figures that differ from each other (splitmix64).
pub struct Draw(pub u64);

impl Draw {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn whole(&mut self, from: u64, to: u64) -> u64 {
        from + self.bits() % (to - from)
    }

    pub fn real(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * ((self.bits() >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

/// With thousands separators.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

macro_rules! lines {
    ($out:expr; $($($format:expr),+ ;)*) => { $( let _ = writeln!($out, $($format),+); )* };
}

pub type Document = (&'static str, fn(&mut Draw) -> String);

pub const DOCUMENTS: &[Document] = &[
    ("megatron-current", megatron),
    ("gpt-neox", neox),
    ("primus", primus),
    ("nemo2", nemo2),
    ("nemo1-progress", nemo1),
    ("deepspeed-throughput", deepspeed_timer),
    ("deepspeed-chat-sft", deepspeed_sft),
    ("deepspeed-chat-rlhf", deepspeed_rlhf),
    ("torchtitan", torchtitan),
    ("nanotron", nanotron),
    ("litgpt", litgpt),
    ("maxtext", maxtext),
    ("nanogpt", nanogpt),
    ("modded-nanogpt", modded),
    ("internevo", internevo),
    ("picotron", picotron),
    ("nxd-log", nxd),
    ("hf-trainer-stdout", hf_trainer),
    ("hf-trainer-state", hf_state),
    ("mlperf-mllog", mllog),
    ("vllm-bench-text", serving_block),
    ("vllm-bench-json", serving_json),
    ("inferencemax-json", inferencemax),
    ("vllm-server", vllm_server),
    ("vllm-metrics", vllm_metrics),
    ("sglang-metrics", sglang_metrics),
    ("trtllm-bench-report", trtllm),
    ("genai-perf-table", genai_table),
    ("genai-perf-csv", genai_csv),
    ("perf-analyzer-text", perf_analyzer),
    ("llama-bench-md", llama_bench),
    ("llama-batched-bench", llama_batched),
    ("llama-sweep-bench", llama_sweep),
    ("llama-cpp-timings", llama_cpp),
    ("mlperf-loadgen-summary", loadgen),
    ("nccl-tests", nccl_tests),
    ("torch-all-reduce-bench", all_reduce_bench),
    ("nvidia-smi-csv", nvidia_smi),
    ("nvidia-smi-table", nvidia_smi_table),
    ("nvidia-smi-dmon", dmon),
    ("rocm-smi-concise", rocm_smi),
    ("amd-smi-monitor", amd_smi),
    ("dcgm-exporter", dcgm),
];

fn megatron(d: &mut Draw) -> String {
    let mut out = String::new();
    let (tp, length, batch) = (1 << d.whole(0, 4), 1024 * d.whole(1, 9), 8 * d.whole(1, 200));
    lines!(out;
        "------------------------ arguments ------------------------";
        "  tensor_model_parallel_size ...................... {tp}";
        "  pipeline_model_parallel_size .................... {}", d.whole(1, 9);
        "  world_size ...................................... {}", 8 * d.whole(4, 60);
        "  seq_length ...................................... {length}";
        "  global_batch_size ............................... {batch}";
        "-------------------- end of arguments ---------------------";
    );
    let planned = d.whole(100, 90_000);
    for step in 1..=d.whole(3, 9) {
        lines!(out; " [2025-02-03 04:05:06] iteration {step:8}/{planned:8} | consumed samples: {:12} | elapsed time per iteration (ms): {:.1} | throughput per GPU (TFLOP/s/GPU): {:.1} | learning rate: 1.0E-04 | global batch size: {batch:5} | lm loss: {:.6E} | loss scale: 1.0 | grad norm: {:.3} | number of skipped iterations:   0 | number of nan iterations:   0 |",
            step * batch, d.real(900.0, 90_000.0), d.real(100.0, 900.0), d.real(1.0, 12.0), d.real(0.1, 9.0););
    }
    out
}

fn neox(d: &mut Draw) -> String {
    let mut out = String::new();
    lines!(out;
        "  model_parallel_size ............. {}", 1 << d.whole(0, 4);
        "  pipe_parallel_size .............. {}", d.whole(1, 9);
        "  train_micro_batch_size_per_gpu .. {}", d.whole(1, 33);
    );
    for step in 1..=4_u64 {
        lines!(out; " samples/sec: {:.3} | iteration {:8}/  320000 | elapsed time per iteration (ms): {:.1} | learning rate: 1.0E-06 | approx flops per GPU: {:.1}TFLOPS | lm_loss: {:.6E} | loss scale: 4096.0 | number of skipped iterations:   0 | number of nan iterations:   0 |",
            d.real(1.0, 900.0), step * 10, d.real(900.0, 90_000.0), d.real(20.0, 200.0), d.real(1.0, 12.0););
    }
    out
}

fn primus(d: &mut Draw) -> String {
    let mut out = String::new();
    let world = 8 * d.whole(1, 9);
    let batch = d.whole(8, 600);
    for step in 1..=4 {
        lines!(out; "[20251023 12:39:12][rank-{}/{world}][INFO ] [--------trainer.py:2382] :  iteration {step:8}/     500 | consumed samples: 27136 | elapsed time per iteration (ms): {:.1}/{:.1} | hip mem usage/free/total/usage_ratio: {:.2}GB/2.60GB/255.98GB/90.00% | throughput per GPU (TFLOP/s/GPU): {:.1}/{:.1} | tokens per GPU (tokens/s/GPU): {:.1}/{:.1} | global batch size: {batch} | lm loss: {:.6E} |",
            world - 1, d.real(900.0, 9000.0), d.real(900.0, 9000.0), d.real(20.0, 250.0), d.real(20.0, 700.0), d.real(20.0, 700.0), d.real(2e3, 2e4), d.real(2e3, 2e4), d.real(1.0, 12.0););
    }
    out
}

fn nemo2(d: &mut Draw) -> String {
    let mut out = String::new();
    let (planned, batch) = (d.whole(20, 900), d.whole(8, 900));
    for step in 0..5 {
        lines!(out; "Training epoch 0, iteration {step}/{planned} | lr: 1e-05 | global_batch_size: {batch} | global_step: {step} | reduced_train_loss: {:.3} | train_step_timing in s: {:.3} | consumed_samples: {}",
            d.real(1.0, 12.0), d.real(0.5, 90.0), (step + 1) * batch;);
    }
    out
}

fn nemo1(d: &mut Draw) -> String {
    let mut out = String::new();
    let planned = d.whole(5000, 90_000);
    let start = d.whole(1200, 4000);
    for step in start..start + 6 {
        let exponent = format!("{:.2}e+3", step as f64 / 1e3);
        lines!(out; "Epoch 0: :  47%|####7     | {step}/{planned} [06:19<07:13, reduced_train_loss={:.3}, global_step={exponent}, consumed_samples=1.2e+5, train_step_timing in s={:.3}]",
            d.real(1.0, 12.0), d.real(0.5, 90.0););
    }
    out
}

fn deepspeed_timer(d: &mut Draw) -> String {
    let mut out = String::new();
    lines!(out; "[2024-01-02 03:04:05,678] [INFO] [config.py:984:print]   train_batch_size ............. {}", d.whole(8, 4096););
    for step in 1..=5 {
        lines!(out; "[2024-01-02 03:04:{:02},001] [INFO] [timer.py:199:stop] epoch=0/micro_step={step}0/global_step={step}0, RunningAvgSamplesPerSec={}, CurrSamplesPerSec={}, MemAllocated={:.2}GB, MaxMemAllocated={:.2}GB",
            step * 9, d.real(9.0, 900.0), d.real(9.0, 900.0), d.real(2.0, 20.0), d.real(20.0, 79.0););
    }
    out
}

fn deepspeed_sft(d: &mut Draw) -> String {
    let mut out = String::new();
    let micro = d.whole(1, 33);
    let length = 128 * d.whole(1, 17);
    lines!(out;
        "[2024-01-02 03:04:05,678] [INFO] [config.py:984:print]   train_batch_size ............. {}", micro * d.whole(9, 65);
        "[2024-01-02 03:04:05,678] [INFO] [config.py:984:print]   train_micro_batch_size_per_gpu  {micro}";
    );
    for step in 0..4 {
        lines!(out;
            "Epoch: 0, Step: {step}, Rank: 0, loss = {:.6}", d.real(1.0, 9.0);
            "Epoch: 0, Step: {step}, Rank: 1, loss = {:.6}", d.real(1.0, 9.0);
            "Model Parameters: 1.316 B, Latency: {:.2}s, TFLOPs: {:.2}, Samples/sec: {:.2}, Time/seq {:.2}s, Batch Size: {micro}, Sequence Length: {length}", d.real(0.2, 9.0), d.real(9.0, 300.0), d.real(2.0, 90.0), d.real(0.01, 2.0);
        );
    }
    out
}

fn deepspeed_rlhf(d: &mut Draw) -> String {
    let mut out = String::new();
    let batch = d.whole(8, 300);
    for step in 0..4 {
        lines!(out;
            "Epoch: 0 | Step: {step} | PPO Epoch: 1 | Actor Loss: {:.6} | Critic Loss: {:.6} | Unsupervised Loss: 0.0", d.real(0.01, 1.0), d.real(0.01, 1.0);
            "End-to-End => Latency: {:.2}s, TFLOPs: {:.2}, Samples/sec: {:.2}, Time/seq {:.2}s, Batch Size: {batch}, Total Seq. Length: 512", d.real(2.0, 20.0), d.real(9.0, 90.0), d.real(2.0, 90.0), d.real(0.01, 2.0);
            "Generation => Latency: {:.2}s, Per-token Latency {:.2} ms, TFLOPs: {:.2}, BW: {:.2} GB/sec, Answer Seq. Length: 256", d.real(1.0, 9.0), d.real(5.0, 50.0), d.real(1.0, 9.0), d.real(90.0, 900.0);
            "Training   => Latency: {:.2}s, TFLOPs: {:.2}", d.real(1.0, 9.0), d.real(9.0, 90.0);
        );
    }
    out
}

fn torchtitan(d: &mut Draw) -> String {
    let mut out = String::new();
    for step in 1..=5 {
        lines!(out; "[rank0]:[titan] 2025-06-04 08:51:48,074 - root - INFO - step: {step:2}  loss: {:.4}  grad_norm: {:.4}  memory: {:.2}GiB({:.2}%)  tps: {}  tflops: {:.2}  mfu: {:.2}%",
            d.real(1.0, 12.0), d.real(0.1, 9.0), d.real(20.0, 79.0), d.real(20.0, 99.0), grouped(d.whole(1000, 90_000)), d.real(20.0, 700.0), d.real(5.0, 60.0););
    }
    out
}

fn nanotron(d: &mut Draw) -> String {
    let mut out = String::new();
    for step in 1..=4_u64 {
        lines!(out; "[INFO|DP=0|PP=0|TP=0]: iteration: {step} / 15 | consumed_tokens: {}K | elapsed_time_per_iteration_ms: {:.2}K | tokens_per_sec: {}K | tokens_per_sec_per_gpu: {}K | global_batch_size: 256 | lm_loss: {:.2} | lr: 0.0001 | model_tflops_per_gpu: {:.1} | grad_norm: {:.2} |",
            step * 524, d.real(1.0, 9.0), d.whole(100, 999), d.whole(10, 99), d.real(1.0, 12.0), d.real(20.0, 300.0), d.real(0.1, 9.0););
    }
    out
}

fn litgpt(d: &mut Draw) -> String {
    let mut out = String::new();
    for step in 1..=4 {
        lines!(out; "Epoch 1 | iter {step} step 1 | loss train: {:.3}, val: n/a | iter time: {:.2} ms (step)", d.real(1.0, 12.0), d.real(90.0, 9000.0););
    }
    out
}

fn maxtext(d: &mut Draw) -> String {
    let mut out = String::new();
    lines!(out; "Num_devices: {}", 8 * d.whole(1, 40); "number parameters: {:.3} billion", d.real(1.0, 90.0););
    for step in 0..5 {
        lines!(out; "I0706 16:50:26.257925 140110937163584 metric_logger.py:214] completed step: {step}, seconds: {:.3}, TFLOP/s/device: {:.3}, Tokens/s/device: {:.3}, total_weights: 65536, loss: {:.3}",
            d.real(0.2, 30.0), d.real(20.0, 400.0), d.real(200.0, 20_000.0), d.real(1.0, 12.0););
    }
    out
}

fn nanogpt(d: &mut Draw) -> String {
    let mut out = format!("tokens per iteration will be: {}\n", grouped(1024 * d.whole(100, 900)));
    for step in 0..5 {
        lines!(out; "iter {step}: loss {:.4}, time {:.2}ms, mfu {:.2}%", d.real(1.0, 12.0), d.real(90.0, 9000.0), d.real(5.0, 60.0););
    }
    out
}

fn modded(d: &mut Draw) -> String {
    let planned = d.whole(1000, 9000);
    let mut out = format!(
        "import torch\nclass GPT(nn.Module):\n    def __init__(self, vocab_size: int, num_layers: int = {}):\n        pass\nmodel = GPT(vocab_size=50257, num_layers=12)\n{}\n",
        d.whole(2, 90),
        "=".repeat(100)
    );
    let mut clock = 0.0;
    for step in 0..6 {
        clock += d.real(90.0, 200.0);
        lines!(out; "step:{step}/{planned} train_loss:{:.4} train_time:{clock:.0}ms step_avg:{:.2}ms", d.real(1.0, 12.0), d.real(90.0, 200.0););
    }
    out
}

fn internevo(d: &mut Draw) -> String {
    let mut out = String::new();
    for step in 1..=4 {
        lines!(out; "2023-07-07T12:26:58.293 INFO train.py, line 318, in record_current_batch_training_metrics -- tflops={},step={step},loss={},tgs (tokens/gpu/second)={:.2},lr=1e-06,num_consumed_tokens={},grad_norm={:.3},micro_num=4", d.real(90.0, 300.0), d.real(1.0, 12.0), d.real(900.0, 9000.0), step * 65_536, d.real(0.1, 9.0););
    }
    out
}

fn picotron(d: &mut Draw) -> String {
    let mut out = String::new();
    for step in 1..=4 {
        lines!(out; "[rank 0] Step: {step:<5} | Loss: {:6.4} | Global batch size: 262.14K | Tokens/s: {:.2}K | Tokens/s/GPU: {:.2}K | Tokens: {:.2}M | MFU: {:5.2}% | Memory usage: {:6.2}GB",
            d.real(1.0, 12.0), d.real(80.0, 90.0), d.real(10.0, 11.0), d.real(1.0, 9.0), d.real(5.0, 60.0), d.real(20.0, 79.0););
    }
    out
}

fn nxd(d: &mut Draw) -> String {
    let mut out = String::new();
    for step in 1..=4 {
        lines!(out; "LOG Fri Jun 21 17:26:23 2024 - (0, {step}) step_loss : {:.4} learning_rate : 1.20e-04 throughput : {:.2} grad-norm : {:.4}", d.real(1.0, 12.0), d.real(1.0, 90.0), d.real(0.1, 9.0););
    }
    out
}

fn hf_trainer(d: &mut Draw) -> String {
    let total = 50 * d.whole(4, 80);
    let mut out = format!(
        "  Instantaneous batch size per device = {}\n  Total train batch size (w. parallel, distributed & accumulation) = {}\n  Total optimization steps = {}\n",
        d.whole(1, 9),
        grouped(d.whole(1000, 5000)),
        grouped(total)
    );
    for step in 1..=4 {
        lines!(out;
            "  6%|6         | {}/{total} [00:{:02}<10:33,  {:.2}s/it]", step * 10, step * 9, d.real(0.5, 9.0);
            "{{'loss': {:.4}, 'grad_norm': {:.4}, 'learning_rate': 5e-05, 'epoch': 0.{step}}}", d.real(1.0, 9.0), d.real(0.1, 9.0);
        );
    }
    lines!(out; "{{'train_runtime': {:.4}, 'train_samples_per_second': {:.3}, 'train_steps_per_second': {:.3}, 'train_loss': {:.4}, 'epoch': 1.0}}", d.real(90.0, 900.0), d.real(90.0, 900.0), d.real(0.1, 9.0), d.real(1.0, 9.0););
    out
}

fn hf_state(d: &mut Draw) -> String {
    let history: Vec<String> = (1..=3)
        .map(|step| {
            format!(
                "    {{\n      \"epoch\": 0.{step},\n      \"loss\": {:.4},\n      \"step\": {}\n    }}",
                d.real(1.0, 9.0),
                step * 10
            )
        })
        .collect();
    format!(
        "{{\n  \"global_step\": {},\n  \"max_steps\": {},\n  \"log_history\": [\n{}\n  ]\n}}\n",
        d.whole(30, 99),
        d.whole(100, 999),
        history.join(",\n")
    )
}

fn mllog(d: &mut Draw) -> String {
    let mut out = String::new();
    let batch = d.whole(8, 4096);
    let mut time = 1_728_322_000_000_u64;
    let mut record = |out: &mut String, key: &str, value: String, about: &str| {
        time += 1000;
        lines!(out; ":::MLLOG {{\"namespace\": \"\", \"time_ms\": {time}, \"event_type\": \"POINT_IN_TIME\", \"key\": \"{key}\", \"value\": {value}, \"metadata\": {{\"file\": \"a.py\", \"lineno\": 1{about}}}}}";);
    };
    record(&mut out, "submission_benchmark", format!("\"bench_{}\"", d.whole(0, 1 << 40)), "");
    record(&mut out, "global_batch_size", batch.to_string(), "");
    record(&mut out, "run_start", "null".to_owned(), "");
    for step in 1..=4_u64 {
        record(
            &mut out,
            "tracked_stats",
            format!("{{\"train_step_time\": {:.6}, \"train_loss\": {:.6}}}", d.real(0.5, 90.0), d.real(1.0, 9.0)),
            &format!(", \"step\": {step}"),
        );
    }
    record(&mut out, "tracked_stats", format!("{{\"throughput\": {:.6}}}", d.real(1.0, 900.0)), ", \"step\": 4");
    record(&mut out, "eval_accuracy", format!("{:.6}", d.real(0.5, 4.0)), "");
    record(&mut out, "run_stop", "null".to_owned(), ", \"status\": \"success\"");
    out
}

fn serving_block(d: &mut Draw) -> String {
    let mut out = String::new();
    let requests = d.whole(100, 2000);
    lines!(out;
        "============ Serving Benchmark Result ============";
        "Successful requests:                     {requests}";
        "Benchmark duration (s):                  {:.2}", d.real(10.0, 900.0);
        "Total input tokens:                      {}", d.whole(10_000, 999_999);
        "Total generated tokens:                  {}", d.whole(10_000, 999_999);
        "Request throughput (req/s):              {:.2}", d.real(1.0, 90.0);
        "Output token throughput (tok/s):         {:.2}", d.real(100.0, 9000.0);
        "---------------Time to First Token----------------";
        "Mean TTFT (ms):                          {:.2}", d.real(10.0, 900.0);
        "P99 TTFT (ms):                           {:.2}", d.real(900.0, 9000.0);
        "---------------Inter-token Latency----------------";
        "Mean ITL (ms):                           {:.2}", d.real(10.0, 90.0);
        "==================================================";
    );
    out
}

fn serving_json(d: &mut Draw) -> String {
    format!(
        "{{\"backend\": \"vllm\", \"num_prompts\": {0}, \"completed\": {0}, \"duration\": {1}, \"total_input_tokens\": {2}, \"total_output_tokens\": {3}, \"output_throughput\": {4}, \"mean_ttft_ms\": {5}, \"p99_ttft_ms\": {6}, \"mean_tpot_ms\": {7}}}\n",
        d.whole(10, 999),
        d.real(10.0, 900.0),
        d.whole(1000, 99_999),
        d.whole(1000, 99_999),
        d.real(100.0, 9000.0),
        d.real(10.0, 90.0),
        d.real(90.0, 900.0),
        d.real(5.0, 50.0)
    )
}

fn inferencemax(d: &mut Draw) -> String {
    let entry = |d: &mut Draw| {
        format!(
            "  {{\n    \"hw\": \"h200\",\n    \"framework\": \"vllm\",\n    \"precision\": \"fp8\",\n    \"tp\": {},\n    \"conc\": {},\n    \"isl\": 1024,\n    \"osl\": 1024,\n    \"tput_per_gpu\": {},\n    \"output_tput_per_gpu\": {},\n    \"mean_ttft\": {},\n    \"p99_ttft\": {},\n    \"median_intvty\": {}\n  }}",
            1 << d.whole(0, 4),
            d.whole(1, 512),
            d.real(100.0, 9000.0),
            d.real(50.0, 4000.0),
            d.real(0.01, 0.9),
            d.real(0.9, 9.0),
            d.real(9.0, 200.0)
        )
    };
    let entries = [entry(d), entry(d), entry(d)];
    format!("[\n{}\n]\n", entries.join(",\n"))
}

fn vllm_server(d: &mut Draw) -> String {
    let mut out = String::new();
    for _ in 0..4 {
        lines!(out; "INFO 05-13 12:57:31 [loggers.py:111] Engine 000: Avg prompt throughput: {:.1} tokens/s, Avg generation throughput: {:.1} tokens/s, Running: {} reqs, Waiting: {} reqs, GPU KV cache usage: {:.1}%, Prefix cache hit rate: {:.1}%",
            d.real(9.0, 9000.0), d.real(9.0, 9000.0), d.whole(1, 500), d.whole(1, 500), d.real(1.0, 99.0), d.real(1.0, 99.0););
    }
    out
}

fn vllm_metrics(d: &mut Draw) -> String {
    let mut out = String::new();
    let model = format!("org/model-{}", d.whole(0, 1 << 40));
    lines!(out;
        "# HELP vllm:num_requests_running Number of requests in model execution batches.";
        "# TYPE vllm:num_requests_running gauge";
        "vllm:num_requests_running{{engine=\"0\",model_name=\"{model}\"}} {}.0", d.whole(1, 500);
        "vllm:kv_cache_usage_perc{{engine=\"0\",model_name=\"{model}\"}} {:.6}", d.real(0.01, 0.99);
        "vllm:prompt_tokens_total{{engine=\"0\",model_name=\"{model}\"}} {}.0", d.whole(10_000, 9_999_999);
        "vllm:generation_tokens_total{{engine=\"0\",model_name=\"{model}\"}} {}.0", d.whole(10_000, 9_999_999);
    );
    out
}

fn sglang_metrics(d: &mut Draw) -> String {
    let mut out = String::new();
    lines!(out;
        "# TYPE sglang:gen_throughput gauge";
        "sglang:gen_throughput{{model_name=\"m\",tp_rank=\"0\"}} {:.3} 1700000000000", d.real(9.0, 9000.0);
        "sglang:num_running_reqs{{model_name=\"m\",tp_rank=\"0\"}} {}.0 1700000000000", d.whole(1, 500);
        "sglang:token_usage{{model_name=\"m\",tp_rank=\"0\"}} {:.3} 1700000000000", d.real(0.01, 0.99);
    );
    out
}

fn trtllm(d: &mut Draw) -> String {
    let mut out = String::new();
    lines!(out;
        "===========================================================";
        "= PYTORCH BACKEND";
        "===========================================================";
        "Model:                  org/model-{}", d.whole(0, 1 << 40);
        "TP Size:                {}", 1 << d.whole(0, 4);
        "= PERFORMANCE OVERVIEW";
        "Request Throughput (req/sec):                     {:.4}", d.real(1.0, 90.0);
        "Total Output Throughput (tokens/sec):             {:.4}", d.real(100.0, 9000.0);
        "Total Latency (ms):                               {:.4}", d.real(1000.0, 99_000.0);
        "Per GPU Output Throughput (tokens/sec/gpu):       {:.4}", d.real(100.0, 9000.0);
        "[Latency] P50    : {:.4}", d.real(10.0, 90.0);
        "[Latency] P99    : {:.4}", d.real(90.0, 900.0);
        "Number of Sequences:  {}", d.whole(100, 9000);
    );
    out
}

fn genai_table(d: &mut Draw) -> String {
    let mut out = String::new();
    lines!(out;
        "                                 NVIDIA GenAI-Perf | LLM Metrics";
        "┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━┳━━━━━━━━━━━┓";
        "┃                         Statistic ┃       avg ┃       p99 ┃";
        "┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━╇━━━━━━━━━━━┩";
        "│          Time to first token (ms) │ {:.2} │ {:.2} │", d.real(10.0, 90.0), d.real(90.0, 900.0);
        "│              Request latency (ms) │ {}.25 │ {}.75 │", grouped(d.whole(1000, 5000)), grouped(d.whole(5000, 9000));
        "│            Output sequence length │ {:.2} │ {:.2} │", d.real(10.0, 90.0), d.real(90.0, 900.0);
        "│  Request throughput (per sec)     │ {:.2} │       N/A │", d.real(1.0, 90.0);
        "└───────────────────────────────────┴───────────┴───────────┘";
    );
    out
}

fn genai_csv(d: &mut Draw) -> String {
    let mut out = String::new();
    lines!(out;
        "Metric,avg,min,max,p99";
        "Time To First Token (ms),{:.2},{:.2},{:.2},{:.2}", d.real(20.0, 90.0), d.real(1.0, 20.0), d.real(900.0, 999.0), d.real(90.0, 900.0);
        "Request Latency (ms),\"{}.50\",\"{}.50\",\"{}.50\",\"{}.50\"", grouped(d.whole(2000, 3000)), grouped(d.whole(1000, 2000)), grouped(d.whole(8000, 9000)), grouped(d.whole(4000, 8000));
        "";
        "Metric,Value";
        "Output Token Throughput (tokens/sec),{:.2}", d.real(90.0, 900.0);
        "Request Throughput (requests/sec),{:.2}", d.real(1.0, 90.0);
    );
    out
}

fn perf_analyzer(d: &mut Draw) -> String {
    let mut out = String::from(
        "*** Measurement Settings ***\n  Batch size: 1\n  Using \"time_windows\" mode for stabilization\n  Measurement window: 5000 msec\n\n",
    );
    let mut summary = String::from("Inferences/Second vs. Client Average Batch Latency\n");
    for concurrency in 1..=3 {
        let (rate, latency) = (d.real(100.0, 9000.0), d.whole(100, 9000));
        lines!(out;
            "Request concurrency: {concurrency}";
            "  Client: ";
            "    Request count: {}", d.whole(1000, 99_999);
            "    Throughput: {rate:.2} infer/sec";
            "    Avg latency: {latency} usec (standard deviation {} usec)", d.whole(10, 99);
            "    p50 latency: {} usec", d.whole(100, 900);
            "    p99 latency: {} usec", d.whole(9000, 99_999);
            "    Avg HTTP time: {} usec (send/recv {} usec + response wait {} usec)", d.whole(100, 900), d.whole(10, 90), d.whole(100, 900);
            "  Server: ";
            "    Inference count: {}", d.whole(1000, 99_999);
            "    Avg request latency: {} usec (overhead 41 usec + queue 40 usec)", d.whole(100, 900);
            "";
        );
        lines!(summary; "Concurrency: {concurrency}, throughput: {rate:.2} infer/sec, latency {latency} usec";);
    }
    out + &summary
}

fn llama_bench(d: &mut Draw) -> String {
    let mut out = String::new();
    lines!(out;
        "| model                          |       size |     params | backend    | ngl |          test |                  t/s |";
        "| ------------------------------ | ---------: | ---------: | ---------- | --: | ------------: | -------------------: |";
        "| llama 7B Q4_0                  |   3.56 GiB |     6.74 B | CUDA       |  99 |         pp512 |     {:.2} ± {:.2} |", d.real(1000.0, 9000.0), d.real(1.0, 90.0);
        "| llama 7B Q4_0                  |   3.56 GiB |     6.74 B | CUDA       |  99 |         tg128 |     {:.2} ± {:.2} |", d.real(10.0, 200.0), d.real(0.1, 9.0);
        "";
        "build: 2656c0d26 (7693)";
    );
    out
}

fn llama_batched(d: &mut Draw) -> String {
    let mut out = String::new();
    lines!(out;
        "main: n_kv_max = {}, n_batch = 2048, n_ubatch = 512, flash_attn = 1, is_pp_shared = 0, n_gpu_layers = 99", 1024 * d.whole(2, 99);
        "";
        "|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |";
        "|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|";
    );
    for batch in [1, 2, 4] {
        lines!(out; "|   128 |    128 | {batch:4} | {:6} | {:8.3} | {:8.2} | {:8.3} | {:8.2} | {:8.3} | {:8.2} |", 256 * batch, d.real(0.1, 9.0), d.real(100.0, 9000.0), d.real(0.1, 9.0), d.real(10.0, 900.0), d.real(0.1, 9.0), d.real(10.0, 900.0););
    }
    out
}

fn llama_sweep(d: &mut Draw) -> String {
    let mut out = String::new();
    lines!(out;
        "|    PP |     TG |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |";
        "|-------|--------|--------|----------|----------|----------|----------|";
    );
    for depth in 0..3 {
        lines!(out; "|   512 |    128 | {:6} | {:8.3} | {:8.2} | {:8.3} | {:8.2} |", 512 * depth, d.real(0.1, 9.0), d.real(100.0, 9000.0), d.real(0.1, 9.0), d.real(10.0, 900.0););
    }
    out
}

fn llama_cpp(d: &mut Draw) -> String {
    let mut out = String::new();
    for _ in 0..2 {
        lines!(out;
            "llama_perf_context_print:        load time =    {:.2} ms", d.real(100.0, 9000.0);
            "llama_perf_context_print: prompt eval time =    {:.2} ms /    {} tokens ({:8.2} ms per token,   {:.2} tokens per second)", d.real(10.0, 90.0), d.whole(10, 900), d.real(1.0, 9.0), d.real(100.0, 900.0);
            "llama_perf_context_print:        eval time =    {:.2} ms /   {} runs   ({:8.2} ms per token,    {:.2} tokens per second)", d.real(1000.0, 9000.0), d.whole(10, 900), d.real(1.0, 90.0), d.real(10.0, 90.0);
            "llama_perf_context_print:       total time =    {:.2} ms /   {} tokens", d.real(1000.0, 9999.0), d.whole(10, 999);
        );
    }
    out
}

fn loadgen(d: &mut Draw) -> String {
    let mut out = String::new();
    lines!(out;
        "================================================";
        "MLPerf Results Summary";
        "================================================";
        "SUT name : PySUT";
        "Scenario : Offline";
        "Mode     : PerformanceOnly";
        "Samples per second: {:.4}", d.real(1.0, 900.0);
        "Tokens per second: {:.2}", d.real(100.0, 90_000.0);
        "Result is : VALID";
        "";
        "Min latency (ns)                : {}", d.whole(1_000_000, 9_000_000);
        "Mean latency (ns)               : {}", d.whole(10_000_000, 90_000_000);
        "99.00 percentile latency (ns)   : {}", d.whole(100_000_000, 900_000_000);
    );
    out
}

fn nccl_tests(d: &mut Draw) -> String {
    let mut out = String::new();
    for op in ["all_gather", "all_reduce"] {
        lines!(out;
            "# Collective test starting: {op}_perf";
            "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 1 iters: 20 validation: 1 graph: 0";
            "# Using devices";
            "#  Rank  0 Group  0 Pid   4711 on     node-0 device  0 [0000:8d:00] NVIDIA H200";
            "#  Rank  1 Group  0 Pid   4712 on     node-0 device  1 [0000:91:00] NVIDIA H200";
            "#                                                              out-of-place                       in-place          ";
            "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong";
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       ";
        );
        for size in [1_048_576, 2_097_152, 4_194_304] {
            lines!(out; "{size:12} {:13}     float     sum      -1 {:8.2} {:7.2} {:7.2}      0 {:8.2} {:7.2} {:7.2}      0", size / 4, d.real(10.0, 900.0), d.real(10.0, 200.0), d.real(10.0, 400.0), d.real(10.0, 900.0), d.real(10.0, 200.0), d.real(10.0, 400.0););
        }
        lines!(out; "# Out of bounds values : 0 OK"; "# Avg bus bandwidth    : {:.4}", d.real(10.0, 400.0); "#";);
    }
    out
}

fn all_reduce_bench(d: &mut Draw) -> String {
    let mut out = format!(
        "The average bandwidth of all_reduce over {} ranks (5 warmups / 20 trials):\n\n| payload |    busbw   |    algbw   |\n| ------: | ---------: | ---------: |\n",
        8 * d.whole(1, 99)
    );
    for payload in ["32KB", "1MB", "16GB"] {
        lines!(out; "| {payload:>7} | {:6.2}GBps | {:6.2}GBps |", d.real(1.0, 480.0), d.real(1.0, 270.0););
    }
    out
}

fn nvidia_smi(d: &mut Draw) -> String {
    let mut out = String::from("timestamp, index, power.draw [W], utilization.gpu [%], memory.used [MiB]\n");
    for second in 0..4 {
        for gpu in 0..2 {
            lines!(out; "2025/06/10 20:05:4{second}.274, {gpu}, {:.2} W, {} %, {} MiB", d.real(70.0, 700.0), d.whole(1, 100), d.whole(1000, 80_000););
        }
    }
    out
}

fn nvidia_smi_table(d: &mut Draw) -> String {
    let mut out = String::from(
        "+-----------------------------------------------------------------------------------------+\n| NVIDIA-SMI 550.90.12              Driver Version: 550.90.12      CUDA Version: 12.4     |\n|-----------------------------------------+------------------------+----------------------+\n",
    );
    for gpu in 0..2 {
        lines!(out;
            "|   {gpu}  NVIDIA H100 80GB HBM3          On  |   00000000:{gpu}1:00.0 Off |                    0 |";
            "| N/A   {}C    P0            {}W /  700W |   {}MiB /  81559MiB |     {}%      Default |", d.whole(30, 80), d.whole(70, 700), d.whole(1000, 80_000), d.whole(1, 100);
            "+-----------------------------------------+------------------------+----------------------+";
        );
    }
    out
}

fn dmon(d: &mut Draw) -> String {
    let mut out = String::from(
        "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec\n# Idx      W      C      C      %      %      %      %\n",
    );
    for _ in 0..3 {
        lines!(out; "    0    {}     {}      -    {}     {}      0      0", d.whole(70, 700), d.whole(30, 80), d.whole(1, 100), d.whole(1, 100););
    }
    out
}

fn rocm_smi(d: &mut Draw) -> String {
    let mut out = String::from(
        "======================= ROCm System Management Interface =======================\n================================= Concise Info =================================\nDevice  Node  IDs              Temp        Power     Partitions          SCLK    MCLK    Fan  Perf  PwrCap  VRAM%  GPU%  \n",
    );
    for gpu in 0..2 {
        lines!(out; "{gpu}       {}     0x74a1,   60024  {}.0°C      {}.0W    NPS1, SPX, 0        132Mhz  900Mhz  0%   auto  750.0W  {}%    {}%     ", gpu + 2, d.whole(30, 80), d.whole(70, 700), d.whole(1, 100), d.whole(1, 100););
    }
    out + "============================= End of ROCm SMI Log ==============================\n"
}

fn amd_smi(d: &mut Draw) -> String {
    let mut out = String::from("GPU  POWER  GPU_TEMP  MEM_TEMP  GFX_UTIL  GFX_CLOCK  MEM_UTIL  MEM_CLOCK\n");
    for gpu in 0..2 {
        lines!(out; "  {gpu}  {} W     {} °C     {} °C      {} %   1308 MHz       {} %    900 MHz", d.whole(70, 700), d.whole(30, 80), d.whole(30, 80), d.whole(1, 100), d.whole(1, 100););
    }
    out
}

fn dcgm(d: &mut Draw) -> String {
    let mut out =
        String::from("# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).\n# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n");
    for gpu in 0..2 {
        lines!(out;
            "DCGM_FI_DEV_POWER_USAGE{{gpu=\"{gpu}\",UUID=\"GPU-{gpu}\",modelName=\"NVIDIA H100\",Hostname=\"a\"}} {:.3}", d.real(70.0, 700.0);
            "DCGM_FI_DEV_GPU_UTIL{{gpu=\"{gpu}\",UUID=\"GPU-{gpu}\",modelName=\"NVIDIA H100\",Hostname=\"a\"}} {}", d.whole(1, 100);
        );
    }
    out
}
