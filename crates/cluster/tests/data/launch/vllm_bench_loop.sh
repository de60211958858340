#!/bin/bash
# usage: ./bench.sh [model] [port]
MODEL=${1:-deepseek-ai/DeepSeek-R1}
PORT=${2:-8000}
RESULT_DIR=results/$(date +%Y%m%d)
mkdir -p "$RESULT_DIR"
ISL=3500
OSL=1500
for c in 1 4 16 64 256; do
  vllm bench serve \
    --backend vllm --base-url "http://localhost:${PORT}" --endpoint /v1/completions \
    --model "$MODEL" \
    --dataset-name random \
    --random-input-len $ISL --random-output-len $OSL --random-range-ratio 0.1 \
    --ignore-eos \
    --max-concurrency $c --num-prompts $((c * 10)) --request-rate inf \
    --save-result --result-dir "$RESULT_DIR" --result-filename "c${c}.json" \
    --percentile-metrics ttft,tpot,itl,e2el
done
