#!/bin/bash
TP=8
MAXLEN=4096
while getopts "t:m:l:h" opt; do
  case $opt in
    t) TP=$OPTARG;;
    m) MODEL=$OPTARG;;
    l) MAXLEN=$OPTARG;;
    *) usage; exit 1;;
  esac
done
shift $((OPTIND-1))
MODEL=${MODEL:="mistralai/Mixtral-8x22B-Instruct-v0.1"}
numactl --cpunodebind=0 --membind=0 nohup python -u -m vllm.entrypoints.openai.api_server --model="$MODEL" \
  --tensor-parallel-size="$TP" --max-model-len="$MAXLEN" --disable-log-requests > server.log 2>&1 &
until curl -s localhost:8000/health; do sleep 1; done
for C in 1 8 64; do
python benchmarks/benchmark_serving.py --backend vllm --model $MODEL --dataset-name random --random-input-len 1024 --random-output-len 512 --num-prompts $((C*10)) --max-concurrency $C
done
