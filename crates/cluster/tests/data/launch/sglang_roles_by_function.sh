#!/bin/bash
MODEL=Qwen/Qwen3-30B-A3B
launch() {
  local mode=$1 gpus=$2 port=$3; shift 3
  CUDA_VISIBLE_DEVICES=$gpus python -m sglang.launch_server --model-path $MODEL --disaggregation-mode $mode \
    --port $port --tp-size $(echo $gpus | tr ',' '\n' | wc -l) --disaggregation-ib-device mlx5_0 "$@" &
}
launch prefill 0,1 30000 --mem-fraction-static 0.8 --chunked-prefill-size 8192
launch decode 2,3,4,5 30001 --mem-fraction-static 0.9 --max-running-requests 256
python -m sglang_router.launch_router --pd-disaggregation --prefill http://127.0.0.1:30000 --decode http://127.0.0.1:30001
