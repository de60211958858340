#!/usr/bin/env bash
model=nvidia/Llama-3.3-70B-Instruct-FP8
isl=1024; osl=2048
tp=2
conc=256
n=$(( conc * 8 ))

python benchmarks/cpp/prepare_dataset.py --tokenizer=$model --stdout token-norm-dist \
  --num-requests=$n --input-mean=$isl --output-mean=$osl --input-stdev=0 --output-stdev=0 > /tmp/ds_${isl}_${osl}.txt

trtllm-bench --model $model throughput \
  --tp $tp --backend pytorch \
  --dataset /tmp/ds_${isl}_${osl}.txt \
  --max_batch_size 1024 --max_num_tokens 8192 \
  --concurrency $conc --num_requests $n \
  --kv_cache_free_gpu_mem_fraction 0.92 \
  --report_json out.json
