#!/bin/bash
MODEL=meta-llama/Llama-3.1-8B-Instruct
trap 'kill $(jobs -p)' EXIT
CUDA_VISIBLE_DEVICES=0 vllm serve $MODEL --port 8100 --max-model-len 10000 --gpu-memory-utilization 0.8 \
  --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_producer","kv_rank":0,"kv_parallel_size":2}' &
CUDA_VISIBLE_DEVICES=1,2 vllm serve $MODEL --port 8200 --max-model-len 10000 --gpu-memory-utilization 0.8 -tp 2 \
  --kv-transfer-config '{"kv_connector":"P2pNcclConnector","kv_role":"kv_consumer","kv_rank":1,"kv_parallel_size":2}' &
wait
