#!/usr/bin/env bash
set -euo pipefail
# Pretrain Mixtral-like MoE on 4 nodes of 8 H200
: "${NNODES:=4}"
: "${GPUS:=8}"
function parallel_args() {
  echo "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --expert-model-parallel-size 8 --expert-tensor-parallel-size 1"
}
if [[ "${FP8:-0}" == "1" ]]; then
  PREC="--fp8-format hybrid --bf16"
else
  PREC="--bf16"
fi
OPTIONS=" \
    $(parallel_args) \
    --context-parallel-size 1 \
    --num-experts 8 --moe-router-topk 2 \
    --seq-length 4096 \
    --micro-batch-size 1 --global-batch-size 256 \
    --use-distributed-optimizer \
    $PREC \
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 "
eval "torchrun --nnodes=$NNODES --nproc-per-node=$GPUS pretrain_gpt.py $OPTIONS"
