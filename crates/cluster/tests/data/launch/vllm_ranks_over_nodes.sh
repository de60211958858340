#!/bin/bash
# 2 nodes x 8 H200
source config.env
NODES=2
LOCAL_DP=8
DP=$((NODES * LOCAL_DP))
RANK=${SLURM_NODEID:-0}
COMMON=(--tensor-parallel-size 1 --data-parallel-size $DP --data-parallel-size-local $LOCAL_DP
        --data-parallel-address "${HEAD_IP:-10.0.0.1}" --data-parallel-rpc-port 13345
        --enable-expert-parallel --max-model-len auto --max-num-seqs 256)
if (( RANK == 0 )); then
  exec vllm serve deepseek-ai/DeepSeek-V3.1 "${COMMON[@]}" --api-server-count=4
else
  exec vllm serve deepseek-ai/DeepSeek-V3.1 "${COMMON[@]}" --headless --data-parallel-start-rank $((RANK * LOCAL_DP))
fi
