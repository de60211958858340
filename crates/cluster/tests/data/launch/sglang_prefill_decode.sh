#!/bin/bash
# Prefill/decode disaggregation on one 8-GPU H100 node
MODEL=${MODEL_PATH:-meta-llama/Llama-3.3-70B-Instruct}
IB=mlx5_0,mlx5_1

trap 'kill $(jobs -p)' EXIT

CUDA_VISIBLE_DEVICES=0,1,2,3 python3 -m sglang.launch_server \
  --model-path "$MODEL" \
  --disaggregation-mode prefill \
  --disaggregation-ib-device $IB \
  --tp-size 4 --port 30000 --chunked-prefill-size 8192 --mem-fraction-static 0.85 > prefill.log 2>&1 &

CUDA_VISIBLE_DEVICES=4,5,6,7 python3 -m sglang.launch_server \
  --model-path "$MODEL" \
  --disaggregation-mode decode \
  --disaggregation-ib-device $IB \
  --tp-size 4 --port 30001 --max-running-requests 256 --cuda-graph-max-bs 256 --mem-fraction-static 0.88 > decode.log 2>&1 &

until curl -sf localhost:30000/health && curl -sf localhost:30001/health; do sleep 5; done

python3 -m sglang_router.launch_router \
  --pd-disaggregation \
  --prefill http://127.0.0.1:30000 --decode http://127.0.0.1:30001 \
  --host 0.0.0.0 --port 8000
