#!/bin/bash
# usage: run.sh [--tp N] [--pp N] [--model NAME]
TP=8
PP=1
MODEL="meta-llama/Llama-3.1-405B-Instruct-FP8"
while [[ $# -gt 0 ]]; do
  case "$1" in
    --tp) TP="$2"; shift 2 ;;
    --pp) PP="$2"; shift 2 ;;
    --model) MODEL="$2"; shift 2 ;;
    *) echo "unknown"; exit 1 ;;
  esac
done
LEN=$(( 8 * 1024 ))
python3 -m vllm.entrypoints.openai.api_server --model="$MODEL" --tensor-parallel-size=$TP --pipeline-parallel-size=$PP --max-model-len=${LEN} --kv-cache-dtype=fp8 --num-scheduler-steps=10 --max-num-seqs=${MAX_SEQS:-256} --disable-log-requests
