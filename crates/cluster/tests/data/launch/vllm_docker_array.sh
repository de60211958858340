#!/bin/bash
# usage: ./serve.sh [model] [tp]
MODEL="${1:-Qwen/Qwen2.5-72B-Instruct}"
TP_SIZE=${2:-8}
EXTRA=""
[ -n "$LORA" ] && EXTRA="--enable-lora"
export VLLM_ATTENTION_BACKEND=FLASHINFER
GPU_UTIL=0.9
if [ "$TP_SIZE" -gt 4 ]; then MAXLEN=65536; else MAXLEN=32768; fi
args=()
args+=("--tensor-parallel-size" "$TP_SIZE")
args+=(--pipeline-parallel-size 2)
args+=("--max-model-len=$MAXLEN")
while [[ $# -gt 2 ]]; do args+=("$3"); shift; done
docker run --gpus all --rm -v ~/.cache:/root/.cache -p 8000:8000 \
   --ipc=host vllm/vllm-openai:v0.9.0 \
   --model "$MODEL" "${args[@]}" --gpu-memory-utilization "$GPU_UTIL" --dtype bfloat16 $EXTRA \
   --speculative-config '{"method": "eagle3", "model": "yuhuili/EAGLE3", "num_speculative_tokens": 3}'
