//! Log lines in the formats of other tool versions than those of the real samples, with their expected facts. They are
//! written from knowledge of the tools' output; none is a recorded run.

use atlas_ingest as ingest;
use atlas_ingest::Context;
use serde_json::Value;

/// A few lines, their format, and facts as JSON pointers with values.
type Version<'a> = (&'a str, &'a str, &'a [(&'a str, f64)]);

const VERSIONS: &[Version<'_>] = &[
    (
        "Training epoch 0, iteration 10/99 | lr: 3.0e-06 | global_batch_size: 512 | global_step: 10 | reduced_train_loss: 11.03 | train_step_timing in s: 4.512 | consumed_samples: 5632\nTraining epoch 0, iteration 11/99 | lr: 3.3e-06 | global_batch_size: 512 | global_step: 11 | reduced_train_loss: 10.91 | train_step_timing in s: 4.498 | consumed_samples: 6144\nTraining epoch 0, iteration 12/99 | lr: 3.6e-06 | global_batch_size: 512 | global_step: 12 | reduced_train_loss: 10.85 | train_step_timing in s: 4.501 | consumed_samples: 6656\n",
        "nemo2",
        &[("/total_iterations_planned", 100.0), ("/global_batch_size", 512.0)],
    ),
    (
        "***** Running training *****\n  Num examples = 52,002\n  Num Epochs = 3\n  Instantaneous batch size per device = 4\n  Total train batch size (w. parallel, distributed & accumulation) = 1,024\n  Gradient Accumulation steps = 32\n  Total optimization steps = 150\n  Number of trainable parameters = 6,738,415,616\n{'loss': 1.2345, 'grad_norm': 0.81, 'learning_rate': 2e-05, 'epoch': 0.2}\n{'train_runtime': 4521.3321, 'train_samples_per_second': 34.504, 'train_steps_per_second': 0.033, 'total_flos': 1.2e+18, 'train_loss': 1.0432, 'epoch': 2.95}\n",
        "hf-trainer-stdout",
        &[("/global_batch_size", 1024.0), ("/train_runtime_s", 4521.3321)],
    ),
    (
        "===========================================================\n= PERFORMANCE OVERVIEW\n===========================================================\nRequest Throughput (req/sec):                     43.2089\nTotal Output Throughput (tokens/sec):             5530.7382\nTotal Token Throughput (tokens/sec):              11061.4764\nTotal Latency (ms):                               69429.9\nAverage request latency (ms):                     34513.2\nPer User Output Throughput [w/ ctx] (tps/user):   4.1\nPer GPU Output Throughput (tps/gpu):              2765.3691\n\n-- Request Latency Breakdown (ms) -----------------------\n[Latency] P50    : 34000.1\n[Latency] P90    : 60000.2\n[Latency] P99    : 68000.3\n",
        "trtllm-bench-report",
        &[("/per_gpu_output_throughput", 2765.3691), ("/request_latency_ms/p99", 68000.3)],
    ),
    (
        "================================================\nMLPerf Results Summary\n================================================\nSUT name : PySUT\nScenario : Server\nMode     : PerformanceOnly\nCompleted samples per second    : 81.20\nCompleted tokens per second: 23851.12\nResult is : VALID\n  TTFT constraints satisfied : Yes\n  TPOT constraints satisfied : Yes\n\n================================================\nAdditional Stats\n================================================\nMean First Token latency (ns)   : 402123456\n99.00 percentile first token latency (ns)   : 1820123456\nMean Time to Output Token (ns)   : 78123456\n99.00 percentile time to output token (ns)   : 131123456\n",
        "mlperf-loadgen-summary",
        &[("/ttft_ns/p99", 1_820_123_456.0), ("/tokens_per_s", 23851.12)],
    ),
    (
        "*** Measurement Settings ***\n  Batch size: 8\n  Service Kind: Triton\n  Using \"time_windows\" mode for stabilization\nRequest concurrency: 4\n  Client:\n    Request count: 12801\n    Throughput: 5688.44 infer/sec\n    p50 latency: 5580 usec\n    p90 latency: 5900 usec\n    p95 latency: 6010 usec\n    p99 latency: 6400 usec\n    Avg HTTP time: 5610 usec (send/recv 41 usec + response wait 5569 usec)\n  Server:\n    Inference count: 102408\n    Avg request latency: 5301 usec (overhead 12 usec + queue 1210 usec + compute input 210 usec + compute infer 3800 usec + compute output 69 usec)\n",
        "perf-analyzer-text",
        &[("/results/0/request_latency_ms.p99", 6.4)],
    ),
    (
        "[rank0]:[titan] 2025-09-01 10:00:20,000 - root - INFO - step:  2  loss: 11.2254  grad_norm:  4.1  memory: 47.36GiB(49.85%)  tps: 6,341  tflops: 319.75  mfu: 32.00%\n[rank0]:[titan] 2025-09-01 10:00:30,000 - root - INFO - step: 10  loss: 10.3  memory: 40.0GiB(50.00%)  tps: 6,000  tflops: 300.10  mfu: N/A\n[rank0]:[titan] 2025-09-01 10:00:31,000 - root - INFO - validate step: 10  loss: 10.1  memory: 40.0GiB(50.00%)  tps: 9,000\n",
        "torchtitan",
        &[
            ("/n_records", 2.0),
            ("/tokens_per_s_per_gpu_by_step/10", 6000.0),
            ("/validation/0/1", 10.1),
            ("/loss/last", 10.3),
        ],
    ),
    (
        "timestamp, power.draw.instant [W], power.draw.average [W], temperature.gpu\n2025/06/10 20:05:40.274, 350.10 W, 340.10 W, 55\n2025/06/10 20:05:41.274, [Not Supported], 341.10 W, 55\n",
        "nvidia-smi-csv",
        &[("/mean_total_power_w", 345.6), ("/duration_s", 1.0)],
    ),
    (
        "#Time        gpu    pwr  gtemp  mtemp     sm    mem\n#HH:MM:SS    Idx      W      C      C      %      %\n 23:59:58      0    350     55     60     99     50\n 00:00:02      0    360     55     60     99     50\n",
        "nvidia-smi-dmon",
        &[("/mean_power_w", 355.0), ("/duration_s", 4.0), ("/energy_wh_trapezoid_per_gpu_sum", 1420.0 / 3600.0)],
    ),
    (
        "GPU  XCP  POWER  PWR_CAP  GPU_T  MEM_T   GFX_CLK  GFX%  MEM%      VRAM_USAGE\n  0    0  140 W    750 W  41 °C  36 °C  132 MHz   3 %   0 %   0.3/192.0 GB\n  1    0  141 W    750 W  42 °C  36 °C  132 MHz   5 %   0 %   0.3/192.0 GB\n",
        "amd-smi-monitor",
        &[("/total_power_w", 281.0), ("/power_cap_w/1", 750.0), ("/gpu_temp_c/1", 42.0), ("/gfx_util_percent/1", 5.0)],
    ),
    (
        "(EngineCore_0 pid=7) INFO 09-01 10:00:00 [loggers.py:123] Engine 000: Avg prompt throughput: 1234.5 tokens/s, Avg generation throughput: 2345.6 tokens/s, Running: 64 reqs, Waiting: 2 reqs, GPU KV cache usage: 45.6%, Prefix cache hit rate: 12.3%\n",
        "vllm-server",
        &[("/generation_tps/mean", 2345.6), ("/kv_cache_percent_max", 45.6), ("/prefix_cache_hit_percent_max", 12.3)],
    ),
    (
        "==============NVSMI LOG==============\n\nTimestamp                                 : Tue Mar  4 10:21:33 2025\nDriver Version                            : 550.127.08\nAttached GPUs                             : 2\nGPU 00000000:18:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n    FB Memory Usage\n        Total                             : 81559 MiB\n        Used                              : 72770 MiB\n    BAR1 Memory Usage\n        Used                              : 5 MiB\n    Utilization\n        Gpu                               : 97 %\n    Temperature\n        GPU Current Temp                  : 48 C\n    GPU Power Readings\n        Average Power Draw                : 464.35 W\n        Instantaneous Power Draw          : 500.00 W\n        Current Power Limit               : 700.00 W\n    Module Power Readings\n        Power Draw                        : N/A\nGPU 00000000:2A:00.0\n    FB Memory Usage\n        Used                              : 70770 MiB\n    GPU Power Readings\n        Power Draw                        : 480.00 W\n",
        "nvidia-smi-q",
        &[
            ("/num_gpus", 2.0),
            ("/power_w/0", 464.35),
            ("/power_w/1", 480.0),
            ("/memory_used_mib/0", 72770.0),
            ("/total_power_w", 944.35),
            ("/power_cap_w", 700.0),
        ],
    ),
    (
        "==============NVSMI LOG==============\nDriver Version                      : 418.67\nGPU 00000000:00:04.0\n    Product Name                    : Tesla V100-SXM2-16GB\n    Utilization\n        Gpu                         : 3 %\n    Power Readings\n        Power Management            : Supported\n        Power Draw                  : 41.25 W\n        Power Limit                 : 300.00 W\n==============NVSMI LOG==============\nGPU 00000000:00:04.0\n    Power Readings\n        Power Draw                  : 43.25 W\n",
        "nvidia-smi-q",
        &[("/power_w/0", 42.25), ("/snapshots", 2.0), ("/power_cap_w", 300.0)],
    ),
    (
        "#gpu, pwr, gtemp, mtemp, sm, mem\n#Idx, W, C, C, %, %\n0, 464, 48, 60, 97, 41\n1, 470, 48, 60, 95, 41\n",
        "nvidia-smi-dmon",
        &[("/num_gpus", 2.0), ("/mean_total_power_w", 934.0), ("/sm_percent_mean", 96.0)],
    ),
    (
        "Type,Run Id,Id,Name,Start Time,End Time,Duration,Successful Requests,Errored Requests,Successful Requests per Second mean,Successful Requests per Second median,Successful Time to First Token ms mean,\"Successful Time to First Token ms [0.1, 1, 50, 90, 99]\",Successful Request Latency mean,Errored Request Latency mean,Successful Output Tokens per Second mean\nGenerativeBenchmark,a,b,synchronous,1740000000.0,1740000060.0,60.0,30,2,0.5,0.4,25.1,\"[20, 21, 24.9, 30, 33]\",2.5,9.9,64.5\n",
        "guidellm-csv",
        &[
            ("/results/0/request_throughput", 0.5),
            ("/results/0/ttft_ms.mean", 25.1),
            ("/results/0/ttft_ms.p99", 33.0),
            ("/results/0/request_latency_ms.mean", 2500.0),
            ("/results/0/output_throughput", 64.5),
            ("/results/0/failed_requests", 2.0),
        ],
    ),
    (
        "{\"benchmarks\": [{\"args\": {\"strategy\": {\"type_\": \"constant\"}}, \"worker\": {\"backend_model\": \"m\"}, \"duration\": 60.0, \"metrics\": {\"requests_per_second\": {\"successful\": {\"mean\": 0.5}, \"errored\": {\"mean\": 9.0}}, \"request_latency\": {\"successful\": {\"mean\": 2.0, \"percentiles\": {\"p99\": 2.25}}}, \"time_to_first_token_ms\": {\"successful\": {\"mean\": 25.1, \"median\": 24.9, \"std_dev\": 1.5, \"percentiles\": {\"p999\": 40.0}}}}}]}\n",
        "guidellm-json",
        &[
            ("/results/0/request_throughput", 0.5),
            ("/results/0/request_latency_ms.p99", 2250.0),
            ("/results/0/ttft_ms.std", 1.5),
            ("/results/0/ttft_ms.p99.9", 40.0),
        ],
    ),
    (
        "iter 0: loss 10.9890, time 41032.10ms, mfu -100.00%\nstep 250: train loss 2.4531, val loss 2.4601\niter 10: loss 9.5, time 562.0ms, mfu 35.20%\nstep 500: train loss 2.3531, val loss 2.3601\n",
        "nanogpt",
        &[("/n_records", 2.0), ("/val_records", 2.0), ("/val_loss/last", 2.3601), ("/eval_train_loss/first", 2.4531)],
    ),
    (
        "{\"version\": 1, \"args\": [\"./build/all_reduce_perf\", \"-g\", \"8\"], \"devices\": [{\"rank\": 0, \"device_name\": \"NVIDIA H100 80GB HBM3\"}, {\"rank\": 1}], \"results\": [{\"size\": 8, \"count\": 2, \"type\": \"float\", \"redop\": \"sum\", \"root\": -1, \"out_of_place\": {\"time\": 25.1, \"alg_bw\": 0.0, \"bus_bw\": 0.0, \"nwrong\": 0}, \"in_place\": {\"time\": 24.9, \"alg_bw\": 0.0, \"bus_bw\": 0.0}}, {\"size\": 1073741824, \"type\": \"float\", \"redop\": \"sum\", \"out_of_place\": {\"time\": 3980.0, \"alg_bw\": 269.8, \"bus_bw\": 472.1}, \"in_place\": {\"time\": 3990.0, \"alg_bw\": 269.1, \"bus_bw\": 470.9}}], \"average_bus_bandwidth\": {\"bandwidth\": 236.0}}\n",
        "nccl-tests",
        &[
            ("/ranks", 8.0),
            ("/results/0/busbw_out_of_place_at_max_size", 472.1),
            ("/results/0/busbw_in_place_at_max_size", 470.9),
            ("/results/0/avg_busbw_reported", 236.0),
        ],
    ),
    (
        "***** train metrics *****\n  epoch                    =        1.0\n  total_flos               = 12345678GF\n  train_loss               =     2.3456\n  train_runtime            = 1 day, 0:10:23.45\n  train_samples_per_second =     16.042\n",
        "hf-trainer-stdout",
        &[("/train_runtime_s", 87_023.45), ("/train_loss", 2.3456), ("/total_flos", 1.234_567_8e16)],
    ),
    (
        ":::MLPv0.5.0 resnet 1541635401.5 (main.py:122) run_start\n:::MLPv0.5.0 resnet 1541635500.5 (main.py:122) eval_accuracy: {\"epoch\": 61, \"value\": 0.75}\n:::MLPv0.5.0 resnet 1541636402.5 (main.py:122) run_stop: {\"success\": true}\n",
        "mlperf-mllog",
        &[("/time_to_train_s", 1001.0)],
    ),
    (
        "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\",model_name=\"m\"} 5.0\nvllm:num_requests_running{engine=\"1\",model_name=\"m\"} 3.0\nvllm:generation_tokens_total{engine=\"0\",model_name=\"m\"} 27453.0\nvllm:time_to_first_token_seconds_bucket{le=\"0.1\",model_name=\"m\"} 90.0\nvllm:time_to_first_token_seconds_count{model_name=\"m\"} 100.0\nvllm:time_to_first_token_seconds_sum{model_name=\"m\"} 5.2\nvllm:kv_cache_usage_perc{model_name=\"m\"} 0.125\n",
        "vllm-metrics",
        &[("/running", 8.0), ("/output_tokens", 27453.0), ("/ttft_ms/mean", 52.0), ("/kv_cache_percent", 12.5)],
    ),
    (
        "sglang:num_running_reqs{model_name=\"m\",tp_rank=\"0\"} 16.0\nsglang:gen_throughput{model_name=\"m\"} 1095.5\nsglang:e2e_request_latency_seconds_sum{model_name=\"m\"} 20.0\nsglang:e2e_request_latency_seconds_count{model_name=\"m\"} 10.0\n",
        "sglang-metrics",
        &[("/running", 16.0), ("/generation_tps", 1095.5), ("/e2el_ms/mean", 2000.0)],
    ),
    (
        "{\"run_name\": \"before\", \"batch_size\": 1, \"input_len\": 256, \"output_len\": 32, \"prefill_latency\": 0.02, \"prefill_throughput\": 12800.0, \"median_decode_latency\": 0.006, \"median_decode_throughput\": 166.0, \"total_latency\": 0.21, \"overall_throughput\": 1371.4}\n{\"run_name\": \"before\", \"batch_size\": 16, \"input_len\": 1024, \"output_len\": 16, \"latency\": 1.2, \"output_throughput\": 213.3, \"overall_throughput\": 13866.7, \"last_gen_throughput\": 250.0}\n",
        "sglang-one-batch-jsonl",
        &[
            ("/results/0/decode_step_ms", 6.0),
            ("/results/0/prefill_ms", 20.0),
            ("/results/1/total_latency_ms", 1200.0),
            ("/results/1/last_generation_throughput", 250.0),
        ],
    ),
    (
        "[{\"gpu\": 0, \"usage\": {\"gfx_activity\": {\"value\": 98, \"unit\": \"%\"}}, \"power\": {\"socket_power\": {\"value\": 643, \"unit\": \"W\"}}, \"temperature\": {\"hotspot\": {\"value\": 71, \"unit\": \"C\"}}, \"mem_usage\": {\"used_vram\": {\"value\": 118100, \"unit\": \"MB\"}}}, {\"gpu\": 1, \"power\": {\"average_socket_power\": 640}}]\n",
        "amd-smi-json",
        &[("/num_gpus", 2.0), ("/total_power_w", 1283.0), ("/vram_used_mb/0", 118_100.0)],
    ),
    (
        " iteration      100/  320000 | elapsed time per iteration (ms): 623.1 | learning rate 1.406E-04 | lm loss 7.2E+00 |\n",
        "megatron-legacy",
        &[("/step_time_s/first", 0.6231), ("/loss/last", 7.2)],
    ),
    (
        " samples/sec: 22.983 | iteration       10/  320000 | elapsed time per iteration (ms): 1392.3 | learning rate: 9E-06 | approx flops per GPU: 35.3TFLOPS | lm_loss: 1.011E+01 |\n",
        "gpt-neox",
        &[("/step_time_s/first", 1.3923), ("/tflops_per_gpu_reported/first", 35.3)],
    ),
    (
        "using world size: 16, data-parallel-size: 4, tensor-model-parallel size: 2, pipeline-model-parallel size: 2\n iteration       10/  286102 | consumed samples: 2560 | elapsed time per iteration (ms): 5013.7 | global batch size:   256 | lm loss: 1.039E+01 | actual seqlen:  2048 | samples per second: 51.060 | tokens per gpu per second (tgs): 6535.682 | TFLOPs: 54.31 |\n",
        "megatron-deepspeed",
        &[
            ("/num_gpus", 16.0),
            ("/seq_len", 2048.0),
            ("/tokens_per_s_per_gpu/first", 6535.682),
            ("/tensor_parallel", 2.0),
        ],
    ),
    (
        "  world_size ...................................... 64\n  tensor_model_parallel_size ...................... 8\n  seq_length ...................................... 4096\n [2025-01-01 00:00:00] iteration        1/     100 | consumed samples: 64 | elapsed time per iteration (ms): 900.5 | throughput per GPU (TFLOP/s/GPU): 401.1 | global batch size:    64 | load_balancing_loss: 1.0E+00 | lm loss: 1.1E+01 |\n",
        "megatron-current",
        &[("/num_gpus", 64.0), ("/seq_len", 4096.0), ("/tflops_per_gpu_reported/first", 401.1)],
    ),
    (
        "Epoch 0: :   1%|          | 1/100 [00:30<49:30, v_num=dz, reduced_train_loss=11.00, global_step=0.000, consumed_samples=128.0, train_step_timing in s=30.10]Epoch 0: :   2%|▏  | 2/100 [00:33<27:10, v_num=dz, reduced_train_loss=10.90, global_step=1.000, consumed_samples=256.0, train_step_timing in s=3.100]\rEpoch 0: : 3%|▏| 3/100 [00:36<20:10, reduced_train_loss=10.80, global_step=2.000, consumed_samples=384.0, train_step_timing in s=3.000]\n",
        "nemo1-progress",
        &[("/n_records", 3.0), ("/step_time_s/mean_no_warmup", 3.05), ("/consumed_samples_last", 384.0)],
    ),
    (
        "Training epoch 0, iteration 4/99 | lr: 1.5e-07 | global_batch_size: 128 | global_step: 4 | max_memory_reserved: 1 | reduced_train_loss: 11.03 | train_step_timing in s: 2.5 | TFLOPS_per_GPU: 612.5 | consumed_samples: 640\n",
        "nemo2",
        &[("/step_time_s/first", 2.5), ("/tflops_per_gpu_reported/first", 612.5), ("/consumed_samples_last", 640.0)],
    ),
    (
        "[2021-05-26 04:56:04,854] [INFO] [timer.py:154:stop] 0/10, SamplesPerSec=41.07, MemAllocated=4.0GB, MaxMemAllocated=12.1GB\n",
        "deepspeed-throughput",
        &[("/samples_per_s_current/first", 41.07), ("/max_mem_allocated_gb", 12.1), ("/global_steps/0", 10.0)],
    ),
    (
        "steps: 10 loss: 2.3057 iter time (s): 0.512 samples/sec: 62.500\n",
        "deepspeed-pipeline",
        &[("/step_time_s/first", 0.512), ("/global_batch_size", 32.0)],
    ),
    (
        "End-to-End => Latency: 3.79s, TFLOPs: 10.87, Samples/sec: 8.44, Time/seq 0.12s, Batch Size: 32, Total Seq. Length: 512\nGeneration => Latency: 2.30s, Per-token Latency 8.99 ms, TFLOPs: 1.47, BW: 293.24 GB/sec, Answer Seq. Length: 256\nTraining   => Latency: 1.49s, TFLOPs: 25.36\n",
        "deepspeed-chat-rlhf",
        &[("/step_time_s/first", 3.79), ("/generate_time_s/first", 2.3), ("/training_time_s/first", 1.49)],
    ),
    (
        "[titan] 2025-08-01 10:00:00,000 - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]\n[titan] 2025-08-01 10:00:10,000 - root - INFO - \u{1b}[31mstep:  1  \u{1b}[32mloss: 12.2254  \u{1b}[38;2;180;60;0mgrad_norm:  4.1234  \u{1b}[38;2;54;234;195mmemory: 47.36GiB(49.85%)  \u{1b}[34mtps: 1,341  \u{1b}[36mtflops: 19.75  \u{1b}[35mmfu: 2.00%\u{1b}[39m\n",
        "torchtitan",
        &[("/num_gpus", 8.0), ("/tokens_per_s_per_gpu_by_step/1", 1341.0), ("/mfu_percent_by_step/1", 2.0)],
    ),
    (
        "2024-06-01 10:00:10,000 - root - INFO - step: 10  loss: 10.3  iter: 1.2  data: 0.01  lr: 0.0001  memory: 40.0GiB(50.00%)  wps: 3,341  mfu: 42.00%\n",
        "torchtitan",
        &[("/tokens_per_s_per_gpu_by_step/10", 3341.0)],
    ),
    (
        "Total train batch size (w. parallel, distributed & accumulation) = 64\n  6%|▋  | 1/16 [00:02<00:33,  2.2s/it]{'loss': 3.1, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 0.06}\n{'train_runtime': 40.0, 'train_samples_per_second': 25.6, 'train_steps_per_second': 0.4, 'train_loss': 3.05, 'epoch': 1.0}\n",
        "hf-trainer-stdout",
        &[("/global_batch_size", 64.0), ("/train_samples_per_second", 25.6), ("/loss/first", 3.1)],
    ),
    (
        "iter 0 step 1: loss 10.8, iter time: 1205.55ms (optimizer.step)\n",
        "litgpt",
        &[("/iter_time_ms/first", 1205.55), ("/optimizer_steps", 1.0)],
    ),
    ("iter 5: loss 1.9, time: 1234.5ms\n", "nanogpt", &[("/step_time_s/first", 1.2345)]),
    (
        "tokens per iteration will be: 491,520\niter 100: loss 3.5, time 250.00ms, mfu 41.20%\n",
        "nanogpt",
        &[("/tokens_per_s_no_warmup", 1_966_080.0), ("/mfu_percent/first", 41.2)],
    ),
    (
        "completed step: 0, seconds: 27.9, TFLOP/s/device: 8.5, loss: 12.038\ncompleted step: 1, seconds: 0.9, TFLOP/s/device: 265, loss: 12.0\ncompleted step: 2, seconds: 3.9, TFLOP/s/device: 61, loss: 11.9\n",
        "maxtext",
        &[("/step_time_s/warmup_dropped", 2.0), ("/step_time_s/mean_no_warmup", 3.9)],
    ),
    (
        "INFO 05-13 12:57:31 metrics.py:334] Avg prompt throughput: 0.2 tokens/s, Avg generation throughput: 10.2 tokens/s, Running: 1 reqs, Swapped: 0 reqs, Pending: 3 reqs, GPU KV cache usage: 0.1%, CPU KV cache usage: 0.0%\n",
        "vllm-server",
        &[("/generation_tps/mean", 10.2), ("/waiting_max", 3.0)],
    ),
    (
        "Throughput: 7.15 requests/s, 4656.00 total tokens/s, 1830.46 output tokens/s\n",
        "vllm-throughput-text",
        &[("/total_tokens_per_s", 4656.0), ("/output_tokens_per_s", 1830.46)],
    ),
    (
        "[2025-01-01 00:00:00 TP0] Decode batch. #running-req: 3, #token: 100, token usage: 0.01, gen throughput (token/s): 95.5, #queue-req: 2\n",
        "sglang-server",
        &[("/generation_tps/mean", 95.5), ("/queue_max", 2.0)],
    ),
    (
        "============ Serving Benchmark Result ============\nBackend:                                 sglang\nMax reqeuest concurrency:                16\nSuccessful requests:                     80\nInput token throughput (tok/s):          1992.13\nMean E2E Latency (ms):                   8120.11\nP99 ITL (ms):                            20.00\n",
        "sglang-bench-text",
        &[("/results/0/max_concurrency", 16.0), ("/results/0/e2el_ms.mean", 8120.11), ("/results/0/itl_ms.p99", 20.0)],
    ),
    (
        "[BENCHMARK] num_samples 10\n[BENCHMARK] total_latency(ms) 1640.6\n[BENCHMARK] token_throughput(token/sec) 1234.5\n",
        "trtllm-bench-report",
        &[("/requests", 10.0), ("/output_throughput", 1234.5), ("/total_latency_ms", 1640.6)],
    ),
    (
        "        NVIDIA AIPerf | LLM Metrics\n┃                Metric ┃    avg ┃    min ┃\n│   Time to First Token │  18.26 │  11.22 │\n│                  (ms) │        │        │\n│          Output Token │ 10,944 │    N/A │\n│            Throughput │        │        │\n│          (tokens/sec) │        │        │\n└───────────────────────┴────────┴────────┘\n",
        "aiperf-table",
        &[("/ttft_ms/mean", 18.26), ("/output_throughput", 10_944.0)],
    ),
    (
        "build_commit,n_prompt,n_gen,model_type,avg_ns,stddev_ns,avg_ts,stddev_ts\n\"abc\",\"512\",\"0\",\"llama 7B Q4_0\",\"100\",\"1\",\"5120.5\",\"2.5\"\n",
        "llama-bench-csv",
        &[("/results/0/tokens_per_s", 5120.5)],
    ),
    (
        "INSERT INTO test (n_prompt, n_gen, model_type, avg_ts) VALUES ('0', '128', 'llama 7B', '120.5');\n",
        "llama-bench-sql",
        &[("/results/0/tokens_per_s", 120.5)],
    ),
    (
        "llama_perf_context_print: prompt eval time =      50.12 ms /    21 tokens (    2.39 ms per token,   418.99 tokens per second)\nllama_perf_context_print:        eval time =    5431.21 ms /   511 runs   (   10.63 ms per token,    94.09 tokens per second)\nllama_perf_context_print:       total time =    5601.21 ms /   532 tokens\n",
        "llama-cpp-timings",
        &[("/prompt_tokens_per_s/0", 418.99), ("/eval_tokens_per_s/0", 94.09), ("/total_time_ms/0", 5601.21)],
    ),
    (
        "MLPerf Results Summary\nSUT name : PySUT\nScenario : Offline\nSamples per second: 112.3\nTokens per second: 33000.5\nResult is : INVALID\n99.90 percentile latency (ns)   : 159705402675\n",
        "mlperf-loadgen-summary",
        &[("/samples_per_s", 112.3), ("/tokens_per_s", 33_000.5), ("/latency_ns/p99.9", 159_705_402_675.0)],
    ),
    (
        "# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor)\n#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n[1,0]<stdout>:   134217728      33554432   float     sum   1036.7  129.46  226.56  4e-07   1036.0  129.55  226.71  4e-07\n# Avg bus bandwidth    : 51.3\n",
        "nccl-tests",
        &[("/ranks", 8.0), ("/results/0/busbw_in_place_at_max_size", 226.71), ("/results/0/avg_busbw_reported", 51.3)],
    ),
    (
        "#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem\n#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %\n 20240131   12:34:56      0     70     35      -      0      0\n 20240131   12:34:58      0    170     35      -     50      0\n",
        "nvidia-smi-dmon",
        &[("/mean_power_w", 120.0), ("/duration_s", 2.0)],
    ),
    (
        "2024/01/31 12:34:56.123, 0, 70.10 W, 35 %, 1000 MiB\n2024/01/31 12:34:57.123, 0, 170.10 W, 95 %, 1000 MiB\n",
        "nvidia-smi-csv",
        &[("/mean_total_power_w", 120.1), ("/n_records", 2.0)],
    ),
    (
        "GPU  Temp   AvgPwr  SCLK    MCLK     Fan   Perf  PwrCap  VRAM%  GPU%\n0    43.0c  91.0W   1440Mhz 1200Mhz  0%    auto  300.0W   98%   100%\n",
        "rocm-smi-concise",
        &[("/power_w/0", 91.0), ("/power_cap_w", 300.0), ("/gpu_percent/0", 100.0)],
    ),
    (
        "GPU  XCP  POWER   GPU_T   MEM_T   GFX_CLK   GFX%   MEM%\n  0    0  151 W   44 °C   35 °C   132 MHz    5 %    1 %\n",
        "amd-smi-monitor",
        &[("/power_w/0", 151.0), ("/gpu_temp_c/0", 44.0), ("/gfx_util_percent/0", 5.0)],
    ),
    (
        "#Entity   POWER   SMACT\n          W\n      ID\nGPU 0     350.5   0.9\nGPU 1     351.5   0.8\n",
        "dcgmi-dmon",
        &[("/num_gpus", 2.0), ("/mean_SMACT", 0.85), ("/mean_total_power_w", 702.0)],
    ),
    (
        "Measurement window 'epoch' ended: Measurement(time=10.0, gpu_energy={0: 1000.0, 1: 1500.0}, cpu_energy=None)\n",
        "zeus-measurement",
        &[("/results/0/energy_j", 2500.0), ("/results/0/mean_power_w", 250.0)],
    ),
    (
        "{\"avg_latency\": 3.25, \"latencies\": [3.2, 3.3], \"percentiles\": {\"99\": 3.3}}\n",
        "vllm-latency-json",
        &[("/latency_s/mean", 3.25), ("/latency_s/p99", 3.3)],
    ),
    (
        "{\"card0\": {\"Average Graphics Package Power (W)\": \"90.0\", \"GPU use (%)\": \"99\"}}",
        "rocm-smi-json",
        &[("/power_w/0", 90.0), ("/gpu_percent/0", 99.0)],
    ),
];

#[test]
fn log_lines_of_all_tool_versions_are_parsed() {
    let mut problems = Vec::new();
    for (text, format, facts) in VERSIONS {
        let context = Context { name: "some.log".to_owned(), seed: 1, ..Context::default() };
        let ingested = match ingest::ingest(text.as_bytes(), &context) {
            Ok(ingested) => ingested,
            Err(error) => {
                problems.push(format!("{format}: {error}"));
                continue;
            }
        };
        let reading = &ingested.readings[0];
        if reading.format != *format {
            problems.push(format!("{format}: found {}", reading.format));
        }
        let got = Value::from(reading.facts.clone());
        for (pointer, expected) in *facts {
            let found = got.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
            if (found - expected).abs() > 1e-9 * expected.abs() || found.is_nan() {
                problems.push(format!("{format} {pointer}: expected {expected}, found {found}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
