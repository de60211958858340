//! Output of training frameworks.

use std::fmt::Write as _;

use super::{Draw, grouped};

pub(super) fn megatron(d: &mut Draw) -> String {
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

pub(super) fn neox(d: &mut Draw) -> String {
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

pub(super) fn primus(d: &mut Draw) -> String {
    let mut out = String::new();
    let world = 8 * d.whole(1, 9);
    let batch = d.whole(8, 600);
    for step in 1..=4 {
        lines!(out; "[20251023 12:39:12][rank-{}/{world}][INFO ] [--------trainer.py:2382] :  iteration {step:8}/     500 | consumed samples: 27136 | elapsed time per iteration (ms): {:.1}/{:.1} | hip mem usage/free/total/usage_ratio: {:.2}GB/2.60GB/255.98GB/90.00% | throughput per GPU (TFLOP/s/GPU): {:.1}/{:.1} | tokens per GPU (tokens/s/GPU): {:.1}/{:.1} | global batch size: {batch} | lm loss: {:.6E} |",
            world - 1, d.real(900.0, 9000.0), d.real(900.0, 9000.0), d.real(20.0, 250.0), d.real(20.0, 700.0), d.real(20.0, 700.0), d.real(2e3, 2e4), d.real(2e3, 2e4), d.real(1.0, 12.0););
    }
    out
}

pub(super) fn nemo2(d: &mut Draw) -> String {
    let mut out = String::new();
    let (planned, batch) = (d.whole(20, 900), d.whole(8, 900));
    for step in 0..5 {
        lines!(out; "Training epoch 0, iteration {step}/{planned} | lr: 1e-05 | global_batch_size: {batch} | global_step: {step} | reduced_train_loss: {:.3} | train_step_timing in s: {:.3} | consumed_samples: {}",
            d.real(1.0, 12.0), d.real(0.5, 90.0), (step + 1) * batch;);
    }
    out
}

pub(super) fn nemo1(d: &mut Draw) -> String {
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

pub(super) fn deepspeed_timer(d: &mut Draw) -> String {
    let mut out = String::new();
    lines!(out; "[2024-01-02 03:04:05,678] [INFO] [config.py:984:print]   train_batch_size ............. {}", d.whole(8, 4096););
    for step in 1..=5 {
        lines!(out; "[2024-01-02 03:04:{:02},001] [INFO] [timer.py:199:stop] epoch=0/micro_step={step}0/global_step={step}0, RunningAvgSamplesPerSec={}, CurrSamplesPerSec={}, MemAllocated={:.2}GB, MaxMemAllocated={:.2}GB",
            step * 9, d.real(9.0, 900.0), d.real(9.0, 900.0), d.real(2.0, 20.0), d.real(20.0, 79.0););
    }
    out
}

pub(super) fn deepspeed_sft(d: &mut Draw) -> String {
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

pub(super) fn deepspeed_rlhf(d: &mut Draw) -> String {
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

pub(super) fn torchtitan(d: &mut Draw) -> String {
    let mut out = String::new();
    for step in 1..=5 {
        lines!(out; "[rank0]:[titan] 2025-06-04 08:51:48,074 - root - INFO - step: {step:2}  loss: {:.4}  grad_norm: {:.4}  memory: {:.2}GiB({:.2}%)  tps: {}  tflops: {:.2}  mfu: {:.2}%",
            d.real(1.0, 12.0), d.real(0.1, 9.0), d.real(20.0, 79.0), d.real(20.0, 99.0), grouped(d.whole(1000, 90_000)), d.real(20.0, 700.0), d.real(5.0, 60.0););
    }
    out
}

pub(super) fn nanotron(d: &mut Draw) -> String {
    let mut out = String::new();
    for step in 1..=4_u64 {
        lines!(out; "[INFO|DP=0|PP=0|TP=0]: iteration: {step} / 15 | consumed_tokens: {}K | elapsed_time_per_iteration_ms: {:.2}K | tokens_per_sec: {}K | tokens_per_sec_per_gpu: {}K | global_batch_size: 256 | lm_loss: {:.2} | lr: 0.0001 | model_tflops_per_gpu: {:.1} | grad_norm: {:.2} |",
            step * 524, d.real(1.0, 9.0), d.whole(100, 999), d.whole(10, 99), d.real(1.0, 12.0), d.real(20.0, 300.0), d.real(0.1, 9.0););
    }
    out
}

pub(super) fn litgpt(d: &mut Draw) -> String {
    let mut out = String::new();
    for step in 1..=4 {
        lines!(out; "Epoch 1 | iter {step} step 1 | loss train: {:.3}, val: n/a | iter time: {:.2} ms (step)", d.real(1.0, 12.0), d.real(90.0, 9000.0););
    }
    out
}

pub(super) fn maxtext(d: &mut Draw) -> String {
    let mut out = String::new();
    lines!(out; "Num_devices: {}", 8 * d.whole(1, 40); "number parameters: {:.3} billion", d.real(1.0, 90.0););
    for step in 0..5 {
        lines!(out; "I0706 16:50:26.257925 140110937163584 metric_logger.py:214] completed step: {step}, seconds: {:.3}, TFLOP/s/device: {:.3}, Tokens/s/device: {:.3}, total_weights: 65536, loss: {:.3}",
            d.real(0.2, 30.0), d.real(20.0, 400.0), d.real(200.0, 20_000.0), d.real(1.0, 12.0););
    }
    out
}

pub(super) fn nanogpt(d: &mut Draw) -> String {
    let mut out = format!("tokens per iteration will be: {}\n", grouped(1024 * d.whole(100, 900)));
    for step in 0..5 {
        lines!(out; "iter {step}: loss {:.4}, time {:.2}ms, mfu {:.2}%", d.real(1.0, 12.0), d.real(90.0, 9000.0), d.real(5.0, 60.0););
    }
    out
}

pub(super) fn modded(d: &mut Draw) -> String {
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

pub(super) fn internevo(d: &mut Draw) -> String {
    let mut out = String::new();
    for step in 1..=4 {
        lines!(out; "2023-07-07T12:26:58.293 INFO train.py, line 318, in record_current_batch_training_metrics -- tflops={},step={step},loss={},tgs (tokens/gpu/second)={:.2},lr=1e-06,num_consumed_tokens={},grad_norm={:.3},micro_num=4", d.real(90.0, 300.0), d.real(1.0, 12.0), d.real(900.0, 9000.0), step * 65_536, d.real(0.1, 9.0););
    }
    out
}

pub(super) fn picotron(d: &mut Draw) -> String {
    let mut out = String::new();
    for step in 1..=4 {
        lines!(out; "[rank 0] Step: {step:<5} | Loss: {:6.4} | Global batch size: 262.14K | Tokens/s: {:.2}K | Tokens/s/GPU: {:.2}K | Tokens: {:.2}M | MFU: {:5.2}% | Memory usage: {:6.2}GB",
            d.real(1.0, 12.0), d.real(80.0, 90.0), d.real(10.0, 11.0), d.real(1.0, 9.0), d.real(5.0, 60.0), d.real(20.0, 79.0););
    }
    out
}

pub(super) fn nxd(d: &mut Draw) -> String {
    let mut out = String::new();
    for step in 1..=4 {
        lines!(out; "LOG Fri Jun 21 17:26:23 2024 - (0, {step}) step_loss : {:.4} learning_rate : 1.20e-04 throughput : {:.2} grad-norm : {:.4}", d.real(1.0, 12.0), d.real(1.0, 90.0), d.real(0.1, 9.0););
    }
    out
}

pub(super) fn hf_trainer(d: &mut Draw) -> String {
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

pub(super) fn hf_state(d: &mut Draw) -> String {
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

pub(super) fn mllog(d: &mut Draw) -> String {
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

pub(super) fn composer(d: &mut Draw) -> String {
    let mut out = String::new();
    let planned = d.whole(20, 900);
    for batch in 1..=d.whole(3, 7) {
        let rate = d.real(0.05, 2.0);
        lines!(out;
            "[batch={batch}/{planned}]:";
            "\t Train time/batch: {}", batch - 1;
            "\t Train loss/train/total: {:.4}", d.real(1.0, 12.0);
            "\t Train throughput/batches_per_sec: {rate:.4}";
            "\t Train throughput/device/tokens_per_sec: {:.1}", d.real(900.0, 9e4);
            "\t Train throughput/device/flops_per_sec: {}000000000000.0", d.whole(20, 900);
            "\t Train throughput/device/mfu: 0.{}", d.whole(1000, 6000);
        );
    }
    out
}

pub(super) fn levanter(d: &mut Draw) -> String {
    let mut out = String::new();
    for step in 0..4 {
        lines!(out; "Progress on:train {}it/10.0kit rate:{:.1}{} remaining:1:03:45 elapsed:08:40 postfix:loss={:.2}",
            10 + step, d.real(1.0, 90.0), if step == 2 { "s/it" } else { "it/s" }, d.real(1.0, 12.0););
    }
    out
}
