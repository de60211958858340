//! Output of serving engines and of their load generators.

use std::fmt::Write as _;

use super::{Draw, grouped};

pub(super) fn serving_block(d: &mut Draw) -> String {
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

pub(super) fn serving_json(d: &mut Draw) -> String {
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

pub(super) fn inferencemax(d: &mut Draw) -> String {
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

pub(super) fn vllm_server(d: &mut Draw) -> String {
    let mut out = String::new();
    for _ in 0..4 {
        lines!(out; "INFO 05-13 12:57:31 [loggers.py:111] Engine 000: Avg prompt throughput: {:.1} tokens/s, Avg generation throughput: {:.1} tokens/s, Running: {} reqs, Waiting: {} reqs, GPU KV cache usage: {:.1}%, Prefix cache hit rate: {:.1}%",
            d.real(9.0, 9000.0), d.real(9.0, 9000.0), d.whole(1, 500), d.whole(1, 500), d.real(1.0, 99.0), d.real(1.0, 99.0););
    }
    out
}

pub(super) fn vllm_metrics(d: &mut Draw) -> String {
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

pub(super) fn sglang_metrics(d: &mut Draw) -> String {
    let mut out = String::new();
    lines!(out;
        "# TYPE sglang:gen_throughput gauge";
        "sglang:gen_throughput{{model_name=\"m\",tp_rank=\"0\"}} {:.3} 1700000000000", d.real(9.0, 9000.0);
        "sglang:num_running_reqs{{model_name=\"m\",tp_rank=\"0\"}} {}.0 1700000000000", d.whole(1, 500);
        "sglang:token_usage{{model_name=\"m\",tp_rank=\"0\"}} {:.3} 1700000000000", d.real(0.01, 0.99);
    );
    out
}

pub(super) fn trtllm(d: &mut Draw) -> String {
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

pub(super) fn genai_table(d: &mut Draw) -> String {
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

pub(super) fn genai_csv(d: &mut Draw) -> String {
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

pub(super) fn guidellm(d: &mut Draw) -> String {
    let mut out = String::new();
    let modes = ["synchronous", "constant@1.85", "throughput"];
    lines!(out;
        "Benchmarks Info:";
        "===================================================";
        "Metadata                          |||| Requests Made  ||| Prompt Tok/Req ||";
        "   Benchmark| Start Time| End Time| Duration (s)|  Comp|  Inc|  Err|  Comp|  Inc|  Err";
        "------------|-----------|---------|-------------|------|-----|-----|------|-----|----";
    );
    for mode in modes {
        lines!(out; "{mode:>12}|   11:18:55| 11:19:25|  {:.1}|  {}|  1|  0| 512.1| 512.0|  0.0", d.real(10.0, 90.0), d.whole(10, 900););
    }
    lines!(out;
        "===================================================";
        "";
        "";
        "Benchmarks Stats:";
        "===================================================";
        "Metadata   | Request Stats         || Out Tok/sec| Tot Tok/sec| Req Latency (sec)  ||| TTFT (ms)    ||";
        "  Benchmark| Per Second| Concurrency|        mean|        mean|  mean| median|   p99|   mean| median|    p99";
        "-----------|-----------|------------|------------|------------|------|-------|------|-------|-------|-------";
    );
    for mode in modes {
        lines!(out; "{mode:>11}|  {:.2}|  {:.2}|  {:.1}|  {:.1}|  {:.2}|  {:.2}|  {:.2}|  {:.1}|  {:.1}|  {:.1}",
            d.real(1.0, 90.0), d.real(1.0, 90.0), d.real(90.0, 9000.0), d.real(90.0, 9000.0), d.real(1.0, 9.0),
            d.real(1.0, 9.0), d.real(9.0, 19.0), d.real(20.0, 90.0), d.real(20.0, 90.0), d.real(90.0, 900.0););
    }
    lines!(out; "===================================================";);
    out
}

pub(super) fn perf_analyzer(d: &mut Draw) -> String {
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

pub(super) fn llama_bench(d: &mut Draw) -> String {
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

pub(super) fn llama_batched(d: &mut Draw) -> String {
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

pub(super) fn llama_sweep(d: &mut Draw) -> String {
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

pub(super) fn llama_cpp(d: &mut Draw) -> String {
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

pub(super) fn loadgen(d: &mut Draw) -> String {
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
